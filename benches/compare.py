#!/usr/bin/env python3
"""Compares the library's figures on loopback with plain UDP, plain TCP, ENet and bare quinn: one table in Markdown.

    compare.py LIBRARY.so [--vs OLD.so] [--runs 5] [--quick] [--only PART] [--quiet SECONDS] [--no-quinn]

Builds abi_bench.c and yardsticks.c (with ENet, if its header is installed) and bare_quinn.rs, and runs all of them in turn, each
run with fresh processes in a network of its own. A cell shows the median of the rounds with the least and the greatest. A
ratio is the median of the ratios of each round, whose runs are neighbours in time. Exits with 1 if a run failed. Only the
table shows whether a target is met: machines differ, and the runs of --quick are too short to judge by.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "figures"
GCC = ["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra"]
RUN_SECONDS = 300
# Exit code of yardsticks for a mode that it was built without.
BUILT_WITHOUT = 4
# Metrics that must be 0 in every run. Losses of broadcasts have a row of their own.
FAULTS = ["lost", "reordered", "duplicates", "damaged", "other_errors"]


class Measurement(typing.NamedTuple):
    """A run of one program. The words of --quick are shorter."""

    program: str
    words: str
    quick: str


class Row(typing.NamedTuple):
    part: str
    name: str
    unit: str
    # Column: the measurement and its metric. "before" is "this library" with the other library.
    cells: dict
    # The column that the ratio refers to.
    yardstick: str = ""
    # ("at most" or "at least", the limit, "ratio" or "value").
    target: tuple = ()


OURS, BEFORE, UDP, TCP, ENET, QUINN = "this library", "before", "raw UDP", "raw TCP", "ENet", "bare quinn"
COLUMNS = [OURS, BEFORE, UDP, TCP, ENET, QUINN]

MEASUREMENTS = {
    "udp rtt": Measurement("yardsticks", "udp-rtt 32 20000", "udp-rtt 32 1000"),
    "tcp rtt": Measurement("yardsticks", "tcp-rtt 32 20000", "tcp-rtt 32 1000"),
    "enet rtt": Measurement("yardsticks", "enet-rtt 32 20000", "enet-rtt 32 1000"),
    "quinn rtt": Measurement("bare_quinn", "rtt 32 20000", "rtt 32 1000"),
    "rtt poll": Measurement("abi_bench", "rtt 32 20000 --poll", "rtt 32 1000 --poll"),
    "rtt callback": Measurement("abi_bench", "rtt 32 20000 --in-callback", "rtt 32 1000 --in-callback"),
    "rtt": Measurement("abi_bench", "rtt 32 20000", "rtt 32 1000"),
    "quinn rtt-threads": Measurement("bare_quinn", "rtt-threads 32 20000", "rtt-threads 32 1000"),
    "tcp 32": Measurement("yardsticks", "tcp-tput 32 500000", "tcp-tput 32 100000"),
    "tput 32": Measurement("abi_bench", "tput 32 1000000", "tput 32 100000"),
    "enet 32": Measurement("yardsticks", "enet-tput 32 500000", "enet-tput 32 50000"),
    "quinn 32": Measurement("bare_quinn", "tput 32 200000", "tput 32 20000"),
    "tcp 1024": Measurement("yardsticks", "tcp-tput 1024 300000", "tcp-tput 1024 50000"),
    "tput 1024": Measurement("abi_bench", "tput 1024 200000", "tput 1024 30000"),
    "enet 1024": Measurement("yardsticks", "enet-tput 1024 200000", "enet-tput 1024 20000"),
    "quinn 1024": Measurement("bare_quinn", "tput 1024 200000", "tput 1024 30000"),
    "tcp 16384": Measurement("yardsticks", "tcp-tput 16384 100000", "tcp-tput 16384 20000"),
    "tput 16384": Measurement("abi_bench", "tput 16384 20000", "tput 16384 3000"),
    "enet 16384": Measurement("yardsticks", "enet-tput 16384 10000", "enet-tput 16384 1000"),
    "quinn 16384": Measurement("bare_quinn", "tput 16384 20000", "tput 16384 3000"),
    "fanout": Measurement("abi_bench", "fanout 16 256 20000", "fanout 16 256 3000"),
    "enet fanout": Measurement("yardsticks", "enet-fanout 16 256 20000", "enet-fanout 16 256 3000"),
    "calls": Measurement("abi_bench", "ffi 1000000", "ffi 200000"),
    "idle 8": Measurement("abi_bench", "idle 8 20", "idle 8 1 --settle 500"),
    "idle 32": Measurement("abi_bench", "idle 32 10", "idle 32 1 --settle 500"),
}


def rtt(name, ours, quinn, **more):
    others = {UDP: ("udp rtt", "p50_us"), TCP: ("tcp rtt", "p50_us"), ENET: ("enet rtt", "p50_us")}
    return Row("rtt", name, "us", {OURS: (ours, "p50_us"), **others, QUINN: (quinn, "p50_us")}, QUINN, **more)


def one_way(size, name, least_ratio, most_cpu=None):
    ours, tcp, enet, quinn = (f"{what} {size}" for what in ("tput", "tcp", "enet", "quinn"))
    rates = {column: (key, "msgs_per_s") for column, key in ((OURS, ours), (TCP, tcp), (ENET, enet), (QUINN, quinn))}
    costs = {column: (key, "cpu_us_per_msg") for column, key in ((TCP, tcp), (ENET, enet), (QUINN, quinn))}
    return [
        Row("tput", f"one way, {name}", "messages/s", rates, TCP, ("at least", least_ratio, "ratio")),
        Row(
            "tput",
            f"one way, {name}: CPU of both",
            "us/message",
            {OURS: (ours, "cpu_us_per_delivery"), **costs},
            TCP,
            ("at most", most_cpu, "value") if most_cpu else (),
        ),
    ]


def idle(peers, most_cpu, most_mib):
    key, name = f"idle {peers}", f"{peers} idle processes"
    return [
        Row("idle", f"{name}: CPU of all", "% of a core", {OURS: (key, "cpu_pct_all")}, target=("at most", most_cpu, "value")),
        Row("idle", f"{name}: memory of each", "MiB", {OURS: (key, "rss_mib")}, target=("at most", most_mib, "value")),
        Row("idle", f"{name}: threads of each, with discovery", "", {OURS: (key, "threads")}, target=("at most", 4, "value")),
    ]


ROWS = [
    rtt("round trip of 32 B, poll mode", "rtt poll", "quinn rtt", target=("at most", 1.5, "ratio")),
    rtt("round trip of 32 B, answer in the callback", "rtt callback", "quinn rtt"),
    rtt("round trip of 32 B, thread mode; quinn through threads", "rtt", "quinn rtt-threads", target=("at most", 1, "ratio")),
    *one_way(32, "32 B", 2, 1.5),
    *one_way(1024, "1 KiB", 0.65, 5.8),
    *one_way(16384, "16 KiB", 0.15),
    Row(
        "broadcast",
        "broadcast of 256 B to 15",
        "deliveries/s",
        {OURS: ("fanout", "deliveries_per_s"), ENET: ("enet fanout", "deliveries_per_s")},
        BEFORE,
        ("at least", 1.5, "ratio"),
    ),
    Row(
        "broadcast",
        "broadcast of 256 B to 15: CPU of all",
        "us/delivery",
        {OURS: ("fanout", "cpu_us_per_delivery"), ENET: ("enet fanout", "cpu_us_per_msg")},
        BEFORE,
    ),
    Row("broadcast", "broadcast of 256 B to 15: lost", "", {OURS: ("fanout", "lost"), ENET: ("enet fanout", "lost")}, target=("at most", 0, "value")),
    Row("calls", "IsLeader", "ns", {OURS: ("calls", "IsLeader_ns")}, target=("at most", 5, "value")),
    *idle(8, 1.2, 8),
    *idle(32, 12, 10),
    Row("idle", "mesh of 32 processes", "ms", {OURS: ("idle 32", "mesh_ms")}, target=("at most", 800, "value")),
]
PARTS = list(dict.fromkeys(row.part for row in ROWS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--vs", type=Path, metavar="OLD.so", help="the library before a change, for the column of that name")
    parser.add_argument("--runs", type=int, help="rounds (5; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="short runs: shows that everything works, not how fast it is")
    parser.add_argument("--only", choices=PARTS, help="one part of the table")
    parser.add_argument("--quiet", type=int, default=0, metavar="SECONDS", help="wait so long at most for an idle machine before each run")
    parser.add_argument("--no-quinn", action="store_true", help="without bare quinn, which cargo has to build")
    arguments = parser.parse_args()

    libraries = {OURS: arguments.library.resolve()}
    if arguments.vs:
        libraries[BEFORE] = arguments.vs.resolve()
    for library in libraries.values():
        if not library.is_file():
            sys.exit(f"compare.py: no such library: {library}")
    rows = [row for row in ROWS if arguments.only in (None, row.part)]
    programs, missing = build(want_quinn=not arguments.no_quinn)
    rounds = max(1, arguments.runs or (1 if arguments.quick else 5))
    bench = Bench(programs, libraries, arguments.quick, arguments.quiet, missing)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        bench.round(rows, number)

    print(f"{rounds} round{'s' if rounds > 1 else ''}, {os.cpu_count()} CPUs; median (least to greatest)")
    if arguments.quick:
        print("Short runs: they show that everything works, not how fast it is.")
    print()
    print_table(rows, bench)
    print()
    for name in sorted(missing):
        print(f"Not measured: {name}.")
    if bench.foreign:
        print(f"Other programs took {statistics.median(bench.foreign):.0f} % of the machine (at most {max(bench.foreign):.0f} %).")
    for failure in bench.failures:
        print(f"FAILED: {failure}")
    return 1 if bench.failures else 0


def build(want_quinn):
    """The path of each program, and the reasons why some cannot be measured."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    programs, missing = {}, set()
    programs["abi_bench"] = compile_c("abi_bench", ["-ldl", "-lpthread"])
    probe = subprocess.run(["gcc", "-E", "-x", "c", "-"], input="#include <enet/enet.h>\n", text=True, capture_output=True)
    with_enet = ["-DHAVE_ENET", "-lenet"] if probe.returncode == 0 else []
    programs["yardsticks"] = compile_c("yardsticks", with_enet)
    if not with_enet:
        missing.add("ENet (its header is missing; Debian: libenet-dev)")
    if want_quinn:
        built = subprocess.run(
            ["cargo", "build", "--release", "--bench", "bare_quinn", "--message-format=json"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
        paths = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "bare_quinn"]
        programs["bare_quinn"] = Path(paths[-1])
    else:
        missing.add("bare quinn (--no-quinn)")
    return programs, missing


def compile_c(name, more):
    program = FOLDER / f"compare_{name}"
    part = program.with_suffix(f".{os.getpid()}")
    subprocess.run([*GCC, "-o", part, ROOT / "benches" / f"{name}.c", *more], check=True)
    part.replace(program)
    return program


class Bench:
    def __init__(self, programs, libraries, quick, quiet, missing):
        self.programs = programs
        self.libraries = libraries
        self.quick = quick
        self.quiet = quiet
        self.missing = missing
        # By column and measurement: for each round a dictionary of metrics, or None if the run failed.
        self.results = {}
        self.foreign = []
        self.failures = []

    def round(self, rows, number):
        """Runs the measurements of the rows once. Libraries and yardsticks swap places from one round to the next."""
        wanted = {key: column for row in rows for column, (key, _) in row.cells.items()}
        for key in MEASUREMENTS if number % 2 == 0 else reversed(MEASUREMENTS):
            if key not in wanted or MEASUREMENTS[key].program not in self.programs:
                continue
            columns = list(self.libraries) if wanted[key] == OURS else [wanted[key]]
            for column in columns if number % 2 == 0 else reversed(columns):
                self.results.setdefault((column, key), []).append(self.run(key, column))

    def run(self, key, column):
        measurement = MEASUREMENTS[key]
        words = (measurement.quick if self.quick else measurement.words).split()
        library = [self.libraries[column], *words, "--repeat", "1"] if column in self.libraries else words
        command = [ROOT / "scripts" / "isolated.py", self.programs[measurement.program], *library, "--json"]
        what = f"{column}: {' '.join(words)}"
        wait_for_quiet(self.quiet)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            return self.failed(f"{what}: not done after {RUN_SECONDS} s")
        if done.returncode == BUILT_WITHOUT and measurement.program == "yardsticks":
            return None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["nothing printed"])[-1]
            return self.failed(f"{what}: exit code {done.returncode}: {last}")
        metrics = json.loads(done.stdout)
        if column in self.libraries:
            metrics = {name: values[0] for name, values in metrics["A"].items()}
            self.foreign.append(max(0.0, metrics["foreign_cpu_pct"]))
        if "rss_kib" in metrics:
            metrics["rss_mib"] = metrics["rss_kib"] / 1024
        faults = {name: metrics[name] for name in FAULTS if metrics.get(name) and not (key == "fanout" and name == "lost")}
        if faults:
            return self.failed(f"{what}: {faults}")
        return metrics

    def failed(self, what):
        print(what, file=sys.stderr, flush=True)
        self.failures.append(what)

    def values(self, row, column):
        """The value of each round, or None."""
        key, metric = row.cells.get(OURS if column == BEFORE else column, (None, None))
        return [metrics and metrics[metric] for metrics in self.results.get((column, key), [])]


