//! The card that a room shows in the local network.

use std::net::IpAddr;
use std::sync::Arc;

use super::shared::Shared;
use super::{Card, Room};
use crate::clock::Moment;
use crate::config::Paths;
use crate::error::ShowCardError;
use crate::net::cards::packet::{MAX_SUCCESSORS, successor};
use crate::net::cards::showing::{Posted, Standing};
use crate::snapshot::PeerStatus;

impl Room {
    /// Shows `card` in the local network while this member leads, or takes it down.
    ///
    /// # Errors
    /// [`ShowCardError`]; nothing has changed then.
    pub fn show_card(&self, card: Option<Card>) -> Result<(), ShowCardError> {
        let Some(card) = card else {
            self.shared.board.send_replace(None);
            return Ok(());
        };
        if self.shared.config.paths == Paths::Relayed {
            return Err(ShowCardError::Relayed);
        }
        if let Some(IpAddr::V6(ip)) = self.bound.address
            && !ip.is_unspecified()
        {
            return Err(ShowCardError::NoIpv4);
        }
        let port = card.port;
        let posted = Posted::open(card, self.bound);
        let posted = posted.map_err(|source| ShowCardError::Socket { port, source })?;
        self.shared.board.send_replace(Some(Arc::new(posted)));
        Ok(())
    }
}

/// The room's answer to the card's task.
pub(super) fn standing(shared: &Shared) -> Standing {
    let snapshot = shared.published.load();
    let members = snapshot.peers.iter().filter(|peer| {
        matches!(
            peer.status,
            PeerStatus::Connected | PeerStatus::Reconnecting
        )
    });
    let successors = members.clone().filter_map(|peer| peer.key.as_ref());
    Standing {
        leads: snapshot.leads(Moment::now),
        // A room has far fewer.
        players: u32::try_from(members.count() + 1).unwrap_or(u32::MAX),
        rank: (snapshot.epoch, snapshot.term),
        successors: successors.map(successor).take(MAX_SUCCESSORS).collect(),
    }
}
