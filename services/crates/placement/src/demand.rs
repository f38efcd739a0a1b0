//! The demand of a replica: its own part, and a part that it has in common with its project's other replicas on a server.
//!
//! A project may use its shared guarantee at any of its groups, and never at all of them at once. So a server reserves for
//! the dearest use by the replicas of the project that it has, and not for the sum.

use std::collections::BTreeMap;

use quorate_types::cost::Budget;
use quorate_types::{ProjectId, Sla};

use crate::amounts::Amounts;
use crate::profile::RoleDemands;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    pub own: Amounts,
    pub shared: Option<SharedDemand>,
}

/// The cost of a project's whole shared guarantee, if this replica's group alone uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedDemand {
    pub project: ProjectId,
    pub amounts: Amounts,
}

/// The shared guarantee of a project: tokens each second that any of its groups may use, beside their own rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedGuarantee {
    pub project: ProjectId,
    pub tokens_per_s: u64,
}

/// The demands of a group's replicas, head first. `own` and `budget` are those of its admission.
pub fn demands_with(
    own: &RoleDemands,
    budget: &Budget,
    sla: &Sla,
    shared: Option<SharedGuarantee>,
) -> Vec<Demand> {
    let positions = 0..own.all().len();
    positions
        .map(|position| demand_at(position, own, budget, sla, shared))
        .collect()
}

/// The same of one replica.
pub fn demand_at(
    position: usize,
    own: &RoleDemands,
    budget: &Budget,
    sla: &Sla,
    shared: Option<SharedGuarantee>,
) -> Demand {
    let degree = own.all().len();
    Demand {
        own: own.at(position),
        shared: shared.map(|shared| SharedDemand {
            project: shared.project,
            amounts: shared.amounts_at(position, budget, degree, sla),
        }),
    }
}

impl SharedGuarantee {
    /// `None`: the project shares nothing.
    pub fn of(project: ProjectId, tokens_per_s: u64) -> Option<Self> {
        (tokens_per_s > 0).then_some(Self {
            project,
            tokens_per_s,
        })
    }

    /// The cost at one replica if the group uses all of it. Short batches cost most, and count. Space is the group's own.
    fn amounts_at(&self, position: usize, budget: &Budget, degree: usize, sla: &Sla) -> Amounts {
        let (cost, price) = (
            budget.burst_milli_at(position),
            budget.guarantee_tokens_milli(degree),
        );
        let rate = |i: usize| {
            let milli = u128::from(cost[i]) * u128::from(self.tokens_per_s) * 1_000 / u128::from(price);
            let tokens = u64::try_from(milli.div_ceil(1_000)).unwrap_or(u64::MAX);
            tokens.saturating_mul(sla.latency.headroom())
        };
        Amounts::of_rates(std::array::from_fn(rate))
    }
}

impl From<Amounts> for Demand {
    fn from(own: Amounts) -> Self {
        Self { own, shared: None }
    }
}

impl Demand {
    /// The larger of each amount. Both are of one project.
    pub fn at_least(self, other: Self) -> Self {
        let shared = |one: SharedDemand| SharedDemand {
            amounts: other
                .shared
                .map_or(one.amounts, |other| one.amounts.at_least(other.amounts)),
            ..one
        };
        Self {
            own: self.own.at_least(other.own),
            shared: self.shared.map(shared).or(other.shared),
        }
    }

    /// The amounts that a server without any replica of the project needs for it.
    pub fn whole(&self) -> Amounts {
        self.shared
            .map_or(self.own, |shared| self.own.plus(shared.amounts))
    }
}

/// The shared reservations of one server.
#[derive(Debug, Clone, Default)]
pub struct SharedReservations {
    /// The cost for each replica here, by project.
    by_project: BTreeMap<ProjectId, Vec<Amounts>>,
}

impl SharedReservations {
    /// Reserved for the project's shared guarantee: the larger of each amount.
    pub fn reserved(&self, project: ProjectId) -> Amounts {
        let replicas = self.by_project.get(&project).into_iter().flatten();
        replicas.copied().fold(Amounts::ZERO, Amounts::at_least)
    }

