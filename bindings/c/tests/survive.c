/*
 * Tests that a C host survives the usual actions of hosts. Shows each promise with real rooms over loopback and a second
 * process of this program as the partner. Prints "ok NAME" per promise and exits with 0 only when all hold.
 *
 *   gcc -std=c11 -O1 -g -pthread -Iinclude bindings/c/tests/survive.c -o survive -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./survive [--rounds N] [NAME...]
 *
 * NAME: unregister, shutdown, restart, reload, reentry, paths, ending (default: all). --rounds: number of shutdowns in `shutdown` (100).
 */
#define _GNU_SOURCE
#include <meta_mystia_network.h>

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TYPE = 0x0100,
    EVENT_SECONDS = 10,  /* limit for an event that must come */
    TEST_SECONDS = 55,   /* limit of one test; of `shutdown` per 100 rounds */
    UNREGISTER_ROUNDS = 200,
    RESTART_ROUNDS = 50,
    WARM_UP_ROUNDS = 50, /* until the allocator and the C library have allocated what they keep */
    /* Over 50 rounds: enough to find a leak of 20 KiB per room, and above the allocator's noise. */
    ALLOWED_GROWTH_KIB = 1024,
};

static struct {
#define MEMBER(result, name, parameters) result (*name) parameters;
    MMN_FUNCTIONS(MEMBER)
    MMN_CLASSIC_FUNCTIONS(MEMBER)
#undef MEMBER
} net;

static const char *library_path;
static char own_path[4096]; /* this program: under valgrind, running /proc/self/exe would run valgrind */
static char session[64];
static const char *volatile running_test = "start";

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "FAILED %s: ", running_test);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    fflush(NULL);
    /* Not exit(): this may be the library's thread, inside a call that broke its promise. */
    _exit(1);
}

#define MUST(condition)                                                                         \
    do {                                                                                        \
        if (!(condition)) fail("line %d: %s does not hold; last error: %s", __LINE__, #condition, \
                               net.GetLastErrorMessage());                                      \
    } while (0)

static void on_alarm(int signal_number)
{
    (void)signal_number;
    static const char text[] = "FAILED: a test took too long: ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, running_test, strlen(running_test));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(3);
}

static void *load(void)
{
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("%s", dlerror());
#define RESOLVE(result, name, parameters)        \
    *(void **)&net.name = dlsym(library, #name); \
    if (!net.name) fail("the library has no function " #name);
    MMN_FUNCTIONS(RESOLVE)
    MMN_CLASSIC_FUNCTIONS(RESOLVE)
#undef RESOLVE
    return library;
}

static void wait_event(sem_t *event)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += EVENT_SECONDS;
    while (sem_timedwait(event, &until) != 0)
        if (errno != EINTR) fail("no event within %d s", EVENT_SECONDS);
}

static void nap_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ------------------------------------------------------------------ the partner: this program in a second process */

struct partner {
    pid_t pid;
    int leash; /* closing it ends the partner */
    char address[128];
};

static void partner_ignore(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)peer, (void)data, (void)length, (void)type, (void)flags;
}

/* Ends the partner when its parent ends, for whatever reason. */
static void *partner_leash(void *unused)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    _exit(0);
    return unused;
}

static int partner_main(const char *room, int floods)
{
    load();
    pthread_t leash;
    pthread_create(&leash, NULL, partner_leash, NULL);
    MUST(net.InitializeNetwork("partner", room) == 0);
    MUST(net.RegisterReceiveCallback(partner_ignore) == 0);
    printf("%s\n", net.GetLocalAddr());
    fflush(stdout);
    uint8_t data[64] = {0};
    for (unsigned count = 0;; count++) {
        if (!floods) pause();
        /* The queues must stay full; pauses leave the machine usable for the tested side. */
        if (net.GetPeerCount() <= 0 || net.BroadcastMessage(data, sizeof data, TYPE, 0) != 0 || count % 32 == 0) nap_ms(1);
    }
}

