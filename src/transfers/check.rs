//! Steps of a peer and a host in any order, for the fuzz target `transfer`.

use std::collections::BTreeMap;

#[cfg(test)]
use super::wire::PART_BYTES;
use super::wire::{MAX_PART_FRAME_BYTES, MAX_TRANSFER_FRAME_BYTES};
use super::*;
use crate::config::DispatchMode;
use crate::core::event::TransferNews;
use crate::dispatch::{Limits, kind};

/// Results by transfer, and the numbers of the offers that the host has received.
#[derive(Default)]
struct Received {
    results: BTreeMap<u64, usize>,
    offers: Vec<u64>,
    parts: usize,
}

/// Each step is a byte for its kind, and for what the peer sends its length in two bytes and its bytes. Nothing panics, each
/// transfer has at most one result, and the host never has more to take than the limits allow.
pub(crate) fn check(mut steps: &[u8]) {
    let limits = Limits {
        messages: 10,
        bytes: 1 << 20,
        hold: Duration::from_secs(1),
    };
    let id = |name| PeerId::new(name).expect("an id");
    let (me, peer) = (id("a"), id("b"));
    let dispatch = Dispatch::start(limits, me.clone(), DispatchMode::Poll).expect("no thread");
    let received = Arc::new(Mutex::new(Received::default()));
    let taken = Arc::clone(&received);
    let handler: kind::EventHandler = Arc::new(move |report: kind::Report<'_>| {
        if let kind::Reported::Room(Event::Transfer(transfer)) = report.event {
            let mut taken = taken.lock().expect("not poisoned");
            match &transfer.news {
                TransferNews::Offered { .. } => taken.offers.push(transfer.id),
                TransferNews::Part { bytes, .. } => taken.parts += bytes.len(),
                TransferNews::Progress { .. } => {}
                TransferNews::Ended { .. } => {
                    let results = taken.results.entry(transfer.id).or_default();
                    *results += 1;
                    assert_eq!(*results, 1, "a second result");
                }
            }
        }
    });
    dispatch.register::<kind::Everything>(Some(handler));
    let transfers = Transfers::new(me, Arc::new(dispatch));
    transfers.open(&peer, true);
    transfers.attach(&peer);
    let offered = || {
        let received = received.lock().expect("not poisoned");
        received.offers.last().copied().unwrap_or_default()
    };
    while let Some((step, rest)) = steps.split_first() {
        steps = rest;
        let ended = match step % 8 {
            0 | 1 => {
                let Some((bytes, rest)) = sent(steps) else {
                    return;
                };
                steps = rest;
                receive(&transfers, &peer, *step % 8 == 1, bytes)
            }
            // The host's mistakes have codes.
            2 => drop_result(transfers.accept(&peer, offered(), Accept::Parts)),
            3 => drop_result(transfers.cancel(&peer, offered())),
            4 => drop_result(transfers.send(&peer, &[7; 40_000], b"tag", |_| {})),
            5 => {
                transfers.attach(&peer);
                Ok(())
            }
            6 => {
                assert!(transfers.take_frames(&peer).0.len() <= 4 * MAX_OPEN + MAX_UNREAD + 1);
                while transfers.take_part(&peer).is_some() {}
                Ok(())
            }
            _ => {
                let before = received.lock().expect("not poisoned").parts;
                drop_result(transfers.dispatch.poll(usize::MAX)).expect("an answer");
                let now = received.lock().expect("not poisoned").parts;
                assert!(now - before <= MAX_OPEN * WINDOW_BYTES as usize, "parts");
                Ok(())
            }
        };
        if ended.is_err() {
            break;
        }
    }
    transfers.close(&peer, TransferOutcome::PeerLeft);
    drop_result(transfers.dispatch.poll(usize::MAX)).expect("an answer");
    let received = received.lock().expect("not poisoned");
    for offer in &received.offers {
        assert_eq!(
            received.results.get(offer),
            Some(&1),
            "an offer has one result"
        );
    }
}

fn drop_result<T, E>(_: Result<T, E>) -> Result<(), &'static str> {
    Ok(())
}

