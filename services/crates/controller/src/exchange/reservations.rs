//! What is kept for owners, so that the rest of their reservations may be lent.
//!
//! A head *assumes* that its group uses no more than so much of its reservation, and notices when it does. It asks the
//! group's servers to *keep* as much as it would like to assume. It assumes less at once, before it asks for less; it
//! assumes more only when each server has said, in the same interval, that it keeps that much beside all its words that
//! may be in use. So on every server what heads assume, and what is lent, fit together, whatever was lost or late.
//!
//! A head that knows of no answer yet (a new epoch, a new process) assumes nothing: the group's first request is noticed.
//! A server that was not asked yet keeps the whole reservation.

use std::collections::{BTreeMap, BTreeSet};

use super::loads::Loads;
use super::{Command, Key, Load};
use crate::policy;
use crate::problem::{NOTHING, RESOURCES, Vector};

/// What everybody was told and has confirmed is told again after so many intervals: a server may have started anew.
const REPEAT_INTERVALS: u64 = 8;
/// Less is asked for when it is less by more than this part.
const LESS_BY: u64 = 10;

#[derive(Debug, Default)]
struct Assumption {
    asked_per_s: u64,
    assumed_per_s: u64,
    kept_by: BTreeSet<usize>,
    /// Everybody is known to keep what is asked for.
    is_settled: bool,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    per_s: u64,
    reserved_per_s: u64,
    /// What is reserved here; and the most that was in this epoch, which a head that has not heard of less may still use.
    reserved: Vector,
    most: Vector,
}

impl Kept {
    /// Of a group of which one request in a full batch costs so much here; never more than was reserved.
    fn of(&self, cost: &Vector) -> Vector {
        policy::kept(cost, self.per_s, self.reserved_per_s, &self.reserved, &self.most)
    }
}

#[derive(Debug, Default)]
pub(super) struct Reservations {
    /// Of the groups whose heads are here.
    assumptions: BTreeMap<Key, Assumption>,
    /// Of all groups here.
    kept: BTreeMap<Key, Kept>,
    /// What heads elsewhere asked for in this interval.
    asked: BTreeMap<Key, u64>,
    /// Whose owners came back in this interval: nothing of it is lent.
    back: BTreeSet<Key>,
}

impl Reservations {
    /// True if a reservation has appeared, or grown.
    pub fn begin(&mut self, loads: &Loads) -> bool {
        self.asked.clear();
        self.back.clear();
        self.assumptions.retain(|key, _| loads.is_known(key));
        self.kept.retain(|key, _| loads.is_known(key));
        let mut has_grown = false;
        for load in loads.all() {
            let reserved_per_s = load.reserved_per_s;
            let before = self.kept.get(&load.key).copied();
            let reserved = loads.reserved(load);
            let has_more = |kept: Kept| {
                kept.reserved_per_s < reserved_per_s || (0..RESOURCES).any(|i| kept.most[i] < reserved[i])
            };
            has_grown |= before.is_none_or(has_more);
            let per_s = match before {
                Some(kept) if reserved_per_s <= kept.reserved_per_s => kept.per_s,
                _ => reserved_per_s,
            };
            let most = before.map_or(reserved, |kept| {
                std::array::from_fn(|i| kept.most[i].max(reserved[i]))
            });
            let kept = Kept {
                per_s,
                reserved_per_s,
                reserved,
                most,
            };
            self.kept.insert(load.key, kept);
        }
        has_grown
    }

    /// The group, whose head is here, would like to assume so much.
    pub fn assume(&mut self, load: &Load, per_s: u64) -> Command {
        let assumption = self.assumptions.entry(load.key).or_default();
        let asked = assumption.asked_per_s;
        if per_s > asked || per_s < asked - asked / LESS_BY {
            assumption.asked_per_s = per_s;
            assumption.is_settled = false;
        }
        assumption.kept_by.clear();
        assumption.assumed_per_s = assumption.assumed_per_s.min(assumption.asked_per_s);
        if let Some(kept) = self.kept.get_mut(&load.key) {
            kept.per_s = assumption.asked_per_s;
        }
        self.assumed(load)
    }

    fn assumed(&self, load: &Load) -> Command {
        let assumed = self.assumptions.get(&load.key).map_or(0, |one| one.assumed_per_s);
        Command::Assume {
            key: load.key,
            per_s: (assumed < load.reserved_per_s).then_some(assumed),
        }
    }

    /// What the group's other servers are to be told, if anything.
    pub fn asks(&self, key: &Key, interval: u64) -> Option<u64> {
        let assumption = self.assumptions.get(key)?;
        let is_told = !assumption.is_settled || interval.is_multiple_of(REPEAT_INTERVALS);
        is_told.then_some(assumption.asked_per_s)
    }

