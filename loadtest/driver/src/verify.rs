//! Reading a log back: every entry at its offset, every run's entries once and in order.

use std::collections::{BTreeMap, BTreeSet};

use quorate_client::{Client, Handle, Options};
use serde::Serialize;

use crate::entry::identity;
use crate::marks;
use crate::runs::{NumberRange, Run};

/// Findings of one log. It is sound if no entry is missing, doubled or out of order.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    pub first_offset: u64,
    pub end_offset: u64,
    pub entries: u64,
    pub runs: usize,
    /// Entries that the load generator did not write.
    #[serde(rename = "foreign")]
    pub unknown: u64,
    /// Offsets without an entry, before offsets with one.
    pub offsets_missing: u64,
    /// Numbers of a run that were acknowledged and are not there. For a run without a result: numbers before a later
    /// one that is there.
    pub missing: u64,
    /// Entries that occur again.
    pub doubled: u64,
    /// Entries behind a later one of their run.
    pub disordered: u64,
    /// The first few faults.
    pub examples: Vec<String>,
}

/// More examples would add nothing.
const EXAMPLES_MAX: usize = 8;

impl Findings {
    pub fn is_sound(&self) -> bool {
        self.offsets_missing == 0 && self.missing == 0 && self.doubled == 0 && self.disordered == 0
    }

    fn note(&mut self, example: String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(example);
        }
    }
}

/// Judges the entries of a log, given in order.
pub struct Judge {
    findings: Findings,
    next_offset: u64,
    seen: BTreeMap<u64, Seen>,
}

/// Numbers of a run that were seen.
#[derive(Default)]
struct Seen {
    /// Numbers in order.
    ranges: Vec<NumberRange>,
    /// Numbers behind a later one.
    late: BTreeSet<u64>,
}

impl Seen {
    fn has(&self, number: u64) -> bool {
        let before = self.ranges.partition_point(|range| range.first <= number);
        let is_in_order = before > 0 && number < self.ranges[before - 1].end();
        is_in_order || self.late.contains(&number)
    }

    /// All numbers seen, in order.
    fn all(&self) -> Vec<NumberRange> {
        let mut all = Vec::new();
        let mut late = self.late.iter().copied().peekable();
        for range in &self.ranges {
            while let Some(number) = late.next_if(|number| *number < range.first) {
                NumberRange::extend(&mut all, number, 1);
            }
            NumberRange::extend(&mut all, range.first, range.count);
        }
        all
    }
}

impl Judge {
    pub fn new(first_offset: u64) -> Self {
        let findings = Findings {
            first_offset,
            end_offset: first_offset,
            ..Findings::default()
        };
        Self {
            findings,
            next_offset: first_offset,
            seen: BTreeMap::new(),
        }
    }

    pub fn see(&mut self, offset: u64, data: &[u8]) {
        self.findings.offsets_missing += offset.saturating_sub(self.next_offset);
        self.next_offset = offset + 1;
        self.findings.entries += 1;
        self.findings.end_offset = self.next_offset;
        let Some((run, number)) = identity(data) else {
            self.findings.unknown += 1;
            return;
        };
        let seen = self.seen.entry(run).or_default();
        let Some(last) = seen.ranges.last().filter(|last| number < last.end()) else {
            NumberRange::extend(&mut seen.ranges, number, 1);
            return;
        };
        let after = last.end() - 1;
        let what = if seen.has(number) {
            self.findings.doubled += 1;
            "once more"
        } else {
            seen.late.insert(number);
            self.findings.disordered += 1;
            "out of order"
        };
        let example = format!("offset {offset}: number {number} of run {run:016x} {what}, after {after}");
        self.findings.note(example);
    }

