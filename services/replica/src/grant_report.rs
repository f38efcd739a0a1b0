//! Grants and commitments of groups whose heads are here, as operators see them. Pure.

use std::collections::{HashMap, HashSet};

use quorate_burst::exchange::{self, GrantReason, Granted, GroupEpoch, GroupLoad};
use quorate_telemetry::burst_grants::{ChangeReason, GrantChange, GrantState, ReportedBound};
use quorate_types::cost::RESOURCES;

/// The rate that a group may use above its SLA.
#[derive(Debug, Clone, Copy)]
struct CurrentGrant {
    per_s: u64,
    since_ms: u64,
    bound: ReportedBound,
}

#[derive(Debug, Default)]
pub struct GrantReport {
    grants: HashMap<GroupEpoch, CurrentGrant>,
    /// Reservations of groups whose heads are here.
    reserved_per_s: HashMap<GroupEpoch, u64>,
    /// The part of it that they are assumed to use; not there: all of it.
    assumed_per_s: HashMap<GroupEpoch, u64>,
    /// Reported last time with a grant, or with an unused part of a reservation.
    reported: HashSet<GroupEpoch>,
}

impl GrantReport {
    /// An interval begins with these groups; `me`: this server.
    pub fn begin(&mut self, loads: &[GroupLoad], me: usize) {
        let own = loads.iter().filter(|load| load.head() == me);
        self.reserved_per_s = own.map(|load| (load.key, load.reserved_per_s)).collect();
        let reserved = &self.reserved_per_s;
        self.assumed_per_s.retain(|key, _| reserved.contains_key(key));
    }

    pub fn assume(&mut self, key: GroupEpoch, per_s: Option<u64>) {
        match per_s {
            Some(per_s) => self.assumed_per_s.insert(key, per_s),
            None => self.assumed_per_s.remove(&key),
        };
    }

    /// Requests/s before, and the change to report; a renewal is none.
    pub fn note(&mut self, granted: &Granted, at_ms: u64) -> (u64, Option<GrantChange>) {
        let Granted {
            key, per_s, reason, ..
        } = *granted;
        let before = self.grants.get(&key).copied();
        let bound = granted.bound.map(reported).unwrap_or_default();
        let since_ms = before.map_or(at_ms, |before| before.since_ms);
        match per_s {
            0 => self.grants.remove(&key),
            per_s => self.grants.insert(
                key,
                CurrentGrant {
                    per_s,
                    since_ms,
                    bound,
                },
            ),
        };
        let before_per_s = before.map_or(0, |before| before.per_s);
        let change = GrantChange {
            at_ms,
            group: key.0,
            epoch: key.1,
            per_s,
            before_per_s,
            reason: reason_of(reason),
            since_ms: (per_s > 0).then_some(since_ms),
            bound,
        };
        (before_per_s, (per_s != before_per_s).then_some(change))
    }

    /// Requests/s of all.
    pub fn granted_per_s(&self) -> u64 {
        self.grants.values().map(|grant| grant.per_s).sum()
    }

    /// The state of each group that has a grant or an unused part of its reservation. A group that ceased to have
    /// either since the last call is listed once more: others learn of an end only by that.
    pub fn states(&mut self, at_ms: u64) -> Vec<GrantState> {
        let keys: HashSet<GroupEpoch> = self
            .grants
            .keys()
            .chain(self.assumed_per_s.keys())
            .copied()
            .collect();
        let (now, ended): (HashSet<GroupEpoch>, HashSet<GroupEpoch>) = keys
            .union(&self.reported)
            .partition(|key| self.grants.contains_key(*key) || self.unused_per_s(key) > 0);
        let ended = ended.intersection(&self.reported);
        let all = now.iter().chain(ended);
        let states = all.map(|key| self.state_of(key, at_ms)).collect();
        self.reported = now;
        states
    }

    fn state_of(&self, key: &GroupEpoch, at_ms: u64) -> GrantState {
        let grant = self.grants.get(key);
        GrantState {
            at_ms,
            group: key.0,
            epoch: key.1,
            per_s: grant.map_or(0, |grant| grant.per_s),
            since_ms: grant.map(|grant| grant.since_ms),
            bound: grant.map(|grant| grant.bound).unwrap_or_default(),
            unused_per_s: self.unused_per_s(key),
        }
    }

    fn unused_per_s(&self, key: &GroupEpoch) -> u64 {
        let reserved = self.reserved_per_s.get(key).copied().unwrap_or(0);
        let assumed = self.assumed_per_s.get(key).copied().unwrap_or(u64::MAX);
        reserved.saturating_sub(assumed)
    }
}

fn reported(bound: exchange::GrantBound) -> ReportedBound {
    ReportedBound {
        bounded_by: RESOURCES.get(bound.resource).copied(),
        bounded_by_server: u32::try_from(bound.server).ok(),
    }
}

