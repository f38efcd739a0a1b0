//! No acked entry is lost: whoever is head of an epoch has all that was ever committed before, and whatever is
//! committed after by an older head.

use crate::world::World;

pub fn after_adoption(world: &World, s: usize, g: usize) {
    let hosted = &world.servers[s].groups[&World::group_id(g)];
    if hosted.replica.is_head() {
        head_has_all(world, s, g);
    }
}

pub fn after_commit(world: &World, g: usize) {
    for s in 0..world.servers.len() {
        let hosted = world.servers[s].groups.get(&World::group_id(g));
        if hosted.is_some_and(|hosted| hosted.replica.is_head() && is_newest(world, s, g)) {
            head_has_all(world, s, g);
        }
    }
}

/// A head that was deposed and has not heard does not count.
fn is_newest(world: &World, s: usize, g: usize) -> bool {
    let epoch = world.servers[s].groups[&World::group_id(g)].replica.epoch();
    world.ledgers[g]
        .configs
        .last_key_value()
        .is_none_or(|(newest, _)| *newest == epoch)
}

fn head_has_all(world: &World, s: usize, g: usize) {
    let Some(last) = world.ledgers[g].last() else {
        return;
    };
    let log = world.servers[s].groups[&World::group_id(g)].replica.log();
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
