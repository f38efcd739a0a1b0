//! Events into groups, and their outputs carried out: in steps, with a flush behind each or behind some of them.

use quorate_chain::{ClientRef, Replica, ReplicaEvent};
use quorate_group::{Event, Grant, Group, Output, Outputs, Record};
use quorate_recovery::GroupRecord;
use quorate_types::control::ToCoordinator;
use quorate_types::{Durability, Epoch, GroupConfig, GroupId, Index, Micros, Offset};
use quorate_wire::client::Message;
use rand::Rng;

use super::clients::Delivered;
use super::transcript::Transcript;
use crate::invariants::{self, Step};
use crate::schedule::What;
use crate::trace::{self, brief};
use crate::world::World;

/// Longer than a server waits (`COMMIT_NOTICE_HOLD_MS`): a commit notice that no batch carries comes late, or with the next tick.
const NOTICE_HOLD_US_MAX: Micros = 20_000;
/// A learner that may be sent all that it wants is allowed that within this time.
const CATCHUP_PACE_US_MAX: Micros = 1_000;

/// A group on a server.
#[derive(Debug)]
pub struct Hosted {
    pub group: Group,
    /// It took a step since it was last flushed.
    is_dirty: bool,
    /// A `CommitNoticeDue` is scheduled.
    is_notice_scheduled: bool,
    /// A `CatchupDue` is scheduled.
    is_catchup_scheduled: bool,
    /// When it is flushed next because something has its time; 0: nothing has.
    wake_at: Micros,
    /// Committed by this incarnation.
    pub commit_seen: Index,
    /// Generation of its log, as last seen.
    life: usize,
    /// The log's end, as last seen.
    pub last_seen: Index,
    pub transcript: Transcript,
}

impl Hosted {
    pub fn new(group: Group) -> Self {
        Self {
            commit_seen: group.replica().commit_index(),
            last_seen: group.replica().log().last_index(),
            group,
            is_dirty: false,
            is_notice_scheduled: false,
            is_catchup_scheduled: false,
            wake_at: 0,
            life: 0,
            transcript: Transcript::default(),
        }
    }

    pub fn replica(&self) -> &Replica {
        self.group.replica()
    }
}

