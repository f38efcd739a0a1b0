//! A log that was restored from an older copy: the coordinator learns it from its servers, and issues nothing.

use quorate_coordinator_core::command::{Command, Proof};
use quorate_coordinator_core::engine::{Candidate, Input, Output};
use quorate_types::control::{GroupReport, HeldGroup, ToCoordinator};
use quorate_types::{ConfigDigest, Durability, GroupState, Place, Role, RunId};
use uuid::Uuid;

use crate::rig::{A, B, Rig, candidate, joining};
use crate::world::{group, sla};

/// A fleet with a group, and the log of a coordinator that was started on a copy of its log.
struct Fleet {
    first: Rig,
    restored: Rig,
}

impl Fleet {
    /// The copy has the group in epoch 1. It was admitted before the copy was made, and `after` comes later.
    fn copied_before(after: impl FnOnce(&mut Rig)) -> Self {
        let mut first = Rig::new();
        admit(&mut first, 1);
        let copy = first.log.clone();
        after(&mut first);
        let restored = Rig::start(copy, 2);
        Self { first, restored }
    }

    /// A server comes back to the restored coordinator with the place that it has been told.
    fn returns(&mut self, n: u64, place: Option<Place>) -> Output {
        self.restored.take(Input::Register(back(n, place)))
    }
}

fn admit(rig: &mut Rig, n: u128) {
    let command = Command::Admit {
        group_id: group(n),
        project_id: Uuid::nil(),
        sla: sla(Durability::Persistent, 2, 1_000),
    };
    rig.take(Input::Command { call: 9, command });
}

fn back(n: u64, place: Option<Place>) -> Candidate {
    let mut back = candidate(n, &Proof::Credential(format!("digest-{n}")));
    back.register.place = place;
    back
}

fn is_silent(output: &Output) -> bool {
    output.commands.is_empty() && output.outgoing.is_empty()
}

#[test]
fn a_server_that_was_told_more_stops_a_coordinator_on_an_older_copy() {
    let mut fleet = Fleet::copied_before(|first| admit(first, 2));
    let told = fleet.first.place;
    let output = fleet.returns(1, told);
    assert!(output.behind.is_some() && is_silent(&output), "{output:?}");
    // Nothing counts from then on.
    let output = fleet.returns(2, None);
    assert!(output.behind.is_some() && is_silent(&output), "{output:?}");
}

#[test]
fn servers_that_were_told_no_more_than_the_copy_says_are_welcome() {
    let mut told = None;
    let mut fleet = Fleet::copied_before(|first| told = first.place);
    assert!(fleet.returns(1, told).behind.is_none());
    let output = fleet.returns(2, None);
    assert!(output.behind.is_none());
    assert_eq!(output.commands.len(), 2, "both are let in: {:?}", output.commands);
    let place = output.place.expect("of the new run");
    assert_eq!(place.run, RunId(2));
    assert!(place.position > told.unwrap().position);
}

/// The last record was synced, and is damaged now: it looks like a torn one.
#[test]
fn a_log_that_lost_its_last_command_is_an_older_copy() {
    let mut first = Rig::new();
    admit(&mut first, 1);
    let told = first.place;
    let mut log = first.log.clone();
    log.pop();
    let mut restored = Rig::start(log, 2);
    assert!(restored.take(Input::Register(back(1, told))).behind.is_some());
}

#[test]
fn a_server_that_joined_after_the_copy_is_believed_by_its_certificate_and_a_stranger_is_not() {
    let mut fleet = Fleet::copied_before(|first| {
        first.issue_token("token-3");
        first.take(Input::Register(candidate(3, &joining(3))));
    });
    let told = fleet.first.place;
    assert!(fleet.returns(3, told).behind.is_none(), "anybody may say so");
    let certified = Candidate {
        is_certified: true,
        ..back(3, told)
    };
    assert!(fleet.restored.take(Input::Register(certified)).behind.is_some());
}

/// Servers of a release without places name epochs.
#[test]
fn a_later_epoch_on_disk_or_in_a_heartbeat_or_another_configuration_of_one_is_proof() {
    let held = |epoch| HeldGroup {
        group_id: group(1),
        epoch,
        durability: Durability::Persistent,
        last_index: 4,
        committed_epoch: 0,
        committed_index: 0,
        damaged: false,
    };
    for (epoch, is_proof) in [(1, false), (2, true)] {
        let mut fleet = Fleet::copied_before(|_| {});
        let mut server = back(1, None);
        server.register.held.push(held(epoch));
        let output = fleet.restored.take(Input::Register(server));
        assert_eq!(output.behind.is_some(), is_proof, "epoch {epoch}");
    }
    let report = |epoch| GroupReport {
        group_id: group(1),
        epoch,
        role: Role::Head,
        state: GroupState::Active,
        last_index: 4,
        commit_offset: 4,
    };
    for (epoch, is_proof) in [(1, false), (2, true)] {
        let mut fleet = Fleet::copied_before(|_| {});
        fleet.returns(1, None);
        fleet.returns(2, None);
        let output = fleet.restored.heartbeat_with(1, vec![report(epoch)], &[]);
        assert_eq!(output.behind.is_some(), is_proof, "epoch {epoch}");
    }
    let mut fleet = Fleet::copied_before(|_| {});
    fleet.returns(1, None);
    fleet.returns(2, None);
    let state = fleet.restored.engine.state();
    let own = ConfigDigest::of(&state.config_of(&state.groups[&group(1)]));
    for (digest, is_proof) in [
        (None, false),
        (Some(own), false),
        (Some(ConfigDigest(own.0 ^ 1)), true),
    ] {
        let message = ToCoordinator::Applied {
            group_id: group(1),
            epoch: 1,
            digest,
        };
        let output = fleet.restored.take(Input::Message {
            connection: 1,
            message,
        });
        assert_eq!(output.behind.is_some(), is_proof, "{digest:?}");
        assert!(!is_proof || is_silent(&output));
    }
}

/// Every place of the same log is one of it, whatever was restarted in between.
#[test]
fn restarts_on_the_same_log_alarm_nobody() {
    let mut rig = Rig::new();
    let mut places = vec![rig.place];
    for run in 2..6 {
        rig = Rig::start(rig.log.clone(), run);
        for (n, place) in [(1, places[0]), (2, *places.last().unwrap())] {
            assert!(rig.take(Input::Register(back(n, place))).behind.is_none());
        }
        assert!(rig.engine.roll_call(0).is_none());
        admit(&mut rig, u128::from(run));
        places.push(rig.place);
    }
    assert_eq!(rig.engine.state().groups.len(), 4);
    assert!(rig.engine.state().is_alive(A) && rig.engine.state().is_alive(B));
}
