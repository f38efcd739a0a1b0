//! Messages, ticks and completed syncs arrive at a coordinator.

use std::net::{IpAddr, Ipv4Addr};

use quorate_coordinator_core::command::Proof;
use quorate_coordinator_core::coordinator::Event;
use quorate_coordinator_core::engine::{Candidate, Input, TICK_MS};
use quorate_quorum::{Event as QuorumEvent, MemberId, Message};
use quorate_types::Micros;
use quorate_types::control::{Register, ToCoordinator, ToServer};

use super::{input, operator, output, replacements, restores};
use crate::fleet::{Arrived, Node, Scheduled, World};

const TICK_US: Micros = TICK_MS * 1_000;
/// As the process takes them in before one batch.
const BATCH_INPUTS: usize = 256;

/// A control message, or the end of its connection, arrives.
pub fn receive(world: &mut World, c: usize, place: usize, connection: u64) {
    let member = &world.coordinators.members[c];
    if !member.up || world.is_blocked(Node::Server(place), Node::Coordinator(c)) {
        return;
    }
    let control = world.servers[place]
        .control
        .as_mut()
        .filter(|control| control.connection == connection);
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
    take_or_keep(world, c, arrived);
}

/// A message of another coordinator arrives, if the connection has not broken since.
pub fn from_member(world: &mut World, c: usize, from: usize, incarnation: u64, message: Box<Message>) {
    let member = &world.coordinators.members[c];
    let sender = &world.coordinators.members[from];
    let is_blocked = world.is_blocked(Node::Coordinator(from), Node::Coordinator(c));
    if !member.up || is_blocked || sender.is_gone || member.incarnation != incarnation {
        return;
    }
    let from = sender.id;
    take_or_keep(world, c, Arrived::FromMember { from, message });
}

/// The connection on which another coordinator sent has ended.
pub fn member_closed(world: &mut World, c: usize, from: usize, incarnation: u64) {
    let member = &world.coordinators.members[c];
    if member.up && member.incarnation == incarnation {
        let member = world.coordinators.members[from].id;
        take_or_keep(world, c, Arrived::MemberClosed { member });
    }
}

pub fn tick(world: &mut World, c: usize, incarnation: u64) {
    let member = &world.coordinators.members[c];
    if member.incarnation != incarnation || !member.up {
        return;
    }
    if member.paused_until <= world.now {
        take_or_keep(world, c, Arrived::Tick);
    }
    let member = c;
    world.schedule(
        world.now + TICK_US,
        Scheduled::CoordinatorTick { member, incarnation },
    );
}

fn take_or_keep(world: &mut World, c: usize, arrived: Arrived) {
    let is_of_server = matches!(arrived, Arrived::Message { .. } | Arrived::Closed { .. });
    if !world.coordinators.members[c].runs(world.now) || is_of_server && !takes_servers(world, c) {
        return world.coordinators.members[c].waiting.push(arrived);
    }
    take(world, c, arrived);
    settle(world, c);
}

/// Servers' messages keep their order.
fn takes_servers(world: &World, c: usize) -> bool {
    world.coordinators.members[c].waiting.is_empty() && input::is_open(world, c)
}

/// Does what follows, and takes in what waited, as long as it may.
fn settle(world: &mut World, c: usize) {
    loop {
        output::commit(world, c);
        let member = &world.coordinators.members[c];
        if !member.runs(world.now) || member.waiting.is_empty() || !input::is_open(world, c) {
            return;
        }
        let waiting = &mut world.coordinators.members[c].waiting;
        let batch: Vec<Arrived> = waiting.drain(..waiting.len().min(BATCH_INPUTS)).collect();
        for arrived in batch {
            take(world, c, arrived);
        }
    }
}

fn take(world: &mut World, c: usize, arrived: Arrived) {
    match arrived {
        Arrived::Message {
            place,
            connection,
            message: ToCoordinator::Register(register),
        } => register_server(world, c, place, connection, *register),
        Arrived::Message {
            connection, message, ..
        } => input::feed(world, c, Input::Message { connection, message }),
        Arrived::Closed { connection } => {
            world.coordinators.members[c].places.remove(&connection);
            input::feed(world, c, Input::Closed { connection });
        }
        Arrived::FromMember { from, message } => {
            let message = *message;
            input::event(world, c, Event::Quorum(QuorumEvent::Received { from, message }));
        }
        Arrived::MemberClosed { member } => {
            input::event(world, c, Event::Quorum(QuorumEvent::Closed { member }));
        }
        Arrived::Tick => {
            // By what the step before has shown.
            restores::watch_roll_call(world, c);
            input::event(world, c, Event::Tick);
            if world.coordinators.leader() == Some(c) && input::is_open(world, c) {
                operator::make_requests(world, c);
                replacements::go_on(world, c);
            }
        }
    }
}

/// One that does not lead names the one that does, as the process does.
fn register_server(world: &mut World, c: usize, place: usize, connection: u64, register: Register) {
    world.coordinators.members[c].places.insert(connection, place);
    if world.coordinators.members[c].decisions.engine().is_none() {
        let leader = world.coordinators.members[c].decisions.leader();
        let leader = leader.map(|leader: MemberId| leader.to_string());
        output::send_down(world, c, connection, Some(&ToServer::NotLeader { leader }));
        output::send_down(world, c, connection, None);
        world.coordinators.members[c].places.remove(&connection);
        return;
    }
    world.coordinators.restores.heard.insert(place);
    let candidate = candidate(world, c, place, connection, register);
    input::feed(world, c, Input::Register(candidate));
}

/// Secrets are their own digests here.
fn candidate(world: &mut World, c: usize, place: usize, connection: u64, register: Register) -> Candidate {
    world.coordinators.credentials += 1;
    let credential = format!("credential-{c}-{}", world.coordinators.credentials);
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

pub fn synced(world: &mut World, c: usize, incarnation: u64) {
    let member = &world.coordinators.members[c];
    if member.incarnation != incarnation || !member.up {
        return;
    }
    output::synced(world, c);
    settle(world, c);
}

pub fn snapshot_loaded(world: &mut World, c: usize, incarnation: u64) {
    let member = &world.coordinators.members[c];
    if member.incarnation != incarnation || !member.up {
        return;
    }
    let snapshot = member.log.newest_snapshot();
    input::event(world, c, Event::Quorum(QuorumEvent::SnapshotLoaded { snapshot }));
    settle(world, c);
}

pub fn resumed(world: &mut World, c: usize) {
    if !world.coordinators.members[c].runs(world.now) {
        return;
    }
    // Members' messages do not wait for the quorum to be open.
    let waiting = std::mem::take(&mut world.coordinators.members[c].waiting);
    for arrived in waiting {
        take_or_keep(world, c, arrived);
    }
}
