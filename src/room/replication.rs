//! The room's state on the network thread: what the log learns of the room, and what it asks for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::state::RoomState;
use crate::config::{Config, StateOptions};
use crate::core::id::PeerId;
use crate::core::node::{AdmissionRefusal, Node};
use crate::core::time::Time;
use crate::core::wire::{HostMode, Opaque, StateLimits};
use crate::net::events::LinkId;
use crate::state::ballot::MemberId;
use crate::state::replica::{Input, Linked, Output, Quorum, Saved, Settings, Violation};
use crate::state::watch::{Watch, counts};
use crate::state::wire::Frame;

/// See the module's text.
pub(super) struct Replication {
    state: Arc<RoomState>,
    watch: Watch,
    /// The readers of requests that wait until the log has room for more of them.
    waiting: BTreeMap<PeerId, oneshot::Sender<()>>,
    /// The log's outputs that wait for a state to be safe on disk.
    held: VecDeque<Output>,
    /// The number of the state that is on its way to the disk.
    saving: Option<u64>,
    saves: u64,
    /// Whether the log has had an input in this turn.
    is_due: bool,
    may_end: bool,
}

/// A request of the log to the room.
pub(super) enum Effect {
    /// Send this.
    Send(PeerId, Frame),
    /// Store this state, and report its number.
    Save(u64, Opaque),
}

impl Replication {
    pub(super) fn new(state: Arc<RoomState>) -> Self {
        let watch = Watch::new(state.replica().settings());
        Self {
            state,
            watch,
            waiting: BTreeMap::new(),
            held: VecDeque::new(),
            saving: None,
            saves: 0,
            is_due: true,
            may_end: false,
        }
    }

    pub(super) fn state(&self) -> Arc<RoomState> {
        Arc::clone(&self.state)
    }

    /// Whether the room needs nothing more of this member, which leaves.
    pub(super) fn may_end(&self) -> bool {
        self.may_end
    }

    /// Waits until a host's thread has changed something; without a state, without end. Cancel safe.
    pub(super) async fn changed(replication: Option<&mut Self>) {
        match replication {
            Some(replication) => {
                replication.state.changed.notified().await;
                replication.is_due = true;
            }
            None => std::future::pending().await,
        }
    }

    /// When the log needs a turn.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.state.replica().next_deadline()
    }

    fn input(&mut self, now: Time, input: Input) -> Result<(), Violation> {
        self.is_due = true;
        self.state.replica().handle(now, input)
    }

    /// [`Replication::input`] for inputs that no peer has sent.
    fn own_inputs(&mut self, now: Time, inputs: impl IntoIterator<Item = Input>) {
        for input in inputs {
            if let Err(error) = self.input(now, input) {
                tracing::error!(%error, "the room's state refused what happened in the room");
            }
        }
    }

    /// The link that carries the peer's session is `id`.
    pub(super) fn linked(&mut self, now: Time, id: LinkId, linked: Linked) {
        let peer = linked.member.peer.clone();
        if let Some(input) = self.watch.linked(id.0, linked) {
            self.waiting.remove(&peer);
            self.own_inputs(now, [input]);
        }
    }

    /// The link with the peer is over.
    pub(super) fn lost(&mut self, now: Time, peer: &PeerId) {
        self.waiting.remove(peer);
        let input = self.watch.lost(peer);
        self.own_inputs(now, input);
    }

    /// The session with a member is over.
    pub(super) fn gone(&mut self, now: Time, member: MemberId) {
        self.waiting.remove(&member.peer);
        let inputs = self.watch.gone(member);
        self.own_inputs(now, inputs);
    }

    /// Shows the log what has changed in the core. `leader` is the process of its leader, if that is known.
    pub(super) fn follow(&mut self, now: Time, node: &Node, leader: Option<MemberId>) {
        let inputs = self.watch.follow(node, leader);
        self.own_inputs(now, inputs);
    }

    /// The member leaves the room for good.
    pub(super) fn leave(&mut self, now: Time) {
        self.own_inputs(now, [Input::Leave { successor: None }]);
    }

    /// A peer has sent a frame. The reader of its link waits for the answer to `taken`.
    ///
    /// # Errors
    /// [`Violation`]: the link should end.
    pub(super) fn frame(
        &mut self,
        now: Time,
        (from, frame): (PeerId, Frame),
        largest_number: u64,
        taken: oneshot::Sender<()>,
    ) -> Result<(), Violation> {
        if let Frame::Submit { .. } = frame {
            self.waiting.insert(from.clone(), taken);
        } // Otherwise the reader goes on at once.
        let input = Input::Frame {
            from,
            frame,
            largest_number,
        };
        self.input(now, input)
    }

    /// A state is safe on disk.
    pub(super) fn saved(&mut self, number: u64) {
        if self.saving == Some(number) {
            self.saving = None;
            self.is_due = true;
        }
    }

    /// Whether the log must have its turn.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.is_due || self.next_deadline().is_some_and(|due| due <= now)
    }

    /// Ends a turn of the network thread. Returns what follows, in order, and whether the host may have events to take.
    pub(super) fn end_turn(&mut self, now: Time) -> (Vec<Effect>, bool) {
        self.is_due = false;
        let mut replica = self.state.replica();
        if let Err(error) = replica.handle(now, Input::Tick) {
            tracing::error!(%error, "the room's state refused a tick");
        }
        replica.flush(now);
        self.held
            .extend(std::iter::from_fn(|| replica.poll_output()));
        // The others go on.
        self.waiting
            .retain(|peer, _| !replica.takes_requests_of(peer));
        let may_give = replica.may_give();
        drop(replica);
        (self.take_effects(), may_give)
    }

    /// The log's outputs, up to a state that must be safe on disk first.
    fn take_effects(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.saving.is_none()
            && let Some(output) = self.held.pop_front()
        {
            match output {
                Output::Send { to, frame } => effects.push(Effect::Send(to, frame)),
                Output::Persist(saved) => {
                    self.saves += 1;
                    self.saving = Some(self.saves);
                    effects.push(Effect::Save(self.saves, write(&saved)));
                }
                Output::MayEnd => self.may_end = true,
            }
        }
        effects
    }
}

