//! Whose connection is read next: the shard's side of the queue between tenants (`quorate_qos::FairQueue`).
//!
//! A reader that finds its socket readable asks for its turn before it reads, and otherwise sleeps: the bytes stay in
//! the socket, the runtime keeps in mind that it is readable. The flush task, which runs after all readers that were
//! ready, says who of those that sleep reads next. What was read is charged once it is parsed: an append by the cost
//! words of its group, whether it is admitted or refused; everything else by its size.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Context;

use quorate_qos::{Tenant, Turn};
use quorate_types::cost::{Budget, ResourceVector};
use quorate_types::{GroupConfig, GroupId, ProjectId, ServerId};
use quorate_wire::client::Message;

use crate::clock::now_us;
use crate::shard::Shard;
use crate::shard::io::Io;
use crate::shared::Shared;

/// Who has not attached a group yet, and what all of them have together: hundreds of tokens checked each second, however
/// busy the shard is. Who attaches with a good token pays for that as whom it says to be.
const STRANGERS: Tenant = Tenant(0);
const STRANGERS_WEIGHT: u64 = 50_000;
/// Weights are millionths of what the shard has of a resource. Whoever reserved nothing has this.
const WEIGHT_MIN: u64 = 100;
const WEIGHT_PER_SHARE: f64 = 1e6;

/// What a frame costs at least, in thousandths of tokens: half a microsecond, a quarter of a nanosecond for each of its
/// bytes, and the network.
const FRAME_MILLI: u64 = 500_000;
const FRAME_BYTE_MILLI: [u64; 3] = [250, 1_000, 0];
/// A token's signature is checked.
const ATTACH_MILLI: u64 = 100_000_000;

/// Tokens of a [`ResourceVector`] in thousandths: picoseconds, thousandths of bytes, millionths of operations.
const MILLI_PER_UNIT: [f64; 3] = [1e12, 1e3, 1e6];

/// What a group's appends cost, and what of a shard is reserved for it. Read by shards other than the group's.
#[derive(Debug, Default)]
pub struct Terms {
    fixed_milli: [AtomicU64; 3],
    per_byte_milli: [AtomicU64; 3],
    full_batch_entries: AtomicU64,
    lacking_milli: [AtomicU64; 3],
    weight: AtomicU64,
}

impl Terms {
    fn set(&self, budget: &Budget, weight: u64) {
        let (cost, short) = (&budget.cost, &budget.short_batch);
        for i in 0..3 {
            self.fixed_milli[i].store(cost.fixed_milli[i], Ordering::Relaxed);
            self.per_byte_milli[i].store(cost.per_byte_milli[i], Ordering::Relaxed);
            self.lacking_milli[i].store(short.lacking_milli[i], Ordering::Relaxed);
        }
        self.full_batch_entries
            .store(u64::from(short.entries), Ordering::Relaxed);
        self.weight.store(weight, Ordering::Relaxed);
    }

