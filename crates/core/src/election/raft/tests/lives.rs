//! Incarnations of a leader: which is gone, and which lives.

use super::*;
use crate::election::raft::wire::LiveLeader;

/// Incarnation 5 of the leader ends, reported by its transport.
fn sees_the_leader_end(voting: &mut Voting, now: Time) {
    let ended = Local::PeerDown {
        peer: id("leader"),
        incarnation: life(5),
        why: DownReason::Closed,
    };
    voting
        .raft
        .handle(now, &voting.view, ended.into())
        .expect("no violation");
}

fn live(number: u64) -> LiveLeader {
    LiveLeader {
        key: Fingerprint([0; 32]),
        id: id("leader"),
        incarnation: life(number),
        weight: 2,
        led_ms: 0,
        rest_ms: 1000,
    }
}

/// The value of a report that incarnation `number` of the leader lives, to a voter that saw incarnation 5 end.
fn believes(number: u64) -> bool {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    voting.view.voters.remove(&id("leader"));
    sees_the_leader_end(&mut voting, at(10_100));
    let mut now = 10_100;
    while voting.raft.rules().role() != RoleKind::PreCandidate {
        now += 10;
        voting
            .raft
            .handle(at(now), &voting.view, Local::Tick.into())
            .expect("no violation");
    }
    let round = voting.raft.rules().campaign().expect("it asks").round;
    let answer = ElectionMessage::PreVoteResponse {
        round,
        voter: id("candidate"),
        granted: false,
        record: voting.raft.leadership().record.clone(),
        live: Some(live(number)),
    };
    let input = ElectionInput::Message {
        from: id("candidate"),
        message: Stamped::new(stamp(1), answer),
    };
    voting
        .raft
        .handle(at(now + 10), &voting.view, input)
        .expect("no violation");
    voting.raft.leader() == Some(&id("leader"))
}

#[test]
fn the_incarnation_that_ended_and_those_that_started_before_it_are_believed_to_be_gone() {
    assert!(!believes(5));
    assert!(!believes(4));
    assert!(believes(6));
}

/// A clock may be set back between two starts: the link shows which incarnation lives.
#[test]
fn an_incarnation_that_started_before_one_that_ended_is_back_with_its_link() {
    let mut voting = Voting::new();
    sees_the_leader_end(&mut voting, at(10_000));
    let is_dead = |voting: &Voting, number| {
        let report = voting
            .raft
            .weigh_live(at(10_100), &voting.view, Some(live(number)));
        matches!(report, following::Report::Dead)
    };
    assert!(is_dead(&voting, 4) && is_dead(&voting, 5));
    // In the view the leader is linked in incarnation 1.
    voting.raft.is_back(at(10_100), &voting.view, &id("leader"));
    assert!(!is_dead(&voting, 1) && !is_dead(&voting, 4));
    assert!(is_dead(&voting, 5));
}

/// P8: others may still name an incarnation that the linked one has replaced, whatever its clock shows.
#[test]
fn an_incarnation_that_others_named_is_gone_when_another_one_is_linked() {
    let mut voting = Voting::new();
    let record = Record {
        leader: Some(id("leader")),
        leader_key: Some(Fingerprint([0; 32])),
        ..Record::undecided(stamp(1))
    };
    let (raft, view) = (&mut voting.raft, &voting.view);
    raft.follow_indirectly(at(9000), view, &record, &live(7));
    let key = Fingerprint([0; 32]);
    let side = || Side {
        record: Record::default(),
        live: None,
        hold_binds: false,
        lone: true,
        since: 0,
    };
    // In the view the leader is linked in incarnation 1.
    let linked = ElectionInput::PeerUp {
        peer: id("leader"),
        key,
        ours: side(),
        theirs: side(),
    };
    voting.take(at(10_000), linked);
    let left = Local::PeerDown {
        peer: id("leader"),
        incarnation: life(1),
        why: DownReason::Left { successor: None },
    };
    voting.take(at(10_100), left);
    let of = |number| {
        voting
            .raft
            .weigh_live(at(10_200), &voting.view, Some(live(number)))
    };
    assert!(matches!(of(1), following::Report::Dead));
    assert!(matches!(of(7), following::Report::Dead));
    assert!(matches!(of(8), following::Report::Alive(_)));
}

/// An observer that heard the leader at 10 s, and lost it by silence at 11.5 s.
fn lost_silently() -> Voting {
    let mut observer = Voting::with(|start| start.config.eligible = false);
    observer.receive_leader(at(10_000));
    assert_eq!(observer.raft.leader(), Some(&id("leader")));
    let incarnation = observer.view.voters[&id("leader")].incarnation;
    observer.view.voters.remove(&id("leader"));
    let lost = Local::PeerDown {
        peer: id("leader"),
        incarnation,
        why: DownReason::Silent,
    };
    observer.take(at(11_500), lost);
    assert_eq!(observer.raft.leader(), None);
    observer
}

