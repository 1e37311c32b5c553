/* Part of chaos.c: the functions with a room, called with rooms that are open, closed, made up, or none. Their structs come from
 * the library's header. */
static struct {
#define MORE(result, name, parameters) result (*name) parameters;
    MMN_FUNCTIONS(MORE)
    MMN_CLASSIC_FUNCTIONS(MORE) /* ten of them are not in classic.h */
#undef MORE
} more;

/* ------------------------------------------------------------------ rooms */

enum { ROOMS = 3, CLOSED = 8 };
/* The open rooms beside the default one, or 0, and some that were closed. */
static atomic_ullong rooms[ROOMS], closed_rooms[CLOSED];
static atomic_llong opened_rooms, polled_rooms, gossip_rooms, seeded_rooms;

static MmnRoom any_room(void)
{
    switch (below(12)) {
    case 0: return 0;
    case 1: return one_in(2) ? chance() : below(1 << 16);
    case 2: return atomic_load(&closed_rooms[below(CLOSED)]);
    case 3:
    case 4: return atomic_load(&rooms[below(ROOMS)]);
    default: return more.mmn_default_room();
    }
}

static int is_room(MmnRoom room)
{
    if (room >> 53) fail("%s answered the room %llu", atomic_load(&self->in), (unsigned long long)room);
    return room != 0;
}

static int count_or_code(int32_t answer) { return answer > 0 ? 1 : code(answer); }

static int count_of(int64_t answer)
{
    if (answer < -1) fail("%s answered %lld", atomic_load(&self->in), (long long)answer);
    return answer >= 0;
}

/* ------------------------------------------------------------------ structs */

enum { ROOMY = 4096 /* bytes: more than any struct has */ };

static uint32_t any_size(uint32_t right)
{
    const uint32_t sizes[] = {0, 3, 4, 7, 8, 20, 48, right - 1, right + 1, ROOMY};
    return one_in(4) ? ANY(sizes) : right;
}

/* The call fills a struct; its struct_size stays, and so does the memory behind that many bytes. */
#define FILLS(type, call)                                                                                      \
    {                                                                                                          \
        union {                                                                                                \
            type its;                                                                                          \
            uint8_t space[ROOMY];                                                                              \
        } all;                                                                                                 \
        memset(&all, 0xaa, sizeof all);                                                                        \
        uint32_t size = all.its.struct_size = any_size(sizeof(type));                                          \
        type *filled = one_in(32) ? NULL : &all.its;                                                           \
        int accepted = code(call);                                                                             \
        if (all.its.struct_size != size) fail("%s changed struct_size", atomic_load(&self->in));               \
        for (size_t i = !accepted || size < 4 ? 4 : size; i < sizeof all; i++)                                 \
            if (all.space[i] != 0xaa) fail("%s wrote byte %zu of %u", atomic_load(&self->in), i, size);        \
        return accepted;                                                                                       \
    }
static int default_options(void) FILLS(MmnOptions, more.mmn_default_options(filled))
static int default_seeded(void) FILLS(MmnSeededOptions, more.mmn_default_seeded_options(below(3), filled))
static int default_state(void) FILLS(MmnStateOptions, more.mmn_default_state_options(filled))
static int state_info(void) FILLS(MmnStateInfo, more.mmn_state_info(any_room(), filled))
static int default_etcd(void) FILLS(MmnEtcdOptions, more.mmn_default_etcd_options(filled))
static int peer_stats(void) FILLS(MmnPeerStats, more.mmn_peer_stats(any_room(), any_peer(), filled))
static int room_time(void) { return at_least(more.mmn_room_time_ms(any_room()) < 0 ? -1 : 0, -1); }
static int room_stats(void) FILLS(MmnRoomStats, more.mmn_room_stats(any_room(), filled))
static int get_windows(void) FILLS(MmnGossipWindows, more.mmn_gossip_windows(any_room(), filled))

/* For the windows of gossip. What the classic functions set persists into later default rooms. */
static uint32_t a_window(void) { return one_in(8) ? 0 : 20 + below(2000); }

static int set_windows(void)
{
    MmnGossipWindows windows = {sizeof windows, a_window(), a_window(), a_window(), a_window()};
    return code(more.mmn_set_gossip_windows(any_room(), one_in(16) ? NULL : &windows));
}

/* ------------------------------------------------------------------ options */

/* In the environment, so that the peers elect by gossip. */
static const char GOSSIP[] = "MMN_CHAOS_GOSSIP";

static uint32_t strategy(void) { return getenv(GOSSIP) ? MMN_STRATEGY_GOSSIP : MMN_STRATEGY_RAFT; }

/* Opens the default room, without discovery. It elects as the peers do; gossip elects in less than 2 s. */
static int32_t enter(const char *id, const char *name, uint32_t dispatch_mode)
{
    MmnOptions options = {.struct_size = sizeof options};
    more.mmn_default_options(&options);
    options.is_default = 1, options.dispatch_mode = dispatch_mode, options.strategy = strategy();
    more.SetMembershipSampleInterval(100), more.SetStartupGracePeriod(500);
    more.SetLeaderAliveThreshold(500), more.SetLeaderElectionDuration(500);
    MmnRoom room;
    return more.mmn_open(id, name, &options, &room);
}

/* State files of rooms with a static quorum. */
static char state_directory[] = "/tmp/mmn-chaos-XXXXXX";
/* State files of seeded clusters: no file serves both strategies. */
static char cluster_directory[] = "/tmp/mmn-chaos-seeded-XXXXXX";
static char trace_path[64];

