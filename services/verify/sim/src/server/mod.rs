//! One replica server: its groups, its disk, and its way through life, as in `services/replica`.
//!
//! - [`groups`]: events into groups, their outputs carried out
//! - [`clients`]: what clients ask, and are answered
//! - [`transcript`]: what passed between clients and a group, for the invariants
//! - [`journal`]: what is written to its disk
//! - [`disk_reads`]: what groups have read from it; damaged records, and their repair
//! - [`control`]: the connection to the coordinator
//! - [`reports`]: what its heartbeats say

mod clients;
mod control;
mod disk_reads;
mod groups;
mod journal;
mod reports;
mod transcript;

use std::collections::{BTreeMap, BTreeSet};

use quorate_group::{Group, Outputs, Turn};
use quorate_journal::record::Lsn;
use quorate_types::control::{DrainState, HeldGroup, ToCoordinator};
use quorate_types::limits::INCARNATIONS_KEPT_MAX;
use quorate_types::{Durability, GroupId, Micros, ServerId};
use rand::Rng;

pub use clients::{Delivered, FromClient, through_wire};
pub use control::Control;
pub use disk_reads::DiskRead;
pub use groups::Hosted;
pub use transcript::Requested;

use crate::disk::{Disk, Image};
use crate::schedule::What;
use crate::world::World;

pub const TICK_US: Micros = 50_000;
/// The time on the wall when a run begins.
pub const WALL_BEGINS_US: u64 = 1_700_000_000_000_000;

#[derive(Debug)]
pub struct Server {
    /// On its disk, with the credential; `None`: not joined yet.
    pub id: Option<ServerId>,
    credential: Option<String>,
    /// How often this place was taken by another machine.
    machine: u32,
    /// Join tokens that were used up here.
    tokens: u32,
    pub alive: bool,
    pub incarnation: u64,
    /// On its disk: starts of the process since one that the coordinator confirmed, that one first.
    starts: Vec<String>,
    /// Starts before this process.
    previous_starts: Vec<String>,
    pub paused_until: Micros,
    /// Events that came while it was stopped.
    pub deferred: Vec<What>,
    pub disk: Disk,
    pub disk_fault: bool,
    /// Records have gone bad since this process started, and not all are repaired.
    pub is_rotten: bool,
    /// Copiers of the journal that wait for a damaged record: of which group, and which record.
    pub copiers: BTreeMap<u64, (GroupId, Lsn)>,
    copiers_begun: u64,
    /// Damaged records, none of a batch, on account of which groups have stated anew where their logs begin and end.
    restated: BTreeSet<Lsn>,
    /// Its journal failed; it is restarted then.
    pub fails_until: Option<Micros>,
    pub sync_factor: u64,
    pub groups: BTreeMap<GroupId, Hosted>,
    /// Groups that were here and are lost.
    lost: BTreeSet<GroupId>,
    /// The turn of all its groups, as one shard has it.
    turn: Turn,
    outputs: Outputs,
    /// The message that the group that takes a step has just been handed.
    delivered: Option<Delivered>,
    hostings: u64,
    attachments: u64,
    /// On its clock: when the coordinator last answered this process; and how long a lease is. 0 before the first answer.
    heard_us: Micros,
    lease_us: Micros,
    /// Found on disk at start.
    held: Vec<HeldGroup>,
    pub control: Option<Control>,
    /// The state of its drain, as it was told.
    pub drain: DrainState,
    /// Peers whose link broke, or could not be opened, and did not come back.
    pub unreachable: BTreeSet<ServerId>,
    /// For the coordinator, until there is a connection.
    news: Vec<ToCoordinator>,
    /// Grows whenever what is held of a group is lost: (server, group) with the same number has kept what it had.
    lineages: BTreeMap<GroupId, u64>,
    pub drift_permille: i64,
    pub wall_offset_us: i64,
}

impl Server {
    pub fn new(drift_permille: i64, segment_bytes: usize) -> Self {
        Self {
            id: None,
            credential: None,
            machine: 0,
            tokens: 0,
            alive: true,
            incarnation: 1,
            starts: Vec::new(),
            previous_starts: Vec::new(),
            paused_until: 0,
            deferred: Vec::new(),
            disk: Disk::new(segment_bytes),
            disk_fault: false,
            is_rotten: false,
            copiers: BTreeMap::new(),
            copiers_begun: 0,
            restated: BTreeSet::new(),
            fails_until: None,
            sync_factor: 1,
            groups: BTreeMap::new(),
            lost: BTreeSet::new(),
            turn: Turn::new(),
            outputs: Outputs::default(),
            delivered: None,
            hostings: 0,
            attachments: 0,
            heard_us: 0,
            lease_us: 0,
            held: Vec::new(),
            control: None,
            drain: DrainState::None,
            unreachable: BTreeSet::new(),
            news: Vec::new(),
            lineages: BTreeMap::new(),
            drift_permille,
            wall_offset_us: 0,
        }
    }

