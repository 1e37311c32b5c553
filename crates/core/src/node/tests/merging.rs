//! Merges of two rooms that cannot keep all their members.
//!
//! A place with a prime has the id of the place without one, and another key.

use super::*;

impl Net {
    /// Makes a host ask for a link with a member of another room, as `ConnectToPeer` does.
    fn dial(&mut self, dialler: &str, contact: &str) {
        self.enter(dialler, contact);
        self.run(ms(100));
    }

    /// Two rooms without links to each other; the first member of each leads.
    fn rooms(one: &[&str], other: &[&str]) -> Self {
        let mut net = Self::new();
        for names in [one, other] {
            net.start(names[0]);
            net.wait("the first leads alone", |net| net.leads(names[0]));
            for name in &names[1..] {
                net.start(name);
                net.enter(name, names[0]);
            }
            net.run(ms(2_000));
        }
        net
    }

    /// The places that follow, or are, the leader in that place, over a link that shows its key.
    fn followers(&self, leader: &str) -> Vec<&str> {
        let key = self.place(leader).life.key;
        let follows = |place: &Place| {
            let shown = place.node.leader();
            let linked = shown.and_then(|shown| place.node.membership().get(shown));
            linked.is_some_and(|member| member.key == key)
        };
        let its = self.places.iter();
        let its = its.filter(|(name, place)| name.as_str() == leader || follows(place));
        its.map(|(name, _)| name.as_str()).collect()
    }

    /// The state of every place, for the text of a failure.
    pub(super) fn describe(&self) -> String {
        let line = |(name, place): (&PeerId, &Place)| {
            let members = place.node.membership().iter();
            let members = members.map(|(id, member)| format!("{id}/{:x}", member.key.0[0]));
            format!(
                "\n{name}/{:x} {:?} shows {:?} over {} {:?}, members {:?}, over {}, absent {:?}, term {} {:?}",
                place.life.key.0[0],
                place.node.merging,
                place.node.leader(),
                place.node.record().term(),
                place.node.record().leader_key.map(|key| key.0[0]),
                members.collect::<Vec<_>>(),
                place.node.is_over(),
                place.node.absent().collect::<Vec<_>>(),
                place.node.election().role() as u8,
                place
                    .events
                    .iter()
                    .rev()
                    .take(6)
                    .map(|(at, event)| (at.as_micros() / 1000, event))
                    .collect::<Vec<_>>(),
            )
        };
        self.places.iter().map(line).collect()
    }

    fn wait_or_describe(&mut self, done: impl Fn(&Self) -> bool) {
        let from = self.now;
        while !done(self) {
            let waits = self.now.since(from) < TIMEOUT;
            assert!(waits, "{}", self.describe());
            self.run(ms(10));
        }
    }

    pub(super) fn room_ended(&self, name: &str) -> Option<EndReason> {
        let mut events = self.events(name).into_iter();
        events.find_map(|event| match event {
            Event::RoomEnded { why, .. } => Some(why),
            _ => None,
        })
    }
}

/// Whether all but `left` are one room that `leader` leads, and the room of `left` is over.
fn is_one_room(net: &Net, leader: &str, left: &str) -> bool {
    let members = net.places.keys().filter(|name| name.as_str() != left);
    let members: Vec<_> = members.map(|name| name.as_str()).collect();
    let full = |name: &&str| net.node(name).membership().len() + 1 == members.len();
    net.followers(leader) == members && members.iter().all(full) && net.node(left).is_over()
}

#[test]
fn of_two_leaders_with_one_id_one_stays_and_the_other_reads_why_its_room_is_over() {
    for (dialler, contact) in [("ann", "cid"), ("cid", "ann")] {
        let mut net = Net::rooms(&["player", "ann"], &["player'", "cid"]);
        net.dial(dialler, contact);
        net.wait_or_describe(|net| {
            is_one_room(net, "player", "player'") || is_one_room(net, "player'", "player")
        });
        // player has led longer.
        assert!(is_one_room(&net, "player", "player'"), "{dialler}");
        assert_eq!(net.room_ended("player'"), Some(EndReason::DuplicateId));
        for name in ["player", "ann", "cid"] {
            assert_eq!(net.room_ended(name), None, "{name}");
        }
    }
}