static void make_states(void)
{
    if (!mkdtemp(state_directory) || !mkdtemp(cluster_directory)) fail("mkdtemp: %s", strerror(errno));
    snprintf(trace_path, sizeof trace_path, "%s/trace", state_directory);
}

/* Usually a cluster whose seeds are this node and an absent one. */
static const MmnSeededOptions *any_seeded(MmnSeededOptions *seeded)
{
    static const char *const seeds[] = {"127.0.0.1:9", "[::1]:9\nlocalhost:9", " 127.0.0.1:9 \n\n[::1]:9"};
    memset(seeded, 0, sizeof *seeded);
    seeded->struct_size = sizeof *seeded;
    more.mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, seeded);
    seeded->is_seed = !one_in(4);
    seeded->seeds = one_in(8) ? bad_text() : ANY(seeds);
    switch (below(24)) {
    case 0: return NULL;
    case 1: seeded->struct_size = any_size(sizeof *seeded); break;
    case 2: seeded->probe_interval_ms = below(400); break;
    case 3: seeded->heartbeat_interval_ms = below(400); break;
    case 4: seeded->heartbeat_timeout_ms = below(1000); break;
    case 5: seeded->ttl_timeout_ms = below(2000); break;
    case 6: seeded->retry_interval_ms = below(2); break;
    case 7: seeded->reserved = below(2); break;
    }
    return seeded;
}

/* Where a call for a lock writes its number. */
static uint64_t *a_number(void)
{
    static _Thread_local uint64_t number;
    return one_in(16) ? NULL : &number;
}

/* Servers at an address without a listener; most builds have no etcd anyway. */
static const MmnEtcdOptions *any_etcd(MmnEtcdOptions *etcd)
{
    static const char *const endpoints[] = {"http://127.0.0.1:9", "http://[::1]:9\nhttp://localhost:9"};
    memset(etcd, 0, sizeof *etcd);
    etcd->struct_size = sizeof *etcd;
    more.mmn_default_etcd_options(etcd);
    etcd->endpoints = one_in(8) ? bad_text() : ANY(endpoints);
    etcd->prefix = one_in(8) ? bad_text() : "chaos";
    switch (below(16)) {
    case 0: return NULL;
    case 1: etcd->struct_size = any_size(sizeof *etcd); break;
    case 2: etcd->ttl_seconds = below(4); break;
    case 3: etcd->address = bad_text(); break;
    case 4: etcd->ca_file = bad_text(); break;
    case 5: etcd->cert_file = etcd->key_file = "/proc/self"; break;
    case 6: etcd->user = etcd->password = bad_text(); break;
    }
    return etcd;
}

/* Usually what the partners do not have, so that few rooms begin with it. */
static const MmnStateOptions *any_state(MmnStateOptions *state)
{
    memset(state, 0, sizeof *state);
    state->struct_size = sizeof *state;
    more.mmn_default_state_options(state);
    switch (below(16)) {
    case 0: state->struct_size = any_size(sizeof *state); break;
    case 1: state->tail_entries = below(32); break;
    case 2: state->tail_bytes = below(100000); break;
    case 3: state->max_snapshot_bytes = (uint32_t)chance(); break;
    }
    return state;
}

/* A struct, with space for fields of a later library. */
union options {
    MmnOptions options;
    uint8_t space[ROOMY];
};

