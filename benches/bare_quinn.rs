//! The baseline for the library's cost on top of QUIC: two processes and quinn, with no layer in between.
//!
//! ```sh
//! cargo bench --bench bare_quinn -- rtt 32 20000
//! ```
//!
//! - `rtt SIZE COUNT`: ping-pong on one bidirectional stream, inside the tasks.
//! - `rtt-threads SIZE COUNT`: the same ping-pong with the thread changes of a library that calls back on its own
//!   thread: the task that reads, a dispatcher thread, a host thread, the task that writes.
//! - `tput SIZE COUNT`: one way, a write for each message.
//! - `tput-batched SIZE COUNT`: one way, a write for 32 KiB of messages.
//!
//! Prints one figure per line, or with `--json` one object. The program starts itself again for the other end; each
//! process has a runtime of one thread. Messages have the format of `abi_bench`, `[seq u64][filler][!seq u32]`, and the
//! receiver checks every one. QUIC has the library's windows and raw public keys, and otherwise quinn's defaults.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
    VarInt,
};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::sync::mpsc as tasks;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ALPN: &[u8] = b"bare";
/// Round trips before the first measured one.
const WARM_UP: u64 = 300;
/// Limit of a run.
const LIMIT: Duration = Duration::from_secs(120);
const BATCH_BYTES: usize = 32 << 10;
const READ_BYTES: usize = 256 << 10;
/// Sequence number and trailer, with some filler.
const LEAST_SIZE: usize = 16;
const MOST_SIZE: usize = 512 << 10;
const PREFIX_BYTES: usize = 4;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Rtt,
    RttThreads,
    Tput,
    TputBatched,
}

#[derive(Clone, Copy)]
struct Job {
    mode: Mode,
    size: usize,
    count: u64,
}

