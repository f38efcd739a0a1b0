//! Resources as the API shows them: of a server, and of the fleet.

use quorate_placement::{Amounts, Fleet};
use quorate_types::cost::ResourceVector;
use quorate_types::{Room, ServerId};
use serde::Serialize;

use crate::state::{CoordinatorState, Server};

/// Rates, and room: `None` of memory or disk where a server does not say how much it has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Resources {
    #[serde(flatten)]
    pub rates: ResourceVector,
    #[serde(flatten)]
    pub room: Room,
}

impl Resources {
    fn of(amounts: Amounts) -> Self {
        Self {
            rates: amounts.to_resources(),
            room: amounts.room(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            rates: self.rates.plus(other.rates),
            room: self.room.plus(other.room),
        }
    }
}

/// `free` is still open to admission: nominal × safety factor − allocated, at least 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    pub nominal: Resources,
    pub promisable: Resources,
    pub allocated: Resources,
    pub free: Resources,
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
    /// Nothing, of which all is known.
    fn nothing() -> Self {
        let nothing = Resources::of(Amounts::ZERO);
        Self {
            nominal: nothing,
            promisable: nothing,
            allocated: nothing,
            free: nothing,
        }
    }

    pub fn of(state: &CoordinatorState, server: &Server) -> Self {
        let fleet = state.fleets().in_region(&server.region);
        let amounts = |of: fn(&Fleet, ServerId) -> Amounts| {
            Resources::of(fleet.map_or(Amounts::ZERO, |fleet| of(fleet, server.server_id)))
        };
        Self {
            nominal: Resources {
                rates: server.capacity,
                room: server.room,
            },
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
            .fold(Capacity::nothing(), Capacity::plus);
        Self {
            total,
            servers_alive: state.servers_alive(),
            safety_factor: state.profile.safety_factor,
            profile_version: state.profile.version.clone(),
            profile_provisional: state.profile.provisional,
        }
    }
}
