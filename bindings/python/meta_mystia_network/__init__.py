"""meta_mystia_network from Python: rooms as objects, over ctypes, without further dependencies.

    import meta_mystia_network as mmn

    with mmn.Room("alice", "tea", on_message=lambda m: print(m.sender, m.data)) as room:
        room.connect("192.168.1.20:40123")
        room.broadcast(b"hello")

A process may be in several rooms. The handlers of a room run one at a time, in order, on a thread of the library, or, in poll
mode (Room(..., options=NetworkOptions())), inside Room.poll(), on the thread that calls it. They may call every method of a room
except close() and poll(). An exception in a handler is printed and goes no further; on a thread of the program, KeyboardInterrupt
and SystemExit end the program nevertheless (poll()). Programs with asyncio use meta_mystia_network.aio instead.

The library comes from the environment variable MMN_LIBRARY, else from the directory of this file, as in the wheel, else from the
source tree (target/release), else from the system's search path.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import operator
import os
import platform
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar, Union

__all__ = [
    "Action",
    "Browser",
    "EtcdOptions",
    "Event",
    "FIRST_USER_TYPE",
    "GossipWindows",
    "ListedRoom",
    "MemberProperties",
    "NetworkError",
    "NetworkOptions",
    "OwnProperties",
    "PeerStats",
    "Property",
    "PropertyChange",
    "Request",
    "Room",
    "RoomCard",
    "RoomState",
    "RoomStats",
    "SeededOptions",
    "SendOptions",
    "StateInfo",
    "StateOptions",
    "UnknownEvent",
    "describe_end_reason",
    "describe_error",
    "describe_leader_reason",
    "describe_left_reason",
    "describe_member_state",
    "generate_identity_key",
    "generate_room_code",
    "load_library",
    "normalize_room_code",
    "set_log",
    "set_log_stderr",
]


class _Number(IntEnum):
    """A number of the header with a name. A number that this version does not know is one, too: its `words` are "unknown"."""

    # As in Python 3.11: the number, not "Code.OK".
    __str__ = int.__repr__
    __format__ = int.__format__  # type: ignore[assignment]

    @classmethod
    def _missing_(cls, value: object) -> _Number | None:
        if not isinstance(value, int):
            return None
        unknown = int.__new__(cls, value)
        unknown._name_ = f"UNKNOWN_{value}"
        unknown._value_ = value
        return unknown

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ") if self.name in type(self).__members__ else "unknown"


class Event:
    """An event of the room. Each kind is a class of its own:

        match event:
            case mmn.PeerJoined(peer):
                ...
            case mmn.PeerLeft(peer, reason=mmn.LeftReason.KICKED):
                ...
    """

    kind: int
    """One of EventKind."""


@dataclasses.dataclass(frozen=True)
class UnknownEvent(Event):
    """An event of a kind that a later version of the library has added. Ignore it."""

    kind: int


def _text_of(text: bytes | None) -> str:
    return (text or b"").decode("utf-8")


# -- Generated from src/ffi by `make header`: do not edit.

ABI_VERSION = 107


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
    CONFLICT = -25
    STATE_FULL = -26
    OUTCOME_UNKNOWN = -27
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
CONFLICT = Code.CONFLICT
STATE_FULL = Code.STATE_FULL
OUTCOME_UNKNOWN = Code.OUTCOME_UNKNOWN
INTERNAL_ERROR = Code.INTERNAL_ERROR

MAX_PEER_ID_BYTES = 64
MAX_SESSION_ID_BYTES = 128

MIN_MESSAGE_TYPE = 256


class PeerStatus(_Number):
    """The state of the link to one member."""

    UNKNOWN = -1
    """There is no such peer."""
    CONNECTED = 0
    DISCONNECTED = 1
    RECONNECTING = 2
    HANDSHAKING = 3


PEER_CONNECTED = PeerStatus.CONNECTED
PEER_DISCONNECTED = PeerStatus.DISCONNECTED
PEER_RECONNECTING = PeerStatus.RECONNECTING
PEER_HANDSHAKING = PeerStatus.HANDSHAKING


class LogLevel(_Number):
    """The verbosity of the log."""

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


class ManualOverrideRecovery(_Number):
    """Behaviour when a leader that was set by hand is lost."""

    HOLD = 0
    AUTO_ELECT = 1


RECOVERY_HOLD = ManualOverrideRecovery.HOLD
RECOVERY_AUTO_ELECT = ManualOverrideRecovery.AUTO_ELECT


class DiscoveryMode(_Number):
    """Discovery of members in the local network."""

    OFF = 0
    REPORT = 1
    CONNECT = 2


DISCOVERY_OFF = DiscoveryMode.OFF
DISCOVERY_REPORT = DiscoveryMode.REPORT
DISCOVERY_CONNECT = DiscoveryMode.CONNECT


class DispatchMode(_Number):
    """The thread that runs the callbacks."""

    THREAD = 0
    POLL = 1


DISPATCH_THREAD = DispatchMode.THREAD
DISPATCH_POLL = DispatchMode.POLL


class MergePolicy(_Number):
    """The leader that stays when two parts of a room merge."""

    LARGEST_SIDE = 0
    HIGHEST_TERM = 1


MERGE_LARGEST_SIDE = MergePolicy.LARGEST_SIDE
MERGE_HIGHEST_TERM = MergePolicy.HIGHEST_TERM


class SetLeaderAuthority(_Number):
    """Members that may name the leader."""

    ANYONE = 0
    LEADER_ONLY = 1


AUTHORITY_ANYONE = SetLeaderAuthority.ANYONE
AUTHORITY_LEADER_ONLY = SetLeaderAuthority.LEADER_ONLY


class HostMode(_Number):
    """Whether one fixed member leads."""

    OFF = 0
    HOST = 1
    GUEST = 2


HOST_MODE_OFF = HostMode.OFF
HOST_MODE_HOST = HostMode.HOST
HOST_MODE_GUEST = HostMode.GUEST


class Topology(_Number):
    """The links between members."""

    MESH = 0
    STAR = 1


TOPOLOGY_MESH = Topology.MESH
TOPOLOGY_STAR = Topology.STAR


class RoomPaths(_Number):
    """The paths that a member uses."""

    ALL = 0
    RELAYED = 1


PATHS_ALL = RoomPaths.ALL
PATHS_RELAYED = RoomPaths.RELAYED


class PortMapping(_Number):
    """Whether a member asks its router for a port."""

    OFF = 0
    ON = 1


PORT_MAPPING_OFF = PortMapping.OFF
PORT_MAPPING_ON = PortMapping.ON


class RoomEntry(_Number):
    """The entry of a member into its room."""

    ANY = 0
    CREATE = 1
    JOIN = 2


ENTRY_ANY = RoomEntry.ANY
ENTRY_CREATE = RoomEntry.CREATE
ENTRY_JOIN = RoomEntry.JOIN


class QuorumPolicy(_Number):
    """The members whose majority elects a leader."""

    DYNAMIC = 0
    STATIC = 1


QUORUM_DYNAMIC = QuorumPolicy.DYNAMIC
QUORUM_STATIC = QuorumPolicy.STATIC


class ElectionStrategy(_Number):
    """The election strategy of a room."""

    RAFT = 0
    GOSSIP = 1
    SEEDED = 2
    ETCD = 3


STRATEGY_RAFT = ElectionStrategy.RAFT
STRATEGY_GOSSIP = ElectionStrategy.GOSSIP
STRATEGY_SEEDED = ElectionStrategy.SEEDED
STRATEGY_ETCD = ElectionStrategy.ETCD

SEEDED_STRICT_START = 1
SEEDED_NEVER_ALONE = 2


class SeededProfile(_Number):
    """Intervals of a seeded cluster."""

    WAN = 0
    LAN = 1


SEEDED_PROFILE_WAN = SeededProfile.WAN
SEEDED_PROFILE_LAN = SeededProfile.LAN


class DeliveryMode(_Number):
    """The delivery of a message."""

    RELIABLE_ORDERED = 0
    RELIABLE_UNORDERED = 1
    UNRELIABLE = 2
    SEQUENCED = 3


DELIVERY_RELIABLE_ORDERED = DeliveryMode.RELIABLE_ORDERED
DELIVERY_RELIABLE_UNORDERED = DeliveryMode.RELIABLE_UNORDERED
DELIVERY_UNRELIABLE = DeliveryMode.UNRELIABLE
DELIVERY_SEQUENCED = DeliveryMode.SEQUENCED

SEND_PARTIAL = 1

PRIORITY_LOW = -1
PRIORITY_NORMAL = 0
PRIORITY_HIGH = 1
PRIORITY_HIGHEST = 2

KICK_BAN = 1

GOSSIP_STRICT_LOWEST = 1

MAX_SECRET_BYTES = 1024

IDENTITY_KEY_BYTES = 48

ROOM_CODE_BYTES = 15

MAX_RELAYS = 2
MAX_TURN_SERVERS = 4
MAX_SEEDS = 32
MAX_ETCD_ENDPOINTS = 16
MAX_PROCLAIMED_BYTES = 4096
MAX_LOCK_NAME_BYTES = 128
MAX_QUORUM_VOTERS = 64


class EventKind(_Number):
    """The kind of an event."""

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
    PATH_CHANGED = 26
    RELAY = 27
    ACTION = 28
    ACTION_RESULT = 29
    PROPERTY = 30
    STATE_RESET = 31
    ROLLED_BACK = 32
    SNAPSHOT_WANTED = 33
    STATE_OPENED = 34
    STATE_MEMBER = 35
    TRANSFER_OFFERED = 39
    TRANSFER_PROGRESS = 40
    TRANSFER_RESULT = 41
    TRANSFER_PART = 42
    PORT_MAPPING = 43
    TURN = 44


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
EVENT_PATH_CHANGED = EventKind.PATH_CHANGED
EVENT_RELAY = EventKind.RELAY
EVENT_ACTION = EventKind.ACTION
EVENT_ACTION_RESULT = EventKind.ACTION_RESULT
EVENT_PROPERTY = EventKind.PROPERTY
EVENT_STATE_RESET = EventKind.STATE_RESET
EVENT_ROLLED_BACK = EventKind.ROLLED_BACK
EVENT_SNAPSHOT_WANTED = EventKind.SNAPSHOT_WANTED
EVENT_STATE_OPENED = EventKind.STATE_OPENED
EVENT_STATE_MEMBER = EventKind.STATE_MEMBER
EVENT_TRANSFER_OFFERED = EventKind.TRANSFER_OFFERED
EVENT_TRANSFER_PROGRESS = EventKind.TRANSFER_PROGRESS
EVENT_TRANSFER_RESULT = EventKind.TRANSFER_RESULT
EVENT_TRANSFER_PART = EventKind.TRANSFER_PART
EVENT_PORT_MAPPING = EventKind.PORT_MAPPING
EVENT_TURN = EventKind.TURN


class FoundBy(_Number):
    """The way in which the library found a member."""

    IN_LOCAL_NETWORK = 1
    AS_SEED = 2
    AT_RELAY = 3


FOUND_IN_LOCAL_NETWORK = FoundBy.IN_LOCAL_NETWORK
FOUND_AS_SEED = FoundBy.AS_SEED
FOUND_AT_RELAY = FoundBy.AT_RELAY


class ResetReason(_Number):
    """The reason for which a host begins anew with the room's state."""

    JOINED = 0
    BEHIND = 1
    ROLLED_BACK = 2


RESET_JOINED = ResetReason.JOINED
RESET_BEHIND = ResetReason.BEHIND
RESET_ROLLED_BACK = ResetReason.ROLLED_BACK


class TransferOutcome(_Number):
    """The outcome of a transfer."""

    COMPLETE = 0
    CANCELLED_BY_SENDER = 1
    CANCELLED_BY_RECEIVER = 2
    REFUSED = 3
    UNANSWERED = 4
    BUSY = 5
    PEER_LEFT = 6
    ROOM_ENDED = 7
    CORRUPT = 8


