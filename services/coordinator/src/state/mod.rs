//! The coordinator's state machine, pure: `apply(state, now, command) -> effects`.
//!
//! - [`command`]: what changes the state, and what follows
//! - [`placement`]: how servers are chosen, and what is kept for recovery
//! - [`membership`]: servers register, return, fail
//! - [`lifecycle`]: groups are admitted, formed, deleted
//! - [`repair`]: chains are spliced, replacements elected, epochs issued
//! - [`moves`]: replicas leave draining and slow servers
//! - [`partitions`]: of two servers that cannot reach one another, one makes way
//! - [`reset`]: a lost group begins anew
//! - [`resize`]: a group's SLA is changed where the group is
//! - [`join_tokens`]: who may join the fleet
//! - [`views`]: what the API is shown
//! - [`validate`]: what must hold after every command
//!
//! No clock, disk, socket or randomness: the same commands with the same times give the same state,
//! which is how a restart recovers it.

pub mod command;
pub mod event;
pub mod group;
pub mod join_tokens;
mod lifecycle;
mod membership;
mod moves;
mod partitions;
pub mod placement;
mod repair;
mod reset;
mod resize;
pub mod returned;
pub mod server;
pub mod validate;
pub mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_placement::{Amounts, Fleet, Profile};
use quorate_types::control::ToServer;
use quorate_types::sla::{Quote, Sla};
use quorate_types::{Epoch, GroupId, ServerId};
use serde::{Deserialize, Serialize};

pub use membership::Refused;

use command::{Command, Digest, Effect, Reply};
use event::{Event, EventKind, Events};
use group::{Group, GroupStatus};
use placement::Placement;
use server::{JoinToken, Server};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    pub profile: Profile,
    #[serde(default)]
    pub placement: Placement,
    pub servers: BTreeMap<ServerId, Server>,
    pub groups: BTreeMap<GroupId, Group>,
    pub events: Events,
    /// Configurations issued since the beginning.
    pub epoch_changes: u64,
    join_tokens: BTreeMap<Digest, JoinToken>,
    /// Pairs (lesser id first) that have their leases and cannot reach one another.
    #[serde(default)]
    pub severed: BTreeSet<(ServerId, ServerId)>,
    /// Ids that were used: an old replica may still hold data under them.
    deleted: VecDeque<GroupId>,
    #[serde(skip)]
    derived: Derived,
}

/// What follows from the rest, kept so that no command looks at everything.
#[derive(Debug, Clone, Default)]
struct Derived {
    /// Free resources, by region.
    fleets: BTreeMap<String, Fleet>,
    groups_of: BTreeMap<ServerId, BTreeSet<GroupId>>,
    by_credential: BTreeMap<Digest, ServerId>,
    by_name: BTreeMap<String, ServerId>,
    deleted: BTreeSet<GroupId>,
    /// Servers that may hold data of a group without being members: the inverse of `to_drop`.
    holders: BTreeMap<GroupId, BTreeSet<ServerId>>,
    /// Groups with a replica missing and no learner.
    wanting: BTreeSet<GroupId>,
    /// Servers that replicas should leave.
    vacating: BTreeSet<ServerId>,
    /// Groups of which nothing is left.
    lost: BTreeSet<GroupId>,
}

impl Derived {
    /// Notes which servers share the group.
    fn meet(&mut self, group: &Group) {
        let members: Vec<ServerId> = group.members().collect();
        if let Some(fleet) = self.fleets.get_mut(&group.sla.region) {
            for (i, member) in members.iter().enumerate() {
                fleet.meet(*member, &members[..i]);
            }
        }
    }

    fn part(&mut self, group: &Group) {
        let members: Vec<ServerId> = group.members().collect();
        if let Some(fleet) = self.fleets.get_mut(&group.sla.region) {
            for (i, member) in members.iter().enumerate() {
                fleet.part(*member, &members[..i]);
            }
        }
    }
}

/// Rounds of moves after one command; the next command goes on.
const SETTLE_ROUNDS_MAX: usize = 16;

/// Applies a command that happened at `now_ms` (Unix time). The effects may be acted on once the
/// command is durable.
pub fn apply(state: &mut State, now_ms: u64, command: &Command) -> Vec<Effect> {
    let mut change = Change {
        state,
        now_ms,
        effects: Vec::new(),
    };
    change.apply(command);
    change.effects
}

