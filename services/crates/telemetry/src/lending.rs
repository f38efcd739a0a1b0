//! What was lent to groups above their SLAs and called back, with the reason, on its way to Redis
//! (`docs/internals/telemetry.md`). Pure.

use std::collections::VecDeque;

use quorate_types::limits::{TELEMETRY_LENDING_MAX, TELEMETRY_RECORDS_PER_ENTRY_MAX};
use quorate_types::{Epoch, GroupId};
use serde::Serialize;

/// Why what a group may use above its SLA changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
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

/// What keeps a group from more: a server of its chain had no more of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Bound {
    /// One of [`quorate_types::cost::RESOURCES`]. Neither is told where it has all that it wants.
    pub bounded_by: Option<&'static str>,
    pub bounded_by_server: Option<u32>,
}

/// A decision of the server that has the group's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    pub at_ms: u64,
    pub group: GroupId,
    pub epoch: Epoch,
    /// Requests of the declared size each second, above the SLA.
    pub per_s: u64,
    pub before_per_s: u64,
    pub reason: Reason,
    /// Since when something is lent to it without a break; nothing is: `None`.
    pub since_ms: Option<u64>,
    #[serde(flatten)]
    pub bound: Bound,
}

/// What is so of a group whose head is here, told again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Standing {
    pub at_ms: u64,
    pub group: GroupId,
    pub epoch: Epoch,
    pub per_s: u64,
    pub since_ms: Option<u64>,
    #[serde(flatten)]
    pub bound: Bound,
    /// Of its reservation, what others may use.
    pub lent_per_s: u64,
}

/// An entry of `quorate:lending`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LendingEntry {
    pub v: u8,
    pub server_id: u32,
    /// Changes before these that found no room since the process started.
    pub dropped: u64,
    pub changes: Vec<Change>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<Standing>,
    /// Which telling `now` is of.
    #[serde(skip)]
    telling: u64,
}

/// Changes that wait to be sent, oldest first. Beyond the bound the oldest are dropped and counted.
#[derive(Debug, Default)]
pub struct LendingBook {
    waiting: VecDeque<Change>,
    dropped: u64,
    /// Of the last telling, what was not sent yet.
    standing: Vec<Standing>,
    telling: u64,
    /// And not taken since.
    is_told: bool,
}

impl LendingBook {
    pub fn note(&mut self, change: Change) {
        if self.waiting.len() == TELEMETRY_LENDING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(change);
    }

    /// All that is so: instead of what was so before, sent or not.
    pub fn tell(&mut self, mut standing: Vec<Standing>) {
        // Those who borrow first, and of too many always the same.
        standing.sort_by_key(|one| (one.per_s == 0, one.group.0));
        standing.truncate(TELEMETRY_LENDING_MAX);
        self.standing = standing;
        self.telling += 1;
        self.is_told = true;
    }

    /// The last telling, if it was not taken: also that nothing is so any more.
    pub fn take_standing(&mut self) -> Option<Vec<Standing>> {
        std::mem::take(&mut self.is_told).then(|| std::mem::take(&mut self.standing))
    }

    pub fn take(&mut self) -> Vec<Change> {
        self.waiting.drain(..).collect()
    }

    /// The oldest, as many as one entry holds; they stay until [`LendingBook::sent`].
    pub fn pending(&self, server_id: u32) -> Option<LendingEntry> {
        let oldest = self.waiting.iter().take(TELEMETRY_RECORDS_PER_ENTRY_MAX);
        let changes: Vec<Change> = oldest.copied().collect();
        // Behind all changes: of two that are told of a group the later counts.
        let room = if changes.is_empty() {
            TELEMETRY_RECORDS_PER_ENTRY_MAX
        } else {
            0
        };
        let now: Vec<Standing> = self.standing.iter().take(room).copied().collect();
        (!changes.is_empty() || !now.is_empty()).then_some(LendingEntry {
            v: 1,
            server_id,
            dropped: self.dropped,
            changes,
            now,
            telling: self.telling,
        })
    }

