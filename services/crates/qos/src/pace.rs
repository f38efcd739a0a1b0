//! A token bucket of bytes for work that may wait: the bytes in it are given out, in part if need be.

use quorate_types::Micros;

/// Levels count millionths of a byte, so that no rate drifts however often a caller asks.
const SCALE: u128 = 1_000_000;

/// Over any time `t` no more than `rate · t + burst` bytes are given out.
#[derive(Debug, Clone)]
pub struct Pace {
    bytes_per_s: u64,
    burst_bytes: u64,
    level: u128,
    updated: Micros,
}

impl Pace {
    /// An empty bucket that holds at most `burst_bytes`.
    pub fn new(bytes_per_s: u64, burst_bytes: u64, now: Micros) -> Self {
        assert!(burst_bytes > 0, "a bucket holds something");
        Self {
            bytes_per_s,
            burst_bytes,
            level: 0,
            updated: now,
        }
    }

    /// The whole bytes in the bucket. A clock that went back adds nothing.
    pub fn available(&mut self, now: Micros) -> u64 {
        let elapsed = u128::from(now.saturating_sub(self.updated));
        self.updated = self.updated.max(now);
        let full = u128::from(self.burst_bytes) * SCALE;
        self.level = (self.level + elapsed * u128::from(self.bytes_per_s)).min(full);
        (self.level / SCALE) as u64
    }

    /// Takes up to `wanted` bytes, and returns how many.
    pub fn take(&mut self, now: Micros, wanted: u64) -> u64 {
        let taken = self.available(now).min(wanted);
        self.level -= u128::from(taken) * SCALE;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_rate_and_burst_is_given_out() {
        let mut pace = Pace::new(1_000_000, 5_000, 0);
        assert_eq!(pace.take(0, 10), 0, "it begins empty");
        let mut given = 0;
        for now in 1..=100_000 {
            given += pace.take(now, u64::MAX);
        }
        assert_eq!(given, 100_000);
        assert_eq!(
            pace.take(10_000_000, u64::MAX),
            5_000,
            "a pause is not made up for"
        );
    }

    #[test]
    fn fractions_of_a_byte_are_kept() {
        let mut pace = Pace::new(3, 10, 0);
        let given: u64 = (1..=1_000).map(|ms| pace.take(ms * 1_000, u64::MAX)).sum();
        assert_eq!(given, 3);
    }

    #[test]
    fn unwanted_bytes_stay_and_a_clock_that_goes_back_adds_nothing() {
        let mut pace = Pace::new(1_000_000, 1_000, 0);
        assert_eq!(pace.take(500, 200), 200);
        assert_eq!(pace.available(500), 300);
        assert_eq!(pace.available(400), 300);
        assert_eq!(pace.available(600), 400);
    }
}
