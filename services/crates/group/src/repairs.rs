//! Damaged records are repaired from other replicas: asked for with FETCH, checked against the header in memory,
//! written over the damaged ones. Readers wait meanwhile; nobody gets wrong bytes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_chain::Replica;
use quorate_types::limits::{REPAIR_ATTEMPTS_MAX, REPAIR_REST_MS, REPAIR_TRY_MS};
use quorate_types::planted::{self, Bug};
use quorate_types::{GroupId, Index, Micros, ServerId};
use quorate_wire::Batch;
use quorate_wire::peer::{Envelope, Message};

use crate::event::{CopierId, PageRead};
use crate::output::{Output, Outputs, Report};
use crate::turn::Turn;

/// The state that repairs look at, and the way of their questions.
pub(crate) struct Repairing<'a> {
    pub group_id: GroupId,
    pub me: ServerId,
    pub replica: &'a Replica,
    pub turn: &'a mut Turn,
    pub out: &'a mut Outputs,
}

/// A page that waits for repairs no longer.
pub(crate) enum Unparked {
    /// Its damaged batches are repaired, or trimmed.
    Repaired(PageRead),
    /// No replica has the batch of this index.
    Unrepaired(PageRead, Index),
}

/// The repairs of one group.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    under_way: BTreeMap<Index, Repair>,
    /// Repairs whose turn has not come, and repairs that a peer was asked for: few.
    waiting: VecDeque<Index>,
    asking: Vec<Index>,
    /// No peer answers: until then copiers do not wait.
    resting_until_us: Micros,
    /// Pages that need what is being repaired.
    parked: Vec<(PageRead, Vec<Index>)>,
}

#[derive(Debug, Default)]
struct Repair {
    /// Peers that this attempt has not asked yet.
    peers: VecDeque<ServerId>,
    attempts: u32,
    /// The peer that was asked last, and when; `None` until its turn has come.
    asked: Option<(ServerId, Micros)>,
    /// Some peer answered, if only that it has not got the batch.
    was_answered: bool,
    copiers: Vec<CopierId>,
}

impl Repairs {
    /// Begins repairs of these batches' records. Returns the pages that wait no longer.
    pub fn begin(
        &mut self,
        damaged: Vec<(Index, Option<CopierId>)>,
        repairing: &mut Repairing<'_>,
    ) -> Vec<Unparked> {
        let is_resting = repairing.turn.now_us < self.resting_until_us;
        let begins = |(index, copier): &&(Index, Option<CopierId>)| {
            let is_left_damaged = is_resting && copier.is_some();
            !is_left_damaged && repairing.is_held(*index) && !self.under_way.contains_key(index)
        };
        let begun: Vec<Index> = damaged.iter().filter(begins).map(|(index, _)| *index).collect();
        if let (Some(from_index), Some(to_index)) = (begun.iter().min(), begun.iter().max()) {
            let (records, from_index, to_index) = (begun.len(), *from_index, *to_index);
            repairing.report(Report::RecordsDamaged {
                records,
                from_index,
                to_index,
            });
        }
        let mut unparked = Vec::new();
        for (index, copier) in damaged {
            unparked.append(&mut self.begin_one(index, copier, repairing));
        }
        unparked
    }

    fn begin_one(
        &mut self,
        index: Index,
        copier: Option<CopierId>,
        repairing: &mut Repairing<'_>,
    ) -> Vec<Unparked> {
        if !repairing.is_held(index) {
            // Nobody needs it any more: its record waits for the journal to move on.
            repairing.release(copier);
            return self.unpark(index, None);
        }
        if copier.is_some() && repairing.turn.now_us < self.resting_until_us {
            repairing.leave_damaged(index, copier);
            return Vec::new();
        }
        let waiting = &mut self.waiting;
        let repair = self.under_way.entry(index).or_insert_with(|| {
            waiting.push_back(index);
            Repair::default()
        });
        repair.copiers.extend(copier);
        match repairing.replica.payload(index).cloned() {
            Some(payload) => self.repaired(index, payload, None, repairing),
            None => self.advance(repairing),
        }
    }

    /// A page that cannot be sent before these batches are repaired.
    pub fn park(
        &mut self,
        read: PageRead,
        missing: Vec<Index>,
        repairing: &mut Repairing<'_>,
    ) -> Vec<Unparked> {
        let damaged = missing.iter().map(|index| (*index, None)).collect();
        self.parked.push((read, missing));
        self.begin(damaged, repairing)
    }

