//! Counters, and their text for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reason why the relay drops a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    /// It is no packet of a tunnel, or names a sender.
    Malformed,
    /// Its target is not present.
    Absent,
    /// Its target has blocked the sender.
    Blocked,
    /// Its sender sends more than the rate of a link.
    Rate,
    /// It waited too long, or too many packets did, for the rate of the target's link, for the relay's total, or for the line.
    Queue,
    /// All queues together are full.
    Backlog,
}

/// Reason why the relay refuses or ends a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its site began too many handshakes.
    Handshakes,
    /// Its network has as many links as it may have.
    Network,
    /// The relay has as many links as it may have.
    Relay,
    /// The locator has as many members as it may have.
    Locator,
    /// The link made way for another one.
    Yielded,
    /// No complete `Enter` in time.
    Late,
    /// A frame that cannot be decoded.
    Malformed,
    /// No token, or a wrong one.
    Token,
    /// The quota is used up.
    Quota,
}

const DROPS: [(Drop, &str); 6] = [
    (Drop::Malformed, "malformed"),
    (Drop::Absent, "absent"),
    (Drop::Blocked, "blocked"),
    (Drop::Rate, "rate"),
    (Drop::Queue, "queue"),
    (Drop::Backlog, "backlog"),
];

const REFUSALS: [(Refusal, &str); 9] = [
    (Refusal::Handshakes, "handshakes"),
    (Refusal::Network, "network"),
    (Refusal::Relay, "relay"),
    (Refusal::Locator, "locator"),
    (Refusal::Yielded, "yielded"),
    (Refusal::Late, "late"),
    (Refusal::Malformed, "malformed"),
    (Refusal::Token, "token"),
    (Refusal::Quota, "quota"),
];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    drops: [AtomicU64; DROPS.len()],
    refusals: [AtomicU64; REFUSALS.len()],
}

impl Counters {
    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn drop_packets(&self, reason: Drop, count: u64) {
        self.drops[reason as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self, reason: Refusal) {
        self.refusals[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes that came and went, all together.
    pub(crate) fn traffic(&self) -> u64 {
        load(&self.received_bytes) + load(&self.sent_bytes)
    }

    /// The counters, with the figures that the caller has.
    pub(crate) fn figures(&self, now: Now) -> Figures {
        let mut drops = DROPS.map(|(reason, _)| (reason, load(&self.drops[reason as usize])));
        drops[Drop::Queue as usize].1 += now.dropped;
        Figures {
            received_bytes: load(&self.received_bytes),
            sent_bytes: load(&self.sent_bytes),
            drops,
            refusals: REFUSALS.map(|(reason, _)| (reason, load(&self.refusals[reason as usize]))),
            now,
        }
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Figures that are counted elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now {
    /// Links, also ones that have not entered a room.
    pub links: usize,
    /// Members of rooms.
    pub members: usize,
    /// Locators with members.
    pub rooms: usize,
    /// Bytes that wait in queues.
    pub waiting_bytes: usize,
    /// Packets sent on.
    pub forwarded: u64,
    /// Packets dropped by the queues of links.
    pub dropped: u64,
    /// Bytes of the monthly quota, and how many of them are used.
    pub quota: Option<(u64, u64)>,
}

/// State of a relay.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Bytes received, as payload of UDP.
    pub received_bytes: u64,
    /// Bytes sent, as payload of UDP.
    pub sent_bytes: u64,
    drops: [(Drop, u64); DROPS.len()],
    refusals: [(Refusal, u64); REFUSALS.len()],
    /// The other figures.
    pub now: Now,
}

impl Figures {
    /// Packets dropped for that reason.
    pub fn drops(&self, reason: Drop) -> u64 {
        self.drops[reason as usize].1
    }

    /// Links refused for that reason.
    pub fn refusals(&self, reason: Refusal) -> u64 {
        self.refusals[reason as usize].1
    }

    /// In the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let now = &self.now;
        family(
            &mut text,
            "links",
            "gauge",
            "Links of members",
            &[("", now.links as u64)],
        );
        family(
            &mut text,
            "members",
            "gauge",
            "Members of rooms",
            &[("", now.members as u64)],
        );
        family(
            &mut text,
            "rooms",
            "gauge",
            "Locators with members",
            &[("", now.rooms as u64)],
        );
        let waiting = now.waiting_bytes as u64;
        family(
            &mut text,
            "waiting_bytes",
            "gauge",
            "Bytes in queues",
            &[("", waiting)],
        );
        let bytes = [
            ("{direction=\"in\"}", self.received_bytes),
            ("{direction=\"out\"}", self.sent_bytes),
        ];
        family(&mut text, "bytes_total", "counter", "Bytes of UDP", &bytes);
        family(
            &mut text,
            "forwarded_packets_total",
            "counter",
            "Packets sent on",
            &[("", now.forwarded)],
        );
        let labels = DROPS.map(|(_, name)| format!("{{reason=\"{name}\"}}"));
        let drops: Vec<_> = labels
            .iter()
            .zip(self.drops)
            .map(|(label, (_, count))| (label.as_str(), count))
            .collect();
        family(
            &mut text,
            "dropped_packets_total",
            "counter",
            "Packets dropped, by reason",
            &drops,
        );
        let labels = REFUSALS.map(|(_, name)| format!("{{reason=\"{name}\"}}"));
        let refusals: Vec<_> = labels
            .iter()
            .zip(self.refusals)
            .map(|(label, (_, count))| (label.as_str(), count))
            .collect();
        family(
            &mut text,
            "refused_links_total",
            "counter",
            "Links refused or ended, by reason",
            &refusals,
        );
        if let Some((quota, used)) = now.quota {
            family(
                &mut text,
                "quota_bytes",
                "gauge",
                "Bytes of a month, at most",
                &[("", quota)],
            );
            family(
                &mut text,
                "quota_used_bytes",
                "gauge",
                "Bytes used this month",
                &[("", used)],
            );
        }
        text
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str, values: &[(&str, u64)]) {
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "# HELP mmn_relay_{name} {help}.\n# TYPE mmn_relay_{name} {kind}\n"
    );
    for (label, value) in values {
        let _ = writeln!(text, "mmn_relay_{name}{label} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_reason_and_the_names_are_in_order() {
        for (index, (reason, _)) in DROPS.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
        for (index, (reason, _)) in REFUSALS.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
        let counters = Counters::default();
        counters.received(7);
        counters.sent(8);
        counters.drop_packets(Drop::Queue, 1);
        counters.refuse(Refusal::Token);
        let now = Now {
            links: 3,
            dropped: 2,
            quota: Some((100, 50)),
            ..Now::default()
        };
        let text = counters.figures(now).prometheus();
        for line in [
            "# TYPE mmn_relay_links gauge",
            "mmn_relay_links 3",
            "mmn_relay_bytes_total{direction=\"in\"} 7",
            "mmn_relay_bytes_total{direction=\"out\"} 8",
            "mmn_relay_dropped_packets_total{reason=\"queue\"} 3",
            "mmn_relay_dropped_packets_total{reason=\"absent\"} 0",
            "mmn_relay_refused_links_total{reason=\"token\"} 1",
            "mmn_relay_quota_bytes 100",
            "mmn_relay_quota_used_bytes 50",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
