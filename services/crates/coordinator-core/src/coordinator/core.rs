//! Events, each to its part.

use std::sync::Arc;

use quorate_guarantees::Guarantee;
use quorate_quorum::{
    Change, Content, Disk, Entry, Event as QuorumEvent, MemberId, MemberView, Members, Point, Position,
    Replica, RoleView, Snapshot, Term, View,
};
use quorate_types::planted::{self, Bug};
use quorate_types::sla::Quote;
use uuid::Uuid;

use super::batch::{decode_batch, encode_batch, read_state};
use super::io::{Command, Ending, Event};
use super::leading::Leading;
use super::standing::Standing;
use super::start::Start;
use crate::command::{Command as LogCommand, QuoteRequest, Reply, Timed};
use crate::engine::{Engine, Input, Note, Now};
use crate::ids::CallId;
use crate::log::Replay;
use crate::state::CoordinatorState;

/// A coordinator: a member of the quorum, which decides while it leads.
#[derive(Debug)]
pub struct Coordinator {
    replica: Replica,
    standing: Standing,
    start: Start,
    replay: Replay,
    /// Calls that want to see the state, and the position that it must have reached.
    reads: Vec<(Position, CallId)>,
    /// Changes of members, and their places.
    changes: Vec<(Point, CallId)>,
    /// Nobody is known to lead since then.
    leaderless_since_ms: Option<u64>,
    next_care_ms: u64,
    commands: Vec<Command>,
    /// The quorum does not take the batch at present: it is proposed again at the next tick.
    is_proposal_refused: bool,
    /// Its log is no older copy. Since the process began, a leader has sent it an agreed entry of its term, or a roll call
    /// of its own has ended.
    log_is_whole: bool,
    has_ended: bool,
}

/// A snapshot of the agreed state, to be written beside the log.
pub struct SnapshotDue<'a> {
    pub point: Point,
    pub members: Members,
    pub state: &'a CoordinatorState,
    /// The entries behind it.
    pub entries: Vec<Entry>,
}

/// The call by which batches are proposed. Callers count from 1, so none has it.
const PROPOSAL: CallId = CallId::MAX;
/// The call by which a leader cares for the members.
const CARE: CallId = CallId::MAX - 1;
/// The call by which a leader asks whether it leads still, when a server proves that the log is behind.
const PROOF: CallId = CallId::MAX - 2;
/// A leader looks after the members so often: a new one waits no longer for its vote.
const CARE_MS: u64 = 250;
/// Callers wait so long for an election; then they are told that nobody leads.
const LEADERLESS_MS_MAX: u64 = 2_000;

impl Coordinator {
    /// A member as its disk has it, with the state of its snapshot. None: an empty disk.
    pub fn new(
        own: MemberId,
        disk: Disk,
        state: Option<Box<CoordinatorState>>,
        start: Start,
        quorum: quorate_quorum::Settings,
        now: Now,
    ) -> Self {
        Self {
            replica: Replica::new(own, disk, quorum, now.ms),
            standing: Standing::Follows(state),
            start,
            replay: Replay::default(),
            reads: Vec::new(),
            changes: Vec::new(),
            leaderless_since_ms: Some(now.ms),
            next_care_ms: 0,
            commands: Vec::new(),
            is_proposal_refused: false,
            log_is_whole: false,
            has_ended: false,
        }
    }

    /// Whether inputs may be taken in. While a batch is not agreed, or an election runs, they are to wait outside.
    pub fn is_open(&self, now_ms: u64) -> bool {
        match &self.standing {
            Standing::Leads(leading) => leading.is_open(),
            Standing::Begins { .. } => false,
            Standing::Follows(_) | Standing::Rereads => {
                let leads = matches!(self.replica.role(), RoleView::Leader { .. });
                let waits = |since| now_ms.saturating_sub(since) < LEADERLESS_MS_MAX;
                !leads && !self.leaderless_since_ms.is_some_and(waits)
            }
        }
    }

