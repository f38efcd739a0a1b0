//! The division of tenants' rates in one interval.

use quorate_types::GroupId;

use crate::room::Room;
use crate::swap::{self, Step};
use crate::tenant::{Tenant, threshold_per_s};

/// Moves in one interval: the next one goes on. Each is an epoch of two chains or more.
const MOVES_MAX: usize = 64;

/// A tenant whose partitions get other rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    pub id: GroupId,
    /// By partition, with the same sum as before.
    pub rates: Vec<u64>,
    /// Other tenants changed, too, so that this one could.
    pub is_swapped: bool,
}

/// A tenant, and what its partitions lack or can spare.
#[derive(Debug)]
pub(crate) struct Working {
    pub tenant: Tenant,
    /// `None`: nothing of it moves.
    pub goals: Option<Vec<u64>>,
    is_swapped: bool,
    /// A partition that finds no room in this interval.
    given_up: Vec<bool>,
}

impl Working {
    fn new(tenant: &Tenant) -> Self {
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
    fn worst(&self) -> Option<(u64, usize)> {
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
    fn giver(&self, but: usize) -> Option<usize> {
        let givers = (0..self.tenant.partitions.len()).filter(|i| *i != but);
        let giver = givers.max_by_key(|i| (self.spare_per_s(*i), std::cmp::Reverse(*i)))?;
        (self.spare_per_s(giver) > 0).then_some(giver)
    }
}

/// The tenants whose rates change, the largest mismatches first (Pisces, Algorithm 1). The cost of a mismatch grows with the
/// part of its goal that a partition lacks, so the worst off gain first.
pub fn divide(tenants: &[Tenant], room: &Room) -> Vec<Division> {
    let (mut working, mut room): (Vec<Working>, Room) =
        (tenants.iter().map(Working::new).collect(), room.clone());
    for _ in 0..MOVES_MAX {
        let worst = (0..working.len()).filter_map(|at| Some((working[at].worst()?, at)));
        let Some(((_, partition), at)) = worst.max_by_key(|((lack, _), at)| (*lack, std::cmp::Reverse(*at)))
        else {
            break;
        };
        if !improve(&mut working, &mut room, at, partition) {
            working[at].given_up[partition] = true;
        }
    }
    let changed = working.into_iter().zip(tenants);
    let changed = changed.filter(|(after, before)| after.tenant.rates() != before.rates());
    let division = |(after, _): (Working, &Tenant)| Division {
        id: after.tenant.id,
        rates: after.tenant.rates(),
        is_swapped: after.is_swapped,
    };
    changed.map(division).collect()
}

/// Gives the partition more: of its tenant's own where its servers have room, else by swaps. False: nothing more can be done.
fn improve(working: &mut [Working], room: &mut Room, at: usize, partition: usize) -> bool {
    let Some(giver) = working[at].giver(partition) else {
        return false;
    };
    let (short, spare) = (working[at].short_per_s(partition), working[at].spare_per_s(giver));
    let partitions = &working[at].tenant.partitions;
    let wanted = short.min(spare);
    // Room that the giver leaves counts, where both have a replica on one server.
    let mut freed = room.clone();
    freed.give(&partitions[giver].costs, wanted);
    let fits = freed.fits_per_s(&partitions[partition].costs, wanted);
    let least = threshold_per_s(partitions[partition].rate_per_s).min(wanted);
    if fits >= least {
        let step = Step {
            tenant: at,
            loses: giver,
            gains: partition,
            per_s: fits,
        };
        let mut trial = room.clone();
        trial.give(&partitions[giver].costs, fits);
        trial.take(&partitions[partition].costs, fits);
        if trial.is_kept(&partitions[partition].costs) {
            working[at].shift(&step, room);
            return true;
        }
    }
    let Some(path) = swap::find(working, room, (at, giver, partition), wanted, least) else {
        return false;
    };
    for step in &path {
        working[step.tenant].shift(step, room);
        working[step.tenant].is_swapped = true;
    }
    true
}
