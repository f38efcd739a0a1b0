//! The coordinator's decisions: made durable first, then released.

use quorate_coordinator_core::command::{Command as LogCommand, Reply};
use quorate_coordinator_core::coordinator::{Command, Ending, Event, decode_batch};
use quorate_coordinator_core::engine::{Note, Outgoing};
use quorate_quorum::{Content, Entry, Event as QuorumEvent};
use quorate_types::control::{Placed, ToServer};
use rand::Rng;

use super::{input, resets, restores};
use crate::fleet::{Scheduled, Synced, World};
use crate::invariants;

/// Does what follows from the inputs. A batch is made durable first.
pub(super) fn commit(world: &mut World) {
    if !world.coordinator.up {
        return;
    }
    let now = input::clocks(world);
    let mut commands = std::mem::take(&mut world.coordinator.said);
    commands.extend(world.coordinator.decisions.take_commands(now));
    carry_out(world, commands);
    begin_snapshot(world);
}

fn carry_out(world: &mut World, commands: Vec<Command>) {
    for command in commands {
        match command {
            Command::Write(write) => {
                write.entries.iter().for_each(|entry| count(world, entry));
                world.coordinator.log.write(&write);
                begin_sync(world);
            }
            Command::Release { place, outgoing } => {
                world.coordinator.place = place;
                release(world, outgoing);
            }
            Command::Note(note) => take_note(world, note),
            Command::End(Ending::Behind(behind)) => return restores::end(world, &behind),
            Command::Role(_) => {}
            other => unreachable!("a leader alone gives no such order: {other:?}"),
        }
    }
}

/// A batch, or a snapshot, is on the disk.
pub(super) fn synced(world: &mut World) {
    let now = input::clocks(world);
    let event = match world.coordinator.log.synced() {
        Some(Synced::Write(id)) => QuorumEvent::Written { id },
        Some(Synced::Snapshot(through)) => QuorumEvent::Compacted { through },
        None => return,
    };
    world.coordinator.decisions.take(now, Event::Quorum(event));
    commit(world);
}

fn begin_snapshot(world: &mut World) {
    if !world.coordinator.up || world.coordinator.is_syncing {
        return;
    }
    restores::copy(world);
    if !world.coordinator.log.wants_snapshot(world.plan.snapshot_bytes) {
        return;
    }
    let Some(due) = world.coordinator.decisions.snapshot_due() else {
        return;
    };
    world.counts.snapshots += 1;
    assert!(
        due.entries.is_empty(),
        "a leader alone has agreed to all that it has"
    );
    world.coordinator.log.rewrite(due.point, due.members, due.state);
    begin_sync(world);
}

fn begin_sync(world: &mut World) {
    world.coordinator.is_syncing = true;
    let incarnation = world.coordinator.incarnation;
    let at = world.now + world.rng.random_range(50..=world.plan.coordinator_sync_us_max);
    world.schedule(at, Scheduled::CoordinatorSynced { incarnation });
}

fn release(world: &mut World, outgoing: Vec<Outgoing>) {
    if world.is_given_up {
        return;
    }
    resets::notice(world);
    for outgoing in outgoing {
        match outgoing {
            Outgoing::Message(connection, message) => send_down(world, connection, Some(&message)),
            Outgoing::Welcome {
                connection, welcome, ..
            } => send_down(world, connection, Some(&ToServer::Welcome(welcome))),
            Outgoing::Close(connection) => {
                send_down(world, connection, None);
                world.coordinator.places.remove(&connection);
            }
            Outgoing::Answer { reply, .. } => {
                if let Reply::Refused(_) | Reply::Conflict { .. } = &reply {
                    world.trace.line(None, || format!("refused: {reply:?}"));
                }
            }
            // Nobody here has a token or a certificate that ends.
            Outgoing::Certificate { .. } | Outgoing::PeerToken { .. } | Outgoing::Unanswered { .. } => {}
        }
    }
}

fn send_down(world: &mut World, connection: u64, message: Option<&ToServer>) {
    let Some(place) = world.coordinator.places.get(&connection).copied() else {
        return;
    };
    let end = world.coordinator.place;
    let bytes = message.map(|message| {
        let message = message.clone();
        serde_json::to_vec(&Placed { place: end, message }).expect("control messages serialise")
    });
    let at = world.now + world.rng.random_range(20..=world.plan.control_delay_us_max);
    if let Some(control) = world.servers[place]
        .control
        .as_mut()
        .filter(|c| c.connection == connection)
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
