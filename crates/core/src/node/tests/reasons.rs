//! Reasons for a change of the leader, as hosts receive them.

use super::*;
use crate::election::LeaderReason::{
    self, Assigned, Elected, Found, Left, Lost, Resigned, Transferred,
};

/// A change in a settled room that `a` leads, and the events that the other hosts receive.
struct Case {
    name: &'static str,
    happens: fn(&mut Net),
    reported: &'static [(&'static str, &'static [(&'static str, LeaderReason)])],
}

const CASES: &[Case] = &[
    Case {
        name: "the leader falls silent",
        happens: |net| net.kill("a", false),
        reported: &[
            ("b", &[("", Lost), ("c", Elected)]),
            ("c", &[("", Lost), ("c", Elected)]),
        ],
    },
    Case {
        name: "the transport reports the leader's end",
        happens: |net| net.kill("a", true),
        reported: &[
            ("b", &[("", Lost), ("?", Elected)]),
            ("c", &[("", Lost), ("?", Elected)]),
        ],
    },
    Case {
        name: "the leader leaves",
        happens: |net| net.order("a", Command::Leave),
        reported: &[
            ("b", &[("", Left), ("c", Transferred)]),
            ("c", &[("", Left), ("c", Transferred)]),
        ],
    },
    Case {
        name: "the leader may lead no longer",
        happens: |net| net.order("a", Command::SetEligible(false)),
        reported: &[
            ("a", &[("", Left), ("c", Transferred)]),
            ("b", &[("", Left), ("c", Transferred)]),
            ("c", &[("", Left), ("c", Transferred)]),
        ],
    },
    Case {
        name: "the leader hands over",
        happens: |net| net.order("a", Command::TransferLeadership(id("b"))),
        reported: &[
            ("a", &[("", Resigned), ("b", Transferred)]),
            ("b", &[("b", Transferred)]),
            ("c", &[("b", Transferred)]),
        ],
    },
    Case {
        name: "a follower sets another leader",
        happens: |net| net.order("b", Command::SetLeader(id("c"))),
        reported: &[
            ("a", &[("c", Assigned)]),
            ("b", &[("c", Assigned)]),
            ("c", &[("c", Assigned)]),
        ],
    },
    Case {
        name: "a joiner finds the leader",
        happens: |net| {
            net.start("z");
            net.enter("z", "b");
        },
        reported: &[("a", &[]), ("b", &[]), ("c", &[]), ("z", &[("a", Found)])],
    },
    Case {
        name: "a follower is cut off and comes back",
        happens: |net| {
            net.mute("b", true);
            net.run(ms(8000));
            net.mute("b", false);
        },
        reported: &[
            ("a", &[]),
            ("b", &[("", Lost), ("b", Elected), ("a", Found)]),
            ("c", &[]),
        ],
    },
    Case {
        name: "a lone leader meets a room",
        happens: |net| {
            net.start("z");
            net.run(ms(6000));
            net.enter("z", "a");
        },
        reported: &[("a", &[]), ("z", &[("z", Elected), ("a", Found)])],
    },
    Case {
        name: "the leader is cut off from all",
        happens: |net| {
            net.mute("a", true);
            net.run(ms(4000));
            net.mute("a", false);
        },
        reported: &[
            ("b", &[("", Lost), ("c", Elected)]),
            ("c", &[("", Lost), ("c", Elected)]),
        ],
    },
];

#[test]
fn every_change_of_the_leader_has_its_reason() {
    for case in CASES {
        let mut net = Net::room(&["a", "aa", "b", "c"]);
        (case.happens)(&mut net);
        net.run(ms(12_000));
        for (name, expected) in case.reported {
            let shown: Vec<_> = net
                .leader_changes(name)
                .into_iter()
                .map(|(leader, reason)| {
                    (
                        leader.map_or(String::new(), |id| id.as_str().to_owned()),
                        reason,
                    )
                })
                .collect();
            let fits = shown.len() == expected.len()
                && shown.iter().zip(*expected).all(|((who, why), expected)| {
                    (who == expected.0 || expected.0 == "?" && !who.is_empty())
                        && *why == expected.1
                });
            assert!(fits, "{}: {name} received {shown:?}", case.name);
        }
    }
}

#[test]
fn nothing_has_changed_before_the_first_leader() {
    let mut net = Net::new();
    net.start("a");
    assert_eq!(
        net.node("a").election().leadership().reason,
        LeaderReason::None
    );
}
