//! Readers of a group: single reads that may wait, subscriptions with credit, payloads that lie on disk.

use bytes::Bytes;
use quorate_chain::{ClientRef, Event, ReadPage};
use quorate_journal::Lsn;
use quorate_replica_log::Place;
use quorate_types::limits::{BATCH_BYTES_MAX, READ_BATCHES_MAX, SUBSCRIPTIONS_PER_CONNECTION_MAX};
use quorate_types::{Code, GroupId, Index, Micros, Offset};
use quorate_wire::client::{Entries, EntriesBatch, Message, kind};

use crate::clock::now_us;
use crate::shard::group::Group;
use crate::shard::io::{Io, Loaded, Refusal};
use crate::shard::repair::{Lack, read_batches};

/// Payload of one ENTRIES frame; larger requests are answered in part, as any reader must expect.
const PAGE_BYTES_MAX: u32 = 1 << 20;
/// Credit that one subscription may hold: what a slow reader can make the server buffer.
const CREDIT_BYTES_MAX: i64 = BATCH_BYTES_MAX as i64;
/// Longest wait of a single read.
const READ_WAIT_MS_MAX: u32 = 60_000;
/// How long after a failed read from disk it is tried again for a successor.
const LOAD_RETRY: std::time::Duration = std::time::Duration::from_millis(200);
/// How often a read follows its records from the journal into the group's log: once, unless it is very slow.
const MOVES_MAX: u32 = 5;
/// Single reads that wait in one group.
const WAITING_READS_MAX: usize = 4_096;
/// Single reads of one channel that wait, for entries or for the disk: each may hold a page.
const READS_PER_CHANNEL_MAX: usize = 64;

#[derive(Default)]
pub struct Readers {
    waiting: Vec<WaitingRead>,
    subscriptions: Vec<Subscription>,
    /// Single reads whose payloads are being read from disk.
    from_disk: Vec<(ClientRef, u32)>,
    /// Entries were committed since the readers were last served.
    pub is_behind: bool,
}

struct WaitingRead {
    client: ClientRef,
    request: u32,
    max_bytes: u32,
    max_entries: u32,
    offset: Offset,
    deadline: Micros,
}

struct Subscription {
    client: ClientRef,
    request: u32,
    next_offset: Offset,
    /// Payload bytes that may still be sent; the last frame may overdraw it.
    credit: i64,
    /// A page of it is being read from disk.
    is_loading: bool,
}

/// A page whose payloads are being read from disk, to be sent when they are there.
pub struct DiskRead {
    pub group_id: GroupId,
    pub life: u64,
    pub page: ReadPage,
    /// Of the pieces without payload.
    pub places: Vec<(Lsn, Place)>,
    pub purpose: Purpose,
    /// How often its records were looked for where they were no more.
    pub moves: u32,
}

pub enum Purpose {
    Answer { client: ClientRef, request: u32 },
    Subscription { client: ClientRef, request: u32 },
}

impl Readers {
    pub fn forget(&mut self, client: ClientRef) {
        self.waiting.retain(|w| w.client != client);
        self.subscriptions.retain(|s| s.client != client);
        self.from_disk.retain(|(of, _)| *of != client);
    }

    pub fn cancel(&mut self, client: ClientRef, request: u32) {
        self.subscriptions
            .retain(|s| s.client != client || s.request != request);
        self.waiting
            .retain(|w| w.client != client || w.request != request);
    }

    pub fn next_deadline(&self) -> Option<Micros> {
        self.waiting.iter().map(|w| w.deadline).min()
    }

    fn outstanding(&self, client: ClientRef) -> usize {
        let waiting = self.waiting.iter().filter(|w| w.client == client).count();
        waiting + self.from_disk.iter().filter(|(of, _)| *of == client).count()
    }

    fn find(&mut self, client: ClientRef, request: u32) -> Option<&mut Subscription> {
        self.subscriptions
            .iter_mut()
            .find(|s| s.client == client && s.request == request)
    }
}

