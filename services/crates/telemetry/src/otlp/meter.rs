//! A server's metrics, from its shards' counts of each second. There is no metric of a single group, which would be a
//! series for each tenant; the usage windows have those numbers.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter as OtelMeter};
use quorate_types::Role;

use crate::metric_names::{self as names, Metric};
use crate::process;
use crate::usage::{Histogram as Latencies, upper_edge_us};

/// Values recorded of one second's latencies. Beyond that, a value represents several entries.
const LATENCIES_PER_SECOND_MAX: u64 = 10_000;
/// Boundaries in seconds, from a memory group's tens of microseconds to a failover.
const DURATION_BOUNDARIES_S: [f64; 16] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_5, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1,
    0.25, 1.0, 5.0,
];

const ROLES: [(Role, &str); 5] = [
    (Role::Head, "head"),
    (Role::Follower, "follower"),
    (Role::Tail, "tail"),
    (Role::Learner, "learner"),
    (Role::Sole, "sole"),
];

/// Counts of one second, and the present values of gauges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCounts {
    pub appends: u64,
    pub entries: u64,
    pub bytes: u64,
    pub refused: u64,
    pub throttled: u64,
    pub owed_reads: u64,
    pub late_reads: u64,
    pub burst_requests: u64,
    pub reclaims: u64,
    pub granted_per_s: u64,
    pub latency: Latencies,
    pub journal_syncs: u64,
    pub journal_bytes: u64,
    pub spans_dropped: u64,
    pub links_up: u64,
    /// Groups in quarantine.
    pub quarantined: u64,
    /// The server's, not a shard's: its wall clock is in doubt.
    pub is_clock_doubted: bool,
    /// One for each group.
    pub roles: Vec<Role>,
}

impl ServerCounts {
    /// Adds another shard's counts.
    pub fn merge(&mut self, other: &ServerCounts) {
        self.appends += other.appends;
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.throttled += other.throttled;
        self.owed_reads += other.owed_reads;
        self.late_reads += other.late_reads;
        self.burst_requests += other.burst_requests;
        self.reclaims += other.reclaims;
        self.granted_per_s += other.granted_per_s;
        self.latency.merge(&other.latency);
        self.journal_syncs += other.journal_syncs;
        self.journal_bytes += other.journal_bytes;
        self.spans_dropped += other.spans_dropped;
        self.links_up += other.links_up;
        self.quarantined += other.quarantined;
        self.is_clock_doubted |= other.is_clock_doubted;
        self.roles.extend(&other.roles);
    }
}

/// The server's instruments.
pub struct Meter {
    appends: Counter<u64>,
    entries: Counter<u64>,
    bytes: Counter<u64>,
    refused: Counter<u64>,
    throttled: Counter<u64>,
    owed_reads: Counter<u64>,
    late_reads: Counter<u64>,
    burst_requests: Counter<u64>,
    reclaims: Counter<u64>,
    granted: Gauge<u64>,
    committed: Counter<u64>,
    commit_duration: Histogram<f64>,
    journal_syncs: Counter<u64>,
    journal_bytes: Counter<u64>,
    spans_dropped: Counter<u64>,
    links_up: Gauge<u64>,
    quarantined: Gauge<u64>,
    clock_doubted: Gauge<u64>,
    groups: Gauge<u64>,
}

