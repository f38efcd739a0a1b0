//! Coordinators are stopped, killed, and started again from their logs.

use quorate_types::Micros;
use rand::Rng;

use super::{operator, resets};
use crate::fleet::{Node, Scheduled, World};
use crate::server::control;

pub fn pause(world: &mut World, c: usize, until: Micros) {
    world.coordinators.members[c].paused_until = until;
    world.schedule(until, Scheduled::CoordinatorResume { member: c });
}

pub fn crash(world: &mut World, c: usize) -> bool {
    if !end(world, c) {
        return false;
    }
    let long = world.rng.random_bool(0.2);
    let length = if long { 4_000_000 } else { 400_000 };
    let at = world.now + world.rng.random_range(1_000..length);
    world.schedule(at, Scheduled::CoordinatorRestart { member: c });
    true
}

/// Its process ends.
pub(super) fn end(world: &mut World, c: usize) -> bool {
    if !world.coordinators.members[c].up {
        return false;
    }
    world.coordinators.keep_state_of(c);
    let member = &mut world.coordinators.members[c];
    member.up = false;
    member.incarnation += 1;
    member.log.crash(&mut world.rng);
    close_to_members(world, c);
    for s in 0..world.servers.len() {
        if world.servers[s]
            .control
            .as_ref()
            .is_some_and(|control| control.member == c)
        {
            control::disconnect(world, s);
        }
    }
    if !world.coordinators.is_alone() {
        // Requests to it may be lost with it.
        operator::repeat_requests(world);
    }
    true
}

/// Others see the end of its connections, but for those that nothing reaches. It may live: connections break as well.
pub fn close_to_members(world: &mut World, from: usize) {
    for member in 0..world.coordinators.members.len() {
        let is_blocked = world.is_blocked(Node::Coordinator(from), Node::Coordinator(member));
        if member == from || is_blocked || world.rng.random_bool(0.2) {
            continue;
        }
        let at = world.now + world.plan.member_delay_us_max + world.rng.random_range(20..5_000);
        let incarnation = world.coordinators.members[member].incarnation;
        world.schedule(
            at,
            Scheduled::MemberClosed {
                member,
                from,
                incarnation,
            },
        );
    }
}

pub fn restart(world: &mut World, c: usize) {
    if world.coordinators.members[c].up || world.coordinators.members[c].is_gone {
        return;
    }
    let (now, seed) = (world.now, world.rng.random());
    world.coordinators.members[c].restart(&world.plan, seed, now);
    if world.coordinators.is_alone() {
        world.coordinators.members[c].lead_at_once(now);
    }
    world.trace.line(None, || format!("coordinator {} starts", c + 1));
    let restores = &mut world.coordinators.restores;
    restores.heard.clear();
    if restores.newest.is_none() {
        restores.newest_state = None;
    }
    // The operators who issued the tokens and asked for the groups ask again.
    operator::repeat_requests(world);
    if world.coordinators.is_alone() {
        resets::notice(world);
    }
    let incarnation = world.coordinators.members[c].incarnation;
    let member = c;
    world.schedule(now + 1_000, Scheduled::CoordinatorTick { member, incarnation });
}
