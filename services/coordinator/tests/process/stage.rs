//! The real binary, real HTTP, and servers that are played over TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_certificates::control::{Trust, client_config, coordinator_name};
use quorate_types::control::{
    Heartbeat, HeldGroup, Placed, Register, SharedRate, ToCoordinator, ToServer, Welcome,
};
use quorate_types::cost::ResourceVector;
use quorate_types::{ConfigDigest, GroupConfig, GroupId, Place, Room, ServerId, versions};
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};

pub const ADMIN_TOKEN: &str = "an-admin-token-for-tests";
const PATIENCE: Duration = Duration::from_secs(20);

/// A coordinator in a folder of its own; killed when dropped.
pub struct Coordinator {
    pub data_dir: PathBuf,
    child: Child,
    pub control: String,
    pub http: String,
    /// For other coordinators; empty if it stays alone.
    pub members: String,
}

/// Writes the files that every start needs. The arguments that name them.
pub fn arguments(folder: &Path) -> Vec<String> {
    let (token, keys) = (folder.join("admin-token"), folder.join("keys.json"));
    std::fs::write(&token, ADMIN_TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    std::fs::write(&keys, json!({"keys": [key]}).to_string()).unwrap();
    let path = |path: PathBuf| path.display().to_string();
    let pairs = [
        ("--data-dir", path(folder.join("data"))),
        ("--admin-token-file", path(token)),
        ("--token-public-keys", path(keys)),
        ("--listen-control", "127.0.0.1:0".into()),
        ("--listen-http", "127.0.0.1:0".into()),
        ("--lease-ms", "600".into()),
        ("--heartbeat-ms", "100".into()),
    ];
    pairs
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_string(), value])
        .collect()
}

