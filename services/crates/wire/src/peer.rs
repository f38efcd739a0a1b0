//! Messages between servers (`docs/internals/chain.md`). One link carries all groups of a pair of servers.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::{Epoch, GroupId, Index, Versions};
use uuid::Uuid;

use crate::WireError;
use crate::batch::{BATCH_HEADER_LEN, Batch, BatchHeader};
use crate::client::MAGIC;
use crate::cursor::{Reader, put_str8, put_str16, put_versions};
use crate::frame::{Frame, encode_frame};

pub mod kind {
    pub const HELLO: u8 = 64;
    pub const HELLO_OK: u8 = 65;
    pub const REPLICATE: u8 = 66;
    pub const CHAIN_ACK: u8 = 67;
    pub const CHAIN_NOTICE: u8 = 68;
    pub const SYNC_REQUEST: u8 = 69;
    pub const SYNC_REPLY: u8 = 70;
    pub const PROGRESS: u8 = 71;
    pub const ALIVE: u8 = 72;
    pub const FETCH: u8 = 73;
    pub const FETCHED: u8 = 74;
    pub const SHARE: u8 = 75;
    pub const ONE_SIDED: u8 = 76;
}

/// A message between two replicas of one group, in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Predecessor → successor: the next batch of the log.
    Replicate(Replicate),
    /// A replica of the chain → head: its acknowledgement, which closes the ring.
    ChainAck(ChainAck),
    /// Predecessor → successor: commit index and storage fault where no batch carries them, and fields that change too
    /// seldom to travel with every batch.
    ChainNotice(ChainNotice),
    /// Successor → predecessor, in a new epoch or after a broken link: the state of the sender's log.
    SyncRequest(SyncRequest),
    /// Predecessor → successor: truncate your log to `common_index`, or begin behind the base. Batches follow.
    SyncReply(SyncReply),
    /// Successor → predecessor: the batches that have arrived, to open the window.
    Progress(Progress),
    /// Between any two replicas of a group: the sender's record of this batch is damaged, and it asks for another.
    Fetch { index: Index },
    /// The answer; `None`: the batch is not available here.
    Fetched { index: Index, batch: Option<Batch> },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChainAck {
    /// The sender holds (durably, in persistent mode) up to this.
    pub acknowledged_index: Index,
    pub storage_fault: bool,
    /// The sender has taken in clients' trims (durably, in persistent mode) up to this.
    pub trim_index: Index,
    /// The last ring pass that has reached the sender.
    pub ring_pass: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChainNotice {
    pub commit_index: Index,
    pub storage_fault: bool,
    /// The trim point, by the head's decision: batches up to this may be discarded.
    pub trim_index: Index,
    /// The part of it that clients asked for: it must be durable everywhere before they are answered.
    pub trim_asked: Index,
    /// The head's last ring pass, numbered in each epoch from 1.
    pub ring_pass: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Batches up to this have arrived; at a learner of a persistent group, are on stable storage.
    pub index: Index,
    pub is_caught_up: bool,
    /// The last ring pass that has reached the sender.
    pub ring_pass: u64,
    /// The sender has taken in clients' trims (durably, in persistent mode) up to this.
    pub trim_index: Index,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replicate {
    pub commit_index: Index,
    /// The sender's last index when it sent this: equal to the batch's if that is the last.
    pub last_index: Index,
    pub storage_fault: bool,
    pub batch: Batch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncRequest {
    /// Echoed in the reply, so that an answer to an earlier request is not taken for this one's.
    pub nonce: u32,
    pub last_index: Index,
    pub commit_index: Index,
    /// (epoch, index of its first batch), oldest first, for the epochs that the log still holds.
    pub history: Vec<(Epoch, Index)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncReply {
    pub nonce: u32,
    pub common_index: Index,
    pub last_index: Index,
    pub commit_index: Index,
    /// State at `common_index` when the receiver's log cannot be continued: an encoded base (`chain`).
    pub base: Option<Bytes>,
}

/// A message with the group and the sender's epoch, which fences it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub message: Message,
}

/// A handshake opens a link; the rest of the connection is [`Envelope`]s and ALIVE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handshake {
    Hello {
        versions: Versions,
        server_id: u32,
        incarnation: String,
        token: String,
    },
    HelloOk {
        server_id: u32,
        incarnation: String,
        /// The version of the link: the newest that both speak.
        version: u16,
    },
}

/// The version of a link with a server that names none: it speaks this one only.
const LINK_VERSION_UNTOLD: u16 = 2;

impl Handshake {
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Handshake::Hello {
                versions,
                server_id,
                incarnation,
                token,
            } => {
                encode_frame(&mut out, kind::HELLO, 0, None, 0, |out| {
                    out.put_slice(&MAGIC);
                    put_versions(out, *versions);
                    out.put_u32_le(*server_id);
                    put_str8(out, incarnation);
                    put_str16(out, token);
                });
            }
            Handshake::HelloOk {
                server_id,
                incarnation,
                version,
            } => {
                encode_frame(&mut out, kind::HELLO_OK, 0, None, 0, |out| {
                    out.put_u32_le(*server_id);
                    put_str8(out, incarnation);
                    out.put_u16_le(*version);
                });
            }
        }
        out.freeze()
    }

    pub fn decode(frame: &Frame) -> Result<Handshake, WireError> {
        frame.expect_no_payload("handshake")?;
        let mut r = Reader::new(&frame.head, "peer handshake");
        match frame.kind {
            kind::HELLO => {
                let magic_ok = r.bytes(4)? == MAGIC;
                let versions = r.versions()?;
                if !magic_ok {
                    return Err(WireError::Malformed {
                        what: "peer handshake",
                    });
                }
                Ok(Handshake::Hello {
                    versions,
                    server_id: r.u32()?,
                    incarnation: r.str8()?,
                    token: r.str16()?,
                })
            }
            kind::HELLO_OK => Ok(Handshake::HelloOk {
                server_id: r.u32()?,
                incarnation: r.str8()?,
                version: r.u16().unwrap_or(LINK_VERSION_UNTOLD),
            }),
            unknown => Err(WireError::UnknownKind { kind: unknown }),
        }
    }
}

