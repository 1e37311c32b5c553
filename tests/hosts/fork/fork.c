/*
 * Promises to a host that forks while it has two rooms, the default one and another. Prints "ok NAME" per promise and exits with 0 only when all
 * were kept.
 *
 *   gcc -std=gnu11 -O1 -g -pthread -Iinclude tests/hosts/fork/fork.c -o fork -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./fork [--forks N] [NAME...]
 *
 * NAME: child, hammer, own, port, state, killed, prefork, poll, thread, log, unload (default: all). --forks: how often `hammer`
 * forks (200). Each runs in a process of its own, which loads the library.
 */
#include <meta_mystia_network.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TYPE = 0x0100,
    EVENT_SECONDS = 20, /* timeout of an event that must come */
    CHILD_SECONDS = 20, /* timeout of a forked child with little to do; a child that hangs is killed then */
    TEST_SECONDS = 110, /* timeout of one test */
    CHILDREN = 4,       /* of a server that forks beforehand */
};

static struct {
#define MEMBER(result, name, parameters) result (*name) parameters;
    MMN_FUNCTIONS(MEMBER)
    MMN_CLASSIC_FUNCTIONS(MEMBER)
#undef MEMBER
} net;

static void *library;
static const char *library_path;
static const char *running_test = "start";
static int forks = 200;

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int line, const char *format, ...)
{
    va_list arguments;
    dprintf(2, "FAILED %s, process %d, line %d: ", running_test, (int)getpid(), line);
    va_start(arguments, format);
    vdprintf(2, format, arguments);
    va_end(arguments);
    dprintf(2, "\n");
    /* Not exit(): this may run in any process and thread. */
    _exit(1);
}

#define MUST(condition)                                                                    \
    do {                                                                                   \
        if (!(condition))                                                                  \
            fail(__LINE__, "%s does not hold; last error: %s", #condition,                 \
                 net.GetLastErrorMessage ? net.GetLastErrorMessage() : "none");            \
    } while (0)

#define ANSWERS(expected, call)                                                            \
    do {                                                                                   \
        long answer_ = (long)(call);                                                       \
        if (answer_ != (long)(expected))                                                   \
            fail(__LINE__, "%s is %ld and not %s", #call, answer_, #expected);             \
    } while (0)

static void load(void)
{
    library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(__LINE__, "%s", dlerror());
#define RESOLVE(result, name, parameters)        \
    *(void **)&net.name = dlsym(library, #name); \
    if (!net.name) fail(__LINE__, "the library has no function " #name);
    MMN_FUNCTIONS(RESOLVE)
    MMN_CLASSIC_FUNCTIONS(RESOLVE)
#undef RESOLVE
}

static void nap_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

#define UNTIL(condition)                                                                   \
    for (int waited_ = 0; !(condition); waited_ += 2) {                                    \
        if (waited_ > EVENT_SECONDS * 1000)                                                \
            fail(__LINE__, "%s is not so within %d s", #condition, EVENT_SECONDS);         \
        nap_ms(2);                                                                         \
    }

static MmnOptions quiet(void)
{
    MmnOptions options = {.struct_size = sizeof options};
    ANSWERS(0, net.mmn_default_options(&options));
    options.is_default = 1;
    options.bind_address = "127.0.0.1";
    return options;
}

/* The rooms that this process has opened, or its parent if it has none: the default one, and another. */
static MmnRoom rooms[2];
/* A browser that this process has opened, or its parent if it has none. */
static MmnBrowser browser;
/* Messages that each has received. */
static _Atomic long received[2];

static int32_t open_default(const char *peer, const MmnOptions *options) { return net.mmn_open(peer, running_test, options, &rooms[0]); }

static void count_message(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    if (event->kind == MMN_EVENT_MESSAGE) atomic_fetch_add(&received[1], 1);
}

static void open_rooms(const char *peer)
{
    MmnOptions options = quiet();
    ANSWERS(0, open_default(peer, &options));
    MUST(net.mmn_default_room() == rooms[0]);
    options.is_default = 0;
    options.on_event = count_message;
    ANSWERS(0, net.mmn_open(peer, "another room", &options, &rooms[1]));
}

static void close_rooms(void)
{
    /* A child has opened none. */
    net.mmn_browse_close(browser);
    ANSWERS(0, net.mmn_leave(rooms[1]));
    ANSWERS(0, net.ShutdownNetwork());
    ANSWERS(0, net.mmn_close(rooms[1]));
}

/* In a forked child. The numbers of the parent's rooms name none, also when the child has rooms. */
static void open_own_rooms(const char *peer)
{
    MmnRoom parents[2] = {rooms[0], rooms[1]};
    open_rooms(peer);
    for (int of = 0; of < 2; of++) {
        MUST(rooms[of] != parents[0] && rooms[of] != parents[1] && net.mmn_is_open(rooms[of]));
        ANSWERS(0, net.mmn_is_open(parents[of]));
        ANSWERS(-1, net.mmn_close(parents[of]));
        ANSWERS(0, net.mmn_set_leader(rooms[of], peer));
    }
}

/* Waits for a process that must end with 0. */
#define ENDS_WELL(process)                                                                                        \
    do {                                                                                                          \
        int status_ = -1;                                                                                         \
        while (waitpid((process), &status_, 0) < 0 && errno == EINTR) {                                           \
        }                                                                                                         \
        if (status_ != 0)                                                                                         \
            fail(__LINE__, "a child ended with status %d, by signal %d", WEXITSTATUS(status_), WTERMSIG(status_)); \
    } while (0)

/* The parent notices a forked child that hangs or crashes. */
static pid_t fork_child(void)
{
    pid_t process = fork();
    MUST(process >= 0);
    if (process == 0) alarm(CHILD_SECONDS);
    return process;
}

static int descriptors(const char *kind)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300], target[300] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0 && strstr(target, kind)) count++;
    }
    if (folder) closedir(folder);
    return count;
}

