//! Lies about addresses. Some of these addresses are unused: the checks count how often honest members dial there.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use room_core::id::{Fingerprint, PeerId};
use room_core::node::RelayChange;
use room_core::virtual_address::virtual_id;
use room_core::wire::{Envelope, Message, PeerEntry};

use crate::chaos::Run;
use crate::world::UNUSED;

/// A lie of a member about addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressLie {
    /// Members that do not exist are at an unused address.
    MadeUp,
    /// Members that do not exist are at another member's address, at other ports.
    Beside,
    /// Another member is at an unused address.
    About,
    /// The liar itself is at an unused address.
    Own,
    /// The liar itself is there, over a carried link.
    Stated,
    /// The victim is seen there.
    Observed,
    /// The victim and the liar dial now.
    Punch,
    /// The liar does not carry to another member.
    CannotCarry,
}

/// All kinds.
pub(super) const LIES: [AddressLie; 8] = [
    AddressLie::MadeUp,
    AddressLie::Beside,
    AddressLie::About,
    AddressLie::Own,
    AddressLie::Stated,
    AddressLie::Observed,
    AddressLie::Punch,
    AddressLie::CannotCarry,
];

/// Members made up in one lie.
const MADE_UP: u8 = 12;

/// A lie of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelayLie {
    /// The holder of an unknown key is present.
    MadeUp,
    /// Another member is present.
    Present,
    /// It is gone.
    Gone,
    /// The victim is seen at an unused address.
    Observed,
}

/// All kinds.
pub(super) const RELAY_LIES: [RelayLie; 4] = [
    RelayLie::MadeUp,
    RelayLie::Present,
    RelayLie::Gone,
    RelayLie::Observed,
];

impl Run<'_> {
    pub(crate) fn relay_lies(
        &mut self,
        relay: u8,
        victim: usize,
        about: usize,
        lie: RelayLie,
        unused: u8,
    ) {
        let its = self.world.slots[about]
            .key
            .unwrap_or(Fingerprint([0xcc; 32]));
        let change = match lie {
            RelayLie::MadeUp => RelayChange::Present(Fingerprint([0xee; 32])),
            RelayLie::Present => RelayChange::Present(its),
            RelayLie::Gone => RelayChange::Gone(its),
            RelayLie::Observed => {
                let ip = [UNUSED[0], UNUSED[1], 101, unused];
                RelayChange::Observed(SocketAddr::from((ip, 5_000)))
            }
        };
        self.world.relay_reports(relay, victim, change);
    }

    pub(crate) fn name_addresses(
        &mut self,
        liar: usize,
        victim: usize,
        about: usize,
        lie: AddressLie,
        unused: u8,
    ) {
        let slots = &self.world.slots;
        let (Some(me), Some(its)) = (&slots[liar].process, &slots[about].process) else {
            return;
        };
        if liar == victim || slots[victim].process.is_none() {
            return;
        }
        let incarnation = me.node.incarnation();
        let at = |ip: [u8; 4], port: u16| SocketAddr::from((ip, port));
        let unused_ip = [UNUSED[0], UNUSED[1], 100, unused];
        let its_ip = match slots[about].address {
            SocketAddr::V4(address) => address.ip().octets(),
            SocketAddr::V6(_) => return,
        };
        let entry = |id: PeerId, key: Fingerprint, addresses: Vec<SocketAddr>| PeerEntry {
            id,
            key,
            addresses,
        };
        self.world.made += 1;
        let batch = self.world.made;
        let made_up = |n: u8, ip: [u8; 4]| {
            let mut key = [n; 32];
            key[..8].copy_from_slice(&batch.to_be_bytes());
            key[31] = 0xdd;
            let id = PeerId::new(&format!("unused {batch} {n}")).expect("a valid name");
            let port = 1_000 + u16::from(n);
            let addresses = (0..4).map(|more| at(ip, port + 100 * more)).collect();
            entry(id, Fingerprint(key), addresses)
        };
        let own = slots[liar].id.clone();
        let unused_ports = |count: u16| (0..count).map(|n| at(unused_ip, 5_000 + n)).collect();
        let message = match lie {
            AddressLie::MadeUp => {
                Message::PeerList((0..MADE_UP).map(|n| made_up(n, unused_ip)).collect())
            }
            AddressLie::Beside => {
                Message::PeerList((0..MADE_UP).map(|n| made_up(n, its_ip)).collect())
            }
            AddressLie::About => Message::PeerList(vec![entry(
                slots[about].id.clone(),
                its.key,
                unused_ports(4),
            )]),
            AddressLie::Own => {
                let mut addresses: Vec<SocketAddr> = unused_ports(3);
                addresses.push(slots[liar].address);
                Message::PeerList(vec![entry(own, me.key, addresses)])
            }
            AddressLie::Stated => Message::Addresses(unused_ports(8)),
            AddressLie::Observed => Message::Observed {
                address: at(unused_ip, 5_000),
            },
            AddressLie::Punch => Message::Punch {
                round: u32::from(unused),
                is_answer: batch.is_multiple_of(2),
            },
            AddressLie::CannotCarry => Message::CannotCarry {
                target: virtual_id(its.key),
            },
        };
        let envelope = Envelope {
            incarnation,
            message,
        };
        self.world.forge(liar, victim, envelope);
    }
}
