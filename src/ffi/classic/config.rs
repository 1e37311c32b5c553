//! The 44-byte configuration of the classic ABI.

use std::time::Duration;

use crate::config::{Config, ConfigError, DiscoveryMode, ManualOverrideRecovery};
use crate::ffi::growing::bytes;

/// Settings for InitializeNetworkWithConfig: always 44 bytes. Set every field; its default is in
/// brackets. A field must be above 0 unless its text allows 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct NetworkConfigFFI {
    /// Longest wait between two dials of a lost peer, in milliseconds [30000]. At least
    /// reconnect_initial_ms. In the first minute after a loss the waits are shorter
    /// (docs/life-of-a-peer.md, "Reconnection").
    pub reconnect_max_ms: u32,
    /// Payloads longer than this, in bytes, are compressed if that saves at least a quarter [512].
    /// 0 tries every payload.
    pub compression_threshold: u32,
    /// Longest message to send or accept, in bytes [262144]. Between two peers the smaller of both
    /// values applies.
    pub max_message_size: u32,
    /// Time between two heartbeats, in milliseconds [500].
    pub heartbeat_interval_ms: u16,
    /// Shortest time without a leader before an election, in milliseconds [1500]. Above
    /// heartbeat_interval_ms, at most election_timeout_max_ms. If it is below the product of
    /// heartbeat_interval_ms and heartbeat_timeout_multiplier, the library uses that product, and
    /// raises the longest time by the same amount.
    pub election_timeout_min_ms: u16,
    /// Longest time without a leader before an election, in milliseconds [3000].
    pub election_timeout_max_ms: u16,
    /// Wait before the first dial of a lost peer, in milliseconds [1000]. It doubles with each
    /// failed dial.
    pub reconnect_initial_ms: u16,
    /// Longest time without an answer after which a ConnectToPeer ends, in milliseconds [5000].
    /// Each step that gets an answer renews it, up to three times this in all; the first is the
    /// lookup of a host name.
    pub handshake_timeout_ms: u16,
    /// Longest time that a peer's library may read nothing before this one drops the link, in
    /// milliseconds [5000].
    pub write_timeout_ms: u16,
    /// Most messages queued for one peer [128]. A send beyond that returns MMN_SEND_QUEUE_FULL.
    pub send_queue_capacity: u16,
    /// Most messages queued for the host's Receive callback [256]. Beyond that, senders wait.
    pub incoming_queue_capacity: u16,
    /// Most other members connected at a time [64].
    pub max_connections: u16,
    /// No effect: QUIC needs no TCP keep-alive [60].
    pub keepalive_time_secs: u16,
    /// No effect: QUIC needs no TCP keep-alive [10].
    pub keepalive_interval_secs: u16,
    /// UDP port of multicast discovery in the local network [15353]. 0 turns it off.
    pub mdns_port: u16,
    /// Heartbeat intervals of silence after which a peer is lost [3].
    pub heartbeat_timeout_multiplier: u8,
    /// No effect: QUIC needs no TCP keep-alive [3].
    pub keepalive_retries: u8,
    /// In centralized mode, whether the leader relays each broadcast to all members but its origin:
    /// 0 no, else yes [1].
    pub centralized_auto_forward: u8,
    /// Whether this member campaigns to become the leader: 0 no, else yes [1].
    pub auto_election_enabled: u8,
    /// Behaviour when a leader named by SetLeader is lost: 1 is MMN_RECOVERY_AUTO_ELECT, anything
    /// else MMN_RECOVERY_HOLD [0]. With MMN_AUTHORITY_LEADER_ONLY always the former.
    pub manual_override_recovery: u8,
    /// No effect: QUIC has no Nagle algorithm to switch off [1].
    pub tcp_nodelay: u8,
    /// Whether the library dials lost peers again: 0 no, else yes [1].
    pub auto_reconnect_enabled: u8,
    /// Dials of a lost peer before the library gives it up [0]. 0 is unlimited.
    pub reconnect_max_retries: u8,
}

impl Default for NetworkConfigFFI {
    fn default() -> Self {
        Self {
            reconnect_max_ms: 30_000,
            compression_threshold: 512,
            max_message_size: 262_144,
            heartbeat_interval_ms: 500,
            election_timeout_min_ms: 1500,
            election_timeout_max_ms: 3000,
            reconnect_initial_ms: 1000,
            handshake_timeout_ms: 5000,
            write_timeout_ms: 5000,
            send_queue_capacity: 128,
            incoming_queue_capacity: 256,
            max_connections: 64,
            keepalive_time_secs: 60,
            keepalive_interval_secs: 10,
            mdns_port: 15_353,
            heartbeat_timeout_multiplier: 3,
            keepalive_retries: 3,
            centralized_auto_forward: 1,
            auto_election_enabled: 1,
            manual_override_recovery: 0,
            tcp_nodelay: 1,
            auto_reconnect_enabled: 1,
            reconnect_max_retries: 0,
        }
    }
}

impl TryFrom<&NetworkConfigFFI> for Config {
    type Error = ConfigError;