/// From this version of links on, ALIVE comes each `LINK_ALIVE_US`.
pub const OFTEN_ALIVE_VERSION: u16 = 3;

/// An ALIVE frame, with the version of SHARE that the sender takes (0: none).
pub fn alive_frame(share_version: u8) -> Bytes {
    let mut out = BytesMut::new();
    encode_frame(&mut out, kind::ALIVE, 0, None, 0, |out| out.put_u8(share_version));
    out.freeze()
}

/// The version of SHARE that the sender of an ALIVE takes; servers without SHARE name none.
pub fn share_version_of(alive: &Frame) -> u8 {
    alive.head.first().copied().unwrap_or(0)
}

impl Envelope {
    pub fn decode(frame: &Frame) -> Result<Envelope, WireError> {
        if !matches!(frame.kind, kind::REPLICATE | kind::SYNC_REPLY | kind::FETCHED) {
            frame.expect_no_payload("peer frame without payload")?;
        }
        let mut r = Reader::new(&frame.head, "peer frame");
        let group_id = GroupId(Uuid::from_bytes(r.id16()?));
        let epoch = r.u64()?;
        let message = match frame.kind {
            kind::REPLICATE => decode_replicate(&mut r, frame)?,
            kind::CHAIN_ACK => Message::ChainAck(ChainAck {
                acknowledged_index: r.position()?,
                storage_fault: r.u8()? != 0,
                trim_index: r.position()?,
                ring_pass: r.u64()?,
            }),
            kind::CHAIN_NOTICE => Message::ChainNotice(ChainNotice {
                commit_index: r.position()?,
                storage_fault: r.u8()? != 0,
                trim_index: r.position()?,
                trim_asked: r.position()?,
                ring_pass: r.u64()?,
            }),
            kind::SYNC_REQUEST => decode_sync_request(&mut r)?,
            kind::SYNC_REPLY => decode_sync_reply(&mut r, frame)?,
            kind::PROGRESS => Message::Progress(Progress {
                index: r.position()?,
                is_caught_up: r.u8()? != 0,
                ring_pass: r.u64()?,
                trim_index: r.position()?,
            }),
            kind::FETCH => Message::Fetch { index: r.position()? },
            kind::FETCHED => decode_fetched(&mut r, frame)?,
            unknown => return Err(WireError::UnknownKind { kind: unknown }),
        };
        Ok(Envelope {
            group_id,
            epoch,
            message,
        })
    }

