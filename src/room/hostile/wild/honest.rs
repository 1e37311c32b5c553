//! Honest members, which note what must not happen to them.

use super::*;
use crate::core::path::Path;

/// Faults by kind, with the number of each.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Mutex<BTreeMap<String, u32>>);

impl Findings {
    pub(super) fn add(&self, what: String) {
        let mut found = self.0.lock().expect("not poisoned");
        *found.entry(what).or_default() += 1;
    }
}

/// Next expected number of each other member's messages, on each of two ways.
type Taken = Arc<Mutex<BTreeMap<(String, u8), u32>>>;

/// An honest member that remembers only what matters, so that the memory of its process is the library's.
pub(super) struct Honest {
    pub(super) name: &'static str,
    pub(super) room: Arc<Room>,
    taken: Taken,
    /// How often it learned that a member leads that is not honest.
    wild_leaders: Arc<AtomicU32>,
}

/// A message that only an honest member can write: it holds the secret.
fn numbered(secret: u64, way: u8, number: u32) -> Vec<u8> {
    [
        &secret.to_le_bytes()[..],
        &[way],
        &number.to_le_bytes(),
        b"of an honest member",
    ]
    .concat()
}

fn read_numbered(secret: u64, payload: &[u8]) -> Option<(u8, u32)> {
    let rest = payload.strip_prefix(&secret.to_le_bytes())?;
    let (way, rest) = rest.split_first()?;
    let number = rest.first_chunk::<4>()?;
    Some((*way, u32::from_le_bytes(*number)))
}

pub(super) const DIRECT: u8 = 0;
const CENTRAL: u8 = 1;

