//! Effects of a room's options on the wire.

use std::net::{SocketAddr, ToSocketAddrs};

use meta_mystia_network::config::{Config, Secret};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::core::wire::{Authority, HostMode, MergePolicy};
use meta_mystia_network::error::{Code, Coded, SetLeaderError, StartError};
use meta_mystia_network::room::Room;

use crate::harness::{Member, Report, id, quick, settled};

/// An address of this machine alone, and any port.
fn bound_to(address: &str) -> Config {
    Config {
        bind_address: Some(address.parse().expect("an address")),
        ..quick()
    }
}

fn with_secret(secret: &[u8]) -> Config {
    Config {
        secret: Secret::new(secret),
        ..quick()
    }
}

/// Result of the dial of `text`.
fn dialled(member: &Member, text: &str) -> (bool, i32) {
    member.connect(text);
    member.wait(&format!("the end of the dial of {text}"), |reported| {
        reported.iter().find_map(|reported| match reported {
            Report::Connection(target, success, code) if target == text => Some((*success, *code)),
            _ => None,
        })
    })
}

fn start_error(config: Config) -> StartError {
    let session = SessionId::new("refused").expect("valid");
    let peer = PeerId::new("refused").expect("valid");
    Room::open(peer, session, config).err().expect("no room")
}

#[test]
fn rooms_of_one_ipv6_address_link_both_ways() {
    let a = Member::open_with("a", "v6", bound_to("::1"));
    let b = Member::open_with("b", "v6", bound_to("::1"));
    let address = a.room.local_address();
    assert_eq!(address.to_string(), format!("[::1]:{}", address.port()));
    assert_eq!(dialled(&b, &address.to_string()), (true, 0));
    settled(&[&a, &b]);
    b.room.disconnect(&id("a")).expect("a room");
    b.wait_for(&Report::Left("a".into()));
    a.wait_for(&Report::Left("b".into()));
    assert_eq!(dialled(&a, &b.room.local_address().to_string()), (true, 0));
    settled(&[&a, &b]);
}

#[test]
fn a_dual_stack_room_is_reached_by_ipv6_as_well() {
    let a = Member::open("a", "dual");
    let b = Member::open_with("b", "dual", bound_to("::1"));
    assert_eq!(dialled(&b, &format!("[::1]:{}", a.port())), (true, 0));
    settled(&[&a, &b]);
}

#[test]
fn a_name_is_resolved_and_the_address_that_answers_is_found() {
    // The system decides on the addresses of "localhost": a dial tries all of them.
    let found = ("localhost", 1).to_socket_addrs().expect("a hosts file");
    for ip in found.map(|address| address.ip().to_string()) {
        let session = format!("name {ip}");
        let a = Member::open_with("a", &session, bound_to(&ip));
        let b = Member::open("b", &session);
        assert_eq!(dialled(&b, &format!("localhost:{}", a.port())), (true, 0));
        settled(&[&a, &b]);
    }
    let b = Member::open("b", "name none");
    let code = Code::NameNotResolved.value();
    assert_eq!(dialled(&b, "no-such-host.invalid:4433"), (false, code));
}

#[test]
fn an_address_of_a_family_that_is_not_bound_fails_at_once() {
    let a = Member::open_with("a", "families", bound_to("127.0.0.1"));
    let b = Member::open_with("b", "families", bound_to("::1"));
    let code = Code::ConnectionFailed.value();
    assert_eq!(
        dialled(&a, &b.room.local_address().to_string()),
        (false, code)
    );
    assert_eq!(
        dialled(&b, &a.room.local_address().to_string()),
        (false, code)
    );
}

#[test]
fn a_taken_port_is_reported_with_its_address_and_is_free_again_after_the_room() {
    let first = Member::open_with("a", "fixed", bound_to("127.0.0.1"));
    let own = first.room.local_address();
    let same = Config {
        bind_port: own.port(),
        ..bound_to("127.0.0.1")
    };
    let error = start_error(same.clone());
    assert_eq!(error.code(), Code::ConnectionFailed);
    assert!(error.to_string().contains(&own.to_string()), "{error}");
    assert!(
        error.to_string().contains("choose another bind_port"),
        "{error}"
    );
    drop(first);
    let second = Member::open_with("a", "fixed", same);
    assert_eq!(second.room.local_address(), own);
}

