//! The shard's way to its disk: records for the journal, and work that blocks, done by tasks (`disk_task.rs`).

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use quorate_group::{CopierId, Generation, PageRead, Record};
use quorate_group_log::{Answer, GroupLogs, Rescued};
use quorate_journal::Lsn;
use quorate_recovery::record::KIND_BATCH;
use quorate_recovery::{Durable, GroupRecord, Place};
use quorate_types::limits::{READ_BATCH_BYTES, READ_BATCH_SYNCED_BYTES, SYNC_HOLD_BYTES};
use quorate_types::{Epoch, GroupId, Index, ServerId};
use quorate_wire::BatchHeader;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::hosted::Records;
use crate::journal_port::{JournalPort, Placed};

/// Work that blocks.
///
/// Its channel is unbounded, and its use is bounded: one load for each successor, `PAGES_PER_GROUP_MAX` pages for each
/// group, and the repairs and fetches that a shard may have.
pub enum DiskWork {
    Load {
        group_id: GroupId,
        generation: Generation,
        from_index: Index,
        places: Vec<(Lsn, Place)>,
    },
    /// `places`: of each payload that the page lacks; `None`: the batch was trimmed meanwhile.
    Page {
        group_id: GroupId,
        read: PageRead,
        places: Option<Vec<(Lsn, Place)>>,
    },
    ForPeer {
        group_id: GroupId,
        to: ServerId,
        epoch: Epoch,
        header: BatchHeader,
        place: Option<(Lsn, Place)>,
    },
    Rewrite {
        group_id: GroupId,
        header: BatchHeader,
        payload: Bytes,
        lsn: Lsn,
        place: Place,
    },
}

pub struct Disk {
    pub port: JournalPort,
    work: UnboundedSender<DiskWork>,
    copiers: Copiers,
    sync_hold: SyncHold,
}

impl Disk {
    pub fn new(port: JournalPort) -> (Self, UnboundedReceiver<DiskWork>) {
        let (work, receiver) = unbounded_channel();
        let disk = Self {
            port,
            work,
            copiers: Copiers::default(),
            sync_hold: SyncHold::default(),
        };
        (disk, receiver)
    }

    pub fn write(&mut self, group_id: GroupId, record: Record) {
        self.port.write(GroupRecord::new(group_id, record));
    }

    pub fn write_dropped(&mut self, group_id: GroupId) {
        self.port.write(GroupRecord::dropped(group_id));
    }

    pub fn load(&self, group_id: GroupId, generation: Generation, range: (Index, Index), records: &Records) {
        let (from_index, to_index) = range;
        let places = (from_index..=to_index)
            .map_while(|index| records.places.get(index))
            .collect();
        self.give(DiskWork::Load {
            group_id,
            generation,
            from_index,
            places,
        });
    }

    pub fn read_page(&self, group_id: GroupId, read: PageRead, records: &Records) {
        let places = read.lacking().map(|index| records.places.get(index)).collect();
        self.give(DiskWork::Page {
            group_id,
            read,
            places,
        });
    }

    pub fn read_for_peer(
        &self,
        group_id: GroupId,
        to: ServerId,
        epoch: Epoch,
        header: BatchHeader,
        records: &Records,
    ) {
        let place = records.places.get(header.index);
        self.give(DiskWork::ForPeer {
            group_id,
            to,
            epoch,
            header,
            place,
        });
    }

    pub fn rewrite(&self, group_id: GroupId, header: BatchHeader, payload: Bytes, records: &Records) {
        if let Some((lsn, place)) = records.places.get(header.index) {
            self.give(DiskWork::Rewrite {
                group_id,
                header,
                payload,
                lsn,
                place,
            });
        }
    }

    fn give(&self, work: DiskWork) {
        let _stopping = self.work.send(work).is_err();
    }

    /// The journal's copier cannot read these records of the group; the batches, each with a copier that waits for it.
    pub fn wait_for_repairs(
        &mut self,
        group_id: GroupId,
        records: &Records,
        wait: &CopierWait,
    ) -> Vec<(Index, Option<CopierId>)> {
        let damaged = records.places.in_journal(&wait.lsns).into_iter();
        damaged
            .map(|(index, lsn)| (index, Some(self.copiers.add(group_id, lsn, wait))))
            .collect()
    }

    pub fn copied(&mut self, copier: CopierId, header: &BatchHeader, payload: Result<Bytes, u32>) {
        self.copiers.give(copier, header, payload);
    }

    pub fn release_copier(&mut self, copier: CopierId) {
        self.copiers.by_id.remove(&copier);
    }

    /// The group answers none of them any more.
    pub fn release_copiers_of(&mut self, group_id: GroupId) {
        self.copiers.by_id.retain(|_, copier| copier.group_id != group_id);
    }

    /// The places of records that the journal took now, and the reason why it took no more.
    pub fn submit(&mut self) -> (Vec<Placed>, Option<quorate_journal::SubmitError>) {
        self.port.submit()
    }

