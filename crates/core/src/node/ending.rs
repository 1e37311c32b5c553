//! Ends of sessions. One function ends them and takes the reason as an argument.
//!
//! No reason is a report of another member: a join request, an admission or an introduction grants at most, and a
//! session ends when the announced link is ready. The present leader's kick is the one exception.

use super::*;

/// Reason that ends the session with a peer, linked or lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The peer left, with a leave notice on its own link.
    Left {
        /// The next leader, if it led.
        successor: Option<PeerId>,
    },
    /// Its link is lost, and this node does not keep places.
    NotKept(DownReason),
    /// Its place was kept for as long as the host wants, or is needed for another lost member.
    HoldOver,
    /// This node stopped dialling it.
    GaveUp,
    /// Its own Hello shows that the other end has ended the session.
    EndedThere,
    /// Its own Hello, or its own link, shows a newer incarnation with the same key.
    Restarted,
    /// Another link for the id is ready and was admitted, while the holder was lost or had failed its probe.
    Superseded,
    /// One of both hosts ended it.
    Disconnected {
        /// The number that the host gave.
        code: i32,
        /// The bytes that the host gave.
        bytes: Vec<u8>,
    },
    /// The peer broke the protocol on its own link.
    Violation,
    /// The present leader kicked it.
    Kicked {
        /// The number that the leader's host gave.
        code: i32,
        /// The bytes that the leader's host gave.
        bytes: Vec<u8>,
    },
    /// This node moves to a room that cannot keep the peer.
    Moved,
    /// The peer moved to a room that cannot keep this node.
    MovedThere,
    /// The peer is a member of another room that cannot merge with this one.
    OtherRoom,
    /// The room is over, for this node or for the peer.
    RoomOver,
}

impl SessionEnd {
    /// The reason in the host's event.
    fn reason(&self) -> LeftReason {
        match self {
            Self::Left { .. } | Self::MovedThere | Self::OtherRoom => LeftReason::Left,
            Self::NotKept(_) | Self::HoldOver | Self::EndedThere => LeftReason::Lost,
            Self::GaveUp => LeftReason::GaveUp,
            Self::Restarted | Self::Superseded | Self::Moved => LeftReason::Replaced,
            Self::Disconnected { .. } => LeftReason::Disconnected,
            Self::Violation => LeftReason::Violation,
            Self::Kicked { .. } => LeftReason::Kicked,
            Self::RoomOver => LeftReason::RoomEnded,
        }
    }

    /// The reason for the election. The end of a link alone ends no incarnation: others may still be linked to it (G3).
    fn gone(&self) -> DownReason {
        match self {
            Self::Left { successor } => DownReason::Left {
                successor: successor.clone(),
            },
            Self::NotKept(gone) => gone.clone(),
            Self::Restarted | Self::Superseded => DownReason::Closed,
            Self::Kicked { .. } | Self::Moved => DownReason::Removed,
            Self::MovedThere => DownReason::Left { successor: None },
            Self::HoldOver
            | Self::GaveUp
            | Self::EndedThere
            | Self::Disconnected { .. }
            | Self::Violation
            | Self::OtherRoom
            | Self::RoomOver => DownReason::Silent,
        }
    }

    fn into_code_and_bytes(self) -> (i32, Vec<u8>) {
        match self {
            Self::Disconnected { code, bytes } | Self::Kicked { code, bytes } => (code, bytes),
            _ => (0, Vec::new()),
        }
    }
}

