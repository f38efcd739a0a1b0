//! Properties of placement over random fleets and applicants, and its cost at scale.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proptest::prelude::*;
use quorate_placement::{
    Amounts, Applicant, Choice, Fleet, Pool, Profile, RESOURCES, Replacement, Search, admit, place_batch,
    place_batch_searching, place_one, quote, replace,
};
use quorate_types::limits::GROUPS_PER_SERVER_MAX;
use quorate_types::sla::{RefusalReason, ScarceResource};
use quorate_types::{Durability, Room, ServerId, Sla};

type Spec = (Amounts, Option<u8>, bool);

fn amounts(max: u64) -> impl Strategy<Value = Amounts> {
    [0..max, 0..max, 0..max, 0..max, 0..max].prop_map(Amounts)
}

/// A server's amounts; now and then one that does not say how much memory and disk it has.
fn capacities(max: u64) -> impl Strategy<Value = Amounts> {
    let unsaid = |mut all: Amounts, (memory, disk): (bool, bool)| {
        let unlimited = roomy([0; 3]);
        for i in [(memory, 3), (disk, 4)]
            .into_iter()
            .filter_map(|(is, i)| is.then_some(i))
        {
            all.0[i] = unlimited.0[i];
        }
        all
    };
    let weighted = || prop::bool::weighted(0.1);
    (amounts(max), (weighted(), weighted())).prop_map(move |(all, which)| unsaid(all, which))
}

fn servers() -> impl Strategy<Value = Vec<Spec>> {
    proptest::collection::vec(
        (
            capacities(1_000),
            proptest::option::of(0u8..4),
            prop::bool::weighted(0.2),
        ),
        1..20,
    )
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    OnLine,
    OffLine,
    Searching,
}

fn choices() -> impl Strategy<Value = Choice> {
    prop_oneof![Just(Choice::LeastLoaded), Just(Choice::Shape)]
}

fn hows() -> impl Strategy<Value = How> {
    prop_oneof![Just(How::OnLine), Just(How::OffLine), Just(How::Searching)]
}

fn fleet(servers: &[Spec], choice: Choice) -> Fleet {
    let mut fleet = Fleet::default().choosing(choice);
    for (i, (promisable, domain, auxiliary)) in servers.iter().enumerate() {
        fleet.set_server(
            ServerId(i as u32 + 1),
            *promisable,
            domain.map(|d| d.to_string()),
            *auxiliary,
            true,
        );
    }
    fleet
}

fn snapshot(fleet: &Fleet, servers: &[Spec]) -> Vec<Amounts> {
    (1..=servers.len())
        .map(|id| fleet.allocated(ServerId(id as u32)))
        .collect()
}

