//! The network use of a co-operative mod, with a process for each player: `coop.py`.

use crate::stories::{play, stories};

stories! { play, "coop.py":
    links_that_flap_lose_nothing_and_keep_the_order
    the_host_decides_who_plays
}
