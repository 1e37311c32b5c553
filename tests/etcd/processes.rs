//! Whole processes with real servers: killed, stopped, cut off, and without servers.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::{Cluster, Directory};
use crate::intervals::{Sample, overlap};
use crate::member::{Member, Settings, now, samples};
use crate::relay::Relay;

/// The shortest TTL that servers grant with their defaults, in seconds.
const TTL: u32 = 2;
const SECOND: u64 = 1_000_000;
/// A leader with more samples than this has acted.
const ACTS: usize = 10;
/// For a busy machine, in microseconds.
const SLACK: u64 = 3 * SECOND;
const OK: &str = "0";
const REJECTED: &str = "-18";
const TIMEOUT: &str = "-19";
const NOT_LEADER: &str = "-6";
const POLICY_MISMATCH: &str = "-20";

/// Processes of one election.
#[derive(Debug)]
struct Fleet {
    directory: Directory,
}

impl Fleet {
    fn new() -> Self {
        Self {
            directory: Directory::new(),
        }
    }

    fn settings(&self, id: &str, endpoints: Vec<String>) -> Settings {
        Settings {
            id: id.to_owned(),
            session: id.to_owned(),
            endpoints,
            prefix: "test/room".to_owned(),
            ttl: TTL,
            campaigns: true,
            samples: self.directory.path().join(format!("{id}.samples")),
            state: None,
        }
    }

    /// Members of these names, in line in this order. The first acts as leader.
    fn start(&self, cluster: &Cluster, ids: &[&str]) -> Vec<Member> {
        let first = ids[0];
        let start = |id: &&str| {
            let member = Member::start(self.settings(id, cluster.endpoints()));
            member.shows(first, 0);
            member
        };
        let members: Vec<_> = ids.iter().map(start).collect();
        acts(&members[0], 0);
        members
    }

    /// Checks that no two of these ever led at the same time, and that they have at least the number of samples that `acts` waits
    /// for.
    fn check(&self, ids: &[&str]) {
        let of = |id: &&str| samples(&self.directory.path().join(format!("{id}.samples")));
        let all: Vec<Sample> = ids.iter().flat_map(of).collect();
        assert!(all.len() > ACTS, "no member led: {} samples", all.len());
        if let Some(found) = overlap(&all) {
            panic!("two led at a time: {found}");
        }
    }
}

#[test]
fn a_leader_that_is_killed_is_replaced_within_its_ttl() {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let mut members = fleet.start(&cluster, &["a", "b", "c"]);
    let token = members[0].samples().last().expect("it acts").token;
    let killed = now();
    members.remove(0).kill();
    let next = members[0].shows("b", killed);
    let took = next.at - killed;
    println!("replaced after {} ms", took / 1000);
    assert!(took < u64::from(TTL) * SECOND + 1_500_000 + SLACK, "{took}");
    members[1].shows("b", killed);
    let larger = move |sample: &Sample| sample.token > token;
    until("a larger token", || members[0].samples().iter().any(larger));
    acts(&members[0], killed);
    fleet.check(&["a", "b", "c"]);
}

#[test]
fn e2_a_leader_that_leaves_is_replaced_at_once() {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let mut members = fleet.start(&cluster, &["a", "b", "c"]);
    let left = now();
    members.remove(0).leave();
    let next = members[0].shows("b", left);
    println!("replaced after {} ms", (next.at - left) / 1000);
    // Well before the lease could have ended.
    assert!(next.at - left < u64::from(TTL) * SECOND / 2, "{next:?}");
    acts(&members[0], left);
    // The leader yields: the next in line leads, and the old leader moves to the end.
    let yielded = now();
    members[0].order("yield");
    members[1].shows("c", yielded);
    members[0].shows("c", yielded);
    acts(&members[1], yielded);
    fleet.check(&["a", "b", "c"]);
}

