//! A server of which a part hangs for long counts as failed, though its heartbeats go on, until the hang ends. No other
//! server does for it: neither one that stood still as a whole, nor healthy neighbours of a hung one. When most of the
//! fleet hangs, nobody does.

use std::collections::BTreeMap;

use quorate_coordinator_core::state::CoordinatorState;
use quorate_types::{GroupId, Micros, ServerId};

use crate::fleet::World;

/// Reports of a hang may count for so long after it has ended.
const LATE_US: Micros = 10_000_000;

/// From the end of a hang until the watch has seen it: a tick and a look.
const SEEN_LATE_US: Micros = 150_000;

/// The commands of a coordinator that finds servers hung are about to be made durable.
pub fn when_found_hung(world: &World, servers: &[ServerId]) {
    // Clocks run slower by a twentieth at most. A thread that goes on shows it with its next tick, to the next look.
    let least_us = (world.plan.suspicions.hung_ms * 900).saturating_sub(SEEN_LATE_US);
    for id in servers {
        let Some(s) = world.server_of(*id) else { continue };
        let since = world.now.saturating_sub(LATE_US);
        let server = &world.servers[s];
        assert!(
            server.hang.has_hung(least_us, since, world.now),
            "s{} is found hung, and no part of it hung",
            s + 1
        );
    }
    if world.plan.only_hangs() {
        let hung = hung_for(world, known_half_us(world));
        assert!(
            hung * 2 <= world.servers.len(),
            "{servers:?} are found hung, though {hung} of {} servers hang",
            world.servers.len()
        );
    }
}

fn hung_for(world: &World, us: Micros) -> usize {
    let hung = world
        .servers
        .iter()
        .filter(|server| server.hang.lasted_us(world.now) >= us)
        // One that has no connection has not said it.
        .filter(|server| {
            server
                .control
                .as_ref()
                .is_some_and(|control| control.is_registered)
        });
    hung.count()
}

/// By then a server's hang is known to the coordinator for half of the time after which it fails.
fn known_half_us(world: &World) -> Micros {
    world.plan.suspicions.hung_ms * 530 + report_us(world)
}

/// From a hang that is long enough to the coordinator's decision: a sample, a heartbeat, two messages that wait for syncs
/// of the log.
fn report_us(world: &World) -> Micros {
    let plan = &world.plan;
    2 * plan.heartbeat_ms * 1_060 + plan.control_delay_us_max + 4 * plan.coordinator_sync_us_max + 250_000
}

/// Where nothing but hangs happens: a server that has hung for long has failed by now, unless most of them hang.
pub fn check(world: &World) {
    let plan = &world.plan;
    if !plan.only_hangs() || world.is_healing {
        return;
    }
    let due_us = plan.suspicions.hung_ms * 1_060 + report_us(world);
    let since = world.now.saturating_sub(due_us);
    let about_half_us = plan.suspicions.hung_ms * 400;
    let recent = |s: &usize| world.servers[*s].hang.has_hung(about_half_us, since, world.now);
    if 2 * (0..world.servers.len()).filter(recent).count() > world.servers.len() {
        return;
    }
    let state = world.coordinators.state();
    for (s, server) in world.servers.iter().enumerate() {
        let Some(id) = server.id.filter(|_| server.hang.lasted_us(world.now) > due_us) else {
            continue;
        };
        assert!(
            !state.is_alive(id),
            "s{} has hung for {} us, and counts as alive",
            s + 1,
            server.hang.lasted_us(world.now)
        );
    }
}

/// Chains before the coordinator took something in.
pub type Before = BTreeMap<GroupId, Vec<ServerId>>;

pub fn before(state: &CoordinatorState) -> Before {
    let chains = state.groups.iter();
    chains.map(|(id, group)| (*id, group.chain.clone())).collect()
}

/// Where nothing but hangs happens, no server leaves a chain that did not hang.
pub fn healthy_stays(world: &World, before: &Before) {
    if !world.plan.only_hangs() {
        return;
    }
    for (group_id, chain) in before {
        let Some(group) = world.coordinators.state().groups.get(group_id) else {
            continue;
        };
        let left = chain.iter().filter(|id| !group.chain.contains(id));
        for s in left.filter_map(|id| world.server_of(*id)) {
            let since = world.now.saturating_sub(LATE_US);
            assert!(
                world.servers[s].hang.has_hung(100_000, since, world.now),
                "s{} leaves a chain of group {}, and no part of it hung",
                s + 1,
                World::index_of(*group_id) + 1
            );
        }
    }
}
