"""meta_mystia_network from Python: one room per process, over ctypes, without further dependencies.

    import meta_mystia_network as mmn

    with mmn.Room("alice", "tea", on_message=lambda m: print(m.sender, m.data)) as room:
        room.connect("192.168.1.20:40123")
        room.broadcast(b"hello")

Handlers run one at a time, in order, on a thread of the library, or, in poll mode (Room(..., options=NetworkOptions())),
inside Room.poll(), on the thread that calls it. They may call every method of the room except close() and poll().
An exception in a handler is printed and goes no further. It loads the native library from the path in the environment variable
MMN_LIBRARY, else from beside this file, else from target/release of the source tree, else from where the system looks.
"""

import atexit
import ctypes
import os
import sys
import threading
import traceback
from typing import NamedTuple

__all__ = [
    "ConnectionResult",
    "EtcdOptions",
    "Event",
    "FIRST_USER_TYPE",
    "Message",
    "NetworkConfig",
    "NetworkError",
    "NetworkEvent",
    "NetworkOptions",
    "PeerStats",
    "Room",
    "SeededOptions",
    "describe_error",
    "describe_leader_reason",
    "describe_member_state",
    "load_library",
    "set_log",
]

class NetworkError(Exception):
    """A call was refused. `code` is one of the codes above; the text comes from the library."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Message(NamedTuple):
    """A message as it came from another member."""

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
    EVENT_RETURNED: the number of those that it will not get."""
    missed: int
    """EVENT_RETURNED: the number of the member's reliable messages that this host will not get."""
    request: int
    """EVENT_JOIN_REQUEST: for accept_join() and reject_join(); EVENT_LOCK_RESULT: which lock call."""
    term: int
    epoch: int
    channel: int
    """EVENT_MESSAGE: as the sender named it."""
    delivery: int
    """EVENT_MESSAGE: one of DELIVERY_..."""
    peer_index: int
    """index() of `peer`; 0 for this member and for one that is not in the room."""

    @property
    def count(self):
        """EVENT_DATA_DROPPED: how many messages."""
        return self.undelivered

    @property
    def token(self):
        """EVENT_LOCK_RESULT with success, and EVENT_LOCK_LOST: the fencing token of the lock, which `other` names."""
        return self.undelivered


def _default_options():
    """NetworkOptions as the library fills them in."""
    options = NetworkOptions.__new__(NetworkOptions)
    options.struct_size = ctypes.sizeof(NetworkOptions)
    code = load_library().GetDefaultNetworkOptions(ctypes.byref(options))
    if code < 0:
        raise NetworkError(code, describe_error(code))
    return options


def _set(struct, values):
    unknown = set(values) - {name for name, _ in struct._fields_}
    if unknown:
        # A ctypes structure would silently take any attribute, and the setting would have no effect.
        raise TypeError(f"{type(struct).__name__} has no field {', '.join(sorted(unknown))}")
    for name, value in values.items():
        setattr(struct, name, value)


class NetworkConfig(ctypes.Structure):
    """`NetworkConfigFFI`, 44 bytes. Starts with the defaults of the library."""

    def __init__(self, **fields):
        super().__init__()
        ctypes.pointer(self)[0] = _default_options().config
        _set(self, fields)


class NetworkOptions(ctypes.Structure):
    """`NetworkOptions`: every setting there is. Starts with the library's defaults, but in poll mode: handlers run in
    Room.poll(). Text and bytes are set as str and bytes: `NetworkOptions(bind_address="127.0.0.1", secret=b"...")`. The
    voters of a static quorum are a str with one per line, or a list of str. `seeded` is SeededOptions, for STRATEGY_SEEDED,
    and `etcd` is EtcdOptions, for STRATEGY_ETCD.
    """

    def __init__(
        self,
        *,
        bind_address=None,
        secret=None,
        identity_key=None,
        state_directory=None,
        trace_path=None,
        quorum_roster=None,
        seeded=None,
        etcd=None,
        **fields,
    ):
        super().__init__()
        ctypes.pointer(self)[0] = _default_options()
        self.dispatch_mode = DISPATCH_POLL
        _set(self, fields)
        self.bind_address = _encode(bind_address)
        self.state_directory = _encode(state_directory and os.fspath(state_directory))
        self.trace_path = _encode(trace_path and os.fspath(trace_path))
        self.quorum_roster = _encode(_lines(quorum_roster))
        self.seeded = ctypes.pointer(seeded) if seeded is not None else None
        self.etcd = ctypes.pointer(etcd) if etcd is not None else None
        # The pointers do not keep alive what they refer to.
        self._kept = [
            seeded,
            etcd,
            self._point("secret", secret or b""),
            self._point("identity_key", identity_key or b""),
        ]

    def _point(self, name, content):
        if not content:
            return None
        buffer = (ctypes.c_uint8 * len(content)).from_buffer_copy(content)
        setattr(self, name, ctypes.addressof(buffer))
        setattr(self, name + "_length", len(content))
        return buffer


