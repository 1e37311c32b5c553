//! A connection that can be cut: a TCP relay in front of a server, one for each process.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Passes bytes between a process and a server, or holds them back. Held bytes go on when it opens again.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    is_over: AtomicBool,
}

impl Gate {
    fn wait(&self) {
        let mut is_closed = self.is_closed.lock().expect("no thread panicked");
        while *is_closed && !self.is_over.load(Ordering::Relaxed) {
            is_closed = self.opened.wait(is_closed).expect("no thread panicked");
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.gate.is_over.store(true, Ordering::Relaxed);
        self.close(false);
    }
}

impl Relay {
    /// A relay to an endpoint such as `http://127.0.0.1:2379`.
    pub(crate) fn to(endpoint: &str) -> Self {
        let server: SocketAddr = endpoint
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let gate = Arc::new(Gate::default());
        let shared = Arc::clone(&gate);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                let (to, from) = (
                    server.try_clone().expect("open"),
                    client.try_clone().expect("open"),
                );
                for (from, to) in [(from, to), (server, client)] {
                    let gate = Arc::clone(&shared);
                    thread::spawn(move || pass(from, to, &gate));
                }
            }
        });
        Self { address, gate }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Holds all bytes back from now on, or passes them again.
    pub(crate) fn close(&self, is_closed: bool) {
        *self.gate.is_closed.lock().expect("no thread panicked") = is_closed;
        self.gate.opened.notify_all();
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length) = from.read(&mut buffer) {
        gate.wait();
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
