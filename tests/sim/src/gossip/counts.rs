//! Counts of events in rooms that elect by gossip, summed over all runs.

use state_simulator::counters;

counters! {
    /// See the module's text.
    Counts:
    /// Sent proposals, one for each member.
    proposals,
    /// Sent declarations, one for each member.
    declarations,
    /// A process proposed itself for the first time after one sample of its membership.
    startups_in_one_sample,
    /// A process proposed itself for the first time after its membership had changed between two samples.
    startups_resampled,
    /// A process found a leader before it ever proposed itself.
    startups_with_a_leader,
    /// A peer won its election.
    elections_won,
    /// An election ended with its time and without a leader, because a lower id had proposed itself.
    elections_outbid,
    /// A declaration ended an election.
    elections_ended_by_a_leader,
    /// A follower proposed itself because another did.
    strict_joins,
    /// A leader made way for a lower one.
    leaders_made_way,
    /// A leader declared itself on a new link.
    new_links_of_leaders,
    /// A leader answered the declaration of a higher one.
    leaders_answered,
    /// A host yielded.
    yields,
    /// A yield ended because another member led.
    yields_ended_by_a_leader,
    /// A yield ended by its time.
    yields_expired,
    /// A leader lost its place because it may not lead any more.
    leaders_made_ineligible,
    /// The host made a request that needs votes.
    refusals,
    /// A second leader was shown while the first was still linked.
    leaders_shown_in_turn,
    /// A part of a room that was cut elected a leader of its own.
    parts_led,
    /// A part of a room without an eligible member had no leader.
    parts_without_voters,
    /// Of the leaders of two parts one remained when they merged.
    losers_of_a_cut,
    /// While the links came back, another member led for a while.
    leaders_between_links,
    /// The leader of a settled room crashed, and another followed.
    failovers,
    /// Election messages until then.
    failover_messages,
    /// The next leader was not the lowest eligible member.
    higher_winners,
    /// The lowest was required, and won.
    strict_winners,
    /// A member joined that had led alone, and was lower than the leader.
    joiners_that_won,
    /// A member with a lower id joined, and the leader stayed.
    joiners_that_followed,
    /// A yielder led again because no other member could.
    lone_yielders,
}
