//! The control connection: registering with the coordinator, heartbeats, configurations in, news out.
//!
//! The server goes on serving when the coordinator is away, and tries again for ever.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use quorate_certificates::control::{WrongPin, coordinator_name};
use quorate_types::control::{
    DrainState, Heartbeat, HeldGroup, LinkTransport, Placed, RefuseCode, Register, SharingReport,
    ToCoordinator, ToServer, Welcome,
};
use quorate_types::coordinators::KnownCoordinators;
use quorate_types::cost::ResourceVector;
use quorate_types::limits::{CONTROL_MESSAGE_BYTES_MAX, HELD_PER_MESSAGE_MAX};
use quorate_types::{GroupId, Machine, Micros, Revocation, Room, versions};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use crate::certificate::Certificates;
use crate::clock::{now_us, wall_us};
use crate::clock_watch::ClockWatch;
use crate::identity::{self, Identity};
use crate::messages::{ClientMessage, Hosting, ShardMessage};
use crate::orders::Orders;
use crate::place_keeper::PlaceKeeper;
use crate::shared::{BurstUpdate, Shared, ToldShares};
use quorate_tokens::Keys;

/// The kernel accepts, however busy the coordinator is.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// A name is taken until the lease of its former holder ends, and the holder's groups have gone on. A machine whose disk was
/// replaced may be back before that.
const NAME_WAIT: Duration = Duration::from_secs(10);

type Connection = Framed<TlsStream<TcpStream>, LengthDelimitedCodec>;

/// The server's description of itself at each registration.
pub struct Me {
    pub data_dir: PathBuf,
    pub coordinators: KnownCoordinators,
    pub join_token: Option<String>,
    pub identity: Option<Identity>,
    pub certificates: Certificates,
    pub name: String,
    pub address: String,
    pub capacity: ResourceVector,
    pub room: Room,
    pub failure_domain: Option<String>,
    pub region: String,
    /// Groups found on disk at start.
    pub held: Vec<HeldGroup>,
    /// Earlier starts on this data folder; see [`Identity::incarnations`].
    pub previous_incarnations: Vec<String>,
    pub places: PlaceKeeper,
    pub links: LinkTransport,
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
    mut updates: mpsc::UnboundedReceiver<ToCoordinator>,
    standing: watch::Sender<Standing>,
) {
    let orders = {
        let shared = shared.clone();
        Orders::start(move |order| obey(&shared, order))
    };
    let mut name_taken = None;
    let mut clock = ClockWatch::default();
    // After a failed attempt with the certificate the credential alone must do. The certificate may have ended by the
    // coordinator's clock, and the refusal may be no more than a broken connection.
    let mut show_certificate = true;
    loop {
        let shown = show_certificate && me.identity.is_some() && me.certificates.can_show();
        let registered = register(&mut me, &shared, &mut clock, shown).await;
        let is_led_elsewhere = matches!(registered, Err(Failure::NotLeader(_)));
        show_certificate = registered.is_ok() || is_led_elsewhere || !shown;
        let coordinator = me.coordinators.current().to_string();
        let mut leader = None;
        let trouble = match registered {
            Ok((connection, welcome)) => {
                me.coordinators.leads();
                tracing::info!(coordinator, "registered");
                standing.send_replace(Standing::Registered);
                let mut talk = Talk {
                    shared: &shared,
                    certificates: &mut me.certificates,
                    places: &mut me.places,
                    orders: &orders,
                    updates: &mut updates,
                    clock: &mut clock,
                };
                talk.converse(connection, &welcome, &me.coordinators).await
            }
            // Its former holder may be gone, and its lease not yet.
            Err(Failure::NameTaken(message))
                if name_taken.get_or_insert_with(Instant::now).elapsed() < NAME_WAIT =>
            {
                message
            }
            Err(Failure::Refused(message) | Failure::NameTaken(message)) => {
                tracing::error!(message, "the coordinator refused this server");
                standing.send_replace(Standing::Refused { message });
                return;
            }
            Err(Failure::NotLeader(named)) => {
                leader = named;
                not_leader(leader.as_deref())
            }
            Err(Failure::Trouble(trouble)) => trouble,
        };
        let delay = match leader {
            Some(_) => me.coordinators.told(leader),
            None => me.coordinators.failed(),
        };
        let next = me.coordinators.current();
        tracing::warn!(
            coordinator,
            trouble,
            next,
            "no connection to the coordinator; trying again"
        );
        note_trouble(&standing, trouble);
        // Servers that lost the same coordinator do not come to the next all at once.
        tokio::time::sleep(delay.mul_f64(rand::random_range(0.5..1.5))).await;
    }
}

