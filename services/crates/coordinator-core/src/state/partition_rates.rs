//! Partitions as their groups' rates are divided among them (`docs/internals/partitions.md`, "Rates").

use std::collections::{BTreeSet, HashMap};

use quorate_types::{GroupId, ServerId, Sla};
use quorate_weights::{Division, Partition, Pressure, Room, Tenant, divide};

use super::entity::{Group, Partitioned};
use super::machine::CoordinatorState;
use crate::command::RateChange;

/// The outcome of one division.
#[derive(Debug, Default)]
pub struct DividedRates {
    pub changes: Vec<RateChange>,
    /// Groups among them whose rates change with another group's.
    pub swapped: BTreeSet<GroupId>,
    /// Partitions that lack room for more, the worst off first.
    pub pressures: Vec<Pressure>,
    /// The rates that are free on the servers of partitions, once the changes are made.
    pub room: Room,
}

impl CoordinatorState {
    /// Other rates for partitions, by what their heads want; none: all may stay as they are. With servers on which more is
    /// wanted than they have.
    pub fn divided_rates(&self, wanted_per_s: &HashMap<GroupId, u64>) -> DividedRates {
        let movable = self
            .partitions
            .values()
            .filter(|one| one.growth.is_none() && one.members.len() > 1);
        let tenants: Vec<Tenant> = movable.map(|one| self.tenant(one, wanted_per_s)).collect();
        let used = tenants.iter().flat_map(|tenant| &tenant.partitions);
        let servers: BTreeSet<ServerId> = used.flat_map(|one| one.costs.iter().map(|(id, _)| *id)).collect();
        let free = servers.into_iter().map(|server| {
            let fleet = self.fleets().in_region(&self.servers[&server].region);
            (
                server,
                fleet.map_or([0; 3], |fleet| fleet.free_for_applicants(server).rates()),
            )
        });
        let change = |division: Division| RateChange {
            group_id: division.id,
            revision: self.partitions[&division.id].revision,
            rates: division.rates,
        };
        let divided = divide(&tenants, &Room::new(free));
        let swapped = divided.divisions.iter().filter(|division| division.is_swapped);
        let swapped = swapped.map(|division| division.id).collect();
        let pressures = divided.pressed.iter().filter_map(|pressed| {
            let tenant = tenants.iter().find(|tenant| tenant.id == pressed.tenant)?;
            let costs = &tenant.partitions[pressed.partition].costs;
            let (server, ..) = divided.room.scarcest(costs, pressed.lacks_per_s)?;
            let cost_at = |id: ServerId| costs.iter().find(|(at, _)| *at == id).map(|(_, cost)| *cost);
            let (_, tail) = costs.last()?;
            Some(Pressure {
                server,
                lacking: divided
                    .room
                    .lacking(server, cost_at(server)?, pressed.lacks_per_s),
                wanting: Some((
                    self.partitions[&pressed.tenant].members[pressed.partition],
                    tail.map(|cost| cost.saturating_mul(pressed.lacks_per_s)),
                )),
            })
        });
        DividedRates {
            pressures: pressures.collect(),
            swapped,
            changes: divided.divisions.into_iter().map(change).collect(),
            room: divided.room,
        }
    }

    fn tenant(&self, partitioned: &Partitioned, wanted_per_s: &HashMap<GroupId, u64>) -> Tenant {
        // Partitions differ in their rates alone.
        let costs = self.request_costs(&self.groups[&partitioned.members[0]]);
        let partition = |member: &GroupId| {
            let group = &self.groups[member];
            Partition {
                rate_per_s: group.sla.rate_per_s,
                wanted_per_s: wanted_per_s.get(member).copied(),
                peak_per_s: self.profile.shard_peak_per_s(&group.sla),
                costs: on_servers(group, &costs),
            }
        };
        Tenant {
            id: partitioned.members[0],
            partitions: partitioned.members.iter().map(partition).collect(),
        }
    }

    /// The cost of a further request at each position of the chain, rounded up.
    fn request_costs(&self, group: &Group) -> Vec<[u64; 3]> {
        let rate_per_s = group.sla.rate_per_s;
        let twice = Sla {
            rate_per_s: 2 * rate_per_s,
            ..group.sla.clone()
        };
        let (less, more) = (self.profile.demands(&group.sla), self.profile.demands(&twice));
        let at = |position: usize| {
            let (less, more) = (less.at(position).rates(), more.at(position).rates());
            std::array::from_fn(|i| more[i].saturating_sub(less[i]).div_ceil(rate_per_s))
        };
        (0..group.degree()).map(at).collect()
    }
}

/// The costs of the group's positions, by server. A learner has the tail's.
fn on_servers(group: &Group, costs: &[[u64; 3]]) -> Vec<(ServerId, [u64; 3])> {
    let tail = costs.len() - 1;
    let positions = (0..group.chain.len()).chain(group.learner.map(|_| tail));
    group
        .members()
        .zip(positions.map(|position| costs[position]))
        .collect()
}
