//! Policies against oracles that share no code with them, on small random problems. `POLICY_INSTANCES=10000` tries as many.

mod instances;
mod oracle_drf;
mod oracle_hierarchical;
mod oracle_revenue;

use instances::{Random, problem};
use quorate_policies::{Allocation, Policy, Problem};

fn instances() -> u64 {
    let asked = std::env::var("POLICY_INSTANCES").ok();
    asked.map_or(2_000, |text| text.parse().expect("a number"))
}

/// Parts of demands that differ by less are equal: sums of reals in another order.
const CLOSE: f64 = 1e-7;

fn assert_close(policy: Policy, problem: &Problem, expected: &[f64], seed: u64) {
    let found = policy.share(problem);
    assert!(found.is_feasible(problem), "{policy:?} seed {seed}: {problem:?}");
    for (f, (found, expected)) in found.parts.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= CLOSE,
            "{policy:?} seed {seed}, flow {f}: {found}, and the oracle says {expected}\n{problem:#?}"
        );
    }
}

#[test]
fn drf_is_that_of_the_oracle() {
    for seed in 0..instances() {
        let problem = problem(&mut Random::new(seed), 6, 4, 3);
        assert_close(Policy::Drf, &problem, &oracle_drf::share(&problem), seed);
    }
}

#[test]
fn hierarchical_drf_is_that_of_the_oracle() {
    for seed in 0..instances() {
        let problem = problem(&mut Random::new(seed), 7, 4, 3);
        let expected = oracle_hierarchical::share(&problem);
        assert_close(Policy::HierarchicalDrf, &problem, &expected, seed);
    }
}

/// The paper gives task after task: with small tasks it ends near the same allocation.
#[test]
fn hierarchical_drf_is_the_limit_of_small_tasks() {
    for seed in 0..instances() / 100 {
        let problem = problem(&mut Random::new(seed), 6, 3, 3);
        let expected = oracle_hierarchical::task_by_task(&problem, 1_000);
        let found = Policy::HierarchicalDrf.share(&problem).parts;
        for (f, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let share = problem.dominant_share(f).min(1e6);
            assert!(
                (found - expected).abs() * share <= 0.01,
                "seed {seed}, flow {f}: {found}, by tasks {expected}\n{problem:#?}"
            );
        }
    }
}

#[test]
fn one_project_is_shared_as_by_drf() {
    for seed in 0..instances() {
        let problem = problem(&mut Random::new(seed), 6, 4, 1);
        let expected = Policy::Drf.share(&problem).parts;
        assert_close(Policy::HierarchicalDrf, &problem, &expected, seed);
    }
}

#[test]
fn revenue_is_the_highest_of_all_vertices() {
    for seed in 0..instances() {
        let problem = problem(&mut Random::new(seed), 3, 3, 3);
        let highest = oracle_revenue::highest(&problem);
        let found = Policy::MaximumRevenue.share(&problem);
        assert!(found.is_feasible(&problem), "seed {seed}");
        let earned = oracle_revenue::of(&problem, &found.parts);
        assert!(
            (earned - highest).abs() <= 1e-6 * highest.max(1.0),
            "seed {seed}: {earned} of {highest}\n{problem:#?}"
        );
    }
}

#[test]
fn first_fit_leaves_nothing_that_the_next_flow_could_use() {
    for seed in 0..instances() {
        let problem = problem(&mut Random::new(seed), 6, 4, 3);
        let parts = Policy::FirstFit.share(&problem).parts;
        let mut left: Vec<f64> = problem.capacity().iter().map(|c| *c as f64).collect();
        for (flow, part) in problem.flows().iter().zip(&parts) {
            let fits = flow
                .demand
                .iter()
                .filter(|(_, d)| *d > 0)
                .map(|(r, d)| left[*r] / *d as f64);
            assert!((part - fits.fold(1.0, f64::min)).abs() <= CLOSE, "seed {seed}");
            flow.demand.iter().for_each(|(r, d)| left[*r] -= part * *d as f64);
        }
    }
}

#[test]
fn policies_are_found_by_their_names() {
    for policy in Policy::ALL {
        assert_eq!(Policy::named(policy.name()), Some(policy));
    }
    assert_eq!(Policy::named("fair"), None);
}

#[test]
fn nobody_wants_anything() {
    let problem = Problem::new(vec![10], Vec::new(), Vec::new()).unwrap();
    for policy in Policy::ALL {
        assert_eq!(policy.share(&problem), Allocation { parts: Vec::new() });
    }
}
