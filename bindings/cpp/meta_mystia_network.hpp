// meta_mystia_network from C++17: rooms as objects, RAII, std::function handlers, exceptions for refused calls.
//
//   mmn::Room room("alice", "tea");                       // linked with -lmeta_mystia_network
//   room.on_message([](const mmn::Message& m) { ... });
//   room.connect("192.168.1.20:40123");
//   room.broadcast("hello");
//
// or, without linking, `mmn::Library library("./libmeta_mystia_network.so"); mmn::Room room(library.api(), "alice", "tea");`.
// A process may have several rooms at a time.
//
// Handlers of a room run one at a time, in order, on a thread of the library, or, in poll mode (a room made with mmn::Options),
// inside poll(), on the thread that calls it. They may call every function of every room except shutdown() and poll(). An
// exception from a handler goes to on_handler_error, or is printed without one; it never reaches the library.
#ifndef META_MYSTIA_NETWORK_HPP
#define META_MYSTIA_NETWORK_HPP

#include <meta_mystia_network.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(_WIN32)
// Without the macros min and max, and without the old winsock.h, which excludes the winsock2.h of a program that includes it
// later. A program's own definitions stay, and keep their effect for its later includes.
#ifndef NOMINMAX
#define NOMINMAX
#define MMN_UNDEFINE_NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#define MMN_UNDEFINE_WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#ifdef MMN_UNDEFINE_NOMINMAX
#undef NOMINMAX
#undef MMN_UNDEFINE_NOMINMAX
#endif
#ifdef MMN_UNDEFINE_WIN32_LEAN_AND_MEAN
#undef WIN32_LEAN_AND_MEAN
#undef MMN_UNDEFINE_WIN32_LEAN_AND_MEAN
#endif
#else
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace mmn {

// Message types below this one belong to the library.
constexpr std::uint16_t first_user_type = 0x0100;

// -- Generated from src/ffi by `make header`: do not edit.
// The library's codes. New ones are only ever appended, so expect numbers that are not listed here.
enum Code : std::int32_t {
  ok = 0,
  not_initialized = -1,
  already_initialized = -2,
  invalid_argument = -3,
  connection_failed = -4,
  peer_not_found = -5,
  not_leader = -6,
  send_queue_full = -7,
  message_too_large = -8,
  serialization_error = -9,
  session_mismatch = -10,
  duplicate_peer_id = -11,
  version_mismatch = -12,
  max_connections_reached = -13,
  already_connected = -14,
  would_deadlock = -15,
  not_supported = -16,
  authentication_failed = -17,
  rejected = -18,
  timeout = -19,
  policy_mismatch = -20,
  superseded = -21,
  rate_limited = -22,
  name_not_resolved = -23,
  looking_for_room = -24,
  conflict = -25,
  state_full = -26,
  outcome_unknown = -27,
  internal_error = -99,
};

// One of MMN_LEADER_... in a word.
inline const char* describe_leader_reason(std::int32_t number) noexcept {
  switch (number) {
    case MMN_LEADER_UNKNOWN: return "unknown";
    case MMN_LEADER_ELECTED: return "elected";
    case MMN_LEADER_ASSIGNED: return "assigned";
    case MMN_LEADER_TRANSFERRED: return "transferred";
    case MMN_LEADER_FOUND: return "found";
    case MMN_LEADER_LOST: return "lost";
    case MMN_LEADER_LEFT: return "left";
    case MMN_LEADER_RESIGNED: return "resigned";
    default: return "unknown";
  }
}

// One of MMN_MEMBER_... in a word.
inline const char* describe_member_state(std::int32_t number) noexcept {
  switch (number) {
    case MMN_MEMBER_INIT: return "init";
    case MMN_MEMBER_JOINING: return "joining";
    case MMN_MEMBER_ACTIVE: return "active";
    case MMN_MEMBER_UNREACHABLE: return "unreachable";
    case MMN_MEMBER_LEAVING: return "leaving";
    case MMN_MEMBER_REMOVED: return "removed";
    default: return "unknown";
  }
}

// One of MMN_LEFT_... in a word.
inline const char* describe_left_reason(std::int32_t number) noexcept {
  switch (number) {
    case MMN_LEFT_LEFT: return "left";
    case MMN_LEFT_LOST: return "lost";
    case MMN_LEFT_DISCONNECTED: return "disconnected";
    case MMN_LEFT_REPLACED: return "replaced";
    case MMN_LEFT_KICKED: return "kicked";
    case MMN_LEFT_VIOLATION: return "violation";
    case MMN_LEFT_GAVE_UP: return "gave up";
    case MMN_LEFT_ROOM_ENDED: return "room ended";
    default: return "unknown";
  }
}

// One of MMN_END_... in a word.
inline const char* describe_end_reason(std::int32_t number) noexcept {
  switch (number) {
    case MMN_END_KICKED: return "kicked";
    case MMN_END_HOST_LEFT: return "host left";
    case MMN_END_HOST_LOST: return "host lost";
    case MMN_END_DISCONNECTED: return "disconnected";
    case MMN_END_DUPLICATE_ID: return "duplicate id";
    case MMN_END_INTERNAL: return "internal";
    default: return "unknown";
  }
}

// One of MMN_RESET_... in a word.
inline const char* describe_reset_reason(std::int32_t number) noexcept {
  switch (number) {
    case MMN_RESET_JOINED: return "joined";
    case MMN_RESET_BEHIND: return "behind";
    case MMN_RESET_ROLLED_BACK: return "rolled back";
    default: return "unknown";
  }
}

// One of MMN_TRANSFER_... in a word.
inline const char* describe_transfer_outcome(std::int32_t number) noexcept {
  switch (number) {
    case MMN_TRANSFER_COMPLETE: return "complete";
    case MMN_TRANSFER_CANCELLED_BY_SENDER: return "cancelled by sender";
    case MMN_TRANSFER_CANCELLED_BY_RECEIVER: return "cancelled by receiver";
    case MMN_TRANSFER_REFUSED: return "refused";
    case MMN_TRANSFER_UNANSWERED: return "unanswered";
    case MMN_TRANSFER_BUSY: return "busy";
    case MMN_TRANSFER_PEER_LEFT: return "peer left";
    case MMN_TRANSFER_ROOM_ENDED: return "room ended";
    case MMN_TRANSFER_CORRUPT: return "corrupt";
    default: return "unknown";
  }
}

// Events by kind. The views are valid during the handler only.

// `peer` is connected. This event precedes the peer's first message.
struct PeerJoined {
  static constexpr std::uint32_t kind = MMN_EVENT_JOINED;

  // The new peer.
  std::string_view peer;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit PeerJoined(const MmnEvent& event)
      : peer(event.peer), peer_index(event.peer_index) {}
};

// The link to `peer` is lost and the library is dialling it again. It keeps the messages already accepted for the peer, and
// reliable messages that are sent meanwhile, as long as the send queue has room.
struct PeerReconnecting {
  static constexpr std::uint32_t kind = MMN_EVENT_RECONNECTING;

  // The lost peer.
  std::string_view peer;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit PeerReconnecting(const MmnEvent& event)
      : peer(event.peer), peer_index(event.peer_index) {}
};

// The link to `peer` is back. Messages that were queued for it arrive, once and in order. `undelivered` and `missed` count
// each lost message once. This event precedes everything that the peer sends on the new link.
struct PeerReturned {
  static constexpr std::uint32_t kind = MMN_EVENT_RETURNED;

  // The peer that is back.
  std::string_view peer;
  // Reliable messages of this host that the peer will not get. They were broadcast while it was away and did not fit into
  // its queue.
  std::uint64_t undelivered;
  // Reliable messages of the peer that this host will not get.
  std::uint64_t missed;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit PeerReturned(const MmnEvent& event)
      : peer(event.peer), undelivered(event.count), missed(event.missed), peer_index(event.peer_index) {}
};

// `peer` is gone. This event follows the peer's last message.
struct PeerLeft {
  static constexpr std::uint32_t kind = MMN_EVENT_LEFT;

  // The member that is gone.
  std::string_view peer;
  // The reason for which a member is gone.
  std::int32_t reason;
  // Number from the host that removed or disconnected the peer, else 0.
  std::int32_t code;
  // Bytes from the host that removed or disconnected the peer.
  std::string_view data;
  // Reliable messages for the peer that are not known to be delivered, and that no PeerReturned has counted.
  std::uint64_t undelivered;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit PeerLeft(const MmnEvent& event)
      : peer(event.peer),
        reason(event.reason),
        code(event.code),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        undelivered(event.count),
        peer_index(event.peer_index) {}
};

// `from` sent `data`.
struct Message {
  static constexpr std::uint32_t kind = MMN_EVENT_MESSAGE;

  // The sender.
  std::string_view from;
  // The message.
  std::string_view data;
  // The sender's message type, 0x0100 or higher.
  std::uint16_t type;
  // The sender's flags.
  std::uint8_t flags;
  // The channel that the sender named; 0 for the classic sends.
  std::uint8_t channel;
  // The delivery of a message.
  std::uint8_t delivery;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit Message(const MmnEvent& event)
      : from(event.peer),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        type(event.msg_type),
        flags(event.flags),
        channel(event.channel),
        delivery(event.delivery),
        peer_index(event.peer_index) {}
  std::string_view text() const noexcept { return data; }
};

// This node's set_leader() for `peer` has ended.
struct SetLeaderResult {
  static constexpr std::uint32_t kind = MMN_EVENT_SET_LEADER_RESULT;

  // The member that set_leader() named.
  std::string_view peer;
  // Whether the peer leads.
  bool success;
  // MMN_OK, MMN_TIMEOUT, MMN_SUPERSEDED, MMN_REJECTED (with MMN_QUORUM_STATIC: the leader refused the transfer) or another
  // error.
  std::int32_t code;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit SetLeaderResult(const MmnEvent& event)
      : peer(event.peer), success(event.success != 0), code(event.code), peer_index(event.peer_index) {}
};

// This node is no longer in the room. PeerLeft follows for every member, with MMN_LEFT_ROOM_ENDED (for a fixed host with the
// reason of its own departure). The host must still call shutdown().
struct RoomEnded {
  static constexpr std::uint32_t kind = MMN_EVENT_ROOM_ENDED;

  // The reason for which the room is over for this member.
  std::int32_t reason;
  // Number from the leader's host, else 0.
  std::int32_t code;
  // Bytes from the leader's host.
  std::string_view data;

  explicit RoomEnded(const MmnEvent& event)
      : reason(event.reason),
        code(event.code),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)) {}
};

// `leader` leads, or no member does.
struct LeaderChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_LEADER_CHANGED;

  // The member that leads; "" means that no member does.
  std::string_view leader;
  // The previous leader as this handler last received it; "" for none.
  std::string_view previous;
  // The leader's term.
  std::uint64_t term;
  // The number of set_leader() calls that the change builds on.
  std::uint64_t epoch;
  // The reason for a change of the leader.
  std::int32_t reason;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit LeaderChanged(const MmnEvent& event)
      : leader(event.peer),
        previous(event.other),
        term(event.term),
        epoch(event.epoch),
        reason(event.reason),
        peer_index(event.peer_index) {}
};

// This node now leads. The fields are those of the preceding LeaderChanged.
struct LeadershipGained {
  static constexpr std::uint32_t kind = MMN_EVENT_LEADERSHIP_GAINED;

  // This node.
  std::string_view leader;
  // The previous leader; "" for none.
  std::string_view previous;
  // The leader's term.
  std::uint64_t term;
  // The number of set_leader() calls that the change builds on.
  std::uint64_t epoch;
  // The reason for a change of the leader.
  std::int32_t reason;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit LeadershipGained(const MmnEvent& event)
      : leader(event.peer),
        previous(event.other),
        term(event.term),
        epoch(event.epoch),
        reason(event.reason),
        peer_index(event.peer_index) {}
};

// This node no longer leads. The fields are those of the preceding LeaderChanged.
struct LeadershipLost {
  static constexpr std::uint32_t kind = MMN_EVENT_LEADERSHIP_LOST;

  // The member that leads now; "" means that no member does.
  std::string_view leader;
  // The previous leader; "" for none.
  std::string_view previous;
  // The leader's term.
  std::uint64_t term;
  // The number of set_leader() calls that the change builds on.
  std::uint64_t epoch;
  // The reason for a change of the leader.
  std::int32_t reason;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit LeadershipLost(const MmnEvent& event)
      : leader(event.peer),
        previous(event.other),
        term(event.term),
        epoch(event.epoch),
        reason(event.reason),
        peer_index(event.peer_index) {}
};

// `peer` asks to join. The host answers with accept_join() or reject_join().
struct JoinRequest {
  static constexpr std::uint32_t kind = MMN_EVENT_JOIN_REQUEST;

  // The newcomer.
  std::string_view peer;
  // The newcomer's address; "" if it is unknown, as over a relay.
  std::string_view address;
  // The newcomer's join payload.
  std::string_view payload;
  // The number that the answer names.
  std::uint64_t request;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit JoinRequest(const MmnEvent& event)
      : peer(event.peer),
        address(event.other),
        payload(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        request(event.request),
        peer_index(event.peer_index) {}
};

// Discovery found a member in the local network.
struct Discovered {
  static constexpr std::uint32_t kind = MMN_EVENT_DISCOVERED;

  // The member's address, for connect().
  std::string_view address;

  explicit Discovered(const MmnEvent& event)
      : address(event.other) {}
};

// A call of connect() has ended.
struct ConnectionResult {
  static constexpr std::uint32_t kind = MMN_EVENT_CONNECTION_RESULT;

