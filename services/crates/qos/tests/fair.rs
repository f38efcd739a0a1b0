//! The queue between tenants: shares, no starvation, nothing idle while a tenant waits, bounded state.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quorate_qos::{FairQueue, Tenant, Turn};
use quorate_types::limits::{FAIR_BLOCKED_REST_US, FAIR_BLOCKED_WAIT_US, FAIR_CYCLE_US, FAIR_READ_BYTES_MIN};

/// One token of each resource, in thousandths, is a nanosecond of it.
const ALL: [u64; 3] = [1_000_000_000_000; 3];
const CYCLE_NS: u64 = FAIR_CYCLE_US * 1_000;

fn ns(of: [u64; 3]) -> [u64; 3] {
    of.map(|ns| ns * 1_000)
}

/// A tenant that always has something to read on each of its connections.
#[derive(Debug, Clone)]
struct Flood {
    weights: [u64; 3],
    connections: u64,
    /// Cost of its cheapest read; others cost a multiple of it.
    cost_ns: [u64; 3],
    times: Vec<u64>,
}

impl Flood {
    /// Its dearest read.
    fn dearest_ns(&self) -> [u64; 3] {
        let times = self.times.iter().max().unwrap();
        self.cost_ns.map(|ns| ns * times)
    }
}

fn flood() -> impl Strategy<Value = Flood> {
    let cost = prop::array::uniform3(0..200_000u64)
        .prop_filter("costs something", |c| c.iter().any(|ns| *ns > 1_000));
    let weights = prop::array::uniform3(1..1_000u64);
    (weights, 1..40u64, cost, prop::collection::vec(1..12u64, 1..8)).prop_map(
        |(weights, connections, cost_ns, times)| Flood {
            weights,
            connections,
            cost_ns,
            times,
        },
    )
}

struct Server {
    queue: FairQueue,
    floods: Vec<Flood>,
    /// Time that each tenant has had, of each resource.
    served_ns: Vec<[u64; 3]>,
    reads: Vec<u64>,
    now: u64,
}

fn connection(tenant: usize, number: u64) -> u64 {
    tenant as u64 * 1_000 + number
}

impl Server {
    fn new(floods: Vec<Flood>) -> Self {
        let mut queue = FairQueue::new(ALL);
        for (tenant, flood) in floods.iter().enumerate() {
            for number in 0..flood.connections {
                queue.join(connection(tenant, number), Tenant(tenant as u128));
            }
            queue.set_weights(Tenant(tenant as u128), flood.weights);
        }
        Self {
            queue,
            served_ns: vec![[0; 3]; floods.len()],
            reads: vec![0; floods.len()],
            floods,
            now: 0,
        }
    }

    /// The connection asks, and reads until it must wait.
    fn run(&mut self, connection: u64) {
        while let Turn::Read { bytes_max } = self.queue.ask(connection) {
            assert!(bytes_max >= FAIR_READ_BYTES_MIN);
            let tenant = (connection / 1_000) as usize;
            let flood = &self.floods[tenant];
            let times = flood.times[self.reads[tenant] as usize % flood.times.len()];
            let cost = flood.cost_ns.map(|ns| ns * times);
            self.reads[tenant] += 1;
            for (sum, one) in self.served_ns[tenant].iter_mut().zip(cost) {
                *sum += one;
            }
            self.queue.charge(connection, 65_536, ns(cost));
        }
    }

    fn all_ask(&mut self) {
        for tenant in 0..self.floods.len() {
            for number in 0..self.floods[tenant].connections {
                self.run(connection(tenant, number));
            }
        }
    }

    /// One pass, and the reads of the connections that it names; returns their number.
    fn pass(&mut self) -> usize {
        let mut next = Vec::new();
        assert_eq!(self.queue.pass(self.now, &mut next), None, "nobody is blocked");
        for connection in &next {
            self.run(*connection);
        }
        next.len()
    }

    /// Sums of all weights.
    fn base(&self) -> [u64; 3] {
        std::array::from_fn(|i| self.floods.iter().map(|flood| flood.weights[i]).sum())
    }

