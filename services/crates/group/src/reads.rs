//! Readers of a group: single reads that may wait, subscriptions with credit, pages whose payloads lie on disk.

use bytes::Bytes;
use quorate_chain::{ClientRef, ReadError, ReadPage, Replica};
use quorate_types::limits::{BATCH_BYTES_MAX, READ_BATCHES_MAX, SUBSCRIPTIONS_PER_CONNECTION_MAX};
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Epoch, Index, Micros, Offset};
use quorate_wire::client::{Entries, EntriesBatch, Message, kind};

use crate::counters::Counters;
use crate::event::{Generation, Lack, PageRead, Reader};
use crate::output::{Output, Outputs, Report};
use crate::pages::Pages;
use crate::refusal::Refusal;
use crate::turn::Turn;
use crate::waiting_reads::{WaitingRead, WaitingReads};

/// Payload of one ENTRIES frame; larger requests are answered in part, as any reader must expect.
const PAGE_BYTES_MAX: u32 = 1 << 20;
/// Credit that one subscription may hold: it bounds what a slow reader can make the server buffer.
const CREDIT_BYTES_MAX: i64 = BATCH_BYTES_MAX as i64;
/// Longest wait of a single read.
const READ_WAIT_MS_MAX: u32 = 60_000;
/// How often a read follows its records from the journal into the group's log: once, unless it is very slow.
const MOVES_MAX: u32 = 5;
/// Single reads that wait in one group.
const WAITING_READS_MAX: usize = 4_096;
/// Single reads of one channel that wait, for entries or for the disk: each may hold a page.
const READS_PER_CHANNEL_MAX: usize = 64;

/// The sources from which readers are served, and the way of their answers.
pub(crate) struct Serving<'a> {
    pub replica: &'a Replica,
    pub generation: Generation,
    pub counters: &'a mut Counters,
    pub turn: &'a Turn,
    pub out: &'a mut Outputs,
}

/// The fields of one READ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadRequest {
    pub request: u32,
    pub max_bytes: u32,
    pub max_entries: u32,
    pub wait_ms: u32,
    pub offset: Offset,
}

/// The fate of a page whose payloads were read.
pub(crate) enum Served {
    Done,
    /// It cannot be sent before these batches are repaired.
    Damaged(PageRead, Vec<Index>),
}

#[derive(Debug, Default)]
pub(crate) struct Readers {
    waiting: WaitingReads,
    subscriptions: Vec<Subscription>,
    /// Single reads whose payloads are being read from disk.
    from_disk: Vec<Reader>,
    pages: Pages,
    /// A subscription waits until a page has come back.
    is_held_back: bool,
    /// Reads and subscriptions so far.
    serial: u64,
    /// A reader may be given more than it has, though nothing was committed.
    is_behind: bool,
    /// The epoch, and the last batch that was committed, when readers were last served.
    served: (Epoch, Index),
}

/// The state in which feeding leaves a subscription.
enum Fed {
    All,
    /// Too many pages are under way from the disk.
    HeldBack,
    Over,
}

#[derive(Debug)]
struct Subscription {
    reader: Reader,
    next_offset: Offset,
    /// Payload bytes that may still be sent; the last frame may overdraw it.
    credit: i64,
    /// A page of it is being read from disk.
    is_loading: bool,
}

impl Readers {
    pub fn read(&mut self, client: ClientRef, read: ReadRequest, serving: &mut Serving<'_>) {
        if self.outstanding(client) >= READS_PER_CHANNEL_MAX {
            return serving.refuse(client, kind::READ, read.request, Code::Overloaded, None);
        }
        let max_bytes = match read.max_bytes {
            0 => PAGE_BYTES_MAX,
            bytes => bytes.min(PAGE_BYTES_MAX),
        };
        let max_entries = if read.max_entries == 0 {
            u32::MAX
        } else {
            read.max_entries
        };
        let wait_us = u64::from(read.wait_ms.min(READ_WAIT_MS_MAX)) * 1_000;
        let waiting = WaitingRead {
            reader: self.new_reader(client, read.request, false, serving.generation),
            max_bytes,
            max_entries,
            offset: read.offset,
            deadline_us: serving.turn.now_us + wait_us,
        };
        if self.try_read(&waiting, read.wait_ms == 0, serving) {
            return;
        }
        if self.waiting.len() >= WAITING_READS_MAX {
            return serving.refuse(client, kind::READ, read.request, Code::Overloaded, None);
        }
        self.waiting.push(waiting);
        serving.out.push(Output::WakeInTime);
    }

