use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::memory::{Adapter, EnterError, Network};
use super::service::Elector;
use super::*;
use crate::core::time::Time;

/// The constants of the tests of Fabric's election package.
const SHORT: Windows = Windows {
    startup_grace: ms(500),
    sample_interval: ms(100),
    alive_threshold: ms(500),
    election_duration: ms(500),
};
/// Time for another thread to do what it does at once; only a failing test waits this long.
const TIMEOUT: Duration = Duration::from_secs(30);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn settings(channel: &str) -> Settings {
    Settings {
        windows: SHORT,
        channel: channel.to_owned(),
        ..Settings::default()
    }
}

type Log<T> = Arc<Mutex<Vec<T>>>;

fn logged<T: Clone>(log: &Log<T>) -> Vec<T> {
    log.lock().expect("no panic").clone()
}

struct Member {
    adapter: Adapter,
    elector: Elector,
    inbox: Receiver<Message>,
    callbacks: Log<bool>,
    metrics: Log<(String, u8)>,
}

/// Services in virtual time: the loop of a service without its thread. Messages take no time.
struct Party {
    now: Time,
    network: Network,
    members: Vec<Member>,
}

impl Party {
    fn of(ids: &[&str]) -> Self {
        let mut party = Self {
            now: Time::ZERO,
            network: Network::default(),
            members: Vec::new(),
        };
        for id in ids {
            let adapter = party.network.enter(*id, "org").expect("free");
            let inbox = adapter.accept();
            let callbacks = Log::default();
            let metrics = Log::default();
            let (notified, reported) = (Arc::clone(&callbacks), Arc::clone(&metrics));
            let settings = Settings {
                metrics: Some(Box::new(move |channel, value| {
                    let mut reported = reported.lock().expect("no panic");
                    reported.push((channel.to_owned(), value));
                })),
                ..settings("room")
            };
            let callback = move |leads| notified.lock().expect("no panic").push(leads);
            let elector = Elector::new((*id).into(), callback, settings).expect("valid");
            party.members.push(Member {
                adapter,
                elector,
                inbox,
                callbacks,
                metrics,
            });
        }
        for member in &mut party.members {
            member.elector.begin(&member.adapter, party.now);
        }
        party
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.deliver();
            let deadlines = self.members.iter().map(|one| one.elector.next_deadline());
            let Some(next) = deadlines.flatten().min().filter(|next| *next <= end) else {
                break;
            };
            self.now = next;
            for member in &mut self.members {
                member.elector.tick(&member.adapter, self.now);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for member in &mut self.members {
                while let Some(message) = member.inbox.try_receive() {
                    quiet = false;
                    member.elector.receive(&member.adapter, self.now, &message);
                }
            }
        }
    }

    fn yield_leadership(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.elector.handle().yield_leadership();
        member.elector.tick(&member.adapter, self.now);
    }

    fn leaders(&self) -> Vec<usize> {
        let leads = |index: &usize| self.members[*index].elector.handle().is_leader();
        (0..self.members.len()).filter(leads).collect()
    }

    fn callbacks(&self, index: usize) -> Vec<bool> {
        logged(&self.members[index].callbacks)
    }
}

#[test]
fn the_lowest_of_peers_that_start_together_leads_and_is_alone_notified() {
    let mut party = Party::of(&["p2", "p0", "p1"]);
    party.run_for(ms(5_000));
    assert_eq!(party.leaders(), [1]);
    assert_eq!(party.callbacks(1), [true]);
    assert!(party.callbacks(0).is_empty());
    assert!(party.callbacks(2).is_empty());
}

#[test]
fn f7_a_service_that_yields_is_notified_once_and_another_leads() {
    let mut party = Party::of(&["p0", "p1", "p2"]);
    party.run_for(ms(5_000));
    party.yield_leadership(0);
    party.yield_leadership(0);
    assert_eq!(party.callbacks(0), [true, false]);
    party.run_for(ms(5_000));
    assert_eq!(party.leaders(), [1]);
    assert_eq!(party.callbacks(0), [true, false]);
}

#[test]
fn f10_parts_have_leaders_and_one_remains_when_they_merge() {
    let ids = ["p0", "p1", "p2", "p3"];
    let mut party = Party::of(&ids);
    party.run_for(ms(5_000));
    for (part, id) in ids.iter().enumerate() {
        party.network.set_part(&PeerId::from(*id), part as u32);
    }
    party.run_for(ms(5_000));
    assert_eq!(party.leaders(), [0, 1, 2, 3]);
    for id in ids {
        party.network.set_part(&PeerId::from(id), 0);
    }
    party.run_for(ms(5_000));
    assert_eq!(party.leaders(), [0]);
    for index in 1..4 {
        assert_eq!(party.callbacks(index), [true, false]);
    }
}

