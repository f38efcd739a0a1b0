//! Connections from other coordinators: their messages.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use quorate_quorum::{MemberId, Message, decode_message};
use quorate_types::limits::{HELLO_TIMEOUT_MS, MEMBER_CONNECTIONS_MAX};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::hello::{Answer, Contact, Frames, Hello, Identity, JoinAnswer, frames, hear, say};
use super::ring_thread::{Output, Ring, Rings};
use super::senders::Senders;

/// For the task that owns the coordinator.
#[derive(Debug)]
pub enum FromMember {
    Message {
        from: MemberId,
        message: Message,
    },
    /// It sends messages, and is reached there. This member may not know it yet.
    Greeted {
        member: MemberId,
        address: String,
        contact: Contact,
    },
    /// Messages to it may be lost.
    Disconnected {
        member: MemberId,
    },
    /// It sends no more on its connection.
    Closed {
        member: MemberId,
    },
    /// An empty disk wants to be taken in; or a member is reached elsewhere now.
    Join {
        member: MemberId,
        address: String,
        answer: oneshot::Sender<JoinAnswer>,
    },
}

/// Accepts for ever.
pub async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    own: Identity,
    inputs: mpsc::Sender<FromMember>,
    rings: Option<Rings>,
) {
    let slots = Arc::new(Semaphore::new(MEMBER_CONNECTIONS_MAX));
    let senders = Arc::new(Senders::default());
    loop {
        let slot = slots.clone().acquire_owned().await.expect("it is never closed");
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "accepting a coordinator's connection failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let receiver = Receiver {
            own: own.clone(),
            inputs: inputs.clone(),
            senders: senders.clone(),
            rings: rings.clone(),
        };
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Err(reason) = receiver.receive(stream, acceptor).await {
                debug!(%peer, reason, "a coordinator's connection ended");
            }
            drop(slot);
        });
    }
}

/// The receiving end of one connection.
struct Receiver {
    own: Identity,
    inputs: mpsc::Sender<FromMember>,
    senders: Arc<Senders>,
    rings: Option<Rings>,
}

type Socket = Frames<TlsStream<TcpStream>>;

impl Receiver {
    async fn receive(self, stream: TcpStream, acceptor: TlsAcceptor) -> Result<(), String> {
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
        let shaken = tokio::time::timeout(limit, acceptor.accept(stream)).await;
        let stream = shaken.map_err(|_| "no TLS handshake in time".to_string())?.map_err(|e| {
            // The one at the other end sees no more than an alert.
            warn!(error = %e, "a connection to --listen-members failed its TLS handshake: has it another --fleet-key?");
            e.to_string()
        })?;
        let mut socket = frames(stream);
        let hello: Hello = hear(&mut socket).await?;
        let checked = self.own.check(&hello).and_then(|(from, version)| {
            self.senders.check(from, &hello.process)?;
            Ok((from, version))
        });
        let (from, version) = match checked {
            Ok(checked) => checked,
            Err(message) => {
                warn!(member = hello.member, message, "a coordinator was refused");
                return say(&mut socket, &Answer::Refused { message }).await;
            }
        };
        if hello.looks {
            let fleet = self.own.fleet.get().map(ToString::to_string);
            return say(&mut socket, &Answer::Fleet { fleet }).await;
        }
        let (member, address) = (from, hello.address.clone());
        self.give(FromMember::Greeted {
            member,
            address: address.clone(),
            contact: hello.contact.clone(),
        })
        .await?;
        if hello.joins {
            let (answer, answered) = oneshot::channel();
            self.give(FromMember::Join {
                member,
                address,
                answer,
            })
            .await?;
            // Without an answer the leader has changed meanwhile.
            let answer = answered.await.unwrap_or(JoinAnswer::AskLeader { address: None });
            return say(&mut socket, &Answer::Join(answer)).await;
        }
        self.converse(socket, from, version, hello).await
    }

    /// Takes the member's messages until its connection ends, or it has a newer one.
    async fn converse(
        &self,
        mut socket: Socket,
        from: MemberId,
        version: u16,
        hello: Hello,
    ) -> Result<(), String> {
        let ring = match (&self.rings, &hello.ring) {
            (Some(rings), Some(offer)) => rings.answer(from, offer).await,
            _ => None,
        };
        let offer = ring.as_ref().map(|ring| ring.offer.clone());
        say(&mut socket, &Answer::Welcome { version, ring: offer }).await?;
        let mut superseded = self.senders.connected(from, hello.process);
        let messages = async {
            match ring {
                Some(ring) => self.take_from_ring(&mut socket, ring, from).await,
                None => self.take_from_socket(&mut socket, from).await,
            }
        };
        let ended = tokio::select! {
            ended = messages => ended,
            _ = &mut superseded => return Err("the member has a newer connection".into()),
        };
        self.give(FromMember::Closed { member: from }).await?;
        ended
    }

    async fn take_from_socket(&self, socket: &mut Socket, from: MemberId) -> Result<(), String> {
        while let Some(frame) = socket.next().await {
            self.take(from, &frame.map_err(|e| e.to_string())?).await?;
        }
        Ok(())
    }

    /// The socket calls when this side sleeps, and ends with the other process.
    async fn take_from_ring(
        &self,
        socket: &mut Socket,
        mut ring: Ring,
        from: MemberId,
    ) -> Result<(), String> {
        loop {
            tokio::select! {
                call = socket.next() => match call {
                    Some(call) => {
                        call.map_err(|e| e.to_string())?;
                        ring.woken().await?;
                    }
                    None => return Ok(()),
                },
                output = ring.next() => match output {
                    Output::Frame(frame) => self.take(from, &frame).await?,
                    Output::Call => socket.send(Bytes::new()).await.map_err(|e| e.to_string())?,
                    Output::Trouble(trouble) => {
                        self.rings.iter().for_each(|rings| rings.note_trouble(from, &trouble));
                        return Err(trouble);
                    }
                },
            }
        }
    }

    async fn take(&self, from: MemberId, frame: &[u8]) -> Result<(), String> {
        let message = decode_message(frame).map_err(|e| e.to_string())?;
        self.give(FromMember::Message { from, message }).await
    }

    async fn give(&self, input: FromMember) -> Result<(), String> {
        self.inputs.send(input).await.map_err(|_| "stopping".to_string())
    }
}
