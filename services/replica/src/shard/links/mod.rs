//! Links: one connection for each pair of servers, shared by all groups between them. The server with the
//! lower number dials; the other accepts. A broken link loses what was on it; replicas agree anew
//! (`ReplicaEvent::LinkUp`) when it is back.

mod loss;
mod one_sided;

use std::rc::Rc;

use bytes::Bytes;
use quorate_one_sided::Way;
use quorate_transport::{Outbox, WriteHalf};
use quorate_types::ids::IdMap;
use quorate_types::limits::{
    LINK_ALIVE_US, LINK_FEED_BYTES_MAX, LINK_OUTBOX_BYTES_MAX, LINK_SILENCE_BEFORE_US_MAX,
    LINK_SILENCE_US_MAX,
};
use quorate_types::lived::Lived;
use quorate_types::{GroupId, Micros, ServerId};
use quorate_wire::peer;
use quorate_wire::share::SHARE_VERSION;
use tokio::sync::Notify;

use self::loss::LossWatch;
use super::flush_wake::FlushWake;
use super::ring::Ring;

/// Signs of life come with ticks. A longer step of the clock is a pause of this process, in which it heard nobody.
const STEP_US_MAX: Micros = 2 * LINK_ALIVE_US;

/// The links that this shard owns.
pub struct Links {
    by_server: IdMap<ServerId, Link>,
    /// Silence is measured by it.
    lived: Lived,
    /// The lived time of each peer's last bytes, over whichever link; of the first link, if there were none. A link that was
    /// opened again to a peer whose threads hang is as silent as the one before.
    heard_at: IdMap<ServerId, Micros>,
    losses: IdMap<ServerId, LossWatch>,
    dirty: Vec<ServerId>,
    /// Groups that waited for room on a link that has some, each with the link's peer.
    released: Vec<(ServerId, GroupId)>,
    flush: FlushWake,
    /// None: links go by their sockets.
    one_sided: Option<Way>,
    /// The time of the last trouble with a ring of each peer.
    ring_trouble: IdMap<ServerId, Micros>,
    ring_wake: Rc<Notify>,
}

struct Link {
    stream: Rc<WriteHalf>,
    /// For the ring once frames go there, else for the socket.
    outbox: Outbox,
    ring: Option<Ring>,
    /// For the socket, though frames go into the ring: the last ones before, and messages about the ring.
    calls: Outbox,
    is_dirty: bool,
    blocked: Rc<Notify>,
    close: Rc<Notify>,
    /// Groups that send nothing more before there is room.
    held: Vec<GroupId>,
    /// Lived time.
    last_heard: Micros,
    /// Silence of the peer after which the link counts as dead.
    silence_us_max: Micros,
    /// Bytes of the peer have arrived.
    is_heard: bool,
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
    pub fn new(flush: FlushWake, one_sided: Option<Way>) -> Self {
        Self {
            by_server: IdMap::default(),
            lived: Lived::new(0, STEP_US_MAX),
            heard_at: IdMap::default(),
            losses: IdMap::default(),
            dirty: Vec::new(),
            released: Vec::new(),
            flush,
            one_sided,
            ring_trouble: IdMap::default(),
            ring_wake: Rc::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.by_server.len()
    }

    /// Takes the place of an earlier link to the same peer, which ends.
    pub fn open(&mut self, server: ServerId, stream: Rc<WriteHalf>, version: u16, now: Micros) -> OpenLink {
        let now = self.lived.at(now);
        let generation = self.by_server.remove(&server).map_or(1, |old| {
            old.close.notify_one();
            self.release(server, old.held);
            old.generation + 1
        });
        let (close, blocked) = (Rc::<Notify>::default(), Rc::<Notify>::default());
        let link = Link {
            stream,
            outbox: Outbox::default(),
            ring: None,
            calls: Outbox::default(),
            is_dirty: false,
            blocked: blocked.clone(),
            close: close.clone(),
            held: Vec::new(),
            last_heard: now,
            silence_us_max: silence_us_max(version),
            is_heard: false,
            share_version: 0,
            pushed_bytes: 0,
            waits: None,
            generation,
        };
        self.by_server.insert(server, link);
        self.heard_at.entry(server).or_insert(now);
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
            self.release(server, link.held);
        }
        is_this
    }

