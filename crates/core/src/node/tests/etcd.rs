//! A room whose leader etcd decides, with the answers of a store that has one key.

use super::*;
use crate::election::engine::{Answer, Entry, Request, Revision};
use crate::election::etcd::{EtcdRules, LeaderToken};
use crate::path::RelayNumber;
use crate::wire::{RoomPolicy, Strategy};

const TTL: Duration = Duration::from_secs(3);
const NOW: Time = Time::from_micros(1_000_000);

/// A node with one peer, linked at [`NOW`]; the store answers its requests at once. Watches report nothing.
struct Asking {
    node: Node,
    /// The first key of the election, as an observer finds it.
    first: Option<Entry>,
    /// Whether its own key is missing when it reads it.
    is_robbed: bool,
    /// Difference between the creation of its own key as it reads it and as it wrote it: another client deleted and
    /// rewrote the key.
    is_created_later_by: Revision,
    own: Option<Entry>,
    revision: Revision,
    shown: Vec<Option<PeerId>>,
}

fn entry(leader: &str, created: Revision) -> Entry {
    Entry {
        key: format!("/election/{created:x}").as_str().into(),
        value: format!("{leader}\n\n").into_bytes(),
        created,
        modified: created,
    }
}

fn asking(first: Option<Entry>) -> Asking {
    asking_as(first, false)
}

fn asking_as(first: Option<Entry>, is_robbed: bool) -> Asking {
    asking_with(first, is_robbed, 0)
}

fn asking_with(first: Option<Entry>, is_robbed: bool, is_created_later_by: Revision) -> Asking {
    let mut config = NodeConfig::for_tests();
    config.election.policy = RoomPolicy {
        strategy: Strategy::Etcd(EtcdRules::default()),
        ..RoomPolicy::default()
    };
    config.election.etcd.ttl = TTL;
    let own = life(1, 1);
    let node = Node::new(id("me"), own.incarnation, config, 7, NOW).expect("it keeps no state");
    let mut asking = Asking {
        revision: first.as_ref().map_or(1, |first| first.created),
        node,
        first,
        is_robbed,
        is_created_later_by,
        own: None,
        shown: Vec::new(),
    };
    asking.carry_out();
    let side = asking.node.side(NOW);
    let peer = life(2, 2);
    asking.feed(
        NOW,
        Input::LinkUp(Box::new(LinkUp {
            peer: id("peer"),
            incarnation: peer.incarnation,
            key: peer.key,
            addresses: Vec::new(),
            eligible: true,
            priority: 0,
            is_host: false,
            path: Path::Direct,
            carrier: None,
            through_turn: false,
            features: 0,
            ours: side.clone(),
            theirs: side,
        })),
    );
    asking
}

impl Asking {
    fn feed(&mut self, now: Time, input: Input) {
        self.node.handle(now, input).expect("it takes it");
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Engine { call, request } => self.answer(call, request),
                Output::Persist { number, .. } => {
                    let persisted = self.node.handle(NOW, Input::Persisted { number });
                    persisted.expect("it takes it");
                }
                Output::Event(Event::LeaderChanged(change)) => self.shown.push(change.new),
                _ => {}
            }
        }
    }

    fn answer(&mut self, call: u64, request: Request) {
        let answer = match request {
            Request::Grant { ttl } => Answer::Granted { lease: 1, ttl },
            Request::Create { .. } => {
                self.revision += 1;
                self.own = Some(entry("me", self.revision));
                self.found(self.own.clone())
            }
            // The candidate right before it has gone away by now.
            Request::LastBefore { .. } => self.found(None),
            Request::Get { .. } if self.is_robbed => self.found(None),
            Request::Get { .. } => {
                let created = |own: &Entry| own.created + self.is_created_later_by;
                let own = self.own.as_ref();
                self.found(own.map(|own| Entry {
                    created: created(own),
                    modified: created(own),
                    ..own.clone()
                }))
            }
            Request::First { .. } => self.found(self.first.clone()),
            // Watches: no events.
            _ => return,
        };
        let answered = self.node.handle(NOW, Input::Engine { call, answer });
        answered.expect("it takes it");
    }

    fn found(&self, entry: Option<Entry>) -> Answer {
        Answer::Entry {
            entry,
            revision: self.revision,
        }
    }
}

fn token(leader: &str, revision: u64) -> Opaque {
    Opaque::of(&Some(LeaderToken {
        leader: id(leader),
        revision,
    }))
}

#[test]
fn a_leader_that_slept_beyond_its_lease_relays_nothing_and_announces_the_loss_first() {
    let mut asking = asking(None);
    let peers = asking.node.followed_token();
    assert_eq!(asking.shown, [Some(id("me"))]);
    assert!(asking.node.may_relay(NOW, &id("peer"), &peers));
    let relays = asking.node.may_relay(NOW + TTL, &id("peer"), &peers);
    assert!(!relays, "its lease is over");
    asking.carry_out();
    assert_eq!(asking.shown, [Some(id("me")), None]);
}

#[test]
fn a_leader_that_slept_does_not_lead_when_it_wakes() {
    let mut asking = asking(None);
    assert!(asking.node.is_leader());
    asking.feed(NOW + TTL, Input::OtherData { peer: id("peer") });
    assert_eq!(asking.shown, [Some(id("me")), None]);
}