/* ------------------------------------------------------------------ answers in a child */

static void ignore_event(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    (void)event;
}

static void ignore_room(void *user_data, const MmnListedRoom *room)
{
    (void)user_data;
    (void)room;
}

static void never_dropped(void *user_data)
{
    /* The parent's drop_fn runs in the parent alone. */
    if (*(pid_t *)user_data != getpid()) fail(__LINE__, "drop_fn ran in the child");
}

static void ignore_log(void *user_data, uint64_t room, int32_t level, const char *text)
{
    (void)room;
    (void)level;
    (void)text;
    if (*(pid_t *)user_data != getpid()) fail(__LINE__, "the parent's log callback ran in the child");
}

static pid_t loader; /* the process that registered */

/* The number of a room that is none of this process. */
static void is_no_room(MmnRoom room)
{
    const uint8_t data[3] = {1, 2, 3};
    MmnPeerStats stats = {.struct_size = sizeof stats};
    MmnRoomStats room_stats = {.struct_size = sizeof room_stats};
    MmnGossipWindows windows = {.struct_size = sizeof windows};
    uint64_t request;
    ANSWERS(0, net.mmn_is_open(room));
    ANSWERS(-1, net.mmn_set_leader(room, "a"));
    ANSWERS(-1, net.mmn_last_error_code());
    ANSWERS(-1, net.mmn_accept_join(room, 1));
    ANSWERS(-1, net.mmn_accept_transfer(room, "a", 1, NULL, 0));
    ANSWERS(-1, net.mmn_accept_transfer_in_parts(room, "a", 1));
    ANSWERS(-1, net.mmn_acquire_lock(room, "a", 1, &request));
    ANSWERS(0, net.mmn_auto_forward(room));
    ANSWERS(0, net.mmn_auto_reconnect(room));
    ANSWERS(-1, net.mmn_broadcast(room, data, 3, TYPE, NULL));
    ANSWERS(-1, net.mmn_broadcast_as_leader(room, data, 3, TYPE, NULL));
    ANSWERS(-1, net.mmn_cancel_transfer(room, "a", 1));
    ANSWERS(0, net.mmn_centralized(room));
    ANSWERS(-1, net.mmn_close(room));
    ANSWERS(-1, net.mmn_cluster_version(room));
    ANSWERS(-1, net.mmn_connect(room, "127.0.0.1:1"));
    ANSWERS(-1, net.mmn_disconnect(room, "a", 0, NULL, 0));
    ANSWERS(-1, net.mmn_fencing_token(room));
    ANSWERS(-1, net.mmn_forward(room, "a", NULL, data, 3, TYPE, NULL));
    ANSWERS(-1, net.mmn_gossip_windows(room, &windows));
    ANSWERS(0, net.mmn_is_announced(room));
    ANSWERS(0, net.mmn_is_leader(room));
    ANSWERS(-1, net.mmn_kick(room, "a", MMN_KICK_BAN, 0, NULL, 0));
    ANSWERS(-1, net.mmn_leader_epoch(room));
    ANSWERS(-1, net.mmn_leader_term(room));
    ANSWERS(-1, net.mmn_leave(room));
    ANSWERS(-1, net.mmn_max_datagram_size(room, NULL));
    ANSWERS(-1, net.mmn_member_state(room, "a"));
    ANSWERS(-1, net.mmn_peer_count(room));
    ANSWERS(0, net.mmn_peer_index(room, "a"));
    ANSWERS(-1, net.mmn_peer_path(room, "a"));
    ANSWERS(-1, net.mmn_peer_rtt_ms(room, "a"));
    ANSWERS(-1, net.mmn_peer_stats(room, "a", &stats));
    ANSWERS(-1, net.mmn_peer_status(room, "a"));
    ANSWERS(-1, net.mmn_poll(room, 1));
    ANSWERS(-1, net.mmn_proclaim(room, "a"));
    ANSWERS(-1, net.mmn_reject_join(room, 1, 0, NULL, 0));
    ANSWERS(-1, net.mmn_release_lock(room, "a"));
    ANSWERS(-1, net.mmn_room_stats(room, &room_stats));
    ANSWERS(-1, net.mmn_room_time_ms(room));
    ANSWERS(-1, net.mmn_send(room, "a", data, 3, TYPE, NULL));
    ANSWERS(-1, net.mmn_send_transfer(room, "a", data, 3, NULL, 0, NULL));
    ANSWERS(-1, net.mmn_send_to_leader(room, data, 3, TYPE, NULL));
    ANSWERS(-1, net.mmn_set_auto_election(room, 1));
    ANSWERS(-1, net.mmn_set_auto_forward(room, 1));
    ANSWERS(-1, net.mmn_set_auto_reconnect(room, 1));
    ANSWERS(-1, net.mmn_set_centralized(room, 1));
    ANSWERS(-1, net.mmn_set_compression_threshold(room, 1));
    ANSWERS(-1, net.mmn_set_eligible(room, 1));
    ANSWERS(-1, net.mmn_set_event_handler(room, ignore_event, NULL, NULL));
    ANSWERS(-1, net.mmn_set_join_payload(room, NULL, 0));
    ANSWERS(-1, net.mmn_set_join_requests(room, 1));
    ANSWERS(-1, net.mmn_set_max_peers(room, 1));
    ANSWERS(-1, net.mmn_set_priority(room, 1));
    MmnCard card = {.struct_size = sizeof card, .game = "a", .name = "a"};
    ANSWERS(-1, net.mmn_show_card(room, &card));
    ANSWERS(-1, net.mmn_simulate_network(room, 1, 0, 0));
    ANSWERS(-1, net.mmn_strategy(room));
    ANSWERS(-1, net.mmn_take_messages(room));
    ANSWERS(-1, net.mmn_transfer_leadership(room, "a"));
    ANSWERS(-1, net.mmn_try_lock(room, "a", &request));
    ANSWERS(-1, net.mmn_unban(room, "a"));
    ANSWERS(-1, net.mmn_yield_leadership(room));
    MUST(!net.mmn_local_address(room) && !net.mmn_local_addresses(room) && !net.mmn_local_id(room) && !net.mmn_session_id(room));
    MUST(!net.mmn_peers(room) && !net.mmn_members(room) && !net.mmn_leader(room) && !net.mmn_local_fingerprint(room));
    MUST(!net.mmn_peer_address(room, "a") && !net.mmn_peer_fingerprint(room, "a") && !net.mmn_peer_id(room, 1));
    MUST(!net.mmn_peer_carrier(room, "a") && !net.mmn_public_address(room));
}

