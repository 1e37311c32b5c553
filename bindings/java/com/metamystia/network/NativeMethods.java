// Generated from src/ffi by `make header`: do not edit. include/meta_mystia_network.h has the meanings.
package com.metamystia.network;

import com.sun.jna.Callback;
import com.sun.jna.Library;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import java.util.Map;

/**
 * The functions of the native library, as its header declares them. An unsigned number has the signed type of its width.
 * Most programs use {@link Room} instead.
 */
public interface NativeMethods extends Library {
    Map<String, Object> OPTIONS = Map.of(Library.OPTION_STRING_ENCODING, "UTF-8");

    int ABI_VERSION = 107;
    int OK = 0;
    int NOT_INITIALIZED = -1;
    int ALREADY_INITIALIZED = -2;
    int INVALID_ARGUMENT = -3;
    int CONNECTION_FAILED = -4;
    int PEER_NOT_FOUND = -5;
    int NOT_LEADER = -6;
    int SEND_QUEUE_FULL = -7;
    int MESSAGE_TOO_LARGE = -8;
    int SERIALIZATION_ERROR = -9;
    int SESSION_MISMATCH = -10;
    int DUPLICATE_PEER_ID = -11;
    int VERSION_MISMATCH = -12;
    int MAX_CONNECTIONS_REACHED = -13;
    int ALREADY_CONNECTED = -14;
    int WOULD_DEADLOCK = -15;
    int NOT_SUPPORTED = -16;
    int AUTHENTICATION_FAILED = -17;
    int REJECTED = -18;
    int TIMEOUT = -19;
    int POLICY_MISMATCH = -20;
    int SUPERSEDED = -21;
    int RATE_LIMITED = -22;
    int NAME_NOT_RESOLVED = -23;
    int LOOKING_FOR_ROOM = -24;
    int CONFLICT = -25;
    int STATE_FULL = -26;
    int OUTCOME_UNKNOWN = -27;
    int INTERNAL_ERROR = -99;
    int MAX_PEER_ID_BYTES = 64;
    int MAX_SESSION_ID_BYTES = 128;
    int MIN_MESSAGE_TYPE = 256;
    int PEER_CONNECTED = 0;
    int PEER_DISCONNECTED = 1;
    int PEER_RECONNECTING = 2;
    int PEER_HANDSHAKING = 3;
    int LOG_OFF = 0;
    int LOG_ERROR = 1;
    int LOG_WARN = 2;
    int LOG_INFO = 3;
    int LOG_DEBUG = 4;
    int LOG_TRACE = 5;
    int RECOVERY_HOLD = 0;
    int RECOVERY_AUTO_ELECT = 1;
    int DISCOVERY_OFF = 0;
    int DISCOVERY_REPORT = 1;
    int DISCOVERY_CONNECT = 2;
    int DISPATCH_THREAD = 0;
    int DISPATCH_POLL = 1;
    int MERGE_LARGEST_SIDE = 0;
    int MERGE_HIGHEST_TERM = 1;
    int AUTHORITY_ANYONE = 0;
    int AUTHORITY_LEADER_ONLY = 1;
    int HOST_MODE_OFF = 0;
    int HOST_MODE_HOST = 1;
    int HOST_MODE_GUEST = 2;
    int TOPOLOGY_MESH = 0;
    int TOPOLOGY_STAR = 1;
    int PATHS_ALL = 0;
    int PATHS_RELAYED = 1;
    int PORT_MAPPING_OFF = 0;
    int PORT_MAPPING_ON = 1;
    int ENTRY_ANY = 0;
    int ENTRY_CREATE = 1;
    int ENTRY_JOIN = 2;
    int QUORUM_DYNAMIC = 0;
    int QUORUM_STATIC = 1;
    int STRATEGY_RAFT = 0;
    int STRATEGY_GOSSIP = 1;
    int STRATEGY_SEEDED = 2;
    int STRATEGY_ETCD = 3;
    int SEEDED_STRICT_START = 1;
    int SEEDED_NEVER_ALONE = 2;
    int SEEDED_PROFILE_WAN = 0;
    int SEEDED_PROFILE_LAN = 1;
    int DELIVERY_RELIABLE_ORDERED = 0;
    int DELIVERY_RELIABLE_UNORDERED = 1;
    int DELIVERY_UNRELIABLE = 2;
    int DELIVERY_SEQUENCED = 3;
    int SEND_PARTIAL = 1;
    int PRIORITY_LOW = -1;
    int PRIORITY_NORMAL = 0;
    int PRIORITY_HIGH = 1;
    int PRIORITY_HIGHEST = 2;
    int KICK_BAN = 1;
    int GOSSIP_STRICT_LOWEST = 1;
    int MAX_SECRET_BYTES = 1024;
    int IDENTITY_KEY_BYTES = 48;
    int ROOM_CODE_BYTES = 15;
    int MAX_RELAYS = 2;
    int MAX_TURN_SERVERS = 4;
    int MAX_SEEDS = 32;
    int MAX_ETCD_ENDPOINTS = 16;
    int MAX_PROCLAIMED_BYTES = 4096;
    int MAX_LOCK_NAME_BYTES = 128;
    int MAX_QUORUM_VOTERS = 64;
    int EVENT_JOINED = 1;
    int EVENT_RECONNECTING = 2;
    int EVENT_RETURNED = 3;
    int EVENT_LEFT = 4;
    int EVENT_MESSAGE = 5;
    int EVENT_SET_LEADER_RESULT = 6;
    int EVENT_ROOM_ENDED = 7;
    int EVENT_LEADER_CHANGED = 8;
    int EVENT_LEADERSHIP_GAINED = 9;
    int EVENT_LEADERSHIP_LOST = 10;
    int EVENT_JOIN_REQUEST = 11;
    int EVENT_DISCOVERED = 12;
    int EVENT_CONNECTION_RESULT = 13;
    int EVENT_SLOW_PEER = 14;
    int EVENT_DATA_DROPPED = 15;
    int EVENT_MEMBER_STATE = 16;
    int EVENT_LOCK_RESULT = 17;
    int EVENT_LOCK_LOST = 18;
    int EVENT_UNLINKED_PEER = 22;
    int EVENT_BAN_DROPPED = 23;
    int EVENT_DISCOVERY_REFUSED = 21;
    int EVENT_JOIN_WITHDRAWN = 24;
    int EVENT_HOST_SILENT = 19;
    int EVENT_HOST_BACK = 20;
    int EVENT_NO_ROOM_FOUND = 25;
    int EVENT_PATH_CHANGED = 26;
    int EVENT_RELAY = 27;
    int EVENT_ACTION = 28;
    int EVENT_ACTION_RESULT = 29;
    int EVENT_PROPERTY = 30;
    int EVENT_STATE_RESET = 31;
    int EVENT_ROLLED_BACK = 32;
    int EVENT_SNAPSHOT_WANTED = 33;
    int EVENT_STATE_OPENED = 34;
    int EVENT_STATE_MEMBER = 35;
    int EVENT_TRANSFER_OFFERED = 39;
    int EVENT_TRANSFER_PROGRESS = 40;
    int EVENT_TRANSFER_RESULT = 41;
    int EVENT_TRANSFER_PART = 42;
    int EVENT_PORT_MAPPING = 43;
    int EVENT_TURN = 44;
    int FOUND_IN_LOCAL_NETWORK = 1;
    int FOUND_AS_SEED = 2;
    int FOUND_AT_RELAY = 3;
    int RESET_JOINED = 0;
    int RESET_BEHIND = 1;
    int RESET_ROLLED_BACK = 2;
    int TRANSFER_COMPLETE = 0;
    int TRANSFER_CANCELLED_BY_SENDER = 1;
    int TRANSFER_CANCELLED_BY_RECEIVER = 2;
    int TRANSFER_REFUSED = 3;
    int TRANSFER_UNANSWERED = 4;
    int TRANSFER_BUSY = 5;
    int TRANSFER_PEER_LEFT = 6;
    int TRANSFER_ROOM_ENDED = 7;
    int TRANSFER_CORRUPT = 8;
    int MEMBER_INIT = 0;
    int MEMBER_JOINING = 1;
    int MEMBER_ACTIVE = 2;
    int MEMBER_UNREACHABLE = 3;
    int MEMBER_LEAVING = 4;
    int MEMBER_REMOVED = 5;
    int LEADER_UNKNOWN = 0;
    int LEADER_ELECTED = 1;
    int LEADER_ASSIGNED = 2;
    int LEADER_TRANSFERRED = 3;
    int LEADER_FOUND = 4;
    int LEADER_LOST = 5;
    int LEADER_LEFT = 6;
    int LEADER_RESIGNED = 7;
    int LEFT_LEFT = 0;
    int LEFT_LOST = 1;
    int LEFT_DISCONNECTED = 2;
    int LEFT_REPLACED = 3;
    int LEFT_KICKED = 4;
    int LEFT_VIOLATION = 5;
    int LEFT_GAVE_UP = 6;
    int LEFT_ROOM_ENDED = 7;
    int DROPPED_SENT = 0;
    int DROPPED_RECEIVED = 1;
    int END_KICKED = 0;
    int END_HOST_LEFT = 1;
    int END_HOST_LOST = 2;
    int END_DISCONNECTED = 3;
    int END_DUPLICATE_ID = 4;
    int END_INTERNAL = 5;
    int CARD_OPEN = 1;
    int MAX_CARD_DATA_BYTES = 400;
    int MAX_CARD_NAME_BYTES = 64;
    int DEFAULT_CARD_PORT = 15354;
    int BROWSE_FOUND = 36;
    int BROWSE_CHANGED = 37;
    int BROWSE_GONE = 38;
    int MAX_TRANSFER_BYTES = 67108864;
    int MAX_TRANSFER_TAG_BYTES = 1024;
    long ANY_VERSION = 0xffffffffffffffffL;
    int PROPERTY_REMOVE = 1;
    int PROPERTY_KEEP_VALUE = 2;
    int PROPERTY_OWNER_ONLY = 4;
    int PROPERTY_DIES_WITH_OWNER = 8;
    int PROPERTY_FALLS_TO_LEADER = 16;
    int PATH_DIRECT = 0;
    int PATH_THROUGH_LEADER = 1;
    int PATH_THROUGH_MEMBER = 2;
    int PATH_THROUGH_RELAY = 3;
    int PATH_THROUGH_TURN = 4;
    int RECONNECT_RETRYING = 0;
    int RECONNECT_RETURNED = 1;
    int RECONNECT_GAVE_UP = 2;