fn not_leader(leader: Option<&str>) -> String {
    match leader {
        Some(leader) => format!("it does not lead, but the one at {leader}"),
        None => "it does not lead, and knows none that does".to_string(),
    }
}

/// The start waits for the registration, and says what holds it up.
fn note_trouble(standing: &watch::Sender<Standing>, trouble: String) {
    standing.send_if_modified(|standing| {
        let waiting = matches!(standing, Standing::Unregistered { .. });
        if waiting {
            *standing = Standing::Unregistered { trouble };
        }
        waiting
    });
}

enum Failure {
    Trouble(String),
    Refused(String),
    NameTaken(String),
    /// With the address of the leader, if it is known.
    NotLeader(Option<String>),
}

impl Failure {
    fn refused(code: RefuseCode, message: String) -> Self {
        match code {
            RefuseCode::NameTaken => Failure::NameTaken(message),
            _ => Failure::Refused(message),
        }
    }
}

impl From<String> for Failure {
    fn from(trouble: String) -> Self {
        Failure::Trouble(trouble)
    }
}

async fn connect(me: &Me, show_certificate: bool) -> Result<TlsStream<TcpStream>, Failure> {
    let connect = TcpStream::connect(me.coordinators.current());
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect)
        .await
        .map_err(|_| "connecting timed out".to_string())?
        .map_err(|e| e.to_string())?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let connector = TlsConnector::from(me.certificates.control_config(show_certificate)?);
    let shake_hands = connector.connect(coordinator_name(), stream);
    let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, shake_hands)
        .await
        .map_err(|_| "the TLS handshake timed out".to_string())?;
    shaken.map_err(|error| refusal_of(&error))
}

/// The meaning of a failed handshake for the operator who starts the server.
fn refusal_of(error: &std::io::Error) -> Failure {
    use rustls::{CertificateError, Error};
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match tls {
        Some(Error::InvalidCertificate(CertificateError::Other(other))) if other.0.is::<WrongPin>() => {
            Failure::Refused(other.0.to_string())
        }
        Some(Error::InvalidCertificate(wrong)) => Failure::Trouble(format!(
            "what answers there is not this server's coordinator ({wrong}): its certificate is not of the authority \
             in ca.pem; check --coordinator, or whether the coordinator's data folder was replaced"
        )),
        Some(other) => Failure::Trouble(format!("no TLS with the coordinator: {other}")),
        None => Failure::Trouble(error.to_string()),
    }
}

/// The machine that this server runs on. Admission promises by a profile of such machines.
fn own_machine() -> Machine {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Machine::of_cpuinfo(&cpuinfo, cores)
}

