//! The leader of a term: it gives entries their place, and counts who has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_types::planted::{self, Bug};

use crate::entry::{Content, Entry};
use crate::ids::{MemberId, Point, Position};
use crate::io::{CallId, Command, Settings, Snapshot};
use crate::kept::Kept;
use crate::limits::{PROMOTION_LAG_MAX, READS_WAITING_MAX, SNAPSHOT_CHUNK_BYTES, UNCOMMITTED_BYTES_MAX};
use crate::members::{Change, Members};
use crate::message::Body;
use crate::progress::{Progress, Way};
use crate::reads::Reads;
use crate::refused::Refused;

#[derive(Debug)]
pub struct Leader {
    own: MemberId,
    /// The entry that began the term.
    begun: Position,
    others: BTreeMap<MemberId, Progress>,
    /// Every message to others has the present round, and their answers have it too.
    round: u64,
    /// The present round has not left yet.
    is_round_new: bool,
    reads: Reads,
    hand_over: Option<HandOver>,
    snapshot: Option<Arc<Snapshot>>,
    is_loading: bool,
}

#[derive(Debug)]
struct HandOver {
    to: MemberId,
    until_ms: u64,
    is_told: bool,
}

impl Leader {
    /// Begins the term with an entry of its own.
    pub fn begin(kept: &mut Kept, own: MemberId, now_ms: u64) -> Self {
        let mut leader = Self {
            own,
            begun: kept.log().last().position.next(),
            others: BTreeMap::new(),
            round: 1,
            is_round_new: true,
            reads: Reads::default(),
            hand_over: None,
            snapshot: None,
            is_loading: false,
        };
        leader.follow_members(kept, now_ms);
        leader.place(kept, Content::Begin);
        leader.advance(kept);
        leader
    }

    pub fn others(&self) -> &BTreeMap<MemberId, Progress> {
        &self.others
    }

    // -- calls -----------------------------------------------------------------------------------

    pub fn propose(&mut self, kept: &mut Kept, payload: Arc<[u8]>) -> Result<Point, Refused> {
        if self.hand_over.is_some() {
            return Err(Refused::HandingOver);
        }
        let waiting = kept.log().bytes_after(kept.committed());
        if waiting > 0 && waiting + payload.len() > UNCOMMITTED_BYTES_MAX {
            return Err(Refused::Busy);
        }
        let point = self.place(kept, Content::Payload(payload));
        self.advance(kept);
        Ok(point)
    }

    pub fn change(
        &mut self,
        kept: &mut Kept,
        change: &Change,
        settings: &Settings,
        now_ms: u64,
    ) -> Result<Point, Refused> {
        if self.hand_over.is_some() {
            return Err(Refused::HandingOver);
        }
        let is_settled = kept.committed() >= self.begun.max(kept.log().members_since());
        if !is_settled && !planted::on(Bug::QuorumChangesAtOnce) {
            return Err(Refused::ChangeUnderWay);
        }
        let members = kept.members().changed(change)?;
        if let Change::Promote(id) = change {
            let matched = self
                .others
                .get(id)
                .map_or(Position::default(), |progress| progress.matched);
            let lacks = kept.log().last().position.0 - matched.0;
            if lacks > PROMOTION_LAG_MAX {
                return Err(Refused::NotCaughtUp { lacks });
            }
        }
        if !self.hears_majority(&members, settings, now_ms) {
            return Err(Refused::MajorityAway);
        }
        let point = self.place(kept, Content::Members(members));
        self.follow_members(kept, now_ms);
        self.advance(kept);
        Ok(point)
    }

    /// The read is answered once a majority has confirmed that this is the leader still.
    pub fn read(&mut self, kept: &mut Kept, call: CallId) -> Result<(), Refused> {
        if self.reads.len() >= READS_WAITING_MAX {
            return Err(Refused::Busy);
        }
        if planted::on(Bug::QuorumStaleRead) {
            let position = kept.committed();
            kept.tell(Command::ReadAt { call, position });
            return Ok(());
        }
        if !self.is_round_new {
            self.round += 1;
            self.is_round_new = true;
        }
        // Before the first entry of the term is committed, nobody knows what else is.
        let mut position = kept.committed().max(self.begun);
        if planted::on(Bug::QuorumReadsBeforeOwnEntry) {
            position = kept.committed();
        }
        self.reads.add(call, self.round, position);
        self.advance(kept);
        Ok(())
    }

    pub fn step_down(
        &mut self,
        kept: &Kept,
        to: Option<MemberId>,
        settings: &Settings,
        now_ms: u64,
    ) -> Result<(), Refused> {
        let is_heard = |progress: &Progress| now_ms.saturating_sub(progress.heard_ms) <= settings.election_ms;
        let voters = self.others.iter().filter(|(id, _)| kept.members().is_voter(**id));
        let able = voters.filter(|(id, progress)| to.map_or(is_heard(progress), |to| to == **id));
        let (id, _) = able
            .max_by_key(|(_, progress)| progress.matched)
            .ok_or(match to {
                Some(_) => Refused::UnknownMember,
                None => Refused::MajorityAway,
            })?;
        self.hand_over = Some(HandOver {
            to: *id,
            until_ms: now_ms + settings.election_ms,
            is_told: false,
        });
        Ok(())
    }

