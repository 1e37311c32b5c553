/* The declarations of ABI version 100, without their comments. Licence: MIT OR Apache-2.0. */
#ifndef META_MYSTIA_NETWORK_H
#define META_MYSTIA_NETWORK_H
#include <stdint.h>
#define MMN_ABI_VERSION 100
#define MMN_OK 0
#define MMN_NOT_INITIALIZED (-1)
#define MMN_ALREADY_INITIALIZED (-2)
#define MMN_INVALID_ARGUMENT (-3)
#define MMN_CONNECTION_FAILED (-4)
#define MMN_PEER_NOT_FOUND (-5)
#define MMN_NOT_LEADER (-6)
#define MMN_SEND_QUEUE_FULL (-7)
#define MMN_MESSAGE_TOO_LARGE (-8)
#define MMN_SERIALIZATION_ERROR (-9)
#define MMN_SESSION_MISMATCH (-10)
#define MMN_DUPLICATE_PEER_ID (-11)
#define MMN_VERSION_MISMATCH (-12)
#define MMN_MAX_CONNECTIONS_REACHED (-13)
#define MMN_ALREADY_CONNECTED (-14)
#define MMN_WOULD_DEADLOCK (-15)
#define MMN_NOT_SUPPORTED (-16)
#define MMN_AUTHENTICATION_FAILED (-17)
#define MMN_REJECTED (-18)
#define MMN_TIMEOUT (-19)
#define MMN_POLICY_MISMATCH (-20)
#define MMN_SUPERSEDED (-21)
#define MMN_RATE_LIMITED (-22)
#define MMN_NAME_NOT_RESOLVED (-23)
#define MMN_LOOKING_FOR_ROOM (-24)
#define MMN_INTERNAL_ERROR (-99)
#define MMN_MAX_PEER_ID_BYTES 64
#define MMN_MAX_SESSION_ID_BYTES 128
#define MMN_MIN_MESSAGE_TYPE 256
#define MMN_PEER_CONNECTED 0
#define MMN_PEER_DISCONNECTED 1
#define MMN_PEER_RECONNECTING 2
#define MMN_PEER_HANDSHAKING 3
#define MMN_LOG_OFF 0
#define MMN_LOG_ERROR 1
#define MMN_LOG_WARN 2
#define MMN_LOG_INFO 3
#define MMN_LOG_DEBUG 4
#define MMN_LOG_TRACE 5
#define MMN_RECOVERY_HOLD 0
#define MMN_RECOVERY_AUTO_ELECT 1
#define MMN_DISCOVERY_OFF 0
#define MMN_DISCOVERY_REPORT 1
#define MMN_DISCOVERY_CONNECT 2
#define MMN_DISPATCH_THREAD 0
#define MMN_DISPATCH_POLL 1
#define MMN_MERGE_LARGEST_SIDE 0
#define MMN_MERGE_HIGHEST_TERM 1
#define MMN_AUTHORITY_ANYONE 0
#define MMN_AUTHORITY_LEADER_ONLY 1
#define MMN_HOST_MODE_OFF 0
#define MMN_HOST_MODE_HOST 1
#define MMN_HOST_MODE_GUEST 2
#define MMN_TOPOLOGY_MESH 0
#define MMN_TOPOLOGY_STAR 1
#define MMN_ENTRY_ANY 0
#define MMN_ENTRY_CREATE 1
#define MMN_ENTRY_JOIN 2
#define MMN_QUORUM_DYNAMIC 0
#define MMN_QUORUM_STATIC 1
#define MMN_STRATEGY_RAFT 0
#define MMN_STRATEGY_GOSSIP 1
#define MMN_STRATEGY_SEEDED 2
#define MMN_STRATEGY_ETCD 3
#define MMN_SEEDED_STRICT_START 1
#define MMN_SEEDED_NEVER_ALONE 2
#define MMN_SEEDED_PROFILE_WAN 0
#define MMN_SEEDED_PROFILE_LAN 1
#define MMN_DELIVERY_RELIABLE_ORDERED 0
#define MMN_DELIVERY_RELIABLE_UNORDERED 1
#define MMN_DELIVERY_UNRELIABLE 2
#define MMN_DELIVERY_SEQUENCED 3
#define MMN_SEND_PARTIAL 1
#define MMN_PRIORITY_LOW (-1)
#define MMN_PRIORITY_NORMAL 0
#define MMN_PRIORITY_HIGH 1
#define MMN_PRIORITY_HIGHEST 2
#define MMN_KICK_BAN 1
#define MMN_GOSSIP_STRICT_LOWEST 1
#define MMN_MAX_SECRET_BYTES 1024
#define MMN_IDENTITY_KEY_BYTES 48
#define MMN_MAX_SEEDS 32
#define MMN_MAX_ETCD_ENDPOINTS 16
#define MMN_MAX_PROCLAIMED_BYTES 4096
#define MMN_MAX_LOCK_NAME_BYTES 128
#define MMN_MAX_QUORUM_VOTERS 64
#define MMN_EVENT_JOINED 1
#define MMN_EVENT_RECONNECTING 2
#define MMN_EVENT_RETURNED 3
#define MMN_EVENT_LEFT 4
#define MMN_EVENT_MESSAGE 5
#define MMN_EVENT_SET_LEADER_RESULT 6
#define MMN_EVENT_ROOM_ENDED 7
#define MMN_EVENT_LEADER_CHANGED 8
#define MMN_EVENT_LEADERSHIP_GAINED 9
#define MMN_EVENT_LEADERSHIP_LOST 10
#define MMN_EVENT_JOIN_REQUEST 11
#define MMN_EVENT_DISCOVERED 12
#define MMN_EVENT_CONNECTION_RESULT 13
#define MMN_EVENT_SLOW_PEER 14
#define MMN_EVENT_DATA_DROPPED 15
#define MMN_EVENT_MEMBER_STATE 16
#define MMN_EVENT_LOCK_RESULT 17
#define MMN_EVENT_LOCK_LOST 18
#define MMN_EVENT_UNLINKED_PEER 22
#define MMN_EVENT_BAN_DROPPED 23
#define MMN_EVENT_DISCOVERY_REFUSED 21
#define MMN_EVENT_JOIN_WITHDRAWN 24
#define MMN_EVENT_HOST_SILENT 19
#define MMN_EVENT_HOST_BACK 20
#define MMN_EVENT_NO_ROOM_FOUND 25
#define MMN_FOUND_IN_LOCAL_NETWORK 1
#define MMN_FOUND_AS_SEED 2
#define MMN_MEMBER_INIT 0
#define MMN_MEMBER_JOINING 1
#define MMN_MEMBER_ACTIVE 2
#define MMN_MEMBER_UNREACHABLE 3
#define MMN_MEMBER_LEAVING 4
#define MMN_MEMBER_REMOVED 5
#define MMN_LEADER_UNKNOWN 0
#define MMN_LEADER_ELECTED 1
#define MMN_LEADER_ASSIGNED 2
#define MMN_LEADER_TRANSFERRED 3
#define MMN_LEADER_FOUND 4
#define MMN_LEADER_LOST 5
#define MMN_LEADER_LEFT 6
#define MMN_LEADER_RESIGNED 7
#define MMN_LEFT_LEFT 0
#define MMN_LEFT_LOST 1
#define MMN_LEFT_DISCONNECTED 2
#define MMN_LEFT_REPLACED 3
#define MMN_LEFT_KICKED 4
#define MMN_LEFT_VIOLATION 5
#define MMN_LEFT_GAVE_UP 6
#define MMN_LEFT_ROOM_ENDED 7
#define MMN_DROPPED_SENT 0
#define MMN_DROPPED_RECEIVED 1
#define MMN_END_KICKED 0
#define MMN_END_HOST_LEFT 1
#define MMN_END_HOST_LOST 2
#define MMN_END_DISCONNECTED 3
#define MMN_END_DUPLICATE_ID 4
#define MMN_END_INTERNAL 5
#define MMN_PATH_DIRECT 0
#define MMN_PATH_THROUGH_LEADER 1
typedef uint64_t MmnRoom;
typedef struct MmnEvent {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t term;
  uint64_t epoch;
  uint64_t request;
  uint64_t count;
  const char *peer;
  const char *other;
  const uint8_t *data;
  int32_t length;
  int32_t reason;
  int32_t code;
  uint16_t msg_type;
  uint8_t flags;
  uint8_t success;
  uint64_t missed;
  uint32_t peer_index;
  uint8_t channel;
  uint8_t delivery;
  uint16_t found_by;
  MmnRoom room;
} MmnEvent;
typedef void (*MmnEventCallback)(void *user_data, const struct MmnEvent *event);
typedef void (*MmnDropCallback)(void *user_data);
typedef struct MmnSeededOptions {
  uint32_t struct_size;
  uint32_t is_seed;
  const char *seeds;
  uint32_t probe_interval_ms;
  uint32_t heartbeat_interval_ms;
  uint32_t heartbeat_timeout_ms;
  uint32_t ttl_timeout_ms;
  uint32_t retry_interval_ms;
  uint32_t reserved;
} MmnSeededOptions;
typedef struct MmnEtcdOptions {
  uint32_t struct_size;
  uint32_t ttl_seconds;
  const char *endpoints;
  const char *prefix;
  const char *address;
  const char *ca_file;
  const char *cert_file;
  const char *key_file;
  const char *user;
  const char *password;
} MmnEtcdOptions;
typedef struct MmnOptions {
  uint32_t struct_size;
  uint32_t strategy;
  MmnEventCallback on_event;
  void *user_data;
  MmnDropCallback drop_fn;
  const char *bind_address;
  const uint8_t *secret;
  const uint8_t *identity_key;
  const char *state_directory;
  const char *trace_path;
  const char *quorum_roster;
  const struct MmnSeededOptions *seeded;
  const struct MmnEtcdOptions *etcd;
  uint32_t secret_length;
  uint32_t identity_key_length;
  uint32_t is_default;
  uint32_t dispatch_mode;
  uint32_t bind_port;
  uint32_t discovery_mode;
  uint32_t mdns_port;
  uint32_t max_connections;
  uint32_t max_peers;
  uint32_t max_message_size;
  uint32_t send_queue_capacity;
  uint32_t incoming_queue_capacity;
  uint32_t queue_bytes;
  uint32_t hold_messages;
  uint32_t compression_threshold;
  uint32_t heartbeat_interval_ms;
  uint32_t heartbeat_timeout_multiplier;
  uint32_t election_timeout_min_ms;
  uint32_t election_timeout_max_ms;
  uint32_t reconnect_initial_ms;
  uint32_t reconnect_max_ms;
  uint32_t reconnect_max_retries;
  uint32_t auto_reconnect;
  uint32_t member_hold_ms;
  uint32_t handshake_timeout_ms;
  uint32_t write_timeout_ms;
  uint32_t auto_election;
  uint32_t eligible;
  int32_t priority;
  uint32_t manual_override_recovery;
  uint32_t set_leader_authority;
  uint32_t merge_policy;
  uint32_t quorum_policy;
  uint32_t quorum_voters;
  uint32_t strategy_flags;
  uint32_t host_mode;
  uint32_t topology;
  uint32_t entry;
  uint32_t yield_after_ms;
  uint32_t centralized_auto_forward;
  uint32_t startup_grace_ms;
  uint32_t sample_interval_ms;
  uint32_t alive_threshold_ms;
  uint32_t election_duration_ms;
} MmnOptions;
typedef struct MmnGossipWindows {
  uint32_t struct_size;
  uint32_t startup_grace_ms;
  uint32_t sample_interval_ms;
  uint32_t alive_threshold_ms;
  uint32_t election_duration_ms;
} MmnGossipWindows;
typedef struct MmnSendOptions {
  uint32_t struct_size;
  uint8_t delivery;
  uint8_t channel;
  int8_t priority;
  uint8_t flags;
  uint32_t ttl_ms;
  uint8_t user_flags;
  uint8_t reserved;
  uint16_t reserved2;
  uint64_t key;
} MmnSendOptions;
typedef struct MmnPeerStats {
  uint32_t struct_size;
  uint32_t rtt_us;
  uint32_t jitter_us;
  uint32_t loss_ppm;
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t messages_sent;
  uint64_t messages_received;
  uint32_t queue_messages;
  uint32_t queue_age_ms;
  uint64_t queue_bytes;
  uint64_t congestion_window;
  uint32_t path_mtu;
  uint32_t reconnects;
  uint32_t path;
  uint32_t reserved;
  uint32_t host_silent_ms;
  uint32_t reserved2;
} MmnPeerStats;
typedef struct MmnRoomStats {
  uint32_t struct_size;
  uint32_t unlinked_peers;
  uint64_t missed_broadcasts;
} MmnRoomStats;
typedef void (*MmnLogCallback)(void *user_data, uint64_t room, int32_t level, const char *message);
#ifdef __cplusplus
extern "C" {
#endif
uint32_t mmn_abi_version(void);
const char *mmn_library_version(void);
int32_t mmn_set_event_handler(MmnRoom room,
                              MmnEventCallback callback,
                              void *user_data,
                              MmnDropCallback drop_fn);
int32_t mmn_take_messages(MmnRoom room);
int32_t mmn_poll(MmnRoom room, int32_t max);
int32_t mmn_default_options(struct MmnOptions *options);
int32_t mmn_open(const char *peer_id,
                 const char *session_id,
                 const struct MmnOptions *options,
                 MmnRoom *room);
int32_t mmn_leave(MmnRoom room);
int32_t mmn_close(MmnRoom room);
uint8_t mmn_is_open(MmnRoom room);
MmnRoom mmn_default_room(void);
uint8_t mmn_is_announced(MmnRoom room);
int32_t mmn_last_error_code(void);
const char *mmn_last_error_message(void);
const char *mmn_describe_error(int32_t code);
int32_t mmn_connect(MmnRoom room, const char *addr);
int32_t mmn_disconnect(MmnRoom room, const char *peer_id, int32_t code, const uint8_t *data, int32_t length);
const char *mmn_local_address(MmnRoom room);
const char *mmn_local_addresses(MmnRoom room);
const char *mmn_local_id(MmnRoom room);
const char *mmn_session_id(MmnRoom room);
int32_t mmn_peer_count(MmnRoom room);
const char *mmn_peers(MmnRoom room);
const char *mmn_members(MmnRoom room);
const char *mmn_peer_address(MmnRoom room, const char *peer_id);
uint32_t mmn_peer_index(MmnRoom room, const char *peer_id);
const char *mmn_peer_id(MmnRoom room, uint32_t index);
int32_t mmn_peer_rtt_ms(MmnRoom room, const char *peer_id);
int32_t mmn_peer_status(MmnRoom room, const char *peer_id);
int32_t mmn_generate_identity_key(uint8_t *buffer, int32_t length);
const char *mmn_local_fingerprint(MmnRoom room);
const char *mmn_peer_fingerprint(MmnRoom room, const char *peer_id);
int32_t mmn_set_auto_reconnect(MmnRoom room, uint8_t enabled);
uint8_t mmn_auto_reconnect(MmnRoom room);
int32_t mmn_kick(MmnRoom room,
                 const char *peer_id,
                 uint32_t flags,
                 int32_t code,
                 const uint8_t *data,
                 int32_t length);
int32_t mmn_unban(MmnRoom room, const char *peer_id);
int32_t mmn_set_max_peers(MmnRoom room, uint32_t max_peers);
int32_t mmn_set_join_payload(MmnRoom room, const uint8_t *data, int32_t length);
int32_t mmn_set_join_requests(MmnRoom room, uint8_t enabled);
int32_t mmn_accept_join(MmnRoom room, uint64_t request);
int32_t mmn_reject_join(MmnRoom room, uint64_t request, int32_t code, const uint8_t *data, int32_t length);
int32_t mmn_set_leader(MmnRoom room, const char *peer_id);
int32_t mmn_set_auto_election(MmnRoom room, uint8_t enabled);
int32_t mmn_set_eligible(MmnRoom room, uint8_t eligible);
int32_t mmn_transfer_leadership(MmnRoom room, const char *peer_id);
int32_t mmn_yield_leadership(MmnRoom room);
int32_t mmn_set_priority(MmnRoom room, int32_t priority);
int64_t mmn_leader_term(MmnRoom room);
int64_t mmn_leader_epoch(MmnRoom room);
int32_t mmn_strategy(MmnRoom room);
const char *mmn_leader(MmnRoom room);
uint8_t mmn_is_leader(MmnRoom room);
int32_t mmn_set_gossip_windows(MmnRoom room, const struct MmnGossipWindows *windows);
int32_t mmn_gossip_windows(MmnRoom room, struct MmnGossipWindows *windows);
int32_t mmn_default_seeded_options(uint32_t profile, struct MmnSeededOptions *options);
int32_t mmn_member_state(MmnRoom room, const char *peer_id);
int64_t mmn_cluster_version(MmnRoom room);
int32_t mmn_default_etcd_options(struct MmnEtcdOptions *options);
int64_t mmn_fencing_token(MmnRoom room);
int32_t mmn_proclaim(MmnRoom room, const char *value);
int32_t mmn_acquire_lock(MmnRoom room, const char *name, uint32_t timeout_ms, uint64_t *request);
int32_t mmn_try_lock(MmnRoom room, const char *name, uint64_t *request);
int32_t mmn_release_lock(MmnRoom room, const char *name);
int32_t mmn_send(MmnRoom room,
                 const char *peer_id,
                 const uint8_t *data,
                 int32_t length,
                 uint16_t msg_type,
                 const struct MmnSendOptions *options);
int32_t mmn_broadcast(MmnRoom room,
                      const uint8_t *data,
                      int32_t length,
                      uint16_t msg_type,
                      const struct MmnSendOptions *options);
int32_t mmn_send_to_leader(MmnRoom room,
                           const uint8_t *data,
                           int32_t length,
                           uint16_t msg_type,
                           const struct MmnSendOptions *options);
int32_t mmn_broadcast_as_leader(MmnRoom room,
                                const uint8_t *data,
                                int32_t length,
                                uint16_t msg_type,
                                const struct MmnSendOptions *options);
int32_t mmn_forward(MmnRoom room,
                    const char *from,
                    const char *to,
                    const uint8_t *data,
                    int32_t length,
                    uint16_t msg_type,
                    const struct MmnSendOptions *options);
int32_t mmn_max_datagram_size(MmnRoom room, const char *peer_id);
int32_t mmn_set_centralized(MmnRoom room, uint8_t enabled);
uint8_t mmn_centralized(MmnRoom room);
int32_t mmn_set_auto_forward(MmnRoom room, uint8_t enabled);
uint8_t mmn_auto_forward(MmnRoom room);
int32_t mmn_set_compression_threshold(MmnRoom room, uint32_t bytes);
int32_t mmn_peer_stats(MmnRoom room, const char *peer_id, struct MmnPeerStats *stats);
int32_t mmn_room_stats(MmnRoom room, struct MmnRoomStats *stats);
int32_t mmn_simulate_network(MmnRoom room, uint32_t lag_ms, uint32_t jitter_ms, uint32_t loss_permille);
int32_t mmn_set_log_stderr(int32_t level);
int32_t mmn_set_log(int32_t level, MmnLogCallback callback, void *user_data, MmnDropCallback drop_fn);
#ifdef __cplusplus
}
#endif
#define MMN_FUNCTIONS(X) \
  X(uint32_t, mmn_abi_version, (void)) \
  X(const char *, mmn_library_version, (void)) \
  X(int32_t, mmn_set_event_handler, (uint64_t room, MmnEventCallback callback, void *user_data, MmnDropCallback drop_fn)) \
  X(int32_t, mmn_take_messages, (uint64_t room)) \
  X(int32_t, mmn_poll, (uint64_t room, int32_t max)) \
  X(int32_t, mmn_default_options, (struct MmnOptions *options)) \
  X(int32_t, mmn_open, (const char *peer_id, const char *session_id, const struct MmnOptions *options, uint64_t *room)) \
  X(int32_t, mmn_leave, (uint64_t room)) \
  X(int32_t, mmn_close, (uint64_t room)) \
  X(uint8_t, mmn_is_open, (uint64_t room)) \
  X(uint64_t, mmn_default_room, (void)) \
  X(uint8_t, mmn_is_announced, (uint64_t room)) \
  X(int32_t, mmn_last_error_code, (void)) \
  X(const char *, mmn_last_error_message, (void)) \
  X(const char *, mmn_describe_error, (int32_t code)) \
  X(int32_t, mmn_connect, (uint64_t room, const char *addr)) \
  X(int32_t, mmn_disconnect, (uint64_t room, const char *peer_id, int32_t code, const uint8_t *data, int32_t length)) \
  X(const char *, mmn_local_address, (uint64_t room)) \
  X(const char *, mmn_local_addresses, (uint64_t room)) \
  X(const char *, mmn_local_id, (uint64_t room)) \
  X(const char *, mmn_session_id, (uint64_t room)) \
  X(int32_t, mmn_peer_count, (uint64_t room)) \
  X(const char *, mmn_peers, (uint64_t room)) \
  X(const char *, mmn_members, (uint64_t room)) \
  X(const char *, mmn_peer_address, (uint64_t room, const char *peer_id)) \
  X(uint32_t, mmn_peer_index, (uint64_t room, const char *peer_id)) \
  X(const char *, mmn_peer_id, (uint64_t room, uint32_t index)) \
  X(int32_t, mmn_peer_rtt_ms, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_peer_status, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_generate_identity_key, (uint8_t *buffer, int32_t length)) \
  X(const char *, mmn_local_fingerprint, (uint64_t room)) \
  X(const char *, mmn_peer_fingerprint, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_set_auto_reconnect, (uint64_t room, uint8_t enabled)) \
  X(uint8_t, mmn_auto_reconnect, (uint64_t room)) \
  X(int32_t, mmn_kick, (uint64_t room, const char *peer_id, uint32_t flags, int32_t code, const uint8_t *data, int32_t length)) \
  X(int32_t, mmn_unban, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_set_max_peers, (uint64_t room, uint32_t max_peers)) \
  X(int32_t, mmn_set_join_payload, (uint64_t room, const uint8_t *data, int32_t length)) \
  X(int32_t, mmn_set_join_requests, (uint64_t room, uint8_t enabled)) \
  X(int32_t, mmn_accept_join, (uint64_t room, uint64_t request)) \
  X(int32_t, mmn_reject_join, (uint64_t room, uint64_t request, int32_t code, const uint8_t *data, int32_t length)) \
  X(int32_t, mmn_set_leader, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_set_auto_election, (uint64_t room, uint8_t enabled)) \
  X(int32_t, mmn_set_eligible, (uint64_t room, uint8_t eligible)) \
  X(int32_t, mmn_transfer_leadership, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_yield_leadership, (uint64_t room)) \
  X(int32_t, mmn_set_priority, (uint64_t room, int32_t priority)) \
  X(int64_t, mmn_leader_term, (uint64_t room)) \
  X(int64_t, mmn_leader_epoch, (uint64_t room)) \
  X(int32_t, mmn_strategy, (uint64_t room)) \
  X(const char *, mmn_leader, (uint64_t room)) \
  X(uint8_t, mmn_is_leader, (uint64_t room)) \
  X(int32_t, mmn_set_gossip_windows, (uint64_t room, const struct MmnGossipWindows *windows)) \
  X(int32_t, mmn_gossip_windows, (uint64_t room, struct MmnGossipWindows *windows)) \
  X(int32_t, mmn_default_seeded_options, (uint32_t profile, struct MmnSeededOptions *options)) \
  X(int32_t, mmn_member_state, (uint64_t room, const char *peer_id)) \
  X(int64_t, mmn_cluster_version, (uint64_t room)) \
  X(int32_t, mmn_default_etcd_options, (struct MmnEtcdOptions *options)) \
  X(int64_t, mmn_fencing_token, (uint64_t room)) \
  X(int32_t, mmn_proclaim, (uint64_t room, const char *value)) \
  X(int32_t, mmn_acquire_lock, (uint64_t room, const char *name, uint32_t timeout_ms, uint64_t *request)) \
  X(int32_t, mmn_try_lock, (uint64_t room, const char *name, uint64_t *request)) \
  X(int32_t, mmn_release_lock, (uint64_t room, const char *name)) \
  X(int32_t, mmn_send, (uint64_t room, const char *peer_id, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options)) \
  X(int32_t, mmn_broadcast, (uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options)) \
  X(int32_t, mmn_send_to_leader, (uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options)) \
  X(int32_t, mmn_broadcast_as_leader, (uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options)) \
  X(int32_t, mmn_forward, (uint64_t room, const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options)) \
  X(int32_t, mmn_max_datagram_size, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_set_centralized, (uint64_t room, uint8_t enabled)) \
  X(uint8_t, mmn_centralized, (uint64_t room)) \
  X(int32_t, mmn_set_auto_forward, (uint64_t room, uint8_t enabled)) \
  X(uint8_t, mmn_auto_forward, (uint64_t room)) \
  X(int32_t, mmn_set_compression_threshold, (uint64_t room, uint32_t bytes)) \
  X(int32_t, mmn_peer_stats, (uint64_t room, const char *peer_id, struct MmnPeerStats *stats)) \
  X(int32_t, mmn_room_stats, (uint64_t room, struct MmnRoomStats *stats)) \
  X(int32_t, mmn_simulate_network, (uint64_t room, uint32_t lag_ms, uint32_t jitter_ms, uint32_t loss_permille)) \
  X(int32_t, mmn_set_log_stderr, (int32_t level)) \
  X(int32_t, mmn_set_log, (int32_t level, MmnLogCallback callback, void *user_data, MmnDropCallback drop_fn))
