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
}

/// An entry of `quorate:lending`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LendingEntry {
    pub v: u8,
    pub server_id: u32,
    /// Changes before these that found no room since the process started.
    pub dropped: u64,
    pub changes: Vec<Change>,
}

/// Changes that wait to be sent, oldest first. Beyond the bound the oldest are dropped and counted.
#[derive(Debug, Default)]
pub struct LendingBook {
    waiting: VecDeque<Change>,
    dropped: u64,
}

impl LendingBook {
    pub fn note(&mut self, change: Change) {
        if self.waiting.len() == TELEMETRY_LENDING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(change);
    }

    pub fn take(&mut self) -> Vec<Change> {
        self.waiting.drain(..).collect()
    }

    /// The oldest, as many as one entry holds; they stay until [`LendingBook::sent`].
    pub fn pending(&self, server_id: u32) -> Option<LendingEntry> {
        let oldest = self.waiting.iter().take(TELEMETRY_RECORDS_PER_ENTRY_MAX);
        let changes: Vec<Change> = oldest.copied().collect();
        (!changes.is_empty()).then_some(LendingEntry {
            v: 1,
            server_id,
            dropped: self.dropped,
            changes,
        })
    }

    /// The entry was taken. Meanwhile its oldest changes may have been dropped here.
    pub fn sent(&mut self, entry: &LendingEntry) {
        let dropped_since = (self.dropped - entry.dropped) as usize;
        let left = entry.changes.len().saturating_sub(dropped_since);
        self.waiting.drain(..left);
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
        }
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
                "group": group, "epoch": 3, "per_s": 1_200, "before_per_s": 7, "reason": "recalled"}]})
        );
    }
}
