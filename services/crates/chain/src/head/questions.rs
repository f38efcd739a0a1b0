//! Questions that a ring pass must precede: where the log ends, and trims beyond what is known to be committed.

use std::collections::VecDeque;

use quorate_types::limits::{ASKED_WAITING_MAX, STATUS_WAIT_MS_MAX};
use quorate_types::{Code, Micros};

use crate::command::{ClientRef, Question, ReplicaCommand};

/// In order of their passes.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    pass: u64,
    since: Micros,
}

impl Questions {
    /// A new epoch counts its passes from 1; all questions wait for the first.
    pub fn begin_epoch(&mut self) {
        for waiting in &mut self.waiting {
            waiting.pass = 1;
        }
    }

    pub fn wait(&mut self, now: Micros, question: Question, pass: u64) -> Result<(), Code> {
        if self.waiting.len() >= ASKED_WAITING_MAX {
            return Err(Code::Overloaded);
        }
        self.waiting.push_back(Waiting {
            question,
            pass,
            since: now,
        });
        Ok(())
    }

    pub fn want_pass_after(&self, latest: u64) -> bool {
        self.waiting.back().is_some_and(|w| w.pass > latest)
    }

    pub fn take_answerable(&mut self, completed_pass: u64) -> Option<Question> {
        let waiting = self.waiting.pop_front_if(|w| w.pass <= completed_pass)?;
        Some(waiting.question)
    }

    /// A head whose pass does not come back says so before its clients' patience ends.
    pub fn expire(&mut self, now: Micros, out: &mut Vec<ReplicaCommand>) {
        let is_over = |w: &mut Waiting| now.saturating_sub(w.since) >= STATUS_WAIT_MS_MAX * 1000;
        while let Some(waiting) = self.waiting.pop_front_if(is_over) {
            out.push(waiting.question.answer(Some(Code::Syncing)));
        }
    }

    pub fn abandon(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        for waiting in self.waiting.drain(..) {
            out.push(waiting.question.answer(Some(code)));
        }
    }

    pub fn forget_client(&mut self, client: ClientRef) {
        self.waiting.retain(|w| w.question.client != client);
    }
}