async fn register(
    me: &mut Me,
    shared: &Shared,
    clock: &mut ClockWatch,
    show_certificate: bool,
) -> Result<(Connection, Welcome), Failure> {
    let stream = connect(me, show_certificate).await?;
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(CONTROL_MESSAGE_BYTES_MAX)
        .new_codec();
    let mut connection = Framed::new(stream, codec);
    let credential = me.identity.as_ref().map(|identity| identity.credential.clone());
    let (before, last) = me
        .held
        .split_at(me.held.len().saturating_sub(HELD_PER_MESSAGE_MAX));
    for groups in before.chunks(HELD_PER_MESSAGE_MAX) {
        let groups = groups.to_vec();
        send(&mut connection, &ToCoordinator::Held { groups }).await?;
    }
    let join_token = me.join_token.clone().filter(|_| credential.is_none());
    let message = ToCoordinator::Register(Box::new(Register {
        join_token,
        credential,
        name: me.name.clone(),
        address: me.address.clone(),
        incarnation: shared.incarnation.clone(),
        capacity: me.capacity,
        room: me.room,
        failure_domain: me.failure_domain.clone(),
        region: me.region.clone(),
        held: last.to_vec(),
        previous_incarnations: me.previous_incarnations.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        machine: Some(own_machine()),
        hung_ms: shared.vitals.hung_ms(),
        certificate_request_pem: Some(me.certificates.request_pem()),
        place: me.places.known(),
        versions: versions::CONTROL,
        fleet_versions: versions::FLEET,
        links: Some(me.links.clone()),
    }));
    clock.asked(0);
    send(&mut connection, &message).await?;
    let answer = answer_to_registration(&mut connection).await?;
    let heard_us = now_us();
    let written = me.places.note(answer.place, &answer.message);
    match answer.message {
        ToServer::Welcome(welcome) => {
            if !me.coordinators.is_current(welcome.term) {
                return Err(Failure::Trouble("it leads in a term that is over".into()));
            }
            let (_, tls) = connection.get_ref().get_ref();
            let certificates = tls.peer_certificates().unwrap_or_default();
            me.certificates.keep_authority(certificates)?;
            clock.answered(0, welcome.unix_ms, shared);
            if let Some(written) = written {
                // A newcomer's. The start's time-out bounds the wait, as it does for the credential's own file.
                let gone = |_| "the place in the coordinator's log is no longer kept".to_string();
                written.await.map_err(gone)?;
            }
            take_in(me, shared, &welcome, heard_us)?;
            Ok((connection, welcome))
        }
        ToServer::Refuse { code, message } => Err(Failure::refused(code, message)),
        ToServer::NotLeader { leader } => Err(Failure::NotLeader(leader)),
        other => Err(Failure::Trouble(format!(
            "unexpected answer to the registration: {other:?}"
        ))),
    }
}

async fn answer_to_registration(connection: &mut Connection) -> Result<Placed, String> {
    tokio::time::timeout(HANDSHAKE_TIMEOUT * 2, receive(connection))
        .await
        .map_err(|_| "no answer to the registration".to_string())?
}

fn take_in(me: &mut Me, shared: &Shared, welcome: &Welcome, heard_us: Micros) -> Result<(), Failure> {
    if let Some(known) = &me.identity
        && known.server_id != welcome.server_id
    {
        let (known, given) = (known.server_id, welcome.server_id);
        return Err(Failure::Refused(format!(
            "this is server {known}, but the coordinator says {given}"
        )));
    }
    check_versions(welcome)?;
    let certificate = welcome.certificate_pem.clone();
    let certificate = certificate.ok_or_else(|| "the coordinator issued no certificate".to_string())?;
    me.certificates.take(certificate, shared)?;
    let credential = welcome.credential.clone();
    let known = me.identity.as_ref().map(|known| known.credential.clone());
    let identity = Identity {
        server_id: welcome.server_id,
        credential: credential.or(known).unwrap_or_default(),
        incarnations: vec![shared.incarnation.clone()],
        coordinator_term: me.coordinators.term(),
    };
    if me.identity.as_ref() != Some(&identity) {
        match identity::save(&me.data_dir, &identity) {
            Ok(()) => {}
            Err(e) if welcome.credential.is_some() => {
                return Err(Failure::Trouble(format!("cannot save identity.json: {e}")));
            }
            Err(error) => tracing::warn!(%error, "cannot note this start in identity.json"),
        }
        me.identity = Some(identity);
        me.join_token = None;
    }
    shared.set_server_id(welcome.server_id);
    shared.coordinator.welcomed(heard_us, welcome.lease_ms);
    shared.burst.set_promised_share(welcome.promised_share);
    shared
        .access
        .set_client_keys(Keys::from_jwks(&welcome.client_keys)?);
    revoke(shared, &welcome.revoked);
    shared.access.set_peer_keys(Keys::from_jwks(&welcome.peer_keys)?);
    shared.access.set_peer_token(welcome.peer_token.clone());
    Ok(())
}

