//! The end of a sync; the disk fails, and works again.

use quorate_chain::ReplicaEvent;

use super::{groups, journal, process};
use crate::fleet::{Scheduled, World};

/// Whether the sync under way returns now. If syncs hang, it does when they go on.
pub fn returns(world: &mut World, s: usize) -> bool {
    let (now, incarnation) = (world.now, world.servers[s].incarnation);
    let put_off = world.servers[s].hang.put_off(now);
    match put_off {
        Some(at) => world.schedule(
            at,
            Scheduled::Synced {
                server: s,
                incarnation,
            },
        ),
        None => world.servers[s].hang.end_sync(now),
    }
    put_off.is_none()
}

/// The shard learns that a sync has returned.
pub fn synced(world: &mut World, s: usize) {
    if !returns(world, s) {
        return;
    }
    if world.servers[s].disk_fault {
        // It never returns, or not before there is room.
        world.servers[s].disk.syncing = 0;
        return;
    }
    let durable = world.servers[s]
        .disk
        .complete(world.plan.completions_are_merged, &mut world.rng);
    journal::start_sync(world, s);
    for durable in durable {
        if let Some(event) = durable.event() {
            groups::step_replica(world, s, durable.group_id, event);
        }
    }
}

pub fn set_fault(world: &mut World, s: usize, fault: bool) {
    world.servers[s].disk_fault = fault;
    for group_id in world.servers[s].group_ids() {
        groups::step_replica(world, s, group_id, ReplicaEvent::StorageFault(fault));
    }
    journal::start_sync(world, s);
}

pub fn end_fault(world: &mut World, s: usize, incarnation: u64) {
    if world.servers[s].incarnation != incarnation || !world.servers[s].disk_fault {
        return;
    }
    if world.servers[s].fails_until.is_some() {
        // A journal that failed takes nothing more before its process is restarted; what it holds in memory
        // of other groups goes with it.
        let in_memory = world.in_memory_groups(s);
        if world.is_healing || in_memory.iter().all(|g| world.may_lose(s, *g)) {
            process::crash(world, s);
        } else {
            let at = world.now + 100_000;
            world.schedule(
                at,
                Scheduled::DiskWorks {
                    server: s,
                    incarnation,
                },
            );
        }
        return;
    }
    set_fault(world, s, false);
}
