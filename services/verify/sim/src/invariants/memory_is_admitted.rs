//! No server is promised more memory or disk than it has. No group takes in more than it was admitted with while its
//! server's pool is full, and no log outgrows its retention while nothing holds up its trim.

use quorate_chain::Replica;
use quorate_group::{Group, Pool};
use quorate_types::limits::{BATCH_BYTES_MAX, BATCH_MEMORY_BYTES};
use quorate_types::space::Terms;
use quorate_types::{Durability, Index, Role};

use crate::fleet::World;

/// The contents of a group before it was flushed.
#[derive(Debug)]
pub struct Before {
    /// The pool was full, and the group used it.
    is_short: bool,
    uncommitted_bytes: u64,
    /// The flush commits more, and the next one trims that.
    freeable: Index,
}

pub fn before_flush(group: &Group, pool: &Pool) -> Before {
    Before {
        is_short: group.pooled_bytes() > 0 && pool.used_bytes() >= pool.bytes_max(),
        uncommitted_bytes: group.replica().uncommitted_bytes(),
        freeable: group.replica().freeable_index(),
    }
}

pub fn after_flush(world: &World, s: usize, g: usize, before: &Before) {
    let group = &world.servers[s].groups[&World::group_id(g)].group;
    let replica = group.replica();
    let Some(config) = replica.config() else { return };
    let terms = Terms::of_config(config);
    if before.is_short && replica.is_head() {
        let most = terms.window_bytes() + u64::from(BATCH_BYTES_MAX) + BATCH_MEMORY_BYTES;
        let (was, is) = (before.uncommitted_bytes, replica.uncommitted_bytes());
        assert!(
            is <= was.max(most),
            "s{} orders up to {is} bytes of group {} though its pool is full; it had {was}",
            s + 1,
            g + 1
        );
    }
    if before.is_short && replica.durability() == Durability::Persistent {
        let through = replica.commit_index().min(replica.durable_index());
        let stays =
            (replica.log().base().index + 1..=through).find(|index| replica.payload(*index).is_some());
        assert_eq!(
            stays,
            None,
            "s{} keeps a payload of group {} though its pool is full",
            s + 1,
            g + 1
        );
    }
    if matches!(replica.role(), Role::Head | Role::Sole) && config.learners.is_empty() {
        check_retention(replica, &terms, before, s, g);
    }
}

/// A batch counts with all the memory that it takes, and as a declared request at least.
fn check_retention(replica: &Replica, terms: &Terms, before: &Before, s: usize, g: usize) {
    let log = replica.log();
    let batches = log.last_index() - log.base().index;
    let bytes = log.payload_bytes() + batches * BATCH_MEMORY_BYTES;
    let most = terms.retention_bytes + terms.retention_bytes / 64;
    let is_within = bytes <= most && batches <= terms.retained_batches_max();
    // Batches that were not committed, not on the disk, or not sent to all, stay.
    let is_freeable = log.base().index < before.freeable;
    assert!(
        is_within || !is_freeable,
        "s{} retains {bytes} bytes in {batches} batches of group {}, and no more than {most}, or {} batches, were admitted",
        s + 1,
        g + 1,
        terms.retained_batches_max()
    );
}

/// The pool's use is the sum of what the groups that are there use of it.
pub fn after_tick(world: &World, s: usize) {
    let server = &world.servers[s];
    let pooled_bytes: u64 = server
        .groups
        .values()
        .map(|hosted| hosted.group.pooled_bytes())
        .sum();
    assert_eq!(
        server.turn.pool.used_bytes(),
        pooled_bytes,
        "the pool of s{} is used by a group that is not there",
        s + 1
    );
}

/// The coordinator charges no server more than it has.
pub fn after_coordinator(world: &World) {
    let state = world.coordinators.state();
    for server in state.servers.values() {
        let charged = state.allocated_on(server.server_id).space();
        let fits = |bytes: u64, most: Option<u64>| most.is_none_or(|most| bytes <= most);
        assert!(
            fits(charged.memory_bytes, server.room.memory_bytes)
                && fits(charged.disk_bytes, server.room.disk_bytes),
            "{} has {:?}, and replicas are charged {charged:?}",
            server.name,
            server.room
        );
    }
}
