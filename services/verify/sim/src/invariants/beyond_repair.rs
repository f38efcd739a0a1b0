//! A batch that no replica has any more cannot heal. Its record was damaged on a running server, and the others that had
//! it left the chain before the repair. Such a group keeps short of its degree until its owner resets it.

use quorate_types::ServerId;

use crate::fleet::World;

/// Whether some replica of the group's chain misses the bytes of a batch, in memory and on disk, that no other has.
pub fn is_beyond_repair(world: &World, g: usize) -> bool {
    let group_id = World::group_id(g);
    let Some(group) = world.coordinators.known().groups.get(&group_id) else {
        return false;
    };
    let line = group.chain.iter().chain(&group.learner);
    let places: Vec<usize> = line.filter_map(|id: &ServerId| world.server_of(*id)).collect();
    places.iter().any(|s| {
        let disk = &world.servers[*s].disk;
        let lost = disk.unreadable_records();
        let mut batches = disk.batches_in(group_id, &lost).into_iter();
        batches.any(|(index, _)| {
            let hosted = world.servers[*s].groups.get(&group_id);
            let is_held = hosted.is_some_and(|hosted| hosted.replica().log().header(index).is_some());
            is_held && !places.iter().any(|m| has_bytes(world, *m, g, index))
        })
    })
}

fn has_bytes(world: &World, s: usize, g: usize, index: quorate_types::Index) -> bool {
    let group_id = World::group_id(g);
    let Some(hosted) = world.servers[s].groups.get(&group_id) else {
        return false;
    };
    let disk = &world.servers[s].disk;
    let on_disk = || {
        disk.spot(group_id, index)
            .is_some_and(|spot| disk.read(spot).is_ok())
    };
    hosted.replica().log().header(index).is_some() && (hosted.replica().payload(index).is_some() || on_disk())
}
