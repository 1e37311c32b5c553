#!/usr/bin/env python3
"""One of several servers of a game, of which only the leader writes the world. etcd decides which one leads.

    etcd &
    export MMN_LIBRARY=target/server/release/libmeta_mystia_network.so    # of `make server`
    python3 examples/etcd/server.py --id one --store /tmp/world.db &
    python3 examples/etcd/server.py --id two --store /tmp/world.db

Kill the leader: the other continues where it stopped. Stop the leader (kill -STOP) for longer than the TTL, and continue it
(kill -CONT): it does not write any more. The store refuses even a write that it had begun before, because its token is old.
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import meta_mystia_network as mmn  # noqa: E402  (the path above makes it importable from the source tree)
from store import Busy, OldToken, Store  # noqa: E402

FRAME_SECONDS = 0.05


def main():
    parser = argparse.ArgumentParser(description="A server; the one that leads counts in the store, 20 times a second.")
    parser.add_argument("--id", required=True)
    parser.add_argument("--store", required=True, metavar="FILE")
    parser.add_argument("--endpoints", default="http://127.0.0.1:2379", metavar="URL,...")
    parser.add_argument("--ttl", type=int, default=2, metavar="SECONDS", help="how long the lead of a killed server lasts")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()

    store = Store(arguments.store)
    options = mmn.NetworkOptions(
        strategy=mmn.STRATEGY_ETCD,
        # Each server has a room of its own: the servers need to reach only etcd, not each other.
        discovery_mode=mmn.DISCOVERY_OFF,
        etcd=mmn.EtcdOptions(arguments.endpoints.split(","), "example/world", ttl_seconds=arguments.ttl),
    )
    with mmn.Room(arguments.id, arguments.id, options=options) as room:
        room.on_leader(lambda leader: say(arguments.id, f"leader is {leader}" if leader else "no leader"))
        room.proclaim("serves the world")
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            room.poll()
            # 0 unless this server leads, and its lease is valid at this moment.
            token = room.fencing_token
            if token > 0:
                write(store, arguments.id, token)
            time.sleep(FRAME_SECONDS)
    return 0


def write(store, own_id, token):
    try:
        say(own_id, f"counted to {store.raise_counter(own_id, token)} with token {token}")
    except OldToken as error:
        say(own_id, f"refused: {error}")
    except Busy as error:
        # The next frame tries again, if this server still leads then.
        say(own_id, f"not written: {error}")


def say(own_id, text):
    print(f"[{own_id}] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
