//! Callers of a world: proposals, reads, and an operator who keeps the number of members.

use std::collections::BTreeMap;

use quorate_quorum::{Change, Command, Entry, Event, MemberId, Members, Point, Refused, RoleView};

use super::{World, address};

pub struct Calls {
    voters: usize,
    made: u64,
    /// The number of agreed entries when each read began.
    reads: BTreeMap<u64, usize>,
    reads_answered: usize,
    last_reads: usize,
    placed: BTreeMap<Point, u64>,
    next_change_ms: u64,
}

impl Calls {
    pub fn new(voters: usize) -> Self {
        Self {
            voters,
            made: 0,
            reads: BTreeMap::new(),
            reads_answered: 0,
            last_reads: 0,
            placed: BTreeMap::new(),
            next_change_ms: 0,
        }
    }

    pub fn agreed(&mut self, entry: &Entry) {
        self.placed.remove(&entry.point());
    }

    pub fn reads_answered(&self) -> usize {
        self.reads_answered
    }

    /// Whether reads are answered after the faults.
    pub fn read_last(&self) -> bool {
        self.last_reads > 3
    }

    fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

impl World {
    pub(super) fn call(&mut self, has_faults: bool) {
        if self.random.one_in(6) {
            let call = self.calls.next();
            let id = self.somebody();
            let payload = [call.to_le_bytes(), self.random.next().to_le_bytes()].concat();
            let payload = payload.into();
            self.feed_call(id, Event::Propose { call, payload });
        }
        if self.random.one_in(10) {
            let call = self.calls.next();
            let id = self.somebody();
            let known = self.agreed.len();
            self.calls.reads.insert(call, known);
            self.calls.last_reads = if has_faults { 0 } else { self.calls.last_reads };
            self.feed_call(id, Event::Read { call });
        }
        if has_faults && self.random.one_in(400) {
            let (call, id) = (self.calls.next(), self.somebody());
            self.feed_call(id, Event::StepDown { call, to: None });
        }
        if self.now_ms >= self.calls.next_change_ms {
            self.calls.next_change_ms = self.now_ms + 50 + self.random.below(500);
            self.operate();
        }
    }

    /// Mostly one that takes itself for the leader.
    fn somebody(&mut self) -> MemberId {
        let leads = |id: &MemberId| matches!(self.processes[id].role, Some(RoleView::Leader { .. }));
        let leaders: Vec<MemberId> = self.processes.keys().copied().filter(leads).collect();
        let all: Vec<MemberId> = self.processes.keys().copied().collect();
        let from = if leaders.is_empty() || self.random.one_in(10) {
            all
        } else {
            leaders
        };
        from[self.random.below(from.len() as u64) as usize]
    }

    fn feed_call(&mut self, id: MemberId, event: Event) {
        if self.processes[&id].frozen_until_ms <= self.now_ms {
            self.feed(id, event);
        }
    }

    pub(super) fn answered(&mut self, id: MemberId, command: Command) {
        match command {
            Command::Placed { call, point } => {
                self.calls.placed.insert(point, call);
            }
            Command::ReadAt { call, position } => {
                let known = self.calls.reads.remove(&call).expect("it was asked");
                assert!(
                    position.0 as usize >= known,
                    "{id} reads at {position:?}, and {known} entries were agreed before the call"
                );
                self.calls.reads_answered += 1;
                self.calls.last_reads += 1;
            }
            Command::Refused { call, why } => {
                self.calls.reads.remove(&call);
                assert_ne!(why, Refused::Busy, "nothing here fills a queue");
            }
            _ => {}
        }
    }

    /// The operator takes members in and out, one after the other.
    fn operate(&mut self) {
        let Some(agreed) = self.agreed_members() else {
            return;
        };
        if self.random.one_in(3) {
            self.remove_two(&agreed);
        }
        let Some(change) = self.next_change(&agreed) else {
            return;
        };
        let id = self.somebody();
        let call = self.calls.next();
        self.feed_call(id, Event::Change { call, change });
        // Somebody else may be at it at the same time.
        if self.random.one_in(2)
            && let Some(change) = self.next_change(&agreed)
        {
            let (call, id) = (self.calls.next(), self.somebody());
            self.feed_call(id, Event::Change { call, change });
        }
    }

    /// In a hurry, without a wait for the first.
    fn remove_two(&mut self, agreed: &Members) {
        let leader = self.somebody();
        let others: Vec<MemberId> = agreed.voters().filter(|id| *id != leader).collect();
        if others.len() < 2 || agreed.ids().any(|id| self.processes[&id].is_wiped) {
            return;
        }
        for id in others.into_iter().take(2) {
            let call = self.calls.next();
            let change = Change::Remove(id);
            self.feed_call(leader, Event::Change { call, change });
        }
    }

    fn next_change(&mut self, agreed: &Members) -> Option<Change> {
        let voters: Vec<MemberId> = agreed.voters().collect();
        let learner = agreed.ids().find(|id| !agreed.is_voter(*id));
        let is_wiped = |id: &MemberId| self.processes[id].is_wiped;
        if let Some(gone) = agreed.ids().find(is_wiped) {
            return Some(Change::Remove(gone));
        }
        if voters.len() > self.calls.voters {
            let place = self.random.below(voters.len() as u64);
            return Some(Change::Remove(voters[place as usize]));
        }
        let replaces = self.random.one_in(6) && voters.len() == self.calls.voters;
        if voters.len() == self.calls.voters && !replaces {
            return None;
        }
        if let Some(id) = learner {
            return Some(Change::Promote(id));
        }
        let unused = self.processes.iter().find(|(id, process)| {
            !process.is_wiped
                && process.applied == 0
                && process.replica.is_some()
                && agreed.get(**id).is_none()
        });
        let id = match unused.map(|(id, _)| *id) {
            Some(id) => id,
            None if self.processes.len() < 14 => {
                let id = self.new_id();
                self.add_process(id, Members::default());
                id
            }
            None => return None,
        };
        let address = address(id);
        Some(Change::AddLearner { id, address })
    }
}
