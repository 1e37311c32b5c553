//! The properties of `docs/elections.md` that hold at every instant, checked after every input of a node.
//!
//! The checker sees only a node's outputs and its state (a [`Seen`]), and nothing else of the simulator: so tests can feed it a
//! wrong history by hand.

use crate::decoded;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use room_core::election::Recovery;
use room_core::election::raft::saved::Saved;
use room_core::election::raft::wire::{ElectionMessage, Stamped};
use room_core::election::record::{Epoch, Record, Stamp};
use room_core::election::rules::{Campaign, RoleKind};
use room_core::id::PeerId;
use room_core::node::{Event, LeaderChange, Left, LeftReason, LinkEnd, Output, Returned};
use room_core::quorum::Quorum;
use room_core::time::{Duration, Time};
use room_core::wire::Message;

pub mod gossip;
mod hold;
mod roster;

use roster::{Elections, Noticed, Votes};

/// How long a node remembers that a peer has left; a later leader with that id is believed.
const GONE_FOR: Duration = Duration::from_secs(10);

/// A property that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name, as in `docs/elections.md`.
    pub property: &'static str,
    /// The observed contradiction.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}

/// The visible state of a node after an input.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub record: &'a Record,
    pub leader: Option<&'a PeerId>,
    /// The silent leader whose link is kept while the voters are asked.
    pub doubted: Option<&'a PeerId>,
    /// The leader, unless it is assigned and neither linked nor vouched for yet.
    pub followed: Option<&'a PeerId>,
    pub role: RoleKind,
    pub voted_for: Option<&'a PeerId>,
    pub leads_under: Option<&'a Record>,
    pub campaign: Option<&'a Campaign>,
    pub won: Option<&'a Campaign>,
    /// The linked peers, if they may have changed, and their number.
    pub members: Option<Vec<&'a PeerId>>,
    pub members_count: usize,
    /// The linked peers that may vote, if a round was opened.
    pub eligible: Vec<&'a PeerId>,
    /// Whether this node itself may vote and lead.
    pub may_lead: bool,
}

/// One incarnation of one peer, as far as the properties need it.
#[derive(Debug)]
struct Life {
    id: PeerId,
    record: Record,
    votes: BTreeMap<Stamp, PeerId>,
    /// Votes of earlier incarnations, if they must survive.
    past: Votes,
    /// Second votes that the properties excuse.
    unseen: Vec<Stamp>,
    /// State since it reported that its state file is not the newest.
    noticed: Option<Noticed>,
    reported: Option<PeerId>,
    /// The last leader that it was notified to have lost, and its incarnation, if no member can have received from that one for a
    /// while.
    ended: Option<(PeerId, u64)>,
    /// Whether it may vote and lead.
    may_lead: bool,
    /// Incarnation of each peer at the other end of its last link.
    linked: BTreeMap<PeerId, u64>,
    /// Joined peers, with their incarnations.
    joined: BTreeMap<PeerId, u64>,
    /// Peers that it was notified to have lost for a while.
    lost: BTreeMap<PeerId, u64>,
    /// Peers that left, with their incarnations.
    sent_leave: BTreeMap<PeerId, u64>,
    /// Peers that it closed last because their rooms cannot be one, and from when on one may show the other as leader again.
    parted_from: BTreeMap<PeerId, Time>,
    /// Peers that it was notified to be kicked.
    kicked: BTreeSet<PeerId>,
    led_under: Option<Record>,
    followed: Option<(Stamp, PeerId)>,
    round: u64,
    /// Reaction to the loss of an assigned leader: a setting of its host.
    recovery: Recovery,
    hold: hold::Hold,
    /// Whether its statements survive it: the quorum is static.
    kept: bool,
    /// Its last state under gossip.
    gossip: gossip::Past,
}