class SeededOptions(ctypes.Structure):
    """`SeededOptions`: the settings of STRATEGY_SEEDED, for NetworkOptions. Starts with the defaults of a profile. `seeds`, the
    addresses of the seeds, are a list of str, or a str with one per line: `SeededOptions(["one.example.org:4433"])`.
    """

    def __init__(self, seeds=None, *, profile=0, is_seed=False, **fields):
        super().__init__(struct_size=ctypes.sizeof(SeededOptions))
        code = load_library().GetDefaultSeededOptions(profile, ctypes.byref(self))
        if code < 0:
            raise NetworkError(code, load_library().GetLastErrorMessage().decode("utf-8", "replace"))
        _set(self, fields)
        self.is_seed = 1 if is_seed else 0
        self.seeds = _encode(_lines(seeds))


class EtcdOptions(ctypes.Structure):
    """`EtcdOptions`: the settings of STRATEGY_ETCD, for NetworkOptions. Starts with the library's defaults. `endpoints` are a list
    of str, or a str with one per line: `EtcdOptions(["http://etcd.example.org:2379"], "rooms/lobby")`.
    """

    def __init__(
        self,
        endpoints,
        prefix,
        *,
        address=None,
        ca_file=None,
        cert_file=None,
        key_file=None,
        user=None,
        password=None,
        **fields,
    ):
        super().__init__(struct_size=ctypes.sizeof(EtcdOptions))
        code = load_library().GetDefaultEtcdOptions(ctypes.byref(self))
        if code < 0:
            raise NetworkError(code, load_library().GetLastErrorMessage().decode("utf-8", "replace"))
        _set(self, fields)
        self.endpoints = _encode(_lines(endpoints))
        self.prefix = _encode(prefix)
        self.address = _encode(address)
        self.ca_file = _encode(ca_file and os.fspath(ca_file))
        self.cert_file = _encode(cert_file and os.fspath(cert_file))
        self.key_file = _encode(key_file and os.fspath(key_file))
        self.user = _encode(user)
        self.password = _encode(password)


class PeerStats(ctypes.Structure):
    """`PeerStats`: statistics of one peer. Its size is set already."""

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(PeerStats))


class SendOptions(ctypes.Structure):
    """`SendOptions`: how a message is delivered. `SendOptions(DELIVERY_SEQUENCED, key=unit)`. Its size is set already."""

    def __init__(self, delivery=0, channel=0, priority=1, ttl_ms=0, key=0):
        super().__init__(
            struct_size=ctypes.sizeof(SendOptions),
            delivery=delivery,
            channel=channel,
            priority=priority,
            ttl_ms=ttl_ms,
            key=key,
        )

    def _with_flags(self, flags):
        copy = SendOptions.from_buffer_copy(self)
        copy.flags = flags
        return ctypes.byref(copy)


class NetworkEvent(ctypes.Structure):
    """`NetworkEvent`, which an EventCallback receives; valid during the call. The header says which fields each `kind` sets."""

    def payload(self):
        """A copy of the event's bytes."""
        return ctypes.string_at(self.data, self.length) if self.length else b""


# -- Generated from src/ffi by `make header`: do not edit.

ABI_VERSION = 10
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

DROPPED_SENT = 0
DROPPED_RECEIVED = 1

