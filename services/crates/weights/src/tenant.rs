//! A group with partitions, as its rate is divided.

use quorate_types::{GroupId, ServerId};

use crate::room::Amounts;

/// A partition is given a tenth more than it wants where its tenant has that, so that it can grow.
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
    /// The least wants are met first, and where not all can be, the others have even parts of the rest (max-min): no estimate of
    /// theirs moves anything while each wants more. A rest beyond all wants is their margin.
    pub fn goals(&self) -> Option<Vec<u64>> {
        let (floor_per_s, has_per_s) = (self.floor_per_s(), self.rate_per_s());
        let within = |one: &Partition, per_s: u64| per_s.clamp(floor_per_s, one.peak_per_s.max(floor_per_s));
        let wanted = |one: &Partition| Some(within(one, one.wanted_per_s?));
        let wants: Vec<u64> = self.partitions.iter().map(wanted).collect::<Option<_>>()?;
        let most = even_part(&wants, has_per_s);
        let mut goals: Vec<u64> = wants.iter().map(|want| (*want).min(most)).collect();
        let left = has_per_s.saturating_sub(goals.iter().sum());
        let grown = |(one, goal): (&Partition, &u64)| within(one, goal.saturating_add(goal / MARGIN)) - goal;
        let margins: Vec<u64> = self.partitions.iter().zip(&goals).map(grown).collect();
        let most = even_part(&margins, left);
        for (goal, margin) in goals.iter_mut().zip(margins) {
            *goal += margin.min(most);
        }
        Some(goals)
    }

    pub fn floor_per_s(&self) -> u64 {
        let even = self.rate_per_s() / self.partitions.len().max(1) as u64;
        (even / FLOOR_PARTS).max(1)
    }
}

/// The most that each may have, so that all together have no more than `has_per_s`.
fn even_part(wants: &[u64], has_per_s: u64) -> u64 {
    let mut rising = wants.to_vec();
    rising.sort_unstable();
    let (mut left, mut others) = (has_per_s, rising.len() as u64);
    for want in rising {
        let part = left / others;
        if want > part {
            return part;
        }
        (left, others) = (left - want, others - 1);
    }
    u64::MAX
}

/// The least difference that is worth another epoch.
pub fn threshold_per_s(rate_per_s: u64) -> u64 {
    (rate_per_s / THRESHOLD_PARTS).max(1)
}