impl World {
    /// The group takes in one event, if it is here.
    pub fn step(&mut self, s: usize, group_id: GroupId, event: Event) {
        if !self.step_only(s, group_id, event) {
            return;
        }
        if self.plan.flush_at_once >= 1.0 || self.rng.random_bool(self.plan.flush_at_once) {
            return self.flush_group(s, group_id);
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

    pub fn step_replica(&mut self, s: usize, group_id: GroupId, event: ReplicaEvent) {
        self.step(s, group_id, Event::Replica(event));
    }

    /// True: the group is here and took it.
    fn step_only(&mut self, s: usize, group_id: GroupId, event: Event) -> bool {
        let g = Self::index_of(group_id);
        let now = self.now;
        let server = &mut self.servers[s];
        server.set_turn(now);
        let Some(hosted) = server.groups.get_mut(&group_id) else {
            return false;
        };
        trace::focus(Some(g));
        self.trace
            .line(Some(g), || format!("s{} ← {}", s + 1, brief(&event)));
        let epoch = hosted.replica().epoch();
        let mut out = std::mem::take(&mut server.outputs);
        hosted.group.step(&mut server.turn, event, &mut out);
        let has_adopted = hosted.replica().epoch() != epoch;
        self.note_life(s, g);
        if has_adopted {
            self.adopted(s, g);
        }
        self.after(s, group_id, out);
        true
    }

    pub fn flush(&mut self, s: usize) {
        let groups = self.servers[s].groups.iter();
        let dirty = groups.filter(|(_, hosted)| hosted.is_dirty).map(|(id, _)| *id);
        for group_id in dirty.collect::<Vec<_>>() {
            self.flush_group(s, group_id);
        }
    }

    fn flush_group(&mut self, s: usize, group_id: GroupId) {
        let now = self.now;
        let server = &mut self.servers[s];
        server.set_turn(now);
        let Some(hosted) = server.groups.get_mut(&group_id) else {
            return;
        };
        trace::focus(Some(Self::index_of(group_id)));
        hosted.is_dirty = false;
        let mut out = std::mem::take(&mut server.outputs);
        hosted.group.flush(&mut server.turn, &mut out);
        self.after(s, group_id, out);
    }

    /// A group took a step or was flushed: checks it, and does what it wants done.
    fn after(&mut self, s: usize, group_id: GroupId, mut out: Outputs) {
        let g = Self::index_of(group_id);
        let hosted = &self.servers[s].groups[&group_id];
        let replica = hosted.replica();
        let log = replica.log();
        let (commit, last, epoch) = (replica.commit_index(), log.last_index(), replica.epoch());
        self.trace.numbers(&[
            self.now,
            s as u64,
            g as u64,
            epoch,
            commit,
            last,
            out.list.len() as u64,
        ]);
        if !out.is_empty() {
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
        if let Some(delivered) = self.servers[s].delivered.take() {
            self.attached_here(s, group_id, &delivered);
            let (delivered, out) = (&delivered, &out);
            invariants::after_request(self, &Step { s, g, delivered, out });
        }
        self.in_life_of(s, g, |world| invariants::after_step(world, s, g));
        self.carry_out_all(s, group_id, &mut out);
        invariants::after_outputs(self, s, g);
        self.servers[s].outputs = out;
    }

    /// Carries out what a group wants done, or what is answered for one that is not here.
    pub(super) fn carry_out_all(&mut self, s: usize, group_id: GroupId, out: &mut Outputs) {
        let list = std::mem::take(&mut out.list);
        let acks = std::mem::take(&mut out.acks);
        for output in list {
            self.carry_out(s, group_id, output, &acks);
        }
        out.clear();
    }

    fn carry_out(&mut self, s: usize, group_id: GroupId, output: Output, acks: &[(ClientRef, u64, Offset)]) {
        match output {
            Output::Client { client, message } => self.answer(s, group_id, client, &message),
            Output::Acked { client, acks: range } => self.answer_acks(s, group_id, client, &acks[range]),
            Output::NotAttached { client, message, .. } => self.answer(s, group_id, client, &message),
            Output::Peer { to, envelope } => {
                self.trace.line(Some(Self::index_of(group_id)), || {
                    format!("s{} → server {to}: {}", s + 1, brief(&envelope.message))
                });
                self.send(s, to, envelope);
            }
            Output::Coordinator(message) => self.tell_coordinator(s, message),
            Output::Journal(record) => {
                let entry = self.entry_of(group_id, record);
                self.write(s, entry);
            }
            Output::ForgetDisk => {
                self.counts.logs_forgotten += 1;
                self.servers[s].forget(group_id);
                self.write(s, GroupRecord::dropped(group_id));
            }
            Output::Load { from_index, to_index, .. } => self.load(s, group_id, from_index, to_index),
            Output::ReadPage(read) => self.read_page(s, group_id, read),
            Output::ReadForPeer { to, epoch, header } => self.read_for_peer(s, group_id, to, epoch, header),
            Output::Copied {
                copier,
                header,
                payload,
            } => self.copied(s, copier, &header, &payload),
            Output::CopierReleased(copier) => self.copier_released(s, copier),
            Output::Rewrite { header, payload } => self.rewrite(s, group_id, &header, &payload),
            Output::WakeInTime => self.wake_in_time(s, group_id),
            Output::CatchupWanted => self.catchup_wanted(s, group_id),
            Output::CommitNoticePending => self.notice_pending(s, group_id),
            Output::OwnerReturned { .. } => self.counts.owners_returned += 1,
            Output::Report(report) => self.note_report(s, group_id, &report),
            Output::Span(_) => {}
        }
    }

    /// The group may have taken a session over, for the connection on which it came last.
    fn attached_here(&mut self, s: usize, group_id: GroupId, delivered: &Delivered) {
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it took a step");
        let client = delivered.client;
        if let Message::Attach { session, .. } = &delivered.message
            && *session != 0
            && hosted.group.session_of(client) == Some(*session)
        {
            hosted.transcript.owners.insert(*session, client.connection);
        }
    }

    fn entry_of(&mut self, group_id: GroupId, record: Record) -> GroupRecord {
        match record {
            Record::Batch(batch) => GroupRecord::batch(&batch),
            Record::Base { base, index, epoch } => {
                self.counts.bases += 1;
                GroupRecord::base(group_id, base, index, epoch)
            }
            Record::Truncated { index, number } => {
                self.counts.cuts += 1;
                GroupRecord::truncate(group_id, index, number)
            }
            Record::Trim { index } => {
                self.counts.trims += 1;
                GroupRecord::trim(group_id, index)
            }
            Record::Mended { index, is_damaged } => GroupRecord::repaired(group_id, index, is_damaged),
        }
    }

    /// A replica is in a new epoch.
    fn adopted(&mut self, s: usize, g: usize) {
        let hosted = &self.servers[s].groups[&Self::group_id(g)];
        let config = hosted.replica().config().expect("adopted").clone();
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
    }

    /// A group comes to a server.
    pub(super) fn host(&mut self, s: usize, group_id: GroupId, mut group: Group) {
        if let Some(bytes) = self.plan.recent_bytes {
            group.keep_recent(bytes);
        }
        self.servers[s].groups.insert(group_id, Hosted::new(group));
        let life = self.life_of(s, Self::index_of(group_id));
        let hosted = self.servers[s].groups.get_mut(&group_id);
        hosted.expect("it has just come").life = life;
    }

    /// The replica may have thrown its log away for one of a later generation: what it had is lost on purpose.
    fn note_life(&mut self, s: usize, g: usize) {
        let life = self.life_of(s, g);
        let group_id = Self::group_id(g);
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it took a step");
        if std::mem::replace(&mut hosted.life, life) != life {
            hosted.commit_seen = 0;
            self.servers[s].forget(group_id);
        }
    }
}

/// Groups come and go; time passes.
impl World {
    pub fn configure(&mut self, s: usize, mut config: GroupConfig) {
        let group_id = config.group_id;
        let g = Self::index_of(group_id);
        config.retention_bytes = self.plan.groups[g].retention_bytes;
        config.retention_age_s = self.plan.groups[g].retention_age_s;
        let now = self.now;
        let server = &mut self.servers[s];
        server.lost.remove(&group_id);
        if !server.groups.contains_key(&group_id) {
            let me = server.id.expect("a registered server is configured");
            let is_dropping = server.disk.is_dropping(group_id);
            let (hosting, now) = (server.new_hosting(), server.clock_us(now));
            let group = Group::new(group_id, me, config.durability, is_dropping, hosting, now);
            self.host(s, group_id, group);
        }
        self.step(s, group_id, Event::Configure(config));
        if self.servers[s].disk_fault {
            self.step_replica(s, group_id, ReplicaEvent::StorageFault(true));
        }
    }

    /// Forgets a group and, once the journal has the note, its data.
    pub fn drop_group(&mut self, s: usize, group_id: GroupId) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || format!("s{} drops it", s + 1));
        self.servers[s].lost.remove(&group_id);
        if self.step_only(s, group_id, Event::Leave) {
            invariants::after_leave(self, s, g);
            self.servers[s].groups.remove(&group_id);
            self.servers[s].forget(group_id);
            self.counts.drops += 1;
            self.write(s, GroupRecord::dropped(group_id));
        }
        self.tell_coordinator(s, ToCoordinator::Dropped { group_id });
    }

    pub fn tick(&mut self, s: usize, incarnation: u64) {
        let is_coordinator_silent = self.servers[s].is_coordinator_silent(self.now);
        let shares_burst = self.plan.shares_burst;
        let server = &mut self.servers[s];
        server.turn.shares_burst = shares_burst;
        server.turn.is_burst_stopped = shares_burst && self.rng.random_bool(0.1);
        for group_id in self.servers[s].group_ids() {
            if shares_burst {
                self.share_burst(s, group_id);
            }
            self.step(
                s,
                group_id,
                Event::Tick {
                    is_coordinator_silent,
                },
            );
            if let Some(bytes) = self.plan.catchup_bytes {
                self.step_replica(s, group_id, ReplicaEvent::CatchupAllowance { bytes });
            }
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

    /// The controller of burst capacity grants something, or assumes something, whatever was used.
    fn share_burst(&mut self, s: usize, group_id: GroupId) {
        let server = &self.servers[s];
        let now_us = server.clock_us(self.now);
        let replica = server.groups[&group_id].replica();
        let reserved_per_s = replica.config().map_or(0, |config| config.budget.rate_per_s);
        // Some are of an epoch that has ended.
        let epoch = replica.epoch() - u64::from(replica.epoch() > 1 && self.rng.random_bool(0.1));
        let rate_per_s = self.rng.random_range(0..=2 * reserved_per_s);
        if self.rng.random_bool(0.1) {
            let until_us = now_us + self.rng.random_range(1_000..2_000_000);
            let grant = Grant {
                epoch,
                rate_per_s,
                until_us,
            };
            self.step(s, group_id, Event::Grant(grant));
        }
        if self.rng.random_bool(0.1) {
            let rate_per_s = (rate_per_s <= reserved_per_s).then_some(rate_per_s);
            self.step(s, group_id, Event::Assume { epoch, rate_per_s });
        }
    }

    /// A learner may be sent so much at each tick, if the plan says so, or else all that it wants, soon.
    fn catchup_wanted(&mut self, s: usize, group_id: GroupId) {
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        if self.plan.catchup_bytes.is_none() && !std::mem::replace(&mut hosted.is_catchup_scheduled, true) {
            let (incarnation, group) = (self.servers[s].incarnation, group_id);
            let at = self.now + self.rng.random_range(1..CATCHUP_PACE_US_MAX);
            self.at(
                at,
                What::CatchupDue {
                    server: s,
                    incarnation,
                    group,
                },
            );
        }
    }

    pub fn catchup_due(&mut self, s: usize, group_id: GroupId) {
        if let Some(hosted) = self.servers[s].groups.get_mut(&group_id) {
            hosted.is_catchup_scheduled = false;
            let bytes = hosted.group.catchup_wanted_bytes();
            self.step_replica(s, group_id, ReplicaEvent::CatchupAllowance { bytes });
        }
    }

    fn notice_pending(&mut self, s: usize, group_id: GroupId) {
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        if !std::mem::replace(&mut hosted.is_notice_scheduled, true) {
            let (incarnation, group) = (self.servers[s].incarnation, group_id);
            let at = self.now + self.rng.random_range(1..NOTICE_HOLD_US_MAX);
            self.at(
                at,
                What::CommitNoticeDue {
                    server: s,
                    incarnation,
                    group,
                },
            );
        }
    }

    pub fn notice_due(&mut self, s: usize, group_id: GroupId) {
        if let Some(hosted) = self.servers[s].groups.get_mut(&group_id) {
            hosted.is_notice_scheduled = false;
            if hosted.group.owes_commit_notice() {
                self.step_replica(s, group_id, ReplicaEvent::CommitNoticeDue);
            }
        }
    }

    fn wake_in_time(&mut self, s: usize, group_id: GroupId) {
        let now = self.now;
        let server = &mut self.servers[s];
        let clock_us = server.clock_us(now);
        let Some(hosted) = server.groups.get_mut(&group_id) else {
            return;
        };
        let Some(wake_us) = hosted.group.next_wake(clock_us) else {
            return;
        };
        let at = server.when(wake_us).max(now + 1);
        let hosted = server.groups.get_mut(&group_id).expect("looked up above");
        if hosted.wake_at > now && hosted.wake_at <= at {
            return;
        }
        hosted.wake_at = at;
        let incarnation = server.incarnation;
        self.at(
            at,
            What::Wake {
                server: s,
                incarnation,
                group: group_id,
            },
        );
    }

    /// Something of the group has its time.
    pub fn wake(&mut self, s: usize, group_id: GroupId) {
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        if hosted.wake_at <= self.now {
            hosted.wake_at = 0;
        }
        self.flush_group(s, group_id);
        self.wake_in_time(s, group_id);
    }

    /// Whether the replica has the batch for good.
    pub fn has(&self, s: usize, group_id: GroupId, index: Index, epoch: Epoch) -> bool {
        let server = &self.servers[s];
        match self.plan.groups[Self::index_of(group_id)].durability {
            Durability::Persistent => server
                .image(group_id)
                .is_some_and(|image| image.has(index, epoch)),
            Durability::InMemory => server.groups.get(&group_id).is_some_and(|hosted| {
                let log = hosted.replica().log();
                index <= log.base().index || log.header(index).is_some_and(|h| h.epoch == epoch)
            }),
        }
    }
}
