//! The journal's copier finds records that cannot be read.

use quorate_group::{CopierId, Event};
use rand::Rng;

use super::groups;
use crate::fleet::{Scheduled, World};

pub fn schedule_pass(world: &mut World, s: usize, incarnation: u64) {
    if let Some(every_us) = world.plan.copy_every_us {
        let at = world.now + world.rng.random_range(1..=2 * every_us);
        world.schedule(
            at,
            Scheduled::Copy {
                server: s,
                incarnation,
            },
        );
    }
}

pub fn run_pass(world: &mut World, s: usize, incarnation: u64) {
    schedule_pass(world, s, incarnation);
    // A copier that waits for a damaged record does not go on.
    if !world.servers[s].disk.has_damage() || !world.servers[s].copiers.is_empty() {
        return;
    }
    let mut lost = world.servers[s].disk.unreadable_records();
    for group_id in world.servers[s].group_ids() {
        let server = &mut world.servers[s];
        let mut damaged = Vec::new();
        for (index, lsn) in server.disk.batches_in(group_id, &lost) {
            lost.retain(|of| *of != lsn);
            server.copiers_started += 1;
            server.copiers.insert(server.copiers_started, (group_id, lsn));
            damaged.push((index, Some(CopierId(server.copiers_started))));
        }
        if !damaged.is_empty() {
            world.counts.damage_found += damaged.len() as u64;
            groups::step(world, s, group_id, Event::Damaged(damaged));
        }
    }
    let restated = &mut world.servers[s].restated;
    let before = restated.len();
    restated.extend(lost);
    if restated.len() > before {
        world.counts.restated += 1;
        for group_id in world.servers[s].group_ids() {
            groups::step(world, s, group_id, Event::Restate);
        }
    }
}
