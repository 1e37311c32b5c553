//! `mmn-relay`: a relay as a program.

mod arguments;

use std::process::ExitCode;

use mmn_relay::{Relay, Settings, files};

use arguments::{Arguments, Asked, HELP};

/// The exit code for a command line that cannot be used.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Asked::Start(arguments)) => *arguments,
        Ok(Asked::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Version) => {
            println!("mmn-relay {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("mmn-relay: {fault}");
            return ExitCode::from(USAGE);
        }
    };
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mmn-relay: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = arguments.settings;
    if let Some(path) = &arguments.key_file {
        settings.key = Some(files::key(path)?);
        if settings.monthly.is_some() {
            let mut used = path.clone().into_os_string();
            used.push(".used");
            settings.quota_file = Some(used.into());
        }
    }
    if let Some(path) = &arguments.token_file {
        settings.token = Some(files::token(path)?);
    }
    // Before the relay's thread starts, so that no signal ends the process while it does.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let signals = Signals::watch()?;
        serve(settings, signals).await
    })
}

async fn serve(settings: Settings, signals: Signals) -> Result<(), Box<dyn std::error::Error>> {
    let relay = Relay::start(settings)?;
    println!("{} key={}", relay.address(), relay.fingerprint());
    signals.next().await;
    relay.stop();
    Ok(())
}

/// Signals that ask the process to end.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn watch() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Signals that ask the process to end.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn watch() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(self) {
        // Without a console there is none.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
