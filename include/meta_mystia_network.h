/*
 * meta_mystia_network: one room for the players of a game.
 *
 * Generated from the Rust source. Do not edit; `make header` writes it.
 *
 * For every function:
 * - Strings are NUL-terminated UTF-8. One that is passed must have its NUL within 64 KiB; NULL, or what is not
 *   UTF-8, is MMN_INVALID_ARGUMENT. One that is returned belongs to the library and is valid until the same
 *   thread's next call that returns a string, unless its function says otherwise.
 * - Flags of type uint8_t: 0 is false, all else is true.
 * - A call that fails sets the calling thread's last error (GetLastErrorCode, GetLastErrorMessage); one that
 *   succeeds leaves it alone. Arguments are checked first: pointers, lengths, UTF-8 and ids, then whether a room
 *   is open, then the values.
 * - Any function may be called from any thread and from inside a callback, but for ShutdownNetwork and PollEvents,
 *   which are refused inside a callback. A log callback may call less; see LogCallback. None waits for the network,
 *   except that ShutdownNetwork takes up to 2 seconds.
 * - Unregistering a callback, and ShutdownNetwork, wait for a callback that is running: it must not wait for
 *   the thread that does so.
 * - A child of fork() has no room: there every function answers as before initialization, nothing is called back or
 *   dropped, and InitializeNetwork opens a room of the child's own. The parent goes on. A child that is forked inside
 *   a callback on a thread of the library ends when the callback returns. docs/threading.md has the whole.
 * - A fault inside the library is MMN_INTERNAL_ERROR, or the answer that means "nothing": NULL or 0.
 *
 * Licence: MIT OR Apache-2.0.
 */


#ifndef META_MYSTIA_NETWORK_H
#define META_MYSTIA_NETWORK_H

#include <stdint.h>

/**
 * Version of this header's ABI. It counts up when functions, codes or fields are added; nothing is ever
 * removed or changed, except extended functions before the library's version 1.0.
 */
#define MMN_ABI_VERSION 6

/**
 * The call did what it says.
 */
#define MMN_OK 0

/**
 * No room is open in this process: call InitializeNetwork first.
 */
#define MMN_NOT_INITIALIZED -1

/**
 * A room is already open in this process: call ShutdownNetwork before opening another.
 */
#define MMN_ALREADY_INITIALIZED -2

/**
 * An argument is not allowed: GetLastErrorMessage names it and its limit.
 */
#define MMN_INVALID_ARGUMENT -3

/**
 * The network refused: the address cannot be reached, nobody listens there, or no socket could be opened.
 */
#define MMN_CONNECTION_FAILED -4

/**
 * No connected peer has that id, or no open request that number.
 */
#define MMN_PEER_NOT_FOUND -5

/**
 * Only the leader may do this, or no leader is known.
 */
#define MMN_NOT_LEADER -6

/**
 * A queue is full and nothing was queued: try again later or send less.
 */
#define MMN_SEND_QUEUE_FULL -7

/**
 * The message is longer than max_message_size.
 */
#define MMN_MESSAGE_TOO_LARGE -8

/**
 * A message could not be encoded or decoded.
 */
#define MMN_SERIALIZATION_ERROR -9

/**
 * The peer is in another session.
 */
#define MMN_SESSION_MISMATCH -10

/**
 * Another member already has this peer id.
 */
#define MMN_DUPLICATE_PEER_ID -11

/**
 * The peer speaks another version of the protocol.
 */
#define MMN_VERSION_MISMATCH -12

/**
 * There is no place: max_connections of either end, the room's limit or its voters, or too many attempts at a time.
 */
#define MMN_MAX_CONNECTIONS_REACHED -13

/**
 * The peer is already connected: the connection stands.
 */
#define MMN_ALREADY_CONNECTED -14

/**
 * The call would wait for itself: it is not allowed inside a callback, and PollEvents only in one thread at a time.
 */
#define MMN_WOULD_DEADLOCK -15

/**
 * This election strategy or this build does not have the function.
 */
#define MMN_NOT_SUPPORTED -16

/**
 * The peer has another room secret or another session id.
 */
#define MMN_AUTHENTICATION_FAILED -17

/**
 * It was refused: by the leader, its application, the room's rules, or because of a DisconnectPeer.
 */
#define MMN_REJECTED -18

/**
 * No answer came in time.
 */
#define MMN_TIMEOUT -19

/**
 * The peer plays by other room rules: MMN_EVENT_CONNECTION_RESULT and the log name the rule and both values.
 */
#define MMN_POLICY_MISMATCH -20

/**
 * A newer request took the place of this one.
 */
#define MMN_SUPERSEDED -21

/**
 * A fault inside the library: please report it with the log.
 */
#define MMN_INTERNAL_ERROR -99

/**
 * Longest peer id, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_PEER_ID_BYTES 64

/**
 * Longest session id, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_SESSION_ID_BYTES 128

/**
 * Smallest message type that an application may use; the smaller ones are the library's own.
 */
#define MMN_MIN_MESSAGE_TYPE 256

/**
 * GetPeerStatus, PeerStatusCallback: the peer is connected.
 */
#define MMN_PEER_CONNECTED 0

/**
 * PeerStatusCallback: the connection to the peer is lost. GetPeerStatus never answers it.
 */
#define MMN_PEER_DISCONNECTED 1

/**
 * GetPeerStatus: the connection is lost and being dialled again.
 */
#define MMN_PEER_RECONNECTING 2

/**
 * GetPeerStatus: the peer is being admitted.
 */
#define MMN_PEER_HANDSHAKING 3

/**
 * ReconnectCallback: the peer is lost and being dialled again.
 */
#define MMN_RECONNECT_RETRYING 0

/**
 * ReconnectCallback: the peer is back.
 */
#define MMN_RECONNECT_RETURNED 1

/**
 * ReconnectCallback: the peer has been given up.
 */
#define MMN_RECONNECT_GAVE_UP 2

/**
 * Log levels: nothing.
 */
#define MMN_LOG_OFF 0

/**
 * Log levels: faults.
 */
#define MMN_LOG_ERROR 1

/**
 * Log levels: and what may be wrong.
 */
#define MMN_LOG_WARN 2

/**
 * Log levels: and what happens in the room.
 */
#define MMN_LOG_INFO 3

/**
 * Log levels: and how it comes about.
 */
#define MMN_LOG_DEBUG 4

/**
 * Log levels: and every detail.
 */
#define MMN_LOG_TRACE 5

/**
 * manual_override_recovery: a leader that was set by hand and is lost is not replaced until SetLeader or
 * EnableAutoLeaderElection is called. With MMN_AUTHORITY_LEADER_ONLY it is replaced by an election all the same.
 */
#define MMN_RECOVERY_HOLD 0

/**
 * manual_override_recovery: a leader that was set by hand and is lost is replaced by an election.
 */
#define MMN_RECOVERY_AUTO_ELECT 1

/**
 * discovery_mode: nothing is announced, nothing is found.
 */
#define MMN_DISCOVERY_OFF 0

/**
 * discovery_mode: announce this member, and report the members that are found.
 */
#define MMN_DISCOVERY_REPORT 1

/**
 * discovery_mode: announce this member, and connect to the members that are found.
 */
#define MMN_DISCOVERY_CONNECT 2

/**
 * dispatch_mode: a thread of the library runs the callbacks.
 */
#define MMN_DISPATCH_THREAD 0

/**
 * dispatch_mode: the callbacks run on the thread that calls PollEvents.
 */
#define MMN_DISPATCH_POLL 1

/**
 * merge_policy: the leader of the larger side stays; of equal sides, the one that has led longer.
 */
#define MMN_MERGE_LARGEST_SIDE 0

/**
 * merge_policy: the leader with the higher leadership record stays.
 */
#define MMN_MERGE_HIGHEST_TERM 1

/**
 * set_leader_authority: every member may call SetLeader.
 */
#define MMN_AUTHORITY_ANYONE 0

/**
 * set_leader_authority: the leader alone may call SetLeader. A leader that is lost is replaced by an election,
 * whatever manual_override_recovery says: nobody else could name one.
 */
#define MMN_AUTHORITY_LEADER_ONLY 1

/**
 * host_mode: no fixed host; the room elects its leader.
 */
#define MMN_HOST_MODE_OFF 0

