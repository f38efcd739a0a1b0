//! A shard: one thread that owns some of the server's groups, connections and links, and all their state.
//!
//! Tasks of the shard's runtime (readers, timers, the inbox) borrow the [`Shard`] for one synchronous step at a time
//! and never across an await. One flush task carries out what steps have changed. The runtime runs it after all
//! readers that were ready, so one flush serves many groups, and each socket gets one vectored write
//! (`docs/internals/replica.md`).
//!
//! Imports go down this list, never up:
//!
//! - `ring_task`: looks at rings of memory, where links go by one-sided writes; `ring`: one of them
//! - [`run`]: the thread, its runtime, its inbox. `client_task`, `link_task`, `disk_task`: one task for each
//!   connection, link, and piece of work that blocks. `read_batch`: how far a reader goes before a flush
//! - `hosting`, `asking`: groups that come, leave, or are in quarantine; questions to groups
//! - [`Shard`]: groups, and their events
//! - `executor`: what groups want done, to the handlers
//! - `clients`, `links`, `disk`, `wakeups`: handlers, each with its own state
//! - `quarantine`: assertions of one group
//! - `hosted`, `connection`, `remote_connections`, `flush_wake`: what they consist of

mod asking;
mod client_task;
mod clients;
mod connection;
mod disk;
mod disk_task;
mod executor;
mod flush_wake;
mod hosted;
mod hosting;
mod link_task;
mod links;
mod page_queue;
pub mod quarantine;
mod read_batch;
mod remote_connections;
mod ring;
mod ring_task;
pub mod run;
mod slow;
mod wakeups;

#[cfg(test)]
mod quarantine_tests;
#[cfg(test)]
mod shard_tests;
#[cfg(test)]
mod test_shard;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use quorate_chain::{ClientRef, ReplicaEvent};
use quorate_group::{Event, Outputs, Pool, Quarantines, Request, Turn, Work, refuse_absent};
use quorate_group_log::{Answer, LogLocation};
use quorate_journal::Lsn;
use quorate_one_sided::Way;
use quorate_qos::Pace;
use quorate_telemetry::ServerCounts;
use quorate_telemetry::usage::Sample;
use quorate_types::ids::IdMap;
use quorate_types::limits::{CATCHUP_BURST_MS, MOVES_OF_RECOVERY_SHARE};
use quorate_types::{Durability, GroupId, Micros, ServerId};
use quorate_wire::peer::Envelope;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::clock;
use crate::journal_port::JournalPort;
use crate::messages::{
    BurstMessage, ClientMessage, LinkMessage, LogsMessage, ShardMessage, ShardSample, ShareMessage,
};
use crate::shared::{Pulse, Shared};
use clients::Clients;
use disk::{CopierWait, Disk, DiskWork};
use executor::Executor;
use flush_wake::FlushWake;
use hosted::Hosted;
use links::Links;
use quarantine::guard;
use wakeups::Wakeups;

pub struct Shard {
    groups: IdMap<GroupId, Hosted>,
    executor: Executor,
    turn: Turn,
    /// Time stands still: work that is done in one go happens at one time. A look at a clock for each frame and group
    /// would cost a twentieth of short batches.
    is_in_turn: bool,
    /// The outputs of the group that is at work: one piece of memory for all groups, which is in the cache.
    outputs: Outputs,
    dirty_groups: Vec<GroupId>,
    flush_wake: FlushWake,
    /// Last samples of groups that left, until they are asked for.
    parted: Vec<Sample>,
    /// Groups that were here and are lost.
    lost: HashSet<GroupId>,
    quarantines: Quarantines,
    next_hosting: u64,
    /// Counts [`Shard::tick`].
    ticks: u64,
    pulse: Pulse,
}

