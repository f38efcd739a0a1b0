//! Servers that are played on a coordinator's control connections: they register, send heartbeats, and take what they are
//! told. They host nothing, so a coordinator meets more replicas than one machine could serve.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use futures::{SinkExt, StreamExt};
use quorate_certificates::control::{Trust, client_config, coordinator_name};
use quorate_certificates::pin;
use quorate_types::control::{GroupReport, Heartbeat, Register, ToCoordinator, ToServer, Welcome};
use quorate_types::cost::ResourceVector;
use quorate_types::limits::CONTROL_MESSAGE_BYTES_MAX;
use quorate_types::reports::ReportBook;
use quorate_types::{ConfigDigest, GroupConfig, GroupId, GroupState, Room, ServerId, versions};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// More than groups of any test ask for.
const CAPACITY: ResourceVector = ResourceVector {
    cpu: 4_000.0,
    network_bytes_per_s: 1e12,
    storage_io_per_s: 1e9,
};
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Args)]
pub struct ControlFleetFlags {
    /// Address of the coordinator's control listener
    #[arg(long)]
    coordinator: String,
    /// File with a join token a line: so many servers are played
    #[arg(long, value_name = "FILE")]
    join_tokens: PathBuf,
    /// Groups, of a thousand on each server, whose log has grown at each heartbeat
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000))]
    active_permille: u64,
    /// Seconds after which the servers end
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
}

type Connection = Framed<TlsStream<TcpStream>, LengthDelimitedCodec>;

struct PlayedServer {
    connection: Connection,
    welcome: Welcome,
    reports: ReportBook,
    /// Reports by the order in which groups came.
    groups: Vec<GroupReport>,
    sent: u64,
}

/// Plays the servers until the time is over. Fails when one of them loses its connection.
pub fn play(flags: &ControlFleetFlags) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| e.to_string())?.block_on(play_all(flags))
}

async fn play_all(flags: &ControlFleetFlags) -> Result<(), String> {
    let tokens = std::fs::read_to_string(&flags.join_tokens)
        .map_err(|e| format!("{}: {e}", flags.join_tokens.display()))?;
    let ends = Instant::now() + Duration::from_secs_f64(flags.seconds);
    let mut servers = tokio::task::JoinSet::new();
    for (number, token) in tokens.lines().enumerate() {
        let (coordinator, token) = (flags.coordinator.clone(), token.to_string());
        let active_permille = flags.active_permille;
        servers.spawn(async move {
            let server = PlayedServer::join(&coordinator, number, &token).await?;
            server.live(active_permille, ends).await
        });
    }
    let mut replicas = 0;
    while let Some(ended) = servers.join_next().await {
        replicas += ended.map_err(|e| e.to_string())??;
    }
    println!("{replicas} replicas at the end");
    Ok(())
}

