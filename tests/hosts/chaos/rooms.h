/* Part of chaos.c: the functions with a room, called with rooms that are open, closed, made up, or none. */

enum { ROOMS = 3, CLOSED = 8 };
/* The open rooms beside the default one, or 0, and some that were closed. */
static atomic_ullong rooms[ROOMS], closed_rooms[CLOSED];
static atomic_llong opened_rooms;

static MmnRoom any_room(void)
{
    switch (below(12)) {
    case 0: return 0;
    case 1: return one_in(2) ? chance() : below(1 << 16);
    case 2: return atomic_load(&closed_rooms[below(CLOSED)]);
    case 3:
    case 4: return more.mmn_default_room();
    default: return atomic_load(&rooms[below(ROOMS)]);
    }
}

static int is_room(MmnRoom room)
{
    if (room >> 53) fail("%s answered the room %llu", atomic_load(&self->in), (unsigned long long)room);
    return room != 0;
}

/* Of several threads that close one room, one succeeds. */
static void close_for_good(MmnRoom room)
{
    if (!room) return;
    int32_t answer = more.mmn_close(room);
    if (answer != 0 && answer != MMN_NOT_INITIALIZED) fail("mmn_close answered %d", (int)answer);
    if (more.mmn_is_open(room) || more.mmn_close(room) != MMN_NOT_INITIALIZED) fail("a closed room is open");
    atomic_store(&closed_rooms[below(CLOSED)], room);
}