#ifndef MMN_NO_CLASSIC
#define MMN_RECONNECT_RETRYING 0
#define MMN_RECONNECT_RETURNED 1
#define MMN_RECONNECT_GAVE_UP 2
typedef void (*ReceiveCallback)(const char *peer,
                                const uint8_t *data,
                                int32_t length,
                                uint16_t msg_type,
                                uint8_t flags);
typedef void (*LeaderChangedCallback)(const char *leader);
typedef void (*PeerStatusCallback)(const char *peer, int32_t status);
typedef void (*ConnectionResultCallback)(const char *addr, uint8_t success, int32_t code);
typedef void (*ReconnectCallback)(const char *peer, uint8_t status);
typedef struct NetworkConfigFFI {
  uint32_t reconnect_max_ms;
  uint32_t compression_threshold;
  uint32_t max_message_size;
  uint16_t heartbeat_interval_ms;
  uint16_t election_timeout_min_ms;
  uint16_t election_timeout_max_ms;
  uint16_t reconnect_initial_ms;
  uint16_t handshake_timeout_ms;
  uint16_t write_timeout_ms;
  uint16_t send_queue_capacity;
  uint16_t incoming_queue_capacity;
  uint16_t max_connections;
  uint16_t keepalive_time_secs;
  uint16_t keepalive_interval_secs;
  uint16_t mdns_port;
  uint8_t heartbeat_timeout_multiplier;
  uint8_t keepalive_retries;
  uint8_t centralized_auto_forward;
  uint8_t auto_election_enabled;
  uint8_t manual_override_recovery;
  uint8_t tcp_nodelay;
  uint8_t auto_reconnect_enabled;
  uint8_t reconnect_max_retries;
} NetworkConfigFFI;
#ifdef __cplusplus
extern "C" {
#endif
int32_t RegisterReceiveCallback(ReceiveCallback callback);
int32_t RegisterLeaderChangedCallback(LeaderChangedCallback callback);
int32_t RegisterPeerStatusCallback(PeerStatusCallback callback);
int32_t RegisterConnectionResultCallback(ConnectionResultCallback callback);
int32_t RegisterReconnectCallback(ReconnectCallback callback);
int32_t InitializeNetwork(const char *peer_id, const char *session_id);
int32_t InitializeNetworkWithConfig(const char *peer_id,
                                    const char *session_id,
                                    const struct NetworkConfigFFI *config);
int32_t ShutdownNetwork(void);
uint8_t IsNetworkInitialized(void);
int32_t DisconnectPeer(const char *peer_id);
int32_t BroadcastMessage(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t SendToPeer(const char *peer_id,
                   const uint8_t *data,
                   int32_t length,
                   uint16_t msg_type,
                   uint8_t flags);
int32_t SendToLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t SendFromLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t ForwardMessage(const char *from,
                       const char *to,
                       const uint8_t *data,
                       int32_t length,
                       uint16_t msg_type,
                       uint8_t flags);
uint8_t IsMdnsActive(void);
int32_t EnableLogging(uint8_t enabled);
int32_t GetLastErrorCode(void);
const char *GetLastErrorMessage(void);
int32_t ConnectToPeer(const char *addr);
const char *GetLocalAddr(void);
const char *GetLocalPeerId(void);
const char *GetSessionId(void);
int32_t GetPeerCount(void);
const char *GetPeerList(void);
int32_t GetPeerRTT(const char *peer_id);
int32_t GetPeerStatus(const char *peer_id);
int32_t SetAutoReconnect(uint8_t enabled);
uint8_t IsAutoReconnectEnabled(void);
int32_t SetLeader(const char *peer_id);
int32_t EnableAutoLeaderElection(uint8_t enabled);
const char *GetCurrentLeader(void);
uint8_t IsLeader(void);
int32_t SetCentralizedMode(uint8_t enabled);
uint8_t IsCentralizedMode(void);
int32_t SetCentralizedAutoForward(uint8_t enabled);
uint8_t IsCentralizedAutoForward(void);
int32_t SetCompressionThreshold(uint32_t bytes);
int32_t SetStartupGracePeriod(uint32_t milliseconds);
uint32_t GetStartupGracePeriod(void);
int32_t SetMembershipSampleInterval(uint32_t milliseconds);
uint32_t GetMembershipSampleInterval(void);
int32_t SetLeaderAliveThreshold(uint32_t milliseconds);
uint32_t GetLeaderAliveThreshold(void);
int32_t SetLeaderElectionDuration(uint32_t milliseconds);
uint32_t GetLeaderElectionDuration(void);
uint32_t GetMsgExpirationTimeout(void);
uint32_t GetLeadershipDeclarationInterval(void);
#ifdef __cplusplus
}
#endif
#define MMN_CLASSIC_FUNCTIONS(X) \
  X(int32_t, RegisterReceiveCallback, (ReceiveCallback callback)) \
  X(int32_t, RegisterLeaderChangedCallback, (LeaderChangedCallback callback)) \
  X(int32_t, RegisterPeerStatusCallback, (PeerStatusCallback callback)) \
  X(int32_t, RegisterConnectionResultCallback, (ConnectionResultCallback callback)) \
  X(int32_t, RegisterReconnectCallback, (ReconnectCallback callback)) \
  X(int32_t, InitializeNetwork, (const char *peer_id, const char *session_id)) \
  X(int32_t, InitializeNetworkWithConfig, (const char *peer_id, const char *session_id, const struct NetworkConfigFFI *config)) \
  X(int32_t, ShutdownNetwork, (void)) \
  X(uint8_t, IsNetworkInitialized, (void)) \
  X(int32_t, DisconnectPeer, (const char *peer_id)) \
  X(int32_t, BroadcastMessage, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendToPeer, (const char *peer_id, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendToLeader, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendFromLeader, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, ForwardMessage, (const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(uint8_t, IsMdnsActive, (void)) \
  X(int32_t, EnableLogging, (uint8_t enabled)) \
  X(int32_t, GetLastErrorCode, (void)) \
  X(const char *, GetLastErrorMessage, (void)) \
  X(int32_t, ConnectToPeer, (const char *addr)) \
  X(const char *, GetLocalAddr, (void)) \
  X(const char *, GetLocalPeerId, (void)) \
  X(const char *, GetSessionId, (void)) \
  X(int32_t, GetPeerCount, (void)) \
  X(const char *, GetPeerList, (void)) \
  X(int32_t, GetPeerRTT, (const char *peer_id)) \
  X(int32_t, GetPeerStatus, (const char *peer_id)) \
  X(int32_t, SetAutoReconnect, (uint8_t enabled)) \
  X(uint8_t, IsAutoReconnectEnabled, (void)) \
  X(int32_t, SetLeader, (const char *peer_id)) \
  X(int32_t, EnableAutoLeaderElection, (uint8_t enabled)) \
  X(const char *, GetCurrentLeader, (void)) \
  X(uint8_t, IsLeader, (void)) \
  X(int32_t, SetCentralizedMode, (uint8_t enabled)) \
  X(uint8_t, IsCentralizedMode, (void)) \
  X(int32_t, SetCentralizedAutoForward, (uint8_t enabled)) \
  X(uint8_t, IsCentralizedAutoForward, (void)) \
  X(int32_t, SetCompressionThreshold, (uint32_t bytes)) \
  X(int32_t, SetStartupGracePeriod, (uint32_t milliseconds)) \
  X(uint32_t, GetStartupGracePeriod, (void)) \
  X(int32_t, SetMembershipSampleInterval, (uint32_t milliseconds)) \
  X(uint32_t, GetMembershipSampleInterval, (void)) \
  X(int32_t, SetLeaderAliveThreshold, (uint32_t milliseconds)) \
  X(uint32_t, GetLeaderAliveThreshold, (void)) \
  X(int32_t, SetLeaderElectionDuration, (uint32_t milliseconds)) \
  X(uint32_t, GetLeaderElectionDuration, (void)) \
  X(uint32_t, GetMsgExpirationTimeout, (void)) \
  X(uint32_t, GetLeadershipDeclarationInterval, (void))
#endif
#endif
