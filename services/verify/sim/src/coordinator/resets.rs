//! Resets of lost groups, once they are durable at the coordinator.

use quorate_types::config::Beginning;

use crate::client::writer;
use crate::fleet::World;
use crate::ledger::Ledger;

/// Notices resets that are durable. While those who know them are away, others may show an older state.
pub(super) fn notice(world: &mut World) {
    if !world.coordinators.is_newest() {
        return;
    }
    for g in 0..world.ledgers.len() {
        let group = world.coordinators.known().groups.get(&World::group_id(g));
        let beginning = group.and_then(|group| group.beginning);
        let known = world.ledgers[g].begins_in();
        if let Some(beginning) = beginning.filter(|b| Some(b.epoch) != known) {
            reset_log(world, g, beginning);
        }
    }
}

/// A group's log is reset, and so are its clients.
fn reset_log(world: &mut World, g: usize, beginning: Beginning) {
    world
        .trace
        .line(Some(g), || format!("it is reset: {beginning:?}"));
    world.counts.resets += 1;
    assert!(
        beginning.offset >= world.ledgers[g].end_offset(),
        "no offset is used twice: the log ended at {}, and is reset to {}",
        world.ledgers[g].end_offset(),
        beginning.offset
    );
    for c in 0..world.writers.len() {
        if world.writers[c].group == g {
            writer::reset(world, c, beginning);
        }
    }
    let ledger = Ledger::beginning(beginning);
    let ended = std::mem::replace(&mut world.ledgers[g], ledger);
    world.former_logs[g].ledgers.push(ended);
    world.former_logs[g].reset_in.push(beginning.epoch);
}
