//! Faults of servers, where the fleet can do without what they take.

use quorate_types::Micros;
use quorate_types::planted;
use rand::Rng;

use crate::fleet::{Scheduled, Server, World};
use crate::links;
use crate::plan::Fault;
use crate::server::{hangs, process, storage};

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

/// Poisons one of a group's next batches, unless another is.
pub(super) fn poison(world: &mut World) -> bool {
    let g = world.rng.random_range(0..world.ledgers.len());
    if world.poisoned.is_some() || world.ledgers[g].is_lost {
        return false;
    }
    let last = world.ledgers[g].last().map_or(0, |last| last.index);
    let index = last + world.rng.random_range(1..4);
    world.poisoned = Some(g);
    planted::poison(Some((World::group_id(g).0.as_u128(), index)));
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

/// Servers' clocks are wrong by other amounts than the coordinator's. If both were wrong alike, nobody could tell.
const STEP_US: i64 = 20_000_000;
/// Hangs a part of a server, mostly for longer than it may.
pub(super) fn hang(world: &mut World, s: usize, fault: Fault) -> bool {
    if !world.servers[s].alive {
        return false;
    }
    let length = if world.rng.random_bool(0.3) {
        world.rng.random_range(50_000..400_000)
    } else {
        world.rng.random_range(1_000_000..8_000_000)
    };
    let until = world.now + length;
    if fault == Fault::HungThread {
        hangs::hang_thread(world, s, until);
        return true;
    }
    hang_syncs(world, s, until);
    // The next sync, which hangs, is in the shard's own thread.
    if world.rng.random_bool(0.5) {
        hangs::hang_thread(world, s, until);
    }
    true
}

/// Hangs the syncs of most servers.
pub(super) fn hang_storage(world: &mut World) -> bool {
    let until = world.now + world.rng.random_range(1_000_000..8_000_000);
    let count = world.servers.len();
    let spared = world.rng.random_range(0..count);
    for s in (0..count).filter(|s| count < 4 || *s != spared) {
        if world.servers[s].alive {
            hang_syncs(world, s, until);
        }
    }
    true
}

fn hang_syncs(world: &mut World, s: usize, until: Micros) {
    let hang = &mut world.servers[s].hang;
    hang.sync_until = hang.sync_until.max(until);
}

pub(super) fn jump_clock(world: &mut World, s: usize) {
    if world.rng.random_bool(0.3) {
        let c = world.rng.random_range(0..world.coordinators.members.len());
        world.coordinators.members[c].wall_offset_us = draw_step(world) + STEP_US / 2;
    } else {
        world.servers[s].wall_offset_us += draw_step(world);
    }
}

/// A wrong clock may also be wrong by less than anybody notices.
pub(super) fn start_with_another_clock(world: &mut World, s: usize) -> bool {
    if !crash_if(world, s) {
        return false;
    }
    let unnoticed_us = world.rng.random_range(-900_000..900_000);
    world.servers[s].wall_offset_us = draw_step(world) + unnoticed_us;
    true
}

/// Up to an hour, ahead or behind, or none.
fn draw_step(world: &mut World) -> i64 {
    STEP_US * world.rng.random_range(-180..=180)
}
