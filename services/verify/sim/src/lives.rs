//! The lives of a group's log: one until it is lost and its owner has it begin anew, then another. Replicas that have
//! not heard of it go on in the old one, and are held to what is true of that.

use quorate_types::Epoch;
use quorate_types::config::Beginning;

use crate::ledger::Ledger;
use crate::world::World;

/// The former lives of a group.
#[derive(Debug, Default)]
pub struct Former {
    pub ledgers: Vec<Ledger>,
    /// The epochs in which the later lives began.
    begun_in: Vec<Epoch>,
}

impl World {
    /// The life of its group to which the replica's log belongs.
    pub fn life_of(&self, s: usize, g: usize) -> usize {
        let begun_in = &self.former[g].begun_in;
        let Some(hosted) = self.servers[s].groups.get(&World::group_id(g)) else {
            return begun_in.len();
        };
        let log = hosted.replica().log();
        let epoch = log.epoch_at(log.last_index()).unwrap_or(0);
        begun_in.partition_point(|begun| *begun <= epoch)
    }

    /// Has `world.ledgers[g]` be that of the life of this replica's log meanwhile.
    pub fn in_life_of<R>(&mut self, s: usize, g: usize, look: impl FnOnce(&mut World) -> R) -> R {
        let life = self.life_of(s, g);
        if life == self.former[g].ledgers.len() {
            return look(self);
        }
        std::mem::swap(&mut self.ledgers[g], &mut self.former[g].ledgers[life]);
        let seen = look(self);
        std::mem::swap(&mut self.ledgers[g], &mut self.former[g].ledgers[life]);
        seen
    }

    /// A group's log begins anew, durably: its clients do, too.
    pub fn begin_anew(&mut self, g: usize, beginning: Beginning) {
        self.trace
            .line(Some(g), || format!("it begins anew: {beginning:?}"));
        self.counts.resets += 1;
        assert!(
            beginning.offset >= self.ledgers[g].end_offset(),
            "no offset is used twice: the log ended at {}, and begins anew at {}",
            self.ledgers[g].end_offset(),
            beginning.offset
        );
        for c in 0..self.writers.len() {
            if self.writers[c].group == g {
                self.writer_begins_anew(c, beginning);
            }
        }
        let ledger = Ledger::beginning(beginning);
        let ended = std::mem::replace(&mut self.ledgers[g], ledger);
        self.former[g].ledgers.push(ended);
        self.former[g].begun_in.push(beginning.epoch);
    }
}