END_KICKED = 0
END_HOST_LEFT = 1
END_HOST_LOST = 2
END_DISCONNECTED = 3

PATH_DIRECT = 0
PATH_THROUGH_LEADER = 1


class _BYTES(ctypes.c_char_p):
    """The bytes before a length."""


_TEXT = ctypes.c_char_p
NetworkConfig._fields_ = [
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
NetworkOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("config", NetworkConfig),
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
    ("seeded", ctypes.POINTER(SeededOptions)),
    ("etcd", ctypes.POINTER(EtcdOptions)),
    ("topology", ctypes.c_uint32),
    ("reserved3", ctypes.c_uint32),
]
NetworkEvent._fields_ = [
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
    ("reserved", ctypes.c_uint16),
]
SeededOptions._fields_ = [
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
EtcdOptions._fields_ = [
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
SendOptions._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("delivery", ctypes.c_uint8),
    ("channel", ctypes.c_uint8),
    ("priority", ctypes.c_uint8),
    ("flags", ctypes.c_uint8),
    ("ttl_ms", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
    ("key", ctypes.c_uint64),
]
PeerStats._fields_ = [
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
]

ReceiveCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8)
LeaderChangedCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
LeadershipCallback = ctypes.CFUNCTYPE(None, ctypes.c_uint8)
PeerStatusCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int32)
ConnectionResultCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_int32)
ReconnectCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8)
DropCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EventCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(NetworkEvent))
LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)

# Name: (result, arguments).
FUNCTIONS = {
    "GetAbiVersion": (ctypes.c_uint32, ()),
    "GetLibraryVersion": (_TEXT, ()),
    "GetDefaultNetworkOptions": (ctypes.c_int32, (ctypes.POINTER(NetworkOptions),)),
    "InitializeNetworkWithOptions": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(NetworkOptions))),
    "RegisterReceiveCallback": (ctypes.c_int32, (ReceiveCallback,)),
    "RegisterLeaderChangedCallback": (ctypes.c_int32, (LeaderChangedCallback,)),
    "RegisterLeadershipCallback": (ctypes.c_int32, (LeadershipCallback,)),
    "RegisterPeerStatusCallback": (ctypes.c_int32, (PeerStatusCallback,)),
    "RegisterConnectionResultCallback": (ctypes.c_int32, (ConnectionResultCallback,)),
    "RegisterReconnectCallback": (ctypes.c_int32, (ReconnectCallback,)),
    "RegisterEventHandler": (ctypes.c_int32, (EventCallback, ctypes.c_void_p, DropCallback)),
    "PollEvents": (ctypes.c_int32, (ctypes.c_int32,)),
    "InitializeNetwork": (ctypes.c_int32, (_TEXT, _TEXT)),
    "InitializeNetworkWithConfig": (ctypes.c_int32, (_TEXT, _TEXT, ctypes.POINTER(NetworkConfig))),
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
    "GetDefaultSeededOptions": (ctypes.c_int32, (ctypes.c_uint32, ctypes.POINTER(SeededOptions))),
    "GetMemberState": (ctypes.c_int32, (_TEXT,)),
    "GetClusterVersion": (ctypes.c_int64, ()),
    "GetDefaultEtcdOptions": (ctypes.c_int32, (ctypes.POINTER(EtcdOptions),)),
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
    "SendToPeerEx": (ctypes.c_int32, (_TEXT, _BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8, ctypes.POINTER(SendOptions))),
    "BroadcastEx": (ctypes.c_int32, (_BYTES, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8, ctypes.POINTER(SendOptions))),
    "GetMaxDatagramSize": (ctypes.c_int32, (_TEXT,)),
    "GetPeerStats": (ctypes.c_int32, (_TEXT, ctypes.POINTER(PeerStats))),
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

_library = None
_library_lock = threading.Lock()


def load_library(path=None):
    """The native library with typed functions; loaded once. `path` counts only before the first use."""
    global _library
    # A forked child may find the lock held for ever, by a thread that it has not got.
    if _library is not None:
        return _library
    with _library_lock:
        if _library is None:
            # CDLL, never PyDLL: the interpreter's lock must be free while the library waits for a running handler.
            library = ctypes.CDLL(path or _library_path())
            for name, (result, arguments) in FUNCTIONS.items():
                function = getattr(library, name)
                function.restype = result
                function.argtypes = arguments
            _library = library
        return _library


