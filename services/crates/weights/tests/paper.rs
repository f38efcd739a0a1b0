//! The paper's own examples, and histories of random fleets.

use proptest::prelude::*;
use quorate_types::{GroupId, ServerId};
use quorate_weights::{Division, Partition, Room, Tenant, divide};
use uuid::Uuid;

/// A partition on one server, whose requests cost a unit of its CPU.
fn on(server: u32, rate_per_s: u64, wanted_per_s: u64) -> Partition {
    Partition {
        rate_per_s,
        wanted_per_s: Some(wanted_per_s),
        peak_per_s: u64::MAX,
        costs: vec![(ServerId(server), [1, 0, 0])],
    }
}

fn tenant(id: u128, partitions: Vec<Partition>) -> Tenant {
    Tenant {
        id: GroupId(Uuid::from_u128(id)),
        partitions,
    }
}

fn room(free: &[u64]) -> Room {
    Room::new(
        (1..)
            .zip(free)
            .map(|(server, free)| (ServerId(server), [*free, 0, 0])),
    )
}

fn rates(divisions: &[Division]) -> Vec<Vec<u64>> {
    divisions.iter().map(|one| one.rates.clone()).collect()
}

/// Takes the rates over, as if they were in force.
fn apply(tenants: &mut [Tenant], divisions: &[Division]) {
    for division in divisions {
        let of = tenants
            .iter_mut()
            .find(|tenant| tenant.id == division.id)
            .unwrap();
        for (partition, rate) in of.partitions.iter_mut().zip(&division.rates) {
            partition.rate_per_s = *rate;
        }
    }
}

#[test]
fn a_tenant_takes_room_where_it_wants_more_and_leaves_it_elsewhere() {
    let one = tenant(1, vec![on(1, 500, 900), on(2, 500, 50)]);
    let found = divide(&[one], &room(&[1_000, 1_000])).divisions;
    assert_eq!(rates(&found), [[945, 55]]);
    assert!(!found[0].is_swapped);
}

#[test]
fn two_tenants_swap_on_two_full_servers() {
    // Figure 2b: both have 500 on each server, and want 600 and 400, and the other way about.
    let mut tenants = [
        tenant(1, vec![on(1, 500, 600), on(2, 500, 400)]),
        tenant(2, vec![on(1, 500, 400), on(2, 500, 600)]),
    ];
    let mut swapped = false;
    for _ in 0..5 {
        let found = divide(&tenants, &room(&[0, 0])).divisions;
        swapped |= found.iter().any(|one| one.is_swapped);
        apply(&mut tenants, &found);
    }
    assert!(swapped);
    let [a, b] = tenants.each_ref().map(Tenant::rates);
    assert!(
        a[0].abs_diff(600) <= 30 && b[0].abs_diff(400) <= 30,
        "{a:?} {b:?}"
    );
    assert_eq!(
        (a[0] + b[0], a[1] + b[1]),
        (1_000, 1_000),
        "the servers are as full as before"
    );
}

#[test]
fn a_swap_goes_through_a_third_tenant_where_two_cannot() {
    // Figure 3: the first lacks on server 1, where the second spares; that one lacks on server 2, where the third spares.
    let tenants = [
        tenant(1, vec![on(1, 100, 180), on(3, 100, 10)]),
        tenant(2, vec![on(2, 100, 180), on(1, 100, 10)]),
        tenant(3, vec![on(3, 100, 180), on(2, 100, 10)]),
    ];
    let found = divide(&tenants, &room(&[0, 0, 0])).divisions;
    assert_eq!(found.len(), 3);
    assert!(
        found.iter().all(|one| one.is_swapped && one.rates[0] > 150),
        "{found:?}"
    );
}

#[test]
fn nobody_is_robbed_and_small_differences_stay() {
    let full = [
        tenant(1, vec![on(1, 500, 2_000), on(2, 500, 2_000)]),
        tenant(2, vec![on(1, 500, 2_000), on(2, 500, 2_000)]),
    ];
    assert_eq!(divide(&full, &room(&[0, 0])).divisions, []);
    let small = tenant(1, vec![on(1, 500, 465), on(2, 500, 430)]);
    assert_eq!(divide(&[small], &room(&[9_000, 9_000])).divisions, []);
}

#[test]
fn a_partition_keeps_a_tenth_of_its_even_part() {
    let one = tenant(1, vec![on(1, 500, 5_000), on(2, 500, 0)]);
    assert_eq!(
        rates(&divide(&[one], &room(&[9_000, 9_000])).divisions),
        [[950, 50]]
    );
}

