/*
 * rooms_bench - measures many rooms in one process, through the C ABI only.
 *
 * Build:  gcc -O2 -std=gnu11 -Wall -Wextra -o rooms_bench rooms_bench.c -ldl -lpthread
 * Usage:  ./rooms_bench LIBRARY [leader|idle|churn|discovery]...     without names: all
 *
 *   leader      the time of one mmn_is_leader
 *   idle        100 rooms of 4 members, each linked to the three others, in poll mode: memory, CPU, time to close all
 *   churn       10,000 rooms that eight threads open and close: what grows
 *   discovery   the same with 1,000 rooms that discover each other's members, beside one that stays open
 *
 * Prints a line for each figure: its name, its value, the most that it may be, and whether it is met.  Ends with 1 if one is
 * not met, and with 2 if something failed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../include/meta_mystia_network.h"

enum { ROOMS = 100, MEMBERS = 4, ALL = ROOMS * MEMBERS, THREADS = 8, ROUNDS = 15 };
static const double IDLE_SECONDS = 10, SETTLE_SECONDS = 5, LIMIT_SECONDS = 60;

static struct {
    int32_t (*mmn_default_options)(MmnOptions *);
    int32_t (*mmn_open)(const char *, const char *, const MmnOptions *, MmnRoom *);
    int32_t (*mmn_leave)(MmnRoom);
    int32_t (*mmn_close)(MmnRoom);
    int32_t (*mmn_poll)(MmnRoom, int32_t);
    int32_t (*mmn_connect)(MmnRoom, const char *);
    int32_t (*mmn_peer_count)(MmnRoom);
    uint8_t (*mmn_is_leader)(MmnRoom);
    const char *(*mmn_local_address)(MmnRoom);
    const char *(*mmn_last_error_message)(void);
} lib;

static bool missed;

static _Noreturn void fail(const char *what, int32_t code) {
    fprintf(stderr, "%s: %d, %s\n", what, code, lib.mmn_last_error_message());
    exit(2);
}

static void check(const char *what, int32_t code) {
    if (code != MMN_OK) fail(what, code);
}

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* ------------------------------------------------------------ what the process holds */

static double resident_kib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) fail("/proc/self/statm", 0);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static int entries(const char *folder) {
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) fail(folder, 0);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

struct held { double in_use_kib, resident_kib; int threads, files; };

static struct held held(void) {
    /* A thread that was joined may be listed for a moment, and discovery forgets what was withdrawn after a second. */
    pause_ms(1500);
    struct mallinfo2 memory = mallinfo2();
    malloc_trim(0);
    return (struct held){(double)(memory.uordblks + memory.hblkhd) / 1024, resident_kib(), entries("/proc/self/task"),
                         entries("/proc/self/fd")};
}

/* ------------------------------------------------------------ figures */

static void figure(const char *name, const char *unit, double value, double most) {
    bool met = value <= most;
    missed |= !met;
    printf("%-44s %10.3f %-8s at most %8.3f  %s\n", name, value, unit, most, met ? "met" : "NOT MET");
    fflush(stdout);
}

static void note(const char *name, const char *unit, double value) {
    printf("%-44s %10.3f %s\n", name, value, unit);
    fflush(stdout);
}

enum keeps { NOTHING, SOMETHING };

static void grown(const char *name, struct held before, struct held after, enum keeps keeps) {
    char line[64];
    snprintf(line, sizeof line, "%s: threads more", name);
    figure(line, "", after.threads - before.threads, 0);
    snprintf(line, sizeof line, "%s: descriptors more", name);
    figure(line, "", after.files - before.files, 0);
    /* Ten bytes left by each of 10,000 rooms would be more. */
    snprintf(line, sizeof line, "%s: memory in use more", name);
    if (keeps == NOTHING) figure(line, "KiB", after.in_use_kib - before.in_use_kib, 64);
    else note(line, "KiB", after.in_use_kib - before.in_use_kib);
    /* With what the allocator keeps for the next rooms: it differs from run to run, and does not grow. */
    snprintf(line, sizeof line, "%s: resident memory more", name);
    note(line, "KiB", after.resident_kib - before.resident_kib);
}

/* ------------------------------------------------------------ rooms */

static MmnOptions in_poll_mode(void) {
    MmnOptions options = {.struct_size = sizeof options};
    check("mmn_default_options", lib.mmn_default_options(&options));
    options.dispatch_mode = MMN_DISPATCH_POLL;
    options.discovery_mode = MMN_DISCOVERY_OFF;
    return options;
}

