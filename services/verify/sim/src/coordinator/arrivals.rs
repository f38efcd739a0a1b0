//! Messages, ticks and completed syncs arrive at the coordinator.

use std::net::{IpAddr, Ipv4Addr};

use quorate_coordinator_core::command::Proof;
use quorate_coordinator_core::coordinator::Event;
use quorate_coordinator_core::engine::{Candidate, Input, TICK_MS};
use quorate_types::Micros;
use quorate_types::control::{Register, ToCoordinator};

use super::{input, operator, output, restores};
use crate::fleet::{Arrived, Node, Scheduled, World};

const TICK_US: Micros = TICK_MS * 1_000;

/// A control message, or the end of its connection, arrives.
pub fn receive(world: &mut World, place: usize, connection: u64) {
    if !world.coordinator.up || world.is_blocked(Node::Server(place), Node::Coordinator) {
        return;
    }
    let control = world.servers[place]
        .control
        .as_mut()
        .filter(|c| c.connection == connection);
    let arrived = match control {
        None => Arrived::Closed { connection },
        Some(control) => {
            let Some(bytes) = control.up.receive() else { return };
            let message = serde_json::from_slice(&bytes).expect("a control message");
            Arrived::Message {
                place,
                connection,
                message,
            }
        }
    };
    take_or_keep(world, arrived);
}

pub fn tick(world: &mut World, incarnation: u64) {
    if world.coordinator.incarnation != incarnation || !world.coordinator.up {
        return;
    }
    if world.coordinator.paused_until <= world.now {
        take_or_keep(world, Arrived::Tick);
    }
    world.schedule(world.now + TICK_US, Scheduled::CoordinatorTick { incarnation });
}

fn take_or_keep(world: &mut World, arrived: Arrived) {
    if world.coordinator.is_syncing || world.coordinator.paused_until > world.now {
        return world.coordinator.waiting.push(arrived);
    }
    take(world, arrived);
    output::commit(world);
}

fn take_waiting(world: &mut World) {
    if world.coordinator.is_syncing || world.coordinator.paused_until > world.now {
        return;
    }
    for arrived in std::mem::take(&mut world.coordinator.waiting) {
        take(world, arrived);
    }
    output::commit(world);
}

fn take(world: &mut World, arrived: Arrived) {
    match arrived {
        Arrived::Message {
            place,
            connection,
            message: ToCoordinator::Register(register),
        } => {
            world.coordinator.restores.heard.insert(place);
            let candidate = candidate(world, place, connection, *register);
            input::feed(world, Input::Register(candidate));
        }
        Arrived::Message {
            connection, message, ..
        } => input::feed(world, Input::Message { connection, message }),
        Arrived::Closed { connection } => {
            world.coordinator.places.remove(&connection);
            input::feed(world, Input::Closed { connection });
        }
        Arrived::Tick => {
            // By what the step before has shown.
            restores::watch_roll_call(world);
            input::event(world, Event::Tick);
            operator::make_requests(world);
        }
    }
}

/// Secrets are their own digests here.
fn candidate(world: &mut World, place: usize, connection: u64, register: Register) -> Candidate {
    let coordinator = &mut world.coordinator;
    coordinator.places.insert(connection, place);
    coordinator.credentials += 1;
    let credential = format!(
        "credential-{}-{}",
        coordinator.incarnation, coordinator.credentials
    );
    let is_certified = world.servers[place].id.is_some();
    let proof = match (&register.join_token, &register.credential) {
        (Some(token), None) => Proof::JoinToken {
            digest: token.clone(),
            credential_digest: credential.clone(),
        },
        (None, Some(known)) => Proof::Credential(known.clone()),
        _ => unreachable!("a server shows one of the two"),
    };
    Candidate {
        connection,
        from: IpAddr::V4(Ipv4Addr::from(place as u32)),
        register,
        proof: Some(proof),
        credential,
        certificates: Ok(()),
        is_certified,
    }
}

pub fn synced(world: &mut World, incarnation: u64) {
    if world.coordinator.incarnation != incarnation || !world.coordinator.up {
        return;
    }
    world.coordinator.is_syncing = false;
    output::synced(world);
    take_waiting(world);
}

pub fn resumed(world: &mut World) {
    if world.coordinator.up && world.coordinator.paused_until <= world.now {
        take_waiting(world);
    }
}
