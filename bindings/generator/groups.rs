//! The groups of constants that are types of their own in the bindings.

use super::model::{Abi, Constant, Scalar};

/// The form of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An enum.
    Enum,
    /// An enum with a description of each number.
    Described,
    /// Numbers of functions that take integers: in C# constants, in Python an enum.
    Numbers,
    /// Numbers to be added, or of classic functions: in C# constants of a class, in Python of the module.
    Constants,
}

/// The constants with one prefix.
#[derive(Debug)]
pub(crate) struct Group {
    /// Without the underscore at its end.
    pub(crate) prefix: &'static str,
    pub(crate) class: &'static str,
    pub(crate) form: Form,
    /// The field of the ABI's structs that has one of these numbers.
    pub(crate) field: &'static str,
    pub(crate) meaning: &'static str,
}

const fn group(
    prefix: &'static str,
    class: &'static str,
    form: Form,
    field: &'static str,
    meaning: &'static str,
) -> Group {
    Group {
        prefix,
        class,
        form,
        field,
        meaning,
    }
}

pub(crate) const GROUPS: [Group; 31] = {
    use Form::{Constants, Described, Enum, Numbers};
    [
        group("EVENT", "EventKind", Enum, "kind", "The kind of an event."),
        group(
            "LEFT",
            "LeftReason",
            Described,
            "",
            "The reason for which a member is gone.",
        ),
        group(
            "LEADER",
            "LeaderReason",
            Described,
            "",
            "The reason for a change of the leader.",
        ),
        group(
            "END",
            "EndReason",
            Described,
            "",
            "The reason for which the room is over for this member.",
        ),
        group(
            "DROPPED",
            "DroppedDirection",
            Enum,
            "",
            "The direction of messages that this member has dropped.",
        ),
        group(
            "RESET",
            "ResetReason",
            Described,
            "",
            "The reason for which a host begins anew with the room's state.",
        ),
        group(
            "TRANSFER",
            "TransferOutcome",
            Described,
            "",
            "The outcome of a transfer.",
        ),
        group(
            "FOUND",
            "FoundBy",
            Enum,
            "",
            "The way in which the library found a member.",
        ),
        group(
            "MEMBER",
            "MemberState",
            Described,
            "",
            "The state of a member of a seeded cluster.",
        ),
        group(
            "PEER",
            "PeerStatus",
            Enum,
            "",
            "The state of the link to one member.",
        ),
        group(
            "PATH",
            "LinkPath",
            Enum,
            "path",
            "The path of the messages to one member.",
        ),
        group(
            "DELIVERY",
            "DeliveryMode",
            Enum,
            "delivery",
            "The delivery of a message.",
        ),
        group(
            "STRATEGY",
            "ElectionStrategy",
            Enum,
            "strategy",
            "The election strategy of a room.",
        ),
        group(
            "ENTRY",
            "RoomEntry",
            Enum,
            "entry",
            "The entry of a member into its room.",
        ),
        group(
            "HOST_MODE",
            "HostMode",
            Enum,
            "host_mode",
            "Whether one fixed member leads.",
        ),
        group(
            "TOPOLOGY",
            "Topology",
            Enum,
            "topology",
            "The links between members.",
        ),
        group(
            "PATHS",
            "RoomPaths",
            Enum,
            "paths",
            "The paths that a member uses.",
        ),
        group(
            "PORT_MAPPING",
            "PortMapping",
            Enum,
            "port_mapping",
            "Whether a member asks its router for a port.",
        ),
        group(
            "DISCOVERY",
            "DiscoveryMode",
            Enum,
            "discovery_mode",
            "Discovery of members in the local network.",
        ),
        group(
            "QUORUM",
            "QuorumPolicy",
            Enum,
            "quorum_policy",
            "The members whose majority elects a leader.",
        ),
        group(
            "MERGE",
            "MergePolicy",
            Enum,
            "merge_policy",
            "The leader that stays when two parts of a room merge.",
        ),
        group(
            "AUTHORITY",
            "SetLeaderAuthority",
            Enum,
            "set_leader_authority",
            "Members that may name the leader.",
        ),
        group(
            "RECOVERY",
            "ManualOverrideRecovery",
            Enum,
            "manual_override_recovery",
            "Behaviour when a leader that was set by hand is lost.",
        ),
        group(
            "DISPATCH",
            "DispatchMode",
            Enum,
            "dispatch_mode",
            "The thread that runs the callbacks.",
        ),
        group(
            "BROWSE",
            "ListChange",
            Enum,
            "change",
            "An event of a room in the list of a browser.",
        ),
        group(
            "SEEDED_PROFILE",
            "SeededProfile",
            Enum,
            "",
            "Intervals of a seeded cluster.",
        ),
        group(
            "SEEDED",
            "SeededFlags",
            Constants,
            "",
            "Flags of the seeded strategy: a sum of these.",
        ),
        group(
            "PROPERTY",
            "PropertyFlags",
            Constants,
            "",
            "Flags of a property: a sum of these.",
        ),
        group(
            "GOSSIP",
            "GossipFlags",
            Constants,
            "",
            "Flags of the gossip strategy.",
        ),
        group("LOG", "LogLevel", Numbers, "", "The verbosity of the log."),
        group(
            "RECONNECT",
            "ReconnectStatus",
            Constants,
            "",
            "The progress that the classic reconnect callback reports.",
        ),
    ]
};

impl Group {
    /// The meaning of -1, which functions return in place of one of these numbers.
    pub(crate) fn unknown(&self) -> Option<&'static str> {
        match self.class {
            "PeerStatus" => Some("There is no such peer."),
            "MemberState" => Some("The room has no such states, or the text is no id."),
            _ => None,
        }
    }

    /// Its constants, with their names without the prefix.
    pub(crate) fn members<'a>(&'a self, abi: &'a Abi) -> Vec<(&'a str, &'a Constant)> {
        let members = abi
            .constants
            .iter()
            .filter(|constant| Self::of(constant).is_some_and(|found| found.prefix == self.prefix));
        members
            .map(|constant| (&constant.name[self.prefix.len() + 1..], constant))
            .collect()
    }

    /// The group of a constant: the one with the longest prefix. Result codes have none.
    pub(crate) fn of(constant: &Constant) -> Option<&'static Self> {
        let matching = GROUPS.iter().filter(|group| {
            let rest = constant.name.strip_prefix(group.prefix);
            !constant.is_code && rest.is_some_and(|rest| rest.starts_with('_'))
        });
        matching.max_by_key(|group| group.prefix.len())
    }

    /// The group with this prefix, which may end with an underscore.
    pub(crate) fn with_prefix(prefix: &str) -> Option<&'static Self> {
        let prefix = prefix.trim_end_matches('_');
        GROUPS.iter().find(|group| group.prefix == prefix)
    }

    /// The enum whose numbers a field of a struct has, if they are of the same width.
    pub(crate) fn of_field(abi: &Abi, field: &str, kind: Scalar) -> Option<&'static Self> {
        let group = GROUPS
            .iter()
            .find(|group| !group.field.is_empty() && group.field == field)?;
        let (_, first) = *group.members(abi).first()?;
        (first.kind == kind).then_some(group)
    }
}
