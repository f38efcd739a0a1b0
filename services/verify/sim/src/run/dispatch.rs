//! Dispatch of each event that is due to the part that it concerns.

use quorate_types::Micros;
use rand::Rng;

use crate::client;
use crate::coordinator::{arrivals, outages};
use crate::faults::{self, network};
use crate::fleet::{Scheduled, World};
use crate::invariants;
use crate::links;
use crate::server::{
    control, copier, disk_results, groups, hangs, orders, peers, process, requests, storage, ticks,
};
use crate::trace;

pub(super) const CHECK_US: Micros = 20_000;
/// The share of checks at which coordinators' states are compared, which takes long.
const COMPARED: f64 = 0.05;

pub(super) fn dispatch(world: &mut World, event: Scheduled) {
    trace::focus(None);
    let target = match &event {
        Scheduled::Peer { to, .. } => Some((*to, None)),
        Scheduled::LinkUp { server, .. }
        | Scheduled::LinkDown { server, .. }
        | Scheduled::AtServer { server, .. }
        | Scheduled::Unanswered { server, .. } => Some((*server, None)),
        Scheduled::Synced { server, incarnation }
        | Scheduled::AtGroup {
            server, incarnation, ..
        }
        | Scheduled::CatchupDue {
            server, incarnation, ..
        }
        | Scheduled::DiskRead {
            server, incarnation, ..
        }
        | Scheduled::Copy { server, incarnation }
        | Scheduled::Flush { server, incarnation }
        | Scheduled::Tick { server, incarnation }
        | Scheduled::Wake {
            server, incarnation, ..
        }
        | Scheduled::CommitNoticeDue {
            server, incarnation, ..
        }
        | Scheduled::ControlDial { server, incarnation }
        | Scheduled::FromClient {
            server, incarnation, ..
        }
        | Scheduled::Heartbeat {
            server, incarnation, ..
        }
        | Scheduled::Watch { server, incarnation }
        | Scheduled::Order {
            server, incarnation, ..
        }
        | Scheduled::ShardGoesOn { server, incarnation } => Some((*server, Some(*incarnation))),
        _ => None,
    };
    let event = match target {
        Some((s, incarnation)) => reaches(world, s, incarnation, event),
        None => Some(event),
    };
    match event {
        Some(event) if target.is_some() => at_server(world, event),
        Some(event) => elsewhere(world, event),
        None => {}
    }
}

/// Keeps the event of a paused server for later, and drops that of an earlier process.
fn reaches(world: &mut World, s: usize, incarnation: Option<u64>, event: Scheduled) -> Option<Scheduled> {
    let server = &world.servers[s];
    if !server.alive || incarnation.is_some_and(|i| i != server.incarnation) {
        return None;
    }
    if server.paused_until > world.now {
        let until = server.paused_until;
        if server.deferred.is_empty() {
            world.schedule(until, Scheduled::Resume { server: s });
        }
        world.servers[s].deferred.push(event);
        return None;
    }
    // A process that was stopped meanwhile takes what had waited before first.
    let hangs = server.hang.thread_until > world.now || !server.hang.waiting.is_empty();
    if hangs && !is_of_main_thread(&event) {
        // The journal has a thread of its own.
        if matches!(event, Scheduled::Synced { .. }) && !storage::returns(world, s) {
            return None;
        }
        world.servers[s].hang.waiting.push(event);
        return None;
    }
    Some(event)
}

/// Whether the event concerns the main thread, which goes on when the shard's hangs.
fn is_of_main_thread(event: &Scheduled) -> bool {
    matches!(
        event,
        Scheduled::AtServer { .. }
            | Scheduled::Unanswered { .. }
            | Scheduled::ControlDial { .. }
            | Scheduled::Heartbeat { .. }
            | Scheduled::Watch { .. }
            | Scheduled::ShardGoesOn { .. }
    )
}

