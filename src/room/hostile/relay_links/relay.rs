//! A relay under a test's control: it introduces and forwards as a relay does, and lies as the test wants.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quinn::Endpoint;
use room_transport::identity::{Identity, peer_fingerprint, server_config_with_alpn};
use room_transport::quic::transport_config;
use room_transport::rendezvous::{
    Frame, FromRelay, Locator, MAX_PRESENT, RELAY_ALPN, ToRelay, frame_length,
};
use room_transport::tunnel::packet::{Header, Piece, Way, decode, encode};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::core::virtual_address::{VirtualId, virtual_id};

/// A relay.
pub(super) struct TestRelay {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    endpoint: Endpoint,
    accepting: JoinHandle<()>,
}

/// Its behaviour.
#[derive(Default)]
pub(super) struct Rules {
    /// It takes all rooms for one, as if their codes had the same number.
    pub(super) is_one_room: bool,
}

/// State that a test sets and reads.
#[derive(Default)]
struct State {
    rules: Rules,
    entered: Mutex<BTreeMap<(Locator, VirtualId), Entered>>,
    /// All frames of members after the first.
    asked: Mutex<Vec<(Fingerprint, ToRelay)>>,
    /// Which members entered, and whether they hide.
    entries: Mutex<Vec<(Fingerprint, bool)>>,
    bends: Mutex<Option<Bend>>,
}

/// Turns a packet into the ones that the relay sends on.
type Bend =
    Box<dyn FnMut(VirtualId, VirtualId, Piece) -> Vec<(VirtualId, VirtualId, Piece)> + Send>;

/// A member that has entered.
#[derive(Clone)]
pub(super) struct Entered {
    pub(super) key: Fingerprint,
    pub(super) connection: Connection,
    number: usize,
    is_hidden: bool,
    pub(super) frames: mpsc::UnboundedSender<Bytes>,
}

impl TestRelay {
    /// Starts one on a free port.
    pub(super) fn start(rules: Rules) -> Self {
        let identity = Identity::generate().expect("a key");
        let mut transport = transport_config();
        transport.initial_mtu(1252);
        let server = server_config_with_alpn(&identity, Arc::new(transport), RELAY_ALPN);
        let server = server.expect("a configuration");
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = Endpoint::server(server, at).expect("a loopback socket");
        let state = Arc::new(State {
            rules,
            ..State::default()
        });
        let accepting = tokio::spawn(accept(endpoint.clone(), Arc::clone(&state)));
        Self {
            address: endpoint.local_addr().expect("bound"),
            state,
            endpoint,
            accepting,
        }
    }

    /// Its line in the options.
    pub(super) fn line(&self) -> String {
        self.address.to_string()
    }

    /// Closes all links, and accepts none any more.
    pub(super) fn stop(&self) {
        self.accepting.abort();
        self.endpoint.close(0_u32.into(), b"");
    }

    pub(super) fn entered(&self) -> Vec<Entered> {
        lock(&self.state.entered).values().cloned().collect()
    }

    pub(super) fn entries(&self) -> Vec<(Fingerprint, bool)> {
        lock(&self.state.entries).clone()
    }

    pub(super) fn asked(&self) -> Vec<(Fingerprint, ToRelay)> {
        lock(&self.state.asked).clone()
    }

    /// Has it forward what `bend` makes of each packet: sender, target and packet.
    pub(super) fn bends(
        &self,
        bend: impl FnMut(VirtualId, VirtualId, Piece) -> Vec<(VirtualId, VirtualId, Piece)>
        + Send
        + 'static,
    ) {
        *lock(&self.state.bends) = Some(Box::new(bend));
    }
}

impl Drop for TestRelay {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn accept(endpoint: Endpoint, state: Arc<State>) {
    while let Some(incoming) = endpoint.accept().await {
        if incoming.may_retry() {
            let _ = incoming.retry();
            continue;
        }
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                let _ = serve(connection, &state).await;
            }
        });
    }
}

