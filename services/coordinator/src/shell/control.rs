//! The control listener: one TLS connection for each replica server, JSON in length-prefixed frames.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use quorate_certificates::control::server_config;
use quorate_types::control::{HeldGroup, Placed, RefuseCode, Register, ToCoordinator, ToServer};
use quorate_types::limits::{
    CONTROL_CONNECTIONS_MAX, CONTROL_MESSAGE_BYTES_MAX, CONTROL_OUTBOX_MESSAGES_MAX, HELD_GROUPS_MAX,
    HELLO_TIMEOUT_MS, LARGE_REGISTRATIONS_MAX,
};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};
use tracing::{debug, warn};

use super::secrets::PrivateKeys;
use super::task::TaskInput;
use quorate_coordinator_core::ids::ConnectionId;

type Frames = FramedRead<ReadHalf<TlsStream<TcpStream>>, LengthDelimitedCodec>;
type Sink = FramedWrite<WriteHalf<TlsStream<TcpStream>>, LengthDelimitedCodec>;

/// Registrations that are read at the same time, each up to the size of a control message. They bound the memory that
/// unauthenticated connections can take.
const HANDSHAKES_MAX: usize = 256;

/// Places for registrations that are being read.
struct Handshakes {
    all: Semaphore,
    /// Registrations of several messages take more memory. Connections that showed a certificate of the authority have
    /// places of their own: strangers cannot take them.
    large: Semaphore,
    large_of_strangers: Semaphore,
}

