//! The operator's choice of how free amounts are shared among groups: the *global policy* (Pulsar §4.2).

use quorate_policies::{Flow, Policy, Problem, Project};

use crate::exact::exact;
use crate::problem::{RESOURCES, SharingProblem, SharingTenant, Vector};

/// Requests/s for each tenant of the problem; feasible. `project_of`: the tenants' projects, numbered from 0.
pub fn rates(policy: Policy, problem: &SharingProblem, project_of: &[usize]) -> Vec<u64> {
    if policy == Policy::Drf {
        return exact(problem);
    }
    let wanted: Vec<u64> = problem
        .tenants()
        .iter()
        .map(|tenant| wanted(problem, tenant))
        .collect();
    let shared = policy.share(&of_flows(problem, &wanted, project_of));
    let parts = shared.parts.iter().zip(&wanted);
    let rates: Vec<f64> = parts.map(|(part, wanted)| part * *wanted as f64).collect();
    problem.whole(&rates)
}

/// Requests/s that the tenant would get if it were alone.
fn wanted(problem: &SharingProblem, tenant: &SharingTenant) -> u64 {
    let fits = tenant.replicas.iter().flat_map(|replica| {
        let free = &problem.free()[replica.server];
        let costly = (0..RESOURCES).filter(|i| replica.cost[*i] > 0);
        costly.map(move |i| free[i] / replica.cost[i])
    });
    fits.fold(tenant.extra_per_s, u64::min)
}

fn of_flows(problem: &SharingProblem, wanted: &[u64], project_of: &[usize]) -> Problem {
    let capacity = problem.free().iter().flatten().copied().collect();
    let projects = project_of.iter().max().map_or(0, |last| last + 1);
    let project = Project {
        weight: 1.0,
        price: 1, // of all alike
    };
    let flow = |t: usize| Flow {
        project: project_of[t],
        weight: 1.0,
        demand: demand(&problem.tenants()[t], wanted[t]),
    };
    let flows = (0..wanted.len()).map(flow).collect();
    Problem::new(capacity, vec![project; projects], flows).expect("replicas are on servers of their own")
}

fn demand(tenant: &SharingTenant, wanted: u64) -> Vec<(usize, u64)> {
    let of_replica = |server: usize, cost: &Vector| {
        let costly = (0..RESOURCES).filter(|i| cost[*i] > 0);
        costly
            .map(|i| (server * RESOURCES + i, cost[i] * wanted))
            .collect::<Vec<_>>()
    };
    (tenant.replicas.iter())
        .flat_map(|replica| of_replica(replica.server, &replica.cost))
        .collect()
}
