//! The listener: reads the first frame of each connection, which says whether a client or a peer is there,
//! and hands the connection to the shard that will serve it.

use std::sync::Arc;
use std::time::Duration;

use quorate_transport::{FrameReader, Outbox, prepare};
use quorate_types::limits::HELLO_TIMEOUT_MS;
use quorate_types::{Code, ServerId};
use quorate_wire::client::{Message, VERSION, kind};
use quorate_wire::peer::{self, Greeting};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::shard::ShardMessage;
use crate::shared::{Shared, Slot};

/// Before its greeting a connection may not make the server buffer more than this.
const GREETING_FRAME_BYTES_MAX: u32 = u16::MAX as u32;
/// Time for a refused connection to take its GOODBYE.
const GOODBYE_GRACE: Duration = Duration::from_millis(200);

/// Accepts until the process ends. Runs on a `LocalSet`.
pub async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let mut next_shard = 0usize;
    loop {
        let (stream, _from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: others will be closed; give them time.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(slot) = shared.connection_slot() else {
            tracing::warn!("too many connections; one is refused");
            continue;
        };
        next_shard = (next_shard + 1) % shared.shard_count();
        let (shared, shard) = (shared.clone(), next_shard);
        spawn_local(async move {
            let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
            if let Ok(Err(refused)) = tokio::time::timeout(limit, greet(stream, &shared, shard, slot)).await {
                say_goodbye(refused).await;
            }
        });
    }
}

struct Refused {
    stream: TcpStream,
    code: Code,
    detail: String,
}

async fn greet(stream: TcpStream, shared: &Shared, shard: usize, slot: Slot) -> Result<(), Refused> {
    let _best_effort = prepare(&stream).is_ok();
    let mut reader = FrameReader::new(GREETING_FRAME_BYTES_MAX);
    let frame = match reader.read_frame(&stream).await {
        Ok(frame) => frame,
        Err(quorate_transport::ReadFault::Wire(error)) => {
            return Err(Refused {
                stream,
                code: error.code(),
                detail: error.to_string(),
            });
        }
        Err(_) => return Ok(()),
    };
    if frame.kind == peer::kind::HELLO {
        return greet_peer(stream, shared, &frame, reader).await;
    }
    match Message::decode(&frame) {
        Ok(Message::Hello { version: VERSION, .. }) => {
            if let Ok(stream) = stream.into_std() {
                shared.send(
                    shard,
                    ShardMessage::Client {
                        stream,
                        rest: reader.into_rest(),
                        slot,
                    },
                );
            }
            Ok(())
        }
        Ok(Message::Hello { version, .. }) => {
            let detail = format!("This server speaks version {VERSION}, not {version}.");
            Err(Refused {
                stream,
                code: Code::UnsupportedVersion,
                detail,
            })
        }
        Ok(other) => {
            let detail = format!(
                "The first frame must be HELLO (kind {}), not kind {}.",
                kind::HELLO,
                other.kind()
            );
            Err(Refused {
                stream,
                code: Code::ProtocolError,
                detail,
            })
        }
        Err(error) => Err(Refused {
            stream,
            code: error.code(),
            detail: error.to_string(),
        }),
    }
}

async fn greet_peer(
    stream: TcpStream,
    shared: &Shared,
    frame: &quorate_wire::Frame,
    reader: FrameReader,
) -> Result<(), Refused> {
    let (claimed, token) = match Greeting::decode(frame) {
        Ok(Greeting::Hello { server_id, token, .. }) => (ServerId(server_id), token),
        Ok(_) => {
            let detail = "A peer greets with its hello.".to_string();
            return Err(Refused {
                stream,
                code: Code::ProtocolError,
                detail,
            });
        }
        Err(error) => {
            return Err(Refused {
                stream,
                code: error.code(),
                detail: error.to_string(),
            });
        }
    };
    let proven = shared.peer_keys.read().expect("keys").check_peer(&token);
    match proven {
        Ok(server) if server == claimed => {
            let hello_ok = Greeting::HelloOk {
                server_id: shared.server_id().0,
                incarnation: shared.incarnation.clone(),
            };
            let mut outbox = Outbox::default();
            outbox.push_bytes(hello_ok.to_bytes());
            while !outbox.try_write(&stream).unwrap_or(true) {
                if stream.writable().await.is_err() {
                    return Ok(());
                }
            }
            if let Ok(stream) = stream.into_std() {
                let message = ShardMessage::Link {
                    server,
                    stream,
                    rest: reader.into_rest(),
                };
                shared.send(shared.shard_of_peer(server), message);
            }
            Ok(())
        }
        Ok(_) => {
            let detail = "The peer token belongs to another server.".to_string();
            Err(Refused {
                stream,
                code: Code::PermissionDenied,
                detail,
            })
        }
        Err(code) => Err(Refused {
            stream,
            code,
            detail: "The peer token was not accepted.".to_string(),
        }),
    }
}

async fn say_goodbye(refused: Refused) {
    let Refused { stream, code, detail } = refused;
    tracing::info!(code = code.name(), detail, "connection refused");
    let message = format!("{detail} {}", code.explanation());
    let goodbye = Message::Goodbye {
        code: code as u16,
        message,
    };
    let mut outbox = Outbox::default();
    outbox.push(|out| goodbye.encode(0, None, out));
    if outbox.try_write(&stream).is_ok() {
        tokio::time::sleep(GOODBYE_GRACE).await;
    }
}
