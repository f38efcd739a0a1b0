//! A coordinator's decisions: agreed first, then released.

use quorate_coordinator_core::command::{Command as LogCommand, Reply};
use quorate_coordinator_core::coordinator::{Command, Ending, Event, decode_batch};
use quorate_coordinator_core::engine::{Note, Outgoing};
use quorate_quorum::{Content, Entry, Event as QuorumEvent, MemberId, Message, RoleView};
use quorate_types::control::{Placed, ToServer};
use rand::Rng;

use super::{input, operator, resets, restores};
use crate::fleet::{Node, Scheduled, Synced, World};
use crate::invariants;

/// Does what follows from the events.
pub(super) fn commit(world: &mut World, c: usize) {
    if !world.coordinators.members[c].up {
        return;
    }
    let now = input::clocks(world, c);
    let mut commands = std::mem::take(&mut world.coordinators.members[c].said);
    commands.extend(world.coordinators.members[c].decisions.take_commands(now));
    carry_out(world, c, commands);
    begin_snapshot(world, c);
}

fn carry_out(world: &mut World, c: usize, commands: Vec<Command>) {
    for command in commands {
        match command {
            Command::Write(write) => {
                if world.coordinators.leader() == Some(c) {
                    write.entries.iter().for_each(|entry| count(world, entry));
                }
                world.coordinators.members[c].log.write(write);
                begin_sync(world, c);
            }
            Command::LoadSnapshot => load_snapshot(world, c),
            Command::ToMember { to, message } => send_to_member(world, c, to, message),
            Command::Release { place, outgoing } => {
                world.coordinators.members[c].place = place;
                release(world, c, outgoing);
            }
            Command::Note(note) => take_note(world, note),
            Command::End(Ending::Behind(behind)) => return restores::end(world, c, &behind),
            Command::End(ending) => panic!("coordinator {} ends: {ending:?}", c + 1),
            Command::Role(role) => take_role(world, c, role),
            // Nobody reads here, and members that are not taken in ask again.
            Command::Show { .. } | Command::Done { .. } | Command::Refused { .. } => {}
        }
    }
}

/// Connections of servers end with the lead.
fn take_role(world: &mut World, c: usize, role: RoleView) {
    world
        .trace
        .line(None, || format!("coordinator {}: {role:?}", c + 1));
    if let RoleView::Leader { term } = role {
        world.counts.terms += 1;
        let taken = world.coordinators.led.insert(term.0, c);
        assert!(
            taken.is_none_or(|other| other == c),
            "two lead in term {}",
            term.0
        );
        // Requests to the former leader may be lost with it.
        operator::repeat_requests(world);
        return;
    }
    for (connection, _) in std::mem::take(&mut world.coordinators.members[c].places) {
        close(world, c, connection);
    }
}

/// A write, or a snapshot, is on the disk.
pub(super) fn synced(world: &mut World, c: usize) {
    let member = &mut world.coordinators.members[c];
    member.is_syncing = false;
    let event = match member.log.synced() {
        Some(Synced::Write(id)) => QuorumEvent::Written { id },
        Some(Synced::Snapshot(through)) => QuorumEvent::Compacted { through },
        None => return,
    };
    input::event(world, c, Event::Quorum(event));
    begin_sync(world, c);
}

fn begin_snapshot(world: &mut World, c: usize) {
    restores::copy(world, c);
    let member = &mut world.coordinators.members[c];
    if !member.up || !member.log.wants_snapshot(world.plan.snapshot_bytes) {
        return;
    }
    let Some(due) = member.decisions.snapshot_due() else {
        return;
    };
    member.log.compact(&due);
    world.counts.snapshots += 1;
    begin_sync(world, c);
}

/// The disk does one write after the other.
fn begin_sync(world: &mut World, c: usize) {
    let member = &mut world.coordinators.members[c];
    if member.is_syncing || member.log.is_idle() {
        return;
    }
    member.is_syncing = true;
    let (member, incarnation, factor) = (c, member.incarnation, member.sync_factor);
    let at = world.now + factor * world.rng.random_range(50..=world.plan.coordinator_sync_us_max);
    world.schedule(at, Scheduled::CoordinatorSynced { member, incarnation });
}

fn load_snapshot(world: &mut World, c: usize) {
    let (member, incarnation) = (c, world.coordinators.members[c].incarnation);
    let at = world.now + world.rng.random_range(50..=world.plan.coordinator_sync_us_max);
    world.schedule(at, Scheduled::SnapshotLoaded { member, incarnation });
}

