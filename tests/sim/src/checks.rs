//! The properties of `docs/elections.md` that hold at every instant, checked after every input of a node.
//!
//! The checker sees only what a node says (its outputs) and shows (a [`Seen`]); it is told nothing by the
//! simulator, so that a wrong history can be fed to it by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use meta_mystia_network::core::election::record::{Record, Stamp};
use meta_mystia_network::core::election::rules::{Campaign, Role, majority_threshold};
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::core::node::{Event, LeftReason, Output};
use meta_mystia_network::core::wire::{ElectionMessage, Message};

/// A property that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name, as in `docs/elections.md`.
    pub property: &'static str,
    /// What was seen instead.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}

/// What a node shows of itself after an input.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub record: &'a Record,
    pub leader: Option<&'a PeerId>,
    pub role: Role,
    pub voted_for: Option<&'a PeerId>,
    pub leads_under: Option<&'a Record>,
    pub campaign: Option<&'a Campaign>,
    pub won: Option<&'a Campaign>,
    pub members: Vec<&'a PeerId>,
    /// The linked peers that may vote.
    pub eligible: Vec<&'a PeerId>,
    /// Whether this node itself may vote and lead.
    pub may_lead: bool,
}

/// One life of one peer, as far as the properties need it.
#[derive(Debug)]
struct Life {
    id: PeerId,
    record: Record,
    votes: BTreeMap<Stamp, PeerId>,
    told: Option<PeerId>,
    /// Who is joined, and in which of its lives.
    joined: BTreeMap<PeerId, u64>,
    /// Whom it was told to be lost, and not gone.
    lost: BTreeMap<PeerId, u64>,
    /// Who said farewell, and in which of its lives.
    said_farewell: BTreeMap<PeerId, u64>,
    /// Who was kicked, as it was told.
    kicked: BTreeSet<PeerId>,
    led_under: Option<Record>,
    followed: Option<(Stamp, PeerId)>,
    round: u64,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Checker {
    lives: BTreeMap<usize, Life>,
    /// Who said to have voted for whom, in the whole room.
    granted: BTreeMap<(Stamp, PeerId), BTreeSet<PeerId>>,
    /// How often each peer started, for the rule that nobody is shown who said farewell and did not return.
    births: BTreeMap<PeerId, u64>,
}

type Checked = Result<(), Violation>;

fn ensure(holds: bool, property: &'static str, text: impl FnOnce() -> String) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(Violation {
            property,
            text: text(),
        })
    }
}

impl Checker {
    /// A process started.
    pub fn born(&mut self, slot: usize, id: &PeerId) {
        *self.births.entry(id.clone()).or_insert(0) += 1;
        self.lives.insert(
            slot,
            Life {
                id: id.clone(),
                record: Record::default(),
                votes: BTreeMap::new(),
                told: None,
                joined: BTreeMap::new(),
                lost: BTreeMap::new(),
                said_farewell: BTreeMap::new(),
                kicked: BTreeSet::new(),
                led_under: None,
                followed: None,
                round: 0,
            },
        );
    }

    /// A process ended.
    pub fn died(&mut self, slot: usize) {
        self.lives.remove(&slot);
    }

    /// What a node did and shows after one input.
    pub fn observe(&mut self, slot: usize, outputs: &[Output], seen: &Seen<'_>) -> Checked {
        for output in outputs {
            self.output(slot, output)?;
            ensure(seen.may_lead || !is_vote(output), "P6", || {
                format!("slot {slot} may not lead and votes: {output:?}")
            })?;
        }
        self.state(slot, seen)
    }

