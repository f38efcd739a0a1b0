//! Damaged records are repaired from other replicas: asked for with FETCH, checked against the header in memory,
//! written over the damaged ones. Readers wait meanwhile; nobody gets wrong bytes.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use quorate_group_log::{Answer, GroupLogs, Rescued};
use quorate_journal::{Journal, Lsn, StoredRecord};
use quorate_replica_log::record::KIND_BATCH;
use quorate_replica_log::{Entry, Place};
use quorate_types::limits::{
    FETCHES_SERVED_PER_SHARD_MAX, REPAIR_REST_MS, REPAIR_ROUNDS_MAX, REPAIR_TRY_MS, REPAIRS_PER_SHARD_MAX,
};
use quorate_types::{Durability, GroupId, Index, Micros, ServerId};
use quorate_wire::peer::{Envelope, Message};
use quorate_wire::{Batch, BatchHeader};

use crate::clock::now_us;
use crate::shard::Shard;
use crate::shard::group::Group;
use crate::shard::io::Io;
use crate::shard::reads::DiskRead;

/// The repairs of one group.
#[derive(Default)]
pub struct Repairs {
    under_way: HashMap<Index, Repair>,
    /// Those whose turn has not come, and those that a peer was asked for: few.
    waiting: VecDeque<Index>,
    asking: Vec<Index>,
    /// Nobody answers: until then copiers are not kept waiting.
    resting_until: Micros,
    /// Reads that need what is being repaired.
    parked: Vec<(DiskRead, Vec<Index>)>,
}

struct Repair {
    /// To be asked yet, in this round.
    peers: VecDeque<ServerId>,
    rounds: u32,
    /// Who was asked last, and when; `None` until its turn has come.
    asked: Option<(ServerId, Micros)>,
    /// Some peer answered, if only that it has not got it.
    was_answered: bool,
    /// Copiers of the journal that wait for the batch.
    copiers: Vec<Copier>,
}

/// Who copies the journal, and wants what is damaged there.
#[derive(Clone)]
pub struct Copier {
    pub lsn: Lsn,
    pub answer: mpsc::Sender<Answer>,
    /// Says that all is said, when the last one is gone.
    pub _done: Rc<Done>,
}

impl Repairs {
    /// One repair is done with; answers how many fewer are being asked for.
    fn end_asking(&mut self, index: Index) -> usize {
        let before = self.asking.len();
        self.asking.retain(|asked| *asked != index);
        before - self.asking.len()
    }
}

pub struct Done(pub mpsc::Sender<Answer>);

impl Drop for Done {
    fn drop(&mut self) {
        let _gone = self.0.send(Answer::Done).is_err();
    }
}

impl Group {
    /// Has the batches' records repaired.
    pub fn repair(&mut self, io: &mut Io, damaged: Vec<(Index, Option<Copier>)>) {
        let is_resting = now_us() < self.repairs.resting_until;
        let begins = |(index, copier): &&(Index, Option<Copier>)| {
            let is_given_up = is_resting && copier.is_some();
            !is_given_up && !self.repairs.under_way.contains_key(index)
        };
        let begun: Vec<Index> = damaged.iter().filter(begins).map(|(index, _)| *index).collect();
        if let (Some(from_index), Some(to_index)) = (begun.iter().min(), begun.iter().max()) {
            let records = begun.len();
            tracing::error!(group = %self.id, records, from_index, to_index, "records on disk are damaged; they are being repaired");
        }
        for (index, copier) in damaged {
            self.repair_one(io, index, copier);
        }
    }

    fn repair_one(&mut self, io: &mut Io, index: Index, copier: Option<Copier>) {
        if copier.is_some() && now_us() < self.repairs.resting_until {
            return self.give_up_copying(index, copier);
        }
        let waiting = &mut self.repairs.waiting;
        let repair = self.repairs.under_way.entry(index).or_insert_with(|| {
            waiting.push_back(index);
            Repair {
                peers: VecDeque::new(),
                rounds: 0,
                asked: None,
                was_answered: false,
                copiers: Vec::new(),
            }
        });
        repair.copiers.extend(copier);
        let in_memory = self.replica.payload(index).cloned();
        match in_memory {
            Some(payload) => self.repaired(io, index, payload, None),
            None => self.advance_repairs(io),
        }
    }

    /// A page that cannot be sent before these batches are repaired.
    pub fn park(&mut self, io: &mut Io, read: DiskRead, missing: Vec<Index>) {
        let damaged = missing.iter().map(|index| (*index, None)).collect();
        self.repairs.parked.push((read, missing));
        self.repair(io, damaged);
    }