    pub fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// Of an append that says of itself to have so many entries.
    pub fn cost(&self, entries: u32, payload_bytes: usize) -> [u64; 3] {
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

/// Of anything but an append, or of an append to a group that is not here.
pub fn frame_cost(bytes: usize) -> [u64; 3] {
    let [cpu, network, storage] = FRAME_BYTE_MILLI.map(|milli| milli * bytes as u64);
    [FRAME_MILLI + cpu, network, storage]
}

pub fn attach_cost() -> [u64; 3] {
    [ATTACH_MILLI, 0, 0]
}

/// Entries that go out are charged to whoever asked for them; answers are part of what was asked.
pub fn answer_cost(message: &Message, bytes: usize) -> [u64; 3] {
    match message {
        Message::Entries(_) => frame_cost(bytes),
        _ => [0; 3],
    }
}

/// Whose a connection is that attaches the group.
pub fn tenant_of(project: Option<ProjectId>, group_id: GroupId) -> Tenant {
    Tenant(project.map_or(group_id.0, |project| project.0).as_u128())
}

/// What one shard has of each resource, in thousandths of tokens each second: a thread, and a part of the rest.
fn shard_capacity_milli(capacity: ResourceVector, shards: usize) -> [u64; 3] {
    let [_, network, storage] = capacity.to_array();
    let all = [1.0, network / shards as f64, storage / shards as f64];
    std::array::from_fn(|i| (all[i] * MILLI_PER_UNIT[i]) as u64)
}

/// The share of a shard that the group's reservation comes to, in its dominant resource.
fn weight_of(config: &GroupConfig, me: ServerId, capacity_milli: [u64; 3]) -> u64 {
    let position = (config.replicas.iter()).position(|member| member.server_id == me);
    let reserved = config
        .budget
        .reserved_milli_at(position.unwrap_or(config.replicas.len()));
    let shares = (0..3).map(|i| reserved[i] as f64 / capacity_milli[i].max(1) as f64);
    let share = shares.fold(0.0, f64::max);
    ((share * WEIGHT_PER_SHARE) as u64).max(WEIGHT_MIN)
}

impl Shared {
    pub fn shard_capacity_milli(&self) -> [u64; 3] {
        let unknown = ResourceVector::new(1.0, 1.25e9, 400_000.0);
        let capacity = self.capacity.get().copied().unwrap_or(unknown);
        shard_capacity_milli(capacity, self.shard_count().max(1))
    }

    pub fn set_terms(&self, config: &GroupConfig) {
        let weight = weight_of(config, self.server_id(), self.shard_capacity_milli());
        let mut terms = self.terms.lock().expect("terms");
        let terms = terms.entry(config.group_id).or_default();
        terms.set(&config.budget, weight);
    }

    pub fn terms_of(&self, group_id: GroupId) -> Option<Arc<Terms>> {
        self.terms.lock().expect("terms").get(&group_id).cloned()
    }
}

/// Says who reads next, once everybody that is ready has asked: sockets are looked at before, which the runtime does not
/// do by itself while it has tasks to run.
pub async fn let_next_read(shard: &Rc<RefCell<Shard>>) {
    let wants_pass = shard.borrow().io.fair.wants_pass();
    if wants_pass {
        tokio::task::yield_now().await;
    }
    shard.borrow_mut().io.let_read();
}

impl Io {
    pub fn join_strangers(&mut self, id: u64) {
        self.fair.join(id, STRANGERS);
        self.fair.raise_weight(STRANGERS, STRANGERS_WEIGHT);
    }

    /// A connection that has something to be read; `None`: its task is woken when it is its turn.
    pub fn turn(&mut self, id: u64, context: &Context<'_>) -> Option<usize> {
        if self.shared.is_unisolated() {
            return Some(usize::MAX);
        }
        match self.fair.ask(id) {
            Turn::Read { bytes_max } => Some(bytes_max),
            Turn::Wait => {
                let connection = self.connections.get_mut(&id)?;
                connection.waits_for_turn = Some(context.waker().clone());
                self.call_readers();
                None
            }
        }
    }

    /// A turn is over, in which so many bytes were read: what it cost is known now.
    pub fn settle(&mut self, id: u64, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            let spent = std::mem::take(&mut connection.spent);
            let is_counted = bytes > 0 || spent != [0; 3];
            if is_counted && !self.shared.is_unisolated() {
                self.fair.charge(id, bytes as u64, spent);
            }
        }
        self.call_readers();
    }

    /// Has the flush task say who reads next, if somebody waits for that.
    pub fn call_readers(&self) {
        if self.fair.wants_pass() {
            self.wake_flush();
        }
    }

    /// Everybody that was found ready has asked.
    fn let_read(&mut self) {
        // Nobody waits: the time means nothing.
        let now = if self.fair.wants_pass() { now_us() } else { 0 };
        let mut next = std::mem::take(&mut self.next_readers);
        if self.fair.pass(now, &mut next).is_some() {
            self.pass_later.notify_one();
        }
        for id in next.drain(..) {
            let connection = self.connections.get_mut(&id);
            if let Some(waker) = connection.and_then(|connection| connection.waits_for_turn.take()) {
                waker.wake();
            }
        }
        self.next_readers = next;
    }
}

impl Shard {
    /// Weighs tenants anew, each by the groups that its connections have attached: groups come, go and change.
    pub fn weigh_tenants(&mut self) {
        let mut groups: HashMap<Tenant, HashMap<GroupId, u64>> = HashMap::new();
        for connection in self.io.connections.values() {
            if let Some(tenant) = connection.tenant {
                groups.entry(tenant).or_default().extend(connection.weights());
            }
        }
        for (tenant, weights) in groups {
            let weight = weights.into_values().sum::<u64>();
            self.io.fair.set_weight(tenant, weight.max(WEIGHT_MIN));
        }
        self.io.fair.forget_idle();
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::{AppendCost, ShortBatch};

    use super::*;

    #[test]
    fn who_says_to_append_much_pays_for_what_came() {
        let terms = Terms::default();
        let cost = AppendCost {
            fixed_milli: [1_500_000, 200_000, 2_000],
            per_byte_milli: [1_000, 2_000, 0],
        };
        let mut budget = Budget::for_rate(1_000, 64, cost);
        terms.set(&budget, 7);
        assert_eq!(terms.cost(10, 10 * 68), cost.of(10, 640));
        assert_eq!(terms.cost(u32::MAX, 400), cost.of(100, 0));
        assert_eq!(terms.cost(0, 0), [FRAME_MILLI, 0, 0], "a frame costs something");
        budget.short_batch = ShortBatch {
            entries: 16,
            lacking_milli: [500_000, 30_000, 0],
        };
        terms.set(&budget, 7);
        for entries in [1, 10, 16, 40] {
            let charged = terms.cost(entries, entries as usize * 68);
            let entries = u64::from(entries);
            assert_eq!(
                charged,
                budget.batch_milli(entries, 64 * entries),
                "as at the head"
            );
        }
        assert_eq!(Terms::default().cost(1, 1 << 20), frame_cost(1 << 20));
    }

    #[test]
    fn a_shard_has_one_thread_and_its_part_of_the_rest() {
        let capacity = ResourceVector::new(8.0, 1e9, 4e5);
        assert_eq!(
            shard_capacity_milli(capacity, 4),
            [1_000_000_000_000, 250_000_000_000, 100_000_000_000]
        );
    }
}
