//! The part of an estimate that admission goes by: what has been found out for long, in coarse steps.
//!
//! Admission outlives an interval, and each change of what it goes by is an entry of the coordinators' log.

use std::collections::VecDeque;

use crate::estimator::Estimate;

/// A capacity is low once it has been low in so many readings in a row.
const READINGS: usize = 30;
const STEP_PERMILLE: u16 = 50;
/// All of the stated capacity.
pub const WHOLE_PERMILLE: u16 = 1_000;

/// The highest of the last readings, in thousandths of the stated capacity. So it falls slowly and rises at once.
#[derive(Debug, Clone, Default)]
pub struct Lasting {
    last: VecDeque<u16>,
}

impl Lasting {
    pub fn note(&mut self, estimate: &Estimate, stated_per_s: u64) {
        if self.last.len() == READINGS {
            self.last.pop_front();
        }
        self.last.push_back(permille(estimate, stated_per_s));
    }

    pub fn permille(&self) -> u16 {
        if self.last.len() < READINGS {
            return WHOLE_PERMILLE;
        }
        self.last.iter().copied().max().unwrap_or(WHOLE_PERMILLE)
    }
}

/// Rounded to the nearest step; at least one, so that a server is never without anything.
fn permille(estimate: &Estimate, stated_per_s: u64) -> u16 {
    if !estimate.is_measured {
        return WHOLE_PERMILLE;
    }
    let steps = u128::from(WHOLE_PERMILLE / STEP_PERMILLE);
    let stated = u128::from(stated_per_s.max(1));
    let found = (u128::from(estimate.per_s) * steps + stated / 2) / stated;
    u16::try_from(found.clamp(1, steps)).expect("few steps") * STEP_PERMILLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::Phase;

    fn estimate(per_s: u64, is_measured: bool) -> Estimate {
        Estimate {
            per_s,
            phase: Phase::Stable,
            is_measured,
        }
    }

    #[test]
    fn a_low_capacity_must_last_and_a_higher_one_counts_at_once() {
        let mut lasting = Lasting::default();
        for _ in 1..READINGS {
            lasting.note(&estimate(410, true), 1_000);
            assert_eq!(lasting.permille(), WHOLE_PERMILLE);
        }
        lasting.note(&estimate(440, true), 1_000);
        assert_eq!(lasting.permille(), 450);
        lasting.note(&estimate(700, true), 1_000);
        assert_eq!(lasting.permille(), 700);
        lasting.note(&estimate(100, false), 1_000);
        assert_eq!(lasting.permille(), WHOLE_PERMILLE, "an assumption says nothing");
    }

    #[test]
    fn nothing_is_promised_of_no_server() {
        assert_eq!(permille(&estimate(0, true), 1_000), STEP_PERMILLE);
        assert_eq!(permille(&estimate(9_000, true), 1_000), WHOLE_PERMILLE);
        assert_eq!(permille(&estimate(5, true), 0), WHOLE_PERMILLE);
    }
}
