//! The end of all disturbances, but for a disk that is full for good.

use quorate_types::{GroupState, Micros, planted};

use super::dispatch;
use crate::coordinator::outages;
use crate::faults::network;
use crate::fleet::{Hosted, Node, World};
use crate::server::{process, storage};

/// A group has so long to leave a full disk.
pub(super) const FREED_AFTER_US: Micros = 30_000_000;

/// Ends every disturbance.
pub(super) fn heal(world: &mut World) {
    let blocked: Vec<(Node, Node)> = world.blocked.keys().copied().collect();
    for (from, to) in blocked {
        world.blocked.insert((from, to), world.now);
        network::unblock(world, from, to);
    }
    for c in 0..world.coordinators.members.len() {
        world.coordinators.members[c].sync_factor = 1;
        outages::restart(world, c);
        outages::pause(world, c, world.now);
    }
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
        if world.servers[s].disk_fault && !world.servers[s].disk_is_full_for_good {
            storage::end_fault(world, s, incarnation);
        }
        process::restart(world, s);
    }
}

/// Operators free space where a group cannot leave a full disk by itself: its truncation waits for that disk, so that no
/// other server may learn from it.
pub(super) fn free_disks(world: &mut World) {
    for s in 0..world.servers.len() {
        let server = &world.servers[s];
        let waits = |hosted: &Hosted| hosted.replica().state() == GroupState::Syncing;
        if server.alive && server.disk_is_full_for_good && server.groups.values().any(waits) {
            world.servers[s].disk_is_full_for_good = false;
            let incarnation = world.servers[s].incarnation;
            storage::end_fault(world, s, incarnation);
        }
    }
}
