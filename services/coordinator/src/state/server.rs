//! One server of the fleet, as the coordinator knows it.

use std::collections::BTreeMap;

use quorate_types::control::DrainState;
use quorate_types::cost::ResourceVector;
use quorate_types::limits::{HELD_GROUPS_MAX, INCARNATIONS_KEPT_MAX};
use quorate_types::machine::CPU_NAME_CHARS_MAX;
use quorate_types::sla::ScarceResource;
use quorate_types::{Epoch, GroupId, Machine, ServerId};
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
    /// Empty once it was given up ([`Server::is_given_up`]).
    pub credential_digest: Digest,
    /// Random per start of the process.
    pub incarnation: String,
    pub version: String,
    /// What it runs on, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Has its lease. Whether it is connected just now is not part of the state.
    pub alive: bool,
    pub storage_fault: Option<String>,
    /// Its replicas are to go elsewhere.
    #[serde(default)]
    pub drain: Option<Drain>,
    /// Why it counts as slow, while it does: it takes no new replicas.
    #[serde(default)]
    pub slow: Option<String>,
    /// Groups whose data it may still hold though it belongs to them no more, with the epoch that
    /// excluded it: told to drop them when it is there, and until it says that it did.
    pub to_drop: BTreeMap<GroupId, Epoch>,
    pub registered_at_ms: u64,
    pub failed_at_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    pub since_ms: u64,
    /// Nothing was left on it from then on.
    pub drained_at_ms: Option<u64>,
    /// What the replicas that still wait lack elsewhere, as last told by an event.
    pub scarce: Option<ScarceResource>,
}

impl Server {
    /// Whether new replicas may be placed on it.
    pub fn takes_replicas(&self) -> bool {
        self.alive && self.storage_fault.is_none() && self.drain.is_none() && self.slow.is_none()
    }

    /// It cannot come back: no credential is its. Its entry stays, as its number must not become another's, and as a
    /// server that joins under its name takes the entry over; it is shown to nobody.
    pub fn is_given_up(&self) -> bool {
        self.credential_digest.is_empty()
    }

    pub fn is_drained(&self) -> bool {
        self.drain
            .as_ref()
            .is_some_and(|drain| drain.drained_at_ms.is_some())
    }

    pub fn drain_state(&self) -> DrainState {
        match &self.drain {
            None => DrainState::None,
            Some(drain) if drain.drained_at_ms.is_none() => DrainState::Draining,
            Some(_) => DrainState::Drained,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinToken {
    pub terms: JoinTokenTerms,
    /// Who used it, and in which process.
    pub used_by: Option<(ServerId, String)>,
    #[serde(default)]
    pub revoked: bool,
}

const NAME_CHARS_MAX: usize = 64;
const ADDRESS_CHARS_MAX: usize = 255;
const INCARNATION_CHARS_MAX: usize = 64;
const VERSION_CHARS_MAX: usize = 64;
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
                self.address.chars().take(ADDRESS_CHARS_MAX).collect::<String>()
            ));
        }
        let word = |text: &str| {
            let most = INCARNATION_CHARS_MAX;
            !text.is_empty() && text.len() <= most && text.chars().all(|c| c.is_ascii_graphic())
        };
        if !word(&self.incarnation) || !self.previous_incarnations.iter().all(|one| word(one)) {
            return Some("an incarnation must have 1 to 64 visible ASCII characters".into());
        }
        if self.previous_incarnations.len() > INCARNATIONS_KEPT_MAX {
            return Some(format!(
                "previous_incarnations must be at most {INCARNATIONS_KEPT_MAX}"
            ));
        }
        let cpu = self.machine.as_ref().map(|machine| machine.cpu.as_str());
        if cpu
            .is_some_and(|cpu| cpu.chars().count() > CPU_NAME_CHARS_MAX || cpu.chars().any(char::is_control))
        {
            return Some("machine.cpu must have at most 128 visible characters".into());
        }
        if self.version.len() > VERSION_CHARS_MAX || !self.version.chars().all(|c| c.is_ascii_graphic()) {
            return Some("version must have at most 64 visible ASCII characters".into());
        }
        if self.held.len() > HELD_GROUPS_MAX {
            return Some(format!("held must name at most {HELD_GROUPS_MAX} groups"));
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