/**
 * host_mode: this member is the room's host, and leads from its start on, for as long as the room lives.
 */
#define MMN_HOST_MODE_HOST 1

/**
 * host_mode: another member is the room's host.
 */
#define MMN_HOST_MODE_GUEST 2

/**
 * quorum_policy: a majority of the members that are connected when an election starts.
 */
#define MMN_QUORUM_DYNAMIC 0

/**
 * quorum_policy: a majority of the voters of quorum_roster, connected or not.
 */
#define MMN_QUORUM_STATIC 1

/**
 * strategy: the leader is elected by votes of the connected members.
 */
#define MMN_STRATEGY_RAFT 0

/**
 * strategy: the lowest peer id that finds no leader leads, in every part of a room that is cut.
 */
#define MMN_STRATEGY_GOSSIP 1

/**
 * strategy_flags of MMN_STRATEGY_GOSSIP: the lowest peer id always follows a leader that is lost.
 */
#define MMN_GOSSIP_STRICT_LOWEST 1

/**
 * Longest room secret of NetworkOptions, in bytes.
 */
#define MMN_MAX_SECRET_BYTES 1024

/**
 * Most voters of quorum_roster in NetworkOptions. It was 1024 before version 6 of the ABI.
 */
#define MMN_MAX_QUORUM_VOTERS 64

/**
 * NetworkEvent.kind: `peer` is connected. It comes before the peer's first message.
 */
#define MMN_EVENT_JOINED 1

/**
 * NetworkEvent.kind: the link to `peer` is lost and being dialled again; accepted messages wait.
 */
#define MMN_EVENT_RECONNECTING 2

/**
 * NetworkEvent.kind: `peer` is back after MMN_EVENT_RECONNECTING, and nothing was lost.
 */
#define MMN_EVENT_RETURNED 3

/**
 * NetworkEvent.kind: `peer` is gone. `reason` is one of MMN_LEFT_...; `code` and `data` are what the application
 * said that removed it; `count` is how many messages to it were accepted and are not known to be delivered.
 * It comes after the peer's last message.
 */
#define MMN_EVENT_LEFT 4

/**
 * NetworkEvent.kind: `peer` sent `data`, with `msg_type` and `flags`.
 */
#define MMN_EVENT_MESSAGE 5

/**
 * NetworkEvent.kind: a SetLeader of this node that made `peer` the leader has ended. `success` is 1 when the peer
 * leads; `code` is MMN_OK, MMN_TIMEOUT, MMN_SUPERSEDED, MMN_REJECTED (with MMN_QUORUM_STATIC: the leader refused to hand
 * over), or says otherwise why not.
 */
#define MMN_EVENT_SET_LEADER_RESULT 6

/**
 * NetworkEvent.kind: this node is in the room no more. `reason` is one of MMN_END_...; `code` and `data` are what
 * the application of the leader said. ShutdownNetwork is still to be called.
 */
#define MMN_EVENT_ROOM_ENDED 7

/**
 * NetworkEvent.kind: `peer` leads, "" when nobody does; `other` is who led as far as this handler was told.
 * With `term`, `epoch` (how many SetLeader calls the change builds on) and `reason`, one of MMN_LEADER_...
 */
#define MMN_EVENT_LEADER_CHANGED 8

/**
 * NetworkEvent.kind: this node leads from here on. Fields as in the MMN_EVENT_LEADER_CHANGED before it.
 */
#define MMN_EVENT_LEADERSHIP_GAINED 9

/**
 * NetworkEvent.kind: this node leads no longer. Fields as in the MMN_EVENT_LEADER_CHANGED before it.
 */
#define MMN_EVENT_LEADERSHIP_LOST 10

/**
 * NetworkEvent.kind: `peer`, at the address `other`, asks to be let in and says `data`. `request` names the
 * request in the answer.
 */
#define MMN_EVENT_JOIN_REQUEST 11

/**
 * NetworkEvent.kind: a member of the room announces itself in the local network; `other` is an address for
 * ConnectToPeer.
 */
#define MMN_EVENT_DISCOVERED 12

/**
 * NetworkEvent.kind: a ConnectToPeer has ended. `other` is the address as it was given there, `peer` who answered
 * ("" when not known); `success` and `code` as in ConnectionResultCallback; `reason` and `data` are what
 * the application of the room said that rejected; with MMN_POLICY_MISMATCH `data` is a
 * sentence that names the rule and both values, with MMN_MAX_CONNECTIONS_REACHED one that names the limit, or nothing,
 * with MMN_CONNECTION_FAILED one that says for how long the address is not dialled, or nothing.
 */
#define MMN_EVENT_CONNECTION_RESULT 13

/**
 * MMN_EVENT_LEADER_CHANGED: the reason is not known.
 */
#define MMN_LEADER_UNKNOWN 0

/**
 * MMN_EVENT_LEADER_CHANGED: the leader was elected.
 */
#define MMN_LEADER_ELECTED 1

/**
 * MMN_EVENT_LEADER_CHANGED: SetLeader named the leader.
 */
#define MMN_LEADER_ASSIGNED 2

/**
 * MMN_EVENT_LEADER_CHANGED: the leader before handed over: it left, or called TransferLeadership or YieldLeadership.
 */
#define MMN_LEADER_TRANSFERRED 3

/**
 * MMN_EVENT_LEADER_CHANGED: the leader led already when this node learned of it: by joining the room, or because
 * two parts of the room met.
 */
#define MMN_LEADER_FOUND 4

/**
 * MMN_EVENT_LEADER_CHANGED: the leader fell silent, or the link with it was lost.
 */
#define MMN_LEADER_LOST 5

/**
 * MMN_EVENT_LEADER_CHANGED: the leader left, was removed, or may lead no longer.
 */
#define MMN_LEADER_LEFT 6

/**
 * MMN_EVENT_LEADER_CHANGED: the leader resigned: too few members answered it, or a higher claim ended its own.
 */
#define MMN_LEADER_RESIGNED 7

/**
 * MMN_EVENT_LEFT: the peer left by itself.
 */
#define MMN_LEFT_LEFT 0

/**
 * MMN_EVENT_LEFT: the peer was lost and did not come back in time, or lost peers are not dialled again.
 */
#define MMN_LEFT_LOST 1

/**
 * MMN_EVENT_LEFT: one of both hosts called DisconnectPeer.
 */
#define MMN_LEFT_DISCONNECTED 2

/**
 * MMN_EVENT_LEFT: the peer was started anew, or another process took its id.
 */
#define MMN_LEFT_REPLACED 3

/**
 * MMN_EVENT_LEFT: the leader removed the peer from the room.
 */
#define MMN_LEFT_KICKED 4

/**
 * MMN_EVENT_LEFT: the peer broke the protocol.
 */
#define MMN_LEFT_VIOLATION 5

/**
 * MMN_EVENT_LEFT: dialling the peer again was given up.
 */
#define MMN_LEFT_GAVE_UP 6

/**
 * MMN_EVENT_ROOM_ENDED: the leader removed this node from the room.
 */
#define MMN_END_KICKED 0

/**
 * MMN_EVENT_ROOM_ENDED: the room's fixed host has left it politely (ShutdownNetwork).
 */
#define MMN_END_HOST_LEFT 1

/**
 * MMN_EVENT_ROOM_ENDED: the room's fixed host was lost: not back within member_hold_ms, given up before that, or cut off
 * because it broke the protocol.
 */
#define MMN_END_HOST_LOST 2

/**
 * MMN_EVENT_ROOM_ENDED: the room's fixed host called DisconnectPeer for this member, or this member for the host.
 */
#define MMN_END_DISCONNECTED 3

/**
 * Settings for InitializeNetworkWithConfig: 44 bytes, fixed for ever. Fill in every field; the default of each
 * is in brackets. Fields must be above 0 unless their text says otherwise.
 */
