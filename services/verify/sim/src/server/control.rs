//! The connection to the coordinator, as `services/replica/src/control.rs` keeps it.

use std::time::Duration;

use quorate_quorum::MemberId;
use quorate_types::control::{Register, ToCoordinator};
use quorate_types::coordinators::KnownCoordinators;
use quorate_types::cost::ResourceVector;
use quorate_types::{Micros, Room, versions};
use rand::Rng;

use super::reports;
use crate::fleet::{Control, Node, Pipe, Scheduled, World};

/// Issues a join token for the machine at this place.
pub fn invite(world: &mut World, s: usize) {
    let token = join_token(world, s);
    world.coordinators.invitations.push(token);
}

fn join_token(world: &World, s: usize) -> String {
    format!("join-{s}-{}", world.servers[s].tokens)
}

pub fn dial(world: &mut World, s: usize, incarnation: u64) {
    let server = &world.servers[s];
    if !server.alive || server.incarnation != incarnation || server.control.is_some() {
        return;
    }
    let member = dialed(world, s);
    let (own, other) = (Node::Server(s), Node::Coordinator(member));
    let is_up = world
        .coordinators
        .members
        .get(member)
        .is_some_and(|member| member.up);
    if !is_up || world.is_blocked(own, other) || world.is_blocked(other, own) {
        let at = world.now + wait_us(world, s, |known| known.failed());
        return world.schedule(
            at,
            Scheduled::ControlDial {
                server: s,
                incarnation,
            },
        );
    }
    let connection = world.new_connection();
    let server = &world.servers[s];
    let register = Register {
        join_token: server.credential.is_none().then(|| join_token(world, s)),
        credential: server.credential.clone(),
        name: world.name_of(s),
        address: World::address_of(s),
        incarnation: server.incarnation_name(s),
        capacity: ResourceVector::new(1_000.0, 1e12, 1e8),
        room: room(world, s),
        failure_domain: None,
        region: "local".into(),
        held: server.held.clone(),
        version: "0.1.0".into(),
        machine: None,
        hung_ms: server.hang.watch.hung_ms(),
        previous_incarnations: server.previous_starts.clone(),
        certificate_request_pem: None,
        place: server.place,
        versions: versions::CONTROL,
        fleet_versions: versions::FLEET,
        links: None,
    };
    world.servers[s].control = Some(Control {
        connection,
        member,
        is_registered: false,
        sent: 0,
        answered: 0,
        up: Pipe::default(),
        down: Pipe::default(),
    });
    let now_us = world.servers[s].clock_us(world.now);
    world.servers[s].clock.asked(0, now_us);
    send_up(world, s, &ToCoordinator::Register(Box::new(register)));
    world.schedule(
        world.now + 4_000_000,
        Scheduled::Unanswered {
            server: s,
            connection,
        },
    );
}

/// The place of the coordinator that is to be dialed. None may be there yet.
fn dialed(world: &World, s: usize) -> usize {
    let name = world.servers[s].known.current();
    let member = MemberId(u64::from_str_radix(name, 16).expect("addresses are members' numbers"));
    member.0 as usize - 1
}

/// A wait that the server's own rule names, shortened or lengthened at random.
fn wait_us(world: &mut World, s: usize, next: impl FnOnce(&mut KnownCoordinators) -> Duration) -> Micros {
    let delay = next(&mut world.servers[s].known).as_micros() as u64;
    1_000 + delay * world.rng.random_range(50..150) / 100
}

/// Another coordinator leads, says the one that was asked.
pub(super) fn is_led_elsewhere(world: &mut World, s: usize, leader: Option<String>) {
    let is_known = |name: &String| {
        world
            .coordinators
            .members
            .iter()
            .any(|member| member.id.to_string() == *name)
    };
    let leader = leader.filter(is_known);
    let wait = wait_us(world, s, |known| known.told(leader));
    end(world, s, wait);
}

/// The last server has hardly any memory, in some fleets: no replica fits there.
fn room(world: &World, s: usize) -> Room {
    let is_tight = world.plan.has_tight_server && s + 1 == world.servers.len();
    Room {
        memory_bytes: Some(if is_tight { 1 << 20 } else { 1 << 40 }),
        disk_bytes: Some(1 << 40),
    }
}