    /** The name of a result code, without MMN_. */
    static String nameOf(int code) {
        return switch (code) {
            case 0 -> "OK";
            case -1 -> "NOT_INITIALIZED";
            case -2 -> "ALREADY_INITIALIZED";
            case -3 -> "INVALID_ARGUMENT";
            case -4 -> "CONNECTION_FAILED";
            case -5 -> "PEER_NOT_FOUND";
            case -6 -> "NOT_LEADER";
            case -7 -> "SEND_QUEUE_FULL";
            case -8 -> "MESSAGE_TOO_LARGE";
            case -9 -> "SERIALIZATION_ERROR";
            case -10 -> "SESSION_MISMATCH";
            case -11 -> "DUPLICATE_PEER_ID";
            case -12 -> "VERSION_MISMATCH";
            case -13 -> "MAX_CONNECTIONS_REACHED";
            case -14 -> "ALREADY_CONNECTED";
            case -15 -> "WOULD_DEADLOCK";
            case -16 -> "NOT_SUPPORTED";
            case -17 -> "AUTHENTICATION_FAILED";
            case -18 -> "REJECTED";
            case -19 -> "TIMEOUT";
            case -20 -> "POLICY_MISMATCH";
            case -21 -> "SUPERSEDED";
            case -22 -> "RATE_LIMITED";
            case -23 -> "NAME_NOT_RESOLVED";
            case -24 -> "LOOKING_FOR_ROOM";
            case -25 -> "CONFLICT";
            case -26 -> "STATE_FULL";
            case -27 -> "OUTCOME_UNKNOWN";
            case -99 -> "INTERNAL_ERROR";
            default -> "UNKNOWN";
        };
    }

