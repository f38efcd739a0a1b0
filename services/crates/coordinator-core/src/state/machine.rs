//! The state itself, and its readers.

use quorate_placement::{Amounts, Asked, Profile};
use quorate_types::sla::{Quote, Sla};
use quorate_types::{GroupConfig, GroupId, ServerId, versions};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entity::{Group, History, Server};
use super::handler::configs::config_of;
use super::handler::dry_run::DryRun;
use super::handler::guarantees::beyond_max;
use super::handler::listing::{self, Listing};
use super::table::{
    DeletedGroups, Events, Fleets, Groups, Guarantees, JoinTokens, Partitions, Revocations, Servers,
    UnreachablePairs,
};
use crate::command::{FleetSecrets, PlacementPolicy};

/// The whole durable memory of the coordinator. A snapshot in the log is this, in JSON.
///
/// Only [`super::apply`] changes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CoordinatorState {
    pub profile: Profile,
    #[serde(default, rename = "placement")]
    pub policy: PlacementPolicy,
    /// Forms of this version may be written. It is absent from snapshots that older releases read.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub fleet_version: u16,
    /// None: the fleet has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Box<FleetSecrets>>,
    pub servers: Servers,
    pub groups: Groups,
    #[serde(default, skip_serializing_if = "Guarantees::is_empty")]
    pub guarantees: Guarantees,
    #[serde(default, skip_serializing_if = "Partitions::is_empty")]
    pub partitions: Partitions,
    pub events: Events,
    /// Configurations issued since the beginning.
    pub epoch_changes: u64,
    /// Absent from snapshots of older releases.
    #[serde(default)]
    pub history: History,
    pub(super) join_tokens: JoinTokens,
    #[serde(default, skip_serializing_if = "Revocations::is_empty")]
    pub revocations: Revocations,
    #[serde(default, rename = "severed")]
    pub unreachable_pairs: UnreachablePairs,
    pub(super) deleted: DeletedGroups,
    #[serde(skip)]
    pub(super) fleets: Fleets,
}

fn first() -> u16 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_first(version: &u16) -> bool {
    *version == first()
}

impl CoordinatorState {
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            policy: PlacementPolicy::default(),
            fleet_version: first(),
            secrets: None,
            servers: Servers::default(),
            groups: Groups::default(),
            guarantees: Guarantees::default(),
            partitions: Partitions::default(),
            events: Events::default(),
            epoch_changes: 0,
            history: History::default(),
            join_tokens: JoinTokens::default(),
            revocations: Revocations::default(),
            unreachable_pairs: UnreachablePairs::default(),
            deleted: DeletedGroups::default(),
            fleets: Fleets::default(),
        }
    }

    /// The state of a fleet that begins with this release: no older one takes part.
    pub fn of_new_fleet(profile: Profile) -> Self {
        Self {
            fleet_version: versions::FLEET.newest,
            ..Self::new(profile)
        }
    }

    /// Derives the indexes and free resources, which a snapshot leaves out. Call once after deserialising.
    pub fn restore(&mut self) {
        self.servers.reindex();
        self.groups.reindex();
        self.groups.complete_demands();
        self.deleted.reindex();
        self.fleets = Fleets::default();
        Listing::new(&mut self.fleets, &self.profile, &self.policy).all(&self.servers);
        for group in self.groups.values() {
            self.fleets.take_in(&self.servers, group);
        }
    }

    pub fn is_alive(&self, server: ServerId) -> bool {
        self.servers.is_alive(server)
    }

    /// Whether the present start is the first on this log. A snapshot of a release without places has no history either:
    /// there, servers and groups tell of earlier starts.
    pub fn is_first_start(&self) -> bool {
        self.history.is_first_run() && self.servers.is_empty() && self.groups.is_empty()
    }

    /// Whether the whole fleet knows relocations.
    pub fn knows_relocations(&self) -> bool {
        self.fleet_version >= versions::FLEET_WITH_RELOCATIONS
    }

    pub fn servers_alive(&self) -> usize {
        self.servers.values().filter(|server| server.alive).count()
    }

    pub fn join_tokens(&self) -> &JoinTokens {
        &self.join_tokens
    }

    pub fn fleets(&self) -> &Fleets {
        &self.fleets
    }

    /// The configuration that members have in the group's present epoch.
    pub fn config_of(&self, group: &Group) -> GroupConfig {
        config_of(&self.servers, group)
    }

    /// Why the cost profile in use does not match this server, if it does not.
    pub fn mismatch(&self, server: &Server) -> Option<String> {
        listing::mismatch(&self.profile, server)
    }

    /// The same, where such servers take no new replicas.
    pub fn refused_mismatch(&self, server: &Server) -> Option<String> {
        listing::refused_mismatch(&self.profile, &self.policy, server)
    }

    /// Whether replicas may be placed on the server, if there is room.
    pub fn takes_replicas(&self, server: &Server) -> bool {
        listing::takes_replicas(&self.profile, &self.policy, server)
    }

    /// The sum of what is charged to a server.
    pub fn allocated_on(&self, id: ServerId) -> Amounts {
        let fleet = self.fleets.in_region(&self.servers[&id].region);
        fleet.map_or(Amounts::ZERO, |fleet| fleet.allocated(id))
    }

    /// A dry run of an admission; of a resize, if `replaces` names a group that could be resized to the SLA. It charges
    /// servers on trial, and leaves the state as it was. `project_id`: of the group; `None`: one without a guarantee.
    pub fn quote(&mut self, sla: &Sla, replaces: Option<GroupId>, project_id: Option<Uuid>) -> Quote {
        let replaced = replaces.and_then(|id| self.groups.get(&id));
        let project_id = replaced.map(|group| group.project_id).or(project_id);
        let shared = project_id.and_then(|id| self.guarantees.shared(id));
        let beyond = project_id.and_then(|id| {
            beyond_max(
                &self.guarantees,
                &self.groups,
                &self.profile,
                id,
                (replaces, sla, 1),
            )
        });
        let may_move = self.knows_relocations();
        let mut dry_run = DryRun::new(
            &mut self.fleets,
            &self.groups,
            &self.servers,
            &self.unreachable_pairs,
            &self.profile,
        );
        let quote = dry_run.quote(Asked { sla, shared }, replaces, may_move);
        match beyond {
            Some(refusal) if quote.refusal.is_none() => Quote {
                admissible: false,
                refusal: Some(refusal),
                ..quote
            },
            _ => quote,
        }
    }
}
