//! One member: events, each to its role.

use quorate_types::lived::Lived;
use quorate_types::planted::{self, Bug};

use crate::election::Election;
use crate::entry::Entry;
use crate::follower::{Follower, Piece};
use crate::ids::{MemberId, Point, Position, Term};
use crate::io::{CallId, Command, Disk, Event, RoleView, Settings, WriteId};
use crate::kept::Kept;
use crate::leader::Leader;
use crate::members::Members;
use crate::message::{Body, Message};
use crate::refused::Refused;

/// The part of the election time that a follower waits when the leader's connection ends. One that lives connects sooner.
const CLOSED_WAIT_DIVISOR: u64 = 4;
/// Ticks come at least as often: a longer step of the clock is a pause of the own machine.
const STEP_HEARTBEATS_MAX: u64 = 2;

#[derive(Debug)]
pub struct Replica {
    own: MemberId,
    settings: Settings,
    lived: Lived,
    kept: Kept,
    role: Role,
    told: Option<RoleView>,
    random: u64,
}

#[derive(Debug)]
enum Role {
    Follower(Follower),
    Candidate(Election),
    Leader(Leader),
}

/// A member's view of the log, for people.
#[derive(Debug, Clone)]
pub struct View {
    pub own: MemberId,
    pub role: RoleView,
    pub last: Point,
    pub committed: Position,
    pub durable: Position,
    pub members: Members,
    /// The other members, as the leader sees them.
    pub others: Vec<(MemberId, MemberView)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    pub matched: Position,
    /// Milliseconds since its last answer.
    pub silent_ms: u64,
}

impl Replica {
    /// A member as its disk has it.
    pub fn new(own: MemberId, disk: Disk, settings: Settings, now_ms: u64) -> Self {
        let mut replica = Self {
            own,
            settings,
            lived: Lived::new(now_ms, STEP_HEARTBEATS_MAX * settings.heartbeat_ms),
            kept: Kept::new(disk),
            role: Role::Follower(Follower::new(None, 0, 0)),
            told: None,
            random: settings.seed | 1,
        };
        let deadline_ms = match replica.is_alone() {
            // Nobody can answer it, and nobody else can lead.
            true => now_ms,
            false => replica.election_deadline(now_ms),
        };
        replica.role = Role::Follower(Follower::new(None, 0, deadline_ms));
        replica
    }

    /// Whether it is the only voter, by all that its log has.
    fn is_alone(&self) -> bool {
        let mut versions = self.kept.log().members_from(self.kept.committed());
        versions.all(|members| members.voters().eq([self.own]))
    }

    /// Takes an event in.
    pub fn take(&mut self, now_ms: u64, event: Event) {
        let now_ms = self.lived.advance(now_ms);
        match event {
            Event::Tick => self.tick(now_ms),
            Event::Received { from, message } => self.receive(now_ms, from, message),
            Event::Disconnected { member } => {
                if let Role::Leader(leader) = &mut self.role {
                    leader.disconnected(member);
                }
            }
            Event::Closed { member } => self.closed(now_ms, member),
            Event::Written { id } => self.wrote(now_ms, id),
            Event::Compacted { through } => self.kept.compact(through, self.settings.kept_bytes),
            Event::SnapshotLoaded { snapshot } => {
                if let Role::Leader(leader) = &mut self.role {
                    leader.loaded(snapshot);
                }
            }
            Event::Propose { .. } | Event::Change { .. } | Event::Read { .. } | Event::StepDown { .. } => {
                self.call(now_ms, event);
            }
        }
    }

    /// The commands that follow from the events since the last time.
    pub fn take_commands(&mut self, now_ms: u64) -> Vec<Command> {
        let now_ms = self.lived.advance(now_ms);
        if let Role::Leader(leader) = &mut self.role {
            leader.flush(&mut self.kept, &self.settings, now_ms);
        }
        let view = self.role();
        if self.told != Some(view) {
            self.told = Some(view);
            self.kept.tell(Command::Role(view));
        }
        self.kept.take_commands()
    }