impl Group {
    #[allow(clippy::too_many_arguments)] // The fields of one READ.
    pub fn read_request(
        &mut self,
        io: &mut Io,
        client: ClientRef,
        request: u32,
        max_bytes: u32,
        max_entries: u32,
        wait_ms: u32,
        offset: Offset,
    ) {
        if !self.may_read(io, client, kind::READ, request) {
            return;
        }
        if self.readers.outstanding(client) >= READS_PER_CHANNEL_MAX {
            io.refuse(
                client,
                Refusal::new(kind::READ, u64::from(request), Code::Overloaded),
            );
            return;
        }
        let max_bytes = if max_bytes == 0 {
            PAGE_BYTES_MAX
        } else {
            max_bytes.min(PAGE_BYTES_MAX)
        };
        let max_entries = if max_entries == 0 { u32::MAX } else { max_entries };
        let deadline = now_us() + u64::from(wait_ms.min(READ_WAIT_MS_MAX)) * 1000;
        let waiting = WaitingRead {
            client,
            request,
            max_bytes,
            max_entries,
            offset,
            deadline,
        };
        if !self.try_read(io, &waiting, wait_ms == 0) {
            if self.readers.waiting.len() >= WAITING_READS_MAX {
                io.refuse(
                    client,
                    Refusal::new(kind::READ, u64::from(request), Code::Overloaded),
                );
                return;
            }
            self.readers.waiting.push(waiting);
            io.wake_in_time(self.id);
        }
    }

    /// Answers the read if there is something at its offset, or if `must_answer`.
    fn try_read(&mut self, io: &mut Io, read: &WaitingRead, must_answer: bool) -> bool {
        // A reader may know of entries that this replica does not know to be committed yet: it waits for them.
        match self
            .replica
            .read(read.offset, read.max_bytes, read.max_entries, READ_BATCHES_MAX)
        {
            Ok(page) if page.pieces.is_empty() && !must_answer => false,
            Ok(page) => {
                let purpose = Purpose::Answer {
                    client: read.client,
                    request: read.request,
                };
                self.send_page(io, page, purpose);
                true
            }
            Err(error) => {
                let mut refusal = Refusal::new(kind::READ, u64::from(read.request), error.code());
                refusal.detail = Some(format!("{error:?}"));
                io.refuse(read.client, refusal);
                true
            }
        }
    }

    pub fn subscribe(&mut self, io: &mut Io, client: ClientRef, request: u32, credit: u32, offset: Offset) {
        if !self.may_read(io, client, kind::SUBSCRIBE, request) {
            return;
        }
        let of_connection = self
            .readers
            .subscriptions
            .iter()
            .filter(|s| s.client.connection == client.connection)
            .count();
        if of_connection >= SUBSCRIPTIONS_PER_CONNECTION_MAX {
            io.refuse(
                client,
                Refusal::new(kind::SUBSCRIBE, u64::from(request), Code::TooManyChannels),
            );
            return;
        }
        let credit = i64::from(credit).min(CREDIT_BYTES_MAX);
        self.readers.cancel(client, request);
        self.readers.subscriptions.push(Subscription {
            client,
            request,
            next_offset: offset,
            credit,
            is_loading: false,
        });
        self.readers.is_behind = true;
    }

    pub fn credit(&mut self, io: &mut Io, client: ClientRef, request: u32, bytes: u32) {
        if !self.may_read(io, client, kind::CREDIT, request) {
            self.readers.cancel(client, request);
            return;
        }
        match self.readers.find(client, request) {
            Some(subscription) => {
                subscription.credit = (subscription.credit + i64::from(bytes)).min(CREDIT_BYTES_MAX);
                self.readers.is_behind = true;
            }
            None => {
                io.refuse(
                    client,
                    Refusal::new(kind::CREDIT, u64::from(request), Code::UnknownRequest),
                );
            }
        }
    }

    /// Gives waiting readers what has become readable; answers those whose time is over.
    pub fn serve_readers(&mut self, io: &mut Io) {
        let now = io.now_us();
        let is_behind = std::mem::take(&mut self.readers.is_behind);
        if !is_behind && self.readers.next_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        for read in std::mem::take(&mut self.readers.waiting) {
            if !self.try_read(io, &read, read.deadline <= now) {
                self.readers.waiting.push(read);
            }
        }
        let mut at = 0;
        while at < self.readers.subscriptions.len() {
            if self.feed(io, at) {
                at += 1;
            } else {
                self.readers.subscriptions.swap_remove(at);
            }
        }
    }

