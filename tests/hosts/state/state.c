/*
 * Three rooms of one process, each on the thread that polls it, keep one state.
 *
 *   gcc -std=gnu11 -O2 -pthread -Iinclude tests/hosts/state/state.c -o state -ldl
 *   MMN_LIBRARY=... ./state SESSION
 *
 * Each member submits ACTIONS actions, and all three set one property with compare-and-set until each has succeeded once. All
 * hosts must receive one order, with each member's own requests, and each call must have one result. Then the leader leaves,
 * and the other two go on. Prints "ok". The first broken promise ends it.
 */
#define _GNU_SOURCE
#include <meta_mystia_network.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ADD = 0x0100, MEMBERS = 3, ACTIONS = 40, MOST_LINES = 512, MOST_REQUESTS = 128, LINE = 48 };
static const double TIMEOUT_SECONDS = 60;
static const char KEY[] = "counter";

static struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
    MMN_FUNCTIONS(MEMBER)
#undef MEMBER
} net;

static struct member {
    const char *id;
    MmnRoom room;
    int is_open;
    /* The history as this host has received it: actions, and values of the property. */
    char lines[MOST_LINES][LINE];
    int line_count;
    uint64_t last_index;
    /* By number. */
    int pending[MOST_REQUESTS], results[MOST_REQUESTS];
    int own_actions;
    uint64_t setting; /* the open compare-and-set, or 0 */
    int has_counted, conflicts, resets, here;
    char opened_by[MMN_MAX_PEER_ID_BYTES + 1];
} members[MEMBERS] = {{.id = "reimu"}, {.id = "marisa"}, {.id = "cirno"}};

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED: ");
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

static int was_refused_with(const char *text) { return strstr(net.mmn_last_error_message(), text) != NULL; }

static void add_line(struct member *self, const MmnEvent *event, char kind)
{
    if (self->line_count == MOST_LINES) fail("%s received too much", self->id);
    /* Entries come in the order of their indexes. */
    if (event->index <= self->last_index) fail("%s received %llu late", self->id, (unsigned long long)event->index);
    self->last_index = event->index;
    snprintf(self->lines[self->line_count++], LINE, "%c %llu %.16s %.*s", kind, (unsigned long long)event->index, event->peer,
             (int)event->length, (const char *)event->data);
}

/* mmn_property already shows an entry's changes, and its pointers stay until the callback returns. */
static void check_property(struct member *self, const MmnEvent *event)
{
    MmnPropertyInfo info = {.struct_size = sizeof info}, other = {.struct_size = sizeof other};
    const uint8_t *value = net.mmn_property(event->room, KEY, &info);
    for (int i = 0; i < 100; i++) {
        net.mmn_property(event->room, KEY, &other);
        net.mmn_property_keys(event->room, NULL);
    }
    if (!value || info.length != event->length || memcmp(value, event->data, (size_t)info.length) != 0)
        fail("%s: mmn_property has another value", self->id);
    if (info.version != event->count || info.version != event->index || info.flags != 0 || *info.owner || *event->owner)
        fail("%s: mmn_property has another version", self->id);
    if (net.mmn_property(event->room, "no such key", NULL)) fail("a property that nobody has set");
}

static void on_event(void *user_data, const MmnEvent *event)
{
    struct member *self = user_data;
    switch (event->kind) {
    case MMN_EVENT_ACTION: {
        int is_own = strcmp(event->peer, self->id) == 0;
        if (is_own != (event->request != 0)) fail("%s: the request of an action is %llu", self->id, (unsigned long long)event->request);
        if (event->msg_type != ADD) fail("another message type");
        self->own_actions += is_own;
        add_line(self, event, 'a');
        break;
    }
    case MMN_EVENT_PROPERTY:
        if (strcmp(event->other, KEY) != 0 || !event->success) fail("%s: another property", self->id);
        check_property(self, event);
        add_line(self, event, 'p');
        break;
    case MMN_EVENT_ACTION_RESULT:
        if (event->request >= MOST_REQUESTS || !self->pending[event->request]) fail("%s: a result without a request", self->id);
        self->pending[event->request] = 0;
        self->results[event->request]++;
        if (event->request == self->setting) {
            self->setting = 0;
            if (event->code == MMN_OK) self->has_counted = 1;
            else if (event->code == MMN_CONFLICT) self->conflicts++;
            else fail("%s: a property set ended with %d", self->id, (int)event->code);
        } else if (event->code != MMN_OK) {
            fail("%s: an action ended with %d", self->id, (int)event->code);
        }
        break;
    case MMN_EVENT_STATE_RESET:
        if (event->reason != MMN_RESET_JOINED || event->code != MMN_OK || event->length || self->line_count)
            fail("%s: a reset for the reason %d", self->id, (int)event->reason);
        self->resets++;
        break;
    case MMN_EVENT_STATE_OPENED: snprintf(self->opened_by, sizeof self->opened_by, "%s", event->peer); break;
    case MMN_EVENT_STATE_MEMBER: self->here += event->success ? 1 : -1; break;
    case MMN_EVENT_ROLLED_BACK: fail("%s: an action was undone", self->id);
    }
}