static MmnRoom open_room(const char *peer, const char *session, const MmnOptions *options) {
    MmnRoom room = 0;
    check("mmn_open", lib.mmn_open(peer, session, options, &room));
    return room;
}

static void poll_all(const MmnRoom *rooms, int count) {
    for (int i = 0; i < count; i++) {
        int32_t taken = lib.mmn_poll(rooms[i], 100);
        if (taken < 0) fail("mmn_poll", taken);
    }
}

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ------------------------------------------------------------ the modes */

static double call_ns(MmnRoom room, uint8_t expected) {
    enum { CALLS = 2000000 };
    double runs[ROUNDS];
    for (int run = 0; run < ROUNDS; run++) {
        int sum = 0;
        double began = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < CALLS; i++) sum += lib.mmn_is_leader(room);
        runs[run] = (seconds(CLOCK_THREAD_CPUTIME_ID) - began) * 1e9 / CALLS;
        if (sum != expected * CALLS) fail("mmn_is_leader", sum);
    }
    qsort(runs, ROUNDS, sizeof *runs, compare_double);
    return runs[ROUNDS / 2];
}

static void leader(void) {
    MmnOptions options = in_poll_mode();
    MmnRoom rooms[2] = {open_room("a", "leader", &options), open_room("b", "leader", &options)};
    check("mmn_connect", lib.mmn_connect(rooms[1], lib.mmn_local_address(rooms[0])));
    double limit = seconds(CLOCK_MONOTONIC) + LIMIT_SECONDS;
    while (lib.mmn_peer_count(rooms[0]) != 1 || lib.mmn_is_leader(rooms[0]) + lib.mmn_is_leader(rooms[1]) != 1) {
        if (seconds(CLOCK_MONOTONIC) > limit) fail("no leader", 0);
        poll_all(rooms, 2);
        pause_ms(10);
    }
    int leads = lib.mmn_is_leader(rooms[0]) ? 0 : 1;
    figure("mmn_is_leader, of the leader", "ns", call_ns(rooms[leads], 1), 8);
    figure("mmn_is_leader, of another member", "ns", call_ns(rooms[!leads], 0), 8);
    for (int i = 0; i < 2; i++) check("mmn_close", lib.mmn_close(rooms[i]));
}

/* Whether all members have all links, and all rooms one leader. */
static bool stand(const MmnRoom *rooms) {
    for (int i = 0; i < ALL; i++)
        if (lib.mmn_peer_count(rooms[i]) != MEMBERS - 1) return false;
    for (int i = 0; i < ALL; i += MEMBERS) {
        int leaders = 0;
        for (int j = 0; j < MEMBERS; j++) leaders += lib.mmn_is_leader(rooms[i + j]);
        if (leaders != 1) return false;
    }
    return true;
}

/* Polls all rooms sixty times a second, as a server that ticks. */
static void tick(const MmnRoom *rooms, double duration) {
    double until = seconds(CLOCK_MONOTONIC) + duration;
    while (seconds(CLOCK_MONOTONIC) < until) {
        poll_all(rooms, ALL);
        pause_ms(16);
    }
}

static void idle(void) {
    static MmnRoom rooms[ALL];
    MmnOptions options = in_poll_mode();
    check("mmn_close", lib.mmn_close(open_room("warm", "up", &options)));
    struct held before = held();
    double began = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < ALL; i++) {
        char peer[16], session[16];
        snprintf(peer, sizeof peer, "m%d", i % MEMBERS);
        snprintf(session, sizeof session, "room %d", i / MEMBERS);
        rooms[i] = open_room(peer, session, &options);
        for (int j = i - i % MEMBERS; j < i; j++) {
            char address[128];
            snprintf(address, sizeof address, "127.0.0.1%s", strrchr(lib.mmn_local_address(rooms[j]), ':'));
            check("mmn_connect", lib.mmn_connect(rooms[i], address));
        }
    }
    while (!stand(rooms)) {
        if (seconds(CLOCK_MONOTONIC) > began + LIMIT_SECONDS) fail("some have not all links, or no leader", 0);
        tick(rooms, 0.1);
    }
    note("until all rooms stand", "s", seconds(CLOCK_MONOTONIC) - began);
    tick(rooms, SETTLE_SECONDS);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    tick(rooms, IDLE_SECONDS);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    if (!stand(rooms)) fail("a room lost a link or its leader", 0);
    struct held full = held();
    note("threads of each member", "", (double)(full.threads - before.threads) / ALL);
    note("descriptors of each member", "", (double)(full.files - before.files) / ALL);
    figure("resident memory of each member", "KiB", (full.resident_kib - before.resident_kib) / ALL, 1024);
    figure("idle, of one core, each member", "%", cpu / wall * 100 / ALL, 0.1);
    began = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < ALL; i++) check("mmn_leave", lib.mmn_leave(rooms[i]));
    note("to begin to leave all rooms", "s", seconds(CLOCK_MONOTONIC) - began);
    for (int i = 0; i < ALL; i++) check("mmn_close", lib.mmn_close(rooms[i]));
    figure("to close all rooms", "s", seconds(CLOCK_MONOTONIC) - began, 3);
    struct held after = held();
    /* The first time, the allocator and the registry grow, and keep that for the next rooms. */
    grown("after that", before, after, SOMETHING);
}

