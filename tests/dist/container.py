#!/usr/bin/env python3
"""The container of mmn-relay, built by its Containerfile from target/dist/linux-x64/relay (`make test-dist`), as root.

Nothing is fetched, and no daemon runs: buildah makes the image in a folder of its own. The image's file system is the root of the
relay, which runs as the user and with the entry point that the image names. Exits with 0 only if the relay printed its help, started,
answered, kept its key and ended.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from linux import LIMIT, ROOT, DemoFailed, Screen, check_relay, isolate


def run(command):
    """Returns a command's output, without its last line break."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise DemoFailed(f"`{' '.join(map(str, command))}` failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def check(relay, folder):
    """Builds the image from the folder of a relay, and runs it."""
    buildah = ["buildah", "--storage-driver", "vfs", "--root", folder / "images", "--runroot", folder / "run"]
    image = run([*buildah, "bud", "--isolation", "chroot", "--quiet", relay])
    config = json.loads(run([*buildah, "inspect", "--type", "image", image]))["OCIv1"]["config"]
    root = Path(run([*buildah, "mount", run([*buildah, "from", image])]))
    command = ["chroot", f"--userspec={config['User']}", root, *config["Entrypoint"]]
    if "--metrics" not in run([*command, "--help"]):
        raise DemoFailed("the image's program does not print its help")
    check_relay("in the container", command)
    (volume,) = config["Volumes"]
    owner = (root / volume.lstrip("/") / "key").stat().st_uid
    if owner == 0 or str(owner) != config["User"].split(":")[0]:
        raise DemoFailed(f"the key belongs to user {owner}, and the image's user is {config['User']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--relay", type=Path, default=ROOT / "target/dist/linux-x64/relay")
    relay = parser.parse_args().relay.resolve()
    screen = Screen()
    try:
        if os.uname().machine != "x86_64" or os.geteuid() != 0:
            raise DemoFailed("it needs root, on x64")
        screen.note(isolate())
        with tempfile.TemporaryDirectory() as folder:
            check(relay, Path(folder))
    except DemoFailed as failure:
        screen.note(f"FAILED: {failure}", bad=True)
        return 1
    screen.note("OK: the relay's container is built, and runs as its own user", good=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
