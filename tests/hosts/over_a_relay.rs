//! Members that know a code and a relay alone, behind NATs in network namespaces: `over_a_relay.py`. `make lab` has all pairs of
//! NATs.

use crate::stories::{play, stories};

stories! { play, "over_a_relay.py":
    members_that_can_link_directly_do_so
    members_behind_one_router_link_directly_soon
    members_that_need_a_second_round_of_dials_link_directly_soon
    members_that_cannot_stay_on_the_relay
    a_rebinding_goes_over_the_relay_to_a_direct_link_again
    a_restarted_relay_elects_nobody_and_loses_no_message
    direct_links_outlive_the_relay
    a_second_relay_carries_on_at_once
    a_relay_that_receives_nothing_of_the_leader_alone_loses_no_member
    a_member_without_a_relay_enters_by_an_address
    a_hidden_member_sends_packets_to_the_relay_alone
    a_typed_code_that_is_another_one_meets_nobody
    a_relay_sends_to_none_but_those_who_asked
    a_star_over_a_relay
    both_families_reach_one_relay
}