typedef struct NetworkConfigFFI {
  /**
   * Longest wait between two dials of a lost peer, in milliseconds [30000]. At least reconnect_initial_ms.
   * Waits are no longer than 2 seconds in the first minute after a loss, whatever this says.
   */
  uint32_t reconnect_max_ms;
  /**
   * Payloads longer than this, in bytes, are sent compressed where that is shorter [512]. 0 tries all.
   */
  uint32_t compression_threshold;
  /**
   * Longest message that is sent or taken, in bytes [262144]. To a peer the smaller of both sides' holds.
   */
  uint32_t max_message_size;
  /**
   * Time between two heartbeats, in milliseconds [500].
   */
  uint16_t heartbeat_interval_ms;
  /**
   * Shortest time without a leader before an election, in milliseconds [1500]. Above heartbeat_interval_ms,
   * at most election_timeout_max_ms. Where it is below heartbeat_interval_ms * heartbeat_timeout_multiplier,
   * that product is used, and the longest time is moved up alike.
   */
  uint16_t election_timeout_min_ms;
  /**
   * Longest time without a leader before an election, in milliseconds [3000].
   */
  uint16_t election_timeout_max_ms;
  /**
   * Wait before the first dial of a lost peer, in milliseconds [1000]; doubles from there.
   */
  uint16_t reconnect_initial_ms;
  /**
   * How long ConnectToPeer may take to its result, name resolution included, in milliseconds [5000].
   */
  uint16_t handshake_timeout_ms;
  /**
   * How long a peer's library may take nothing before the link to it is given up, in milliseconds [5000].
   */
  uint16_t write_timeout_ms;
  /**
   * Messages that wait for one peer [128]; more are refused with MMN_SEND_QUEUE_FULL.
   */
  uint16_t send_queue_capacity;
  /**
   * Messages that wait for the host's Receive callback [256]; senders wait while there are more.
   */
  uint16_t incoming_queue_capacity;
  /**
   * Most other members connected at a time [64].
   */
  uint16_t max_connections;
  /**
   * No effect: QUIC needs no TCP keep-alive [60].
   */
  uint16_t keepalive_time_secs;
  /**
   * No effect: QUIC needs no TCP keep-alive [10].
   */
  uint16_t keepalive_interval_secs;
  /**
   * UDP port of multicast discovery in the local network [15353]. 0 is off.
   */
  uint16_t mdns_port;
  /**
   * Heartbeats that may be missed before a peer counts as lost [3].
   */
  uint8_t heartbeat_timeout_multiplier;
  /**
   * No effect: QUIC needs no TCP keep-alive [3].
   */
  uint8_t keepalive_retries;
  /**
   * In centralized mode, whether the leader sends broadcasts on to all but their origin: 0 no, else yes [1].
   */
  uint8_t centralized_auto_forward;
  /**
   * Whether the room elects a leader by itself: 0 no, else yes [1].
   */
  uint8_t auto_election_enabled;
  /**
   * What follows when a leader that was set by hand is lost: 1 MMN_RECOVERY_AUTO_ELECT, else
   * MMN_RECOVERY_HOLD [0]. Always the former with MMN_AUTHORITY_LEADER_ONLY.
   */
  uint8_t manual_override_recovery;
  /**
   * No effect: QUIC has no Nagle algorithm to switch off [1].
   */
  uint8_t tcp_nodelay;
  /**
   * Whether lost peers are dialled again: 0 no, else yes [1].
   */
  uint8_t auto_reconnect_enabled;
  /**
   * Dials of a lost peer before it is given up [0]. 0 is unlimited.
   */
  uint8_t reconnect_max_retries;
} NetworkConfigFFI;

/**
 * Settings for InitializeNetworkWithOptions. Later versions of the library append fields; what an older
 * program does not know keeps its default. Begin with the defaults:
 *
 *     NetworkOptions options = {0};
 *     options.struct_size = sizeof options;
 *     GetDefaultNetworkOptions(&options);
 *
 * What the pointers lead to is copied during the call. The default of each field is in brackets.
 */
typedef struct NetworkOptions {
  /**
   * sizeof(NetworkOptions) where the program was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * The settings of InitializeNetworkWithConfig, with the same rules [the same defaults, but
   * send_queue_capacity and incoming_queue_capacity 4096]. mdns_port counts where discovery_mode is not
   * MMN_DISCOVERY_OFF, and must then be above 0.
   */
  struct NetworkConfigFFI config;
  /**
   * The one address of this machine to use: IPv4 or IPv6, without port and brackets. NULL is every address of
   * both kinds [NULL].
   */
  const char *bind_address;
  /**
   * What members must know beside the session id: secret_length bytes. Dialling a member that has another one
   * fails with MMN_AUTHENTICATION_FAILED. NULL is none [NULL].
   */
  const uint8_t *secret;
  /**
   * The key by which others know this member, if it is to be the same in its next room: an Ed25519 private key
   * in PKCS#8 (DER), identity_key_length bytes. NULL makes a new one at every start [NULL].
   */
  const uint8_t *identity_key;
  /**
   * Bytes of secret, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].
   */
  uint32_t secret_length;
  /**
   * Bytes of identity_key, at most 1024. 0 makes a new key [0].
   */
  uint32_t identity_key_length;
  /**
   * How long the place of a lost member is kept, in milliseconds [60000]. Above 0.
   */
  uint32_t member_hold_ms;
  /**
   * Bytes that wait for one peer at most, and for the host, beside the limits in messages [4194304]. Above 0. An
   * empty queue takes one message of any allowed size.
   */
  uint32_t queue_bytes;
  /**
   * How the leader is elected: MMN_STRATEGY_RAFT or, since version 4 of the ABI, MMN_STRATEGY_GOSSIP
   * [MMN_STRATEGY_RAFT]. Others are MMN_NOT_SUPPORTED. The same for all members. With gossip there are no votes:
   * election_timeout_min_ms, election_timeout_max_ms, manual_override_recovery, merge_policy and set_leader_authority
   * have no effect, and SetLeaderAliveThreshold and its like set the times.
   */
  uint32_t strategy;
  /**
   * Whom elections prefer: the higher priority [0]. With MMN_STRATEGY_GOSSIP 0.
   */
  int32_t priority;
  /**
   * The UDP port to bind [0]. 0 is any free one.
   */
  uint16_t bind_port;
  /**
   * Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or MMN_DISCOVERY_CONNECT
   * [MMN_DISCOVERY_OFF].
   */
  uint8_t discovery_mode;
  /**
   * Who runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL [MMN_DISPATCH_THREAD].
   */
  uint8_t dispatch_mode;
  /**
   * Which leader stays when two parts of a room meet: MMN_MERGE_LARGEST_SIDE or MMN_MERGE_HIGHEST_TERM
   * [MMN_MERGE_LARGEST_SIDE]. The same for all members.
   */
  uint8_t merge_policy;
  /**
   * Who may call SetLeader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY [MMN_AUTHORITY_ANYONE]. The same
   * for all members.
   */
  uint8_t set_leader_authority;
  /**
   * Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST
   * [MMN_HOST_MODE_OFF]. The host leads when InitializeNetworkWithOptions returns, whatever auto_election_enabled says.
   */
  uint8_t host_mode;
  /**
   * Whether this member may lead: 0 no, it observes; else yes [1].
   */
  uint8_t eligible;
  /**
   * Where a static quorum keeps what must survive the process: the path of an existing directory in which this member
   * may write, in a file of its own for each session id and peer id. The file holds the roster, the votes and, where
   * identity_key is NULL, the private key, which is made at the first start and used again at every other. Another
   * quorum_roster or identity_key than that of the file is MMN_INVALID_ARGUMENT. Two processes cannot be the same
   * member with the same directory. Needed with MMN_QUORUM_STATIC, else NULL [NULL]. Since version 3 of the ABI.
   */
  const char *state_directory;
  /**
   * The path of a file for a trace of the room's elections, of which `examples/simulate.rs` makes a picture. It is written
   * anew, up to 256 MiB, and holds nothing that the application sends. One that cannot be written is
   * MMN_INVALID_ARGUMENT. NULL is none [NULL]. Since version 3 of the ABI.
   */
  const char *trace_path;
  /**
   * A majority of whom elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC]. The same for all members.
   * A static quorum never has two leaders, and no leader without a majority of the voters of quorum_roster; it goes with
   * no host_mode, and with MMN_STRATEGY_RAFT alone. Since version 3 of the ABI.
   */
  uint32_t quorum_policy;
  /**
   * 0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most MMN_MAX_QUORUM_VOTERS [0]. Since
   * version 3 of the ABI.
   */
  uint32_t quorum_voters;
  /**
   * How the strategy elects, in bits [0]. With MMN_STRATEGY_GOSSIP MMN_GOSSIP_STRICT_LOWEST or 0, the same for all
   * members; else 0. Since version 4 of the ABI.
   */
  uint32_t strategy_flags;
  /**
   * 0. Since version 4 of the ABI.
   */
  uint32_t reserved;
  /**
   * Most other members of any member, as SetMaxPeers sets it, from the room's first leader on; 0 is no limit [0].
   * The leader's own value counts until SetMaxPeers is called: give it to all members that may lead. Since version 5
   * of the ABI.
   */
  uint32_t max_peers;
  /**
   * 0. Since version 5 of the ABI.
   */
  uint32_t reserved2;
  /**
   * The voters of a static quorum: their peer ids, one a line, 1 to MMN_MAX_QUORUM_VOTERS. After an id may follow a blank
   * and the fingerprint of its key: the SHA-256 of the public key (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Nobody
   * with another key is that voter then. Blanks around a line and empty lines are ignored. The same voters for all
   * members and for as long as the session lives. A member that is not on it never leads and has no vote. Needed with
   * MMN_QUORUM_STATIC, else NULL [NULL]. Since version 6 of the ABI.
   */
  const char *quorum_roster;
} NetworkOptions;

