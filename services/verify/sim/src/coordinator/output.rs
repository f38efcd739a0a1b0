//! The coordinator's decisions: made durable first, then released.

use quorate_coordinator_core::command::{Command, Reply};
use quorate_coordinator_core::engine::{Note, Outgoing};
use quorate_types::control::{Placed, ToServer};
use quorate_types::planted;
use quorate_types::planted::Bug;
use rand::Rng;

use super::{resets, restores};
use crate::fleet::{Scheduled, World};
use crate::invariants;

/// Makes the batch durable; its messages are released then.
pub(super) fn commit(world: &mut World) {
    if !world.coordinator.up {
        return;
    }
    let batch = world.coordinator.engine.take_output();
    if let Some(behind) = batch.behind {
        return restores::end(world, &behind);
    }
    world.coordinator.place = batch.place;
    restores::copy(world);
    for note in batch.notes {
        take_note(world, note);
    }
    world.coordinator.outgoing.extend(batch.outgoing);
    if batch.commands.is_empty() {
        return release(world);
    }
    for timed in &batch.commands {
        count_command(world, &timed.command);
    }
    if world.coordinator.log.wants_snapshot(world.plan.snapshot_bytes) {
        world.counts.snapshots += 1;
        world.coordinator.log.rewrite(world.coordinator.engine.state());
    } else {
        world.coordinator.log.append(batch.commands);
    }
    if planted::on(Bug::ActsBeforeLog) {
        release(world);
    }
    world.coordinator.is_syncing = true;
    let incarnation = world.coordinator.incarnation;
    let at = world.now + world.rng.random_range(50..=world.plan.coordinator_sync_us_max);
    world.schedule(at, Scheduled::CoordinatorSynced { incarnation });
}

pub(super) fn release(world: &mut World) {
    if world.is_given_up {
        return;
    }
    resets::notice(world);
    for outgoing in std::mem::take(&mut world.coordinator.outgoing) {
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

fn count_command(world: &mut World, command: &Command) {
    if let Command::ServersHung { .. } | Command::ServerSlow { .. } | Command::PairUnreachable { .. } =
        command
    {
        world.trace.line(None, || format!("coordinator: {command:?}"));
    }
    match command {
        Command::LearnerCaughtUp { .. } => world.counts.promotions += 1,
        Command::PairUnreachable {
            unreachable: true, ..
        } => world.counts.unreachable_pairs += 1,
        Command::ServerSlow { cause: Some(_), .. } => world.counts.slow += 1,
        Command::ServersHung { servers } => {
            world.counts.hung += servers.len() as u64;
            invariants::when_found_hung(world, servers);
        }
        _ => {}
    }
}
