//! Links: one connection for each pair of servers, shared by all groups between them. The server with the
//! lower number dials; the other accepts. A broken link loses what was on it; replicas agree anew
//! (`Event::LinkUp`) when it is back.

use std::rc::Rc;

use bytes::Bytes;
use quorate_transport::{Outbox, WriteHalf};
use quorate_types::ids::IdMap;
use quorate_types::limits::{LINK_FEED_BYTES_MAX, LINK_OUTBOX_BYTES_MAX};
use quorate_types::{GroupId, Micros, ServerId};
use quorate_wire::peer;
use quorate_wire::share::SHARE_VERSION;
use tokio::sync::Notify;

use super::flush_wake::FlushWake;

pub const ALIVE_INTERVAL_US: Micros = 500_000;
/// A link on which nothing was heard for so long is dead, whatever the kernel believes.
const SILENCE_US_MAX: Micros = 3_000_000;

/// The links that this shard owns.
pub struct Links {
    by_server: IdMap<ServerId, Link>,
    dirty: Vec<ServerId>,
    /// Groups that waited for room on a link that has some.
    released: Vec<GroupId>,
    flush: FlushWake,
}

struct Link {
    stream: Rc<WriteHalf>,
    outbox: Outbox,
    is_dirty: bool,
    blocked: Rc<Notify>,
    close: Rc<Notify>,
    /// Groups that send nothing more before there is room.
    held: Vec<GroupId>,
    last_heard: Micros,
    /// The version of SHARE that the peer takes.
    share_version: u8,
    /// Bytes put into the outbox since the link is up.
    pushed_bytes: u64,
    /// A position in them that was not yet written, and since when.
    waits: Option<(u64, Micros)>,
    /// Distinguishes this link from the one before it to the same peer.
    generation: u64,
}

/// The parts of a link that its task needs.
pub struct OpenLink {
    pub generation: u64,
    pub close: Rc<Notify>,
    pub blocked: Rc<Notify>,
}

impl Links {
    pub fn new(flush: FlushWake) -> Self {
        Self {
            by_server: IdMap::default(),
            dirty: Vec::new(),
            released: Vec::new(),
            flush,
        }
    }

    pub fn len(&self) -> usize {
        self.by_server.len()
    }

    /// Takes the place of an earlier link to the same peer, which ends.
    pub fn open(&mut self, server: ServerId, stream: Rc<WriteHalf>, now: Micros) -> OpenLink {
        let generation = self.by_server.remove(&server).map_or(1, |old| {
            old.close.notify_one();
            self.release(old.held);
            old.generation + 1
        });
        let (close, blocked) = (Rc::<Notify>::default(), Rc::<Notify>::default());
        let link = Link {
            stream,
            outbox: Outbox::default(),
            is_dirty: false,
            blocked: blocked.clone(),
            close: close.clone(),
            held: Vec::new(),
            last_heard: now,
            share_version: 0,
            pushed_bytes: 0,
            waits: None,
            generation,
        };
        self.by_server.insert(server, link);
        OpenLink {
            generation,
            close,
            blocked,
        }
    }

    /// False: another link to the peer took its place.
    pub fn close(&mut self, server: ServerId, generation: u64) -> bool {
        let is_this = self
            .by_server
            .get(&server)
            .is_some_and(|link| link.generation == generation);
        if is_this {
            let link = self.by_server.remove(&server).expect("seen above");
            self.release(link.held);
        }
        is_this
    }

    pub fn heard(&mut self, server: ServerId, now: Micros) {
        if let Some(link) = self.by_server.get_mut(&server) {
            link.last_heard = now;
        }
    }

    pub fn set_share_version(&mut self, server: ServerId, version: u8) {
        if let Some(link) = self.by_server.get_mut(&server) {
            link.share_version = version;
        }
    }

