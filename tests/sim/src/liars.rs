//! Members that lie about counters: their messages, and the properties that must hold all the same (C4.8).
//!
//! A liar has its own place behind those of the plan. Its node is an honest one, links and heartbeats included; the lies are
//! forged beside its messages. When the faults end it leaves for good. The others must then agree as after any other fault, as
//! soon as the slowest of their clocks allows the largest counter among them.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use room_core::election::gossip::Claimed;
use room_core::election::raft::Raft;
use room_core::election::raft::wire::{ElectionMessage, LiveLeader, Pulse, Side, Stamped};
use room_core::election::record::{Epoch, Record, Stamp};
use room_core::election::seeded::paxos::{Ballot, Stage, Vote};
use room_core::election::seeded::wire::{Based, Beat, Claim, Memory, Observation, SeededMessage};
use room_core::election::seeded::{MemberState, Seeded};
use room_core::id::{Fingerprint, Incarnation, PeerId};
use room_core::node::Output;
use room_core::time::Duration;
use room_core::wire::{Envelope, Heartbeat, Message, Opaque, RoomRules};

use crate::chaos::Run;
use crate::decoded;
use crate::harm::SLANDERS;
use crate::plan::{Plan, Step, Who};
use crate::world::World;

/// Separates these draws from the plan's, which come from the same seed.
const OF_THEIR_OWN: u64 = 0x11a2_0b0d_c0de_0007;
/// Distance of a lie above its victim's counter.
const LEAP: u64 = 1 << 20;
/// Number by which a room may raise its counters above a lie in one run. A clock allows it in 8 s.
const COUNTED: u64 = 1 << 13;
/// Growth of the bound per second.
const PER_SECOND: u64 = 1 << 10;

/// The message that carries a lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Words {
    /// A heartbeat of a leader.
    Leads,
    /// A heartbeat of an assigned leader.
    Assigned,
    /// A heartbeat of a follower of the victim.
    Follows,
    /// An answer to a claim.
    Nack,
    /// Refused votes and pre-votes.
    Answers,
    /// The answer to an assignment.
    Ack,
    /// The Hello of an unknown side.
    Foreign,
    /// Requests for a vote and a pre-vote.
    Requests,
    /// A limit for the room.
    Limit,
    /// A claim of a room that elects by gossip.
    Claims,
    /// Its own Hello, on a new link.
    Hello,
    /// In a room with the seeded strategy: votes chose the liar, in a heartbeat and a message.
    Chosen,
    /// Votes, and its own proposals.
    Votes,
    /// Another leader outranks the victim's.
    Relieves,
    /// Answers to questions that the victim may have asked.
    Joins,
    /// Changes of members' states.
    States,
}

/// Lies in rooms with the seeded strategy.
pub(crate) const CLUSTER_WORDS: [Words; 6] = [
    Words::Chosen,
    Words::Votes,
    Words::Relieves,
    Words::Joins,
    Words::States,
    Words::Limit,
];

/// Lies in rooms that elect by votes.
pub(crate) const WORDS: [Words; 10] = [
    Words::Leads,
    Words::Leads,
    Words::Assigned,
    Words::Follows,
    Words::Nack,
    Words::Answers,
    Words::Ack,
    Words::Foreign,
    Words::Requests,
    Words::Limit,
];

/// The size of a lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Far {
    /// 2^20 above the victim's counter.
    Leap,
    /// The limit of the victim's clock.
    Bound,
    /// Above that limit: by a little, by the possible difference of another clock, or up to the last number.
    Above(u64),
}

const FAR: [Far; 6] = [
    Far::Leap,
    Far::Leap,
    Far::Bound,
    Far::Above(1),
    Far::Above(PER_SECOND),
    Far::Above(u64::MAX),
];

/// Adds liars, and wall clocks that differ, to a plan. Everything else in it stays.
pub fn among(mut plan: Plan) -> Plan {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed ^ OF_THEIR_OWN);
    if plan.liars.is_empty() {
        add(&mut plan, &mut rng);
    }
    plan
}

