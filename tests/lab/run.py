#!/usr/bin/env python3
"""Runs tests of the lab: `run.py [NAME...]`, by default all; a name may be a part of a test's name. `--list` lists them.

`run.py --long` is the long form: every disturbance 20 times, the room under loss for 30 minutes (LAB_TIMES, LAB_MINUTES). Exits
with 0 when all passed, with 1 when one failed, and with 3 on a machine that cannot run the lab.
"""

import argparse
import os
import signal
import sys
import time
import traceback

import network


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.long:
        os.environ.setdefault("LAB_MINUTES", "30")
        os.environ.setdefault("LAB_TIMES", "20")
    # At once, without waiting for the rooms of other threads: hosts, switches and namespaces end with this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    try:
        network.check()
    except network.CannotRun as reason:
        print(f"lab: cannot run here: it {reason}", file=sys.stderr)
        return network.CANNOT_RUN

    os.environ.setdefault("MMN_LIBRARY", str(network.ROOT / "target/release/libmeta_mystia_network.so"))
    # They read LAB_TIMES and LAB_MINUTES.
    import calibration
    import nat
    import ports
    import relays
    import scenarios
    import turn_servers

    tests = [*calibration.TESTS, *scenarios.TESTS, *nat.TESTS, *relays.TESTS, *ports.TESTS, *turn_servers.TESTS]
    wanted = [test for test in tests if not arguments.names or any(name in test.__name__ for name in arguments.names)]
    if arguments.list:
        print("\n".join(test.__name__ for test in wanted))
        return 0
    if not wanted:
        print(f"lab: no test is named {' or '.join(arguments.names)}", file=sys.stderr)
        return 2
    failed = []
    for test in wanted:
        print(f"--- {test.__name__}", flush=True)
        began = time.monotonic()
        try:
            test()
        except network.CannotRun as reason:
            print(f"lab: cannot run here: {reason}", file=sys.stderr)
            return network.CANNOT_RUN
        except Exception:
            traceback.print_exc()
            failed.append(test.__name__)
            print(f"FAILED after {time.monotonic() - began:.1f} s", flush=True)
        else:
            print(f"passed in {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(wanted) - len(failed)} of {len(wanted)} passed" + "".join(f"; FAILED: {name}" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
