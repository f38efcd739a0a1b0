//! Trimming: the head decides how much of the log may go, and says so down the chain; every replica follows.
//!
//! There are two points. Up to the *trim point*, as far as it is committed, readers are served nothing. The *base*
//! follows it as space can be freed ([`LocalLog::free_through`]): not beyond the disk, nor beyond what a learner still
//! has to be sent.
//!
//! Three causes move the trim point: `retention_bytes`, `retention_age_s` ([`Ages`]), and a client's request. A request is
//! answered when every replica of the chain has taken it in, in a persistent group on stable storage. It then outlasts
//! the loss of all replicas but one. Each replica acknowledges to the head how much of `asked` it has. That agreement
//! is kept apart from the trim point, so that retention costs no record in the journal.

use quorate_types::limits::ASKED_WAITING_MAX;
use quorate_types::planted::{self, Bug};
use quorate_types::space::Terms;
use quorate_types::{Code, GroupConfig, Index, Micros, Offset, Role};
use quorate_wire::peer::ChainNotice;

use crate::ages::Ages;
use crate::command::{ClientRef, Question, ReplicaCommand};
use crate::local_log::LocalLog;

/// A log may be longer than its retention by this part before it is trimmed at once.
const OUTGROWN_PART: u64 = 64;

#[derive(Debug, Default)]
pub(crate) struct Trim {
    /// The trim point as decided (at the head) or heard; it may be ahead of what is committed here.
    target: Index,
    /// The part of it that clients asked for.
    asked: Index,
    /// The part of `asked` that the journal was given …
    submitted: Index,
    /// … and the part that is on stable storage. In memory: the part that was taken in.
    durable: Index,
    /// The part of `asked` that the predecessor has told in this epoch.
    told: Index,
    /// At the head: requests that wait until the ring has them.
    waiting: Vec<Waiting>,
    ages: Ages,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    index: Index,
}

impl Trim {
    pub fn target(&self) -> Index {
        self.target
    }

    /// The part of the target that clients asked for, as the successor of a replica of this role is told of it. A follower
    /// passes on what it was told: the tail vouches for all before it, and a former head may know of more. A learner
    /// vouches for nobody, and gets all.
    pub fn passed_on(&self, role: Role) -> Index {
        match role {
            Role::Follower => self.asked.min(self.told),
            _ => self.asked,
        }
    }

    pub fn durable_index(&self) -> Index {
        self.durable
    }

    /// The part of `asked` that the predecessor has told in this epoch.
    pub fn told(&self) -> Index {
        self.told
    }

    /// The trim point: the last batch that readers are not served.
    pub fn index(&self, local: &LocalLog) -> Index {
        self.target.min(trimmable(local)).max(local.log().base().index)
    }

    /// A trim point from the journal, or the base of the log: the chain agreed on it before.
    pub fn recover(&mut self, index: Index) {
        self.target = self.target.max(index);
        self.asked = self.asked.max(index);
        self.submitted = self.submitted.max(index);
        self.durable = self.durable.max(index);
    }

    /// The log begins again behind a base: only the trims that the base covers are on disk.
    pub fn submit_again_behind(&mut self, base_index: Index) {
        self.submitted = self.asked.min(base_index);
        self.durable = self.submitted;
    }

    /// Discards all whole batches before the offset, for a client. A full disk does not hinder it: this frees space.
    pub fn request(
        &mut self,
        question: Question,
        before_offset: Offset,
        local: &LocalLog,
        out: &mut Vec<ReplicaCommand>,
    ) {
        assert!(
            before_offset <= local.commit_offset(),
            "trim before {before_offset} beyond the commit offset {}",
            local.commit_offset()
        );
        if self.waiting.len() >= ASKED_WAITING_MAX {
            return out.push(question.answer(Some(Code::Overloaded)));
        }
        let index = local.log().index_ending_by(before_offset);
        self.target = self.target.max(index);
        self.asked = self.asked.max(index);
        self.waiting.push(Waiting { question, index });
    }

    /// Notes how long this process has held what it holds, and what its wall clock says, if that is believed.
    pub fn watch(&mut self, now: Micros, vouched_us: Option<u64>, config: &GroupConfig, local: &LocalLog) {
        self.ages.watch_clock(now, vouched_us);
        if let Some(age_us) = retention_age_us(config) {
            self.ages.watch(now, age_us, local.commit_index());
        }
    }

