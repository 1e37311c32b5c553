//! Dials of the core, of the host, and of seeds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::core::address::is_dialable;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::introductions::Dial;
use crate::core::node::{Input, Node};
use crate::core::path::{CarrierKind, Path, RelayNumber};
use crate::core::virtual_address::{behind_turn, carried_by, on_the_network, through_turn};
use crate::dispatch::ConnectionResult;
use crate::error::Code;
use crate::net::dial::{Connector, DialRequest, HostDial, Refused};
use crate::net::names::{LookupError, Names};
use crate::net::progress::{Progress, Step};
use crate::net::socket::{self, Bound};
use crate::net::turn::TURN_AFTER;
use crate::net::unanswered::BRIEF_DIAL;
use crate::target::{Host, Target, parse_pasted_target};

/// Time between two dials of one member at different addresses.
const DIAL_STAGGER: Duration = Duration::from_millis(100);
/// Time after which a member that has not answered at its addresses is dialled over a carrier, too.
const CARRIED_AFTER: Duration = Duration::from_millis(500);
/// Time between two dials of one member over different carriers.
const CARRIER_STAGGER: Duration = Duration::from_millis(250);

/// Addresses of a name that are dialled, at most.
const MAX_ADDRESSES_OF_NAME: usize = 16;

/// Disconnected peers that running dials must not reach, at most; the oldest are dropped.
const MAX_SEVERED: usize = 1024;

/// Runs dials, each in a task of its own. Knows the host's dials, and the peers that the host has
/// disconnected since they began.
///
/// The peer behind a dial is known only when it answers. Until then the dial could undo a later DisconnectPeer.
pub(super) struct Dialling {
    gate: Arc<Connector>,
    names: Arc<Names>,
    bound: Bound,
    done: mpsc::UnboundedSender<DialDone>,
    begun: HostDial,
    /// Running dials of the host.
    running: BTreeSet<HostDial>,
    /// Seeds, by address.
    seeds: BTreeMap<Arc<str>, Seed>,
    /// Oldest first.
    severed: VecDeque<Severed>,
}

/// A seed of the room.
enum Seed {
    /// It is being dialled.
    Dialled,
    /// This member answered there last.
    Reached(PeerId),
    /// This node itself answered.
    Own,
}

/// A peer that the host disconnected while dials of the host were running.
struct Severed {
    peer: PeerId,
    key: Option<Fingerprint>,
    /// The last dial that had begun.
    by: HostDial,
}

impl Dialling {
    /// Starts without dials. Each result goes to `done`.
    pub(super) fn new(
        gate: Arc<Connector>,
        names: Arc<Names>,
        bound: Bound,
        done: mpsc::UnboundedSender<DialDone>,
    ) -> Self {
        Self {
            gate,
            names,
            bound,
            done,
            begun: 0,
            running: BTreeSet::new(),
            seeds: BTreeMap::new(),
            severed: VecDeque::new(),
        }
    }

    /// Dials a member for the core. `carried` are the virtual addresses at which its carriers reach it.
    pub(super) fn dial(&self, dial: Dial, carried: Vec<SocketAddr>) {
        let gate = Arc::clone(&self.gate);
        let peer = dial.peer.clone();
        let run = async move { dial_member(&gate, dial, carried).await };
        self.spawn(run, |result| DialDone::Core(peer, result));
    }

    /// Dials an address for the host.
    pub(super) fn connect(&mut self, text: String, target: Target) {
        self.begun += 1;
        let number = self.begun;
        self.running.insert(number);
        let run = self.dial_target(target, Some(number));
        self.spawn(run, move |result| DialDone::Host(number, text, result));
    }

    /// Dials a stranger that a relay presents, at its virtual address there.
    pub(super) fn dial_stranger(
        &self,
        relay: RelayNumber,
        key: Fingerprint,
        address: SocketAddr,
        answers_within: Duration,
    ) {
        let gate = Arc::clone(&self.gate);
        let run = async move {
            let progress = Progress::new(gate.handshake_timeout);
            let request = DialRequest {
                address,
                expected: Some(key),
                by_hand: None,
                progress: &progress,
                is_hearsay: false,
                answers_within: Some(answers_within),
                named_by: Some(relay),
                turn: None,
            };
            gate.dial(request).await
        };
        self.spawn(run, move |result| DialDone::Stranger(relay, key, result));
    }

    /// Runs a dial. Each dial ends exactly once, even one that panics.
    fn spawn(
        &self,
        dial: impl Future<Output = Result<PeerId, Refused>> + Send + 'static,
        ended: impl FnOnce(Result<PeerId, Refused>) -> DialDone + Send + 'static,
    ) {
        let done = self.done.clone();
        let dial = tokio::spawn(dial);
        tokio::spawn(async move {
            // The panic is already logged.
            let result = dial.await;
            let result = result.unwrap_or_else(|_| Err(Code::InternalError.into()));
            // Fails only without a driver.
            let _ = done.send(ended(result));
        });
    }

