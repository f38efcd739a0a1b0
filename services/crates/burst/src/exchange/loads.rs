//! All groups with a replica here, as they were when the interval began.

use std::collections::HashMap;

use super::load::{Key, Load};
use crate::problem::{NOTHING, Vector};

#[derive(Debug, Default)]
pub(super) struct Loads {
    me: usize,
    all: Vec<Load>,
    pub numbers: HashMap<Key, usize>,
}

impl Loads {
    pub fn new(me: usize, all: Vec<Load>) -> Self {
        let numbers = (all.iter().enumerate()).map(|(t, load)| (load.key, t)).collect();
        Self { me, all, numbers }
    }

    pub fn all(&self) -> &[Load] {
        &self.all
    }

    pub fn of(&self, key: &Key) -> Option<&Load> {
        self.numbers.get(key).map(|t| &self.all[*t])
    }

    pub fn keys(&self) -> Vec<Key> {
        self.all.iter().map(|load| load.key).collect()
    }

    pub fn is_known(&self, key: &Key) -> bool {
        self.numbers.contains_key(key)
    }

    pub fn is_headed_by(&self, key: &Key, server: usize) -> bool {
        self.of(key).is_some_and(|load| load.head() == server)
    }

    pub fn is_on(&self, key: &Key, server: usize) -> bool {
        self.of(key).is_some_and(|load| load.is_on(server))
    }

    /// The groups whose heads are here.
    pub fn own(&self) -> impl Iterator<Item = &Load> {
        self.all.iter().filter(|load| load.head() == self.me)
    }

    /// Cost of one request of the group on this server.
    pub fn cost(&self, load: &Load) -> Vector {
        let here = load.places.iter().find(|place| place.server == self.me);
        here.map_or(NOTHING, |place| place.cost)
    }

    /// The group's reservation on this server.
    pub fn reserved(&self, load: &Load) -> Vector {
        let here = load.places.iter().position(|place| place.server == self.me);
        let reserved = here.and_then(|position| load.reserved.get(position));
        reserved.copied().unwrap_or(NOTHING)
    }
}
