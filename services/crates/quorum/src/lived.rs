//! Time as a member lived it. A machine that stood still heard nobody, and that is no silence of the others.

/// A step of the clock counts as at most so many heartbeats: ticks come at least as often.
const STEP_HEARTBEATS_MAX: u64 = 2;

/// Only waiting depends on it: a member that is late loses no safety.
#[derive(Debug)]
pub struct Lived {
    clock_ms: u64,
    lived_ms: u64,
    step_max_ms: u64,
}

impl Lived {
    pub fn new(clock_ms: u64, heartbeat_ms: u64) -> Self {
        Self {
            clock_ms,
            lived_ms: clock_ms,
            step_max_ms: STEP_HEARTBEATS_MAX * heartbeat_ms,
        }
    }

    /// Goes on to a time of the clock. Returns the lived one, in milliseconds.
    pub fn advance(&mut self, clock_ms: u64) -> u64 {
        self.lived_ms = self.at(clock_ms);
        self.clock_ms = self.clock_ms.max(clock_ms);
        self.lived_ms
    }

    /// The lived time at a time of the clock.
    pub fn at(&self, clock_ms: u64) -> u64 {
        self.lived_ms + clock_ms.saturating_sub(self.clock_ms).min(self.step_max_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::Lived;

    #[test]
    fn a_pause_counts_as_two_heartbeats() {
        let mut lived = Lived::new(1_000, 50);
        assert_eq!(lived.advance(1_050), 1_050);
        assert_eq!(lived.at(1_060), 1_060);
        assert_eq!(lived.advance(9_000), 1_150);
        assert_eq!(lived.advance(9_050), 1_200);
        assert_eq!(lived.advance(8_000), 1_200, "a clock that goes back stands still");
        assert_eq!(lived.advance(9_050), 1_200);
    }
}
