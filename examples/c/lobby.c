/*
 * A lobby on the console: members, round-trip times, the players' positions, and a counter, a chat and a map that survive any
 * leader (docs/host-migration.md), in plain C, with the library loaded at run time as a game does it. The samples in the other
 * languages (csharp-sample, examples/cpp, examples/python) accept the same arguments, print the same lines and share the state.
 *
 *   gcc -std=c11 -O2 -pthread -Iinclude examples/c/lobby.c -o lobby -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./lobby --id alice --session tea
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./lobby --id bob --session tea --connect ADDRESS_OF_ALICE
 *
 * Players at home meet at a relay (docs/internet.md). The first one passes no session, and the lobby prints a new code:
 *
 *   MMN_LIBRARY=... ./lobby --id alice --relays relay.example.org
 *   MMN_LIBRARY=... ./lobby --id bob --relays relay.example.org --session CODE_OF_ALICE
 *
 * For Windows: x86_64-w64-mingw32-gcc -std=gnu11 -O2 -Iinclude examples/c/lobby.c -o lobby.exe
 */
#define _GNU_SOURCE
#include <meta_mystia_network.h>

#include "platform.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO = MMN_MIN_MESSAGE_TYPE, POSITION, LINE_MAX_BYTES = 4096 };
enum { ADD = MMN_MIN_MESSAGE_TYPE, SAY, CHAT_LINES = 50 }; /* types of actions */
enum { STEPS_PER_SECOND = 10, ROW_LENGTH = 100, MOST_PLAYERS = 64 };
enum { PLAYER_KEY = 1, POSITION_CHANNEL = 1 }; /* the key is each member's own: it moves one thing, its player */

/* The functions that this program uses. Their types come from the header's prototypes, so they cannot differ. */
#define FUNCTIONS(X)                  \
    X(mmn_default_options)            \
    X(mmn_default_state_options)      \
    X(mmn_default_seeded_options)     \
    X(mmn_generate_room_code)         \
    X(mmn_open)                       \
    X(mmn_close)                      \
    X(mmn_last_error_message)         \
    X(mmn_describe_error)             \
    X(mmn_connect)                    \
    X(mmn_local_address)              \
    X(mmn_session_id)                 \
    X(mmn_peers)                      \
    X(mmn_peer_rtt_ms)                \
    X(mmn_peer_path)                  \
    X(mmn_peer_carrier)               \
    X(mmn_set_leader)                 \
    X(mmn_transfer_leadership)        \
    X(mmn_yield_leadership)           \
    X(mmn_leader)                     \
    X(mmn_broadcast)                  \
    X(mmn_submit)                     \
    X(mmn_set_properties)             \
    X(mmn_property)                   \
    X(mmn_provide_snapshot)           \
    X(mmn_state_info)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} net;

static MmnRoom room;
static const char *own_id, *session, *contact;
static double seconds = 1e9;
static int interactive;
static uint32_t strategy = MMN_STRATEGY_RAFT, alive_ms;
/* With MMN_STRATEGY_SEEDED: comma-separated lists; a port, if this member is a seed; a directory. */
static char *voters, *seeds;
static char *relays; /* a comma-separated list, too */
static uint16_t port;
static const char *state_directory;

/* One call per line: the library's thread and the main thread both print. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[LINE_MAX_BYTES * 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("[%s] %s\n", own_id, text);
    fflush(stdout);
}

/* Prints a refused call: the program and its room continue. */
static int refused(int32_t code)
{
    if (code >= 0) return 0;
    fprintf(stderr, "[%s] error: %s (%d)\n", own_id, net.mmn_last_error_message(), (int)code);
    return 1;
}

/* Callbacks write the players' positions and the shared state below, and the main thread reads them. */
static lock_type shared_lock = LOCK_INITIALIZER;

static struct {
    char name[MMN_MAX_PEER_ID_BYTES + 1];
    char place[16];
} players[MOST_PLAYERS];

static void put(const char *name, const char *place, int length)
{
    lock(&shared_lock);
    for (int i = 0; i < MOST_PLAYERS; i++) {
        if (*players[i].name && strcmp(players[i].name, name) != 0) continue;
        snprintf(players[i].name, sizeof players[i].name, "%s", name);
        snprintf(players[i].place, sizeof players[i].place, "%.*s", length, place);
        break;
    }
    unlock(&shared_lock);
}

