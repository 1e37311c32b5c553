//! Behaviour that etcd's own tests of elections, locks and sessions show, with the simulated store.

use std::sync::Arc;

use room_core::election::Local;
use room_core::election::LockOutcome;
use room_core::election::engine::Lease;
use room_core::time::Duration;

use crate::etcd::store::Store;
use crate::etcd::world::{Net, PREFIX, World};

const TTL: Duration = Duration::from_secs(3);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A world of this many members, some of which campaign; they start one after the other.
fn world(members: usize, campaigning: usize) -> World {
    let net = Net {
        delay_us: (500, 2_000),
        lost: 0,
        late: 0,
    };
    let mut world = World::new(7, members, TTL, net);
    for slot in 0..members {
        world.start(slot, slot < campaigning);
        world.run_for(ms(100));
    }
    world
}

/// Leaders that a member's host was shown, each once.
fn leaders(world: &World, slot: usize) -> Vec<(String, u64)> {
    let shown = world.members[slot].shown.iter();
    shown
        .filter_map(|(_, leader, term)| Some((leader.clone()?.as_str().to_owned(), *term)))
        .collect()
}

fn lock(world: &mut World, slot: usize, request: u64, wait: Option<Duration>) {
    let gate = Arc::from("gate");
    world.acquire(slot, request, &gate, wait).expect("it may");
}

fn release(world: &mut World, slot: usize) -> bool {
    world.release(slot, &Arc::from("gate")).is_ok()
}

/// The member's lease, by its key under `election/`.
fn lease(world: &World, slot: usize) -> Lease {
    let id = world.members[slot].id.as_str();
    let keys = world.store.keys(&format!("{PREFIX}/election/"));
    let mine = keys
        .iter()
        .find(|entry| entry.value.starts_with(id.as_bytes()));
    let key = &mine.expect("it has a key").key;
    let text = key.rsplit('/').next().expect("there is a last part");
    Lease::from_str_radix(text, 16).expect("a lease in hexadecimal")
}

#[test]
fn e1_observers_see_every_leader_in_turn() {
    let mut world = world(6, 3);
    for _ in 0..3 {
        let [leader] = world.leaders()[..] else {
            panic!("one leads");
        };
        world.kill(leader);
        world.run_for(TTL * 2);
        world.start(leader, true);
        world.run_for(ms(100));
    }
    let seen = leaders(&world, 3);
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(
        seen.windows(2).all(|pair| pair[0].1 < pair[1].1),
        "{seen:?}"
    );
    for observer in 4..6 {
        assert_eq!(leaders(&world, observer), seen);
    }
}

#[test]
fn e1_a_leadership_that_was_over_at_once_is_seen_too() {
    let mut world = world(4, 3);
    // The first two give up at nearly the same moment: the second one leads for an instant.
    world.order(0, Local::SetEligible(false)).expect("it may");
    world.run_for(ms(9));
    assert_eq!(world.leaders(), [1]);
    world.order(1, Local::SetEligible(false)).expect("it may");
    world.run_for(ms(100));
    let seen: Vec<_> = leaders(&world, 3).into_iter().map(|(id, _)| id).collect();
    assert_eq!(seen, ["member-0", "member-1", "member-2"]);
}

#[test]
fn e1_two_first_keys_that_are_gone_when_an_observer_asks_are_seen_in_turn() {
    let mut world = world(4, 3);
    world.by_hand = true;
    for slot in [0, 1] {
        let lease = lease(&world, slot);
        world.store.revoke(lease);
    }
    world.notify_watches();
    world.run_for(ms(20));
    let seen: Vec<_> = leaders(&world, 3).into_iter().map(|(id, _)| id).collect();
    assert_eq!(seen, ["member-0", "member-1", "member-2"]);
}

#[test]
fn e2_the_next_in_line_leads_when_the_leaders_session_ends() {
    let mut world = world(3, 2);
    assert_eq!(world.leaders(), [0]);
    world.order(0, Local::Leave).expect("it may");
    world.run_for(ms(50));
    assert_eq!(world.leaders(), [1]);
    let seen: Vec<_> = leaders(&world, 2).into_iter().map(|(id, _)| id).collect();
    assert_eq!(seen, ["member-0", "member-1"]);
}