    /// Header and head into `out`; the payload (if any) is handed back, to be sent behind it uncopied.
    pub fn encode(&self, out: &mut BytesMut) -> Option<Bytes> {
        self.put_frame(out);
        match &self.message {
            Message::Replicate(m) => Some(m.batch.payload.clone()),
            Message::SyncReply(m) => m.base.clone(),
            Message::Fetched { batch, .. } => batch.as_ref().map(|batch| batch.payload.clone()),
            _ => None,
        }
    }

    /// As [`Envelope::encode`], for a message that is sent to one server only: it saves counting the payload's users.
    pub fn into_frame(self, out: &mut BytesMut) -> Option<Bytes> {
        self.put_frame(out);
        match self.message {
            Message::Replicate(m) => Some(m.batch.payload),
            Message::SyncReply(m) => m.base,
            Message::Fetched { batch, .. } => batch.map(|batch| batch.payload),
            _ => None,
        }
    }

    fn put_frame(&self, out: &mut BytesMut) {
        let (kind, trace, payload) = match &self.message {
            Message::Replicate(m) => (kind::REPLICATE, m.batch.trace.as_ref(), Some(&m.batch.payload)),
            Message::ChainAck(_) => (kind::CHAIN_ACK, None, None),
            Message::ChainNotice(_) => (kind::CHAIN_NOTICE, None, None),
            Message::SyncRequest(_) => (kind::SYNC_REQUEST, None, None),
            Message::SyncReply(m) => (kind::SYNC_REPLY, None, m.base.as_ref()),
            Message::Progress(_) => (kind::PROGRESS, None, None),
            Message::Fetch { .. } => (kind::FETCH, None, None),
            Message::Fetched { batch, .. } => {
                (kind::FETCHED, None, batch.as_ref().map(|batch| &batch.payload))
            }
        };
        let payload_len = payload.map_or(0, Bytes::len);
        encode_frame(out, kind, 0, trace, payload_len, |out| {
            out.put_slice(self.group_id.0.as_bytes());
            out.put_u64_le(self.epoch);
            self.message.put_head(out);
        });
    }

    /// The whole frame in one piece.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        if let Some(payload) = self.encode(&mut out) {
            out.put_slice(&payload);
        }
        out.freeze()
    }
}

