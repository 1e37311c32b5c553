/*
 * A classic host of an earlier day: compiled against the header beside it, which never changes, and run with the library of
 * today. All functions by name, the classic config, callbacks on the library's threads, the windows of gossip, and a second
 * process of this program as its partner. Prints "ok" only when all came true.
 *
 *   gcc -std=gnu11 -Wall -Wextra -Werror tests/abi/old_host/old_host.c -o old_host -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./old_host
 */
#include "meta_mystia_network.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 0x0100, FLAGS = 6, EVENT_SECONDS = 20 };

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
}

/* ------------------------------------------------------------------ what comes */

static atomic_int connected, lost, led, dialled, texts;

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)
{
    MUST(strcmp(peer, is_guest ? "host" : "guest") == 0);
    MUST(length == 6 && memcmp(data, "hello", 6) == 0 && msg_type == TYPE && flags == FLAGS);
    atomic_fetch_add(&texts, 1);
}

static void on_status(const char *peer, int32_t status)
{
    MUST(strcmp(peer, is_guest ? "host" : "guest") == 0);
    MUST(status == MMN_PEER_CONNECTED || status == MMN_PEER_DISCONNECTED);
    atomic_fetch_add(status == MMN_PEER_CONNECTED ? &connected : &lost, 1);
}

static void on_leader(const char *leader) { atomic_store(&led, strcmp(leader, "host") == 0); }

static void on_result(const char *addr, uint8_t success, int32_t code)
{
    MUST(*addr && success == 1 && code == MMN_OK);
    atomic_fetch_add(&dialled, 1);
}

static void on_reconnect(const char *peer, uint8_t status) { MUST(*peer && status <= MMN_RECONNECT_GAVE_UP); }

