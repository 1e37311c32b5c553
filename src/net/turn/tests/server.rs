//! A TURN server on UDP that behaves as a test wants.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use turn_client_proto::types::attribute::{
    ChannelNumber, Data, Lifetime, XorPeerAddress, XorRelayedAddress,
};
use turn_client_proto::types::channel::ChannelData;
use turn_client_proto::types::message::{
    ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, DATA, REFRESH, SEND,
};
use turn_client_proto::types::stun::attribute::{ErrorCode, Nonce, Realm};
use turn_client_proto::types::stun::message::{
    IntegrityAlgorithm, LongTermKeyCredentials, Message, MessageClass, MessageIntegrityCredentials,
    MessageType, MessageWrite, MessageWriteExt, MessageWriteVec, Method, TransactionId,
};

use super::{PASSWORD, REALM, USER};

/// Behaviour of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Honest,
    Silent,
    /// It answers requests for a port with this error.
    Refuses(u16, &'static str),
    /// It names this address as the port's.
    Claims(Ipv4Addr),
    /// It sends these bytes instead of any answer.
    Garbage(&'static [u8]),
    /// It admits no peer.
    AdmitsNone,
    /// It answers twice, and forged errors come with each answer.
    Echoes,
    /// It has been restarted: its nonce is another one, and it knows no port.
    Restarted,
    /// Its nonce is another one every ten minutes, its answers take 200 ms, and it forgets ports, peers and channels without a refresh.
    Strict,
}

/// How long such a server lets a nonce, a port, a peer and a channel be.
const NONCE_LASTS: Duration = Duration::from_secs(600);
const PORT_LASTS: Duration = Duration::from_secs(600);
const PEER_LASTS: Duration = Duration::from_secs(300);
const CHANNEL_LASTS: Duration = Duration::from_secs(600);

/// A server on UDP, for one client.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

struct State {
    kind: Kind,
    /// The methods of the requests so far.
    requests: Vec<u16>,
    began: Instant,
    port_until: Instant,
    admitted: BTreeMap<IpAddr, Instant>,
    channels: BTreeMap<u16, (SocketAddr, Instant)>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(super) async fn start(kind: Kind) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("bound");
        let relay = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("bound");
        let address = socket.local_addr().expect("bound");
        let state = Arc::new(Mutex::new(State {
            kind,
            requests: Vec::new(),
            began: Instant::now(),
            port_until: Instant::now() + PORT_LASTS,
            admitted: BTreeMap::new(),
            channels: BTreeMap::new(),
        }));
        let shared = Arc::clone(&state);
        let socket = Arc::new(socket);
        let task = tokio::spawn(async move { serve(&socket, &relay, &shared).await });
        Self {
            address,
            state,
            task,
        }
    }

    pub(super) fn set(&self, kind: Kind) {
        self.state.lock().expect("no panic").kind = kind;
    }

    /// The number of requests so far.
    pub(super) fn requests(&self) -> usize {
        self.state.lock().expect("no panic").requests.len()
    }

    pub(super) fn count(&self, method: Method) -> usize {
        let state = self.state.lock().expect("no panic");
        let requests = state.requests.iter();
        requests.filter(|seen| **seen == method.value()).count()
    }

    pub(super) fn line(&self) -> String {
        format!("turn:{} username={USER} password={PASSWORD}", self.address)
    }
}