/// Accepts for ever, once it has the fleet's keys. TLS 1.3, with a certificate of the authority; servers show theirs when they
/// have one.
pub async fn serve(
    listener: TcpListener,
    mut keys: watch::Receiver<Option<Arc<PrivateKeys>>>,
    inputs: mpsc::Sender<TaskInput>,
) {
    let authority = match keys.wait_for(Option::is_some).await {
        Ok(keys) => keys.as_ref().expect("it was waited for").authority.clone(),
        // The coordinator stops.
        Err(_) => return,
    };
    let config = server_config(authority).expect("keys were checked when they were opened");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let slots = Arc::new(Semaphore::new(CONTROL_CONNECTIONS_MAX));
    let handshakes = Arc::new(Handshakes {
        all: Semaphore::new(HANDSHAKES_MAX),
        large: Semaphore::new(LARGE_REGISTRATIONS_MAX),
        large_of_strangers: Semaphore::new(LARGE_REGISTRATIONS_MAX),
    });
    let mut connection: ConnectionId = 0;
    loop {
        let slot = slots
            .clone()
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                // File descriptors have run out, most likely: no reason to spin or to stop.
                warn!(error = %e, "accepting a control connection failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        connection += 1;
        let (inputs, handshakes, acceptor) = (inputs.clone(), handshakes.clone(), acceptor.clone());
        tokio::spawn(async move {
            let ended = match tls_handshake(stream, &acceptor).await {
                Ok(stream) => converse(stream, peer.ip(), connection, &handshakes, &inputs).await,
                Err(reason) => {
                    warn!(%peer, reason, "a control connection failed its TLS handshake");
                    Err(reason)
                }
            };
            if let Err(reason) = ended {
                debug!(%peer, reason, "control connection ended");
            }
            let _ = inputs.send(TaskInput::Closed { connection }).await;
            drop(slot);
        });
    }
}

async fn tls_handshake(stream: TcpStream, acceptor: &TlsAcceptor) -> Result<TlsStream<TcpStream>, String> {
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
    let shaken = tokio::time::timeout(limit, acceptor.accept(stream)).await;
    shaken
        .map_err(|_| "no TLS handshake in time".to_string())?
        .map_err(|e| e.to_string())
}

async fn converse(
    stream: TlsStream<TcpStream>,
    from: IpAddr,
    connection: ConnectionId,
    handshakes: &Handshakes,
    inputs: &mpsc::Sender<TaskInput>,
) -> Result<(), String> {
    let shown = stream.get_ref().1.peer_certificates();
    let certificate = shown.and_then(|chain| chain.first()).cloned();
    let (read, write) = tokio::io::split(stream);
    let codec = || {
        LengthDelimitedCodec::builder()
            .max_frame_length(CONTROL_MESSAGE_BYTES_MAX)
            .new_codec()
    };
    let (mut frames, mut sink) = (FramedRead::new(read, codec()), FramedWrite::new(write, codec()));

    let handshake_slot = handshakes.all.acquire().await.map_err(|e| e.to_string())?;
    let large = match certificate {
        Some(_) => &handshakes.large,
        None => &handshakes.large_of_strangers,
    };
    let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
    let handshake = tokio::time::timeout(limit, registration(&mut frames, large)).await;
    let register = match handshake.map_err(|_| "no register in time".to_string())? {
        Ok(Some(register)) => register,
        Ok(None) => return Ok(()),
        Err(problem) => return refuse(&mut sink, problem).await,
    };
    let (outbox, queue) = mpsc::channel(CONTROL_OUTBOX_MESSAGES_MAX);
    let input = TaskInput::Register {
        connection,
        from,
        outbox,
        register,
        certificate,
    };
    drop(handshake_slot);
    inputs.send(input).await.map_err(|_| "stopping".to_string())?;
    // The first of the two to end ends the other: the engine closes a connection by dropping its outbox.
    tokio::select! {
        result = receive(frames, connection, inputs) => result,
        result = send(sink, queue) => result,
    }
}

/// The registration, with all groups that its messages name; `None` when the connection ends before.
async fn registration(frames: &mut Frames, large: &Semaphore) -> Result<Option<Box<Register>>, String> {
    let mut held: Vec<HeldGroup> = Vec::new();
    let mut large_slot = None;
    loop {
        match next(frames).await? {
            None => return Ok(None),
            Some(ToCoordinator::Register(mut register)) => {
                held.append(&mut register.held);
                register.held = held;
                return Ok(Some(register));
            }
            Some(ToCoordinator::Held { mut groups }) => {
                if large_slot.is_none() {
                    large_slot = Some(large.acquire().await.map_err(|e| e.to_string())?);
                }
                held.append(&mut groups);
                if held.len() > HELD_GROUPS_MAX {
                    return Err(format!("held must name at most {HELD_GROUPS_MAX} groups"));
                }
            }
            Some(_) => return Err("the first message must be register".into()),
        }
    }
}

async fn receive(
    mut frames: Frames,
    connection: ConnectionId,
    inputs: &mpsc::Sender<TaskInput>,
) -> Result<(), String> {
    while let Some(message) = next(&mut frames).await? {
        inputs
            .send(TaskInput::Message { connection, message })
            .await
            .map_err(|_| "stopping".to_string())?;
    }
    Ok(())
}

async fn send(mut sink: Sink, mut queue: mpsc::Receiver<Placed>) -> Result<(), String> {
    let mut messages = Vec::new();
    while queue.recv_many(&mut messages, 256).await > 0 {
        for message in messages.drain(..) {
            sink.feed(encode(&message)).await.map_err(|e| e.to_string())?;
        }
        SinkExt::<bytes::Bytes>::flush(&mut sink)
            .await
            .map_err(|e| e.to_string())?;
    }
    Ok(())
}

async fn refuse(sink: &mut Sink, problem: String) -> Result<(), String> {
    let refusal = ToServer::Refuse {
        code: RefuseCode::RegisterInvalid,
        message: problem.clone(),
    };
    let placed = Placed {
        place: None,
        message: refusal,
    };
    sink.send(encode(&placed)).await.map_err(|e| e.to_string())?;
    Err(problem)
}

async fn next(frames: &mut Frames) -> Result<Option<ToCoordinator>, String> {
    let Some(frame) = frames.next().await else {
        return Ok(None);
    };
    let frame = frame.map_err(|e| e.to_string())?;
    let mut json = serde_json::Deserializer::from_slice(&frame);
    let message =
        serde_path_to_error::deserialize(&mut json).map_err(|e| format!("not a control message: {e}"))?;
    Ok(Some(message))
}

fn encode(message: &Placed) -> bytes::Bytes {
    serde_json::to_vec(message)
        .expect("control messages serialise")
        .into()
}
