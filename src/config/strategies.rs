//! The settings of the strategies, and the rules of each for the other settings.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Config, ConfigError, Secret};
use crate::core::election::etcd::{EtcdConfig, EtcdRules};
use crate::core::election::seeded::Seeding;
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy};
use crate::target::{parse_pasted_target, parse_target};

/// Most addresses of seeds.
pub const MAX_SEEDS: usize = 32;
/// Most endpoints of an etcd cluster.
pub const MAX_ETCD_ENDPOINTS: usize = 16;
/// Longest prefix of an etcd cluster's keys, in bytes.
pub const MAX_ETCD_PREFIX_BYTES: usize = 256;
/// Longest address that a leader publishes through etcd, in bytes.
pub const MAX_ETCD_ADDRESS_BYTES: usize = 256;
/// Shortest and longest time to live of a lease, in seconds. A server with its defaults grants no shorter one.
pub const ETCD_TTL_SECONDS: RangeInclusive<u64> = 2..=86_400;
/// Longest wait for an answer of etcd.
const MAX_ETCD_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The options of the etcd strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// Settings of the election. Its `address` may be empty: then clients read the first of this member's addresses.
    pub election: EtcdConfig,
    /// Access to the cluster.
    pub settings: EtcdSettings,
}

impl Etcd {
    /// The strategy with these options. Members with another prefix elect another leader, and are refused.
    pub fn strategy(&self) -> Strategy {
        let digest = Sha256::digest(self.election.prefix.as_bytes());
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&digest[..8]);
        Strategy::Etcd(EtcdRules {
            prefix: u64::from_be_bytes(prefix),
        })
    }

    /// Timeout of a request, for leases of length `ttl`: several requests fit into one lease.
    pub fn request_timeout(ttl: Duration) -> Duration {
        (ttl / 3).min(MAX_ETCD_REQUEST_TIMEOUT)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Self { election, settings } = self;
        let endpoints = settings.endpoints.len();
        if endpoints == 0 || endpoints > MAX_ETCD_ENDPOINTS {
            return Err(ConfigError::EtcdEndpoints { endpoints });
        }
        let mut encrypted = 0;
        for endpoint in &settings.endpoints {
            let unusable = |fault| ConfigError::EtcdEndpoint {
                endpoint: endpoint.clone(),
                fault,
            };
            let server = match endpoint.split_once("://") {
                Some(("http", server)) => server,
                Some(("https", server)) => {
                    encrypted += 1;
                    server
                }
                _ => {
                    return Err(unusable(
                        "does not begin with http:// or https://".to_owned(),
                    ));
                }
            };
            if server.contains(['/', '?', '#', '@']) {
                return Err(unusable("has more than a host and a port".to_owned()));
            }
            parse_target(server).map_err(|error| unusable(error.fault.to_string()))?;
        }
        if encrypted != 0 && encrypted != endpoints {
            return Err(ConfigError::EtcdMixedEndpoints);
        }
        check_prefix(&election.prefix)?;
        let seconds = election.ttl.as_secs();
        if !ETCD_TTL_SECONDS.contains(&seconds) {
            return Err(ConfigError::EtcdTtl { seconds });
        }
        let address = &election.address;
        if address.len() > MAX_ETCD_ADDRESS_BYTES || address.contains(char::is_control) {
            return Err(ConfigError::EtcdAddress {
                address: address.clone(),
            });
        }
        let file = match (&settings.ca_file, &settings.identity) {
            (Some(_), _) => Some("etcd.ca_file"),
            (None, Some(_)) => Some("etcd.cert_file"),
            (None, None) => None,
        };
        match file {
            Some(field) if encrypted == 0 => Err(ConfigError::EtcdFileWithoutTls { field }),
            _ => Ok(()),
        }
    }
}

/// The library itself adds a slash to the prefix: without one the keys of "test" would also be keys of "testa" (A4.1).
/// A slash at either end would make two slashes of one, and so other keys for a prefix that looks the same.
fn check_prefix(prefix: &str) -> Result<(), ConfigError> {
    let len = prefix.len();
    let fault = if len == 0 || len > MAX_ETCD_PREFIX_BYTES {
        "is too short or too long"
    } else if prefix.contains(char::is_control) {
        "contains a control character"
    } else if prefix.starts_with('/') || prefix.ends_with('/') {
        "begins or ends with a slash, and the library adds the slash that belongs behind it"
    } else {
        return Ok(());
    };
    Err(ConfigError::EtcdPrefix {
        prefix: prefix.to_owned(),
        fault,
    })
}

