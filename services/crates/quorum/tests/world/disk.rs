//! A member's disk: writes end in order, after a while. A crash loses those that have not ended, but for a first part.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_quorum::{Disk, Entry, Members, Point, Position, Snapshot, Vote, Write, WriteId};

use quorate_types::planted::{self, Bug};

use super::random::Random;

pub struct SimDisk {
    vote: Vote,
    first: Members,
    snapshot: Option<Arc<Snapshot>>,
    entries: Vec<Entry>,
    under_way: VecDeque<(u64, Work)>,
    slow_until_ms: u64,
}

enum Work {
    Write(Write),
    Snapshot(Arc<Snapshot>),
}

pub enum Done {
    Write(WriteId),
    Snapshot(Position),
}

impl SimDisk {
    pub fn new(first: Members) -> Self {
        Self {
            vote: Vote::default(),
            first,
            snapshot: None,
            entries: Vec::new(),
            under_way: VecDeque::new(),
            slow_until_ms: 0,
        }
    }

    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.clone()
    }

    pub fn slow_down(&mut self, until_ms: u64) {
        self.slow_until_ms = until_ms;
    }

    pub fn begin(&mut self, write: Write, now_ms: u64, random: &mut Random) {
        self.queue(Work::Write(write), now_ms, random);
    }

    pub fn begin_snapshot(&mut self, snapshot: Arc<Snapshot>, now_ms: u64, random: &mut Random) {
        self.queue(Work::Snapshot(snapshot), now_ms, random);
    }

    fn queue(&mut self, work: Work, now_ms: u64, random: &mut Random) {
        let takes_ms = 1 + random.below(if now_ms < self.slow_until_ms { 400 } else { 8 });
        let last = self.under_way.back().map_or(0, |(at_ms, _)| *at_ms);
        self.under_way.push_back((last.max(now_ms + takes_ms), work));
    }

    pub fn due(&mut self, now_ms: u64) -> Vec<Done> {
        let mut done = Vec::new();
        while self.under_way.front().is_some_and(|(at_ms, _)| *at_ms <= now_ms) {
            let (_, work) = self.under_way.pop_front().expect("there is one");
            done.push(match &work {
                Work::Write(write) => Done::Write(write.id),
                Work::Snapshot(snapshot) => Done::Snapshot(snapshot.base.position),
            });
            self.perform(work);
        }
        done
    }

    /// Some of the writes under way are there all the same.
    pub fn crash(&mut self, random: &mut Random) {
        let kept = random.below(self.under_way.len() as u64 + 1);
        let works: Vec<Work> = self.under_way.drain(..).map(|(_, work)| work).collect();
        for work in works.into_iter().take(kept as usize) {
            self.perform(work);
        }
    }

    fn perform(&mut self, work: Work) {
        match work {
            Work::Write(write) => {
                self.vote = write.vote.unwrap_or(self.vote);
                if let Some(snapshot) = write.snapshot {
                    self.entries.clear();
                    self.snapshot = Some(snapshot);
                }
                if let Some(after) = write.cut_after {
                    self.entries.retain(|entry| entry.position <= after);
                }
                self.entries.extend(write.entries);
            }
            Work::Snapshot(snapshot) => {
                if self
                    .snapshot
                    .as_ref()
                    .is_none_or(|own| own.base.position < snapshot.base.position)
                {
                    self.entries
                        .retain(|entry| entry.position > snapshot.base.position);
                    self.snapshot = Some(snapshot);
                }
            }
        }
    }

    pub fn read(&self) -> Disk {
        let (base, members) = self.snapshot.as_ref().map_or_else(
            || (Point::default(), self.first.clone()),
            |snapshot| (snapshot.base, snapshot.members.clone()),
        );
        // The planted bug of a vote that is not written must not end at the first entry.
        let last = self.entries.last().map_or(base.term, |entry| entry.term);
        let mut vote = self.vote;
        if vote.term < last && planted::on(Bug::QuorumVoteNotWritten) {
            vote = Vote {
                term: last,
                given_to: None,
            };
        }
        Disk {
            vote,
            base,
            members,
            entries: self.entries.clone(),
        }
    }
}