/// See the module's text.
#[derive(Debug)]
pub struct Checker {
    lives: BTreeMap<usize, Life>,
    /// Voters by term and candidate, in the whole room.
    granted: BTreeMap<(Stamp, PeerId), BTreeSet<PeerId>>,
    /// Number of starts of each peer, for the rule that no member shows a leader that has left and not returned.
    births: BTreeMap<PeerId, u64>,
    /// Reaction to the loss of an assigned leader, at nodes that start from now on.
    pub recovery: Recovery,
    assigned: hold::Assigned,
    /// Whether liars invent terms and epochs: then these leap (P15).
    pub lied_to: bool,
    /// Whether messages were lost or delayed: then some members learn of a leader long after others.
    pub disturbed: bool,
    /// Time of the next observation.
    pub now: Time,
    /// A member that loses a leader this long after its process ended received from it about as late as any other member.
    pub settles: Duration,
    /// End times of processes that were not started again.
    ended: BTreeMap<PeerId, Time>,
    /// Ids that belong to two processes. This check does not cover whether a leader or a member with such an id is gone.
    pub namesakes: BTreeSet<PeerId>,
    /// Rule for a majority.
    pub quorum: Quorum,
    /// Votes of earlier processes of a place, if they must survive.
    pasts: BTreeMap<usize, Votes>,
    /// Election results, if the quorum is static.
    elections: Elections,
    /// The highest term of each epoch that any node has shown.
    highest: BTreeMap<Epoch, u64>,
    /// Number of leaderships that began, except above another record in place.
    begun: u64,
    /// The campaigns of each (epoch, term), and whether one of them succeeded.
    terms: BTreeMap<Stamp, (BTreeSet<usize>, bool)>,
}

impl Default for Checker {
    fn default() -> Self {
        Self {
            lives: BTreeMap::new(),
            granted: BTreeMap::new(),
            births: BTreeMap::new(),
            recovery: Recovery::Hold,
            assigned: hold::Assigned::default(),
            lied_to: false,
            disturbed: false,
            now: Time::ZERO,
            settles: Duration::ZERO,
            ended: BTreeMap::new(),
            namesakes: BTreeSet::new(),
            quorum: Quorum::Dynamic,
            pasts: BTreeMap::new(),
            elections: Elections::default(),
            highest: BTreeMap::new(),
            begun: 0,
            terms: BTreeMap::new(),
        }
    }
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
    /// A process started. If the quorum is static, `disk` is the state that earlier processes of its place kept: the process must
    /// follow it, and every vote that they gave.
    pub fn born(&mut self, slot: usize, id: &PeerId, disk: Option<Option<&Saved>>) {
        let past = disk.map(|_| self.pasts.remove(&slot).unwrap_or_default());
        let kept = past.is_some();
        let mut past = past.unwrap_or_default();
        past.adopt_file(id, disk.flatten());
        *self.births.entry(id.clone()).or_insert(0) += 1;
        self.ended.remove(id);
        self.lives.insert(
            slot,
            Life {
                id: id.clone(),
                record: disk
                    .flatten()
                    .map_or_else(Record::default, |saved| saved.record.clone()),
                votes: past.reported.clone(),
                past,
                unseen: Vec::new(),
                noticed: None,
                reported: None,
                ended: None,
                may_lead: true,
                linked: BTreeMap::new(),
                joined: BTreeMap::new(),
                lost: BTreeMap::new(),
                sent_leave: BTreeMap::new(),
                parted_from: BTreeMap::new(),
                kicked: BTreeSet::new(),
                led_under: None,
                followed: None,
                round: 0,
                recovery: self.recovery,
                hold: hold::Hold::default(),
                kept,
                gossip: gossip::Past::default(),
            },
        );
    }

    /// The node of `slot` is about to receive a link with that incarnation of `peer`, which may have ended since.
    pub fn linked(&mut self, slot: usize, peer: &PeerId, births: u64) {
        if let Some(life) = self.lives.get_mut(&slot) {
            life.linked.insert(peer.clone(), births);
        }
    }

    /// A leader lifted a ban: kicked peers may be linked again.
    pub fn unbanned(&mut self, peer: &PeerId) {
        for life in self.lives.values_mut() {
            life.kicked.remove(peer);
        }
    }

    /// A host allowed elections while its node knew no leader.
    pub fn released(&mut self, slot: usize) {
        if let Some(life) = self.lives.get_mut(&slot) {
            life.hold.release(&life.record);
        }
    }

    /// Whether the node of `slot` has opened no round of that number before.
    pub fn is_new_round(&self, slot: usize, round: u64) -> bool {
        self.lives
            .get(&slot)
            .is_some_and(|life| life.round != round)
    }

    /// The newest epoch that any node has ever shown.
    pub fn newest_epoch(&self) -> Epoch {
        let newest = self.highest.last_key_value();
        newest.map(|(epoch, _)| epoch.clone()).unwrap_or_default()
    }

