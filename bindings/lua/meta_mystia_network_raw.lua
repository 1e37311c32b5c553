-- Generated from src/ffi by `make header`: do not edit. include/meta_mystia_network.h has the meanings.
local ffi = require("ffi")

ffi.cdef[[
typedef void (*MmnEventCallback)(void *user_data, const struct MmnEvent *event);
typedef void (*MmnDropCallback)(void *user_data);
typedef void (*MmnListedRoomCallback)(void *user_data, const struct MmnListedRoom *room);
typedef void (*MmnLogCallback)(void *user_data, uint64_t room, int32_t level, const char *message);
typedef void (*ReceiveCallback)(const char *peer, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
typedef void (*LeaderChangedCallback)(const char *leader);
typedef void (*PeerStatusCallback)(const char *peer, int32_t status);
typedef void (*ConnectionResultCallback)(const char *addr, uint8_t success, int32_t code);
typedef void (*ReconnectCallback)(const char *peer, uint8_t status);
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
  uint64_t room;
  uint64_t index;
  uint64_t time_ms;
  const char *owner;
} MmnEvent;
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
  uint32_t carry_bytes_per_second;
  uint32_t paths;
  const char *relays;
  const struct MmnStateOptions *state;
  uint32_t port_mapping;
  uint32_t reserved;
  const char *turn;
} MmnOptions;
typedef struct MmnCard {
  uint32_t struct_size;
  uint32_t flags;
  const char *game;
  const char *name;
  const uint8_t *data;
  uint32_t data_length;
  uint32_t max_players;
  uint32_t port;
  uint32_t reserved;
} MmnCard;
typedef struct MmnBrowseOptions {
  uint32_t struct_size;
  uint32_t dispatch_mode;
  const char *game;
  MmnListedRoomCallback on_room;
  void *user_data;
  MmnDropCallback drop_fn;
  uint32_t port;
  uint32_t reserved;
} MmnBrowseOptions;
typedef struct MmnListedRoom {
  uint32_t struct_size;
  uint32_t change;
  uint64_t browser;
  uint64_t id;
  const char *name;
  const char *session_id;
  const char *address;
  const char *fingerprint;
  const uint8_t *data;
  uint32_t data_length;
  uint32_t players;
  uint32_t max_players;
  uint32_t needs_secret;
} MmnListedRoom;
typedef struct MmnGossipWindows {
  uint32_t struct_size;
  uint32_t startup_grace_ms;
  uint32_t sample_interval_ms;
  uint32_t alive_threshold_ms;
  uint32_t election_duration_ms;
} MmnGossipWindows;
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
typedef struct MmnStateOptions {
  uint32_t struct_size;
  uint32_t tail_entries;
  uint32_t tail_bytes;
  uint32_t max_snapshot_bytes;
} MmnStateOptions;
typedef struct MmnPropertyChange {
  uint32_t struct_size;
  uint32_t flags;
  const char *key;
  const char *owner;
  const uint8_t *value;
  int32_t length;
  uint32_t reserved;
  uint64_t expected_version;
} MmnPropertyChange;
typedef struct MmnPropertyInfo {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t version;
  const char *owner;
  int32_t length;
  uint32_t reserved;
} MmnPropertyInfo;
typedef struct MmnStateInfo {
  uint32_t struct_size;
  uint32_t members;
  uint32_t exclusive;
  uint32_t pending;
  uint64_t history;
  uint64_t ballot;
  uint64_t index;
  uint64_t confirmed;
  uint64_t bytes;
} MmnStateInfo;
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
  uint32_t room_time_error_us;
  uint32_t reserved;
} MmnRoomStats;
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
uint32_t mmn_abi_version(void);
const char *mmn_library_version(void);
int32_t mmn_set_event_handler(uint64_t room, MmnEventCallback callback, void *user_data, MmnDropCallback drop_fn);
int32_t mmn_take_messages(uint64_t room);
int32_t mmn_poll(uint64_t room, int32_t max);
int32_t mmn_default_options(struct MmnOptions *options);
int32_t mmn_open(const char *peer_id, const char *session_id, const struct MmnOptions *options, uint64_t *room);
int32_t mmn_leave(uint64_t room);
int32_t mmn_close(uint64_t room);
uint8_t mmn_is_open(uint64_t room);
uint64_t mmn_default_room(void);
uint8_t mmn_is_announced(uint64_t room);
int32_t mmn_last_error_code(void);
const char *mmn_last_error_message(void);
const char *mmn_describe_error(int32_t code);
int32_t mmn_connect(uint64_t room, const char *addr);
int32_t mmn_disconnect(uint64_t room, const char *peer_id, int32_t code, const uint8_t *data, int32_t length);
const char *mmn_local_address(uint64_t room);
const char *mmn_local_addresses(uint64_t room);
const char *mmn_public_address(uint64_t room);
const char *mmn_local_id(uint64_t room);
const char *mmn_session_id(uint64_t room);
int32_t mmn_peer_count(uint64_t room);
const char *mmn_peers(uint64_t room);
const char *mmn_members(uint64_t room);
const char *mmn_peer_address(uint64_t room, const char *peer_id);
int32_t mmn_set_turn(uint64_t room, const char *servers);
int32_t mmn_peer_path(uint64_t room, const char *peer_id);
const char *mmn_peer_carrier(uint64_t room, const char *peer_id);
uint32_t mmn_peer_index(uint64_t room, const char *peer_id);
const char *mmn_peer_id(uint64_t room, uint32_t index);
int32_t mmn_peer_rtt_ms(uint64_t room, const char *peer_id);
int32_t mmn_peer_status(uint64_t room, const char *peer_id);
int32_t mmn_show_card(uint64_t room, const struct MmnCard *card);
int32_t mmn_browse_open(const struct MmnBrowseOptions *options, uint64_t *browser);
int32_t mmn_browse_poll(uint64_t browser, int32_t max);
int32_t mmn_browse_close(uint64_t browser);
int32_t mmn_generate_identity_key(uint8_t *buffer, int32_t length);
const char *mmn_local_fingerprint(uint64_t room);
const char *mmn_peer_fingerprint(uint64_t room, const char *peer_id);
int32_t mmn_generate_room_code(char *buffer, int32_t length);
int32_t mmn_normalize_room_code(const char *text, char *buffer, int32_t length);
int32_t mmn_set_auto_reconnect(uint64_t room, uint8_t enabled);
uint8_t mmn_auto_reconnect(uint64_t room);
int32_t mmn_kick(uint64_t room, const char *peer_id, uint32_t flags, int32_t code, const uint8_t *data, int32_t length);
int32_t mmn_unban(uint64_t room, const char *peer_id);
int32_t mmn_set_max_peers(uint64_t room, uint32_t max_peers);
int32_t mmn_set_join_payload(uint64_t room, const uint8_t *data, int32_t length);
int32_t mmn_set_join_requests(uint64_t room, uint8_t enabled);
int32_t mmn_accept_join(uint64_t room, uint64_t request);
int32_t mmn_reject_join(uint64_t room, uint64_t request, int32_t code, const uint8_t *data, int32_t length);
int32_t mmn_set_leader(uint64_t room, const char *peer_id);
int32_t mmn_set_auto_election(uint64_t room, uint8_t enabled);
int32_t mmn_set_eligible(uint64_t room, uint8_t eligible);
int32_t mmn_transfer_leadership(uint64_t room, const char *peer_id);
int32_t mmn_yield_leadership(uint64_t room);
int32_t mmn_set_priority(uint64_t room, int32_t priority);
int64_t mmn_leader_term(uint64_t room);
int64_t mmn_leader_epoch(uint64_t room);
int32_t mmn_strategy(uint64_t room);
const char *mmn_leader(uint64_t room);
uint8_t mmn_is_leader(uint64_t room);
int32_t mmn_set_gossip_windows(uint64_t room, const struct MmnGossipWindows *windows);
int32_t mmn_gossip_windows(uint64_t room, struct MmnGossipWindows *windows);
int32_t mmn_default_seeded_options(uint32_t profile, struct MmnSeededOptions *options);
int32_t mmn_member_state(uint64_t room, const char *peer_id);
int64_t mmn_cluster_version(uint64_t room);
int32_t mmn_default_etcd_options(struct MmnEtcdOptions *options);
int64_t mmn_fencing_token(uint64_t room);
int32_t mmn_proclaim(uint64_t room, const char *value);
int32_t mmn_acquire_lock(uint64_t room, const char *name, uint32_t timeout_ms, uint64_t *request);
int32_t mmn_try_lock(uint64_t room, const char *name, uint64_t *request);
int32_t mmn_release_lock(uint64_t room, const char *name);
int32_t mmn_send(uint64_t room, const char *peer_id, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options);
int32_t mmn_broadcast(uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options);
int32_t mmn_send_to_leader(uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options);
int32_t mmn_broadcast_as_leader(uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options);
int32_t mmn_forward(uint64_t room, const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t msg_type, const struct MmnSendOptions *options);
int32_t mmn_max_datagram_size(uint64_t room, const char *peer_id);
int32_t mmn_set_centralized(uint64_t room, uint8_t enabled);
uint8_t mmn_centralized(uint64_t room);
int32_t mmn_set_auto_forward(uint64_t room, uint8_t enabled);
uint8_t mmn_auto_forward(uint64_t room);
int32_t mmn_set_compression_threshold(uint64_t room, uint32_t bytes);
int32_t mmn_send_transfer(uint64_t room, const char *peer_id, const uint8_t *data, int32_t length, const uint8_t *tag, int32_t tag_length, uint64_t *transfer);
int32_t mmn_accept_transfer(uint64_t room, const char *peer_id, uint64_t transfer, void *buffer, int32_t capacity);
int32_t mmn_accept_transfer_in_parts(uint64_t room, const char *peer_id, uint64_t transfer);
int32_t mmn_cancel_transfer(uint64_t room, const char *peer_id, uint64_t transfer);
int32_t mmn_default_state_options(struct MmnStateOptions *options);
int32_t mmn_submit(uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, uint64_t *request);
int32_t mmn_set_properties(uint64_t room, const struct MmnPropertyChange *changes, int32_t count, uint64_t *request);
const uint8_t *mmn_property(uint64_t room, const char *key, struct MmnPropertyInfo *info);
const char *mmn_property_keys(uint64_t room, const char *owner);
int32_t mmn_provide_snapshot(uint64_t room, uint64_t request, const uint8_t *data, int32_t length);
int32_t mmn_state_info(uint64_t room, struct MmnStateInfo *info);
int32_t mmn_peer_stats(uint64_t room, const char *peer_id, struct MmnPeerStats *stats);
int32_t mmn_room_stats(uint64_t room, struct MmnRoomStats *stats);
int64_t mmn_room_time_ms(uint64_t room);
int32_t mmn_simulate_network(uint64_t room, uint32_t lag_ms, uint32_t jitter_ms, uint32_t loss_permille);
int32_t mmn_simulate_preset(uint64_t room, const char *preset);
int32_t mmn_set_log_stderr(int32_t level);
int32_t mmn_set_log(int32_t level, MmnLogCallback callback, void *user_data, MmnDropCallback drop_fn);
int32_t RegisterReceiveCallback(ReceiveCallback callback);
int32_t RegisterLeaderChangedCallback(LeaderChangedCallback callback);
int32_t RegisterPeerStatusCallback(PeerStatusCallback callback);
int32_t RegisterConnectionResultCallback(ConnectionResultCallback callback);
int32_t RegisterReconnectCallback(ReconnectCallback callback);
int32_t InitializeNetwork(const char *peer_id, const char *session_id);
int32_t InitializeNetworkWithConfig(const char *peer_id, const char *session_id, const struct NetworkConfigFFI *config);
int32_t ShutdownNetwork(void);
uint8_t IsNetworkInitialized(void);
int32_t DisconnectPeer(const char *peer_id);
int32_t BroadcastMessage(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t SendToPeer(const char *peer_id, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t SendToLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t SendFromLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t ForwardMessage(const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
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
]]

local raw = {
  ABI_VERSION = 107,
  OK = 0,
  NOT_INITIALIZED = -1,
  ALREADY_INITIALIZED = -2,
  INVALID_ARGUMENT = -3,
  CONNECTION_FAILED = -4,
  PEER_NOT_FOUND = -5,
  NOT_LEADER = -6,
  SEND_QUEUE_FULL = -7,
  MESSAGE_TOO_LARGE = -8,
  SERIALIZATION_ERROR = -9,
  SESSION_MISMATCH = -10,
  DUPLICATE_PEER_ID = -11,
  VERSION_MISMATCH = -12,
  MAX_CONNECTIONS_REACHED = -13,
  ALREADY_CONNECTED = -14,
  WOULD_DEADLOCK = -15,
  NOT_SUPPORTED = -16,
  AUTHENTICATION_FAILED = -17,
  REJECTED = -18,
  TIMEOUT = -19,
  POLICY_MISMATCH = -20,
  SUPERSEDED = -21,
  RATE_LIMITED = -22,
  NAME_NOT_RESOLVED = -23,
  LOOKING_FOR_ROOM = -24,
  CONFLICT = -25,
  STATE_FULL = -26,
  OUTCOME_UNKNOWN = -27,
  INTERNAL_ERROR = -99,
  MAX_PEER_ID_BYTES = 64,
  MAX_SESSION_ID_BYTES = 128,
  MIN_MESSAGE_TYPE = 256,
  PEER_CONNECTED = 0,
  PEER_DISCONNECTED = 1,
  PEER_RECONNECTING = 2,
  PEER_HANDSHAKING = 3,
  LOG_OFF = 0,
  LOG_ERROR = 1,
  LOG_WARN = 2,
  LOG_INFO = 3,
  LOG_DEBUG = 4,
  LOG_TRACE = 5,
  RECOVERY_HOLD = 0,
  RECOVERY_AUTO_ELECT = 1,
  DISCOVERY_OFF = 0,
  DISCOVERY_REPORT = 1,
  DISCOVERY_CONNECT = 2,
  DISPATCH_THREAD = 0,
  DISPATCH_POLL = 1,
  MERGE_LARGEST_SIDE = 0,
  MERGE_HIGHEST_TERM = 1,
  AUTHORITY_ANYONE = 0,
  AUTHORITY_LEADER_ONLY = 1,
  HOST_MODE_OFF = 0,
  HOST_MODE_HOST = 1,
  HOST_MODE_GUEST = 2,
  TOPOLOGY_MESH = 0,
  TOPOLOGY_STAR = 1,
  PATHS_ALL = 0,
  PATHS_RELAYED = 1,
  PORT_MAPPING_OFF = 0,
  PORT_MAPPING_ON = 1,
  ENTRY_ANY = 0,
  ENTRY_CREATE = 1,
  ENTRY_JOIN = 2,
  QUORUM_DYNAMIC = 0,
  QUORUM_STATIC = 1,
  STRATEGY_RAFT = 0,
  STRATEGY_GOSSIP = 1,
  STRATEGY_SEEDED = 2,
  STRATEGY_ETCD = 3,
  SEEDED_STRICT_START = 1,
  SEEDED_NEVER_ALONE = 2,
  SEEDED_PROFILE_WAN = 0,
  SEEDED_PROFILE_LAN = 1,
  DELIVERY_RELIABLE_ORDERED = 0,
  DELIVERY_RELIABLE_UNORDERED = 1,
  DELIVERY_UNRELIABLE = 2,
  DELIVERY_SEQUENCED = 3,
  SEND_PARTIAL = 1,
  PRIORITY_LOW = -1,
  PRIORITY_NORMAL = 0,
  PRIORITY_HIGH = 1,
  PRIORITY_HIGHEST = 2,
  KICK_BAN = 1,
  GOSSIP_STRICT_LOWEST = 1,
  MAX_SECRET_BYTES = 1024,
  IDENTITY_KEY_BYTES = 48,
  ROOM_CODE_BYTES = 15,
  MAX_RELAYS = 2,
  MAX_TURN_SERVERS = 4,
  MAX_SEEDS = 32,
  MAX_ETCD_ENDPOINTS = 16,
  MAX_PROCLAIMED_BYTES = 4096,
  MAX_LOCK_NAME_BYTES = 128,
  MAX_QUORUM_VOTERS = 64,
  EVENT_JOINED = 1,
  EVENT_RECONNECTING = 2,
  EVENT_RETURNED = 3,
  EVENT_LEFT = 4,
  EVENT_MESSAGE = 5,
  EVENT_SET_LEADER_RESULT = 6,
  EVENT_ROOM_ENDED = 7,
  EVENT_LEADER_CHANGED = 8,
  EVENT_LEADERSHIP_GAINED = 9,
  EVENT_LEADERSHIP_LOST = 10,
  EVENT_JOIN_REQUEST = 11,
  EVENT_DISCOVERED = 12,
  EVENT_CONNECTION_RESULT = 13,
  EVENT_SLOW_PEER = 14,
  EVENT_DATA_DROPPED = 15,
  EVENT_MEMBER_STATE = 16,
  EVENT_LOCK_RESULT = 17,
  EVENT_LOCK_LOST = 18,
  EVENT_UNLINKED_PEER = 22,
  EVENT_BAN_DROPPED = 23,
  EVENT_DISCOVERY_REFUSED = 21,
  EVENT_JOIN_WITHDRAWN = 24,
  EVENT_HOST_SILENT = 19,
  EVENT_HOST_BACK = 20,
  EVENT_NO_ROOM_FOUND = 25,
  EVENT_PATH_CHANGED = 26,
  EVENT_RELAY = 27,
  EVENT_ACTION = 28,
  EVENT_ACTION_RESULT = 29,
  EVENT_PROPERTY = 30,
  EVENT_STATE_RESET = 31,
  EVENT_ROLLED_BACK = 32,
  EVENT_SNAPSHOT_WANTED = 33,
  EVENT_STATE_OPENED = 34,
  EVENT_STATE_MEMBER = 35,
  EVENT_TRANSFER_OFFERED = 39,
  EVENT_TRANSFER_PROGRESS = 40,
  EVENT_TRANSFER_RESULT = 41,
  EVENT_TRANSFER_PART = 42,
  EVENT_PORT_MAPPING = 43,
  EVENT_TURN = 44,
  FOUND_IN_LOCAL_NETWORK = 1,
  FOUND_AS_SEED = 2,
  FOUND_AT_RELAY = 3,
  RESET_JOINED = 0,
  RESET_BEHIND = 1,
  RESET_ROLLED_BACK = 2,
  TRANSFER_COMPLETE = 0,
  TRANSFER_CANCELLED_BY_SENDER = 1,
  TRANSFER_CANCELLED_BY_RECEIVER = 2,
  TRANSFER_REFUSED = 3,
  TRANSFER_UNANSWERED = 4,
  TRANSFER_BUSY = 5,
  TRANSFER_PEER_LEFT = 6,
  TRANSFER_ROOM_ENDED = 7,
  TRANSFER_CORRUPT = 8,
  MEMBER_INIT = 0,
  MEMBER_JOINING = 1,
  MEMBER_ACTIVE = 2,
  MEMBER_UNREACHABLE = 3,
  MEMBER_LEAVING = 4,
  MEMBER_REMOVED = 5,
  LEADER_UNKNOWN = 0,
  LEADER_ELECTED = 1,
  LEADER_ASSIGNED = 2,
  LEADER_TRANSFERRED = 3,
  LEADER_FOUND = 4,
  LEADER_LOST = 5,
  LEADER_LEFT = 6,
  LEADER_RESIGNED = 7,
  LEFT_LEFT = 0,
  LEFT_LOST = 1,
  LEFT_DISCONNECTED = 2,
  LEFT_REPLACED = 3,
  LEFT_KICKED = 4,
  LEFT_VIOLATION = 5,
  LEFT_GAVE_UP = 6,
  LEFT_ROOM_ENDED = 7,
  DROPPED_SENT = 0,
  DROPPED_RECEIVED = 1,
  END_KICKED = 0,
  END_HOST_LEFT = 1,
  END_HOST_LOST = 2,
  END_DISCONNECTED = 3,
  END_DUPLICATE_ID = 4,
  END_INTERNAL = 5,
  CARD_OPEN = 1,
  MAX_CARD_DATA_BYTES = 400,
  MAX_CARD_NAME_BYTES = 64,
  DEFAULT_CARD_PORT = 15354,
  BROWSE_FOUND = 36,
  BROWSE_CHANGED = 37,
  BROWSE_GONE = 38,
  MAX_TRANSFER_BYTES = 67108864,
  MAX_TRANSFER_TAG_BYTES = 1024,
  ANY_VERSION = 18446744073709551615ULL,
  PROPERTY_REMOVE = 1,
  PROPERTY_KEEP_VALUE = 2,
  PROPERTY_OWNER_ONLY = 4,
  PROPERTY_DIES_WITH_OWNER = 8,
  PROPERTY_FALLS_TO_LEADER = 16,
  PATH_DIRECT = 0,
  PATH_THROUGH_LEADER = 1,
  PATH_THROUGH_MEMBER = 2,
  PATH_THROUGH_RELAY = 3,
  PATH_THROUGH_TURN = 4,
  RECONNECT_RETRYING = 0,
  RECONNECT_RETURNED = 1,
  RECONNECT_GAVE_UP = 2,
}

-- The names of the result codes.
raw.CODES = {
  [0] = "OK",
  [-1] = "NOT_INITIALIZED",
  [-2] = "ALREADY_INITIALIZED",
  [-3] = "INVALID_ARGUMENT",
  [-4] = "CONNECTION_FAILED",
  [-5] = "PEER_NOT_FOUND",
  [-6] = "NOT_LEADER",
  [-7] = "SEND_QUEUE_FULL",
  [-8] = "MESSAGE_TOO_LARGE",
  [-9] = "SERIALIZATION_ERROR",
  [-10] = "SESSION_MISMATCH",
  [-11] = "DUPLICATE_PEER_ID",
  [-12] = "VERSION_MISMATCH",
  [-13] = "MAX_CONNECTIONS_REACHED",
  [-14] = "ALREADY_CONNECTED",
  [-15] = "WOULD_DEADLOCK",
  [-16] = "NOT_SUPPORTED",
  [-17] = "AUTHENTICATION_FAILED",
  [-18] = "REJECTED",
  [-19] = "TIMEOUT",
  [-20] = "POLICY_MISMATCH",
  [-21] = "SUPERSEDED",
  [-22] = "RATE_LIMITED",
  [-23] = "NAME_NOT_RESOLVED",
  [-24] = "LOOKING_FOR_ROOM",
  [-25] = "CONFLICT",
  [-26] = "STATE_FULL",
  [-27] = "OUTCOME_UNKNOWN",
  [-99] = "INTERNAL_ERROR",
}

-- By kind: the event's name, and its fields: name here, name in MmnEvent, form.
raw.EVENTS = {
  [1] = { "PeerJoined", { { "peer", "peer", "text" }, { "peer_index", "peer_index", "number" } } },
  [2] = { "PeerReconnecting", { { "peer", "peer", "text" }, { "peer_index", "peer_index", "number" } } },
  [3] = { "PeerReturned", { { "peer", "peer", "text" }, { "undelivered", "count", "number" }, { "missed", "missed", "number" }, { "peer_index", "peer_index", "number" } } },
  [4] = { "PeerLeft", { { "peer", "peer", "text" }, { "reason", "reason", "number" }, { "code", "code", "number" }, { "data", "data", "bytes" }, { "undelivered", "count", "number" }, { "peer_index", "peer_index", "number" } } },
  [5] = { "Message", { { "from", "peer", "text" }, { "data", "data", "bytes" }, { "type", "msg_type", "number" }, { "flags", "flags", "number" }, { "channel", "channel", "number" }, { "delivery", "delivery", "number" }, { "peer_index", "peer_index", "number" } } },
  [6] = { "SetLeaderResult", { { "peer", "peer", "text" }, { "success", "success", "flag" }, { "code", "code", "number" }, { "peer_index", "peer_index", "number" } } },
  [7] = { "RoomEnded", { { "reason", "reason", "number" }, { "code", "code", "number" }, { "data", "data", "bytes" } } },
  [8] = { "LeaderChanged", { { "leader", "peer", "text or none" }, { "previous", "other", "text or none" }, { "term", "term", "number" }, { "epoch", "epoch", "number" }, { "reason", "reason", "number" }, { "peer_index", "peer_index", "number" } } },
  [9] = { "LeadershipGained", { { "leader", "peer", "text or none" }, { "previous", "other", "text or none" }, { "term", "term", "number" }, { "epoch", "epoch", "number" }, { "reason", "reason", "number" }, { "peer_index", "peer_index", "number" } } },
  [10] = { "LeadershipLost", { { "leader", "peer", "text or none" }, { "previous", "other", "text or none" }, { "term", "term", "number" }, { "epoch", "epoch", "number" }, { "reason", "reason", "number" }, { "peer_index", "peer_index", "number" } } },
  [11] = { "JoinRequest", { { "peer", "peer", "text" }, { "address", "other", "text or none" }, { "payload", "data", "bytes" }, { "request", "request", "number" }, { "peer_index", "peer_index", "number" } } },
  [12] = { "Discovered", { { "address", "other", "text" } } },
  [13] = { "ConnectionResult", { { "address", "other", "text" }, { "success", "success", "flag" }, { "code", "code", "number" }, { "peer", "peer", "text or none" }, { "reason", "reason", "number" }, { "data", "data", "bytes" }, { "peer_index", "peer_index", "number" } } },
  [14] = { "SlowPeer", { { "peer", "peer", "text" }, { "peer_index", "peer_index", "number" } } },
  [15] = { "DataDropped", { { "peer", "peer", "text" }, { "direction", "reason", "number" }, { "count", "count", "number" }, { "peer_index", "peer_index", "number" } } },
  [16] = { "MemberStateChanged", { { "peer", "peer", "text" }, { "state", "reason", "number" }, { "version", "term", "number" }, { "peer_index", "peer_index", "number" } } },
  [17] = { "LockResult", { { "request", "request", "number" }, { "lock", "other", "text" }, { "success", "success", "flag" }, { "code", "code", "number" }, { "token", "count", "number" } } },
  [18] = { "LockLost", { { "lock", "other", "text" }, { "token", "count", "number" } } },
  [22] = { "UnlinkedPeer", { { "peer", "peer", "text" }, { "other", "other", "text" }, { "peer_index", "peer_index", "number" } } },
  [23] = { "BanDropped", { { "peer", "peer", "text" }, { "leader", "other", "text" }, { "peer_index", "peer_index", "number" } } },
  [21] = { "DiscoveryRefused", { { "peer", "peer", "text or none" }, { "address", "other", "text" }, { "found_by", "found_by", "number" }, { "code", "code", "number" }, { "reason", "reason", "number" }, { "data", "data", "bytes" }, { "peer_index", "peer_index", "number" } } },
  [24] = { "JoinWithdrawn", { { "peer", "peer", "text" }, { "request", "request", "number" }, { "peer_index", "peer_index", "number" } } },
  [19] = { "HostSilent", { { "peer", "peer", "text" }, { "silent_ms", "count", "number" }, { "peer_index", "peer_index", "number" } } },
  [20] = { "HostBack", { { "peer", "peer", "text" }, { "peer_index", "peer_index", "number" } } },
  [25] = { "NoRoomFound", { { "waited_ms", "count", "number" } } },
  [26] = { "PathChanged", { { "peer", "peer", "text" }, { "carrier", "other", "text or none" }, { "path", "reason", "number" }, { "previous", "code", "number" }, { "peer_index", "peer_index", "number" } } },
  [27] = { "RelayChanged", { { "relay", "other", "text" }, { "success", "success", "flag" }, { "code", "code", "number" }, { "data", "data", "bytes" } } },
  [28] = { "RoomAction", { { "author", "peer", "text" }, { "data", "data", "bytes" }, { "type", "msg_type", "number" }, { "index", "index", "number" }, { "time_ms", "time_ms", "number" }, { "request", "request", "number" }, { "peer_index", "peer_index", "number" } } },
  [29] = { "ActionResult", { { "request", "request", "number" }, { "index", "index", "number" }, { "code", "code", "number" } } },
  [30] = { "PropertyChanged", { { "key", "other", "text" }, { "value", "data", "bytes" }, { "owner", "owner", "text or none" }, { "version", "count", "number" }, { "exists", "success", "flag" }, { "author", "peer", "text or none" }, { "index", "index", "number" }, { "time_ms", "time_ms", "number" }, { "peer_index", "peer_index", "number" } } },
  [31] = { "StateReset", { { "snapshot", "data", "bytes" }, { "index", "index", "number" }, { "reason", "reason", "number" }, { "code", "code", "number" }, { "undone", "count", "number" } } },
  [32] = { "RolledBack", { { "author", "peer", "text" }, { "data", "data", "bytes" }, { "type", "msg_type", "number" }, { "index", "index", "number" }, { "request", "request", "number" }, { "peer_index", "peer_index", "number" } } },
  [33] = { "SnapshotWanted", { { "request", "request", "number" }, { "index", "index", "number" } } },
  [34] = { "StateOpened", { { "leader", "peer", "text or none" }, { "exclusive", "success", "flag" }, { "history", "epoch", "number" }, { "members", "count", "number" }, { "index", "index", "number" }, { "peer_index", "peer_index", "number" } } },
  [35] = { "StateMemberChanged", { { "peer", "peer", "text" }, { "here", "success", "flag" }, { "index", "index", "number" }, { "peer_index", "peer_index", "number" } } },
  [39] = { "TransferOffered", { { "from", "peer", "text" }, { "transfer", "request", "number" }, { "size", "count", "number" }, { "tag", "data", "bytes" }, { "peer_index", "peer_index", "number" } } },
  [40] = { "TransferProgress", { { "peer", "peer", "text" }, { "transfer", "request", "number" }, { "size", "count", "number" }, { "done", "index", "number" }, { "peer_index", "peer_index", "number" } } },
  [41] = { "TransferResult", { { "peer", "peer", "text" }, { "transfer", "request", "number" }, { "size", "count", "number" }, { "done", "index", "number" }, { "success", "success", "flag" }, { "reason", "reason", "number" }, { "peer_index", "peer_index", "number" } } },
  [42] = { "TransferPart", { { "from", "peer", "text" }, { "transfer", "request", "number" }, { "offset", "index", "number" }, { "data", "data", "bytes" }, { "peer_index", "peer_index", "number" } } },
  [43] = { "PortMappingChanged", { { "success", "success", "flag" }, { "code", "code", "number" }, { "data", "data", "bytes" } } },
  [44] = { "TurnChanged", { { "server", "other", "text" }, { "success", "success", "flag" }, { "code", "code", "number" }, { "data", "data", "bytes" } } },
}

return raw
