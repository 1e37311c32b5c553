//! A leader that carries the link of two honest members without a path to each other, and drops, repeats, delays, changes and makes up packets.

use room_transport::tunnel::packet::{Header, Way, decode, encode};

use super::*;
use crate::core::virtual_address::{VIRTUAL_ID_BYTES, VirtualId, virtual_id};

/// The links of an attacker, by which it carries those of others.
pub(super) struct Carrier {
    links: Mutex<BTreeMap<VirtualId, Connection>>,
    chance: Mutex<Chance<'static>>,
    /// A packet that goes later.
    kept: Mutex<Option<(VirtualId, Bytes)>>,
    carried: AtomicU64,
}

/// The ways to treat a packet.
enum Fate {
    Forwarded,
    Dropped,
    Twice,
    Late,
    Changed,
    OnBehalf,
    BesideNoise,
}

impl Carrier {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            links: Mutex::default(),
            chance: Mutex::new(Chance::seeded(seed)),
            kept: Mutex::default(),
            carried: AtomicU64::new(0),
        }
    }

    /// How many packets it has carried.
    pub(super) fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Takes what comes on a link until that is over.
    pub(super) async fn carry(self: Arc<Self>, connection: Connection) {
        let Some(key) = peer_fingerprint(&connection) else {
            return;
        };
        let from = virtual_id(key);
        self.add(from, connection.clone());
        while let Ok(datagram) = connection.read_datagram().await {
            if let Some((Way::To(to), piece)) = decode(datagram) {
                let header = Header {
                    way: Way::From(from),
                    part: piece.part,
                    number: piece.number,
                };
                self.pass(to, header, piece.bytes);
            }
        }
    }

    fn add(&self, id: VirtualId, link: Connection) {
        let mut links = self.links.lock().expect("not poisoned");
        links.insert(id, link);
    }

    fn pass(&self, to: VirtualId, mut header: Header, bytes: Bytes) {
        let mut chance = self.chance.lock().expect("not poisoned");
        let whole = encode(header, &bytes);
        match fate(&mut chance) {
            Fate::Forwarded => self.send(to, whole),
            Fate::Dropped => {}
            Fate::Twice => {
                self.send(to, whole.clone());
                self.send(to, whole);
            }
            Fate::Late => {
                let mut kept = self.kept.lock().expect("not poisoned");
                if let Some((to, earlier)) = kept.replace((to, whole)) {
                    self.send(to, earlier);
                }
            }
            Fate::Changed => {
                let mut changed = bytes.to_vec();
                let at = chance.below(changed.len());
                changed[at] ^= 1 << chance.below(8);
                self.send(to, encode(header, &changed));
            }
            Fate::OnBehalf => {
                header.way = Way::From([chance.byte(); VIRTUAL_ID_BYTES]);
                self.send(to, encode(header, &bytes));
            }
            Fate::BesideNoise => {
                let len = 1 + chance.below(1000);
                let noise = chance.bytes(len);
                self.send(to, encode(header, &noise));
                self.send(to, whole);
            }
        }
    }

    fn send(&self, to: VirtualId, datagram: Bytes) {
        let links = self.links.lock().expect("not poisoned");
        // One that does not fit, or whose link is over, is lost.
        if let Some(link) = links.get(&to)
            && link.send_datagram(datagram).is_ok()
        {
            self.carried.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Most are forwarded, so that the link lives.
fn fate(chance: &mut Chance<'_>) -> Fate {
    match chance.below(64) {
        0 => Fate::Dropped,
        1 | 2 => Fate::Twice,
        3 | 4 => Fate::Late,
        5 => Fate::Changed,
        6 => Fate::OnBehalf,
        7 | 8 => Fate::BesideNoise,
        _ => Fate::Forwarded,
    }
}