    interface MmnEventCallback extends Callback {
        void invoke(Pointer user_data, Pointer event);
    }

    interface MmnDropCallback extends Callback {
        void invoke(Pointer user_data);
    }

    interface MmnListedRoomCallback extends Callback {
        void invoke(Pointer user_data, Pointer room);
    }

    interface MmnLogCallback extends Callback {
        void invoke(Pointer user_data, long room, int level, String message);
    }

    interface ReceiveCallback extends Callback {
        void invoke(String peer, Pointer data, int length, short msg_type, byte flags);
    }

    interface LeaderChangedCallback extends Callback {
        void invoke(String leader);
    }

    interface PeerStatusCallback extends Callback {
        void invoke(String peer, int status);
    }

    interface ConnectionResultCallback extends Callback {
        void invoke(String addr, byte success, int code);
    }

    interface ReconnectCallback extends Callback {
        void invoke(String peer, byte status);
    }

    @Structure.FieldOrder({"struct_size", "kind", "term", "epoch", "request", "count", "peer", "other", "data", "length", "reason", "code", "msg_type", "flags", "success", "missed", "peer_index", "channel", "delivery", "found_by", "room", "index", "time_ms", "owner"})
    class MmnEvent extends Structure {
        public int struct_size;
        public int kind;
        public long term;
        public long epoch;
        public long request;
        public long count;
        public String peer;
        public String other;
        public Pointer data;
        public int length;
        public int reason;
        public int code;
        public short msg_type;
        public byte flags;
        public byte success;
        public long missed;
        public int peer_index;
        public byte channel;
        public byte delivery;
        public short found_by;
        public long room;
        public long index;
        public long time_ms;
        public String owner;