    /// Number of leaderships so far. A leader that goes above another record in place leads on.
    pub fn leaderships_begun(&self) -> u64 {
        self.begun
    }

    /// The highest term of an epoch that any node has ever shown.
    pub fn highest_term(&self, epoch: &Epoch) -> u64 {
        self.highest.get(epoch).copied().unwrap_or(0)
    }

    /// The room begins at this term, known from an earlier process or a state file.
    pub fn begin_at(&mut self, stamp: &Stamp) {
        self.highest.insert(stamp.epoch.clone(), stamp.term);
    }

    /// Counts terms anew: a room whose members all restarted reaches old ones again.
    pub fn forget_terms(&mut self) {
        self.terms.clear();
    }

    /// Terms above `stamp` in its epoch that only one node asked for and none won (P15).
    pub fn wasted_terms(&self, stamp: &Stamp) -> Vec<u64> {
        let above = self.terms.range(stamp.clone()..);
        above
            .skip_while(|(at, _)| *at == stamp)
            .take_while(|(at, _)| at.epoch == stamp.epoch)
            .filter(|(_, (candidates, won))| candidates.len() == 1 && !won)
            .map(|(at, _)| at.term)
            .collect()
    }

    /// A process ended.
    pub fn died(&mut self, slot: usize) {
        let Some(life) = self.lives.remove(&slot) else {
            return;
        };
        self.ended.insert(life.id, self.now);
        if life.kept {
            self.pasts.insert(slot, life.past);
        }
    }

    /// A node's outputs and state after one input.
    pub fn observe(&mut self, slot: usize, outputs: &[Output], seen: &Seen<'_>) -> Checked {
        if let Some(life) = self.lives.get_mut(&slot) {
            life.keeps_to_its_file()?;
            life.may_lead = seen.may_lead;
        }
        for output in outputs {
            self.output(slot, output)?;
            self.excuse(slot);
            ensure(seen.may_lead || !is_vote(output), "P6", || {
                format!("slot {slot} may not lead and votes: {output:?}")
            })?;
        }
        self.state(slot, seen)
    }

    /// The leader that this node shows, and its incarnation, if that process ended so long ago that no member can know better. A
    /// newcomer that was never linked with it only passes on the others' reports.
    fn ended_leader(&self, slot: usize) -> Option<(PeerId, u64)> {
        let life = self.lives.get(&slot)?;
        let leader = life.reported.as_ref()?;
        let ended = *self.ended.get(leader)?;
        let births = *self.births.get(leader)?;
        life.linked
            .get(leader)
            .filter(|linked| **linked == births)?;
        (self.now >= ended + self.settles).then(|| (leader.clone(), births))
    }

    /// Peers that parted from the node of `slot` because their rooms could not be one, and that it may show again: meanwhile the
    /// rooms may merge, and one of these peers may lead.
    fn parted_from(&self, slot: usize) -> BTreeSet<PeerId> {
        let Some(life) = self.lives.get(&slot) else {
            return BTreeSet::new();
        };
        let is_over = |until: Option<&Time>| until.is_some_and(|until| self.now >= *until);
        let parted = self.lives.values().filter(|other| {
            is_over(other.parted_from.get(&life.id)) || is_over(life.parted_from.get(&other.id))
        });
        parted.map(|other| other.id.clone()).collect()
    }

    /// Notes second votes of a term, given while no member that knew of the first was linked.
    fn excuse(&mut self, slot: usize) {
        if let Some(life) = self.lives.get_mut(&slot) {
            let unseen = std::mem::take(&mut life.unseen);
            self.elections.excuse(&life.id, unseen);
        }
    }

