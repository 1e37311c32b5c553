//! The seeded strategy over real sockets: members connect through a seed alone.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use meta_mystia_network::config::Config;
use meta_mystia_network::core::election::seeded::{Intervals, MemberState, SeededRules, Seeding};
use meta_mystia_network::core::quorum::{Quorum, Roster};
use meta_mystia_network::core::wire::Strategy;
use meta_mystia_network::dispatch::Event;
use meta_mystia_network::error::SendError;

use crate::harness::{Member, Report, eventually, id, message, quick, settled};

/// The LAN intervals, with slack for a busy machine.
const INTERVALS: Intervals = Intervals {
    probe_interval_ms: 50,
    heartbeat_interval_ms: 200,
    heartbeat_timeout_ms: 2_000,
    ttl_timeout_ms: 4_000,
    retry_interval_ms: 500,
};

/// The state directory of a test.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // Remains in the temporary directory do no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("mmn-seeded-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn config(&self, seeds: &str, is_seed: bool) -> Config {
        let config = Config {
            strategy: Strategy::Seeded(SeededRules {
                never_alone: true,
                intervals: INTERVALS,
                ..SeededRules::default()
            }),
            seeding: Seeding {
                seeds: vec![seeds.into()],
                is_seed,
                address: String::new(),
            },
            quorum: Quorum::Static(Roster::parse("a\nb\nc").expect("a roster")),
            state_directory: Some(self.0.clone()),
            ..quick()
        };
        config.validated().expect("valid")
    }
}

type States = Arc<Mutex<Vec<(String, MemberState, u64)>>>;

/// Member states that a host receives from now on.
fn states(member: &Member) -> States {
    let states = States::default();
    let notify = Arc::clone(&states);
    let handler = move |event: &Event| {
        if let Event::MemberState {
            peer,
            state,
            version,
        } = event
        {
            let reported = (peer.to_string(), *state, *version);
            notify.lock().expect("not poisoned").push(reported);
        }
    };
    let dispatch = member.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(handler)));
    states
}

#[test]
fn members_connect_through_a_seed_and_elect_while_a_majority_is_present() {
    let directory = Directory::new("elect");
    // Its own address is unknown before it opens, and this one has no listener.
    let a = Member::open_with("a", "seeded", directory.config("127.0.0.1:9", true));
    let seed = format!("127.0.0.1:{}", a.port());
    let b = Member::open_with("b", "seeded", directory.config(&seed, false));
    let reported = states(&b);
    let c = Member::open_with("c", "seeded", directory.config(&seed, false));
    let x = Member::open_with("x", "seeded", directory.config(&seed, false));
    assert_eq!(settled(&[&a, &b, &c, &x]), "a");
    assert_eq!(b.room.snapshot().term, 1);
    eventually("every step of another member", || {
        let reported = reported.lock().expect("not poisoned");
        let of_c: Vec<_> = reported.iter().filter(|(peer, ..)| peer == "c").collect();
        let steps = [MemberState::Joining, MemberState::Active];
        of_c.iter().map(|(_, state, _)| *state).eq(steps)
    });

    drop(a);
    let leader = settled(&[&b, &c, &x]);
    assert!(["b", "c"].contains(&leader.as_str()), "{leader} leads");
    assert_eq!(x.room.snapshot().term, 2);
    eventually("the removal of the leader before", || {
        let reported = reported.lock().expect("not poisoned");
        let last = reported.iter().rfind(|(peer, ..)| peer == "a");
        last.is_some_and(|(_, state, version)| (*state, *version) == (MemberState::Removed, 2))
    });

    let (gone, left) = if leader == "b" { (b, c) } else { (c, b) };
    drop(gone);
    eventually("no member leads", || {
        left.leader().is_none() && x.leader().is_none()
    });
    assert_eq!((left.room.snapshot().connected, left.leader()), (1, None));
}

#[test]
fn t18_megabytes_between_two_change_nothing_in_the_cluster() {
    const MESSAGES: usize = 100;
    let directory = Directory::new("megabytes");
    let large = |seeds: &str, is_seed| Config {
        max_message_size: 1 << 20,
        ..directory.config(seeds, is_seed)
    };
    let a = Member::open_with("a", "megabytes", large("127.0.0.1:9", true));
    let of_a = states(&a);
    let seed = format!("127.0.0.1:{}", a.port());
    let b = Member::open_with("b", "megabytes", large(&seed, false));
    let reported = [of_a, states(&b)];
    assert_eq!(settled(&[&a, &b]), "a");
    eventually("both hosts receive that b is active", || {
        reported.iter().all(|reported| {
            let reported = reported.lock().expect("not poisoned");
            let mut states = reported.iter();
            states.any(|(peer, state, _)| peer == "b" && *state == MemberState::Active)
        })
    });
    for reported in &reported {
        reported.lock().expect("not poisoned").clear();
    }
    let payload = vec![7; 1_000_000];
    for _ in 0..MESSAGES {
        for (from, to) in [(&a, "b"), (&b, "a")] {
            loop {
                match from.room.send_to(&id(to), message(&payload)) {
                    Ok(()) => break,
                    Err(SendError::QueueFull { .. }) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    for member in [&a, &b] {
        member.wait("all messages", |reported| {
            let all = reported
                .iter()
                .filter(|reported| matches!(reported, Report::Message(..)));
            (all.count() == MESSAGES).then_some(())
        });
        assert_eq!(member.leader().as_deref(), Some("a"));
        assert_eq!(member.room.snapshot().term, 1);
    }
    for reported in reported {
        assert_eq!(*reported.lock().expect("not poisoned"), []);
    }
}
