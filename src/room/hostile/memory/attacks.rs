//! The attacks. The host takes no events while they last, so that everything waits that may.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use room_transport::identity::server_config;
use room_transport::quic::transport_config;

use super::super::cut::cut;
use super::super::strangers::closers::{only_a_close, sockets};
use super::*;
use crate::config::{DispatchMode, StateOptions};
use crate::core::election::seeded::wire::{
    Based, Beat as SeededBeat, Claim, Greeting, MAX_LISTED, Observation, SeededMessage,
};
use crate::core::election::seeded::{Intervals, MemberState, SeededRules, Seeding};
use crate::core::quorum::{Quorum, Roster};
use crate::core::wire::Strategy;
use crate::dispatch::Reported;
use crate::error::{Code, Coded};
use crate::net::accept::MAX_ADMISSIONS;
use crate::net::compression::pack;
use crate::net::frame::{DatagramHeader, DatagramRole, OWN_FLAG, UNORDERED_LANE, datagram};
use crate::net::lingering::MAX_LINGERING;
use crate::net::outbox::{SendMode, Unreliable};
use crate::room::state::StateInfo;
use crate::state::event::StateEvent;
use crate::state::limits::MAX_ACTION_BYTES;

type Attack = fn() -> Pin<Box<dyn Future<Output = Measured>>>;

pub(super) const ATTACKS: [(&str, Attack); 8] = [
    (
        "compressible messages",
        || Box::pin(compressible_messages()),
    ),
    ("a seeded voter that lies", || Box::pin(made_up_members())),
    ("leaders that flap", || Box::pin(flapping_leaders())),
    ("datagrams beside messages", || Box::pin(datagrams())),
    ("first packets that close", || Box::pin(closing_packets())),
    ("sends to a lost peer", || Box::pin(sends_to_a_lost_peer())),
    ("actions that a host does not take", || {
        Box::pin(untaken_actions())
    }),
    ("a snapshot for a newcomer", || Box::pin(snapshot())),
];

/// Bytes of an event that waits, with the ids in it and what the queue needs for it.
const EVENT_BYTES: u64 = 512;
/// Bytes of a message that waits, beside its payload.
const MESSAGE_BYTES: u64 = 256;
/// Bytes of a member in the table of a cluster.
const LISTED_BYTES: u64 = 512;
/// Bytes of a connection that QUIC has not let go.
const CONNECTION_BYTES: u64 = 64 << 10;
/// Default of queue_bytes.
const QUEUE_BYTES: u64 = 4 << 20;

/// The log of a member: its tail, its unconfirmed entries, its own requests, and frames that wait for a peer.
const LOG_BYTES: u64 = (4 << 20) + (1 << 20) + (256 << 10) + (2 << 20);

/// A host whose events wait: it polls none.
fn silent() -> Config {
    Config {
        dispatch_mode: DispatchMode::Poll,
        ..quick()
    }
}

async fn silent_pair(session: &str) -> Pair {
    silent_pair_of(session, silent(), silent()).await
}

/// A host that takes no events, and one that does.
async fn silent_pair_of(session: &str, silent: Config, other: Config) -> Pair {
    let other = Config {
        dispatch_mode: DispatchMode::Thread,
        ..other
    };
    let pair = Pair {
        a: Host::open_with("a", session, silent),
        b: Host::open_with("b", session, other),
    };
    pair.b.connect_to(pair.a.address());
    eventually("both are linked", || pair.a.has("b") && pair.b.has("a")).await;
    take_events(&pair.a);
    pair
}

async fn enter(attacker: &Attacker, host: &Host, hello: &Hello) -> Member {
    let member = attacker.join_unseen(host, hello).await;
    eventually("it is a member", || host.has(&attacker.name)).await;
    member
}

