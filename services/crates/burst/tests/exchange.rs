//! The exchange as servers run it: grants, their reclaim and their end, and that they always fit.

mod world;

use proptest::prelude::*;
use quorate_burst::Policy;
use quorate_burst::exchange::{Algorithm, ExchangeSettings, GrantBound, GrantReason};
use quorate_burst::fleet::FleetShares;
use quorate_types::GroupId;
use quorate_wire::share::{Share, ShareAggregate, What};
use uuid::Uuid;
use world::*;

fn level(policy: Policy) -> ExchangeSettings {
    settings(Algorithm::Level, policy)
}

#[test]
fn unreserved_amounts_go_evenly_to_the_groups_that_want_more() {
    for algorithm in [Algorithm::Fleet, Algorithm::Level, Algorithm::All] {
        // Capacity 1 000 requests/s a server; 400 reserved on each.
        let groups = vec![group(&[0, 1, 2], 200, 5_000), group(&[1, 2, 0], 200, 5_000)];
        let mut world = World::new(3, groups, settings(algorithm, Policy::Unallocated));
        world.run(10 * INTERVAL);
        for g in 0..2 {
            let granted = world.granted(g);
            assert!((290..=300).contains(&granted), "{algorithm:?}: {granted} of 300");
        }
    }
}

#[test]
fn a_grant_says_which_resource_of_which_server_bounds_it() {
    for algorithm in [Algorithm::Fleet, Algorithm::Level, Algorithm::All] {
        // On the tail, storage suffices for 200 requests/s and CPU for 900.
        let mut scarce = group(&[0, 1, 2], 0, 5_000);
        scarce.costs[2] = [1_000, 100, 2_500];
        // The first of two groups finds 500 on its tail and more on its head; the other gets all that it wants.
        let tight = group(&[3, 4], 0, 5_000);
        let groups = vec![scarce, tight, group(&[1, 2], 100, 120), group(&[4, 5], 500, 0)];
        let mut world = World::new(6, groups, settings(algorithm, Policy::Unallocated));
        world.run(10 * INTERVAL);
        let granted = [world.granted(0), world.granted(1), world.granted(2)];
        assert!((190..=200).contains(&granted[0]), "{algorithm:?}: {granted:?}");
        assert!((490..=500).contains(&granted[1]), "{algorithm:?}: {granted:?}");
        assert!(granted[2] >= 20, "{algorithm:?}: {granted:?}");
        let bound = |server, resource| Some(GrantBound { server, resource });
        let bounds = [0, 1, 2].map(|g| world.bounds[&g]);
        assert_eq!(bounds, [bound(2, 2), bound(4, 0), None], "{algorithm:?}");
    }
}

#[test]
fn head_drf_gives_proposals_whole() {
    let groups = vec![group(&[0, 1, 2], 200, 450)];
    let mut world = World::new(3, groups, settings(Algorithm::Head, Policy::Unallocated));
    world.run(10 * INTERVAL);
    assert!(world.granted(0) >= 250, "{}", world.granted(0));
}

/// A server hears of its commitments and of grants in use from two others here, and sends nothing else between servers.
#[test]
fn told_servers_send_one_another_commitments_alone() {
    let groups = vec![group(&[0, 1, 2], 200, 5_000), group(&[1, 2, 0], 200, 5_000)];
    let mut world = World::new(3, groups, settings(Algorithm::Fleet, Policy::Unallocated));
    world.run(10 * INTERVAL);
    let (frames, rounds) = (world.sent, world.rounds);
    world.run(10 * INTERVAL);
    assert_eq!(world.rounds - rounds, 10, "one each interval");
    assert_eq!((world.sent - frames) / 10, 4, "two followers of two heads");
    assert!(world.granted(0) >= 290 && world.granted(1) >= 290);
}

#[test]
fn servers_go_on_with_told_rates_for_a_while_and_then_share_by_themselves() {
    let groups = vec![group(&[0, 1, 2], 200, 5_000), group(&[1, 2, 0], 200, 5_000)];
    let mut world = World::new(3, groups, settings(Algorithm::Fleet, Policy::Unallocated));
    world.run(10 * INTERVAL);
    world.coordinator = None;
    for turn in 0..12 {
        world.run(INTERVAL);
        assert!(
            world.granted(0) >= 280 && world.granted(1) >= 280,
            "{turn} intervals later"
        );
    }
    let rounds = world.rounds;
    // Another one knows nothing, and begins with lower numbers.
    world.coordinator = Some(FleetShares::default());
    world.groups[1].offered_per_s = 0;
    world.run(6 * INTERVAL);
    assert!(world.rounds > rounds);
    assert!(world.granted(0) >= 580, "{}: all that is free", world.granted(0));
}