#[test]
fn the_larger_of_two_rooms_stays_whose_leaders_have_one_id() {
    let mut net = Net::rooms(&["player", "ann"], &["player'", "cid", "dan", "eve"]);
    net.dial("cid", "ann");
    net.wait_or_describe(|net| is_one_room(net, "player'", "player"));
    assert_eq!(net.room_ended("player"), Some(EndReason::DuplicateId));
    net.run(ms(20_000));
    assert!(is_one_room(&net, "player'", "player"), "{}", net.describe());
}

#[test]
fn a_member_whose_id_another_has_in_the_room_that_stays_is_left_behind() {
    let mut net = Net::rooms(&["lea", "bob", "ann"], &["cid", "bob'", "dan", "eve"]);
    net.dial("ann", "dan");
    net.wait_or_describe(|net| is_one_room(net, "cid", "bob"));
    assert_eq!(net.room_ended("bob"), Some(EndReason::DuplicateId));
}

#[test]
fn one_of_two_leaders_with_one_id_stays_under_gossip() {
    let mut net = Net::new();
    net.config.election.policy.strategy = crate::wire::Strategy::Gossip {
        strict_lowest: false,
    };
    for names in [["aaa", "bob"], ["aaa'", "cid"]] {
        net.start(names[0]);
        net.wait("the first leads alone", |net| net.leads(names[0]));
        net.start(names[1]);
        net.enter(names[1], names[0]);
        net.run(ms(12_000));
    }
    net.dial("bob", "cid");
    net.run(ms(10_000));
    // The leader with the lower key stays.
    assert!(is_one_room(&net, "aaa", "aaa'"), "{}", net.describe());
    assert_eq!(net.room_ended("aaa'"), Some(EndReason::DuplicateId));
}

#[test]
fn one_process_moves_no_member_to_a_namesake_at_any_claimed_size() {
    let mut net = Net::rooms(&["player", "ann", "bob", "mal"], &["player'"]);
    net.run(ms(2_000));
    let victim = net.place("player'").life;
    let entry = PeerEntry {
        id: id("player"),
        key: victim.key,
        addresses: vec![net.place("player'").address],
    };
    for _ in 0..40 {
        let record = Record {
            leader: Some(id("player")),
            leader_key: Some(victim.key),
            ..net.node("ann").record().clone()
        };
        for member in ["ann", "bob"] {
            net.forge(
                "mal",
                member,
                Pulse::Follows {
                    record: record.clone(),
                    live: true,
                },
            );
            net.forge("mal", member, Message::PeerList(vec![entry.clone()]));
        }
        net.run(ms(250));
    }
    assert_eq!(net.followers("player"), ["ann", "bob", "mal", "player"]);
}

/// ben leads and has banned ann, who returned with another key and has a room with dan.
fn a_room_with_a_banned_leader() -> Net {
    let mut net = Net::room(&["ben", "ann", "dan"]);
    let ban = Command::Kick {
        peer: id("ann"),
        code: 0,
        bytes: Vec::new(),
        ban: true,
    };
    net.order("ben", ban);
    net.order("dan", Command::Leave);
    net.run(ms(500));
    net.kill("ann", true);
    net.kill("dan", true);
    net.start_as("ann", life(77, net.now.as_micros()));
    net.wait("ann leads alone", |net| net.leads("ann"));
    net.start("dan");
    net.enter("dan", "ann");
    net.run(ms(2_000));
    net
}

#[test]
fn a_leader_that_the_other_room_bans_never_stays() {
    let mut net = a_room_with_a_banned_leader();
    net.invite("dan", "ben");
    net.wait_or_describe(|net| net.followers("ben") == ["ben", "dan"] && net.node("ann").is_over());
    assert_eq!(net.room_ended("ann"), Some(EndReason::Kicked));
    let shown = |event: &Event| matches!(event, Event::LeaderChanged(change) if change.new == Some(id("ann")));
    let settled = net.now;
    net.run(ms(20_000));
    assert_eq!(net.followers("ben"), ["ben", "dan"]);
    let later = net
        .place("ben")
        .events
        .iter()
        .filter(|(at, _)| *at >= settled);
    assert!(!later.map(|(_, event)| event).any(shown));
}

/// The arrivals and departures of members that a host has received since then.
fn arrivals_since(net: &Net, name: &str, since: Time) -> Vec<Event> {
    let events = net.place(name).events.iter();
    let is_one = |event: &&Event| matches!(event, Event::Joined(_) | Event::Left(_));
    let later = events.filter(|(at, _)| *at >= since);
    later
        .map(|(_, event)| event)
        .filter(is_one)
        .cloned()
        .collect()
}