/* Usually options that open a room, in either dispatch mode, which the partners can join. */
static const MmnOptions *any_options(union options *all, MmnSeededOptions *seeded, MmnEtcdOptions *etcd, MmnStateOptions *state)
{
    static const char *const own_machine[] = {"127.0.0.1", "::1", "0.0.0.0", "::"};
    static const char *const relays[] = {"127.0.0.1:9", "[::1]:9\nlocalhost:9 token=000g40r40m30e209185gr38e1w", "127.0.0.1:9\n127.0.0.1:9"};
    MmnOptions *options = &all->options;
    /* All fields between the pointers. */
    uint32_t *numbers = (uint32_t *)(all->space + offsetof(MmnOptions, secret_length));
    unsigned count = (offsetof(MmnOptions, relays) - offsetof(MmnOptions, secret_length)) / sizeof *numbers;
    memset(all, 0, sizeof *all);
    options->struct_size = sizeof *options;
    more.mmn_default_options(options);
    options->dispatch_mode = below(2);
    options->strategy = strategy();
    switch (below(35)) {
    case 0: return NULL;
    case 1: memset(numbers, 0, count * sizeof *numbers); break;
    case 2:
        memset(numbers, 0xff, count * sizeof *numbers);
        options->bind_address = bad_text(), options->secret = bytes, options->identity_key = bytes;
        break;
    case 3: options->struct_size = any_size(sizeof *options); break;
    case 4: options->strategy = below(5), options->strategy_flags = below(3); break;
    case 5: options->bind_address = one_in(2) ? bad_text() : any_address(); break;
    case 6: options->bind_address = ANY(own_machine); break;
    case 7: options->secret = bytes, options->secret_length = below(2 * MMN_MAX_SECRET_BYTES); break;
    case 8: options->secret_length = 5; break;
    case 9: options->identity_key = bytes, options->identity_key_length = below(2000); break;
    case 10: options->member_hold_ms = below(3), options->queue_bytes = below(3); break;
    case 11: options->queue_bytes = 1; break;
    case 12: options->merge_policy = below(3), options->set_leader_authority = below(3); break;
    case 13: options->host_mode = below(4), options->topology = below(3), options->entry = below(4); break;
    case 14: options->discovery_mode = below(4); break;
    case 15: options->eligible = 0, options->auto_election = 0, options->auto_reconnect = 0; break;
    case 16: options->bind_port = one_in(2) ? 9 : (uint32_t)chance(); break;
    case 17: options->quorum_policy = below(3), options->quorum_voters = below(3); break;
    case 18: options->state_directory = bad_text(); break;
    case 19: options->trace_path = one_in(2) ? trace_path : one_in(2) ? state_directory : endless; break;
    case 20:
        options->quorum_policy = MMN_QUORUM_STATIC, options->quorum_voters = one_in(4) ? below(5) : 0;
        options->quorum_roster = one_in(4) ? bad_text() : "хаос\n混沌\nchaos🌀";
        options->state_directory = one_in(4) ? "/proc/self" : state_directory;
        break;
    case 21: options->strategy = MMN_STRATEGY_GOSSIP, options->strategy_flags = below(2); break;
    case 22:
    case 23:
        options->strategy = MMN_STRATEGY_SEEDED, options->strategy_flags = below(5);
        options->quorum_roster = one_in(8) ? bad_text() : "хаос\n混沌\nchaos🌀";
        options->state_directory = one_in(8) ? "/proc/self" : cluster_directory;
        options->seeded = any_seeded(seeded);
        break;
    case 24: options->strategy = MMN_STRATEGY_ETCD, options->etcd = any_etcd(etcd); break;
    case 32:
    case 33:
    case 34: options->state = any_state(state); break;
    case 25: options->send_queue_capacity = 1, options->incoming_queue_capacity = 1; break;
    case 26: options->max_connections = 1 + below(2), options->max_peers = below(3); break;
    case 27: options->heartbeat_interval_ms = 20, options->election_timeout_min_ms = 60, options->election_timeout_max_ms = 120; break;
    case 28: options->hold_messages = below(3); break;
    case 31: options->relays = one_in(4) ? bad_text() : ANY(relays), options->paths = below(3); break;
    case 29:
    case 30:
        /* Any number in any field, but no discovery of other rooms. */
        numbers[below(count)] = one_in(2) ? below(300) : (uint32_t)chance();
        options->discovery_mode = MMN_DISCOVERY_OFF;
        /* The partners' broadcasts must fit. */
        if (options->max_message_size < LIMIT_BYTES) options->max_message_size = LIMIT_BYTES;
        break;
    }
    return options;
}

static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) unlinkat(dirfd(directory), entry->d_name, 0);
    if (!directory || closedir(directory) != 0 || rmdir(path) != 0) fail("%s cannot be removed", path);
}

/* Only without an open room. */
static void remove_states(void)
{
    remove_directory(state_directory);
    remove_directory(cluster_directory);
}

static atomic_ullong last_request;

static uint64_t any_request(void) { return one_in(4) ? below(64) : atomic_load(&last_request); }

/* ------------------------------------------------------------------ events */

static atomic_llong polled;

static int poll_events(void)
{
    int32_t max = (int32_t)below(20) - 2, answer = more.mmn_poll(any_room(), max);
    if (answer > (max < 0 ? 0 : max)) fail("mmn_poll(%d) answered %d", (int)max, (int)answer);
    if (answer > 0) atomic_fetch_add(&polled, answer);
    return count_or_code(answer);
}

/* Each registration has its own block, which is freed when the library calls its drop function. AddressSanitizer finds a use
 * after that; a second drop is counted. */
static atomic_llong registered, dropped, events, log_lines;

static void on_log_drop(void *user_data)
{
    free(user_data);
    atomic_fetch_add(&dropped, 1);
}

/* "Inside `drop_fn` the rules of a callback hold." */
static void on_event_drop(void *user_data)
{
    on_log_drop(user_data);
    go_on_inside();
}

static void on_event(void *user_data, const MmnEvent *event)
{
    if (*(int *)user_data != TYPE) fail("an event's user data is damaged");
    if (event->struct_size != sizeof *event) fail("an event of %u bytes", event->struct_size);
    if (event->kind < MMN_EVENT_JOINED || event->kind > LAST_EVENT_KIND) fail("an event of kind %u", event->kind);
    if (!is_room(event->room)) fail("an event without a room");
    read_text(event->peer, NAME_BYTES);
    read_text(event->other, sizeof endless);
    read_text(event->owner, NAME_BYTES);
    if (!event->data || event->length < 0 || event->length > LIMIT_BYTES + 1 || event->success > 1)
        fail("an event of kind %u with %d bytes and success %u", event->kind, (int)event->length, event->success);
    unsigned sum = 0;
    for (int32_t i = 0; i < event->length; i++) sum += event->data[i];
    atomic_fetch_add_explicit(&sink, sum, memory_order_relaxed);
    if (event->kind == MMN_EVENT_JOIN_REQUEST || event->kind == MMN_EVENT_SNAPSHOT_WANTED || event->kind == MMN_EVENT_TRANSFER_OFFERED)
        atomic_store(&last_request, event->request);
    atomic_fetch_add(&events, 1);
    go_on_inside();
}

static int take_log(void);