#[test]
fn an_address_of_another_machine_is_reported() {
    let error = start_error(bound_to("192.0.2.1"));
    assert_eq!(error.code(), Code::ConnectionFailed);
    let expected = SocketAddr::from(([192, 0, 2, 1], 0)).to_string();
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(
        error.to_string().contains("an address of this machine"),
        "{error}"
    );
}

#[test]
fn the_room_secret_decides_who_gets_in() {
    let a = Member::open_with("a", "secret", with_secret(b"tea"));
    let b = Member::open_with("b", "secret", with_secret(b"coffee"));
    let c = Member::open("c", "secret");
    let d = Member::open_with("d", "secret", with_secret(b"tea"));
    let target = format!("127.0.0.1:{}", a.port());
    let code = Code::AuthenticationFailed.value();
    assert_eq!(dialled(&b, &target), (false, code));
    assert_eq!(dialled(&c, &target), (false, code));
    assert_eq!(dialled(&d, &target), (true, 0));
    settled(&[&a, &d]);
    assert_eq!(a.room.snapshot().connected, 1);
}

#[test]
fn rooms_with_other_rules_do_not_link() {
    let a = Member::open("a", "rules");
    let b = Member::open_with(
        "b",
        "rules",
        Config {
            merge_policy: MergePolicy::HighestTerm,
            ..quick()
        },
    );
    let code = Code::PolicyMismatch.value();
    let target = format!("127.0.0.1:{}", a.port());
    assert_eq!(dialled(&b, &target), (false, code));
}

#[test]
fn a_guest_of_one_fixed_host_takes_no_second() {
    let mode = |host_mode| Config {
        host_mode,
        ..quick()
    };
    let host = Member::open_with("host", "fixed", mode(HostMode::Host));
    let guest = Member::open_with("guest", "fixed", mode(HostMode::Guest));
    let target = format!("127.0.0.1:{}", host.port());
    assert_eq!(dialled(&guest, &target), (true, Code::Ok.value()));
    let second = Member::open_with("second", "fixed", mode(HostMode::Host));
    let target = format!("127.0.0.1:{}", guest.port());
    let code = Code::PolicyMismatch.value();
    assert_eq!(dialled(&second, &target), (false, code));
}

#[test]
fn a_call_from_a_follower_is_refused_if_only_the_leader_names_leaders() {
    let strict = || Config {
        authority: Authority::LeaderOnly,
        ..quick()
    };
    let a = Member::open_with("a", "authority", strict());
    let b = Member::open_with("b", "authority", strict());
    b.connect_to(&a);
    let leader = settled(&[&a, &b]);
    let follower = if leader == "a" { &b } else { &a };
    let refused = follower.room.set_leader(&follower.room.peer_id().clone());
    assert_eq!(refused, Err(SetLeaderError::NotLeader));
}

#[test]
fn an_observer_never_leads() {
    let a = Member::open("a", "observer");
    let observer = Config {
        eligible: false,
        priority: 100,
        ..quick()
    };
    let b = Member::open_with("b", "observer", observer);
    b.connect_to(&a);
    assert_eq!(settled(&[&a, &b]), "a");
}

#[test]
fn a_member_that_keeps_its_key_comes_back_under_its_id_and_another_key_does_not_take_it() {
    let key = || {
        let random = ring::rand::SystemRandom::new();
        let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        Config {
            identity_key: Secret::new(pkcs8.as_ref()),
            ..quick()
        }
    };
    let a = Member::open("a", "keys");
    let target = format!("127.0.0.1:{}", a.port());
    let own = key();
    let b = Member::open_with("b", "keys", own.clone());
    assert_eq!(dialled(&b, &target), (true, 0));
    settled(&[&a, &b]);
    // A dial with b's id and another key, while b is present.
    let stranger = Member::open_with("b", "keys", key());
    let code = Code::DuplicatePeerId.value();
    assert_eq!(dialled(&stranger, &target), (false, code));
    // Equal id and key: a new incarnation of that member.
    let again = Member::open_with("b", "keys", own);
    assert_eq!(dialled(&again, &target), (true, 0));
    a.wait_for(&Report::Left("b".into()));
}
