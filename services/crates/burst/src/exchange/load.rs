//! A group with a replica here, as its load was when the interval began.

use crate::demand::MeasuredRates;
use crate::problem::{GroupEpoch, ReplicaCost, Vector};

/// A group with a replica here, and its rates since the last interval began.
#[derive(Debug, Clone)]
pub struct GroupLoad {
    pub key: GroupEpoch,
    /// The chain, head first, and the servers that will join it.
    pub replicas: Vec<ReplicaCost>,
    /// At the head, in the resource of which most is reserved.
    pub reserved_per_s: u64,
    /// The reserved amounts at each of `replicas`. They are not as many requests in each resource, nor at each replica.
    pub reserved: Vec<Vector>,
    /// Known at the head only.
    pub measured: MeasuredRates,
}

impl GroupLoad {
    pub fn head(&self) -> usize {
        self.replicas[0].server
    }

    pub fn is_on(&self, server: usize) -> bool {
        self.replicas.iter().any(|replica| replica.server == server)
    }

    pub fn others(&self, me: usize) -> impl Iterator<Item = usize> {
        let servers = self.replicas.iter().map(|replica| replica.server);
        servers.filter(move |server| *server != me)
    }
}
