//! Burst capacity of groups, granted and reclaimed, with the reason, on its way to Redis
//! (`docs/internals/telemetry.md`). Pure.

use std::collections::VecDeque;

use quorate_types::limits::{TELEMETRY_GRANTS_MAX, TELEMETRY_RECORDS_PER_ENTRY_MAX};
use quorate_types::{Epoch, GroupId};
use serde::Serialize;

/// The reason why a group's burst capacity changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeReason {
    /// All its servers committed to it.
    Agreed,
    /// The group wants no more.
    Unwanted,
    /// The grant was not renewed in time: servers did not answer.
    Lapsed,
    /// An owner on one of its servers returned, and its capacity was reclaimed.
    Recalled,
    /// The group has another epoch, or another head.
    Moved,
}

/// The bound of a group's burst capacity: a server of its chain had no more of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ReportedBound {
    /// One of [`quorate_types::cost::RESOURCES`]. Both fields are null when the group has all that it wants.
    pub bounded_by: Option<&'static str>,
    pub bounded_by_server: Option<u32>,
}

/// A change decided by the server that has the group's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GrantChange {
    pub at_ms: u64,
    pub group: GroupId,
    pub epoch: Epoch,
    /// Requests of the declared size each second, above the SLA.
    pub per_s: u64,
    pub before_per_s: u64,
    pub reason: ChangeReason,
    /// The time since which it has burst capacity without a break; `None`: it has none.
    pub since_ms: Option<u64>,
    #[serde(flatten)]
    pub bound: ReportedBound,
}

/// The present burst capacity of a group whose head is here, reported at intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GrantState {
    pub at_ms: u64,
    pub group: GroupId,
    pub epoch: Epoch,
    pub per_s: u64,
    pub since_ms: Option<u64>,
    #[serde(flatten)]
    pub bound: ReportedBound,
    /// The part of its reservation that others may use.
    #[serde(rename = "lent_per_s")]
    pub unused_per_s: u64,
}

/// An entry of `quorate:lending`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantsEntry {
    pub v: u8,
    pub server_id: u32,
    /// Earlier changes that were dropped since the process started.
    pub dropped: u64,
    pub changes: Vec<GrantChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<GrantState>,
    /// The report that `now` belongs to.
    #[serde(skip)]
    report: u64,
}

/// Changes that wait to be sent, oldest first. Beyond the bound the oldest are dropped and counted.
#[derive(Debug, Default)]
pub struct UnsentGrants {
    waiting: VecDeque<GrantChange>,
    dropped: u64,
    /// The rest of the last report, which was not sent yet.
    states: Vec<GrantState>,
    report: u64,
    /// The last report was not taken yet.
    is_new: bool,
}

impl UnsentGrants {
    pub fn note(&mut self, change: GrantChange) {
        if self.waiting.len() == TELEMETRY_GRANTS_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(change);
    }

    /// Replaces the report of all groups, sent or not.
    pub fn replace_states(&mut self, mut states: Vec<GrantState>) {
        // Groups with burst capacity go first, and a bounded report always has the same groups.
        states.sort_by_key(|one| (one.per_s == 0, one.group.0));
        states.truncate(TELEMETRY_GRANTS_MAX);
        self.states = states;
        self.report += 1;
        self.is_new = true;
    }

    /// The last report, if it was not taken; an empty one, too.
    pub fn take_states(&mut self) -> Option<Vec<GrantState>> {
        std::mem::take(&mut self.is_new).then(|| std::mem::take(&mut self.states))
    }

    pub fn take(&mut self) -> Vec<GrantChange> {
        self.waiting.drain(..).collect()
    }

    /// The oldest changes, as many as fit one entry; they stay until [`UnsentGrants::sent`].
    pub fn pending(&self, server_id: u32) -> Option<GrantsEntry> {
        let oldest = self.waiting.iter().take(TELEMETRY_RECORDS_PER_ENTRY_MAX);
        let changes: Vec<GrantChange> = oldest.copied().collect();
        // The report follows all changes: the later of two reports about a group counts.
        let room = if changes.is_empty() {
            TELEMETRY_RECORDS_PER_ENTRY_MAX
        } else {
            0
        };
        let now: Vec<GrantState> = self.states.iter().take(room).copied().collect();
        (!changes.is_empty() || !now.is_empty()).then_some(GrantsEntry {
            v: 1,
            server_id,
            dropped: self.dropped,
            changes,
            now,
            report: self.report,
        })
    }

