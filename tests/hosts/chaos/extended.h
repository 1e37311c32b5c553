/* Part of chaos.c: the functions beyond the classic ones, with their structs from the library's header. A library that lacks one
 * of these functions is tested without it. */
static struct {
#define MORE(result, name, parameters) result (*name) parameters;
    MMN_FUNCTIONS(MORE)
#undef MORE
} more;

/* ------------------------------------------------------------------ options */

enum { ROOMY = 4096 /* bytes: more than any struct has */ };

/* A struct, with space for fields of a later library. */
union options {
    NetworkOptions options;
    uint8_t space[ROOMY];
};

static uint32_t any_size(uint32_t right)
{
    const uint32_t sizes[] = {0, 3, 4, 7, 8, 20, 48, right - 1, right + 1, ROOMY};
    return one_in(4) ? ANY(sizes) : right;
}

static int default_options(void)
{
    union options all;
    memset(&all, 0xaa, sizeof all);
    uint32_t size = all.options.struct_size = any_size(sizeof(NetworkOptions));
    int accepted = code(more.GetDefaultNetworkOptions(one_in(32) ? NULL : &all.options));
    if (all.options.struct_size != size) fail("GetDefaultNetworkOptions changed struct_size");
    for (size_t i = size < 4 ? 4 : size; i < sizeof all; i++)
        if (all.space[i] != 0xaa) fail("GetDefaultNetworkOptions wrote byte %zu of %u", i, size);
    return accepted;
}

/* In the environment, so that the peers elect by gossip. */
static const char GOSSIP[] = "MMN_CHAOS_GOSSIP";

static uint32_t strategy(void) { return getenv(GOSSIP) ? MMN_STRATEGY_GOSSIP : MMN_STRATEGY_RAFT; }

