/*
 * meta_mystia_network: one room for the players of a game.
 *
 * Generated from the Rust source. Do not edit; `make header` writes it.
 *
 * Words:
 * - The host is the application that loads the library. It may have several rooms open at a time, each
 *   named by an MmnRoom. It is a member, or node, of each; the other members of a room are its peers.
 *   The fixed host is the member that opened the room with MMN_HOST_MODE_HOST.
 * - The leader is the one member on which the room agrees: by election, by mmn_set_leader, or because
 *   it is the fixed host.
 * - The classic functions, whose names do not begin with mmn_, act on the default room. They stand at
 *   the end of this file. A host that uses none of them needs no default room.
 *
 * For every function:
 * - Strings are NUL-terminated UTF-8. An argument must have its NUL within 64 KiB; NULL or invalid
 *   UTF-8 is MMN_INVALID_ARGUMENT. A returned string belongs to the library and is valid until the
 *   same thread's next call that returns a string, unless its function promises more.
 * - Flags are uint8_t: 0 is false, any other value is true.
 * - A call with the number of a room that is closed, or that never was one, fails with
 *   MMN_NOT_INITIALIZED. No number is used twice in a process.
 * - A call that fails sets the calling thread's last error (mmn_last_error_code,
 *   mmn_last_error_message). A call that succeeds leaves it unchanged. Arguments are checked first:
 *   pointers, lengths, UTF-8 and ids. Then the library checks whether the room is open, and last the
 *   values.
 * - Any function may be called from any thread and inside a callback, except mmn_close, mmn_poll,
 *   mmn_browse_close and mmn_browse_poll, which are refused inside a callback of any room or browser. A log callback may call less; see
 *   MmnLogCallback. No function waits for the network, except mmn_close, for up to 2 seconds.
 * - Replacing a callback, and mmn_close, wait for a callback of the room that is running. That
 *   callback must not wait for the thread that made the call.
 * - A child of fork() has no room: in it the numbers of its parent's rooms name none. Every function
 *   returns what it returns for a room that is not open, no callback or drop_fn runs, and mmn_open
 *   opens rooms of the child's own. The parent is not affected. A child that is forked inside a
 *   callback on a thread of the library ends when the callback returns. docs/threading.md has the
 *   details.
 * - A bug inside the library is MMN_INTERNAL_ERROR from functions that return int32_t, -1 from those
 *   that return int64_t, and NULL or 0 from all others.
 *
 * Licence: MIT OR Apache-2.0.
 */


#ifndef META_MYSTIA_NETWORK_H
#define META_MYSTIA_NETWORK_H

#include <stdint.h>

/**
 * The ABI version of this header. It rises when functions, codes or fields are added; nothing
 * is ever removed or changed. Library 0.2.0 began at 100.
 */
#define MMN_ABI_VERSION 107

/**
 * Success.
 */
#define MMN_OK 0

/**
 * The room is not open, or none is: open one first.
 */
#define MMN_NOT_INITIALIZED (-1)

/**
 * The default room is already open: close it before opening it again.
 */
#define MMN_ALREADY_INITIALIZED (-2)

/**
 * An argument is invalid: the last error's message names it and its limit.
 */
#define MMN_INVALID_ARGUMENT (-3)

/**
 * The connection failed: the address is unreachable, no process listens there, or no socket could
 * be opened.
 */
#define MMN_CONNECTION_FAILED (-4)

/**
 * No connected peer has this id, or no open join request has this number.
 */
#define MMN_PEER_NOT_FOUND (-5)

/**
 * Only the leader may do this, or no leader is known.
 */
#define MMN_NOT_LEADER (-6)

/**
 * A queue is full and nothing was queued: try again later or send less.
 */
#define MMN_SEND_QUEUE_FULL (-7)

/**
 * The message is longer than max_message_size, or something of the room's state is longer than its
 * limit.
 */
#define MMN_MESSAGE_TOO_LARGE (-8)

/**
 * A message could not be encoded or decoded.
 */
#define MMN_SERIALIZATION_ERROR (-9)

/**
 * The peer is in another session: compare the session ids of both ends.
 */
#define MMN_SESSION_MISMATCH (-10)

/**
 * Another member already has this peer id.
 */
#define MMN_DUPLICATE_PEER_ID (-11)

/**
 * The peer speaks another version of the protocol.
 */
#define MMN_VERSION_MISMATCH (-12)

/**
 * No place is free: max_connections at either end, the room's limit or its voters, or too many
 * attempts at a time.
 */
#define MMN_MAX_CONNECTIONS_REACHED (-13)

/**
 * The peer is already connected: the existing connection stays.
 */
#define MMN_ALREADY_CONNECTED (-14)

/**
 * The call would wait for itself: it is not allowed inside a callback, and one thread at a time
 * polls a room.
 */
#define MMN_WOULD_DEADLOCK (-15)

/**
 * This election strategy or this build does not support the function.
 */
#define MMN_NOT_SUPPORTED (-16)

/**
 * The peer has a different room secret or session id.
 */
#define MMN_AUTHENTICATION_FAILED (-17)

/**
 * The request was refused: by the leader, its host, the room's rules, an earlier disconnect, or
 * because the lock is another's.
 */
#define MMN_REJECTED (-18)

/**
 * No answer came in time.
 */
#define MMN_TIMEOUT (-19)

/**
 * The peer has different room rules: the connection result and the log name the rule and both
 * values.
 */
#define MMN_POLICY_MISMATCH (-20)

/**
 * A newer request replaced this one.
 */
#define MMN_SUPERSEDED (-21)

/**
 * Too many recent attempts failed as an attempt with a wrong session id or secret does: try again
 * within a minute.
 */
#define MMN_RATE_LIMITED (-22)

/**
 * The host name does not resolve, or no name server answered: check the name and the network
 * connection, or give an IP address.
 */
#define MMN_NAME_NOT_RESOLVED (-23)

/**
 * The dialled member is also looking for a room: dial the member that created it.
 */
#define MMN_LOOKING_FOR_ROOM (-24)

/**
 * A property has another version than the expected one, or its new owner is not in the room: nothing
 * has changed.
 */
#define MMN_CONFLICT (-25)

/**
 * The room's properties have reached a limit, in number or in bytes, and nothing has changed: remove
 * some first.
 */
#define MMN_STATE_FULL (-26)

/**
 * The library cannot know any more whether the room took the request: look at its state.
 */
#define MMN_OUTCOME_UNKNOWN (-27)

/**
 * A bug in the library: please report it with the log.
 */
#define MMN_INTERNAL_ERROR (-99)

/**
 * Longest peer id, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_PEER_ID_BYTES 64

/**
 * Longest session id, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_SESSION_ID_BYTES 128

/**
 * Smallest message type that a host may use. The library reserves the smaller ones.
 */
#define MMN_MIN_MESSAGE_TYPE 256

/**
 * mmn_peer_status: the peer is connected.
 */
#define MMN_PEER_CONNECTED 0

/**
 * PeerStatusCallback: the link to the peer is lost. mmn_peer_status never returns it.
 */
#define MMN_PEER_DISCONNECTED 1

/**
 * mmn_peer_status: the link is lost and the library is dialling the peer again.
 */
#define MMN_PEER_RECONNECTING 2

/**
 * mmn_peer_status: the peer is being admitted.
 */
#define MMN_PEER_HANDSHAKING 3

/**
 * Log level: no records.
 */
#define MMN_LOG_OFF 0

/**
 * Log level: errors.
 */
#define MMN_LOG_ERROR 1

/**
 * Log level: also warnings.
 */
#define MMN_LOG_WARN 2

/**
 * Log level: also events of the room.
 */
#define MMN_LOG_INFO 3

/**
 * Log level: also their causes.
 */
#define MMN_LOG_DEBUG 4

/**
 * Log level: also every detail.
 */
#define MMN_LOG_TRACE 5

/**
 * manual_override_recovery: when a leader named by mmn_set_leader is lost, the room has no leader
 * until a host calls mmn_set_leader or mmn_set_auto_election. With MMN_AUTHORITY_LEADER_ONLY the room
 * elects all the same.
 */
#define MMN_RECOVERY_HOLD 0

/**
 * manual_override_recovery: when a leader named by mmn_set_leader is lost, the room elects another.
 */
#define MMN_RECOVERY_AUTO_ELECT 1

/**
 * discovery_mode: announce nothing and search for nothing.
 */
#define MMN_DISCOVERY_OFF 0

/**
 * discovery_mode: announce this member, and report the members found.
 */
#define MMN_DISCOVERY_REPORT 1

/**
 * discovery_mode: announce this member, and connect to the members found.
 */
#define MMN_DISCOVERY_CONNECT 2

/**
 * dispatch_mode: a thread of the library runs the callbacks.
 */
#define MMN_DISPATCH_THREAD 0

/**
 * dispatch_mode: the thread that calls mmn_poll runs the callbacks.
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
 * set_leader_authority: every member may call mmn_set_leader.
 */
#define MMN_AUTHORITY_ANYONE 0

/**
 * set_leader_authority: only the leader may call mmn_set_leader. When the leader is lost, the room
 * elects another regardless of manual_override_recovery, because no member could name one.
 */
#define MMN_AUTHORITY_LEADER_ONLY 1

/**
 * host_mode: no fixed host; the room elects its leader.
 */
#define MMN_HOST_MODE_OFF 0

/**
 * host_mode: this member is the room's fixed host. It leads from its start for as long as the room
 * lives.
 */
#define MMN_HOST_MODE_HOST 1

/**
 * host_mode: another member is the room's fixed host.
 */
#define MMN_HOST_MODE_GUEST 2

/**
 * topology: every member links to all members that it can reach.
 */
#define MMN_TOPOLOGY_MESH 0

/**
 * topology: guests link to the fixed host alone, and to each other through it. Needs host_mode.
 */
#define MMN_TOPOLOGY_STAR 1

/**
 * paths: this member uses every path, the best first: direct, over a relay, through a member.
 */
#define MMN_PATHS_ALL 0

/**
 * paths: this member uses relays alone, so that no other member learns its address.
 */
#define MMN_PATHS_RELAYED 1

/**
 * port_mapping: this member asks no router for anything.
 */
#define MMN_PORT_MAPPING_OFF 0

/**
 * port_mapping: this member asks its router for a port that leads to it.
 */
#define MMN_PORT_MAPPING_ON 1

/**
 * entry: this member looks for others, and leads when it finds none.
 */
#define MMN_ENTRY_ANY 0

/**
 * entry: this member creates the room: it leads at once.
 */
#define MMN_ENTRY_CREATE 1

/**
 * entry: this member joins a room that another one created. It neither leads nor admits any member
 * before it has followed a leader.
 */
#define MMN_ENTRY_JOIN 2

/**
 * quorum_policy: a majority of the members that are connected when an election starts.
 */
#define MMN_QUORUM_DYNAMIC 0

/**
 * quorum_policy: a majority of the voters in quorum_roster, connected or not.
 */
#define MMN_QUORUM_STATIC 1

/**
 * strategy: the connected members elect the leader by votes.
 */
#define MMN_STRATEGY_RAFT 0

/**
 * strategy: the lowest peer id that finds no leader leads, in every part of a partitioned room.
 */
#define MMN_STRATEGY_GOSSIP 1

/**
 * strategy: a majority of the voters in quorum_roster elects the leader of a cluster that members
 * enter through seeds.
 */
#define MMN_STRATEGY_SEEDED 2

/**
 * strategy: a cluster of etcd servers elects the leader. Only in the build for servers.
 */
#define MMN_STRATEGY_ETCD 3

/**
 * strategy_flags of MMN_STRATEGY_SEEDED: at a first start, too, a seed waits for a majority.
 */
#define MMN_SEEDED_STRICT_START 1

/**
 * strategy_flags of MMN_STRATEGY_SEEDED: no seed leads alone, however long the majority is
 * missing.
 */
#define MMN_SEEDED_NEVER_ALONE 2

/**
 * mmn_default_seeded_options: intervals for machines in different places.
 */
#define MMN_SEEDED_PROFILE_WAN 0

/**
 * mmn_default_seeded_options: intervals for machines on one local network.
 */
#define MMN_SEEDED_PROFILE_LAN 1

/**
 * MmnSendOptions.delivery: each message arrives once, in the order of the calls with the same
 * receiver and channel. Channel 0 is that of the classic sends.
 */
#define MMN_DELIVERY_RELIABLE_ORDERED 0

/**
 * MmnSendOptions.delivery: each message arrives once, in any order: no message waits for one that the
 * network lost.
 */
#define MMN_DELIVERY_RELIABLE_UNORDERED 1

/**
 * MmnSendOptions.delivery: a message arrives once or is lost, in any order.
 */
#define MMN_DELIVERY_UNRELIABLE 2

/**
 * MmnSendOptions.delivery: as MMN_DELIVERY_UNRELIABLE, and the receiver drops a message that is older
 * than the newest one that it has with the same sender and key. It remembers the 1024 most
 * recently used keys of a sender.
 */
#define MMN_DELIVERY_SEQUENCED 3

/**
 * MmnSendOptions.flags for mmn_broadcast: the message goes to the peers whose queue has room.
 */
#define MMN_SEND_PARTIAL 1

/**
 * MmnSendOptions.priority: lower than normal.
 */
#define MMN_PRIORITY_LOW (-1)

/**
 * MmnSendOptions.priority: the default.
 */
#define MMN_PRIORITY_NORMAL 0

/**
 * MmnSendOptions.priority: higher than normal.
 */
#define MMN_PRIORITY_HIGH 1

/**
 * MmnSendOptions.priority: the highest.
 */
#define MMN_PRIORITY_HIGHEST 2

/**
 * flags of mmn_kick: the peer's id and key are banned until mmn_unban or the room's end.
 */
#define MMN_KICK_BAN 1

/**
 * strategy_flags of MMN_STRATEGY_GOSSIP: the lowest peer id always succeeds a lost leader.
 */
#define MMN_GOSSIP_STRICT_LOWEST 1

/**
 * Longest room secret of MmnOptions, in bytes.
 */
#define MMN_MAX_SECRET_BYTES 1024

/**
 * Length of an identity key that mmn_generate_identity_key makes, in bytes.
 */
#define MMN_IDENTITY_KEY_BYTES 48

/**
 * Length of a room code that mmn_generate_room_code makes, in bytes, with its NUL.
 */
#define MMN_ROOM_CODE_BYTES 15

/**
 * Most lines in MmnOptions.relays.
 */
#define MMN_MAX_RELAYS 2

/**
 * Most lines in MmnOptions.turn.
 */
#define MMN_MAX_TURN_SERVERS 4

/**
 * Most addresses in MmnSeededOptions.seeds.
 */
#define MMN_MAX_SEEDS 32

/**
 * Most lines in MmnEtcdOptions.endpoints.
 */
#define MMN_MAX_ETCD_ENDPOINTS 16

/**
 * Longest text for mmn_proclaim, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_PROCLAIMED_BYTES 4096

/**
 * Longest name of a lock, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_LOCK_NAME_BYTES 128

/**
 * Most voters in quorum_roster of MmnOptions.
 */
#define MMN_MAX_QUORUM_VOTERS 64

/**
 * MmnEvent.kind: `peer` is connected. This event precedes the peer's first message.
 */
#define MMN_EVENT_JOINED 1

/**
 * MmnEvent.kind: the link to `peer` is lost and the library is dialling it again. It keeps the
 * messages already accepted for the peer, and reliable messages that are sent meanwhile, as long
 * as the send queue has room.
 */
#define MMN_EVENT_RECONNECTING 2

/**
 * MmnEvent.kind: the link to `peer` is back. Messages that were queued for it arrive, once and
 * in order. `count` and `missed` count each lost message once. This event precedes everything that
 * the peer sends on the new link.
 */
#define MMN_EVENT_RETURNED 3

/**
 * MmnEvent.kind: `peer` is gone. This event follows the peer's last message.
 */
#define MMN_EVENT_LEFT 4

/**
 * MmnEvent.kind: `peer` sent `data`.
 */
#define MMN_EVENT_MESSAGE 5

/**
 * MmnEvent.kind: this node's mmn_set_leader for `peer` has ended.
 */
#define MMN_EVENT_SET_LEADER_RESULT 6

/**
 * MmnEvent.kind: this node is no longer in the room. MMN_EVENT_LEFT follows for every member, with
 * MMN_LEFT_ROOM_ENDED (for a fixed host with the reason of its own departure). The host must still
 * call mmn_close.
 */
#define MMN_EVENT_ROOM_ENDED 7

/**
 * MmnEvent.kind: `peer` leads, or no member does.
 */
#define MMN_EVENT_LEADER_CHANGED 8

/**
 * MmnEvent.kind: this node now leads. The fields are those of the preceding
 * MMN_EVENT_LEADER_CHANGED.
 */
#define MMN_EVENT_LEADERSHIP_GAINED 9

/**
 * MmnEvent.kind: this node no longer leads. The fields are those of the preceding
 * MMN_EVENT_LEADER_CHANGED.
 */
#define MMN_EVENT_LEADERSHIP_LOST 10

/**
 * MmnEvent.kind: `peer` asks to join. The host answers with mmn_accept_join or mmn_reject_join.
 */
#define MMN_EVENT_JOIN_REQUEST 11

/**
 * MmnEvent.kind: discovery found a member in the local network.
 */
#define MMN_EVENT_DISCOVERED 12

/**
 * MmnEvent.kind: a call of mmn_connect has ended.
 */
#define MMN_EVENT_CONNECTION_RESULT 13

/**
 * MmnEvent.kind: a call of mmn_broadcast with MMN_SEND_PARTIAL has left `peer` out, because the
 * queue to it is full. One event stands for all such broadcasts until the host receives it, and
 * for those of the second after that.
 */
#define MMN_EVENT_SLOW_PEER 14

/**
 * MmnEvent.kind: this node has dropped messages with MMN_DELIVERY_UNRELIABLE or
 * MMN_DELIVERY_SEQUENCED, because a queue was full, their ttl_ms was over, or the link is lost.
 * One event a second comes for each peer and direction, and one with the rest before
 * MMN_EVENT_LEFT. Messages that the network loses, or that a newer message replaces, are not
 * counted.
 */
#define MMN_EVENT_DATA_DROPPED 15

/**
 * MmnEvent.kind: with MMN_STRATEGY_SEEDED, the state of the member `peer` has changed. Up to 256 of
 * these events wait for a host that takes no events; beyond that it receives the newest state of
 * each member.
 */
#define MMN_EVENT_MEMBER_STATE 16

/**
 * MmnEvent.kind: a call of mmn_acquire_lock or mmn_try_lock has ended.
 */
#define MMN_EVENT_LOCK_RESULT 17

/**
 * MmnEvent.kind: this node no longer holds a lock, since its lease has ended. Up to 256 of these
 * events wait for a host that takes no events; beyond that it receives the newest loss of each
 * lock.
 */
#define MMN_EVENT_LOCK_LOST 18

/**
 * MmnEvent.kind: the members `peer` and `other` have no link, since `other` is connected to
 * max_connections members. Either may be this node; then the other one is no member here. Neither
 * receives the other's broadcasts. The hosts of both and of the leader receive this event once,
 * for as long as the link is missing.
 */
#define MMN_EVENT_UNLINKED_PEER 22

/**
 * MmnEvent.kind: the ban of `peer` is void at this node. The leader has led for a few seconds,
 * has no such ban and does not know the member that set it: two rooms became one, for example. The
 * leader's host may ban again.
 */
#define MMN_EVENT_BAN_DROPPED 23

/**
 * MmnEvent.kind: a member that the library found and dialled by itself refused this node, or
 * this node refused that member. The library goes on by itself; the event is for the player. The
 * library reports it once a minute for each address and code. Two limits of 16 events a minute
 * apply: one to MMN_SESSION_MISMATCH, MMN_AUTHENTICATION_FAILED and MMN_VERSION_MISMATCH, which
 * any process can cause, and one to the other codes.
 */
#define MMN_EVENT_DISCOVERY_REFUSED 21

/**
 * MmnEvent.kind: an MMN_EVENT_JOIN_REQUEST has ended without an answer of this host: the newcomer
 * is gone, the time is up, or another member decides now. A host may close its dialog.
 */
#define MMN_EVENT_JOIN_WITHDRAWN 24

/**
 * MmnEvent.kind: the host of `peer` takes no events: it has not called mmn_poll, or is still in a
 * callback. MMN_EVENT_HOST_BACK, MMN_EVENT_RECONNECTING or MMN_EVENT_LEFT ends it.
 */
#define MMN_EVENT_HOST_SILENT 19

/**
 * MmnEvent.kind: the host of `peer` takes events again.
 */
#define MMN_EVENT_HOST_BACK 20

/**
 * MmnEvent.kind: with MMN_ENTRY_JOIN, this node has found no room yet. It goes on looking, and
 * reports this once.
 */
#define MMN_EVENT_NO_ROOM_FOUND 25

/**
 * MmnEvent.kind: the messages to and from `peer` take another path from now on. The change loses
 * and reorders no reliable message. mmn_peer_path returns the path of a peer that has just joined
 * or returned. Up to 256 of these events wait for a host that takes no events; beyond that it
 * receives the newest of each peer.
 */
#define MMN_EVENT_PATH_CHANGED 26

/**
 * MmnEvent.kind: this member has entered a relay of MmnOptions.relays, or is not in it. While it is
 * not, the library goes on trying, and links that need no relay stay. It reports a failure once,
 * until the reason changes or it succeeds. It also reports that a relay sees this member at another
 * address. Up to 64 of these events wait for a host that takes no events; beyond that it receives
 * the newest of each relay.
 */
#define MMN_EVENT_RELAY 27

/**
 * MmnEvent.kind: the room has confirmed an action of mmn_submit. The hosts of all members receive the
 * same actions in the same order.
 */
#define MMN_EVENT_ACTION 28

/**
 * MmnEvent.kind: a call of mmn_submit or mmn_set_properties has ended. This event follows those of the
 * call's entry.
 */
#define MMN_EVENT_ACTION_RESULT 29

/**
 * MmnEvent.kind: a property has changed, by mmn_set_properties, because its owner has left, or
 * because this member has taken over other members' state. mmn_property already shows it so.
 */
#define MMN_EVENT_PROPERTY 30

/**
 * MmnEvent.kind: the host begins anew with the actions: it replaces its state by the snapshot, and
 * receives the actions above `index`. Properties and members do not begin anew; events with their
 * differences follow.
 */
#define MMN_EVENT_STATE_RESET 31

