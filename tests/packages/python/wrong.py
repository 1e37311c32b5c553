"""Mistakes that a type checker finds by the package's types. packages_python.py expects an error in each marked line."""

import asyncio

import meta_mystia_network as mmn
from meta_mystia_network import aio

options = mmn.NetworkOptions(bind_address=127)  # wrong: arg-type
options.priority = "high"  # wrong: assignment


async def main() -> None:
    room = aio.Room("alice", "tea", options=options)
    room.broadcast("hello")  # wrong: arg-type
    peer: int = await room.connect("127.0.0.1:40123")  # wrong: assignment
    for event in room.events():  # wrong: attr-defined
        print(event, peer)
    joined = mmn.PeerJoined("bob")
    print(joined.other)  # wrong: attr-defined
    left: int = joined.peer  # wrong: assignment
    print(left)
    stats: mmn.PeerStats = room.stats("bob")
    text: str = stats.rtt_us  # wrong: assignment
    print(text)


asyncio.run(main())
