//! Lies about other members, and the checks that no honest member loses an honest one by them.
//!
//! A liar that leads may kick, as every leader may. And if every member may call `SetLeader`, each member's reports of kicks
//! count for up to sixteen others (`docs/entering.md`, "Members"). In these two cases, and in no other, an honest member is put
//! out, and counts as kicked from then on.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use room_core::election::raft::wire::{ElectionMessage, Stamped};
use room_core::election::record::{Epoch, Record, Stamp};
use room_core::id::{Fingerprint, Incarnation, PeerId};
use room_core::node::{
    AdmissionRefusal, Conflict, EndReason, Event, Input, LeaderChange, Left, LeftReason, LinkEnd,
    Node, Output,
};
use room_core::time::{Duration, Time};
use room_core::wire::{
    Authority, Ban, Candidate, Envelope, Message, PeerEntry, RoomRules, Verdict,
};

use crate::chaos::Run;
use crate::world::World;

/// A member that was heard from within this time is not presumed dead when its id is disputed.
const RECENT: Duration = Duration::from_millis(400);
/// Time after a host's request for a link with a leader in which that leader's bans can move a member.
const INVITED_FOR: Duration = Duration::from_secs(10);

/// A member may not have sent a heartbeat since it followed its last leader this long ago.
const BEFORE_A_HEARTBEAT: Duration = Duration::from_secs(1);

/// A lie about a third member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slander {
    /// It is kicked, in the leader's message.
    Kick,
    /// Leaders have kicked it.
    RoomRules,
    /// It has another key, or another address.
    Peers,
    /// The leader admits it, with another key or address.
    Admits,
    /// A member with another key wants to enter under its name.
    Dispute,
    /// The room rejects it.
    Answers,
    /// The leader transfers its leadership to it; the liar may no longer lead and follows it.
    HandsOver,
    /// It is assigned as leader.
    Assigns,
    /// A leader's message under its record, and one in its name.
    Data,
}

/// All kinds of slander.
pub const SLANDERS: [Slander; 9] = [
    Slander::Kick,
    Slander::RoomRules,
    Slander::Peers,
    Slander::Admits,
    Slander::Dispute,
    Slander::Answers,
    Slander::HandsOver,
    Slander::Assigns,
    Slander::Data,
];

/// Records of the lies, by place.
#[derive(Debug, Default)]
pub struct Slandered {
    /// By member: liars whose lists of kicked members name it.
    in_rules: BTreeMap<usize, BTreeSet<usize>>,
    /// Members that a liar reported as kicked, to a member that considers the liar its leader.
    kicked: BTreeSet<usize>,
    /// Members that a liar reported as kicked, to any member.
    named: BTreeSet<usize>,
    /// Members whose id a liar disputed.
    disputed: BTreeSet<usize>,
    /// Members that a liar introduced with another key.
    renamed: BTreeSet<usize>,
    /// Liars that an honest member considered its leader at some time.
    believed: BTreeSet<usize>,
    /// The leader that each member followed last and no longer does, and when it stopped.
    was_followed: BTreeMap<usize, (usize, Time)>,
    /// Members that left, in any incarnation.
    pub(crate) left: BTreeSet<usize>,
}

impl Slandered {
    /// Whether a liar reported that it is kicked.
    pub(crate) fn names(&self, slot: usize) -> bool {
        self.named.contains(&slot)
    }
}

/// Lies about others.
impl Run<'_> {
    pub(crate) fn slander(&mut self, liar: usize, victim: usize, about: usize, words: Slander) {
        let (Some(me), Some(them), Some(its)) = (
            self.world.node(liar),
            self.world.node(victim),
            self.world.slots[about].process.as_ref(),
        ) else {
            return;
        };
        let kicks = matches!(words, Slander::Kick | Slander::RoomRules);
        if liar == victim || liar == about || (kicks && !self.can_spare(about)) {
            return;
        }
        let own = them.record().stamp.clone();
        let lie = Lie {
            me: me.id().clone(),
            incarnation: me.incarnation(),
            its: self.world.slots[about].id.clone(),
            address: self.world.slots[liar].address,
            key: its.key,
            its_incarnation: its.node.incarnation(),
            stamp: own.clone(),
        };
        match words {
            Slander::RoomRules => {
                let in_rules = &mut self.world.slandered.in_rules;
                in_rules.entry(about).or_default().insert(liar);
            }
            Slander::Peers => {
                self.world.slandered.renamed.insert(about);
            }
            Slander::Dispute => {
                self.world.slandered.disputed.insert(about);
            }
            _ => {}
        }
        if kicks {
            self.world.slandered.named.insert(about);
        }
        self.world.sometimes.slanders += 1;
        if words == Slander::Data {
            self.world.lie_as_leader(liar, victim, about);
        }
        for message in lie.messages(words, victim == about) {
            let envelope = Envelope {
                incarnation: lie.incarnation,
                message,
            };
            self.world.forge(liar, victim, envelope);
        }
    }
}

