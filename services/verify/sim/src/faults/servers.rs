//! Faults of servers, where the fleet can do without what they take.

use rand::Rng;

use crate::fleet::{Scheduled, Server, World};
use crate::links;
use crate::plan::Fault;
use crate::server::{process, storage};

/// A crash, if that loses no group that may not be lost.
pub(super) fn crash_if(world: &mut World, s: usize) -> bool {
    let in_memory = world.in_memory_groups(s);
    if !world.servers[s].alive || !in_memory.iter().all(|g| world.may_lose(s, *g)) {
        return false;
    }
    process::crash(world, s);
    true
}

pub(super) fn crash_many(world: &mut World) -> bool {
    let chosen: Vec<usize> = (0..world.servers.len())
        .filter(|_| world.rng.random_bool(0.6))
        .collect();
    chosen.into_iter().filter(|s| crash_if(world, *s)).count() > 0
}

pub(super) fn crash_all(world: &mut World) -> bool {
    (0..world.servers.len()).filter(|s| crash_if(world, *s)).count() > 0
}

/// Loses all that a server holds, if that loses no group that may not be lost.
pub(super) fn lose(world: &mut World, s: usize, how: impl FnOnce(&mut World, usize)) -> bool {
    if !world.servers[s].alive || !(0..world.ledgers.len()).all(|g| world.may_lose(s, g)) {
        return false;
    }
    how(world, s);
    true
}

/// Damages records of a running server, if others have them.
pub(super) fn rot_if(world: &mut World, s: usize) -> bool {
    if !world.servers[s].alive || !(0..world.ledgers.len()).all(|g| world.others_have(s, g)) {
        return false;
    }
    process::rot(world, s);
    true
}

pub(super) fn disk_fault(world: &mut World, s: usize, fault: Fault) -> bool {
    if !world.servers[s].alive || world.servers[s].disk_fault {
        return false;
    }
    storage::set_fault(world, s, true);
    let incarnation = world.servers[s].incarnation;
    if fault == Fault::DiskFails {
        // Somebody restarts it in the end.
        let at = world.now + world.rng.random_range(10_000..1_000_000);
        world.servers[s].fails_until = Some(at);
        world.schedule(
            at,
            Scheduled::DiskWorks {
                server: s,
                incarnation,
            },
        );
    } else {
        let at = world.now + world.rng.random_range(1_000..400_000);
        world.schedule(
            at,
            Scheduled::DiskWorks {
                server: s,
                incarnation,
            },
        );
    }
    true
}

/// Fills a disk until the process is killed, or the run ends: groups have to heal without it.
pub(super) fn fill_disk_for_good(world: &mut World, s: usize) -> bool {
    let is_tight = world.plan.has_tight_server && s + 1 == world.servers.len();
    let is_full = |server: &Server| server.disk_is_full_for_good;
    let server = &world.servers[s];
    if is_tight || !server.alive || server.disk_fault || world.servers.iter().any(is_full) {
        return false;
    }
    world.servers[s].disk_is_full_for_good = true;
    storage::set_fault(world, s, true);
    true
}

/// Slows the syncs of a server for a while.
pub(super) fn slow_disk(world: &mut World, s: usize) {
    world.servers[s].sync_factor = 20;
    let at = world.now + world.rng.random_range(10_000..world.plan.disk_slow_us_max);
    world.schedule(at, Scheduled::DiskFast { server: s });
}

pub(super) fn pause(world: &mut World, s: usize) {
    let length = if world.rng.random_bool(0.7) {
        world.rng.random_range(1_000..200_000)
    } else {
        world.rng.random_range(200_000..5_000_000)
    };
    let until = world.now + length;
    world.servers[s].paused_until = until.max(world.servers[s].paused_until);
    for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
        links::watch_silence(world, peer, s);
    }
}

pub(super) fn jump_clock(world: &mut World, s: usize) {
    let jump = world.rng.random_range(-3_600_000_000i64..3_600_000_000);
    match world.rng.random_bool(0.3) {
        true => world.coordinator.wall_offset_us += jump,
        false => world.servers[s].wall_offset_us += jump,
    }
}