impl State {
    /// Why the cost profile in use is not that of this server, if it is not.
    pub fn foreign(&self, server: &Server) -> Option<String> {
        self.profile.foreign(server.machine.as_ref(), &server.version)
    }

    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            placement: Placement::default(),
            servers: BTreeMap::new(),
            groups: BTreeMap::new(),
            events: Events::default(),
            epoch_changes: 0,
            join_tokens: BTreeMap::new(),
            severed: BTreeSet::new(),
            deleted: VecDeque::new(),
            derived: Derived::default(),
        }
    }

    /// Fills in what a snapshot leaves out. Call once after deserialising.
    pub fn restore(&mut self) {
        self.derived = Derived::default();
        self.list_servers();
        let Self {
            groups,
            derived,
            servers,
            ..
        } = self;
        for group in groups.values() {
            derived.meet(group);
            for (server, amounts) in group.charges() {
                fleet_of(derived, servers, server).charge(server, amounts);
                derived
                    .groups_of
                    .entry(server)
                    .or_default()
                    .insert(group.group_id);
            }
            if group.wants_learner() {
                derived.wanting.insert(group.group_id);
            }
            if group.lost && !group.is_deleting() {
                derived.lost.insert(group.group_id);
            }
        }
        for server in servers.values() {
            for group_id in server.to_drop.keys() {
                derived
                    .holders
                    .entry(*group_id)
                    .or_default()
                    .insert(server.server_id);
            }
        }
        derived.deleted = self.deleted.iter().copied().collect();
    }

    pub fn is_alive(&self, server: ServerId) -> bool {
        self.servers.get(&server).is_some_and(|s| s.alive)
    }

    /// A dry run; keeps nothing. `replaces`: of this group's resize, if it can be one; else of an admission as if the
    /// group were gone.
    pub fn quote(&mut self, sla: &Sla, replaces: Option<GroupId>) -> Quote {
        let replaced = replaces.and_then(|id| self.groups.get(&id));
        if let Some(group) = replaced
            && !group.chain.is_empty()
            && group.keeps_place_with(sla)
        {
            return self.quote_in_place(group.group_id, sla);
        }
        let freed = replaced.map(Group::charges).unwrap_or_default();
        for (server, amounts) in &freed {
            fleet_of(&mut self.derived, &self.servers, *server).release(*server, *amounts);
        }
        let quote = match lifecycle::unknown_region(self, sla) {
            Some(refusal) => {
                let dominant = quorate_types::sla::ScarceResource::Servers;
                quorate_placement::quote::quote_of(&self.profile, sla, dominant, Some(refusal))
            }
            None => {
                let mut none = Fleet::default();
                let fleet = self.derived.fleets.get_mut(&sla.region).unwrap_or(&mut none);
                quorate_placement::quote(fleet, &self.profile, sla)
            }
        };
        for (server, amounts) in &freed {
            fleet_of(&mut self.derived, &self.servers, *server).charge(*server, *amounts);
        }
        quote
    }

    /// Failed servers that still stand in a chain of which another is alive: they came down with the
    /// whole chain and have not returned. They are spliced out when they do not follow within a lease.
    pub fn laggards(&self) -> BTreeSet<ServerId> {
        let dead = self.servers.values().filter(|server| !server.alive);
        dead.filter(|server| {
            let mut groups = self
                .derived
                .groups_of
                .get(&server.server_id)
                .into_iter()
                .flatten();
            groups.any(|id| self.groups[id].chain.iter().any(|other| self.is_alive(*other)))
        })
        .map(|server| server.server_id)
        .collect()
    }

    fn fleet(&self, region: &str) -> Option<&Fleet> {
        self.derived.fleets.get(region)
    }

    /// What a change of one server means for placement.
    fn list_server(&mut self, id: ServerId) {
        self.list_one(id);
        let region = self.servers[&id].region.clone();
        self.keep_headroom(&region);
    }

    fn list_servers(&mut self) {
        for id in self.servers.keys().copied().collect::<Vec<_>>() {
            self.list_one(id);
        }
        for region in self.derived.fleets.keys().cloned().collect::<Vec<_>>() {
            self.keep_headroom(&region);
        }
    }

    fn list_one(&mut self, id: ServerId) {
        let server = &self.servers[&id];
        let promisable = Amounts::of_capacity(server.capacity, self.profile.safety_factor);
        let electable = self.may_place_on(server);
        if server.drain.is_some() || server.slow.is_some() {
            self.derived.vacating.insert(id);
        } else {
            self.derived.vacating.remove(&id);
        }
        let fleet = self.derived.fleets.entry(server.region.clone()).or_default();
        fleet.set_server(
            id,
            promisable,
            server.failure_domain.clone(),
            server.auxiliary,
            electable,
        );
        self.derived
            .by_credential
            .insert(server.credential_digest.clone(), id);
        self.derived.by_name.insert(server.name.clone(), id);
    }
}

