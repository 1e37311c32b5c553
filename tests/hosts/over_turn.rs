//! Members whose networks let no UDP out, in network namespaces: `over_turn.py`.

use crate::stories::{play, stories};

stories! { play, "over_turn.py":
    a_member_without_udp_plays_over_a_relay
    a_member_without_udp_dials_an_address
    two_members_without_udp_link_through_one_server
    a_port_serves_members_that_no_other_path_links
    members_whose_routers_let_them_through_need_no_port
    a_server_that_dies_is_reported_and_used_again
    a_server_over_udp_that_dies_is_reported_and_used_again
    a_server_that_is_restarted_at_once_is_noticed
    a_server_that_is_given_up_is_reported
    credentials_that_the_server_refuses_are_reported_and_replaced
    a_certificate_that_the_system_does_not_trust_counts_by_its_key
    without_the_option_no_server_is_asked
}