def describe_error(code):
    """The library's name for a code."""
    return load_library().DescribeError(code).decode("utf-8")


def generate_identity_key():
    """A new private key for NetworkOptions.identity_key. Who keeps it is the same member at every start."""
    key = (ctypes.c_uint8 * IDENTITY_KEY_BYTES)()
    library = load_library()
    if library.GenerateIdentityKey(key, len(key)) < 0:
        raise NetworkError(library.GetLastErrorCode(), library.GetLastErrorMessage().decode("utf-8"))
    return bytes(key)


def _decoded(text):
    return None if text is None else text.decode("utf-8")


def describe_leader_reason(reason):
    """One of LEADER_... in a word."""
    for name, value in globals().items():
        if name.startswith("LEADER_") and value == reason:
            return name.removeprefix("LEADER_").lower()
    return "unknown"


def describe_member_state(state):
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
    """How often a member samples that number; 1000."""
    leader_alive_threshold: int
    """How long a member waits for a declaration of the leader before it proposes itself; 10000."""
    leader_election_duration: int
    """How long it then collects the proposals of others; 5000."""


def gossip_windows():
    """Those of this process, in force or not."""
    native = load_library()
    return GossipWindows(
        native.GetStartupGracePeriod(),
        native.GetMembershipSampleInterval(),
        native.GetLeaderAliveThreshold(),
        native.GetLeaderElectionDuration(),
    )


