//! The highest revenue of all vertices: points at which as many bounds are met exactly as there are flows.

use quorate_policies::Problem;

/// The revenue of these parts.
pub fn of(problem: &Problem, parts: &[f64]) -> f64 {
    values(problem)
        .iter()
        .zip(parts)
        .map(|(value, part)| value * part)
        .sum()
}

fn values(problem: &Problem) -> Vec<f64> {
    let of = |flow: &quorate_policies::Flow| {
        let tokens: u64 = flow.demand.iter().map(|(_, tokens)| tokens).sum();
        problem.projects()[flow.project].price as f64 * tokens as f64 / 1e6
    };
    problem.flows().iter().map(of).collect()
}

pub fn highest(problem: &Problem) -> f64 {
    let n = problem.flows().len();
    // Each bound is `row · parts <= limit`.
    let mut bounds: Vec<(Vec<f64>, f64)> = Vec::new();
    for f in 0..n {
        let unit: Vec<f64> = (0..n).map(|other| f64::from(u8::from(other == f))).collect();
        bounds.push((unit.iter().map(|x| -x).collect(), 0.0));
        bounds.push((unit, 1.0));
    }
    for (r, capacity) in problem.capacity().iter().enumerate() {
        let of = |flow: &quorate_policies::Flow| {
            let demand = flow.demand.iter().find(|(other, _)| *other == r);
            demand.map_or(0.0, |(_, tokens)| *tokens as f64 / 1e6)
        };
        bounds.push((problem.flows().iter().map(of).collect(), *capacity as f64 / 1e6));
    }
    let mut highest: f64 = 0.0;
    for chosen in subsets(bounds.len(), n) {
        let rows: Vec<(Vec<f64>, f64)> = chosen.iter().map(|at| bounds[*at].clone()).collect();
        if let Some(parts) = solve(rows) {
            let is_within = |(row, limit): &(Vec<f64>, f64)| {
                row.iter().zip(&parts).map(|(a, x)| a * x).sum::<f64>() <= limit + 1e-9
            };
            if bounds.iter().all(is_within) {
                highest = highest.max(of(problem, &parts));
            }
        }
    }
    highest
}

fn subsets(of: usize, size: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..size {
        let longer = |chosen: Vec<usize>| {
            let from = chosen.last().map_or(0, |last| last + 1);
            (from..of)
                .map(move |next| [chosen.clone(), vec![next]].concat())
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// Gauss's elimination; `None` if the rows are not independent.
fn solve(mut rows: Vec<(Vec<f64>, f64)>) -> Option<Vec<f64>> {
    let n = rows.len();
    for column in 0..n {
        let pivot =
            (column..n).max_by(|a, b| rows[*a].0[column].abs().total_cmp(&rows[*b].0[column].abs()))?;
        if rows[pivot].0[column].abs() < 1e-12 {
            return None;
        }
        rows.swap(column, pivot);
        let (head, limit) = rows[column].clone();
        for (at, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let _ = at;
            let factor = row.0[column] / head[column];
            for (x, h) in row.0.iter_mut().zip(&head) {
                *x -= factor * h;
            }
            row.1 -= factor * limit;
        }
    }
    Some(
        rows.iter()
            .enumerate()
            .map(|(at, (row, limit))| limit / row[at])
            .collect(),
    )
}