/// The log's settings in this room.
pub(super) fn settings(
    config: &Config,
    node: &Node,
    options: StateOptions,
    member_hold: Duration,
) -> Settings {
    let quorum = match config.quorum.roster() {
        Some(roster) => Quorum::Static(roster.electorate()),
        None => Quorum::Dynamic,
    };
    let interval = config.heartbeat_interval;
    let timeout = config.heartbeat_timeout();
    let mut settings = Settings::new(quorum, options, interval, timeout, member_hold);
    settings.is_eligible = counts(node, node.id());
    settings.is_fixed_host = config.host_mode == HostMode::Host;
    settings
}

/// The state of the log as a file keeps it; empty if there is none.
fn write(saved: &Saved) -> Opaque {
    let promised = saved.promised.as_ref();
    let bytes = postcard::to_allocvec(&(promised, saved.has_held));
    // `postcard` fails only for types that refuse to serialize and for sequences of unknown length.
    bytes.unwrap_or_default().as_slice().into()
}

/// Reads what [`write`] wrote, or nothing; `None` if it is neither.
pub(super) fn read(kept: &Opaque) -> Option<Saved> {
    if kept.as_bytes().is_empty() {
        return Some(Saved::default());
    }
    let (promised, has_held) = postcard::from_bytes(kept.as_bytes()).ok()?;
    Some(Saved { promised, has_held })
}

/// The limits as a Hello names them.
pub(super) fn limits(options: StateOptions) -> StateLimits {
    StateLimits {
        tail_entries: options.tail_entries,
        tail_bytes: options.tail_bytes,
        max_snapshot_bytes: options.max_snapshot_bytes,
    }
}

/// Checks whether a room with `ours` and a member with `theirs` fit.
///
/// # Errors
/// [`AdmissionRefusal::Policy`] with both.
pub(super) fn fits(
    ours: Option<StateLimits>,
    theirs: Option<StateLimits>,
) -> Result<(), AdmissionRefusal> {
    if ours == theirs {
        return Ok(());
    }
    let shown = |limits: Option<StateLimits>| match limits {
        None => "off".to_owned(),
        Some(limits) => format!(
            "{} entries, {} bytes, snapshots of {} bytes",
            limits.tail_entries, limits.tail_bytes, limits.max_snapshot_bytes
        ),
    };
    Err(AdmissionRefusal::Policy {
        field: "state",
        ours: shown(ours),
        theirs: shown(theirs),
    })
}
