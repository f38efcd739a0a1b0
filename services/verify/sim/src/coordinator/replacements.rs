//! A coordinator comes in the place of another, whose disk is lost or damaged, or which is healthy still. An operator has
//! the newcomer taken in, and the other one removed, as `quorate-coordinator replace` does.

use quorate_coordinator_core::coordinator::Event;
use quorate_coordinator_core::log::Base;
use quorate_quorum::{Change, Event as QuorumEvent, MemberId};
use rand::Rng;

use super::{input, outages};
use crate::fleet::{Member, MemberLog, Replacement, SPARES, Scheduled, World};

/// How often the operator looks, of the leader's ticks.
const LOOKS: f64 = 0.2;

/// Its disk is lost with its process.
pub fn lose(world: &mut World, c: usize) -> bool {
    if !is_possible(world, c) {
        return false;
    }
    outages::end(world, c);
    world.coordinators.members[c].is_gone = true;
    begin(world, c);
    true
}

/// A bit of its log is flipped, and its process is killed. It does not start on such a log.
pub fn damage(world: &mut World, c: usize) -> bool {
    if !is_possible(world, c) {
        return false;
    }
    outages::end(world, c);
    let member = &mut world.coordinators.members[c];
    // An operator restarts one whose damage nobody can tell from a torn end.
    if !member.log.damage(&mut world.rng) {
        let at = world.now + 100_000;
        world.schedule(at, Scheduled::CoordinatorRestart { member: c });
        return false;
    }
    member.is_gone = true;
    begin(world, c);
    true
}

/// Another one comes while it runs.
pub fn replace(world: &mut World, c: usize) -> bool {
    let is_possible = is_possible(world, c);
    if is_possible {
        begin(world, c);
    }
    is_possible
}

/// One at a time: with another one lost, a majority would be.
fn is_possible(world: &World, c: usize) -> bool {
    let coordinators = &world.coordinators;
    let spares = world.plan.coordinators + SPARES;
    !coordinators.is_alone()
        && coordinators.replacement.is_none()
        && coordinators.members.len() < spares
        && !coordinators.members[c].is_gone
}

/// The newcomer starts with an empty disk.
fn begin(world: &mut World, old: usize) {
    let new = world.coordinators.members.len();
    let id = MemberId(new as u64 + 1);
    let drift_max = world.plan.drift_permille_max as i64;
    let drift = world.rng.random_range(-drift_max..=drift_max);
    let log = MemberLog::new(&Base::empty(id), None);
    let member = Member::new(&world.plan, id, log, drift, world.now);
    let incarnation = member.incarnation;
    world.coordinators.members.push(member);
    world.coordinators.replacement = Some(Replacement { old, new });
    world.trace.line(None, || {
        format!("coordinator {} comes in the place of {}", new + 1, old + 1)
    });
    let at = world.now + 1_000;
    world.schedule(
        at,
        Scheduled::CoordinatorTick {
            member: new,
            incarnation,
        },
    );
}

/// The operator's next step, by what the leader `c` says.
pub(super) fn go_on(world: &mut World, c: usize) {
    let Some(Replacement { old, new }) = world.coordinators.replacement else {
        return;
    };
    if !world.rng.random_bool(LOOKS) {
        return;
    }
    let (old_id, new_id) = (
        world.coordinators.members[old].id,
        world.coordinators.members[new].id,
    );
    let members = world.coordinators.members[c].decisions.agreed_members();
    if members.get(new_id).is_none() {
        let address = format!("c{new_id}");
        change(world, c, Change::AddLearner { id: new_id, address });
    } else if members.is_voter(new_id) && members.get(old_id).is_some() {
        change(world, c, Change::Remove(old_id));
    } else if members.is_voter(new_id) && c != old {
        end(world, old);
    }
}

/// The other one is removed: its machine is switched off.
fn end(world: &mut World, old: usize) {
    outages::end(world, old);
    world.coordinators.members[old].is_gone = true;
    world.coordinators.replacement = None;
    world.counts.coordinators_replaced += 1;
}

fn change(world: &mut World, c: usize, change: Change) {
    world.coordinators.calls += 1;
    let call = world.coordinators.calls;
    input::event(world, c, Event::Quorum(QuorumEvent::Change { call, change }));
}
