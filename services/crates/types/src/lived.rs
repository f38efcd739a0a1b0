//! Time as a process lived it. A machine that stood still heard nobody, and that is no silence of the others.

/// Times are in the unit of the clock that it follows. Only waiting depends on it: a process that is late loses no safety.
#[derive(Debug)]
pub struct Lived {
    clock: u64,
    lived: u64,
    step_max: u64,
}

impl Lived {
    /// A step of the clock counts as at most `step_max`.
    pub fn new(clock: u64, step_max: u64) -> Self {
        let lived = clock;
        Self {
            clock,
            lived,
            step_max,
        }
    }

    /// Goes on to a time of the clock. Returns the lived one.
    pub fn advance(&mut self, clock: u64) -> u64 {
        self.lived = self.at(clock);
        self.clock = self.clock.max(clock);
        self.lived
    }

    /// The lived time at a time of the clock.
    pub fn at(&self, clock: u64) -> u64 {
        self.lived + clock.saturating_sub(self.clock).min(self.step_max)
    }
}

#[cfg(test)]
mod tests {
    use super::Lived;

    #[test]
    fn a_pause_counts_as_the_longest_step() {
        let mut lived = Lived::new(1_000, 100);
        assert_eq!(lived.advance(1_050), 1_050);
        assert_eq!(lived.at(1_060), 1_060);
        assert_eq!(lived.advance(9_000), 1_150);
        assert_eq!(lived.advance(9_050), 1_200);
        assert_eq!(lived.advance(8_000), 1_200, "a clock that goes back stands still");
        assert_eq!(lived.advance(9_050), 1_200);
    }
}
