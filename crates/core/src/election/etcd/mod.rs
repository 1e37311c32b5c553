//! The etcd strategy: a cluster of etcd servers elects the leader (A4).
//!
//! Each member that may lead has a lease and, under it, a key. The member whose key was created first leads ([`line`]).
//! A leader counts its lease as lost, and reports that, before the store can end it ([`session`]): two never lead at a
//! time. All members read the leader from the store ([`observer`]); messages between members add nothing.
//! `docs/elections.md` explains the rules (A4) that comments here name.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::engine::{Answer, Call, Entry, Lease, Revision};
use super::extra::{self, Durable, StoreClient};
use super::record::{Record, Stamp};
use super::{
    Description, Election, ElectionError, ElectionInput, Extra, InputOf, InvalidSavedState,
    LeaderReason, Leadership, Local, LockEvent, LockRefusal, OutputOf, Role, Start, View,
};
use crate::id::PeerId;
use crate::opaque::Opaque;
use crate::time::{Duration, Time};

mod calls;
mod claim;
mod config;
mod line;
mod locks;
mod observer;
mod session;

pub use config::{EtcdConfig, EtcdRules};

use calls::{Calls, Owner, Pace};
use claim::{Claim, Outcome};
use locks::Locks;
use observer::Observer;

/// The state of this node that survives the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its lease: a process that starts again before the lease ends goes on leading. `None` while there is none.
    pub lease: Option<Lease>,
    /// The lease's prefix. A process with another prefix lets the lease run out: kept alive, it would keep its key in
    /// the room of the earlier prefix, where no other member could lead.
    pub rules: EtcdRules,
}

/// The fencing token of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderToken {
    /// The leader.
    pub leader: PeerId,
    /// The revision at which the leader's key was created.
    pub revision: u64,
}

/// A node of the etcd strategy.
#[derive(Debug)]
pub struct Etcd {
    me: PeerId,
    config: EtcdConfig,
    /// The value that the host proclaims.
    proclaimed: Arc<str>,
    auto_election: bool,
    eligible: bool,
    leaving: bool,
    /// The store was restored from a backup: its revisions are smaller than before. A token of this node would be
    /// smaller than tokens that others have seen, so it no longer leads.
    is_set_back: bool,
    claim: Claim,
    locks: Locks,
    observer: Observer,
    calls: Calls,
    pace: Pace,
    /// The last known leadership; the revision is its term. It never goes back.
    record: Record,
    /// Whether its leader is shown.
    is_shown: bool,
    reason: LeaderReason,
    kept: Kept,
    writes: u64,
    /// A lease that is being taken out of the state file, and the number of that write.
    forgetting: Option<(Lease, u64)>,
    outputs: VecDeque<OutputOf<Self>>,
}

impl Etcd {
    /// A node that starts now.
    ///
    /// # Errors
    /// [`InvalidSavedState`].
    pub(super) fn start(
        now: Time,
        start: Start,
        rules: EtcdRules,
    ) -> Result<Self, InvalidSavedState> {
        let start = start.decoded::<Kept>()?;
        let kept = start.saved.filter(|kept| kept.rules == rules);
        let kept = kept.unwrap_or(Kept { lease: None, rules });
        let config = start.config.etcd;
        let prefix: Arc<str> = format!("{}/election/", config.prefix).into();
        let value = value(&start.me, &config.address, "");
        let owner = Owner::Leadership;
        let lock_prefix = format!("{}/lock/", config.prefix).into();
        let lock_value = start.me.as_str().as_bytes().to_vec();
        let line = Arc::clone(&prefix);
        let mut etcd = Self {
            claim: Claim::new(now, owner, line, value, config.ttl, (true, kept.lease)),
            locks: Locks::new(lock_prefix, lock_value, config.ttl),
            observer: Observer::new(now, prefix, config.ttl),
            me: start.me,
            config,
            proclaimed: Arc::from(""),
            auto_election: start.config.auto_election,
            eligible: start.config.eligible,
            leaving: false,
            is_set_back: false,
            calls: Calls::default(),
            pace: Pace::new(start.seed),
            record: Record::default(),
            is_shown: false,
            reason: LeaderReason::None,
            kept,
            writes: 0,
            forgetting: None,
            outputs: VecDeque::new(),
        };
        etcd.advance(now);
        Ok(etcd)
    }

