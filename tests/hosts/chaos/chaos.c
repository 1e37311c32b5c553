/*
 * Eight threads call every exported function at random, with good and bad arguments, from callbacks too, while two peers talk
 * and one of them is killed and started again. Any thread may open, close and reopen rooms, the default one among them.
 *
 *   gcc -std=gnu11 -O2 -g -pthread -Iinclude tests/hosts/chaos/chaos.c -o chaos -ldl
 *   MMN_LIBRARY=... ./chaos [--gossip] [--seconds 5] [--seed N] [--list]
 *
 * Nothing may crash, hang or answer an unknown code, and afterwards nothing may have grown: resident memory (by more than
 * ALLOWED_GROWTH_KIB), threads, descriptors. Prints the seed first, a table of the calls, and "ok" as the last line.
 * --list prints the names of the functions that it calls. With --gossip the peers, and most rooms, elect by gossip.
 */
#define _GNU_SOURCE
#include "../../abi/tables.h"
#include "../classic.h"
#include "meta_mystia_network.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 8,
    TYPE = 0x0100,
    LIMIT_BYTES = 262144,
    MAX_STARTS = 256,          /* starts of partners */
    WARM_UP_SECONDS = 3,
    KILL_EVERY_MS = 1500,
    CLOSE_EVERY_MS = 2000,     /* minimum time between two closes: the room must also be used */
    PART_EVERY_MS = 700,       /* minimum time between two disconnects of a linked peer: links must also form */
    STUCK_SECONDS = 30,        /* a call that takes longer hangs */
    EVENT_SECONDS = 20,
    ALLOWED_GROWTH_KIB = 4096, /* a leak in each of 100,000 calls would be far more */
};

/* ------------------------------------------------------------------ time, chance, failures */

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void nap_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static uint64_t seed;
static int error_output = STDERR_FILENO; /* a copy: standard error itself receives the library's log when chance enables it */

/* The current call of a thread, for the watchdog. The last one is for all threads of the library. */
static struct worker {
    _Atomic(const char *) in;
    atomic_llong since_ms;
} workers[THREADS + 2];

static __thread struct worker *self = &workers[THREADS];
static __thread uint64_t chance_state;
static __thread int callback_depth;

static uint64_t chance(void)
{
    if (!chance_state) chance_state = seed ^ ((uint64_t)gettid() << 32) ^ 0x9e3779b97f4a7c15u;
    /* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" */
    chance_state ^= chance_state >> 12, chance_state ^= chance_state << 25, chance_state ^= chance_state >> 27;
    return chance_state * 0x2545f4914f6cdd1du >> 16;
}

static unsigned below(unsigned limit) { return (unsigned)(chance() % limit); }
static int one_in(unsigned n) { return below(n) == 0; }

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dprintf(error_output, "FAILED (seed %llu): %s\n", (unsigned long long)seed, text);
    /* Not exit(): this may run on the library's thread, in the middle of a broken promise. */
    _exit(1);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    for (int i = 0; i <= THREADS; i++) {
        const char *in = atomic_load(&workers[i].in);
        if (in) dprintf(error_output, "thread %d is in %s\n", i, in);
    }
    dprintf(error_output, "FAILED (seed %llu): it took too long\n", (unsigned long long)seed);
    _exit(3);
}

/* ------------------------------------------------------------------ the partners: this program in other processes */

enum { NAME_BYTES = 64 };
/* The first lives throughout. The second is killed and started again, under another name if it was removed from the room. */
static char names[MAX_STARTS][NAME_BYTES] = {"альфа-α", "猫β🐈"};
static atomic_int last_name = 1, removed;
static char session[64];

struct partner {
    pid_t pid;
    int leash; /* closing it ends the partner */
};
static struct partner partners[2];

static const char *partner_name(int which) { return names[which ? atomic_load(&last_name) : 0]; }
/* Every address that a partner has had; the latest may be alive. */
static char addresses[MAX_STARTS][128];
static atomic_int address_count;

static void *partner_leash(void *unused)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    _exit(0);
    return unused;
}

static void partner_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    /* Answers one message in 16, so that the conversation ends. */
    if (one_in(16)) net.SendToPeer(peer, data, length < 4096 ? length : 4096, type, flags);
}

