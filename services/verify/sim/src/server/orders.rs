//! Messages from the coordinator, as `services/replica/src/control.rs` takes them.

use quorate_chain::ReplicaEvent;
use quorate_types::Place;
use quorate_types::control::{DrainState, Placed, RefuseCode, ToServer};
use rand::Rng;

use super::{control, groups, hosting};
use crate::fleet::{Node, Scheduled, World};
use crate::invariants;

pub fn receive(world: &mut World, s: usize, connection: u64) {
    let known = world.servers[s].control.as_ref();
    let Some(member) = known.filter(|c| c.connection == connection).map(|c| c.member) else {
        return;
    };
    if world.is_blocked(Node::Coordinator(member), Node::Server(s)) {
        return;
    }
    let control = world.servers[s].control.as_mut().expect("it was looked for");
    let Some(message) = control.down.receive() else {
        return;
    };
    let Some(bytes) = message else {
        return control::disconnect(world, s);
    };
    let Placed { place, message } = serde_json::from_slice(&bytes).expect("a control message");
    note_place(world, s, place, &message);
    world.trace.line(None, || {
        format!("s{} ← coordinator: {}", s + 1, crate::trace::brief(&message))
    });
    match message {
        ToServer::Welcome(welcome) => {
            world.servers[s].lease_us = welcome.lease_ms * 1_000;
            note_answer(world, s, 0, welcome.unix_ms);
            take_welcome(world, s, welcome.server_id, welcome.credential);
        }
        ToServer::NotLeader { leader } => control::is_led_elsewhere(world, s, leader),
        ToServer::Refuse { code, message } => take_refusal(world, s, code, &message),
        ToServer::Configure { .. } | ToServer::Drop { .. } | ToServer::Lost { .. } => {
            hand_over(world, s, message);
        }
        ToServer::Drain { state } => {
            world.servers[s].drain = state;
            if state == DrainState::Drained {
                world.counts.drained += 1;
                invariants::when_drained(world, s);
            }
        }
        ToServer::HeartbeatAck { seq, repeat, unix_ms } => {
            let control = world.servers[s].control.as_mut().expect("it came on it");
            control.answered = control.answered.max(seq);
            let sent = control.sent;
            world.servers[s].reports.answered(seq, repeat, sent);
            note_answer(world, s, seq, unix_ms);
        }
        ToServer::Quarantined { group_id, epoch } => {
            let is_here = world.servers[s].quarantined.be_whole(group_id, epoch);
            world.counts.told_quarantined += u64::from(is_here);
        }
        _ => {}
    }
}

/// To the shard, whose thread may hang.
fn hand_over(world: &mut World, s: usize, order: ToServer) {
    if world.servers[s].hang.thread_until <= world.now {
        return carry_out(world, s, order);
    }
    let incarnation = world.servers[s].incarnation;
    let order = Scheduled::Order {
        server: s,
        incarnation,
        order: Box::new(order),
    };
    world.servers[s].hang.waiting.push(order);
}

/// The shard takes an order.
pub(super) fn carry_out(world: &mut World, s: usize, order: ToServer) {
    let deposed = world.servers[s].id.and_then(|me| order.deposes(me));
    if let Some((group_id, by)) = deposed {
        groups::step_replica(world, s, group_id, ReplicaEvent::Deposed { by });
    }
    match order {
        ToServer::Configure { config } => hosting::configure(world, s, config),
        ToServer::Drop { group_id, epoch } => {
            let server = &world.servers[s];
            let hosted = server
                .groups
                .get(&group_id)
                .map(|hosted| hosted.replica().epoch());
            let here = hosted.or_else(|| server.quarantined.epoch_of(group_id));
            if here.is_none_or(|here| here <= epoch) {
                hosting::drop_group(world, s, group_id, Some(epoch));
            }
        }
        ToServer::Lost { group_id } => {
            world.servers[s].lost.insert(group_id);
        }
        other => unreachable!("the main thread's own: {other:?}"),
    }
}

fn note_answer(world: &mut World, s: usize, number: u64, unix_ms: Option<u64>) {
    let server = &mut world.servers[s];
    server.answered_us = server.clock_us(world.now);
    server.clock.answered(number, server.answered_us, unix_ms);
}

/// Keeps the place before an order is obeyed. With a mere answer the write may still run when the process is killed.
fn note_place(world: &mut World, s: usize, place: Option<Place>, message: &ToServer) {
    world.servers[s].place = place;
    if message.waits_for_place() || world.rng.random_bool(0.8) {
        world.servers[s].kept_place = place;
    }
}

fn take_refusal(world: &mut World, s: usize, code: RefuseCode, message: &str) {
    match code {
        // The answer to an earlier process was lost: its operator issues another token.
        RefuseCode::JoinTokenUsed => {
            world.servers[s].tokens += 1;
            control::invite(world, s);
        }
        // Issued with the next tick; free when the former holder of the name has failed.
        RefuseCode::JoinTokenInvalid | RefuseCode::NameTaken => {}
        // Free when the machine that it replaces, and whose address it has, has failed.
        RefuseCode::RegisterInvalid if world.servers[s].machine > 0 && world.servers[s].id.is_none() => {}
        _ => panic!("s{} is refused: {code:?} {message}", s + 1),
    }
    control::disconnect(world, s);
}

fn take_welcome(world: &mut World, s: usize, id: quorate_types::ServerId, credential: Option<String>) {
    let server = &mut world.servers[s];
    assert!(
        server.id.is_none_or(|known| known == id),
        "a server keeps its number"
    );
    let is_new = server.id.is_none();
    server.known.leads();
    server.id = Some(id);
    if credential.is_some() {
        server.credential = credential;
    }
    server.starts = vec![server.incarnation_name(s)];
    let incarnation = server.incarnation;
    let control = server.control.as_mut().expect("it came on it");
    control.is_registered = true;
    let connection = control.connection;
    server.reports.connected();
    for message in std::mem::take(&mut world.servers[s].unsent) {
        control::send_up(world, s, &message);
    }
    world.schedule(
        world.now,
        Scheduled::Heartbeat {
            server: s,
            incarnation,
            connection,
        },
    );
    if is_new {
        for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
            let at = world.now + world.rng.random_range(100..5_000);
            world.schedule(at, Scheduled::Dial { a: s, b: peer });
        }
    }
}