    pub fn subscribe(
        &mut self,
        client: ClientRef,
        request: u32,
        credit_bytes: u32,
        offset: Offset,
        serving: &mut Serving<'_>,
    ) {
        let of_connection = |s: &&Subscription| s.reader.client.connection == client.connection;
        if self.subscriptions.iter().filter(of_connection).count() >= SUBSCRIPTIONS_PER_CONNECTION_MAX {
            return serving.refuse(client, kind::SUBSCRIBE, request, Code::TooManyChannels, None);
        }
        self.cancel(client, request);
        let reader = self.new_reader(client, request, true, serving.generation);
        self.subscriptions.push(Subscription {
            reader,
            next_offset: offset,
            credit: i64::from(credit_bytes).min(CREDIT_BYTES_MAX),
            is_loading: false,
        });
        self.is_behind = true;
    }

    pub fn credit(&mut self, client: ClientRef, request: u32, bytes: u32, serving: &mut Serving<'_>) {
        let mut subscriptions = self.subscriptions.iter_mut();
        match subscriptions.find(|s| s.reader.is_of(client, request)) {
            Some(subscription) => {
                subscription.credit = (subscription.credit + i64::from(bytes)).min(CREDIT_BYTES_MAX);
                self.is_behind = true;
            }
            None => serving.refuse(client, kind::CREDIT, request, Code::UnknownRequest, None),
        }
    }

    pub fn cancel(&mut self, client: ClientRef, request: u32) {
        self.subscriptions.retain(|s| !s.reader.is_of(client, request));
        self.waiting.take_where(|reader| reader.is_of(client, request));
    }

    /// The client's channel is gone.
    pub fn forget(&mut self, client: ClientRef) {
        if self.waiting.count_of(client) > 0 {
            self.waiting.take_where(|reader| reader.client == client);
        }
        self.subscriptions.retain(|s| s.reader.client != client);
        self.from_disk.retain(|reader| reader.client != client);
    }

    pub fn next_deadline(&self) -> Option<Micros> {
        self.waiting.next_deadline()
    }

    /// Gives waiting readers what has become readable; answers those whose time is over.
    pub fn serve(&mut self, serving: &mut Serving<'_>) {
        let now_us = serving.turn.now_us;
        let replica = serving.replica;
        let committed = (replica.epoch(), replica.commit_index());
        let has_more = std::mem::replace(&mut self.served, committed) != committed;
        let is_behind = std::mem::take(&mut self.is_behind) || has_more;
        let is_due = self
            .next_deadline()
            .is_some_and(|deadline_us| deadline_us <= now_us);
        // Offsets are looked up for readers alone: with many groups the batches are in no cache.
        if !(is_behind || is_due) || (self.waiting.len() == 0 && self.subscriptions.is_empty()) {
            return;
        }
        let (readable, log) = (replica.commit_offset(), replica.log());
        let end = replica.is_head().then(|| log.next_offset());
        while let Some(read) = self.waiting.take_due(readable, end, now_us) {
            let is_answered = self.try_read(&read, read.deadline_us <= now_us, serving);
            assert!(is_answered, "a read at {} is due", read.offset);
        }
        self.feed_all(serving);
    }

    fn feed_all(&mut self, serving: &mut Serving<'_>) {
        let (mut at, mut first_held) = (0, None);
        while at < self.subscriptions.len() {
            match self.feed(at, serving) {
                Fed::All => {}
                Fed::HeldBack => first_held = first_held.or(Some(at)),
                Fed::Over => {
                    self.subscriptions.swap_remove(at);
                    continue;
                }
            }
            at += 1;
        }
        // Next time it is their turn first.
        self.is_held_back = first_held.is_some();
        self.subscriptions.rotate_left(first_held.unwrap_or(0));
    }

