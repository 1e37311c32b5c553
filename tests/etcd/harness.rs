//! Real etcd servers, started and stopped by the tests. This module does not depend on the library.
//!
//! The data is in a temporary directory (`TMPDIR`): 130 MB a server while the cluster exists.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::pausing;

/// Longest time until servers have started and elected their own leader.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Time between two checks.
const STEP: Duration = Duration::from_millis(50);
/// Attempts: another process may take a free port before a server binds it.
const TRIES: usize = 5;

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mmn-etcd-{}-{number}", process::id()));
        fs::create_dir(&path).expect("a new directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A CA, and a certificate that it signed, for servers on 127.0.0.1 and for clients.
#[derive(Debug)]
pub(crate) struct Certificates {
    directory: Directory,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let own = Self {
            directory: Directory::new(),
        };
        let extensions = own.file("extensions");
        fs::write(&extensions, "subjectAltName=IP:127.0.0.1\n").expect("a file");
        let new_key = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        own.openssl(&format!(
            "{new_key} -x509 -days 2 -subj /CN=ca -keyout ca.key -out ca.pem"
        ));
        own.openssl(&format!(
            "{new_key} -subj /CN=mmn -keyout key.pem -out request.pem"
        ));
        own.openssl(
            "x509 -req -days 2 -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -extfile extensions -out cert.pem",
        );
        own
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.file("ca.pem")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.file("cert.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.file("key.pem")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command
            .args(arguments.split(' '))
            .current_dir(self.directory.path());
        output(command);
    }
}

/// Servers of one cluster. Dropping it kills them and removes their data.
#[derive(Debug)]
pub(crate) struct Cluster {
    servers: Vec<Server>,
    certificates: Option<Certificates>,
    /// The user and password of [`Cluster::etcdctl`], as `user:password`.
    pub(crate) login: Option<String>,
    // The last field: the directory is removed when no server writes there any more.
    _directory: Directory,
}

#[derive(Debug)]
struct Server {
    client_port: u16,
    arguments: Vec<String>,
    log: PathBuf,
    process: Option<Child>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    fn start(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .expect("a log");
        let mut command = Command::new("etcd");
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the same log"))
            .stderr(log);
        without_proxies(&mut command);
        self.process = Some(started(command.spawn(), "etcd", "etcd-server"));
    }

    /// Whether the process still runs.
    fn runs(&mut self) -> bool {
        match &mut self.process {
            Some(process) => process.try_wait().expect("a child").is_none(),
            None => false,
        }
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn running(&self) -> &Child {
        self.process.as_ref().expect("a server that runs")
    }
}

impl Cluster {
    /// Starts this many servers; all serve when it returns.
    pub(crate) fn start(servers: usize) -> Self {
        Self::start_with(servers, None)
    }

    /// Servers that use TLS, and require certificates of clients.
    pub(crate) fn start_with(servers: usize, certificates: Option<Certificates>) -> Self {
        let mut certificates = certificates;
        for _ in 0..TRIES {
            let mut cluster = Self::try_start(servers, certificates.take());
            if cluster.becomes_ready() {
                return cluster;
            }
            certificates = cluster.certificates.take();
        }
        panic!("etcd did not start on {TRIES} choices of ports");
    }

    fn try_start(count: usize, certificates: Option<Certificates>) -> Self {
        let directory = Directory::new();
        let ports = free_ports(2 * count);
        let (client_ports, peer_ports) = ports.split_at(count);
        let names: Vec<_> = (0..count).map(|number| format!("s{number}")).collect();
        let members: Vec<_> = names
            .iter()
            .zip(peer_ports)
            .map(|(name, port)| format!("{name}=http://127.0.0.1:{port}"))
            .collect();
        let scheme = scheme(certificates.as_ref());
        let servers = (0..count)
            .map(|number| {
                let client_url = format!("{scheme}://127.0.0.1:{}", client_ports[number]);
                let peer_url = format!("http://127.0.0.1:{}", peer_ports[number]);
                let data = directory.path().join(&names[number]);
                let mut arguments = vec![
                    format!("--name={}", names[number]),
                    format!("--data-dir={}", data.display()),
                    format!("--listen-client-urls={client_url}"),
                    format!("--advertise-client-urls={client_url}"),
                    format!("--listen-peer-urls={peer_url}"),
                    format!("--initial-advertise-peer-urls={peer_url}"),
                    format!("--initial-cluster={}", members.join(",")),
                    format!("--initial-cluster-token={}", directory.path().display()),
                    "--logger=zap".to_owned(),
                    "--log-level=warn".to_owned(),
                ];
                if let Some(certificates) = &certificates {
                    arguments.extend([
                        format!("--cert-file={}", certificates.certificate().display()),
                        format!("--key-file={}", certificates.key().display()),
                        format!("--trusted-ca-file={}", certificates.ca().display()),
                        "--client-cert-auth".to_owned(),
                    ]);
                }
                Server {
                    client_port: client_ports[number],
                    arguments,
                    log: directory.path().join(format!("{}.log", names[number])),
                    process: None,
                }
            })
            .collect();
        let mut cluster = Self {
            servers,
            certificates,
            login: None,
            _directory: directory,
        };
        cluster.servers.iter_mut().for_each(Server::start);
        cluster
    }

    /// The endpoint of one server, the first being 0.
    pub(crate) fn endpoint(&self, server: usize) -> String {
        let scheme = scheme(self.certificates.as_ref());
        let port = self.servers[server].client_port;
        format!("{scheme}://127.0.0.1:{port}")
    }

    /// The endpoints of all servers.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        (0..self.servers.len())
            .map(|server| self.endpoint(server))
            .collect()
    }

    /// Ends a server with SIGKILL.
    pub(crate) fn kill(&mut self, server: usize) {
        self.servers[server].kill();
    }

    /// Stops a server with SIGSTOP: its connections stay, and requests get no answer.
    pub(crate) fn pause(&self, server: usize) {
        pausing::pause(self.servers[server].running());
    }

    /// Lets a paused server go on.
    pub(crate) fn resume(&self, server: usize) {
        pausing::resume(self.servers[server].running());
    }

    /// Starts a killed server on its data. Does not wait until it serves.
    pub(crate) fn restart(&mut self, server: usize) {
        self.servers[server].kill();
        self.servers[server].start();
    }

    /// Index of etcd's leader.
    pub(crate) fn leader(&self) -> usize {
        self.until("a leader", |cluster| {
            (0..cluster.servers.len()).find(|server| {
                let status = cluster.status(*server);
                status.is_some_and(|status| {
                    let status = &status[0]["Status"];
                    status["leader"] == status["header"]["member_id"]
                })
            })
        })
    }

    fn status(&self, server: usize) -> Option<serde_json::Value> {
        let arguments = ["endpoint", "status", "--write-out=json"];
        let text = self.try_etcdctl(&[self.endpoint(server)], &arguments)?;
        serde_json::from_str(&text).ok()
    }

    /// Waits until these servers serve, including reads through their quorum.
    pub(crate) fn wait_for(&self, servers: &[usize]) {
        let endpoints: Vec<_> = servers
            .iter()
            .map(|server| self.endpoint(*server))
            .collect();
        self.until("servers that serve", |cluster| {
            cluster.try_etcdctl(&endpoints, &["endpoint", "health"])
        });
    }

    /// Runs `etcdctl` against all servers, and returns its output. It must succeed.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) -> String {
        self.try_etcdctl(&self.endpoints(), arguments)
            .unwrap_or_else(|| panic!("etcdctl {arguments:?} failed; {}", self.logs()))
    }

    fn try_etcdctl(&self, endpoints: &[String], arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("etcdctl");
        without_proxies(&mut command);
        command
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", endpoints.join(",")))
            .args(["--dial-timeout=1s", "--command-timeout=3s"])
            .args(arguments);
        if let Some(login) = &self.login {
            command.arg(format!("--user={login}"));
        }
        if let Some(certificates) = &self.certificates {
            command
                .arg(format!("--cacert={}", certificates.ca().display()))
                .arg(format!("--cert={}", certificates.certificate().display()))
                .arg(format!("--key={}", certificates.key().display()));
        }
        let output = started(command.output(), "etcdctl", "etcd-client");
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).expect("text"))
    }

    /// False when a server has ended: its port was taken.
    fn becomes_ready(&mut self) -> bool {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if self
                .try_etcdctl(&self.endpoints(), &["endpoint", "health"])
                .is_some()
            {
                return true;
            }
            if !self.servers.iter_mut().all(Server::runs) {
                return false;
            }
            assert!(
                Instant::now() < deadline,
                "etcd does not serve; {}",
                self.logs()
            );
            thread::sleep(STEP);
        }
    }

    fn until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            assert!(Instant::now() < deadline, "{what}: none; {}", self.logs());
            thread::sleep(STEP);
        }
    }

    /// The end of each server's log.
    fn logs(&self) -> String {
        let mut text = "the servers print:".to_owned();
        for server in &self.servers {
            let log = fs::read_to_string(&server.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(5)..] {
                text.push_str("\n  ");
                text.push_str(line);
            }
        }
        text
    }

    /// The certificates of a cluster with TLS.
    pub(crate) fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }
}

fn scheme(certificates: Option<&Certificates>) -> &'static str {
    if certificates.is_some() {
        "https"
    } else {
        "http"
    }
}

fn free_ports(count: usize) -> Vec<u16> {
    // All bound at once, so that they differ.
    let held: Vec<_> = (0..count)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a free port"))
        .collect();
    held.iter()
        .map(|listener| listener.local_addr().expect("an address").port())
        .collect()
}

/// Without the settings and proxies of the person who runs the tests.
fn without_proxies(command: &mut Command) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path);
}

fn started<T>(result: io::Result<T>, program: &str, package: &str) -> T {
    result.unwrap_or_else(|error| panic!("{program} (Debian: {package}): {error}"))
}

fn output(mut command: Command) {
    let output = command.output().expect("a program that starts");
    assert!(output.status.success(), "{command:?}: {output:?}");
}