  // The address as passed to connect().
  std::string_view address;
  // Whether the peer is connected.
  bool success;
  // MMN_OK or the reason. MMN_ALREADY_CONNECTED comes with success.
  std::int32_t code;
  // The member that answered; "" if it is unknown.
  std::string_view peer;
  // Number from the leader's host, if that rejected this node, or banned it with a reason that the member that answered
  // remembers; else 0.
  std::int32_t reason;
  // Bytes from that host. Otherwise, of a failed dial, a sentence for the player, with a remedy. With MMN_POLICY_MISMATCH it
  // names the rule and both values; with MMN_MAX_CONNECTIONS_REACHED the limit; with MMN_RATE_LIMITED the number of seconds
  // for which no attempt counts; with MMN_NAME_NOT_RESOLVED the resolver's answer; with MMN_TIMEOUT how far the dial came or
  // which side did not decide; with MMN_REJECTED the rule that refused it.
  std::string_view data;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit ConnectionResult(const MmnEvent& event)
      : address(event.other),
        success(event.success != 0),
        code(event.code),
        peer(event.peer),
        reason(event.reason),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        peer_index(event.peer_index) {}
};

// A call of broadcast() with MMN_SEND_PARTIAL has left `peer` out, because the queue to it is full. One event stands for all
// such broadcasts until the host receives it, and for those of the second after that.
struct SlowPeer {
  static constexpr std::uint32_t kind = MMN_EVENT_SLOW_PEER;

  // The peer whose queue is full.
  std::string_view peer;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit SlowPeer(const MmnEvent& event)
      : peer(event.peer), peer_index(event.peer_index) {}
};

// This node has dropped messages with MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED, because a queue was full, their
// ttl_ms was over, or the link is lost. One event a second comes for each peer and direction, and one with the rest before
// PeerLeft. Messages that the network loses, or that a newer message replaces, are not counted.
struct DataDropped {
  static constexpr std::uint32_t kind = MMN_EVENT_DATA_DROPPED;

  // The peer at the other end.
  std::string_view peer;
  // The direction of messages that this member has dropped.
  std::int32_t direction;
  // Messages dropped since the last such event.
  std::uint64_t count;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit DataDropped(const MmnEvent& event)
      : peer(event.peer), direction(event.reason), count(event.count), peer_index(event.peer_index) {}
};

// With MMN_STRATEGY_SEEDED, the state of the member `peer` has changed. Up to 256 of these events wait for a host that takes
// no events; beyond that it receives the newest state of each member.
struct MemberStateChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_MEMBER_STATE;

  // The member, which may be this node.
  std::string_view peer;
  // Its new state, one of MMN_MEMBER_...
  std::int32_t state;
  // The version of the cluster.
  std::uint64_t version;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit MemberStateChanged(const MmnEvent& event)
      : peer(event.peer), state(event.reason), version(event.term), peer_index(event.peer_index) {}
};

// A call of acquire_lock() or try_lock() has ended.
struct LockResult {
  static constexpr std::uint32_t kind = MMN_EVENT_LOCK_RESULT;

  // The number of the call.
  std::uint64_t request;
  // The name of the lock.
  std::string_view lock;
  // Whether this node holds the lock.
  bool success;
  // MMN_OK, MMN_REJECTED (try_lock(): another member holds it), MMN_TIMEOUT, or MMN_SUPERSEDED (release_lock() or shutdown()
  // came first).
  std::int32_t code;
  // The fencing token, while this node holds the lock; else 0.
  std::uint64_t token;

  explicit LockResult(const MmnEvent& event)
      : request(event.request), lock(event.other), success(event.success != 0), code(event.code), token(event.count) {}
};

// This node no longer holds a lock, since its lease has ended. Up to 256 of these events wait for a host that takes no
// events; beyond that it receives the newest loss of each lock.
struct LockLost {
  static constexpr std::uint32_t kind = MMN_EVENT_LOCK_LOST;

  // The name of the lock.
  std::string_view lock;
  // Its fencing token.
  std::uint64_t token;

  explicit LockLost(const MmnEvent& event)
      : lock(event.other), token(event.count) {}
};

// The members `peer` and `other` have no link, since `other` is connected to max_connections members. Either may be this
// node; then the other one is no member here. Neither receives the other's broadcasts. The hosts of both and of the leader
// receive this event once, for as long as the link is missing.
struct UnlinkedPeer {
  static constexpr std::uint32_t kind = MMN_EVENT_UNLINKED_PEER;

  // One of the two members.
  std::string_view peer;
  // The member that is connected to max_connections members.
  std::string_view other;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit UnlinkedPeer(const MmnEvent& event)
      : peer(event.peer), other(event.other), peer_index(event.peer_index) {}
};

// The ban of `peer` is void at this node. The leader has led for a few seconds, has no such ban and does not know the member
// that set it: two rooms became one, for example. The leader's host may ban again.
struct BanDropped {
  static constexpr std::uint32_t kind = MMN_EVENT_BAN_DROPPED;

  // The banned id.
  std::string_view peer;
  // The leader.
  std::string_view leader;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit BanDropped(const MmnEvent& event)
      : peer(event.peer), leader(event.other), peer_index(event.peer_index) {}
};

// A member that the library found and dialled by itself refused this node, or this node refused that member. The library
// goes on by itself; the event is for the player. The library reports it once a minute for each address and code. Two limits
// of 16 events a minute apply: one to MMN_SESSION_MISMATCH, MMN_AUTHENTICATION_FAILED and MMN_VERSION_MISMATCH, which any
// process can cause, and one to the other codes.
struct DiscoveryRefused {
  static constexpr std::uint32_t kind = MMN_EVENT_DISCOVERY_REFUSED;

  // The member that answered; "" if it is unknown.
  std::string_view peer;
  // The member's address; for one at a relay that of the relay, as in MmnOptions.relays.
  std::string_view address;
  // The way in which the library found a member.
  std::uint16_t found_by;
  // MMN_DUPLICATE_PEER_ID, MMN_REJECTED, MMN_POLICY_MISMATCH, MMN_MAX_CONNECTIONS_REACHED, MMN_SESSION_MISMATCH,
  // MMN_AUTHENTICATION_FAILED or MMN_VERSION_MISMATCH.
  std::int32_t code;
  // As in ConnectionResult.
  std::int32_t reason;
  // As in ConnectionResult.
  std::string_view data;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit DiscoveryRefused(const MmnEvent& event)
      : peer(event.peer),
        address(event.other),
        found_by(event.found_by),
        code(event.code),
        reason(event.reason),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        peer_index(event.peer_index) {}
};

// An JoinRequest has ended without an answer of this host: the newcomer is gone, the time is up, or another member decides
// now. A host may close its dialog.
struct JoinWithdrawn {
  static constexpr std::uint32_t kind = MMN_EVENT_JOIN_WITHDRAWN;

  // The newcomer.
  std::string_view peer;
  // The number of the request.
  std::uint64_t request;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit JoinWithdrawn(const MmnEvent& event)
      : peer(event.peer), request(event.request), peer_index(event.peer_index) {}
};

// The host of `peer` takes no events: it has not called poll(), or is still in a callback. HostBack, PeerReconnecting or
// PeerLeft ends it.
struct HostSilent {
  static constexpr std::uint32_t kind = MMN_EVENT_HOST_SILENT;

  // The peer.
  std::string_view peer;
  // Time without an event taken, in milliseconds: 5000 or more.
  std::uint64_t silent_ms;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit HostSilent(const MmnEvent& event)
      : peer(event.peer), silent_ms(event.count), peer_index(event.peer_index) {}
};

// The host of `peer` takes events again.
struct HostBack {
  static constexpr std::uint32_t kind = MMN_EVENT_HOST_BACK;

  // The peer.
  std::string_view peer;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit HostBack(const MmnEvent& event)
      : peer(event.peer), peer_index(event.peer_index) {}
};

// With MMN_ENTRY_JOIN, this node has found no room yet. It goes on looking, and reports this once.
struct NoRoomFound {
  static constexpr std::uint32_t kind = MMN_EVENT_NO_ROOM_FOUND;

  // Time without a room, in milliseconds.
  std::uint64_t waited_ms;

  explicit NoRoomFound(const MmnEvent& event)
      : waited_ms(event.count) {}
};

// The messages to and from `peer` take another path from now on. The change loses and reorders no reliable message. path()
// returns the path of a peer that has just joined or returned. Up to 256 of these events wait for a host that takes no
// events; beyond that it receives the newest of each peer.
struct PathChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_PATH_CHANGED;

  // The peer at the other end.
  std::string_view peer;
  // The member that carries the packets from now on; "" if none does, as on a direct path and over a relay.
  std::string_view carrier;
  // The path from now on, one of MMN_PATH_...
  std::int32_t path;
  // The path before, one of MMN_PATH_...
  std::int32_t previous;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit PathChanged(const MmnEvent& event)
      : peer(event.peer), carrier(event.other), path(event.reason), previous(event.code), peer_index(event.peer_index) {}
};

// This member has entered a relay of MmnOptions.relays, or is not in it. While it is not, the library goes on trying, and
// links that need no relay stay. It reports a failure once, until the reason changes or it succeeds. It also reports that a
// relay sees this member at another address. Up to 64 of these events wait for a host that takes no events; beyond that it
// receives the newest of each relay.
struct RelayChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_RELAY;

  // The relay's address as given in MmnOptions.relays.
  std::string_view relay;
  // Whether this member is in the relay.
  bool success;
  // MMN_OK, MMN_CONNECTION_FAILED (the relay is unreachable, or the link to it is lost), MMN_TIMEOUT (no answer: the relay
  // is off, or the network blocks UDP), MMN_NAME_NOT_RESOLVED, MMN_AUTHENTICATION_FAILED (another token, or another key than
  // the given one), MMN_MAX_CONNECTIONS_REACHED (the relay is full), MMN_RATE_LIMITED or MMN_VERSION_MISMATCH.
  std::int32_t code;
  // UTF-8. With success, the address at which the relay sees this member, as public_address() returns it; else a sentence
  // for the player, with a remedy.
  std::string_view data;

  explicit RelayChanged(const MmnEvent& event)
      : relay(event.other),
        success(event.success != 0),
        code(event.code),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)) {}
};

// The room has confirmed an action of submit(). The hosts of all members receive the same actions in the same order.
struct RoomAction {
  static constexpr std::uint32_t kind = MMN_EVENT_ACTION;

  // The member that submitted it, which may have left since.
  std::string_view author;
  // The action.
  std::string_view data;
  // The author's message type, 0x0100 or higher.
  std::uint16_t type;
  // Index of its entry. Within a history, entries have rising indexes.
  std::uint64_t index;
  // Time of its entry, in milliseconds since the room's first one.
  std::uint64_t time_ms;
  // The number from submit(), if this node is the author; else 0.
  std::uint64_t request;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit RoomAction(const MmnEvent& event)
      : author(event.peer),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        type(event.msg_type),
        index(event.index),
        time_ms(event.time_ms),
        request(event.request),
        peer_index(event.peer_index) {}
};

// A call of submit() or set_properties() has ended. This event follows those of the call's entry.
struct ActionResult {
  static constexpr std::uint32_t kind = MMN_EVENT_ACTION_RESULT;

  // The number of the call.
  std::uint64_t request;
  // Index of its entry; 0 if it has none, or this member no longer has it.
  std::uint64_t index;
  // MMN_OK; for a property set also MMN_CONFLICT, MMN_STATE_FULL or MMN_REJECTED, and then nothing has changed;
  // MMN_OUTCOME_UNKNOWN if this member was away for so long that it cannot know.
  std::int32_t code;

  explicit ActionResult(const MmnEvent& event)
      : request(event.request), index(event.index), code(event.code) {}
};

// A property has changed, by set_properties(), because its owner has left, or because this member has taken over other
// members' state. property() already shows it so.
struct PropertyChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_PROPERTY;

  // The name of the property.
  std::string_view key;
  // Its value.
  std::string_view value;
  // Its owner; "" if it has none.
  std::string_view owner;
  // Its version, for expected_version of MmnPropertyChange.
  std::uint64_t version;
  // Whether the property exists; else it has no value, owner or version.
  bool exists;
  // The member that set it; "" if no set_properties() did, or the state jumped.
  std::string_view author;
  // Index of the entry that changed it, or that the state jumped to.
  std::uint64_t index;
  // Time of that entry, in milliseconds since the room's first one.
  std::uint64_t time_ms;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit PropertyChanged(const MmnEvent& event)
      : key(event.other),
        value(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        owner(event.owner),
        version(event.count),
        exists(event.success != 0),
        author(event.peer),
        index(event.index),
        time_ms(event.time_ms),
        peer_index(event.peer_index) {}
};

// The host begins anew with the actions: it replaces its state by the snapshot, and receives the actions above `index`.
// Properties and members do not begin anew; events with their differences follow.
struct StateReset {
  static constexpr std::uint32_t kind = MMN_EVENT_STATE_RESET;

  // A state that another member's host has provided; empty for the initial state.
  std::string_view snapshot;
  // Index of the last entry in that state.
  std::uint64_t index;
  // The reason for which a host begins anew with the room's state.
  std::int32_t reason;
  // MMN_OK, or MMN_TIMEOUT if actions up to `index` are missing, because no host provided a snapshot.
  std::int32_t code;
  // Actions undone: the number of RolledBack before this event.
  std::uint64_t undone;

  explicit StateReset(const MmnEvent& event)
      : snapshot(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        index(event.index),
        reason(event.reason),
        code(event.code),
        undone(event.count) {}
};

// The room has taken over another history, which lacks an action that this host has received. One event comes for each such
// action, the lowest index first, before anything else of that history.
struct RolledBack {
  static constexpr std::uint32_t kind = MMN_EVENT_ROLLED_BACK;

