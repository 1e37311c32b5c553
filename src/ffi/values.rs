//! The other numbers of the ABI: limits, and the values of options and of callback arguments.

/// Longest peer id, in bytes of UTF-8 without the NUL.
pub const MMN_MAX_PEER_ID_BYTES: i32 = 64;
/// Longest session id, in bytes of UTF-8 without the NUL.
pub const MMN_MAX_SESSION_ID_BYTES: i32 = 128;
/// Smallest message type that a host may use. The library reserves the smaller ones.
pub const MMN_MIN_MESSAGE_TYPE: u16 = 0x0100;

/// mmn_peer_status: the peer is connected.
pub const MMN_PEER_CONNECTED: i32 = 0;
/// PeerStatusCallback: the link to the peer is lost. mmn_peer_status never returns it.
pub const MMN_PEER_DISCONNECTED: i32 = 1;
/// mmn_peer_status: the link is lost and the library is dialling the peer again.
pub const MMN_PEER_RECONNECTING: i32 = 2;
/// mmn_peer_status: the peer is being admitted.
pub const MMN_PEER_HANDSHAKING: i32 = 3;

/// Log level: no records.
pub const MMN_LOG_OFF: i32 = 0;
/// Log level: errors.
pub const MMN_LOG_ERROR: i32 = 1;
/// Log level: also warnings.
pub const MMN_LOG_WARN: i32 = 2;
/// Log level: also events of the room.
pub const MMN_LOG_INFO: i32 = 3;
/// Log level: also their causes.
pub const MMN_LOG_DEBUG: i32 = 4;
/// Log level: also every detail.
pub const MMN_LOG_TRACE: i32 = 5;

/// manual_override_recovery: when a leader named by mmn_set_leader is lost, the room has no leader
/// until a host calls mmn_set_leader or mmn_set_auto_election. With MMN_AUTHORITY_LEADER_ONLY the room
/// elects all the same.
pub const MMN_RECOVERY_HOLD: u32 = 0;
/// manual_override_recovery: when a leader named by mmn_set_leader is lost, the room elects another.
pub const MMN_RECOVERY_AUTO_ELECT: u32 = 1;

/// discovery_mode: announce nothing and search for nothing.
pub const MMN_DISCOVERY_OFF: u32 = 0;
/// discovery_mode: announce this member, and report the members found.
pub const MMN_DISCOVERY_REPORT: u32 = 1;
/// discovery_mode: announce this member, and connect to the members found.
pub const MMN_DISCOVERY_CONNECT: u32 = 2;

/// dispatch_mode: a thread of the library runs the callbacks.
pub const MMN_DISPATCH_THREAD: u32 = 0;
/// dispatch_mode: the thread that calls mmn_poll runs the callbacks.
pub const MMN_DISPATCH_POLL: u32 = 1;

/// merge_policy: the leader of the larger side stays; of equal sides, the one that has led longer.
pub const MMN_MERGE_LARGEST_SIDE: u32 = 0;
/// merge_policy: the leader with the higher leadership record stays.
pub const MMN_MERGE_HIGHEST_TERM: u32 = 1;

/// set_leader_authority: every member may call mmn_set_leader.
pub const MMN_AUTHORITY_ANYONE: u32 = 0;
/// set_leader_authority: only the leader may call mmn_set_leader. When the leader is lost, the room
/// elects another regardless of manual_override_recovery, because no member could name one.
pub const MMN_AUTHORITY_LEADER_ONLY: u32 = 1;

/// host_mode: no fixed host; the room elects its leader.
pub const MMN_HOST_MODE_OFF: u32 = 0;
/// host_mode: this member is the room's fixed host. It leads from its start for as long as the room
/// lives.
pub const MMN_HOST_MODE_HOST: u32 = 1;
/// host_mode: another member is the room's fixed host.
pub const MMN_HOST_MODE_GUEST: u32 = 2;

/// topology: every member links to all members that it can reach.
pub const MMN_TOPOLOGY_MESH: u32 = 0;
/// topology: guests link to the fixed host alone, and to each other through it. Needs host_mode.
pub const MMN_TOPOLOGY_STAR: u32 = 1;

/// paths: this member uses every path, the best first: direct, over a relay, through a member.
pub const MMN_PATHS_ALL: u32 = 0;
/// paths: this member uses relays alone, so that no other member learns its address.
pub const MMN_PATHS_RELAYED: u32 = 1;

