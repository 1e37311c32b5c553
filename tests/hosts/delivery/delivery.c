/*
 * One of four members, each in another language, that send each other messages in every delivery and check what they receive.
 *
 *   gcc -std=gnu11 -O2 -pthread -Iinclude tests/hosts/delivery/delivery.c -o delivery -ldl
 *   MMN_LIBRARY=... ./delivery ID SESSION [ADDRESS OF THE FIRST]
 *
 * Prints "address A", and "OK" when this member has received enough from all others, and they from it. It leaves at the end
 * of its input, so that none leaves while another still receives. The first broken promise ends it.
 *
 * A message is the text "DELIVERY NUMBER"; each delivery has its own channel and numbers. Even numbers are broadcast and
 * odd ones are sent to each peer. A sequenced message belongs to the key NUMBER % KEYS. Enough is every reliable message, and
 * LOOSE of each of the other two deliveries, which go on until every peer confirms them: a datagram that the network
 * drops costs time and no more.
 */
#define _GNU_SOURCE
#include <meta_mystia_network.h>

#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NUMBERED = 0x0100, ENOUGH, TOO_LONG }; /* message types */
enum { PEERS = 3, DELIVERIES = 4, RELIABLE = 100, LOOSE = 20, MOST_NUMBERS = 4096, KEYS = 2, LEAST_DATAGRAM = 1100 };
enum { LAG_MS = 10, JITTER_MS = 100, LOSS_PERMILLE = 20 };
static const uint8_t CHANNELS[DELIVERIES] = {1, 128, 200, 255};
static const double LOOSE_EVERY_SECONDS = 0.02, TIMEOUT_SECONDS = 60;

static struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
    MMN_FUNCTIONS(MEMBER)
#undef MEMBER
} net;

static struct peer {
    char id[MMN_MAX_PEER_ID_BYTES + 1];
    uint8_t seen[DELIVERIES][MOST_NUMBERS];
    int count[DELIVERIES];
    int newest[KEYS]; /* of the sequenced messages */
    int answered;     /* knows that this member has received enough */
    int satisfied;    /* has received enough from this member */
} peers[PEERS];
static MmnRoom room;
static int joined, done;
static const char *own_id;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED %s: ", own_id);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    fflush(NULL);
    _exit(1);
}

static void must_return(int32_t expected, int32_t code, const char *what)
{
    if (code != expected) fail("%s returned %d and not %d: %s", what, (int)code, (int)expected, net.mmn_last_error_message());
}

static struct peer *peer_of(const char *id)
{
    for (int i = 0; i < joined; i++) {
        if (strcmp(peers[i].id, id) == 0) return &peers[i];
    }
    fail("an event of %s, which has not joined", id);
}

static void on_numbered(struct peer *peer, const MmnEvent *event)
{
    int delivery = -1, number = -1;
    char text[32] = "";
    if (event->length < (int32_t)sizeof text) memcpy(text, event->data, (size_t)event->length);
    if (sscanf(text, "%d %d", &delivery, &number) != 2 || delivery < 0 || delivery >= DELIVERIES || number < 0 || number >= MOST_NUMBERS)
        fail("\"%s\" from %s is no message", text, peer->id);
    if (event->delivery != delivery) fail("%s from %s has delivery %d", text, peer->id, event->delivery);
    if (event->channel != CHANNELS[delivery]) fail("%s from %.64s came on channel %d", text, peer->id, event->channel);
    if (peer->seen[delivery][number]++) fail("%s from %.64s came twice", text, peer->id);
    if (delivery == MMN_DELIVERY_RELIABLE_ORDERED && number != peer->count[delivery])
        fail("%s from %.64s came after %d others", text, peer->id, peer->count[delivery]);
    if (delivery == MMN_DELIVERY_SEQUENCED) {
        int *newest = &peer->newest[number % KEYS];
        if (number <= *newest) fail("%s from %.64s came after %d", text, peer->id, *newest);
        *newest = number;
    }
    peer->count[delivery]++;
}