type Figures = BTreeMap<String, f64>;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    words.retain(|word| word != "--bench"); // cargo adds it
    let mut take = |option: &str| {
        let before = words.len();
        words.retain(|word| word != option);
        words.len() != before
    };
    let (json, peer, help) = (take("--json"), take("--peer"), take("--help"));
    if words.is_empty() || help {
        // `cargo bench` runs every benchmark; without a mode there is no measurement.
        println!("usage: bare_quinn rtt|rtt-threads|tput|tput-batched SIZE COUNT [--json]");
        return ExitCode::SUCCESS;
    }
    let done = job(&words).and_then(|job| {
        if peer {
            watch_parent();
            serve(job)
        } else {
            measure(job, &words)
        }
    });
    match done {
        Ok(figures) if json => println!("{}", serde_json::json!(figures)),
        Ok(figures) => figures
            .iter()
            .for_each(|(name, value)| println!("{name} {value:.6}")),
        Err(error) => {
            eprintln!("bare_quinn: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn job(words: &[String]) -> Outcome<Job> {
    let [mode, size, count] = words else {
        return Err("MODE SIZE COUNT are needed (see --help)".into());
    };
    let mode = match mode.as_str() {
        "rtt" => Mode::Rtt,
        "rtt-threads" => Mode::RttThreads,
        "tput" => Mode::Tput,
        "tput-batched" => Mode::TputBatched,
        other => return Err(format!("{other} is no mode (see --help)").into()),
    };
    let (size, count) = (size.parse()?, count.parse()?);
    if !(LEAST_SIZE..=MOST_SIZE).contains(&size) || count == 0 {
        return Err(format!("SIZE is {LEAST_SIZE} to {MOST_SIZE}, COUNT above 0").into());
    }
    Ok(Job { mode, size, count })
}

// ---------------------------------------------------------------- both processes

/// The end that dials, sends and measures. Starts the other one.
fn measure(job: Job, words: &[String]) -> Outcome<Figures> {
    let mut other = Other::start(words)?;
    let address = other.line()?.parse()?;
    let mut figures = run_limited(dial(job, address))?;
    let theirs = other.figures()?;
    let cpu = figures.remove("cpu_s").unwrap_or(f64::NAN)
        + theirs.get("cpu_s").copied().unwrap_or(f64::NAN);
    match job.mode {
        Mode::Rtt | Mode::RttThreads => {
            figures.insert("cpu_us_per_rt".into(), 1e6 * cpu / job.count as f64);
        }
        Mode::Tput | Mode::TputBatched => {
            let span = theirs.get("span_s").copied().unwrap_or(f64::NAN);
            let rate = job.count as f64 / span;
            figures.insert("msgs_per_s".into(), rate);
            figures.insert("MB_per_s".into(), rate * job.size as f64 / 1e6);
            figures.insert("cpu_us_per_msg".into(), 1e6 * cpu / job.count as f64);
        }
    }
    Ok(figures)
}

/// The end that is dialled, and echoes or counts.
fn serve(job: Job) -> Outcome<Figures> {
    run_limited(async move {
        let endpoint = Endpoint::server(server_config()?, loopback())?;
        println!("{}", endpoint.local_addr()?);
        std::io::stdout().flush()?;
        let incoming = endpoint.accept().await.ok_or("no connection arrives")?;
        let connection = incoming.await?;
        let cpu = cpu_seconds();
        let mut figures = Figures::new();
        match job.mode {
            Mode::Rtt => {
                let (send, recv) = connection.accept_bi().await?;
                echo(job, send, recv).await?;
            }
            Mode::RttThreads => {
                let (send, recv) = connection.accept_bi().await?;
                through_threads(job, send, recv, |incoming, outgoing| {
                    for message in incoming {
                        outgoing.send(message)?;
                    }
                    Ok(())
                })
                .await?;
            }
            Mode::Tput | Mode::TputBatched => {
                let recv = connection.accept_uni().await?;
                figures.insert("span_s".into(), count(job, recv).await?.as_secs_f64());
                connection.close(VarInt::from_u32(0), b"");
            }
        }
        connection.closed().await;
        endpoint.wait_idle().await;
        figures.insert("cpu_s".into(), cpu_seconds() - cpu);
        Ok(figures)
    })
}

async fn dial(job: Job, address: SocketAddr) -> Outcome<Figures> {
    let mut endpoint = Endpoint::client(loopback())?;
    endpoint.set_default_client_config(client_config()?);
    let connection = endpoint.connect(address, "bare")?.await?;
    let cpu = cpu_seconds();
    let mut figures = Figures::new();
    match job.mode {
        Mode::Rtt => {
            let (send, recv) = connection.open_bi().await?;
            describe(ping(job, send, recv).await?, &mut figures);
            connection.close(VarInt::from_u32(0), b"");
        }
        Mode::RttThreads => {
            let (send, recv) = connection.open_bi().await?;
            let samples = through_threads(job, send, recv, move |incoming, outgoing| {
                ping_from_host(job, &incoming, &outgoing)
            });
            describe(samples.await?, &mut figures);
            connection.close(VarInt::from_u32(0), b"");
        }
        Mode::Tput | Mode::TputBatched => stream(job, &connection).await?,
    }
    endpoint.wait_idle().await;
    figures.insert("cpu_s".into(), cpu_seconds() - cpu);
    Ok(figures)
}

/// Runs on a runtime with this thread alone.
fn run_limited<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { tokio::time::timeout(LIMIT, work).await? })
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// The process of the other end. It ends with this one.
struct Other {
    process: Child,
    printed: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(words: &[String]) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("--peer")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let printed = process.stdout.take().ok_or("no pipe from the other end")?;
        Ok(Self {
            process,
            printed: BufReader::new(printed),
        })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.printed.read_line(&mut line)? == 0 {
            return Err("the other end has failed".into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Its output until it ends.
    fn figures(&mut self) -> Outcome<Figures> {
        let mut text = String::new();
        self.printed.read_to_string(&mut text)?;
        if !self.process.wait()?.success() {
            return Err("the other end has failed".into());
        }
        let mut figures = Figures::new();
        for line in text.lines() {
            let (name, value) = line.split_once(' ').ok_or("a line without a value")?;
            figures.insert(name.to_owned(), value.parse()?);
        }
        Ok(figures)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Both fail if it has ended, as it should by now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Ends this process when the one that started it ends and thereby closes its end of the pipe.
fn watch_parent() {
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(3);
    });
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn cpu_seconds() -> f64 {
    f64::NAN
}

// ---------------------------------------------------------------- messages

/// Incompressible bytes, from which messages are cut.
struct Pool(Vec<u8>);

impl Pool {
    fn new() -> Self {
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        let random = std::iter::repeat_with(|| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        });
        Self(random.take(1 << 20).collect())
    }

    fn message(&mut self, seq: u64, size: usize) -> &[u8] {
        let start = (seq * 4112) as usize % (self.0.len() - size);
        let message = &mut self.0[start..start + size];
        message[..8].copy_from_slice(&seq.to_le_bytes());
        message[size - 4..].copy_from_slice(&(!(seq as u32)).to_le_bytes());
        message
    }
}

fn check(message: &[u8], expected: u64) -> Outcome<()> {
    let seq = message
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes));
    let trailer = message.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if seq != Some(expected) || trailer != Some(!(expected as u32)) {
        return Err(format!("message {expected} is damaged or out of order").into());
    }
    Ok(())
}

// ---------------------------------------------------------------- round trips

async fn ping(job: Job, mut send: SendStream, mut recv: RecvStream) -> Outcome<Vec<Duration>> {
    let mut pool = Pool::new();
    let mut answer = vec![0; job.size];
    let mut samples = Vec::with_capacity(job.count as usize);
    for seq in 0..WARM_UP + job.count {
        let message = pool.message(seq, job.size);
        let start = Instant::now();
        send.write_all(message).await?;
        recv.read_exact(&mut answer).await?;
        let took = start.elapsed();
        check(&answer, seq)?;
        if seq >= WARM_UP {
            samples.push(took);
        }
    }
    Ok(samples)
}

async fn echo(job: Job, mut send: SendStream, mut recv: RecvStream) -> Outcome<()> {
    let mut message = vec![0; job.size];
    for _ in 0..WARM_UP + job.count {
        recv.read_exact(&mut message).await?;
        send.write_all(&message).await?;
    }
    Ok(())
}

type Incoming = mpsc::Receiver<Vec<u8>>;
type Outgoing = tasks::UnboundedSender<Vec<u8>>;

/// Runs `host` on a thread of its own, beside a dispatcher thread that passes it the stream's messages.
async fn through_threads<T: Send + 'static>(
    job: Job,
    mut send: SendStream,
    mut recv: RecvStream,
    host: impl FnOnce(Incoming, Outgoing) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    let (to_dispatcher, at_dispatcher) = mpsc::channel();
    let (to_host, at_host) = mpsc::channel();
    let (outgoing, mut to_write) = tasks::unbounded_channel::<Vec<u8>>();
    let dispatcher = thread::spawn(move || {
        for message in at_dispatcher {
            if to_host.send(message).is_err() {
                break;
            }
        }
    });
    let host = thread::spawn(move || host(at_host, outgoing));
    let reader = tokio::spawn(async move {
        loop {
            let mut message = vec![0; job.size];
            // Ends with the stream, or with the host.
            if recv.read_exact(&mut message).await.is_err() || to_dispatcher.send(message).is_err()
            {
                break;
            }
        }
    });
    while let Some(message) = to_write.recv().await {
        send.write_all(&message).await?;
    }
    // The host has ended. The other end follows when it sees the end of this stream.
    let _ = send.finish();
    reader.await?;
    let joined = (host.join(), dispatcher.join());
    match joined {
        (Ok(result), Ok(())) => result,
        _ => Err("a thread has panicked".into()),
    }
}