#[test]
fn e3_a_leaders_proclamation_is_replaced_without_another_election() {
    let mut world = world(2, 1);
    let token = world.acts(0);
    world.proclaim(0, "one");
    world.proclaim(0, "two\nlines");
    world.run_for(ms(100));
    let keys = world.store.keys(PREFIX);
    let [entry] = keys[..] else {
        panic!("one key");
    };
    assert_eq!(entry.value, b"member-0\nmember-0:7000\ntwo\nlines");
    assert_eq!(world.acts(0), token);
    assert_eq!(leaders(&world, 1).len(), 1);
}

#[test]
fn e5_a_leader_that_restarts_within_its_lease_leads_on() {
    let mut world = world(3, 2);
    let token = world.acts(0).expect("it leads");
    let seen = leaders(&world, 2);
    world.kill(0);
    world.start(0, true);
    world.proclaim(0, "again");
    world.run_for(ms(100));
    assert_eq!(world.acts(0), Some(token), "with the token that it had");
    world.run_for(TTL * 2);
    assert_eq!(world.leaders(), [0]);
    assert_eq!(leaders(&world, 2), seen, "no other member noticed");
    let keys = world.store.keys(PREFIX);
    assert!(keys[0].value.ends_with(b"again"));
}

#[test]
fn e5_a_process_whose_lease_another_one_uses_stops_leading_and_leaves_it_the_lease() {
    let mut world = world(2, 2);
    let lease = lease(&world, 0);
    let key = Arc::clone(&world.store.keys(PREFIX)[0].key);
    world
        .store
        .write(&key, b"member-0\nelsewhere:1\n".to_vec(), lease);
    world.notify_watches();
    world.run_for(ms(50));
    assert!(world.acts(0).is_none(), "its loss is reported");
    world.run_for(ms(500));
    assert_eq!(
        world.store.keys(PREFIX)[0].key,
        key,
        "the lease is not revoked"
    );
}

/// A revocation that is late on its way does not end the leadership of the process that starts next.
#[test]
fn e5_a_lease_that_is_given_up_is_not_used_again() {
    let mut world = world(1, 1);
    let before = world.acts(0).expect("it leads");
    world.net.delay_us = (1_500_000, 1_500_000);
    world
        .order(0, Local::Transfer { target: None })
        .expect("it leads");
    world.run_for(ms(10));
    world.net.delay_us = (500, 2_000);
    world.kill(0);
    world.start(0, true);
    // At every moment the store has the key of a leader: the world checks that.
    world.run_for(TTL * 2);
    assert!(world.acts(0).expect("it leads") > before);
}

/// The earlier process may be alive still, in a copy of its machine, with the same address: it notices only a write.
#[test]
fn e5_a_process_that_takes_over_a_lease_writes_its_key_even_with_an_equal_value() {
    let mut world = world(1, 1);
    let before = world.store.keys(PREFIX)[0].clone();
    world.kill(0);
    world.start(0, true);
    world.run_for(ms(100));
    let after = world.store.keys(PREFIX)[0];
    assert_eq!(
        (after.created, &after.value),
        (before.created, &before.value)
    );
    assert!(after.modified > before.modified, "it wrote its key");
}

/// A value in a request without an answer is expected once.
#[test]
fn e5_a_value_of_which_a_write_was_in_doubt_does_not_hide_another_process() {
    let mut world = world(1, 1);
    let lease = lease(&world, 0);
    let token = world.acts(0);
    world.proclaim(0, "again");
    world.net.lost = 1000;
    world.run_for(ms(10));
    world.net.lost = 0;
    world.run_for(ms(1_200));
    assert_eq!(world.acts(0), token, "its own write");
    let entry = world.store.keys(PREFIX)[0].clone();
    assert!(entry.value.ends_with(b"again"));
    world.store.write(&entry.key, entry.value, lease);
    world.notify_watches();
    world.run_for(ms(50));
    assert!(world.acts(0).is_none(), "the write of another process");
}