    pub fn view(&self, now_ms: u64) -> View {
        let now_ms = self.lived.at(now_ms);
        let others = match &self.role {
            Role::Leader(leader) => leader
                .others()
                .iter()
                .map(|(id, progress)| {
                    let silent_ms = now_ms.saturating_sub(progress.heard_ms);
                    let matched = progress.matched;
                    (*id, MemberView { matched, silent_ms })
                })
                .collect(),
            _ => Vec::new(),
        };
        View {
            own: self.own,
            role: self.role(),
            last: self.kept.log().last(),
            committed: self.kept.committed(),
            durable: self.kept.durable(),
            members: self.kept.members().clone(),
            others,
        }
    }

    pub fn term(&self) -> Term {
        self.kept.term()
    }

    /// The member to ask for what this one may not answer.
    pub fn leader(&self) -> Option<MemberId> {
        match self.role() {
            RoleView::Leader { .. } => Some(self.own),
            RoleView::Follower { leader, .. } => leader,
        }
    }

    pub fn members(&self) -> &Members {
        self.kept.members()
    }

    pub fn committed(&self) -> Position {
        self.kept.committed()
    }

    /// Entries after a position that is not before the newest snapshot: agreed ones, and those that may not be.
    pub fn entries_after(&self, position: Position) -> Vec<Entry> {
        let last = self.kept.log().last().position;
        self.kept.log().entries_between(position, last)
    }

    /// The members at a position of the log, for its snapshot.
    pub fn members_at(&self, position: Position) -> &Members {
        self.kept.log().members_at(position)
    }

    /// The point of a committed position that is in memory still.
    pub fn point_at(&self, position: Position) -> Point {
        self.kept.log().point_at(position)
    }

    pub fn role(&self) -> RoleView {
        let term = self.kept.term();
        match &self.role {
            Role::Leader(_) => RoleView::Leader { term },
            Role::Follower(follower) => RoleView::Follower {
                term,
                leader: follower.leader,
            },
            Role::Candidate(_) => RoleView::Follower { term, leader: None },
        }
    }

    // -- time ------------------------------------------------------------------------------------

    fn tick(&mut self, now_ms: u64) {
        match &mut self.role {
            Role::Leader(leader) => {
                if !leader.leads_on(&self.kept, &self.settings, now_ms) {
                    self.follow(None, now_ms);
                }
            }
            Role::Follower(Follower { deadline_ms, .. }) | Role::Candidate(Election { deadline_ms, .. }) => {
                if now_ms >= *deadline_ms && self.kept.may_lead(self.own) {
                    self.canvass(now_ms);
                }
            }
        }
    }

    fn wrote(&mut self, now_ms: u64, id: WriteId) {
        self.kept.wrote(id);
        match &mut self.role {
            Role::Leader(leader) => leader.advance(&mut self.kept),
            // The own vote is among the writes.
            Role::Candidate(election) if !election.is_canvass() && self.kept.is_vote_written() => {
                election.count(self.own);
                self.lead_if_elected(now_ms);
            }
            _ => {}
        }
    }

    /// A follower whose leader's connection has ended waits no whole election time for a word. The others still say no if
    /// they hear it.
    fn closed(&mut self, now_ms: u64, member: MemberId) {
        let soon_ms = self.settings.election_ms / CLOSED_WAIT_DIVISOR;
        let deadline_ms = now_ms + soon_ms + self.draw() % soon_ms.max(1);
        if let Role::Follower(follower) = &mut self.role
            && follower.leader == Some(member)
        {
            follower.heard_ms = 0;
            follower.deadline_ms = follower.deadline_ms.min(deadline_ms);
        }
    }

    fn election_deadline(&mut self, now_ms: u64) -> u64 {
        now_ms + self.settings.election_ms + self.draw() % self.settings.election_ms
    }

    /// xorshift64: spreads elections, and decides nothing.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    // -- roles -----------------------------------------------------------------------------------

    fn follow(&mut self, leader: Option<MemberId>, now_ms: u64) {
        let deadline_ms = self.election_deadline(now_ms);
        let heard_ms = if leader.is_some() { now_ms } else { 0 };
        self.role = Role::Follower(Follower::new(leader, heard_ms, deadline_ms));
    }

