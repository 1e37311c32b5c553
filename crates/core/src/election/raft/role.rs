//! The role of a node: follower, pre-candidate, candidate or leader.
//!
//! Each role owns the state that only it needs, deadlines included, so that none of it outlives the role. Only the
//! `become_*` functions change the role, together with that of [`Rules`](crate::election::rules::Rules), which decides
//! what is allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use tracing::trace;

use super::following::{Following, Named};
use super::quorum::Window;
use super::transfer::Transfer;
use super::{ElectionOutput, Raft};
use crate::election::record::{Record, Stamp};
use crate::election::rules::{RoleKind, Tally};
use crate::id::PeerId;
use crate::time::{Duration, Time};

/// A role with its state.
#[derive(Debug)]
pub(super) enum Role {
    /// Follows a leader, or waits for one.
    Follower(Following),
    /// Asks whether a campaign would succeed.
    PreCandidate(PreCandidate),
    /// Campaigns in its own term.
    Candidate(Candidate),
    /// Leads.
    Leader(Box<Leader>),
}

/// An open round of pre-votes.
#[derive(Debug)]
pub(super) struct PreCandidate {
    /// The time at which the round is repeated, or silence becomes consent.
    round_at: Time,
    /// The leader that asked for the campaign before this round, until it is known whether it leads on.
    shown: Option<Named>,
}

/// An open campaign.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The time at which the round is repeated.
    round_at: Time,
    /// The leader that asked for the campaign: it left, or transfers its leadership.
    pub(super) asked_by: Option<PeerId>,
    /// The asking leader, if it leads until this campaign is won.
    shown: Option<Named>,
}

/// State of a leader. It survives a campaign in place, and the move into an epoch of its own.
#[derive(Debug)]
pub(super) struct Leader {
    /// The record under which it leads, or led until it began to campaign in place.
    pub(super) record: Record,
    pub(super) since: Time,
    /// The linked leader that asked this one to succeed it.
    pub(super) predecessor: Option<PeerId>,
    /// The last time at which each voter showed that it follows the present record.
    pub(super) acks: BTreeMap<PeerId, Time>,
    /// The campaign in place, if one is open.
    pub(super) in_place: Option<CampaignInPlace>,
    /// The other leader that this one went above last, and the number of times in a row.
    rival: Option<(PeerId, u32)>,
    /// The open leadership transfer.
    pub(super) pending_transfer: Option<Transfer>,
    pub(super) window: Window,
}

/// A leader's campaign in place for a higher term.
#[derive(Debug, Clone, Copy)]
pub(super) struct CampaignInPlace {
    pub(super) since: Time,
    round_at: Time,
}

impl Role {
    fn kind(&self) -> RoleKind {
        match self {
            Self::Follower(_) => RoleKind::Follower,
            Self::PreCandidate(_) => RoleKind::PreCandidate,
            Self::Candidate(_) => RoleKind::Candidate,
            Self::Leader(_) => RoleKind::Leader,
        }
    }

    /// The leader that this node shows while it does not lead itself.
    pub(super) fn shown(&self) -> Option<&PeerId> {
        match self {
            Self::Follower(following) => following.leader(),
            Self::PreCandidate(_) | Self::Candidate(_) | Self::Leader(_) => {
                self.named().map(|named| &named.leader)
            }
        }
    }

    /// The leader that others named and that is shown.
    pub(super) fn named(&self) -> Option<&Named> {
        match self {
            Self::Follower(Following::Indirect(named)) => Some(named),
            Self::PreCandidate(PreCandidate { shown, .. })
            | Self::Candidate(Candidate { shown, .. }) => shown.as_ref(),
            Self::Follower(_) | Self::Leader(_) => None,
        }
    }

    /// The linked peers that named the shown leader; `None` if its heartbeats arrive here, or there is no leader.
    pub(super) fn vouchers(&self) -> Option<&BTreeSet<PeerId>> {
        self.named_or_awaited().map(|named| &named.vouchers)
    }

    /// The leader that is shown and not heard here.
    pub(super) fn named_or_awaited(&self) -> Option<&Named> {
        match self {
            Self::Follower(Following::Awaited(named)) => Some(named),
            _ => self.named(),
        }
    }

    /// `peer` no longer vouches for the shown leader, or is no longer linked.
    pub(super) fn unvouch(&mut self, peer: &PeerId) {
        let named = match self {
            Self::Follower(Following::Indirect(named) | Following::Awaited(named)) => Some(named),
            Self::PreCandidate(PreCandidate { shown, .. })
            | Self::Candidate(Candidate { shown, .. }) => shown.as_mut(),
            Self::Follower(_) | Self::Leader(_) => None,
        };
        if let Some(named) = named {
            named.vouchers.remove(peer);
        }
    }