fn at_server(world: &mut World, event: Scheduled) {
    match event {
        Scheduled::Peer { from, to, generation } => peers::receive(world, from, to, generation),
        Scheduled::LinkUp {
            server,
            peer,
            generation,
        } => peers::link_up(world, server, peer, generation),
        Scheduled::LinkDown {
            server,
            peer,
            generation,
        } => peers::link_down(world, server, peer, generation),
        Scheduled::AtServer { server, connection } => orders::receive(world, server, connection),
        Scheduled::Unanswered { server, connection } => {
            control::give_up_registration(world, server, connection)
        }
        Scheduled::Synced { server, .. } => storage::synced(world, server),
        Scheduled::AtGroup {
            server, group, event, ..
        } => groups::step(world, server, group, *event),
        Scheduled::DiskRead {
            server, group, read, ..
        } => disk_results::receive(world, server, group, *read),
        Scheduled::Copy { server, incarnation } => copier::run_pass(world, server, incarnation),
        Scheduled::CatchupDue { server, group, .. } => ticks::catchup_due(world, server, group),
        Scheduled::Flush { server, .. } => groups::flush(world, server),
        Scheduled::Tick { server, incarnation } => ticks::tick(world, server, incarnation),
        Scheduled::Wake { server, group, .. } => ticks::wake(world, server, group),
        Scheduled::CommitNoticeDue { server, group, .. } => ticks::commit_notice_due(world, server, group),
        Scheduled::ControlDial { server, incarnation } => control::dial(world, server, incarnation),
        Scheduled::FromClient {
            server,
            client,
            message,
            ..
        } => requests::receive(world, server, client, *message),
        Scheduled::Heartbeat {
            server,
            incarnation,
            connection,
        } => {
            control::send_heartbeat(world, server, incarnation, connection);
        }
        Scheduled::Watch { server, incarnation } => hangs::watch(world, server, incarnation),
        Scheduled::Order { server, order, .. } => hangs::take_order(world, server, *order),
        Scheduled::ShardGoesOn { server, .. } => shard_goes_on(world, server),
        _ => unreachable!("not at a server"),
    }
}

fn elsewhere(world: &mut World, event: Scheduled) {
    match event {
        Scheduled::Silence {
            server,
            peer,
            generation,
        } => links::check_silence(world, server, peer, generation),
        Scheduled::Dial { a, b } => links::dial(world, a, b),
        Scheduled::AtCoordinator {
            member,
            server,
            connection,
        } => arrivals::receive(world, member, server, connection),
        Scheduled::AtMember {
            member,
            from,
            incarnation,
            message,
        } => arrivals::from_member(world, member, from, incarnation, message),
        Scheduled::MemberClosed {
            member,
            from,
            incarnation,
        } => arrivals::member_closed(world, member, from, incarnation),
        Scheduled::CoordinatorTick { member, incarnation } => arrivals::tick(world, member, incarnation),
        Scheduled::CoordinatorSynced { member, incarnation } => arrivals::synced(world, member, incarnation),
        Scheduled::SnapshotLoaded { member, incarnation } => {
            arrivals::snapshot_loaded(world, member, incarnation);
        }
        Scheduled::CoordinatorRestart { member } => outages::restart(world, member),
        Scheduled::CoordinatorResume { member } => arrivals::resumed(world, member),
        Scheduled::CoordinatorDiskFast { member } => world.coordinators.members[member].sync_factor = 1,
        Scheduled::DiskWorks { server, incarnation } => storage::end_fault(world, server, incarnation),
        Scheduled::DiskFast { server } => world.servers[server].sync_factor = 1,
        Scheduled::Restart { server } => process::restart(world, server),
        Scheduled::Resume { server } => resume(world, server),
        Scheduled::ClientTick { client } => client::tick(world, client),
        Scheduled::ToClient {
            client,
            connection,
            message,
        } => client::receive(world, client, connection, *message),
        Scheduled::Unblock { from, to } => network::unblock(world, from, to),
        Scheduled::Fault if world.is_healing => {}
        Scheduled::Fault => {
            faults::inject(world);
            let at = world.now + world.rng.random_range(1..=2 * world.plan.fault_every_us);
            world.schedule(at, Scheduled::Fault);
        }
        Scheduled::Check => {
            invariants::look_for_lost(world);
            invariants::look_for_hung(world);
            if world.rng.random_bool(COMPARED) {
                invariants::compare_coordinators(world);
            }
            world.schedule(world.now + CHECK_US, Scheduled::Check);
        }
        _ => unreachable!("at a server"),
    }
}

/// The thread of a shard goes on: it takes all events that came meanwhile, in order.
pub(super) fn shard_goes_on(world: &mut World, s: usize) {
    for event in hangs::take_waiting(world, s) {
        dispatch(world, event);
    }
}

/// A paused server goes on: it takes all events that came meanwhile, in order.
pub(super) fn resume(world: &mut World, s: usize) {
    let until = world.servers[s].paused_until;
    if until > world.now {
        return world.schedule(until, Scheduled::Resume { server: s });
    }
    for event in std::mem::take(&mut world.servers[s].deferred) {
        dispatch(world, event);
    }
}
