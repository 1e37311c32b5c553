//! Tests of memberlist, serf and foca about failure detection and membership, and their effects on elections, shown by
//! one node or a few. Each test's name begins with the id of its row in `docs/scenarios.md`.

use super::*;

/// A node that runs alone and receives only messages of the test.
struct Lone {
    now: Time,
    node: Node,
}

impl Lone {
    fn new() -> Self {
        let mut net = Net::new();
        net.start("m");
        let place = net.places.remove(&id("m")).expect("just started");
        Self {
            now: net.now,
            node: place.node,
        }
    }

    /// Links a peer that has neither led nor followed a leader.
    fn link(&mut self, peer: &str, number: u64) -> Vec<Output> {
        let side = Opaque::of(&Side {
            since: 0,
            hold_binds: false,
            record: Record::default(),
            live: None,
            lone: true,
        });
        self.link_saying(peer, number, side)
    }

    /// Links a peer whose Hello has that part.
    fn link_saying(&mut self, peer: &str, number: u64, side: Opaque) -> Vec<Output> {
        let life = life(number as u8, number);
        self.feed(Input::LinkUp(Box::new(LinkUp {
            peer: id(peer),
            incarnation: life.incarnation,
            key: life.key,
            addresses: Vec::new(),
            eligible: true,
            priority: 0,
            is_host: false,
            path: Path::Direct,
            carrier: None,
            through_turn: false,
            features: 0,
            ours: self.node.side(self.now),
            theirs: side,
        })))
    }

    fn feed(&mut self, input: Input) -> Vec<Output> {
        let now = self.now;
        self.node.handle(now, input).expect("it is not refused");
        std::iter::from_fn(|| self.node.poll_output()).collect()
    }

    /// Runs its timers for a while; returns the outputs with their times.
    fn run(&mut self, time: Duration) -> Vec<(Time, Output)> {
        let until = self.now + time;
        let mut done = Vec::new();
        while let Some(due) = self.node.next_deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            let outputs = self.feed(Input::Tick);
            done.extend(outputs.into_iter().map(|output| (self.now, output)));
        }
        self.now = until;
        done
    }
}

fn events(outputs: &[Output]) -> Vec<Event> {
    let events = outputs.iter().filter_map(|output| match output {
        Output::Event(event) => Some(event.clone()),
        _ => None,
    });
    events
        .filter(|event| !matches!(event, Event::LeaderChanged(_)))
        .collect()
}

/// A leader sends its claim to all peers every interval; a follower's heartbeat claims nothing.
#[test]
fn r19_a_leader_sends_to_all_members_once_in_an_interval() {
    let mut lone = Lone::new();
    lone.run(ms(3100));
    assert!(lone.node.is_leader());
    for (number, peer) in ["a", "b", "c"].into_iter().enumerate() {
        lone.link(peer, number as u64 + 1);
    }
    let mut claims: BTreeMap<PeerId, Vec<Time>> = BTreeMap::new();
    for beat in 0..21 {
        let mut outputs = Vec::new();
        for peer in ["a", "b", "c"] {
            let record = lone.node.record().clone();
            let number = u64::from(peer.as_bytes()[0] - b'a') + 1;
            let follows = Pulse::Follows { record, live: true };
            let envelope = Envelope {
                incarnation: life(0, number).incarnation,
                message: Message::Heartbeat(Heartbeat {
                    seq: lone.now.as_micros(),
                    echo: None,
                    host_silent_ms: 0,
                    room_time_us: None,
                    pulse: Opaque::of(&Beat::from(follows)),
                }),
            };
            let from = id(peer);
            let answer = lone.feed(Input::Message { from, envelope });
            outputs.extend(answer.into_iter().map(|output| (lone.now, output)));
        }
        outputs.extend(lone.run(ms(500)));
        for (at, output) in outputs {
            // At first it answers new peers at once.
            if beat > 0
                && let Output::Transmit { to, envelope, .. } = output
                && let Message::Heartbeat(Heartbeat { pulse, .. }) = envelope.message
            {
                let pulse = pulse.decode::<Beat>().expect("of votes").pulse;
                assert!(matches!(pulse, Pulse::Leads { .. }), "{pulse:?}");
                claims.entry(to).or_default().push(at);
            }
        }
    }
    assert_eq!(claims.len(), 3);
    for (peer, times) in claims {
        assert_eq!(times.len(), 19, "{peer}");
        for (number, pair) in times.windows(2).enumerate() {
            let interval = pair[1].since(pair[0]);
            // At first it waits for the heartbeats of "a", which it joins then.
            match number {
                0 | 1 => assert!((ms(500)..ms(532)).contains(&interval), "{interval:?}"),
                _ => assert_eq!(interval, ms(500), "{peer}"),
            }
        }
    }
}

