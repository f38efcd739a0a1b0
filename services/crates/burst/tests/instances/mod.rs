//! Random problems for the tests.

use proptest::prelude::*;
use quorate_burst::{ReplicaCost, SharingProblem, SharingTenant, request_by_request};

/// Algorithm 2 on a problem that grants few requests.
pub fn counted(problem: &SharingProblem) -> Vec<u64> {
    request_by_request(problem, 10_000_000).unwrap()
}

type Costs = (u64, u64, u64);

/// `capacity` and `cost`: largest amounts; with `capacity` ≫ `cost` many requests fit.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub servers: usize,
    pub tenants: usize,
    pub capacity: u64,
    pub cost: u64,
}

/// Tenants of degree 1 to 4 on random servers; costs from nothing upwards; some want little, others all.
pub fn problems(sizes: Sizes) -> impl Strategy<Value = SharingProblem> {
    let capacity = move || prop_oneof![1 => Just(0u64), 12 => sizes.capacity / 4..=sizes.capacity];
    let free = proptest::collection::vec([capacity(), capacity(), capacity()], 1..=sizes.servers);
    free.prop_flat_map(move |free| {
        let servers = free.len();
        let cost = move || prop_oneof![1 => Just(0u64), 3 => 1..=sizes.cost];
        let order = Just((0..servers).collect::<Vec<usize>>()).prop_shuffle();
        let extra = prop_oneof![3 => Just(u64::MAX), 1 => 0..=sizes.capacity / sizes.cost];
        let tenant = (
            order,
            1..=servers.min(4),
            extra,
            proptest::collection::vec((1..=sizes.cost, cost(), cost()), 4),
        );
        let tenants = proptest::collection::vec(tenant, 0..=sizes.tenants);
        (Just(free), tenants).prop_map(|(free, tenants)| {
            let tenants = tenants.into_iter().map(
                |(order, degree, extra_per_s, costs): (Vec<usize>, usize, u64, Vec<Costs>)| SharingTenant {
                    replicas: replicas(&order[..degree], &costs),
                    extra_per_s,
                },
            );
            SharingProblem::new(free, tenants.collect()).expect("generated to be valid")
        })
    })
}

fn replicas(servers: &[usize], costs: &[Costs]) -> Vec<ReplicaCost> {
    let replicas = servers.iter().zip(costs);
    replicas
        .map(|(server, cost)| ReplicaCost {
            server: *server,
            cost: [cost.0, cost.1, cost.2],
        })
        .collect()
}
