//! The work that a group was for its server, in tokens of the server's resources (Pulsar §4.3: an appliance's throughput is the
//! total of its flows in tokens).

use quorate_chain::Replica;
use quorate_types::cost::Budget;
use quorate_types::limits::SLA_READ_LATE_MS;
use quorate_types::{Micros, Role, ServerId};
use quorate_usage::Totals;

const LATE_US: Micros = SLA_READ_LATE_MS * 1_000;

/// Work since the last call; groups' work adds up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Appends that were committed and reads that were answered, in thousandths of tokens.
    pub served_milli: [u64; 3],
    /// Appends ordered and not committed now, in thousandths of tokens.
    pub outstanding_milli: [u64; 3],
    pub entries: u64,
    /// Entries that the reservation let pass, and those of them that were throttled or late. Known at the head only.
    pub owed_entries: u64,
    pub late_entries: u64,
}

impl Work {
    pub fn add(&mut self, more: &Work) {
        for i in 0..3 {
            self.served_milli[i] = self.served_milli[i].saturating_add(more.served_milli[i]);
            self.outstanding_milli[i] = self.outstanding_milli[i].saturating_add(more.outstanding_milli[i]);
        }
        self.entries += more.entries;
        self.owed_entries += more.owed_entries;
        self.late_entries += more.late_entries;
    }
}

/// The group's counts when it was last asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkMeter {
    /// It was in the chain, so what it has done since is its work. A learner copies what others did.
    is_begun: bool,
    committed: Committed,
    read_entries: u64,
    read_bytes: u64,
    throttled_entries: u64,
    judged: Judged,
}

#[derive(Debug, Clone, Copy, Default)]
struct Committed {
    batches: u64,
    entries: u64,
    bytes: u64,
}

/// Entries within the reservation that were committed here.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Judged {
    entries: u64,
    late_entries: u64,
}

impl Judged {
    pub fn committed(&mut self, since_start_us: Micros, entries: u64) {
        self.entries += entries;
        if since_start_us > LATE_US {
            self.late_entries += entries;
        }
    }
}

impl WorkMeter {
    /// Nothing has come since the last call, and nothing is outstanding: so it is with most groups of a large server.
    pub fn is_idle(&self, replica: &Replica, totals: &Totals) -> bool {
        let batches = self.committed.batches;
        self.is_begun
            && (replica.commit_index(), replica.log().last_index()) == (batches, batches)
            && totals.read_entries == self.read_entries
            && totals.throttled_within_sla_entries == self.throttled_entries
    }

    pub fn take(
        &mut self,
        me: ServerId,
        replica: &Replica,
        budget: &Budget,
        totals: &Totals,
        judged: Judged,
    ) -> Work {
        let position = replica
            .config()
            .and_then(|config| config.replicas.iter().position(|member| member.server_id == me));
        let position = position.unwrap_or(budget.replica_milli.len());
        let committed = Committed {
            batches: replica.commit_index(),
            entries: replica.committed_entries(),
            bytes: replica.committed_bytes(),
        };
        let log = replica.log();
        let ordered = Committed {
            batches: log.last_index(),
            entries: committed.entries + log.next_offset().saturating_sub(replica.commit_offset()),
            bytes: log.cumulative_bytes(),
        };
        let done = committed.since(self.committed);
        let mut served_milli = done.cost(budget, position);
        let (read_entries, read_bytes) = (
            totals.read_entries.saturating_sub(self.read_entries),
            totals.read_bytes.saturating_sub(self.read_bytes),
        );
        if let Some(reads) = budget.reads.as_deref().filter(|_| read_entries > 0) {
            let cost = reads.cost.of(read_entries, read_bytes);
            served_milli = std::array::from_fn(|i| served_milli[i].saturating_add(cost[i]));
        }
        let throttled = totals.throttled_within_sla_entries;
        let refused = throttled.saturating_sub(self.throttled_entries);
        let work = Work {
            served_milli,
            outstanding_milli: ordered.since(committed).cost(budget, position),
            entries: done.entries + read_entries,
            owed_entries: refused + judged.entries.saturating_sub(self.judged.entries),
            late_entries: refused + judged.late_entries.saturating_sub(self.judged.late_entries),
        };
        let is_begun = !matches!(replica.role(), Role::None | Role::Learner);
        let was_begun = std::mem::replace(&mut self.is_begun, is_begun);
        *self = Self {
            is_begun,
            committed,
            read_entries: totals.read_entries,
            read_bytes: totals.read_bytes,
            throttled_entries: throttled,
            judged,
        };
        if was_begun { work } else { Work::default() }
    }
}

impl Committed {
    /// A log that began anew has less: nothing is known of the time between.
    fn since(self, before: Committed) -> Committed {
        Committed {
            batches: self.batches.saturating_sub(before.batches),
            entries: self.entries.saturating_sub(before.entries),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }

    /// Its cost to the replica at this position. Batches are as long as the average one.
    fn cost(self, budget: &Budget, position: usize) -> [u64; 3] {
        if self.entries == 0 {
            return [0; 3];
        }
        let own = budget.cost.of(self.entries, self.bytes);
        let whole = u64::from(budget.short_batch.entries).saturating_mul(self.batches);
        let lacking = whole.saturating_sub(self.entries);
        let (head, here) = (budget.request_milli(), budget.request_milli_at(position));
        std::array::from_fn(|i| {
            let short = budget.short_batch.lacking_milli[i].saturating_mul(lacking);
            let at_head = u128::from(own[i].saturating_add(short));
            let at_replica = at_head * u128::from(here[i]) / u128::from(head[i].max(1));
            u64::try_from(at_replica).unwrap_or(u64::MAX)
        })
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::{EntryCost, ShortBatch};

    use super::*;

    fn budget() -> Budget {
        let cost = EntryCost {
            fixed_milli: [2_000, 100, 20],
            per_byte_milli: [10, 2, 0],
        };
        let mut budget = Budget::for_rate(1_000, 100, cost);
        budget.replica_milli = vec![[3_000, 300, 20], [1_500, 300, 10]];
        budget.short_batch = ShortBatch {
            entries: 10,
            lacking_milli: [500, 0, 1],
        };
        budget
    }

    #[test]
    fn work_is_charged_by_the_profile_of_the_role() {
        let done = Committed {
            batches: 4,
            entries: 40,
            bytes: 4_000,
        };
        assert_eq!(done.cost(&budget(), 0), [120_000, 12_000, 800]);
        assert_eq!(done.cost(&budget(), 1), [60_000, 12_000, 400]);
        let alone = Committed { batches: 40, ..done };
        assert_eq!(
            alone.cost(&budget(), 0),
            [300_000, 12_000, 1_160],
            "360 are lacking"
        );
        assert_eq!(Committed::default().cost(&budget(), 0), [0; 3]);
    }

    #[test]
    fn a_log_that_began_anew_has_done_nothing() {
        let (before, now) = (
            Committed {
                batches: 9,
                entries: 90,
                bytes: 900,
            },
            Committed {
                batches: 10,
                entries: 5,
                bytes: 50,
            },
        );
        assert_eq!(now.since(before).cost(&budget(), 0), [0; 3]);
    }

    #[test]
    fn entries_are_late_after_the_time_that_reads_are_given() {
        let mut judged = Judged::default();
        judged.committed(LATE_US, 3);
        judged.committed(LATE_US + 1, 4);
        assert_eq!((judged.entries, judged.late_entries), (7, 4));
    }
}