fn spec(servers: &[Spec], id: ServerId) -> &Spec {
    &servers[id.0 as usize - 1]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// No server is over-allocated, or takes two replicas of an applicant; auxiliary servers stay free. All replicas are
    /// placed or none, and allocations are the sum of the placed demands.
    #[test]
    fn admission(
        servers in servers(),
        applicants in proptest::collection::vec(proptest::collection::vec(amounts(400), 1..5), 1..30),
        how in hows(),
        choice in choices(),
    ) {
        let mut fleet = fleet(&servers, choice);
        let mut expected: BTreeMap<ServerId, Amounts> = BTreeMap::new();
        let mut outcomes = Vec::new();
        let all = applicants.iter().enumerate();
        let all = all.map(|(key, replicas)| Applicant { key, replicas: replicas.clone() }).collect();
        if how == How::OffLine {
            outcomes = place_batch(&mut fleet, all);
        } else if how == How::Searching {
            outcomes = place_batch_searching(&mut fleet, all, Search { rounds: 40, seed: 7 });
        } else {
            for (key, replicas) in applicants.iter().enumerate() {
                let before = snapshot(&fleet, &servers);
                let outcome = place_one(&mut fleet, replicas);
                if outcome.is_err() {
                    prop_assert_eq!(before, snapshot(&fleet, &servers), "none charged");
                }
                outcomes.push((key, outcome));
            }
        }
        prop_assert_eq!(outcomes.len(), applicants.len());
        for (key, outcome) in outcomes {
            let Ok(chain) = outcome else { continue };
            prop_assert_eq!(chain.len(), applicants[key].len());
            prop_assert_eq!(chain.iter().collect::<BTreeSet<_>>().len(), chain.len(), "one replica a server");
            for (server, demand) in chain.iter().zip(&applicants[key]) {
                prop_assert!(!spec(&servers, *server).2, "auxiliary servers are for replacements");
                let sum = expected.entry(*server).or_default();
                *sum = sum.plus(*demand);
            }
        }
        for (i, (promisable, _, _)) in servers.iter().enumerate() {
            let id = ServerId(i as u32 + 1);
            prop_assert!(fleet.allocated(id).fits(*promisable), "{:?} over-allocated", id);
            prop_assert_eq!(fleet.allocated(id), expected.get(&id).copied().unwrap_or_default());
        }
    }

    /// ElectServer finds a server exactly when one has room: the least loaded, in a domain of its own when possible.
    #[test]
    fn election(
        servers in servers(), demand in amounts(500), taken in proptest::collection::vec(1u32..20, 0..4),
        choice in choices(),
    ) {
        let mut fleet = fleet(&servers, choice);
        let members: Vec<ServerId> = taken.into_iter().filter(|id| *id as usize <= servers.len()).map(ServerId).collect();
        let fits = |id: &ServerId| !members.contains(id) && demand.fits(spec(&servers, *id).0);
        let candidates: Vec<ServerId> = (1..=servers.len() as u32).map(ServerId).filter(fits).collect();
        let elected = fleet.elect(demand, &members, Pool::Replacement);
        prop_assert_eq!(elected.is_some(), !candidates.is_empty());
        let Some(elected) = elected else { return Ok(()) };
        prop_assert!(candidates.contains(&elected));
        let general = candidates.iter().filter(|id| !spec(&servers, **id).2).count();
        prop_assert!(general == 0 || !spec(&servers, elected).2, "auxiliary only when nothing else fits");
        let domains: Vec<u8> = members.iter().filter_map(|id| spec(&servers, *id).1).collect();
        let apart = |id: &&ServerId| spec(&servers, **id).1.is_none_or(|d| !domains.contains(&d));
        let own_pool = candidates.iter().filter(|id| spec(&servers, **id).2 == spec(&servers, elected).2);
        if own_pool.filter(apart).count() > 0 {
            prop_assert!(apart(&&elected), "a domain of its own when one fits");
        }
    }

    /// With room for all in every domain, a searched batch has each replica in its own domain, and admits every applicant.
    #[test]
    fn a_search_keeps_domains_apart(
        applicants in proptest::collection::vec(proptest::collection::vec(amounts(300), 3), 1..=12), seed: u64,
    ) {
        // Four servers a domain, each with room for any three replicas.
        let servers: Vec<Spec> = (0..12).map(|i| (Amounts([1_000; 5]), Some(i % 3), false)).collect();
        let mut fleet = fleet(&servers, Choice::Shape);
        let all = applicants.iter().enumerate();
        let mut all: Vec<_> = all.map(|(key, replicas)| Applicant { key, replicas: replicas.clone() }).collect();
        // An applicant without room, so that there is something to search for.
        all.push(Applicant { key: applicants.len(), replicas: vec![Amounts::of_rates([1_001; 3])] });
        for (key, outcome) in place_batch_searching(&mut fleet, all, Search { rounds: 60, seed }) {
            prop_assert_eq!(outcome.is_ok(), key < applicants.len());
            let domains = outcome.map(|chain| chain.iter().map(|id| spec(&servers, *id).1).collect::<BTreeSet<_>>());
            prop_assert!(domains.map_or(3, |domains| domains.len()) == 3, "a domain of its own");
        }
    }

    /// The same batch has the same outcome, and no less is allocated than by Algorithm 1's order alone.
    #[test]
    fn a_search_is_never_worse(
        servers in servers(), applicants in proptest::collection::vec(proptest::collection::vec(amounts(400), 1..4), 1..40),
        choice in choices(),
    ) {
        let all = || {
            let all = applicants.iter().enumerate();
            all.map(|(key, replicas)| Applicant { key, replicas: replicas.clone() }).collect::<Vec<_>>()
        };
        let total = fleet(&servers, choice).free_total();
        let worth = |fleet: &Fleet| {
            let given = (0..5).map(|i| 1.0 - fleet.free_total().0[i] as f64 / total.0[i].max(1) as f64);
            let is_none = |all: u64| all == 0 || all == roomy([0; 3]).0[4];
            let shares: Vec<f64> = given.zip(total.0).map(|(share, all)| if is_none(all) { 0.0 } else { share }).collect();
            shares.iter().copied().fold(0.0, f64::max) + 0.01 * shares.iter().sum::<f64>()
        };
        let (mut plain, mut searched, mut again) =
            (fleet(&servers, choice), fleet(&servers, choice), fleet(&servers, choice));
        place_batch(&mut plain, all());
        let outcome = place_batch_searching(&mut searched, all(), Search { rounds: 30, seed: 3 });
        prop_assert_eq!(outcome, place_batch_searching(&mut again, all(), Search { rounds: 30, seed: 3 }));
        prop_assert!(worth(&searched) >= worth(&plain) - 1e-9);
    }

    /// The SLA that a refusal names does fit, and one append more would not; a quote charges nothing.
    #[test]
    fn refusals_name_an_sla_that_would_fit(
        cores in proptest::collection::vec(1u32..8, 1..6), rate in 1u64..3_000_000, size in 1u32..40_000,
        degree in 1u8..5, persistent: bool,
    ) {
        let profile = Profile::default_profile();
        let mut fleet = Fleet::default();
        for (i, cores) in cores.iter().enumerate() {
            let free = roomy([u64::from(*cores) * 200_000_000, 125_000_000, 20_000_000]);
            fleet.set_server(ServerId(i as u32 + 1), free, None, false, true);
        }
        let sla = sla(degree, size, rate, persistent);
        let free = fleet.free_total();
        let quoted = quote(&mut fleet, &profile, &sla);
        prop_assert_eq!(fleet.free_total(), free, "a quote keeps nothing");
        let admitted = admit(&mut fleet, &profile, &sla);
        prop_assert_eq!(quoted.admissible, admitted.is_ok());
        let Err(refusal) = admitted else { return Ok(()) };
        prop_assert_eq!(quoted.refusal.as_ref(), Some(&refusal));
        prop_assert_eq!(refusal.reason == RefusalReason::TooFewServers, usize::from(degree) > cores.len());
        if let Some(fits) = refusal.largest_sla_that_fits {
            prop_assert!(fits.rate_per_s < rate);
            let more = Sla { rate_per_s: fits.rate_per_s + 1, ..fits.clone() };
            prop_assert!(admit(&mut fleet.clone(), &profile, &more).is_err());
            prop_assert!(admit(&mut fleet, &profile, &fits).is_ok());
        }
    }
}

