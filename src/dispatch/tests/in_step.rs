//! The host's view matches the room after any sequence of events.

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Leader(u8),
    Message,
    Status(u8),
    /// A link is lost, or comes back.
    Link(u8),
    Run(u8),
    RegisterLeader,
    RegisterStatus,
    RegisterEvents,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..4u8).prop_map(Step::Leader),
        3 => Just(Step::Message),
        3 => (1..4u8).prop_map(Step::Status),
        2 => (1..4u8).prop_map(Step::Link),
        3 => (0..4u8).prop_map(Step::Run),
        1 => Just(Step::RegisterLeader),
        1 => Just(Step::RegisterStatus),
        1 => Just(Step::RegisterEvents),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    /// After any sequence of pushes, runs and registrations the host's view matches the room. While it keeps its
    /// handlers, its view at each message includes every event pushed before that, and it receives every change once.
    /// The event handler is up to date at every message even when it is replaced.
    #[test]
    fn the_host_is_in_step_with_every_message(steps in steps()) {
        let dispatch = manual(limits(usize::MAX, usize::MAX, FOREVER));
        let (sender, seen) = channel();
        dispatch.register::<Receive>(Some(receive(&sender, "")));
        dispatch.register::<LeaderChanged>(Some(leader(&sender, "")));
        dispatch.register::<PeerStatus>(Some(status(&sender, "")));
        let (event_sender, events_seen) = channel();
        dispatch.register_event_handler(Some(events(&event_sender, "")));
        let ids = ["", "a", "b", "c"];
        let mut now = Known::default();
        let mut at_message = Vec::new();
        let mut replaced = false;
        for step in &steps {
            match step {
                Step::Leader(n) => {
                    now.leader = ids[usize::from(*n)].to_owned();
                    dispatch.push(led_by(&now.leader));
                }
                Step::Message => {
                    let number = u32::try_from(at_message.len()).expect("few");
                    at_message.push(now.clone());
                    dispatch.try_push_message(message(number, 4)).expect("room");
                }
                Step::Status(n) => {
                    let id = ids[usize::from(*n)];
                    if now.joined.remove(id) | now.lost.remove(id) {
                        dispatch.push(left(id));
                    } else {
                        now.joined.insert(id.to_owned());
                        dispatch.push(Event::Joined(peer(id)));
                    }
                }
                Step::Link(n) => {
                    let id = ids[usize::from(*n)];
                    if now.joined.remove(id) {
                        now.lost.insert(id.to_owned());
                        dispatch.push(Event::Reconnecting(peer(id)));
                    } else if now.lost.remove(id) {
                        now.joined.insert(id.to_owned());
                        dispatch.push(Event::Returned(Returned::new(peer(id))));
                    }
                }
                Step::Run(times) => {
                    for _ in 0..*times {
                        let _ = dispatch.shared.run_one(dispatch.shared.lock());
                    }
                }
                Step::RegisterLeader => {
                    replaced = true;
                    dispatch.register::<LeaderChanged>(Some(leader(&sender, "")));
                }
                Step::RegisterEvents => {
                    dispatch.register_event_handler(Some(events(&event_sender, "")));
                }
                Step::RegisterStatus => {
                    replaced = true;
                    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
                }
            }
        }
        drain(&dispatch.shared);
        let mut reported = Known::default();
        let mut messages = 0;
        for line in seen.try_iter() {
            if let Some(number) = line.strip_prefix("message ") {
                prop_assert_eq!(number, messages.to_string());
                prop_assert!(replaced || reported == at_message[messages].classic());
                messages += 1;
            } else {
                let changed = reported.learn(&line);
                prop_assert!(replaced || changed, "{}", line);
            }
        }
        prop_assert_eq!(messages, at_message.len());
        prop_assert_eq!(reported, now.classic());

        let mut reported = Known::default();
        let mut messages = 0;
        for line in events_seen.try_iter() {
            if line.starts_with("message ") {
                prop_assert_eq!(&reported, &at_message[messages]);
                messages += 1;
            } else {
                reported.learn_event(&line);
            }
        }
        prop_assert_eq!(messages, at_message.len());
        prop_assert_eq!(reported, now);
    }
}

/// The host's view of the room.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    leader: String,
    joined: std::collections::BTreeSet<String>,
    lost: std::collections::BTreeSet<String>,
}

impl Known {
    /// As the classic callbacks report it.
    fn classic(&self) -> Self {
        Self {
            lost: std::collections::BTreeSet::new(),
            ..self.clone()
        }
    }

    /// Applies an event that the event handler received.
    fn learn_event(&mut self, line: &str) {
        let (what, about) = line.split_once(' ').expect("two words");
        match what {
            "leader" => {
                let (_, new) = about.split_once('>').expect("old and new");
                new.clone_into(&mut self.leader);
            }
            "left" => {
                let (id, _) = about.split_once(' ').expect("id and reason");
                assert!(self.joined.remove(id) | self.lost.remove(id), "{line}");
            }
            "reconnecting" => {
                assert!(self.joined.remove(about), "{line}");
                self.lost.insert(about.to_owned());
            }
            // A new handler receives the present state: the peer joined, though its predecessor knew it to be lost.
            "joined" | "returned" => {
                self.lost.remove(about);
                self.joined.insert(about.to_owned());
            }
            _ => panic!("{line}"),
        }
    }

    /// Applies a line of the log, and returns whether it was new.
    fn learn(&mut self, line: &str) -> bool {
        if let Some(leader) = line.strip_prefix("leader ") {
            let news = self.leader != leader;
            leader.clone_into(&mut self.leader);
            return news;
        }
        let status = line.strip_prefix("status ").expect("leader or status");
        match status.split_once(' ').expect("peer and status") {
            (id, "0") => self.joined.insert(id.to_owned()),
            (id, _) => self.joined.remove(id),
        }
    }
}