    /// At the head: moves the trim point by what the SLA retains.
    pub fn by_retention(&mut self, now: Micros, config: &GroupConfig, local: &LocalLog) {
        self.by_bytes(config, local, 0);
        let by_age = retention_age_us(config).map_or(0, |age_us| {
            let from = self.index(local) + 1;
            self.ages.old(now, age_us, from, local)
        });
        self.target = self.target.max(by_age.min(trimmable(local)));
    }

    /// At the head, with each flush: a fast group would outgrow its retention between two ticks. Looked at once it has by
    /// a part of it, so that a flush seldom looks.
    pub fn by_outgrowth(&mut self, config: &GroupConfig, local: &LocalLog) {
        self.by_bytes(config, local, config.retention_bytes / OUTGROWN_PART);
    }

    fn by_bytes(&mut self, config: &GroupConfig, local: &LocalLog, beyond_bytes: u64) {
        let (log, batches_max) = (local.log(), Terms::of_config(config).retained_batches_max());
        let most = config.retention_bytes.saturating_add(beyond_bytes);
        if log.retained_bytes() <= most && log.batches() <= batches_max {
            return;
        }
        let index = log.index_leaving(config.retention_bytes, batches_max);
        self.target = self.target.max(index.min(trimmable(local)));
    }

    /// The last batch that was found too old here.
    pub fn old_index(&self) -> Index {
        self.ages.old_index()
    }

    /// The predecessor's trim point.
    pub fn hear(&mut self, notice: &ChainNotice) {
        self.target = self.target.max(notice.trim_index);
        self.asked = self.asked.max(notice.trim_asked);
        self.told = self.told.max(notice.trim_asked);
    }

    pub fn begin_epoch(&mut self) {
        self.told = 0;
    }

    /// A lost group's log begins again: the old one's trim point and acknowledgements mean nothing for it.
    pub fn reset(&mut self) {
        let mut ages = std::mem::take(&mut self.ages);
        ages.reset();
        *self = Self {
            ages,
            ..Self::default()
        };
    }

    /// The part of `asked` that this replica has and all before it in the chain. A former head may know of requests that
    /// the others never heard of.
    pub fn chained_index(&self) -> Index {
        self.durable.min(self.told)
    }

    /// Takes in what clients asked for, once all of it is committed here.
    pub fn take_in(&mut self, local: &LocalLog, out: &mut Vec<ReplicaCommand>) {
        let index = self.asked;
        if index <= self.submitted || index > local.commit_index() {
            return;
        }
        self.submitted = index;
        if local.is_persistent() {
            out.push(ReplicaCommand::PersistTrim { index });
        } else {
            self.durable = index;
        }
    }

    pub fn persisted(&mut self, index: Index) {
        assert!(
            index <= self.submitted,
            "trim {index} is durable, {} was submitted",
            self.submitted
        );
        self.durable = self.durable.max(index);
    }

    /// At the head: answers the requests that all of the ring has.
    pub fn answer(&mut self, ring_index: Index, out: &mut Vec<ReplicaCommand>) {
        let ring_index = if planted::on(Bug::TrimAnsweredEarly) {
            Index::MAX
        } else {
            ring_index
        };
        for done in self.waiting.extract_if(.., |w| w.index <= ring_index) {
            out.push(done.question.answer(None));
        }
    }

    pub fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn abandon(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        for waiting in self.waiting.drain(..) {
            out.push(waiting.question.answer(Some(code)));
        }
    }

    /// The client's trims are done all the same.
    pub fn forget_client(&mut self, client: ClientRef) {
        self.waiting.retain(|w| w.question.client != client);
    }
}

/// The last batch that may be trimmed.
fn trimmable(local: &LocalLog) -> Index {
    if planted::on(Bug::TrimBeyondCommit) {
        local.last_index()
    } else {
        local.commit_index()
    }
}

fn retention_age_us(config: &GroupConfig) -> Option<Micros> {
    Some(config.retention_age_s?.saturating_mul(1_000_000))
}
