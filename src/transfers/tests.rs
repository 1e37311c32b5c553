//! Two ends of transfers without a link between them: frames pass, or are lost, as a test wants.

use std::sync::Mutex as StdMutex;

use super::wire::{PART_BYTES, Why};
use super::*;
use crate::config::DispatchMode;
use crate::core::event::TransferNews;
use crate::dispatch::{Limits, kind};

/// One end, and what its host has received: numbers, with an outcome for results.
struct End {
    transfers: Transfers,
    results: Arc<StdMutex<Vec<(u64, TransferOutcome)>>>,
    offers: Arc<StdMutex<Vec<u64>>>,
}

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("an id")
}

impl End {
    /// The host takes events as soon as it polls.
    fn open(me: &str, other: &str) -> Self {
        let limits = Limits {
            messages: 10,
            bytes: 1 << 20,
            hold: Duration::from_secs(1),
        };
        let dispatch = Dispatch::start(limits, id(me), DispatchMode::Poll).expect("no thread");
        let (results, offers) = (Arc::default(), Arc::default());
        let end = Self {
            transfers: Transfers::new(id(me), Arc::new(dispatch)),
            results: Arc::clone(&results),
            offers: Arc::clone(&offers),
        };
        let handler = move |report: kind::Report<'_>| {
            let kind::Reported::Room(Event::Transfer(transfer)) = report.event else {
                return;
            };
            match transfer.news {
                TransferNews::Offered { .. } => lock(&offers).push(transfer.id),
                TransferNews::Ended { outcome, .. } => lock(&results).push((transfer.id, outcome)),
                _ => {}
            }
        };
        let handler: kind::EventHandler = Arc::new(handler);
        end.transfers
            .dispatch
            .register::<kind::Everything>(Some(handler));
        end.transfers.open(&id(other), true);
        end.link(other);
        end
    }

    fn link(&self, other: &str) {
        assert!(self.transfers.attach(&id(other)).is_some());
    }

    fn poll(&self) {
        self.transfers.dispatch.poll(usize::MAX).expect("polls");
    }

    fn results(&self) -> Vec<(u64, TransferOutcome)> {
        self.poll();
        lock(&self.results).clone()
    }

    fn offers(&self) -> Vec<u64> {
        self.poll();
        lock(&self.offers).clone()
    }

    fn send(&self, to: &str, data: &[u8]) -> u64 {
        let mut sent = 0;
        let taken = self
            .transfers
            .send(&id(to), data, b"", |number| sent = number);
        assert_eq!(taken, Ok(()));
        sent
    }

    fn frames(&self, to: &str) -> Vec<TransferFrame> {
        self.transfers.take_frames(&id(to)).0
    }

    fn accept_in_parts(&self, from: &str, transfer: u64) {
        let accepted = self.transfers.accept(&id(from), transfer, Accept::Parts);
        assert_eq!(accepted, Ok(()));
    }
}

fn lock<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("not poisoned")
}

/// Two linked ends, "a" and "b".
fn two() -> (End, End) {
    (End::open("a", "b"), End::open("b", "a"))
}

/// Passes all frames and parts on until both ends rest. Returns the number of parts.
fn exchange(a: &End, b: &End) -> usize {
    let mut parts = 0;
    loop {
        let mut rests = true;
        for (from, to, [me, other]) in [(a, b, ["a", "b"]), (b, a, ["b", "a"])] {
            for frame in from.frames(other) {
                assert_eq!(to.transfers.frame(&id(me), frame), Ok(()));
                rests = false;
            }
            while let Some((header, bytes)) = from.transfers.take_part(&id(other)) {
                assert_eq!(to.transfers.part(&id(me), header, bytes), Ok(()));
                (rests, parts) = (false, parts + 1);
            }
            to.poll();
        }
        if rests {
            return parts;
        }
    }
}

/// Another link: what either end has taken for the old one is lost.
fn relink(a: &End, b: &End) {
    drop((a.frames("b"), b.frames("a")));
    a.link("b");
    b.link("a");
}

#[test]
fn a_result_that_was_lost_with_the_link_arrives_on_the_next() {
    for answer in [true, false] {
        let (a, b) = two();
        let sent = a.send("b", &[7; 100]);
        exchange(&a, &b);
        if answer {
            b.accept_in_parts("a", sent);
            for frame in b.frames("a") {
                assert_eq!(a.transfers.frame(&id("b"), frame), Ok(()));
            }
            let (header, bytes) = a.transfers.take_part(&id("b")).expect("granted");
            assert_eq!(b.transfers.part(&id("a"), header, bytes), Ok(()));
        } else {
            assert_eq!(b.transfers.cancel(&id("a"), sent), Ok(()));
        }
        let outcome = match answer {
            true => TransferOutcome::Complete,
            false => TransferOutcome::Refused,
        };
        assert_eq!(b.results(), [(sent, outcome)]);
        relink(&a, &b);
        assert_eq!(a.results(), []);
        exchange(&a, &b);
        assert_eq!(a.results(), [(sent, outcome)]);
        assert_eq!(b.results(), [(sent, outcome)], "no second result");
    }
}