    /// Its own clock, which never goes back.
    pub fn clock_us(&self, now: Micros) -> Micros {
        (now as i64 + now as i64 * self.drift_permille / 1_000) as Micros
    }

    /// The earliest time at which its clock says this.
    fn when(&self, clock_us: Micros) -> Micros {
        (clock_us * 1_000).div_ceil((1_000 + self.drift_permille) as u64)
    }

    pub fn wall_us(&self, now: Micros) -> u64 {
        ((WALL_BEGINS_US + now) as i64 + self.wall_offset_us) as u64
    }

    /// Random, in a real server.
    pub fn incarnation_name(&self, s: usize) -> String {
        format!("{s}-{}-{}", self.machine, self.incarnation)
    }

    /// Written down before the coordinator hears of it.
    fn note_start(&mut self, s: usize) {
        self.previous_starts.clone_from(&self.starts);
        if self.id.is_none() {
            return;
        }
        if self.starts.len() >= INCARNATIONS_KEPT_MAX {
            // The first is the one that the coordinator knows for sure.
            self.starts.remove(1);
        }
        let incarnation = self.incarnation_name(s);
        self.starts.push(incarnation);
    }

    /// Sets the turn for a step at this time.
    fn set_turn(&mut self, now: Micros) {
        self.turn.now_us = self.clock_us(now);
        self.turn.wall_us = self.wall_us(now);
        self.turn.journal_waiting_bytes = self.disk.waiting_bytes();
    }

    /// Another one each time that a group comes to the server, whatever its process.
    fn new_hosting(&mut self) -> u64 {
        self.hostings += 1;
        self.hostings
    }

    /// For a lease nothing came back, as `services/replica/src/shared.rs` has it.
    fn is_coordinator_silent(&self, now: Micros) -> bool {
        self.clock_us(now).saturating_sub(self.heard_us) >= self.lease_us
    }

    pub fn group_ids(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    pub fn lineage(&self, group_id: GroupId) -> u64 {
        self.lineages.get(&group_id).copied().unwrap_or(0)
    }

    /// Counts the server's copy of the group as lost from here on.
    pub fn forget(&mut self, group_id: GroupId) {
        *self.lineages.entry(group_id).or_default() += 1;
    }

    pub fn image(&self, group_id: GroupId) -> Option<&Image> {
        self.disk.images.get(&group_id)
    }
}

impl World {
    /// The machine's name when it registers.
    pub fn name_of(&self, s: usize) -> String {
        format!("s{}m{}", s + 1, self.servers[s].machine)
    }

    pub fn server_of(&self, id: ServerId) -> Option<usize> {
        self.servers.iter().position(|server| server.id == Some(id))
    }

    /// Kills the process.
    pub fn crash(&mut self, s: usize) {
        if !self.servers[s].alive {
            return;
        }
        self.trace.line(None, || format!("s{} crashes", s + 1));
        for group_id in self.in_memory_ids(s) {
            self.servers[s].forget(group_id);
        }
        let server = &mut self.servers[s];
        server.alive = false;
        server.incarnation += 1;
        self.counts.torn_records += server.disk.crash(&mut self.rng) as u64;
        server.groups.clear();
        server.lost.clear();
        (server.turn, server.outputs) = (Turn::new(), Outputs::default());
        (server.heard_us, server.lease_us) = (0, 0);
        server.held.clear();
        server.news.clear();
        server.drain = DrainState::None;
        server.unreachable.clear();
        server.disk_fault = false;
        server.is_rotten = false;
        server.copiers.clear();
        server.restated.clear();
        server.fails_until = None;
        server.paused_until = 0;
        server.deferred.clear();
        for peer in (0..self.servers.len()).filter(|peer| *peer != s) {
            self.break_link(s, peer);
        }
        self.break_clients(s);
        self.break_control(s);
        self.counts.crashes += 1;
        let at = self.now + self.rng.random_range(500..self.plan.restart_us_max);
        self.at(at, What::Restart { server: s });
    }

    pub fn in_memory_groups(&self, s: usize) -> Vec<usize> {
        self.in_memory_ids(s)
            .into_iter()
            .map(|id| self.group_of(id))
            .collect()
    }