static void answers_as_before_initialization(void)
{
    const uint8_t data[3] = {1, 2, 3};
    is_no_room(rooms[0]);
    is_no_room(rooms[1]);
    is_no_room(0);
    ANSWERS(-1, net.mmn_browse_poll(browser, 1));
    ANSWERS(-1, net.mmn_browse_close(browser));
    ANSWERS(0, net.mmn_default_room());
    ANSWERS(0, net.IsNetworkInitialized());
    ANSWERS(-1, net.BroadcastMessage(data, 3, TYPE, 0));
    ANSWERS(-1, net.GetLastErrorCode());
    ANSWERS(-1, net.ConnectToPeer("127.0.0.1:1"));
    ANSWERS(-1, net.DisconnectPeer("a"));
    ANSWERS(-1, net.EnableAutoLeaderElection(1));
    ANSWERS(-1, net.ForwardMessage("a", NULL, data, 3, TYPE, 0));
    ANSWERS(-1, net.GetPeerCount());
    ANSWERS(-1, net.GetPeerRTT("a"));
    ANSWERS(-1, net.GetPeerStatus("a"));
    ANSWERS(0, net.IsAutoReconnectEnabled());
    ANSWERS(0, net.IsCentralizedAutoForward());
    ANSWERS(0, net.IsCentralizedMode());
    ANSWERS(0, net.IsLeader());
    ANSWERS(0, net.IsMdnsActive());
    ANSWERS(-1, net.RegisterConnectionResultCallback(NULL));
    ANSWERS(-1, net.RegisterLeaderChangedCallback(NULL));
    ANSWERS(-1, net.RegisterPeerStatusCallback(NULL));
    ANSWERS(-1, net.RegisterReceiveCallback(NULL));
    ANSWERS(-1, net.RegisterReconnectCallback(NULL));
    ANSWERS(-1, net.SendFromLeader(data, 3, TYPE, 0));
    ANSWERS(-1, net.SendToLeader(data, 3, TYPE, 0));
    ANSWERS(-1, net.SendToPeer("a", data, 3, TYPE, 0));
    ANSWERS(-1, net.SetAutoReconnect(1));
    ANSWERS(-1, net.SetCentralizedAutoForward(1));
    ANSWERS(-1, net.SetCentralizedMode(1));
    ANSWERS(-1, net.SetCompressionThreshold(1));
    ANSWERS(-1, net.SetLeader("a"));
    MUST(!net.GetLocalAddr() && !net.GetLocalPeerId() && !net.GetSessionId() && !net.GetPeerList() && !net.GetCurrentLeader());
    uint8_t key[MMN_IDENTITY_KEY_BYTES];
    ANSWERS(MMN_IDENTITY_KEY_BYTES, net.mmn_generate_identity_key(key, sizeof key));
    ANSWERS(-1, net.ShutdownNetwork());
    ANSWERS(0, net.mmn_set_log(MMN_LOG_TRACE, NULL, NULL, NULL));
    ANSWERS(0, net.mmn_set_log_stderr(MMN_LOG_ERROR));
    ANSWERS(0, net.EnableLogging(0));
    ANSWERS(0, net.SetLeaderAliveThreshold(10000));
    ANSWERS(10000, net.GetLeaderAliveThreshold());
}

