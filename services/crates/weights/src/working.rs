//! A tenant as a division changes it.

use crate::room::Room;
use crate::tenant::{Tenant, threshold_per_s};

/// A tenant, and what its partitions lack or can spare.
#[derive(Debug)]
pub(crate) struct Working {
    pub tenant: Tenant,
    /// `None`: nothing of it moves.
    pub goals: Option<Vec<u64>>,
    pub is_swapped: bool,
    /// A partition that finds no room in this interval.
    pub given_up: Vec<bool>,
}

impl Working {
    pub fn new(tenant: &Tenant) -> Self {
        Self {
            goals: tenant.goals(),
            given_up: vec![false; tenant.partitions.len()],
            is_swapped: false,
            tenant: tenant.clone(),
        }
    }

    /// Requests/s that the partition lacks.
    pub fn short_per_s(&self, partition: usize) -> u64 {
        let goal = self.goals.as_ref().map_or(0, |goals| goals[partition]);
        goal.saturating_sub(self.tenant.partitions[partition].rate_per_s)
    }

    /// Requests/s that it can spare.
    pub fn spare_per_s(&self, partition: usize) -> u64 {
        let rate_per_s = self.tenant.partitions[partition].rate_per_s;
        self.goals
            .as_ref()
            .map_or(0, |goals| rate_per_s.saturating_sub(goals[partition]))
    }

    pub fn shift(&mut self, step: &Step, room: &mut Room) {
        let (from, to) = (step.loses, step.gains);
        room.give(&self.tenant.partitions[from].costs, step.per_s);
        room.take(&self.tenant.partitions[to].costs, step.per_s);
        self.tenant.partitions[from].rate_per_s -= step.per_s;
        self.tenant.partitions[to].rate_per_s += step.per_s;
    }

    /// The partition that lacks most of what it should have, if that is worth a move, and how much it lacks of its goal, in
    /// millionths.
    pub fn worst(&self) -> Option<(u64, usize)> {
        let goals = self.goals.as_ref()?;
        let lack = |i: usize| {
            let (short, rate) = (self.short_per_s(i), self.tenant.partitions[i].rate_per_s);
            let is_worth_it = short >= threshold_per_s(rate) && !self.given_up[i];
            let millionths = u128::from(short) * 1_000_000 / u128::from(goals[i].max(1));
            is_worth_it.then_some((millionths as u64, i))
        };
        (0..goals.len())
            .filter_map(lack)
            .max_by_key(|(millionths, i)| (*millionths, std::cmp::Reverse(*i)))
    }

    /// The partition that can spare most beside another one.
    pub fn giver(&self, but: usize) -> Option<usize> {
        let givers = (0..self.tenant.partitions.len()).filter(|i| *i != but);
        let giver = givers.max_by_key(|i| (self.spare_per_s(*i), std::cmp::Reverse(*i)))?;
        (self.spare_per_s(giver) > 0).then_some(giver)
    }
}

/// A part of one tenant's rate that goes from one partition to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its index.
    pub tenant: usize,
    /// The partition that gets less, and the one that gets more.
    pub loses: usize,
    pub gains: usize,
    pub per_s: u64,
}
