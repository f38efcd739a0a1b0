//! Events into replicas, and their commands carried out, in rounds as in `services/replica/src/shard`.

use quorate_chain::{Command, Event, Happened, Replica};
use quorate_qos::{Admission, QueueLimits, Ready};
use quorate_replica_log::{Entry, is_whole};
use quorate_types::control::ToCoordinator;
use quorate_types::limits::UNCOMMITTED_BYTES_MAX;
use quorate_types::{Code, Durability, Epoch, GroupConfig, GroupId, Index};
use rand::Rng;

use super::Hosted;
use crate::invariants;
use crate::schedule::What;
use crate::trace::{self, brief};
use crate::world::World;

/// Longer than a server takes (`NOTICE_HOLD_MS`): what comes with no batch comes late, or with the next tick.
const NOTICE_HOLD_US_MAX: u64 = 20_000;

impl World {
    pub fn step(&mut self, s: usize, group_id: GroupId, event: Event) {
        let now = self.servers[s].clock_us(self.now);
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        let g = Self::index_of(group_id);
        trace::focus(Some(g));
        self.trace
            .line(Some(g), || format!("s{} ← {}", s + 1, brief(&event)));
        let epoch = hosted.replica.epoch();
        let mut commands = Vec::new();
        hosted.replica.step(now, event, &mut commands);
        let has_adopted = hosted.replica.epoch() != epoch;
        self.note_life(s, g);
        if has_adopted {
            self.adopted(s, g);
        }
        self.after(s, group_id, commands);
        if self.plan.flush_at_once >= 1.0 || self.rng.random_bool(self.plan.flush_at_once) {
            self.flush_group(s, group_id);
            return;
        }
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        if !std::mem::replace(&mut hosted.is_dirty, true) {
            let incarnation = self.servers[s].incarnation;
            let at = self.now + self.rng.random_range(1..200);
            self.at(
                at,
                What::Flush {
                    server: s,
                    incarnation,
                },
            );
        }
    }

    pub fn flush(&mut self, s: usize) {
        let dirty: Vec<GroupId> = self.servers[s]
            .groups
            .iter()
            .filter(|(_, hosted)| hosted.is_dirty)
            .map(|(id, _)| *id)
            .collect();
        for group_id in dirty {
            self.flush_group(s, group_id);
        }
    }

    fn flush_group(&mut self, s: usize, group_id: GroupId) {
        trace::focus(Some(Self::index_of(group_id)));
        self.order_queue(s, group_id);
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        hosted.is_dirty = false;
        let mut commands = Vec::new();
        hosted.replica.flush(&mut commands);
        let owes_notice = hosted.replica.owes_notice() && !std::mem::replace(&mut hosted.is_owing, true);
        self.after(s, group_id, commands);
        self.answer_attaching(s, group_id);
        if owes_notice {
            let (incarnation, group) = (self.servers[s].incarnation, group_id);
            let at = self.now + self.rng.random_range(1..NOTICE_HOLD_US_MAX);
            self.at(
                at,
                What::NoticeDue {
                    server: s,
                    incarnation,
                    group,
                },
            );
        }
    }

    pub fn notice_due(&mut self, s: usize, group_id: GroupId) {
        if let Some(hosted) = self.servers[s].groups.get_mut(&group_id) {
            hosted.is_owing = false;
            self.step(s, group_id, Event::NoticeDue);
        }
    }

