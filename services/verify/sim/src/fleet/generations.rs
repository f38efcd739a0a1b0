//! Log generations: each reset of a group begins another. A replica that has not heard of the reset still has the log
//! of an earlier one, and is judged by that one's ledger.

use super::World;

impl World {
    /// The generation of the log that server `s` holds of the group: the number of resets before it.
    pub fn generation_of(&self, s: usize, g: usize) -> usize {
        let reset_in = &self.former_logs[g].reset_in;
        let Some(hosted) = self.servers[s].groups.get(&World::group_id(g)) else {
            return reset_in.len();
        };
        let log = hosted.replica().log();
        let epoch = log.epoch_at(log.last_index()).unwrap_or(0);
        reset_in.partition_point(|reset| *reset <= epoch)
    }

    /// Runs `look` with `ledgers[g]` being the ledger of the log generation that server `s` holds.
    pub fn in_generation_of<R>(&mut self, s: usize, g: usize, look: impl FnOnce(&mut World) -> R) -> R {
        let generation = self.generation_of(s, g);
        if generation == self.former_logs[g].ledgers.len() {
            return look(self);
        }
        std::mem::swap(&mut self.ledgers[g], &mut self.former_logs[g].ledgers[generation]);
        let seen = look(self);
        std::mem::swap(&mut self.ledgers[g], &mut self.former_logs[g].ledgers[generation]);
        seen
    }
}
