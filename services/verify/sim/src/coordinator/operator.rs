//! People's requests to the coordinator, through the API: join tokens, groups, resets. A request without an answer is
//! made again.

use quorate_coordinator_core::command::{Command, JoinTokenTerms};
use quorate_coordinator_core::state::{GroupStatus, Server};
use quorate_types::{GroupId, ServerId, Sla};
use rand::Rng;
use uuid::Uuid;

use super::{drains, input, moves};
use crate::fleet::World;
use crate::server::control;

/// Asks for these groups.
pub fn admit(world: &mut World, slas: Vec<(GroupId, Sla)>) {
    world.coordinators.to_admit = slas;
}

/// Makes the requests that are still to be made, with each tick.
pub(super) fn make_requests(world: &mut World, c: usize) {
    for digest in std::mem::take(&mut world.coordinators.invitations) {
        let token = JoinTokenTerms {
            expires_at_ms: u64::MAX / 2,
            name: None,
            auxiliary: false,
        };
        input::command(world, c, Command::IssueJoinToken { digest, token });
    }
    let joined = world.coordinators.known().servers.len();
    if joined >= world.servers.len() && !world.coordinators.to_admit.is_empty() {
        for (group_id, sla) in world.coordinators.to_admit.clone() {
            input::command(
                world,
                c,
                Command::Admit {
                    group_id,
                    project_id: Uuid::from_u128(1),
                    sla,
                },
            );
        }
        forget_admitted(world);
    }
    let engine = world.coordinators.members[c].decisions.engine();
    if engine.is_none_or(|engine| engine.roll_call(0).is_some()) {
        // Calls that wait for its end would be answered later.
        return;
    }
    drains::make_requests(world, c);
    moves::make_requests(world, c);
    give_up_machines(world, c);
    release_quarantined(world, c);
    if world.plan.owners_reset {
        ask_for_resets(world, c);
    }
}

/// Releases groups that are quarantined as a whole: now and then while the cause is there, and when it is gone.
fn release_quarantined(world: &mut World, c: usize) {
    let groups = world.coordinators.known().groups.values();
    let whole = groups.filter(|group| group.quarantine.is_whole());
    for group_id in whole.map(|group| group.group_id).collect::<Vec<_>>() {
        if world.rng.random_bool(if world.is_healing { 0.1 } else { 0.005 }) {
            world.counts.released += 1;
            input::command(world, c, Command::Release { group_id });
        }
    }
}

/// Gives replaced machines up after a while: they will not come back. Machines that were restarted before they knew that
/// they had joined are given up, too, since they are refused by their own names.
fn give_up_machines(world: &mut World, c: usize) {
    let servers = world.coordinators.known().servers.values();
    let is_gone = |server: &&Server| {
        let here = (0..world.servers.len()).find(|s| world.name_of(*s) == server.name);
        let has_not_joined = |s: usize| {
            let process = &world.servers[s];
            process.id.is_none() && process.incarnation_name(s) != server.incarnation
        };
        !server.alive && here.map_or(world.plan.owners_reset, has_not_joined)
    };
    let failed: Vec<ServerId> = servers.filter(is_gone).map(|s| s.server_id).collect();
    for server in failed {
        if world.server_of(server).is_none() && world.rng.random_bool(0.02) {
            world.counts.forgotten += 1;
            input::command(world, c, Command::Forget { server });
        }
    }
}

/// Owners reset lost groups after a while. Now and then an owner asks for it whose group is not lost.
fn ask_for_resets(world: &mut World, c: usize) {
    let groups = world.coordinators.known().groups.values();
    let groups: Vec<_> = groups.map(|g| (g.group_id, g.epoch, g.status)).collect();
    for (group_id, epoch, status) in groups {
        let is_lost = status == GroupStatus::Lost;
        if world.rng.random_bool(if is_lost { 0.05 } else { 0.005 }) {
            input::command(
                world,
                c,
                Command::Reset {
                    group_id,
                    epoch,
                    entries_before: 0,
                    bytes_before: 0,
                },
            );
        }
    }
}

/// Asks again for all that was asked of the coordinator and is not in its state.
pub(super) fn repeat_requests(world: &mut World) {
    let slas = world.plan_slas();
    admit(world, slas);
    forget_admitted(world);
    for s in 0..world.servers.len() {
        if world.servers[s].id.is_none() {
            control::invite(world, s);
        }
    }
}

fn forget_admitted(world: &mut World) {
    let mut to_admit = std::mem::take(&mut world.coordinators.to_admit);
    let groups = &world.coordinators.state().groups;
    to_admit.retain(|(id, _)| !groups.contains_key(id));
    world.coordinators.to_admit = to_admit;
}
