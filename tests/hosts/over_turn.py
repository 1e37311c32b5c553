"""Tests of `tests/lab/turn_servers.py`: members whose networks let no UDP out, and a real coturn.

`over_turn.py NAME` runs one function below. Run by `tests/hosts`; MMN_LIBRARY names the library, MMN_RELAY the relay's program. Needs root,
nftables, conntrack, openssl and coturn.
"""

import sys
from pathlib import Path

import stories

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))
from turn_servers import (  # noqa: E402, F401
    a_certificate_that_the_system_does_not_trust_counts_by_its_key,
    a_member_without_udp_dials_an_address,
    a_member_without_udp_plays_over_a_relay,
    a_port_serves_members_that_no_other_path_links,
    a_server_over_udp_that_dies_is_reported_and_used_again,
    a_server_that_dies_is_reported_and_used_again,
    a_server_that_is_given_up_is_reported,
    a_server_that_is_restarted_at_once_is_noticed,
    credentials_that_the_server_refuses_are_reported_and_replaced,
    members_whose_routers_let_them_through_need_no_port,
    two_members_without_udp_link_through_one_server,
    without_the_option_no_server_is_asked,
)

if __name__ == "__main__":
    stories.main(globals())
