//! After a reset nothing of the old log is read. A replica in an epoch of the new log has discarded the old one. It
//! answers that every older offset is trimmed.

use quorate_chain::ReadError;
use quorate_types::GroupConfig;

use crate::fleet::World;

pub fn after_adoption(world: &World, s: usize, g: usize, config: &GroupConfig) {
    let Some(beginning) = config.beginning else { return };
    let replica = world.servers[s].groups[&config.group_id].replica();
    let me = world.servers[s].id;
    if !config.line().any(|member| Some(member.server_id) == me) {
        return;
    }
    let log = replica.log();
    let epoch = log.epoch_at(log.last_index());
    assert!(
        epoch.is_some_and(|epoch| epoch >= beginning.epoch),
        "s{} is in epoch {} and holds a log of group {} that ends in epoch {epoch:?}, before the reset",
        s + 1,
        config.epoch,
        g + 1
    );
    for offset in [0, beginning.offset / 2, beginning.offset - 1] {
        let read = replica.read(offset, 1_000, 10, 16);
        assert!(
            matches!(read, Err(ReadError::Trimmed { trim_offset }) if trim_offset >= beginning.offset),
            "s{} reads offset {offset} of the log before the reset",
            s + 1
        );
    }
}