/// The next heartbeat replaces a lost one. A newcomer can do without the list, and with the standing of its Hello, for
/// as long as QUIC needs to repeat them. Every other message is urgent.
#[test]
fn only_heartbeats_and_the_first_messages_to_a_newcomer_may_wait() {
    let urgency = |outputs: Vec<Output>| -> Vec<bool> {
        let urgent = outputs.into_iter().filter_map(|output| match output {
            Output::Transmit { urgent, .. } => Some(urgent),
            _ => None,
        });
        urgent.collect()
    };
    let mut lone = Lone::new();
    lone.run(ms(3100));
    let first = urgency(lone.link("a", 1));
    assert!(first.len() >= 3, "a list, a standing and a heartbeat");
    assert!(first.iter().all(|urgent| !urgent), "{first:?}");
    let beats = lone.run(ms(1000)).into_iter().map(|(_, output)| output);
    assert_eq!(urgency(beats.collect()), [false, false]);
    for command in [Command::SetPriority(3), Command::SetLeader(id("a"))] {
        let reported = urgency(lone.feed(Input::Command(command.clone())));
        assert!(!reported.is_empty(), "{command:?}");
        assert!(reported.iter().all(|urgent| *urgent), "{command:?}");
    }
}

/// Times of this node's heartbeats while its peers send one each at these times.
fn beats_beside(peers: &[(&str, &[u64])], until_ms: u64) -> Vec<u64> {
    let mut lone = Lone::new();
    for (number, (peer, _)) in peers.iter().enumerate() {
        lone.link(peer, number as u64 + 1);
    }
    let start = lone.now;
    let mut due: Vec<_> = peers
        .iter()
        .enumerate()
        .flat_map(|(number, (peer, at))| at.iter().map(move |at| (*at, number as u64 + 1, *peer)))
        .collect();
    due.sort_unstable();
    let mut outputs = Vec::new();
    for (at, number, peer) in due {
        outputs.extend(lone.run(ms(at).saturating_sub(lone.now.since(start))));
        let envelope = Envelope {
            incarnation: life(0, number).incarnation,
            message: Message::Heartbeat(Heartbeat {
                seq: at,
                echo: None,
                host_silent_ms: 0,
                room_time_us: None,
                pulse: Opaque::of(&Beat::from(Pulse::Follows {
                    record: Record::default(),
                    live: false,
                })),
            }),
        };
        let from = id(peer);
        let answer = lone.feed(Input::Message { from, envelope });
        outputs.extend(answer.into_iter().map(|output| (lone.now, output)));
    }
    outputs.extend(lone.run(ms(until_ms).saturating_sub(lone.now.since(start))));
    let last = id(peers[peers.len() - 1].0);
    let sent = outputs.into_iter().filter_map(|(at, output)| match output {
        Output::Transmit { to, envelope, .. }
            if to == last && matches!(envelope.message, Message::Heartbeat(_)) =>
        {
            Some(u64::try_from(at.since(start).as_millis()).expect("small"))
        }
        _ => None,
    });
    sent.collect()
}

#[test]
fn heartbeats_go_out_with_those_of_the_first_peer_by_name() {
    // No peer's id precedes the node's: it sends one heartbeat per interval.
    assert_eq!(beats_beside(&[("z", &[])], 1400), [500, 1000]);
    // It joins the heartbeats of the first peer; those of the second, and any before half of the interval, change
    // nothing.
    let first = [300, 700, 800, 1320];
    let second = [450, 950, 1150];
    assert_eq!(
        beats_beside(&[("a", &first), ("b", &second), ("z", &[])], 1400),
        [300, 700, 1231]
    );
}

#[test]
fn a_first_peer_that_is_silent_delays_heartbeats_by_a_sixteenth_of_the_interval() {
    assert_eq!(
        beats_beside(&[("a", &[300]), ("z", &[])], 1400),
        [300, 831, 1362]
    );
}

#[test]
fn a_first_peer_that_beats_ever_faster_is_followed_twice_in_an_interval_at_most() {
    let hostile: Vec<u64> = (1..1400).collect();
    let sent = beats_beside(&[("a", &hostile), ("z", &[])], 1400);
    assert!(sent.len() > 3, "{sent:?}");
    assert!(
        sent.windows(2).all(|pair| pair[1] - pair[0] >= 250),
        "{sent:?}"
    );
}

