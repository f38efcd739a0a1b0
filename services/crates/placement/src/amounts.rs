//! Exact integer amounts of a server's resources: sums and differences never drift.

use quorate_types::cost::{ResourceVector, TOKENS_PER_UNIT};
use serde::{Deserialize, Serialize};

/// CPU in nanoseconds, network in bytes, storage IO in thousandths of an operation, each second. These are whole units
/// of token buckets ([`quorate_types::cost::AppendCost`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(pub [u64; 3]);

/// A million cores, a petabyte a second: the sum over ten thousand servers still fits 64 bits.
const MAX: f64 = 1e15;

impl Amounts {
    pub const ZERO: Amounts = Amounts([0; 3]);

    /// The promisable part of a server's capacity: `safety_factor` of it, rounded down.
    pub fn of_capacity(capacity: ResourceVector, safety_factor: f64) -> Self {
        let all = capacity.to_array();
        Self(std::array::from_fn(|i| {
            (all[i] * TOKENS_PER_UNIT[i] * safety_factor)
                .clamp(0.0, MAX)
                .floor() as u64
        }))
    }

    pub fn to_resources(self) -> ResourceVector {
        ResourceVector::from_array(std::array::from_fn(|i| self.0[i] as f64 / TOKENS_PER_UNIT[i]))
    }

    pub fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].saturating_add(other.0[i])))
    }

    /// Panics when there is less than `other`: no caller releases more than it charged.
    pub fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| {
            self.0[i]
                .checked_sub(other.0[i])
                .unwrap_or_else(|| panic!("{other:?} exceeds {self:?}"))
        }))
    }

    /// The rest of `self` after `other`, at least zero.
    pub fn left_after(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].saturating_sub(other.0[i])))
    }

    /// The larger of each component.
    pub fn at_least(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].max(other.0[i])))
    }

    /// Constraint 1: every component fits.
    pub fn fits(self, free: Self) -> bool {
        (0..3).all(|i| self.0[i] <= free.0[i])
    }

    pub fn sum(all: impl IntoIterator<Item = Amounts>) -> Amounts {
        all.into_iter().fold(Amounts::ZERO, Amounts::plus)
    }

    /// Equation 2: the largest component as a share of `total`, and its index.
    pub fn dominant_share(self, total: Amounts) -> (f64, usize) {
        let share = |i: usize| match (self.0[i], total.0[i]) {
            (0, _) => 0.0,
            (_, 0) => f64::INFINITY,
            (own, total) => own as f64 / total as f64,
        };
        (0..3)
            .map(|i| (share(i), i))
            .fold((0.0, 0), |best, next| if next.0 > best.0 { next } else { best })
    }
}