    /// The entry was taken. Meanwhile its oldest changes may have been dropped here.
    pub fn sent(&mut self, entry: &LendingEntry) {
        let dropped_since = (self.dropped - entry.dropped) as usize;
        let left = entry.changes.len().saturating_sub(dropped_since);
        self.waiting.drain(..left);
        if entry.telling == self.telling {
            self.standing.drain(..entry.now.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(per_s: u64) -> Change {
        Change {
            at_ms: 1_732_112_345_000,
            group: GroupId(Default::default()),
            epoch: 3,
            per_s,
            before_per_s: 7,
            reason: Reason::Recalled,
            since_ms: None,
            bound: Bound::default(),
        }
    }

    fn standing(per_s: u64) -> Standing {
        Standing {
            at_ms: 1_732_112_345_000,
            group: GroupId(Default::default()),
            epoch: 3,
            per_s,
            since_ms: Some(1_732_112_340_000),
            bound: Bound {
                bounded_by: Some("network"),
                bounded_by_server: Some(5),
            },
            lent_per_s: 9,
        }
    }

    #[test]
    fn all_that_is_so_is_told_behind_what_changed_and_only_the_last_telling() {
        let mut book = LendingBook::default();
        assert_eq!(book.take_standing(), None);
        book.tell((0..300).map(standing).collect());
        book.note(change(1));
        let changed = book.pending(2).unwrap();
        assert_eq!((changed.changes.len(), changed.now.len()), (1, 0));
        book.sent(&changed);
        let first = book.pending(2).unwrap();
        assert_eq!(
            (first.changes.len(), first.now.len()),
            (0, TELEMETRY_RECORDS_PER_ENTRY_MAX)
        );
        book.sent(&first);
        let rest = book.pending(2).unwrap();
        assert_eq!(rest.now[0].per_s, TELEMETRY_RECORDS_PER_ENTRY_MAX as u64 + 1);
        assert_eq!(rest.now.last().unwrap().per_s, 0, "who only lends comes last");
        // What is told anew while that is on its way is sent whole.
        book.tell(vec![standing(77)]);
        book.sent(&rest);
        assert_eq!(book.pending(2).unwrap().now, [standing(77)]);
        book.tell((0..2 * TELEMETRY_LENDING_MAX as u64).map(standing).collect());
        assert_eq!(book.take_standing().unwrap().len(), TELEMETRY_LENDING_MAX);
        assert_eq!(book.pending(2), None);
        book.tell(Vec::new());
        assert_eq!(
            (book.take_standing(), book.take_standing()),
            (Some(Vec::new()), None)
        );
    }

    #[test]
    fn what_is_not_sent_stays_in_order_and_bounded() {
        let mut book = LendingBook::default();
        for per_s in 0..TELEMETRY_LENDING_MAX as u64 + 10 {
            book.note(change(per_s));
        }
        let first = book.pending(2).unwrap();
        assert_eq!((first.dropped, first.changes[0].per_s), (10, 10));
        assert_eq!(first.changes.len(), TELEMETRY_RECORDS_PER_ENTRY_MAX);
        assert_eq!(book.pending(2).unwrap(), first, "until it was sent");
        // Three of those on their way lose their places meanwhile.
        (0..3).for_each(|n| book.note(change(90_000 + n)));
        book.sent(&first);
        let next = book.pending(2).unwrap();
        assert_eq!(next.changes[0].per_s, 10 + TELEMETRY_RECORDS_PER_ENTRY_MAX as u64);
        let (mut last, mut entries) = (0, 0);
        while let Some(entry) = book.pending(2) {
            last = entry.changes.last().unwrap().per_s;
            book.sent(&entry);
            entries += 1;
            assert!(entries <= TELEMETRY_LENDING_MAX / TELEMETRY_RECORDS_PER_ENTRY_MAX);
        }
        assert_eq!(last, 90_002);
    }

    #[test]
    fn an_entry_is_what_the_documentation_says() {
        let mut book = LendingBook::default();
        book.note(change(1_200));
        let json = serde_json::to_value(book.pending(2).unwrap()).unwrap();
        let group = "00000000-0000-0000-0000-000000000000";
        assert_eq!(
            json,
            serde_json::json!({"v": 1, "server_id": 2, "dropped": 0, "changes": [{"at_ms": 1_732_112_345_000u64,
                "group": group, "epoch": 3, "per_s": 1_200, "before_per_s": 7, "reason": "recalled",
                "since_ms": null, "bounded_by": null, "bounded_by_server": null}]})
        );
        book.take();
        book.tell(vec![standing(1_200)]);
        let json = serde_json::to_value(book.pending(2).unwrap()).unwrap();
        assert_eq!(
            json["now"],
            serde_json::json!([{"at_ms": 1_732_112_345_000u64, "group": group, "epoch": 3, "per_s": 1_200,
                "since_ms": 1_732_112_340_000u64, "bounded_by": "network", "bounded_by_server": 5, "lent_per_s": 9}])
        );
    }
}
