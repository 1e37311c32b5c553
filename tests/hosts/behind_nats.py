"""A few scenarios of `tests/lab/nat.py`: members behind NATs lose no message, and send nothing to a third address.

`behind_nats.py NAME` runs one function below. Run by `tests/hosts`; MMN_LIBRARY names the library. Needs root, nftables and
conntrack.
"""

import sys
from pathlib import Path

import stories

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))
import nat  # noqa: E402


def port_restricted_nats_let_members_connect_directly():
    nat.ends_as_listed("port-restricted + port-restricted")


def members_behind_symmetric_nats_connect_through_the_leader():
    nat.ends_as_listed("symmetric + symmetric")


def a_member_carries_where_the_leader_is_behind_a_symmetric_nat():
    nat.ends_as_listed("symmetric + symmetric", leader="b")


def a_rebinding_of_the_leader_ends_in_a_direct_link_again():
    nat.ends_as_listed("rebinding of b, port-restricted", leader="b", watch_seconds=15.0)


def nats_that_change_ports_alike_for_all_let_members_connect_directly():
    nat.ends_as_listed("remap + remap")


def a_home_without_hairpin_lets_its_members_connect_directly():
    nat.ends_as_listed("one home, no hairpin")


if __name__ == "__main__":
    stories.main(globals())