/// The coordinator chooses what it was offered; an older one does not look.
fn check_versions(welcome: &Welcome) -> Result<(), Failure> {
    let (version, fleet) = (welcome.version, welcome.fleet_version);
    if !versions::CONTROL.has(version) || !versions::FLEET.has(fleet) {
        return Err(Failure::Refused(format!(
            "the coordinator speaks version {version} in a fleet of version {fleet}; this release speaks {} in {}: install \
             a release next to the coordinator's",
            versions::CONTROL,
            versions::FLEET
        )));
    }
    Ok(())
}

/// State that a conversation with the coordinator needs and changes.
struct Talk<'a> {
    shared: &'a Arc<Shared>,
    certificates: &'a mut Certificates,
    places: &'a mut PlaceKeeper,
    orders: &'a Orders,
    updates: &'a mut mpsc::UnboundedReceiver<ToCoordinator>,
    clock: &'a mut ClockWatch,
}

/// Heartbeats and their answers, and the next renewal of the certificate.
struct Pace {
    sent: u64,
    answered: u64,
    renew_at: Instant,
}

impl Talk<'_> {
    /// Talks until the connection breaks, or heartbeats have no answer; says why it did.
    async fn converse(
        &mut self,
        mut connection: Connection,
        welcome: &Welcome,
        coordinators: &KnownCoordinators,
    ) -> String {
        let mut beat = tokio::time::interval(Duration::from_millis(welcome.heartbeat_ms.max(10)));
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Coordinators that take changes know quarantine: both came in one release.
        self.shared.coordinator.connected(welcome.takes_changes);
        let mut pace = Pace {
            sent: 0,
            answered: 0,
            renew_at: Instant::now() + self.certificates.renew_in(),
        };
        let mut shared_reports = self.shared.burst.reports();
        let mut flow_reports = self.shared.guarantees.reports();
        let stream = begin_stream(self.shared);
        loop {
            tokio::select! {
                _ = beat.tick() => {
                    if pace.sent - pace.answered > coordinators.unanswered_max() {
                        return "it no longer answers".to_string();
                    }
                    pace.sent += 1;
                    self.clock.asked(pace.sent);
                    let message = ToCoordinator::Heartbeat(heartbeat(pace.sent, welcome.takes_changes, self.shared));
                    if let Err(trouble) = send(&mut connection, &message).await {
                        return trouble;
                    }
                }
                () = sleep_until(pace.renew_at) => {
                    pace.renew_at = Instant::now() + self.certificates.ask_again_in();
                    let request_pem = self.certificates.request_pem();
                    let message = ToCoordinator::RenewCertificate { request_pem };
                    if let Err(trouble) = send(&mut connection, &message).await {
                        return trouble;
                    }
                }
                Ok(()) = shared_reports.changed(), if welcome.takes_sharing => {
                    let report = shared_reports.borrow_and_update().clone();
                    if let Err(trouble) = send_report(&mut connection, report).await {
                        return trouble;
                    }
                }
                Ok(()) = flow_reports.changed(), if welcome.takes_flows => {
                    let report = flow_reports.borrow_and_update().clone();
                    // Decisions of the connection before are not this one's.
                    if report.stream == stream
                        && let Err(trouble) = send(&mut connection, &ToCoordinator::Flows(report)).await
                    {
                        return trouble;
                    }
                }
                Some(message) = self.updates.recv() => {
                    if let Err(trouble) = send(&mut connection, &message).await {
                        return trouble;
                    }
                }
                received = receive(&mut connection) => match self.take(received) {
                    Ok(Some(message)) => self.heed(message, &mut pace),
                    Ok(None) => {}
                    Err(trouble) => return trouble,
                },
            }
        }
    }

    fn heed(&mut self, message: ToServer, pace: &mut Pace) {
        match message {
            ToServer::HeartbeatAck { seq, repeat, unix_ms } => {
                pace.answered = pace.answered.max(seq);
                self.shared.coordinator.answered(now_us());
                self.shared.coordinator.reports_answered(seq, repeat, pace.sent);
                self.clock.answered(seq, unix_ms, self.shared);
            }
            ToServer::Certificate { certificate_pem } => {
                match self.certificates.take(certificate_pem, self.shared) {
                    Ok(()) => pace.renew_at = Instant::now() + self.certificates.renew_in(),
                    Err(trouble) => tracing::error!(trouble, "the new certificate cannot be used"),
                }
            }
            message => obey(self.shared, message),
        }
    }

    /// The message; none if it is an order about groups, which is obeyed in its turn. The end of a drain follows its drops.
    fn take(&mut self, received: Result<Placed, String>) -> Result<Option<ToServer>, String> {
        let Placed { place, message } = received?;
        let written = self.places.note(place, &message);
        if let Some((group_id, by)) = message.deposes(self.shared.server_id()) {
            host(self.shared, group_id, Hosting::Deposed { group_id, by });
        }
        let is_behind_orders = matches!(message, ToServer::Quarantined { .. } | ToServer::Drain { .. });
        if !message.waits_for_place() && !is_behind_orders {
            return Ok(Some(message));
        }
        self.orders.give(written, message);
        Ok(None)
    }
}

