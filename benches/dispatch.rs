//! Measures the cost of queueing a datagram for the host beside waiting reliable messages.
//!
//! ```sh
//! cargo bench --bench dispatch
//! ```
//!
//! Both queues are full, so each datagram displaces the oldest. The program compares the figures of one run with each
//! other, and fails when those with messages cost more than twice as much.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::config::DispatchMode;
use meta_mystia_network::core::event::{Delivery, Incoming};
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::dispatch::{Dispatch, Limits};

/// Capacity of the queue in messages, and in datagrams: the default of `incoming_queue_capacity`.
const CAPACITY: usize = 4096;
const DATAGRAMS: u32 = 200_000;
const ROUNDS: usize = 9;
/// Limit of the time with 4,095 reliable messages waiting, divided by the time without.
const DEMANDED_RATIO: f64 = 2.0;

fn main() -> ExitCode {
    println!("| reliable messages that wait | a datagram | by none |");
    println!("|---|---|---|");
    let alone = median_ns(0);
    let mut met = true;
    for waiting in [0, 64, CAPACITY - 1] {
        let cost = median_ns(waiting);
        let ratio = cost / alone;
        println!("| {waiting} | {cost:.0} ns | {ratio:.2} |");
        met &= ratio <= DEMANDED_RATIO;
    }
    match met {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The median of several rounds.
fn median_ns(waiting: usize) -> f64 {
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| datagram_ns(waiting)).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn datagram_ns(waiting: usize) -> f64 {
    let limits = Limits {
        messages: CAPACITY,
        bytes: 64 << 20,
        hold: Duration::from_secs(60),
    };
    let me = PeerId::new("me").expect("an id");
    let dispatch = Dispatch::start(limits, me, DispatchMode::Poll).expect("no thread is needed");
    dispatch.register_event_handler(Some(Arc::new(|_| {})));
    for _ in 0..waiting {
        let message = incoming(Delivery::ReliableOrdered);
        assert!(dispatch.try_push_message(message).is_ok(), "it has room");
    }
    for _ in 0..CAPACITY {
        dispatch.push_datagram(incoming(Delivery::Unreliable), None);
    }
    let began = Instant::now();
    for _ in 0..DATAGRAMS {
        dispatch.push_datagram(incoming(Delivery::Unreliable), None);
    }
    began.elapsed().as_nanos() as f64 / f64::from(DATAGRAMS)
}

fn incoming(delivery: Delivery) -> Incoming {
    Incoming {
        from: PeerId::new("sender").expect("an id"),
        payload: Bytes::from_static(&[0; 100]),
        msg_type: 0x100,
        flags: 0,
        channel: 0,
        delivery,
    }
}