        public MmnEvent() {}

        public MmnEvent(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "strategy", "on_event", "user_data", "drop_fn", "bind_address", "secret", "identity_key", "state_directory", "trace_path", "quorum_roster", "seeded", "etcd", "secret_length", "identity_key_length", "is_default", "dispatch_mode", "bind_port", "discovery_mode", "mdns_port", "max_connections", "max_peers", "max_message_size", "send_queue_capacity", "incoming_queue_capacity", "queue_bytes", "hold_messages", "compression_threshold", "heartbeat_interval_ms", "heartbeat_timeout_multiplier", "election_timeout_min_ms", "election_timeout_max_ms", "reconnect_initial_ms", "reconnect_max_ms", "reconnect_max_retries", "auto_reconnect", "member_hold_ms", "handshake_timeout_ms", "write_timeout_ms", "auto_election", "eligible", "priority", "manual_override_recovery", "set_leader_authority", "merge_policy", "quorum_policy", "quorum_voters", "strategy_flags", "host_mode", "topology", "entry", "yield_after_ms", "centralized_auto_forward", "startup_grace_ms", "sample_interval_ms", "alive_threshold_ms", "election_duration_ms", "carry_bytes_per_second", "paths", "relays", "state", "port_mapping", "reserved", "turn"})
    class MmnOptions extends Structure {
        public int struct_size;
        public int strategy;
        public MmnEventCallback on_event;
        public Pointer user_data;
        public MmnDropCallback drop_fn;
        public String bind_address;
        public Pointer secret;
        public Pointer identity_key;
        public String state_directory;
        public String trace_path;
        public String quorum_roster;
        public Pointer seeded;
        public Pointer etcd;
        public int secret_length;
        public int identity_key_length;
        public int is_default;
        public int dispatch_mode;
        public int bind_port;
        public int discovery_mode;
        public int mdns_port;
        public int max_connections;
        public int max_peers;
        public int max_message_size;
        public int send_queue_capacity;
        public int incoming_queue_capacity;
        public int queue_bytes;
        public int hold_messages;
        public int compression_threshold;
        public int heartbeat_interval_ms;
        public int heartbeat_timeout_multiplier;
        public int election_timeout_min_ms;
        public int election_timeout_max_ms;
        public int reconnect_initial_ms;
        public int reconnect_max_ms;
        public int reconnect_max_retries;
        public int auto_reconnect;
        public int member_hold_ms;
        public int handshake_timeout_ms;
        public int write_timeout_ms;
        public int auto_election;
        public int eligible;
        public int priority;
        public int manual_override_recovery;
        public int set_leader_authority;
        public int merge_policy;
        public int quorum_policy;
        public int quorum_voters;
        public int strategy_flags;
        public int host_mode;
        public int topology;
        public int entry;
        public int yield_after_ms;
        public int centralized_auto_forward;
        public int startup_grace_ms;
        public int sample_interval_ms;
        public int alive_threshold_ms;
        public int election_duration_ms;
        public int carry_bytes_per_second;
        public int paths;
        public String relays;
        public Pointer state;
        public int port_mapping;
        public int reserved;
        public String turn;