/// Adds them with draws from a given generator.
pub(crate) fn add(plan: &mut Plan, rng: &mut ChaCha8Rng) {
    let lies = plan.strategy.profile().lies();
    let count = *[1, 1, 1, 2, 3].choose(rng).expect("not empty");
    // With a static quorum liars are not on the roster, whatever they claim.
    plan.liars = (0..count).map(|_| rng.random_bool(0.7)).collect();
    let apart: i64 = *[0, 0, 0, 50, 2_000, 10_000].choose(rng).expect("not empty");
    // A member whose clock is an hour behind refuses for an hour the counters that others hold: no run lasts that long.
    let sets_back = |step: &Step| matches!(step, Step::SetBack { .. });
    plan.steps.retain(|(_, step)| !sets_back(step));
    plan.wall_clocks = (0..plan.size)
        .map(|_| rng.random_range(-apart..=apart))
        .collect();
    let slots: Vec<usize> = (plan.size..plan.size + plan.liars.len()).collect();
    for liar in &slots {
        let contact = rng.random_range(0..plan.size);
        let enters = Step::Start {
            slot: *liar,
            contact,
        };
        let at = rng.random_range(0..plan.heal_at_ms / 2);
        plan.steps.push((at, enters));
        for _ in 0..rng.random_range(1..=12) {
            if rng.random_bool(0.35) {
                let step = slander(*liar, plan.size, rng);
                let at = rng.random_range(at..plan.heal_at_ms);
                plan.steps.push((at, step));
                continue;
            }
            let words = match rng.random_bool(0.15) {
                true => Words::Hello,
                false => *lies.choose(rng).expect("not empty"),
            };
            let victim = if rng.random_bool(0.4) {
                Who::Leader
            } else {
                Who::Slot(rng.random_range(0..plan.size))
            };
            let lie = Step::Lie {
                liar: *liar,
                victim,
                words,
                far: *FAR.choose(rng).expect("not empty"),
                // Observers are not leaders of an epoch either, but the victim does not know that.
                epoch: rng.random_bool(0.4),
            };
            let at = rng.random_range(at..plan.heal_at_ms);
            plan.steps.push((at, lie));
        }
    }
    plan.steps.sort_by_key(|(at, _)| *at);
}

fn slander(liar: usize, size: usize, rng: &mut ChaCha8Rng) -> Step {
    let victim = if rng.random_bool(0.4) {
        Who::Leader
    } else {
        Who::Slot(rng.random_range(0..size))
    };
    Step::Slander {
        liar,
        victim,
        about: rng.random_range(0..size),
        words: *SLANDERS.choose(rng).expect("not empty"),
    }
}

/// Lies.
impl Run<'_> {
    pub(crate) fn lie(&mut self, liar: usize, victim: usize, words: Words, far: Far, epoch: bool) {
        let Some(node) = self.world.node(victim).filter(|_| victim != liar) else {
            return;
        };
        let own = node.record().stamp.clone();
        let held = if epoch {
            own.epoch.override_seq
        } else {
            own.term
        };
        let bound = node.counter_bound(self.world.local(victim));
        let number = match far {
            Far::Leap => held.saturating_add(LEAP),
            Far::Bound => bound,
            Far::Above(by) => bound.saturating_add(by),
        };
        let me = self.world.slots[liar].id.clone();
        let its = self.world.slots[victim].id.clone();
        let stamp = if epoch {
            Stamp {
                epoch: Epoch {
                    assigner_key: None,
                    override_seq: number,
                    assigner: Some(me.clone()),
                },
                term: 1,
            }
        } else {
            Stamp {
                term: number,
                ..own
            }
        };
        if words == Words::Hello {
            self.world.boasts.insert(
                liar,
                Record {
                    leader_key: None,
                    stamp,
                    leader: Some(me),
                    assigned: epoch,
                },
            );
            // All see it in the Hellos of its next incarnation.
            self.world.crash(liar);
            self.start_at(liar, self.world.now + Duration::from_millis(200));
            return;
        }
        let round = self
            .world
            .node(victim)
            .and_then(|node| node.election().of::<Raft>())
            .and_then(|raft| raft.rules().campaign())
            .map_or(1, |campaign| campaign.round);
        let Some(process) = self.world.slots[liar].process.as_ref() else {
            return;
        };
        let (incarnation, key) = (process.node.incarnation(), process.key);
        let victims = self.world.node(victim);
        let seeded = victims.and_then(|node| node.election().of::<Seeded>());
        let observed = seeded.map(Seeded::observation).unwrap_or_default();
        let lie = Lie {
            me,
            key,
            its,
            stamp,
            round,
            incarnation,
            number,
            observed,
        };
        for message in lie.messages(words) {
            let envelope = Envelope {
                incarnation,
                message,
            };
            self.world.forge(liar, victim, envelope);
        }
    }
}

