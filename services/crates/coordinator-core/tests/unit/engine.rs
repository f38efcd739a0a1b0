//! The engine: inputs in, commands for the log and what follows from them out. No sockets, no sleeping.

use quorate_coordinator_core::command::{Command, Proof};
use quorate_coordinator_core::engine::{Input, Note, Outgoing};
use quorate_types::control::{RefuseCode, ToCoordinator, ToServer};
use quorate_types::{CredentialId, Revocation, ServerId};
use serde_json::json;

use crate::rig::{A, B, LEASE_MS, Rig, candidate, joining};

/// With the coordinator's time.
fn ack() -> ToServer {
    ToServer::HeartbeatAck {
        seq: 5,
        repeat: false,
        unix_ms: Some(1_700_000_000_000),
    }
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
fn revocations_go_to_connected_servers_and_to_those_that_come_later() {
    let mut rig = Rig::of_newest_version();
    let revoked = Revocation {
        credential: CredentialId(uuid::Uuid::from_u128(5)),
        until_s: rig.now.unix_ms / 1_000 + 60,
    };
    let revocations = vec![revoked];
    let batch = rig.take(Input::Command {
        call: 9,
        command: Command::Revoke {
            revocations: revocations.clone(),
        },
    });
    let sent = ToServer::Revoked {
        revocations: revocations.clone(),
    };
    for connection in [1, 2] {
        assert!(
            batch
                .outgoing
                .contains(&Outgoing::Message(connection, sent.clone()))
        );
    }
    rig.issue_token("token-3");
    let batch = rig.take(Input::Register(candidate(3, &joining(3))));
    let Some(Outgoing::Welcome { welcome, .. }) = batch.outgoing.first() else {
        panic!("no welcome: {:?}", batch.outgoing);
    };
    assert_eq!(welcome.revoked, revocations);
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

/// Heartbeats of both servers every 250 ms, of which A hangs and reports B; the commands that followed.
fn hang(rig: &mut Rig, from_ms: u64, until_ms: u64) -> Vec<Command> {
    let mut commands = Vec::new();
    for ms in (from_ms..=until_ms).step_by(50) {
        rig.now.ms = ms;
        if ms % 250 == 0 {
            rig.heartbeat(2, &[]);
            let output = rig.heartbeat_of(1, &[B], ms);
            commands.extend(output.commands.into_iter().map(|timed| timed.command));
        }
        let output = rig.take(Input::Tick);
        commands.extend(output.commands.into_iter().map(|timed| timed.command));
    }
    commands
}

#[test]
fn a_server_that_hangs_fails_and_comes_back_when_it_goes_on() {
    let mut rig = Rig::new();
    let commands = hang(&mut rig, 500, 3_000);
    assert_eq!(
        commands,
        [Command::ServersHung { servers: vec![A] }],
        "its word about its peer does not count"
    );
    assert!(!rig.engine.state().is_alive(A) && rig.engine.state().is_alive(B));
    let returns = |hung_ms| {
        let mut back = candidate(11, &Proof::Credential("digest-1".into()));
        (back.register.name, back.register.address) = ("s1".into(), "127.0.0.1:7001".into());
        back.register.hung_ms = hung_ms;
        Input::Register(back)
    };
    let output = rig.take(returns(3_000));
    assert!(output.commands.is_empty());
    assert_eq!(
        output.outgoing,
        [Outgoing::Close(11)],
        "no refusal, which would end it"
    );
    assert_eq!(
        output.notes,
        [Note::KeptOut {
            server: A,
            hung_ms: 3_000
        }]
    );
    let output = rig.take(returns(0));
    assert!(matches!(output.outgoing[..], [Outgoing::Welcome { .. }, ..]));
    assert!(rig.engine.state().is_alive(A));
}

#[test]
fn of_an_unreachable_pair_the_one_that_hangs_is_named() {
    let mut rig = Rig::new();
    rig.issue_token("token-3");
    rig.take(Input::Register(candidate(3, &joining(3))));
    let mut pairs = Vec::new();
    for ms in (250..=3_500).step_by(250) {
        rig.now.ms = ms;
        // For less than what fails it: its disk takes two thirds of a second for each sync.
        rig.heartbeat_of(1, &[B], 600);
        rig.heartbeat(2, &[A]);
        rig.heartbeat(3, &[]);
        let commands = rig.take(Input::Tick).commands.into_iter();
        pairs.extend(commands.map(|timed| timed.command));
    }
    let at_fault = Some(A);
    let pair = Command::PairUnreachable {
        server: A,
        peer: B,
        unreachable: true,
        at_fault,
    };
    assert_eq!(pairs, [pair]);
}