#[test]
fn a_candidate_that_comes_first_and_whose_key_is_gone_does_not_lead() {
    let asking = asking_as(None, true);
    assert_eq!(asking.shown, [], "a lease that ended while it waited");
}

/// Another candidate may have been first since its key was deleted.
#[test]
fn a_candidate_that_comes_first_and_whose_key_was_created_again_does_not_lead() {
    let asking = asking_with(None, false, 2);
    assert_eq!(asking.shown, []);
    assert_eq!(asking_with(None, false, 0).shown, [Some(id("me"))]);
}

/// A leader lost its leadership and has the next one: its messages from the first one arrive late, or it resumed.
#[test]
fn a_message_of_an_earlier_leadership_of_the_leader_is_refused() {
    let mut asking = asking_as(Some(entry("peer", 12)), true);
    asking.feed(NOW, Input::Command(Command::SetEligible(false)));
    let peer = id("peer");
    for (revision, counts) in [(1, false), (11, false), (12, true), (13, false)] {
        let stamped = token("peer", revision);
        let accepted = asking.node.accept_leader_message(NOW, &peer, &stamped);
        assert_eq!(accepted, counts, "{revision}");
    }
}

#[test]
fn a_leader_that_resigns_does_not_show_the_one_before_it() {
    let mut asking = asking(Some(entry("other", 9)));
    let me = Some(id("me"));
    assert_eq!(asking.shown.last(), Some(&me), "{:?}", asking.shown);
    asking.feed(NOW, Input::Command(Command::YieldLeadership));
    assert_eq!(asking.shown.last(), Some(&None));
    assert!(asking.node.record().term() > 9, "fencing tokens grow");
}

/// A member that lies may stamp its messages with any revision.
#[test]
fn only_a_leadership_that_etcd_has_shown_is_believed() {
    let mut asking = asking(None);
    asking.feed(NOW, Input::Command(Command::SetEligible(false)));
    let (peer, claimed) = (id("peer"), token("peer", 50));
    let node = &mut asking.node;
    assert!(node.awaits_leadership_proof(&peer, &claimed));
    assert!(!node.accept_leader_message(NOW, &peer, &claimed));
    let speaker = node.accept_relay(NOW, &peer, &claimed, Duration::ZERO);
    assert_eq!(speaker, None);
    assert!(!node.has_or_had_leadership(NOW, &peer, &claimed));
    assert!(node.membership().get(&peer).is_some(), "it may be true");
}

#[test]
fn a_leaders_message_that_is_ahead_of_etcd_waits_for_it() {
    let (peer, stamped) = (id("peer"), token("peer", 12));
    let observer = |first| {
        let mut asking = asking_as(Some(first), true);
        asking.feed(NOW, Input::Command(Command::SetEligible(false)));
        asking
    };
    let asking = observer(entry("other", 9));
    let awaits = |token| asking.node.awaits_leadership_proof(&peer, &token);
    assert!(awaits(stamped.clone()));
    assert!(!awaits(token("peer", 8)), "an older one");
    assert!(!awaits(token("other", 12)), "a lie");
    let mut asking = observer(entry("peer", 12));
    let node = &mut asking.node;
    assert!(
        !node.awaits_leadership_proof(&peer, &stamped),
        "it was shown"
    );
    assert!(node.accept_leader_message(NOW, &peer, &stamped));
    let speaker = node.accept_relay(NOW, &peer, &stamped, Duration::ZERO);
    assert_eq!(speaker, Some(Speaker::Leader));
}

/// The store elects, so a relay that falls causes no election; the members that it links are held all the same.
#[test]
fn a_relay_that_falls_loses_no_member_and_no_leader_for_four_seconds() {
    let mut asking = asking_as(Some(entry("peer", 12)), true);
    let (peer, its) = (id("peer"), life(2, 3));
    let side = asking.node.side(NOW);
    let relay = RelayNumber(0);
    for change in [relays::up(0), RelayChange::Present(its.key)] {
        asking.feed(NOW, Input::Relay { relay, change });
    }
    asking.feed(
        NOW,
        Input::LinkUp(Box::new(LinkUp {
            peer: peer.clone(),
            incarnation: its.incarnation,
            key: its.key,
            addresses: Vec::new(),
            eligible: true,
            priority: 0,
            is_host: false,
            path: Path::Carried(CarrierKind::Relay),
            carrier: Some(Carrier::Relay(relay)),
            through_turn: false,
            features: 0,
            ours: side.clone(),
            theirs: side,
        })),
    );
    asking.feed(NOW, Input::Command(Command::SetEligible(false)));
    let shown = asking.shown.clone();
    assert_eq!(asking.node.leader(), Some(&peer));
    let change = RelayChange::Down;
    asking.feed(NOW + ms(500), Input::Relay { relay, change });
    let linked = |asking: &Asking| asking.node.membership().get(&peer).is_some();
    let is_held_at = |asking: &mut Asking, after| {
        // In time: a process that stood still probes the peer first.
        let due = |asking: &Asking| {
            asking
                .node
                .next_deadline()
                .filter(|due| *due <= NOW + after)
        };
        while let Some(due) = due(asking) {
            asking.feed(due, Input::Tick);
        }
        linked(asking)
    };
    assert!(is_held_at(&mut asking, ms(4_499)));
    assert_eq!((asking.node.leader(), &asking.shown), (Some(&peer), &shown));
    assert!(!is_held_at(&mut asking, ms(4_500)));
}
