//! Hierarchical DRF by its definition. Each step computes everything anew from the parts that flows have.

use quorate_policies::Problem;

use crate::oracle_drf::used;

const SAME: f64 = 1e-9;

/// Infinitely small tasks.
pub fn share(problem: &Problem) -> Vec<f64> {
    let mut parts = begin(problem);
    loop {
        let blocked = blocked(problem, &parts, SAME);
        let rates = rates(problem, &parts, &blocked);
        let lowest = next(problem, &parts, &blocked);
        if lowest.is_empty() {
            return parts;
        }
        // All the lowest rise, each project by its weight, until something ends.
        let mut most = f64::INFINITY;
        for (f, rate) in rates
            .iter()
            .enumerate()
            .filter(|(f, _)| rises(problem, &lowest, &blocked, *f))
        {
            most = most.min((1.0 - parts[f]) / rate);
        }
        for r in 0..problem.capacity().len() {
            let mut rate = 0.0;
            for (f, flow) in problem.flows().iter().enumerate() {
                if rises(problem, &lowest, &blocked, f) {
                    rate += flow
                        .demand
                        .iter()
                        .filter(|(o, _)| *o == r)
                        .map(|(_, d)| *d as f64)
                        .sum::<f64>()
                        * rates[f];
                }
            }
            if rate > 0.0 {
                let left = (problem.capacity()[r] as f64 - used(problem, &parts, r)).max(0.0);
                most = most.min(left / rate);
            }
        }
        // Or until they are level with the next project.
        let level = root_level(problem, &parts, &blocked, lowest[0]);
        for p in 0..problem.projects().len() {
            let other = root_level(problem, &parts, &blocked, p);
            if !lowest.contains(&p) && other.is_finite() {
                most = most.min(other - level);
            }
        }
        for f in 0..parts.len() {
            if rises(problem, &lowest, &blocked, f) {
                parts[f] = (parts[f] + rates[f] * most).min(1.0);
            }
        }
    }
}

/// The paper's algorithm: the project with the smallest share gets a task of its flow with the smallest share.
pub fn task_by_task(problem: &Problem, tasks: u32) -> Vec<f64> {
    let mut parts = begin(problem);
    let task = |f: usize| 1.0 / f64::from(tasks) / share_of(problem, f).max(1e-3);
    loop {
        let blocked: Vec<bool> = (0..parts.len())
            .map(|f| {
                let fits = |(r, d): &(usize, u64)| {
                    used(problem, &parts, *r) + *d as f64 * task(f) <= problem.capacity()[*r] as f64
                };
                let flow = &problem.flows()[f];
                !share_of(problem, f).is_finite()
                    || parts[f] + task(f) > 1.0
                    || !flow.demand.iter().filter(|(_, d)| *d > 0).all(fits)
            })
            .collect();
        let rising = |p: usize| (0..parts.len()).filter(move |f| problem.flows()[*f].project == p);
        let levels = (0..problem.projects().len()).map(|p| (p, root_level(problem, &parts, &blocked, p)));
        let lowest = levels
            .filter(|(_, level)| level.is_finite())
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((p, _)) = lowest else {
            return parts;
        };
        let flow = rising(p)
            .filter(|f| !blocked[*f])
            .min_by(|a, b| level(problem, &parts, *a).total_cmp(&level(problem, &parts, *b)))
            .expect("the project is not blocked");
        parts[flow] += task(flow);
    }
}

fn begin(problem: &Problem) -> Vec<f64> {
    (0..problem.flows().len())
        .map(|f| if share_of(problem, f) == 0.0 { 1.0 } else { 0.0 })
        .collect()
}

/// The dominant share of the whole demand.
fn share_of(problem: &Problem, f: usize) -> f64 {
    let wanted = problem.flows()[f].demand.iter().filter(|(_, d)| *d > 0);
    wanted
        .map(|(r, d)| *d as f64 / problem.capacity()[*r] as f64)
        .fold(0.0, f64::max)
}

fn blocked(problem: &Problem, parts: &[f64], same: f64) -> Vec<bool> {
    let is_full = |(r, d): &(usize, u64)| {
        *d > 0 && used(problem, parts, *r) >= problem.capacity()[*r] as f64 * (1.0 - same)
    };
    let flows = problem.flows().iter().zip(parts);
    flows
        .map(|(flow, part)| *part >= 1.0 - same || flow.demand.iter().any(is_full))
        .collect()
}

/// A flow's dominant share by its weight.
fn level(problem: &Problem, parts: &[f64], f: usize) -> f64 {
    parts[f] * share_of(problem, f) / problem.flows()[f].weight
}

/// Uses of each resource by the flows that are not blocked, at their common level.
fn rescaled(problem: &Problem, blocked: &[bool], p: usize) -> Vec<f64> {
    let mut sum = vec![0.0; problem.capacity().len()];
    for (f, flow) in problem.flows().iter().enumerate() {
        if flow.project == p && !blocked[f] {
            for (r, d) in flow.demand.iter().filter(|(_, d)| *d > 0) {
                sum[*r] += flow.weight * *d as f64 / problem.capacity()[*r] as f64 / share_of(problem, f);
            }
        }
    }
    sum
}

/// A project's dominant share by its weight; infinite if it is blocked.
fn root_level(problem: &Problem, parts: &[f64], blocked: &[bool], p: usize) -> f64 {
    let of_project = |f: &usize| problem.flows()[*f].project == p && !blocked[*f];
    let lowest = (0..parts.len())
        .filter(of_project)
        .map(|f| level(problem, parts, f));
    let lowest = lowest.fold(f64::INFINITY, f64::min);
    let dominant = rescaled(problem, blocked, p).into_iter().fold(0.0, f64::max);
    if lowest.is_finite() {
        lowest * dominant / problem.projects()[p].weight
    } else {
        f64::INFINITY
    }
}

/// Projects whose level is the lowest.
fn next(problem: &Problem, parts: &[f64], blocked: &[bool]) -> Vec<usize> {
    let levels: Vec<f64> = (0..problem.projects().len())
        .map(|p| root_level(problem, parts, blocked, p))
        .collect();
    let lowest = levels.iter().copied().fold(f64::INFINITY, f64::min);
    (0..levels.len())
        .filter(|p| levels[*p].is_finite() && levels[*p] <= lowest + SAME)
        .collect()
}

fn rises(problem: &Problem, lowest: &[usize], blocked: &[bool], f: usize) -> bool {
    lowest.contains(&problem.flows()[f].project) && !blocked[f]
}

/// How fast each flow's part rises with its project's level.
fn rates(problem: &Problem, parts: &[f64], blocked: &[bool]) -> Vec<f64> {
    (0..parts.len())
        .map(|f| {
            let flow = &problem.flows()[f];
            let dominant = rescaled(problem, blocked, flow.project)
                .into_iter()
                .fold(0.0, f64::max);
            let weight = problem.projects()[flow.project].weight;
            if blocked[f] {
                0.0
            } else {
                weight / dominant * flow.weight / share_of(problem, f)
            }
        })
        .collect()
}
