/*
 * A member of a static quorum, linked with the library: voter ID SESSION STATE_DIRECTORY VOTER,VOTER,... [ADDRESS]
 * It prints the lines of the samples (examples/c/lobby.c), and leaves on /quit from standard input.
 */
#include <meta_mystia_network.h>

#include "../../examples/c/platform.h"

#include <stdio.h>
#include <string.h>

enum { HELLO = 0x0100 };

static const char *own_id;

static void say(const char *text, const char *more)
{
    printf("[%s] %s%s\n", own_id, text, more);
    fflush(stdout);
}

static void on_leader(const char *leader)
{
    if (*leader) say("leader is ", leader);
    else say("no leader", "");
}

static void on_message(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)type, (void)flags;
    printf("[%s] from %s: %.*s\n", own_id, peer, (int)length, (const char *)data);
    fflush(stdout);
}

static int refused(int32_t code)
{
    if (code >= 0) return 0;
    printf("[%s] error %d: %s\n", own_id, (int)code, GetLastErrorMessage());
    fflush(stdout);
    return 1;
}

/* This member comes last in its own list: no test compares the order. */
static void say_members(void)
{
    char list[4096], line[8192] = "members:";
    snprintf(list, sizeof list, "%s", GetPeerList());
    size_t used = strlen(line);
    for (char *name = strtok(list, "\n"); name; name = strtok(NULL, "\n")) {
        int32_t rtt = GetPeerRTT(name);
        char text[16] = "-";
        if (rtt >= 0) snprintf(text, sizeof text, "%d", (int)rtt);
        used += (size_t)snprintf(line + used, sizeof line - used, " %s(%s ms)", name, text);
    }
    const char *leader = GetCurrentLeader();
    used += (size_t)snprintf(line + used, sizeof line - used, " %s(0 ms); ", own_id);
    if (leader && *leader) snprintf(line + used, sizeof line - used, "leader: %s", leader);
    else snprintf(line + used, sizeof line - used, "no leader");
    say(line, "");
}

/* 0 after /quit from standard input, or at its end. */
static int stays(double seconds)
{
    static char typed[256];
    static size_t used;
    double until = now_seconds() + seconds;
    for (double left; (left = until - now_seconds()) > 0;) {
        long got = read_input(typed + used, sizeof typed - 1 - used, left);
        if (got < 0) return 0;
        used += (size_t)got;
        typed[used] = 0;
        if (strstr(typed, "/quit") || used == sizeof typed - 1) return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 5) return fprintf(stderr, "usage: voter ID SESSION STATE_DIRECTORY VOTER,VOTER,... [ADDRESS]\n"), 2;
    own_id = argv[1];
    for (char *comma = argv[4]; (comma = strchr(comma, ','));) *comma = '\n';
    NetworkOptions options = {0};
    options.struct_size = sizeof options;
    if (refused(GetDefaultNetworkOptions(&options))) return 1;
    options.quorum_policy = MMN_QUORUM_STATIC;
    options.quorum_roster = argv[4];
    options.state_directory = argv[3];
    if (refused(InitializeNetworkWithOptions(own_id, argv[2], &options))) return 1;
    say("listening on ", GetLocalAddr());
    refused(RegisterLeaderChangedCallback(on_leader));
    refused(RegisterReceiveCallback(on_message));
    if (argc > 5) refused(ConnectToPeer(argv[5]));
    while (stays(0.5)) {
        refused(BroadcastMessage((const uint8_t *)"hello", 5, HELLO, 0));
        say_members();
    }
    if (refused(ShutdownNetwork())) return 1;
    say("closed", "");
    return 0;
}
