//! A room whose own socket fails.

use super::*;
use crate::net::udp::shut_down;

/// Linux refuses to shut a socket down that is not connected, and does it all the same: it sends nothing any more.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_room_whose_socket_fails_keeps_its_port_and_its_links() {
    let config = Config {
        // Far longer than a new socket takes, also on a busy machine.
        heartbeat_timeout_multiplier: 50,
        ..quick()
    };
    let pair = Pair::settled_with("broken socket", config).await;
    let port = pair.a.port();
    shut_down(port);
    pair.a.send("b", b"after").await;
    pair.b.wait_for(reported("a", b"after"), 1).await;
    pair.b.send("a", b"back").await;
    pair.a.wait_for(reported("b", b"back"), 1).await;
    assert_eq!(pair.a.port(), port);
    for (host, peer) in [(&pair.a, "b"), (&pair.b, "a")] {
        let meter = host.room.peer_meter(&id(peer)).expect("linked");
        assert_eq!(meter.reconnects, 0, "{peer}");
    }
    // Members that dial the port reach the room.
    let c = Host::open("c", "broken socket");
    assert_eq!(c.connect(&pair.a).await, (true, 0));
}
