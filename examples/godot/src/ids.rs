//! The numbers that Godot knows the members by.

use std::collections::BTreeMap;

use meta_mystia_network::core::id::PeerId;

/// The server's number in Godot.
pub const SERVER: i32 = 1;
/// The smallest number of a client.
const FIRST_CLIENT: i32 = 2;

/// The numbers that one host gives its clients.
///
/// A number depends on the member's id alone, unless another member has it already: so most members have the same number at the
/// next host.
#[derive(Debug, Default)]
pub struct Ids {
    members: BTreeMap<i32, PeerId>,
}

impl Ids {
    /// The number of `member`, which keeps it until [`Ids::remove`].
    pub fn of(&mut self, member: &PeerId) -> i32 {
        let mut id = preferred(member.as_str());
        loop {
            match self.members.get(&id) {
                Some(other) if other != member => id = next(id),
                Some(_) => return id,
                None => break,
            }
        }
        // A member that had to step aside may have its number further on, although this one has become free.
        if let Some((&id, _)) = self.members.iter().find(|(_, other)| *other == member) {
            return id;
        }
        self.members.insert(id, member.clone());
        id
    }

    /// The member with this number.
    pub fn member(&self, id: i32) -> Option<&PeerId> {
        self.members.get(&id)
    }

    /// Frees the number of a member that is no longer in the room.
    pub fn remove(&mut self, id: i32) {
        self.members.remove(&id);
    }
}

/// From 2 to 2^31 - 1, by the hash FNV-1a.
fn preferred(member: &str) -> i32 {
    let mut hash: u32 = 0x811C_9DC5;
    for byte in member.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    ((hash & 0x7FFF_FFFF) as i32).max(FIRST_CLIENT)
}

fn next(id: i32) -> i32 {
    id.checked_add(1).unwrap_or(FIRST_CLIENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> PeerId {
        PeerId::new(name).expect("an id")
    }

    #[test]
    fn a_member_keeps_its_number_at_another_host() {
        let (mut one, mut other) = (Ids::default(), Ids::default());
        other.of(&member("carol"));
        let alice = one.of(&member("alice"));
        assert!(alice >= FIRST_CLIENT);
        assert_eq!(other.of(&member("alice")), alice);
        assert_eq!(one.of(&member("alice")), alice);
    }

    #[test]
    fn a_taken_number_is_left_to_its_member() {
        let mut ids = Ids::default();
        let taken = preferred("alice");
        ids.members.insert(taken, member("bob"));
        let alice = ids.of(&member("alice"));
        assert_eq!(alice, next(taken));
        ids.remove(taken);
        assert_eq!(ids.of(&member("alice")), alice);
        assert_eq!(ids.member(alice), Some(&member("alice")));
    }

    #[test]
    fn behind_the_largest_number_comes_the_first() {
        assert_eq!(next(i32::MAX), FIRST_CLIENT);
    }
}