  // The member that submitted it.
  std::string_view author;
  // The action.
  std::string_view data;
  // The author's message type.
  std::uint16_t type;
  // The index that it had.
  std::uint64_t index;
  // The number from submit(), if this node is the author; else 0. The library does not submit it again.
  std::uint64_t request;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit RolledBack(const MmnEvent& event)
      : author(event.peer),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        type(event.msg_type),
        index(event.index),
        request(event.request),
        peer_index(event.peer_index) {}
};

// Another member's host needs a snapshot of this host's state, exactly as the events before this one have made it. Copy the
// state inside this event, and pass it to provide_snapshot() then or later.
struct SnapshotWanted {
  static constexpr std::uint32_t kind = MMN_EVENT_SNAPSHOT_WANTED;

  // The number for provide_snapshot().
  std::uint64_t request;
  // Index of the last entry of which this host has received an event.
  std::uint64_t index;

  explicit SnapshotWanted(const MmnEvent& event)
      : request(event.request), index(event.index) {}
};

// `leader` orders the requests to the room's state from now on, or no member does. Requests wait until then.
struct StateOpened {
  static constexpr std::uint32_t kind = MMN_EVENT_STATE_OPENED;

  // The member that orders; "" if the leader is lost.
  std::string_view leader;
  // Whether a majority of the members that count answered the leader, or it is the room's first; else the room has forked.
  bool exclusive;
  // The history that goes on, or begins.
  std::uint64_t history;
  // Members that count for a majority.
  std::uint64_t members;
  // Index of the last entry of which this host has received an event.
  std::uint64_t index;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit StateOpened(const MmnEvent& event)
      : leader(event.peer),
        exclusive(event.success != 0),
        history(event.epoch),
        members(event.count),
        index(event.index),
        peer_index(event.peer_index) {}
};

// A member has come into the room's state or gone from it: all hosts receive this at the same place among the actions. Only
// a member that is here may own a property.
struct StateMemberChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_STATE_MEMBER;

  // The member, which may be this node.
  std::string_view peer;
  // Whether it has come; else it has gone.
  bool here;
  // Index of the entry, or of the one that the state jumped to.
  std::uint64_t index;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit StateMemberChanged(const MmnEvent& event)
      : peer(event.peer), here(event.success != 0), index(event.index), peer_index(event.peer_index) {}
};

// `from` offers a transfer (send_transfer()). The host answers within 60 s with accept_transfer(),
// accept_transfer_in_parts() or cancel_transfer(); it may do so in this event.
struct TransferOffered {
  static constexpr std::uint32_t kind = MMN_EVENT_TRANSFER_OFFERED;

  // The sender.
  std::string_view from;
  // The number of the transfer.
  std::uint64_t transfer;
  // Its length in bytes.
  std::uint64_t size;
  // The sender's bytes about it.
  std::string_view tag;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit TransferOffered(const MmnEvent& event)
      : from(event.peer),
        transfer(event.request),
        size(event.count),
        tag(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        peer_index(event.peer_index) {}
};

// A transfer goes on. Both hosts receive this at most ten times a second for each transfer, and none while an earlier one
// waits for the host.
struct TransferProgress {
  static constexpr std::uint32_t kind = MMN_EVENT_TRANSFER_PROGRESS;

  // The peer at the other end.
  std::string_view peer;
  // The number of the transfer.
  std::uint64_t transfer;
  // Its length in bytes.
  std::uint64_t size;
  // Bytes that have arrived at the receiver.
  std::uint64_t done;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit TransferProgress(const MmnEvent& event)
      : peer(event.peer), transfer(event.request), size(event.count), done(event.index), peer_index(event.peer_index) {}
};

// A transfer is over. Each end receives this exactly once, before PeerLeft of `peer`.
struct TransferResult {
  static constexpr std::uint32_t kind = MMN_EVENT_TRANSFER_RESULT;

  // The peer at the other end.
  std::string_view peer;
  // The number of the transfer.
  std::uint64_t transfer;
  // Its length in bytes.
  std::uint64_t size;
  // Bytes that have arrived at the receiver, as far as this end knows.
  std::uint64_t done;
  // Whether all of it has arrived.
  bool success;
  // The outcome of a transfer.
  std::int32_t reason;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit TransferResult(const MmnEvent& event)
      : peer(event.peer),
        transfer(event.request),
        size(event.count),
        done(event.index),
        success(event.success != 0),
        reason(event.reason),
        peer_index(event.peer_index) {}
};

// The next bytes of a transfer that this host takes with accept_transfer_in_parts().
struct TransferPart {
  static constexpr std::uint32_t kind = MMN_EVENT_TRANSFER_PART;

  // The sender.
  std::string_view from;
  // The number of the transfer.
  std::uint64_t transfer;
  // Position of the first byte, from 0.
  std::uint64_t offset;
  // The bytes, at most 16384.
  std::string_view data;
  // Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room.
  std::uint32_t peer_index;

  explicit TransferPart(const MmnEvent& event)
      : from(event.peer),
        transfer(event.request),
        offset(event.index),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)),
        peer_index(event.peer_index) {}
};

// The state of the port that MmnOptions.port_mapping asks the router for. The library goes on asking after a failure, and
// reports it once, until the reason changes. Up to 64 of these events wait for a host that takes no events; beyond that it
// receives the newest.
struct PortMappingChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_PORT_MAPPING;

  // Whether the router claims to forward a port to this member, and what the others see does not speak against it. Perhaps
  // no member has seen anything yet.
  bool success;
  // MMN_OK, MMN_TIMEOUT (the router does not answer), MMN_REJECTED (it refuses), MMN_SERIALIZATION_ERROR (its answer makes
  // no sense), MMN_CONNECTION_FAILED (the port leads from nowhere: the router has no address of the internet, most members
  // see this one at another address, or several could not come through) or MMN_NOT_SUPPORTED (the room uses no IPv4 network
  // whose router can be found).
  std::int32_t code;
  // UTF-8. With success, the address, as public_address() returns it; else a sentence for the player, with a remedy.
  std::string_view data;

  explicit PortMappingChanged(const MmnEvent& event)
      : success(event.success != 0),
        code(event.code),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)) {}
};

// A TURN server of MmnOptions.turn or set_turn() has given this member a port, or gives none, or the port is lost. While
// this member has none, the library goes on trying, each server in turn; links that do not go through the port stay. It
// reports a failure once, until the reason changes or it succeeds. Up to 64 of these events wait for a host that takes no
// events; beyond that it receives the newest of each server.
struct TurnChanged {
  static constexpr std::uint32_t kind = MMN_EVENT_TURN;

  // The server's URL as given, without the credentials.
  std::string_view server;
  // Whether this member has the port.
  bool success;
  // MMN_OK, MMN_CONNECTION_FAILED (the server is unreachable, the connection to it is lost, it has forgotten the port, or
  // the list of set_turn() lacks it), MMN_TIMEOUT (no answer), MMN_NAME_NOT_RESOLVED, MMN_AUTHENTICATION_FAILED (it refuses
  // the user name or the password, perhaps as expired: pass others to set_turn(); or its certificate is not trusted),
  // MMN_MAX_CONNECTIONS_REACHED (this user, or the server, has no free port), MMN_REJECTED (it refuses for another reason)
  // or MMN_SERIALIZATION_ERROR (what answers there is no TURN server).
  std::int32_t code;
  // UTF-8. With success, the address at which the server receives for this member; else a sentence, with the server's own
  // code and words where it gave some.
  std::string_view data;

  explicit TurnChanged(const MmnEvent& event)
      : server(event.other),
        success(event.success != 0),
        code(event.code),
        data(reinterpret_cast<const char*>(event.data), static_cast<std::size_t>(event.length)) {}
};

namespace detail {

template <typename Visitor>
void visit_event(const MmnEvent& event, Visitor&& visitor) {
  switch (event.kind) {
    case MMN_EVENT_JOINED: visitor(PeerJoined(event)); break;
    case MMN_EVENT_RECONNECTING: visitor(PeerReconnecting(event)); break;
    case MMN_EVENT_RETURNED: visitor(PeerReturned(event)); break;
    case MMN_EVENT_LEFT: visitor(PeerLeft(event)); break;
    case MMN_EVENT_MESSAGE: visitor(Message(event)); break;
    case MMN_EVENT_SET_LEADER_RESULT: visitor(SetLeaderResult(event)); break;
    case MMN_EVENT_ROOM_ENDED: visitor(RoomEnded(event)); break;
    case MMN_EVENT_LEADER_CHANGED: visitor(LeaderChanged(event)); break;
    case MMN_EVENT_LEADERSHIP_GAINED: visitor(LeadershipGained(event)); break;
    case MMN_EVENT_LEADERSHIP_LOST: visitor(LeadershipLost(event)); break;
    case MMN_EVENT_JOIN_REQUEST: visitor(JoinRequest(event)); break;
    case MMN_EVENT_DISCOVERED: visitor(Discovered(event)); break;
    case MMN_EVENT_CONNECTION_RESULT: visitor(ConnectionResult(event)); break;
    case MMN_EVENT_SLOW_PEER: visitor(SlowPeer(event)); break;
    case MMN_EVENT_DATA_DROPPED: visitor(DataDropped(event)); break;
    case MMN_EVENT_MEMBER_STATE: visitor(MemberStateChanged(event)); break;
    case MMN_EVENT_LOCK_RESULT: visitor(LockResult(event)); break;
    case MMN_EVENT_LOCK_LOST: visitor(LockLost(event)); break;
    case MMN_EVENT_UNLINKED_PEER: visitor(UnlinkedPeer(event)); break;
    case MMN_EVENT_BAN_DROPPED: visitor(BanDropped(event)); break;
    case MMN_EVENT_DISCOVERY_REFUSED: visitor(DiscoveryRefused(event)); break;
    case MMN_EVENT_JOIN_WITHDRAWN: visitor(JoinWithdrawn(event)); break;
    case MMN_EVENT_HOST_SILENT: visitor(HostSilent(event)); break;
    case MMN_EVENT_HOST_BACK: visitor(HostBack(event)); break;
    case MMN_EVENT_NO_ROOM_FOUND: visitor(NoRoomFound(event)); break;
    case MMN_EVENT_PATH_CHANGED: visitor(PathChanged(event)); break;
    case MMN_EVENT_RELAY: visitor(RelayChanged(event)); break;
    case MMN_EVENT_ACTION: visitor(RoomAction(event)); break;
    case MMN_EVENT_ACTION_RESULT: visitor(ActionResult(event)); break;
    case MMN_EVENT_PROPERTY: visitor(PropertyChanged(event)); break;
    case MMN_EVENT_STATE_RESET: visitor(StateReset(event)); break;
    case MMN_EVENT_ROLLED_BACK: visitor(RolledBack(event)); break;
    case MMN_EVENT_SNAPSHOT_WANTED: visitor(SnapshotWanted(event)); break;
    case MMN_EVENT_STATE_OPENED: visitor(StateOpened(event)); break;
    case MMN_EVENT_STATE_MEMBER: visitor(StateMemberChanged(event)); break;
    case MMN_EVENT_TRANSFER_OFFERED: visitor(TransferOffered(event)); break;
    case MMN_EVENT_TRANSFER_PROGRESS: visitor(TransferProgress(event)); break;
    case MMN_EVENT_TRANSFER_RESULT: visitor(TransferResult(event)); break;
    case MMN_EVENT_TRANSFER_PART: visitor(TransferPart(event)); break;
    case MMN_EVENT_PORT_MAPPING: visitor(PortMappingChanged(event)); break;
    case MMN_EVENT_TURN: visitor(TurnChanged(event)); break;
    default: break;
  }
}

} // namespace detail
// -- End of what is generated.

enum class PeerStatus : std::int32_t { unknown = -1, connected = 0, disconnected = 1, reconnecting = 2, handshaking = 3 };

// A call was refused. what() names the argument, its value and what to do.
class Error : public std::runtime_error {
 public:
  Error(std::int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  std::int32_t code() const noexcept { return code_; }

 private:
  std::int32_t code_;
};

namespace detail {

// Several functions as one, of which the argument chooses.
template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

} // namespace detail

// An event of a room, of one kind: visit() or as() gives it as the struct of that kind, with its fields. Both are valid during
// the handler only.
//
//   event.visit([&](const mmn::PeerJoined& joined) { greet(joined.peer); },
//               [&](const mmn::PeerLeft& left) { remove(left.peer, left.reason); });
//   if (const auto ended = event.as<mmn::RoomEnded>()) leave(ended->reason);
class Event {
 public:
  explicit Event(const MmnEvent& raw) noexcept : kind(raw.kind), room(raw.room), raw_(raw) {}

  std::uint32_t kind;  // one of MMN_EVENT_..., PeerLeft::kind for example; ignore unknown ones
  MmnRoom room;        // Room::number() of the room

  // The event, if it is of this kind.
  template <typename Kind>
  std::optional<Kind> as() const {
    return kind == Kind::kind ? std::optional<Kind>(Kind(raw_)) : std::nullopt;
  }
  // Calls the handler of this kind, if there is one; one that takes `const auto&` receives all other known kinds.
  template <typename... Handlers>
  void visit(Handlers&&... handlers) const {
    detail::Overloaded<std::decay_t<Handlers>...> overloaded{std::forward<Handlers>(handlers)...};
    detail::visit_event(raw_, [&](const auto& event) {
      if constexpr (std::is_invocable_v<decltype(overloaded)&, decltype(event)>) overloaded(event);
    });
  }
  // The library's struct.
  const MmnEvent& raw() const noexcept { return raw_; }

