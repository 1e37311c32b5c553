use super::*;
use crate::opaque::Opaque;
use crate::wire::{Echo, Heartbeat};

const HEARTBEAT_US: u64 = 500_000;

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("an id")
}

fn at(us: u64) -> Time {
    Time::from_micros(us)
}

fn leader(now: Time) -> RoomTime {
    let mut time = RoomTime::new(now);
    time.follow(now, &id("l"), Some(&id("l")));
    time
}

fn follower(now: Time) -> RoomTime {
    let mut time = RoomTime::new(now);
    time.follow(now, &id("m"), Some(&id("l")));
    time
}

/// A clock at `true_us` that began with `offset_us` and gains `ppm` microseconds each second.
fn clock(true_us: u64, offset_us: u64, ppm: i64) -> Time {
    let gained = true_us as i64 / 1_000 * ppm / 1_000;
    at((true_us + offset_us).saturating_add_signed(gained))
}

/// Numbers below `below`, from a seed.
fn draws(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    }
}

fn sent(time: &mut RoomTime, now: Time, us: u64, round_trip_us: u64) {
    let round_trip = Duration::from_micros(round_trip_us);
    time.received(now, &id("l"), us, round_trip, false);
}

#[test]
fn members_agree_within_the_error_that_they_show_whatever_the_delays_and_the_rates() {
    for seed in 0..200 {
        let mut draw = draws(seed);
        let ppm = [draw(2001) as i64 - 1000, draw(2001) as i64 - 1000];
        let (there, back) = (1_000 + draw(80_000), 1_000 + draw(80_000));
        let jitter = 1 + draw(20_000);
        let age = draw(3_600_000_000);
        let mut leads = leader(clock(0, 7, ppm[0]));
        leads.line.shown_us = age;
        let mut follows = follower(clock(0, 900, ppm[1]));
        let mut last = 0;
        for beat in 1..60 {
            let sent_at = beat * HEARTBEAT_US;
            let way = back + draw(jitter);
            let round_trip = there + draw(jitter) + way;
            let us = leads.line().at(clock(sent_at, 7, ppm[0]));
            let arrives = sent_at + way;
            sent(&mut follows, clock(arrives, 900, ppm[1]), us, round_trip);
            for step in 0..10 {
                let now = arrives + step * HEARTBEAT_US / 10;
                let local = clock(now, 900, ppm[1]);
                let shown = follows.line().at(local);
                assert!(shown >= last, "seed {seed}: {shown} after {last}");
                last = shown;
                let error = follows.line().error(local).expect("measured");
                let apart = shown.abs_diff(leads.line().at(clock(now, 7, ppm[0])));
                // A clock of the test has whole microseconds, and so has each half.
                assert!(
                    apart <= micros(error) + 4,
                    "seed {seed}: {apart} above {error:?}"
                );
                if beat > 50 {
                    let bound = (there + back + 2 * jitter) / 2 + 3 * HEARTBEAT_US / DRIFT + 20_000;
                    assert!(
                        micros(error) <= bound,
                        "seed {seed}: {error:?} above {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_member_that_is_ahead_runs_slower_and_never_goes_back() {
    let mut time = follower(at(0));
    sent(&mut time, at(90_000), 0, 0);
    let mut last = 90_000;
    for us in 90_001..3_000_000 {
        let shown = time.line().at(at(us));
        assert!(shown >= last && shown <= last + 1, "{shown} after {last}");
        last = shown;
    }
    // It was 90 ms ahead: the correction took twenty times that.
    assert_eq!(time.line().at(at(3_000_000)), 3_000_000 - 90_000);
    assert_eq!(time.line().at(at(90_000 + 900_000)), 90_000 + 855_000);
}

#[test]
fn a_newcomer_jumps_to_an_older_room_and_its_leader_to_an_older_member() {
    let mut newcomer = follower(at(5_000_000));
    sent(&mut newcomer, at(6_000_000), 3_600_000_000, 20_000);
    assert_eq!(newcomer.line().at(at(6_000_000)), 3_600_010_000);

    let mut leads = leader(at(0));
    let round_trip = Duration::from_micros(20_000);
    let older = 3_600_000_000;
    assert!(leads.received(at(1_000_000), &id("m"), older, round_trip, true));
    assert_eq!(leads.line().at(at(1_000_000)), older + 10_000);
    assert_eq!(leads.line().error(at(1_000_000)), Some(Duration::ZERO));
}

#[test]
fn only_the_leader_that_is_followed_moves_a_member_and_no_member_moves_a_leader_again() {
    let round_trip = Duration::from_micros(1_000);
    let mut follows = follower(at(0));
    follows.received(at(1_000_000), &id("x"), 1 << 40, round_trip, true);
    assert_eq!(follows.line().at(at(2_000_000)), 2_000_000);
    assert_eq!(follows.line().error(at(2_000_000)), None);

    let mut leads = leader(at(0));
    assert!(!leads.received(at(1_000_000), &id("m"), 1 << 40, round_trip, false));
    // Ahead by less than a jump: its member corrects that.
    assert!(!leads.received(
        at(1_000_000),
        &id("m"),
        1_000_000 + JUMP_US,
        round_trip,
        true
    ));
    assert_eq!(leads.line().at(at(2_000_000)), 2_000_000);
}

#[test]
fn absurd_times_move_no_one_and_overflow_nothing() {
    for us in [MAX_LEADER_US + 1, u64::MAX] {
        let mut follows = follower(at(0));
        sent(&mut follows, at(1), us, 1);
        assert_eq!(follows.line().at(at(2)), 2);
    }
    let mut leads = leader(at(0));
    let round_trip = Duration::from_micros(1);
    assert!(!leads.received(at(1), &id("m"), MAX_MEMBER_US + 1, round_trip, true));
    assert_eq!(leads.line().at(at(2)), 2);
    for round_trip_us in [u64::MAX, 60_000_001] {
        let mut follows = follower(at(0));
        sent(&mut follows, at(1), 1 << 40, round_trip_us);
        assert_eq!(follows.line().at(at(2)), 2);
    }
    // The largest that counts, and afterwards a leader that is far behind: its followers run slower, for ages.
    let mut follows = follower(at(0));
    sent(&mut follows, at(1), MAX_LEADER_US, 60_000_000);
    let mut last = MAX_LEADER_US;
    for us in [2, 3, 500_000, 1 << 40, (1 << 40) + 1, 1 << 60] {
        sent(&mut follows, at(us), 0, 1);
        let shown = follows.line().at(at(us));
        assert!(shown >= last, "{shown} after {last}");
        let error = follows.line().error(at(us)).expect("measured");
        assert!(micros(error) >= shown - us - 1, "{error:?} for {shown}");
        last = shown;
    }
}

#[test]
fn a_new_leader_goes_on_from_its_own_time_at_the_rate_of_its_clock() {
    let mut time = follower(at(0));
    sent(&mut time, at(1_000_000), 950_000, 0);
    let before = time.line().at(at(1_200_000));
    time.follow(at(1_200_000), &id("m"), Some(&id("m")));
    assert_eq!(time.line().at(at(1_200_000)), before);
    assert_eq!(time.line().at(at(9_200_000)), before + 8_000_000);
    assert_eq!(time.line().error(at(9_200_000)), Some(Duration::ZERO));
    time.follow(at(9_200_000), &id("m"), None);
    assert_eq!(time.line().at(at(9_200_001)), before + 8_000_001);
    assert_eq!(time.line().error(at(9_200_001)), None);
}

#[test]
fn a_heartbeat_without_the_time_is_one_of_an_older_library_and_the_time_stands_behind_it() {
    let without = Heartbeat {
        seq: 1,
        echo: None,
        host_silent_ms: 2,
        pulse: Opaque::from(&[7, 8, 9][..]),
        room_time_us: None,
    };
    let with = Heartbeat {
        room_time_us: Some(300),
        ..without.clone()
    };
    let older = Opaque::of(&(1_u64, None::<Echo>, 2_u32, without.pulse.clone()));
    assert_eq!(Opaque::of(&without), older);
    assert!(Opaque::of(&with).as_bytes().starts_with(older.as_bytes()));
    for heartbeat in [without, with] {
        let decoded = Opaque::of(&heartbeat).decode::<Heartbeat>();
        assert_eq!(decoded.ok(), Some(heartbeat));
    }
}
