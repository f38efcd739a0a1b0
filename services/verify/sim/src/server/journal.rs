//! Records for the server's journal are written and synced.

use quorate_recovery::GroupRecord;
use rand::Rng;

use crate::fleet::{Scheduled, World};

pub(super) fn write(world: &mut World, s: usize, entry: GroupRecord) {
    world.servers[s].disk.submit(entry);
    start_sync(world, s);
}

pub(super) fn start_sync(world: &mut World, s: usize) {
    let server = &mut world.servers[s];
    if server.disk.syncing > 0 || !server.disk.has_pending() || server.disk_fault {
        return;
    }
    server.disk.begin_sync(&mut world.rng);
    let (incarnation, factor) = (server.incarnation, server.sync_factor);
    let at = world.now + world.rng.random_range(20..=world.plan.sync_us_max) * factor;
    let at = world.servers[s].hang.begin_sync(world.now, at);
    world.schedule(
        at,
        Scheduled::Synced {
            server: s,
            incarnation,
        },
    );
}
