//! The division of tenants' rates in one interval.

use quorate_types::GroupId;

use crate::room::Room;
use crate::swap;
use crate::tenant::{Tenant, threshold_per_s};
use crate::working::{Step, Working};

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

/// A partition that lacks rate, and whose servers have no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressed {
    pub tenant: GroupId,
    pub partition: usize,
    pub lacks_per_s: u64,
}

/// The outcome of one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Divided {
    /// Tenants whose rates change.
    pub divisions: Vec<Division>,
    /// Partitions that no change of rates helps, the worst off first.
    pub pressed: Vec<Pressed>,
    /// Free amounts once rates have changed.
    pub room: Room,
}

/// The tenants whose rates change, the largest mismatches first (Pisces, Algorithm 1). The cost of a mismatch grows with the
/// part of its goal that a partition lacks, so the worst off gain first.
pub fn divide(tenants: &[Tenant], room: &Room) -> Divided {
    let (mut working, mut room): (Vec<Working>, Room) =
        (tenants.iter().map(Working::new).collect(), room.clone());
    let mut pressed = Vec::new();
    for _ in 0..MOVES_MAX {
        let worst = (0..working.len()).filter_map(|at| Some((working[at].worst()?, at)));
        let Some(((_, partition), at)) = worst.max_by_key(|((lack, _), at)| (*lack, std::cmp::Reverse(*at)))
        else {
            break;
        };
        if !improve(&mut working, &mut room, at, partition) {
            working[at].given_up[partition] = true;
            if working[at].giver(partition).is_some() {
                pressed.push(Pressed {
                    tenant: working[at].tenant.id,
                    partition,
                    lacks_per_s: working[at].short_per_s(partition),
                });
            }
        }
    }
    let changed = working.into_iter().zip(tenants);
    let changed = changed.filter(|(after, before)| after.tenant.rates() != before.rates());
    let division = |(after, _): (Working, &Tenant)| Division {
        id: after.tenant.id,
        rates: after.tenant.rates(),
        is_swapped: after.is_swapped,
    };
    let divisions = changed.map(division).collect();
    Divided {
        divisions,
        pressed,
        room,
    }
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