impl Shard {
    pub fn new(index: usize, shared: Arc<Shared>, port: JournalPort) -> (Self, UnboundedReceiver<DiskWork>) {
        let flush_wake = FlushWake::default();
        let (disk, work) = Disk::new(port);
        let bytes_per_s = shared.settings.catchup_bytes_per_s / shared.shards.count() as u64;
        let pace = catchup_pace(bytes_per_s);
        let calm = catchup_pace((bytes_per_s / MOVES_OF_RECOVERY_SHARE).max(1));
        let (shards, settings) = (shared.shards.clone(), shared.settings.clone());
        let pulse = shared.vitals.join();
        let one_sided = settings.one_sided.clone().map(Way::new);
        let mut turn = Turn::new();
        turn.exports_spans = shared.spans.is_some();
        turn.pool = Pool::new(settings.pool_bytes / shared.shards.count() as u64);
        let executor = Executor {
            shard: index,
            clients: Clients::new(index, shards, settings, flush_wake.clone()),
            links: Links::new(flush_wake.clone(), one_sided),
            disk,
            wakeups: Wakeups::new(pace, calm),
            shared,
        };
        let shard = Self {
            groups: IdMap::default(),
            executor,
            turn,
            is_in_turn: false,
            outputs: Outputs::default(),
            dirty_groups: Vec::new(),
            flush_wake,
            parted: Vec::new(),
            lost: HashSet::new(),
            quarantines: Quarantines::default(),
            next_hosting: 1,
            ticks: 0,
            pulse,
        };
        (shard, work)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.executor.shared
    }

    /// Until [`Shard::end_turn`], time stands still for what the shard does. To be ended before anything is awaited.
    fn begin_turn(&mut self) {
        self.look_at_clocks();
        self.is_in_turn = true;
    }

    fn end_turn(&mut self) {
        self.is_in_turn = false;
    }

    fn look_at_clocks(&mut self) {
        (self.turn.now_us, self.turn.wall_us) = (clock::now_us(), clock::wall_us());
    }

    /// The turn as a group may see it now.
    fn prepare_turn(&mut self) {
        if !self.is_in_turn {
            self.look_at_clocks();
        }
        let shared = &self.executor.shared;
        self.turn.vouch = shared.coordinator.vouch();
        self.turn.is_unmetered = shared.settings.is_unmetered();
        self.turn.is_burst_stopped = shared.burst.is_stopped(self.turn.now_us);
        self.turn.shares_burst = shared.burst.share_version() > 0;
        self.turn.journal_waiting_bytes = self.executor.disk.port.waiting_bytes();
    }

    /// Takes an event in, if the group is here, carries out what follows at once, and has the group flushed.
    pub fn event(&mut self, group_id: GroupId, event: Event) {
        let _not_here = self.event_unless_absent(group_id, event);
    }

    /// The event, where the group is not here.
    fn event_unless_absent(&mut self, group_id: GroupId, event: Event) -> Option<Event> {
        self.prepare_turn();
        let Some(hosted) = self.groups.get_mut(&group_id) else {
            return Some(event);
        };
        let stepped = guard(|| hosted.core.step(&mut self.turn, event, &mut self.outputs));
        if let Err(reason) = stepped {
            self.quarantine(group_id, &reason);
            return None;
        }
        if !self.outputs.is_empty() {
            self.executor
                .carry_out(group_id, hosted, &mut self.outputs, self.turn.now_us);
        }
        Self::mark(group_id, hosted, &mut self.dirty_groups, &self.flush_wake);
        None
    }

    fn replica_event(&mut self, group_id: GroupId, event: ReplicaEvent) {
        self.event(group_id, Event::Replica(event));
    }

    fn all_groups(&mut self, event: impl Fn() -> Event) {
        for group_id in self.group_ids() {
            self.event(group_id, event());
        }
    }

