//! Links: one connection for each pair of servers, shared by all groups between them. The server with the
//! lower number dials; the other accepts. A broken link loses what was on it; replicas agree anew
//! (`Event::LinkUp`) when it is back.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::Event;
use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf, handshake, plain, prepare};
use quorate_types::limits::FRAME_BYTES_MAX;
use quorate_types::{GroupId, Micros, ServerId};
use quorate_wire::peer::{self, Envelope, Greeting, LINK_VERSION};
use quorate_wire::{Frame, WireError, client};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::clock::now_us;
use crate::shard::stretch::Stretch;
use crate::shard::{Shard, ShardMessage};

/// A session table travels in one frame: at most 1024 sessions of 256 batches, with room.
pub const PEER_FRAME_BYTES_MAX: u32 = FRAME_BYTES_MAX + (8 << 20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const REDIAL_DELAY_MIN: Duration = Duration::from_millis(20);
const REDIAL_DELAY_MAX: Duration = Duration::from_secs(1);
pub const ALIVE_INTERVAL_US: Micros = 500_000;
/// A link on which nothing was heard for so long is dead, whatever the kernel believes.
const SILENCE_US_MAX: Micros = 3_000_000;

type Halves = (ReadHalf, WriteHalf);

pub struct Link {
    pub stream: Rc<WriteHalf>,
    pub outbox: Outbox,
    pub is_dirty: bool,
    pub blocked: Rc<Notify>,
    pub close: Rc<Notify>,
    /// Groups that send nothing more before there is room.
    pub held: Vec<GroupId>,
    last_heard: Micros,
    /// Of SHARE, that the peer takes.
    pub share_version: u8,
    /// Bytes put into the outbox since the link is up.
    pub pushed_bytes: u64,
    /// A mark in them that was not yet written, and since when.
    pub waits: Option<(u64, Micros)>,
    /// Tells this link from the one before it to the same peer.
    generation: u64,
}

impl Shard {
    fn open_link(&mut self, server: ServerId, stream: Rc<WriteHalf>) -> u64 {
        let generation = self.io.links.remove(&server).map_or(1, |old| {
            old.close.notify_one();
            self.io.release(old.held);
            old.generation + 1
        });
        let link = Link {
            stream,
            outbox: Outbox::default(),
            is_dirty: false,
            blocked: Rc::new(Notify::new()),
            close: Rc::new(Notify::new()),
            held: Vec::new(),
            last_heard: now_us(),
            share_version: 0,
            pushed_bytes: 0,
            waits: None,
            generation,
        };
        self.io.links.insert(server, link);
        self.io
            .shared
            .unreachable
            .lock()
            .expect("unreachable")
            .remove(&server);
        self.io.shared.broadcast(|| ShardMessage::LinkUp(server));
        generation
    }

    fn close_link(&mut self, server: ServerId, generation: u64) {
        if self
            .io
            .links
            .get(&server)
            .is_some_and(|link| link.generation == generation)
        {
            let link = self.io.links.remove(&server).expect("seen above");
            self.io.release(link.held);
            self.io
                .shared
                .unreachable
                .lock()
                .expect("unreachable")
                .insert(server);
            self.io.shared.broadcast(|| ShardMessage::LinkDown(server));
        }
    }

    /// All that was read from a link, in one turn.
    fn take_link_frames(&mut self, server: ServerId, reader: &mut FrameReader) -> Result<(), ReadFault> {
        self.io.begin_turn();
        let now = self.io.now_us();
        if let Some(link) = self.io.links.get_mut(&server) {
            link.last_heard = now;
        }
        let taken = self.take_each_of_link(server, reader);
        self.io.end_turn();
        taken
    }

    fn take_each_of_link(&mut self, server: ServerId, reader: &mut FrameReader) -> Result<(), ReadFault> {
        while let Some(frame) = reader.next_frame()? {
            let taken = match frame.kind {
                peer::kind::ALIVE | peer::kind::SHARE => self.lending_frame(server, &frame),
                _ => Envelope::decode(&frame).map(|envelope| self.peer_envelope(server, envelope)),
            };
            taken.map_err(ReadFault::Wire)?;
        }
        Ok(())
    }

    pub fn peer_envelope(&mut self, from: ServerId, envelope: Envelope) {
        let owner = self.io.shared.shard_of_group(envelope.group_id);
        if owner != self.io.shard {
            self.io
                .shared
                .send(owner, ShardMessage::FromPeer { from, envelope });
            return;
        }
        let Envelope {
            group_id,
            epoch,
            mut message,
        } = envelope;
        if self.between_disks(from, group_id, &mut message) {
            return;
        }
        self.event(group_id, Event::Peer { from, epoch, message });
    }

    /// Says on each link that this server lives, and ends links that have been silent.
    pub fn keep_links_alive(&mut self) {
        let now = now_us();
        let servers: Vec<ServerId> = self.io.links.keys().copied().collect();
        for server in servers {
            let Some(link) = self.io.links.get_mut(&server) else {
                continue;
            };
            if now.saturating_sub(link.last_heard) > SILENCE_US_MAX {
                tracing::warn!(peer = server.0, "link is silent; it is opened anew");
                link.close.notify_one();
                continue;
            }
            let alive = peer::alive_frame(self.io.shared.lending.share_version());
            link.pushed_bytes += alive.len() as u64;
            link.outbox.push_bytes(alive);
            self.io.mark_link(server);
        }
    }
}

/// Dials a peer, and again when the link breaks, as long as any group needs it.
pub async fn dial(shard: Rc<RefCell<Shard>>, server: ServerId) {
    let shared = shard.borrow().io.shared.clone();
    let mut delay = REDIAL_DELAY_MIN;
    let mut told = None;
    while let Some(address) = shared.next_dial(server) {
        match connect(&shard, server, &address).await {
            Ok((stream, rest)) => {
                delay = REDIAL_DELAY_MIN;
                serve(shard.clone(), server, stream, rest).await;
            }
            Err(reason) => {
                tracing::debug!(peer = server.0, address, %reason, "cannot reach peer");
                // It will not pass by itself, so it is told: once.
                if let Unreached::Refused(why) = &reason
                    && told.replace(why.clone()).as_ref() != Some(why)
                {
                    tracing::warn!(peer = server.0, address, why, "a peer refuses the link");
                }
                shared.unreachable.lock().expect("unreachable").insert(server);
            }
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(REDIAL_DELAY_MAX);
    }
}

async fn connect(
    shard: &Rc<RefCell<Shard>>,
    server: ServerId,
    address: &str,
) -> Result<(Halves, Bytes), Unreached> {
    let attempt = async {
        let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
        prepare(&stream).map_err(|e| e.to_string())?;
        let shared = shard.borrow().io.shared.clone();
        let (mut read_half, write_half) = if shared.plaintext.is_dialed {
            plain(stream)
        } else {
            // Only the server with this number can answer.
            let connection = shared.tls().dial(server).map_err(|e| e.to_string())?;
            let shaken = handshake(stream, connection).await.map_err(|e| e.to_string())?;
            (shaken.0, shaken.1)
        };
        let hello = {
            Greeting::Hello {
                version: LINK_VERSION,
                server_id: shared.server_id().0,
                incarnation: shared.incarnation.clone(),
                token: shared.peer_token.read().expect("peer token").clone(),
            }
        };
        let mut outbox = Outbox::default();
        outbox.push_bytes(hello.to_bytes());
        while !outbox.try_write(&write_half).map_err(|e| e.to_string())? {
            write_half.writable().await.map_err(|e| e.to_string())?;
        }
        let mut reader = FrameReader::new(u32::from(u16::MAX));
        let frame = reader
            .read_frame(&mut read_half)
            .await
            .map_err(|fault| format!("{fault:?}"))?;
        match Greeting::decode(&frame) {
            Ok(Greeting::HelloOk { server_id, .. }) if server_id == server.0 => {
                Ok(((read_half, write_half), reader.into_rest()))
            }
            Ok(_) => Err("another server answers at its address".to_string().into()),
            Err(error) => Err(Unreached::of_answer(&frame, error)),
        }
    };
    tokio::time::timeout(CONNECT_TIMEOUT, attempt)
        .await
        .unwrap_or_else(|_| Err("timed out".to_string().into()))
}

/// Why a peer was not reached.
#[derive(Debug, Clone)]
enum Unreached {
    /// It may be by the next attempt.
    Now(String),
    /// It answered, and does not take the link.
    Refused(String),
}

impl Unreached {
    /// What was not the greeting that was due.
    fn of_answer(frame: &Frame, error: WireError) -> Self {
        match client::Message::decode(frame) {
            Ok(client::Message::Goodbye { message, .. }) => Self::Refused(message),
            _ => Self::Now(error.to_string()),
        }
    }
}

impl From<String> for Unreached {
    fn from(reason: String) -> Self {
        Self::Now(reason)
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(reason) => f.write_str(reason),
            Self::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}

/// Accepts a link that a peer opened and proved to be its own.
pub async fn accept(shard: Rc<RefCell<Shard>>, server: ServerId, stream: Halves, rest: Bytes) {
    serve(shard, server, stream, rest).await;
}

async fn serve(
    shard: Rc<RefCell<Shard>>,
    server: ServerId,
    (mut read_half, write_half): Halves,
    rest: Bytes,
) {
    let stream = Rc::new(write_half);
    let (generation, close, blocked) = {
        let mut shard = shard.borrow_mut();
        let generation = shard.open_link(server, stream.clone());
        let link = &shard.io.links[&server];
        (generation, link.close.clone(), link.blocked.clone())
    };
    let writer = tokio::task::spawn_local(write_when_possible(
        shard.clone(),
        server,
        stream.clone(),
        blocked,
    ));
    let mut reader = FrameReader::with_rest(&rest, PEER_FRAME_BYTES_MAX);
    tokio::select! {
        biased;
        () = close.notified() => {}
        fault = read_frames(&shard, server, &mut read_half, &mut reader) => {
            tracing::info!(peer = server.0, ?fault, "link ended");
        }
    }
    writer.abort();
    stream.close();
    shard.borrow_mut().close_link(server, generation);
}

async fn read_frames(
    shard: &Rc<RefCell<Shard>>,
    server: ServerId,
    stream: &mut ReadHalf,
    reader: &mut FrameReader,
) -> ReadFault {
    let (mut stretch, mut bytes) = (Stretch::default(), 0);
    loop {
        let taken = shard.borrow_mut().take_link_frames(server, reader);
        if let Err(fault) = taken {
            return fault;
        }
        stretch.goes_on(shard, bytes).await;
        match stretch.await_more(reader.fill_from(stream)).await {
            Ok(read) => bytes = read,
            Err(fault) => return fault,
        }
    }
}

async fn write_when_possible(
    shard: Rc<RefCell<Shard>>,
    server: ServerId,
    stream: Rc<WriteHalf>,
    blocked: Rc<Notify>,
) {
    loop {
        blocked.notified().await;
        if stream.writable().await.is_err() {
            return;
        }
        shard.borrow_mut().io.mark_link(server);
    }
}
