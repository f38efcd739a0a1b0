//! An epoch has one configuration, wherever it is adopted. No server adopts an epoch again after a restart: it has
//! forgotten the promises that it made in it.

use quorate_types::GroupConfig;

use crate::fleet::World;
use crate::ledger::Adoption;

pub fn check(world: &mut World, s: usize, g: usize, config: &GroupConfig) {
    let server = &world.servers[s];
    let adoption = Adoption {
        lineage: server.lineage(config.group_id),
        incarnation: server.incarnation,
    };
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
    if let Some(before) = ledger.adopted.insert((config.epoch, s), adoption) {
        assert_eq!(
            before.incarnation,
            adoption.incarnation,
            "s{} adopts epoch {} again after a restart",
            s + 1,
            config.epoch
        );
    }
}