    /// The revision at which this node's key was created, while this node leads.
    fn leads(&self) -> Option<Revision> {
        self.claim.first()
    }

    fn apply(&mut self, now: Time, input: Local) -> Result<(), ElectionError> {
        match input {
            Local::SetLeader { .. }
            | Local::Transfer { target: Some(_) }
            | Local::SetPriority(_) => {
                return Err(ElectionError::NotSupported { strategy: "etcd" });
            }
            Local::Transfer { target: None } => {
                if self.leads().is_none() {
                    return Err(ElectionError::NotLeader);
                }
                self.resign(now, LeaderReason::Resigned);
            }
            Local::EnableAuto(enabled) => self.auto_election = enabled,
            Local::SetEligible(eligible) => {
                self.eligible = eligible;
                if !eligible {
                    self.resign(now, LeaderReason::Left);
                }
            }
            Local::Leave => {
                self.leaving = true;
                self.resign(now, LeaderReason::Left);
                let mut reported = Vec::new();
                self.locks.release_all(&mut reported);
                self.notify(reported);
            }
            // Members send each other nothing, and no counter here can be exhausted by another member.
            Local::Tick
            | Local::PeerDown { .. }
            | Local::SetClock(_)
            | Local::HeartbeatSent
            | Local::Relinked { .. }
            | Local::PeerReached { .. }
            | Local::PeerEligible { .. }
            | Local::PeerIneligible { .. } => {}
        }
        Ok(())
    }

    /// Handles an input: first expires leases that have run out, then performs the actions that are due.
    fn on_input<R>(&mut self, now: Time, input: impl FnOnce(&mut Self) -> R) -> R {
        self.expire(now);
        let result = input(self);
        self.advance(now);
        result
    }

    fn resign(&mut self, now: Time, reason: LeaderReason) {
        let outcome = self.claim.resign(now, &mut self.calls);
        self.heed(outcome, reason);
    }

    /// Notices leases that have run out, before any other input is handled: the process may have been suspended.
    fn expire(&mut self, now: Time) {
        let outcome = self.claim.expire(now, &mut self.calls);
        self.heed(outcome, LeaderReason::Lost);
        let mut reported = Vec::new();
        self.locks.expire(now, &mut self.calls, &mut reported);
        self.notify(reported);
    }

    /// Performs the actions that are due, and updates the shown leader.
    fn advance(&mut self, now: Time) {
        let campaigns = self.auto_election || self.leads().is_some();
        let may_lead = self.eligible && !self.leaving && !self.is_set_back;
        self.claim.want(campaigns && may_lead);
        let outcome = self.claim.advance(now, &mut self.calls);
        self.heed(outcome, LeaderReason::Left);
        self.forget();
        let mut reported = Vec::new();
        self.locks.advance(now, &mut self.calls, &mut reported);
        self.notify(reported);
        self.observer.advance(now, &mut self.calls);
        self.show();
    }

    fn keep(&mut self, lease: Option<Lease>) {
        let kept = Kept { lease, ..self.kept };
        if kept != self.kept {
            self.kept = kept;
            self.writes += 1;
            let persist = Extra::Persist {
                number: self.writes,
                state: Opaque::of(&kept),
            };
            self.outputs.push_back(persist.into());
        }
    }

    /// Takes an ending lease out of the state file before it is revoked.
    fn forget(&mut self) {
        let Some(lease) = self.claim.to_forget() else {
            return;
        };
        if self
            .forgetting
            .is_none_or(|(forgetting, _)| forgetting != lease)
        {
            self.keep(None);
            self.forgetting = Some((lease, self.writes));
        }
    }

    /// Handles an event of the claim to lead. `reason` is the reason of a lost leadership.
    fn heed(&mut self, outcome: Option<Outcome>, reason: LeaderReason) {
        match outcome {
            Some(Outcome::Leased(lease)) => {
                self.keep(Some(lease));
            }
            Some(Outcome::First(created)) if term(created) < self.record.term() => {
                let known = self.record.term();
                tracing::error!(
                    created,
                    known,
                    "etcd: the revisions have gone back, as after a restore from a backup without --bump-revision: this member does not lead until it is restarted, because its fencing token would shrink"
                );
                self.is_set_back = true;
            }
            Some(Outcome::First(created)) => {
                tracing::debug!(created, "leads");
                self.follow(created, self.me.clone(), LeaderReason::Elected);
            }
            Some(Outcome::Lost(_)) => {
                self.is_shown = false;
                self.reason = reason;
            }
            Some(Outcome::Behind) | None => {}
        }
    }

