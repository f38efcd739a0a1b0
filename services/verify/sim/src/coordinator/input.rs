//! Messages and commands into a coordinator, with its state checked before and after.

use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::coordinator::Event;
use quorate_coordinator_core::engine::{Input, Now};

use crate::fleet::World;
use crate::invariants;

/// The time by its own clocks.
pub(super) fn clocks(world: &World, c: usize) -> Now {
    world.coordinators.members[c].clocks(world.now)
}

pub(super) fn feed(world: &mut World, c: usize, input: Input) {
    event(world, c, Event::Input(input));
}

pub(super) fn event(world: &mut World, c: usize, event: Event) {
    let now = clocks(world, c);
    // Decisions of one that was deposed and does not know it are never agreed.
    if world.coordinators.leader() != Some(c) {
        return world.coordinators.members[c].decisions.take(now, event);
    }
    let before = invariants::before_coordinator(world);
    world.coordinators.members[c].decisions.take(now, event);
    if world.coordinators.leader() != Some(c) {
        return;
    }
    invariants::after_coordinator(world, &before);
    if world.counts.events.is_multiple_of(16) {
        let state = world.coordinators.state();
        state.validate().expect("the coordinator's state is sound");
    }
}

/// Whether it takes inputs of servers and people.
pub(super) fn is_open(world: &World, c: usize) -> bool {
    let now = clocks(world, c);
    world.coordinators.members[c].decisions.is_open(now.ms)
}

/// Gives a coordinator a command, as the API does.
pub(super) fn command(world: &mut World, c: usize, command: Command) {
    world.coordinators.calls += 1;
    let call = world.coordinators.calls;
    feed(world, c, Input::Command { call, command });
}
