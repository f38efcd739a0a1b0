//! Trimming: the head decides how much of the log may go and says so down the chain; every replica follows.
//!
//! There are two points. Readers see the *trim point*: up to it, as far as it is committed, nothing is served any
//! more. Behind it the *base* moves on as what lies before it can be freed (`Replica::free_trimmed`): not what the
//! disk does not have yet, nor what a learner still has to be sent.
//!
//! Three causes move the trim point: `retention_bytes`, `retention_age_s`, and a client's request. The last is
//! answered only when every replica of the chain has taken it in — on stable storage, in a persistent group — so
//! that it outlasts the loss of all but one. That agreement (`asked`, and what each replica tells the head that it has
//! of it) is kept apart from the trim point, so that retention costs no record in the journal.

use quorate_types::limits::{ASKED_WAITING_MAX, TRIM_BATCHES_PER_ROUND};
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Durability, Index, Micros, Offset};
use quorate_wire::peer::ChainNotice;

use crate::command::{Asked, ClientRef, Command};
use crate::replica::Replica;
use crate::rounds::answer;

/// Journal space that a base must free before it is worth writing.
const PERSIST_BASE_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) struct Trim {
    /// The trim point as decided (at the head) or heard; it may be ahead of what is committed here.
    pub target: Index,
    /// The part of it that clients asked for.
    pub asked: Index,
    /// Of `asked`, what was given to the journal …
    submitted: Index,
    /// … and what is on stable storage. In memory: what was taken in.
    pub durable: Index,
    /// At the head: clients that wait for the ring to have what they asked for.
    waiting: Vec<Waiting>,
    /// When the wall clock was last looked at, and what it is taken to have said.
    clock: Option<(Micros, u64)>,
    /// Payload freed since a base was last written to the journal.
    pub freed_unwritten_bytes: u64,
}

#[derive(Debug)]
struct Waiting {
    client: ClientRef,
    request: u32,
    before_offset: Offset,
    index: Index,
}

impl Trim {
    pub fn new() -> Self {
        Self {
            target: 0,
            asked: 0,
            submitted: 0,
            durable: 0,
            waiting: Vec::new(),
            clock: None,
            freed_unwritten_bytes: 0,
        }
    }

    /// A trim point found in the journal, or the base of the log: it was agreed on before.
    pub fn recover(&mut self, index: Index) {
        self.target = self.target.max(index);
        self.asked = self.asked.max(index);
        self.submitted = self.submitted.max(index);
        self.durable = self.durable.max(index);
    }

    /// What it asked for is done all the same.
    pub fn forget_client(&mut self, client: ClientRef) {
        self.waiting.retain(|w| w.client != client);
    }

    /// The log begins anew behind a base: of what clients asked for, only what the base says is on disk.
    pub fn submit_again_behind(&mut self, base_index: Index) {
        self.submitted = self.asked.min(base_index);
        self.durable = self.submitted;
    }

    /// The wall clock, as far as it is believed: a clock that leaps ahead is followed at a tenth more than the
    /// speed of time, so that a wrong step, put right again, does not cost a customer the log.
    fn believe(&mut self, now: Micros, wall_us: u64) -> u64 {
        let believed = match self.clock {
            None => wall_us,
            Some((then, said)) => {
                let elapsed = now.saturating_sub(then);
                wall_us.min(said + elapsed + elapsed / 10)
            }
        };
        self.clock = Some((now, believed));
        believed
    }
}

impl Replica {
    /// The trim point: the last batch that readers are not served any more.
    pub(crate) fn trim_index(&self) -> Index {
        let through = if planted::on(Bug::TrimBeyondCommit) {
            self.log.last_index()
        } else {
            self.commit_index
        };
        self.trim.target.min(through).max(self.log.base().index)
    }

    /// Discards everything before the offset that is in whole batches, for a client. Also where a disk is full: this
    /// is how space is freed.
    pub(crate) fn trim_before(
        &mut self,
        client: ClientRef,
        request: u32,
        before_offset: Offset,
        out: &mut Vec<Command>,
    ) {
        assert!(
            before_offset <= self.commit_offset(),
            "only what is committed is trimmed"
        );
        if self.trim.waiting.len() >= ASKED_WAITING_MAX {
            let asked = Asked::Trim { before_offset };
            return out.push(answer(client, request, asked, Some(Code::Overloaded)));
        }
        let index = self.log.index_ending_by(before_offset);
        self.trim.target = self.trim.target.max(index);
        self.trim.asked = self.trim.asked.max(index);
        self.trim.waiting.push(Waiting {
            client,
            request,
            before_offset,
            index,
        });
    }

