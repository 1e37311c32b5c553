//! A link of an attacker, on which it sends everything that can be sent.

use super::carrier::Carrier;
use super::*;

/// State that all links of an attacker share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) strategy: Strategy,
    /// The newest leadership that honest members follow.
    pub(super) newest: Arc<Mutex<Record>>,
    /// Carries links of others, if the attacker does that.
    pub(super) carrier: Option<Arc<Carrier>>,
}

impl Common {
    pub(super) fn newest(&self) -> Record {
        self.newest.lock().expect("not poisoned").clone()
    }

    fn note(&self, pulse: &Opaque) {
        let record = match self.strategy {
            Strategy::Seeded(_) => observed(pulse),
            _ => followed(pulse),
        };
        let mut newest = self.newest.lock().expect("not poisoned");
        if let Some(record) = record.filter(|record| *record > *newest) {
            *newest = record;
        }
    }
}

fn followed(pulse: &Opaque) -> Option<Record> {
    let (Pulse::Leads { record, .. } | Pulse::Follows { record, .. }) =
        pulse.decode::<Beat>().ok()?.pulse;
    Some(record)
}

/// A record with the version of a seeded cluster as its term.
fn observed(pulse: &Opaque) -> Option<Record> {
    let beat = pulse.decode::<seeded::Beat>().ok()?;
    let stamp = Stamp {
        term: beat.observed.version.max(beat.decided),
        ..Stamp::default()
    };
    Some(Record {
        leader: beat.observed.leader,
        ..Record::undecided(stamp)
    })
}

pub(super) struct WildLink {
    pub(super) connection: Connection,
    control: SendStream,
    lane: Option<SendStream>,
    next_seq: u64,
    readers: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for WildLink {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
        self.connection.close(VarInt::from_u32(0), b"");
    }
}

/// Takes the dial of a member that was introduced to this one.
pub(super) async fn answer(
    attacker: &Attacker,
    incoming: quinn::Incoming,
    wild: &mut Wild<'_>,
    eligible: bool,
    common: &Common,
) -> Option<WildLink> {
    let connection = incoming.await.ok()?;
    let (mut send, mut recv) = accept_pake(&connection, &attacker.proof).await.ok()?;
    read_hello(&mut recv).await.ok()?;
    let mut ack: HelloAck = wild.any();
    if wild.chance.flip() {
        ack.code = 0;
    }
    ack.hello.eligible = eligible;
    write_hello_ack(&mut send, &ack).await.ok()?;
    send.write_all(&first_words()).await.ok()?;
    Some(WildLink::start(connection, send, recv, common))
}

impl WildLink {
    pub(super) fn start(
        connection: Connection,
        control: SendStream,
        mut recv: RecvStream,
        common: &Common,
    ) -> Self {
        let notes = common.clone();
        let read_control = async move {
            while let Ok(frame) = read_frame(&mut recv, 1 << 20).await {
                let Ok(ControlFrame::Core(envelope)) = postcard::from_bytes(&frame) else {
                    continue;
                };
                if let Message::Heartbeat(Heartbeat { pulse, .. }) = envelope.message {
                    notes.note(&pulse);
                }
            }
        };
        let lanes = connection.clone();
        let read_lanes = async move {
            while let Ok(mut lane) = lanes.accept_uni().await {
                while let Ok(Some(_)) = lane.read_chunk(1 << 16, true).await {}
            }
        };
        let mut readers = vec![tokio::spawn(read_control), tokio::spawn(read_lanes)];
        if let Some(carrier) = &common.carrier {
            readers.push(tokio::spawn(Arc::clone(carrier).carry(connection.clone())));
        }
        Self {
            connection,
            control,
            lane: None,
            next_seq: 0,
            readers,
        }
    }

    /// Sends a message to the core of the other end.
    pub(super) async fn send_to_core(&mut self, wild: &Wild<'_>, message: Message) -> Option<()> {
        let frame = ControlFrame::Core(Envelope {
            incarnation: wild.me.incarnation,
            message,
        });
        let mut buffer = BytesMut::new();
        put_value(&mut buffer, &frame).ok()?;
        self.control.write_all(&buffer).await.ok()
    }

    /// Sends one thing.
    pub(super) async fn act(&mut self, wild: &mut Wild<'_>) -> Option<()> {
        let mut buffer = BytesMut::new();
        match wild.chance.below(16) {
            0 => {
                let probe: Probe = wild.any();
                let bytes = postcard::to_allocvec(&(PROBE_DATAGRAM, probe)).ok()?;
                self.connection.send_datagram(bytes.into()).ok()?;
            }
            1 if wild.chance.flip() => {
                let header = wild.any();
                let len = wild.chance.below(100);
                let payload = wild.chance.bytes(len);
                let bytes = datagram(&header, &payload).ok()?;
                self.connection.send_datagram(bytes).ok()?;
            }
            1 if wild.chance.one_in(4) => {
                let len = match wild.tame {
                    true => 0,
                    false => wild.chance.below(1400),
                };
                let bytes = wild.chance.bytes(len);
                self.connection.send_datagram(bytes.into()).ok()?;
            }
            1..5 => {
                if self.lane.is_none() {
                    self.lane = Some(self.connection.open_uni().await.ok()?);
                    put_value(&mut buffer, &wild.any::<LaneHeader>()).ok()?;
                }
                let mut header = wild.message_header(self.next_seq);
                let len = match wild.chance.one_in(32) {
                    true => wild.chance.length(quick().max_message_size, !wild.tame),
                    false => wild.chance.below(200),
                };
                let mut payload = wild.chance.bytes(len);
                if header.flags & OWN_FLAG != 0 && wild.chance.flip() {
                    payload = pack(&vec![7; len])?.to_vec();
                } else if wild.tame {
                    header.flags &= !OWN_FLAG;
                }
                self.next_seq = header.seq.saturating_add(1);
                put_message(&mut buffer, &header, &payload).ok()?;
                self.lane.as_mut()?.write_all(&buffer).await.ok()?;
            }
            5 if !wild.tame && wild.chance.one_in(16) => {
                let bytes = wild.chance.bytes(32);
                self.control.write_all(&bytes).await.ok()?;
            }
            _ => {
                put_value(&mut buffer, &wild.control_frame()).ok()?;
                self.control.write_all(&buffer).await.ok()?;
            }
        }
        Some(())
    }
}
