//! The engine: inputs in, commands for the log and what follows from them out. No sockets, no sleeping.

use std::net::{IpAddr, Ipv4Addr};

use quorate_coordinator_core::command::{Command, JoinTokenTerms, Proof, Reply};
use quorate_coordinator_core::engine::{Candidate, Engine, Input, Note, Now, Outgoing, Output, Settings};
use quorate_coordinator_core::planner::LeaseTimes;
use quorate_coordinator_core::planner::SuspicionTimes;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_types::control::{Heartbeat, RefuseCode, Register, ToCoordinator, ToServer};
use quorate_types::cost::ResourceVector;
use quorate_types::{Room, ServerId};
use serde_json::json;

const A: ServerId = ServerId(1);
const B: ServerId = ServerId(2);
const LEASE_MS: u64 = 1_000;

struct Rig {
    engine: Engine,
    now: Now,
}

impl Rig {
    /// A and B, on connections 1 and 2.
    fn new() -> Self {
        let settings = Settings {
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
            },
            client_keys: json!({"keys": ["of clients"]}),
            peer_keys: json!({"keys": ["of peers"]}),
        };
        let mut rig = Self {
            engine: Engine::new(CoordinatorState::new(Profile::default_profile()), settings, 0),
            now: Now {
                ms: 0,
                unix_ms: 1_700_000_000_000,
            },
        };
        for n in [1, 2] {
            rig.issue_token(&format!("token-{n}"));
            rig.take(Input::Register(candidate(n, &joining(n))));
        }
        rig
    }

    fn take(&mut self, input: Input) -> Output {
        self.engine.take(self.now, input);
        self.engine.state().validate().expect("a sound state");
        self.engine.take_output()
    }

    fn issue_token(&mut self, digest: &str) {
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

    fn heartbeat(&mut self, connection: u64, unreachable: &[ServerId]) -> Output {
        let message = ToCoordinator::Heartbeat(Heartbeat {
            seq: 5,
            groups: Vec::new(),
            unreachable: unreachable.to_vec(),
            storage_fault: None,
            slow: Vec::new(),
        });
        self.take(Input::Message { connection, message })
    }
}

fn joining(n: u64) -> Proof {
    Proof::JoinToken {
        digest: format!("token-{n}"),
        credential_digest: format!("digest-{n}"),
    }
}

fn candidate(connection: u64, proof: &Proof) -> Candidate {
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
        certificate_request_pem: Some("a request".into()),
    };
    Candidate {
        connection,
        from: IpAddr::V4(Ipv4Addr::LOCALHOST),
        register,
        proof: Some(proof.clone()),
        credential: format!("credential-{connection}"),
        certificates: Ok(()),
    }
}

fn ack() -> ToServer {
    ToServer::HeartbeatAck { seq: 5 }
}

#[test]
fn a_server_that_joins_gets_its_credential_and_orders_a_certificate() {
    let mut rig = Rig::new();
    rig.issue_token("token-3");
    let batch = rig.take(Input::Register(candidate(3, &joining(3))));
    assert_eq!(batch.commands.len(), 1);
    let Some(Outgoing::Welcome {
        connection,
        welcome,
        certificate,
    }) = batch.outgoing.first()
    else {
        panic!("no welcome first: {:?}", batch.outgoing);
    };
    let order = certificate.as_ref().expect("it asked for one");
    assert_eq!((*connection, welcome.server_id), (3, ServerId(3)));
    assert_eq!(welcome.credential.as_deref(), Some("credential-3"));
    assert_eq!(
        (order.server, order.address.as_str()),
        (ServerId(3), "127.0.0.1:7003")
    );
    assert_eq!(order.request_pem, "a request");
}

#[test]
fn a_known_server_keeps_its_credential_and_its_older_connection_is_closed() {
    let mut rig = Rig::new();
    let mut again = candidate(9, &Proof::Credential("digest-1".into()));
    again.register.name = "s1".into();
    let batch = rig.take(Input::Register(again));
    assert_eq!(batch.outgoing.first(), Some(&Outgoing::Close(1)));
    let Some(Outgoing::Welcome { welcome, .. }) = batch.outgoing.get(1) else {
        panic!("no welcome: {:?}", batch.outgoing);
    };
    assert_eq!((welcome.server_id, &welcome.credential), (A, &None));
    assert_eq!(
        rig.heartbeat(1, &[]).outgoing,
        [],
        "the old connection counts no more"
    );
    assert_eq!(rig.heartbeat(9, &[]).outgoing, [Outgoing::Message(9, ack())]);
    // The end of the replaced connection means nothing for the server.
    assert_eq!(rig.take(Input::Closed { connection: 1 }).notes, []);
}

#[test]
fn nothing_unauthenticated_is_logged_and_guesses_soon_get_no_answer() {
    let mut rig = Rig::new();
    let mut answered = 0;
    for n in 0..100 {
        let unknown = candidate(100 + n, &Proof::Credential("guessed".into()));
        let batch = rig.take(Input::Register(unknown));
        assert_eq!(batch.commands, []);
        assert_eq!(batch.outgoing.last(), Some(&Outgoing::Close(100 + n)));
        assert_eq!(
            batch.notes.len(),
            batch.outgoing.len() - 1,
            "what is not answered is not noted"
        );
        answered += batch.notes.len();
    }
    assert_eq!(answered, 20);
}

