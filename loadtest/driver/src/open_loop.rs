//! An open loop: entries are due at fixed times.

use quorate_types::Micros;

/// Waiting entries are counted one by one up to this number, and in groups beyond.
const WAITING_STEPS: u64 = 100_000;

/// Entries due, taken and without an outcome.
#[derive(Debug, Clone, Copy)]
pub struct OpenLoop {
    pub interval_ns: u64,
    /// Entries due at once; the next burst is due so many intervals later.
    pub burst: u64,
    pub began_us: Micros,
    /// Appends that the client took.
    pub count: u64,
    pub outstanding: u32,
    pub outstanding_max: u32,
}

impl OpenLoop {
    pub fn due_us(&self, number: u64) -> Micros {
        let first = number - number % self.burst;
        self.began_us + (u128::from(self.interval_ns) * u128::from(first) / 1_000) as Micros
    }

    /// Waits of outstanding and due entries: each wait, and the number of entries that have waited about as long.
    /// Outcomes come in the order of appends, except failures, so the last entries are outstanding.
    pub fn waiting(&self, now: Micros) -> impl Iterator<Item = (Micros, u64)> {
        let first = self.count - u64::from(self.outstanding);
        let due = u128::from(now.saturating_sub(self.began_us)) * 1_000 / u128::from(self.interval_ns.max(1));
        let end = (due as u64 / self.burst + 1)
            .saturating_mul(self.burst)
            .max(self.count);
        let step = (end - first).div_ceil(WAITING_STEPS).max(1);
        let open = *self;
        let each = (first..end).step_by(step as usize);
        each.map(move |number| (now.saturating_sub(open.due_us(number)), step.min(end - number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_due_at_once() {
        let open = OpenLoop {
            interval_ns: 1_000_000,
            burst: 16,
            began_us: 5_000_000,
            count: 0,
            outstanding: 0,
            outstanding_max: u32::MAX,
        };
        let due = [0, 15, 16, 31, 32].map(|number| open.due_us(number) - open.began_us);
        assert_eq!(due, [0, 0, 16_000, 16_000, 32_000]);
        let waiting = |after_us| {
            open.waiting(open.began_us + after_us)
                .map(|(_, count)| count)
                .sum::<u64>()
        };
        assert_eq!([0, 15_999, 16_000].map(waiting), [16, 16, 32]);
    }
}
