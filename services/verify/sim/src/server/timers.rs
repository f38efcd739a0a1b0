//! Groups ask to be woken, or to be allowed something, later.

use quorate_types::{GroupId, Micros};
use rand::Rng;

use crate::fleet::{Scheduled, World};

/// Longer than a server waits (`COMMIT_NOTICE_HOLD_MS`). A commit notice that no batch carries comes late, or with the
/// next tick.
const NOTICE_HOLD_US_MAX: Micros = 20_000;

/// The longest wait of a learner that may get all that it wants.
const CATCHUP_PACE_US_MAX: Micros = 1_000;

/// Without a limit in the plan, a learner gets all that it wants, soon. With one, each tick allows it so much.
pub(super) fn schedule_catchup(world: &mut World, s: usize, group_id: GroupId) {
    let Some(hosted) = world.servers[s].groups.get_mut(&group_id) else {
        return;
    };
    if world.plan.catchup_bytes.is_none() && !std::mem::replace(&mut hosted.is_catchup_scheduled, true) {
        let (incarnation, group) = (world.servers[s].incarnation, group_id);
        let at = world.now + world.rng.random_range(1..CATCHUP_PACE_US_MAX);
        world.schedule(
            at,
            Scheduled::CatchupDue {
                server: s,
                incarnation,
                group,
            },
        );
    }
}

pub(super) fn schedule_commit_notice(world: &mut World, s: usize, group_id: GroupId) {
    let Some(hosted) = world.servers[s].groups.get_mut(&group_id) else {
        return;
    };
    if !std::mem::replace(&mut hosted.is_notice_scheduled, true) {
        let (incarnation, group) = (world.servers[s].incarnation, group_id);
        let at = world.now + world.rng.random_range(1..NOTICE_HOLD_US_MAX);
        world.schedule(
            at,
            Scheduled::CommitNoticeDue {
                server: s,
                incarnation,
                group,
            },
        );
    }
}

pub(super) fn schedule_wake(world: &mut World, s: usize, group_id: GroupId) {
    let now = world.now;
    let server = &mut world.servers[s];
    let clock_us = server.clock_us(now);
    let Some(hosted) = server.groups.get_mut(&group_id) else {
        return;
    };
    let Some(wake_us) = hosted.group.next_wake(clock_us) else {
        return;
    };
    let at = server.when(wake_us).max(now + 1);
    let hosted = server.groups.get_mut(&group_id).expect("looked up above");
    if hosted.wake_at > now && hosted.wake_at <= at {
        return;
    }
    hosted.wake_at = at;
    let incarnation = server.incarnation;
    world.schedule(
        at,
        Scheduled::Wake {
            server: s,
            incarnation,
            group: group_id,
        },
    );
}
