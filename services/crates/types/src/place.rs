//! Places in the coordinator's log, and digests of configurations: by both, a coordinator learns that its log is older than
//! what its servers have been told (`docs/internals/coordinator.md`, "An older copy of the log").

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::{GroupConfig, GroupId, Member, ServerId};
use crate::{Durability, Epoch};

/// A start of the coordinator on its log: random, so that two starts on copies of one log differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// A fleet: random, and made with its first coordinator. Coordinators of two fleets so tell one another apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FleetId(pub u64);

impl Display for FleetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for FleetId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// The end of the coordinator's log at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    pub run: RunId,
    /// Commands since the beginning of the log.
    pub position: u64,
}

/// Tells two configurations of one epoch apart. It covers what the members agree by, and nothing that may be spelt in
/// two ways; so releases that know further fields compute the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfigDigest(pub u64);

/// The epoch of a group, and the configuration that it means for whoever says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedEpoch {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub digest: ConfigDigest,
}

impl ConfigDigest {
    pub fn of(config: &GroupConfig) -> Self {
        let ids = |members: &[Member]| members.iter().map(|member| member.server_id).collect::<Vec<_>>();
        let mut digest = Fnv::default();
        digest.bytes(config.group_id.0.as_bytes());
        digest.word(config.epoch);
        digest.word(match config.durability {
            Durability::Persistent => 1,
            Durability::InMemory => 2,
        });
        digest.word(config.replication_degree.into());
        digest.word(config.min_replicas.into());
        digest.servers(&ids(&config.replicas));
        digest.servers(&ids(&config.learners));
        digest.word(config.beginning.map_or(0, |beginning| beginning.epoch));
        digest.word(config.beginning.map_or(0, |beginning| beginning.offset));
        Self(digest.0)
    }
}

/// FNV-1a, 64 bits. Its input comes from the coordinator alone, so nobody looks for collisions.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn word(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }

    fn servers(&mut self, servers: &[ServerId]) {
        self.word(servers.len() as u64);
        servers.iter().for_each(|server| self.word(server.0.into()));
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::access::Access;
    use crate::cost::{Budget, EntryCost};

    fn config() -> GroupConfig {
        let member = |id: u32| Member {
            server_id: ServerId(id),
            address: format!("127.0.0.1:{id}"),
        };
        GroupConfig {
            group_id: GroupId(Uuid::from_u128(7)),
            epoch: 3,
            durability: Durability::Persistent,
            replication_degree: 2,
            min_replicas: 1,
            replicas: vec![member(1), member(2)],
            learners: Vec::new(),
            budget: Budget::for_rate(
                1,
                1,
                EntryCost {
                    fixed_milli: [0; 3],
                    per_byte_milli: [0; 3],
                },
            ),
            retention_bytes: 1,
            retention_age_s: None,
            beginning: None,
            access: Access::Full,
            layout: crate::Layout::default(),
        }
    }

    /// Frozen: servers and coordinators of different releases compare digests.
    #[test]
    fn a_digest_is_the_same_in_every_release() {
        assert_eq!(ConfigDigest::of(&config()), ConfigDigest(DIGEST));
    }

    const DIGEST: u64 = 9_710_113_756_989_474_784;

    #[test]
    fn another_chain_or_epoch_is_another_digest_and_an_address_is_not() {
        let known = ConfigDigest::of(&config());
        let mut turned = config();
        turned.replicas.reverse();
        let mut learning = config();
        learning.learners = learning.replicas.split_off(1);
        let mut next = config();
        next.epoch += 1;
        for other in [&turned, &learning, &next] {
            assert_ne!(ConfigDigest::of(other), known, "{other:?}");
        }
        let mut moved = config();
        moved.replicas[0].address = "elsewhere:1".into();
        assert_eq!(ConfigDigest::of(&moved), known);
    }
}
