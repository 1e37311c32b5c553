//! `SetLeader`, which is a leadership transfer here.

use super::*;

fn outcomes(net: &Net, name: &str) -> Vec<AssignOutcome> {
    let events = net.events(name).into_iter();
    let outcomes = events.filter_map(|event| match event {
        Event::SetLeaderResult { outcome, .. } => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

/// C2: only votes make a leader. Any member asks the leader for a transfer, and is notified when the target leads.
#[test]
fn set_leader_asks_the_leader_for_a_transfer() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let [caller, target] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    let term = net.node(&first).record().term();
    net.order(caller, Command::SetLeader(id(target)));
    assert!(net.leads(&first));
    let took = net.wait("the target leads", |net| {
        net.is_settled() && net.leads(target)
    });
    assert!(took < ms(200), "{took:?}");
    assert_eq!(outcomes(&net, caller), [AssignOutcome::Done]);
    // Also from the leader itself, and from the member that wants to lead.
    net.order(target, Command::SetLeader(id(caller)));
    net.wait("the caller leads", |net| {
        net.is_settled() && net.leads(caller)
    });
    assert_eq!(outcomes(&net, target), [AssignOutcome::Done]);
    net.order(&first, Command::SetLeader(id(&first)));
    net.wait("the first leads", |net| {
        net.is_settled() && net.leads(&first)
    });
    assert_eq!(outcomes(&net, &first), [AssignOutcome::Done]);
    // A member that leads already needs no transfer.
    net.order(caller, Command::SetLeader(id(&first)));
    assert_eq!(
        outcomes(&net, caller),
        [AssignOutcome::Done, AssignOutcome::Done]
    );
    for name in ["a", "b", "c"] {
        let record = net.node(name).record();
        assert_eq!(record.term(), term + 3, "{name}");
        assert_eq!(
            (&record.stamp.epoch, record.assigned),
            (&Epoch::default(), false)
        );
    }
}

/// A regression: a member that was cut off made itself leader.
#[test]
fn set_leader_makes_no_leader_of_a_member_that_is_cut_off() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let cut_off = others(&["a", "b", "c"], &first)[0];
    net.dials_work = false;
    for other in others(&["a", "b", "c"], cut_off) {
        net.unlink(cut_off, other, LinkEnd::Silent);
    }
    let itself = Command::SetLeader(id(cut_off));
    let refused = Err(ElectionError::NoLeader.into());
    assert_eq!(net.try_order(cut_off, itself.clone()), refused);
    net.run(ms(10_000));
    assert_eq!(net.try_order(cut_off, itself), refused);
    assert_eq!(net.node(cut_off).leader(), None);
    // A leader that is cut off keeps leading for a moment, but transfers to no member.
    for other in others(&["a", "b", "c"], &first) {
        if other != cut_off {
            net.unlink(&first, other, LinkEnd::Silent);
        }
    }
    let target = Command::SetLeader(id(cut_off));
    let gone = ElectionError::UnknownTarget(id(cut_off));
    assert_eq!(net.try_order(&first, target), Err(gone.into()));
}

#[test]
fn a_leader_refuses_a_transfer_to_an_unreachable_target() {
    let names = ["a", "b", "c", "d"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let [caller, target, _] = others(&names, &first)[..] else {
        panic!("three others");
    };
    net.dials_work = false;
    net.unlink(&first, target, LinkEnd::Silent);
    net.run(ms(2000));
    net.order(caller, Command::SetLeader(id(target)));
    net.run(ms(100));
    assert_eq!(outcomes(&net, caller), [AssignOutcome::Rejected]);
    assert!(net.leads(&first));
}

#[test]
fn a_target_that_does_not_answer_leaves_the_leader_in_its_place() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let [caller, target] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    net.mute(target, true);
    net.order(caller, Command::SetLeader(id(target)));
    net.run(ms(200));
    // A second call replaces the first.
    net.order(caller, Command::SetLeader(id(target)));
    net.run(ms(3100));
    assert_eq!(
        outcomes(&net, caller),
        [AssignOutcome::Superseded, AssignOutcome::Timeout]
    );
    assert!(net.leads(&first));
    assert_eq!(net.node(caller).leader(), Some(&id(&first)));
}

#[test]
fn only_the_leader_makes_a_transfer_if_only_it_may_name_a_leader() {
    let mut net = static_net(&["a", "b", "c"]);
    net.config.election.policy.authority = Authority::LeaderOnly;
    for name in ["a", "b", "c"] {
        net.start(name);
    }
    for name in ["b", "c"] {
        net.enter(name, "a");
    }
    net.settle();
    let first = leader(&net);
    let [caller, target] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    let refused = Err(ElectionError::NotLeader.into());
    let call = Command::SetLeader(id(target));
    assert_eq!(net.try_order(caller, call.clone()), refused);
    // Nor does the leader obey a forged request.
    let request = ElectionMessage::TransferRequest {
        seq: 1,
        target: id(target),
    };
    net.forge(caller, &first, request);
    net.run(ms(1000));
    assert!(net.leads(&first));
    net.order(&first, call);
    net.wait("the target leads", |net| net.leads(target));
}
