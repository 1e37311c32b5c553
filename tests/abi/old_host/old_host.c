/*
 * A host of an earlier day: compiled against the header beside it, which never changes, and run with the library of today.
 * It opens a room as every version of the ABI may be used: all functions by name, options and figures of its own size, the
 * event handler, classic callbacks, a second process of this program as its partner. Prints "ok" only when all came true.
 *
 *   gcc -std=gnu11 -Wall -Wextra -Werror tests/abi/old_host/old_host.c -o old_host -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./old_host
 */
#include "meta_mystia_network.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 0x0100, EVENT_SECONDS = 20, KICK_CODE = 9, CANARY = 0xa5 };

static struct {
#define MEMBER(result, name, parameters) result (*name) parameters;
    MMN_FUNCTIONS(MEMBER)
} net;

static int is_guest;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "FAILED (%s): ", is_guest ? "guest" : "host");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; last error: %s\n", net.GetLastErrorMessage ? net.GetLastErrorMessage() : "");
    _exit(1);
}

#define MUST(condition) \
    do { \
        if (!(condition)) fail("line %d: %s does not hold", __LINE__, #condition); \
    } while (0)

static void load(void)
{
    const char *path = getenv("MMN_LIBRARY");
    void *library = dlopen(path ? path : "libmeta_mystia_network.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("%s", dlerror());
#define LOAD(result, name, parameters) \
    *(void **)&net.name = dlsym(library, #name); \
    if (!net.name) fail("the library has no function " #name);
    MMN_FUNCTIONS(LOAD)
    MUST(net.GetAbiVersion() >= MMN_ABI_VERSION);
}

/* ------------------------------------------------------------------ what comes, in poll mode */

static int joined, left_kicked, led, texts, classic_texts, statuses, room_ended;
static char data_of_message[16];

static void on_event(void *user_data, const NetworkEvent *event)
{
    MUST(user_data == &joined);
    /* A newer library may fill in more, never less. */
    MUST(event->struct_size >= sizeof *event);
    MUST(event->peer && event->other && event->data);
    switch (event->kind) {
    case MMN_EVENT_JOINED: joined++; break;
    case MMN_EVENT_LEADER_CHANGED: led += *event->peer != 0; break;
    case MMN_EVENT_MESSAGE:
        MUST(event->msg_type == TYPE && event->length == 6 && memcmp(event->data, "hello", 6) == 0);
        texts++;
        break;
    case MMN_EVENT_LEFT: left_kicked += event->reason == MMN_LEFT_KICKED && event->code == KICK_CODE; break;
    case MMN_EVENT_ROOM_ENDED: room_ended += event->reason == MMN_END_KICKED && event->code == KICK_CODE; break;
    default: break; /* unknown kinds are to be ignored */
    }
}

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)
{
    MUST(*peer && length == 6 && msg_type == TYPE && flags == 0);
    memcpy(data_of_message, data, (size_t)length);
    classic_texts++;
}

static void on_status(const char *peer, int32_t status)
{
    MUST(*peer);
    statuses += status == MMN_PEER_CONNECTED;
}

static void wait_until(const int *happened, const char *what)
{
    time_t until = time(NULL) + EVENT_SECONDS;
    while (!*happened) {
        MUST(net.PollEvents(64) >= 0);
        if (time(NULL) > until) fail("%s: not within %d s", what, EVENT_SECONDS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* ------------------------------------------------------------------ the structs of its own day */

static void open_room(const char *id, const char *session)
{
    struct {
        NetworkOptions options;
        uint8_t behind[256];
    } own;
    memset(&own, CANARY, sizeof own);
    own.options.struct_size = sizeof own.options;
    MUST(net.GetDefaultNetworkOptions(&own.options) == MMN_OK);
    MUST(own.options.struct_size == sizeof own.options);
    for (size_t i = 0; i < sizeof own.behind; i++) MUST(own.behind[i] == CANARY);
    own.options.dispatch_mode = MMN_DISPATCH_POLL;
    MUST(net.RegisterEventHandler(on_event, &joined, NULL) == MMN_OK);
    MUST(net.InitializeNetworkWithOptions(id, session, &own.options) == MMN_OK);
    MUST(net.RegisterReceiveCallback(on_receive) == MMN_OK);
    MUST(net.RegisterPeerStatusCallback(on_status) == MMN_OK);
}

static void check_figures(const char *peer)
{
    struct {
        PeerStats stats;
        uint8_t behind[256];
    } own;
    memset(&own, CANARY, sizeof own);
    own.stats.struct_size = sizeof own.stats;
    MUST(net.GetPeerStats(peer, &own.stats) == MMN_OK);
    MUST(own.stats.struct_size == sizeof own.stats && own.stats.messages_received >= 1);
    for (size_t i = 0; i < sizeof own.behind; i++) MUST(own.behind[i] == CANARY);
}

/* The classic struct, which is read without a size. */
static void check_classic(void)
{
    NetworkConfigFFI config = {
        30000, 512, 262144, 500, 1500, 3000, 1000, 5000, 5000, 128, 256, 64, 60, 10, 0, 3, 3, 1, 1, 0, 1, 1, 0,
    };
    MUST(net.InitializeNetworkWithConfig("classic", "an old host, alone", &config) == MMN_OK);
    MUST(strcmp(net.GetLocalPeerId(), "classic") == 0);
    config.max_connections = 0;
    MUST(net.InitializeNetworkWithConfig("classic", "again", &config) == MMN_ALREADY_INITIALIZED);
    MUST(net.ShutdownNetwork() == MMN_OK);
    MUST(net.InitializeNetworkWithConfig("classic", "again", &config) == MMN_INVALID_ARGUMENT);
    MUST(strstr(net.GetLastErrorMessage(), "max_connections"));
}

/* ------------------------------------------------------------------ */

static int guest(const char *session, const char *address)
{
    is_guest = 1;
    load();
    open_room("guest", session);
    MUST(net.ConnectToPeer(address) == MMN_OK);
    wait_until(&joined, "the link");
    MUST(net.SendToPeer("host", (const uint8_t *)"hello", 6, TYPE, 0) == MMN_OK);
    wait_until(&room_ended, "the kick");
    MUST(net.ShutdownNetwork() == MMN_OK);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--guest") == 0) return guest(arguments[2], arguments[3]);
    load();
    check_classic();
    char session[64], address[128];
    snprintf(session, sizeof session, "an old host %d", (int)getpid());
    open_room("host", session);
    snprintf(address, sizeof address, "%s", net.GetLocalAddr());
    pid_t partner = fork();
    if (partner == 0) {
        execl("/proc/self/exe", arguments[0], "--guest", session, address, (char *)NULL);
        _exit(127);
    }
    wait_until(&joined, "a member");
    MUST(net.GetPeerCount() == 1 && strcmp(net.GetPeerList(), "guest") == 0);
    wait_until(&texts, "a message");
    wait_until(&classic_texts, "a message for the classic callback");
    MUST(strcmp(data_of_message, "hello") == 0 && statuses == 1);
    check_figures("guest");
    wait_until(&led, "a leader");
    MUST(net.SetLeader("host") == MMN_OK);
    time_t until = time(NULL) + EVENT_SECONDS;
    while (!net.IsLeader() && time(NULL) < until) MUST(net.PollEvents(64) >= 0);
    MUST(strcmp(net.GetCurrentLeader(), "host") == 0 && net.GetLeaderTerm() >= 1);
    MUST(net.KickPeer("guest", KICK_CODE, NULL, 0) == MMN_OK);
    wait_until(&left_kicked, "the end of the session with the guest");
    int status = 0;
    MUST(waitpid(partner, &status, 0) == partner && status == 0);
    MUST(net.ShutdownNetwork() == MMN_OK);
    MUST(net.GetPeerCount() == -1 && net.GetLastErrorCode() == MMN_NOT_INITIALIZED);
    puts("ok");
    return 0;
}
