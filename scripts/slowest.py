#!/usr/bin/env python3
"""Prints the slowest tests of several runs, from the reports that nextest writes: `scripts/slowest.py REPORT.xml...`."""

import sys
import xml.etree.ElementTree as xml

COUNT = 30


def main():
    if len(sys.argv) < 2:
        print("usage: slowest.py REPORT.xml...", file=sys.stderr)
        return 2
    cases = [case for path in sys.argv[1:] for case in xml.parse(path).getroot().iter("testcase")]
    slowest = sorted(cases, key=lambda case: float(case.get("time")), reverse=True)[:COUNT]
    print(f"the slowest of {len(cases)} tests, in seconds:")
    for case in slowest:
        print(f"{float(case.get('time')):8.1f}  {case.get('classname')} {case.get('name')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