/**
 * MmnEvent.kind: the room has taken over another history, which lacks an action that this host has
 * received. One event comes for each such action, the lowest index first, before anything else of
 * that history.
 */
#define MMN_EVENT_ROLLED_BACK 32

/**
 * MmnEvent.kind: another member's host needs a snapshot of this host's state, exactly as the events
 * before this one have made it. Copy the state inside this event, and pass it to
 * mmn_provide_snapshot then or later.
 */
#define MMN_EVENT_SNAPSHOT_WANTED 33

/**
 * MmnEvent.kind: `peer` orders the requests to the room's state from now on, or no member does. Requests
 * wait until then.
 */
#define MMN_EVENT_STATE_OPENED 34

/**
 * MmnEvent.kind: a member has come into the room's state or gone from it: all hosts receive this at
 * the same place among the actions. Only a member that is here may own a property.
 */
#define MMN_EVENT_STATE_MEMBER 35

/**
 * MmnEvent.kind: `peer` offers a transfer (mmn_send_transfer). The host answers within 60 s with
 * mmn_accept_transfer, mmn_accept_transfer_in_parts or mmn_cancel_transfer; it may do so in this event.
 */
#define MMN_EVENT_TRANSFER_OFFERED 39

/**
 * MmnEvent.kind: a transfer goes on. Both hosts receive this at most ten times a second for each
 * transfer, and none while an earlier one waits for the host.
 */
#define MMN_EVENT_TRANSFER_PROGRESS 40

/**
 * MmnEvent.kind: a transfer is over. Each end receives this exactly once, before MMN_EVENT_LEFT of
 * `peer`.
 */
#define MMN_EVENT_TRANSFER_RESULT 41

/**
 * MmnEvent.kind: the next bytes of a transfer that this host takes with mmn_accept_transfer_in_parts.
 */
#define MMN_EVENT_TRANSFER_PART 42

/**
 * MmnEvent.kind: the state of the port that MmnOptions.port_mapping asks the router for. The library
 * goes on asking after a failure, and reports it once, until the reason changes. Up to 64 of these
 * events wait for a host that takes no events; beyond that it receives the newest.
 */
#define MMN_EVENT_PORT_MAPPING 43

/**
 * MmnEvent.kind: a TURN server of MmnOptions.turn or mmn_set_turn has given this member a port, or gives
 * none, or the port is lost. While this member has none, the library goes on trying, each server in turn;
 * links that do not go through the port stay. It reports a failure once, until the reason changes or it
 * succeeds. Up to 64 of these events wait for a host that takes no events; beyond that it receives the
 * newest of each server.
 */
#define MMN_EVENT_TURN 44

/**
 * MMN_EVENT_DISCOVERY_REFUSED: the member was found in the local network.
 */
#define MMN_FOUND_IN_LOCAL_NETWORK 1

/**
 * MMN_EVENT_DISCOVERY_REFUSED: the member is one of the seeds in the options.
 */
#define MMN_FOUND_AS_SEED 2

/**
 * MMN_EVENT_DISCOVERY_REFUSED: the member is present at a relay in the options.
 */
#define MMN_FOUND_AT_RELAY 3

/**
 * MMN_EVENT_STATE_RESET: the host has received nothing before.
 */
#define MMN_RESET_JOINED 0

/**
 * MMN_EVENT_STATE_RESET: this member no longer has the actions that follow the last one that the host
 * received.
 */
#define MMN_RESET_BEHIND 1

/**
 * MMN_EVENT_STATE_RESET: the room has taken over a history with other actions.
 */
#define MMN_RESET_ROLLED_BACK 2

/**
 * MMN_EVENT_TRANSFER_RESULT: all of it has arrived.
 */
#define MMN_TRANSFER_COMPLETE 0

/**
 * MMN_EVENT_TRANSFER_RESULT: the sender's host cancelled it.
 */
#define MMN_TRANSFER_CANCELLED_BY_SENDER 1

/**
 * MMN_EVENT_TRANSFER_RESULT: the receiver's host cancelled it after it had accepted it.
 */
#define MMN_TRANSFER_CANCELLED_BY_RECEIVER 2

/**
 * MMN_EVENT_TRANSFER_RESULT: the receiver's host refused the offer.
 */
#define MMN_TRANSFER_REFUSED 3

/**
 * MMN_EVENT_TRANSFER_RESULT: the receiver's host did not answer within 60 s, or its library within 75 s.
 */
#define MMN_TRANSFER_UNANSWERED 4

/**
 * MMN_EVENT_TRANSFER_RESULT: the receiver's host takes no events, so the library refused the offer.
 */
#define MMN_TRANSFER_BUSY 5

/**
 * MMN_EVENT_TRANSFER_RESULT: the peer has left; MMN_EVENT_LEFT follows with the reason.
 */
#define MMN_TRANSFER_PEER_LEFT 6

/**
 * MMN_EVENT_TRANSFER_RESULT: the room is over.
 */
#define MMN_TRANSFER_ROOM_ENDED 7

/**
 * MMN_EVENT_TRANSFER_RESULT: the bytes that arrived have another SHA-256 than the bytes that were sent. Please report it.
 */
#define MMN_TRANSFER_CORRUPT 8

/**
 * mmn_member_state, MMN_EVENT_MEMBER_STATE: the peer is in no cluster.
 */
#define MMN_MEMBER_INIT 0

/**
 * mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has accepted the member.
 */
#define MMN_MEMBER_JOINING 1

/**
 * mmn_member_state, MMN_EVENT_MEMBER_STATE: the member takes part.
 */
#define MMN_MEMBER_ACTIVE 2

/**
 * mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has not heard from the member for
 * heartbeat_timeout_ms.
 */
#define MMN_MEMBER_UNREACHABLE 3

/**
 * mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has not heard from the member for
 * ttl_timeout_ms, and removes it.
 */
#define MMN_MEMBER_LEAVING 4

/**
 * MMN_EVENT_MEMBER_STATE: the leader has removed the member.
 */
#define MMN_MEMBER_REMOVED 5

/**
 * MMN_EVENT_LEADER_CHANGED: the reason is unknown.
 */
#define MMN_LEADER_UNKNOWN 0

/**
 * MMN_EVENT_LEADER_CHANGED: the leader was elected.
 */
#define MMN_LEADER_ELECTED 1

/**
 * MMN_EVENT_LEADER_CHANGED: mmn_set_leader named the leader.
 */
#define MMN_LEADER_ASSIGNED 2

/**
 * MMN_EVENT_LEADER_CHANGED: the previous leader transferred its leadership: it left, or called
 * mmn_transfer_leadership or mmn_yield_leadership.
 */
#define MMN_LEADER_TRANSFERRED 3

/**
 * MMN_EVENT_LEADER_CHANGED: the leader already led when this node learned of it, by joining the
 * room or because two parts of the room merged.
 */
#define MMN_LEADER_FOUND 4

/**
 * MMN_EVENT_LEADER_CHANGED: the leader fell silent, or this node lost its link to the leader.
 */
#define MMN_LEADER_LOST 5

/**
 * MMN_EVENT_LEADER_CHANGED: the leader left, was removed, or is no longer eligible.
 */
#define MMN_LEADER_LEFT 6

/**
 * MMN_EVENT_LEADER_CHANGED: the leader resigned: too few members answered it, or it yielded to a
 * higher claim.
 */
#define MMN_LEADER_RESIGNED 7

/**
 * MMN_EVENT_LEFT: the peer left the room (mmn_close), or it belongs to another room, with which
 * this one cannot become one.
 */
#define MMN_LEFT_LEFT 0

/**
 * MMN_EVENT_LEFT: the link was lost, and the peer did not return in time or automatic reconnection
 * is off.
 */
#define MMN_LEFT_LOST 1

/**
 * MMN_EVENT_LEFT: the host at either end called mmn_disconnect.
 */
#define MMN_LEFT_DISCONNECTED 2

/**
 * MMN_EVENT_LEFT: the peer restarted, or another process took its id.
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
 * MMN_EVENT_LEFT: the library stopped dialling the lost peer.
 */
#define MMN_LEFT_GAVE_UP 6

/**
 * MMN_EVENT_LEFT: the room is over, for this node (MMN_EVENT_ROOM_ENDED precedes this event) or
 * for the peer.
 */
#define MMN_LEFT_ROOM_ENDED 7

/**
 * MMN_EVENT_DATA_DROPPED: messages to the peer.
 */
#define MMN_DROPPED_SENT 0

/**
 * MMN_EVENT_DATA_DROPPED: messages from the peer.
 */
#define MMN_DROPPED_RECEIVED 1

/**
 * MMN_EVENT_ROOM_ENDED: the leader removed this node from the room.
 */
#define MMN_END_KICKED 0

/**
 * MMN_EVENT_ROOM_ENDED: the room's fixed host left (mmn_close).
 */
#define MMN_END_HOST_LEFT 1

/**
 * MMN_EVENT_ROOM_ENDED: the room's fixed host is lost: it did not return within member_hold_ms,
 * was given up before that, or broke the protocol.
 */
#define MMN_END_HOST_LOST 2

/**
 * MMN_EVENT_ROOM_ENDED: the room's fixed host called mmn_disconnect for this member, or this
 * member called it for the fixed host.
 */
#define MMN_END_DISCONNECTED 3

/**
 * MMN_EVENT_ROOM_ENDED: the room became one with another, in which another member has this node's
 * id, and all others are there.
 */
#define MMN_END_DUPLICATE_ID 4

/**
 * MMN_EVENT_ROOM_ENDED: a fault inside the library ended this room. Other rooms of the process go
 * on. Please report the log's error.
 */
#define MMN_END_INTERNAL 5

/**
 * MmnPropertyChange.expected_version: any version, or none.
 */
#define MMN_ANY_VERSION UINT64_MAX

/**
 * MmnPropertyChange.flags: the property goes.
 */
#define MMN_PROPERTY_REMOVE 1

/**
 * MmnPropertyChange.flags: the value stays; a new property has an empty one.
 */
#define MMN_PROPERTY_KEEP_VALUE 2

/**
 * MmnPropertyChange.flags, MmnPropertyInfo.flags: only the owner changes the property, while it has
 * one. Takes effect if the property is new, and stays with it.
 */
#define MMN_PROPERTY_OWNER_ONLY 4

/**
 * MmnPropertyChange.flags, MmnPropertyInfo.flags: the property goes when its owner leaves the room.
 * Takes effect if the property is new, and stays with it.
 */
#define MMN_PROPERTY_DIES_WITH_OWNER 8

/**
 * MmnPropertyChange.flags, MmnPropertyInfo.flags: the leader owns the property when its owner leaves
 * the room. Takes effect if the property is new, and stays with it.
 */
#define MMN_PROPERTY_FALLS_TO_LEADER 16

/**
 * Longest transfer in bytes, for mmn_send_transfer.
 */
#define MMN_MAX_TRANSFER_BYTES 67108864

/**
 * Longest tag of a transfer in bytes, for mmn_send_transfer.
 */
#define MMN_MAX_TRANSFER_TAG_BYTES 1024

/**
 * MmnCard.flags: the card holds the session id, so that everybody who reads it can join. Without
 * it the player must know the session id.
 */
#define MMN_CARD_OPEN 1

/**
 * Longest data of MmnCard, in bytes.
 */
#define MMN_MAX_CARD_DATA_BYTES 400

/**
 * Longest game and name of MmnCard, in bytes of UTF-8 without the NUL.
 */
#define MMN_MAX_CARD_NAME_BYTES 64

/**
 * Default UDP port of cards and browsers.
 */
#define MMN_DEFAULT_CARD_PORT 15354

/**
 * MmnListedRoom.change: the room is new in the list.
 */
#define MMN_BROWSE_FOUND 36

/**
 * MmnListedRoom.change: the card, the number of players or the address has changed.
 */
#define MMN_BROWSE_CHANGED 37

/**
 * MmnListedRoom.change: the room is no longer in the list. The other fields are those of the last
 * report.
 */
#define MMN_BROWSE_GONE 38

/**
 * mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: on a link of its own.
 */
#define MMN_PATH_DIRECT 0

/**
 * mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: through the leader, encrypted from end
 * to end. The round trip is that of both ways.
 */
#define MMN_PATH_THROUGH_LEADER 1

/**
 * mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: through a member that does not lead, as
 * MMN_PATH_THROUGH_LEADER. mmn_peer_carrier names the member.
 */
#define MMN_PATH_THROUGH_MEMBER 2

/**
 * mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: over a relay, encrypted from end to end.
 * A relay is no member: mmn_peer_carrier is NULL.
 */
#define MMN_PATH_THROUGH_RELAY 3

/**
 * mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: through this member's port at a TURN server
 * of MmnOptions.turn, encrypted from end to end. The other member sees a direct path. mmn_peer_carrier is
 * NULL.
 */
#define MMN_PATH_THROUGH_TURN 4

/**
 * A room of this process: a number that is never 0 for an open room, below 2^53. A closed room's
 * number is not used again, so calls with it are MMN_NOT_INITIALIZED, as are calls with any other
 * number that names no open room of this process. In a forked child no number of the parent names
 * a room.
 */
typedef uint64_t MmnRoom;

/*
 * Events: the fields of MmnEvent that each kind sets, and their meaning.
 *
 * Every kind also sets struct_size, kind and room; length comes with data, and peer_index with peer.
 * All other fields are 0 or "". In brackets: the field's name in the bindings for C++, C# and Python,
 * where it differs.
 *
 * kind                         field                meaning
 * ---------------------------  -------------------  -----------------------------------------------
 * MMN_EVENT_JOINED             peer                 the new peer.
 * MMN_EVENT_RECONNECTING       peer                 the lost peer.
 * MMN_EVENT_RETURNED           peer                 the peer that is back.
 *                              count (undelivered)  reliable messages of this host that the peer
 *                                                   will not get. They were broadcast while it was
 *                                                   away and did not fit into its queue.
 *                              missed               reliable messages of the peer that this host
 *                                                   will not get.
 * MMN_EVENT_LEFT               peer                 the member that is gone.
 *                              reason               one of MMN_LEFT_...
 *                              code                 number from the host that removed or
 *                                                   disconnected the peer, else 0.
 *                              data                 bytes from the host that removed or
 *                                                   disconnected the peer.
 *                              count (undelivered)  reliable messages for the peer that are not
 *                                                   known to be delivered, and that no
 *                                                   MMN_EVENT_RETURNED has counted.
 * MMN_EVENT_MESSAGE            peer (from)          the sender.
 *                              data                 the message.
 *                              msg_type (type)      the sender's message type, 0x0100 or higher.
 *                              flags                the sender's flags.
 *                              channel              the channel that the sender named; 0 for the
 *                                                   classic sends.
 *                              delivery             one of MMN_DELIVERY_...
 * MMN_EVENT_SET_LEADER_RESULT  peer                 the member that mmn_set_leader named.
 *                              success              1 when the peer leads.
 *                              code                 MMN_OK, MMN_TIMEOUT, MMN_SUPERSEDED,
 *                                                   MMN_REJECTED (with MMN_QUORUM_STATIC: the
 *                                                   leader refused the transfer) or another error.
 * MMN_EVENT_ROOM_ENDED         reason               one of MMN_END_...
 *                              code                 number from the leader's host, else 0.
 *                              data                 bytes from the leader's host.
 * MMN_EVENT_LEADER_CHANGED     peer (leader)        the member that leads; "" means that no member
 *                                                   does.
 *                              other (previous)     the previous leader as this handler last
 *                                                   received it; "" for none.
 *                              term                 the leader's term.
 *                              epoch                the number of mmn_set_leader calls that the
 *                                                   change builds on.
 *                              reason               one of MMN_LEADER_...
 * MMN_EVENT_LEADERSHIP_GAINED  peer (leader)        this node.
 *                              other (previous)     the previous leader; "" for none.
 *                              term                 the leader's term.
 *                              epoch                the number of mmn_set_leader calls that the
 *                                                   change builds on.
 *                              reason               one of MMN_LEADER_...
 * MMN_EVENT_LEADERSHIP_LOST    peer (leader)        the member that leads now; "" means that no
 *                                                   member does.
 *                              other (previous)     the previous leader; "" for none.
 *                              term                 the leader's term.
 *                              epoch                the number of mmn_set_leader calls that the
 *                                                   change builds on.
 *                              reason               one of MMN_LEADER_...
 * MMN_EVENT_JOIN_REQUEST       peer                 the newcomer.
 *                              other (address)      the newcomer's address; "" if it is unknown, as
 *                                                   over a relay.
 *                              data (payload)       the newcomer's join payload.
 *                              request              the number that the answer names.
 * MMN_EVENT_DISCOVERED         other (address)      the member's address, for mmn_connect.
 * MMN_EVENT_CONNECTION_RESULT  other (address)      the address as passed to mmn_connect.
 *                              success              1 when the peer is connected.
 *                              code                 MMN_OK or the reason. MMN_ALREADY_CONNECTED
 *                                                   comes with success.
 *                              peer                 the member that answered; "" if it is unknown.
 *                              reason               number from the leader's host, if that rejected
 *                                                   this node, or banned it with a reason that the
 *                                                   member that answered remembers; else 0.
 *                              data                 bytes from that host. Otherwise, of a failed
 *                                                   dial, a sentence for the player, with a remedy.
 *                                                   With MMN_POLICY_MISMATCH it names the rule and
 *                                                   both values; with MMN_MAX_CONNECTIONS_REACHED
 *                                                   the limit; with MMN_RATE_LIMITED the number of
 *                                                   seconds for which no attempt counts; with
 *                                                   MMN_NAME_NOT_RESOLVED the resolver's answer;
 *                                                   with MMN_TIMEOUT how far the dial came or which
 *                                                   side did not decide; with MMN_REJECTED the rule
 *                                                   that refused it.
 * MMN_EVENT_SLOW_PEER          peer                 the peer whose queue is full.
 * MMN_EVENT_DATA_DROPPED       peer                 the peer at the other end.
 *                              reason (direction)   one of MMN_DROPPED_...
 *                              count                messages dropped since the last such event.
 * MMN_EVENT_MEMBER_STATE       peer                 the member, which may be this node.
 *                              reason (state)       its new state, one of MMN_MEMBER_...
 *                              term (version)       the version of the cluster.
 * MMN_EVENT_LOCK_RESULT        request              the number of the call.
 *                              other (lock)         the name of the lock.
 *                              success              1 when this node holds the lock.
 *                              code                 MMN_OK, MMN_REJECTED (mmn_try_lock: another
 *                                                   member holds it), MMN_TIMEOUT, or
 *                                                   MMN_SUPERSEDED (mmn_release_lock or mmn_close
 *                                                   came first).
 *                              count (token)        the fencing token, while this node holds the
 *                                                   lock; else 0.
 * MMN_EVENT_LOCK_LOST          other (lock)         the name of the lock.
 *                              count (token)        its fencing token.
 * MMN_EVENT_UNLINKED_PEER      peer                 one of the two members.
 *                              other                the member that is connected to max_connections
 *                                                   members.
 * MMN_EVENT_BAN_DROPPED        peer                 the banned id.
 *                              other (leader)       the leader.
 * MMN_EVENT_DISCOVERY_REFUSED  peer                 the member that answered; "" if it is unknown.
 *                              other (address)      the member's address; for one at a relay that
 *                                                   of the relay, as in MmnOptions.relays.
 *                              found_by             one of MMN_FOUND_...
 *                              code                 MMN_DUPLICATE_PEER_ID, MMN_REJECTED,
 *                                                   MMN_POLICY_MISMATCH,
 *                                                   MMN_MAX_CONNECTIONS_REACHED,
 *                                                   MMN_SESSION_MISMATCH, MMN_AUTHENTICATION_FAILED
 *                                                   or MMN_VERSION_MISMATCH.
 *                              reason               as in MMN_EVENT_CONNECTION_RESULT.
 *                              data                 as in MMN_EVENT_CONNECTION_RESULT.
 * MMN_EVENT_JOIN_WITHDRAWN     peer                 the newcomer.
 *                              request              the number of the request.
 * MMN_EVENT_HOST_SILENT        peer                 the peer.
 *                              count (silent_ms)    time without an event taken, in milliseconds:
 *                                                   5000 or more.
 * MMN_EVENT_HOST_BACK          peer                 the peer.
 * MMN_EVENT_NO_ROOM_FOUND      count (waited_ms)    time without a room, in milliseconds.
 * MMN_EVENT_PATH_CHANGED       peer                 the peer at the other end.
 *                              other (carrier)      the member that carries the packets from now
 *                                                   on; "" if none does, as on a direct path and
 *                                                   over a relay.
 *                              reason (path)        the path from now on, one of MMN_PATH_...
 *                              code (previous)      the path before, one of MMN_PATH_...
 * MMN_EVENT_RELAY              other (relay)        the relay's address as given in
 *                                                   MmnOptions.relays.
 *                              success              1 when this member is in the relay.
 *                              code                 MMN_OK, MMN_CONNECTION_FAILED (the relay is
 *                                                   unreachable, or the link to it is lost),
 *                                                   MMN_TIMEOUT (no answer: the relay is off, or
 *                                                   the network blocks UDP), MMN_NAME_NOT_RESOLVED,
 *                                                   MMN_AUTHENTICATION_FAILED (another token, or
 *                                                   another key than the given one),
 *                                                   MMN_MAX_CONNECTIONS_REACHED (the relay is
 *                                                   full), MMN_RATE_LIMITED or
 *                                                   MMN_VERSION_MISMATCH.
 *                              data                 UTF-8. With success, the address at which the
 *                                                   relay sees this member, as mmn_public_address
 *                                                   returns it; else a sentence for the player,
 *                                                   with a remedy.
 * MMN_EVENT_ACTION             peer (author)        the member that submitted it, which may have
 *                                                   left since.
 *                              data                 the action.
 *                              msg_type (type)      the author's message type, 0x0100 or higher.
 *                              index                index of its entry. Within a history, entries
 *                                                   have rising indexes.
 *                              time_ms              time of its entry, in milliseconds since the
 *                                                   room's first one.
 *                              request              the number from mmn_submit, if this node is the
 *                                                   author; else 0.
 * MMN_EVENT_ACTION_RESULT      request              the number of the call.
 *                              index                index of its entry; 0 if it has none, or this
 *                                                   member no longer has it.
 *                              code                 MMN_OK; for a property set also MMN_CONFLICT,
 *                                                   MMN_STATE_FULL or MMN_REJECTED, and then
 *                                                   nothing has changed; MMN_OUTCOME_UNKNOWN if
 *                                                   this member was away for so long that it cannot
 *                                                   know.
 * MMN_EVENT_PROPERTY           other (key)          the name of the property.
 *                              data (value)         its value.
 *                              owner                its owner; "" if it has none.
 *                              count (version)      its version, for expected_version of
 *                                                   MmnPropertyChange.
 *                              success (exists)     1 when the property exists; else it has no
 *                                                   value, owner or version.
 *                              peer (author)        the member that set it; "" if no
 *                                                   mmn_set_properties did, or the state jumped.
 *                              index                index of the entry that changed it, or that the
 *                                                   state jumped to.
 *                              time_ms              time of that entry, in milliseconds since the
 *                                                   room's first one.
 * MMN_EVENT_STATE_RESET        data (snapshot)      a state that another member's host has
 *                                                   provided; empty for the initial state.
 *                              index                index of the last entry in that state.
 *                              reason               one of MMN_RESET_...
 *                              code                 MMN_OK, or MMN_TIMEOUT if actions up to `index`
 *                                                   are missing, because no host provided a
 *                                                   snapshot.
 *                              count (undone)       actions undone: the number of
 *                                                   MMN_EVENT_ROLLED_BACK before this event.
 * MMN_EVENT_ROLLED_BACK        peer (author)        the member that submitted it.
 *                              data                 the action.
 *                              msg_type (type)      the author's message type.
 *                              index                the index that it had.
 *                              request              the number from mmn_submit, if this node is the
 *                                                   author; else 0. The library does not submit it
 *                                                   again.
 * MMN_EVENT_SNAPSHOT_WANTED    request              the number for mmn_provide_snapshot.
 *                              index                index of the last entry of which this host has
 *                                                   received an event.
 * MMN_EVENT_STATE_OPENED       peer (leader)        the member that orders; "" if the leader is
 *                                                   lost.
 *                              success (exclusive)  1 when a majority of the members that count
 *                                                   answered the leader, or it is the room's first;
 *                                                   else the room has forked.
 *                              epoch (history)      the history that goes on, or begins.
 *                              count (members)      members that count for a majority.
 *                              index                index of the last entry of which this host has
 *                                                   received an event.
 * MMN_EVENT_STATE_MEMBER       peer                 the member, which may be this node.
 *                              success (here)       1 when it has come; else it has gone.
 *                              index                index of the entry, or of the one that the
 *                                                   state jumped to.
 * MMN_EVENT_TRANSFER_OFFERED   peer (from)          the sender.
 *                              request (transfer)   the number of the transfer.
 *                              count (size)         its length in bytes.
 *                              data (tag)           the sender's bytes about it.
 * MMN_EVENT_TRANSFER_PROGRESS  peer                 the peer at the other end.
 *                              request (transfer)   the number of the transfer.
 *                              count (size)         its length in bytes.
 *                              index (done)         bytes that have arrived at the receiver.
 * MMN_EVENT_TRANSFER_RESULT    peer                 the peer at the other end.
 *                              request (transfer)   the number of the transfer.
 *                              count (size)         its length in bytes.
 *                              index (done)         bytes that have arrived at the receiver, as far
 *                                                   as this end knows.
 *                              success              1 when all of it has arrived.
 *                              reason               one of MMN_TRANSFER_...
 * MMN_EVENT_TRANSFER_PART      peer (from)          the sender.
 *                              request (transfer)   the number of the transfer.
 *                              index (offset)       position of the first byte, from 0.
 *                              data                 the bytes, at most 16384.
 * MMN_EVENT_PORT_MAPPING       success              1 when the router claims to forward a port to
 *                                                   this member, and what the others see does not
 *                                                   speak against it. Perhaps no member has seen
 *                                                   anything yet.
 *                              code                 MMN_OK, MMN_TIMEOUT (the router does not
 *                                                   answer), MMN_REJECTED (it refuses),
 *                                                   MMN_SERIALIZATION_ERROR (its answer makes no
 *                                                   sense), MMN_CONNECTION_FAILED (the port leads
 *                                                   from nowhere: the router has no address of the
 *                                                   internet, most members see this one at another
 *                                                   address, or several could not come through) or
 *                                                   MMN_NOT_SUPPORTED (the room uses no IPv4
 *                                                   network whose router can be found).
 *                              data                 UTF-8. With success, the address, as
 *                                                   mmn_public_address returns it; else a sentence
 *                                                   for the player, with a remedy.
 * MMN_EVENT_TURN               other (server)       the server's URL as given, without the
 *                                                   credentials.
 *                              success              1 when this member has the port.
 *                              code                 MMN_OK, MMN_CONNECTION_FAILED (the server is
 *                                                   unreachable, the connection to it is lost, it
 *                                                   has forgotten the port, or the list of
 *                                                   mmn_set_turn lacks it), MMN_TIMEOUT (no
 *                                                   answer), MMN_NAME_NOT_RESOLVED,
 *                                                   MMN_AUTHENTICATION_FAILED (it refuses the user
 *                                                   name or the password, perhaps as expired: pass
 *                                                   others to mmn_set_turn; or its certificate is
 *                                                   not trusted), MMN_MAX_CONNECTIONS_REACHED (this
 *                                                   user, or the server, has no free port),
 *                                                   MMN_REJECTED (it refuses for another reason) or
 *                                                   MMN_SERIALIZATION_ERROR (what answers there is
 *                                                   no TURN server).
 *                              data                 UTF-8. With success, the address at which the
 *                                                   server receives for this member; else a
 *                                                   sentence, with the server's own code and words
 *                                                   where it gave some.
 */