static void resolve(void *library);
static int32_t enter(const char *id, const char *name, uint32_t dispatch_mode);

static int partner_main(const char *id, const char *room, const char *contact)
{
    resolve(load_classic());
    pthread_t leash;
    pthread_create(&leash, NULL, partner_leash, NULL);
    int32_t code = enter(id, room, MMN_DISPATCH_THREAD);
    if (code != 0) fail("partner %s: %d, %s", id, (int)code, net.GetLastErrorMessage());
    net.RegisterReceiveCallback(partner_receive);
    if (*contact) net.ConnectToPeer(contact);
    printf("%s\n", net.GetLocalAddr());
    fflush(stdout);
    uint8_t data[2000] = {0};
    for (unsigned count = 0;; count++) {
        code = net.BroadcastMessage(data, (int32_t)below(sizeof data), TYPE, (uint8_t)count);
        if (code != 0 && code != -7) fail("partner %s: BroadcastMessage answered %d, %s", id, (int)code, net.GetLastErrorMessage());
        nap_ms(2);
    }
}

static void start_partner(int which)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) fail("pipe: %s", strerror(errno));
    int known = atomic_load(&address_count);
    if (known == MAX_STARTS) fail("too many starts of partners");
    if (which && atomic_exchange(&removed, 0)) {
        int next = atomic_load(&last_name) + 1;
        snprintf(names[next], NAME_BYTES, "%.16s%d", names[1], next);
        atomic_store(&last_name, next);
    }
    struct partner *partner = &partners[which];
    partner->pid = fork();
    if (partner->pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        dup2(error_output, STDERR_FILENO);
        execl("/proc/self/exe", "chaos", "--partner", partner_name(which), session, known ? addresses[0] : "", (char *)NULL);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    partner->leash = to[1];
    FILE *lines = fdopen(from[0], "r");
    if (!lines || !fgets(addresses[known], sizeof addresses[known], lines)) fail("partner %d did not start", which);
    addresses[known][strcspn(addresses[known], "\n")] = 0;
    fclose(lines);
    atomic_store(&address_count, known + 1);
}

static void end_partner(int which, int signal_number)
{
    struct partner *partner = &partners[which];
    int status;
    if (waitpid(partner->pid, &status, WNOHANG) != 0) fail("partner %s ended by itself, status %#x", partner_name(which), (unsigned)status);
    if (signal_number) kill(partner->pid, signal_number);
    close(partner->leash);
    waitpid(partner->pid, NULL, 0);
}

/* ------------------------------------------------------------------ arguments, good and bad */

/* Longer than the library searches for a NUL. */
static char endless[70001], long_id[65 + 1], long_session[128 + 1 + 1];
static uint8_t *bytes; /* more than the limit of a message */
static char own_addresses[4][128];
static atomic_int own_address_turn;

static void prepare(void)
{
    memset(endless, 'y', sizeof endless - 1);
    memset(long_id, 'x', sizeof long_id - 1);
    memset(long_session, 's', sizeof long_session - 1);
    bytes = malloc(LIMIT_BYTES + 1);
    if (!bytes) fail("no memory");
    for (int i = 0; i <= LIMIT_BYTES; i++) bytes[i] = (uint8_t)(i % 251 * (i >> 10));
}

#define ANY(list) (list)[below(sizeof(list) / sizeof *(list))]

static const char *bad_text(void)
{
    const char *const all[] = {NULL, "", " a", "a ", "a\nb", "\x01", "\x7f", "\xff\xfe", "\xc3(", "\xed\xa0\x80", "\xf4\x90\x80\x80", endless, long_id};
    return ANY(all);
}

static const char *const OWN[] = {"хаос", "混沌", "chaos🌀"};

static const char *any_peer(void)
{
    switch (below(8)) {
    case 0: return bad_text();
    case 1: return "unknown";
    case 2: return ANY(OWN);
    default: return partner_name(one_in(2));
    }
}

/* An id for calls that end a link. A fixed share of calls would not do: on a busy machine all links would end before they form. */
static const char *stranger_mostly(void)
{
    static atomic_llong part_at_ms;
    long long at = atomic_load(&part_at_ms), now = now_ms();
    if (now >= at && atomic_compare_exchange_strong(&part_at_ms, &at, now + PART_EVERY_MS)) return any_peer();
    return one_in(2) ? "unknown" : bad_text();
}

