//! Undisturbed, everything comes back: every client has its answers, the chain has its full degree, and every replica
//! reads back all that was committed and not trimmed.

use crate::invariants::reads::read;
use crate::world::World;

pub fn is_healed(world: &World) -> bool {
    why_not_healed(world).is_empty()
}

pub fn why_not_healed(world: &World) -> String {
    if let Some(client) = world.clients.iter().find(|c| !c.is_done()) {
        return format!("a client waits: {client:?}");
    }
    let latest = world.master.latest();
    if latest.chain.len() < world.plan.degree {
        return format!("the chain is short: {latest:?}");
    }
    for (s, life) in &latest.chain {
        if !world.is_intact((*s, *life)) {
            return format!("s{} is not the one in the chain", s + 1);
        }
        let Some(replica) = &world.servers[*s].replica else {
            return format!("s{} has no replica", s + 1);
        };
        let held = (
            replica.epoch(),
            replica.commit_index(),
            replica.log().last_index(),
        );
        let last = world.ledger.last_index();
        if held != (world.master.epoch, last, last) {
            let expected = (world.master.epoch, last, last);
            return format!(
                "s{} has epoch, commit, last {held:?} where {expected:?} should be",
                s + 1
            );
        }
    }
    String::new()
}

pub fn at_end(world: &World) {
    world.ledger.check_oracle();
    for (s, _) in &world.master.latest().chain {
        let replica = world.servers[*s].replica.as_ref().expect("healed");
        let mut offset = replica.trim_offset();
        while let Some(next) = read(world, *s, offset) {
            offset = next;
        }
        let end = world.ledger.last().map_or(0, |h| h.end_offset());
        assert_eq!(offset, end, "s{} does not read back to the end", s + 1);
    }
}
