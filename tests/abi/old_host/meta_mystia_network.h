/*
 * meta_mystia_network: one room for the players of a game.
 *
 * Generated from the Rust source. Do not edit; `make header` writes it.
 *
 * (As it was at ABI version 5. Before version 1.0 of the library the functions without a room that are not classic were
 * removed: they, their types and their numbers are no longer here. The rest is as it was.)
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
#define MMN_ABI_VERSION 5

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
 * manual_override_recovery: a leader that was set by hand and is lost is not replaced until SetLeader or
 * EnableAutoLeaderElection is called. With MMN_AUTHORITY_LEADER_ONLY it is replaced by an election all the same.
 */
#define MMN_RECOVERY_HOLD 0

/**
 * manual_override_recovery: a leader that was set by hand and is lost is replaced by an election.
 */
#define MMN_RECOVERY_AUTO_ELECT 1

/**
 * strategy: the leader is elected by votes of the connected members.
 */
#define MMN_STRATEGY_RAFT 0

/**
 * strategy: the lowest peer id that finds no leader leads, in every part of a room that is cut.
 */
#define MMN_STRATEGY_GOSSIP 1

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

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

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
 * Makes a connected peer, or this node, the leader. The room follows it until it is lost or another is set.
 * This node's own queries show the new leader when the call returns; the others follow within a round trip.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER (the room's rules leave this to
 * the leader), MMN_PEER_NOT_FOUND (neither this node nor connected), MMN_REJECTED (the peer may not lead) or
 * MMN_NOT_SUPPORTED (with MMN_STRATEGY_GOSSIP).
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
 * Switches the library's log on standard error on (not 0) or off (0). It is off at first. At any time, also
 * before initialization; it holds for the process, across initializations.
 *
 * Returns MMN_OK.
 */
int32_t EnableLogging(uint8_t enabled);

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
  X(int32_t, RegisterReceiveCallback, (ReceiveCallback callback)) \
  X(int32_t, RegisterLeaderChangedCallback, (LeaderChangedCallback callback)) \
  X(int32_t, RegisterPeerStatusCallback, (PeerStatusCallback callback)) \
  X(int32_t, RegisterConnectionResultCallback, (ConnectionResultCallback callback)) \
  X(int32_t, RegisterReconnectCallback, (ReconnectCallback callback)) \
  X(int32_t, InitializeNetwork, (const char *peer_id, const char *session_id)) \
  X(int32_t, InitializeNetworkWithConfig, (const char *peer_id, const char *session_id, const struct NetworkConfigFFI *config)) \
  X(int32_t, ShutdownNetwork, (void)) \
  X(uint8_t, IsNetworkInitialized, (void)) \
  X(uint8_t, IsMdnsActive, (void)) \
  X(int32_t, GetLastErrorCode, (void)) \
  X(const char *, GetLastErrorMessage, (void)) \
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
  X(int32_t, SetLeader, (const char *peer_id)) \
  X(int32_t, EnableAutoLeaderElection, (uint8_t enabled)) \
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
  X(int32_t, EnableLogging, (uint8_t enabled))

#endif  /* META_MYSTIA_NETWORK_H */
