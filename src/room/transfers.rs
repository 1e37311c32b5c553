//! Transfers for the host's threads.

use super::Room;
use crate::core::id::PeerId;
use crate::error::DataTransferError;
use crate::transfers::{Accept, Buffer};

impl Room {
    /// Offers a copy of `data` to a peer, with a tag of at most [`MAX_TAG_BYTES`](super::MAX_TAG_BYTES). One result
    /// follows, unless this host closes the room before. Returns the number of the transfer.
    ///
    /// # Errors
    /// [`DataTransferError`]; nothing has changed then.
    pub fn send_transfer(
        &self,
        peer: &PeerId,
        data: &[u8],
        tag: &[u8],
    ) -> Result<u64, DataTransferError> {
        let mut id = 0;
        self.send_transfer_noting(peer, data, tag, |number| id = number)?;
        Ok(id)
    }

    /// As [`Room::send_transfer`]; `note` receives the number before any thread can take the result. It must not call
    /// the room.
    pub(crate) fn send_transfer_noting(
        &self,
        peer: &PeerId,
        data: &[u8],
        tag: &[u8],
        note: impl FnOnce(u64),
    ) -> Result<(), DataTransferError> {
        self.shared.transfers.send(peer, data, tag, note)
    }

    /// Takes an offered transfer in `buffer`, which has `capacity` bytes.
    ///
    /// # Errors
    /// [`DataTransferError`]; the offer waits on then.
    pub(crate) fn accept_transfer(
        &self,
        peer: &PeerId,
        id: u64,
        buffer: Box<dyn Buffer>,
        capacity: u64,
    ) -> Result<(), DataTransferError> {
        let accept = Accept::Buffer(buffer, capacity);
        self.shared.transfers.accept(peer, id, accept)
    }

    /// Takes an offered transfer in parts, each an event.
    ///
    /// # Errors
    /// [`DataTransferError`]; the offer waits on then.
    pub fn accept_transfer_in_parts(
        &self,
        peer: &PeerId,
        id: u64,
    ) -> Result<(), DataTransferError> {
        self.shared.transfers.accept(peer, id, Accept::Parts)
    }

    /// Refuses an offered transfer, or cancels one at either end.
    ///
    /// # Errors
    /// [`DataTransferError`]; nothing has changed then.
    pub fn cancel_transfer(&self, peer: &PeerId, id: u64) -> Result<(), DataTransferError> {
        self.shared.transfers.cancel(peer, id)
    }
}