#[test]
fn f11_ids_are_shown_in_hexadecimal_and_a_missing_one_is_named() {
    assert_eq!(PeerId::printed(None), "<nil>");
    assert_eq!(PeerId::from("").to_string(), "");
    assert_eq!(PeerId::from([0x0a, 0xff]).to_string(), "0aff");
    assert_eq!(PeerId::printed(Some(&PeerId::from([1]))), "01");
}

#[test]
fn f12_an_adapter_may_leave_twice_and_its_end_of_the_channel_closes() {
    let network = Network::default();
    let adapter = network.enter("a", "org").expect("free");
    let mut inbox = adapter.accept();
    adapter.stop();
    adapter.stop();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().expect("a runtime");
    assert_eq!(runtime.block_on(inbox.receive()), None);
    // Another peer may have its id; the old adapter does not affect it.
    let again = network.enter("a", "org").expect("free");
    drop(adapter);
    assert_eq!(
        network.enter("a", "org").err(),
        Some(EnterError::Taken("a".into()))
    );
    drop(again);
}

#[test]
fn f13_the_kinds_of_messages_exclude_each_other() {
    let network = Network::default();
    let adapter = network.enter("a", "org").expect("free");
    let declaration = adapter.create_message(true);
    let proposal = adapter.create_message(false);
    assert!(declaration.is_declaration() && !declaration.is_proposal());
    assert!(proposal.is_proposal() && !proposal.is_declaration());
    assert_eq!(proposal.sender_id(), &PeerId::from("a"));
    assert!(declaration.order() < proposal.order(), "one count for both");
}

#[test]
fn f14_an_adapter_sees_its_own_group_alone() {
    let network = Network::default();
    let enter = |id: u8, group| network.enter([id], group).expect("free");
    let first: Vec<Adapter> = (0..6).map(|id| enter(id, "A")).collect();
    let second: Vec<Adapter> = (6..9).map(|id| enter(id, "B")).collect();
    assert_eq!(
        first[0].peers(),
        [1, 2, 3, 4, 5].map(|id| PeerId::from([id]))
    );
    assert_eq!(second[1].peers(), [6, 8].map(|id| PeerId::from([id])));
}

#[test]
fn f15_a_message_comes_to_each_of_the_others_once() {
    let network = Network::default();
    let enter = |id: u8| network.enter([id], "org").expect("free");
    let adapters = [enter(0), enter(1), enter(2)];
    let mut inboxes = adapters.each_ref().map(Adapter::accept);
    adapters[0].gossip(adapters[0].create_message(true));
    assert_eq!(inboxes[0].try_receive(), None);
    for inbox in &mut inboxes[1..] {
        let message = inbox.try_receive().expect("it has come");
        assert_eq!(message.sender_id(), &PeerId::from([0]));
        assert!(message.is_declaration());
        assert_eq!(inbox.try_receive(), None);
    }
}

#[test]
fn f16_the_metric_is_one_for_a_leader_and_zero_for_others_with_its_channel() {
    let mut party = Party::of(&["p0", "p1"]);
    party.run_for(ms(600));
    let notified = |party: &Party, index: usize| logged(&party.members[index].metrics);
    assert_eq!(notified(&party, 0), [("room".to_owned(), 1)]);
    assert_eq!(notified(&party, 1), [("room".to_owned(), 0)]);
    party.yield_leadership(0);
    party.run_for(ms(250));
    assert_eq!(notified(&party, 0).last(), Some(&("room".to_owned(), 0)));
}

#[test]
fn a_full_channel_drops_messages_and_reports_it() {
    let (sender, mut receiver) = channel(2);
    assert!(sender.send(1) && sender.send(2));
    assert!(!sender.send(3));
    assert_eq!(receiver.try_receive(), Some(1));
    assert!(sender.send(4));
    drop(receiver);
    assert!(!sender.send(5));
}

/// A service with its own thread, alone in its network, whose callback reports here.
fn alone(
    mut callback: impl FnMut(bool) + Send + 'static,
) -> (LeaderElectionService, mpsc::Receiver<bool>) {
    let (notified, receives) = mpsc::channel();
    let adapter = Network::default().enter("a", "org").expect("free");
    let settings = Settings {
        windows: Windows {
            startup_grace: ms(10),
            sample_interval: ms(5),
            alive_threshold: ms(20),
            election_duration: ms(5),
        },
        ..Settings::default()
    };
    let callback = move |leads| {
        // The test may have dropped the receiver.
        let _ = notified.send(leads);
        callback(leads);
    };
    let service = LeaderElectionService::start(adapter, "a", callback, settings);
    (service.expect("starts"), receives)
}

