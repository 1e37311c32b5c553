//! A leader without a majority (G6; R30, R31, R42, HC2), and timeouts that follow the round trips (G15).

use super::*;
use crate::election::raft::wire::LiveLeader;

/// A leader among others, whose heartbeats the test sends.
struct Leading {
    raft: Raft,
    view: View,
    now: Time,
}

fn voter(number: u64, eligible: bool) -> Voter {
    Voter {
        key: Fingerprint([0; 32]),
        incarnation: life(number),
        eligible,
        priority: 0,
        rtt: None,
    }
}

impl Leading {
    /// It assigned itself at 10 s.
    fn over(names: &[&str]) -> Self {
        let Voting { mut raft, mut view } = Voting::new();
        view.voters.clear();
        for name in names {
            view.voters.insert(id(name), voter(1, true));
        }
        let target = id("voter");
        raft.handle(at(10_000), &view, Local::SetLeader { target }.into())
            .expect("eligible");
        Self {
            raft,
            view,
            now: at(10_000),
        }
    }

    fn input(&mut self, input: impl Into<InputOf<Raft>>) {
        self.raft
            .handle(self.now, &self.view, input.into())
            .expect("no violation");
    }

    fn answers(&mut self, name: &str) {
        let pulse = Pulse::Follows {
            record: self.raft.leadership().record.clone(),
            live: true,
        };
        let from = id(name);
        self.input(ElectionInput::Pulse {
            from,
            pulse: pulse.into(),
        });
    }

    fn lost(&mut self, name: &str, why: DownReason) {
        self.view.voters.remove(&id(name));
        let (peer, incarnation) = (id(name), life(1));
        self.input(Local::PeerDown {
            peer,
            incarnation,
            why,
        });
    }

    fn linked(&mut self, name: &str, eligible: bool) {
        self.view.voters.insert(id(name), voter(1, eligible));
        let side = || Side {
            since: 0,
            hold_binds: false,
            record: self.raft.leadership().record.clone(),
            live: None::<LiveLeader>,
            lone: false,
        };
        let (ours, theirs) = (side(), side());
        let peer = id(name);
        self.input(ElectionInput::PeerUp {
            peer,
            key: Fingerprint([0; 32]),
            ours,
            theirs,
        });
    }

    /// Lets time pass until `ms`; the `loyal` answer every half second.
    fn until(&mut self, ms: u64, loyal: &[&str]) {
        while self.now < at(ms) {
            let next = self.now + Duration::from_millis(500);
            while let Some(due) = self.raft.next_deadline().filter(|due| *due <= next) {
                self.now = self.now.max(due);
                self.input(Local::Tick);
            }
            self.now = next;
            for name in loyal {
                self.answers(name);
            }
        }
    }

    fn leads(&self) -> bool {
        self.raft.rules().role() == RoleKind::Leader
    }
}

#[test]
fn r30_a_leader_that_a_majority_answers_stays() {
    let mut leading = Leading::over(&["a", "b", "c", "d"]);
    leading.until(60_000, &["a", "b"]);
    assert!(leading.leads());
}

#[test]
fn r31_a_leader_that_no_majority_answers_resigns_within_two_timeouts() {
    for loyal in [&[][..], &["a"]] {
        let mut leading = Leading::over(&["a", "b", "c", "d"]);
        leading.until(20_000, &["a", "b"]);
        assert!(leading.leads());
        leading.until(23_000, loyal);
        assert!(!leading.leads(), "{loyal:?}");
        assert_eq!(leading.raft.leader(), None);
        assert_eq!(leading.raft.leadership().reason, LeaderReason::Resigned);
    }
}

#[test]
fn a_new_leader_has_one_timeout_to_be_answered() {
    let mut leading = Leading::over(&["a", "b", "c", "d"]);
    leading.until(11_000, &[]);
    assert!(leading.leads());
    leading.until(12_000, &[]);
    assert!(!leading.leads());
}

#[test]
fn a_leader_of_one_other_needs_no_answer() {
    let mut leading = Leading::over(&["a"]);
    leading.until(60_000, &[]);
    assert!(leading.leads());
}