/* On any thread, in the middle of any call. Few calls are allowed in it. */
static void on_log(void *user_data, uint64_t room, int32_t level, const char *message)
{
    if (*(int *)user_data != TYPE) fail("a log callback's user data is damaged");
    if (level < MMN_LOG_ERROR || level > MMN_LOG_TRACE) fail("a log record of level %d", (int)level);
    is_room(room);
    read_text(message, 1 << 20);
    atomic_fetch_add(&log_lines, 1);
    switch (below(64)) {
    case 0: text(net.GetPeerList(), 65536); break;
    case 1: at_least(more.mmn_peer_status(any_room(), any_peer()), -1); break;
    case 2: take_log(); break;
    case 3:
        if (net.BroadcastMessage(bytes, 1, TYPE, 0) != MMN_WOULD_DEADLOCK) fail("a message was sent inside a log callback");
        break;
    case 4:
        if (more.mmn_close(any_room()) != MMN_WOULD_DEADLOCK) fail("a room was closed inside a log callback");
        break;
    }
}

static int *user_data(void)
{
    int *block = malloc(sizeof *block);
    if (!block) fail("no memory");
    *block = TYPE;
    return block;
}

static int handle_events(void)
{
    if (one_in(4)) return code(more.mmn_set_event_handler(any_room(), NULL, NULL, NULL));
    int *block = user_data(), accepted = code(more.mmn_set_event_handler(any_room(), on_event, block, on_event_drop));
    if (accepted) atomic_fetch_add(&registered, 1);
    else free(block);
    return accepted;
}

static int take_log(void)
{
    if (one_in(4)) return code(more.mmn_set_log(MMN_LOG_OFF, NULL, NULL, NULL));
    int *block = user_data(), accepted = code(more.mmn_set_log((int32_t)below(9) - 2, on_log, block, on_log_drop));
    if (accepted) atomic_fetch_add(&registered, 1);
    else free(block);
    return accepted;
}

/* Called without an open room. */
static void drop_all(void)
{
    more.mmn_set_log(MMN_LOG_OFF, NULL, NULL, NULL);
    if (atomic_load(&registered) != atomic_load(&dropped))
        fail("%lld registrations, %lld drops", atomic_load(&registered), atomic_load(&dropped));
}

/* ------------------------------------------------------------------ opening and closing */

/* Of several threads that close one room, one succeeds. */
static void close_for_good(MmnRoom room)
{
    if (!room) return;
    int32_t answer = more.mmn_close(room);
    if (answer != 0 && answer != MMN_NOT_INITIALIZED) fail("mmn_close answered %d", (int)answer);
    if (more.mmn_is_open(room) || more.mmn_close(room) != MMN_NOT_INITIALIZED) fail("a closed room is open");
    atomic_store(&closed_rooms[below(CLOSED)], room);
}

/* The session ids of rooms with relays: codes, mostly. */
static const char *any_code(void)
{
    static const char *const codes[] = {"K7QM-3XP9-TRWF", " k7qm 3xp9 trwf", "oooooooooooo"};
    return one_in(8) ? any_session() : ANY(codes);
}

static int open_with_options(void)
{
    union options all;
    MmnSeededOptions seeded;
    MmnEtcdOptions etcd;
    MmnStateOptions state;
    const MmnOptions *options = any_options(&all, &seeded, &etcd, &state);
    /* Another room that is opened inside a callback could not be closed there. */
    int is_default = callback_depth || !one_in(3);
    if (is_default && !options) return -1;
    if (all.options.is_default <= 1) all.options.is_default = is_default;
    int *block = !options || one_in(4) ? NULL : user_data();
    if (block) all.options.on_event = on_event, all.options.user_data = block, all.options.drop_fn = on_event_drop;
    MmnRoom room = 0;
    int32_t answer = more.mmn_open(one_in(16) ? bad_text() : ANY(OWN), options && options->relays ? any_code() : any_session(), options, one_in(32) ? NULL : &room);
    if (answer != 0) {
        free(block);
        return code(answer);
    }
    if (block) atomic_fetch_add(&registered, 1);
    if (!is_room(room)) fail("mmn_open gave no room");
    if (options && options->dispatch_mode == MMN_DISPATCH_POLL) atomic_fetch_add(&polled_rooms, 1);
    if (options && options->strategy == MMN_STRATEGY_GOSSIP) atomic_fetch_add(&gossip_rooms, 1);
    if (options && options->strategy == MMN_STRATEGY_SEEDED) atomic_fetch_add(&seeded_rooms, 1);
    if (is_default) return opened(answer);
    atomic_fetch_add(&opened_rooms, 1);
    more.mmn_connect(room, any_address());
    close_for_good(atomic_exchange(&rooms[below(ROOMS)], room));
    return 1;
}

static int close_another(void)
{
    MmnRoom room = any_room();
    if (callback_depth) {
        int32_t answer = more.mmn_close(room);
        if (answer != MMN_WOULD_DEADLOCK && answer != MMN_NOT_INITIALIZED) fail("mmn_close inside a callback answered %d", (int)answer);
        return 0;
    }
    /* The default room is closed at intervals (close_room). */
    if (room == more.mmn_default_room() || !one_in(8)) return -1;
    return code(more.mmn_close(room));
}

static int leave_another(void)
{
    MmnRoom room = any_room();
    if (room == more.mmn_default_room() || !one_in(8)) return -1;
    return code(more.mmn_leave(room));
}

/* ------------------------------------------------------------------ cards and browsers */

/* The open browsers, or 0. */
static atomic_ullong browsers[2];