    /// Fails with the first broken rule: zeros in the order of the fields, then the rules over two
    /// fields.
    fn try_from(ffi: &NetworkConfigFFI) -> Result<Self, ConfigError> {
        macro_rules! above_zero {
            ($($field:ident),*) => {
                $(if ffi.$field == 0 {
                    return Err(ConfigError::Zero { field: stringify!($field) });
                })*
            };
        }
        above_zero!(
            reconnect_max_ms,
            max_message_size,
            heartbeat_interval_ms,
            election_timeout_min_ms,
            election_timeout_max_ms,
            reconnect_initial_ms,
            handshake_timeout_ms,
            write_timeout_ms,
            send_queue_capacity,
            incoming_queue_capacity,
            max_connections,
            keepalive_time_secs,
            keepalive_interval_secs,
            heartbeat_timeout_multiplier,
            keepalive_retries
        );
        let millis = |value: u16| Duration::from_millis(value.into());
        let classic = Self::classic();
        Self {
            heartbeat_interval: millis(ffi.heartbeat_interval_ms),
            heartbeat_timeout_multiplier: ffi.heartbeat_timeout_multiplier.into(),
            election_timeout_min: millis(ffi.election_timeout_min_ms),
            election_timeout_max: millis(ffi.election_timeout_max_ms),
            max_message_size: bytes(ffi.max_message_size),
            compression_threshold: bytes(ffi.compression_threshold),
            handshake_timeout: millis(ffi.handshake_timeout_ms),
            write_timeout: millis(ffi.write_timeout_ms),
            send_queue_capacity: ffi.send_queue_capacity.into(),
            incoming_queue_capacity: ffi.incoming_queue_capacity.into(),
            max_connections: ffi.max_connections.into(),
            mdns_port: (ffi.mdns_port != 0).then_some(ffi.mdns_port),
            discovery: match ffi.mdns_port {
                0 => DiscoveryMode::Off,
                _ => classic.discovery,
            },
            auto_election_enabled: ffi.auto_election_enabled != 0,
            manual_override_recovery: match ffi.manual_override_recovery {
                1 => ManualOverrideRecovery::AutoElect,
                _ => ManualOverrideRecovery::Hold,
            },
            auto_reconnect_enabled: ffi.auto_reconnect_enabled != 0,
            reconnect_initial: millis(ffi.reconnect_initial_ms),
            reconnect_max: Duration::from_millis(ffi.reconnect_max_ms.into()),
            reconnect_max_retries: match ffi.reconnect_max_retries {
                0 => None,
                retries => Some(retries.into()),
            },
            centralized_auto_forward: ffi.centralized_auto_forward != 0,
            ..classic
        }
        .validated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(change: impl FnOnce(&mut NetworkConfigFFI)) -> String {
        let mut ffi = NetworkConfigFFI::default();
        change(&mut ffi);
        Config::try_from(&ffi)
            .expect_err("a broken rule")
            .to_string()
    }

    #[test]
    fn the_struct_has_44_bytes() {
        assert_eq!(size_of::<NetworkConfigFFI>(), 44);
        assert_eq!(align_of::<NetworkConfigFFI>(), 4);
    }

    #[test]
    fn its_defaults_are_the_classic_ones() {
        assert_eq!(
            Config::try_from(&NetworkConfigFFI::default()),
            Ok(Config::classic())
        );
    }

    #[test]
    fn r70_r75_the_first_broken_rule_is_reported() {
        assert_eq!(
            sentence(|ffi| ffi.max_connections = 0),
            "max_connections is 0; it must be at least 1"
        );
        assert!(
            sentence(|ffi| {
                ffi.keepalive_retries = 0;
                ffi.handshake_timeout_ms = 0;
            })
            .starts_with("handshake_timeout_ms is 0")
        );
        assert!(
            sentence(|ffi| {
                ffi.election_timeout_min_ms = 4000;
                ffi.keepalive_time_secs = 0;
            })
            .starts_with("keepalive_time_secs is 0")
        );
        assert!(
            sentence(|ffi| ffi.election_timeout_min_ms = 500)
                .starts_with("election_timeout_min_ms 500 is not above heartbeat_interval_ms 500;")
        );
        assert!(
            sentence(|ffi| ffi.election_timeout_min_ms = 3001)
                .starts_with("election_timeout_min_ms 3001 is above election_timeout_max_ms 3000;")
        );
        assert!(
            sentence(|ffi| ffi.reconnect_max_ms = 999)
                .starts_with("reconnect_initial_ms 1000 is above reconnect_max_ms 999;")
        );
    }

    #[test]
    fn optional_settings_may_be_zero_and_flags_follow_c() {
        let ffi = NetworkConfigFFI {
            compression_threshold: 0,
            mdns_port: 0,
            centralized_auto_forward: 0,
            auto_election_enabled: 0,
            manual_override_recovery: 0,
            tcp_nodelay: 0,
            auto_reconnect_enabled: 0,
            reconnect_max_retries: 0,
            ..NetworkConfigFFI::default()
        };
        let config = Config::try_from(&ffi).expect("allowed");
        assert_eq!(config.mdns_port, None);
        assert_eq!(config.discovery, DiscoveryMode::Off);
        assert!(!config.auto_election_enabled);
        let ffi = NetworkConfigFFI {
            auto_election_enabled: 2,
            manual_override_recovery: 2,
            reconnect_max_retries: 5,
            ..NetworkConfigFFI::default()
        };
        let config = Config::try_from(&ffi).expect("allowed");
        assert!(config.auto_election_enabled);
        assert_eq!(
            config.manual_override_recovery,
            ManualOverrideRecovery::Hold
        );
        assert_eq!(config.reconnect_max_retries, Some(5));
    }
}
