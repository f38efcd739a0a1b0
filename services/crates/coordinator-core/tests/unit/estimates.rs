//! Servers that can do less than they registered with: admission goes by what they found out.

use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::engine::{Input, Output};
use quorate_coordinator_core::state::EventKind;
use quorate_types::control::{CapacityEstimate, EstimatedCapacity, Heartbeat, ToCoordinator};
use quorate_types::{Durability, versions};

use crate::rig::{Rig, quiet_heartbeat};
use crate::world::{World, server, sla};

fn estimated(permille: u16) -> EstimatedCapacity {
    EstimatedCapacity {
        cpu: Some(CapacityEstimate {
            capacity: 0.5,
            phase: "stable".into(),
            is_measured: true,
            lasting_permille: permille,
        }),
        storage_io: None,
    }
}

fn promisable_cpu(world: &World, n: u32) -> f64 {
    let fleet = world.state.fleets().in_region("local").expect("servers");
    fleet.promisable(server(n)).to_resources().cpu
}

fn fits(world: &mut World, n: u128, rate_per_s: u64) -> bool {
    let effects = world.admit(n, sla(Durability::InMemory, 3, rate_per_s));
    effects
        .iter()
        .any(|effect| format!("{effect:?}").contains("Admitted"))
}

#[test]
fn no_more_is_promised_than_servers_can_do() {
    let mut world = World::new(3);
    let whole = promisable_cpu(&world, 1);
    world.apply(Command::CapacityEstimated {
        server: server(1),
        permille: [250, 1_000, 1_000],
    });
    assert!((promisable_cpu(&world, 1) - whole / 4.0).abs() < 1e-6);
    assert_eq!(promisable_cpu(&world, 2), whole, "others are as before");
    assert!(world.kinds().contains(&EventKind::ServerCapacity));
    world.state.validate().expect("fleets follow from servers");
    world.apply(Command::CapacityEstimated {
        server: server(1),
        permille: [1_000; 3],
    });
    assert_eq!(promisable_cpu(&world, 1), whole);
    for permille in [[0, 1_000, 1_000], [1_001, 1_000, 1_000]] {
        world.apply(Command::CapacityEstimated {
            server: server(1),
            permille,
        });
        assert_eq!(
            promisable_cpu(&world, 1),
            whole,
            "{permille:?}: no share of anything"
        );
    }
}

#[test]
fn promises_that_were_made_stay_and_new_ones_are_refused() {
    let mut world = World::new(3);
    assert!(fits(&mut world, 1, 200_000));
    for n in 1..=3 {
        world.apply(Command::CapacityEstimated {
            server: server(n),
            permille: [50, 1_000, 1_000],
        });
    }
    assert_eq!(world.group(1).sla.rate_per_s, 200_000);
    assert!(!fits(&mut world, 2, 200_000));
    for n in 1..=3 {
        world.apply(Command::CapacityEstimated {
            server: server(n),
            permille: [1_000; 3],
        });
    }
    assert!(fits(&mut world, 3, 200_000));
    world.state.validate().expect("fleets follow from servers");
}

#[test]
fn a_new_process_begins_with_what_the_operator_stated() {
    let mut world = World::new(3);
    let whole = promisable_cpu(&world, 1);
    world.apply(Command::CapacityEstimated {
        server: server(1),
        permille: [300, 1_000, 1_000],
    });
    world.fail(&[1]);
    world.come_back(1, "i1", vec![]);
    assert!(promisable_cpu(&world, 1) < whole, "it is the same process");
    world.fail(&[1]);
    world.come_back(1, "i2", vec![]);
    assert_eq!(promisable_cpu(&world, 1), whole);
}

fn heartbeat(rig: &mut Rig, permille: u16) -> Output {
    let message = ToCoordinator::Heartbeat(Heartbeat {
        estimated: Some(Box::new(estimated(permille))),
        ..quiet_heartbeat()
    });
    rig.take(Input::Message {
        connection: 1,
        message,
    })
}

#[test]
fn an_estimate_is_logged_once_it_changes_and_can_be_read() {
    let mut rig = Rig::new();
    assert_eq!(
        heartbeat(&mut rig, 400).commands,
        [],
        "the release before cannot read it"
    );
    let raised = rig.take(Input::RaiseFleetVersion {
        call: 9,
        members: Vec::new(),
    });
    assert_eq!(raised.commands.len(), 1, "{raised:?}");
    assert_eq!(rig.engine.state().fleet_version, versions::FLEET_WITH_ESTIMATES);
    let logged = |output: &Output| {
        let commands = output.commands.iter().map(|timed| timed.command.clone());
        commands.collect::<Vec<_>>()
    };
    let output = heartbeat(&mut rig, 400);
    let expected = Command::CapacityEstimated {
        server: server(1),
        permille: [400, 1_000, 1_000],
    };
    assert_eq!(logged(&output), [expected]);
    assert_eq!(logged(&heartbeat(&mut rig, 400)), [], "it is known");
    let told = rig.engine.servers(Some(server(1)))[0].estimated.clone();
    assert_eq!(told, Some(estimated(400)), "operators see the whole of it");
}
