//! Exact integer amounts of a server's resources: sums and differences never drift.

use quorate_types::cost::{ResourceVector, TOKENS_PER_UNIT};
use quorate_types::space::{Room, Space};
use serde::{Deserialize, Deserializer, Serialize};

/// The resources of a server: the three rates of [`ResourceVector`], then memory and disk
/// ([why](../../../../docs/decisions/2026-11-24-memory-and-disk-are-admitted.md)).
pub const RESOURCES: usize = 5;
/// Rates come first, and space behind them.
const RATES: usize = 3;

/// CPU in nanoseconds, network in bytes, storage IO in thousandths of an operation, each second. These are whole units
/// of token buckets ([`quorate_types::cost::EntryCost`]). Then memory and disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Amounts(pub [u64; RESOURCES]);

/// A million cores, a petabyte a second: the sum over ten thousand servers still fits 64 bits.
const MAX: f64 = 1e15;
/// The room of a server that does not say how much it has: everything fits, and takes no share of it.
pub const UNLIMITED: u64 = u64::MAX;

impl Amounts {
    pub const ZERO: Amounts = Amounts([0; RESOURCES]);

    /// Rates alone, without any space.
    pub fn of_rates(rates: [u64; RATES]) -> Self {
        Self::new(rates, Space::default())
    }

    pub fn new([cpu, network, storage_io]: [u64; RATES], space: Space) -> Self {
        Self([cpu, network, storage_io, space.memory_bytes, space.disk_bytes])
    }

    /// The promisable part of a server's capacity: `safety_factor` of its rates, rounded down, and all its room. A server
    /// offers no more room than it can fill; of its rates, the cost profile only estimates how much is used.
    pub fn of_capacity(capacity: ResourceVector, room: Room, safety_factor: f64) -> Self {
        let all = capacity.to_array();
        let rates = std::array::from_fn(|i| {
            (all[i] * TOKENS_PER_UNIT[i] * safety_factor)
                .clamp(0.0, MAX)
                .floor() as u64
        });
        let space = Space {
            memory_bytes: room.memory_bytes.unwrap_or(UNLIMITED),
            disk_bytes: room.disk_bytes.unwrap_or(UNLIMITED),
        };
        Self::new(rates, space)
    }

    pub fn rates(self) -> [u64; RATES] {
        std::array::from_fn(|i| self.0[i])
    }

    pub fn space(self) -> Space {
        Space {
            memory_bytes: self.0[RATES],
            disk_bytes: self.0[RATES + 1],
        }
    }

    /// The same, where [`UNLIMITED`] is unknown.
    pub fn room(self) -> Room {
        let known = |bytes: u64| (bytes != UNLIMITED).then_some(bytes);
        Room {
            memory_bytes: known(self.0[RATES]),
            disk_bytes: known(self.0[RATES + 1]),
        }
    }

    pub fn with_space(self, space: Space) -> Self {
        Self::new(self.rates(), space)
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

    /// The rest of `self` after `other`, at least zero. An unlimited amount is never used up.
    pub fn left_after(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| match self.0[i] {
            UNLIMITED => UNLIMITED,
            own => own.saturating_sub(other.0[i]),
        }))
    }

    /// The larger of each component.
    pub fn at_least(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].max(other.0[i])))
    }

    /// Constraint 1: every component fits.
    pub fn fits(self, free: Self) -> bool {
        (0..RESOURCES).all(|i| self.0[i] <= free.0[i])
    }

    pub fn sum(all: impl IntoIterator<Item = Amounts>) -> Amounts {
        all.into_iter().fold(Amounts::ZERO, Amounts::plus)
    }

    /// Equation 2: the largest component as a share of `total`, and its index.
    pub fn dominant_share(self, total: Amounts) -> (f64, usize) {
        let share = |i: usize| match (self.0[i], total.0[i]) {
            (0, _) | (_, UNLIMITED) => 0.0,
            (_, 0) => f64::INFINITY,
            (own, total) => own as f64 / total as f64,
        };
        (0..RESOURCES)
            .map(|i| (share(i), i))
            .fold((0.0, 0), |best, next| if next.0 > best.0 { next } else { best })
    }
}

/// Snapshots of earlier versions have the three rates alone: such amounts have no space.
impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Vec::<u64>::deserialize(deserializer)?;
        let mut amounts = [0; RESOURCES];
        match written.len() {
            RATES | RESOURCES => amounts[..written.len()].copy_from_slice(&written),
            other => {
                let problem = format!("{other} amounts, and not {RATES} or {RESOURCES}");
                return Err(serde::de::Error::custom(problem));
            }
        }
        Ok(Self(amounts))
    }
}
