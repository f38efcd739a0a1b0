//! The chain prefix property: where two neighbours stand in one epoch, the first holds all that the second does.

use quorate_chain::Replica;
use quorate_types::{GroupState, ServerId};

use crate::fleet::World;

pub fn check(world: &World, s: usize, g: usize) {
    let Some(hosted) = world.servers[s].groups.get(&World::group_id(g)) else {
        return;
    };
    let (Some(config), Some(me)) = (hosted.replica().config(), world.servers[s].id) else {
        return;
    };
    if let Some(before) = config.predecessor_of(me) {
        pair(world, g, before.server_id, me);
    }
    if let Some(behind) = config.successor_of(me) {
        pair(world, g, me, behind.server_id);
    }
}

fn pair(world: &World, g: usize, first: ServerId, second: ServerId) {
    let replica = |id: ServerId| {
        let s = world.server_of(id)?;
        Some(world.servers[s].groups.get(&World::group_id(g))?.replica())
    };
    let (Some(first), Some(second)) = (replica(first), replica(second)) else {
        return;
    };
    let stands = |r: &Replica| r.state() != GroupState::Syncing;
    if first.epoch() != second.epoch() || !stands(first) || !stands(second) {
        return;
    }
    let (mine, theirs) = (first.log(), second.log());
    let last = theirs.last_index();
    assert!(
        last <= mine.last_index(),
        "a successor holds {last}, its predecessor {}",
        mine.last_index()
    );
    if last > mine.base().index && last > theirs.base().index {
        assert_eq!(
            mine.epoch_at(last),
            theirs.epoch_at(last),
            "neighbours hold different batches at {last}"
        );
    }
}
