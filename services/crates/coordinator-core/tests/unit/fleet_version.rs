//! The fleet's version: raised when everything can read it, and never lowered.

use quorate_coordinator_core::command::{Command, Proof, Reply};
use quorate_coordinator_core::coordinator::{decode_batch, encode_batch, read_state};
use quorate_coordinator_core::engine::{Input, Outgoing, Output};
use quorate_coordinator_core::log::encode_state;
use quorate_types::control::{RefuseCode, ToServer};
use quorate_types::{Durability, Sla, Versions, versions};
use uuid::Uuid;

use crate::rig::{Rig, candidate, joining};
use crate::world::{group, sla};

const CALL: u64 = 9;

/// As servers of the release before register: they say nothing of versions.
fn of_the_release_before(n: u64, proof: &Proof) -> Input {
    let mut older = candidate(n, proof);
    (older.register.versions, older.register.fleet_versions) = Default::default();
    Input::Register(older)
}

fn raise(rig: &mut Rig, members: &[&str]) -> Output {
    let members = members.iter().map(ToString::to_string).collect();
    rig.take(Input::RaiseFleetVersion { call: CALL, members })
}

fn refusal(output: &Output) -> &str {
    match output.outgoing.as_slice() {
        [
            Outgoing::Answer {
                call: CALL,
                reply: Reply::Conflict { code, message },
            },
        ] => {
            assert_eq!(*code, "fleet_not_ready");
            message
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_raise_waits_for_every_server_and_every_coordinator() {
    let mut rig = Rig::new();
    rig.take(of_the_release_before(4, &Proof::Credential("digest-2".into())));
    let output = raise(&mut rig, &["coordinator ab is away"]);
    assert_eq!(
        output.commands,
        [],
        "nothing is logged that the release before cannot read"
    );
    let message = refusal(&output);
    assert!(
        message.contains("coordinator ab is away; server 2 (s4) reads version 1: upgrade it"),
        "{message}"
    );
    assert!(!message.contains("s1"), "{message}");

    rig.take(Input::Closed { connection: 4 });
    let message = refusal(&raise(&mut rig, &[])).to_string();
    assert!(message.contains("server 2 (s4) is away"), "{message}");

    let mut upgraded = candidate(5, &Proof::Credential("digest-2".into()));
    upgraded.register.incarnation = "i2".into();
    rig.take(Input::Register(upgraded));
    let output = raise(&mut rig, &[]);
    let newest = versions::FLEET.newest;
    assert_eq!(
        output.commands[0].command,
        Command::RaiseFleetVersion { to: newest }
    );
    for connection in [1, 5] {
        let told = Outgoing::Message(connection, ToServer::FleetVersion { version: newest });
        assert!(output.outgoing.contains(&told), "{:?}", output.outgoing);
    }
    assert_eq!(rig.engine.fleet_version(Vec::new()).version, newest);
    assert_eq!(rig.engine.state().fleet_version, newest);
}

#[test]
fn reads_are_reserved_once_everything_reads_such_an_sla() {
    let mut rig = Rig::new();
    let admit = || Input::Command {
        call: CALL,
        command: Command::Admit {
            group_id: group(1),
            project_id: Uuid::nil(),
            sla: Sla {
                read_rate_per_s: 10,
                ..sla(Durability::InMemory, 2, 100)
            },
        },
    };
    let output = rig.take(admit());
    assert_eq!(output.commands, [], "the release before could not read the log");
    let message = refusal(&output);
    assert!(message.contains("fleet-version --raise"), "{message}");
    raise(&mut rig, &[]);
    let output = rig.take(admit());
    assert_eq!(output.commands.len(), 1, "{:?}", output.outgoing);
}

#[test]
fn the_release_before_is_refused_once_the_version_is_raised() {
    let mut rig = Rig::new();
    raise(&mut rig, &[]);
    rig.issue_token("token-3");
    let before = rig.log.len();
    let output = rig.take(of_the_release_before(3, &joining(3)));
    assert_eq!(rig.log.len(), before, "its token stays valid");
    let Some(Outgoing::Message(3, ToServer::Refuse { code, message })) = output.outgoing.first() else {
        panic!("not refused: {:?}", output.outgoing);
    };
    assert_eq!(*code, RefuseCode::RegisterInvalid);
    assert!(message.contains("install a newer release"), "{message}");
    // A release that speaks none of these versions.
    let mut later = candidate(4, &joining(3));
    later.register.versions = Versions::only(versions::CONTROL.newest + 1);
    let output = rig.take(Input::Register(later));
    assert!(
        matches!(
            output.outgoing.first(),
            Some(Outgoing::Message(4, ToServer::Refuse { .. }))
        ),
        "{:?}",
        output.outgoing
    );
}

#[test]
fn a_welcome_names_the_versions() {
    let mut rig = Rig::new();
    rig.issue_token("token-3");
    let output = rig.take(of_the_release_before(3, &joining(3)));
    let Some(Outgoing::Welcome { welcome, .. }) = output.outgoing.first() else {
        panic!("no welcome: {:?}", output.outgoing);
    };
    assert_eq!((welcome.version, welcome.fleet_version), (1, 1));
}

#[test]
fn a_version_that_this_release_does_not_read_is_refused_wherever_it_stands() {
    let mut rig = Rig::new();
    assert!(
        !String::from_utf8(encode_state(rig.engine.state()).to_vec())
            .unwrap()
            .contains("fleet_version")
    );
    raise(&mut rig, &[]);
    let mut last = rig.log.last().cloned().expect("the raise");
    assert!(decode_batch(&encode_batch(&[last.clone()])).is_ok());
    let beyond = versions::FLEET.newest + 1;
    last.command = Command::RaiseFleetVersion { to: beyond };
    let problem = decode_batch(&encode_batch(&[last])).unwrap_err();
    assert!(problem.contains("install the newer release"), "{problem}");

    let mut state = rig.engine.state().clone();
    assert!(read_state(&encode_state(&state)).is_ok());
    state.fleet_version = beyond;
    let problem = read_state(&encode_state(&state)).unwrap_err();
    assert!(problem.contains("install the newer release"), "{problem}");
}
