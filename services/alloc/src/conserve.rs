//! `quorate-alloc conserve`.

use std::time::Duration;

use quorate_controller::all::AllDrf;
use quorate_controller::head::HeadDrf;
use quorate_controller::level::LevelDrf;
use quorate_controller::policy::Reservation;
use quorate_controller::rounds::{Fate, Local, Outcome, Server, locals, run};
use quorate_controller::{Problem, Tenant, Vector, exact, request_by_request};

use crate::answer::{Conservation, Granted, Left};
use crate::read::{Checked, Hosted, natural};
use crate::time::Stopwatch;
use crate::{Algorithm, Policy};

pub struct Options {
    pub algorithm: Algorithm,
    pub policy: Policy,
    pub crowd_rounds: u32,
    pub repeat: u32,
}

/// One run: what came out, and the times of all servers and of the slowest.
struct Run {
    outcome: Outcome,
    all: Duration,
    slowest: Duration,
}

pub fn conserve(checked: &Checked, options: &Options) -> Conservation {
    let problem = problem(checked, options.policy);
    let mut runs: Vec<Run> = (0..options.repeat).map(|_| once(&problem, options)).collect();
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
    Conservation {
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
        rounds: outcome.rounds,
        elapsed_us: all.as_secs_f64() * 1e6,
        slowest_server_us: slowest.as_secs_f64() * 1e6,
    }
}

fn problem(checked: &Checked, policy: Policy) -> Problem {
    let policy = match policy {
        Policy::Unallocated => quorate_controller::Policy::Unallocated,
        Policy::Idle => quorate_controller::Policy::Idle,
    };
    let free = policy.free(&checked.capacity(), checked.tenants.iter().map(reservation));
    let tenant = |hosted: &Hosted| Tenant {
        places: hosted.places.clone(),
        extra_per_s: hosted.extra_per_s,
    };
    Problem::new(free, checked.tenants.iter().map(tenant).collect()).expect("the instance was checked")
}

fn reservation(hosted: &Hosted) -> Reservation<'_> {
    Reservation {
        places: &hosted.places,
        reserved: &hosted.reserved,
        reserved_per_s: hosted.reserved_per_s,
        used_per_s: hosted.used_per_s,
    }
}

fn once(problem: &Problem, options: &Options) -> Run {
    match options.algorithm {
        Algorithm::Cdrf => central(problem, request_by_request),
        Algorithm::CdrfExact => central(problem, exact),
        Algorithm::Head => distributed(problem, |local| Box::new(HeadDrf::new(local, request_by_request))),
        Algorithm::All => distributed(problem, |local| Box::new(AllDrf::new(local, request_by_request))),
        Algorithm::Level => distributed(problem, |local| {
            Box::new(LevelDrf::new(local, options.crowd_rounds))
        }),
    }
}

fn central(problem: &Problem, algorithm: impl Fn(&Problem) -> Vec<u64>) -> Run {
    let began = Stopwatch::start();
    let grants = algorithm(problem);
    let all = began.elapsed();
    let outcome = Outcome {
        grants,
        messages: 2 * problem.free().len() as u64,
        rounds: 2,
    };
    Run {
        outcome,
        all,
        slowest: all,
    }
}

fn distributed(problem: &Problem, server: impl Fn(Local) -> Box<dyn Server>) -> Run {
    let mut servers: Vec<Box<dyn Server>> = locals(problem, 0).into_iter().map(server).collect();
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

fn granted_tenants(checked: &Checked, problem: &Problem, grants: &[u64]) -> Vec<Granted> {
    let tenants = checked.tenants.iter().zip(grants).enumerate();
    tenants
        .map(|(t, (tenant, utility))| Granted {
            id: tenant.id.clone(),
            utility_per_s: *utility,
            dominant_share: problem.dominant_share(t, *utility),
        })
        .collect()
}

/// Of what is *idle*, reservations that are not used were given away too: who has no room to come back?
fn without_room(checked: &Checked, policy: Policy, left: &[Vector]) -> u64 {
    let has_room = |tenant: &Hosted| {
        let reservation = reservation(tenant);
        let mut places = tenant.places.iter().zip(&tenant.reserved);
        places.all(|(place, reserved)| {
            let kept = reservation.kept(place, reserved);
            (0..3).all(|i| reserved[i] - kept[i] <= left[place.server][i])
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