    /// Bytes of the peer arrived. True: the first ones of this link, by which it is seen to work.
    pub fn heard(&mut self, server: ServerId, now: Micros) -> bool {
        let now = self.lived.at(now);
        let Some(link) = self.by_server.get_mut(&server) else {
            return false;
        };
        link.last_heard = now;
        self.heard_at.insert(server, now);
        !std::mem::replace(&mut link.is_heard, true)
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
        link.note_dirty(to, &mut self.dirty, &self.flush);
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

    /// Sends a sign of life, by which the peer sees that the link works.
    pub fn send_alive(&mut self, server: ServerId, share_version: u8) {
        if let Some(link) = self.by_server.get_mut(&server) {
            link.push_bytes(peer::alive_frame(share_version));
            self.mark(server);
        }
    }

    /// Sends a sign of life on each link, and ends links that have been silent. To be called each [`LINK_ALIVE_US`].
    pub fn keep_alive(&mut self, share_version: u8, now: Micros) {
        let lived = self.lived.advance(now);
        let servers: Vec<ServerId> = self.by_server.keys().copied().collect();
        for server in servers {
            let link = self.by_server.get_mut(&server).expect("listed above");
            if lived.saturating_sub(link.last_heard) > link.silence_us_max {
                tracing::warn!(peer = server.0, "link is silent; it is opened again");
                link.close.notify_one();
                if link.is_ring_out() {
                    self.ring_trouble.insert(server, now);
                }
                continue;
            }
            if let Ok(lost) = link.stream.lost_segments() {
                let losses = self.losses.entry(server).or_default();
                losses.tick(lost, lived);
            }
            self.send_alive(server, share_version);
        }
    }

    /// The peer, if a group has to wait before it sends more to it: its link is full. The group is flushed again when
    /// there is room. `held_on`: the peer for which it waits already. It knows the links of this shard; traffic over
    /// others' links is bounded by each group's window.
    pub fn hold(&mut self, to: ServerId, group_id: GroupId, held_on: Option<ServerId>) -> Option<ServerId> {
        let link = self.by_server.get_mut(&to)?;
        if link.outbox.len() <= LINK_FEED_BYTES_MAX {
            return None;
        }
        if held_on != Some(to) {
            link.held.push(group_id);
        }
        Some(to)
    }

    /// Groups that need wait no longer for room on the link to a peer.
    pub fn take_released(&mut self) -> Vec<(ServerId, GroupId)> {
        std::mem::take(&mut self.released)
    }

    fn release(&mut self, server: ServerId, held: Vec<GroupId>) {
        if !held.is_empty() {
            self.released
                .extend(held.into_iter().map(|group_id| (server, group_id)));
            self.flush.wake_again();
        }
    }

    /// There is something to write on the link, or its socket takes more.
    pub fn mark(&mut self, to: ServerId) {
        let Some(link) = self.by_server.get_mut(&to) else {
            return;
        };
        link.note_dirty(to, &mut self.dirty, &self.flush);
    }

    /// Writes what waits on each link that got something in this flush.
    pub fn write_dirty(&mut self) {
        let (mut released, mut troubles) = (Vec::new(), Vec::new());
        for server in self.dirty.drain(..) {
            let Some(link) = self.by_server.get_mut(&server) else {
                continue;
            };
            link.is_dirty = false;
            match link.write() {
                Ok(true) => {}
                Ok(false) => link.blocked.notify_one(),
                Err(ended) => {
                    link.close.notify_one();
                    troubles.extend(ended.map(|trouble| (server, trouble)));
                }
            }
            if link.is_ring_out() {
                self.ring_wake.notify_one();
            }
            if !link.held.is_empty() && link.outbox.len() <= LINK_FEED_BYTES_MAX / 2 {
                released.push((server, std::mem::take(&mut link.held)));
            }
        }
        for (server, held) in released {
            self.release(server, held);
        }
        for (server, trouble) in troubles {
            self.note_ring_trouble(server, &trouble, crate::clock::now_us());
        }
    }

    /// For each peer: how long the oldest byte of its outbox has waited, at least, how long its signs of life are due, or how
    /// long much has been lost on the way to it.
    pub fn waited(&mut self, now: Micros) -> impl Iterator<Item = (ServerId, Micros)> {
        let (heard_at, losses, lived) = (&self.heard_at, &self.losses, self.lived.at(now));
        self.by_server.iter_mut().map(move |(server, link)| {
            let heard_at = heard_at.get(server).copied().unwrap_or(lived);
            let overdue = lived.saturating_sub(heard_at).saturating_sub(2 * LINK_ALIVE_US);
            let lossy = losses.get(server).map_or(0, |losses| losses.lasted(lived));
            (*server, link.waited(now).max(overdue).max(lossy))
        })
    }
}

/// Releases before this version of links give signs of life less often.
fn silence_us_max(version: u16) -> Micros {
    match version < peer::OFTEN_ALIVE_VERSION {
        true => LINK_SILENCE_BEFORE_US_MAX,
        false => LINK_SILENCE_US_MAX,
    }
}

impl Link {
    /// The next flush writes it.
    fn note_dirty(&mut self, server: ServerId, dirty: &mut Vec<ServerId>, flush: &FlushWake) {
        if !std::mem::replace(&mut self.is_dirty, true) {
            dirty.push(server);
            flush.wake();
        }
    }

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

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};
    use uuid::Uuid;

