//! The amounts kept for owners, so that the rest of their reservations may be burst capacity.
//!
//! A head *assumes* that its group uses no more than a part of its reservation, and notices when it does. It asks the
//! group's servers to *keep* as much as it would like to assume. It assumes less at once, before it asks for less. It
//! assumes more only once each server has answered, in the same interval, that it keeps that much beside all commitments
//! that may be in use. So on every server the assumed rates and the burst capacity fit together, whatever was lost or late.
//!
//! A head without answers (a new epoch, a new process) assumes nothing: it notices the group's first request. A server that
//! was not asked yet keeps the whole reservation.

use std::collections::{BTreeMap, BTreeSet};

use super::command::ExchangeCommand;
use super::load::GroupLoad;
use super::loads::GroupLoads;
use crate::policy;
use crate::problem::GroupEpoch;
use crate::problem::{NOTHING, RESOURCES, Vector};

/// A confirmed request is repeated after this many intervals, since a server may have restarted.
const REPEAT_INTERVALS: u64 = 8;
/// A lower rate is asked for if it is lower by more than this part.
const LESS_BY: u64 = 10;

#[derive(Debug, Default)]
struct Assumption {
    asked_per_s: u64,
    assumed_per_s: u64,
    kept_by: BTreeSet<usize>,
    /// All servers are known to keep `asked_per_s`.
    is_settled: bool,
}

#[derive(Debug, Clone, Copy)]
struct KeptReservation {
    per_s: u64,
    reserved_per_s: u64,
    reserved: Vector,
    /// The most that was reserved here in this epoch: a head that has not heard of less may still use it.
    most: Vector,
}

impl KeptReservation {
    /// The amounts kept, if one request in a full batch has this cost here; never more than was reserved.
    fn of(&self, cost: &Vector) -> Vector {
        policy::kept(cost, self.per_s, self.reserved_per_s, &self.reserved, &self.most)
    }
}

#[derive(Debug, Default)]
pub(super) struct Reservations {
    /// By group whose head is here.
    assumptions: BTreeMap<GroupEpoch, Assumption>,
    /// By group with a replica here.
    kept: BTreeMap<GroupEpoch, KeptReservation>,
    /// Rates that heads elsewhere asked for in this interval.
    asked: BTreeMap<GroupEpoch, u64>,
    /// Groups whose owners came back in this interval: their whole reservations are kept.
    back: BTreeSet<GroupEpoch>,
}

