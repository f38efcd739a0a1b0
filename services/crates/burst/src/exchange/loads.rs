//! All groups with a replica here, as they were when the interval began.

use std::collections::HashMap;

use super::load::GroupLoad;
use crate::problem::GroupEpoch;
use crate::problem::{NOTHING, Vector};

#[derive(Debug, Default)]
pub(super) struct GroupLoads {
    me: usize,
    all: Vec<GroupLoad>,
    pub numbers: HashMap<GroupEpoch, usize>,
}

impl GroupLoads {
    pub fn new(me: usize, all: Vec<GroupLoad>) -> Self {
        let numbers = (all.iter().enumerate()).map(|(t, load)| (load.key, t)).collect();
        Self { me, all, numbers }
    }

    pub fn all(&self) -> &[GroupLoad] {
        &self.all
    }

    pub fn of(&self, key: &GroupEpoch) -> Option<&GroupLoad> {
        self.numbers.get(key).map(|t| &self.all[*t])
    }

    pub fn keys(&self) -> Vec<GroupEpoch> {
        self.all.iter().map(|load| load.key).collect()
    }

    pub fn is_known(&self, key: &GroupEpoch) -> bool {
        self.numbers.contains_key(key)
    }

    pub fn is_headed_by(&self, key: &GroupEpoch, server: usize) -> bool {
        self.of(key).is_some_and(|load| load.head() == server)
    }

    pub fn is_on(&self, key: &GroupEpoch, server: usize) -> bool {
        self.of(key).is_some_and(|load| load.is_on(server))
    }

    /// The groups whose heads are here.
    pub fn own(&self) -> impl Iterator<Item = &GroupLoad> {
        self.all.iter().filter(|load| load.head() == self.me)
    }

    /// Cost of one request of the group on this server.
    pub fn cost(&self, load: &GroupLoad) -> Vector {
        let here = load.replicas.iter().find(|replica| replica.server == self.me);
        here.map_or(NOTHING, |replica| replica.cost)
    }

    /// The group's reservation on this server.
    pub fn reserved(&self, load: &GroupLoad) -> Vector {
        let here = load.replicas.iter().position(|replica| replica.server == self.me);
        let reserved = here.and_then(|position| load.reserved.get(position));
        reserved.copied().unwrap_or(NOTHING)
    }
}