TRANSFER_COMPLETE = TransferOutcome.COMPLETE
TRANSFER_CANCELLED_BY_SENDER = TransferOutcome.CANCELLED_BY_SENDER
TRANSFER_CANCELLED_BY_RECEIVER = TransferOutcome.CANCELLED_BY_RECEIVER
TRANSFER_REFUSED = TransferOutcome.REFUSED
TRANSFER_UNANSWERED = TransferOutcome.UNANSWERED
TRANSFER_BUSY = TransferOutcome.BUSY
TRANSFER_PEER_LEFT = TransferOutcome.PEER_LEFT
TRANSFER_ROOM_ENDED = TransferOutcome.ROOM_ENDED
TRANSFER_CORRUPT = TransferOutcome.CORRUPT


class MemberState(_Number):
    """The state of a member of a seeded cluster."""

    UNKNOWN = -1
    """The room has no such states, or the text is no id."""
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
    """The reason for a change of the leader."""

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
    """The reason for which a member is gone."""

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


class DroppedDirection(_Number):
    """The direction of messages that this member has dropped."""

    SENT = 0
    RECEIVED = 1


DROPPED_SENT = DroppedDirection.SENT
DROPPED_RECEIVED = DroppedDirection.RECEIVED


class EndReason(_Number):
    """The reason for which the room is over for this member."""

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

CARD_OPEN = 1

MAX_CARD_DATA_BYTES = 400
MAX_CARD_NAME_BYTES = 64

DEFAULT_CARD_PORT = 15354


class ListChange(_Number):
    """An event of a room in the list of a browser."""

    FOUND = 36
    CHANGED = 37
    GONE = 38


BROWSE_FOUND = ListChange.FOUND
BROWSE_CHANGED = ListChange.CHANGED
BROWSE_GONE = ListChange.GONE

MAX_TRANSFER_BYTES = 67108864
MAX_TRANSFER_TAG_BYTES = 1024

ANY_VERSION = 18446744073709551615

PROPERTY_REMOVE = 1
PROPERTY_KEEP_VALUE = 2
PROPERTY_OWNER_ONLY = 4
PROPERTY_DIES_WITH_OWNER = 8
PROPERTY_FALLS_TO_LEADER = 16


class LinkPath(_Number):
    """The path of the messages to one member."""

    DIRECT = 0
    THROUGH_LEADER = 1
    THROUGH_MEMBER = 2
    THROUGH_RELAY = 3
    THROUGH_TURN = 4


PATH_DIRECT = LinkPath.DIRECT
PATH_THROUGH_LEADER = LinkPath.THROUGH_LEADER
PATH_THROUGH_MEMBER = LinkPath.THROUGH_MEMBER
PATH_THROUGH_RELAY = LinkPath.THROUGH_RELAY
PATH_THROUGH_TURN = LinkPath.THROUGH_TURN

RECONNECT_RETRYING = 0
RECONNECT_RETURNED = 1
RECONNECT_GAVE_UP = 2


class _BYTES(ctypes.c_char_p):
    """The bytes before a length."""


_TEXT = ctypes.c_char_p


class _MmnEvent(ctypes.Structure):
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
    index: int
    time_ms: int
    owner: bytes | None


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
    hold_messages: int
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
    carry_bytes_per_second: int
    paths: int
    relays: bytes | None
    state: Any
    port_mapping: int
    reserved: int
    turn: bytes | None


class _MmnCard(ctypes.Structure):
    struct_size: int
    flags: int
    game: bytes | None
    name: bytes | None
    data: int | None
    data_length: int
    max_players: int
    port: int
    reserved: int


class _MmnBrowseOptions(ctypes.Structure):
    struct_size: int
    dispatch_mode: int
    game: bytes | None
    on_room: Any
    user_data: int | None
    drop_fn: Any
    port: int
    reserved: int


class _MmnListedRoom(ctypes.Structure):
    struct_size: int
    change: int
    browser: int
    id: int
    name: bytes | None
    session_id: bytes | None
    address: bytes | None
    fingerprint: bytes | None
    data: int | None
    data_length: int
    players: int
    max_players: int
    needs_secret: int


class _MmnGossipWindows(ctypes.Structure):
    struct_size: int
    startup_grace_ms: int
    sample_interval_ms: int
    alive_threshold_ms: int
    election_duration_ms: int


class _MmnSeededOptions(ctypes.Structure):
    struct_size: int
    is_seed: int
    seeds: bytes | None
    probe_interval_ms: int
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    ttl_timeout_ms: int
    retry_interval_ms: int
    reserved: int


class _MmnEtcdOptions(ctypes.Structure):
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


class _MmnStateOptions(ctypes.Structure):
    struct_size: int
    tail_entries: int
    tail_bytes: int
    max_snapshot_bytes: int


class _MmnPropertyChange(ctypes.Structure):
    struct_size: int
    flags: int
    key: bytes | None
    owner: bytes | None
    value: int | None
    length: int
    reserved: int
    expected_version: int


class _MmnPropertyInfo(ctypes.Structure):
    struct_size: int
    flags: int
    version: int
    owner: bytes | None
    length: int
    reserved: int


class _MmnStateInfo(ctypes.Structure):
    struct_size: int
    members: int
    exclusive: int
    pending: int
    history: int
    ballot: int
    index: int
    confirmed: int
    bytes: int


class _MmnPeerStats(ctypes.Structure):
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


class _MmnRoomStats(ctypes.Structure):
    struct_size: int
    unlinked_peers: int
    missed_broadcasts: int
    room_time_error_us: int
    reserved: int


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


MmnEventCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_MmnEvent))
MmnDropCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
MmnListedRoomCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_MmnListedRoom))
MmnLogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p)
ReceiveCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)
LeaderChangedCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
PeerStatusCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int32)
ConnectionResultCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_int32)
ReconnectCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8)

_MmnEvent._fields_ = [
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
    ("index", ctypes.c_uint64),
    ("time_ms", ctypes.c_uint64),
    ("owner", ctypes.c_char_p),
]
_MmnOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("strategy", ctypes.c_uint32),
    ("on_event", MmnEventCallback),
    ("user_data", ctypes.c_void_p),
    ("drop_fn", MmnDropCallback),
    ("bind_address", ctypes.c_char_p),
    ("secret", ctypes.c_void_p),
    ("identity_key", ctypes.c_void_p),
    ("state_directory", ctypes.c_char_p),
    ("trace_path", ctypes.c_char_p),
    ("quorum_roster", ctypes.c_char_p),
    ("seeded", ctypes.POINTER(_MmnSeededOptions)),
    ("etcd", ctypes.POINTER(_MmnEtcdOptions)),
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
    ("hold_messages", ctypes.c_uint32),
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
    ("carry_bytes_per_second", ctypes.c_uint32),
    ("paths", ctypes.c_uint32),
    ("relays", ctypes.c_char_p),
    ("state", ctypes.POINTER(_MmnStateOptions)),
    ("port_mapping", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
    ("turn", ctypes.c_char_p),
]
_MmnCard._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("game", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("data", ctypes.c_void_p),
    ("data_length", ctypes.c_uint32),
    ("max_players", ctypes.c_uint32),
    ("port", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
]
_MmnBrowseOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("dispatch_mode", ctypes.c_uint32),
    ("game", ctypes.c_char_p),
    ("on_room", MmnListedRoomCallback),
    ("user_data", ctypes.c_void_p),
    ("drop_fn", MmnDropCallback),
    ("port", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
]
_MmnListedRoom._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("change", ctypes.c_uint32),
    ("browser", ctypes.c_uint64),
    ("id", ctypes.c_uint64),
    ("name", ctypes.c_char_p),
    ("session_id", ctypes.c_char_p),
    ("address", ctypes.c_char_p),
    ("fingerprint", ctypes.c_char_p),
    ("data", ctypes.c_void_p),
    ("data_length", ctypes.c_uint32),
    ("players", ctypes.c_uint32),
    ("max_players", ctypes.c_uint32),
    ("needs_secret", ctypes.c_uint32),
]
_MmnGossipWindows._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("startup_grace_ms", ctypes.c_uint32),
    ("sample_interval_ms", ctypes.c_uint32),
    ("alive_threshold_ms", ctypes.c_uint32),
    ("election_duration_ms", ctypes.c_uint32),
]
_MmnSeededOptions._fields_ = [
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
_MmnEtcdOptions._fields_ = [
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
_MmnStateOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("tail_entries", ctypes.c_uint32),
    ("tail_bytes", ctypes.c_uint32),
    ("max_snapshot_bytes", ctypes.c_uint32),
]
_MmnPropertyChange._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("key", ctypes.c_char_p),
    ("owner", ctypes.c_char_p),
    ("value", ctypes.c_void_p),
    ("length", ctypes.c_int32),
    ("reserved", ctypes.c_uint32),
    ("expected_version", ctypes.c_uint64),
]
_MmnPropertyInfo._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("version", ctypes.c_uint64),
    ("owner", ctypes.c_char_p),
    ("length", ctypes.c_int32),
    ("reserved", ctypes.c_uint32),
]
_MmnStateInfo._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("members", ctypes.c_uint32),
    ("exclusive", ctypes.c_uint32),
    ("pending", ctypes.c_uint32),
    ("history", ctypes.c_uint64),
    ("ballot", ctypes.c_uint64),
    ("index", ctypes.c_uint64),
    ("confirmed", ctypes.c_uint64),
    ("bytes", ctypes.c_uint64),
]
_MmnPeerStats._fields_ = [
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
_MmnRoomStats._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("unlinked_peers", ctypes.c_uint32),
    ("missed_broadcasts", ctypes.c_uint64),
    ("room_time_error_us", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
]
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

# Name: (result, arguments).
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mmn_abi_version": (ctypes.c_uint32, ()),
    "mmn_library_version": (_TEXT, ()),
    "mmn_set_event_handler": (ctypes.c_int32, (ctypes.c_uint64, MmnEventCallback, ctypes.c_void_p, MmnDropCallback)),
    "mmn_take_messages": (ctypes.c_int32, (ctypes.c_uint64,)),
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
    "mmn_public_address": (_TEXT, (ctypes.c_uint64,)),
    "mmn_local_id": (_TEXT, (ctypes.c_uint64,)),
    "mmn_session_id": (_TEXT, (ctypes.c_uint64,)),
    "mmn_peer_count": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_peers": (_TEXT, (ctypes.c_uint64,)),
    "mmn_members": (_TEXT, (ctypes.c_uint64,)),
    "mmn_peer_address": (_TEXT, (ctypes.c_uint64, _TEXT)),
    "mmn_set_turn": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_path": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_carrier": (_TEXT, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_index": (ctypes.c_uint32, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_id": (_TEXT, (ctypes.c_uint64, ctypes.c_uint32)),
    "mmn_peer_rtt_ms": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_peer_status": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_show_card": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_MmnCard))),
    "mmn_browse_open": (ctypes.c_int32, (ctypes.POINTER(_MmnBrowseOptions), ctypes.POINTER(ctypes.c_uint64))),
    "mmn_browse_poll": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_int32)),
    "mmn_browse_close": (ctypes.c_int32, (ctypes.c_uint64,)),
    "mmn_generate_identity_key": (ctypes.c_int32, (ctypes.POINTER(ctypes.c_uint8), ctypes.c_int32)),
    "mmn_local_fingerprint": (_TEXT, (ctypes.c_uint64,)),
    "mmn_peer_fingerprint": (_TEXT, (ctypes.c_uint64, _TEXT)),
    "mmn_generate_room_code": (ctypes.c_int32, (ctypes.POINTER(ctypes.c_char), ctypes.c_int32)),
    "mmn_normalize_room_code": (ctypes.c_int32, (_TEXT, ctypes.POINTER(ctypes.c_char), ctypes.c_int32)),
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
    "mmn_default_seeded_options": (ctypes.c_int32, (ctypes.c_uint32, ctypes.POINTER(_MmnSeededOptions))),
    "mmn_member_state": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_cluster_version": (ctypes.c_int64, (ctypes.c_uint64,)),
    "mmn_default_etcd_options": (ctypes.c_int32, (ctypes.POINTER(_MmnEtcdOptions),)),
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
    "mmn_send_transfer": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, _BYTES, ctypes.c_int32, _BYTES, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))),
    "mmn_accept_transfer": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int32)),
    "mmn_accept_transfer_in_parts": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.c_uint64)),
    "mmn_cancel_transfer": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.c_uint64)),
    "mmn_default_state_options": (ctypes.c_int32, (ctypes.POINTER(_MmnStateOptions),)),
    "mmn_submit": (ctypes.c_int32, (ctypes.c_uint64, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.POINTER(ctypes.c_uint64))),
    "mmn_set_properties": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_MmnPropertyChange), ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))),
    "mmn_property": (ctypes.c_void_p, (ctypes.c_uint64, _TEXT, ctypes.POINTER(_MmnPropertyInfo))),
    "mmn_property_keys": (_TEXT, (ctypes.c_uint64, _TEXT)),
    "mmn_provide_snapshot": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint64, _BYTES, ctypes.c_int32)),
    "mmn_state_info": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_MmnStateInfo))),
    "mmn_peer_stats": (ctypes.c_int32, (ctypes.c_uint64, _TEXT, ctypes.POINTER(_MmnPeerStats))),
    "mmn_room_stats": (ctypes.c_int32, (ctypes.c_uint64, ctypes.POINTER(_MmnRoomStats))),
    "mmn_room_time_ms": (ctypes.c_int64, (ctypes.c_uint64,)),
    "mmn_simulate_network": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)),
    "mmn_simulate_preset": (ctypes.c_int32, (ctypes.c_uint64, _TEXT)),
    "mmn_set_log_stderr": (ctypes.c_int32, (ctypes.c_int32,)),
    "mmn_set_log": (ctypes.c_int32, (ctypes.c_int32, MmnLogCallback, ctypes.c_void_p, MmnDropCallback)),
    "RegisterReceiveCallback": (ctypes.c_int32, (ReceiveCallback,)),
    "RegisterLeaderChangedCallback": (ctypes.c_int32, (LeaderChangedCallback,)),
    "RegisterPeerStatusCallback": (ctypes.c_int32, (PeerStatusCallback,)),
    "RegisterConnectionResultCallback": (ctypes.c_int32, (ConnectionResultCallback,)),
    "RegisterReconnectCallback": (ctypes.c_int32, (ReconnectCallback,)),
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
}