/// port_mapping: this member asks no router for anything.
pub const MMN_PORT_MAPPING_OFF: u32 = 0;
/// port_mapping: this member asks its router for a port that leads to it.
pub const MMN_PORT_MAPPING_ON: u32 = 1;

/// entry: this member looks for others, and leads when it finds none.
pub const MMN_ENTRY_ANY: u32 = 0;
/// entry: this member creates the room: it leads at once.
pub const MMN_ENTRY_CREATE: u32 = 1;
/// entry: this member joins a room that another one created. It neither leads nor admits any member
/// before it has followed a leader.
pub const MMN_ENTRY_JOIN: u32 = 2;

/// quorum_policy: a majority of the members that are connected when an election starts.
pub const MMN_QUORUM_DYNAMIC: u32 = 0;
/// quorum_policy: a majority of the voters in quorum_roster, connected or not.
pub const MMN_QUORUM_STATIC: u32 = 1;

/// strategy: the connected members elect the leader by votes.
pub const MMN_STRATEGY_RAFT: u32 = 0;
/// strategy: the lowest peer id that finds no leader leads, in every part of a partitioned room.
pub const MMN_STRATEGY_GOSSIP: u32 = 1;
/// strategy: a majority of the voters in quorum_roster elects the leader of a cluster that members
/// enter through seeds.
pub const MMN_STRATEGY_SEEDED: u32 = 2;
/// strategy: a cluster of etcd servers elects the leader. Only in the build for servers.
pub const MMN_STRATEGY_ETCD: u32 = 3;

/// strategy_flags of MMN_STRATEGY_SEEDED: at a first start, too, a seed waits for a majority.
pub const MMN_SEEDED_STRICT_START: u32 = 1;
/// strategy_flags of MMN_STRATEGY_SEEDED: no seed leads alone, however long the majority is
/// missing.
pub const MMN_SEEDED_NEVER_ALONE: u32 = 2;

/// mmn_default_seeded_options: intervals for machines in different places.
pub const MMN_SEEDED_PROFILE_WAN: u32 = 0;
/// mmn_default_seeded_options: intervals for machines on one local network.
pub const MMN_SEEDED_PROFILE_LAN: u32 = 1;

/// MmnSendOptions.delivery: each message arrives once, in the order of the calls with the same
/// receiver and channel. Channel 0 is that of the classic sends.
pub const MMN_DELIVERY_RELIABLE_ORDERED: u8 = 0;
/// MmnSendOptions.delivery: each message arrives once, in any order: no message waits for one that the
/// network lost.
pub const MMN_DELIVERY_RELIABLE_UNORDERED: u8 = 1;
/// MmnSendOptions.delivery: a message arrives once or is lost, in any order.
pub const MMN_DELIVERY_UNRELIABLE: u8 = 2;
/// MmnSendOptions.delivery: as MMN_DELIVERY_UNRELIABLE, and the receiver drops a message that is older
/// than the newest one that it has with the same sender and key. It remembers the 1024 most
/// recently used keys of a sender.
pub const MMN_DELIVERY_SEQUENCED: u8 = 3;
/// MmnSendOptions.flags for mmn_broadcast: the message goes to the peers whose queue has room.
pub const MMN_SEND_PARTIAL: u8 = 1;
/// MmnSendOptions.priority: lower than normal.
pub const MMN_PRIORITY_LOW: i8 = -1;
/// MmnSendOptions.priority: the default.
pub const MMN_PRIORITY_NORMAL: i8 = 0;
/// MmnSendOptions.priority: higher than normal.
pub const MMN_PRIORITY_HIGH: i8 = 1;
/// MmnSendOptions.priority: the highest.
pub const MMN_PRIORITY_HIGHEST: i8 = 2;

/// flags of mmn_kick: the peer's id and key are banned until mmn_unban or the room's end.
pub const MMN_KICK_BAN: u32 = 1;

/// strategy_flags of MMN_STRATEGY_GOSSIP: the lowest peer id always succeeds a lost leader.
pub const MMN_GOSSIP_STRICT_LOWEST: u32 = 1;

