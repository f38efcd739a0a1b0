//! Everything that has to be on the disk: the vote and the log. Messages that speak of it wait for the disk.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_types::planted::{self, Bug};

use crate::entry::Entry;
use crate::ids::{MemberId, Point, Position, Term};
use crate::io::{Command, Disk, Snapshot, Vote, Write, WriteId};
use crate::limits::HELD_MESSAGES_MAX;
use crate::log::Log;
use crate::members::Members;
use crate::message::{Body, Message};

#[derive(Debug)]
pub struct Kept {
    vote: Vote,
    log: Log,
    committed: Position,
    /// The point of the newest snapshot on the disk.
    snapshot: Point,
    /// The log is on the disk up to here.
    durable: Position,
    last_write: WriteId,
    written: WriteId,
    /// The write that has the present term.
    term_write: WriteId,
    /// Writes under way, each with the end of the log that it makes durable.
    under_way: VecDeque<(WriteId, Position)>,
    held: VecDeque<(WriteId, MemberId, Message)>,
    commands: Vec<Command>,
}

impl Kept {
    pub fn new(disk: Disk) -> Self {
        let log = Log::new(disk.base, disk.members, disk.entries);
        assert!(
            log.last().term <= disk.vote.term,
            "the term is written with its first entry"
        );
        Self {
            vote: disk.vote,
            durable: log.last().position,
            committed: log.base().position,
            snapshot: log.base(),
            log,
            last_write: WriteId::default(),
            written: WriteId::default(),
            term_write: WriteId::default(),
            under_way: VecDeque::new(),
            held: VecDeque::new(),
            commands: Vec::new(),
        }
    }

    pub fn term(&self) -> Term {
        self.vote.term
    }

