//! Grants and commitments of groups whose heads are here, as operators see them. Pure.

use std::collections::{HashMap, HashSet};

use quorate_burst::exchange::{self, Granted, Key, Load, Why};
use quorate_telemetry::lending::{Bound, Change, Reason, Standing};
use quorate_types::cost::RESOURCES;

/// The rate that a group may use above its SLA.
#[derive(Debug, Clone, Copy)]
struct Borrowed {
    per_s: u64,
    since_ms: u64,
    bound: Bound,
}

#[derive(Debug, Default)]
pub struct Ledger {
    borrowed: HashMap<Key, Borrowed>,
    /// Reservations of groups whose heads are here.
    reserved_per_s: HashMap<Key, u64>,
    /// The part of it that they are assumed to use; not there: all of it.
    assumed_per_s: HashMap<Key, u64>,
    /// Told last time to borrow or lend something.
    told: HashSet<Key>,
}

impl Ledger {
    /// An interval begins with these groups; `me`: this server.
    pub fn begin(&mut self, loads: &[Load], me: usize) {
        let own = loads.iter().filter(|load| load.head() == me);
        self.reserved_per_s = own.map(|load| (load.key, load.reserved_per_s)).collect();
        let reserved = &self.reserved_per_s;
        self.assumed_per_s.retain(|key, _| reserved.contains_key(key));
    }

    pub fn assume(&mut self, key: Key, per_s: Option<u64>) {
        match per_s {
            Some(per_s) => self.assumed_per_s.insert(key, per_s),
            None => self.assumed_per_s.remove(&key),
        };
    }

    /// Requests/s before, and what there is to tell: what is only renewed is no news.
    pub fn note(&mut self, granted: &Granted, at_ms: u64) -> (u64, Option<Change>) {
        let Granted { key, per_s, why, .. } = *granted;
        let before = self.borrowed.get(&key).copied();
        let bound = granted.bound.map(told).unwrap_or_default();
        let since_ms = before.map_or(at_ms, |before| before.since_ms);
        match per_s {
            0 => self.borrowed.remove(&key),
            per_s => self.borrowed.insert(
                key,
                Borrowed {
                    per_s,
                    since_ms,
                    bound,
                },
            ),
        };
        let before_per_s = before.map_or(0, |before| before.per_s);
        let change = Change {
            at_ms,
            group: key.0,
            epoch: key.1,
            per_s,
            before_per_s,
            reason: reason_of(why),
            since_ms: (per_s > 0).then_some(since_ms),
            bound,
        };
        (before_per_s, (per_s != before_per_s).then_some(change))
    }

    /// Requests/s of all.
    pub fn granted_per_s(&self) -> u64 {
        self.borrowed.values().map(|borrowed| borrowed.per_s).sum()
    }

    /// The state of each group that borrows or lends. A group that has ceased to since the last call is listed once
    /// more, as others learn of an end only by that.
    pub fn standing(&mut self, at_ms: u64) -> Vec<Standing> {
        let keys: HashSet<Key> = self
            .borrowed
            .keys()
            .chain(self.assumed_per_s.keys())
            .copied()
            .collect();
        let (now, ended): (HashSet<Key>, HashSet<Key>) = keys
            .union(&self.told)
            .partition(|key| self.borrowed.contains_key(*key) || self.lent_per_s(key) > 0);
        let ended = ended.intersection(&self.told);
        let all = now.iter().chain(ended);
        let standing = all.map(|key| self.standing_of(key, at_ms)).collect();
        self.told = now;
        standing
    }

    fn standing_of(&self, key: &Key, at_ms: u64) -> Standing {
        let borrowed = self.borrowed.get(key);
        Standing {
            at_ms,
            group: key.0,
            epoch: key.1,
            per_s: borrowed.map_or(0, |borrowed| borrowed.per_s),
            since_ms: borrowed.map(|borrowed| borrowed.since_ms),
            bound: borrowed.map(|borrowed| borrowed.bound).unwrap_or_default(),
            lent_per_s: self.lent_per_s(key),
        }
    }

    fn lent_per_s(&self, key: &Key) -> u64 {
        let reserved = self.reserved_per_s.get(key).copied().unwrap_or(0);
        let assumed = self.assumed_per_s.get(key).copied().unwrap_or(u64::MAX);
        reserved.saturating_sub(assumed)
    }
}

fn told(bound: exchange::Bound) -> Bound {
    Bound {
        bounded_by: RESOURCES.get(bound.resource).copied(),
        bounded_by_server: u32::try_from(bound.server).ok(),
    }
}

fn reason_of(why: Why) -> Reason {
    match why {
        Why::Agreed => Reason::Agreed,
        Why::Unwanted => Reason::Unwanted,
        Why::Lapsed => Reason::Lapsed,
        Why::Recalled => Reason::Recalled,
        Why::Moved => Reason::Moved,
    }
}