/// Servers are chosen by the shape of their free resources, and a loaded one is not filled beside an idle one.
#[test]
fn shapes_that_go_together_share_servers() {
    let place = |choice| {
        let mut fleet = Fleet::default().choosing(choice);
        for id in 1..=2 {
            fleet.set_server(ServerId(id), Amounts::of_rates([100; 3]), None, false, true);
        }
        fleet.charge(ServerId(1), Amounts::of_rates([50, 5, 5]));
        fleet.charge(ServerId(2), Amounts::of_rates([5, 45, 5]));
        // The second server has most CPU left, the first most network; the second is the less loaded.
        let network = place_one(&mut fleet, &[Amounts::of_rates([2, 40, 2])]).unwrap()[0];
        let cpu = place_one(&mut fleet, &[Amounts::of_rates([40, 2, 2])]).unwrap()[0];
        (network, cpu)
    };
    assert_eq!(place(Choice::Shape), (ServerId(1), ServerId(2)));
    assert_eq!(place(Choice::LeastLoaded).0, ServerId(2));

    let mut fleet = Fleet::default().choosing(Choice::Shape);
    for id in 1..=2 {
        fleet.set_server(ServerId(id), Amounts::of_rates([100; 3]), None, false, true);
    }
    fleet.charge(ServerId(1), Amounts::of_rates([20, 80, 80]));
    // The first server's rest has the very shape of the demand, and the second is empty.
    assert_eq!(
        place_one(&mut fleet, &[Amounts::of_rates([8, 2, 2])]),
        Ok(vec![ServerId(2)])
    );
}

/// Failed replicas are placed before applicants, in the room kept for them, and on auxiliary servers last.
#[test]
fn recovery_has_room_that_applicants_do_not_get() {
    let mut fleet = Fleet::with_headroom(200);
    let server = |fleet: &mut Fleet, id, auxiliary| {
        fleet.set_server(ServerId(id), Amounts::of_rates([100; 3]), None, auxiliary, true);
    };
    (1..=2).for_each(|id| server(&mut fleet, id, false));
    server(&mut fleet, 3, true);
    assert_eq!(fleet.free_total(), Amounts::of_rates([160; 3]));
    assert!(place_one(&mut fleet, &[Amounts::of_rates([81, 1, 1])]).is_err());
    assert_eq!(
        place_one(
            &mut fleet,
            &[Amounts::of_rates([80, 1, 1]), Amounts::of_rates([80, 1, 1])]
        ),
        Ok(vec![ServerId(1), ServerId(2)])
    );
    assert!(place_one(&mut fleet, &[Amounts::of_rates([1, 0, 0])]).is_err());
    let failed = |key, cpu| Replacement {
        key,
        demand: Amounts::of_rates([cpu, 1, 1]),
        members: vec![ServerId(1)],
    };
    let replaced = replace(
        &mut fleet,
        vec![failed("light", 5), failed("heavy", 15), failed("too heavy", 101)],
    );
    // The heavy one goes first and takes 15 of the 20 left on server 2, then the light one the other 5.
    assert_eq!(
        replaced,
        [
            ("too heavy", None),
            ("heavy", Some(ServerId(2))),
            ("light", Some(ServerId(2)))
        ]
    );
    assert_eq!(
        replace(&mut fleet, vec![failed("more", 5)]),
        [("more", Some(ServerId(3)))],
        "auxiliary"
    );
}