impl Node {
    /// Ends the session with a peer, if there is one, and reports that to the host.
    pub(super) fn end_session(&mut self, now: Time, peer: &PeerId, end: SessionEnd) {
        match end {
            // The peer is about to link again: its next incarnation, or itself. If that link fails, both ends dial.
            SessionEnd::Restarted | SessionEnd::EndedThere => {
                self.introductions.restarted(now, peer);
            }
            _ => self.introductions.forget(peer),
        }
        self.paths_changed = true;
        let mut end = end;
        let mut last_linked = now;
        let (path, incarnation, key, is_host) = match self.membership.remove(peer) {
            Some(member) => (
                Some(member.path),
                member.incarnation,
                member.key,
                member.is_host,
            ),
            None => match self.absent.remove(peer) {
                Some(absent) => {
                    if absent.ended && matches!(end.reason(), LeftReason::Lost | LeftReason::GaveUp)
                    {
                        end = SessionEnd::RoomOver;
                    }
                    last_linked = absent.since;
                    (None, absent.incarnation, absent.key, absent.is_host)
                }
                None => return,
            },
        };
        self.past_incarnations.note(peer, incarnation);
        self.recent_leaders.link_changed(now, peer, false);
        self.view.remove(peer);
        self.drop_requests_of(peer);
        self.unvouch(peer, key);
        self.room_rules_unlinked(peer);
        let (why, gone) = (end.reason(), end.gone());
        let (code, bytes) = end.into_code_and_bytes();
        let ends = is_host && self.ends_without_host(why, code, &bytes);
        self.event(Event::Left(Left {
            code,
            bytes,
            ..Left::new(peer.clone(), why)
        }));
        if let Some(path) = path {
            self.report_peer_down(now, peer, (incarnation, path), gone);
        }
        if ends {
            self.empty_room(now);
        }
        if matches!(
            why,
            LeftReason::RoomEnded | LeftReason::Lost | LeftReason::GaveUp
        ) {
            self.end_if_left_behind(now, last_linked);
        }
        self.dial_waiting_members(now, peer);
    }

    /// Ends the room after the session of its fixed host. If the host was restarted, the room continues with it.
    fn ends_without_host(&mut self, why: LeftReason, code: i32, bytes: &[u8]) -> bool {
        let (why, code, bytes) = match why {
            LeftReason::Replaced => return false,
            LeftReason::Left | LeftReason::Kicked | LeftReason::RoomEnded => {
                (EndReason::HostLeft, 0, Vec::new())
            }
            LeftReason::Disconnected => (EndReason::Disconnected, code, bytes.to_vec()),
            LeftReason::Lost | LeftReason::GaveUp | LeftReason::Violation => {
                (EndReason::HostLost, 0, Vec::new())
            }
        };
        self.announce_end(why, code, bytes)
    }

    /// Ends the session with the holder of an id that another link takes over. A lost holder has no link to close: the
    /// id's link is already the next one.
    pub(super) fn replace(&mut self, now: Time, peer: &PeerId, end: SessionEnd) {
        if self.membership.get(peer).is_some() {
            self.close(peer, LinkEnd::Replaced);
        }
        self.end_session(now, peer, end);
    }

    /// Handles an admitted link that is ready and whose other end holds `key`. The session of another holder of its id
    /// ends, if that holder is lost or failed its probe here.
    pub(super) fn link_ready(
        &mut self,
        now: Time,
        peer: &PeerId,
        key: Fingerprint,
        incarnation: Incarnation,
    ) {
        let Some(holder) = self.id_holder(peer) else {
            return;
        };
        let absent = self.absent.get(peer);
        let is_over = absent.is_some_and(|absent| absent.ended);
        if holder == (key, incarnation) && !is_over {
            return;
        }
        let linked = self.membership.get(peer);
        if linked.is_some_and(|member| member.keeps_id_from(key, incarnation)) {
            if self.moves_to(peer, key) {
                self.move_to_namesake(now, peer, key);
            }
            return;
        }
        let end = match holder.0 == key {
            true => SessionEnd::Restarted,
            false => {
                // The leader may have the replaced holder as a member: then the new one yields to it again.
                self.note_replaced(now, peer, key);
                SessionEnd::Superseded
            }
        };
        self.replace(now, peer, end);
        // The link itself follows. It takes the place of the one before.
        self.vouch(now, peer, key);
    }
}