#[test]
fn an_offer_a_cancel_and_an_answer_outlive_the_link_that_lost_them() {
    let (a, b) = two();
    let offered = a.send("b", b"the offer is lost");
    relink(&a, &b);
    assert!(b.offers().is_empty());
    exchange(&a, &b);
    assert_eq!(b.offers(), [offered]);
    b.accept_in_parts("a", offered);
    relink(&a, &b);
    exchange(&a, &b);
    assert_eq!(a.results(), [(offered, TransferOutcome::Complete)]);
    let cancelled = a.send("b", b"the cancel is lost");
    exchange(&a, &b);
    assert_eq!(a.transfers.cancel(&id("b"), cancelled), Ok(()));
    relink(&a, &b);
    exchange(&a, &b);
    let expected = (cancelled, TransferOutcome::CancelledBySender);
    assert_eq!(a.results()[1..], [expected]);
    assert_eq!(b.results()[1..], [expected]);
    assert_eq!(b.offers(), [offered, cancelled], "each was offered once");
}

#[test]
fn a_transfer_begins_on_the_next_link_with_the_byte_that_has_not_arrived() {
    let (a, b) = two();
    let data = vec![7; 20 * PART_BYTES];
    let sent = a.send("b", &data);
    exchange(&a, &b);
    b.accept_in_parts("a", sent);
    for frame in b.frames("a") {
        assert_eq!(a.transfers.frame(&id("b"), frame), Ok(()));
    }
    for number in 0..5 {
        let (header, bytes) = a.transfers.take_part(&id("b")).expect("granted");
        // The last two are lost.
        if number < 3 {
            assert_eq!(b.transfers.part(&id("a"), header, bytes), Ok(()));
        }
    }
    relink(&a, &b);
    assert!(
        a.transfers.take_part(&id("b")).is_none(),
        "nothing before the grant"
    );
    assert_eq!(exchange(&a, &b), 17);
    assert_eq!(a.results(), [(sent, TransferOutcome::Complete)]);
    assert_eq!(b.results(), [(sent, TransferOutcome::Complete)]);
}

#[test]
fn a_host_that_takes_no_parts_gets_one_window_of_them() {
    let (a, b) = two();
    let sent = a.send("b", &vec![7; 1 << 20]);
    exchange(&a, &b);
    b.accept_in_parts("a", sent);
    let mut arrived = 0;
    for _ in 0..10 {
        for frame in b.frames("a") {
            assert_eq!(a.transfers.frame(&id("b"), frame), Ok(()));
        }
        while let Some((header, bytes)) = a.transfers.take_part(&id("b")) {
            arrived += bytes.len() as u64;
            assert_eq!(b.transfers.part(&id("a"), header, bytes), Ok(()));
        }
    }
    assert_eq!(arrived, WINDOW_BYTES);
    b.poll();
    exchange(&a, &b);
    assert_eq!(a.results(), [(sent, TransferOutcome::Complete)]);
}

#[test]
fn transfers_to_one_peer_take_turns() {
    let (a, b) = two();
    let sent = [1, 2, 3].map(|byte| a.send("b", &[byte; 3 * PART_BYTES]));
    exchange(&a, &b);
    for transfer in sent {
        b.accept_in_parts("a", transfer);
    }
    for frame in b.frames("a") {
        assert_eq!(a.transfers.frame(&id("b"), frame), Ok(()));
    }
    let next = || a.transfers.take_part(&id("b")).map(|(header, _)| header.id);
    let turns: Vec<_> = std::iter::from_fn(next).collect();
    assert_eq!(turns, [sent, sent, sent].concat());
}