    fn output(&mut self, slot: usize, output: &Output) -> Checked {
        let ended = self.ended_leader(slot);
        let parted = match output {
            Output::Event(Event::LeaderChanged(_)) => self.parted_from(slot),
            _ => BTreeSet::new(),
        };
        let Some(life) = self.lives.get_mut(&slot) else {
            return Ok(());
        };
        if let Some(roster) = self.quorum.roster() {
            roster::speaks(roster, &life.id, output)?;
        }
        match output {
            Output::Transmit { to, envelope, .. } => {
                if let Some(stamp) = decoded::stamp(&envelope.message) {
                    life.past.note(&stamp);
                }
                if let Some(Stamped { stamp, message, .. }) = decoded::voting(&envelope.message) {
                    life.speaks_as_a_voter(&stamp, &message)?;
                    if let ElectionMessage::VoteResponse { granted: true, .. } = message {
                        let voters = self.granted.entry((stamp.clone(), to.clone()));
                        voters.or_default().insert(life.id.clone());
                        life.vote(&stamp, to)?;
                        life.past.reported.insert(stamp.clone(), to.clone());
                    }
                    if let ElectionMessage::VoteRequest { .. } = message {
                        life.past.reported.insert(stamp, life.id.clone());
                    }
                }
                ensure(
                    life.joined.contains_key(to) || is_leave(&envelope.message),
                    "contract",
                    || {
                        format!(
                            "{} sends {:?} to {to}, who is no member",
                            life.id, envelope.message
                        )
                    },
                )?;
            }
            Output::Close {
                peer,
                why: LinkEnd::Moved(_),
            } => {
                life.parted_from.insert(peer.clone(), self.now + GONE_FOR);
            }
            Output::Close {
                peer,
                why: LinkEnd::OtherRoom,
            } => {
                life.parted_from.insert(peer.clone(), self.now);
            }
            Output::Event(Event::Joined(peer)) => {
                life.parted_from.remove(peer);
                life.sent_leave.remove(peer);
                life.stays_out(peer)?;
                let births = life.linked.get(peer).copied().unwrap_or(0);
                let known = life.joined.insert(peer.clone(), births);
                ensure(
                    known.is_none() && !life.lost.contains_key(peer),
                    "P8",
                    || format!("{} is notified twice that {peer} joined", life.id),
                )?;
            }
            Output::Event(Event::Reconnecting(peer)) => {
                let births = life.joined.remove(peer);
                ensure(births.is_some(), "P8", || {
                    format!(
                        "{} is notified that {peer} is lost, who was not linked",
                        life.id
                    )
                })?;
                life.lost.insert(peer.clone(), births.unwrap_or(0));
            }
            Output::Event(Event::Returned(Returned { peer, .. })) => {
                let births = life.lost.remove(peer);
                life.stays_out(peer)?;
                ensure(births == life.linked.get(peer).copied(), "P8", || {
                    format!(
                        "{} is notified that {peer} is back, who was not lost",
                        life.id
                    )
                })?;
                life.joined.insert(peer.clone(), births.unwrap_or(0));
            }
            Output::Event(Event::Left(Left { peer, why, .. })) => {
                let births = life.joined.remove(peer).or_else(|| life.lost.remove(peer));
                ensure(births.is_some(), "P8", || {
                    format!(
                        "{} is notified that {peer} left, who had not joined",
                        life.id
                    )
                })?;
                if *why == LeftReason::Kicked {
                    life.kicked.insert(peer.clone());
                }
                if let (LeftReason::Left, Some(births)) = (why, births) {
                    life.sent_leave.insert(peer.clone(), births);
                }
            }
            Output::Event(Event::BanDropped { peer, .. }) => {
                life.kicked.remove(peer);
            }
            Output::Event(Event::LeaderChanged(LeaderChange { new: leader, .. })) => {
                ensure(life.reported != *leader, "P8", || {
                    format!("{} receives {leader:?} twice in a row", life.id)
                })?;
                if let Some(leader) = leader {
                    let gone = !life.joined.contains_key(leader)
                        && life
                            .sent_leave
                            .get(leader)
                            .is_some_and(|births| self.births.get(leader) == Some(births))
                        && !parted.contains(leader);
                    let one_of_two = self.namesakes.contains(leader);
                    // Members that moved to the room of its namesake did not leave.
                    let was_given_up = self.namesakes.contains(&life.id);
                    ensure(!gone || one_of_two || was_given_up, "P8", || {
                        format!("{} is notified of leader {leader}, who left", life.id)
                    })?;
                    let births = self.births.get(leader);
                    let same_life =
                        |(lost, life): &(PeerId, u64)| lost == leader && births == Some(life);
                    let again = life.ended.as_ref().is_some_and(same_life)
                        && self.ended.contains_key(leader);
                    let excused = self.disturbed || life.may_lead || one_of_two;
                    ensure(excused || !again, "P8", || {
                        format!(
                            "{} is notified again of leader {leader}, whose process ended",
                            life.id
                        )
                    })?;
                } else {
                    life.ended = ended;
                }
                life.reported.clone_from(leader);
            }
            _ => {}
        }
        Ok(())
    }