static int show_card(void)
{
    MmnCard card = {.struct_size = any_size(sizeof card), .flags = below(3), .game = "chaos", .name = "混沌"};
    uint8_t bytes[400] = {0};
    card.data = bytes, card.data_length = below(402);
    switch (below(16)) {
    case 0: card.game = bad_text(); break;
    case 1: card.name = bad_text(); break;
    case 2: card.data = NULL; break;
    case 3: card.port = (uint32_t)chance(); break;
    case 4: card.reserved = below(2); break;
    default: break;
    }
    return code(more.mmn_show_card(any_room(), one_in(4) ? NULL : &card));
}

static void on_listed(void *user_data, const MmnListedRoom *room)
{
    (void)user_data;
    callback_depth++;
    read_text(room->name, NAME_BYTES);
    read_text(room->session_id, 129);
    read_text(room->address, 64);
    read_text(room->fingerprint, 65);
    if (more.mmn_browse_close(room->browser) != MMN_WOULD_DEADLOCK) fail("a browser was closed inside its callback");
    callback_depth--;
}

static int open_browser(void)
{
    atomic_ullong *slot = &browsers[below(2)];
    MmnBrowser browser = 0;
    MmnBrowseOptions options = {.struct_size = any_size(sizeof options), .dispatch_mode = below(2), .game = "chaos", .on_room = on_listed};
    switch (below(16)) {
    case 0: options.game = bad_text(); break;
    case 1: options.on_room = NULL; break;
    case 2: options.dispatch_mode = (uint32_t)chance(); break;
    default: break;
    }
    if (callback_depth || atomic_load(slot)) return -1;
    int answer = code(more.mmn_browse_open(&options, &browser));
    unsigned long long none = 0;
    if (browser && !atomic_compare_exchange_strong(slot, &none, browser)) more.mmn_browse_close(browser);
    return answer;
}

static int close_browser(void)
{
    if (callback_depth) return code(more.mmn_browse_close(chance()));
    return code(more.mmn_browse_close(atomic_exchange(&browsers[below(2)], 0)));
}

/* Only without a running worker. */
static void close_rooms(void)
{
    for (int i = 0; i < 2; i++) more.mmn_browse_close(atomic_exchange(&browsers[i], 0));
    for (int i = 0; i < ROOMS; i++) close_for_good(atomic_exchange(&rooms[i], 0));
}

/* ------------------------------------------------------------------ peers and messages */

static int identity_key(void)
{
    uint8_t key[MMN_IDENTITY_KEY_BYTES + 1];
    int32_t length = one_in(2) ? (int32_t)sizeof key : (int32_t)below(sizeof key + 1) - one_in(8), longest = length < 0 ? 0 : length;
    memset(key, 0xaa, sizeof key);
    int32_t answer = more.mmn_generate_identity_key(one_in(8) ? NULL : key, length);
    if (answer > longest) fail("mmn_generate_identity_key wrote %d bytes to %d", (int)answer, (int)length);
    for (size_t i = answer < 0 ? 0 : (size_t)answer; i < sizeof key; i++)
        if (key[i] != 0xaa) fail("mmn_generate_identity_key wrote byte %zu of %d", i, (int)length);
    return count_or_code(answer);
}

static int room_code(void)
{
    char code[MMN_ROOM_CODE_BYTES + 1];
    int32_t length = one_in(2) ? (int32_t)sizeof code : (int32_t)below(sizeof code + 1) - one_in(8), longest = length < 0 ? 0 : length;
    memset(code, 0x5a, sizeof code);
    int32_t answer = more.mmn_generate_room_code(one_in(8) ? NULL : code, length);
    if (answer > longest) fail("mmn_generate_room_code wrote %d bytes to %d", (int)answer, (int)length);
    for (size_t i = answer < 0 ? 0 : (size_t)answer; i < sizeof code; i++)
        if (code[i] != 0x5a) fail("mmn_generate_room_code wrote byte %zu of %d", i, (int)length);
    return count_or_code(answer);
}

static int normalized_code(void)
{
    char code[MMN_ROOM_CODE_BYTES], again[MMN_ROOM_CODE_BYTES];
    if (one_in(4)) return count_or_code(more.mmn_normalize_room_code(bad_text(), code, sizeof code));
    if (more.mmn_generate_room_code(code, sizeof code) != sizeof code) fail("no room code");
    if (more.mmn_normalize_room_code(code, again, sizeof again) != sizeof again || strcmp(code, again) != 0) fail("%s is read as %s", code, again);
    code[below(4)] ^= 1;
    return count_or_code(more.mmn_normalize_room_code(code, again, (int32_t)below(sizeof again + 1)));
}

static int index_of_peer(void)
{
    MmnRoom room = any_room();
    uint32_t index = more.mmn_peer_index(room, any_peer());
    return index ? text(more.mmn_peer_id(room, index), 64) >= 0 : 0;
}

/* A banned member stays banned while the room exists; its program is started under another name. */
static int kick(void)
{
    struct message m = any_message();
    const char *victim = one_in(256) ? partner_name(1) : one_in(2) ? "unknown" : bad_text();
    uint32_t flags = one_in(2) ? MMN_KICK_BAN : one_in(4) ? (uint32_t)chance() : 0;
    int accepted = code(more.mmn_kick(any_room(), victim, flags, (int32_t)chance(), one_in(8) ? bytes : m.data, one_in(8) ? 4000 : m.length));
    if (accepted) atomic_store(&removed, 1);
    return accepted;
}

