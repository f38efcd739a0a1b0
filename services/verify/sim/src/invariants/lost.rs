//! The coordinator finds a group lost only when it is: when no replica of its last chain has all committed batches.

use crate::fleet::World;

/// Notes groups that the coordinator found lost, and checks that they are.
pub fn check(world: &mut World) {
    // An older state may show a group as lost that has been reset since.
    if !world.coordinators.is_newest() {
        return;
    }
    for g in 0..world.ledgers.len() {
        let group_id = World::group_id(g);
        let Some(group) = world.coordinators.known().groups.get(&group_id) else {
            continue;
        };
        // Machines that are gone for ever: their operators know, and nothing is left to wait for.
        let is_gone = !group.chain.is_empty() && group.chain.iter().all(|id| world.server_of(*id).is_none());
        if is_gone && !world.ledgers[g].is_lost {
            world.ledgers[g].is_lost = true;
            world.counts.lost_groups += 1;
            continue;
        }
        if !group.lost || world.ledgers[g].is_lost {
            continue;
        }
        let last_chain = world.ledgers[g]
            .configs
            .values()
            .rfind(|config| !config.replicas.is_empty());
        let members = last_chain.map(|config| (config.epoch, config.replicas.clone()));
        if let (Some((epoch, members)), Some(last)) = (members, world.ledgers[g].last().copied()) {
            // Others left in an epoch that no server has adopted any more: the rest may have committed alone.
            let left = members
                .iter()
                .filter(|member| group.last_chain.contains(&member.server_id));
            for member in left {
                let Some(m) = world.server_of(member.server_id) else {
                    continue;
                };
                let kept = world.ledgers[g]
                    .adopted
                    .get(&(epoch, m))
                    .is_some_and(|adoption| adoption.lineage == world.servers[m].lineage(group_id));
                let has = world.servers[m].alive && kept && world.has(m, group_id, last.index, last.epoch);
                assert!(
                    !has,
                    "the group is found lost, and s{} has everything: {:?} of {:?}",
                    m + 1,
                    epoch,
                    group
                );
            }
        }
        world.ledgers[g].is_lost = true;
        world.counts.lost_groups += 1;
    }
}