    /// Sends pages to one subscription while it has credit; false when it is over.
    fn feed(&mut self, io: &mut Io, at: usize) -> bool {
        loop {
            let subscription = &self.readers.subscriptions[at];
            if subscription.credit <= 0 || subscription.is_loading {
                return true;
            }
            let (client, request) = (subscription.client, subscription.request);
            let max_bytes = subscription.credit.min(i64::from(PAGE_BYTES_MAX)) as u32;
            match self
                .replica
                .read(subscription.next_offset, max_bytes, u32::MAX, READ_BATCHES_MAX)
            {
                Ok(page) if page.pieces.is_empty() => return true,
                Ok(page) => {
                    let bytes: u64 = page.pieces.iter().map(|p| u64::from(p.payload_len)).sum();
                    let on_disk = page.pieces.iter().any(|p| p.payload.is_none());
                    let subscription = &mut self.readers.subscriptions[at];
                    subscription.credit -= bytes as i64;
                    subscription.next_offset = page.next_offset;
                    subscription.is_loading = on_disk;
                    self.send_page(io, page, Purpose::Subscription { client, request });
                }
                Err(error) => {
                    let mut refusal = Refusal::new(kind::SUBSCRIBE, u64::from(request), error.code());
                    refusal.detail = Some(format!("{error:?}"));
                    io.refuse(client, refusal);
                    return false;
                }
            }
        }
    }

    /// Sends a page at once if all of it is in memory, else when its payloads have been read.
    fn send_page(&mut self, io: &mut Io, page: ReadPage, purpose: Purpose) {
        if page.pieces.iter().all(|p| p.payload.is_some()) {
            self.send_entries(io, page, &purpose);
            return;
        }
        if let Purpose::Answer { client, request } = purpose {
            self.readers.from_disk.push((client, request));
        }
        let read = DiskRead {
            group_id: self.id,
            life: self.life,
            page,
            places: Vec::new(),
            purpose,
            moves: 0,
        };
        self.read_page(io, read);
    }

    /// Has what the page lacks read from disk.
    pub fn read_page(&mut self, io: &mut Io, mut read: DiskRead) {
        let lacking = read.page.pieces.iter().filter(|piece| piece.payload.is_none());
        let places: Option<Vec<_>> = lacking.map(|piece| self.places.get(piece.index)).collect();
        match places {
            Some(places) => {
                read.places = places;
                io.read_from_disk(read);
            }
            None => self.answer_without(io, read, "the entries were trimmed meanwhile".to_string()),
        }
    }

    /// Payloads are there, or some: what has moved is read again, what is damaged repaired first.
    pub fn disk_read_done(&mut self, io: &mut Io, mut read: DiskRead, payloads: Vec<Result<Bytes, Lack>>) {
        if read.life != self.life {
            return self.answer_without(io, read, "the log began anew meanwhile".to_string());
        }
        let (mut damaged, mut other) = (Vec::new(), None);
        let lacking = read
            .page
            .pieces
            .iter_mut()
            .filter(|piece| piece.payload.is_none());
        for (piece, payload) in lacking.zip(payloads) {
            match payload {
                Ok(payload) => piece.payload = Some(payload),
                Err(Lack::Damaged) => damaged.push(piece.index),
                Err(Lack::Moved) => {}
                Err(Lack::Other(reason)) => other = Some(reason),
            }
        }
        let is_whole = read.page.pieces.iter().all(|piece| piece.payload.is_some());
        if let Some(reason) = other {
            self.answer_without(io, read, reason);
        } else if !damaged.is_empty() {
            self.park(io, read, damaged);
        } else if !is_whole && read.moves < MOVES_MAX {
            read.moves += 1;
            self.read_page(io, read);
        } else if !is_whole {
            self.answer_without(io, read, "the record is not where it should be".to_string());
        } else if self.take_reader(&read.purpose) {
            self.send_entries(io, read.page, &read.purpose);
        }
    }

    /// The reader is told that its page is not to be had.
    pub fn answer_without(&mut self, io: &mut Io, read: DiskRead, reason: String) {
        if !self.take_reader(&read.purpose) {
            return;
        }
        tracing::error!(group = %self.id, reason, "cannot read entries back from disk");
        let (Purpose::Answer { client, request } | Purpose::Subscription { client, request }) = read.purpose;
        self.readers.cancel(client, request);
        io.refuse(
            client,
            Refusal::new(kind::READ, u64::from(request), Code::Internal).detail(reason),
        );
    }

