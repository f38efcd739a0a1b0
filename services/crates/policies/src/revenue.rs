//! The highest revenue: a linear program, solved by a library.
//!
//! Maximise the sum of price × tokens over all flows, where each gets a part of its demand and no resource gives more than
//! it has. Among allocations of the same revenue, any may come.

use std::cmp::Reverse;

use microlp::{ComparisonOp, OptimizationDirection};

use crate::first_fit;
use crate::problem::{Allocation, Flow, Problem};

pub fn share(problem: &Problem) -> Allocation {
    let mut program = microlp::Problem::new(OptimizationDirection::Maximize);
    // Parts of a resource, so that all numbers are of one magnitude.
    let part_of = |(resource, tokens): &(usize, u64)| {
        let capacity = problem.capacity()[*resource];
        (*resource, *tokens as f64 / capacity.max(1) as f64)
    };
    let most = problem
        .flows()
        .iter()
        .map(|flow| revenue_of(problem, flow))
        .fold(1.0, f64::max);
    let mut users = vec![Vec::new(); problem.capacity().len()];
    let variables: Vec<_> = problem
        .flows()
        .iter()
        .map(|flow| {
            let has_none =
                |(resource, tokens): &(usize, u64)| *tokens > 0 && problem.capacity()[*resource] == 0;
            let part_max = if flow.demand.iter().any(has_none) {
                0.0
            } else {
                1.0
            };
            let variable = program.add_var(revenue_of(problem, flow) / most, (0.0, part_max));
            for (resource, part) in flow.demand.iter().map(part_of).filter(|(_, part)| *part > 0.0) {
                users[resource].push((variable, part));
            }
            variable
        })
        .collect();
    for users in users.iter().filter(|users| !users.is_empty()) {
        program.add_constraint(users.as_slice(), ComparisonOp::Le, 1.0);
    }
    let solved = program.solve().ok();
    let Some(solution) = solved.and_then(|outcome| outcome.into_solution().ok()) else {
        return greedy(problem);
    };
    let parts = variables
        .iter()
        .map(|variable| solution.var_value(*variable).clamp(0.0, 1.0));
    let allocation = Allocation {
        parts: parts.collect(),
    };
    allocation.within(problem)
}

/// The best-paid first: for a program that the library cannot solve.
fn greedy(problem: &Problem) -> Allocation {
    let mut order: Vec<usize> = (0..problem.flows().len()).collect();
    let price = |f: usize| problem.projects()[problem.flows()[f].project].price;
    order.sort_by_key(|f| Reverse(price(*f)));
    first_fit::in_order(problem, &order)
}

/// The revenue of its whole demand.
pub fn revenue_of(problem: &Problem, flow: &Flow) -> f64 {
    let tokens: f64 = flow.demand.iter().map(|(_, tokens)| *tokens as f64).sum();
    problem.projects()[flow.project].price as f64 * tokens / 1e6
}