#[test]
fn a_server_that_does_not_report_shares_nothing_with_the_others() {
    let groups = vec![group(&[0, 1], 200, 5_000), group(&[1, 2], 200, 5_000)];
    let mut world = World::new(3, groups, settings(Algorithm::Fleet, Policy::Unallocated));
    world.run(10 * INTERVAL);
    world.crash(2);
    world.run(6 * INTERVAL);
    assert_eq!(world.granted(1), 0, "nobody knows what is free on its tail");
    assert!(
        world.granted(0) >= 580,
        "{}: what the other one leaves",
        world.granted(0)
    );
}

/// CPU for 400 requests is reserved, as each of a hundred may come alone, and storage IO for a hundred.
#[test]
fn amounts_that_a_reservation_leaves_of_a_resource_are_granted() {
    let reserved = Some(vec![[400_000, 40_000, 100_000]; 2]);
    let groups = vec![
        Group {
            costs: vec![[100, 100, 1_000]; 2],
            ..group(&[0, 1], 0, 5_000)
        },
        Group {
            costs: vec![[1_000, 100, 1_000]; 2],
            reserved,
            ..group(&[1, 0], 400, 0)
        },
    ];
    let mut world = World::new(2, groups, level(Policy::Unallocated));
    world.run(12 * INTERVAL);
    let granted = world.granted(0);
    assert!(
        (390..=400).contains(&granted),
        "{granted} of the 400 that nobody reserved"
    );
}

#[test]
fn idle_reservations_are_granted_to_others_and_come_back_at_once() {
    let groups = vec![group(&[0, 1, 2], 450, 5_000), group(&[1, 2, 0], 500, 0)];
    let mut world = World::new(3, groups, level(Policy::Idle));
    world.run(12 * INTERVAL);
    let granted = world.granted(0);
    assert!(
        granted > 400,
        "{granted}: its own 50 unallocated, and most of the idle 500"
    );
    // The owner is back: its head reports it to the other servers, and they to the other group's head.
    world.groups[1].offered_per_s = 500;
    world.run(15 * MS);
    assert_eq!(world.granted(0), 0, "reclaimed within two messages");
    assert_eq!(world.reasons.last(), Some(&(0, GrantReason::Recalled)));
    world.run(4 * INTERVAL);
    assert!(
        world.is_feasible(),
        "what is granted again leaves the owner its own"
    );
    assert!(
        world.granted(0) >= 40,
        "the unallocated is granted again: {}",
        world.granted(0)
    );
}

/// An owner always uses just the rate that it is assumed to use, so it is never noticed. Another group wants as much as
/// it can get.
#[test]
fn an_owner_that_comes_back_gently_and_grants_fit_at_every_moment() {
    for (turns_lost, to) in [(0..0, 1_000), (100..420, 1_000), (0..0, 620)] {
        let groups = vec![group(&[0, 1, 2], 0, 5_000), group(&[1, 2, 0], 1_000, 400)];
        let mut world = World::new(3, groups, level(Policy::Idle));
        world.run(12 * INTERVAL);
        let granted = world.granted(0);
        assert!((400..=449).contains(&granted), "{granted} of 449");
        assert_eq!(world.assumed(1), 551);
        for turn in 0..1_000 {
            world.groups[1].offered_per_s = world.assumed(1).min(to);
            let lossy = turns_lost.contains(&turn);
            world.advance(5 * MS, &mut |_| if lossy { Vec::new() } else { vec![MS] });
            assert!(
                world.is_feasible(),
                "at {turn}: {:?} {}",
                world.used,
                world.assumed(1)
            );
        }
        assert!(
            world.assumed(1) >= to,
            "{}: it may use what it reserved",
            world.assumed(1)
        );
        assert!(
            !world.reasons.contains(&(0, GrantReason::Recalled)),
            "nothing had to be reclaimed"
        );
    }
}

#[test]
fn grants_are_reclaimed_for_a_reservation_that_appears_or_grows() {
    let appears = |world: &mut World, offered: u64| world.groups.push(group(&[1, 2, 0], 500, offered));
    let grows = |world: &mut World, offered: u64| {
        // A resize is a new epoch.
        (world.groups[1].epoch, world.groups[1].reserved_per_s) = (2, 600);
        world.groups[1].offered_per_s = offered;
    };
    let changes: [fn(&mut World, u64); 2] = [appears, grows];
    for change in changes {
        // An owner that sends requests is noticed at once; one that sends none, when the next interval begins.
        for (offered, within) in [(400, INTERVAL / 4 + 30 * MS), (0, INTERVAL + 30 * MS)] {
            let groups = vec![group(&[0, 1, 2], 100, 5_000), group(&[2, 0, 1], 100, 0)];
            let mut world = World::new(3, groups, level(Policy::Unallocated));
            world.run(10 * INTERVAL + 40 * MS);
            assert!(world.granted(0) > 750, "{}", world.granted(0));
            change(&mut world, offered);
            world.run(within);
            assert!(world.granted(0) <= 300, "{} after {within}", world.granted(0));
            world.run(4 * INTERVAL);
            assert!((280..=300).contains(&world.granted(0)), "{}", world.granted(0));
        }
    }
}