struct Lie {
    me: PeerId,
    key: Fingerprint,
    its: PeerId,
    stamp: Stamp,
    round: u64,
    incarnation: Incarnation,
    number: u64,
    /// The victim's observation, if the strategy is seeded.
    observed: Observation,
}

impl Lie {
    fn record(&self, leader: &PeerId, assigned: bool) -> Record {
        Record {
            stamp: self.stamp.clone(),
            leader: Some(leader.clone()),
            leader_key: (*leader == self.me).then_some(self.key),
            assigned,
        }
    }

    fn side(&self, weight: u32) -> Side {
        Side {
            since: 0,
            hold_binds: false,
            record: self.record(&self.me, false),
            live: Some(LiveLeader {
                id: self.me.clone(),
                key: self.key,
                incarnation: self.incarnation,
                weight,
                led_ms: u64::MAX,
                rest_ms: u32::MAX,
            }),
            lone: weight == 0,
        }
    }

    fn messages(&self, words: Words) -> Vec<Message> {
        let heartbeat = |pulse| vec![decoded::heartbeat(pulse)];
        let leads = |assigned| {
            heartbeat(Pulse::Leads {
                record: self.record(&self.me, assigned),
                weight: 1,
                led_ms: u64::MAX,
                election_timeout_min_ms: 0,
            })
        };
        let elections = |messages: Vec<ElectionMessage>| -> Vec<Message> {
            let messages = messages.into_iter();
            messages
                .map(|message| Message::from(Stamped::new(self.stamp.clone(), message)))
                .collect()
        };
        let (round, candidate, voter) = (self.round, self.me.clone(), self.me.clone());
        match words {
            Words::Leads => leads(false),
            Words::Assigned => leads(true),
            Words::Follows => heartbeat(Pulse::Follows {
                record: self.record(&self.its, false),
                live: true,
            }),
            Words::Nack => elections(vec![ElectionMessage::Nack {
                record: self.record(&self.me, false),
                live: None,
            }]),
            Words::Answers => elections(vec![
                ElectionMessage::PreVoteResponse {
                    round,
                    voter: voter.clone(),
                    granted: false,
                    record: self.record(&self.me, false),
                    live: None,
                },
                ElectionMessage::VoteResponse {
                    round,
                    voter,
                    granted: false,
                    record: self.record(&self.me, false),
                    live: None,
                },
            ]),
            Words::Ack => {
                let ack = |seq| ElectionMessage::LeaderAssignAck {
                    seq,
                    accepted: false,
                    record: self.record(&self.me, true),
                };
                elections((1..=4).map(ack).collect())
            }
            Words::Foreign => {
                let foreign = |weight| ElectionMessage::ForeignSide {
                    peer: self.me.clone(),
                    ours: self.side(1),
                    theirs: self.side(weight),
                };
                elections(vec![foreign(0), foreign(9)])
            }
            Words::Requests => elections(vec![
                ElectionMessage::PreVoteRequest {
                    round,
                    candidate: candidate.clone(),
                    term: self.number,
                },
                ElectionMessage::VoteRequest {
                    round,
                    candidate,
                    asked_by: Some(self.its.clone()),
                },
            ]),
            // A limit is sent once, so that all clocks must allow it, or none.
            Words::Limit => vec![Message::RoomRules(RoomRules {
                version: match self.number {
                    u64::MAX => (Stamp::default(), u64::MAX),
                    number => (Stamp::default(), number % (1 << 40)),
                },
                set_by: None,
                max_peers: 77,
                bans: Vec::new(),
            })],
            Words::Claims => vec![Message::Election(Opaque::of(&Claimed {
                sequence: self.number,
                declares: self.number.is_multiple_of(2),
            }))],
            Words::Hello => Vec::new(),
            Words::Chosen | Words::Votes | Words::Relieves | Words::Joins | Words::States => {
                self.of_cluster(words)
            }
        }
    }
}