@dataclasses.dataclass(frozen=True)
class PeerJoined(Event):
    """`peer` is connected. This event precedes the peer's first message."""

    kind = EventKind.JOINED
    peer: str
    """The new peer."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class PeerReconnecting(Event):
    """The link to `peer` is lost and the library is dialling it again. It keeps the messages already accepted for the peer,
    and reliable messages that are sent meanwhile, as long as the send queue has room."""

    kind = EventKind.RECONNECTING
    peer: str
    """The lost peer."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class PeerReturned(Event):
    """The link to `peer` is back. Messages that were queued for it arrive, once and in order. `undelivered` and `missed`
    count each lost message once. This event precedes everything that the peer sends on the new link."""

    kind = EventKind.RETURNED
    peer: str
    """The peer that is back."""
    undelivered: int
    """Reliable messages of this host that the peer will not get. They were broadcast while it was away and did not fit into
    its queue."""
    missed: int
    """Reliable messages of the peer that this host will not get."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class PeerLeft(Event):
    """`peer` is gone. This event follows the peer's last message."""

    kind = EventKind.LEFT
    peer: str
    """The member that is gone."""
    reason: LeftReason
    """The reason for which a member is gone."""
    code: int
    """Number from the host that removed or disconnected the peer, else 0."""
    data: bytes
    """Bytes from the host that removed or disconnected the peer."""
    undelivered: int
    """Reliable messages for the peer that are not known to be delivered, and that no PeerReturned has counted."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class Message(Event):
    """`sender` sent `data`."""

    kind = EventKind.MESSAGE
    sender: str
    """The sender."""
    data: bytes
    """The message."""
    type: int
    """The sender's message type, 0x0100 or higher."""
    flags: int
    """The sender's flags."""
    channel: int
    """The channel that the sender named; 0 for the classic sends."""
    delivery: DeliveryMode
    """The delivery of a message."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class SetLeaderResult(Event):
    """This node's set_leader() for `peer` has ended."""

    kind = EventKind.SET_LEADER_RESULT
    peer: str
    """The member that set_leader() named."""
    success: bool
    """Whether the peer leads."""
    code: Code
    """Code.OK, Code.TIMEOUT, Code.SUPERSEDED, Code.REJECTED (with QuorumPolicy.STATIC: the leader refused the transfer) or
    another error."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class RoomEnded(Event):
    """This node is no longer in the room. PeerLeft follows for every member, with LeftReason.ROOM_ENDED (for a fixed host
    with the reason of its own departure). The host must still call close()."""

    kind = EventKind.ROOM_ENDED
    reason: EndReason
    """The reason for which the room is over for this member."""
    code: int
    """Number from the leader's host, else 0."""
    data: bytes
    """Bytes from the leader's host."""


@dataclasses.dataclass(frozen=True)
class LeaderChanged(Event):
    """`leader` leads, or no member does."""

    kind = EventKind.LEADER_CHANGED
    leader: str | None
    """The member that leads; None means that no member does."""
    previous: str | None
    """The previous leader as this handler last received it; None for none."""
    term: int
    """The leader's term."""
    epoch: int
    """The number of set_leader() calls that the change builds on."""
    reason: LeaderReason
    """The reason for a change of the leader."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class LeadershipGained(Event):
    """This node now leads. The fields are those of the preceding LeaderChanged."""

    kind = EventKind.LEADERSHIP_GAINED
    leader: str | None
    """This node."""
    previous: str | None
    """The previous leader; None for none."""
    term: int
    """The leader's term."""
    epoch: int
    """The number of set_leader() calls that the change builds on."""
    reason: LeaderReason
    """The reason for a change of the leader."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class LeadershipLost(Event):
    """This node no longer leads. The fields are those of the preceding LeaderChanged."""

    kind = EventKind.LEADERSHIP_LOST
    leader: str | None
    """The member that leads now; None means that no member does."""
    previous: str | None
    """The previous leader; None for none."""
    term: int
    """The leader's term."""
    epoch: int
    """The number of set_leader() calls that the change builds on."""
    reason: LeaderReason
    """The reason for a change of the leader."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class JoinRequest(Event):
    """`peer` asks to join. The host answers with accept_join() or reject_join()."""

    kind = EventKind.JOIN_REQUEST
    peer: str
    """The newcomer."""
    address: str | None
    """The newcomer's address; None if it is unknown, as over a relay."""
    payload: bytes
    """The newcomer's join payload."""
    request: int
    """The number that the answer names."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class Discovered(Event):
    """Discovery found a member in the local network."""

    kind = EventKind.DISCOVERED
    address: str
    """The member's address, for connect()."""


@dataclasses.dataclass(frozen=True)
class ConnectionResult(Event):
    """A call of connect() has ended."""

    kind = EventKind.CONNECTION_RESULT
    address: str
    """The address as passed to connect()."""
    success: bool
    """Whether the peer is connected."""
    code: Code
    """Code.OK or the reason. Code.ALREADY_CONNECTED comes with success."""
    peer: str | None
    """The member that answered; None if it is unknown."""
    reason: int
    """Number from the leader's host, if that rejected this node, or banned it with a reason that the member that answered
    remembers; else 0."""
    data: bytes
    """Bytes from that host. Otherwise, of a failed dial, a sentence for the player, with a remedy. With Code.POLICY_MISMATCH
    it names the rule and both values; with Code.MAX_CONNECTIONS_REACHED the limit; with Code.RATE_LIMITED the number of
    seconds for which no attempt counts; with Code.NAME_NOT_RESOLVED the resolver's answer; with Code.TIMEOUT how far the
    dial came or which side did not decide; with Code.REJECTED the rule that refused it."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class SlowPeer(Event):
    """A call of broadcast() with SEND_PARTIAL has left `peer` out, because the queue to it is full. One event stands for all
    such broadcasts until the host receives it, and for those of the second after that."""

    kind = EventKind.SLOW_PEER
    peer: str
    """The peer whose queue is full."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class DataDropped(Event):
    """This node has dropped messages with DeliveryMode.UNRELIABLE or DeliveryMode.SEQUENCED, because a queue was full, their
    ttl_ms was over, or the link is lost. One event a second comes for each peer and direction, and one with the rest before
    PeerLeft. Messages that the network loses, or that a newer message replaces, are not counted."""

    kind = EventKind.DATA_DROPPED
    peer: str
    """The peer at the other end."""
    direction: DroppedDirection
    """The direction of messages that this member has dropped."""
    count: int
    """Messages dropped since the last such event."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class MemberStateChanged(Event):
    """With ElectionStrategy.SEEDED, the state of the member `peer` has changed. Up to 256 of these events wait for a host
    that takes no events; beyond that it receives the newest state of each member."""

    kind = EventKind.MEMBER_STATE
    peer: str
    """The member, which may be this node."""
    state: MemberState
    """Its new state, one of MemberState."""
    version: int
    """The version of the cluster."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class LockResult(Event):
    """A call of acquire_lock() or try_lock() has ended."""

    kind = EventKind.LOCK_RESULT
    request: int
    """The number of the call."""
    lock: str
    """The name of the lock."""
    success: bool
    """Whether this node holds the lock."""
    code: Code
    """Code.OK, Code.REJECTED (try_lock(): another member holds it), Code.TIMEOUT, or Code.SUPERSEDED (release_lock() or
    close() came first)."""
    token: int
    """The fencing token, while this node holds the lock; else 0."""


@dataclasses.dataclass(frozen=True)
class LockLost(Event):
    """This node no longer holds a lock, since its lease has ended. Up to 256 of these events wait for a host that takes no
    events; beyond that it receives the newest loss of each lock."""

    kind = EventKind.LOCK_LOST
    lock: str
    """The name of the lock."""
    token: int
    """Its fencing token."""


@dataclasses.dataclass(frozen=True)
class UnlinkedPeer(Event):
    """The members `peer` and `other` have no link, since `other` is connected to max_connections members. Either may be this
    node; then the other one is no member here. Neither receives the other's broadcasts. The hosts of both and of the leader
    receive this event once, for as long as the link is missing."""

    kind = EventKind.UNLINKED_PEER
    peer: str
    """One of the two members."""
    other: str
    """The member that is connected to max_connections members."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class BanDropped(Event):
    """The ban of `peer` is void at this node. The leader has led for a few seconds, has no such ban and does not know the
    member that set it: two rooms became one, for example. The leader's host may ban again."""

    kind = EventKind.BAN_DROPPED
    peer: str
    """The banned id."""
    leader: str
    """The leader."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class DiscoveryRefused(Event):
    """A member that the library found and dialled by itself refused this node, or this node refused that member. The library
    goes on by itself; the event is for the player. The library reports it once a minute for each address and code. Two
    limits of 16 events a minute apply: one to Code.SESSION_MISMATCH, Code.AUTHENTICATION_FAILED and Code.VERSION_MISMATCH,
    which any process can cause, and one to the other codes."""

    kind = EventKind.DISCOVERY_REFUSED
    peer: str | None
    """The member that answered; None if it is unknown."""
    address: str
    """The member's address; for one at a relay that of the relay, as in MmnOptions.relays."""
    found_by: FoundBy
    """The way in which the library found a member."""
    code: Code
    """Code.DUPLICATE_PEER_ID, Code.REJECTED, Code.POLICY_MISMATCH, Code.MAX_CONNECTIONS_REACHED, Code.SESSION_MISMATCH,
    Code.AUTHENTICATION_FAILED or Code.VERSION_MISMATCH."""
    reason: int
    """As in ConnectionResult."""
    data: bytes
    """As in ConnectionResult."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class JoinWithdrawn(Event):
    """An JoinRequest has ended without an answer of this host: the newcomer is gone, the time is up, or another member
    decides now. A host may close its dialog."""

    kind = EventKind.JOIN_WITHDRAWN
    peer: str
    """The newcomer."""
    request: int
    """The number of the request."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class HostSilent(Event):
    """The host of `peer` takes no events: it has not called poll(), or is still in a callback. HostBack, PeerReconnecting or
    PeerLeft ends it."""

    kind = EventKind.HOST_SILENT
    peer: str
    """The peer."""
    silent_ms: int
    """Time without an event taken, in milliseconds: 5000 or more."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class HostBack(Event):
    """The host of `peer` takes events again."""

    kind = EventKind.HOST_BACK
    peer: str
    """The peer."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class NoRoomFound(Event):
    """With RoomEntry.JOIN, this node has found no room yet. It goes on looking, and reports this once."""

    kind = EventKind.NO_ROOM_FOUND
    waited_ms: int
    """Time without a room, in milliseconds."""