#[test]
fn a_lost_voter_counts_for_one_timeout_and_one_that_left_does_not() {
    for (why, stays) in [
        (DownReason::Silent, false),
        (DownReason::Closed, false),
        (DownReason::Left { successor: None }, true),
    ] {
        let mut leading = Leading::over(&["a", "b", "c", "d"]);
        leading.until(20_500, &["a", "b", "c", "d"]);
        for name in ["b", "c", "d"] {
            leading.lost(name, why.clone());
        }
        leading.until(24_000, &["a"]);
        assert_eq!(leading.leads(), stays, "{why:?}");
    }
    // Voters that are lost one after the other never make a majority of losses at one time.
    let mut leading = Leading::over(&["a", "b", "c", "d"]);
    leading.until(20_500, &["a", "b", "c", "d"]);
    leading.lost("d", DownReason::Silent);
    leading.until(25_000, &["a", "b", "c"]);
    leading.lost("c", DownReason::Silent);
    leading.until(30_000, &["a", "b"]);
    leading.lost("b", DownReason::Silent);
    leading.until(60_000, &["a"]);
    assert!(leading.leads());
}

/// P13: voters that fall silent together are lost one after the other.
#[test]
fn the_end_of_a_window_between_two_losses_does_not_hide_one() {
    let mut leading = Leading::over(&["a", "b"]);
    leading.until(20_000, &["a", "b"]);
    // A window ends at 20.5 s.
    leading.lost("a", DownReason::Silent);
    leading.until(20_500, &[]);
    assert!(leading.leads());
    leading.lost("b", DownReason::Silent);
    leading.until(23_000, &[]);
    assert!(!leading.leads());
}

#[test]
fn r42_voters_that_join_silently_are_given_a_timeout() {
    let mut leading = Leading::over(&[]);
    leading.until(20_000, &[]);
    for name in ["a", "b", "c"] {
        leading.linked(name, true);
    }
    leading.until(21_000, &[]);
    assert!(leading.leads(), "at once");
    leading.until(23_500, &[]);
    assert!(!leading.leads(), "never");
}

#[test]
fn observers_are_not_counted() {
    let mut leading = Leading::over(&["a", "b"]);
    for name in ["x", "y", "z"] {
        leading.linked(name, false);
    }
    leading.until(60_000, &["a"]);
    assert!(leading.leads());
}

/// Of five voters, one answers, two are silent, and one comes back.
#[test]
fn a_voter_that_is_linked_anew_has_answered() {
    for comes_back in [true, false] {
        let mut leading = Leading::over(&["a", "b", "c"]);
        leading.until(20_000, &["a", "b", "c"]);
        // A window ends at 20.5 s, and the next one at 22 s.
        leading.until(21_000, &["a"]);
        if comes_back {
            leading.linked("d", true);
        }
        leading.until(22_500, &["a"]);
        assert_eq!(leading.leads(), comes_back);
    }
}

#[test]
fn a_check_is_late_from_a_tenth_of_a_second_on() {
    for (at_ms, is_late) in [(22_000, false), (22_100, false), (22_101, true)] {
        let mut leading = Leading::over(&["a", "b", "c", "d"]);
        leading.until(20_000, &["a", "b", "c", "d"]);
        leading.until(20_500, &[]);
        // No voter answered in the window that ends at 22 s.
        leading.now = at(at_ms);
        leading.input(Local::Tick);
        assert_eq!(leading.leads(), is_late, "{at_ms}");
    }
}

/// The answers were delayed with the process.
#[test]
fn a_leader_that_was_paused_reads_first() {
    let mut leading = Leading::over(&["a", "b", "c", "d"]);
    leading.until(20_000, &["a", "b"]);
    leading.now = at(22_000);
    leading.input(Local::Tick);
    assert!(leading.leads());
    leading.until(60_000, &["a", "b"]);
    assert!(leading.leads());
    // It does not count as late for ever.
    for _ in 0..3 {
        leading.now = leading.now + Duration::from_secs(2);
        leading.input(Local::Tick);
    }
    assert!(!leading.leads());
}

