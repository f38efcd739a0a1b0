//! Links between pairs of servers, as `services/replica` keeps them: one connection, real frames, opened anew when it
//! breaks or falls silent. A link that breaks loses all that is on the way.

use bytes::{Bytes, BytesMut};
use quorate_chain::ReplicaEvent;
use quorate_types::{Micros, ServerId};
use quorate_wire::peer::Envelope;
use quorate_wire::{WireError, decode_frame};
use rand::Rng;

use crate::faults::Fault;
use crate::pipe::Pipe;
use crate::schedule::{Node, What};
use crate::world::World;

/// As in `services/replica`: a base travels in one frame.
const PEER_FRAME_BYTES_MAX: u32 = quorate_types::limits::FRAME_BYTES_MAX + (8 << 20);
/// As in `services/replica`: so long without a word, and a link is opened anew.
const SILENCE_US_MAX: Micros = 3_000_000;

#[derive(Debug, Default)]
pub struct Link {
    pub generation: u64,
    /// Whether the connection exists; ends learn of it later.
    pub is_open: bool,
    /// Per end (lower number first): it knows the connection of this generation.
    pub knows: [bool; 2],
    /// Per receiving end.
    pipes: [Pipe<Bytes>; 2],
    /// Per receiving end: bytes of a frame that has not wholly arrived.
    partial: [BytesMut; 2],
}

fn end(server: usize, peer: usize) -> usize {
    usize::from(server > peer)
}

impl World {
    pub fn link(&mut self, a: usize, b: usize) -> &mut Link {
        self.links.entry((a.min(b), a.max(b))).or_default()
    }

    fn is_reachable(&self, a: usize, b: usize) -> bool {
        let (x, y) = (Node::Server(a), Node::Server(b));
        let runs = |s: usize| {
            self.servers[s].alive && self.servers[s].id.is_some() && self.servers[s].paused_until <= self.now
        };
        runs(a) && runs(b) && !self.is_blocked(x, y) && !self.is_blocked(y, x)
    }

    pub fn dial(&mut self, a: usize, b: usize) {
        if self.link(a, b).is_open {
            return;
        }
        if !self.is_reachable(a, b) {
            self.note_unreachable(a, b);
            // As long as both live somebody tries again.
            if self.servers[a].alive && self.servers[b].alive {
                let at = self.now + self.rng.random_range(20_000..200_000);
                self.at(at, What::Dial { a, b });
            }
            return;
        }
        let (now, delay) = (self.now, self.plan.link_delay_us_max);
        let up_at = [0, 1].map(|_| now + self.rng.random_range(1..=delay));
        let link = self.link(a, b);
        let generation = link.generation + 1;
        *link = Link {
            generation,
            is_open: true,
            ..Link::default()
        };
        for (which, at) in up_at.into_iter().enumerate() {
            self.link(a, b).pipes[which].not_before(at);
            let (server, peer) = if which == 0 {
                (a.min(b), a.max(b))
            } else {
                (a.max(b), a.min(b))
            };
            self.at(
                at,
                What::LinkUp {
                    server,
                    peer,
                    generation,
                },
            );
        }
    }

    /// The one that dials: the lower number, in a fleet.
    fn note_unreachable(&mut self, a: usize, b: usize) {
        let (Some(id_a), Some(id_b)) = (self.servers[a].id, self.servers[b].id) else {
            return;
        };
        let (dials, other) = if id_a < id_b { (a, id_b) } else { (b, id_a) };
        if self.servers[dials].alive && self.servers[dials].paused_until <= self.now {
            self.servers[dials].unreachable.insert(other);
        }
    }