    /// Asks the next peer for each batch whose turn it is; gives up those that nobody has.
    pub fn advance_repairs(&mut self, io: &mut Io) {
        let now = now_us();
        let mut given_up = Vec::new();
        let mut asking = Vec::new();
        let repairs = &mut self.repairs;
        let is_resting = now < repairs.resting_until;
        while is_resting || io.repairs < REPAIRS_PER_SHARD_MAX {
            let Some(index) = repairs.waiting.pop_front() else {
                break;
            };
            let Some(repair) = repairs.under_way.get(&index) else {
                continue; // Repaired from memory.
            };
            if is_resting && !repair.copiers.is_empty() {
                given_up.push(index);
            } else if io.repairs < REPAIRS_PER_SHARD_MAX {
                io.repairs += 1;
                repairs.asking.push(index);
            } else {
                repairs.waiting.push_front(index);
                break;
            }
        }
        repairs
            .asking
            .retain(|index| repairs.under_way.contains_key(index));
        for index in &repairs.asking {
            let repair = repairs.under_way.get_mut(index).expect("kept above");
            let is_waiting = repair
                .asked
                .is_some_and(|(_, at)| now.saturating_sub(at) < REPAIR_TRY_MS * 1000);
            if is_waiting {
                continue;
            }
            if repair.peers.is_empty() {
                if repair.rounds >= REPAIR_ROUNDS_MAX {
                    given_up.push(*index);
                    continue;
                }
                repair.rounds += 1;
                let me = io.shared.server_id();
                let line = self.replica.config().map(|c| c.line().map(|m| m.server_id));
                repair
                    .peers
                    .extend(line.into_iter().flatten().filter(|server| *server != me));
            }
            let peer = repair.peers.pop_front();
            // Alone there is nobody to ask: the rounds pass all the same, an epoch may bring somebody.
            repair.asked = Some((peer.unwrap_or(io.shared.server_id()), now));
            asking.extend(peer.map(|peer| (peer, *index)));
        }
        let epoch = self.replica.epoch();
        for (to, index) in asking {
            let envelope = Envelope {
                group_id: self.id,
                epoch,
                message: Message::Fetch { index },
            };
            io.send_peer(to, envelope);
        }
        if let (Some(from_index), Some(to_index)) = (given_up.iter().min(), given_up.iter().max()) {
            let records = given_up.len();
            tracing::error!(group = %self.id, records, from_index, to_index, "no replica has the damaged records; their entries cannot be read");
        }
        for index in given_up {
            self.give_up(io, index);
        }
    }

    /// A peer's answer.
    pub fn fetched(&mut self, io: &mut Io, from: ServerId, index: Index, batch: Option<Batch>) {
        let Some(repair) = self.repairs.under_way.get_mut(&index) else {
            return;
        };
        let header = self.replica.log().header(index);
        match batch {
            // Equal in all, the payload's checksum too: it is the batch that was lost, whoever sends it.
            Some(batch) if header == Some(&batch.header) => {
                self.repaired(io, index, batch.payload, Some(from))
            }
            _ if repair.asked.is_some_and(|(server, _)| server == from) => {
                // The next one, at once.
                repair.was_answered = true;
                repair.asked = repair.asked.map(|(server, _)| (server, 0));
                self.advance_repairs(io);
            }
            _ => {}
        }
    }

    fn repaired(&mut self, io: &mut Io, index: Index, payload: Bytes, from: Option<ServerId>) {
        let Some(repair) = self.repairs.under_way.remove(&index) else {
            return;
        };
        io.repairs -= self.repairs.end_asking(index);
        let (Some(header), Some((lsn, place))) = (self.replica.log().header(index), self.places.get(index))
        else {
            return self.release_parked(io, index, None); // Trimmed or cut meanwhile.
        };
        let source = from.map_or("memory".to_string(), |server| format!("server {}", server.0));
        tracing::warn!(group = %self.id, index, source, "a damaged record was repaired");
        for copier in repair.copiers {
            copier.give(self.id, header, Ok(payload.clone()));
        }
        let header = *header;
        let (group_id, written) = (self.id, payload.clone());
        let (journal, logs) = (io.journal.journal(), io.shared.group_logs());
        tokio::task::spawn_blocking(move || {
            write_back(&journal, logs.as_deref(), group_id, lsn, place, &header, written)
        });
        self.release_parked(io, index, Some(payload));
    }