/* As a static destructor of a C++ program would. */
static void shut_down_at_exit(void)
{
    if (net.ShutdownNetwork && net.ShutdownNetwork() != (loader == getpid() ? MMN_OK : MMN_NOT_INITIALIZED)) _exit(9);
}

/* ------------------------------------------------------------------ rooms with traffic */

static _Atomic int stop_calling;

static void on_message(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)peer, (void)data, (void)length, (void)type, (void)flags;
    atomic_fetch_add(&received[0], 1);
}

/* A member of both rooms in a process of its own, which is not forked while it has them; it talks until its end of the pipe is
 * closed. */
struct partner {
    pid_t process;
    int leash;
    char addresses[2][64];
};

static struct partner start_partner(void)
{
    int leash[2], address[2];
    MUST(pipe(leash) == 0 && pipe(address) == 0);
    struct partner partner = {.process = fork(), .leash = leash[1]};
    if (partner.process == 0) {
        close(leash[1]);
        load();
        open_rooms("partner");
        ANSWERS(0, net.RegisterReceiveCallback(on_message));
        for (int of = 0; of < 2; of++) dprintf(address[1], "%s\n", net.mmn_local_address(rooms[of]));
        close(address[1]);
        struct timeval moment = {0, 1000};
        for (;;) {
            fd_set readable;
            FD_ZERO(&readable);
            FD_SET(leash[0], &readable);
            moment.tv_usec = 1000;
            if (select(leash[0] + 1, &readable, NULL, NULL, &moment) == 1) _exit(0);
            for (int of = 0; of < 2; of++) net.mmn_broadcast(rooms[of], (const uint8_t *)"talk", 4, TYPE, NULL);
        }
    }
    close(leash[0]);
    close(address[1]);
    FILE *lines = fdopen(address[0], "r");
    MUST(lines && fscanf(lines, "%63s %63s", partner.addresses[0], partner.addresses[1]) == 2);
    fclose(lines);
    return partner;
}

