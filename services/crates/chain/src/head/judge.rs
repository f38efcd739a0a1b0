//! Judging an append: order it, recognise it as a retry, or refuse it.

use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Role};
use quorate_wire::client::NO_EXPECTED_OFFSET;
use quorate_wire::{Batch, BatchHeader};

use crate::command::AppendRequest;
use crate::log::{Log, Placed, Verdict};
use crate::membership::Membership;

pub(crate) enum Judgement {
    /// The session's next batch: order it now.
    Order,
    /// A retry of a batch in the log.
    Retry(Placed),
    /// Not ordered, nor will this sending of it be.
    Refuse(Code, Premise),
    /// Ordered so long ago that its place is forgotten; the client must have had its answer.
    Forgotten,
}

/// The fact that must be certain before a refusal leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Premise {
    None,
    /// This batch is committed.
    Commit(Index),
    /// A ring pass that began after the append came is back.
    RingPass,
}

/// The head's view of its group, on which a judgement rests.
pub(crate) struct Judge<'a> {
    pub membership: &'a Membership,
    pub log: &'a Log,
    pub is_isolated: bool,
    pub is_read_only: bool,
}

impl Judge<'_> {
    #[inline]
    pub fn judge(&self, request: &AppendRequest) -> Judgement {
        let refuse = |code| Judgement::Refuse(code, Premise::None);
        if self.membership.role() == Role::None {
            return refuse(Code::GroupNotHere);
        }
        if !self.membership.is_head() {
            return refuse(Code::NotHead);
        }
        if request.session == 0 || request.seq == 0 {
            return refuse(Code::SessionMissing);
        }
        let sessions = self.log.sessions();
        match sessions.judge(request.session, request.seq, request.floor_index) {
            Verdict::Ordered(_) if planted::on(Bug::RetryOrderedAgain) => {}
            Verdict::Ordered(Some(placed)) => return Judgement::Retry(placed),
            Verdict::Ordered(None) => return Judgement::Forgotten,
            Verdict::Gap { .. } => return refuse(Code::SequenceGap),
            Verdict::Expired => return refuse(Code::SessionExpired),
            Verdict::Next => {}
        }
        if self.is_isolated {
            return refuse(Code::CutOff);
        }
        if !self.membership.has_quorum() {
            return refuse(Code::Paused);
        }
        if self.is_read_only {
            return refuse(Code::ReadOnly);
        }
        self.judge_conditions(request)
    }

    /// The end of the head's log is not certain yet. So the refusal of a failed condition names its premise.
    fn judge_conditions(&self, request: &AppendRequest) -> Judgement {
        let (expected, end) = (request.expected_offset, self.log.next_offset());
        let is_asked = expected != NO_EXPECTED_OFFSET && !planted::on(Bug::ExpectedOffsetIgnored);
        if is_asked && expected != end {
            let premise = match self.log.index_of(expected) {
                // The log has grown beyond it, by this batch.
                Some(index) => Premise::Commit(index),
                None if expected < end => Premise::None,
                // The log has not grown so far, unless another head has made it grow.
                None => Premise::RingPass,
            };
            return Judgement::Refuse(Code::ConditionFailed, premise);
        }
        let is_fenced = request.fencing_token < self.log.sessions().fence();
        if request.fencing_token != 0 && is_fenced && !planted::on(Bug::FencingIgnored) {
            return Judgement::Refuse(Code::Fenced, Premise::Commit(self.log.last_index()));
        }
        Judgement::Order
    }
}

/// The batch that this append becomes, behind the log's last.
#[inline]
pub(crate) fn order(request: AppendRequest, membership: &Membership, log: &Log) -> Batch {
    let config = membership.config().expect("a head is configured");
    let payload_len = request.payload.len() as u32;
    let header = BatchHeader {
        group_id: config.group_id,
        epoch: config.epoch,
        index: log.last_index() + 1,
        base_offset: log.next_offset(),
        cumulative_bytes: log.cumulative_bytes() + u64::from(payload_len)
            - 4 * u64::from(request.entry_count),
        session: request.session,
        seq: request.seq,
        timestamp_us: BatchHeader::stamp(request.wall_us, request.is_clock_doubted),
        fencing_token: request.fencing_token,
        entry_count: request.entry_count,
        payload_len,
        payload_crc: request.payload_crc,
    };
    Batch {
        header,
        payload: request.payload,
        trace: request.trace,
    }
}
