//! Nothing is committed by fewer than `min_replicas`.

use crate::fleet::World;

pub fn check(world: &World, s: usize, g: usize) {
    let replica = world.servers[s].groups[&World::group_id(g)].replica();
    let config = replica.config().expect("a head is configured");
    assert!(
        config.has_quorum(),
        "s{} commits with {} of at least {} replicas",
        s + 1,
        config.replicas.len(),
        config.min_replicas
    );
}
