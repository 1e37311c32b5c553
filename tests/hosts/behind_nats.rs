//! Members behind NATs, in network namespaces: `behind_nats.py`. `make lab` has all pairs of NATs.

use crate::stories::{play, stories};

stories! { play, "behind_nats.py":
    port_restricted_nats_let_members_connect_directly
    members_behind_symmetric_nats_connect_through_the_leader
    nats_that_change_ports_alike_for_all_let_members_connect_directly
    a_home_without_hairpin_lets_its_members_connect_directly
}
