//! The last second of each group at its head, for charts.

use std::collections::HashMap;

use quorate_types::limits::TELEMETRY_LIVE_IDLE_MAX;
use quorate_types::{Epoch, GroupId, Role};

use super::record::LiveGroup;
use quorate_usage::Histogram;
use quorate_usage::Sample;

/// Takes in the samples of one second, then gives their rates.
#[derive(Debug, Default)]
pub struct LiveMeter {
    groups: HashMap<GroupId, Meter>,
}

#[derive(Debug)]
struct Meter {
    epoch: Epoch,
    role: Role,
    /// The sample at the beginning of the second, and the latest one.
    first: Point,
    last: Point,
    committed_entries: u64,
    latency: Histogram,
    chain_latency: Histogram,
    is_fresh: bool,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    since_us: u64,
    at_ms: u64,
    offered_entries: u64,
    throttled_entries: u64,
}

impl LiveMeter {
    pub fn observe(&mut self, sample: &Sample) {
        let point = Point {
            since_us: sample.since_us,
            at_ms: sample.at_ms,
            offered_entries: sample.totals.offered_entries,
            throttled_entries: sample.totals.throttled_entries,
        };
        let meter = self.groups.entry(sample.group).or_insert_with(|| Meter {
            epoch: sample.epoch,
            role: sample.role,
            first: point,
            last: point,
            committed_entries: 0,
            latency: Histogram::default(),
            chain_latency: Histogram::default(),
            is_fresh: true,
        });
        if meter.first.since_us != point.since_us || point.at_ms < meter.first.at_ms {
            meter.first = point;
        }
        (meter.epoch, meter.role, meter.last, meter.is_fresh) = (sample.epoch, sample.role, point, true);
        meter.committed_entries = sample.committed_entries;
        meter.latency.merge(&sample.latency);
        meter.chain_latency.merge(&sample.chain_latency);
    }

    /// Rates of the groups whose head is here, since the last call. Groups without a sample since are forgotten.
    pub fn take(&mut self) -> Vec<LiveGroup> {
        let (mut taken, mut idle) = (Vec::new(), 0);
        self.groups.retain(|group, meter| {
            if !std::mem::replace(&mut meter.is_fresh, false) {
                return false;
            }
            let (latency, chain_latency) = (meter.latency.take(), meter.chain_latency.take());
            let first = std::mem::replace(&mut meter.first, meter.last);
            let elapsed_ms = meter.last.at_ms - first.at_ms;
            let is_idle = latency.total() == 0 && meter.last.offered_entries == first.offered_entries;
            idle += usize::from(is_idle);
            let is_shown = !is_idle || idle <= TELEMETRY_LIVE_IDLE_MAX;
            if matches!(meter.role, Role::Head | Role::Sole) && elapsed_ms > 0 && is_shown {
                let per_s = |count: u64| (count * 1000 + elapsed_ms / 2) / elapsed_ms;
                let (offered, throttled) = (
                    meter.last.offered_entries - first.offered_entries,
                    meter.last.throttled_entries - first.throttled_entries,
                );
                taken.push(LiveGroup {
                    group: *group,
                    epoch: meter.epoch,
                    role: meter.role,
                    committed_entries: meter.committed_entries,
                    // The growth of the commit offset would mislead: a new head learns at once of others' commits.
                    append_per_s: per_s(latency.total()),
                    offered_per_s: per_s(offered),
                    throttled_per_s: per_s(throttled),
                    p50_us: latency.quantile_us(500),
                    p99_us: latency.quantile_us(990),
                    chain_p50_us: chain_latency.quantile_us(500),
                });
            }
            true
        });
        taken
    }
}