static void poll_all(void)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (!members[i].is_open) continue;
        int32_t ran = net.mmn_poll(members[i].room, INT32_MAX);
        if (ran < 0) must_return(MMN_OK, ran, "mmn_poll");
    }
    usleep(2000);
}

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#define POLL_UNTIL(condition)                                                                  \
    for (double end = now_seconds() + TIMEOUT_SECONDS; !(condition);) {                        \
        poll_all();                                                                            \
        if (now_seconds() > end) fail("not within %.0f s: %s", TIMEOUT_SECONDS, #condition);    \
    }

static void accepted(struct member *self, uint64_t request)
{
    if (request == 0 || request >= MOST_REQUESTS || self->results[request] || self->pending[request]++)
        fail("%s: the request %llu is not new", self->id, (unsigned long long)request);
}

static void submit(struct member *self, int number)
{
    char text[24];
    int32_t length = snprintf(text, sizeof text, "%d", number);
    uint64_t request = 0;
    must_return(MMN_OK, net.mmn_submit(self->room, (const uint8_t *)text, length, ADD, &request), "mmn_submit");
    accepted(self, request);
}

/* One more than the value that this host has seen, if it is still that. */
static void count(struct member *self)
{
    MmnPropertyInfo info = {.struct_size = sizeof info};
    const uint8_t *seen = net.mmn_property(self->room, KEY, &info);
    char text[24] = "";
    if (seen) snprintf(text, sizeof text, "%.*s", (int)info.length, (const char *)seen);
    char next[24];
    MmnPropertyChange change = {.struct_size = sizeof change};
    change.key = KEY;
    change.length = snprintf(next, sizeof next, "%d", atoi(text) + 1);
    change.value = (const uint8_t *)next;
    change.expected_version = info.version; /* 0: it must not exist */
    must_return(MMN_OK, net.mmn_set_properties(self->room, &change, 1, &self->setting), "mmn_set_properties");
    accepted(self, self->setting);
}

static int all_here(int number)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].is_open && (members[i].here != number || !*members[i].opened_by)) return 0;
    }
    return 1;
}

/* Each member's requests have their results, and all hosts have received as much. */
static int all_done(int lines)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (!members[i].is_open) continue;
        if (members[i].line_count < lines || members[i].setting) return 0;
        for (int request = 0; request < MOST_REQUESTS; request++) {
            if (members[i].pending[request]) return 0;
        }
    }
    return 1;
}

static void must_be_equal(int lines)
{
    const struct member *first = NULL;
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        if (!member->is_open) continue;
        if (!first) first = member;
        if (member->line_count != lines) fail("%s received %d entries and not %d", member->id, member->line_count, lines);
        for (int line = 0; line < lines; line++) {
            if (strcmp(member->lines[line], first->lines[line]) != 0)
                fail("%s received \"%s\" and %s \"%s\"", member->id, member->lines[line], first->id, first->lines[line]);
        }
    }
}

static void info_must_fit(struct member *self, uint32_t counted)
{
    MmnStateInfo info = {.struct_size = sizeof info};
    must_return(MMN_OK, net.mmn_state_info(self->room, &info), "mmn_state_info");
    if (info.members != counted || !info.exclusive || info.pending || !info.history || !info.ballot || info.index < self->last_index
        || info.confirmed < info.index || !info.bytes)
        fail("%s: mmn_state_info has %u members, %u pending, index %llu", self->id, info.members, info.pending,
             (unsigned long long)info.index);
}