/* The rooms of this process, with the partner in them and incoming messages. */
static void meet(const struct partner *partner)
{
    loader = getpid();
    load();
    open_rooms("main");
    MmnBrowseOptions browse = {.struct_size = sizeof browse, .game = "fork", .on_room = ignore_room};
    ANSWERS(0, net.mmn_browse_open(&browse, &browser));
    ANSWERS(0, net.RegisterReceiveCallback(on_message));
    for (int of = 0; of < 2; of++) {
        ANSWERS(0, net.mmn_connect(rooms[of], partner->addresses[of]));
        UNTIL(net.mmn_peer_count(rooms[of]) == 1 && atomic_load(&received[of]) > 20);
    }
}

static void goes_on(void)
{
    for (int of = 0; of < 2; of++) {
        long before = atomic_load(&received[of]);
        ANSWERS(1, net.mmn_peer_count(rooms[of]));
        UNTIL(atomic_load(&received[of]) > before + 20);
    }
}

static void *call_everything(void *which)
{
    uint8_t data[512] = {0};
    for (unsigned turn = (unsigned)(uintptr_t)which; !atomic_load(&stop_calling); turn++) {
        switch (turn % 11) {
        case 0: net.BroadcastMessage(data, sizeof data, TYPE, 0); break;
        case 1: net.SetLeader(turn % 2 ? "main" : "partner"); break;
        case 2: net.RegisterReceiveCallback(on_message); break;
        case 3: net.mmn_set_event_handler(rooms[0], turn % 2 ? ignore_event : NULL, &loader, never_dropped); break;
        case 4: net.mmn_set_log(MMN_LOG_TRACE, turn % 2 ? ignore_log : NULL, &loader, never_dropped); break;
        case 5: net.SetLeaderAliveThreshold(10000); break;
        case 6: net.SendToPeer("partner", data, 100, TYPE, 0); break;
        case 7: net.GetPeerList(); break;
        case 8: net.mmn_set_log_stderr(turn % 3 ? MMN_LOG_ERROR : MMN_LOG_WARN); break;
        case 9: net.mmn_broadcast(rooms[1], data, sizeof data, TYPE, NULL); break;
        case 10: net.mmn_members(rooms[1]); break;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ the tests */

/* Forked during traffic; the child ends normally and runs its exit handlers. */
static void test_child(void)
{
    struct partner partner = start_partner();
    atexit(shut_down_at_exit);
    meet(&partner);
    net.mmn_set_event_handler(rooms[0], ignore_event, &loader, never_dropped);
    net.mmn_set_log(MMN_LOG_TRACE, ignore_log, &loader, never_dropped);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork_child();
        if (child == 0) {
            MUST(browser != 0);
            answers_as_before_initialization();
            exit(0);
        }
        ENDS_WELL(child);
        goes_on();
    }
    close(partner.leash);
    exit(0);
}

static void *fork_often(void *unused)
{
    (void)unused;
    for (int round = 0; round < forks; round++) {
        pid_t child = fork_child();
        if (child == 0) {
            answers_as_before_initialization();
            if (round % 20 == 0) {
                open_own_rooms("child");
                close_rooms();
            }
            _exit(0);
        }
        ENDS_WELL(child);
    }
    return NULL;
}

/* One thread forks while others call in: each lock is held at some fork. */
static void test_hammer(void)
{
    struct partner partner = start_partner();
    meet(&partner);
    net.mmn_set_log_stderr(MMN_LOG_ERROR);
    pthread_t callers[3], forker;
    for (uintptr_t which = 0; which < 3; which++)
        MUST(pthread_create(&callers[which], NULL, call_everything, (void *)(which * 3)) == 0);
    MUST(pthread_create(&forker, NULL, fork_often, NULL) == 0);
    pthread_join(forker, NULL);
    atomic_store(&stop_calling, 1);
    for (int which = 0; which < 3; which++) pthread_join(callers[which], NULL);
    goes_on();
    close_rooms();
    _exit(0);
}

/* A child opens rooms of its own and joins its parent's; so does its child. It inherits the settings of the process. */
static void test_own(void)
{
    struct partner partner = start_partner();
    meet(&partner);
    ANSWERS(0, net.SetLeaderAliveThreshold(4321));
    pid_t child = fork_child();
    if (child == 0) {
        ANSWERS(4321, net.GetLeaderAliveThreshold());
        open_own_rooms("child");
        for (int of = 0; of < 2; of++) ANSWERS(0, net.mmn_connect(rooms[of], partner.addresses[of]));
        for (int of = 0; of < 2; of++) UNTIL(net.mmn_peer_count(rooms[of]) == 2);
        pid_t grandchild = fork_child();
        if (grandchild == 0) {
            answers_as_before_initialization();
            open_own_rooms("grandchild");
            for (int of = 0; of < 2; of++) ANSWERS(0, net.mmn_connect(rooms[of], partner.addresses[of]));
            for (int of = 0; of < 2; of++) UNTIL(net.mmn_peer_count(rooms[of]) == 3);
            close_rooms();
            exit(0);
        }
        ENDS_WELL(grandchild);
        for (int of = 0; of < 2; of++) ANSWERS(0, net.mmn_broadcast(rooms[of], (const uint8_t *)"x", 1, TYPE, NULL));
        close_rooms();
        exit(0);
    }
    ENDS_WELL(child);
    goes_on();
    close_rooms();
    _exit(0);
}

/* An idle child keeps neither the parent's port nor its files open. */
static void test_port(void)
{
    load();
    MmnOptions options = quiet();
    char trace[] = "/tmp/mmn-fork-trace-XXXXXX";
    MUST(close(mkstemp(trace)) == 0);
    options.trace_path = trace;
    ANSWERS(0, open_default("main", &options));
    const char *port_text = strrchr(net.GetLocalAddr(), ':');
    MUST(port_text);
    int port = atoi(port_text + 1);
    int before[2], after[2];
    MUST(pipe(before) == 0 && pipe(after) == 0);
    pid_t child = fork_child();
    if (child == 0) {
        close(before[1]);
        char byte = 0;
        MUST(write(after[1], &byte, 1) == 1);
        MUST(read(before[0], &byte, 1) == 0);
        ANSWERS(0, descriptors("socket:"));
        ANSWERS(0, descriptors("mmn-fork-trace"));
        _exit(0);
    }
    ANSWERS(0, net.ShutdownNetwork());
    /* The child runs: on a busy machine the parent may be faster than the start of the child. */
    char started;
    MUST(read(after[0], &started, 1) == 1);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(udp, (struct sockaddr *)&address, sizeof address) != 0)
        fail(__LINE__, "the child holds the parent's port: %s", strerror(errno));
    /* Other descriptors that reuse the old numbers are not the library's: the next child keeps them. */
    int files[8];
    for (int file = 0; file < 8; file++) files[file] = dup(udp);
    pid_t next = fork_child();
    if (next == 0) {
        for (int file = 0; file < 8; file++) {
            struct stat found;
            MUST(fstat(files[file], &found) == 0);
        }
        _exit(0);
    }
    ENDS_WELL(next);
    close(before[1]);
    ENDS_WELL(child);
    unlink(trace);
    _exit(0);
}

static char state_directory[] = "/tmp/mmn-fork-state-XXXXXX";

static int open_with_state(void)
{
    MmnOptions options = quiet();
    options.quorum_policy = MMN_QUORUM_STATIC;
    options.quorum_roster = "main\nb\nc";
    options.state_directory = state_directory;
    return open_default("main", &options);
}

static void remove_state(void)
{
    DIR *folder = opendir(state_directory);
    for (struct dirent *entry; folder && (entry = readdir(folder));) unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder) closedir(folder);
    rmdir(state_directory);
}

