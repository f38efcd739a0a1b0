//! Directions between nodes that carry nothing for a while.

use quorate_types::Micros;
use rand::Rng;

use crate::fleet::{Node, Scheduled, World};
use crate::links;
use crate::server::control;

/// Isolates a server, often for so long that clients have to go elsewhere.
pub(super) fn isolate(world: &mut World, s: usize) {
    let length = world.rng.random_range(200_000..4_000_000);
    let servers = (0..world.servers.len()).map(Node::Server);
    for other in servers.chain([Node::Coordinator]) {
        if other != Node::Server(s) {
            block_for(world, Node::Server(s), other, length);
            block_for(world, other, Node::Server(s), length);
        }
    }
}

/// Blocks one direction between the server and the coordinator.
pub(super) fn block_control(world: &mut World, s: usize) {
    if world.rng.random_bool(0.5) {
        block(world, Node::Server(s), Node::Coordinator);
    } else {
        block(world, Node::Coordinator, Node::Server(s));
    }
}

pub(super) fn block(world: &mut World, from: Node, to: Node) {
    let short = world.rng.random_bool(0.7);
    let length: Micros = if short {
        world.rng.random_range(1_000..300_000)
    } else {
        world.rng.random_range(300_000..6_000_000)
    };
    block_for(world, from, to, length);
}

fn block_for(world: &mut World, from: Node, to: Node, length: Micros) {
    let until = world.now + length;
    let until = until.max(world.blocked.get(&(from, to)).copied().unwrap_or(0));
    world.blocked.insert((from, to), until);
    world.schedule(until, Scheduled::Unblock { from, to });
    if let (Node::Server(from), Node::Server(to)) = (from, to) {
        links::watch_silence(world, to, from);
    }
}

pub fn unblock(world: &mut World, from: Node, to: Node) {
    if world
        .blocked
        .get(&(from, to))
        .is_none_or(|until| *until > world.now)
    {
        return;
    }
    world.blocked.remove(&(from, to));
    match (from, to) {
        (Node::Server(from), Node::Server(to)) => links::resume(world, from, to),
        (Node::Server(server), Node::Coordinator) => control::resume(world, server, true),
        (Node::Coordinator, Node::Server(server)) => control::resume(world, server, false),
        (Node::Coordinator, Node::Coordinator) => unreachable!("no node is blocked from itself"),
    }
}
