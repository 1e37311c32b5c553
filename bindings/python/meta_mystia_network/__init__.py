"""meta_mystia_network from Python: rooms as objects, over ctypes, without further dependencies.

    import meta_mystia_network as mmn

    with mmn.Room("alice", "tea", on_message=lambda m: print(m.sender, m.data)) as room:
        room.connect("192.168.1.20:40123")
        room.broadcast(b"hello")

A process may be in several rooms. The handlers of a room run one at a time, in order, on a thread of the library, or, in poll
mode (Room(..., options=NetworkOptions())), inside Room.poll(), on the thread that calls it. They may call every method of a room
except close() and poll(). An exception in a handler is printed and goes no further. Programs with asyncio use
meta_mystia_network.aio instead.

The library comes from the environment variable MMN_LIBRARY, else from the directory of this file, as in the wheel, else from the
source tree (target/release), else from the system's search path.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import operator
import os
import platform
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple, Union

__all__ = [
    "Code",
    "ConnectionResult",
    "Delivery",
    "DiscoveryMode",
    "DroppedReason",
    "EndReason",
    "EtcdOptions",
    "Event",
    "EventKind",
    "FIRST_USER_TYPE",
    "GossipWindows",
    "LeaderReason",
    "LeftReason",
    "LinkPath",
    "LogLevel",
    "MemberState",
    "Message",
    "NetworkError",
    "NetworkOptions",
    "PeerStats",
    "PeerStatus",
    "Room",
    "RoomStats",
    "SeededOptions",
    "SendOptions",
    "Strategy",
    "describe_end_reason",
    "describe_error",
    "describe_leader_reason",
    "describe_left_reason",
    "describe_member_state",
    "generate_identity_key",
    "load_library",
    "set_log",
    "set_log_stderr",
]


class _Number(IntEnum):
    """A number of the header with a name. A number from the library that this version does not know stays an int."""

    # As in Python 3.11: the number, not "Code.OK".
    __str__ = int.__repr__
    __format__ = int.__format__  # type: ignore[assignment]

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


# -- Generated from src/ffi by `make header`: do not edit.

ABI_VERSION = 11


class Code(_Number):
    """Result of a call or a dial."""

    OK = 0
    NOT_INITIALIZED = -1
    ALREADY_INITIALIZED = -2
    INVALID_ARGUMENT = -3
    CONNECTION_FAILED = -4
    PEER_NOT_FOUND = -5
    NOT_LEADER = -6
    SEND_QUEUE_FULL = -7
    MESSAGE_TOO_LARGE = -8
    SERIALIZATION_ERROR = -9
    SESSION_MISMATCH = -10
    DUPLICATE_PEER_ID = -11
    VERSION_MISMATCH = -12
    MAX_CONNECTIONS_REACHED = -13
    ALREADY_CONNECTED = -14
    WOULD_DEADLOCK = -15
    NOT_SUPPORTED = -16
    AUTHENTICATION_FAILED = -17
    REJECTED = -18
    TIMEOUT = -19
    POLICY_MISMATCH = -20
    SUPERSEDED = -21
    RATE_LIMITED = -22
    NAME_NOT_RESOLVED = -23
    LOOKING_FOR_ROOM = -24
    INTERNAL_ERROR = -99


OK = Code.OK
NOT_INITIALIZED = Code.NOT_INITIALIZED
ALREADY_INITIALIZED = Code.ALREADY_INITIALIZED
INVALID_ARGUMENT = Code.INVALID_ARGUMENT
CONNECTION_FAILED = Code.CONNECTION_FAILED
PEER_NOT_FOUND = Code.PEER_NOT_FOUND
NOT_LEADER = Code.NOT_LEADER
SEND_QUEUE_FULL = Code.SEND_QUEUE_FULL
MESSAGE_TOO_LARGE = Code.MESSAGE_TOO_LARGE
SERIALIZATION_ERROR = Code.SERIALIZATION_ERROR
SESSION_MISMATCH = Code.SESSION_MISMATCH
DUPLICATE_PEER_ID = Code.DUPLICATE_PEER_ID
VERSION_MISMATCH = Code.VERSION_MISMATCH
MAX_CONNECTIONS_REACHED = Code.MAX_CONNECTIONS_REACHED
ALREADY_CONNECTED = Code.ALREADY_CONNECTED
WOULD_DEADLOCK = Code.WOULD_DEADLOCK
NOT_SUPPORTED = Code.NOT_SUPPORTED
AUTHENTICATION_FAILED = Code.AUTHENTICATION_FAILED
REJECTED = Code.REJECTED
TIMEOUT = Code.TIMEOUT
POLICY_MISMATCH = Code.POLICY_MISMATCH
SUPERSEDED = Code.SUPERSEDED
RATE_LIMITED = Code.RATE_LIMITED
NAME_NOT_RESOLVED = Code.NAME_NOT_RESOLVED
LOOKING_FOR_ROOM = Code.LOOKING_FOR_ROOM
INTERNAL_ERROR = Code.INTERNAL_ERROR

MAX_PEER_ID_BYTES = 64
MAX_SESSION_ID_BYTES = 128

MIN_MESSAGE_TYPE = 256


class PeerStatus(_Number):
    """State of the link to a member."""

    CONNECTED = 0
    DISCONNECTED = 1
    RECONNECTING = 2
    HANDSHAKING = 3


PEER_CONNECTED = PeerStatus.CONNECTED
PEER_DISCONNECTED = PeerStatus.DISCONNECTED
PEER_RECONNECTING = PeerStatus.RECONNECTING
PEER_HANDSHAKING = PeerStatus.HANDSHAKING

RECONNECT_RETRYING = 0
RECONNECT_RETURNED = 1
RECONNECT_GAVE_UP = 2


class LogLevel(_Number):
    """Verbosity of the log."""

    OFF = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    DEBUG = 4
    TRACE = 5


LOG_OFF = LogLevel.OFF
LOG_ERROR = LogLevel.ERROR
LOG_WARN = LogLevel.WARN
LOG_INFO = LogLevel.INFO
LOG_DEBUG = LogLevel.DEBUG
LOG_TRACE = LogLevel.TRACE

RECOVERY_HOLD = 0
RECOVERY_AUTO_ELECT = 1


class DiscoveryMode(_Number):
    """Discovery of members in the local network."""

    OFF = 0
    REPORT = 1
    CONNECT = 2


DISCOVERY_OFF = DiscoveryMode.OFF
DISCOVERY_REPORT = DiscoveryMode.REPORT
DISCOVERY_CONNECT = DiscoveryMode.CONNECT

DISPATCH_THREAD = 0
DISPATCH_POLL = 1

MERGE_LARGEST_SIDE = 0
MERGE_HIGHEST_TERM = 1

AUTHORITY_ANYONE = 0
AUTHORITY_LEADER_ONLY = 1

HOST_MODE_OFF = 0
HOST_MODE_HOST = 1
HOST_MODE_GUEST = 2

TOPOLOGY_MESH = 0
TOPOLOGY_STAR = 1

ENTRY_ANY = 0
ENTRY_CREATE = 1
ENTRY_JOIN = 2

QUORUM_DYNAMIC = 0
QUORUM_STATIC = 1


class Strategy(_Number):
    """Election strategy of a room."""

    RAFT = 0
    GOSSIP = 1
    SEEDED = 2
    ETCD = 3


STRATEGY_RAFT = Strategy.RAFT
STRATEGY_GOSSIP = Strategy.GOSSIP
STRATEGY_SEEDED = Strategy.SEEDED
STRATEGY_ETCD = Strategy.ETCD

SEEDED_STRICT_START = 1
SEEDED_NEVER_ALONE = 2
SEEDED_PROFILE_WAN = 0
SEEDED_PROFILE_LAN = 1


class Delivery(_Number):
    """Delivery of a message."""

    RELIABLE_ORDERED = 0
    RELIABLE_UNORDERED = 1
    UNRELIABLE = 2
    SEQUENCED = 3


DELIVERY_RELIABLE_ORDERED = Delivery.RELIABLE_ORDERED
DELIVERY_RELIABLE_UNORDERED = Delivery.RELIABLE_UNORDERED
DELIVERY_UNRELIABLE = Delivery.UNRELIABLE
DELIVERY_SEQUENCED = Delivery.SEQUENCED

SEND_PARTIAL = 1

MAX_PRIORITY = 3

PRIORITY_LOW = -1
PRIORITY_NORMAL = 0
PRIORITY_HIGH = 1
PRIORITY_HIGHEST = 2

KICK_BAN = 1

GOSSIP_STRICT_LOWEST = 1

MAX_SECRET_BYTES = 1024

IDENTITY_KEY_BYTES = 48

MAX_SEEDS = 32
MAX_ETCD_ENDPOINTS = 16
MAX_PROCLAIMED_BYTES = 4096
MAX_LOCK_NAME_BYTES = 128
MAX_QUORUM_VOTERS = 64


class EventKind(_Number):
    """Kind of an Event."""

    JOINED = 1
    RECONNECTING = 2
    RETURNED = 3
    LEFT = 4
    MESSAGE = 5
    SET_LEADER_RESULT = 6
    ROOM_ENDED = 7
    LEADER_CHANGED = 8
    LEADERSHIP_GAINED = 9
    LEADERSHIP_LOST = 10
    JOIN_REQUEST = 11
    DISCOVERED = 12
    CONNECTION_RESULT = 13
    SLOW_PEER = 14
    DATA_DROPPED = 15
    MEMBER_STATE = 16
    LOCK_RESULT = 17
    LOCK_LOST = 18
    UNLINKED_PEER = 22
    BAN_DROPPED = 23
    DISCOVERY_REFUSED = 21
    JOIN_WITHDRAWN = 24
    HOST_SILENT = 19
    HOST_BACK = 20
    NO_ROOM_FOUND = 25


EVENT_JOINED = EventKind.JOINED
EVENT_RECONNECTING = EventKind.RECONNECTING
EVENT_RETURNED = EventKind.RETURNED
EVENT_LEFT = EventKind.LEFT
EVENT_MESSAGE = EventKind.MESSAGE
EVENT_SET_LEADER_RESULT = EventKind.SET_LEADER_RESULT
EVENT_ROOM_ENDED = EventKind.ROOM_ENDED
EVENT_LEADER_CHANGED = EventKind.LEADER_CHANGED
EVENT_LEADERSHIP_GAINED = EventKind.LEADERSHIP_GAINED
EVENT_LEADERSHIP_LOST = EventKind.LEADERSHIP_LOST
EVENT_JOIN_REQUEST = EventKind.JOIN_REQUEST
EVENT_DISCOVERED = EventKind.DISCOVERED
EVENT_CONNECTION_RESULT = EventKind.CONNECTION_RESULT
EVENT_SLOW_PEER = EventKind.SLOW_PEER
EVENT_DATA_DROPPED = EventKind.DATA_DROPPED
EVENT_MEMBER_STATE = EventKind.MEMBER_STATE
EVENT_LOCK_RESULT = EventKind.LOCK_RESULT
EVENT_LOCK_LOST = EventKind.LOCK_LOST
EVENT_UNLINKED_PEER = EventKind.UNLINKED_PEER
EVENT_BAN_DROPPED = EventKind.BAN_DROPPED
EVENT_DISCOVERY_REFUSED = EventKind.DISCOVERY_REFUSED
EVENT_JOIN_WITHDRAWN = EventKind.JOIN_WITHDRAWN
EVENT_HOST_SILENT = EventKind.HOST_SILENT
EVENT_HOST_BACK = EventKind.HOST_BACK
EVENT_NO_ROOM_FOUND = EventKind.NO_ROOM_FOUND

FOUND_IN_LOCAL_NETWORK = 1
FOUND_AS_SEED = 2


class MemberState(_Number):
    """State of a member: the reason of EVENT_MEMBER_STATE."""

    INIT = 0
    JOINING = 1
    ACTIVE = 2
    UNREACHABLE = 3
    LEAVING = 4
    REMOVED = 5


MEMBER_INIT = MemberState.INIT
MEMBER_JOINING = MemberState.JOINING
MEMBER_ACTIVE = MemberState.ACTIVE
MEMBER_UNREACHABLE = MemberState.UNREACHABLE
MEMBER_LEAVING = MemberState.LEAVING
MEMBER_REMOVED = MemberState.REMOVED


class LeaderReason(_Number):
    """Reason of EVENT_LEADER_CHANGED."""

    UNKNOWN = 0
    ELECTED = 1
    ASSIGNED = 2
    TRANSFERRED = 3
    FOUND = 4
    LOST = 5
    LEFT = 6
    RESIGNED = 7


LEADER_UNKNOWN = LeaderReason.UNKNOWN
LEADER_ELECTED = LeaderReason.ELECTED
LEADER_ASSIGNED = LeaderReason.ASSIGNED
LEADER_TRANSFERRED = LeaderReason.TRANSFERRED
LEADER_FOUND = LeaderReason.FOUND
LEADER_LOST = LeaderReason.LOST
LEADER_LEFT = LeaderReason.LEFT
LEADER_RESIGNED = LeaderReason.RESIGNED


class LeftReason(_Number):
    """Reason of EVENT_LEFT."""

    LEFT = 0
    LOST = 1
    DISCONNECTED = 2
    REPLACED = 3
    KICKED = 4
    VIOLATION = 5
    GAVE_UP = 6
    ROOM_ENDED = 7


LEFT_LEFT = LeftReason.LEFT
LEFT_LOST = LeftReason.LOST
LEFT_DISCONNECTED = LeftReason.DISCONNECTED
LEFT_REPLACED = LeftReason.REPLACED
LEFT_KICKED = LeftReason.KICKED
LEFT_VIOLATION = LeftReason.VIOLATION
LEFT_GAVE_UP = LeftReason.GAVE_UP
LEFT_ROOM_ENDED = LeftReason.ROOM_ENDED


class DroppedReason(_Number):
    """Reason of EVENT_DATA_DROPPED."""

    SENT = 0
    RECEIVED = 1


DROPPED_SENT = DroppedReason.SENT
DROPPED_RECEIVED = DroppedReason.RECEIVED


class EndReason(_Number):
    """Reason of EVENT_ROOM_ENDED."""

    KICKED = 0
    HOST_LEFT = 1
    HOST_LOST = 2
    DISCONNECTED = 3
    DUPLICATE_ID = 4
    INTERNAL = 5


END_KICKED = EndReason.KICKED
END_HOST_LEFT = EndReason.HOST_LEFT
END_HOST_LOST = EndReason.HOST_LOST
END_DISCONNECTED = EndReason.DISCONNECTED
END_DUPLICATE_ID = EndReason.DUPLICATE_ID
END_INTERNAL = EndReason.INTERNAL


class LinkPath(_Number):
    """Path to a member: PeerStats.path."""

    DIRECT = 0
    THROUGH_LEADER = 1


PATH_DIRECT = LinkPath.DIRECT
PATH_THROUGH_LEADER = LinkPath.THROUGH_LEADER


class _BYTES(ctypes.c_char_p):
    """The bytes before a length."""


_TEXT = ctypes.c_char_p


class _NetworkConfig(ctypes.Structure):
    reconnect_max_ms: int
    compression_threshold: int
    max_message_size: int
    heartbeat_interval_ms: int
    election_timeout_min_ms: int
    election_timeout_max_ms: int
    reconnect_initial_ms: int
    handshake_timeout_ms: int
    write_timeout_ms: int
    send_queue_capacity: int
    incoming_queue_capacity: int
    max_connections: int
    keepalive_time_secs: int
    keepalive_interval_secs: int
    mdns_port: int
    heartbeat_timeout_multiplier: int
    keepalive_retries: int
    centralized_auto_forward: int
    auto_election_enabled: int
    manual_override_recovery: int
    tcp_nodelay: int
    auto_reconnect_enabled: int
    reconnect_max_retries: int


class _NetworkEvent(ctypes.Structure):
    struct_size: int
    kind: int
    term: int
    epoch: int
    request: int
    count: int
    peer: bytes | None
    other: bytes | None
    data: int | None
    length: int
    reason: int
    code: int
    msg_type: int
    flags: int
    success: int
    missed: int
    peer_index: int
    channel: int
    delivery: int
    found_by: int
    room: int


class _MmnOptions(ctypes.Structure):
    struct_size: int
    strategy: int
    on_event: Any
    user_data: int | None
    drop_fn: Any
    bind_address: bytes | None
    secret: int | None
    identity_key: int | None
    state_directory: bytes | None
    trace_path: bytes | None
    quorum_roster: bytes | None
    seeded: Any
    etcd: Any
    secret_length: int
    identity_key_length: int
    is_default: int
    dispatch_mode: int
    bind_port: int
    discovery_mode: int
    mdns_port: int
    max_connections: int
    max_peers: int
    max_message_size: int
    send_queue_capacity: int
    incoming_queue_capacity: int
    queue_bytes: int
    compression_threshold: int
    heartbeat_interval_ms: int
    heartbeat_timeout_multiplier: int
    election_timeout_min_ms: int
    election_timeout_max_ms: int
    reconnect_initial_ms: int
    reconnect_max_ms: int
    reconnect_max_retries: int
    auto_reconnect: int
    member_hold_ms: int
    handshake_timeout_ms: int
    write_timeout_ms: int
    auto_election: int
    eligible: int
    priority: int
    manual_override_recovery: int
    set_leader_authority: int
    merge_policy: int
    quorum_policy: int
    quorum_voters: int
    strategy_flags: int
    host_mode: int
    topology: int
    entry: int
    yield_after_ms: int
    centralized_auto_forward: int
    startup_grace_ms: int
    sample_interval_ms: int
    alive_threshold_ms: int
    election_duration_ms: int
    reserved: int


class _MmnGossipWindows(ctypes.Structure):
    struct_size: int
    startup_grace_ms: int
    sample_interval_ms: int
    alive_threshold_ms: int
    election_duration_ms: int


class _SeededOptions(ctypes.Structure):
    struct_size: int
    is_seed: int
    seeds: bytes | None
    probe_interval_ms: int
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    ttl_timeout_ms: int
    retry_interval_ms: int
    reserved: int


class _EtcdOptions(ctypes.Structure):
    struct_size: int
    ttl_seconds: int
    endpoints: bytes | None
    prefix: bytes | None
    address: bytes | None
    ca_file: bytes | None
    cert_file: bytes | None
    key_file: bytes | None
    user: bytes | None
    password: bytes | None


class _MmnSendOptions(ctypes.Structure):
    struct_size: int
    delivery: int
    channel: int
    priority: int
    flags: int
    ttl_ms: int
    user_flags: int
    reserved: int
    reserved2: int
    key: int


class _PeerStats(ctypes.Structure):
    struct_size: int
    rtt_us: int
    jitter_us: int
    loss_ppm: int
    bytes_sent: int
    bytes_received: int
    messages_sent: int
    messages_received: int
    queue_messages: int
    queue_age_ms: int
    queue_bytes: int
    congestion_window: int
    path_mtu: int
    reconnects: int
    path: int
    reserved: int
    host_silent_ms: int
    reserved2: int


class _RoomStats(ctypes.Structure):
    struct_size: int
    unlinked_peers: int
    missed_broadcasts: int


class _NetworkOptions(ctypes.Structure):
    struct_size: int
    config: _NetworkConfig
    bind_address: bytes | None
    secret: int | None
    identity_key: int | None
    secret_length: int
    identity_key_length: int
    member_hold_ms: int
    queue_bytes: int
    strategy: int
    priority: int
    bind_port: int
    discovery_mode: int
    dispatch_mode: int
    merge_policy: int
    set_leader_authority: int
    host_mode: int
    eligible: int
    state_directory: bytes | None
    trace_path: bytes | None
    quorum_policy: int
    quorum_voters: int
    strategy_flags: int
    reserved: int
    max_peers: int
    reserved2: int
    quorum_roster: bytes | None
    seeded: Any
    etcd: Any
    topology: int
    reserved3: int
    entry: int
    yield_after_ms: int


class _SendOptions(ctypes.Structure):
    struct_size: int
    delivery: int
    channel: int
    priority: int
    flags: int
    ttl_ms: int
    reserved: int
    key: int


ReceiveCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)
LeaderChangedCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
LeadershipCallback = ctypes.CFUNCTYPE(None, ctypes.c_uint8)
PeerStatusCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int32)
ConnectionResultCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_int32)
ReconnectCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8)
DropCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EventCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_NetworkEvent))
MmnLogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p)
LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)

_NetworkConfig._fields_ = [
    ("reconnect_max_ms", ctypes.c_uint32),
    ("compression_threshold", ctypes.c_uint32),
    ("max_message_size", ctypes.c_uint32),
    ("heartbeat_interval_ms", ctypes.c_uint16),
    ("election_timeout_min_ms", ctypes.c_uint16),
    ("election_timeout_max_ms", ctypes.c_uint16),
    ("reconnect_initial_ms", ctypes.c_uint16),
    ("handshake_timeout_ms", ctypes.c_uint16),
    ("write_timeout_ms", ctypes.c_uint16),
    ("send_queue_capacity", ctypes.c_uint16),
    ("incoming_queue_capacity", ctypes.c_uint16),
    ("max_connections", ctypes.c_uint16),
    ("keepalive_time_secs", ctypes.c_uint16),
    ("keepalive_interval_secs", ctypes.c_uint16),
    ("mdns_port", ctypes.c_uint16),
    ("heartbeat_timeout_multiplier", ctypes.c_uint8),
    ("keepalive_retries", ctypes.c_uint8),
    ("centralized_auto_forward", ctypes.c_uint8),
    ("auto_election_enabled", ctypes.c_uint8),
    ("manual_override_recovery", ctypes.c_uint8),
    ("tcp_nodelay", ctypes.c_uint8),
    ("auto_reconnect_enabled", ctypes.c_uint8),
    ("reconnect_max_retries", ctypes.c_uint8),
]
_NetworkEvent._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("kind", ctypes.c_uint32),
    ("term", ctypes.c_uint64),
    ("epoch", ctypes.c_uint64),
    ("request", ctypes.c_uint64),
    ("count", ctypes.c_uint64),
    ("peer", ctypes.c_char_p),
    ("other", ctypes.c_char_p),
    ("data", ctypes.c_void_p),
    ("length", ctypes.c_int32),
    ("reason", ctypes.c_int32),
    ("code", ctypes.c_int32),
    ("msg_type", ctypes.c_uint16),
    ("flags", ctypes.c_uint8),
    ("success", ctypes.c_uint8),
    ("missed", ctypes.c_uint64),
    ("peer_index", ctypes.c_uint32),
    ("channel", ctypes.c_uint8),
    ("delivery", ctypes.c_uint8),
    ("found_by", ctypes.c_uint16),
    ("room", ctypes.c_uint64),
]
_MmnOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("strategy", ctypes.c_uint32),
    ("on_event", EventCallback),
    ("user_data", ctypes.c_void_p),
    ("drop_fn", DropCallback),
    ("bind_address", ctypes.c_char_p),
    ("secret", ctypes.c_void_p),
    ("identity_key", ctypes.c_void_p),
    ("state_directory", ctypes.c_char_p),
    ("trace_path", ctypes.c_char_p),
    ("quorum_roster", ctypes.c_char_p),
    ("seeded", ctypes.POINTER(_SeededOptions)),
    ("etcd", ctypes.POINTER(_EtcdOptions)),
    ("secret_length", ctypes.c_uint32),
    ("identity_key_length", ctypes.c_uint32),
    ("is_default", ctypes.c_uint32),
    ("dispatch_mode", ctypes.c_uint32),
    ("bind_port", ctypes.c_uint32),
    ("discovery_mode", ctypes.c_uint32),
    ("mdns_port", ctypes.c_uint32),
    ("max_connections", ctypes.c_uint32),
    ("max_peers", ctypes.c_uint32),
    ("max_message_size", ctypes.c_uint32),
    ("send_queue_capacity", ctypes.c_uint32),
    ("incoming_queue_capacity", ctypes.c_uint32),
    ("queue_bytes", ctypes.c_uint32),
    ("compression_threshold", ctypes.c_uint32),
    ("heartbeat_interval_ms", ctypes.c_uint32),
    ("heartbeat_timeout_multiplier", ctypes.c_uint32),
    ("election_timeout_min_ms", ctypes.c_uint32),
    ("election_timeout_max_ms", ctypes.c_uint32),
    ("reconnect_initial_ms", ctypes.c_uint32),
    ("reconnect_max_ms", ctypes.c_uint32),
    ("reconnect_max_retries", ctypes.c_uint32),
    ("auto_reconnect", ctypes.c_uint32),
    ("member_hold_ms", ctypes.c_uint32),
    ("handshake_timeout_ms", ctypes.c_uint32),
    ("write_timeout_ms", ctypes.c_uint32),
    ("auto_election", ctypes.c_uint32),
    ("eligible", ctypes.c_uint32),
    ("priority", ctypes.c_int32),
    ("manual_override_recovery", ctypes.c_uint32),
    ("set_leader_authority", ctypes.c_uint32),
    ("merge_policy", ctypes.c_uint32),
    ("quorum_policy", ctypes.c_uint32),
    ("quorum_voters", ctypes.c_uint32),
    ("strategy_flags", ctypes.c_uint32),
    ("host_mode", ctypes.c_uint32),
    ("topology", ctypes.c_uint32),
    ("entry", ctypes.c_uint32),
    ("yield_after_ms", ctypes.c_uint32),
    ("centralized_auto_forward", ctypes.c_uint32),
    ("startup_grace_ms", ctypes.c_uint32),
    ("sample_interval_ms", ctypes.c_uint32),
    ("alive_threshold_ms", ctypes.c_uint32),
    ("election_duration_ms", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
]
_MmnGossipWindows._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("startup_grace_ms", ctypes.c_uint32),
    ("sample_interval_ms", ctypes.c_uint32),
    ("alive_threshold_ms", ctypes.c_uint32),
    ("election_duration_ms", ctypes.c_uint32),
]
_SeededOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("is_seed", ctypes.c_uint32),
    ("seeds", ctypes.c_char_p),
    ("probe_interval_ms", ctypes.c_uint32),
    ("heartbeat_interval_ms", ctypes.c_uint32),
    ("heartbeat_timeout_ms", ctypes.c_uint32),
    ("ttl_timeout_ms", ctypes.c_uint32),
    ("retry_interval_ms", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
]
_EtcdOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("ttl_seconds", ctypes.c_uint32),
    ("endpoints", ctypes.c_char_p),
    ("prefix", ctypes.c_char_p),
    ("address", ctypes.c_char_p),
    ("ca_file", ctypes.c_char_p),
    ("cert_file", ctypes.c_char_p),
    ("key_file", ctypes.c_char_p),
    ("user", ctypes.c_char_p),
    ("password", ctypes.c_char_p),
]
_MmnSendOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("delivery", ctypes.c_uint8),
    ("channel", ctypes.c_uint8),
    ("priority", ctypes.c_int8),
    ("flags", ctypes.c_uint8),
    ("ttl_ms", ctypes.c_uint32),
    ("user_flags", ctypes.c_uint8),
    ("reserved", ctypes.c_uint8),
    ("reserved2", ctypes.c_uint16),
    ("key", ctypes.c_uint64),
]
_PeerStats._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("rtt_us", ctypes.c_uint32),
    ("jitter_us", ctypes.c_uint32),
    ("loss_ppm", ctypes.c_uint32),
    ("bytes_sent", ctypes.c_uint64),
    ("bytes_received", ctypes.c_uint64),
    ("messages_sent", ctypes.c_uint64),
    ("messages_received", ctypes.c_uint64),
    ("queue_messages", ctypes.c_uint32),
    ("queue_age_ms", ctypes.c_uint32),
    ("queue_bytes", ctypes.c_uint64),
    ("congestion_window", ctypes.c_uint64),
    ("path_mtu", ctypes.c_uint32),
    ("reconnects", ctypes.c_uint32),
    ("path", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
    ("host_silent_ms", ctypes.c_uint32),
    ("reserved2", ctypes.c_uint32),
]
_RoomStats._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("unlinked_peers", ctypes.c_uint32),
    ("missed_broadcasts", ctypes.c_uint64),
]
_NetworkOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("config", _NetworkConfig),
    ("bind_address", ctypes.c_char_p),
    ("secret", ctypes.c_void_p),
    ("identity_key", ctypes.c_void_p),
    ("secret_length", ctypes.c_uint32),
    ("identity_key_length", ctypes.c_uint32),
    ("member_hold_ms", ctypes.c_uint32),
    ("queue_bytes", ctypes.c_uint32),
    ("strategy", ctypes.c_uint32),
    ("priority", ctypes.c_int32),
    ("bind_port", ctypes.c_uint16),
    ("discovery_mode", ctypes.c_uint8),
    ("dispatch_mode", ctypes.c_uint8),
    ("merge_policy", ctypes.c_uint8),
    ("set_leader_authority", ctypes.c_uint8),
    ("host_mode", ctypes.c_uint8),
    ("eligible", ctypes.c_uint8),
    ("state_directory", ctypes.c_char_p),
    ("trace_path", ctypes.c_char_p),
    ("quorum_policy", ctypes.c_uint32),
    ("quorum_voters", ctypes.c_uint32),
    ("strategy_flags", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
    ("max_peers", ctypes.c_uint32),
    ("reserved2", ctypes.c_uint32),
    ("quorum_roster", ctypes.c_char_p),
    ("seeded", ctypes.POINTER(_SeededOptions)),
    ("etcd", ctypes.POINTER(_EtcdOptions)),
    ("topology", ctypes.c_uint32),
    ("reserved3", ctypes.c_uint32),
    ("entry", ctypes.c_uint32),
    ("yield_after_ms", ctypes.c_uint32),
]
_SendOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("delivery", ctypes.c_uint8),
    ("channel", ctypes.c_uint8),
    ("priority", ctypes.c_uint8),
    ("flags", ctypes.c_uint8),
    ("ttl_ms", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
    ("key", ctypes.c_uint64),
]

# Name: (result, arguments).
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mmn_abi_version": (ctypes.c_uint32, ()),
    "mmn_library_version": (_TEXT, ()),
    "RegisterReceiveCallback": (ctypes.c_int32, (ReceiveCallback,)),
    "RegisterLeaderChangedCallback": (ctypes.c_int32, (LeaderChangedCallback,)),
    "RegisterLeadershipCallback": (ctypes.c_int32, (LeadershipCallback,)),
    "RegisterPeerStatusCallback": (ctypes.c_int32, (PeerStatusCallback,)),
    "RegisterConnectionResultCallback": (ctypes.c_int32, (ConnectionResultCallback,)),
    "RegisterReconnectCallback": (ctypes.c_int32, (ReconnectCallback,)),
    "mmn_set_event_handler": (ctypes.c_int32, (ctypes.c_uint64, EventCallback, ctypes.c_void_p, DropCallback)),
    "mmn_poll": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_int32)),
    "mmn_default_options": (ctypes.c_int32, (ctypes.POINTER(_MmnOptions),)),
    "mmn_open": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(_MmnOptions), ctypes.POINTER(ctypes.c_uint64))),
    "mmn_leave": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_close": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_is_open": (ctypes.c_uint8, (ctypes.c_uint64,)),
    "mmn_default_room": (ctypes.c_uint64, ()),
    "mmn_is_announced": (ctypes.c_uint8, (ctypes.c_uint64,)),
    "mmn_last_error_code": (ctypes.c_int32, ()),
    "mmn_last_error_message": (_TEXT, ()),
    "mmn_describe_error": (_TEXT, (ctypes.c_int32,)),
    "mmn_connect": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_disconnect": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "mmn_local_address": (_TEXT, (ctypes.c_uint64,)),
    "mmn_local_addresses": (_TEXT, (ctypes.c_uint64,)),
    "mmn_local_id": (_TEXT, (ctypes.c_uint64,)),
    "mmn_session_id": (_TEXT, (ctypes.c_uint64,)),
    "mmn_peer_count": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_peers": (_TEXT, (ctypes.c_uint64,)),
    "mmn_members": (_TEXT, (ctypes.c_uint64,)),
    "mmn_peer_address": (_TEXT, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_index": (ctypes.c_uint32, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_id": (_TEXT, (ctypes.c_uint64, ctypes.c_uint32)),
    "mmn_peer_rtt_ms": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_status": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_generate_identity_key": (ctypes.c_int32, (ctypes.POINTER(ctypes.c_uint8), ctypes.c_int32)),
    "mmn_local_fingerprint": (_TEXT, (ctypes.c_uint64,)),
    "mmn_peer_fingerprint": (_TEXT, (ctypes.c_uint64, _TEXT)),
    "mmn_set_auto_reconnect": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint8)),
    "mmn_auto_reconnect": (ctypes.c_uint8, (ctypes.c_uint64,)),
    "mmn_kick": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.c_uint32, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "mmn_unban": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_set_max_peers": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint32)),
    "mmn_set_join_payload": (ctypes.c_int32, (ctypes.c_uint64, _BYTES, ctypes.c_int32)),
    "mmn_set_join_requests": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint8)),
    "mmn_accept_join": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint64)),
    "mmn_reject_join": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "mmn_set_leader": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_set_auto_election": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint8)),
    "mmn_set_eligible": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint8)),
    "mmn_transfer_leadership": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_yield_leadership": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_set_priority": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_int32)),
    "mmn_leader_term": (ctypes.c_int64, (ctypes.c_uint64,)),
    "mmn_leader_epoch": (ctypes.c_int64, (ctypes.c_uint64,)),
    "mmn_strategy": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_leader": (_TEXT, (ctypes.c_uint64,)),
    "mmn_is_leader": (ctypes.c_uint8, (ctypes.c_uint64,)),
    "mmn_set_gossip_windows": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_MmnGossipWindows))),
    "mmn_gossip_windows": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_MmnGossipWindows))),
    "mmn_default_seeded_options": (ctypes.c_int32, (ctypes.c_uint32, ctypes.POINTER(_SeededOptions))),
    "mmn_member_state": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_cluster_version": (ctypes.c_int64, (ctypes.c_uint64,)),
    "mmn_default_etcd_options": (ctypes.c_int32, (ctypes.POINTER(_EtcdOptions),)),
    "mmn_fencing_token": (ctypes.c_int64, (ctypes.c_uint64,)),
    "mmn_proclaim": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_acquire_lock": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64))),
    "mmn_try_lock": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.POINTER(ctypes.c_uint64))),
    "mmn_release_lock": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_send": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.POINTER(_MmnSendOptions))),
    "mmn_broadcast": (ctypes.c_int32, (ctypes.c_uint64, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.POINTER(_MmnSendOptions))),
    "mmn_send_to_leader": (ctypes.c_int32, (ctypes.c_uint64, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.POINTER(_MmnSendOptions))),
    "mmn_broadcast_as_leader": (ctypes.c_int32, (ctypes.c_uint64, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.POINTER(_MmnSendOptions))),
    "mmn_forward": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, _TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.POINTER(_MmnSendOptions))),
    "mmn_max_datagram_size": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_set_centralized": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint8)),
    "mmn_centralized": (ctypes.c_uint8, (ctypes.c_uint64,)),
    "mmn_set_auto_forward": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint8)),
    "mmn_auto_forward": (ctypes.c_uint8, (ctypes.c_uint64,)),
    "mmn_set_compression_threshold": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint32)),
    "mmn_peer_stats": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.POINTER(_PeerStats))),
    "mmn_room_stats": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_RoomStats))),
    "mmn_simulate_network": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)),
    "mmn_set_log_stderr": (ctypes.c_int32, (ctypes.c_int32,)),
    "mmn_set_log": (ctypes.c_int32, (ctypes.c_int32, MmnLogCallback, ctypes.c_void_p, DropCallback)),
    "InitializeNetwork": (ctypes.c_int32, (_TEXT, _TEXT)),
    "InitializeNetworkWithConfig": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(_NetworkConfig))),
    "ShutdownNetwork": (ctypes.c_int32, ()),
    "IsNetworkInitialized": (ctypes.c_uint8, ()),
    "DisconnectPeer": (ctypes.c_int32, (_TEXT,)),
    "BroadcastMessage": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SendToPeer": (ctypes.c_int32, (_TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SendToLeader": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SendFromLeader": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "ForwardMessage": (ctypes.c_int32, (_TEXT, _TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "IsMdnsActive": (ctypes.c_uint8, ()),
    "EnableLogging": (ctypes.c_int32, (ctypes.c_uint8,)),
    "GetLastErrorCode": (ctypes.c_int32, ()),
    "GetLastErrorMessage": (_TEXT, ()),
    "ConnectToPeer": (ctypes.c_int32, (_TEXT,)),
    "GetLocalAddr": (_TEXT, ()),
    "GetLocalPeerId": (_TEXT, ()),
    "GetSessionId": (_TEXT, ()),
    "GetPeerCount": (ctypes.c_int32, ()),
    "GetPeerList": (_TEXT, ()),
    "GetPeerRTT": (ctypes.c_int32, (_TEXT,)),
    "GetPeerStatus": (ctypes.c_int32, (_TEXT,)),
    "SetAutoReconnect": (ctypes.c_int32, (ctypes.c_uint8,)),
    "IsAutoReconnectEnabled": (ctypes.c_uint8, ()),
    "SetLeader": (ctypes.c_int32, (_TEXT,)),
    "EnableAutoLeaderElection": (ctypes.c_int32, (ctypes.c_uint8,)),
    "GetCurrentLeader": (_TEXT, ()),
    "IsLeader": (ctypes.c_uint8, ()),
    "SetCentralizedMode": (ctypes.c_int32, (ctypes.c_uint8,)),
    "IsCentralizedMode": (ctypes.c_uint8, ()),
    "SetCentralizedAutoForward": (ctypes.c_int32, (ctypes.c_uint8,)),
    "IsCentralizedAutoForward": (ctypes.c_uint8, ()),
    "SetCompressionThreshold": (ctypes.c_int32, (ctypes.c_uint32,)),
    "SetStartupGracePeriod": (ctypes.c_int32, (ctypes.c_uint32,)),
    "GetStartupGracePeriod": (ctypes.c_uint32, ()),
    "SetMembershipSampleInterval": (ctypes.c_int32, (ctypes.c_uint32,)),
    "GetMembershipSampleInterval": (ctypes.c_uint32, ()),
    "SetLeaderAliveThreshold": (ctypes.c_int32, (ctypes.c_uint32,)),
    "GetLeaderAliveThreshold": (ctypes.c_uint32, ()),
    "SetLeaderElectionDuration": (ctypes.c_int32, (ctypes.c_uint32,)),
    "GetLeaderElectionDuration": (ctypes.c_uint32, ()),
    "GetMsgExpirationTimeout": (ctypes.c_uint32, ()),
    "GetLeadershipDeclarationInterval": (ctypes.c_uint32, ()),
    "GetDefaultNetworkOptions": (ctypes.c_int32, (ctypes.POINTER(_NetworkOptions),)),
    "InitializeNetworkWithOptions": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(_NetworkOptions))),
    "SendToPeerEx": (ctypes.c_int32, (_TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8, ctypes.POINTER(_SendOptions))),
    "BroadcastEx": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8, ctypes.POINTER(_SendOptions))),
    "KickPeer": (ctypes.c_int32, (_TEXT, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "RegisterEventHandler": (ctypes.c_int32, (EventCallback, ctypes.c_void_p, DropCallback)),
    "SetLogLevel": (ctypes.c_int32, (ctypes.c_int32,)),
    "RegisterLogCallback": (ctypes.c_int32, (ctypes.c_int32, LogCallback, ctypes.c_void_p, DropCallback)),
    "GetAbiVersion": (ctypes.c_uint32, ()),
    "GetLibraryVersion": (_TEXT, ()),
    "PollEvents": (ctypes.c_int32, (ctypes.c_int32,)),
    "DescribeError": (_TEXT, (ctypes.c_int32,)),
    "DisconnectPeerEx": (ctypes.c_int32, (_TEXT, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "GetLocalAddresses": (_TEXT, ()),
    "GetMembers": (_TEXT, ()),
    "GetPeerAddress": (_TEXT, (_TEXT,)),
    "GetPeerIndex": (ctypes.c_uint32, (_TEXT,)),
    "GetPeerIdByIndex": (_TEXT, (ctypes.c_uint32,)),
    "GenerateIdentityKey": (ctypes.c_int32, (ctypes.POINTER(ctypes.c_uint8), ctypes.c_int32)),
    "GetIdentityFingerprint": (_TEXT, ()),
    "GetPeerFingerprint": (_TEXT, (_TEXT,)),
    "KickPeerEx": (ctypes.c_int32, (_TEXT, ctypes.c_uint32, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "UnbanPeer": (ctypes.c_int32, (_TEXT,)),
    "SetMaxPeers": (ctypes.c_int32, (ctypes.c_uint32,)),
    "SetJoinPayload": (ctypes.c_int32, (_BYTES, ctypes.c_int32)),
    "EnableJoinRequests": (ctypes.c_int32, (ctypes.c_uint8,)),
    "AcceptJoin": (ctypes.c_int32, (ctypes.c_uint64,)),
    "RejectJoin": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "SetLeaderEligible": (ctypes.c_int32, (ctypes.c_uint8,)),
    "TransferLeadership": (ctypes.c_int32, (_TEXT,)),
    "YieldLeadership": (ctypes.c_int32, ()),
    "SetElectionPriority": (ctypes.c_int32, (ctypes.c_int32,)),
    "GetLeaderTerm": (ctypes.c_int64, ()),
    "GetLeaderEpoch": (ctypes.c_int64, ()),
    "GetElectionStrategy": (ctypes.c_int32, ()),
    "GetDefaultSeededOptions": (ctypes.c_int32, (ctypes.c_uint32, ctypes.POINTER(_SeededOptions))),
    "GetMemberState": (ctypes.c_int32, (_TEXT,)),
    "GetClusterVersion": (ctypes.c_int64, ()),
    "GetDefaultEtcdOptions": (ctypes.c_int32, (ctypes.POINTER(_EtcdOptions),)),
    "GetFencingToken": (ctypes.c_int64, ()),
    "Proclaim": (ctypes.c_int32, (_TEXT,)),
    "AcquireLock": (ctypes.c_int32, (_TEXT, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64))),
    "TryLock": (ctypes.c_int32, (_TEXT, ctypes.POINTER(ctypes.c_uint64))),
    "ReleaseLock": (ctypes.c_int32, (_TEXT,)),
    "GetMaxDatagramSize": (ctypes.c_int32, (_TEXT,)),
    "GetPeerStats": (ctypes.c_int32, (_TEXT, ctypes.POINTER(_PeerStats))),
    "GetRoomStats": (ctypes.c_int32, (ctypes.POINTER(_RoomStats),)),
    "SetNetworkSimulation": (ctypes.c_int32, (ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)),
}
# -- End of what is generated.

FIRST_USER_TYPE = MIN_MESSAGE_TYPE
"""Message types below this one belong to the library."""

STATUS_UNKNOWN = -1
STATUS_CONNECTED = PEER_CONNECTED
STATUS_DISCONNECTED = PEER_DISCONNECTED
STATUS_RECONNECTING = PEER_RECONNECTING
STATUS_HANDSHAKING = PEER_HANDSHAKING

Bytes = Union[bytes, bytearray, memoryview]
"""Types that sends accept."""

MAX_HELD_BYTES = 4 << 20
HOLD_SECONDS = 5.0
"""Limits of the messages that wait for a room's first handler for them."""


