//! Head-, All- and Level-DRF: feasible whatever messages are lost or late; Level-DRF gets to C-DRF.

mod instances;

use instances::{Sizes, counted, problems};
use proptest::prelude::*;
use quorate_burst::all::AllDrf;
use quorate_burst::head::HeadDrf;
use quorate_burst::iterations::{Fate, IntervalOutcome, IterationMessage, Local, Participant, locals, run};
use quorate_burst::level::{AGGREGATE_ITERATIONS, LevelDrf};
use quorate_burst::{ReplicaCost, SharingProblem, SharingTenant, exact};
use quorate_types::limits::SHARE_AGGREGATE_LEVELS_MAX;

const SIZES: Sizes = Sizes {
    servers: 6,
    tenants: 12,
    capacity: 4_000,
    cost: 40,
};

fn agree(
    problem: &SharingProblem,
    server: impl Fn(Local) -> Box<dyn Participant>,
    fate: impl FnMut(&IterationMessage) -> Fate,
) -> IntervalOutcome {
    let mut servers: Vec<Box<dyn Participant>> = locals(problem, 7).into_iter().map(server).collect();
    run(&mut servers, problem.tenants().len(), fate, |_, step| step())
}

fn head(local: Local) -> Box<dyn Participant> {
    Box::new(HeadDrf::new(local, counted))
}

fn all(local: Local) -> Box<dyn Participant> {
    Box::new(AllDrf::new(local, counted))
}

fn level(local: Local) -> Box<dyn Participant> {
    Box::new(LevelDrf::new(local, AGGREGATE_ITERATIONS))
}

/// Instances in which no server hosts more tenants than it sends levels of.
fn sent_one_by_one() -> impl Strategy<Value = SharingProblem> {
    let sizes = Sizes {
        capacity: 4_000_000,
        tenants: 8,
        ..SIZES
    };
    problems(sizes).prop_filter("more tenants than levels", |problem| {
        let hosts = |server| {
            move |tenant: &&SharingTenant| tenant.replicas.iter().any(|replica| replica.server == server)
        };
        (0..SIZES.servers).all(|server| {
            problem.tenants().iter().filter(hosts(server)).count() <= SHARE_AGGREGATE_LEVELS_MAX
        })
    })
}

const ALL: [fn(Local) -> Box<dyn Participant>; 3] = [head, all, level];

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        5 => Just(Fate::Delivered), 2 => Just(Fate::Lost), 2 => (1u32..4).prop_map(Fate::Late)
    ];
    proptest::collection::vec(fate, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Grants fit every server, and no tenant gets more than it wants (Cons4), whichever messages are lost or late.
    #[test]
    fn grants_are_feasible(problem in problems(SIZES), fates in fates()) {
        for server in ALL {
            for lossless in [true, false] {
                let mut turn = fates.iter().cycle();
                let fate = |_: &IterationMessage| if lossless { Fate::Delivered } else { *turn.next().unwrap() };
                let outcome = agree(&problem, server, fate);
                prop_assert!(problem.left(&outcome.grants).is_some(), "over-allocated");
                for (grant, tenant) in outcome.grants.iter().zip(problem.tenants()) {
                    prop_assert!(*grant <= tenant.extra_per_s);
                }
            }
        }
    }

    /// With enough iterations Level-DRF is C-DRF, up to requests that are rounded down at several servers. It holds if
    /// no server hosts more tenants than it sends levels of: then each is an aggregate of its own.
    #[test]
    fn level_converges_to_exact(problem in sent_one_by_one()) {
        let outcome = agree(&problem, |local| Box::new(LevelDrf::new(local, 200)), |_| Fate::Delivered);
        for (t, (ours, exact)) in outcome.grants.iter().zip(exact(&problem)).enumerate() {
            prop_assert!(ours.abs_diff(exact) <= 2, "tenant {}: {} and {}", t, ours, exact);
        }
    }

    /// An aggregate of several tenants rises to their mean level, which comes close: in 26 000 instances fourteen
    /// tenants got more than three hundredths more or less, 17 at most.
    #[test]
    fn level_comes_close_to_exact(problem in problems(Sizes { capacity: 4_000_000, ..SIZES })) {
        let outcome = agree(&problem, |local| Box::new(LevelDrf::new(local, 200)), |_| Fate::Delivered);
        for (t, (ours, exact)) in outcome.grants.iter().zip(exact(&problem)).enumerate() {
            prop_assert!(ours.abs_diff(exact) <= 2 + exact / 4, "tenant {}: {} and {}", t, ours, exact);
        }
    }

    /// Without messages only tenants of one server get anything.
    #[test]
    fn silence_is_a_no(problem in problems(SIZES)) {
        for server in ALL {
            let outcome = agree(&problem, server, |_| Fate::Lost);
            for (grant, tenant) in outcome.grants.iter().zip(problem.tenants()) {
                prop_assert!(*grant == 0 || tenant.replicas.len() == 1);
            }
        }
    }
}

/// Two full servers in a row: t0 is on both, t1 on the first, t2 on the second, which is half as large. The second
/// server limits t0, so the rest of the first belongs to t1. All-DRF's minimum leaves it unused; Level-DRF finds it.
#[test]
fn what_one_server_refuses_is_used_on_another() {
    let tenant = |servers: &[usize]| SharingTenant {
        replicas: servers
            .iter()
            .map(|server| ReplicaCost {
                server: *server,
                cost: [1, 0, 0],
            })
            .collect(),
        extra_per_s: u64::MAX,
    };
    let tenants = vec![tenant(&[0, 1]), tenant(&[0]), tenant(&[1])];
    let problem = SharingProblem::new(vec![[10_000, 0, 0], [5_000, 0, 0]], tenants).unwrap();
    let grants =
        |server: fn(Local) -> Box<dyn Participant>| agree(&problem, server, |_| Fate::Delivered).grants;
    // Shares: of t0 1/5000 a request, of t1 1/10000, of t2 1/5000.
    assert_eq!(counted(&problem), [2_500, 7_500, 2_500]);
    assert_eq!(exact(&problem), [2_500, 7_500, 2_500]);
    assert_eq!(grants(level), [2_500, 7_500, 2_500]);
    assert_eq!(grants(all), [2_500, 5_000, 2_500]);
    // Heads do not see other heads' proposals: that of t2 takes all of the second server, and is preferred there.
    assert_eq!(grants(head)[0], 0);
}

/// A new interval takes no messages of an old one.
#[test]
fn messages_of_other_intervals_are_dropped() {
    let tenants = vec![SharingTenant {
        replicas: vec![
            ReplicaCost {
                server: 0,
                cost: [1, 0, 0],
            },
            ReplicaCost {
                server: 1,
                cost: [1, 0, 0],
            },
        ],
        extra_per_s: 5,
    }];
    let problem = SharingProblem::new(vec![[10, 0, 0]; 2], tenants).unwrap();
    for server in ALL {
        let mut old: Vec<Box<dyn Participant>> = locals(&problem, 1).into_iter().map(server).collect();
        let mut stale = Vec::new();
        for iteration in 0..old[0].iterations() {
            let sent: Vec<IterationMessage> = old
                .iter_mut()
                .flat_map(|server| server.step(iteration, &stale))
                .collect();
            stale.extend(sent);
        }
        let mut new: Vec<Box<dyn Participant>> = locals(&problem, 2).into_iter().map(server).collect();
        for iteration in 0..new[0].iterations() {
            for server in &mut new {
                server.step(iteration, &stale);
            }
        }
        assert!(
            new.iter()
                .all(|server| server.grants().iter().all(|(_, grant)| *grant == 0))
        );
    }
}
