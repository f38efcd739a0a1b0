//! Dominant resource fairness (Ghodsi et al., NSDI 2011), weighted: all flows' dominant shares rise together, each in the
//! proportion of its weight, until a resource is full or a demand is met.

use crate::filling::Filling;
use crate::problem::{Allocation, Flow, Problem};

/// A flow's weight is its own times its project's. The cost is (demands) × log(resources).
pub fn share(problem: &Problem) -> Allocation {
    let flows = problem.flows().iter().enumerate().map(|(f, flow)| {
        let weight = flow.weight * problem.projects()[flow.project].weight;
        (problem.dominant_share(f) / weight, uses_of(flow))
    });
    let capacity = problem.capacity().iter().map(|tokens| *tokens as f64);
    let filling = Filling::new(capacity.collect(), flows);
    let parts = filling.fill(&vec![1.0; problem.flows().len()]).taken;
    Allocation { parts }
}

fn uses_of(flow: &Flow) -> impl Iterator<Item = (u32, f64)> {
    let wanted = flow.demand.iter().filter(|(_, tokens)| *tokens > 0);
    wanted.map(|(resource, tokens)| (*resource as u32, *tokens as f64))
}
