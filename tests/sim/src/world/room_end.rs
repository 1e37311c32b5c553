//! A host's events at the end of a room, its own or another member's: the end, then the departures that follow from it.

use room_core::id::PeerId;
use room_core::node::{Event, Left, LeftReason, Output};

use super::World;

impl World {
    /// Checks a host's events at the end of its room.
    pub(super) fn check_room_end(&mut self, slot: usize, was_over: bool, outputs: &[Output]) {
        let host = self.settings.host.map(|host| &self.slots[host].id);
        if let Some(what) = breach(host, was_over, outputs) {
            let text = format!("{}: {what}", self.slots[slot].id);
            self.violate("room end", text);
        }
    }

    /// A member has closed its link because its room is over: the peer does not wait for its return. One that closed the link
    /// before, for silence, did not know of the end.
    pub(crate) fn check_end_is_final(&mut self, slot: usize, other: usize, events_before: usize) {
        let lost = Event::Reconnecting(self.slots[other].id.clone());
        let mut events = self.slots[slot].events.iter().skip(events_before);
        if events.any(|(_, event)| *event == lost) {
            let (me, peer) = (&self.slots[slot].id, &self.slots[other].id);
            let text = format!("{me} waits for the return of {peer}, whose room is over");
            self.violate("room end", text);
        }
    }
}

/// The fault in the events of one input, if any.
fn breach(host: Option<&PeerId>, was_over: bool, outputs: &[Output]) -> Option<String> {
    let mut over = was_over;
    let mut departed = Vec::new();
    for output in outputs {
        let Output::Event(event) = output else {
            continue;
        };
        let wrong = match event {
            Event::RoomEnded { .. } => {
                over || departed.iter().any(|left| caused_by_end(host, left))
            }
            Event::Left(left) if over => {
                left.why != LeftReason::RoomEnded && host != Some(&left.peer)
            }
            Event::Joined(_)
            | Event::Reconnecting(_)
            | Event::Returned(_)
            | Event::JoinRequest { .. } => over,
            _ => false,
        };
        if wrong {
            return Some(format!("{event:?} (over: {over}, before: {departed:?})"));
        }
        match event {
            Event::RoomEnded { .. } => over = true,
            Event::Left(left) => departed.push(left.clone()),
            _ => {}
        }
    }
    None
}

/// Whether a departure ends the room, or follows from its end. Members whose time is over may depart in the same tick.
fn caused_by_end(host: Option<&PeerId>, left: &Left) -> bool {
    let by_time = matches!(
        left.why,
        LeftReason::Lost | LeftReason::GaveUp | LeftReason::RoomEnded
    );
    host == Some(&left.peer) || !by_time
}

#[cfg(test)]
mod tests {
    use super::*;
    use room_core::node::EndReason;

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("an id")
    }

    fn left(peer: &str, why: LeftReason) -> Output {
        Output::Event(Event::Left(Left::new(id(peer), why)))
    }

    fn ended() -> Output {
        Output::Event(Event::RoomEnded {
            why: EndReason::Kicked,
            code: 0,
            bytes: Vec::new(),
        })
    }

    #[test]
    fn departures_follow_the_end_with_the_end_as_reason() {
        let host = id("h");
        let breach = |was_over, outputs: &[Output]| breach(Some(&host), was_over, outputs);
        let follows = [
            ended(),
            left("h", LeftReason::Left),
            left("a", LeftReason::RoomEnded),
        ];
        assert_eq!(breach(false, &follows), None);
        let by_time = [left("a", LeftReason::Lost), ended()];
        assert_eq!(breach(false, &by_time), None);
        for wrong in [
            vec![left("a", LeftReason::Kicked), ended()],
            vec![left("h", LeftReason::Lost), ended()],
            vec![ended(), left("a", LeftReason::Kicked)],
            vec![ended(), ended()],
            vec![ended(), Output::Event(Event::Reconnecting(id("a")))],
        ] {
            assert!(breach(false, &wrong).is_some(), "{wrong:?}");
        }
        assert!(breach(true, &[Output::Event(Event::Joined(id("a")))]).is_some());
    }
}
