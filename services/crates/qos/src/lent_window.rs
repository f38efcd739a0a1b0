//! How much of a group may be under way for its lent requests to pass. They are a scavenger, as in LEDBAT (RFC 6817):
//! whatever becomes scarce – processors, disks, links, on any server of the chain – batches take longer than they did,
//! and lent requests wait then, before those within reservations must.
//!
//! The time that a batch takes, from its order to its commitment, is measured of one batch at a time. The least of the
//! last while is what it takes when nothing is in its way.

use quorate_types::Micros;
use quorate_types::limits::{LENT_DELAY_MS, LENT_LEAST_KEPT_MS};

const DELAY_US: Micros = LENT_DELAY_MS * 1_000;
const KEPT_US: Micros = LENT_LEAST_KEPT_MS * 1_000;

#[derive(Debug)]
pub struct LentWindow {
    /// A batch that is under way, by index, and when it was ordered.
    probe: Option<(u64, Micros)>,
    /// The least time that a batch took in this span, and in the one before.
    least_us: [Micros; 2],
    began: Micros,
}

impl Default for LentWindow {
    fn default() -> Self {
        Self {
            probe: None,
            least_us: [Micros::MAX; 2],
            began: 0,
        }
    }
}

impl LentWindow {
    /// The batch has been ordered.
    pub fn ordered(&mut self, index: u64, now: Micros) {
        self.probe.get_or_insert((index, now));
    }

    /// Whether somebody waits for [`LentWindow::committed`].
    pub fn is_measuring(&self) -> bool {
        self.probe.is_some()
    }

    /// Batches up to this one are committed.
    pub fn committed(&mut self, index: u64, now: Micros) {
        if let Some((measured, ordered)) = self.probe
            && measured <= index
        {
            self.probe = None;
            if now.saturating_sub(self.began) >= KEPT_US {
                self.least_us = [Micros::MAX, self.least_us[0]];
                self.began = now;
            }
            self.least_us[0] = self.least_us[0].min(now.saturating_sub(ordered));
        }
    }

    /// Another epoch: what is under way may never be committed under its index, and the chain is another.
    pub fn begin_anew(&mut self) {
        *self = Self::default();
    }

    /// Whether lent requests may pass beside so much that is under way: no more than passes, at all of the group's rate,
    /// in the least time that a batch takes and a little more. A group that has nothing under way is in nobody's way.
    pub fn lets_pass(&self, under_way_bytes: u64, bytes_per_s: u64) -> bool {
        let least_us = self.least_us[0].min(self.least_us[1]);
        if least_us == Micros::MAX || under_way_bytes == 0 {
            return true;
        }
        let span_us = least_us.saturating_add(DELAY_US);
        u128::from(under_way_bytes) * 1_000_000 < u128::from(bytes_per_s) * u128::from(span_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(times_us: &[Micros]) -> LentWindow {
        let mut window = LentWindow::default();
        let mut now = 0;
        for (index, time_us) in times_us.iter().enumerate() {
            window.ordered(index as u64, now);
            now += time_us;
            window.committed(index as u64, now);
        }
        window
    }

    #[test]
    fn as_much_is_under_way_as_passes_in_the_least_time_and_a_little_more() {
        let window = measured(&[3_000, 1_000, 9_000]);
        let most = 1_000_000 / 1_000 * (1 + LENT_DELAY_MS);
        assert!(window.lets_pass(most - 1, 1_000_000));
        assert!(!window.lets_pass(most, 1_000_000));
        assert!(window.lets_pass(0, 0), "in nobody's way");
        assert!(
            LentWindow::default().lets_pass(u64::MAX, 1),
            "nothing is known yet"
        );
    }

    #[test]
    fn one_batch_at_a_time_is_measured() {
        let mut window = LentWindow::default();
        window.ordered(7, 0);
        window.ordered(8, 5_000);
        window.committed(6, 6_000);
        assert!(window.is_measuring());
        window.committed(8, 9_000);
        assert!(!window.is_measuring());
        assert_eq!(window.least_us[0], 9_000);
        window.begin_anew();
        window.committed(9, 10_000);
        assert_eq!(window.least_us, [Micros::MAX; 2]);
    }

    #[test]
    fn a_chain_that_has_become_slower_for_good_is_not_held_to_what_it_was() {
        let mut window = measured(&[100]);
        let mut now = 100;
        for index in 1..=2 * KEPT_US / 20_000 + 2 {
            assert!(!window.lets_pass(20_000, 1_000_000) || now > KEPT_US);
            window.ordered(index, now);
            now += 20_000;
            window.committed(index, now);
        }
        assert!(window.lets_pass(20_000, 1_000_000));
    }
}