    fn canvass(&mut self, now_ms: u64) {
        let deadline_ms = self.election_deadline(now_ms);
        let election = Election::canvass(&mut self.kept, self.own, deadline_ms);
        self.role = Role::Candidate(election);
        self.lead_if_elected(now_ms);
    }

    fn stand(&mut self, now_ms: u64) {
        let deadline_ms = self.election_deadline(now_ms);
        let mut election = Election::stand(&mut self.kept, self.own, deadline_ms);
        if planted::on(Bug::QuorumVoteNotWritten) || planted::on(Bug::QuorumAnswersBeforeSync) {
            election.count(self.own);
        }
        self.role = Role::Candidate(election);
        self.lead_if_elected(now_ms);
    }

    fn lead_if_elected(&mut self, now_ms: u64) {
        let Role::Candidate(election) = &self.role else {
            return;
        };
        if !election.is_won(&self.kept) {
            return;
        }
        if election.is_canvass() {
            return self.stand(now_ms);
        }
        self.role = Role::Leader(Leader::begin(&mut self.kept, self.own, now_ms));
    }

    // -- messages --------------------------------------------------------------------------------

    fn receive(&mut self, now_ms: u64, from: MemberId, message: Message) {
        let Message { term, body } = message;
        if term > self.kept.term() {
            self.kept.adopt(term);
            // A canvass or a call for votes alone is no reason to wait longer for a leader's word.
            let keeps_deadline = matches!(body, Body::Canvass { .. } | Body::Vote { .. });
            let deadline_ms = match &self.role {
                Role::Follower(follower) if keeps_deadline => Some(follower.deadline_ms),
                _ => None,
            };
            self.follow(None, now_ms);
            if let (Role::Follower(follower), Some(deadline_ms)) = (&mut self.role, deadline_ms) {
                follower.deadline_ms = deadline_ms;
            }
        }
        if term < self.kept.term() && !planted::on(Bug::QuorumFormerTermTaken) {
            // Answers of an earlier term have nobody who waits for them.
            let asks = matches!(
                body,
                Body::Canvass { .. } | Body::Vote { .. } | Body::Append { .. } | Body::Snapshot { .. }
            );
            if asks {
                self.kept.send(from, Body::Superseded);
            }
            return;
        }
        match body {
            Body::Canvass { last } => self.canvassed(now_ms, from, last),
            Body::Vote { last } => self.asked_for_vote(now_ms, from, last),
            Body::Canvassed { would } => self.counted(now_ms, from, would, true),
            Body::Voted { granted } => self.counted(now_ms, from, granted, false),
            Body::Append { .. } | Body::Snapshot { .. } => self.led(now_ms, from, body),
            Body::Appended { .. } | Body::Diverged { .. } | Body::Pieces { .. } => {
                self.answered(now_ms, from, body)
            }
            Body::Lead => {
                if self.kept.may_lead(self.own) && matches!(self.role, Role::Follower(_)) {
                    self.stand(now_ms);
                }
            }
            Body::EntriesLost { acknowledged } => {
                let log = self.kept.log();
                let last = log.last();
                let is_there = acknowledged.position < log.base().position || log.has(acknowledged);
                if self.leader() == Some(from) && !is_there {
                    self.kept.tell(Command::EntriesLost { acknowledged, last });
                }
            }
            Body::Superseded => {}
        }
    }

    fn canvassed(&mut self, now_ms: u64, from: MemberId, last: Point) {
        let hears_leader = match &self.role {
            Role::Leader(_) => true,
            Role::Follower(follower) => {
                follower.leader.is_some()
                    && now_ms.saturating_sub(follower.heard_ms) < self.settings.election_ms
            }
            Role::Candidate(_) => false,
        };
        let would = !hears_leader && self.kept.is_covered_by(last);
        self.kept.send(from, Body::Canvassed { would });
    }

    fn asked_for_vote(&mut self, now_ms: u64, from: MemberId, last: Point) {
        let given = self.kept.vote().given_to;
        let is_free = given.is_none_or(|to| to == from) || planted::on(Bug::QuorumVotesTwice);
        let granted = is_free && self.kept.is_covered_by(last) && !matches!(self.role, Role::Leader(_));
        if granted {
            self.kept.give_vote(from);
            let deadline_ms = self.election_deadline(now_ms);
            if let Role::Follower(follower) = &mut self.role {
                follower.deadline_ms = deadline_ms;
            }
        }
        self.kept.send(from, Body::Voted { granted });
    }