    use super::*;

    const GROUP: GroupId = GroupId(Uuid::from_u128(7));
    const FORMER: ServerId = ServerId(2);
    const NEXT: ServerId = ServerId(3);

    /// Opens a link that is full.
    async fn open_full(links: &mut Links, listener: &TcpListener, server: ServerId) -> TcpStream {
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let (_, stream) = quorate_transport::plain(accepted);
        links.open(server, Rc::new(stream), peer::OFTEN_ALIVE_VERSION, 0);
        let link = links.by_server.get_mut(&server).expect("just opened");
        link.push_bytes(Bytes::from(vec![0; LINK_FEED_BYTES_MAX + 1]));
        peer
    }

    /// All of its outbox is written.
    fn drain(links: &mut Links, server: ServerId) {
        links.by_server.get_mut(&server).expect("it is up").outbox.clear();
        links.mark(server);
        links.write_dirty();
    }

    #[test]
    fn a_link_that_was_opened_again_is_silent_until_the_peer_is_heard() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut links = Links::new(FlushWake::default(), None);
            let live = |links: &mut Links, until: Micros| {
                for now in (0..=until).step_by(LINK_ALIVE_US as usize) {
                    links.lived.advance(now);
                }
            };
            let overdue = |links: &mut Links, now| {
                let all: Vec<_> = links.waited(now).collect();
                assert_eq!(all.len(), 1);
                all[0].1
            };
            let open = async |links: &mut Links, now| {
                let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (accepted, _) = listener.accept().await.unwrap();
                let (_, stream) = quorate_transport::plain(accepted);
                let version = peer::OFTEN_ALIVE_VERSION;
                (links.open(NEXT, Rc::new(stream), version, now).generation, peer)
            };
            let (generation, _first) = open(&mut links, 0).await;
            live(&mut links, 2_000_000);
            assert!(links.heard(NEXT, 1_000_000) && !links.heard(NEXT, 2_000_000));
            assert_eq!(overdue(&mut links, 4_000_000), 0, "the own process stood still");
            live(&mut links, 5_000_000);
            assert_eq!(overdue(&mut links, 5_000_000), 2_800_000);
            // The peer's listener takes the next connection, and its shard says nothing.
            assert!(links.close(NEXT, generation));
            let (_, _second) = open(&mut links, 5_000_000).await;
            live(&mut links, 5_500_000);
            assert_eq!(overdue(&mut links, 5_500_000), 3_300_000);
            assert!(links.heard(NEXT, 5_600_000), "the first sign on this link");
            assert_eq!(overdue(&mut links, 5_600_000), 0);
        });
    }

    #[test]
    fn a_group_whose_successor_changes_while_it_waits_is_released_by_the_link_to_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut links = Links::new(FlushWake::default(), None);
            let _former = open_full(&mut links, &listener, FORMER).await;
            let _next = open_full(&mut links, &listener, NEXT).await;
            let held_on = links.hold(FORMER, GROUP, None);
            assert_eq!(held_on, Some(FORMER));
            assert_eq!(links.hold(FORMER, GROUP, held_on), held_on);
            let held_on = links.hold(NEXT, GROUP, held_on);
            assert_eq!(held_on, Some(NEXT));
            drain(&mut links, NEXT);
            assert_eq!(links.take_released(), [(NEXT, GROUP)]);
            drain(&mut links, FORMER);
            assert_eq!(links.take_released(), [(FORMER, GROUP)], "listed once");
            assert_eq!(links.hold(NEXT, GROUP, held_on), None, "there is room");
        });
    }
}
