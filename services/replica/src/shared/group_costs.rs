//! Costs of groups' appends and reads, and the share of a shard that is reserved for them. They are read when a client
//! attaches, and written when a group is configured. The queue between tenants charges by it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quorate_telemetry::usage::Sample;
use quorate_types::cost::Budget;
use quorate_types::{GroupConfig, GroupId, Micros, ServerId};

use super::group_reads::{GroupReads, OwedReads};

/// Weights are millionths of what the shard has of a resource. A tenant that reserved nothing has this.
pub const WEIGHT_MIN: u64 = 100;
const WEIGHT_PER_SHARE: f64 = 1e6;

/// The least cost of a frame, in thousandths of tokens: half a microsecond, a quarter of a nanosecond for each of its
/// bytes, and the network.
const FRAME_MILLI: u64 = 500_000;
const FRAME_BYTE_MILLI: [u64; 3] = [250, 1_000, 0];
/// A token's signature is checked.
const ATTACH_MILLI: u64 = 100_000_000;

type ByGroup = HashMap<GroupId, Arc<GroupCost>>;

#[derive(Default)]
pub struct GroupCosts {
    costs: Mutex<ByGroup>,
    /// Groups that have reserved reads since they came here: few, and looked at each second.
    reading: Mutex<ByGroup>,
}

impl GroupCosts {
    pub fn set(&self, config: &GroupConfig, me: ServerId, shard_capacity_milli: [u64; 3], now: Micros) {
        let weights = weights_of(config, me, shard_capacity_milli);
        let request_weights = weights_of_request(&config.budget, shard_capacity_milli);
        let (group_id, reads) = (config.group_id, config.budget.reads.as_deref());
        let cost = {
            let mut costs = self.costs.lock().expect("costs");
            costs.entry(group_id).or_default().clone()
        };
        cost.set(&config.budget, weights);
        cost.set_request_weights(request_weights);
        if config.head().is_none_or(|head| head.server_id != me) {
            cost.share_per_s.store(0, Ordering::Relaxed); // its head has the share
        }
        cost.reads.set(reads, now);
        if reads.is_some_and(|reads| reads.rate_per_s > 0) {
            self.reading.lock().expect("costs").insert(group_id, cost);
        }
    }

    pub fn get(&self, group_id: GroupId) -> Option<Arc<GroupCost>> {
        self.costs.lock().expect("costs").get(&group_id).cloned()
    }

    /// The group, whose head is here, has so many requests/s of its project's guarantee beside its own.
    pub fn set_share(&self, group_id: GroupId, per_s: u64) {
        if let Some(cost) = self.get(group_id) {
            cost.share_per_s.store(per_s, Ordering::Relaxed);
        }
    }

    /// No group has a share any more.
    pub fn end_shares(&self) {
        for cost in self.costs.lock().expect("costs").values() {
            cost.share_per_s.store(0, Ordering::Relaxed);
        }
    }

    pub fn forget(&self, group_id: GroupId) {
        self.costs.lock().expect("costs").remove(&group_id);
        self.reading.lock().expect("costs").remove(&group_id);
    }

    /// Reserved on this server for reads of all groups, in thousandths of tokens each second.
    pub fn reads_reserved_milli(&self) -> [u64; 3] {
        let reading = self.reading.lock().expect("costs");
        reading.values().fold([0; 3], |sum: [u64; 3], cost| {
            let reserved = cost.reads.reserved_milli();
            std::array::from_fn(|i| sum[i].saturating_add(reserved[i]))
        })
    }

    /// Adds reads within the groups' reservations to samples; those since the last call.
    pub fn take_owed_reads(&self, samples: &mut [Sample]) -> OwedReads {
        let reading = self.reading.lock().expect("costs");
        let mut all = OwedReads::default();
        if reading.is_empty() {
            return all;
        }
        for sample in samples {
            if let Some(cost) = reading.get(&sample.group) {
                let (owed, since) = cost.reads.take_owed();
                sample.totals.owed_read_entries = owed.entries;
                sample.totals.late_read_entries = owed.late_entries;
                all.entries += since.entries;
                all.late_entries += since.late_entries;
            }
        }
        all
    }
}

/// The cost of one group. Read by shards other than the group's.
#[derive(Debug, Default)]
pub struct GroupCost {
    fixed_milli: [AtomicU64; 3],
    per_byte_milli: [AtomicU64; 3],
    full_batch_entries: AtomicU64,
    lacking_milli: [AtomicU64; 3],
    /// By resource.
    weights: [AtomicU64; 3],
    /// The same of a thousand requests/s, and the requests/s that the group has of its project's guarantee.
    request_weights: [AtomicU64; 3],
    share_per_s: AtomicU64,
    pub reads: GroupReads,
}

