//! Messages and commands into the coordinator, with its state checked before and after.

use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::coordinator::Event;
use quorate_coordinator_core::engine::{Input, Now};

use crate::fleet::World;
use crate::invariants;

/// The time by the coordinator's own clocks.
pub(super) fn clocks(world: &World) -> Now {
    let coordinator = &world.coordinator;
    let since = (world.now - coordinator.started_at) as i64;
    let wall_us = 1_700_000_000_000_000 + world.now as i64 + coordinator.wall_offset_us;
    Now {
        ms: ((since + since * coordinator.drift_permille / 1_000) / 1_000) as u64,
        unix_ms: (wall_us / 1_000) as u64,
    }
}

pub(super) fn feed(world: &mut World, input: Input) {
    event(world, Event::Input(input));
}

pub(super) fn event(world: &mut World, event: Event) {
    let now = clocks(world);
    let before = invariants::before_coordinator(world.coordinator.state());
    world.coordinator.decisions.take(now, event);
    invariants::after_coordinator(world, &before);
    if world.counts.events.is_multiple_of(16) {
        let state = world.coordinator.state();
        state.validate().expect("the coordinator's state is sound");
    }
}

/// Gives the coordinator a command, as the API does.
pub(super) fn command(world: &mut World, command: Command) {
    world.coordinator.calls += 1;
    let call = world.coordinator.calls;
    feed(world, Input::Command { call, command });
}