/// These rates, and as much memory and disk as anybody wants.
fn roomy(rates: [u64; 3]) -> Amounts {
    with_room(rates, Room::default())
}

fn with_room(rates: [u64; 3], room: Room) -> Amounts {
    Amounts::of_capacity(Amounts::of_rates(rates).to_resources(), room, 1.0)
}

fn sla(replication_degree: u8, request_size_bytes: u32, rate_per_s: u64, persistent: bool) -> Sla {
    let durability = if persistent {
        Durability::Persistent
    } else {
        Durability::InMemory
    };
    Sla {
        read_rate_per_s: 0,
        durability,
        replication_degree,
        min_replicas: None,
        request_size_bytes,
        rate_per_s,
        region: "local".into(),
        retention_bytes: 1 << 20,
        retention_age_s: None,
        latency: Default::default(),
    }
}

#[test]
fn refusals_name_what_is_scarce() {
    let profile = Profile::default_profile();
    let mut fleet = Fleet::default();
    for id in 1..=3 {
        fleet.set_server(
            ServerId(id),
            roomy([800_000_000, 100_000_000, 4_000_000]),
            None,
            false,
            true,
        );
    }
    let scarce = |fleet: &mut Fleet, sla: Sla| {
        let refusal = admit(fleet, &profile, &sla).unwrap_err();
        println!("{}", refusal.message);
        (refusal.reason, refusal.scarce_resource)
    };
    let insufficient = RefusalReason::InsufficientCapacity;
    assert_eq!(
        scarce(&mut fleet, sla(3, 64, 10_000_000, false)),
        (RefusalReason::BeyondShardPeak, ScarceResource::Shard)
    );
    assert_eq!(
        scarce(&mut fleet, sla(5, 64, 1, false)),
        (RefusalReason::TooFewServers, ScarceResource::Servers)
    );
    assert_eq!(
        scarce(&mut fleet, sla(3, 64, 5_000, true)),
        (insufficient, ScarceResource::StorageIo)
    );
    assert_eq!(
        scarce(&mut fleet, sla(3, 32_768, 2_000, false)),
        (insufficient, ScarceResource::Network)
    );
    admit(&mut fleet, &profile, &sla(3, 64, 300_000, false)).unwrap();
    assert_eq!(
        scarce(&mut fleet, sla(3, 64, 300_000, false)),
        (insufficient, ScarceResource::Cpu)
    );
}

fn room(memory_mib: u64, disk_mib: u64) -> Room {
    Room {
        memory_bytes: Some(memory_mib << 20),
        disk_bytes: Some(disk_mib << 20),
    }
}

/// Retention is promised once: a server is full of it, however idle it is.
#[test]
fn retention_that_fits_nowhere_is_refused_with_one_that_fits() {
    let profile = Profile::default_profile();
    let mut fleet = Fleet::default();
    for id in 1..=3 {
        let all = with_room([8_000_000_000, 1_250_000_000, 400_000_000], room(1_024, 2_048));
        fleet.set_server(ServerId(id), all, None, false, true);
    }
    let retaining = |persistent, retention_bytes| Sla {
        retention_bytes,
        ..sla(3, 4_096, 100, persistent)
    };
    for (persistent, scarce, beyond) in [
        (false, ScarceResource::Memory, 1 << 50),
        (true, ScarceResource::Disk, 1 << 40),
    ] {
        let refusal = admit(&mut fleet, &profile, &retaining(persistent, beyond)).unwrap_err();
        println!("{}", refusal.message);
        assert_eq!(refusal.scarce_resource, scarce);
        assert!(refusal.message.contains("ask for a shorter one"));
        let fits = refusal.largest_sla_that_fits.expect("a shorter retention fits");
        assert_eq!(fits.rate_per_s, 100, "the rate is not at fault");
        let more = retaining(persistent, fits.retention_bytes + (1 << 20));
        assert!(admit(&mut fleet.clone(), &profile, &more).is_err());
        admit(&mut fleet.clone(), &profile, &fits).unwrap();
    }
    // Many heads of small batches are memory of a persistent group.
    let heads = Sla {
        request_size_bytes: 1,
        ..retaining(true, 1 << 30)
    };
    admit(&mut fleet, &profile, &heads).unwrap();
    let refusal = admit(&mut fleet, &profile, &heads).unwrap_err();
    println!("{}", refusal.message);
    assert_eq!(refusal.scarce_resource, ScarceResource::Memory);
}

