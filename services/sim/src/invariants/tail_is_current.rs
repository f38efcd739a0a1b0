//! The tail is linearizable: what a head says of where the log ends is no less than what was committed when it was
//! asked, whoever else committed it. And a trim that was told of outlasts every failure.

use quorate_chain::{Asked, ClientRef};
use quorate_types::{Code, Durability};

use crate::world::World;

pub fn after_answer(
    world: &mut World,
    s: usize,
    g: usize,
    client: ClientRef,
    asked: Asked,
    refused: Option<Code>,
) {
    let Some(hosted) = world.servers[s].groups.get(&World::group_id(g)) else {
        return;
    };
    let (commit_offset, trim_offset) = (hosted.replica.commit_offset(), hosted.replica.trim_offset());
    let is_head = hosted.replica.is_head();
    let c = client.channel as usize;
    let asked_at = world.clients[c]
        .asked_at
        .filter(|_| world.connection(c) == client.connection);
    let end = world.ledgers[g].end_offset();
    match (asked, refused) {
        (Asked::Status, None) if is_head => {
            assert!(
                commit_offset <= end,
                "s{} says that {commit_offset} is committed",
                s + 1
            );
            assert!(
                asked_at.is_none_or(|at| commit_offset >= at),
                "tail is linearizable: s{} says that the log ends at {commit_offset}; it ended at {asked_at:?} before",
                s + 1
            );
        }
        (Asked::Trim { before_offset }, None) => {
            assert!(trim_offset <= end, "trim beyond commit");
            world.ledgers[g].trim(before_offset);
            trim_is_kept(world, g);
        }
        (Asked::Trim { before_offset }, Some(Code::TrimBeyondCommit)) => {
            assert!(
                asked_at.is_none_or(|at| at < before_offset),
                "all before {before_offset} was committed, and yet the trim was refused"
            );
        }
        _ => {}
    }
}

/// Every member of the newest epoch that has kept what it had knows of the trim, for good.
pub fn trim_is_kept(world: &World, g: usize) {
    let (group_id, ledger) = (World::group_id(g), &world.ledgers[g]);
    let Some(newest) = ledger.configs.values().next_back() else {
        return;
    };
    for member in &newest.replicas {
        let Some(m) = world.server_of(member.server_id) else {
            continue;
        };
        let server = &world.servers[m];
        let life = ledger.adopted.get(&(newest.epoch, m));
        if life.is_none_or(|(lineage, _)| *lineage != server.lineage(group_id)) {
            continue;
        }
        let held = match world.plan.groups[g].durability {
            Durability::Persistent => server.image(group_id).map_or(0, |image| image.trimmed_through()),
            Durability::InMemory => server
                .groups
                .get(&group_id)
                .map_or(0, |h| h.replica.trimmed_through()),
        };
        assert!(
            held >= ledger.trimmed,
            "s{} is in the chain and knows of trims up to {held}, not {}",
            m + 1,
            ledger.trimmed
        );
    }
}