fn obey(shared: &Shared, message: ToServer) {
    match message {
        ToServer::Configure { config } => {
            let group_id = config.group_id;
            if !config.layout.is_none() {
                shared.guarantees.note_partition();
            }
            host(shared, group_id, Hosting::Configure(Box::new(config)));
        }
        ToServer::Drop { group_id, epoch } => host(shared, group_id, Hosting::Drop { group_id, epoch }),
        ToServer::Lost { group_id } => host(shared, group_id, Hosting::Lost(group_id)),
        ToServer::Quarantined { group_id, epoch } => {
            host(shared, group_id, Hosting::Quarantined { group_id, epoch });
        }
        ToServer::ClientKeys { keys } => match Keys::from_jwks(&keys) {
            Ok(keys) => shared.access.set_client_keys(keys),
            Err(trouble) => tracing::error!(trouble, "the new client keys cannot be used; the old ones stay"),
        },
        ToServer::Revoked { revocations } => revoke(shared, &revocations),
        ToServer::PromisedShare { share } => {
            tracing::info!(
                share,
                "another share of this server's capacity is promised from now on"
            );
            shared.burst.set_promised_share(Some(share));
        }
        ToServer::Drain { state } => match state {
            DrainState::None => tracing::info!("the drain of this server was called off"),
            DrainState::Draining => tracing::info!("this server drains: its replicas go elsewhere"),
            DrainState::Drained => tracing::info!("this server is drained: it holds nothing, and may stop"),
        },
        ToServer::Shares {
            round,
            interval,
            rates,
        } => {
            let told = BurstUpdate::Shares {
                round,
                interval,
                rates,
            };
            let _is_off_or_behind = !shared.burst.send(told);
        }
        ToServer::ProjectShares {
            stream,
            decision,
            reserved_milli,
            shares,
        } => {
            let told = ToldShares {
                stream,
                decision,
                reserved_milli,
                shares,
            };
            let _is_behind = !shared.guarantees.send(told);
        }
        ToServer::PeerToken { token } => shared.access.set_peer_token(token),
        ToServer::FleetVersion { version } => tracing::info!(version, "the fleet's version was raised"),
        ToServer::Welcome(_)
        | ToServer::Refuse { .. }
        | ToServer::NotLeader { .. }
        | ToServer::HeartbeatAck { .. }
        | ToServer::Certificate { .. } => {}
    }
}