        public MmnOptions() {}

        public MmnOptions(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "flags", "game", "name", "data", "data_length", "max_players", "port", "reserved"})
    class MmnCard extends Structure {
        public int struct_size;
        public int flags;
        public String game;
        public String name;
        public Pointer data;
        public int data_length;
        public int max_players;
        public int port;
        public int reserved;

        public MmnCard() {}

        public MmnCard(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "dispatch_mode", "game", "on_room", "user_data", "drop_fn", "port", "reserved"})
    class MmnBrowseOptions extends Structure {
        public int struct_size;
        public int dispatch_mode;
        public String game;
        public MmnListedRoomCallback on_room;
        public Pointer user_data;
        public MmnDropCallback drop_fn;
        public int port;
        public int reserved;

        public MmnBrowseOptions() {}

        public MmnBrowseOptions(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "change", "browser", "id", "name", "session_id", "address", "fingerprint", "data", "data_length", "players", "max_players", "needs_secret"})
    class MmnListedRoom extends Structure {
        public int struct_size;
        public int change;
        public long browser;
        public long id;
        public String name;
        public String session_id;
        public String address;
        public String fingerprint;
        public Pointer data;
        public int data_length;
        public int players;
        public int max_players;
        public int needs_secret;

        public MmnListedRoom() {}

        public MmnListedRoom(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "startup_grace_ms", "sample_interval_ms", "alive_threshold_ms", "election_duration_ms"})
    class MmnGossipWindows extends Structure {
        public int struct_size;
        public int startup_grace_ms;
        public int sample_interval_ms;
        public int alive_threshold_ms;
        public int election_duration_ms;

        public MmnGossipWindows() {}

        public MmnGossipWindows(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "is_seed", "seeds", "probe_interval_ms", "heartbeat_interval_ms", "heartbeat_timeout_ms", "ttl_timeout_ms", "retry_interval_ms", "reserved"})
    class MmnSeededOptions extends Structure {
        public int struct_size;
        public int is_seed;
        public String seeds;
        public int probe_interval_ms;
        public int heartbeat_interval_ms;
        public int heartbeat_timeout_ms;
        public int ttl_timeout_ms;
        public int retry_interval_ms;
        public int reserved;

        public MmnSeededOptions() {}

        public MmnSeededOptions(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "ttl_seconds", "endpoints", "prefix", "address", "ca_file", "cert_file", "key_file", "user", "password"})
    class MmnEtcdOptions extends Structure {
        public int struct_size;
        public int ttl_seconds;
        public String endpoints;
        public String prefix;
        public String address;
        public String ca_file;
        public String cert_file;
        public String key_file;
        public String user;
        public String password;

        public MmnEtcdOptions() {}

        public MmnEtcdOptions(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "delivery", "channel", "priority", "flags", "ttl_ms", "user_flags", "reserved", "reserved2", "key"})
    class MmnSendOptions extends Structure {
        public int struct_size;
        public byte delivery;
        public byte channel;
        public byte priority;
        public byte flags;
        public int ttl_ms;
        public byte user_flags;
        public byte reserved;
        public short reserved2;
        public long key;

        public MmnSendOptions() {}

        public MmnSendOptions(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "tail_entries", "tail_bytes", "max_snapshot_bytes"})
    class MmnStateOptions extends Structure {
        public int struct_size;
        public int tail_entries;
        public int tail_bytes;
        public int max_snapshot_bytes;

        public MmnStateOptions() {}