    /// Loses what is on the link. Ends learn of it later, or not before the next connection.
    pub fn break_link(&mut self, a: usize, b: usize) {
        let link = self.link(a, b);
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
            if self.rng.random_bool(0.7) {
                let at = self.now + self.rng.random_range(0..3_000);
                self.at(
                    at,
                    What::LinkDown {
                        server,
                        peer,
                        generation,
                    },
                );
            }
        }
        let at = self.now + self.rng.random_range(20_000..100_000);
        self.at(at, What::Dial { a, b });
    }

    pub fn link_up(&mut self, server: usize, peer: usize, generation: u64) {
        let Some(id) = self.servers[peer].id else { return };
        let link = self.link(server, peer);
        if link.generation == generation && link.is_open {
            link.knows[end(server, peer)] = true;
            self.servers[server].unreachable.remove(&id);
            self.trace
                .line(None, || format!("s{} has a link to s{}", server + 1, peer + 1));
            self.links_changed(server, ReplicaEvent::LinkUp { server: id });
        }
    }

    pub fn link_down(&mut self, server: usize, peer: usize, generation: u64) {
        let Some(id) = self.servers[peer].id else { return };
        let link = self.link(server, peer);
        if link.generation == generation && std::mem::take(&mut link.knows[end(server, peer)]) {
            self.servers[server].unreachable.insert(id);
            self.trace.line(None, || {
                format!("s{} loses its link to s{}", server + 1, peer + 1)
            });
            self.links_changed(server, ReplicaEvent::LinkDown { server: id });
        }
    }

    fn links_changed(&mut self, server: usize, event: ReplicaEvent) {
        for group_id in self.servers[server].group_ids() {
            self.step_replica(server, group_id, event.clone());
        }
    }

    /// `peer` may be silent from here on: looks again when the server would have had enough.
    pub fn watch_silence(&mut self, server: usize, peer: usize) {
        let link = self.link(server, peer);
        if link.is_open {
            let generation = link.generation;
            self.at(
                self.now + SILENCE_US_MAX,
                What::Silence {
                    server,
                    peer,
                    generation,
                },
            );
        }
    }

    pub fn silence(&mut self, server: usize, peer: usize, generation: u64) {
        let is_silent = self.is_blocked(Node::Server(peer), Node::Server(server))
            || self.servers[peer].paused_until > self.now;
        let link = self.link(server, peer);
        if is_silent && link.is_open && link.generation == generation {
            self.trace.line(None, || {
                format!("s{} gives up its silent link to s{}", server + 1, peer + 1)
            });
            self.break_link(server, peer);
        }
    }

    pub fn send(&mut self, from: usize, to: ServerId, envelope: Envelope) {
        let Some(to) = self.server_of(to) else { return };
        let (sender, receiver) = (end(from, to), end(to, from));
        let link = self.link(from, to);
        if to == from || !link.is_open || !link.knows[sender] {
            return;
        }
        let mut frame = envelope.to_bytes();
        if self.is_fault_on(Fault::FrameFlip) && self.rng.random_bool(0.000_5) {
            self.counts.fault(Fault::FrameFlip);
            let mut flipped = BytesMut::from(&frame[..]);
            let at = self.rng.random_range(0..flipped.len());
            flipped[at] ^= 1 << self.rng.random_range(0..8);
            frame = flipped.freeze();
        }
        let delay = self.plan.link_delay_us_max;
        let delay = if self.rng.random_bool(0.02) {
            delay * 10
        } else {
            delay
        };
        let at = self.now + self.rng.random_range(1..=delay);
        // Now and then a frame comes in two pieces.
        let cut = if self.rng.random_bool(0.05) {
            self.rng.random_range(0..=frame.len())
        } else {
            0
        };
        let generation = self.link(from, to).generation;
        for piece in [frame.slice(..cut), frame.slice(cut..)] {
            if !piece.is_empty() {
                let at = self.link(from, to).pipes[receiver].send(piece, at);
                self.at(at, What::Peer { from, to, generation });
            }
        }
    }

    /// Bytes arrive: whole frames are decoded and taken in, as a link's reader does it.
    pub fn receive(&mut self, from: usize, to: usize, generation: u64) {
        let is_blocked = self.is_blocked(Node::Server(from), Node::Server(to));
        let receiver = end(to, from);
        let link = self.link(from, to);
        if link.generation != generation || is_blocked {
            return;
        }
        let Some(bytes) = link.pipes[receiver].receive() else {
            return;
        };
        link.partial[receiver].extend_from_slice(&bytes);
        loop {
            let link = self.link(from, to);
            match next_envelope(&mut link.partial[receiver]) {
                Ok(None) => return,
                Ok(Some(envelope)) => {
                    let Some(id) = self.servers[from].id else { return };
                    let event = quorate_group::Event::Peer {
                        from: id,
                        epoch: envelope.epoch,
                        message: envelope.message,
                    };
                    self.step(to, envelope.group_id, event);
                    if self.link(from, to).generation != generation {
                        return;
                    }
                }
                Err(error) => {
                    self.trace.line(None, || format!("s{}: {error}", to + 1));
                    return self.break_link(from, to);
                }
            }
        }
    }

    /// A direction is open again: what waited arrives.
    pub fn resume_link(&mut self, from: usize, to: usize) {
        let receiver = end(to, from);
        let link = self.link(from, to);
        let (waiting, generation) = (link.pipes[receiver].len(), link.generation);
        for n in 0..waiting as u64 {
            self.at(self.now + 100 + n, What::Peer { from, to, generation });
        }
        let (now, after) = (self.now, self.now + 100 + waiting as u64);
        self.link(from, to).pipes[receiver].not_before(after.max(now));
    }
}

fn next_envelope(bytes: &mut BytesMut) -> Result<Option<Envelope>, WireError> {
    decode_frame(bytes, PEER_FRAME_BYTES_MAX)?
        .map(|frame| Envelope::decode(&frame))
        .transpose()
}