    /// The greatest of amounts of time, each over the tenant's part of its resource.
    fn dominant(&self, tenant: usize, ns: [u64; 3]) -> f64 {
        let (weights, base) = (self.floods[tenant].weights, self.base());
        let share = |i: usize| ns[i] as f64 * base[i] as f64 / weights[i] as f64;
        (0..3).map(share).fold(0.0, f64::max)
    }
}

/// Passes and forgets in turn, as a server does, until every debt of `any_history_is_sound` can be paid off.
fn pay_off(queue: &mut FairQueue, now: u64) {
    // Four tenants, one after the other: each owes at most 400 charges of 9 ms, and pays alone with whole cycles.
    let cycles = 4 * (400 * 9_000_000 / CYCLE_NS + 2);
    let mut next = Vec::new();
    for _ in 0..cycles {
        queue.pass(now, &mut next);
        queue.forget_idle();
    }
    assert!(next.is_empty(), "nobody waits");
}

proptest! {
    /// The times of two tenants in their dominant resources, divided by weight, differ by at most a cycle and one read
    /// of each. Connections and sizes do not matter. Each has a weight for each resource.
    #[test]
    fn shares_go_by_weight(floods in prop::collection::vec(flood(), 2..8), passes in 50..400usize) {
        let mut server = Server::new(floods);
        server.all_ask();
        for _ in 0..passes {
            server.pass();
        }
        for a in 0..server.floods.len() {
            for b in 0..a {
                let (fa, fb) = (&server.floods[a], &server.floods[b]);
                let apart = server.dominant(a, server.served_ns[a]) - server.dominant(b, server.served_ns[b]);
                // In the first cycle no tenant had asked before, so each had a whole one.
                let first = server.dominant(a, [CYCLE_NS; 3]).max(server.dominant(b, [CYCLE_NS; 3]));
                let bound = CYCLE_NS as f64
                    + server.dominant(a, fa.dearest_ns())
                    + server.dominant(b, fb.dearest_ns())
                    + first;
                prop_assert!(apart.abs() <= bound, "{a} and {b}: {apart} of {bound}");
            }
        }
    }

    /// Each pass lets a tenant read while any waits, and every tenant reads again and again.
    #[test]
    fn nothing_is_idle_and_nobody_starves(floods in prop::collection::vec(flood(), 1..8)) {
        let mut server = Server::new(floods);
        server.all_ask();
        // Cycles until the tenant with the largest debt for its weight has paid for one read.
        let cycles = (0..server.floods.len())
            .map(|t| {
                let dearest_ns = server.floods[t].dearest_ns().map(|ns| ns + CYCLE_NS);
                (server.dominant(t, dearest_ns) / CYCLE_NS as f64) as u64 + 3
            })
            .max()
            .unwrap();
        let before = server.reads.clone();
        for _ in 0..cycles * 4 {
            prop_assert!(server.queue.wants_pass());
            prop_assert!(server.pass() > 0);
        }
        for (tenant, before) in before.iter().enumerate() {
            prop_assert!(server.reads[tenant] > *before, "tenant {tenant} of {:?}", server.reads);
        }
    }

    /// In any order of events, a waiting connection is named once, none that left is named, and nothing is left at the
    /// end.
    #[test]
    fn any_history_is_sound(steps in prop::collection::vec((0..7u8, 0..12u64, 0..4u128, 0..9_000_000u64), 1..400)) {
        let mut queue = FairQueue::new(ALL);
        let mut here: BTreeMap<u64, bool> = BTreeMap::new();
        let mut next = Vec::new();
        let mut now = 0;
        for (step, connection, tenant, amount) in steps {
            now += amount / 1_000;
            match step {
                0 => {
                    queue.join(connection, Tenant(tenant));
                    queue.set_weights(Tenant(tenant), [amount, amount / 2, 7]);
                    here.insert(connection, false);
                }
                1 => {
                    queue.leave(connection);
                    here.remove(&connection);
                }
                2 => queue.block(connection),
                3 => queue.unblock(connection),
                4 => queue.charge(connection, amount, ns([amount, 0, 3])),
                5 => {
                    if let Some(waits) = here.get_mut(&connection) {
                        *waits = queue.ask(connection) == Turn::Wait;
                    }
                }
                _ => {
                    queue.forget_idle();
                    let until = queue.pass(now, &mut next);
                    prop_assert!(until.is_none_or(|until| until > now && next.is_empty()));
                    for named in next.drain(..) {
                        prop_assert_eq!(here.insert(named, false), Some(true), "it waited, and is here");
                        let is_read = matches!(queue.ask(named), Turn::Read { .. });
                        prop_assert!(is_read);
                    }
                }
            }
        }
        for connection in 0..12 {
            queue.leave(connection);
        }
        prop_assert!(!queue.wants_pass());
        pay_off(&mut queue, now);
        prop_assert_eq!(queue.len(), 0, "tenants without connections and debts are forgotten");
    }
}

