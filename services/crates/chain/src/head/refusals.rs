//! Refusals that wait until their premise is certain.
//!
//! A condition is judged on the head's log. That log may hold batches that are never committed, and may lack batches
//! that another head has committed since. A refusal sent too early could speak of entries that are lost with this
//! head, or of too few.

use std::collections::{HashSet, VecDeque};

use quorate_types::limits::{HELD_REFUSALS_MAX, RETRY_AFTER_MS_HELD};
use quorate_types::{Code, Index};

use crate::command::{AppendRequest, ClientRef, Happened, ReplicaCommand};
use crate::head::judge::Premise;

/// How long a client should wait before it tries a paused or read-only group again.
const RETRY_PAUSED_MS: u32 = 200;

#[derive(Debug, Default)]
pub(crate) struct HeldRefusals {
    held: VecDeque<Held>,
}

#[derive(Debug)]
struct Held {
    client: ClientRef,
    session: u64,
    seq: u64,
    entry_count: u32,
    code: Code,
    until: Until,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Earlier refusals of its session have left.
    Turn,
    Commit(Index),
    Pass(u64),
}

impl HeldRefusals {
    /// A new epoch counts its passes from 1; all refusals that wait for a pass wait for the first.
    pub fn begin_epoch(&mut self) {
        for held in &mut self.held {
            if let Until::Pass(pass) = &mut held.until {
                *pass = 1;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn want_pass_after(&self, latest: u64) -> bool {
        let is_later = |held: &Held| matches!(held.until, Until::Pass(pass) if pass > latest);
        self.held.iter().any(is_later)
    }

    /// Refuses the append when its premise holds. Refusals of one session keep their order.
    pub fn refuse(
        &mut self,
        request: &AppendRequest,
        code: Code,
        premise: Premise,
        next_pass: u64,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let until = match premise {
            Premise::None if self.holds_session(request.session) => Until::Turn,
            Premise::None => return out.push(refusal(request, code)),
            Premise::Commit(index) => Until::Commit(index),
            Premise::RingPass => Until::Pass(next_pass),
        };
        if self.held.len() >= HELD_REFUSALS_MAX {
            return out.push(refusal(request, Code::Overloaded));
        }
        self.held.push_back(Held {
            client: request.client,
            session: request.session,
            seq: request.seq,
            entry_count: request.entry_count,
            code,
            until,
        });
    }

    fn holds_session(&self, session: u64) -> bool {
        self.held.iter().any(|h| h.session == session)
    }

    /// Lets out the refusals that have become certain.
    pub fn release(&mut self, commit_index: Index, completed_pass: u64, out: &mut Vec<ReplicaCommand>) {
        if self.held.is_empty() {
            return;
        }
        let mut waiting: HashSet<u64> = HashSet::new();
        self.held.retain(|held| {
            let is_certain = match held.until {
                Until::Turn => true,
                Until::Commit(index) => index <= commit_index,
                Until::Pass(pass) => pass <= completed_pass,
            };
            let leaves = is_certain && !waiting.contains(&held.session);
            if leaves {
                out.push(held.refusal(held.code));
            } else {
                waiting.insert(held.session);
            }
            !leaves
        });
    }

    /// A refusal whose premise stays uncertain gets `code`: the next head judges that append.
    pub fn abandon(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        for held in self.held.drain(..) {
            let is_certain = held.until == Until::Turn;
            out.push(held.refusal(if is_certain { held.code } else { code }));
        }
    }

    pub fn forget_client(&mut self, client: ClientRef) {
        self.held.retain(|h| h.client != client);
    }
}

impl Held {
    fn refusal(&self, code: Code) -> ReplicaCommand {
        refused(self.client, self.seq, self.entry_count, code)
    }
}

fn refusal(request: &AppendRequest, code: Code) -> ReplicaCommand {
    refused(request.client, request.seq, request.entry_count, code)
}

fn refused(client: ClientRef, seq: u64, entry_count: u32, code: Code) -> ReplicaCommand {
    ReplicaCommand::Refuse {
        client,
        seq,
        entry_count,
        code,
        happened: Happened::No,
        retry_after_ms: retry_after_ms(code),
    }
}

/// How long the client of a refused append should wait.
fn retry_after_ms(code: Code) -> u32 {
    match code {
        Code::Paused | Code::ReadOnly => RETRY_PAUSED_MS,
        Code::Overloaded => RETRY_AFTER_MS_HELD as u32,
        _ => 0,
    }
}