/// The bytes after their length.
fn sent(steps: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = steps.split_first_chunk()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

fn receive(
    transfers: &Transfers,
    peer: &PeerId,
    is_part: bool,
    bytes: &[u8],
) -> Result<(), &'static str> {
    if is_part {
        if bytes.len() > MAX_PART_FRAME_BYTES {
            return Err("the reader refuses it");
        }
        let (header, rest) = postcard::take_from_bytes(bytes).map_err(|_| "malformed")?;
        return transfers.part(peer, header, Bytes::copy_from_slice(rest));
    }
    match postcard::take_from_bytes::<TransferFrame>(bytes) {
        Ok((frame, [])) if bytes.len() <= MAX_TRANSFER_FRAME_BYTES => {
            let again = postcard::to_allocvec(&frame).expect("encodes");
            assert_eq!(postcard::from_bytes(&again), Ok(frame.clone()));
            transfers.frame(peer, frame)
        }
        _ => Err("malformed"),
    }
}

/// Whole transfers, refused ones, and others that go on over a second link.
#[cfg(test)]
pub(crate) fn inputs() -> Vec<Vec<u8>> {
    const WHOLE: usize = PART_BYTES;
    const SIZE: usize = WHOLE + 300;
    let data = vec![7; SIZE];
    let offer = |number: u64, size: usize| {
        let mut computed = [0; wire::DIGEST_BYTES];
        computed.copy_from_slice(digest(&SHA256, &data[..size]).as_ref());
        Offer {
            id: 2 * number + 1,
            size: as_u64(size),
            digest: computed,
            tag: b"map".to_vec(),
        }
    };
    let step = |kind: u8, bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).expect("short");
        [&[kind], &length.to_le_bytes()[..], bytes].concat()
    };
    let frame = |frame: &TransferFrame| step(0, &postcard::to_allocvec(frame).expect("encodes"));
    let part = |number: u64, from: usize, to: usize| {
        let header = PartHeader {
            id: 2 * number + 1,
            offset: as_u64(from),
        };
        let header = postcard::to_allocvec(&header).expect("encodes");
        step(1, &[&header, &data[from..to]].concat())
    };
    let offered = |number, size| frame(&TransferFrame::Offer(offer(number, size)));
    let open = frame(&TransferFrame::Open(vec![offer(1, SIZE)]));
    let (accept, cancel, send, link, take, poll) = ([2], [3], [4], [5], [6], [7]);
    let granted = frame(&TransferFrame::Grant {
        id: 2,
        arrived: 0,
        until: 40_000,
    });
    let ended = |why| frame(&TransferFrame::Ended { id: 2, why });
    let mut inputs = vec![
        [
            &offered(1, SIZE)[..],
            &poll,
            &accept,
            &take,
            &part(1, 0, WHOLE),
            &part(1, WHOLE, SIZE),
            &poll,
        ]
        .concat(),
        [
            &offered(1, SIZE)[..],
            &poll,
            &accept,
            &take,
            &part(1, 0, WHOLE),
            &link,
            &open,
            &take,
            &part(1, WHOLE, SIZE),
        ]
        .concat(),
        [
            &offered(1, SIZE)[..],
            &offered(2, 1),
            &poll,
            &cancel,
            &take,
            &frame(&TransferFrame::Cancel { id: 3 }),
        ]
        .concat(),
        [
            &offered(1, SIZE)[..],
            &poll,
            &cancel,
            &link,
            &open,
            &take,
            &poll,
        ]
        .concat(),
        [
            &send[..],
            &take,
            &granted,
            &take,
            &ended(wire::Why::Complete),
            &poll,
        ]
        .concat(),
        [
            &send[..],
            &send,
            &take,
            &link,
            &take,
            &granted,
            &take,
            &link,
            &take,
            &granted,
            &take,
        ]
        .concat(),
    ];
    inputs.extend(
        [
            wire::Why::Cancelled,
            wire::Why::Refused,
            wire::Why::Unanswered,
            wire::Why::Busy,
            wire::Why::Corrupt,
        ]
        .map(|why| [&send[..], &take, &ended(why), &poll].concat()),
    );
    inputs
}