#[test]
fn e20_the_leader_of_etcd_is_killed_and_ours_stays() {
    let (mut cluster, fleet) = (Cluster::start(3), Fleet::new());
    let member = |id: &str| {
        let settings = fleet.settings(id, cluster.endpoints());
        let member = Member::start(Settings {
            ttl: 10,
            ..settings
        });
        member.shows("a", 0);
        member
    };
    let (a, b) = (member("a"), member("b"));
    let etcd = cluster.leader();
    let killed = now();
    cluster.kill(etcd);
    cluster.wait_for(&(0..3).filter(|server| *server != etcd).collect::<Vec<_>>());
    // Longer than the lease would last without a keep-alive.
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(
        a.lines()
            .iter()
            .filter(|line| line.leader().is_some())
            .count(),
        1
    );
    let last = a.samples().last().copied().expect("it leads");
    assert!(last.before > killed + 11 * SECOND);
    assert_eq!(
        b.lines()
            .last()
            .and_then(|line| line.leader().map(str::to_owned)),
        Some("a".to_owned())
    );
    drop((a, b));
    fleet.check(&["a", "b"]);
}

#[test]
fn e20_there_is_no_leader_without_servers_and_one_again_with_them() {
    let (mut cluster, fleet) = (Cluster::start(1), Fleet::new());
    let mut members = fleet.start(&cluster, &["a", "b"]);
    let token = members[0].samples().last().expect("it leads").token;
    let stopped = now();
    cluster.kill(0);
    let lost = members[0].shows("", stopped);
    assert!(
        lost.at - stopped < u64::from(TTL) * SECOND,
        "before the server can end it: {lost:?}"
    );
    members[1].shows("", stopped);
    // Calls do not wait for etcd.
    let asked = Instant::now();
    members[0].order("proclaim\tanything");
    members[0].prints(|line| line.words[0] == "did");
    assert!(
        asked.elapsed() < Duration::from_millis(500),
        "{:?}",
        asked.elapsed()
    );
    let up = now();
    cluster.restart(0);
    // One may briefly show the other one, whose key is the first in the store and which is resigning: it lost its leadership with
    // the servers.
    let mut leader = String::new();
    until("one leader that both show", || {
        leader = members[0].last_leader(up).unwrap_or_default();
        !leader.is_empty() && members[1].last_leader(up).as_ref() == Some(&leader)
    });
    let leader = members
        .iter()
        .find(|member| member.settings.id == leader)
        .expect("one of them");
    let larger = |sample: &Sample| sample.token > token;
    until("a larger token", || leader.samples().iter().any(larger));
    fleet.check(&["a", "b"]);
}

/// Stops the leader for longer than its lease, this many times.
fn pauses(times: usize) {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let members = fleet.start(&cluster, &["a", "b"]);
    for _ in 0..times {
        let began = now();
        let leads = |member: &&Member| {
            let last = member.samples().last().copied();
            last.is_some_and(|sample| sample.before + SECOND / 2 > began)
        };
        let leader = members.iter().find(leads).expect("one leads");
        let other = members
            .iter()
            .find(|other| other.settings.id != leader.settings.id);
        let other = other.expect("there are two");
        leader.pause();
        let next = other.shows(&other.settings.id, began);
        std::thread::sleep(Duration::from_millis(200));
        let resumed = now();
        leader.resume();
        let first = leader.prints(|line| line.at >= resumed);
        // It may learn of the next leader in the moment in which it notices that its lease is over.
        let next_id = other.settings.id.as_str();
        let lost = matches!(first.leader(), Some(shown) if shown.is_empty() || shown == next_id);
        assert!(lost, "its first line: {:?}", first.leader());
        leader.shows(&other.settings.id, resumed);
        let acted = leader
            .samples()
            .into_iter()
            .find(|sample| sample.before > next.at);
        assert_eq!(acted, None, "it did not act as leader again");
    }
    fleet.check(&["a", "b"]);
}

#[test]
fn e23_a_leader_that_was_stopped_for_longer_than_its_lease_does_not_act_when_it_resumes() {
    pauses(3);
}

#[test]
#[ignore = "two minutes: make test-all"]
fn e23_a_leader_that_was_stopped_twenty_times_never_acts_when_it_resumes() {
    pauses(20);
}

