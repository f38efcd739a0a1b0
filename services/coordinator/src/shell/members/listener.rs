//! Connections from other coordinators: their messages.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use quorate_quorum::{MemberId, Message, decode_message};
use quorate_types::limits::{HELLO_TIMEOUT_MS, MEMBER_CONNECTIONS_MAX};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::hello::{Answer, Contact, Frames, Hello, Identity, JoinAnswer, frames, hear, say};
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
        let (acceptor, own, inputs, senders) =
            (acceptor.clone(), own.clone(), inputs.clone(), senders.clone());
        tokio::spawn(async move {
            if let Err(reason) = receive(stream, acceptor, own, inputs, senders).await {
                debug!(%peer, reason, "a coordinator's connection ended");
            }
            drop(slot);
        });
    }
}

async fn receive(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    own: Identity,
    inputs: mpsc::Sender<FromMember>,
    senders: Arc<Senders>,
) -> Result<(), String> {
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
    let shaken = tokio::time::timeout(limit, acceptor.accept(stream)).await;
    let stream = shaken.map_err(|_| "no TLS handshake in time".to_string())?.map_err(|e| {
        // The one at the other end sees no more than an alert.
        warn!(error = %e, "a connection to --listen-members failed its TLS handshake: has it another --fleet-key?");
        e.to_string()
    })?;
    let mut frames = frames(stream);
    let hello: Hello = hear(&mut frames).await?;
    let checked = own.check(&hello).and_then(|(from, version)| {
        senders.check(from, &hello.process)?;
        Ok((from, version))
    });
    let (from, version) = match checked {
        Ok(checked) => checked,
        Err(message) => {
            warn!(member = hello.member, message, "a coordinator was refused");
            return say(&mut frames, &Answer::Refused { message }).await;
        }
    };
    if hello.looks {
        let fleet = own.fleet.get().map(ToString::to_string);
        return say(&mut frames, &Answer::Fleet { fleet }).await;
    }
    let (member, address) = (from, hello.address);
    let greeted = FromMember::Greeted {
        member,
        address: address.clone(),
        contact: hello.contact,
    };
    inputs.send(greeted).await.map_err(|_| "stopping".to_string())?;
    if hello.joins {
        let (answer, answered) = oneshot::channel();
        let join = FromMember::Join {
            member,
            address,
            answer,
        };
        inputs.send(join).await.map_err(|_| "stopping".to_string())?;
        // Without an answer the leader has changed meanwhile.
        let answer = answered.await.unwrap_or(JoinAnswer::AskLeader { address: None });
        return say(&mut frames, &Answer::Join(answer)).await;
    }
    say(&mut frames, &Answer::Welcome { version }).await?;
    let mut superseded = senders.connected(from, hello.process);
    let ended = tokio::select! {
        ended = take_messages(&mut frames, from, &inputs) => ended,
        _ = &mut superseded => return Err("the member has a newer connection".into()),
    };
    let closed = FromMember::Closed { member };
    inputs.send(closed).await.map_err(|_| "stopping".to_string())?;
    ended
}

async fn take_messages(
    frames: &mut Frames<TlsStream<TcpStream>>,
    from: MemberId,
    inputs: &mpsc::Sender<FromMember>,
) -> Result<(), String> {
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|e| e.to_string())?;
        let message = decode_message(&frame).map_err(|e| e.to_string())?;
        let input = FromMember::Message { from, message };
        inputs.send(input).await.map_err(|_| "stopping".to_string())?;
    }
    Ok(())
}