def _known(names: type[_Number], number: int) -> int:
    """The number with its name, if it has one."""
    known: int = names._value2member_map_.get(number, number)  # type: ignore[assignment]
    return known


class NetworkError(Exception):
    """A call was refused. `code` is one of Code; the text comes from the library."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = _known(Code, code)


class Message(NamedTuple):
    """A message from another member."""

    sender: str
    data: bytes
    type: int
    flags: int


class ConnectionResult(NamedTuple):
    """The result of one Room.connect(); -14 ALREADY_CONNECTED comes with success."""

    address: str
    success: bool
    code: int
    reason: int = 0
    """The number that the leader's host passed to reject_join()."""
    data: bytes = b""
    """The data of that host; else a sentence for the player, in UTF-8."""


class Event(NamedTuple):
    """An event of the room. `kind` is one of EventKind, and determines which other fields are set."""

    kind: int
    peer: str
    """The member that the event concerns; "" if there is none."""
    other: str
    """An address; for a change of the leader, the previous leader; or a lock."""
    data: bytes
    """The message; the payload of a join request; the data of a kick or a rejection."""
    reason: int
    """One of LeftReason, LeaderReason, EndReason, MemberState or DroppedReason, or the number passed to reject_join()."""
    code: int
    """One of Code, or the number passed to kick()."""
    success: bool
    type: int
    flags: int
    undelivered: int
    """EVENT_LEFT: the number of reliable messages for the member that are not known to be delivered;
    EVENT_RETURNED: the number of messages that it will not get."""
    missed: int
    """EVENT_RETURNED: the number of the member's reliable messages that this host will not get."""
    request: int
    """EVENT_JOIN_REQUEST, EVENT_JOIN_WITHDRAWN: for accept_join() and reject_join(); EVENT_LOCK_RESULT: the lock call."""
    term: int
    epoch: int
    channel: int
    """EVENT_MESSAGE: as the sender named it."""
    delivery: int
    """EVENT_MESSAGE: one of Delivery."""
    peer_index: int
    """index() of `peer`; 0 for this member and for one that is not in the room."""
    found_by: int = 0
    """EVENT_DISCOVERY_REFUSED: one of FOUND_..."""

    @property
    def count(self) -> int:  # type: ignore[override]  # hides tuple.count, which no program needs here
        """EVENT_DATA_DROPPED: the number of messages. EVENT_HOST_SILENT, EVENT_NO_ROOM_FOUND: milliseconds."""
        return self.undelivered

    @property
    def token(self) -> int:
        """EVENT_LOCK_RESULT with success, and EVENT_LOCK_LOST: the fencing token of the lock, which `other` names."""
        return self.undelivered


