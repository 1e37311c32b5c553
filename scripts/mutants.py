#!/usr/bin/env python3
"""`make mutants`: puts every plausible bug into the election core, one at a time, and shows which tests notice it.

cargo-mutants lists the bugs (mutants). A build for each would take hours, so all of them go into one build of the core and the
simulator: each function contains all its mutants, and the environment variable MMN_MUTANT selects the active one. For each mutant
the unit tests of the core run, and the simulator runs the same seeds of the kinds of rooms in which its file decides. A run that
crashes, takes several times its usual time, or too much memory, has noticed it.

The summary goes into docs/mutants.md, the table into target/mutants/table.md. The command fails if a mutant survives everything and
tests/mutants/reasons.json has no reason for that, or if it has a reason for a mutant that is gone or is noticed.

Results are kept in target/mutants/results.json: an interrupted run continues there, unless the tree changed.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "mutants"
TREE = FOLDER / "tree"
RESULTS = FOLDER / "results.json"
REASONS = ROOT / "tests" / "mutants" / "reasons.json"
SUMMARY = ROOT / "docs" / "mutants.md"
TABLE = FOLDER / "table.md"

VERSION = "27.1.0"
# Number of rooms of each kind that run for a mutant (`tests/sim/examples/failing_seeds.rs`), by strategy. Few with
# static quorums, because they notice little more, and take longer.
RAFT = {"any": 200, "roster": 50, "storm": 50}
SEEDED = {"seeded": 200}
FILES = {
    "crates/core/src/election/rules.rs": RAFT,
    "crates/core/src/quorum.rs": RAFT,
    "crates/core/src/election/raft/quorum.rs": RAFT,
    "crates/core/src/election/raft/durable.rs": RAFT,
    "crates/core/src/election/record.rs": RAFT,
    "crates/core/src/election/raft/memory.rs": RAFT,
    "crates/core/src/election/seeded/paxos.rs": SEEDED,
    "crates/core/src/election/seeded/durable.rs": SEEDED,
    "crates/core/src/election/seeded/memory.rs": SEEDED,
}
# The copy has only the core and the simulator: a build takes a minute. This goes into the crate of the core.
CORE = "crates/core/src/lib.rs"
SWITCH = """
pub(crate) fn mutant() -> u32 {
    static ALIVE: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        std::env::var("MMN_MUTANT").map_or(0, |number| number.parse().expect("a number"))
    });
    *ALIVE
}
"""
# Overflows are noticed as in `make test`.
MANIFEST = """
[workspace]
resolver = "3"
members = ["crates/core", "tests/sim"]

[workspace.lints.rust]
missing_docs = "allow"