static const char *any_session(void)
{
    return one_in(8) ? one_in(2) ? bad_text() : long_session : session;
}

static const char *any_address(void)
{
    static const char *const bad[] = {"[::1", "1.2.3.4", "1.2.3.4:0", "1.2.3.4:65536", " 127.0.0.1:80", "::1:80", ":80", "a b:1", "127.0.0.1:",
                                      "127.0.0.1:-1", "0.0.0.0:9", "224.0.0.1:9", "255.255.255.255:9"};
    static const char *const dead[] = {"127.0.0.1:1", "[::1]:9", "localhost:9", "127.0.0.1:65535"};
    int known = atomic_load(&address_count);
    switch (below(16)) {
    case 0: return bad_text();
    case 1: return ANY(bad);
    case 2: return ANY(dead);
    case 3: return own_addresses[below(4)];
    case 4: return one_in(64) ? "no-such-host.invalid:4000" : ANY(dead);
    case 5: return addresses[below((unsigned)known)];
    default: return addresses[known - 1 - (known > 1 && one_in(2))];
    }
}

struct message {
    const uint8_t *data;
    int32_t length;
    uint16_t type;
    uint8_t flags;
};

static struct message any_message(void)
{
    struct message message = {bytes + below(100), (int32_t)below(600), (uint16_t)(TYPE + below(64)), (uint8_t)chance()};
    switch (below(32)) {
    case 0: message.data = NULL; break;
    case 1: message.data = NULL, message.length = 0; break;
    case 2: message.length = 0; break;
    case 3: message.length = -1 - (int32_t)below(1000); break;
    case 4: message.length = INT32_MIN; break;
    case 5: message.type = (uint16_t)below(TYPE); break;
    case 6: message.data = bytes, message.length = LIMIT_BYTES + 1; break;
    case 7: message.data = bytes, message.length = one_in(8) ? LIMIT_BYTES : 20000; break;
    }
    return message;
}

static const struct network_config *any_config(struct network_config *config)
{
    *config = (struct network_config)QUIET_CONFIG;
    switch (below(16)) {
    case 0: return NULL;
    case 1: memset(config, 0, sizeof *config); break;
    case 2: memset(config, 0xff, sizeof *config), config->mdns_port = 0; break;
    case 3:
        /* Any byte of any field, but no discovery of other rooms. */
        ((uint8_t *)config)[below(sizeof *config)] = (uint8_t)chance();
        config->mdns_port = 0;
        break;
    case 4: config->send_queue_capacity = 1, config->incoming_queue_capacity = 1; break;
    case 5: config->max_connections = 1; break;
    case 6: config->heartbeat_interval_ms = 20, config->election_timeout_min_ms = 60, config->election_timeout_max_ms = 120; break;
    case 7: config->auto_election_enabled = 0, config->auto_reconnect_enabled = 0; break;
    }
    return config;
}

/* ------------------------------------------------------------------ callbacks */

static atomic_llong messages, joins, losses, leaders, results, reconnects, inside;
static atomic_llong results_of[1 - LAST_CODE]; /* by code: -n is at n */
static atomic_uint sink; /* so that reading the arguments is not optimized away */
static void call_something(void);

static void read_text(const char *text, size_t limit)
{
    if (!text || strlen(text) > limit) fail("a callback's text is %s", text ? "too long" : "NULL");
    for (; *text; text++) atomic_fetch_add_explicit(&sink, (uint8_t)*text, memory_order_relaxed);
}

/* A callback may make any call, even the one that unregisters it. */
static void go_on_inside(void)
{
    if (!one_in(8)) return;
    callback_depth++;
    atomic_fetch_add(&inside, 1);
    call_something();
    callback_depth--;
}

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    read_text(peer, 64);
    /* One byte more than the usual limit: some rooms have another limit. */
    if (!data || length < 0 || length > LIMIT_BYTES + 1 || type < TYPE || flags & 1)
        fail("a message of %d bytes, type %#x, flags %#x", (int)length, type, flags);
    unsigned sum = 0;
    for (int32_t i = 0; i < length; i++) sum += data[i];
    atomic_fetch_add_explicit(&sink, sum, memory_order_relaxed);
    atomic_fetch_add(&messages, 1);
    go_on_inside();
}

