//! What the API is shown. JSON shapes: `docs/internals/coordinator.md`.

use quorate_placement::Amounts;
use quorate_types::config::Role;
use quorate_types::control::DrainState;
use quorate_types::cost::ResourceVector;
use quorate_types::sla::ScarceResource;
use quorate_types::{Epoch, GroupId, Offset, ServerId, Sla};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::State;
use super::event::{Event, EventKind};
use super::group::{Group, GroupStatus};
use super::server::{Drain, Server};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupView {
    pub group_id: GroupId,
    pub project_id: Uuid,
    pub sla: Sla,
    pub status: GroupStatus,
    pub epoch: Epoch,
    /// Head first.
    pub replicas: Vec<ReplicaView>,
    pub learners: Vec<ReplicaView>,
    /// The server whose replica leaves when the learner joins.
    pub leaving: Option<ServerId>,
    /// Where the log begins: above 0 when the group was lost and begun anew.
    pub begins_at_offset: Offset,
    /// 1, and one more for each resize.
    pub sla_revision: u64,
    /// When the group was given this SLA.
    pub sla_since: String,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicaView {
    pub server_id: ServerId,
    pub name: String,
    pub address: String,
    pub role: Role,
    pub alive: bool,
}

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
    /// Takes no new replicas, and gives up those that it has.
    pub draining: bool,
    pub drain: Option<DrainView>,
    /// Why it counts as slow, while it does.
    pub slow: Option<String>,
    /// What it runs on, if it says so: cores and processor.
    pub machine: Option<String>,
    /// How the cost profile in use is not of its machine or version, while it is not. Whether replicas are placed on it
    /// all the same is the operator's choice (`--foreign-profile`).
    pub foreign: Option<String>,
    /// Whether replicas may be placed on it, if there is room; on an auxiliary server replacements only.
    pub takes_replicas: bool,
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
    /// What those that found no server lack.
    pub scarce_resource: Option<ScarceResource>,
    /// A sentence for people: how far it is, and what it waits for.
    pub message: String,
}

/// `free` is what admission may still promise: nominal × safety factor − allocated, at least 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Capacity {
    pub nominal: ResourceVector,
    pub promisable: ResourceVector,
    pub allocated: ResourceVector,
    pub free: ResourceVector,
}

/// Of the servers that are alive and that admission may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetView {
    #[serde(flatten)]
    pub total: Capacity,
    pub servers_alive: usize,
    pub safety_factor: f64,
    pub profile_version: String,
    pub profile_provisional: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventView {
    pub seq: u64,
    pub at: String,
    pub kind: EventKind,
    pub group_id: Option<GroupId>,
    pub server_id: Option<ServerId>,
    pub epoch: Option<Epoch>,
    pub status: Option<GroupStatus>,
    pub message: String,
}

impl State {
    pub fn group_view(&self, group: &Group) -> GroupView {
        let config = self.config_of(group);
        let view = |server: ServerId| ReplicaView {
            server_id: server,
            name: self.servers[&server].name.clone(),
            address: self.servers[&server].address.clone(),
            role: config.role_of(server),
            alive: self.is_alive(server),
        };
        GroupView {
            group_id: group.group_id,
            project_id: group.project_id,
            sla: group.sla.clone(),
            status: group.status,
            epoch: group.epoch,
            replicas: group.chain.iter().copied().map(view).collect(),
            learners: group.learner.into_iter().map(view).collect(),
            leaving: group.leaving,
            begins_at_offset: group.beginning.map_or(0, |beginning| beginning.offset),
            sla_revision: group.sla_revision,
            sla_since: rfc3339(group.sla_since_ms.unwrap_or(group.created_at_ms)),
            created_at: rfc3339(group.created_at_ms),
        }
    }

    /// The fleet's servers, those that failed too; not those that were given up.
    pub fn server_views(&self) -> Vec<ServerView> {
        let known = self.servers.values().filter(|server| !server.is_given_up());
        known.map(|server| self.server_view(server)).collect()
    }

    /// One of them.
    pub fn server_view_of(&self, id: ServerId) -> Option<ServerView> {
        let known = self.servers.get(&id).filter(|server| !server.is_given_up())?;
        Some(self.server_view(known))
    }

