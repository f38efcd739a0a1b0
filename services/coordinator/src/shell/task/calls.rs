//! Calls that wait for their answers. A call that is dropped without one may have been done or not.

use std::collections::HashMap;

use quorate_quorum::Refused;
use tokio::sync::oneshot;

use super::handle::{Answer, Asked, Unavailable};
use crate::shell::members::JoinAnswer;
use quorate_coordinator_core::command::Reply;
use quorate_coordinator_core::ids::CallId;

pub enum Waiting {
    Command(Answer<Reply>),
    Ask(Asked),
    /// Another coordinator wants to be taken in, or to be known elsewhere.
    Join(oneshot::Sender<JoinAnswer>),
    /// An operator changes the members, or hands the lead over.
    Change(Answer<Result<(), Refused>>),
}

/// Addresses of the one that leads, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct LeaderAddresses {
    /// By callers of the HTTP interface.
    pub http: Option<String>,
    /// By other coordinators.
    pub members: Option<String>,
}

#[derive(Default)]
pub struct Calls {
    waiting: HashMap<CallId, Waiting>,
    made: CallId,
}

impl Calls {
    pub fn add(&mut self, waiting: Waiting) -> CallId {
        let call = self.next();
        self.waiting.insert(call, waiting);
        call
    }

    /// A call for whose answer nobody waits.
    pub fn next(&mut self) -> CallId {
        self.made += 1;
        self.made
    }

    pub fn answer(&mut self, call: CallId, reply: Reply) {
        if let Some(Waiting::Command(answer)) = self.waiting.remove(&call) {
            give(answer, Ok(reply));
        }
    }

    /// The change of members is agreed.
    pub fn done(&mut self, call: CallId) {
        match self.waiting.remove(&call) {
            Some(Waiting::Join(answer)) => give(answer, JoinAnswer::TakenIn),
            Some(Waiting::Change(answer)) => give(answer, Ok(Ok(()))),
            _ => {}
        }
    }

    /// The question of a call, which can be answered now.
    pub fn take_asked(&mut self, call: CallId) -> Option<Asked> {
        match self.waiting.remove(&call) {
            Some(Waiting::Ask(asked)) => Some(asked),
            _ => None,
        }
    }

    /// The call was not done, and will not be.
    pub fn refuse(&mut self, call: CallId, why: Refused, leader: LeaderAddresses) {
        let unavailable = match why {
            Refused::NotLeader { .. } => Unavailable::NotLeader { leader: leader.http },
            _ => Unavailable::Unknown,
        };
        match self.waiting.remove(&call) {
            Some(Waiting::Command(answer)) => give(answer, Err(unavailable)),
            Some(Waiting::Ask(Asked::Look(look))) => look(Err(unavailable)),
            Some(Waiting::Ask(Asked::Quote { answer, .. })) => give(answer, Err(unavailable)),
            Some(Waiting::Ask(Asked::QuoteGuarantee { answer, .. })) => give(answer, Err(unavailable)),
            Some(Waiting::Ask(Asked::Servers { answer, .. })) => give(answer, Err(unavailable)),
            Some(Waiting::Ask(Asked::FleetVersion(answer))) => give(answer, Err(unavailable)),
            Some(Waiting::Join(answer)) => give(answer, join_refused(why, leader.members)),
            Some(Waiting::Change(answer)) => match why {
                Refused::NotLeader { .. } => give(answer, Err(unavailable)),
                why => give(answer, Ok(Err(why))),
            },
            None => {}
        }
    }

    /// There is no answer: the caller learns at once.
    pub fn forget(&mut self, call: CallId) {
        self.waiting.remove(&call);
    }

    pub fn forget_all(&mut self) {
        self.waiting.clear();
    }
}

fn join_refused(why: Refused, leader: Option<String>) -> JoinAnswer {
    match why {
        Refused::NotLeader { .. } => JoinAnswer::AskLeader { address: leader },
        why => JoinAnswer::Refused {
            message: format!("the leader refuses for now: {why}"),
        },
    }
}

fn give<T>(answer: oneshot::Sender<T>, value: T) {
    // A caller that has ceased to wait does not need it.
    let _waits_no_more = answer.send(value).is_err();
}
