//! A group with partitions, as its rate is divided.

use quorate_types::{GroupId, ServerId};

use crate::room::Amounts;

/// A partition is given a tenth more than it wants, so that it can grow.
const MARGIN: u64 = 10;
/// The least part of an even division that a partition keeps: its clients begin with it when they come back.
const FLOOR_PARTS: u64 = 10;
/// A difference below a twentieth of a rate is left as it is: it would come and go.
const THRESHOLD_PARTS: u64 = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub id: GroupId,
    pub partitions: Vec<Partition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its part of the tenant's rate.
    pub rate_per_s: u64,
    /// `None`: its head has not reported lately.
    pub wanted_per_s: Option<u64>,
    /// The most that one chain carries.
    pub peak_per_s: u64,
    /// The cost of a request on each of its servers.
    pub costs: Vec<(ServerId, Amounts)>,
}

impl Tenant {
    pub fn rate_per_s(&self) -> u64 {
        self.partitions.iter().map(|one| one.rate_per_s).sum()
    }

    pub fn rates(&self) -> Vec<u64> {
        self.partitions.iter().map(|one| one.rate_per_s).collect()
    }

    /// The rate that each partition should have. `None`: a head has not reported, and nothing moves.
    ///
    /// Partitions get what they want and a margin. Where that is more than the tenant has, each gets its part of it.
    pub fn goals(&self) -> Option<Vec<u64>> {
        let floor_per_s = self.floor_per_s();
        let goal = |one: &Partition| {
            let wanted_per_s = one.wanted_per_s?;
            let grown = wanted_per_s.saturating_add(wanted_per_s / MARGIN);
            Some(grown.clamp(floor_per_s, one.peak_per_s.max(floor_per_s)))
        };
        let goals: Vec<u64> = self.partitions.iter().map(goal).collect::<Option<_>>()?;
        let (all, has) = (
            goals.iter().map(|goal| u128::from(*goal)).sum::<u128>(),
            self.rate_per_s(),
        );
        if all <= u128::from(has) {
            return Some(goals);
        }
        // Above the floor each has its part of what is left.
        let left = has.saturating_sub(floor_per_s * self.partitions.len() as u64);
        let above = all - u128::from(floor_per_s) * self.partitions.len() as u128;
        let part = |goal: &u64| {
            let above_floor = u128::from(goal - floor_per_s) * u128::from(left);
            floor_per_s + above_floor.checked_div(above).unwrap_or(0) as u64
        };
        Some(goals.iter().map(part).collect())
    }

    pub fn floor_per_s(&self) -> u64 {
        let even = self.rate_per_s() / self.partitions.len().max(1) as u64;
        (even / FLOOR_PARTS).max(1)
    }
}

/// The least difference that is worth another epoch.
pub fn threshold_per_s(rate_per_s: u64) -> u64 {
    (rate_per_s / THRESHOLD_PARTS).max(1)
}
