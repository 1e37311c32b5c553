#!/usr/bin/env python3
"""Runs a command with only the loopback device, if this user may; else plainly, and reports that.

Rooms bind all interfaces, and tests open many: `scripts/isolated.py cargo test`.
"""

import os
import sys

from demo import isolate


def main():
    if len(sys.argv) < 2:
        print("usage: isolated.py COMMAND [ARGUMENT...]", file=sys.stderr)
        return 2
    print(isolate(), file=sys.stderr)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
