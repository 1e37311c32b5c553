//! Members that create a room or join one, instead of looking for it and leading if they find none.

use super::host::short_windows;
use super::*;
use crate::election::Entry;
use crate::wire::Strategy;

const GOSSIP: Strategy = Strategy::Gossip {
    strict_lowest: false,
};

impl Net {
    fn open(&mut self, name: &str, entry: Entry, strategy: Strategy) {
        let mut config = self.config.clone();
        config.election.entry = entry;
        config.election.policy.strategy = strategy;
        config.election.windows = short_windows();
        let life = life(name.as_bytes()[0], self.now.as_micros());
        self.start_with(name, life, config);
    }

    /// The result of a dial by hand between two hosts.
    fn dial_by_hand(&mut self, dialler: &str, target: &str) -> Result<(), AdmissionRefusal> {
        self.check_by_hand(dialler, target)?;
        let hello = self.hello(target);
        let key = self.place(target).life.key;
        self.node(dialler)
            .check_hello(self.now, &hello, key, true)?;
        self.enter(dialler, target);
        Ok(())
    }
}

fn no_room() -> Event {
    Event::NoRoomFound(ms(10_000))
}

#[test]
fn a_creator_leads_at_once_and_others_do_not() {
    for strategy in [Strategy::Raft, GOSSIP] {
        let mut net = Net::new();
        net.open("c", Entry::Create, strategy);
        assert!(net.leads("c"), "{strategy:?}");
        assert_eq!(net.events("c").len(), 1, "it learns that it leads");
        net.open("a", Entry::Any, strategy);
        net.open("j", Entry::Join, strategy);
        assert!(!net.leads("a") && !net.leads("j"));
    }
}

#[test]
fn a_joiner_never_leads_alone_and_reports_once_that_it_found_no_room() {
    for strategy in [Strategy::Raft, GOSSIP] {
        let mut net = Net::new();
        net.open("j", Entry::Join, strategy);
        net.run(ms(9_999));
        assert_eq!(net.events("j"), []);
        net.run(ms(120_000));
        assert_eq!(net.events("j"), [no_room()]);
        assert_eq!(net.node("j").leader(), None);
        assert!(net.node("j").is_looking());
    }
}

#[test]
fn joiners_that_start_before_the_creator_enter_its_room_and_lead_in_it_later() {
    for strategy in [Strategy::Raft, GOSSIP] {
        let mut net = Net::new();
        for joiner in ["j", "k"] {
            net.open(joiner, Entry::Join, strategy);
        }
        net.run(ms(5_000));
        assert_eq!(net.dial_by_hand("j", "k"), Err(AdmissionRefusal::Looking));
        assert_eq!(net.dial_by_hand("k", "j"), Err(AdmissionRefusal::Looking));
        net.open("c", Entry::Create, strategy);
        for joiner in ["j", "k"] {
            assert_eq!(net.dial_by_hand(joiner, "c"), Ok(()));
        }
        net.wait("one room", |net| net.is_settled() && net.leads("c"));
        net.run(ms(20_000));
        for joiner in ["j", "k"] {
            assert!(!net.node(joiner).is_looking());
            assert_eq!(net.times(joiner, &no_room()), 0);
            assert!(net.node(joiner).standing_of_myself().0);
        }
        // They are ordinary members: without the creator one of them leads, and admits.
        net.kill("c", false);
        net.wait("another leads", |net| net.leads("j") || net.leads("k"));
        net.open("n", Entry::Any, strategy);
        assert_eq!(net.dial_by_hand("n", "j"), Ok(()));
        net.wait("it is in", |net| net.has("j", "n") && net.has("k", "n"));
    }
}

#[test]
fn a_member_of_a_room_brings_a_joiner_in_and_others_do_not() {
    for strategy in [Strategy::Raft, GOSSIP] {
        let mut net = Net::new();
        net.open("j", Entry::Join, strategy);
        // A node that has just started and knows no leader is no room.
        net.open("a", Entry::Any, strategy);
        assert_eq!(net.dial_by_hand("a", "j"), Err(AdmissionRefusal::Looking));
        // The joiner's own host may still dial it: it is about to lead.
        assert_eq!(net.dial_by_hand("j", "a"), Ok(()));
        net.wait("it leads them", |net| net.leads("a") && net.is_settled());

        let mut net = Net::new();
        net.open("c", Entry::Create, strategy);
        net.open("j", Entry::Join, strategy);
        assert_eq!(net.dial_by_hand("c", "j"), Ok(()));
        net.wait("one room", |net| net.is_settled() && net.leads("c"));
    }
}

#[test]
fn the_host_of_a_joiner_is_not_asked_who_may_enter() {
    let mut net = Net::new();
    net.open("c", Entry::Create, Strategy::Raft);
    net.open("j", Entry::Join, Strategy::Raft);
    net.order("j", Command::AskHost(true));
    let ticket = net.ask("c", "j");
    net.run(DELAY * 4);
    assert_eq!(net.verdict("j", ticket), Some(Verdict::Accepted));
    assert!(net.requests("j").is_empty());
}

#[test]
fn a_joiner_keeps_its_hosts_settings_until_it_is_in() {
    for eligible in [true, false] {
        let mut net = Net::new();
        net.open("j", Entry::Join, Strategy::Raft);
        net.order("j", Command::SetEligible(false));
        net.order("j", Command::SetEligible(eligible));
        assert!(!net.node("j").standing_of_myself().0);
        net.open("c", Entry::Create, Strategy::Raft);
        assert_eq!(net.dial_by_hand("j", "c"), Ok(()));
        net.wait("one room", |net| net.is_settled());
        net.run(ms(100));
        assert_eq!(net.node("j").standing_of_myself().0, eligible);
        let voter = net.node("c").view.voters[&id("j")].eligible;
        assert_eq!(voter, eligible);
    }
}

#[test]
fn two_rooms_that_were_both_created_merge_as_any_other() {
    for strategy in [Strategy::Raft, GOSSIP] {
        let mut net = Net::new();
        net.open("c", Entry::Create, strategy);
        net.open("d", Entry::Create, strategy);
        net.open("j", Entry::Join, strategy);
        assert_eq!(net.dial_by_hand("j", "d"), Ok(()));
        net.wait("d has a member", |net| {
            net.node("j").leader() == Some(&id("d"))
        });
        assert_eq!(net.dial_by_hand("c", "d"), Ok(()));
        net.wait("one room", |net| net.is_settled());
    }
}
