//! One server of the fleet, as the coordinator knows it.

use std::collections::BTreeMap;

use quorate_types::cost::ResourceVector;
use quorate_types::{Epoch, GroupId, ServerId};
use serde::{Deserialize, Serialize};

use super::command::{Digest, JoinTokenTerms, Registration};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    pub server_id: ServerId,
    pub name: String,
    pub address: String,
    pub region: String,
    pub failure_domain: Option<String>,
    pub capacity: ResourceVector,
    /// Takes replacements of failed replicas only.
    pub auxiliary: bool,
    pub credential_digest: Digest,
    /// Random per start of the process.
    pub incarnation: String,
    pub version: String,
    /// Has its lease. Whether it is connected just now is not part of the state.
    pub alive: bool,
    pub storage_fault: Option<String>,
    /// Groups whose data it may still hold though it belongs to them no more, with the epoch that
    /// excluded it: told to drop them when it is there, and until it says that it did.
    pub to_drop: BTreeMap<GroupId, Epoch>,
    pub registered_at_ms: u64,
    pub failed_at_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinToken {
    pub terms: JoinTokenTerms,
    /// Who used it, and in which process.
    pub used_by: Option<(ServerId, String)>,
}

const NAME_CHARS_MAX: usize = 64;
const ADDRESS_CHARS_MAX: usize = 255;
const INCARNATION_CHARS_MAX: usize = 64;
/// Larger claims are mistakes in units, and would overflow sums over a fleet.
const CAPACITY_MAX: ResourceVector = ResourceVector {
    cpu: 4_096.0,
    network_bytes_per_s: 1e12,
    storage_io_per_s: 1e9,
};

impl Registration {
    /// What is wrong with the fields, for the operator of the server.
    pub fn problem(&self) -> Option<String> {
        let label = |text: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.chars().all(allowed)
        };
        if !label(&self.name) {
            return Some("name must have 1 to 64 letters, digits, '-', '_' or '.'".into());
        }
        if !label(&self.region) || !self.failure_domain.as_deref().is_none_or(label) {
            return Some(
                "region and failure_domain must have 1 to 64 letters, digits, '-', '_' or '.'".into(),
            );
        }
        let port = self.address.rsplit_once(':').and_then(|(host, port)| {
            let port: u16 = port.parse().ok()?;
            (!host.is_empty() && port > 0).then_some(port)
        });
        if port.is_none() || self.address.len() > ADDRESS_CHARS_MAX {
            return Some(format!(
                "address must be host:port where clients reach the server, not {:?}",
                self.address
            ));
        }
        if self.incarnation.is_empty() || self.incarnation.len() > INCARNATION_CHARS_MAX {
            return Some("incarnation must have 1 to 64 characters".into());
        }
        let (own, most) = (self.capacity.to_array(), CAPACITY_MAX.to_array());
        let bounded = self.capacity.is_valid() && (0..3).all(|i| own[i] <= most[i]);
        if !bounded || self.capacity.cpu <= 0.0 || self.capacity.network_bytes_per_s <= 0.0 {
            let most = format!("{} cores, 1e12 bytes/s, 1e9 operations/s", CAPACITY_MAX.cpu);
            return Some(format!(
                "capacity must be above 0 (storage IO may be 0), and at most {most}"
            ));
        }
        None
    }
}
