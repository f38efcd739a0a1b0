//! `quorate-planner conserve`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorate_burst::all::AllDrf;
use quorate_burst::fleet::{FleetDrf, FleetShares, SharingGroup};
use quorate_burst::head::HeadDrf;
use quorate_burst::iterations::{Fate, IntervalOutcome, Local, Participant, locals, run};
use quorate_burst::level::LevelDrf;
use quorate_burst::policy::Reservation;
use quorate_burst::{SharingProblem, SharingTenant, Vector, exact, request_by_request};
use quorate_types::control::{SharingReport, SharingWant};
use quorate_types::{GroupId, ProjectId, ServerId};
use uuid::Uuid;

use crate::answer::{ConservationAnswer, GrantedTenant, Left};
use crate::checked::{Checked, ReservedTenant};
use crate::flags::{Algorithm, Policy};
use crate::time::Stopwatch;
use crate::units::natural;
use crate::unusable::Unusable;

pub struct Options {
    pub algorithm: Algorithm,
    pub policy: Policy,
    pub aggregate_iterations: u32,
    /// Of All-DRF, each over what the one before left.
    pub rounds: u32,
    pub repeat: u32,
    /// Bound on the requests that `cdrf`, `head` and `all` grant one by one, at each server that computes.
    pub requests_max: u64,
}

/// One run: its outcome, and the times of all servers and of the slowest.
struct Run {
    outcome: IntervalOutcome,
    all: Duration,
    slowest: Duration,
}

pub fn conserve(checked: &Checked, options: &Options) -> Result<ConservationAnswer, Unusable> {
    let problem = problem(checked, options.policy);
    let runs = (0..options.repeat).map(|_| once(&problem, options).ok_or_else(|| too_many(options)));
    let mut runs = runs.collect::<Result<Vec<Run>, Unusable>>()?;
    runs.sort_by_key(|run| run.slowest);
    let Run {
        outcome,
        all,
        slowest,
    } = runs.swap_remove(runs.len() / 2);
    let left = problem
        .left(&outcome.grants)
        .expect("no algorithm over-allocates");
    let before = sum(problem.free());
    let after = sum(&left);
    let granted = |i: usize| {
        if before[i] > 0.0 {
            (before[i] - after[i]) / before[i]
        } else {
            0.0
        }
    };
    Ok(ConservationAnswer {
        algorithm: name(options.algorithm),
        policy: name(options.policy),
        tenants: granted_tenants(checked, &problem, &outcome.grants),
        servers: checked
            .servers
            .iter()
            .zip(&left)
            .map(|(server, left)| Left {
                id: server.id.clone(),
                left: natural(left),
            })
            .collect(),
        free_before: before,
        granted_ratio: std::array::from_fn(granted),
        tenants_without_room_to_return: without_room(checked, options.policy, &left),
        messages: outcome.messages,
        rounds: outcome.iterations,
        elapsed_us: all.as_secs_f64() * 1e6,
        slowest_server_us: slowest.as_secs_f64() * 1e6,
    })
}

fn too_many(options: &Options) -> Unusable {
    let problem = format!(
        "more than {} requests fit, and {} grants one request at a time: use --algorithm cdrf-exact or level, \
         whose time does not depend on that; or lower the tenants' extra, raise what a request costs, or raise \
         --requests-max",
        options.requests_max,
        name(options.algorithm),
    );
    Unusable::new("tenants", problem)
}

fn problem(checked: &Checked, policy: Policy) -> SharingProblem {
    let policy = match policy {
        Policy::Unallocated => quorate_burst::Policy::Unallocated,
        Policy::Idle => quorate_burst::Policy::Idle,
    };
    let free = policy.free(&checked.capacity(), checked.tenants.iter().map(reservation));
    let tenant = |hosted: &ReservedTenant| SharingTenant {
        replicas: hosted.replicas.clone(),
        extra_per_s: hosted.extra_per_s,
    };
    SharingProblem::new(free, checked.tenants.iter().map(tenant).collect()).expect("the instance was checked")
}

fn reservation(hosted: &ReservedTenant) -> Reservation<'_> {
    Reservation {
        replicas: &hosted.replicas,
        reserved: &hosted.reserved,
        reserved_per_s: hosted.reserved_per_s,
        used_per_s: hosted.used_per_s,
    }
}

/// None if an algorithm that counts requests would grant more than it may.
fn once(problem: &SharingProblem, options: &Options) -> Option<Run> {
    let has_too_many = Arc::new(AtomicBool::new(false));
    let counted = || counting(options.requests_max, Arc::clone(&has_too_many));
    let run = match options.algorithm {
        Algorithm::Cdrf => central(problem, counted()),
        Algorithm::CdrfExact => central(problem, exact),
        Algorithm::Head => distributed(problem, |local| Box::new(HeadDrf::new(local, counted()))),
        Algorithm::All => in_rounds(problem, options.rounds, |problem| {
            distributed(problem, |local| Box::new(AllDrf::new(local, counted())))
        }),
        Algorithm::Level => distributed(problem, |local| {
            Box::new(LevelDrf::new(local, options.aggregate_iterations))
        }),
        Algorithm::Fleet => by_coordinator(problem),
    };
    (!has_too_many.load(Ordering::Relaxed)).then_some(run)
}

/// Algorithm 2 within the bound. Once a server is beyond it no other computes, since the run is void.
fn counting(requests_max: u64, has_too_many: Arc<AtomicBool>) -> impl Fn(&SharingProblem) -> Vec<u64> + Send {
    move |problem| {
        let nothing = || vec![0; problem.tenants().len()];
        if has_too_many.load(Ordering::Relaxed) {
            return nothing();
        }
        request_by_request(problem, requests_max).unwrap_or_else(|_| {
            has_too_many.store(true, Ordering::Relaxed);
            nothing()
        })
    }
}