/// A registration that was not answered in time is tried again.
pub fn give_up_registration(world: &mut World, s: usize, connection: u64) {
    let control = world.servers[s].control.as_ref();
    if control.is_some_and(|c| c.connection == connection && !c.is_registered) {
        disconnect(world, s);
    }
}

pub(super) fn send_up(world: &mut World, s: usize, message: &ToCoordinator) {
    let bytes = serde_json::to_vec(message).expect("control messages serialise");
    let at = world.now + world.rng.random_range(20..=world.plan.control_delay_us_max);
    let Some(control) = &mut world.servers[s].control else {
        return;
    };
    let (connection, member) = (control.connection, control.member);
    let at = control.up.send(bytes, at);
    world.schedule(
        at,
        Scheduled::AtCoordinator {
            member,
            server: s,
            connection,
        },
    );
}

pub(super) fn report(world: &mut World, s: usize, message: ToCoordinator) {
    if world.servers[s].control.as_ref().is_some_and(|c| c.is_registered) {
        send_up(world, s, &message);
    } else {
        world.servers[s].unsent.push(message);
    }
}

pub fn send_heartbeat(world: &mut World, s: usize, incarnation: u64, connection: u64) {
    let server = &mut world.servers[s];
    let Some(control) = server.control.as_mut().filter(|c| c.connection == connection) else {
        return;
    };
    if !control.is_registered || control.sent - control.answered > server.known.unanswered_max() {
        return disconnect(world, s);
    }
    control.sent += 1;
    let seq = control.sent;
    let now_us = world.servers[s].clock_us(world.now);
    world.servers[s].clock.asked(seq, now_us);
    let heartbeat = reports::heartbeat(&mut world.servers[s], seq);
    send_up(world, s, &ToCoordinator::Heartbeat(heartbeat));
    let drift = world.servers[s].drift_permille;
    let every = (world.plan.heartbeat_ms * 1_000) as i64;
    let at = world.now + (every - every * drift / 1_000) as u64;
    world.schedule(
        at,
        Scheduled::Heartbeat {
            server: s,
            incarnation,
            connection,
        },
    );
}

/// The connection breaks. Both ends learn of it, the coordinator perhaps only with the next connection.
pub fn disconnect(world: &mut World, s: usize) {
    if world.servers[s].control.is_some() {
        let wait = wait_us(world, s, |known| known.failed());
        end(world, s, wait);
    }
}

fn end(world: &mut World, s: usize, redial_us: Micros) {
    let Some(control) = world.servers[s].control.take() else {
        return;
    };
    let (connection, member, incarnation) =
        (control.connection, control.member, world.servers[s].incarnation);
    world.trace.line(None, || {
        format!("s{} has no connection to the coordinator", s + 1)
    });
    if world.rng.random_bool(0.8) && !world.is_blocked(Node::Server(s), Node::Coordinator(member)) {
        let at = world.now + world.rng.random_range(100..5_000);
        world.schedule(
            at,
            Scheduled::AtCoordinator {
                member,
                server: s,
                connection,
            },
        );
    }
    let at = world.now + redial_us;
    world.schedule(
        at,
        Scheduled::ControlDial {
            server: s,
            incarnation,
        },
    );
}

/// The direction is open again: what waited arrives.
pub fn resume(world: &mut World, s: usize, c: usize, up: bool) {
    let now = world.now;
    let Some(control) = world.servers[s]
        .control
        .as_mut()
        .filter(|control| control.member == c)
    else {
        return;
    };
    let (connection, member) = (control.connection, control.member);
    let waiting = if up { control.up.len() } else { control.down.len() } as u64;
    if up {
        control.up.not_before(now + 100 + waiting);
    } else {
        control.down.not_before(now + 100 + waiting);
    }
    for n in 0..waiting {
        let event = if up {
            Scheduled::AtCoordinator {
                member,
                server: s,
                connection,
            }
        } else {
            Scheduled::AtServer {
                server: s,
                connection,
            }
        };
        world.schedule(now + 100 + n, event);
    }
}
