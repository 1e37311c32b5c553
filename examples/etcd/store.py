"""A store that several servers write to, of which one leads: it refuses writes of earlier leaders.

The file may be on any disk that all of them reach; a database server takes the same statements.
"""

import sqlite3


class OldToken(Exception):
    """The writer led once, and another one has written since."""


class Busy(Exception):
    """Another process has the store locked. Nothing was written."""


class Store:
    """A counter that only the leader raises. Every write carries the leader's fencing token."""

    def __init__(self, path):
        self.database = sqlite3.connect(path, timeout=10, isolation_level=None)
        self.database.execute("CREATE TABLE IF NOT EXISTS world (id INTEGER PRIMARY KEY, counter, writer, token)")
        self.database.execute("INSERT OR IGNORE INTO world VALUES (1, 0, '', 0)")

    def raise_counter(self, writer, token):
        """Raises the counter by one, and returns it. Nothing changes if a larger token was seen (OldToken), or if another process
        keeps the store locked for 10 s (Busy)."""
        # One statement checks the token and writes: no other write comes in between.
        try:
            changed = self.database.execute(
                "UPDATE world SET counter = counter + 1, writer = ?, token = ? WHERE id = 1 AND token <= ?",
                (writer, token, token),
            )
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise Busy(str(error)) from error
        if changed.rowcount == 0:
            raise OldToken(f"the token {token} is smaller than the largest that the store has seen")
        return self.read()[0]

    def read(self):
        """(counter, last writer, its token)"""
        return self.database.execute("SELECT counter, writer, token FROM world WHERE id = 1").fetchone()