/* " at 12,3", or "" while it is unknown. For the main thread. */
static const char *at(const char *name)
{
    static char text[32];
    *text = 0;
    lock(&shared_lock);
    for (int i = 0; i < MOST_PLAYERS; i++) {
        if (strcmp(players[i].name, name) == 0) snprintf(text, sizeof text, " at %s", players[i].place);
    }
    unlock(&shared_lock);
    return text;
}

/* The state that all members share. Its lines are the counter and those of the chat, each with its line feed. It changes in act()
 * and load_snapshot() alone: each member does the same in the same order. */
static long long counter;
static char *chat;
static size_t chat_bytes;
static int chat_lines;

static void *allocated(void *memory)
{
    if (!memory) abort();
    return memory;
}

static void append_chat(const char *text, size_t length)
{
    chat = allocated(realloc(chat, chat_bytes + length));
    memcpy(chat + chat_bytes, text, length);
    chat_bytes += length;
}

/* Each member ignores illegal actions, in whatever program their author runs. */
static int is_legal(int type, const char *text, size_t length)
{
    if (type == SAY) return length > 0 && !memchr(text, '\n', length);
    const size_t sign = length > 0 && *text == '-', digits = length - sign;
    if (type != ADD || digits < 1 || digits > 9) return 0;
    for (size_t i = sign; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
    }
    return 1;
}

static void say_action(const char *prefix, const MmnEvent *action)
{
    say("%s%s %.*s", prefix, action->msg_type == ADD ? "add" : "say", (int)action->length, (const char *)action->data);
}

static void act(const MmnEvent *action)
{
    const char *text = (const char *)action->data;
    if (!is_legal(action->msg_type, text, (size_t)action->length)) return;
    lock(&shared_lock);
    if (action->msg_type == ADD) {
        char number[16];
        snprintf(number, sizeof number, "%.*s", (int)action->length, text);
        counter += strtoll(number, NULL, 10);
    } else {
        append_chat(action->peer, strlen(action->peer));
        append_chat(": ", 2);
        append_chat(text, (size_t)action->length);
        append_chat("\n", 1);
        if (++chat_lines > CHAT_LINES) {
            const char *second = (char *)memchr(chat, '\n', chat_bytes) + 1;
            chat_bytes -= (size_t)(second - chat);
            memmove(chat, second, chat_bytes);
            chat_lines--;
        }
    }
    unlock(&shared_lock);
    if (action->msg_type == SAY) say("chat %s: %.*s", action->peer, (int)action->length, text);
    if (action->request) say_action("confirmed ", action);
}

/* The lines, and their length in bytes. Free them. The caller holds the lock. */
static char *snapshot(size_t *length)
{
    char first[32];
    const size_t used = (size_t)snprintf(first, sizeof first, "%lld\n", counter);
    char *lines = allocated(malloc(used + chat_bytes));
    memcpy(lines, first, used);
    if (chat_bytes > 0) memcpy(lines + used, chat, chat_bytes);
    *length = used + chat_bytes;
    return lines;
}

static void load_snapshot(const char *lines, size_t length)
{
    const char *end = length > 0 ? memchr(lines, '\n', length) : NULL;
    const size_t first = end ? (size_t)(end - lines) + 1 : 0;
    char number[32] = "0";
    if (end) snprintf(number, sizeof number, "%.*s", (int)(end - lines), lines);
    lock(&shared_lock);
    counter = strtoll(number, NULL, 10);
    chat_bytes = 0;
    chat_lines = 0;
    if (length > first) append_chat(lines + first, length - first);
    for (size_t i = 0; i < chat_bytes; i++) chat_lines += chat[i] == '\n';
    unlock(&shared_lock);
    say("loaded %s, %d lines", number, chat_lines); /* no other thread changes them */
}

static void say_state(void)
{
    MmnStateInfo info = {0};
    MmnPropertyInfo map = {0};
    info.struct_size = sizeof info;
    map.struct_size = sizeof map;
    size_t length;
    lock(&shared_lock);
    char *lines = snapshot(&length);
    const int count = chat_lines;
    unlock(&shared_lock);
    uint32_t digest = 0x811C9DC5; /* FNV-1a: equal at every member, in every language */
    for (size_t i = 0; i < length; i++) digest = (digest ^ (uint8_t)lines[i]) * 0x01000193;
    refused(net.mmn_state_info(room, &info));
    const uint8_t *place = net.mmn_property(room, "map", &map);
    say("state: %.*s, %d lines, map %.*s, index %lu, digest %08x, %u unconfirmed", (int)strcspn(lines, "\n"), lines, count,
        place ? (int)map.length : 1, place ? (const char *)place : "-", (unsigned long)info.index, (unsigned)digest,
        (unsigned)info.pending);
    free(lines);
}