        public MmnStateOptions(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "flags", "key", "owner", "value", "length", "reserved", "expected_version"})
    class MmnPropertyChange extends Structure {
        public int struct_size;
        public int flags;
        public String key;
        public String owner;
        public Pointer value;
        public int length;
        public int reserved;
        public long expected_version;

        public MmnPropertyChange() {}

        public MmnPropertyChange(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "flags", "version", "owner", "length", "reserved"})
    class MmnPropertyInfo extends Structure {
        public int struct_size;
        public int flags;
        public long version;
        public String owner;
        public int length;
        public int reserved;

        public MmnPropertyInfo() {}

        public MmnPropertyInfo(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "members", "exclusive", "pending", "history", "ballot", "index", "confirmed", "bytes"})
    class MmnStateInfo extends Structure {
        public int struct_size;
        public int members;
        public int exclusive;
        public int pending;
        public long history;
        public long ballot;
        public long index;
        public long confirmed;
        public long bytes;

        public MmnStateInfo() {}

        public MmnStateInfo(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "rtt_us", "jitter_us", "loss_ppm", "bytes_sent", "bytes_received", "messages_sent", "messages_received", "queue_messages", "queue_age_ms", "queue_bytes", "congestion_window", "path_mtu", "reconnects", "path", "reserved", "host_silent_ms", "reserved2"})
    class MmnPeerStats extends Structure {
        public int struct_size;
        public int rtt_us;
        public int jitter_us;
        public int loss_ppm;
        public long bytes_sent;
        public long bytes_received;
        public long messages_sent;
        public long messages_received;
        public int queue_messages;
        public int queue_age_ms;
        public long queue_bytes;
        public long congestion_window;
        public int path_mtu;
        public int reconnects;
        public int path;
        public int reserved;
        public int host_silent_ms;
        public int reserved2;

        public MmnPeerStats() {}

        public MmnPeerStats(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"struct_size", "unlinked_peers", "missed_broadcasts", "room_time_error_us", "reserved"})
    class MmnRoomStats extends Structure {
        public int struct_size;
        public int unlinked_peers;
        public long missed_broadcasts;
        public int room_time_error_us;
        public int reserved;

        public MmnRoomStats() {}

        public MmnRoomStats(Pointer memory) {
            super(memory);
        }
    }

    @Structure.FieldOrder({"reconnect_max_ms", "compression_threshold", "max_message_size", "heartbeat_interval_ms", "election_timeout_min_ms", "election_timeout_max_ms", "reconnect_initial_ms", "handshake_timeout_ms", "write_timeout_ms", "send_queue_capacity", "incoming_queue_capacity", "max_connections", "keepalive_time_secs", "keepalive_interval_secs", "mdns_port", "heartbeat_timeout_multiplier", "keepalive_retries", "centralized_auto_forward", "auto_election_enabled", "manual_override_recovery", "tcp_nodelay", "auto_reconnect_enabled", "reconnect_max_retries"})
    class NetworkConfigFFI extends Structure {
        public int reconnect_max_ms;
        public int compression_threshold;
        public int max_message_size;
        public short heartbeat_interval_ms;
        public short election_timeout_min_ms;
        public short election_timeout_max_ms;
        public short reconnect_initial_ms;
        public short handshake_timeout_ms;
        public short write_timeout_ms;
        public short send_queue_capacity;
        public short incoming_queue_capacity;
        public short max_connections;
        public short keepalive_time_secs;
        public short keepalive_interval_secs;
        public short mdns_port;
        public byte heartbeat_timeout_multiplier;
        public byte keepalive_retries;
        public byte centralized_auto_forward;
        public byte auto_election_enabled;
        public byte manual_override_recovery;
        public byte tcp_nodelay;
        public byte auto_reconnect_enabled;
        public byte reconnect_max_retries;

        public NetworkConfigFFI() {}

        public NetworkConfigFFI(Pointer memory) {
            super(memory);
        }
    }