#[tokio::test(start_paused = true)]
async fn an_offer_without_an_answer_ends_after_a_minute() {
    let (a, b) = two();
    let answered = a.send("b", &[7; 100]);
    let unanswered = a.send("b", &[7; 100]);
    exchange(&a, &b);
    b.accept_in_parts("a", answered);
    exchange(&a, &b);
    let (_, deadline) = b.transfers.take_frames(&id("a"));
    let deadline = deadline.expect("one waits");
    assert_eq!(deadline - Instant::now(), ANSWER_LIMIT);
    tokio::time::advance(ANSWER_LIMIT).await;
    exchange(&a, &b);
    let expected = [
        (answered, TransferOutcome::Complete),
        (unanswered, TransferOutcome::Unanswered),
    ];
    assert_eq!(
        (a.results(), b.results()),
        (expected.to_vec(), expected.to_vec())
    );
    let late = b.transfers.accept(&id("a"), unanswered, Accept::Parts);
    assert_eq!(late, Err(DataTransferError::NotOffered { id: unanswered }));
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_the_peer_ignores_ends_at_the_sender() {
    let (a, _b) = two();
    let sent = a.send("b", &[7; 100]);
    assert!(matches!(a.frames("b")[..], [TransferFrame::Offer(_)]));
    tokio::time::advance(OFFER_LIMIT).await;
    assert_eq!(a.frames("b"), [TransferFrame::Cancel { id: sent }]);
    assert_eq!(a.results(), [(sent, TransferOutcome::Unanswered)]);
    let (_, deadline) = a.transfers.take_frames(&id("b"));
    assert_eq!(deadline, None);
}

#[test]
fn cancelled_transfers_make_room_for_others_before_the_peer_knows() {
    let (a, _b) = two();
    for number in 0.. {
        let sent: Vec<_> = (0..MAX_OPEN).map(|_| a.send("b", b"x")).collect();
        if number == 0 {
            drop(a.frames("b"));
        }
        let open = a.transfers.send(&id("b"), b"x", b"", |_| {});
        let max = MAX_OPEN;
        assert_eq!(open, Err(DataTransferError::TooMany { id: id("b"), max }));
        for sent in sent {
            assert_eq!(a.transfers.cancel(&id("b"), sent), Ok(()));
        }
        a.results();
        if number == 3 {
            return;
        }
    }
}

#[test]
fn a_peer_whose_library_knows_no_transfers_may_send_none() {
    let (a, _b) = two();
    a.transfers.open(&id("old"), false);
    let frame = TransferFrame::Cancel { id: 1 };
    assert!(a.transfers.frame(&id("old"), frame).is_err());
}

#[test]
fn a_host_that_takes_no_events_refuses_offers_and_sends_none() {
    let (a, b) = two();
    // Offers that are cancelled at once leave two events each at the other end.
    let mut sent = 0;
    let refused = loop {
        let mut number = 0;
        let taken = a.transfers.send(&id("b"), b"x", b"", |it| number = it);
        if let Err(refused) = taken {
            break refused;
        }
        for frame in a.frames("b") {
            assert_eq!(b.transfers.frame(&id("a"), frame), Ok(()));
        }
        assert_eq!(a.transfers.cancel(&id("b"), number), Ok(()));
        for frame in a.frames("b") {
            assert_eq!(b.transfers.frame(&id("a"), frame), Ok(()));
        }
        drop(b.frames("a"));
        sent += 1;
        assert!(sent <= 1000, "nothing bounds it");
    };
    assert_eq!(sent, MAX_UNREAD);
    assert_eq!(
        refused,
        DataTransferError::Unread {
            id: id("b"),
            max: MAX_UNREAD
        }
    );
    assert_eq!(b.offers().len(), MAX_UNREAD / 2, "the others were refused");
    assert_eq!(a.results().len(), sent);
    // Both hosts have received all.
    let after = a.send("b", b"x");
    exchange(&a, &b);
    assert_eq!(b.offers().last(), Some(&after));
}

#[test]
fn an_offer_that_was_refused_without_the_host_is_a_result_at_the_sender() {
    let (a, b) = two();
    let offer = |number: u64| {
        TransferFrame::Offer(Offer {
            id: 2 * number,
            size: 1,
            digest: [0; 32],
            tag: Vec::new(),
        })
    };
    for number in 1..=9 {
        assert_eq!(b.transfers.frame(&id("a"), offer(number)), Ok(()));
    }
    let busy = TransferFrame::Ended {
        id: 18,
        why: Why::Busy,
    };
    assert_eq!(b.frames("a"), [busy]);
    assert_eq!(b.offers().len(), MAX_OPEN);
    drop(a);
}

#[test]
fn the_end_of_a_session_is_the_result_of_each_of_its_transfers() {
    let (a, b) = two();
    let to_b = a.send("b", &[7; 100]);
    let cancelled = a.send("b", &[7; 100]);
    let to_a = b.send("a", &[7; 100]);
    exchange(&a, &b);
    assert_eq!(a.transfers.cancel(&id("b"), cancelled), Ok(()));
    a.transfers.close(&id("b"), TransferOutcome::PeerLeft);
    b.transfers.close_all();
    let mut at_a = a.results();
    at_a.sort_by_key(|(transfer, _)| *transfer);
    let left = TransferOutcome::PeerLeft;
    let mut expected = vec![
        (to_b, left),
        (cancelled, TransferOutcome::CancelledBySender),
        (to_a, left),
    ];
    expected.sort_by_key(|(transfer, _)| *transfer);
    assert_eq!(at_a, expected);
    let at_b = b.results();
    let ended = at_b.iter().all(|(_, it)| *it == TransferOutcome::RoomEnded);
    assert!(ended && at_b.len() == 3, "{at_b:?}");
    // Frames that still arrive of the peer are ignored.
    let late = TransferFrame::Cancel { id: to_a };
    assert_eq!(a.transfers.frame(&id("b"), late), Ok(()));
}