    fn state(&mut self, slot: usize, seen: &Seen<'_>) -> Checked {
        self.note_hold(slot, seen);
        let Some(life) = self.lives.get_mut(&slot) else {
            return Ok(());
        };
        let id = &life.id;
        if let Some(roster) = self.quorum.roster() {
            roster::shows(roster, id, seen)?;
        }
        let older_epoch = seen.record.stamp.epoch < life.record.stamp.epoch;
        let falls_to_election = older_epoch && !seen.record.assigned;
        ensure(!falls_to_election, "P7", || {
            format!(
                "{id} left {:?} for an older epoch: {:?}",
                life.record, seen.record
            )
        })?;
        ensure(*seen.record >= life.record, "P3", || {
            format!(
                "the record of {id} fell from {:?} to {:?}",
                life.record, seen.record
            )
        })?;
        ensure(life.reported.as_ref() == seen.leader, "P8", || {
            format!(
                "{id} received {:?} and shows {:?}",
                life.reported, seen.leader
            )
        })?;
        let same = match &seen.members {
            Some(members) => life.joined.keys().eq(members.iter().copied()),
            None => life.joined.len() == seen.members_count,
        };
        ensure(same, "P8", || {
            format!("{id} received {:?} and has {:?}", life.joined, seen.members)
        })?;
        ensure(
            (seen.role == RoleKind::Leader) == seen.leads_under.is_some()
                && (seen.role == RoleKind::Leader) == (seen.leader == Some(id)),
            "P8",
            || {
                format!(
                    "{id} is {:?}, leads under {:?} and shows {:?}",
                    seen.role, seen.leads_under, seen.leader
                )
            },
        )?;
        let idle = !seen.may_lead && matches!(seen.role, RoleKind::Leader | RoleKind::Candidate);
        ensure(!idle, "P6", || {
            format!("{id} may not lead and is {:?}", seen.role)
        })?;
        life.holds(seen)?;
        if let Some(voted_for) = seen.voted_for {
            life.holds_vote(seen, voted_for)?;
            life.lost_before_voting(seen, voted_for)?;
        }
        life.follows(seen)?;
        life.electorate(seen, &self.quorum)?;
        if seen.leads_under != life.led_under.as_ref() {
            if let Some(record) = seen.leads_under {
                self.begun += u64::from(life.led_under.is_none());
                let by_votes = life.elected(record, seen.won, &self.granted, &self.quorum)?;
                if by_votes && life.kept {
                    self.elections
                        .excuse(&life.id, std::mem::take(&mut life.unseen));
                    self.elections.one(record, seen.won)?;
                }
            }
            life.led_under = seen.leads_under.cloned();
        }
        if life.record == *seen.record {
            return Ok(());
        }
        life.record = seen.record.clone();
        self.term_shown(slot, seen)
    }

    /// P15: no term is skipped, whichever node shows it first.
    fn term_shown(&mut self, slot: usize, seen: &Seen<'_>) -> Checked {
        let Stamp { epoch, term } = &seen.record.stamp;
        // The node that opens an epoch chooses its first term; after a restart it can open the same epoch again.
        let opens = epoch.assigner.is_some()
            && epoch.assigner.as_ref() == self.lives.get(&slot).map(|life| &life.id);
        let highest = self.highest_term(epoch);
        ensure(self.lied_to || opens || *term <= highest + 1, "P15", || {
            format!("term {term} follows term {highest} in {epoch:?}")
        })?;
        let highest = self.highest.entry(epoch.clone()).or_insert(0);
        *highest = (*term).max(*highest);
        let (candidates, won) = self.terms.entry(seen.record.stamp.clone()).or_default();
        if seen.campaign.is_some() {
            candidates.insert(slot);
        }
        *won |= seen.record.leader.is_some();
        Ok(())
    }
}

