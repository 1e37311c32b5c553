/*
 * yardsticks - baselines for the figures of abi_bench: plain UDP, plain TCP and ENet, on loopback,
 * with two processes (enet-fanout: N).
 *
 * Build:  gcc -O2 -std=gnu11 -Wall -Wextra -o yardsticks yardsticks.c
 *         with ENet (Debian: libenet-dev) also: -DHAVE_ENET ... -lenet
 * Usage:  ./yardsticks --help
 *
 * Messages and checks are those of abi_bench: [seq u64][filler][~seq u32], the filler random; the
 * receiver checks length, sequence number and trailer of each one. Rates are those at the receivers,
 * from the first message to the last.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_ENET
#include <enet/enet.h>
#endif

enum { POOL = 1 << 20, READ_BYTES = 256 << 10, MAX_PEERS = 32, WARM_UP = 300, MOST_UDP = 1400 };
enum { LIMIT_S = 120 }; /* limit of a run */

struct receiver { /* one per child; written by that child */
    _Alignas(64) _Atomic int64_t received;
    _Atomic int done, port;
    int64_t first_ns, last_ns, reordered, damaged;
    double cpu_s;
};

struct shared {
    _Atomic int stop;
    struct receiver receivers[MAX_PEERS];
};

static struct shared *sh;
static int size, peers = 2;
static int64_t count;
static bool json;
static pid_t children[MAX_PEERS];