/// Lies in rooms with the seeded strategy.
impl Lie {
    fn of_cluster(&self, words: Words) -> Vec<Message> {
        let claim = Claim {
            leader: self.me.clone(),
            version: self.number,
            elected: true,
            address: "zzz".into(),
        };
        let lead_by_it = claim.observation();
        let before = Observation {
            leader: None,
            version: self.number.saturating_sub(1),
        };
        let (observed, next) = (self.observed.clone(), self.observed.version + 1);
        let undecided = Observation {
            leader: None,
            version: observed.version,
        };
        let winner = || claim.clone();
        let ballot = |proposer: &PeerId| Ballot {
            counter: next,
            proposer: proposer.clone(),
        };
        let reported: Vec<(Observation, SeededMessage)> = match words {
            Words::Chosen => vec![(before, SeededMessage::LeaderElected { claim: winner() })],
            Words::Votes => {
                let proposal = |stage| SeededMessage::Proposal {
                    stage,
                    ballot: ballot(&self.me),
                    candidate: self.its.clone(),
                };
                let vote = |vote| SeededMessage::Vote {
                    ballot: ballot(&self.its),
                    vote,
                };
                let messages = [
                    proposal(Stage::Pre),
                    proposal(Stage::Formal),
                    vote(Vote::Promised(None)),
                    vote(Vote::Accepted),
                ];
                messages.map(|message| (undecided.clone(), message)).into()
            }
            Words::Relieves => vec![
                (
                    observed.clone(),
                    SeededMessage::LeaderRelieve { winner: winner() },
                ),
                (observed, SeededMessage::ReJoinCluster { winner: winner() }),
            ],
            Words::Joins => {
                let answers = |number| {
                    let answer = Ok(winner());
                    [
                        SeededMessage::LeaderQueryResponse { query: number },
                        SeededMessage::LeaderStatusQueryResponse {
                            query: number,
                            healthy: true,
                        },
                        SeededMessage::JoinClusterResponse {
                            request: number,
                            answer,
                        },
                    ]
                };
                let all = (0..12).flat_map(answers);
                all.map(|message| (lead_by_it.clone(), message)).collect()
            }
            _ => vec![
                (
                    observed.clone(),
                    SeededMessage::MemberStatusUpdate {
                        change: self.number,
                        member: self.its.clone(),
                        incarnation: self.incarnation,
                        state: MemberState::Removed,
                    },
                ),
                (
                    observed.clone(),
                    SeededMessage::ClusterAlignment {
                        change: self.number,
                        members: Vec::new(),
                    },
                ),
                (
                    observed,
                    SeededMessage::LeaderKeepAliveAck {
                        sent_us: self.number,
                    },
                ),
            ],
        };
        let mut messages: Vec<Message> = reported
            .into_iter()
            .map(|(basis, message)| {
                Message::Election(Opaque::of(&Based {
                    basis,
                    writes: self.number,
                    message,
                }))
            })
            .collect();
        if words == Words::Chosen {
            messages.push(Message::Heartbeat(Heartbeat {
                seq: 0,
                echo: None,
                host_silent_ms: 0,
                room_time_us: None,
                pulse: Opaque::of(&Beat {
                    observed: lead_by_it,
                    claim: Some(claim),
                    decided: self.number,
                    writes: self.number,
                    since: 0,
                    memory: Some(Memory {
                        remembered: self.number,
                        sure: true,
                        votes: None,
                    }),
                }),
            }));
        }
        messages
    }
}

