//! A server's `register` as the log has it, and the bounds of its fields.

use quorate_types::control::HeldGroup;
use quorate_types::cost::ResourceVector;
use quorate_types::limits::{HELD_GROUPS_MAX, INCARNATIONS_KEPT_MAX};
use quorate_types::machine::CPU_NAME_CHARS_MAX;
use quorate_types::{Machine, Room};
use serde::{Deserialize, Serialize};

use super::join_token::Digest;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    pub proof: Proof,
    pub name: String,
    pub address: String,
    pub incarnation: String,
    pub capacity: ResourceVector,
    #[serde(default, skip_serializing_if = "Room::is_unknown")]
    pub room: Room,
    pub failure_domain: Option<String>,
    pub region: String,
    pub held: Vec<HeldGroup>,
    #[serde(default)]
    pub previous_incarnations: Vec<String>,
    pub version: String,
    /// Older servers do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    JoinToken {
        digest: Digest,
        /// The digest of the credential that the server gets if it is accepted.
        credential_digest: Digest,
    },
    Credential(Digest),
}

const LABEL_CHARS_MAX: usize = 64;
const ADDRESS_CHARS_MAX: usize = 255;
const INCARNATION_CHARS_MAX: usize = 64;
const VERSION_CHARS_MAX: usize = 64;
/// Larger claims are mistakes in units, and would overflow sums over a fleet.
const CAPACITY_MAX: ResourceVector = ResourceVector {
    cpu: 4_096.0,
    network_bytes_per_s: 1e12,
    storage_io_per_s: 1e9,
};

/// An exabyte: the sum over a fleet stays far from what is taken for no limit.
const ROOM_BYTES_MAX: u64 = 1 << 60;

impl Registration {
    /// The first field at fault, in words for the operator of the server.
    pub fn problem(&self) -> Option<String> {
        self.label_problem()
            .or_else(|| self.address_problem())
            .or_else(|| self.process_problem())
            .or_else(|| self.capacity_problem())
            .or_else(|| self.room_problem())
    }

    fn label_problem(&self) -> Option<String> {
        if !is_label(&self.name) {
            return Some("name must have 1 to 64 letters, digits, '-', '_' or '.'".into());
        }
        if !is_label(&self.region) || !self.failure_domain.as_deref().is_none_or(is_label) {
            return Some(
                "region and failure_domain must have 1 to 64 letters, digits, '-', '_' or '.'".into(),
            );
        }
        None
    }

    fn address_problem(&self) -> Option<String> {
        let port = self.address.rsplit_once(':').and_then(|(host, port)| {
            let port: u16 = port.parse().ok()?;
            (!host.is_empty() && port > 0).then_some(port)
        });
        (port.is_none() || self.address.len() > ADDRESS_CHARS_MAX).then(|| {
            format!(
                "address must be host:port where clients reach the server, not {:?}",
                self.address.chars().take(ADDRESS_CHARS_MAX).collect::<String>()
            )
        })
    }

    fn process_problem(&self) -> Option<String> {
        if !is_incarnation(&self.incarnation)
            || !self.previous_incarnations.iter().all(|one| is_incarnation(one))
        {
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
        (self.held.len() > HELD_GROUPS_MAX)
            .then(|| format!("held must name at most {HELD_GROUPS_MAX} groups"))
    }

    fn capacity_problem(&self) -> Option<String> {
        let (own, most) = (self.capacity.to_array(), CAPACITY_MAX.to_array());
        let bounded = self.capacity.is_valid() && (0..3).all(|i| own[i] <= most[i]);
        (!bounded || self.capacity.cpu <= 0.0 || self.capacity.network_bytes_per_s <= 0.0).then(|| {
            let most = format!("{} cores, 1e12 bytes/s, 1e9 operations/s", CAPACITY_MAX.cpu);
            format!("capacity must be above 0 (storage IO may be 0), and at most {most}")
        })
    }

    fn room_problem(&self) -> Option<String> {
        let known = [self.room.memory_bytes, self.room.disk_bytes];
        let is_beyond = known.into_iter().flatten().any(|bytes| bytes > ROOM_BYTES_MAX);
        is_beyond.then(|| format!("room must be at most {ROOM_BYTES_MAX} bytes of memory and of disk"))
    }
}

fn is_label(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.len() <= LABEL_CHARS_MAX && text.chars().all(allowed)
}

fn is_incarnation(text: &str) -> bool {
    !text.is_empty() && text.len() <= INCARNATION_CHARS_MAX && text.chars().all(|c| c.is_ascii_graphic())
}
