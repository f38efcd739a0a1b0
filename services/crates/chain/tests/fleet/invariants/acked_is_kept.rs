//! No acked entry is lost: every member of the latest chain that has not lost everything has, for good, all that was
//! ever committed — whenever a chain is issued, and ever after.

use crate::world::World;

pub fn after_issue(world: &World) {
    super::trim_is_kept(world);
    after_commit(world);
}

pub fn after_commit(world: &World) {
    for (s, _) in &world.master.latest().chain {
        member(world, *s);
    }
}

pub fn member(world: &World, s: usize) {
    let Some(last) = world.ledger.last() else { return };
    let latest = world.master.latest();
    for member in latest.chain.iter().filter(|m| m.0 == s && world.is_intact(**m)) {
        let has = world.servers[member.0].has(world.plan.durability, last.index, last.epoch);
        assert!(
            has,
            "s{} is in the chain of epoch {} and lacks {}",
            s + 1,
            world.master.epoch,
            last.index
        );
    }
}