/**
 * An event. `kind` determines which fields are set, as the table of events shows; the others are 0
 * or "". The struct and everything that it points to are valid during the call only.
 *
 * Later versions only append fields. Read the fields that lie within `struct_size`, and ignore
 * unknown kinds.
 */
typedef struct MmnEvent {
  /**
   * The number of bytes of this struct that the library has set.
   */
  uint32_t struct_size;
  /**
   * One of MMN_EVENT_...
   */
  uint32_t kind;
  /**
   * A term, or the version of a cluster.
   */
  uint64_t term;
  /**
   * The number of mmn_set_leader calls that the leader's term builds on, or a history of the room's
   * state.
   */
  uint64_t epoch;
  /**
   * The number of a join request, of a call for a lock, of a request that concerns the room's
   * state, or of a transfer (unique together with the peer).
   */
  uint64_t request;
  /**
   * A number of messages, of milliseconds, of members, of actions or of bytes, the token of a lock, or
   * the version of a property.
   */
  uint64_t count;
  /**
   * A peer id, or "". Never NULL.
   */
  const char *peer;
  /**
   * Another peer id, an address, the name of a lock or of a property, or "". Never NULL.
   */
  const char *other;
  /**
   * `length` bytes. Never NULL.
   */
  const uint8_t *data;
  /**
   * The number of bytes in `data`.
   */
  int32_t length;
  /**
   * One of the constants that `kind` names.
   */
  int32_t reason;
  /**
   * MMN_OK, an error, a host's own number, or one of the constants that `kind` names.
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
  /**
   * MMN_EVENT_RETURNED: messages that this host will not get.
   */
  uint64_t missed;
  /**
   * The index of `peer`, as mmn_peer_index returns it: 0 for this node, for a peer that is not
   * in the room, and where there is no `peer`.
   */
  uint32_t peer_index;
  /**
   * MMN_EVENT_MESSAGE: the channel that the sender named; 0 for the classic sends.
   */
  uint8_t channel;
  /**
   * MMN_EVENT_MESSAGE: one of MMN_DELIVERY_...
   */
  uint8_t delivery;
  /**
   * MMN_EVENT_DISCOVERY_REFUSED: one of MMN_FOUND_...
   */
  uint16_t found_by;
  /**
   * The room of the event.
   */
  MmnRoom room;
  /**
   * The index of an entry of the room's state, from 1, or a position in a transfer, from 0.
   */
  uint64_t index;
  /**
   * The time of an entry of the room's state, in milliseconds.
   */
  uint64_t time_ms;
  /**
   * MMN_EVENT_PROPERTY: the peer id of the owner, or "". Never NULL.
   */
  const char *owner;
} MmnEvent;

/**
 * Receives events. `user_data` is the pointer registered with the callback. The callbacks of a room
 * run one at a time and in order, on a thread of the library or, in poll mode, on the thread that
 * calls mmn_poll. Their arguments are valid during the call only. A callback may call every
 * function except mmn_close, mmn_poll, mmn_browse_close and mmn_browse_poll, and must not throw.
 */
typedef void (*MmnEventCallback)(void *user_data, const struct MmnEvent *event);

/**
 * Releases the `user_data` registered with a callback.
 */
typedef void (*MmnDropCallback)(void *user_data);

/**
 * The settings of a room's state, for MmnOptions. The same for all members. Begin with the defaults:
 *
 *     MmnStateOptions state = {0};
 *     state.struct_size = sizeof state;
 *     mmn_default_state_options(&state);
 *
 * The default of each field is in brackets.
 */
typedef struct MmnStateOptions {
  /**
   * sizeof(MmnStateOptions) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * Most confirmed entries that a member keeps: 256 to 65536 [4096]. A host that takes its events so
   * late that it lacks older ones begins anew, with a snapshot.
   */
  uint32_t tail_entries;
  /**
   * Most bytes of these entries, 65536 to 67108864 [4194304].
   */
  uint32_t tail_bytes;
  /**
   * Longest snapshot for mmn_provide_snapshot, in bytes, at most 67108864 [8388608].
   */
  uint32_t max_snapshot_bytes;
} MmnStateOptions;

/**
 * A change of one property, for mmn_set_properties. Set struct_size, key, and expected_version:
 * with 0 the property must not exist.
 */
typedef struct MmnPropertyChange {
  /**
   * sizeof(MmnPropertyChange) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * The sum of MMN_PROPERTY_..., or 0. MMN_PROPERTY_REMOVE excludes MMN_PROPERTY_KEEP_VALUE, and
   * MMN_PROPERTY_DIES_WITH_OWNER excludes MMN_PROPERTY_FALLS_TO_LEADER.
   */
  uint32_t flags;
  /**
   * The name of the property: 1 to 64 bytes without control characters.
   */
  const char *key;
  /**
   * The id of its new owner, which must be in the room; "" is no owner. NULL keeps the owner; a new
   * property then has none.
   */
  const char *owner;
  /**
   * Its value, length bytes. NULL is an empty one.
   */
  const uint8_t *value;
  /**
   * Length of value in bytes, at most 8192. 0 with MMN_PROPERTY_REMOVE and
   * MMN_PROPERTY_KEEP_VALUE.
   */
  int32_t length;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * The version that the property must have: MMN_ANY_VERSION, 0 if it must not exist, or a version
   * from MMN_EVENT_PROPERTY or mmn_property.
   */
  uint64_t expected_version;
} MmnPropertyChange;

/**
 * A property beside its value, from mmn_property.
 *
 * Later versions only append fields. The caller sets `struct_size` to its own
 * sizeof(MmnPropertyInfo), and the library writes no more than that many bytes.
 */
typedef struct MmnPropertyInfo {
  /**
   * Set by the caller: sizeof(MmnPropertyInfo) as it was compiled. mmn_property does not change it.
   */
  uint32_t struct_size;
  /**
   * The sum of MMN_PROPERTY_OWNER_ONLY, MMN_PROPERTY_DIES_WITH_OWNER and
   * MMN_PROPERTY_FALLS_TO_LEADER, as far as the property has them.
   */
  uint32_t flags;
  /**
   * Its version: the index of the entry that changed it last. Within a history it grows with each
   * change.
   */
  uint64_t version;
  /**
   * The id of its owner, or "". Never NULL. Valid as long as the value.
   */
  const char *owner;
  /**
   * Length of the value in bytes.
   */
  int32_t length;
  /**
   * 0.
   */
  uint32_t reserved;
} MmnPropertyInfo;

/**
 * Figures of the room's state at this member, from mmn_state_info.
 *
 * Later versions only append fields. The caller sets `struct_size` to its own sizeof(MmnStateInfo),
 * and the library writes no more than that many bytes.
 */
typedef struct MmnStateInfo {
  /**
   * Set by the caller: sizeof(MmnStateInfo) as it was compiled. mmn_state_info does not change it.
   */
  uint32_t struct_size;
  /**
   * Members that count for a majority.
   */
  uint32_t members;
  /**
   * 1 if a majority answered the last leader, or it was the room's first; 0 after a fork.
   */
  uint32_t exclusive;
  /**
   * Requests of this host without a result.
   */
  uint32_t pending;
  /**
   * The history of the state; 0 before the first.
   */
  uint64_t history;
  /**
   * The number of the leadership under which this member follows the state; 0 before the first.
   */
  uint64_t ballot;
  /**
   * The index of the last entry of which this host has received an event.
   */
  uint64_t index;
  /**
   * The index up to which the entries are confirmed.
   */
  uint64_t confirmed;
  /**
   * Upper estimate of the memory in use, in bytes.
   */
  uint64_t bytes;
} MmnStateInfo;

/**
 * The settings of MMN_STRATEGY_SEEDED, for MmnOptions. Begin with the defaults:
 *
 *     MmnSeededOptions seeded = {0};
 *     seeded.struct_size = sizeof seeded;
 *     mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, &seeded);
 *
 * The default of each field is in brackets, for MMN_SEEDED_PROFILE_WAN and MMN_SEEDED_PROFILE_LAN.
 * The five intervals are the same for all members of a room.
 */
typedef struct MmnSeededOptions {
  /**
   * sizeof(MmnSeededOptions) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * Whether this member is a seed: 0 is no, else yes [0]. The id of a seed must be on
   * quorum_roster.
   */
  uint32_t is_seed;
  /**
   * The addresses of the seeds, 1 to MMN_MAX_SEEDS, one per line, each as mmn_connect takes
   * it. Spaces around a line and empty lines are ignored. A seed may list itself. The library
   * dials them, and dials them again for as long as it needs them. Required [NULL].
   */
  const char *seeds;
  /**
   * Interval at which a member checks its deadlines, in milliseconds [500, 50]. Above 0.
   */
  uint32_t probe_interval_ms;
  /**
   * Time between two keep-alives, in milliseconds [10000, 200]. At least probe_interval_ms.
   */
  uint32_t heartbeat_interval_ms;
  /**
   * Silence after which the leader calls a member unreachable, and after which a leader without
   * a majority resigns, in milliseconds [30000, 600]. Above heartbeat_interval_ms.
   */
  uint32_t heartbeat_timeout_ms;
  /**
   * Silence after which the leader removes a member, and after which the members elect another
   * leader, in milliseconds [90000, 1500]. Above heartbeat_timeout_ms.
   */
  uint32_t ttl_timeout_ms;
  /**
   * Time between two attempts to join a cluster or to elect a leader, in milliseconds
   * [5000, 250]. Above 0.
   */
  uint32_t retry_interval_ms;
  /**
   * 0.
   */
  uint32_t reserved;
} MmnSeededOptions;

/**
 * The settings of MMN_STRATEGY_ETCD, for MmnOptions. Begin with the defaults:
 *
 *     MmnEtcdOptions etcd = {0};
 *     etcd.struct_size = sizeof etcd;
 *     mmn_default_etcd_options(&etcd);
 *
 * The default of each field is in brackets. Files are PEM, and read when the room opens.
 */
typedef struct MmnEtcdOptions {
  /**
   * sizeof(MmnEtcdOptions) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * Time for which the leadership, or a lock, of a process survives its crash, in seconds: 2 to
   * 86400 [10]. The servers may make it longer. A member that cannot reach them for two thirds
   * of it stops leading.
   */
  uint32_t ttl_seconds;
  /**
   * The client endpoints of the etcd servers, 1 to MMN_MAX_ETCD_ENDPOINTS, one per line:
   * http://host:port or https://host:port, all of one kind. Spaces around a line and empty lines
   * are ignored. Required [NULL].
   */
  const char *endpoints;
  /**
   * Prefix of the room's keys: 1 to 256 bytes without control characters. The same for all
   * members: members with another prefix elect a leader of their own, and are refused with
   * MMN_POLICY_MISMATCH. The library adds a slash, so that "test" has no key of "testa". A slash
   * at either end is refused, because it would give other keys for a prefix that looks the same.
   * Required [NULL].
   */
  const char *prefix;
  /**
   * Address at which clients reach this member while it leads, as they read it in etcd: any text
   * of at most 256 bytes without control characters. NULL is the first address of this member
   * with the port it is bound to [NULL].
   */
  const char *address;
  /**
   * The file with the certificates that sign those of the servers. Only with https. NULL is the
   * system's set of trusted certificates [NULL].
   */
  const char *ca_file;
  /**
   * The file with the certificate by which the servers know this client. Only with https, and
   * with key_file. NULL is none [NULL].
   */
  const char *cert_file;
  /**
   * The file with the private key of cert_file [NULL].
   */
  const char *key_file;
  /**
   * The etcd user to log in as, with password. NULL is none [NULL].
   */
  const char *user;
  /**
   * The password of user [NULL].
   */
  const char *password;
} MmnEtcdOptions;

/**
 * Settings of a room, for mmn_open. Later versions of the library append fields; a field that an
 * older host does not know keeps its default. Begin with the defaults, because 0 is no value for
 * many fields:
 *
 *     MmnOptions options = {0};
 *     options.struct_size = sizeof options;
 *     mmn_default_options(&options);
 *
 * The library copies what the pointers refer to during the call. The default of each field is in
 * brackets. Times are 1 millisecond to a day, unless a field allows 0.
 */
