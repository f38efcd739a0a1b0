//! First fit: one flow after the other gets as much of its demand as is left.

use crate::problem::{Allocation, Problem};

pub fn share(problem: &Problem) -> Allocation {
    let order: Vec<usize> = (0..problem.flows().len()).collect();
    in_order(problem, &order)
}

/// `order`: each flow once.
pub fn in_order(problem: &Problem, order: &[usize]) -> Allocation {
    let mut left: Vec<f64> = problem.capacity().iter().map(|tokens| *tokens as f64).collect();
    let mut parts = vec![0.0; order.len()];
    for f in order {
        let flow = &problem.flows()[*f];
        let wanted = flow.demand.iter().filter(|(_, tokens)| *tokens > 0);
        let fits = |(resource, tokens): &(usize, u64)| left[*resource] / *tokens as f64;
        let part = wanted.map(fits).fold(1.0, f64::min);
        for (resource, tokens) in &flow.demand {
            left[*resource] = (left[*resource] - part * *tokens as f64).max(0.0);
        }
        parts[*f] = part;
    }
    Allocation { parts }
}