    // -- answers ---------------------------------------------------------------------------------

    pub fn heard(&mut self, from: MemberId, round: u64, now_ms: u64) {
        if let Some(progress) = self.others.get_mut(&from) {
            progress.heard_ms = now_ms;
            progress.round = progress.round.max(round);
        }
    }

    pub fn appended(&mut self, kept: &mut Kept, from: MemberId, matched: Position) {
        let is_known = matched <= kept.log().last().position;
        if let Some(progress) = self.others.get_mut(&from).filter(|_| is_known) {
            progress.matches(matched);
        }
        self.advance(kept);
    }

    pub fn diverged(&mut self, kept: &mut Kept, from: MemberId, previous: Point, hint: Point) {
        self.advance(kept);
        let Some(progress) = self.others.get_mut(&from) else {
            return;
        };
        let is_stale = match &progress.way {
            Way::Probe { .. } | Way::Stream { .. } => previous.position < progress.matched,
            Way::Snapshot { .. } => true,
        };
        if is_stale {
            return;
        }
        if previous.position == progress.matched && previous.position > Position::default() {
            let acknowledged = previous;
            return kept.send(from, Body::EntriesLost { acknowledged });
        }
        let log = kept.log();
        if hint.position < log.base().position {
            progress.way = Way::from_snapshot();
            return;
        }
        let next = log.common_with(hint).position.next();
        progress.probe(next);
    }

    pub fn pieces(&mut self, from: MemberId, base: Point, bytes: u64) {
        let progress = self.others.get_mut(&from);
        if let Some(Way::Snapshot {
            base: sent,
            bytes: arrived,
            is_asked,
        }) = progress.map(|progress| &mut progress.way)
            && *sent == base
        {
            (*arrived, *is_asked) = (bytes, false);
        }
    }

    pub fn loaded(&mut self, snapshot: Arc<Snapshot>) {
        self.is_loading = false;
        self.snapshot = Some(snapshot);
    }

    /// Messages to it may be lost: it is asked where its log ends.
    pub fn disconnected(&mut self, member: MemberId) {
        if let Some(progress) = self.others.get_mut(&member) {
            match &mut progress.way {
                Way::Probe { is_asked } | Way::Snapshot { is_asked, .. } => *is_asked = false,
                Way::Stream { .. } => progress.probe(progress.matched.next()),
            }
        }
    }

    // -- time ------------------------------------------------------------------------------------

    /// Whether it leads on: a majority answers, and it has not left.
    pub fn leads_on(&mut self, kept: &Kept, settings: &Settings, now_ms: u64) -> bool {
        if self
            .hand_over
            .as_ref()
            .is_some_and(|hand_over| hand_over.until_ms <= now_ms)
        {
            self.hand_over = None;
        }
        let has_left = !kept.members().is_voter(self.own) && kept.committed() >= kept.log().members_since();
        !has_left && self.hears_majority(kept.members(), settings, now_ms)
    }

    fn hears_majority(&self, members: &Members, settings: &Settings, now_ms: u64) -> bool {
        members.has_majority(|id| {
            let others = self.others.get(&id);
            let heard =
                others.map(|progress| now_ms.saturating_sub(progress.heard_ms) <= settings.election_ms);
            heard.unwrap_or(id == self.own)
        })
    }

    // -- messages to others -----------------------------------------------------------------------

    /// Sends what is due: entries, heartbeats, pieces of a snapshot.
    pub fn flush(&mut self, kept: &mut Kept, settings: &Settings, now_ms: u64) {
        let is_round_new = std::mem::take(&mut self.is_round_new);
        let ids: Vec<MemberId> = self.others.keys().copied().collect();
        for id in ids {
            let progress = self.others.get_mut(&id).expect("it is one of them");
            let is_due = is_round_new || now_ms >= progress.sent_ms + settings.heartbeat_ms;
            if progress.next.before() < kept.log().base().position
                && !matches!(progress.way, Way::Snapshot { .. })
            {
                progress.way = Way::from_snapshot();
            }
            if matches!(progress.way, Way::Snapshot { .. }) {
                self.send_piece(kept, id, is_due, now_ms);
            } else {
                self.send_entries(kept, settings, id, is_due, now_ms);
            }
        }
        self.hand_over(kept);
        if self
            .others
            .values()
            .all(|progress| !matches!(progress.way, Way::Snapshot { .. }))
        {
            self.snapshot = None;
        }
    }

    fn send_entries(
        &mut self,
        kept: &mut Kept,
        settings: &Settings,
        to: MemberId,
        mut is_due: bool,
        now_ms: u64,
    ) {
        let progress = self.others.get_mut(&to).expect("it is one of them");
        let last = kept.log().last().position;
        while is_due || (progress.is_open() && progress.next <= last) {
            let previous = kept.log().point_at(progress.next.before());
            let entries = if progress.is_open() {
                kept.log().after(previous.position, settings.append_bytes)
            } else {
                Vec::new()
            };
            let end = entries.last().map_or(previous.position, |entry| entry.position);
            progress.sent(end, now_ms);
            send_append(kept, to, previous, entries, self.round);
            is_due = false;
        }
    }