/// The last cycle in which anybody asked gave it next to nothing; nobody asks from then on.
#[test]
fn a_light_tenant_beside_a_heavy_one_pays_off_its_debt_once_both_are_gone() {
    let mut queue = FairQueue::new(ALL);
    for (connection, weight) in [(1, 1), (2, 9_000_000)] {
        let tenant = Tenant(connection.into());
        queue.join(connection, tenant);
        queue.set_weights(tenant, [weight; 3]);
        queue.ask(connection);
    }
    queue.pass(0, &mut Vec::new());
    queue.charge(1, 65_536, ns([9_000_000; 3]));
    queue.leave(1);
    queue.leave(2);
    queue.forget_idle();
    assert_eq!(queue.len(), 1, "it is in debt");
    pay_off(&mut queue, 0);
    assert!(queue.is_empty());
}

#[test]
fn a_tenant_that_is_alone_reads_on_without_a_limit() {
    let mut queue = FairQueue::new(ALL);
    queue.join(1, Tenant(7));
    let mut next = Vec::new();
    let mut waited = 0;
    for _ in 0..1_000 {
        if queue.ask(1) == Turn::Wait {
            waited += 1;
            assert!(queue.wants_pass());
            assert_eq!(queue.pass(0, &mut next), None);
            assert_eq!(std::mem::take(&mut next), [1]);
            assert_eq!(
                queue.ask(1),
                Turn::Read {
                    bytes_max: usize::MAX
                }
            );
        }
        queue.charge(1, 65_536, ns([CYCLE_NS / 10, 0, 0]));
    }
    assert!(waited <= 101, "once in a round: {waited}");
}

#[test]
fn a_connection_that_comes_waits_behind_those_of_its_tenant_and_not_behind_others() {
    let mut queue = FairQueue::new(ALL);
    for connection in 0..100 {
        queue.join(connection, Tenant(1));
    }
    queue.join(200, Tenant(2));
    let mut read = 0;
    for connection in 0..100 {
        if queue.ask(connection) != Turn::Wait {
            read += 1;
            queue.charge(connection, 65_536, ns([CYCLE_NS / 4, 0, 0]));
        }
    }
    assert_eq!(read, 4, "one round of the flood");
    assert_ne!(queue.ask(200), Turn::Wait, "the other has its own");
    assert_eq!(queue.ask(0), Turn::Wait, "it has had its turn");
    let mut next = Vec::new();
    queue.pass(0, &mut next);
    assert_eq!(next[0], 4, "first come, first served");
    assert!(!next.contains(&0));
}

#[test]
fn a_large_debt_is_paid_over_cycles_in_which_others_read() {
    let mut queue = FairQueue::new(ALL);
    queue.join(1, Tenant(1));
    queue.join(2, Tenant(2));
    let mut next = Vec::new();
    queue.ask(1);
    queue.charge(1, 4 << 20, ns([0, 10 * CYCLE_NS, 0]));
    assert_eq!(queue.ask(1), Turn::Wait);
    let mut spent = 0;
    while !next.contains(&1) {
        next.clear();
        assert_ne!(queue.ask(2), Turn::Wait);
        queue.charge(2, 65_536, ns([CYCLE_NS / 2, 0, 0]));
        spent += CYCLE_NS / 2;
        if queue.ask(2) != Turn::Wait {
            queue.charge(2, 65_536, ns([CYCLE_NS / 2, 0, 0]));
            spent += CYCLE_NS / 2;
            assert_eq!(queue.ask(2), Turn::Wait);
        }
        assert_eq!(queue.pass(0, &mut next), None);
        assert!(spent < 20 * CYCLE_NS);
    }
    assert!((8 * CYCLE_NS..=12 * CYCLE_NS).contains(&spent), "{spent}");
}