/// Longest room secret of MmnOptions, in bytes.
pub const MMN_MAX_SECRET_BYTES: u32 = 1024;
/// Length of an identity key that mmn_generate_identity_key makes, in bytes.
pub const MMN_IDENTITY_KEY_BYTES: i32 = 48;
/// Length of a room code that mmn_generate_room_code makes, in bytes, with its NUL.
pub const MMN_ROOM_CODE_BYTES: i32 = 15;
/// Most lines in MmnOptions.relays.
pub const MMN_MAX_RELAYS: u32 = 2;
/// Most lines in MmnOptions.turn.
pub const MMN_MAX_TURN_SERVERS: u32 = 4;
/// Most addresses in MmnSeededOptions.seeds.
pub const MMN_MAX_SEEDS: u32 = 32;
/// Most lines in MmnEtcdOptions.endpoints.
pub const MMN_MAX_ETCD_ENDPOINTS: u32 = 16;
/// Longest text for mmn_proclaim, in bytes of UTF-8 without the NUL.
pub const MMN_MAX_PROCLAIMED_BYTES: i32 = 4096;
/// Longest name of a lock, in bytes of UTF-8 without the NUL.
pub const MMN_MAX_LOCK_NAME_BYTES: i32 = 128;
/// Most voters in quorum_roster of MmnOptions.
pub const MMN_MAX_QUORUM_VOTERS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::{MAX_PEER_ID_BYTES, MAX_SESSION_ID_BYTES};
    use crate::ffi::browse::{
        MMN_DEFAULT_CARD_PORT, MMN_MAX_CARD_DATA_BYTES, MMN_MAX_CARD_NAME_BYTES,
    };
    use crate::ffi::transfers::{MMN_MAX_TRANSFER_BYTES, MMN_MAX_TRANSFER_TAG_BYTES};
    use crate::net::cards::DEFAULT_PORT;
    use crate::net::cards::card::MAX_DATA_BYTES;
    use crate::snapshot::PeerStatus;
    use crate::transfers::{MAX_TAG_BYTES, MAX_TRANSFER_BYTES};

    #[test]
    fn the_headers_numbers_are_the_librarys() {
        assert_eq!(
            MMN_MAX_SECRET_BYTES as usize,
            crate::config::MAX_SECRET_BYTES
        );
        assert_eq!(
            MMN_MAX_QUORUM_VOTERS as usize,
            crate::core::quorum::MAX_ROSTER_VOTERS
        );
        assert_eq!(
            MMN_IDENTITY_KEY_BYTES as usize,
            crate::room::IDENTITY_KEY_BYTES
        );
        assert_eq!(
            MMN_ROOM_CODE_BYTES as usize,
            crate::room_code::ROOM_CODE_LENGTH + 1
        );
        assert_eq!(MMN_MAX_RELAYS as usize, crate::core::path::MAX_RELAYS);
        assert_eq!(
            MMN_MAX_TURN_SERVERS as usize,
            crate::config::MAX_TURN_SERVERS
        );
        assert_eq!(MMN_MAX_SEEDS as usize, crate::config::MAX_SEEDS);
        assert_eq!(
            MMN_MAX_ETCD_ENDPOINTS as usize,
            crate::config::MAX_ETCD_ENDPOINTS
        );
        assert_eq!(
            MMN_MAX_PROCLAIMED_BYTES as usize,
            crate::room::MAX_PROCLAIMED_BYTES
        );
        assert_eq!(
            MMN_MAX_LOCK_NAME_BYTES as usize,
            crate::room::MAX_LOCK_NAME_BYTES
        );
        assert_eq!(PeerStatus::Connected as i32, MMN_PEER_CONNECTED);
        assert_eq!(PeerStatus::Disconnected as i32, MMN_PEER_DISCONNECTED);
        assert_eq!(PeerStatus::Reconnecting as i32, MMN_PEER_RECONNECTING);
        assert_eq!(PeerStatus::Handshaking as i32, MMN_PEER_HANDSHAKING);
        assert_eq!(MMN_MAX_PEER_ID_BYTES as usize, MAX_PEER_ID_BYTES);
        assert_eq!(MMN_MAX_SESSION_ID_BYTES as usize, MAX_SESSION_ID_BYTES);
        assert_eq!(MMN_MAX_CARD_NAME_BYTES as usize, MAX_PEER_ID_BYTES);
        assert_eq!(MMN_MAX_CARD_DATA_BYTES as usize, MAX_DATA_BYTES);
        assert_eq!(MMN_DEFAULT_CARD_PORT, u32::from(DEFAULT_PORT));
        assert_eq!(MMN_MAX_TRANSFER_BYTES as usize, MAX_TRANSFER_BYTES);
        assert_eq!(MMN_MAX_TRANSFER_TAG_BYTES as usize, MAX_TAG_BYTES);
    }
}