/**
 * Takes messages. `peer` sent `length` bytes at `data` (never NULL); `msg_type` and `flags` are the sender's.
 * All callbacks run one at a time and in order, on a thread of the library or, in poll mode, on the one that
 * calls PollEvents; their arguments are valid during the call only. A callback may call every function but
 * ShutdownNetwork and PollEvents, and must not throw.
 */
typedef void (*ReceiveCallback)(const char *peer,
                                const uint8_t *data,
                                int32_t length,
                                uint16_t msg_type,
                                uint8_t flags);

/**
 * Takes changes of the leader. `leader` is its peer id, "" when there is none.
 */
typedef void (*LeaderChangedCallback)(const char *leader);

/**
 * Takes whether this node leads: 1 when it leads from here on, 0 when it leads no longer, in turn.
 */
typedef void (*LeadershipCallback)(uint8_t is_leader);

/**
 * Takes connections and losses. `status` is MMN_PEER_CONNECTED or MMN_PEER_DISCONNECTED.
 */
typedef void (*PeerStatusCallback)(const char *peer, int32_t status);

/**
 * Takes the result of a ConnectToPeer. `addr` is as it was given there; `success` is 1 when the peer is
 * connected, else 0; `code` is MMN_OK, or says why (MMN_ALREADY_CONNECTED comes with success 1).
 */
typedef void (*ConnectionResultCallback)(const char *addr, uint8_t success, int32_t code);

/**
 * Takes what becomes of lost peers, where lost peers are dialled again. `status` is MMN_RECONNECT_RETRYING,
 * MMN_RECONNECT_RETURNED or MMN_RECONNECT_GAVE_UP. The PeerStatus callback of the same event comes first.
 */
typedef void (*ReconnectCallback)(const char *peer, uint8_t status);

/**
 * Something that happened. Which fields say something depends on `kind`; the others are 0 or "". The struct and
 * everything that it points to is valid during the call only.
 *
 * Fields are only ever appended: read those that lie within `struct_size`, and ignore kinds that you do not
 * know.
 */
typedef struct NetworkEvent {
  /**
   * How many bytes of this struct the library has filled in.
   */
  uint32_t struct_size;
  /**
   * One of MMN_EVENT_...
   */
  uint32_t kind;
  /**
   * The leader's term.
   */
  uint64_t term;
  /**
   * How many SetLeader calls the leader's term builds on.
   */
  uint64_t epoch;
  /**
   * Names a request to join.
   */
  uint64_t request;
  /**
   * How many, of what `kind` says.
   */
  uint64_t count;
  /**
   * A peer id, or "". Never NULL.
   */
  const char *peer;
  /**
   * Another peer id, or an address, or "". Never NULL.
   */
  const char *other;
  /**
   * `length` bytes. Never NULL.
   */
  const uint8_t *data;
  /**
   * How many bytes `data` has.
   */
  int32_t length;
  /**
   * One of the numbers that `kind` says.
   */
  int32_t reason;
  /**
   * MMN_OK, an error, or an application's own number.
   */
  int32_t code;
  /**
   * The sender's message type.
   */
  uint16_t msg_type;
  /**
   * The sender's flags.
   */
  uint8_t flags;
  /**
   * 1 or 0.
   */
  uint8_t success;
} NetworkEvent;

/**
 * Takes events. `user_data` is what was registered with it. Threads, order and what may be called inside are the
 * same as for the other callbacks.
 */
typedef void (*EventCallback)(void *user_data, const struct NetworkEvent *event);

/**
 * Releases what was registered with a callback.
 */
typedef void (*DropCallback)(void *user_data);

/**
 * Figures of a peer, from GetPeerStats. Counts of bytes, packets and messages begin with 0 when the peer joins
 * and go on when a lost link comes back.
 *
 * Only ever appended to: the caller sets `struct_size` to its own sizeof(PeerStats), and the library writes no
 * more than that many bytes.
 */
typedef struct PeerStats {
  /**
   * Set by the caller: sizeof(PeerStats) as it was compiled, at least 8. GetPeerStats leaves it alone.
   */
  uint32_t struct_size;
  /**
   * Smoothed round-trip time in microseconds (RFC 6298, of heartbeats). 0 before the first measurement.
   */
  uint32_t rtt_us;
  /**
   * Mean deviation of the round-trip time in microseconds (RTTVAR of RFC 6298, of the same heartbeats). 0 before
   * the first measurement.
   */
  uint32_t jitter_us;
  /**
   * Packets to the peer that count as lost, in parts per million of those sent. Lost packets are sent again:
   * messages do not get lost by them.
   */
  uint32_t loss_ppm;
  /**
   * Bytes sent to the peer in UDP payloads: messages, heartbeats, acknowledgements.
   */
  uint64_t bytes_sent;
  /**
   * Bytes received from the peer in UDP payloads.
   */
  uint64_t bytes_received;
  /**
   * Messages given to the network for the peer, each counted once.
   */
  uint64_t messages_sent;
  /**
   * Messages of the peer that were taken here.
   */
  uint64_t messages_received;
  /**
   * Messages in the queue to the peer: those that it has not taken yet.
   */
  uint32_t queue_messages;
  /**
   * How long the oldest of them waits, in milliseconds; 0 when the queue is empty.
   */
  uint32_t queue_age_ms;
  /**
   * Bytes of their payloads.
   */
  uint64_t queue_bytes;
  /**
   * Congestion window in bytes: how much may be on its way to the peer at a time. 0 while the link is lost.
   */
  uint64_t congestion_window;
  /**
   * Largest UDP payload of the path in bytes, as measured. 0 while the link is lost.
   */
  uint32_t path_mtu;
  /**
   * How often the link was lost and came back.
   */
  uint32_t reconnects;
} PeerStats;

/**
 * Takes a record of the log: `level` is MMN_LOG_ERROR to MMN_LOG_TRACE, `message` one line without its end, valid
 * during the call.
 *
 * It is called on whatever thread the record is made, threads of the library and of the host alike, on several at
 * a time; it should be quick, because what it interrupts waits. Inside it, queries (Is..., Get...) and the
 * functions of the log may be called; all others are refused with MMN_WOULD_DEADLOCK. Records that are made
 * inside it are not passed to it. It must not throw.
 */