static void wait_until(const atomic_int *happened, const char *what)
{
    time_t until = time(NULL) + EVENT_SECONDS;
    while (!atomic_load(happened)) {
        if (time(NULL) > until) fail("%s: not within %d s", what, EVENT_SECONDS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* ------------------------------------------------------------------ a room */

/* The classic struct, which is read without a size; no discovery. */
static const NetworkConfigFFI CONFIG = {
    30000, 512, 262144, 500, 1500, 3000, 1000, 5000, 5000, 128, 256, 64, 60, 10, 0, 3, 3, 1, 1, 0, 1, 1, 0,
};

static void open_room(const char *id, const char *session)
{
    MUST(net.InitializeNetworkWithConfig(id, session, &CONFIG) == MMN_OK);
    MUST(net.RegisterReceiveCallback(on_receive) == MMN_OK && net.RegisterPeerStatusCallback(on_status) == MMN_OK);
    MUST(net.RegisterLeaderChangedCallback(on_leader) == MMN_OK);
    MUST(net.RegisterConnectionResultCallback(on_result) == MMN_OK && net.RegisterReconnectCallback(on_reconnect) == MMN_OK);
    MUST(net.IsNetworkInitialized() == 1 && net.IsMdnsActive() == 0);
    MUST(strcmp(net.GetLocalPeerId(), id) == 0 && strcmp(net.GetSessionId(), session) == 0);
}

static void check_config(void)
{
    NetworkConfigFFI config = CONFIG;
    MUST(net.InitializeNetwork("classic", "an old host, alone") == MMN_OK);
    config.max_connections = 0;
    MUST(net.InitializeNetworkWithConfig("classic", "again", &config) == MMN_ALREADY_INITIALIZED);
    MUST(net.ShutdownNetwork() == MMN_OK);
    MUST(net.InitializeNetworkWithConfig("classic", "again", &config) == MMN_INVALID_ARGUMENT);
    MUST(net.GetLastErrorCode() == MMN_INVALID_ARGUMENT && strstr(net.GetLastErrorMessage(), "max_connections"));
}

static void check_windows(void)
{
    MUST(net.GetStartupGracePeriod() == 15000 && net.GetMembershipSampleInterval() == 1000);
    MUST(net.GetLeaderAliveThreshold() == 10000 && net.GetLeaderElectionDuration() == 5000);
    MUST(net.SetStartupGracePeriod(14000) == MMN_OK && net.SetMembershipSampleInterval(900) == MMN_OK);
    MUST(net.SetLeaderAliveThreshold(9000) == MMN_OK && net.SetLeaderElectionDuration(4000) == MMN_OK);
    MUST(net.GetStartupGracePeriod() == 14000 && net.GetMembershipSampleInterval() == 900);
    MUST(net.GetLeaderAliveThreshold() == 9000 && net.GetLeaderElectionDuration() == 4000);
    MUST(net.GetMsgExpirationTimeout() == 90000 && net.GetLeadershipDeclarationInterval() == 4500);
    MUST(net.SetLeaderAliveThreshold(0) == MMN_INVALID_ARGUMENT);
}

static void check_switches(void)
{
    MUST(net.IsAutoReconnectEnabled() == 1 && net.SetAutoReconnect(0) == MMN_OK && net.IsAutoReconnectEnabled() == 0);
    MUST(net.IsCentralizedMode() == 0 && net.SetCentralizedMode(1) == MMN_OK && net.IsCentralizedMode() == 1);
    MUST(net.IsCentralizedAutoForward() == 1 && net.SetCentralizedAutoForward(0) == MMN_OK && net.IsCentralizedAutoForward() == 0);
    MUST(net.SetCentralizedMode(0) == MMN_OK);
    MUST(net.SetCompressionThreshold(64) == MMN_OK && net.EnableAutoLeaderElection(1) == MMN_OK && net.EnableLogging(0) == MMN_OK);
}

/* ------------------------------------------------------------------ */

static const uint8_t HELLO[] = "hello";

static int guest(const char *session, const char *address)
{
    is_guest = 1;
    load();
    open_room("guest", session);
    MUST(net.ConnectToPeer(address) == MMN_OK);
    wait_until(&dialled, "the link");
    MUST(net.BroadcastMessage(HELLO, sizeof HELLO, TYPE, FLAGS) == MMN_OK);
    MUST(net.SendToPeer("host", HELLO, sizeof HELLO, TYPE, FLAGS) == MMN_OK);
    wait_until(&led, "the leader");
    MUST(net.SendFromLeader(HELLO, sizeof HELLO, TYPE, FLAGS) == MMN_NOT_LEADER && !net.IsLeader());
    MUST(net.SendToLeader(HELLO, sizeof HELLO, TYPE, FLAGS) == MMN_OK);
    wait_until(&texts, "the leader's message");
    wait_until(&lost, "the disconnect");
    MUST(net.ShutdownNetwork() == MMN_OK);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--guest") == 0) return guest(arguments[2], arguments[3]);
    load();
    check_config();
    check_windows();
    char session[64], address[128];
    snprintf(session, sizeof session, "an old host %d", (int)getpid());
    open_room("host", session);
    check_switches();
    snprintf(address, sizeof address, "%s", net.GetLocalAddr());
    pid_t partner = fork();
    if (partner == 0) {
        execl("/proc/self/exe", arguments[0], "--guest", session, address, (char *)NULL);
        _exit(127);
    }
    wait_until(&connected, "a member");
    MUST(net.GetPeerCount() == 1 && strcmp(net.GetPeerList(), "guest") == 0);
    MUST(net.GetPeerStatus("guest") == MMN_PEER_CONNECTED && net.GetPeerRTT("guest") >= -1);
    MUST(net.SetLeader("host") == MMN_OK);
    wait_until(&led, "the leader");
    MUST(net.IsLeader() && strcmp(net.GetCurrentLeader(), "host") == 0);
    /* Broadcast, sent to this member, and to the leader. */
    time_t until = time(NULL) + EVENT_SECONDS;
    while (atomic_load(&texts) < 3 && time(NULL) <= until) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    MUST(atomic_load(&texts) == 3);
    MUST(net.ForwardMessage("unknown", NULL, HELLO, sizeof HELLO, TYPE, FLAGS) == MMN_PEER_NOT_FOUND);
    MUST(net.SendFromLeader(HELLO, sizeof HELLO, TYPE, FLAGS) == MMN_OK);
    MUST(net.DisconnectPeer("guest") == MMN_OK);
    wait_until(&lost, "the end of the session with the guest");
    int status = 0;
    MUST(waitpid(partner, &status, 0) == partner && status == 0);
    MUST(net.ShutdownNetwork() == MMN_OK);
    MUST(net.GetPeerCount() == -1 && net.GetLastErrorCode() == MMN_NOT_INITIALIZED);
    puts("ok");
    return 0;
}
