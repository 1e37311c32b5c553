"""A member that greets each other one, with asyncio: `hello.py ID [ADDRESS]`. It prints its address and its messages, and leaves
at the end of its input. Checked with `mypy --strict`, too.
"""

import asyncio
import sys

import meta_mystia_network as mmn
from meta_mystia_network import aio


async def main(me: str, *dial: str) -> None:
    async with aio.Room(me, "packages") as room:
        print(room.local_address, flush=True)
        greeter = asyncio.create_task(greet(room))
        for address in dial:
            await room.connect(address)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    # After the leave there are no further events.
    await greeter


async def greet(room: aio.Room) -> None:
    async for event in room.events():
        match event:
            case mmn.PeerJoined(peer):
                room.send(peer, b"hello from asyncio")
            case mmn.Message(sender, data):
                print(f"{sender}: {data.decode()}", flush=True)
            case mmn.PeerLeft(peer, reason):
                print(f"{peer} left: {reason.words}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