/// Three ids belong to two members each. So only ann and cid can link, and each sees too few keys of the other room to
/// move there.
fn two_rooms_that_stay_apart() -> Net {
    let [first, second] = [
        ["eve", "cid", "bob", "dan"],
        ["ann", "eve'", "bob'", "dan'"],
    ];
    let mut net = Net::rooms(&first, &second);
    net.dial("ann", "cid");
    assert!(net.has("ann", "cid"), "{}", net.describe());
    net.wait_or_describe(|net| !net.has("ann", "cid"));
    net.run(ms(100));
    net
}

const BOTH_ROOMS: [&str; 8] = ["eve", "cid", "bob", "dan", "ann", "eve'", "bob'", "dan'"];

#[test]
fn rooms_that_cannot_become_one_part_once() {
    let mut net = two_rooms_that_stay_apart();
    let parted = net.now;
    let check = |net: &Net, by_hand| {
        let hello = net.hello("cid");
        let key = net.place("cid").life.key;
        net.node("ann").check_hello(net.now, &hello, key, by_hand)
    };
    net.run(ms(60_000));
    for name in BOTH_ROOMS {
        assert_eq!(arrivals_since(&net, name, parted), [], "{name}");
    }
    let refusal = AdmissionRefusal::OtherRoom(id("cid"));
    assert_eq!(check(&net, false), Err(refusal), "discovery dials on");
    assert_eq!(check(&net, true), Ok(()), "a host's own dial links them");
}

#[test]
fn rooms_that_parted_become_one_when_the_leader_that_kept_them_apart_is_gone() {
    let mut net = two_rooms_that_stay_apart();
    net.run(ms(15_000));
    net.kill("eve", true);
    // The rooms link again; two ids still belong to two members each, of which one stays.
    net.run(ms(60_000));
    let [first, second] = [["cid", "bob", "dan"], ["ann", "bob'", "dan'"]];
    let is_in_one = |names: &[&str]| {
        let all = ["ann", "cid", "eve'"].iter().chain(names);
        let leaders: BTreeSet<_> = all.map(|name| net.node(name).leader()).collect();
        leaders.len() == 1 && !leaders.contains(&None)
    };
    assert!(
        is_in_one(&first[1..]) || is_in_one(&second[1..]),
        "{}",
        net.describe()
    );
}

/// ann leads and bans zoe. Her kick reaches one member alone before she crashes; `reported` the others that her process ended, or
/// not. Of the members zoe is the next to lead.
fn a_kick_that_one_member_alone_knows(member: &str, reported: bool) -> Net {
    let mut net = Net::room(&["ann", "bob", "cid", "zoe"]);
    let kicked = Message::Kicked {
        peer: id("zoe"),
        key: net.place("zoe").life.key,
        code: 7,
        bytes: Vec::new(),
        ban: Some((net.node("ann").record().stamp.clone(), 1)),
    };
    net.forge("ann", member, kicked);
    net.run(ms(15));
    net.kill("ann", reported);
    net.run(ms(60_000));
    net
}

#[test]
fn a_ban_that_one_member_alone_knows_holds_where_the_end_of_its_leader_is_known() {
    for member in ["bob", "cid"] {
        let net = a_kick_that_one_member_alone_knows(member, true);
        assert_eq!(net.room_ended("zoe"), Some(EndReason::Kicked), "{member}");
        assert_eq!(net.followers("cid"), ["bob", "cid"], "{member}");
    }
}

/// The member that knows the ban does not follow the banned peer. Every other member received that member's report, if at all,
/// while the leader of before still seemed to be here, which would have sent the kick itself.
#[test]
fn a_ban_that_one_member_alone_knows_parts_it_from_the_room_that_elects_the_banned_peer() {
    for (member, other) in [("bob", "cid"), ("cid", "bob")] {
        let net = a_kick_that_one_member_alone_knows(member, false);
        assert_eq!(net.followers("zoe"), [other, "zoe"], "{member}");
        assert_eq!(net.followers(member), [member]);
        let parted = Event::Left(Left::new(id(member), LeftReason::Left));
        assert!(net.events(other).contains(&parted), "{other}");
    }
}
