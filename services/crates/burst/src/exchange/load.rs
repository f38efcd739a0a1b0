//! A group with a replica here, as its load was when the interval began.

use quorate_types::{Epoch, GroupId};

use crate::demand::Measured;
use crate::problem::{Place, Vector};

/// A group in one epoch: with another chain it is another tenant.
pub type Key = (GroupId, Epoch);

/// A group with a replica here, and its rates since the last interval began.
#[derive(Debug, Clone)]
pub struct Load {
    pub key: Key,
    /// The chain, head first, and the servers that will join it.
    pub places: Vec<Place>,
    /// At the head, in the resource of which most is reserved.
    pub reserved_per_s: u64,
    /// The reserved amounts at each of `places`. They are not as many requests in each resource, nor at each replica.
    pub reserved: Vec<Vector>,
    /// Known at the head only.
    pub measured: Measured,
}

impl Load {
    pub fn head(&self) -> usize {
        self.places[0].server
    }

    pub fn is_on(&self, server: usize) -> bool {
        self.places.iter().any(|place| place.server == server)
    }

    pub fn others(&self, me: usize) -> impl Iterator<Item = usize> {
        let servers = self.places.iter().map(|place| place.server);
        servers.filter(move |server| *server != me)
    }
}
