//! Questions of a shell: what a group needs next, what it holds, what it reports.

use quorate_burst::exchange::GroupLoad;
use quorate_chain::{ClientRef, Replica};
use quorate_types::control::{GroupFlow, GroupReport, PartitionWant};
use quorate_types::limits::GROUP_MEMORY_BYTES;
use quorate_types::space::with_slack;
use quorate_types::{GroupId, GroupState, Micros, ServerId};
use quorate_usage::{Sample, Totals};

use super::Group;
use crate::event::Generation;
use crate::throughput::Work;
use crate::turn::Turn;

/// So many ticks without another event make a group quiet: two seconds, more than any retry of the protocol waits.
const QUIET_AFTER_TICKS: u32 = 20;
/// A quiet group is ticked at one of so many ticks: twice a second. With each tick, fifty thousand idle groups would take a
/// third of a core.
const QUIET_TICK_EVERY: u64 = 5;

impl Group {
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// Whether the shell's tick of this number is one for this group. Ticks of quiet groups are spread over time.
    pub fn is_tick_due(&self, number: u64) -> bool {
        let replica = &self.replica;
        let at_rest = replica.state() != GroupState::Syncing
            && replica.commit_index() == replica.log().last_index()
            && replica.durable_index() == replica.log().last_index()
            && replica.catchup_wanted_bytes() == 0
            && !replica.is_isolated();
        let own = self.id.0.as_u64_pair().1 % QUIET_TICK_EVERY;
        self.quiet_ticks < QUIET_AFTER_TICKS || !at_rest || number % QUIET_TICK_EVERY == own
    }

    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    pub fn generation(&self) -> Generation {
        self.reading.generation()
    }

    /// The session with which a client is attached; 0: without one.
    pub fn session_of(&self, client: ClientRef) -> Option<u64> {
        self.intake.session_of(client)
    }

    /// The successor, while there is something to feed it with: a shell asks its link whether there is room.
    pub fn feeds(&self) -> Option<ServerId> {
        self.replica.feeds()
    }

    /// The link to the successor is full, or has room again.
    pub fn hold(&mut self, is_held: bool) {
        self.replica.hold(is_held);
    }

    /// Memory that the group holds, as admission counts it: log, sessions, queue, and all that is beside them.
    pub fn held_bytes(&self) -> u64 {
        self.replica.log().held_bytes() + with_slack(self.intake.waiting_bytes()) + GROUP_MEMORY_BYTES
    }

    /// The memory that it holds beyond that, as the pool knows it.
    pub fn pooled_bytes(&self) -> u64 {
        self.memory.pooled_bytes()
    }

    /// The memory that it was admitted with.
    pub fn own_bytes(&self) -> u64 {
        self.memory.own_bytes()
    }

    /// Bounds the committed payload that stays in memory. The rest is read from disk.
    pub fn keep_recent(&mut self, bytes_max: u64) {
        self.replica.keep_recent(bytes_max);
    }

    /// Whether a commit notice to the successor is due.
    pub fn owes_commit_notice(&self) -> bool {
        self.replica.is_commit_notice_pending()
    }

    pub fn catchup_wanted_bytes(&self) -> u64 {
        self.replica.catchup_wanted_bytes()
    }

    /// Whether the learner is to take the place of a replica that is still there: nobody waits for it.
    pub fn is_moving(&self) -> bool {
        let config = self.replica.config();
        config.is_some_and(|config| config.replicas.len() >= usize::from(config.replication_degree))
    }

    /// The next time at which the queue has something to order or to refuse, or a read has waited for long enough.
    pub fn next_wake(&mut self, now_us: Micros) -> Option<Micros> {
        let queue = self.intake.next_wake(now_us);
        let reads = self.reading.next_deadline();
        queue.into_iter().chain(reads).min()
    }

    /// Requests/s that pass now: those of the reservation, and those granted.
    pub fn rate_per_s(&self, now_us: Micros) -> u64 {
        self.intake.rate_per_s(now_us)
    }

    /// For the heartbeat; `None` before the first configuration.
    pub fn report(&self) -> Option<GroupReport> {
        let config = self.replica.config()?;
        Some(GroupReport {
            group_id: self.id,
            epoch: config.epoch,
            role: self.replica.role(),
            state: self.replica.state(),
            last_index: self.replica.log().last_index(),
            commit_offset: self.replica.commit_offset(),
        })
    }

    /// Usage at this moment, behind that of epochs that ended since the last call.
    pub fn take_samples(&mut self, turn: &Turn) -> Vec<Sample> {
        let mut samples = self.counters.take_epoch_samples();
        samples.extend(self.counters.sample(self.id, &self.replica, turn));
        samples
    }

    /// Counts since the group came here.
    pub fn totals(&self) -> &Totals {
        self.counters.totals()
    }

    /// Counts since the last call, and requests that passed on burst capacity.
    pub fn take_counts(&mut self) -> (Totals, u64) {
        (self.counters.take_delta(), self.intake.take_burst_requests())
    }

    /// The group's load since the last call, for the controller.
    pub fn take_load(&mut self, now_us: Micros) -> Option<GroupLoad> {
        self.intake
            .take_load(&self.replica, self.counters.chain_time(), now_us)
    }

    /// The rate that a partition wants in all, if this is its head. Call at each interval.
    pub fn take_demand(&mut self, now_us: Micros) -> Option<PartitionWant> {
        self.intake
            .take_demand(&self.replica, self.counters.chain_time(), now_us)
    }

    /// The part of its project's guarantee that the group wants and has, if it is the head and was told any.
    pub fn take_flow(&mut self, now_us: Micros) -> Option<GroupFlow> {
        self.intake
            .take_flow(&self.replica, self.counters.chain_time(), now_us)
    }

    /// Requests/s of its project's guarantee that are the group's.
    pub fn share_per_s(&self) -> u64 {
        self.intake.share_per_s()
    }

    /// The group's work for this server since the last call, if there was some.
    pub fn take_work(&mut self) -> Option<Work> {
        let (budget, counters) = (self.intake.budget()?, &self.counters);
        let (totals, judged) = (counters.totals(), counters.judged());
        if self.work.is_idle(&self.replica, totals) {
            return None;
        }
        Some(self.work.take(self.me, &self.replica, budget, totals, judged))
    }
}
