//! After a start nothing is issued before the servers were heard.

use quorate_coordinator_core::command::{Command, JoinTokenTerms, PlacementPolicy, Proof, Timed};
use quorate_coordinator_core::engine::{Candidate, Input, Note, Outgoing, Output};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_types::control::ToServer;
use quorate_types::{Durability, Place, ServerId};
use uuid::Uuid;

use crate::rig::{A, B, LEASE_MS, Rig, candidate, joining};
use crate::world::{group, sla};

/// Three servers with a group on each pair, started again.
fn restarted() -> Rig {
    let mut rig = Rig::new();
    rig.issue_token("token-3");
    rig.take(Input::Register(candidate(3, &joining(3))));
    for n in 1..=3 {
        rig.take(admission(n));
    }
    Rig::start(rig.log, 2)
}

fn admission(n: u128) -> Input {
    let command = Command::Admit {
        group_id: group(n),
        project_id: Uuid::nil(),
        sla: sla(Durability::Persistent, 2, 1_000),
    };
    Input::Command { call: 9, command }
}

/// A new process: its groups need another epoch.
fn reborn(n: u64) -> Candidate {
    let mut back = candidate(n, &Proof::Credential(format!("digest-{n}")));
    back.register.incarnation = "i2".into();
    back
}

fn orders(output: &Output) -> usize {
    let is_order = |outgoing: &&Outgoing| {
        matches!(
            outgoing,
            Outgoing::Message(_, ToServer::Configure { .. } | ToServer::Drop { .. })
                | Outgoing::Welcome { .. }
        )
    };
    output.outgoing.iter().filter(is_order).count()
}

fn tick_until(rig: &mut Rig, until_ms: u64) -> Vec<Output> {
    let mut outputs = Vec::new();
    while rig.now.ms < until_ms {
        rig.now.ms += 50;
        outputs.push(rig.take(Input::Tick));
    }
    outputs
}

#[test]
fn it_ends_when_every_server_was_heard_and_all_that_waited_follows() {
    let mut rig = restarted();
    assert_eq!(rig.take_output().notes, [Note::RollCallBegan { servers: 3 }]);
    for n in [1, 2] {
        let output = rig.take(Input::Register(reborn(n)));
        assert!(output.commands.is_empty() && orders(&output) == 0, "{output:?}");
    }
    let output = rig.take(admission(4));
    assert!(
        output.commands.is_empty() && output.outgoing.is_empty(),
        "it waits: {output:?}"
    );
    let output = rig.take(Input::Register(reborn(3)));
    assert_eq!(output.commands.len(), 4, "three registrations and the call");
    assert!(orders(&output) > 3);
    let is_answer = |outgoing: &&Outgoing| matches!(outgoing, Outgoing::Answer { call: 9, .. });
    assert_eq!(output.outgoing.iter().filter(is_answer).count(), 1);
    assert!(rig.engine.roll_call(rig.now.ms).is_none());
}

#[test]
fn a_majority_is_enough_once_the_lease_of_the_others_is_over_and_they_have_failed() {
    let mut rig = restarted();
    rig.take(Input::Register(reborn(1)));
    rig.take(Input::Register(reborn(2)));
    let outputs = tick_until(&mut rig, LEASE_MS);
    let (last, before) = outputs.split_last().unwrap();
    assert!(before.iter().all(|output| output.commands.is_empty()));
    let failed = Command::ServersFailed {
        servers: vec![ServerId(3)],
    };
    let commands: Vec<_> = last.commands.iter().map(|timed| &timed.command).collect();
    assert_eq!(commands.len(), 3);
    assert_eq!(commands[2], &failed, "no later than after any start");
    assert!(rig.engine.state().is_alive(A) && rig.engine.state().is_alive(B));
}

#[test]
fn below_a_majority_it_waits_and_says_so_until_an_operator_ends_it() {
    let mut rig = restarted();
    rig.take(Input::Register(reborn(1)));
    let outputs = tick_until(&mut rig, 10 * LEASE_MS);
    assert!(outputs.iter().all(|output| output.commands.is_empty()));
    let notes: Vec<&Note> = outputs.iter().flat_map(|output| &output.notes).collect();
    assert!(matches!(notes[..], [Note::RollCallStuck(view)] if view.heard == 1 && view.awaited == 3));
    let view = rig.engine.roll_call(rig.now.ms).expect("it runs");
    assert!(view.is_stuck && view.missing == [B, ServerId(3)]);
    let output = rig.take(Input::EndRollCall);
    assert!(matches!(output.commands[0].command, Command::Register(_)));
    assert!(matches!(
        output.commands[1].command,
        Command::ServersFailed { .. }
    ));
}