impl Life {
    /// P4: at most one candidate per (epoch, term).
    fn vote(&mut self, stamp: &Stamp, candidate: &PeerId) -> Checked {
        let me = *candidate == self.id;
        ensure(me || !self.past.spent.contains(stamp), "P4", || {
            format!("{} took its vote of {stamp:?} back", self.id)
        })?;
        let held = self.votes.get(stamp) == Some(candidate);
        if let Some(before) = self.past.forgotten.get(stamp)
            && before != candidate
            && !held
        {
            // Its own candidacy in a term that no other member learned of: no vote was given there, so the vote of that term is
            // free.
            let stood = *before == self.id;
            ensure(stood || self.noticed.is_none(), "P4", || {
                format!(
                    "{} voted for {before}, forgot it, noticed, and voted for {candidate} in {stamp:?}",
                    self.id
                )
            })?;
            if self.noticed.is_none() {
                self.unseen.push(stamp.clone());
            }
        }
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

    /// A vote that the node holds. A node that may have given the vote earlier keeps it and does not stand. A node that stood
    /// first, and gave up, holds its own vote, too.
    fn holds_vote(&mut self, seen: &Seen<'_>, voted_for: &PeerId) -> Checked {
        let stamp = &seen.record.stamp;
        let stands = matches!(seen.role, RoleKind::Candidate | RoleKind::Leader);
        let stood = self.votes.get(stamp) == Some(&self.id);
        if self.noticed.is_some() && *voted_for == self.id && !stands && !stood {
            self.past.spent.insert(stamp.clone());
        }
        if self.past.spent.contains(stamp) && *voted_for == self.id {
            return ensure(!stands, "P4", || {
                format!(
                    "{} stands in {stamp:?}, whose vote it may have given",
                    self.id
                )
            });
        }
        self.vote(stamp, voted_for)
    }

    /// G17: a node loses a leader in doubt no later than it votes for another one.
    fn lost_before_voting(&self, seen: &Seen<'_>, voted_for: &PeerId) -> Checked {
        let undecided = seen.record.leader.is_none();
        let shows = seen.doubted.is_some() && seen.doubted == seen.leader;
        ensure(!(undecided && shows), "G17", || {
            format!(
                "{} shows {:?}, which it doubts, after its vote for {voted_for} in {:?}",
                self.id, seen.leader, seen.record.stamp
            )
        })
    }

    /// A kicked peer is not linked again where the kick is known.
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

    /// P5, P6: a round is open to the linked voters of its beginning, or to the roster, and to no other node.
    fn electorate(&mut self, seen: &Seen<'_>, quorum: &Quorum) -> Checked {
        let Some(campaign) = seen.campaign else {
            return Ok(());
        };
        if campaign.round == self.round {
            return Ok(());
        }
        self.round = campaign.round;
        let voters: BTreeSet<&PeerId> = match quorum.roster() {
            Some(roster) => roster.voters().collect(),
            None => seen.eligible.iter().copied().chain([&self.id]).collect(),
        };
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

    /// P5: a leadership is assigned, issued by the leader itself, or elected. Returns whether it is elected.
    fn elected(
        &self,
        record: &Record,
        won: Option<&Campaign>,
        granted: &BTreeMap<(Stamp, PeerId), BTreeSet<PeerId>>,
        quorum: &Quorum,
    ) -> Result<bool, Violation> {
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
        if (record.assigned || issued) && !quorum.is_static() {
            return Ok(false);
        }
        let Some(won) = won else {
            return Err(Violation {
                property: "P5",
                text: format!("{id} leads under {record:?} without votes"),
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
        let threshold = quorum.votes_needed(won.electorate.len());
        ensure(
            won.granted.is_subset(&won.electorate) && won.granted.len() >= threshold,
            "P5",
            || format!("{id} leads with {:?} of {:?}", won.granted, won.electorate),
        )?;
        if let Some(roster) = quorum.roster() {
            roster::elected(roster, record, won)?;
        }
        Ok(true)
    }
}

fn is_vote(output: &Output) -> bool {
    let Output::Transmit { envelope, .. } = output else {
        return false;
    };
    matches!(
        decoded::election(&envelope.message),
        Some(
            ElectionMessage::VoteResponse { granted: true, .. }
                | ElectionMessage::PreVoteResponse { granted: true, .. }
        )
    )
}

/// The answer to a leave goes to a peer that leaves the membership in the same step.
fn is_leave(message: &Message) -> bool {
    matches!(message, Message::LeaveAck | Message::Leave { .. })
}

#[cfg(test)]
mod tests;