fn ping_from_host(job: Job, incoming: &Incoming, outgoing: &Outgoing) -> Outcome<Vec<Duration>> {
    let mut pool = Pool::new();
    let mut samples = Vec::with_capacity(job.count as usize);
    for seq in 0..WARM_UP + job.count {
        let message = pool.message(seq, job.size);
        let start = Instant::now();
        outgoing.send(message.to_vec())?;
        let answer = incoming.recv_timeout(LIMIT)?;
        let took = start.elapsed();
        check(&answer, seq)?;
        if seq >= WARM_UP {
            samples.push(took);
        }
    }
    Ok(samples)
}

fn describe(mut samples: Vec<Duration>, figures: &mut Figures) {
    samples.sort_unstable();
    let mut put = |name: &str, at: usize| {
        figures.insert(name.to_owned(), samples[at].as_secs_f64() * 1e6);
    };
    put("min_us", 0);
    put("p50_us", samples.len() / 2);
    put("p90_us", samples.len() * 90 / 100);
    put("p99_us", samples.len() * 99 / 100);
    put("max_us", samples.len() - 1);
}

// ---------------------------------------------------------------- one way

async fn stream(job: Job, connection: &Connection) -> Outcome<()> {
    let mut send = connection.open_uni().await?;
    let mut pool = Pool::new();
    let batch = match job.mode {
        Mode::TputBatched => BATCH_BYTES,
        _ => 0,
    };
    let mut waiting = Vec::with_capacity(batch + PREFIX_BYTES + job.size);
    for seq in 0..job.count {
        waiting.extend_from_slice(&(job.size as u32).to_le_bytes());
        waiting.extend_from_slice(pool.message(seq, job.size));
        if waiting.len() >= batch || seq + 1 == job.count {
            send.write_all(&waiting).await?;
            waiting.clear();
        }
    }
    send.finish()?;
    connection.closed().await; // The other end closes it when it has all messages.
    Ok(())
}