    /// The end of the open round.
    pub(super) fn round_at(&self) -> Option<Time> {
        match self {
            Self::Follower(_) => None,
            Self::PreCandidate(open) => Some(open.round_at),
            Self::Candidate(open) => Some(open.round_at),
            Self::Leader(leader) => leader.in_place.map(|in_place| in_place.round_at),
        }
    }

    /// The role's own deadline.
    pub(super) fn deadline(&self) -> Option<Time> {
        let own = match self {
            Self::Follower(Following::Awaited(named)) => Some(named.until),
            Self::Follower(_) | Self::PreCandidate(_) | Self::Candidate(_) => {
                self.named().map(|named| named.until)
            }
            Self::Leader(leader) => {
                let transfer = leader.pending_transfer.as_ref();
                transfer
                    .map(|transfer| transfer.until)
                    .into_iter()
                    .chain([leader.window.until])
                    .min()
            }
        };
        own.into_iter().chain(self.round_at()).min()
    }
}

impl Leader {
    fn new(now: Time, window: Duration, predecessor: Option<PeerId>) -> Self {
        Self {
            record: Record::default(),
            since: now,
            predecessor,
            acks: BTreeMap::new(),
            in_place: None,
            rival: None,
            pending_transfer: None,
            window: Window::new(now, window),
        }
    }

    pub(super) fn transfers_to(&self, peer: &PeerId) -> bool {
        self.pending_transfer
            .as_ref()
            .is_some_and(|transfer| transfer.target == *peer)
    }

    pub(super) fn contests_with(&self, rival: &PeerId) -> u32 {
        match &self.rival {
            Some((id, contests)) if id == rival => *contests,
            _ => 0,
        }
    }

    pub(super) fn contest(&mut self, rival: PeerId) {
        let contests = self.contests_with(&rival) + 1;
        self.rival = Some((rival, contests));
    }
}

/// Queries and changes that all roles share.
impl Raft {
    pub(super) fn leads(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    pub(super) fn follows(&self) -> bool {
        matches!(self.role, Role::Follower(_))
    }

    /// The state of this leader; `None` in any other role.
    pub(super) fn leading(&self) -> Option<&Leader> {
        match &self.role {
            Role::Leader(leader) => Some(leader),
            Role::Follower(_) | Role::PreCandidate(_) | Role::Candidate(_) => None,
        }
    }

    pub(super) fn leading_mut(&mut self) -> Option<&mut Leader> {
        match &mut self.role {
            Role::Leader(leader) => Some(leader),
            Role::Follower(_) | Role::PreCandidate(_) | Role::Candidate(_) => None,
        }
    }

    /// The leader that asked for the open campaign.
    pub(super) fn asked_by(&self) -> Option<&PeerId> {
        match &self.role {
            Role::Candidate(candidate) => candidate.asked_by.as_ref(),
            Role::Follower(_) | Role::PreCandidate(_) | Role::Leader(_) => None,
        }
    }

    /// Sets the end of the open round.
    pub(super) fn set_round_at(&mut self, at: Time) {
        match &mut self.role {
            Role::PreCandidate(open) => open.round_at = at,
            Role::Candidate(open) => open.round_at = at,
            Role::Leader(leader) => {
                if let Some(in_place) = &mut leader.in_place {
                    in_place.round_at = at;
                }
            }
            Role::Follower(_) => {}
        }
    }

    /// Shows `named`, which others hear, without a change of role.
    pub(super) fn show(&mut self, named: Named) {
        debug_assert!(!self.leads(), "a leader shows itself");
        self.set_shown(Some(named));
    }

    /// Clears the shown leader, unless this node leads.
    pub(super) fn lose_leader(&mut self) {
        self.set_shown(None);
    }

    fn set_shown(&mut self, named: Option<Named>) {
        match &mut self.role {
            Role::Follower(following) => *following = named.into(),
            Role::PreCandidate(PreCandidate { shown, .. })
            | Role::Candidate(Candidate { shown, .. }) => *shown = named,
            Role::Leader(_) => {}
        }
    }
}

/// The only functions that change the role.
impl Raft {
    /// Ends any round and leadership of this node, and follows `following`.
    pub(super) fn become_follower(&mut self, following: Following) {
        self.rules.step_down();
        self.enter(self.role.kind(), Role::Follower(following));
        self.check_role();
    }