    /// Answers the read if there is something at its offset, or if `must_answer`.
    fn try_read(&mut self, read: &WaitingRead, must_answer: bool, serving: &mut Serving<'_>) -> bool {
        // A reader may know of entries that this replica does not know to be committed yet: it waits for them.
        match serving
            .replica
            .read(read.offset, read.max_bytes, read.max_entries, READ_BATCHES_MAX)
        {
            Ok(page) if page.pieces.is_empty() && !must_answer => return false,
            Ok(page) if self.is_beyond_bound(&page, read.reader) => {
                let Reader { client, request, .. } = read.reader;
                serving.refuse(client, kind::READ, request, Code::Overloaded, None);
            }
            Ok(page) => self.send_page(page, read.reader, serving),
            Err(error) => serving.refuse_read(read.reader.client, kind::READ, read.reader.request, error),
        }
        true
    }

    /// Whether the page lies on disk, and as many as may be are under way.
    fn is_beyond_bound(&self, page: &ReadPage, reader: Reader) -> bool {
        !is_in_memory(page) && !self.pages.has_room(reader.client.connection)
    }

    /// Sends pages to one subscription while it has credit.
    fn feed(&mut self, at: usize, serving: &mut Serving<'_>) -> Fed {
        loop {
            let subscription = &self.subscriptions[at];
            let has_credit = subscription.credit > 0 || planted::on(Bug::CreditIgnored);
            if !has_credit || subscription.is_loading {
                return Fed::All;
            }
            let reader = subscription.reader;
            let max_bytes = subscription.credit.clamp(1, i64::from(PAGE_BYTES_MAX)) as u32;
            match serving
                .replica
                .read(subscription.next_offset, max_bytes, u32::MAX, READ_BATCHES_MAX)
            {
                Ok(page) if page.pieces.is_empty() => return Fed::All,
                Ok(page) if self.is_beyond_bound(&page, reader) => return Fed::HeldBack,
                Ok(page) => {
                    let bytes: u64 = page.pieces.iter().map(|p| u64::from(p.payload_len)).sum();
                    let subscription = &mut self.subscriptions[at];
                    subscription.credit -= bytes as i64;
                    subscription.next_offset = page.next_offset;
                    subscription.is_loading = !is_in_memory(&page);
                    self.send_page(page, reader, serving);
                }
                Err(error) => {
                    serving.refuse_read(reader.client, kind::SUBSCRIBE, reader.request, error);
                    return Fed::Over;
                }
            }
        }
    }

    /// Sends a page at once if all of it is in memory, else when its payloads have been read.
    fn send_page(&mut self, page: ReadPage, reader: Reader, serving: &mut Serving<'_>) {
        if is_in_memory(&page) {
            return serving.send_entries(page, reader);
        }
        self.pages.begin(reader.client.connection);
        if !reader.is_subscription {
            self.from_disk.push(reader);
        }
        let read = PageRead {
            generation: serving.generation,
            page,
            reader,
            moves: 0,
        };
        serving.out.push(Output::ReadPage(read));
    }