struct Lie {
    me: PeerId,
    incarnation: Incarnation,
    its: PeerId,
    address: std::net::SocketAddr,
    key: Fingerprint,
    its_incarnation: Incarnation,
    stamp: Stamp,
}

impl Lie {
    fn elects(&self, message: ElectionMessage) -> Message {
        Message::from(Stamped::new(self.stamp.clone(), message))
    }

    fn messages(&self, words: Slander, to_itself: bool) -> Vec<Message> {
        let other_key = Fingerprint([0xee; 32]);
        let entry = |key, address| PeerEntry {
            id: self.its.clone(),
            key,
            addresses: vec![address],
        };
        let nowhere = std::net::SocketAddr::from(([10, 9, 9, 9], 9));
        match words {
            Slander::Kick => vec![Message::Kicked {
                peer: self.its.clone(),
                key: self.key,
                code: 9,
                bytes: b"a lie".to_vec(),
                ban: Some(Default::default()),
            }],
            Slander::RoomRules => vec![Message::RoomRules(RoomRules {
                version: (Stamp::default(), 0),
                set_by: None,
                max_peers: 0,
                bans: vec![Ban::new(self.its.clone(), self.key)],
            })],
            Slander::Peers => vec![Message::PeerList(vec![
                entry(other_key, self.address),
                entry(self.key, nowhere),
                PeerEntry {
                    id: self.me.clone(),
                    ..entry(self.key, self.address)
                },
            ])],
            Slander::Admits => vec![Message::Admitted {
                entry: entry(other_key, nowhere),
                incarnation: Incarnation {
                    started_us: u64::MAX,
                    random: 0,
                },
            }],
            Slander::Dispute => {
                let ask = |request, key| Message::JoinRequest {
                    request,
                    candidate: Candidate {
                        entry: entry(key, self.address),
                        incarnation: Incarnation {
                            started_us: self.its_incarnation.started_us.saturating_add(1),
                            random: 7,
                        },
                        payload: Vec::new(),
                    },
                };
                vec![ask(1, other_key), ask(2, self.key)]
            }
            Slander::Answers => {
                let refuses = |request| Message::JoinAnswer {
                    request,
                    verdict: Verdict::Rejected {
                        reason: 9,
                        bytes: Vec::new(),
                    },
                };
                (1..=4).map(refuses).collect()
            }
            Slander::HandsOver => vec![
                self.elects(ElectionMessage::TimeoutNow {
                    target: self.its.clone(),
                }),
                Message::Standing {
                    eligible: false,
                    priority: i32::MAX,
                    successor: Some(self.its.clone()),
                },
            ],
            Slander::Assigns => {
                let epoch = Epoch {
                    assigner_key: None,
                    override_seq: self.stamp.epoch.override_seq.saturating_add(1),
                    assigner: Some(self.me.clone()),
                };
                let record = Record {
                    leader_key: Some(self.key),
                    stamp: Stamp { epoch, term: 1 },
                    leader: Some(self.its.clone()),
                    assigned: true,
                };
                vec![self.elects(ElectionMessage::LeaderAssign {
                    record,
                    seq: u64::from(to_itself) + 1,
                })]
            }
            Slander::Data => Vec::new(),
        }
    }
}

/// Properties.
impl World {
    pub(crate) fn is_honest(&self, peer: &PeerId) -> bool {
        self.slot_of(peer)
            .is_some_and(|slot| !self.liars.contains(&slot))
    }

    /// Whether lies, or its leader, may have put it out.
    fn may_be_out(&self, slot: usize) -> bool {
        let anyone = self.settings.authority == Authority::Anyone;
        let by_list = self.slandered.in_rules.get(&slot).is_some_and(|liars| {
            let counts = |liar| anyone || self.slandered.believed.contains(liar);
            liars.iter().any(counts)
        });
        self.slots[slot].kicked || by_list || self.slandered.kicked.contains(&slot)
    }

    /// Whether a member follows a leader that lies may have put out for others, as when a liar that led has banned it at one
    /// member alone.
    fn follows_one_that_may_be_out(&self, slot: usize) -> bool {
        let leader = self.node(slot).and_then(Node::leader);
        let leader = leader.and_then(|leader| self.slot_of(leader));
        let last = self.slandered.was_followed.get(&slot);
        let last = last.filter(|(_, at)| self.now.since(*at) < BEFORE_A_HEARTBEAT);
        let mut leaders = leader.into_iter().chain(last.map(|(leader, _)| *leader));
        leaders.any(|leader| self.may_be_out(leader))
    }