    /// The engine, while it leads.
    pub fn engine(&self) -> Option<&Engine> {
        match &self.standing {
            Standing::Leads(leading) => Some(&leading.engine),
            _ => None,
        }
    }

    /// The state, unless it has more than is agreed.
    pub fn agreed_state(&self) -> Option<&CoordinatorState> {
        self.standing.agreed_state()
    }

    /// A dry run of an admission or a change, when the state may be shown.
    pub fn quote(&mut self, asked: &QuoteRequest) -> Option<Quote> {
        Some(self.open_engine()?.quote(asked))
    }

    /// The same of a change of a project's guarantee.
    pub fn quote_guarantee(&mut self, project_id: Uuid, guarantee: &Guarantee) -> Option<Reply> {
        Some(self.open_engine()?.quote_guarantee(project_id, guarantee))
    }

    fn open_engine(&mut self) -> Option<&mut Engine> {
        match &mut self.standing {
            Standing::Leads(leading) if leading.is_open() => Some(&mut leading.engine),
            _ => None,
        }
    }

    /// The member's part in the quorum, for people.
    pub fn view(&self, now_ms: u64) -> View {
        self.replica.view(now_ms)
    }

    pub fn members(&self) -> &Members {
        self.replica.members()
    }

    /// The members without a change that is not agreed yet.
    pub fn agreed_members(&self) -> &Members {
        self.replica.members_at(self.replica.committed())
    }

    /// The end of what is agreed, as far as it knows.
    pub fn agreed_position(&self) -> Position {
        self.replica.committed()
    }

    /// The term that it knows.
    pub fn term(&self) -> u64 {
        match self.replica.role() {
            RoleView::Leader { term } | RoleView::Follower { term, .. } => term.0,
        }
    }

    pub fn leader(&self) -> Option<MemberId> {
        self.replica.leader()
    }