async fn serve(socket: &Arc<UdpSocket>, relay: &UdpSocket, state: &Mutex<State>) {
    let (mut asked, mut came) = ([0; 4096], [0; 4096]);
    let mut client = None;
    let port = relay.local_addr().expect("bound");
    loop {
        tokio::select! {
            received = socket.recv_from(&mut asked) => {
                let Ok((len, from)) = received else { continue };
                client = Some(from);
                if let Ok(channel) = ChannelData::parse(&asked[..len]) {
                    let (to, _) = {
                        let mut state = state.lock().expect("no panic");
                        state.forget();
                        let Some(to) = state.channels.get(&channel.id()).copied() else { continue };
                        to
                    };
                    relay.send_to(channel.data(), to).await.expect("sent");
                    continue;
                }
                let message = Message::from_bytes(&asked[..len]).expect("a client speaks STUN");
                let answer = state.lock().expect("no panic").answer(&message, port);
                match answer {
                    Answer::Nothing => {}
                    Answer::Bytes(bytes) => drop(socket.send_to(&bytes, from).await),
                    Answer::Late(bytes) => {
                        let socket = Arc::clone(socket);
                        tokio::spawn(async move {
                            sleep(Duration::from_millis(200)).await;
                            socket.send_to(&bytes, from).await
                        });
                    }
                    Answer::Several(all) => {
                        for bytes in all {
                            drop(socket.send_to(&bytes, from).await);
                        }
                    }
                    Answer::Forward(to, bytes) => drop(relay.send_to(&bytes, to).await),
                }
            }
            received = relay.recv_from(&mut came) => {
                let (Ok((len, from)), Some(client)) = (received, client) else { continue };
                let channel = {
                    let mut state = state.lock().expect("no panic");
                    state.forget();
                    if !state.admitted.contains_key(&from.ip()) { continue }
                    state.channels.iter().find(|(_, (to, _))| *to == from).map(|(id, _)| *id)
                };
                let bytes = match channel {
                    Some(id) => {
                        let mut bytes = vec![0; len + 4];
                        ChannelData::new(id, &came[..len]).write_into_unchecked(&mut bytes);
                        bytes
                    }
                    None => indication(from, &came[..len]),
                };
                drop(socket.send_to(&bytes, client).await);
            }
        }
    }
}

/// A packet of a peer, as a server sends it to one without a channel.
pub(super) fn indication(from: SocketAddr, data: &[u8]) -> Vec<u8> {
    let kind = MessageType::from_class_method(MessageClass::Indication, DATA);
    let id = TransactionId::generate();
    let mut message = Message::builder(kind, id, MessageWriteVec::new());
    message
        .add_attribute(&XorPeerAddress::new(from, id))
        .expect("room");
    message.add_attribute(&Data::new(data)).expect("room");
    message.finish()
}

enum Answer {
    Nothing,
    Bytes(Vec<u8>),
    Late(Vec<u8>),
    Several(Vec<Vec<u8>>),
    Forward(SocketAddr, Vec<u8>),
}

/// An error for a request that no client sent, without a key.
fn forged(method: Method, code: u16) -> Vec<u8> {
    let asked = Message::builder_request(method, MessageWriteVec::new()).finish();
    let asked = Message::from_bytes(&asked).expect("just written");
    let mut answer = Message::builder_error(&asked, MessageWriteVec::new());
    let error = ErrorCode::builder(code).build().expect("a code");
    answer.add_attribute(&error).expect("room");
    answer.finish()
}

impl State {
    /// Forgets peers and channels without a refresh.
    fn forget(&mut self) {
        if self.kind == Kind::Strict {
            let now = Instant::now();
            self.admitted.retain(|_, until| now < *until);
            self.channels.retain(|_, (_, until)| now < *until);
            assert!(now < self.port_until, "the port is not refreshed");
        }
    }

    fn nonce(&self) -> String {
        match self.kind {
            Kind::Strict => {
                let age = self.began.elapsed().as_secs() / NONCE_LASTS.as_secs();
                format!("nonce {age}")
            }
            Kind::Restarted => "another nonce".into(),
            _ => "a nonce".into(),
        }
    }

    fn answer(&mut self, asked: &Message<'_>, port: SocketAddr) -> Answer {
        self.forget();
        match (self.answer_once(asked, port), self.kind) {
            (Answer::Bytes(bytes), Kind::Strict) => Answer::Late(bytes),
            (Answer::Bytes(bytes), Kind::Echoes) => {
                let methods = [ALLOCATE, REFRESH, CREATE_PERMISSION];
                let forged = methods
                    .iter()
                    .flat_map(|method| [401, 437, 486].map(|code| forged(*method, code)));
                Answer::Several(forged.chain([bytes.clone(), bytes]).collect())
            }
            (answer, _) => answer,
        }
    }

