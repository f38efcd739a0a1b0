//! Assertions that stop replicas, as `services/replica/src/shard/quarantine.rs` and the shard take them. The rules are
//! [`Quarantines`](quorate_group::Quarantines).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use quorate_group::Release;
use quorate_types::{GroupId, planted};

use crate::client::connection;
use crate::fleet::World;

/// Runs a step of a group, where a batch may be poisoned. `None`: the planted assertion stopped it. Any other panic goes on:
/// it is what a seed is for.
pub(super) fn guard<T>(may_be_poisoned: bool, step: impl FnOnce() -> T) -> Option<T> {
    if !may_be_poisoned {
        return Some(step());
    }
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(stepped) => Some(stepped),
        Err(panic) if is_planted(&*panic) => None,
        Err(panic) => resume_unwind(panic),
    }
}

fn is_planted(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()) == Some(planted::POISON)
}

/// The group's state and the outputs of its step are gone, as in a crash; what is on the disk stays.
pub(super) fn begin(world: &mut World, s: usize, group_id: GroupId) {
    let server = &mut world.servers[s];
    let mut hosted = server.groups.remove(&group_id).expect("it took a step");
    let epoch = hosted.replica().epoch();
    let (group, turn) = (&mut hosted.group, &mut server.turn);
    let released = server.quarantined.begin(group, planted::POISON, turn);
    server.delivered = None;
    world.counts.quarantined += 1;
    let g = World::index_of(group_id);
    world.trace.line(Some(g), || {
        format!("s{} has it in quarantine, of epoch {epoch}", s + 1)
    });
    for release in released {
        let server = &mut world.servers[s];
        match release {
            Release::Copiers => server.copiers.retain(|_, (group, _)| *group != group_id),
            Release::Reports => server.reports.forget(group_id),
            Release::Clients => connection::break_all_of(world, s, g),
            // Each heartbeat asks for the list.
            Release::Listed(_) => {}
        }
    }
}
