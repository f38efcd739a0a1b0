//! The state of a client that appends.

use std::collections::VecDeque;

use quorate_types::{Epoch, Index, Micros, Offset};

use super::{ClientState, Connection, Grant, Outstanding};
use crate::plan::GroupPlan;

#[derive(Debug)]
pub struct Writer {
    pub group: usize,
    pub habit: Habit,
    /// It stays away until so many batches are committed; 0: it is there.
    pub away_until: Index,
    pub grant: Grant,
    pub session: u64,
    pub connection: Connection,
    /// The head, as a server named it.
    pub hint: Option<usize>,
    pub state: ClientState,
    pub since: Micros,
    pub floor_index: Index,
    pub epoch_seen: Epoch,
    pub next_seq: u64,
    /// New batches still to be made.
    pub remaining: u32,
    pub outstanding: VecDeque<Outstanding>,
    pub unanswered: u32,
    pub was_refused: bool,
    /// The time before which a server wants nothing to be sent again.
    pub resend_at: Micros,
    pub offset_seen: Offset,
    pub fencing_token: u64,
    /// Numbers of its questions so far; that of the one that waits for its answer.
    pub questions: u32,
    pub asking: Option<u32>,
}

/// How a client uses its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// One for as long as it goes.
    KeepsSession,
    /// One for each batch, and fast: several of these fill the session table.
    RenewsSession,
    /// One for each batch. Often it leaves with the batch unanswered, and asks for its outcome when its session may have
    /// expired.
    LeavesAndReturns,
    /// One, and no permission to append.
    LacksPermission,
}

impl Habit {
    pub fn renews(self) -> bool {
        matches!(self, Habit::RenewsSession | Habit::LeavesAndReturns)
    }
}

impl Writer {
    pub fn new(group: usize, number: u64, plan: &GroupPlan, habit: Habit) -> Self {
        let grant = Grant {
            may_append: habit != Habit::LacksPermission,
            may_read: false,
            lifetime_s: plan.token_lifetime_s,
        };
        let remaining = match habit {
            Habit::KeepsSession | Habit::RenewsSession => plan.batches_per_client,
            Habit::LeavesAndReturns | Habit::LacksPermission => 10,
        };
        Self {
            group,
            habit,
            away_until: 0,
            grant,
            session: (number + 1) << 32,
            connection: Connection::default(),
            hint: None,
            state: ClientState::Idle,
            since: 0,
            floor_index: Index::MAX,
            epoch_seen: 0,
            next_seq: 1,
            remaining,
            outstanding: VecDeque::new(),
            unanswered: 0,
            was_refused: false,
            resend_at: 0,
            offset_seen: 0,
            fencing_token: 0,
            questions: 0,
            asking: None,
        }
    }

    pub fn disconnected(&mut self) {
        self.state = ClientState::Idle;
    }

    pub fn is_done(&self) -> bool {
        self.remaining == 0 && self.outstanding.is_empty()
    }
}