static struct partner start_partner(int floods)
{
    struct partner partner;
    int to[2], from[2];
    static int number;
    snprintf(session, sizeof session, "survive-%d-%d", (int)getpid(), ++number);
    if (pipe(to) || pipe(from)) fail("pipe: %s", strerror(errno));
    partner.pid = fork();
    if (partner.pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execl(own_path, "survive", "--partner", session, floods ? "flood" : "quiet", (char *)NULL);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    partner.leash = to[1];
    FILE *lines = fdopen(from[0], "r");
    if (!lines || !fgets(partner.address, sizeof partner.address, lines)) fail("the partner did not start");
    partner.address[strcspn(partner.address, "\n")] = 0;
    fclose(lines);
    return partner;
}

static void stop_partner(struct partner *partner)
{
    close(partner->leash);
    waitpid(partner->pid, NULL, 0);
}

/* ------------------------------------------------------------------ unregister */

/* Two functions per kind of event take turns, so that an event that reaches the inactive one is noticed at once and
 * also much later. */
static atomic_int turn; /* 0 or 1: which of the two may run; -1: none */
static sem_t arrived;

static void ran(int which)
{
    if (atomic_load(&turn) != which) fail("a function ran after it was unregistered");
    sem_post(&arrived);
}

#define TWO(kind, parameters, ...)                                \
    static void kind##_0 parameters { __VA_ARGS__; ran(0); } \
    static void kind##_1 parameters { __VA_ARGS__; ran(1); }
TWO(receive, (const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags),
    (void)peer, (void)data, (void)length, (void)type, (void)flags)
TWO(leader, (const char *leader), (void)leader)
TWO(status, (const char *peer, int32_t status), (void)peer, (void)status)
TWO(result, (const char *address, uint8_t success, int32_t code), (void)address, (void)success, (void)code)

enum kind { RECEIVE, LEADER, STATUS, RESULT, KINDS };

static int32_t register_kind(enum kind kind, int which)
{
    switch (kind) {
    case RECEIVE: return net.RegisterReceiveCallback(which < 0 ? NULL : which ? receive_1 : receive_0);
    case LEADER: return net.RegisterLeaderChangedCallback(which < 0 ? NULL : which ? leader_1 : leader_0);
    case STATUS: return net.RegisterPeerStatusCallback(which < 0 ? NULL : which ? status_1 : status_0);
    default: return net.RegisterConnectionResultCallback(which < 0 ? NULL : which ? result_1 : result_0);
    }
}

static void wait_for_company(void)
{
    double deadline = now_seconds() + EVENT_SECONDS;
    while (net.GetPeerCount() < 1 || !*net.GetCurrentLeader()) {
        if (now_seconds() > deadline) fail("no partner or no leader within %d s", EVENT_SECONDS);
        nap_ms(1);
    }
}

static void test_unregister(void)
{
    load();
    struct partner partner = start_partner(1);
    MUST(net.InitializeNetwork("main", session) == 0);
    MUST(net.ConnectToPeer(partner.address) == 0);
    wait_for_company();
    for (enum kind kind = RECEIVE; kind < KINDS; kind++) {
        for (int round = 0; round < UNREGISTER_ROUNDS; round++) {
            while (sem_trywait(&arrived) == 0) continue;
            atomic_store(&turn, round % 2);
            MUST(register_kind(kind, round % 2) == 0);
            /* Messages arrive by themselves, and every new function receives leader and members; connection results need a call. */
            if (kind == RESULT) {
                MUST(net.ConnectToPeer(partner.address) == 0);
                MUST(net.ConnectToPeer(partner.address) == 0);
            }
            /* Every fourth round at once, else as soon as events arrive. */
            if (round % 4 != 3) wait_event(&arrived);
            MUST(register_kind(kind, -1) == 0);
            atomic_store(&turn, -1);
        }
    }
    MUST(net.ShutdownNetwork() == 0);
    stop_partner(&partner);
}

/* ------------------------------------------------------------------ shutdown */

static atomic_int room_is_open;
static sem_t flowing;
static atomic_int received;

static void must_be_open(void)
{
    if (!atomic_load(&room_is_open)) fail("a callback ran after ShutdownNetwork returned");
}

static void open_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)peer, (void)data, (void)length, (void)type, (void)flags;
    must_be_open();
    if (atomic_fetch_add(&received, 1) == 20) sem_post(&flowing);
}

static void open_leader(const char *leader)
{
    (void)leader;
    must_be_open();
}

static void open_status(const char *peer, int32_t status)
{
    (void)peer, (void)status;
    must_be_open();
}

static void open_result(const char *address, uint8_t success, int32_t code)
{
    (void)address, (void)success, (void)code;
    must_be_open();
}