_REASONS: dict[int, type[_Number]] = {
    EVENT_LEFT: LeftReason,
    EVENT_ROOM_ENDED: EndReason,
    EVENT_LEADER_CHANGED: LeaderReason,
    EVENT_LEADERSHIP_GAINED: LeaderReason,
    EVENT_LEADERSHIP_LOST: LeaderReason,
    EVENT_MEMBER_STATE: MemberState,
    EVENT_DATA_DROPPED: DroppedReason,
}
_HOSTS_OWN_CODE = (EVENT_LEFT, EVENT_ROOM_ENDED)


def _event(native: _NetworkEvent) -> Event:
    kind, reason, code = _known(EventKind, native.kind), native.reason, native.code
    return Event(
        kind=kind,
        peer=(native.peer or b"").decode("utf-8"),
        other=(native.other or b"").decode("utf-8"),
        data=ctypes.string_at(native.data or 0, native.length) if native.length else b"",
        reason=_known(_REASONS[kind], reason) if kind in _REASONS else reason,
        code=code if kind in _HOSTS_OWN_CODE else _known(Code, code),
        success=native.success != 0,
        type=native.msg_type,
        flags=native.flags,
        undelivered=native.count,
        missed=native.missed,
        request=native.request,
        term=native.term,
        epoch=native.epoch,
        channel=native.channel,
        delivery=_known(Delivery, native.delivery),
        peer_index=native.peer_index,
        found_by=native.found_by,
    )