    /// Whether the reader still waits for the page, which it is about to get.
    fn take_reader(&mut self, purpose: &Purpose) -> bool {
        // If not, its channel is gone, it was cancelled, or it was refused when the group left.
        match *purpose {
            Purpose::Subscription { client, request } => {
                let Some(subscription) = self.readers.find(client, request) else {
                    return false;
                };
                subscription.is_loading = false;
                self.readers.is_behind = true;
            }
            Purpose::Answer { client, request } => {
                let mut from_disk = self.readers.from_disk.iter();
                let Some(at) = from_disk.position(|r| *r == (client, request)) else {
                    return false;
                };
                self.readers.from_disk.swap_remove(at);
            }
        }
        true
    }

    fn send_entries(&mut self, io: &mut Io, page: ReadPage, purpose: &Purpose) {
        let (Purpose::Answer { client, request } | Purpose::Subscription { client, request }) = *purpose;
        let mut batches = Vec::with_capacity(page.pieces.len());
        for piece in page.pieces {
            let payload = piece.payload.expect("a page is sent when it is whole");
            self.counters.totals.read_entries += u64::from(piece.entry_count);
            self.counters.totals.read_bytes += payload.len() as u64;
            batches.push(EntriesBatch {
                base_offset: piece.base_offset,
                timestamp_us: piece.timestamp_us,
                entry_count: piece.entry_count,
                payload_crc: piece.payload_crc,
                payload,
            });
        }
        let entries = Entries {
            request,
            next_offset: page.next_offset,
            commit_offset: page.commit_offset,
            trim_offset: page.trim_offset,
            batches,
        };
        io.send_client(client, Message::Entries(entries));
    }

    /// Also those whose page is being read from disk, or repaired: nobody waits for it then.
    pub fn refuse_readers(&mut self, io: &mut Io, code: Code) {
        let waiting = std::mem::take(&mut self.readers.waiting).into_iter();
        let from_disk = std::mem::take(&mut self.readers.from_disk);
        for (client, request) in waiting.map(|read| (read.client, read.request)).chain(from_disk) {
            io.refuse(client, Refusal::new(kind::READ, u64::from(request), code));
        }
        for subscription in std::mem::take(&mut self.readers.subscriptions) {
            let request = u64::from(subscription.request);
            io.refuse(subscription.client, Refusal::new(kind::SUBSCRIBE, request, code));
        }
    }

    /// Reads evicted payloads back for a successor that catches up.
    pub fn load_for_successor(&mut self, io: &mut Io, from_index: Index, to_index: Index) {
        let wanted = from_index..=to_index;
        let places: Vec<_> = wanted.clone().map_while(|index| self.places.get(index)).collect();
        let (group_id, life, journal) = (self.id, self.life, io.journal.journal());
        let logs = io.shared.group_logs();
        let (done, damaged) = (io.loads(), io.damaged());
        tokio::task::spawn_local(async move {
            let read =
                tokio::task::spawn_blocking(move || read_batches(&journal, logs.as_ref(), group_id, &places));
            let read = read.await.unwrap_or_default();
            if let Some((index, _)) = wanted
                .clone()
                .zip(&read)
                .find(|(_, read)| **read == Err(Lack::Damaged))
            {
                let _stopped = damaged.send((group_id, index)).is_err();
            }
            // What cannot be read ends the run: the replica asks again from there.
            let batches: Vec<(Index, Bytes)> = wanted
                .zip(read)
                .map_while(|(index, read)| Some((index, read.ok()?)))
                .collect();
            if batches.is_empty() {
                tracing::warn!(group = %group_id, from_index, "cannot read batches back yet for a replica that catches up");
                tokio::time::sleep(LOAD_RETRY).await;
            }
            let event = Event::Loaded { batches };
            let loaded = Loaded {
                group_id,
                life,
                event,
            };
            let _stopped = done.send(loaded).is_err();
        });
    }
}

/// Reads what the page lacks, in a thread that may block.
pub async fn read_payloads(io: ReadIo, read: &mut DiskRead) -> Vec<Result<Bytes, Lack>> {
    let (group_id, places) = (read.group_id, std::mem::take(&mut read.places));
    let count = places.len();
    let reading =
        tokio::task::spawn_blocking(move || read_batches(&io.journal, io.logs.as_ref(), group_id, &places));
    let stopping = || vec![Err(Lack::Other("the server is stopping".to_string())); count];
    reading.await.unwrap_or_else(|_| stopping())
}

/// What reads from disk.
pub struct ReadIo {
    pub journal: std::sync::Arc<quorate_journal::Journal>,
    pub logs: Option<std::sync::Arc<quorate_group_log::GroupLogs>>,
}