    fn output(&mut self, slot: usize, output: &Output) -> Checked {
        let Some(life) = self.lives.get_mut(&slot) else {
            return Ok(());
        };
        match output {
            Output::Transmit { to, envelope } => {
                if let Message::Election(ElectionMessage::VoteResponse { granted: true, .. }) =
                    &envelope.message
                {
                    let voters = self.granted.entry((envelope.stamp.clone(), to.clone()));
                    voters.or_default().insert(life.id.clone());
                    life.vote(&envelope.stamp, to)?;
                }
                ensure(
                    life.joined.contains_key(to) || farewell(&envelope.message),
                    "contract",
                    || {
                        format!(
                            "{} sends {:?} to {to}, who is no member",
                            life.id, envelope.message
                        )
                    },
                )?;
            }
            Output::Event(Event::Joined(peer)) => {
                life.said_farewell.remove(peer);
                life.stays_out(peer)?;
                let births = self.births.get(peer).copied().unwrap_or(0);
                let known = life.joined.insert(peer.clone(), births);
                ensure(
                    known.is_none() && !life.lost.contains_key(peer),
                    "P8",
                    || format!("{} hears twice that {peer} joined", life.id),
                )?;
            }
            Output::Event(Event::Reconnecting(peer)) => {
                let births = life.joined.remove(peer);
                ensure(births.is_some(), "P8", || {
                    format!("{} hears that {peer} is lost, who was not linked", life.id)
                })?;
                life.lost.insert(peer.clone(), births.unwrap_or(0));
            }
            Output::Event(Event::Returned(peer)) => {
                let births = life.lost.remove(peer);
                life.stays_out(peer)?;
                ensure(births == self.births.get(peer).copied(), "P8", || {
                    format!("{} hears that {peer} is back, who was not lost", life.id)
                })?;
                life.joined.insert(peer.clone(), births.unwrap_or(0));
            }
            Output::Event(Event::Left { peer, why, .. }) => {
                let births = life.joined.remove(peer).or_else(|| life.lost.remove(peer));
                ensure(births.is_some(), "P8", || {
                    format!("{} hears that {peer} left, who had not joined", life.id)
                })?;
                if *why == LeftReason::Kicked {
                    life.kicked.insert(peer.clone());
                }
                if let (LeftReason::Left, Some(births)) = (why, births) {
                    life.said_farewell.insert(peer.clone(), births);
                }
            }
            Output::Event(Event::LeaderChanged { leader, .. }) => {
                ensure(life.told != *leader, "P8", || {
                    format!("{} is told {leader:?} twice in a row", life.id)
                })?;
                if let Some(leader) = leader {
                    let gone = !life.joined.contains_key(leader)
                        && life
                            .said_farewell
                            .get(leader)
                            .is_some_and(|births| self.births.get(leader) == Some(births));
                    ensure(!gone, "P8", || {
                        format!("{} is told of leader {leader}, who left", life.id)
                    })?;
                }
                life.told.clone_from(leader);
            }
            _ => {}
        }
        Ok(())
    }

    fn state(&mut self, slot: usize, seen: &Seen<'_>) -> Checked {
        let Some(life) = self.lives.get_mut(&slot) else {
            return Ok(());
        };
        let id = &life.id;
        ensure(*seen.record >= life.record, "P3", || {
            format!(
                "the record of {id} fell from {:?} to {:?}",
                life.record, seen.record
            )
        })?;
        ensure(life.told.as_ref() == seen.leader, "P8", || {
            format!("{id} was told {:?} and shows {:?}", life.told, seen.leader)
        })?;
        let members = seen.members.iter().copied();
        ensure(life.joined.keys().eq(members), "P8", || {
            format!("{id} was told {:?} and has {:?}", life.joined, seen.members)
        })?;
        ensure(
            (seen.role == Role::Leader) == seen.leads_under.is_some()
                && (seen.role == Role::Leader) == (seen.leader == Some(id)),
            "P8",
            || {
                format!(
                    "{id} is {:?}, leads under {:?} and shows {:?}",
                    seen.role, seen.leads_under, seen.leader
                )
            },
        )?;
        let idle = !seen.may_lead && matches!(seen.role, Role::Leader | Role::Candidate);
        ensure(!idle, "P6", || {
            format!("{id} may not lead and is {:?}", seen.role)
        })?;
        if let Some(voted_for) = seen.voted_for {
            life.vote(&seen.record.stamp, voted_for)?;
        }
        life.follows(seen)?;
        life.electorate(seen)?;
        if seen.leads_under != life.led_under.as_ref() {
            if let Some(record) = seen.leads_under {
                life.elected(record, seen.won, &self.granted)?;
            }
            life.led_under = seen.leads_under.cloned();
        }
        if life.record != *seen.record {
            life.record = seen.record.clone();
        }
        Ok(())
    }
}