impl Message {
    fn put_head(&self, out: &mut BytesMut) {
        match self {
            Message::Replicate(m) => {
                for field in [m.commit_index, m.last_index] {
                    out.put_u64_le(field);
                }
                out.put_u8(u8::from(m.storage_fault));
                out.put_slice(&m.batch.header.encode());
            }
            Message::ChainAck(m) => {
                out.put_u64_le(m.acknowledged_index);
                out.put_u8(u8::from(m.storage_fault));
                out.put_u64_le(m.trim_index);
                out.put_u64_le(m.ring_pass);
            }
            Message::ChainNotice(m) => {
                out.put_u64_le(m.commit_index);
                out.put_u8(u8::from(m.storage_fault));
                for field in [m.trim_index, m.trim_asked, m.ring_pass] {
                    out.put_u64_le(field);
                }
            }
            Message::SyncRequest(m) => {
                out.put_u32_le(m.nonce);
                out.put_u64_le(m.last_index);
                out.put_u64_le(m.commit_index);
                out.put_u32_le(m.history.len() as u32);
                for (epoch, start) in &m.history {
                    out.put_u64_le(*epoch);
                    out.put_u64_le(*start);
                }
            }
            Message::SyncReply(m) => {
                out.put_u32_le(m.nonce);
                for field in [m.common_index, m.last_index, m.commit_index] {
                    out.put_u64_le(field);
                }
                out.put_u8(u8::from(m.base.is_some()));
                out.put_u32_le(m.base.as_ref().map_or(0, |base| crc32fast::hash(base)));
            }
            Message::Progress(m) => {
                out.put_u64_le(m.index);
                out.put_u8(u8::from(m.is_caught_up));
                out.put_u64_le(m.ring_pass);
                out.put_u64_le(m.trim_index);
            }
            Message::Fetch { index } => out.put_u64_le(*index),
            Message::Fetched { index, batch } => {
                out.put_u64_le(*index);
                out.put_u8(u8::from(batch.is_some()));
                if let Some(batch) = batch {
                    out.put_slice(&batch.header.encode());
                }
            }
        }
    }
}

fn decode_replicate(r: &mut Reader<'_>, frame: &Frame) -> Result<Message, WireError> {
    let (commit_index, last_index) = (r.position()?, r.position()?);
    let storage_fault = r.u8()? != 0;
    let header = BatchHeader::decode(r.bytes(BATCH_HEADER_LEN)?)?;
    let batch = Batch {
        header,
        payload: frame.payload.clone(),
        trace: frame.trace,
    };
    batch.verify()?;
    Ok(Message::Replicate(Replicate {
        commit_index,
        last_index,
        storage_fault,
        batch,
    }))
}

fn decode_fetched(r: &mut Reader<'_>, frame: &Frame) -> Result<Message, WireError> {
    let index = r.position()?;
    if r.u8()? == 0 {
        frame.expect_no_payload("FETCHED without a batch")?;
        return Ok(Message::Fetched { index, batch: None });
    }
    let batch = Batch {
        header: BatchHeader::decode(r.bytes(BATCH_HEADER_LEN)?)?,
        payload: frame.payload.clone(),
        trace: None,
    };
    batch.verify()?;
    let batch = Some(batch);
    Ok(Message::Fetched { index, batch })
}

fn decode_sync_request(r: &mut Reader<'_>) -> Result<Message, WireError> {
    let (nonce, last_index, commit_index) = (r.u32()?, r.position()?, r.position()?);
    let count = r.count(16)?;
    let history: Vec<_> = (0..count)
        .map(|_| Ok((r.u64()?, r.position()?)))
        .collect::<Result<_, WireError>>()?;
    if history.iter().any(|(_, start)| *start == 0) {
        return Err(WireError::Malformed { what: "history" });
    }
    Ok(Message::SyncRequest(SyncRequest {
        nonce,
        last_index,
        commit_index,
        history,
    }))
}

fn decode_sync_reply(r: &mut Reader<'_>, frame: &Frame) -> Result<Message, WireError> {
    let nonce = r.u32()?;
    let (common_index, last_index) = (r.position()?, r.position()?);
    let commit_index = r.position()?;
    let has_base = r.u8()? != 0;
    let crc = r.u32()?;
    if has_base && crc != crc32fast::hash(&frame.payload) {
        return Err(WireError::Checksum {
            part: "base of SYNC_REPLY",
        });
    }
    if !has_base {
        frame.expect_no_payload("SYNC_REPLY without a base")?;
    }
    let base = has_base.then(|| frame.payload.clone());
    Ok(Message::SyncReply(SyncReply {
        nonce,
        common_index,
        last_index,
        commit_index,
        base,
    }))
}