/* Usually valid: one call in eight has an invalid value. */
static const MmnSendOptions *any_send_options(MmnSendOptions *options, struct message m)
{
    memset(options, 0, sizeof *options);
    options->struct_size = one_in(16) ? below(sizeof *options + 1) : (uint32_t)sizeof *options;
    options->delivery = (uint8_t)below(one_in(8) ? 256 : 4);
    options->channel = (uint8_t)below(one_in(8) ? 256 : 3);
    options->priority = (int8_t)(below(one_in(8) ? 256 : 4) - 1);
    options->flags = (uint8_t)one_in(8);
    options->user_flags = m.flags;
    if (options->delivery > MMN_DELIVERY_RELIABLE_UNORDERED) options->ttl_ms = one_in(2) ? 0 : below(100);
    if (options->delivery == MMN_DELIVERY_SEQUENCED) options->key = below(4);
    if (one_in(16)) options->reserved2 = (uint16_t)chance();
    return one_in(4) ? NULL : options;
}

#define SEND(call)                                                 \
    {                                                              \
        MmnSendOptions its;                                        \
        struct message m = any_message();                          \
        const MmnSendOptions *options = any_send_options(&its, m); \
        return call;                                               \
    }
static int room_send(void) SEND(code(more.mmn_send(any_room(), any_peer(), m.data, m.length, m.type, options)))
static int room_broadcast(void) SEND(count_or_code(more.mmn_broadcast(any_room(), m.data, m.length, m.type, options)))
static int room_to_leader(void) SEND(code(more.mmn_send_to_leader(any_room(), m.data, m.length, m.type, options)))
static int room_as_leader(void) SEND(code(more.mmn_broadcast_as_leader(any_room(), m.data, m.length, m.type, options)))
static int room_forward(void)
    SEND(code(more.mmn_forward(any_room(), any_peer(), one_in(2) ? NULL : any_peer(), m.data, m.length, m.type, options)))

static int room_disconnect(void)
    MESSAGE(more.mmn_disconnect(any_room(), stranger_mostly(), (int32_t)chance(), m.data, m.length > 3072 ? 3072 : m.length))
static const char *any_turn(void)
{
    static const char *const lines[] = {
        NULL, "", "turn:127.0.0.1:9 username=u password=p", "turn:127.0.0.1:9 username=u",
        "turns:127.0.0.1:9 username=u password=p\nturn:127.0.0.1:9?transport=tcp username=u password=p",
    };
    return lines[below(sizeof lines / sizeof *lines)];
}

static int join_payload(void) MESSAGE(more.mmn_set_join_payload(any_room(), m.data, m.length))
static int reject(void) MESSAGE(more.mmn_reject_join(any_room(), any_request(), (int32_t)chance(), m.data, m.length))

/* Requests of the room's state. Few rooms have one. */
static int submit(void) MESSAGE(more.mmn_submit(any_room(), m.data, m.length, m.type, a_number()))
static int provide_snapshot(void) MESSAGE(more.mmn_provide_snapshot(any_room(), any_request(), m.data, m.length))

/* Transfers. A buffer is the library's for as long as the program runs. */
static int send_transfer(void)
    MESSAGE(more.mmn_send_transfer(any_room(), any_peer(), m.data, m.length, one_in(8) ? NULL : bytes, one_in(8) ? 2000 : (int32_t)below(1025), a_number()))

static int accept_transfer(void)
{
    static uint8_t buffers[64][4096];
    static atomic_uint used;
    unsigned next = one_in(4) ? 64 : atomic_fetch_add(&used, 1);
    uint8_t *buffer = next < 64 ? buffers[next] : NULL;
    int32_t capacity = buffer ? (int32_t)sizeof *buffers : one_in(2) ? 0 : (int32_t)below(9) - 4;
    return code(more.mmn_accept_transfer(any_room(), any_peer(), any_request(), buffer, capacity));
}

/* Usually valid: a change in eight has an invalid value. */
static void any_change(MmnPropertyChange *change)
{
    static const char *const keys[] = {"map", "хаос/ready", "混沌", "a", "b", "c"};
    memset(change, 0, sizeof *change);
    change->struct_size = sizeof *change;
    change->key = ANY(keys);
    change->owner = one_in(2) ? NULL : one_in(2) ? "" : any_peer();
    change->value = bytes, change->length = (int32_t)below(200);
    change->expected_version = one_in(2) ? MMN_ANY_VERSION : below(100);
    switch (below(64)) {
    case 0: change->key = bad_text(); break;
    case 1: change->owner = bad_text(); break;
    case 2: change->value = NULL; break;
    case 3: change->length = one_in(2) ? INT32_MIN : 8193; break;
    case 4: change->reserved = below(2); break;
    case 5: change->flags = (uint32_t)chance(); break;
    case 6:
    case 7: change->flags = below(32); break;
    default: change->flags = one_in(2) ? MMN_PROPERTY_FALLS_TO_LEADER : MMN_PROPERTY_OWNER_ONLY;
    }
}

static int set_properties(void)
{
    MmnPropertyChange changes[4];
    for (int i = 0; i < 4; i++) any_change(&changes[i]);
    const int32_t counts[] = {0, -1, INT32_MIN, 33, INT32_MAX};
    if (one_in(16)) changes[0].struct_size = below(sizeof *changes);
    int32_t count = one_in(16) ? ANY(counts) : 1 + (int32_t)below(4);
    return code(more.mmn_set_properties(any_room(), one_in(32) ? NULL : changes, count, a_number()));
}

