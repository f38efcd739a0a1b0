//! Pairs of servers that have their leases and cannot reach one another.

use std::collections::BTreeSet;

use quorate_types::ServerId;
use serde::{Deserialize, Serialize};

/// Two servers, the lesser id first.
pub type Pair = (ServerId, ServerId);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnreachablePairs {
    pairs: BTreeSet<Pair>,
}

impl UnreachablePairs {
    pub fn contains(&self, a: ServerId, b: ServerId) -> bool {
        self.pairs.contains(&ordered(a, b))
    }

    pub fn iter(&self) -> impl Iterator<Item = Pair> + '_ {
        self.pairs.iter().copied()
    }

    /// The pairs that a server is one of.
    pub fn count_of(&self, server: ServerId) -> usize {
        self.iter().filter(|(a, b)| *a == server || *b == server).count()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// False when the pair was known.
    pub fn insert(&mut self, a: ServerId, b: ServerId) -> bool {
        self.pairs.insert(ordered(a, b))
    }

    pub fn remove(&mut self, a: ServerId, b: ServerId) {
        self.pairs.remove(&ordered(a, b));
    }
}

fn ordered(a: ServerId, b: ServerId) -> Pair {
    (a.min(b), a.max(b))
}
