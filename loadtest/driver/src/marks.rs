//! Sampled offsets of a run's acknowledged entries: they show which entries must be left in a log whose beginning was
//! trimmed.

use quorate_types::Offset;
use serde::{Deserialize, Serialize};

/// Enough to tell trimmed entries from lost ones to a thousandth of a run, however long it is.
const MARKS_MAX: usize = 1_024;

/// The entry of a number was acknowledged at this offset. Within a run offsets grow with numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub number: u64,
    pub offset: Offset,
}

/// One of each `each` acknowledgements, and the last.
#[derive(Debug)]
pub struct Marks {
    kept: Vec<Mark>,
    last: Option<Mark>,
    seen: u64,
    each: u64,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            last: None,
            seen: 0,
            each: 1,
        }
    }
}

impl Marks {
    /// Entries from `first` on were acknowledged at consecutive offsets.
    pub fn acked(&mut self, first: Mark, count: u64) {
        if self.seen.is_multiple_of(self.each) {
            if self.kept.len() == MARKS_MAX {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.each *= 2;
            }
            self.kept.push(first);
        }
        self.seen += 1;
        let more = count.saturating_sub(1);
        self.last = Some(Mark {
            number: first.number + more,
            offset: first.offset + more,
        });
    }

    pub fn into_vec(mut self) -> Vec<Mark> {
        self.kept.extend(self.last);
        self.kept
    }
}

/// The number from which on a run's acknowledged entries are at `first_offset` or behind it; `None`: no mark is there.
pub fn first_at(marks: &[Mark], first_offset: Offset) -> Option<u64> {
    let at = marks.partition_point(|mark| mark.offset < first_offset);
    marks.get(at).map(|mark| mark.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_keep_few_marks_and_their_last() {
        let mut marks = Marks::default();
        for batch in 0..1_000_000_u64 {
            let first = Mark {
                number: batch * 10,
                offset: 5 + batch * 20,
            };
            marks.acked(first, 10);
        }
        let marks = marks.into_vec();
        assert!(marks.len() <= MARKS_MAX + 1, "{}", marks.len());
        assert!(marks.is_sorted_by_key(|mark| mark.number));
        let last = Mark {
            number: 9_999_999,
            offset: 5 + 999_999 * 20 + 9,
        };
        assert_eq!(marks.last(), Some(&last));
        // Half of the run was trimmed: the rest begins within two thousandths of the middle.
        let from = first_at(&marks, 5 + 500_000 * 20).unwrap();
        assert!((5_000_000..5_020_000).contains(&from), "{from}");
        assert_eq!(first_at(&marks, last.offset + 1), None);
    }
}