static void test_shutdown(int rounds)
{
    load();
    struct partner partner = start_partner(1);
    uint8_t data[64] = {0};
    double longest = 0;
    for (int round = 0; round < rounds; round++) {
        char id[32];
        snprintf(id, sizeof id, "main-%d", round);
        atomic_store(&received, 0);
        atomic_store(&room_is_open, 1);
        MUST(net.InitializeNetwork(id, session) == 0);
        MUST(net.RegisterReceiveCallback(open_receive) == 0);
        MUST(net.RegisterLeaderChangedCallback(open_leader) == 0);
        MUST(net.RegisterPeerStatusCallback(open_status) == 0);
        MUST(net.RegisterConnectionResultCallback(open_result) == 0);
        MUST(net.ConnectToPeer(partner.address) == 0);
        wait_event(&flowing);
        for (int i = 0; i < 8; i++) MUST(net.BroadcastMessage(data, sizeof data, TYPE, 0) == 0);
        /* A connection result is on its way, too. */
        MUST(net.ConnectToPeer(partner.address) == 0);
        double start = now_seconds();
        MUST(net.ShutdownNetwork() == 0);
        atomic_store(&room_is_open, 0);
        double took = now_seconds() - start;
        if (took > longest) longest = took;
        /* Time for a late callback to show itself. */
        nap_ms(2);
        MUST(net.ShutdownNetwork() == -1);
    }
    stop_partner(&partner);
    printf("   %d shutdowns, the longest %.0f ms\n", rounds, longest * 1000);
}

/* ------------------------------------------------------------------ restart, reload */

struct usage {
    long rss_kib, threads, descriptors;
};

static struct usage usage(void)
{
    struct usage usage = {0, 0, 0};
    char line[256];
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
    /* The kernel counts a joined thread for a moment longer. */
    for (int tries = 0; after.threads > before.threads && tries < 500; tries++) {
        usleep(10 * 1000);
        after.threads = usage().threads;
    }
    printf("   memory %+ld KiB (allowed %d), threads %+ld, descriptors %+ld\n", after.rss_kib - before.rss_kib,
           ALLOWED_GROWTH_KIB, after.threads - before.threads, after.descriptors - before.descriptors);
#ifndef __SANITIZE_ADDRESS__ /* it keeps freed memory for a while, on purpose, and finds leaks itself */
    if (after.rss_kib - before.rss_kib > ALLOWED_GROWTH_KIB) fail("memory grew from %ld to %ld KiB", before.rss_kib, after.rss_kib);
#endif
    if (after.threads > before.threads) fail("threads grew from %ld to %ld", before.threads, after.threads);
    if (after.descriptors > before.descriptors) fail("descriptors grew from %ld to %ld", before.descriptors, after.descriptors);
}

static void test_restart(void)
{
    load();
    struct usage before = {0, 0, 0};
    atomic_store(&room_is_open, 1);
    for (int round = 0; round < WARM_UP_ROUNDS + RESTART_ROUNDS; round++) {
        if (round == WARM_UP_ROUNDS) before = usage();
        MUST(net.InitializeNetwork("main", "survive-alone") == 0);
        MUST(net.RegisterReceiveCallback(open_receive) == 0);
        MUST(net.RegisterLeaderChangedCallback(open_leader) == 0);
        MUST(net.GetLocalAddr() != NULL);
        MUST(net.ShutdownNetwork() == 0);
    }
    compare(before, usage());
}

static sem_t joined;

static void reload_status(const char *peer, int32_t status)
{
    (void)peer;
    if (status == 0) sem_post(&joined);
}

static void *one_room(void *partner)
{
    MUST(net.InitializeNetwork("main", session) == 0);
    MUST(net.RegisterPeerStatusCallback(reload_status) == 0);
    MUST(net.ConnectToPeer(((struct partner *)partner)->address) == 0);
    wait_event(&joined);
    while (sem_trywait(&joined) == 0) continue;
    MUST(net.ShutdownNetwork() == 0);
    return NULL;
}

static int is_mapped(void)
{
    char line[4352], *file = realpath(library_path, NULL);
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (file && maps && fgets(line, sizeof line, maps)) found |= strstr(line, file) != NULL;
    if (maps) fclose(maps);
    free(file);
    return found;
}