    int mmn_abi_version();
    String mmn_library_version();
    int mmn_set_event_handler(long room, MmnEventCallback callback, Pointer user_data, MmnDropCallback drop_fn);
    int mmn_take_messages(long room);
    int mmn_poll(long room, int max);
    int mmn_default_options(MmnOptions options);
    int mmn_open(String peer_id, String session_id, MmnOptions options, LongByReference room);
    int mmn_leave(long room);
    int mmn_close(long room);
    byte mmn_is_open(long room);
    long mmn_default_room();
    byte mmn_is_announced(long room);
    int mmn_last_error_code();
    String mmn_last_error_message();
    String mmn_describe_error(int code);
    int mmn_connect(long room, String addr);
    int mmn_disconnect(long room, String peer_id, int code, byte[] data, int length);
    String mmn_local_address(long room);
    String mmn_local_addresses(long room);
    String mmn_public_address(long room);
    String mmn_local_id(long room);
    String mmn_session_id(long room);
    int mmn_peer_count(long room);
    String mmn_peers(long room);
    String mmn_members(long room);
    String mmn_peer_address(long room, String peer_id);
    int mmn_set_turn(long room, String servers);
    int mmn_peer_path(long room, String peer_id);
    String mmn_peer_carrier(long room, String peer_id);
    int mmn_peer_index(long room, String peer_id);
    String mmn_peer_id(long room, int index);
    int mmn_peer_rtt_ms(long room, String peer_id);
    int mmn_peer_status(long room, String peer_id);
    int mmn_show_card(long room, MmnCard card);
    int mmn_browse_open(MmnBrowseOptions options, LongByReference browser);
    int mmn_browse_poll(long browser, int max);
    int mmn_browse_close(long browser);
    int mmn_generate_identity_key(byte[] buffer, int length);
    String mmn_local_fingerprint(long room);
    String mmn_peer_fingerprint(long room, String peer_id);
    int mmn_generate_room_code(byte[] buffer, int length);
    int mmn_normalize_room_code(String text, byte[] buffer, int length);
    int mmn_set_auto_reconnect(long room, byte enabled);
    byte mmn_auto_reconnect(long room);
    int mmn_kick(long room, String peer_id, int flags, int code, byte[] data, int length);
    int mmn_unban(long room, String peer_id);
    int mmn_set_max_peers(long room, int max_peers);
    int mmn_set_join_payload(long room, byte[] data, int length);
    int mmn_set_join_requests(long room, byte enabled);
    int mmn_accept_join(long room, long request);
    int mmn_reject_join(long room, long request, int code, byte[] data, int length);
    int mmn_set_leader(long room, String peer_id);
    int mmn_set_auto_election(long room, byte enabled);
    int mmn_set_eligible(long room, byte eligible);
    int mmn_transfer_leadership(long room, String peer_id);
    int mmn_yield_leadership(long room);
    int mmn_set_priority(long room, int priority);
    long mmn_leader_term(long room);
    long mmn_leader_epoch(long room);
    int mmn_strategy(long room);
    String mmn_leader(long room);
    byte mmn_is_leader(long room);
    int mmn_set_gossip_windows(long room, MmnGossipWindows windows);
    int mmn_gossip_windows(long room, MmnGossipWindows windows);
    int mmn_default_seeded_options(int profile, MmnSeededOptions options);
    int mmn_member_state(long room, String peer_id);
    long mmn_cluster_version(long room);
    int mmn_default_etcd_options(MmnEtcdOptions options);
    long mmn_fencing_token(long room);
    int mmn_proclaim(long room, String value);
    int mmn_acquire_lock(long room, String name, int timeout_ms, LongByReference request);
    int mmn_try_lock(long room, String name, LongByReference request);
    int mmn_release_lock(long room, String name);
    int mmn_send(long room, String peer_id, byte[] data, int length, short msg_type, MmnSendOptions options);
    int mmn_broadcast(long room, byte[] data, int length, short msg_type, MmnSendOptions options);
    int mmn_send_to_leader(long room, byte[] data, int length, short msg_type, MmnSendOptions options);
    int mmn_broadcast_as_leader(long room, byte[] data, int length, short msg_type, MmnSendOptions options);
    int mmn_forward(long room, String from, String to, byte[] data, int length, short msg_type, MmnSendOptions options);
    int mmn_max_datagram_size(long room, String peer_id);
    int mmn_set_centralized(long room, byte enabled);
    byte mmn_centralized(long room);
    int mmn_set_auto_forward(long room, byte enabled);
    byte mmn_auto_forward(long room);
    int mmn_set_compression_threshold(long room, int bytes);
    int mmn_send_transfer(long room, String peer_id, byte[] data, int length, byte[] tag, int tag_length, LongByReference transfer);
    int mmn_accept_transfer(long room, String peer_id, long transfer, Pointer buffer, int capacity);
    int mmn_accept_transfer_in_parts(long room, String peer_id, long transfer);
    int mmn_cancel_transfer(long room, String peer_id, long transfer);
    int mmn_default_state_options(MmnStateOptions options);
    int mmn_submit(long room, byte[] data, int length, short msg_type, LongByReference request);
    int mmn_set_properties(long room, MmnPropertyChange changes, int count, LongByReference request);
    Pointer mmn_property(long room, String key, MmnPropertyInfo info);
    String mmn_property_keys(long room, String owner);
    int mmn_provide_snapshot(long room, long request, byte[] data, int length);
    int mmn_state_info(long room, MmnStateInfo info);
    int mmn_peer_stats(long room, String peer_id, MmnPeerStats stats);
    int mmn_room_stats(long room, MmnRoomStats stats);
    long mmn_room_time_ms(long room);
    int mmn_simulate_network(long room, int lag_ms, int jitter_ms, int loss_permille);
    int mmn_simulate_preset(long room, String preset);
    int mmn_set_log_stderr(int level);
    int mmn_set_log(int level, MmnLogCallback callback, Pointer user_data, MmnDropCallback drop_fn);
    int RegisterReceiveCallback(ReceiveCallback callback);
    int RegisterLeaderChangedCallback(LeaderChangedCallback callback);
    int RegisterPeerStatusCallback(PeerStatusCallback callback);
    int RegisterConnectionResultCallback(ConnectionResultCallback callback);
    int RegisterReconnectCallback(ReconnectCallback callback);
    int InitializeNetwork(String peer_id, String session_id);
    int InitializeNetworkWithConfig(String peer_id, String session_id, NetworkConfigFFI config);
    int ShutdownNetwork();
    byte IsNetworkInitialized();
    int DisconnectPeer(String peer_id);
    int BroadcastMessage(byte[] data, int length, short msg_type, byte flags);
    int SendToPeer(String peer_id, byte[] data, int length, short msg_type, byte flags);
    int SendToLeader(byte[] data, int length, short msg_type, byte flags);
    int SendFromLeader(byte[] data, int length, short msg_type, byte flags);
    int ForwardMessage(String from, String to, byte[] data, int length, short msg_type, byte flags);
    byte IsMdnsActive();
    int EnableLogging(byte enabled);
    int GetLastErrorCode();
    String GetLastErrorMessage();
    int ConnectToPeer(String addr);
    String GetLocalAddr();
    String GetLocalPeerId();
    String GetSessionId();
    int GetPeerCount();
    String GetPeerList();
    int GetPeerRTT(String peer_id);
    int GetPeerStatus(String peer_id);
    int SetAutoReconnect(byte enabled);
    byte IsAutoReconnectEnabled();
    int SetLeader(String peer_id);
    int EnableAutoLeaderElection(byte enabled);
    String GetCurrentLeader();
    byte IsLeader();
    int SetCentralizedMode(byte enabled);
    byte IsCentralizedMode();
    int SetCentralizedAutoForward(byte enabled);
    byte IsCentralizedAutoForward();
    int SetCompressionThreshold(int bytes);
    int SetStartupGracePeriod(int milliseconds);
    int GetStartupGracePeriod();
    int SetMembershipSampleInterval(int milliseconds);
    int GetMembershipSampleInterval();
    int SetLeaderAliveThreshold(int milliseconds);
    int GetLeaderAliveThreshold();
    int SetLeaderElectionDuration(int milliseconds);
    int GetLeaderElectionDuration();
    int GetMsgExpirationTimeout();
    int GetLeadershipDeclarationInterval();
}
