"""A few scenarios of `tests/lab/relays.py`: members that know a code and a relay alone.

`over_a_relay.py NAME` runs one function below. Run by `tests/hosts`; MMN_LIBRARY names the library, MMN_RELAY the relay's program.
Needs root, nftables and conntrack.
"""

import sys
from pathlib import Path

import stories

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))
import relays  # noqa: E402
from relays import (  # noqa: E402, F401
    a_member_without_a_relay_enters_by_an_address,
    a_hidden_member_sends_packets_to_the_relay_alone,
    a_relay_sends_to_none_but_those_who_asked,
    a_restarted_relay_elects_nobody_and_loses_no_message,
    a_second_relay_carries_on_at_once,
    a_star_over_a_relay,
    a_typed_code_that_is_another_one_meets_nobody,
    both_families_reach_one_relay,
    direct_links_outlive_the_relay,
)


def members_that_can_link_directly_do_so():
    relays.ends_as_wanted("port-restricted + port-restricted")


def members_behind_one_router_link_directly_soon():
    relays.ends_as_wanted("one home, no hairpin")


def members_that_need_a_second_round_of_dials_link_directly_soon():
    relays.ends_as_wanted("restricted + symmetric")


def members_that_cannot_stay_on_the_relay():
    relays.ends_as_wanted("symmetric + symmetric")


def a_rebinding_goes_over_the_relay_to_a_direct_link_again():
    relays.ends_as_wanted("rebinding of b, port-restricted", watch_seconds=15.0)


def a_relay_that_receives_nothing_of_the_leader_alone_loses_no_member():
    (deaf,) = [death for death in relays.DEATHS if death.drops == ("input",)]
    relays.a_member_that_alone_loses_its_relay_is_not_lost([deaf], victims=1)


if __name__ == "__main__":
    stories.main(globals())
