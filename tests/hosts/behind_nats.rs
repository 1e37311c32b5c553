//! Members behind NATs, in network namespaces: `behind_nats.py`. `make lab` has all pairs of NATs.

use crate::stories::{play, stories};

stories! { play, "behind_nats.py":
    port_restricted_nats_let_members_connect_directly
    members_behind_symmetric_nats_connect_through_the_leader
    a_member_carries_where_the_leader_is_behind_a_symmetric_nat
    a_rebinding_of_the_leader_ends_in_a_direct_link_again
    nats_that_change_ports_alike_for_all_let_members_connect_directly
    a_home_without_hairpin_lets_its_members_connect_directly
}
