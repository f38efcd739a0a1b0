//! Weighted DRF by its definition: raise the common level by bisection until something stops, again and again.

use quorate_policies::Problem;

pub fn share(problem: &Problem) -> Vec<f64> {
    let flows = problem.flows();
    let mut stopped: Vec<Option<f64>> = vec![None; flows.len()];
    for (f, flow) in flows.iter().enumerate() {
        let wants = |(r, d): &&(usize, u64)| *d > 0 && problem.capacity()[*r] == 0;
        if flow.demand.iter().any(|one| wants(&one)) {
            stopped[f] = Some(0.0);
        } else if flow.demand.iter().all(|(_, d)| *d == 0) {
            stopped[f] = Some(1.0);
        }
    }
    while stopped.iter().any(Option::is_none) {
        // The highest level at which nothing is over-used, and no demand is exceeded.
        let is_possible = |level: f64| {
            let parts = parts_at(problem, &stopped, level);
            let is_met = parts.iter().all(|part| *part <= 1.0);
            is_met
                && (0..problem.capacity().len())
                    .all(|r| used(problem, &parts, r) <= problem.capacity()[r] as f64)
        };
        let (mut low, mut high) = (0.0, 1.0);
        while is_possible(high) {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if is_possible(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        let parts = parts_at(problem, &stopped, low);
        let mut has_stopped = false;
        for (f, flow) in flows.iter().enumerate() {
            let is_full = |(r, d): &(usize, u64)| {
                let capacity = problem.capacity()[*r] as f64;
                *d > 0 && used(problem, &parts, *r) >= capacity * (1.0 - 1e-9)
            };
            if stopped[f].is_none() && (parts[f] >= 1.0 - 1e-9 || flow.demand.iter().any(is_full)) {
                stopped[f] = Some(parts[f]);
                has_stopped = true;
            }
        }
        assert!(has_stopped, "a level is the highest for a reason");
    }
    stopped
        .into_iter()
        .map(|part| part.expect("all have stopped"))
        .collect()
}

fn parts_at(problem: &Problem, stopped: &[Option<f64>], level: f64) -> Vec<f64> {
    let flows = problem.flows().iter().enumerate();
    flows
        .map(|(f, flow)| {
            let demand = flow.demand.iter().filter(|(_, d)| *d > 0);
            let share = demand
                .map(|(r, d)| *d as f64 / problem.capacity()[*r] as f64)
                .fold(0.0, f64::max);
            let weight = flow.weight * problem.projects()[flow.project].weight;
            stopped[f].unwrap_or(level * weight / share)
        })
        .collect()
}

pub fn used(problem: &Problem, parts: &[f64], r: usize) -> f64 {
    let of = |(flow, part): (&quorate_policies::Flow, &f64)| {
        let demand = flow.demand.iter().find(|(other, _)| *other == r);
        demand.map_or(0.0, |(_, d)| *d as f64 * part)
    };
    problem.flows().iter().zip(parts).map(of).sum()
}
