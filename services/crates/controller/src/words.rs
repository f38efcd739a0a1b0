//! What a server gave its word for, until nobody can use it any more.
//!
//! A word is for a while. Its head uses it from when it has heard of it until a time that counts from before it asked,
//! so the word outlasts the grant on any clock that runs at the right rate. It ends earlier when the head says which
//! interval's grant it uses: a head has one, and words of earlier intervals that come later are dropped.

use std::collections::BTreeMap;

use quorate_types::Micros;

use crate::exchange::Key;
use crate::problem::{RESOURCES, Vector};

#[derive(Debug, Clone, Copy)]
struct Word {
    interval: u64,
    per_s: u64,
    /// Of one request, then.
    cost: Vector,
    until: Micros,
}

#[derive(Debug, Default)]
pub struct Words {
    given: BTreeMap<Key, Vec<Word>>,
}

impl Words {
    pub fn give(&mut self, key: Key, interval: u64, per_s: u64, cost: Vector, until: Micros) {
        if per_s > 0 {
            let word = Word {
                interval,
                per_s,
                cost,
                until,
            };
            self.given.entry(key).or_default().push(word);
        }
    }

    /// In `interval`, the head used the grant of the interval `using`, or none: only that, or later ones, can be
    /// in use from then on.
    pub fn in_use(&mut self, key: Key, interval: u64, using: Option<u64>) {
        if let Some(words) = self.given.get_mut(&key) {
            words.retain(|word| word.interval >= interval || Some(word.interval) == using);
        }
    }

    pub fn expire(&mut self, now: Micros) {
        self.given.retain(|_, words| {
            words.retain(|word| word.until > now);
            !words.is_empty()
        });
    }

    /// The most that the group may be using.
    pub fn held_per_s(&self, key: &Key) -> u64 {
        let words = self.given.get(key).into_iter().flatten();
        words.map(|word| word.per_s).max().unwrap_or(0)
    }

    /// What groups that are not among `known` may be using, together: those that have another epoch now, or left.
    pub fn held_by_others(&self, known: impl Fn(&Key) -> bool) -> Vector {
        let mut held = [0u64; RESOURCES];
        for (_, words) in self.given.iter().filter(|(key, _)| !known(key)) {
            for i in 0..RESOURCES {
                let most = words
                    .iter()
                    .map(|word| word.cost[i].saturating_mul(word.per_s))
                    .max();
                held[i] = held[i].saturating_add(most.unwrap_or(0));
            }
        }
        held
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.given
            .iter()
            .filter(|(_, words)| !words.is_empty())
            .map(|(key, _)| key)
    }
}
