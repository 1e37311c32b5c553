//! Routers of all kinds, on loopback: honest, silent, and hostile ones.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crab_nat::GATEWAY_PORT;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::requests::LIFETIME;
use super::*;

const OUTER: Ipv4Addr = Ipv4Addr::new(198, 20, 0, 1);
const PORT: u16 = 4433;
const MINUTE: Duration = Duration::from_secs(60);

/// Answers of a router to requests for a port.
#[derive(Debug, Clone, Copy)]
struct Answers {
    speaks_pcp: bool,
    speaks_natpmp: bool,
    outer: Ipv4Addr,
    port: u16,
    lifetime: u32,
    epoch: u32,
    /// Code of the result; 0 is a success.
    result: u8,
    /// Instead of any answer.
    garbage: Option<&'static [u8]>,
}

const HONEST: Answers = Answers {
    speaks_pcp: true,
    speaks_natpmp: true,
    outer: OUTER,
    port: 7000,
    lifetime: 3600,
    epoch: 1000,
    result: 0,
    garbage: None,
};
const SILENT: Answers = Answers {
    speaks_pcp: false,
    speaks_natpmp: false,
    ..HONEST
};

/// A router that answers to requests.
struct Router {
    address: Ipv4Addr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

struct State {
    answers: Answers,
    /// The requests so far, and when they came.
    requests: Vec<(Instant, Vec<u8>)>,
}

impl Router {
    /// Each test has a router at an address of its own.
    async fn at(last: u8, answers: Answers) -> Self {
        let address = Ipv4Addr::new(127, 0, 77, last);
        let socket = UdpSocket::bind((address, GATEWAY_PORT)).await;
        let socket = socket.expect("nothing else is there");
        let state = Arc::new(Mutex::new(State {
            answers,
            requests: Vec::new(),
        }));
        let task = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                let mut packet = [0; 1100];
                while let Ok((len, from)) = socket.recv_from(&mut packet).await {
                    let request = packet[..len].to_vec();
                    let answer = {
                        let mut state = lock(&state);
                        let answer = answer(&state.answers, &request);
                        state.requests.push((Instant::now(), request));
                        answer
                    };
                    if let Some(answer) = answer {
                        socket.send_to(&answer, from).await.expect("sent");
                    }
                }
            }
        });
        Self {
            address,
            state,
            task,
        }
    }

    fn gateway(&self) -> Gateway {
        Gateway {
            address: self.address,
            client: Ipv4Addr::LOCALHOST,
        }
    }

    fn set(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut lock(&self.state).answers);
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        let state = lock(&self.state);
        state
            .requests
            .iter()
            .map(|(_, bytes)| bytes.clone())
            .collect()
    }

    /// Number of packets that came within `length` from the first one on.
    fn packets_within(&self, length: Duration) -> usize {
        let state = lock(&self.state);
        let Some((first, _)) = state.requests.first() else {
            return 0;
        };
        let early = state.requests.iter();
        early.filter(|(at, _)| *at - *first < length).count()
    }

    /// Whether the last request frees the port.
    fn is_freed(&self) -> bool {
        self.requests().last().is_some_and(|last| frees(last))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn frees(request: &[u8]) -> bool {
    match request[0] {
        2 => request[4..8] == [0; 4],
        _ => request.len() == 12 && request[8..12] == [0; 4],
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(answers: &Answers, request: &[u8]) -> Option<Vec<u8>> {
    if let Some(garbage) = answers.garbage {
        return Some(garbage.to_vec());
    }
    match request[0] {
        2 if answers.speaks_pcp => {
            // The header, and the nonce, the protocol and the inner port of the request.
            let mut answer = vec![2, 0x81, 0, answers.result];
            let frees = request[4..8] == [0; 4];
            let (lifetime, port) = match frees {
                true => (0, 0),
                false => (answers.lifetime, answers.port),
            };
            answer.extend(lifetime.to_be_bytes());
            answer.extend(answers.epoch.to_be_bytes());
            answer.extend([0; 12]);
            answer.extend(&request[24..42]);
            answer.extend(port.to_be_bytes());
            answer.extend(answers.outer.to_ipv6_mapped().octets());
            Some(answer)
        }
        2 if answers.speaks_natpmp => {
            let mut answer = vec![0, 0x80, 0, 1];
            answer.extend(answers.epoch.to_be_bytes());
            Some(answer)
        }
        0 if answers.speaks_natpmp => {
            let mut answer = vec![0, 0x80 | request[1], 0, answers.result];
            answer.extend(answers.epoch.to_be_bytes());
            match request[1] {
                0 => answer.extend(answers.outer.octets()),
                _ => {
                    let frees = request[8..12] == [0; 4];
                    let (lifetime, port) = match frees {
                        true => (0, 0),
                        false => (answers.lifetime, answers.port),
                    };
                    answer.extend(&request[4..6]);
                    answer.extend(port.to_be_bytes());
                    answer.extend(lifetime.to_be_bytes());
                }
            }
            Some(answer)
        }
        _ => None,
    }
}

struct Asking {
    mapper: Mapper,
    reports: mpsc::Receiver<MappingChange>,
    present: Arc<Mutex<Option<Gateway>>>,
}

/// Asks that router, until another one takes its place.
fn ask(router: &Router) -> Asking {
    let present = Arc::new(Mutex::new(Some(router.gateway())));
    let find = {
        let present = Arc::clone(&present);
        move || *present.lock().unwrap_or_else(PoisonError::into_inner)
    };
    let (mapper, reports) = Mapper::start_with(PORT, Box::new(find), Arc::default(), 1);
    Asking {
        mapper: mapper.expect("a port"),
        reports,
        present,
    }
}

impl Asking {
    async fn next(&mut self) -> MappingChange {
        let report = timeout(60 * MINUTE, self.reports.recv()).await;
        report.expect("in time").expect("it asks")
    }

    fn moves_to(&self, gateway: Option<Gateway>) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = gateway;
    }
}

fn claimed(port: u16) -> MappingChange {
    MappingChange::Claimed(SocketAddr::from((OUTER, port)))
}

#[tokio::test(start_paused = true)]
async fn a_port_is_renewed_at_half_its_time_and_given_back() {
    for (last, speaks_pcp) in [(1, true), (2, false)] {
        let answers = Answers {
            speaks_pcp,
            lifetime: 300,
            ..HONEST
        };
        let router = Router::at(last, answers).await;
        let mut asking = ask(&router);
        assert_eq!(asking.next().await, claimed(7000));
        let first = router.requests().len();
        // It renews as it has asked: the request by PCP is not repeated where NAT-PMP has answered.
        let renewed = first + if speaks_pcp { 1 } else { 2 };
        sleep(Duration::from_secs(110)).await;
        assert_eq!(router.requests().len(), first, "too early");
        sleep(Duration::from_secs(60)).await;
        assert_eq!(router.requests().len(), renewed, "it renews");
        let named = &router.requests()[renewed - 1];
        let outer = match speaks_pcp {
            true => &named[42..44],
            false => &named[6..8],
        };
        assert_eq!(outer, 7000_u16.to_be_bytes(), "it wants to keep its port");
        assert!(asking.reports.try_recv().is_err(), "nothing has changed");
        asking.mapper.end().await;
        assert!(router.is_freed(), "{:?}", router.requests());
    }
}

#[tokio::test(start_paused = true)]
async fn a_router_that_is_silent_gets_few_packets_and_delays_no_close() {
    let router = Router::at(3, SILENT).await;
    let mut asking = ask(&router);
    let failed = MappingChange::Failed(MappingFault::NoAnswer);
    assert_eq!(asking.next().await, failed);
    sleep(60 * MINUTE).await;
    assert!((4..=9).contains(&router.packets_within(MINUTE)));
    assert!(router.packets_within(60 * MINUTE) <= 40);
    assert!(asking.reports.try_recv().is_err(), "it is reported once");
    router.set(|answers| *answers = HONEST);
    assert_eq!(asking.next().await, claimed(7000), "it goes on trying");
    router.set(|answers| *answers = SILENT);
    let began = Instant::now();
    asking.mapper.end().await;
    assert!(began.elapsed() <= REMOVAL_LIMIT + Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn answers_that_make_no_sense_map_nothing() {
    const LONG: [u8; 1500] = [2; 1500];
    let garbage: [&'static [u8]; 6] = [
        b"",
        b"\x02",
        b"\x00\x80\x00\x00",
        &[0xff; 60],
        &[0; 16],
        &LONG,
    ];
    let router = Router::at(4, HONEST).await;
    for (number, garbage) in garbage.into_iter().enumerate() {
        router.set(|answers| answers.garbage = Some(garbage));
        let mut asking = ask(&router);
        let report = asking.next().await;
        assert!(
            matches!(
                report,
                MappingChange::Failed(MappingFault::Malformed | MappingFault::NoAnswer)
            ),
            "{number}: {report:?}"
        );
        sleep(10 * MINUTE).await;
        asking.mapper.end().await;
    }
    assert!(
        router.requests().len() < 6 * 30,
        "{}",
        router.requests().len()
    );
}

#[tokio::test(start_paused = true)]
async fn an_outer_address_that_none_can_dial_is_not_passed_on() {
    let router = Router::at(5, HONEST).await;
    for speaks_pcp in [true, false] {
        for (outer, fault) in [
            ("0.0.0.0", MappingFault::Malformed),
            ("127.0.0.1", MappingFault::Malformed),
            ("224.0.0.1", MappingFault::Malformed),
            ("255.255.255.255", MappingFault::Malformed),
            ("240.0.0.1", MappingFault::Malformed),
            ("192.0.0.8", MappingFault::Malformed),
            ("192.0.2.1", MappingFault::Malformed),
            ("198.51.100.1", MappingFault::Malformed),
            ("203.0.113.1", MappingFault::Malformed),
            ("198.18.0.1", MappingFault::Malformed),
            ("198.19.255.1", MappingFault::Malformed),
            ("10.1.2.3", MappingFault::NotPublic),
            ("192.168.1.1", MappingFault::NotPublic),
            ("100.64.0.1", MappingFault::NotPublic),
            ("169.254.1.1", MappingFault::NotPublic),
        ] {
            router.set(|answers| {
                answers.speaks_pcp = speaks_pcp;
                answers.outer = outer.parse().expect("an address");
            });
            let mut asking = ask(&router);
            assert_eq!(asking.next().await, MappingChange::Failed(fault), "{outer}");
            asking.mapper.end().await;
        }
        router.set(|answers| (answers.outer, answers.port) = (OUTER, 0));
        let mut asking = ask(&router);
        let failed = MappingChange::Failed(MappingFault::Malformed);
        assert_eq!(asking.next().await, failed, "port 0");
        asking.mapper.end().await;
        router.set(|answers| answers.port = 7000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_of_nearly_nothing_or_of_forever_is_bounded() {
    let router = Router::at(6, HONEST).await;
    for lifetime in [0, 1, 29] {
        router.set(|answers| answers.lifetime = lifetime);
        let mut asking = ask(&router);
        let failed = MappingChange::Failed(MappingFault::Malformed);
        assert_eq!(asking.next().await, failed, "{lifetime}");
        assert!(router.is_freed(), "{:?}", router.requests());
        asking.mapper.end().await;
    }

    router.set(|answers| answers.lifetime = u32::MAX);
    let before = router.requests().len();
    let mut asking = ask(&router);
    assert_eq!(asking.next().await, claimed(7000));
    sleep(LIFETIME / 2 + Duration::from_secs(1)).await;
    assert_eq!(
        router.requests().len(),
        before + 2,
        "it renews as if it were short"
    );
    asking.mapper.end().await;

    router.set(|answers| answers.lifetime = 30);
    let before = router.requests().len();
    let mut asking = ask(&router);
    assert_eq!(asking.next().await, claimed(7000));
    sleep(10 * MINUTE).await;
    assert!((30..=60).contains(&(router.requests().len() - before)));
    asking.mapper.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_changes_is_reported_and_one_that_ends_is_withdrawn() {
    let router = Router::at(7, HONEST).await;
    let mut asking = ask(&router);
    assert_eq!(asking.next().await, claimed(7000));
    // It has restarted: its clock begins anew, and another one has the port now.
    router.set(|answers| (answers.epoch, answers.port) = (3, 7001));
    assert_eq!(asking.next().await, claimed(7001));
    router.set(|answers| *answers = SILENT);
    let began = Instant::now();
    let failed = MappingChange::Failed(MappingFault::NoAnswer);
    assert_eq!(asking.next().await, failed);
    let until = LIFETIME / 2 * 3 / 4..=LIFETIME + Duration::from_secs(5);
    assert!(until.contains(&began.elapsed()), "{:?}", began.elapsed());
    asking.mapper.end().await;
}

#[tokio::test(start_paused = true)]
async fn hints_make_it_ask_soon_and_not_often() {
    let router = Router::at(8, HONEST).await;
    let mut asking = ask(&router);
    assert_eq!(asking.next().await, claimed(7000));
    let before = router.requests().len();
    for _ in 0..60 {
        asking.mapper.hint();
        sleep(Duration::from_secs(1)).await;
    }
    let asked = router.requests().len() - before;
    assert!((2..=5).contains(&asked), "{asked}");
    asking.mapper.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_router_is_asked_and_the_port_of_the_first_given_back() {
    let (first, second) = (Router::at(9, HONEST).await, Router::at(10, HONEST).await);
    second.set(|answers| answers.port = 7002);
    let mut asking = ask(&first);
    assert_eq!(asking.next().await, claimed(7000));
    asking.moves_to(Some(second.gateway()));
    assert_eq!(asking.next().await, MappingChange::Withdrawn);
    assert_eq!(asking.next().await, claimed(7002));
    assert!(first.is_freed());
    asking.moves_to(None);
    assert_eq!(asking.next().await, MappingChange::Withdrawn);
    let none = MappingChange::Failed(MappingFault::NoRouter);
    assert_eq!(asking.next().await, none);
    assert!(second.is_freed());
    asking.mapper.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_refused_or_makes_no_sense_ends_the_port() {
    const REFUSED: u8 = 2;
    let router = Router::at(11, HONEST).await;
    let private = |answers: &mut Answers| answers.outer = Ipv4Addr::new(10, 1, 2, 3);
    let refusing = |answers: &mut Answers| answers.result = REFUSED;
    let changes: [(fn(&mut Answers), _); 2] = [
        (private, MappingFault::NotPublic),
        (refusing, MappingFault::Refused),
    ];
    for speaks_pcp in [true, false] {
        for (change, fault) in changes {
            router.set(|answers| {
                *answers = HONEST;
                answers.speaks_pcp = speaks_pcp;
            });
            let mut asking = ask(&router);
            assert_eq!(asking.next().await, claimed(7000));
            router.set(change);
            let began = Instant::now();
            assert_eq!(asking.next().await, MappingChange::Failed(fault));
            let elapsed = began.elapsed();
            assert!(elapsed < LIFETIME * 3 / 4, "at the renewal: {elapsed:?}");
            // The report comes before the removal.
            sleep(Duration::from_secs(1)).await;
            assert!(router.is_freed(), "{:?}", router.requests());
            asking.mapper.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_during_the_first_request_takes_it_back() {
    let router = Router::at(12, SILENT).await;
    let asking = ask(&router);
    while router.requests().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    asking.mapper.end().await;
    assert!(began.elapsed() <= REMOVAL_LIMIT + Duration::from_millis(50));
    let requests = router.requests();
    let taken_back = |version: u8| {
        let mut found = requests.iter();
        found.find(|request| request[0] == version && frees(request))
    };
    let by_pcp = taken_back(2).expect("by PCP");
    assert_eq!(by_pcp[24..36], requests[0][24..36], "its nonce");
    assert_eq!(by_pcp[40..42], PORT.to_be_bytes());
    let by_natpmp = taken_back(0).expect("by NAT-PMP");
    assert_eq!(by_natpmp[4..6], PORT.to_be_bytes());
}

#[tokio::test(start_paused = true)]
async fn a_room_that_reads_no_reports_any_more_gives_the_port_back() {
    let router = Router::at(13, HONEST).await;
    let mut asking = ask(&router);
    assert_eq!(asking.next().await, claimed(7000));
    drop(asking.reports);
    sleep(2 * LOOK_INTERVAL).await;
    assert!(router.is_freed(), "{:?}", router.requests());
}

#[tokio::test]
async fn an_announcement_counts_if_it_is_the_gateways() {
    let gateway = Gateway {
        address: Ipv4Addr::new(127, 0, 77, 14),
        client: Ipv4Addr::LOCALHOST,
    };
    let announcements = Announcements::of(gateway).expect("nothing else keeps the port");
    let announce = async |from: Ipv4Addr| {
        let socket = UdpSocket::bind((from, 0)).await.expect("free");
        let to = (Ipv4Addr::LOCALHOST, announcements::PORT);
        socket.send_to(b"any", to).await.expect("sent");
    };
    announce(Ipv4Addr::new(127, 0, 77, 15)).await;
    let next = timeout(Duration::from_millis(300), announcements.next(gateway)).await;
    assert!(next.is_err(), "another machine's");
    // A socket that another test opens on this port meanwhile takes the packets for one machine, until it closes.
    let again = async {
        loop {
            announce(gateway.address).await;
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        next = timeout(MINUTE, announcements.next(gateway)) => next.expect("in time").expect("received"),
        () = again => unreachable!("it goes on"),
    }
}