/* A room without discovery that elects as the peers do; gossip elects in less than 2 s. */
static int32_t enter(const char *id, const char *room)
{
    struct network_config config = QUIET_CONFIG;
    if (strategy() == MMN_STRATEGY_RAFT) return net.InitializeNetworkWithConfig(id, room, &config);
    NetworkOptions options = {.struct_size = sizeof options};
    more.GetDefaultNetworkOptions(&options);
    memcpy(&options.config, &config, sizeof config);
    options.strategy = MMN_STRATEGY_GOSSIP;
    more.SetMembershipSampleInterval(100), more.SetStartupGracePeriod(500);
    more.SetLeaderAliveThreshold(500), more.SetLeaderElectionDuration(500);
    return more.InitializeNetworkWithOptions(id, room, &options);
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

static int default_seeded(void)
{
    union {
        SeededOptions options;
        uint8_t space[ROOMY];
    } all;
    memset(&all, 0xaa, sizeof all);
    uint32_t size = all.options.struct_size = any_size(sizeof(SeededOptions));
    int accepted = code(more.GetDefaultSeededOptions(below(3), one_in(32) ? NULL : &all.options));
    if (all.options.struct_size != size) fail("GetDefaultSeededOptions changed struct_size");
    for (size_t i = !accepted || size < 4 ? 4 : size; i < sizeof all; i++)
        if (all.space[i] != 0xaa) fail("GetDefaultSeededOptions wrote byte %zu of %u", i, size);
    return accepted;
}

/* Usually a cluster whose seeds are this node and an absent one. */
static const SeededOptions *any_seeded(SeededOptions *seeded)
{
    static const char *const seeds[] = {"127.0.0.1:9", "[::1]:9\nlocalhost:9", " 127.0.0.1:9 \n\n[::1]:9"};
    memset(seeded, 0, sizeof *seeded);
    seeded->struct_size = sizeof *seeded;
    if (more.GetDefaultSeededOptions) more.GetDefaultSeededOptions(MMN_SEEDED_PROFILE_LAN, seeded);
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

static int default_etcd(void)
{
    union {
        EtcdOptions options;
        uint8_t space[ROOMY];
    } all;
    memset(&all, 0xaa, sizeof all);
    uint32_t size = all.options.struct_size = any_size(sizeof(EtcdOptions));
    int accepted = code(more.GetDefaultEtcdOptions(one_in(32) ? NULL : &all.options));
    if (all.options.struct_size != size) fail("GetDefaultEtcdOptions changed struct_size");
    for (size_t i = !accepted || size < 4 ? 4 : size; i < sizeof all; i++)
        if (all.space[i] != 0xaa) fail("GetDefaultEtcdOptions wrote byte %zu of %u", i, size);
    return accepted;
}

/* Where a call for a lock writes its number. */
static uint64_t *a_number(void)
{
    static _Thread_local uint64_t number;
    return one_in(16) ? NULL : &number;
}

/* Servers at an address without a listener; most builds have no etcd anyway. */
static const EtcdOptions *any_etcd(EtcdOptions *etcd)
{
    static const char *const endpoints[] = {"http://127.0.0.1:9", "http://[::1]:9\nhttp://localhost:9"};
    memset(etcd, 0, sizeof *etcd);
    etcd->struct_size = sizeof *etcd;
    if (more.GetDefaultEtcdOptions) more.GetDefaultEtcdOptions(etcd);
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

/* Usually options that open a room, in either dispatch mode, which the partners can join. */
static const NetworkOptions *any_options(union options *all, SeededOptions *seeded, EtcdOptions *etcd)
{
    static const char *const own_machine[] = {"127.0.0.1", "::1", "0.0.0.0", "::"};
    NetworkOptions *options = &all->options;
    memset(all, 0, sizeof *all);
    options->struct_size = sizeof *options;
    if (more.GetDefaultNetworkOptions) more.GetDefaultNetworkOptions(options);
    options->dispatch_mode = (uint8_t)below(2);
    options->strategy = strategy();
    struct network_config config;
    switch (below(32)) {
    case 0: return NULL;
    case 1: memset(all, 0, sizeof *all), options->struct_size = sizeof *options; break;
    case 2:
        memset(all, 0xff, sizeof *all), options->struct_size = sizeof *options;
        options->bind_address = bad_text(), options->secret = bytes, options->identity_key = bytes;
        break;
    case 3: options->struct_size = any_size(sizeof *options); break;
    case 4: options->strategy = below(5), options->strategy_flags = below(3); break;
    case 26: options->strategy = MMN_STRATEGY_GOSSIP, options->strategy_flags = below(2); break;
    case 5: options->bind_address = one_in(2) ? bad_text() : any_address(); break;
    case 6: options->bind_address = ANY(own_machine); break;
    case 7: options->secret = bytes, options->secret_length = below(2 * MMN_MAX_SECRET_BYTES); break;
    case 8: options->secret_length = 5; break;
    case 9: options->identity_key = bytes, options->identity_key_length = below(2000); break;
    case 10: options->member_hold_ms = below(3), options->queue_bytes = below(3); break;
    case 11: options->queue_bytes = 1; break;
    case 12: options->merge_policy = (uint8_t)below(3); break;
    case 13: options->set_leader_authority = (uint8_t)below(3); break;
    case 14: options->host_mode = (uint8_t)below(4); break;
    case 15: options->discovery_mode = (uint8_t)below(4); break;
    case 16: options->dispatch_mode = (uint8_t)chance(); break;
    case 17: options->eligible = 0; break;
    case 18: options->priority = (int32_t)chance(); break;
    case 19: options->bind_port = 9; break;
    case 27:
    case 28:
        options->strategy = MMN_STRATEGY_SEEDED, options->strategy_flags = below(5);
        options->quorum_roster = one_in(8) ? bad_text() : "хаос\n混沌\nchaos🌀";
        options->state_directory = one_in(8) ? "/proc/self" : cluster_directory;
        options->seeded = any_seeded(seeded);
        break;
    case 29: options->strategy = MMN_STRATEGY_ETCD, options->etcd = any_etcd(etcd); break;
    case 20: options->quorum_policy = below(3), options->quorum_voters = below(3); break;
    case 21: options->state_directory = bad_text(); break;
    case 25: options->trace_path = one_in(2) ? trace_path : one_in(2) ? state_directory : endless; break;
    case 22:
        options->quorum_policy = MMN_QUORUM_STATIC, options->quorum_voters = one_in(4) ? below(5) : 0;
        options->quorum_roster = one_in(4) ? bad_text() : "хаос\n混沌\nchaos🌀";
        options->state_directory = one_in(4) ? "/proc/self" : state_directory;
        break;
    case 23:
    case 24:
        if (any_config(&config)) memcpy(&options->config, &config, sizeof config);
        break;
    }
    return options;
}

static atomic_llong polled_rooms, gossip_rooms, seeded_rooms, leaderships;

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

static void on_leadership(uint8_t is_leader)
{
    if (is_leader > 1) fail("leadership %u", is_leader);
    atomic_fetch_add(&leaderships, 1);
    go_on_inside();
}

static int count_of(int64_t answer)
{
    if (answer < -1) fail("%s answered %lld", atomic_load(&self->in), (long long)answer);
    return answer >= 0;
}

static int open_with_options(void)
{
    union options all;
    SeededOptions seeded;
    EtcdOptions etcd;
    const NetworkOptions *options = any_options(&all, &seeded, &etcd);
    int accepted = opened(more.InitializeNetworkWithOptions(one_in(16) ? bad_text() : ANY(OWN), any_session(), options));
    if (accepted && options->dispatch_mode == MMN_DISPATCH_POLL) atomic_fetch_add(&polled_rooms, 1);
    if (accepted && options->strategy == MMN_STRATEGY_GOSSIP) atomic_fetch_add(&gossip_rooms, 1);
    if (accepted && options->strategy == MMN_STRATEGY_SEEDED) atomic_fetch_add(&seeded_rooms, 1);
    return accepted;
}

/* ------------------------------------------------------------------ peers */

static int stats(void)
{
    union {
        PeerStats stats;
        uint8_t space[ROOMY];
    } all;
    memset(&all, 0xaa, sizeof all);
    uint32_t size = all.stats.struct_size = any_size(sizeof(PeerStats));
    int accepted = code(more.GetPeerStats(any_peer(), one_in(32) ? NULL : &all.stats));
    if (all.stats.struct_size != size) fail("GetPeerStats changed struct_size");
    for (size_t i = !accepted || size < 4 ? 4 : size; i < sizeof all; i++)
        if (all.space[i] != 0xaa) fail("GetPeerStats wrote byte %zu of %u", i, size);
    return accepted;
}

static int room_stats(void)
{
    union {
        RoomStats stats;
        uint8_t space[ROOMY];
    } all;
    memset(&all, 0xaa, sizeof all);
    uint32_t size = all.stats.struct_size = any_size(sizeof(RoomStats));
    int accepted = code(more.GetRoomStats(one_in(32) ? NULL : &all.stats));
    if (all.stats.struct_size != size) fail("GetRoomStats changed struct_size");
    for (size_t i = !accepted || size < 4 ? 4 : size; i < sizeof all; i++)
        if (all.space[i] != 0xaa) fail("GetRoomStats wrote byte %zu of %u", i, size);
    return accepted;
}

static int index_of_peer(void)
{
    uint32_t index = more.GetPeerIndex(any_peer());
    return index ? text(more.GetPeerIdByIndex(index), 64) >= 0 : 0;
}

static int identity_key(void)
{
    uint8_t key[MMN_IDENTITY_KEY_BYTES + 1];
    int32_t length = (int32_t)below(sizeof key + 1) - one_in(8), longest = length < 0 ? 0 : length;
    memset(key, 0xaa, sizeof key);
    int32_t answer = more.GenerateIdentityKey(one_in(8) ? NULL : key, length);
    if (answer > longest) fail("GenerateIdentityKey wrote %d bytes to %d", (int)answer, (int)length);
    for (size_t i = answer < 0 ? 0 : (size_t)answer; i < sizeof key; i++)
        if (key[i] != 0xaa) fail("GenerateIdentityKey wrote byte %zu of %d", i, (int)length);
    return answer > 0 ? 1 : code(answer);
}

/* Usually valid: one call in eight has an invalid value. */
static const SendOptions *any_send_options(SendOptions *options)
{
    memset(options, 0, sizeof *options);
    options->struct_size = one_in(16) ? any_size(sizeof *options) : (uint32_t)sizeof *options;
    if (options->struct_size > sizeof *options) options->struct_size = sizeof *options;
    options->delivery = (uint8_t)below(one_in(8) ? 256 : 4);
    options->channel = (uint8_t)below(one_in(8) ? 256 : 3);
    options->priority = (uint8_t)below(4);
    options->flags = (uint8_t)one_in(8);
    if (options->delivery > MMN_DELIVERY_RELIABLE_UNORDERED) options->ttl_ms = one_in(2) ? 0 : below(100);
    if (options->delivery == MMN_DELIVERY_SEQUENCED) options->key = below(4);
    if (one_in(16)) options->reserved = (uint32_t)chance();
    return one_in(8) ? NULL : options;
}

static int to_peer_ex(void)
{
    SendOptions options;
    struct message m = any_message();
    return code(more.SendToPeerEx(any_peer(), m.data, m.length, m.type, m.flags, any_send_options(&options)));
}

static int broadcast_ex(void)
{
    SendOptions options;
    struct message m = any_message();
    int32_t answer = more.BroadcastEx(m.data, m.length, m.type, m.flags, any_send_options(&options));
    return answer > 0 ? 1 : code(answer);
}

/* For the windows of gossip, which persist into later rooms. */
static uint32_t a_window(void)
{
    return one_in(8) ? 0 : 20 + below(2000);
}

/* A removed member stays banned while the room exists; its program is started under another name. */
static int kick(void)
{
    struct message m = any_message();
    int second = one_in(256), length = one_in(8) ? 4000 : m.length;
    const char *victim = second ? partner_name(1) : one_in(2) ? "unknown" : bad_text();
    int accepted = code(more.KickPeer(victim, (int32_t)chance(), one_in(8) ? bytes : m.data, length));
    if (accepted) atomic_store(&removed, 1);
    return accepted;
}

/* Without a ban of a present member: kick() counts those. */
static int kick_ex(void)
{
    struct message m = any_message();
    uint32_t flags = one_in(2) ? MMN_KICK_BAN : one_in(4) ? (uint32_t)chance() : 0;
    return code(more.KickPeerEx(one_in(2) ? "unknown" : bad_text(), flags, (int32_t)chance(), m.data, one_in(8) ? 4000 : m.length));
}

static int disconnect_ex(void)
{
    struct message m = any_message();
    return code(more.DisconnectPeerEx(stranger_mostly(), (int32_t)chance(), m.data, m.length > 3072 ? 3072 : m.length));
}

static int join_payload(void)
{
    struct message m = any_message();
    return code(more.SetJoinPayload(m.data, m.length));
}

static atomic_ullong last_request;

static uint64_t any_request(void) { return one_in(4) ? below(64) : atomic_load(&last_request); }

static int reject(void)
{
    struct message m = any_message();
    return code(more.RejectJoin(any_request(), (int32_t)chance(), m.data, m.length));
}

/* ------------------------------------------------------------------ events */

static atomic_llong polled;

static int poll_events(void)
{
    int32_t max = (int32_t)below(20) - 2, answer = more.PollEvents(max);
    if (answer > (max < 0 ? 0 : max)) fail("PollEvents(%d) answered %d", (int)max, (int)answer);
    if (answer < 0) return code(answer);
    atomic_fetch_add(&polled, answer);
    return 1;
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

static void on_event(void *user_data, const NetworkEvent *event)
{
    if (*(int *)user_data != TYPE) fail("an event's user data is damaged");
    if (event->struct_size != sizeof *event) fail("an event of %u bytes", event->struct_size);
    if (event->kind < MMN_EVENT_JOINED || event->kind > LAST_EVENT_KIND) fail("an event of kind %u", event->kind);
    read_text(event->peer, NAME_BYTES);
    read_text(event->other, sizeof endless);
    if (!event->data || event->length < 0 || event->length > LIMIT_BYTES + 1 || event->success > 1)
        fail("an event of kind %u with %d bytes and success %u", event->kind, (int)event->length, event->success);
    unsigned sum = 0;
    for (int32_t i = 0; i < event->length; i++) sum += event->data[i];
    atomic_fetch_add_explicit(&sink, sum, memory_order_relaxed);
    if (event->kind == MMN_EVENT_JOIN_REQUEST) atomic_store(&last_request, event->request);
    atomic_fetch_add(&events, 1);
    go_on_inside();
}

static int take_log(void);

/* On any thread, in the middle of any call. Few calls are allowed in it. */
static void on_log(void *user_data, int32_t level, const char *message)
{
    if (*(int *)user_data != TYPE) fail("a log callback's user data is damaged");
    if (level < MMN_LOG_ERROR || level > MMN_LOG_TRACE) fail("a log record of level %d", (int)level);
    read_text(message, 1 << 20);
    atomic_fetch_add(&log_lines, 1);
    switch (below(64)) {
    case 0: text(net.GetPeerList(), 65536); break;
    case 1: at_least(net.GetPeerStatus(any_peer()), -1); break;
    case 2: take_log(); break;
    case 3:
        if (net.BroadcastMessage(bytes, 1, TYPE, 0) != MMN_WOULD_DEADLOCK) fail("a message was sent inside a log callback");
        break;
    case 4:
        if (net.ShutdownNetwork() != MMN_WOULD_DEADLOCK) fail("the room was closed inside a log callback");
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
    if (one_in(4)) return code(more.RegisterEventHandler(NULL, NULL, NULL));
    int *block = user_data(), accepted = code(more.RegisterEventHandler(on_event, block, on_event_drop));
    if (accepted) atomic_fetch_add(&registered, 1);
    else free(block);
    return accepted;
}

static int take_log(void)
{
    if (one_in(4)) return code(more.RegisterLogCallback(MMN_LOG_OFF, NULL, NULL, NULL));
    int *block = user_data(), accepted = code(more.RegisterLogCallback((int32_t)below(9) - 2, on_log, block, on_log_drop));
    if (accepted) atomic_fetch_add(&registered, 1);
    else free(block);
    return accepted;
}

/* Called when no other thread registers. A drop function may register anew, which is rare. */
static void drop_all(void)
{
    for (int i = 0; atomic_load(&registered) != atomic_load(&dropped); i++) {
        if (i == 8) fail("%lld registrations, %lld drops", atomic_load(&registered), atomic_load(&dropped));
        if (more.RegisterEventHandler) more.RegisterEventHandler(NULL, NULL, NULL);
        if (more.RegisterLogCallback) more.RegisterLogCallback(MMN_LOG_OFF, NULL, NULL, NULL);
    }
}