typedef struct MmnOptions {
  /**
   * sizeof(MmnOptions) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * Election strategy of the room: MMN_STRATEGY_RAFT, MMN_STRATEGY_GOSSIP, MMN_STRATEGY_SEEDED
   * or MMN_STRATEGY_ETCD [MMN_STRATEGY_RAFT]. Any other value is MMN_NOT_SUPPORTED, and so is
   * MMN_STRATEGY_ETCD in a build without it. The same for all members. With any strategy but
   * MMN_STRATEGY_RAFT, election_timeout_min_ms, election_timeout_max_ms,
   * manual_override_recovery, merge_policy and set_leader_authority have no effect. Gossip has
   * no votes, and mmn_set_gossip_windows sets its times. MMN_STRATEGY_SEEDED needs seeded, which
   * has its times, quorum_roster and state_directory. It excludes host_mode and eligible 0, and
   * auto_election has no effect. MMN_STRATEGY_ETCD needs etcd, which has its times. It excludes
   * host_mode, MMN_QUORUM_STATIC and any merge_policy and set_leader_authority but the defaults.
   * The members need no link to each other for it: a room of one takes part in the election.
   */
  uint32_t strategy;
  /**
   * The handler of all events of the room, messages included, from the first one on. NULL is
   * none [NULL].
   */
  MmnEventCallback on_event;
  /**
   * Passed to on_event [NULL].
   */
  void *user_data;
  /**
   * Called once with user_data, when the room needs it no more; see mmn_set_event_handler.
   * Without on_event it has no effect. NULL is none [NULL].
   */
  MmnDropCallback drop_fn;
  /**
   * The one address of this machine to use: IPv4 or IPv6, without port or brackets. NULL uses
   * every address of both kinds [NULL].
   */
  const char *bind_address;
  /**
   * The room secret, secret_length bytes, which members must know besides the session id. A dial
   * between members with different secrets fails with MMN_AUTHENTICATION_FAILED. NULL is no
   * secret [NULL].
   */
  const uint8_t *secret;
  /**
   * An Ed25519 private key in PKCS#8 (DER), identity_key_length bytes. Pass one to keep this
   * member's identity from one room to the next. NULL makes a new key at every start [NULL].
   */
  const uint8_t *identity_key;
  /**
   * Directory of the state that must survive the process: the path of an existing directory that
   * this member can write to. Each session id and peer id has a file of its own there. The file
   * holds the roster, the votes and, if identity_key is NULL, the private key, which the first
   * start makes and every later start reuses. A quorum_roster or identity_key that differs from
   * the file is MMN_INVALID_ARGUMENT. Two processes cannot use one directory as the same member.
   * Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED. Allowed with MMN_STRATEGY_ETCD,
   * where it keeps the lease: a process that restarts within ttl_seconds then leads on and does
   * not wait for its own earlier key. Else NULL [NULL].
   */
  const char *state_directory;
  /**
   * The path of a file for a trace of the room's elections, which `examples/simulate.rs` draws.
   * The library overwrites the file, writes up to 256 MiB, and records nothing that the host
   * sends. A path that cannot be written is MMN_INVALID_ARGUMENT. NULL is no trace [NULL].
   */
  const char *trace_path;
  /**
   * The voters of a static quorum: 1 to MMN_MAX_QUORUM_VOTERS peer ids, one per line. A space
   * and the fingerprint of a voter's key may follow its id: the SHA-256 of the public key
   * (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Then only the holder of that key is
   * that voter. Spaces around a line and empty lines are ignored. The same voters for all
   * members and for the whole session. A member that is not on the roster never leads and has no
   * vote. Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED, else NULL [NULL].
   */
  const char *quorum_roster;
  /**
   * The settings of MMN_STRATEGY_SEEDED, which requires them. NULL with any other strategy
   * [NULL].
   */
  const struct MmnSeededOptions *seeded;
  /**
   * The settings of MMN_STRATEGY_ETCD, which requires them. NULL with any other strategy [NULL].
   *
   */
  const struct MmnEtcdOptions *etcd;
  /**
   * Length of secret in bytes, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].
   */
  uint32_t secret_length;
  /**
   * Length of identity_key in bytes, at most 1024. 0 makes a new key [0].
   */
  uint32_t identity_key_length;
  /**
   * 1 opens the default room, which the functions without a room act on; its classic callbacks
   * run before on_event, and times that SetStartupGracePeriod and its like have set replace the
   * ones of these options. 0 opens a room of its own [0].
   */
  uint32_t is_default;
  /**
   * Thread that runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL
   * [MMN_DISPATCH_THREAD].
   */
  uint32_t dispatch_mode;
  /**
   * The UDP port to bind, at most 65535 [0]. 0 is any free port.
   */
  uint32_t bind_port;
  /**
   * Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or
   * MMN_DISCOVERY_CONNECT [MMN_DISCOVERY_OFF].
   */
  uint32_t discovery_mode;
  /**
   * UDP port of multicast discovery, at most 65535 [15353]. Above 0 unless discovery_mode is
   * MMN_DISCOVERY_OFF.
   */
  uint32_t mdns_port;
  /**
   * Most other members connected at a time, 1 to 65535 [64].
   */
  uint32_t max_connections;
  /**
   * Most other members that any member may have, as mmn_set_max_peers sets it, from the room's
   * first leader on; 0 is no limit [0]. The leader's own value applies until a leader calls
   * mmn_set_max_peers, so set the same value at all members that may lead.
   */
  uint32_t max_peers;
  /**
   * Longest message to send or accept, in bytes [262144]. Between two peers the smaller of both
   * values applies.
   */
  uint32_t max_message_size;
  /**
   * Most messages queued for one peer, 1 to 65535 [4096]. A send beyond that returns
   * MMN_SEND_QUEUE_FULL.
   */
  uint32_t send_queue_capacity;
  /**
   * Most messages queued for the host, 1 to 65535 [4096]. Beyond that, senders wait.
   */
  uint32_t incoming_queue_capacity;
  /**
   * Most bytes queued for one peer, and for the host, besides the limits in messages [4194304].
   * Above 0. An empty queue accepts one message of any allowed size.
   */
  uint32_t queue_bytes;
  /**
   * Whether messages wait for mmn_take_messages although there is an event handler, for at most 5
   * seconds after the room opens: 0 no, else yes [0]. For hosts that register their handler of
   * messages after they open the room.
   */
  uint32_t hold_messages;
  /**
   * Payloads longer than this, in bytes, are compressed if that saves at least a quarter [512].
   * 0 tries every payload.
   */
  uint32_t compression_threshold;
  /**
   * Time between two heartbeats, in milliseconds [500].
   */
  uint32_t heartbeat_interval_ms;
  /**
   * Heartbeat intervals of silence after which a peer is lost [3].
   */
  uint32_t heartbeat_timeout_multiplier;
  /**
   * Shortest time without a leader before an election, in milliseconds [1500]. Above
   * heartbeat_interval_ms, at most election_timeout_max_ms. If it is below the product of
   * heartbeat_interval_ms and heartbeat_timeout_multiplier, the library uses that product, and
   * raises the longest time by the same amount.
   */
  uint32_t election_timeout_min_ms;
  /**
   * Longest time without a leader before an election, in milliseconds [3000].
   */
  uint32_t election_timeout_max_ms;
  /**
   * Wait before the first dial of a lost peer, in milliseconds [1000]. It doubles with each
   * failed dial.
   */
  uint32_t reconnect_initial_ms;
  /**
   * Longest wait between two dials of a lost peer, in milliseconds [30000]. At least
   * reconnect_initial_ms. In the first minute after a loss the waits are shorter
   * (docs/life-of-a-peer.md, "Reconnection").
   */
  uint32_t reconnect_max_ms;
  /**
   * Dials of a lost peer before the library gives it up [0]. 0 is unlimited.
   */
  uint32_t reconnect_max_retries;
  /**
   * Whether the library dials lost peers again: 0 no, else yes [1].
   */
  uint32_t auto_reconnect;
  /**
   * Time for which the room keeps a lost member's place, in milliseconds [60000]. Above 0. With
   * MMN_STRATEGY_SEEDED at least until the leader has removed the member from the cluster.
   */
  uint32_t member_hold_ms;
  /**
   * Longest time without an answer after which an mmn_connect ends, in milliseconds [5000]. Each
   * step that gets an answer renews it, up to three times this in all; the first is the lookup
   * of a host name.
   */
  uint32_t handshake_timeout_ms;
  /**
   * Longest time that a peer's library may read nothing before this one drops the link, in
   * milliseconds [5000].
   */
  uint32_t write_timeout_ms;
  /**
   * Whether this member campaigns to become the leader: 0 no, else yes [1].
   */
  uint32_t auto_election;
  /**
   * Whether this member may lead: 0 makes it an observer, else yes [1].
   */
  uint32_t eligible;
  /**
   * Priority of this member in elections: the highest goes first [0]. Must be 0 with any
   * strategy but MMN_STRATEGY_RAFT.
   */
  int32_t priority;
  /**
   * Behaviour when a leader named by mmn_set_leader is lost: MMN_RECOVERY_HOLD or
   * MMN_RECOVERY_AUTO_ELECT [MMN_RECOVERY_HOLD]. With MMN_AUTHORITY_LEADER_ONLY always the
   * latter.
   */
  uint32_t manual_override_recovery;
  /**
   * Members that may call mmn_set_leader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY
   * [MMN_AUTHORITY_ANYONE]. The same for all members.
   */
  uint32_t set_leader_authority;
  /**
   * Leader that stays when two parts of a room merge: MMN_MERGE_LARGEST_SIDE or
   * MMN_MERGE_HIGHEST_TERM [MMN_MERGE_LARGEST_SIDE]. The same for all members.
   */
  uint32_t merge_policy;
  /**
   * Members whose majority elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC].
   * The same for all members. A room with a static quorum never has two leaders, and has none
   * without a majority of the voters in quorum_roster. It excludes MMN_STRATEGY_GOSSIP and
   * host_mode. With MMN_STRATEGY_SEEDED the quorum is static in any case.
   */
  uint32_t quorum_policy;
  /**
   * 0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most
   * MMN_MAX_QUORUM_VOTERS [0].
   */
  uint32_t quorum_voters;
  /**
   * Flags of the strategy [0], the same for all members: with MMN_STRATEGY_GOSSIP
   * MMN_GOSSIP_STRICT_LOWEST or 0; with MMN_STRATEGY_SEEDED the sum of MMN_SEEDED_STRICT_START
   * and MMN_SEEDED_NEVER_ALONE, one of them, or 0; else 0.
   */
  uint32_t strategy_flags;
  /**
   * Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST
   * [MMN_HOST_MODE_OFF]. The fixed host leads when mmn_open returns,
   * regardless of auto_election.
   */
  uint32_t host_mode;
  /**
   * Links of the room: MMN_TOPOLOGY_MESH or MMN_TOPOLOGY_STAR [MMN_TOPOLOGY_MESH]. The same for
   * all members. In a star guests link to the fixed host alone, and everything that they send
   * each other goes through it, encrypted from end to end. No guest learns the address of
   * another, and one reachable port, the fixed host's, is enough. There is no host migration. A
   * star needs host_mode.
   */
  uint32_t topology;
  /**
   * Entry of this member into the room: MMN_ENTRY_ANY, MMN_ENTRY_CREATE or MMN_ENTRY_JOIN
   * [MMN_ENTRY_ANY]. Use MMN_ENTRY_CREATE behind a button "host a game" and MMN_ENTRY_JOIN
   * behind "join a game": then a player whose dial fails does not become the leader of a room of
   * its own, and its MMN_EVENT_LEADER_CHANGED means that it is in a room. Two members that both
   * join refuse each other with MMN_LOOKING_FOR_ROOM. A member that joins and finds no room for
   * 10 seconds receives MMN_EVENT_NO_ROOM_FOUND. Once it has followed a leader it is a member as
   * any other. Other values than MMN_ENTRY_ANY exclude host_mode, MMN_QUORUM_STATIC,
   * MMN_STRATEGY_SEEDED and MMN_STRATEGY_ETCD, and MMN_ENTRY_CREATE excludes eligible 0.
   */
  uint32_t entry;
  /**
   * Longest time that the host may take no events while this member leads, in milliseconds, at
   * least 1000 [0, unlimited]. In poll mode the library measures from the last mmn_poll, else
   * from the start of the running callback. After that time the member yields to one that may
   * lead and whose host has taken events within half of that time. Without such a member it
   * leads on. It yields once in ten times that time. With host_mode and MMN_STRATEGY_SEEDED it
   * never yields.
   */
  uint32_t yield_after_ms;
  /**
   * In centralized mode, whether the leader relays each broadcast to all members but its origin:
   * 0 no, else yes [1].
   */
  uint32_t centralized_auto_forward;
  /**
   * MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Longest time that this member waits after
   * opening the room for the number of members to settle, before it takes part in elections, in
   * milliseconds [15000].
   */
  uint32_t startup_grace_ms;
  /**
   * MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Interval at which this member samples the
   * number of members during startup_grace_ms, in milliseconds [1000].
   */
  uint32_t sample_interval_ms;
  /**
   * MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Time that this member waits for a
   * declaration of the leader before it proposes itself, in milliseconds [10000].
   */
  uint32_t alive_threshold_ms;
  /**
   * MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Time for which a member that proposed
   * itself collects the proposals of others, in milliseconds [5000].
   */
  uint32_t election_duration_ms;
  /**
   * Most bytes a second that this member carries in all between members that have no direct path
   * to each other, while it does not lead: 1500 or more, or 0 to carry for none [131072]. Packets
   * beyond that wait, at most 150 milliseconds, and all pairs of members get the same share. A
   * leader always carries, without this limit.
   */
  uint32_t carry_bytes_per_second;
  /**
   * Paths that this member uses: MMN_PATHS_ALL or MMN_PATHS_RELAYED [MMN_PATHS_ALL]. With
   * MMN_PATHS_RELAYED no other member learns this one's address; the relays do. It then dials no
   * address and answers no dial, mmn_connect is MMN_NOT_SUPPORTED, and everything goes through a
   * relay, which adds to the round trip. It needs relays, and excludes discovery_mode and
   * MMN_STRATEGY_SEEDED.
   */
  uint32_t paths;
  /**
   * The relays where members of this room meet: 1 or 2, one per line, in order of preference. A
   * line is the address of a relay, `host:port`, `[ipv6]:port` or either without the port, which
   * is 7843 then. Behind it may follow, after spaces, `key=` with the fingerprint that the relay
   * shows (64 hexadecimal digits), so that no other process passes for the relay, and `token=`
   * with its token (26 characters), if it asks for one. Spaces around a line and empty lines are
   * ignored. The same for all members: members without a common relay do not meet there.
   *
   * With relays, the session id is a room code of mmn_generate_room_code, in any form that
   * mmn_normalize_room_code reads; all these forms are the same room. Any other session id is
   * MMN_INVALID_ARGUMENT. This member links to every relay that it can reach, and
   * MMN_EVENT_RELAY reports each. It finds the others of its room there, without any
   * mmn_connect, and a relay carries what finds no direct path. Relays exclude MMN_STRATEGY_ETCD.
   *
   * NULL contacts none, and the session id is any text, compared byte by byte: one that looks
   * like a room code, too [NULL].
   */
  const char *relays;
  /**
   * The settings of the room's state, which mmn_submit and mmn_set_properties change and which
   * outlives its leader: the same for all members, else a dial between them fails with
   * MMN_POLICY_MISMATCH. NULL is a room without a state, where these functions are
   * MMN_NOT_SUPPORTED [NULL].
   */
  const struct MmnStateOptions *state;
  /**
   * Whether this member asks its router for a port that leads to it: MMN_PORT_MAPPING_OFF or
   * MMN_PORT_MAPPING_ON [MMN_PORT_MAPPING_OFF]. With MMN_PORT_MAPPING_ON it asks the default
   * gateway of the network that it uses, and no other machine, by PCP or NAT-PMP, renews the port
   * while the room is open, and gives it back when the room closes.
   * MMN_EVENT_PORT_MAPPING reports the result, mmn_public_address returns the address, and the
   * other members learn it. With such a port members link directly that could not, because
   * their own routers admit only answers. IPv4 only. In a star only the host asks for a port, and the
   * guests do not learn its address from the room: give it to the players. Excluded by
   * MMN_PATHS_RELAYED.
   */
  uint32_t port_mapping;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * TURN servers (RFC 8656), for members whose network lets no UDP out: 1 to MMN_MAX_TURN_SERVERS, one
   * per line, tried in this order until one gives a port. A line is the URL of a server,
   * `turn:host:port` (UDP), `turn:host:port?transport=tcp` or `turns:host:port` (TLS over TCP; 443 passes
   * most networks); without the port it is 3478, or 5349 of `turns:`. Behind it follow, after
   * spaces, `username=` and `password=`, at most 508 bytes each: the server's long-term
   * credentials, which the game's server makes for a limited time. `turns:` verifies the server's
   * certificate with the certificates that the system trusts, or, with `key=` and the SHA-256 of the
   * certificate's public key (SubjectPublicKeyInfo, DER; 64 hexadecimal digits), accepts only a
   * certificate with that key. Spaces around a line and empty lines are ignored.
   *
   * This member holds a port at the server while the room is open. Relays and addresses that do not
   * answer within a second are dialled from there, too, and the other members learn the port's address
   * if no other path to this member works. The server sees the addresses of both ends, and encrypted
   * packets. MMN_EVENT_TURN reports its state, mmn_peer_path a path through it, and mmn_set_turn
   * replaces the servers, as before their credentials expire. IPv4 between the server and the others.
   * With MMN_PATHS_RELAYED it serves to reach the relays alone. Excluded by MMN_STRATEGY_ETCD. Members
   * may have different ones, or none. NULL contacts none [NULL].
   */
  const char *turn;
} MmnOptions;

/**
 * The card of a room, for mmn_show_card. Set what you do not use to 0 or NULL. Later
 * versions only append fields.
 */
typedef struct MmnCard {
  /**
   * sizeof(MmnCard) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * MMN_CARD_OPEN or 0.
   */
  uint32_t flags;
  /**
   * The game: 1 to 64 bytes of UTF-8, under the rules of a peer id. Browsers of other games do
   * not list the room.
   */
  const char *game;
  /**
   * The room's name for players: 1 to 64 bytes of UTF-8, under the rules of a peer id. It need
   * not be unique.
   */
  const char *name;
  /**
   * Bytes of the game, data_length of them. NULL is none.
   */
  const uint8_t *data;
  /**
   * Length of data, at most MMN_MAX_CARD_DATA_BYTES.
   */
  uint32_t data_length;
  /**
   * Most players, to show; 0 is no number. It limits nothing: mmn_set_max_peers does.
   */
  uint32_t max_players;
  /**
   * UDP port of the browsers' questions, at most 65535; 0 is MMN_DEFAULT_CARD_PORT. Browsers need
   * the same one.
   */
  uint32_t port;
  /**
   * 0.
   */
  uint32_t reserved;
} MmnCard;

/**
 * A browser of this process: a number that is never 0, and that no other browser of the process
 * has. It names no room.
 */
typedef uint64_t MmnBrowser;

/**
 * A room in the list of a browser. The struct and everything that it points to are valid during the
 * call only. Anybody in the network can show a card: treat its texts and bytes as a stranger's.
 *
 * Later versions only append fields. Read the fields that lie within `struct_size`, and ignore
 * changes that you do not know.
 */
typedef struct MmnListedRoom {
  /**
   * Bytes of this struct in the loaded library.
   */
  uint32_t struct_size;
  /**
   * The event: MMN_BROWSE_FOUND, MMN_BROWSE_CHANGED or MMN_BROWSE_GONE.
   */
  uint32_t change;
  /**
   * The browser.
   */
  MmnBrowser browser;
  /**
   * The number of the room in this browser. It stays when another member becomes the room's
   * leader, and no other room gets it.
   */
  uint64_t id;
  /**
   * The room's name for players. Never NULL.
   */
  const char *name;
  /**
   * The session id for mmn_open, if the card is MMN_CARD_OPEN; else "". Never NULL.
   */
  const char *session_id;
  /**
   * The leader's address for mmn_connect. Never NULL.
   */
  const char *address;
  /**
   * The fingerprint of the leader's key, as mmn_peer_fingerprint returns it. Never NULL.
   */
  const char *fingerprint;
  /**
   * Bytes of the game. Never NULL.
   */
  const uint8_t *data;
  /**
   * Length of data.
   */
  uint32_t data_length;
  /**
   * Members of the room, at least 1.
   */
  uint32_t players;
  /**
   * Most players; 0 is no number.
   */
  uint32_t max_players;
  /**
   * 1 if a member needs a secret (MmnOptions.secret) besides the session id, else 0.
   */
  uint32_t needs_secret;
} MmnListedRoom;

/**
 * Receives the changes of rooms, one call at a time, in MmnBrowseOptions.dispatch_mode. It may
 * call every function except mmn_browse_close, mmn_browse_poll, mmn_close and mmn_poll, and must
 * not throw.
 */
typedef void (*MmnListedRoomCallback)(void *user_data, const struct MmnListedRoom *room);

/**
 * Settings of a browser, for mmn_browse_open. Set what you do not use to 0 or NULL. Later versions
 * only append fields.
 */
typedef struct MmnBrowseOptions {
  /**
   * sizeof(MmnBrowseOptions) as the host was compiled, in bytes.
   */
  uint32_t struct_size;
  /**
   * Thread that runs on_room: MMN_DISPATCH_THREAD (one of the browser) or MMN_DISPATCH_POLL (the
   * one that calls mmn_browse_poll).
   */
  uint32_t dispatch_mode;
  /**
   * The game whose rooms are listed, as in MmnCard.
   */
  const char *game;
  /**
   * Receives the changes of rooms. Not NULL.
   */
  MmnListedRoomCallback on_room;
  /**
   * Passed to on_room.
   */
  void *user_data;
  /**
   * Called once with user_data, before mmn_browse_close returns. NULL is none.
   */
  MmnDropCallback drop_fn;
  /**
   * UDP port of the questions, at most 65535; 0 is MMN_DEFAULT_CARD_PORT.
   */
  uint32_t port;
  /**
   * 0.
   */
  uint32_t reserved;
} MmnBrowseOptions;

/**
 * The windows of MMN_STRATEGY_GOSSIP, in milliseconds, all above 0. All members of a room should
 * use the same values.
 *
 * Later versions only append fields.
 */
typedef struct MmnGossipWindows {
  /**
   * Set by the caller: sizeof(MmnGossipWindows) as it was compiled.
   */
  uint32_t struct_size;
  /**
   * Longest time that a member waits after opening the room for the number of members to settle
   * [15000]. After that it takes part in elections. The wait ends when it learns of a leader.
   */
  uint32_t startup_grace_ms;
  /**
   * Interval at which a member samples the number of members during startup_grace_ms [1000]. Two
   * equal samples in a row end the wait.
   */
  uint32_t sample_interval_ms;
  /**
   * Time that a member waits for a declaration of the leader before it proposes itself [10000].
   * The leader declares itself twice in that time. When the leader is lost, another leads after
   * half to twice that time, plus election_duration_ms.
   */
  uint32_t alive_threshold_ms;
  /**
   * Time for which a member that proposed itself collects the proposals of others [5000]. Then
   * it leads, unless a lower peer id also proposed itself or leads. If this is shorter than
   * alive_threshold_ms, others may propose themselves too late, and the leader may not be the
   * lowest id; see MMN_GOSSIP_STRICT_LOWEST.
   */
  uint32_t election_duration_ms;
} MmnGossipWindows;

/**
 * Options of a message. NULL instead of them, or 0 in every field but struct_size, is a reliable
 * message of channel 0, in the order of the calls.
 *
 * Later versions only append fields.
 *
 * ```c
 *     MmnSendOptions options = {0};
 *     options.struct_size = sizeof options;
 *     options.delivery = MMN_DELIVERY_SEQUENCED;
 *     options.key = unit;
 * ```
 */
typedef struct MmnSendOptions {
  /**
   * Set by the caller: sizeof(MmnSendOptions) as it was compiled.
   */
  uint32_t struct_size;
  /**
   * One of MMN_DELIVERY_... [MMN_DELIVERY_RELIABLE_ORDERED].
   */
  uint8_t delivery;
  /**
   * Channel that the receiver sees in MmnEvent.channel. With MMN_DELIVERY_RELIABLE_ORDERED
   * each channel keeps its own order, and in the network no channel waits for another [0].
   */
  uint8_t channel;
  /**
   * Priority, MMN_PRIORITY_LOW to MMN_PRIORITY_HIGHEST: of the messages that wait for the link
   * to a peer, the higher go first. Within a channel of MMN_DELIVERY_RELIABLE_ORDERED the order
   * of the calls still holds [MMN_PRIORITY_NORMAL].
   */
  int8_t priority;
  /**
   * 0 or MMN_SEND_PARTIAL (mmn_broadcast only) [0].
   */
  uint8_t flags;
  /**
   * Lifetime of the message, in milliseconds; 0 is unlimited. A message that waits longer, here
   * or in the queue to the receiver's host, is dropped and counted. MMN_DELIVERY_UNRELIABLE and
   * MMN_DELIVERY_SEQUENCED only [0].
   */
  uint32_t ttl_ms;
  /**
   * Flags of the host's own, which the receiver sees in MmnEvent.flags. Bit 0 arrives clear
   * [0].
   */
  uint8_t user_flags;
  /**
   * 0.
   */
  uint8_t reserved;
  /**
   * 0.
   */
  uint16_t reserved2;
  /**
   * Subject of the message, as the host numbers it. MMN_DELIVERY_SEQUENCED only [0].
   */
  uint64_t key;
} MmnSendOptions;

/**
 * Statistics of a peer, from mmn_peer_stats. Counts of bytes, packets and messages start at 0 when
 * the peer joins, and continue when a lost link comes back.
 *
 * Later versions only append fields. The caller sets `struct_size` to its own sizeof(MmnPeerStats),
 * and the library writes no more than that many bytes.
 */
typedef struct MmnPeerStats {
  /**
   * Set by the caller: sizeof(MmnPeerStats) as it was compiled, at least 8. mmn_peer_stats does not
   * change it.
   */
  uint32_t struct_size;
  /**
   * Smoothed round-trip time in microseconds (RFC 6298, from heartbeats). 0 before the first
   * measurement.
   */
  uint32_t rtt_us;
  /**
   * Mean deviation of the round-trip time in microseconds (RTTVAR of RFC 6298, from the same
   * heartbeats). 0 before the first measurement.
   */
  uint32_t jitter_us;
  /**
   * Packets to the peer that were lost, in parts per million of those sent. The library sends
   * lost packets again, so that they lose no messages.
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
   * Messages passed to the network for the peer, each counted once.
   */
  uint64_t messages_sent;
  /**
   * Messages of the peer that this node accepted.
   */
  uint64_t messages_received;
  /**
   * Messages in the queue to the peer that it has not acknowledged yet.
   */
  uint32_t queue_messages;
  /**
   * Age of the oldest message in that queue, in milliseconds; 0 when the queue is empty.
   */
  uint32_t queue_age_ms;
  /**
   * Bytes of the payloads in that queue.
   */
  uint64_t queue_bytes;
  /**
   * Congestion window in bytes: the most that may be in flight to the peer. 0 while the link is
   * lost.
   */
  uint64_t congestion_window;
  /**
   * Largest UDP payload that the path carries, in bytes, as measured. 0 while the link is lost.
   */
  uint32_t path_mtu;
  /**
   * Number of times that the link was lost and came back.
   */
  uint32_t reconnects;
  /**
   * Path of the messages to the peer, as mmn_peer_path returns it: MMN_PATH_DIRECT,
   * MMN_PATH_THROUGH_LEADER, MMN_PATH_THROUGH_MEMBER, MMN_PATH_THROUGH_RELAY or
   * MMN_PATH_THROUGH_TURN. MMN_PATH_DIRECT while the link is lost.
   */
  uint32_t path;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Time for which the peer's host had taken no events when the peer sent its newest heartbeat,
   * in milliseconds: in poll mode the time since its last mmn_poll, else the time for which
   * its running callback had been running. 0 while the link is lost.
   */
  uint32_t host_silent_ms;
  /**
   * 0.
   */
  uint32_t reserved2;
} MmnPeerStats;

