//! The whole fleet, and its time.

use std::collections::{BTreeMap, BTreeSet};

use quorate_quorum::MemberId;
use quorate_types::coordinators::KnownCoordinators;
use quorate_types::{GroupId, Micros, Sla};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use super::coordinators::SPARES;
use super::{
    ClientId, Connection, Coordinators, FormerLogs, Habit, Link, Node, Reader, Schedule, Scheduled, Server,
    WALL_BEGINS_US, Writer,
};
use crate::counts::Counts;
use crate::ledger::Ledger;
use crate::plan::{CHURNING_CLIENTS, GroupPlan, Plan, Profile};
use crate::trace::{self, Trace};

pub struct World {
    pub plan: Plan,
    pub rng: SmallRng,
    pub now: Micros,
    schedule: Schedule,
    pub servers: Vec<Server>,
    pub links: BTreeMap<(usize, usize), Link>,
    /// Directions that carry nothing, and until when.
    pub blocked: BTreeMap<(Node, Node), Micros>,
    pub coordinators: Coordinators,
    pub writers: Vec<Writer>,
    pub readers: Vec<Reader>,
    pub ledgers: Vec<Ledger>,
    /// By group.
    pub former_logs: Vec<FormerLogs>,
    /// The group with a poisoned batch.
    pub poisoned: Option<usize>,
    pub is_healing: bool,
    /// The coordinator has ended, and only people can go on.
    pub is_given_up: bool,
    pub acked_at: Micros,
    pub trace: Trace,
    pub counts: Counts,
    connections: u64,
    /// Connections that were given up before their last ATTACH was answered.
    pub aborted: BTreeSet<u64>,
}

impl World {
    pub fn new(seed: u64, profile: Profile) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let plan = Plan::draw(&mut rng, profile);
        let trace = Trace::new();
        trace::focus(None);
        trace.line(None, || format!("{plan:?}").chars().take(250).collect());
        let drift_max = plan.drift_permille_max as i64;
        let mut drift = || rng.random_range(-drift_max..=drift_max);
        let spares = if plan.replaces_coordinators() { SPARES } else { 0 };
        let names: Vec<String> = (1..=(plan.coordinators + spares) as u64)
            .map(|id| MemberId(id).to_string())
            .collect();
        let servers = (0..plan.servers as u64)
            .map(|s| {
                let known = KnownCoordinators::new(names.clone(), s);
                Server::new(drift(), plan.segment_bytes, plan.pool_bytes, known)
            })
            .collect();
        let coordinators = Coordinators::new(&plan, &mut drift);
        let groups = plan.groups.iter().enumerate();
        let writers = groups.clone().flat_map(|(g, group)| {
            (0..group.clients).map(move |n| {
                let habit = match (group.churns, group.has_unpermitted) {
                    (true, _) if n < CHURNING_CLIENTS => Habit::RenewsSession,
                    (true, _) => Habit::LeavesAndReturns,
                    (false, true) if n > 0 && n + 1 == group.clients => Habit::LacksPermission,
                    (false, _) => Habit::KeepsSession,
                };
                Writer::new(g, (g * 16 + n) as u64, group, habit)
            })
        });
        let readers = groups.flat_map(|(g, group)| (0..group.readers).map(move |n| Reader::new(g, n, group)));
        Self {
            now: 0,
            schedule: Schedule::default(),
            servers,
            links: BTreeMap::new(),
            blocked: BTreeMap::new(),
            coordinators,
            writers: writers.collect(),
            readers: readers.collect(),
            ledgers: plan.groups.iter().map(|_| Ledger::default()).collect(),
            former_logs: plan.groups.iter().map(|_| FormerLogs::default()).collect(),
            poisoned: None,
            is_healing: false,
            is_given_up: false,
            acked_at: 0,
            trace,
            counts: Counts::default(),
            connections: 0,
            aborted: BTreeSet::new(),
            plan,
            rng,
        }
    }

    pub fn group_id(g: usize) -> GroupId {
        GroupId(Uuid::from_u128(g as u128 + 1))
    }

    pub fn index_of(group_id: GroupId) -> usize {
        group_id.0.as_u128() as usize - 1
    }

    pub fn schedule(&mut self, at: Micros, event: Scheduled) {
        self.schedule.at(at, event);
    }

    /// The next event that is due, and its time.
    pub fn next_event(&mut self) -> Option<(Micros, Scheduled)> {
        self.schedule.pop()
    }

    /// The time, for all whose clocks are right.
    pub fn wall_s(&self) -> u64 {
        (WALL_BEGINS_US + self.now) / 1_000_000
    }

    pub fn new_connection(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }

    pub fn link(&mut self, a: usize, b: usize) -> &mut Link {
        self.links.entry((a.min(b), a.max(b))).or_default()
    }

    pub fn connection(&self, client: ClientId) -> &Connection {
        match client {
            ClientId::Writer(c) => &self.writers[c].connection,
            ClientId::Reader(r) => &self.readers[r].connection,
        }
    }

    pub fn connection_mut(&mut self, client: ClientId) -> &mut Connection {
        match client {
            ClientId::Writer(c) => &mut self.writers[c].connection,
            ClientId::Reader(r) => &mut self.readers[r].connection,
        }
    }

    /// The group that the client is of.
    pub fn group_of_client(&self, client: ClientId) -> usize {
        match client {
            ClientId::Writer(c) => self.writers[c].group,
            ClientId::Reader(r) => self.readers[r].group,
        }
    }

    /// Groups to be admitted. Their retention comes from the plan when a server is configured: the least one of an SLA is
    /// greater.
    pub fn plan_slas(&self) -> Vec<(GroupId, Sla)> {
        let sla = |group: &GroupPlan| Sla {
            read_rate_per_s: 0,
            durability: group.durability,
            replication_degree: group.degree,
            min_replicas: group.min_replicas,
            request_size_bytes: group.payload_bytes_max,
            rate_per_s: group.rate_per_s,
            region: "local".into(),
            retention_bytes: quorate_types::limits::RETENTION_BYTES_MIN,
            retention_age_s: None,
            latency: Default::default(),
        };
        let groups = self.plan.groups.iter().enumerate();
        groups.map(|(g, group)| (Self::group_id(g), sla(group))).collect()
    }
}