    fn send_piece(&mut self, kept: &mut Kept, to: MemberId, is_due: bool, now_ms: u64) {
        let usable = self
            .snapshot
            .as_ref()
            .filter(|snapshot| snapshot.base.position >= kept.log().base().position);
        let Some(snapshot) = usable else {
            if !std::mem::replace(&mut self.is_loading, true) {
                kept.tell(Command::LoadSnapshot);
            }
            return self.knock(kept, to, is_due, now_ms);
        };
        let progress = self.others.get_mut(&to).expect("it is one of them");
        let Way::Snapshot {
            base,
            bytes,
            is_asked,
        } = &mut progress.way
        else {
            return;
        };
        if *base != snapshot.base {
            (*base, *bytes, *is_asked) = (snapshot.base, 0, false);
        }
        if *is_asked && !is_due {
            return;
        }
        *is_asked = true;
        let total_bytes = snapshot.contents.len() as u64;
        let from_byte = (*bytes).min(total_bytes);
        let end = (from_byte as usize + SNAPSHOT_CHUNK_BYTES).min(snapshot.contents.len());
        let piece = Body::Snapshot {
            base: snapshot.base,
            members: snapshot.members.clone(),
            total_bytes,
            from_byte,
            piece: snapshot.contents[from_byte as usize..end].into(),
            round: self.round,
        };
        progress.sent_ms = now_ms;
        kept.send(to, piece);
    }

    /// A heartbeat for a member that waits for a snapshot: the base, which it lacks.
    fn knock(&mut self, kept: &mut Kept, to: MemberId, is_due: bool, now_ms: u64) {
        if !is_due {
            return;
        }
        self.others.get_mut(&to).expect("it is one of them").sent_ms = now_ms;
        let base = kept.log().base();
        send_append(kept, to, base, Vec::new(), self.round);
    }

    fn hand_over(&mut self, kept: &mut Kept) {
        let Some(hand_over) = &mut self.hand_over else {
            return;
        };
        let matched = self.others.get(&hand_over.to).map(|progress| progress.matched);
        if matched == Some(kept.log().last().position) && !std::mem::replace(&mut hand_over.is_told, true) {
            kept.send(hand_over.to, Body::Lead);
        }
    }

    // -- counting --------------------------------------------------------------------------------

    fn place(&mut self, kept: &mut Kept, content: Content) -> Point {
        let last = kept.log().last().position;
        let (position, term) = (last.next(), kept.term());
        kept.append(
            last,
            vec![Entry {
                position,
                term,
                content,
            }],
        );
        Point { term, position }
    }

    /// Commits what a majority has, and answers reads that a majority has confirmed.
    pub fn advance(&mut self, kept: &mut Kept) {
        let own = if planted::on(Bug::QuorumOwnDiskIgnored) {
            kept.log().last().position
        } else {
            kept.durable()
        };
        let matched = self.of_majority(kept, own, |progress| progress.matched);
        // An entry of an earlier term may be on a majority and yet be replaced: only one of the own term says otherwise.
        let is_own = kept.log().term_at(matched) == Some(kept.term());
        if is_own || (planted::on(Bug::QuorumOldTermCommitted) && matched > kept.committed()) {
            kept.commit(matched);
        }
        let round = self.of_majority(kept, self.round, |progress| progress.round);
        for (call, position) in self.reads.take_ready(round, kept.committed()) {
            kept.tell(Command::ReadAt { call, position });
        }
    }

    /// The greatest value that more than half of the voters have reached.
    fn of_majority<T: Ord + Copy + Default>(&self, kept: &Kept, own: T, of: impl Fn(&Progress) -> T) -> T {
        let counts = |id: &MemberId| planted::on(Bug::QuorumLearnersCounted) || kept.members().is_voter(*id);
        let mut values: Vec<T> = self
            .others
            .iter()
            .filter(|(id, _)| counts(id))
            .map(|(_, p)| of(p))
            .collect();
        if kept.members().is_voter(self.own) {
            values.push(own);
        }
        values.sort_unstable_by(|a, b| b.cmp(a));
        let place = kept.members().voters().count() / 2;
        values.get(place).copied().unwrap_or_default()
    }

    fn follow_members(&mut self, kept: &Kept, now_ms: u64) {
        let members = kept.members();
        self.others.retain(|id, _| members.get(*id).is_some());
        let next = kept.log().last().position.next();
        for id in members.ids().filter(|id| *id != self.own) {
            self.others
                .entry(id)
                .or_insert_with(|| Progress::new(next, now_ms));
        }
    }
}

fn send_append(kept: &mut Kept, to: MemberId, previous: Point, entries: Vec<Entry>, round: u64) {
    let committed = kept.committed();
    kept.send(
        to,
        Body::Append {
            previous,
            entries,
            committed,
            round,
        },
    );
}
