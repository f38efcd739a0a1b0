//! The tasks of a link: dialing a peer, reading its frames, writing when the socket takes more.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf, handshake, plain, prepare};
use quorate_types::limits::PEER_FRAME_BYTES_MAX;
use quorate_types::{ServerId, versions};
use quorate_wire::one_sided::OneSided;
use quorate_wire::peer::{self, Envelope, Handshake};
use quorate_wire::share::Share;
use quorate_wire::{Frame, WireError, client};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::Shard;
use super::links::OpenLink;
use super::read_batch::ReadBatch;
use crate::messages::{LinkMessage, ShardMessage};
use crate::shared::{BurstUpdate, Shared};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const REDIAL_DELAY_MIN: Duration = Duration::from_millis(20);
const REDIAL_DELAY_MAX: Duration = Duration::from_secs(1);

/// A link behind its handshake.
pub struct Opened {
    pub halves: (ReadHalf, WriteHalf),
    /// Bytes that came right behind it.
    pub rest: Bytes,
    /// The version that both servers speak.
    pub version: u16,
}

impl Shard {
    /// The link that it replaces, if there is one, has ended before.
    pub(super) fn open_link(&mut self, server: ServerId, stream: Rc<WriteHalf>, version: u16) -> OpenLink {
        let now_us = crate::clock::now_us();
        let opened = self.executor.links.open(server, stream, version, now_us);
        self.executor.links.offer_ring(server, version, now_us);
        let share_version = self.shared().burst.share_version();
        self.executor.links.send_alive(server, share_version);
        if opened.generation > 1 {
            self.tell_groups(|| LinkMessage::Down(server));
        }
        self.tell_groups(|| LinkMessage::Up(server));
        opened
    }

    fn close_link(&mut self, server: ServerId, generation: u64) {
        if self.executor.links.close(server, generation) {
            self.shared().peers.not_reached(server);
            self.tell_groups(|| LinkMessage::Down(server));
        }
    }

    /// Tells the groups of all shards of a change of a link, on the way that its frames take: groups of this shard at once,
    /// those of others through the channels to them. So nobody hears of it before earlier frames, or behind later ones.
    fn tell_groups(&mut self, change: impl Fn() -> LinkMessage) {
        let shared = self.shared().clone();
        let own = self.executor.shard;
        for shard in (0..shared.shards.count()).filter(|shard| *shard != own) {
            shared.shards.send(shard, ShardMessage::Link(change()));
        }
        self.message(ShardMessage::Link(change()));
    }

    /// Bytes of the peer arrived. The peer counts as reached by its first ones: at a server whose threads hang the
    /// listener still takes connections.
    fn heard(&mut self, server: ServerId) {
        if self.executor.links.heard(server, self.turn.now_us) {
            self.shared().peers.reached(server);
        }
    }

    /// Frames of so many bytes that were read from a link, or came with its handshake, in one turn.
    fn take_link_frames(
        &mut self,
        server: ServerId,
        reader: &mut FrameReader,
        bytes: usize,
    ) -> Result<(), ReadFault> {
        self.begin_turn();
        if bytes > 0 {
            self.heard(server);
        }
        let taken = self.take_each_link_frame(server, reader);
        self.end_turn();
        taken
    }

    /// Looks at the rings of links, and takes in what has come. False: a flush has nothing to do.
    pub(super) fn poll_rings(&mut self) -> bool {
        let mut arrived = Vec::new();
        let is_due = self.executor.links.poll_rings(&mut arrived);
        for server in arrived {
            let Some(mut reader) = self.executor.links.take_reader(server) else {
                continue;
            };
            self.begin_turn();
            self.heard(server);
            let taken = self.take_each_link_frame(server, &mut reader);
            self.end_turn();
            self.executor.links.put_reader(server, reader);
            if let Err(fault) = taken {
                let why = format!("{fault:?}");
                self.executor.links.end_ring(server, &why, crate::clock::now_us());
            }
        }
        is_due
    }

    fn take_each_link_frame(&mut self, server: ServerId, reader: &mut FrameReader) -> Result<(), ReadFault> {
        while let Some(frame) = reader.next_frame()? {
            let taken = match frame.kind {
                peer::kind::ALIVE => {
                    self.executor
                        .links
                        .set_share_version(server, peer::share_version_of(&frame));
                    Ok(())
                }
                peer::kind::ONE_SIDED => OneSided::decode(&frame).map(|message| {
                    let now_us = crate::clock::now_us();
                    self.executor.links.take_one_sided(server, &message, now_us);
                }),
                peer::kind::SHARE => Share::decode(&frame).map(|share| {
                    if let Some(share) = share {
                        self.shared()
                            .burst
                            .send(BurstUpdate::Frame { from: server, share });
                    }
                }),
                _ => Envelope::decode(&frame).map(|envelope| self.peer_envelope(server, envelope)),
            };
            taken.map_err(ReadFault::Wire)?;
        }
        Ok(())
    }
}