static void on_leader(const char *leader)
{
    read_text(leader, 64);
    atomic_fetch_add(&leaders, 1);
    go_on_inside();
}

static void on_status(const char *peer, int32_t status)
{
    read_text(peer, 64);
    if (status != 0 && status != 1) fail("PeerStatus %d", (int)status);
    atomic_fetch_add(status ? &losses : &joins, 1);
    go_on_inside();
}

static void on_result(const char *address, uint8_t success, int32_t code)
{
    read_text(address, sizeof endless);
    if (success > 1 || code > 0 || code < LAST_CODE) fail("ConnectionResult %u, %d", success, (int)code);
    atomic_fetch_add(&results, 1);
    atomic_fetch_add(&results_of[-code], 1);
    go_on_inside();
}

static void on_reconnect(const char *peer, uint8_t status)
{
    read_text(peer, 64);
    if (status > 2) fail("Reconnect %u", status);
    atomic_fetch_add(&reconnects, 1);
    go_on_inside();
}

/* ------------------------------------------------------------------ the calls */

/* Each returns whether the call was accepted, and fails on a code that its function does not have. */
static int code(int32_t answer)
{
    if (answer > 0 || (answer < LAST_CODE)) fail("%s answered %d: %s", atomic_load(&self->in), (int)answer, net.GetLastErrorMessage());
    if (answer != 0 && net.GetLastErrorCode() == 0) fail("%s answered %d without a last error", atomic_load(&self->in), (int)answer);
    return answer == 0;
}

static int text(const char *answer, size_t limit)
{
    if (answer) read_text(answer, limit);
    return answer != NULL;
}

static int flag(uint8_t answer)
{
    if (answer > 1) fail("%s answered %u", atomic_load(&self->in), answer);
    return 1;
}

static int at_least(int32_t answer, int32_t least)
{
    if (answer < least) fail("%s answered %d", atomic_load(&self->in), (int)answer);
    return answer >= 0;
}

static void dial_partners(void)
{
    int known = atomic_load(&address_count);
    for (int i = 0; i < 2 && i < known; i++) net.ConnectToPeer(addresses[known - 1 - i]);
}

static void register_all(void)
{
    net.RegisterReceiveCallback(on_receive);
    net.RegisterLeaderChangedCallback(on_leader);
    net.RegisterPeerStatusCallback(on_status);
    net.RegisterConnectionResultCallback(on_result);
    net.RegisterReconnectCallback(on_reconnect);
}

static int opened(int32_t answer)
{
    if (!code(answer)) return 0;
    /* Other threads may close the room meanwhile: the results of these calls do not matter. */
    register_all();
    dial_partners();
    const char *own = net.GetLocalAddr();
    int turn = atomic_fetch_add(&own_address_turn, 1);
    /* Other threads write these four slots while this one reads them. Bytes of two addresses are a valid argument, too; the last
     * byte stays NUL. */
    if (own) memcpy(own_addresses[turn & 3], own, strlen(own) < 127 ? strlen(own) : 127);
    return 1;
}

static int open_plain(void)
{
    /* Default settings would discover other rooms' members; these tests have a session of their own. */
    return opened(net.InitializeNetwork(one_in(16) ? bad_text() : ANY(OWN), any_session()));
}

static int open_with_config(void)
{
    struct network_config config;
    const struct network_config *chosen = any_config(&config);
    return opened(net.InitializeNetworkWithConfig(one_in(16) ? bad_text() : ANY(OWN), any_session(), chosen));
}

static atomic_llong close_at_ms;
static atomic_int closers;

static int close_room(void)
{
    if (callback_depth) {
        int32_t answer = net.ShutdownNetwork();
        if (answer != -15 && answer != -1) fail("ShutdownNetwork inside a callback answered %d", (int)answer);
        return 0;
    }
    /* At intervals up to three threads at once may close it; a room that is always closed tests little. */
    long long at = atomic_load(&close_at_ms), now = now_ms();
    if (now >= at && atomic_compare_exchange_strong(&close_at_ms, &at, now + CLOSE_EVERY_MS)) atomic_store(&closers, 3);
    if (atomic_fetch_sub(&closers, 1) <= 0) return -1;
    return code(net.ShutdownNetwork());
}

