//! A lease of this node: its keep-alives, and this node's own clock for its end.

use crate::election::engine::{Answer, Call, Failure, FailureKind, Lease, Request};
use crate::time::{Duration, Time};

use super::calls::{Calls, Owner, Pace};

/// Keep-alives sent per time to live of a lease.
const KEEP_ALIVES_PER_TTL: u32 = 4;
/// Divisor of the time to live: a lease counts as lost `ttl / MARGIN` before the store can end it.
const MARGIN: u32 = 3;

/// A lease, from its grant to its end.
#[derive(Debug)]
pub(super) struct Session {
    owner: Owner,
    /// The requested time to live.
    ttl: Duration,
    /// Whether a later process may go on with its lease.
    is_kept: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// No lease.
    Off,
    /// A grant failed.
    Pausing { until: Time },
    /// A grant is pending.
    Granting { call: Call, sent: Time },
    /// The lease of the previous process, which may still live.
    Checking { lease: Lease, ask: Ask },
    /// The lease lives.
    Live(Live),
    /// The lease is lost here, or not needed. The store may not know that yet; nothing new begins before it does.
    Ending {
        lease: Lease,
        ask: Ask,
        /// Whether no later process can find it.
        is_forgotten: bool,
    },
}

/// A request that is repeated until it is answered.
#[derive(Debug)]
enum Ask {
    At(Time),
    Open { call: Call, sent: Time },
}

impl Ask {
    fn is(&self, asked: Call) -> bool {
        matches!(self, Self::Open { call, .. } if *call == asked)
    }

    fn deadline(&self) -> Option<Time> {
        match self {
            Self::At(at) => Some(*at),
            Self::Open { .. } => None,
        }
    }

    /// The time at which the open request was sent.
    fn sent(&self) -> Time {
        match self {
            Self::At(at) | Self::Open { sent: at, .. } => *at,
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.deadline().is_some_and(|at| now >= at)
    }
}

#[derive(Debug)]
struct Live {
    lease: Lease,
    ttl: Duration,
    /// Whether the lease is the previous process's.
    is_inherited: bool,
    /// The time from which the lease counts as lost. The store ends it later.
    until: Time,
    keep_alive: Ask,
}

/// Event of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A lease was granted.
    Opened(Lease),
    /// The lease is lost, and with it every key under it.
    Lost,
}

impl Session {
    /// Starts without a lease, or with the lease of the previous process. `is_kept` is whether a later process may go
    /// on with the lease.
    pub(super) fn new(
        now: Time,
        owner: Owner,
        ttl: Duration,
        is_kept: bool,
        kept: Option<Lease>,
    ) -> Self {
        let state = kept.map_or(State::Off, |lease| State::Checking {
            lease,
            ask: Ask::At(now),
        });
        Self {
            owner,
            ttl,
            is_kept,
            state,
        }
    }

    /// The lease, while it lives.
    pub(super) fn lease(&self) -> Option<Lease> {
        match &self.state {
            State::Live(live) => Some(live.lease),
            _ => None,
        }
    }

    /// Whether the lease is the previous process's.
    pub(super) fn is_inherited(&self) -> bool {
        matches!(&self.state, State::Live(live) if live.is_inherited)
    }

    /// The time at which the lease counts as lost, if no keep-alive is answered before.
    pub(super) fn until(&self) -> Option<Time> {
        match &self.state {
            State::Live(live) => Some(live.until),
            _ => None,
        }
    }

    /// The lease that no later process must find: it is about to be revoked, and a late revocation would end that
    /// process's leadership.
    pub(super) fn to_forget(&self) -> Option<Lease> {
        match &self.state {
            State::Ending {
                lease,
                is_forgotten: false,
                ..
            } => Some(*lease),
            _ => None,
        }
    }

    /// No later process can find the lease.
    pub(super) fn forgotten(&mut self, forgotten: Lease) {
        if let State::Ending {
            lease,
            is_forgotten,
            ..
        } = &mut self.state
        {
            *is_forgotten |= *lease == forgotten;
        }
    }

