//! The connection ids of a relay.
//!
//! `quinn` sends a packet whose id belongs to a connection to that connection, even if it is the first one of a member that has
//! come back with a Retry token: it does not compare the id of a Retry with those in use. Its hashed ids have 24 random bits, and each
//! connection has eight ids. So with 2,048 links one dial in 1,000 gets no answer, and with 65,536 one in 32. The ids here have
//! 48 random bits, which makes it one in 500 million.

use std::fmt;

use quinn::{ConnectionId, ConnectionIdGenerator};
use quinn_proto::{InvalidCid, RandomConnectionIdGenerator};
use ring::hmac;

/// Random bytes of an id.
const RANDOM_BYTES: usize = 6;
/// Bytes of its tag, which shows that this key has made it. One foreign id in 65,536 has the right one, and costs an answer.
const TAG_BYTES: usize = 2;
const BYTES: usize = RANDOM_BYTES + TAG_BYTES;

/// Makes connection ids that a later process with the same key knows.
pub(crate) struct TaggedConnectionIds {
    key: hmac::Key,
    random: RandomConnectionIdGenerator,
}

impl TaggedConnectionIds {
    pub(crate) fn new(key: hmac::Key) -> Self {
        Self {
            key,
            random: RandomConnectionIdGenerator::new(RANDOM_BYTES),
        }
    }

    fn tagged(&self, random: &[u8]) -> [u8; BYTES] {
        let tag = hmac::sign(&self.key, random);
        let mut id = [0; BYTES];
        for (byte, value) in id.iter_mut().zip(random.iter().chain(tag.as_ref())) {
            *byte = *value;
        }
        id
    }
}

impl fmt::Debug for TaggedConnectionIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaggedConnectionIds")
            .finish_non_exhaustive()
    }
}

impl ConnectionIdGenerator for TaggedConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let random = self.random.generate_cid();
        ConnectionId::new(&self.tagged(&random))
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let random = id.get(..RANDOM_BYTES).ok_or(InvalidCid)?;
        match self.tagged(random) == **id {
            true => Ok(()),
            false => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ids(key: u8) -> TaggedConnectionIds {
        TaggedConnectionIds::new(hmac::Key::new(hmac::HMAC_SHA256, &[key; 32]))
    }

    #[test]
    fn the_ids_of_a_full_relay_and_of_all_who_dial_it_differ() {
        const LINKS: usize = 65_536;
        const IDS_OF_A_LINK: usize = 8;
        let mut ids = ids(1);
        let all: BTreeSet<[u8; BYTES]> = (0..LINKS * IDS_OF_A_LINK)
            .map(|_| ids.generate_cid()[..].try_into().expect("8 bytes"))
            .collect();
        // Two of half a million ids are equal in one of 2,000 runs, and three in none.
        assert!(all.len() >= LINKS * IDS_OF_A_LINK - 1, "{}", all.len());
    }

    #[test]
    fn a_process_knows_the_ids_of_an_earlier_one_with_its_key_alone() {
        let (mut before, after, other) = (ids(1), ids(1), ids(2));
        let made: Vec<_> = (0..1000).map(|_| before.generate_cid()).collect();
        assert!(made.iter().all(|id| after.validate(id).is_ok()));
        let taken_for_its_own = made.iter().filter(|id| other.validate(id).is_ok());
        assert!(taken_for_its_own.count() <= 2);
    }

    #[test]
    fn an_id_of_another_length_is_foreign() {
        let ids = ids(1);
        for length in (0..=20).filter(|length| *length != BYTES) {
            let id = ConnectionId::new(&[7; 20][..length]);
            assert!(ids.validate(&id).is_err(), "{length} bytes");
        }
    }
}
