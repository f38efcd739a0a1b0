//! C-DRF as Filo's Algorithm 2: the reference. One request at a time goes to the tenant with the lowest dominant
//! share, until nobody's request fits. Its time grows with the number of requests granted, so that number is bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::{SharingProblem, SharingTenant, Vector, fits, take};

/// More requests fit than the caller lets the algorithm grant. Nothing was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyRequests;

/// Requests/s granted to each tenant: utility(t); together at most `requests_max`. Shares are of the amounts free at the
/// beginning (Equation 5); among equal ones the first tenant is next. The paper does not say how the lowest share is
/// found: a heap finds it here.
pub fn request_by_request(problem: &SharingProblem, requests_max: u64) -> Result<Vec<u64>, TooManyRequests> {
    let tenants = problem.tenants();
    let shares: Vec<f64> = (0..tenants.len()).map(|t| problem.share_of_request(t)).collect();
    let mut free = problem.free().to_vec();
    let mut utility = vec![0u64; tenants.len()];
    let mut granted = 0;
    // The bits of doubles that are not negative are ordered as they are.
    let mut lowest_first: BinaryHeap<Reverse<(u64, usize)>> =
        (0..tenants.len()).map(|t| Reverse((0, t))).collect();
    while let Some(Reverse((_, t))) = lowest_first.pop() {
        if utility[t] == tenants[t].extra_per_s || !one_more(&tenants[t], &mut free) {
            continue; // T ← T \ t
        }
        if granted == requests_max {
            return Err(TooManyRequests);
        }
        granted += 1;
        utility[t] += 1;
        let share = utility[t] as f64 * shares[t];
        lowest_first.push(Reverse((share.to_bits(), t)));
    }
    Ok(utility)
}

fn one_more(tenant: &SharingTenant, free: &mut [Vector]) -> bool {
    let fit = tenant
        .replicas
        .iter()
        .all(|replica| fits(&replica.cost, &free[replica.server]));
    if fit {
        for replica in &tenant.replicas {
            take(&mut free[replica.server], &replica.cost);
        }
    }
    fit
}
