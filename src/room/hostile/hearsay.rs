//! False reports about lost members: they must not make a member drop messages that wait for the lost one.

use super::cut::{cut, heal};
use super::*;
use crate::core::id::Fingerprint;
use crate::core::wire::{Candidate, PeerEntry};

/// All messages in which a member can name `b`.
fn reports_on_b(key: Fingerprint, incarnation: Incarnation) -> Vec<Message> {
    let restarted = Incarnation {
        started_us: u64::MAX,
        random: 1,
    };
    let made_up = Fingerprint([66; 32]);
    let named = [
        (made_up, restarted),
        (key, restarted),
        (made_up, incarnation),
    ];
    let reports = named.into_iter().flat_map(|(key, incarnation)| {
        let entry = PeerEntry {
            id: id("b"),
            key,
            addresses: Vec::new(),
        };
        let candidate = Candidate {
            entry: entry.clone(),
            incarnation,
            payload: Vec::new(),
        };
        [
            Message::JoinRequest {
                request: 1,
                candidate,
            },
            Message::Admitted {
                entry: entry.clone(),
                incarnation,
            },
            Message::PeerList(vec![entry]),
        ]
    });
    reports.collect()
}

#[tokio::test]
async fn messages_for_a_lost_member_survive_reports_about_it() {
    for leader in ["a", "b"] {
        let session = format!("reports {leader}");
        let pair = Pair::settled(&session).await;
        let leads = if leader == "a" { &pair.a } else { &pair.b };
        leads.room.set_leader(&id(leader)).expect("itself");
        let mut member = Attacker::new("m", &session).join(&pair.a).await;
        let snapshot = pair.a.room.snapshot();
        let key = snapshot.peer("b").and_then(|peer| peer.key);
        let key = key.expect("a member");
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            cut(from.port(), to.port());
        }
        pair.a.wait_for(left("b"), 1).await;
        pair.b.wait_for(left("a"), 1).await;
        for n in 0..10 {
            pair.a.send("b", &[n]).await;
            pair.b.send("a", &[n]).await;
        }
        for report in reports_on_b(key, member.incarnation) {
            member.notify_core(report).await;
        }
        member.send(0, b"behind").await;
        pair.a.wait_for(reported("m", b"behind"), 1).await;
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            heal(from.port(), to.port());
        }
        for (from, to) in [("a", &pair.b), ("b", &pair.a)] {
            to.wait_for(reported(from, &[9]), 1).await;
            let all: Vec<_> = (0..10).map(|n| vec![n]).collect();
            assert_eq!(to.messages_from(from), all, "{leader} led");
        }
    }
}