    fn counted(&mut self, now_ms: u64, from: MemberId, yes: bool, of_canvass: bool) {
        if let Role::Candidate(election) = &mut self.role
            && yes
            && election.is_canvass() == of_canvass
        {
            election.count(from);
            self.lead_if_elected(now_ms);
        }
    }

    fn led(&mut self, now_ms: u64, from: MemberId, body: Body) {
        assert!(
            !matches!(self.role, Role::Leader(_)) || planted::on(Bug::QuorumFormerTermTaken),
            "a term has one leader"
        );
        let is_known = matches!(&self.role, Role::Follower(follower) if follower.leader == Some(from));
        if !is_known {
            self.follow(Some(from), now_ms);
        }
        let deadline_ms = self.election_deadline(now_ms);
        let Role::Follower(follower) = &mut self.role else {
            unreachable!("it follows")
        };
        (follower.heard_ms, follower.deadline_ms) = (now_ms, deadline_ms);
        match body {
            Body::Append {
                previous,
                entries,
                committed,
                round,
            } => Follower::append(&mut self.kept, from, previous, entries, committed, round),
            Body::Snapshot {
                base,
                members,
                total_bytes,
                from_byte,
                piece,
                round,
            } => {
                let piece = Piece {
                    base,
                    members,
                    total_bytes,
                    from_byte,
                    bytes: piece,
                };
                follower.snapshot(&mut self.kept, from, piece, round);
            }
            other => unreachable!("a leader sends no {other:?}"),
        }
    }

    fn answered(&mut self, now_ms: u64, from: MemberId, body: Body) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        match body {
            Body::Appended { matched, round } => {
                leader.heard(from, round, now_ms);
                leader.appended(&mut self.kept, from, matched);
            }
            Body::Diverged {
                previous,
                hint,
                round,
            } => {
                leader.heard(from, round, now_ms);
                leader.diverged(&mut self.kept, from, previous, hint);
            }
            Body::Pieces { base, bytes, round } => {
                leader.heard(from, round, now_ms);
                leader.pieces(from, base, bytes);
                leader.advance(&mut self.kept);
            }
            other => unreachable!("no answer: {other:?}"),
        }
    }

    // -- calls -----------------------------------------------------------------------------------

    fn call(&mut self, now_ms: u64, event: Event) {
        let (kept, settings) = (&mut self.kept, &self.settings);
        let leader = match &mut self.role {
            Role::Leader(leader) => Ok(leader),
            Role::Follower(follower) => Err(follower.leader),
            Role::Candidate(_) => Err(None),
        };
        let not_leader = |leader| Refused::NotLeader { leader };
        let (call, answer): (CallId, Result<Option<Command>, Refused>) = match event {
            Event::Propose { call, payload } => {
                let placed = leader
                    .map_err(not_leader)
                    .and_then(|leader| leader.propose(kept, payload));
                (call, placed.map(|point| Some(Command::Placed { call, point })))
            }
            Event::Change { call, change } => {
                let changed = leader
                    .map_err(not_leader)
                    .and_then(|leader| leader.change(kept, &change, settings, now_ms));
                (call, changed.map(|point| Some(Command::Placed { call, point })))
            }
            Event::Read { call } => {
                let read = leader
                    .map_err(not_leader)
                    .and_then(|leader| leader.read(kept, call));
                (call, read.map(|()| None))
            }
            Event::StepDown { call, to } => {
                let begun = leader
                    .map_err(not_leader)
                    .and_then(|leader| leader.step_down(kept, to, settings, now_ms));
                (call, begun.map(|()| Some(Command::Begun { call })))
            }
            other => unreachable!("no call: {other:?}"),
        };
        match answer {
            Ok(Some(command)) => self.kept.tell(command),
            Ok(None) => {}
            Err(why) => self.kept.tell(Command::Refused { call, why }),
        }
    }
}