/**
 * Statistics of the room at this member, from mmn_room_stats.
 *
 * Later versions only append fields. The caller sets `struct_size` to its own sizeof(MmnRoomStats),
 * and the library writes no more than that many bytes.
 */
typedef struct MmnRoomStats {
  /**
   * Set by the caller: sizeof(MmnRoomStats) as it was compiled, at least 16. mmn_room_stats does
   * not change it.
   */
  uint32_t struct_size;
  /**
   * Members of the room without a link to this member, because one of both has reached its
   * `max_connections` (MMN_EVENT_UNLINKED_PEER): no broadcast of the one reaches the other.
   */
  uint32_t unlinked_peers;
  /**
   * Broadcasts that this member queued with success and that members without a link missed, one
   * for each broadcast and each such member, since the room was opened. In a centralized room
   * the leader counts the broadcasts that it relays.
   */
  uint64_t missed_broadcasts;
  /**
   * Maximum difference between mmn_room_time_ms here and at the leader, in microseconds: half of
   * the best of the last round trips to it, the drift of the clocks since (at most one part in
   * 500), and the correction that is under way. 0 at the leader. 4294967295 while no leader is
   * known or nothing was measured.
   */
  uint32_t room_time_error_us;
  /**
   * 0.
   */
  uint32_t reserved;
} MmnRoomStats;

/**
 * Receives a log record: `room` is the room whose thread made it, 0 for a thread of the host,
 * `level` is MMN_LOG_ERROR to MMN_LOG_TRACE, and `message` is one line without a line break, valid
 * during the call.
 *
 * It runs on the thread that makes the record, which may belong to the library or to the host, and
 * on several threads at a time. It should be quick, because that thread waits for it. Inside it
 * the host may call queries and the log functions; all others return MMN_WOULD_DEADLOCK. It does
 * not receive records made inside it. It must not throw.
 */