typedef void (*LogCallback)(void *user_data, int32_t level, const char *message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The ABI version of the loaded library. A host can use it where this is at least the MMN_ABI_VERSION that
 * the host was compiled with. Works before initialization.
 */
uint32_t GetAbiVersion(void);

/**
 * The version of the loaded library, as "major.minor.patch". Works before initialization.
 *
 * The string is constant: it is valid for as long as the library is loaded, and leaves the strings of other
 * calls valid.
 */
const char *GetLibraryVersion(void);

/**
 * Fills `options` with the defaults. The caller has set struct_size; bytes beyond it, and beyond what this
 * version of the library knows, are left alone, and struct_size stays.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (NULL, or a struct_size that is none).
 *
 * # Safety
 * `options` is NULL, or points to struct_size bytes that can be written, the first four being struct_size.
 */
int32_t GetDefaultNetworkOptions(struct NetworkOptions *options);

/**
 * Opens the process's room as InitializeNetwork does, with the given options.
 *
 * `options` is read during the call only. NULL, a struct_size that is none, or the first field that breaks its
 * rule gives MMN_INVALID_ARGUMENT, and GetLastErrorMessage names the field.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_NOT_SUPPORTED (a strategy that this build
 * does not have), MMN_CONNECTION_FAILED (the address or the port cannot be bound: GetLastErrorMessage names
 * both) or MMN_INTERNAL_ERROR.
 *
 * # Safety
 * Both strings are NULL or end with a NUL; `options` is NULL, or points to struct_size bytes that can be read, the
 * first four being struct_size; and what its pointers lead to can be read.
 */
int32_t InitializeNetworkWithOptions(const char *peer_id,
                                     const char *session_id,
                                     const struct NetworkOptions *options);

/**
 * Sets the callback for messages; NULL removes it. When the call returns, the old callback is not running
 * (unless this is called from inside it) and never runs again; a running one is waited for.
 *
 * Messages that arrive before the first registration wait for it, for 5 seconds from the initialization on, and so do
 * those that this host sends to itself. After that, messages that find no callback are discarded.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterReceiveCallback(ReceiveCallback callback);

/**
 * Sets the callback for changes of the leader; NULL removes it. The old one as with RegisterReceiveCallback.
 * The new one is first told the present leader, where one is known.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterLeaderChangedCallback(LeaderChangedCallback callback);

/**
 * Sets the callback for whether this node leads; NULL removes it. The old one as with RegisterReceiveCallback.
 * The new one is first told 1, where this node leads at present. From there on it is told each loss and each gain
 * once, in turn, and after the LeaderChanged callback of the same change. A leadership that ended before the
 * application could be told of it is not told at all.
 *
 * Where the callback replaces another one directly, and this node lost its leadership between the two, it is first told
 * that: 0.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterLeadershipCallback(LeadershipCallback callback);

/**
 * Sets the callback for connections and losses; NULL removes it. The old one as with RegisterReceiveCallback.
 * The new one is first told of every connected peer.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterPeerStatusCallback(PeerStatusCallback callback);

/**
 * Sets the callback for the results of ConnectToPeer; NULL removes it. The old one as with
 * RegisterReceiveCallback. Results that find no callback are discarded.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterConnectionResultCallback(ConnectionResultCallback callback);

/**
 * Sets the callback for what becomes of lost peers; NULL removes it. The old one as with
 * RegisterReceiveCallback.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterReconnectCallback(ReconnectCallback callback);

/**
 * Sets the one handler for everything that happens, messages included; NULL removes it. At any time: one that
 * is registered before InitializeNetwork hears the room from its first event on. Where a callback of one kind
 * is registered, too, that one is called first.
 *
 * A handler that is registered in an open room is first told the present: the leader where one is known, then
 * for every peer MMN_EVENT_JOINED, and MMN_EVENT_RECONNECTING where its link is lost at the time. It counts as a
 * Receive callback: messages are not held or discarded while it is registered.
 *
 * When the call returns, the old handler is not running (unless this is called from inside it) and never runs
 * again; a running one is waited for. ShutdownNetwork removes the handler, too: register it again before the
 * next InitializeNetwork. A handler that is registered while ShutdownNetwork runs is for the next room.
 *
 * `drop_fn` (NULL for none) is called exactly once with `user_data`, after the handler's last call has ended:
 * when it is replaced or removed, or by ShutdownNetwork. That is on the thread that did so, or, when it was done
 * inside the handler, on the handler's thread. Inside `drop_fn` the rules of a callback hold. With a NULL
 * `callback`, and when this call fails, `user_data` and `drop_fn` are not used.
 *
 * Returns MMN_OK, or MMN_WOULD_DEADLOCK inside a log callback.
 *
 * # Safety
 * `callback` and `drop_fn` are functions of these types, and may be called with `user_data` on any thread.
 */
int32_t RegisterEventHandler(EventCallback callback,
                             void *user_data,
                             DropCallback drop_fn);

/**
 * In poll mode, runs the callbacks of up to `max` events and messages that wait, in order, on the calling thread.
 * Returns at once; never waits for the network. Call it once per frame, on the thread that is to run the
 * callbacks.
 *
 * Whatever nobody is registered for is passed over and does not count. An event that is told to several callbacks
 * counts once.
 *
 * Returns how many there were, 0 when nothing waits; or MMN_INVALID_ARGUMENT (`max` is not above 0, or the room
 * is not in poll mode), MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK (inside a callback, or while another thread
 * is in this function); nothing has run then.
 */
int32_t PollEvents(int32_t max);

/**
 * Opens the process's room, with default settings: those of NetworkConfigFFI, but with room for 4096 messages
 * in each queue. Does not wait for other members.
 *
 * `peer_id` names this member: 1 to 64 bytes of UTF-8, no control characters, no bidirectional overrides (U+202A to
 * U+202E, U+2066 to U+2069), no blank at either end. `session_id` names the room: 1 to 128 bytes of the same kind.
 * Members of one room give the same.
 *
 * A call during a ShutdownNetwork on another thread waits for it. Inside a callback it is refused with
 * MMN_ALREADY_INITIALIZED.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_CONNECTION_FAILED (no UDP socket) or
 * MMN_INTERNAL_ERROR.
 *
 * # Safety
 * Both strings are NULL or end with a NUL.
 */
int32_t InitializeNetwork(const char *peer_id,
                          const char *session_id);

/**
 * Opens the process's room as InitializeNetwork does, with the given settings.
 *
 * `config` is read during the call only. NULL, or the first field that breaks its rule, gives
 * MMN_INVALID_ARGUMENT, and GetLastErrorMessage names the field.
 *
 * # Safety
 * Both strings are NULL or end with a NUL; `config` is NULL or points to 44 bytes that can be read.
 */
int32_t InitializeNetworkWithConfig(const char *peer_id,
                                    const char *session_id,
                                    const struct NetworkConfigFFI *config);

/**
 * Leaves the room and closes it: messages that were accepted are still sent for up to 1 second, the other
 * members are told, every thread and socket is released. Takes at most 2 seconds, and as long as a callback
 * that is running: that callback must not wait for the thread that calls this. A host name that the system is
 * just resolving for ConnectToPeer is waited for, too: the system gives no way to stop that.
 *
 * When it returns, no callback of the room runs or will run, all of them are unregistered, the event handler's
 * `drop_fn` has run, and, where no log callback is registered, the library may be unloaded.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a callback, those that PollEvents runs
 * included (nothing changes).
 */
int32_t ShutdownNetwork(void);

/**
 * Whether a room is open: 1 or 0.
 */
uint8_t IsNetworkInitialized(void);

/**
 * Whether this member is announced in the local network: 1 or 0. It becomes 1 as soon as the announcement went out
 * on a network interface, which takes milliseconds after the room is opened; it is 0 where discovery is off (mdns_port
 * 0, or discovery_mode MMN_DISCOVERY_OFF), no interface can be used, or no room is open.
 */
uint8_t IsMdnsActive(void);

/**
 * The code of the calling thread's last failure: MMN_OK where no call has failed on this thread.
 * A call that succeeds leaves it alone.
 */
int32_t GetLastErrorCode(void);

/**
 * The sentence of the calling thread's last failure: it names the argument, its value, the limit and what to
 * do. "" where no call has failed on this thread. Never NULL.
 *
 * In a thread's last destructors (of pthread keys, say) it may be the description of the code instead of the sentence.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *GetLastErrorMessage(void);

/**
 * What a code means, in one sentence; for a number that is no code, a sentence that says so. Works before
 * initialization.
 *
 * The string is constant: it is valid for as long as the library is loaded, and leaves the strings of other
 * calls valid.
 */
const char *DescribeError(int32_t code);

/**
 * Connects to the member at `addr`: "ip:port", "[ipv6]:port" or "name:port", without blanks.
 *
 * After MMN_OK exactly one ConnectionResultCallback follows, with `addr` as given here, within
 * handshake_timeout_ms. An address where five dials within a minute ended as with somebody who guesses the session id
 * or the secret is not dialled for a while: MMN_CONNECTION_FAILED, and the data of MMN_EVENT_CONNECTION_RESULT says for
 * how many seconds.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (malformed, or this node's own address), MMN_NOT_INITIALIZED or
 * MMN_MAX_CONNECTIONS_REACHED (too many attempts without a result).
 *
 * # Safety
 * `addr` is NULL or ends with a NUL.
 */
int32_t ConnectToPeer(const char *addr);

/**
 * Ends the connection to a peer, politely. Neither side dials the other again until one of them calls
 * ConnectToPeer. A ConnectToPeer of this node that began before and reaches that peer ends with MMN_REJECTED. An id
 * that is not known is MMN_OK. In a room with a fixed host the room is over for the guest of the two.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (no id, or this node's own) or MMN_NOT_INITIALIZED.
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t DisconnectPeer(const char *peer_id);

/**
 * An address that other members can give to ConnectToPeer: the bound port at this machine's best address.
 * A loopback address only where the machine has no other. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *GetLocalAddr(void);

/**
 * This node's peer id. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *GetLocalPeerId(void);

/**
 * The room's session id. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *GetSessionId(void);

/**
 * How many peers are connected, without this node. -1 when no room is open.
 */
int32_t GetPeerCount(void);

/**
 * The ids of the connected peers, without this node: sorted as bytes, joined by '\n'. "" when there are none,
 * NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *GetPeerList(void);

/**
 * Smoothed round-trip time to a peer, in milliseconds, rounded up. -1 when it is not measured yet, the peer is
 * not known, `peer_id` is not an id, or no room is open; the last two are told by GetLastErrorCode.
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t GetPeerRTT(const char *peer_id);

/**
 * How a peer is linked to this node: MMN_PEER_CONNECTED, MMN_PEER_RECONNECTING or MMN_PEER_HANDSHAKING.
 * -1 when the peer is not known, `peer_id` is not an id, or no room is open; the last two are told by
 * GetLastErrorCode.
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t GetPeerStatus(const char *peer_id);

/**
 * Whether lost peers are dialled again (not 0, the default) or have left at once (0). With 0, peers that are
 * reconnecting have left: ReconnectCallback 2.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t SetAutoReconnect(uint8_t enabled);

/**
 * Whether lost peers are dialled again: 1 or 0. 0 when no room is open.
 */
uint8_t IsAutoReconnectEnabled(void);

/**
 * Removes a peer from the room. It is told `code` and the `length` bytes at `data` (at most 3072; both are the
 * application's own), every member drops it (left, MMN_LEFT_KICKED), and neither its id nor its key
 * gets in again for as long as the room lives, whoever leads. Only the leader may.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (neither
 * connected nor reconnecting) or MMN_MAX_CONNECTIONS_REACHED (512 are removed already). Nothing has changed then.
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL; `length` bytes can be read at `data`, which may be NULL when `length` is 0.
 */
int32_t KickPeer(const char *peer_id,
                 int32_t code,
                 const uint8_t *data,
                 int32_t length);

/**
 * Limits the room: no member gets more than `max_peers` other members (as GetPeerCount counts them); 0 is no
 * limit beside each member's own max_connections. Peers that are reconnecting keep their places. Nobody is removed.
 * Holds under later leaders too, in place of the option max_peers. Only the leader may.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_LEADER.
 */
int32_t SetMaxPeers(uint32_t max_peers);

/**
 * What this node says from now on when it enters a room, for the leader's application to decide on: `length`
 * bytes at `data`, at most 8192; 0 for nothing.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED.
 *
 * # Safety
 * `length` bytes can be read at `data`, which may be NULL when `length` is 0.
 */
int32_t SetJoinPayload(const uint8_t *data, int32_t length);

/**
 * Whether this application decides, whenever this node leads, who may enter (not 0), or everybody who knows the
 * room may (0, the default). Then every stranger is an event MMN_EVENT_JOIN_REQUEST, to be answered by AcceptJoin
 * or RejectJoin within handshake_timeout_ms; no answer keeps it out (MMN_TIMEOUT there). Members
 * that return are not asked about. Set it on every member that may come to lead.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t EnableJoinRequests(uint8_t enabled);

/**
 * Lets in whom the event MMN_EVENT_JOIN_REQUEST with this number named.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (it was answered, its time is over, or another
 * member leads now).
 */
int32_t AcceptJoin(uint64_t request);

/**
 * Keeps out whom the event MMN_EVENT_JOIN_REQUEST with this number named. Its ConnectToPeer ends with
 * MMN_REJECTED, and its event with `code` (as reason) and the `length` bytes at `data` (at most 3072), both the
 * application's own.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (as AcceptJoin).
 *
 * # Safety
 * `length` bytes can be read at `data`, which may be NULL when `length` is 0.
 */
int32_t RejectJoin(uint64_t request,
                   int32_t code,
                   const uint8_t *data,
                   int32_t length);

/**
 * Makes a connected peer, or this node, the leader. The room follows it until it is lost or another is set.
 * This node's own queries show the new leader when the call returns; the others follow within a round trip.
 * MMN_EVENT_SET_LEADER_RESULT reports the outcome.
 *
 * With MMN_QUORUM_STATIC votes alone make a leader: this call is TransferLeadership by the present leader, which a member
 * that does not lead asks for it. The present leader leads until the peer is elected. The outcome is 0, MMN_REJECTED (the
 * leader refused: it leads no longer, or the peer is not connected to it or may not lead), MMN_TIMEOUT (the peer was not
 * elected within the longest election timeout) or MMN_SUPERSEDED (a later call of this node took its place).
 *
 * The newest call wins. So where the quorum is dynamic, an isolated member that names itself leads the whole room when the
 * network heals. To replace a leader that is lost, call EnableAutoLeaderElection(1) instead.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER (the room's rules leave this to
 * the leader; or with MMN_QUORUM_STATIC this node hears no leader that it could ask), MMN_PEER_NOT_FOUND (neither this
 * node nor connected), MMN_REJECTED (the peer may not lead) or MMN_NOT_SUPPORTED (with MMN_STRATEGY_GOSSIP).
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t SetLeader(const char *peer_id);

/**
 * Lets this node campaign for leadership (not 0) or not (0). It votes for others either way. With MMN_STRATEGY_GOSSIP: lets it
 * propose itself or not. A leader leads on.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (by the room's election strategy).
 */
int32_t EnableAutoLeaderElection(uint8_t enabled);

/**
 * Lets this node lead (not 0, the default) or not (0). One that may not lead is an observer: it has no vote, counts
 * for no majority, and SetLeader to it is refused. If it leads, another member takes over at once; with MMN_STRATEGY_GOSSIP
 * another is elected as after any loss. With MMN_QUORUM_STATIC a voter of quorum_roster that may not lead counts among
 * the voters still, and a member that is not on the roster never leads.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_REJECTED (in a room with a fixed host it is fixed who leads).
 */
int32_t SetLeaderEligible(uint8_t eligible);

/**
 * Hands the leadership over to a connected peer: it is told to be elected at once, and this node leads until it is.
 * The next leader is elected and not set: where SetLeader named the present one, that has ended then. It may be asked of a
 * peer that does not campaign by itself (EnableAutoLeaderElection). Only the leader may.
 *
 * MMN_OK means that the peer was asked. The outcome is a change of the leader with the reason MMN_LEADER_TRANSFERRED;
 * where the peer is lost, leaves or is not elected within the longest election timeout, this node leads on as before.
 * This node itself may be told of no leader (MMN_LEADER_RESIGNED) for the round trip that the election takes. A second call with another peer takes the place of the first. A call with this node itself
 * cancels a pending transfer; a peer that was asked already may still be elected.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (neither this node
 * nor connected), MMN_REJECTED (the peer may not lead, or the room has a fixed host) or MMN_NOT_SUPPORTED (with
 * MMN_STRATEGY_GOSSIP). Nothing has changed then.
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t TransferLeadership(const char *peer_id);

/**
 * Hands the leadership over as TransferLeadership does, to the peer that elections prefer: the one with the highest
 * priority, of these the one with the largest id. Only the leader may.
 *
 * With MMN_STRATEGY_GOSSIP this node stops leading at once (MMN_LEADER_RESIGNED), and stays away from it until another member
 * leads, or for six times GetLeaderAliveThreshold. The others elect as after any loss; where there is nobody else, this
 * node leads again when that time is over.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (no connected peer may lead; not with
 * MMN_STRATEGY_GOSSIP) or MMN_REJECTED (the room has a fixed host). Nothing has changed then.
 */
int32_t YieldLeadership(void);

/**
 * How much elections prefer this node from now on: the higher priority campaigns first; of equal ones the larger id.
 * 0 is the default, any number is allowed. It decides who follows a leader that is lost, and takes no living leader's
 * place.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (with MMN_STRATEGY_GOSSIP).
 */
int32_t SetElectionPriority(int32_t priority);

/**
 * The term of the newest claim to lead that this node knows: that of the leader, where there is one. It grows with
 * every election and every SetLeader, though one SetLeader may begin it anew: compare the epoch first. Not negative,
 * always 0 with MMN_STRATEGY_GOSSIP; -1 when no room is open.
 */
int64_t GetLeaderTerm(void);

/**
 * How many SetLeader calls the newest claim to lead builds on. It never falls. Not negative, always 0 with
 * MMN_STRATEGY_GOSSIP and with MMN_QUORUM_STATIC; -1 when no room is open.
 */
int64_t GetLeaderEpoch(void);

/**
 * How this room elects its leader: MMN_STRATEGY_RAFT or MMN_STRATEGY_GOSSIP. -1 when no room is open.
 */
int32_t GetElectionStrategy(void);

/**
 * The leader's peer id. "" when there is none; never a peer that is known to be gone. NULL when no room is
 * open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *GetCurrentLeader(void);

/**
 * Whether this node is the leader: 1 or 0.
 */
uint8_t IsLeader(void);

/**
 * Sets how long a member of a room with MMN_STRATEGY_GOSSIP waits at most, after it opened the room, for the number of
 * members to stay the same, in milliseconds [15000]. Above 0. Then it takes part in elections; a leader that it
 * hears of ends the wait.
 *
 * This setting and the three below may be changed before a room is open and while one is. They belong to the process: they
 * are in force from the next window on, and in all rooms that are opened later. With MMN_STRATEGY_RAFT they are kept and change
 * nothing. All members of a room should have the same.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
 */
int32_t SetStartupGracePeriod(uint32_t milliseconds);

/**
 * What SetStartupGracePeriod set, or 15000. Since version 4 of the ABI.
 */
uint32_t GetStartupGracePeriod(void);

/**
 * Sets how often the number of members is looked at during SetStartupGracePeriod, in milliseconds [1000]. Above 0: twice the
 * same number ends it.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
 */
int32_t SetMembershipSampleInterval(uint32_t milliseconds);

/**
 * What SetMembershipSampleInterval set, or 1000. Since version 4 of the ABI.
 */
uint32_t GetMembershipSampleInterval(void);

/**
 * Sets how long a member waits for a word of the leader before it proposes itself, in milliseconds [10000]. Above 0. The leader
 * says twice in that time that it leads. Another follows one that is lost after half to twice that time, and
 * SetLeaderElectionDuration more.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
 */
int32_t SetLeaderAliveThreshold(uint32_t milliseconds);

/**
 * What SetLeaderAliveThreshold set, or 10000. Since version 4 of the ABI.
 */
uint32_t GetLeaderAliveThreshold(void);

/**
 * Sets how long a member that proposed itself collects the proposals of others, in milliseconds [5000]. Above 0. It leads then
 * unless a lower peer id proposed itself too, or leads. Where this is shorter than SetLeaderAliveThreshold, others may propose
 * themselves too late, and the leader may be another than the lowest; see MMN_GOSSIP_STRICT_LOWEST.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
 */
int32_t SetLeaderElectionDuration(uint32_t milliseconds);

/**
 * What SetLeaderElectionDuration set, or 5000. Since version 4 of the ABI.
 */
uint32_t GetLeaderElectionDuration(void);

/**
 * How long proposals and declarations of others are remembered, so that an older one is not heard again: ten times
 * GetLeaderAliveThreshold, in milliseconds; UINT32_MAX is that much or more. Since version 4 of the ABI.
 */
uint32_t GetMsgExpirationTimeout(void);

/**
 * How often a leader says that it leads: twice in GetLeaderAliveThreshold, in milliseconds, rounded down. Since version 4 of the
 * ABI.
 */
uint32_t GetLeadershipDeclarationInterval(void);

/**
 * Sends a message to every connected peer, or to none. Without peers it is MMN_OK. In centralized mode it goes
 * to the leader, which sends it on: see SetCentralizedMode.
 *
 * MMN_OK means that the message is queued: it arrives once, also over a lost link that comes back, unless the
 * receiver leaves or is given up. Any other result means that nothing was queued.
 *
 * `data` is read during the call only, and may be NULL when `length` is 0. `msg_type` is the application's,
 * MMN_MIN_MESSAGE_TYPE or more. `flags` is the application's but for bit 0, which arrives clear.
 * Messages of one sender arrive in the order of the calls, each once. Never waits for the network.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE or MMN_SEND_QUEUE_FULL
 * (the queue to one peer or more is full; nothing was queued; GetLastErrorMessage names the peers); in
 * centralized mode also MMN_NOT_LEADER (no leader is known) and MMN_PEER_NOT_FOUND (the leader is not
 * connected to this node).
 *
 * # Safety
 * `length` bytes can be read from `data` on.
 */
int32_t BroadcastMessage(const uint8_t *data,
                         int32_t length,
                         uint16_t msg_type,
                         uint8_t flags);

/**
 * Sends a message to one peer; to this node's own id, to the own ReceiveCallback. Arguments and promise as
 * BroadcastMessage.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_PEER_NOT_FOUND or
 * MMN_SEND_QUEUE_FULL.
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL; `length` bytes can be read from `data` on.
 */
int32_t SendToPeer(const char *peer_id,
                   const uint8_t *data,
                   int32_t length,
                   uint16_t msg_type,
                   uint8_t flags);

/**
 * Sends a message to the leader; on the leader itself, to the own ReceiveCallback. Arguments as
 * BroadcastMessage.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (no leader
 * is known), MMN_PEER_NOT_FOUND (the leader is not connected to this node) or MMN_SEND_QUEUE_FULL.
 *
 * # Safety
 * `length` bytes can be read from `data` on.
 */
int32_t SendToLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);