static _Noreturn void fail(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    fputs("yardsticks: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1); /* the children end with this process */
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_us(int64_t us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static double cpu_seconds(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* ------------------------------------------------------------------ messages */

enum { PREFIX = 4 };
static uint8_t *pool;

static void make_pool(void) {
    pool = malloc(POOL);
    if (!pool) fail("no memory");
    uint64_t x = 0x9E3779B97F4A7C15u;
    for (int i = 0; i < POOL; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        pool[i] = (uint8_t)(x >> 32);
    }
}

/* The message, with its length in front. */
static uint8_t *make_message(uint64_t seq) {
    uint8_t *m = pool + PREFIX + seq * 4112 % (uint64_t)(POOL - PREFIX - size);
    uint32_t trailer = ~(uint32_t)seq, length = (uint32_t)size;
    memcpy(m - PREFIX, &length, PREFIX);
    memcpy(m, &seq, 8);
    memcpy(m + size - 4, &trailer, 4);
    return m;
}

static bool intact(const uint8_t *data, int64_t length, uint64_t *seq) {
    uint32_t trailer;
    if (length != size) return false;
    memcpy(seq, data, 8);
    memcpy(&trailer, data + length - 4, 4);
    return trailer == ~(uint32_t)*seq;
}

static void check_echo(const uint8_t *data, int64_t length, int64_t expected) {
    uint64_t seq;
    if (!intact(data, length, &seq) || (int64_t)seq != expected) fail("echo %lld is lost or damaged", (long long)expected);
}

/* Checks and counts one message of a receiver. */
static void count_message(struct receiver *me, const uint8_t *data, int64_t length) {
    uint64_t seq;
    int64_t got = atomic_load_explicit(&me->received, memory_order_relaxed);
    if (!intact(data, length, &seq)) {
        me->damaged++;
        return;
    }
    if ((int64_t)seq != got) me->reordered++;
    me->last_ns = now_ns();
    if (got == 0) me->first_ns = me->last_ns;
    atomic_store_explicit(&me->received, got + 1, memory_order_release);
}

/* ------------------------------------------------------------------- figures */

static bool printed;

static void put(const char *name, double value) {
    if (json) printf("%s\"%s\": %.6f", printed ? ", " : "{", name, value);
    else printf("%-18s %.3f\n", name, value);
    printed = true;
}

static void put_samples(uint32_t *samples) {
    size_t n = (size_t)count;
    qsort(samples, n, sizeof *samples, compare_u32);
    put("min_us", samples[0] / 1e3);
    put("p50_us", samples[n / 2] / 1e3);
    put("p90_us", samples[n * 90 / 100] / 1e3);
    put("p99_us", samples[n * 99 / 100] / 1e3);
    put("max_us", samples[n - 1] / 1e3);
    free(samples);
}

static uint32_t *sample_space(void) {
    uint32_t *samples = malloc((size_t)count * sizeof *samples);
    if (!samples) fail("no memory");
    return samples;
}

/* ------------------------------------------------------------------ children */

static bool in_child(int index) {
    pid_t parent = getpid();
    fflush(stdout);
    children[index] = fork();
    if (children[index] < 0) fail("fork: %s", strerror(errno));
    if (children[index] > 0) return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    return true;
}

static void check_children(void) {
    for (int i = 0; i < MAX_PEERS; i++)
        if (children[i] && waitpid(children[i], NULL, WNOHANG) == children[i] && !sh->receivers[i].done)
            fail("receiver %d ended early", i);
}

static void end_children(void) {
    for (int i = 0; i < MAX_PEERS; i++) {
        if (!children[i]) continue;
        kill(children[i], SIGKILL); /* our own child, by its pid */
        waitpid(children[i], NULL, 0);
        children[i] = 0;
    }
}

static _Noreturn void leave(struct receiver *me, double cpu) {
    me->cpu_s = cpu_seconds() - cpu;
    atomic_store(&me->done, 1);
    pause(); /* until the parent ends this process */
    _exit(0);
}

/* Waits until the receivers are done; prints the sum of their counts. */
static void put_stream(double cpu) {
    int receivers = peers - 1;
    int64_t limit = now_ns() + INT64_C(1000000000) * LIMIT_S, first = INT64_MAX, last = 0;
    double delivered = 0, reordered = 0, damaged = 0;
    for (int i = 0; i < receivers; i++)
        while (!atomic_load(&sh->receivers[i].done)) {
            if (now_ns() > limit) fail("receiver %d is not done after %d s", i, LIMIT_S);
            check_children();
            sleep_us(1000);
        }
    cpu = cpu_seconds() - cpu;
    for (int i = 0; i < receivers; i++) {
        struct receiver *r = &sh->receivers[i];
        delivered += (double)r->received;
        reordered += (double)r->reordered;
        damaged += (double)r->damaged;
        cpu += r->cpu_s;
        if (r->received && r->first_ns < first) first = r->first_ns;
        if (r->last_ns > last) last = r->last_ns;
    }
    double rate = delivered / (1e-9 * (double)(last > first ? last - first : 1));
    put(receivers > 1 ? "deliveries_per_s" : "msgs_per_s", rate);
    put("MB_per_s", rate * size / 1e6);
    put("cpu_us_per_msg", 1e6 * cpu / (delivered > 0 ? delivered : 1));
    put("lost", (double)count * receivers - delivered);
    put("reordered", reordered);
    put("damaged", damaged);
}

/* ------------------------------------------------------------------------ UDP */

static int bound_socket(int type, struct sockaddr_in *address) {
    int fd = socket(AF_INET, type, 0);
    socklen_t length = sizeof *address;
    struct timeval limit = {5, 0};
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &length) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        fail("socket: %s", strerror(errno));
    return fd;
}

static void udp_rtt(void) {
    struct sockaddr_in mine, echo;
    int here = bound_socket(SOCK_DGRAM, &mine), there = bound_socket(SOCK_DGRAM, &echo);
    uint8_t buffer[MOST_UDP + 1];
    if (in_child(0)) {
        for (;;) {
            ssize_t got = recv(there, buffer, sizeof buffer, 0);
            if (got > 0) sendto(there, buffer, (size_t)got, 0, (struct sockaddr *)&mine, sizeof mine);
        }
    }
    uint32_t *samples = sample_space();
    for (int64_t i = -WARM_UP; i < count; i++) {
        const uint8_t *m = make_message((uint64_t)(i + WARM_UP));
        int64_t start = now_ns();
        sendto(here, m, (size_t)size, 0, (struct sockaddr *)&echo, sizeof echo);
        ssize_t got = recv(here, buffer, sizeof buffer, 0);
        int64_t end = now_ns();
        check_echo(buffer, got, i + WARM_UP);
        if (i >= 0) samples[i] = (uint32_t)(end - start);
    }
    put_samples(samples);
}

/* ------------------------------------------------------------------------ TCP */

/* Connected sockets: fds[0] for this process, fds[1] for the child. */
static void tcp_pair(int fds[2]) {
    struct sockaddr_in address;
    int listener = bound_socket(SOCK_STREAM, &address), on = 1;
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (fds[0] < 0 || listen(listener, 1) != 0 ||
        connect(fds[0], (struct sockaddr *)&address, sizeof address) != 0 ||
        (fds[1] = accept(listener, NULL, NULL)) < 0)
        fail("TCP: %s", strerror(errno));
    close(listener);
    for (int i = 0; i < 2; i++)
        if (setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY: %s", strerror(errno));
}

static bool write_all(int fd, const uint8_t *data, size_t length) {
    while (length) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n, length -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, uint8_t *data, size_t length) {
    while (length) {
        ssize_t n = read(fd, data, length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n, length -= (size_t)n;
    }
    return true;
}

static void tcp_rtt(void) {
    int fds[2];
    uint8_t *buffer = malloc((size_t)size);
    if (!buffer) fail("no memory");
    tcp_pair(fds);
    if (in_child(0)) {
        while (read_all(fds[1], buffer, (size_t)size) && write_all(fds[1], buffer, (size_t)size)) {}
        _exit(0);
    }
    uint32_t *samples = sample_space();
    for (int64_t i = -WARM_UP; i < count; i++) {
        const uint8_t *m = make_message((uint64_t)(i + WARM_UP));
        int64_t start = now_ns();
        bool ok = write_all(fds[0], m, (size_t)size) && read_all(fds[0], buffer, (size_t)size);
        int64_t end = now_ns();
        check_echo(buffer, ok ? size : -1, i + WARM_UP);
        if (i >= 0) samples[i] = (uint32_t)(end - start);
    }
    put_samples(samples);
    free(buffer);
}

static _Noreturn void tcp_receive(int fd, struct receiver *me) {
    double cpu = cpu_seconds();
    size_t space = READ_BYTES > 2 * (PREFIX + size) ? READ_BYTES : 2 * (size_t)(PREFIX + size), filled = 0;
    uint8_t *buffer = malloc(space);
    if (!buffer) fail("no memory");
    while (me->received + me->damaged < count) {
        ssize_t n = read(fd, buffer + filled, space - filled);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        filled += (size_t)n;
        size_t start = 0;
        while (filled - start >= PREFIX) {
            uint32_t length;
            memcpy(&length, buffer + start, PREFIX);
            if (length != (uint32_t)size) fail("a length of %u", length);
            if (filled - start < PREFIX + length) break;
            count_message(me, buffer + start + PREFIX, length);
            start += PREFIX + length;
        }
        memmove(buffer, buffer + start, filled - start);
        filled -= start;
    }
    leave(me, cpu);
}

static void tcp_tput(void) {
    int fds[2];
    tcp_pair(fds);
    if (in_child(0)) {
        close(fds[0]);
        tcp_receive(fds[1], &sh->receivers[0]);
    }
    close(fds[1]);
    double cpu = cpu_seconds();
    for (int64_t i = 0; i < count; i++)
        if (!write_all(fds[0], make_message((uint64_t)i) - PREFIX, (size_t)(PREFIX + size))) fail("write: %s", strerror(errno));
    put_stream(cpu);
}

/* ----------------------------------------------------------------------- ENet */

#ifdef HAVE_ENET

/* Limit of messages sent but not yet acknowledged by all receivers: ENet itself has no limit. */
enum { WINDOW = 512 };
static int64_t freed;

static void on_free(ENetPacket *packet) { (void)packet, freed++; }

static ENetPacket *make_packet(const void *data, size_t length) {
    ENetPacket *packet = enet_packet_create(data, length, ENET_PACKET_FLAG_RELIABLE);
    if (!packet) fail("ENet gives no packet");
    packet->freeCallback = on_free;
    return packet;
}

static ENetHost *enet_listener(size_t links) {
    ENetAddress address;
    enet_address_set_host_ip(&address, "127.0.0.1");
    address.port = 0;
    ENetHost *host = enet_host_create(&address, links, 1, 0, 0);
    if (!host) fail("ENet gives no host");
    return host;
}

/* A receiver, or an echo: dials this program's first process, receives messages, and acknowledges until the end. */
static _Noreturn void enet_child(int port, struct receiver *me, bool echoes) {
    ENetAddress address;
    ENetEvent event;
    enet_address_set_host_ip(&address, "127.0.0.1");
    address.port = (enet_uint16)port;
    ENetHost *host = enet_host_create(NULL, 1, 1, 0, 0);
    if (!host || !enet_host_connect(host, &address, 1, 0)) fail("ENet does not dial");
    double cpu = cpu_seconds();
    while (!atomic_load(&sh->stop)) {
        int got = enet_host_service(host, &event, 10);
        if (got < 0) fail("ENet: service");
        for (; got > 0; got = enet_host_check_events(host, &event)) {
            if (event.type == ENET_EVENT_TYPE_DISCONNECT) fail("ENet: the link is lost");
            if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
            if (echoes) {
                enet_peer_send(event.peer, 0, make_packet(event.packet->data, event.packet->dataLength));
                enet_host_flush(host);
            } else {
                count_message(me, event.packet->data, (int64_t)event.packet->dataLength);
            }
            enet_packet_destroy(event.packet);
        }
    }
    leave(me, cpu);
}

/* Forks the receivers and waits for their links. */
static ENetHost *enet_room(bool echoes) {
    if (enet_initialize() != 0) fail("ENet does not start");
    ENetHost *host = enet_listener((size_t)(peers - 1));
    for (int i = 0; i < peers - 1; i++)
        if (in_child(i)) enet_child(host->address.port, &sh->receivers[i], echoes);
    ENetEvent event;
    for (int linked = 0; linked < peers - 1; linked++)
        if (enet_host_service(host, &event, 10000) <= 0 || event.type != ENET_EVENT_TYPE_CONNECT) fail("ENet: no link");
    return host;
}

static void enet_rtt(void) {
    ENetHost *host = enet_room(true);
    uint32_t *samples = sample_space();
    for (int64_t i = -WARM_UP; i < count; i++) {
        const uint8_t *m = make_message((uint64_t)(i + WARM_UP));
        ENetEvent event;
        int64_t start = now_ns();
        enet_peer_send(&host->peers[0], 0, make_packet(m, (size_t)size));
        enet_host_flush(host);
        if (enet_host_service(host, &event, 5000) <= 0 || event.type != ENET_EVENT_TYPE_RECEIVE) fail("ENet: no echo");
        int64_t end = now_ns();
        check_echo(event.packet->data, (int64_t)event.packet->dataLength, i + WARM_UP);
        enet_packet_destroy(event.packet);
        if (i >= 0) samples[i] = (uint32_t)(end - start);
    }
    put_samples(samples);
}

static void enet_take(ENetHost *host, uint32_t wait_ms) {
    ENetEvent event;
    if (enet_host_service(host, &event, wait_ms) < 0) fail("ENet: service");
    if (event.type == ENET_EVENT_TYPE_DISCONNECT) fail("ENet: a link is lost");
}

static void enet_stream(void) {
    ENetHost *host = enet_room(false);
    double cpu = cpu_seconds();
    int64_t limit = now_ns() + INT64_C(1000000000) * LIMIT_S;
    for (int64_t i = 0; i < count; i++) {
        ENetPacket *packet = make_packet(make_message((uint64_t)i), (size_t)size);
        if (peers == 2) {
            if (enet_peer_send(&host->peers[0], 0, packet) != 0) fail("ENet does not send");
        } else {
            enet_host_broadcast(host, 0, packet);
        }
        if (i % 32 == 31) enet_take(host, 0);
        while (i + 1 - freed >= WINDOW) {
            enet_take(host, 1);
            if (now_ns() > limit) fail("%lld messages are acknowledged after %d s", (long long)freed, LIMIT_S);
        }
    }
    while (freed < count && now_ns() < limit) enet_take(host, 1);
    atomic_store(&sh->stop, 1);
    put_stream(cpu);
}

#endif

/* --------------------------------------------------------------- command line */

static void help(FILE *f) {
    fputs(
        "usage: yardsticks MODE ARGUMENTS [--json]\n"
        "\n"
        "What abi_bench's figures are compared with, on loopback.\n"
        "\n"
        "modes\n"
        "  udp-rtt SIZE COUNT         ping-pong of two processes over a plain UDP socket\n"
        "  tcp-rtt SIZE COUNT         the same over TCP (TCP_NODELAY)\n"
        "  tcp-tput SIZE COUNT        one way: a write for each message, with its length in front; the\n"
        "                             receiver reads into 256 KiB\n"
        "  enet-rtt SIZE COUNT        ping-pong over ENet, reliable\n"
        "  enet-tput SIZE COUNT       one way over ENet, reliable\n"
        "  enet-fanout N SIZE COUNT   one process broadcasts to N-1, reliable; deliveries of all together\n"
        "\n"
        "SIZE is in bytes, at least 16. cpu_us_per_msg is that of all processes together for a delivery.\n"
#ifndef HAVE_ENET
        "This program was built without ENet (-DHAVE_ENET -lenet): its modes are missing, and exit with 4.\n"
#endif
        ,
        f);
}

static _Noreturn void usage_error(const char *what, const char *which) {
    fprintf(stderr, "yardsticks: %s%s%s (see --help)\n", what, which ? ": " : "", which ? which : "");
    exit(2);
}

static long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long v = text ? strtol(text, &end, 10) : 0;
    if (!text || errno || *end || end == text || v < least || v > most) usage_error("bad or missing number", text);
    return v;
}

int main(int argc, char **argv) {
    const char *words[4] = {NULL};
    int n_words = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return help(stdout), 0;
        else if (!strcmp(argv[i], "--json")) json = true;
        else if (argv[i][0] == '-') usage_error("unknown option", argv[i]);
        else if (n_words < 4) words[n_words++] = argv[i];
        else usage_error("too many arguments", argv[i]);
    }
    const char *mode = words[0];
    if (!mode) return help(stderr), 2;

    static const struct { const char *name; void (*run)(void); int most; } modes[] = {
        {"udp-rtt", udp_rtt, MOST_UDP},
        {"tcp-rtt", tcp_rtt, POOL / 2},
        {"tcp-tput", tcp_tput, POOL / 2},
#ifdef HAVE_ENET
        {"enet-rtt", enet_rtt, POOL / 2},
        {"enet-tput", enet_stream, POOL / 2},
        {"enet-fanout", enet_stream, POOL / 2},
#endif
    };
    int index = 1;
    if (!strcmp(mode, "enet-fanout")) peers = (int)number(words[index++], 2, MAX_PEERS);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        if (strcmp(mode, modes[m].name)) continue;
        size = (int)number(words[index], 16, modes[m].most);
        count = number(words[index + 1], 1, 100000000);
        if (index + 2 < n_words) usage_error("too many arguments", words[index + 2]);
        sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (sh == MAP_FAILED) fail("mmap: %s", strerror(errno));
        signal(SIGPIPE, SIG_IGN);
        make_pool();
        modes[m].run();
        if (json) puts("}");
        end_children();
        return 0;
    }
    if (!strncmp(mode, "enet-", 5)) {
        fprintf(stderr, "yardsticks: built without ENet (Debian: libenet-dev; -DHAVE_ENET -lenet)\n");
        return 4;
    }
    usage_error("unknown mode", mode);
}
