//! A replica's state while it is the head: acknowledgements of the chain, and clients that wait.

use quorate_types::{Code, Durability, GroupConfig, Index, Micros, ServerId};
use quorate_wire::peer::ChainAck;

use crate::command::{AppendRequest, Arrival, ClientRef, ReplicaCommand};
use crate::head::judge::{Judge, Judgement, Premise};
use crate::head::questions::Questions;
use crate::head::refusals::HeldRefusals;
use crate::head::ring::Ring;
use crate::head::waiters::{Waiters, ack};
use crate::log::{Log, Placed};
use crate::membership::Membership;

#[derive(Debug, Default)]
pub(crate) struct Headship {
    pub(super) ring: Ring,
    /// The end of this log when the epoch began: all that was committed before lies within it.
    pub(super) inherited_index: Index,
    pub(super) waiters: Waiters,
    pub(super) questions: Questions,
    pub(super) refusals: HeldRefusals,
}

impl Headship {
    /// Acknowledgements and ring passes begin again; questions and refusals wait for the first pass.
    pub fn begin_epoch(&mut self, config: &GroupConfig, durability: Durability, last_index: Index) {
        self.ring = Ring::of(config, durability);
        self.inherited_index = last_index;
        self.questions.begin_epoch();
        self.refusals.begin_epoch();
    }

    /// Decides on an append. An isolated head, or one of a chain that cannot write, orders nothing new.
    #[inline]
    pub fn judge(
        &self,
        request: &AppendRequest,
        membership: &Membership,
        log: &Log,
        is_isolated: bool,
        has_fault: bool,
    ) -> Judgement {
        let judge = Judge {
            membership,
            log,
            is_isolated,
            is_read_only: has_fault || self.ring.has_fault(),
        };
        judge.judge(request)
    }

    /// The client waits for the batch's commitment. A later sender of the same batch takes the place of an earlier one.
    #[inline]
    pub fn wait(&mut self, client: ClientRef, seq: u64, placed: Placed, arrival: Arrival) {
        self.waiters.add(client, seq, placed, arrival);
    }

    /// Answers a retry of a batch in the log: now if it is committed, else with its commitment.
    pub fn answer_retry(
        &mut self,
        request: &AppendRequest,
        placed: Placed,
        commit_index: Index,
        out: &mut Vec<ReplicaCommand>,
    ) {
        if placed.index <= commit_index {
            out.push(ack(Some(request.client), request.seq, placed, request.arrival));
        } else {
            self.wait(request.client, request.seq, placed, request.arrival);
        }
    }

    /// Refuses an append as soon as its premise is certain.
    pub fn refuse(
        &mut self,
        request: &AppendRequest,
        code: Code,
        premise: Premise,
        next_pass: u64,
        out: &mut Vec<ReplicaCommand>,
    ) {
        self.refusals.refuse(request, code, premise, next_pass, out);
    }

    pub fn hear(&mut self, from: ServerId, ack: ChainAck) {
        self.ring.hear(from, ack);
    }

    /// Whether all of the chain agrees with this head's log.
    pub fn is_agreed(&self) -> bool {
        self.ring.is_agreed()
    }

    /// Whether another replica of the chain cannot write.
    pub fn has_fault(&self) -> bool {
        self.ring.has_fault()
    }

    pub fn held_refusals(&self) -> usize {
        self.refusals.len()
    }

    /// Whether something waits for a pass that has not begun.
    pub fn wants_pass_after(&self, latest: u64) -> bool {
        self.questions.want_pass_after(latest) || self.refusals.want_pass_after(latest)
    }

    pub fn expire_questions(&mut self, now: Micros, out: &mut Vec<ReplicaCommand>) {
        self.questions.expire(now, out);
    }

    /// Questions and held refusals will not become certain here. None of the refused appends was ordered here.
    pub fn abandon_uncertain(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        self.questions.abandon(code, out);
        self.refusals.abandon(code, out);
    }

    /// The outcome of the appends in the log is not known here.
    pub fn refuse_waiters(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        self.waiters.refuse(code, out);
    }

    /// The client's channel is gone: nothing is kept for answering it.
    pub fn forget_client(&mut self, client: ClientRef) {
        self.waiters.forget_client(client);
        self.questions.forget_client(client);
        self.refusals.forget_client(client);
    }
}