fn reason_of(reason: GrantReason) -> ChangeReason {
    match reason {
        GrantReason::Agreed => ChangeReason::Agreed,
        GrantReason::Unwanted => ChangeReason::Unwanted,
        GrantReason::Lapsed => ChangeReason::Lapsed,
        GrantReason::Recalled => ChangeReason::Recalled,
        GrantReason::Moved => ChangeReason::Moved,
    }
}

#[cfg(test)]
mod tests {
    use quorate_burst::demand::MeasuredRates;
    use quorate_burst::problem::ReplicaCost;
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;

    const ME: usize = 1;

    fn key(n: u128) -> GroupEpoch {
        (GroupId(Uuid::from_u128(n)), 3)
    }

    fn load(n: u128, head: usize) -> GroupLoad {
        let replica = ReplicaCost {
            server: head,
            cost: [1, 0, 0],
        };
        GroupLoad {
            key: key(n),
            replicas: vec![replica],
            reserved_per_s: 100,
            reserved: vec![[100, 0, 0]],
            measured: MeasuredRates::default(),
        }
    }

    fn granted(n: u128, per_s: u64, reason: GrantReason) -> Granted {
        let bound = exchange::GrantBound {
            server: 5,
            resource: 2,
        };
        Granted {
            key: key(n),
            per_s,
            until: 0,
            reason,
            bound: (per_s > 0).then_some(bound),
        }
    }

    #[test]
    fn a_change_says_since_when_and_what_bounds_it_and_a_renewal_is_none() {
        let mut report = GrantReport::default();
        let (before, change) = report.note(&granted(1, 40, GrantReason::Agreed), 1_000);
        let change = change.unwrap();
        assert_eq!(
            (before, change.before_per_s, change.since_ms),
            (0, 0, Some(1_000))
        );
        assert_eq!(change.bound.bounded_by, Some("storage_io"));
        assert_eq!(change.bound.bounded_by_server, Some(5));
        assert_eq!(
            report.note(&granted(1, 40, GrantReason::Agreed), 2_000),
            (40, None)
        );
        let change = report
            .note(&granted(1, 60, GrantReason::Agreed), 3_000)
            .1
            .unwrap();
        assert_eq!(
            (change.before_per_s, change.since_ms),
            (40, Some(1_000)),
            "without a break"
        );
        assert_eq!(report.granted_per_s(), 60);
        let change = report
            .note(&granted(1, 0, GrantReason::Recalled), 4_000)
            .1
            .unwrap();
        assert_eq!(
            (change.per_s, change.since_ms, change.bound),
            (0, None, ReportedBound::default())
        );
        let change = report.note(&granted(1, 5, GrantReason::Agreed), 5_000).1.unwrap();
        assert_eq!(change.since_ms, Some(5_000), "there was a break");
    }

    #[test]
    fn states_are_of_grants_and_of_unused_reservations_here() {
        let mut report = GrantReport::default();
        report.begin(&[load(1, ME), load(2, ME), load(3, ME), load(4, 9)], ME);
        for (n, assumed) in [(1, Some(30)), (2, Some(100)), (3, None), (4, Some(0))] {
            report.assume(key(n), assumed);
        }
        report.note(&granted(3, 7, GrantReason::Agreed), 1_000);
        let mut states = report.states(9_000);
        states.sort_by_key(|one| one.group.0);
        let reported: Vec<_> = states
            .iter()
            .map(|one| (one.group, one.per_s, one.unused_per_s))
            .collect();
        assert_eq!(reported, [(key(1).0, 0, 70), (key(3).0, 7, 0)]);
        assert_eq!((states[1].at_ms, states[1].since_ms), (9_000, Some(1_000)));
    }

    #[test]
    fn a_grant_that_ended_is_reported_once_more_as_zero() {
        let mut report = GrantReport::default();
        let reported = |report: &mut GrantReport| {
            let mut states = report.states(9_000);
            states.sort_by_key(|one| one.group.0);
            let reported = |one: &GrantState| (one.group, one.per_s, one.unused_per_s);
            states.iter().map(reported).collect::<Vec<_>>()
        };
        let loads = [load(1, ME), load(2, ME), load(3, ME)];
        report.begin(&loads, ME);
        report.assume(key(1), Some(30));
        report.assume(key(2), Some(60));
        report.note(&granted(3, 7, GrantReason::Agreed), 1_000);
        let some = [(key(1).0, 0, 70), (key(2).0, 0, 40), (key(3).0, 7, 0)];
        assert_eq!(reported(&mut report), some);
        assert_eq!(reported(&mut report), some, "a state is reported again and again");
        // One owner takes all back; another's group has its head elsewhere, where nothing need be reported of it.
        report.assume(key(1), None);
        report.begin(&[load(1, ME), load(3, ME)], ME);
        report.note(&granted(3, 0, GrantReason::Moved), 9_500);
        let ended = [(key(1).0, 0, 0), (key(2).0, 0, 0), (key(3).0, 0, 0)];
        assert_eq!(reported(&mut report), ended);
        assert_eq!(reported(&mut report), [], "once");
        report.assume(key(1), Some(90));
        assert_eq!(reported(&mut report), [(key(1).0, 0, 10)]);
    }
}