    fn group_ids(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    /// Has the group flushed.
    fn mark(group_id: GroupId, hosted: &mut Hosted, dirty_groups: &mut Vec<GroupId>, flush_wake: &FlushWake) {
        hosted.is_stepped = true;
        if !std::mem::replace(&mut hosted.is_dirty, true) {
            dirty_groups.push(group_id);
            // The first one's wake-up serves all.
            if dirty_groups.len() == 1 {
                flush_wake.wake();
            }
        }
    }

    /// Everything that was made dirty is carried out.
    pub fn flush(&mut self) {
        self.flush_wake.begin();
        self.begin_turn();
        for (successor, group_id) in self.executor.links.take_released() {
            if let Some(hosted) = self.groups.get_mut(&group_id) {
                hosted.held_on.take_if(|held_on| *held_on == successor);
                Self::mark(group_id, hosted, &mut self.dirty_groups, &self.flush_wake);
            }
        }
        let mut dirty = std::mem::take(&mut self.dirty_groups);
        let is_alone = dirty.len() <= 1;
        for group_id in dirty.drain(..) {
            self.flush_group(group_id);
        }
        // Nothing was pushed meanwhile: a flush makes no group dirty. The allocation is kept.
        assert!(self.dirty_groups.is_empty(), "a flush makes no group dirty");
        self.dirty_groups = dirty;
        self.end_turn();
        self.submit_to_journal();
        let syncs_here = self.executor.disk.commit(is_alone);
        self.executor.clients.write_dirty();
        self.executor.links.write_dirty();
        if syncs_here {
            self.executor.disk.commit_here();
        }
        self.flush_wake.end();
    }

    fn flush_group(&mut self, group_id: GroupId) {
        self.prepare_turn();
        let Some(hosted) = self.groups.get_mut(&group_id) else {
            return;
        };
        (hosted.is_dirty, hosted.is_stepped) = (false, true);
        if let Some(successor) = hosted.core.feeds() {
            hosted.held_on = self.executor.links.hold(successor, group_id, hosted.held_on);
            hosted.core.hold(hosted.held_on.is_some());
        }
        let flushed = guard(|| hosted.core.flush(&mut self.turn, &mut self.outputs));
        if let Err(reason) = flushed {
            return self.quarantine(group_id, &reason);
        }
        self.executor
            .carry_out(group_id, hosted, &mut self.outputs, self.turn.now_us);
    }

    fn submit_to_journal(&mut self) {
        let (placed, refusal) = self.executor.disk.submit();
        for placed in placed {
            if let Some(hosted) = self.groups.get_mut(&placed.durable.group_id) {
                hosted.records.placed(placed);
            }
        }
        use quorate_journal::SubmitError;
        match refusal {
            None | Some(SubmitError::Busy | SubmitError::Closing) => {}
            Some(error) => self.executor.storage_refused(&error.to_string()),
        }
    }

    /// Every so often: time-outs of the protocol, reports for the heartbeat, journal space to release.
    pub fn tick(&mut self) {
        self.pulse.beat();
        self.begin_turn();
        let now = self.turn.now_us;
        let is_coordinator_silent = self.shared().coordinator.is_silent(now);
        self.ticks += 1;
        let number = self.ticks;
        for group_id in self.ask_all(|hosted, _| hosted.core.is_tick_due(number).then_some(hosted.core.id()))
        {
            self.event(
                group_id,
                Event::Tick {
                    is_coordinator_silent,
                },
            );
        }
        self.end_turn();
        debug_assert_eq!(
            self.turn.pool.used_bytes(),
            self.pooled_bytes(),
            "no group uses the pool that is not here"
        );
        let is_persistent = |hosted: &Hosted| hosted.core.replica().durability() == Durability::Persistent;
        self.executor.disk.port.may_hold_up = self.groups.values().all(is_persistent);
        let lags = self.ask_all(|hosted, _| Some(hosted.core.replica().lags(now)));
        let slow = slow::reports(&lags, &mut self.executor, now);
        self.shared().coordinator.note_slow(self.executor.shard, slow);
        // Each change of a group marks it.
        let reports = self.ask_all(|hosted, _| {
            let is_stepped = std::mem::take(&mut hosted.is_stepped);
            is_stepped.then(|| hosted.core.report()).flatten()
        });
        self.shared().coordinator.note_groups(reports.into_iter());
    }

    /// The part of the pool that groups use.
    fn pooled_bytes(&self) -> u64 {
        self.groups
            .values()
            .map(|hosted| hosted.core.pooled_bytes())
            .sum()
    }

    /// Sends successors the commit notices that no batch has carried to them.
    pub fn send_commit_notices(&mut self) {
        for group_id in self.executor.wakeups.take_notices_pending() {
            let is_owed = self.ask(group_id, |hosted, _| {
                hosted.is_notice_pending = false;
                hosted.core.owes_commit_notice()
            });
            if is_owed == Some(true) {
                self.replica_event(group_id, ReplicaEvent::CommitNoticeDue);
            }
        }
    }

    /// Flushes the groups in which something has its time; when the next has.
    pub fn wake_timed(&mut self, now: Micros) -> Option<Micros> {
        let mut next = None;
        for group_id in self.executor.wakeups.take_timed() {
            let at = self.ask(group_id, |hosted, _| hosted.core.next_wake(now));
            let (Some(at), Some(hosted)) = (at.flatten(), self.groups.get_mut(&group_id)) else {
                continue;
            };
            self.executor.wakeups.keep_timed(group_id);
            if at <= now {
                Self::mark(group_id, hosted, &mut self.dirty_groups, &self.flush_wake);
            }
            next = Some(next.map_or(at, |next: Micros| next.min(at)));
        }
        next
    }

    /// Shares what the pace allows among the groups whose learners wait, evenly.
    pub fn allow_catchup(&mut self) {
        let waiting = self.executor.wakeups.take_catching_up();
        let now = clock::now_us();
        let mut waiters = waiting.len() as u64;
        for group_id in waiting {
            let asked = self.ask(group_id, |hosted, _| {
                (hosted.core.catchup_wanted_bytes(), hosted.core.is_moving())
            });
            let (wanted, is_moving) = asked.unwrap_or((0, false));
            let bytes = (self.executor.wakeups).allowance(now, wanted, waiters, is_moving);
            waiters -= 1;
            if bytes > 0 {
                self.replica_event(group_id, ReplicaEvent::CatchupAllowance { bytes });
            } else if wanted > 0 {
                self.executor.wakeups.keep_catching_up(group_id);
            }
        }
    }

    /// Counters of all groups, and of the shard.
    pub fn sample(&mut self) -> ShardSample {
        self.look_at_clocks();
        let taken = self.ask_all(|hosted, turn| {
            let samples = hosted.core.take_samples(turn);
            Some((samples, hosted.core.take_counts(), hosted.core.replica().role()))
        });
        let mut groups = std::mem::take(&mut self.parted);
        let mut counts = ServerCounts {
            links_up: self.executor.links.len() as u64,
            quarantined: self.quarantines.len() as u64,
            ..ServerCounts::default()
        };
        for (samples, (totals, burst_requests), role) in taken {
            groups.extend(samples);
            counts.appends += totals.offered_batches;
            counts.entries += totals.offered_entries;
            counts.bytes += totals.offered_bytes;
            counts.refused += totals.refused_entries;
            counts.throttled += totals.throttled_entries;
            counts.burst_requests += burst_requests;
            counts.roles.push(role);
        }
        let owed = self.shared().group_costs.take_owed_reads(&mut groups);
        (counts.owed_reads, counts.late_reads) = (owed.entries, owed.late_entries);
        for sample in &groups {
            counts.latency.merge(&sample.latency);
        }
        ShardSample { groups, counts }
    }
}

/// Messages from other threads.
impl Shard {
    fn message(&mut self, message: ShardMessage) {
        self.begin_turn();
        match message {
            ShardMessage::Hosting(message) => self.hosting(message),
            ShardMessage::Journal(event) => self.journal_event(event),
            ShardMessage::Logs(message) => self.logs(message),
            ShardMessage::Link(message) => self.link(message),
            ShardMessage::Client(message) => self.client(message),
            ShardMessage::Burst(message) => self.burst(message),
            ShardMessage::Share(message) => self.share(message),
            ShardMessage::Sample(answer) => {
                let _gone = answer.send(self.sample()).is_err();
            }
            ShardMessage::Work(answer) => {
                let mut all = Work::default();
                for work in self.ask_all(|hosted, _| hosted.core.take_work()) {
                    all.add(&work);
                }
                let _gone = answer.send(all).is_err();
            }
            ShardMessage::Stop => unreachable!("handled by the inbox"),
        }
        self.end_turn();
    }
}

/// Clients and peers.
impl Shard {
    fn client(&mut self, message: ClientMessage) {
        match message {
            ClientMessage::Accepted { .. } => unreachable!("the inbox begins its task"),
            ClientMessage::Request {
                group_id,
                client,
                request,
                backlog,
                weight,
            } => {
                backlog.taken(weight);
                self.executor.clients.note_remote(client, &request, backlog);
                self.group_request(group_id, client, request);
            }
            ClientMessage::Answer {
                client,
                message,
                weight,
            } => {
                self.executor.clients.send_from_remote(client, message, weight);
            }
            ClientMessage::FromDisk {
                client,
                entries,
                bytes,
            } => self.executor.clients.charge_disk(client, entries, bytes),
            ClientMessage::NotAttached { client, number } => {
                self.executor.clients.free_channel(client, number)
            }
            ClientMessage::Quarantined { group_id } => self.executor.clients.close_of(group_id),
            ClientMessage::Revoked => {
                let (clients, access) = (&self.executor.clients, &self.executor.shared.access);
                clients.close_where(|credential| access.is_revoked(credential));
            }
            ClientMessage::Close { connection } => self.executor.clients.close_for_remote(connection),
        }
    }

