//! An operator puts an older copy of the coordinator's log in its place, and the newest one back when the coordinator
//! says that it is behind.

use quorate_coordinator_core::engine::{Behind, Input};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_types::Micros;
use rand::Rng;

use super::{input, outages};
use crate::fleet::{MemberLog, World};
use crate::plan::Fault;

/// Only one that is alone is put on a copy.
const ONE: usize = 0;
/// Copies that an operator keeps.
const COPIES_MAX: usize = 4;
/// How long operators watch a roll call that waits for them.
const WATCHED_US: Micros = 1_500_000;

/// Copies the log now and then, as a backup does.
pub(super) fn copy(world: &mut World, c: usize) {
    if !world.coordinators.is_alone()
        || !world.is_fault_on(Fault::CoordinatorRestore)
        || !world.rng.random_bool(0.05)
    {
        return;
    }
    let restores = &mut world.coordinators.restores;
    if restores.copies.len() >= COPIES_MAX {
        let at = world.rng.random_range(0..COPIES_MAX);
        restores.copies.remove(at);
    }
    let copy = world.coordinators.members[c].log.copy();
    world.coordinators.restores.copies.push(copy);
}

/// Kills the coordinator, and puts a copy in the place of its log.
pub fn restore(world: &mut World) -> bool {
    let is_alone = world.coordinators.is_alone();
    if !is_alone || !world.coordinators.members[ONE].up || world.coordinators.restores.copies.is_empty() {
        return false;
    }
    let is_on_copy = world.coordinators.restores.newest.is_some();
    if is_on_copy || !outages::crash(world, ONE) {
        return false;
    }
    let restores = &mut world.coordinators.restores;
    let at = world.rng.random_range(0..restores.copies.len());
    let copy = restores.copies[at].clone();
    let newest = std::mem::replace(&mut world.coordinators.members[ONE].log, copy);
    let state = newest.state();
    restores.lacks_epochs = lacks_epochs(&state, &world.coordinators.members[ONE].log);
    restores.newest_state = Some(Box::new(state));
    restores.newest = Some(newest);
    true
}

/// Whether the newest log has issued epochs that the copy has not.
fn lacks_epochs(newest: &CoordinatorState, copy: &MemberLog) -> bool {
    let copy = copy.state();
    let known = |id| copy.groups.get(id).map_or(0, |group| group.epoch);
    (newest.groups.values()).any(|group| group.epoch > known(&group.group_id))
}

/// The coordinator says that its log is behind, and ends.
pub(super) fn end(world: &mut World, c: usize, behind: &Behind) {
    world
        .trace
        .line(None, || format!("the coordinator ends: {}", behind.evidence));
    world.counts.restores_found += 1;
    let newest = world.coordinators.restores.newest.take();
    assert!(
        newest.is_some() || world.coordinators.restores.went_on,
        "the newest log is said to be behind: {}",
        behind.evidence
    );
    // The log went on from a copy, as nobody who was heard knew more. Now somebody does, and people must decide.
    world.is_given_up = newest.is_none();
    outages::crash(world, c);
    put_back(world, newest);
}

fn put_back(world: &mut World, newest: Option<MemberLog>) {
    if let Some(newest) = newest {
        world.coordinators.members[ONE].log = newest;
    }
}

/// A majority was heard on an older copy. If none of them was told more, though epochs were issued that the copy lacks,
/// the coordinator cannot know, and people must not have restored it. Those who were told are away, or gone for ever.
pub(super) fn look_whether_decidable(world: &mut World) {
    let restores = &world.coordinators.restores;
    if restores.newest.is_none() {
        return;
    }
    let state = world.coordinators.state();
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
    let restores = &mut world.coordinators.restores;
    (restores.newest, restores.newest_state) = (None, None);
    restores.went_on = true;
}

/// An operator ends a roll call that waits in vain, if the log is the newest. Otherwise the newest is put back.
pub(super) fn watch_roll_call(world: &mut World, c: usize) {
    let now_ms = input::clocks(world, c).ms;
    let Some(engine) = world.coordinators.members[c].decisions.engine() else {
        return;
    };
    let roll_call = engine.roll_call(now_ms);
    if roll_call.is_none() && world.coordinators.state().servers_alive() > 0 {
        // Servers that were heard have not been told more than the copy says: it is as good as the newest.
        let restores = &mut world.coordinators.restores;
        restores.went_on |= restores.newest.take().is_some();
        restores.newest_state = None;
    }
    if !roll_call.is_some_and(|view| view.is_stuck) {
        world.coordinators.restores.stuck_since = None;
        return;
    }
    let since = *world.coordinators.restores.stuck_since.get_or_insert(world.now);
    if world.now < since + WATCHED_US || !input::is_open(world, c) {
        return;
    }
    world.coordinators.restores.stuck_since = None;
    if world.coordinators.restores.newest.is_some() {
        outages::crash(world, c);
        let newest = world.coordinators.restores.newest.take();
        return put_back(world, newest);
    }
    world.counts.roll_calls_ended += 1;
    input::feed(world, c, Input::EndRollCall);
}