static void reload(struct partner *partner, int in_own_thread)
{
    void *library = load();
    if (in_own_thread) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one_room, partner) != 0) fail("pthread_create");
        pthread_join(thread, NULL);
    } else {
        one_room(partner);
    }
    if (dlclose(library) != 0) fail("dlclose: %s", dlerror());
}

static void test_reload(void)
{
    struct partner partner = start_partner(0);
    struct usage before = {0, 0, 0};
    for (int round = 0; round < WARM_UP_ROUNDS + RESTART_ROUNDS; round++) {
        if (round == WARM_UP_ROUNDS) before = usage();
        reload(&partner, 1);
        if (is_mapped()) fail("dlclose left the library mapped in round %d", round);
    }
    compare(before, usage());
    /* A thread that received a string keeps the library mapped until it ends: the string must stay valid. */
    for (int round = 0; round < 5; round++) reload(&partner, 0);
    stop_partner(&partner);
}

/* ------------------------------------------------------------------ reentry */

static sem_t reentered[KINDS];
static atomic_int reentry_done[KINDS];
static struct partner reentry_partner;

static void reentry_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags);
static void reentry_leader(const char *leader);
static void reentry_status(const char *peer, int32_t status);
static void reentry_result(const char *address, uint8_t success, int32_t code);

static void register_reentry(void)
{
    MUST(net.RegisterLeaderChangedCallback(reentry_leader) == 0);
    MUST(net.RegisterPeerStatusCallback(reentry_status) == 0);
    MUST(net.RegisterConnectionResultCallback(reentry_result) == 0);
    MUST(net.RegisterReceiveCallback(reentry_receive) == 0);
}

/* Every function, once in a callback of every kind. */
static void call_everything(enum kind kind)
{
    if (atomic_exchange(&reentry_done[kind], 1)) return;
    NetworkConfigFFI config = {30000, 512, 262144, 500, 1500, 3000, 1000, 5000, 5000, 128, 256, 64, 60, 10, 15353, 3, 3, 1, 1, 0, 1, 1, 0};
    uint8_t data[8] = {0};
    int32_t code;
    MUST(net.ShutdownNetwork() == -15);
    MUST(net.GetLastErrorCode() == -15);
    MUST(*net.GetLastErrorMessage());
    MUST(net.IsNetworkInitialized() == 1);
    MUST(net.InitializeNetwork("again", session) == -2);
    MUST(net.InitializeNetworkWithConfig("again", session, &config) == -2);
    MUST(net.ConnectToPeer(reentry_partner.address) == 0);
    MUST(net.DisconnectPeer("unknown") == 0);
    MUST(net.GetLocalAddr() != NULL);
    MUST(strcmp(net.GetLocalPeerId(), "main") == 0);
    MUST(strcmp(net.GetSessionId(), session) == 0);
    MUST(net.GetPeerCount() >= 0);
    MUST(net.GetPeerList() != NULL);
    net.GetPeerRTT("partner"); /* -1 until it is measured */
    MUST(net.GetPeerStatus("unknown") == -1);
    MUST(net.SetLeader("main") == 0);
    MUST(net.EnableAutoLeaderElection(1) == 0);
    MUST(net.GetCurrentLeader() != NULL);
    net.IsLeader();
    MUST(net.BroadcastMessage(data, sizeof data, TYPE, 0) == 0);
    code = net.SendToPeer("main", data, sizeof data, TYPE, 0); /* -7: the partner fills this host's queue meanwhile */
    MUST(code == 0 || code == -7);
    code = net.SendToLeader(data, sizeof data, TYPE, 0); /* -5, -6: the leader may be lost or changing */
    MUST(code == 0 || code == -5 || code == -6 || code == -7);
    code = net.SendFromLeader(data, sizeof data, TYPE, 0);
    MUST(code == 0 || code == -6);
    MUST(net.EnableLogging(0) == 0);
    MUST(net.mmn_abi_version() >= MMN_ABI_VERSION);
    MUST(*net.mmn_library_version());
    MUST(*net.mmn_describe_error(-15));
    MUST(net.RegisterReceiveCallback(NULL) == 0);
    MUST(net.RegisterLeaderChangedCallback(NULL) == 0);
    MUST(net.RegisterPeerStatusCallback(NULL) == 0);
    MUST(net.RegisterConnectionResultCallback(NULL) == 0);
    register_reentry();
    sem_post(&reentered[kind]);
}