    /// A client's request to a group of this shard.
    pub fn group_request(&mut self, group_id: GroupId, client: ClientRef, request: Request) {
        let absent = self.event_unless_absent(group_id, Event::Request { client, request });
        if let Some(Event::Request { client, request }) = absent {
            let absence = self
                .quarantines
                .absence_of(group_id, self.lost.contains(&group_id));
            refuse_absent(client, &request, absence, &mut self.outputs);
            self.executor.answer(&mut self.outputs);
        }
    }

    fn link(&mut self, message: LinkMessage) {
        match message {
            LinkMessage::Accepted { .. } | LinkMessage::Dial(_) => {
                unreachable!("the inbox begins their tasks")
            }
            LinkMessage::Up(server) => self.all_groups(|| Event::Replica(ReplicaEvent::LinkUp { server })),
            LinkMessage::Down(server) => {
                self.all_groups(|| Event::Replica(ReplicaEvent::LinkDown { server }))
            }
            LinkMessage::FromPeer { from, envelope } => self.peer_envelope(from, envelope),
            LinkMessage::ToPeer { to, envelope } => self.executor.send_peer(to, envelope),
        }
    }

    /// A peer's message to a group, on whichever shard it is.
    pub fn peer_envelope(&mut self, from: ServerId, envelope: Envelope) {
        let shards = &self.executor.shared.shards;
        let owner = shards.of_group(envelope.group_id);
        if owner != self.executor.shard {
            let message = LinkMessage::FromPeer { from, envelope };
            return shards.send(owner, ShardMessage::Link(message));
        }
        let Envelope {
            group_id,
            epoch,
            message,
        } = envelope;
        self.event(group_id, Event::Peer { from, epoch, message });
    }