struct work { MmnOptions options; _Atomic int next; int count; };

static void *open_and_close(void *argument) {
    struct work *work = argument;
    for (int number; (number = work->next++) < work->count;) {
        char peer[16], session[32];
        snprintf(peer, sizeof peer, "m%d", number);
        /* Rooms that are open side by side are members of one session. */
        snprintf(session, sizeof session, "churn %d", number / 4);
        MmnRoom room = open_room(peer, session, &work->options);
        lib.mmn_poll(room, 100);
        check("mmn_close", lib.mmn_close(room));
    }
    return NULL;
}

static void open_and_close_all(MmnOptions options, int count) {
    static struct work work;
    pthread_t threads[THREADS];
    work.options = options;
    work.next = 0;
    work.count = count;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, open_and_close, &work)) fail("pthread_create", 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* The first rooms make the allocator's arenas and what the process keeps. */
static void churn_of(const char *name, MmnOptions options, int count, enum keeps keeps) {
    char line[64];
    open_and_close_all(options, count / 2);
    struct held before = held();
    double began = seconds(CLOCK_MONOTONIC);
    open_and_close_all(options, count);
    snprintf(line, sizeof line, "%s: each room, on %d threads", name, THREADS);
    note(line, "ms", (seconds(CLOCK_MONOTONIC) - began) * 1000 * THREADS / count);
    grown(name, before, held(), keeps);
}

static void churn(void) { churn_of("10,000 rooms", in_poll_mode(), 10000, NOTHING); }

static void discovery(void) {
    MmnOptions options = in_poll_mode();
    options.discovery_mode = MMN_DISCOVERY_CONNECT;
    MmnRoom stays = open_room("stays", "stays", &options);
    /* A responder keeps the timers of a record for as long as the record would be valid: 75 minutes. */
    churn_of("1,000 discovering rooms", options, 1000, SOMETHING);
    check("mmn_close", lib.mmn_close(stays));
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } MODES[] = {
        {"leader", leader}, {"idle", idle}, {"churn", churn}, {"discovery", discovery}};
    enum { MODE_COUNT = sizeof MODES / sizeof *MODES };
    if (argc < 2) {
        fprintf(stderr, "usage: %s LIBRARY [leader|idle|churn|discovery]...\n", argv[0]);
        return 2;
    }
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
#define RESOLVE(name)                                          \
    do {                                                       \
        *(void **)&lib.name = dlsym(handle, #name);            \
        if (!lib.name) return fprintf(stderr, #name "\n"), 2;  \
    } while (0)
    RESOLVE(mmn_default_options);
    RESOLVE(mmn_open);
    RESOLVE(mmn_leave);
    RESOLVE(mmn_close);
    RESOLVE(mmn_poll);
    RESOLVE(mmn_connect);
    RESOLVE(mmn_peer_count);
    RESOLVE(mmn_is_leader);
    RESOLVE(mmn_local_address);
    RESOLVE(mmn_last_error_message);
#undef RESOLVE
    for (int i = 2; i < argc; i++) {
        bool known = false;
        for (int j = 0; j < MODE_COUNT; j++) known |= strcmp(argv[i], MODES[j].name) == 0;
        if (!known) return fprintf(stderr, "%s: no such mode\n", argv[i]), 2;
    }
    for (int j = 0; j < MODE_COUNT; j++) {
        bool wanted = argc == 2;
        for (int i = 2; i < argc; i++) wanted |= strcmp(argv[i], MODES[j].name) == 0;
        if (wanted) MODES[j].run();
    }
    return missed;
}