/// Tokens of these credentials are refused from now on, and connections that showed one are closed.
fn revoke(shared: &Shared, revocations: &[Revocation]) {
    let is_new = |one: &Revocation| !shared.access.is_revoked(one.credential);
    let new: Vec<Revocation> = revocations.iter().copied().filter(is_new).collect();
    if new.is_empty() {
        return;
    }
    tracing::info!(credentials = new.len(), "credentials were revoked");
    shared.access.note_revocations(&new, wall_us() / 1_000_000);
    (shared.shards).broadcast(|| ShardMessage::Client(ClientMessage::Revoked));
}

/// Tells the task of guarantees that messages of earlier connections mean nothing any more.
fn begin_stream(shared: &Shared) -> u64 {
    let stream = rand::random::<u64>().max(1);
    shared.guarantees.begin_stream(stream);
    stream
}

fn host(shared: &Shared, group_id: GroupId, message: Hosting) {
    shared
        .shards
        .send_to_group(group_id, ShardMessage::Hosting(message));
}

fn heartbeat(seq: u64, takes_changes: bool, shared: &Shared) -> Heartbeat {
    let (groups, changes) = shared.coordinator.groups(takes_changes);
    Heartbeat {
        seq,
        groups,
        unreachable: shared.peers.unreachable(),
        storage_fault: shared.coordinator.storage_fault(),
        slow: shared.coordinator.slow(),
        changes,
        quarantined: shared.coordinator.quarantined(),
        hung_ms: shared.vitals.hung_ms(),
        estimated: shared.capacity.told(),
    }
}

async fn send(connection: &mut Connection, message: &ToCoordinator) -> Result<(), String> {
    let bytes = serde_json::to_vec(message).map_err(|e| e.to_string())?;
    connection
        .send(Bytes::from(bytes))
        .await
        .map_err(|e| e.to_string())
}

async fn send_report(connection: &mut Connection, report: Option<SharingReport>) -> Result<(), String> {
    for part in report.iter().flat_map(SharingReport::parts) {
        send(connection, &ToCoordinator::Sharing(part)).await?;
    }
    Ok(())
}

/// Cancel-safe: a frame half read stays in the connection's buffer.
async fn receive(connection: &mut Connection) -> Result<Placed, String> {
    match connection.next().await {
        Some(Ok(bytes)) => serde_json::from_slice(&bytes).map_err(|e| format!("malformed message: {e}")),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it closed the connection".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::control::ToServer;
    use quorate_types::cost::ResourceVector;
    use tokio::sync::mpsc::unbounded_channel;

    use super::obey;
    use crate::shared::{Plaintext, Settings, Shared};

    #[test]
    fn another_promised_share_is_lent_by_from_then_on() {
        let plaintext = Plaintext {
            is_accepted: false,
            is_dialed: false,
        };
        let settings = Settings::new(ResourceVector::new(1.0, 1.0, 1.0), 1, u64::MAX);
        let shared = Shared::new("i1".to_string(), plaintext, settings, unbounded_channel().0, None);
        shared.burst.set_promised_share(Some(0.7));
        let message = r#"{"type":"promised_share","share":0.5}"#;
        let message: ToServer = serde_json::from_str(message).unwrap();
        assert_eq!(message, ToServer::PromisedShare { share: 0.5 });
        obey(&shared, message);
        assert_eq!(shared.burst.promised_share(), 0.5);
    }
}
