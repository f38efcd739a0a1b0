//! What the threads of a server share. Everything else belongs to one shard.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use quorate_group_log::GroupLogs;
use quorate_telemetry::SpanSender;
use quorate_transport::tls::ServerTls;
use quorate_types::control::{GroupReport, SlowReport, ToCoordinator};
use quorate_types::cost::ResourceVector;
use quorate_types::limits::{self, CONNECTIONS_MAX};
use quorate_types::{GroupConfig, GroupId, Micros, Role, ServerId};
use tokio::sync::mpsc;

use crate::shard::ShardMessage;
use crate::shard::fair::Terms;
use crate::sharing::Lending;
use quorate_tokens::Keys;

/// One of the client connections that the server may have; given back when it is dropped.
pub struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an operator allows without TLS.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plaintext {
    /// Clients and peers may connect so.
    pub is_accepted: bool,
    /// This server dials its peers so.
    pub is_dialed: bool,
}

pub struct Shared {
    connections: Arc<AtomicUsize>,
    /// Random at each start, so that others can tell this process from the one before it.
    pub incarnation: String,
    server_id: AtomicU32,
    pub client_keys: RwLock<Keys>,
    pub peer_keys: RwLock<Keys>,
    pub peer_token: RwLock<String>,
    /// Set at the first registration, before any connection of the data plane.
    pub tls: OnceLock<ServerTls>,
    pub plaintext: Plaintext,
    /// Groups go without budgets, queues and accounting; only ever with `--measure-isolation`.
    is_unisolated: AtomicBool,
    peers: Mutex<HashMap<ServerId, Peer>>,
    shards: OnceLock<Vec<mpsc::UnboundedSender<ShardMessage>>>,
    /// Unbounded, but bounded by its use: a message for each epoch and learner, drained while connected.
    pub to_coordinator: mpsc::UnboundedSender<ToCoordinator>,
    /// Where spans go; `None` when nobody wants them.
    pub spans: Option<SpanSender>,
    /// Each group as its shard last saw it, for heartbeats.
    pub reports: Mutex<HashMap<GroupId, GroupReport>>,
    /// When the coordinator last answered, on the clock of [`crate::clock::now_us`], and how long a lease is; 0 before
    /// the first registration.
    coordinator_heard_us: AtomicU64,
    lease_us: AtomicU64,
    pub unreachable: Mutex<HashSet<ServerId>>,
    pub storage_fault: Mutex<Option<String>>,
    /// Owned by whoever started them, who ends them last.
    group_logs: OnceLock<Weak<GroupLogs>>,
    /// Bytes a second that learners of this server's groups may be sent. Set before the shards start.
    pub catchup_bytes_per_s: AtomicU64,
    /// What the server has of each resource. Set before the shards start.
    pub capacity: OnceLock<ResourceVector>,
    /// What groups here pay and are owed: read when a client attaches, written when a group is configured.
    pub terms: Mutex<HashMap<GroupId, Arc<Terms>>>,
    /// What groups may use of what others do not.
    pub lending: Lending,
    /// By shard: whom its groups wait for, for heartbeats.
    slow: Mutex<BTreeMap<usize, Vec<SlowReport>>>,
}

/// A server that some group here has to do with.
#[derive(Default)]
struct Peer {
    address: String,
    /// Where it last came from, having proved who it is: an address may be a name, and connections come from numbers.
    seen_at: Option<IpAddr>,
    wanted_by: HashSet<GroupId>,
    is_dialed: bool,
}

impl Shared {
    pub fn new(
        incarnation: String,
        plaintext: Plaintext,
        to_coordinator: mpsc::UnboundedSender<ToCoordinator>,
        spans: Option<SpanSender>,
    ) -> Self {
        Self {
            connections: Arc::default(),
            incarnation,
            server_id: AtomicU32::new(0),
            client_keys: RwLock::default(),
            peer_keys: RwLock::default(),
            peer_token: RwLock::default(),
            tls: OnceLock::new(),
            plaintext,
            is_unisolated: AtomicBool::new(false),
            peers: Mutex::default(),
            shards: OnceLock::new(),
            to_coordinator,
            spans,
            reports: Mutex::default(),
            coordinator_heard_us: AtomicU64::new(0),
            lease_us: AtomicU64::new(0),
            unreachable: Mutex::default(),
            storage_fault: Mutex::default(),
            group_logs: OnceLock::new(),
            catchup_bytes_per_s: AtomicU64::new(limits::CATCHUP_BYTES_PER_S_MIN),
            capacity: OnceLock::new(),
            terms: Mutex::default(),
            lending: Lending::default(),
            slow: Mutex::default(),
        }
    }

    pub fn set_group_logs(&self, logs: &Arc<GroupLogs>) {
        let set = self.group_logs.set(Arc::downgrade(logs));
        assert!(set.is_ok(), "group logs are set once");
    }

    /// `None` while the server starts or stops.
    pub fn group_logs(&self) -> Option<Arc<GroupLogs>> {
        self.group_logs.get().and_then(Weak::upgrade)
    }