typedef void (*MmnLogCallback)(void *user_data, uint64_t room, int32_t level, const char *message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The ABI version of the loaded library. A host works with every library whose ABI version is at
 * least the MMN_ABI_VERSION that the host was compiled with. Works without a room.
 */
uint32_t mmn_abi_version(void);

/**
 * The version of the loaded library, as "major.minor.patch". Works without a room.
 *
 * The string is constant. It stays valid for as long as the library is loaded, and does not
 * invalidate the strings of other calls.
 */
const char *mmn_library_version(void);

/**
 * Sets the one handler for all events of a room, messages included; NULL removes it. It replaces
 * MmnOptions.on_event, which receives the room's events from the first one on. If a classic
 * callback for the same event is registered too, that callback runs first.
 *
 * The new handler first receives the present state: the leader, if one is known, then
 * MMN_EVENT_JOINED for every peer, and MMN_EVENT_RECONNECTING for each whose link is lost. While a
 * handler is registered the library neither holds nor discards messages.
 *
 * When the call returns, the previous handler is not running and never runs again: the call waits
 * for it, unless it is made inside a callback of this or another room. mmn_close removes the
 * handler.
 *
 * The library calls `drop_fn` (NULL for none) exactly once with `user_data`, after the handler's
 * last call has ended: when the handler is replaced or removed, or before mmn_close returns. It
 * runs on the thread that made that call, or on the handler's thread. Inside `drop_fn` the rules
 * of a callback apply. It never runs in a forked child. With a NULL `callback`, and when this call
 * fails, the library does not use `user_data` and `drop_fn`.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a log callback.
 *
 * `callback` and `drop_fn` have these types, and may be called with `user_data` on any thread.
 */
int32_t mmn_set_event_handler(MmnRoom room,
                              MmnEventCallback callback,
                              void *user_data,
                              MmnDropCallback drop_fn);

/**
 * In a room that was opened with hold_messages: from now on the event handler receives messages,
 * the ones that wait first. Until then the messages of others wait where they are, and slow their
 * senders down; the ones that this node sends to itself wait in the queue. 5 seconds after the room
 * opened, the library discards the messages that still wait, and all later ones until this call.
 * Messages that may be lost do not wait.
 *
 * In other rooms, and at each later call, nothing changes.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a log callback.
 */
int32_t mmn_take_messages(MmnRoom room);

/**
 * In poll mode, runs the callbacks of up to `max` queued events and messages, in order, on the
 * calling thread. Returns at once and never waits for the network. Call it once per frame, on the
 * thread that should run the callbacks.
 *
 * Events that no callback is registered for are skipped and do not count. An event that several
 * callbacks receive counts once.
 *
 * Returns the number of events, 0 when the queue is empty, or an error, in which case nothing ran:
 * MMN_INVALID_ARGUMENT (`max` is not above 0, or the room is not in poll mode),
 * MMN_NOT_INITIALIZED or MMN_WOULD_DEADLOCK (inside a callback, or while another thread is in this
 * function).
 */
int32_t mmn_poll(MmnRoom room, int32_t max);

/**
 * Fills `options` with the defaults. The caller sets struct_size first. The library writes no byte
 * beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, or struct_size is not a valid size).
 * On failure nothing is written.
 *
 * `options` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_default_state_options(struct MmnStateOptions *options);

/**
 * Submits an action: `length` bytes at `data`, at most 16384, with a message type of 0x0100 or
 * higher. The leader orders the actions of all members. Once a majority has one, each member's host
 * receives it as MMN_EVENT_ACTION, the author's too, and all hosts in the same order. The library
 * keeps the action over losses of the leader, also while no member leads.
 *
 * The call does not wait. `*request`, unless `request` is NULL, receives a number above 0, which no
 * other request of this room gets. One MMN_EVENT_ACTION_RESULT with this number follows, perhaps on
 * another thread before the call returns, unless the room ends first.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (the room has no
 * state), MMN_MESSAGE_TOO_LARGE or MMN_SEND_QUEUE_FULL (256 requests of this host, or 262144 bytes
 * of them, have no result yet). On failure no event follows, and `*request` is unchanged.
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0. `request` is NULL or
 * writable.
 */
int32_t mmn_submit(MmnRoom room, const uint8_t *data, int32_t length, uint16_t msg_type, uint64_t *request);

/**
 * Submits a set of `count` changes of properties, 1 to 32: the room makes all of them or none. They
 * are ordered among the actions, and each member's host receives an MMN_EVENT_PROPERTY for each
 * changed property. The changes lie one after another, as far apart as the struct_size of the first
 * one; the library does not read that of the others. A key is in a set once. Keys, owners and values
 * of a set have at most 32768 bytes together.
 *
 * MMN_EVENT_ACTION_RESULT reports the outcome: MMN_OK; MMN_CONFLICT (a property has another version
 * than expected_version, or a new owner is not in the room); MMN_STATE_FULL (more than 1024
 * properties, 128 of one owner, or 524288 bytes of keys and values); MMN_REJECTED (a property with
 * MMN_PROPERTY_OWNER_ONLY has another owner); or MMN_OUTCOME_UNKNOWN. Unless it is MMN_OK, nothing
 * has changed; with MMN_OUTCOME_UNKNOWN something may have. An expected version holds only in the history in
 * which the host read it: if the room takes over another history, the outcome is MMN_CONFLICT.
 *
 * `request`, and what the call returns, are as with mmn_submit. MMN_MESSAGE_TOO_LARGE stands for too
 * many changes, too, and MMN_INVALID_ARGUMENT for changes that exclude each other.
 *
 * `changes` is NULL, or points to `count` structs, as far apart as the first four bytes say, whose
 * pointers are NULL or lead to strings that end with a NUL, and to length readable bytes. `request`
 * is NULL or writable.
 */
int32_t mmn_set_properties(MmnRoom room,
                           const struct MmnPropertyChange *changes,
                           int32_t count,
                           uint64_t *request);

/**
 * The value of the property `key`, as of the last entry of which this host has received an event;
 * all changes of an entry show with its first event. Writes its length, its owner and more to
 * `info`, whose `struct_size` the caller has set; NULL asks for the value alone. Never waits for the
 * network.
 *
 * NULL when the room has no such property, or on failure, which sets mmn_last_error_code: `key` is no
 * key, struct_size is not a valid size, the room has no state, or no room is open. `info` is
 * unchanged then.
 *
 * Inside a callback, the value and the owner are valid until the callback returns, whatever it calls.
 * Elsewhere they are valid until this thread's next call of this function or of one that returns a
 * string.
 *
 * `key` is NULL or ends with a NUL. `info` is NULL, or points to struct_size writable bytes, the
 * first four of which are struct_size.
 */
const uint8_t *mmn_property(MmnRoom room, const char *key, struct MmnPropertyInfo *info);

/**
 * The names of the properties that `owner` owns, or of all properties if `owner` is NULL, as of the
 * last entry of which this host has received an event: sorted as bytes, joined by '\n'. "" when
 * there are none. NULL when `owner` is not an id, the room has no state, or no room is open; these
 * set mmn_last_error_code.
 *
 * The string is valid until this thread's next call that returns a string.
 *
 * `owner` is NULL or ends with a NUL.
 */
const char *mmn_property_keys(MmnRoom room, const char *owner);

/**
 * Answers the MMN_EVENT_SNAPSHOT_WANTED with this number: `length` bytes at `data`, a copy of the
 * host's state as it was inside that event, without the properties, which the library has. The host
 * may answer up to 120 seconds later, from any thread. With NULL `data` and `length` 0 it declines,
 * and the library asks another member's host.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (the room has no
 * state), MMN_PEER_NOT_FOUND (no member waits for it any more), MMN_MESSAGE_TOO_LARGE (longer than
 * max_snapshot_bytes; the request goes on) or MMN_SUPERSEDED (the room has taken over another
 * history).
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0.
 */
int32_t mmn_provide_snapshot(MmnRoom room, uint64_t request, const uint8_t *data, int32_t length);

/**
 * Writes figures of the room's state to `info`, whose `struct_size` the caller has set. Writes at
 * most min(struct_size, the size that this library knows) bytes. Never waits for the network.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (`info` is NULL, or struct_size is not a valid size),
 * MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (the room has no state). On failure nothing is written.
 *
 * `info` is NULL, or points to struct_size writable bytes, the first four of which are struct_size.
 */
int32_t mmn_state_info(MmnRoom room, struct MmnStateInfo *info);

/**
 * Offers `length` bytes, at most MMN_MAX_TRANSFER_BYTES, to one peer, also while it is reconnecting.
 * The library copies `data` and `tag` before the call returns, and computes a digest: about 0.1 s for
 * 64 MiB. `tag` is the host's own, at most MMN_MAX_TRANSFER_TAG_BYTES: a file name, for example.
 * Either may be NULL when its length is 0. `*transfer`, unless `transfer` is NULL, receives the number
 * of the transfer, which no other transfer between the two members gets while both are in the room.
 *
 * The peer's host receives MMN_EVENT_TRANSFER_OFFERED and has 60 s to answer. The bytes go below all
 * messages. A transfer outlives a lost link: it goes on from the byte that has arrived when the peer
 * returns. Both hosts receive MMN_EVENT_TRANSFER_PROGRESS, and exactly one MMN_EVENT_TRANSFER_RESULT;
 * it may come on another thread before the call returns. mmn_close ends this host's transfers without
 * an event.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also for this node's own id), MMN_NOT_INITIALIZED,
 * MMN_MESSAGE_TOO_LARGE (`data` or `tag` is too long), MMN_PEER_NOT_FOUND (neither connected nor
 * reconnecting), MMN_NOT_SUPPORTED (the peer's library has no transfers) or MMN_SEND_QUEUE_FULL (8
 * transfers to the peer have not ended; or all that have not ended would keep more than 134217728
 * bytes; or 64 events of earlier ones with the peer wait for this host). On failure no event follows, and
 * `*transfer` is unchanged.
 *
 * `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, and `tag` to
 * `tag_length`; each may be NULL when its length is 0. `transfer` is NULL or writable.
 */
int32_t mmn_send_transfer(MmnRoom room,
                          const char *peer_id,
                          const uint8_t *data,
                          int32_t length,
                          const uint8_t *tag,
                          int32_t tag_length,
                          uint64_t *transfer);

/**
 * Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED into `buffer`, which has `capacity` bytes: as
 * many as the transfer, or more. The library writes into it on its own threads. So `buffer` must stay
 * until MMN_EVENT_TRANSFER_RESULT, until mmn_cancel_transfer of it has returned MMN_OK, or until
 * mmn_close has returned, whichever comes first. Only a complete transfer has filled it.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also if `capacity` is too small: the offer then waits on),
 * MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no offer of that peer with that number waits: it was
 * answered or has ended). On failure the library does not use `buffer`.
 *
 * `peer_id` is NULL or ends with a NUL. `buffer` points to `capacity` writable bytes, which the host does not
 * use until then; it may be NULL when `capacity` is 0.
 */
int32_t mmn_accept_transfer(MmnRoom room,
                            const char *peer_id,
                            uint64_t transfer,
                            void *buffer,
                            int32_t capacity);

/**
 * Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED in parts: an MMN_EVENT_TRANSFER_PART for each, in
 * order. At most 262144 bytes of them wait for this host; the sender waits while it takes none.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no offer of that
 * peer with that number waits: it was answered or has ended).
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_accept_transfer_in_parts(MmnRoom room, const char *peer_id, uint64_t transfer);

/**
 * Refuses the offer of a transfer, or cancels a transfer that this host sends or receives. Both hosts
 * receive MMN_EVENT_TRANSFER_RESULT. Once this has returned MMN_OK, the library no longer uses the buffer
 * of mmn_accept_transfer. If the sender cancels while the last bytes arrive, its result is
 * MMN_TRANSFER_CANCELLED_BY_SENDER, although the receiver may have MMN_TRANSFER_COMPLETE.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no transfer with
 * that peer has this number, or it has ended).
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_cancel_transfer(MmnRoom room, const char *peer_id, uint64_t transfer);

/**
 * Fills `options` with the defaults. The caller sets struct_size first. The library writes no byte
 * beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, or struct_size is not a valid size).
 *
 * `options` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_default_options(struct MmnOptions *options);

/**
 * Opens a room. Does not wait for other members. At most 4096 rooms are open in a process.
 *
 * `peer_id` names this member: 1 to 64 bytes of UTF-8, without control characters, bidirectional
 * overrides (U+202A to U+202E, U+2066 to U+2069), or white space at either end. `session_id` names
 * the room: 1 to 128 bytes under the same rules; with
 * MmnOptions.relays it is a room code, however it is written. All members of a room pass the same
 * session id.
 * The library reads `options` during the call only; NULL is the defaults of mmn_default_options.
 *
 * The library writes the number of the room to `room` before the first callback of the room runs,
 * and only if it returns MMN_OK. mmn_close must follow. In a callback this may be called.
 *
 * With is_default the room is the default room, which the functions without a room act on. A call
 * during an mmn_close of the default room on another thread waits for it, or, inside a callback, is
 * refused with MMN_ALREADY_INITIALIZED.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (mmn_last_error_message names the first such argument or
 * field), MMN_ALREADY_INITIALIZED (is_default, and the default room is open),
 * MMN_MAX_CONNECTIONS_REACHED (4096 rooms are open), MMN_NOT_SUPPORTED (this build does not have
 * the strategy), MMN_CONNECTION_FAILED (the address or the port cannot be bound;
 * mmn_last_error_message names both) or MMN_INTERNAL_ERROR. On failure the library does not use
 * on_event, user_data and drop_fn.
 *
 * Both strings are NULL or end with a NUL. `options` is NULL, or points to struct_size readable
 * bytes, the first four of which are struct_size. What its pointers refer to is readable. on_event
 * and drop_fn have their types, and may be called with user_data on any thread. `room` is NULL or
 * points to 8 writable bytes.
 */
int32_t mmn_open(const char *peer_id,
                 const char *session_id,
                 const struct MmnOptions *options,
                 MmnRoom *room);

/**
 * Begins to leave a room, and returns at once: from now on the number of the room names no open
 * room except for mmn_close, which must follow. The library sends accepted messages for up to 1
 * second and notifies the other members. Callbacks run until mmn_close. To leave many rooms, begin
 * with all of them, and close them then. May be called inside a callback.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t mmn_leave(MmnRoom room);

/**
 * Leaves a room and closes it. The library sends accepted messages for up to 1 second, notifies
 * the other members, and releases every thread and socket of the room. It takes at most 2 seconds,
 * plus the time of a running callback, which must not wait for the thread that calls this. Of two
 * concurrent calls for a room the second waits for the first, and returns MMN_NOT_INITIALIZED.
 *
 * When it returns, no callback of the room runs or will run, and the event handler's drop_fn has
 * run. If no room is open and no log callback is registered, the host may unload the library. A
 * host name that the system is still resolving is abandoned, because the system offers no way to
 * cancel that: its thread calls nothing of the host and ends with the answer. The library then
 * stays in memory until the process ends, even if the host unloads it.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a callback of any room,
 * also in one that mmn_poll runs (nothing changes; mmn_leave is allowed there).
 */
int32_t mmn_close(MmnRoom room);

/**
 * Whether a room is open: 1 or 0. It is 0 from the beginning of mmn_leave and mmn_close on.
 */
uint8_t mmn_is_open(MmnRoom room);

/**
 * The default room, which InitializeNetwork, InitializeNetworkWithConfig, or mmn_open with
 * is_default has opened, also while it is closing. 0 if there is none.
 */
MmnRoom mmn_default_room(void);

/**
 * Whether this member is announced in the local network: 1 or 0. It becomes 1 when the first
 * announcement goes out on a network interface, milliseconds after the room opens. It is 0 if
 * discovery is off, no interface is usable, or
 * the room is not open.
 */
uint8_t mmn_is_announced(MmnRoom room);

/**
 * The code of the calling thread's last failed call; MMN_OK if no call has failed on this thread.
 * A successful call leaves it unchanged.
 */
int32_t mmn_last_error_code(void);

/**
 * The message of the calling thread's last failed call. It names the argument, its value, the
 * limit and what to do. "" if no call has failed on this thread. Never NULL.
 *
 * In a thread's last destructors (of pthread keys, for example) it may be the description of the
 * code instead.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_last_error_message(void);

/**
 * The meaning of a code, in one sentence. An unknown number gets a sentence, too. Works before
 * initialization.
 *
 * The string is constant. It stays valid for as long as the library is loaded, and does not
 * invalidate the strings of other calls.
 */
const char *mmn_describe_error(int32_t code);

/**
 * Connects to the member at `addr`: "ip:port", "[ipv6]:port" or "name:port". The library removes
 * blanks, line ends and invisible characters around it, and takes full-width characters as ASCII
 * ones, so that text which a player pastes or types works. A link-local IPv6 address needs its
 * zone, the name or the number of this machine's interface: "[fe80::1%eth0]:port".
 *
 * After MMN_OK, exactly one MMN_EVENT_CONNECTION_RESULT follows, whose `other` is `addr` as passed
 * here: within handshake_timeout_ms if nothing answers; each answer renews that time, up to three
 * times that in all. If five dials to an address within a minute fail as a dial with a wrong session id or
 * secret does, the library does not dial that address for a while: the result is MMN_RATE_LIMITED,
 * and the data of MMN_EVENT_CONNECTION_RESULT names the number of seconds. A host name that does
 * not resolve is MMN_NAME_NOT_RESOLVED.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (malformed, or this node's own address), MMN_NOT_INITIALIZED,
 * MMN_NOT_SUPPORTED (the room was opened with MMN_PATHS_RELAYED) or MMN_MAX_CONNECTIONS_REACHED
 * (too many attempts without a result).
 *
 * `addr` is NULL or ends with a NUL.
 */
int32_t mmn_connect(MmnRoom room, const char *addr);

/**
 * Closes the connection to a peer. Messages accepted for it get up to 1 second to arrive. Neither
 * side dials the other again until one of them calls mmn_connect. An earlier mmn_connect of this
 * node that reaches the peer only now ends with MMN_REJECTED. An unknown id is MMN_OK. In a room
 * with a fixed host, the room ends for the guest of the two.
 *
 * `code` and the `length` bytes at `data` (at most 3072) are for the hosts: they come with
 * MMN_EVENT_LEFT (MMN_LEFT_DISCONNECTED) at both ends, and with MMN_EVENT_ROOM_ENDED
 * (MMN_END_DISCONNECTED) where the room ends. A peer that is reconnecting does not receive them.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (`peer_id` is not an id, or this node's own; `length` is
 * above 3072) or MMN_NOT_INITIALIZED.
 *
 * `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, or may be NULL
 * when `length` is 0.
 */
int32_t mmn_disconnect(MmnRoom room, const char *peer_id, int32_t code, const uint8_t *data, int32_t length);

/**
 * An address that other members can pass to mmn_connect: the bound port at this machine's best
 * address, the first of mmn_local_addresses. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_local_address(MmnRoom room);

/**
 * All addresses that other members can pass to mmn_connect, one a line: the address, a blank, and
 * the name of the interface, which may contain blanks. At most 64, the likeliest first: IPv4
 * addresses of networks before IPv6 ones, both before those of tunnels, VPNs and bridges to
 * virtual machines. A loopback address only if the machine has no other. An address behind a
 * router works from inside its network only. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_local_addresses(MmnRoom room);

/**
 * The address at which members on the internet reach this node: "ip:port", or "[ipv6]:port". With
 * MmnOptions.port_mapping it is the one that the router claims to forward here, unless what the
 * others see speaks against that (MMN_EVENT_PORT_MAPPING). Until a member or a relay sees this node
 * at an address of the internet, that is the router's word alone: one that lies can name any machine's
 * address. Else it is the one at which most members see this node. A router shows its own address
 * for all machines behind it. Give the address to players who dial this node only if the router lets
 * them in: one that forwards no port, and admits only answers, does not.
 *
 * NULL when the router forwards no port and no member sees this node at an address of the internet,
 * as in a local network, or when no room is open. The address changes with the members and with the
 * router.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_public_address(MmnRoom room);

/**
 * This node's peer id. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_local_id(MmnRoom room);

/**
 * The room's session id. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_session_id(MmnRoom room);

/**
 * The number of connected peers, without this node. -1 when no room is open.
 */
int32_t mmn_peer_count(MmnRoom room);

/**
 * The ids of the connected peers, without this node: sorted as bytes, joined by '\n'. "" when
 * there are none, NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_peers(MmnRoom room);

/**
 * The ids of the members of the room, without this node: the peers in mmn_peers and the
 * reconnecting ones, sorted as bytes, joined by '\n'. mmn_peer_status distinguishes them. "" if
 * there are none, NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_members(MmnRoom room);

/**
 * The address of a peer, for mmn_connect: the IP address at which this node's link reaches it,
 * with the port on which it accepts links. While the peer is reconnecting, that of its last link.
 * NULL when the peer is neither connected nor reconnecting, `peer_id` is not an id, or no room is
 * open; the last two set mmn_last_error_code.
 *
 * The string is valid until this thread's next call that returns a string.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
const char *mmn_peer_address(MmnRoom room, const char *peer_id);

/**
 * Replaces the TURN servers of MmnOptions.turn and their credentials, in the same form. NULL uses none
 * from now on. A port at a server whose line is in the list again, word for word, stays; any other is given
 * back (MMN_EVENT_TURN with MMN_CONNECTION_FAILED), and the library asks the servers of the list at once.
 * MMN_OK does not mean that a server answers, and of two calls the last list counts. Call it before the credentials
 * expire, or when MMN_EVENT_TURN reports MMN_AUTHENTICATION_FAILED. A server may let an expired member keep
 * the port until the connection is lost, so a new list may break a path that still works: pass it while
 * the game can wait a second.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (MMN_STRATEGY_ETCD). On
 * failure nothing has changed.
 *
 * `servers` is NULL or ends with a NUL.
 */
int32_t mmn_set_turn(MmnRoom room,
                     const char *servers);

/**
 * The path of the messages to and from a peer: MMN_PATH_DIRECT, MMN_PATH_THROUGH_LEADER,
 * MMN_PATH_THROUGH_MEMBER, MMN_PATH_THROUGH_RELAY or MMN_PATH_THROUGH_TURN. MMN_EVENT_PATH_CHANGED
 * reports each change.
 * MmnPeerStats.path has the same number. mmn_peer_carrier names the member between the two.
 *
 * Returns that, or MMN_INVALID_ARGUMENT (`peer_id` is not an id), MMN_NOT_INITIALIZED or
 * MMN_PEER_NOT_FOUND (this node has no link to the peer: the peer is unknown or reconnecting, or
 * this node itself).
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_peer_path(MmnRoom room, const char *peer_id);

/**
 * The id of the member that carries the packets to a peer: the leader with MMN_PATH_THROUGH_LEADER,
 * another member with MMN_PATH_THROUGH_MEMBER. Each end of the link chooses the member that carries
 * its own packets, so the peer may name another one.
 *
 * NULL when no member carries them: the link is direct or over a relay, or this node has no link to
 * the peer. NULL also when `peer_id` is not an id, or no room is open; these two set mmn_last_error_code.
 *
 * The string is valid until this thread's next call that returns a string.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
const char *mmn_peer_carrier(MmnRoom room, const char *peer_id);

/**
 * The index of a peer: a number from 1, for hosts that keep peers in arrays. A peer has it from
 * before its MMN_EVENT_JOINED is queued until the callbacks for its MMN_EVENT_LEFT have returned,
 * also while it is reconnecting. No later session in this room has the same index. It is this
 * node's own: another member gives the peer another index. MmnEvent.peer_index has it, too.
 *
 * Returns 0 for this node, when the peer is unknown, `peer_id` is not an id, or no room is open;
 * the last two set mmn_last_error_code.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
uint32_t mmn_peer_index(MmnRoom room, const char *peer_id);

/**
 * The id of the peer with this index. NULL when no peer has it, which is no error, or when no room
 * is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_peer_id(MmnRoom room, uint32_t index);

/**
 * The smoothed round-trip time to a peer, in milliseconds, rounded up. -1 when it is not measured
 * yet, the peer is unknown, `peer_id` is not an id, or no room is open; the last two set
 * mmn_last_error_code.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_peer_rtt_ms(MmnRoom room, const char *peer_id);

/**
 * The state of the link to a peer: MMN_PEER_CONNECTED, MMN_PEER_RECONNECTING or
 * MMN_PEER_HANDSHAKING. -1 when the peer is unknown, `peer_id` is not an id, or no room is open;
 * the last two set mmn_last_error_code.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_peer_status(MmnRoom room, const char *peer_id);

/**
 * Shows a card of the room in the local network, in place of an earlier one; NULL takes it down.
 * Browsers of the same game list it for as long as the room has a leader that shows a card. The
 * library adds the number of members, the address, and whether a secret is needed.
 *
 * The leader alone shows its card; another member keeps its own for the time when it leads. So call
 * this at every member, with the same card: then the room stays in the lists when its leader goes.
 * A room of which no member has called this answers no browser.
 *
 * The card holds the session id only with MMN_CARD_OPEN: anybody in the network can then join,
 * unless a secret is needed.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (mmn_last_error_message names the field),
 * MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (MMN_PATHS_RELAYED, or bind_address is an IPv6 address) or
 * MMN_CONNECTION_FAILED (the port cannot be bound). On failure nothing has changed.
 *
 * `card` is NULL, or points to struct_size readable bytes, the first four of which are struct_size.
 * What its pointers refer to is readable.
 */
int32_t mmn_show_card(MmnRoom room, const struct MmnCard *card);

/**
 * Opens a browser: a list of the rooms of one game in the local network, by the cards that they
 * show (mmn_show_card). It needs no room. At most 16 are open in a process.
 *
 * The library writes the number of the browser to `browser` before on_room runs, and only if it
 * returns MMN_OK. mmn_browse_close must follow.
 *
 * A browser lists at most 256 rooms, 64 of them at one address, and reports a room at most twice a
 * second. A host that takes no reports is at most one behind for each room.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (mmn_last_error_message names the field),
 * MMN_MAX_CONNECTIONS_REACHED (16 browsers are open), MMN_CONNECTION_FAILED (no socket) or
 * MMN_INTERNAL_ERROR. On failure the library does not use on_room, user_data and drop_fn.
 *
 * `options` is NULL, or points to struct_size readable bytes, the first four of which are
 * struct_size. What its pointers refer to is readable. on_room and drop_fn have these types, and
 * may be called with user_data on any thread. `browser` is NULL or points to 8 writable bytes.
 */
int32_t mmn_browse_open(const struct MmnBrowseOptions *options, MmnBrowser *browser);

/**
 * In poll mode, runs on_room for up to `max` changes of rooms on the calling thread. Returns at
 * once.
 *
 * Returns the number of calls, 0 when there is nothing new, or an error, in which case nothing ran:
 * MMN_INVALID_ARGUMENT (`max` is not above 0, or the browser is not in poll mode),
 * MMN_NOT_INITIALIZED (the browser is not open) or MMN_WOULD_DEADLOCK (inside a callback, or while
 * another thread is in this function).
 */
int32_t mmn_browse_poll(MmnBrowser browser, int32_t max);

/**
 * Closes a browser. It waits for a running on_room, and for nothing else. When it returns, on_room
 * does not run and never runs again, drop_fn has run, and the browser's thread and socket are gone.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED (the browser is not open) or MMN_WOULD_DEADLOCK (inside a
 * callback; nothing changes).
 */
int32_t mmn_browse_close(MmnBrowser browser);

/**
 * Writes a new private key to `buffer`, as MmnOptions.identity_key takes it (Ed25519, PKCS#8).
 * Works without a room. A host that keeps the key and gives it at every start is the same
 * member each time: bans, bound ids and rosters depend on the key. Keep it secret: its holder can
 * take this member's place.
 *
 * Returns the number of bytes written, MMN_IDENTITY_KEY_BYTES, or MMN_INVALID_ARGUMENT (`buffer`
 * is NULL, or `length`, its size in bytes, is below MMN_IDENTITY_KEY_BYTES). On failure nothing is
 * written.
 *
 * `buffer` is NULL, or points to `length` writable bytes.
 */
int32_t mmn_generate_identity_key(uint8_t *buffer, int32_t length);

/**
 * The fingerprint of this node's key: the SHA-256 of its public key (SubjectPublicKeyInfo, DER) in
 * 64 lower-case hexadecimal digits, as quorum_roster takes it. NULL when no room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_local_fingerprint(MmnRoom room);

/**
 * The fingerprint of a peer's key, as mmn_local_fingerprint gives it at that peer. The peer has
 * proved that it holds the key. NULL when the peer is neither connected nor reconnecting,
 * `peer_id` is not an id, or no room is open; the last two set mmn_last_error_code.
 *
 * The string is valid until this thread's next call that returns a string.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
const char *mmn_peer_fingerprint(MmnRoom room, const char *peer_id);

/**
 * Writes a new room code to `buffer`, as K7QM-3XP9-TRWF, with a NUL at its end. Works without a room
 * and without a network. The host that creates a room passes the code to mmn_open as the session
 * id, with MmnOptions.relays, and shows it to its player, who gives it to others. It is the room's
 * password: 55 random bits and a check character, with which mmn_normalize_room_code finds typos.
 *
 * Returns the number of bytes written, MMN_ROOM_CODE_BYTES; MMN_INVALID_ARGUMENT (`buffer` is NULL,
 * or `length`, its size in bytes, is below MMN_ROOM_CODE_BYTES); or MMN_INTERNAL_ERROR (the system
 * has no randomness). On failure nothing is written.
 *
 * `buffer` is NULL, or points to `length` writable bytes.
 */
int32_t mmn_generate_room_code(char *buffer, int32_t length);

/**
 * Writes the room code in `text` to `buffer` as mmn_generate_room_code shows codes, with a NUL at
 * its end. Reads codes as players type and paste them: in either case, with the letter O for 0 and
 * I or L for 1, with full-width characters, and with any spaces and dashes or none. Use it to check a
 * code before mmn_open, which reads the session id in this way if MmnOptions.relays is set. Works
 * without a room.
 *
 * Returns the number of bytes written, MMN_ROOM_CODE_BYTES, or MMN_INVALID_ARGUMENT: `text` is no
 * code (mmn_last_error_message names the wrong character and its position, the length, or that the
 * check character does not match, which means a typo), `text` or `buffer` is NULL, or `length`,
 * the size of `buffer` in bytes, is below MMN_ROOM_CODE_BYTES. On failure nothing is written.
 *
 * `text` is NULL or ends with a NUL. `buffer` is NULL, or points to `length` writable bytes.
 */
int32_t mmn_normalize_room_code(const char *text, char *buffer, int32_t length);

/**
 * Sets whether the library dials lost peers again (not 0, the default) or treats every loss as a
 * leave (0). With 0, peers that are reconnecting leave at once: MMN_EVENT_LEFT with MMN_LEFT_LOST.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t mmn_set_auto_reconnect(MmnRoom room, uint8_t enabled);

/**
 * Whether the library dials lost peers again: 1 or 0. 0 when no room is open.
 */
uint8_t mmn_auto_reconnect(MmnRoom room);

/**
 * Removes a peer from the room. Only the leader may. The peer receives `code` and the `length`
 * bytes at `data` (at most 3072), both the host's own. Every member drops it (MMN_EVENT_LEFT with
 * MMN_LEFT_KICKED). With `flags` 0 the peer may come back: its host receives the end of its room,
 * and can open it again; the room then decides about it as about any newcomer. A peer that is
 * reconnecting does not learn of such a kick. With MMN_KICK_BAN neither its id nor its key is
 * admitted again until mmn_unban or the room's end, under any leader.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND
 * (neither connected nor reconnecting) or MMN_MAX_CONNECTIONS_REACHED (512 peers are banned
 * already). On failure nothing has changed.
 *
 * `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, or may be NULL
 * when `length` is 0.
 */
int32_t mmn_kick(MmnRoom room,
                 const char *peer_id,
                 uint32_t flags,
                 int32_t code,
                 const uint8_t *data,
                 int32_t length);

/**
 * Lifts the ban of a peer on all members: of its id, and of every key that the id was banned with,
 * whatever other ids use that key. Only the leader may. The peer is not admitted by that, but
 * may ask again.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER or MMN_PEER_NOT_FOUND
 * (no peer of that id is banned). On failure nothing has changed.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_unban(MmnRoom room, const char *peer_id);

/**
 * Limits the room: no member gets more than `max_peers` other members, as mmn_peer_count counts
 * them. 0 is no limit besides each member's own max_connections. Only the leader may. Peers that
 * are reconnecting keep their places, and no member is removed. The limit also holds under later
 * leaders, and replaces the option max_peers.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_LEADER.
 */
int32_t mmn_set_max_peers(MmnRoom room, uint32_t max_peers);

/**
 * Sets the payload that this node sends from now on when it enters a room, for the decision of the
 * leader's host: `length` bytes at `data`, at most 16384; 0 for none.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED.
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0.
 */
int32_t mmn_set_join_payload(MmnRoom room, const uint8_t *data, int32_t length);

/**
 * Sets the admission rule of this host while this node leads: the host decides about each newcomer
 * (not 0), or every process that knows the room may enter (0, the default). If the host decides,
 * every newcomer is an MMN_EVENT_JOIN_REQUEST, which the host answers with mmn_accept_join or
 * mmn_reject_join within handshake_timeout_ms. Without an answer the newcomer is refused, and gets
 * MMN_TIMEOUT. Members that return need no request. Set it on every member that may come to lead.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t mmn_set_join_requests(MmnRoom room, uint8_t enabled);

/**
 * Admits the newcomer of the MMN_EVENT_JOIN_REQUEST with this number.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (the request was answered or has
 * expired, or another member leads now).
 */
int32_t mmn_accept_join(MmnRoom room, uint64_t request);

/**
 * Refuses the newcomer of the MMN_EVENT_JOIN_REQUEST with this number. Its mmn_connect ends with
 * MMN_REJECTED. Its MMN_EVENT_CONNECTION_RESULT has `code` as reason and the `length` bytes at
 * `data` (at most 3072), both the host's own.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (as
 * mmn_accept_join).
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0.
 */
int32_t mmn_reject_join(MmnRoom room, uint64_t request, int32_t code, const uint8_t *data, int32_t length);

/**
 * Makes a connected peer, or this node, the leader. The room follows it until it is lost or
 * another is set. This node's own queries show the new leader when the call returns; the other
 * members follow within a round trip. MMN_EVENT_SET_LEADER_RESULT reports the outcome.
 *
 * With MMN_QUORUM_STATIC only votes make a leader. There this call requests a
 * mmn_transfer_leadership from the present leader, which leads until the peer is elected. The
 * outcome is MMN_OK, MMN_REJECTED (the leader refused: it no longer leads, or the peer is not
 * connected to it or may not lead), MMN_TIMEOUT (the peer was not elected within the longest
 * election timeout) or MMN_SUPERSEDED (a later call of this node replaced this one).
 *
 * The newest call wins. With a dynamic quorum, an isolated member that names itself therefore
 * leads the whole room once the network heals. To replace a lost leader, call
 * mmn_set_auto_election(1) instead.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER (the room's rules
 * reserve this for the leader; or, with MMN_QUORUM_STATIC, this node has no leader to ask),
 * MMN_PEER_NOT_FOUND (neither this node nor connected), MMN_REJECTED (the peer may not lead; or,
 * with MMN_QUORUM_STATIC, this node may have forgotten votes) or MMN_NOT_SUPPORTED (with any
 * strategy but MMN_STRATEGY_RAFT).
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_set_leader(MmnRoom room, const char *peer_id);

/**
 * Sets whether this node campaigns for leadership (not 0) or not (0). It votes for others either
 * way. With MMN_STRATEGY_GOSSIP it sets whether this node proposes itself, and with
 * MMN_STRATEGY_ETCD whether it has a key in the election. A leader keeps leading.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (with MMN_STRATEGY_SEEDED).
 */
int32_t mmn_set_auto_election(MmnRoom room, uint8_t enabled);

/**
 * Sets whether this node may lead (not 0, the default) or not (0). A node that may not lead is an
 * observer: it has no vote, counts for no majority, and mmn_set_leader refuses it. If it leads,
 * another member takes over at once; with MMN_STRATEGY_GOSSIP the others elect as after any loss,
 * and with MMN_STRATEGY_ETCD this node deletes its key, so that the next in line leads. With
 * MMN_QUORUM_STATIC a voter of quorum_roster still counts among the voters when it may not lead,
 * and a member that is not on the roster never leads.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, MMN_REJECTED (the room has a fixed host) or
 * MMN_NOT_SUPPORTED (with MMN_STRATEGY_SEEDED, where quorum_roster names the members that may
 * lead).
 */
int32_t mmn_set_eligible(MmnRoom room, uint8_t eligible);

/**
 * Transfers the leadership to a connected peer. Only the leader may. The library asks the peer to
 * campaign at once, and this node leads until the peer is elected. The next leader is elected
 * rather than set: if mmn_set_leader named the present leader, that ends with the transfer. The
 * peer may be one that does not campaign by itself (mmn_set_auto_election).
 *
 * MMN_OK means that the peer was asked. On success the leader changes with the reason
 * MMN_LEADER_TRANSFERRED. If the peer is lost, leaves or is not elected within the longest
 * election timeout, this node keeps leading. This node may report no leader (MMN_LEADER_RESIGNED)
 * for the round trip that the election takes. A second call with another peer replaces the first.
 * A call with this node itself cancels a pending transfer; a peer that was already asked may still
 * be elected.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND
 * (neither this node nor connected), MMN_REJECTED (the peer may not lead, or is a voter that may
 * have forgotten votes, or the room has a fixed host) or MMN_NOT_SUPPORTED (with any strategy but
 * MMN_STRATEGY_RAFT). On failure nothing has changed.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_transfer_leadership(MmnRoom room, const char *peer_id);

/**
 * Transfers the leadership, as mmn_transfer_leadership does, to the peer that elections prefer:
 * the one with the highest priority, and of these the largest id. Only the leader may.
 *
 * With MMN_STRATEGY_GOSSIP this node stops leading at once (MMN_LEADER_RESIGNED). It does not lead
 * again until another member has led, or for six times alive_threshold_ms. The others elect as
 * after any loss. If there are no others, this node leads again after that time.
 *
 * With MMN_STRATEGY_ETCD this node resigns: it stops leading at once (MMN_LEADER_RESIGNED),
 * deletes its key, and campaigns again behind all waiting members. If none waits, it leads again.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (no connected peer may
 * lead; only with MMN_STRATEGY_RAFT), MMN_REJECTED (the room has a fixed host) or
 * MMN_NOT_SUPPORTED (with MMN_STRATEGY_SEEDED). On failure nothing has changed.
 */
int32_t mmn_yield_leadership(MmnRoom room);

/**
 * Sets the priority of this node in elections from now on. The highest priority campaigns first;
 * of equal ones the largest id. The default is 0, and any number is allowed. The priority decides
 * which member succeeds a lost leader, and never displaces a living one.
 *
 * Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (with any strategy but
 * MMN_STRATEGY_RAFT).
 */
int32_t mmn_set_priority(MmnRoom room, int32_t priority);

/**
 * The term of the newest claim to lead that this node knows: the leader's, if there is one. It
 * rises with every election and every mmn_set_leader, but an mmn_set_leader may restart it: compare
 * the epoch first. Not negative; always 0 with MMN_STRATEGY_GOSSIP, the version of the cluster
 * with MMN_STRATEGY_SEEDED, and the leader's fencing token with MMN_STRATEGY_ETCD. -1 when no room
 * is open.
 */
int64_t mmn_leader_term(MmnRoom room);

/**
 * The number of mmn_set_leader calls that the newest claim to lead builds on. It never decreases.
 * Not negative, always 0 with MMN_QUORUM_STATIC and with any strategy but MMN_STRATEGY_RAFT; -1
 * when no room is open.
 */
int64_t mmn_leader_epoch(MmnRoom room);

/**
 * The election strategy of this room: one of MMN_STRATEGY_... -1 when no room is open.
 */
int32_t mmn_strategy(MmnRoom room);

/**
 * The leader's peer id. "" when there is none; never a peer that is known to be gone. NULL when no
 * room is open.
 *
 * The string is valid until this thread's next call that returns a string.
 */
const char *mmn_leader(MmnRoom room);

/**
 * Whether this node is the leader: 1 or 0. With MMN_STRATEGY_ETCD it is 0 from the moment at which
 * its lease may have ended, even if the process was stopped or the machine slept until then.
 */
uint8_t mmn_is_leader(MmnRoom room);

/**
 * Sets the windows of a room with MMN_STRATEGY_GOSSIP, from the next window on. With another
 * strategy they are stored and have no effect.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (nothing has changed) or MMN_NOT_INITIALIZED.
 *
 * `windows` is NULL, or points to struct_size readable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_set_gossip_windows(MmnRoom room, const struct MmnGossipWindows *windows);

/**
 * Writes the windows of a room to `windows`, whose struct_size the caller has set.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED.
 *
 * `windows` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_gossip_windows(MmnRoom room, struct MmnGossipWindows *windows);

/**
 * Fills `options` with the defaults of a profile: MMN_SEEDED_PROFILE_WAN or
 * MMN_SEEDED_PROFILE_LAN. The caller sets struct_size first. The library writes no byte beyond it,
 * nor beyond the fields that this version knows, and leaves struct_size as it is.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, struct_size is not a valid size, or
 * `profile` is neither of the two). On failure nothing is written.
 *
 * `options` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_default_seeded_options(uint32_t profile, struct MmnSeededOptions *options);

/**
 * The state of a member of the cluster, this node included: one of MMN_MEMBER_..., and
 * MMN_MEMBER_INIT for every peer that is not in the cluster. -1 when `peer_id` is not an id, no
 * room is open (both set mmn_last_error_code), or the room's strategy is not MMN_STRATEGY_SEEDED.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_member_state(MmnRoom room, const char *peer_id);

/**
 * The version of the cluster, which grows with every leader. 0 before this node has entered a
 * cluster, and after it left one whose leader was lost for good. -1 when no room is open or its
 * strategy is not MMN_STRATEGY_SEEDED.
 */
int64_t mmn_cluster_version(MmnRoom room);

/**
 * Fills `options` with the defaults. The caller sets struct_size first. The library writes no byte
 * beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, or struct_size is not a valid size).
 * On failure nothing is written.
 *
 * `options` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_default_etcd_options(struct MmnEtcdOptions *options);

/**
 * The fencing token of this node's leadership: the revision at which etcd created its key. The
 * token of every later leader is larger. Send it with everything that the leader writes elsewhere,
 * and let the store refuse a token smaller than the largest it has seen. Then a leader that was
 * paused, and does not know yet that another leads, changes nothing.
 *
 * 0 while this node does not lead; also when its lease has ended while the process slept. -1 when
 * no room is open or its strategy is not MMN_STRATEGY_ETCD.
 */
int64_t mmn_fencing_token(MmnRoom room);

/**
 * Sets the text that clients of etcd read of this node while it leads, at most
 * MMN_MAX_PROCLAIMED_BYTES. The library keeps it for the next time that this node leads. The value
 * of the leader's key is its peer id, its address and the proclaimed text, separated by line
 * feeds. Neither of the first two contains a line feed, so everything behind the second one is the
 * proclaimed text, which may contain more. "" by default.
 *
 * The call does not wait for etcd. Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or
 * MMN_NOT_SUPPORTED (with any strategy but MMN_STRATEGY_ETCD).
 *
 * `value` is NULL or ends with a NUL.
 */
int32_t mmn_proclaim(MmnRoom room, const char *value);

/**
 * Acquires the lock `name`, which one process at a time holds among all that use the same etcd
 * prefix, and waits for it for `timeout_ms`: 0 is until it holds the lock or the room ends. Locks
 * are granted in the order of the calls. A name is 1 to MMN_MAX_LOCK_NAME_BYTES bytes without
 * control characters.
 *
 * The call does not wait. `*request` receives a number above 0, which no other lock call of this
 * room gets. One MMN_EVENT_LOCK_RESULT with this number follows, perhaps on another thread before
 * the call returns. A process that holds the lock already gets it again with the same token; one
 * mmn_release_lock releases it. MMN_EVENT_LOCK_LOST reports a lock whose lease has ended. A
 * process that slept may take itself for the holder until it receives that event, so the fencing
 * token in the event of the result is what protects a store (see mmn_fencing_token).
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (with any strategy
 * but MMN_STRATEGY_ETCD) or MMN_MAX_CONNECTIONS_REACHED (this member holds or waits for too many
 * locks). On failure no event follows, and `*request` is unchanged or 0.
 *
 * `name` is NULL or ends with a NUL. `request` is NULL or writable.
 */
int32_t mmn_acquire_lock(MmnRoom room, const char *name, uint32_t timeout_ms, uint64_t *request);

/**
 * Acquires the lock `name` as mmn_acquire_lock does, if none holds it or waits for it. Else the
 * event has the code MMN_REJECTED. Returns what mmn_acquire_lock returns.
 *
 * `name` is NULL or ends with a NUL. `request` is NULL or writable.
 */
int32_t mmn_try_lock(MmnRoom room, const char *name, uint64_t *request);

/**
 * Releases the lock `name`, or stops waiting for it: each waiting call for it ends with
 * MMN_SUPERSEDED. The call does not wait for etcd. A crash releases all locks of the process after
 * ttl_seconds, and mmn_close releases them at once.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (with any strategy
 * but MMN_STRATEGY_ETCD) or MMN_REJECTED (this member neither holds nor waits for the lock: its
 * lease may have ended).
 *
 * `name` is NULL or ends with a NUL.
 */
int32_t mmn_release_lock(MmnRoom room, const char *name);

/**
 * Sends a message to one peer, also while it is reconnecting. A message to this node's own id goes
 * to its own handlers. The library reads `data` during the call only; it may be NULL when `length`
 * is 0. `msg_type` is the host's own, MMN_MIN_MESSAGE_TYPE or more. Never waits for the network.
 *
 * With MMN_DELIVERY_RELIABLE_ORDERED and MMN_DELIVERY_RELIABLE_UNORDERED, MMN_OK means that the
 * message is queued. It arrives once, even if a link is lost and comes back, unless the receiver
 * leaves or is given up. All reliable messages to a peer share one queue.
 *
 * With MMN_DELIVERY_UNRELIABLE and MMN_DELIVERY_SEQUENCED, MMN_OK means that the message is queued
 * for the network. The call never returns MMN_SEND_QUEUE_FULL. When the queue is full, the library
 * drops the oldest message in it, or, while the peer is reconnecting, the new one.
 * MMN_EVENT_DATA_DROPPED counts both. These messages are never compressed, and no longer than
 * mmn_max_datagram_size. The peer receives them after MMN_EVENT_JOINED and before MMN_EVENT_LEFT.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also for an unknown value in `options`, ttl_ms or key with
 * a delivery that has none, and MMN_SEND_PARTIAL), MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE,
 * MMN_PEER_NOT_FOUND (neither connected nor reconnecting) or MMN_SEND_QUEUE_FULL (also if the peer
 * is reconnecting and missed a broadcast meanwhile). On failure nothing was queued.
 *
 * `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, or may be NULL
 * when `length` is 0. `options` is NULL, or points to struct_size readable bytes, the first four
 * of which are struct_size.
 */
int32_t mmn_send(MmnRoom room,
                 const char *peer_id,
                 const uint8_t *data,
                 int32_t length,
                 uint16_t msg_type,
                 const struct MmnSendOptions *options);

/**
 * Sends a message to all connected peers, or to none of them. Without peers it returns MMN_OK. The
 * other arguments and deliveries are as in mmn_send. In centralized mode the message goes to the
 * leader, which relays it: see mmn_set_centralized.
 *
 * A member that is reconnecting gets a reliable message when it returns, as long as its queue has
 * room. It never causes MMN_SEND_QUEUE_FULL: it misses a message that does not fit, and all that
 * follow until it returns. MMN_EVENT_RETURNED counts these messages at both ends.
 *
 * With MMN_SEND_PARTIAL the message goes to the peers whose queue has room. The function returns
 * their number (0 or more), and MMN_EVENT_SLOW_PEER names each of the others. In centralized mode,
 * where the leader queues broadcasts, the flag is not supported.
 *
 * In centralized mode the message keeps delivery, channel, key and ttl_ms; the leader relays it
 * with MMN_PRIORITY_NORMAL. If the leader is lost, the next one does not relay messages with
 * MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED.
 *
 * Returns MMN_OK or a number of peers, MMN_INVALID_ARGUMENT (as mmn_send), MMN_NOT_INITIALIZED,
 * MMN_MESSAGE_TOO_LARGE, MMN_SEND_QUEUE_FULL (the queue to at least one peer is full;
 * mmn_last_error_message names the peers), MMN_NOT_SUPPORTED (MMN_SEND_PARTIAL in centralized
 * mode); in centralized mode also MMN_NOT_LEADER (no leader is known) and MMN_PEER_NOT_FOUND (the
 * leader is not connected to this node). On failure nothing was queued.
 *
 * `data` and `options` are as in mmn_send.
 */
int32_t mmn_broadcast(MmnRoom room,
                      const uint8_t *data,
                      int32_t length,
                      uint16_t msg_type,
                      const struct MmnSendOptions *options);

/**
 * Sends a message to the leader. On the leader itself it goes to the node's own handlers. The
 * other arguments and deliveries are as in mmn_send.
 *
 * Returns what mmn_send returns, or MMN_NOT_LEADER (no leader is known). MMN_PEER_NOT_FOUND means
 * that the leader is not connected to this node. On failure nothing was queued.
 *
 * `data` and `options` are as in mmn_send.
 */
int32_t mmn_send_to_leader(MmnRoom room,
                           const uint8_t *data,
                           int32_t length,
                           uint16_t msg_type,
                           const struct MmnSendOptions *options);

/**
 * Sends a reliable message as the leader to all connected peers, or to none of them. Receivers
 * learn of this leadership before they get the message; peers that know a newer leader drop it.
 * The other arguments are as in mmn_send.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (as mmn_send, and with an unreliable delivery),
 * MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node is not the leader) or
 * MMN_SEND_QUEUE_FULL. On failure nothing was queued.
 *
 * `data` and `options` are as in mmn_send.
 */
int32_t mmn_broadcast_as_leader(MmnRoom room,
                                const uint8_t *data,
                                int32_t length,
                                uint16_t msg_type,
                                const struct MmnSendOptions *options);

/**
 * Forwards a reliable message on behalf of `from`, which is this node or a connected peer. Only
 * the leader may: receivers drop messages that any other member sends on behalf of another. The
 * message goes to the peer `to`, or, if `to` is NULL, to all connected peers except `from`, or to
 * none of them. If `to` is this node's own id, the message goes to its own handlers. The other
 * arguments are as in mmn_send.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (as mmn_broadcast_as_leader, and if `to` is `from`),
 * MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node is not the leader),
 * MMN_PEER_NOT_FOUND (`from` or `to` is not connected) or MMN_SEND_QUEUE_FULL. On failure nothing
 * was queued.
 *
 * `from` and `to` are NULL or end with a NUL. `data` and `options` are as in mmn_send.
 */
int32_t mmn_forward(MmnRoom room,
                    const char *from,
                    const char *to,
                    const uint8_t *data,
                    int32_t length,
                    uint16_t msg_type,
                    const struct MmnSendOptions *options);

/**
 * The longest message in bytes that mmn_send takes for `peer_id` with MMN_DELIVERY_UNRELIABLE
 * or MMN_DELIVERY_SEQUENCED. If `peer_id` is NULL, the longest that mmn_broadcast takes: the least
 * of all connected peers, or without any peer the size that every new link carries. In centralized
 * mode it is less. It depends on the path of each link, and is 1100 or more (centralized: 850),
 * unless max_message_size is less: a message of that size always fits. It grows while a link
 * measures its path, and may shrink to 1100 again for a minute when long packets are lost. Never
 * waits for the network.
 *
 * -1 if the peer is not connected (or is this node, which has no such limit), or before
 * initialization.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_max_datagram_size(MmnRoom room, const char *peer_id);

/**
 * Sets whether this node's mmn_broadcast goes through the leader (not 0) or directly to all
 * peers (0, the default). The leader passes each broadcast to its own handlers and, with
 * auto-forward on, relays it to all members but its origin. Receivers see the origin as the
 * sender. Turn it on at all members of a centralized room.
 *
 * The origin keeps a broadcast until the leader has queued it for every member. If that leader is
 * lost, the broadcast goes through the next one. While the queue to one member is full, the leader
 * reads nothing from origins whose broadcasts would go to that member.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t mmn_set_centralized(MmnRoom room, uint8_t enabled);

/**
 * Whether this node's broadcasts go through the leader: 1 or 0.
 */
uint8_t mmn_centralized(MmnRoom room);

/**
 * Sets whether this node, while it leads, relays the broadcasts of others to all members but their
 * origin (not 0), or only passes them to its own handlers (0), so that its host can relay
 * the approved ones with mmn_forward. The initial value is centralized_auto_forward of the
 * configuration.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t mmn_set_auto_forward(MmnRoom room, uint8_t enabled);

/**
 * Whether this node, while it leads, relays the broadcasts of others: 1 or 0.
 */
uint8_t mmn_auto_forward(MmnRoom room);

/**
 * Sets the payload length in bytes above which the library compresses with LZ4, if that saves at
 * least a quarter; 0 tries every payload. The initial value is compression_threshold of the
 * configuration. Compression costs time on the network thread. Receivers accept either form.
 * max_message_size applies to the uncompressed payload.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t mmn_set_compression_threshold(MmnRoom room, uint32_t bytes);

/**
 * Offers `length` bytes, at most MMN_MAX_TRANSFER_BYTES, to one peer, also while it is reconnecting.
 * The library copies `data` and `tag` before the call returns, and computes a digest: about 0.1 s for
 * 64 MiB. `tag` is the host's own, at most MMN_MAX_TRANSFER_TAG_BYTES: a file name, for example.
 * Either may be NULL when its length is 0. `*transfer`, unless `transfer` is NULL, receives the number
 * of the transfer, which no other transfer between the two members gets while both are in the room.
 *
 * The peer's host receives MMN_EVENT_TRANSFER_OFFERED and has 60 s to answer. The bytes go below all
 * messages. A transfer outlives a lost link: it goes on from the byte that has arrived when the peer
 * returns. Both hosts receive MMN_EVENT_TRANSFER_PROGRESS, and exactly one MMN_EVENT_TRANSFER_RESULT;
 * it may come on another thread before the call returns. mmn_close ends this host's transfers without
 * an event.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also for this node's own id), MMN_NOT_INITIALIZED,
 * MMN_MESSAGE_TOO_LARGE (`data` or `tag` is too long), MMN_PEER_NOT_FOUND (neither connected nor
 * reconnecting), MMN_NOT_SUPPORTED (the peer's library has no transfers) or MMN_SEND_QUEUE_FULL (8
 * transfers to the peer have not ended; or all that have not ended would keep more than 134217728
 * bytes; or 64 events of earlier ones with the peer wait for this host). On failure no event follows, and
 * `*transfer` is unchanged.
 *
 * `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, and `tag` to
 * `tag_length`; each may be NULL when its length is 0. `transfer` is NULL or writable.
 */
int32_t mmn_send_transfer(MmnRoom room,
                          const char *peer_id,
                          const uint8_t *data,
                          int32_t length,
                          const uint8_t *tag,
                          int32_t tag_length,
                          uint64_t *transfer);

/**
 * Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED into `buffer`, which has `capacity` bytes: as
 * many as the transfer, or more. The library writes into it on its own threads. So `buffer` must stay
 * until MMN_EVENT_TRANSFER_RESULT, until mmn_cancel_transfer of it has returned MMN_OK, or until
 * mmn_close has returned, whichever comes first. Only a complete transfer has filled it.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also if `capacity` is too small: the offer then waits on),
 * MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no offer of that peer with that number waits: it was
 * answered or has ended). On failure the library does not use `buffer`.
 *
 * `peer_id` is NULL or ends with a NUL. `buffer` points to `capacity` writable bytes, which the host does not
 * use until then; it may be NULL when `capacity` is 0.
 */
int32_t mmn_accept_transfer(MmnRoom room,
                            const char *peer_id,
                            uint64_t transfer,
                            void *buffer,
                            int32_t capacity);

/**
 * Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED in parts: an MMN_EVENT_TRANSFER_PART for each, in
 * order. At most 262144 bytes of them wait for this host; the sender waits while it takes none.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no offer of that
 * peer with that number waits: it was answered or has ended).
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_accept_transfer_in_parts(MmnRoom room, const char *peer_id, uint64_t transfer);

/**
 * Refuses the offer of a transfer, or cancels a transfer that this host sends or receives. Both hosts
 * receive MMN_EVENT_TRANSFER_RESULT. Once this has returned MMN_OK, the library no longer uses the buffer
 * of mmn_accept_transfer. If the sender cancels while the last bytes arrive, its result is
 * MMN_TRANSFER_CANCELLED_BY_SENDER, although the receiver may have MMN_TRANSFER_COMPLETE.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no transfer with
 * that peer has this number, or it has ended).
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t mmn_cancel_transfer(MmnRoom room, const char *peer_id, uint64_t transfer);

/**
 * Fills `options` with the defaults. The caller sets struct_size first. The library writes no byte
 * beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, or struct_size is not a valid size).
 * On failure nothing is written.
 *
 * `options` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_default_state_options(struct MmnStateOptions *options);

/**
 * Submits an action: `length` bytes at `data`, at most 16384, with a message type of 0x0100 or
 * higher. The leader orders the actions of all members. Once a majority has one, each member's host
 * receives it as MMN_EVENT_ACTION, the author's too, and all hosts in the same order. The library
 * keeps the action over losses of the leader, also while no member leads.
 *
 * The call does not wait. `*request`, unless `request` is NULL, receives a number above 0, which no
 * other request of this room gets. One MMN_EVENT_ACTION_RESULT with this number follows, perhaps on
 * another thread before the call returns, unless the room ends first.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (the room has no
 * state), MMN_MESSAGE_TOO_LARGE or MMN_SEND_QUEUE_FULL (256 requests of this host, or 262144 bytes
 * of them, have no result yet). On failure no event follows, and `*request` is unchanged.
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0. `request` is NULL or
 * writable.
 */
int32_t mmn_submit(MmnRoom room, const uint8_t *data, int32_t length, uint16_t msg_type, uint64_t *request);

/**
 * Submits a set of `count` changes of properties, 1 to 32: the room makes all of them or none. They
 * are ordered among the actions, and each member's host receives an MMN_EVENT_PROPERTY for each
 * changed property. The changes lie one after another, as far apart as the struct_size of the first
 * one; the library does not read that of the others. A key is in a set once. Keys, owners and values
 * of a set have at most 32768 bytes together.
 *
 * MMN_EVENT_ACTION_RESULT reports the outcome: MMN_OK; MMN_CONFLICT (a property has another version
 * than expected_version, or a new owner is not in the room); MMN_STATE_FULL (more than 1024
 * properties, 128 of one owner, or 524288 bytes of keys and values); MMN_REJECTED (a property with
 * MMN_PROPERTY_OWNER_ONLY has another owner); or MMN_OUTCOME_UNKNOWN. Unless it is MMN_OK, nothing
 * has changed; with MMN_OUTCOME_UNKNOWN something may have. An expected version holds only in the history in
 * which the host read it: if the room takes over another history, the outcome is MMN_CONFLICT.
 *
 * `request`, and what the call returns, are as with mmn_submit. MMN_MESSAGE_TOO_LARGE stands for too
 * many changes, too, and MMN_INVALID_ARGUMENT for changes that exclude each other.
 *
 * `changes` is NULL, or points to `count` structs, as far apart as the first four bytes say, whose
 * pointers are NULL or lead to strings that end with a NUL, and to length readable bytes. `request`
 * is NULL or writable.
 */
int32_t mmn_set_properties(MmnRoom room,
                           const struct MmnPropertyChange *changes,
                           int32_t count,
                           uint64_t *request);

/**
 * The value of the property `key`, as of the last entry of which this host has received an event;
 * all changes of an entry show with its first event. Writes its length, its owner and more to
 * `info`, whose `struct_size` the caller has set; NULL asks for the value alone. Never waits for the
 * network.
 *
 * NULL when the room has no such property, or on failure, which sets mmn_last_error_code: `key` is no
 * key, struct_size is not a valid size, the room has no state, or no room is open. `info` is
 * unchanged then.
 *
 * Inside a callback, the value and the owner are valid until the callback returns, whatever it calls.
 * Elsewhere they are valid until this thread's next call of this function or of one that returns a
 * string.
 *
 * `key` is NULL or ends with a NUL. `info` is NULL, or points to struct_size writable bytes, the
 * first four of which are struct_size.
 */
const uint8_t *mmn_property(MmnRoom room, const char *key, struct MmnPropertyInfo *info);

/**
 * The names of the properties that `owner` owns, or of all properties if `owner` is NULL, as of the
 * last entry of which this host has received an event: sorted as bytes, joined by '\n'. "" when
 * there are none. NULL when `owner` is not an id, the room has no state, or no room is open; these
 * set mmn_last_error_code.
 *
 * The string is valid until this thread's next call that returns a string.
 *
 * `owner` is NULL or ends with a NUL.
 */
const char *mmn_property_keys(MmnRoom room, const char *owner);

/**
 * Answers the MMN_EVENT_SNAPSHOT_WANTED with this number: `length` bytes at `data`, a copy of the
 * host's state as it was inside that event, without the properties, which the library has. The host
 * may answer up to 120 seconds later, from any thread. With NULL `data` and `length` 0 it declines,
 * and the library asks another member's host.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (the room has no
 * state), MMN_PEER_NOT_FOUND (no member waits for it any more), MMN_MESSAGE_TOO_LARGE (longer than
 * max_snapshot_bytes; the request goes on) or MMN_SUPERSEDED (the room has taken over another
 * history).
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0.
 */
int32_t mmn_provide_snapshot(MmnRoom room, uint64_t request, const uint8_t *data, int32_t length);

/**
 * Writes figures of the room's state to `info`, whose `struct_size` the caller has set. Writes at
 * most min(struct_size, the size that this library knows) bytes. Never waits for the network.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (`info` is NULL, or struct_size is not a valid size),
 * MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (the room has no state). On failure nothing is written.
 *
 * `info` is NULL, or points to struct_size writable bytes, the first four of which are struct_size.
 */
int32_t mmn_state_info(MmnRoom room, struct MmnStateInfo *info);

/**
 * Writes statistics of the link and the queue to a peer to `stats`, whose `struct_size` the caller
 * has set. Writes at most min(struct_size, the size that this library knows) bytes. Never waits
 * for the network.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (`peer_id` is not an id, `stats` is NULL, `struct_size` is
 * below 8), MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (neither connected nor reconnecting).
 *
 * `peer_id` is NULL or ends with a NUL. `stats` is NULL, or points to struct_size writable bytes,
 * the first four of which are struct_size.
 */
int32_t mmn_peer_stats(MmnRoom room, const char *peer_id, struct MmnPeerStats *stats);

/**
 * Writes statistics of the room to `stats`, whose `struct_size` the caller has set. Writes at most
 * min(struct_size, the size that this library knows) bytes. Never waits for the network.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (`stats` is NULL, `struct_size` is below 16 or above 65536)
 * or MMN_NOT_INITIALIZED.
 *
 * `stats` is NULL, or points to struct_size writable bytes, the first four of which are
 * struct_size.
 */
int32_t mmn_room_stats(MmnRoom room, struct MmnRoomStats *stats);

/**
 * The room's time in milliseconds: a clock that all members share, for animations, countdowns and
 * the moments of events. It begins with 0 when the room's first member opens it, and goes on under
 * every later leader. -1 when no room is open, which sets mmn_last_error_code.
 *
 * It never goes back. A member corrects a small difference to the leader's time by running at most
 * one part in 20 faster or slower, and jumps ahead when it enters an older room, or when its room
 * and an older one become one: the larger time counts. `room_time_error_us` of MmnRoomStats is the
 * difference that is possible now. Before this member knows a leader the time runs from mmn_open.
 *
 * Any process that knows the room's name can move this clock ahead, by entering as the member of an
 * older room: it is no proof of when something happened.
 *
 * Callable from every thread, inside callbacks too. Never waits for the network.
 */
int64_t mmn_room_time_ms(MmnRoom room);

/**
 * Simulates a bad network, so that a developer can try a game on one machine under the players'
 * conditions. From now on each packet that this node sends waits `lag_ms` (0 to 10000) and a
 * random time up to `jitter_ms` (0 to 10000) more, so that packets overtake each other;
 * `loss_permille` (0 to 1000) packets in a thousand are lost. 0, 0, 0 ends it, which is how a room
 * begins. Call it at every member for both directions of a link. Round trips (mmn_peer_rtt_ms),
 * losses and reconnections follow, as on a real line. It does not affect discovery in the local
 * network. While it is on, the log repeats that every minute, as a warning.
 *
 * At most 8192 packets wait; further ones are lost. Takes effect at once and waits for nothing.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED; after an error nothing has changed.
 */
int32_t mmn_simulate_network(MmnRoom room, uint32_t lag_ms, uint32_t jitter_ms, uint32_t loss_permille);

/**
 * Simulates a bad network that has a name, as mmn_simulate_network does with numbers. All members
 * of a room should use the same one: then a round trip takes twice the lag. `preset` is one of
 *
 * - "home": two homes with cables (lag 12 ms, jitter 6 ms, 0.2 % lost);
 * - "mobile": a telephone in a town (40 ms, 30 ms, 1 %);
 * - "bad-wifi": a crowded Wi-Fi, where packets come late and in bursts (5 ms, 90 ms, 4 %);
 * - "satellite": a geostationary satellite (300 ms, 20 ms, 1 %);
 * - "none": ends it.
 *
 * Takes effect at once and waits for nothing.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT (also for another name) or MMN_NOT_INITIALIZED; after an
 * error nothing has changed.
 *
 * `preset` is NULL or a NUL-terminated UTF-8 string.
 */
int32_t mmn_simulate_preset(MmnRoom room, const char *preset);

/**
 * Sets the level of the library's log on standard error: MMN_LOG_OFF (the default) to
 * MMN_LOG_TRACE. It may be called at any time, also before a room opens. The setting belongs to
 * the process and outlives rooms.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT.
 */
int32_t mmn_set_log_stderr(int32_t level);

/**
 * Sets the callback for the library's log; NULL removes it. It receives the records up to `level`
 * (MMN_LOG_OFF to MMN_LOG_TRACE), whether the log on standard error is on or not. It may be called
 * at any time, also before a room opens. mmn_close does not remove the callback.
 *
 * When the call returns, the previous callback runs on no thread and never runs again: the call
 * waits for it, unless it is made from inside that callback. The library calls `drop_fn` (NULL for
 * none) exactly once with `user_data`, after the callback's last call has ended: when the callback
 * is replaced or removed. With a NULL `callback`, and when this call fails, the library does not
 * use `user_data` and `drop_fn`.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT (not a log level; nothing has changed).
 *
 * `callback` and `drop_fn` have these types, and may be called with `user_data` on any thread,
 * `callback` on several at a time.
 */
int32_t mmn_set_log(int32_t level, MmnLogCallback callback, void *user_data, MmnDropCallback drop_fn);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/**
 * Every function with the prefix mmn_, as X(result, name, parameters), for hosts that load the
 * library at run time:
 *
 *     #define MEMBER(result, name, parameters) result (*name) parameters;
 *     static struct { MMN_FUNCTIONS(MEMBER) } net;
 *     #define LOAD(result, name, parameters) *(void **)&net.name = dlsym(library, #name);
 *     MMN_FUNCTIONS(LOAD)
 */
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
  X(const char *, mmn_public_address, (uint64_t room)) \
  X(const char *, mmn_local_id, (uint64_t room)) \
  X(const char *, mmn_session_id, (uint64_t room)) \
  X(int32_t, mmn_peer_count, (uint64_t room)) \
  X(const char *, mmn_peers, (uint64_t room)) \
  X(const char *, mmn_members, (uint64_t room)) \
  X(const char *, mmn_peer_address, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_set_turn, (uint64_t room, const char *servers)) \
  X(int32_t, mmn_peer_path, (uint64_t room, const char *peer_id)) \
  X(const char *, mmn_peer_carrier, (uint64_t room, const char *peer_id)) \
  X(uint32_t, mmn_peer_index, (uint64_t room, const char *peer_id)) \
  X(const char *, mmn_peer_id, (uint64_t room, uint32_t index)) \
  X(int32_t, mmn_peer_rtt_ms, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_peer_status, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_show_card, (uint64_t room, const struct MmnCard *card)) \
  X(int32_t, mmn_browse_open, (const struct MmnBrowseOptions *options, uint64_t *browser)) \
  X(int32_t, mmn_browse_poll, (uint64_t browser, int32_t max)) \
  X(int32_t, mmn_browse_close, (uint64_t browser)) \
  X(int32_t, mmn_generate_identity_key, (uint8_t *buffer, int32_t length)) \
  X(const char *, mmn_local_fingerprint, (uint64_t room)) \
  X(const char *, mmn_peer_fingerprint, (uint64_t room, const char *peer_id)) \
  X(int32_t, mmn_generate_room_code, (char *buffer, int32_t length)) \
  X(int32_t, mmn_normalize_room_code, (const char *text, char *buffer, int32_t length)) \
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
  X(int32_t, mmn_send_transfer, (uint64_t room, const char *peer_id, const uint8_t *data, int32_t length, const uint8_t *tag, int32_t tag_length, uint64_t *transfer)) \
  X(int32_t, mmn_accept_transfer, (uint64_t room, const char *peer_id, uint64_t transfer, void *buffer, int32_t capacity)) \
  X(int32_t, mmn_accept_transfer_in_parts, (uint64_t room, const char *peer_id, uint64_t transfer)) \
  X(int32_t, mmn_cancel_transfer, (uint64_t room, const char *peer_id, uint64_t transfer)) \
  X(int32_t, mmn_default_state_options, (struct MmnStateOptions *options)) \
  X(int32_t, mmn_submit, (uint64_t room, const uint8_t *data, int32_t length, uint16_t msg_type, uint64_t *request)) \
  X(int32_t, mmn_set_properties, (uint64_t room, const struct MmnPropertyChange *changes, int32_t count, uint64_t *request)) \
  X(const uint8_t *, mmn_property, (uint64_t room, const char *key, struct MmnPropertyInfo *info)) \
  X(const char *, mmn_property_keys, (uint64_t room, const char *owner)) \
  X(int32_t, mmn_provide_snapshot, (uint64_t room, uint64_t request, const uint8_t *data, int32_t length)) \
  X(int32_t, mmn_state_info, (uint64_t room, struct MmnStateInfo *info)) \
  X(int32_t, mmn_peer_stats, (uint64_t room, const char *peer_id, struct MmnPeerStats *stats)) \
  X(int32_t, mmn_room_stats, (uint64_t room, struct MmnRoomStats *stats)) \
  X(int64_t, mmn_room_time_ms, (uint64_t room)) \
  X(int32_t, mmn_simulate_network, (uint64_t room, uint32_t lag_ms, uint32_t jitter_ms, uint32_t loss_permille)) \
  X(int32_t, mmn_simulate_preset, (uint64_t room, const char *preset)) \
  X(int32_t, mmn_set_log_stderr, (int32_t level)) \
  X(int32_t, mmn_set_log, (int32_t level, MmnLogCallback callback, void *user_data, MmnDropCallback drop_fn))

#ifndef MMN_NO_CLASSIC

/*
 * The functions of the published library, which act on the default room (mmn_default_room). Their
 * names have no prefix: define MMN_NO_CLASSIC before this header to leave them out.
 */

/**
 * ReconnectCallback: the link is lost and the library is dialling the peer again.
 */
#define MMN_RECONNECT_RETRYING 0

/**
 * ReconnectCallback: the link is back.
 */
#define MMN_RECONNECT_RETURNED 1

/**
 * ReconnectCallback: the library has given the peer up.
 */
#define MMN_RECONNECT_GAVE_UP 2

/**
 * Receives messages. `peer` sent the `length` bytes at `data`, which is never NULL, with
 * `msg_type` and `flags`. The rules for threads, order and calls inside are those of
 * MmnEventCallback: ShutdownNetwork is refused inside a callback.
 */
typedef void (*ReceiveCallback)(const char *peer,
                                const uint8_t *data,
                                int32_t length,
                                uint16_t msg_type,
                                uint8_t flags);

/**
 * Receives each change of the leader. `leader` is the leader's peer id, "" when there is none.
 */
typedef void (*LeaderChangedCallback)(const char *leader);

/**
 * Receives connects and losses. `status` is MMN_PEER_CONNECTED or MMN_PEER_DISCONNECTED.
 */
typedef void (*PeerStatusCallback)(const char *peer, int32_t status);

/**
 * Receives the result of a ConnectToPeer. `addr` is the address as passed to that call. `success`
 * is 1 when the peer is connected, else 0. `code` is MMN_OK or the reason (MMN_ALREADY_CONNECTED
 * comes with success 1).
 */
typedef void (*ConnectionResultCallback)(const char *addr, uint8_t success, int32_t code);

/**
 * Receives the progress of reconnection to lost peers, while automatic reconnection is on.
 * `status` is MMN_RECONNECT_RETRYING, MMN_RECONNECT_RETURNED or MMN_RECONNECT_GAVE_UP. The
 * PeerStatus callback for the same event runs first.
 */
typedef void (*ReconnectCallback)(const char *peer, uint8_t status);

/**
 * Settings for InitializeNetworkWithConfig: always 44 bytes. Set every field; its default is in
 * brackets. A field must be above 0 unless its text allows 0.
 */
typedef struct NetworkConfigFFI {
  /**
   * Longest wait between two dials of a lost peer, in milliseconds [30000]. At least
   * reconnect_initial_ms. In the first minute after a loss the waits are shorter
   * (docs/life-of-a-peer.md, "Reconnection").
   */
  uint32_t reconnect_max_ms;
  /**
   * Payloads longer than this, in bytes, are compressed if that saves at least a quarter [512].
   * 0 tries every payload.
   */
  uint32_t compression_threshold;
  /**
   * Longest message to send or accept, in bytes [262144]. Between two peers the smaller of both
   * values applies.
   */
  uint32_t max_message_size;
  /**
   * Time between two heartbeats, in milliseconds [500].
   */
  uint16_t heartbeat_interval_ms;
  /**
   * Shortest time without a leader before an election, in milliseconds [1500]. Above
   * heartbeat_interval_ms, at most election_timeout_max_ms. If it is below the product of
   * heartbeat_interval_ms and heartbeat_timeout_multiplier, the library uses that product, and
   * raises the longest time by the same amount.
   */
  uint16_t election_timeout_min_ms;
  /**
   * Longest time without a leader before an election, in milliseconds [3000].
   */
  uint16_t election_timeout_max_ms;
  /**
   * Wait before the first dial of a lost peer, in milliseconds [1000]. It doubles with each
   * failed dial.
   */
  uint16_t reconnect_initial_ms;
  /**
   * Longest time without an answer after which a ConnectToPeer ends, in milliseconds [5000].
   * Each step that gets an answer renews it, up to three times this in all; the first is the
   * lookup of a host name.
   */
  uint16_t handshake_timeout_ms;
  /**
   * Longest time that a peer's library may read nothing before this one drops the link, in
   * milliseconds [5000].
   */
  uint16_t write_timeout_ms;
  /**
   * Most messages queued for one peer [128]. A send beyond that returns MMN_SEND_QUEUE_FULL.
   */
  uint16_t send_queue_capacity;
  /**
   * Most messages queued for the host's Receive callback [256]. Beyond that, senders wait.
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
   * UDP port of multicast discovery in the local network [15353]. 0 turns it off.
   */
  uint16_t mdns_port;
  /**
   * Heartbeat intervals of silence after which a peer is lost [3].
   */
  uint8_t heartbeat_timeout_multiplier;
  /**
   * No effect: QUIC needs no TCP keep-alive [3].
   */
  uint8_t keepalive_retries;
  /**
   * In centralized mode, whether the leader relays each broadcast to all members but its origin:
   * 0 no, else yes [1].
   */
  uint8_t centralized_auto_forward;
  /**
   * Whether this member campaigns to become the leader: 0 no, else yes [1].
   */
  uint8_t auto_election_enabled;
  /**
   * Behaviour when a leader named by SetLeader is lost: 1 is MMN_RECOVERY_AUTO_ELECT, anything
   * else MMN_RECOVERY_HOLD [0]. With MMN_AUTHORITY_LEADER_ONLY always the former.
   */
  uint8_t manual_override_recovery;
  /**
   * No effect: QUIC has no Nagle algorithm to switch off [1].
   */
  uint8_t tcp_nodelay;
  /**
   * Whether the library dials lost peers again: 0 no, else yes [1].
   */
  uint8_t auto_reconnect_enabled;
  /**
   * Dials of a lost peer before the library gives it up [0]. 0 is unlimited.
   */
  uint8_t reconnect_max_retries;
} NetworkConfigFFI;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sets the callback for messages; NULL removes it. When the call returns, the previous callback is
 * not running and never runs again: the call waits for it, unless it is made from inside that
 * callback.
 *
 * Until the first registration, messages wait for up to 5 seconds after the room opens, including
 * messages that this host sends to itself. After that the library discards messages that find no
 * callback.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterReceiveCallback(ReceiveCallback callback);

/**
 * Sets the callback for changes of the leader; NULL removes it. It replaces the previous one as
 * RegisterReceiveCallback does. The new callback first receives the present leader, if one is
 * known.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterLeaderChangedCallback(LeaderChangedCallback callback);

/**
 * Sets the callback for connects and losses; NULL removes it. It replaces the previous one as
 * RegisterReceiveCallback does. The new callback first receives every connected peer.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterPeerStatusCallback(PeerStatusCallback callback);

/**
 * Sets the callback for the results of ConnectToPeer; NULL removes it. It replaces the previous
 * one as RegisterReceiveCallback does. The library discards results that find no callback.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterConnectionResultCallback(ConnectionResultCallback callback);

/**
 * Sets the callback for the reconnection of lost peers; NULL removes it. It replaces the previous
 * one as RegisterReceiveCallback does.
 *
 * Returns MMN_OK or MMN_NOT_INITIALIZED.
 */
int32_t RegisterReconnectCallback(ReconnectCallback callback);

/**
 * Opens the default room with default settings: those of NetworkConfigFFI, except that each queue
 * holds 4096 messages. Does not wait for other members. The arguments are as in mmn_open.
 *
 * A call during a ShutdownNetwork on another thread waits for it. Inside a callback the call is
 * refused with MMN_ALREADY_INITIALIZED if the default room is open or closing.
 *
 * Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_CONNECTION_FAILED (no UDP
 * socket) or MMN_INTERNAL_ERROR.
 *
 * Both strings are NULL or end with a NUL.
 */
int32_t InitializeNetwork(const char *peer_id, const char *session_id);

/**
 * Opens the default room as InitializeNetwork does, with the given settings.
 *
 * The library reads `config` during the call only. A NULL `config` or an invalid field is
 * MMN_INVALID_ARGUMENT; GetLastErrorMessage names the first such field.
 *
 * Both strings are NULL or end with a NUL. `config` is NULL or points to 44 readable bytes.
 */
int32_t InitializeNetworkWithConfig(const char *peer_id,
                                    const char *session_id,
                                    const struct NetworkConfigFFI *config);

/**
 * As mmn_close, for the default room.
 */
int32_t ShutdownNetwork(void);

/**
 * As mmn_is_open, for the default room.
 */
uint8_t IsNetworkInitialized(void);

/**
 * Closes the connection to a peer, as mmn_disconnect does for the default room without data.
 *
 * `peer_id` is NULL or ends with a NUL.
 */
int32_t DisconnectPeer(const char *peer_id);

/**
 * Sends a reliable message to all connected peers, or to none of them, as mmn_broadcast does for
 * the default room. `flags` are the host's own, except that bit 0 arrives clear.
 *
 * `data` points to `length` readable bytes, or may be NULL when `length` is 0.
 */
int32_t BroadcastMessage(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);

/**
 * Sends a reliable message to one peer, as mmn_send does for the default room.
 *
 * `peer_id` is NULL or ends with a NUL. `data` is as in BroadcastMessage.
 */
int32_t SendToPeer(const char *peer_id,
                   const uint8_t *data,
                   int32_t length,
                   uint16_t msg_type,
                   uint8_t flags);

/**
 * Sends a reliable message to the leader, as mmn_send_to_leader does for the default room.
 *
 * `data` is as in BroadcastMessage.
 */
int32_t SendToLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);