@dataclasses.dataclass(frozen=True)
class PathChanged(Event):
    """The messages to and from `peer` take another path from now on. The change loses and reorders no reliable message.
    path() returns the path of a peer that has just joined or returned. Up to 256 of these events wait for a host that takes
    no events; beyond that it receives the newest of each peer."""

    kind = EventKind.PATH_CHANGED
    peer: str
    """The peer at the other end."""
    carrier: str | None
    """The member that carries the packets from now on; None if none does, as on a direct path and over a relay."""
    path: LinkPath
    """The path from now on, one of LinkPath."""
    previous: LinkPath
    """The path before, one of LinkPath."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class RelayChanged(Event):
    """This member has entered a relay of MmnOptions.relays, or is not in it. While it is not, the library goes on trying,
    and links that need no relay stay. It reports a failure once, until the reason changes or it succeeds. It also reports
    that a relay sees this member at another address. Up to 64 of these events wait for a host that takes no events; beyond
    that it receives the newest of each relay."""

    kind = EventKind.RELAY
    relay: str
    """The relay's address as given in MmnOptions.relays."""
    success: bool
    """Whether this member is in the relay."""
    code: Code
    """Code.OK, Code.CONNECTION_FAILED (the relay is unreachable, or the link to it is lost), Code.TIMEOUT (no answer: the
    relay is off, or the network blocks UDP), Code.NAME_NOT_RESOLVED, Code.AUTHENTICATION_FAILED (another token, or another
    key than the given one), Code.MAX_CONNECTIONS_REACHED (the relay is full), Code.RATE_LIMITED or Code.VERSION_MISMATCH."""
    data: bytes
    """UTF-8. With success, the address at which the relay sees this member, as public_address() returns it; else a sentence
    for the player, with a remedy."""


@dataclasses.dataclass(frozen=True)
class RoomAction(Event):
    """The room has confirmed an action of submit(). The hosts of all members receive the same actions in the same order."""

    kind = EventKind.ACTION
    author: str
    """The member that submitted it, which may have left since."""
    data: bytes
    """The action."""
    type: int
    """The author's message type, 0x0100 or higher."""
    index: int
    """Index of its entry. Within a history, entries have rising indexes."""
    time_ms: int
    """Time of its entry, in milliseconds since the room's first one."""
    request: int
    """The number from submit(), if this node is the author; else 0."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class ActionResult(Event):
    """A call of submit() or set_properties() has ended. This event follows those of the call's entry."""

    kind = EventKind.ACTION_RESULT
    request: int
    """The number of the call."""
    index: int
    """Index of its entry; 0 if it has none, or this member no longer has it."""
    code: Code
    """Code.OK; for a property set also Code.CONFLICT, Code.STATE_FULL or Code.REJECTED, and then nothing has changed;
    Code.OUTCOME_UNKNOWN if this member was away for so long that it cannot know."""


@dataclasses.dataclass(frozen=True)
class PropertyChanged(Event):
    """A property has changed, by set_properties(), because its owner has left, or because this member has taken over other
    members' state. property() already shows it so."""

    kind = EventKind.PROPERTY
    key: str
    """The name of the property."""
    value: bytes
    """Its value."""
    owner: str | None
    """Its owner; None if it has none."""
    version: int
    """Its version, for expected_version of MmnPropertyChange."""
    exists: bool
    """Whether the property exists; else it has no value, owner or version."""
    author: str | None
    """The member that set it; None if no set_properties() did, or the state jumped."""
    index: int
    """Index of the entry that changed it, or that the state jumped to."""
    time_ms: int
    """Time of that entry, in milliseconds since the room's first one."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class StateReset(Event):
    """The host begins anew with the actions: it replaces its state by the snapshot, and receives the actions above `index`.
    Properties and members do not begin anew; events with their differences follow."""

    kind = EventKind.STATE_RESET
    snapshot: bytes
    """A state that another member's host has provided; empty for the initial state."""
    index: int
    """Index of the last entry in that state."""
    reason: ResetReason
    """The reason for which a host begins anew with the room's state."""
    code: Code
    """Code.OK, or Code.TIMEOUT if actions up to `index` are missing, because no host provided a snapshot."""
    undone: int
    """Actions undone: the number of RolledBack before this event."""


@dataclasses.dataclass(frozen=True)
class RolledBack(Event):
    """The room has taken over another history, which lacks an action that this host has received. One event comes for each
    such action, the lowest index first, before anything else of that history."""

    kind = EventKind.ROLLED_BACK
    author: str
    """The member that submitted it."""
    data: bytes
    """The action."""
    type: int
    """The author's message type."""
    index: int
    """The index that it had."""
    request: int
    """The number from submit(), if this node is the author; else 0. The library does not submit it again."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class SnapshotWanted(Event):
    """Another member's host needs a snapshot of this host's state, exactly as the events before this one have made it. Copy
    the state inside this event, and pass it to provide_snapshot() then or later."""

    kind = EventKind.SNAPSHOT_WANTED
    request: int
    """The number for provide_snapshot()."""
    index: int
    """Index of the last entry of which this host has received an event."""


@dataclasses.dataclass(frozen=True)
class StateOpened(Event):
    """`leader` orders the requests to the room's state from now on, or no member does. Requests wait until then."""

    kind = EventKind.STATE_OPENED
    leader: str | None
    """The member that orders; None if the leader is lost."""
    exclusive: bool
    """Whether a majority of the members that count answered the leader, or it is the room's first; else the room has
    forked."""
    history: int
    """The history that goes on, or begins."""
    members: int
    """Members that count for a majority."""
    index: int
    """Index of the last entry of which this host has received an event."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class StateMemberChanged(Event):
    """A member has come into the room's state or gone from it: all hosts receive this at the same place among the actions.
    Only a member that is here may own a property."""

    kind = EventKind.STATE_MEMBER
    peer: str
    """The member, which may be this node."""
    here: bool
    """Whether it has come; else it has gone."""
    index: int
    """Index of the entry, or of the one that the state jumped to."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class TransferOffered(Event):
    """`sender` offers a transfer (send_transfer()). The host answers within 60 s with accept_transfer(),
    accept_transfer_in_parts() or cancel_transfer(); it may do so in this event."""

    kind = EventKind.TRANSFER_OFFERED
    sender: str
    """The sender."""
    transfer: int
    """The number of the transfer."""
    size: int
    """Its length in bytes."""
    tag: bytes
    """The sender's bytes about it."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class TransferProgress(Event):
    """A transfer goes on. Both hosts receive this at most ten times a second for each transfer, and none while an earlier
    one waits for the host."""

    kind = EventKind.TRANSFER_PROGRESS
    peer: str
    """The peer at the other end."""
    transfer: int
    """The number of the transfer."""
    size: int
    """Its length in bytes."""
    done: int
    """Bytes that have arrived at the receiver."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class TransferResult(Event):
    """A transfer is over. Each end receives this exactly once, before PeerLeft of `peer`."""

    kind = EventKind.TRANSFER_RESULT
    peer: str
    """The peer at the other end."""
    transfer: int
    """The number of the transfer."""
    size: int
    """Its length in bytes."""
    done: int
    """Bytes that have arrived at the receiver, as far as this end knows."""
    success: bool
    """Whether all of it has arrived."""
    reason: TransferOutcome
    """The outcome of a transfer."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class TransferPart(Event):
    """The next bytes of a transfer that this host takes with accept_transfer_in_parts()."""

    kind = EventKind.TRANSFER_PART
    sender: str
    """The sender."""
    transfer: int
    """The number of the transfer."""
    offset: int
    """Position of the first byte, from 0."""
    data: bytes
    """The bytes, at most 16384."""
    peer_index: int = 0
    """Index of the peer, as index() returns it; 0 for this node and for a peer that is not in the room."""


@dataclasses.dataclass(frozen=True)
class PortMappingChanged(Event):
    """The state of the port that MmnOptions.port_mapping asks the router for. The library goes on asking after a failure,
    and reports it once, until the reason changes. Up to 64 of these events wait for a host that takes no events; beyond that
    it receives the newest."""

    kind = EventKind.PORT_MAPPING
    success: bool
    """Whether the router claims to forward a port to this member, and what the others see does not speak against it. Perhaps
    no member has seen anything yet."""
    code: Code
    """Code.OK, Code.TIMEOUT (the router does not answer), Code.REJECTED (it refuses), Code.SERIALIZATION_ERROR (its answer
    makes no sense), Code.CONNECTION_FAILED (the port leads from nowhere: the router has no address of the internet, most
    members see this one at another address, or several could not come through) or Code.NOT_SUPPORTED (the room uses no IPv4
    network whose router can be found)."""
    data: bytes
    """UTF-8. With success, the address, as public_address() returns it; else a sentence for the player, with a remedy."""


@dataclasses.dataclass(frozen=True)
class TurnChanged(Event):
    """A TURN server of MmnOptions.turn or set_turn() has given this member a port, or gives none, or the port is lost. While
    this member has none, the library goes on trying, each server in turn; links that do not go through the port stay. It
    reports a failure once, until the reason changes or it succeeds. Up to 64 of these events wait for a host that takes no
    events; beyond that it receives the newest of each server."""

    kind = EventKind.TURN
    server: str
    """The server's URL as given, without the credentials."""
    success: bool
    """Whether this member has the port."""
    code: Code
    """Code.OK, Code.CONNECTION_FAILED (the server is unreachable, the connection to it is lost, it has forgotten the port,
    or the list of set_turn() lacks it), Code.TIMEOUT (no answer), Code.NAME_NOT_RESOLVED, Code.AUTHENTICATION_FAILED (it
    refuses the user name or the password, perhaps as expired: pass others to set_turn(); or its certificate is not trusted),
    Code.MAX_CONNECTIONS_REACHED (this user, or the server, has no free port), Code.REJECTED (it refuses for another reason)
    or Code.SERIALIZATION_ERROR (what answers there is no TURN server)."""
    data: bytes
    """UTF-8. With success, the address at which the server receives for this member; else a sentence, with the server's own
    code and words where it gave some."""


