//! Runs: the entries of one producer, and the numbers acknowledged.

use quorate_types::GroupId;
use serde::Serialize;

use crate::marks::Mark;

#[derive(Debug, Clone, Serialize, serde::Deserialize)]
pub struct Run {
    pub run: String,
    pub group: GroupId,
    pub entries: u64,
    /// Numbers of acknowledged entries, in order.
    #[serde(default)]
    pub acked: Vec<NumberRange>,
    /// Offsets of some acknowledged entries, in order.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// Consecutive numbers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct NumberRange {
    pub first: u64,
    pub count: u64,
}

impl NumberRange {
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Adds numbers to ranges: to the last range if they follow it, else as a new one.
    pub fn extend(ranges: &mut Vec<NumberRange>, first: u64, count: u64) {
        match ranges.last_mut() {
            Some(last) if last.end() == first => last.count += count,
            _ => ranges.push(NumberRange { first, count }),
        }
    }
}
