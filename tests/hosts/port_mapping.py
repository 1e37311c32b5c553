"""A few tests of `tests/lab/ports.py`: members that ask their routers for a port.

`port_mapping.py NAME` runs one function below. Run by `tests/hosts`; MMN_LIBRARY names the library, MMN_RELAY the relay's program. Needs root,
nftables, conntrack and miniupnpd.
"""

import sys
from pathlib import Path

import stories

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))
from ports import (  # noqa: E402, F401
    a_port_links_members_behind_symmetric_nats,
    a_port_takes_over_from_a_relay,
    a_router_that_claims_a_port_and_has_none_is_found_out,
    a_router_that_names_another_address_is_found_out,
    a_router_that_restarts_forwards_again,
    two_members_behind_one_router_get_a_port_each,
    without_the_option_no_router_is_asked,
)

if __name__ == "__main__":
    stories.main(globals())