    /// Whether the store has no lease of this session, as far as this node knows.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Off | State::Pausing { .. })
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        match &self.state {
            State::Off | State::Granting { .. } => None,
            State::Pausing { until } => Some(*until),
            State::Ending {
                is_forgotten: false,
                ..
            } => None,
            State::Checking { ask, .. } | State::Ending { ask, .. } => ask.deadline(),
            State::Live(live) => live
                .keep_alive
                .deadline()
                .into_iter()
                .chain([live.until])
                .min(),
        }
    }

    /// Whether the lease is lost because it has run out.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        match &self.state {
            State::Live(live) if now >= live.until => {
                tracing::warn!("etcd: the lease was not kept alive in time");
                self.end(now);
                true
            }
            _ => false,
        }
    }

    /// Ends the lease; the claim has given up everything under it. A lease that is being granted ends when its id is
    /// known: otherwise the store would keep it for its time to live.
    pub(super) fn end(&mut self, now: Time) {
        self.state = match self.state {
            State::Live(Live { lease, .. }) | State::Checking { lease, .. } => State::Ending {
                lease,
                ask: Ask::At(now),
                is_forgotten: !self.is_kept,
            },
            State::Pausing { .. } | State::Off => State::Off,
            State::Granting { .. } | State::Ending { .. } => return,
        };
    }

    /// Drops a lease that another process uses now, without revoking it.
    pub(super) fn abandon(&mut self) {
        self.state = State::Off;
    }

    /// Performs the actions that are due. `wanted` is whether there should be a lease.
    pub(super) fn advance(&mut self, now: Time, wanted: bool, calls: &mut Calls) {
        if !wanted && !self.is_over() {
            self.end(now);
        }
        match &mut self.state {
            State::Off if wanted => self.grant(now, calls),
            State::Pausing { .. } if !wanted => self.state = State::Off,
            State::Pausing { until } if now >= *until => self.grant(now, calls),
            State::Checking { lease, ask } if ask.is_due(now) => {
                let call = calls.ask(&self.owner, Request::KeepAlive { lease: *lease });
                *ask = Ask::Open { call, sent: now };
            }
            State::Ending {
                lease,
                ask,
                is_forgotten: true,
            } if ask.is_due(now) => {
                let call = calls.ask(&self.owner, Request::Revoke { lease: *lease });
                *ask = Ask::Open { call, sent: now };
            }
            State::Live(live) if live.keep_alive.is_due(now) => {
                let request = Request::KeepAlive { lease: live.lease };
                let call = calls.ask(&self.owner, request);
                live.keep_alive = Ask::Open { call, sent: now };
            }
            _ => {}
        }
    }

    fn grant(&mut self, now: Time, calls: &mut Calls) {
        let call = calls.ask(&self.owner, Request::Grant { ttl: self.ttl });
        self.state = State::Granting { call, sent: now };
    }

    /// Handles the store's answer to one of its calls.
    pub(super) fn answer(
        &mut self,
        now: Time,
        call: Call,
        answer: &Answer,
        pace: &mut Pace,
    ) -> Option<Change> {
        match &mut self.state {
            State::Granting { call: open, sent } if *open == call => {
                let Answer::Granted { lease, ttl } = *answer else {
                    let until = pace.later(now);
                    self.state = State::Pausing { until };
                    return None;
                };
                let sent = *sent;
                self.state = State::Live(Live::new(lease, ttl, sent, false));
                Some(Change::Opened(lease))
            }
            State::Checking { lease, ask } if ask.is(call) => {
                let (lease, sent) = (*lease, ask.sent());
                match answer {
                    Answer::Alive { ttl } if !ttl.is_zero() => {
                        self.state = State::Live(Live::new(lease, *ttl, sent, true));
                        Some(Change::Opened(lease))
                    }
                    _ if is_gone(answer) => {
                        self.state = State::Off;
                        None
                    }
                    _ => {
                        *ask = Ask::At(pace.later(now));
                        None
                    }
                }
            }
            State::Live(live) if live.keep_alive.is(call) => {
                match answer {
                    Answer::Alive { ttl } if !ttl.is_zero() => {
                        let sent = live.keep_alive.sent();
                        *live = Live::new(live.lease, *ttl, sent, live.is_inherited);
                    }
                    _ if is_gone(answer) => {
                        tracing::warn!("etcd: the lease has ended at the server");
                        self.state = State::Off;
                        return Some(Change::Lost);
                    }
                    // Retries soon: the lease is running out.
                    _ => live.keep_alive = Ask::At(now + live.ttl / (KEEP_ALIVES_PER_TTL * 4)),
                }
                None
            }
            State::Ending { ask, .. } if ask.is(call) => {
                match answer {
                    Answer::Done => self.state = State::Off,
                    _ if is_gone(answer) => self.state = State::Off,
                    _ => *ask = Ask::At(pace.later(now)),
                }
                None
            }
            _ => None,
        }
    }
}

impl Live {
    /// The store counts from when it read the request, which is no earlier than `sent`.
    fn new(lease: Lease, ttl: Duration, sent: Time, is_inherited: bool) -> Self {
        Self {
            lease,
            ttl,
            is_inherited,
            until: sent + (ttl - ttl / MARGIN),
            keep_alive: Ask::At(sent + ttl / KEEP_ALIVES_PER_TTL),
        }
    }
}

/// Whether the store answers that the lease does not exist.
fn is_gone(answer: &Answer) -> bool {
    match answer {
        Answer::Alive { ttl } => ttl.is_zero(),
        Answer::Failed(Failure { kind, .. }) => *kind == FailureKind::LeaseGone,
        _ => false,
    }
}
