//! The TURN servers of an open room.

use super::Room;
use super::shared::HostCommand;
use crate::config::TurnServer;
use crate::core::wire::Strategy;
use crate::error::SetTurnError;

impl Room {
    /// Uses these TURN servers from now on, at most [`MAX_TURN_SERVERS`](crate::config::MAX_TURN_SERVERS). A port at a server that is
    /// among them, with the same credentials, stays.
    ///
    /// # Errors
    /// [`SetTurnError`]; nothing has changed then.
    pub fn set_turn(&self, servers: Vec<TurnServer>) -> Result<(), SetTurnError> {
        if matches!(self.shared.config.strategy, Strategy::Etcd(_)) && !servers.is_empty() {
            return Err(SetTurnError::WithEtcd);
        }
        let sent = self.shared.commands.send(HostCommand::SetTurn(servers));
        sent.map_err(|_| SetTurnError::NotInitialized)
    }
}