    /// To a peer, if its link is up; otherwise the message is lost, and the protocol asks again when it is.
    pub fn send(&mut self, to: ServerId, envelope: peer::Envelope) {
        let Some(link) = self.by_server.get_mut(&to) else {
            return;
        };
        let before = link.outbox.len();
        link.outbox.push(|out| envelope.into_frame(out));
        link.pushed_bytes += (link.outbox.len() - before) as u64;
        if link.outbox.len() > LINK_OUTBOX_BYTES_MAX {
            tracing::warn!(peer = to.0, "link is too far behind; it is opened again");
            link.close.notify_one();
        }
        if !std::mem::replace(&mut link.is_dirty, true) {
            self.dirty.push(to);
            self.flush.wake();
        }
    }

    /// A SHARE frame, to a peer that takes them.
    pub fn send_share(&mut self, to: ServerId, bytes: Bytes) {
        if let Some(link) = self.by_server.get_mut(&to)
            && link.share_version >= SHARE_VERSION
        {
            link.push_bytes(bytes);
            self.mark(to);
        }
    }

    /// Sends a sign of life on each link, and ends links that have been silent.
    pub fn keep_alive(&mut self, share_version: u8, now: Micros) {
        let servers: Vec<ServerId> = self.by_server.keys().copied().collect();
        for server in servers {
            let link = self.by_server.get_mut(&server).expect("listed above");
            if now.saturating_sub(link.last_heard) > SILENCE_US_MAX {
                tracing::warn!(peer = server.0, "link is silent; it is opened again");
                link.close.notify_one();
                continue;
            }
            link.push_bytes(peer::alive_frame(share_version));
            self.mark(server);
        }
    }

    /// Whether a group has to wait before it sends more to a peer whose link is full; if so, it is flushed again when
    /// there is room. It knows the links of this shard; traffic over others' links is bounded by each group's window.
    pub fn is_held(&mut self, to: ServerId, group_id: GroupId, was_held: bool) -> bool {
        let Some(link) = self.by_server.get_mut(&to) else {
            return false;
        };
        let is_held = link.outbox.len() > LINK_FEED_BYTES_MAX;
        if is_held && !was_held {
            link.held.push(group_id);
        }
        is_held
    }

    /// Groups that need wait no longer for room on a link.
    pub fn take_released(&mut self) -> Vec<GroupId> {
        std::mem::take(&mut self.released)
    }

    fn release(&mut self, held: Vec<GroupId>) {
        if !held.is_empty() {
            self.released.extend(held);
            self.flush.wake_again();
        }
    }

    /// There is something to write on the link, or its socket takes more.
    pub fn mark(&mut self, to: ServerId) {
        let Some(link) = self.by_server.get_mut(&to) else {
            return;
        };
        if !std::mem::replace(&mut link.is_dirty, true) {
            self.dirty.push(to);
            self.flush.wake();
        }
    }

    /// Writes what waits on each link that got something in this flush.
    pub fn write_dirty(&mut self) {
        let mut released = Vec::new();
        for server in self.dirty.drain(..) {
            let Some(link) = self.by_server.get_mut(&server) else {
                continue;
            };
            link.is_dirty = false;
            match link.outbox.try_write(&link.stream) {
                Ok(true) => {}
                Ok(false) => link.blocked.notify_one(),
                Err(_) => link.close.notify_one(),
            }
            if link.outbox.len() <= LINK_FEED_BYTES_MAX / 2 {
                released.append(&mut link.held);
            }
        }
        self.release(released);
    }

    /// For each peer: how long the oldest byte of its outbox has waited, at least.
    pub fn waited(&mut self, now: Micros) -> impl Iterator<Item = (ServerId, Micros)> {
        self.by_server
            .iter_mut()
            .map(move |(server, link)| (*server, link.waited(now)))
    }
}

impl Link {
    fn push_bytes(&mut self, bytes: Bytes) {
        self.pushed_bytes += bytes.len() as u64;
        self.outbox.push_bytes(bytes);
    }

    /// Since the tick that saw the oldest byte first.
    fn waited(&mut self, now: Micros) -> Micros {
        let waiting = self.outbox.len() as u64;
        let written = self.pushed_bytes.saturating_sub(waiting);
        self.waits = match self.waits {
            Some(mark) if mark.0 > written => Some(mark),
            _ => (waiting > 0).then_some((self.pushed_bytes, now)),
        };
        self.waits.map_or(0, |(_, since)| now.saturating_sub(since))
    }
}
