//! When a head commits, every replica of its chain has what it commits — on stable storage, in a persistent group.
//! A member that lost everything since is not counted.

use quorate_types::Index;

use crate::world::World;

pub fn check(world: &World, s: usize, to: Index) {
    let replica = world.servers[s].replica.as_ref().expect("it committed");
    let epoch = world.ledger.at(to).expect("just committed").epoch;
    for member in &world.master.of_epoch(replica.epoch()).chain {
        if world.is_intact(*member) {
            let has = world.servers[member.0].has(world.plan.durability, to, epoch);
            assert!(
                has,
                "s{} commits {to} which s{} does not have for good",
                s + 1,
                member.0 + 1
            );
        }
    }
}
