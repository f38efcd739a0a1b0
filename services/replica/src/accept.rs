//! The listener. It takes each connection through its TLS handshake and reads the first frame, which tells a client
//! from a peer. Then it hands the connection to the shard that will serve it.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf};
use quorate_transport::{begins_with_tls, handshake, plain, prepare};
use quorate_types::limits::HELLO_TIMEOUT_MS;
use quorate_types::{Code, ServerId, Versions, versions};
use quorate_wire::Frame;
use quorate_wire::client::{Message, kind};
use quorate_wire::peer::{self, Handshake};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::handshakes::Handshakes;
use crate::messages::{ClientMessage, LinkMessage, ShardMessage};
use crate::shared::Shared;

/// Before its handshake a connection may not make the server buffer more than this.
const HANDSHAKE_FRAME_BYTES_MAX: u32 = u16::MAX as u32;
/// Time for a refused connection to take its GOODBYE.
const GOODBYE_GRACE: Duration = Duration::from_millis(200);
/// Refused connections are logged no more often: clients choose how many come.
const REFUSALS_LOGGED_EVERY: Duration = Duration::from_secs(1);

/// Accepts until the process ends. Runs on a `LocalSet`.
pub async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let mut next_shard = 0usize;
    let handshakes: Rc<RefCell<Handshakes>> = Rc::default();
    let (mut refused, mut logged_at) = (0u64, None::<Instant>);
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: others will be closed; give them time.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let from = from.ip().to_canonical();
        let Some(place) = Handshakes::place(&handshakes, from, |from| shared.peers.is_host(from)) else {
            refused += 1;
            if logged_at.is_none_or(|at| at.elapsed() >= REFUSALS_LOGGED_EVERY) {
                tracing::warn!(%from, refused, "too many connections have not finished their handshakes; refusing others");
                (refused, logged_at) = (0, Some(Instant::now()));
            }
            continue;
        };
        next_shard = (next_shard + 1) % shared.shards.count();
        let (shared, shard) = (shared.clone(), next_shard);
        spawn_local(async move {
            let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
            let finished = tokio::time::timeout(limit, async {
                let Some(conversation) = open(stream, &shared).await? else {
                    return Ok(());
                };
                take_handshake(conversation, &shared, shard, from).await
            });
            if let Ok(Err(refused)) = finished.await {
                say_goodbye(refused).await;
            }
            drop(place);
        });
    }
}

/// A connection whose other side has yet to say who it is.
struct Conversation {
    read_half: ReadHalf,
    write_half: WriteHalf,
    reader: FrameReader,
}

struct Refused {
    conversation: Conversation,
    code: Code,
    detail: String,
}

impl Conversation {
    fn new((read_half, write_half): (ReadHalf, WriteHalf), rest: &[u8]) -> Self {
        Self {
            read_half,
            write_half,
            reader: FrameReader::with_rest(rest, HANDSHAKE_FRAME_BYTES_MAX),
        }
    }

    fn refuse<T>(self, code: Code, detail: impl Into<String>) -> Result<T, Box<Refused>> {
        Err(Box::new(Refused {
            conversation: self,
            code,
            detail: detail.into(),
        }))
    }
}