static int forward(void)
{
    struct message m = any_message();
    const char *from = any_peer(), *to = one_in(2) ? NULL : any_peer();
    return code(net.ForwardMessage(from, to, m.data, m.length, m.type, m.flags));
}

#define MESSAGE(call)                   \
    {                                   \
        struct message m = any_message(); \
        return code(call);              \
    }
static int broadcast(void) MESSAGE(net.BroadcastMessage(m.data, m.length, m.type, m.flags))
static int to_peer(void) MESSAGE(net.SendToPeer(any_peer(), m.data, m.length, m.type, m.flags))
static int to_leader(void) MESSAGE(net.SendToLeader(m.data, m.length, m.type, m.flags))
static int from_leader(void) MESSAGE(net.SendFromLeader(m.data, m.length, m.type, m.flags))

#include "rooms.h"

/* X(name, weight, expression): the expression calls the function and gives 1 accepted, 0 refused, -1 not called. */
#define CALLS(X)                                                                                               \
    X(InitializeNetwork, 2, open_plain())                                                                      \
    X(InitializeNetworkWithConfig, 2, open_with_config())                                                      \
    X(ShutdownNetwork, 1, close_room())                                                                        \
    X(IsNetworkInitialized, 4, flag(net.IsNetworkInitialized()))                                               \
    X(IsMdnsActive, 2, flag(net.IsMdnsActive()))                                                               \
    X(GetLastErrorCode, 4, net.GetLastErrorCode() <= 0)                                                        \
    X(GetLastErrorMessage, 4, text(net.GetLastErrorMessage(), 4096))                                           \
    X(ConnectToPeer, 6, code(net.ConnectToPeer(any_address())))                                                \
    X(DisconnectPeer, 1, code(net.DisconnectPeer(stranger_mostly())))                                              \
    X(GetLocalAddr, 4, text(net.GetLocalAddr(), 128))                                                          \
    X(GetLocalPeerId, 4, text(net.GetLocalPeerId(), 64))                                                       \
    X(GetSessionId, 4, text(net.GetSessionId(), 128))                                                          \
    X(GetPeerCount, 4, at_least(net.GetPeerCount(), -1))                                                       \
    X(GetPeerList, 4, text(net.GetPeerList(), 65536))                                                          \
    X(GetPeerRTT, 4, at_least(net.GetPeerRTT(any_peer()), -1))                                                 \
    X(GetPeerStatus, 4, at_least(net.GetPeerStatus(any_peer()), -1))                                           \
    X(SetLeader, 2, code(net.SetLeader(one_in(2) ? net.GetLocalPeerId() : any_peer())))                        \
    X(EnableAutoLeaderElection, 2, code(net.EnableAutoLeaderElection((uint8_t)below(3))))                      \
    X(GetCurrentLeader, 4, text(net.GetCurrentLeader(), 64))                                                   \
    X(IsLeader, 4, flag(net.IsLeader()))                                                                       \
    X(SetCentralizedMode, 2, code(net.SetCentralizedMode((uint8_t)one_in(4))))                                 \
    X(IsCentralizedMode, 2, flag(net.IsCentralizedMode()))                                                     \
    X(SetCentralizedAutoForward, 2, code(net.SetCentralizedAutoForward((uint8_t)below(3))))                    \
    X(IsCentralizedAutoForward, 2, flag(net.IsCentralizedAutoForward()))                                       \
    X(SetCompressionThreshold, 2, code(net.SetCompressionThreshold(one_in(2) ? below(1000) : (uint32_t)chance()))) \
    X(BroadcastMessage, 12, broadcast())                                                                       \
    X(SendToPeer, 12, to_peer())                                                                               \
    X(SendToLeader, 8, to_leader())                                                                            \
    X(SendFromLeader, 8, from_leader())                                                                        \
    X(ForwardMessage, 8, forward())                                                                            \
    X(RegisterReceiveCallback, 2, code(net.RegisterReceiveCallback(one_in(4) ? NULL : on_receive)))            \
    X(RegisterLeaderChangedCallback, 2, code(net.RegisterLeaderChangedCallback(one_in(4) ? NULL : on_leader))) \
    X(RegisterPeerStatusCallback, 2, code(net.RegisterPeerStatusCallback(one_in(4) ? NULL : on_status)))       \
    X(RegisterConnectionResultCallback, 2, code(net.RegisterConnectionResultCallback(one_in(4) ? NULL : on_result))) \
    X(RegisterReconnectCallback, 2, code(net.RegisterReconnectCallback(one_in(4) ? NULL : on_reconnect)))      \
    X(SetAutoReconnect, 2, code(net.SetAutoReconnect((uint8_t)!one_in(4))))                                    \
    X(IsAutoReconnectEnabled, 2, flag(net.IsAutoReconnectEnabled()))                                           \
    X(EnableLogging, 1, code(net.EnableLogging((uint8_t)one_in(4))))                                           \
    X(SetStartupGracePeriod, 1, code(more.SetStartupGracePeriod(a_window())))                                  \
    X(GetStartupGracePeriod, 1, more.GetStartupGracePeriod() > 0)                                              \
    X(SetMembershipSampleInterval, 1, code(more.SetMembershipSampleInterval(a_window())))                      \
    X(GetMembershipSampleInterval, 1, more.GetMembershipSampleInterval() > 0)                                  \
    X(SetLeaderAliveThreshold, 1, code(more.SetLeaderAliveThreshold(a_window())))                              \
    X(GetLeaderAliveThreshold, 1, more.GetLeaderAliveThreshold() > 0)                                          \
    X(SetLeaderElectionDuration, 1, code(more.SetLeaderElectionDuration(a_window())))                          \
    X(GetLeaderElectionDuration, 1, more.GetLeaderElectionDuration() > 0)                                      \
    X(GetMsgExpirationTimeout, 1, more.GetMsgExpirationTimeout() > 0)                                          \
    X(GetLeadershipDeclarationInterval, 1, more.GetLeadershipDeclarationInterval() > 0)                        \
    ROOM_CALLS(X)