    /// A liar's message is about to reach an honest member.
    pub(crate) fn note_slander(&mut self, slot: usize, input: &Input) {
        let Input::Message { from, envelope } = input else {
            return;
        };
        if self.is_honest(from) || self.liars.contains(&slot) {
            return;
        }
        let Message::Kicked { peer, .. } = &envelope.message else {
            return;
        };
        let believes = self.node(slot).and_then(Node::leader) == Some(from);
        if let Some(victim) = self.slot_of(peer).filter(|_| believes) {
            self.slandered.kicked.insert(victim);
            self.is_put_out(victim);
        }
    }

    /// Leaders that a node shows now, or showed for a moment.
    pub(crate) fn note_belief(&mut self, slot: usize, outputs: &[Output]) {
        if self.liars.is_empty() || self.liars.contains(&slot) {
            return;
        }
        for output in outputs {
            let Output::Event(Event::LeaderChanged(LeaderChange { old, new, .. })) = output else {
                continue;
            };
            if let Some(old) = old.as_ref().and_then(|old| self.slot_of(old)) {
                self.slandered.was_followed.insert(slot, (old, self.now));
            }
            let new = new.as_ref().and_then(|new| self.slot_of(new));
            if let Some(liar) = new.filter(|slot| self.liars.contains(slot)) {
                self.slandered.believed.insert(liar);
            }
        }
    }

    /// The harm in an honest member's output, if any.
    pub(crate) fn harm(&mut self, slot: usize, output: &Output) -> Option<String> {
        let me = self.slots[slot].id.clone();
        match output {
            Output::Close { peer, why } if self.is_honest(peer) => {
                let other = self.slot_of(peer)?;
                let rightly = match why {
                    LinkEnd::Silent => true,
                    LinkEnd::Kicked => self.may_be_out(other),
                    LinkEnd::RoomEnded => self.may_be_out(slot),
                    LinkEnd::Replaced => !self.was_received_recently(other, slot),
                    LinkEnd::Violation(_) | LinkEnd::Disconnected | LinkEnd::Closed => false,
                    LinkEnd::OtherRoom => self.follows_one_that_may_be_out(other),
                    // A liar that leads binds ids and bans, and a host that dials a liar joins the liar's leader.
                    LinkEnd::Moved(Conflict::DuplicateId) => {
                        let slandered = &self.slandered;
                        let is_led_to =
                            slandered.renamed.contains(&other) && !slandered.believed.is_empty();
                        is_led_to || self.is_session_with_earlier_life(other, slot)
                    }
                    LinkEnd::Moved(Conflict::Banned) => {
                        let asked_for = |liar: &usize| {
                            let invited_at = self.invited.get(&(slot, *liar));
                            invited_at.is_some_and(|at| self.now.since(*at) < INVITED_FOR)
                        };
                        let rightly = self.may_be_out(other) || self.liars.iter().any(asked_for);
                        self.is_put_out(other);
                        rightly
                    }
                };
                (!rightly).then(|| format!("{me} closes its link with {peer}: {why:?}"))
            }
            Output::Event(Event::Left(Left { peer, why, .. })) if self.is_honest(peer) => {
                let other = self.slot_of(peer)?;
                let rightly = match why {
                    LeftReason::Left => {
                        self.slandered.left.contains(&other)
                            || self.may_be_out(slot)
                            || self.follows_one_that_may_be_out(other)
                            || self.follows_one_that_may_be_out(slot)
                    }
                    LeftReason::Kicked => {
                        let rightly = self.may_be_out(other);
                        self.is_put_out(other);
                        rightly
                    }
                    LeftReason::RoomEnded => self.may_be_out(other) || self.may_be_out(slot),
                    LeftReason::Lost => self.was_lost_for_long(slot, peer),
                    LeftReason::GaveUp => {
                        let restarted = self.slots[other].life > 1;
                        let out = self.may_be_out(other) || self.may_be_out(slot);
                        restarted || self.settings.hosts.decide || out
                    }
                    LeftReason::Replaced => true,
                    LeftReason::Violation | LeftReason::Disconnected => false,
                };
                (!rightly).then(|| format!("{me} gives up {peer}: {why:?}"))
            }
            Output::Event(Event::RoomEnded { why, .. }) => {
                let rightly = *why == EndReason::Kicked && self.may_be_out(slot);
                self.is_put_out(slot);
                (!rightly).then(|| format!("the room is over for {me}: {why:?}"))
            }
            _ => None,
        }
    }

    /// A member that lies put out stays out.
    fn is_put_out(&mut self, slot: usize) {
        let in_rules = self.slandered.in_rules.contains_key(&slot);
        let lied_about = in_rules || self.slandered.kicked.contains(&slot);
        if lied_about && !std::mem::replace(&mut self.slots[slot].kicked, true) {
            self.sometimes.put_out_by_liars += 1;
        }
    }