/// Checks all messages; returns the time between the first and the last.
async fn count(job: Job, mut recv: RecvStream) -> Outcome<Duration> {
    let mut buffer = vec![0; READ_BYTES.max(2 * (PREFIX_BYTES + job.size))];
    let (mut filled, mut expected) = (0, 0);
    let mut first = None;
    while expected < job.count {
        let Some(read) = recv.read(&mut buffer[filled..]).await? else {
            return Err(format!("{expected} of {} messages have come", job.count).into());
        };
        filled += read;
        let mut start = 0;
        while let Some((prefix, rest)) = buffer[start..filled].split_first_chunk() {
            if u32::from_le_bytes(*prefix) as usize != job.size {
                return Err(format!("message {expected} has a wrong length").into());
            }
            let Some(message) = rest.get(..job.size) else {
                break;
            };
            check(message, expected)?;
            first.get_or_insert_with(Instant::now);
            expected += 1;
            start += PREFIX_BYTES + job.size;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
    Ok(first.map_or(Duration::ZERO, |first| first.elapsed()))
}

// ---------------------------------------------------------------- TLS

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(2 << 20))
        .receive_window(VarInt::from_u32(16 << 20))
        .send_window(8 << 20);
    Arc::new(transport)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn server_config() -> Outcome<ServerConfig> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| "the system gives no randomness")?;
    let key =
        rustls::crypto::ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.as_ref()))?;
    let public = key.public_key().ok_or("no public key")?;
    // The "certificate" of a raw public key is the key itself (RFC 7250 section 3).
    let chain = vec![CertificateDer::from(public.as_ref().to_vec())];
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(CertifiedKey::new(chain, key)));
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    Ok(config)
}

fn client_config() -> Outcome<ClientConfig> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider())))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    Ok(config)
}

/// Accepts any peer that holds the key that it shows: the other end is a process of this program.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls13RequiredForQuic.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(cert.as_ref()),
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
