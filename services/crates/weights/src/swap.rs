//! Reciprocal swaps: the path of the widest bottleneck from a tenant that lacks rate back to room (Pisces §3.2, Figure 3).
//!
//! Each step is one tenant that takes on one server and gives on another. A tenant takes what the next one on the path leaves on that
//! server. The path ends where the last one finds room: what the first one leaves is room, too, so a swap of two closes there.

use std::collections::BTreeMap;

use quorate_types::ServerId;

use crate::room::Room;
use crate::working::{Step, Working};

/// Tenants on one path: each is another epoch of two chains.
const STEPS_MAX: usize = 4;
/// Amounts that are tried: all that is wanted, then half, and so on.
const HALVINGS: u32 = 4;

/// A path whose last tenant still needs room for its gain.
#[derive(Debug, Clone)]
struct Path {
    steps: Vec<Step>,
    room: Room,
}

/// The swap with which the tenant's partition `gains` gets most, if that is `least_per_s` or more. `first`: the tenant, the
/// partition that gives, and the one that gains.
pub(crate) fn find(
    working: &[Working],
    room: &Room,
    first: (usize, usize, usize),
    wanted_per_s: u64,
    least_per_s: u64,
) -> Option<Vec<Step>> {
    let holders = holders(working);
    let amounts = (0..HALVINGS).map(|halving| wanted_per_s >> halving);
    let mut amounts = amounts.take_while(|per_s| *per_s >= least_per_s.max(1));
    amounts.find_map(|per_s| {
        let (tenant, loses, gains) = first;
        let step = Step {
            tenant,
            loses,
            gains,
            per_s,
        };
        let mut path = Path {
            steps: Vec::new(),
            room: room.clone(),
        };
        path.take(working, step);
        closed(working, &holders, path)
    })
}

/// Partitions that can spare something, by server.
fn holders(working: &[Working]) -> BTreeMap<ServerId, Vec<(usize, usize)>> {
    let mut holders: BTreeMap<ServerId, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, one) in working.iter().enumerate() {
        for (partition, has) in one.tenant.partitions.iter().enumerate() {
            if one.spare_per_s(partition) > 0 {
                for (server, _) in &has.costs {
                    holders.entry(*server).or_default().push((at, partition));
                }
            }
        }
    }
    holders
}

/// The path with further tenants, until nobody lacks room. Tenants that can spare most of what is lacking are tried first: the
/// widest bottleneck.
fn closed(
    working: &[Working],
    holders: &BTreeMap<ServerId, Vec<(usize, usize)>>,
    path: Path,
) -> Option<Vec<Step>> {
    let Some((server, resource, lacking)) = path.lacking(working) else {
        return Some(path.steps);
    };
    if path.steps.len() == STEPS_MAX {
        return None;
    }
    let mut candidates: Vec<(u64, Step)> = Vec::new();
    for (tenant, loses) in holders.get(&server).into_iter().flatten().copied() {
        if path.steps.iter().any(|step| step.tenant == tenant) {
            continue;
        }
        let one = &working[tenant];
        let cost = one.tenant.partitions[loses]
            .costs
            .iter()
            .find(|(on, _)| *on == server);
        let cost = i128::from(cost.map_or(0, |(_, cost)| cost[resource]));
        if cost == 0 {
            continue;
        }
        let per_s = u64::try_from((lacking + cost - 1) / cost).unwrap_or(u64::MAX);
        if per_s > one.spare_per_s(loses) {
            continue;
        }
        let gainers = (0..one.tenant.partitions.len()).filter(|gains| *gains != loses);
        // It gains where it lacks most, and where others leave room.
        let gains = gainers.max_by_key(|gains| {
            let costs = &one.tenant.partitions[*gains].costs;
            let fits = path.room.fits_per_s(costs, per_s);
            (fits, one.short_per_s(*gains), std::cmp::Reverse(*gains))
        });
        if let Some(gains) = gains {
            let step = Step {
                tenant,
                loses,
                gains,
                per_s,
            };
            candidates.push((one.spare_per_s(loses) - per_s, step));
        }
    }
    candidates.sort_by(|(a, one), (b, other)| b.cmp(a).then(one.tenant.cmp(&other.tenant)));
    candidates.into_iter().find_map(|(_, step)| {
        let mut longer = path.clone();
        longer.take(working, step);
        closed(working, holders, longer)
    })
}

impl Path {
    fn take(&mut self, working: &[Working], step: Step) {
        let partitions = &working[step.tenant].tenant.partitions;
        self.room.give(&partitions[step.loses].costs, step.per_s);
        self.room.take(&partitions[step.gains].costs, step.per_s);
        self.steps.push(step);
    }

    /// The server that lacks most for what the path's tenants gain, with the resource and the amount.
    fn lacking(&self, working: &[Working]) -> Option<(ServerId, usize, i128)> {
        let gained = self
            .steps
            .iter()
            .map(|step| &working[step.tenant].tenant.partitions[step.gains]);
        let lacking = gained.filter_map(|partition| self.room.scarcest(&partition.costs, 0));
        lacking.max_by_key(|(server, resource, amount)| (*amount, std::cmp::Reverse((*server, *resource))))
    }
}
