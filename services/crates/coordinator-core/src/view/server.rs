//! A server as the API shows it.

use quorate_types::control::{DrainState, EstimatedCapacity, LinkTransport};
use quorate_types::sla::ScarceResource;
use quorate_types::{GroupId, ServerId};
use serde::Serialize;

use super::capacity::Capacity;
use super::time::rfc3339;
use crate::state::{CoordinatorState, Drain, Server, lacking};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerView {
    pub server_id: ServerId,
    pub name: String,
    pub address: String,
    pub region: String,
    pub failure_domain: Option<String>,
    pub auxiliary: bool,
    pub alive: bool,
    pub storage_fault: Option<String>,
    pub version: String,
    pub resources: Capacity,
    /// Groups with a replica or a learner there.
    pub replicas: usize,
    /// Takes no new replicas, and its own leave it.
    pub draining: bool,
    pub drain: Option<DrainView>,
    /// Why it counts as slow, while it does.
    pub slow: Option<String>,
    /// Its cores and processor, if it names them.
    pub machine: Option<String>,
    /// How the cost profile in use differs from its machine or version, while it does. The operator chooses whether
    /// replicas are placed on it all the same (`--foreign-profile`).
    pub foreign: Option<String>,
    /// Whether replicas may be placed on it, if there is room; on an auxiliary server replacements only.
    pub takes_replicas: bool,
    /// How its links to other servers go, while it is connected here. Older servers do not say.
    pub links: Option<LinkTransport>,
    /// The capacity that it really has, by its own measurements, while it is connected here. Older servers do not say.
    pub estimated: Option<EstimatedCapacity>,
    pub registered_at: String,
    pub failed_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrainView {
    pub state: DrainState,
    pub since: String,
    pub drained_at: Option<String>,
    /// Replicas whose replacements learn, and replicas that wait.
    pub moving: usize,
    pub waiting: usize,
    /// The resource that replicas without a new server lack.
    pub scarce_resource: Option<ScarceResource>,
    /// A sentence for people on its progress, and on what it waits for.
    pub message: String,
}

impl ServerView {
    /// The fleet's servers, failed ones too; not those that were given up.
    pub fn all(state: &CoordinatorState) -> Vec<Self> {
        let known = state.servers.values().filter(|server| !server.is_given_up());
        known.map(|server| Self::of(state, server)).collect()
    }

    /// One of them.
    pub fn with_id(state: &CoordinatorState, id: ServerId) -> Option<Self> {
        let known = state.servers.get(&id).filter(|server| !server.is_given_up())?;
        Some(Self::of(state, known))
    }

    pub fn of(state: &CoordinatorState, server: &Server) -> Self {
        Self {
            server_id: server.server_id,
            name: server.name.clone(),
            address: server.address.clone(),
            region: server.region.clone(),
            failure_domain: server.failure_domain.clone(),
            auxiliary: server.auxiliary,
            alive: server.alive,
            storage_fault: server.storage_fault.clone(),
            version: server.version.clone(),
            resources: Capacity::of(state, server),
            replicas: state.groups.count_on(server.server_id),
            draining: server.drain.is_some(),
            drain: server
                .drain
                .as_ref()
                .map(|drain| DrainView::of(state, server, drain)),
            slow: server.slow.clone(),
            machine: server.machine.as_ref().map(ToString::to_string),
            foreign: state.mismatch(server),
            takes_replicas: state.takes_replicas(server),
            links: None,
            estimated: None,
            registered_at: rfc3339(server.registered_at_ms),
            failed_at: server.failed_at_ms.map(rfc3339),
        }
    }
}

impl DrainView {
    fn of(state: &CoordinatorState, server: &Server, drain: &Drain) -> Self {
        let replicas = state.groups.count_on(server.server_id);
        let is_moving = |id: &GroupId| state.groups[id].leaving == Some(server.server_id);
        let moving = state.groups.on(server.server_id).filter(is_moving).count();
        let waiting = replicas - moving;
        let message = match (drain.drained_at_ms, drain.scarce) {
            (Some(_), _) => "Drained: it holds no replica and may stop.".to_string(),
            (None, _) if !server.alive => {
                "Draining, and failed: its replicas are replaced elsewhere where there is room.".to_string()
            }
            (None, Some(scarce)) => {
                format!(
                    "{moving} replicas are moving, {waiting} wait: {}.",
                    lacking(scarce)
                )
            }
            (None, None) if replicas == 0 => {
                "No replica is left; leftover data on its disk is being dropped.".to_string()
            }
            (None, None) => format!("{moving} replicas are moving, {waiting} wait for their turn."),
        };
        Self {
            state: server.drain_state(),
            since: rfc3339(drain.since_ms),
            drained_at: drain.drained_at_ms.map(rfc3339),
            moving,
            waiting,
            scarce_resource: drain.scarce,
            message,
        }
    }
}