/**
 * Sends a message as the leader, as mmn_broadcast_as_leader does for the default room.
 *
 * `data` is as in BroadcastMessage.
 */
int32_t SendFromLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);

/**
 * Forwards a message on behalf of `from`, as mmn_forward does for the default room.
 *
 * `from` and `to` are NULL or end with a NUL. `data` is as in BroadcastMessage.
 */
int32_t ForwardMessage(const char *from,
                       const char *to,
                       const uint8_t *data,
                       int32_t length,
                       uint16_t msg_type,
                       uint8_t flags);

/**
 * As mmn_is_announced, for the default room.
 */
uint8_t IsMdnsActive(void);

/**
 * Turns the log on standard error on (not 0) or off (0), at the level of the last
 * mmn_set_log_stderr, MMN_LOG_INFO by default. It may be called at any time.
 *
 * Returns MMN_OK.
 */
int32_t EnableLogging(uint8_t enabled);

/**
 * As mmn_last_error_code.
 */
int32_t GetLastErrorCode(void);

/**
 * As mmn_last_error_message.
 */
const char *GetLastErrorMessage(void);

/**
 * As mmn_connect, for the default room.
 *
 * As [`mmn_connect`].
 */
int32_t ConnectToPeer(const char *addr);

/**
 * As mmn_local_address, for the default room.
 */
