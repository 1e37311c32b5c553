//! Leadership transfers (`core::node::tests::transfer` has more).

use super::*;

fn transfer(group: &mut Group, from: &str, to: &str) {
    let target = Some(id(to));
    group.feed(from, Local::Transfer { target });
}

/// etcd-io/raft: while the target does not answer, another node is elected; that ends the transfer.
#[test]
fn r56_a_higher_term_ends_a_transfer_that_is_under_way() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(2000));
    group.isolate("c");
    transfer(&mut group, "a", "c");
    group.deliver();
    assert_eq!(
        group.role("a"),
        RoleKind::Leader,
        "it leads until c is elected"
    );
    group.receive("a", "b", Content::Pulse(leads("b", 2)));
    assert_eq!(
        (group.role("a"), group.shows("a")),
        (RoleKind::Follower, Some("b"))
    );
    group.take_sent();
    // The target is not asked again, and the old leader does not resume the transfer when it leads once more.
    group.sent.clear();
    group.mend();
    group.wait(MIN);
    group.loses("a", "b", DownReason::Silent);
    for name in ["c", "d", "e"] {
        group.loses(name, "a", DownReason::Silent);
    }
    for name in ["c", "d", "e"] {
        group.links(name, "a");
    }
    group.live(ms(6000));
    let reported = group.sent.iter().filter(|(from, _, content)| {
        let Content::Message(_, message) = content else {
            return false;
        };
        *from == id("a") && matches!(message, ElectionMessage::TimeoutNow { .. })
    });
    assert_eq!(reported.count(), 0);
}
