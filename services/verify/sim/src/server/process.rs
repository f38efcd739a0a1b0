//! A server's process and machine: killed, started, replaced, damaged.

use quorate_group::{Group, Outputs, Quarantines, ServerClock};
use quorate_types::control::DrainState;
use quorate_types::planted::{self, Bug};
use quorate_types::reports::ReportBook;
use quorate_types::{Epoch, GroupId, ServerId};
use rand::Rng;

use super::ticks::TICK_US;
use super::{control, copier, groups, hosting, outputs};
use crate::client::connection;
use crate::fleet::{Scheduled, World, turn};
use crate::links;

/// Kills the process.
pub fn crash(world: &mut World, s: usize) {
    if !world.servers[s].alive {
        return;
    }
    world.trace.line(None, || format!("s{} crashes", s + 1));
    for group_id in world.in_memory_ids(s) {
        world.servers[s].forget(group_id);
    }
    let server = &mut world.servers[s];
    server.alive = false;
    server.incarnation += 1;
    world.counts.torn_records += server.disk.crash(&mut world.rng) as u64;
    server.groups.clear();
    server.reports = ReportBook::default();
    server.quarantined = Quarantines::default();
    server.lost.clear();
    (server.turn, server.outputs) = (turn(world.plan.pool_bytes), Outputs::default());
    (server.answered_us, server.lease_us) = (0, 0);
    server.clock = ServerClock::default();
    server.held.clear();
    server.unsent.clear();
    server.drain = DrainState::None;
    server.place = server.kept_place.filter(|_| !planted::on(Bug::PlaceForgotten));
    server.unreachable.clear();
    (server.disk_fault, server.disk_is_full_for_good) = (false, false);
    server.has_damage = false;
    server.copiers.clear();
    server.restated.clear();
    server.fails_until = None;
    server.paused_until = 0;
    server.deferred.clear();
    server.slow.clear();
    server.hang = server.hang.after_crash(world.now);
    for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
        links::break_link(world, s, peer);
    }
    connection::break_all_to(world, s);
    control::disconnect(world, s);
    world.counts.crashes += 1;
    let at = world.now + world.rng.random_range(500..world.plan.restart_us_max);
    world.schedule(at, Scheduled::Restart { server: s });
}

/// The journal's folder is lost; the server's identity lies elsewhere.
pub fn wipe(world: &mut World, s: usize) {
    crash(world, s);
    let server = &mut world.servers[s];
    server.lied.clear();
    server.disk.wipe();
    for g in 0..world.ledgers.len() {
        world.servers[s].forget(World::group_id(g));
    }
}

/// Another machine takes the place.
pub fn replace(world: &mut World, s: usize) {
    wipe(world, s);
    let server = &mut world.servers[s];
    server.id = None;
    server.credential = None;
    server.starts.clear();
    (server.place, server.kept_place) = (None, None);
    server.machine += 1;
    server.tokens += 1;
    control::invite(world, s);
}

/// Kills the process, and has its disk lose what it had called durable. False: nothing of that was left to lose.
pub fn crash_and_lie(world: &mut World, s: usize) -> bool {
    let Some(id) = world.servers[s].id else {
        return false;
    };
    crash(world, s);
    let lost = world.servers[s].disk.lie(id, &mut world.rng);
    world.trace.line(None, || {
        format!("the disk of s{} lost records of {lost:?}", s + 1)
    });
    for group_id in &lost {
        world.servers[s].forget(*group_id);
    }
    world.counts.lies += lost.len() as u64;
    let groups = &world.coordinators.known().groups;
    let epochs = lost
        .iter()
        .map(|id| (*id, groups.get(id).map_or(0, |group| group.epoch)));
    let lied: Vec<(GroupId, Epoch)> = epochs.collect();
    world.servers[s].lied.extend(lied);
    true
}

/// Damages records on its disk, and kills the process.
pub fn damage(world: &mut World, s: usize) {
    crash(world, s);
    let lost = world.servers[s].disk.damage(&mut world.rng);
    world.counts.damaged_records += lost.len() as u64;
    world.trace.line(None, || {
        format!("on the disk of s{} records are damaged: {lost:?}", s + 1)
    });
}

/// Damages records on its disk while it runs.
pub fn rot(world: &mut World, s: usize) {
    let lost = world.servers[s].disk.damage(&mut world.rng);
    world.counts.rotten_records += lost.len() as u64;
    world.servers[s].has_damage |= !lost.is_empty();
    world.trace.line(None, || {
        format!(
            "on the disk of s{}, which runs, records are damaged: {lost:?}",
            s + 1
        )
    });
}

pub fn restart(world: &mut World, s: usize) {
    if world.servers[s].alive {
        return;
    }
    world.servers[s].alive = true;
    world.trace.line(None, || format!("s{} starts", s + 1));
    world.servers[s].note_start(s);
    if let Some(id) = world.servers[s].id {
        recover(world, s, id);
    }
    let (now, incarnation) = (world.now, world.servers[s].incarnation);
    let at = now + world.rng.random_range(500..TICK_US);
    world.schedule(
        at,
        Scheduled::Tick {
            server: s,
            incarnation,
        },
    );
    let watched_at = now + world.rng.random_range(1..TICK_US);
    world.schedule(
        watched_at,
        Scheduled::Watch {
            server: s,
            incarnation,
        },
    );
    copier::schedule_pass(world, s, incarnation);
    let at = now + world.rng.random_range(100..3_000);
    world.schedule(
        at,
        Scheduled::ControlDial {
            server: s,
            incarnation,
        },
    );
    for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
        let at = now + world.rng.random_range(100..50_000);
        world.schedule(at, Scheduled::Dial { a: s, b: peer });
    }
}

/// Reads the journal. Groups that are whole are held, and so are damaged ones, which are reported as such. Logs of no
/// use are dropped, and caught up from others.
fn recover(world: &mut World, s: usize, id: ServerId) {
    let before: Vec<GroupId> = world.servers[s].disk.images.keys().copied().collect();
    let held = world.servers[s].disk.recover(id);
    for group_id in before.iter().filter(|id| !held.contains_key(id)) {
        note_damaged(world, s, *group_id);
    }
    for (group_id, held) in held {
        let is_damaged = held.report.as_ref().is_some_and(|report| report.damaged);
        let server = &mut world.servers[s];
        let (hosting, now) = (server.new_hosting(), server.clock_us(world.now));
        let mut out = Outputs::default();
        let group = Group::recovered(group_id, id, held.replica, is_damaged, hosting, now, &mut out);
        groups::host(world, s, group_id, group);
        outputs::carry_out_all(world, s, group_id, &mut out);
        if is_damaged || held.report.is_none() {
            note_damaged(world, s, group_id);
        }
        match held.report {
            Some(report) => world.servers[s].held.push(report),
            None => {
                let hosted = world.servers[s].groups.get_mut(&group_id);
                hosted.expect("it has just come").is_useless = true;
                hosting::drop_group(world, s, group_id, None);
            }
        }
    }
}

fn note_damaged(world: &mut World, s: usize, group_id: GroupId) {
    world.counts.damaged_groups += 1;
    world.trace.line(Some(World::index_of(group_id)), || {
        format!("s{} found it damaged", s + 1)
    });
    world.servers[s].forget(group_id);
}