impl Life {
    /// P4: at most one candidate per (epoch, term).
    fn vote(&mut self, stamp: &Stamp, candidate: &PeerId) -> Checked {
        let given = self
            .votes
            .entry(stamp.clone())
            .or_insert_with(|| candidate.clone());
        ensure(given == candidate, "P4", || {
            format!(
                "{} voted for {given} and for {candidate} in {stamp:?}",
                self.id
            )
        })
    }

    /// Whoever was kicked is not linked again where that is known.
    fn stays_out(&self, peer: &PeerId) -> Checked {
        ensure(!self.kicked.contains(peer), "kick", || {
            format!("{} links {peer}, who was kicked", self.id)
        })
    }

    /// P2: in one (epoch, term) a node never goes back from a larger leader to a smaller one.
    fn follows(&mut self, seen: &Seen<'_>) -> Checked {
        let (Some(leader), Some(named)) = (seen.leader, &seen.record.leader) else {
            return Ok(());
        };
        if leader != named {
            return Ok(());
        }
        if let Some((stamp, before)) = &self.followed {
            ensure(
                *stamp != seen.record.stamp || before <= leader,
                "P2",
                || {
                    format!(
                        "{} followed {before} and then {leader} in {stamp:?}",
                        self.id
                    )
                },
            )?;
            if before == leader && *stamp == seen.record.stamp {
                return Ok(());
            }
        }
        self.followed = Some((seen.record.stamp.clone(), leader.clone()));
        Ok(())
    }

    /// P5, P6: a round is open to the linked voters of its beginning, and to nobody else.
    fn electorate(&mut self, seen: &Seen<'_>) -> Checked {
        let Some(campaign) = seen.campaign else {
            return Ok(());
        };
        if campaign.round == self.round {
            return Ok(());
        }
        self.round = campaign.round;
        let mut voters: BTreeSet<&PeerId> = seen.eligible.iter().copied().collect();
        voters.insert(&self.id);
        ensure(
            campaign.electorate.iter().eq(voters.iter().copied()),
            "P5",
            || {
                format!(
                    "{} asks {:?}; its voters are {voters:?}",
                    self.id, campaign.electorate
                )
            },
        )
    }

    /// P5: a leadership is assigned, issued by the leader itself, or elected.
    fn elected(
        &self,
        record: &Record,
        won: Option<&Campaign>,
        granted: &BTreeMap<(Stamp, PeerId), BTreeSet<PeerId>>,
    ) -> Checked {
        let id = &self.id;
        ensure(record.leader.as_ref() == Some(id), "P5", || {
            format!("{id} leads under {record:?}")
        })?;
        ensure(*record >= self.record, "P3", || {
            format!("{id} leads under {record:?}, after {:?}", self.record)
        })?;
        let epoch = &record.stamp.epoch;
        let new_epoch = *epoch != self.record.stamp.epoch;
        let issued = new_epoch && epoch.assigner.as_ref() == Some(id) && self.led_under.is_some();
        if record.assigned || issued {
            return Ok(());
        }
        let Some(won) = won else {
            return ensure(false, "P5", || {
                format!("{id} leads under {record:?} without votes")
            });
        };
        let voters = granted.get(&(record.stamp.clone(), id.clone()));
        let honest = won
            .granted
            .iter()
            .all(|voter| voter == id || voters.is_some_and(|voters| voters.contains(voter)));
        ensure(honest, "P5", || {
            format!(
                "{id} counted votes of {:?}; given were {voters:?}",
                won.granted
            )
        })?;
        let threshold = majority_threshold(won.electorate.len());
        ensure(
            won.granted.is_subset(&won.electorate) && won.granted.len() >= threshold,
            "P5",
            || format!("{id} leads with {:?} of {:?}", won.granted, won.electorate),
        )
    }
}

fn is_vote(output: &Output) -> bool {
    let Output::Transmit { envelope, .. } = output else {
        return false;
    };
    matches!(
        envelope.message,
        Message::Election(
            ElectionMessage::VoteResponse { granted: true, .. }
                | ElectionMessage::PreVoteResponse { granted: true, .. }
        )
    )
}

/// The answer to a farewell goes to a peer that is leaving the membership in the same step.
fn farewell(message: &Message) -> bool {
    matches!(message, Message::LeaveAck | Message::Leave { .. })
}