impl PlayedServer {
    async fn join(coordinator: &str, number: usize, token: &str) -> Result<Self, String> {
        let (secret, fingerprint) = pin::split(token);
        let trust = Trust::Pin(
            fingerprint
                .ok_or("a join token without a fingerprint")?
                .to_string(),
        );
        let config = client_config(&trust, None).map_err(|e| e.to_string())?;
        let stream = TcpStream::connect(coordinator).await.map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(coordinator_name(), stream)
            .await
            .map_err(|e| e.to_string())?;
        let codec = LengthDelimitedCodec::builder()
            .max_frame_length(CONTROL_MESSAGE_BYTES_MAX)
            .new_codec();
        let mut connection = Framed::new(stream, codec);
        let register = Register {
            join_token: Some(secret.to_string()),
            credential: None,
            name: format!("played-{number}"),
            address: format!("played-{number}.invalid:7000"),
            incarnation: format!("played-{number}-1"),
            previous_incarnations: Vec::new(),
            capacity: CAPACITY,
            room: Room::default(),
            failure_domain: None,
            region: "local".into(),
            held: Vec::new(),
            version: env!("CARGO_PKG_VERSION").into(),
            machine: None,
            hung_ms: 0,
            certificate_request_pem: None,
            place: None,
            versions: versions::CONTROL,
            fleet_versions: versions::FLEET,
            links: None,
        };
        send(&mut connection, &ToCoordinator::Register(Box::new(register))).await?;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, receive(&mut connection)).await;
        match answer.map_err(|_| "no answer to a registration".to_string())?? {
            ToServer::Welcome(welcome) => Ok(Self {
                connection,
                welcome,
                reports: ReportBook::default(),
                groups: Vec::new(),
                sent: 0,
            }),
            other => Err(format!("not welcome: {other:?}")),
        }
    }

    /// The number of replicas that it had at the end.
    async fn live(mut self, active_permille: u64, ends: Instant) -> Result<usize, String> {
        self.reports.connected();
        let mut beat = interval(Duration::from_millis(self.welcome.heartbeat_ms));
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < ends {
            tokio::select! {
                _ = beat.tick() => self.heartbeat(active_permille).await?,
                message = receive(&mut self.connection) => self.obey(message?).await?,
            }
        }
        Ok(self.groups.len())
    }

    async fn heartbeat(&mut self, active_permille: u64) -> Result<(), String> {
        self.sent += 1;
        for (number, report) in self.groups.iter_mut().enumerate() {
            if (number as u64) % 1_000 < active_permille {
                report.last_index += 1;
                report.commit_offset += 1;
                self.reports.note(report.clone());
            }
        }
        let (groups, changes) = self.reports.take();
        let heartbeat = Heartbeat {
            seq: self.sent,
            groups,
            unreachable: Vec::new(),
            storage_fault: None,
            slow: Vec::new(),
            hung_ms: 0,
            estimated: None,
            changes: Some(changes),
            quarantined: Vec::new(),
        };
        send(&mut self.connection, &ToCoordinator::Heartbeat(heartbeat)).await
    }

    async fn obey(&mut self, message: ToServer) -> Result<(), String> {
        match message {
            ToServer::Configure { config } => {
                let (group_id, epoch) = (config.group_id, config.epoch);
                self.take_in(report_of(self.welcome.server_id, &config));
                let applied = ToCoordinator::Applied {
                    group_id,
                    epoch,
                    digest: Some(ConfigDigest::of(&config)),
                };
                send(&mut self.connection, &applied).await
            }
            ToServer::Drop { group_id, epoch } => {
                self.groups.retain(|report| report.group_id != group_id);
                self.reports.forget(group_id);
                let epoch = Some(epoch);
                send(&mut self.connection, &ToCoordinator::Dropped { group_id, epoch }).await
            }
            ToServer::HeartbeatAck { seq, repeat, .. } => {
                self.reports.answered(seq, repeat, self.sent);
                Ok(())
            }
            ToServer::Refuse { message, .. } => Err(message),
            _ => Ok(()),
        }
    }

    fn take_in(&mut self, report: GroupReport) {
        self.reports.note(report.clone());
        let known = |id: GroupId| move |one: &&mut GroupReport| one.group_id == id;
        match self.groups.iter_mut().find(known(report.group_id)) {
            Some(known) => *known = report,
            None => self.groups.push(report),
        }
    }
}

fn report_of(me: ServerId, config: &GroupConfig) -> GroupReport {
    GroupReport {
        group_id: config.group_id,
        epoch: config.epoch,
        role: config.role_of(me),
        state: GroupState::Active,
        last_index: 0,
        commit_offset: 0,
    }
}

async fn send(connection: &mut Connection, message: &ToCoordinator) -> Result<(), String> {
    let bytes = serde_json::to_vec(message).map_err(|e| e.to_string())?;
    connection
        .send(Bytes::from(bytes))
        .await
        .map_err(|e| e.to_string())
}

async fn receive(connection: &mut Connection) -> Result<ToServer, String> {
    match connection.next().await {
        Some(Ok(bytes)) => serde_json::from_slice(&bytes).map_err(|e| format!("malformed message: {e}")),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the coordinator closed a connection".to_string()),
    }
}