static void on_event(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    if (event->kind == MMN_EVENT_JOINED) {
        if (joined == PEERS) fail("%s is one member too many", event->peer);
        struct peer *peer = &peers[joined++];
        snprintf(peer->id, sizeof peer->id, "%s", event->peer);
        for (int key = 0; key < KEYS; key++) peer->newest[key] = -1;
    } else if (event->kind == MMN_EVENT_LEFT && !done) {
        fail("%s left too early", event->peer);
    } else if (event->kind == MMN_EVENT_MESSAGE && event->msg_type == NUMBERED) {
        on_numbered(peer_of(event->peer), event);
    } else if (event->kind == MMN_EVENT_MESSAGE && event->msg_type == ENOUGH) {
        /* A send without options. */
        if (event->delivery != MMN_DELIVERY_RELIABLE_ORDERED || event->channel != 0)
            fail("a send without options of %s has delivery %d and channel %d", event->peer, event->delivery, event->channel);
        peer_of(event->peer)->satisfied = 1;
    } else if (event->kind == MMN_EVENT_MESSAGE) {
        fail("a message of type %d from %s", event->msg_type, event->peer);
    }
}

static MmnSendOptions options_of(int delivery, int number)
{
    MmnSendOptions options = {0};
    options.struct_size = sizeof options;
    options.delivery = (uint8_t)delivery;
    options.channel = CHANNELS[delivery];
    if (delivery == MMN_DELIVERY_SEQUENCED) options.key = (uint64_t)(number % KEYS);
    return options;
}

static void send_numbered(int delivery, int number)
{
    MmnSendOptions options = options_of(delivery, number);
    char text[32];
    int32_t length = snprintf(text, sizeof text, "%d %d", delivery, number);
    const uint8_t *data = (const uint8_t *)text;
    if (number % 2 == 0) {
        must_return(MMN_OK, net.mmn_broadcast(room, data, length, NUMBERED, &options), "mmn_broadcast");
        return;
    }
    for (int i = 0; i < joined; i++)
        must_return(MMN_OK, net.mmn_send(room, peers[i].id, data, length, NUMBERED, &options), "mmn_send");
}

static void send_reliable(void)
{
    for (int number = 0; number < RELIABLE - 1; number++) {
        send_numbered(MMN_DELIVERY_RELIABLE_ORDERED, number);
        send_numbered(MMN_DELIVERY_RELIABLE_UNORDERED, number);
    }
    for (int delivery = MMN_DELIVERY_RELIABLE_ORDERED; delivery <= MMN_DELIVERY_RELIABLE_UNORDERED; delivery++) {
        MmnSendOptions options = options_of(delivery, 0);
        options.flags = MMN_SEND_PARTIAL;
        char text[32];
        int32_t length = snprintf(text, sizeof text, "%d %d", delivery, RELIABLE - 1);
        must_return(PEERS, net.mmn_broadcast(room, (const uint8_t *)text, length, NUMBERED, &options), "mmn_broadcast in part");
    }
}

/* To a peer, or, if that is NULL, to all. */
static void too_long_is_refused(const char *peer)
{
    static const uint8_t data[65536];
    MmnSendOptions options = options_of(MMN_DELIVERY_UNRELIABLE, 0);
    for (;;) {
        int32_t size = net.mmn_max_datagram_size(room, peer);
        if (size < LEAST_DATAGRAM || size >= (int32_t)sizeof data) fail("the longest datagram has %d bytes", (int)size);
        int32_t code = peer ? net.mmn_send(room, peer, data, size + 1, TOO_LONG, &options)
                            : net.mmn_broadcast(room, data, size + 1, TOO_LONG, &options);
        /* Path MTU discovery may have raised the link's limit meanwhile. */
        if (code == MMN_OK && net.mmn_max_datagram_size(room, peer) > size) continue;
        must_return(MMN_MESSAGE_TOO_LARGE, code, "a datagram that is too long");
        return;
    }
}

static void refusals(void)
{
    too_long_is_refused(NULL);
    for (int i = 0; i < joined; i++) too_long_is_refused(peers[i].id);
    MmnSendOptions options = options_of(MMN_DELIVERY_UNRELIABLE, 0);
    options.delivery = 7;
    must_return(MMN_INVALID_ARGUMENT, net.mmn_broadcast(room, (const uint8_t *)"?", 1, TOO_LONG, &options), "mmn_broadcast with delivery 7");
    must_return(MMN_INVALID_ARGUMENT, net.mmn_send(room, peers[0].id, (const uint8_t *)"?", 1, TOO_LONG, &options),
                "mmn_send with delivery 7");
}