/**
 * Sends a message as the leader to every connected peer, or to none. Receivers learn of this leadership before
 * the message; those that know a newer leader drop it. Arguments as BroadcastMessage.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node
 * is not the leader) or MMN_SEND_QUEUE_FULL.
 *
 * # Safety
 * `length` bytes can be read from `data` on.
 */
int32_t SendFromLeader(const uint8_t *data,
                       int32_t length,
                       uint16_t msg_type,
                       uint8_t flags);

/**
 * Forwards a message in the name of `from`, this node or a connected peer: to the peer `to` (to this node's own id,
 * to the own ReceiveCallback), or to every connected peer but `from` where `to` is NULL: all of them or none.
 * Only the leader may: receivers drop what anybody else sends in another's name. Other arguments as
 * BroadcastMessage.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also where `to` is `from`), MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE,
 * MMN_NOT_LEADER (this node is not the leader), MMN_PEER_NOT_FOUND (`from` or `to` is not connected) or
 * MMN_SEND_QUEUE_FULL.
 *
 * # Safety
 * `from` is NULL or ends with a NUL, and so does `to`; `length` bytes can be read from `data` on.
 */
int32_t ForwardMessage(const char *from,
                       const char *to,
                       const uint8_t *data,
                       int32_t length,
                       uint16_t msg_type,
                       uint8_t flags);

