//! Resident memory of rooms under attack, each in a process of its own, beside the bound that the limits give.
//!
//! ```sh
//! scripts/isolated.py cargo test --lib -- --ignored --nocapture figures_memory
//! ```

mod attacks;

use std::process::Command;

use self::attacks::ATTACKS;
use super::*;

/// Memory of QUIC, the runtime and the attacker, which is in the same process, beside the bounded state.
const BESIDE_BYTES: u64 = 8 << 20;

/// Resident memory of this process, where the system reports it.
pub(super) fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// The memory of this process since a moment.
struct Growth {
    before: u64,
    most: u64,
}

impl Growth {
    fn begin() -> Self {
        let before = resident_bytes().expect("Linux reports it");
        let most = before;
        Self { before, most }
    }

    fn look(&mut self) {
        let now = resident_bytes().expect("Linux reports it");
        self.most = self.most.max(now);
    }

    /// Looks for half a second of real time: something may come late.
    async fn settle(&mut self) {
        for _ in 0..50 {
            self.look();
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn bytes(&self) -> u64 {
        self.most - self.before
    }
}

/// An attack as it was measured.
struct Measured {
    /// The messages of the attacker, in words.
    sent: String,
    growth: Growth,
    /// The bytes that the limits allow.
    limit: u64,
}

impl Measured {
    fn bound(&self) -> u64 {
        self.limit + BESIDE_BYTES
    }

    fn row(&self, name: &str) -> String {
        let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        let met = match self.growth.bytes() <= self.bound() {
            true => "yes",
            false => "**no**",
        };
        format!(
            "| {name} | {} | {} | {} | {} | {met} |",
            self.sent,
            mib(self.growth.before),
            mib(self.growth.bytes()),
            mib(self.bound())
        )
    }
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "make figures runs it"]
fn figures_memory_of_rooms_under_attack() {
    println!("| attack | what the attacker sends | MiB before | MiB more | bound | met |");
    println!("|---|---|---|---|---|---|");
    let rows: Vec<_> = ATTACKS.iter().map(|(name, _)| row_of(name)).collect();
    let missed: Vec<_> = rows.iter().filter(|row| row.contains("**no**")).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

fn row_of(name: &str) -> String {
    let program = std::env::current_exe().expect("this program");
    let test = "room::hostile::memory::one_attack";
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("MMN_MEMORY_ATTACK", name)
        .output()
        .expect("it runs again");
    let printed = String::from_utf8_lossy(&output.stdout);
    let row = printed.lines().find(|line| line.starts_with("| "));
    let complaint = String::from_utf8_lossy(&output.stderr);
    let row = row.unwrap_or_else(|| panic!("{name}: {printed}{complaint}"));
    println!("{row}");
    row.to_owned()
}

#[tokio::test]
#[ignore = "the test above runs it, each attack in a process of its own"]
async fn one_attack() {
    let Ok(name) = std::env::var("MMN_MEMORY_ATTACK") else {
        return; // it is asked for by name
    };
    let attack = ATTACKS.iter().find(|(known, _)| *known == name);
    let (name, run) = attack.expect("a known attack");
    let measured = run().await;
    println!("\n{}", measured.row(name));
}
