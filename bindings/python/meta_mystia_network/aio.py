"""The room for programs with asyncio.

    from meta_mystia_network import Message, aio

    async with aio.Room("alice", "tea") as room:
        await room.connect("192.168.1.20:40123")
        room.broadcast(b"hello")
        async for event in room.events():
            if isinstance(event, Message):
                print(event.sender, event.data)

The calls are those of `meta_mystia_network.Room`. None of them waits for the network, so they are no coroutines, except connect()
and close(), which wait for their result.
"""

from __future__ import annotations

import asyncio
import collections
import threading

from . import (
    DISPATCH_THREAD,
    NOT_INITIALIZED,
    REJECTED,
    ConnectionResult,
    Event,
    NetworkError,
    NetworkOptions,
    StateOptions,
    _Calls,
    describe_error,
)

__all__ = ["Room"]

MAX_WAITING_EVENTS = 1024
"""Limit of events that wait for the program. Further ones wait in the library, whose queue is bounded, too; then senders wait."""


class Room(_Calls):
    """A room that this process is in, in a running event loop; leave it with `async with` or close().

    The library's thread hands events to the loop: nothing polls. `options` (NetworkOptions) are as for `meta_mystia_network.Room`,
    except that `dispatch_mode` and `hold_messages` have no effect. The handlers of `state` run in the loop: set them before the first
    `await`.
    """

    def __init__(
        self,
        peer_id: str,
        session_id: str,
        options: NetworkOptions | None = None,
        *,
        state: bool | StateOptions = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: collections.deque[Event] = collections.deque()
        self._places = threading.Semaphore(MAX_WAITING_EVENTS)
        self._closing = False
        self._ended = False
        self._waiting: set[asyncio.Future[None]] = set()
        # The dials of each address, the oldest first.
        self._dials: dict[str, collections.deque[asyncio.Future[ConnectionResult]]] = {}
        self._leaving: asyncio.Future[bool] | None = None
        super().__init__(peer_id, session_id, options, self._hand_over, state, None, dispatch_mode=DISPATCH_THREAD, hold_messages=0)

    async def __aenter__(self) -> Room:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leaves the room; takes at most about 2 s, in which the loop runs. Iterations over events() then end, after the events
        that had come before, and a connect() that waits raises NetworkError (-1). A cancelled close() continues; another close()
        waits for it."""
        if self._leaving is None:
            self._leaving = self._loop.run_in_executor(None, self._leave)
            self._leaving.add_done_callback(self._end)
        await asyncio.shield(self._leaving)

    def events(self) -> Events:
        """An asynchronous iterator over all events, messages included, in one order. It ends when the room is left; after
        RoomEnded, leave it. Each event goes to one iteration. Cancelling one loses no event: a later one goes on from there.

        Read them: after 1024 unread events further ones wait, results of connect() included."""
        return Events(self)

    async def connect(self, address: str) -> ConnectionResult:
        """Dials "ip:port", "[v6]:port" or "name:port", and returns when the member is connected; -14 ALREADY_CONNECTED is a success,
        too. Raises NetworkError with the code of a failed dial, and with -1 when the room is left. Cancelling it does not stop the
        dial. The result is also an event, which contains the data of a rejection by the leader's host."""
        dial: asyncio.Future[ConnectionResult] = self._loop.create_future()
        # The result comes through the loop, so it is later than this.
        self._dial(address)
        self._dials.setdefault(address, collections.deque()).append(dial)
        result = await dial
        if not result.success:
            # The data of a rejection belong to the program.
            text = "" if result.code == REJECTED else result.data.decode("utf-8", "replace")
            sentence = f"{address}: {describe_error(result.code)}" + (f": {text}" if text else "")
            raise NetworkError(result.code, sentence)
        return result

    # -- on the library's thread

    def _hand_over(self, event: Event) -> None:
        self._places.acquire()
        if self._closing:
            self._places.release()
            return
        try:
            self._loop.call_soon_threadsafe(self._take, event)
        except RuntimeError:
            # The loop is closed: no reader is left.
            self._places.release()

    # -- on the loop

    def _take(self, event: Event) -> None:
        if isinstance(event, ConnectionResult):
            dials = self._dials.get(event.address)
            if dials:
                dial = dials.popleft()
                if not dials:
                    del self._dials[event.address]
                # A cancelled dial also uses its result: each dial has one.
                if not dial.done():
                    dial.set_result(event)
        if self._state is not None:
            self._state._receive(event)
        self._events.append(event)
        self._wake()

    def _end(self, leaving: asyncio.Future[bool]) -> None:
        if leaving.cancelled() or leaving.exception() is not None:
            self._leaving = None  # the room is still open
            return
        self._ended = True
        dials = [dial for waiting in self._dials.values() for dial in waiting]
        self._dials.clear()
        for dial in dials:
            if not dial.done():
                dial.set_exception(NetworkError(NOT_INITIALIZED, "the room was left before the dial had a result"))
        if self._state is not None:
            self._state._close()
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def _next(self) -> Event | None:
        """None when the room was left and every event is read."""
        while not self._events:
            if self._ended:
                return None
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting.add(waiter)
            try:
                await waiter
            finally:
                self._waiting.discard(waiter)
        self._places.release()
        return self._events.popleft()

    # -- differences from Room

    def _leave(self) -> bool:
        # A handler that waits for a free place would block leaving.
        self._closing = True
        self._places.release()
        try:
            return super()._leave()
        except BaseException:
            self._closing = False
            raise


class Events:
    """Result of events()."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        event = await self._room._next()
        if event is None:
            raise StopAsyncIteration
        return event
