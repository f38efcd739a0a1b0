//! The chain prefix property: of two neighbours that both stand in one epoch, the first holds all that the second
//! does.

use quorate_types::{GroupState, ServerId};

use crate::world::World;

pub fn check(world: &World, s: usize) {
    let Some(replica) = &world.servers[s].replica else {
        return;
    };
    let Some(config) = replica.config() else { return };
    let me = world.servers[s].id;
    if let Some(before) = config.predecessor_of(me) {
        pair(world, before.server_id, me);
    }
    if let Some(behind) = config.successor_of(me) {
        pair(world, me, behind.server_id);
    }
    super::acked_is_kept::member(world, s);
}

fn pair(world: &World, first: ServerId, second: ServerId) {
    let replica = |id: ServerId| world.servers[id.0 as usize - 1].replica.as_ref();
    let (Some(first), Some(second)) = (replica(first), replica(second)) else {
        return;
    };
    let stand = |r: &quorate_chain::Replica| r.state() != GroupState::Syncing;
    if first.epoch() != second.epoch() || !stand(first) || !stand(second) {
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