const char *GetLocalAddr(void);

/**
 * As mmn_local_id, for the default room.
 */
const char *GetLocalPeerId(void);

/**
 * As mmn_session_id, for the default room.
 */
const char *GetSessionId(void);

/**
 * As mmn_peer_count, for the default room.
 */
int32_t GetPeerCount(void);

/**
 * As mmn_peers, for the default room.
 */
const char *GetPeerList(void);

/**
 * As mmn_peer_rtt_ms, for the default room.
 *
 * As [`mmn_peer_rtt_ms`].
 */
int32_t GetPeerRTT(const char *peer_id);

/**
 * As mmn_peer_status, for the default room.
 *
 * As [`mmn_peer_status`].
 */
int32_t GetPeerStatus(const char *peer_id);

/**
 * As mmn_set_auto_reconnect, for the default room.
 */
int32_t SetAutoReconnect(uint8_t enabled);

/**
 * As mmn_auto_reconnect, for the default room.
 */
uint8_t IsAutoReconnectEnabled(void);

/**
 * As mmn_set_leader, for the default room.
 *
 * As [`mmn_set_leader`].
 */
int32_t SetLeader(const char *peer_id);

/**
 * As mmn_set_auto_election, for the default room.
 */
int32_t EnableAutoLeaderElection(uint8_t enabled);

/**
 * As mmn_leader, for the default room.
 */
const char *GetCurrentLeader(void);

/**
 * As mmn_is_leader, for the default room.
 */
uint8_t IsLeader(void);

/**
 * As mmn_set_centralized, for the default room.
 */
int32_t SetCentralizedMode(uint8_t enabled);

/**
 * As mmn_centralized, for the default room.
 */
uint8_t IsCentralizedMode(void);

/**
 * As mmn_set_auto_forward, for the default room.
 */
int32_t SetCentralizedAutoForward(uint8_t enabled);

/**
 * As mmn_auto_forward, for the default room.
 */
uint8_t IsCentralizedAutoForward(void);

/**
 * As mmn_set_compression_threshold, for the default room.
 */
int32_t SetCompressionThreshold(uint32_t bytes);

/**
 * Sets the longest time that a member of a room with MMN_STRATEGY_GOSSIP waits after opening the
 * room for the number of members to settle, in milliseconds [15000]. Above 0. After that it takes
 * part in elections. The wait ends when it learns of a leader.
 *
 * The host may change this setting and the three below before a room is open and while one is.
 * They belong to the process: they apply from the next window on, and to all default rooms opened
 * later.
 * With MMN_STRATEGY_RAFT they are stored and have no effect. All members of a room should use the
 * same values.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT.
 */
int32_t SetStartupGracePeriod(uint32_t milliseconds);

/**
 * The value of SetStartupGracePeriod, 15000 by default.
 */
uint32_t GetStartupGracePeriod(void);

/**
 * Sets how often a member samples the number of members during SetStartupGracePeriod, in
 * milliseconds [1000]. Above 0. Two equal samples in a row end the wait.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT.
 */
int32_t SetMembershipSampleInterval(uint32_t milliseconds);

/**
 * The value of SetMembershipSampleInterval, 1000 by default.
 */
uint32_t GetMembershipSampleInterval(void);

/**
 * Sets how long a member waits for a declaration of the leader before it proposes itself, in
 * milliseconds [10000]. Above 0. The leader declares itself twice in that time. When the leader is
 * lost, another leads after half to twice that time, plus SetLeaderElectionDuration.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT.
 */
int32_t SetLeaderAliveThreshold(uint32_t milliseconds);

/**
 * The value of SetLeaderAliveThreshold, 10000 by default.
 */
uint32_t GetLeaderAliveThreshold(void);

/**
 * Sets how long a member that proposed itself collects the proposals of others, in milliseconds
 * [5000]. Above 0. Then it leads, unless a lower peer id also proposed itself or leads. If this is
 * shorter than SetLeaderAliveThreshold, others may propose themselves too late, and the leader may
 * not be the lowest id; see MMN_GOSSIP_STRICT_LOWEST.
 *
 * Returns MMN_OK or MMN_INVALID_ARGUMENT.
 */
int32_t SetLeaderElectionDuration(uint32_t milliseconds);

/**
 * The value of SetLeaderElectionDuration, 5000 by default.
 */
uint32_t GetLeaderElectionDuration(void);

/**
 * Time for which a member remembers proposals and declarations of others, so that it ignores older
 * ones: ten times GetLeaderAliveThreshold, in milliseconds, at most UINT32_MAX.
 */
uint32_t GetMsgExpirationTimeout(void);

/**
 * The interval at which a leader declares itself: half of GetLeaderAliveThreshold, in
 * milliseconds, rounded down.
 */
uint32_t GetLeadershipDeclarationInterval(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/**
 * The functions of this section, as MMN_FUNCTIONS lists the others.
 */
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

#endif  /* MMN_NO_CLASSIC */

#endif  /* META_MYSTIA_NETWORK_H */