/// However many members come and go in one instant, the host receives each change, in order, and the next election asks
/// exactly the present members.
#[test]
fn s17_no_change_of_the_membership_is_missed_by_the_election() {
    const CHANGES: u64 = 2000;
    let mut lone = Lone::new();
    let mut reported = Vec::new();
    let mut expected = Vec::new();
    let mut present = BTreeSet::new();
    for number in 0..CHANGES {
        let name = format!("p{}", number % 97);
        let peer = id(&name);
        if present.remove(&peer) {
            let why = LinkEnd::Disconnected;
            let outputs = lone.feed(Input::LinkDown {
                peer: peer.clone(),
                why,
            });
            reported.extend(events(&outputs));
            expected.push(left(&name, LeftReason::Disconnected));
        } else {
            reported.extend(events(&lone.link(&name, number)));
            expected.push(joined(&name));
            present.insert(peer);
        }
    }
    assert_eq!(reported, expected);
    let members: BTreeSet<PeerId> = lone.node.membership().ids().into_iter().collect();
    assert_eq!(members, present);
    // Each sends a sign of life, so that none is lost before the election.
    let mut asked = BTreeSet::new();
    let began = lone.now;
    while asked.is_empty() && lone.now.since(began) < TIMEOUT {
        for peer in present.clone() {
            lone.feed(Input::OtherData { peer });
        }
        for (_, output) in lone.run(ms(100)) {
            if let Output::Transmit { to, envelope, .. } = output
                && matches!(
                    elects(&envelope.message),
                    Some(ElectionMessage::PreVoteRequest { .. })
                )
            {
                asked.insert(to);
            }
        }
    }
    assert_eq!(asked, present);
    let round = lone
        .node
        .election()
        .of::<Raft>()
        .expect("raft")
        .rules()
        .campaign()
        .expect("it asks");
    let mut electorate = present;
    electorate.insert(id("m"));
    assert_eq!(round.electorate, electorate);
}

/// memberlist: an answered probe keeps a silent member alive, and every probe has a number of its own.
#[test]
fn m1_an_answered_probe_keeps_a_silent_member() {
    let mut lone = Lone::new();
    lone.link("a", 1);
    let mut numbers = Vec::new();
    let began = lone.now;
    while lone.now.since(began) < ms(20_000) {
        for (_, output) in lone.run(ms(10)) {
            match output {
                Output::Datagram {
                    probe: Probe::Ping { nonce },
                    ..
                } => {
                    numbers.push(nonce);
                    let (from, probe) = (id("a"), Probe::Pong { nonce });
                    lone.feed(Input::Datagram { from, probe });
                }
                Output::Event(Event::Reconnecting(peer)) => panic!("{peer} is lost"),
                _ => {}
            }
        }
    }
    assert!(numbers.len() > 10);
    assert!(numbers.windows(2).all(|pair| pair[1] > pair[0]));
    // Without answers it is lost after six.
    let done = lone.run(ms(1600));
    let probes = done
        .iter()
        .filter(|(_, output)| matches!(output, Output::Datagram { .. }));
    assert_eq!(probes.count(), 6);
    let lost = Output::Event(Event::Reconnecting(id("a")));
    assert!(done.iter().any(|(_, output)| *output == lost));
}

#[test]
fn m10_m12_a_loss_and_an_end_are_reported_once_to_the_host() {
    let mut lone = Lone::new();
    lone.link("a", 1);
    let why = LinkEnd::Silent;
    let down = || Input::LinkDown { peer: id("a"), why };
    assert_eq!(events(&lone.feed(down())), [Event::Reconnecting(id("a"))]);
    assert_eq!(events(&lone.feed(down())), []);
    let over = || Input::SessionOver {
        peer: id("a"),
        why: LeftReason::Lost,
    };
    assert_eq!(events(&lone.feed(over())), [left("a", LeftReason::Lost)]);
    assert_eq!(events(&lone.feed(over())), []);
    assert_eq!(events(&lone.feed(down())), []);
    assert_eq!(events(&lone.link("a", 2)), [joined("a")]);
}

/// memberlist: news of an older incarnation change nothing, and are no sign of life of the present one.
#[test]
fn m12_m7_messages_of_another_incarnation_are_dropped() {
    let mut lone = Lone::new();
    lone.link("a", 5);
    for other in [4, 6] {
        let envelope = Envelope {
            incarnation: life(0, other).incarnation,
            message: Message::Leave { successor: None },
        };
        let from = id("a");
        assert_eq!(lone.feed(Input::Message { from, envelope }), []);
    }
    assert!(lone.node.membership().get(&id("a")).is_some());
    let mut silent = Vec::new();
    for _ in 0..16 {
        let envelope = Envelope {
            incarnation: life(0, 4).incarnation,
            message: Message::LeaveAck,
        };
        let from = id("a");
        lone.feed(Input::Message { from, envelope });
        silent.extend(lone.run(ms(100)));
    }
    let lost = Output::Event(Event::Reconnecting(id("a")));
    assert!(silent.iter().any(|(_, output)| *output == lost));
}