    fn burst(&mut self, message: BurstMessage) {
        match message {
            BurstMessage::Loads(answer) => {
                let now = clock::now_us();
                let loads = self.ask_all(|hosted, _| hosted.core.take_load(now));
                let _gone = answer.send(loads).is_err();
            }
            BurstMessage::Grant { group_id, grant } => self.event(group_id, Event::Grant(grant)),
            BurstMessage::Assume {
                group_id,
                epoch,
                rate_per_s,
            } => {
                self.event(group_id, Event::Assume { epoch, rate_per_s });
            }
            BurstMessage::Frame { to, bytes } => self.executor.links.send_share(to, bytes),
        }
    }
}

/// Shares of projects' guarantees.
impl Shard {
    fn share(&mut self, message: ShareMessage) {
        match message {
            ShareMessage::Flows(answer) => {
                let now = clock::now_us();
                let flows = self.ask_all(|hosted, _| hosted.core.take_flow(now));
                let _gone = answer.send(flows).is_err();
            }
            ShareMessage::Wants(answer) => {
                let now = clock::now_us();
                let wants = self.ask_all(|hosted, _| hosted.core.take_demand(now));
                let _gone = answer.send(wants).is_err();
            }
            ShareMessage::Told(share) => {
                let group_id = share.group_id;
                self.event(group_id, Event::Share(Some(share)));
                let per_s = self.ask(group_id, |hosted, _| hosted.core.share_per_s());
                (self.shared().group_costs).set_share(group_id, per_s.unwrap_or(0));
            }
            ShareMessage::Lapsed => {
                self.shared().group_costs.end_shares();
                self.all_groups(|| Event::Share(None));
            }
        }
    }
}

/// The disk.
impl Shard {
    fn journal_event(&mut self, event: quorate_journal::Event) {
        use quorate_journal::Event as JournalEvent;
        match event {
            JournalEvent::Durable { tag, .. } => {
                for durable in self.executor.disk.completed(tag) {
                    self.durable(&durable);
                }
                self.flush_wake.wake_again();
            }
            // Records that wait are submitted again by the next flush.
            JournalEvent::Room => self.flush_wake.wake_again(),
            JournalEvent::DiskFree => {
                if self.shared().coordinator.end_storage_fault() {
                    tracing::info!("the disk takes records again");
                }
                self.all_groups(|| Event::Replica(ReplicaEvent::StorageFault(false)));
                self.flush_wake.wake_again();
            }
            JournalEvent::Failed { reason } => {
                self.executor.disk.port.died();
                self.storage_fault(reason.to_string());
            }
            JournalEvent::DiskFull { reason } => self.storage_fault(reason.to_string()),
        }
    }

