//! A server's ends of its links: messages that arrive there go into groups.

use bytes::BytesMut;
use quorate_chain::ReplicaEvent;
use quorate_wire::peer::Envelope;
use quorate_wire::{WireError, decode_frame};

use super::groups;
use crate::fleet::{Link, Node, World};
use crate::links;

/// As in `services/replica`: a base travels in one frame.
const PEER_FRAME_BYTES_MAX: u32 = quorate_types::limits::FRAME_BYTES_MAX + (8 << 20);

pub fn link_up(world: &mut World, server: usize, peer: usize, generation: u64) {
    let Some(id) = world.servers[peer].id else { return };
    let link = world.link(server, peer);
    if link.generation == generation && link.is_open {
        link.knows[Link::end(server, peer)] = true;
        if links::is_silent(world, server, peer) {
            // A listener took the connection, and nobody speaks on it.
            links::watch_silence(world, server, peer);
        } else {
            world.servers[server].unreachable.remove(&id);
        }
        world
            .trace
            .line(None, || format!("s{} has a link to s{}", server + 1, peer + 1));
        links_changed(world, server, ReplicaEvent::LinkUp { server: id });
    }
}

pub fn link_down(world: &mut World, server: usize, peer: usize, generation: u64) {
    let Some(id) = world.servers[peer].id else { return };
    let link = world.link(server, peer);
    if link.generation == generation && std::mem::take(&mut link.knows[Link::end(server, peer)]) {
        world.servers[server].unreachable.insert(id);
        world.trace.line(None, || {
            format!("s{} loses its link to s{}", server + 1, peer + 1)
        });
        links_changed(world, server, ReplicaEvent::LinkDown { server: id });
    }
}

fn links_changed(world: &mut World, server: usize, event: ReplicaEvent) {
    for group_id in world.servers[server].group_ids() {
        groups::step_replica(world, server, group_id, event.clone());
    }
}

/// Bytes arrive: whole frames are decoded and taken in, as a link's reader does it.
pub fn receive(world: &mut World, from: usize, to: usize, generation: u64) {
    let is_blocked = world.is_blocked(Node::Server(from), Node::Server(to));
    let receiver = Link::end(to, from);
    let link = world.link(from, to);
    if link.generation != generation || is_blocked {
        return;
    }
    let Some(bytes) = link.pipes[receiver].receive() else {
        return;
    };
    link.partial[receiver].extend_from_slice(&bytes);
    if let Some(id) = world.servers[from].id {
        world.servers[to].unreachable.remove(&id);
    }
    loop {
        let link = world.link(from, to);
        match next_envelope(&mut link.partial[receiver]) {
            Ok(None) => return,
            Ok(Some(envelope)) => {
                let Some(id) = world.servers[from].id else { return };
                let event = quorate_group::Event::Peer {
                    from: id,
                    epoch: envelope.epoch,
                    message: envelope.message,
                };
                groups::step(world, to, envelope.group_id, event);
                if world.link(from, to).generation != generation {
                    return;
                }
            }
            Err(error) => {
                world.trace.line(None, || format!("s{}: {error}", to + 1));
                return links::break_link(world, from, to);
            }
        }
    }
}

fn next_envelope(bytes: &mut BytesMut) -> Result<Option<Envelope>, WireError> {
    decode_frame(bytes, PEER_FRAME_BYTES_MAX)?
        .map(|frame| Envelope::decode(&frame))
        .transpose()
}
