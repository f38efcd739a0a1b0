//! Choice of the server that takes a replica that a group lacks, or is about to lack (Filo's ElectServer).

use quorate_placement::{Amounts, Pool};
use quorate_types::planted::{self, Bug};
use quorate_types::sla::ScarceResource;
use quorate_types::{GroupId, ServerId};

use crate::state::table::{Fleets, Groups, Servers, UnreachablePairs};

/// May charge servers for replicas; reads all else.
#[derive(Debug)]
pub struct ReplicaChoice<'a> {
    fleets: &'a mut Fleets,
    groups: &'a Groups,
    servers: &'a Servers,
    pairs: &'a UnreachablePairs,
}

impl<'a> ReplicaChoice<'a> {
    pub fn new(
        fleets: &'a mut Fleets,
        groups: &'a Groups,
        servers: &'a Servers,
        pairs: &'a UnreachablePairs,
    ) -> Self {
        Self {
            fleets,
            groups,
            servers,
            pairs,
        }
    }

    /// Elects the group's next learner, and charges its server.
    ///
    /// The chain must be all alive, since its tail is where the learner learns from. A server that still holds data of
    /// the group and has room goes first: it has the least to learn. The learner must reach every member.
    pub fn learner(&mut self, group_id: GroupId) -> Option<ServerId> {
        let group = &self.groups[&group_id];
        if !group.chain.iter().all(|member| self.servers.is_alive(*member)) {
            return None;
        }
        let (tail, pairs) = (group.tail_demand(), self.pairs);
        let reaches = |id: ServerId| !group.chain.iter().any(|member| pairs.contains(id, *member));
        let reaches = |id: ServerId| reaches(id) && !group.quarantine.servers.contains(&id);
        let fleet = self.fleets.in_region_mut(&group.sla.region)?;
        let mut holders = self.servers.holders_of(group_id);
        if let Some(holder) = holders.find(|holder| fleet.fits_on(*holder, tail) && reaches(*holder)) {
            fleet.charge(holder, tail);
            return Some(holder);
        }
        if planted::on(Bug::SpaceIgnored) {
            let elected = fleet.elect_among(
                Amounts::of_rates(tail.own.rates()),
                &group.chain,
                Pool::Replacement,
                &reaches,
            )?;
            fleet.charge(elected, Amounts::ZERO.with_space(tail.own.space()));
            return Some(elected);
        }
        fleet.elect_among(tail, &group.chain, Pool::Replacement, &reaches)
    }

    /// Whether a server would be found for a learner: asked before an epoch is spent on it.
    pub fn would_find_learner(&mut self, group_id: GroupId) -> bool {
        let Some(server) = self.learner(group_id) else {
            return false;
        };
        let tail = self.groups[&group_id].tail_demand();
        self.fleets.release(self.servers, &[(server, tail)]);
        true
    }

    /// Finds a server for the place of `leaving`, and charges nothing yet. It must reach all of the chain: it may learn
    /// from the very replica that leaves.
    pub fn successor(&mut self, group_id: GroupId, leaving: ServerId, pool: Pool) -> Option<ServerId> {
        let (group, pairs) = (&self.groups[&group_id], self.pairs);
        let others: Vec<ServerId> = group.members().filter(|server| *server != leaving).collect();
        let tail = group.tail_demand();
        let reaches = |id: ServerId| !group.chain.iter().any(|member| pairs.contains(id, *member));
        let fits = |id: ServerId| id != leaving && reaches(id) && !group.quarantine.servers.contains(&id);
        let fleet = self.fleets.in_region_mut(&group.sla.region)?;
        let elected = fleet.elect_among(tail, &others, pool, &fits)?;
        fleet.release(elected, tail);
        Some(elected)
    }

    /// The resource that keeps a replica from leaving `from` for any other server.
    pub fn scarce_for_successor(&mut self, group_id: GroupId, from: ServerId) -> ScarceResource {
        let group = &self.groups[&group_id];
        let fleet = self.fleets.of(self.servers, from);
        quorate_placement::scarce_for(fleet, group.tail_demand(), &group.chain)
    }

    /// Sorts groups by the share that their missing replicas take, the heaviest first, region by region.
    pub fn sort_heaviest_first(&self, groups: &mut [GroupId]) {
        let region = |id: &GroupId| &self.groups[id].sla.region;
        groups.sort_by_key(|id| (region(id), *id));
        for of_one_region in groups.chunk_by_mut(|a, b| region(a) == region(b)) {
            if let Some(fleet) = self.fleets.in_region(region(&of_one_region[0])) {
                let demand = |id: &GroupId| self.groups[id].tail_demand().whole();
                quorate_placement::heaviest_first(fleet, of_one_region, demand);
            }
        }
    }
}