def set_gossip_windows(windows):
    """They belong to the process: they apply from the next window of the room on, and to later rooms. The same for all members.

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


_log_callback = None


def set_log(handler, level=LOG_INFO):
    """Passes the library's log up to `level` to `handler(level, text)`; None removes it. It is called on any thread, and may
    call nothing but queries."""
    global _log_callback

    def guarded(_, record_level, message):
        try:
            handler(record_level, message.decode("utf-8", "replace"))
        except BaseException:
            traceback.print_exc(file=sys.stderr)

    callback = LogCallback() if handler is None else LogCallback(guarded)
    code = load_library().RegisterLogCallback(level, callback, None, DropCallback())
    if code < 0:
        raise NetworkError(code, load_library().GetLastErrorMessage().decode("utf-8", "replace"))
    # Only now may the old one go: until the library returned, it could still be running.
    _log_callback = callback


class Room:
    """The room that this process is in; a context manager that leaves it.

    With `options` (NetworkOptions), handlers run in poll(); with `config` or nothing, on a thread of the library.
    `on_event(Event)` receives all events; a program that uses it needs none of the others. `on_message(Message)`,
    `on_leader(str | None)`, `on_leadership(bool)`, `on_peer(str, status)` and `on_connection(ConnectionResult)` are optional.
    A new handler first receives the present state: the leader, if one is known, and every connected peer.

    A child that is forked (os.fork, multiprocessing with the start method "fork") has no room: this object does nothing there,
    and its calls are refused (-1) until the child enters a room with an object of its own.
    """

    def __init__(
        self,
        peer_id,
        session_id,
        config=None,
        *,
        options=None,
        on_event=None,
        on_message=None,
        on_leader=None,
        on_leadership=None,
        on_peer=None,
        on_connection=None,
    ):
        self._native = load_library()
        self._open = False
        # A forked child has this object, and not its room.
        self._process = os.getpid()
        # ctypes frees a callback's code with its last Python reference, and the library's copy of the pointer is none.
        self._callbacks = {}
        self._retired = {}
        self._message_handler = None
        self._typed = {}
        self._inside = threading.local()
        self._check(self._initialize(_encode(peer_id), _encode(session_id), config, options))
        self._open = True
        # A room that is still open when the interpreter ends would call into what is no longer there.
        atexit.register(self._close_at_exit)
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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves the room; takes at most about 2 s. Afterwards no handler runs. Refused (-15) inside a handler.

        In a forked child it does nothing: the room is the parent's."""
        if not self._open:
            return
        if self._process != os.getpid():
            self._open = False
            return
        self._check(self._native.ShutdownNetwork())
        self._open = False
        self._callbacks.clear()
        self._retired.clear()
        self._message_handler = None
        self._typed = {}
        atexit.unregister(self._close_at_exit)

    # -- handlers; None unregisters, and when the call returns the old handler is not running and never runs again

    def on_event(self, handler):
        """One handler for all events, messages included, in one order."""

        def call(_, pointer):
            event = pointer.contents
            handler(
                Event(
                    kind=event.kind,
                    peer=event.peer.decode("utf-8"),
                    other=event.other.decode("utf-8"),
                    data=event.payload(),
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
                )
            )

        self._register("RegisterEventHandler", EventCallback, handler, call, None, DropCallback())

    def on_message(self, handler):
        """Every message whose type has no handler of its own."""
        self._register_receive(handler, self._typed)
        self._message_handler = handler

    def on_type(self, type, handler):
        """The messages of one type, 0x0100 or higher, which on_message then does not receive."""
        if not FIRST_USER_TYPE <= type <= 0xFFFF:
            raise ValueError(f"type {type:#06x} is not {FIRST_USER_TYPE:#06x} to 0xffff")
        typed = {other: known for other, known in self._typed.items() if other != type}
        if handler is not None:
            typed[type] = handler
        self._register_receive(self._message_handler, typed)
        self._typed = typed

    def _register_receive(self, general, typed):
        def call(peer, data, length, message_type, flags):
            handler = typed.get(message_type, general)
            if handler is not None:
                payload = ctypes.string_at(data, length) if length else b""
                handler(Message(peer.decode("utf-8"), payload, message_type, flags))

        wanted = general if not typed else call
        self._register("RegisterReceiveCallback", ReceiveCallback, wanted, call)

    def on_leader(self, handler):
        def call(leader):
            handler(leader.decode("utf-8") or None)

        self._register("RegisterLeaderChangedCallback", LeaderChangedCallback, handler, call)

    def on_leadership(self, handler):
        """Whether this member leads: True and False alternately, each after its on_leader."""

        def call(is_leader):
            handler(is_leader != 0)

        self._register("RegisterLeadershipCallback", LeadershipCallback, handler, call)

    def on_peer(self, handler):
        def call(peer, status):
            handler(peer.decode("utf-8"), status)

        self._register("RegisterPeerStatusCallback", PeerStatusCallback, handler, call)

    def on_connection(self, handler):
        def call(address, success, code):
            handler(ConnectionResult(address.decode("utf-8"), success != 0, code))

        self._register("RegisterConnectionResultCallback", ConnectionResultCallback, handler, call)

    # -- the room

    @property
    def peer_id(self):
        return self._text(self._native.GetLocalPeerId())

    @property
    def session_id(self):
        return self._text(self._native.GetSessionId())

    @property
    def local_address(self):
        """An address that another member can pass to connect()."""
        return self._text(self._native.GetLocalAddr())

    @property
    def peers(self):
        """The ids of the connected members, without this one, sorted."""
        text = self._text(self._native.GetPeerList())
        return text.split("\n") if text else []

    @property
    def members(self):
        """The ids of `peers` and of those that are reconnecting, sorted."""
        text = self._text(self._native.GetMembers())
        return text.split("\n") if text else []

    def index(self, peer_id):
        """A member as a number from 1, from its EVENT_JOINED to its EVENT_LEFT; never that of an earlier one. 0 for others."""
        return self._native.GetPeerIndex(_encode(peer_id))

    def peer_at(self, index):
        """The member with that index; None for none."""
        return _decoded(self._native.GetPeerIdByIndex(index))

    def address(self, peer_id):
        """Where a member accepts links, for connect(); None for one that is not in the room."""
        return _decoded(self._native.GetPeerAddress(_encode(peer_id)))

    def fingerprint(self, peer_id):
        """The SHA-256 of a member's key, in 64 hexadecimal digits; None for one that is not in the room."""
        return _decoded(self._native.GetPeerFingerprint(_encode(peer_id)))

    @property
    def identity_fingerprint(self):
        """The same of this member's key."""
        return self._text(self._native.GetIdentityFingerprint())

    @property
    def leader(self):
        """The leader's id; None when there is none."""
        return self._text(self._native.GetCurrentLeader()) or None

    @property
    def is_leader(self):
        return self._native.IsLeader() != 0

    def rtt_ms(self, peer_id):
        """The round-trip time; None for an unknown member, and until it is measured."""
        rtt = self._native.GetPeerRTT(_encode(peer_id))
        return None if rtt < 0 else rtt

    def status(self, peer_id):
        return self._native.GetPeerStatus(_encode(peer_id))

    def connect(self, address):
        """Dials "ip:port", "[v6]:port" or "name:port"; on_connection receives the outcome."""
        self._check(self._native.ConnectToPeer(_encode(address)))

    def disconnect(self, peer_id, code=0, data=b""):
        """Ends the link with a member; its host receives `code` and `data` (at most 3072 bytes)."""
        self._check(self._native.DisconnectPeerEx(_encode(peer_id), code, bytes(data), len(data)))

    def set_leader(self, peer_id):
        self._check(self._native.SetLeader(_encode(peer_id)))

    def enable_auto_election(self, enabled=True):
        self._check(self._native.EnableAutoLeaderElection(1 if enabled else 0))

    def set_leader_eligible(self, eligible):
        """Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority."""
        self._check(self._native.SetLeaderEligible(1 if eligible else 0))

    def transfer_leadership(self, peer_id):
        """Transfers the leadership to a member; this one leads until that one is elected. Leader only (-6)."""
        self._check(self._native.TransferLeadership(_encode(peer_id)))

    def yield_leadership(self):
        """Transfers the leadership to the member that elections prefer. Leader only (-6); -5 when nobody could lead. With gossip
        this member stops leading at once, and does not lead again for a while; with etcd it goes to the end of the line."""
        self._check(self._native.YieldLeadership())

    def set_election_priority(self, priority):
        """How much elections prefer this member: the highest priority first, of equal ones the largest id. 0 is the default."""
        self._check(self._native.SetElectionPriority(priority))

    @property
    def leader_term(self):
        """The term of the newest claim to lead; compare leader_epoch first."""
        return self._check(self._native.GetLeaderTerm())

    @property
    def leader_epoch(self):
        """The number of set_leader() calls that the newest claim to lead builds on."""
        return self._check(self._native.GetLeaderEpoch())

    @property
    def election_strategy(self):
        """The election strategy: one of STRATEGY_..."""
        return self._check(self._native.GetElectionStrategy())

    def member_state(self, peer_id):
        """With STRATEGY_SEEDED one of MEMBER_..., of this member, too; with others, and for a text that is no id, -1."""
        return self._native.GetMemberState(_encode(peer_id))

    @property
    def cluster_version(self):
        """With STRATEGY_SEEDED the version of the cluster; with others -1."""
        return self._native.GetClusterVersion()

    @property
    def fencing_token(self):
        """With STRATEGY_ETCD the token of this member's leadership, 0 while it does not lead; with others -1."""
        return self._native.GetFencingToken()

    def proclaim(self, value):
        """Sets what clients of etcd read of this member while it leads."""
        self._check(self._native.Proclaim(_encode(value)))

    def acquire_lock(self, name, timeout_ms=0):
        """Acquires a lock of etcd. The outcome is an EVENT_LOCK_RESULT with the number that is returned. A timeout of 0 is none."""
        request = ctypes.c_uint64()
        self._check(self._native.AcquireLock(_encode(name), timeout_ms, ctypes.byref(request)))
        return request.value

    def try_lock(self, name):
        """Acquires a lock as acquire_lock() does, if it is free."""
        request = ctypes.c_uint64()
        self._check(self._native.TryLock(_encode(name), ctypes.byref(request)))
        return request.value

    def release_lock(self, name):
        """Releases a lock, or stops waiting for it."""
        self._check(self._native.ReleaseLock(_encode(name)))

    @property
    def auto_reconnect(self):
        """Whether the library dials lost members again, or treats every loss as a leave."""
        return self._native.IsAutoReconnectEnabled() != 0

    @auto_reconnect.setter
    def auto_reconnect(self, enabled):
        self._check(self._native.SetAutoReconnect(1 if enabled else 0))

    def kick(self, peer_id, code=0, data=b"", ban=True):
        """Removes a member, with `ban` until unban() or the room's end, without it may come back; its host receives `code` and
        `data` (at most 3072 bytes). Leader only (-6)."""
        flags = KICK_BAN if ban else 0
        self._check(self._native.KickPeerEx(_encode(peer_id), flags, code, bytes(data), len(data)))

    def unban(self, peer_id):
        """Lifts the ban of an id and of its keys. Leader only (-6); -5 when it is not banned."""
        self._check(self._native.UnbanPeer(_encode(peer_id)))

    def set_max_peers(self, max_peers):
        """Most other members of each member; 0 is no limit. Leader only (-6)."""
        self._check(self._native.SetMaxPeers(max_peers))

    def set_join_payload(self, data):
        """The payload that the leader's host receives when this member asks to join; at most 16384 bytes."""
        self._check(self._native.SetJoinPayload(bytes(data), len(data)))

    def enable_join_requests(self, enabled=True):
        """Whether this host decides who may enter while this member leads: EVENT_JOIN_REQUEST for every newcomer."""
        self._check(self._native.EnableJoinRequests(1 if enabled else 0))

    def accept_join(self, request):
        self._check(self._native.AcceptJoin(request))

    def reject_join(self, request, code=0, data=b""):
        """The newcomer receives `code` and `data` (at most 3072 bytes)."""
        self._check(self._native.RejectJoin(request, code, bytes(data), len(data)))

    @property
    def centralized(self):
        """Whether broadcasts of this member go through the leader."""
        return self._native.IsCentralizedMode() != 0

    @centralized.setter
    def centralized(self, enabled):
        self._check(self._native.SetCentralizedMode(1 if enabled else 0))

    @property
    def centralized_auto_forward(self):
        """Whether this member, while it leads, relays the broadcasts of others, or leaves that to forward()."""
        return self._native.IsCentralizedAutoForward() != 0

    @centralized_auto_forward.setter
    def centralized_auto_forward(self, enabled):
        self._check(self._native.SetCentralizedAutoForward(1 if enabled else 0))

    def set_compression_threshold(self, size):
        """The payload length in bytes above which the library compresses, if that makes it shorter; 0xFFFFFFFF is never."""
        self._check(self._native.SetCompressionThreshold(size))

    def simulate_network(self, lag_ms=0, jitter_ms=0, loss_permille=0):
        """Simulates a bad network, for tests of a game: every packet that this member sends waits lag_ms and up to jitter_ms more
        (at most 10000 each), and so many of a thousand are lost. Without arguments it ends."""
        self._check(self._native.SetNetworkSimulation(lag_ms, jitter_ms, loss_permille))

    @property
    def discovering(self):
        """Whether this member is announced in the local network."""
        return self._native.IsMdnsActive() != 0

    def stats(self, peer_id):
        """PeerStats: statistics of the link and the queue to a member."""
        figures = PeerStats()
        self._check(self._native.GetPeerStats(_encode(peer_id), ctypes.byref(figures)))
        return figures

    def forward(self, sender, to, data, type=FIRST_USER_TYPE, flags=0):
        """Forwards on behalf of `sender` to `to`, or, if that is None, to all others. Leader only (-6)."""
        self._check(self._native.ForwardMessage(_encode(sender), _encode(to), bytes(data), len(data), type, flags))

    def broadcast(self, data, type=FIRST_USER_TYPE, flags=0, options=None):
        """To all connected members, or, if one queue is full (-7), to none; as `options` (SendOptions) say."""
        options = options and options._with_flags(0)
        self._check(self._native.BroadcastEx(bytes(data), len(data), type, flags, options))

    def broadcast_partial(self, data, type=FIRST_USER_TYPE, flags=0, options=None):
        """To the connected members whose queue has room; returns how many those are. EVENT_SLOW_PEER names each of the others."""
        options = (options or SendOptions())._with_flags(SEND_PARTIAL)
        return self._check(self._native.BroadcastEx(bytes(data), len(data), type, flags, options))

    def send(self, peer_id, data, type=FIRST_USER_TYPE, flags=0, options=None):
        options = options and options._with_flags(0)
        self._check(self._native.SendToPeerEx(_encode(peer_id), bytes(data), len(data), type, flags, options))

    def max_datagram_size(self, peer_id=None):
        """The longest unreliable message for a member, or for a broadcast, in bytes; -1 when it, or nobody, is connected."""
        return self._native.GetMaxDatagramSize(_encode(peer_id))

    def send_to_leader(self, data, type=FIRST_USER_TYPE, flags=0):
        """To the leader; a leader that calls it receives the message itself. -6 when there is none."""
        self._check(self._native.SendToLeader(bytes(data), len(data), type, flags))

    def send_from_leader(self, data, type=FIRST_USER_TYPE, flags=0):
        """To all members, as their leader; -6 when this member is not the leader."""
        self._check(self._native.SendFromLeader(bytes(data), len(data), type, flags))

    def enable_logging(self, enabled=True):
        """To standard error."""
        self._check(self._native.EnableLogging(1 if enabled else 0))

    def poll(self, max=0x7FFFFFFF):
        """In poll mode, runs the handlers of up to `max` queued events, on the calling thread, and returns their number.
        Never waits. Refused inside a handler and while another thread polls (-15), and in thread mode (-3)."""
        return self._check(self._native.PollEvents(max))

    # -- inside

    def _initialize(self, peer, session, config, options):
        if options is not None:
            if config is not None:
                raise TypeError("give either config or options, which has a config of its own")
            return self._native.InitializeNetworkWithOptions(peer, session, ctypes.byref(options))
        if config is None:
            return self._native.InitializeNetwork(peer, session)
        return self._native.InitializeNetworkWithConfig(peer, session, ctypes.byref(config))

    def _register(self, function, kind, handler, call, *more):
        def guarded(*arguments):
            self._inside.handler = True
            try:
                call(*arguments)
            except BaseException:  # SystemExit too: it cannot unwind through native frames.
                traceback.print_exc(file=sys.stderr)
            finally:
                self._inside.handler = False

        # A NULL function pointer; ctypes does not take None here.
        callback = kind() if handler is None else kind(guarded)
        self._check(getattr(self._native, function)(callback, *more))
        # Only now may the old one go: until the library returned, it could still be running. A handler that replaces itself
        # is running even now, so that what it replaced is kept until a call from outside has waited for it.
        if getattr(self._inside, "handler", False):
            self._retired.setdefault(function, []).append(self._callbacks.get(function))
        else:
            self._retired.pop(function, None)
        self._callbacks[function] = callback

    def _check(self, code):
        if code < 0:
            raise NetworkError(code, (self._native.GetLastErrorMessage() or b"").decode("utf-8", "replace"))
        return code

    def _text(self, value):
        if value is None:
            self._check(self._native.GetLastErrorCode())
            return ""
        return value.decode("utf-8")

    def _close_at_exit(self):
        try:
            self.close()
        except NetworkError:
            traceback.print_exc(file=sys.stderr)


def _lines(texts):
    """One text a line; a str is taken as it is."""
    return texts if texts is None or isinstance(texts, str) else "\n".join(texts)


def _encode(text):
    if text is None:
        return None  # NULL: the library answers with its own sentence.
    encoded = text.encode("utf-8")
    if b"\0" in encoded:
        raise ValueError("the text contains a NUL character, at which C would cut it off")
    return encoded


def _library_path():
    chosen = os.environ.get("MMN_LIBRARY")
    if chosen:
        return chosen
    name = {
        "win32": "meta_mystia_network.dll",
        "darwin": "libmeta_mystia_network.dylib",
    }.get(sys.platform, "libmeta_mystia_network.so")
    here = os.path.dirname(os.path.abspath(__file__))
    for directory in (here, os.path.join(here, "..", "..", "target", "release")):
        candidate = os.path.join(directory, name)
        if os.path.exists(candidate):
            return os.path.abspath(candidate)
    return name