fn reported_timeout(leading: &Leading) -> u32 {
    match leading.raft.own_pulse(leading.now, &leading.view) {
        Pulse::Leads {
            election_timeout_min_ms,
            ..
        } => election_timeout_min_ms,
        Pulse::Follows { .. } => panic!("it does not lead"),
    }
}

#[test]
fn a_leader_reports_four_round_trips_of_its_median_voter_capped_at_five_seconds() {
    // (round trips in ms, timeout reported)
    let table: &[(&[u64], u32)] = &[
        (&[], 1500),
        (&[10, 20, 30], 1500),
        (&[1, 400, 9_000], 1600),
        (&[600, 600, 600], 2400),
        (&[9_000, 9_000, 1], 5000),
        (&[1, 1, 500, 9_000, 9_000], 2000),
    ];
    for (trips, reported) in table {
        let names = &["a", "b", "c", "d", "e"][..trips.len().max(3)];
        let mut leading = Leading::over(names);
        for (name, trip) in names.iter().zip(*trips) {
            let voter = leading.view.voters.get_mut(&id(name)).expect("linked");
            voter.rtt = Some(Duration::from_millis(*trip));
        }
        leading.until(11_000, names);
        leading.now = at(11_500);
        leading.input(Local::Tick);
        assert_eq!(reported_timeout(&leading), *reported, "{trips:?}");
    }
}

#[test]
fn round_trips_stretch_only_a_leaders_timeouts() {
    let far = |view: &mut View| {
        for voter in view.voters.values_mut() {
            voter.rtt = Some(Duration::from_millis(600));
        }
    };
    let mut follower = Voting::new();
    follower.receive_leader(at(10_000));
    far(&mut follower.view);
    follower
        .raft
        .handle(at(10_500), &follower.view, Local::Tick.into())
        .expect("no violation");
    assert_eq!(follower.raft.election_timeout_min(), MIN);
    let mut leading = Leading::over(&["a", "b"]);
    far(&mut leading.view);
    leading.input(Local::Tick);
    assert_eq!(reported_timeout(&leading), 2400);
    #[cfg(feature = "laboratory")]
    {
        let mut leading = Leading::over(&["a", "b"]);
        leading.raft.config.guards.adaptive_timeouts = false;
        far(&mut leading.view);
        leading.input(Local::Tick);
        assert_eq!(reported_timeout(&leading), 1500, "without G15");
    }
}

/// G15, P13: earlier measurements do not extend the time for which it may lead without a majority now.
#[test]
fn a_window_of_long_round_trips_is_shortened_with_them() {
    let trips = |leading: &mut Leading, ms: u64| {
        for voter in leading.view.voters.values_mut() {
            voter.rtt = Some(Duration::from_millis(ms));
        }
        leading.input(Local::Tick);
    };
    let mut leading = Leading::over(&["a", "b"]);
    trips(&mut leading, 1000); // timeouts of 4 s
    leading.until(16_000, &["a", "b"]); // a window began at 15.5 s
    trips(&mut leading, 10);
    assert_eq!(reported_timeout(&leading), 1500);
    leading.until(19_000, &[]);
    assert!(!leading.leads());
    // A leader without voters has measured nothing.
    let mut leading = Leading::over(&["a", "b"]);
    trips(&mut leading, 1000);
    leading.until(16_000, &["a", "b"]);
    for name in ["a", "b"] {
        leading.lost(name, DownReason::Closed);
    }
    leading.until(19_000, &[]);
    assert!(leading.leads());
}

#[test]
fn followers_adopt_the_leaders_timeout_within_limits() {
    // (reported, the lease that follows)
    for (reported, lease) in [(0, 1500), (1500, 1500), (2400, 2400), (u32::MAX, 6500)] {
        let mut voting = Voting::new();
        voting.receive_leader_with(at(10_000), reported);
        let end = 10_000 + lease;
        assert!(!voting.asked(at(end - 1), "candidate", None), "{reported}");
        assert!(voting.asked(at(end), "candidate", None), "{reported}");
    }
}
