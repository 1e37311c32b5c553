//! Timers. Voters do not draw from a common range: each has a slot by its rank (G13), and a failed round is repeated
//! after a random time (G14).

use super::*;

/// Slots in the default range: 1500 ms, at least 50 ms each.
const SLOTS: u32 = 30;
const SLOT: Duration = ms(50);

/// The time after the leader's last heartbeat at which `m` campaigns, in a room in which `before` voters have larger
/// ids and `after` smaller ones.
fn draw(seed: u64, before: usize, after: usize) -> Duration {
    let mut view = View::default();
    let larger = (0..before).map(|number| format!("z{number}"));
    let smaller = (0..after).map(|number| format!("a{number}"));
    for name in larger.chain(smaller).chain(["leader".to_owned()]) {
        let voter = Voter {
            key: Fingerprint([0; 32]),
            incarnation: life(0),
            eligible: true,
            priority: 0,
            rtt: None,
        };
        view.voters.insert(id(&name), voter);
    }
    let start = Start {
        seed,
        ..start("m", life(1))
    };
    let mut raft = Raft::new(at(0), start);
    let last_beat = at(5000);
    let from = id("leader");
    let pulse = leads("leader", 1);
    raft.handle(
        last_beat,
        &view,
        ElectionInput::Pulse {
            from,
            pulse: pulse.into(),
        },
    )
    .expect("no violation");
    let peer = id("leader");
    view.voters.remove(&peer);
    let lost = Local::PeerDown {
        peer,
        incarnation: life(0),
        why: DownReason::Silent,
    };
    raft.handle(last_beat + MIN, &view, lost.into())
        .expect("no violation");
    raft.next_deadline()
        .expect("its timer runs")
        .since(last_beat)
}

/// etcd-io/raft gives the probability with which a timer has fired after a share of its range. Here the range
/// of a voter is the first half of its slot.
#[test]
fn r9_the_share_of_timers_that_have_fired_grows_evenly_over_the_half_slot() {
    const SEEDS: u32 = 2000;
    for rank in [0, 3, SLOTS - 1] {
        let begin = MIN + SLOT * rank;
        let draws: Vec<_> = (0..SEEDS)
            .map(|seed| draw(seed.into(), rank as usize, 2))
            .collect();
        for tenths in [0, 1, 4, 6, 9, 10] {
            let elapsed = begin + SLOT / 2 * tenths / 10;
            let fired = draws.iter().filter(|draw| **draw <= elapsed).count();
            let share = fired as f64 / f64::from(SEEDS);
            let expected = f64::from(tenths) / 10.0;
            let close = (share - expected).abs() < 0.04;
            assert!(
                close,
                "rank {rank}: {share} have fired after {tenths} tenths"
            );
        }
    }
}

#[test]
fn r24_r70_every_draw_lies_in_the_range_and_every_slot_occurs() {
    let mut slots = BTreeSet::new();
    for rank in 0..40 {
        for seed in 0..25 {
            let drawn = draw(seed, rank, 3);
            assert!((MIN..MAX).contains(&drawn), "rank {rank} draws {drawn:?}");
            let slot = (drawn - MIN).as_micros() / SLOT.as_micros();
            assert_eq!(
                slot,
                (rank as u128).min(u128::from(SLOTS) - 1),
                "rank {rank}"
            );
            slots.insert(slot);
        }
    }
    assert_eq!(slots.len(), SLOTS as usize);
}

/// A candidate's timer: a failed round is repeated after one round trip and up to 400 ms.
#[test]
fn r24_the_times_of_a_repeated_round_are_random_too() {
    let mut tenths = BTreeSet::new();
    for delay in repeated_rounds(300) {
        assert!((ms(100)..=ms(500)).contains(&delay), "{delay:?}");
        tenths.insert((delay - ms(100)).as_millis() / 40);
    }
    assert!(tenths.len() >= 10, "only {tenths:?}");
}

/// The times that a pre-candidate without answers waits before it asks again.
fn repeated_rounds(count: usize) -> Vec<Duration> {
    let mut group = Group::one("m", &["a", "b"]);
    group.times_out("m");
    let mut delays = Vec::new();
    for _ in 0..count {
        let from = group.now;
        group.times_out("m");
        delays.push(group.now.since(from));
    }
    delays
}

/// Two timers collide when they fire within the time that a vote request takes on a good link.
const TRIP: Duration = ms(10);
const ROUNDS: usize = 1000;

