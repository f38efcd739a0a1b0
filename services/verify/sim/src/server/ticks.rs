//! Time passes for groups: ticks, and events that they asked for.

use quorate_chain::ReplicaEvent;
use quorate_group::{Event, Grant};
use quorate_types::{GroupId, Micros};
use rand::Rng;

use super::{groups, reports, timers};
use crate::fleet::{Scheduled, World};
use crate::invariants;

pub const TICK_US: Micros = 50_000;

pub fn tick(world: &mut World, s: usize, incarnation: u64) {
    world.servers[s].hang.tick();
    let is_coordinator_silent = world.servers[s].is_coordinator_silent(world.now);
    let shares_burst = world.plan.shares_burst;
    let server = &mut world.servers[s];
    server.turn.shares_burst = shares_burst;
    server.turn.is_burst_stopped = shares_burst && world.rng.random_bool(0.1);
    let number = world.now / TICK_US;
    for group_id in world.servers[s].group_ids() {
        if shares_burst {
            share_burst(world, s, group_id);
        }
        // A group may be quarantined by each of its steps.
        let hosted = world.servers[s].groups.get(&group_id);
        if hosted.is_some_and(|hosted| hosted.group.is_tick_due(number)) {
            let event = Event::Tick {
                is_coordinator_silent,
            };
            groups::step(world, s, group_id, event);
        }
        if let Some(bytes) = world.plan.catchup_bytes {
            groups::step_replica(world, s, group_id, ReplicaEvent::CatchupAllowance { bytes });
        }
        let g = World::index_of(group_id);
        world.in_generation_of(s, g, |world| invariants::read_somewhere(world, s, g));
    }
    invariants::after_tick(world, s);
    world.servers[s].slow = reports::slow(&world.servers[s], world.now);
    world.schedule(
        world.now + TICK_US,
        Scheduled::Tick {
            server: s,
            incarnation,
        },
    );
}

/// The controller of burst capacity grants something, or assumes something, whatever was used.
fn share_burst(world: &mut World, s: usize, group_id: GroupId) {
    let server = &world.servers[s];
    let now_us = server.clock_us(world.now);
    let replica = server.groups[&group_id].replica();
    let reserved_per_s = replica.config().map_or(0, |config| config.budget.rate_per_s);
    // Some are of an epoch that has ended.
    let epoch = replica.epoch() - u64::from(replica.epoch() > 1 && world.rng.random_bool(0.1));
    let rate_per_s = world.rng.random_range(0..=2 * reserved_per_s);
    if world.rng.random_bool(0.1) {
        let until_us = now_us + world.rng.random_range(1_000..2_000_000);
        let grant = Grant {
            epoch,
            rate_per_s,
            until_us,
        };
        groups::step(world, s, group_id, Event::Grant(grant));
    }
    if world.rng.random_bool(0.1) {
        let rate_per_s = (rate_per_s <= reserved_per_s).then_some(rate_per_s);
        groups::step(world, s, group_id, Event::Assume { epoch, rate_per_s });
    }
}

pub fn catchup_due(world: &mut World, s: usize, group_id: GroupId) {
    if let Some(hosted) = world.servers[s].groups.get_mut(&group_id) {
        hosted.is_catchup_scheduled = false;
        let bytes = hosted.group.catchup_wanted_bytes();
        groups::step_replica(world, s, group_id, ReplicaEvent::CatchupAllowance { bytes });
    }
}

pub fn commit_notice_due(world: &mut World, s: usize, group_id: GroupId) {
    if let Some(hosted) = world.servers[s].groups.get_mut(&group_id) {
        hosted.is_notice_scheduled = false;
        if hosted.group.owes_commit_notice() {
            groups::step_replica(world, s, group_id, ReplicaEvent::CommitNoticeDue);
        }
    }
}

/// The time of the group's next scheduled flush has come.
pub fn wake(world: &mut World, s: usize, group_id: GroupId) {
    let Some(hosted) = world.servers[s].groups.get_mut(&group_id) else {
        return;
    };
    if hosted.wake_at <= world.now {
        hosted.wake_at = 0;
    }
    groups::flush_group(world, s, group_id);
    timers::schedule_wake(world, s, group_id);
}
