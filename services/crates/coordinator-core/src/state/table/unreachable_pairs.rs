//! Pairs of servers that have their leases and cannot reach one another.

use std::collections::BTreeMap;

use quorate_types::ServerId;
use serde::{Deserialize, Serialize};

/// Two servers, the lesser id first.
pub type Pair = (ServerId, ServerId);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub struct UnreachablePairs {
    /// Each with the one of the two that was at fault when the pair was found, where the planner could tell.
    pairs: BTreeMap<Pair, Option<ServerId>>,
}

/// A pair as snapshots have it. Older ones have pairs alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    OneAtFault(ServerId, ServerId, ServerId),
    Pair(ServerId, ServerId),
}

impl UnreachablePairs {
    pub fn contains(&self, a: ServerId, b: ServerId) -> bool {
        self.pairs.contains_key(&ordered(a, b))
    }

    /// The one of the two that was at fault.
    pub fn at_fault(&self, a: ServerId, b: ServerId) -> Option<ServerId> {
        self.pairs.get(&ordered(a, b)).copied().flatten()
    }

    pub fn iter(&self) -> impl Iterator<Item = Pair> + '_ {
        self.pairs.keys().copied()
    }

    /// The pairs that a server is one of.
    pub fn count_of(&self, server: ServerId) -> usize {
        self.iter().filter(|(a, b)| *a == server || *b == server).count()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// False when the pair was known.
    pub fn insert(&mut self, a: ServerId, b: ServerId, at_fault: Option<ServerId>) -> bool {
        let is_new = !self.contains(a, b);
        if is_new {
            let at_fault = at_fault.filter(|server| [a, b].contains(server));
            self.pairs.insert(ordered(a, b), at_fault);
        }
        is_new
    }

    pub fn remove(&mut self, a: ServerId, b: ServerId) {
        self.pairs.remove(&ordered(a, b));
    }
}

impl From<Vec<Entry>> for UnreachablePairs {
    fn from(entries: Vec<Entry>) -> Self {
        let pair = |entry| match entry {
            Entry::Pair(a, b) => (ordered(a, b), None),
            Entry::OneAtFault(a, b, server) => (ordered(a, b), Some(server)),
        };
        Self {
            pairs: entries.into_iter().map(pair).collect(),
        }
    }
}

impl From<UnreachablePairs> for Vec<Entry> {
    fn from(pairs: UnreachablePairs) -> Self {
        let entry = |((a, b), at_fault): (Pair, Option<ServerId>)| match at_fault {
            None => Entry::Pair(a, b),
            Some(server) => Entry::OneAtFault(a, b, server),
        };
        pairs.pairs.into_iter().map(entry).collect()
    }
}

fn ordered(a: ServerId, b: ServerId) -> Pair {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_of_before_are_read_and_the_one_at_fault_is_kept() {
        let mut pairs: UnreachablePairs = serde_json::from_str("[[1,2],[3,5]]").unwrap();
        assert!(pairs.contains(ServerId(2), ServerId(1)) && pairs.contains(ServerId(3), ServerId(5)));
        assert_eq!(pairs.at_fault(ServerId(1), ServerId(2)), None);
        assert!(pairs.insert(ServerId(9), ServerId(7), Some(ServerId(9))));
        assert!(!pairs.insert(ServerId(7), ServerId(9), None));
        let text = serde_json::to_string(&pairs).unwrap();
        assert_eq!(text, "[[1,2],[3,5],[7,9,9]]");
        let again: UnreachablePairs = serde_json::from_str(&text).unwrap();
        assert_eq!(again, pairs);
        assert_eq!(again.at_fault(ServerId(7), ServerId(9)), Some(ServerId(9)));
    }
}