    fn durable(&mut self, durable: &quorate_recovery::Durable) {
        let group_id = durable.group_id;
        if let Some(hosted) = self.groups.get_mut(&group_id) {
            hosted
                .records
                .durable(group_id, durable, || self.executor.shared.group_logs());
        }
        if let Some(event) = durable.event() {
            self.replica_event(group_id, event);
        }
    }

    fn storage_fault(&mut self, reason: String) {
        self.shared().coordinator.set_storage_fault(reason);
        self.all_groups(|| Event::Replica(ReplicaEvent::StorageFault(true)));
    }

    fn logs(&mut self, message: LogsMessage) {
        match message {
            LogsMessage::Moved { group_id, records } => {
                if let Some(hosted) = self.groups.get_mut(&group_id) {
                    hosted.records.places.moved(&records);
                }
            }
            LogsMessage::LostInJournal { lsns, answer } => self.lost_in_journal(lsns, answer),
            LogsMessage::DamagedInLog {
                group_id,
                place,
                answer,
            } => self.damaged_in_log(group_id, place, &answer),
            LogsMessage::Restate(Some(group_id)) => self.event(group_id, Event::Restate),
            LogsMessage::Restate(None) => self.all_groups(|| Event::Restate),
        }
    }

    /// The journal's copier has come upon records that it cannot read.
    fn lost_in_journal(&mut self, lsns: Range<Lsn>, answer: std::sync::mpsc::Sender<Answer>) {
        for stopped in self.quarantines.reports() {
            let _gone = answer.send(Answer::Stopped(stopped.group_id)).is_err();
        }
        let wait = CopierWait::new(lsns, answer);
        for group_id in self.group_ids() {
            let records = &self.groups[&group_id].records;
            let damaged = self.executor.disk.wait_for_repairs(group_id, records, &wait);
            if !damaged.is_empty() {
                self.event(group_id, Event::Damaged(damaged));
            }
        }
    }

    /// The scrubber has come upon a record that it cannot read.
    fn damaged_in_log(
        &mut self,
        group_id: GroupId,
        place: LogLocation,
        answer: &std::sync::mpsc::Sender<bool>,
    ) {
        let Some(hosted) = self.groups.get(&group_id) else {
            return;
        };
        let index = hosted.records.places.index_at(place.file, place.position);
        let _gone = answer.send(index.is_some()).is_err();
        if let Some(index) = index {
            self.event(group_id, Event::Damaged(vec![(index, None)]));
        }
    }
}

fn catchup_pace(bytes_per_s: u64) -> Pace {
    let burst_bytes = (bytes_per_s * CATCHUP_BURST_MS / 1_000).max(1);
    Pace::new(bytes_per_s, burst_bytes, clock::now_us())
}
