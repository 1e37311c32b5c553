//! Processes that are killed while they enter, and restarted under their name.

use std::sync::Mutex;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::*;
use crate::core::event::Event;

/// A peer that waits for the room's answer, in a runtime of its own.
struct Entering {
    kill: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Entering {
    async fn begin(name: &'static str, session: &'static str, to: SocketAddr) -> Self {
        let (begun, begins) = oneshot::channel();
        let (kill, killed) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let parts = runtime.block_on(async {
                let attacker = Attacker::new(name, session);
                let config = attacker.process.client(None, ALPN);
                let dialled = attacker.process.dial_with(config, to).await;
                let connection = dialled.expect("connected");
                let admitted = in_time(dial_pake(&connection, &attacker.proof)).await;
                let (mut send, recv) = admitted.expect("the room is known");
                let hello = attacker.hello();
                write_hello(&mut send, &hello).await.expect("written");
                begun.send(()).expect("somebody waits");
                killed.await.expect("killed");
                (attacker, connection, send, recv)
            });
            // From here on it sends nothing, not even the end of the connection.
            drop(runtime);
            drop(parts);
        });
        in_time(begins).await.expect("begun");
        Self { kill, thread }
    }

    fn kill(self) {
        self.kill.send(()).expect("it runs");
        self.thread.join().expect("it ends");
    }
}

/// The join requests to a host that decides itself, and those withdrawn.
#[derive(Default)]
struct Requests {
    asked: Vec<u64>,
    withdrawn: Vec<u64>,
}

/// A host that leads, and decides about newcomers.
async fn deciding(session: &str) -> (Host, Arc<Mutex<Requests>>) {
    let host = Host::open("a", session);
    let requests = Arc::<Mutex<Requests>>::default();
    let seen = Arc::clone(&requests);
    let handler = move |event: &Event| {
        let mut seen = seen.lock().expect("not poisoned");
        match event {
            Event::JoinRequest { request, .. } => seen.asked.push(*request),
            Event::JoinWithdrawn { request, .. } => seen.withdrawn.push(*request),
            _ => {}
        }
    };
    let dispatch = host.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(handler)));
    eventually("it leads", || {
        host.room.snapshot().leader.as_ref() == Some(&id("a"))
    })
    .await;
    host.room.ask_host(true).expect("open");
    (host, requests)
}

async fn asked(requests: &Mutex<Requests>, times: usize) -> u64 {
    let count = || requests.lock().expect("not poisoned").asked.len();
    eventually("a request", || count() == times).await;
    requests.lock().expect("not poisoned").asked[times - 1]
}

#[tokio::test]
async fn an_id_of_a_process_that_was_killed_while_it_entered_is_free_at_once() {
    let session = "killed while entering";
    let (host, requests) = deciding(session).await;
    let first = Entering::begin("k", session, host.address()).await;
    let before = asked(&requests, 1).await;
    first.kill();

    let began = std::time::Instant::now();
    let second = Attacker::new("k", session);
    let hello = second.hello();
    let entering = second.say_hello(&host, &hello);
    tokio::pin!(entering);
    let request = tokio::select! {
        request = asked(&requests, 2) => request,
        (.., ack) = &mut entering => panic!("it is answered {}", ack.code),
    };
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500), "{took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(requests.lock().expect("not poisoned").withdrawn, [before]);

    // A living peer keeps its id.
    let third = Attacker::new("k", session);
    let refused = third.hello();
    let code = tokio::select! {
        code = third.refused(&host, &refused) => code,
        (.., ack) = &mut entering => panic!("it is answered {}", ack.code),
    };
    assert_eq!(code, -11);
    host.room.accept_join(request).expect("it is open");
    let (_connection, _send, _recv, ack) = entering.await;
    assert_eq!(ack.code, 0);
    assert_eq!(requests.lock().expect("not poisoned").withdrawn, [before]);
}
