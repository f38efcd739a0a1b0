//! Usage of one group on one server, counted since it came here (`docs/internals/telemetry.md`).

use quorate_chain::{Arrival, Replica};
use quorate_types::limits::TELEMETRY_EPOCH_SAMPLES_MAX;
use quorate_types::{GroupId, GroupState, Micros, Role, limits};
use quorate_usage::{Sample, Totals};

use crate::latencies::{ChainTime, Latencies};
use crate::throughput::Judged;
use crate::turn::Turn;

const AWAY_US: Micros = limits::SLA_AWAY_MS * 1_000;
const STALL_US: Micros = limits::SLA_STALL_MS * 1_000;

#[derive(Debug)]
pub(crate) struct Counters {
    since_us: Micros,
    totals: Totals,
    latencies: Latencies,
    judged: Judged,
    chain_time: ChainTime,
    accounted_at_us: Micros,
    /// As last added to the server's counts.
    metered: Totals,
    /// Samples at the end of one epoch and the beginning of the next, so that each epoch is counted by itself.
    epoch_samples: Vec<Sample>,
}

impl Counters {
    pub fn new(now_us: Micros) -> Self {
        Self {
            since_us: now_us,
            totals: Totals::default(),
            latencies: Latencies::default(),
            judged: Judged::default(),
            chain_time: ChainTime::default(),
            accounted_at_us: now_us,
            metered: Totals::default(),
            epoch_samples: Vec::new(),
        }
    }

    /// An append of so many entries was well formed.
    pub fn offered(&mut self, entries: u32, bytes: u64) {
        self.totals.offered_batches += 1;
        self.totals.offered_entries += u64::from(entries);
        self.totals.offered_bytes += bytes;
    }

    pub fn refused(&mut self, entries: u32) {
        self.totals.refused_entries += u64::from(entries);
    }

    /// `within_sla`: the reservation would have let them pass.
    pub fn throttled(&mut self, entries: u32, within_sla: bool) {
        self.totals.throttled_entries += u64::from(entries);
        if within_sla {
            self.totals.throttled_within_sla_entries += u64::from(entries);
            self.passed_reservation(entries);
        }
    }

    pub fn passed_reservation(&mut self, entries: u32) {
        self.totals.within_sla_entries += u64::from(entries);
    }

    pub fn committed(&mut self, arrival: Arrival, now_us: Micros, entries: u32) {
        self.latencies.committed(arrival, now_us, entries);
        self.chain_time
            .add(now_us.saturating_sub(arrival.ordered_us), entries);
        if let Some(start_us) = arrival.start_us {
            let took_us = now_us.saturating_sub(start_us);
            self.judged.committed(took_us, u64::from(entries));
        }
    }

    pub fn read(&mut self, entries: u32, bytes: usize) {
        self.totals.read_entries += u64::from(entries);
        self.totals.read_bytes += bytes as u64;
    }

    /// At the head, counts the time since the last call as able to accept appends, or not. The time since the chain's last
    /// acknowledgement is left to a later call, which knows how long that took.
    pub fn account_time(&mut self, replica: &Replica, now_us: Micros) {
        if !replica.is_head() {
            self.accounted_at_us = now_us;
            return;
        }
        let is_up = matches!(replica.state(), GroupState::Active | GroupState::Degraded)
            && replica.chain_agrees()
            && !replica.is_isolated();
        let Some(stalled_us) = replica.stalled_since().filter(|_| is_up) else {
            return self.account_until(now_us, is_up);
        };
        self.account_until(stalled_us.min(now_us), is_up);
        if now_us.saturating_sub(stalled_us) >= STALL_US {
            self.account_until(now_us, false);
        }
    }

    fn account_until(&mut self, until_us: Micros, is_up: bool) {
        let elapsed = until_us.saturating_sub(self.accounted_at_us);
        self.accounted_at_us += elapsed;
        if is_up && elapsed <= AWAY_US {
            self.totals.active_us += elapsed;
        } else {
            self.totals.paused_us += elapsed;
        }
    }

    /// An epoch ends or begins.
    pub fn sample_epoch(&mut self, id: GroupId, replica: &Replica, turn: &Turn) {
        self.account_time(replica, turn.now_us);
        // An acknowledgement that has not come by the end of an epoch does not come any more.
        self.account_until(turn.now_us, false);
        if self.epoch_samples.len() < TELEMETRY_EPOCH_SAMPLES_MAX
            && let Some(sample) = self.sample(id, replica, turn)
        {
            self.epoch_samples.push(sample);
        }
    }

    /// The counters now; `None` while the replica has no role.
    pub fn sample(&mut self, id: GroupId, replica: &Replica, turn: &Turn) -> Option<Sample> {
        self.account_time(replica, turn.now_us);
        if replica.role() == Role::None {
            return None;
        }
        // A log's own: the entries that the group's earlier logs committed were reported with them.
        let beginning = replica.config().and_then(|config| config.beginning);
        let taken = self.latencies.take();
        let (entries_before, bytes_before) = beginning.map_or((0, 0), |b| (b.entries_before, b.bytes_before));
        Some(Sample {
            group: id,
            since_us: self.since_us,
            epoch: replica.epoch(),
            role: replica.role(),
            at_ms: turn.wall_us / 1_000,
            accounted_ms: (turn.wall_us).saturating_sub(turn.now_us.saturating_sub(self.accounted_at_us))
                / 1_000,
            log_epoch: beginning.map_or(0, |beginning| beginning.epoch),
            committed_entries: replica.committed_entries() - entries_before,
            committed_bytes: replica.committed_bytes().saturating_sub(bytes_before),
            stored_bytes: replica.log().payload_bytes(),
            totals: self.totals,
            latency: taken.all,
            judged_latency: taken.judged,
            chain_latency: taken.chain,
        })
    }

    /// The samples of epochs that ended or began since the last call, oldest first.
    pub fn take_epoch_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.epoch_samples)
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn chain_time(&self) -> ChainTime {
        self.chain_time
    }

    pub fn judged(&self) -> Judged {
        self.judged
    }

    /// Counts since the last call.
    pub fn take_delta(&mut self) -> Totals {
        let delta = self.totals.since(&self.metered);
        self.metered = self.totals;
        delta
    }
}
