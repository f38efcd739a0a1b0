//! The truth about one group: every batch that was ever committed, and the outcome that its client has recorded.

use std::collections::BTreeMap;

use quorate_types::config::Beginning;
use quorate_types::{Epoch, GroupConfig, Index, Micros, Offset};
use quorate_wire::BatchHeader;
use quorate_wire::client::NO_EXPECTED_OFFSET;

#[derive(Debug, Default)]
pub struct Ledger {
    /// The log's beginning after a reset.
    beginning: Option<Beginning>,
    /// By index, from the first one.
    committed: Vec<BatchHeader>,
    /// The epoch whose head committed each.
    committed_in: Vec<Epoch>,
    /// The time at which each was made.
    made_at: Vec<Micros>,
    /// Index of each committed (session, seq).
    placed: BTreeMap<(u64, u64), Index>,
    issued: Vec<Issued>,
    /// Numbers of the batches that were given (session, seq): a seq given up goes to another batch.
    numbers: BTreeMap<(u64, u64), Vec<usize>>,
    /// The batch that was sent last on each connection under each seq.
    sent: BTreeMap<(u64, u64), usize>,
    pub fence: u64,
    /// Batches up to this were trimmed, and a client has the answer.
    pub trimmed: Index,
    /// The server that committed first in each epoch.
    pub heads: BTreeMap<Epoch, usize>,
    /// As servers adopted them.
    pub configs: BTreeMap<Epoch, GroupConfig>,
    /// The servers that adopted an epoch.
    pub adopted: BTreeMap<(Epoch, usize), Adoption>,
    /// The coordinator has found it lost.
    pub is_lost: bool,
}

/// The state of a server when it adopted an epoch.
#[derive(Debug, Clone, Copy)]
pub struct Adoption {
    pub lineage: u64,
    pub incarnation: u64,
}

#[derive(Debug)]
struct Issued {
    made_at: Micros,
    session: u64,
    seq: u64,
    entry_count: u32,
    payload_crc: u32,
    expected_offset: Offset,
    /// As its client has recorded it.
    outcome: Outcome,
    /// Connections on which it was sent and not refused since: later ones have greater numbers.
    live: Vec<u64>,
    index: Option<Index>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Open,
    Acked(Offset),
    Refused,
    Unknown,
}

impl Ledger {
    pub fn beginning(beginning: Beginning) -> Self {
        Self {
            beginning: Some(beginning),
            ..Self::default()
        }
    }

    pub fn begins_in(&self) -> Option<Epoch> {
        self.beginning.map(|beginning| beginning.epoch)
    }

    /// The offset before the first entry.
    pub fn begin_offset(&self) -> Offset {
        self.beginning.map_or(0, |beginning| beginning.offset)
    }

    /// The index before the first batch: a log has a base there after a reset.
    fn begin_index(&self) -> Index {
        u64::from(self.beginning.is_some())
    }

    /// A client makes a batch; answers its number.
    pub fn issue(
        &mut self,
        now: Micros,
        session: u64,
        seq: u64,
        entry_count: u32,
        expected_offset: Offset,
    ) -> usize {
        let number = self.issued.len();
        self.issued.push(Issued {
            made_at: now,
            session,
            seq,
            entry_count,
            payload_crc: 0,
            expected_offset,
            outcome: Outcome::Open,
            live: Vec::new(),
            index: None,
        });
        self.numbers.entry((session, seq)).or_default().push(number);
        number
    }

    pub fn made(&mut self, number: usize, payload_crc: u32) {
        self.issued[number].payload_crc = payload_crc;
    }

    /// Its client sends a batch, perhaps once more.
    pub fn sent(&mut self, number: usize, connection: u64, seq: u64) {
        self.sent.insert((connection, seq), number);
        let live = &mut self.issued[number].live;
        if live.last() != Some(&connection) {
            live.push(connection);
        }
    }

    /// A server refuses a batch that was sent to it: it did not happen. `speaks_for_all`: nor did any earlier sending.
    pub fn refused_outright(&mut self, connection: u64, seq: u64, speaks_for_all: bool) {
        let Some(number) = self.sent.remove(&(connection, seq)) else {
            return;
        };
        let issued = &mut self.issued[number];
        issued
            .live
            .retain(|sent| *sent > connection || *sent < connection && !speaks_for_all);
        assert!(
            issued.index.is_none() || !issued.live.is_empty() || !speaks_for_all,
            "refused never happens: batch {seq} of session {:x} is refused outright, and is committed at {:?}",
            issued.session,
            issued.index
        );
    }

    /// A client is about to get the answer that all whole batches before the offset are trimmed.
    pub fn trim(&mut self, before_offset: Offset) {
        let whole = self
            .committed
            .partition_point(|h| h.end_offset() <= before_offset);
        self.trimmed = self.trimmed.max(self.begin_index() + whole as Index);
    }

    pub fn end_offset(&self) -> Offset {
        self.last().map_or(self.begin_offset(), BatchHeader::end_offset)
    }