static void reentry_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)peer, (void)data, (void)length, (void)type, (void)flags;
    call_everything(RECEIVE);
}

static void reentry_leader(const char *leader)
{
    (void)leader;
    call_everything(LEADER);
}

static void reentry_status(const char *peer, int32_t status)
{
    (void)peer, (void)status;
    call_everything(STATUS);
}

static void reentry_result(const char *address, uint8_t success, int32_t code)
{
    (void)address, (void)success, (void)code;
    call_everything(RESULT);
}

static void test_reentry(void)
{
    load();
    reentry_partner = start_partner(1);
    for (int kind = 0; kind < KINDS; kind++) sem_init(&reentered[kind], 0, 0);
    MUST(net.InitializeNetwork("main", session) == 0);
    MUST(net.ConnectToPeer(reentry_partner.address) == 0);
    register_reentry();
    for (int kind = 0; kind < KINDS; kind++) wait_event(&reentered[kind]);
    MUST(net.ShutdownNetwork() == 0);
    stop_partner(&reentry_partner);
}

/* ------------------------------------------------------------------ */

static int wanted(const char *name, int argc, char **argv)
{
    int named = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rounds") == 0) i++;
        else if (strcmp(argv[i], name) == 0) return 1;
        else named = 1;
    }
    return !named;
}

static void done(void)
{
    printf("ok %s\n", running_test);
    fflush(stdout);
}

#define RUN(name, seconds, call)       \
    if (wanted(name, argc, argv)) {    \
        running_test = name;           \
        alarm(seconds);                \
        call;                          \
        done();                        \
    }

/* ------------------------------------------------------------------ paths: the guests of a star */

static MmnRoom in_star(const char *name, uint32_t host_mode)
{
    MmnOptions options = {.struct_size = sizeof options};
    MmnRoom room;
    MUST(net.mmn_default_options(&options) == MMN_OK);
    options.bind_address = "127.0.0.1";
    options.topology = MMN_TOPOLOGY_STAR;
    options.host_mode = host_mode;
    MUST(net.mmn_open(name, session, &options, &room) == MMN_OK);
    return room;
}

static int is_through_host(MmnRoom guest, const char *peer)
{
    MmnPeerStats stats = {.struct_size = sizeof stats};
    MUST(net.mmn_peer_stats(guest, peer, &stats) == MMN_OK && stats.path == MMN_PATH_THROUGH_LEADER);
    const char *carrier = net.mmn_peer_carrier(guest, peer);
    return carrier && strcmp(carrier, "host") == 0 && net.mmn_peer_path(guest, peer) == MMN_PATH_THROUGH_LEADER;
}

static void test_paths(void)
{
    void *library = load();
    snprintf(session, sizeof session, "survive-c-%d-paths", (int)getpid());
    MmnRoom host = in_star("host", MMN_HOST_MODE_HOST);
    MmnRoom ann = in_star("ann", MMN_HOST_MODE_GUEST), bob = in_star("bob", MMN_HOST_MODE_GUEST);
    MUST(net.mmn_connect(ann, net.mmn_local_address(host)) == MMN_OK);
    MUST(net.mmn_connect(bob, net.mmn_local_address(host)) == MMN_OK);
    const double until = now_seconds() + EVENT_SECONDS;
    while (net.mmn_peer_count(host) + net.mmn_peer_count(ann) + net.mmn_peer_count(bob) < 6) {
        if (now_seconds() > until) fail("no three members within %d s", EVENT_SECONDS);
        nap_ms(1);
    }
    MUST(is_through_host(ann, "bob") && is_through_host(bob, "ann"));
    MUST(net.mmn_peer_path(ann, "host") == MMN_PATH_DIRECT && !net.mmn_peer_carrier(ann, "host"));
    MUST(net.mmn_peer_path(ann, "nobody") == MMN_PEER_NOT_FOUND && !net.mmn_peer_carrier(ann, "nobody"));
    MUST(net.mmn_peer_path(ann, "") == MMN_INVALID_ARGUMENT && net.mmn_peer_path(ann, NULL) == MMN_INVALID_ARGUMENT);
    MUST(!net.mmn_public_address(ann));
    MUST(net.mmn_close(ann) == MMN_OK && net.mmn_close(bob) == MMN_OK && net.mmn_close(host) == MMN_OK);
    MUST(net.mmn_peer_path(ann, "bob") == MMN_NOT_INITIALIZED && !net.mmn_peer_carrier(ann, "bob"));
    MUST(!net.mmn_public_address(ann));
    dlclose(library);
}