/// A read of a resource that a server has hardly any of costs more than can be counted.
#[test]
fn a_tenant_with_a_debt_beyond_counting_is_still_served() {
    for all in [[0; 3], [1; 3], [1_000_000_000_000, 1_000, 1_000_000]] {
        let mut queue = FairQueue::new(all);
        queue.join(1, Tenant(1));
        queue.set_weights(Tenant(1), [1_000_000; 3]);
        queue.join(2, Tenant(2));
        for _ in 0..3 {
            for connection in [1, 2] {
                if matches!(queue.ask(connection), Turn::Read { .. }) {
                    queue.charge(connection, 1 << 20, [u64::MAX; 3]);
                }
            }
            let mut next = Vec::new();
            while next.is_empty() {
                assert_eq!(queue.ask(1), Turn::Wait, "{all:?}");
                assert_eq!(queue.pass(0, &mut next), None);
            }
        }
    }
}

#[test]
fn a_cycle_waits_for_a_blocked_connection_not_long_and_not_again_soon() {
    let mut queue = FairQueue::new(ALL);
    queue.join(1, Tenant(1));
    queue.join(2, Tenant(2));
    let mut next = Vec::new();
    queue.ask(2);
    queue.charge(2, 1_000, ns([1, 0, 0]));
    queue.block(2);
    let exhaust = |queue: &mut FairQueue| {
        while queue.ask(1) != Turn::Wait {
            queue.charge(1, 65_536, ns([CYCLE_NS, 0, 0]));
        }
    };
    exhaust(&mut queue);
    let until = queue.pass(0, &mut next).expect("tenant 2 has its share left");
    assert_eq!((until, next.len()), (FAIR_BLOCKED_WAIT_US, 0));
    assert_eq!(queue.pass(until - 1, &mut next), Some(until));
    assert_eq!(queue.pass(until, &mut next), None, "long enough");
    assert_eq!(std::mem::take(&mut next), [1]);
    let mut now = until;
    while now < until + FAIR_BLOCKED_REST_US {
        exhaust(&mut queue);
        assert_eq!(queue.pass(now, &mut next), None, "not soon again");
        assert_eq!(std::mem::take(&mut next), [1]);
        now += 1_000;
    }
    queue.unblock(2);
    queue.ask(2);
    queue.block(2);
    exhaust(&mut queue);
    assert!(queue.pass(now, &mut next).is_some(), "later it is waited for");
    queue.unblock(2);
    assert_eq!(queue.pass(now, &mut next), None, "it has gone on");
}

/// One tenant reserved most of the network, another most of the thread. Each floods the server with requests for what the
/// other reserved.
#[test]
fn a_tenant_gets_what_it_reserved_of_each_resource() {
    let flood = |weights, cost_ns| Flood {
        weights,
        connections: 3,
        cost_ns,
        times: vec![1],
    };
    // Parts of the CPU and of the network: 0.2 and 0.6, and 0.6 and 0.2.
    let reader = flood([200, 600, 1], [1_000, 10_000, 0]);
    let other = flood([600, 200, 1], [1_000, 10_000, 0]);
    let mut server = Server::new(vec![reader, other]);
    server.all_ask();
    for _ in 0..2_000 {
        server.pass();
    }
    let network = |tenant: usize| server.served_ns[tenant][1] as f64;
    let part = network(0) / (network(0) + network(1));
    assert!(
        (0.74..0.76).contains(&part),
        "three quarters of what both reserved: {part}"
    );
}
