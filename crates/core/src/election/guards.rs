//! The guards of the raft strategy, by name.
//!
//! Every guard is on in a room, and the library has no switch for them. The laboratory (`tests/sim`) compiles the core
//! with switches, turns one guard off at a time and shows the fault that follows. A guard whose absence shows no fault
//! is not needed. `docs/elections.md` explains the guards.

/// A switch for each guard under the feature `laboratory`, and none without.
macro_rules! guards {
    ($($(#[$text:meta])+ $guard:ident,)+) => {
        /// The active guards.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Guards {
            $($(#[$text])+ #[cfg(feature = "laboratory")] pub $guard: bool,)+
        }

        impl Guards {
            /// All of them, as in every room.
            pub const ALL: Self = Self {
                $(#[cfg(feature = "laboratory")] $guard: true,)+
            };

            $(
                $(#[$text])+
                #[cfg(feature = "laboratory")]
                pub(crate) const fn $guard(self) -> bool {
                    self.$guard
                }

                $(#[$text])+
                #[cfg(not(feature = "laboratory"))]
                pub(crate) const fn $guard(self) -> bool {
                    true
                }
            )+
        }
    };
}

guards! {
    /// G1: a leader whose end is known is replaced without waiting for a whole timeout.
    succession,
    /// G2: a node asks whether a campaign would succeed before it raises its term.
    pre_vote,
    /// G3: of two nodes, an answer that names a living leader stops an attempt.
    veto,
    /// G4: no vote within the lease of a leader that was heard directly.
    lease,
    /// G5: the electorate of a campaign is fixed when it begins.
    frozen_electorate,
    /// G6: a leader resigns if a majority does not answer it.
    check_quorum,
    /// G7: a node answers a claim that is older than its own record.
    nack,
    /// G8: a candidate steps down for the leader of its own term.
    candidate_concedes,
    /// G9: a node that just started does not vote before it knows the room; messages of another incarnation are dropped.
    restart_grace,
    /// G10: followers obey the order of records, too.
    follower_order,
    /// G11: every decision uses the whole present membership.
    fresh_view,
    /// G12: one order over all claims, assignments included.
    record_order,
    /// G13: every voter has a slot of its own in the range of timeouts.
    rank_slots,
    /// G13: of two nodes that ask for pre-votes at the same time, the preferred one goes on.
    rivals_yield,
    /// G14: a failed round is repeated soon.
    fast_retry,
    /// G15: timeouts grow with the round trips of the room.
    adaptive_timeouts,
    /// G16: a message must name its sender where it names a voter, a candidate or a leader.
    authenticated_names,
    /// C4: adopting an assignment is the vote of its term.
    assignment_takes_vote,
    /// G3: a report of a leader that was not heard since its silence began here is no veto.
    stale_vetoes,
    /// G17: a process that stood still probes its peers before it loses them.
    late_probes,
    /// G17: a silent leader keeps its link while the voters are asked.
    doubts,
    /// G17: a vote ends the doubt: the voter does not return to the silent leader.
    votes_end_doubts,
    /// A closed port is believed only after a ping was refused, too.
    proven_refusals,
    /// C8: with a static quorum, term and vote are on disk before they are sent.
    persistence,
}

impl Default for Guards {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(not(feature = "laboratory"))]
const _: () = assert!(size_of::<Guards>() == 0, "the library has no switch");
