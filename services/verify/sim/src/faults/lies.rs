//! Disks that lose what they had called durable. A group of two and more replicas withstands one such disk at a time: the
//! others hold what it lost, until it has learned it again. So nothing else goes wrong meanwhile.

use quorate_types::GroupState;
use quorate_types::control::DrainState;
use rand::Rng;

use crate::fleet::World;
use crate::server::process;

/// Kills a head, mostly, and has its disk forget the last records.
pub(super) fn tell(world: &mut World) -> bool {
    let g = world.rng.random_range(0..world.ledgers.len());
    let head = world.head_of(World::group_id(g));
    let any = world.rng.random_range(0..world.servers.len());
    let s = head.filter(|_| world.rng.random_bool(0.7)).unwrap_or(any);
    if !is_calm(world) || !(0..world.ledgers.len()).all(|g| world.others_have(s, g)) {
        return false;
    }
    process::crash_and_lie(world, s)
}

/// Notes the servers that have learned again what their disks lost, or count as replicas no more.
pub(super) fn end(world: &mut World) {
    for s in 0..world.servers.len() {
        for (group_id, epoch) in world.servers[s].lied.clone() {
            let g = World::index_of(group_id);
            let me = world.servers[s].id;
            // A decision that nobody has adopted may not be durable.
            let config = world.ledgers[g].configs.values().next_back();
            let is_member = config.is_some_and(|config| config.line().any(|m| Some(m.server_id) == me));
            let last = world.ledgers[g].last().copied();
            // It has agreed with the others in an epoch of its present process.
            let has_agreed = world.servers[s].groups.get(&group_id).is_some_and(|hosted| {
                hosted.replica().epoch() > epoch && hosted.replica().state() != GroupState::Syncing
            });
            let has_all = last.is_none_or(|last| world.has(s, group_id, last.index, last.epoch));
            if world.ledgers[g].is_lost || !is_member || has_agreed && has_all {
                world.servers[s].lied.remove(&group_id);
            }
        }
    }
}

/// Whether a server still lacks what its disk lost, while it counts as a replica.
pub(super) fn is_believed(world: &World) -> bool {
    let mut servers = world.servers.iter();
    servers.any(|server| !server.lied.is_empty())
}

/// Everybody is up, reaches everybody, and holds what it should.
fn is_calm(world: &World) -> bool {
    let is_well = |s: usize| {
        let server = &world.servers[s];
        server.alive
            && server.paused_until <= world.now
            && !server.disk_fault
            && !server.has_damage
            && server.hang.lasted_us(world.now) == 0
            && server.drain == DrainState::None
            && server.control.as_ref().is_some_and(|c| c.is_registered)
    };
    let is_whole = |g: usize| {
        let group = world.coordinators.known().groups.get(&World::group_id(g));
        // A member that has just returned is known by an old report of its log.
        group.is_some_and(|group| {
            let is_settled = group.formed && group.returned.is_empty();
            !group.lost && is_settled && group.learner.is_none() && group.chain.len() == group.degree()
        })
    };
    let members = &world.coordinators.members;
    let mut members = members.iter().filter(|member| !member.is_gone);
    let coordinators_run = members.all(|member| member.runs(world.now));
    let state = world.coordinators.known();
    let nobody_is_slow = state.servers.values().all(|server| server.slow.is_none());
    // Otherwise the others may leave because they do not reach the server that is restarted.
    let is_patient = world.plan.suspicions.unreachable_ms > 2 * world.plan.reconnect_grace_ms;
    nobody_is_slow
        && is_patient
        && world.coordinators.is_up()
        && coordinators_run
        && world.coordinators.replacement.is_none()
        && world.blocked.is_empty()
        && (0..world.servers.len()).all(is_well)
        && (0..world.ledgers.len()).all(is_whole)
}
