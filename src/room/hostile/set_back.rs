//! Restart of a member under its key after its wall clock was set back: its later incarnation looks older,
//! and the link decides (C6 G9).

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use room_transport::identity::Identity;

use super::*;
use crate::config::Secret;

/// An identity key as a host stores it: PKCS#8.
fn new_key() -> Vec<u8> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    pkcs8.as_ref().to_vec()
}

/// An incarnation that started after every other one.
fn latest(key: &[u8], session: &str) -> (Attacker, Hello) {
    let identity = Identity::from_pkcs8(key).expect("a key");
    let attacker = Attacker::with_process("c", session, Process::start_as(identity));
    let mut hello = attacker.hello();
    hello.incarnation.started_us = u64::MAX;
    (attacker, hello)
}

/// Silence ends no link while these tests run.
fn patient() -> Config {
    Config {
        heartbeat_timeout_multiplier: 200,
        ..quick()
    }
}

/// Joins in a process that then dies at once, without a leave or a close.
fn die_after_joining(key: &[u8], session: &str, host: &Host) {
    std::thread::scope(|scope| {
        let process = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().expect("a runtime");
            let member = runtime.block_on(async {
                let (attacker, hello) = latest(key, session);
                let member = attacker.join_unseen(host, &hello).await;
                host.wait_for(joined("c"), 1).await;
                (attacker, member)
            });
            // Without the runtime no task can close a link.
            runtime.shutdown_background();
            drop(member);
        });
        process.join().expect("it joined");
    });
}

#[tokio::test]
async fn a_member_whose_clock_was_set_back_replaces_its_dead_incarnation() {
    let pair = Pair::settled_with("set-back", patient()).await;
    let key = new_key();
    die_after_joining(&key, "set-back", &pair.a);
    assert!(pair.a.has("c"), "its link is not known to be dead");
    let config = Config {
        identity_key: Secret::new(&key),
        ..patient()
    };
    let again = Host::open_with("c", "set-back", config);
    assert_eq!(again.connect(&pair.a).await, (true, 0));
    pair.a.wait_for(joined("c"), 2).await;
    pair.b.wait_for(joined("c"), 1).await;
    let reported = [joined("b"), joined("c"), left("c"), joined("c")];
    assert_eq!(pair.a.comings_and_goings(), reported);
    again.send("a", b"I am back").await;
    let message = Report::Message("c".into(), b"I am back".to_vec());
    pair.a.wait_for(message, 1).await;
    pair.undisturbed("a clock that was set back").await;
}

#[tokio::test]
async fn an_older_incarnation_under_the_key_of_a_living_member_is_refused() {
    let pair = Pair::settled_with("older", patient()).await;
    let key = new_key();
    let (present, hello) = latest(&key, "older");
    let _member = present.join_unseen(&pair.a, &hello).await;
    pair.a.wait_for(joined("c"), 1).await;
    let config = Config {
        identity_key: Secret::new(&key),
        ..patient()
    };
    let copy = Host::open_with("c", "older", config);
    assert_eq!(copy.connect(&pair.a).await, (false, -11));
    assert_eq!(pair.a.comings_and_goings(), [joined("b"), joined("c")]);
    pair.undisturbed("an older incarnation").await;
}