#define CALL(name, weight, expression) \
    static int call_##name(void) { return (expression); }
CALLS(CALL)
#undef CALL

static struct call {
    const char *name;
    unsigned weight;
    int (*call)(void);
    atomic_llong calls, accepted, longest_ms;
} calls[] = {
#define CALL(name, weight, expression) {#name, weight, call_##name, 0, 0, 0},
    CALLS(CALL)
#undef CALL
};
enum { CALL_COUNT = sizeof calls / sizeof *calls };
static unsigned all_weights;

static void resolve(void *library)
{
#define RESOLVE(result, name, parameters)         \
    *(void **)&more.name = dlsym(library, #name); \
    if (!more.name) fail("the library has no function " #name);
    MMN_FUNCTIONS(RESOLVE)
    MMN_CLASSIC_FUNCTIONS(RESOLVE)
#undef RESOLVE
    for (int i = 0; i < CALL_COUNT; i++) all_weights += calls[i].weight;
}

static struct call *any_call(void)
{
    unsigned at = below(all_weights);
    for (int i = 0;; i++) {
        if (at < calls[i].weight) return &calls[i];
        at -= calls[i].weight;
    }
}

static void call_something(void)
{
    struct call *chosen = any_call();
    int64_t start = now_ms();
    const char *outer = atomic_load(&self->in);
    atomic_store(&self->since_ms, start);
    atomic_store(&self->in, chosen->name);
    int accepted = chosen->call();
    atomic_store(&self->in, outer);
    atomic_store(&self->since_ms, now_ms());
    if (accepted < 0) return;
    int64_t took = now_ms() - start;
    atomic_fetch_add(&chosen->calls, 1);
    if (accepted) atomic_fetch_add(&chosen->accepted, 1);
    long long longest = atomic_load(&chosen->longest_ms);
    while (took > longest && !atomic_compare_exchange_weak(&chosen->longest_ms, &longest, took)) continue;
}

/* ------------------------------------------------------------------ the run */

static atomic_int stop;

static void *worker_main(void *index)
{
    self = &workers[(intptr_t)index];
    chance_state = seed * 0x9e3779b97f4a7c15u + (uint64_t)(intptr_t)index + 1;
    while (!atomic_load(&stop)) {
        call_something();
        /* Without it, eight threads leave the library's own two no processor time on a small machine. */
        if (one_in(32)) nap_ms(1);
    }
    return NULL;
}

static void watch(void)
{
    for (int i = 0; i <= THREADS; i++) {
        const char *in = atomic_load(&workers[i].in);
        if (in && now_ms() - atomic_load(&workers[i].since_ms) > STUCK_SECONDS * 1000)
            fail("thread %d is in %s for more than %d s", i, in, STUCK_SECONDS);
    }
}

static void chaos(int seconds)
{
    pthread_t threads[THREADS];
    atomic_store(&stop, 0);
    /* At least one room in poll mode; later rooms are random. */
    if (!opened(enter(OWN[0], session, MMN_DISPATCH_POLL))) fail("no room: %s", net.GetLastErrorMessage());
    /* With a partner in the room before the calls begin: on a busy machine they leave it little time to join. */
    int64_t deadline = now_ms() + EVENT_SECONDS * 1000;
    while (!atomic_load(&joins)) {
        if (now_ms() > deadline) fail("no member joined the first room");
        more.mmn_poll(more.mmn_default_room(), 100);
        nap_ms(5);
    }
    atomic_store(&close_at_ms, now_ms() + CLOSE_EVERY_MS);
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, worker_main, (void *)i) != 0) fail("pthread_create");
    int64_t start = now_ms(), next_kill = start + KILL_EVERY_MS;
    while (now_ms() < start + seconds * 1000) {
        if (now_ms() >= next_kill) {
            end_partner(1, SIGKILL);
            start_partner(1);
            next_kill = now_ms() + KILL_EVERY_MS;
        }
        watch();
        nap_ms(20);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += STUCK_SECONDS;
        if (pthread_timedjoin_np(threads[i], NULL, &until) != 0) {
            const char *in = atomic_load(&workers[i].in);
            fail("thread %d does not come back from %s", i, in ? in : "nothing");
        }
    }
    close_rooms();
    int32_t answer = net.ShutdownNetwork();
    if (answer != 0 && answer != -1) fail("the last ShutdownNetwork answered %d", (int)answer);
    net.EnableLogging(0);
    drop_all();
}