static void submit(int type, const char *text, size_t length)
{
    if (is_legal(type, text, length)) refused(net.mmn_submit(room, (const uint8_t *)text, (int32_t)length, (uint16_t)type, NULL));
    else fprintf(stderr, "[%s] error: not taken: %.*s\n", own_id, (int)length, text);
}

static void set_map(const char *name)
{
    MmnPropertyChange change = {0};
    change.struct_size = sizeof change;
    change.key = "map";
    change.value = (const uint8_t *)name;
    change.length = (int32_t)strlen(name);
    change.expected_version = MMN_ANY_VERSION;
    refused(net.mmn_set_properties(room, &change, 1, NULL));
}

/* Runs on a thread of the library; the event is valid during the call only. */
static void on_event(void *user_data, const MmnEvent *event)
{
    const char *peer = event->peer, *text = (const char *)event->data;
    (void)user_data;
    switch (event->kind) {
    case MMN_EVENT_MESSAGE:
        if (event->msg_type == POSITION) put(peer, text, (int)event->length);
        if (event->msg_type == HELLO) say("from %s: %.*s", peer, (int)event->length, text);
        break;
    case MMN_EVENT_LEADER_CHANGED:
        if (*peer) say("leader is %s", peer);
        else say("no leader");
        break;
    case MMN_EVENT_LEADERSHIP_GAINED: say("I lead"); break;
    case MMN_EVENT_LEADERSHIP_LOST: say("I lead no longer"); break;
    case MMN_EVENT_JOINED: say("peer %s connected", peer); break;
    case MMN_EVENT_RECONNECTING: say("peer %s is lost and dialled again", peer); break;
    case MMN_EVENT_RETURNED: say("peer %s is back", peer); break;
    case MMN_EVENT_LEFT: say("peer %s left", peer); break;
    case MMN_EVENT_ACTION: act(event); break;
    case MMN_EVENT_STATE_RESET: load_snapshot(text, (size_t)event->length); break;
    case MMN_EVENT_SNAPSHOT_WANTED: {
        size_t length;
        lock(&shared_lock);
        char *lines = snapshot(&length);
        unlock(&shared_lock);
        net.mmn_provide_snapshot(event->room, event->request, (const uint8_t *)lines, (int32_t)length);
        free(lines);
        break;
    }
    case MMN_EVENT_ROLLED_BACK: {
        char prefix[MMN_MAX_PEER_ID_BYTES + 32];
        snprintf(prefix, sizeof prefix, "rolled back %s: ", peer);
        say_action(prefix, event);
        /* A line may come twice; a number must not. */
        if (event->request && event->msg_type == SAY) submit(SAY, text, (size_t)event->length);
        break;
    }
    case MMN_EVENT_PROPERTY: say("%s is %.*s", event->other, (int)event->length, text); break;
    case MMN_EVENT_STATE_OPENED:
        if (*peer) say("the state %s under %s", event->success ? "goes on" : "forks", peer);
        else say("the state waits for a leader");
        break;
    case MMN_EVENT_ACTION_RESULT:
        if (event->code < 0) say("not confirmed: error %d %s", (int)event->code, net.mmn_describe_error(event->code));
        break;
    case MMN_EVENT_RELAY:
        if (event->success) say("relay %s: entered", event->other);
        else say("relay %s: %.*s", event->other, (int)event->length, text);
        break;
    case MMN_EVENT_CONNECTION_RESULT:
        if (event->success) say("dialled %s: ok", event->other);
        else say("dialled %s: error %d %s", event->other, (int)event->code, net.mmn_describe_error(event->code));
        break;
    default: break;
    }
}

/* Moves along a row, and on in the next one. A lost position is not sent again: the next one replaces it. */
static void walk(int step)
{
    MmnSendOptions options = {0};
    options.struct_size = sizeof options;
    options.delivery = MMN_DELIVERY_SEQUENCED;
    options.channel = POSITION_CHANNEL;
    options.key = PLAYER_KEY;
    char place[16];
    int length = snprintf(place, sizeof place, "%d,%d", step % ROW_LENGTH, step / ROW_LENGTH);
    put(own_id, place, length);
    refused(net.mmn_broadcast(room, (const uint8_t *)place, (int32_t)length, POSITION, &options));
}

/* Ends the first line of the rest, and moves behind it; NULL when none is left. */
static char *next_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    if (!*line) return NULL;
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    return line;
}