# Kind: what makes the event from the library's struct.
_MAKERS: dict[int, Callable[[Any], Event]] = {
    1: lambda e: PeerJoined(_text_of(e.peer), e.peer_index),
    2: lambda e: PeerReconnecting(_text_of(e.peer), e.peer_index),
    3: lambda e: PeerReturned(_text_of(e.peer), e.count, e.missed, e.peer_index),
    4: lambda e: PeerLeft(_text_of(e.peer), LeftReason(e.reason), e.code, ctypes.string_at(e.data, e.length), e.count, e.peer_index),
    5: lambda e: Message(_text_of(e.peer), ctypes.string_at(e.data, e.length), e.msg_type, e.flags, e.channel, DeliveryMode(e.delivery), e.peer_index),
    6: lambda e: SetLeaderResult(_text_of(e.peer), e.success != 0, Code(e.code), e.peer_index),
    7: lambda e: RoomEnded(EndReason(e.reason), e.code, ctypes.string_at(e.data, e.length)),
    8: lambda e: LeaderChanged(_text_of(e.peer) or None, _text_of(e.other) or None, e.term, e.epoch, LeaderReason(e.reason), e.peer_index),
    9: lambda e: LeadershipGained(_text_of(e.peer) or None, _text_of(e.other) or None, e.term, e.epoch, LeaderReason(e.reason), e.peer_index),
    10: lambda e: LeadershipLost(_text_of(e.peer) or None, _text_of(e.other) or None, e.term, e.epoch, LeaderReason(e.reason), e.peer_index),
    11: lambda e: JoinRequest(_text_of(e.peer), _text_of(e.other) or None, ctypes.string_at(e.data, e.length), e.request, e.peer_index),
    12: lambda e: Discovered(_text_of(e.other)),
    13: lambda e: ConnectionResult(_text_of(e.other), e.success != 0, Code(e.code), _text_of(e.peer) or None, e.reason, ctypes.string_at(e.data, e.length), e.peer_index),
    14: lambda e: SlowPeer(_text_of(e.peer), e.peer_index),
    15: lambda e: DataDropped(_text_of(e.peer), DroppedDirection(e.reason), e.count, e.peer_index),
    16: lambda e: MemberStateChanged(_text_of(e.peer), MemberState(e.reason), e.term, e.peer_index),
    17: lambda e: LockResult(e.request, _text_of(e.other), e.success != 0, Code(e.code), e.count),
    18: lambda e: LockLost(_text_of(e.other), e.count),
    22: lambda e: UnlinkedPeer(_text_of(e.peer), _text_of(e.other), e.peer_index),
    23: lambda e: BanDropped(_text_of(e.peer), _text_of(e.other), e.peer_index),
    21: lambda e: DiscoveryRefused(_text_of(e.peer) or None, _text_of(e.other), FoundBy(e.found_by), Code(e.code), e.reason, ctypes.string_at(e.data, e.length), e.peer_index),
    24: lambda e: JoinWithdrawn(_text_of(e.peer), e.request, e.peer_index),
    19: lambda e: HostSilent(_text_of(e.peer), e.count, e.peer_index),
    20: lambda e: HostBack(_text_of(e.peer), e.peer_index),
    25: lambda e: NoRoomFound(e.count),
    26: lambda e: PathChanged(_text_of(e.peer), _text_of(e.other) or None, LinkPath(e.reason), LinkPath(e.code), e.peer_index),
    27: lambda e: RelayChanged(_text_of(e.other), e.success != 0, Code(e.code), ctypes.string_at(e.data, e.length)),
    28: lambda e: RoomAction(_text_of(e.peer), ctypes.string_at(e.data, e.length), e.msg_type, e.index, e.time_ms, e.request, e.peer_index),
    29: lambda e: ActionResult(e.request, e.index, Code(e.code)),
    30: lambda e: PropertyChanged(_text_of(e.other), ctypes.string_at(e.data, e.length), _text_of(e.owner) or None, e.count, e.success != 0, _text_of(e.peer) or None, e.index, e.time_ms, e.peer_index),
    31: lambda e: StateReset(ctypes.string_at(e.data, e.length), e.index, ResetReason(e.reason), Code(e.code), e.count),
    32: lambda e: RolledBack(_text_of(e.peer), ctypes.string_at(e.data, e.length), e.msg_type, e.index, e.request, e.peer_index),
    33: lambda e: SnapshotWanted(e.request, e.index),
    34: lambda e: StateOpened(_text_of(e.peer) or None, e.success != 0, e.epoch, e.count, e.index, e.peer_index),
    35: lambda e: StateMemberChanged(_text_of(e.peer), e.success != 0, e.index, e.peer_index),
    39: lambda e: TransferOffered(_text_of(e.peer), e.request, e.count, ctypes.string_at(e.data, e.length), e.peer_index),
    40: lambda e: TransferProgress(_text_of(e.peer), e.request, e.count, e.index, e.peer_index),
    41: lambda e: TransferResult(_text_of(e.peer), e.request, e.count, e.index, e.success != 0, TransferOutcome(e.reason), e.peer_index),
    42: lambda e: TransferPart(_text_of(e.peer), e.request, e.index, ctypes.string_at(e.data, e.length), e.peer_index),
    43: lambda e: PortMappingChanged(e.success != 0, Code(e.code), ctypes.string_at(e.data, e.length)),
    44: lambda e: TurnChanged(_text_of(e.other), e.success != 0, Code(e.code), ctypes.string_at(e.data, e.length)),
}

__all__ += [
    "ActionResult",
    "BanDropped",
    "Code",
    "ConnectionResult",
    "DataDropped",
    "DeliveryMode",
    "Discovered",
    "DiscoveryMode",
    "DiscoveryRefused",
    "DispatchMode",
    "DroppedDirection",
    "ElectionStrategy",
    "EndReason",
    "EventKind",
    "FoundBy",
    "HostBack",
    "HostMode",
    "HostSilent",
    "JoinRequest",
    "JoinWithdrawn",
    "LeaderChanged",
    "LeaderReason",
    "LeadershipGained",
    "LeadershipLost",
    "LeftReason",
    "LinkPath",
    "ListChange",
    "LockLost",
    "LockResult",
    "LogLevel",
    "ManualOverrideRecovery",
    "MemberState",
    "MemberStateChanged",
    "MergePolicy",
    "Message",
    "NoRoomFound",
    "PathChanged",
    "PeerJoined",
    "PeerLeft",
    "PeerReconnecting",
    "PeerReturned",
    "PeerStatus",
    "PortMapping",
    "PortMappingChanged",
    "PropertyChanged",
    "QuorumPolicy",
    "RelayChanged",
    "ResetReason",
    "RolledBack",
    "RoomAction",
    "RoomEnded",
    "RoomEntry",
    "RoomPaths",
    "SeededProfile",
    "SetLeaderAuthority",
    "SetLeaderResult",
    "SlowPeer",
    "SnapshotWanted",
    "StateMemberChanged",
    "StateOpened",
    "StateReset",
    "Topology",
    "TransferOffered",
    "TransferOutcome",
    "TransferPart",
    "TransferProgress",
    "TransferResult",
    "TurnChanged",
    "UnlinkedPeer",
]
# -- End of what is generated.

FIRST_USER_TYPE = MIN_MESSAGE_TYPE
"""Message types below this one belong to the library."""

STATUS_UNKNOWN = PeerStatus.UNKNOWN
STATUS_CONNECTED = PEER_CONNECTED
STATUS_DISCONNECTED = PEER_DISCONNECTED
STATUS_RECONNECTING = PEER_RECONNECTING
STATUS_HANDSHAKING = PEER_HANDSHAKING

Bytes = Union[bytes, bytearray, memoryview]
"""Types that sends accept."""


class NetworkError(Exception):
    """A call was refused. `code` is one of Code; the text comes from the library."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = Code(code)


def _event(native: _MmnEvent) -> Event:
    make = _MAKERS.get(native.kind)
    return make(native) if make is not None else UnknownEvent(native.kind)


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
    The voters of a static quorum, the relays and the TURN servers are a str with one per line, or a list of str. `seeded` is SeededOptions, for STRATEGY_SEEDED,
    `etcd` is EtcdOptions, for STRATEGY_ETCD, and `state` is StateOptions, for a room with a state.
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
        relays: str | Iterable[str] | None = None,
        turn: str | Iterable[str] | None = None,
        seeded: SeededOptions | None = None,
        etcd: EtcdOptions | None = None,
        state: StateOptions | None = None,
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
            relays=relays,
            turn=turn,
            seeded=seeded,
            etcd=etcd,
            state=state,
            dispatch_mode=dispatch_mode,
            **fields,
        )


class SeededOptions(_Fields, _MmnSeededOptions):
    """`SeededOptions`: the settings of STRATEGY_SEEDED, for NetworkOptions. Starts with the defaults of a profile. `seeds`, the
    addresses of the seeds, are a list of str, or a str with one per line: `SeededOptions(["one.example.org:4433"])`.
    """

    def __init__(
        self, seeds: str | Iterable[str] | None = None, *, profile: int = 0, is_seed: bool = False, **fields: int
    ) -> None:
        profile = _number("profile", profile, _LIMITS[ctypes.c_uint32])
        self._begin("mmn_default_seeded_options", profile, seeds=seeds, is_seed=bool(is_seed), **fields)


class EtcdOptions(_Fields, _MmnEtcdOptions):
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


class StateOptions(_Fields, _MmnStateOptions):
    """`MmnStateOptions`: the settings of the room's state, the same for all members. Starts with the library's defaults:
    `Room("alice", "tea", state=StateOptions(max_snapshot_bytes=1 << 20))`.
    """

    def __init__(self, **fields: int) -> None:
        self._begin("mmn_default_state_options", **fields)


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


class RoomCard(_Fields, _MmnCard):
    """`MmnCard`: what Room.show_card() shows in the local network: the game, the room's name for players, up to 400 bytes of the
    game, and a number of players. With `is_open` the card holds the session id, so that every browser of the game can join.
    """

    _own = ("flags",)

    def __init__(
        self, game: str, name: str, *, data: Bytes | None = None, is_open: bool = False, max_players: int = 0, port: int = 0
    ) -> None:
        self._begin(None, game=game, name=name, data=data, max_players=max_players, port=port)
        self._put("flags", CARD_OPEN if is_open else 0)


class PeerStats(_MmnPeerStats):
    """`PeerStats`: statistics of one peer. Its size is set already."""

    def __init__(self) -> None:
        super().__init__(struct_size=ctypes.sizeof(PeerStats))


class RoomStats(_MmnRoomStats):
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


NetworkEvent = _MmnEvent
"""`NetworkEvent`, which an MmnEventCallback receives; valid during the call. The header lists the fields of each `kind`."""

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


def _checked(code: int) -> int:
    _raise_held()
    if code < 0:
        raise NetworkError(code, load_library().mmn_last_error_message().decode("utf-8"))
    return code


def describe_error(code: int) -> str:
    """The library's sentence for a code."""
    sentence: bytes = load_library().mmn_describe_error(_number("code", code, _LIMITS[ctypes.c_int32]))
    return sentence.decode("utf-8")


def generate_identity_key() -> bytes:
    """A new private key for NetworkOptions.identity_key. A host that keeps it is the same member at every start."""
    key = (ctypes.c_uint8 * IDENTITY_KEY_BYTES)()
    _checked(load_library().mmn_generate_identity_key(key, len(key)))
    return bytes(key)


def generate_room_code() -> str:
    """A new room code, as K7QM-3XP9-TRWF: the session id of a room with NetworkOptions.relays. Works without a room and without
    a network. Show it to the player, who gives it to others."""
    code = ctypes.create_string_buffer(ROOM_CODE_BYTES)
    _checked(load_library().mmn_generate_room_code(code, len(code)))
    return code.value.decode("ascii")


def normalize_room_code(text: str) -> str:
    """A room code as generate_room_code() shows codes, from what a player typed or pasted. If it is no code, the message of the
    NetworkError names the fault: which character, the length, or a typo."""
    code = ctypes.create_string_buffer(ROOM_CODE_BYTES)
    _checked(load_library().mmn_normalize_room_code(_text("text", text), code, len(code)))
    return code.value.decode("ascii")


def describe_leader_reason(reason: int) -> str:
    """One of LeaderReason in words."""
    return LeaderReason(reason).words


def describe_left_reason(reason: int) -> str:
    """One of LeftReason in words."""
    return LeftReason(reason).words


def describe_end_reason(reason: int) -> str:
    """One of EndReason in words."""
    return EndReason(reason).words


def describe_member_state(state: int) -> str:
    """One of MemberState in words."""
    return MemberState(state).words


_log_callback: Any = None


def set_log(handler: Callable[[int, str], object] | None, level: int = LOG_INFO) -> None:
    """Passes the library's log up to `level` to `handler(level, text)`; None removes it. It runs on any thread, and may call only
    queries."""
    global _log_callback

    def guarded(_: int | None, _room: int, record_level: int, message: bytes) -> None:
        if handler is None:
            return
        try:
            handler(LogLevel(record_level), message.decode("utf-8", "replace"))
        except BaseException as error:
            _print_or_hold(error)

    callback = MmnLogCallback() if handler is None else MmnLogCallback(guarded)
    level = _number("level", level, _LIMITS[ctypes.c_int32])
    _checked(load_library().mmn_set_log(level, callback, None, MmnDropCallback()))
    # Replaced only now: until the library returned, the old callback could still be running.
    _log_callback = callback


def set_log_stderr(level: int) -> None:
    """Sets the level of the log on standard error; LOG_OFF at the start."""
    _checked(load_library().mmn_set_log_stderr(_number("level", level, _LIMITS[ctypes.c_int32])))


class _Inside(threading.local):
    """The call or handler that this thread is inside of."""

    process = 0
    """The process of the handler that runs. A child that is forked there is in no handler."""
    polls = False
    """Whether it polls, so that its handlers run below a call of the program."""

    def __init__(self) -> None:
        self.held: list[BaseException] = []
        """Raised in handlers; the call of the program below which they run raises the first one."""


_inside = _Inside()


