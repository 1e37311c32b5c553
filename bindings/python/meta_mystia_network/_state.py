"""The state that a room's members share: `Room.state`."""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from . import (
    _NONE,
    ANY_VERSION,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    OK,
    PROPERTY_DIES_WITH_OWNER,
    PROPERTY_FALLS_TO_LEADER,
    PROPERTY_KEEP_VALUE,
    PROPERTY_OWNER_ONLY,
    PROPERTY_REMOVE,
    WOULD_DEADLOCK,
    ActionResult,
    Bytes,
    Code,
    Event,
    NetworkError,
    PropertyChanged,
    RoomAction,
    RolledBack,
    SnapshotWanted,
    StateReset,
    _checked,
    _data,
    _in_a_handler,
    _is_in_a_handler,
    _LIMITS,
    _MmnPropertyChange,
    _MmnPropertyInfo,
    _MmnStateInfo,
    _number,
    _text,
    describe_error,
)

if TYPE_CHECKING:
    from . import _Calls

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
    """The own properties of a member, without the prefix "@id/" that they have in the room's state."""

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
