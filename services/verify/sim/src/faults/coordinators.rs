//! Faults of coordinators: mostly of the one that leads.

use rand::Rng;

use super::network;
use crate::coordinator::{outages, replacements, restores};
use crate::fleet::{Scheduled, World};
use crate::plan::Fault;

/// Applies the fault. False: it was not possible.
pub(super) fn apply(world: &mut World, fault: Fault) -> bool {
    let c = drawn(world);
    match fault {
        Fault::CoordinatorCrash => outages::crash(world, c),
        Fault::CoordinatorRestore => restores::restore(world),
        Fault::CoordinatorPause => {
            let until = world.now + world.rng.random_range(10_000..2_000_000);
            outages::pause(world, c, until);
            true
        }
        Fault::CoordinatorsApart => network::part_coordinators(world),
        Fault::CoordinatorDiskSlow => {
            world.coordinators.members[c].sync_factor = 50;
            let at = world.now + world.rng.random_range(10_000..2_000_000);
            world.schedule(at, Scheduled::CoordinatorDiskFast { member: c });
            true
        }
        Fault::CoordinatorLost => replacements::lose(world, c),
        Fault::CoordinatorDamaged => replacements::damage(world, c),
        Fault::CoordinatorReplaced => replacements::replace(world, c),
        other => unreachable!("no fault of a coordinator: {other:?}"),
    }
}

fn drawn(world: &mut World) -> usize {
    let any = world.rng.random_range(0..world.coordinators.members.len());
    let leader = world.coordinators.leader().filter(|_| world.rng.random_bool(0.5));
    leader.unwrap_or(any)
}