/* "direct", "over a relay", "through a TURN server", or "through " and the member that carries the packets. */
static const char *path_to(const char *name)
{
    static char text[MMN_MAX_PEER_ID_BYTES + 32];
    const int32_t path = net.mmn_peer_path(room, name);
    const char *carrier = net.mmn_peer_carrier(room, name);
    if (path == MMN_PATH_THROUGH_RELAY) return "over a relay";
    if (path == MMN_PATH_THROUGH_TURN) return "through a TURN server";
    if (!carrier) return "direct";
    snprintf(text, sizeof text, "through %s", carrier);
    if (path == MMN_PATH_THROUGH_LEADER) strcat(text, " (leader)");
    return text;
}

static void say_members(void)
{
    char text[LINE_MAX_BYTES] = "members:", peers[LINE_MAX_BYTES];
    size_t used = strlen(text);
    int own_done = 0;
    const char *list = net.mmn_peers(room);
    /* Copied at once: the library's string lives until this thread's next call that returns one. */
    snprintf(peers, sizeof peers, "%s", list ? list : "");

    char *rest = peers, *name = next_line(&rest);
    while ((name || !own_done) && used < sizeof text) {
        /* The list is sorted and without this member, which this puts in its place. */
        if (!own_done && (!name || strcmp(own_id, name) < 0)) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %s(0 ms)%s", own_id, at(own_id));
            own_done = 1;
            continue;
        }
        int32_t rtt = net.mmn_peer_rtt_ms(room, name);
        char shown[16] = "-";
        if (rtt >= 0) snprintf(shown, sizeof shown, "%d", (int)rtt);
        used += (size_t)snprintf(text + used, sizeof text - used, " %s(%s ms, %s)%s", name, shown, path_to(name), at(name));
        name = next_line(&rest);
    }
    const char *leader = net.mmn_leader(room);
    if (leader && *leader) say("%s; leader: %s", text, leader);
    else say("%s; no leader", text);
}

/* Carries out a line of the player. 0 when it is time to leave. */
static int obey(const char *line)
{
    if (strcmp(line, "/quit") == 0) return 0;
    if (strncmp(line, "/leader ", 8) == 0) refused(net.mmn_set_leader(room, line + 8));
    else if (strncmp(line, "/transfer ", 10) == 0) refused(net.mmn_transfer_leadership(room, line + 10));
    else if (strcmp(line, "/yield") == 0) refused(net.mmn_yield_leadership(room));
    else if (strncmp(line, "/map ", 5) == 0) set_map(line + 5);
    else if (strncmp(line, "/add ", 5) == 0) submit(ADD, line + 5, strlen(line + 5));
    else if (*line) submit(SAY, line, strlen(line));
    return 1;
}

/* Carries out the player's lines until `until`; 0 when it is time to leave. */
static int listen_until(double until)
{
    static char pending[LINE_MAX_BYTES];
    static size_t used;
    for (;;) {
        double left = until - now_seconds();
        if (left <= 0) return 1;
        if (!interactive) {
            wait_seconds(left);
            continue;
        }
        long got = read_input(pending + used, sizeof pending - 1 - used, left);
        if (got < 0) return 0;
        used += (size_t)got;
        char *line = pending, *end;
        while ((end = memchr(line, '\n', used - (size_t)(line - pending)))) {
            *end = 0;
            if (end > line && end[-1] == '\r') end[-1] = 0; /* Windows ends lines with both */
            if (!obey(line)) return 0;
            line = end + 1;
        }
        used -= (size_t)(line - pending);
        memmove(pending, line, used);
        if (used == sizeof pending - 1) used = 0; /* longer than any valid line */
    }
}

static void run(void)
{
    say("listening on %s", net.mmn_local_address(room));
    if (relays) say("the room's code is %s", net.mmn_session_id(room));
    if (contact) refused(net.mmn_connect(room, contact));

    double start = now_seconds();
    for (int step = 1;; step++) {
        double next = (double)step / STEPS_PER_SECOND;
        if (next > seconds) next = seconds;
        if (!listen_until(start + next) || now_seconds() >= start + seconds) return;
        walk(step);
        if (step % STEPS_PER_SECOND != 0) continue;
        char text[LINE_MAX_BYTES];
        snprintf(text, sizeof text, "hello %d from %s", step / STEPS_PER_SECOND, own_id);
        refused(net.mmn_broadcast(room, (const uint8_t *)text, (int32_t)strlen(text), HELLO, NULL));
        say_members();
        say_state();
    }
}