def busy_seconds():
    """The time that all CPUs together have been busy since boot."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(most):
    """Waits until all CPUs together are less than 15 % busy for 0.3 s, as abi_bench --quiet does."""
    limit = time.monotonic() + most
    while time.monotonic() < limit:
        before = busy_seconds()
        time.sleep(0.3)
        if busy_seconds() - before < 0.15 * 0.3 * (os.cpu_count() or 1):
            return


def print_table(rows, bench):
    columns = [column for column in COLUMNS if column != BEFORE or BEFORE in bench.libraries]
    print(f"| figure | {' | '.join(columns)} | ratio to the yardstick | target | met? |")
    print("|---" * (len(columns) + 4) + "|")
    for row in rows:
        cells = [cell(bench.values(row, column)) for column in columns]
        ratios = [
            ours / theirs
            for ours, theirs in zip(bench.values(row, OURS), bench.values(row, row.yardstick))
            if ours is not None and theirs
        ]
        ratio = f"{cell(ratios)} × {row.yardstick}" if ratios else "-"
        met = is_met(row, [value for value in bench.values(row, OURS) if value is not None], ratios)
        name = f"{row.name}, {row.unit}" if row.unit else row.name
        verdict = {True: "yes", False: "**no**", None: "-"}[met]
        print(f"| {name} | {' | '.join(cells)} | {ratio} | {target(row)} | {verdict} |")


def is_met(row, values, ratios):
    """None without a target, or without a value to judge by."""
    if not row.target:
        return None
    relation, limit, of = row.target
    judged = ratios if of == "ratio" else values
    if not judged:
        return None
    # No message may be lost, in any round.
    figure = max(judged) if limit == 0 else statistics.median(judged)
    return figure <= limit if relation == "at most" else figure >= limit


def target(row):
    if not row.target:
        return "-"
    relation, limit, of = row.target
    if limit == 0:
        return "none"
    sign = "≤" if relation == "at most" else "≥"
    return f"{sign} {limit} × {row.yardstick}" if of == "ratio" else f"{sign} {limit} {row.unit}".rstrip()


def cell(values):
    present = [value for value in values if value is not None]
    if not present:
        return "-"
    middle = short(statistics.median(present))
    return middle if len(present) == 1 else f"{middle} ({short(min(present))} to {short(max(present))})"


def short(value):
    """Formats three digits."""
    if value >= 1e6:
        return f"{short(value / 1e6)} M"
    if value >= 1e4:
        return f"{short(value / 1e3)} k"
    return f"{value:.0f}" if value >= 99.95 or value == int(value) else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
