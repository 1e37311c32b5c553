//! Counts of events in rooms with walls, summed over all runs.

use state_simulator::counters;

counters! {
    /// Of rooms with walls.
    Counts:
    /// A member took a link that another one carries.
    links_carried,
    /// A direct link took the place of a carried one, at one end.
    links_taken_over,
    /// Two ends dialled at the same time, and the wall between them opened.
    walls_opened,
    /// An end of a carried link chose another carrier, or none.
    carriers_changed,
    /// An end of a carried link chose another carrier after a report that one does not carry.
    carriers_changed_after_reports,
    /// A carrier reported that it does not carry to a member.
    carriers_refused,
    /// A host was shown another path.
    paths_changed,
    /// A member got another address.
    rebindings,
    /// A carrier dropped packets one way, and the link was lost.
    links_lost_one_way,
    /// A carrier dropped packets one way, and both ends were linked without it meanwhile.
    one_way_drops_survived,
    /// Members dialled an unused address that a liar had named.
    victims_dialled,
    /// A member of the version before took a carried link.
    old_members_carried,
    /// A room settled in which a pair was linked by a carrier.
    rooms_settled_with_carriers,
    /// A room settled without walls that had had some.
    rooms_settled_without_walls,
}

counters! {
    /// Of rooms with relays.
    RelayCounts:
    /// A member entered a relay.
    entries,
    /// A relay fell.
    falls,
    /// A relay began to drop the packets from one place to another.
    drops,
    /// A member alone lost a relay.
    lost_alone,
    /// A member reported a relay that is silent to another one.
    silences_reported,
    /// A relay made a false report, or hid a member.
    lies,
    /// A member took a link over a relay.
    links,
    /// A link over a relay took the place of one that a member carries, at one end.
    taken_over_from_members,
    /// A direct link took the place of one over a relay, at one end.
    taken_over_by_direct_links,
    /// An end of a link chose another relay.
    moves,
    /// A node held members after the fall of a relay.
    members_held,
    /// A driver dialled a key that the room did not know.
    strangers_dialled,
    /// A room settled in which relays link a pair.
    rooms_settled_over_relays,
    /// A room settled in which all pairs count for each other, some of them over relays.
    rooms_joined_over_relays,
    /// A relay fell and was back within the grace, and no host noticed: of the three strategies.
    restarts_unnoticed_by_raft,
    restarts_unnoticed_by_gossip,
    restarts_unnoticed_by_seeded,
    /// A member alone lost the relay that carried its links, another one carried on, and no host noticed.
    lone_losses_unnoticed,
}
