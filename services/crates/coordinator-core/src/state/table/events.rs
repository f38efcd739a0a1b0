//! The latest events, numbered.

use std::collections::VecDeque;

use quorate_types::limits::COORDINATOR_EVENTS_MAX;
use serde::{Deserialize, Serialize};

use crate::state::entity::Event;

/// The last [`COORDINATOR_EVENTS_MAX`] events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    last_seq: u64,
    kept: VecDeque<Event>,
}

impl Events {
    /// Numbers the event and keeps it.
    pub fn push(&mut self, mut event: Event) {
        self.last_seq += 1;
        event.seq = self.last_seq;
        self.kept.push_back(event);
        if self.kept.len() > COORDINATOR_EVENTS_MAX {
            self.kept.pop_front();
        }
    }

    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The oldest that is still kept; one above the last when none is.
    pub fn first_seq(&self) -> u64 {
        self.last_seq + 1 - self.kept.len() as u64
    }

    /// Up to `limit` events with `seq > after`.
    pub fn after(&self, after: u64, limit: usize) -> impl Iterator<Item = &Event> {
        let skip = (after + 1).saturating_sub(self.first_seq());
        self.kept
            .iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX))
            .take(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::entity::EventKind;

    #[test]
    fn the_oldest_are_forgotten_and_numbers_stay_dense() {
        let mut events = Events::default();
        assert_eq!((events.first_seq(), events.last_seq()), (1, 0));
        for _ in 0..COORDINATOR_EVENTS_MAX + 7 {
            events.push(Event {
                seq: 0,
                at_ms: 0,
                kind: EventKind::GroupStatus,
                group_id: None,
                server_id: None,
                epoch: None,
                status: None,
                message: String::new(),
            });
        }
        assert_eq!(events.first_seq(), 8);
        let seqs = |after, limit| events.after(after, limit).map(|e| e.seq).collect::<Vec<_>>();
        assert_eq!(seqs(0, 2), [8, 9]);
        assert_eq!(seqs(8, 2), [9, 10]);
        assert_eq!(seqs(events.last_seq() - 1, 9), [events.last_seq()]);
        assert!(seqs(events.last_seq(), 9).is_empty() && seqs(u64::MAX - 1, 9).is_empty());
    }
}