/// Kills, stops and cuts processes off, this many times, and checks whether two ever led at the same time.
fn rounds(times: usize, seed: u64) {
    const IDS: [&str; 4] = ["a", "b", "c", "d"];
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let relays: Vec<_> = IDS
        .iter()
        .map(|_| Relay::to(&cluster.endpoint(0)))
        .collect();
    let start = |slot: usize| {
        let state = fleet.directory.path().join(format!("{}.state", IDS[slot]));
        std::fs::create_dir_all(&state).expect("a directory");
        let settings = fleet.settings(IDS[slot], vec![relays[slot].endpoint()]);
        Member::start(Settings {
            state: Some(state),
            ..settings
        })
    };
    let mut members: Vec<_> = (0..IDS.len()).map(start).collect();
    members[0].prints(|line| line.leader().is_some_and(|id| !id.is_empty()));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    println!("rounds from seed {seed}");
    for _ in 0..times {
        let slot = rng.random_range(0..IDS.len());
        let long = Duration::from_millis(rng.random_range(100..u64::from(TTL) * 1_500));
        match rng.random_range(0..4) {
            0 => {
                members[slot].pause();
                std::thread::sleep(long);
                members[slot].resume();
            }
            1 => {
                relays[slot].close(true);
                std::thread::sleep(long);
                relays[slot].close(false);
            }
            2 => {
                // Restarted at once: it may lead on with its lease.
                let old = members.remove(slot);
                old.kill();
                members.insert(slot, start(slot));
                std::thread::sleep(long / 4);
            }
            _ => {
                // Stopped, and cut off when it resumes.
                members[slot].pause();
                relays[slot].close(true);
                std::thread::sleep(long);
                members[slot].resume();
                std::thread::sleep(Duration::from_millis(100));
                relays[slot].close(false);
            }
        }
    }
    // Afterwards one leads, and all follow it.
    let healed = now();
    let leads = || {
        members.iter().find(|member| {
            member
                .samples()
                .last()
                .is_some_and(|sample| sample.before > healed + SECOND)
        })
    };
    until("a leader", || leads().is_some());
    fleet.check(&IDS);
}

#[test]
fn leaderships_do_not_overlap_in_rounds_of_kills_pauses_and_cuts() {
    rounds(10, 1);
}

#[test]
#[ignore = "ten minutes: make test-all"]
fn leaderships_do_not_overlap_in_two_hundred_rounds() {
    rounds(200, now());
}

#[test]
fn e5_a_process_that_starts_again_with_its_lease_leads_on() {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let state = Directory::new();
    let settings = Settings {
        state: Some(state.path().to_owned()),
        ttl: 10,
        ..fleet.settings("a", cluster.endpoints())
    };
    let a = Member::start(settings.clone());
    a.shows("a", 0);
    until("samples", || !a.samples().is_empty());
    let token = a.samples()[0].token;
    let b = Member::start(fleet.settings("b", cluster.endpoints()));
    b.shows("a", 0);
    let settings = a.kill();
    let started = now();
    let a = Member::start(settings);
    a.shows("a", started);
    until("samples", || {
        a.samples().iter().any(|sample| sample.before > started)
    });
    assert!(a.samples().iter().all(|sample| sample.token == token));
    let seen = b
        .lines()
        .iter()
        .filter(|line| line.leader().is_some())
        .count();
    assert_eq!(seen, 1, "the other one noticed nothing");
}

#[test]
fn e12_candidates_of_etcdctl_take_part() {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let mut members = fleet.start(&cluster, &["a"]);
    let mut etcdctl = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["elect", "test/room/election", "somebody"])
        .arg(format!("--endpoints={}", cluster.endpoint(0)))
        .stdout(Stdio::null())
        .spawn()
        .expect("etcdctl (Debian: etcd-client)");
    until("a second candidate", || {
        let keys = cluster.etcdctl(&["get", "--prefix", "test/room/election/", "--keys-only"]);
        keys.lines().filter(|line| !line.is_empty()).count() == 2
    });
    members[0].order("yield");
    members[0].shows("somebody", 0);
    let ended = now();
    etcdctl.kill().expect("it runs");
    etcdctl.wait().expect("it ends");
    // Its session lasts 60 s: the test deletes its key instead.
    let keys = cluster.etcdctl(&["get", "--prefix", "test/room/election/"]);
    let lines: Vec<_> = keys.lines().collect();
    let at = lines
        .iter()
        .position(|line| *line == "somebody")
        .expect("its value");
    cluster.etcdctl(&["del", lines[at - 1]]);
    members[0].shows("a", ended);
    let value = cluster.etcdctl(&[
        "get",
        "--prefix",
        "test/room/election/",
        "--print-value-only",
    ]);
    assert!(value.starts_with("a\n127.0.0.1:"), "{value}");
}