    fn dial_target(
        &self,
        target: Target,
        number: Option<HostDial>,
    ) -> impl Future<Output = Result<PeerId, Refused>> + Send + 'static {
        let (gate, names) = (Arc::clone(&self.gate), Arc::clone(&self.names));
        let bound = self.bound;
        async move { dial_target(&gate, &names, &target, bound, number).await }
    }

    /// Dials the seeds that the election asks for, unless they are linked or being dialled.
    pub(super) fn dial_seeds(&mut self, seeds: Vec<Arc<str>>, is_linked: impl Fn(&PeerId) -> bool) {
        for seed in seeds {
            let needs_none = match self.seeds.get(&seed) {
                Some(Seed::Dialled | Seed::Own) => true,
                Some(Seed::Reached(peer)) => is_linked(peer),
                None => false,
            };
            // The options of the room hold no other addresses.
            let target = parse_pasted_target(&seed).ok().filter(|_| !needs_none);
            let Some(target) = target else {
                continue;
            };
            self.seeds.insert(Arc::clone(&seed), Seed::Dialled);
            let run = self.dial_target(target, None);
            self.spawn(run, |result| DialDone::Seed(seed, result));
        }
    }

    /// Records the end of a dial of a seed.
    pub(super) fn seed_dial_ended(&mut self, seed: &Arc<str>, result: Result<PeerId, Refused>) {
        match result {
            Ok(peer) => {
                self.seeds.insert(Arc::clone(seed), Seed::Reached(peer));
            }
            Err(refused) if refused.code == Code::InvalidArgument => {
                self.seeds.insert(Arc::clone(seed), Seed::Own);
            }
            Err(refused) => {
                tracing::debug!(%seed, code = ?refused.code, "a seed was not reached");
                self.seeds.remove(seed);
            }
        }
    }

    /// Whether dials of the host or of seeds are running.
    pub(super) fn is_dialling(&self) -> bool {
        let mut seeds = self.seeds.values();
        !self.running.is_empty() || seeds.any(|seed| matches!(seed, Seed::Dialled))
    }

    /// Records the end of a dial of the host.
    pub(super) fn host_dial_ended(&mut self, dial: HostDial) {
        self.running.remove(&dial);
        let oldest = self.running.first().copied();
        self.severed
            .retain(|severed| oldest.is_some_and(|oldest| oldest <= severed.by));
    }

    /// Keeps running dials from reaching a peer that the host disconnects.
    pub(super) fn sever(&mut self, peer: &PeerId, key: Option<Fingerprint>) {
        let Some(by) = self.running.last().copied() else {
            return;
        };
        self.severed.retain(|severed| severed.peer != *peer);
        if self.severed.len() >= MAX_SEVERED {
            self.severed.pop_front();
        }
        let peer = peer.clone();
        self.severed.push_back(Severed { peer, key, by });
    }

    /// Whether the host has disconnected the peer with that key, or with that name if it is known, since
    /// this dial of the host began.
    pub(super) fn is_severed(
        &self,
        dial: Option<HostDial>,
        peer: Option<&PeerId>,
        key: Fingerprint,
    ) -> bool {
        dial.is_some_and(|dial| {
            self.severed.iter().any(|severed| {
                dial <= severed.by && (Some(&severed.peer) == peer || severed.key == Some(key))
            })
        })
    }
}

/// Result of a dial.
pub(super) enum DialDone {
    /// A dial that the core asked for.
    Core(PeerId, Result<PeerId, Refused>),
    /// A dial that the host asked for.
    Host(HostDial, String, Result<PeerId, Refused>),
    /// A dial of a stranger that a relay presents.
    Stranger(RelayNumber, Fingerprint, Result<PeerId, Refused>),
    /// A dial of a seed.
    Seed(Arc<str>, Result<PeerId, Refused>),
}

/// The core's input for the end of a dial that it asked for.
pub(super) fn core_dial_ended(
    node: &Node,
    peer: PeerId,
    result: Result<PeerId, Refused>,
) -> Option<Input> {
    let is_lost = || node.absent().any(|lost| *lost == peer);
    let permanent = match result {
        Err(refused) => {
            tracing::debug!(%peer, code = ?refused.code, "a dial failed");
            // A single member's claim counts only if no other member could contradict it: a leader notifies
            // the members that are linked to it.
            let alone = node.membership().is_empty();
            if refused.kicked && alone && is_lost() {
                return Some(Input::KickedOut);
            }
            // The peer's own dial was faster, and that link is lost again by now.
            let once_more = refused.code == Code::AlreadyConnected && is_lost();
            is_permanent(refused.code) && !once_more
        }
        Ok(_) if node.membership().get(&peer).is_some() => return None,
        // The key's holder has another id than introduced, or is gone again.
        Ok(_) => false,
    };
    Some(Input::DialFailed { peer, permanent })
}

