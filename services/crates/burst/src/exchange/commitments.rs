//! The commitments of a server, until nobody can use them any more.
//!
//! A commitment is for a while. Its head uses it from when it hears of it until a time that counts from before it asked.
//! So the commitment outlasts the grant on any clock that runs at the right rate. It ends earlier once the head reports
//! which interval's grant it uses: a head has one, and drops commitments of earlier intervals that come later.

use std::collections::BTreeMap;

use quorate_types::Micros;

use crate::problem::GroupEpoch;
use crate::problem::{RESOURCES, Vector};

#[derive(Debug, Clone, Copy)]
struct Commitment {
    interval: u64,
    per_s: u64,
    /// Cost of one request, when the commitment was made.
    cost: Vector,
    until: Micros,
}

#[derive(Debug, Default)]
pub struct Commitments {
    made: BTreeMap<GroupEpoch, Vec<Commitment>>,
}

impl Commitments {
    pub fn make(&mut self, key: GroupEpoch, interval: u64, per_s: u64, cost: Vector, until: Micros) {
        if per_s > 0 {
            let commitment = Commitment {
                interval,
                per_s,
                cost,
                until,
            };
            self.made.entry(key).or_default().push(commitment);
        }
    }

    /// In `interval` the head used the grant of the interval `using`, or none. Only that grant, or later ones, can be in use
    /// from then on.
    pub fn in_use(&mut self, key: GroupEpoch, interval: u64, using: Option<u64>) {
        if let Some(commitments) = self.made.get_mut(&key) {
            commitments
                .retain(|commitment| commitment.interval >= interval || Some(commitment.interval) == using);
        }
    }

    pub fn expire(&mut self, now: Micros) {
        self.made.retain(|_, commitments| {
            commitments.retain(|commitment| commitment.until > now);
            !commitments.is_empty()
        });
    }

    /// The highest rate that the group may be using.
    pub fn committed_per_s(&self, key: &GroupEpoch) -> u64 {
        let commitments = self.made.get(key).into_iter().flatten();
        commitments.map(|commitment| commitment.per_s).max().unwrap_or(0)
    }

    /// The amounts that groups outside `known` may be using together: groups of an earlier epoch, or that left.
    pub fn held_by_others(&self, known: impl Fn(&GroupEpoch) -> bool) -> Vector {
        let mut held = [0u64; RESOURCES];
        for (_, commitments) in self.made.iter().filter(|(key, _)| !known(key)) {
            for i in 0..RESOURCES {
                let most = commitments
                    .iter()
                    .map(|commitment| commitment.cost[i].saturating_mul(commitment.per_s))
                    .max();
                held[i] = held[i].saturating_add(most.unwrap_or(0));
            }
        }
        held
    }

    pub fn keys(&self) -> impl Iterator<Item = &GroupEpoch> {
        self.made
            .iter()
            .filter(|(_, commitments)| !commitments.is_empty())
            .map(|(key, _)| key)
    }
}