/* ------------------------------------------------------------------ codes, and a room that is to meet others at a relay */

static void test_codes(void)
{
    void *library = load();
    char code[MMN_ROOM_CODE_BYTES], typed[2 * MMN_ROOM_CODE_BYTES], again[MMN_ROOM_CODE_BYTES];
    MUST(net.mmn_generate_room_code(code, sizeof code) == MMN_ROOM_CODE_BYTES && strlen(code) == sizeof code - 1);
    MUST(net.mmn_generate_room_code(again, sizeof again) == MMN_ROOM_CODE_BYTES && strcmp(code, again) != 0);
    snprintf(typed, sizeof typed, " %.4s %.4s\t%.4s\n", code, code + 5, code + 10);
    for (char *letter = typed; *letter; letter++) *letter = (char)tolower(*letter);
    MUST(net.mmn_normalize_room_code(typed, again, sizeof again) == MMN_ROOM_CODE_BYTES && strcmp(code, again) == 0);
    MUST(net.mmn_normalize_room_code("Ｋ７ＱＭ—3xp9 trwf", again, sizeof again) > 0 && strcmp(again, "K7QM-3XP9-TRWF") == 0);
    MUST(net.mmn_normalize_room_code("K7QM-3XP9-TRWG", again, sizeof again) == MMN_INVALID_ARGUMENT);
    MmnOptions options = {.struct_size = sizeof options};
    MUST(net.mmn_default_options(&options) == MMN_OK && !options.relays && options.paths == MMN_PATHS_ALL);
    options.bind_address = "127.0.0.1";
    options.relays = "127.0.0.1:9\n[::1]:9 token=000g40r40m30e209185gr38e1w";
    options.paths = MMN_PATHS_RELAYED;
    MmnRoom room;
    MUST(net.mmn_open("ann", "tea", &options, &room) == MMN_INVALID_ARGUMENT);
    MUST(net.mmn_open("ann", typed, &options, &room) == MMN_OK);
    MUST(strcmp(net.mmn_session_id(room), code) == 0);
    MUST(net.mmn_connect(room, "127.0.0.1:9") == MMN_NOT_SUPPORTED);
    MUST(net.mmn_close(room) == MMN_OK);
    options.port_mapping = MMN_PORT_MAPPING_ON;
    MUST(net.mmn_open("ann", code, &options, &room) == MMN_INVALID_ARGUMENT);
    options.port_mapping = MMN_PORT_MAPPING_OFF;
    options.turn = "turn:127.0.0.1:9 username=u";
    MUST(net.mmn_open("ann", code, &options, &room) == MMN_INVALID_ARGUMENT);
    options.turn = NULL;
    options.relays = NULL;
    MUST(net.mmn_open("ann", code, &options, &room) == MMN_INVALID_ARGUMENT);
    dlclose(library);
}

/* ------------------------------------------------------------------ ending: a thread's last destructors */

static pthread_key_t ending_key;

static void ending_leader(const char *leader)
{
    (void)leader;
}

static int ending_step;