impl Honest {
    pub(super) fn open(
        name: &'static str,
        session: &str,
        config: Config,
        secret: u64,
        findings: &Arc<Findings>,
    ) -> Self {
        let session = SessionId::new(session).expect("valid");
        let room = Room::open(id(name), session, config).expect("a room");
        let taken = Taken::default();
        let (found, numbers) = (Arc::clone(findings), Arc::clone(&taken));
        let joined = Mutex::new(BTreeSet::new());
        let wild_leaders = Arc::<AtomicU32>::default();
        let led = Arc::clone(&wild_leaders);
        let receive = move |event: &Event| match event {
            Event::Message(message) => {
                if let Some((way, number)) = read_numbered(secret, &message.payload) {
                    let mut numbers = numbers.lock().expect("not poisoned");
                    let next = numbers.entry((message.from.to_string(), way)).or_default();
                    if *next != number {
                        found.add(format!(
                            "{name} took another number from {} than the next",
                            message.from
                        ));
                    }
                    *next = number + 1;
                }
            }
            Event::Joined(peer) if HONEST.contains(&peer.as_str()) => {
                let first = joined.lock().expect("not poisoned").insert(peer.clone());
                if !first {
                    found.add(format!("{peer} joined {name} again"));
                }
            }
            Event::Reconnecting(peer) if HONEST.contains(&peer.as_str()) => {
                found.add(format!("{name} lost the link to {peer}"));
            }
            Event::Left(left) if HONEST.contains(&left.peer.as_str()) => {
                found.add(format!("{} left {name}: {:?}", left.peer, left.why));
            }
            Event::LeaderChanged(change) => {
                let new = change.new.as_ref();
                if new.is_some_and(|new| !HONEST.contains(&new.as_str())) {
                    led.fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::RoomEnded { why, .. } => {
                found.add(format!("the room ended for {name}: {why:?}"));
            }
            _ => {}
        };
        room.dispatch()
            .register_event_handler(Some(Arc::new(receive)));
        Self {
            name,
            room: Arc::new(room),
            taken,
            wild_leaders,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.room.local_address().port()))
    }

    pub(super) fn connect_to(&self, other: &Self) {
        let text = other.address().to_string();
        let target = parse_target(&text).expect("a target");
        self.room.connect(&text, target).expect("accepted");
    }

    pub(super) fn has(&self, peer: &str) -> bool {
        let snapshot = self.room.snapshot();
        let view = snapshot.peer(peer);
        view.is_some_and(|view| view.status == PeerStatus::Connected)
    }

    pub(super) fn leader(&self) -> Option<String> {
        let snapshot = self.room.snapshot();
        snapshot.leader.as_ref().map(ToString::to_string)
    }

    pub(super) fn is_carried_to(&self, peer: &str) -> bool {
        let meter = self.room.peer_meter(&id(peer));
        meter.is_some_and(|meter| matches!(meter.path, Some(Path::Carried(_))))
    }

    pub(super) fn wild_leaders(&self) -> u32 {
        self.wild_leaders.load(Ordering::Relaxed)
    }

    pub(super) fn taken(&self, from: &str, way: u8) -> u32 {
        let taken = self.taken.lock().expect("not poisoned");
        taken.get(&(from.to_owned(), way)).copied().unwrap_or(0)
    }
}

/// The one that all of them name, where it is one of them.
pub(super) fn agreed(hosts: &[Honest]) -> Option<String> {
    let leader = hosts[0].leader()?;
    let all = hosts
        .iter()
        .all(|host| host.leader().as_ref() == Some(&leader));
    (all && hosts.iter().any(|host| host.name == leader)).then_some(leader)
}

pub(super) async fn within(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let look = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(limit, look).await.is_ok()
}

/// Sends numbered messages until it is stopped; how many there were.
pub(super) async fn talk(
    room: Arc<Room>,
    to: PeerId,
    secret: u64,
    is_over: Arc<AtomicBool>,
    found: Arc<Findings>,
) -> u32 {
    let mut next = 0;
    while !is_over.load(Ordering::Relaxed) {
        match room.send_to(&to, message_of(numbered(secret, DIRECT, next))) {
            Ok(()) => next += 1,
            Err(SendError::QueueFull { .. }) => {}
            Err(error) => found.add(format!("{} cannot send to {to}: {error}", room.peer_id())),
        }
        sleep(Duration::from_millis(10)).await;
    }
    next
}

/// Gives the leader something to relay: nothing that is counted, because a wild one may hold it back or repeat it.
pub(super) fn broadcast_at_times(host: &Honest) {
    host.room.set_centralized(true);
    // Without a leader, or with one that relays nothing, it is refused.
    let _ = host.room.broadcast(message_of(b"for the leader".to_vec()));
    host.room.set_centralized(false);
}

fn message_of(payload: Vec<u8>) -> OutMessage {
    OutMessage {
        payload: payload.into(),
        msg_type: TYPE,
        flags: 0,
    }
}

/// The wild members are gone: the room must be what it was.
pub(super) async fn aftermath(
    hosts: &[Honest],
    next_leader: &str,
    newcomer: Config,
    session: &str,
    secret: u64,
    findings: &Arc<Findings>,
) {
    if !within(AFTERMATH, || agreed(hosts).is_some()).await {
        let leaders: Vec<_> = hosts.iter().map(Honest::leader).collect();
        findings.add(format!("afterwards they name {leaders:?}"));
    }
    if newcomer.strategy == Strategy::Raft {
        let set = hosts[0].room.set_leader(&id(next_leader));
        let leads = || agreed(hosts).as_deref() == Some(next_leader);
        if set.is_err() || !within(AFTERMATH, leads).await {
            findings.add(format!("afterwards SetLeader does not work: {set:?}"));
        }
    }
    for host in hosts {
        let _ = host.room.set_max_peers(0);
    }
    // Its end is checked below: it is kicked.
    let its_own = Arc::default();
    let newcomer = Honest::open("n", session, newcomer, secret, &its_own);
    newcomer.connect_to(&hosts[0]);
    let entered = || {
        hosts
            .iter()
            .all(|host| host.has("n") && newcomer.has(host.name))
    };
    let enters = within(AFTERMATH, entered).await;
    sleep(Duration::from_secs(1)).await;
    if !enters || !entered() {
        let have: Vec<&str> = hosts
            .iter()
            .filter(|host| host.has("n"))
            .map(|host| host.name)
            .collect();
        findings.add(format!(
            "afterwards a newcomer does not enter: {have:?} have it"
        ));
    }
    const BROADCASTS: u32 = 20;
    for host in hosts {
        host.room.set_centralized(true);
    }
    for number in 0..BROADCASTS {
        for host in hosts {
            let sent = broadcast(host, numbered(secret, CENTRAL, number)).await;
            if let Err(error) = sent {
                findings.add(format!(
                    "afterwards {} cannot broadcast: {error}",
                    host.name
                ));
            }
        }
    }
    for from in hosts {
        for to in hosts.iter().filter(|to| to.name != from.name) {
            let all = || to.taken(from.name, CENTRAL) == BROADCASTS;
            // One that its leader did not relay goes through the next leader.
            if !within(AFTERMATH, all).await {
                let taken = to.taken(from.name, CENTRAL);
                findings.add(format!(
                    "afterwards {} has {taken} of {BROADCASTS} relayed broadcasts of {}; {}",
                    to.name,
                    from.name,
                    whereabouts(hosts)
                ));
            }
        }
    }
    let leader = agreed(hosts);
    let leader = hosts
        .iter()
        .find(|host| Some(host.name) == leader.as_deref());
    if let Some(leader) = leader.filter(|_| enters) {
        let kicked = leader.room.kick(&id("n"), 1, b"");
        let gone = || hosts.iter().all(|host| !host.has("n"));
        if kicked.is_err() || !within(AFTERMATH, gone).await {
            findings.add(format!("afterwards mmn_kick does not work: {kicked:?}"));
        }
    }
    newcomer.room.close();
}

/// Broadcasts, on a busy machine when there is a leader again.
async fn broadcast(host: &Honest, payload: Vec<u8>) -> Result<(), SendError> {
    let until = Instant::now() + AFTERMATH;
    loop {
        let sent = host.room.broadcast(message_of(payload.clone()));
        if sent != Err(SendError::NoLeader) || Instant::now() >= until {
            return sent;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Where broadcasts may be that did not arrive: with whom, and how many no leader has relayed.
fn whereabouts(hosts: &[Honest]) -> String {
    let of = |host: &Honest| {
        let (leader, dropped) = (host.leader(), host.room.dropped_relays());
        let unrelayed = host.room.shared.outboxes.unrelayed();
        format!(
            "{} names {leader:?}, dropped {dropped}, keeps {unrelayed}",
            host.name
        )
    };
    hosts.iter().map(of).collect::<Vec<_>>().join("; ")
}