#[test]
fn nothing_moves_before_every_head_has_reported() {
    let mut one = tenant(1, vec![on(1, 500, 900), on(2, 500, 50)]);
    one.partitions[1].wanted_per_s = None;
    assert_eq!(divide(&[one], &room(&[1_000, 1_000])).divisions, []);
}

#[test]
fn a_chain_takes_no_more_than_it_carries() {
    let mut one = tenant(1, vec![on(1, 500, 5_000), on(2, 500, 0)]);
    one.partitions[0].peak_per_s = 700;
    assert_eq!(
        rates(&divide(&[one], &room(&[9_000, 9_000])).divisions),
        [[700, 300]]
    );
}

/// Tenants with chains of two servers each, on a fleet that their rates fill to `filled` percent.
fn fleets() -> impl Strategy<Value = (Vec<Tenant>, Vec<u64>)> {
    let partition = (1u32..7, 1u32..6, 50u64..500, 0u64..1_500, 1u64..4, 1u64..4);
    let tenant_of = proptest::collection::vec(partition, 1..6);
    (proptest::collection::vec(tenant_of, 1..7), 60u64..=100).prop_map(|(all, filled)| {
        let tenants: Vec<Tenant> = (1..)
            .zip(all)
            .map(|(id, partitions)| {
                let partitions = partitions
                    .into_iter()
                    .map(|(head, next, rate, wanted, cost, less)| Partition {
                        rate_per_s: rate,
                        wanted_per_s: Some(wanted),
                        peak_per_s: 1_200,
                        costs: vec![
                            (ServerId(head), [cost * 10, 0, less]),
                            (ServerId((head + next - 1) % 6 + 1), [less * 10, 0, cost]),
                        ],
                    });
                tenant(id, partitions.collect())
            })
            .collect();
        let mut used = vec![0u64; 6];
        for partition in tenants.iter().flat_map(|tenant| &tenant.partitions) {
            for (server, cost) in &partition.costs {
                used[server.0 as usize - 1] += cost[0] * partition.rate_per_s;
            }
        }
        (
            tenants,
            used.into_iter().map(|used| used * 100 / filled).collect(),
        )
    })
}

fn free(tenants: &[Tenant], capacity: &[u64]) -> Vec<[i128; 3]> {
    let mut free: Vec<[i128; 3]> = capacity
        .iter()
        .map(|all| [i128::from(*all), 0, i128::from(*all)])
        .collect();
    for partition in tenants.iter().flat_map(|tenant| &tenant.partitions) {
        for (server, cost) in &partition.costs {
            for i in 0..3 {
                free[server.0 as usize - 1][i] -= i128::from(cost[i] * partition.rate_per_s);
            }
        }
    }
    free
}

/// The part of what it should have that the worst partition lacks.
fn worst(tenants: &[Tenant]) -> f64 {
    let lacks = tenants.iter().flat_map(|tenant| {
        let goals = tenant.goals().unwrap();
        let lacks = tenant.partitions.iter().zip(goals);
        lacks
            .map(|(one, goal)| goal.saturating_sub(one.rate_per_s) as f64 / goal.max(1) as f64)
            .collect::<Vec<_>>()
    });
    lacks.fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn sums_stay_no_server_is_overcharged_and_it_comes_to_rest((tenants, capacity) in fleets()) {
        let mut now = tenants.clone();
        let sums: Vec<u64> = now.iter().map(Tenant::rate_per_s).collect();
        let begun = worst(&now);
        let mut last = None;
        for _ in 0..40 {
            let free = free(&now, &capacity);
            let room = Room::new((1..).zip(&free).map(|(server, free)| {
                (ServerId(server), free.map(|amount| u64::try_from(amount).unwrap()))
            }));
            let found = divide(&now, &room).divisions;
            let is_over = found.is_empty();
            apply(&mut now, &found);
            last = Some(found);
            if is_over {
                break;
            }
        }
        prop_assert_eq!(last, Some(Vec::new()), "it comes to rest");
        prop_assert_eq!(now.iter().map(Tenant::rate_per_s).collect::<Vec<_>>(), sums);
        for free in free(&now, &capacity) {
            prop_assert!(free.iter().all(|amount| *amount >= 0), "{:?}", free);
        }
        prop_assert!(worst(&now) <= begun + 1e-9, "{} was {begun}", worst(&now));
        for (after, before) in now.iter().zip(&tenants) {
            for (partition, had) in after.partitions.iter().zip(&before.partitions) {
                prop_assert!(partition.rate_per_s >= before.floor_per_s().min(had.rate_per_s));
            }
        }
    }
}