/// P8: the others lose a leader that crashed when this node does, or a little later.
#[test]
fn an_observer_gets_a_silent_leader_back_while_others_receive_from_it_half_a_timeout_later() {
    let mut observer = lost_silently();
    let record = observer.raft.leadership().record.clone();
    let mut shown_at = |now| {
        let pulse = Pulse::Follows {
            record: record.clone(),
            live: true,
        };
        let from = id("candidate");
        let pulse = pulse.into();
        observer.take(at(now), ElectionInput::Pulse { from, pulse });
        observer.raft.leader().cloned()
    };
    assert_eq!(shown_at(11_501), None);
    assert_eq!(shown_at(12_250), None);
    assert_eq!(shown_at(12_251), Some(id("leader")));
}

/// P8: a report shows for how long the leader will still be heard, and so when it last was.
#[test]
fn an_observer_gets_a_silent_leader_back_from_a_member_that_received_half_a_timeout_later() {
    let mut observer = lost_silently();
    let record = observer.raft.leadership().record.clone();
    let mut shown_after = |rest_ms| {
        let report = LiveLeader { rest_ms, ..live(1) };
        let (raft, view) = (&mut observer.raft, &observer.view);
        raft.follow_indirectly(at(11_600), view, &record, &report);
        observer.raft.leader().cloned()
    };
    assert_eq!(shown_after(650), None);
    assert_eq!(shown_after(651), Some(id("leader")));
}

/// An observer that shows the leader only on others' reports, which the reporter loses at 10.1 s.
fn lost_by_report() -> Voting {
    let mut observer = Voting::with(|start| start.config.eligible = false);
    observer.view.voters.remove(&id("leader"));
    let report = LiveLeader {
        rest_ms: 100,
        ..live(1)
    };
    let (raft, view) = (&mut observer.raft, &observer.view);
    raft.follow_indirectly(at(10_000), view, &led_by("leader"), &report);
    assert_eq!(observer.raft.leader(), Some(&id("leader")));
    observer.expires();
    observer
}

fn led_by(leader: &str) -> Record {
    Record {
        leader: Some(id(leader)),
        ..Record::undecided(stamp(1))
    }
}

impl Voting {
    /// Lets time pass until no leader is shown.
    fn expires(&mut self) -> Time {
        let mut now = Time::ZERO;
        while self.raft.leader().is_some() {
            now = self.raft.next_deadline().expect("what others named ends");
            self.take(now, Local::Tick);
        }
        now
    }

    /// The leader that this node shows after a heartbeat of a follower that receives the leader's.
    fn shows_after_voucher(&mut self, now: Time) -> Option<PeerId> {
        let pulse = Pulse::Follows {
            record: led_by("leader"),
            live: true,
        };
        let (from, pulse) = (id("candidate"), pulse.into());
        self.take(now, ElectionInput::Pulse { from, pulse });
        self.raft.leader().cloned()
    }
}

/// P8: a heartbeat that was sent before the reporter lost the leader may arrive later.
#[test]
fn an_observer_that_lost_a_reported_leader_waits_for_a_member_with_a_later_message() {
    let mut observer = lost_by_report();
    assert_eq!(observer.shows_after_voucher(at(10_200)), None);
    assert_eq!(observer.shows_after_voucher(at(10_850)), None);
    let shown = observer.shows_after_voucher(at(10_851));
    assert_eq!(shown, Some(id("leader")));

    let mut observer = lost_by_report();
    let mut shown_after = |rest_ms| {
        let report = LiveLeader { rest_ms, ..live(1) };
        let (raft, view) = (&mut observer.raft, &observer.view);
        raft.follow_indirectly(at(10_200), view, &led_by("leader"), &report);
        observer.raft.leader().cloned()
    };
    assert_eq!(shown_after(650), None);
    assert_eq!(shown_after(651), Some(id("leader")));
}

/// The members that vouched for it were only out of reach for a moment.
#[test]
fn an_observer_believes_at_once_in_a_leader_that_was_not_vouched_for_lately() {
    let mut observer = Voting::with(|start| start.config.eligible = false);
    observer.view.voters.remove(&id("leader"));
    let shown = observer.shows_after_voucher(at(10_000));
    assert_eq!(shown, Some(id("leader")));
    let expired = observer.expires();
    assert!(expired >= at(11_500));
    assert_eq!(observer.shows_after_voucher(expired), Some(id("leader")));
}
