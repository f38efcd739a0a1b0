//! Resources as the API shows them: of a server, and of the fleet.

use quorate_placement::{Amounts, Fleet};
use quorate_types::ServerId;
use quorate_types::cost::ResourceVector;
use serde::Serialize;

use crate::state::{CoordinatorState, Server};

/// `free` is still open to admission: nominal × safety factor − allocated, at least 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Capacity {
    pub nominal: ResourceVector,
    pub promisable: ResourceVector,
    pub allocated: ResourceVector,
    pub free: ResourceVector,
}

/// The sum over live servers that admission may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetView {
    #[serde(flatten)]
    pub total: Capacity,
    pub servers_alive: usize,
    pub safety_factor: f64,
    pub profile_version: String,
    pub profile_provisional: bool,
}

impl Capacity {
    pub fn of(state: &CoordinatorState, server: &Server) -> Self {
        let fleet = state.fleets().in_region(&server.region);
        let amounts = |of: fn(&Fleet, ServerId) -> Amounts| {
            fleet
                .map_or(Amounts::ZERO, |fleet| of(fleet, server.server_id))
                .to_resources()
        };
        Self {
            nominal: server.capacity,
            promisable: amounts(Fleet::promisable),
            allocated: amounts(Fleet::allocated),
            free: amounts(Fleet::free),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            nominal: self.nominal.plus(other.nominal),
            promisable: self.promisable.plus(other.promisable),
            allocated: self.allocated.plus(other.allocated),
            free: self.free.plus(other.free),
        }
    }
}

impl FleetView {
    pub fn of(state: &CoordinatorState) -> Self {
        let is_used = |server: &&Server| {
            let takes_part = server.alive && !server.auxiliary && server.drain.is_none();
            takes_part && state.refused_mismatch(server).is_none()
        };
        let servers = state.servers.values().filter(is_used);
        let total = servers
            .map(|server| Capacity::of(state, server))
            .fold(Capacity::default(), Capacity::plus);
        Self {
            total,
            servers_alive: state.servers_alive(),
            safety_factor: state.profile.safety_factor,
            profile_version: state.profile.version.clone(),
            profile_provisional: state.profile.provisional,
        }
    }
}
