//! Every member of a chain has all that earlier epochs committed, for good: any of them may be the next head. One whose disk
//! lied lacks what it lost until it has learned it again.

use quorate_types::GroupConfig;

use crate::fleet::World;

pub fn after_adoption(world: &World, s: usize, g: usize, config: &GroupConfig) {
    let me = world.servers[s].id;
    if !config.replicas.iter().any(|member| Some(member.server_id) == me) {
        return;
    }
    let Some(last) = world.ledgers[g].last_before(config.epoch) else {
        return;
    };
    if world.servers[s].lied.contains_key(&config.group_id) {
        return;
    }
    assert!(
        world.has(s, config.group_id, last.index, last.epoch),
        "s{} is in the chain of epoch {} and has not what epoch {} committed at {}",
        s + 1,
        config.epoch,
        last.epoch,
        last.index
    );
}
