//! Connections to other coordinators: each sends the messages for one of them, and connects again when it breaks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use quorate_certificates::control::coordinator_name;
use quorate_certificates::{FleetKeys, members};
use quorate_quorum::{MemberId, Members, Message, encode_message};
use quorate_types::limits::MEMBER_OUTBOX_MESSAGES_MAX;
use quorate_types::versions;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::{info, warn};

use super::hello::{Answer, Frames, Identity, SOMETHING_ELSE, frames, greet};
use super::listener::FromMember;
use super::ring_offer::RingOffer;
use super::ring_thread::{Output, Ring, Rings};
use crate::exit::Failure;

/// A connection takes no longer between coordinators that live.
const CONNECT: Duration = Duration::from_secs(1);
/// Nor does a write: the other end has ceased to read, or the network to carry.
const WRITE: Duration = Duration::from_secs(1);
/// Between attempts. An election waits for nobody who is away longer.
const RETRY_MS: std::ops::Range<u64> = 50..200;
/// Coordinators that have said where they are: all members, and some that the log does not name. Its end may be elsewhere; or
/// they are no members any more.
const GREETED_MAX: usize = 16;
/// Messages that are written before one flush.
const BATCH_MESSAGES: usize = 64;

type Socket = Frames<TlsStream<TcpStream>>;

/// All connections to others. Dropping it ends them.
pub struct Links {
    connector: TlsConnector,
    own: Identity,
    inputs: mpsc::Sender<FromMember>,
    /// None: all messages go by sockets.
    rings: Option<Rings>,
    members: Members,
    /// Addresses as others have told them. They are newer than the log's: members may have moved, and the entry that
    /// tells it may need their answers.
    greeted: BTreeMap<MemberId, String>,
    outgoing: BTreeMap<MemberId, Outgoing>,
}

struct Outgoing {
    /// Made while the log did not name it.
    is_guest: bool,
    address: String,
    queue: mpsc::Sender<Message>,
    goes_by: watch::Receiver<Option<&'static str>>,
    task: JoinHandle<()>,
}

impl Links {
    pub fn new(
        connector: TlsConnector,
        own: Identity,
        inputs: mpsc::Sender<FromMember>,
        rings: Option<Rings>,
    ) -> Self {
        Self {
            connector,
            own,
            inputs,
            rings,
            members: Members::default(),
            greeted: BTreeMap::new(),
            outgoing: BTreeMap::new(),
        }
    }

    /// The members, as the log has them.
    pub fn know(&mut self, members: &Members) {
        self.members.clone_from(members);
        self.connect_all();
    }

    /// Another coordinator sends messages, and waits for answers there. The log may not name it yet.
    pub fn greet(&mut self, id: MemberId, address: String) {
        let (members, outgoing) = (&self.members, &self.outgoing);
        let has_ended = |id: &MemberId| outgoing.get(id).is_none_or(|link| link.task.is_finished());
        (self.greeted).retain(|id, _| members.get(*id).is_some() || !has_ended(id));
        if self.greeted.len() < GREETED_MAX || self.greeted.contains_key(&id) {
            self.greeted.insert(id, address);
        }
        self.connect_all();
    }

    fn connect_all(&mut self) {
        let listed = self
            .members
            .iter()
            .map(|(id, member)| (id, member.address.clone()));
        let mut wanted: BTreeMap<MemberId, String> = listed.collect();
        wanted.extend(self.greeted.iter().map(|(id, address)| (*id, address.clone())));
        wanted.remove(&self.own.member);
        wanted.retain(|_, address| !address.is_empty());
        self.outgoing.retain(|id, link| {
            let is_guest = self.members.get(*id).is_none();
            let is_there = wanted.get(id) == Some(&link.address) && !link.task.is_finished();
            let stays = is_there && link.is_guest == is_guest;
            if !stays {
                link.task.abort();
            }
            stays
        });
        for (id, address) in wanted {
            if !self.outgoing.contains_key(&id) {
                let is_guest = self.members.get(id).is_none();
                self.connect(id, address, is_guest);
            }
        }
    }

    fn connect(&mut self, to: MemberId, address: String, is_guest: bool) {
        let (queue, messages) = mpsc::channel(MEMBER_OUTBOX_MESSAGES_MAX);
        let (goes_by, seen) = watch::channel(None);
        let link = Link {
            to,
            address: address.clone(),
            is_guest,
            connector: self.connector.clone(),
            own: self.own.clone(),
            inputs: self.inputs.clone(),
            rings: self.rings.clone(),
            goes_by,
        };
        let task = tokio::spawn(link.run(messages));
        let link = Outgoing {
            is_guest,
            address,
            queue,
            goes_by: seen,
            task,
        };
        self.outgoing.insert(to, link);
    }

    /// How messages go to each member that is linked: `tcp` or `ofi`.
    pub fn transports(&self) -> impl Iterator<Item = (MemberId, &'static str)> {
        let by = |(id, link): (&MemberId, &Outgoing)| link.goes_by.borrow().map(|by| (*id, by));
        self.outgoing.iter().filter_map(by)
    }

    /// A message for which there is no room is lost, as it may be on the way. Others come after it.
    pub fn send(&self, to: MemberId, message: Message) {
        if let Some(link) = self.outgoing.get(&to) {
            let _lost = link.queue.try_send(message).is_err();
        }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.outgoing.values().for_each(|link| link.task.abort());
    }
}