#[test]
fn only_the_amount_that_an_owner_needs_is_reclaimed() {
    let groups = vec![
        group(&[0, 1], 100, 5_000),
        group(&[1, 2], 100, 5_000),
        group(&[2, 1, 0], 300, 0),
    ];
    let mut world = World::new(3, groups, level(Policy::Idle));
    world.run(12 * INTERVAL);
    let before = [world.granted(0), world.granted(1)];
    assert!(
        before[0] + before[1] > 700 && before[0].abs_diff(before[1]) < 20,
        "{before:?}"
    );
    world.groups[2].offered_per_s = 300;
    world.run(15 * MS);
    let mut after = [world.granted(0), world.granted(1)];
    after.sort_unstable();
    assert_eq!(after[0], 0, "one of them lost it");
    assert!(after[1] > 350, "{after:?}: the other one did not");
}

#[test]
fn silence_ends_grants() {
    let groups = vec![group(&[0, 1, 2], 200, 5_000)];
    let mut world = World::new(3, groups, level(Policy::Unallocated));
    world.run(10 * INTERVAL);
    assert!(world.granted(0) > 700);
    for _ in 0..400 {
        world.advance(5 * MS, &mut |_| Vec::new());
    }
    assert_eq!(world.granted(0), 0, "after three intervals nobody was heard");
    world.run(6 * INTERVAL);
    assert!(
        world.granted(0) > 700,
        "and again when they are: {}",
        world.granted(0)
    );
}

#[test]
fn another_epoch_begins_with_the_reservation() {
    let groups = vec![group(&[0, 1, 2], 200, 5_000)];
    let mut world = World::new(3, groups, level(Policy::Unallocated));
    world.run(10 * INTERVAL);
    world.groups[0].epoch = 2;
    assert_eq!(world.granted(0), 0);
    world.run(INTERVAL + 10 * MS);
    assert!(
        world.reasons.contains(&(0, GrantReason::Moved)),
        "{:?}",
        world.reasons
    );
    world.run(6 * INTERVAL);
    assert!(world.granted(0) > 700, "{}", world.granted(0));
}

#[test]
fn servers_that_start_late_fall_into_step() {
    let groups = vec![group(&[2, 0], 100, 5_000)];
    let mut world = World::new(3, groups, level(Policy::Unallocated));
    world.run(40 * INTERVAL);
    world.restart(2);
    world.run(12 * INTERVAL);
    assert!(world.granted(0) > 800, "{}", world.granted(0));
}

#[test]
fn frames_about_groups_elsewhere_change_nothing() {
    let mut world = World::new(2, vec![group(&[0, 1], 100, 5_000)], level(Policy::Idle));
    world.run(10 * INTERVAL);
    let before = world.granted(0);
    let entry = |g: u128| quorate_wire::share::ShareEntry {
        group_id: GroupId(Uuid::from_u128(g)),
        epoch: 1,
        number: Some(3),
        used_up: None,
    };
    for what in [
        What::Has,
        What::Aggregates,
        What::Commitment,
        What::Using,
        What::Returned,
        What::Free,
    ] {
        for interval in [0, 7, u64::MAX] {
            let share = Share {
                interval,
                what,
                free: [0; 3],
                entries: vec![entry(99)],
                aggregates: Vec::new(),
            };
            let now = world.local_now(0);
            world.servers[0].as_mut().unwrap().hear(now, 1, share);
        }
    }
    world.run(2 * INTERVAL);
    assert!(world.granted(0) >= before, "{} of {before}", world.granted(0));
}

