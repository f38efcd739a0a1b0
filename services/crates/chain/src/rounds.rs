//! Rounds of the ring: how a head makes sure that it still is the head, and what waits for that.
//!
//! A round is a number that the head sends down the chain and that comes back with what is acknowledged. When it is back, every
//! replica of the chain was still in the head's epoch after the round had begun: so no later head can have committed
//! anything before that. One round is under way at a time; whoever asks meanwhile shares the next one.

use std::collections::{HashSet, VecDeque};

use quorate_types::limits::{ASKED_WAITING_MAX, HELD_REFUSALS_MAX, STATUS_WAIT_MS_MAX};
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Micros, Role};

use crate::command::{AppendRequest, Asked, ClientRef, Command, Happened};
use crate::replica::Replica;

#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The last round begun (at the head) or heard of, in this epoch.
    pub seen: u64,
    /// At the head: who wants to know where the log ends, or to trim beyond what is known to be committed. In
    /// order of their rounds.
    asking: VecDeque<Asking>,
    /// At the head: refusals that rest on what is not certain yet.
    held: VecDeque<Held>,
}

#[derive(Debug)]
struct Asking {
    client: ClientRef,
    request: u32,
    asked: Asked,
    round: u64,
    since: Micros,
}

#[derive(Debug)]
struct Held {
    client: ClientRef,
    session: u64,
    seq: u64,
    entry_count: u32,
    code: Code,
    rests_on: Rest,
}

/// What must come true before a refusal may be told. A condition is judged on the log as the head has it, and that
/// may hold batches that are never committed, or lack what another head has committed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestsOn {
    Nothing,
    /// This batch is committed.
    Commit(Index),
    /// A round that began after the append came is back.
    Round,
}

impl Rounds {
    /// In a new epoch rounds are counted anew; who waits, waits for the first.
    pub fn begin_epoch(&mut self) {
        self.seen = 0;
        for asking in &mut self.asking {
            asking.round = 1;
        }
        for held in &mut self.held {
            if let Rest::Round(round) = &mut held.rests_on {
                *round = 1;
            }
        }
    }

    pub fn forget_client(&mut self, client: ClientRef) {
        self.asking.retain(|a| a.client != client);
        self.held.retain(|h| h.client != client);
    }

    fn is_wanted(&self) -> bool {
        let last_asked = self.asking.back().map_or(0, |a| a.round);
        let is_later = |held: &Held| matches!(held.rests_on, Rest::Round(round) if round > self.seen);
        last_asked > self.seen || self.held.iter().any(is_later)
    }
}

impl Replica {
    pub(crate) fn ask(
        &mut self,
        now: Micros,
        client: ClientRef,
        request: u32,
        asked: Asked,
        out: &mut Vec<Command>,
    ) {
        let refused = match asked {
            // Whoever is not the head tells what it knows.
            Asked::Status if !self.is_head() => None,
            Asked::Trim { .. } if self.role == Role::None => Some(Code::GroupNotHere),
            Asked::Trim { .. } if !self.is_head() => Some(Code::NotHead),
            Asked::Trim { before_offset } if before_offset <= self.commit_offset() => {
                return self.trim_before(client, request, before_offset, out);
            }
            _ if self.rounds.asking.len() >= ASKED_WAITING_MAX => Some(Code::Overloaded),
            _ => {
                let round = self.rounds.seen + 1;
                self.rounds.asking.push_back(Asking {
                    client,
                    request,
                    asked,
                    round,
                    since: now,
                });
                return;
            }
        };
        out.push(answer(client, request, asked, refused));
    }

    /// The head is known to be the head since the question came.
    fn answer_asked(&mut self, asking: &Asking, out: &mut Vec<Command>) {
        // A head that took over knows what was committed before from the ring; below min_replicas it does not.
        let is_certain = self.config.as_ref().is_some_and(|c| c.has_quorum())
            || self.commit_index == self.log.last_index();
        let refused = match asking.asked {
            _ if !is_certain => Some(Code::Paused),
            Asked::Status => None,
            Asked::Trim { before_offset } if before_offset > self.commit_offset() => {
                Some(Code::TrimBeyondCommit)
            }
            Asked::Trim { before_offset } => {
                return self.trim_before(asking.client, asking.request, before_offset, out);
            }
        };
        out.push(answer(asking.client, asking.request, asking.asked, refused));
    }