/// The host's result of a dial of its own.
pub(super) fn connection_result(
    target: String,
    result: Result<PeerId, Refused>,
) -> ConnectionResult {
    let (peer, refused) = match result {
        Ok(peer) => (Some(peer), Code::Ok.into()),
        Err(refused) => (None, refused),
    };
    ConnectionResult {
        target,
        success: matches!(refused.code, Code::Ok | Code::AlreadyConnected),
        code: refused.code.value(),
        peer,
        reason: refused.reason,
        bytes: refused.bytes,
    }
}

/// Dials a member at all of its addresses, staggered by [`DIAL_STAGGER`], and over its carriers, if there are any: over
/// relays at once, since a direct link takes over later, and over members after a moment. The first link wins. With a port at a
/// TURN server the member may dial this node there; where plain UDP is blocked, its addresses are dialled from there.
async fn dial_member(
    gate: &Arc<Connector>,
    dial: Dial,
    carried: Vec<SocketAddr>,
) -> Result<PeerId, Refused> {
    let mut attempts = JoinSet::new();
    let turn = gate.tunnels.turn();
    for address in &dial.addresses {
        turn.admit(address.at);
    }
    let addresses = dial.addresses.iter();
    let from_turn: Vec<_> = match turn.is_only_way() {
        true => addresses
            .filter_map(|address| Some((turn.way_to(address.at)?, !address.has_answered)))
            .collect(),
        false => Vec::new(),
    };
    let mut direct = dial.addresses.len() + from_turn.len();
    let waits = (0_u32..).map(|at| DIAL_STAGGER * at);
    let addresses = dial.addresses.into_iter();
    let addresses = addresses.map(|address| (address.at, !address.has_answered));
    let carried = carried.into_iter().map(|address| (address, false));
    let (lasts, carried_lasts) = (dial.lasts, dial.carried_lasts);
    // A reachable member answers before that.
    let first = match direct {
        0 => Duration::ZERO,
        _ => CARRIED_AFTER.min(gate.handshake_timeout / 2),
    };
    let (relays, members): (Vec<_>, Vec<_>) =
        carried.partition(|(at, _)| carried_by(*at) == Some(CarrierKind::Relay));
    let carried_waits = |first| (0_u32..).map(move |at| first + CARRIER_STAGGER * at);
    let carried = relays.into_iter().zip(carried_waits(Duration::ZERO));
    let carried = carried.chain(members.into_iter().zip(carried_waits(first)));
    let turn_waits = (0_u32..).map(|at| TURN_AFTER + DIAL_STAGGER * at);
    let from_turn = from_turn.into_iter().zip(turn_waits);
    let dials = addresses.zip(waits).chain(from_turn).chain(carried);
    for ((address, is_hearsay), wait) in dials {
        let gate = Arc::clone(gate);
        attempts.spawn(async move {
            tokio::time::sleep(wait).await;
            let progress = Progress::new(gate.handshake_timeout);
            let is_direct = Path::to(address).is_direct();
            let request = DialRequest {
                address,
                expected: Some(dial.key),
                by_hand: None,
                progress: &progress,
                is_hearsay,
                answers_within: match is_direct {
                    true => lasts.or(is_hearsay.then_some(BRIEF_DIAL)),
                    false => carried_lasts,
                },
                named_by: None,
                turn: None,
            };
            (is_direct, gate.dial(request).await)
        });
    }
    let mut result = Err(Code::ConnectionFailed.into());
    while let Some(ended) = attempts.join_next().await {
        let Ok((is_direct, ended)) = ended else {
            continue;
        };
        direct -= usize::from(is_direct);
        match ended {
            Ok(peer) => return Ok(peer),
            // Over a carrier the same refusal would follow.
            Err(refused) if is_permanent(refused.code) && is_direct && direct == 0 => {
                return Err(refused);
            }
            // Another process may have answered at that address: another try may still succeed.
            Err(refused) if is_permanent(refused.code) && attempts.is_empty() => {
                result = Err(refused);
            }
            Err(refused) if !is_permanent(refused.code) => result = Err(refused),
            Err(_) => {}
        }
    }
    result
}

