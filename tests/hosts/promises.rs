//! Promises that the published library breaks, each with real processes over the C ABI: `promises.py`. Sessions of a peer:
//! `life.py`. Disturbances that keep the leader: `stability.py`. Elections: `elections.py`. All are rooms of puppets, which
//! `puppet/` controls.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::stories::stories;
use crate::tools::{compile_c, library, root, run};

pub(crate) fn story(file: &str, name: &str) {
    static WALL_CLOCK: OnceLock<PathBuf> = OnceLock::new();
    let wall_clock = WALL_CLOCK.get_or_init(|| {
        let source = "tests/hosts/puppet/wall_clock.c";
        compile_c(source, "wall_clock.so", &["-shared", "-fPIC"])
    });
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .arg(name)
        .env("MMN_LIBRARY", library())
        .env("MMN_WALL_CLOCK_SHIM", wall_clock));
    let expected = format!("ok {name} ");
    assert!(
        printed.lines().any(|line| line.starts_with(&expected)),
        "no line \"{expected}\" in:\n{printed}"
    );
}

stories! { story, "promises.py":
    a_crashed_leader_is_replaced
    messages_reported_as_sent_arrive
    a_newcomer_never_deposes_the_host
    concurrent_set_leaders_agree
    set_leader_to_an_unknown_id_changes_nothing
    a_duplicate_peer_id_is_refused_at_the_dialler
    no_process_connects_to_itself
    shutdown_in_a_callback_is_refused
    order_is_kept_while_links_come_and_go
    returned_strings_stay_valid_per_thread
    heartbeats_do_not_queue_behind_bulk_data
    round_trips_do_not_follow_the_wall_clock
    ids_in_other_scripts_cross_undamaged
}

stories! { story, "life.py":
    a_paused_process_is_back_by_itself
    a_session_survives_a_cut
    messages_accepted_before_a_loss_arrive_after_it
    a_pulled_cable_is_survived
    the_first_leader_stays_after_a_cut
    a_member_that_leaves_has_left_at_once
    a_killed_process_enters_again_under_its_id
    a_disconnected_member_stays_away_until_a_dial_by_hand
    auto_reconnect_off_makes_a_loss_final
    a_fixed_host_that_is_killed_and_started_anew_leads_on
    a_guest_receives_the_reason_when_its_room_ends
}

stories! { story, "stability.py":
    disturbances_do_not_change_a_rooms_leader
}

stories! { story, "elections.py":
    a_leader_transfers_and_yields
    the_preferred_member_follows_a_leader_that_crashed
    a_static_quorum_has_a_leader_only_while_a_majority_is_there
    a_damaged_state_is_refused_by_name
    rooms_of_other_quorums_do_not_link
}
