//! An engine with servers on connections, and its log.

use std::net::{IpAddr, Ipv4Addr};

use quorate_coordinator_core::command::{Command, JoinTokenTerms, Proof, Reply, Timed};
use quorate_coordinator_core::engine::{Candidate, Engine, Input, Now, Outgoing, Output, Settings};
use quorate_coordinator_core::log::Replay;
use quorate_coordinator_core::planner::{LeaseTimes, SuspicionTimes};
use quorate_coordinator_core::state::{CoordinatorState, applied};
use quorate_placement::Profile;
use quorate_types::control::{GroupReport, Heartbeat, Register, ToCoordinator};
use quorate_types::cost::ResourceVector;
use quorate_types::{Place, Room, RunId, ServerId, versions};
use serde_json::json;

pub const A: ServerId = ServerId(1);
pub const B: ServerId = ServerId(2);
pub const LEASE_MS: u64 = 1_000;

/// Engine and log of one coordinator.
pub struct Rig {
    pub engine: Engine,
    pub now: Now,
    /// Every command, as it was logged.
    pub log: Vec<Timed>,
    /// The end of the log, as the last output named it.
    pub place: Option<Place>,
}

impl Rig {
    /// A and B, on connections 1 and 2.
    pub fn new() -> Self {
        Self::start(Vec::new(), 1).with_two_servers()
    }

    /// The same, in a fleet that began with this release.
    pub fn of_newest_version() -> Self {
        let state = CoordinatorState::of_new_fleet(Profile::default_profile());
        Self::start_on(state, Vec::new(), 1, Vec::new()).with_two_servers()
    }

    fn with_two_servers(mut self) -> Self {
        for n in [1, 2] {
            self.issue_token(&format!("token-{n}"));
            self.take(Input::Register(candidate(n, &joining(n))));
        }
        self
    }

    /// Starts on a log, as the process does.
    pub fn start(log: Vec<Timed>, run: u64) -> Self {
        Self::start_with(log, run, Vec::new())
    }

    /// With commands of this start.
    pub fn start_with(log: Vec<Timed>, run: u64, first: Vec<Command>) -> Self {
        let mut state = CoordinatorState::new(Profile::default_profile());
        Replay::default().apply(&mut state, &log).expect("as it was");
        Self::start_on(state, log, run, first)
    }

    /// Starts on the state that followed from the log.
    pub fn start_on(mut state: CoordinatorState, mut log: Vec<Timed>, run: u64, first: Vec<Command>) -> Self {
        let command = Command::BeginRun {
            run: RunId(run),
            release: "0.1.0".into(),
        };
        let (_, issued) = applied(&mut state, 0, &command);
        log.push(Timed {
            at_ms: 0,
            command,
            issued: Some(issued),
        });
        let now = Now {
            ms: 0,
            unix_ms: 1_700_000_000_000,
        };
        Self {
            engine: Engine::new(state, settings(), first, now),
            now,
            log,
            place: None,
        }
    }

    pub fn take(&mut self, input: Input) -> Output {
        self.engine.take(self.now, input);
        self.engine.state().validate().expect("a sound state");
        self.take_output()
    }

    pub fn take_output(&mut self) -> Output {
        let output = self.engine.take_output();
        self.log.extend(output.commands.iter().cloned());
        self.place = output.place;
        output
    }

    pub fn issue_token(&mut self, digest: &str) {
        let token = JoinTokenTerms {
            expires_at_ms: self.now.unix_ms + 60_000,
            name: None,
            auxiliary: false,
        };
        let command = Command::IssueJoinToken {
            digest: digest.into(),
            token,
        };
        let batch = self.take(Input::Command { call: 7, command });
        let reply = Reply::TokenIssued;
        assert_eq!(batch.outgoing, [Outgoing::Answer { call: 7, reply }]);
        assert_eq!(batch.commands.len(), 1, "it is logged before it is answered");
    }

    pub fn heartbeat(&mut self, connection: u64, unreachable: &[ServerId]) -> Output {
        self.heartbeat_with(connection, Vec::new(), unreachable)
    }

    pub fn heartbeat_of(&mut self, connection: u64, unreachable: &[ServerId], hung_ms: u64) -> Output {
        self.heartbeat_in_full(connection, Vec::new(), unreachable, hung_ms)
    }

    pub fn heartbeat_with(
        &mut self,
        connection: u64,
        groups: Vec<GroupReport>,
        unreachable: &[ServerId],
    ) -> Output {
        self.heartbeat_in_full(connection, groups, unreachable, 0)
    }

    fn heartbeat_in_full(
        &mut self,
        connection: u64,
        groups: Vec<GroupReport>,
        unreachable: &[ServerId],
        hung_ms: u64,
    ) -> Output {
        let heartbeat = Heartbeat {
            groups,
            unreachable: unreachable.to_vec(),
            hung_ms,
            ..quiet_heartbeat()
        };
        let message = ToCoordinator::Heartbeat(heartbeat);
        self.take(Input::Message { connection, message })
    }
}

/// The heartbeat of a server that has nothing to tell.
pub fn quiet_heartbeat() -> Heartbeat {
    Heartbeat {
        seq: 5,
        groups: Vec::new(),
        unreachable: Vec::new(),
        storage_fault: None,
        slow: Vec::new(),
        hung_ms: 0,
        estimated: None,
        changes: None,
        quarantined: Vec::new(),
    }
}

pub fn joining(n: u64) -> Proof {
    Proof::JoinToken {
        digest: format!("token-{n}"),
        credential_digest: format!("digest-{n}"),
    }
}

pub fn candidate(connection: u64, proof: &Proof) -> Candidate {
    let register = Register {
        join_token: None,
        credential: None,
        name: format!("s{connection}"),
        address: format!("127.0.0.1:{}", 7_000 + connection),
        incarnation: "i1".into(),
        previous_incarnations: Vec::new(),
        capacity: ResourceVector::new(2.0, 1.25e9, 20_000.0),
        room: Room::default(),
        failure_domain: None,
        region: "local".into(),
        held: Vec::new(),
        version: "0.1.0".into(),
        machine: None,
        hung_ms: 0,
        certificate_request_pem: Some("a request".into()),
        place: None,
        versions: versions::CONTROL,
        fleet_versions: versions::FLEET,
        links: None,
    };
    Candidate {
        connection,
        from: IpAddr::V4(Ipv4Addr::LOCALHOST),
        register,
        proof: Some(proof.clone()),
        credential: format!("credential-{connection}"),
        certificates: Ok(()),
        is_certified: false,
    }
}

pub fn settings() -> Settings {
    Settings {
        heartbeat_ms: 250,
        leases: LeaseTimes {
            lease_ms: LEASE_MS,
            reconnect_grace_ms: 300,
        },
        suspicions: SuspicionTimes {
            unreachable_ms: 3_000,
            slow_ms: 5_000,
            well_ms: 60_000,
            stale_ms: 750,
            hung_ms: 2_000,
        },
        client_keys: json!({"keys": ["of clients"]}),
    }
}