#[test]
fn a_fleet_that_is_started_late_has_time_to_follow() {
    let mut rig = restarted();
    tick_until(&mut rig, 5 * LEASE_MS);
    for n in [1, 2] {
        let output = rig.take(Input::Register(reborn(n)));
        assert!(output.commands.is_empty(), "the third may follow");
    }
    let outputs = tick_until(&mut rig, 6 * LEASE_MS - 50);
    assert!(outputs.iter().all(|output| output.commands.is_empty()));
    let output = rig.take(Input::Register(reborn(3)));
    let is_failure = |command: &Command| matches!(command, Command::ServersFailed { .. });
    assert_eq!(output.commands.len(), 3);
    assert!(!output.commands.iter().any(|timed| is_failure(&timed.command)));
}

#[test]
fn join_tokens_are_issued_at_once_and_calls_that_wait_too_long_are_given_back() {
    let mut rig = restarted();
    let token = JoinTokenTerms {
        expires_at_ms: u64::MAX,
        name: None,
        auxiliary: false,
    };
    let command = Command::IssueJoinToken {
        digest: "token-4".into(),
        token,
    };
    assert_eq!(rig.take(Input::Command { call: 3, command }).commands.len(), 1);
    rig.take(admission(4));
    let outputs = tick_until(&mut rig, 11_000);
    let unanswered = |output: &Output| output.outgoing.contains(&Outgoing::Unanswered { call: 9 });
    assert_eq!(outputs.iter().filter(|output| unanswered(output)).count(), 1);
    let output = rig.take(Input::EndRollCall);
    let admits = |command: &Command| matches!(command, Command::Admit { .. });
    assert!(
        !output.commands.iter().any(|timed| admits(&timed.command)),
        "its caller is gone"
    );
}

#[test]
fn a_server_of_a_later_log_is_not_ended_and_one_that_was_given_up_is() {
    let is_refusal = |sent: &Outgoing| matches!(sent, Outgoing::Message(_, ToServer::Refuse { .. }));
    let mut rig = restarted();
    let end = rig.engine.state().history.place().expect("a run has begun");
    rig.take_output();
    let unknown = |place| {
        let mut one = reborn(7);
        one.register.place = Some(place);
        Input::Register(one)
    };
    let (run, position) = (end.run, end.position + 9);
    let later = Place { run, position };
    for _ in ["during the roll call", "after it"] {
        let output = rig.take(unknown(later));
        assert!(matches!(output.outgoing[..], [Outgoing::Close(_)]), "{output:?}");
        assert!(
            matches!(output.notes[..], [Note::OfAnotherLog { .. }]),
            "{output:?}"
        );
        let output = rig.take(unknown(end));
        assert!(output.outgoing.iter().any(is_refusal), "{output:?}");
        for n in 1..=3 {
            rig.take(Input::Register(reborn(n)));
        }
    }
}

#[test]
fn a_registration_whose_connection_broke_is_forgotten_and_the_last_of_a_server_counts() {
    let mut rig = restarted();
    rig.take(Input::Register(reborn(1)));
    rig.take(Input::Closed { connection: 1 });
    let mut again = reborn(1);
    again.connection = 11;
    rig.take(Input::Register(again.clone()));
    again.connection = 12;
    let output = rig.take(Input::Register(again));
    assert_eq!(output.outgoing, [Outgoing::Close(11)]);
    let output = rig.take(Input::EndRollCall);
    let welcomed = output.outgoing.iter().filter_map(|outgoing| match outgoing {
        Outgoing::Welcome { connection, .. } => Some(*connection),
        _ => None,
    });
    assert_eq!(welcomed.collect::<Vec<_>>(), [12]);
}

/// Such a log may be a copy from before the first server, which would otherwise be heard too late.
#[test]
fn a_log_without_servers_that_is_not_new_waits_for_a_lease() {
    let mut first = Rig::start(Vec::new(), 1);
    first.issue_token("token-1");
    assert!(first.engine.roll_call(0).is_none(), "a new log waits for nobody");
    let mut rig = Rig::start(first.log, 2);
    let output = rig.take(Input::Register(candidate(1, &joining(1))));
    assert!(output.commands.is_empty());
    tick_until(&mut rig, LEASE_MS);
    assert!(rig.engine.state().is_alive(A));
}

