//! Operators have servers drained, call it off, and stop drained servers.

use quorate_coordinator_core::command::Command;
use quorate_types::ServerId;
use quorate_types::control::DrainState;

use super::input;
use crate::fleet::World;
use crate::invariants;
use crate::server::process;

pub(super) fn make_requests(world: &mut World, c: usize) {
    let state = world.coordinators.state();
    let drains = |id: &ServerId| state.servers[id].drain.is_some();
    let other: Vec<ServerId> = state
        .servers
        .keys()
        .copied()
        .filter(|id| drains(id) != world.coordinators.drains.contains(id))
        .collect();
    for server in other {
        if world.coordinators.drains.contains(&server) {
            world.counts.drains += 1;
            input::command(world, c, Command::Drain { server });
        } else {
            input::command(world, c, Command::CallOffDrain { server });
        }
    }
}

/// Starts the drain of this server, if the fleet can do without it.
pub fn want(world: &mut World, s: usize) -> bool {
    let Some(id) = world.servers[s].id else {
        return false;
    };
    let degree_max = world
        .plan
        .groups
        .iter()
        .map(|group| usize::from(group.degree))
        .max();
    // A machine that does not know its number at present may come back as a drained server. The coordinator may not know
    // one either, on an older copy of its log.
    let known = &world.coordinators.known().servers;
    let is_there = |id: &&ServerId| known.contains_key(id) || world.server_of(**id).is_some();
    let drained = world.coordinators.drains.iter().filter(is_there).count();
    let may = drained + degree_max.unwrap_or(0) + world.plan.reserved_servers() < world.servers.len();
    may && world.coordinators.drains.insert(id)
}

pub fn call_off(world: &mut World, s: usize) -> bool {
    let id = world.servers[s].id;
    id.is_some_and(|id| world.coordinators.drains.remove(&id))
}

/// Stops a server that knows that it is drained, if its drain was not called off.
pub fn stop_drained(world: &mut World, s: usize) -> bool {
    let server = &world.servers[s];
    let wanted = server
        .id
        .is_some_and(|id| world.coordinators.drains.contains(&id));
    if !wanted || !server.alive || server.drain != DrainState::Drained {
        return false;
    }
    invariants::when_drained(world, s);
    world.counts.drained_stops += 1;
    process::crash(world, s);
    true
}
