//! A server's parts that may hang, watched from a thread that does not: shards that must tick, and operations of the
//! journal that must end.
//!
//! A part hangs while its mark stays the same. Time counts only as far as the watch itself went on. A process that was
//! stopped, or got no processor, finds its parts still as they were, and that is no hang of theirs.

use quorate_types::Micros;
use quorate_types::limits::HANG_STEP_MS_MAX;
use quorate_types::planted::{self, Bug};

/// The last sign of a part: say the number of its tick or of its operation. `None`: it has nothing to do.
pub type Mark = Option<u64>;

#[derive(Debug, Default)]
pub struct HangWatch {
    parts: Vec<Part>,
    sampled_us: Option<Micros>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Part {
    mark: Mark,
    still_us: Micros,
}

impl HangWatch {
    /// Looks at all parts, always in the same order. To be called every `HANG_SAMPLE_MS`, on a clock that never goes back.
    pub fn sample(&mut self, now: Micros, marks: impl IntoIterator<Item = Mark>) {
        let passed_us = now.saturating_sub(self.sampled_us.unwrap_or(now));
        let step_us = if planted::on(Bug::PauseCountsAsHang) {
            passed_us
        } else {
            passed_us.min(HANG_STEP_MS_MAX * 1_000)
        };
        self.sampled_us = Some(now);
        for (n, mark) in marks.into_iter().enumerate() {
            if n == self.parts.len() {
                self.parts.push(Part::default());
            }
            let part = &mut self.parts[n];
            let is_still = mark.is_some() && mark == part.mark;
            part.still_us = if is_still { part.still_us + step_us } else { 0 };
            part.mark = mark;
        }
    }

    /// The longest hang that lasts.
    pub fn hung_ms(&self) -> u64 {
        let longest = self.parts.iter().map(|part| part.still_us).max();
        longest.unwrap_or(0) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_US: Micros = 50_000;

    /// Samples with these marks at their usual times, from a time on.
    fn run(watch: &mut HangWatch, from: Micros, marks: &[[Mark; 2]]) -> Micros {
        for (n, marks) in (1..).zip(marks) {
            watch.sample(from + n * SAMPLE_US, *marks);
        }
        from + marks.len() as Micros * SAMPLE_US
    }

    #[test]
    fn a_shard_that_does_not_tick_hangs_until_it_ticks() {
        let mut watch = HangWatch::default();
        let at = run(&mut watch, 0, &[[Some(7), None]; 41]);
        assert_eq!(watch.hung_ms(), 2_000);
        run(&mut watch, at, &[[Some(8), None]]);
        assert_eq!(watch.hung_ms(), 0);
    }

    #[test]
    fn the_longest_of_all_parts_counts() {
        let mut watch = HangWatch::default();
        let at = run(&mut watch, 0, &[[None, Some(3)]; 11]);
        assert_eq!(watch.hung_ms(), 500);
        run(&mut watch, at, &[[Some(1), Some(3)], [Some(1), Some(4)]]);
        assert_eq!(watch.hung_ms(), 50);
    }

    #[test]
    fn a_journal_that_does_nothing_or_one_operation_after_the_other_does_not_hang() {
        let mut watch = HangWatch::default();
        let at = run(&mut watch, 0, &[[Some(1), None]; 100].map(|_| [None, None]));
        assert_eq!(watch.hung_ms(), 0);
        // Syncs of 100 ms, one after the other.
        let syncs: Vec<[Mark; 2]> = (0..100).map(|n| [None, Some(n / 2)]).collect();
        run(&mut watch, at, &syncs);
        assert!(watch.hung_ms() <= 100, "{}", watch.hung_ms());
    }

    #[test]
    fn a_process_that_stood_still_has_not_hung() {
        let mut watch = HangWatch::default();
        let at = run(&mut watch, 0, &[[Some(1), Some(9)]; 3]);
        watch.sample(at + 60_000_000, [Some(1), Some(9)]);
        assert_eq!(watch.hung_ms(), 100 + HANG_STEP_MS_MAX);
    }
}