async fn compressible_messages() -> Measured {
    const STREAMS: u64 = 439;
    const LEN: usize = 256 << 10;
    let pair = silent_pair("compressible").await;
    let attacker = Attacker::new("m", "compressible");
    let member = enter(&attacker, &pair.a, &attacker.hello()).await;
    let packed = pack(&vec![7; LEN]).expect("it repeats itself");
    let mut growth = Growth::begin();
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let header = LaneHeader {
            lane: UNORDERED_LANE,
        };
        let mut stream = member.open_lane(header).await;
        let frame = message_frame(number, 0x0100, OWN_FLAG, MessageRole::Peer, &packed);
        stream.write_all(&frame).await.expect("written");
        stream.finish().expect("open");
        streams.push(stream);
        growth.look();
    }
    growth.settle().await;
    Measured {
        sent: format!("{STREAMS} streams, a message of 256 KiB on each"),
        growth,
        // The queue, the part for compressed messages that all share, and the member's share.
        limit: QUEUE_BYTES + (4 << 20) + LEN as u64,
    }
}

/// A voter claims to be elected, and reports members that it made up.
async fn made_up_members() -> Measured {
    const REPORTS: u64 = 50_000;
    let voters = ["a", "b", "w"].map(|name| (id(name), None));
    let quorum = Quorum::Static(Roster::new(voters).expect("names"));
    let strategy = Strategy::Seeded(SeededRules {
        intervals: Intervals {
            heartbeat_timeout_ms: 30_000,
            ttl_timeout_ms: 90_000,
            ..Intervals::LAN
        },
        ..SeededRules::default()
    });
    let directory = std::env::temp_dir().join(format!("mmn-memory-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let config = Config {
        strategy,
        quorum: quorum.clone(),
        state_directory: Some(directory.clone()),
        seeding: Seeding {
            seeds: vec!["127.0.0.1:9".into()],
            is_seed: true,
            address: String::new(),
        },
        ..silent()
    };
    let follower = Config {
        seeding: Seeding {
            is_seed: false,
            ..config.seeding.clone()
        },
        ..config.clone()
    };
    let pair = silent_pair_of("made up", config, follower).await;
    eventually("a leader", || pair.a.room.snapshot().leader.is_some()).await;
    let attacker = Attacker::new("w", "made up");
    // Any later version counts, if it follows that of the basis.
    const VERSION: u64 = 1 << 20;
    let observed = Observation {
        leader: None,
        version: VERSION - 1,
    };
    let hello = Hello {
        eligible: true,
        policy: RoomPolicy {
            strategy,
            quorum: quorum.policy(),
            ..RoomPolicy::default()
        },
        side: Opaque::of(&Greeting {
            beat: SeededBeat {
                observed: Observation::default(),
                claim: None,
                decided: 0,
                writes: 1,
                since: 1,
                memory: None,
            },
            is_seed: false,
            address: String::new(),
        }),
        ..attacker.hello()
    };
    let mut member = enter(&attacker, &pair.a, &hello).await;
    let claim = Claim {
        leader: id("w"),
        version: VERSION,
        elected: true,
        address: String::new(),
    };
    let basis = claim.observation();
    let based = |basis, writes, message| {
        Message::Election(Opaque::of(&Based {
            basis,
            writes,
            message,
        }))
    };
    let elected = SeededMessage::LeaderElected { claim };
    member.notify_core(based(observed, 2, elected)).await;
    let follows = || pair.a.room.snapshot().leader == Some(id("w"));
    eventually("the liar is followed", follows).await;
    let mut growth = Growth::begin();
    for number in 0..REPORTS {
        let status = SeededMessage::MemberStatusUpdate {
            change: number + 1,
            member: id(&format!("{number:0>64}")),
            incarnation: Incarnation {
                started_us: number,
                random: number,
            },
            state: match number % 2 {
                0 => MemberState::Active,
                _ => MemberState::Unreachable,
            },
        };
        member
            .notify_core(based(basis.clone(), 3 + number, status))
            .await;
        if number % 1000 == 0 {
            growth.look();
        }
    }
    growth.settle().await;
    assert!(follows(), "the reports count to the last");
    drop(pair);
    // Files that stay in the temporary directory disturb no test.
    let _ = std::fs::remove_dir_all(directory);
    Measured {
        sent: format!("{REPORTS} MemberStatusUpdates for made-up ids"),
        growth,
        limit: MAX_LISTED as u64 * LISTED_BYTES + 1024 * EVENT_BYTES,
    }
}

/// Two members claim to lead, by higher terms in turn.
async fn flapping_leaders() -> Measured {
    const CLAIMS: u64 = 20_000;
    let pair = silent_pair("flapping").await;
    eventually("a leader", || pair.a.room.snapshot().leader.is_some()).await;
    let mut members = Vec::new();
    for name in ["m", "n"] {
        let attacker = Attacker::new(name, "flapping");
        let hello = Hello {
            eligible: true,
            ..attacker.hello()
        };
        let member = enter(&attacker, &pair.a, &hello).await;
        members.push((attacker, member));
    }
    let token = pair.a.room.snapshot().leader_token.clone();
    let record = token.and_then(|token| token.decode::<Record>().ok());
    let mut record = record.unwrap_or_default();
    record.stamp.term += 1 << 10;
    let mut growth = Growth::begin();
    let mut seen = std::collections::BTreeSet::new();
    for claim in 0..CLAIMS {
        let (attacker, member) = &mut members[claim as usize % 2];
        record.stamp.term += 1;
        record.leader = Some(id(&attacker.name));
        record.leader_key = Some(member.key);
        record.assigned = false;
        let leads = Pulse::Leads {
            record: record.clone(),
            weight: 3,
            led_ms: 1000,
            election_timeout_min_ms: 300,
        };
        member.notify_core(heartbeat(leads)).await;
        if claim % 100 == 0 {
            sleep(Duration::from_millis(1)).await;
            growth.look();
            seen.extend(pair.a.room.snapshot().leader.clone());
        }
    }
    growth.settle().await;
    assert!(seen.len() > 1, "one leads: {seen:?}");
    Measured {
        sent: format!("{CLAIMS} claims of two members to lead, in turn"),
        growth,
        limit: 2 * EVENT_BYTES,
    }
}

async fn datagrams() -> Measured {
    const WAITING: u64 = 4095;
    const DATAGRAMS: u64 = 100_000;
    const LEN: usize = 1000;
    let pair = silent_pair("datagrams").await;
    let attacker = Attacker::new("m", "datagrams");
    let mut member = enter(&attacker, &pair.a, &attacker.hello()).await;
    let mut growth = Growth::begin();
    for number in 0..WAITING {
        member.send(number, &[7; LEN]).await;
    }
    let header = DatagramHeader {
        channel: 0,
        msg_type: 0x100,
        flags: 0,
        ttl_ms: 0,
        sequence: None,
        role: DatagramRole::Peer,
    };
    let loose = datagram(&header, &[7; LEN]).expect("encodes");
    for number in 0..DATAGRAMS {
        let sent = member.connection.send_datagram_wait(loose.clone());
        sent.await.expect("datagrams are on");
        if number % 1000 == 0 {
            growth.look();
        }
    }
    growth.settle().await;
    Measured {
        sent: format!("{WAITING} messages of {LEN} bytes, then {DATAGRAMS} datagrams"),
        growth,
        limit: 2 * QUEUE_BYTES + 2 * 4096 * MESSAGE_BYTES,
    }
}

/// Eight seconds of real time, in which the places are filled over and over.
async fn closing_packets() -> Measured {
    let pair = silent_pair("closing").await;
    let process = Process::start();
    let config = server_config(&process.identity, Arc::new(transport_config()));
    let config = config.expect("a configuration");
    let sockets = sockets();
    let mut growth = Growth::begin();
    let (began, mut number) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(8) {
        for socket in &sockets {
            number += 1;
            let _ = socket.send_to(&only_a_close(&config, number), pair.a.address());
        }
        sleep(Duration::from_millis(5)).await;
        growth.look();
    }
    Measured {
        sent: format!("{number} first packets with only CONNECTION_CLOSE"),
        growth,
        limit: (MAX_LINGERING + MAX_ADMISSIONS) as u64 * CONNECTION_BYTES,
    }
}

/// The host sends on to a member behind a cut cable, reliable messages and others.
async fn sends_to_a_lost_peer() -> Measured {
    const SENDS: u64 = 200_000;
    let pair = silent_pair("lost").await;
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        cut(from.port(), to.port());
    }
    let is_lost = || {
        let snapshot = pair.a.room.snapshot();
        let view = snapshot.peer("b");
        view.is_some_and(|view| view.status != PeerStatus::Connected)
    };
    eventually("it is lost", is_lost).await;
    let mut growth = Growth::begin();
    for number in 0..SENDS {
        let loose = SendMode::Unreliable(Unreliable::default());
        // The message that may be lost is, and the other one waits as long as there is room.
        let _ = pair.a.room.send_with(&id("b"), message(&[7; 1000]), loose);
        let _ = pair.a.room.send_to(&id("b"), message(&[7; 1000]));
        if number % 1000 == 0 {
            growth.look();
        }
    }
    growth.settle().await;
    Measured {
        sent: format!("the host itself: {SENDS} unreliable sends, and as many reliable ones"),
        growth,
        limit: QUEUE_BYTES + 4096 * MESSAGE_BYTES + EVENT_BYTES,
    }
}