#[test]
fn a_service_leads_yields_and_leads_again() {
    let (service, receives) = alone(|_| {});
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    service.yield_leadership();
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(false));
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    assert!(service.is_leader());
}

#[test]
fn f26_a_stopped_leader_receives_nothing_and_still_shows_itself_as_leader() {
    let (service, receives) = alone(|_| {});
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    service.stop();
    service.stop();
    // The thread has ended, and dropped its end of the channel.
    assert_eq!(receives.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    assert!(service.is_leader());
    service.yield_leadership();
    assert!(service.is_leader());
}

#[test]
fn a_callback_may_yield_and_may_stop_its_own_service() {
    let handle: Arc<Mutex<Option<Arc<LeaderElectionService>>>> = Arc::default();
    let inside = Arc::clone(&handle);
    let (let_go, wait) = mpsc::channel::<()>();
    let mut calls = 0;
    let (service, receives) = alone(move |leads| {
        calls += 1;
        if calls == 1 {
            wait.recv().expect("let go");
        }
        let service = inside.lock().expect("no panic").clone().expect("set");
        if leads {
            service.yield_leadership();
        } else {
            service.stop();
        }
    });
    let service = Arc::new(service);
    *handle.lock().expect("no panic") = Some(Arc::clone(&service));
    let_go.send(()).expect("waited for");
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(false));
    assert_eq!(
        receives.recv_timeout(TIMEOUT),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
    service.stop();
    *handle.lock().expect("no panic") = None;
}

#[test]
fn a_callback_that_panics_on_gain_makes_the_peer_yield_and_the_service_go_on() {
    let mut first = true;
    let (service, receives) = alone(move |leads| {
        if leads && std::mem::take(&mut first) {
            panic!("wanted: the leader's work does not start");
        }
    });
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(false));
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    assert_eq!(service.panics(), 1);
}

/// An adapter whose calls panic, or which has no messages.
struct Broken {
    creator: MessageCreator,
    panics_on_declaration: bool,
}

impl LeaderElectionAdapter for Broken {
    type Msg = Message;
    type Peer = PeerId;

    fn gossip(&self, message: Message) {
        let breaks = self.panics_on_declaration && message.is_declaration();
        assert!(!breaks, "wanted: the network breaks down");
    }

    fn accept(&self) -> Receiver<Message> {
        channel(1).1
    }

    fn create_message(&self, is_declaration: bool) -> Message {
        self.creator.create(is_declaration)
    }

    fn peers(&self) -> Vec<PeerId> {
        Vec::new()
    }
}

fn broken(panics_on_declaration: bool) -> (LeaderElectionService, mpsc::Receiver<bool>) {
    let (notified, receives) = mpsc::channel();
    let adapter = Broken {
        creator: MessageCreator::new("a".into()),
        panics_on_declaration,
    };
    let settings = Settings {
        windows: Windows {
            sample_interval: ms(5),
            election_duration: ms(5),
            ..SHORT
        },
        ..Settings::default()
    };
    let callback = move |leads| {
        // The test may have dropped the receiver.
        let _ = notified.send(leads);
    };
    let service = LeaderElectionService::start(adapter, "a", callback, settings);
    (service.expect("starts"), receives)
}

#[test]
fn a_panic_of_the_adapter_ends_the_leadership_with_a_notification() {
    let (service, receives) = broken(true);
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(false));
    assert_eq!(
        receives.recv_timeout(TIMEOUT),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
    assert!(!service.is_leader());
    assert_eq!(service.panics(), 1);
}

#[test]
fn a_service_whose_adapter_has_no_messages_to_give_leads_alone() {
    let (service, receives) = broken(false);
    assert_eq!(receives.recv_timeout(TIMEOUT), Ok(true));
    service.stop();
    assert!(service.is_leader());
}

#[test]
fn bad_settings_are_refused() {
    let start = |id: Vec<u8>, windows| {
        let adapter = Network::default().enter("a", "org").expect("free");
        let settings = Settings {
            windows,
            ..Settings::default()
        };
        let started = LeaderElectionService::start(adapter, id, |_| {}, settings);
        started.err().map(|error| error.to_string())
    };
    let reason = |error: Option<String>| error.expect("refused");
    assert_eq!(
        reason(start(vec![], SHORT)),
        "the id is empty; give 1 to 1024 bytes"
    );
    let long = reason(start(vec![0; MAX_ID_BYTES + 1], SHORT));
    assert_eq!(long, "the id has 1025 bytes; at most 1024 are allowed");
    let zero = Windows {
        alive_threshold: ms(0),
        ..SHORT
    };
    assert!(reason(start(vec![1], zero)).starts_with("alive_threshold is 0ns"));
}