    pub fn last_index(&self) -> Index {
        self.begin_index() + self.committed.len() as u64
    }

    pub fn last(&self) -> Option<&BatchHeader> {
        self.committed.last()
    }

    pub fn at(&self, index: Index) -> Option<&BatchHeader> {
        let at = index.checked_sub(self.begin_index() + 1)?;
        self.committed.get(at as usize)
    }

    /// The time at which its client made the committed batch.
    pub fn made_at(&self, index: Index) -> Option<Micros> {
        let at = index.checked_sub(self.begin_index() + 1)?;
        self.made_at.get(at as usize).copied()
    }

    /// The committed batch that holds the offset.
    pub fn at_offset(&self, offset: Offset) -> Option<&BatchHeader> {
        let at = self.committed.partition_point(|h| h.end_offset() <= offset);
        self.committed.get(at).filter(|h| h.base_offset <= offset)
    }

    /// The last batch that was committed by the head of an epoch before this one.
    pub fn last_before(&self, epoch: Epoch) -> Option<&BatchHeader> {
        let last = self
            .committed_in
            .iter()
            .rposition(|committed_in| *committed_in < epoch)?;
        self.committed.get(last)
    }

    /// The head of this epoch committed the next batch.
    pub fn commit(&mut self, header: &BatchHeader, epoch: Epoch) {
        assert_eq!(header.index, self.last_index() + 1, "commitment goes in order");
        let end = self.end_offset();
        assert_eq!(header.base_offset, end, "offsets are dense");
        let earlier = self.placed.insert((header.session, header.seq), header.index);
        assert_eq!(
            earlier, None,
            "exactly once: session {:x} seq {} was committed twice",
            header.session, header.seq
        );
        let numbers = self
            .numbers
            .get(&(header.session, header.seq))
            .expect("a batch of some client");
        let is_it = |number: &&usize| self.issued[**number].payload_crc == header.payload_crc;
        let number = *numbers
            .iter()
            .find(is_it)
            .expect("the batch as its client made it");
        let issued = &mut self.issued[number];
        assert_eq!(issued.entry_count, header.entry_count);
        assert_ne!(
            issued.outcome,
            Outcome::Refused,
            "refused never happens: batch {} was refused and committed",
            header.index
        );
        assert!(
            !issued.live.is_empty(),
            "refused never happens: every sending of batch {} was refused outright, and it is committed",
            header.index
        );
        let expected = issued.expected_offset;
        assert!(
            expected == NO_EXPECTED_OFFSET || expected == header.base_offset,
            "batch {} was committed against its expected offset",
            header.index
        );
        assert!(
            header.fencing_token == 0 || header.fencing_token >= self.fence,
            "batch {} was committed under an older fencing token",
            header.index
        );
        self.fence = self.fence.max(header.fencing_token);
        issued.index = Some(header.index);
        self.made_at.push(issued.made_at);
        self.committed.push(*header);
        self.committed_in.push(epoch);
    }

    /// A head sends an ack: its batch must be committed.
    pub fn check_ack(&self, session: u64, seq: u64, base_offset: Offset) {
        let index = self.placed.get(&(session, seq));
        let index =
            *index.unwrap_or_else(|| panic!("session {session:x} seq {seq} is acked and not committed"));
        let header = self.at(index).expect("placed");
        assert_eq!(
            header.base_offset, base_offset,
            "acked at another place than committed"
        );
    }

    /// A client gets the ack for its batch.
    pub fn acked(&mut self, number: usize, base_offset: Offset) {
        let index = self.issued[number].index;
        let index = index.expect("the very batch that is acked is committed");
        assert_eq!(self.at(index).map(|h| h.base_offset), Some(base_offset));
        self.issued[number].outcome = Outcome::Acked(base_offset);
    }

    /// A client records its batch as refused: not ordered, and never to be.
    pub fn refuse(&mut self, number: usize) {
        let issued = &mut self.issued[number];
        assert_eq!(
            issued.index, None,
            "refused never happens: a batch given up as not ordered is committed at {:?}",
            issued.index
        );
        issued.outcome = Outcome::Refused;
    }

    /// A client records the outcome of its batch as unknown.
    pub fn unknown(&mut self, number: usize) {
        self.issued[number].outcome = Outcome::Unknown;
    }

    /// At the end every batch has an outcome: acked, and it is there; refused, and it is not; or unknown.
    pub fn check_oracle(&self) {
        for (number, issued) in self.issued.iter().enumerate() {
            match (issued.outcome, issued.index) {
                (Outcome::Acked(offset), Some(index)) => {
                    let header = self.at(index).expect("committed");
                    assert_eq!(
                        (header.base_offset, header.payload_crc),
                        (offset, issued.payload_crc)
                    );
                }
                (Outcome::Refused, None) | (Outcome::Unknown, _) => {}
                other => panic!(
                    "batch {number} of session {:x}, seq {}, ended as {other:?}",
                    issued.session, issued.seq
                ),
            }
        }
    }
}