/// A server that does not say how much it has is not limited, and neither is the fleet that it is part of.
#[test]
fn unknown_room_limits_nothing() {
    let profile = Profile::default_profile();
    let mut fleet = Fleet::default();
    let rates = [8_000_000_000, 1_250_000_000, 400_000_000];
    for id in 1..=3 {
        fleet.set_server(ServerId(id), roomy(rates), None, false, true);
    }
    let endless = Sla {
        retention_bytes: 1 << 50,
        ..sla(3, 64, 100, false)
    };
    for _ in 0..3 {
        admit(&mut fleet, &profile, &endless).unwrap();
    }
    assert_eq!(fleet.free_total().room(), Room::default());
    let demand = profile.demands(&endless).at(0);
    assert!(fleet.allocated(ServerId(1)).space().memory_bytes >= 3 * demand.space().memory_bytes);
    // A server that says so is limited, though it holds more than that.
    fleet.set_server(
        ServerId(1),
        with_room(rates, room(1_024, 1_024)),
        None,
        false,
        true,
    );
    let refusal = admit(&mut fleet, &profile, &endless).unwrap_err();
    assert_eq!(refusal.scarce_resource, ScarceResource::Memory);
}

/// Placement on 10 000 servers takes microseconds a replica, without a scan: a fleet a hundred times smaller is not a
/// hundred times faster. The bound is loose because tests share their machine.
#[test]
fn placement_at_scale() {
    // With two domains the third replica finds none of its own: that must not be a scan, either.
    let per_replica_us = |servers: u32, domains: u32, choice: Choice| {
        let mut fleet = Fleet::default().choosing(choice);
        for id in 1..=servers {
            let domain = Some(format!("zone-{}", id % domains));
            let free = roomy([8_000_000_000, 1_250_000_000, 40_000_000]);
            fleet.set_server(ServerId(id), free, domain, false, true);
        }
        let profile = Profile::default_profile();
        let groups = 10_000;
        let started = Instant::now();
        let mut placed = 0;
        for i in 0..groups {
            let demands = profile.demands(&sla(3, 64 << (i % 9), 100 + i % 977, i % 2 == 0));
            placed += u32::from(place_one(&mut fleet, demands.all()).is_ok());
        }
        assert!(placed > 0);
        started.elapsed().as_secs_f64() * 1e6 / (groups * 3) as f64
    };
    for choice in [Choice::LeastLoaded, Choice::Shape] {
        for domains in [2, 5, 200] {
            let per_replica_us = |servers| per_replica_us(servers, domains, choice);
            let (small, large) = (per_replica_us(100), per_replica_us(10_000));
            println!(
                "{choice:?}, {domains} domains: {small:.2} us a replica on 100 servers, {large:.2} us on 10 000"
            );
            assert!(large < 100.0, "{domains} domains: {large} us a replica");
        }
    }
}

#[test]
fn a_server_with_as_many_groups_as_it_may_host_takes_no_more_and_the_refusal_says_so() {
    let mut fleet = Fleet::default();
    let room = Amounts([u64::MAX / 4; RESOURCES]);
    for id in [1, 2] {
        fleet.set_server(ServerId(id), room, None, false, true);
    }
    let one = Amounts([1; RESOURCES]);
    for _ in 0..GROUPS_PER_SERVER_MAX {
        fleet.charge(ServerId(1), one);
    }
    assert!(!fleet.fits_on(ServerId(1), one));
    assert_eq!((fleet.admission_servers(), fleet.full_servers()), (1, 1));
    let profile = Profile::default_profile();
    let sla = |replication_degree| sla(replication_degree, 64, 1, false);
    let refused = admit(&mut fleet, &profile, &sla(2)).unwrap_err();
    assert_eq!(
        (refused.reason, refused.scarce_resource),
        (RefusalReason::TooManyGroups, ScarceResource::Groups)
    );
    assert_eq!(admit(&mut fleet, &profile, &sla(1)), Ok(vec![ServerId(2)]));
    fleet.release(ServerId(1), one);
    assert!(admit(&mut fleet, &profile, &sla(2)).is_ok());
}