 private:
  MmnEvent raw_;
};

// Options of a message: `SendOptions::sequenced(unit)`. The default is a reliable message, in the order of the calls.
struct SendOptions {
  std::uint8_t delivery = MMN_DELIVERY_RELIABLE_ORDERED;  // one of MMN_DELIVERY_...
  std::uint8_t channel = 0;
  std::int8_t priority = MMN_PRIORITY_NORMAL;  // MMN_PRIORITY_LOW to MMN_PRIORITY_HIGHEST
  std::uint8_t user_flags = 0;                 // the host's own; bit 0 arrives clear
  std::uint32_t ttl_ms = 0;                    // unreliable and sequenced only; 0 is unlimited
  std::uint64_t key = 0;                       // sequenced only

  static SendOptions reliable_ordered(std::uint8_t channel = 0) { return of(MMN_DELIVERY_RELIABLE_ORDERED, channel, 0); }
  static SendOptions reliable_unordered(std::uint8_t channel = 0) { return of(MMN_DELIVERY_RELIABLE_UNORDERED, channel, 0); }
  static SendOptions unreliable(std::uint8_t channel = 0) { return of(MMN_DELIVERY_UNRELIABLE, channel, 0); }
  static SendOptions sequenced(std::uint64_t key, std::uint8_t channel = 0) { return of(MMN_DELIVERY_SEQUENCED, channel, key); }

  // The struct of the C functions, with these MMN_SEND_... flags.
  MmnSendOptions raw(std::uint8_t flags = 0) const noexcept {
    MmnSendOptions options = {};
    options.struct_size = sizeof options;
    options.delivery = delivery;
    options.channel = channel;
    options.priority = priority;
    options.flags = flags;
    options.ttl_ms = ttl_ms;
    options.user_flags = user_flags;
    options.key = key;
    return options;
  }

 private:
  static SendOptions of(std::uint8_t delivery, std::uint8_t channel, std::uint64_t key) {
    SendOptions options;
    options.delivery = delivery;
    options.channel = channel;
    options.key = key;
    return options;
  }
};

using Stats = MmnPeerStats;
// The windows of MMN_STRATEGY_GOSSIP, in milliseconds above 0. The same for all members.
using GossipWindows = MmnGossipWindows;

namespace detail {

// Whether a library with this ABI version serves this header.
inline void check_abi_version(std::uint32_t version, const std::string& library) {
  if (version >= MMN_ABI_VERSION) return;
  throw std::runtime_error(library + " has ABI version " + std::to_string(version) + ", but this program was compiled for version " +
                           std::to_string(MMN_ABI_VERSION) + ": use a library of that version or a later one");
}

} // namespace detail

// The library's functions, either linked or loaded at run time.
struct Api {
#define MMN_MEMBER(result, name, parameters) decltype(&::name) name = nullptr;
  MMN_FUNCTIONS(MMN_MEMBER)
#undef MMN_MEMBER

  // Only a program that uses this needs to link the library. Throws std::runtime_error if the library is older than this header.
  static const Api& linked() {
    static const Api api = [] {
      Api table;
#define MMN_LINK(result, name, parameters) table.name = &::name;
      MMN_FUNCTIONS(MMN_LINK)
#undef MMN_LINK
      detail::check_abi_version(table.mmn_abi_version(), "the linked meta_mystia_network");
      return table;
    }();
    return api;
  }
};

namespace detail {

[[noreturn]] inline void refuse(const Api& api, std::int32_t code) { throw Error(code, api.mmn_last_error_message()); }

} // namespace detail

// The library's sentence for a code.
inline std::string describe_error(std::int32_t code, const Api& api = Api::linked()) {
  return api.mmn_describe_error(code);
}

// A new private key for Options::identity_key. A host that keeps it is the same member at every start.
inline std::string generate_identity_key(const Api& api = Api::linked()) {
  std::string key(MMN_IDENTITY_KEY_BYTES, '\0');
  const std::int32_t length = api.mmn_generate_identity_key(reinterpret_cast<std::uint8_t*>(&key[0]), MMN_IDENTITY_KEY_BYTES);
  if (length < 0) detail::refuse(api, length);
  return key;
}

// A new room code, as K7QM-3XP9-TRWF: the session id of a room with Options::relays. Works without a room and without a
// network. Show it to the player, who gives it to others.
inline std::string generate_room_code(const Api& api = Api::linked()) {
  char code[MMN_ROOM_CODE_BYTES] = {};
  const std::int32_t length = api.mmn_generate_room_code(code, MMN_ROOM_CODE_BYTES);
  if (length < 0) detail::refuse(api, length);
  return code;
}

// A room code as generate_room_code() shows codes, from what a player typed or pasted. If it is no code, the error's message
// names the fault: which character, the length, or a typo.
inline std::string normalize_room_code(const std::string& text, const Api& api = Api::linked()) {
  char code[MMN_ROOM_CODE_BYTES] = {};
  const std::int32_t length = api.mmn_normalize_room_code(text.c_str(), code, MMN_ROOM_CODE_BYTES);
  if (length < 0) detail::refuse(api, length);
  return code;
}

// The settings of MMN_STRATEGY_SEEDED, with the intervals of a profile.
struct Seeded {
  explicit Seeded(std::uint32_t profile = MMN_SEEDED_PROFILE_WAN, const Api& api = Api::linked()) {
    settings.struct_size = sizeof settings;
    const std::int32_t code = api.mmn_default_seeded_options(profile, &settings);
    if (code < 0) detail::refuse(api, code);
  }
  MmnSeededOptions settings = {};  // the room fills in its pointer
  std::string seeds;            // the addresses of the seeds, one per line
};

// The settings of MMN_STRATEGY_ETCD: the library's defaults, the endpoints of the servers, one per line, and the prefix of the
// keys. "" leaves a field at its default.
struct Etcd {
  explicit Etcd(std::string servers, std::string prefix_of_keys, const Api& api = Api::linked())
      : endpoints(std::move(servers)), prefix(std::move(prefix_of_keys)) {
    settings.struct_size = sizeof settings;
    const std::int32_t code = api.mmn_default_etcd_options(&settings);
    if (code < 0) detail::refuse(api, code);
  }
  MmnEtcdOptions settings = {};  // the room fills in its pointers
  std::string endpoints;
  std::string prefix;
  std::string address;  // address at which clients reach this member while it leads
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string user;
  std::string password;
};

// An action of a member, which the hosts of all members receive in one order. The views are valid during the handler only.
struct Action {
  std::string_view author;  // the member that submitted it, which may have left since
  std::string_view data;
  std::uint16_t type;       // the author's, 0x0100 or higher
  std::uint64_t index;      // of its entry; within a history, entries have rising indexes
  std::uint64_t time_ms;    // of its entry, since the room's first one; 0 in on_rolled_back
  std::uint64_t request;    // the number from submit(), if this member is the author; else 0

  explicit Action(const RoomAction& action)
      : author(action.author),
        data(action.data),
        type(action.type),
        index(action.index),
        time_ms(action.time_ms),
        request(action.request) {}
  explicit Action(const RolledBack& action)
      : author(action.author), data(action.data), type(action.type), index(action.index), time_ms(0), request(action.request) {}