async fn serve(connection: Connection, state: &State) -> Option<()> {
    let key = peer_fingerprint(&connection)?;
    let (mut send, mut recv) = connection.accept_bi().await.ok()?;
    let ToRelay::Enter {
        locator, hidden, ..
    } = read_frame(&mut recv).await?
    else {
        return None;
    };
    let locator = match state.rules.is_one_room {
        true => Locator(0),
        false => locator,
    };
    let id = virtual_id(key);
    let (frames, mut to_send) = mpsc::unbounded_channel::<Bytes>();
    let writer = tokio::spawn(async move {
        while let Some(frame) = to_send.recv().await {
            if send.write_all(&frame).await.is_err() {
                return;
            }
        }
    });
    let number = {
        let mut entries = lock(&state.entries);
        entries.push((key, hidden));
        entries.len()
    };
    let mut others: Vec<Entered> = {
        let mut entered = lock(&state.entered);
        let of_room = entered.iter().filter(|((at, _), _)| *at == locator);
        let others: Vec<_> = of_room.map(|(_, other)| other.clone()).collect();
        let me = Entered {
            key,
            connection: connection.clone(),
            number,
            is_hidden: hidden,
            frames: frames.clone(),
        };
        if let Some(older) = entered.insert((locator, id), me) {
            older.connection.close(0_u32.into(), b"replaced");
        }
        others
    };
    others.retain(|other| other.key != key);
    others.sort_by_key(|other| other.number);
    let welcome = FromRelay::Welcome {
        observed: SocketAddr::new(
            connection.remote_address().ip().to_canonical(),
            connection.remote_address().port(),
        ),
        bytes_per_second: 0,
        present: u32::try_from(others.len()).expect("few"),
    };
    let _ = frames.send(welcome.encode());
    let visible = others.iter().filter(|other| !other.is_hidden);
    let mut keys: Vec<_> = visible.map(|other| other.key).collect();
    let mut present = move || {
        let first: Vec<_> = keys.drain(..keys.len().min(MAX_PRESENT)).collect();
        (!first.is_empty()).then(|| FromRelay::Present { keys: first }.encode())
    };
    present().map(|frame| frames.send(frame));
    if !hidden {
        let present = FromRelay::Present { keys: vec![key] };
        for other in &others {
            let _ = other.frames.send(present.encode());
        }
    }
    let read = async {
        while let Some(frame) = read_frame(&mut recv).await {
            if frame == ToRelay::More {
                present().map(|frame| frames.send(frame));
            }
            lock(&state.asked).push((key, frame));
        }
    };
    let carry = async {
        while let Ok(datagram) = connection.read_datagram().await {
            if let Some((Way::To(target), piece)) = decode(datagram) {
                state.forward(locator, id, target, piece);
            }
        }
    };
    tokio::join!(read, carry);
    writer.abort();
    let mut entered = lock(&state.entered);
    let is_own = |other: &Entered| other.connection.stable_id() == connection.stable_id();
    if entered.get(&(locator, id)).is_some_and(is_own) {
        entered.remove(&(locator, id));
        let gone = FromRelay::Gone { key };
        for ((at, _), other) in entered.iter() {
            if *at == locator {
                let _ = other.frames.send(gone.encode());
            }
        }
    }
    Some(())
}

impl State {
    fn forward(&self, locator: Locator, sender: VirtualId, target: VirtualId, piece: Piece) {
        let packets = match &mut *lock(&self.bends) {
            Some(bend) => bend(sender, target, piece),
            None => vec![(sender, target, piece)],
        };
        for (sender, target, piece) in packets {
            let Some(other) = lock(&self.entered).get(&(locator, target)).cloned() else {
                continue;
            };
            let header = Header {
                way: Way::From(sender),
                part: piece.part,
                number: piece.number,
            };
            let _ = other.connection.send_datagram(encode(header, &piece.bytes));
        }
    }
}

async fn read_frame(recv: &mut RecvStream) -> Option<ToRelay> {
    let mut length = [0; 2];
    recv.read_exact(&mut length).await.ok()?;
    let mut frame = vec![0; frame_length(length).ok()?];
    recv.read_exact(&mut frame).await.ok()?;
    ToRelay::decode(&frame).expect("a frame that members send")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