    /// The group's head, elsewhere, asks for so much.
    pub fn is_asked(&mut self, key: Key, per_s: u64) {
        if let Some(kept) = self.kept.get_mut(&key).filter(|_| !self.back.contains(&key)) {
            kept.per_s = per_s;
            self.asked.insert(key, per_s);
        }
    }

    /// What is kept here, where one request in a full batch costs so much.
    pub fn kept(&self, key: &Key, cost: &Vector) -> Vector {
        self.kept.get(key).map_or(NOTHING, |kept| kept.of(cost))
    }

    fn kept_per_s(&self, key: &Key) -> u64 {
        self.kept.get(key).map_or(0, |kept| kept.per_s)
    }

    /// What heads elsewhere asked for and is kept.
    pub fn answers(&self) -> impl Iterator<Item = (Key, u64)> {
        let asked = self.asked.iter().map(|(key, per_s)| (*key, *per_s));
        asked.filter(|(key, per_s)| self.kept_per_s(key) >= *per_s)
    }

    /// A server of the group keeps so much. Once all do, it is assumed.
    pub fn is_kept(&mut self, load: &Load, by: usize, per_s: u64) -> Option<Command> {
        let assumption = self.assumptions.get_mut(&load.key)?;
        if per_s != assumption.asked_per_s {
            return None;
        }
        assumption.kept_by.insert(by);
        let is_kept = |place: &crate::Place| assumption.kept_by.contains(&place.server);
        if assumption.is_settled && assumption.assumed_per_s == per_s || !load.places.iter().all(is_kept) {
            return None;
        }
        (assumption.is_settled, assumption.assumed_per_s) = (true, per_s);
        Some(self.assumed(load))
    }

    pub fn asked_per_s(&self, key: &Key) -> Option<u64> {
        self.assumptions.get(key).map(|one| one.asked_per_s)
    }

    /// The owner uses more than was assumed: all of its reservation is kept from now on.
    pub fn is_back(&mut self, key: Key) {
        self.back.insert(key);
        if let Some(kept) = self.kept.get_mut(&key) {
            kept.per_s = kept.per_s.max(kept.reserved_per_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;
    use crate::demand::Measured;
    use crate::problem::Place;

    /// A group of ten requests a second, each of which may come alone and costs the head four times as much CPU then, a
    /// follower five times.
    fn load(reserved_per_s: u64, reserved: [Vector; 2]) -> Load {
        let place = |server| Place {
            server,
            cost: [10, 20, 30],
        };
        Load {
            key: (GroupId(Uuid::from_u128(1)), 1),
            places: vec![place(3), place(5)],
            reserved_per_s,
            reserved: reserved.to_vec(),
            measured: Measured::default(),
        }
    }

    fn kept(reservations: &mut Reservations, me: usize, load: &Load, per_s: u64) -> Vector {
        let loads = Loads::new(me, vec![load.clone()]);
        reservations.begin(&loads);
        reservations.is_asked(load.key, per_s);
        reservations.kept(&load.key, &loads.cost(load))
    }

    #[test]
    fn no_more_is_kept_than_is_reserved_of_each_resource_at_each_replica() {
        let load = load(40, [[400, 200, 300], [500, 200, 300]]);
        let at = |me, per_s| kept(&mut Reservations::default(), me, &load, per_s);
        assert_eq!(at(3, 40), [400, 200, 300], "and not 40 requests: 400, 800, 1200");
        assert_eq!(at(5, 40), [500, 200, 300], "of CPU more than 40 in full batches");
        assert_eq!(at(3, 4), [40, 80, 120], "what four cost in full batches");
        assert_eq!(at(5, 4), [50, 80, 120], "four that are one, alone in its batch");
        assert_eq!(at(3, 0), NOTHING);
        assert_eq!(at(4, 40), NOTHING, "no replica here");
    }

    #[test]
    fn what_was_reserved_before_is_kept_for_a_head_that_has_not_heard_of_less() {
        let mut reservations = Reservations::default();
        let before = load(40, [[400, 200, 300], [500, 200, 300]]);
        let after = load(20, [[200, 100, 150], [250, 100, 150]]);
        assert_eq!(kept(&mut reservations, 5, &before, 40), [500, 200, 300]);
        assert_eq!(kept(&mut reservations, 5, &after, 40), [500, 200, 300]);
        assert_eq!(kept(&mut reservations, 5, &after, 20), [250, 200, 300]);
    }
}
