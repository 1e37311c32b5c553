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
pub(crate) struct Violation {
    /// Its name, as in `docs/elections.md`.
    pub(crate) property: &'static str,
    /// What was seen instead.
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}

/// What a node shows of itself after an input.
#[derive(Debug, Clone)]
pub(crate) struct Seen<'a> {
    pub(crate) record: &'a Record,
    pub(crate) leader: Option<&'a PeerId>,
    pub(crate) role: Role,
    pub(crate) voted_for: Option<&'a PeerId>,
    pub(crate) leads_under: Option<&'a Record>,
    pub(crate) campaign: Option<&'a Campaign>,
    pub(crate) won: Option<&'a Campaign>,
    pub(crate) members: Vec<&'a PeerId>,
    /// The linked peers that may vote.
    pub(crate) eligible: Vec<&'a PeerId>,
    /// Whether this node itself may vote and lead.
    pub(crate) may_lead: bool,
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
    /// Who said farewell, and in which of its lives.
    said_farewell: BTreeMap<PeerId, u64>,
    led_under: Option<Record>,
    followed: Option<(Stamp, PeerId)>,
    round: u64,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Checker {
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
    pub(crate) fn born(&mut self, slot: usize, id: &PeerId) {
        *self.births.entry(id.clone()).or_insert(0) += 1;
        self.lives.insert(
            slot,
            Life {
                id: id.clone(),
                record: Record::default(),
                votes: BTreeMap::new(),
                told: None,
                joined: BTreeMap::new(),
                said_farewell: BTreeMap::new(),
                led_under: None,
                followed: None,
                round: 0,
            },
        );
    }

    /// A process ended.
    pub(crate) fn died(&mut self, slot: usize) {
        self.lives.remove(&slot);
    }

    /// What a node did and shows after one input.
    pub(crate) fn observe(&mut self, slot: usize, outputs: &[Output], seen: &Seen<'_>) -> Checked {
        for output in outputs {
            self.output(slot, output)?;
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
                ensure(life.joined.contains_key(to) || farewell(&envelope.message), "contract", || {
                    format!("{} sends {:?} to {to}, who is no member", life.id, envelope.message)
                })?;
            }
            Output::Event(Event::Joined(peer)) => {
                life.said_farewell.remove(peer);
                let births = self.births.get(peer).copied().unwrap_or(0);
                let known = life.joined.insert(peer.clone(), births);
                ensure(known.is_none(), "P8", || {
                    format!("{} hears twice that {peer} joined", life.id)
                })?;
            }
            Output::Event(Event::Left { peer, why }) => {
                let births = life.joined.remove(peer);
                ensure(births.is_some(), "P8", || {
                    format!("{} hears that {peer} left, who had not joined", life.id)
                })?;
                if let (LeftReason::Left, Some(births)) = (why, births) {
                    life.said_farewell.insert(peer.clone(), births);
                }
            }
            Output::Event(Event::LeaderChanged(leader)) => {
                ensure(life.told != *leader, "P8", || {
                    format!("{} is told {leader:?} twice in a row", life.id)
                })?;
                if let Some(leader) = leader {
                    let gone = !life.joined.contains_key(leader)
                        && life.said_farewell.get(leader).is_some_and(|births| {
                            self.births.get(leader) == Some(births)
                        });
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
            format!("the record of {id} fell from {:?} to {:?}", life.record, seen.record)
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
            || format!("{id} is {:?}, leads under {:?} and shows {:?}", seen.role, seen.leads_under, seen.leader),
        )?;
        let idle = !seen.may_lead && matches!(seen.role, Role::Leader | Role::Candidate);
        ensure(!idle, "P6", || format!("{id} may not lead and is {:?}", seen.role))?;
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
        let given = self.votes.entry(stamp.clone()).or_insert_with(|| candidate.clone());
        ensure(given == candidate, "P4", || {
            format!("{} voted for {given} and for {candidate} in {stamp:?}", self.id)
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
            ensure(*stamp != seen.record.stamp || before <= leader, "P2", || {
                format!("{} followed {before} and then {leader} in {stamp:?}", self.id)
            })?;
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
        ensure(campaign.electorate.iter().eq(voters.iter().copied()), "P5", || {
            format!("{} asks {:?}; its voters are {voters:?}", self.id, campaign.electorate)
        })
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
            return ensure(false, "P5", || format!("{id} leads under {record:?} without votes"));
        };
        let voters = granted.get(&(record.stamp.clone(), id.clone()));
        let honest = won
            .granted
            .iter()
            .all(|voter| voter == id || voters.is_some_and(|voters| voters.contains(voter)));
        ensure(honest, "P5", || {
            format!("{id} counted votes of {:?}; given were {voters:?}", won.granted)
        })?;
        let threshold = majority_threshold(won.electorate.len());
        ensure(
            won.granted.is_subset(&won.electorate) && won.granted.len() >= threshold,
            "P5",
            || format!("{id} leads with {:?} of {:?}", won.granted, won.electorate),
        )
    }
}

/// The answer to a farewell goes to a peer that is leaving the membership in the same step.
fn farewell(message: &Message) -> bool {
    matches!(message, Message::LeaveAck | Message::Leave { .. })
}
