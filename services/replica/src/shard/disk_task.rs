//! Work that blocks, done in threads of the runtime's pool: payloads read back, repaired records written.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_group::{Event, Generation, Lack, PageRead};
use quorate_group_log::GroupLogs;
use quorate_journal::{Journal, Lsn, StoredRecord};
use quorate_recovery::Place;
use quorate_recovery::record::KIND_BATCH;
use quorate_types::{Epoch, GroupId, Index, ServerId};
use quorate_wire::peer::{Envelope, Message};
use quorate_wire::{Batch, BatchHeader};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{spawn_blocking, spawn_local};

use super::Shard;
use super::disk::{DiskReader, DiskWork};

/// How long after a failed read from disk it is tried again for a successor.
const LOAD_RETRY: Duration = Duration::from_millis(200);

/// Does all that comes, each piece in a task of its own.
pub async fn run(shard: Rc<RefCell<Shard>>, mut work: UnboundedReceiver<DiskWork>) {
    while let Some(work) = work.recv().await {
        let reader = shard.borrow().disk_reader();
        let shard = shard.clone();
        spawn_local(async move {
            match work {
                DiskWork::Load {
                    group_id,
                    generation,
                    from_index,
                    places,
                } => {
                    load(&shard, reader, group_id, generation, from_index, places).await;
                }
                DiskWork::Page {
                    group_id,
                    read,
                    places,
                } => page(&shard, reader, group_id, read, places).await,
                DiskWork::ForPeer {
                    group_id,
                    to,
                    epoch,
                    header,
                    place,
                } => {
                    for_peer(&shard, reader, group_id, (to, epoch), header, place).await;
                }
                DiskWork::Rewrite {
                    group_id,
                    header,
                    payload,
                    lsn,
                    place,
                } => {
                    let write = move || rewrite(&reader, group_id, lsn, place, &header, payload);
                    let _stopping = spawn_blocking(write).await.is_err();
                }
            }
        });
    }
}

impl Shard {
    fn disk_reader(&self) -> DiskReader {
        DiskReader {
            journal: self.executor.disk.port.journal(),
            logs: self.executor.shared.group_logs(),
        }
    }

    fn fetch_done(&mut self, to: ServerId, envelope: Envelope) {
        self.turn.end_fetch();
        self.executor.send_peer(to, envelope);
    }
}

/// Evicted payloads for a successor that catches up.
async fn load(
    shard: &Rc<RefCell<Shard>>,
    reader: DiskReader,
    group_id: GroupId,
    generation: Generation,
    from_index: Index,
    places: Vec<(Lsn, Place)>,
) {
    let read = spawn_blocking(move || reader.read(group_id, &places))
        .await
        .unwrap_or_default();
    let damaged = (from_index..)
        .zip(&read)
        .find(|(_, read)| **read == Err(Lack::Damaged));
    if let Some((index, _)) = damaged {
        shard
            .borrow_mut()
            .event(group_id, Event::Damaged(vec![(index, None)]));
    }
    // A payload that cannot be read ends the run: the replica asks again from there.
    let readable = (from_index..)
        .zip(read)
        .map_while(|(index, read)| Some((index, read.ok()?)));
    let batches: Vec<(Index, Bytes)> = readable.collect();
    if batches.is_empty() {
        tracing::warn!(group = %group_id, from_index, "cannot read batches back yet for a replica that catches up");
        tokio::time::sleep(LOAD_RETRY).await;
    }
    shard
        .borrow_mut()
        .event(group_id, Event::Loaded { generation, batches });
}

async fn page(
    shard: &Rc<RefCell<Shard>>,
    reader: DiskReader,
    group_id: GroupId,
    read: PageRead,
    places: Option<Vec<(Lsn, Place)>>,
) {
    let payloads = match places {
        None => read.lacking().map(|_| Err(Lack::Trimmed)).collect(),
        Some(places) => {
            let count = places.len();
            let stopping = || vec![Err(Lack::Other("the server is stopping".to_string())); count];
            let reading = spawn_blocking(move || reader.read(group_id, &places));
            reading.await.unwrap_or_else(|_| stopping())
        }
    };
    shard
        .borrow_mut()
        .event(group_id, Event::PageRead { read, payloads });
}

/// A batch that a peer repairs.
async fn for_peer(
    shard: &Rc<RefCell<Shard>>,
    reader: DiskReader,
    group_id: GroupId,
    (to, epoch): (ServerId, Epoch),
    header: BatchHeader,
    place: Option<(Lsn, Place)>,
) {
    let read = match place {
        None => None,
        Some(place) => {
            let reading = spawn_blocking(move || reader.read(group_id, &[place]).remove(0));
            reading.await.ok().and_then(Result::ok)
        }
    };
    let batch = read.map(|payload| Batch {
        header,
        payload,
        trace: None,
    });
    let message = Message::Fetched {
        index: header.index,
        batch,
    };
    shard.borrow_mut().fetch_done(
        to,
        Envelope {
            group_id,
            epoch,
            message,
        },
    );
}

impl DiskReader {
    /// The payloads of batches that lie there. Records in the group's log are read in few large pieces. Blocks.
    pub fn read(&self, group_id: GroupId, places: &[(Lsn, Place)]) -> Vec<Result<Bytes, Lack>> {
        let in_log: Vec<_> = places
            .iter()
            .filter_map(|(lsn, place)| match place {
                Place::Log(place) => Some((*lsn, *place)),
                Place::Journal(_) => None,
            })
            .collect();
        let mut from_log = read_from_log(self.logs.as_ref(), group_id, &in_log).into_iter();
        let read = |(_, place): &(Lsn, Place)| match place {
            Place::Log(_) => from_log
                .next()
                .unwrap_or_else(|| Err(Lack::Other("the server is stopping".to_string()))),
            Place::Journal(location) => match self.journal.read(*location) {
                Ok(record) => Ok(record.payload),
                Err(quorate_journal::JournalReadError::Released) => Err(Lack::Moved),
                // A record that the device does not give is damaged, as far as this server goes.
                Err(
                    quorate_journal::JournalReadError::Damaged(_)
                    | quorate_journal::JournalReadError::Io { .. },
                ) => Err(Lack::Damaged),
            },
        };
        places.iter().map(read).collect()
    }
}

fn read_from_log(
    logs: Option<&Arc<GroupLogs>>,
    group_id: GroupId,
    places: &[(Lsn, quorate_group_log::LogLocation)],
) -> Vec<Result<Bytes, Lack>> {
    let Some(logs) = logs else {
        return Vec::new();
    };
    let read = logs.read(group_id, places).into_iter();
    read.map(|read| match read {
        Ok(record) => Ok(record.payload),
        Err(quorate_group_log::GroupLogReadError::Released) => Err(Lack::Moved),
        Err(quorate_group_log::GroupLogReadError::Damaged(_)) => Err(Lack::Damaged),
        Err(error) => Err(Lack::Other(error.to_string())),
    })
    .collect()
}

fn rewrite(
    reader: &DiskReader,
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
    let journal: &Journal = &reader.journal;
    let written = match place {
        Place::Journal(location) => journal.rewrite(location, &record).map_err(|e| e.to_string()),
        Place::Log(place) => {
            let logs = reader.logs.as_ref().ok_or("the server is stopping".to_string());
            logs.and_then(|logs| logs.rewrite(group_id, place, &record).map_err(|e| e.to_string()))
        }
    };
    if let Err(error) = written {
        tracing::error!(group = %group_id, index = header.index, error, "a repaired record cannot be written back");
    }
}
