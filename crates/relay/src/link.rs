//! One link of a member, from its handshake to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, Incoming, SendStream, VarInt};
use room_core::address::canonical;
use room_transport::identity::peer_fingerprint;
use room_transport::rendezvous::{FromRelay, ToRelay};
use room_transport::tunnel::leg::{Leg, drive};
use room_transport::tunnel::shaper::Rate;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use crate::ending::End;
use crate::figures::{Drop, Refusal};
use crate::frames::{Frames, MAX_UNREAD_BYTES, NoFrame, write};
use crate::log::Level;
use crate::networks::{LinkNumber, Site};
use crate::rooms::Entry;
use crate::server::{MemberLink, Place, Server};
use crate::uplink::Uplink;

/// Time from a dial until its `Enter`, at most.
pub(crate) const ENTER_TIMEOUT: Duration = Duration::from_secs(5);
/// [`ENTER_TIMEOUT`] for a site that has failed too often.
const SUSPECT_ENTER_TIMEOUT: Duration = Duration::from_secs(1);
/// How often an idle link's address is looked at.
const ADDRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum time between two `Observed` of one link.
const OBSERVED_INTERVAL: Duration = Duration::from_secs(60);

/// Serves a link that has a place.
pub(crate) async fn serve(place: Place, incoming: Incoming) {
    let server = Arc::clone(&place.server);
    let address = canonical(incoming.remote_address());
    let limit = match place.is_suspect {
        true => SUSPECT_ENTER_TIMEOUT,
        false => ENTER_TIMEOUT,
    };
    let deadline = Instant::now() + limit;
    let connection = tokio::select! {
        connection = timeout(limit, incoming.into_future()) => match connection {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                server.failed(Site::of(address.ip()));
                server.log(Level::Debug, format_args!("{address}: no link: {error}"));
                return;
            }
            Err(_) => {
                server.failed(Site::of(address.ip()));
                server.counters.refuse(Refusal::Late);
                return;
            }
        },
        _ = place.ending.wait() => return,
    };
    let end = tokio::select! {
        end = Session::run(&place, &connection, address, deadline) => end,
        end = place.ending.wait() => end,
    };
    match end {
        // These are counted by what decides them.
        End::Refused(Refusal::Yielded | Refusal::Quota) => {}
        End::Refused(reason) => server.counters.refuse(reason),
        End::TooManyFailures => server.counters.refuse(Refusal::Token),
        End::Replaced | End::SameId | End::Left => {}
    }
    server.log(Level::Debug, format_args!("{address}: ends: {end:?}"));
    end.close(&connection);
}

/// A member's link after its handshake.
struct Session<'a> {
    place: &'a Place,
    connection: &'a Connection,
    address: SocketAddr,
}

impl Session<'_> {
    /// Returns why it ends.
    async fn run(
        place: &Place,
        connection: &Connection,
        address: SocketAddr,
        deadline: Instant,
    ) -> End {
        let session = Session {
            place,
            connection,
            address,
        };
        let entered = tokio::select! {
            entered = session.enter() => entered,
            () = sleep_until(deadline) => Err(End::Refused(Refusal::Late)),
        };
        match entered {
            Ok((link, stream, frames)) => session.attend(link, stream, frames).await,
            Err(end) => {
                if matches!(end, End::Refused(Refusal::Late | Refusal::Malformed)) {
                    place.server.failed(Site::of(address.ip()));
                }
                end
            }
        }
    }

    async fn enter(&self) -> Result<(Arc<MemberLink>, SendStream, Frames), End> {
        let server = &self.place.server;
        let key = peer_fingerprint(self.connection).ok_or(End::Refused(Refusal::Malformed))?;
        let stream = self.connection.accept_bi().await;
        let (mut outgoing, incoming) = stream.map_err(|_| End::Left)?;
        let mut frames = Frames::new(incoming);
        let ToRelay::Enter {
            locator,
            hidden,
            proof,
        } = frames.next().await?
        else {
            return Err(End::Refused(Refusal::Malformed));
        };
        let entry = Entry {
            link: self.place.number,
            locator,
            key,
            address: self.address.ip(),
            hidden,
        };
        let link = Arc::new(MemberLink {
            leg: Arc::new(Leg::of_a_relay(server.rate)),
            frames: Notify::new(),
            ending: Arc::clone(&self.place.ending),
        });
        let entered = server.enter(self.connection, entry, proof, Arc::clone(&link))?;
        server.log(
            Level::Debug,
            format_args!("{}: {key:?} enters", self.address),
        );
        self.connection
            .set_receive_window(VarInt::from_u32(MAX_UNREAD_BYTES));
        let welcome = FromRelay::Welcome {
            observed: self.address,
            bytes_per_second: match server.rate {
                Rate::Unlimited => 0,
                Rate::BytesPerSecond(rate) => rate,
            },
            present: entered.present,
        };
        write(&mut outgoing, &welcome).await?;
        Ok((link, outgoing, frames))
    }

    /// Serves a member until its link ends.
    async fn attend(&self, link: Arc<MemberLink>, stream: SendStream, frames: Frames) -> End {
        let server = &self.place.server;
        let number = self.place.number;
        let (_up, watched) = watch::channel(Some(self.connection.clone()));
        let mut tasks = JoinSet::new();
        tasks.spawn(drive(
            Arc::clone(&link.leg),
            watched,
            Arc::clone(&server.departures),
            Arc::clone(&server.leg_counters),
            Arc::clone(&server.shaper),
        ));
        tasks.spawn(forward(
            Arc::clone(server),
            number,
            self.connection.clone(),
            self.address,
        ));
        let ended = tokio::select! {
            fault = read_frames(server, number, frames) => fault,
            fault = write_frames(server, number, &link, stream) => fault,
        };
        ended.into()
    }
}