[profile.mutants]
inherits = "dev"
opt-level = 1
debug = false
"""
# Skipped: they take ten times as long as all others. The gossip tests do not touch votes and records; the seeds cover
# the seeded test.
SKIPPED = [
    "--skip=election::gossip::tests::figures",
    "--skip=election::gossip::tests::chaos",
    "--skip=election::seeded::tests::chaos",
]
# Limit of a run: this multiple of the time of the run without a mutant, and these seconds more.
TIMES = 5
MORE_SECONDS = 20
MEMORY_BYTES = 6 << 30
NAMES_SHOWN = 2


class Failed(Exception):
    """The failure, in one line."""


class Mutant:
    """One bug: its place, and its replacement text."""

    def __init__(self, listed, key):
        self.key = key
        self.file = listed["file"]
        self.function = listed["function"]
        self.span = listed["span"]
        self.replacement = listed["replacement"]
        self.place, self.what = re.fullmatch(r"\S+\.rs:(\d+:\d+): (.*)", listed["name"], re.S).groups()
        # Its arm of the switch; 0 is no mutant.
        self.number = 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shard", default="0/1", help="K/N: every Nth mutant from the Kth on, counted from 0")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time; each takes two cores")
    parser.add_argument("--file", action="append", choices=list(FILES), help="only the mutants of this file")
    parser.add_argument("--add", type=Path, action="append", default=[], help="the results.json of another shard")
    parser.add_argument("--survivors", action="store_true", help="after tests were added: only what nothing noticed so far")
    arguments = parser.parse_args()
    try:
        return run(arguments)
    except Failed as failure:
        print(f"make mutants: {failure}", file=sys.stderr)
        return 1


def run(arguments):
    mutants = list_mutants()
    kept = Kept(arguments)
    for path in arguments.add:
        kept.add(path)
    wanted = chosen(mutants, arguments)
    wanted = [mutant for mutant in wanted if kept.is_open(mutant, arguments.survivors)]
    if wanted:
        try_all(mutants, wanted, kept, arguments)
    missing = [mutant for mutant in mutants if mutant.key not in kept.results]
    if missing:
        print(f"{len(missing)} of {len(mutants)} mutants were not tried; no table is written")
        return judge([mutant for mutant in mutants if mutant.key in kept.results], kept.results, reasons())
    TABLE.write_text(table(mutants, kept.results, reasons()))
    SUMMARY.write_text(summary(mutants, kept.results, reasons()))
    print(f"{SUMMARY.relative_to(ROOT)} and {TABLE.relative_to(ROOT)} are written")
    return judge(mutants, kept.results, reasons())


def chosen(mutants, arguments):
    """The mutants of the requested shard and files."""
    match = re.fullmatch(r"(\d+)/(\d+)", arguments.shard)
    if not match or int(match[1]) >= int(match[2]):
        raise Failed(f"--shard {arguments.shard}: K/N with K below N")
    shard, shards = int(match[1]), int(match[2])
    files = arguments.file or FILES
    return [mutant for at, mutant in enumerate(mutants) if at % shards == shard and mutant.file in files]


# The list of mutants.


def cargo_mutants():
    """The environment in which `cargo mutants` is available."""
    environment = dict(os.environ)
    tools = ROOT / "target" / "tools"
    probe = ["cargo", "mutants", "--version"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(probe, check=False, **quiet).returncode == 0:
        return environment
    if not (tools / "bin" / "cargo-mutants").exists():
        print(f"installing: cargo-mutants {VERSION}, in target/tools (minutes)")
        install = ["cargo", "install", "--quiet", "--locked", "--root", str(tools), "cargo-mutants", "--version", VERSION]
        if subprocess.run(install, check=False).returncode != 0:
            raise Failed(f"missing: cargo-mutants; install it: cargo install --locked cargo-mutants --version {VERSION}")
    environment["PATH"] = f"{tools / 'bin'}:{environment['PATH']}"
    return environment


def list_mutants():
    """All mutants, in the order of the files and of their places. A key has no line number, so that it outlives edits."""
    command = ["cargo", "mutants", "--list", "--json", "--no-config"]
    for file in FILES:
        command += ["--file", file]
    listed = json.loads(subprocess.run(command, cwd=ROOT, env=cargo_mutants(), check=True, capture_output=True).stdout)
    order = list(FILES)
    listed.sort(key=lambda one: (order.index(one["file"]), position(one["span"]["start"]), position(one["span"]["end"])))
    seen, mutants = {}, []
    for one in listed:
        name = re.sub(r"\.rs:\d+:\d+: ", ".rs: ", one["name"])
        seen[name] = seen.get(name, 0) + 1
        mutants.append(Mutant(one, name if seen[name] == 1 else f"{name} ({seen[name]})"))
    return mutants


def position(end):
    return (end["line"], end["column"])


# The copy of the tree that contains them.


def copy_tree():
    """The core and the simulator. A file that did not change keeps its time, for cargo."""
    names = {"Cargo.lock"}
    for folder in ["crates/core", "tests/sim"]:
        names |= {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()}
    for path in TREE.rglob("*.rs"):
        if str(path.relative_to(TREE)) not in names:
            path.unlink()
    for name in names - FILES.keys() - {CORE}:
        write(TREE / name, (ROOT / name).read_bytes())
    write(TREE / CORE, ((ROOT / CORE).read_text() + SWITCH).encode())
    write(TREE / "Cargo.toml", MANIFEST.encode())


def write(path, content):
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Source:
    """A file of the tree with the mutants of its functions."""

    def __init__(self, file):
        self.file = file
        self.text = (ROOT / file).read_text()
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        # Of the text made last: the range of lines of each mutant.
        self.lines = {}

    def offset(self, end):
        return self.starts[end["line"] - 1] + end["column"] - 1

    def body(self, function):
        """From the brace that opens the body to behind the one that closes it."""
        start, end = (self.offset(function["span"][side]) for side in ("start", "end"))
        signature = self.text.index("fn ", start)
        return self.text.index("{", signature), end

    def signature(self, function):
        start = self.offset(function["span"]["start"])
        return self.text[start : self.body(function)[0]]

    def mutated(self, mutant):
        """The body of its function with the mutant in it."""
        start, end = self.body(mutant.function)
        first, behind = (self.offset(mutant.span[side]) for side in ("start", "end"))
        if not start < first <= behind < end:
            raise Failed(f"{mutant.key}: it is not in the body of its function")
        return self.text[start:first] + mutant.replacement + self.text[behind:end]

    def with_switch(self, mutants):
        """The text in which the environment decides between the mutants."""
        groups = {}
        for mutant in mutants:
            groups.setdefault(self.body(mutant.function), []).append(mutant)
        text, copied, self.lines = "", 0, {}
        for (start, end), group in sorted(groups.items()):
            if start < copied:
                raise Failed(f"{self.file}: a function with mutants within another")
            text += self.text[copied:start] + "{ match crate::mutant() {\n"
            for mutant in group:
                first = text.count("\n") + 1
                text += f"{mutant.number} => {self.mutated(mutant)}\n"
                self.lines[mutant.number] = (first, text.count("\n"))
            text += f"_ => {self.text[start:end]}\n}} }}"
            copied = end
        return text + self.text[copied:]

    def with_one(self, mutant):
        """The text with one mutant that is always alive."""
        start, end = self.body(mutant.function)
        return self.text[:start] + self.mutated(mutant) + self.text[end:]

    def needs_own_build(self, function):
        """Whether a switch cannot choose between its bodies: they have no common type, or no environment."""
        signature = self.signature(function)
        return "-> impl" in signature or "const fn" in signature


def build(sources, mutants):
    """Builds the mutants. Returns the mutants that do not compile; after their removal the others did."""
    broken = set()
    while True:
        for source in sources.values():
            here = [mutant for mutant in mutants if mutant.file == source.file and mutant.key not in broken]
            write(TREE / source.file, source.with_switch(here).encode())
        errors, programs = compile_tree()
        if not errors:
            return broken, programs
        found = set()
        for error in errors:
            for span in error["spans"]:
                source = sources.get(os.path.normpath(span["file_name"]))
                for mutant in mutants if source else []:
                    first, last = source.lines.get(mutant.number, (1, 0))
                    if mutant.file == source.file and first <= span["line_start"] <= last:
                        found.add(mutant.key)
        if not found - broken:
            raise Failed("the copy of the tree does not compile:\n" + "\n".join(error["rendered"] for error in errors))
        broken |= found


def compile_tree():
    """The errors, and the programs: the unit tests and the seeds."""
    errors, programs = [], {}
    environment = dict(os.environ, CARGO_TARGET_DIR=str(FOLDER / "build"), RUSTFLAGS="--cap-lints=allow")
    for what in (["build", "-p", "room_simulator", "--example", "failing_seeds"], ["test", "-p", "room_core", "--no-run", "--lib"]):
        command = ["cargo", *what, "--profile", "mutants", "--quiet", "--message-format", "json"]
        done = subprocess.run(command, cwd=TREE, env=environment, check=False, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            message = json.loads(line) if line.startswith("{") else {}
            if message.get("reason") == "compiler-message" and message["message"]["level"] == "error":
                errors.append(message["message"])
            if message.get("reason") == "compiler-artifact" and message.get("executable"):
                programs[message["target"]["name"]] = message["executable"]
        if errors:
            return errors, {}
        if done.returncode != 0:
            raise Failed("the copy of the tree does not build:\n" + done.stderr)
    return errors, programs


class Programs:
    """The unit tests and the simulator, kept apart from later builds."""

    def __init__(self, built, name):
        folder = FOLDER / "programs" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.tests = shutil.copy2(built["room_core"], folder / "tests")
        self.seeds = shutil.copy2(built["failing_seeds"], folder / "seeds")
        self.tests_seconds = 600.0
        # For each kind of rooms.
        self.seeds_seconds = {}

    def most_seconds(self, kinds):
        """Limit of the time of a run of its rooms."""
        return TIMES * sum(self.seeds_seconds.get(kind, 600.0) for kind in kinds) + MORE_SECONDS


# The runs.


def try_all(mutants, wanted, kept, arguments):
    print(f"{len(wanted)} of {len(mutants)} mutants are tried; building all in one")
    copy_tree()
    sources = {file: Source(file) for file in FILES}
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    alone = [mutant for mutant in mutants if sources[mutant.file].needs_own_build(mutant.function)]
    began = time.monotonic()
    broken, built = build(sources, [mutant for mutant in mutants if mutant not in alone])
    programs = Programs(built, "all")
    print(f"built in {time.monotonic() - began:.0f} s; {len(broken)} do not compile")
    calm(programs)
    for mutant in wanted:
        if mutant.key in broken:
            kept.keep(mutant, {"unviable": True})
    together = [mutant for mutant in wanted if mutant.key not in broken and mutant not in alone]
    done = Progress(len(together))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {pool.submit(try_one, programs, mutant.number, mutant): mutant for mutant in together}
        for future in concurrent.futures.as_completed(runs):
            kept.keep(runs[future], future.result())
            done.say(runs[future], future.result())
    for mutant in wanted:
        if mutant in alone:
            try_alone(sources, mutant, programs, kept)


def try_alone(sources, mutant, limits, kept):
    """Runs with a build of its own."""
    for source in sources.values():
        text = source.with_one(mutant) if source.file == mutant.file else source.text
        write(TREE / source.file, text.encode())
    errors, built = compile_tree()
    if errors:
        kept.keep(mutant, {"unviable": True})
        return
    programs = Programs(built, "one")
    programs.tests_seconds, programs.seeds_seconds = limits.tests_seconds, limits.seeds_seconds
    kept.keep(mutant, try_one(programs, 0, mutant))


def calm(programs):
    """Without a mutant all must pass; the time of that bounds the others."""
    began = time.monotonic()
    result = run_tests(programs, 0)
    programs.tests_seconds = time.monotonic() - began
    print(f"unit tests: {programs.tests_seconds:.1f} s")
    for kind, count in (RAFT | SEEDED).items():
        began = time.monotonic()
        result |= run_seeds(programs, 0, {kind: count})
        programs.seeds_seconds[kind] = time.monotonic() - began
        print(f"{kind}={count}: {programs.seeds_seconds[kind]:.1f} s")
        if is_noticed(result):
            raise Failed(f"without a mutant: {json.dumps(result)}")


def try_one(programs, number, mutant):
    return run_tests(programs, number) | run_seeds(programs, number, FILES[mutant.file])


def run_tests(programs, number):
    """The names of the unit tests that fail, and any other cause of the end."""
    command = [programs.tests, "--test-threads=2", *SKIPPED]
    output, ended = run_limited(command, number, TIMES * programs.tests_seconds + MORE_SECONDS)
    failed = sorted(set(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", output, re.M)))
    if ended is None and not re.search(r"^test result: ", output, re.M):
        ended = "ended"
    return {"tests": failed, "tests_ended": ended}


def run_seeds(programs, number, kinds):
    """The number of seeds of each kind of room that fail, and any other cause of the end."""
    command = [programs.seeds, *(f"{kind}={count}" for kind, count in kinds.items())]
    output, ended = run_limited(command, number, programs.most_seconds(kinds))
    lines = output.splitlines()
    if ended is None and "done" not in lines:
        ended = "ended"
    counts = {kind: sum(line.startswith(kind + " ") for line in lines) for kind in kinds}
    return {"seeds": counts, "seeds_ended": ended}


def run_limited(command, number, seconds):
    """The output of a program, and "time" if it did not end by itself."""
    environment = dict(os.environ, MMN_MUTANT=str(number), RUST_BACKTRACE="0")
    limits = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))  # noqa: E731
    process = subprocess.Popen(
        [str(part) for part in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=limits,
    )
    try:
        return process.communicate(timeout=seconds)[0], None
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0], "time"


def by_tests(result):
    return bool(result["tests"] or result["tests_ended"])


def by_seeds(result):
    return bool(any(result["seeds"].values()) or result["seeds_ended"])


def is_noticed(result):
    return by_tests(result) or by_seeds(result)


class Progress:
    def __init__(self, total):
        self.total, self.done, self.began = total, 0, time.monotonic()

    def say(self, mutant, result):
        self.done += 1
        noticed = f"{len(result['tests'])} tests, {'+'.join(map(str, result['seeds'].values()))} seeds"
        if not is_noticed(result):
            noticed = "SURVIVES"
        took = time.monotonic() - self.began
        print(f"{self.done}/{self.total} {took:.0f} s: {mutant.key}: {noticed}", flush=True)


class Kept:
    """The results so far, on disk."""

    def __init__(self, arguments):
        self.about = {"tree": tree_digest(), "seeds": FILES}
        self.results = {}
        if RESULTS.exists():
            found = json.loads(RESULTS.read_text())
            if found["about"] == self.about or arguments.survivors:
                self.results = found["results"]

    def is_open(self, mutant, survivors):
        result = self.results.get(mutant.key)
        return result is None or (survivors and "unviable" not in result and not is_noticed(result))

    def add(self, path):
        found = json.loads(path.read_text())
        if found["about"] != self.about:
            raise Failed(f"{path}: results of another tree or of other seeds")
        self.results |= found["results"]
        self.save()

    def keep(self, mutant, result):
        self.results[mutant.key] = result
        self.save()

    def save(self):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        new = RESULTS.with_suffix(".new")
        new.write_text(json.dumps({"about": self.about, "results": self.results}, indent=1))
        new.replace(RESULTS)


def tree_digest():
    """A digest of everything that decides which tests notice a mutant."""
    digest = hashlib.sha256()
    paths = [ROOT / "Cargo.lock", *(ROOT / "crates" / "core").rglob("*.rs"), *(ROOT / "tests" / "sim").rglob("*.rs")]
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


# The outcome.


def reasons():
    return json.loads(REASONS.read_text()) if REASONS.exists() else {}


def judge(mutants, results, known):
    """Shows mutants without a valid reason."""
    viable = [mutant for mutant in mutants if "unviable" not in results[mutant.key]]
    survive = [mutant.key for mutant in viable if not is_noticed(results[mutant.key])]
    tried = {mutant.key for mutant in mutants}
    print(f"{len(viable)} mutants, {len(survive)} survive, {len(mutants) - len(viable)} do not compile")
    unexplained = [key for key in survive if key not in known]
    idle = [key for key in known if key in tried and key not in survive]
    listed = {mutant.key for mutant in list_mutants()}
    gone = [key for key in known if key not in listed]
    for text, keys in [("survives without a reason", unexplained), ("has a reason, but is noticed", idle), ("is gone", gone)]:
        for key in keys:
            print(f"{text}: {key}", file=sys.stderr)
    return 1 if unexplained or idle or gone else 0


def summary(mutants, results, known):
    """The text of docs/mutants.md."""
    lines = [
        "# Mutants of the election core",
        "",
        "`make mutants` writes this page. [cargo-mutants](https://mutants.rs) lists plausible bugs in the",
        "files that elections must get right. The command puts each into the code alone. It runs the unit",
        "tests of `crates/core/` (all but the figures of gossip and two tests of many seeds), and the",
        f"simulator over seeds of rooms of at most 16: {RAFT['any']} of any raft room, {RAFT['roster']} with a static quorum",
        f"(roster) and {RAFT['storm']} vote storms; for the files of the seeded strategy {SEEDED['seeded']} seeded rooms. A mutant",
        "is noticed, too, if a run crashes, takes several times its usual time, or takes too much memory.",
        "`target/mutants/table.md` lists each mutant with what notices it.",
        "",
        "| file | mutants | noticed | by unit tests | by seeds | by seeds alone | survive | do not compile |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for file in [*FILES, None]:
        lines.append(totals(file, [mutant for mutant in mutants if file in (None, mutant.file)], results))
    lines += ["", "`tests/mutants/reasons.json` explains each mutant that survives; `make mutants` fails if it does not.", ""]
    lines += ["| file | mutant | why it survives |", "|---|---|---|"]
    for mutant in mutants:
        if "unviable" not in results[mutant.key] and not is_noticed(results[mutant.key]):
            lines.append(f"| {mutant.file} | `{cell(mutant.what)}` | {known.get(mutant.key, '')} |")
    return "\n".join(lines) + "\n"


def table(mutants, results, known):
    """Every mutant. A place is the line and the column in the file; the columns count the unit tests and the seeds that fail."""
    lines = []
    for file, kinds in FILES.items():
        here = [mutant for mutant in mutants if mutant.file == file]
        lines += [f"## {file}", ""]
        lines += [f"| place | mutant | unit tests | {' | '.join(kinds)} | of the tests, or the reason why it survives |"]
        lines += ["|---|---|---|" + "---|" * len(kinds) + "---|"]
        viable = [mutant for mutant in here if "unviable" not in results[mutant.key]]
        lines += [row(mutant, results[mutant.key], known) for mutant in viable]
        unviable = [f"`{cell(mutant.what)}` ({mutant.place})" for mutant in here if mutant not in viable]
        if unviable:
            lines += ["", "Do not compile: " + ", ".join(unviable) + "."]
        lines.append("")
    return "\n".join(lines)


def totals(file, mutants, results):
    viable = [results[mutant.key] for mutant in mutants if "unviable" not in results[mutant.key]]
    noticed = sum(map(is_noticed, viable))
    seeds_alone = sum(not by_tests(result) and by_seeds(result) for result in viable)
    numbers = [len(viable), noticed, sum(map(by_tests, viable)), sum(map(by_seeds, viable)), seeds_alone]
    numbers += [len(viable) - noticed, len(mutants) - len(viable)]
    return f"| {file or 'all'} | " + " | ".join(map(str, numbers)) + " |"


def row(mutant, result, known):
    tests = f"{len(result['tests'])}{'+' if result['tests_ended'] else ''}"
    more = "+" if result["seeds_ended"] else ""
    seeds = [f"{count}{more}" for count in result["seeds"].values()]
    names = [f"`{name.removeprefix('core::')}`" for name in result["tests"][:NAMES_SHOWN]]
    if len(result["tests"]) > NAMES_SHOWN:
        names.append("...")
    last = known.get(mutant.key, "") if not is_noticed(result) else ", ".join(names)
    return f"| {mutant.place} | `{cell(mutant.what)}` | {tests} | " + " | ".join(seeds) + f" | {last} |"


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