/// Properties.
impl World {
    /// No honest member throws out an honest one, whatever a third one made it send. A counter of one honest member is refused by
    /// others for no longer than their clocks differ.
    pub(crate) fn check_lied_to(&mut self, slot: usize, outputs: &[Output]) {
        if self.liars.is_empty() || self.liars.contains(&slot) {
            return;
        }
        let mut wrong = None;
        for output in outputs {
            if let Some(harm) = self.harm(slot, output) {
                wrong.get_or_insert(harm);
            }
            match output {
                Output::Dropped { from, value, .. } if self.is_honest(from) => {
                    self.refusals += 1;
                    let allowed = self.furthest_bound();
                    if *value > allowed.saturating_add(COUNTED) {
                        wrong = Some(format!(
                            "{from} holds {value}; the fastest clock allows {allowed}"
                        ));
                    }
                }
                Output::Dropped { .. } => self.refusals += 1,
                _ => {}
            }
        }
        if let Some(text) = wrong {
            self.violate("liars", text);
        }
    }

    fn bounds(&self) -> impl Iterator<Item = u64> {
        let honest = self
            .running()
            .into_iter()
            .filter(|slot| !self.liars.contains(slot));
        honest.filter_map(|slot| Some(self.node(slot)?.counter_bound(self.local(slot))))
    }

    fn furthest_bound(&self) -> u64 {
        self.bounds().max().unwrap_or(0)
    }

    /// Until then a member may refuse a counter that another one holds.
    pub(crate) fn until_all_is_believed(&self) -> Duration {
        let counters = |slot: usize| {
            let stamp = &self.node(slot)?.record().stamp;
            Some(stamp.term.max(stamp.epoch.override_seq))
        };
        let running = self.running().into_iter();
        let held = running.filter_map(counters).max().unwrap_or(0);
        let allowed = self.bounds().min().unwrap_or(u64::MAX);
        // By the slowest clock.
        let micros = held.saturating_sub(allowed).saturating_mul(1_100_000) / PER_SECOND;
        Duration::from_micros(micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;
    use room_core::node::LinkEnd;

    /// Two honest members and a liar; returns the property that an output of the first breaks.
    fn seen(output: impl Fn(&World) -> Output) -> Option<&'static str> {
        let mut world = World::new(1, 3, Settings::default(), Trace::off());
        world.liars.insert(2);
        for slot in 0..3 {
            world.start(slot);
        }
        let output = output(&world);
        world.check_lied_to(0, &[output]);
        world.violation.map(|violation| violation.property)
    }

    #[test]
    fn an_honest_member_that_is_thrown_out_is_seen_and_a_liar_that_is_is_not() {
        let thrown_out = |slot: usize, why: LinkEnd| {
            seen(|world| Output::Close {
                peer: world.slots[slot].id.clone(),
                why,
            })
        };
        let violation = LinkEnd::Violation("something");
        assert_eq!(thrown_out(1, violation), Some("liars"));
        assert_eq!(thrown_out(2, violation), None);
        assert_eq!(thrown_out(1, LinkEnd::Silent), None);
    }

    #[test]
    fn a_counter_that_no_clock_allows_is_seen_at_an_honest_member() {
        let holds = |slot: usize, above: u64| {
            seen(|world| {
                let bound = world.furthest_bound();
                Output::Dropped {
                    from: world.slots[slot].id.clone(),
                    value: bound + above,
                    bound,
                }
            })
        };
        assert_eq!(holds(1, COUNTED + 1), Some("liars"));
        assert_eq!(holds(1, COUNTED), None);
        assert_eq!(holds(2, 1 << 50), None);
    }

    #[test]
    fn a_plan_without_liars_is_written_as_before() {
        for seed in 0..50 {
            let plan = Plan::draw_narrow(seed, None);
            assert!(!plan.to_line().contains("liars"));
            assert!(!plan.to_line().contains("wall_clocks"));
            let lied = among(plan.clone());
            assert_eq!(Plan::parse(&lied.to_line()), Ok(lied.clone()));
            let honest = |step: &&(u64, Step)| match &step.1 {
                Step::Lie { .. } | Step::Slander { .. } => false,
                Step::Start { slot, .. } => *slot < plan.size,
                _ => true,
            };
            let clocks_stay = |step: &&(u64, Step)| !matches!(step.1, Step::SetBack { .. });
            let before = plan.steps.iter().filter(clocks_stay);
            assert!(lied.steps.iter().filter(honest).eq(before));
        }
    }
}