/// TLS, or plaintext where it is allowed. `None`: the peer is gone.
async fn open(stream: TcpStream, shared: &Shared) -> Result<Option<Conversation>, Box<Refused>> {
    let _best_effort = prepare(&stream).is_ok();
    match begins_with_tls(&stream).await {
        Ok(true) => {}
        Ok(false) => {
            let conversation = Conversation::new(plain(stream), &[]);
            if shared.access.plaintext.is_accepted {
                return Ok(Some(conversation));
            }
            return conversation.refuse(Code::TlsRequired, "");
        }
        Err(_) => return Ok(None),
    }
    let accepted = match shared.access.tls().accept() {
        Ok(connection) => handshake(stream, connection).await.map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match accepted {
        Ok((read_half, write_half, rest)) => Ok(Some(Conversation::new((read_half, write_half), &rest))),
        Err(reason) => {
            // The other side has had an alert.
            tracing::info!(reason, "TLS handshake failed");
            Ok(None)
        }
    }
}

async fn take_handshake(
    mut conversation: Conversation,
    shared: &Shared,
    shard: usize,
    from: IpAddr,
) -> Result<(), Box<Refused>> {
    let Conversation {
        read_half, reader, ..
    } = &mut conversation;
    let frame = match reader.read_frame(read_half).await {
        Ok(frame) => frame,
        Err(ReadFault::Wire(error)) => return conversation.refuse(error.code(), error.to_string()),
        Err(_) => return Ok(()),
    };
    if frame.kind == peer::kind::HELLO {
        return take_peer(conversation, shared, &frame, from).await;
    }
    match Message::decode(&frame) {
        Ok(Message::Hello { versions: theirs, .. }) => {
            let Some(version) = versions::CLIENT.agree(theirs) else {
                return conversation.refuse(Code::UnsupportedVersion, differs(versions::CLIENT, theirs));
            };
            let Some(slot) = shared.connections.take() else {
                return conversation
                    .refuse(Code::Overloaded, "The server has as many clients as it may have.");
            };
            let rest = conversation.reader.into_rest();
            if let Ok(stream) = conversation.read_half.detach(conversation.write_half) {
                let message = ClientMessage::Accepted {
                    stream,
                    rest,
                    slot,
                    version,
                };
                shared.shards.send(shard, ShardMessage::Client(message));
            }
            Ok(())
        }
        Ok(other) => {
            let detail = format!(
                "The first frame must be HELLO (kind {}), not kind {}.",
                kind::HELLO,
                other.kind()
            );
            conversation.refuse(Code::ProtocolError, detail)
        }
        Err(error) => conversation.refuse(error.code(), error.to_string()),
    }
}

async fn take_peer(
    conversation: Conversation,
    shared: &Shared,
    frame: &Frame,
    from: IpAddr,
) -> Result<(), Box<Refused>> {
    let (claimed, token, theirs) = match Handshake::decode(frame) {
        Ok(Handshake::Hello {
            server_id,
            token,
            versions,
            ..
        }) => (ServerId(server_id), token, versions),
        Ok(_) => return conversation.refuse(Code::ProtocolError, "The first frame of a peer is its hello."),
        Err(error) => return conversation.refuse(error.code(), error.to_string()),
    };
    if conversation.read_half.is_tls() {
        let presented = conversation.read_half.peer_certificates();
        if let Err(error) = shared.access.tls().check_peer(&presented, claimed) {
            tracing::warn!(claimed = claimed.0, %error, "a peer's certificate is not what its hello says");
            let detail = format!("The certificate does not prove server {claimed}: {error}.");
            return conversation.refuse(Code::PermissionDenied, detail);
        }
    }
    let Some(version) = versions::LINK.agree(theirs) else {
        let detail = format!("Of links: {}", differs(versions::LINK, theirs));
        return conversation.refuse(Code::UnsupportedVersion, detail);
    };
    let proven = shared.access.check_peer(&token);
    match proven {
        Ok(server) if server == claimed => {
            shared.peers.note_host(server, from);
            let hello_ok = Handshake::HelloOk {
                server_id: shared.server_id().0,
                incarnation: shared.incarnation.clone(),
                version,
            };
            let mut outbox = Outbox::default();
            outbox.push_bytes(hello_ok.to_bytes());
            let write_half = conversation.write_half;
            while !outbox.try_write(&write_half).unwrap_or(true) {
                if write_half.writable().await.is_err() {
                    return Ok(());
                }
            }
            let rest = conversation.reader.into_rest();
            if let Ok(stream) = conversation.read_half.detach(write_half) {
                let message = LinkMessage::Accepted {
                    server,
                    stream,
                    rest,
                    version,
                };
                shared.shards.send_to_peer(server, ShardMessage::Link(message));
            }
            Ok(())
        }
        Ok(_) => conversation.refuse(
            Code::PermissionDenied,
            "The peer token belongs to another server.",
        ),
        Err(code) => conversation.refuse(code, "The peer token was not accepted."),
    }
}

/// Releases that are next to one another have a version in common.
fn differs(ours: Versions, theirs: Versions) -> String {
    format!("This server speaks {ours}, not {theirs}.")
}

async fn say_goodbye(refused: Box<Refused>) {
    let Refused {
        conversation,
        code,
        detail,
    } = *refused;
    tracing::info!(code = code.name(), detail, "connection refused");
    let message = format!("{detail} {}", code.explanation()).trim().to_string();
    let goodbye = Message::Goodbye {
        code: code as u16,
        message,
    };
    let mut outbox = Outbox::default();
    outbox.push(|out| goodbye.encode(0, None, out));
    if outbox.try_write(&conversation.write_half).is_ok() {
        conversation.write_half.close();
        // Bytes that are not read when a socket closes make the kernel reset it, and the GOODBYE may be lost with
        // that.
        let mut read_half = conversation.read_half;
        let until_closed = async { while read_half.discard().await {} };
        let _in_time = tokio::time::timeout(GOODBYE_GRACE, until_closed).await.is_ok();
    }
}