/// Its key in the other room would live as long as the lease, and block every leader there.
#[test]
fn e5_a_lease_of_another_prefix_is_not_used_again() {
    let mut world = world(1, 1);
    world.kill(0);
    world.prefix = "game/other";
    world.start(0, true);
    world.run_for(ms(100));
    assert_eq!(world.store.keys(world.prefix).len(), 1);
    world.run_for(TTL);
    assert!(world.store.keys(PREFIX).is_empty());
    assert_eq!(world.agreed(), Some(world.members[0].id.clone()));
}

#[test]
fn e6_an_observer_after_a_compaction_sees_the_leader_and_the_next_one() {
    let mut world = world(3, 2);
    world.kill(2);
    world.compact();
    world.start(2, false);
    world.run_for(ms(100));
    assert_eq!(leaders(&world, 2).last().expect("one").0, "member-0");
    // The watch breaks, and its history is gone when it goes on.
    world.cut(2, true);
    world
        .order(0, Local::Transfer { target: None })
        .expect("it leads");
    world.run_for(ms(500));
    world.compact();
    world.cut(2, false);
    world.run_for(TTL);
    assert_eq!(leaders(&world, 2).last().expect("one").0, "member-1");
}

#[test]
fn e7_every_value_that_a_leader_proclaims_is_of_one_leadership() {
    let mut world = world(2, 1);
    let before = world.store.keys(PREFIX)[0].clone();
    for (value, version) in [("a", 1), ("b", 2)] {
        world.proclaim(0, value);
        world.run_for(ms(100));
        let entry = world.store.keys(PREFIX)[0];
        assert_eq!(entry.created, before.created);
        assert_eq!(entry.modified, before.modified + version);
    }
    assert_eq!(world.leaders(), [0]);
}

#[test]
fn e9_other_keys_disturb_no_member_and_a_new_candidate_follows_a_resigned_leader() {
    let mut world = world(2, 1);
    let other = Arc::from(format!("{PREFIX}/elections/1").as_str());
    world.store.write(&other, b"somebody".to_vec(), 0);
    let other = Arc::from(format!("{PREFIX}/election").as_str());
    world.store.write(&other, b"somebody".to_vec(), 0);
    world.notify_watches();
    world.run_for(ms(100));
    assert_eq!(leaders(&world, 1).len(), 1);
    world.order(1, Local::EnableAuto(true)).expect("it may");
    world.run_for(ms(100));
    world.order(0, Local::SetEligible(false)).expect("it may");
    world.run_for(ms(100));
    assert_eq!(world.leaders(), [1]);
}