    /// `expected`: the runs with their acknowledged numbers.
    pub fn end(mut self, expected: &[Run]) -> Result<Findings, String> {
        let mut acked = BTreeMap::new();
        for run in expected {
            let id = u64::from_str_radix(&run.run, 16).map_err(|_| format!("{:?} is not a run", run.run))?;
            acked.insert(id, run);
        }
        let is_trimmed = self.findings.first_offset > 0;
        for (run, Run { acked, marks, .. }) in &acked {
            let seen = self.seen.get(run).map(Seen::all).unwrap_or_default();
            // A trim removes entries acknowledged below the log's first offset: the beginning of a run, or all of one
            // that ended early.
            let begin = if is_trimmed {
                let first_seen = seen.first().map_or(u64::MAX, |first| first.first);
                let left = marks::first_at(marks, self.findings.first_offset);
                left.map_or(first_seen, |left| left.min(first_seen))
            } else {
                0
            };
            for NumberRange { first, count } in missing(acked, &seen, begin) {
                self.findings.missing += count;
                let last = first + count - 1;
                let example =
                    format!("numbers {first} to {last} of run {run:016x} were acknowledged, and are missing");
                self.findings.note(example);
            }
        }
        for (_, seen) in self.seen.iter().filter(|(run, _)| !acked.contains_key(run)) {
            let seen = seen.all();
            let begin = if is_trimmed { seen[0].first } else { 0 };
            let numbers = seen.last().expect("a run was seen by an entry").end() - begin;
            self.findings.missing += numbers - seen.iter().map(|range| range.count).sum::<u64>();
        }
        self.findings.runs = self.seen.len();
        Ok(self.findings)
    }
}

/// Numbers from `begin` on that are in `acked` and not in `seen`, which must be in order.
fn missing(acked: &[NumberRange], seen: &[NumberRange], begin: u64) -> Vec<NumberRange> {
    let (mut missing, mut seen) = (Vec::new(), seen.iter().peekable());
    let mut acked = acked.to_vec();
    acked.sort_unstable_by_key(|range| range.first);
    for range in acked {
        let mut next = range.first.max(begin);
        while next < range.end() {
            match seen.peek() {
                Some(found) if found.end() <= next => {
                    seen.next();
                }
                Some(found) if found.first <= next => next = found.end(),
                found => {
                    let end = found.map_or(range.end(), |found| found.first.min(range.end()));
                    missing.push(NumberRange {
                        first: next,
                        count: end - next,
                    });
                    next = end;
                }
            }
        }
    }
    missing
}

