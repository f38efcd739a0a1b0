//! One server of the fleet, as the coordinator knows it.

use std::collections::BTreeMap;

use quorate_placement::Amounts;
use quorate_types::control::DrainState;
use quorate_types::cost::ResourceVector;
use quorate_types::sla::ScarceResource;
use quorate_types::{Epoch, GroupId, Machine, Room, ServerId};
use serde::{Deserialize, Serialize};

use crate::command::{Digest, Registration};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    pub server_id: ServerId,
    pub name: String,
    pub address: String,
    pub region: String,
    pub failure_domain: Option<String>,
    pub capacity: ResourceVector,
    /// Memory and disk for replicas, if it says.
    #[serde(default, skip_serializing_if = "Room::is_unknown")]
    pub room: Room,
    /// Takes replacements of failed replicas only.
    pub auxiliary: bool,
    /// Empty once it was given up ([`Server::is_given_up`]).
    pub credential_digest: Digest,
    /// Random per start of the process.
    pub incarnation: String,
    pub version: String,
    /// The processor and cores it runs on, if it names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Has its lease. Whether it is connected just now is not part of the state.
    pub alive: bool,
    pub storage_fault: Option<String>,
    /// The fault has lasted: persistent replicas are to leave it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fault_lasts: bool,
    /// Its replicas are to leave it.
    #[serde(default)]
    pub drain: Option<Drain>,
    /// Why it counts as slow, while it does: it takes no new replicas.
    #[serde(default)]
    pub slow: Option<String>,
    /// The part of its capacity that it can really do, by its own measurements: by resource, in thousandths.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub estimated_permille: [u16; 3],
    /// Groups whose data it may still hold though it is no member any more, with the epoch that excluded it. It gets
    /// orders to drop them when that is safe, until it reports that it did.
    pub to_drop: BTreeMap<GroupId, Epoch>,
    pub registered_at_ms: u64,
    pub failed_at_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    pub since_ms: u64,
    /// Nothing was left on it from then on.
    pub drained_at_ms: Option<u64>,
    /// The resource that the waiting replicas lack elsewhere, as the last event named it.
    pub scarce: Option<ScarceResource>,
}

impl Server {
    /// A server that joins: alive, without replicas, and with `to_drop` of the name's former holder.
    pub fn joining(
        server_id: ServerId,
        registration: &Registration,
        credential_digest: &str,
        auxiliary: bool,
        to_drop: BTreeMap<GroupId, Epoch>,
        now_ms: u64,
    ) -> Self {
        Self {
            server_id,
            name: registration.name.clone(),
            address: registration.address.clone(),
            region: registration.region.clone(),
            failure_domain: registration.failure_domain.clone(),
            capacity: registration.capacity,
            room: registration.room,
            auxiliary,
            credential_digest: credential_digest.to_string(),
            incarnation: registration.incarnation.clone(),
            version: registration.version.clone(),
            machine: registration.machine.clone(),
            alive: true,
            storage_fault: None,
            fault_lasts: false,
            drain: None,
            slow: None,
            estimated_permille: whole(),
            to_drop,
            registered_at_ms: now_ms,
            failed_at_ms: None,
        }
    }

    /// Takes over what it registers with. A new process may have been given another disk, and has yet to show whether
    /// it is slow.
    pub fn return_with(&mut self, registration: &Registration) {
        let is_same_process = self.incarnation == registration.incarnation;
        self.name = registration.name.clone();
        self.address = registration.address.clone();
        self.failure_domain = registration.failure_domain.clone();
        self.capacity = registration.capacity;
        self.room = registration.room;
        self.incarnation = registration.incarnation.clone();
        self.version = registration.version.clone();
        self.machine = registration.machine.clone();
        self.alive = true;
        self.failed_at_ms = None;
        if !is_same_process {
            self.set_storage_fault(None);
            self.slow = None;
            self.estimated_permille = whole();
        }
    }

    /// The amounts that may be promised of it.
    pub fn promisable(&self, safety_factor: f64) -> Amounts {
        let real = |all: f64, permille: u16| all * f64::from(permille) / 1e3;
        let stated = self.capacity.to_array();
        let real = ResourceVector::from_array(std::array::from_fn(|i| {
            real(stated[i], self.estimated_permille[i])
        }));
        Amounts::of_capacity(real, self.room, safety_factor)
    }

    /// Another fault begins anew to last.
    pub fn set_storage_fault(&mut self, fault: Option<String>) {
        self.fault_lasts &= fault.is_some();
        self.storage_fault = fault;
    }

    /// Whether new replicas may be placed on it.
    pub fn takes_replicas(&self) -> bool {
        self.alive && self.storage_fault.is_none() && self.drain.is_none() && self.slow.is_none()
    }

    /// Whether its replicas should leave it.
    pub fn is_vacating(&self) -> bool {
        self.drain.is_some() || self.slow.is_some() || self.fault_lasts
    }

    /// It cannot come back: no credential belongs to it. Its entry stays, since its number must not become another's,
    /// and a server that joins under its name takes the entry over. No view shows it.
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

/// Nothing less was found out than what the operator stated.
fn whole() -> [u16; 3] {
    [1_000; 3]
}

fn is_whole(permille: &[u16; 3]) -> bool {
    *permille == whole()
}

/// The reason why a replica finds no place, for people.
pub fn lacking(scarce: ScarceResource) -> &'static str {
    match scarce {
        ScarceResource::Cpu => "no other server has enough CPU free for its replicas",
        ScarceResource::Network => "no other server has enough network free for its replicas",
        ScarceResource::StorageIo => "no other server has enough storage IO free for its replicas",
        ScarceResource::Memory => "no other server has enough memory free for its replicas",
        ScarceResource::Disk => "no other server has enough disk free for its replicas",
        ScarceResource::Groups => "every other server hosts as many groups as a server may",
        ScarceResource::Servers | ScarceResource::Shard | ScarceResource::Guarantee => {
            "there is no other server that its replicas could go to; join one"
        }
    }
}
