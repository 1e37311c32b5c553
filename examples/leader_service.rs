//! A service that runs on the leader alone: it starts when its peer gains the leadership and stops when it loses
//! it; when it fails, its peer yields and another takes over.
//!
//! Four peers of one process, linked by a network in memory, deliver blocks. The first leader loses its source
//! and yields; the second one crashes. `cargo run --example leader_service` takes a few seconds.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use meta_mystia_network::gossip::memory::Network;
use meta_mystia_network::gossip::{Handle, LeaderElectionService, PeerId, Settings, Windows};

/// Limit of a wait for an event that must come.
const TIMEOUT: Duration = Duration::from_secs(60);
const BLOCK_INTERVAL: Duration = Duration::from_millis(50);
/// Blocks after which the first leader's source is lost.
const BLOCKS_BEFORE_FAILURE: u32 = 5;

/// Reports of a peer's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// It runs, because its peer leads.
    Started,
    /// It delivered its first block.
    Delivers,
    /// It cannot continue, and its peer yields.
    Failed,
    /// It has ended, because its peer no longer leads.
    Stopped,
}

type Reports = Sender<(&'static str, Report)>;

/// The service that runs on the leader.
struct Delivery {
    peer: &'static str,
    reports: Reports,
    /// Whether the source is lost for the next reader.
    source_fails: Arc<AtomicBool>,
    worker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Delivery {
    fn start(&mut self, election: Handle) {
        let (stop, stopped) = mpsc::channel();
        let (peer, reports) = (self.peer, self.reports.clone());
        let fails = self.source_fails.swap(false, Ordering::Relaxed);
        report(&reports, peer, Report::Started);
        let worker = thread::spawn(move || {
            if deliver(peer, &reports, &stopped, fails).is_err() {
                report(&reports, peer, Report::Failed);
                election.yield_leadership();
            }
        });
        self.worker = Some((stop, worker));
    }

    fn stop(&mut self) {
        let Some((stop, worker)) = self.worker.take() else {
            return;
        };
        drop(stop);
        // The worker may have failed before, and reported that.
        let _ = worker.join();
        report(&self.reports, self.peer, Report::Stopped);
    }
}

/// The source of blocks is lost.
struct SourceLost;

/// Delivers blocks until it is stopped.
fn deliver(
    peer: &'static str,
    reports: &Reports,
    stopped: &Receiver<()>,
    fails: bool,
) -> Result<(), SourceLost> {
    for block in 1_u32.. {
        match stopped.recv_timeout(BLOCK_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
        if fails && block > BLOCKS_BEFORE_FAILURE {
            return Err(SourceLost);
        }
        if block == 1 {
            report(reports, peer, Report::Delivers);
        }
    }
    Ok(())
}

fn report(reports: &Reports, peer: &'static str, report: Report) {
    // At the end of the example no receiver is left.
    let _ = reports.send((peer, report));
}

struct Member {
    name: &'static str,
    service: LeaderElectionService,
    delivery: Arc<Mutex<Delivery>>,
}

impl Member {
    fn join(network: &Network, delivery: Delivery, pace: u32) -> Result<Self, Box<dyn Error>> {
        let name = delivery.peer;
        let delivery = Arc::new(Mutex::new(delivery));
        let election: Arc<OnceLock<Handle>> = Arc::default();
        let adapter = network.enter(name, "example")?;
        let callback = {
            let (delivery, election) = (Arc::clone(&delivery), Arc::clone(&election));
            move |leads| {
                let mut delivery = delivery.lock().unwrap_or_else(PoisonError::into_inner);
                if leads {
                    delivery.start(election.wait().clone());
                } else {
                    delivery.stop();
                }
            }
        };
        let settings = Settings {
            windows: Windows {
                startup_grace: Duration::from_millis(500) * pace,
                sample_interval: Duration::from_millis(100) * pace,
                alive_threshold: Duration::from_millis(500) * pace,
                election_duration: Duration::from_millis(300) * pace,
            },
            strict_lowest: true,
            channel: "example".to_owned(),
            metrics: None,
        };
        let service = LeaderElectionService::start(adapter, name, callback, settings)?;
        // The callback waits for it.
        election.get_or_init(|| service.handle());
        Ok(Self {
            name,
            service,
            delivery,
        })
    }

    /// Ends the peer as a crash does. A service that stops makes no more callbacks.
    fn crash(&self, network: &Network) {
        network.remove(&PeerId::from(self.name));
        self.service.stop();
        let mut delivery = self.delivery.lock().unwrap_or_else(PoisonError::into_inner);
        delivery.stop();
    }
}

/// Runs the example and returns the peers that delivered, in their order. Windows are `pace` times as long as they
/// could be without other load on the machine.
///
/// # Errors
/// When the services do not start and stop in the expected order, or not in time.
pub(crate) fn show(
    pace: u32,
    mut emit: impl FnMut(&str),
) -> Result<Vec<&'static str>, Box<dyn Error>> {
    let network = Network::default();
    let (reports, results) = mpsc::channel();
    let source_fails = Arc::new(AtomicBool::new(true));
    let members = ["p0", "p1", "p2", "p3"].map(|peer| {
        let delivery = Delivery {
            peer,
            reports: reports.clone(),
            source_fails: Arc::clone(&source_fails),
            worker: None,
        };
        Member::join(&network, delivery, pace)
    });
    let members: Vec<Member> = members.into_iter().collect::<Result<_, _>>()?;
    drop(reports);

    let mut expect = |expected: Report, who: Option<&str>| {
        let (peer, found) = results.recv_timeout(TIMEOUT)?;
        emit(&format!("{peer}: {found:?}"));
        if found != expected || who.is_some_and(|who| who != peer) {
            return Err::<&'static str, Box<dyn Error>>(
                format!("{expected:?} of {who:?} was expected").into(),
            );
        }
        Ok(peer)
    };
    let first = expect(Report::Started, None)?;
    expect(Report::Delivers, Some(first))?;
    expect(Report::Failed, Some(first))?;
    expect(Report::Stopped, Some(first))?;

    let second = expect(Report::Started, None)?;
    expect(Report::Delivers, Some(second))?;
    if let Some(leader) = members.iter().find(|member| member.name == second) {
        leader.crash(&network);
    }
    expect(Report::Stopped, Some(second))?;

    let third = expect(Report::Started, None)?;
    expect(Report::Delivers, Some(third))?;
    if first == second || second == third {
        return Err("a peer followed itself".into());
    }
    for member in &members {
        member.crash(&network);
    }
    Ok(vec![first, second, third])
}

#[allow(dead_code)] // a test runs `show` alone
fn main() -> Result<(), Box<dyn Error>> {
    let leaders = show(1, |line| println!("{line}"))?;
    println!("the service ran on {}", leaders.join(", then on "));
    Ok(())
}
