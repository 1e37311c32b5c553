//! Leadership transfers, and preferences of elections.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use meta_mystia_network::config::Config;
use meta_mystia_network::core::election::LeaderReason;
use meta_mystia_network::core::wire::HostMode;
use meta_mystia_network::dispatch::{Event, LeaderChange};
use meta_mystia_network::error::TransferError;

use crate::harness::{Member, TIMEOUT, eventually, id, quick, settled};

/// The member of that name, and the others.
fn split<'a>(members: &[&'a Member], name: &str) -> (&'a Member, Vec<&'a Member>) {
    let (found, others): (Vec<_>, Vec<_>) = members
        .iter()
        .partition(|member| member.room.peer_id().as_str() == name);
    (found[0], others)
}

fn three(session: &str, configs: [Config; 3]) -> [Member; 3] {
    let mut configs = configs.into_iter();
    let members = ["a", "b", "c"].map(|name| {
        let config = configs.next().expect("three");
        Member::open_with(name, session, config)
    });
    for member in &members[1..] {
        member.connect_to(&members[0]);
    }
    members
}

/// Every change of the leader from here on, with the present one first.
fn changes(member: &Member) -> Receiver<LeaderChange> {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let handler = move |event: &Event| {
        if let Event::LeaderChanged(change) = event {
            let _ = sender.lock().expect("not poisoned").send(change.clone());
        }
    };
    let dispatch = member.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(handler)));
    receiver
}

#[test]
fn a_leader_transfers_to_its_target_and_all_receive_the_reason() {
    let members = three("transfer", [quick(), quick(), quick()]);
    let members: Vec<_> = members.iter().collect();
    let leader = settled(&members);
    let (old, others) = split(&members, &leader);
    let receivers: Vec<_> = members.iter().map(|member| changes(member)).collect();
    let before = old.room.snapshot().term;
    let target = others[0].room.peer_id().clone();
    // The first event shows the leader at its delivery: a faster transfer is in it already.
    for receiver in &receivers {
        let present = receiver.recv_timeout(TIMEOUT).expect("the present");
        assert_eq!(present.new, Some(old.room.peer_id().clone()));
    }

    assert_eq!(old.room.transfer_leadership(&target), Ok(()));
    for (member, receiver) in members.iter().zip(&receivers) {
        let mut change = receiver.recv_timeout(TIMEOUT).expect("the change");
        if change.new.is_none() {
            // The old leader yields to the candidate before its election.
            assert_eq!(member.room.peer_id(), old.room.peer_id());
            assert_eq!(change.reason, LeaderReason::Resigned);
            change = receiver.recv_timeout(TIMEOUT).expect("the end of it");
            change.old = Some(old.room.peer_id().clone());
        }
        assert_eq!(
            change,
            LeaderChange {
                old: Some(old.room.peer_id().clone()),
                new: Some(target.clone()),
                term: before + 1,
                epoch: 0,
                reason: LeaderReason::Transferred,
            },
            "at {}",
            member.room.peer_id()
        );
        assert_eq!(member.room.snapshot().term, before + 1);
    }
    assert_eq!(settled(&members), target.as_str());
}

#[test]
fn a_leader_that_yields_is_followed_by_the_highest_priority_then_by_the_largest_id() {
    let preferred = Config {
        priority: 1,
        ..quick()
    };
    let members = three("yield", [preferred, quick(), quick()]);
    let members: Vec<_> = members.iter().collect();
    let mut leader = settled(&members);
    for _ in 0..3 {
        let (old, _) = split(&members, &leader);
        assert_eq!(old.room.yield_leadership(), Ok(()));
        let expected = if leader == "a" { "c" } else { "a" };
        eventually("the leader yields", || {
            members
                .iter()
                .all(|member| member.leader().as_deref() == Some(expected))
        });
        leader = expected.to_owned();
    }
}

#[test]
fn a_priority_counts_from_when_it_is_set() {
    let members = three("priority", [quick(), quick(), quick()]);
    let members: Vec<_> = members.iter().collect();
    settled(&members);
    // Of equal priorities the largest id becomes leader: never "a" while another is present.
    assert_eq!(members[0].room.set_priority(i32::MAX), Ok(()));
    assert_eq!(members[2].room.set_priority(i32::MIN), Ok(()));
    eventually("the preferred member leads", || {
        let leader = settled(&members);
        if leader == "a" {
            return true;
        }
        // Messages of "a" may still be under way.
        let _ = split(&members, &leader).0.room.yield_leadership();
        false
    });
}

#[test]
fn the_preferred_member_follows_a_leader_that_leaves() {
    let preferred = Config {
        priority: 7,
        ..quick()
    };
    let [a, b, c] = three("succession", [preferred, quick(), quick()]);
    let leader = settled(&[&a, &b, &c]);
    if leader == "a" {
        assert_eq!(a.room.transfer_leadership(&id("b")), Ok(()));
        eventually("b leads", || b.leader().as_deref() == Some("b"));
        settled(&[&a, &b, &c]);
    }
    let rest = if b.room.snapshot().is_leader {
        drop(b);
        [&a, &c]
    } else {
        drop(c);
        [&a, &b]
    };
    assert_eq!(settled(&rest), "a");
}

#[test]
fn a_refused_transfer_reports_the_reason_and_changes_nothing() {
    let observer = Config {
        eligible: false,
        ..quick()
    };
    let lone = Member::open("lone", "refusals alone");
    eventually("it leads itself", || lone.room.snapshot().is_leader);
    assert_eq!(
        lone.room.yield_leadership(),
        Err(TransferError::NoSuccessor)
    );
    assert_eq!(lone.room.transfer_leadership(&id("lone")), Ok(()));

    let members = three("refusals", [quick(), quick(), observer]);
    let members: Vec<_> = members.iter().collect();
    let leader = settled(&members);
    let (old, others) = split(&members, &leader);
    let term = old.room.snapshot().term;
    let transfer = |member: &Member, name| member.room.transfer_leadership(&id(name));
    for member in &others {
        // NotLeader takes precedence over every other error.
        assert_eq!(transfer(member, "unknown"), Err(TransferError::NotLeader));
        assert_eq!(
            member.room.yield_leadership(),
            Err(TransferError::NotLeader)
        );
    }
    let id = id("unknown");
    assert_eq!(
        transfer(old, "unknown"),
        Err(TransferError::PeerNotFound { id })
    );
    assert!(matches!(
        transfer(old, "c"),
        Err(TransferError::Rejected { .. })
    ));
    assert_eq!(old.room.snapshot().term, term);
    assert_eq!(settled(&members), leader);
}

#[test]
fn a_room_with_a_fixed_host_allows_no_transfer() {
    let mode = |host_mode| Config {
        host_mode,
        ..quick()
    };
    let host = Member::open_with("host", "fixed transfer", mode(HostMode::Host));
    let guest = Member::open_with("guest", "fixed transfer", mode(HostMode::Guest));
    guest.connect_to(&host);
    assert_eq!(settled(&[&host, &guest]), "host");
    for answer in [
        host.room.transfer_leadership(&id("guest")),
        host.room.yield_leadership(),
    ] {
        let error = answer.expect_err("fixed");
        assert!(
            matches!(
                error,
                TransferError::FixedHost
                    | TransferError::Rejected { .. }
                    | TransferError::NoSuccessor
            ),
            "{error}"
        );
    }
    assert_eq!(settled(&[&host, &guest]), "host");
}