impl From<NoFrame> for End {
    fn from(fault: NoFrame) -> Self {
        match fault {
            NoFrame::Ended => Self::Left,
            NoFrame::Malformed => Self::Refused(Refusal::Malformed),
        }
    }
}

async fn read_frames(server: &Server, number: LinkNumber, mut frames: Frames) -> NoFrame {
    loop {
        let frame = match frames.next().await {
            Ok(frame) => frame,
            Err(fault) => return fault,
        };
        let now = Instant::now().into_std();
        server.with_rooms(|rooms| match frame {
            ToRelay::More => rooms.name_more(now, number),
            ToRelay::Block { key } => rooms.block(now, number, key),
            // It is in a room already.
            ToRelay::Enter { .. } => {}
        });
    }
}

async fn write_frames(
    server: &Server,
    number: LinkNumber,
    link: &MemberLink,
    mut stream: SendStream,
) -> NoFrame {
    loop {
        while let Some(frame) = server.with_rooms(|rooms| rooms.next_frame(number)) {
            if let Err(fault) = write(&mut stream, &frame).await {
                return fault;
            }
        }
        link.frames.notified().await;
    }
}

/// Sends on what a member sends for others.
async fn forward(
    server: Arc<Server>,
    number: LinkNumber,
    connection: Connection,
    address: SocketAddr,
) {
    let mut uplink = Uplink::new(server.rate, Arc::clone(&server.backlog));
    let mut seen = Seen::new(address);
    let mut ticks = interval(ADDRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = Instant::now();
        server
            .counters
            .drop_packets(Drop::Rate, uplink.drop_old(now));
        while let Some((target, packet)) = uplink.next(now) {
            server.forward(number, target, packet);
        }
        let next_at = uplink.next_at(now);
        tokio::select! {
            datagram = connection.read_datagram() => match datagram {
                Ok(datagram) => {
                    let dropped = uplink.take(Instant::now(), datagram);
                    if let Some(reason) = dropped {
                        server.counters.drop_packets(reason, 1);
                    }
                    if dropped == Some(Drop::Backlog) {
                        server.drop_old();
                    }
                }
                Err(_) => return,
            },
            () = sleep_until(next_at.unwrap_or(now)), if next_at.is_some() => {}
            _ = ticks.tick() => {}
        }
        let address = canonical(connection.remote_address());
        let look = seen.look(address);
        if look.has_moved {
            server.moved(number, address);
        }
        if look.reports {
            server.with_rooms(|rooms| rooms.observe(number, address));
        }
    }
}

/// Where a link is, and what its member knows of that.
struct Seen {
    address: SocketAddr,
    reported: SocketAddr,
    /// When it was reported last; that it has entered is no report.
    reported_at: Option<Instant>,
}

/// Outcome of a look at a link's address.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    /// It is another one than before.
    has_moved: bool,
    /// Its member is to learn of it now.
    reports: bool,
}

impl Seen {
    /// The member learns of its address with the `Welcome`.
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            reported: address,
            reported_at: None,
        }
    }

    fn look(&mut self, address: SocketAddr) -> Look {
        let has_moved = self.address != address;
        self.address = address;
        let is_due = |at: Instant| at.elapsed() >= OBSERVED_INTERVAL;
        let reports = address != self.reported && self.reported_at.is_none_or(is_due);
        if reports {
            self.reported = address;
            self.reported_at = Some(Instant::now());
        }
        Look { has_moved, reports }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_member_learns_of_a_move_at_once_then_once_a_minute_and_of_the_last_one_in_the_end() {
        let [first, second, third] = [1, 2, 3].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let mut seen = Seen::new(first);
        let (mut moves, mut reports) = (0, Vec::new());
        let start = Instant::now();
        for second_of_test in 0..300 {
            let address = match second_of_test {
                0..10 => first,
                10..100 => second,
                // It changes all the time, as of a NAT with many addresses.
                100..150 if second_of_test % 2 == 0 => third,
                100..150 => second,
                _ => first,
            };
            let look = seen.look(address);
            moves += usize::from(look.has_moved);
            if look.reports {
                reports.push((start.elapsed().as_secs(), address));
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(reports, [(10, second), (100, third), (160, first)]);
        assert_eq!(moves, 1 + 50 + 1);
    }
}
