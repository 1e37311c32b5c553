//! Calls with which the host decides who may be in the room, and who may lead it.

use std::sync::atomic::Ordering;

use super::shared::HostCommand;
use super::{HAS_FORGOTTEN_VOTES, Room};
use crate::core::election::ElectionError;
use crate::core::id::PeerId;
use crate::core::node::{Command, CommandError};
use crate::core::wire::{MAX_JOIN_PAYLOAD_BYTES, MAX_REASON_BYTES, Verdict};
use crate::error::{
    EligibilityError, JoinError, KickError, MaxPeersError, NotOpen, PriorityError, TransferError,
    UnbanError,
};

impl Room {
    /// Removes `peer` from the room, and bans it until [`Room::unban`] or the room's end. Its host receives
    /// `code` and `bytes`, at most [`MAX_REASON_BYTES`]. Only the leader may call it.
    ///
    /// # Errors
    /// [`KickError`]; nothing has changed then.
    pub fn kick(&self, peer: &PeerId, code: i32, bytes: &[u8]) -> Result<(), KickError> {
        self.kick_with(peer, code, bytes, true)
    }

    /// [`Room::kick`]; without a `ban` the peer may return.
    ///
    /// # Errors
    /// [`KickError`]; nothing has changed then.
    pub fn kick_with(
        &self,
        peer: &PeerId,
        code: i32,
        bytes: &[u8],
        ban: bool,
    ) -> Result<(), KickError> {
        let (len, max) = (bytes.len(), MAX_REASON_BYTES);
        if len > max {
            return Err(KickError::ReasonTooLong { len, max });
        }
        let command = Command::Kick {
            peer: peer.clone(),
            code,
            bytes: bytes.to_vec(),
            ban,
        };
        match self.command(command) {
            None => Err(KickError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::NotLeader)) => Err(KickError::NotLeader),
            Some(Err(CommandError::TooManyKicked(limit))) => Err(KickError::TooMany { limit }),
            Some(Err(CommandError::Oneself(id))) => Err(KickError::Myself { id }),
            Some(Err(_)) => Err(KickError::PeerNotFound { id: peer.clone() }),
        }
    }

    /// Lifts the bans of that id, and of the keys that it was banned with. Only the leader may call it.
    ///
    /// # Errors
    /// [`UnbanError`]; nothing has changed then.
    pub fn unban(&self, peer: &PeerId) -> Result<(), UnbanError> {
        match self.command(Command::Unban(peer.clone())) {
            None => Err(UnbanError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::NotLeader)) => Err(UnbanError::NotLeader),
            Some(Err(_)) => Err(UnbanError::NotBanned { id: peer.clone() }),
        }
    }

    /// Sets the maximum number of peers per member; 0 leaves only each member's own limit. Members stay even
    /// if they are more. Only the leader may call it.
    ///
    /// # Errors
    /// [`MaxPeersError`]; nothing has changed then.
    pub fn set_max_peers(&self, max_peers: u32) -> Result<(), MaxPeersError> {
        match self.command(Command::SetMaxPeers(max_peers)) {
            None => Err(MaxPeersError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(MaxPeersError::NotLeader),
        }
    }

    /// Sets the payload that this node sends when it enters a room, at most [`MAX_JOIN_PAYLOAD_BYTES`].
    ///
    /// # Errors
    /// [`JoinError`]; nothing has changed then.
    pub fn set_join_payload(&self, payload: &[u8]) -> Result<(), JoinError> {
        let (len, max) = (payload.len(), MAX_JOIN_PAYLOAD_BYTES);
        if len > max {
            return Err(JoinError::PayloadTooLong { len, max });
        }
        let command = HostCommand::SetJoinPayload(payload.to_vec());
        let sent = self.shared.commands.send(command);
        sent.map_err(|_| JoinError::NotInitialized)
    }

    /// Sets whether this host decides about newcomers while it leads.
    ///
    /// # Errors
    /// [`NotOpen`]; nothing has changed then.
    pub fn ask_host(&self, ask: bool) -> Result<(), NotOpen> {
        // The core never refuses this command.
        self.command(Command::AskHost(ask)).map(drop).ok_or(NotOpen)
    }

    /// Admits the newcomer of a JoinRequest event.
    ///
    /// # Errors
    /// [`JoinError`]; nothing has changed then.
    pub fn accept_join(&self, request: u64) -> Result<(), JoinError> {
        self.answer_join(request, Verdict::Accepted)
    }

    /// Refuses the newcomer of a JoinRequest event. Its host receives `reason` and `bytes`, at most
    /// [`MAX_REASON_BYTES`].
    ///
    /// # Errors
    /// [`JoinError`]; nothing has changed then.
    pub fn reject_join(&self, request: u64, reason: i32, bytes: &[u8]) -> Result<(), JoinError> {
        let (len, max) = (bytes.len(), MAX_REASON_BYTES);
        if len > max {
            return Err(JoinError::ReasonTooLong { len, max });
        }
        let bytes = bytes.to_vec();
        self.answer_join(request, Verdict::Rejected { reason, bytes })
    }

    fn answer_join(&self, request: u64, verdict: Verdict) -> Result<(), JoinError> {
        match self.command(Command::AnswerJoin { request, verdict }) {
            None => Err(JoinError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(JoinError::UnknownRequest { request }),
        }
    }

    /// Sets whether this node may lead. If not, it is an observer and counts for no majority.
    ///
    /// # Errors
    /// [`EligibilityError`]; nothing has changed then.
    pub fn set_eligible(&self, eligible: bool) -> Result<(), EligibilityError> {
        match self.command(Command::SetEligible(eligible)) {
            None => Err(EligibilityError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::FixedHost)) => Err(EligibilityError::FixedHost),
            Some(Err(CommandError::Election(ElectionError::NotSupported { strategy }))) => {
                Err(EligibilityError::NotSupported { strategy })
            }
            Some(Err(error)) => Err(EligibilityError::Internal {
                what: error.to_string(),
            }),
        }
    }

    /// Transfers the leadership to `peer`. Only the leader may call it.
    ///
    /// # Errors
    /// [`TransferError`]; nothing has changed then.
    pub fn transfer_leadership(&self, peer: &PeerId) -> Result<(), TransferError> {
        self.hand_over(Command::TransferLeadership(peer.clone()))
    }

    /// Transfers the leadership to the member that elections prefer. Only the leader may call it.
    ///
    /// # Errors
    /// [`TransferError`]; nothing has changed then.
    pub fn yield_leadership(&self) -> Result<(), TransferError> {
        self.hand_over(Command::YieldLeadership)
    }

    fn hand_over(&self, command: Command) -> Result<(), TransferError> {
        let refused = match self.command(command) {
            None => return Err(TransferError::NotInitialized),
            Some(Ok(())) => return Ok(()),
            Some(Err(refused)) => refused,
        };
        Err(match refused {
            CommandError::NotLeader | CommandError::Election(ElectionError::NotLeader) => {
                TransferError::NotLeader
            }
            CommandError::UnknownPeer(id)
            | CommandError::Election(ElectionError::UnknownTarget(id)) => {
                TransferError::PeerNotFound { id }
            }
            CommandError::Election(ElectionError::IneligibleTarget(_)) if self.has_fixed_host() => {
                TransferError::FixedHost
            }
            CommandError::Election(ElectionError::IneligibleTarget(id)) => {
                TransferError::Rejected {
                    id,
                    reason: "it is an observer",
                }
            }
            CommandError::Election(ElectionError::StaleTarget(id)) => TransferError::Rejected {
                id,
                reason: HAS_FORGOTTEN_VOTES,
            },
            CommandError::Election(ElectionError::NoSuccessor) => TransferError::NoSuccessor,
            CommandError::Election(ElectionError::NotSupported { strategy }) => {
                TransferError::NotSupported { strategy }
            }
            CommandError::FixedHost => TransferError::FixedHost,
            error => TransferError::Internal {
                what: error.to_string(),
            },
        })
    }

    /// Sets how much elections prefer this node; higher is preferred.
    ///
    /// # Errors
    /// [`PriorityError`]; nothing has changed then.
    pub fn set_priority(&self, priority: i32) -> Result<(), PriorityError> {
        match self.command(Command::SetPriority(priority)) {
            None => Err(PriorityError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::Election(ElectionError::NotSupported { strategy }))) => {
                Err(PriorityError::NotSupported { strategy })
            }
            Some(Err(error)) => Err(PriorityError::Internal {
                what: error.to_string(),
            }),
        }
    }

    /// Sets whether lost peers keep their places and are dialled. Otherwise a lost peer counts as left at once.
    ///
    /// # Errors
    /// [`NotOpen`]; nothing has changed then.
    pub fn set_auto_reconnect(&self, enabled: bool) -> Result<(), NotOpen> {
        let done = self.command(Command::SetAutoReconnect(enabled));
        // The core never refuses this command.
        done.map(drop).ok_or(NotOpen)?;
        self.shared.auto_reconnect.store(enabled, Ordering::Relaxed);
        Ok(())
    }

    /// Whether lost peers keep their places and are dialled.
    pub fn auto_reconnect(&self) -> bool {
        self.shared.auto_reconnect.load(Ordering::Relaxed)
    }
}
