//! In one epoch one head commits.

use quorate_types::Index;

use crate::world::World;

pub fn check(world: &mut World, s: usize, from: Index, to: Index) {
    let replica = world.servers[s].replica.as_ref().expect("it committed");
    let head = *world.ledger.heads.entry(replica.epoch()).or_insert(s);
    assert_eq!(head, s, "two heads commit in epoch {}", replica.epoch());
    let config = replica.config().expect("a head is configured");
    assert!(
        config.has_quorum(),
        "{} to {to} committed by fewer than min_replicas",
        from + 1
    );
}