fn central(problem: &SharingProblem, algorithm: impl Fn(&SharingProblem) -> Vec<u64>) -> Run {
    let began = Stopwatch::start();
    let grants = algorithm(problem);
    let all = began.elapsed();
    let outcome = IntervalOutcome {
        grants,
        messages: 2 * problem.free().len() as u64,
        iterations: 2,
    };
    Run {
        outcome,
        all,
        slowest: all,
    }
}

fn in_rounds(problem: &SharingProblem, rounds: u32, once: impl Fn(&SharingProblem) -> Run) -> Run {
    let mut all = once(problem);
    for _ in 1..rounds {
        let left = problem
            .left(&all.outcome.grants)
            .expect("no algorithm over-allocates");
        let unmet = |(tenant, granted): (&SharingTenant, &u64)| SharingTenant {
            replicas: tenant.replicas.clone(),
            extra_per_s: tenant.extra_per_s - granted,
        };
        let tenants = problem
            .tenants()
            .iter()
            .zip(&all.outcome.grants)
            .map(unmet)
            .collect();
        let more = once(&SharingProblem::new(left, tenants).expect("it was sound before"));
        for (granted, more) in all.outcome.grants.iter_mut().zip(more.outcome.grants) {
            *granted += more;
        }
        all.outcome.messages += more.outcome.messages;
        all.outcome.iterations += more.outcome.iterations;
        all.all += more.all;
        all.slowest += more.slowest;
    }
    all
}

/// Messages between a server and the coordinator in an interval: its report, the beginning of the interval, its rates.
const WITH_COORDINATOR: u64 = 3;

/// The slowest is the coordinator, or a server that goes by its rates.
fn by_coordinator(problem: &SharingProblem) -> Run {
    let mut shares = FleetShares::default();
    let keys = |t: usize| (GroupId(Uuid::from_u128(t as u128)), 1);
    for (server, free) in problem.free().iter().enumerate() {
        let own = problem.tenants().iter().enumerate();
        let own = own.filter(|(_, tenant)| tenant.replicas[0].server == server);
        let want = |(t, tenant): (usize, &SharingTenant)| SharingWant {
            group_id: keys(t).0,
            epoch: keys(t).1,
            extra_per_s: tenant.extra_per_s,
            using: None,
        };
        let report = SharingReport {
            interval: 1,
            interval_us: 1_000_000,
            free: *free,
            wants: own.map(want).collect(),
        };
        shares.report(0, ServerId(server as u32), report);
    }
    for (t, tenant) in problem.tenants().iter().enumerate() {
        let group = SharingGroup {
            project: ProjectId(Uuid::nil()),
            replicas: tenant.replicas.clone(),
        };
        shares.know(keys(t), Some(group));
    }
    let began = Stopwatch::start();
    let round = shares.decide(0);
    let computed = began.elapsed();
    let told = |local: Local| {
        let rates = round.rates[&local.server].iter();
        let told = rates
            .map(|rate| (rate.group_id.0.as_u128() as usize, rate.per_s))
            .collect();
        Box::new(FleetDrf::new(local, told)) as Box<dyn Participant>
    };
    let mut run = distributed(problem, told);
    run.outcome.messages += WITH_COORDINATOR * problem.free().len() as u64;
    run.all += computed;
    run.slowest = run.slowest.max(computed);
    run
}

fn distributed(problem: &SharingProblem, server: impl Fn(Local) -> Box<dyn Participant>) -> Run {
    let mut servers: Vec<Box<dyn Participant>> = locals(problem, 0).into_iter().map(server).collect();
    let mut times = vec![Duration::ZERO; servers.len()];
    let outcome = run(
        &mut servers,
        problem.tenants().len(),
        |_| Fate::Delivered,
        |s, step| {
            let began = Stopwatch::start();
            step();
            times[s] += began.elapsed();
        },
    );
    Run {
        outcome,
        all: times.iter().sum(),
        slowest: times.iter().max().copied().unwrap_or_default(),
    }
}

fn granted_tenants(checked: &Checked, problem: &SharingProblem, grants: &[u64]) -> Vec<GrantedTenant> {
    let tenants = checked.tenants.iter().zip(grants).enumerate();
    tenants
        .map(|(t, (tenant, utility))| GrantedTenant {
            id: tenant.id.clone(),
            utility_per_s: *utility,
            dominant_share: problem.dominant_share(t, *utility),
        })
        .collect()
}

/// With `idle`, unused reservations were given away too: counts the tenants that have no room to come back.
fn without_room(checked: &Checked, policy: Policy, left: &[Vector]) -> u64 {
    let has_room = |tenant: &ReservedTenant| {
        let reservation = reservation(tenant);
        let mut replicas = tenant.replicas.iter().zip(&tenant.reserved);
        replicas.all(|(replica, reserved)| {
            let kept = reservation.kept(replica, reserved);
            (0..3).all(|i| reserved[i] - kept[i] <= left[replica.server][i])
        })
    };
    match policy {
        Policy::Unallocated => 0,
        Policy::Idle => checked.tenants.iter().filter(|tenant| !has_room(tenant)).count() as u64,
    }
}

fn sum(vectors: &[Vector]) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for vector in vectors {
        let vector = natural(vector);
        for i in 0..3 {
            sum[i] += vector[i];
        }
    }
    sum
}

fn name(value: impl clap::ValueEnum) -> String {
    let value = value.to_possible_value().expect("nothing is skipped");
    value.get_name().to_string()
}