    /// Shows the leader that the store names, unless this node leads.
    fn show(&mut self) {
        if self.leads().is_some() {
            debug_assert!(self.is_shown && self.record.leader.as_ref() == Some(&self.me));
            return;
        }
        let named = self.observer.first().and_then(|first| self.named_by(first));
        let Some((created, leader)) = named else {
            if self.is_shown {
                self.is_shown = false;
                self.reason = LeaderReason::Lost;
            }
            return;
        };
        let is_new = !self.is_shown || self.record.leader.as_ref() != Some(&leader);
        if is_new || self.record.term() != term(created) {
            let reason = match self.reason {
                LeaderReason::None => LeaderReason::Found,
                _ => LeaderReason::Elected,
            };
            self.follow(created, leader, reason);
        }
    }

    /// The leader that a first key names; `None` if the key is older than the known one, or names this node.
    fn named_by(&self, first: &Entry) -> Option<(Revision, PeerId)> {
        let led = self.record.leader.as_ref() == Some(&self.me);
        let known = self.record.term();
        if term(first.created) < known || (led && term(first.created) == known) {
            return None;
        }
        let text = str::from_utf8(&first.value).ok()?;
        let id = text.split('\n').next()?;
        // This node's own key counts once it is confirmed; the key of an earlier process of this node makes no leader.
        let leader = PeerId::new(id).ok().filter(|leader| *leader != self.me)?;
        Some((first.created, leader))
    }

    fn follow(&mut self, created: Revision, leader: PeerId, reason: LeaderReason) {
        debug_assert!(term(created) >= self.record.term(), "fencing tokens grow");
        self.record = Record {
            leader_key: None,
            stamp: Stamp {
                term: term(created),
                ..Stamp::default()
            },
            leader: Some(leader),
            assigned: false,
        };
        self.is_shown = true;
        self.reason = reason;
    }

    fn notify(&mut self, reported: Vec<LockEvent>) {
        let reported = reported.into_iter().map(Extra::Lock);
        self.outputs.extend(reported.map(OutputOf::<Self>::from));
    }

    fn token(&self) -> Option<LeaderToken> {
        Some(LeaderToken {
            leader: self.record.leader.clone()?,
            revision: self.record.term(),
        })
    }
}

/// The value of a key: id, address, and the text that the host proclaims, which may contain anything.
fn value(me: &PeerId, address: &str, proclaimed: &str) -> Vec<u8> {
    format!("{me}\n{address}\n{proclaimed}").into_bytes()
}

/// A revision as a term. No revision is negative.
fn term(revision: Revision) -> u64 {
    revision.unsigned_abs()
}

impl Election for Etcd {
    /// Members send each other nothing.
    type Message = ();
    type Pulse = ();
    type Hello = ();
    type Token = Option<LeaderToken>;

    fn handle(&mut self, now: Time, _: &View, input: InputOf<Self>) -> Result<(), ElectionError> {
        self.on_input(now, |etcd| match input {
            ElectionInput::Local(input) => etcd.apply(now, input),
            ElectionInput::Message { .. } => Err(ElectionError::Violation(
                "an election message where etcd elects",
            )),
            ElectionInput::PeerUp { .. } | ElectionInput::Pulse { .. } => Ok(()),
        })
    }

    fn poll_output(&mut self) -> Option<OutputOf<Self>> {
        self.outputs.pop_front().or_else(|| {
            let (call, request) = self.calls.poll()?;
            Some(Extra::Engine { call, request }.into())
        })
    }

    fn next_deadline(&self) -> Option<Time> {
        let claim = self.claim.next_deadline().into_iter();
        claim
            .chain(self.locks.next_deadline())
            .chain(self.observer.next_deadline())
            .min()
    }