    fn give_up(&mut self, io: &mut Io, index: Index) {
        let Some(repair) = self.repairs.under_way.remove(&index) else {
            return;
        };
        let was_asked = self.repairs.end_asking(index);
        io.repairs -= was_asked;
        if was_asked > 0 && !repair.was_answered {
            self.repairs.resting_until = now_us() + REPAIR_REST_MS * 1000;
        }
        self.give_up_copying(index, repair.copiers);
        let (mut waiting, parked) = (Vec::new(), std::mem::take(&mut self.repairs.parked));
        for (read, missing) in parked {
            if missing.contains(&index) {
                let reason = format!("batch {index} is damaged here, and no other replica has it now");
                self.answer_without(io, read, reason);
            } else {
                waiting.push((read, missing));
            }
        }
        self.repairs.parked.extend(waiting);
    }

    /// The record is copied as damaged as it is: whoever reads it there has it repaired.
    fn give_up_copying(&self, index: Index, copiers: impl IntoIterator<Item = Copier>) {
        if let Some(header) = self.replica.log().header(index) {
            for copier in copiers {
                copier.give(self.id, header, Err(header.payload_len));
            }
        }
    }

    /// Reads that lack nothing more go on.
    fn release_parked(&mut self, io: &mut Io, index: Index, payload: Option<Bytes>) {
        for (mut read, mut missing) in std::mem::take(&mut self.repairs.parked) {
            if let Some(at) = missing.iter().position(|m| *m == index) {
                missing.swap_remove(at);
                if let Some(piece) = read.page.pieces.iter_mut().find(|piece| piece.index == index) {
                    piece.payload = piece.payload.take().or(payload.clone());
                }
            }
            if missing.is_empty() {
                self.read_page(io, read);
            } else {
                self.repairs.parked.push((read, missing));
            }
        }
    }

    /// The log begins anew: what reads wait for is not to be had any more.
    pub fn refuse_parked(&mut self, io: &mut Io) {
        for (read, _) in std::mem::take(&mut self.repairs.parked) {
            self.answer_without(io, read, "the log began anew meanwhile".to_string());
        }
    }

    /// The group leaves: whoever waits here has to look elsewhere.
    pub fn abandon_repairs(&mut self, io: &mut Io) {
        let asking = std::mem::take(&mut self.repairs.asking);
        io.repairs -= asking.len();
        self.repairs.under_way.clear();
        self.repairs.waiting.clear();
        self.repairs.parked.clear();
    }

    /// States anew, behind everything else, where the log begins and ends: records that said so were lost.
    pub fn restate(&self, io: &mut Io) {
        let log = self.replica.log();
        if self.replica.durability() != Durability::Persistent {
            return;
        }
        let base = log.base();
        if base.index > 0 {
            io.journal
                .write(Entry::base(self.id, base.encode(), base.index, base.epoch));
        }
        if log.last_index() > 0 {
            // No cut of the protocol's: nobody waits for this number.
            io.journal.write(Entry::cut(self.id, log.last_index(), 0));
        }
    }
}

impl Copier {
    fn give(self, group: GroupId, header: &BatchHeader, payload: Result<Bytes, u32>) {
        let rescued = Rescued {
            group,
            lsn: self.lsn,
            kind: KIND_BATCH,
            head: Bytes::copy_from_slice(&header.encode()),
            payload,
        };
        let _gone = self.answer.send(Answer::Record(rescued)).is_err();
    }
}

fn write_back(
    journal: &Journal,
    logs: Option<&GroupLogs>,
    group_id: GroupId,
    lsn: Lsn,
    place: Place,
    header: &BatchHeader,
    payload: Bytes,
) {
    let head = Bytes::copy_from_slice(&header.encode());
    let record = StoredRecord {
        lsn,
        kind: KIND_BATCH,
        head,
        payload,
    };
    let written = match place {
        Place::Journal(location) => journal.rewrite(location, &record).map_err(|e| e.to_string()),
        Place::Log(place) => {
            let logs = logs.ok_or("the server is stopping".to_string());
            logs.and_then(|logs| logs.rewrite(group_id, place, &record).map_err(|e| e.to_string()))
        }
    };
    if let Err(error) = written {
        tracing::error!(group = %group_id, index = header.index, error, "a repaired record cannot be written back");
    }
}

impl Shard {
    /// Messages between disks are the shell's; the others are the protocol's. True: it was one of the first.
    pub fn between_disks(&mut self, from: ServerId, group_id: GroupId, message: &mut Message) -> bool {
        match message {
            Message::Fetch { index } => self.serve_fetch(from, group_id, *index),
            Message::Fetched { index, batch } => {
                let (index, batch) = (*index, batch.take());
                self.with_group(group_id, |group, io| group.fetched(io, from, index, batch));
            }
            _ => return false,
        }
        true
    }

