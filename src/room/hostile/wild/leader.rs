//! Members that lead, by records above all that the honest ones know, and send everything in that role. One that is deposed
//! goes on under the record of its leadership.

use super::link::WildLink;
use super::*;

/// Distance of its heartbeats.
const BEATS: Duration = Duration::from_millis(100);

/// See the module's text.
#[derive(Debug)]
pub(super) struct Leader {
    /// How long it speaks as a former leader, at most, before it claims to lead again.
    rests: Duration,
    record: Option<Record>,
    /// Since when honest members follow another leader, and how long it rests this time.
    deposed: Option<(Instant, Duration)>,
    next_beat: Option<Instant>,
}

impl Leader {
    pub(super) fn new(rests: Duration) -> Self {
        Self {
            rests,
            record: None,
            deposed: None,
            next_beat: None,
        }
    }

    /// A session begins, of another incarnation.
    pub(super) fn begin(&mut self) {
        *self = Self::new(self.rests);
    }

    pub(super) async fn step(
        &mut self,
        wild: &mut Wild<'_>,
        newest: Record,
        links: &mut [WildLink],
    ) {
        if self.record.as_ref().is_none_or(|record| *record < newest) && self.has_rested(wild) {
            self.record = Some(above(newest, &wild.me));
            self.next_beat = None;
        }
        if let Some(record) = &self.record {
            wild.record.clone_from(record);
            self.beat(wild, links).await;
        }
    }

    /// Whether it claims to lead again.
    fn has_rested(&mut self, wild: &mut Wild<'_>) -> bool {
        if self.record.is_none() {
            return true;
        }
        let rests = self.rests;
        let (since, rest) = *self.deposed.get_or_insert_with(|| {
            let percent = u32::try_from(wild.chance.below(101)).expect("small");
            (Instant::now(), rests * percent / 100)
        });
        let has_rested = since.elapsed() >= rest;
        if has_rested {
            self.deposed = None;
        }
        has_rested
    }

    async fn beat(&mut self, wild: &mut Wild<'_>, links: &mut [WildLink]) {
        let now = Instant::now();
        if self.next_beat.is_some_and(|next| now < next) {
            return;
        }
        self.next_beat = Some(now + BEATS);
        wild.beats += 1;
        let pulse = Pulse::Leads {
            record: wild.record.clone(),
            weight: 3,
            led_ms: 1000,
            election_timeout_min_ms: 300,
        };
        let message = Message::Heartbeat(Heartbeat {
            seq: wild.beats,
            echo: None,
            host_silent_ms: 0,
            room_time_us: None,
            pulse: Opaque::of(&Beat::from(pulse)),
        });
        for link in links {
            let _ = link.send_to_core(wild, message.clone()).await;
        }
    }
}

fn above(newest: Record, me: &Known) -> Record {
    let mut record = newest;
    record.stamp.term = record.stamp.term.saturating_add(1);
    record.leader = Some(me.id.clone());
    record.leader_key = Some(me.key);
    record.assigned = false;
    record
}
