//! The coordinators' part of sharing: which reports a round goes by, and whom it tells what.

use quorate_burst::ReplicaCost;
use quorate_burst::exchange::GroupEpoch;
use quorate_burst::fleet::{FleetShares, Round, SharingGroup};
use quorate_policies::Policy;
use quorate_types::control::{SharingReport, SharingWant};
use quorate_types::{GroupId, ProjectId, ServerId};
use uuid::Uuid;

const INTERVAL_US: u64 = 500_000;
const FREE: [u64; 3] = [1_000_000, 2_000_000, 500_000];

fn key(n: u128, epoch: u64) -> GroupEpoch {
    (GroupId(Uuid::from_u128(n)), epoch)
}

fn report(interval: u64, wants: &[(GroupEpoch, u64)]) -> SharingReport {
    let want = |(key, extra_per_s): &(GroupEpoch, u64)| SharingWant {
        group_id: key.0,
        epoch: key.1,
        extra_per_s: *extra_per_s,
        using: Some(interval - 1),
    };
    SharingReport {
        interval,
        interval_us: INTERVAL_US,
        free: FREE,
        wants: wants.iter().map(want).collect(),
    }
}

fn chain(servers: &[usize]) -> SharingGroup {
    of_project(0, servers)
}

fn of_project(project: u128, servers: &[usize]) -> SharingGroup {
    let replica = |server: &usize| ReplicaCost {
        server: *server,
        cost: [1_000, 100, 0],
    };
    SharingGroup {
        project: ProjectId(Uuid::from_u128(project)),
        replicas: servers.iter().map(replica).collect(),
    }
}

/// Rates by server, of the groups in order.
fn rates(round: &Round, server: usize) -> Vec<u64> {
    round.rates[&server].iter().map(|rate| rate.per_s).collect()
}

fn three_servers(wants: &[(GroupEpoch, u64)]) -> FleetShares {
    let mut shares = FleetShares::default();
    shares.report(0, ServerId(1), report(7, wants));
    for server in [2, 3] {
        shares.report(0, ServerId(server), report(7, &[]));
    }
    shares
}

#[test]
fn each_server_is_told_the_rates_of_its_own_groups() {
    let mut shares = three_servers(&[(key(1, 1), u64::MAX), (key(2, 4), 100)]);
    assert_eq!(shares.take_unknown(), [key(1, 1), key(2, 4)]);
    assert_eq!(shares.take_unknown(), [], "they were asked for");
    shares.know(key(1, 1), Some(chain(&[1, 2])));
    shares.know(key(2, 4), Some(chain(&[1, 3])));
    assert_eq!(shares.wake_at(0), Some(0), "all have reported");
    let round = shares.decide(0);
    assert_eq!(
        (rates(&round, 1), rates(&round, 2), rates(&round, 3)),
        (vec![900, 100], vec![900], vec![100])
    );
    assert_eq!((round.wanting, round.satisfied, round.interval), (2, 1, 7));
    let one = round.rates[&2][0];
    assert_eq!((one.interval, one.using), (7, Some(6)), "as its head reported");
    assert_eq!(shares.wake_at(1), None, "nothing is new");
    assert_eq!(shares.take_unknown(), []);
}

#[test]
fn a_round_waits_for_late_servers_for_a_part_of_the_interval() {
    let mut shares = three_servers(&[]);
    shares.decide(0);
    shares.report(INTERVAL_US, ServerId(1), report(8, &[]));
    shares.report(INTERVAL_US + 10, ServerId(2), report(8, &[]));
    assert_eq!(
        shares.wake_at(INTERVAL_US + 10),
        Some(INTERVAL_US + INTERVAL_US / 8)
    );
    shares.report(INTERVAL_US + 20, ServerId(3), report(8, &[]));
    assert_eq!(shares.wake_at(INTERVAL_US + 20), Some(INTERVAL_US + 20));
}

#[test]
fn the_first_to_begin_an_interval_has_the_others_begin_it() {
    let mut shares = three_servers(&[]);
    assert_eq!(
        shares.report(10, ServerId(2), report(8, &[])),
        [ServerId(1), ServerId(3)]
    );
    assert_eq!(shares.report(11, ServerId(1), report(8, &[])), []);
    assert_eq!(
        shares.report(12, ServerId(3), report(7, &[])),
        [ServerId(3)],
        "it is behind"
    );
    assert_eq!(shares.now_at(), (0, 8));
    shares.decide(12);
    assert_eq!(shares.now_at(), (1, 8));
}

#[test]
fn nobody_shares_by_the_word_of_a_server_that_is_no_head_nor_of_another_epoch() {
    let mut shares = three_servers(&[(key(1, 1), 50), (key(2, 1), 50), (key(3, 1), 50)]);
    shares.take_unknown();
    shares.know(key(1, 1), Some(chain(&[2, 1])));
    shares.know(key(2, 1), None);
    shares.know(key(3, 1), Some(chain(&[1, 3])));
    let round = shares.decide(0);
    assert_eq!(
        (rates(&round, 1), rates(&round, 2), rates(&round, 3)),
        (vec![50], vec![], vec![50])
    );
}