    pub fn server_view(&self, server: &Server) -> ServerView {
        let groups = self.derived.groups_of.get(&server.server_id);
        ServerView {
            server_id: server.server_id,
            name: server.name.clone(),
            address: server.address.clone(),
            region: server.region.clone(),
            failure_domain: server.failure_domain.clone(),
            auxiliary: server.auxiliary,
            alive: server.alive,
            storage_fault: server.storage_fault.clone(),
            version: server.version.clone(),
            resources: self.capacity_of(server),
            replicas: groups.map_or(0, |groups| groups.len()),
            draining: server.drain.is_some(),
            drain: server.drain.as_ref().map(|drain| self.drain_view(server, drain)),
            slow: server.slow.clone(),
            machine: server.machine.as_ref().map(ToString::to_string),
            foreign: self.foreign(server),
            takes_replicas: self.may_place_on(server),
            registered_at: rfc3339(server.registered_at_ms),
            failed_at: server.failed_at_ms.map(rfc3339),
        }
    }

    fn drain_view(&self, server: &Server, drain: &Drain) -> DrainView {
        let (moving, waiting) = self.drain_progress(server.server_id);
        let message = match (drain.drained_at_ms, drain.scarce) {
            (Some(_), _) => "Drained: it holds no replica and may stop.".to_string(),
            (None, _) if !server.alive => {
                "Draining, and failed: its replicas are replaced elsewhere where there is room.".to_string()
            }
            (None, Some(scarce)) => format!(
                "{moving} replicas are moving, {waiting} wait: {}.",
                super::moves::lacking(scarce)
            ),
            (None, None) if moving + waiting == 0 => {
                "No replica is left; what it still has on disk is being dropped.".to_string()
            }
            (None, None) => format!("{moving} replicas are moving, {waiting} wait for their turn."),
        };
        DrainView {
            state: server.drain_state(),
            since: rfc3339(drain.since_ms),
            drained_at: drain.drained_at_ms.map(rfc3339),
            moving,
            waiting,
            scarce_resource: drain.scarce,
            message,
        }
    }

    pub fn fleet_view(&self) -> FleetView {
        let is_used = |s: &&Server| {
            s.alive && !s.auxiliary && s.drain.is_none() && self.refused_as_foreign(s).is_none()
        };
        let servers: Vec<&Server> = self.servers.values().filter(is_used).collect();
        let total =
            servers
                .iter()
                .map(|server| self.capacity_of(server))
                .fold(Capacity::default(), |sum, one| Capacity {
                    nominal: sum.nominal.plus(one.nominal),
                    promisable: sum.promisable.plus(one.promisable),
                    allocated: sum.allocated.plus(one.allocated),
                    free: sum.free.plus(one.free),
                });
        FleetView {
            total,
            servers_alive: self.servers_alive(),
            safety_factor: self.profile.safety_factor,
            profile_version: self.profile.version.clone(),
            profile_provisional: self.profile.provisional,
        }
    }

    pub fn servers_alive(&self) -> usize {
        self.servers.values().filter(|server| server.alive).count()
    }

    fn capacity_of(&self, server: &Server) -> Capacity {
        let fleet = self.fleet(&server.region);
        let amounts = |of: fn(&quorate_placement::Fleet, ServerId) -> Amounts| {
            fleet
                .map_or(Amounts::ZERO, |fleet| of(fleet, server.server_id))
                .to_resources()
        };
        Capacity {
            nominal: server.capacity,
            promisable: amounts(quorate_placement::Fleet::promisable),
            allocated: amounts(quorate_placement::Fleet::allocated),
            free: amounts(quorate_placement::Fleet::free),
        }
    }
}

impl From<&Event> for EventView {
    fn from(event: &Event) -> Self {
        Self {
            seq: event.seq,
            at: rfc3339(event.at_ms),
            kind: event.kind,
            group_id: event.group_id,
            server_id: event.server_id,
            epoch: event.epoch,
            status: event.status,
            message: event.message.clone(),
        }
    }
}

pub(super) fn rfc3339(unix_ms: u64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000);
    time.ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| "9999-12-31T23:59:59Z".into())
}
