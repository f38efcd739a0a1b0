//! A replica of the chain stands only when batches that it truncated, or that were dropped before, are off its disk.
//! Otherwise a restart could bring back a batch that a client knows to be not in the log. So the disk of a replica that
//! stands holds nothing that its log does not.

use quorate_types::{Durability, GroupState, Role};

use crate::fleet::World;

pub fn check(world: &World, s: usize, g: usize) {
    let Some(hosted) = world.servers[s].groups.get(&World::group_id(g)) else {
        return;
    };
    let replica = hosted.replica();
    // A learner promises nothing before it has all that it needs for good.
    let is_member = !matches!(replica.role(), Role::None | Role::Learner);
    let stands = is_member && replica.state() != GroupState::Syncing;
    if replica.durability() != Durability::Persistent || !stands {
        return;
    }
    let image = world.servers[s].image(World::group_id(g));
    let Some((index, epoch)) = image.and_then(|image| image.end()) else {
        return;
    };
    let log = replica.log();
    assert!(
        index <= log.base().index || log.epoch_at(index) == Some(epoch),
        "s{} stands in epoch {} with a log up to {}, and its disk holds a truncated batch: that of epoch {epoch} at {index}",
        s + 1,
        replica.epoch(),
        log.last_index()
    );
}