/* An idle child does not keep the parent's state file locked. */
static void test_state(void)
{
    load();
    MUST(mkdtemp(state_directory));
    ANSWERS(0, open_with_state());
    int leash[2];
    MUST(pipe(leash) == 0);
    pid_t child = fork_child();
    if (child == 0) {
        close(leash[1]);
        char byte;
        /* The parent holds the lock while it has its room. */
        ANSWERS(MMN_DUPLICATE_PEER_ID, open_with_state());
        MUST(read(leash[0], &byte, 1) == 0);
        _exit(0);
    }
    nap_ms(200);
    ANSWERS(0, net.ShutdownNetwork());
    ANSWERS(0, open_with_state());
    ANSWERS(0, net.ShutdownNetwork());
    close(leash[1]);
    ENDS_WELL(child);
    remove_state();
    _exit(0);
}

/* Nor after the parent was killed. */
static void test_killed(void)
{
    MUST(mkdtemp(state_directory));
    int ready[2], leash[2];
    MUST(pipe(ready) == 0 && pipe(leash) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        load();
        ANSWERS(0, open_with_state());
        pid_t child = fork_child();
        if (child == 0) {
            close(leash[1]);
            /* It runs, and so it has let go of the parent's files. */
            (void)!write(ready[1], "x", 1);
            close(ready[1]);
            char byte;
            (void)!read(leash[0], &byte, 1);
            _exit(0);
        }
        for (;;) pause();
    }
    char byte;
    close(leash[0]);
    MUST(read(ready[0], &byte, 1) == 1);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    load();
    ANSWERS(0, open_with_state());
    ANSWERS(0, net.ShutdownNetwork());
    close(leash[1]);
    remove_state();
    _exit(0);
}

