/*
 * A host of the lab that sends streams of messages and measures the received ones, over the C ABI.
 *
 *   MMN_LIBRARY=... bench_host ID SESSION [ROLE]
 *
 * With the ROLE "host" or "guest" the room is a star; with "create" or "join" it is a mesh, led by the one that created it. With
 * "state=BYTES" the room keeps a state, of which this host provides snapshots of that size.
 *
 * Takes lines on standard input; when it ends, so does this program, without leaving the room first.
 *   connect ADDRESS
 *   send STREAM PEER HZ BYTES COUNT [DELIVERY CHANNEL PRIORITY TTL_MS KEY]
 *       HZ 0: as fast as the library takes them. With DELIVERY by mmn_send, else by SendToPeer.
 *   submit HZ BYTES COUNT
 *       Actions of the room's state; HZ as above.
 *   transfer PEER BYTES   by mmn_send_transfer; every host takes what it is offered
 *   report                messages and actions since the last report
 *   leave                 shuts down and ends
 * Prints JSON, one value a line:
 *   {"event": "ready"}, {"event": "view", "at": SECONDS, "peers": NUMBER, "leader": ID}
 *   {"event": "sent", "stream": S, "count": N, "refused": R, "seconds": T}      a stream was accepted
 *   {"event": "submitted", "count": N, "refused": R, "seconds": T}              the same of actions
 *   {"event": "reset", "bytes": N, "code": C, "at": SECONDS}                    the state begins with a snapshot
 *   {"event": "transferred", "bytes": N, "reason": R, "at": SECONDS}            the result of a transfer, at either end
 *   {"event": "report", "actions": N, "streams": [{"stream": S, "count": N, "highest": N, "disorder": N, "bytes": N, "seconds": T,
 *                                    "p50": MS, "p99": MS, "p999": MS, "most": MS}]}
 *
 * A message carries its due time, so that its measured delay includes a wait at the sender. All namespaces have
 * one CLOCK_MONOTONIC. The content does not compress.
 */
#define _GNU_SOURCE
#include "../../include/meta_mystia_network.h"
#include "../hosts/classic.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_TYPE = 0x0300, MAX_STREAMS = 8, MAX_MEASURED = 1 << 20, MAX_BYTES = 256 << 10, ACTIONS = -1, SEND_QUEUE_FULL = -7, PEER_NOT_FOUND = -5 };

struct stamp {
    uint64_t due_ns, number;
};

struct inflow {
    uint32_t *took_us;
    uint64_t count, highest, disorder, bytes, first_ns, last_ns;
};