struct usage {
    long rss_kib, threads, descriptors;
};

static struct usage usage(void)
{
    struct usage usage = {0, 0, 0};
    char line[256];
    malloc_trim(0);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "VmRSS: %ld", &usage.rss_kib);
        sscanf(line, "Threads: %ld", &usage.threads);
    }
    if (status) fclose(status);
    DIR *descriptors = opendir("/proc/self/fd");
    while (descriptors && readdir(descriptors)) usage.descriptors++;
    if (descriptors) closedir(descriptors);
    return usage;
}

static void compare(struct usage before, struct usage after)
{
    /* The kernel counts a joined thread until it has reaped it. */
    for (int tries = 0; after.threads > before.threads && tries < 500; tries++) {
        nap_ms(10);
        after.threads = usage().threads;
    }
    printf("memory %+ld KiB (allowed %d), threads %+ld, descriptors %+ld\n", after.rss_kib - before.rss_kib, ALLOWED_GROWTH_KIB,
           after.threads - before.threads, after.descriptors - before.descriptors);
    if (after.threads > before.threads) fail("threads: %ld, then %ld", before.threads, after.threads);
    if (after.descriptors != before.descriptors) fail("descriptors: %ld, then %ld", before.descriptors, after.descriptors);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer keeps freed memory for a while and looks for leaks itself */
    if (after.rss_kib - before.rss_kib > ALLOWED_GROWTH_KIB) fail("memory grew from %ld to %ld KiB", before.rss_kib, after.rss_kib);
#endif
}