  bool mine() const noexcept { return request != 0; }
  std::string_view text() const noexcept { return data; }
  // The value that submit() has taken, as its bytes in memory: all members need processors alike. serialization_error if the
  // action has another length.
  template <typename Value>
  Value read() const {
    static_assert(std::is_trivially_copyable_v<Value>, "read() copies bytes");
    if (data.size() != sizeof(Value)) {
      throw Error(serialization_error, "the action has " + std::to_string(data.size()) + " bytes, and the value " +
                                           std::to_string(sizeof(Value)));
    }
    Value value;
    std::memcpy(&value, data.data(), sizeof value);
    return value;
  }
};

// Handlers of a room's state; see RoomState.
struct StateHandlers {
  std::function<void(const Action&)> on_action;
  std::function<std::string()> on_save;
  std::function<void(std::string_view)> on_load;
  std::function<void(const Action&)> on_rolled_back;
  std::function<void(const PropertyChanged&)> on_property;
};

// The settings of a room's state, the same for all members: the library's defaults. In thread mode set the handlers here, and
// they miss nothing; in poll mode, here or before the first poll().
struct StateOptions {
  explicit StateOptions(const Api& api = Api::linked()) {
    settings.struct_size = sizeof settings;
    const std::int32_t code = api.mmn_default_state_options(&settings);
    if (code < 0) detail::refuse(api, code);
  }
  MmnStateOptions settings = {};
  StateHandlers handlers;
};

// A change of one property, for RoomState::set_properties.
struct PropertyChange {
  std::string key;                                     // 1 to 64 bytes without control characters
  std::optional<std::string> value;                    // nothing keeps the value; a new property then has an empty one
  std::optional<std::string> owner;                    // must be in the room; "" is no owner, and nothing keeps it
  std::uint64_t expected_version = MMN_ANY_VERSION;    // 0 if it must not exist, or that of a Property or PropertyChanged
  std::uint32_t flags = 0;                             // the sum of MMN_PROPERTY_..., as MmnPropertyChange has them
};

// A property of a room's state.
struct Property {
  std::string value;
  std::string owner;      // "" if it has none
  std::uint64_t version;
  std::uint32_t flags;    // the sum of MMN_PROPERTY_..., as MmnPropertyInfo has them
};

// Settings to enter a room: the library's defaults, but in poll mode. Strings and the handler are beside `settings`; the room
// fills in its pointers and lengths.
struct Options {
  explicit Options(const Api& api = Api::linked()) {
    settings.struct_size = sizeof settings;
    const std::int32_t code = api.mmn_default_options(&settings);
    if (code < 0) detail::refuse(api, code);
    settings.dispatch_mode = MMN_DISPATCH_POLL;
  }
  MmnOptions settings = {};
  std::string bind_address;  // the one address of this machine to use; "" is every address
  std::string secret;        // the room secret, which members must know besides the session id; "" is none
  std::string state_directory;  // directory of the state that must survive the process; "" is none
  std::string quorum_roster;    // the voters of a static quorum, one id per line; else ""
  std::string trace_path;       // a file for a trace of the elections; "" is none
  // The relays where the members of the room meet, one per line, as MmnOptions.relays has them; "" is none. The session id is
  // then a code of generate_room_code(), however the player writes it.
  std::string relays;
  // TURN servers with their credentials, one per line, as MmnOptions.turn has them; "" is none.
  std::string turn;
  std::string identity_key;  // an Ed25519 private key in PKCS#8, which keeps this member's identity; "" makes a new one
  std::optional<Seeded> seeded;  // with MMN_STRATEGY_SEEDED
  std::optional<Etcd> etcd;      // with MMN_STRATEGY_ETCD
  std::optional<StateOptions> state;  // with it the members share a state: Room::state()
  // As Room::on_event sets it, but from the first event on. In thread mode it may run before the room's constructor returns.
  std::function<void(const Event&)> on_event;
};

// The library loaded at run time; must outlive every room that uses its functions.
class Library {
 public:
  // Throws std::runtime_error if there is no such library, or it is older than this header.
  explicit Library(const std::string& path) {
#if defined(_WIN32)
    handle_ = LoadLibraryA(path.c_str());
    if (!handle_) throw std::runtime_error("cannot load " + path + ": error " + std::to_string(GetLastError()));
#else
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw std::runtime_error(std::string("cannot load the library: ") + dlerror());
#endif
    try {
      // Libraries before ABI version 11 have it under its second name.
      void* version = find("mmn_abi_version");
      if (!version) version = find("GetAbiVersion");
      detail::check_abi_version(version ? reinterpret_cast<decltype(api_.mmn_abi_version)>(version)() : 0, path);
#define MMN_RESOLVE(result, name, parameters) api_.name = reinterpret_cast<decltype(api_.name)>(symbol(#name));
      MMN_FUNCTIONS(MMN_RESOLVE)
#undef MMN_RESOLVE
    } catch (...) {
      unload();
      throw;
    }
  }
  ~Library() { unload(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Api& api() const noexcept { return api_; }

 private:
  void* symbol(const char* name) const {
    void* found = find(name);
    if (!found) throw std::runtime_error(std::string("the library has no function ") + name);
    return found;
  }

#if defined(_WIN32)
  void* find(const char* name) const noexcept { return reinterpret_cast<void*>(GetProcAddress(handle_, name)); }
  void unload() noexcept { FreeLibrary(handle_); }
  HMODULE handle_ = nullptr;
#else
  void* find(const char* name) const noexcept { return dlsym(handle_, name); }
  void unload() noexcept { dlclose(handle_); }
  void* handle_ = nullptr;
#endif
  Api api_;
};

namespace detail {

// Number of forks between this process and the one that started the program.
inline unsigned forks() noexcept {
  static std::atomic<unsigned> count{0};
#if !defined(_WIN32)
  static const int watched = pthread_atfork(nullptr, nullptr, [] { count++; });
  (void)watched;
#endif
  return count;
}

inline void print_failure() noexcept {
  try {
    throw;
  } catch (const std::exception& known) {
    std::fprintf(stderr, "meta_mystia_network: a handler failed: %s\n", known.what());
  } catch (...) {
    std::fprintf(stderr, "meta_mystia_network: a handler failed\n");
  }
}

// A room's handlers, behind the one event handler that the library has for it.
//
// The library calls take() one at a time. Every new handler makes the room register take() again: that waits for a running
// handler, and makes the library repeat the present state, which calls take() even if nothing happens in the room.
class Receiver {
 public:
  using OnMessage = std::function<void(const Message&)>;
  using OnLeader = std::function<void(std::string_view)>;
  using OnLeadership = std::function<void(bool)>;
  using OnPeer = std::function<void(std::string_view, PeerStatus)>;
  using OnConnection = std::function<void(const ConnectionResult&)>;
  using OnEvent = std::function<void(const Event&)>;
  using OnFailure = std::function<void(std::exception_ptr)>;

  template <typename Handler>
  struct Slot {
    std::shared_ptr<const Handler> handler;
    bool is_new = false;  // has not received the present state
  };
  Slot<OnMessage> message;  // of the types without a route
  Slot<OnLeader> leader;
  Slot<OnLeadership> leadership;
  Slot<OnPeer> peer;
  Slot<OnConnection> connection;
  Slot<OnEvent> event;
  Slot<OnFailure> failure;

  // Removes every handler, and destroys what they have captured.
  void forget() noexcept {
    set(message, {}, false);
    set(leader, {}, false);
    set(leadership, {}, false);
    set(peer, {}, false);
    set(connection, {}, false);
    set(event, {}, false);
    set(failure, {}, false);
    std::map<std::uint16_t, std::shared_ptr<const OnMessage>> routes;
    const std::lock_guard<std::mutex> lock(mutex_);
    routes_.swap(routes);
  }

  template <typename Handler>
  void set(Slot<Handler>& slot, Handler handler, bool is_new) {
    // The old one is destroyed after the lock is released: its captures are foreign code.
    std::shared_ptr<const Handler> changed = shared(std::move(handler));
    const std::lock_guard<std::mutex> lock(mutex_);
    slot.is_new = changed && is_new;
    slot.handler.swap(changed);
  }

  void set_route(std::uint16_t type, OnMessage handler) {
    std::shared_ptr<const OnMessage> changed = shared(std::move(handler));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (changed) {
      routes_[type].swap(changed);
    } else if (const auto found = routes_.find(type); found != routes_.end()) {
      changed.swap(found->second);
      routes_.erase(found);
    }
  }

  bool takes_messages() const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    return message.handler || event.handler || !routes_.empty();
  }

  // A failure goes to its handler.
  template <typename Call>
  void attempt(Call call) noexcept {
    try {
      call();
    } catch (...) {
      surface();
    }
  }

  void take(const MmnEvent& raw) noexcept {
    try {
      catch_up();
      if (raw.kind == MMN_EVENT_MESSAGE) pass_message(raw);
      else pass_other(raw);
    } catch (...) {
      surface();
    }
  }

 private:
  struct Peer {
    bool connected;
    std::uint32_t index;
  };
  struct Leader {
    std::string id;
    std::int32_t reason = MMN_LEADER_UNKNOWN;
    std::uint64_t term = 0, epoch = 0;
  };

  template <typename Handler>
  static std::shared_ptr<const Handler> shared(Handler handler) {
    return handler ? std::make_shared<const Handler>(std::move(handler)) : nullptr;
  }
  // Gives every new handler the present state.
  void catch_up() {
    if (take_new(leader) && !leader_.id.empty()) call(leader, std::string_view(leader_.id));
    if (take_new(leadership) && leads_) call(leadership, true);
    if (const auto handler = take_new(peer)) {
      for (const auto& [id, state] : peers_) {
        if (state.connected && is_set(peer, handler)) call(peer, std::string_view(id), PeerStatus::connected);
      }
    }
    if (const auto handler = take_new(event)) {
      for (const MmnEvent& present : present_state()) {
        if (is_set(event, handler)) call(event, Event(present));
      }
    }
  }

  // The events that lead to it. They point to the ids in here.
  std::vector<MmnEvent> present_state() const {
    std::vector<MmnEvent> events;
    MmnEvent blank = {};
    blank.struct_size = sizeof blank;
    blank.room = room_;
    blank.peer = blank.other = "";
    blank.data = reinterpret_cast<const std::uint8_t*>("");
    if (!leader_.id.empty()) {
      MmnEvent change = blank;
      change.kind = MMN_EVENT_LEADER_CHANGED;
      change.peer = leader_.id.c_str();
      change.reason = leader_.reason;
      change.term = leader_.term;
      change.epoch = leader_.epoch;
      if (const auto found = peers_.find(leader_.id); found != peers_.end()) change.peer_index = found->second.index;
      events.push_back(change);
      if (leads_) {
        change.kind = MMN_EVENT_LEADERSHIP_GAINED;
        events.push_back(change);
      }
    }
    for (const auto& [id, state] : peers_) {
      MmnEvent joined = blank;
      joined.kind = MMN_EVENT_JOINED;
      joined.peer = id.c_str();
      joined.peer_index = state.index;
      events.push_back(joined);
      if (!state.connected) {
        joined.kind = MMN_EVENT_RECONNECTING;
        events.push_back(joined);
      }
    }
    return events;
  }

  void pass_message(const MmnEvent& event) {
    const Message received(event);
    std::shared_ptr<const OnMessage> handler;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto route = routes_.find(received.type);
      handler = route == routes_.end() ? message.handler : route->second;
    }
    run(handler, received);
    call(this->event, Event(event));
  }

  // Handlers that have received the state already do not receive its repetition.
  void pass_other(MmnEvent event) {
    room_ = event.room;
    const std::string id(event.peer);
    const std::string_view shown(id);
    const auto known = peers_.find(id);
    const bool is_known = known != peers_.end();
    const bool was_connected = is_known && known->second.connected;
    std::string previous;
    switch (event.kind) {
      case MMN_EVENT_LEADER_CHANGED:
        if (id == leader_.id) return;
        previous = std::exchange(leader_, {id, event.reason, event.term, event.epoch}).id;
        event.other = previous.c_str();
        call(leader, shown);
        break;
      case MMN_EVENT_LEADERSHIP_GAINED:
      case MMN_EVENT_LEADERSHIP_LOST: {
        const bool leads = event.kind == MMN_EVENT_LEADERSHIP_GAINED;
        if (std::exchange(leads_, leads) == leads) return;
        call(leadership, leads);
        break;
      }
      case MMN_EVENT_JOINED:
      case MMN_EVENT_RETURNED:
        if (was_connected) return;
        // The present state has the return in place of its event.
        if (is_known) event.kind = MMN_EVENT_RETURNED;
        peers_[id] = {true, event.peer_index};
        call(peer, shown, PeerStatus::connected);
        break;
      case MMN_EVENT_RECONNECTING:
        if (is_known && !was_connected) return;
        peers_[id] = {false, event.peer_index};
        call(peer, shown, PeerStatus::disconnected);
        break;
      case MMN_EVENT_LEFT:
        if (is_known) peers_.erase(known);
        if (was_connected) call(peer, shown, PeerStatus::disconnected);
        break;
      case MMN_EVENT_CONNECTION_RESULT:
        call(connection, ConnectionResult(event));
        break;
      default:
        break;
    }
    call(this->event, Event(event));
  }

  // The handler, if it has not received the present state; from here on it has.
  template <typename Handler>
  std::shared_ptr<const Handler> take_new(Slot<Handler>& slot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(slot.is_new, false) ? slot.handler : nullptr;
  }
  template <typename Handler>
  bool is_set(const Slot<Handler>& slot, const std::shared_ptr<const Handler>& handler) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return slot.handler == handler;
  }

  // A new handler waits for catch_up(), so that the present state comes first.
  template <typename Handler, typename... Arguments>
  void call(const Slot<Handler>& slot, Arguments&&... arguments) noexcept {
    std::shared_ptr<const Handler> handler;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!slot.is_new) handler = slot.handler;
    }
    run(handler, std::forward<Arguments>(arguments)...);
  }
  // No lock is held while foreign code runs, and the copy keeps a handler alive that replaces itself.
  template <typename Handler, typename... Arguments>
  void run(const std::shared_ptr<const Handler>& handler, Arguments&&... arguments) noexcept {
    try {
      if (handler) (*handler)(std::forward<Arguments>(arguments)...);
    } catch (...) {
      surface();
    }
  }
  void surface() noexcept {
    std::shared_ptr<const OnFailure> handler;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      handler = failure.handler;
    }
    if (!handler) return print_failure();
    try {
      (*handler)(std::current_exception());
    } catch (...) {
      print_failure();
    }
  }

  mutable std::mutex mutex_;
  std::map<std::uint16_t, std::shared_ptr<const OnMessage>> routes_;

  // The room as of the last event, for take() only.
  MmnRoom room_ = 0;
  Leader leader_;
  bool leads_ = false;
  std::map<std::string, Peer> peers_;
};

// The state's handlers and open requests.
class Replica {
 public:
  using OnResult = std::function<void(const ActionResult&)>;

  // A handler that runs goes on to its end. A room's handlers run one at a time.
  template <typename Handler>
  void set(Handler StateHandlers::*slot, Handler handler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // The old one is destroyed after the lock is released: its captures are foreign code.
    (handlers_.*slot).swap(handler);
  }
  void set(StateHandlers handlers) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(handlers_, handlers);
  }
  void forget() noexcept {
    StateHandlers handlers;
    std::map<std::uint64_t, OnResult> results;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(handlers_, handlers);
    results_.swap(results);
  }

  // Calls the library, whose result may come before it has returned the number.
  template <typename Call>
  std::int32_t request(Call call, std::uint64_t& number, OnResult on_result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::int32_t code = call();
    if (code >= 0 && on_result) results_[number] = std::move(on_result);
    return code;
  }

  // Calls the handler of this kind of event, if there is one. Its exceptions pass.
  void take(const Api& api, const MmnEvent& raw) {
    switch (raw.kind) {
      case MMN_EVENT_ACTION: call(&StateHandlers::on_action, Action(RoomAction(raw))); break;
      case MMN_EVENT_ROLLED_BACK: call(&StateHandlers::on_rolled_back, Action(RolledBack(raw))); break;
      case MMN_EVENT_STATE_RESET: call(&StateHandlers::on_load, StateReset(raw).snapshot); break;
      case MMN_EVENT_PROPERTY: call(&StateHandlers::on_property, PropertyChanged(raw)); break;
      case MMN_EVENT_SNAPSHOT_WANTED: provide(api, raw); break;
      case MMN_EVENT_ACTION_RESULT: {
        OnResult on_result;
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          const auto found = results_.find(raw.request);
          if (found == results_.end()) return;
          on_result.swap(found->second);
          results_.erase(found);
        }
        on_result(ActionResult(raw));
        break;
      }
      default: break;
    }
  }

 private:
  template <typename Handler>
  Handler handler(Handler StateHandlers::*slot) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return handlers_.*slot;
  }
  template <typename Handler, typename Argument>
  void call(Handler StateHandlers::*slot, const Argument& argument) const {
    if (const Handler copy = handler(slot)) copy(argument);
  }
  // Without a handler, or if it fails, the library asks another member's host.
  void provide(const Api& api, const MmnEvent& raw) const {
    const auto save = handler(&StateHandlers::on_save);
    const auto answer = [&](const std::string* copy) {
      if (copy && copy->size() > INT32_MAX) throw Error(message_too_large, "the snapshot is longer than 2 GiB");
      const auto* data = copy ? reinterpret_cast<const std::uint8_t*>(copy->data()) : nullptr;
      const auto length = copy ? static_cast<std::int32_t>(copy->size()) : 0;
      const std::int32_t code = api.mmn_provide_snapshot(raw.room, raw.request, data, length);
      // The member that needed it may have left, or the room may have taken over another history.
      if (code < 0 && code != peer_not_found && code != superseded && code != not_initialized) refuse(api, code);
    };
    if (!save) return answer(nullptr);
    try {
      const std::string copy = save();
      answer(&copy);
    } catch (...) {
      answer(nullptr);
      throw;
    }
  }

  mutable std::mutex mutex_;
  StateHandlers handlers_;
  std::map<std::uint64_t, OnResult> results_;
};

// The part of a Room that moves.
struct State {
  explicit State(const Api& functions) : api(&functions) {}

  bool forked() const noexcept { return process != forks(); }

  const Api* api;
  MmnRoom number = 0;
  const unsigned process = forks();
  std::atomic<bool> open{true};    // false from leave() on
  std::atomic<bool> closed{false};
  Receiver receiver;
  Replica replica;
  bool has_replica = false;
};

extern "C" {
inline void mmn_detail_on_event(void* reference, const MmnEvent* event) {
  State& state = **static_cast<std::shared_ptr<State>*>(reference);
  state.receiver.attempt([&] { state.replica.take(*state.api, *event); });
  state.receiver.take(*event);
}
inline void mmn_detail_drop_state(void* state) { delete static_cast<std::shared_ptr<State>*>(state); }

inline void mmn_detail_on_log(void* handler, MmnRoom room, std::int32_t level, const char* message) {
  try {
    (*static_cast<std::function<void(MmnRoom, std::int32_t, std::string_view)>*>(handler))(room, level, message);
  } catch (...) {
    print_failure();
  }
}
inline void mmn_detail_drop_log(void* handler) {
  delete static_cast<std::function<void(MmnRoom, std::int32_t, std::string_view)>*>(handler);
}
}

} // namespace detail

// Passes the library's log up to `level` (MMN_LOG_...) to a handler; an empty one removes it. It belongs to the process. It
// receives Room::number() of the room whose thread made the record, 0 for other threads; the level; and the line. It runs on any
// thread, on several at a time, and may call only queries.
inline void set_log(std::int32_t level, std::function<void(MmnRoom, std::int32_t, std::string_view)> handler,
                    const Api& api = Api::linked()) {
  using Handler = std::function<void(MmnRoom, std::int32_t, std::string_view)>;
  std::unique_ptr<Handler> owned = handler ? std::make_unique<Handler>(std::move(handler)) : nullptr;
  const bool wanted = owned != nullptr;
  const std::int32_t code =
      api.mmn_set_log(level, wanted ? detail::mmn_detail_on_log : nullptr, owned.get(), wanted ? detail::mmn_detail_drop_log : nullptr);
  if (code < 0) detail::refuse(api, code);
  owned.release();
}