#[test]
fn e15_e16_locks_are_held_by_one_process_at_a_time() {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let mut members = fleet.start(&cluster, &["a", "b"]);
    let lock = |member: &Member, request: &str| {
        member.prints(|line| line.words[0] == "lock" && line.words[2] == request)
    };
    members[0].order("acquire\tgate\t0");
    let held = lock(&members[0], "1");
    assert_eq!(held.words[3], OK);
    members[1].order("try\tgate");
    assert_eq!(lock(&members[1], "1").words[3], REJECTED);
    members[1].order("acquire\tgate\t300");
    assert_eq!(lock(&members[1], "2").words[3], TIMEOUT);
    members[1].order("acquire\tgate\t0");
    members[0].order("release\tgate");
    let next = lock(&members[1], "3");
    assert_eq!(next.words[3], OK);
    let token = |line: &crate::member::Line| line.words[4].parse::<u64>().expect("a token");
    assert!(token(&next) > token(&held));
    // A crash: its lock ends with its lease.
    members[0].order("acquire\tgate\t0");
    let killed = now();
    members.remove(1).kill();
    let last = lock(&members[0], "2");
    assert_eq!(last.words[3], OK);
    assert!(token(&last) > token(&next));
    assert!(last.at - killed < u64::from(TTL) * SECOND + 1_500_000 + SLACK);
}

/// A room beside the election: its members are connected, and etcd elects the leader.
#[test]
fn members_of_one_room_receive_etcds_leader() {
    let (cluster, fleet) = (Cluster::start(1), Fleet::new());
    let start = |id: &str, prefix: &str| {
        Member::start(Settings {
            session: "arena".to_owned(),
            prefix: prefix.to_owned(),
            ..fleet.settings(id, cluster.endpoints())
        })
    };
    let mut a = start("a", "test/room");
    a.shows("a", 0);
    let mut b = start("b", "test/room");
    b.shows("a", 0);
    let address = a.prints(|line| line.words[0] == "open").words[1].clone();
    let connect = format!("connect\t{address}");
    b.order(&connect);
    assert_eq!(b.prints(|line| line.words[0] == "connected").words[1], OK);
    // The dialled end adopts the link last.
    a.prints(|line| line.words[..] == ["joined", "b"]);
    a.order("send\tone");
    let received = b.prints(|line| line.words[0] == "received");
    assert_eq!(received.words[1..], ["a", "one"]);
    // A member that does not lead cannot send as leader.
    b.order("send\ttwo");
    assert_eq!(
        b.prints(|line| line.words[0] == "did" && line.words[1] == "send")
            .words[2],
        NOT_LEADER
    );
    // Members of another election are no members of this room.
    let mut other = start("c", "test/other");
    other.shows("c", 0);
    other.order(&connect);
    let refused = other.prints(|line| line.words[0] == "connected");
    assert_eq!(refused.words[1], POLICY_MISMATCH);
    // The leader leaves; the next one sends.
    let left = now();
    a.leave();
    b.shows("b", left);
    b.order("send\tthree");
    b.prints(|line| line.words[0] == "did" && line.at > left && line.words[2] == OK);
}

/// Waits until it has acted as leader for some samples since that time. A leadership change may take a few milliseconds: without
/// this wait it would be over before any overlap could occur.
fn acts(member: &Member, since: u64) {
    let acted = |sample: &Sample| sample.before > since && sample.token > 0;
    until("a leader that acts", || {
        member.samples().into_iter().filter(acted).count() > ACTS
    });
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: none");
        std::thread::sleep(Duration::from_millis(20));
    }
}