    /// Asks the next peer for each batch whose turn it is; abandons batches that no replica has.
    pub fn advance(&mut self, repairing: &mut Repairing<'_>) -> Vec<Unparked> {
        let mut unrepaired = Vec::new();
        self.admit_waiting(repairing.turn, &mut unrepaired);
        for (to, index) in self.next_questions(repairing, &mut unrepaired) {
            repairing.fetch(to, index);
        }
        if let (Some(from_index), Some(to_index)) = (unrepaired.iter().min(), unrepaired.iter().max()) {
            let (records, from_index, to_index) = (unrepaired.len(), *from_index, *to_index);
            repairing.report(Report::RecordsUnrepaired {
                records,
                from_index,
                to_index,
            });
        }
        let mut unparked = Vec::new();
        for index in unrepaired {
            unparked.append(&mut self.abandon_one(index, repairing));
        }
        unparked
    }

    /// Gives waiting repairs the shard's free places. While no peer answers, those of copiers are abandoned.
    fn admit_waiting(&mut self, turn: &mut Turn, unrepaired: &mut Vec<Index>) {
        let is_resting = turn.now_us < self.resting_until_us;
        while is_resting || turn.may_begin_repair() {
            let Some(index) = self.waiting.pop_front() else {
                break;
            };
            let Some(repair) = self.under_way.get(&index) else {
                continue; // It was repaired from memory.
            };
            if is_resting && !repair.copiers.is_empty() {
                unrepaired.push(index);
            } else if turn.begin_repair() {
                self.asking.push(index);
            } else {
                self.waiting.push_front(index);
                break;
            }
        }
        self.asking.retain(|index| self.under_way.contains_key(index));
    }

    /// The peers that are asked now, and for which batch.
    fn next_questions(
        &mut self,
        repairing: &Repairing<'_>,
        unrepaired: &mut Vec<Index>,
    ) -> Vec<(ServerId, Index)> {
        let (me, now_us) = (repairing.me, repairing.turn.now_us);
        let mut questions = Vec::new();
        for index in &self.asking {
            let repair = self.under_way.get_mut(index).expect("kept while it is under way");
            let is_waiting = |(_, at): (ServerId, Micros)| now_us.saturating_sub(at) < REPAIR_TRY_MS * 1_000;
            if repair.asked.is_some_and(is_waiting) {
                continue;
            }
            if repair.peers.is_empty() {
                if repair.attempts >= REPAIR_ATTEMPTS_MAX {
                    unrepaired.push(*index);
                    continue;
                }
                repair.attempts += 1;
                let line = repairing.replica.config().map(|c| c.line().map(|m| m.server_id));
                repair
                    .peers
                    .extend(line.into_iter().flatten().filter(|server| *server != me));
            }
            let peer = repair.peers.pop_front();
            // Alone there is nobody to ask. The attempts pass all the same: an epoch may bring somebody.
            repair.asked = Some((peer.unwrap_or(me), now_us));
            questions.extend(peer.map(|peer| (peer, *index)));
        }
        questions
    }

    /// A peer's answer.
    pub fn fetched(
        &mut self,
        from: ServerId,
        index: Index,
        batch: Option<Batch>,
        repairing: &mut Repairing<'_>,
    ) -> Vec<Unparked> {
        let Some(repair) = self.under_way.get_mut(&index) else {
            return Vec::new();
        };
        let header = repairing.replica.log().header(index);
        match batch {
            // Equal in all, the payload's checksum too: it is the batch that was lost, whoever sends it.
            Some(batch) if header == Some(&batch.header) || planted::on(Bug::RepairUnchecked) => {
                self.repaired(index, batch.payload, Some(from), repairing)
            }
            _ if repair.asked.is_some_and(|(server, _)| server == from) => {
                // The next one, at once.
                repair.was_answered = true;
                repair.asked = repair.asked.map(|(server, _)| (server, 0));
                self.advance(repairing)
            }
            _ => Vec::new(),
        }
    }

