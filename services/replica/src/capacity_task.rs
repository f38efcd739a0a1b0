//! Estimates the capacity of this server (`docs/internals/allocation.md`, "The real capacity of a server"). Shards know the work
//! that groups were. The kernel and the journal know the time that it took.

use std::sync::Arc;
use std::time::Duration;

use quorate_capacity::reading::{CpuTime, DiskTime};
use quorate_capacity::{Measured, ServerEstimates};
use quorate_group::Work;
use quorate_journal::Journal;
use quorate_types::Micros;
use quorate_types::limits::{CAPACITY_INTERVAL_MS, CAPACITY_SAMPLES};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::MissedTickBehavior;

use crate::clock::now_us;
use crate::flags::{EstimateCapacity, Flags};
use crate::messages::ShardMessage;
use crate::shared::{Estimated, Shared};

/// Call when the server has its number and its shards run.
pub fn start(flags: &Flags, shared: &Arc<Shared>, journal: &Arc<Journal>) {
    let raises = match flags.estimate_capacity {
        EstimateCapacity::Off => return,
        EstimateCapacity::Lower => false,
        EstimateCapacity::Raise => true,
    };
    let task = Task {
        stated: shared.settings.capacity_milli(1.0),
        raises,
        // Shards that look for work without sleeping are always busy.
        knows_busy: flags.spin_us() == 0,
        estimates: None,
        processors: ProcessorCounts::now(shared),
        disk: DiskCounts::now(journal),
        shared: shared.clone(),
        journal: journal.clone(),
    };
    spawn_local(task.run());
}

struct Task {
    shared: Arc<Shared>,
    journal: Arc<Journal>,
    stated: [u64; 3],
    raises: bool,
    knows_busy: bool,
    /// `None` until the coordinator has said what it promises.
    estimates: Option<(f64, ServerEstimates)>,
    processors: ProcessorCounts,
    disk: DiskCounts,
}

/// As they were at the end of the last interval.
struct ProcessorCounts {
    at: Micros,
    busy: Option<Duration>,
}

/// As they were when syncs were last counted: a sync is counted when it ends, which may be intervals later.
struct DiskCounts {
    at: Micros,
    busy_us: u64,
    syncs: u64,
    /// Storage that was used since, in thousandths of tokens.
    served_milli: u64,
}

impl ProcessorCounts {
    fn now(shared: &Shared) -> Self {
        Self {
            at: now_us(),
            busy: shared.processors.busy(),
        }
    }
}

impl DiskCounts {
    fn now(journal: &Journal) -> Self {
        let stats = journal.stats();
        Self {
            at: now_us(),
            busy_us: stats.busy_us,
            syncs: stats.syncs,
            served_milli: 0,
        }
    }

    /// Storage used each second and the time that it took; `None` while a sync takes longer than the interval.
    fn take(&mut self, journal: &Journal, served_milli: u64) -> Option<(u64, DiskTime)> {
        self.served_milli = self.served_milli.saturating_add(served_milli);
        let waits_ms = journal.oldest_unsynced().map_or(0, |age| age.as_millis());
        let now = Self::now(journal);
        if now.syncs == self.syncs && waits_ms >= u128::from(CAPACITY_INTERVAL_MS) {
            return None;
        }
        let before = std::mem::replace(self, now);
        let elapsed_us = self.at.saturating_sub(before.at).max(1);
        let time = DiskTime {
            busy_us: self.busy_us - before.busy_us,
            syncs: self.syncs - before.syncs,
            elapsed_us,
        };
        Some((per_s(before.served_milli, elapsed_us), time))
    }
}

fn per_s(amount: u64, elapsed_us: Micros) -> u64 {
    let per_s = u128::from(amount) * 1_000_000 / u128::from(elapsed_us);
    u64::try_from(per_s).unwrap_or(u64::MAX)
}

impl Task {
    async fn run(mut self) {
        let sample = Duration::from_millis(CAPACITY_INTERVAL_MS / CAPACITY_SAMPLES);
        let mut interval = tokio::time::interval(sample);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut work = Work::default();
            for _ in 0..CAPACITY_SAMPLES {
                interval.tick().await;
                let Some(more) = collect(&self.shared).await else {
                    return; // a shard has stopped
                };
                work.add(&more);
            }
            self.observe(&work);
        }
    }

    fn observe(&mut self, work: &Work) {
        let measured = self.measured(work);
        let share = self.shared.burst.promised_share();
        if share <= 0.0 {
            return;
        }
        let (known, estimates) = self
            .estimates
            .get_or_insert_with(|| (share, ServerEstimates::new(self.stated, share, self.raises)));
        if *known != share {
            *known = share;
            estimates.set_promised_share(share);
        }
        estimates.observe(&measured);
        tracing::debug!(?measured, estimates = ?estimates.estimates(), "capacity");
        self.shared.capacity.set(Estimated {
            lendable: estimates.lendable(),
            estimates: estimates.estimates(),
            lasting_permille: estimates.lasting_permille(),
        });
    }

    fn measured(&mut self, work: &Work) -> Measured {
        let now = ProcessorCounts::now(&self.shared);
        let before = std::mem::replace(&mut self.processors, now);
        let now = &self.processors;
        let elapsed_us = now.at.saturating_sub(before.at).max(1);
        let shards_busy = now.busy.zip(before.busy).filter(|_| self.knows_busy);
        let cpu = shards_busy.map(|(now, before)| CpuTime {
            busy_us: now.saturating_sub(before).as_micros() as Micros,
            elapsed_us: elapsed_us * self.shared.processors.count() as Micros,
        });
        let [cpu_milli, network_milli, storage_milli] = work.served_milli;
        let (storage_per_s, disk) = self.disk.take(&self.journal, storage_milli).unzip();
        Measured {
            used_per_s: [
                per_s(cpu_milli, elapsed_us),
                per_s(network_milli, elapsed_us),
                storage_per_s.unwrap_or(0),
            ],
            outstanding: work.outstanding_milli.map(|milli| milli / CAPACITY_SAMPLES),
            entries_per_s: per_s(work.entries, elapsed_us) as f64,
            cpu,
            disk,
            misses_guarantees: work.late_entries * 100 > work.owed_entries,
        }
    }
}

/// The work of all shards' groups since the last call; `None` when a shard has stopped.
async fn collect(shared: &Shared) -> Option<Work> {
    let mut answers = Vec::new();
    for shard in 0..shared.shards.count() {
        let (sender, receiver) = oneshot::channel();
        shared.shards.send(shard, ShardMessage::Work(sender));
        answers.push(receiver);
    }
    let mut all = Work::default();
    for answer in answers {
        all.add(&answer.await.ok()?);
    }
    Some(all)
}