/// Dials a peer, and again when the link breaks, as long as any group needs it.
pub async fn dial(shard: Rc<RefCell<Shard>>, server: ServerId) {
    let shared = shard.borrow().shared().clone();
    let mut delay = REDIAL_DELAY_MIN;
    let mut logged = None;
    while let Some(address) = shared.peers.next_dial(server) {
        match connect(&shared, server, &address).await {
            Ok(opened) => {
                delay = REDIAL_DELAY_MIN;
                serve(shard.clone(), server, opened).await;
            }
            Err(reason) => {
                tracing::debug!(peer = server.0, address, %reason, "cannot reach peer");
                // It will not pass by itself, so it is logged: once.
                if let Unreached::Refused(why) = &reason
                    && logged.replace(why.clone()).as_ref() != Some(why)
                {
                    tracing::warn!(peer = server.0, address, why, "a peer refuses the link");
                }
                shared.peers.not_reached(server);
            }
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(REDIAL_DELAY_MAX);
    }
}

async fn connect(shared: &Shared, server: ServerId, address: &str) -> Result<Opened, Unreached> {
    tokio::time::timeout(CONNECT_TIMEOUT, attempt(shared, server, address))
        .await
        .unwrap_or_else(|_| Err("timed out".to_string().into()))
}

async fn attempt(shared: &Shared, server: ServerId, address: &str) -> Result<Opened, Unreached> {
    let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
    prepare(&stream).map_err(|e| e.to_string())?;
    let (mut read_half, write_half) = if shared.access.plaintext.is_dialed {
        plain(stream)
    } else {
        // Only the server with this number can answer.
        let connection = shared.access.tls().dial(server).map_err(|e| e.to_string())?;
        let shaken = handshake(stream, connection).await.map_err(|e| e.to_string())?;
        (shaken.0, shaken.1)
    };
    let hello = Handshake::Hello {
        versions: versions::LINK,
        server_id: shared.server_id().0,
        incarnation: shared.incarnation.clone(),
        token: shared.access.peer_token(),
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
    match Handshake::decode(&frame) {
        Ok(Handshake::HelloOk { version, .. }) if !versions::LINK.has(version) => {
            Err(Unreached::Refused(format!(
                "it chose version {version} of links, and this server speaks {}",
                versions::LINK
            )))
        }
        Ok(Handshake::HelloOk {
            server_id, version, ..
        }) if server_id == server.0 => Ok(Opened {
            halves: (read_half, write_half),
            rest: reader.into_rest(),
            version,
        }),
        Ok(_) => Err("another server answers at its address".to_string().into()),
        Err(error) => Err(Unreached::of_answer(&frame, error)),
    }
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
    /// An answer other than the hello that was due.
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

/// Serves a link until it ends: one that was dialed, or one that a peer opened and proved to be its own.
pub async fn serve(shard: Rc<RefCell<Shard>>, server: ServerId, opened: Opened) {
    let Opened {
        halves: (mut read_half, write_half),
        rest,
        version,
    } = opened;
    let stream = Rc::new(write_half);
    let OpenLink {
        generation,
        close,
        blocked,
    } = shard.borrow_mut().open_link(server, stream.clone(), version);
    let writing = write_when_possible(shard.clone(), server, stream.clone(), blocked);
    let writer = tokio::task::spawn_local(writing);
    let mut reader = FrameReader::with_rest(&rest, PEER_FRAME_BYTES_MAX);
    tokio::select! {
        biased;
        () = close.notified() => {}
        fault = read_frames(&shard, server, &mut read_half, &mut reader, rest.len()) => {
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
    rest_bytes: usize,
) -> ReadFault {
    let (mut batch, mut bytes) = (ReadBatch::default(), rest_bytes);
    loop {
        let taken = shard.borrow_mut().take_link_frames(server, reader, bytes);
        if let Err(fault) = taken {
            return fault;
        }
        batch.goes_on(shard, bytes).await;
        match batch.await_more(reader.fill_from(stream)).await {
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
        shard.borrow_mut().executor.links.mark(server);
    }
}
