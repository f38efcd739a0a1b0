//! Servers' resources as the filling numbers them: those of server `s` begin at `s × RESOURCES`.

use quorate_policies::filling::Use;

use crate::problem::{RESOURCES, ReplicaCost, Vector};

/// The amounts of all servers.
pub fn amounts(free: &[Vector]) -> Vec<f64> {
    free.iter().flatten().map(|amount| *amount as f64).collect()
}

/// Uses of a tenant's replicas.
pub fn uses_of_replicas(replicas: &[ReplicaCost]) -> impl Iterator<Item = Use> {
    replicas
        .iter()
        .flat_map(|replica| uses_on(replica.server, replica.cost.map(|cost| cost as f64)))
}

/// Uses of one request of `cost` on a server.
pub fn uses_on(server: usize, cost: [f64; RESOURCES]) -> impl Iterator<Item = Use> {
    let uses = (0..RESOURCES).filter(move |i| cost[*i] > 0.0);
    uses.map(move |i| ((server * RESOURCES + i) as u32, cost[i]))
}