// Sets the level of the log on standard error (MMN_LOG_...). It belongs to the process.
inline void set_log_stderr(std::int32_t level, const Api& api = Api::linked()) {
  const std::int32_t code = api.mmn_set_log_stderr(level);
  if (code < 0) detail::refuse(api, code);
}

// The state that the members of a room share: actions in one order, and properties. It survives the loss of any leader.
//
//   mmn::RoomState state = room.state();
//   state.on_action([&](const mmn::Action& a) { if (a.type == add) counter += a.read<int>(); });
//   state.on_save([&] { return std::to_string(counter); });
//   state.on_load([&](std::string_view bytes) { counter = bytes.empty() ? 0 : std::stoi(std::string(bytes)); });
//   state.submit(add, 1);
//
// A program changes its own state inside on_action and on_load alone, in all members alike. The handlers run where those of the
// room do; a new one receives what happens from then on. A copy of this object is the same state; after the room's end its calls
// are refused as the room's are.
class RoomState {
 public:
  // Receives the result of a request, once. Its code is ok, or as MMN_EVENT_ACTION_RESULT has it. Not called if the room ends
  // before.
  using OnResult = std::function<void(const ActionResult&)>;

  explicit RoomState(std::shared_ptr<detail::State> state) : state_(std::move(state)) {}

  // Receives each action of each member once, this one's too.
  void on_action(std::function<void(const Action&)> handler) { set_handler(&StateHandlers::on_action, std::move(handler)); }
  // Returns the program's state as bytes, for a newcomer's on_load. Without it other members are asked.
  void on_save(std::function<std::string()> handler) { set_handler(&StateHandlers::on_save, std::move(handler)); }
  // Receives the bytes of another member's on_save, with which the program replaces its state; none are the initial state.
  void on_load(std::function<void(std::string_view)> handler) { set_handler(&StateHandlers::on_load, std::move(handler)); }
  // Receives each action that a merge of two parts of the room has undone, before on_load. The program may submit it again.
  void on_rolled_back(std::function<void(const Action&)> handler) {
    set_handler(&StateHandlers::on_rolled_back, std::move(handler));
  }
  // Receives each change of a property.
  void on_property(std::function<void(const PropertyChanged&)> handler) {
    set_handler(&StateHandlers::on_property, std::move(handler));
  }

  // Submits an action of at most 16 KiB, with a type of 0x0100 or higher; returns the number of the request. The library keeps it
  // over losses of the leader.
  std::uint64_t submit(std::uint16_t type, std::string_view data, OnResult on_result = {}) const {
    const auto length = size(data);
    return request(
        [&](detail::State& state, std::uint64_t& number) {
          return state.api->mmn_submit(state.number, reinterpret_cast<const std::uint8_t*>(data.data()), length, type, &number);
        },
        std::move(on_result));
  }
  // The value's bytes in memory, for Action::read.
  template <typename Value,
            typename = std::enable_if_t<std::is_trivially_copyable_v<Value> && !std::is_pointer_v<Value> &&
                                        !std::is_array_v<Value> && !std::is_convertible_v<const Value&, std::string_view>>>
  std::uint64_t submit(std::uint16_t type, const Value& value, OnResult on_result = {}) const {
    return submit(type, std::string_view(reinterpret_cast<const char*>(&value), sizeof value), std::move(on_result));
  }
  std::uint64_t submit(std::uint16_t type, const std::vector<std::uint8_t>& data, OnResult on_result = {}) const {
    return submit(type, std::string_view(reinterpret_cast<const char*>(data.data()), data.size()), std::move(on_result));
  }

  // The property as of the last event, or nothing if the room has none with this name. A change shows once the room has confirmed
  // it.
  std::optional<Property> property(const std::string& key) const {
    const detail::State& state = open();
    MmnPropertyInfo info = {};
    info.struct_size = sizeof info;
    const std::uint8_t* value = state.api->mmn_property(state.number, text(key), &info);
    if (!value) {
      // NULL also stands for a key that is none, which mmn_set_properties does not accept either.
      if (!is_key(key)) detail::refuse(*state.api, state.api->mmn_last_error_code());
      return std::nullopt;
    }
    return Property{std::string(reinterpret_cast<const char*>(value), static_cast<std::size_t>(info.length)), info.owner, info.version,
                    info.flags};
  }
  // The names of the properties that a member owns, or of all, sorted.
  std::vector<std::string> keys(const std::string& owner = "") const {
    const detail::State& state = open();
    const char* list = state.api->mmn_property_keys(state.number, owner.empty() ? nullptr : text(owner));
    if (!list) detail::refuse(*state.api, state.api->mmn_last_error_code());
    std::vector<std::string> names;
    for (const char* rest = list; *rest;) {
      const std::size_t line = std::strcspn(rest, "\n");
      names.emplace_back(rest, line);
      rest += line + (rest[line] == '\n');
    }
    return names;
  }
  // Makes 1 to 32 changes, all or none. The result is conflict if a property has another version than expected, or a new owner is
  // not in the room; state_full; or rejected if another member owns a property that is MMN_PROPERTY_OWNER_ONLY.
  std::uint64_t set_properties(const std::vector<PropertyChange>& changes, OnResult on_result = {}) const {
    std::vector<MmnPropertyChange> raw;
    for (const PropertyChange& change : changes) {
      MmnPropertyChange one = {};
      one.struct_size = sizeof one;
      one.flags = change.flags;
      one.key = text(change.key);
      one.owner = change.owner ? text(*change.owner) : nullptr;
      one.expected_version = change.expected_version;
      if (change.value) {
        one.value = reinterpret_cast<const std::uint8_t*>(change.value->data());
        one.length = size(*change.value);
      } else if (!(change.flags & MMN_PROPERTY_REMOVE)) {
        one.flags |= MMN_PROPERTY_KEEP_VALUE;
      }
      raw.push_back(one);
    }
    if (raw.size() > INT32_MAX) throw Error(message_too_large, "there are more than 2147483647 changes");
    return request(
        [&](detail::State& state, std::uint64_t& number) {
          return state.api->mmn_set_properties(state.number, raw.data(), static_cast<std::int32_t>(raw.size()), &number);
        },
        std::move(on_result));
  }
  // Sets a property, whatever its version; it keeps its owner.
  std::uint64_t set(const std::string& key, std::string_view value, OnResult on_result = {}) const {
    PropertyChange change;
    change.key = key;
    change.value = std::string(value);
    return set_properties({change}, std::move(on_result));
  }
  std::uint64_t remove(const std::string& key, OnResult on_result = {}) const {
    PropertyChange change;
    change.key = key;
    change.flags = MMN_PROPERTY_REMOVE;
    return set_properties({change}, std::move(on_result));
  }
  // Sets a property of this member, which it alone changes and which goes when it leaves. The key is "@id/name".
  std::uint64_t set_mine(const std::string& name, std::string_view value, OnResult on_result = {}) const {
    PropertyChange change;
    change.owner = local_id();
    change.key = "@" + *change.owner + "/" + name;
    change.value = std::string(value);
    change.flags = MMN_PROPERTY_OWNER_ONLY | MMN_PROPERTY_DIES_WITH_OWNER;
    return set_properties({change}, std::move(on_result));
  }
  // A member's own property, as set_mine() has set it there.
  std::optional<Property> property_of(const std::string& peer, const std::string& name) const {
    return property("@" + peer + "/" + name);
  }

  // Makes this member the owner of a property, which comes into being if need be, and calls `on_result` once with whether it has
  // succeeded: of several members that claim it at a time, one does. false if another member owns it; with `take`, it is taken
  // from that member. The leader owns it when its owner leaves. The call may come before claim() returns.
  void claim(const std::string& key, std::function<void(bool)> on_result, bool take = false) const {
    const std::optional<Property> found = property(key);
    PropertyChange change;
    change.key = key;
    change.owner = local_id();
    if (found && (found->owner == *change.owner || (!found->owner.empty() && !take))) {
      if (on_result) on_result(found->owner == *change.owner);
      return;
    }
    change.expected_version = found ? found->version : 0;
    change.flags = MMN_PROPERTY_FALLS_TO_LEADER;
    set_properties({change}, won(std::move(on_result)));
  }
  // Leaves a property without an owner, if this member owns it.
  void release(const std::string& key, std::function<void(bool)> on_result = {}) const {
    const std::optional<Property> found = property(key);
    if (!found || found->owner != local_id()) {
      if (on_result) on_result(false);
      return;
    }
    PropertyChange change;
    change.key = key;
    change.owner = "";
    change.expected_version = found->version;
    set_properties({change}, won(std::move(on_result)));
  }

  // Figures of the state at this member.
  MmnStateInfo info() const {
    const detail::State& state = open();
    MmnStateInfo figures = {};
    figures.struct_size = sizeof figures;
    const std::int32_t code = state.api->mmn_state_info(state.number, &figures);
    if (code < 0) detail::refuse(*state.api, code);
    return figures;
  }

 private:
  detail::State& open() const {
    if (state_->forked() || !state_->open) throw Error(not_initialized, "the room of this state is not open in this process");
    return *state_;
  }
  template <typename Handler>
  void set_handler(Handler StateHandlers::*slot, Handler handler) {
    open().replica.set(slot, std::move(handler));
  }
  template <typename Call>
  std::uint64_t request(Call call, OnResult on_result) const {
    detail::State& state = open();
    std::uint64_t number = 0;
    const std::int32_t code = state.replica.request([&] { return call(state, number); }, number, std::move(on_result));
    if (code < 0) detail::refuse(*state.api, code);
    return number;
  }
  static OnResult won(std::function<void(bool)> on_result) {
    if (!on_result) return {};
    return [on_result = std::move(on_result)](const ActionResult& result) { on_result(result.code == ok); };
  }
  std::string local_id() const {
    const detail::State& state = open();
    const char* id = state.api->mmn_local_id(state.number);
    if (!id) detail::refuse(*state.api, state.api->mmn_last_error_code());
    return id;
  }
  static bool is_key(const std::string& key) noexcept {
    if (key.empty() || key.size() > 64) return false;
    for (std::size_t i = 0; i < key.size(); i++) {
      const auto byte = static_cast<unsigned char>(key[i]);
      // U+0080 to U+009F are controls, too.
      const bool is_wide_control = byte == 0xc2 && i + 1 < key.size() && static_cast<unsigned char>(key[i + 1]) < 0xa0;
      if (byte < 0x20 || byte == 0x7f || is_wide_control) return false;
    }
    return true;
  }
  static const char* text(const std::string& value) {
    if (value.find('\0') != std::string::npos) throw Error(invalid_argument, "the text contains a NUL, at which C would cut it off");
    return value.c_str();
  }
  static std::int32_t size(std::string_view data) {
    if (data.size() > INT32_MAX) throw Error(message_too_large, "the data are longer than 2 GiB");
    return static_cast<std::int32_t>(data.size());
  }

  std::shared_ptr<detail::State> state_;
};

// The card that a room shows in the local network (Room::show_card). The library adds the number of players, the address, and whether a
// secret is needed.
struct Card {
  // The game: browsers of other games do not list the room.
  std::string game;
  // The room's name for players.
  std::string name;
  // Up to 400 bytes of the game.
  std::string data;
  // The card holds the session id, so that every browser of the game can join.
  bool is_open = false;
  // Most players, to show; 0 is no number.
  std::uint32_t max_players = 0;
  // UDP port of the browsers' questions; 0 is MMN_DEFAULT_CARD_PORT.
  std::uint32_t port = 0;
};

