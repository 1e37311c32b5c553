//! Relays: what they report, and the strangers whom they present.

use tokio::time::Instant;

use super::super::strangers::{ANSWERS_WITHIN, Situation};
use super::Driver;
use crate::core::event::FoundBy;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::node::{Event, Input, RelayChange};
use crate::core::path::{Carrier, RelayNumber};
use crate::error::Code;
use crate::net::dial::Refused;
use crate::net::rendezvous::News;
use crate::net::tunnel::Via;

impl Driver {
    /// Handles a report of a task that holds the link to a relay.
    pub(super) fn relay_reports(&mut self, news: News) {
        match news {
            News::Change(relay, change) => {
                match change {
                    RelayChange::Up { .. } | RelayChange::Down => self.strangers.clear(relay),
                    RelayChange::Observed(_) => {}
                    RelayChange::Present(key) => self.presented(relay, key),
                    RelayChange::Gone(key) => self.strangers.gone(relay, key),
                }
                self.feed(Input::Relay { relay, change });
                self.dial_strangers();
            }
            News::Report(report) => self.notify(Event::Relay(report)),
        }
    }

    fn presented(&mut self, relay: RelayNumber, key: Fingerprint) {
        let core = &self.node.core;
        let situation = Situation {
            own: self.gate.identity.fingerprint(),
            is_alone: core.membership().is_empty() && core.absent().next().is_none(),
        };
        self.strangers
            .present(Instant::now(), relay, key, situation);
    }

    /// Notifies the core that the holder of a key is at the relay over which its link came, whatever the relay has presented.
    pub(super) fn came_over(&mut self, carrier: Option<&Carrier>, key: Fingerprint) {
        if let Some(Carrier::Relay(relay)) = carrier {
            self.feed(Input::Relay {
                relay: *relay,
                change: RelayChange::Present(key),
            });
        }
    }

    /// Dials the strangers that are due.
    pub(super) fn dial_strangers(&mut self) {
        if self.leave_asked || self.node.core.is_over() {
            return;
        }
        let (now, core) = (self.node.now(), &self.node.core);
        let due = self
            .strangers
            .due(Instant::now(), |key| core.knows(now, key));
        for (relay, key) in due {
            match self.tunnels.route(key, Via::Relay(relay)) {
                Some(address) => {
                    tracing::debug!(%relay, %address, "dials a stranger");
                    self.dialling
                        .dial_stranger(relay, key, address, ANSWERS_WITHIN);
                }
                None => self.stranger_dialled(relay, key, Err(Code::ConnectionFailed.into())),
            }
        }
    }

    /// Handles the end of a dial of a stranger.
    pub(super) fn stranger_dialled(
        &mut self,
        relay: RelayNumber,
        key: Fingerprint,
        result: Result<PeerId, Refused>,
    ) {
        if self.strangers.ended(Instant::now(), relay, key, &result) {
            self.gate.relays.block(relay, key);
        }
        if let Err(refused) = result {
            tracing::debug!(%relay, code = ?refused.code, "no link with a stranger");
            let named = self.shared.config.relays.get(usize::from(relay.0));
            let named = named.map_or_else(String::new, |relay| relay.text.to_string());
            self.refused(FoundBy::Relay, named, refused);
        }
        self.dial_strangers();
    }
}