# -- arguments: ctypes would wrap numbers that are out of range, and would not name the argument


def _limits(kind: Any) -> tuple[int, int]:
    bits = 8 * ctypes.sizeof(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind(-1).value < 0 else (0, (1 << bits) - 1)


_LIMITS = {
    getattr(ctypes, f"c_{sign}int{bits}"): _limits(getattr(ctypes, f"c_{sign}int{bits}"))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def _number(name: str, value: Any, limits: tuple[int, int]) -> int:
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}: {value!r}") from None
    lowest, highest = limits
    if not lowest <= value <= highest:
        raise OverflowError(f"{name} is {value}; give {lowest} to {highest}")
    return int(value)


def _text(name: str, value: Any) -> bytes:
    """UTF-8 of a text or a path, or, of several texts, one a line."""
    if isinstance(value, (str, bytes, os.PathLike)):
        path = os.fspath(value)
        encoded = path if isinstance(path, bytes) else path.encode("utf-8")
    elif isinstance(value, Iterable) and not isinstance(value, (bytearray, memoryview)):
        encoded = b"\n".join(_text(name, line) for line in value)
    else:
        raise TypeError(f"{name} must be a str, not {type(value).__name__}: {value!r}")
    if b"\0" in encoded:
        raise ValueError(f"{name} contains a NUL character, at which C would cut it off: {value!r}")
    return encoded


def _data(name: str, value: Any) -> bytes:
    try:
        return memoryview(value).tobytes()
    except TypeError:
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}: {value!r}") from None