impl Reservations {
    /// True if a reservation has appeared, or grown.
    pub fn begin(&mut self, loads: &GroupLoads) -> bool {
        self.asked.clear();
        self.back.clear();
        self.assumptions.retain(|key, _| loads.is_known(key));
        self.kept.retain(|key, _| loads.is_known(key));
        let mut has_grown = false;
        for load in loads.all() {
            let reserved_per_s = load.reserved_per_s;
            let before = self.kept.get(&load.key).copied();
            let reserved = loads.reserved(load);
            let has_more = |kept: KeptReservation| {
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
            let kept = KeptReservation {
                per_s,
                reserved_per_s,
                reserved,
                most,
            };
            self.kept.insert(load.key, kept);
        }
        has_grown
    }

    /// The group, whose head is here, would like to assume `per_s`.
    pub fn assume(&mut self, load: &GroupLoad, per_s: u64) -> ExchangeCommand {
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

    fn assumed(&self, load: &GroupLoad) -> ExchangeCommand {
        let assumed = self.assumptions.get(&load.key).map_or(0, |one| one.assumed_per_s);
        ExchangeCommand::Assume {
            key: load.key,
            per_s: (assumed < load.reserved_per_s).then_some(assumed),
        }
    }

    /// The rate that the group's other servers are asked to keep, if they must hear of it in this interval.
    pub fn asks(&self, key: &GroupEpoch, interval: u64) -> Option<u64> {
        let assumption = self.assumptions.get(key)?;
        let is_due = !assumption.is_settled || interval.is_multiple_of(REPEAT_INTERVALS);
        is_due.then_some(assumption.asked_per_s)
    }

    /// The group's head, elsewhere, asks this server to keep `per_s`.
    pub fn is_asked(&mut self, key: GroupEpoch, per_s: u64) {
        if let Some(kept) = self.kept.get_mut(&key).filter(|_| !self.back.contains(&key)) {
            kept.per_s = per_s;
            self.asked.insert(key, per_s);
        }
    }

    /// The amounts kept here, if one request in a full batch has this cost.
    pub fn kept(&self, key: &GroupEpoch, cost: &Vector) -> Vector {
        self.kept.get(key).map_or(NOTHING, |kept| kept.of(cost))
    }

    fn kept_per_s(&self, key: &GroupEpoch) -> u64 {
        self.kept.get(key).map_or(0, |kept| kept.per_s)
    }

    /// The rates that heads elsewhere asked for and that are kept.
    pub fn answers(&self) -> impl Iterator<Item = (GroupEpoch, u64)> {
        let asked = self.asked.iter().map(|(key, per_s)| (*key, *per_s));
        asked.filter(|(key, per_s)| self.kept_per_s(key) >= *per_s)
    }

    /// A server of the group keeps `per_s`. Once all do, the head assumes it.
    pub fn is_kept(&mut self, load: &GroupLoad, by: usize, per_s: u64) -> Option<ExchangeCommand> {
        let assumption = self.assumptions.get_mut(&load.key)?;
        if per_s != assumption.asked_per_s {
            return None;
        }
        assumption.kept_by.insert(by);
        let is_kept = |replica: &crate::ReplicaCost| assumption.kept_by.contains(&replica.server);
        if assumption.is_settled && assumption.assumed_per_s == per_s || !load.replicas.iter().all(is_kept) {
            return None;
        }
        (assumption.is_settled, assumption.assumed_per_s) = (true, per_s);
        Some(self.assumed(load))
    }

    pub fn asked_per_s(&self, key: &GroupEpoch) -> Option<u64> {
        self.assumptions.get(key).map(|one| one.asked_per_s)
    }

    /// The owner uses more than was assumed: its whole reservation is kept from now on.
    pub fn is_back(&mut self, key: GroupEpoch) {
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
    use crate::demand::MeasuredRates;
    use crate::problem::ReplicaCost;

    /// A group on servers 3 and 5; a request in a full batch costs the same on both.
    fn load(reserved_per_s: u64, reserved: [Vector; 2]) -> GroupLoad {
        let replica = |server| ReplicaCost {
            server,
            cost: [10, 20, 30],
        };
        GroupLoad {
            key: (GroupId(Uuid::from_u128(1)), 1),
            replicas: vec![replica(3), replica(5)],
            reserved_per_s,
            reserved: reserved.to_vec(),
            measured: MeasuredRates::default(),
        }
    }

    fn kept(reservations: &mut Reservations, me: usize, load: &GroupLoad, per_s: u64) -> Vector {
        let loads = GroupLoads::new(me, vec![load.clone()]);
        reservations.begin(&loads);
        reservations.is_asked(load.key, per_s);
        reservations.kept(&load.key, &loads.cost(load))
    }

    #[test]
    fn no_more_is_kept_than_is_reserved_of_each_resource_at_each_replica() {
        let load = load(40, [[400, 200, 300], [500, 200, 300]]);
        let at = |me, per_s| kept(&mut Reservations::default(), me, &load, per_s);
        assert_eq!(at(3, 40), [400, 200, 300], "and not 40 requests: 400, 800, 1200");
        assert_eq!(at(5, 40), [500, 200, 300], "more CPU than 40 in full batches");
        assert_eq!(at(3, 4), [40, 80, 120], "the cost of four in full batches");
        assert_eq!(at(5, 4), [50, 80, 120], "a tenth of the reserved CPU");
        assert_eq!(at(3, 0), NOTHING);
        assert_eq!(at(4, 40), NOTHING, "no replica here");
    }

    #[test]
    fn an_earlier_reservation_is_kept_for_a_head_that_has_not_heard_of_less() {
        let mut reservations = Reservations::default();
        let before = load(40, [[400, 200, 300], [500, 200, 300]]);
        let after = load(20, [[200, 100, 150], [250, 100, 150]]);
        assert_eq!(kept(&mut reservations, 5, &before, 40), [500, 200, 300]);
        assert_eq!(kept(&mut reservations, 5, &after, 40), [500, 200, 300]);
        assert_eq!(kept(&mut reservations, 5, &after, 20), [250, 200, 300]);
    }
}
