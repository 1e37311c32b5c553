//! Members that ask their routers for a port, in network namespaces: `port_mapping.py`.

use crate::stories::{play, stories};

stories! { play, "port_mapping.py":
    a_port_links_members_behind_symmetric_nats
    a_port_takes_over_from_a_relay
    two_members_behind_one_router_get_a_port_each
    a_router_that_restarts_forwards_again
    a_router_that_claims_a_port_and_has_none_is_found_out
    a_router_that_names_another_address_is_found_out
    without_the_option_no_router_is_asked
}