/* The C library runs this after the destructors of the library's own variables of the thread. */
static void in_last_destructor(void *value)
{
    const uint8_t data[] = "x";
    (void)value;
    /* "" or a sentence, and never NULL. */
    MUST(net.GetLastErrorMessage());
    if (ending_step == 0) {
        MUST(net.IsNetworkInitialized() == 1);
        MUST(net.GetPeerCount() == 0);
        MUST(net.GetPeerStatus("unknown") == -1);
        MUST(net.GetPeerRTT("unknown") == -1);
        MUST(net.BroadcastMessage(data, 1, TYPE, 0) == MMN_OK);
        MUST(net.BroadcastMessage(data, -1, TYPE, 0) == MMN_INVALID_ARGUMENT);
        MUST(net.GetLastErrorMessage());
        (void)net.GetLastErrorCode();
        MUST(net.SendToPeer("unknown", data, 1, TYPE, 0) == MMN_PEER_NOT_FOUND);
        MUST(net.ConnectToPeer("nowhere") == MMN_INVALID_ARGUMENT);
        MUST(net.ConnectToPeer("127.0.0.1:9") == MMN_OK);
        MUST(net.DisconnectPeer("unknown") == MMN_OK);
        MUST(net.SetLeader("main") == MMN_OK);
        MUST(net.IsLeader() == 1);
        MUST(net.EnableAutoLeaderElection(1) == MMN_OK);
        MUST(net.RegisterReceiveCallback(NULL) == MMN_OK);
        MUST(net.RegisterLeaderChangedCallback(ending_leader) == MMN_OK);
        MUST(net.RegisterPeerStatusCallback(NULL) == MMN_OK);
        MUST(net.RegisterConnectionResultCallback(NULL) == MMN_OK);
        MUST(net.RegisterLeaderChangedCallback(NULL) == MMN_OK);
        MUST(net.InitializeNetwork("main", session) == MMN_ALREADY_INITIALIZED);
        MUST(net.EnableLogging(0) == MMN_OK);
        MUST(net.mmn_abi_version() > 0);
        MUST(net.mmn_library_version() && net.mmn_describe_error(-3));
        /* These have no slot any more and return NULL, as without a room. */
        const char *strings[] = {net.GetLocalPeerId(), net.GetSessionId(), net.GetPeerList(), net.GetCurrentLeader(),
                                 net.GetLocalAddr()};
        for (size_t string = 0; string < sizeof strings / sizeof *strings; string++)
            MUST(!strings[string] || strlen(strings[string]) < 100);
    } else if (ending_step == 1) {
        MUST(net.ShutdownNetwork() == MMN_OK);
        MUST(net.ShutdownNetwork() == MMN_NOT_INITIALIZED);
    } else {
        MUST(net.InitializeNetwork("main", session) == MMN_OK);
    }
}

static void *end_with_destructor(void *uses_strings)
{
    pthread_setspecific(ending_key, &ending_key);
    if (uses_strings) {
        /* Gives the thread a last error and a string, which are destroyed before the key's value. */
        MUST(net.SendToPeer(NULL, NULL, 0, TYPE, 0) == MMN_INVALID_ARGUMENT);
        MUST(strlen(net.GetLastErrorMessage()) > 0);
    }
    return NULL;
}

static void test_ending(void)
{
    void *library = load();
    snprintf(session, sizeof session, "survive-c-%d-ending", (int)getpid());
    MUST(pthread_key_create(&ending_key, in_last_destructor) == 0);
    MUST(net.InitializeNetwork("main", session) == MMN_OK);
    for (int uses_strings = 0; uses_strings < 2; uses_strings++)
        for (ending_step = 0; ending_step < 3; ending_step++) {
            pthread_t thread;
            MUST(pthread_create(&thread, NULL, end_with_destructor, uses_strings ? &ending_key : NULL) == 0);
            pthread_join(thread, NULL);
        }
    MUST(net.ShutdownNetwork() == MMN_OK);
    pthread_key_delete(ending_key);
    dlclose(library);
}

int main(int argc, char **argv)
{
    /* One arena: with one per thread the C library's caches would hide a leak, or look like one. */
    mallopt(M_ARENA_MAX, 1);
    library_path = getenv("MMN_LIBRARY");
    if (!library_path) {
        fprintf(stderr, "set MMN_LIBRARY to the library's path\n");
        return 2;
    }
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0) fail("readlink: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    if (argc == 4 && strcmp(argv[1], "--partner") == 0) {
        running_test = "partner";
        return partner_main(argv[2], strcmp(argv[3], "flood") == 0);
    }
    int rounds = 100;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    signal(SIGALRM, on_alarm);
    sem_init(&arrived, 0, 0);
    sem_init(&flowing, 0, 0);
    sem_init(&joined, 0, 0);
    /* First, before anything else loads the library: else it could not be unloaded. */
    RUN("reload", TEST_SECONDS, test_reload())
    RUN("unregister", TEST_SECONDS, test_unregister())
    RUN("shutdown", TEST_SECONDS * (1u + (unsigned)rounds / 100), test_shutdown(rounds))
    RUN("restart", TEST_SECONDS, test_restart())
    RUN("reentry", TEST_SECONDS, test_reentry())
    RUN("paths", TEST_SECONDS, test_paths())
    RUN("codes", TEST_SECONDS, test_codes())
    RUN("ending", TEST_SECONDS, test_ending())
    return 0;
}