    fn repaired(
        &mut self,
        index: Index,
        payload: Bytes,
        from: Option<ServerId>,
        repairing: &mut Repairing<'_>,
    ) -> Vec<Unparked> {
        let Some(repair) = self.under_way.remove(&index) else {
            return Vec::new();
        };
        self.end_asking(index, repairing.turn);
        let Some(header) = repairing.replica.log().header(index).copied() else {
            // The batch was trimmed or truncated meanwhile.
            repairing.release(repair.copiers);
            return self.unpark(index, None);
        };
        repairing.report(Report::RecordRepaired { index, from });
        for copier in repair.copiers {
            repairing.out.push(Output::Copied {
                copier,
                header,
                payload: Ok(payload.clone()),
            });
        }
        repairing.out.push(Output::Rewrite {
            header,
            payload: payload.clone(),
        });
        self.unpark(index, Some(payload))
    }

    fn abandon_one(&mut self, index: Index, repairing: &mut Repairing<'_>) -> Vec<Unparked> {
        let Some(repair) = self.under_way.remove(&index) else {
            return Vec::new();
        };
        let was_asked = self.end_asking(index, repairing.turn);
        if was_asked && !repair.was_answered {
            self.resting_until_us = repairing.turn.now_us + REPAIR_REST_MS * 1_000;
        }
        repairing.leave_damaged(index, repair.copiers);
        let (lacking, waiting) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|(_, missing)| missing.contains(&index));
        self.parked = waiting;
        let unrepaired = |(read, _): (PageRead, Vec<Index>)| Unparked::Unrepaired(read, index);
        Vec::into_iter(lacking).map(unrepaired).collect()
    }

    /// Pages that lack nothing more go on.
    fn unpark(&mut self, index: Index, payload: Option<Bytes>) -> Vec<Unparked> {
        let mut unparked = Vec::new();
        for (mut read, mut missing) in std::mem::take(&mut self.parked) {
            if let Some(at) = missing.iter().position(|m| *m == index) {
                missing.swap_remove(at);
                if let Some(piece) = read.page.pieces.iter_mut().find(|piece| piece.index == index) {
                    piece.payload = piece.payload.take().or(payload.clone());
                }
            }
            if missing.is_empty() {
                unparked.push(Unparked::Repaired(read));
            } else {
                self.parked.push((read, missing));
            }
        }
        unparked
    }

    /// One repair is done with; whether a peer was being asked for it.
    fn end_asking(&mut self, index: Index, turn: &mut Turn) -> bool {
        let before = self.asking.len();
        self.asking.retain(|asked| *asked != index);
        let ended = before - self.asking.len();
        turn.end_repairs(ended);
        ended > 0
    }

    /// The log is reset: pages of the old one cannot be read any more.
    pub fn take_parked(&mut self) -> Vec<PageRead> {
        std::mem::take(&mut self.parked)
            .into_iter()
            .map(|(read, _)| read)
            .collect()
    }

    /// The shard's places that the group's questions take.
    pub fn places(&self) -> usize {
        self.asking.len()
    }

    /// The group leaves, or its log is reset.
    pub fn abandon(&mut self, repairing: &mut Repairing<'_>) {
        repairing.turn.end_repairs(self.asking.len());
        self.asking.clear();
        self.waiting.clear();
        self.parked.clear();
        for repair in std::mem::take(&mut self.under_way).into_values() {
            repairing.release(repair.copiers);
        }
    }
}

impl Repairing<'_> {
    fn report(&mut self, report: Report) {
        self.out.push(Output::Report(report));
    }

    /// Whether the log has the batch: neither trimmed nor truncated.
    fn is_held(&self, index: Index) -> bool {
        self.replica.log().header(index).is_some()
    }

    fn fetch(&mut self, to: ServerId, index: Index) {
        let message = Message::Fetch { index };
        let envelope = Envelope {
            group_id: self.group_id,
            epoch: self.replica.epoch(),
            message,
        };
        self.out.push(Output::Peer { to, envelope });
    }

    /// The record is copied as damaged as it is: a reader that comes upon it there has it repaired.
    fn leave_damaged(&mut self, index: Index, copiers: impl IntoIterator<Item = CopierId>) {
        match self.replica.log().header(index).copied() {
            Some(header) => {
                for copier in copiers {
                    self.out.push(Output::Copied {
                        copier,
                        header,
                        payload: Err(header.payload_len),
                    });
                }
            }
            None => self.release(copiers),
        }
    }

    fn release(&mut self, copiers: impl IntoIterator<Item = CopierId>) {
        for copier in copiers {
            self.out.push(Output::CopierReleased(copier));
        }
    }
}