fn collide(mut times: Vec<Duration>) -> bool {
    times.sort();
    times[1] - times[0] < TRIP
}

#[test]
fn r25_of_five_followers_two_hardly_ever_time_out_together() {
    let mut collisions = 0;
    for round in 0..ROUNDS {
        let times = (0..5).map(|rank| draw((round * 5 + rank) as u64, rank, 4 - rank));
        collisions += usize::from(collide(times.collect()));
    }
    assert!(collisions <= ROUNDS * 3 / 10, "{collisions} of {ROUNDS}");
}

#[test]
fn r25_of_five_candidates_two_seldom_repeat_their_rounds_together() {
    let delays = repeated_rounds(ROUNDS * 5);
    let collisions = delays.chunks(5).filter(|five| collide(five.to_vec()));
    let collisions = collisions.count();
    assert!(collisions <= ROUNDS * 3 / 10, "{collisions} of {ROUNDS}");
}

#[test]
fn o18_every_heartbeat_draws_the_timeout_anew() {
    let mut timeouts = BTreeSet::new();
    let mut group = Group::one("m", &["a", "b", "c"]);
    group.now = at(5000);
    for _ in 0..20 {
        group.receive("m", "a", Content::Pulse(leads("a", 1)));
        // The leader ends, and its link comes back: in between the drawn timeout can be read.
        let one = group.members.get_mut(&id("m")).expect("it is played here");
        let voters = one.view.voters.clone();
        group.loses("m", "a", DownReason::Silent);
        let due = group.raft("m").next_deadline().expect("its timer runs");
        timeouts.insert(due.since(group.now));
        group.members.get_mut(&id("m")).expect("it is").view.voters = voters;
        group.wait(HEARTBEAT);
    }
    assert!(timeouts.len() >= 15, "only {timeouts:?}");
}

#[test]
fn r20_hc13_a_follower_without_messages_campaigns_in_the_next_term() {
    let mut group = Group::one("m", &["a", "b", "leader"]);
    group.now = at(5000);
    group.receive("m", "leader", Content::Pulse(leads("leader", 4)));
    group.wait(MIN);
    group.loses("m", "leader", DownReason::Silent);
    group.take_sent();
    let last_beat = at(5000);
    group.times_out("m");
    assert!((MIN..MAX).contains(&group.now.since(last_beat)));
    // First it asks each voter once, in its old term.
    assert_eq!(
        (group.role("m"), group.term("m")),
        (RoleKind::PreCandidate, 4)
    );
    let asked: Vec<_> = group.take_sent();
    let names: Vec<PeerId> = asked.iter().map(|(_, to, _)| to.clone()).collect();
    assert_eq!(names, ["a", "b"].map(id));
    for (_, _, content) in asked {
        let Content::Message(_, ElectionMessage::PreVoteRequest { term, .. }) = content else {
            panic!("{content:?}");
        };
        assert_eq!(term, 5);
    }
    group.answers("m", "a", true);
    // Then it campaigns: the next term, its own vote, one request to each.
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Candidate, 5));
    assert_eq!(group.voted_for("m"), Some(&id("m")));
    let asked: Vec<_> = group.take_sent();
    let names: Vec<PeerId> = asked.iter().map(|(_, to, _)| to.clone()).collect();
    assert_eq!(names, ["a", "b"].map(id));
    for (_, _, content) in asked {
        let Content::Message(stamp, ElectionMessage::VoteRequest { asked_by: None, .. }) = content
        else {
            panic!("{content:?}");
        };
        assert_eq!(stamp, term(5));
    }
}

#[test]
fn r20_a_candidate_without_answers_begins_a_new_election() {
    let mut group = in_role(RoleKind::Candidate);
    let began = group.now;
    group.times_out("m");
    assert!(group.now.since(began) < MAX);
    // The answers may only be late or lost: it asks the same voters again, for the same term.
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Candidate, 1));
    let asked: Vec<PeerId> = group.take_sent().into_iter().map(|(_, to, _)| to).collect();
    assert_eq!(asked, ["a", "b", "c", "d"].map(id));
    // A voter that is lost, or one that refuses, can cost it the term.
    group.loses("m", "d", DownReason::Silent);
    group.times_out("m");
    assert_eq!(
        (group.role("m"), group.term("m")),
        (RoleKind::PreCandidate, 1)
    );
    group.answers("m", "a", true);
    group.answers("m", "b", true);
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Candidate, 2));
}