/* Inside a callback, too, where the library keeps what it has lent. */
static int property(void)
{
    static const char *const keys[] = {"map", "хаос/ready", "混沌", "a", "b", "c"};
    MmnPropertyInfo info = {.struct_size = one_in(16) ? below(sizeof info) : (uint32_t)sizeof info};
    MmnPropertyInfo *filled = one_in(8) ? NULL : &info;
    const uint8_t *value = more.mmn_property(any_room(), one_in(16) ? bad_text() : ANY(keys), filled);
    if (!value || !filled) return value != NULL;
    if (info.length < 0 || info.length > 8192) fail("a property of %d bytes", (int)info.length);
    unsigned sum = 0;
    for (int32_t i = 0; i < info.length; i++) sum += value[i];
    atomic_fetch_add_explicit(&sink, sum, memory_order_relaxed);
    read_text(info.owner, NAME_BYTES);
    return 1;
}

#define ROOM_CALLS(X)                                                                                          \
    X(mmn_open, 8, open_with_options())                                                                        \
    X(mmn_close, 2, close_another())                                                                           \
    X(mmn_leave, 1, leave_another())                                                                           \
    X(mmn_is_open, 4, flag(more.mmn_is_open(any_room())))                                                      \
    X(mmn_default_room, 2, is_room(more.mmn_default_room()))                                                   \
    X(mmn_is_announced, 2, flag(more.mmn_is_announced(any_room())))                                            \
    X(mmn_set_event_handler, 2, handle_events())                                                               \
    X(mmn_take_messages, 2, code(more.mmn_take_messages(any_room())))                                          \
    X(mmn_poll, 32, poll_events())                                                                             \
    X(mmn_show_card, 1, show_card())                                                                           \
    X(mmn_browse_open, 1, open_browser())                                                                      \
    X(mmn_browse_poll, 2, count_or_code(more.mmn_browse_poll(atomic_load(&browsers[below(2)]), (int32_t)below(9)))) \
    X(mmn_browse_close, 1, close_browser())                                                                    \
    X(mmn_abi_version, 1, more.mmn_abi_version() > 0)                                                          \
    X(mmn_library_version, 1, text(more.mmn_library_version(), 64))                                            \
    X(mmn_describe_error, 1, text(more.mmn_describe_error((int32_t)chance() % 128), 4096))                     \
    X(mmn_last_error_code, 2, more.mmn_last_error_code() <= 0)                                                 \
    X(mmn_last_error_message, 2, text(more.mmn_last_error_message(), 4096))                                    \
    X(mmn_set_log, 1, take_log())                                                                              \
    X(mmn_set_log_stderr, 1, code(more.mmn_set_log_stderr((int32_t)below(9) - 2)))                             \
    X(mmn_generate_identity_key, 1, identity_key())                                                            \
    X(mmn_generate_room_code, 1, room_code())                                                                  \
    X(mmn_normalize_room_code, 2, normalized_code())                                                           \
    X(mmn_default_options, 1, default_options())                                                               \
    X(mmn_default_seeded_options, 1, default_seeded())                                                         \
    X(mmn_default_etcd_options, 1, default_etcd())                                                             \
    X(mmn_default_state_options, 1, default_state())                                                           \
    X(mmn_connect, 4, code(more.mmn_connect(any_room(), any_address())))                                       \
    X(mmn_disconnect, 1, room_disconnect())                                                                    \
    X(mmn_peer_count, 4, at_least(more.mmn_peer_count(any_room()), -1))                                        \
    X(mmn_peers, 4, text(more.mmn_peers(any_room()), 65536))                                                   \
    X(mmn_members, 4, text(more.mmn_members(any_room()), 65536))                                               \
    X(mmn_peer_index, 4, index_of_peer())                                                                      \
    X(mmn_peer_id, 4, text(more.mmn_peer_id(any_room(), below(8)), 64))                                        \
    X(mmn_peer_address, 4, text(more.mmn_peer_address(any_room(), any_peer()), 128))                           \
    X(mmn_peer_path, 4, at_least(more.mmn_peer_path(any_room(), any_peer()), -5))                              \
    X(mmn_peer_carrier, 4, text(more.mmn_peer_carrier(any_room(), any_peer()), 64))                            \
    X(mmn_peer_fingerprint, 4, text(more.mmn_peer_fingerprint(any_room(), any_peer()), 64))                    \
    X(mmn_room_time_ms, 4, room_time())                                                                          \
    X(mmn_peer_rtt_ms, 4, at_least(more.mmn_peer_rtt_ms(any_room(), any_peer()), -1))                          \
    X(mmn_peer_status, 4, at_least(more.mmn_peer_status(any_room(), any_peer()), -1))                          \
    X(mmn_peer_stats, 4, peer_stats())                                                                         \
    X(mmn_room_stats, 4, room_stats())                                                                         \
    X(mmn_local_address, 4, text(more.mmn_local_address(any_room()), 128))                                     \
    X(mmn_local_addresses, 4, text(more.mmn_local_addresses(any_room()), 65536))                               \
    X(mmn_public_address, 4, text(more.mmn_public_address(any_room()), 128))                                   \
    X(mmn_local_id, 4, text(more.mmn_local_id(any_room()), 64))                                                \
    X(mmn_session_id, 4, text(more.mmn_session_id(any_room()), 128))                                           \
    X(mmn_local_fingerprint, 4, text(more.mmn_local_fingerprint(any_room()), 64))                              \
    X(mmn_set_auto_reconnect, 1, code(more.mmn_set_auto_reconnect(any_room(), (uint8_t)!one_in(4))))           \
    X(mmn_auto_reconnect, 2, flag(more.mmn_auto_reconnect(any_room())))                                        \
    X(mmn_set_join_payload, 1, join_payload())                                                                 \
    X(mmn_set_join_requests, 1, code(more.mmn_set_join_requests(any_room(), (uint8_t)!one_in(4))))             \
    X(mmn_accept_join, 2, code(more.mmn_accept_join(any_room(), any_request())))                               \
    X(mmn_reject_join, 1, reject())                                                                            \
    X(mmn_kick, 2, kick())                                                                                     \
    X(mmn_unban, 1, code(more.mmn_unban(any_room(), any_peer())))                                              \
    X(mmn_set_turn, 1, code(more.mmn_set_turn(any_room(), any_turn())))                                        \
    X(mmn_set_max_peers, 1, code(more.mmn_set_max_peers(any_room(), one_in(8) ? below(4) : 64)))               \
    X(mmn_leader, 4, text(more.mmn_leader(any_room()), 64))                                                    \
    X(mmn_is_leader, 4, flag(more.mmn_is_leader(any_room())))                                                  \
    X(mmn_leader_term, 2, count_of(more.mmn_leader_term(any_room())))                                          \
    X(mmn_leader_epoch, 2, count_of(more.mmn_leader_epoch(any_room())))                                        \
    X(mmn_strategy, 2, at_least(more.mmn_strategy(any_room()), -1))                                            \
    X(mmn_set_leader, 1, code(more.mmn_set_leader(any_room(), any_peer())))                                    \
    X(mmn_transfer_leadership, 1, code(more.mmn_transfer_leadership(any_room(), any_peer())))                  \
    X(mmn_yield_leadership, 1, code(more.mmn_yield_leadership(any_room())))                                    \
    X(mmn_set_eligible, 1, code(more.mmn_set_eligible(any_room(), (uint8_t)!one_in(4))))                       \
    X(mmn_set_priority, 1, code(more.mmn_set_priority(any_room(), (int32_t)chance())))                         \
    X(mmn_set_auto_election, 1, code(more.mmn_set_auto_election(any_room(), (uint8_t)below(3))))               \
    X(mmn_set_gossip_windows, 1, set_windows())                                                                \
    X(mmn_gossip_windows, 1, get_windows())                                                                    \
    X(mmn_member_state, 2, at_least(more.mmn_member_state(any_room(), any_peer()), -1))                        \
    X(mmn_cluster_version, 2, count_of(more.mmn_cluster_version(any_room())))                                  \
    X(mmn_fencing_token, 2, count_of(more.mmn_fencing_token(any_room())))                                      \
    X(mmn_proclaim, 1, code(more.mmn_proclaim(any_room(), any_peer())))                                        \
    X(mmn_acquire_lock, 1, code(more.mmn_acquire_lock(any_room(), any_peer(), below(2000), a_number())))       \
    X(mmn_try_lock, 1, code(more.mmn_try_lock(any_room(), any_peer(), a_number())))                            \
    X(mmn_release_lock, 1, code(more.mmn_release_lock(any_room(), any_peer())))                                \
    X(mmn_send_transfer, 4, send_transfer())                                                                   \
    X(mmn_accept_transfer, 4, accept_transfer())                                                               \
    X(mmn_accept_transfer_in_parts, 4, code(more.mmn_accept_transfer_in_parts(any_room(), any_peer(), any_request()))) \
    X(mmn_cancel_transfer, 2, code(more.mmn_cancel_transfer(any_room(), any_peer(), any_request())))           \
    X(mmn_submit, 4, submit())                                                                                 \
    X(mmn_set_properties, 4, set_properties())                                                                 \
    X(mmn_property, 4, property())                                                                             \
    X(mmn_property_keys, 2, text(more.mmn_property_keys(any_room(), one_in(2) ? NULL : any_peer()), 100000))   \
    X(mmn_provide_snapshot, 2, provide_snapshot())                                                             \
    X(mmn_state_info, 2, state_info())                                                                         \
    X(mmn_send, 8, room_send())                                                                                \
    X(mmn_broadcast, 8, room_broadcast())                                                                      \
    X(mmn_send_to_leader, 4, room_to_leader())                                                                 \
    X(mmn_broadcast_as_leader, 4, room_as_leader())                                                            \
    X(mmn_forward, 4, room_forward())                                                                          \
    X(mmn_max_datagram_size, 2, at_least(more.mmn_max_datagram_size(any_room(), one_in(2) ? NULL : any_peer()), -3))  \
    X(mmn_set_centralized, 1, code(more.mmn_set_centralized(any_room(), (uint8_t)one_in(4))))                  \
    X(mmn_centralized, 2, flag(more.mmn_centralized(any_room())))                                              \
    X(mmn_set_auto_forward, 1, code(more.mmn_set_auto_forward(any_room(), (uint8_t)below(3))))                 \
    X(mmn_auto_forward, 2, flag(more.mmn_auto_forward(any_room())))                                            \
    X(mmn_set_compression_threshold, 1, code(more.mmn_set_compression_threshold(any_room(), below(1000))))     \
    X(mmn_simulate_preset, 1, code(more.mmn_simulate_preset(any_room(), one_in(2) ? "home" : any_peer())))              \
    X(mmn_simulate_network, 1, code(more.mmn_simulate_network(any_room(), below(60), below(60), one_in(2) ? 0 : below(60))))