#[cfg(test)]
mod tests {
    use quorate_burst::demand::Measured;
    use quorate_burst::problem::Place;
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;

    const ME: usize = 1;

    fn key(n: u128) -> Key {
        (GroupId(Uuid::from_u128(n)), 3)
    }

    fn load(n: u128, head: usize) -> Load {
        let place = Place {
            server: head,
            cost: [1, 0, 0],
        };
        Load {
            key: key(n),
            places: vec![place],
            reserved_per_s: 100,
            reserved: vec![[100, 0, 0]],
            measured: Measured::default(),
        }
    }

    fn granted(n: u128, per_s: u64, why: Why) -> Granted {
        let bound = exchange::Bound {
            server: 5,
            resource: 2,
        };
        Granted {
            key: key(n),
            per_s,
            until: 0,
            why,
            bound: (per_s > 0).then_some(bound),
        }
    }

    #[test]
    fn a_change_says_since_when_and_what_bounds_it_and_a_renewal_is_none() {
        let mut ledger = Ledger::default();
        let (before, change) = ledger.note(&granted(1, 40, Why::Agreed), 1_000);
        let change = change.unwrap();
        assert_eq!(
            (before, change.before_per_s, change.since_ms),
            (0, 0, Some(1_000))
        );
        assert_eq!(change.bound.bounded_by, Some("storage_io"));
        assert_eq!(change.bound.bounded_by_server, Some(5));
        assert_eq!(ledger.note(&granted(1, 40, Why::Agreed), 2_000), (40, None));
        let change = ledger.note(&granted(1, 60, Why::Agreed), 3_000).1.unwrap();
        assert_eq!(
            (change.before_per_s, change.since_ms),
            (40, Some(1_000)),
            "without a break"
        );
        assert_eq!(ledger.granted_per_s(), 60);
        let change = ledger.note(&granted(1, 0, Why::Recalled), 4_000).1.unwrap();
        assert_eq!(
            (change.per_s, change.since_ms, change.bound),
            (0, None, Bound::default())
        );
        let change = ledger.note(&granted(1, 5, Why::Agreed), 5_000).1.unwrap();
        assert_eq!(change.since_ms, Some(5_000), "there was a break");
    }

    #[test]
    fn what_stands_is_what_is_borrowed_and_what_is_not_assumed_of_reservations_here() {
        let mut ledger = Ledger::default();
        ledger.begin(&[load(1, ME), load(2, ME), load(3, ME), load(4, 9)], ME);
        for (n, assumed) in [(1, Some(30)), (2, Some(100)), (3, None), (4, Some(0))] {
            ledger.assume(key(n), assumed);
        }
        ledger.note(&granted(3, 7, Why::Agreed), 1_000);
        let mut standing = ledger.standing(9_000);
        standing.sort_by_key(|one| one.group.0);
        let told: Vec<_> = standing
            .iter()
            .map(|one| (one.group, one.per_s, one.lent_per_s))
            .collect();
        assert_eq!(told, [(key(1).0, 0, 70), (key(3).0, 7, 0)]);
        assert_eq!((standing[1].at_ms, standing[1].since_ms), (9_000, Some(1_000)));
    }

    #[test]
    fn what_ended_is_told_once_more_as_nothing() {
        let mut ledger = Ledger::default();
        let told = |ledger: &mut Ledger| {
            let mut standing = ledger.standing(9_000);
            standing.sort_by_key(|one| one.group.0);
            let told = |one: &Standing| (one.group, one.per_s, one.lent_per_s);
            standing.iter().map(told).collect::<Vec<_>>()
        };
        let loads = [load(1, ME), load(2, ME), load(3, ME)];
        ledger.begin(&loads, ME);
        ledger.assume(key(1), Some(30));
        ledger.assume(key(2), Some(60));
        ledger.note(&granted(3, 7, Why::Agreed), 1_000);
        let some = [(key(1).0, 0, 70), (key(2).0, 0, 40), (key(3).0, 7, 0)];
        assert_eq!(told(&mut ledger), some);
        assert_eq!(told(&mut ledger), some, "what stands is told again and again");
        // One owner takes all back; another's group is led from elsewhere, where nothing need be told of it.
        ledger.assume(key(1), None);
        ledger.begin(&[load(1, ME), load(3, ME)], ME);
        ledger.note(&granted(3, 0, Why::Moved), 9_500);
        let ended = [(key(1).0, 0, 0), (key(2).0, 0, 0), (key(3).0, 0, 0)];
        assert_eq!(told(&mut ledger), ended);
        assert_eq!(told(&mut ledger), [], "once");
        ledger.assume(key(1), Some(90));
        assert_eq!(told(&mut ledger), [(key(1).0, 0, 10)]);
    }
}
