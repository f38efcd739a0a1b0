//! A batch that a head lacks by its ATTACHED is never ordered. Every replica of its chain is in the head's epoch by
//! then. None holds a batch of earlier epochs that the head does not.

use quorate_chain::{ClientRef, Log};
use quorate_types::{Epoch, Index};

use crate::fleet::World;

/// Head `s` is about to send the `next_seq` of this client's session, if it has one.
pub fn before_attached(world: &World, s: usize, g: usize, client: ClientRef) {
    let group_id = World::group_id(g);
    let session = world.servers[s].groups[&group_id].group.session_of(client);
    if session.is_none_or(|session| session == 0) {
        return;
    }
    let replica = world.servers[s].groups[&group_id].replica();
    let Some(config) = replica.config().filter(|_| replica.is_head()) else {
        return;
    };
    for member in &config.replicas {
        let Some(m) = world.server_of(member.server_id) else {
            continue;
        };
        let adoption = world.ledgers[g].adopted.get(&(config.epoch, m));
        let adoption = adoption.unwrap_or_else(|| {
            panic!(
                "s{} attaches a client in epoch {}, which s{} never adopted",
                s + 1,
                config.epoch,
                m + 1
            )
        });
        let hosted = world.servers[m].groups.get(&group_id);
        let Some(hosted) = hosted.filter(|_| adoption.lineage == world.servers[m].lineage(group_id)) else {
            continue;
        };
        let theirs = hosted.replica().log();
        let Some(index) = last_before(theirs, config.epoch) else {
            continue;
        };
        let log = replica.log();
        assert!(
            index <= log.base().index || log.epoch_at(index) == theirs.epoch_at(index),
            "s{} attaches a client in epoch {}, and s{} holds more: up to {index}",
            s + 1,
            config.epoch,
            m + 1
        );
    }
}

/// The last batch that an epoch before this one ordered, if it is not trimmed; epochs only grow along a log.
fn last_before(log: &Log, epoch: Epoch) -> Option<Index> {
    let (mut before, mut behind) = (log.base().index, log.last_index() + 1);
    while before + 1 < behind {
        let middle = before.midpoint(behind);
        if log.epoch_at(middle).is_some_and(|e| e < epoch) {
            before = middle;
        } else {
            behind = middle;
        }
    }
    (log.base().epoch < epoch).then_some(before)
}
