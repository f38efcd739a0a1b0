//! What groups whose heads are here may use above their reservations.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::Micros;

use super::{Bound, Command, Key};

/// What a group whose head is here may use above its reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    pub key: Key,
    pub per_s: u64,
    pub until: Micros,
    pub why: Why,
    /// What it cannot have more for, where it wants more and that is known.
    pub bound: Option<Bound>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// All its servers gave their word.
    Agreed,
    /// It wants no more.
    Unwanted,
    /// Not renewed in time: servers did not answer.
    Lapsed,
    /// An owner on one of its servers is back.
    Recalled,
    /// Another epoch, or another head.
    Moved,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub interval: u64,
    pub per_s: u64,
    pub until: Micros,
    pub bound: Option<Bound>,
}

#[derive(Debug, Default)]
pub(super) struct Grants {
    all: BTreeMap<Key, Grant>,
    /// In this interval: what was promised in it is void. Also of groups whose heads are elsewhere.
    recalled: BTreeSet<Key>,
}

impl Grants {
    pub fn of(&self, key: &Key) -> Option<&Grant> {
        self.all.get(key)
    }

    /// Ends those that `is_over` says are, with the reason.
    pub fn begin(&mut self, now: Micros, is_over: impl Fn(&Key, &Grant) -> Option<Why>) -> Vec<Command> {
        self.recalled.clear();
        let mut commands = Vec::new();
        self.all.retain(|key, grant| {
            let why = is_over(key, grant);
            commands.extend(why.map(|why| ended(*key, now, why)));
            why.is_none()
        });
        commands
    }

    pub fn agree(&mut self, key: Key, grant: Grant) -> Option<Command> {
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

    /// What was granted, or will have been in this interval, ends.
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
