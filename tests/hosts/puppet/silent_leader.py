#!/usr/bin/env python3
"""The lobby in Python with one more command, /dial ADDRESS: it dials, and does nothing more for the shared state.

It stands for a leader that is lost before its snapshot has arrived. The room still has it as its leader.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))

import lobby


class SilentLeader(lobby.Lobby):
    def obey(self, line):
        if line.startswith("/dial "):
            self.state.tick = lambda: None
            self.attempt(lambda: self.room.connect(line[len("/dial ") :]))
        else:
            super().obey(line)


if __name__ == "__main__":
    lobby.Lobby = SilentLeader
    sys.exit(lobby.main())
