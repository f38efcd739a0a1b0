//! Plans of relocations: the fewest moves after which a group has room for what it is to have (`docs/internals/relocations.md`).

use quorate_placement::{Demand, Pool};
use quorate_types::sla::{Refusal, RefusalReason, ScarceResource, Sla};
use quorate_types::{GroupId, ServerId};

use super::dry_run::DryRun;
use crate::state::entity::relocation::most_on_the_way;
use crate::state::entity::{Group, Move, Terms};
use crate::state::table::fleets::Charge;

/// A place in a chain on the way: a present member's, or one that a server is to be found for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Of(ServerId),
    New(usize),
}

/// A wish: the terms, the replica or the server at issue.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    /// The SLA that the group is to have after the last move.
    pub next: Option<&'a Terms>,
    /// The replica that is to move.
    pub from: Option<ServerId>,
    /// The server that is to take it.
    pub to: Option<ServerId>,
}

/// The group's charges at present, and the demands of a whole chain's positions before and after the last move.
struct Needs {
    charged: Vec<Charge>,
    now: Vec<Demand>,
    next: Option<Vec<Demand>>,
}

impl DryRun<'_> {
    /// The moves after which a group can have an SLA that it was refused in its place.
    pub fn moves_instead_of(
        &mut self,
        refusal: Refusal,
        group_id: GroupId,
        sla: &Sla,
    ) -> Result<Vec<Move>, Refusal> {
        if refusal.reason != RefusalReason::InsufficientCapacity {
            return Err(refusal);
        }
        if let Some(moves) = self.moves_for_sla(group_id, sla) {
            return Ok(moves);
        }
        Err(self.with_larger_rate(group_id, sla, refusal))
    }

    /// The moves after which a group can have the terms that were promised to it; otherwise the resource that it lacks.
    pub fn moves_under(&mut self, group_id: GroupId, next: &Terms) -> Result<Vec<Move>, ScarceResource> {
        let wish = Wish {
            next: Some(next),
            ..Wish::default()
        };
        self.moves_for(group_id, wish)
            .ok_or_else(|| self.scarce_beside(&self.groups[&group_id]))
    }

    fn moves_for_sla(&mut self, group_id: GroupId, sla: &Sla) -> Option<Vec<Move>> {
        self.moves_under(group_id, &Terms::of(self.profile, sla, 0)).ok()
    }

    /// The refusal with the largest rate that the group can have, by moves too, if no other part of the SLA was reduced.
    fn with_larger_rate(&mut self, group_id: GroupId, sla: &Sla, refusal: Refusal) -> Refusal {
        let in_place = refusal.largest_sla_that_fits.as_ref();
        let is_like = in_place.is_none_or(|fits| {
            (fits.retention_bytes, fits.read_rate_per_s) == (sla.retention_bytes, sla.read_rate_per_s)
        });
        if !is_like {
            return refusal;
        }
        let at = |rate_per_s: u64| Sla {
            rate_per_s,
            ..sla.clone()
        };
        let fits = |rate_per_s| self.moves_for_sla(group_id, &at(rate_per_s)).is_some();
        let most_per_s = quorate_placement::largest(sla.rate_per_s - 1, fits);
        Refusal {
            largest_sla_that_fits: most_per_s.map(at).or(refusal.largest_sla_that_fits),
            message: format!("{} Nor is there room for it on other servers.", refusal.message),
            ..refusal
        }
    }

    /// The fewest moves that fulfil the wish, if it can be. Replicas near the tail move first and rather than others: clients
    /// notice when the head does. A replica whose server is to be left moves with them.
    pub fn moves_for(&mut self, group_id: GroupId, wish: Wish<'_>) -> Option<Vec<Move>> {
        let group = &self.groups[&group_id];
        if !group.is_settled(|server| self.servers.is_alive(server)) {
            return None;
        }
        let must: Vec<ServerId> = group
            .chain
            .iter()
            .copied()
            .filter(|server| self.servers[server].is_vacating() || Some(*server) == wish.from)
            .collect();
        let mut sets: Vec<Vec<ServerId>> = (0u32..1 << group.chain.len())
            .map(|bits| leaving(&group.chain, bits))
            .filter(|set| {
                set.is_empty() && wish.from.is_none() || must.iter().all(|server| set.contains(server))
            })
            .collect();
        // The sort is stable, and the lowest bits are the tail's.
        sets.sort_by_key(Vec::len);
        let most = if wish.next.is_some() {
            usize::MAX
        } else {
            must.len()
        };
        let needs = Needs {
            charged: group.charges(),
            now: group.whole_demands(),
            next: wish.next.map(|terms| group.demands_under(terms)),
        };
        self.fleets.release(self.servers, &needs.charged);
        let found = sets
            .into_iter()
            .take_while(|set| set.len() <= most)
            .find_map(|set| self.places_for(group_id, &set, &needs, wish.to));
        self.fleets.charge(self.servers, &needs.charged);
        found
    }

    /// Servers for replicas that leave these, in this order. The group's charges are released meanwhile.
    fn places_for(
        &mut self,
        group_id: GroupId,
        leaving: &[ServerId],
        needs: &Needs,
        to: Option<ServerId>,
    ) -> Option<Vec<Move>> {
        let group = &self.groups[&group_id];
        let chain: Vec<Seat> = group.chain.iter().copied().map(Seat::Of).collect();
        let moves: Vec<Move<Seat>> = (0..)
            .zip(leaving)
            .map(|(number, from)| Move {
                from: Seat::Of(*from),
                to: Seat::New(number),
            })
            .collect();
        let most = most_on_the_way(&chain, &moves, &needs.now, needs.next.as_deref());
        let stays = most.iter().all(|(seat, demand)| match seat {
            Seat::Of(server) => self.grows_on(&group.sla.region, *server, demand, &needs.charged),
            Seat::New(_) => true,
        });
        if !stays {
            return None;
        }
        let newcomers = most.iter().filter(|(seat, _)| matches!(seat, Seat::New(_)));
        let mut elected: Vec<(ServerId, Demand)> = Vec::new();
        for (_, demand) in newcomers {
            match self.elect(group_id, leaving, &elected, *demand, to) {
                Some(server) => elected.push((server, *demand)),
                None => break,
            }
        }
        self.fleets.release(self.servers, &elected);
        let placed = leaving
            .iter()
            .zip(&elected)
            .map(|(from, (to, _))| Move { from: *from, to: *to });
        (elected.len() == leaving.len()).then(|| placed.collect())
    }

    /// Whether a member's server has room for so much, or is charged as much already.
    fn grows_on(&self, region: &str, server: ServerId, demand: &Demand, charged: &[Charge]) -> bool {
        let Some(fleet) = self.fleets.in_region(region) else {
            return false;
        };
        let charged = charged.iter().find(|(known, _)| *known == server);
        let is_no_more = charged.is_some_and(|(_, now)| now.at_least(*demand) == *now);
        is_no_more
            || fleet
                .needed_on(server, demand)
                .fits(fleet.free_for_applicants(server))
    }

    /// Elects a server outside of the group that reaches all of its chain, and charges it.
    fn elect(
        &mut self,
        group_id: GroupId,
        leaving: &[ServerId],
        elected: &[(ServerId, Demand)],
        demand: Demand,
        to: Option<ServerId>,
    ) -> Option<ServerId> {
        let (group, pairs) = (&self.groups[&group_id], self.pairs);
        let stays = group.chain.iter().filter(|server| !leaving.contains(server));
        let members: Vec<ServerId> = stays
            .chain(elected.iter().map(|(server, _)| server))
            .copied()
            .collect();
        let accepts = |id: ServerId| {
            to.is_none_or(|wanted| wanted == id)
                && !group.chain.contains(&id)
                && !group.quarantine.servers.contains(&id)
                && !group.chain.iter().any(|member| pairs.contains(id, *member))
        };
        let fleet = self.fleets.in_region_mut(&group.sla.region)?;
        fleet.elect_among(demand, &members, Pool::Admission, &accepts)
    }

    /// The resource that keeps a replica with the tail's demand from every server outside of the group.
    fn scarce_beside(&self, group: &Group) -> ScarceResource {
        let tail = group.tail_demand();
        match self.fleets.in_region(&group.sla.region) {
            Some(fleet) => quorate_placement::scarce_for(fleet, tail, &group.chain),
            None => ScarceResource::Servers,
        }
    }
}

/// The servers of these bits, the lowest for the tail: from the tail to the head.
fn leaving(chain: &[ServerId], bits: u32) -> Vec<ServerId> {
    let backwards = (0u32..).zip(chain.iter().rev());
    let chosen = backwards.filter(|(place, _)| bits & (1 << place) != 0);
    chosen.map(|(_, server)| *server).collect()
}