    pub fn vote(&self) -> Vote {
        self.vote
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn members(&self) -> &Members {
        self.log.members()
    }

    pub fn committed(&self) -> Position {
        self.committed
    }

    pub fn durable(&self) -> Position {
        self.durable
    }

    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    pub fn tell(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// A later term begins, without a vote yet.
    pub fn adopt(&mut self, term: Term) {
        assert!(term > self.vote.term, "terms only grow");
        let given_to = None;
        self.put_vote(Vote { term, given_to });
    }

    /// Whether the present term, and the vote in it, are on the disk.
    pub fn is_vote_written(&self) -> bool {
        self.term_write <= self.written
    }

    /// Whether the member may lead: it has a vote by what is agreed, or by a later entry that may not be.
    ///
    /// A member whose removal is not agreed yet may be the only one that can be elected, as nobody else has all entries.
    pub fn may_lead(&self, id: MemberId) -> bool {
        self.log
            .members_from(self.committed)
            .any(|members| members.is_voter(id))
    }

    /// Gives this term's vote.
    pub fn give_vote(&mut self, to: MemberId) {
        let given = self.vote.given_to;
        assert!(
            given.is_none() || given == Some(to) || planted::on(Bug::QuorumVotesTwice),
            "one vote in a term"
        );
        let term = self.vote.term;
        let given_to = Some(to);
        self.put_vote(Vote { term, given_to });
    }

    fn put_vote(&mut self, vote: Vote) {
        if vote == self.vote {
            return;
        }
        self.vote = vote;
        let id = self.next_write();
        self.term_write = id;
        let vote = (!planted::on(Bug::QuorumVoteNotWritten)).then_some(vote);
        self.write(Write {
            id,
            vote,
            snapshot: None,
            cut_after: None,
            entries: Vec::new(),
        });
    }

    /// Adds entries behind the position; others that are there go. Returns the write.
    pub fn append(&mut self, after: Position, entries: Vec<Entry>) -> WriteId {
        let cut_after = (after < self.log.last().position).then_some(after);
        if cut_after.is_some() {
            let is_planted =
                planted::on(Bug::QuorumLaterEntriesCut) || planted::on(Bug::QuorumPreviousUnchecked);
            assert!(after >= self.committed || is_planted, "committed entries stay");
            self.log.cut_after(after);
            self.durable = self.durable.min(after);
            for (_, end) in &mut self.under_way {
                *end = (*end).min(after);
            }
        }
        for entry in &entries {
            self.log.push(entry.clone());
        }
        let id = self.next_write();
        self.write(Write {
            id,
            vote: None,
            snapshot: None,
            cut_after,
            entries,
        });
        id
    }

    /// A snapshot in the place of the log.
    pub fn install(&mut self, snapshot: Arc<Snapshot>) -> WriteId {
        assert!(
            snapshot.base.position > self.committed || planted::on(Bug::QuorumSnapshotCutsLog),
            "the agreed log never shrinks"
        );
        let mut base = snapshot.base;
        if planted::on(Bug::QuorumSnapshotTermLost) {
            base.term = Term::default();
        }
        self.log = Log::new(base, snapshot.members.clone(), Vec::new());
        self.committed = base.position;
        self.snapshot = base;
        self.durable = Position::default();
        for (_, end) in &mut self.under_way {
            *end = Position::default();
        }
        let id = self.next_write();
        self.write(Write {
            id,
            vote: None,
            snapshot: Some(snapshot.clone()),
            cut_after: None,
            entries: Vec::new(),
        });
        self.tell(Command::Restore(snapshot));
        id
    }

    fn next_write(&mut self) -> WriteId {
        self.last_write = WriteId(self.last_write.0 + 1);
        self.last_write
    }

    fn write(&mut self, write: Write) {
        self.under_way.push_back((write.id, self.log.last().position));
        self.tell(Command::Write(write));
    }

    /// Writes up to this one are on stable storage: messages that waited for them leave.
    pub fn wrote(&mut self, id: WriteId) {
        assert!(id <= self.last_write, "only what was asked for is written");
        self.written = self.written.max(id);
        while self.under_way.front().is_some_and(|(write, _)| *write <= id) {
            let (_, end) = self.under_way.pop_front().expect("there is one");
            self.durable = self.durable.max(end);
        }
        while self
            .held
            .front()
            .is_some_and(|(after, _, _)| *after <= self.written)
        {
            let (_, to, message) = self.held.pop_front().expect("there is one");
            self.tell(Command::Send { to, message });
        }
    }

    /// Sends a message once the present term is on the disk.
    pub fn send(&mut self, to: MemberId, body: Body) {
        self.send_after(self.term_write, to, body);
    }

    /// Sends a message once this write, and the present term, are on the disk.
    pub fn send_after(&mut self, write: WriteId, to: MemberId, body: Body) {
        let term = self.vote.term;
        let message = Message { term, body };
        let after = write.max(self.term_write);
        if after <= self.written || planted::on(Bug::QuorumAnswersBeforeSync) {
            return self.tell(Command::Send { to, message });
        }
        if self.held.len() >= HELD_MESSAGES_MAX {
            return;
        }
        let place = self.held.partition_point(|(held, _, _)| *held <= after);
        self.held.insert(place, (after, to, message));
    }

    /// The agreed log reaches to there now.
    pub fn commit(&mut self, through: Position) {
        if through <= self.committed {
            return;
        }
        assert!(
            through <= self.log.last().position,
            "only known entries are committed"
        );
        let entries = self.log.entries_between(self.committed, through);
        self.committed = through;
        self.tell(Command::Commit(entries));
    }

    /// The shell has a snapshot with everything up to there.
    ///
    /// `kept_bytes` of entries stay in memory.
    pub fn compact(&mut self, through: Position, kept_bytes: usize) {
        assert!(through <= self.committed, "a snapshot has agreed entries alone");
        if through <= self.snapshot.position {
            return;
        }
        self.snapshot = self.log.point_at(through);
        self.log.compact(through, kept_bytes);
    }

    /// Whether a log that ends there has all that this one has.
    pub fn is_covered_by(&self, last: Point) -> bool {
        last >= self.log.last() || planted::on(Bug::QuorumShorterLogElected)
    }
}