fn fleet_of<'a>(
    derived: &'a mut Derived,
    servers: &BTreeMap<ServerId, Server>,
    server: ServerId,
) -> &'a mut Fleet {
    derived
        .fleets
        .get_mut(&servers[&server].region)
        .expect("a server's region has a fleet")
}

/// One command being applied.
struct Change<'a> {
    state: &'a mut State,
    now_ms: u64,
    effects: Vec<Effect>,
}

impl Change<'_> {
    fn apply(&mut self, command: &Command) {
        match command {
            Command::UseProfile { profile } => self.use_profile(profile),
            Command::UsePlacement { placement } => self.use_placement(*placement),
            Command::IssueJoinToken { digest, token } => self.issue_join_token(digest, token),
            Command::RevokeJoinToken { id } => self.revoke_join_token(id),
            Command::Register(registration) => self.register(registration),
            Command::ServersFailed { servers } => self.servers_failed(servers),
            Command::StorageFault { server, fault } => self.storage_fault(*server, fault.clone()),
            Command::PeerUnreachable { server, peer } => self.peer_unreachable(*server, *peer),
            Command::Severed {
                server,
                peer,
                severed,
            } => self.severed(*server, *peer, *severed),
            Command::ServerSlow { server, cause } => self.server_slow(*server, cause.clone()),
            Command::Drain { server } => self.drain(*server),
            Command::CallOffDrain { server } => self.call_off_drain(*server),
            Command::Forget { server } => self.forget_server(*server),
            Command::Reset {
                group_id,
                epoch,
                entries_before,
                bytes_before,
            } => self.reset(*group_id, *epoch, *entries_before, *bytes_before),
            Command::Resize {
                group_id,
                sla,
                revision,
            } => self.resize(*group_id, sla, *revision),
            Command::OffsetsReached {
                group_id,
                commit_offset,
            } => self.offsets_reached(*group_id, *commit_offset),
            Command::Admit {
                group_id,
                project_id,
                sla,
            } => self.admit(*group_id, *project_id, sla),
            Command::Delete { group_id } => self.delete(*group_id),
            Command::Applied {
                server,
                group_id,
                epoch,
            } => self.applied(*server, *group_id, *epoch),
            Command::LearnerCaughtUp {
                server,
                group_id,
                epoch,
                learner,
            } => {
                self.learner_caught_up(*server, *group_id, *epoch, *learner);
            }
            Command::Dropped { server, group_id } => self.dropped(*server, *group_id),
        }
        if command.may_free_capacity() {
            // Failed replicas are replaced before any new applicant is looked at (Filo §4.1).
            self.elect_replacements();
        }
        // What one move frees, another may need. Each takes a replica from a server that it should leave to one where
        // it may stay, so this ends; the bound is for the reader's peace.
        for _ in 0..SETTLE_ROUNDS_MAX {
            let before = self.state.epoch_changes;
            self.resolve_partitions();
            self.pursue_moves();
            if self.state.epoch_changes == before {
                break;
            }
        }
    }

    fn use_profile(&mut self, profile: &Profile) {
        let share = profile.safety_factor;
        let is_news = share != self.state.profile.safety_factor;
        self.state.profile = profile.clone();
        self.state.list_servers();
        // They lend what is not promised, and would lend by the old share until they register again.
        for server in self
            .state
            .servers
            .values()
            .filter(|server| is_news && server.alive)
        {
            self.effects.push(Effect::Send {
                server: server.server_id,
                message: ToServer::PromisedShare { share },
            });
        }
        self.effects.push(Effect::Reply(Reply::Done));
    }

    fn event(&mut self, kind: EventKind, subject: Subject, message: String) {
        let (group_id, server_id, epoch, status) = match subject {
            Subject::Group(id, epoch, status) => (Some(id), None, epoch, status),
            Subject::Server(id) => (None, Some(id), None, None),
            Subject::Replica(id, server) => (Some(id), Some(server), None, None),
        };
        let event = Event {
            seq: 0,
            at_ms: self.now_ms,
            kind,
            group_id,
            server_id,
            epoch,
            status,
            message,
        };
        self.state.events.push(event);
    }

    fn server_name(&self, server: ServerId) -> String {
        self.state
            .servers
            .get(&server)
            .map_or_else(|| format!("server {server}"), |s| s.name.clone())
    }
}

/// What an event is about.
enum Subject {
    Group(GroupId, Option<Epoch>, Option<GroupStatus>),
    Server(ServerId),
    Replica(GroupId, ServerId),
}
