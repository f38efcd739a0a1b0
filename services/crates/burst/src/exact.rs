//! C-DRF by filling: the limit of Algorithm 2 for small requests. Its time does not depend on the number of requests.

use quorate_policies::filling::Filling;

use crate::problem::SharingProblem;
use crate::uses::{amounts, uses_of_replicas};

/// Requests/s granted to each tenant, rounded down; feasible.
///
/// A tenant that stops at a full resource has at least the dominant share of every other user of that resource.
/// Algorithm 2 differs by one request of each tenant, and by a leftover smaller than one tenant's request, which it gives
/// to smaller requests.
pub fn exact(problem: &SharingProblem) -> Vec<u64> {
    let shares = (0..problem.tenants().len()).map(|t| problem.share_of_request(t));
    let replicas = problem
        .tenants()
        .iter()
        .map(|tenant| uses_of_replicas(&tenant.replicas));
    let filling = Filling::new(amounts(problem.free()), shares.zip(replicas));
    let wants = problem.tenants().iter().map(|tenant| per_s(tenant.extra_per_s));
    problem.whole(&filling.fill(&wants.collect::<Vec<_>>()).taken)
}

/// The wanted requests/s as a real number.
pub(crate) fn per_s(extra_per_s: u64) -> f64 {
    if extra_per_s == u64::MAX {
        f64::INFINITY
    } else {
        extra_per_s as f64
    }
}
