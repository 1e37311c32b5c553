//! The example of a service that runs on the leader alone works as documented.

#[path = "../examples/leader_service.rs"]
mod leader_service;

#[test]
fn f20_the_service_moves_on_when_its_leader_yields_and_when_it_crashes() {
    let leaders = leader_service::show(4, |line| println!("{line}")).expect("as described");
    assert_eq!(leaders.len(), 3);
}