/**
 * Lets this node's BroadcastMessage go through the leader (not 0) or directly to all (0, as at the start). The leader
 * hands each to its own ReceiveCallback and, where it has auto-forward on, sends it on to all but its origin;
 * receivers see the origin as the sender. All members of a centralized room turn it on.
 *
 * A broadcast is kept until the leader has queued it for everybody; if that leader is lost, it goes through the
 * next one. While the queue to one member is full, the leader takes nothing from the origins whose broadcasts
 * would have to go there.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t SetCentralizedMode(uint8_t enabled);

/**
 * Whether this node's broadcasts go through the leader: 1 or 0.
 */
uint8_t IsCentralizedMode(void);

/**
 * Lets this node, while it leads, send others' broadcasts on to all members but their origin (not 0), or hand
 * them to its own ReceiveCallback only (0), so that its host can send on what it approves of with
 * ForwardMessage. At the start it is centralized_auto_forward of the configuration.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t SetCentralizedAutoForward(uint8_t enabled);

/**
 * Whether this node, while it leads, sends others' broadcasts on: 1 or 0.
 */
uint8_t IsCentralizedAutoForward(void);

/**
 * Sends payloads of more than `bytes` bytes compressed (LZ4) from now on, where that makes them shorter; 0 tries all.
 * At the start it is compression_threshold of the configuration. Costs the network thread time; receivers
 * take either. max_message_size holds for the payload as it is given.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t SetCompressionThreshold(uint32_t bytes);

/**
 * Writes figures of the link and the queue to a peer to `stats`, whose `struct_size` the caller has set. At
 * most min(struct_size, what this library knows) bytes are written. Never waits for the network.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (`peer_id` is not an id, `stats` is NULL, `struct_size` is below 8),
 * MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (neither connected nor reconnecting).
 *
 * # Safety
 * `peer_id` is NULL or ends with a NUL; `stats` is NULL or points to a `uint32_t` that can be read and to so many
 * bytes as it says that can be written.
 */
