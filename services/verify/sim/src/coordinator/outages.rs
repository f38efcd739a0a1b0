//! The coordinator is stopped, killed, and started again from its log.

use quorate_coordinator_core::command::Timed;
use quorate_coordinator_core::engine::{Engine, Now};
use quorate_coordinator_core::state::{CoordinatorState, applied};
use quorate_types::Micros;
use rand::Rng;

use super::{operator, resets};
use crate::fleet::{Scheduled, World, begin_run, settings};
use crate::server::control;

pub fn pause(world: &mut World, until: Micros) {
    world.coordinator.paused_until = until;
    world.schedule(until, Scheduled::CoordinatorResume);
}

pub fn crash(world: &mut World) -> bool {
    if !world.coordinator.up {
        return false;
    }
    world.coordinator.up = false;
    world.coordinator.incarnation += 1;
    world.coordinator.log.crash(&mut world.rng);
    for s in 0..world.servers.len() {
        control::disconnect(world, s);
    }
    let long = world.rng.random_bool(0.2);
    let length = if long { 4_000_000 } else { 400_000 };
    let at = world.now + world.rng.random_range(1_000..length);
    world.schedule(at, Scheduled::CoordinatorRestart);
    true
}

pub fn restart(world: &mut World) {
    if world.coordinator.up {
        return;
    }
    let mut state = world.coordinator.log.recover();
    begin_run_on(world, &mut state);
    state.validate().expect("the coordinator's state is sound");
    world.trace.line(None, || {
        format!("the coordinator starts: {} groups", state.groups.len())
    });
    let settings = settings(&world.plan);
    let now = world.now;
    let coordinator = &mut world.coordinator;
    coordinator.started_at = now;
    coordinator.place = state.history.place();
    let clocks = Now {
        ms: 0,
        unix_ms: now / 1_000,
    };
    coordinator.engine = Engine::new(state, settings, Vec::new(), clocks);
    coordinator.up = true;
    coordinator.paused_until = 0;
    coordinator.is_syncing = false;
    coordinator.waiting.clear();
    coordinator.outgoing.clear();
    coordinator.places.clear();
    coordinator.restores.heard.clear();
    if coordinator.restores.newest.is_none() {
        coordinator.restores.newest_state = None;
    }
    // The operators who issued the tokens and asked for the groups ask again.
    let incarnation = coordinator.incarnation;
    operator::repeat_requests(world);
    resets::notice(world);
    world.schedule(now + 1_000, Scheduled::CoordinatorTick { incarnation });
}

/// Logs the start, as the process does before it listens.
fn begin_run_on(world: &mut World, state: &mut CoordinatorState) {
    let command = begin_run(world.rng.random());
    let (_, issued) = applied(state, 0, &command);
    let timed = Timed {
        at_ms: 0,
        command,
        issued: Some(issued),
    };
    world.coordinator.log.append(vec![timed]);
    world.coordinator.log.synced();
}