    pub fn completed(&mut self, tag: u64) -> Vec<Durable> {
        self.port.completed(tag)
    }

    /// Ends a flush: begins the write of what was placed, unless the next flush brings more. `is_alone`: one group at
    /// most was flushed. True: the shard itself had better write and sync, after its sockets ([`Disk::commit_here`]).
    pub fn commit(&mut self, is_alone: bool) -> bool {
        let is_held = self.sync_hold.holds(self.port.placed_bytes());
        // A sync in this thread holds up what else the shard does; not the batch's way down the chain.
        let is_here = is_alone && !is_held && self.port.suits_here();
        if !is_here && !is_held {
            self.port.commit();
        }
        is_here
    }

    pub fn commit_here(&mut self) {
        self.port.commit_here();
    }

    /// No flush comes after the next one.
    pub fn release_hold(&mut self) {
        self.sync_hold.release();
    }

    /// How much a reader takes from its socket before a flush.
    pub fn read_batch_bytes(&self) -> usize {
        match self.port.is_idle() {
            true => READ_BATCH_BYTES,
            false => READ_BATCH_SYNCED_BYTES,
        }
    }

    /// A reader stops for a flush, and goes on after it.
    pub fn reads_go_on(&mut self) {
        self.sync_hold.reads_go_on = true;
    }

    #[cfg(test)]
    pub fn take_reads_go_on(&mut self) -> bool {
        std::mem::take(&mut self.sync_hold.reads_go_on)
    }
}

/// A flush's records are written with those of the next flush, if readers are about to go on: one sync for both. Not
/// twice in turn: a group's sync does not wait for as long as others have something to read.
#[derive(Default)]
struct SyncHold {
    /// A reader stopped for a flush, and has more to read after it.
    reads_go_on: bool,
    is_held: bool,
}

impl SyncHold {
    fn release(&mut self) {
        self.reads_go_on = false;
    }

    /// At the end of a flush that leaves so much placed and not committed.
    fn holds(&mut self, placed_bytes: usize) -> bool {
        let goes_on = std::mem::take(&mut self.reads_go_on);
        let is_little = (1..SYNC_HOLD_BYTES).contains(&placed_bytes);
        self.is_held = goes_on && is_little && !self.is_held;
        self.is_held
    }
}

/// Records that the journal's copier cannot read, and where it waits for them.
pub struct CopierWait {
    pub lsns: std::ops::Range<Lsn>,
    answer: mpsc::Sender<Answer>,
    done: Rc<Done>,
}

impl CopierWait {
    pub fn new(lsns: std::ops::Range<Lsn>, answer: mpsc::Sender<Answer>) -> Self {
        let done = Rc::new(Done(answer.clone()));
        Self { lsns, answer, done }
    }
}

/// Copiers of the journal that wait for damaged records.
#[derive(Default)]
struct Copiers {
    next_id: u64,
    by_id: HashMap<CopierId, Copier>,
}

struct Copier {
    group_id: GroupId,
    lsn: Lsn,
    answer: mpsc::Sender<Answer>,
    /// The copier hears that all is said when the last one is gone.
    _done: Rc<Done>,
}

struct Done(mpsc::Sender<Answer>);

impl Drop for Done {
    fn drop(&mut self) {
        let _gone = self.0.send(Answer::Done).is_err();
    }
}

impl Copiers {
    fn add(&mut self, group_id: GroupId, lsn: Lsn, wait: &CopierWait) -> CopierId {
        self.next_id += 1;
        let id = CopierId(self.next_id);
        self.by_id.insert(
            id,
            Copier {
                group_id,
                lsn,
                answer: wait.answer.clone(),
                _done: wait.done.clone(),
            },
        );
        id
    }

    fn give(&mut self, copier: CopierId, header: &BatchHeader, payload: Result<Bytes, u32>) {
        let Some(copier) = self.by_id.remove(&copier) else {
            return;
        };
        let head = Bytes::copy_from_slice(&header.encode());
        let rescued = Rescued {
            group: copier.group_id,
            lsn: copier.lsn,
            kind: KIND_BATCH,
            head,
            payload,
        };
        let _gone = copier.answer.send(Answer::Record(rescued)).is_err();
    }
}

/// A reader of payloads on disk.
#[derive(Clone)]
pub struct DiskReader {
    pub journal: Arc<quorate_journal::Journal>,
    pub logs: Option<Arc<GroupLogs>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_held_for_one_flush_however_much_others_read() {
        let mut hold = SyncHold::default();
        assert!(!hold.holds(10), "no reader has more to read");
        let mut flush = |placed_bytes| {
            hold.reads_go_on = true;
            hold.holds(placed_bytes)
        };
        assert_eq!([10, 20, 10, 20].map(&mut flush), [true, false, true, false]);
        assert!(!flush(0), "nothing is placed");
        assert!(!flush(SYNC_HOLD_BYTES), "enough for a write of its own");
        assert!(flush(SYNC_HOLD_BYTES - 1));
    }
}