    fn in_memory_ids(&self, s: usize) -> Vec<GroupId> {
        let groups = self.servers[s].groups.iter();
        let in_memory = groups.filter(|(_, hosted)| hosted.replica().durability() == Durability::InMemory);
        in_memory.map(|(id, _)| *id).collect()
    }

    /// The journal's folder is lost; the server's identity lies elsewhere.
    pub fn wipe(&mut self, s: usize) {
        self.crash(s);
        let server = &mut self.servers[s];
        server.disk.wipe();
        for g in 0..self.ledgers.len() {
            self.servers[s].forget(World::group_id(g));
        }
    }

    /// Another machine takes the place.
    pub fn replace(&mut self, s: usize) {
        self.wipe(s);
        let server = &mut self.servers[s];
        server.id = None;
        server.credential = None;
        server.starts.clear();
        server.machine += 1;
        server.tokens += 1;
        self.invite(s);
    }

    /// Records on its disk go bad, and the process is killed.
    pub fn damage(&mut self, s: usize) {
        self.crash(s);
        let lost = self.servers[s].disk.damage(&mut self.rng);
        self.counts.damaged_records += lost.len() as u64;
        self.trace.line(None, || {
            format!("on the disk of s{} go bad records {lost:?}", s + 1)
        });
    }

    /// Records on its disk go bad while it runs.
    pub fn rot(&mut self, s: usize) {
        let lost = self.servers[s].disk.damage(&mut self.rng);
        self.counts.rotten_records += lost.len() as u64;
        self.servers[s].is_rotten |= !lost.is_empty();
        self.trace.line(None, || {
            format!("on the disk of s{}, which runs, go bad records {lost:?}", s + 1)
        });
    }

    pub fn restart(&mut self, s: usize) {
        if self.servers[s].alive {
            return;
        }
        self.servers[s].alive = true;
        self.trace.line(None, || format!("s{} starts", s + 1));
        self.servers[s].note_start(s);
        if let Some(id) = self.servers[s].id {
            self.recover(s, id);
        }
        let (now, incarnation) = (self.now, self.servers[s].incarnation);
        let at = now + self.rng.random_range(500..TICK_US);
        self.at(
            at,
            What::Tick {
                server: s,
                incarnation,
            },
        );
        self.begin_copying(s, incarnation);
        let at = now + self.rng.random_range(100..3_000);
        self.at(
            at,
            What::ControlDial {
                server: s,
                incarnation,
            },
        );
        for peer in (0..self.servers.len()).filter(|peer| *peer != s) {
            let at = now + self.rng.random_range(100..50_000);
            self.at(at, What::Dial { a: s, b: peer });
        }
    }

    /// Reads the journal: groups that are whole are held; damaged ones too, and said to be so; what is of no use is
    /// dropped and learned anew.
    fn recover(&mut self, s: usize, id: ServerId) {
        let before: Vec<GroupId> = self.servers[s].disk.images.keys().copied().collect();
        let held = self.servers[s].disk.recover(id);
        for group_id in before.iter().filter(|id| !held.contains_key(id)) {
            self.found_damaged(s, *group_id);
        }
        for (group_id, held) in held {
            let is_damaged = held.told.as_ref().is_some_and(|told| told.damaged);
            let server = &mut self.servers[s];
            let (hosting, now) = (server.new_hosting(), server.clock_us(self.now));
            let mut out = Outputs::default();
            let group = Group::recovered(group_id, id, held.replica, is_damaged, hosting, now, &mut out);
            self.host(s, group_id, group);
            self.carry_out_all(s, group_id, &mut out);
            if is_damaged || held.told.is_none() {
                self.found_damaged(s, group_id);
            }
            match held.told {
                Some(told) => self.servers[s].held.push(told),
                None => self.drop_group(s, group_id),
            }
        }
    }

    fn found_damaged(&mut self, s: usize, group_id: GroupId) {
        self.counts.damaged_groups += 1;
        self.trace.line(Some(self.group_of(group_id)), || {
            format!("s{} found it damaged", s + 1)
        });
        self.servers[s].forget(group_id);
    }

    /// A server that is stopped goes on: it finds all that came meanwhile, in order.
    pub fn resume(&mut self, s: usize) {
        let until = self.servers[s].paused_until;
        if until > self.now {
            return self.at(until, What::Resume { server: s });
        }
        for what in std::mem::take(&mut self.servers[s].deferred) {
            self.happen(what);
        }
    }
}