impl Meter {
    pub(super) fn new(meter: &OtelMeter) -> Self {
        let counter = |metric: Metric| {
            meter
                .u64_counter(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.description)
                .build()
        };
        let gauge = |metric: Metric| {
            meter
                .u64_gauge(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.description)
                .build()
        };
        let duration = names::COMMIT_DURATION;
        Self {
            appends: counter(names::APPENDS),
            entries: counter(names::ENTRIES),
            bytes: counter(names::BYTES),
            refused: counter(names::REFUSED),
            throttled: counter(names::THROTTLED),
            owed_reads: counter(names::OWED_READS),
            late_reads: counter(names::LATE_READS),
            burst_requests: counter(names::BURST_REQUESTS),
            reclaims: counter(names::RECLAIMS),
            granted: gauge(names::GRANTED),
            committed: counter(names::COMMITTED),
            commit_duration: meter
                .f64_histogram(duration.name)
                .with_unit(duration.unit)
                .with_description(duration.description)
                .with_boundaries(DURATION_BOUNDARIES_S.to_vec())
                .build(),
            journal_syncs: counter(names::JOURNAL_SYNCS),
            journal_bytes: counter(names::JOURNAL_BYTES),
            spans_dropped: counter(names::SPANS_DROPPED),
            links_up: gauge(names::LINKS_UP),
            quarantined: gauge(names::QUARANTINED),
            clock_doubted: gauge(names::CLOCK_DOUBTED),
            groups: gauge(names::GROUPS),
        }
    }

    pub fn record(&self, counts: &ServerCounts) {
        let counters = [
            (&self.appends, counts.appends),
            (&self.entries, counts.entries),
            (&self.bytes, counts.bytes),
            (&self.refused, counts.refused),
            (&self.throttled, counts.throttled),
            (&self.owed_reads, counts.owed_reads),
            (&self.late_reads, counts.late_reads),
            (&self.burst_requests, counts.burst_requests),
            (&self.reclaims, counts.reclaims),
            (&self.committed, counts.latency.total()),
            (&self.journal_syncs, counts.journal_syncs),
            (&self.journal_bytes, counts.journal_bytes),
            (&self.spans_dropped, counts.spans_dropped),
        ];
        for (counter, count) in counters {
            counter.add(count, &[]);
        }
        self.links_up.record(counts.links_up, &[]);
        self.quarantined.record(counts.quarantined, &[]);
        self.clock_doubted.record(u64::from(counts.is_clock_doubted), &[]);
        self.granted.record(counts.granted_per_s, &[]);
        for (role, name) in ROLES {
            let groups = counts.roles.iter().filter(|r| **r == role).count();
            self.groups
                .record(groups as u64, &[KeyValue::new("quorate.role", name)]);
        }
        self.record_latencies(&counts.latency);
    }

    fn record_latencies(&self, latency: &Latencies) {
        for (bucket, count) in latency.buckets() {
            let seconds = upper_edge_us(bucket) as f64 / 1e6;
            for _ in 0..thinned(count, latency.total()) {
                self.commit_duration.record(seconds, &[]);
            }
        }
    }
}

/// The number of times a value is recorded that was counted `count` times of `total`: at least once.
fn thinned(count: u64, total: u64) -> u64 {
    if total <= LATENCIES_PER_SECOND_MAX {
        return count;
    }
    (u128::from(count) * u128::from(LATENCIES_PER_SECOND_MAX)).div_ceil(u128::from(total)) as u64
}

/// Exports memory and CPU time, read at each export.
pub(super) fn observe_process(meter: &OtelMeter) {
    let memory = names::MEMORY;
    let _kept_by_the_provider = meter
        .u64_observable_gauge(memory.name)
        .with_unit(memory.unit)
        .with_description(memory.description)
        .with_callback(|observer| observer.observe(process::now().memory_bytes, &[]))
        .build();
    let cpu = names::CPU_TIME;
    let _kept_by_the_provider = meter
        .f64_observable_counter(cpu.name)
        .with_unit(cpu.unit)
        .with_description(cpu.description)
        .with_callback(|observer| observer.observe(process::now().cpu_us as f64 / 1e6, &[]))
        .build();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_latencies_are_thinned_evenly() {
        assert_eq!(thinned(7, 9_000), 7);
        assert_eq!(thinned(500_000, 1_000_000), 5_000);
        assert_eq!(thinned(1, 1_000_000), 1, "a rare slow value is kept");
    }
}
