"""meta_mystia_network from Python: one room per process, over ctypes, without further dependencies.

    import meta_mystia_network as mmn

    with mmn.Room("alice", "tea", on_message=lambda m: print(m.sender, m.data)) as room:
        room.connect("192.168.1.20:40123")
        room.broadcast(b"hello")

Handlers run one at a time, in order, on a thread of the library, or, in poll mode (Room(..., options=NetworkOptions())),
inside Room.poll(), on the thread that calls it. They may call every method of the room except close() and poll().
An exception in a handler is printed and goes no further. Programs with asyncio use meta_mystia_network.aio instead.

The library comes from the environment variable MMN_LIBRARY, else from the directory of this file, as in the wheel, else from the
source tree (target/release), else from the system's search path.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Union

__all__ = [
    "ConnectionResult",
    "EtcdOptions",
    "Event",
    "FIRST_USER_TYPE",
    "GossipWindows",
    "Message",
    "NetworkConfig",
    "NetworkError",
    "NetworkEvent",
    "NetworkOptions",
    "PeerStats",
    "Room",
    "RoomStats",
    "SeededOptions",
    "SendOptions",
    "describe_error",
    "describe_leader_reason",
    "describe_member_state",
    "generate_identity_key",
    "gossip_windows",
    "load_library",
    "set_gossip_windows",
    "set_log",
]

# -- Generated from src/ffi by `make header`: do not edit.

ABI_VERSION = 11
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

MAX_PEER_ID_BYTES = 64
MAX_SESSION_ID_BYTES = 128

MIN_MESSAGE_TYPE = 256

PEER_CONNECTED = 0
PEER_DISCONNECTED = 1
PEER_RECONNECTING = 2
PEER_HANDSHAKING = 3

RECONNECT_RETRYING = 0
RECONNECT_RETURNED = 1
RECONNECT_GAVE_UP = 2

LOG_OFF = 0
LOG_ERROR = 1
LOG_WARN = 2
LOG_INFO = 3
LOG_DEBUG = 4
LOG_TRACE = 5

RECOVERY_HOLD = 0
RECOVERY_AUTO_ELECT = 1

DISCOVERY_OFF = 0
DISCOVERY_REPORT = 1
DISCOVERY_CONNECT = 2

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

STRATEGY_RAFT = 0
STRATEGY_GOSSIP = 1
STRATEGY_SEEDED = 2
STRATEGY_ETCD = 3

SEEDED_STRICT_START = 1
SEEDED_NEVER_ALONE = 2
SEEDED_PROFILE_WAN = 0
SEEDED_PROFILE_LAN = 1

DELIVERY_RELIABLE_ORDERED = 0
DELIVERY_RELIABLE_UNORDERED = 1
DELIVERY_UNRELIABLE = 2
DELIVERY_SEQUENCED = 3

SEND_PARTIAL = 1

MAX_PRIORITY = 3

KICK_BAN = 1

GOSSIP_STRICT_LOWEST = 1

MAX_SECRET_BYTES = 1024

IDENTITY_KEY_BYTES = 48

MAX_SEEDS = 32
MAX_ETCD_ENDPOINTS = 16
MAX_PROCLAIMED_BYTES = 4096
MAX_LOCK_NAME_BYTES = 128
MAX_QUORUM_VOTERS = 64

EVENT_JOINED = 1
EVENT_RECONNECTING = 2
EVENT_RETURNED = 3
EVENT_LEFT = 4
EVENT_MESSAGE = 5
EVENT_SET_LEADER_RESULT = 6
EVENT_ROOM_ENDED = 7
EVENT_LEADER_CHANGED = 8
EVENT_LEADERSHIP_GAINED = 9
EVENT_LEADERSHIP_LOST = 10
EVENT_JOIN_REQUEST = 11
EVENT_DISCOVERED = 12
EVENT_CONNECTION_RESULT = 13
EVENT_SLOW_PEER = 14
EVENT_DATA_DROPPED = 15
EVENT_MEMBER_STATE = 16
EVENT_LOCK_RESULT = 17
EVENT_LOCK_LOST = 18
EVENT_UNLINKED_PEER = 22
EVENT_BAN_DROPPED = 23
EVENT_DISCOVERY_REFUSED = 21
EVENT_JOIN_WITHDRAWN = 24
EVENT_HOST_SILENT = 19
EVENT_HOST_BACK = 20
EVENT_NO_ROOM_FOUND = 25

FOUND_IN_LOCAL_NETWORK = 1
FOUND_AS_SEED = 2

MEMBER_INIT = 0
MEMBER_JOINING = 1
MEMBER_ACTIVE = 2
MEMBER_UNREACHABLE = 3
MEMBER_LEAVING = 4
MEMBER_REMOVED = 5

LEADER_UNKNOWN = 0
LEADER_ELECTED = 1
LEADER_ASSIGNED = 2
LEADER_TRANSFERRED = 3
LEADER_FOUND = 4
LEADER_LOST = 5
LEADER_LEFT = 6
LEADER_RESIGNED = 7

LEFT_LEFT = 0
LEFT_LOST = 1
LEFT_DISCONNECTED = 2
LEFT_REPLACED = 3
LEFT_KICKED = 4
LEFT_VIOLATION = 5
LEFT_GAVE_UP = 6
LEFT_ROOM_ENDED = 7

DROPPED_SENT = 0
DROPPED_RECEIVED = 1

END_KICKED = 0
END_HOST_LEFT = 1
END_HOST_LOST = 2
END_DISCONNECTED = 3
END_DUPLICATE_ID = 4

PATH_DIRECT = 0
PATH_THROUGH_LEADER = 1


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


class _SendOptions(ctypes.Structure):
    struct_size: int
    delivery: int
    channel: int
    priority: int
    flags: int
    ttl_ms: int
    reserved: int
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

ReceiveCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)
LeaderChangedCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
LeadershipCallback = ctypes.CFUNCTYPE(None, ctypes.c_uint8)
PeerStatusCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int32)
ConnectionResultCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_int32)
ReconnectCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8)
DropCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EventCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_NetworkEvent))
LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)

# Name: (result, arguments).
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "GetAbiVersion": (ctypes.c_uint32, ()),
    "GetLibraryVersion": (_TEXT, ()),
    "GetDefaultNetworkOptions": (ctypes.c_int32, (ctypes.POINTER(_NetworkOptions),)),
    "InitializeNetworkWithOptions": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(_NetworkOptions))),
    "RegisterReceiveCallback": (ctypes.c_int32, (ReceiveCallback,)),
    "RegisterLeaderChangedCallback": (ctypes.c_int32, (LeaderChangedCallback,)),
    "RegisterLeadershipCallback": (ctypes.c_int32, (LeadershipCallback,)),
    "RegisterPeerStatusCallback": (ctypes.c_int32, (PeerStatusCallback,)),
    "RegisterConnectionResultCallback": (ctypes.c_int32, (ConnectionResultCallback,)),
    "RegisterReconnectCallback": (ctypes.c_int32, (ReconnectCallback,)),
    "RegisterEventHandler": (ctypes.c_int32, (EventCallback, ctypes.c_void_p, DropCallback)),
    "PollEvents": (ctypes.c_int32, (ctypes.c_int32,)),
    "InitializeNetwork": (ctypes.c_int32, (_TEXT, _TEXT)),
    "InitializeNetworkWithConfig": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(_NetworkConfig))),
    "ShutdownNetwork": (ctypes.c_int32, ()),
    "IsNetworkInitialized": (ctypes.c_uint8, ()),
    "IsMdnsActive": (ctypes.c_uint8, ()),
    "GetLastErrorCode": (ctypes.c_int32, ()),
    "GetLastErrorMessage": (_TEXT, ()),
    "DescribeError": (_TEXT, (ctypes.c_int32,)),
    "ConnectToPeer": (ctypes.c_int32, (_TEXT,)),
    "DisconnectPeer": (ctypes.c_int32, (_TEXT,)),
    "DisconnectPeerEx": (ctypes.c_int32, (_TEXT, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "GetLocalAddr": (_TEXT, ()),
    "GetLocalAddresses": (_TEXT, ()),
    "GetLocalPeerId": (_TEXT, ()),
    "GetSessionId": (_TEXT, ()),
    "GetPeerCount": (ctypes.c_int32, ()),
    "GetPeerList": (_TEXT, ()),
    "GetMembers": (_TEXT, ()),
    "GetPeerAddress": (_TEXT, (_TEXT,)),
    "GetPeerIndex": (ctypes.c_uint32, (_TEXT,)),
    "GetPeerIdByIndex": (_TEXT, (ctypes.c_uint32,)),
    "GetPeerRTT": (ctypes.c_int32, (_TEXT,)),
    "GetPeerStatus": (ctypes.c_int32, (_TEXT,)),
    "GenerateIdentityKey": (ctypes.c_int32, (ctypes.POINTER(ctypes.c_uint8), ctypes.c_int32)),
    "GetIdentityFingerprint": (_TEXT, ()),
    "GetPeerFingerprint": (_TEXT, (_TEXT,)),
    "SetAutoReconnect": (ctypes.c_int32, (ctypes.c_uint8,)),
    "IsAutoReconnectEnabled": (ctypes.c_uint8, ()),
    "KickPeer": (ctypes.c_int32, (_TEXT, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "KickPeerEx": (ctypes.c_int32, (_TEXT, ctypes.c_uint32, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "UnbanPeer": (ctypes.c_int32, (_TEXT,)),
    "SetMaxPeers": (ctypes.c_int32, (ctypes.c_uint32,)),
    "SetJoinPayload": (ctypes.c_int32, (_BYTES, ctypes.c_int32)),
    "EnableJoinRequests": (ctypes.c_int32, (ctypes.c_uint8,)),
    "AcceptJoin": (ctypes.c_int32, (ctypes.c_uint64,)),
    "RejectJoin": (ctypes.c_int32, (ctypes.c_uint64, ctypes.c_int32, _BYTES, ctypes.c_int32)),
    "SetLeader": (ctypes.c_int32, (_TEXT,)),
    "EnableAutoLeaderElection": (ctypes.c_int32, (ctypes.c_uint8,)),
    "SetLeaderEligible": (ctypes.c_int32, (ctypes.c_uint8,)),
    "TransferLeadership": (ctypes.c_int32, (_TEXT,)),
    "YieldLeadership": (ctypes.c_int32, ()),
    "SetElectionPriority": (ctypes.c_int32, (ctypes.c_int32,)),
    "GetLeaderTerm": (ctypes.c_int64, ()),
    "GetLeaderEpoch": (ctypes.c_int64, ()),
    "GetElectionStrategy": (ctypes.c_int32, ()),
    "GetCurrentLeader": (_TEXT, ()),
    "IsLeader": (ctypes.c_uint8, ()),
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
    "GetDefaultSeededOptions": (ctypes.c_int32, (ctypes.c_uint32, ctypes.POINTER(_SeededOptions))),
    "GetMemberState": (ctypes.c_int32, (_TEXT,)),
    "GetClusterVersion": (ctypes.c_int64, ()),
    "GetDefaultEtcdOptions": (ctypes.c_int32, (ctypes.POINTER(_EtcdOptions),)),
    "GetFencingToken": (ctypes.c_int64, ()),
    "Proclaim": (ctypes.c_int32, (_TEXT,)),
    "AcquireLock": (ctypes.c_int32, (_TEXT, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64))),
    "TryLock": (ctypes.c_int32, (_TEXT, ctypes.POINTER(ctypes.c_uint64))),
    "ReleaseLock": (ctypes.c_int32, (_TEXT,)),
    "BroadcastMessage": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SendToPeer": (ctypes.c_int32, (_TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SendToLeader": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SendFromLeader": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "ForwardMessage": (ctypes.c_int32, (_TEXT, _TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)),
    "SetCentralizedMode": (ctypes.c_int32, (ctypes.c_uint8,)),
    "IsCentralizedMode": (ctypes.c_uint8, ()),
    "SetCentralizedAutoForward": (ctypes.c_int32, (ctypes.c_uint8,)),
    "IsCentralizedAutoForward": (ctypes.c_uint8, ()),
    "SetCompressionThreshold": (ctypes.c_int32, (ctypes.c_uint32,)),
    "SendToPeerEx": (ctypes.c_int32, (_TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8, ctypes.POINTER(_SendOptions))),
    "BroadcastEx": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8, ctypes.POINTER(_SendOptions))),
    "GetMaxDatagramSize": (ctypes.c_int32, (_TEXT,)),
    "GetPeerStats": (ctypes.c_int32, (_TEXT, ctypes.POINTER(_PeerStats))),
    "GetRoomStats": (ctypes.c_int32, (ctypes.POINTER(_RoomStats),)),
    "SetNetworkSimulation": (ctypes.c_int32, (ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)),
    "EnableLogging": (ctypes.c_int32, (ctypes.c_uint8,)),
    "SetLogLevel": (ctypes.c_int32, (ctypes.c_int32,)),
    "RegisterLogCallback": (ctypes.c_int32, (ctypes.c_int32, LogCallback, ctypes.c_void_p, DropCallback)),
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


class NetworkError(Exception):
    """A call was refused. `code` is one of the codes above; the text comes from the library."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


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