impl GroupCost {
    fn set(&self, budget: &Budget, weights: [u64; 3]) {
        let (cost, short) = (&budget.cost, &budget.short_batch);
        for (i, weight) in weights.into_iter().enumerate() {
            self.fixed_milli[i].store(cost.fixed_milli[i], Ordering::Relaxed);
            self.per_byte_milli[i].store(cost.per_byte_milli[i], Ordering::Relaxed);
            self.lacking_milli[i].store(short.lacking_milli[i], Ordering::Relaxed);
            self.weights[i].store(weight, Ordering::Relaxed);
        }
        self.full_batch_entries
            .store(u64::from(short.entries), Ordering::Relaxed);
    }

    fn set_request_weights(&self, weights: [u64; 3]) {
        for (kept, weight) in self.request_weights.iter().zip(weights) {
            kept.store(weight, Ordering::Relaxed);
        }
    }

    pub fn weights(&self) -> [u64; 3] {
        let share_per_s = self.share_per_s.load(Ordering::Relaxed);
        std::array::from_fn(|i| {
            let own = self.weights[i].load(Ordering::Relaxed);
            match share_per_s {
                0 => own,
                per_s => {
                    let of_requests = self.request_weights[i].load(Ordering::Relaxed);
                    own.saturating_add(of_requests.saturating_mul(per_s) / 1_000)
                }
            }
        })
    }

    /// The cost of an append that says of itself to have so many entries.
    pub fn of(&self, entries: u32, payload_bytes: usize) -> [u64; 3] {
        let bytes = payload_bytes as u64;
        let entries = u64::from(entries).min(bytes / 4);
        let entry_bytes = bytes - 4 * entries;
        let lacking = self
            .full_batch_entries
            .load(Ordering::Relaxed)
            .saturating_sub(entries);
        let least = frame_cost(payload_bytes);
        std::array::from_fn(|i| {
            let fixed = self.fixed_milli[i]
                .load(Ordering::Relaxed)
                .saturating_mul(entries);
            let per_byte = self.per_byte_milli[i]
                .load(Ordering::Relaxed)
                .saturating_mul(entry_bytes);
            let short = self.lacking_milli[i]
                .load(Ordering::Relaxed)
                .saturating_mul(lacking);
            fixed.saturating_add(per_byte).saturating_add(short).max(least[i])
        })
    }
}

/// The cost of anything but an append, or of an append to a group that is not here.
pub fn frame_cost(bytes: usize) -> [u64; 3] {
    let [cpu, network, storage] = FRAME_BYTE_MILLI.map(|milli| milli * bytes as u64);
    [FRAME_MILLI + cpu, network, storage]
}

pub fn attach_cost() -> [u64; 3] {
    [ATTACH_MILLI, 0, 0]
}

/// The shares of a shard's resources that are reserved for the group.
fn weights_of(config: &GroupConfig, me: ServerId, capacity_milli: [u64; 3]) -> [u64; 3] {
    let position = (config.replicas.iter()).position(|member| member.server_id == me);
    let budget = &config.budget;
    let appends = budget.reserved_milli_at(position.unwrap_or(config.replicas.len()));
    let reads = budget.reads_reserved_milli();
    std::array::from_fn(|i| {
        let reserved = appends[i].saturating_add(reads[i]);
        let share = reserved as f64 / capacity_milli[i].max(1) as f64;
        ((share * WEIGHT_PER_SHARE) as u64).max(WEIGHT_MIN)
    })
}

/// The share of a shard's resources that a thousand requests/s take at the head.
fn weights_of_request(budget: &Budget, capacity_milli: [u64; 3]) -> [u64; 3] {
    let one = budget.request_milli();
    std::array::from_fn(|i| {
        (one[i] as f64 * 1_000.0 / capacity_milli[i].max(1) as f64 * WEIGHT_PER_SHARE) as u64
    })
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::{EntryCost, ShortBatch};

    use super::*;

    #[test]
    fn a_client_that_says_to_append_much_pays_for_what_came() {
        let group = GroupCost::default();
        let cost = EntryCost {
            fixed_milli: [1_500_000, 200_000, 2_000],
            per_byte_milli: [1_000, 2_000, 0],
        };
        let mut budget = Budget::for_rate(1_000, 64, cost);
        group.set(&budget, [7; 3]);
        assert_eq!(group.of(10, 10 * 68), cost.of(10, 640));
        assert_eq!(group.of(u32::MAX, 400), cost.of(100, 0));
        assert_eq!(group.of(0, 0), [FRAME_MILLI, 0, 0], "a frame costs something");
        budget.short_batch = ShortBatch {
            entries: 16,
            lacking_milli: [500_000, 30_000, 0],
        };
        group.set(&budget, [7; 3]);
        for entries in [1, 10, 16, 40] {
            let charged = group.of(entries, entries as usize * 68);
            let entries = u64::from(entries);
            assert_eq!(
                charged,
                budget.batch_milli(entries, 64 * entries),
                "as at the head"
            );
        }
        assert_eq!(GroupCost::default().of(1, 1 << 20), frame_cost(1 << 20));
    }
}
