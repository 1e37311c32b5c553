//! Dials: those that the core asks for, and those of the host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::core::id::{Fingerprint, PeerId};
use crate::core::introductions::{Dial, is_dialable};
use crate::core::node::{Input, Node};
use crate::core::virtual_address::virtual_address;
use crate::dispatch::ConnectionResult;
use crate::error::Code;
use crate::net::dial::{Connector, HostDial, Refused};
use crate::net::socket::{self, Bound};
use crate::target::{Host, Target, parse_target};

/// Time between two dials of one member at different addresses.
const DIAL_STAGGER: Duration = Duration::from_millis(100);

/// Disconnected peers that running dials are kept from, at most; the oldest give way.
const MAX_SEVERED: usize = 1024;

/// Runs dials, each in a task of its own, and knows which are the host's and whom it disconnected since they began.
///
/// Whom a dial reaches is known only when it is there: until then it could undo a later DisconnectPeer.
pub(super) struct Dialling {
    gate: Arc<Connector>,
    bound: Bound,
    done: mpsc::UnboundedSender<DialDone>,
    begun: HostDial,
    /// Those of the host.
    running: BTreeSet<HostDial>,
    /// Seeds, by their addresses.
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

/// A peer that the host disconnected while dials of its own were running.
struct Severed {
    peer: PeerId,
    key: Option<Fingerprint>,
    /// The last dial that had begun.
    by: HostDial,
}

impl Dialling {
    /// How each dial ended goes to `done`.
    pub(super) fn new(
        gate: Arc<Connector>,
        bound: Bound,
        done: mpsc::UnboundedSender<DialDone>,
    ) -> Self {
        Self {
            gate,
            bound,
            done,
            begun: 0,
            running: BTreeSet::new(),
            seeds: BTreeMap::new(),
            severed: VecDeque::new(),
        }
    }

    /// The core wants to be linked to a member.
    pub(super) fn dial(&self, dial: Dial) {
        let gate = Arc::clone(&self.gate);
        let done = self.done.clone();
        tokio::spawn(async move {
            let peer = dial.peer.clone();
            let result = dial_member(&gate, dial).await;
            // Without a driver nobody waits for it.
            let _ = done.send(DialDone::Core(peer, result));
        });
    }

    /// The host wants a link to the member at an address.
    pub(super) fn connect(&mut self, text: String, target: Target) {
        self.begun += 1;
        let number = self.begun;
        self.running.insert(number);
        let gate = Arc::clone(&self.gate);
        let done = self.done.clone();
        let bound = self.bound;
        tokio::spawn(async move {
            let result = dial_target(&gate, &target, bound, Some(number)).await;
            let _ = done.send(DialDone::Host(number, text, result));
        });
    }

    /// The election wants links to these seeds: dials those that are not linked and are not being dialled.
    pub(super) fn dial_seeds(&mut self, seeds: Vec<Arc<str>>, is_linked: impl Fn(&PeerId) -> bool) {
        for seed in seeds {
            let needs_none = match self.seeds.get(&seed) {
                Some(Seed::Dialled | Seed::Own) => true,
                Some(Seed::Reached(peer)) => is_linked(peer),
                None => false,
            };
            // The options of the room hold no other addresses.
            let target = parse_target(&seed).ok().filter(|_| !needs_none);
            let Some(target) = target else {
                continue;
            };
            self.seeds.insert(Arc::clone(&seed), Seed::Dialled);
            let gate = Arc::clone(&self.gate);
            let done = self.done.clone();
            let bound = self.bound;
            tokio::spawn(async move {
                let result = dial_target(&gate, &target, bound, None).await;
                let _ = done.send(DialDone::Seed(seed, result));
            });
        }
    }

    /// A dial of a seed has ended.
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

    /// Whether dials of the host or of seeds go on.
    pub(super) fn is_dialling(&self) -> bool {
        let mut seeds = self.seeds.values();
        !self.running.is_empty() || seeds.any(|seed| matches!(seed, Seed::Dialled))
    }

    /// A dial of the host has ended.
    pub(super) fn host_dial_ended(&mut self, dial: HostDial) {
        self.running.remove(&dial);
        let oldest = self.running.first().copied();
        self.severed
            .retain(|severed| oldest.is_some_and(|oldest| oldest <= severed.by));
    }

    /// The host disconnects a peer: no dial that is running reaches it.
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

