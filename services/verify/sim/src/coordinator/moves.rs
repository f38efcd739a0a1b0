//! Operators have single replicas move to other servers, also to some that cannot take them.

use quorate_coordinator_core::command::{Cause, Command, Relocate};
use quorate_types::{GroupId, ServerId, versions};
use rand::Rng;

use super::input;
use crate::fleet::World;

/// About one request in this part of the ticks.
const ASKED: f64 = 0.05;

pub(super) fn make_requests(world: &mut World, c: usize) {
    if !world.plan.operators_move || world.is_healing || !world.rng.random_bool(ASKED) {
        return;
    }
    let known = world.coordinators.known();
    if known.fleet_version < versions::FLEET_WITH_RELOCATIONS {
        let to = versions::FLEET.newest;
        return input::command(world, c, Command::RaiseFleetVersion { to });
    }
    let chains: Vec<(GroupId, Vec<ServerId>)> = known
        .groups
        .values()
        .map(|group| (group.group_id, group.chain.clone()))
        .filter(|(_, chain)| !chain.is_empty())
        .collect();
    let servers: Vec<ServerId> = known.servers.keys().copied().collect();
    if chains.is_empty() {
        return;
    }
    let (group_id, chain) = &chains[world.rng.random_range(0..chains.len())];
    let from = chain[world.rng.random_range(0..chain.len())];
    let named = servers[world.rng.random_range(0..servers.len())];
    let to = world.rng.random_bool(0.5).then_some(named);
    let asked = Relocate {
        group_id: *group_id,
        from,
        to,
        cause: Cause::Operator,
    };
    world.counts.moves_asked += 1;
    input::command(world, c, Command::Relocate(asked));
}
