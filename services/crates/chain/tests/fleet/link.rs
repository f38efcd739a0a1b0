//! Links between pairs of servers: in order, delayed, and now and then broken with all that is on them.

use std::collections::VecDeque;

use quorate_types::{Epoch, Micros};
use quorate_wire::peer::Message;
use rand::Rng;

use crate::world::{What, World};

#[derive(Debug, Default)]
pub struct Link {
    pub generation: u64,
    /// Whether the connection exists; ends learn of it later.
    pub is_open: bool,
    /// Per end (lower number first): it knows the connection of this generation.
    pub knows: [bool; 2],
    pub up_at: [Micros; 2],
    /// Per receiving end: what is on its way.
    queues: [VecDeque<(Epoch, Message)>; 2],
    last_at: [Micros; 2],
}

impl World {
    fn pair(a: usize, b: usize) -> (usize, usize) {
        (a.min(b), a.max(b))
    }

    pub fn link(&mut self, a: usize, b: usize) -> &mut Link {
        self.links.entry(Self::pair(a, b)).or_default()
    }

    pub fn open_link(&mut self, a: usize, b: usize) {
        let (now, delay) = (self.now, self.plan.link_delay_us_max);
        let up_at = [0, 1].map(|_| now + self.rng.random_range(0..=delay));
        let link = self.link(a, b);
        link.generation += 1;
        link.is_open = true;
        link.knows = [false; 2];
        link.up_at = up_at;
        link.last_at = up_at;
        link.queues = Default::default();
        let generation = link.generation;
        for (end, at) in [a.min(b), a.max(b)].into_iter().zip(up_at) {
            let peer = a + b - end;
            self.at(
                at,
                What::LinkUp {
                    server: end,
                    peer,
                    generation,
                },
            );
        }
    }

    /// Loses what is on the link. Ends learn of it later, or not before the next connection.
    pub fn break_link(&mut self, a: usize, b: usize) {
        let link = self.link(a, b);
        if !link.is_open {
            return;
        }
        link.is_open = false;
        link.queues = Default::default();
        let generation = link.generation;
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
    }

    pub fn send(&mut self, from: usize, to: usize, epoch: Epoch, message: Message) {
        let (now, delay) = (self.now, self.plan.link_delay_us_max);
        let delay = if self.rng.random_bool(0.02) {
            delay * 10
        } else {
            delay
        };
        let at = now + self.rng.random_range(1..=delay);
        let (sender, receiver) = if from < to { (0, 1) } else { (1, 0) };
        let link = self.link(from, to);
        if !link.is_open || !link.knows[sender] {
            return;
        }
        let at = at.max(link.last_at[receiver]).max(link.up_at[receiver]);
        link.last_at[receiver] = at;
        link.queues[receiver].push_back((epoch, message));
        let generation = link.generation;
        self.at(at, What::Deliver { from, to, generation });
    }

    /// The next message on the link, if it is still the same connection.
    pub fn receive(&mut self, from: usize, to: usize, generation: u64) -> Option<(Epoch, Message)> {
        let receiver = usize::from(to > from);
        let link = self.link(from, to);
        if link.generation != generation {
            return None;
        }
        link.queues[receiver].pop_front()
    }
}
