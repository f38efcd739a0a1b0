//! The grants in use of groups whose heads are here.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::Micros;

use super::bounds::Bound;
use super::command::{Command, Granted, Why};
use super::load::Key;

#[derive(Debug, Clone, Copy)]
pub(super) struct HeldGrant {
    pub interval: u64,
    pub per_s: u64,
    pub until: Micros,
    pub bound: Option<Bound>,
}

#[derive(Debug, Default)]
pub(super) struct Grants {
    all: BTreeMap<Key, HeldGrant>,
    /// Groups whose commitments of this interval are void, also if their heads are elsewhere.
    recalled: BTreeSet<Key>,
}

impl Grants {
    pub fn of(&self, key: &Key) -> Option<&HeldGrant> {
        self.all.get(key)
    }

    /// Ends the grants for which `is_over` has a reason.
    pub fn begin(&mut self, now: Micros, is_over: impl Fn(&Key, &HeldGrant) -> Option<Why>) -> Vec<Command> {
        self.recalled.clear();
        let mut commands = Vec::new();
        self.all.retain(|key, grant| {
            let why = is_over(key, grant);
            commands.extend(why.map(|why| ended(*key, now, why)));
            why.is_none()
        });
        commands
    }

    pub fn agree(&mut self, key: Key, grant: HeldGrant) -> Option<Command> {
        if self.recalled.contains(&key) {
            return None;
        }
        if grant.per_s == 0 {
            let had = self.all.remove(&key);
            return had.map(|_| ended(key, grant.until, Why::Agreed));
        }
        self.all.insert(key, grant);
        Some(Command::Grant(Granted {
            key,
            per_s: grant.per_s,
            until: grant.until,
            why: Why::Agreed,
            bound: grant.bound,
        }))
    }

    /// Ends the group's grant, and rejects another in this interval.
    pub fn lose(&mut self, now: Micros, key: Key) -> Option<Command> {
        self.recalled.insert(key);
        let had = self.all.remove(&key);
        had.map(|_| ended(key, now, Why::Recalled))
    }

    pub fn is_recalled(&self, key: &Key) -> bool {
        self.recalled.contains(key)
    }
}

fn ended(key: Key, now: Micros, why: Why) -> Command {
    Command::Grant(Granted {
        key,
        per_s: 0,
        until: now,
        why,
        bound: None,
    })
}
