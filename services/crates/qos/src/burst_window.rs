//! Whether a group's burst requests may pass now, by the time that its batches take. They are a scavenger, as in LEDBAT
//! (RFC 6817). If processors, disks or links of the chain become scarce, batches take longer, and burst requests wait
//! before requests within reservations must.
//!
//! The time from a batch's order to its commitment is measured for one batch at a time. The least of the last while is
//! the time without contention.

use quorate_types::Micros;
use quorate_types::limits::{BURST_DELAY_MS, BURST_LEAST_KEPT_MS};

const DELAY_US: Micros = BURST_DELAY_MS * 1_000;
const KEPT_US: Micros = BURST_LEAST_KEPT_MS * 1_000;

#[derive(Debug)]
pub struct BurstWindow {
    /// A batch under way: its index, and the time of its order.
    probe: Option<(u64, Micros)>,
    /// Time of the last measured batch.
    last_us: Micros,
    /// The least time of a batch in this span, and in the one before.
    least_us: [Micros; 2],
    began: Micros,
}

impl Default for BurstWindow {
    fn default() -> Self {
        Self {
            probe: None,
            last_us: 0,
            least_us: [Micros::MAX; 2],
            began: 0,
        }
    }
}

impl BurstWindow {
    /// A batch has been ordered that was not in the log before.
    pub fn ordered(&mut self, index: u64, now: Micros) {
        self.probe.get_or_insert((index, now));
    }

    /// Whether a batch is measured: [`BurstWindow::committed`] must be called.
    pub fn is_measuring(&self) -> bool {
        self.probe.is_some()
    }

    /// Batches up to this one are committed.
    pub fn committed(&mut self, index: u64, now: Micros) {
        let Some((_, ordered)) = self.probe.filter(|(measured, _)| *measured <= index) else {
            return;
        };
        self.probe = None;
        self.begin_span(now);
        self.last_us = now.saturating_sub(ordered);
        self.least_us[0] = self.least_us[0].min(self.last_us);
    }

    /// Measurements of two spans ago say nothing any more.
    fn begin_span(&mut self, now: Micros) {
        let since = now.saturating_sub(self.began);
        if since >= KEPT_US {
            let before = if since < 2 * KEPT_US {
                self.least_us[0]
            } else {
                Micros::MAX
            };
            self.least_us = [Micros::MAX, before];
            self.began = now;
        }
    }

    /// Another epoch: the batch under way may never be committed under its index, and the chain is another.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Whether burst requests may pass: neither the batch under way nor the last one took much longer than the least.
    /// They always pass if nothing is under way.
    pub fn lets_pass(&self, now: Micros, is_under_way: bool) -> bool {
        let least_us = self.least_us[0].min(self.least_us[1]);
        let most_us = least_us.saturating_add(DELAY_US);
        let so_far_us = self.probe.map_or(0, |(_, ordered)| now.saturating_sub(ordered));
        !is_under_way || so_far_us.max(self.last_us) <= most_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(times_us: &[Micros]) -> BurstWindow {
        let mut window = BurstWindow::default();
        let mut now = 0;
        for (index, time_us) in times_us.iter().enumerate() {
            window.ordered(index as u64, now);
            now += time_us;
            window.committed(index as u64, now);
        }
        window
    }

    #[test]
    fn a_batch_that_takes_a_little_longer_than_the_least_holds_nothing_up() {
        for (last_us, passes) in [(1_000, true), (1_000 + DELAY_US, true), (1_001 + DELAY_US, false)] {
            let window = measured(&[1_000, last_us]);
            assert_eq!(window.lets_pass(1 << 30, true), passes, "{last_us}");
            assert!(window.lets_pass(1 << 30, false), "nothing is under way");
        }
        assert!(
            BurstWindow::default().lets_pass(1 << 30, true),
            "nothing is known yet"
        );
    }

    #[test]
    fn a_batch_that_is_still_under_way_tells_before_it_is_committed() {
        let mut window = measured(&[1_000]);
        window.ordered(1, 50_000);
        assert!(window.lets_pass(51_000 + DELAY_US, true));
        assert!(!window.lets_pass(51_001 + DELAY_US, true));
        window.committed(1, 80_000);
        assert!(!window.lets_pass(80_000, true), "while the last batch took long");
        window.ordered(2, 80_000);
        window.committed(2, 81_000);
        assert!(window.lets_pass(81_000, true));
    }

    #[test]
    fn one_batch_at_a_time_is_measured() {
        let mut window = BurstWindow::default();
        window.ordered(7, 0);
        window.ordered(8, 5_000);
        window.committed(6, 6_000);
        assert!(window.is_measuring());
        window.committed(8, 9_000);
        assert!(!window.is_measuring());
        assert_eq!(window.least_us[0], 9_000);
        window.reset();
        window.committed(9, 10_000);
        assert_eq!(window.least_us, [Micros::MAX; 2]);
    }

    #[test]
    fn a_chain_that_has_become_slower_for_good_is_not_held_to_what_it_was() {
        let mut window = measured(&[100]);
        let mut now = 100;
        for index in 1..=2 * KEPT_US / 20_000 + 2 {
            assert!(!window.lets_pass(now, true) || index == 1 || now > KEPT_US);
            window.ordered(index, now);
            now += 20_000;
            window.committed(index, now);
        }
        assert!(window.lets_pass(now, true));
    }

    #[test]
    fn measurements_before_a_long_pause_are_forgotten_at_once() {
        let mut window = measured(&[100]);
        let later = 100 + 2 * KEPT_US;
        window.ordered(1, later);
        window.committed(1, later + 20_000);
        assert!(window.lets_pass(later + 20_000, true));
    }
}
