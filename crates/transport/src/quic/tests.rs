use super::*;
use crate::testing::{in_time, pair};

#[tokio::test]
async fn a_stranger_can_open_no_lane_and_fill_only_a_small_window() {
    let (_dialler, at_dialler, _acceptor, at_acceptor) = pair().await;
    let (mut send, _recv) = at_dialler.open_bi().await.expect("the control stream");
    let flood = async {
        let bytes = vec![7; RECEIVE_WINDOW_BYTES as usize];
        send.write_all(&bytes).await
    };
    let listen = async {
        let (_send, mut recv) = at_acceptor.accept_bi().await.expect("the control stream");
        let mut first = [0; 1];
        recv.read_exact(&mut first).await.expect("a byte");
        // If a new lane still waits after many round trips, every packet that the other end may send is acknowledged.
        for _ in 0..20 {
            tokio::time::sleep(at_dialler.rtt()).await;
        }
        at_acceptor.stats().udp_rx.bytes
    };
    let received = tokio::select! {
        sent = flood => panic!("the window held nothing back: {sent:?}"),
        lane = at_dialler.open_uni() => panic!("a lane: {lane:?}"),
        received = in_time(listen) => received,
    };
    assert!(
        received < 2 * u64::from(STRANGER_RECEIVE_WINDOW_BYTES),
        "{received}"
    );
}

#[tokio::test]
async fn open_windows_let_a_member_open_its_lanes_and_no_more() {
    let (_dialler, at_dialler, _acceptor, at_acceptor) = pair().await;
    open_windows(&at_dialler);
    open_windows(&at_acceptor);
    let bytes_of_one = (RECEIVE_WINDOW_BYTES / MAX_INCOMING_UNI_STREAMS / 2) as usize;
    for (from, to) in [(&at_dialler, &at_acceptor), (&at_acceptor, &at_dialler)] {
        let mut lanes = Vec::new();
        let mut accepted = Vec::new();
        for limit in [FIRST_INCOMING_UNI_STREAMS, MAX_INCOMING_UNI_STREAMS] {
            while lanes.len() < limit as usize {
                let mut lane = in_time(from.open_uni()).await.expect("a lane");
                in_time(lane.write_all(&vec![7; bytes_of_one]))
                    .await
                    .expect("written");
                lanes.push(lane);
            }
            while accepted.len() < limit as usize {
                let mut lane = in_time(to.accept_uni()).await.expect("a lane");
                let mut bytes = vec![0; bytes_of_one];
                in_time(lane.read_exact(&mut bytes)).await.expect("read");
                accepted.push(lane);
            }
            tokio::select! {
                biased;
                more = from.open_uni() => panic!("a lane too many: {more:?}"),
                () = tokio::task::yield_now() => {}
            }
            open_all_lanes(to);
        }
    }
}