/* A server that initializes, forks its workers, and each joins. */
static void test_prefork(void)
{
    load();
    MmnOptions options = quiet();
    ANSWERS(0, open_default("main", &options));
    char address[64];
    snprintf(address, sizeof address, "%s", net.GetLocalAddr());
    int done[2];
    MUST(pipe(done) == 0);
    pid_t children[CHILDREN];
    for (int number = 0; number < CHILDREN; number++) {
        children[number] = fork();
        MUST(children[number] >= 0);
        if (children[number] == 0) {
            alarm(EVENT_SECONDS * 2);
            close(done[1]);
            char name[16];
            snprintf(name, sizeof name, "child-%d", number);
            ANSWERS(0, open_default(name, &options));
            ANSWERS(0, net.ConnectToPeer(address));
            UNTIL(net.GetPeerCount() == CHILDREN);
            UNTIL(net.GetCurrentLeader() && strlen(net.GetCurrentLeader()) > 0);
            char byte;
            MUST(read(done[0], &byte, 1) == 0);
            ANSWERS(0, net.ShutdownNetwork());
            exit(0);
        }
    }
    UNTIL(net.GetPeerCount() == CHILDREN);
    ANSWERS(0, net.BroadcastMessage((const uint8_t *)"x", 1, TYPE, 0));
    nap_ms(1000);
    ANSWERS(CHILDREN, net.GetPeerCount());
    close(done[1]);
    for (int number = 0; number < CHILDREN; number++) ENDS_WELL(children[number]);
    UNTIL(net.GetPeerCount() == 0);
    ANSWERS(0, net.ShutdownNetwork());
    _exit(0);
}

static pid_t forked_inside = -1;

static void fork_inside(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    if (event->kind != MMN_EVENT_MESSAGE || forked_inside != -1) return;
    forked_inside = fork_child();
    if (forked_inside == 0 && event->length == 1) {
        /* In the child no callback runs, although this one has not returned. */
        answers_as_before_initialization();
        open_own_rooms("child");
        close_rooms();
    }
}

/* Forked inside a handler that mmn_poll runs: the child returns from it. */
static void test_poll(void)
{
    load();
    loader = getpid();
    MmnOptions options = quiet();
    options.dispatch_mode = MMN_DISPATCH_POLL;
    options.on_event = fork_inside, options.user_data = &loader, options.drop_fn = never_dropped;
    ANSWERS(0, open_default("main", &options));
    ANSWERS(0, net.SendToPeer("main", (const uint8_t *)"x", 1, TYPE, 0));
    while (forked_inside == -1) {
        int32_t polled = net.mmn_poll(rooms[0], 100);
        if (forked_inside == 0) {
            ANSWERS(MMN_NOT_INITIALIZED, polled);
            answers_as_before_initialization();
            exit(0);
        }
        MUST(polled >= 0);
    }
    ENDS_WELL(forked_inside);
    ANSWERS(0, net.SendToPeer("main", (const uint8_t *)"x", 1, TYPE, 0));
    MUST(net.mmn_poll(rooms[0], 100) > 0);
    ANSWERS(0, net.ShutdownNetwork());
    _exit(0);
}