    fn answer_once(&mut self, asked: &Message<'_>, port: SocketAddr) -> Answer {
        self.requests.push(asked.method().value());
        match self.kind {
            Kind::Silent => return Answer::Nothing,
            Kind::Garbage(bytes) => return Answer::Bytes(bytes.to_vec()),
            _ => {}
        }
        if asked.method() == SEND {
            let peer = asked.attribute::<XorPeerAddress>().expect("a peer");
            let data = asked.attribute::<Data>().expect("data");
            let peer = peer.addr(asked.transaction_id());
            return Answer::Forward(peer, data.data().to_vec());
        }
        let credentials = LongTermKeyCredentials::new(USER.into(), PASSWORD.into(), REALM.into());
        let credentials = MessageIntegrityCredentials::from(credentials);
        let is_signed = asked.validate_integrity(&credentials).is_ok();
        let nonce = self.nonce();
        let is_stale = asked
            .attribute::<Nonce>()
            .is_ok_and(|it| it.nonce() != nonce);
        if !is_signed || is_stale {
            let mut answer = Message::builder_error(asked, MessageWriteVec::new());
            let code = if is_signed { 438 } else { 401 };
            let error = ErrorCode::builder(code).build().expect("a code");
            answer.add_attribute(&error).expect("room");
            answer
                .add_attribute(&Realm::new(REALM).expect("short"))
                .expect("room");
            answer
                .add_attribute(&Nonce::new(&nonce).expect("short"))
                .expect("room");
            return Answer::Bytes(answer.finish());
        }
        let id = asked.transaction_id();
        let refusal = match (self.kind, asked.method()) {
            (Kind::Refuses(code, reason), _) => Some((code, reason)),
            (Kind::AdmitsNone, CREATE_PERMISSION) => Some((403, "Forbidden IP")),
            (Kind::Restarted, ALLOCATE) => None,
            (Kind::Restarted, _) => Some((437, "Mismatch")),
            _ => None,
        };
        let mut answer = match refusal {
            Some((code, reason)) => {
                let mut answer = Message::builder_error(asked, MessageWriteVec::new());
                let error = ErrorCode::builder(code)
                    .reason(reason)
                    .build()
                    .expect("a code");
                answer.add_attribute(&error).expect("room");
                answer
            }
            None => Message::builder_success(asked, MessageWriteVec::new()),
        };
        match asked.method() {
            _ if refusal.is_some() => {}
            ALLOCATE => {
                let named = match self.kind {
                    Kind::Claims(ip) => SocketAddr::new(ip.into(), port.port()),
                    _ => port,
                };
                answer
                    .add_attribute(&XorRelayedAddress::new(named, id))
                    .expect("room");
                answer.add_attribute(&Lifetime::new(600)).expect("room");
            }
            REFRESH => {
                self.port_until = Instant::now() + PORT_LASTS;
                answer.add_attribute(&Lifetime::new(600)).expect("room");
            }
            CREATE_PERMISSION => {
                let peer = asked.attribute::<XorPeerAddress>().expect("a peer");
                let until = Instant::now() + PEER_LASTS;
                self.admitted.insert(peer.addr(id).ip(), until);
            }
            CHANNEL_BIND => {
                let peer = asked
                    .attribute::<XorPeerAddress>()
                    .expect("a peer")
                    .addr(id);
                let number = asked.attribute::<ChannelNumber>().expect("a number");
                let now = Instant::now();
                self.admitted.insert(peer.ip(), now + PEER_LASTS);
                self.channels
                    .insert(number.channel(), (peer, now + CHANNEL_LASTS));
            }
            _ => {}
        }
        answer
            .add_message_integrity(&credentials, IntegrityAlgorithm::Sha1)
            .expect("room");
        Answer::Bytes(answer.finish())
    }
}