    /// Redis took the entry. Its oldest changes may have been dropped here meanwhile.
    pub fn sent(&mut self, entry: &GrantsEntry) {
        let dropped_since = (self.dropped - entry.dropped) as usize;
        let left = entry.changes.len().saturating_sub(dropped_since);
        self.waiting.drain(..left);
        if entry.report == self.report {
            self.states.drain(..entry.now.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(per_s: u64) -> GrantChange {
        GrantChange {
            at_ms: 1_732_112_345_000,
            group: GroupId(Default::default()),
            epoch: 3,
            per_s,
            before_per_s: 7,
            reason: ChangeReason::Recalled,
            since_ms: None,
            bound: ReportedBound::default(),
        }
    }

    fn state(per_s: u64) -> GrantState {
        GrantState {
            at_ms: 1_732_112_345_000,
            group: GroupId(Default::default()),
            epoch: 3,
            per_s,
            since_ms: Some(1_732_112_340_000),
            bound: ReportedBound {
                bounded_by: Some("network"),
                bounded_by_server: Some(5),
            },
            unused_per_s: 9,
        }
    }

    #[test]
    fn the_last_report_alone_follows_all_changes() {
        let mut unsent = UnsentGrants::default();
        assert_eq!(unsent.take_states(), None);
        unsent.replace_states((0..300).map(state).collect());
        unsent.note(change(1));
        let changed = unsent.pending(2).unwrap();
        assert_eq!((changed.changes.len(), changed.now.len()), (1, 0));
        unsent.sent(&changed);
        let first = unsent.pending(2).unwrap();
        assert_eq!(
            (first.changes.len(), first.now.len()),
            (0, TELEMETRY_RECORDS_PER_ENTRY_MAX)
        );
        unsent.sent(&first);
        let rest = unsent.pending(2).unwrap();
        assert_eq!(rest.now[0].per_s, TELEMETRY_RECORDS_PER_ENTRY_MAX as u64 + 1);
        assert_eq!(
            rest.now.last().unwrap().per_s,
            0,
            "groups without burst capacity come last"
        );
        // A new report during the sending of the old one is sent whole.
        unsent.replace_states(vec![state(77)]);
        unsent.sent(&rest);
        assert_eq!(unsent.pending(2).unwrap().now, [state(77)]);
        unsent.replace_states((0..2 * TELEMETRY_GRANTS_MAX as u64).map(state).collect());
        assert_eq!(unsent.take_states().unwrap().len(), TELEMETRY_GRANTS_MAX);
        assert_eq!(unsent.pending(2), None);
        unsent.replace_states(Vec::new());
        assert_eq!(
            (unsent.take_states(), unsent.take_states()),
            (Some(Vec::new()), None)
        );
    }

    #[test]
    fn unsent_changes_stay_in_order_and_bounded() {
        let mut unsent = UnsentGrants::default();
        for per_s in 0..TELEMETRY_GRANTS_MAX as u64 + 10 {
            unsent.note(change(per_s));
        }
        let first = unsent.pending(2).unwrap();
        assert_eq!((first.dropped, first.changes[0].per_s), (10, 10));
        assert_eq!(first.changes.len(), TELEMETRY_RECORDS_PER_ENTRY_MAX);
        assert_eq!(unsent.pending(2).unwrap(), first, "until it was sent");
        // Three changes of the entry on its way are dropped meanwhile.
        (0..3).for_each(|n| unsent.note(change(90_000 + n)));
        unsent.sent(&first);
        let next = unsent.pending(2).unwrap();
        assert_eq!(next.changes[0].per_s, 10 + TELEMETRY_RECORDS_PER_ENTRY_MAX as u64);
        let (mut last, mut entries) = (0, 0);
        while let Some(entry) = unsent.pending(2) {
            last = entry.changes.last().unwrap().per_s;
            unsent.sent(&entry);
            entries += 1;
            assert!(entries <= TELEMETRY_GRANTS_MAX / TELEMETRY_RECORDS_PER_ENTRY_MAX);
        }
        assert_eq!(last, 90_002);
    }

    #[test]
    fn an_entry_has_the_documented_shape() {
        let mut unsent = UnsentGrants::default();
        unsent.note(change(1_200));
        let json = serde_json::to_value(unsent.pending(2).unwrap()).unwrap();
        let group = "00000000-0000-0000-0000-000000000000";
        assert_eq!(
            json,
            serde_json::json!({"v": 1, "server_id": 2, "dropped": 0, "changes": [{"at_ms": 1_732_112_345_000u64,
                "group": group, "epoch": 3, "per_s": 1_200, "before_per_s": 7, "reason": "recalled",
                "since_ms": null, "bounded_by": null, "bounded_by_server": null}]})
        );
        unsent.take();
        unsent.replace_states(vec![state(1_200)]);
        let json = serde_json::to_value(unsent.pending(2).unwrap()).unwrap();
        assert_eq!(
            json["now"],
            serde_json::json!([{"at_ms": 1_732_112_345_000u64, "group": group, "epoch": 3, "per_s": 1_200,
                "since_ms": 1_732_112_340_000u64, "bounded_by": "network", "bounded_by_server": 5, "lent_per_s": 9}])
        );
    }
}