    /// The amounts that the demand would add here.
    pub fn needed(&self, demand: &Demand) -> Amounts {
        let Some(shared) = demand.shared else {
            return demand.own;
        };
        let reserved = self.reserved(shared.project);
        demand.own.plus(shared.amounts.left_after(reserved))
    }

    /// Takes a replica in: the amounts that it adds, and whether it is the first of its project.
    pub fn add(&mut self, demand: &Demand) -> (Amounts, bool) {
        let needed = self.needed(demand);
        let mut is_first = false;
        if let Some(shared) = demand.shared {
            let replicas = self.by_project.entry(shared.project).or_default();
            is_first = replicas.is_empty();
            replicas.push(shared.amounts);
        }
        (needed, is_first)
    }

    /// Undoes [`SharedReservations::add`]: the amounts that become free, and whether it was the last of its project.
    ///
    /// Panics if no such replica was taken in.
    pub fn remove(&mut self, demand: &Demand) -> (Amounts, bool) {
        let Some(shared) = demand.shared else {
            return (demand.own, false);
        };
        let before = self.reserved(shared.project);
        let replicas = self.by_project.get_mut(&shared.project);
        let replicas = replicas.expect("only replicas that were charged are released");
        let place = replicas.iter().position(|amounts| *amounts == shared.amounts);
        replicas.swap_remove(place.expect("a replica is released with the demand that it was charged"));
        let is_last = replicas.is_empty();
        if is_last {
            self.by_project.remove(&shared.project);
        }
        let less = before.minus(self.reserved(shared.project));
        (demand.own.plus(less), is_last)
    }
}

/// Charges of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerCharges {
    sum: Amounts,
    shared: SharedReservations,
}

impl ServerCharges {
    pub fn add(&mut self, demand: &Demand) {
        let (needed, _) = self.shared.add(demand);
        self.sum = self.sum.plus(needed);
    }

    pub fn sum(&self) -> Amounts {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn demand(own: u64, project: u128, shared: [u64; 3]) -> Demand {
        Demand {
            own: Amounts::of_rates([own; 3]),
            shared: Some(SharedDemand {
                project: ProjectId(Uuid::from_u128(project)),
                amounts: Amounts::of_rates(shared),
            }),
        }
    }

    #[test]
    fn a_server_reserves_the_dearest_use_of_a_shared_guarantee_and_not_the_sum() {
        let mut reservations = SharedReservations::default();
        let (first, second) = (demand(1, 7, [10, 5, 0]), demand(2, 7, [8, 9, 0]));
        let other = demand(3, 8, [4, 4, 4]);
        assert_eq!(reservations.add(&first), (Amounts::of_rates([11, 6, 1]), true));
        assert_eq!(reservations.needed(&second), Amounts::of_rates([2, 6, 2]));
        assert_eq!(reservations.add(&second), (Amounts::of_rates([2, 6, 2]), false));
        assert_eq!(
            reservations.add(&first),
            (Amounts::of_rates([1, 1, 1]), false),
            "as dear as one that is here"
        );
        assert_eq!(
            reservations.add(&other),
            (Amounts::of_rates([7, 7, 7]), true),
            "another project's"
        );
        assert_eq!(
            reservations.add(&Amounts::of_rates([5; 3]).into()),
            (Amounts::of_rates([5; 3]), false)
        );
        assert_eq!(reservations.remove(&first), (Amounts::of_rates([1, 1, 1]), false));
        assert_eq!(
            reservations.remove(&second),
            (Amounts::of_rates([2, 6, 2]), false)
        );
        assert_eq!(reservations.remove(&first), (Amounts::of_rates([11, 6, 1]), true));
        assert_eq!(reservations.remove(&other), (Amounts::of_rates([7, 7, 7]), true));
        assert!(reservations.by_project.is_empty());
    }
}