class Event(NamedTuple):
    """An event of the room. `kind` is one of EVENT_..., and determines which other fields are set."""

    kind: int
    peer: str
    """The member that the event concerns; "" if there is none."""
    other: str
    """An address; for a change of the leader, the previous leader; or a lock."""
    data: bytes
    """The message; the payload of a join request; the data of a kick or a rejection."""
    reason: int
    """One of LEFT_..., LEADER_..., END_... or MEMBER_..., or the number passed to reject_join()."""
    code: int
    """One of the codes above, or the number passed to kick()."""
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
    """EVENT_MESSAGE: one of DELIVERY_..."""
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


def _default_options() -> NetworkOptions:
    """NetworkOptions with the library's defaults."""
    options = NetworkOptions.__new__(NetworkOptions)
    options.struct_size = ctypes.sizeof(NetworkOptions)
    code = load_library().GetDefaultNetworkOptions(ctypes.byref(options))
    if code < 0:
        raise NetworkError(code, describe_error(code))
    return options


def _set(struct: ctypes.Structure, values: dict[str, Any]) -> None:
    unknown = set(values) - {field[0] for field in struct._fields_}
    if unknown:
        # A ctypes structure would silently accept any attribute, and the setting would have no effect.
        raise TypeError(f"{type(struct).__name__} has no field {', '.join(sorted(unknown))}")
    for name, value in values.items():
        setattr(struct, name, value)