    /// A place for one more client's connection, unless there are as many as there may be.
    pub fn connection_slot(&self) -> Option<Slot> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(self.connections.clone());
        (before < CONNECTIONS_MAX).then_some(slot)
    }

    pub fn tls(&self) -> &ServerTls {
        self.tls
            .get()
            .expect("a server has registered before it has connections")
    }

    pub fn is_unisolated(&self) -> bool {
        self.is_unisolated.load(Ordering::Relaxed)
    }

    /// Turns isolation off, or on again; whether it is off now.
    pub fn toggle_isolation(&self) -> bool {
        !self.is_unisolated.fetch_xor(true, Ordering::Relaxed)
    }

    pub fn server_id(&self) -> ServerId {
        ServerId(self.server_id.load(Ordering::Acquire))
    }

    pub fn set_server_id(&self, id: ServerId) {
        self.server_id.store(id.0, Ordering::Release);
    }

    pub fn set_shards(&self, shards: Vec<mpsc::UnboundedSender<ShardMessage>>) {
        assert!(self.shards.set(shards).is_ok(), "shards are set once");
    }

    pub fn shard_count(&self) -> usize {
        self.shards.get().map_or(1, Vec::len)
    }

    /// The shard that owns a group.
    pub fn shard_of_group(&self, group_id: GroupId) -> usize {
        let bytes = group_id.0.as_bytes();
        let tail = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        (tail.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % self.shard_count()
    }

    /// The shard that owns the link to a peer.
    pub fn shard_of_peer(&self, server: ServerId) -> usize {
        server.0 as usize % self.shard_count()
    }

    /// Messages to a shard that has stopped are lost with it: the process is ending.
    pub fn send(&self, shard: usize, message: ShardMessage) {
        if let Some(sender) = self.shards.get().and_then(|shards| shards.get(shard)) {
            let _stopped = sender.send(message).is_err();
        }
    }

    pub fn broadcast(&self, message: impl Fn() -> ShardMessage) {
        for shard in 0..self.shard_count() {
            self.send(shard, message());
        }
    }

    pub fn note_slow(&self, shard: usize, reports: Vec<SlowReport>) {
        self.slow.lock().expect("slow").insert(shard, reports);
    }

    /// The worst that any shard saw of each server.
    pub fn slow(&self) -> Vec<SlowReport> {
        let mut worst: BTreeMap<ServerId, SlowReport> = BTreeMap::new();
        for report in self.slow.lock().expect("slow").values().flatten() {
            let known = worst.entry(report.server).or_insert_with(|| report.clone());
            if report.behind_ms > known.behind_ms {
                *known = report.clone();
            }
        }
        worst.into_values().collect()
    }

    pub fn coordinator_welcomed(&self, now: Micros, lease_ms: u64) {
        self.lease_us.store(lease_ms * 1_000, Ordering::Relaxed);
        self.coordinator_answered(now);
    }

    pub fn coordinator_answered(&self, now: Micros) {
        self.coordinator_heard_us.store(now, Ordering::Relaxed);
    }

    /// For a lease nothing came back, so it may have given this server up.
    pub fn is_coordinator_silent(&self, now: Micros) -> bool {
        let heard_us = self.coordinator_heard_us.load(Ordering::Relaxed);
        now.saturating_sub(heard_us) >= self.lease_us.load(Ordering::Relaxed)
    }

    pub fn tell_coordinator(&self, message: ToCoordinator) {
        let _stopped = self.to_coordinator.send(message).is_err();
    }

    /// Takes the peers of a configuration in, and has links opened to those that this server dials.
    pub fn note_peers(&self, config: &GroupConfig) {
        self.forget_peers_of(config.group_id);
        let me = self.server_id();
        if config.role_of(me) == Role::None {
            return;
        }
        let mut peers = self.peers.lock().expect("peers");
        for member in config.line().filter(|m| m.server_id != me) {
            let peer = peers.entry(member.server_id).or_default();
            peer.address.clone_from(&member.address);
            peer.wanted_by.insert(config.group_id);
            if me < member.server_id && !peer.is_dialed {
                peer.is_dialed = true;
                self.send(
                    self.shard_of_peer(member.server_id),
                    ShardMessage::Dial(member.server_id),
                );
            }
        }
    }

    pub fn note_peers_host(&self, server: ServerId, host: IpAddr) {
        let mut peers = self.peers.lock().expect("peers");
        peers.entry(server).or_default().seen_at = Some(host);
    }

    /// Whether a server lives there that groups here have, or had, to do with.
    pub fn is_peers_host(&self, host: IpAddr) -> bool {
        let advertised = |peer: &Peer| peer.address.parse().map(|at: SocketAddr| at.ip().to_canonical());
        let peers = self.peers.lock().expect("peers");
        let mut peers = peers.values();
        peers.any(|peer| peer.seen_at == Some(host) || advertised(peer) == Ok(host))
    }

    /// Peers that groups here need and that cannot be reached; others have the right to be gone.
    pub fn missed_peers(&self) -> Vec<ServerId> {
        let peers = self.peers.lock().expect("peers");
        let wanted = |id: &&ServerId| peers.get(*id).is_some_and(|peer| !peer.wanted_by.is_empty());
        let unreachable = self.unreachable.lock().expect("unreachable");
        unreachable.iter().filter(wanted).copied().collect()
    }

    pub fn forget_peers_of(&self, group_id: GroupId) {
        for peer in self.peers.lock().expect("peers").values_mut() {
            peer.wanted_by.remove(&group_id);
        }
    }

    /// Where to dial a peer, while any group needs it; `None` ends its dialer.
    pub fn next_dial(&self, server: ServerId) -> Option<String> {
        let mut peers = self.peers.lock().expect("peers");
        let peer = peers.get_mut(&server)?;
        if peer.wanted_by.is_empty() {
            peer.is_dialed = false;
            self.unreachable.lock().expect("unreachable").remove(&server);
            return None;
        }
        Some(peer.address.clone())
    }
}