/// One host submits far more than a tail holds, and the other takes nothing. Both members are in this process.
async fn untaken_actions() -> Measured {
    const ACTIONS: usize = 2000;
    let state = Some(StateOptions::default());
    let with_state = |config| Config { state, ..config };
    let pair = silent_pair_of("untaken", with_state(silent()), with_state(quick())).await;
    take_events(&pair.b);
    let mut growth = Growth::begin();
    let action = vec![7; MAX_ACTION_BYTES];
    for _ in 0..ACTIONS {
        submit(&pair.b, &action, &mut growth).await;
    }
    eventually("all are confirmed", || {
        info(&pair.a).confirmed >= ACTIONS as u64
    })
    .await;
    assert_eq!(info(&pair.a).taken, 0);
    growth.settle().await;
    Measured {
        sent: format!("{ACTIONS} actions of 16 KiB"),
        growth,
        limit: 2 * LOG_BYTES,
    }
}

/// A newcomer receives the longest snapshot. The member that provides it is in this process, too.
async fn snapshot() -> Measured {
    const LEN: usize = 8 << 20;
    let options = StateOptions {
        tail_entries: 256,
        ..StateOptions::default()
    };
    let with_state = || Config {
        state: Some(options),
        ..quick()
    };
    let a = Host::open_with("a", "snapshot", with_state());
    let room = Arc::downgrade(&a.room);
    a.room
        .dispatch()
        .register::<kind::Everything>(Some(Arc::new(move |report: kind::Report<'_>| {
            let Reported::State(StateEvent::SnapshotWanted { request, .. }) = report.event else {
                return;
            };
            let room = room.upgrade().expect("it is open");
            room.provide_snapshot(*request, Some(&vec![7; LEN]))
                .expect("asked for");
        })));
    let mut growth = Growth::begin();
    for _ in 0..1000 {
        submit(&a, b"an action", &mut growth).await;
    }
    eventually("all are taken", || info(&a).pending == 0).await;
    let newcomer = Host::open_with("b", "snapshot", with_state());
    let taken = Arc::new(watch::Sender::new(0));
    let notify = Arc::clone(&taken);
    newcomer
        .room
        .dispatch()
        .register::<kind::Everything>(Some(Arc::new(move |report: kind::Report<'_>| {
            if let Reported::State(StateEvent::Reset { snapshot, .. }) = report.event {
                notify.send_replace(snapshot.as_ref().map_or(0, Bytes::len));
            }
        })));
    newcomer.connect_to(a.address());
    while *taken.borrow() != LEN {
        growth.look();
        sleep(Duration::from_millis(1)).await;
    }
    growth.settle().await;
    Measured {
        sent: "a snapshot of 8 MiB".to_owned(),
        growth,
        // The copy of the member that provides, while its host still has its own, and the copy that arrives.
        limit: 3 * LEN as u64 + 2 * (1 << 20),
    }
}

fn info(host: &Host) -> StateInfo {
    host.room.state_info().expect("a state")
}

/// The host does nothing with the events that it takes.
fn take_events(host: &Host) {
    host.room
        .dispatch()
        .register_event_handler(Some(Arc::new(|_| {})));
}

/// Submits an action once the member takes it.
async fn submit(host: &Host, action: &[u8], growth: &mut Growth) {
    while let Err(error) = host.room.submit(0x0100, action) {
        assert_eq!(error.code(), Code::SendQueueFull);
        growth.look();
        sleep(Duration::from_millis(1)).await;
    }
}
