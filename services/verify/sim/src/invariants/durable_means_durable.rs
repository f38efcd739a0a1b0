//! When a head commits, every replica of its chain has what it commits — on stable storage, in a persistent group.
//! A replica that lost everything since is not counted.

use quorate_types::Index;

use crate::fleet::World;

pub fn check(world: &World, s: usize, g: usize, to: Index) {
    let group_id = World::group_id(g);
    let config = world.servers[s].groups[&group_id]
        .replica()
        .config()
        .expect("it committed");
    let ledger = &world.ledgers[g];
    let batch_epoch = ledger.at(to).expect("just committed").epoch;
    for member in &config.replicas {
        let Some(m) = world.server_of(member.server_id) else {
            continue;
        };
        let adoption = ledger.adopted.get(&(config.epoch, m));
        let adoption = adoption.unwrap_or_else(|| {
            panic!(
                "s{} commits {to} in epoch {}, which s{} never adopted",
                s + 1,
                config.epoch,
                m + 1
            )
        });
        assert!(
            adoption.lineage != world.servers[m].lineage(group_id) || world.has(m, group_id, to, batch_epoch),
            "durable means durable: s{} commits {to} which s{} does not have for good",
            s + 1,
            m + 1
        );
    }
}