    /// The agreed state and its place in the log, if both are known at present.
    pub fn snapshot_due(&self) -> Option<SnapshotDue<'_>> {
        let state = self.standing.agreed_state()?;
        let position = self.replica.committed();
        Some(SnapshotDue {
            point: self.replica.point_at(position),
            members: self.agreed_members().clone(),
            state,
            entries: self.replica.entries_after(position),
        })
    }

    /// Takes an event in. After the end, none counts.
    pub fn take(&mut self, now: Now, event: Event) {
        if self.has_ended {
            return;
        }
        match event {
            Event::Quorum(QuorumEvent::SnapshotLoaded { snapshot }) => self.snapshot_loaded(now, snapshot),
            Event::Quorum(event) => self.replica.take(now.ms, event),
            Event::Input(input) => self.input(now, input),
            Event::Read { call } => self.replica.take(now.ms, QuorumEvent::Read { call }),
            Event::Tick => self.tick(now),
        }
    }

    /// The commands that follow from the events since the last time.
    pub fn take_commands(&mut self, now: Now) -> Vec<Command> {
        loop {
            self.propose(now);
            let commands = self.replica.take_commands(now.ms);
            if commands.is_empty() || self.has_ended {
                break;
            }
            for command in commands {
                self.carry_out(now, command);
            }
        }
        self.show();
        std::mem::take(&mut self.commands)
    }

    fn tick(&mut self, now: Now) {
        self.replica.take(now.ms, QuorumEvent::Tick);
        self.is_proposal_refused = false;
        if let Standing::Leads(leading) = &mut self.standing
            && leading.is_open()
        {
            leading.engine.take(now, Input::Tick);
            self.log_is_whole |= leading.engine.roll_call(now.ms).is_none();
        }
        if let Standing::Leads(leading) = &self.standing
            && leading.suspected().is_some()
        {
            self.replica.take(now.ms, QuorumEvent::Read { call: PROOF });
        }
        if now.ms >= self.next_care_ms && matches!(self.standing, Standing::Leads(_)) {
            self.next_care_ms = now.ms + CARE_MS;
            self.care(now);
        }
        if self.replica.leader().is_some() {
            self.leaderless_since_ms = None;
        } else {
            self.leaderless_since_ms.get_or_insert(now.ms);
        }
    }

    /// Gives votes to learners that have caught up, and tells the others where this one is reached.
    fn care(&mut self, now: Now) {
        let view = self.replica.view(now.ms);
        let own = view.members.get(view.own);
        let moved = self
            .start
            .address
            .as_ref()
            .filter(|address| own.is_some_and(|own| own.address != **address));
        let caught_up = |(id, seen): &&(MemberId, MemberView)| {
            let is_learner = view.members.get(*id).is_some_and(|member| !member.votes);
            is_learner && seen.silent_ms < CARE_MS && seen.matched >= view.committed
        };
        let change = match moved {
            Some(address) => Some(Change::Move {
                id: view.own,
                address: address.clone(),
            }),
            None => view
                .others
                .iter()
                .find(caught_up)
                .map(|(id, _)| Change::Promote(*id)),
        };
        if let Some(change) = change {
            self.replica
                .take(now.ms, QuorumEvent::Change { call: CARE, change });
        }
    }

    fn input(&mut self, now: Now, input: Input) {
        if let Input::ClientKeys(keys) = &input {
            self.start.settings.client_keys = keys.clone();
        }
        match &mut self.standing {
            Standing::Leads(leading) => {
                assert!(leading.is_open(), "inputs wait until the batch is agreed");
                leading.engine.take(now, input);
            }
            _ => {
                if let Input::Command { call, .. } | Input::RaiseFleetVersion { call, .. } = input {
                    let leader = self.replica.leader();
                    let why = quorate_quorum::Refused::NotLeader { leader };
                    self.commands.push(Command::Refused { call, why });
                }
            }
        }
    }

    // -- the leader's batches -----------------------------------------------------------------------

    /// Gives the engine's output to the quorum, or to the world if it changes nothing.
    fn propose(&mut self, now: Now) {
        if let Standing::Begins { begin: None, .. } = &self.standing
            && !self.is_proposal_refused
        {
            return self.propose_begin(now);
        }
        let Standing::Leads(leading) = &mut self.standing else {
            return;
        };
        if leading.is_open() {
            let mut output = leading.engine.take_output();
            let notes = std::mem::take(&mut output.notes);
            self.commands.extend(notes.into_iter().map(Command::Note));
            if let Some(behind) = output.behind {
                leading.suspect(behind);
                return self.replica.take(now.ms, QuorumEvent::Read { call: PROOF });
            }
            if planted::on(Bug::ActsBeforeLog) {
                let (place, outgoing) = (output.place, std::mem::take(&mut output.outgoing));
                self.commands.push(Command::Release { place, outgoing });
            }
            if let Some((place, outgoing)) = leading.keep_back(output) {
                if !outgoing.is_empty() {
                    self.commands.push(Command::Release { place, outgoing });
                }
                return;
            }
        }
        if let Some(payload) = leading.to_propose()
            && !self.is_proposal_refused
        {
            let call = PROPOSAL;
            self.replica.take(now.ms, QuorumEvent::Propose { call, payload });
        }
    }

    fn placed(&mut self, call: CallId, point: Point) {
        match &mut self.standing {
            Standing::Leads(leading) if call == PROPOSAL => leading.placed(point),
            Standing::Begins { begin, .. } if call == PROPOSAL => *begin = Some(point),
            _ => self.changes.push((point, call)),
        }
    }

    // -- the quorum's word ---------------------------------------------------------------------------

    fn carry_out(&mut self, now: Now, command: quorate_quorum::Command) {
        use quorate_quorum::Command as Of;
        match command {
            Of::Write(write) => self.commands.push(Command::Write(write)),
            Of::Send { to, message } => self.commands.push(Command::ToMember { to, message }),
            Of::LoadSnapshot => self.commands.push(Command::LoadSnapshot),
            Of::Commit(entries) => entries.into_iter().for_each(|entry| self.agreed(now, &entry)),
            Of::Restore(snapshot) => self.restore(&snapshot),
            Of::Placed { call, point } => self.placed(call, point),
            Of::ReadAt { call: PROOF, .. } => self.proven(),
            Of::ReadAt { call, position } => self.reads.push((position, call)),
            Of::Begun { call } => self.commands.push(Command::Done { call }),
            // It hands over, or leads no more, which it says by itself.
            Of::Refused { call: PROPOSAL, .. } => self.is_proposal_refused = true,
            // It is tried again.
            Of::Refused {
                call: CARE | PROOF, ..
            } => {}
            Of::Refused { call, why } => self.commands.push(Command::Refused { call, why }),
            Of::EntriesLost { acknowledged, last } => {
                let member = self.replica.view(now.ms).own;
                self.end(Ending::EntriesLost {
                    member,
                    acknowledged,
                    last,
                });
            }
            Of::Role(role) => self.role(role),
        }
    }

    /// A majority has answered since the proof: no later leader told servers what this log lacks.
    fn proven(&mut self) {
        if let Standing::Leads(leading) = &self.standing
            && let Some(behind) = leading.suspected()
        {
            self.end(Ending::Behind(behind.clone()));
        }
    }

    /// An entry is agreed: the next one of the log.
    fn agreed(&mut self, now: Now, entry: &Entry) {
        let point = entry.point();
        self.log_is_whole |= self.follows_term(entry.term);
        for (_, call) in self.changes.extract_if(.., |(placed, _)| *placed == point) {
            if call != CARE {
                self.commands.push(Command::Done { call });
            }
        }
        let Content::Payload(payload) = &entry.content else {
            return;
        };
        if let Standing::Leads(leading) = &mut self.standing {
            if let Some((place, outgoing)) = leading.agreed(point) {
                self.commands.push(Command::Release { place, outgoing });
                return;
            }
            // Another leader's.
            self.follow();
        }
        let begins = matches!(&self.standing, Standing::Begins { begin, .. } if *begin == Some(point));
        let (Standing::Follows(Some(state)) | Standing::Begins { state, .. }) = &mut self.standing else {
            // It is read again, up to what is agreed then.
            assert!(
                matches!(self.standing, Standing::Rereads),
                "a log begins with a state"
            );
            return;
        };
        if let Err(ending) = apply(&mut self.replay, state, payload) {
            return self.end(ending);
        }
        if begins {
            self.lead(now);
        }
    }

    /// Whether another leads in this term.
    fn follows_term(&self, entered: Term) -> bool {
        matches!(self.replica.role(), RoleView::Follower { term, leader: Some(_) } if term == entered)
    }

    /// A snapshot came in the place of the log.
    fn restore(&mut self, snapshot: &Snapshot) {
        match read_state(&snapshot.contents) {
            Ok(state) => self.standing = Standing::Follows(Some(state)),
            Err(problem) => self.end(Ending::Unreadable(problem)),
        }
    }

    fn snapshot_loaded(&mut self, now: Now, snapshot: Arc<Snapshot>) {
        if matches!(self.standing, Standing::Rereads) {
            match self.reread(&snapshot) {
                Ok(state) => self.standing = Standing::Follows(Some(state)),
                Err(ending) => return self.end(ending),
            }
            if matches!(self.replica.role(), RoleView::Leader { .. }) {
                self.begin();
            }
        }
        let event = QuorumEvent::SnapshotLoaded { snapshot };
        self.replica.take(now.ms, event);
    }

    /// The state of the snapshot, and of the entries that are agreed behind it.
    fn reread(&mut self, snapshot: &Snapshot) -> Result<Box<CoordinatorState>, Ending> {
        let mut state = read_state(&snapshot.contents).map_err(Ending::Unreadable)?;
        let committed = self.replica.committed();
        for entry in self.replica.entries_after(snapshot.base.position) {
            if let Content::Payload(payload) = &entry.content
                && entry.position <= committed
            {
                apply(&mut self.replay, &mut state, payload)?;
            }
        }
        Ok(state)
    }

    // -- roles ---------------------------------------------------------------------------------------

    fn role(&mut self, role: RoleView) {
        self.follow();
        if let RoleView::Leader { .. } = role {
            self.begin();
        } else {
            // Nobody here learns what became of them.
            self.changes.clear();
        }
        self.commands.push(Command::Role(role));
    }

    fn follow(&mut self) {
        let standing = std::mem::replace(&mut self.standing, Standing::Rereads);
        let was_known = !matches!(standing, Standing::Rereads);
        self.standing = standing.followed();
        if was_known && matches!(self.standing, Standing::Rereads) {
            self.commands.push(Command::LoadSnapshot);
        }
    }

    /// The term has begun: so does a run of this coordinator on the log.
    fn begin(&mut self) {
        match std::mem::replace(&mut self.standing, Standing::Rereads) {
            Standing::Follows(Some(state)) => {
                self.standing = Standing::Begins {
                    state,
                    commands: vec![self.start.begin_run()],
                    begin: None,
                };
                self.is_proposal_refused = false;
            }
            // The run begins once the state is there.
            Standing::Rereads => {}
            other => unreachable!("elected as {other:?}"),
        }
    }

    /// No epoch follows from these commands.
    fn propose_begin(&mut self, now: Now) {
        let Standing::Begins { commands, .. } = &self.standing else {
            unreachable!("the run begins");
        };
        let timed = |command: &LogCommand| Timed {
            at_ms: now.unix_ms,
            command: command.clone(),
            issued: Some(Vec::new()),
        };
        let batch: Vec<Timed> = commands.iter().map(timed).collect();
        let (call, payload) = (PROPOSAL, encode_batch(&batch));
        self.replica.take(now.ms, QuorumEvent::Propose { call, payload });
    }

    /// Everything of earlier terms is agreed, and so is the beginning of the run.
    fn lead(&mut self, now: Now) {
        let Standing::Begins { state, .. } = std::mem::replace(&mut self.standing, Standing::Rereads) else {
            unreachable!("the run was begun");
        };
        if let Some(command) = self.start.first_secrets(&state) {
            self.standing = Standing::Begins {
                state,
                commands: vec![command],
                begin: None,
            };
            return;
        }
        let (first, profile) = self.start.commands(&state);
        if let Err(refused) = profile {
            self.commands.push(Command::Note(Note::ProfileRefused(refused)));
        }
        for server in state.servers.values().filter(|server| server.alive) {
            if let Some(how) = state.refused_mismatch(server) {
                let (server, is_refused) = (server.server_id, true);
                self.commands.push(Command::Note(Note::Mismatched {
                    server,
                    how,
                    is_refused,
                }));
            }
        }
        if state.servers.is_empty() && !first.is_empty() {
            // Nothing can follow from them, and the first calls already see them.
            self.standing = Standing::Begins {
                state,
                commands: first,
                begin: None,
            };
            return;
        }
        let settings = self.start.settings.clone();
        let engine = match self.log_is_whole {
            true => Engine::take_over(*state, settings, first, now),
            false => Engine::new(*state, settings, first, now),
        };
        self.standing = Standing::Leads(Box::new(Leading::new(engine)));
    }

    /// Shows the state to those who wait for it.
    fn show(&mut self) {
        let Standing::Leads(leading) = &self.standing else {
            let leader = self.replica.leader();
            let waits = matches!(self.standing, Standing::Begins { .. } | Standing::Rereads);
            if !waits {
                for (_, call) in self.reads.drain(..) {
                    let why = quorate_quorum::Refused::NotLeader { leader };
                    self.commands.push(Command::Refused { call, why });
                }
            }
            return;
        };
        if leading.is_open() {
            let applied = self.replica.committed();
            for (_, call) in self.reads.extract_if(.., |(position, _)| *position <= applied) {
                self.commands.push(Command::Show { call });
            }
        }
    }

    fn end(&mut self, ending: Ending) {
        self.has_ended = true;
        self.commands.push(Command::End(ending));
    }
}

fn apply(replay: &mut Replay, state: &mut CoordinatorState, payload: &[u8]) -> Result<(), Ending> {
    let batch = decode_batch(payload).map_err(Ending::Unreadable)?;
    replay.apply(state, &batch).map_err(Ending::DecidedOtherwise)
}
