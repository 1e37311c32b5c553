//! Rooms form, agree and lose members.

use crate::harness::{Member, Report, eventually, settled};

#[test]
fn three_members_mesh_from_one_contact_and_agree_on_a_leader() {
    let a = Member::open("a", "mesh");
    let b = Member::open("b", "mesh");
    let c = Member::open("c", "mesh");
    b.connect_to(&a);
    c.connect_to(&a);
    let leader = settled(&[&a, &b, &c]);
    for member in [&a, &b, &c] {
        member.wait_for(&Report::Leader(leader.clone()));
        eventually("round-trip times", || {
            let snapshot = member.room.snapshot();
            snapshot.peers.iter().all(|peer| peer.rtt.is_some())
        });
    }
    assert_eq!(a.room.snapshot().peer_list, "b\nc");
}

#[test]
fn a_leader_that_leaves_has_a_successor_and_all_are_notified_once() {
    let members = ["a", "b", "c"].map(|name| Member::open(name, "leave"));
    members[1].connect_to(&members[0]);
    members[2].connect_to(&members[0]);
    let leader = settled(&members.each_ref());
    let (gone, left): (Vec<_>, Vec<_>) = members
        .into_iter()
        .partition(|member| member.room.peer_id().as_str() == leader);
    gone[0].room.close();
    let rest: Vec<_> = left.iter().collect();
    let next = settled(&rest);
    assert_ne!(next, leader);
    for member in rest {
        member.wait_for(&Report::Left(leader.clone()));
        let reported = member.reported();
        let times = reported
            .iter()
            .filter(|reported| **reported == Report::Left(leader.clone()));
        assert_eq!(times.count(), 1);
    }
}
