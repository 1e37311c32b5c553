//! Limits on a voter that lies: it claims to be elected, and makes members up. Others keep no more members than a
//! cluster has, and elect another leader when the lie is found out.

use super::wire::MAX_LISTED;
use super::*;
use SeededMessage as M;

/// More members than any node keeps.
const MANY: u64 = 20_000;

/// "a" leads "b", "c" and "x", which is no voter, under version 1; then "c" lies that it was elected under version 2.
fn with_liar() -> World {
    let mut world = World::new(1, &["a", "b", "c"], 2, &["x"]);
    world.start("a");
    world.run(secs(3));
    for name in ["b", "c", "x"] {
        world.start(name);
    }
    world.run(secs(10));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    let claim = Claim {
        leader: id("c"),
        version: 2,
        elected: true,
        address: String::new(),
    };
    let elected = M::LeaderElected {
        claim: claim.clone(),
    };
    for victim in ["b", "x"] {
        let basis = Observation {
            leader: None,
            version: 1,
        };
        send(&mut world, victim, basis, elected.clone());
        let victim = world.member(victim);
        assert_eq!(victim.claim(), Some(&claim));
    }
    world
}

/// A message of "c" as the leader of version 2.
fn lie(world: &mut World, to: &str, message: SeededMessage) {
    let basis = Observation {
        leader: Some(id("c")),
        version: 2,
    };
    send(world, to, basis, message);
}

fn send(world: &mut World, to: &str, basis: Observation, message: SeededMessage) {
    let input = ElectionInput::Message {
        from: id("c"),
        message: Based {
            basis,
            writes: 0,
            message,
        },
    };
    world.input(to, input);
}

fn made_up(number: u64) -> (PeerId, Incarnation) {
    let incarnation = Incarnation {
        started_us: number,
        random: number,
    };
    (id(&format!("made-up-{number}")), incarnation)
}

#[test]
fn members_that_a_liar_makes_up_fill_no_more_than_the_table() {
    let mut world = with_liar();
    for victim in ["b", "x"] {
        for number in 0..MANY {
            let (member, incarnation) = made_up(number);
            let (change, state) = (2 * number + 1, MemberState::Unreachable);
            let status = M::MemberStatusUpdate {
                change,
                member: member.clone(),
                incarnation,
                state,
            };
            lie(&mut world, victim, status);
            let joining = M::JoiningMember {
                change: change + 1,
                member,
                incarnation,
            };
            lie(&mut world, victim, joining);
        }
        let seeded = world.member(victim);
        assert!(seeded.members().len() <= MAX_LISTED);
        assert!(seeded.members().len() > MAX_LISTED / 2, "they came");
    }
}

#[test]
fn a_table_full_of_made_up_members_has_places_for_the_voters() {
    let mut world = with_liar();
    for number in 0..MANY {
        let (member, incarnation) = made_up(number);
        let status = M::MemberStatusUpdate {
            change: number + 1,
            member,
            incarnation,
            state: MemberState::Active,
        };
        lie(&mut world, "b", status);
    }
    // The liar goes, and its victim leads next: it counts the voters, and the made-up members end with their TTL.
    world.crash("c");
    world.run(secs(30));
    let (leader, version) = world.agreed().expect("a leader");
    assert!(version > 2 && leader != id("c"), "{leader} {version}");
    let members = world.member("b");
    let mut names: Vec<_> = members.members().into_iter().map(|it| it.id).collect();
    names.retain(|name| *name != id("c"));
    assert_eq!(names, ["a", "b", "x"].map(id));
}