    /// Refuses the append, when what the refusal rests on has come true. Refusals of one session keep their order.
    pub(crate) fn refuse_append(
        &mut self,
        request: &AppendRequest,
        code: Code,
        rests_on: RestsOn,
        out: &mut Vec<Command>,
    ) {
        let rests_on = match rests_on {
            RestsOn::Nothing if self.rounds.held.iter().any(|h| h.session == request.session) => Rest::Turn,
            RestsOn::Nothing => return out.push(refusal(request, code)),
            RestsOn::Commit(index) => Rest::Commit(index),
            RestsOn::Round => Rest::Round(self.rounds.seen + 1),
        };
        if self.rounds.held.len() >= HELD_REFUSALS_MAX {
            return out.push(refusal(request, Code::Overloaded));
        }
        self.rounds.held.push_back(Held {
            client: request.client,
            session: request.session,
            seq: request.seq,
            entry_count: request.entry_count,
            code,
            rests_on,
        });
    }

    /// At the head: begins the next round, if it is wanted and none is under way.
    pub(crate) fn begin_round(&mut self) {
        if !self.is_head() {
            return;
        }
        if self.rounds.seen == self.round_closed() && self.rounds.is_wanted() {
            self.rounds.seen += 1;
        }
    }

    /// The last round that has reached this replica and, once a learner is about to join, the learner too.
    pub(crate) fn round_here(&self) -> u64 {
        self.rounds.seen.min(self.joining.map_or(u64::MAX, |j| j.round))
    }

    /// At the head: the last round that has come back. A chain of one closes it by beginning it.
    pub(crate) fn round_closed(&self) -> u64 {
        self.round_here().min(self.ring.round())
    }

    /// At the head: tells what has become certain.
    pub(crate) fn answer_rounds(&mut self, out: &mut Vec<Command>) {
        let closed = if planted::on(Bug::StaleTail) {
            u64::MAX
        } else {
            self.round_closed()
        };
        // A ring that waits for a learner to join commits no more than the learner has, for a moment: less than was
        // committed before, perhaps.
        let has_quorum = self.config.as_ref().is_some_and(|config| config.has_quorum());
        let is_caught_up = self.commit_index >= self.inherited_index || !has_quorum;
        let knows = is_caught_up || planted::on(Bug::StaleTail);
        while knows && self.rounds.asking.front().is_some_and(|a| a.round <= closed) {
            let asking = self.rounds.asking.pop_front().expect("there is a front");
            self.answer_asked(&asking, out);
        }
        if self.rounds.held.is_empty() {
            return;
        }
        let commit_index = self.commit_index;
        let mut waiting: HashSet<u64> = HashSet::new();
        self.rounds.held.retain(|held| {
            let is_certain = match held.rests_on {
                Rest::Turn => true,
                Rest::Commit(index) => index <= commit_index,
                Rest::Round(round) => round <= closed,
            };
            let is_told = is_certain && !waiting.contains(&held.session);
            if is_told {
                out.push(held.refusal(held.code));
            } else {
                waiting.insert(held.session);
            }
            !is_told
        });
    }

    /// A head whose round does not come back says so, before its clients' patience ends.
    pub(crate) fn expire_asked(&mut self, now: Micros, out: &mut Vec<Command>) {
        let is_over = |a: &Asking| now.saturating_sub(a.since) >= STATUS_WAIT_MS_MAX * 1000;
        while self.rounds.asking.front().is_some_and(is_over) {
            let asking = self.rounds.asking.pop_front().expect("there is a front");
            out.push(answer(
                asking.client,
                asking.request,
                asking.asked,
                Some(Code::Syncing),
            ));
        }
    }

    /// No longer the head: what was to be certain never will be. None of what is refused was ordered here, and it
    /// is for the next head to judge it.
    pub(crate) fn abandon_rounds(&mut self, code: Code, out: &mut Vec<Command>) {
        for asking in self.rounds.asking.drain(..) {
            out.push(answer(asking.client, asking.request, asking.asked, Some(code)));
        }
        for held in self.rounds.held.drain(..) {
            let told = if held.rests_on == Rest::Turn {
                held.code
            } else {
                code
            };
            out.push(held.refusal(told));
        }
    }

    /// Refusals that wait to become certain.
    pub fn held_refusals(&self) -> usize {
        self.rounds.held.len()
    }
}

/// What a held refusal waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Only those before it, of its session.
    Turn,
    Commit(Index),
    Round(u64),
}

impl Held {
    fn refusal(&self, code: Code) -> Command {
        Command::Refuse {
            client: self.client,
            seq: self.seq,
            entry_count: self.entry_count,
            code,
            happened: Happened::No,
            retry_after_ms: crate::head::retry_after_ms(code),
        }
    }
}

fn refusal(request: &AppendRequest, code: Code) -> Command {
    Command::Refuse {
        client: request.client,
        seq: request.seq,
        entry_count: request.entry_count,
        code,
        happened: Happened::No,
        retry_after_ms: crate::head::retry_after_ms(code),
    }
}

pub(crate) fn answer(client: ClientRef, request: u32, asked: Asked, refused: Option<Code>) -> Command {
    Command::Answer {
        client,
        request,
        asked,
        refused,
    }
}
