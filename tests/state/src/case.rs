//! What a run is given: the room, and what happens in it.

use std::collections::BTreeSet;

use room_state::laboratory::{Rule, Switches};

/// A room and its fate.
#[derive(Debug, Clone)]
pub struct Case {
    /// Members at the start.
    pub members: usize,
    /// Whether the members of the start are the voters of a static room.
    pub is_static: bool,
    /// Whether the first member is the room's fixed host.
    pub is_hosted: bool,
    /// Whether processes die and start anew.
    pub restarts: bool,
    /// Entries that a log keeps behind the confirmed ones.
    pub tail_entries: u32,
    /// Whether little time passes, and little disturbs the members: a host that needs a snapshot may well get one.
    pub is_calm: bool,
    /// Whether hours pass.
    pub is_long: bool,
    /// Whether the voters of a static room may all lose what they hold.
    pub loses_all: bool,
    /// Steps of a run.
    pub steps: u32,
    /// Whether the first member sends anything.
    pub has_liar: bool,
    /// Broken rules, and small frames.
    pub switches: Switches,
}

impl Case {
    /// A room that grows, shrinks and splits.
    pub fn dynamic(members: usize) -> Self {
        Self {
            members,
            is_static: false,
            is_hosted: false,
            restarts: true,
            tail_entries: 4096,
            is_calm: false,
            is_long: false,
            loses_all: false,
            steps: 3000,
            has_liar: false,
            switches: Switches::default(),
        }
    }

    /// A room with a fixed list of voters.
    pub fn fixed(members: usize) -> Self {
        Self {
            is_static: true,
            ..Self::dynamic(members)
        }
    }

    /// A room with a fixed host.
    pub fn hosted(members: usize) -> Self {
        Self {
            is_hosted: true,
            ..Self::dynamic(members)
        }
    }

    /// This room, whose logs keep next to nothing: its hosts need snapshots, which come in small parts.
    pub fn forgetful(self) -> Self {
        Self {
            tail_entries: 3,
            switches: Switches {
                bytes_of_a_part: Some(100),
                ..self.switches.clone()
            },
            ..self
        }
    }

    /// This room, whose logs keep little, and whose hosts have the time for snapshots.
    pub fn calm(self) -> Self {
        Self {
            is_calm: true,
            tail_entries: 12,
            ..self
        }
    }

    /// This room for hours: authors that left long ago are forgotten.
    pub fn long(self) -> Self {
        Self {
            is_long: true,
            ..self
        }
    }

    /// This static room, whose voters may all lose what they hold.
    pub fn amnesiac(self) -> Self {
        Self {
            loses_all: true,
            ..self
        }
    }

    /// This room, of which one member sends anything.
    pub fn with_a_liar(self) -> Self {
        Self {
            has_liar: true,
            ..self
        }
    }

    /// This room, whose frames hold few entries.
    pub fn in_pieces(self) -> Self {
        Self {
            switches: Switches {
                entries_of_a_frame: Some(4),
                ..self.switches.clone()
            },
            ..self
        }
    }

    /// This room without a rule.
    pub fn without(self, rule: Rule) -> Self {
        Self {
            switches: Switches {
                broken: BTreeSet::from([rule]),
                ..self.switches.clone()
            },
            ..self
        }
    }
}
