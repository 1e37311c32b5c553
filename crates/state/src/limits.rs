//! Limits of the state layer.

use room_core::time::Duration;

/// Longest frame, in bytes.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;
/// Longest action, in bytes.
pub const MAX_ACTION_BYTES: usize = 16 * 1024;
/// Most changes of a property set.
pub const MAX_CHANGES: usize = 32;
/// Longest property set: keys, owners and values together, in bytes.
pub const MAX_CHANGES_BYTES: usize = 32 * 1024;
/// Longest key of a property, in bytes.
pub const MAX_KEY_BYTES: usize = 64;
/// Longest value of a property, in bytes.
pub const MAX_VALUE_BYTES: usize = 8 * 1024;
/// Most properties.
pub const MAX_PROPERTIES: usize = 1024;
/// Most bytes of all properties together: keys and values.
pub const MAX_PROPERTY_BYTES: usize = 512 * 1024;
/// Most properties of one owner.
pub const MAX_OWNED: usize = 128;
/// Most open requests of one author.
pub const MAX_OPEN_REQUESTS: usize = 256;
/// Most bytes of the open requests of one author.
pub const MAX_OPEN_BYTES: usize = 256 * 1024;
/// Most unconfirmed entries, and their bytes, at which a leader takes another request.
pub const MAX_UNCONFIRMED: u64 = 1024;
/// See [`MAX_UNCONFIRMED`].
pub const MAX_UNCONFIRMED_BYTES: usize = 1024 * 1024;
/// Most authors whose last number is kept.
pub const MAX_ROWS: usize = 1024;
/// How long an author's last number is kept after its departure, in milliseconds of the entries' time.
pub const ROW_LIFETIME_MS: u64 = 600_000;
/// Most members of a roster.
pub const MAX_ROSTER: usize = 128;
/// Most members in the room's tables.
pub const MAX_MEMBERS: usize = 256;
/// The openings that a Tip lists, the newest ones.
pub const MAX_OPENINGS: usize = 32;
/// Shortest wait for linked members that have not answered an opening, and the round trips that it lasts if that is longer.
pub const MIN_GATHERING: Duration = Duration::from_millis(300);
/// See [`MIN_GATHERING`].
pub const GATHERING_ROUND_TRIPS: u32 = 3;
/// A member that is silent for so long during an opening is set aside.
pub const SET_ASIDE_AFTER: Duration = Duration::from_secs(2);
/// How long openings wait for one member in vain, over all its links and processes, before it counts for nothing in them.
pub const WAIT_BUDGET: Duration = Duration::from_secs(10);
/// A member that sends its log at this rate, in bytes a second, costs nothing of that.
pub const SLOWEST_LOG: usize = 32 * 1024;
/// How long an opening waits for answers, if it can go on without them.
pub const LONGEST_GATHERING: Duration = Duration::from_secs(10);
/// A leader that waits for its members looks at its log once in a heartbeat interval. If it comes later than this after that, its
/// process stood still.
pub const MAX_LATE: Duration = Duration::from_millis(100);
/// Highest index in tables from another member: no room reaches it, and what follows does not overflow.
pub const MAX_INDEX: u64 = 1 << 53;
/// Bytes under way to one member.
pub const MAX_UNDER_WAY: usize = 256 * 1024;

/// Most bytes of a snapshot in one frame.
pub const PART_BYTES: usize = 60 * 1024;
/// Most parts of that length under way to one member.
pub const MAX_PARTS_UNDER_WAY: usize = 4;
/// Bytes of a snapshot that may be under way to one member however busy the line is.
pub const MIN_SNAPSHOT_BYTES_UNDER_WAY: usize = 4 * 1024;
/// A member that has sent no part of a snapshot for so long is not waited for: the next one is asked.
pub const ASK_NEXT_AFTER: Duration = Duration::from_secs(2);
/// How long the last one that could be asked is waited for, before the host begins with nothing.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// A snapshot whose parts stop for so long is given up, at both ends.
pub const PARTS_STALL_AFTER: Duration = Duration::from_secs(10);
/// Shortest time between two snapshots that a host is asked for.
pub const BETWEEN_SNAPSHOTS: Duration = Duration::from_secs(2);
/// How long a host may take to provide a snapshot, and how long its parts may take to arrive.
pub const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(120);
/// How often a member asks the same ones again, after the entries beside a snapshot became too many or a link was lost.
pub const MAX_SNAPSHOT_RESTARTS: u32 = 3;

/// Limits that a room sets itself; all of its members have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Confirmed entries that are kept, at most.
    pub tail_entries: u32,
    /// Bytes of confirmed entries that are kept, at most.
    pub tail_bytes: u32,
    /// Longest snapshot, in bytes.
    pub max_snapshot_bytes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tail_entries: 4096,
            tail_bytes: 4 << 20,
            max_snapshot_bytes: 8 << 20,
        }
    }
}
