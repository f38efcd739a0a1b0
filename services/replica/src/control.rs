//! The control connection: registering with the coordinator, heartbeats, configurations in, news out.
//!
//! When the coordinator is away the server goes on serving; it tries again, for ever.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use quorate_types::control::{Heartbeat, HeldGroup, Register, ToCoordinator, ToServer, Welcome};
use quorate_types::cost::ResourceVector;
use quorate_types::limits::CONTROL_MESSAGE_BYTES_MAX;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use crate::identity::{self, Identity};
use crate::shard::ShardMessage;
use crate::shared::Shared;
use quorate_tokens::Keys;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(1);
/// A coordinator that answers no heartbeat for so many intervals is taken for gone, and dialed anew.
const UNANSWERED_MAX: u64 = 8;

type Connection = Framed<TcpStream, LengthDelimitedCodec>;

/// What the server says of itself at each registration.
pub struct Me {
    pub data_dir: PathBuf,
    pub coordinator: String,
    pub join_token: Option<String>,
    pub identity: Option<Identity>,
    pub name: String,
    pub address: String,
    pub capacity: ResourceVector,
    pub failure_domain: Option<String>,
    pub region: String,
    /// Groups found on disk at start.
    pub held: Vec<HeldGroup>,
}

/// How registration went, for whoever waits for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    Unregistered {
        trouble: String,
    },
    Registered,
    /// Final: the coordinator does not want this server.
    Refused {
        message: String,
    },
}

/// Keeps the connection, until it is refused.
pub async fn run(
    mut me: Me,
    shared: Arc<Shared>,
    mut news: mpsc::UnboundedReceiver<ToCoordinator>,
    standing: watch::Sender<Standing>,
) {
    let mut delay = RETRY_DELAY_MIN;
    loop {
        let trouble = match register(&mut me, &shared).await {
            Ok((connection, welcome)) => {
                delay = RETRY_DELAY_MIN;
                standing.send_replace(Standing::Registered);
                converse(connection, &welcome, &shared, &mut news).await
            }
            Err(Failure::Refused(message)) => {
                tracing::error!(message, "the coordinator refused this server");
                standing.send_replace(Standing::Refused { message });
                return;
            }
            Err(Failure::Trouble(trouble)) => trouble,
        };
        tracing::warn!(
            coordinator = me.coordinator,
            trouble,
            "no connection to the coordinator; trying again"
        );
        standing.send_if_modified(|standing| {
            let waiting = matches!(standing, Standing::Unregistered { .. });
            if waiting {
                *standing = Standing::Unregistered { trouble };
            }
            waiting
        });
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(RETRY_DELAY_MAX);
    }
}

enum Failure {
    Trouble(String),
    Refused(String),
}

impl From<String> for Failure {
    fn from(trouble: String) -> Self {
        Failure::Trouble(trouble)
    }
}

async fn register(me: &mut Me, shared: &Shared) -> Result<(Connection, Welcome), Failure> {
    let connect = TcpStream::connect(&me.coordinator);
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect)
        .await
        .map_err(|_| "connecting timed out".to_string())?
        .map_err(|e| e.to_string())?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(CONTROL_MESSAGE_BYTES_MAX)
        .new_codec();
    let mut connection = Framed::new(stream, codec);
    let credential = me.identity.as_ref().map(|identity| identity.credential.clone());
    let message = ToCoordinator::Register(Register {
        join_token: if credential.is_some() {
            None
        } else {
            me.join_token.clone()
        },
        credential,
        name: me.name.clone(),
        address: me.address.clone(),
        incarnation: shared.incarnation.clone(),
        capacity: me.capacity,
        failure_domain: me.failure_domain.clone(),
        region: me.region.clone(),
        held: me.held.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
    });
    send(&mut connection, &message).await?;
    let answer = tokio::time::timeout(CONNECT_TIMEOUT * 2, receive(&mut connection))
        .await
        .map_err(|_| "no answer to the registration".to_string())??;
    match answer {
        ToServer::Welcome(welcome) => {
            take_in(me, shared, &welcome)?;
            Ok((connection, welcome))
        }
        ToServer::Refuse { message, .. } => Err(Failure::Refused(message)),
        other => Err(Failure::Trouble(format!(
            "unexpected answer to the registration: {other:?}"
        ))),
    }
}

