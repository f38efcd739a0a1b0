//! An operator puts an older copy of the coordinator's log in its place, and the newest one back when the coordinator
//! says that it is behind.

use quorate_coordinator_core::engine::{Behind, Input};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_types::Micros;
use rand::Rng;

use super::{input, outages};
use crate::fleet::{CoordinatorLog, World};
use crate::plan::Fault;

/// Copies that an operator keeps.
const COPIES_MAX: usize = 4;
/// How long operators watch a roll call that waits for them.
const WATCHED_US: Micros = 1_500_000;

/// Copies the log now and then, as a backup does.
pub(super) fn copy(world: &mut World) {
    if !world.is_fault_on(Fault::CoordinatorRestore) || !world.rng.random_bool(0.05) {
        return;
    }
    let restores = &mut world.coordinator.restores;
    if restores.copies.len() >= COPIES_MAX {
        let at = world.rng.random_range(0..COPIES_MAX);
        restores.copies.remove(at);
    }
    restores.copies.push(world.coordinator.log.copy());
}

/// Kills the coordinator, and puts a copy in the place of its log.
pub fn restore(world: &mut World) -> bool {
    if !world.coordinator.up || world.coordinator.restores.copies.is_empty() {
        return false;
    }
    let is_on_copy = world.coordinator.restores.newest.is_some();
    if is_on_copy || !outages::crash(world) {
        return false;
    }
    let restores = &mut world.coordinator.restores;
    let at = world.rng.random_range(0..restores.copies.len());
    let copy = restores.copies[at].clone();
    let newest = std::mem::replace(&mut world.coordinator.log, copy);
    let state = newest.state();
    restores.lacks_epochs = lacks_epochs(&state, &world.coordinator.log);
    restores.newest_state = Some(Box::new(state));
    restores.newest = Some(newest);
    true
}

/// Whether the newest log has issued epochs that the copy has not.
fn lacks_epochs(newest: &CoordinatorState, copy: &CoordinatorLog) -> bool {
    let copy = copy.state();
    let known = |id| copy.groups.get(id).map_or(0, |group| group.epoch);
    (newest.groups.values()).any(|group| group.epoch > known(&group.group_id))
}

/// The coordinator says that its log is behind, and ends.
pub(super) fn end(world: &mut World, behind: &Behind) {
    world
        .trace
        .line(None, || format!("the coordinator ends: {}", behind.evidence));
    world.counts.restores_found += 1;
    let newest = world.coordinator.restores.newest.take();
    assert!(
        newest.is_some() || world.coordinator.restores.went_on,
        "the newest log is said to be behind: {}",
        behind.evidence
    );
    // The log went on from a copy, as nobody who was heard knew more. Now somebody does, and people must decide.
    world.is_given_up = newest.is_none();
    outages::crash(world);
    put_back(world, newest);
}

fn put_back(world: &mut World, newest: Option<CoordinatorLog>) {
    if let Some(newest) = newest {
        world.coordinator.log = newest;
    }
}

/// A majority was heard on an older copy. If none of them was told more, though epochs were issued that the copy lacks,
/// the coordinator cannot know, and people must not have restored it. Those who were told are away, or gone for ever.
pub(super) fn look_whether_decidable(world: &mut World) {
    let restores = &world.coordinator.restores;
    if restores.newest.is_none() {
        return;
    }
    let state = world.coordinator.state();
    let knows_more = |s: &usize| {
        let server = &world.servers[*s];
        let mut places = [server.place, server.kept_place].into_iter().flatten();
        // The word of a machine that has not joined yet is nobody's.
        server.credential.is_some() && places.any(|place| !state.history.contains(place))
    };
    if restores.heard.iter().any(knows_more) {
        return;
    }
    world.is_given_up = restores.lacks_epochs;
    // The copy is the newest log from here on.
    let restores = &mut world.coordinator.restores;
    (restores.newest, restores.newest_state) = (None, None);
    restores.went_on = true;
}

/// An operator ends a roll call that waits in vain, if the log is the newest. Otherwise the newest is put back.
pub(super) fn watch_roll_call(world: &mut World) {
    let now_ms = input::clocks(world).ms;
    let roll_call = world.coordinator.engine().roll_call(now_ms);
    if roll_call.is_none() && world.coordinator.state().servers_alive() > 0 {
        // Servers that were heard have not been told more than the copy says: it is as good as the newest.
        let restores = &mut world.coordinator.restores;
        restores.went_on |= restores.newest.take().is_some();
        restores.newest_state = None;
    }
    if !roll_call.is_some_and(|view| view.is_stuck) {
        world.coordinator.restores.stuck_since = None;
        return;
    }
    let since = *world.coordinator.restores.stuck_since.get_or_insert(world.now);
    if world.now < since + WATCHED_US {
        return;
    }
    world.coordinator.restores.stuck_since = None;
    if world.coordinator.restores.newest.is_some() {
        outages::crash(world);
        let newest = world.coordinator.restores.newest.take();
        return put_back(world, newest);
    }
    world.counts.roll_calls_ended += 1;
    input::feed(world, Input::EndRollCall);
}