def _converted(parameters: Iterable[Any], arguments: dict[str, Any]) -> Iterator[Any]:
    """The arguments, in the order of the parameters, as a function takes them."""
    kinds = iter(parameters)
    for name, value in arguments.items():
        kind = next(kinds)
        if kind in _LIMITS:
            yield _number(name, value, _LIMITS[kind])
        elif kind is _BYTES:
            content = _data(name, value)
            next(kinds)
            yield content
            yield len(content)
        elif kind is _TEXT and value is not _NONE:
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a str, not {type(value).__name__}: {value!r}")
            yield _text(name, value)
        else:
            yield value


_NONE = ctypes.c_char_p()
"""NULL for a text, where a function takes it."""

_HIGHEST = {
    **dict.fromkeys(("is_default", "auto_reconnect", "auto_election", "eligible", "centralized_auto_forward"), 1),
    **dict.fromkeys(("bind_port", "mdns_port", "max_connections", "send_queue_capacity", "incoming_queue_capacity"), 0xFFFF),
}
"""The highest value of the fields of NetworkOptions that is below that of their type."""


class _Fields:
    """Fields of a struct that take Python's values: texts, paths, bytes, flags, other structs and numbers in their range."""

    _own: tuple[str, ...] = ()
    """Fields that the package sets."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind = dict(self._fields_).get(name)  # type: ignore[attr-defined]
        if kind is None or name in self._own or name.startswith(("struct_size", "reserved")) or name.endswith("_length"):
            # A ctypes structure would silently accept any attribute, and the setting would have no effect.
            raise TypeError(f"{type(self).__name__} has no field {name}")
        if kind in _LIMITS:
            lowest, highest = _LIMITS[kind]
            value = _number(name, value, (lowest, _HIGHEST.get(name, highest)))
        elif kind is ctypes.c_char_p:
            value = None if value is None else _text(name, value)
        elif kind is ctypes.c_void_p:
            content = value.encode("utf-8") if isinstance(value, str) else _data(name, value or b"")
            self._put(name + "_length", len(content))
            # An address does not keep its target alive.
            buffer = ctypes.create_string_buffer(content, len(content) or 1)
            self.__dict__["_" + name] = buffer
            value = ctypes.addressof(buffer) if content else None
        elif value is not None:
            if not isinstance(value, kind._type_):
                wanted = kind._type_.__name__.lstrip("_")
                raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}: {value!r}")
            self.__dict__["_" + name] = value
            # ctypes accepts a pointer to the struct itself, but not to its subclass.
            value = ctypes.cast(ctypes.pointer(value), kind)
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)

    def _begin(self, function: str | None, *before: Any, **values: Any) -> None:
        """Sets the size, the library's defaults, if `function` gives them, and then the values."""
        self._put("struct_size", ctypes.sizeof(self))  # type: ignore[arg-type]
        if function is not None:
            _checked(getattr(load_library(), function)(*before, ctypes.byref(self)))  # type: ignore[arg-type]
        for name, value in values.items():
            setattr(self, name, value)


class NetworkOptions(_Fields, _MmnOptions):
    """`MmnOptions`: all settings, each a keyword. Starts with the library's defaults, but in poll mode: handlers run in
    Room.poll(). Text, paths and bytes are set as such: `NetworkOptions(bind_address="127.0.0.1", secret=b"...", max_connections=3)`.
    The voters of a static quorum are a str with one per line, or a list of str. `seeded` is SeededOptions, for STRATEGY_SEEDED,
    and `etcd` is EtcdOptions, for STRATEGY_ETCD.
    """

    _own = ("on_event", "user_data", "drop_fn")

    def __init__(
        self,
        *,
        bind_address: str | None = None,
        secret: Bytes | str | None = None,
        identity_key: Bytes | None = None,
        state_directory: str | os.PathLike[str] | None = None,
        trace_path: str | os.PathLike[str] | None = None,
        quorum_roster: str | Iterable[str] | None = None,
        seeded: SeededOptions | None = None,
        etcd: EtcdOptions | None = None,
        dispatch_mode: int = DISPATCH_POLL,
        **fields: int,
    ) -> None:
        self._begin(
            "mmn_default_options",
            bind_address=bind_address,
            secret=secret,
            identity_key=identity_key,
            state_directory=state_directory,
            trace_path=trace_path,
            quorum_roster=quorum_roster,
            seeded=seeded,
            etcd=etcd,
            dispatch_mode=dispatch_mode,
            **fields,
        )


class SeededOptions(_Fields, _SeededOptions):
    """`SeededOptions`: the settings of STRATEGY_SEEDED, for NetworkOptions. Starts with the defaults of a profile. `seeds`, the
    addresses of the seeds, are a list of str, or a str with one per line: `SeededOptions(["one.example.org:4433"])`.
    """

    def __init__(
        self, seeds: str | Iterable[str] | None = None, *, profile: int = 0, is_seed: bool = False, **fields: int
    ) -> None:
        profile = _number("profile", profile, _LIMITS[ctypes.c_uint32])
        self._begin("mmn_default_seeded_options", profile, seeds=seeds, is_seed=bool(is_seed), **fields)


class EtcdOptions(_Fields, _EtcdOptions):
    """`EtcdOptions`: the settings of STRATEGY_ETCD, for NetworkOptions. Starts with the library's defaults. `endpoints` are a list
    of str, or a str with one per line: `EtcdOptions(["http://etcd.example.org:2379"], "rooms/lobby")`.
    """

    def __init__(
        self,
        endpoints: str | Iterable[str],
        prefix: str,
        *,
        address: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        cert_file: str | os.PathLike[str] | None = None,
        key_file: str | os.PathLike[str] | None = None,
        user: str | None = None,
        password: str | None = None,
        **fields: int,
    ) -> None:
        self._begin(
            "mmn_default_etcd_options",
            endpoints=endpoints,
            prefix=prefix,
            address=address,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            user=user,
            password=password,
            **fields,
        )


class SendOptions(_Fields, _MmnSendOptions):
    """`MmnSendOptions`: delivery of a message. `SendOptions(DELIVERY_SEQUENCED, key=unit)`. `priority` is PRIORITY_LOW (-1) to
    PRIORITY_HIGHEST (2)."""

    _own = ("flags", "user_flags")

    def __init__(self, delivery: int = 0, channel: int = 0, priority: int = 0, ttl_ms: int = 0, key: int = 0) -> None:
        self._begin(None, delivery=delivery, channel=channel, priority=priority, ttl_ms=ttl_ms, key=key)


def _send_options(options: SendOptions | None, user_flags: int, flags: int = 0) -> Any:
    if options is not None and not isinstance(options, SendOptions):
        raise TypeError(f"options must be SendOptions, not {type(options).__name__}: {options!r}")
    if options is None and user_flags == 0 and flags == 0:
        return None
    copy = _MmnSendOptions.from_buffer_copy(options or SendOptions())
    copy.user_flags = _number("flags", user_flags, _LIMITS[ctypes.c_uint8])
    copy.flags = flags
    return ctypes.byref(copy)


class PeerStats(_PeerStats):
    """`PeerStats`: statistics of one peer. Its size is set already."""

    def __init__(self) -> None:
        super().__init__(struct_size=ctypes.sizeof(PeerStats))


class RoomStats(_RoomStats):
    """`RoomStats`: statistics of the room at this member. Its size is set already."""

    def __init__(self) -> None:
        super().__init__(struct_size=ctypes.sizeof(RoomStats))


