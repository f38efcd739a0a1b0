//! A batch that a replica counts as durable is on its disk, as that very batch. The replica's level rests on it, and
//! commitment on levels.

use quorate_types::Durability;

use crate::fleet::World;

pub fn check(world: &World, s: usize, g: usize) {
    let group_id = World::group_id(g);
    let Some(hosted) = world.servers[s].groups.get(&group_id) else {
        return;
    };
    let replica = hosted.replica();
    let durable = replica.durable_index();
    if replica.durability() != Durability::Persistent || durable == 0 {
        return;
    }
    let Some(epoch) = replica.log().epoch_at(durable) else {
        return;
    };
    assert!(
        world.has(s, group_id, durable, epoch),
        "s{} counts the batch of epoch {epoch} at {durable} as durable, and its disk does not have it",
        s + 1
    );
}
