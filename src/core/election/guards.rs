//! The guards of the raft strategy, by name, each with a switch.
//!
//! Every guard is on in a room. The laboratory (`tests/sim`) switches one off at a time and shows what it
//! then finds: a guard whose absence nobody can show is not needed. `docs/elections.md` explains them.

/// Which guards hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// G1: a leader whose end is known is replaced without waiting for a whole timeout.
    pub succession: bool,
    /// G2: a node asks whether a campaign would succeed before it raises its term.
    pub pre_vote: bool,
    /// G3: of two nodes, an answer that names a living leader stops an attempt.
    pub veto: bool,
    /// G4: no vote while a leader was heard directly.
    pub lease: bool,
    /// G5: the electorate of a campaign is fixed when it begins.
    pub frozen_electorate: bool,
    /// G6: a leader that a majority does not answer resigns.
    pub check_quorum: bool,
    /// G7: a claim that is older than what the receiver knows is answered.
    pub nack: bool,
    /// G8: a candidate steps down for the leader of its own term.
    pub candidate_concedes: bool,
    /// G9: a node that just started does not vote before it knows the room; messages of another life are dropped.
    pub restart_grace: bool,
    /// G10: followers go by the order of records, too.
    pub follower_order: bool,
    /// G11: every decision sees the whole present membership.
    pub fresh_view: bool,
    /// G12: one order over all claims, assignments included.
    pub record_order: bool,
    /// G13: every voter has a slot of its own in the range of timeouts.
    pub rank_slots: bool,
    /// G13: of two that ask for pre-votes at the same time, the preferred one goes on.
    pub rivals_yield: bool,
    /// G14: a failed round is repeated soon.
    pub fast_retry: bool,
    /// G15: timeouts grow with the round trips of the room.
    pub adaptive_timeouts: bool,
    /// G16: a message must name its sender where it names a voter, a candidate or a leader.
    pub authenticated_names: bool,
    /// C4: going by an assignment is the vote of its term.
    pub assignment_takes_vote: bool,
    /// C8: with a static quorum, term and vote are kept on disk before they are told.
    pub persistence: bool,
}

impl Guards {
    /// All of them: what every room has.
    pub const ALL: Self = Self {
        succession: true,
        pre_vote: true,
        veto: true,
        lease: true,
        frozen_electorate: true,
        check_quorum: true,
        nack: true,
        candidate_concedes: true,
        restart_grace: true,
        follower_order: true,
        fresh_view: true,
        record_order: true,
        rank_slots: true,
        rivals_yield: true,
        fast_retry: true,
        adaptive_timeouts: true,
        authenticated_names: true,
        assignment_takes_vote: true,
        persistence: true,
    };
}

impl Default for Guards {
    fn default() -> Self {
        Self::ALL
    }
}