    /// At the head: moves the trim point by what the SLA lets the group keep.
    pub(crate) fn trim_by_retention(&mut self, now: Micros, wall_us: u64) {
        let believed_us = self.trim.believe(now, wall_us);
        let Some(config) = self.config.as_ref().filter(|_| self.is_head()) else {
            return;
        };
        let by_bytes = self.log.index_leaving(config.retention_bytes);
        let by_age = config.retention_age_s.map_or(0, |age_s| {
            let oldest_us = believed_us.saturating_sub(age_s.saturating_mul(1_000_000));
            let from = self.trim_index() + 1;
            self.log.index_older_than(oldest_us, from, self.commit_index)
        });
        let through = if planted::on(Bug::TrimBeyondCommit) {
            self.log.last_index()
        } else {
            self.commit_index
        };
        let index = by_bytes.max(by_age).min(through);
        self.trim.target = self.trim.target.max(index);
    }

    /// What the predecessor says of trimming.
    pub(crate) fn hear_trim(&mut self, notice: &ChainNotice) {
        self.trim.target = self.trim.target.max(notice.trim_index);
        self.trim.asked = self.trim.asked.max(notice.trim_asked);
    }

    /// Takes in what clients asked for, once all of it is committed here.
    pub(crate) fn take_in_trim(&mut self, out: &mut Vec<Command>) {
        let index = self.trim.asked;
        if index <= self.trim.submitted || index > self.commit_index {
            return;
        }
        self.trim.submitted = index;
        match self.durability {
            Durability::InMemory => self.trim.durable = index,
            Durability::Persistent => out.push(Command::PersistTrim { index }),
        }
    }

    pub(crate) fn trim_persisted(&mut self, index: Index) {
        assert!(index <= self.trim.submitted, "what is durable was submitted");
        self.trim.durable = self.trim.durable.max(index);
    }

    /// At the head: answers whom the whole ring has heard.
    pub(crate) fn answer_trims(&mut self, out: &mut Vec<Command>) {
        if !self.is_head() {
            return;
        }
        let ring_level = if planted::on(Bug::TrimToldEarly) {
            Index::MAX
        } else {
            self.ring_trim_level()
        };
        for done in self.trim.waiting.extract_if(.., |w| w.index <= ring_level) {
            out.push(done.answer(None));
        }
    }

    pub(crate) fn has_trims_waiting(&self) -> bool {
        !self.trim.waiting.is_empty()
    }

    pub(crate) fn abandon_trims(&mut self, code: Code, out: &mut Vec<Command>) {
        for waiting in self.trim.waiting.drain(..) {
            out.push(waiting.answer(Some(code)));
        }
    }

    /// Moves the base up to the trim point, as far as what goes is durable here and not needed by a learner. A part
    /// at a time: the rest follows with the next rounds.
    pub(crate) fn free_trimmed(&mut self, out: &mut Vec<Command>) {
        let mut through = self.trim_index();
        if self.durability == Durability::Persistent {
            through = through.min(self.durable_index);
        }
        through = through.min(self.needed_downstream().saturating_sub(1));
        let first_before = self.log.first_index();
        if first_before > through {
            return;
        }
        for index in first_before..=through.min(first_before + TRIM_BATCHES_PER_ROUND - 1) {
            let bytes = self.log.header(index).map_or(0, |h| h.payload_len);
            self.trim.freed_unwritten_bytes += u64::from(bytes);
            self.log.trim_first();
        }
        if self.durability == Durability::Persistent && self.trim.freed_unwritten_bytes >= PERSIST_BASE_BYTES
        {
            self.trim.freed_unwritten_bytes = 0;
            self.persist_base(out);
        }
        out.push(Command::Trimmed {
            first_index: self.log.first_index(),
        });
    }
}

impl Waiting {
    fn answer(&self, refused: Option<Code>) -> Command {
        let asked = Asked::Trim {
            before_offset: self.before_offset,
        };
        answer(self.client, self.request, asked, refused)
    }
}