// A room that this process is in. The constructor enters it; the destructor leaves it, which takes at most about 2 s. Every
// function may be called from any thread. After shutdown(), after a move from the object, and in a forked child, which has no
// room of its parent's, every call is refused with not_initialized.
class Room {
 public:
  // The handlers run on a thread of the library, and the room connects to the members that it finds in the local network.
  Room(const std::string& peer_id, const std::string& session_id) : Room(Api::linked(), peer_id, session_id) {}
  Room(const Api& api, const std::string& peer_id, const std::string& session_id) : Room(api, peer_id, session_id, found(api)) {}
  // In poll mode, unless options.settings.dispatch_mode sets another.
  Room(const std::string& peer_id, const std::string& session_id, const Options& options)
      : Room(Api::linked(), peer_id, session_id, options) {}
  Room(const Api& api, const std::string& peer_id, const std::string& session_id, const Options& options)
      : state_(std::make_shared<detail::State>(api)) {
    MmnOptions settings = options.settings;
    settings.bind_address = given(options.bind_address);
    settings.secret = options.secret.empty() ? nullptr : bytes(options.secret);
    settings.secret_length = static_cast<std::uint32_t>(length(options.secret));
    settings.identity_key = options.identity_key.empty() ? nullptr : bytes(options.identity_key);
    settings.identity_key_length = static_cast<std::uint32_t>(length(options.identity_key));
    settings.state_directory = given(options.state_directory);
    settings.quorum_roster = given(options.quorum_roster);
    settings.trace_path = given(options.trace_path);
    settings.relays = given(options.relays);
    settings.turn = given(options.turn);
    MmnSeededOptions seeded = {};
    settings.seeded = nullptr;
    if (options.seeded) {
      seeded = options.seeded->settings;
      seeded.seeds = text(options.seeded->seeds);
      settings.seeded = &seeded;
    }
    MmnEtcdOptions etcd = {};
    settings.etcd = nullptr;
    if (options.etcd) {
      etcd = options.etcd->settings;
      etcd.endpoints = text(options.etcd->endpoints);
      etcd.prefix = text(options.etcd->prefix);
      etcd.address = given(options.etcd->address);
      etcd.ca_file = given(options.etcd->ca_file);
      etcd.cert_file = given(options.etcd->cert_file);
      etcd.key_file = given(options.etcd->key_file);
      etcd.user = given(options.etcd->user);
      etcd.password = given(options.etcd->password);
      settings.etcd = &etcd;
    }
    settings.state = options.state ? &options.state->settings : nullptr;
    if (options.state) {
      state_->has_replica = true;
      state_->replica.set(options.state->handlers);
    }
    if (options.on_event) state_->receiver.set(state_->receiver.event, options.on_event, false);
    else settings.hold_messages = 1;
    auto reference = std::make_unique<std::shared_ptr<detail::State>>(state_);
    settings.on_event = detail::mmn_detail_on_event;
    settings.user_data = reference.get();
    settings.drop_fn = detail::mmn_detail_drop_state;
    const std::int32_t code = api.mmn_open(text(peer_id), text(session_id), &settings, &state_->number);
    if (code < 0) detail::refuse(api, code);
    reference.release();
  }
  Room(Room&&) noexcept = default;
  Room& operator=(Room&& other) noexcept {
    if (this != &other) {
      end();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Room() { end(); }

  // Leaves the room. Afterwards no handler runs. Waits for a running handler, which therefore must not wait for this thread.
  // Throws would_deadlock inside a handler of any room; the room stays open. Does nothing in a room that was shut down.
  void shutdown() {
    if (!state_ || state_->closed) return;
    if (!state_->forked()) {
      const std::int32_t code = state_->api->mmn_close(state_->number);
      // Another thread may have closed it.
      if (code < 0 && code != not_initialized) detail::refuse(*state_->api, code);
      state_->receiver.forget();
      state_->replica.forget();
    }
    state_->open = false;
    state_->closed = true;
  }
  // Begins to leave, and returns at once, also inside a handler. Handlers run until shutdown(), which must follow, or the
  // destructor. To leave many rooms quickly, begin with all of them.
  void leave() {
    const detail::State& state = room();
    check(state.api->mmn_leave(state.number));
    state_->open = false;
  }
  bool is_open() const noexcept {
    return state_ && state_->open && !state_->forked() && state_->api->mmn_is_open(state_->number) != 0;
  }
  // The number of this room in Event::room and set_log(); no other room of the process has or had it.
  MmnRoom number() const { return room().number; }

  // Handlers. An empty function unregisters; when the call returns, the old one is not running (unless the call is made inside
  // a handler) and never runs again. A new handler first receives the present state: the leader, if one is known, and every
  // member. Set on_message, on_type or on_event within 5 s: until then reliable messages wait for the first of them, and slow
  // their senders down; later the room discards them.
  //
  // on_message receives every message whose type has no handler of its own.
  void on_message(std::function<void(const Message&)> handler) {
    set(&detail::Receiver::message, std::move(handler), false);
  }
  // Receives the messages of one type, 0x0100 or higher, which on_message then does not receive.
  void on_type(std::uint16_t type, std::function<void(const Message&)> handler) {
    detail::State& state = room();
    if (type < first_user_type) throw Error(invalid_argument, "the type is below 0x0100, and no host sends it");
    state.receiver.set_route(type, std::move(handler));
    register_again(state);
  }
  // "" is no leader.
  void on_leader(std::function<void(std::string_view)> handler) { set(&detail::Receiver::leader, std::move(handler), true); }
  // Whether this member leads: true and false alternately, each after its on_leader. The first value is true, if it leads
  // already.
  void on_leadership(std::function<void(bool)> handler) { set(&detail::Receiver::leadership, std::move(handler), true); }
  // Connected members and losses; a new handler first receives every connected member.
  void on_peer(std::function<void(std::string_view, PeerStatus)> handler) {
    set(&detail::Receiver::peer, std::move(handler), true);
  }
  void on_connection(std::function<void(const ConnectionResult&)> handler) {
    set(&detail::Receiver::connection, std::move(handler), false);
  }
  // All events, messages included, in one order; a program that uses it needs no other handler. Options::on_event also receives
  // what happens before this call.
  void on_event(std::function<void(const Event&)> handler) { set(&detail::Receiver::event, std::move(handler), true); }
  // In poll mode, runs the handlers of up to `max` queued events, on this thread, and returns the number of these events. Never
  // waits.
  std::int32_t poll(std::int32_t max = INT32_MAX) { return check(api().mmn_poll(number(), max)); }
  // Receives exceptions of handlers; without it they are printed to standard error.
  void on_handler_error(std::function<void(std::exception_ptr)> handler) {
    detail::Receiver& receiver = room().receiver;
    receiver.set(receiver.failure, std::move(handler), false);
  }

  // The state that the members share, in a room with Options::state; else not_supported.
  RoomState state() const {
    if (!room().has_replica) throw Error(not_supported, "the room has no state: set Options::state");
    return RoomState(state_);
  }

  std::string peer_id() const { return string(api().mmn_local_id(number())); }
  std::string session_id() const { return string(api().mmn_session_id(number())); }
  // An address that another member can pass to connect().
  std::string local_address() const { return string(api().mmn_local_address(number())); }
  // All such addresses, the likeliest first, each followed by a blank and the name of its interface.
  std::vector<std::string> local_addresses() const { return lines(string(api().mmn_local_addresses(number()))); }
  // The address at which members on the internet see this one: the router's, behind a router. "" if none does.
  std::string public_address() const { return string_or_empty(api().mmn_public_address(number())); }
  // The connected members, without this one, sorted.
  std::vector<std::string> peers() const { return lines(string(api().mmn_peers(number()))); }
  // The connected and the reconnecting members, without this one, sorted.
  std::vector<std::string> members() const { return lines(string(api().mmn_members(number()))); }
  // The index of a member: a number from 1, from its MMN_EVENT_JOINED to its MMN_EVENT_LEFT, which no earlier member had. 0 for
  // others.
  std::uint32_t index(const std::string& peer) const { return api().mmn_peer_index(number(), text(peer)); }
  // The member with this index; "" for none.
  std::string peer_at(std::uint32_t index) const { return string_or_empty(api().mmn_peer_id(number(), index)); }
  // The address at which a member accepts links, for connect(); "" for one that is not in the room.
  std::string address(const std::string& peer) const { return string_or_empty(api().mmn_peer_address(number(), text(peer))); }
  // The path of the messages to and from a member, one of MMN_PATH_...: directly, over a relay, or through another
  // member. MMN_PEER_NOT_FOUND without a link to it.
  std::int32_t path(const std::string& peer) const {
    const std::int32_t found = api().mmn_peer_path(number(), text(peer));
    return found == MMN_PEER_NOT_FOUND ? found : check(found);
  }
  // The member that carries this one's packets to a member; "" where the path is direct or over a relay, and without a
  // link to it.
  std::string carrier(const std::string& peer) const { return string_or_empty(api().mmn_peer_carrier(number(), text(peer))); }
  // The SHA-256 of a key, in 64 hexadecimal digits: of a member's ("" for one that is not in the room), and of this one's.
  std::string fingerprint(const std::string& peer) const {
    return string_or_empty(api().mmn_peer_fingerprint(number(), text(peer)));
  }
  std::string identity_fingerprint() const { return string(api().mmn_local_fingerprint(number())); }
  // The leader; "" when there is none.
  std::string leader() const { return string(api().mmn_leader(number())); }
  bool is_leader() const { return api().mmn_is_leader(number()) != 0; }
  // The round-trip time; -1 for an unknown member, and until it is measured.
  std::int32_t rtt_ms(const std::string& peer) const { return api().mmn_peer_rtt_ms(number(), text(peer)); }
  PeerStatus status(const std::string& peer) const {
    return static_cast<PeerStatus>(api().mmn_peer_status(number(), text(peer)));
  }

  // Dials "ip:port", "[v6]:port" or "name:port"; on_connection receives the outcome.
  void connect(const std::string& address) { check(api().mmn_connect(number(), text(address))); }
  // Replaces the TURN servers and their credentials, as Options::turn has them; "" uses none from now on.
  void set_turn(const std::string& servers) {
    check(api().mmn_set_turn(number(), servers.empty() ? nullptr : text(servers)));
  }
  // Ends the link with a member, with a reason for its host. Data: at most 3072 bytes.
  void disconnect(const std::string& peer, std::int32_t code = 0, std::string_view data = {}) {
    check(api().mmn_disconnect(number(), text(peer), code, bytes(data), length(data)));
  }
  void set_leader(const std::string& peer) { check(api().mmn_set_leader(number(), text(peer))); }
  void enable_auto_election(bool enabled) { check(api().mmn_set_auto_election(number(), enabled ? 1 : 0)); }

  // Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority.
  void set_leader_eligible(bool eligible) { check(api().mmn_set_eligible(number(), eligible ? 1 : 0)); }
  // Transfers the leadership to a member, or to the one that elections prefer; this one leads until that one is elected. Leader
  // only: not_leader. With gossip a leader that yields stops leading at once, and does not lead again for a while; with etcd it
  // goes to the end of the line.
  void transfer_leadership(const std::string& peer) { check(api().mmn_transfer_leadership(number(), text(peer))); }
  void yield_leadership() { check(api().mmn_yield_leadership(number())); }
  // Priority of this member in elections: the highest goes first, of equal ones the largest id. 0 is the default.
  void set_election_priority(std::int32_t priority) { check(api().mmn_set_priority(number(), priority)); }
  // Term of the newest claim to lead, and the number of set_leader() calls that it builds on: compare the epoch first.
  std::int64_t leader_term() const { return api().mmn_leader_term(number()); }
  std::int64_t leader_epoch() const { return api().mmn_leader_epoch(number()); }
  // The election strategy: one of MMN_STRATEGY_...
  std::int32_t election_strategy() const { return api().mmn_strategy(number()); }
  // The windows of MMN_STRATEGY_GOSSIP; a change applies from the next window on.
  GossipWindows gossip_windows() const {
    GossipWindows windows = {};
    windows.struct_size = sizeof windows;
    check(api().mmn_gossip_windows(number(), &windows));
    return windows;
  }
  void set_gossip_windows(GossipWindows windows) {
    windows.struct_size = sizeof windows;
    check(api().mmn_set_gossip_windows(number(), &windows));
  }
  // With MMN_STRATEGY_SEEDED: the state of a member, this one included, one of MMN_MEMBER_...; and the version of the cluster.
  // Else -1.
  std::int32_t member_state(const std::string& peer) const { return api().mmn_member_state(number(), text(peer)); }
  std::int64_t cluster_version() const { return api().mmn_cluster_version(number()); }
  // With MMN_STRATEGY_ETCD: the token of this member's leadership, 0 while it does not lead. Else -1.
  std::int64_t fencing_token() const { return api().mmn_fencing_token(number()); }
  // Sets the text that clients of etcd read of this member while it leads.
  void proclaim(const std::string& value) { check(api().mmn_proclaim(number(), text(value))); }
  // Locks of etcd. MMN_EVENT_LOCK_RESULT with the returned number reports the outcome. A timeout of 0 is none.
  std::uint64_t acquire_lock(const std::string& name, std::uint32_t timeout_ms = 0) {
    std::uint64_t request = 0;
    check(api().mmn_acquire_lock(number(), text(name), timeout_ms, &request));
    return request;
  }
  std::uint64_t try_lock(const std::string& name) {
    std::uint64_t request = 0;
    check(api().mmn_try_lock(number(), text(name), &request));
    return request;
  }
  void release_lock(const std::string& name) { check(api().mmn_release_lock(number(), text(name))); }
  // Whether the library dials lost members again, or treats every loss as a leave.
  void set_auto_reconnect(bool enabled) { check(api().mmn_set_auto_reconnect(number(), enabled ? 1 : 0)); }
  bool auto_reconnect() const { return api().mmn_auto_reconnect(number()) != 0; }

  // Removes a member, which may come back unless it is banned. Leader only: not_leader. Data: at most 3072 bytes.
  void kick(const std::string& peer, std::int32_t code = 0, std::string_view data = {}, bool ban = false) {
    check(api().mmn_kick(number(), text(peer), ban ? MMN_KICK_BAN : 0, code, bytes(data), length(data)));
  }
  // Lifts the ban of an id and of its keys. Leader only; peer_not_found when it is not banned.
  void unban(const std::string& peer) { check(api().mmn_unban(number(), text(peer))); }
  // Limits the other members of each member; 0 is no limit. Leader only.
  void set_max_peers(std::uint32_t max_peers) { check(api().mmn_set_max_peers(number(), max_peers)); }
  // The payload that the leader's host receives when this member asks to join; at most 16384 bytes.
  void set_join_payload(std::string_view data) { check(api().mmn_set_join_payload(number(), bytes(data), length(data))); }
  // Whether this host decides about admission while this member leads: MMN_EVENT_JOIN_REQUEST for every newcomer.
  void enable_join_requests(bool enabled) { check(api().mmn_set_join_requests(number(), enabled ? 1 : 0)); }
  void accept_join(std::uint64_t request) { check(api().mmn_accept_join(number(), request)); }
  void reject_join(std::uint64_t request, std::int32_t code = 0, std::string_view data = {}) {
    check(api().mmn_reject_join(number(), request, code, bytes(data), length(data)));
  }

  // Whether broadcasts of this member go through the leader; and whether it relays those of others while it leads.
  void set_centralized(bool enabled) { check(api().mmn_set_centralized(number(), enabled ? 1 : 0)); }
  bool centralized() const { return api().mmn_centralized(number()) != 0; }
  void set_centralized_auto_forward(bool enabled) { check(api().mmn_set_auto_forward(number(), enabled ? 1 : 0)); }
  bool centralized_auto_forward() const { return api().mmn_auto_forward(number()) != 0; }
  // The payload length in bytes above which the library compresses, if that makes it shorter; UINT32_MAX is never.
  void set_compression_threshold(std::uint32_t size) { check(api().mmn_set_compression_threshold(number(), size)); }
  // Simulates a bad network, for tests of a game: every packet that this member sends waits lag_ms and up to jitter_ms more (at
  // most 10000 each), and loss_permille packets in a thousand are lost. Three zeros end it.
  void simulate_network(std::uint32_t lag_ms, std::uint32_t jitter_ms, std::uint32_t loss_permille) {
    check(api().mmn_simulate_network(number(), lag_ms, jitter_ms, loss_permille));
  }
  // Simulates a bad network by name: "home", "mobile", "bad-wifi", "satellite"; "none" ends it.
  void simulate_network(const std::string& preset) { check(api().mmn_simulate_preset(number(), text(preset))); }
  // Whether this member is announced in the local network.
  // Shows a card of the room in the local network, in place of an earlier one. The leader alone shows its card: call this at every
  // member, so that the room stays in the lists when its leader goes.
  void show_card(const Card& card) const {
    MmnCard native = {};
    native.struct_size = sizeof native;
    native.flags = card.is_open ? MMN_CARD_OPEN : 0;
    native.game = text(card.game);
    native.name = text(card.name);
    native.data = card.data.empty() ? nullptr : bytes(card.data);
    native.data_length = static_cast<std::uint32_t>(length(card.data));
    native.max_players = card.max_players;
    native.port = card.port;
    check(api().mmn_show_card(number(), &native));
  }
  void hide_card() const { check(api().mmn_show_card(number(), nullptr)); }
  bool discovering() const { return api().mmn_is_announced(number()) != 0; }
  // Statistics of the link and the queue to a member.
  Stats stats(const std::string& peer) const {
    Stats figures = {};
    figures.struct_size = sizeof figures;
    check(api().mmn_peer_stats(number(), text(peer), &figures));
    return figures;
  }
  // The room's time in milliseconds, the same at all members within stats of the room (room_time_error_us). It never goes back.
  std::int64_t time_ms() const { return api().mmn_room_time_ms(number()); }
  // Statistics of the room at this member: members without a link to it, the broadcasts that they missed, the error of time_ms.
  MmnRoomStats room_stats() const {
    MmnRoomStats figures = {};
    figures.struct_size = sizeof figures;
    check(api().mmn_room_stats(number(), &figures));
    return figures;
  }

  // Sends to one member, also while it is reconnecting, or to this one.
  void send(const std::string& peer, std::string_view data, std::uint16_t type = first_user_type, const SendOptions& options = {}) {
    const MmnSendOptions raw = options.raw();
    check(api().mmn_send(number(), text(peer), bytes(data), length(data), type, &raw));
  }
  // Sends to all connected members, or, if one queue is full (send_queue_full), to none.
  void broadcast(std::string_view data, std::uint16_t type = first_user_type, const SendOptions& options = {}) {
    const MmnSendOptions raw = options.raw();
    check(api().mmn_broadcast(number(), bytes(data), length(data), type, &raw));
  }
  // Sends to the connected members whose queue has room; returns their number. MMN_EVENT_SLOW_PEER names each of the others.
  std::int32_t broadcast_partial(std::string_view data, std::uint16_t type = first_user_type, const SendOptions& options = {}) {
    const MmnSendOptions raw = options.raw(MMN_SEND_PARTIAL);
    return check(api().mmn_broadcast(number(), bytes(data), length(data), type, &raw));
  }
  // Sends to the leader; a leader that calls it receives the message itself. not_leader when there is none.
  void send_to_leader(std::string_view data, std::uint16_t type = first_user_type, const SendOptions& options = {}) {
    const MmnSendOptions raw = options.raw();
    check(api().mmn_send_to_leader(number(), bytes(data), length(data), type, &raw));
  }
  // Sends to all members, as their leader; not_leader when this member is not the leader. Reliable deliveries only.
  void send_from_leader(std::string_view data, std::uint16_t type = first_user_type, const SendOptions& options = {}) {
    const MmnSendOptions raw = options.raw();
    check(api().mmn_broadcast_as_leader(number(), bytes(data), length(data), type, &raw));
  }
  // Forwards on behalf of `from` to `to`, or to all others if that is empty. Leader only. Reliable deliveries only.
  void forward(const std::string& from, const std::string& to, std::string_view data, std::uint16_t type = first_user_type,
               const SendOptions& options = {}) {
    const MmnSendOptions raw = options.raw();
    check(api().mmn_forward(number(), text(from), given(to), bytes(data), length(data), type, &raw));
  }
  // The longest unreliable message for a member, or for a broadcast, in bytes; -1 when the member is not connected.
  std::int32_t max_datagram_size(const std::string& peer) const { return api().mmn_max_datagram_size(number(), text(peer)); }
  std::int32_t max_datagram_size() const { return api().mmn_max_datagram_size(number(), nullptr); }

  // Offers a copy of up to 64 MiB to a member, whose program receives TransferOffered with the tag (at most 1024 bytes). Returns
  // the number of the transfer. One TransferResult follows at either end.
  std::uint64_t send_transfer(const std::string& peer, std::string_view data, std::string_view tag = {}) {
    std::uint64_t transfer = 0;
    check(api().mmn_send_transfer(number(), text(peer), bytes(data), length(data), bytes(tag), length(tag), &transfer));
    return transfer;
  }
  // Takes an offered transfer into memory that holds all of it. The library writes there until TransferResult, until
  // cancel_transfer() of it has returned, or until close() has.
  void accept_transfer(const std::string& peer, std::uint64_t transfer, void* buffer, std::int32_t capacity) {
    check(api().mmn_accept_transfer(number(), text(peer), transfer, buffer, capacity));
  }
  // Takes an offered transfer in parts: TransferPart for each, in order. The sender waits while the program takes none.
  void accept_transfer_in_parts(const std::string& peer, std::uint64_t transfer) {
    check(api().mmn_accept_transfer_in_parts(number(), text(peer), transfer));
  }
  // Refuses an offered transfer, or cancels one at either end.
  void cancel_transfer(const std::string& peer, std::uint64_t transfer) {
    check(api().mmn_cancel_transfer(number(), text(peer), transfer));
  }

  // The library's sentence for a code.
  std::string describe(std::int32_t code) const { return describe_error(code, api()); }
  // The C functions, for calls without a wrapper here; number() is their first argument.
  const Api& api() const { return *room().api; }

 private:
  static Options found(const Api& api) {
    Options options(api);
    options.settings.dispatch_mode = MMN_DISPATCH_THREAD;
    options.settings.discovery_mode = MMN_DISCOVERY_CONNECT;
    return options;
  }

  // The library may be unloaded once the room was shut down, so that nothing calls it from then on.
  detail::State& room() const {
    if (!state_) throw Error(not_initialized, "there is no room: another object was moved from this one");
    if (state_->forked()) throw Error(not_initialized, "the room is that of the parent of this forked process; open one here");
    if (!state_->open) throw Error(not_initialized, "the room is not open: this process has left it");
    return *state_;
  }

  template <typename Handler>
  void set(detail::Receiver::Slot<Handler> detail::Receiver::*slot, Handler handler, bool is_new) {
    detail::State& state = room();
    state.receiver.set(state.receiver.*slot, std::move(handler), is_new);
    register_again(state);
  }
  // See detail::Receiver. Messages that wait in the library for a handler come after that.
  void register_again(const detail::State& state) {
    auto reference = std::make_unique<std::shared_ptr<detail::State>>(state_);
    check(state.api->mmn_set_event_handler(state.number, detail::mmn_detail_on_event, reference.get(), detail::mmn_detail_drop_state));
    reference.release();
    if (state.receiver.takes_messages()) check(state.api->mmn_take_messages(state.number));
  }

  void end() noexcept {
    const std::shared_ptr<detail::State> state = std::move(state_);
    if (!state || state->closed || state->forked()) return;
    if (state->api->mmn_close(state->number) == would_deadlock) {
      // Destroyed inside a handler, which may not wait for its own end. The room's threads stay until the process ends.
      state->api->mmn_leave(state->number);
    }
    state->open = false;
    state->closed = true;
    state->receiver.forget();
    state->replica.forget();
  }

  std::int32_t check(std::int32_t code) const {
    if (code < 0) detail::refuse(*state_->api, code);
    return code;
  }
  std::string string(const char* value) const {
    if (!value) detail::refuse(*state_->api, state_->api->mmn_last_error_code());
    return value;
  }
  static std::string string_or_empty(const char* value) { return value ? value : ""; }
  static std::vector<std::string> lines(const std::string& list) {
    std::vector<std::string> names;
    for (std::size_t from = 0; from < list.size();) {
      const std::size_t end = (std::min)(list.find('\n', from), list.size());
      names.push_back(list.substr(from, end - from));
      from = end + 1;
    }
    return names;
  }
  static const char* text(const std::string& value) {
    if (value.find('\0') != std::string::npos) throw Error(invalid_argument, "the text contains a NUL, at which C would cut it off");
    return value.c_str();
  }
  static const char* given(const std::string& value) { return value.empty() ? nullptr : text(value); }
  static const std::uint8_t* bytes(std::string_view data) noexcept { return reinterpret_cast<const std::uint8_t*>(data.data()); }
  static std::int32_t length(std::string_view data) {
    if (data.size() > INT32_MAX) throw Error(message_too_large, "the message is longer than 2 GiB");
    return static_cast<std::int32_t>(data.size());
  }

  std::shared_ptr<detail::State> state_;
};

// An event of a room in the list of a browser.
enum class ListChange : std::uint32_t { found = MMN_BROWSE_FOUND, changed = MMN_BROWSE_CHANGED, gone = MMN_BROWSE_GONE };

// A room in the list of a browser. Anybody in the network can show a card: these are a stranger's texts and bytes.
struct ListedRoom {
  explicit ListedRoom(const MmnListedRoom& room)
      : change(static_cast<ListChange>(room.change)),
        id(room.id),
        name(room.name),
        session_id(room.session_id),
        address(room.address),
        fingerprint(room.fingerprint),
        data(reinterpret_cast<const char*>(room.data), room.data_length),
        players(room.players),
        max_players(room.max_players),
        needs_secret(room.needs_secret != 0) {}

  ListChange change;
  // Its number in this browser. It stays when another member becomes the room's leader.
  std::uint64_t id;
  std::string name;
  // Empty unless the card is open.
  std::string session_id;
  // The leader's address, for Room::connect.
  std::string address;
  // The fingerprint of the leader's key.
  std::string fingerprint;
  std::string data;
  std::uint32_t players;
  // 0 is no number.
  std::uint32_t max_players;
  bool needs_secret;
};

namespace detail {

using OnListed = std::function<void(const ListedRoom&)>;

extern "C" inline void mmn_detail_on_listed(void* handler, const MmnListedRoom* room) {
  try {
    (*static_cast<OnListed*>(handler))(ListedRoom(*room));
  } catch (...) {
    print_failure();
  }
}

extern "C" inline void mmn_detail_drop_listed(void* handler) { delete static_cast<OnListed*>(handler); }

} // namespace detail

// A list of the rooms of one game in the local network, by the cards that they show. It needs no room. The destructor closes it,
// and waits for a running handler: do not destroy a browser inside a handler. In a forked child it lists nothing.
class Browser {
 public:
  // The handler runs on a thread of the browser or, with MMN_DISPATCH_POLL, inside poll().
  Browser(const std::string& game, std::function<void(const ListedRoom&)> on_room,
          std::uint32_t dispatch_mode = MMN_DISPATCH_THREAD, std::uint32_t port = 0)
      : Browser(Api::linked(), game, std::move(on_room), dispatch_mode, port) {}
  Browser(const Api& api, const std::string& game, std::function<void(const ListedRoom&)> on_room,
          std::uint32_t dispatch_mode = MMN_DISPATCH_THREAD, std::uint32_t port = 0)
      : api_(&api) {
    if (!on_room) throw Error(invalid_argument, "on_room is empty; give the function that receives the rooms");
    if (game.find('\0') != std::string::npos) throw Error(invalid_argument, "game contains a NUL, at which C would cut it off");
    auto handler = std::make_unique<detail::OnListed>(std::move(on_room));
    MmnBrowseOptions options = {};
    options.struct_size = sizeof options;
    options.dispatch_mode = dispatch_mode;
    options.game = game.c_str();
    options.on_room = detail::mmn_detail_on_listed;
    options.user_data = handler.get();
    options.drop_fn = detail::mmn_detail_drop_listed;
    options.port = port;
    const std::int32_t code = api.mmn_browse_open(&options, &number_);
    if (code < 0) detail::refuse(api, code);
    // The library owns it now.
    (void)handler.release();
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  ~Browser() { api_->mmn_browse_close(number_); }

  // In poll mode, runs the handler for up to max changes on the calling thread, and returns their number. Never waits.
  std::int32_t poll(std::int32_t max = INT32_MAX) {
    const std::int32_t ran = api_->mmn_browse_poll(number_, max);
    if (ran < 0) detail::refuse(*api_, ran);
    return ran;
  }
  MmnBrowser number() const noexcept { return number_; }

 private:
  const Api* api_;
  MmnBrowser number_ = 0;
};

} // namespace mmn

#endif // META_MYSTIA_NETWORK_HPP