class NetworkConfig(_NetworkConfig):
    """`NetworkConfigFFI`, 44 bytes. Starts with the defaults of the library."""

    def __init__(self, **fields: int) -> None:
        super().__init__()
        ctypes.memmove(ctypes.byref(self), ctypes.byref(_default_options().config), ctypes.sizeof(self))
        _set(self, fields)


class NetworkOptions(_NetworkOptions):
    """`NetworkOptions`: all settings. Starts with the library's defaults, but in poll mode: handlers run in Room.poll(). Text and
    bytes are set as str and bytes: `NetworkOptions(bind_address="127.0.0.1", secret=b"...")`. The voters of a static quorum are a
    str with one per line, or a list of str. `seeded` is SeededOptions, for STRATEGY_SEEDED, and `etcd` is EtcdOptions, for
    STRATEGY_ETCD.
    """

    def __init__(
        self,
        *,
        bind_address: str | None = None,
        secret: bytes | None = None,
        identity_key: bytes | None = None,
        state_directory: str | os.PathLike[str] | None = None,
        trace_path: str | os.PathLike[str] | None = None,
        quorum_roster: str | Iterable[str] | None = None,
        seeded: SeededOptions | None = None,
        etcd: EtcdOptions | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        ctypes.pointer(self)[0] = _default_options()
        self.dispatch_mode = DISPATCH_POLL
        _set(self, fields)
        self.bind_address = _encode(bind_address)
        self.state_directory = _encode_path(state_directory)
        self.trace_path = _encode_path(trace_path)
        self.quorum_roster = _encode(_lines(quorum_roster))
        # ctypes accepts a pointer to the struct itself, but not to its subclass.
        self.seeded = ctypes.cast(ctypes.pointer(seeded), ctypes.POINTER(_SeededOptions)) if seeded is not None else None
        self.etcd = ctypes.cast(ctypes.pointer(etcd), ctypes.POINTER(_EtcdOptions)) if etcd is not None else None
        # The pointers do not keep their targets alive.
        self._kept = [
            seeded,
            etcd,
            self._point("secret", secret or b""),
            self._point("identity_key", identity_key or b""),
        ]

    def _point(self, name: str, content: bytes) -> Any:
        if not content:
            return None
        buffer = (ctypes.c_uint8 * len(content)).from_buffer_copy(content)
        setattr(self, name, ctypes.addressof(buffer))
        setattr(self, name + "_length", len(content))
        return buffer


class SeededOptions(_SeededOptions):
    """`SeededOptions`: the settings of STRATEGY_SEEDED, for NetworkOptions. Starts with the defaults of a profile. `seeds`, the
    addresses of the seeds, are a list of str, or a str with one per line: `SeededOptions(["one.example.org:4433"])`.
    """

    def __init__(
        self, seeds: str | Iterable[str] | None = None, *, profile: int = 0, is_seed: bool = False, **fields: int
    ) -> None:
        super().__init__(struct_size=ctypes.sizeof(SeededOptions))
        code = load_library().GetDefaultSeededOptions(profile, ctypes.byref(self))
        if code < 0:
            raise NetworkError(code, load_library().GetLastErrorMessage().decode("utf-8", "replace"))
        _set(self, fields)
        self.is_seed = 1 if is_seed else 0
        self.seeds = _encode(_lines(seeds))


class EtcdOptions(_EtcdOptions):
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
        super().__init__(struct_size=ctypes.sizeof(EtcdOptions))
        code = load_library().GetDefaultEtcdOptions(ctypes.byref(self))
        if code < 0:
            raise NetworkError(code, load_library().GetLastErrorMessage().decode("utf-8", "replace"))
        _set(self, fields)
        self.endpoints = _encode(_lines(endpoints))
        self.prefix = _encode(prefix)
        self.address = _encode(address)
        self.ca_file = _encode_path(ca_file)
        self.cert_file = _encode_path(cert_file)
        self.key_file = _encode_path(key_file)
        self.user = _encode(user)
        self.password = _encode(password)


class PeerStats(_PeerStats):
    """`PeerStats`: statistics of one peer. Its size is set already."""

    def __init__(self) -> None:
        super().__init__(struct_size=ctypes.sizeof(PeerStats))


class RoomStats(_RoomStats):
    """`RoomStats`: statistics of the room at this member. Its size is set already."""

    def __init__(self) -> None:
        super().__init__(struct_size=ctypes.sizeof(RoomStats))


class SendOptions(_SendOptions):
    """`SendOptions`: delivery of a message. `SendOptions(DELIVERY_SEQUENCED, key=unit)`. Its size is set already."""

    def __init__(self, delivery: int = 0, channel: int = 0, priority: int = 1, ttl_ms: int = 0, key: int = 0) -> None:
        super().__init__(
            struct_size=ctypes.sizeof(SendOptions),
            delivery=delivery,
            channel=channel,
            priority=priority,
            ttl_ms=ttl_ms,
            key=key,
        )

    def _with_flags(self, flags: int) -> Any:
        copy = SendOptions.from_buffer_copy(self)
        copy.flags = flags
        return ctypes.byref(copy)


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
            for name, (result, arguments) in FUNCTIONS.items():
                function = getattr(library, name)
                function.restype = result
                function.argtypes = arguments
            _library = library
        return _library


def describe_error(code: int) -> str:
    """The library's name for a code."""
    text: bytes = load_library().DescribeError(code)
    return text.decode("utf-8")


def generate_identity_key() -> bytes:
    """A new private key for NetworkOptions.identity_key. A host that keeps it is the same member at every start."""
    key = (ctypes.c_uint8 * IDENTITY_KEY_BYTES)()
    library = load_library()
    if library.GenerateIdentityKey(key, len(key)) < 0:
        raise NetworkError(library.GetLastErrorCode(), library.GetLastErrorMessage().decode("utf-8"))
    return bytes(key)


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else text.decode("utf-8")


def describe_leader_reason(reason: int) -> str:
    """One of LEADER_... in a word."""
    for name, value in globals().items():
        if name.startswith("LEADER_") and value == reason:
            return name.removeprefix("LEADER_").lower()
    return "unknown"


def describe_member_state(state: int) -> str:
    """One of MEMBER_... in a word."""
    for name, value in globals().items():
        if name.startswith("MEMBER_") and value == state:
            return name.removeprefix("MEMBER_").lower()
    return "unknown"


class GossipWindows(NamedTuple):
    """The times of STRATEGY_GOSSIP, in milliseconds."""

    startup_grace_period: int
    """Longest wait at the start for the number of members to settle; 15000."""
    membership_sample_interval: int
    """Interval between samples of that number; 1000."""
    leader_alive_threshold: int
    """Time for which a member waits for a declaration of the leader before it proposes itself; 10000."""
    leader_election_duration: int
    """Time for which it then collects the proposals of others; 5000."""


def gossip_windows() -> GossipWindows:
    """The windows of this process, in force or not."""
    native = load_library()
    return GossipWindows(
        native.GetStartupGracePeriod(),
        native.GetMembershipSampleInterval(),
        native.GetLeaderAliveThreshold(),
        native.GetLeaderElectionDuration(),
    )


def set_gossip_windows(windows: GossipWindows) -> None:
    """Sets the windows of the process: they apply from the next window of the room on, and to later rooms. The same for all
    members.

    set_gossip_windows(gossip_windows()._replace(leader_alive_threshold=500)) changes one.
    """
    native = load_library()
    for setter, value in zip(
        (
            native.SetStartupGracePeriod,
            native.SetMembershipSampleInterval,
            native.SetLeaderAliveThreshold,
            native.SetLeaderElectionDuration,
        ),
        windows,
    ):
        code = setter(value)
        if code < 0:
            raise NetworkError(code, native.GetLastErrorMessage().decode("utf-8", "replace"))


_log_callback: Any = None


def set_log(handler: Callable[[int, str], object] | None, level: int = LOG_INFO) -> None:
    """Passes the library's log up to `level` to `handler(level, text)`; None removes it. It runs on any thread, and may call only
    queries."""
    global _log_callback

    def guarded(_: int | None, record_level: int, message: bytes) -> None:
        if handler is None:
            return
        try:
            handler(record_level, message.decode("utf-8", "replace"))
        except BaseException:
            traceback.print_exc(file=sys.stderr)

    callback = LogCallback() if handler is None else LogCallback(guarded)
    code = load_library().RegisterLogCallback(level, callback, None, DropCallback())
    if code < 0:
        raise NetworkError(code, load_library().GetLastErrorMessage().decode("utf-8", "replace"))
    # Replaced only now: until the library returned, the old callback could still be running.
    _log_callback = callback


class _Calls:
    """An open room and the calls that every kind of room has; `Room` and `aio.Room` add the reception of events."""

    def __init__(self, peer_id: str, session_id: str, config: NetworkConfig | None, options: NetworkOptions | None) -> None:
        self._native = load_library()
        self._open = False
        # A forked child has this object, but not its room.
        self._process = os.getpid()
        # ctypes frees a callback's code with its last Python reference; the library's copy of the pointer does not
        # count.
        self._callbacks: dict[str, Any] = {}
        self._retired: dict[str, list[Any]] = {}
        self._inside = threading.local()
        self._check(self._initialize(_encode(peer_id), _encode(session_id), config, options))
        self._open = True
        # A room that is still open when the interpreter ends would call into freed code.
        atexit.register(self._leave_at_exit)

    @property
    def peer_id(self) -> str:
        return self._text(self._native.GetLocalPeerId())

    @property
    def session_id(self) -> str:
        return self._text(self._native.GetSessionId())

    @property
    def local_address(self) -> str:
        """An address that another member can pass to connect()."""
        return self._text(self._native.GetLocalAddr())

    @property
    def local_addresses(self) -> list[tuple[str, str]]:
        """All such addresses, the likeliest first, each with the name of its interface."""
        lines = (line.partition(" ") for line in self._text(self._native.GetLocalAddresses()).split("\n"))
        return [(address, interface) for address, _, interface in lines]

    @property
    def peers(self) -> list[str]:
        """The ids of the connected members, without this one, sorted."""
        text = self._text(self._native.GetPeerList())
        return text.split("\n") if text else []

    @property
    def members(self) -> list[str]:
        """The ids of the connected and the reconnecting members, sorted."""
        text = self._text(self._native.GetMembers())
        return text.split("\n") if text else []

    def index(self, peer_id: str) -> int:
        """The index of a member: a number from 1, from its EVENT_JOINED to its EVENT_LEFT, which no earlier member had. 0 for others."""
        return int(self._native.GetPeerIndex(_encode(peer_id)))

    def peer_at(self, index: int) -> str | None:
        """The member with this index; None for none."""
        return _decoded(self._native.GetPeerIdByIndex(index))

    def address(self, peer_id: str) -> str | None:
        """The address at which a member accepts links, for connect(); None for one that is not in the room."""
        return _decoded(self._native.GetPeerAddress(_encode(peer_id)))

    def fingerprint(self, peer_id: str) -> str | None:
        """The SHA-256 of a member's key, in 64 hexadecimal digits; None for one that is not in the room."""
        return _decoded(self._native.GetPeerFingerprint(_encode(peer_id)))

    @property
    def identity_fingerprint(self) -> str:
        """The SHA-256 of this member's key, in 64 hexadecimal digits."""
        return self._text(self._native.GetIdentityFingerprint())

    @property
    def leader(self) -> str | None:
        """The leader's id; None when there is none."""
        return self._text(self._native.GetCurrentLeader()) or None

    @property
    def is_leader(self) -> bool:
        return bool(self._native.IsLeader() != 0)

    def rtt_ms(self, peer_id: str) -> int | None:
        """The round-trip time; None for an unknown member, and until it is measured."""
        rtt: int = self._native.GetPeerRTT(_encode(peer_id))
        return None if rtt < 0 else rtt

    def status(self, peer_id: str) -> int:
        return int(self._native.GetPeerStatus(_encode(peer_id)))

    def disconnect(self, peer_id: str, code: int = 0, data: Bytes = b"") -> None:
        """Ends the link with a member; its host receives `code` and `data` (at most 3072 bytes)."""
        self._check(self._native.DisconnectPeerEx(_encode(peer_id), code, *_sized(data)))

    def set_leader(self, peer_id: str) -> None:
        self._check(self._native.SetLeader(_encode(peer_id)))

    def enable_auto_election(self, enabled: bool = True) -> None:
        self._check(self._native.EnableAutoLeaderElection(1 if enabled else 0))

    def set_leader_eligible(self, eligible: bool) -> None:
        """Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority."""
        self._check(self._native.SetLeaderEligible(1 if eligible else 0))

    def transfer_leadership(self, peer_id: str) -> None:
        """Transfers the leadership to a member; this one leads until that one is elected. Leader only (-6)."""
        self._check(self._native.TransferLeadership(_encode(peer_id)))

    def yield_leadership(self) -> None:
        """Transfers the leadership to the member that elections prefer. Leader only (-6); -5 when no member may lead. With gossip
        this member stops leading at once, and does not lead again for a while; with etcd it goes to the end of the line."""
        self._check(self._native.YieldLeadership())

    def set_election_priority(self, priority: int) -> None:
        """Sets this member's priority in elections: the highest goes first, of equal ones the largest id. 0 is the default."""
        self._check(self._native.SetElectionPriority(priority))

    @property
    def leader_term(self) -> int:
        """The term of the newest claim to lead; compare leader_epoch first."""
        return self._check(self._native.GetLeaderTerm())

    @property
    def leader_epoch(self) -> int:
        """The number of set_leader() calls that the newest claim to lead builds on."""
        return self._check(self._native.GetLeaderEpoch())

    @property
    def election_strategy(self) -> int:
        """The election strategy: one of STRATEGY_..."""
        return self._check(self._native.GetElectionStrategy())

    def member_state(self, peer_id: str) -> int:
        """With STRATEGY_SEEDED one of MEMBER_..., of this member, too; with others, and for a text that is no id, -1."""
        return int(self._native.GetMemberState(_encode(peer_id)))

    @property
    def cluster_version(self) -> int:
        """With STRATEGY_SEEDED the version of the cluster; with others -1."""
        return int(self._native.GetClusterVersion())

    @property
    def fencing_token(self) -> int:
        """With STRATEGY_ETCD the token of this member's leadership, 0 while it does not lead; with others -1."""
        return int(self._native.GetFencingToken())

    def proclaim(self, value: str) -> None:
        """Sets the text that clients of etcd read of this member while it leads."""
        self._check(self._native.Proclaim(_encode(value)))

    def acquire_lock(self, name: str, timeout_ms: int = 0) -> int:
        """Acquires a lock of etcd. The outcome is an EVENT_LOCK_RESULT with the returned number. A timeout of 0 is none."""
        request = ctypes.c_uint64()
        self._check(self._native.AcquireLock(_encode(name), timeout_ms, ctypes.byref(request)))
        return request.value

    def try_lock(self, name: str) -> int:
        """Acquires a lock as acquire_lock() does, if it is free."""
        request = ctypes.c_uint64()
        self._check(self._native.TryLock(_encode(name), ctypes.byref(request)))
        return request.value

    def release_lock(self, name: str) -> None:
        """Releases a lock, or stops waiting for it."""
        self._check(self._native.ReleaseLock(_encode(name)))

    @property
    def auto_reconnect(self) -> bool:
        """Whether the library dials lost members again, or treats every loss as a leave."""
        return bool(self._native.IsAutoReconnectEnabled() != 0)

    @auto_reconnect.setter
    def auto_reconnect(self, enabled: bool) -> None:
        self._check(self._native.SetAutoReconnect(1 if enabled else 0))

    def kick(self, peer_id: str, code: int = 0, data: Bytes = b"", ban: bool = True) -> None:
        """Removes a member: with `ban` until unban() or the room's end; without it the member may come back. Its host receives `code`
        and `data` (at most 3072 bytes). Leader only (-6)."""
        flags = KICK_BAN if ban else 0
        self._check(self._native.KickPeerEx(_encode(peer_id), flags, code, *_sized(data)))

    def unban(self, peer_id: str) -> None:
        """Lifts the ban of an id and of its keys. Leader only (-6); -5 when it is not banned."""
        self._check(self._native.UnbanPeer(_encode(peer_id)))

    def set_max_peers(self, max_peers: int) -> None:
        """Limits the other members of each member; 0 is no limit. Leader only (-6)."""
        self._check(self._native.SetMaxPeers(max_peers))

    def set_join_payload(self, data: Bytes) -> None:
        """The payload that the leader's host receives when this member asks to join; at most 16384 bytes."""
        self._check(self._native.SetJoinPayload(*_sized(data)))

    def enable_join_requests(self, enabled: bool = True) -> None:
        """Whether this host decides about admission while this member leads: EVENT_JOIN_REQUEST for every newcomer."""
        self._check(self._native.EnableJoinRequests(1 if enabled else 0))

    def accept_join(self, request: int) -> None:
        self._check(self._native.AcceptJoin(request))

    def reject_join(self, request: int, code: int = 0, data: Bytes = b"") -> None:
        """Refuses a newcomer, which receives `code` and `data` (at most 3072 bytes)."""
        self._check(self._native.RejectJoin(request, code, *_sized(data)))

    @property
    def centralized(self) -> bool:
        """Whether broadcasts of this member go through the leader."""
        return bool(self._native.IsCentralizedMode() != 0)

    @centralized.setter
    def centralized(self, enabled: bool) -> None:
        self._check(self._native.SetCentralizedMode(1 if enabled else 0))

    @property
    def centralized_auto_forward(self) -> bool:
        """Whether this member, while it leads, relays the broadcasts of others, or leaves that to forward()."""
        return bool(self._native.IsCentralizedAutoForward() != 0)

    @centralized_auto_forward.setter
    def centralized_auto_forward(self, enabled: bool) -> None:
        self._check(self._native.SetCentralizedAutoForward(1 if enabled else 0))

    def set_compression_threshold(self, size: int) -> None:
        """The payload length in bytes above which the library compresses, if that makes it shorter; 0xFFFFFFFF is never."""
        self._check(self._native.SetCompressionThreshold(size))

    def simulate_network(self, lag_ms: int = 0, jitter_ms: int = 0, loss_permille: int = 0) -> None:
        """Simulates a bad network, for tests of a game: every packet that this member sends waits lag_ms and up to jitter_ms more
        (at most 10000 each), and loss_permille packets in a thousand are lost. A call without arguments ends it."""
        self._check(self._native.SetNetworkSimulation(lag_ms, jitter_ms, loss_permille))

    @property
    def discovering(self) -> bool:
        """Whether this member is announced in the local network."""
        return bool(self._native.IsMdnsActive() != 0)

    def stats(self, peer_id: str) -> PeerStats:
        """Statistics of the link and the queue to a member."""
        figures = PeerStats()
        self._check(self._native.GetPeerStats(_encode(peer_id), ctypes.byref(figures)))
        return figures

    def room_stats(self) -> RoomStats:
        """RoomStats: members without a link to this one, and the broadcasts that they missed."""
        figures = RoomStats()
        self._check(self._native.GetRoomStats(ctypes.byref(figures)))
        return figures

    def forward(self, sender: str, to: str | None, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0) -> None:
        """Forwards on behalf of `sender` to `to`, or, if that is None, to all others. Leader only (-6)."""
        self._check(self._native.ForwardMessage(_encode(sender), _encode(to), *_sized(data), type, flags))

    def broadcast(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> None:
        """Sends to all connected members, or, if one queue is full (-7), to none, with the delivery in `options` (SendOptions)."""
        how = options and options._with_flags(0)
        self._check(self._native.BroadcastEx(*_sized(data), type, flags, how))

    def broadcast_partial(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> int:
        """Sends to the connected members whose queue has room; returns their number. EVENT_SLOW_PEER names each of the others."""
        how = (options or SendOptions())._with_flags(SEND_PARTIAL)
        return self._check(self._native.BroadcastEx(*_sized(data), type, flags, how))

    def send(self, peer_id: str, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0, options: SendOptions | None = None) -> None:
        how = options and options._with_flags(0)
        self._check(self._native.SendToPeerEx(_encode(peer_id), *_sized(data), type, flags, how))

    def max_datagram_size(self, peer_id: str | None = None) -> int:
        """The longest unreliable message for a member, or for a broadcast, in bytes; -1 when the member is not connected, or none is."""
        return int(self._native.GetMaxDatagramSize(_encode(peer_id)))

    def send_to_leader(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0) -> None:
        """Sends to the leader; a leader that calls it receives the message itself. -6 when there is none."""
        self._check(self._native.SendToLeader(*_sized(data), type, flags))

    def send_from_leader(self, data: Bytes, type: int = FIRST_USER_TYPE, flags: int = 0) -> None:
        """Sends to all members, as their leader; -6 when this member is not the leader."""
        self._check(self._native.SendFromLeader(*_sized(data), type, flags))

    def enable_logging(self, enabled: bool = True) -> None:
        """Turns the log on standard error on or off."""
        self._check(self._native.EnableLogging(1 if enabled else 0))

    # -- internals

    def _leave(self) -> None:
        if not self._open:
            return
        if self._process != os.getpid():
            self._open = False
            return
        self._check(self._native.ShutdownNetwork())
        self._open = False
        self._callbacks.clear()
        self._retired.clear()
        atexit.unregister(self._leave_at_exit)

    def _initialize(
        self, peer: bytes | None, session: bytes | None, config: NetworkConfig | None, options: NetworkOptions | None
    ) -> int:
        if options is not None:
            if config is not None:
                raise TypeError("give either config or options, which has a config of its own")
            return int(self._native.InitializeNetworkWithOptions(peer, session, ctypes.byref(options)))
        if config is None:
            return int(self._native.InitializeNetwork(peer, session))
        return int(self._native.InitializeNetworkWithConfig(peer, session, ctypes.byref(config)))

    def _dial(self, address: str) -> None:
        self._check(self._native.ConnectToPeer(_encode(address)))

    def _register_events(self, handler: Callable[[Event], object] | None) -> None:
        def call(handle: Callable[[Event], object], _: int | None, pointer: Any) -> None:
            event = pointer.contents
            handle(
                Event(
                    kind=event.kind,
                    peer=event.peer.decode("utf-8"),
                    other=event.other.decode("utf-8"),
                    data=ctypes.string_at(event.data, event.length) if event.length else b"",
                    reason=event.reason,
                    code=event.code,
                    success=event.success != 0,
                    type=event.msg_type,
                    flags=event.flags,
                    undelivered=event.count,
                    missed=event.missed,
                    request=event.request,
                    term=event.term,
                    epoch=event.epoch,
                    channel=event.channel,
                    delivery=event.delivery,
                    peer_index=event.peer_index,
                    found_by=event.found_by,
                )
            )

        self._register("RegisterEventHandler", EventCallback, handler, call, None, DropCallback())

    def _register(self, function: str, kind: Any, handler: Any, call: Callable[..., None], *more: Any) -> None:
        """Calls `call` with the handler and the library's arguments."""

        def guarded(*arguments: Any) -> None:
            self._inside.handler = True
            try:
                call(handler, *arguments)
            except BaseException:  # SystemExit too: it cannot unwind through native frames.
                traceback.print_exc(file=sys.stderr)
            finally:
                self._inside.handler = False

        # A NULL function pointer; ctypes does not accept None here.
        callback = kind() if handler is None else kind(guarded)
        self._check(getattr(self._native, function)(callback, *more))
        # Replaced only now: until the library returned, the old callback could still be running. A handler that
        # replaces itself is running even now, so its callback stays until a call from outside has waited for it.
        if getattr(self._inside, "handler", False):
            self._retired.setdefault(function, []).append(self._callbacks.get(function))
        else:
            self._retired.pop(function, None)
        self._callbacks[function] = callback

    def _check(self, code: int) -> int:
        if code < 0:
            raise NetworkError(code, (self._native.GetLastErrorMessage() or b"").decode("utf-8", "replace"))
        return code

    def _text(self, value: bytes | None) -> str:
        if value is None:
            self._check(self._native.GetLastErrorCode())
            return ""
        return value.decode("utf-8")

    def _leave_at_exit(self) -> None:
        try:
            self._leave()
        except NetworkError:
            traceback.print_exc(file=sys.stderr)


class Room(_Calls):
    """The room that this process is in; a context manager that leaves it.

    With `options` (NetworkOptions), handlers run in poll(); with `config` or nothing, on a thread of the library.
    `on_event(Event)` receives all events; a program that uses it needs no other handler. `on_message(Message)`,
    `on_leader(str | None)`, `on_leadership(bool)`, `on_peer(str, status)` and `on_connection(ConnectionResult)` are optional.
    A new handler first receives the present state: the leader, if one is known, and every connected peer.

    A forked child (os.fork, multiprocessing with the start method "fork") has no room: this object does nothing there, and its
    calls are refused (-1) until the child enters a room with an object of its own.
    """

    def __init__(
        self,
        peer_id: str,
        session_id: str,
        config: NetworkConfig | None = None,
        *,
        options: NetworkOptions | None = None,
        on_event: Callable[[Event], object] | None = None,
        on_message: Callable[[Message], object] | None = None,
        on_leader: Callable[[str | None], object] | None = None,
        on_leadership: Callable[[bool], object] | None = None,
        on_peer: Callable[[str, int], object] | None = None,
        on_connection: Callable[[ConnectionResult], object] | None = None,
    ) -> None:
        self._message_handler: Callable[[Message], object] | None = None
        self._typed: dict[int, Callable[[Message], object]] = {}
        super().__init__(peer_id, session_id, config, options)
        try:
            if on_event is not None:
                self.on_event(on_event)
            if on_message is not None:
                self.on_message(on_message)
            if on_leader is not None:
                self.on_leader(on_leader)
            if on_leadership is not None:
                self.on_leadership(on_leadership)
            if on_peer is not None:
                self.on_peer(on_peer)
            if on_connection is not None:
                self.on_connection(on_connection)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the room; takes at most about 2 s. Afterwards no handler runs. Refused (-15) inside a handler.

        In a forked child it does nothing: the room is the parent's."""
        self._leave()
        self._message_handler = None
        self._typed = {}

    def connect(self, address: str) -> None:
        """Dials "ip:port", "[v6]:port" or "name:port"; on_connection receives the outcome."""
        self._dial(address)

    def poll(self, max: int = 0x7FFFFFFF) -> int:
        """In poll mode, runs the handlers of up to `max` queued events, on the calling thread, and returns their number.
        Never waits. Refused inside a handler and while another thread polls (-15), and in thread mode (-3)."""
        return self._check(self._native.PollEvents(max))

    # -- handlers; None unregisters, and when the call returns the old handler is not running and never runs again

    def on_event(self, handler: Callable[[Event], object] | None) -> None:
        """One handler for all events, messages included, in one order."""
        self._register_events(handler)

    def on_message(self, handler: Callable[[Message], object] | None) -> None:
        """Every message whose type has no handler of its own."""
        self._register_receive(handler, self._typed)
        self._message_handler = handler

    def on_type(self, type: int, handler: Callable[[Message], object] | None) -> None:
        """The messages of one type, 0x0100 or higher, which on_message then does not receive."""
        if not FIRST_USER_TYPE <= type <= 0xFFFF:
            raise ValueError(f"type {type:#06x} is not {FIRST_USER_TYPE:#06x} to 0xffff")
        typed = {other: known for other, known in self._typed.items() if other != type}
        if handler is not None:
            typed[type] = handler
        self._register_receive(self._message_handler, typed)
        self._typed = typed

    def _register_receive(
        self, general: Callable[[Message], object] | None, typed: dict[int, Callable[[Message], object]]
    ) -> None:
        def call(_: object, peer: bytes, data: int | None, length: int, message_type: int, flags: int) -> None:
            handler = typed.get(message_type, general)
            if handler is not None:
                payload = ctypes.string_at(data, length) if data and length else b""
                handler(Message(peer.decode("utf-8"), payload, message_type, flags))

        self._register("RegisterReceiveCallback", ReceiveCallback, call if typed else general, call)

    def on_leader(self, handler: Callable[[str | None], object] | None) -> None:
        def call(handle: Callable[[str | None], object], leader: bytes) -> None:
            handle(leader.decode("utf-8") or None)

        self._register("RegisterLeaderChangedCallback", LeaderChangedCallback, handler, call)

    def on_leadership(self, handler: Callable[[bool], object] | None) -> None:
        """Whether this member leads: True and False alternately, each after its on_leader."""

        def call(handle: Callable[[bool], object], is_leader: int) -> None:
            handle(is_leader != 0)

        self._register("RegisterLeadershipCallback", LeadershipCallback, handler, call)

    def on_peer(self, handler: Callable[[str, int], object] | None) -> None:
        def call(handle: Callable[[str, int], object], peer: bytes, status: int) -> None:
            handle(peer.decode("utf-8"), status)

        self._register("RegisterPeerStatusCallback", PeerStatusCallback, handler, call)

    def on_connection(self, handler: Callable[[ConnectionResult], object] | None) -> None:
        def call(handle: Callable[[ConnectionResult], object], address: bytes, success: int, code: int) -> None:
            handle(ConnectionResult(address.decode("utf-8"), success != 0, code))

        self._register("RegisterConnectionResultCallback", ConnectionResultCallback, handler, call)


def _sized(data: Bytes) -> tuple[bytes, int]:
    content = memoryview(data).tobytes()
    return content, len(content)


def _lines(texts: str | Iterable[str] | None) -> str | None:
    """One text a line; a str is used as it is."""
    return texts if texts is None or isinstance(texts, str) else "\n".join(texts)


def _encode(text: str | None) -> bytes | None:
    if text is None:
        return None  # NULL: the library answers with its own sentence.
    encoded = text.encode("utf-8")
    if b"\0" in encoded:
        raise ValueError("the text contains a NUL character, at which C would cut it off")
    return encoded


def _encode_path(path: str | os.PathLike[str] | None) -> bytes | None:
    return _encode(os.fspath(path) if path else None)


def _open_library(path: str | os.PathLike[str] | None) -> ctypes.CDLL:
    """CDLL, never PyDLL: the interpreter's lock must be free while the library waits for a running handler."""
    chosen = path or os.environ.get("MMN_LIBRARY")
    if chosen:
        try:
            return ctypes.CDLL(os.fspath(chosen))
        except OSError as error:
            origin = "the path given to load_library()" if path else "the environment variable MMN_LIBRARY"
            raise OSError(f"cannot load {os.fspath(chosen)}, {origin}: {error}") from error
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
            return ctypes.CDLL(candidate)
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise OSError(
            f"cannot find {name}. Set the environment variable MMN_LIBRARY to its path, or install a wheel that carries it. "
            f"Searched: {', '.join(folders)}, and the folders of the system ({error})"
        ) from error