def _print_or_hold(error: BaseException) -> None:
    """Ends an exception of a handler: none can unwind through native frames. KeyboardInterrupt and SystemExit are to end the program,
    so they wait for the end of its call; a thread of the library has none."""
    if isinstance(error, Exception) or not (_inside.polls or threading.current_thread() is threading.main_thread()):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    else:
        _inside.held.append(error)


def _raise_held() -> None:
    if _inside.held and not _is_in_a_handler():
        error = _inside.held[0]
        _inside.held.clear()
        raise error


@contextlib.contextmanager
def _polling() -> Iterator[None]:
    """Around a native call that runs handlers on this thread. Ctrl+C waits for its end: Python would drop the KeyboardInterrupt of a
    callback that has not come to its first `try`. A second Ctrl+C interrupts the handler that runs."""

    def interrupt(number: int, frame: object) -> None:
        if _inside.held:
            raise KeyboardInterrupt
        _inside.held.append(KeyboardInterrupt())

    ordinary = signal.default_int_handler
    # ValueError: Python runs no signal handlers on this thread.
    with contextlib.suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is ordinary:
            signal.signal(signal.SIGINT, interrupt)
    _inside.polls = True
    try:
        yield
    finally:
        _inside.polls = False
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, ordinary)
        _raise_held()


@contextlib.contextmanager
def _in_a_handler() -> Iterator[None]:
    outer = _inside.process
    _inside.process = os.getpid()
    try:
        yield
    except BaseException as error:
        _print_or_hold(error)
    finally:
        _inside.process = outer


def _is_in_a_handler() -> bool:
    return _inside.process == os.getpid()


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


# -- rooms in the local network


@dataclasses.dataclass(frozen=True)
class ListedRoom:
    """A room in the list of a Browser. Anybody in the network can show a card: these are a stranger's texts and bytes."""

    change: ListChange
    """The event."""
    id: int
    """Its number in this browser. It stays when another member becomes the room's leader."""
    name: str
    """Its name for players."""
    session_id: str | None
    """The session id, if its card is open."""
    address: str
    """The leader's address, for Room.connect()."""
    fingerprint: str
    """The fingerprint of the leader's key."""
    data: bytes
    """Bytes of the game."""
    players: int
    """Its members."""
    max_players: int | None
    """Most players, if the host shows a number."""
    needs_secret: bool
    """Whether a member needs a secret besides the session id."""


def _listed(native: _MmnListedRoom) -> ListedRoom:
    return ListedRoom(
        ListChange(native.change),
        native.id,
        _text_of(native.name),
        _text_of(native.session_id) or None,
        _text_of(native.address),
        _text_of(native.fingerprint),
        ctypes.string_at(native.data or 0, native.data_length) if native.data_length else b"",
        native.players,
        native.max_players or None,
        bool(native.needs_secret),
    )


class Browser:
    """A list of the rooms of one game in the local network, by the cards that they show (Room.show_card); a context manager that
    closes it. It needs no room.

        with mmn.Browser("my game", lambda room: print(room.change.name, room.name, room.players)) as browser: ...

    `on_room(ListedRoom)` runs on a thread of the browser or, with `polls`, inside poll(). `rooms` is the list of the moment. In a forked child a browser lists
    nothing.
    """

    def __init__(
        self, game: str, on_room: Callable[[ListedRoom], object] | None = None, *, polls: bool = False, port: int = 0
    ) -> None:
        self._native = load_library()
        self._handle = ctypes.c_uint64()
        self._rooms: dict[int, ListedRoom] = {}

        def call(_: int | None, pointer: Any) -> None:
            with _in_a_handler():
                room = _listed(pointer.contents)
                if room.change is ListChange.GONE:
                    self._rooms.pop(room.id, None)
                else:
                    self._rooms[room.id] = room
                if on_room is not None:
                    on_room(room)

        self._callback = MmnListedRoomCallback(call)
        options = _MmnBrowseOptions(
            struct_size=ctypes.sizeof(_MmnBrowseOptions),
            dispatch_mode=DISPATCH_POLL if polls else DISPATCH_THREAD,
            game=_text("game", game),
            on_room=self._callback,
            port=_number("port", port, _LIMITS[ctypes.c_uint32]),
        )
        _checked(self._native.mmn_browse_open(ctypes.byref(options), ctypes.byref(self._handle)))
        _browsers.add(self)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def rooms(self) -> list[ListedRoom]:
        """The rooms of the moment, in the order in which they were found."""
        return [room for _, room in sorted(self._rooms.copy().items())]

    def poll(self, max: int = 0x7FFFFFFF) -> int:
        """With `polls`, runs on_room for up to `max` changes on the calling thread, and returns their number. Never waits. Refused
        inside a handler and while another thread polls (-15). Ctrl+C counts as in Room.poll()."""
        _outside("poll()")
        count = _number("max", max, _LIMITS[ctypes.c_int32])
        with _polling():
            return _checked(self._native.mmn_browse_poll(self._handle, count))

    def close(self) -> None:
        """Closes the browser; waits for a running on_room. Refused (-15) inside a handler. A second call does nothing."""
        _outside("close()")
        code = self._native.mmn_browse_close(self._handle)
        if code not in (OK, NOT_INITIALIZED):
            _checked(code)
        _browsers.discard(self)


_browsers: set[Browser] = set()
"""The open browsers. They also keep their callbacks alive."""


@atexit.register
def _close_browsers() -> None:
    for browser in list(_browsers):
        browser.close()


# -- the state that a room's members share

MAX_HELD_EVENTS = 1024
MAX_HELD_BYTES = 4 << 20
"""Limits of the events of actions that wait for on_action and load."""

MAX_KEY_BYTES = 64

_Result = TypeVar("_Result")
_ActionHandler = TypeVar("_ActionHandler", bound="Callable[[Action], object]")
_LoadHandler = TypeVar("_LoadHandler", bound=Callable[[bytes], object])
_PropertyHandler = TypeVar("_PropertyHandler", bound=Callable[[PropertyChanged], object])
_ActionEvent = Union[StateReset, RoomAction, RolledBack, SnapshotWanted]


@dataclasses.dataclass(frozen=True)
class Action:
    """An action of a member, which the hosts of all members receive in one order."""

    author: str
    """The member that submitted it, which may have left since."""
    type: int
    """The author's message type, 0x0100 or higher."""
    data: bytes
    """The action."""
    index: int
    """Index of its entry. Within a history, entries have rising indexes."""
    time_ms: int
    """Time of its entry, in milliseconds since the room's first one; 0 in on_rolled_back."""
    request: int
    """Request.number of submit(), if this node is the author; else 0."""

    @property
    def text(self) -> str:
        """`data` as UTF-8; bytes that are none become U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def mine(self) -> bool:
        """Whether this member submitted it."""
        return self.request != 0


@dataclasses.dataclass(frozen=True)
class Property:
    """A property of the room's state."""

    value: bytes
    owner: str | None
    """Its owner; None if it has none."""
    version: int
    """The index of the entry that changed it last, for PropertyChange.expected_version."""
    flags: int
    """The sum of PROPERTY_OWNER_ONLY, PROPERTY_DIES_WITH_OWNER and PROPERTY_FALLS_TO_LEADER, as far as it has them."""


@dataclasses.dataclass(frozen=True)
class PropertyChange:
    """A change of one property, for set_properties()."""

    key: str
    """The name of the property: 1 to 64 bytes without control characters."""
    value: Bytes | None = None
    """None keeps the value; a new property then has an empty one."""
    owner: str | None = None
    """The id of its new owner, which must be in the room; "" is no owner. None keeps the owner."""
    expected_version: int = ANY_VERSION
    """The version that the property must have: ANY_VERSION, 0 if it must not exist, or that of a Property or PropertyChanged."""
    flags: int = 0
    """The sum of PROPERTY_OWNER_ONLY and one of PROPERTY_DIES_WITH_OWNER and PROPERTY_FALLS_TO_LEADER, or 0. They take effect if
    the property is new, and stay with it."""
    remove: bool = False
    """Whether the property goes."""


@dataclasses.dataclass(frozen=True)
class StateInfo:
    """Figures of the room's state at this member."""

    members: int
    """Members that count for a majority."""
    exclusive: bool
    """Whether a majority answered the last leader, or it was the room's first; else the room has forked."""
    pending: int
    """Requests of this host without a result."""
    history: int
    """The history of the state; 0 before the first."""
    ballot: int
    """The number of the leadership under which this member follows the state; 0 before the first."""
    index: int
    """The index of the last entry of which this host has received an event."""
    confirmed: int
    """The index up to which the entries are confirmed."""
    bytes: int
    """Upper estimate of the memory in use, in bytes."""


class Request(concurrent.futures.Future, Generic[_Result]):  # type: ignore[type-arg]
    """A request to the room's state, until its result is here; a future.

    `result(timeout)` waits, outside handlers; in poll mode another thread must poll meanwhile, or `done()` shows after a poll
    whether it has one. `await request` waits in a program with asyncio. It raises NetworkError if the room has refused the
    request, and with -1 if this member leaves before. The room keeps a request whose future is cancelled."""

    number = 0
    """The number that ActionResult and Action name; 0 if no request was necessary."""

    def result(self, timeout: float | None = None) -> _Result:
        self._outside()
        result: _Result = super().result(timeout)
        return result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._outside()
        return super().exception(timeout)

    def __await__(self) -> Generator[Any, None, _Result]:
        import asyncio

        result: _Result = yield from asyncio.wrap_future(self).__await__()
        return result

    def _outside(self) -> None:
        if not self.done() and _is_in_a_handler():
            raise NetworkError(WOULD_DEADLOCK, "result() was called inside a handler; use add_done_callback()")


