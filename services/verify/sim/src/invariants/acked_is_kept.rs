//! No acked entry is lost: the head of an epoch has all that heads of earlier epochs ever committed, before it became
//! head or after.

use crate::fleet::World;

pub fn after_adoption(world: &World, s: usize, g: usize) {
    let hosted = &world.servers[s].groups[&World::group_id(g)];
    if hosted.replica().is_head() {
        head_has_all(world, s, g);
    }
}

/// This replica committed.
pub fn after_commit(world: &World, by: usize, g: usize) {
    let generation = world.generation_of(by, g);
    for s in (0..world.servers.len()).filter(|s| world.generation_of(*s, g) == generation) {
        let hosted = world.servers[s].groups.get(&World::group_id(g));
        if hosted.is_some_and(|hosted| hosted.replica().is_head()) {
            head_has_all(world, s, g);
        }
    }
}

fn head_has_all(world: &World, s: usize, g: usize) {
    let replica = world.servers[s].groups[&World::group_id(g)].replica();
    let Some(last) = world.ledgers[g].last_before(replica.epoch()) else {
        return;
    };
    let log = replica.log();
    let has = last.index <= log.base().index || log.epoch_at(last.index) == Some(last.epoch);
    assert!(
        has,
        "an acked entry is lost: s{} is head and has not what epoch {} committed at {}; its log ends at {}",
        s + 1,
        last.epoch,
        last.index,
        log.last_index()
    );
}
