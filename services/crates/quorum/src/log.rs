//! Entries since a base, and the members that they name.

use std::collections::VecDeque;

use crate::entry::{Content, Entry};
use crate::ids::{Point, Position, Term};
use crate::members::Members;

#[derive(Debug)]
pub struct Log {
    base: Point,
    entries: VecDeque<Entry>,
    /// Bytes of all entries up to each one, since the log was read.
    ends: VecDeque<usize>,
    /// The same up to the base.
    begin: usize,
    /// The members from each position on. The first one holds at the base.
    members: VecDeque<(Position, Members)>,
}

impl Log {
    pub fn new(base: Point, members: Members, entries: Vec<Entry>) -> Self {
        let mut log = Self {
            base,
            entries: VecDeque::new(),
            ends: VecDeque::new(),
            begin: 0,
            members: VecDeque::from([(base.position, members)]),
        };
        for entry in entries {
            log.push(entry);
        }
        log
    }

    pub fn push(&mut self, entry: Entry) {
        assert_eq!(entry.position, self.last().position.next(), "entries are dense");
        assert!(entry.term >= self.last().term, "terms never fall");
        self.ends.push_back(self.end() + entry.bytes());
        if let Content::Members(members) = &entry.content {
            self.members.push_back((entry.position, members.clone()));
        }
        self.entries.push_back(entry);
    }

    pub fn base(&self) -> Point {
        self.base
    }

    pub fn last(&self) -> Point {
        self.entries.back().map_or(self.base, Entry::point)
    }

    /// None: it is before the base, or after the end.
    pub fn term_at(&self, position: Position) -> Option<Term> {
        if position == self.base.position {
            return Some(self.base.term);
        }
        self.index_of(position).map(|index| self.entries[index].term)
    }

    pub fn has(&self, point: Point) -> bool {
        self.term_at(point.position) == Some(point.term)
    }

    /// The point there. The position must be in the log.
    pub fn point_at(&self, position: Position) -> Point {
        let term = self.term_at(position).expect("a position of the log");
        Point { term, position }
    }

    /// Entries after a position, at most so many bytes of them, and one at least. Empty when it has none.
    pub fn after(&self, position: Position, bytes_max: usize) -> Vec<Entry> {
        let Some(first) = self.index_of(position.next()) else {
            return Vec::new();
        };
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let is_first = bytes == 0;
            bytes += entry.bytes();
            is_first || bytes <= bytes_max
        };
        self.entries.range(first..).take_while(fits).cloned().collect()
    }

    pub fn entries_between(&self, after: Position, through: Position) -> Vec<Entry> {
        let of = |position| self.index_of(position).expect("a position of the log");
        if after >= through {
            return Vec::new();
        }
        self.entries
            .range(of(after.next())..=of(through))
            .cloned()
            .collect()
    }

    /// Bytes of entries after a position.
    pub fn bytes_after(&self, position: Position) -> usize {
        let first = self.index_of(position.next());
        first.map_or(0, |first| {
            self.end()
                - first
                    .checked_sub(1)
                    .map_or(self.begin, |before| self.ends[before])
        })
    }

    /// A point at which it may agree with a log that has another entry at `previous`. It is the end of this log, or that
    /// of the terms before the one of its entry there.
    pub fn hint(&self, previous: Point) -> Point {
        let Some(term) = self.term_at(previous.position) else {
            return self.last();
        };
        let is_earlier = |entry: &&Entry| entry.position < previous.position && entry.term < term;
        let before = self.entries.iter().rev().find(is_earlier);
        before.map_or(self.base, Entry::point)
    }

    /// The last point at or before `hint` whose term is not later: below it the two logs may agree.
    pub fn common_with(&self, hint: Point) -> Point {
        let may_agree = |entry: &&Entry| entry.position <= hint.position && entry.term <= hint.term;
        let found = self.entries.iter().rev().find(may_agree);
        found.map_or(self.base, Entry::point)
    }

    /// Entries after the position go, with the members that they named.
    pub fn cut_after(&mut self, position: Position) {
        assert!(position >= self.base.position, "the base stays");
        while self.entries.back().is_some_and(|entry| entry.position > position) {
            self.entries.pop_back();
            self.ends.pop_back();
        }
        while self.members.back().is_some_and(|(since, _)| *since > position) {
            self.members.pop_back();
        }
    }

    /// Entries up to the position go, but for the last `kept_bytes` of them.
    pub fn compact(&mut self, through: Position, kept_bytes: usize) {
        while self.end() - self.begin > kept_bytes
            && self
                .entries
                .front()
                .is_some_and(|entry| entry.position <= through)
        {
            let gone = self.entries.pop_front().expect("there is one");
            self.begin = self.ends.pop_front().expect("each entry has its end");
            self.base = gone.point();
        }
        while self
            .members
            .get(1)
            .is_some_and(|(since, _)| *since <= self.base.position)
        {
            self.members.pop_front();
        }
    }

    /// The present members: the last entry about them counts, committed or not.
    pub fn members(&self) -> &Members {
        &self.members.back().expect("the base has members").1
    }

    /// The position of the entry that named the members.
    pub fn members_since(&self) -> Position {
        self.members.back().expect("the base has members").0
    }

    /// The members at a position, and all that were named after it.
    pub fn members_from(&self, position: Position) -> impl Iterator<Item = &Members> {
        let first = self.members.iter().rposition(|(since, _)| *since <= position);
        let first = first.expect("a position behind the base");
        self.members.range(first..).map(|(_, members)| members)
    }

    pub fn members_at(&self, position: Position) -> &Members {
        let held = self.members.iter().rev().find(|(since, _)| *since <= position);
        &held.expect("a position behind the base").1
    }

    fn end(&self) -> usize {
        self.ends.back().copied().unwrap_or(self.begin)
    }

    fn index_of(&self, position: Position) -> Option<usize> {
        let index = position.0.checked_sub(self.base.position.0 + 1)? as usize;
        (index < self.entries.len()).then_some(index)
    }
}