/// A message is lost now and then, and another may overtake it, as over connections that break.
fn send_to_member(world: &mut World, c: usize, to: MemberId, message: Message) {
    let Some(member) = world.coordinators.place_of(to) else {
        return;
    };
    if world.is_blocked(Node::Coordinator(c), Node::Coordinator(member)) || world.rng.random_bool(0.001) {
        return;
    }
    let at = world.now + world.rng.random_range(20..=world.plan.member_delay_us_max);
    let incarnation = world.coordinators.members[member].incarnation;
    world.schedule(
        at,
        Scheduled::AtMember {
            member,
            from: c,
            incarnation,
            message: Box::new(message),
        },
    );
}

fn release(world: &mut World, c: usize, outgoing: Vec<Outgoing>) {
    if world.is_given_up {
        return;
    }
    resets::notice(world);
    for outgoing in outgoing {
        match outgoing {
            Outgoing::Message(connection, message) => send_down(world, c, connection, Some(&message)),
            Outgoing::Welcome {
                connection, welcome, ..
            } => send_down(world, c, connection, Some(&ToServer::Welcome(welcome))),
            Outgoing::Close(connection) => close(world, c, connection),
            Outgoing::Answer { reply, .. } => {
                if let Reply::Refused(_) | Reply::Conflict { .. } = &reply {
                    world.trace.line(None, || format!("refused: {reply:?}"));
                }
            }
            // Nobody here has a token or a certificate that ends.
            Outgoing::Certificate { .. } | Outgoing::PeerToken { .. } | Outgoing::Unanswered { .. } => {}
            // Nor does anybody share idle capacity.
            Outgoing::Sharing { .. } | Outgoing::Flows { .. } => {}
        }
    }
}

fn close(world: &mut World, c: usize, connection: u64) {
    send_down(world, c, connection, None);
    world.coordinators.members[c].places.remove(&connection);
}

pub(super) fn send_down(world: &mut World, c: usize, connection: u64, message: Option<&ToServer>) {
    let member = &world.coordinators.members[c];
    let Some(place) = member.places.get(&connection).copied() else {
        return;
    };
    // Only a leader says where the log ends.
    let end = member
        .place
        .filter(|_| !matches!(message, Some(ToServer::NotLeader { .. })));
    let bytes = message.map(|message| {
        let message = message.clone();
        serde_json::to_vec(&Placed { place: end, message }).expect("control messages serialise")
    });
    let at = world.now + world.rng.random_range(20..=world.plan.control_delay_us_max);
    if let Some(control) = world.servers[place]
        .control
        .as_mut()
        .filter(|control| control.connection == connection)
    {
        let at = control.down.send(bytes, at);
        world.schedule(
            at,
            Scheduled::AtServer {
                server: place,
                connection,
            },
        );
    }
}

fn take_note(world: &mut World, note: Note) {
    match note {
        Note::Failed(server) => {
            world.counts.suspicions += 1;
            world
                .trace
                .line(None, || format!("coordinator: server {server} failed"));
        }
        other => {
            if let Note::RollCallOver { heard, missing } = &other
                && (heard > missing || heard + missing == 0)
            {
                restores::look_whether_decidable(world);
            }
            world.trace.line(None, || format!("coordinator: {other:?}"));
        }
    }
}

fn count(world: &mut World, entry: &Entry) {
    if let Content::Payload(payload) = &entry.content {
        let batch = decode_batch(payload).expect("it was just encoded");
        batch
            .iter()
            .for_each(|timed| count_command(world, &timed.command));
    }
}

fn count_command(world: &mut World, command: &LogCommand) {
    if let LogCommand::ServersHung { .. }
    | LogCommand::ServerSlow { .. }
    | LogCommand::PairUnreachable { .. } = command
    {
        world.trace.line(None, || format!("coordinator: {command:?}"));
    }
    match command {
        LogCommand::LearnerCaughtUp { .. } => world.counts.promotions += 1,
        LogCommand::PairUnreachable {
            unreachable: true, ..
        } => world.counts.unreachable_pairs += 1,
        LogCommand::ServerSlow { cause: Some(_), .. } => world.counts.slow += 1,
        LogCommand::ServersHung { servers } => {
            world.counts.hung += servers.len() as u64;
            invariants::when_found_hung(world, servers);
        }
        _ => {}
    }
}