#[test]
fn a_peer_may_send_any_number() {
    let entry = |g: u128| quorate_wire::share::ShareEntry {
        group_id: GroupId(Uuid::from_u128(g)),
        epoch: 1,
        number: None,
        used_up: None,
    };
    let reals = [1e300, f64::MAX, f64::INFINITY, 1e-300, 5e-324, 0.0];
    for (amount, until_level) in reals.iter().flat_map(|a| reals.iter().map(move |b| (*a, *b))) {
        let groups = vec![
            group(&[0, 1, 2], 100, 5_000),
            group(&[1, 0], 100, 5_000),
            group(&[1, 2], 100, 150),
        ];
        let mut world = World::new(3, groups, level(Policy::Idle));
        world.run(6 * INTERVAL);
        for _ in 0..200 {
            let mut interval = 0;
            world.advance(5 * MS, &mut |share| {
                interval = interval.max(share.interval);
                vec![MS]
            });
            let aggregate = ShareAggregate {
                per_level: [amount.min(f64::MAX), 0.0, amount.min(f64::MAX)],
                until_level,
            };
            for (what, aggregates) in [
                (What::Has, vec![]),
                (What::Aggregates, vec![aggregate, aggregate]),
            ] {
                let share = Share {
                    interval,
                    what,
                    free: [amount as u64, until_level as u64, 0],
                    entries: vec![entry(1), entry(2)],
                    aggregates,
                };
                let now = world.local_now(0);
                world.servers[0].as_mut().unwrap().hear(now, 1, share);
            }
            assert!(world.is_feasible(), "{amount} {until_level}: {:?}", world.used);
        }
        world.run(6 * INTERVAL);
        assert!(
            world.granted(0) >= 290,
            "it has its part of 600 again: {}",
            world.granted(0)
        );
    }
}

fn groups(servers: usize) -> impl Strategy<Value = Vec<Group>> {
    let cost = (1u64..2_000, 0u64..3_000, 0u64..900).prop_map(|(a, b, c)| [a, b, c]);
    let group = (
        Just((0..servers).collect::<Vec<usize>>()).prop_shuffle(),
        1usize..4,
        proptest::collection::vec(cost, 3),
        0u64..90,
        prop_oneof![0u64..3_000, 0u64..60],
        // At the head all of the CPU and a part of the rest; elsewhere less or more.
        proptest::option::of(proptest::collection::vec((60u64..160, 10u64..100, 10u64..100), 3)),
    );
    let group = group.prop_map(
        |(mut chain, degree, mut costs, reserved_per_s, offered_per_s, percent)| {
            chain.truncate(degree);
            costs.truncate(degree);
            let mut group = Group {
                chain,
                costs,
                epoch: 1,
                reserved_per_s,
                reserved: None,
                offered_per_s,
            };
            if let Some(percent) = percent {
                let percent = percent.into_iter().enumerate();
                let all = |(position, (a, b, c))| [if position == 0 { 100 } else { a }, b, c];
                group.reserve(&percent.map(all).collect::<Vec<_>>());
            }
            group
        },
    );
    proptest::collection::vec(group, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Grants fit every server beside all reservations at every moment; with `idle`, beside the rates that owners use
    /// without being noticed. Frames are lost, late or out of order, servers restart, and groups change their epochs
    /// and wishes.
    #[test]
    fn grants_are_feasible_at_every_moment(
        groups in groups(4),
        algorithm in prop_oneof![Just(Algorithm::Level), Just(Algorithm::All), Just(Algorithm::Head)],
        fates in proptest::collection::vec(prop_oneof![
            6 => (1u64..20).prop_map(Some), 2 => Just(None), 1 => (20u64..900).prop_map(Some)
        ], 1..200),
        lossy in any::<bool>(),
        events in proptest::collection::vec((0usize..900, 0u8..5, 0usize..8, 0u64..3_000), 0..12),
        steps in proptest::collection::vec(1u64..12, 1..20),
        policy in prop_oneof![Just(Policy::Unallocated), Just(Policy::Idle)],
    ) {
        let mut world = World::new(4, groups, settings(algorithm, policy));
        // Reservations were admitted, so they fit.
        prop_assume!(world.is_admitted(0));
        let (mut fates, mut steps) = (fates.iter().cycle(), steps.iter().cycle());
        for turn in 0..900 {
            for (_, what, which, number) in events.iter().filter(|event| event.0 == turn) {
                let g = which % world.groups.len();
                let reserved_per_s = world.groups[g].reserved_per_s;
                match what {
                    0 => world.groups[g].epoch += 1,
                    1 => world.restart(which % 4),
                    // Within its reservation: an idle owner comes back, more or less.
                    2 => world.groups[g].offered_per_s = reserved_per_s * number / 3_000,
                    _ => world.groups[g].offered_per_s = *number,
                }
            }
            let mut fate = |_: &Share| match *fates.next().unwrap() {
                Some(ms) if lossy => vec![ms * MS],
                None if lossy => Vec::new(),
                _ => vec![MS],
            };
            world.advance(steps.next().unwrap() * MS, &mut fate);
            prop_assert!(world.is_feasible(), "at {} ms: {:?} {:?}", world.now / MS, world.used, world.groups);
        }
    }
}
