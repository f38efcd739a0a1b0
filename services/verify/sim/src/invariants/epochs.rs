//! An epoch has one configuration, wherever it is adopted; and nobody adopts an epoch in which it lived before it was
//! restarted: it has forgotten what it said then.

use quorate_types::GroupConfig;

use crate::world::World;

pub fn check(world: &mut World, s: usize, g: usize, config: &GroupConfig) {
    let server = &world.servers[s];
    let life = (server.lineage(config.group_id), server.incarnation);
    let ledger = &mut world.ledgers[g];
    let known = ledger
        .configs
        .entry(config.epoch)
        .or_insert_with(|| config.clone());
    let members = |c: &GroupConfig| {
        let ids = |m: &[quorate_types::Member]| m.iter().map(|m| m.server_id).collect::<Vec<_>>();
        (ids(&c.replicas), ids(&c.learners))
    };
    assert_eq!(
        members(known),
        members(config),
        "epoch {} was issued twice",
        config.epoch
    );
    if let Some(before) = ledger.adopted.insert((config.epoch, s), life) {
        assert_eq!(
            before.1,
            life.1,
            "s{} adopts epoch {} again after a restart",
            s + 1,
            config.epoch
        );
    }
}