/* Forked inside a handler on the library's thread: the child ends when the handler returns. */
static void test_thread(void)
{
    load();
    loader = getpid();
    open_rooms("main");
    ANSWERS(0, net.mmn_set_event_handler(rooms[0], fork_inside, &loader, never_dropped));
    ANSWERS(0, net.SendToPeer("main", (const uint8_t *)"x", 1, TYPE, 0));
    UNTIL(*(volatile pid_t *)&forked_inside > 0);
    ENDS_WELL(forked_inside);
    ANSWERS(0, net.SendToPeer("main", (const uint8_t *)"x", 1, TYPE, 0));
    close_rooms();
    _exit(0);
}

static void fork_in_log(void *user_data, uint64_t room, int32_t level, const char *text)
{
    (void)user_data, (void)room, (void)level, (void)text;
    if (getpid() == loader && forked_inside == -1) forked_inside = fork_child();
}

/* The child inherits the log on standard error. A child that is forked inside a log callback ends when the callback returns. */
static void test_log(void)
{
    int lines[2];
    MUST(pipe(lines) == 0);
    loader = getpid();
    load();
    int error = dup(2);
    dup2(lines[1], 2);
    ANSWERS(0, net.EnableLogging(1));
    pid_t child = fork_child();
    if (child == 0) {
        open_own_rooms("child");
        close_rooms();
        _exit(0);
    }
    ENDS_WELL(child);
    dup2(error, 2);
    close(lines[1]);
    char text[4096];
    MUST(read(lines[0], text, sizeof text) > 0);
    ANSWERS(0, net.EnableLogging(0));
    ANSWERS(0, net.mmn_set_log(MMN_LOG_DEBUG, fork_in_log, NULL, NULL));
    open_rooms("main");
    ANSWERS(0, net.SetLeader("main"));
    UNTIL(*(volatile pid_t *)&forked_inside > 0);
    ENDS_WELL(forked_inside);
    close_rooms();
    ANSWERS(0, net.mmn_set_log(MMN_LOG_OFF, NULL, NULL, NULL));
    _exit(0);
}

static void *two_rooms(void *unused)
{
    (void)unused;
    open_rooms("main");
    close_rooms();
    return NULL;
}

static int is_mapped(void)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, "meta_mystia_network") != NULL;
    if (maps) fclose(maps);
    return found;
}

/* An unloaded library is not called when its process forks. */
static void test_unload(void)
{
    for (int round = 0; round < 3; round++) {
        /* A thread that has made a call keeps the library mapped until it ends. */
        pthread_t thread;
        load();
        MUST(pthread_create(&thread, NULL, two_rooms, NULL) == 0);
        pthread_join(thread, NULL);
        memset(&net, 0, sizeof net);
        MUST(dlclose(library) == 0);
        ANSWERS(0, is_mapped());
        pid_t child = fork_child();
        if (child == 0) exit(0);
        ENDS_WELL(child);
    }
    _exit(0);
}

static const struct {
    const char *name;
    void (*run)(void);
} TESTS[] = {
    {"child", test_child},     {"hammer", test_hammer}, {"own", test_own},       {"port", test_port},
    {"state", test_state},     {"killed", test_killed}, {"prefork", test_prefork}, {"poll", test_poll},
    {"thread", test_thread},   {"log", test_log},       {"unload", test_unload},
};

int main(int count, char **arguments)
{
    int first = 1, failed = 0;
    library_path = getenv("MMN_LIBRARY");
    if (!library_path) fail(__LINE__, "MMN_LIBRARY names no library");
    if (count > 2 && strcmp(arguments[1], "--forks") == 0) {
        forks = atoi(arguments[2]);
        first = 3;
    }
    for (size_t test = 0; test < sizeof TESTS / sizeof *TESTS; test++) {
        int wanted = first == count;
        for (int name = first; name < count; name++) wanted |= strcmp(arguments[name], TESTS[test].name) == 0;
        if (!wanted) continue;
        running_test = TESTS[test].name;
        pid_t process = fork();
        if (process == 0) {
            setpgid(0, 0);
            alarm(TEST_SECONDS);
            TESTS[test].run();
            _exit(1);
        }
        int status = -1;
        waitpid(process, &status, 0);
        /* A child or a partner that hangs must not outlive its test. */
        kill(-process, SIGKILL);
        if (status == 0) {
            printf("ok %s\n", running_test);
        } else {
            printf("FAILED %s: status %d, signal %d\n", running_test, WEXITSTATUS(status), WTERMSIG(status));
            failed = 1;
        }
        fflush(stdout);
    }
    return failed;
}
