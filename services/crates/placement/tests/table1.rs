//! The worked example of Filo §4, Table 1: 4 servers, 3 resources, 2 applicants with 2 replicas each.

use quorate_placement::{Amounts, Applicant, Fleet, place_batch, place_one};
use quorate_types::ServerId;

fn fleet() -> Fleet {
    let mut fleet = Fleet::default();
    for (id, capacity) in [
        (1, [2, 2, 250]),
        (2, [2, 2, 400]),
        (3, [8, 4, 100]),
        (4, [4, 2, 250]),
    ] {
        fleet.set_server(ServerId(id), Amounts::of_rates(capacity), None, false, true);
    }
    fleet
}

fn a1() -> Vec<Amounts> {
    vec![Amounts::of_rates([1, 1, 100]), Amounts::of_rates([3, 1, 100])]
}

fn a2() -> Vec<Amounts> {
    vec![Amounts::of_rates([3, 4, 100]), Amounts::of_rates([1, 1, 150])]
}

#[test]
fn shares_are_those_of_the_paper() {
    let total = fleet().free_total();
    assert_eq!(total, Amounts::of_rates([16, 10, 1000]));
    assert_eq!(Amounts::sum(a1()), Amounts::of_rates([4, 2, 200]));
    assert_eq!(Amounts::sum(a2()), Amounts::of_rates([4, 5, 250]));
    assert_eq!(Amounts::sum(a2()).dominant_share(total), (0.5, 1));
    assert_eq!(a2()[0].dominant_share(total), (0.4, 1));
    assert_eq!(a2()[1].dominant_share(total), (0.15, 2));
}

#[test]
fn off_line_a2_goes_first_its_heavy_replica_first() {
    let mut fleet = fleet();
    let applicants = vec![
        Applicant {
            key: "a1",
            replicas: a1(),
        },
        Applicant {
            key: "a2",
            replicas: a2(),
        },
    ];
    let outcome = place_batch(&mut fleet, applicants);
    // a2's p1 (4 Gbps) fits R3 only; its p2 goes to the first untouched server. Then D1 = 0.6 and D3 = 1, so
    // a1's heavier p2 takes R4 (R2 has 2 CPU only), and its p1 the untouched R2.
    let placed = |ids: [u32; 2]| Ok(ids.map(ServerId).to_vec());
    assert_eq!(outcome, vec![("a2", placed([3, 1])), ("a1", placed([2, 4]))]);
    assert_eq!(fleet.free_total(), Amounts::of_rates([8, 3, 550]));
    assert_eq!(fleet.free(ServerId(3)), Amounts::of_rates([5, 0, 0]));
}

#[test]
fn all_replicas_or_none() {
    let mut fleet = fleet();
    place_one(&mut fleet, &a2()).unwrap();
    let before: Vec<Amounts> = (1..=4).map(|id| fleet.free(ServerId(id))).collect();
    // A second a2 finds no server with 4 Gbps: rejected, though its p2 would fit.
    let refused = place_one(&mut fleet, &a2()).unwrap_err();
    assert_eq!((refused.replica, refused.elected), (0, vec![]));
    // An applicant whose lighter replica finds no place releases the charge of its heavier one.
    let refused = place_one(
        &mut fleet,
        &[Amounts::of_rates([4, 1, 1]), Amounts::of_rates([3, 2, 101])],
    )
    .unwrap_err();
    assert!(!refused.elected.is_empty());
    let after: Vec<Amounts> = (1..=4).map(|id| fleet.free(ServerId(id))).collect();
    assert_eq!(before, after);
}