class GossipWindows(NamedTuple):
    """The times of STRATEGY_GOSSIP, in milliseconds; also fields of NetworkOptions."""

    startup_grace_ms: int
    """Longest wait at the start for the number of members to settle; 15000."""
    sample_interval_ms: int
    """Interval between samples of that number; 1000."""
    alive_threshold_ms: int
    """Time for which a member waits for a declaration of the leader before it proposes itself; 10000."""
    election_duration_ms: int
    """Time for which it then collects the proposals of others; 5000."""


NetworkEvent = _NetworkEvent
"""`NetworkEvent`, which an EventCallback receives; valid during the call. The header lists the fields of each `kind`."""

_library: ctypes.CDLL | None = None
_library_lock = threading.Lock()


def load_library(path: str | os.PathLike[str] | None = None) -> ctypes.CDLL:
    """The native library with typed functions; loaded once. `path` has an effect only before the first use."""
    global _library
    # In a forked child a thread of the parent may hold the lock for ever.
    if _library is not None:
        return _library
    with _library_lock:
        if _library is None:
            library = _open_library(path)
            # An older library has the second name.
            versions = [getattr(library, name)() for name in ("mmn_abi_version", "GetAbiVersion") if hasattr(library, name)]
            if versions and versions[0] < ABI_VERSION:
                raise OSError(f"{library._name} has ABI version {versions[0]}; this package needs {ABI_VERSION} or later")
            for name, (result, arguments) in FUNCTIONS.items():
                if name.startswith("mmn_"):
                    function = getattr(library, name, None)
                    if function is None:
                        raise OSError(f"{library._name} has no function {name}: it is not this package's library")
                    function.restype = result
                    function.argtypes = arguments
            _library = library
        return _library


_PYTHON_NAMES = {
    "broadcast_as_leader": "send_from_leader()",
    "centralized": "centralized",
    "is_leader": "is_leader",
    "leader": "leader",
    "members": "members",
    "open": "Room()",
    "peers": "peers",
    "set_auto_election": "enable_auto_election()",
    "set_centralized": "centralized",
    "set_eligible": "set_leader_eligible()",
    "set_event_handler": "on_event()",
    "set_gossip_windows": "gossip_windows",
    "set_join_requests": "enable_join_requests()",
    "set_priority": "set_election_priority()",
    # The library's sentences still have some names of the classic functions.
    "ConnectToPeer": "connect()",
    "GetPeerList": "peers",
    "InitializeNetwork": "Room()",
    "PollEvents": "poll()",
    "SetCentralizedMode": "centralized",
    "SetLeader": "set_leader()",
    "SetLeaderEligible": "set_leader_eligible()",
    "ShutdownNetwork": "close()",
    "UnbanPeer": "unban()",
}
_CLASSIC = "|".join(name for name in _PYTHON_NAMES if name[0].isupper())
_C_NAME = re.compile(rf"\b(?:MMN_(\w+)|(?:mmn_(\w+)|({_CLASSIC}))\b(?:\(\d?\))?)")


def _sentence(text: bytes) -> str:
    """A sentence of the library, with the names of this package."""

    def named(found: re.Match[str]) -> str:
        constant, function, classic = found.groups()
        return str(constant or _PYTHON_NAMES.get(function or classic, f"{function}()"))

    return _C_NAME.sub(named, text.decode("utf-8", "replace"))


def _checked(code: int) -> int:
    if code < 0:
        raise NetworkError(code, _sentence(load_library().mmn_last_error_message()))
    return code


def describe_error(code: int) -> str:
    """The library's sentence for a code."""
    return _sentence(load_library().mmn_describe_error(_number("code", code, _LIMITS[ctypes.c_int32])))


def generate_identity_key() -> bytes:
    """A new private key for NetworkOptions.identity_key. A host that keeps it is the same member at every start."""
    key = (ctypes.c_uint8 * IDENTITY_KEY_BYTES)()
    _checked(load_library().mmn_generate_identity_key(key, len(key)))
    return bytes(key)


def _described(number: int) -> str:
    return number.words if isinstance(number, _Number) else "unknown"


def describe_leader_reason(reason: int) -> str:
    """One of LeaderReason in words."""
    return _described(_known(LeaderReason, reason))


def describe_left_reason(reason: int) -> str:
    """One of LeftReason in words."""
    return _described(_known(LeftReason, reason))


def describe_end_reason(reason: int) -> str:
    """One of EndReason in words."""
    return _described(_known(EndReason, reason))


def describe_member_state(state: int) -> str:
    """One of MemberState in words."""
    return _described(_known(MemberState, state))


_log_callback: Any = None


def set_log(handler: Callable[[int, str], object] | None, level: int = LOG_INFO) -> None:
    """Passes the library's log up to `level` to `handler(level, text)`; None removes it. It runs on any thread, and may call only
    queries."""
    global _log_callback

    def guarded(_: int | None, _room: int, record_level: int, message: bytes) -> None:
        if handler is None:
            return
        try:
            handler(_known(LogLevel, record_level), message.decode("utf-8", "replace"))
        except BaseException:
            traceback.print_exc(file=sys.stderr)

    callback = MmnLogCallback() if handler is None else MmnLogCallback(guarded)
    level = _number("level", level, _LIMITS[ctypes.c_int32])
    _checked(load_library().mmn_set_log(level, callback, None, DropCallback()))
    # Replaced only now: until the library returned, the old callback could still be running.
    _log_callback = callback


def set_log_stderr(level: int) -> None:
    """Sets the level of the log on standard error; LOG_OFF at the start."""
    _checked(load_library().mmn_set_log_stderr(_number("level", level, _LIMITS[ctypes.c_int32])))


_inside = threading.local()
"""Its `process` is that of the handler that runs on this thread. A child that is forked there is in no handler."""


@contextlib.contextmanager
def _in_a_handler() -> Iterator[None]:
    outer = getattr(_inside, "process", 0)
    _inside.process = os.getpid()
    try:
        yield
    except BaseException:  # SystemExit too: it cannot unwind through native frames.
        traceback.print_exc(file=sys.stderr)
    finally:
        _inside.process = outer


def _is_in_a_handler() -> bool:
    return getattr(_inside, "process", 0) == os.getpid()


def _outside(call: str) -> None:
    if _is_in_a_handler():
        raise NetworkError(WOULD_DEADLOCK, f"{call} was called inside a handler; call it outside")


_rooms: set[_Calls] = set()
"""The open rooms. They also keep their callbacks alive: the library's copy of the pointer does not count."""


@atexit.register
def _close_all() -> None:
    """A room that is still open when the interpreter ends would call into freed code."""
    rooms = list(_rooms)
    for room in rooms:
        room._native.mmn_leave(room._handle)  # so that all leave at the same time
    for room in rooms:
        try:
            room._leave()
        except NetworkError:
            traceback.print_exc(file=sys.stderr)