    /// Payloads are there, or some: what has moved is read again, what is damaged is repaired first.
    pub fn page_read(
        &mut self,
        mut read: PageRead,
        payloads: Vec<Result<Bytes, Lack>>,
        serving: &mut Serving<'_>,
    ) -> Served {
        if read.reader.generation.hosting != serving.generation.hosting {
            return Served::Done; // It was asked of an earlier hosting, which has answered.
        }
        if read.generation != serving.generation && !planted::on(Bug::FormerLogServed) {
            self.answer_without(&read, "the log was reset meanwhile", serving);
            return Served::Done;
        }
        let (mut damaged, mut failed) = (Vec::new(), None);
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
                Err(Lack::Trimmed) => failed = Some("the entries were trimmed meanwhile".to_string()),
                Err(Lack::Other(reason)) => failed = Some(reason),
            }
        }
        let is_whole = is_in_memory(&read.page);
        if let Some(reason) = failed {
            self.answer_without(&read, &reason, serving);
        } else if !damaged.is_empty() {
            return Served::Damaged(read, damaged);
        } else if !is_whole && read.moves < MOVES_MAX {
            read.moves += 1;
            serving.out.push(Output::ReadPage(read));
        } else if !is_whole {
            self.answer_without(&read, "the record is not where it should be", serving);
        } else {
            self.send_read(read, serving);
        }
        Served::Done
    }

    /// All payloads of the page are there.
    fn send_read(&mut self, read: PageRead, serving: &mut Serving<'_>) {
        self.end_page(read.reader);
        if self.take_reader(read.reader) {
            serving.send_entries(read.page, read.reader);
        }
    }

    /// The page is under way no longer.
    fn end_page(&mut self, reader: Reader) {
        self.pages.end(reader.client.connection);
        self.is_behind |= self.is_held_back;
    }

    /// A repair has ended: what the page still lacks is read again.
    pub fn resume(&mut self, read: PageRead, serving: &mut Serving<'_>) {
        if read.lacking().next().is_some() {
            serving.out.push(Output::ReadPage(read));
        } else {
            self.send_read(read, serving);
        }
    }

    /// Refuses the read: its page cannot be read.
    pub fn answer_without(&mut self, read: &PageRead, reason: &str, serving: &mut Serving<'_>) {
        self.end_page(read.reader);
        if !self.take_reader(read.reader) {
            return;
        }
        let reason = reason.to_string();
        serving.out.push(Output::Report(Report::PageUnreadable {
            reason: reason.clone(),
        }));
        let Reader { client, request, .. } = read.reader;
        self.cancel(client, request);
        serving.refuse(client, kind::READ, request, Code::Internal, Some(reason));
    }

    /// Refuses readers, those whose page is being read from disk or repaired, too: nobody waits for it then.
    pub fn refuse_where(&mut self, code: Code, is_refused: impl Fn(&Reader) -> bool, out: &mut Outputs) {
        let waiting = self.waiting.take_where(&is_refused);
        let from_disk = self.from_disk.extract_if(.., |reader| is_refused(reader));
        for reader in waiting.into_iter().map(|read| read.reader).chain(from_disk) {
            let refusal = Refusal::new(kind::READ, u64::from(reader.request), code);
            out.client(reader.client, refusal.into_message());
        }
        for Subscription { reader, .. } in self.subscriptions.extract_if(.., |s| is_refused(&s.reader)) {
            let refusal = Refusal::new(kind::SUBSCRIBE, u64::from(reader.request), code);
            out.client(reader.client, refusal.into_message());
        }
    }

    /// Whether the reader still waits for the page, which it is about to get. If not, its channel is gone, it was
    /// cancelled, or it was refused when the group left.
    fn take_reader(&mut self, reader: Reader) -> bool {
        if reader.is_subscription {
            let mut subscriptions = self.subscriptions.iter_mut();
            let Some(subscription) = subscriptions.find(|s| s.reader == reader) else {
                return false;
            };
            subscription.is_loading = false;
            self.is_behind = true;
            return true;
        }
        let found = self.from_disk.iter().position(|of| *of == reader);
        if let Some(at) = found {
            self.from_disk.swap_remove(at);
        }
        found.is_some()
    }

    fn new_reader(
        &mut self,
        client: ClientRef,
        request: u32,
        is_subscription: bool,
        generation: Generation,
    ) -> Reader {
        self.serial += 1;
        Reader {
            client,
            request,
            is_subscription,
            generation,
            serial: self.serial,
        }
    }

    fn outstanding(&self, client: ClientRef) -> usize {
        let from_disk = self.from_disk.iter().filter(|reader| reader.client == client);
        self.waiting.count_of(client) + from_disk.count()
    }
}

fn is_in_memory(page: &ReadPage) -> bool {
    page.pieces.iter().all(|piece| piece.payload.is_some())
}

impl Reader {
    fn is_of(&self, client: ClientRef, request: u32) -> bool {
        (self.client, self.request) == (client, request)
    }
}

impl Serving<'_> {
    fn refuse(&mut self, client: ClientRef, op: u8, request: u32, code: Code, detail: Option<String>) {
        let refusal = Refusal {
            detail,
            ..Refusal::new(op, u64::from(request), code)
        };
        self.out.client(client, refusal.into_message());
    }

    fn refuse_read(&mut self, client: ClientRef, op: u8, request: u32, error: ReadError) {
        self.refuse(client, op, request, error.code(), Some(format!("{error:?}")));
    }

    fn send_entries(&mut self, page: ReadPage, reader: Reader) {
        let Reader { client, request, .. } = reader;
        let mut batches = Vec::with_capacity(page.pieces.len());
        for piece in page.pieces {
            let payload = piece.payload.expect("a page is sent when it is whole");
            self.counters.read(piece.entry_count, payload.len());
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
        self.out.client(client, Message::Entries(entries));
    }
}