static int enough(const struct peer *peer)
{
    const int *count = peer->count;
    return count[0] == RELIABLE && count[1] == RELIABLE && count[2] >= LOOSE && count[3] >= LOOSE;
}

static void answer(struct peer *peer)
{
    if (peer->answered || !enough(peer)) return;
    must_return(MMN_OK, net.mmn_send(room, peer->id, NULL, 0, ENOUGH, NULL), "mmn_send");
    peer->answered = 1;
}

static int all_satisfied(void)
{
    for (int i = 0; i < joined; i++) {
        if (!peers[i].satisfied) return 0;
    }
    return 1;
}

/* The first thing that is missing; NULL when everything has arrived. */
static const char *lack(void)
{
    static char text[256];
    if (joined < PEERS) return "members are missing";
    for (int i = 0; i < joined; i++) {
        const struct peer *peer = &peers[i];
        const int *count = peer->count;
        if (enough(peer) && peer->satisfied) continue;
        snprintf(text, sizeof text, "from %.64s came %d ordered, %d unordered, %d unreliable, %d sequenced; it has %s", peer->id,
                 count[0], count[1], count[2], count[3], peer->satisfied ? "enough" : "not enough");
        return text;
    }
    return NULL;
}

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int input_ended(int wait_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, wait_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void load(void)
{
    const char *path = getenv("MMN_LIBRARY");
    void *library = dlopen(path ? path : "libmeta_mystia_network.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("%s", dlerror());
#define LOAD(result, name, parameters)           \
    *(void **)&net.name = dlsym(library, #name); \
    if (!net.name) fail("the library has no " #name);
    MMN_FUNCTIONS(LOAD)
#undef LOAD
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: delivery ID SESSION [ADDRESS]\n"), 2;
    own_id = argv[1];
    load();
    MmnOptions options = {0};
    options.struct_size = sizeof options;
    net.mmn_default_options(&options);
    options.dispatch_mode = MMN_DISPATCH_POLL;
    options.discovery_mode = MMN_DISCOVERY_OFF;
    /* A busy machine must not look like a lost link. */
    options.heartbeat_timeout_multiplier = 20;
    options.on_event = on_event;
    must_return(MMN_OK, net.mmn_open(own_id, argv[2], &options, &room), "mmn_open");
    printf("address %s\n", net.mmn_local_address(room));
    fflush(stdout);
    if (argc > 3) must_return(MMN_OK, net.mmn_connect(room, argv[3]), "mmn_connect");

    double start = now_seconds(), next = 0;
    int number = 0;
    while (!input_ended(5)) {
        int32_t ran = net.mmn_poll(room, INT32_MAX);
        if (ran < 0) must_return(MMN_OK, ran, "mmn_poll");
        double now = now_seconds();
        if (joined == PEERS && next == 0) {
            /* From here on packets are lost and reordered. */
            must_return(MMN_OK, net.mmn_simulate_network(room, LAG_MS, JITTER_MS, LOSS_PERMILLE), "mmn_simulate_network");
            send_reliable();
            refusals();
            next = now;
        }
        if (next > 0 && now >= next && !all_satisfied() && number < MOST_NUMBERS) {
            send_numbered(MMN_DELIVERY_UNRELIABLE, number);
            send_numbered(MMN_DELIVERY_SEQUENCED, number);
            number++;
            next = now + LOOSE_EVERY_SECONDS;
        }
        for (int i = 0; i < joined; i++) answer(&peers[i]);
        const char *lacking = lack();
        if (!lacking && !done) {
            done = 1;
            printf("OK\n");
            fflush(stdout);
        }
        if (lacking && now > start + TIMEOUT_SECONDS) fail("not within %.0f s: %s", TIMEOUT_SECONDS, lacking);
    }
    must_return(MMN_OK, net.mmn_close(room), "mmn_close");
    return done ? 0 : 1;
}
