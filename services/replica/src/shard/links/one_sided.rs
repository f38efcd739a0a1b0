//! Links that go by one-sided writes, as `Links` sees them: offers, looks, sleep and trouble.

use std::rc::Rc;

use quorate_one_sided::Trouble;
use quorate_transport::FrameReader;
use quorate_types::{Micros, ServerId};
use quorate_wire::one_sided::{self, OneSided};
use tokio::sync::Notify;

use super::{Link, Links};
use crate::shard::ring::{Next, Ring};

/// A link whose ring had trouble goes by its socket so long.
const RING_AGAIN_US: Micros = 60_000_000;

impl Links {
    /// Wakes the task that looks at rings.
    pub fn ring_wake(&self) -> Rc<Notify> {
        self.ring_wake.clone()
    }

    /// Offers a ring on a new link, if this server has them, the peer knows them, and the last one had no trouble.
    pub fn offer_ring(&mut self, server: ServerId, version: u16, now: Micros) {
        let last = self.ring_trouble.get(&server);
        if version < one_sided::LINK_VERSION || last.is_some_and(|at| now.saturating_sub(*at) < RING_AGAIN_US)
        {
            return;
        }
        let (Some(way), Some(link)) = (&mut self.one_sided, self.by_server.get_mut(&server)) else {
            return;
        };
        let provider = way.provider();
        let offered = way.stream().map(|stream| {
            let ring = Ring::new(stream?, provider);
            Ok((ring.offer()?, ring))
        });
        match offered {
            None => {}
            Some(Ok((offer, ring))) => {
                link.ring = Some(ring);
                link.say(&offer);
                self.mark(server);
            }
            Some(Err(error)) => self.note_ring_trouble(server, &Trouble::Fabric(error), now),
        }
    }

    /// A message about the ring came on the socket.
    pub fn take_one_sided(&mut self, server: ServerId, message: &OneSided, now: Micros) {
        let Some(link) = self.by_server.get_mut(&server) else {
            return;
        };
        // Without a ring of its own, the server leaves the offer unanswered.
        let Some(ring) = &mut link.ring else {
            return;
        };
        match ring.take(message) {
            Ok(Next::Nothing) => {}
            Ok(Next::Say(answer)) => link.say(&answer),
            Ok(Next::SwitchOut) => {
                std::mem::swap(&mut link.outbox, &mut link.calls);
                link.say(&OneSided::Switch);
                tracing::info!(peer = server.0, "the link goes by one-sided writes");
            }
            Err(trouble) => {
                link.close.notify_one();
                self.note_ring_trouble(server, &trouble, now);
            }
        }
        self.mark(server);
        self.ring_wake.notify_one();
    }

    /// Looks at each ring once. The answer: whether bytes came, or can go. `arrived`: peers of which bytes came.
    pub fn poll_rings(&mut self, arrived: &mut Vec<ServerId>) -> bool {
        self.each_ring(|server, ring| {
            let (has_happened, bytes) = ring.poll()?;
            if bytes > 0 {
                arrived.push(server);
            }
            Ok(has_happened)
        });
        !arrived.is_empty() || !self.dirty.is_empty()
    }

    /// Nothing happened for a while. True: nobody needs to look at a ring until [`Links::ring_wake`] says so.
    pub fn rest_rings(&mut self) -> bool {
        let mut all_rest = true;
        self.each_ring(|_, ring| {
            all_rest &= ring.rest()?;
            Ok(false)
        });
        all_rest
    }

    /// `act` says whether there may be room for more bytes.
    fn each_ring(&mut self, mut act: impl FnMut(ServerId, &mut Ring) -> Result<bool, Trouble>) {
        let mut troubles = Vec::new();
        for (server, link) in self.by_server.iter_mut() {
            let Some(ring) = &mut link.ring else {
                continue;
            };
            let acted = act(*server, ring);
            let rings = ring.take_rings();
            if rings {
                link.say(&OneSided::Wake);
            }
            match acted {
                Ok(has_room) if rings || (has_room && !link.outbox.is_empty()) => {
                    link.note_dirty(*server, &mut self.dirty, &self.flush);
                }
                Ok(_) => {}
                Err(trouble) => {
                    link.close.notify_one();
                    troubles.push((*server, trouble));
                }
            }
        }
        for (server, trouble) in troubles {
            self.note_ring_trouble(server, &trouble, crate::clock::now_us());
        }
    }

    /// The bytes that have come through the ring of a link, to be taken in.
    pub fn take_reader(&mut self, server: ServerId) -> Option<FrameReader> {
        let ring = self.by_server.get_mut(&server)?.ring.as_mut()?;
        Some(ring.take_reader())
    }

    /// Gives it back, with the part of a frame that it has.
    pub fn put_reader(&mut self, server: ServerId, reader: FrameReader) {
        let link = self.by_server.get_mut(&server);
        if let Some(ring) = link.and_then(|link| link.ring.as_mut()) {
            ring.put_reader(reader);
        }
    }

    /// The link ends, and the next ones go by their sockets for a while.
    pub fn end_ring(&mut self, server: ServerId, why: &str, now: Micros) {
        tracing::warn!(
            peer = server.0,
            why,
            "one-sided writes fail; the link goes by its socket for a minute"
        );
        self.ring_trouble.insert(server, now);
        if let Some(link) = self.by_server.get_mut(&server) {
            link.close.notify_one();
            link.ring.iter_mut().for_each(Ring::end);
        }
    }

    pub(super) fn note_ring_trouble(&mut self, server: ServerId, trouble: &Trouble, now: Micros) {
        self.end_ring(server, &trouble.to_string(), now);
    }
}

impl Link {
    pub(super) fn is_ring_out(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::is_out)
    }

    /// By the socket, behind all frames that go there.
    fn say(&mut self, message: &OneSided) {
        if self.is_ring_out() {
            self.calls.push_bytes(message.to_bytes());
        } else {
            self.push_bytes(message.to_bytes());
        }
    }

    /// False: the socket is full. A full ring has room when the peer has looked at it. The error: the link ends, and why if
    /// that is the ring's trouble.
    pub(super) fn write(&mut self) -> Result<bool, Option<Trouble>> {
        let Some(ring) = self.ring.as_mut().filter(|ring| ring.is_out()) else {
            return self.outbox.try_write(&self.stream).map_err(|_| None);
        };
        ring.write(&mut self.outbox).map_err(Some)?;
        if ring.take_rings() {
            self.calls.push_bytes(OneSided::Wake.to_bytes());
        }
        self.calls.try_write(&self.stream).map_err(|_| None)
    }
}
