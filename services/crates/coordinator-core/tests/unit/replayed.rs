//! A replay leads to the epochs that were logged, or refuses.

use quorate_coordinator_core::command::Timed;
use quorate_coordinator_core::engine::Input;
use quorate_coordinator_core::log::Replay;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_types::{ConfigDigest, Durability};
use uuid::Uuid;

use crate::rig::Rig;
use crate::world::{group, sla};

fn log() -> Vec<Timed> {
    let mut rig = Rig::new();
    let command = quorate_coordinator_core::command::Command::Admit {
        group_id: group(1),
        project_id: Uuid::nil(),
        sla: sla(Durability::Persistent, 2, 1_000),
    };
    rig.take(Input::Command { call: 1, command });
    rig.log
}

fn replayed(commands: Vec<Timed>) -> Result<CoordinatorState, String> {
    let mut state = CoordinatorState::new(Profile::default_profile());
    let replayed = Replay::default().apply(&mut state, &commands);
    replayed
        .map(|()| state)
        .map_err(|difference| difference.to_string())
}

#[test]
fn a_command_that_is_decided_otherwise_stops_the_replay() {
    let mut log = log();
    assert_eq!(replayed(log.clone()).unwrap().groups.len(), 1);
    let issued = log.last_mut().unwrap().issued.as_mut().unwrap();
    issued[0].digest = ConfigDigest(issued[0].digest.0 + 1);
    let told = replayed(log.clone()).unwrap_err();
    assert!(told.contains("(admit), logged by 0.1.0"), "{told}");
    // A release that did not log what followed is believed.
    log.last_mut().unwrap().issued = None;
    replayed(log).unwrap();
}
