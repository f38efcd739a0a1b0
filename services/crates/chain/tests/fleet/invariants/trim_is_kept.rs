//! What a client was told to be trimmed stays so, whoever is lost: every member of the latest chain that has not lost
//! everything knows of it, for good.

use quorate_types::Durability;

use crate::world::World;

pub fn check(world: &World) {
    let latest = world.master.latest();
    for member in latest.chain.iter().filter(|m| world.is_intact(**m)) {
        let server = &world.servers[member.0];
        let held = match world.plan.durability {
            Durability::Persistent => server.disk.image.trimmed_through(),
            Durability::InMemory => server.replica.as_ref().map_or(0, |r| r.trimmed_through()),
        };
        let trimmed = world.ledger.trimmed;
        assert!(
            held >= trimmed,
            "s{} is in the chain and knows of trims up to {held}, not {trimmed}",
            member.0 + 1
        );
    }
}