class RoomState(Mapping[str, bytes]):
    """The state that the members of a room share: actions in one order, and properties. It survives the loss of any leader.

        state = room.state

        @state.on_action
        def _(action):
            chat.append(f"{action.author}: {action.text}")

        state.save = lambda: json.dumps(chat).encode()

        @state.load
        def _(data):
            chat[:] = json.loads(data or b"[]")

        state.submit(SAY, b"hello")
        state["map"] = b"forest"

    A program changes its own state inside on_action and load alone, in all members alike. In poll mode set the handlers before the
    first poll(). Otherwise the actions wait until both on_action and load are set, up to 1024 of them. Handlers run where those of
    the room do.

    The mapping has the properties as of the last event. A change shows once the room has confirmed it, like everyone's.
    """

    def __init__(self, room: _Calls, lock: threading.Lock, waits: bool) -> None:
        """`lock` is held while a handler of the room runs. `waits`: whether events may come before the program has set its
        handlers."""
        self._room = room
        self._lock = lock
        self._waits = waits
        self._action: Callable[[Action], object] | None = None
        self._load: Callable[[bytes], object] | None = None
        self._rolled_back: Callable[[Action], object] | None = None
        self._property: Callable[[PropertyChanged], object] | None = None
        self._held: list[_ActionEvent] = []
        self._held_bytes = 0
        self._has_discarded = False
        self._requests: dict[int, tuple[Request[Any], Callable[[ActionResult], Any]]] = {}
        # Held while a request is under way to the library, whose result may come earlier than its number.
        self._submitting = threading.Lock()
        self._closed = False
        self.save: Callable[[], Bytes] | None = None
        """Returns the program's state as bytes, for a newcomer's load(). Without it other members are asked."""

    # -- actions

    def on_action(self, handler: _ActionHandler) -> _ActionHandler:
        """Receives each action of each member once, this one's too; in all members in the same order. A decorator."""
        self._set("_action", handler)
        return handler

    def load(self, handler: _LoadHandler) -> _LoadHandler:
        """Receives the bytes of another member's `save`, with which the program replaces its state; b"" is the initial state. A
        decorator."""
        self._set("_load", handler)
        return handler

    def on_rolled_back(self, handler: _ActionHandler) -> _ActionHandler:
        """Receives each action that a merge of two parts of the room has undone, before load() and before anything else. The program
        may submit it again. A decorator."""
        self._set("_rolled_back", handler)
        return handler

    def submit(self, type: int, data: Bytes = b"") -> Request[ActionResult]:
        """Submits an action of at most 16 KiB, with a type of 0x0100 or higher. The library keeps it over losses of the leader."""
        number = ctypes.c_uint64()
        return self._request(
            lambda: self._room._do("mmn_submit", data=data, type=type, request=ctypes.byref(number)), number, _confirmed
        )

    # -- properties

    def on_property(self, handler: _PropertyHandler) -> _PropertyHandler:
        """Receives each change of a property; one that is set later than the first event first receives all properties. A
        decorator."""
        with self._unless_in_a_handler():
            if self._waits:
                for key, value in self.properties().items():
                    with _in_a_handler():
                        handler(PropertyChanged(key, value.value, value.owner, value.version, True, None, value.version, 0))
            self._property = handler
        return handler

    def find(self, key: str) -> Property | None:
        """The property, or None if the room has none with this name."""
        info = _MmnPropertyInfo(struct_size=ctypes.sizeof(_MmnPropertyInfo))
        address = self._room._ask("mmn_property", key=key, info=ctypes.byref(info))
        if address is None:
            # NULL also stands for an error, and a success leaves an earlier error of the thread in place.
            if not (self._room.is_open and _is_key(key)):
                _checked(self._room._native.mmn_last_error_code())
            return None
        owner = (info.owner or b"").decode("utf-8")
        return Property(ctypes.string_at(address, info.length), owner or None, info.version, info.flags)

    def keys_of(self, owner: str | None = None) -> list[str]:
        """The names of the properties that a member owns, or of all, sorted."""
        names = self._room._name("mmn_property_keys", owner=_NONE if owner is None else owner)
        if names is None:
            _checked(self._room._native.mmn_last_error_code())
        return names.split("\n") if names else []

    def properties(self, owner: str | None = None) -> dict[str, Property]:
        """The properties that a member owns, or all, by name."""
        found = ((key, self.find(key)) for key in self.keys_of(owner))
        return {key: value for key, value in found if value is not None}

    def __getitem__(self, key: str) -> bytes:
        found = self.find(key)
        if found is None:
            raise KeyError(key)
        return found.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_of())

    def __len__(self) -> int:
        return len(self.keys_of())

    def __setitem__(self, key: str, value: Bytes) -> None:
        """Sets a property, whatever its version. set() returns the request."""
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        """Removes a property, whatever its version; KeyError if this member knows none."""
        if self.find(key) is None:
            raise KeyError(key)
        self.remove(key)

    def set(self, key: str, value: Bytes, expected_version: int = ANY_VERSION) -> Request[ActionResult]:
        """Sets a property, which keeps its owner."""
        return self.set_properties([PropertyChange(key, value, expected_version=expected_version)])

    def remove(self, key: str, expected_version: int = ANY_VERSION) -> Request[ActionResult]:
        return self.set_properties([PropertyChange(key, expected_version=expected_version, remove=True)])

    def set_properties(self, changes: Iterable[PropertyChange]) -> Request[ActionResult]:
        """Makes 1 to 32 changes of properties, all or none. The result raises NetworkError with CONFLICT if a property has another
        version than expected, or a new owner is not in the room; with STATE_FULL; or with REJECTED if another member owns a property
        that is PROPERTY_OWNER_ONLY."""
        return self._change(changes, _confirmed)

    def claim(self, key: str, take: bool = False) -> Request[bool]:
        """Makes this member the owner of a property, which comes into being if need be. The result is whether it has succeeded: of
        several members that claim it at a time, one does. False if another member owns it; with `take`, it is taken from that
        member. The leader owns it when its owner leaves."""
        found = self.find(key)
        mine = self._room.peer_id
        if found is not None and (found.owner == mine or (found.owner is not None and not take)):
            request: Request[bool] = Request()
            request.set_result(found.owner == mine)
            return request
        version = 0 if found is None else found.version
        return self._change([PropertyChange(key, None, mine, version, PROPERTY_FALLS_TO_LEADER)], _has_won)

    def release(self, key: str) -> Request[bool]:
        """Leaves a property without an owner. The result is False if this member does not own it."""
        found = self.find(key)
        if found is None or found.owner != self._room.peer_id:
            request: Request[bool] = Request()
            request.set_result(False)
            return request
        return self._change([PropertyChange(key, None, "", found.version)], _has_won)

    @property
    def me(self) -> OwnProperties:
        """This member's own properties, which it alone changes, and which go when it leaves: state.me["ready"] = b"1"."""
        return OwnProperties(self, self._room.peer_id)

    def of(self, peer_id: str) -> MemberProperties:
        """Another member's own properties: state.of("bob").get("ready")."""
        return MemberProperties(self, peer_id)

    @property
    def info(self) -> StateInfo:
        figures = _MmnStateInfo(struct_size=ctypes.sizeof(_MmnStateInfo))
        self._room._do("mmn_state_info", info=ctypes.byref(figures))
        values = {field.name: getattr(figures, field.name) for field in dataclasses.fields(StateInfo)}
        return StateInfo(**{**values, "exclusive": figures.exclusive != 0})

    # -- internals

    def _unless_in_a_handler(self) -> contextlib.AbstractContextManager[Any]:
        # A handler of another room may be what this room's handler waits for.
        return contextlib.nullcontext() if _is_in_a_handler() else self._lock

    def _set(self, name: str, handler: Callable[..., object]) -> None:
        if self._has_discarded:
            raise NetworkError(
                NOT_SUPPORTED, "actions have been discarded: set on_action and load as soon as the room is open, or use poll mode"
            )
        is_in_a_handler = _is_in_a_handler()
        with self._unless_in_a_handler():
            setattr(self, name, handler)
            if not is_in_a_handler:
                self._release_held()

    def _request(
        self, call: Callable[[], object], number: ctypes.c_uint64, finish: Callable[[ActionResult], _Result]
    ) -> Request[_Result]:
        request: Request[_Result] = Request()
        with self._submitting:
            call()
            request.number = number.value
            self._requests[number.value] = (request, finish)
            closed = self._closed
        if closed:
            self._close()
        return request

    def _change(
        self, changes: Iterable[PropertyChange], finish: Callable[[ActionResult], _Result]
    ) -> Request[_Result]:
        given = list(changes)
        native = (_MmnPropertyChange * len(given))()
        kept: list[Any] = []
        for struct, change in zip(native, given):
            struct.struct_size = ctypes.sizeof(_MmnPropertyChange)
            struct.flags = _number("flags", change.flags, _LIMITS[ctypes.c_uint32])
            struct.expected_version = _number("expected_version", change.expected_version, _LIMITS[ctypes.c_uint64])
            struct.key = _name("key", change.key)
            struct.owner = None if change.owner is None else _name("owner", change.owner)
            if change.remove:
                struct.flags |= PROPERTY_REMOVE
            elif change.value is None:
                struct.flags |= PROPERTY_KEEP_VALUE
            else:
                content = _data("value", change.value)
                buffer = ctypes.create_string_buffer(content, len(content) or 1)
                kept.append(buffer)
                struct.value = ctypes.addressof(buffer)
                struct.length = len(content)
        number = ctypes.c_uint64()
        return self._request(
            lambda: self._room._do("mmn_set_properties", changes=native, count=len(given), request=ctypes.byref(number)),
            number,
            finish,
        )

    def _receive(self, event: Event) -> None:
        """Gives an event to the handlers. The caller has the lock, or calls one at a time."""
        if isinstance(event, (StateReset, RoomAction, RolledBack, SnapshotWanted)):
            self._release_held()
            if self._waits and not (self._action and self._load):
                self._hold(event)
            else:
                self._give(event)
        elif isinstance(event, PropertyChanged):
            if self._property is not None:
                with _in_a_handler():
                    self._property(event)
        elif isinstance(event, ActionResult):
            with self._submitting:
                request, finish = self._requests.pop(event.request, (None, None))
            if request is not None and finish is not None:
                self._finish(request, finish, event)

    def _finish(self, request: Request[Any], finish: Callable[[ActionResult], Any], event: ActionResult) -> None:
        # Its callbacks are the program's.
        with _in_a_handler():
            if request.set_running_or_notify_cancel():
                try:
                    request.set_result(finish(event))
                except NetworkError as error:
                    request.set_exception(error)

    def _hold(self, event: _ActionEvent) -> None:
        if isinstance(event, SnapshotWanted) and not (self._action or self._load):
            self._answer(event, None)
            return
        if isinstance(event, StateReset):
            # It replaces what the actions before it have made.
            self._held.clear()
            self._held_bytes = 0
            self._has_discarded = False
        elif self._has_discarded:
            return
        self._held.append(event)
        self._held_bytes += len(getattr(event, "data", b""))
        if len(self._held) > MAX_HELD_EVENTS or self._held_bytes > MAX_HELD_BYTES:
            self._held.clear()
            self._has_discarded = True

    def _release_held(self) -> None:
        """Gives the handlers what waits for them, once they are set. The caller has the lock."""
        if self._held and self._action and self._load:
            held, self._held = self._held, []
            for event in held:
                self._give(event)

    def _give(self, event: _ActionEvent) -> None:
        if isinstance(event, SnapshotWanted):
            data = None
            if self.save is not None:
                with _in_a_handler():
                    data = _data("save()", self.save())
            with _in_a_handler():
                self._answer(event, data)
            return
        with _in_a_handler():
            if isinstance(event, StateReset):
                if self._load is not None:
                    self._load(event.snapshot)
            elif isinstance(event, RoomAction):
                if self._action is not None:
                    self._action(Action(event.author, event.type, event.data, event.index, event.time_ms, event.request))
            elif self._rolled_back is not None:
                self._rolled_back(Action(event.author, event.type, event.data, event.index, 0, event.request))

    def _answer(self, event: SnapshotWanted, data: bytes | None) -> None:
        """None declines."""
        length = 0 if data is None else len(data)
        code = self._room._native.mmn_provide_snapshot(self._room._handle, event.request, data, length)
        # The member that needed it may have left, or the room may have taken over another history.
        if code not in (OK, Code.PEER_NOT_FOUND, Code.SUPERSEDED, NOT_INITIALIZED):
            _checked(code)

    def _close(self) -> None:
        """No result comes any more."""
        with self._submitting:
            self._closed = True
            requests, self._requests = list(self._requests.values()), {}
        for request, _ in requests:
            if request.set_running_or_notify_cancel():
                request.set_exception(NetworkError(NOT_INITIALIZED, "the room was left before the request had a result"))