#[test]
fn e10_a_leader_that_yields_stands_in_line_again_behind_the_others() {
    let mut world = world(3, 3);
    let mut tokens = vec![world.acts(0).expect("it leads")];
    for (yields, next) in [(0, 1), (1, 2), (2, 0)] {
        world
            .order(yields, Local::Transfer { target: None })
            .expect("it leads");
        world.run_for(ms(100));
        assert_eq!(world.leaders(), [next]);
        tokens.push(world.acts(next).expect("it leads"));
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
fn e10_alone_a_leader_that_yields_leads_again_with_a_larger_token() {
    let mut world = world(1, 1);
    let token = world.acts(0).expect("it leads");
    world
        .order(0, Local::Transfer { target: None })
        .expect("it leads");
    assert!(world.leaders().is_empty());
    world.run_for(ms(100));
    assert!(world.acts(0).expect("it leads") > token);
    world.order(0, Local::SetEligible(false)).expect("it may");
    let refused = world.order(0, Local::Transfer { target: None });
    assert!(refused.is_err(), "only the leader yields");
}

#[test]
fn e11_revisions_seen_by_observers_never_go_back() {
    let mut world = world(4, 2);
    for number in 0..10 {
        let [leader] = world.leaders()[..] else {
            panic!("one leads");
        };
        world.proclaim(leader, &number.to_string());
        world.run_for(ms(20));
        world
            .order(leader, Local::Transfer { target: None })
            .expect("it leads");
        world.run_for(ms(100));
    }
    for observer in 2..4 {
        let seen = leaders(&world, observer);
        assert_eq!(seen.len(), 11);
        assert!(
            seen.windows(2).all(|pair| pair[0].1 < pair[1].1),
            "{seen:?}"
        );
    }
}

#[test]
fn e11_an_observer_that_was_cut_off_for_long_shows_no_leader_and_then_the_leader_again() {
    let mut world = world(2, 1);
    let seen = leaders(&world, 1);
    world.cut(1, true);
    world.run_for(TTL * 3);
    assert_eq!(world.agreed(), None);
    let shown = world.members[1].shown.last().expect("it shows");
    assert_eq!(shown.1, None, "its lease may have ended");
    world.cut(1, false);
    world.run_for(TTL);
    assert_eq!(world.agreed(), Some(world.members[0].id.clone()));
    assert_eq!(leaders(&world, 1)[1..], seen, "the same leadership");
}

#[test]
fn e14_a_lock_that_is_not_held_is_not_released() {
    let mut world = world(1, 0);
    assert!(!release(&mut world, 0));
    lock(&mut world, 0, 1, None);
    world.run_for(ms(100));
    assert!(release(&mut world, 0));
    assert!(!release(&mut world, 0), "not twice");
}

#[test]
fn e15_waiters_get_the_lock_one_after_the_other() {
    let mut world = world(5, 0);
    for slot in 0..5 {
        lock(&mut world, slot, 1, None);
        world.run_for(ms(20));
    }
    let mut tokens = Vec::new();
    for slot in 0..5 {
        world.run_for(ms(50));
        let holding = (0..5).filter(|one| !world.members[*one].held.is_empty());
        assert_eq!(holding.collect::<Vec<_>>(), [slot]);
        tokens.extend(world.members[slot].held.values().copied());
        assert!(release(&mut world, slot));
    }
    assert!(tokens.len() == 5 && tokens.is_sorted_by(|a, b| a < b));
    world.run_for(ms(100));
    assert!(world.store.keys(&format!("{PREFIX}/lock/")).is_empty());
}

#[test]
fn e16_of_five_that_try_at_once_one_gets_the_lock() {
    let mut world = world(5, 0);
    for slot in 0..5 {
        lock(&mut world, slot, 1, Some(Duration::ZERO));
    }
    world.run_for(ms(200));
    let ended: Vec<_> = world
        .members
        .iter()
        .flat_map(|one| one.ended.clone())
        .collect();
    let held = |(_, outcome): &&(u64, LockOutcome)| matches!(outcome, LockOutcome::Held { .. });
    assert_eq!(ended.iter().filter(held).count(), 1);
    let taken = ended
        .iter()
        .filter(|(_, outcome)| *outcome == LockOutcome::Taken);
    assert_eq!(taken.count(), 4);
    let keys = world.store.keys(&format!("{PREFIX}/lock/"));
    assert_eq!(keys.len(), 1, "who did not get it waits for nothing");
}

#[test]
fn e16_a_member_that_waits_for_a_lock_is_notified_at_once_that_a_try_fails() {
    let mut world = world(2, 0);
    lock(&mut world, 0, 1, None);
    world.run_for(ms(100));
    lock(&mut world, 1, 1, None);
    world.run_for(ms(100));
    lock(&mut world, 1, 2, Some(Duration::ZERO));
    world.run_for(ms(100));
    assert_eq!(world.members[1].ended, [(2, LockOutcome::Taken)]);
    assert!(release(&mut world, 0));
    world.run_for(ms(100));
    assert_eq!(world.members[1].held.len(), 1, "the first call waits on");
}

#[test]
fn e17_the_holder_of_a_lock_gets_it_again_with_its_token() {
    let mut world = world(1, 0);
    lock(&mut world, 0, 1, None);
    world.run_for(ms(100));
    lock(&mut world, 0, 2, None);
    let [(1, first), (2, second)] = world.members[0].ended[..] else {
        panic!("both are answered");
    };
    assert_eq!(first, second);
}

#[test]
fn e17_a_lock_whose_name_begins_with_that_of_another_is_another_lock() {
    let mut world = world(2, 0);
    for (slot, name) in [(1, "gate/north"), (0, "gate")] {
        world.acquire(slot, 1, &name.into(), None).expect("it may");
        world.run_for(ms(100));
        assert_eq!(world.members[slot].held.len(), 1, "{name}");
    }
}

#[test]
fn e19_the_granted_time_to_live_counts() {
    // The store grants more than requested: a cut shorter than two thirds of it costs nothing.
    let mut world = world(1, 0);
    world.store.shortest = Duration::from_secs(90);
    world.order(0, Local::EnableAuto(true)).expect("it may");
    world.run_for(ms(100));
    world.cut(0, true);
    world.run_for(Duration::from_secs(37));
    assert_eq!(world.leaders(), [0]);
    world.run_for(Duration::from_secs(24));
    assert!(world.leaders().is_empty());
}

#[test]
fn e20_keep_alives_go_on_after_a_cut_and_after_the_store_was_down() {
    let mut world = world(2, 1);
    let token = world.acts(0);
    world.cut(0, true);
    world.run_for(ms(1_200));
    world.cut(0, false);
    world.run_for(TTL * 2);
    assert_eq!(
        world.acts(0),
        token,
        "a cut within the margin costs nothing"
    );
    world.set_up(false);
    world.run_for(TTL);
    assert!(world.leaders().is_empty(), "no member claims to lead");
    world.run_for(TTL);
    assert_eq!(world.agreed(), None);
    world.set_up(true);
    world.run_for(TTL);
    assert_eq!(world.leaders(), [0]);
    assert!(
        world.acts(0) > token,
        "a lost leadership does not come back"
    );
}

#[test]
fn e20_a_new_leader_of_the_store_lengthens_leases() {
    let mut world = world(2, 2);
    world.kill(0);
    world.run_for(TTL - ms(300));
    world.set_up(false);
    world.set_up(true);
    world.run_for(TTL - ms(500));
    assert!(
        world.leaders().is_empty(),
        "the dead one's lease began anew"
    );
    world.run_for(ms(2_500));
    assert_eq!(world.leaders(), [1]);
}

#[test]
fn e21_a_waiter_gets_the_lock_with_a_larger_token() {
    let mut world = world(2, 0);
    lock(&mut world, 0, 1, None);
    world.run_for(ms(100));
    lock(&mut world, 1, 1, Some(ms(5_000)));
    world.run_for(ms(100));
    let first = world.members[0].held["gate"];
    assert!(release(&mut world, 0));
    world.run_for(ms(100));
    assert!(world.members[1].held["gate"] > first);
}

#[test]
fn e21_a_waiting_member_is_notified_of_its_timeout_and_leaves_the_line() {
    let mut world = world(2, 0);
    lock(&mut world, 0, 1, None);
    world.run_for(ms(100));
    lock(&mut world, 1, 1, Some(ms(700)));
    world.run_for(ms(800));
    assert_eq!(world.members[1].ended, [(1, LockOutcome::TimedOut)]);
    assert_eq!(world.store.keys(&format!("{PREFIX}/lock/")).len(), 1);
}

#[test]
fn e22_a_candidate_whose_lease_ended_while_it_waited_never_leads_with_it() {
    let mut world = world(2, 2);
    let lease = lease(&world, 1);
    world.store.revoke(lease);
    // The leader is killed at the same moment: the key right before is gone, and so is its own.
    world.kill(0);
    world.notify_watches();
    world.run_for(TTL * 3);
    assert_eq!(world.leaders(), [1]);
    let token = world.acts(1).expect("it leads") as i64;
    let first = world.store.keys(PREFIX)[0];
    assert_eq!(first.created, token, "under a key that is there");
    assert_eq!(
        world.members[1].shown.len(),
        4,
        "{:?}",
        world.members[1].shown
    );
}

#[test]
fn e22_a_leader_whose_key_is_deleted_by_hand_reports_it_and_stands_in_line_again() {
    let mut world = world(2, 2);
    let key = Arc::clone(&world.store.keys(PREFIX)[0].key);
    world.by_hand = true;
    world.store.delete(&key);
    world.notify_watches();
    world.run_for(ms(100));
    assert_eq!(world.leaders(), [1]);
    assert_eq!(world.store.keys(PREFIX).len(), 2, "it waits again");
}

/// A key of that name exists when the candidate checks for its own; another one was created before it.
#[test]
fn e22_a_candidate_whose_key_was_created_again_behind_another_one_does_not_lead() {
    let mut world = world(2, 0);
    world.by_hand = true;
    world.order(1, Local::EnableAuto(true)).expect("it may");
    let election = format!("{PREFIX}/election/");
    for _ in 0..1000 {
        if world.store.keys(&election).is_empty() {
            world.run_for(Duration::from_micros(50));
        }
    }
    assert!(world.leaders().is_empty(), "it has not looked yet");
    let own = world.store.keys(&election)[0].clone();
    let mine = lease(&world, 1);
    world.store.delete(&own.key);
    let other = Arc::from(format!("{election}ff"));
    world.store.write(&other, b"member-0\n\n".to_vec(), 0xff);
    world.store.write(&own.key, own.value, mine);
    world.run_for(ms(50));
    assert!(world.leaders().is_empty());
    world.notify_watches();
    world.run_for(TTL);
    assert!(world.leaders().is_empty(), "the other key is the first one");
}

#[test]
fn e22_a_key_that_is_deleted_is_missed_also_after_the_watch_broke() {
    let mut world = world(2, 2);
    world.cut(0, true);
    world.run_for(ms(50));
    world.cut(0, false);
    world.run_for(TTL);
    assert_eq!(world.leaders(), [0], "a cut within the margin");
    let key = Arc::clone(&world.store.keys(PREFIX)[0].key);
    world.by_hand = true;
    world.store.delete(&key);
    world.notify_watches();
    world.run_for(ms(100));
    assert_eq!(world.leaders(), [1]);
}

#[test]
fn e23_late_answers_to_keep_alives_do_not_lengthen_a_leadership() {
    let mut world = world(1, 1);
    // Every answer takes half of the time to live: the leader counts from its request.
    world.net.delay_us = (0, 0);
    let half = TTL.as_micros() as u64 / 2;
    world.net.delay_us = (half / 2, half / 2);
    let mut lost = 0;
    for _ in 0..2_000 {
        world.run_for(ms(10));
        // At every moment the store still has the key of a leader: the world checks that.
        lost += usize::from(world.leaders().is_empty());
    }
    assert!(lost > 0, "such answers come too late for the margin");
}

#[test]
fn e23_the_time_to_live_counts_from_when_the_keep_alive_was_sent() {
    let mut world = World::new(
        3,
        1,
        Duration::from_secs(2),
        Net {
            delay_us: (10_000, 10_000),
            lost: 0,
            late: 0,
        },
    );
    world.start(0, true);
    world.run_for(ms(200));
    let asked = |world: &World| {
        let lines = world.lines().iter();
        lines.filter(|line| line.contains("KeepAlive")).count()
    };
    let before = asked(&world);
    while asked(&world) == before {
        world.run_for(ms(1));
    }
    // The answer comes just before the lease would count as lost, and it is the last.
    world.net.delay_us = (800_000, 800_000);
    world.run_for(ms(815));
    assert_eq!(world.leaders(), [0]);
    world.cut(0, true);
    world.run_for(Duration::from_secs(3));
    assert!(world.leaders().is_empty());
}

#[test]
fn e23_a_process_that_slept_first_reports_the_loss_of_its_leadership() {
    let mut world = world(2, 2);
    for _ in 0..20 {
        let [leader] = world.leaders()[..] else {
            panic!("one leads");
        };
        world.pause(leader, TTL * 2);
        world.run_for(TTL * 2 - ms(1));
        assert!(
            !world.leaders().contains(&leader),
            "a call of its host returns false"
        );
        let shown = world.members[leader].shown.len();
        world.run_for(ms(1_500));
        assert_eq!(world.members[leader].shown[shown].1, None, "its first line");
    }
}

#[test]
fn e24_a_campaign_that_is_called_off_leaves_no_key() {
    let mut world = world(2, 2);
    world.order(1, Local::EnableAuto(false)).expect("it may");
    world.run_for(ms(100));
    assert_eq!(world.store.keys(PREFIX).len(), 1);
    // While the key is being written, which no member learns: the answer is lost, and the network is slow.
    world.order(1, Local::EnableAuto(true)).expect("it may");
    world.run_for(ms(4));
    world.net.delay_us = (900_000, 1_800_000);
    world.run_for(ms(500));
    world.order(1, Local::EnableAuto(false)).expect("it may");
    world.run_for(ms(1_500));
    world.net.delay_us = (500, 2_000);
    world.run_for(TTL * 4);
    let keys = world.store.keys(PREFIX);
    assert!(
        keys.iter()
            .all(|entry| entry.value.starts_with(b"member-0"))
    );
}

#[test]
fn e24_a_lock_that_is_called_off_at_once_leaves_no_lease() {
    let mut world = world(1, 0);
    for request in 0..50 {
        lock(&mut world, 0, request, None);
        assert!(release(&mut world, 0));
    }
    world.run_for(ms(100));
    assert_eq!(world.store.leases(), 0);
}

/// The history that its watch would continue from is gone, and its key has its old value.
#[test]
fn e25_a_leader_watches_its_key_again_after_a_compaction() {
    let mut world = world(2, 1);
    world.cut(0, true);
    let other = Arc::from("another key");
    for _ in 0..10 {
        world.store.write(&other, b"else".to_vec(), 0);
    }
    world.compact();
    world.run_for(ms(200));
    world.cut(0, false);
    world.run_for(TTL);
    assert_eq!(world.leaders(), [0], "a cut within the margin");
    let before = world.requests();
    world.run_for(TTL * 10);
    let asked = world.requests() - before;
    assert!((39..=41).contains(&asked), "{asked} requests in ten TTLs");
}

#[test]
fn e25_a_compaction_while_it_waits_leaves_one_key_of_a_candidate() {
    let mut world = world(3, 3);
    world.cut(1, true);
    world.run_for(ms(200));
    world.proclaim(2, "later");
    world.run_for(ms(200));
    world.compact();
    world.cut(1, false);
    world.run_for(TTL);
    assert_eq!(world.store.keys(PREFIX).len(), 3);
    world.kill(0);
    world.run_for(TTL * 2);
    assert_eq!(world.leaders(), [1]);
}

/// Its cluster was restored from a backup: the next key has a smaller revision than the token that the leader had.
#[test]
fn e20_a_fencing_token_never_shrinks_though_the_store_was_set_back() {
    let mut world = world(2, 1);
    let other = Arc::from("another key");
    for _ in 0..50 {
        world.store.write(&other, b"else".to_vec(), 0);
    }
    world
        .order(0, Local::Transfer { target: None })
        .expect("it leads");
    world.run_for(ms(100));
    assert!(world.acts(0).expect("it leads") > 50);
    world.by_hand = true;
    world.set_up(false);
    world.store = Store::default();
    world.set_up(true);
    // At every moment the terms of both grow: the world checks that.
    world.run_for(TTL * 5);
    assert!(world.leaders().is_empty());
    assert_eq!(world.agreed(), None);
    assert!(world.store.keys(PREFIX).is_empty(), "others may lead");
}

/// While nothing happens, a waiting member sends requests for its lease only.
#[test]
fn a_member_that_waits_asks_for_its_lease_alone() {
    let mut world = world(10, 10);
    world.run_for(ms(2_000));
    let before = world.requests();
    world.run_for(TTL * 10);
    let of_each = (world.requests() - before) / 10;
    assert!(
        (39..=41).contains(&of_each),
        "{of_each} requests in ten TTLs"
    );
}