struct outflow {
    int stream; /* or ACTIONS */
    char peer[65];
    double hz;
    size_t bytes;
    uint64_t count;
    int extended;
    MmnSendOptions options;
};

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER, inflows_lock = PTHREAD_MUTEX_INITIALIZER;
static struct inflow inflows[MAX_STREAMS];
static uint8_t noise[MAX_BYTES];
/* The default room, on which the classic functions act, too. */
static MmnRoom room;
static __typeof__(&mmn_send) send_with;
static __typeof__(&mmn_submit) submit;
static __typeof__(&mmn_send_transfer) send_transfer;
static __typeof__(&mmn_accept_transfer) accept_transfer;
static uint8_t *landing; /* of the transfer that this host takes */
static __typeof__(&mmn_provide_snapshot) provide_snapshot;
static uint8_t *snapshot;
static int32_t snapshot_bytes;
static atomic_uint_least64_t actions;
static const char *own_id;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_until(uint64_t when_ns)
{
    struct timespec until = {(time_t)(when_ns / 1000000000u), (long)(when_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void must(int32_t code, const char *what)
{
    if (code == 0) return;
    fprintf(stderr, "%s: %s answered %d: %s\n", own_id, what, (int)code, net.GetLastErrorMessage());
    fflush(NULL);
    _exit(1);
}

static void print_view(void)
{
    const char *leader = net.GetCurrentLeader();
    pthread_mutex_lock(&output);
    printf("{\"event\": \"view\", \"at\": %.6f, \"peers\": %d, \"leader\": \"%s\"}\n", (double)now_ns() / 1e9,
           (int)net.GetPeerCount(), leader ? leader : "");
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void on_leader(const char *leader)
{
    (void)leader;
    print_view();
}

static void on_status(const char *peer, int32_t status)
{
    (void)peer, (void)status;
    print_view();
}

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)peer, (void)flags;
    uint64_t now = now_ns();
    struct stamp stamp;
    int stream = type - FIRST_TYPE;
    if (stream < 0 || stream >= MAX_STREAMS || length < (int32_t)sizeof stamp) return;
    memcpy(&stamp, data, sizeof stamp);
    pthread_mutex_lock(&inflows_lock);
    struct inflow *in = &inflows[stream];
    if (!in->took_us) in->took_us = calloc(MAX_MEASURED, sizeof *in->took_us);
    if (in->count > 0 && stamp.number <= in->highest) in->disorder++;
    else in->highest = stamp.number;
    if (in->count == 0) in->first_ns = now;
    in->last_ns = now;
    in->bytes += (uint64_t)length;
    if (in->count < MAX_MEASURED) in->took_us[in->count] = (uint32_t)((now - stamp.due_ns) / 1000);
    in->count++;
    pthread_mutex_unlock(&inflows_lock);
}

static void on_event(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    if (event->kind == MMN_EVENT_ACTION) actions++;
    if (event->kind == MMN_EVENT_SNAPSHOT_WANTED)
        must(provide_snapshot(event->room, event->request, snapshot, snapshot_bytes), "mmn_provide_snapshot");
    if (event->kind == MMN_EVENT_TRANSFER_OFFERED) {
        landing = realloc(landing, event->count);
        must(accept_transfer(event->room, event->peer, event->request, landing, (int32_t)event->count), "mmn_accept_transfer");
    }
    if (event->kind == MMN_EVENT_TRANSFER_RESULT) {
        pthread_mutex_lock(&output);
        printf("{\"event\": \"transferred\", \"bytes\": %" PRIu64 ", \"reason\": %d, \"at\": %.6f}\n", event->index, (int)event->reason,
               (double)now_ns() / 1e9);
        fflush(stdout);
        pthread_mutex_unlock(&output);
    }
    if (event->kind != MMN_EVENT_STATE_RESET) return;
    pthread_mutex_lock(&output);
    printf("{\"event\": \"reset\", \"bytes\": %d, \"code\": %d, \"at\": %.6f}\n", (int)event->length, (int)event->code,
           (double)now_ns() / 1e9);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static int by_size(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

/* The quantile `part` of the delays, in milliseconds. */
static double quantile(const struct inflow *in, double part)
{
    uint64_t measured = in->count < MAX_MEASURED ? in->count : MAX_MEASURED;
    uint64_t rank = (uint64_t)(part * (double)measured);
    return in->took_us[rank < measured ? rank : measured - 1] / 1e3;
}

static void report(void)
{
    static struct inflow taken[MAX_STREAMS];
    pthread_mutex_lock(&inflows_lock);
    memcpy(taken, inflows, sizeof taken);
    memset(inflows, 0, sizeof inflows);
    pthread_mutex_unlock(&inflows_lock);
    const char *comma = "";
    pthread_mutex_lock(&output);
    printf("{\"event\": \"report\", \"actions\": %" PRIu64 ", \"streams\": [", (uint64_t)atomic_exchange(&actions, 0));
    for (int stream = 0; stream < MAX_STREAMS; stream++) {
        struct inflow *in = &taken[stream];
        if (in->count == 0) continue;
        qsort(in->took_us, in->count < MAX_MEASURED ? in->count : MAX_MEASURED, sizeof *in->took_us, by_size);
        printf("%s{\"stream\": %d, \"count\": %llu, \"highest\": %llu, \"disorder\": %llu, \"bytes\": %llu, \"seconds\": %.6f, "
               "\"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f, \"most\": %.3f}",
               comma, stream, (unsigned long long)in->count, (unsigned long long)in->highest,
               (unsigned long long)in->disorder, (unsigned long long)in->bytes, (double)(in->last_ns - in->first_ns) / 1e9,
               quantile(in, 0.5), quantile(in, 0.99), quantile(in, 0.999), quantile(in, 1));
        comma = ", ";
        free(in->took_us);
    }
    puts("]}");
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static int32_t send_one(const struct outflow *out, const uint8_t *data)
{
    if (out->stream == ACTIONS) return submit(room, data, (int32_t)out->bytes, FIRST_TYPE, NULL);
    uint16_t type = (uint16_t)(FIRST_TYPE + out->stream);
    if (out->extended) return send_with(room, out->peer, data, (int32_t)out->bytes, type, &out->options);
    return net.SendToPeer(out->peer, data, (int32_t)out->bytes, type, 0);
}

static void *send_all(void *argument)
{
    struct outflow *out = argument;
    uint8_t *data = malloc(out->bytes);
    memcpy(data, noise, out->bytes);
    uint64_t began = now_ns(), refused = 0;
    for (uint64_t number = 0; number < out->count; number++) {
        uint64_t due = out->hz > 0 ? began + (uint64_t)((double)number * 1e9 / out->hz) : now_ns();
        if (out->hz > 0) sleep_until(due);
        struct stamp stamp = {due, number};
        memcpy(data, &stamp, sizeof stamp);
        for (;;) {
            int32_t code = send_one(out, data);
            if (code == 0) break;
            /* The peer is away for a while, or the queue is full. */
            if (code != SEND_QUEUE_FULL && code != PEER_NOT_FOUND) must(code, "a send");
            refused++;
            sleep_until(now_ns() + 500000);
        }
    }
    pthread_mutex_lock(&output);
    if (out->stream == ACTIONS) printf("{\"event\": \"submitted\"");
    else printf("{\"event\": \"sent\", \"stream\": %d", out->stream);
    printf(", \"count\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"seconds\": %.6f}\n", out->count, refused,
           (double)(now_ns() - began) / 1e9);
    fflush(stdout);
    pthread_mutex_unlock(&output);
    free(data);
    free(out);
    return NULL;
}

static void start_stream(const char *text)
{
    struct outflow *out = calloc(1, sizeof *out);
    unsigned delivery = 0, channel = 0, ttl_ms = 0;
    int priority = 0;
    unsigned long long count = 0, key = 0;
    int words = sscanf(text, "%d %64s %lf %zu %llu %u %u %d %u %llu", &out->stream, out->peer, &out->hz, &out->bytes,
                       &count, &delivery, &channel, &priority, &ttl_ms, &key);
    out->count = count;
    out->extended = words == 10;
    out->options = (MmnSendOptions){
        .struct_size = sizeof(MmnSendOptions),
        .delivery = (uint8_t)delivery,
        .channel = (uint8_t)channel,
        .priority = (int8_t)priority,
        .ttl_ms = ttl_ms,
        .key = key,
    };
    pthread_t sender;
    if ((words != 5 && words != 10) || out->stream < 0 || out->stream >= MAX_STREAMS || out->bytes < sizeof(struct stamp) ||
        out->bytes > MAX_BYTES || (out->extended && !send_with) || pthread_create(&sender, NULL, send_all, out) != 0) {
        fprintf(stderr, "%s: cannot send: %s%s\n", own_id, text, send_with ? "" : " (the library has no mmn_send)");
        _exit(2);
    }
    pthread_detach(sender);
}

static void start_actions(const char *text)
{
    struct outflow *out = calloc(1, sizeof *out);
    out->stream = ACTIONS;
    pthread_t sender;
    if (!snapshot || sscanf(text, "%lf %zu %" SCNu64, &out->hz, &out->bytes, &out->count) != 3 || out->bytes < sizeof(struct stamp) ||
        out->bytes > MAX_BYTES || pthread_create(&sender, NULL, send_all, out) != 0) {
        fprintf(stderr, "%s: cannot submit: %s\n", own_id, text);
        _exit(2);
    }
    pthread_detach(sender);
}

static void start_transfer(const char *text)
{
    char peer[65];
    size_t bytes;
    if (!send_transfer || sscanf(text, "%64s %zu", peer, &bytes) != 2 || bytes > INT32_MAX) {
        fprintf(stderr, "%s: cannot transfer: %s\n", own_id, text);
        _exit(2);
    }
    uint8_t *file = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) file[i] = noise[i % MAX_BYTES];
    must(send_transfer(room, peer, file, (int32_t)bytes, NULL, 0, NULL), "mmn_send_transfer");
    free(file);
}

static void take_transfers(void *library)
{
    *(void **)&send_transfer = dlsym(library, "mmn_send_transfer");
    *(void **)&accept_transfer = dlsym(library, "mmn_accept_transfer");
    __typeof__(&mmn_set_event_handler) set_event_handler;
    *(void **)&set_event_handler = dlsym(library, "mmn_set_event_handler");
    /* With a state, MmnOptions has the handler. */
    if (send_transfer && !snapshot) must(set_event_handler(room, on_event, NULL, NULL), "mmn_set_event_handler");
}

static void keep_state(void *library, MmnOptions *options, int32_t bytes)
{
    static MmnStateOptions state = {.struct_size = sizeof state};
    __typeof__(&mmn_default_state_options) defaults;
    *(void **)&defaults = dlsym(library, "mmn_default_state_options");
    *(void **)&submit = dlsym(library, "mmn_submit");
    *(void **)&provide_snapshot = dlsym(library, "mmn_provide_snapshot");
    must(defaults(&state), "mmn_default_state_options");
    snapshot = malloc((size_t)bytes);
    for (int32_t i = 0; i < bytes; i++) snapshot[i] = noise[i % MAX_BYTES];
    snapshot_bytes = bytes;
    options->state = &state;
    options->on_event = on_event;
    options->discovery_mode = MMN_DISCOVERY_OFF;
}

static void enter(void *library, const char *session, const char *role)
{
    int creates = strcmp(role, "create") == 0;
    __typeof__(&mmn_default_options) defaults;
    __typeof__(&mmn_open) open;
    *(void **)&defaults = dlsym(library, "mmn_default_options");
    *(void **)&open = dlsym(library, "mmn_open");
    MmnOptions options = {.struct_size = sizeof options};
    must(defaults(&options), "mmn_default_options");
    options.is_default = 1;
    options.send_queue_capacity = 128;
    options.incoming_queue_capacity = 256;
    if (creates || strcmp(role, "join") == 0) {
        options.discovery_mode = MMN_DISCOVERY_OFF;
        options.entry = creates ? MMN_ENTRY_CREATE : MMN_ENTRY_JOIN;
    } else if (strncmp(role, "state=", 6) == 0) {
        keep_state(library, &options, atoi(role + 6));
    } else if (strncmp(role, "relay=", 6) == 0) {
        options.discovery_mode = MMN_DISCOVERY_OFF;
        options.relays = role + 6;
    } else {
        options.topology = MMN_TOPOLOGY_STAR;
        options.host_mode = strcmp(role, "host") == 0 ? MMN_HOST_MODE_HOST : MMN_HOST_MODE_GUEST;
    }
    must(open(own_id, session, &options, &room), "mmn_open");
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    if (argc != 3 && argc != 4) return fputs("usage: bench_host ID SESSION [ROLE]\n", stderr), 2;
    own_id = argv[1];
    void *library = load_classic();
    *(void **)&send_with = dlsym(library, "mmn_send");
    __typeof__(&mmn_default_room) default_room;
    *(void **)&default_room = dlsym(library, "mmn_default_room");
    uint64_t state = 88172645463325252u; /* xorshift */
    for (size_t i = 0; i < sizeof noise; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        noise[i] = (uint8_t)state;
    }
    /* As in a game: the defaults, without discovery. */
    struct network_config config = QUIET_CONFIG;
    config.send_queue_capacity = 128;
    config.incoming_queue_capacity = 256;
    if (argc == 4) enter(library, argv[2], argv[3]);
    else must(net.InitializeNetworkWithConfig(own_id, argv[2], &config), "InitializeNetworkWithConfig");
    if (default_room) room = default_room();
    take_transfers(library);
    must(net.RegisterReceiveCallback(on_receive), "RegisterReceiveCallback");
    must(net.RegisterLeaderChangedCallback(on_leader), "RegisterLeaderChangedCallback");
    must(net.RegisterPeerStatusCallback(on_status), "RegisterPeerStatusCallback");
    pthread_mutex_lock(&output);
    printf("{\"event\": \"ready\", \"address\": \"%s\"}\n", net.GetLocalAddr());
    fflush(stdout);
    pthread_mutex_unlock(&output);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "connect ", 8) == 0) must(net.ConnectToPeer(line + 8), "ConnectToPeer");
        else if (strncmp(line, "send ", 5) == 0) start_stream(line + 5);
        else if (strncmp(line, "transfer ", 9) == 0) start_transfer(line + 9);
        else if (strncmp(line, "submit ", 7) == 0) start_actions(line + 7);
        else if (strcmp(line, "report") == 0) report();
        else if (strcmp(line, "leave") == 0) return must(net.ShutdownNetwork(), "ShutdownNetwork"), 0;
        else return fprintf(stderr, "%s: unknown command: %s\n", own_id, line), 2;
    }
    _exit(0);
}
