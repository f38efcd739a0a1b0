//! A fleet: its parts, and what happens to them in time.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::{GroupId, Micros, Sla};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::client::{Habit, Reader, Who, Writer};
use crate::coordinator::Coordinator;
use crate::counts::Counts;
use crate::invariants;
use crate::ledger::Ledger;
use crate::links::Link;
use crate::lives::Former;
use crate::plan::{CROWD, Plan, Profile};
use crate::schedule::{Node, Schedule, What};
use crate::server::Server;
use crate::trace::{self, Trace};

/// How long the fleet has, undisturbed, until all is well again; clients with much left to do have as long again
/// after each acknowledgement.
const HEALING_US: Micros = 90_000_000;
/// Far more than any run needs; beyond, something goes round in circles.
const EVENTS_MAX: u64 = 3_000_000;
const CHECK_US: Micros = 20_000;

pub struct World {
    pub plan: Plan,
    pub rng: SmallRng,
    pub now: Micros,
    schedule: Schedule,
    pub servers: Vec<Server>,
    pub links: BTreeMap<(usize, usize), Link>,
    /// Directions that are cut off, and until when.
    pub blocked: BTreeMap<(Node, Node), Micros>,
    pub coordinator: Coordinator,
    pub writers: Vec<Writer>,
    pub readers: Vec<Reader>,
    pub ledgers: Vec<Ledger>,
    /// By group.
    pub former: Vec<Former>,
    pub is_healing: bool,
    pub acked_at: Micros,
    pub trace: Trace,
    pub counts: Counts,
    connections: u64,
    /// Connections that were given up before they were attached.
    pub aborted: BTreeSet<u64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub trace_hash: u64,
    pub counts: Counts,
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
        let servers = (0..plan.servers)
            .map(|_| Server::new(drift(), plan.segment_bytes))
            .collect();
        let coordinator = Coordinator::new(&plan, drift());
        let groups = plan.groups.iter().enumerate();
        let writers = groups.clone().flat_map(|(g, group)| {
            (0..group.clients).map(move |n| {
                let habit = match (group.churns, group.has_stranger) {
                    (true, _) if n < CROWD => Habit::Churns,
                    (true, _) => Habit::Strays,
                    (false, true) if n > 0 && n + 1 == group.clients => Habit::Trespasses,
                    (false, _) => Habit::Keeps,
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
            coordinator,
            writers: writers.collect(),
            readers: readers.collect(),
            ledgers: plan.groups.iter().map(|_| Ledger::default()).collect(),
            former: plan.groups.iter().map(|_| Former::default()).collect(),
            is_healing: false,
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

    pub fn group_of(&self, group_id: GroupId) -> usize {
        Self::index_of(group_id)
    }

    /// Groups to be admitted. Retention is given by the plan when a server is told (`Sla` has a greater least).
    pub fn plan_slas(&self) -> Vec<(GroupId, Sla)> {
        let sla = |group: &crate::plan::GroupPlan| Sla {
            durability: group.durability,
            replication_degree: group.degree,
            min_replicas: group.min_replicas,
            request_size_bytes: group.payload_bytes_max,
            rate_per_s: group.rate_per_s,
            region: "local".into(),
            retention_bytes: quorate_types::limits::RETENTION_BYTES_MIN,
            retention_age_s: None,
        };
        let groups = self.plan.groups.iter().enumerate();
        groups.map(|(g, group)| (Self::group_id(g), sla(group))).collect()
    }

    pub fn at(&mut self, at: Micros, what: What) {
        self.schedule.at(at, what);
    }

    /// The time, for all whose clocks are right.
    pub fn wall_s(&self) -> u64 {
        (crate::server::WALL_BEGINS_US + self.now) / 1_000_000
    }

    pub fn new_connection(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }

    pub fn run(mut self) -> Outcome {
        self.begin();
        while let Some((at, what)) = self.schedule.pop() {
            self.now = self.now.max(at);
            self.trace.now = self.now;
            self.counts.events += 1;
            assert!(
                self.counts.events < EVENTS_MAX,
                "it never ends: {EVENTS_MAX} events by {} µs",
                self.now
            );
            if !self.is_healing && self.now >= self.plan.horizon_us {
                self.is_healing = true;
                self.trace.line(None, || "=== healing".to_string());
                self.heal();
            }
            let is_check = matches!(what, What::Check);
            self.happen(what);
            if is_check && self.is_healing && invariants::is_healed(&self) {
                return self.end();
            }
            if self.now > self.plan.horizon_us.max(self.acked_at) + HEALING_US {
                let (g, why) = invariants::why_not_healed(&self).unwrap_or_default();
                trace::focus(Some(g));
                panic!("not healed: group {}: {why}", g + 1);
            }
        }
        panic!("time stands still");
    }

    fn begin(&mut self) {
        for s in 0..self.servers.len() {
            self.invite(s);
            self.at(
                1_000 + s as u64,
                What::ControlDial {
                    server: s,
                    incarnation: 1,
                },
            );
            self.at(
                crate::server::TICK_US,
                What::Tick {
                    server: s,
                    incarnation: 1,
                },
            );
        }
        for s in 0..self.servers.len() {
            self.begin_copying(s, 1);
        }
        let slas = self.plan_slas();
        self.admit(slas);
        self.at(500, What::CoordinatorTick { life: 1 });
        let writers = (0..self.writers.len()).map(Who::Writer);
        for who in writers.chain((0..self.readers.len()).map(Who::Reader)) {
            self.at(100_000, What::ClientTick { who });
        }
        // The fleet forms first.
        self.at(300_000, What::Fault);
        self.at(CHECK_US, What::Check);
    }

    fn end(mut self) -> Outcome {
        invariants::at_end(&self);
        self.counts.seeds = 1;
        self.counts.simulated_us = self.now;
        self.counts.committed = self.ledgers.iter().map(Ledger::last_index).sum();
        self.counts.epochs = self.coordinator.state().epoch_changes;
        Outcome {
            trace_hash: self.trace.hash(),
            counts: self.counts,
        }
    }

    /// Whether the group may do without what server `s` holds of it: another replica of the chain has everything
    /// and looks well. Not a guarantee: failures may come together, and the group be lost.
    pub fn may_lose(&self, s: usize, g: usize) -> bool {
        // Bad records on a running server are repaired from others. Those keep what they have until then.
        let may_lose_all = self.plan.may_lose_groups && !self.servers.iter().any(|server| server.is_rotten);
        may_lose_all || self.others_have(s, g)
    }

    /// Another replica of the group's chain has all that server `s` may hold of it, and looks well.
    pub fn others_have(&self, s: usize, g: usize) -> bool {
        if self.ledgers[g].is_lost {
            return true;
        }
        let group_id = Self::group_id(g);
        let Some(group) = self.coordinator.state().groups.get(&group_id) else {
            return true;
        };
        let last = self.ledgers[g].last();
        let is_well = |m: usize| {
            let server = &self.servers[m];
            let at_coordinator = (Node::Server(m), Node::Coordinator);
            server.alive
                && server.paused_until <= self.now
                && !server.is_rotten
                && server.control.as_ref().is_some_and(|c| c.is_registered)
                && !self.is_blocked(at_coordinator.0, at_coordinator.1)
                && !self.is_blocked(at_coordinator.1, at_coordinator.0)
                && last.is_none_or(|last| self.has(m, group_id, last.index, last.epoch))
        };
        let others = group
            .chain
            .iter()
            .filter_map(|id| self.server_of(*id))
            .filter(|m| *m != s);
        let is_member = group.chain.iter().any(|id| self.server_of(*id) == Some(s));
        !is_member || (self.coordinator.is_up() && others.into_iter().any(is_well))
    }

    /// A server that is stopped, or no longer the one meant, does not take part.
    fn reaches(&mut self, s: usize, incarnation: Option<u64>, what: What) -> Option<What> {
        let server = &self.servers[s];
        if !server.alive || incarnation.is_some_and(|i| i != server.incarnation) {
            return None;
        }
        if server.paused_until > self.now {
            let until = server.paused_until;
            if server.deferred.is_empty() {
                self.at(until, What::Resume { server: s });
            }
            self.servers[s].deferred.push(what);
            return None;
        }
        Some(what)
    }

    pub fn happen(&mut self, what: What) {
        trace::focus(None);
        let target = match &what {
            What::Peer { to, .. } => Some((*to, None)),
            What::LinkUp { server, .. }
            | What::LinkDown { server, .. }
            | What::AtServer { server, .. }
            | What::Unanswered { server, .. } => Some((*server, None)),
            What::Synced { server, incarnation }
            | What::AtGroup {
                server, incarnation, ..
            }
            | What::CatchupDue {
                server, incarnation, ..
            }
            | What::DiskRead {
                server, incarnation, ..
            }
            | What::Copy { server, incarnation }
            | What::Flush { server, incarnation }
            | What::Tick { server, incarnation }
            | What::Wake {
                server, incarnation, ..
            }
            | What::CommitNoticeDue {
                server, incarnation, ..
            }
            | What::ControlDial { server, incarnation }
            | What::FromClient {
                server, incarnation, ..
            }
            | What::Heartbeat {
                server, incarnation, ..
            } => Some((*server, Some(*incarnation))),
            _ => None,
        };
        let what = match target {
            Some((s, incarnation)) => self.reaches(s, incarnation, what),
            None => Some(what),
        };
        match what {
            Some(what) if target.is_some() => self.at_a_server(what),
            Some(what) => self.elsewhere(what),
            None => {}
        }
    }

    fn at_a_server(&mut self, what: What) {
        match what {
            What::Peer { from, to, generation } => self.receive(from, to, generation),
            What::LinkUp {
                server,
                peer,
                generation,
            } => self.link_up(server, peer, generation),
            What::LinkDown {
                server,
                peer,
                generation,
            } => self.link_down(server, peer, generation),
            What::AtServer { server, connection } => self.at_server(server, connection),
            What::Unanswered { server, connection } => self.unanswered(server, connection),
            What::Synced { server, .. } => self.synced(server),
            What::AtGroup {
                server, group, event, ..
            } => self.step(server, group, *event),
            What::DiskRead {
                server, group, read, ..
            } => self.disk_read(server, group, *read),
            What::Copy { server, incarnation } => self.copy(server, incarnation),
            What::CatchupDue { server, group, .. } => self.catchup_due(server, group),
            What::Flush { server, .. } => self.flush(server),
            What::Tick { server, incarnation } => self.tick(server, incarnation),
            What::Wake { server, group, .. } => self.wake(server, group),
            What::CommitNoticeDue { server, group, .. } => self.notice_due(server, group),
            What::ControlDial { server, incarnation } => self.control_dial(server, incarnation),
            What::FromClient {
                server, who, message, ..
            } => self.from_client(server, who, *message),
            What::Heartbeat {
                server,
                incarnation,
                connection,
            } => {
                self.heartbeat(server, incarnation, connection);
            }
            _ => unreachable!("not at a server"),
        }
    }

    fn elsewhere(&mut self, what: What) {
        match what {
            What::Silence {
                server,
                peer,
                generation,
            } => self.silence(server, peer, generation),
            What::Dial { a, b } => self.dial(a, b),
            What::AtCoordinator { server, connection } => self.at_coordinator(server, connection),
            What::CoordinatorTick { life } => self.coordinator_tick(life),
            What::CoordinatorSynced { life } => self.coordinator_synced(life),
            What::CoordinatorRestart => self.restart_coordinator(),
            What::CoordinatorResume => self.coordinator_resumes(),
            What::DiskWorks { server, incarnation } => self.disk_works(server, incarnation),
            What::DiskFast { server } => self.servers[server].sync_factor = 1,
            What::Restart { server } => self.restart(server),
            What::Resume { server } => self.resume(server),
            What::ClientTick { who } => match who {
                Who::Writer(c) => self.writer_tick(c),
                Who::Reader(r) => self.reader_tick(r),
            },
            What::ToClient {
                who,
                connection,
                message,
            } => self.at_client(who, connection, *message),
            What::Unblock { from, to } => self.unblock(from, to),
            What::Fault if self.is_healing => {}
            What::Fault => {
                self.fault();
                let at = self.now + self.rng.random_range(1..=2 * self.plan.fault_every_us);
                self.at(at, What::Fault);
            }
            What::Check => {
                invariants::look_for_lost(self);
                self.at(self.now + CHECK_US, What::Check);
            }
            _ => unreachable!("at a server"),
        }
    }
}
