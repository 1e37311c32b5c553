//! Ends of links: by a core, by the end of a process, by the other end.

use room_core::id::PeerId;
use room_core::node::{Input, LinkEnd};
use room_core::time::Duration;

use super::{ACCEPTOR, DIALLER, Item, Wire};
use crate::world::{Happening, World};

/// Time for which a link stays open for a removed member, so that it reads the reason.
const LINGER: Duration = Duration::from_millis(2500);

/// Closing.
impl World {
    /// The core of `slot` closes its link with `peer`.
    pub fn close(&mut self, slot: usize, peer: &PeerId, why: LinkEnd) {
        self.trace.add(
            self.now,
            format_args!("{} closes {peer}: {why:?}", self.slots[slot].id),
        );
        self.closes.push((slot, peer.clone(), why));
        if why == LinkEnd::Silent {
            self.note_one_way_loss(slot, peer);
        }
        let Some((id, end)) = self.session_with(slot, peer) else {
            return;
        };
        if let Some(process) = &mut self.slots[slot].process {
            process.sessions.retain(|_, session| *session != id);
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.ended[end] = true;
        }
        let given = match why {
            LinkEnd::Disconnected | LinkEnd::RoomEnded | LinkEnd::Moved(_) | LinkEnd::OtherRoom => {
                why
            }
            LinkEnd::Silent => self.silence_is_reported_as,
            _ => LinkEnd::Closed,
        };
        let process = self.slots[slot].process.as_ref();
        let is_over = process.is_some_and(|process| process.node.is_over());
        if let Some(link) = self.links.get_mut(&id) {
            link.given_ends[end] = given;
            link.was_over_at_end[end] = is_over;
        }
        self.stops_sending(id, end);
        if let Some(other) = self.links.get(&id).map(|link| link.slots[1 - end]) {
            self.end_retired(slot, other);
        }
        match why {
            // The removed member closes the link, once it has read the reason.
            LinkEnd::Kicked => self.send_close_after(LINGER, id, end, given),
            _ => self.send_close(id, end, given),
        }
        self.sweep(id);
    }

    /// An end that has closed its connection sends nothing again (RFC 9000, section 10.2): a packet that a cut took is lost. A
    /// packet in the buffer of a stopped process has arrived.
    fn stops_sending(&mut self, id: u64, end: usize) {
        if !self.is_blocked(id, end) {
            return;
        }
        self.drop_items(id, end);
    }

    fn drop_items(&mut self, id: u64, from: usize) {
        let link = self.links.get_mut(&id);
        let items = link.map(|link| std::mem::take(&mut link.pipes[from].items));
        for (_, item) in items.unwrap_or_default() {
            if let Item::Message(envelope) = item {
                self.left_over(id, from, *envelope);
            }
        }
    }

    pub(super) fn send_close(&mut self, id: u64, from: usize, why: LinkEnd) {
        self.send_close_after(Duration::ZERO, id, from, why);
    }

