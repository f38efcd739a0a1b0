//! The probing window of one resource, and its phases (Pulsar §4.3, Figure 8).
//!
//! The estimate lies between `low`, which was served, and `high`, which was too much or was never tried. It rises to the middle
//! between the two as long as it is used and nothing is congested. *Congestion* is either of two signals, three intervals in a
//! row: the throughput is below the estimate although the resource is saturated; or guarantees are missed.
//!
//! Two things differ from the paper, which has no access to its appliances. Congestion is only believed of a resource that is
//! saturated itself. And a saturated resource shows its capacity by what it serves: the window closes around that at once instead
//! of by halves, and the estimate follows its mean.

use crate::reading::{Reading, Saturation};

/// Readings in a row that show the same, before anything is concluded.
const CONSISTENT: u32 = 3;
/// A window that is narrower than this part of the upper bound, in thousandths, is found out.
const STABLE_PERMILLE: u64 = 10;
/// A throughput that differs from the estimate by more than this part is another. Throughput varies by half of it.
const OTHER_PERMILLE: u64 = 100;
/// An estimate of which less than this part is used says nothing about more.
const IN_USE_PERMILLE: u64 = 900;
/// After congestion, this part of the throughput is worth probing above it.
const ABOVE_SERVED_PERMILLE: u64 = 100;
/// Other requests than when the estimate settled, by their average cost (the paper's 10 %).
const WORKLOAD_PERMILLE: f64 = 100.0;
/// While saturated, the estimate follows what is served by this part of the difference.
const FOLLOW_PERMILLE: u64 = 200;
/// α of Equation 7 in 1/s: the part of the additional outstanding tokens by which the estimate falls.
const ALPHA_PER_S: f64 = 0.1;
/// While stable, one reading moves the estimate by no more than this part.
const MOVE_PERMILLE: u64 = 20;
/// After so many readings that say nothing, what was found out is forgotten.
const FORGET_READINGS: u32 = 300;

/// Bounds of an estimate, in tokens/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Taken for granted until measured: what admission promises.
    pub start_per_s: u64,
    /// Never more than this: what the operator stated.
    pub most_per_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rises by halves of the window, while it is used.
    Increasing,
    /// Fell to what was served.
    Reverted,
    /// Guarantees are missed: nothing is tried until they are met.
    Waiting,
    /// The window is narrow; the estimate follows small changes.
    Stable,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Increasing => "increasing",
            Phase::Reverted => "reverted",
            Phase::Waiting => "waiting",
            Phase::Stable => "stable",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    pub per_s: u64,
    pub phase: Phase,
    /// A saturated resource has shown it. Otherwise it is no more than an assumption.
    pub is_measured: bool,
}

#[derive(Debug, Clone)]
pub struct Estimator {
    bounds: Bounds,
    /// The window: minW and maxW.
    low: u64,
    high: u64,
    estimate: Estimate,
    congested: Streak,
    exceeded: Streak,
    missed: Streak,
    roomy: Streak,
    other_workload: Streak,
    /// Throughput in this reading and in the one before. A change may have come in the middle of the first of a streak.
    served: [u64; 2],
    settled: Option<Settled>,
    unconfirmed: u32,
}

/// The resource as it was when the stable phase began.
#[derive(Debug, Clone, Copy)]
struct Settled {
    /// O_s
    outstanding: u64,
    request: f64,
}

impl Settled {
    fn of(reading: &Reading) -> Self {
        Self {
            outstanding: reading.outstanding,
            request: reading.request,
        }
    }
}

/// Readings in a row that show something.
#[derive(Debug, Clone, Copy, Default)]
struct Streak(u32);

impl Streak {
    fn note(&mut self, shows: bool) {
        self.0 = if shows { self.0 + 1 } else { 0 };
    }

    /// Concluded once: the next streak begins anew.
    fn take(&mut self) -> bool {
        let is_consistent = self.0 >= CONSISTENT;
        if is_consistent {
            self.0 = 0;
        }
        is_consistent
    }
}

