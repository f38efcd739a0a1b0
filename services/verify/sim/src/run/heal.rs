//! The end of all disturbances, but for a disk that is full for good.

use quorate_types::planted;

use super::dispatch;
use crate::coordinator::outages;
use crate::faults::network;
use crate::fleet::{Node, World};
use crate::server::{process, storage};

/// Ends every disturbance.
pub(super) fn heal(world: &mut World) {
    let blocked: Vec<(Node, Node)> = world.blocked.keys().copied().collect();
    for (from, to) in blocked {
        world.blocked.insert((from, to), world.now);
        network::unblock(world, from, to);
    }
    outages::restart(world);
    outages::pause(world, world.now);
    // Servers with replicas in quarantine are restarted, as their operator does before a release.
    planted::poison(None);
    world.poisoned = None;
    for s in 0..world.servers.len() {
        if !world.servers[s].quarantined.is_empty() {
            process::crash(world, s);
        }
    }
    for s in 0..world.servers.len() {
        world.servers[s].paused_until = world.now;
        world.servers[s].sync_factor = 1;
        world.servers[s].wall_offset_us = 0;
        dispatch::resume(world, s);
        let now = world.now;
        world.servers[s].hang.end(now);
        dispatch::shard_goes_on(world, s);
        let incarnation = world.servers[s].incarnation;
        let stays_full = world.servers[s].disk_is_full_for_good && !is_last_replica(world, s);
        if world.servers[s].disk_fault && !stays_full {
            storage::end_fault(world, s, incarnation);
        }
        process::restart(world, s);
    }
}

/// Whether a group has no other replica: it may wait for this disk. Its operator frees space there.
fn is_last_replica(world: &World, s: usize) -> bool {
    let id = world.servers[s].id;
    let mut groups = world.coordinator.known().groups.values();
    groups.any(|group| group.chain.len() == 1 && group.chain.first().copied() == id)
}
