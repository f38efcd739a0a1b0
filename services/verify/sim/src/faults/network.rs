//! Directions between nodes that carry nothing for a while.

use quorate_types::Micros;
use rand::Rng;

use crate::coordinator::outages;
use crate::fleet::{Node, Scheduled, World};
use crate::links;
use crate::server::control;

/// Isolates a server, often for so long that clients have to go elsewhere.
pub(super) fn isolate(world: &mut World, s: usize) {
    let length = world.rng.random_range(200_000..4_000_000);
    let servers = (0..world.servers.len()).map(Node::Server);
    let coordinators = (0..world.coordinators.members.len()).map(Node::Coordinator);
    for other in servers.chain(coordinators) {
        if other != Node::Server(s) {
            block_for(world, Node::Server(s), other, length);
            block_for(world, other, Node::Server(s), length);
        }
    }
}

/// Keeps coordinators apart: one of them from all others, or two, in one direction or both.
pub(super) fn part_coordinators(world: &mut World) -> bool {
    let count = world.coordinators.members.len();
    if count < 2 {
        return false;
    }
    let one = world.rng.random_range(0..count);
    let all = world.rng.random_bool(0.5);
    let other = (one + world.rng.random_range(1..count)) % count;
    let is_one_way = world.rng.random_bool(0.3);
    if world.rng.random_bool(0.3) {
        outages::close_to_members(world, one);
    }
    for c in (0..count).filter(|c| *c != one && (all || *c == other)) {
        block(world, Node::Coordinator(one), Node::Coordinator(c));
        if !is_one_way {
            block(world, Node::Coordinator(c), Node::Coordinator(one));
        }
    }
    true
}

/// Blocks one direction between the server and the coordinator.
pub(super) fn block_control(world: &mut World, s: usize) {
    let c = world.rng.random_range(0..world.coordinators.members.len());
    if world.rng.random_bool(0.5) {
        block(world, Node::Server(s), Node::Coordinator(c));
    } else {
        block(world, Node::Coordinator(c), Node::Server(s));
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
        (Node::Server(server), Node::Coordinator(c)) => control::resume(world, server, c, true),
        (Node::Coordinator(c), Node::Server(server)) => control::resume(world, server, c, false),
        // Messages that were sent meanwhile are lost: the quorum sends again.
        (Node::Coordinator(_), Node::Coordinator(_)) => {}
    }
}
