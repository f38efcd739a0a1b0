//! Trust after trouble: what was found in trouble is trusted again when it has been quiet for long enough. A first trouble is
//! often a short one, so the wait begins with a part of `well_ms`, and doubles each time up to all of it.

use std::collections::BTreeMap;

/// The first wait is this part of the longest.
const FIRST_DIVISOR: u64 = 12;
/// Troubles are forgotten after so many of the longest waits.
const FORGOTTEN_AFTER: u64 = 10;

/// Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Trust<K> {
    well_ms: u64,
    quiet: BTreeMap<K, Quiet>,
    past: BTreeMap<K, Past>,
}

#[derive(Debug, Clone, Copy)]
struct Quiet {
    since_ms: u64,
    wait_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Past {
    troubles: u32,
    last_ms: u64,
}

impl<K: Ord + Copy> Trust<K> {
    pub fn new(well_ms: u64) -> Self {
        Self {
            well_ms,
            quiet: BTreeMap::new(),
            past: BTreeMap::new(),
        }
    }

    /// Goes on with the waits of these alone: others are in trouble again, or trusted.
    pub fn keep(&mut self, is_quiet: impl Fn(&K) -> bool, now_ms: u64) {
        self.quiet.retain(|key, _| is_quiet(key));
        let forgotten_ms = FORGOTTEN_AFTER * self.well_ms;
        self.past
            .retain(|_, past| now_ms.saturating_sub(past.last_ms) < forgotten_ms);
    }

    /// It is quiet, and known to have been in trouble. Whether it is to be trusted again.
    pub fn returns(&mut self, key: K, now_ms: u64) -> bool {
        let quiet = match self.quiet.get(&key) {
            Some(quiet) => *quiet,
            None => self.begin(key, now_ms),
        };
        now_ms.saturating_sub(quiet.since_ms) >= quiet.wait_ms
    }

    fn begin(&mut self, key: K, now_ms: u64) -> Quiet {
        let none = Past {
            troubles: 0,
            last_ms: now_ms,
        };
        let past = self.past.entry(key).or_insert(none);
        let first_ms = self.well_ms / FIRST_DIVISOR;
        let doubled_ms = first_ms.saturating_mul(1 << past.troubles.min(16));
        (past.troubles, past.last_ms) = (past.troubles + 1, now_ms);
        let quiet = Quiet {
            since_ms: now_ms,
            wait_ms: doubled_ms.min(self.well_ms),
        };
        self.quiet.insert(key, quiet);
        quiet
    }
}

#[cfg(test)]
mod tests {
    use super::Trust;

    /// The time until trust returns.
    fn wait_ms(trust: &mut Trust<u8>, from_ms: u64) -> u64 {
        let mut now_ms = from_ms;
        while !trust.returns(1, now_ms) {
            now_ms += 1_000;
        }
        trust.keep(|_| false, now_ms);
        now_ms - from_ms
    }

    #[test]
    fn the_wait_doubles_up_to_the_longest_and_begins_anew_long_after() {
        let mut trust = Trust::new(60_000);
        let waits: Vec<u64> = (0..6).map(|n| wait_ms(&mut trust, n * 100_000)).collect();
        assert_eq!(waits, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
        trust.keep(|_| false, 5_000_000);
        assert_eq!(wait_ms(&mut trust, 5_000_000), 5_000);
    }

    #[test]
    fn a_new_trouble_ends_the_wait() {
        let mut trust = Trust::new(60_000);
        assert!(!trust.returns(1, 0));
        trust.keep(|_| false, 4_000);
        assert!(!trust.returns(1, 5_000));
        assert!(!trust.returns(1, 14_000));
        assert!(trust.returns(1, 15_000));
    }
}