    fn was_received_recently(&self, from: usize, to: usize) -> bool {
        self.slandered.disputed.contains(&from)
            && self.is_session_with_present_life(from, to)
            && self
                .last_arrival(from, to)
                .is_some_and(|at| self.now.since(at) < RECENT)
    }

    /// Whether a member was lost for as long as its place is kept, or itself reports that it gave up the session.
    fn was_lost_for_long(&self, slot: usize, peer: &PeerId) -> bool {
        let lost = |(_, event): &&(Time, Event)| *event == Event::Reconnecting(peer.clone());
        let lost = self.slots[slot].events.iter().rev().find(lost);
        let hold = self.settings.member_hold * 9 / 10;
        self.settings.hosts.asked || lost.is_some_and(|(at, _)| self.now.since(*at) >= hold)
    }

    /// An honest member does not keep another honest one out.
    pub(crate) fn check_refusal(&mut self, slot: usize, refusal: &AdmissionRefusal) {
        if self.liars.is_empty() || self.liars.contains(&slot) {
            return;
        }
        let (peer, wrong) = match refusal {
            AdmissionRefusal::Banned(peer) => (peer, true),
            AdmissionRefusal::Kicked(peer) => {
                let Some(other) = self.slot_of(peer) else {
                    return;
                };
                let wrong = !self.may_be_out(other);
                // The refusing member may never have been linked to it.
                self.is_put_out(other);
                (peer, wrong)
            }
            _ => return,
        };
        if wrong && self.is_honest(peer) {
            let text = format!("{} keeps {peer} out: {refusal}", self.slots[slot].id);
            self.violate("liars", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    /// Two honest members and a liar; returns whether the first one's output is harm done by the liar.
    fn is_harm(
        authority: Authority,
        lie: impl Fn(&mut World),
        output: impl Fn(&World) -> Output,
    ) -> bool {
        let settings = Settings {
            authority,
            ..Settings::default()
        };
        let mut world = World::new(1, 3, settings, Trace::off());
        world.liars.insert(2);
        for slot in 0..3 {
            world.start(slot);
        }
        lie(&mut world);
        let output = output(&world);
        world.harm(0, &output).is_some()
    }

    fn left(why: LeftReason) -> impl Fn(&World) -> Output {
        move |world| Output::Event(Event::Left(Left::new(world.slots[1].id.clone(), why)))
    }

    fn closed(why: LinkEnd) -> impl Fn(&World) -> Output {
        move |world| Output::Close {
            peer: world.slots[1].id.clone(),
            why,
        }
    }

    #[test]
    fn ending_an_honest_session_without_a_reason_of_its_own_is_harm() {
        let nothing = |_: &mut World| {};
        let harm = |output: &dyn Fn(&World) -> Output| is_harm(Authority::Anyone, nothing, output);
        for why in [
            LeftReason::Left,
            LeftReason::Lost,
            LeftReason::Kicked,
            LeftReason::RoomEnded,
            LeftReason::GaveUp,
            LeftReason::Violation,
            LeftReason::Disconnected,
        ] {
            assert!(harm(&left(why)), "{why:?}");
        }
        assert!(!harm(&left(LeftReason::Replaced)));
        for why in [
            LinkEnd::Kicked,
            LinkEnd::RoomEnded,
            LinkEnd::Closed,
            LinkEnd::Disconnected,
            LinkEnd::Violation(""),
            LinkEnd::Moved(Conflict::DuplicateId),
            LinkEnd::Moved(Conflict::Banned),
            LinkEnd::OtherRoom,
        ] {
            assert!(harm(&closed(why)), "{why:?}");
        }
        assert!(!harm(&closed(LinkEnd::Silent)));
        let ended = |_: &World| {
            Output::Event(Event::RoomEnded {
                why: EndReason::Kicked,
                code: 0,
                bytes: Vec::new(),
            })
        };
        assert!(harm(&ended));
    }

    #[test]
    fn a_kick_that_a_liar_made_up_counts_where_rooms_take_it() {
        let by_rules = |world: &mut World| {
            world.slandered.in_rules.entry(1).or_default().insert(2);
        };
        let harm =
            |authority, lie: &dyn Fn(&mut World)| is_harm(authority, lie, left(LeftReason::Kicked));
        assert!(!harm(Authority::Anyone, &by_rules));
        assert!(harm(Authority::LeaderOnly, &by_rules));
        // Here only the leader decides.
        assert!(!harm(Authority::LeaderOnly, &|world| {
            by_rules(world);
            world.slandered.believed.insert(2);
        }));
        assert!(harm(Authority::LeaderOnly, &|world| {
            world.slandered.believed.insert(2);
        }));
        assert!(!harm(Authority::LeaderOnly, &|world| {
            world.slandered.kicked.insert(1);
        }));
    }
}