fn take_in(me: &mut Me, shared: &Shared, welcome: &Welcome) -> Result<(), Failure> {
    if let Some(known) = &me.identity
        && known.server_id != welcome.server_id
    {
        let (known, given) = (known.server_id, welcome.server_id);
        return Err(Failure::Refused(format!(
            "this is server {known}, but the coordinator says {given}"
        )));
    }
    if let Some(credential) = &welcome.credential {
        let identity = Identity {
            server_id: welcome.server_id,
            credential: credential.clone(),
        };
        identity::save(&me.data_dir, &identity).map_err(|e| format!("cannot save identity.json: {e}"))?;
        me.identity = Some(identity);
        me.join_token = None;
    }
    shared.set_server_id(welcome.server_id);
    *shared.client_keys.write().expect("keys") = Keys::from_jwks(&welcome.client_keys)?;
    *shared.peer_keys.write().expect("keys") = Keys::from_jwks(&welcome.peer_keys)?;
    welcome
        .peer_token
        .clone_into(&mut shared.peer_token.write().expect("peer token"));
    Ok(())
}

/// Talks until the connection breaks; says why it did.
async fn converse(
    mut connection: Connection,
    welcome: &Welcome,
    shared: &Arc<Shared>,
    news: &mut mpsc::UnboundedReceiver<ToCoordinator>,
) -> String {
    let mut beat = tokio::time::interval(Duration::from_millis(welcome.heartbeat_ms.max(10)));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut sent, mut answered) = (0u64, 0u64);
    loop {
        tokio::select! {
            _ = beat.tick() => {
                if sent - answered > UNANSWERED_MAX {
                    return "it no longer answers".to_string();
                }
                sent += 1;
                let message = ToCoordinator::Heartbeat(heartbeat(sent, shared));
                if let Err(trouble) = send(&mut connection, &message).await {
                    return trouble;
                }
            }
            Some(message) = news.recv() => {
                if let Err(trouble) = send(&mut connection, &message).await {
                    return trouble;
                }
            }
            received = receive(&mut connection) => match received {
                Ok(ToServer::HeartbeatAck { seq }) => answered = answered.max(seq),
                Ok(message) => obey(shared, message),
                Err(trouble) => return trouble,
            },
        }
    }
}

fn obey(shared: &Shared, message: ToServer) {
    match message {
        ToServer::Configure { config } => {
            let shard = shared.shard_of_group(config.group_id);
            shared.send(shard, ShardMessage::Configure(config));
        }
        ToServer::Drop { group_id, .. } => {
            shared.send(shared.shard_of_group(group_id), ShardMessage::Drop(group_id));
        }
        ToServer::PeerToken { token } => *shared.peer_token.write().expect("peer token") = token,
        ToServer::Welcome(_) | ToServer::Refuse { .. } | ToServer::HeartbeatAck { .. } => {}
    }
}

fn heartbeat(seq: u64, shared: &Shared) -> Heartbeat {
    Heartbeat {
        seq,
        groups: shared
            .reports
            .lock()
            .expect("reports")
            .values()
            .cloned()
            .collect(),
        unreachable: shared
            .unreachable
            .lock()
            .expect("unreachable")
            .iter()
            .copied()
            .collect(),
        storage_fault: shared.storage_fault.lock().expect("storage fault").clone(),
    }
}

async fn send(connection: &mut Connection, message: &ToCoordinator) -> Result<(), String> {
    let bytes = serde_json::to_vec(message).map_err(|e| e.to_string())?;
    connection
        .send(Bytes::from(bytes))
        .await
        .map_err(|e| e.to_string())
}

/// Cancel-safe: a frame half read stays in the connection's buffer.
async fn receive(connection: &mut Connection) -> Result<ToServer, String> {
    match connection.next().await {
        Some(Ok(bytes)) => serde_json::from_slice(&bytes).map_err(|e| format!("malformed message: {e}")),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it closed the connection".to_string()),
    }
}
