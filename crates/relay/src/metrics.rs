//! Figures over HTTP, on loopback alone.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::server::Server;

/// Requests answered at a time; further ones wait.
const MAX_REQUESTS: usize = 8;
/// Time for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a request, at most.
const MAX_REQUEST_BYTES: usize = 4096;

/// Binds the socket.
pub(crate) fn bind(address: SocketAddr) -> io::Result<StdListener> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers requests until the runtime ends.
pub(crate) fn serve(listener: StdListener, server: Arc<Server>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(MAX_REQUESTS));
        loop {
            // It is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                // As a rule there are too many open files; they do not become fewer at once.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let answered = answer(stream, &server);
                // A failure is one of the other end's connection.
                let _ = tokio::time::timeout(REQUEST_TIMEOUT, answered).await;
                drop(place);
            });
        }
    });
    Ok(())
}

async fn answer(mut stream: TcpStream, server: &Server) -> io::Result<()> {
    let mut request = vec![0; MAX_REQUEST_BYTES];
    let mut length = 0;
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut request[length..]).await? {
            0 => return Ok(()),
            read => length += read,
        }
    }
    let (status, body) = match request.starts_with(b"GET /metrics ") {
        true => ("200 OK", server.figures().prometheus()),
        false => ("404 Not Found", "see /metrics\n".to_owned()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