struct Link {
    to: MemberId,
    address: String,
    /// The log does not name it: a broken link ends, and it greets again.
    is_guest: bool,
    connector: TlsConnector,
    own: Identity,
    inputs: mpsc::Sender<FromMember>,
    rings: Option<Rings>,
    goes_by: watch::Sender<Option<&'static str>>,
}

impl Link {
    async fn run(self, mut messages: mpsc::Receiver<Message>) {
        let mut reported = None;
        loop {
            let ended = match connect(&self.connector, &self.address).await {
                Ok(stream) => self.converse(stream, &mut messages, &mut reported).await,
                Err(problem) => Err(problem),
            };
            self.goes_by.send_replace(None);
            let Err(problem) = ended else { return };
            if self.is_guest {
                return;
            }
            if reported.as_ref() != Some(&problem) {
                warn!(member = %self.to, address = self.address, problem, "no link to a coordinator; trying again");
                reported = Some(problem);
            }
            let member = self.to;
            if self
                .inputs
                .send(FromMember::Disconnected { member })
                .await
                .is_err()
            {
                return;
            }
            sleep(Duration::from_millis(rand::random_range(RETRY_MS))).await;
            // They speak of a time that is over.
            while messages.try_recv().is_ok() {}
        }
    }

    /// Ends without an error when this coordinator does.
    async fn converse(
        &self,
        stream: TlsStream<TcpStream>,
        messages: &mut mpsc::Receiver<Message>,
        reported: &mut Option<String>,
    ) -> Result<(), String> {
        let mut socket = frames(stream);
        let ring = match &self.rings {
            Some(rings) => rings.open(self.to).await,
            None => None,
        };
        let mut hello = self.own.hello(Some(self.to));
        hello.ring = ring.as_ref().map(|ring| ring.offer.clone());
        let Answer::Welcome {
            version,
            ring: theirs,
        } = greet(&mut socket, &hello).await?
        else {
            return Err(SOMETHING_ELSE.into());
        };
        if !versions::MEMBERS.has(version) {
            return Err(format!(
                "it chose version {version} of the links: {}",
                versions::MEMBERS
            ));
        }
        // Both have one, or neither writes.
        let rings = ring.zip(theirs);
        let transport = if rings.is_some() { "ofi" } else { "tcp" };
        info!(member = %self.to, address = self.address, transport, "linked to a coordinator");
        *reported = None;
        self.goes_by.send_replace(Some(transport));
        match rings {
            Some((ring, theirs)) => self.send_by_ring(&mut socket, ring, theirs, messages).await,
            None => send_by_socket(&mut socket, messages).await,
        }
    }

    /// The socket calls when this side sleeps, and ends with the other process.
    async fn send_by_ring(
        &self,
        socket: &mut Socket,
        mut ring: Ring,
        theirs: RingOffer,
        messages: &mut mpsc::Receiver<Message>,
    ) -> Result<(), String> {
        ring.connect(theirs).await?;
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => {
                        let frame = Bytes::from(encode_message(&message));
                        in_time(ring.send(frame)).await?;
                    }
                    None => return Ok(()),
                },
                call = socket.next() => {
                    call.ok_or("the connection ended")?.map_err(|e| e.to_string())?;
                    ring.woken().await?;
                },
                output = ring.next() => match output {
                    Output::Call => in_time(call(socket)).await?,
                    Output::Frame(_) => return Err("it writes where this side does".into()),
                    Output::Trouble(trouble) => {
                        self.rings.iter().for_each(|rings| rings.note_trouble(self.to, &trouble));
                        return Err(trouble);
                    }
                },
            }
        }
    }
}

async fn send_by_socket(socket: &mut Socket, messages: &mut mpsc::Receiver<Message>) -> Result<(), String> {
    let mut batch = Vec::new();
    while messages.recv_many(&mut batch, BATCH_MESSAGES).await > 0 {
        in_time(write(socket, &mut batch)).await?;
    }
    Ok(())
}

async fn in_time(written: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let written = timeout(WRITE, written).await;
    written.map_err(|_| "it does not read".to_string())?
}

async fn call(socket: &mut Socket) -> Result<(), String> {
    socket.send(Bytes::new()).await.map_err(|e| e.to_string())
}

async fn write(socket: &mut Socket, batch: &mut Vec<Message>) -> Result<(), String> {
    for message in batch.drain(..) {
        let bytes = Bytes::from(encode_message(&message));
        socket.feed(bytes).await.map_err(|e| e.to_string())?;
    }
    SinkExt::<Bytes>::flush(socket).await.map_err(|e| e.to_string())
}

/// For links to coordinators that have the same key.
pub fn connector(keys: &FleetKeys) -> Result<TlsConnector, Failure> {
    let config = members::client_config(keys);
    let config = config.map_err(|e| Failure::configuration(format!("the fleet's key: {e}")))?;
    Ok(TlsConnector::from(Arc::new(config)))
}

pub async fn connect(connector: &TlsConnector, address: &str) -> Result<TlsStream<TcpStream>, String> {
    let connected = timeout(CONNECT, async {
        let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let shaken = connector.connect(coordinator_name(), stream).await;
        shaken.map_err(|e| format!("{e}: has it another --fleet-key?"))
    });
    connected.await.map_err(|_| "no connection in time".to_string())?
}