/// Another profile or policy may free room for a replacement, and so issue an epoch.
#[test]
fn the_settings_of_a_start_come_after_the_roll_call() {
    let mut profile = Profile::default_profile();
    profile.version = "another".into();
    let first = vec![
        Command::UseProfile {
            profile: Box::new(profile),
        },
        Command::UsePlacement {
            policy: PlacementPolicy::default(),
        },
    ];
    let mut rig = Rig::start_with(restarted().log, 3, first.clone());
    assert!(rig.take_output().commands.is_empty());
    let output = rig.take(Input::EndRollCall);
    let commands: Vec<&Command> = output.commands.iter().map(|timed| &timed.command).collect();
    assert_eq!(commands[..2], first.iter().collect::<Vec<_>>());
    assert!(
        !output
            .outgoing
            .iter()
            .any(|sent| matches!(sent, Outgoing::Answer { .. }))
    );
    assert_eq!(rig.engine.state().profile.version, "another");
}

fn failed(outputs: &[Output]) -> Vec<ServerId> {
    let commands = outputs.iter().flat_map(|output| &output.commands);
    let of = |command: &Command| match command {
        Command::ServersFailed { servers } | Command::ServersHung { servers } => servers.clone(),
        _ => Vec::new(),
    };
    commands.flat_map(|timed| of(&timed.command)).collect()
}

/// Its connection ended while it waited for the others.
#[test]
fn a_server_that_was_heard_has_a_lease_to_come_back_when_the_others_are_late() {
    let mut rig = restarted();
    rig.take(Input::Register(reborn(1)));
    rig.take(Input::Closed { connection: 1 });
    tick_until(&mut rig, 5 * LEASE_MS);
    rig.take(Input::Register(reborn(2)));
    let mut ended = tick_until(&mut rig, 6 * LEASE_MS);
    assert!(rig.engine.roll_call(rig.now.ms).is_none());
    assert_eq!(failed(&ended), [ServerId(3)]);
    while rig.now.ms < 8 * LEASE_MS {
        rig.heartbeat(2, &[]);
        let until_ms = rig.now.ms + 250;
        ended.extend(tick_until(&mut rig, until_ms));
        let is_over = rig.now.ms >= 7 * LEASE_MS;
        assert_eq!(rig.engine.state().is_alive(A), !is_over, "at {}", rig.now.ms);
    }
    assert_eq!(failed(&ended), [ServerId(3), A], "it did not come back");
}

#[test]
fn hangs_are_judged_when_all_that_waited_have_spoken() {
    let hanging = |n| {
        let mut back = reborn(n);
        back.register.hung_ms = 3_000;
        back
    };
    let mut rig = restarted();
    let outputs: Vec<Output> = (1..=3).map(|n| rig.take(Input::Register(hanging(n)))).collect();
    let registered = |timed: &Timed| matches!(timed.command, Command::Register(_));
    assert_eq!(
        outputs[2]
            .commands
            .iter()
            .filter(|timed| registered(timed))
            .count(),
        3,
        "all hang"
    );
    let later = tick_until(&mut rig, 500);
    assert_eq!(failed(&later), []);
    // One of three is kept out, and fails for its hang.
    let mut rig = restarted();
    rig.take(Input::Register(hanging(1)));
    rig.take(Input::Register(reborn(2)));
    let output = rig.take(Input::Register(reborn(3)));
    assert!(output.outgoing.contains(&Outgoing::Close(1)));
    let later = tick_until(&mut rig, 50);
    assert_eq!(failed(&later), [A]);
}

/// Such a log says nothing of its starts, though it is not new.
#[test]
fn the_first_start_on_a_snapshot_of_a_release_without_places_has_a_roll_call() {
    for is_empty in [false, true] {
        let state = if is_empty {
            CoordinatorState::new(Profile::default_profile())
        } else {
            restarted().engine.state().clone()
        };
        let mut snapshot = serde_json::to_value(state).unwrap();
        snapshot.as_object_mut().unwrap().remove("history");
        let mut state: CoordinatorState = serde_json::from_value(snapshot).unwrap();
        state.restore();
        let rig = Rig::start_on(state, Vec::new(), 2, Vec::new());
        assert_eq!(rig.engine.roll_call(0).is_none(), is_empty);
    }
}