static void refusals(struct member *self)
{
    static const uint8_t data[16385];
    uint64_t request = 7;
    must_return(MMN_MESSAGE_TOO_LARGE, net.mmn_submit(self->room, data, sizeof data, ADD, &request), "a long action");
    must_return(MMN_INVALID_ARGUMENT, net.mmn_submit(self->room, data, 1, 0xff, &request), "a message type of the library");
    must_return(MMN_PEER_NOT_FOUND, net.mmn_provide_snapshot(self->room, 99, data, 1), "a snapshot that no member needs");
    MmnPropertyChange change = {.struct_size = sizeof change, .flags = 64, .key = KEY};
    must_return(MMN_INVALID_ARGUMENT, net.mmn_set_properties(self->room, &change, 1, &request), "an unknown flag");
    if (!was_refused_with("changes[0].flags is 64")) fail("another message");
    if (request != 7) fail("a refused call gave a number");
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

static void open_all(const char *session)
{
    MmnStateOptions state = {.struct_size = sizeof state};
    must_return(MMN_OK, net.mmn_default_state_options(&state), "mmn_default_state_options");
    MmnOptions options = {.struct_size = sizeof options};
    must_return(MMN_OK, net.mmn_default_options(&options), "mmn_default_options");
    options.dispatch_mode = MMN_DISPATCH_POLL;
    options.discovery_mode = MMN_DISCOVERY_OFF;
    /* A busy machine must not look like a lost link. */
    options.heartbeat_timeout_multiplier = 10;
    options.election_timeout_min_ms = 5000, options.election_timeout_max_ms = 6000;
    options.on_event = on_event;
    options.state = &state;
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &members[i];
        options.user_data = member;
        /* The first one creates the room: two logs that merge would be another test. */
        options.entry = i == 0 ? MMN_ENTRY_CREATE : MMN_ENTRY_JOIN;
        must_return(MMN_OK, net.mmn_open(member->id, session, &options, &member->room), "mmn_open");
        member->is_open = 1;
        for (int other = 0; other < i; other++)
            must_return(MMN_OK, net.mmn_connect(member->room, net.mmn_local_address(members[other].room)), "mmn_connect");
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: state SESSION\n"), 2;
    load();
    open_all(argv[1]);
    POLL_UNTIL(all_here(MEMBERS));
    refusals(&members[1]);

    for (int number = 0; number < ACTIONS; number++) {
        for (int i = 0; i < MEMBERS; i++) submit(&members[i], number);
        if (number == 0) {
            for (int i = 0; i < MEMBERS; i++) count(&members[i]);
        }
        poll_all();
    }
    int conflicts = 0;
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &members[i];
        for (;;) {
            POLL_UNTIL(!member->setting);
            if (member->has_counted) break;
            count(member);
        }
        conflicts += member->conflicts;
    }
    /* All three have read the same version at the beginning, and one of them has won. */
    if (conflicts < MEMBERS - 1) fail("%d conflicts", conflicts);
    int lines = MEMBERS * ACTIONS + MEMBERS;
    POLL_UNTIL(all_done(lines));
    must_be_equal(lines);
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].own_actions != ACTIONS || members[i].resets != 1) fail("%s: %d actions of its own", members[i].id, members[i].own_actions);
        MmnPropertyInfo info = {.struct_size = sizeof info};
        const uint8_t *value = net.mmn_property(members[i].room, KEY, &info);
        if (!value || info.length != 1 || *value != '3') fail("%s: the property is not 3", members[i].id);
        if (strcmp(net.mmn_property_keys(members[i].room, NULL), KEY) != 0) fail("other keys");
        if (*net.mmn_property_keys(members[i].room, members[0].id)) fail("a property with an owner");
        info_must_fit(&members[i], MEMBERS);
    }

    /* The leader leaves, and the state stays. */
    int leader = 0;
    while (strcmp(members[leader].id, members[0].opened_by) != 0) leader++;
    must_return(MMN_OK, net.mmn_close(members[leader].room), "mmn_close");
    members[leader].is_open = 0;
    must_return(MMN_NOT_INITIALIZED, net.mmn_submit(members[leader].room, NULL, 0, ADD, NULL), "a closed room");
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].is_open) submit(&members[i], ACTIONS);
    }
    lines += MEMBERS - 1;
    POLL_UNTIL(all_done(lines) && all_here(MEMBERS - 1));
    must_be_equal(lines);
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].is_open) must_return(MMN_OK, net.mmn_close(members[i].room), "mmn_close");
    }
    printf("ok\n");
    return 0;
}