/// Wrong histories: each must be reported, or the runs prove nothing.
#[cfg(test)]
mod tests {
    use meta_mystia_network::core::election::LeaderReason;
    use meta_mystia_network::core::election::record::Epoch;
    use meta_mystia_network::core::id::Incarnation;
    use meta_mystia_network::core::wire::Envelope;

    use super::*;

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("a name")
    }

    fn stamp(term: u64) -> Stamp {
        Stamp {
            epoch: Epoch::default(),
            term,
        }
    }

    fn record(term: u64, leader: &str) -> Record {
        Record {
            stamp: stamp(term),
            leader: Some(id(leader)),
            assigned: false,
        }
    }

    fn seen<'a>(record: &'a Record, leader: Option<&'a PeerId>) -> Seen<'a> {
        Seen {
            record,
            leader,
            role: Role::Follower,
            voted_for: None,
            leads_under: None,
            campaign: None,
            won: None,
            members: Vec::new(),
            eligible: Vec::new(),
            may_lead: true,
        }
    }

    fn checker() -> Checker {
        let mut checker = Checker::default();
        checker.born(0, &id("m"));
        checker
    }

    fn shown(leader: &str) -> Output {
        Output::Event(Event::LeaderChanged {
            leader: Some(id(leader)),
            reason: LeaderReason::Elected,
        })
    }

    fn joined(peer: &str) -> Output {
        Output::Event(Event::Joined(id(peer)))
    }

    fn property(checked: Checked) -> &'static str {
        checked.err().map_or("", |violation| violation.property)
    }

    fn vote(term: u64, candidate: &str) -> Output {
        Output::Transmit {
            to: id(candidate),
            envelope: Envelope {
                incarnation: Incarnation {
                    started_us: 1,
                    random: 1,
                },
                stamp: stamp(term),
                message: Message::Election(ElectionMessage::VoteResponse {
                    round: 1,
                    voter: id("m"),
                    granted: true,
                    record: Record::undecided(stamp(term)),
                    live: None,
                }),
            },
        }
    }

    #[test]
    fn going_back_to_a_smaller_leader_of_the_term_is_reported() {
        let mut checker = checker();
        let (larger, smaller) = (id("z"), id("a"));
        let first = record(1, "z");
        assert_eq!(
            checker.observe(0, &[shown("z")], &seen(&first, Some(&larger))),
            Ok(())
        );
        let mut life = checker.lives.remove(&0).expect("born");
        let back = record(1, "a");
        assert_eq!(property(life.follows(&seen(&back, Some(&smaller)))), "P2");
        let next_term = record(2, "a");
        assert_eq!(life.follows(&seen(&next_term, Some(&smaller))), Ok(()));
    }

    #[test]
    fn a_record_that_falls_is_reported() {
        let mut checker = checker();
        let high = record(2, "a");
        assert_eq!(checker.observe(0, &[], &seen(&high, None)), Ok(()));
        let low = record(1, "z");
        assert_eq!(property(checker.observe(0, &[], &seen(&low, None))), "P3");
    }

    #[test]
    fn two_votes_in_a_term_are_reported() {
        let mut checker = checker();
        let undecided = Record::undecided(stamp(1));
        let both = ["a", "b"].map(id);
        let mut now = seen(&undecided, None);
        now.members = both.iter().collect();
        let outputs = [joined("a"), joined("b"), vote(1, "a"), vote(1, "a")];
        assert_eq!(checker.observe(0, &outputs, &now), Ok(()));
        assert_eq!(property(checker.observe(0, &[vote(1, "b")], &now)), "P4");
    }

    #[test]
    fn a_vote_beside_the_own_candidacy_is_reported() {
        let mut checker = checker();
        let (undecided, me) = (Record::undecided(stamp(1)), id("m"));
        let mut now = seen(&undecided, None);
        now.voted_for = Some(&me);
        assert_eq!(checker.observe(0, &[], &now), Ok(()));
        let outputs = [joined("a"), vote(1, "a")];
        assert_eq!(property(checker.observe(0, &outputs, &now)), "P4");
    }

    fn lead<'a>(record: &'a Record, me: &'a PeerId, won: Option<&'a Campaign>) -> Seen<'a> {
        Seen {
            role: Role::Leader,
            leads_under: Some(record),
            won,
            ..seen(record, Some(me))
        }
    }

    fn campaign(electorate: &[&str], granted: &[&str]) -> Campaign {
        let set = |names: &[&str]| names.iter().map(|name| id(name)).collect();
        Campaign {
            round: 1,
            electorate: set(electorate),
            granted: set(granted),
            refused: BTreeSet::new(),
            needed: majority_threshold(electorate.len()),
        }
    }

    #[test]
    fn a_leader_without_its_majority_is_reported() {
        let (me, mine) = (id("m"), record(1, "m"));
        let outputs = [shown("m")];
        assert_eq!(
            property(checker().observe(0, &outputs, &lead(&mine, &me, None))),
            "P5"
        );
        let short = campaign(&["a", "b", "m"], &["m"]);
        assert_eq!(
            property(checker().observe(0, &outputs, &lead(&mine, &me, Some(&short)))),
            "P5"
        );
        let invented = campaign(&["a", "b", "m"], &["a", "m"]);
        assert_eq!(
            property(checker().observe(0, &outputs, &lead(&mine, &me, Some(&invented)))),
            "P5"
        );
        let alone = campaign(&["m"], &["m"]);
        assert_eq!(
            checker().observe(0, &outputs, &lead(&mine, &me, Some(&alone))),
            Ok(())
        );
    }

    #[test]
    fn an_observer_that_leads_is_reported() {
        let (me, mine, alone) = (id("m"), record(1, "m"), campaign(&["m"], &["m"]));
        let mut now = lead(&mine, &me, Some(&alone));
        now.may_lead = false;
        assert_eq!(property(checker().observe(0, &[shown("m")], &now)), "P6");
    }

    #[test]
    fn an_observer_that_votes_is_reported() {
        let (mut checker, undecided) = (checker(), Record::undecided(stamp(1)));
        let candidate = id("a");
        let mut now = seen(&undecided, None);
        now.members = vec![&candidate];
        now.may_lead = false;
        let outputs = [joined("a"), vote(1, "a")];
        assert_eq!(property(checker.observe(0, &outputs, &now)), "P6");
    }

    #[test]
    fn a_kicked_peer_that_is_linked_again_is_reported() {
        let none = Record::default();
        let left = Output::Event(Event::Left {
            peer: id("a"),
            why: LeftReason::Kicked,
            code: 0,
            bytes: Vec::new(),
        });
        let outputs = [joined("a"), left, joined("a")];
        assert_eq!(
            property(checker().observe(0, &outputs, &seen(&none, None))),
            "kick"
        );
    }

    #[test]
    fn leader_events_that_say_nothing_or_something_else_are_reported() {
        let (other, none) = (id("a"), Record::default());
        let twice = [shown("a"), shown("a")];
        assert_eq!(
            property(checker().observe(0, &twice, &seen(&none, Some(&other)))),
            "P8"
        );
        assert_eq!(
            property(checker().observe(0, &[], &seen(&none, Some(&other)))),
            "P8"
        );
        assert_eq!(
            property(checker().observe(0, &[shown("a")], &seen(&none, None))),
            "P8"
        );
    }

    #[test]
    fn a_leader_that_said_farewell_is_reported() {
        let mut checker = checker();
        checker.born(1, &id("a"));
        let (gone, none) = (id("a"), Record::default());
        let left = Output::Event(Event::Left {
            peer: id("a"),
            why: LeftReason::Left,
            code: 0,
            bytes: Vec::new(),
        });
        let outputs = [joined("a"), left, shown("a")];
        assert_eq!(
            property(checker.observe(0, &outputs, &seen(&none, Some(&gone)))),
            "P8"
        );
    }

    #[test]
    fn membership_events_that_do_not_alternate_are_reported() {
        let none = Record::default();
        let twice = [joined("a"), joined("a")];
        assert_eq!(
            property(checker().observe(0, &twice, &seen(&none, None))),
            "P8"
        );
        let left = Output::Event(Event::Left {
            peer: id("a"),
            why: LeftReason::Lost,
            code: 0,
            bytes: Vec::new(),
        });
        assert_eq!(
            property(checker().observe(0, &[left], &seen(&none, None))),
            "P8"
        );
        assert_eq!(
            property(checker().observe(0, &[joined("a")], &seen(&none, None))),
            "P8"
        );
    }
}