    fn leadership(&self) -> Leadership<'_> {
        Leadership {
            leader: self.record.leader.as_ref().filter(|_| self.is_shown),
            leader_key: None,
            // The store does: its candidates may be in rooms of their own.
            is_vouched_for: true,
            reason: self.reason,
            record: &self.record,
            valid_until: self.claim.valid_until(),
        }
    }

    fn role(&self) -> Role {
        if self.leads().is_some() {
            Role::Leader
        } else if self.claim.is_wanted() {
            Role::Candidate
        } else {
            Role::Follower
        }
    }

    fn leader_token(&self) -> Option<Option<LeaderToken>> {
        self.leads().map(|_| self.token())
    }

    fn followed_token(&self) -> Option<LeaderToken> {
        self.token()
    }

    fn pulse(&self, _: Time, _: &View, _: &PeerId) {}

    fn hello(&self, _: Time, _: &View, _: Time) {}

    fn has_left(&self) -> bool {
        self.claim.is_over() && self.locks.is_empty()
    }

    /// Only the store decides on the leader.
    fn may_supersede(&self, _: &PeerId, _: &Option<LeaderToken>) -> bool {
        false
    }

    /// The key of `from` may exist already, though the watch has not reported it yet. A member that lies claims this,
    /// too.
    fn awaits(&self, from: &PeerId, token: &Option<LeaderToken>) -> bool {
        let newer =
            |token: &LeaderToken| token.leader == *from && token.revision > self.record.term();
        token.as_ref().is_some_and(newer)
    }

    /// Accepts only a leadership that the store has shown.
    fn judge(
        &mut self,
        _: Time,
        _: &View,
        from: &PeerId,
        token: &Option<LeaderToken>,
    ) -> Result<bool, ElectionError> {
        match token {
            Some(token) if token.leader == *from => {
                let is_known = self.record.leader.as_ref() == Some(from);
                Ok(is_known && token.revision == self.record.term())
            }
            _ => Err(ElectionError::Violation(
                "a leader's message names another leader",
            )),
        }
    }

    fn describe((): &()) -> Description {
        Description::plain("election")
    }

    fn describe_pulse((): &()) -> Description {
        Description::plain("heartbeat")
    }
}

impl Durable for Etcd {
    fn first_state(&self) -> Option<Opaque> {
        Some(Opaque::of(&self.kept))
    }

    fn persisted(&mut self, now: Time, _: &View, number: u64) {
        self.on_input(now, |etcd| {
            let is_written = |(_, write): &mut (Lease, u64)| *write <= number;
            if let Some((lease, _)) = etcd.forgetting.take_if(is_written) {
                etcd.claim.forgotten(lease);
            }
        });
    }
}

impl StoreClient for Etcd {
    fn answered(&mut self, now: Time, call: Call, answer: Answer) {
        self.on_input(now, |etcd| {
            let (calls, pace) = (&mut etcd.calls, &mut etcd.pace);
            match calls.answered(call, &answer) {
                Some(Owner::Leadership) => {
                    let outcome = etcd.claim.answer(now, call, answer, calls, pace);
                    etcd.heed(outcome, LeaderReason::Lost);
                }
                Some(Owner::Lock(name)) => {
                    let mut reported = Vec::new();
                    let (answer, at) = ((call, answer), (calls, pace));
                    etcd.locks.answer(now, &name, answer, at, &mut reported);
                    etcd.notify(reported);
                }
                Some(Owner::Observer) => etcd.observer.answer(now, call, answer, calls, pace),
                None => {}
            }
        });
    }

    fn proclaim(&mut self, now: Time, value: Arc<str>) {
        self.on_input(now, |etcd| {
            etcd.proclaimed = value;
            let (address, proclaimed) = (&etcd.config.address, &etcd.proclaimed);
            etcd.claim
                .set_value(self::value(&etcd.me, address, proclaimed));
        });
    }
}

impl extra::Locks for Etcd {
    fn acquire(
        &mut self,
        now: Time,
        request: u64,
        name: &Arc<str>,
        wait: Option<Duration>,
    ) -> Result<(), LockRefusal> {
        self.on_input(now, |etcd| {
            let mut reported = Vec::new();
            let acquired = etcd.locks.acquire(now, request, name, wait, &mut reported);
            etcd.notify(reported);
            acquired
        })
    }

    fn release(&mut self, now: Time, name: &Arc<str>) -> Result<(), LockRefusal> {
        self.on_input(now, |etcd| {
            let mut reported = Vec::new();
            let released = etcd.locks.release(name, &mut reported);
            etcd.notify(reported);
            released
        })
    }
}
