//! Undisturbed, everything comes back: every client has its answers, each group has its full degree, servers that drain
//! are empty, and every
//! replica reads back all that was committed and not trimmed.

use quorate_types::ServerId;

use crate::invariants::reads::read;
use crate::ledger::Ledger;
use crate::world::World;

pub fn is_healed(world: &World) -> bool {
    why_not_healed(world).is_none()
}

/// What is still to come, and of which group.
pub fn why_not_healed(world: &World) -> Option<(usize, String)> {
    let groups = (0..world.ledgers.len()).find_map(|g| why_not(world, g).map(|why| (g, why)));
    groups.or_else(|| not_drained(world).map(|why| (0, why)))
}

/// A server that is to be drained is, by then. What lies on it of a lost group stays.
fn not_drained(world: &World) -> Option<String> {
    if world.ledgers.iter().any(|ledger| ledger.is_lost) {
        return None;
    }
    let mut servers = world.coordinator.state().servers.values();
    let waits = servers.find(|server| server.alive && server.drain.is_some() && !server.is_drained())?;
    Some(format!(
        "{} still drains: {:?}",
        place(world, waits.server_id),
        waits
    ))
}

fn why_not(world: &World, g: usize) -> Option<String> {
    let (ledger, plan) = (&world.ledgers[g], &world.plan.groups[g]);
    if ledger.is_lost {
        return None;
    }
    let Some(group) = world.coordinator.state().groups.get(&World::group_id(g)) else {
        return Some("it is not admitted".into());
    };
    if group.chain.len() < usize::from(plan.degree) {
        let ids = |ids: &[ServerId]| {
            ids.iter()
                .map(|id| place(world, *id))
                .collect::<Vec<_>>()
                .join(" → ")
        };
        let learner = group.learner.map(|id| place(world, id));
        return Some(format!(
            "the chain of epoch {} is short: {}, learner {learner:?}",
            group.epoch,
            ids(&group.chain)
        ));
    }
    if let Some(client) = world.clients.iter().find(|c| c.group == g && !c.is_done()) {
        return Some(format!("a client waits: {}", crate::trace::brief(client)));
    }
    let last = ledger.last_index();
    for id in &group.chain {
        let hosted = world
            .server_of(*id)
            .and_then(|s| world.servers[s].groups.get(&group.group_id));
        let Some(hosted) = hosted else {
            return Some(format!("server {id} of the chain has no replica"));
        };
        let replica = &hosted.replica;
        let held = (
            replica.epoch(),
            replica.commit_index(),
            replica.log().last_index(),
        );
        if held != (group.epoch, last, last) {
            let expected = (group.epoch, last, last);
            return Some(format!(
                "server {id} has epoch, commit, last {held:?} where {expected:?} should be"
            ));
        }
    }
    None
}

/// A server as the coordinator sees it, and where it runs.
fn place(world: &World, id: ServerId) -> String {
    let known = if world.coordinator.state().is_alive(id) {
        "alive"
    } else {
        "failed"
    };
    match world.server_of(id) {
        Some(s) => format!("s{} ({known})", s + 1),
        None => format!("server {id} ({known}, gone for ever)"),
    }
}

pub fn at_end(world: &World) {
    for g in 0..world.ledgers.len() {
        if world.ledgers[g].is_lost {
            continue;
        }
        crate::trace::focus(Some(g));
        world.ledgers[g].check_oracle();
        world.former[g].ledgers.iter().for_each(Ledger::check_oracle);
        let group_id = World::group_id(g);
        for id in &world.coordinator.state().groups[&group_id].chain {
            let s = world.server_of(*id).expect("healed");
            let mut offset = world.servers[s].groups[&group_id].replica.trim_offset();
            while let Some(next) = read(world, s, g, offset) {
                offset = next;
            }
            let end = world.ledgers[g].end_offset();
            assert_eq!(offset, end, "s{} does not read back to the end", s + 1);
        }
    }
}
