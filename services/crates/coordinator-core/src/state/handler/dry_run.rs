//! Dry runs of admissions and resizes: what an SLA would cost, and whether it would fit. They leave all as it was.

use std::collections::BTreeSet;

use quorate_placement::{Amounts, Asked, Fleet, Profile};
use quorate_types::sla::{Quote, Refusal, RefusalReason, ScarceResource, Sla};
use quorate_types::{GroupId, ServerId};

use crate::state::entity::Group;
use crate::state::table::{Fleets, Groups, Servers, UnreachablePairs};

/// Charges and releases servers on trial; reads all else.
#[derive(Debug)]
pub struct DryRun<'a> {
    pub(super) fleets: &'a mut Fleets,
    pub(super) groups: &'a Groups,
    pub(super) servers: &'a Servers,
    pub(super) pairs: &'a UnreachablePairs,
    pub(super) profile: &'a Profile,
}

impl<'a> DryRun<'a> {
    pub fn new(
        fleets: &'a mut Fleets,
        groups: &'a Groups,
        servers: &'a Servers,
        pairs: &'a UnreachablePairs,
        profile: &'a Profile,
    ) -> Self {
        Self {
            fleets,
            groups,
            servers,
            pairs,
            profile,
        }
    }

    /// `replaces`: a quote of this group's resize, if it can be resized to the SLA; otherwise of an admission as if the
    /// group were gone. `may_move`: its replicas may move for it.
    pub fn quote(&mut self, asked: Asked<'_>, replaces: Option<GroupId>, may_move: bool) -> Quote {
        let sla = asked.sla;
        let replaced = replaces.and_then(|id| self.groups.get(&id));
        if let Some(group) = replaced
            && !group.chain.is_empty()
            && group.keeps_place_with(sla)
        {
            return self.quote_resize(group.group_id, sla, may_move);
        }
        let freed = replaced.map(Group::charges).unwrap_or_default();
        self.fleets.release(self.servers, &freed);
        let quote = match unknown_region(self.servers, self.fleets, sla) {
            Some(refusal) => {
                let dominant = ScarceResource::Servers;
                quorate_placement::quote::quote_of(self.profile, sla, dominant, Some(refusal))
            }
            None => {
                let ask = |fleet: &mut Fleet| quorate_placement::quote(fleet, self.profile, asked);
                self.fleets.try_in_region(&sla.region, ask)
            }
        };
        self.fleets.charge(self.servers, &freed);
        quote
    }

    /// Whether the group could have this SLA, and after how many moves.
    fn quote_resize(&mut self, group_id: GroupId, sla: &Sla, may_move: bool) -> Quote {
        let (moves, refusal) = match self.refusal_in_place(group_id, sla) {
            Some(refusal) if may_move => match self.moves_instead_of(refusal, group_id, sla) {
                Ok(moves) => (moves.len(), None),
                Err(refusal) => (0, Some(refusal)),
            },
            refusal => (0, refusal),
        };
        let cpu = ScarceResource::Cpu;
        let mut quote = quorate_placement::quote::quote_of(self.profile, sla, cpu, refusal);
        quote.moves = moves;
        if let Some(fleet) = self.fleets.in_region(&sla.region) {
            let members: Vec<_> = self.groups[&group_id].members().collect();
            quote.failure_domains = fleet.failure_domains(&members);
            quote.dominant_resource = quorate_placement::quote::dominant(fleet, self.profile, sla);
        }
        quote
    }

    /// Why a group cannot have this SLA where it is, if it cannot.
    pub fn refusal_in_place(&mut self, group_id: GroupId, sla: &Sla) -> Option<Refusal> {
        let group = &self.groups[&group_id];
        if group.wants_learner() && self.grows(group, sla) {
            return Some(Refusal {
                reason: RefusalReason::TooFewServers,
                scarce_resource: ScarceResource::Servers,
                message: "A replica of the group is missing and no server has room for it: the group can grow when it \
                          is whole again."
                    .into(),
                largest_sla_that_fits: None,
            });
        }
        let (seats, charges) = (seats(group), group.charges());
        self.fleets.release(self.servers, &charges);
        let fleet = (self.fleets.in_region(&sla.region)).expect("the members are in it");
        let asked = Asked {
            sla,
            shared: group.shared(),
        };
        let refusal = quorate_placement::in_place(fleet, self.profile, asked, &group.demands, &seats).err();
        self.fleets.charge(self.servers, &charges);
        refusal
    }

    fn grows(&self, group: &Group, sla: &Sla) -> bool {
        let demands = self.profile.demands(sla);
        let mut pairs = demands.all().iter().zip(group.demands.all());
        // More to retain needs room on the members alone: the replica that is missing is elected by its new demand.
        pairs.any(|(new, old)| !Amounts::of_rates(new.rates()).fits(*old))
    }
}

/// The members, each with its position in a whole chain, and the seats in chains that are still to come. A learner comes for
/// the tail, or for a replica that leaves: it is charged as the tail either way.
fn seats(group: &Group) -> Vec<(ServerId, usize)> {
    let positions = (0..group.chain.len()).chain(group.learner.map(|_| group.degree() - 1));
    let mut seats: Vec<(ServerId, usize)> = group.members().zip(positions).collect();
    let mut chain = group.chain.clone();
    for one in group.relocation.iter().flat_map(|relocation| &relocation.moves) {
        chain.retain(|server| *server != one.from);
        chain.push(one.to);
        seats.extend(chain.iter().copied().zip(0..));
    }
    seats
}

/// The refusal of a region in which no server ever registered, though some did elsewhere.
pub fn unknown_region(servers: &Servers, fleets: &Fleets, sla: &Sla) -> Option<Refusal> {
    if servers.is_empty() || fleets.in_region(&sla.region).is_some() {
        return None;
    }
    let known: BTreeSet<&str> = servers.values().map(|server| server.region.as_str()).collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Some(Refusal {
        reason: RefusalReason::UnknownRegion,
        scarce_resource: ScarceResource::Servers,
        message: format!("There is no region {:?}; there is {known}.", sla.region),
        largest_sla_that_fits: None,
    })
}