    fn send_close_after(&mut self, wait: Duration, id: u64, from: usize, why: LinkEnd) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
        let over = self.carrier_at(id, from);
        let at = self.now + wait + self.trip(sender, over, receiver);
        self.at(
            at,
            Happening::Wire(Wire::Closed {
                link: id,
                from,
                why,
            }),
        );
    }

    pub(super) fn closed(&mut self, id: u64, from: usize, why: LinkEnd) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
        if self.is_blocked(id, from) {
            return; // The peer will notice the silence.
        }
        if self.is_paused(receiver) {
            let at = self.now + Duration::from_millis(50);
            self.at(
                at,
                Happening::Wire(Wire::Closed {
                    link: id,
                    from,
                    why,
                }),
            );
            return;
        }
        let up = link.up[1 - from] && !link.ended[1 - from];
        if up && link.retired[1 - from] {
            return self.retired_closed(id, 1 - from);
        }
        let was_over = link.was_over_at_end[from];
        if up && self.is_life(receiver, link.lives[1 - from]) {
            let events = self.slots[receiver].events.len();
            self.end_session(receiver, sender, id, why);
            if was_over {
                self.check_end_is_final(receiver, sender, events);
            }
        } else if let Some(link) = self.links.get_mut(&id) {
            // The acceptor closed before its Hello arrived: the dial has failed.
            let dial = link.dial;
            link.ended[1 - from] = true;
            if from == ACCEPTOR {
                self.dial_failed(dial, false);
            }
        }
        self.sweep(id);
    }

    /// The end of `slot` loses its session with `other`.
    pub(super) fn end_session(&mut self, slot: usize, other: usize, id: u64, why: LinkEnd) {
        if let Some(link) = self.links.get_mut(&id) {
            let end = link.end_of(slot);
            link.ended[end] = true;
            self.stops_sending(id, end);
        }
        let peer = self.slots[other].id.clone();
        self.trace.add(
            self.now,
            format_args!("{} loses its link to {peer}: {why:?}", self.slots[slot].id),
        );
        if let Some(process) = &mut self.slots[slot].process {
            process.sessions.retain(|_, session| *session != id);
        }
        self.end_retired(slot, other);
        let _ = self.feed(slot, Input::LinkDown { peer, why });
        self.sweep(id);
    }

    /// A process that leaves closes all of its links.
    pub fn close_all(&mut self, slot: usize) {
        let life = self.slots[slot].life;
        let open: Vec<_> = self
            .links
            .iter()
            .filter_map(|(id, link)| {
                let end = (0..2).find(|e| link.slots[*e] == slot && link.lives[*e] == life)?;
                (!link.ended[end]).then_some((*id, end))
            })
            .collect();
        for (id, end) in open {
            self.send_close(id, end, LinkEnd::Closed);
        }
    }

    /// A process ended, and its dials with it. Its links are gone at its end, and lost packets are not sent again.
    pub fn forget_ends_of(&mut self, slot: usize) {
        let life = self.slots[slot].life;
        self.dials
            .retain(|_, dial| dial.from != slot || dial.life != life);
        let under_way = self.under_way();
        let mut touched = Vec::new();
        for (id, link) in &mut self.links {
            for end in [DIALLER, ACCEPTOR] {
                if link.slots[end] == slot && link.lives[end] == life {
                    link.ended[end] = true;
                    let items = &mut link.pipes[end].items;
                    items.retain(|(due, _)| *due <= under_way);
                    touched.push((*id, end));
                }
            }
        }
        for (id, end) in touched {
            self.stops_sending(id, end);
            self.sweep(id);
        }
    }

    pub(super) fn sweep(&mut self, id: u64) {
        if self
            .links
            .get(&id)
            .is_some_and(|link| link.ended == [true, true])
        {
            self.forget_link(id);
        }
    }

    fn forget_link(&mut self, id: u64) {
        for from in [DIALLER, ACCEPTOR] {
            self.drop_items(id, from);
        }
        self.links.remove(&id);
        self.paths.retired.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    /// The property that breaks where one of two members ends their link for silence, with its room over by then or not.
    fn found(was_over: bool) -> Option<&'static str> {
        let mut world = World::new(1, 2, Settings::default(), Trace::off());
        for slot in 0..2 {
            world.start(slot);
        }
        world.connect(0, 1);
        world.run_for(Duration::from_secs(5));
        let (id, link) = world.links.iter_mut().next().expect("they are linked");
        link.was_over_at_end[DIALLER] = was_over;
        let id = *id;
        world.send_close(id, DIALLER, LinkEnd::Silent);
        world.run_for(Duration::from_secs(1));
        world.violation.map(|found| found.property)
    }

    #[test]
    fn a_member_that_waits_for_one_whose_room_was_over_is_seen() {
        assert_eq!(found(true), Some("room end"));
        assert_eq!(found(false), None);
    }
}