    /// What waits for the budget, as far as it goes.
    fn order_queue(&mut self, s: usize, group_id: GroupId) {
        let now = self.servers[s].clock_us(self.now);
        loop {
            let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
                return;
            };
            let Some(admission) = &mut hosted.admission else {
                return;
            };
            admission.set_window_open(hosted.replica.uncommitted_bytes() < UNCOMMITTED_BYTES_MAX);
            if admission.is_empty() {
                return;
            }
            match admission.pop(now) {
                Some(Ready::Admitted(request)) => {
                    // Unless its session has been attached elsewhere since: its client builds on what it was told.
                    if hosted.sessions.get(&request.session) == Some(&request.client) {
                        let mut commands = Vec::new();
                        hosted.replica.step(now, Event::Append(request), &mut commands);
                        self.after(s, group_id, commands);
                    } else {
                        let is_unknown = hosted.may_have_happened(&request);
                        let (client, seq) = (request.client, request.seq);
                        self.refuse(s, group_id, client, seq, Code::SessionMoved, is_unknown);
                    }
                }
                Some(Ready::Expired { item, .. }) => {
                    let is_unknown = hosted.may_have_happened(&item);
                    self.refuse(s, group_id, item.client, item.seq, Code::Throttled, is_unknown);
                }
                None => {
                    let wake = admission.next_wake(now).unwrap_or(now + 10_000).max(now + 1);
                    let at = self.now + (wake - now);
                    if hosted.wake_at > self.now && hosted.wake_at <= at {
                        return;
                    }
                    hosted.wake_at = at;
                    let incarnation = self.servers[s].incarnation;
                    return self.at(
                        at,
                        What::Wake {
                            server: s,
                            incarnation,
                            group: group_id,
                        },
                    );
                }
            }
        }
    }

    /// A replica took a step or ended a round: checks it, and does what it wants done.
    fn after(&mut self, s: usize, group_id: GroupId, commands: Vec<Command>) {
        let g = Self::index_of(group_id);
        let Some(hosted) = self.servers[s].groups.get(&group_id) else {
            return;
        };
        let replica = &hosted.replica;
        let log = replica.log();
        let (commit, last, epoch) = (replica.commit_index(), log.last_index(), replica.epoch());
        self.trace.numbers(&[
            self.now,
            s as u64,
            g as u64,
            epoch,
            commit,
            last,
            commands.len() as u64,
        ]);
        if !commands.is_empty() {
            self.trace.line(Some(g), || {
                format!(
                    "s{} epoch {epoch} {:?} {:?} base {} commit {commit} last {last} durable offset {}",
                    s + 1,
                    replica.role(),
                    replica.state(),
                    log.base().index,
                    replica.durable_offset()
                )
            });
        }
        self.in_life_of(s, g, |world| invariants::after_step(world, s, g));
        for command in commands {
            self.carry_out(s, group_id, epoch, command);
        }
    }

    fn carry_out(&mut self, s: usize, group_id: GroupId, epoch: Epoch, command: Command) {
        let g = Self::index_of(group_id);
        match command {
            Command::Send { to, message } => {
                self.trace.line(Some(g), || {
                    format!("s{} → server {to}: {}", s + 1, brief(&message))
                });
                self.send(s, to, group_id, epoch, message);
            }
            Command::Persist(batch) => self.write(s, Entry::batch(&batch)),
            Command::PersistBase { base, index, epoch } => {
                self.counts.bases += 1;
                self.write(s, Entry::base(group_id, base, index, epoch));
            }
            Command::Cut { index, number } => {
                self.counts.cuts += 1;
                self.write(s, Entry::cut(group_id, index, number));
            }
            Command::Load { from_index, to_index } => self.load(s, group_id, from_index, to_index),
            Command::Ack {
                client,
                seq,
                base_offset,
                entry_count,
                ..
            } => {
                self.ack(s, group_id, client, seq, base_offset, entry_count);
            }
            Command::Refuse {
                client,
                seq,
                code,
                happened,
                ..
            } => {
                self.refuse(s, group_id, client, seq, code, happened == Happened::Unknown);
            }
            Command::LearnerCaughtUp { learner } => {
                self.tell_coordinator(
                    s,
                    ToCoordinator::LearnerCaughtUp {
                        group_id,
                        epoch,
                        learner,
                    },
                );
            }
            Command::Adopted { epoch } => {
                self.tell_coordinator(s, ToCoordinator::Applied { group_id, epoch });
            }
            Command::Forget => {
                self.servers[s].forget(group_id);
                self.write(s, Entry::dropped(group_id));
            }
            Command::PersistTrim { index } => self.write(s, Entry::trim(group_id, index)),
            Command::Answer {
                client,
                request,
                asked,
                refused,
            } => {
                self.answer_asked(s, group_id, client, request, asked, refused);
            }
            Command::Trimmed { .. } => self.counts.trims += 1,
            Command::Committed => {}
        }
    }

    /// A replica is in a new epoch.
    fn adopted(&mut self, s: usize, g: usize) {
        let group_id = Self::group_id(g);
        let hosted = &self.servers[s].groups[&group_id];
        let config = hosted.replica.config().expect("adopted").clone();
        self.trace.line(Some(g), || {
            let chain: Vec<String> = config.line().map(|m| m.server_id.to_string()).collect();
            format!(
                "s{} adopts epoch {}: servers {} ({} replicas)",
                s + 1,
                config.epoch,
                chain.join(" "),
                config.replicas.len()
            )
        });
        self.in_life_of(s, g, |world| invariants::after_adoption(world, s, g, &config));
        let hosted = &self.servers[s].groups[&group_id];
        if !hosted.replica.is_head() {
            self.refuse_queue(s, group_id, Code::NotHead);
        }
    }

    pub fn note_first_life(&mut self, s: usize, g: usize) {
        let life = self.life_of(s, g);
        if let Some(hosted) = self.servers[s].groups.get_mut(&Self::group_id(g)) {
            hosted.life = life;
        }
    }

    /// The replica may have thrown its log away for one that begins anew: what it had is lost on purpose.
    fn note_life(&mut self, s: usize, g: usize) {
        let life = self.life_of(s, g);
        let group_id = Self::group_id(g);
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it took a step");
        if std::mem::replace(&mut hosted.life, life) != life {
            hosted.commit_seen = 0;
            self.servers[s].forget(group_id);
        }
    }

    fn refuse_queue(&mut self, s: usize, group_id: GroupId, code: Code) {
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        let waiting = hosted
            .admission
            .as_mut()
            .map(Admission::drain)
            .unwrap_or_default();
        for request in waiting {
            self.refuse(s, group_id, request.client, request.seq, code, false);
        }
    }

    pub fn configure(&mut self, s: usize, mut config: GroupConfig) {
        let group_id = config.group_id;
        let g = Self::index_of(group_id);
        config.retention_bytes = self.plan.groups[g].retention_bytes;
        config.retention_age_s = self.plan.groups[g].retention_age_s;
        let server = &self.servers[s];
        let now = server.clock_us(self.now);
        let me = server.id.expect("a registered server is configured");
        if !server.groups.contains_key(&group_id) {
            let mut replica = self.paced(Replica::new(me, config.durability));
            if server.disk.is_dropping(group_id) {
                replica.stand_behind_drop();
            }
            self.servers[s].groups.insert(group_id, Hosted::new(replica));
            self.note_first_life(s, g);
        }
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it is here");
        match &mut hosted.admission {
            Some(admission) => admission.set_budget(now, &config.budget),
            None => hosted.admission = Some(Admission::new(&config.budget, QueueLimits::default(), now)),
        }
        hosted.budget = Some(config.budget.clone());
        let begins = config.epoch > hosted.replica.epoch();
        self.step(s, group_id, Event::Configure(config));
        self.end_damage(s, group_id, begins);
        if self.servers[s].disk_fault {
            self.step(s, group_id, Event::StorageFault(true));
        }
    }

    /// A replica of the chain has all that the chain has.
    fn end_damage(&mut self, s: usize, group_id: GroupId, begins: bool) {
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it is here");
        if begins && is_whole(hosted.replica.role()) && std::mem::take(&mut hosted.is_damaged) {
            let last_index = hosted.replica.log().last_index();
            self.write(s, Entry::mended(group_id, last_index, false));
        }
    }

    /// Forgets a group and, once the journal has the note, its data.
    pub fn drop_group(&mut self, s: usize, group_id: GroupId) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || format!("s{} drops it", s + 1));
        if self.servers[s].groups.contains_key(&group_id) {
            self.refuse_queue(s, group_id, Code::GroupNotHere);
            let mut commands = Vec::new();
            let hosted = self.servers[s]
                .groups
                .get_mut(&group_id)
                .expect("looked up above");
            hosted.replica.leave(&mut commands);
            for command in commands {
                self.carry_out(s, group_id, 0, command);
            }
            self.servers[s].groups.remove(&group_id);
            self.servers[s].forget(group_id);
            self.counts.drops += 1;
            self.write(s, Entry::dropped(group_id));
        }
        self.tell_coordinator(s, ToCoordinator::Dropped { group_id });
    }

    pub(super) fn write(&mut self, s: usize, entry: Entry) {
        self.servers[s].disk.submit(entry);
        self.start_sync(s);
    }

    pub fn start_sync(&mut self, s: usize) {
        let server = &mut self.servers[s];
        if server.disk.syncing > 0 || !server.disk.has_pending() || server.disk_fault {
            return;
        }
        server.disk.begin_sync(&mut self.rng);
        let (incarnation, factor) = (server.incarnation, server.sync_factor);
        let at = self.now + self.rng.random_range(20..=self.plan.sync_us_max) * factor;
        self.at(
            at,
            What::Synced {
                server: s,
                incarnation,
            },
        );
    }

    pub fn synced(&mut self, s: usize) {
        if self.servers[s].disk_fault {
            // It never returns, or not before there is room.
            self.servers[s].disk.syncing = 0;
            return;
        }
        let durable = self.servers[s]
            .disk
            .complete(self.plan.completions_are_merged, &mut self.rng);
        self.start_sync(s);
        for durable in durable {
            if let Some(event) = durable.event() {
                self.step(s, durable.group_id, event);
            }
        }
    }

    pub fn set_disk_fault(&mut self, s: usize, fault: bool) {
        self.servers[s].disk_fault = fault;
        for group_id in self.servers[s].group_ids() {
            self.step(s, group_id, Event::StorageFault(fault));
        }
        self.start_sync(s);
    }

    pub fn disk_works(&mut self, s: usize, incarnation: u64) {
        if self.servers[s].incarnation != incarnation || !self.servers[s].disk_fault {
            return;
        }
        if self.servers[s].fails_until.is_some() {
            // A journal that failed takes nothing more before its process is restarted; what it holds in memory
            // of other groups goes with it.
            let in_memory = self.servers[s].in_memory_groups_are_spare(self, s);
            if in_memory {
                self.crash(s);
            } else {
                let at = self.now + 100_000;
                self.at(
                    at,
                    What::DiskWorks {
                        server: s,
                        incarnation,
                    },
                );
            }
            return;
        }
        self.set_disk_fault(s, false);
    }

    fn load(&mut self, s: usize, group_id: GroupId, from: Index, to: Index) {
        self.counts.loads += 1;
        assert!(to - from < 256, "a load of {from} to {to}");
        let to = if self.rng.random_bool(0.1) {
            self.rng.random_range(from..=to)
        } else {
            to
        };
        let disk = &self.servers[s].disk;
        let batches: Vec<_> = (from..=to)
            .map_while(|index| Some((index, disk.payload(group_id, index)?)))
            .collect();
        let incarnation = self.servers[s].incarnation;
        let at = self.now + self.rng.random_range(10..3_000);
        self.at(
            at,
            What::Loaded {
                server: s,
                incarnation,
                group: group_id,
                batches,
            },
        );
    }

    pub fn tick(&mut self, s: usize, incarnation: u64) {
        for group_id in self.servers[s].group_ids() {
            self.tick_group(s, group_id);
            let g = Self::index_of(group_id);
            self.in_life_of(s, g, |world| invariants::read_somewhere(world, s, g));
        }
        self.at(
            self.now + super::TICK_US,
            What::Tick {
                server: s,
                incarnation,
            },
        );
    }

    pub fn tick_group(&mut self, s: usize, group_id: GroupId) {
        let wall_us = self.servers[s].wall_us(self.now);
        self.step(s, group_id, Event::Tick { wall_us });
        if let Some(bytes) = self.plan.catchup_bytes {
            self.step(s, group_id, Event::CatchupAllowance { bytes });
        }
    }

    /// A replica as a server has it; its learner is sent no more than the plan allows, if that says so.
    pub fn paced(&self, mut replica: Replica) -> Replica {
        replica.hold_notices();
        if self.plan.catchup_bytes.is_some() {
            replica.pace_catchup();
        }
        replica
    }

    /// Whether the replica has the batch for good.
    pub fn has(&self, s: usize, group_id: GroupId, index: Index, epoch: Epoch) -> bool {
        let server = &self.servers[s];
        match self.plan.groups[Self::index_of(group_id)].durability {
            Durability::Persistent => server
                .image(group_id)
                .is_some_and(|image| image.has(index, epoch)),
            Durability::InMemory => server.groups.get(&group_id).is_some_and(|hosted| {
                let log = hosted.replica.log();
                index <= log.base().index || log.header(index).is_some_and(|h| h.epoch == epoch)
            }),
        }
    }
}

impl super::Server {
    fn in_memory_groups_are_spare(&self, world: &World, s: usize) -> bool {
        world.is_healing || world.in_memory_groups(s).iter().all(|g| world.may_lose(s, *g))
    }
}
