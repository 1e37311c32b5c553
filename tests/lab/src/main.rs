//! The switch of the lab: joins network namespaces through a TAP device in each, over lines with delay, jitter, loss, duplicates,
//! reordering, rate limits and cuts (`docs/lab.md`).
//!
//! ```text
//! lab_switch SEED NAME=NAMESPACE...
//! ```
//!
//! NAMESPACE is a path, as /proc/self/fd/5. In each, the device is `eth0`. Prints "ready", then takes commands from standard input
//! (`command.rs`). Ends, and with it the devices, when the input does.

#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod line;
#[cfg(target_os = "linux")]
mod switch;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{self, Write};
    use std::num::NonZeroU64;
    use std::os::fd::AsFd;
    use std::thread;

    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    use thiserror::Error;
    use tun_rs::{DeviceBuilder, Layer, SyncDevice};

    use crate::switch::{Port, Switch};

    /// No frame may be lost before it reaches the switch: the kernel's queue in front of it is long.
    const DEVICE_QUEUE_FRAMES: u32 = 10_000;

    #[derive(Debug, Error)]
    pub(crate) enum SwitchError {
        #[error("usage: lab_switch SEED NAME=NAMESPACE...")]
        Usage,
        #[error("the network namespace {0}: {1}")]
        Namespace(String, io::Error),
        #[error("a TAP device (/dev/net/tun) for {0}: {1}")]
        Tap(String, io::Error),
        #[error("the switch stopped: {0}")]
        Io(#[from] io::Error),
    }

    pub(crate) fn run() -> Result<(), SwitchError> {
        let mut arguments = std::env::args().skip(1);
        let seed = arguments
            .next()
            .and_then(|seed| seed.parse().ok())
            .ok_or(SwitchError::Usage)?;
        let ports = arguments
            .map(|argument| {
                let (name, namespace) = argument.split_once('=').ok_or(SwitchError::Usage)?;
                let device = tap(name, namespace)?;
                let name = name.to_owned();
                Ok(Port { name, device })
            })
            .collect::<Result<Vec<_>, SwitchError>>()?;
        // Wakes up when a frame is due, not 50 microseconds later; without this, only less precise.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        // Before the hosts that it serves; without the right to it, only less precise.
        let _ = rustix::process::nice(-15);
        print_line("ready")?;
        Switch::new(ports, seed).run(io::stdin().as_fd(), |answer| print_line(&answer))?;
        Ok(())
    }

    fn print_line(line: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        writeln!(output, "{line}")?;
        output.flush()
    }

    /// A TAP device in that namespace. A thread of its own opens it, since only one thread moves to a namespace.
    fn tap(name: &str, namespace: &str) -> Result<SyncDevice, SwitchError> {
        let opened = thread::scope(|scope| {
            let opener = scope.spawn(|| {
                let failed = |error| SwitchError::Namespace(namespace.to_owned(), error);
                let file = File::open(namespace).map_err(failed)?;
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|error| failed(error.into()))?;
                open_tap().map_err(|error| SwitchError::Tap(name.to_owned(), error))
            });
            opener.join()
        });
        opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn open_tap() -> io::Result<SyncDevice> {
        let device = DeviceBuilder::new()
            .name("eth0")
            .layer(Layer::L2)
            .tx_queue_len(DEVICE_QUEUE_FRAMES)
            .enable(false)
            .build_sync()?;
        rustix::io::ioctl_fionbio(device.as_fd(), true)?;
        Ok(device)
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match linux::run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab_switch: {error}");
            std::process::ExitCode::from(3)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("lab_switch: needs Linux, for network namespaces and TAP devices");
    std::process::ExitCode::from(3)
}