/// memberlist merges the tables of two members: a member that is in one only is dialled, and one that is missing in the
/// other is not lost by that.
#[test]
fn m14_merging_two_members_lists_removes_no_member() {
    let mut lone = Lone::new();
    lone.link("a", 1);
    lone.link("b", 2);
    let entry = |name: &str, number: u8| PeerEntry {
        id: id(name),
        key: Fingerprint([number; 32]),
        addresses: vec![SocketAddr::from(([10, 0, 0, number], 7000))],
    };
    let envelope = Envelope {
        incarnation: life(0, 1).incarnation,
        message: Message::PeerList(vec![entry("a", 1), entry("c", 3), entry("m", 77)]),
    };
    let from = id("a");
    lone.feed(Input::Message { from, envelope });
    let members: Vec<PeerId> = lone.node.membership().ids();
    assert_eq!(members, ["a", "b"].map(id), "b is not in the list of a");
    let done = lone.run(ms(1000));
    let dials: Vec<_> = done
        .iter()
        .filter_map(|(_, output)| match output {
            Output::Dial(dial) => Some(dial.peer.as_str()),
            _ => None,
        })
        .collect();
    assert!(dials.is_empty(), "the smaller id dials first: {dials:?}");
    let mut dialled = BTreeSet::new();
    for _ in 0..30 {
        for peer in ["a", "b"].map(id) {
            lone.feed(Input::OtherData { peer });
        }
        for (_, output) in lone.run(ms(100)) {
            if let Output::Dial(dial) = output {
                dialled.insert(dial.peer);
            }
        }
    }
    assert_eq!(dialled, BTreeSet::from([id("c")]));
}

/// foca: a timer of an old incarnation does not fire for the next one.
#[test]
fn m19_the_hold_of_an_older_incarnation_does_not_end_the_newer_one() {
    let mut net = Net::new();
    net.config.member_hold = ms(7000);
    net.fill(&["a", "b"]);
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    net.run(ms(5000));
    net.start_as("b", life(b'b', u64::MAX));
    net.enter("b", "a");
    let since = net.events("a").len();
    net.run(ms(10_000));
    assert!(net.has("a", "b"));
    let later = &net.events("a")[since..];
    let gone = later
        .iter()
        .filter(|event| matches!(event, Event::Left(_) | Event::Reconnecting(_)));
    assert_eq!(gone.count(), 0, "{later:?}");
}

/// The new leader when the leader `a` of a room falls silent, after `change`.
fn successor(change: impl Fn(&mut Net)) -> PeerId {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    change(&mut net);
    net.run(ms(1000));
    net.dials_work = false;
    net.kill("a", false);
    net.wait("another leader", |net| {
        let leader = net.node("b").leader().cloned();
        let same = |place: &Place| place.node.leader() == leader.as_ref();
        let found = leader.as_ref().is_some_and(|leader| *leader != id("a"));
        found && net.places.values().all(same)
    });
    net.node("b").leader().cloned().expect("just seen")
}

/// raft-rs: a priority that is raised above the others' wins, and one that is lowered loses.
#[test]
fn r72_r78_a_priority_that_is_changed_decides_the_next_election() {
    let set = |name: &'static str, priority| {
        move |net: &mut Net| net.order(name, Command::SetPriority(priority))
    };
    assert_eq!(successor(|_| {}), id("d"), "the largest id");
    assert_eq!(successor(set("b", 1)), id("b"));
    assert_eq!(successor(set("d", -1)), id("c"));
    let raised_and_lowered = |net: &mut Net| {
        net.order("b", Command::SetPriority(5));
        net.run(ms(500));
        net.order("b", Command::SetPriority(-5));
    };
    assert_eq!(successor(raised_and_lowered), id("d"));
}

#[test]
fn r78_everybody_knows_the_priority_that_is_set() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("b", Command::SetPriority(7));
    net.run(ms(100));
    assert_eq!(net.node("b").standing_of_myself(), (true, 7));
    let known = |net: &Net, name: &str| net.node(name).view.voters[&id("b")].priority;
    assert_eq!((known(&net, "a"), known(&net, "c")), (7, 7));
    // And every member that joins later.
    net.start("d");
    net.enter("d", "a");
    net.wait("a mesh", Net::is_settled);
    assert_eq!(known(&net, "d"), 7);
}

#[test]
fn a_hello_whose_part_cannot_be_decoded_costs_the_link() {
    let mut lone = Lone::new();
    let outputs = lone.link_saying("a", 1, Opaque::from(&[0xff; 20][..]));
    let closed = |output: &Output| matches!(output, Output::Close { peer, why: LinkEnd::Violation(_) } if *peer == id("a"));
    assert!(outputs.iter().any(closed), "{outputs:?}");
    assert!(lone.node.membership().is_empty());
    lone.link("a", 1);
    assert!(!lone.node.membership().is_empty());
}