/// Access of this member to its etcd cluster. Files are read when the room opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// The servers of the cluster, 1 to [`MAX_ETCD_ENDPOINTS`], each `http://host:port` or `https://host:port`.
    pub endpoints: Vec<String>,
    /// The file with the certificates (PEM) that sign those of the servers; `None` is the system's set of trusted
    /// certificates.
    pub ca_file: Option<PathBuf>,
    /// The certificate that identifies this client to servers that ask for one.
    pub identity: Option<EtcdIdentity>,
    /// The login of this client, if the cluster has users.
    pub login: Option<EtcdLogin>,
    /// Timeout of a request. A watch has the same timeout for its beginning.
    pub request_timeout: Duration,
}

/// A client's certificate and its key, as files (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdIdentity {
    /// The certificate, with the chain between it and the servers' CA.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

/// A user of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdLogin {
    /// The name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Config {
    pub(super) fn check_gossip(&self) -> Result<(), ConfigError> {
        self.windows.check()?;
        if !matches!(self.strategy, Strategy::Gossip { .. }) {
            return Ok(());
        }
        if self.priority != 0 {
            return Err(ConfigError::PriorityWithGossip {
                priority: self.priority,
            });
        }
        if self.quorum.is_static() {
            return Err(ConfigError::StaticQuorumWithGossip);
        }
        Ok(())
    }

    pub(super) fn check_seeded(&self) -> Result<(), ConfigError> {
        let Strategy::Seeded(rules) = self.strategy else {
            return match self.seeding == Seeding::default() {
                true => Ok(()),
                false => Err(ConfigError::SeededWithoutStrategy),
            };
        };
        rules.intervals.check()?;
        if self.priority != 0 {
            return Err(ConfigError::PriorityWithSeeded {
                priority: self.priority,
            });
        }
        if !self.eligible {
            return Err(ConfigError::NotEligibleWithSeeded);
        }
        if !self.quorum.is_static() {
            return Err(ConfigError::SeededWithoutRoster);
        }
        let seeds = self.seeding.seeds.len();
        if seeds == 0 || seeds > MAX_SEEDS {
            return Err(ConfigError::Seeds { seeds });
        }
        for seed in &self.seeding.seeds {
            parse_pasted_target(seed)?;
        }
        Ok(())
    }

    pub(super) fn check_etcd(&self) -> Result<(), ConfigError> {
        let etcd = match (self.strategy, &self.etcd) {
            (Strategy::Etcd(_), Some(etcd)) => etcd,
            (Strategy::Etcd(_), None) => return Err(ConfigError::EtcdWithoutOptions),
            (_, Some(_)) => return Err(ConfigError::EtcdWithoutStrategy),
            (_, None) => return Ok(()),
        };
        if self.priority != 0 {
            return Err(ConfigError::PriorityWithEtcd {
                priority: self.priority,
            });
        }
        if self.merge_policy != MergePolicy::default() {
            return Err(ConfigError::EtcdWithMergePolicy {
                merge_policy: self.merge_policy,
            });
        }
        if self.authority != Authority::default() {
            return Err(ConfigError::EtcdWithAuthority {
                authority: self.authority,
            });
        }
        let host_mode = self.host_mode;
        if host_mode != HostMode::Off {
            return Err(ConfigError::EtcdWithHost { host_mode });
        }
        if self.quorum.is_static() {
            return Err(ConfigError::StaticQuorumWithEtcd);
        }
        etcd.check()
    }

    pub(super) fn check_quorum(&self) -> Result<(), ConfigError> {
        let seeded = matches!(self.strategy, Strategy::Seeded(_));
        if !self.quorum.is_static() {
            return match self.state_directory {
                Some(_) if matches!(self.strategy, Strategy::Etcd(_)) => Ok(()),
                Some(_) => Err(ConfigError::StateDirectoryWithoutStatic),
                None => Ok(()),
            };
        }
        let host_mode = self.host_mode;
        match (host_mode == HostMode::Off, seeded) {
            (true, _) => {}
            (false, true) => return Err(ConfigError::SeededWithHost { host_mode }),
            (false, false) => return Err(ConfigError::StaticQuorumWithHost { host_mode }),
        }
        match (self.state_directory.is_some(), seeded) {
            (true, _) => {}
            (false, true) => return Err(ConfigError::SeededWithoutStateDirectory),
            (false, false) => return Err(ConfigError::StaticWithoutStateDirectory),
        }
        Ok(())
    }
}
