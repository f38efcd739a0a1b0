//! One replica server: its groups, its disk, and its way through life, as in `services/replica`.
//!
//! - [`shell`]: events into replicas, their commands carried out
//! - [`serve`]: what clients ask
//! - [`control`]: the connection to the coordinator

mod control;
mod serve;
mod shell;

use std::collections::{BTreeMap, HashMap};

use quorate_chain::{AppendRequest, ClientRef, Replica, Verdict};
use quorate_qos::Admission;
use quorate_types::control::{HeldGroup, ToCoordinator};
use quorate_types::cost::Budget;
use quorate_types::{Durability, GroupId, Index, Micros, ServerId};
use rand::Rng;

pub use control::Control;
pub use serve::{FromClient, Request, through_wire};

use crate::disk::{Disk, Image};
use crate::schedule::What;
use crate::world::World;

pub const TICK_US: Micros = 50_000;

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
    pub paused_until: Micros,
    /// What came while it was stopped.
    pub deferred: Vec<What>,
    pub disk: Disk,
    pub disk_fault: bool,
    /// Its journal failed; it is restarted then.
    pub fails_until: Option<Micros>,
    pub sync_factor: u64,
    pub groups: BTreeMap<GroupId, Hosted>,
    /// Found on disk at start.
    held: Vec<HeldGroup>,
    pub control: Option<Control>,
    /// For the coordinator, until there is a connection.
    news: Vec<ToCoordinator>,
    /// Grows whenever what is held of a group is lost: (server, group) with the same number has kept what it had.
    lineages: BTreeMap<GroupId, u64>,
    pub drift_permille: i64,
    pub wall_offset_us: i64,
}

/// A group on a server.
#[derive(Debug)]
pub struct Hosted {
    pub replica: Replica,
    admission: Option<Admission<AppendRequest>>,
    budget: Option<Budget>,
    /// Session of each attached channel; 0: none. Only looked up, never walked: the order would be random.
    channels: HashMap<ClientRef, u64>,
    /// The channel that each session was attached on last: it alone may append.
    sessions: HashMap<u64, ClientRef>,
    attaching: Vec<ClientRef>,
    is_dirty: bool,
    /// When its queue is looked at next.
    wake_at: Micros,
    /// Committed by this incarnation.
    pub commit_seen: Index,
}

impl Hosted {
    /// As `may_have_happened` of the server's group: no refusal of such a sending may say that it did not happen.
    fn may_have_happened(&self, request: &AppendRequest) -> bool {
        let sessions = self.replica.log().sessions();
        let verdict = sessions.judge(request.session, request.seq, request.floor_index);
        request.session != 0 && matches!(verdict, Verdict::Ordered(_) | Verdict::Expired)
    }

    fn new(replica: Replica) -> Self {
        Self {
            commit_seen: replica.commit_index(),
            replica,
            admission: None,
            budget: None,
            channels: HashMap::new(),
            sessions: HashMap::new(),
            attaching: Vec::new(),
            is_dirty: false,
            wake_at: 0,
        }
    }
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
            paused_until: 0,
            deferred: Vec::new(),
            disk: Disk::new(segment_bytes),
            disk_fault: false,
            fails_until: None,
            sync_factor: 1,
            groups: BTreeMap::new(),
            held: Vec::new(),
            control: None,
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

    pub fn wall_us(&self, now: Micros) -> u64 {
        (1_700_000_000_000_000 + now as i64 + self.wall_offset_us) as u64
    }

    pub fn group_ids(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    pub fn lineage(&self, group_id: GroupId) -> u64 {
        self.lineages.get(&group_id).copied().unwrap_or(0)
    }

    /// What was held of the group is lost from here on.
    pub fn forget(&mut self, group_id: GroupId) {
        *self.lineages.entry(group_id).or_default() += 1;
    }

    pub fn image(&self, group_id: GroupId) -> Option<&Image> {
        self.disk.images.get(&group_id)
    }
}

impl World {
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
        server.held.clear();
        server.news.clear();
        server.disk_fault = false;
        server.fails_until = None;
        server.paused_until = 0;
        server.deferred.clear();
        for peer in (0..self.servers.len()).filter(|peer| *peer != s) {
            self.break_link(s, peer);
        }
        self.break_control(s);
        self.counts.crashes += 1;
        let at = self.now + self.rng.random_range(500..600_000);
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
        let in_memory = groups.filter(|(_, hosted)| hosted.replica.durability() == Durability::InMemory);
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
        server.machine += 1;
        server.tokens += 1;
        self.invite(s);
    }

    pub fn flip(&mut self, s: usize) {
        self.crash(s);
        if let Some(group_id) = self.servers[s].disk.flip(&mut self.rng) {
            self.trace.line(Some(self.group_of(group_id)), || {
                format!("a bit flips on the disk of s{}", s + 1)
            });
            self.servers[s].forget(group_id);
        }
    }

    pub fn restart(&mut self, s: usize) {
        if self.servers[s].alive {
            return;
        }
        self.servers[s].alive = true;
        self.trace.line(None, || format!("s{} starts", s + 1));
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

    /// Reads the journal: groups that are whole are held, damaged ones dropped and learned anew.
    fn recover(&mut self, s: usize, id: ServerId) {
        let found = self.servers[s].disk.recover(id);
        for (group_id, replica) in found.groups {
            let is_damaged = found.damaged.contains(&group_id);
            let replica = self.paced(replica);
            let log = replica.log();
            if !found.has_damage {
                assert!(!is_damaged, "an undamaged journal lacks a part of a log");
                self.servers[s]
                    .image(group_id)
                    .cloned()
                    .unwrap_or_default()
                    .check(log);
            }
            if !is_damaged {
                self.servers[s].disk.reimage(group_id, &replica);
                self.servers[s].held.push(HeldGroup {
                    group_id,
                    epoch: log.epoch_at(log.last_index()).unwrap_or(0),
                    durability: Durability::Persistent,
                    last_index: log.last_index(),
                    committed_epoch: log.epoch_at(replica.commit_index()).unwrap_or(0),
                    committed_index: replica.commit_index(),
                    damaged: false,
                });
            }
            self.servers[s].groups.insert(group_id, Hosted::new(replica));
            if is_damaged {
                self.counts.damaged_groups += 1;
                self.trace.line(Some(self.group_of(group_id)), || {
                    format!("s{} found it damaged", s + 1)
                });
                self.drop_group(s, group_id);
            }
        }
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