static int load(void)
{
    const char *path = getenv("MMN_LIBRARY");
    void *library = open_library(path ? path : LIBRARY_FILE);
    if (!library) {
        fprintf(stderr, "cannot load the library (set MMN_LIBRARY to its path): %s\n", library_error());
        return 0;
    }
    /* ISO C has no cast from an object pointer to a function pointer; POSIX and Windows promise that this works. */
#define RESOLVE(name)                                            \
    *(void **)&net.name = find_symbol(library, #name);           \
    if (!net.name) {                                             \
        fprintf(stderr, "the library has no function " #name "\n"); \
        return 0;                                                \
    }
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    return 1;
}

/* One entry per line, as the library expects. */
static char *lines(char *list)
{
    for (char *comma = list; (comma = strchr(comma, ','));) *comma = '\n';
    return list;
}

static int parse(int argc, char **argv)
{
    interactive = input_is_terminal();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--interactive") == 0) {
            interactive = 1;
            continue;
        }
        if (i + 1 == argc) return 0;
        if (strcmp(argv[i], "--id") == 0) own_id = argv[i + 1];
        else if (strcmp(argv[i], "--session") == 0) session = argv[i + 1];
        else if (strcmp(argv[i], "--relays") == 0) relays = lines(argv[i + 1]);
        else if (strcmp(argv[i], "--connect") == 0) contact = argv[i + 1];
        else if (strcmp(argv[i], "--seconds") == 0) seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--alive-ms") == 0) alive_ms = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--voters") == 0) voters = lines(argv[i + 1]);
        else if (strcmp(argv[i], "--seeds") == 0) seeds = lines(argv[i + 1]);
        else if (strcmp(argv[i], "--port") == 0) port = (uint16_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--state") == 0) state_directory = argv[i + 1];
        else if (strcmp(argv[i], "--strategy") == 0 && strcmp(argv[i + 1], "seeded") == 0) strategy = MMN_STRATEGY_SEEDED;
        else if (strcmp(argv[i], "--strategy") == 0 && strcmp(argv[i + 1], "gossip") == 0) strategy = MMN_STRATEGY_GOSSIP;
        else if (strcmp(argv[i], "--strategy") == 0 && strcmp(argv[i + 1], "raft") == 0) strategy = MMN_STRATEGY_RAFT;
        else return 0;
        i++;
    }
    return own_id && (session || relays);
}

static int32_t enter(void)
{
    MmnOptions options = {0};
    options.struct_size = sizeof options;
    net.mmn_default_options(&options);
    options.on_event = on_event;
    options.discovery_mode = MMN_DISCOVERY_CONNECT;
    options.strategy = strategy;
    MmnStateOptions state = {0};
    state.struct_size = sizeof state;
    net.mmn_default_state_options(&state);
    options.state = &state;
    options.relays = relays;
    static char code[MMN_ROOM_CODE_BYTES];
    if (!session) {
        if (net.mmn_generate_room_code(code, sizeof code) < 0) return MMN_INTERNAL_ERROR;
        session = code;
    }
    /* Gossip, in one local network: all members start at about the same time, and receive the others' messages at once. */
    if (alive_ms > 0) {
        options.startup_grace_ms = alive_ms;
        options.sample_interval_ms = alive_ms < 5 ? 1 : alive_ms / 5;
        options.alive_threshold_ms = alive_ms;
        options.election_duration_ms = alive_ms < 2 ? 1 : alive_ms / 2;
    }
    /* A group that never splits, with the times of one local network. */
    MmnSeededOptions seeded = {0};
    if (strategy == MMN_STRATEGY_SEEDED) {
        seeded.struct_size = sizeof seeded;
        net.mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, &seeded);
        seeded.is_seed = port > 0;
        seeded.seeds = seeds;
        options.seeded = &seeded;
        options.bind_port = port;
        options.quorum_roster = voters;
        options.state_directory = state_directory;
        options.discovery_mode = MMN_DISCOVERY_OFF;
    }
    return net.mmn_open(own_id, session, &options, &room);
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive]\n"
                        "             [--relays RELAY,...], and then --session CODE, or none for a new code\n"
                        "             [--strategy raft|gossip|seeded] [--alive-ms N]\n"
                        "             [--voters ID,... --seeds ADDR,... --port N --state DIRECTORY]\n"
                        "Standard input, on a terminal or with --interactive: text is chat, /add N, /map NAME, /leader NAME,\n"
                        "/transfer NAME, /yield, /quit.\n");
        return 2;
    }
    if (!load()) return 1;
    if (refused(enter())) return 1;
    run();
    if (refused(net.mmn_close(room))) return 1;
    say("closed");
    return 0;
}
