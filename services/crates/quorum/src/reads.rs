//! Reads that wait until a majority has confirmed the leader.

use std::collections::VecDeque;

use crate::ids::Position;
use crate::io::CallId;

#[derive(Debug, Default)]
pub struct Reads(VecDeque<Waiting>);

#[derive(Debug)]
struct Waiting {
    call: CallId,
    /// A round that began after the call.
    round: u64,
    position: Position,
}

impl Reads {
    pub fn add(&mut self, call: CallId, round: u64, position: Position) {
        self.0.push_back(Waiting {
            call,
            round,
            position,
        });
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes those whose round a majority has answered, and whose position is committed.
    pub fn take_ready(&mut self, round: u64, committed: Position) -> Vec<(CallId, Position)> {
        let is_ready = |waiting: &Waiting| waiting.round <= round && waiting.position <= committed;
        let mut ready = Vec::new();
        while self.0.front().is_some_and(is_ready) {
            let Waiting { call, position, .. } = self.0.pop_front().expect("there is one");
            ready.push((call, position));
        }
        ready
    }
}