pub fn command(arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-coordinator"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs to its end: exit code and standard error.
pub fn run_to_end(arguments: &[String]) -> (i32, String) {
    let output = command(arguments).output().unwrap();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

impl Coordinator {
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    pub fn start_with(folder: &Path, more: &[&str]) -> Self {
        let mut coordinator = Self::launch_with(folder, more);
        coordinator.wait_for_addresses();
        coordinator
    }

    /// Starts it, and does not wait for it.
    pub fn launch_with(folder: &Path, more: &[&str]) -> Self {
        let data_dir = folder.join("data");
        let _ = std::fs::remove_file(data_dir.join("addresses.json"));
        let child = command(&arguments(folder))
            .args(more)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            data_dir,
            child,
            control: String::new(),
            http: String::new(),
            members: String::new(),
        }
    }

    pub fn wait_for_addresses(&mut self) {
        let addresses: Value = eventually("addresses.json", || {
            serde_json::from_str(&std::fs::read_to_string(self.data_dir.join("addresses.json")).ok()?).ok()
        });
        self.control = addresses["control"].as_str().unwrap().into();
        self.http = addresses["http"].as_str().unwrap().into();
        self.members = addresses["members"].as_str().unwrap_or_default().into();
    }

    /// As `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its exit code, once it ends by itself.
    pub fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    pub fn terminate(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// The authority, as its file has it once the fleet has one.
    pub fn trust(&self) -> Trust {
        let file = self.data_dir.join("ca.pem");
        Trust::Authority(eventually("ca.pem", || std::fs::read_to_string(&file).ok()))
    }

    /// A control connection; the handshake runs with the first byte that is written or read.
    pub fn dial(
        &self,
        trust: &Trust,
        certificate: Option<(&str, &str)>,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let config = client_config(trust, certificate).unwrap();
        let connection = ClientConnection::new(Arc::new(config), coordinator_name()).unwrap();
        StreamOwned::new(connection, TcpStream::connect(&self.control).unwrap())
    }

    /// Status and JSON body (null when there is none).
    pub fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.call_raw(method, path, &body, &format!("Bearer {ADMIN_TOKEN}"))
    }

    pub fn call_raw(&self, method: &str, path: &str, body: &str, authorization: &str) -> (u16, Value) {
        let stream = TcpStream::connect(&self.http).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        ask(stream, method, path, body, authorization)
    }

    /// Over TLS, trusting the fleet's authority.
    pub fn call_tls(&self, method: &str, path: &str) -> (u16, Value) {
        let config = client_config(&self.trust(), None).unwrap();
        let connection = ClientConnection::new(Arc::new(config), coordinator_name()).unwrap();
        let stream = TcpStream::connect(&self.http).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let authorization = format!("Bearer {ADMIN_TOKEN}");
        ask(
            StreamOwned::new(connection, stream),
            method,
            path,
            "",
            &authorization,
        )
    }

    /// As an operator does whose servers will not come back.
    pub fn end_roll_call(&self) {
        assert_eq!(self.call("DELETE", "/v1/roll-call", None).0, 204);
    }

    pub fn join_token(&self) -> String {
        let (status, body) = self.call("POST", "/v1/join-tokens", Some(json!({"ttl_s": 60})));
        assert_eq!(status, 201, "{body}");
        body["token"].as_str().unwrap().into()
    }

    pub fn group(&self, id: GroupId) -> Value {
        self.call("GET", &format!("/v1/groups/{id}"), None).1
    }
}

fn ask(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    body: &str,
    authorization: &str,
) -> (u16, Value) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: coordinator\r\nconnection: close\r\nauthorization: {authorization}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server played by the test.
pub struct Server {
    stream: StreamOwned<ClientConnection, TcpStream>,
    pub register: Register,
    pub welcome: Option<Welcome>,
    pub configs: Vec<GroupConfig>,
    pub dropped: Vec<GroupId>,
    /// Rates of all rounds that it was told.
    pub rates: Vec<SharedRate>,
    /// The last one that it was told.
    pub place: Option<Place>,
    sequence: u64,
}

pub fn register(name: &str) -> Register {
    // Each server has its own address.
    let number = name
        .bytes()
        .fold(0u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Register {
        join_token: None,
        credential: None,
        name: name.into(),
        address: format!("127.0.0.1:{}", 7_000 + number % 900),
        incarnation: format!("{name}-1"),
        capacity: ResourceVector::new(2.0, 1.25e9, 20_000.0),
        room: Room::default(),
        failure_domain: None,
        region: "local".into(),
        held: Vec::<HeldGroup>::new(),
        previous_incarnations: Vec::new(),
        version: "0.1.0".into(),
        machine: None,
        hung_ms: 0,
        certificate_request_pem: None,
        place: None,
        versions: versions::CONTROL,
        fleet_versions: versions::FLEET,
        links: None,
    }
}

impl Server {
    /// Sends `register`; the answer is read by `answer`.
    pub fn connect(coordinator: &Coordinator, register: Register) -> Self {
        Self::connect_showing(coordinator, register, None)
    }

    /// The same with a certificate and its key, in PEM, which the server shows.
    pub fn connect_showing(
        coordinator: &Coordinator,
        register: Register,
        certificate: Option<(&str, &str)>,
    ) -> Self {
        let mut server = Self {
            stream: coordinator.dial(&coordinator.trust(), certificate),
            register: register.clone(),
            welcome: None,
            configs: vec![],
            dropped: vec![],
            rates: vec![],
            place: None,
            sequence: 0,
        };
        server.send(&ToCoordinator::Register(Box::new(register)));
        server
    }

    /// Joins with a fresh token.
    pub fn join(coordinator: &Coordinator, name: &str) -> Self {
        let register = Register {
            join_token: Some(coordinator.join_token()),
            ..register(name)
        };
        Self::connect(coordinator, register).welcomed()
    }

    pub fn welcomed(mut self) -> Self {
        match self.receive(PATIENCE) {
            Some(ToServer::Welcome(welcome)) => self.welcome = Some(welcome),
            other => panic!("no welcome: {other:?}"),
        }
        self
    }

    /// Connects again with its credential, as the same process or a new one.
    pub fn return_to(
        mut self,
        coordinator: &Coordinator,
        incarnation: Option<&str>,
        held: Vec<HeldGroup>,
    ) -> Self {
        let mut register = self.credentials();
        register.held = held;
        if let Some(incarnation) = incarnation {
            register.incarnation = incarnation.into();
        }
        let server = Self::connect(coordinator, register);
        server.welcomed_back(self.welcome.take())
    }

    /// All connect again, each in its old process: a coordinator that was restarted answers none before it has heard them.
    pub fn all_return_to(coordinator: &Coordinator, servers: Vec<Self>) -> Vec<Self> {
        let connect = |mut server: Self| {
            (
                Self::connect(coordinator, server.credentials()),
                server.welcome.take(),
            )
        };
        let connected: Vec<(Self, Option<Welcome>)> = servers.into_iter().map(connect).collect();
        let welcomed = |(server, before): (Self, Option<Welcome>)| server.welcomed_back(before);
        connected.into_iter().map(welcomed).collect()
    }

    fn welcomed_back(self, before: Option<Welcome>) -> Self {
        let mut server = self.welcomed();
        let welcome = server.welcome.as_mut().unwrap();
        assert_eq!(welcome.credential, None, "only the first welcome carries it");
        welcome.credential = before.and_then(|welcome| welcome.credential);
        server
    }

    pub fn credentials(&self) -> Register {
        let credential = self
            .welcome
            .as_ref()
            .and_then(|welcome| welcome.credential.clone());
        Register {
            join_token: None,
            credential,
            ..self.register.clone()
        }
    }

    pub fn id(&self) -> ServerId {
        self.welcome.as_ref().unwrap().server_id
    }

    pub fn send(&mut self, message: &ToCoordinator) {
        self.send_bytes(&serde_json::to_vec(message).unwrap());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(&(bytes.len() as u32).to_be_bytes());
        let _ = self.stream.write_all(bytes);
    }

    /// The next message, or `None` when none comes in time or the connection ends.
    pub fn receive(&mut self, within: Duration) -> Option<ToServer> {
        let socket = &self.stream.sock;
        socket
            .set_read_timeout(Some(within.max(Duration::from_millis(1))))
            .unwrap();
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        self.stream.sock.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut bytes).ok()?;
        let placed: Placed = serde_json::from_slice(&bytes).unwrap();
        self.place = placed.place.or(self.place);
        Some(placed.message)
    }

    /// One heartbeat, and a good server's reaction to its messages: it applies configurations and drops.
    pub fn live(&mut self) {
        self.sequence += 1;
        let groups = vec![];
        self.send(&ToCoordinator::Heartbeat(Heartbeat {
            seq: self.sequence,
            groups,
            unreachable: vec![],
            storage_fault: None,
            slow: Vec::new(),
            changes: None,
            quarantined: Vec::new(),
            hung_ms: 0,
            estimated: None,
        }));
        while let Some(message) = self.receive(Duration::from_millis(5)) {
            match message {
                ToServer::Configure { config } => {
                    let (group_id, epoch) = (config.group_id, config.epoch);
                    let digest = Some(ConfigDigest::of(&config));
                    self.configs.push(config);
                    self.send(&ToCoordinator::Applied {
                        group_id,
                        epoch,
                        digest,
                    });
                }
                ToServer::Drop { group_id, epoch } => {
                    self.dropped.push(group_id);
                    let epoch = Some(epoch);
                    self.send(&ToCoordinator::Dropped { group_id, epoch });
                }
                ToServer::HeartbeatAck { seq, .. } => assert!(seq <= self.sequence),
                ToServer::PeerToken { .. } => {}
                ToServer::Shares { rates, .. } => self.rates.extend(rates),
                other => panic!("unexpected {other:?}"),
            }
        }
    }
}

/// All of them send heartbeats until the condition gives something.
pub fn live_until<T>(
    servers: &mut [Server],
    what: &str,
    mut seen: impl FnMut(&mut [Server]) -> Option<T>,
) -> T {
    let started = Instant::now();
    loop {
        servers.iter_mut().for_each(Server::live);
        if let Some(value) = seen(servers) {
            return value;
        }
        assert!(started.elapsed() < PATIENCE, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn eventually<T>(what: &str, seen: impl Fn() -> Option<T>) -> T {
    live_until(&mut [], what, |_| seen())
}
