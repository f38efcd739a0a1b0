//! Parts of a server hang and go on, and its main thread looks at them (`services/replica/src/hang_task.rs`).

use quorate_types::Micros;
use quorate_types::control::ToServer;
use quorate_types::limits::HANG_SAMPLE_MS;

use super::orders;
use crate::fleet::{Link, Node, Scheduled, World};
use crate::links;

/// Looks at shard and journal, and again after a while.
pub fn watch(world: &mut World, s: usize, incarnation: u64) {
    let now = world.now;
    let server = &mut world.servers[s];
    let at = server.clock_us(now);
    let marks = server.hang.marks();
    server.hang.watch.sample(at, marks);
    world.schedule(
        now + HANG_SAMPLE_MS * 1_000,
        Scheduled::Watch {
            server: s,
            incarnation,
        },
    );
}

/// The shard's thread does nothing until then.
pub fn hang_thread(world: &mut World, s: usize, until: Micros) {
    let now = world.now;
    world.servers[s].hang.hang_thread(now, until);
    for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
        links::watch_silence(world, peer, s);
    }
    let incarnation = world.servers[s].incarnation;
    world.schedule(
        until,
        Scheduled::ShardGoesOn {
            server: s,
            incarnation,
        },
    );
}

/// The thread has gone on: signs of life go out on its links. The events that waited follow.
pub fn take_waiting(world: &mut World, s: usize) -> Vec<Scheduled> {
    if world.servers[s].hang.thread_until > world.now {
        return Vec::new();
    }
    if let Some(id) = world.servers[s].id {
        for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
            let link = world.link(s, peer);
            let is_known = link.is_open && link.knows[Link::end(peer, s)];
            if is_known && !world.is_blocked(Node::Server(s), Node::Server(peer)) {
                world.servers[peer].unreachable.remove(&id);
            }
        }
    }
    std::mem::take(&mut world.servers[s].hang.waiting)
}

/// An order that the main thread handed to the shard.
pub fn take_order(world: &mut World, s: usize, order: ToServer) {
    orders::carry_out(world, s, order);
}