    /// Whether the host disconnected the peer of that key, and of that name where it is known, after it began this
    /// dial of its own.
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

/// How a dial ended.
pub(super) enum DialDone {
    /// One that the core asked for.
    Core(PeerId, Result<PeerId, Refused>),
    /// One that the host asked for.
    Host(HostDial, String, Result<PeerId, Refused>),
    /// One of a seed.
    Seed(Arc<str>, Result<PeerId, Refused>),
}

/// What the core hears of the end of a dial that it asked for.
pub(super) fn core_dial_ended(
    node: &Node,
    peer: PeerId,
    result: Result<PeerId, Refused>,
) -> Option<Input> {
    let is_lost = || node.absent().any(|lost| *lost == peer);
    let permanent = match result {
        Err(refused) => {
            tracing::debug!(%peer, code = ?refused.code, "a dial failed");
            // One member's word counts only where nobody else could say otherwise: a leader tells those it has a link to.
            let alone = node.membership().is_empty();
            if refused.kicked && alone && is_lost() {
                return Some(Input::KickedOut);
            }
            // Its own dial was faster, and that link is lost again by now.
            let once_more = refused.code == Code::AlreadyConnected && is_lost();
            is_hopeless(refused.code) && !once_more
        }
        Ok(_) if node.membership().get(&peer).is_some() => return None,
        // The holder of the key has another id than the introduction said; or it is gone again.
        Ok(_) => false,
    };
    Some(Input::DialFailed { peer, permanent })
}

/// What the host receives about the end of a dial of its own.
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

/// Dials a member at all of its addresses, one shortly after the other, and at last through the leader, if that is allowed;
/// the first link is taken.
async fn dial_member(gate: &Arc<Connector>, dial: Dial) -> Result<PeerId, Refused> {
    let mut attempts = JoinSet::new();
    let mut wait = Duration::ZERO;
    let mut direct = dial.addresses.len();
    for address in dial.addresses {
        let gate = Arc::clone(gate);
        attempts.spawn(async move {
            tokio::time::sleep(wait).await;
            let limit = gate.handshake_timeout;
            (true, gate.dial(address, Some(dial.key), None, limit).await)
        });
        wait += DIAL_STAGGER;
    }
    if dial.through_leader {
        let gate = Arc::clone(gate);
        // A member that can be reached answers before that.
        let wait = match direct {
            0 => Duration::ZERO,
            _ => gate.handshake_timeout / 2,
        };
        attempts.spawn(async move {
            tokio::time::sleep(wait).await;
            let limit = gate.handshake_timeout;
            let address = virtual_address(dial.key);
            (false, gate.dial(address, Some(dial.key), None, limit).await)
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
            // It says the same through the leader.
            Err(refused) if is_hopeless(refused.code) && is_direct && direct == 0 => {
                return Err(refused);
            }
            // What one address says may be another process's word: another try stays worth while.
            Err(refused) if is_hopeless(refused.code) && attempts.is_empty() => {
                result = Err(refused);
            }
            Err(refused) if !is_hopeless(refused.code) => result = Err(refused),
            Err(_) => {}
        }
    }
    result
}

/// Resolves and dials, within the handshake's time for all addresses together. Seeds have no `number`; one to which there
/// is a link is not dialled.
async fn dial_target(
    gate: &Connector,
    target: &Target,
    bound: Bound,
    number: Option<HostDial>,
) -> Result<PeerId, Refused> {
    let limit = Instant::now() + gate.handshake_timeout;
    let addresses: Vec<SocketAddr> = match &target.host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, target.port)],
        Host::Name(name) => {
            let lookup = tokio::net::lookup_host((name.as_str(), target.port));
            match timeout(gate.handshake_timeout, lookup).await {
                Ok(Ok(addresses)) => addresses.collect(),
                Ok(Err(error)) => {
                    tracing::debug!(%name, %error, "a name was not resolved");
                    return Err(Code::ConnectionFailed.into());
                }
                Err(_) => return Err(Code::Timeout.into()),
            }
        }
    };
    if number.is_none() && gate.is_linked(&addresses).await {
        return Err(Code::AlreadyConnected.into());
    }
    let mut result = Err(Code::ConnectionFailed.into());
    for (index, address) in addresses.iter().enumerate() {
        if bound.is_own(*address) {
            result = Err(Code::InvalidArgument.into());
            continue;
        }
        if !is_dialable(*address) || !bound.reaches(*address) {
            continue;
        }
        let left = limit.saturating_duration_since(Instant::now());
        let addresses_left = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        result = tokio::select! {
            dialled = gate.dial(*address, None, number, left / addresses_left) => dialled,
            () = socket::refused(*address) => Err(Code::ConnectionFailed.into()),
        };
        let unreachable =
            |refused: &Refused| matches!(refused.code, Code::ConnectionFailed | Code::Timeout);
        if !result.as_ref().is_err_and(unreachable) {
            break;
        }
    }
    result
}

/// Whether another dial cannot end better.
fn is_hopeless(code: Code) -> bool {
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