int32_t GetPeerStats(const char *peer_id,
                     struct PeerStats *stats);

/**
 * Switches the library's log on standard error on (not 0) or off (0). It is off at first. At any time, also
 * before initialization; it holds for the process, across initializations.
 *
 * Returns MMN_OK.
 */
int32_t EnableLogging(uint8_t enabled);

/**
 * Sets how much EnableLogging writes on standard error: MMN_LOG_OFF to MMN_LOG_TRACE, MMN_LOG_INFO at first. At any
 * time, also before initialization. The callback of RegisterLogCallback has its own level.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT.
 */
int32_t SetLogLevel(int32_t level);

/**
 * Sets the callback for the library's log; NULL removes it. It is passed what `level` (MMN_LOG_OFF to
 * MMN_LOG_TRACE) asks for, whether the log on standard error is on or not. At any time, also before
 * initialization; ShutdownNetwork leaves it.
 *
 * When the call returns, the old callback runs on no thread and never runs again; running ones are waited for,
 * unless this is called inside one. `drop_fn` (NULL for none) is called exactly once with `user_data`, after the
 * callback's last call has ended: when it is replaced or removed. With a NULL `callback`, and when this call fails,
 * `user_data` and `drop_fn` are not used.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (the level is none; nothing has changed).
 *
 * # Safety
 * `callback` and `drop_fn` are functions of these types, and may be called with `user_data` on any thread, the
 * first on several at a time.
 */
int32_t RegisterLogCallback(int32_t level,
                            LogCallback callback,
                            void *user_data,
                            DropCallback drop_fn);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/**
 * Every function of this header, as X(result, name, parameters), for hosts that load the library at run time:
 *
 *     #define MEMBER(result, name, parameters) result (*name) parameters;
 *     static struct { MMN_FUNCTIONS(MEMBER) } net;
 *     #define LOAD(result, name, parameters) *(void **)&net.name = dlsym(library, #name);
 *     MMN_FUNCTIONS(LOAD)
 */
#define MMN_FUNCTIONS(X) \
  X(uint32_t, GetAbiVersion, (void)) \
  X(const char *, GetLibraryVersion, (void)) \
  X(int32_t, GetDefaultNetworkOptions, (struct NetworkOptions *options)) \
  X(int32_t, InitializeNetworkWithOptions, (const char *peer_id, const char *session_id, const struct NetworkOptions *options)) \
  X(int32_t, RegisterReceiveCallback, (ReceiveCallback callback)) \
  X(int32_t, RegisterLeaderChangedCallback, (LeaderChangedCallback callback)) \
  X(int32_t, RegisterLeadershipCallback, (LeadershipCallback callback)) \
  X(int32_t, RegisterPeerStatusCallback, (PeerStatusCallback callback)) \
  X(int32_t, RegisterConnectionResultCallback, (ConnectionResultCallback callback)) \
  X(int32_t, RegisterReconnectCallback, (ReconnectCallback callback)) \
  X(int32_t, RegisterEventHandler, (EventCallback callback, void *user_data, DropCallback drop_fn)) \
  X(int32_t, PollEvents, (int32_t max)) \
  X(int32_t, InitializeNetwork, (const char *peer_id, const char *session_id)) \
  X(int32_t, InitializeNetworkWithConfig, (const char *peer_id, const char *session_id, const struct NetworkConfigFFI *config)) \
  X(int32_t, ShutdownNetwork, (void)) \
  X(uint8_t, IsNetworkInitialized, (void)) \
  X(uint8_t, IsMdnsActive, (void)) \
  X(int32_t, GetLastErrorCode, (void)) \
  X(const char *, GetLastErrorMessage, (void)) \
  X(const char *, DescribeError, (int32_t code)) \
  X(int32_t, ConnectToPeer, (const char *addr)) \
  X(int32_t, DisconnectPeer, (const char *peer_id)) \
  X(const char *, GetLocalAddr, (void)) \
  X(const char *, GetLocalPeerId, (void)) \
  X(const char *, GetSessionId, (void)) \
  X(int32_t, GetPeerCount, (void)) \
  X(const char *, GetPeerList, (void)) \
  X(int32_t, GetPeerRTT, (const char *peer_id)) \
  X(int32_t, GetPeerStatus, (const char *peer_id)) \
  X(int32_t, SetAutoReconnect, (uint8_t enabled)) \
  X(uint8_t, IsAutoReconnectEnabled, (void)) \
  X(int32_t, KickPeer, (const char *peer_id, int32_t code, const uint8_t *data, int32_t length)) \
  X(int32_t, SetMaxPeers, (uint32_t max_peers)) \
  X(int32_t, SetJoinPayload, (const uint8_t *data, int32_t length)) \
  X(int32_t, EnableJoinRequests, (uint8_t enabled)) \
  X(int32_t, AcceptJoin, (uint64_t request)) \
  X(int32_t, RejectJoin, (uint64_t request, int32_t code, const uint8_t *data, int32_t length)) \
  X(int32_t, SetLeader, (const char *peer_id)) \
  X(int32_t, EnableAutoLeaderElection, (uint8_t enabled)) \
  X(int32_t, SetLeaderEligible, (uint8_t eligible)) \
  X(int32_t, TransferLeadership, (const char *peer_id)) \
  X(int32_t, YieldLeadership, (void)) \
  X(int32_t, SetElectionPriority, (int32_t priority)) \
  X(int64_t, GetLeaderTerm, (void)) \
  X(int64_t, GetLeaderEpoch, (void)) \
  X(int32_t, GetElectionStrategy, (void)) \
  X(const char *, GetCurrentLeader, (void)) \
  X(uint8_t, IsLeader, (void)) \
  X(int32_t, SetStartupGracePeriod, (uint32_t milliseconds)) \
  X(uint32_t, GetStartupGracePeriod, (void)) \
  X(int32_t, SetMembershipSampleInterval, (uint32_t milliseconds)) \
  X(uint32_t, GetMembershipSampleInterval, (void)) \
  X(int32_t, SetLeaderAliveThreshold, (uint32_t milliseconds)) \
  X(uint32_t, GetLeaderAliveThreshold, (void)) \
  X(int32_t, SetLeaderElectionDuration, (uint32_t milliseconds)) \
  X(uint32_t, GetLeaderElectionDuration, (void)) \
  X(uint32_t, GetMsgExpirationTimeout, (void)) \
  X(uint32_t, GetLeadershipDeclarationInterval, (void)) \
  X(int32_t, BroadcastMessage, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendToPeer, (const char *peer_id, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendToLeader, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendFromLeader, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, ForwardMessage, (const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SetCentralizedMode, (uint8_t enabled)) \
  X(uint8_t, IsCentralizedMode, (void)) \
  X(int32_t, SetCentralizedAutoForward, (uint8_t enabled)) \
  X(uint8_t, IsCentralizedAutoForward, (void)) \
  X(int32_t, SetCompressionThreshold, (uint32_t bytes)) \
  X(int32_t, GetPeerStats, (const char *peer_id, struct PeerStats *stats)) \
  X(int32_t, EnableLogging, (uint8_t enabled)) \
  X(int32_t, SetLogLevel, (int32_t level)) \
  X(int32_t, RegisterLogCallback, (int32_t level, LogCallback callback, void *user_data, DropCallback drop_fn))

#endif  /* META_MYSTIA_NETWORK_H */