    fn serve_fetch(&mut self, to: ServerId, group_id: GroupId, index: Index) {
        let Some(group) = self.groups.get(&group_id) else {
            return;
        };
        // A group's entries are its replicas' affair only.
        if group
            .replica
            .config()
            .is_none_or(|c| c.line().all(|m| m.server_id != to))
        {
            return;
        }
        let epoch = group.replica.epoch();
        let answer = move |batch| Envelope {
            group_id,
            epoch,
            message: Message::Fetched { index, batch },
        };
        let header = group.replica.log().header(index).copied();
        let batch_of = |header, payload| Batch {
            header,
            payload,
            trace: None,
        };
        let (Some(header), place) = (header, group.places.get(index)) else {
            return self.io.send_peer(to, answer(None));
        };
        if let Some(payload) = group.replica.payload(index) {
            let batch = batch_of(header, payload.clone());
            return self.io.send_peer(to, answer(Some(batch)));
        }
        let (Some(place), true) = (place, self.io.fetches_served < FETCHES_SERVED_PER_SHARD_MAX) else {
            return self.io.send_peer(to, answer(None));
        };
        self.io.fetches_served += 1;
        let (journal, shared) = (self.io.journal.journal(), self.io.shared.clone());
        let (logs, shard) = (shared.group_logs(), self.io.shard);
        tokio::task::spawn_blocking(move || {
            let read = read_batches(&journal, logs.as_ref(), group_id, &[place]).remove(0);
            let batch = read.ok().map(|payload| batch_of(header, payload));
            shared.send(
                shard,
                super::ShardMessage::Fetched {
                    to,
                    envelope: answer(batch),
                },
            );
        });
    }

    /// The journal's copier has come upon records that it cannot read.
    pub fn lost_in_journal(&mut self, lsns: &std::ops::Range<Lsn>, answer: &mpsc::Sender<Answer>) {
        let done = Rc::new(Done(answer.clone()));
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            self.with_group(id, |group, io| {
                let copier = |lsn| Copier {
                    lsn,
                    answer: answer.clone(),
                    _done: done.clone(),
                };
                let damaged = group.places.in_journal(lsns).into_iter();
                let damaged = damaged.map(|(index, lsn)| (index, Some(copier(lsn)))).collect();
                group.repair(io, damaged);
            });
        }
    }

    /// The scrubber has come upon a record that it cannot read. The answer: whether it is one that is needed.
    pub fn damaged_in_log(
        &mut self,
        group_id: GroupId,
        place: quorate_group_log::Place,
        answer: &mpsc::Sender<bool>,
    ) {
        self.with_group(group_id, |group, io| {
            let index = group.places.index_at(place.file, place.position);
            let _gone = answer.send(index.is_some()).is_err();
            if let Some(index) = index {
                group.repair(io, vec![(index, None)]);
            }
        });
    }
}

/// Why a payload is not read from where it was said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// It lies elsewhere by now, or is trimmed.
    Moved,
    Damaged,
    Other(String),
}

/// The payloads of batches that lie there. What is in the group's log is read in few large pieces. Blocks.
pub fn read_batches(
    journal: &Journal,
    logs: Option<&Arc<GroupLogs>>,
    group_id: GroupId,
    places: &[(Lsn, Place)],
) -> Vec<Result<Bytes, Lack>> {
    let in_log: Vec<_> = places
        .iter()
        .filter_map(|(lsn, place)| match place {
            Place::Log(place) => Some((*lsn, *place)),
            Place::Journal(_) => None,
        })
        .collect();
    let mut from_log = logs
        .map(|logs| logs.read(group_id, &in_log))
        .unwrap_or_default()
        .into_iter();
    let read = |(_, place): &(Lsn, Place)| match place {
        Place::Log(_) => match from_log.next() {
            Some(Ok(record)) => Ok(record.payload),
            Some(Err(quorate_group_log::ReadError::Released)) => Err(Lack::Moved),
            Some(Err(quorate_group_log::ReadError::Damaged(_))) => Err(Lack::Damaged),
            Some(Err(error)) => Err(Lack::Other(error.to_string())),
            None => Err(Lack::Other("the server is stopping".to_string())),
        },
        Place::Journal(location) => match journal.read(*location) {
            Ok(record) => Ok(record.payload),
            Err(quorate_journal::ReadError::Released) => Err(Lack::Moved),
            // What the device does not give is damaged, as far as this server goes.
            Err(quorate_journal::ReadError::Damaged(_) | quorate_journal::ReadError::Io { .. }) => {
                Err(Lack::Damaged)
            }
        },
    };
    places.iter().map(read).collect()
}
