//! Links between pairs of servers, as `services/replica` keeps them: one connection, real frames, opened again when it
//! breaks or falls silent. A link that breaks loses all that is on the way.

use bytes::BytesMut;
use quorate_types::ServerId;
use quorate_types::limits::LINK_SILENCE_US_MAX;
use quorate_wire::peer::Envelope;
use rand::Rng;

use crate::fleet::{Link, Node, Scheduled, World};
use crate::plan::Fault;

pub fn dial(world: &mut World, a: usize, b: usize) {
    if world.link(a, b).is_open {
        return;
    }
    if !is_reachable(world, a, b) || is_dialer_hung(world, a, b) {
        note_unreachable(world, a, b);
        // As long as both live somebody tries again.
        if world.servers[a].alive && world.servers[b].alive {
            let at = world.now + world.rng.random_range(20_000..200_000);
            world.schedule(at, Scheduled::Dial { a, b });
        }
        return;
    }
    let (now, delay) = (world.now, world.plan.link_delay_us_max);
    let up_at = [0, 1].map(|_| now + world.rng.random_range(1..=delay));
    let link = world.link(a, b);
    let generation = link.generation + 1;
    *link = Link {
        generation,
        is_open: true,
        ..Link::default()
    };
    for (which, at) in up_at.into_iter().enumerate() {
        world.link(a, b).pipes[which].not_before(at);
        let (server, peer) = if which == 0 {
            (a.min(b), a.max(b))
        } else {
            (a.max(b), a.min(b))
        };
        world.schedule(
            at,
            Scheduled::LinkUp {
                server,
                peer,
                generation,
            },
        );
    }
}

fn is_reachable(world: &World, a: usize, b: usize) -> bool {
    let (x, y) = (Node::Server(a), Node::Server(b));
    let runs = |s: usize| {
        world.servers[s].alive && world.servers[s].id.is_some() && world.servers[s].paused_until <= world.now
    };
    runs(a) && runs(b) && !world.is_blocked(x, y) && !world.is_blocked(y, x)
}

/// The shard of the lower number dials. A hung one does not; at the other end the listener takes the connection.
fn is_dialer_hung(world: &World, a: usize, b: usize) -> bool {
    let dials = if world.servers[a].id < world.servers[b].id {
        a
    } else {
        b
    };
    world.servers[dials].hang.thread_until > world.now
}

/// Notes it at the server that dials: that of the lower number.
fn note_unreachable(world: &mut World, a: usize, b: usize) {
    let (Some(id_a), Some(id_b)) = (world.servers[a].id, world.servers[b].id) else {
        return;
    };
    let (dials, other) = if id_a < id_b { (a, id_b) } else { (b, id_a) };
    let dialer = &world.servers[dials];
    if dialer.alive && dialer.paused_until.max(dialer.hang.thread_until) <= world.now {
        world.servers[dials].unreachable.insert(other);
    }
}

/// Loses what is on the link. Ends learn of it later, or not before the next connection.
pub fn break_link(world: &mut World, a: usize, b: usize) {
    let link = world.link(a, b);
    if !link.is_open {
        return;
    }
    let generation = link.generation;
    *link = Link {
        generation,
        knows: link.knows,
        ..Link::default()
    };
    for (server, peer) in [(a, b), (b, a)] {
        if world.rng.random_bool(0.7) {
            let at = world.now + world.rng.random_range(0..3_000);
            world.schedule(
                at,
                Scheduled::LinkDown {
                    server,
                    peer,
                    generation,
                },
            );
        }
    }
    let at = world.now + world.rng.random_range(20_000..100_000);
    world.schedule(at, Scheduled::Dial { a, b });
}

/// `peer` may be silent from here on: checks again when the server would give the link up.
pub fn watch_silence(world: &mut World, server: usize, peer: usize) {
    let link = world.link(server, peer);
    if link.is_open {
        let generation = link.generation;
        world.schedule(
            world.now + LINK_SILENCE_US_MAX,
            Scheduled::Silence {
                server,
                peer,
                generation,
            },
        );
    }
}

/// Whether the peer sends the server no signs of life.
pub fn is_silent(world: &World, server: usize, peer: usize) -> bool {
    let process = &world.servers[peer];
    let stands_still = process.paused_until > world.now || process.hang.thread_until > world.now;
    stands_still || world.is_blocked(Node::Server(peer), Node::Server(server))
}

pub fn check_silence(world: &mut World, server: usize, peer: usize, generation: u64) {
    let hung_us = world.servers[peer].hang.thread_hung_us(world.now);
    let is_silent = is_silent(world, server, peer) && (hung_us == 0 || hung_us >= LINK_SILENCE_US_MAX);
    let link = world.link(server, peer);
    if is_silent && link.is_open && link.generation == generation {
        world.trace.line(None, || {
            format!("s{} gives up its silent link to s{}", server + 1, peer + 1)
        });
        break_link(world, server, peer);
    }
}

pub fn send(world: &mut World, from: usize, to: ServerId, envelope: Envelope) {
    let Some(to) = world.server_of(to) else { return };
    let (sender, receiver) = (Link::end(from, to), Link::end(to, from));
    let link = world.link(from, to);
    if to == from || !link.is_open || !link.knows[sender] {
        return;
    }
    let mut frame = envelope.to_bytes();
    if world.is_fault_on(Fault::FrameFlip) && world.rng.random_bool(0.000_5) {
        world.counts.fault(Fault::FrameFlip);
        let mut flipped = BytesMut::from(&frame[..]);
        let at = world.rng.random_range(0..flipped.len());
        flipped[at] ^= 1 << world.rng.random_range(0..8);
        frame = flipped.freeze();
    }
    let delay = world.plan.link_delay_us_max;
    let delay = if world.rng.random_bool(0.02) {
        delay * 10
    } else {
        delay
    };
    let at = world.now + world.rng.random_range(1..=delay);
    // Now and then a frame comes in two pieces.
    let split = if world.rng.random_bool(0.05) {
        world.rng.random_range(0..=frame.len())
    } else {
        0
    };
    let generation = world.link(from, to).generation;
    for piece in [frame.slice(..split), frame.slice(split..)] {
        if !piece.is_empty() {
            let at = world.link(from, to).pipes[receiver].send(piece, at);
            world.schedule(at, Scheduled::Peer { from, to, generation });
        }
    }
}

/// A direction is open again: what waited arrives.
pub fn resume(world: &mut World, from: usize, to: usize) {
    let receiver = Link::end(to, from);
    let link = world.link(from, to);
    let (waiting, generation) = (link.pipes[receiver].len(), link.generation);
    for n in 0..waiting as u64 {
        world.schedule(world.now + 100 + n, Scheduled::Peer { from, to, generation });
    }
    let (now, after) = (world.now, world.now + 100 + waiting as u64);
    world.link(from, to).pipes[receiver].not_before(after.max(now));
}