/// Reads the group's log from its beginning to the commit offset at the start.
pub async fn read_back(handle: Handle, expected: &[Run]) -> Result<Findings, String> {
    let expected: Vec<Run> = expected
        .iter()
        .filter(|run| run.group == handle.group_id)
        .cloned()
        .collect();
    let client = Client::open(handle, Options::default());
    let status = client.status().await.map_err(|error| error.to_string())?;
    let mut judge = Judge::new(status.trim_offset);
    let mut tail = client.tail(status.trim_offset);
    let mut next = status.trim_offset;
    while next < status.commit_offset {
        let entries = tail.next_entries().await.map_err(|error| error.to_string())?;
        for entry in entries
            .iter()
            .take_while(|entry| entry.offset < status.commit_offset)
        {
            judge.see(entry.offset, &entry.data);
        }
        next = entries.last().map_or(next, |entry| entry.offset + 1);
    }
    drop(tail);
    client.close().await;
    judge.end(&expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::EntryWriter;
    use bytes::BytesMut;

    fn entries(run: u64, count: usize) -> Vec<Vec<u8>> {
        let mut writer = EntryWriter::new(run, 16);
        let write = |_| {
            let mut buffer = BytesMut::new();
            writer.put(&mut buffer);
            buffer.to_vec()
        };
        (0..count).map(write).collect()
    }

    fn judge(first_offset: u64, log: &[(u64, &Vec<u8>)], expected: &[Run]) -> Findings {
        let mut judge = Judge::new(first_offset);
        for (offset, data) in log {
            judge.see(*offset, data);
        }
        judge.end(expected).unwrap()
    }

    fn run(run: &str, entries: u64) -> Run {
        run_acked(run, entries, &[(0, entries)])
    }

    fn run_acked(run: &str, entries: u64, acked: &[(u64, u64)]) -> Run {
        let range = |&(first, count)| NumberRange { first, count };
        Run {
            run: run.to_string(),
            group: quorate_types::GroupId(Default::default()),
            entries,
            acked: acked.iter().map(range).collect(),
            marks: Vec::new(),
        }
    }

    #[test]
    fn two_runs_mixed_are_sound() {
        let (a, b) = (entries(1, 3), entries(2, 2));
        let log = [(0, &a[0]), (1, &b[0]), (2, &a[1]), (3, &a[2]), (4, &b[1])];
        let expected = [run("1", 3), run("2", 2)];
        let found = judge(0, &log, &expected);
        assert!(
            found.is_sound() && found.runs == 2 && found.entries == 5,
            "{found:?}"
        );
        let lost = judge(0, &log[..4], &expected);
        assert_eq!((lost.missing, lost.is_sound()), (1, false));
    }

    #[test]
    fn entries_without_an_acknowledgement_may_be_there_or_not() {
        let a = entries(1, 6);
        // 1 was refused, 4 and 5 are unknown; 4 was ordered.
        let expected = [run_acked("1", 6, &[(0, 1), (2, 2)])];
        let log = [(0, &a[0]), (1, &a[2]), (2, &a[3]), (3, &a[4])];
        assert!(judge(0, &log, &expected).is_sound());
        assert_eq!(judge(0, &log[..2], &expected).missing, 1, "3 was acknowledged");
        assert_eq!(judge(0, &log[2..3], &expected).missing, 2, "0 and 2 were");
        assert_eq!(judge(0, &[], &expected).missing, 3);
        assert!(
            judge(7, &[(7, &a[2]), (8, &a[3])], &expected).is_sound(),
            "0 was trimmed"
        );
    }

    #[test]
    fn a_trimmed_log_must_have_the_entries_acknowledged_behind_its_beginning() {
        let (a, b) = (entries(1, 4), entries(2, 4));
        let marked = |run: &str, offset| {
            let marks = (0..4).map(|number| marks::Mark {
                number,
                offset: offset + number,
            });
            Run {
                marks: marks.collect(),
                ..run_acked(run, 4, &[(0, 4)])
            }
        };
        let expected = [marked("1", 0), marked("2", 4)];
        let log: Vec<_> = [&a[2], &a[3], &b[0], &b[1], &b[2], &b[3]]
            .into_iter()
            .enumerate()
            .collect();
        let at = |offset: u64| {
            (0..)
                .zip(log.clone())
                .map(move |(n, (_, data))| (offset + n, data))
        };
        let whole: Vec<_> = at(2).collect();
        assert!(judge(2, &whole, &expected).is_sound());
        assert_eq!(
            judge(2, &whole[..2], &expected).missing,
            4,
            "all of the second run"
        );
        assert_eq!(
            judge(2, &whole[1..2], &expected).missing,
            5,
            "and one of the first"
        );
        assert_eq!(judge(8, &[], &expected).missing, 0, "all was trimmed");
        let behind = [(4, &b[2]), (5, &b[3])];
        assert_eq!(
            judge(4, &behind, &expected).missing,
            2,
            "its beginning was not trimmed"
        );
    }

    #[test]
    fn gaps_doubles_and_disorder_are_found() {
        let a = entries(1, 4);
        assert_eq!(judge(0, &[(0, &a[0]), (1, &a[2])], &[]).missing, 1);
        let doubled = judge(0, &[(0, &a[0]), (1, &a[0])], &[]);
        assert_eq!((doubled.doubled, doubled.is_sound()), (1, false));
        let late = judge(0, &[(0, &a[1]), (1, &a[0]), (2, &a[0])], &[run("1", 2)]);
        assert_eq!((late.disordered, late.doubled, late.missing), (1, 1, 0));
        assert_eq!(judge(0, &[(0, &a[1])], &[]).missing, 1, "the beginning is lost");
        assert!(
            judge(9, &[(9, &a[1]), (10, &a[2])], &[]).is_sound(),
            "the beginning was trimmed"
        );
        assert_eq!(judge(0, &[(0, &a[0]), (2, &a[1])], &[]).offsets_missing, 1);
        assert_eq!(judge(0, &[(0, &b"short".to_vec())], &[]).unknown, 1);
    }
}
