/* A member that greets each other one: `hello_c ID [ADDRESS]`. It prints its address and its messages, and leaves at the end of
 * its input. */
#include <meta_mystia_network.h>

#include <stdio.h>

static void on_message(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)type, (void)flags;
    printf("%s: %.*s\n", peer, (int)length, (const char *)data);
    fflush(stdout);
}

static void on_peer(const char *peer, int32_t status)
{
    static const char text[] = "hello from C";
    if (status == MMN_PEER_CONNECTED) SendToPeer(peer, (const uint8_t *)text, sizeof text - 1, MMN_MIN_MESSAGE_TYPE, 0);
}

int main(int argc, char **argv)
{
    int32_t code = InitializeNetwork(argc > 1 ? argv[1] : "carol", "packages");
    if (code == MMN_OK) {
        RegisterReceiveCallback(on_message);
        RegisterPeerStatusCallback(on_peer);
        printf("%s\n", GetLocalAddr());
        fflush(stdout);
        if (argc > 2) code = ConnectToPeer(argv[2]);
    }
    if (code != MMN_OK) {
        fprintf(stderr, "%s\n", GetLastErrorMessage());
        return 1;
    }
    while (getchar() != EOF) {}
    return ShutdownNetwork() == MMN_OK ? 0 : 1;
}