#[test]
fn an_ambiguous_proof_or_another_servers_certificate_is_refused() {
    let mut rig = Rig::new();
    rig.issue_token("token-3");
    let mut ambiguous = candidate(3, &joining(3));
    ambiguous.proof = None;
    let mut borrowed = candidate(3, &joining(3));
    borrowed.certificates = Err("not its own".into());
    for wrong in [ambiguous, borrowed] {
        let batch = rig.take(Input::Register(wrong));
        assert_eq!(batch.commands, []);
        let [
            Outgoing::Message(3, ToServer::Refuse { code, .. }),
            Outgoing::Close(3),
        ] = &batch.outgoing[..]
        else {
            panic!("not refused: {:?}", batch.outgoing);
        };
        assert_eq!(*code, RefuseCode::RegisterInvalid);
    }
    // The token was not used up.
    assert_eq!(
        rig.take(Input::Register(candidate(3, &joining(3))))
            .commands
            .len(),
        1
    );
}

#[test]
fn a_heartbeat_reaches_the_log_only_when_it_says_something_new() {
    let mut rig = Rig::new();
    assert_eq!(rig.heartbeat(1, &[]).commands, []);
    let first = rig.heartbeat(1, &[B]);
    let noted = Command::PeerUnreachable { server: A, peer: B };
    assert_eq!(first.commands.len(), 1);
    assert_eq!(first.commands[0].command, noted);
    assert_eq!(rig.heartbeat(1, &[B]).commands, [], "it is known already");
    assert_eq!(rig.heartbeat(1, &[]).commands, []);
    assert_eq!(rig.heartbeat(1, &[B]).commands.len(), 1, "it came back");
}

#[test]
fn silence_for_a_lease_is_logged_and_the_connection_closed() {
    let mut rig = Rig::new();
    let mut failed = Vec::new();
    for _ in 0..=LEASE_MS / 50 {
        rig.now.ms += 50;
        rig.heartbeat(1, &[]);
        let batch = rig.take(Input::Tick);
        if !batch.commands.is_empty() {
            failed.push((rig.now.ms, batch));
        }
    }
    let [(at, batch)] = &failed[..] else {
        panic!("not once: {failed:?}");
    };
    assert_eq!(*at, LEASE_MS);
    assert_eq!(
        batch.commands[0].command,
        Command::ServersFailed { servers: vec![B] }
    );
    assert_eq!(batch.notes, [Note::Failed(B)]);
    assert_eq!(batch.outgoing, [Outgoing::Close(2)]);
    assert_eq!(rig.heartbeat(2, &[]).outgoing, [], "it must register again");
}

#[test]
fn a_broken_connection_has_its_grace_and_then_the_server_has_failed() {
    let mut rig = Rig::new();
    rig.take(Input::Closed { connection: 2 });
    rig.now.ms = 299;
    assert_eq!(rig.take(Input::Tick).commands, [], "within the grace");
    rig.now.ms = 300;
    assert_eq!(rig.take(Input::Tick).notes, [Note::Failed(B)]);
}

#[test]
fn new_keys_and_tokens_go_to_connected_servers() {
    let mut rig = Rig::new();
    rig.take(Input::Closed { connection: 2 });
    let keys = json!({"keys": ["new"]});
    let batch = rig.take(Input::ClientKeys(keys.clone()));
    let sent = ToServer::ClientKeys { keys: keys.clone() };
    assert_eq!(batch.outgoing, [Outgoing::Message(1, sent)]);
    let fresh = Outgoing::PeerToken {
        connection: 1,
        server: A,
    };
    assert_eq!(rig.take(Input::RenewPeerTokens).outgoing, [fresh]);
    rig.issue_token("token-3");
    let batch = rig.take(Input::Register(candidate(3, &joining(3))));
    let Some(Outgoing::Welcome { welcome, .. }) = batch.outgoing.first() else {
        panic!("no welcome: {:?}", batch.outgoing);
    };
    assert_eq!(welcome.client_keys, keys, "later servers get it, too");
}

#[test]
fn outgoing_messages_wait_in_the_output_with_its_commands() {
    let mut rig = Rig::new();
    rig.issue_token("token-3");
    rig.engine
        .take(rig.now, Input::Register(candidate(3, &joining(3))));
    let register = ToCoordinator::Register(Box::new(candidate(3, &joining(3)).register));
    let (connection, message) = (1, register);
    rig.engine.take(rig.now, Input::Message { connection, message });
    let batch = rig.engine.take_output();
    assert_eq!(batch.commands.len(), 1);
    assert!(matches!(
        batch.outgoing[0],
        Outgoing::Welcome { connection: 3, .. }
    ));
    assert_eq!(
        batch.outgoing.last(),
        Some(&Outgoing::Close(1)),
        "it may register once"
    );
    let empty = rig.engine.take_output();
    assert!(empty.commands.is_empty() && empty.outgoing.is_empty() && empty.notes.is_empty());
}