class _Calls:
    """An open room and the calls that every kind of room has; `Room` and `aio.Room` add the reception of events.

    After close(), and in a forked child, commands raise NetworkError (-1), and so do questions with a text for an answer; other
    questions have the answer of an empty room."""

    def __init__(
        self,
        peer_id: str,
        session_id: str,
        options: NetworkOptions | None,
        receive: Callable[[Event], None],
        thread_mode: bool = False,
    ) -> None:
        self._native = load_library()
        # The library sets it before the first event.
        self._handle = ctypes.c_uint64()
        if options is None:
            options = NetworkOptions(dispatch_mode=DISPATCH_THREAD, discovery_mode=DISCOVERY_CONNECT)
        elif not isinstance(options, NetworkOptions):
            raise TypeError(f"options must be NetworkOptions, not {type(options).__name__}: {options!r}")

        def call(_: int | None, pointer: Any) -> None:
            with _in_a_handler():
                receive(_event(pointer.contents))

        settings = _MmnOptions.from_buffer_copy(options)
        self._callback = settings.on_event = EventCallback(call)
        if thread_mode:
            settings.dispatch_mode = DISPATCH_THREAD
        self._polls = settings.dispatch_mode == DISPATCH_POLL
        everything = {
            "peer_id": peer_id,
            "session_id": session_id,
            "options": ctypes.byref(settings),
            "room": ctypes.byref(self._handle),
        }
        _checked(self._native.mmn_open(*_converted(FUNCTIONS["mmn_open"][1], everything)))
        _rooms.add(self)

    def _leave(self) -> bool:
        """Whether this call has closed the room; a forked child and another thread may not."""
        _outside("close()")
        code = self._native.mmn_close(self._handle)
        if code not in (OK, NOT_INITIALIZED):
            _checked(code)
        _rooms.discard(self)
        return bool(code == OK)

    def _ask(self, function: str, **arguments: Any) -> Any:
        """The result of a function of this room, whatever it means. The names of the arguments are for errors."""
        parameters = FUNCTIONS[function][1][1:]
        return getattr(self._native, function)(self._handle, *_converted(parameters, arguments))

    def _do(self, function: str, **arguments: Any) -> int:
        return _checked(self._ask(function, **arguments))

    def _name(self, function: str, **arguments: Any) -> str | None:
        """A text, or None without one."""
        text: bytes | None = self._ask(function, **arguments)
        return None if text is None else text.decode("utf-8")

    def _required(self, function: str) -> str:
        """A text that every open room has."""
        text = self._name(function)
        if text is None:
            _checked(self._native.mmn_last_error_code())
        return text or ""

    def leave(self) -> None:
        """Begins to leave, and returns at once; close() must follow. Allowed inside a handler. Handlers run until close(). To leave
        many rooms, begin with all of them."""
        self._do("mmn_leave")

    @property
    def is_open(self) -> bool:
        """Whether this member is in the room: False from leave() and close() on, and in a forked child."""
        return bool(self._ask("mmn_is_open"))

    @property
    def peer_id(self) -> str:
        return self._required("mmn_local_id")

    @property
    def session_id(self) -> str:
        return self._required("mmn_session_id")

    @property
    def local_address(self) -> str:
        """An address that another member can pass to connect()."""
        return self._required("mmn_local_address")

    @property
    def local_addresses(self) -> list[tuple[str, str]]:
        """All such addresses, the likeliest first, each with the name of its interface."""
        lines = (line.partition(" ") for line in self._required("mmn_local_addresses").split("\n"))
        return [(address, interface) for address, _, interface in lines]

    @property
    def peers(self) -> list[str]:
        """The ids of the connected members, without this one, sorted."""
        text = self._required("mmn_peers")
        return text.split("\n") if text else []

    @property
    def members(self) -> list[str]:
        """The ids of the connected and the reconnecting members, sorted."""
        text = self._required("mmn_members")
        return text.split("\n") if text else []

    def index(self, peer_id: str) -> int:
        """The index of a member: a number from 1, from its EVENT_JOINED to its EVENT_LEFT, which no earlier member had. 0 for others."""
        return int(self._ask("mmn_peer_index", peer_id=peer_id))

    def peer_at(self, index: int) -> str | None:
        """The member with this index; None for none."""
        return self._name("mmn_peer_id", index=index)

    def address(self, peer_id: str) -> str | None:
        """The address at which a member accepts links, for connect(); None for one that is not in the room."""
        return self._name("mmn_peer_address", peer_id=peer_id)

    def fingerprint(self, peer_id: str) -> str | None:
        """The SHA-256 of a member's key, in 64 hexadecimal digits; None for one that is not in the room."""
        return self._name("mmn_peer_fingerprint", peer_id=peer_id)

    @property
    def identity_fingerprint(self) -> str:
        """The SHA-256 of this member's key, in 64 hexadecimal digits."""
        return self._required("mmn_local_fingerprint")

    @property
    def leader(self) -> str | None:
        """The leader's id; None when there is none."""
        return self._required("mmn_leader") or None

    @property
    def is_leader(self) -> bool:
        return bool(self._ask("mmn_is_leader"))

    def rtt_ms(self, peer_id: str) -> int | None:
        """The round-trip time; None for an unknown member, and until it is measured."""
        rtt: int = self._ask("mmn_peer_rtt_ms", peer_id=peer_id)
        return None if rtt < 0 else rtt

    def status(self, peer_id: str) -> int:
        return _known(PeerStatus, self._ask("mmn_peer_status", peer_id=peer_id))

    def disconnect(self, peer_id: str, code: int = 0, data: Bytes = b"") -> None:
        """Ends the link with a member; its host receives `code` and `data` (at most 3072 bytes)."""
        self._do("mmn_disconnect", peer_id=peer_id, code=code, data=data)

    def set_leader(self, peer_id: str) -> None:
        self._do("mmn_set_leader", peer_id=peer_id)

    def enable_auto_election(self, enabled: bool = True) -> None:
        self._do("mmn_set_auto_election", enabled=bool(enabled))

    def set_leader_eligible(self, eligible: bool) -> None:
        """Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority."""
        self._do("mmn_set_eligible", eligible=bool(eligible))

    def transfer_leadership(self, peer_id: str) -> None:
        """Transfers the leadership to a member; this one leads until that one is elected. Leader only (-6)."""
        self._do("mmn_transfer_leadership", peer_id=peer_id)

    def yield_leadership(self) -> None:
        """Transfers the leadership to the member that elections prefer. Leader only (-6); -5 when no member may lead. With gossip
        this member stops leading at once, and does not lead again for a while; with etcd it goes to the end of the line."""
        self._do("mmn_yield_leadership")

    def set_election_priority(self, priority: int) -> None:
        """Sets this member's priority in elections: the highest goes first, of equal ones the largest id. 0 is the default."""
        self._do("mmn_set_priority", priority=priority)

    @property
    def leader_term(self) -> int:
        """The term of the newest claim to lead; compare leader_epoch first."""
        return self._do("mmn_leader_term")

    @property
    def leader_epoch(self) -> int:
        """The number of set_leader() calls that the newest claim to lead builds on."""
        return self._do("mmn_leader_epoch")

    @property
    def election_strategy(self) -> int:
        """The election strategy: one of STRATEGY_..."""
        return _known(Strategy, self._do("mmn_strategy"))

    def member_state(self, peer_id: str) -> int:
        """With STRATEGY_SEEDED one of MEMBER_..., of this member, too; with others, and for a text that is no id, -1."""
        return _known(MemberState, self._ask("mmn_member_state", peer_id=peer_id))

    @property
    def cluster_version(self) -> int:
        """With STRATEGY_SEEDED the version of the cluster; with others -1."""
        return int(self._ask("mmn_cluster_version"))

    @property
    def fencing_token(self) -> int:
        """With STRATEGY_ETCD the token of this member's leadership, 0 while it does not lead; with others -1."""
        return int(self._ask("mmn_fencing_token"))

    def proclaim(self, value: str) -> None:
        """Sets the text that clients of etcd read of this member while it leads."""
        self._do("mmn_proclaim", value=value)

    def acquire_lock(self, name: str, timeout_ms: int = 0) -> int:
        """Acquires a lock of etcd. The outcome is an EVENT_LOCK_RESULT with the returned number. A timeout of 0 is none."""
        request = ctypes.c_uint64()
        self._do("mmn_acquire_lock", name=name, timeout_ms=timeout_ms, request=ctypes.byref(request))
        return request.value

    def try_lock(self, name: str) -> int:
        """Acquires a lock as acquire_lock() does, if it is free."""
        request = ctypes.c_uint64()
        self._do("mmn_try_lock", name=name, request=ctypes.byref(request))
        return request.value

    def release_lock(self, name: str) -> None:
        """Releases a lock, or stops waiting for it."""
        self._do("mmn_release_lock", name=name)

    @property
    def auto_reconnect(self) -> bool:
        """Whether the library dials lost members again, or treats every loss as a leave."""
        return bool(self._ask("mmn_auto_reconnect"))

    @auto_reconnect.setter
    def auto_reconnect(self, enabled: bool) -> None:
        self._do("mmn_set_auto_reconnect", enabled=bool(enabled))

    def kick(self, peer_id: str, code: int = 0, data: Bytes = b"", ban: bool = False) -> None:
        """Removes a member, which may come back; with `ban` only after unban(). Its host receives `code` and `data` (at most 3072
        bytes). Leader only (-6)."""
        self._do("mmn_kick", peer_id=peer_id, flags=KICK_BAN if ban else 0, code=code, data=data)

    def unban(self, peer_id: str) -> None:
        """Lifts the ban of an id and of its keys. Leader only (-6); -5 when it is not banned."""
        self._do("mmn_unban", peer_id=peer_id)

    def set_max_peers(self, max_peers: int) -> None:
        """Limits the other members of each member; 0 is no limit. Leader only (-6)."""
        self._do("mmn_set_max_peers", max_peers=max_peers)

    def set_join_payload(self, data: Bytes) -> None:
        """The payload that the leader's host receives when this member asks to join; at most 16384 bytes."""
        self._do("mmn_set_join_payload", data=data)

    def enable_join_requests(self, enabled: bool = True) -> None:
        """Whether this host decides about admission while this member leads: EVENT_JOIN_REQUEST for every newcomer."""
        self._do("mmn_set_join_requests", enabled=bool(enabled))

    def accept_join(self, request: int) -> None:
        self._do("mmn_accept_join", request=request)

    def reject_join(self, request: int, code: int = 0, data: Bytes = b"") -> None:
        """Refuses a newcomer, which receives `code` and `data` (at most 3072 bytes)."""
        self._do("mmn_reject_join", request=request, code=code, data=data)

    @property
    def centralized(self) -> bool:
        """Whether broadcasts of this member go through the leader."""
        return bool(self._ask("mmn_centralized"))

    @centralized.setter
    def centralized(self, enabled: bool) -> None:
        self._do("mmn_set_centralized", enabled=bool(enabled))

    @property
    def centralized_auto_forward(self) -> bool:
        """Whether this member, while it leads, relays the broadcasts of others, or leaves that to forward()."""
        return bool(self._ask("mmn_auto_forward"))

    @centralized_auto_forward.setter
    def centralized_auto_forward(self, enabled: bool) -> None:
        self._do("mmn_set_auto_forward", enabled=bool(enabled))

    def set_compression_threshold(self, size: int) -> None:
        """The payload length in bytes above which the library compresses, if that makes it shorter; 0xFFFFFFFF is never."""
        self._do("mmn_set_compression_threshold", size=size)

    def simulate_network(self, lag_ms: int = 0, jitter_ms: int = 0, loss_permille: int = 0) -> None:
        """Simulates a bad network, for tests of a game: every packet that this member sends waits lag_ms and up to jitter_ms more
        (at most 10000 each), and loss_permille packets in a thousand are lost. A call without arguments ends it."""
        self._do("mmn_simulate_network", lag_ms=lag_ms, jitter_ms=jitter_ms, loss_permille=loss_permille)

    @property
    def discovering(self) -> bool:
        """Whether this member is announced in the local network."""
        return bool(self._ask("mmn_is_announced"))

    def stats(self, peer_id: str) -> PeerStats:
        """Statistics of the link and the queue to a member."""
        figures = PeerStats()
        self._do("mmn_peer_stats", peer_id=peer_id, stats=ctypes.byref(figures))
        return figures

    def room_stats(self) -> RoomStats:
        """RoomStats: members without a link to this one, and the broadcasts that they missed."""
        figures = RoomStats()
        self._do("mmn_room_stats", stats=ctypes.byref(figures))
        return figures

    @property
    def gossip_windows(self) -> GossipWindows:
        """The times of STRATEGY_GOSSIP, in force or not. They apply from the next window on; the same for all members.

        room.gossip_windows = room.gossip_windows._replace(alive_threshold_ms=500) changes one."""
        windows = _MmnGossipWindows(struct_size=ctypes.sizeof(_MmnGossipWindows))
        self._do("mmn_gossip_windows", windows=ctypes.byref(windows))
        return GossipWindows(*(getattr(windows, name) for name in GossipWindows._fields))

    @gossip_windows.setter
    def gossip_windows(self, windows: GossipWindows) -> None:
        values = {name: _number(name, value, _LIMITS[ctypes.c_uint32]) for name, value in windows._asdict().items()}
        struct = _MmnGossipWindows(struct_size=ctypes.sizeof(_MmnGossipWindows), **values)
        self._do("mmn_set_gossip_windows", windows=ctypes.byref(struct))

    # -- messages: `options` (SendOptions) is the delivery; `flags` are the program's own and reach the receiver

    def send(self, peer_id: str, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> None:
        """Sends to one member; to this one itself, too."""
        self._do("mmn_send", peer_id=peer_id, data=data, type=type, options=_send_options(options, flags))

    def broadcast(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> None:
        """Sends to all connected members, or, if one queue is full (-7), to none."""
        self._do("mmn_broadcast", data=data, type=type, options=_send_options(options, flags))

    def broadcast_partial(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> int:
        """Sends to the connected members whose queue has room; returns their number. EVENT_SLOW_PEER names each of the others."""
        return self._do("mmn_broadcast", data=data, type=type, options=_send_options(options, flags, SEND_PARTIAL))

    def send_to_leader(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> None:
        """Sends to the leader; a leader that calls it receives the message itself. -6 when there is none."""
        self._do("mmn_send_to_leader", data=data, type=type, options=_send_options(options, flags))

    def send_from_leader(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> None:
        """Sends to all members, as their leader, reliably; -6 when this member is not the leader."""
        self._do("mmn_broadcast_as_leader", data=data, type=type, options=_send_options(options, flags))

    def forward(
        self, sender: str, to: str | None, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None
    ) -> None:
        """Forwards on behalf of `sender` to `to`, or, if that is None, to all others, reliably. Leader only (-6)."""
        receiver = _NONE if to is None else to
        self._do("mmn_forward", sender=sender, to=receiver, data=data, type=type, options=_send_options(options, flags))

    def max_datagram_size(self, peer_id: str | None = None) -> int:
        """The longest unreliable message for a member, or for a broadcast, in bytes; -1 when the member is not connected."""
        return int(self._ask("mmn_max_datagram_size", peer_id=_NONE if peer_id is None else peer_id))

    def _dial(self, address: str) -> None:
        self._do("mmn_connect", address=address)


class Room(_Calls):
    """A room that this process is in; a context manager that leaves it.

    With `options` (NetworkOptions), handlers run in poll(), unless its dispatch_mode is DISPATCH_THREAD; without, on a thread of
    the library, and the library connects members in the local network.
    `on_event(Event)` receives all events; a program that uses it needs no other handler. `on_message(Message)`,
    `on_leader(str | None)`, `on_leadership(bool)`, `on_peer(str, status)` and `on_connection(ConnectionResult)` are optional.
    Handlers that are given here miss nothing. A later one first receives the present state, in poll() or on the thread that sets
    it: the leader, if one is known, and every connected peer. Messages wait for their first handler for up to 5 seconds.

    A forked child (os.fork, multiprocessing with the start method "fork") has no room: this object does nothing there, and its
    calls are refused (-1). The child may enter rooms with objects of its own.
    """

    def __init__(
        self,
        peer_id: str,
        session_id: str,
        options: NetworkOptions | None = None,
        *,
        on_event: Callable[[Event], object] | None = None,
        on_message: Callable[[Message], object] | None = None,
        on_leader: Callable[[str | None], object] | None = None,
        on_leadership: Callable[[bool], object] | None = None,
        on_peer: Callable[[str, int], object] | None = None,
        on_connection: Callable[[ConnectionResult], object] | None = None,
    ) -> None:
        # Held while a handler runs. A thread that replaces a handler waits for it, unless it is in a handler itself.
        self._lock = threading.Lock()
        self._handlers: dict[str, Callable[[Event], object]] = {}
        # Handlers that receive the present state first.
        self._new: dict[str, Callable[[Event], object]] = {}
        # The present state, as the events that began it.
        self._leader: list[Event] = []
        self._members: dict[str, list[Event]] = {}
        self._held: list[Event] | None = []
        self._held_bytes = 0
        self._held_until = time.monotonic() + HOLD_SECONDS
        self._message_handler = on_message
        self._typed: dict[int, Callable[[Message], object]] = {}
        given = {
            "event": on_event,
            "message": on_message and _on_message(on_message, {}),
            "leader": on_leader and _on_leader(on_leader),
            "leadership": on_leadership and _on_leadership(on_leadership),
            "peer": on_peer and _on_peer(on_peer),
            "connection": on_connection and _on_connection(on_connection),
        }
        self._handlers.update((name, receive) for name, receive in given.items() if receive is not None)
        super().__init__(peer_id, session_id, options, self._receive)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the room; takes at most about 2 s. Afterwards no handler runs. Refused (-15) inside a handler.

        In a forked child it does nothing: the room is the parent's."""
        if self._leave():
            with self._lock:
                self._handlers.clear()
                self._new.clear()

    def connect(self, address: str) -> None:
        """Dials "ip:port", "[v6]:port" or "name:port"; on_connection receives the outcome."""
        self._dial(address)

    def poll(self, max: int = 0x7FFFFFFF) -> int:
        """In poll mode, runs the handlers of up to `max` queued events, on the calling thread, and returns their number.
        Never waits. Refused inside a handler and while another thread polls (-15), and in thread mode (-3)."""
        _outside("poll()")
        if self._new and self.is_open:
            self._welcome()
        return self._do("mmn_poll", max=max)

    # -- handlers; None unregisters, and when the call returns the old handler is not running and never runs again

    def on_event(self, handler: Callable[[Event], object] | None) -> None:
        """One handler for all events, messages included, in one order."""
        self._set("event", handler)

    def on_message(self, handler: Callable[[Message], object] | None) -> None:
        """Every message whose type has no handler of its own."""
        self._set_messages(handler, self._typed)

    def on_type(self, type: int, handler: Callable[[Message], object] | None) -> None:
        """The messages of one type, 0x0100 or higher, which on_message then does not receive."""
        if not FIRST_USER_TYPE <= type <= 0xFFFF:
            raise ValueError(f"type {type:#06x} is not {FIRST_USER_TYPE:#06x} to 0xffff")
        typed = {other: known for other, known in self._typed.items() if other != type}
        if handler is not None:
            typed[type] = handler
        self._set_messages(self._message_handler, typed)

    def on_leader(self, handler: Callable[[str | None], object] | None) -> None:
        self._set("leader", handler and _on_leader(handler))

    def on_leadership(self, handler: Callable[[bool], object] | None) -> None:
        """Whether this member leads: True and False alternately, each after its on_leader."""
        self._set("leadership", handler and _on_leadership(handler))

    def on_peer(self, handler: Callable[[str, int], object] | None) -> None:
        """PEER_CONNECTED and PEER_DISCONNECTED, alternately for each peer."""
        self._set("peer", handler and _on_peer(handler))

    def on_connection(self, handler: Callable[[ConnectionResult], object] | None) -> None:
        self._set("connection", handler and _on_connection(handler))

    # -- internals

    def _set_messages(
        self, general: Callable[[Message], object] | None, typed: dict[int, Callable[[Message], object]]
    ) -> None:
        self._set("message", _on_message(general, typed) if general or typed else None)
        self._message_handler, self._typed = general, typed

    def _set(self, name: str, receive: Callable[[Event], object] | None) -> None:
        if not self.is_open:
            # Not even the lock: in a forked child a thread of the parent may hold it for ever.
            raise NetworkError(NOT_INITIALIZED, "the room is not open: it was closed, or is not a room of this process")
        waits = not _is_in_a_handler()
        if waits:
            self._lock.acquire()
        try:
            self._handlers.pop(name, None)
            self._new.pop(name, None)
            if receive is not None:
                self._new[name] = receive
            if waits and not self._polls:
                self._greet()
        finally:
            if waits:
                self._lock.release()
        if not self._polls:
            self._welcome()

    def _receive(self, event: Event) -> None:
        with self._lock:
            self._note(event)
            for name in list(self._handlers):
                self._give(name, event)
            self._greet()
        self._welcome()

    def _give(self, name: str, event: Event) -> None:
        # An earlier handler of the same event may have removed it.
        receive = self._handlers.get(name)
        if receive is not None:
            with _in_a_handler():
                receive(event)

    def _welcome(self) -> None:
        """Greets new handlers, unless a thread that is in a handler does it after that."""
        while self._new and self._lock.acquire(blocking=False):
            try:
                self._greet()
            finally:
                self._lock.release()

    def _greet(self) -> None:
        """Gives new handlers the present state. The caller has the lock."""
        while self._new:
            name = next(iter(self._new))
            present = list(self._leader)
            for events in self._members.values():
                # on_peer is about connected ones.
                present += events if name != "peer" or len(events) == 1 else []
            if name in ("event", "message"):
                present += self._held or []
                self._held = None
            receive = self._handlers[name] = self._new.pop(name)
            for event in present:
                if self._handlers.get(name) is receive:
                    self._give(name, event)

    def _note(self, event: Event) -> None:
        kind, peer = event.kind, event.peer
        if kind == EVENT_MESSAGE:
            if self._held is not None:
                self._hold(event)
        elif kind == EVENT_LEADER_CHANGED:
            # A leader that claims to lead again goes on to lead.
            goes_on = self._leader[1:] if peer == event.other else []
            self._leader = [event._replace(other=""), *goes_on] if peer else []
        elif kind == EVENT_LEADERSHIP_GAINED:
            self._leader.append(event)
        elif kind == EVENT_JOINED:
            self._members[peer] = [event]
        elif kind == EVENT_RECONNECTING:
            self._members[peer] = [*self._members.get(peer, [])[:1], event]
        elif kind == EVENT_RETURNED:
            del self._members.get(peer, [])[1:]
        elif kind == EVENT_LEFT:
            self._members.pop(peer, None)

    def _hold(self, message: Event) -> None:
        if "event" in self._handlers or "message" in self._handlers or time.monotonic() > self._held_until:
            self._held = None
        elif self._held_bytes < MAX_HELD_BYTES and self._held is not None:
            self._held_bytes += len(message.data) + 256
            self._held.append(message)


# Functions that take an Event, for handlers that take something else.


def _on_message(
    general: Callable[[Message], object] | None, typed: dict[int, Callable[[Message], object]]
) -> Callable[[Event], object]:
    def receive(event: Event) -> None:
        if event.kind == EVENT_MESSAGE:
            handler = typed.get(event.type, general)
            if handler is not None:
                handler(Message(event.peer, event.data, event.type, event.flags))

    return receive


def _on_leader(handler: Callable[[str | None], object]) -> Callable[[Event], object]:
    def receive(event: Event) -> None:
        # Else only the claim to lead is another one.
        if event.kind == EVENT_LEADER_CHANGED and event.peer != event.other:
            handler(event.peer or None)

    return receive


def _on_leadership(handler: Callable[[bool], object]) -> Callable[[Event], object]:
    leads = False

    def receive(event: Event) -> None:
        nonlocal leads
        if event.kind in (EVENT_LEADERSHIP_GAINED, EVENT_LEADERSHIP_LOST):
            before, leads = leads, event.kind == EVENT_LEADERSHIP_GAINED
            if leads != before:
                handler(leads)

    return receive


def _on_peer(handler: Callable[[str, int], object]) -> Callable[[Event], object]:
    connected: set[str] = set()

    def receive(event: Event) -> None:
        if event.kind in (EVENT_JOINED, EVENT_RETURNED):
            connected.add(event.peer)
            handler(event.peer, PEER_CONNECTED)
        elif event.kind in (EVENT_RECONNECTING, EVENT_LEFT) and event.peer in connected:
            connected.discard(event.peer)
            handler(event.peer, PEER_DISCONNECTED)

    return receive


def _on_connection(handler: Callable[[ConnectionResult], object]) -> Callable[[Event], object]:
    def receive(event: Event) -> None:
        if event.kind == EVENT_CONNECTION_RESULT:
            handler(ConnectionResult(event.other, event.success, event.code, event.reason, event.data))

    return receive


_MACHINES = {0x03: "x86", 0x28: "ARM", 0x3E: "x86-64", 0xB7: "ARM64", 0x014C: "x86", 0x8664: "x86-64", 0xAA64: "ARM64"}


def _architecture(path: str) -> str:
    """The platform in the header of a library."""
    with open(path, "rb") as file:
        head = file.read(0x40)
        if head[:4] == b"\x7fELF":
            system, machine = "Linux or another system with ELF files", head[18:20]
        elif head[:2] == b"MZ":
            file.seek(int.from_bytes(head[0x3C:0x40], "little") + 4)
            system, machine = "Windows", file.read(2)
        else:
            return "no library for Linux or Windows"
    number = int.from_bytes(machine, "little")
    return f"a library for {system} on {_MACHINES.get(number, f'machine {number:#06x}')}"


def _load(path: str, origin: str) -> ctypes.CDLL:
    """CDLL, never PyDLL: the interpreter's lock must be free while the library waits for a running handler."""
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        sentence = f"cannot load {path}, {origin}: {error}"
        if os.path.isfile(path):
            process = f"{sys.platform} on {platform.machine()}, with {8 * ctypes.sizeof(ctypes.c_void_p)} bits"
            sentence += f". The file is {_architecture(path)}; this process is for {process}"
        raise OSError(sentence) from error


def _open_library(path: str | os.PathLike[str] | None) -> ctypes.CDLL:
    chosen = path or os.environ.get("MMN_LIBRARY")
    if chosen:
        return _load(os.fspath(chosen), "the path given to load_library()" if path else "the environment variable MMN_LIBRARY")
    name = {
        "win32": "meta_mystia_network.dll",
        "darwin": "libmeta_mystia_network.dylib",
    }.get(sys.platform, "libmeta_mystia_network.so")
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.normpath(os.path.join(here, "..", "..", ".."))
    folders = [here]
    if os.path.exists(os.path.join(root, "Cargo.toml")):
        folders.append(os.path.join(root, "target", "release"))
    for folder in folders:
        candidate = os.path.join(folder, name)
        if os.path.exists(candidate):
            return _load(candidate, "the library of this package")
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise OSError(
            f"cannot find {name}. Set the environment variable MMN_LIBRARY to its path, or install a wheel that carries it. "
            f"Searched: {', '.join(folders)}, and the folders of the system ({error})"
        ) from error