static int open_another(void)
{
    /* A room that is opened inside a callback could not be closed there. */
    if (callback_depth || one_in(4)) return -1;
    MmnOptions options = {.struct_size = sizeof options};
    more.mmn_default_options(&options);
    options.dispatch_mode = below(2);
    options.strategy = strategy();
    int *block = user_data();
    options.on_event = on_event, options.user_data = block, options.drop_fn = on_event_drop;
    const MmnOptions *passed = &options;
    switch (below(12)) {
    case 0: passed = NULL; break;
    case 1: options.struct_size = any_size(sizeof options); break;
    case 2: options.bind_port = (uint32_t)chance(); break;
    case 3: options.handshake_timeout_ms = (uint32_t)chance(); break;
    case 4: options.reserved = below(2); break;
    case 5: options.topology = below(3), options.host_mode = below(4); break;
    case 6: options.priority = (int32_t)chance(), options.entry = below(4); break;
    }
    MmnRoom room = 0;
    int accepted = code(more.mmn_open(one_in(16) ? bad_text() : ANY(OWN), any_session(), passed, one_in(32) ? NULL : &room));
    /* A struct that ends before the handler has none. */
    int is_taken = accepted && passed && options.struct_size >= sizeof options;
    if (is_taken) atomic_fetch_add(&registered, 1);
    else free(block);
    if (!accepted) return 0;
    if (!is_room(room)) fail("mmn_open gave no room");
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

/* Only without a running worker. */
static void close_rooms(void)
{
    for (int i = 0; i < ROOMS; i++) close_for_good(atomic_exchange(&rooms[i], 0));
}

static int default_more_options(void)
{
    union {
        MmnOptions options;
        uint8_t space[ROOMY];
    } all;
    memset(&all, 0xaa, sizeof all);
    uint32_t size = all.options.struct_size = any_size(sizeof(MmnOptions));
    int accepted = code(more.mmn_default_options(one_in(32) ? NULL : &all.options));
    if (all.options.struct_size != size) fail("mmn_default_options changed struct_size");
    for (size_t i = !accepted || size < 4 ? 4 : size; i < sizeof all; i++)
        if (all.space[i] != 0xaa) fail("mmn_default_options wrote byte %zu of %u", i, size);
    return accepted;
}

/* Usually valid: one call in eight has an invalid value. */
static const MmnSendOptions *any_way(MmnSendOptions *options, struct message m)
{
    memset(options, 0, sizeof *options);
    options->struct_size = one_in(16) ? below(sizeof *options + 1) : (uint32_t)sizeof *options;
    options->delivery = (uint8_t)below(one_in(8) ? 256 : 4);
    options->channel = (uint8_t)below(3);
    options->priority = (int8_t)(below(one_in(8) ? 256 : 4) - 1);
    options->flags = (uint8_t)one_in(8);
    options->user_flags = m.flags;
    if (options->delivery > MMN_DELIVERY_RELIABLE_UNORDERED) options->ttl_ms = one_in(2) ? 0 : below(100);
    if (options->delivery == MMN_DELIVERY_SEQUENCED) options->key = below(4);
    if (one_in(16)) options->reserved2 = (uint16_t)chance();
    return one_in(4) ? NULL : options;
}

#define SEND(call)                        \
    {                                     \
        MmnSendOptions options;           \
        struct message m = any_message(); \
        return code(call);                \
    }
static int room_send(void) SEND(more.mmn_send(any_room(), any_peer(), m.data, m.length, m.type, any_way(&options, m)))
static int room_to_leader(void) SEND(more.mmn_send_to_leader(any_room(), m.data, m.length, m.type, any_way(&options, m)))
static int room_as_leader(void) SEND(more.mmn_broadcast_as_leader(any_room(), m.data, m.length, m.type, any_way(&options, m)))
static int room_forward(void)
    SEND(more.mmn_forward(any_room(), any_peer(), one_in(2) ? NULL : any_peer(), m.data, m.length, m.type, any_way(&options, m)))
static int room_disconnect(void)
    SEND((any_way(&options, m), more.mmn_disconnect(any_room(), stranger_mostly(), (int32_t)chance(), m.data, m.length > 3072 ? 3072 : m.length)))
static int room_join_payload(void) SEND((any_way(&options, m), more.mmn_set_join_payload(any_room(), m.data, m.length)))
static int room_reject(void)
    SEND((any_way(&options, m), more.mmn_reject_join(any_room(), any_request(), (int32_t)chance(), m.data, m.length)))
static int room_kick(void)
    SEND((any_way(&options, m), more.mmn_kick(any_room(), one_in(2) ? "unknown" : bad_text(), below(3), (int32_t)chance(), m.data, m.length)))

static int room_broadcast(void)
{
    MmnSendOptions options;
    struct message m = any_message();
    int32_t answer = more.mmn_broadcast(any_room(), m.data, m.length, m.type, any_way(&options, m));
    return answer > 0 ? 1 : code(answer);
}

static int room_poll(void)
{
    int32_t max = (int32_t)below(20) - 2, answer = more.mmn_poll(any_room(), max);
    if (answer > (max < 0 ? 0 : max)) fail("mmn_poll(%d) answered %d", (int)max, (int)answer);
    return answer < 0 ? code(answer) : 1;
}

static int room_handler(void)
{
    if (one_in(4)) return code(more.mmn_set_event_handler(any_room(), NULL, NULL, NULL));
    int *block = user_data(), accepted = code(more.mmn_set_event_handler(any_room(), on_event, block, on_event_drop));
    if (accepted) atomic_fetch_add(&registered, 1);
    else free(block);
    return accepted;
}

static void on_room_log(void *user_data, uint64_t room, int32_t level, const char *message)
{
    is_room(room);
    on_log(user_data, level, message);
}

static int room_log(void)
{
    if (one_in(4)) return code(more.mmn_set_log(MMN_LOG_OFF, NULL, NULL, NULL));
    int *block = user_data(), accepted = code(more.mmn_set_log((int32_t)below(9) - 2, on_room_log, block, on_log_drop));
    if (accepted) atomic_fetch_add(&registered, 1);
    else free(block);
    return accepted;
}

static int room_figures(void)
{
    PeerStats stats = {.struct_size = any_size(sizeof stats)};
    if (stats.struct_size > sizeof stats) stats.struct_size = sizeof stats;
    return code(more.mmn_peer_stats(any_room(), any_peer(), one_in(16) ? NULL : &stats));
}

static int room_totals(void)
{
    RoomStats stats = {.struct_size = sizeof stats};
    return code(more.mmn_room_stats(any_room(), one_in(16) ? NULL : &stats));
}

static int set_windows(void)
{
    MmnGossipWindows windows = {sizeof windows, a_window(), a_window(), a_window(), a_window()};
    return code(more.mmn_set_gossip_windows(any_room(), one_in(16) ? NULL : &windows));
}

static int get_windows(void)
{
    MmnGossipWindows windows = {.struct_size = sizeof windows};
    return code(more.mmn_gossip_windows(any_room(), one_in(16) ? NULL : &windows));
}

static int more_identity_key(void)
{
    uint8_t key[MMN_IDENTITY_KEY_BYTES];
    int32_t answer = more.mmn_generate_identity_key(one_in(8) ? NULL : key, (int32_t)below(sizeof key + 1));
    return answer > 0 ? 1 : code(answer);
}

static int more_seeded(void)
{
    SeededOptions options = {.struct_size = sizeof options};
    return code(more.mmn_default_seeded_options(below(3), one_in(8) ? NULL : &options));
}

static int more_etcd(void)
{
    EtcdOptions options = {.struct_size = sizeof options};
    return code(more.mmn_default_etcd_options(one_in(8) ? NULL : &options));
}

#define ROOM_CALLS(X)                                                                                          \
    X(mmn_open, 2, open_another())                                                                             \
    X(mmn_close, 2, close_another())                                                                           \
    X(mmn_leave, 1, leave_another())                                                                           \
    X(mmn_is_open, 4, flag(more.mmn_is_open(any_room())))                                                      \
    X(mmn_default_room, 2, is_room(more.mmn_default_room()))                                                   \
    X(mmn_is_announced, 2, flag(more.mmn_is_announced(any_room())))                                            \
    X(mmn_set_event_handler, 2, room_handler())                                                                \
    X(mmn_poll, 16, room_poll())                                                                               \
    X(mmn_abi_version, 1, more.mmn_abi_version() > 0)                                                          \
    X(mmn_library_version, 1, text(more.mmn_library_version(), 64))                                            \
    X(mmn_describe_error, 1, text(more.mmn_describe_error((int32_t)chance() % 128), 4096))                     \
    X(mmn_last_error_code, 2, more.mmn_last_error_code() <= 0)                                                 \
    X(mmn_last_error_message, 2, text(more.mmn_last_error_message(), 4096))                                    \
    X(mmn_set_log, 1, room_log())                                                                              \
    X(mmn_set_log_stderr, 1, code(more.mmn_set_log_stderr((int32_t)below(9) - 2)))                             \
    X(mmn_generate_identity_key, 1, more_identity_key())                                                       \
    X(mmn_default_options, 1, default_more_options())                                                          \
    X(mmn_default_seeded_options, 1, more_seeded())                                                            \
    X(mmn_default_etcd_options, 1, more_etcd())                                                                \
    X(mmn_connect, 4, code(more.mmn_connect(any_room(), any_address())))                                       \
    X(mmn_disconnect, 1, room_disconnect())                                                                    \
    X(mmn_peer_count, 4, at_least(more.mmn_peer_count(any_room()), -1))                                        \
    X(mmn_peers, 4, text(more.mmn_peers(any_room()), 65536))                                                   \
    X(mmn_members, 4, text(more.mmn_members(any_room()), 65536))                                               \
    X(mmn_peer_index, 4, at_least((int32_t)(more.mmn_peer_index(any_room(), any_peer()) >> 1), 0))             \
    X(mmn_peer_id, 4, text(more.mmn_peer_id(any_room(), below(8)), 64))                                        \
    X(mmn_peer_address, 4, text(more.mmn_peer_address(any_room(), any_peer()), 128))                           \
    X(mmn_peer_fingerprint, 4, text(more.mmn_peer_fingerprint(any_room(), any_peer()), 64))                    \
    X(mmn_peer_rtt_ms, 4, at_least(more.mmn_peer_rtt_ms(any_room(), any_peer()), -1))                          \
    X(mmn_peer_status, 4, at_least(more.mmn_peer_status(any_room(), any_peer()), -1))                          \
    X(mmn_peer_stats, 4, room_figures())                                                                       \
    X(mmn_room_stats, 4, room_totals())                                                                        \
    X(mmn_local_address, 4, text(more.mmn_local_address(any_room()), 128))                                     \
    X(mmn_local_addresses, 4, text(more.mmn_local_addresses(any_room()), 65536))                               \
    X(mmn_local_id, 4, text(more.mmn_local_id(any_room()), 64))                                                \
    X(mmn_session_id, 4, text(more.mmn_session_id(any_room()), 128))                                           \
    X(mmn_local_fingerprint, 4, text(more.mmn_local_fingerprint(any_room()), 64))                              \
    X(mmn_set_auto_reconnect, 1, code(more.mmn_set_auto_reconnect(any_room(), (uint8_t)!one_in(4))))           \
    X(mmn_auto_reconnect, 2, flag(more.mmn_auto_reconnect(any_room())))                                        \
    X(mmn_set_join_payload, 1, room_join_payload())                                                            \
    X(mmn_set_join_requests, 1, code(more.mmn_set_join_requests(any_room(), (uint8_t)!one_in(4))))             \
    X(mmn_accept_join, 2, code(more.mmn_accept_join(any_room(), any_request())))                               \
    X(mmn_reject_join, 1, room_reject())                                                                       \
    X(mmn_kick, 1, room_kick())                                                                                \
    X(mmn_unban, 1, code(more.mmn_unban(any_room(), any_peer())))                                              \
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
    X(mmn_send, 8, room_send())                                                                                \
    X(mmn_broadcast, 8, room_broadcast())                                                                      \
    X(mmn_send_to_leader, 4, room_to_leader())                                                                 \
    X(mmn_broadcast_as_leader, 4, room_as_leader())                                                            \
    X(mmn_forward, 4, room_forward())                                                                          \
    X(mmn_max_datagram_size, 2, at_least(more.mmn_max_datagram_size(any_room(), one_in(2) ? NULL : any_peer()), -3)) \
    X(mmn_set_centralized, 1, code(more.mmn_set_centralized(any_room(), (uint8_t)one_in(4))))                  \
    X(mmn_centralized, 2, flag(more.mmn_centralized(any_room())))                                              \
    X(mmn_set_auto_forward, 1, code(more.mmn_set_auto_forward(any_room(), (uint8_t)below(3))))                 \
    X(mmn_auto_forward, 2, flag(more.mmn_auto_forward(any_room())))                                            \
    X(mmn_set_compression_threshold, 1, code(more.mmn_set_compression_threshold(any_room(), below(1000))))     \
    X(mmn_simulate_network, 1, code(more.mmn_simulate_network(any_room(), below(60), below(60), one_in(2) ? 0 : below(60))))