impl Estimator {
    pub fn new(bounds: Bounds) -> Self {
        let start = bounds.start_per_s.min(bounds.most_per_s);
        let mut new = Self {
            bounds,
            low: start,
            high: bounds.most_per_s,
            estimate: Estimate {
                per_s: start,
                phase: Phase::Increasing,
                is_measured: false,
            },
            congested: Streak::default(),
            exceeded: Streak::default(),
            missed: Streak::default(),
            roomy: Streak::default(),
            other_workload: Streak::default(),
            served: [0; 2],
            settled: None,
            unconfirmed: 0,
        };
        new.settle_if_narrow();
        new
    }

    pub fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// Other bounds: the operator promises another share. A measured estimate stays as far as it fits.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        if bounds == self.bounds {
            return;
        }
        let before = self.estimate;
        *self = Self::new(bounds);
        if before.is_measured {
            self.estimate = before;
            self.estimate.per_s = before.per_s.min(bounds.most_per_s);
            (self.low, self.high) = (self.estimate.per_s, bounds.most_per_s.max(self.estimate.per_s));
        }
    }

    /// Takes in the reading of the interval that has just ended.
    pub fn observe(&mut self, reading: &Reading) -> Estimate {
        self.note(reading);
        if self.congested.take() {
            self.revert_to_served(reading);
        } else if self.missed.take() {
            self.high = self.estimate.per_s;
            self.estimate.per_s = self.low;
            self.set_phase(Phase::Waiting);
        } else {
            match self.estimate.phase {
                Phase::Increasing => self.increase(reading),
                Phase::Waiting if reading.misses_guarantees => {
                    // That is no search: what a saturated resource serves is its capacity.
                    if reading.saturation == Saturation::Saturated && self.estimate.is_measured {
                        self.follow_served(reading);
                    }
                }
                Phase::Reverted if reading.misses_guarantees => self.set_phase(Phase::Waiting),
                Phase::Reverted | Phase::Waiting => {
                    self.set_phase(Phase::Increasing);
                    self.settle_if_narrow();
                }
                Phase::Stable => self.hold(reading),
            }
        }
        let (low, high, per_s) = (self.low, self.high, self.estimate.per_s);
        assert!(low <= per_s && per_s <= high && high <= self.bounds.most_per_s);
        self.estimate
    }

    fn note(&mut self, reading: &Reading) {
        let is_saturated = reading.saturation == Saturation::Saturated;
        let is_congested = is_saturated && reading.used_per_s < less(self.estimate.per_s, OTHER_PERMILLE);
        self.served = [reading.used_per_s, self.served[0]];
        self.congested.note(is_congested);
        self.exceeded
            .note(reading.used_per_s > more(self.estimate.per_s, OTHER_PERMILLE));
        let may_be_why = reading.saturation > Saturation::Slack;
        self.missed.note(reading.misses_guarantees && may_be_why);
        self.unconfirmed = if is_saturated || self.is_used(reading) {
            0
        } else {
            self.unconfirmed + 1
        };
        if self.unconfirmed >= FORGET_READINGS {
            *self = Self::new(self.bounds);
        }
        // A served rate can be served, whoever let it through.
        if self.exceeded.take() {
            let served = self.served();
            self.estimate.per_s = self.estimate.per_s.max(served);
            self.low = self.estimate.per_s;
            self.high = self.high.max(self.estimate.per_s);
        }
    }

    /// The mean throughput of the last two readings.
    fn served(&self) -> u64 {
        let [now, before] = self.served.map(|served| served.min(self.bounds.most_per_s));
        now / 2 + before / 2
    }

    /// The throughput signal: what was served is the capacity.
    fn revert_to_served(&mut self, reading: &Reading) {
        let served = self.served();
        self.high = more(served, ABOVE_SERVED_PERMILLE)
            .min(self.estimate.per_s)
            .max(served);
        self.low = served;
        self.estimate.per_s = served;
        self.estimate.is_measured = true;
        self.set_phase(if reading.misses_guarantees {
            Phase::Waiting
        } else {
            Phase::Reverted
        });
    }

    fn increase(&mut self, reading: &Reading) {
        if reading.saturation == Saturation::Saturated {
            if self.congested.0 == 0 {
                // It serves just what it is asked for: there is no more to find.
                self.low = self.estimate.per_s;
                self.high = self.estimate.per_s;
                self.estimate.is_measured = true;
                self.settle(reading);
                self.follow_served(reading);
            }
            return;
        }
        if !self.is_used(reading) {
            return;
        }
        self.low = self.estimate.per_s;
        if self.is_narrow() {
            return self.settle(reading);
        }
        self.estimate.per_s = self.low + (self.high - self.low) / 2;
    }

    /// Equation 7, and the reasons to search again.
    fn hold(&mut self, reading: &Reading) {
        let settled = *self.settled.get_or_insert(Settled::of(reading));
        let is_used = self.is_used(reading);
        let is_other = reading.request > 0.0
            && settled.request > 0.0
            && (reading.request / settled.request - 1.0).abs() * 1e3 > WORKLOAD_PERMILLE;
        self.other_workload.note(is_other);
        self.roomy
            .note(is_used && reading.saturation == Saturation::Slack);
        if self.roomy.take() || self.other_workload.take() {
            self.high = self.bounds.most_per_s;
            self.set_phase(Phase::Increasing);
            self.settle_if_narrow();
            return self.increase(reading);
        }
        if settled.request <= 0.0 && reading.request > 0.0 {
            self.settle(reading);
        }
        if reading.saturation == Saturation::Saturated {
            self.estimate.is_measured |= self.congested.0 == 0;
            if self.estimate.is_measured {
                self.follow_served(reading);
            }
        } else if self.estimate.is_measured {
            match reading.implied_per_s {
                Some(implied) if reading.saturation == Saturation::Between => self.follow_busy(implied),
                None if is_used => self.follow_outstanding(reading, settled),
                _ => {}
            }
        }
    }

    /// A saturated resource shows its capacity, but for the variation between intervals.
    fn follow_served(&mut self, reading: &Reading) {
        let (per_s, served) = (self.estimate.per_s, reading.used_per_s);
        // More is another capacity, or nothing: the next readings will tell.
        let most = part(per_s, OTHER_PERMILLE);
        let part = |difference: u64| part(difference.min(most), FOLLOW_PERMILLE);
        self.move_to(if served < per_s {
            per_s - part(per_s - served)
        } else {
            per_s + part(served - per_s)
        });
    }

    /// A processor that is nearly saturated shows what it would serve.
    fn follow_busy(&mut self, implied_per_s: u64) {
        let per_s = self.estimate.per_s;
        self.move_to(implied_per_s.clamp(less(per_s, MOVE_PERMILLE), more(per_s, MOVE_PERMILLE)));
    }

    /// Equation 7.
    fn follow_outstanding(&mut self, reading: &Reading, settled: Settled) {
        let per_s = self.estimate.per_s;
        let most = part(per_s, MOVE_PERMILLE) as f64;
        let more = settled.outstanding as f64 - reading.outstanding as f64;
        self.move_to((per_s as f64 + (ALPHA_PER_S * more).clamp(-most, most)) as u64);
    }

    fn move_to(&mut self, per_s: u64) {
        self.estimate.per_s = per_s.min(self.bounds.most_per_s);
        self.low = self.low.min(self.estimate.per_s);
        self.high = self.high.max(self.estimate.per_s);
    }

    fn is_used(&self, reading: &Reading) -> bool {
        reading.used_per_s >= part(self.estimate.per_s, IN_USE_PERMILLE)
    }

    fn is_narrow(&self) -> bool {
        self.high - self.low <= self.bounds.most_per_s / 1_000 * STABLE_PERMILLE
    }

    fn settle_if_narrow(&mut self) {
        if self.is_narrow() {
            self.set_phase(Phase::Stable);
        }
    }

    fn settle(&mut self, reading: &Reading) {
        self.set_phase(Phase::Stable);
        self.settled = Some(Settled::of(reading));
    }

    fn set_phase(&mut self, phase: Phase) {
        self.estimate.phase = phase;
        self.settled = None;
        (self.roomy, self.other_workload) = (Streak::default(), Streak::default());
    }
}

fn less(per_s: u64, permille: u64) -> u64 {
    per_s - part(per_s, permille)
}

fn more(per_s: u64, permille: u64) -> u64 {
    per_s.saturating_add(part(per_s, permille))
}

/// `permille` is at most 1 000.
fn part(per_s: u64, permille: u64) -> u64 {
    (u128::from(per_s) * u128::from(permille) / 1_000) as u64
}