class MemberProperties(Mapping[str, bytes]):
    """A member's own properties, without the prefix "@id/" that they have in the room's state."""

    def __init__(self, state: RoomState, peer_id: str) -> None:
        self._state = state
        self._prefix = f"@{peer_id}/"
        self._id = peer_id

    def __getitem__(self, key: str) -> bytes:
        try:
            return self._state[self._prefix + key]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        owned = self._state.keys_of(self._id)
        return (key[len(self._prefix) :] for key in owned if key.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class OwnProperties(MemberProperties):
    """This member's own properties."""

    def __setitem__(self, key: str, value: Bytes) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        self[key]
        self.remove(key)

    def set(self, key: str, value: Bytes) -> Request[ActionResult]:
        """Sets a property that this member alone changes, and that goes when it leaves."""
        flags = PROPERTY_OWNER_ONLY | PROPERTY_DIES_WITH_OWNER
        return self._state.set_properties([PropertyChange(self._prefix + key, value, self._id, flags=flags)])

    def remove(self, key: str) -> Request[ActionResult]:
        return self._state.remove(self._prefix + key)


def _is_key(text: str) -> bool:
    has_controls = any(character < " " or "\x7f" <= character <= "\x9f" for character in text)
    return 0 < len(text.encode("utf-8")) <= MAX_KEY_BYTES and not has_controls


def _name(argument: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be a str, not {type(value).__name__}: {value!r}")
    return _text(argument, value)


def _confirmed(event: ActionResult) -> ActionResult:
    if event.code != OK:
        raise NetworkError(event.code, describe_error(event.code))
    return event


def _has_won(event: ActionResult) -> bool:
    if event.code in (Code.CONFLICT, Code.REJECTED):
        return False
    _confirmed(event)
    return True


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
        state: bool | StateOptions,
        lock: threading.Lock | None,
        **settled: int,
    ) -> None:
        """`lock` is held while a handler runs; None if events come later than the program's handlers. `settled`: options that do not
        depend on the program's."""
        self._native = load_library()
        # The library sets it before the first event.
        self._handle = ctypes.c_uint64()
        if options is None:
            options = NetworkOptions(dispatch_mode=DISPATCH_THREAD, discovery_mode=DISCOVERY_CONNECT)
        elif not isinstance(options, NetworkOptions):
            raise TypeError(f"options must be NetworkOptions, not {type(options).__name__}: {options!r}")

        # By peer and number; the library writes into them.
        self._buffers: dict[tuple[str, int], Any] = {}
        self._accepting = threading.Lock()

        def call(_: int | None, pointer: Any) -> None:
            with _in_a_handler():
                event = _event(pointer.contents)
                if isinstance(event, TransferResult):
                    self._buffers.pop((event.peer, event.transfer), None)
                receive(event)

        settings = _MmnOptions.from_buffer_copy(options)
        if state:
            chosen = StateOptions() if state is True else state
            if not isinstance(chosen, StateOptions):
                raise TypeError(f"state must be a bool or StateOptions, not {type(state).__name__}: {state!r}")
            settings.state = ctypes.cast(ctypes.pointer(chosen), ctypes.POINTER(_MmnStateOptions))
        self._callback = settings.on_event = MmnEventCallback(call)
        for name, value in settled.items():
            setattr(settings, name, value)
        self._polls = settings.dispatch_mode == DISPATCH_POLL
        self._state = RoomState(self, lock or threading.Lock(), waits=lock is not None and not self._polls) if settings.state else None
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
        if code == OK:
            self._buffers.clear()
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
    def public_address(self) -> str | None:
        """The address at which members on the internet see this one: the router's, behind a router. None if none does."""
        return self._name("mmn_public_address")

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

    def path(self, peer_id: str) -> LinkPath | None:
        """The path of the messages to and from a member: directly, or through another one. None without a link to it."""
        path: int = self._ask("mmn_peer_path", peer_id=peer_id)
        return None if path == PEER_NOT_FOUND else LinkPath(_checked(path))

    def carrier(self, peer_id: str) -> str | None:
        """The member that carries this one's packets to a member; None where the path is direct, and without a link to it."""
        return self._name("mmn_peer_carrier", peer_id=peer_id)

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

    def status(self, peer_id: str) -> PeerStatus:
        return PeerStatus(self._ask("mmn_peer_status", peer_id=peer_id))

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
    def election_strategy(self) -> ElectionStrategy:
        return ElectionStrategy(self._do("mmn_strategy"))

    def member_state(self, peer_id: str) -> MemberState:
        """With STRATEGY_SEEDED the state of a member, of this one, too; else MemberState.UNKNOWN."""
        return MemberState(self._ask("mmn_member_state", peer_id=peer_id))

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

    def simulate_preset(self, preset: str) -> None:
        """Simulates a bad network by name: "home", "mobile", "bad-wifi", "satellite"; "none" ends it."""
        self._do("mmn_simulate_preset", preset=preset)

    def show_card(self, card: RoomCard | None) -> None:
        """Shows a card of the room in the local network (Browser), in place of an earlier one; None takes it down. The leader alone
        shows its card, so set the same one at every member."""
        if card is not None and not isinstance(card, RoomCard):
            raise TypeError(f"card must be RoomCard, not {type(card).__name__}: {card!r}")
        self._do("mmn_show_card", card=None if card is None else ctypes.byref(card))

    @property
    def discovering(self) -> bool:
        """Whether this member is announced in the local network."""
        return bool(self._ask("mmn_is_announced"))

    def stats(self, peer_id: str) -> PeerStats:
        """Statistics of the link and the queue to a member."""
        figures = PeerStats()
        self._do("mmn_peer_stats", peer_id=peer_id, stats=ctypes.byref(figures))
        return figures

    @property
    def time_ms(self) -> int:
        """The room's time in milliseconds, the same at all members within `room_stats().room_time_error_us`. It never goes back.
        -1 when the room is closed."""
        time: int = self._ask("mmn_room_time_ms")
        return time

    def room_stats(self) -> RoomStats:
        """RoomStats: members without a link to this one, the broadcasts that they missed, and the error of `time_ms`."""
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

    @property
    def state(self) -> RoomState:
        """The state that the room's members share, if it was opened with `state`; else NetworkError with NOT_SUPPORTED (-16)."""
        if self._state is None:
            raise NetworkError(NOT_SUPPORTED, "the room has no state: open it with state=True, or with StateOptions")
        return self._state

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

    # -- transfers: bytes of up to 64 MiB to one member, below all messages

    def send_transfer(self, peer_id: str, data: Bytes, tag: Bytes = b"") -> int:
        """Offers a copy of `data` to a member, whose program receives TransferOffered with `tag` (at most 1024 bytes); returns the
        number of the transfer. One TransferResult follows at either end. -7 with too many, -8 beyond 64 MiB, -16 if the member's
        library has no transfers."""
        transfer = ctypes.c_uint64()
        self._do("mmn_send_transfer", peer_id=peer_id, data=data, tag=tag, transfer=ctypes.byref(transfer))
        return transfer.value

    def accept_transfer(self, peer_id: str, transfer: int, buffer: bytearray) -> None:
        """Takes an offered transfer into `buffer`, which the library fills: as long as the transfer, or longer. The program leaves
        it alone until TransferResult; with success it has the bytes."""
        memory = (ctypes.c_ubyte * len(buffer)).from_buffer(buffer)
        # Before the call: the result may come before it returns. Of two calls for one offer the library refuses one.
        with self._accepting:
            is_first = self._buffers.setdefault((peer_id, transfer), memory) is memory
            try:
                self._do(
                    "mmn_accept_transfer", peer_id=peer_id, transfer=transfer, buffer=ctypes.byref(memory), capacity=len(buffer)
                )
            except NetworkError:
                if is_first:
                    self._buffers.pop((peer_id, transfer), None)
                raise

    def accept_transfer_in_parts(self, peer_id: str, transfer: int) -> None:
        """Takes an offered transfer in parts: TransferPart for each, in order. The sender waits while the program takes none."""
        self._do("mmn_accept_transfer_in_parts", peer_id=peer_id, transfer=transfer)

    def cancel_transfer(self, peer_id: str, transfer: int) -> None:
        """Refuses an offered transfer, or cancels one at either end. Then the library no longer writes into its buffer."""
        self._do("mmn_cancel_transfer", peer_id=peer_id, transfer=transfer)

    def _dial(self, address: str) -> None:
        self._do("mmn_connect", address=address)


class Room(_Calls):
    """A room that this process is in; a context manager that leaves it.

    With `options` (NetworkOptions), handlers run in poll(), unless its dispatch_mode is DISPATCH_THREAD; without, on a thread of
    the library, and the library connects members in the local network.
    `on_event(Event)` receives all events; a program that uses it needs no other handler. `on_message(Message)`,
    `on_leader(str | None)`, `on_leadership(bool)`, `on_peer(str, status)` and `on_connection(ConnectionResult)` are optional.
    Handlers that are given here miss nothing. A later one first receives the present state, in poll() or on the thread that sets
    it: the leader, if one is known, and every connected peer. Reliable messages wait for their first handler, for up to 5 seconds, and slow their senders down.

    With `state` (True, or StateOptions, the same for all members) the members share a state: Room.state.

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
        on_peer: Callable[[str, PeerStatus], object] | None = None,
        on_connection: Callable[[ConnectionResult], object] | None = None,
        state: bool | StateOptions = False,
    ) -> None:
        # Held while a handler runs. A thread that replaces a handler waits for it, unless it is in a handler itself.
        self._lock = threading.Lock()
        self._handlers: dict[str, Callable[[Event], object]] = {}
        # Handlers that receive the present state first.
        self._new: dict[str, Callable[[Event], object]] = {}
        # The present state, as the events that began it.
        self._leader: list[Event] = []
        self._members: dict[str, list[Event]] = {}
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
        holds = {} if self._handlers.keys() & _TAKE_MESSAGES else {"hold_messages": 1}
        super().__init__(peer_id, session_id, options, self._receive, state, self._lock, **holds)

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
            if self._state is not None:
                self._state._close()

    def connect(self, address: str) -> None:
        """Dials "ip:port", "[v6]:port" or "name:port"; on_connection receives the outcome."""
        self._dial(address)

    def set_turn(self, servers: str | Iterable[str] | None) -> None:
        """Replaces the TURN servers and their credentials, as `turn` of NetworkOptions has them; None uses none from now on."""
        self._do("mmn_set_turn", servers=_NONE if servers is None else servers)

    def poll(self, max: int = 0x7FFFFFFF) -> int:
        """In poll mode, runs the handlers of up to `max` queued events, on the calling thread, and returns their number.
        Never waits. Refused inside a handler and while another thread polls (-15), and in thread mode (-3).

        KeyboardInterrupt and SystemExit of a handler, and a Ctrl+C meanwhile, are raised once these handlers have run. A second
        Ctrl+C interrupts the handler that runs."""
        _outside("poll()")
        with _polling():
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

    def on_peer(self, handler: Callable[[str, PeerStatus], object] | None) -> None:
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
        if receive is not None and name in _TAKE_MESSAGES:
            # Only now: a message that comes before the handler is new would pass it by.
            self._do("mmn_take_messages")

    def _receive(self, event: Event) -> None:
        with self._lock:
            self._greet()
            self._note(event)
            if self._state is not None:
                self._state._receive(event)
            for name in list(self._handlers):
                self._give(name, event)
            if self._state is not None:
                self._state._release_held()
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
        _raise_held()

    def _greet(self) -> None:
        """Gives new handlers the present state. The caller has the lock."""
        while self._new:
            name = next(iter(self._new))
            present = list(self._leader)
            for events in self._members.values():
                # on_peer is about connected ones.
                present += events if name != "peer" or len(events) == 1 else []
            receive = self._handlers[name] = self._new.pop(name)
            for event in present:
                if self._handlers.get(name) is receive:
                    self._give(name, event)

    def _note(self, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            # A leader that claims to lead again goes on to lead.
            goes_on = self._leader[1:] if event.leader == event.previous else []
            self._leader = [dataclasses.replace(event, previous=None), *goes_on] if event.leader else []
        elif isinstance(event, LeadershipGained):
            self._leader.append(event)
        elif isinstance(event, PeerJoined):
            self._members[event.peer] = [event]
        elif isinstance(event, PeerReconnecting):
            self._members[event.peer] = [*self._members.get(event.peer, [])[:1], event]
        elif isinstance(event, PeerReturned):
            del self._members.get(event.peer, [])[1:]
        elif isinstance(event, PeerLeft):
            self._members.pop(event.peer, None)


_TAKE_MESSAGES = {"event", "message"}
"""The handlers that receive messages. Until the first of them is set, messages wait in the library."""

# Functions that take an Event, for handlers that take something else.


def _on_message(
    general: Callable[[Message], object] | None, typed: dict[int, Callable[[Message], object]]
) -> Callable[[Event], object]:
    def receive(event: Event) -> None:
        if isinstance(event, Message):
            handler = typed.get(event.type, general)
            if handler is not None:
                handler(event)

    return receive


def _on_leader(handler: Callable[[str | None], object]) -> Callable[[Event], object]:
    def receive(event: Event) -> None:
        # Else only the claim to lead is another one.
        if isinstance(event, LeaderChanged) and event.leader != event.previous:
            handler(event.leader)

    return receive


def _on_leadership(handler: Callable[[bool], object]) -> Callable[[Event], object]:
    leads = False

    def receive(event: Event) -> None:
        nonlocal leads
        if isinstance(event, (LeadershipGained, LeadershipLost)):
            before, leads = leads, isinstance(event, LeadershipGained)
            if leads != before:
                handler(leads)

    return receive


def _on_peer(handler: Callable[[str, PeerStatus], object]) -> Callable[[Event], object]:
    connected: set[str] = set()

    def receive(event: Event) -> None:
        if isinstance(event, (PeerJoined, PeerReturned)):
            connected.add(event.peer)
            handler(event.peer, PeerStatus.CONNECTED)
        elif isinstance(event, (PeerReconnecting, PeerLeft)) and event.peer in connected:
            connected.discard(event.peer)
            handler(event.peer, PeerStatus.DISCONNECTED)

    return receive


def _on_connection(handler: Callable[[ConnectionResult], object]) -> Callable[[Event], object]:
    def receive(event: Event) -> None:
        if isinstance(event, ConnectionResult):
            handler(event)

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