    /// As [`become_follower`](Self::become_follower), with the leader that it showed before.
    pub(super) fn step_down(&mut self) {
        self.rules.step_down();
        let before = self.role.kind();
        let following = match mem::take(&mut self.role) {
            Role::Follower(following) => following,
            Role::PreCandidate(PreCandidate { shown, .. })
            | Role::Candidate(Candidate { shown, .. }) => shown.into(),
            Role::Leader(_) => Following::None,
        };
        self.enter(before, Role::Follower(following));
        self.check_role();
    }

    /// Opens a round of pre-votes, which ends with [`set_round_at`](Self::set_round_at).
    pub(super) fn become_pre_candidate(&mut self, electorate: BTreeSet<PeerId>) {
        let shown = match &self.role {
            Role::Follower(Following::None) => None,
            Role::Follower(Following::Indirect(named)) => Some(named.clone()),
            Role::Follower(Following::Direct(direct)) if self.doubts_leader => {
                Some(self.doubted(direct))
            }
            role => panic!("no round of pre-votes begins as {role:?}"),
        };
        self.rules.begin_pre_vote(electorate);
        let asking = PreCandidate {
            round_at: self.at,
            shown,
        };
        self.enter(self.role.kind(), Role::PreCandidate(asking));
        self.check_role();
    }

    /// Opens a campaign in the term after `above`. If it is won with this node's own vote alone,
    /// [`become_leader`](Self::become_leader) must follow.
    pub(super) fn become_candidate(
        &mut self,
        electorate: BTreeSet<PeerId>,
        above: &Stamp,
        asked_by: Option<PeerId>,
    ) -> Tally {
        assert!(!self.leads(), "a leader campaigns in place");
        let tally = self.rules.begin_vote(electorate, above);
        let campaigning = Candidate {
            round_at: self.at,
            asked_by,
            shown: None,
        };
        self.enter(self.role.kind(), Role::Candidate(campaigning));
        tally
    }

    /// Opens a leader's campaign in place, or the next round of it.
    pub(super) fn open_campaign_in_place(
        &mut self,
        now: Time,
        electorate: BTreeSet<PeerId>,
        above: &Stamp,
    ) -> Tally {
        let tally = self.rules.begin_vote(electorate, above);
        let leader = self
            .leading_mut()
            .expect("only a leader campaigns in place");
        leader.in_place.get_or_insert(CampaignInPlace {
            since: now,
            round_at: now,
        });
        tally
    }

    /// Leads under the record of the rules, which made this node its leader.
    pub(super) fn become_leader(&mut self, now: Time) {
        assert_eq!(
            self.rules.role(),
            RoleKind::Leader,
            "the rules decide who leads"
        );
        assert_eq!(self.rules.record().leader.as_ref(), Some(&self.me));
        let window = self.election_timeout_min();
        let before = self.role.kind();
        let predecessor = self.asked_by().cloned();
        let mut leader = match mem::take(&mut self.role) {
            Role::Leader(leader) => leader,
            _ => {
                self.hints.transferred = predecessor.is_some();
                Box::new(Leader::new(now, window, predecessor))
            }
        };
        if let Some(won) = self.rules.won() {
            let granted = won.granted.iter().map(|voter| (voter.clone(), now));
            leader.acks.extend(granted);
            leader.window.won(now, &self.me, won);
        }
        leader.record = self.rules.record().clone();
        leader.in_place = None;
        self.enter(before, Role::Leader(leader));
        self.has_followed = true;
        self.yielded = false;
        self.electors = super::Electors::Unknown;
        self.outputs.push_back(ElectionOutput::HeartbeatNow);
        self.check_role();
    }

    fn enter(&mut self, before: RoleKind, role: Role) {
        let now = role.kind();
        if before != now {
            trace!(?before, ?now, term = self.rules.record().term(), "role");
        }
        self.role = role;
    }

    /// Invariants that hold after every input and every change of role.
    pub(super) fn check_role(&self) {
        assert_eq!(
            self.role.kind(),
            self.rules.role(),
            "the role is the rules'"
        );
        assert_ne!(
            self.role.shown(),
            Some(&self.me),
            "only a leader shows itself"
        );
        match &self.role {
            Role::Follower(_) => {
                assert!(self.rules.campaign().is_none(), "a follower asks no voter")
            }
            Role::PreCandidate(_) | Role::Candidate(_) => {
                assert!(
                    self.rules.campaign().is_some(),
                    "a candidate has an open round"
                );
            }
            Role::Leader(leader) => {
                let in_place = leader.in_place.is_some();
                assert_eq!(
                    in_place,
                    self.rules.campaigning(),
                    "a campaign in place is open"
                );
                assert!(
                    in_place || leader.record == *self.rules.record(),
                    "it leads under its record"
                );
            }
        }
    }
}

impl Default for Role {
    fn default() -> Self {
        Self::Follower(Following::None)
    }
}
