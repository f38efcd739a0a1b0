//! The tail is linearizable: the end of the log in a head's answer covers all that any head had committed when it was
//! asked. A trim that was answered outlasts every failure.

use quorate_chain::ClientRef;
use quorate_types::{Code, Durability, Role};
use quorate_wire::client::{Message, Refused};

use crate::fleet::{Requested, World};

pub fn before_answer(
    world: &mut World,
    s: usize,
    g: usize,
    client: ClientRef,
    request: u32,
    answer: &Message,
) {
    let hosted = &world.servers[s].groups[&World::group_id(g)];
    let (asked_at, before_offset) = match hosted.transcript.requests.get(&(client.connection, request)) {
        Some(Requested::Status { end_offset }) => (*end_offset, None),
        Some(Requested::Trim {
            end_offset,
            before_offset,
        }) => (*end_offset, Some(*before_offset)),
        _ => return,
    };
    let end = world.ledgers[g].end_offset();
    match answer {
        Message::StatusOk(ok) if [Role::Head as u8, Role::Sole as u8].contains(&ok.role) => {
            let commit_offset = ok.commit_offset;
            assert!(
                commit_offset <= end,
                "s{} says that {commit_offset} is committed",
                s + 1
            );
            assert!(
                commit_offset >= asked_at,
                "tail is linearizable: s{} says that the log ends at {commit_offset}; it ended at {asked_at} before",
                s + 1
            );
        }
        Message::TrimOk { trim_offset, .. } => {
            assert!(*trim_offset <= end, "trim beyond commit");
            world.ledgers[g].trim(before_offset.expect("a trim was asked for"));
            trim_is_kept(world, g);
        }
        Message::Refused(Refused { code, .. }) if *code == Code::TrimBeyondCommit as u16 => {
            let before_offset = before_offset.expect("a trim was asked for");
            assert!(
                asked_at < before_offset,
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
        // The others have the trims that its disk lost.
        if server.lied.contains_key(&group_id) {
            continue;
        }
        let adoption = ledger.adopted.get(&(newest.epoch, m));
        if adoption.is_none_or(|adoption| adoption.lineage != server.lineage(group_id)) {
            continue;
        }
        let held = match world.plan.groups[g].durability {
            Durability::Persistent => server.image(group_id).map_or(0, |image| image.trimmed_through()),
            Durability::InMemory => server
                .groups
                .get(&group_id)
                .map_or(0, |h| h.replica().trimmed_through()),
        };
        assert!(
            held >= ledger.trimmed,
            "s{} is in the chain and knows of trims up to {held}, not {}",
            m + 1,
            ledger.trimmed
        );
    }
}