/* After the run, a fresh room works as usual. */
static void use_once_more(void)
{
    for (int i = 0; i < 2; i++) end_partner(i, 0);
    strcat(session, "-afterwards");
    atomic_store(&address_count, 0);
    start_partner(0);
    if (enter("afterwards", session, MMN_DISPATCH_THREAD) != 0) fail("no new room: %s", net.GetLastErrorMessage());
    if (net.ConnectToPeer(addresses[0]) != 0) fail("no dial: %s", net.GetLastErrorMessage());
    int64_t deadline = now_ms() + EVENT_SECONDS * 1000;
    while (net.GetPeerCount() != 1 || !*net.GetCurrentLeader()) {
        if (now_ms() > deadline) fail("a fresh room has %d peers and the leader \"%s\"", (int)net.GetPeerCount(), net.GetCurrentLeader());
        nap_ms(5);
    }
    if (net.ShutdownNetwork() != 0) fail("the fresh room does not close: %s", net.GetLastErrorMessage());
    end_partner(0, 0);
}

static void print_table(void)
{
    printf("%-34s %10s %10s %11s\n", "function", "calls", "accepted", "longest ms");
    for (int i = 0; i < CALL_COUNT; i++) {
        printf("%-34s %10lld %10lld %11lld\n", calls[i].name, atomic_load(&calls[i].calls), atomic_load(&calls[i].accepted),
               atomic_load(&calls[i].longest_ms));
    }
    printf("callbacks: %lld messages, %lld joins, %lld losses, %lld leaders, %lld dials, %lld reconnects, %lld events, %lld lines of log; %lld calls inside\n",
           atomic_load(&messages), atomic_load(&joins), atomic_load(&losses), atomic_load(&leaders), atomic_load(&results),
           atomic_load(&reconnects), atomic_load(&events), atomic_load(&log_lines), atomic_load(&inside));
    printf("dials by their code:");
    for (int i = 0; i <= -LAST_CODE; i++)
        if (atomic_load(&results_of[i])) printf(" %d: %lld", -i, atomic_load(&results_of[i]));
    putchar('\n');
    printf("rooms beside the default one: %lld\n", atomic_load(&opened_rooms));
    printf("poll mode: %lld rooms, %lld events; gossip: %lld rooms; seeded: %lld rooms\n", atomic_load(&polled_rooms),
           atomic_load(&polled), atomic_load(&gossip_rooms), atomic_load(&seeded_rooms));
    fflush(stdout);
}

/* Fails a run that reached too little. */
static void must_have_happened(void)
{
    for (int i = 0; i < CALL_COUNT; i++)
        if (!atomic_load(&calls[i].calls)) fail("%s was never called", calls[i].name);
    if (!atomic_load(&messages) || !atomic_load(&joins) || !atomic_load(&leaders) || !atomic_load(&results) || !atomic_load(&inside))
        fail("a kind of callback never ran");
    if (!atomic_load(&polled)) fail("nothing was polled");
    if (!atomic_load(&opened_rooms)) fail("no room beside the default one");
    if (getenv(GOSSIP) && !atomic_load(&gossip_rooms)) fail("no room elected by gossip");
}

int main(int argc, char **argv)
{
    int seconds = 5;
    signal(SIGPIPE, SIG_IGN);
    seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    if (argc == 5 && strcmp(argv[1], "--partner") == 0) return partner_main(argv[2], argv[3], argv[4]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            for (int j = 0; j < CALL_COUNT; j++) printf("%s\n", calls[j].name);
            return 0;
        }
        if (strcmp(argv[i], "--gossip") == 0) setenv(GOSSIP, "1", 1);
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) seconds = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[++i], NULL, 10);
        else return fprintf(stderr, "usage: chaos [--gossip] [--seconds N] [--seed N] [--list]\n"), 2;
    }
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    /* One arena: with one per thread the C library's caches would hide a leak, or look like one. */
    mallopt(M_ARENA_MAX, 1);
    prepare();
    resolve(load_classic());
    make_states();

    error_output = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(WARM_UP_SECONDS + seconds + 3 * STUCK_SECONDS + EVENT_SECONDS));

    snprintf(session, sizeof session, "chaos-%d-房间", (int)getpid());
    start_partner(0);
    start_partner(1);
    chaos(WARM_UP_SECONDS);
    struct usage before = usage();
    chaos(seconds);
    struct usage after = usage();
    print_table();
    compare(before, after);
    must_have_happened();
    use_once_more();
    remove_states();
    free(bytes);
    printf("ok\n");
    return 0;
}