/// Resolves and dials a target. Seeds have no `number`, and a seed with a link is not dialled.
async fn dial_target(
    gate: &Arc<Connector>,
    names: &Names,
    target: &Target,
    bound: Bound,
    number: Option<HostDial>,
) -> Result<PeerId, Refused> {
    let progress = Progress::new(gate.handshake_timeout);
    let addresses = match &target.host {
        Host::Ip(_) | Host::LinkLocal { .. } => target.socket_addr().into_iter().collect(),
        Host::Name(name) => {
            let lookup = progress.within(names.look_up(name, target.port)).await;
            let found = lookup.unwrap_or_else(|overdue| {
                let name = name.clone();
                Err(LookupError::NoAnswer { name, overdue })
            });
            let mut addresses = found.map_err(|error| not_resolved(&error))?;
            addresses.truncate(MAX_ADDRESSES_OF_NAME);
            addresses
        }
    };
    // The resolver's time is over, and each address has its own.
    progress.reached(Step::Begun);
    if number.is_none() && gate.is_linked(&addresses).await {
        return Err(Code::AlreadyConnected.into());
    }
    dial_any(gate, &addresses, bound, number, &progress).await
}

/// Dials addresses of one machine, staggered, until a room answers at one of them. The exchanges run one at a
/// time: each is a guess that the other machine counts.
async fn dial_any(
    gate: &Arc<Connector>,
    addresses: &[SocketAddr],
    bound: Bound,
    number: Option<HostDial>,
    progress: &Progress,
) -> Result<PeerId, Refused> {
    let is_own = |address: &SocketAddr| bound.is_own(*address);
    let mut result = match addresses.iter().any(is_own) {
        true => Err(Code::InvalidArgument.into()),
        false => Err(Code::ConnectionFailed.into()),
    };
    let others = addresses
        .iter()
        .copied()
        .filter(|address| !is_own(address) && is_dialable(*address) && bound.reaches(*address));
    let others: Vec<_> = others.collect();
    let from_turn = match gate.tunnels.turn().is_configured() {
        true => others.iter().copied().filter_map(through_turn).collect(),
        false => Vec::new(),
    };
    let waits = |first: Duration| (0_u32..).map(move |at| first + DIAL_STAGGER * at);
    let others = others.into_iter().zip(waits(Duration::ZERO));
    let from_turn = from_turn.into_iter().zip(waits(TURN_AFTER));
    let turn = Arc::<tokio::sync::Mutex<()>>::default();
    let mut attempts = JoinSet::new();
    for (address, wait) in others.chain(from_turn) {
        let (gate, turn, progress) = (Arc::clone(gate), Arc::clone(&turn), progress.branch());
        let is_plain = behind_turn(address).is_none();
        let dialled = async move {
            tokio::time::sleep(wait).await;
            if !is_plain {
                // The dial's own limit holds for all of it.
                let opened = progress.within(gate.tunnels.turn().is_open()).await;
                let way = gate.tunnels.turn().way_to(on_the_network(address));
                opened.ok().and(way).ok_or_else(|| no_answer_at(address))?;
            }
            let request = DialRequest {
                address,
                expected: None,
                by_hand: number,
                progress: &progress,
                is_hearsay: false,
                answers_within: None,
                named_by: None,
                turn: Some(&turn),
            };
            tokio::select! {
                dialled = gate.dial(request) => dialled,
                () = socket::refused(address) => Err(nothing_listens(address)),
            }
        };
        attempts.spawn(async move { (is_plain, dialled.await) });
    }
    let mut has_failed = false;
    while let Some(ended) = attempts.join_next().await {
        let refused = match ended {
            Ok((_, Ok(peer))) => return Ok(peer),
            // Any other failure is more use to the host than silence behind a TURN server.
            Ok((false, Err(refused))) if has_failed && refused.code == Code::Timeout => continue,
            Ok((_, Err(refused))) => refused,
            Err(_) => Code::InternalError.into(), // it panicked, which is already logged
        };
        has_failed = true;
        let is_final = !may_answer_elsewhere(refused.code);
        result = Err(refused);
        if is_final {
            break;
        }
    }
    result
}

/// Whether no room has answered at an address: a room may answer at another address of the same machine.
fn may_answer_elsewhere(code: Code) -> bool {
    matches!(
        code,
        Code::ConnectionFailed | Code::Timeout | Code::RateLimited | Code::InternalError
    )
}

fn not_resolved(error: &LookupError) -> Refused {
    Refused::because(Code::NameNotResolved, error.to_string())
}

/// The error where neither UDP nor a TURN server leads to an address.
fn no_answer_at(address: SocketAddr) -> Refused {
    let address = on_the_network(address);
    let why = format!(
        "{address} did not answer, and no TURN server forwards to it; check the address and the port, and the firewalls of both machines"
    );
    Refused::because(Code::Timeout, why)
}

fn nothing_listens(address: SocketAddr) -> Refused {
    let why = format!("nothing listens at {address}, as the system there reports");
    Refused::because(Code::ConnectionFailed, why)
}

/// Whether another dial would fail in the same way.
fn is_permanent(code: Code) -> bool {
    matches!(
        code,
        Code::SessionMismatch
            | Code::AuthenticationFailed
            | Code::VersionMismatch
            | Code::PolicyMismatch
            | Code::Rejected
            | Code::AlreadyConnected
    )
}