#[test]
fn what_is_free_on_a_server_that_fell_silent_is_not_known() {
    let mut shares = three_servers(&[(key(1, 1), 50), (key(2, 1), 50)]);
    shares.take_unknown();
    shares.know(key(1, 1), Some(chain(&[1, 2])));
    shares.know(key(2, 1), Some(chain(&[1, 3])));
    shares.decide(0);
    let later = 3 * INTERVAL_US;
    for server in [1, 3] {
        let wants = if server == 1 {
            &[(key(1, 1), 50), (key(2, 1), 50)][..]
        } else {
            &[]
        };
        shares.report(later, ServerId(server), report(10, wants));
    }
    assert_eq!(shares.wake_at(later), Some(later), "it is not waited for");
    let round = shares.decide(later);
    assert_eq!((rates(&round, 1), rates(&round, 3)), (vec![50], vec![50]));
    assert!(!round.rates.contains_key(&2));
}

#[test]
fn reports_of_one_interval_belong_together_and_lookups_that_failed_are_repeated() {
    let mut shares = FleetShares::default();
    shares.report(0, ServerId(1), report(7, &[(key(1, 1), 50)]));
    shares.report(5, ServerId(1), report(7, &[(key(2, 1), 50)]));
    assert_eq!(shares.take_unknown(), [key(1, 1), key(2, 1)]);
    shares.know(key(1, 1), Some(chain(&[1])));
    shares.forget_asked();
    assert_eq!(shares.take_unknown(), [key(2, 1)]);
    shares.know(key(2, 1), Some(chain(&[1])));
    assert_eq!(rates(&shares.decide(5), 1), [50, 50]);
    // A group that wants nothing any more is looked up again when it does.
    shares.report(INTERVAL_US, ServerId(1), report(8, &[(key(2, 1), 50)]));
    shares.decide(INTERVAL_US);
    shares.report(2 * INTERVAL_US, ServerId(1), report(9, &[(key(1, 1), 50)]));
    assert_eq!(shares.take_unknown(), [key(1, 1)]);
}

#[test]
fn a_server_may_send_any_numbers() {
    let mut shares = three_servers(&[]);
    let mut odd = report(u64::MAX, &[(key(1, u64::MAX), u64::MAX)]);
    (odd.interval_us, odd.free) = (u64::MAX, [u64::MAX; 3]);
    shares.report(5, ServerId(u32::MAX), odd.clone());
    odd.interval_us = 0;
    shares.report(6, ServerId(2), odd);
    shares.take_unknown();
    shares.know(key(1, u64::MAX), Some(chain(&[u32::MAX as usize, 2])));
    let round = shares.decide(6);
    assert_eq!((rates(&round, 2).len(), round.interval), (1, u64::MAX));
    assert!(shares.wake_at(u64::MAX / 2).is_none());
    assert!(
        shares.decide(u64::MAX / 2).rates.is_empty(),
        "all of them have lapsed"
    );
}

/// Two groups of one project and one of another want all of one server.
#[test]
fn the_operator_chooses_who_gets_how_much() {
    let shared_by = |policy: Policy| {
        let mut shares = FleetShares::new(policy);
        let wants = [1, 2, 3].map(|n| (key(n, 1), u64::MAX));
        shares.report(0, ServerId(1), report(7, &wants));
        shares.take_unknown();
        for (n, project) in [(1, 1), (2, 1), (3, 2)] {
            shares.know(key(n, 1), Some(of_project(project, &[1])));
        }
        rates(&shares.decide(0), 1)
    };
    assert_eq!(shared_by(Policy::Drf), [333; 3]);
    assert_eq!(shared_by(Policy::HierarchicalDrf), [250, 250, 500]);
    assert_eq!(shared_by(Policy::FirstFit), [1_000, 0, 0]);
}

#[test]
fn every_policy_is_feasible_and_gives_no_more_than_is_wanted() {
    for policy in Policy::ALL {
        let mut shares = FleetShares::new(policy);
        let wants: Vec<(GroupEpoch, u64)> = (1..=40).map(|n| (key(n, 1), (n as u64) * 10)).collect();
        shares.report(0, ServerId(1), report(7, &wants));
        (2..=4).for_each(|server| drop(shares.report(0, ServerId(server), report(7, &[]))));
        shares.take_unknown();
        for n in 1..=40 {
            let group = of_project(n % 3, &[1, 2 + n as usize % 3]);
            shares.know(key(n, 1), Some(group));
        }
        let round = shares.decide(0);
        let given = rates(&round, 1);
        assert!(
            given.iter().zip(&wants).all(|(rate, (_, wanted))| rate <= wanted),
            "{policy:?}"
        );
        let sum: u64 = given.iter().sum();
        assert!((960..=1_000).contains(&sum), "{policy:?} gives {sum} of 1 000");
    }
}
