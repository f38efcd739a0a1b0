//! Messages between client and server (`sdk/contract/wire.md`); `decode` reads and `encode` writes them.

mod decode;
mod encode;

pub use encode::encode_acked;

use bytes::Bytes;
use quorate_types::{Code, Epoch, GroupId, Index, Offset, Versions};

pub const MAGIC: [u8; 4] = *b"QRT1";
pub const CLIENT_NAME_BYTES_MAX: usize = 64;
/// `expected_offset` of an append without that condition.
pub const NO_EXPECTED_OFFSET: Offset = u64::MAX;

pub mod kind {
    pub const HELLO: u8 = 1;
    pub const HELLO_OK: u8 = 2;
    pub const ATTACH: u8 = 3;
    pub const ATTACHED: u8 = 4;
    pub const APPEND: u8 = 5;
    pub const ACKED: u8 = 6;
    pub const REFUSED: u8 = 7;
    pub const READ: u8 = 8;
    pub const ENTRIES: u8 = 9;
    pub const SUBSCRIBE: u8 = 10;
    pub const CREDIT: u8 = 11;
    pub const CANCEL: u8 = 12;
    pub const STATUS: u8 = 13;
    pub const STATUS_OK: u8 = 14;
    pub const PING: u8 = 15;
    pub const PONG: u8 = 16;
    pub const GOODBYE: u8 = 17;
    pub const DETACH: u8 = 18;
    pub const NOTICE: u8 = 19;
    pub const TRIM: u8 = 20;
    pub const TRIM_OK: u8 = 21;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Hello {
        versions: Versions,
        client: String,
    },
    HelloOk(HelloOk),
    Attach {
        group_id: GroupId,
        session: u64,
        token: String,
    },
    Attached(Attached),
    Append(Append),
    /// (seq, base_offset) of each batch.
    Acked(Vec<(u64, Offset)>),
    Refused(Refused),
    Read {
        request: u32,
        max_bytes: u32,
        max_entries: u32,
        wait_ms: u32,
        offset: Offset,
    },
    Entries(Entries),
    Subscribe {
        request: u32,
        credit_bytes: u32,
        offset: Offset,
    },
    Credit {
        request: u32,
        bytes: u32,
    },
    Cancel {
        request: u32,
    },
    Status {
        request: u32,
    },
    StatusOk(StatusOk),
    Ping {
        nonce: u64,
    },
    Pong {
        nonce: u64,
    },
    Goodbye {
        code: u16,
        message: String,
    },
    Detach,
    Notice(Notice),
    /// Discard all whole batches that end at or before the offset.
    Trim {
        request: u32,
        before_offset: Offset,
    },
    /// Every replica has trimmed: entries before `trim_offset` are gone.
    TrimOk {
        request: u32,
        trim_offset: Offset,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloOk {
    /// The version of the connection: the newest that both speak.
    pub version: u16,
    pub server_id: u32,
    pub frame_bytes_max: u32,
    pub entry_bytes_max: u32,
    pub batch_bytes_max: u32,
    pub batch_entries_max: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    pub epoch: Epoch,
    pub role: u8,
    pub durability: u8,
    pub state: u8,
    pub window_batches: u32,
    pub last_index: Index,
    pub next_seq: u64,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
    pub rate_per_s: u64,
    pub head_address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    pub seq: u64,
    pub floor_index: Index,
    pub timeout_ms: u32,
    pub entry_count: u32,
    pub payload_crc: u32,
    pub expected_offset: Offset,
    pub fencing_token: u64,
    pub payload: Bytes,
}

/// Whether an append may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Refused = 1,
    Unknown = 2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The kind of the message that was refused.
    pub op: u8,
    pub outcome: u8,
    /// 0 never, 1 here after `retry_after_ms`, 2 at the head named, 3 with a fresh handle.
    pub retry: u8,
    pub code: u16,
    pub retry_after_ms: u32,
    /// seq of an append, request of a read.
    pub id: u64,
    pub head_address: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntriesBatch {
    pub base_offset: Offset,
    pub timestamp_us: u64,
    pub entry_count: u32,
    pub payload_crc: u32,
    pub payload: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    pub request: u32,
    pub next_offset: Offset,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
    pub batches: Vec<EntriesBatch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusOk {
    pub request: u32,
    pub role: u8,
    pub state: u8,
    pub epoch: Epoch,
    pub commit_offset: Offset,
    pub durable_offset: Offset,
    pub trim_offset: Offset,
    pub next_offset: Offset,
    pub head_address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub epoch: Epoch,
    pub role: u8,
    pub state: u8,
    pub rate_per_s: u64,
    pub head_address: String,
}

/// The `retry` byte of REFUSED for a code.
pub fn retry_byte(code: Code) -> u8 {
    use quorate_types::codes::Retry;
    match code.retry() {
        Retry::Never => 0,
        Retry::Here => 1,
        Retry::Head => 2,
        Retry::Handle | Retry::Connection => 3,
    }
}

impl Message {
    pub fn kind(&self) -> u8 {
        match self {
            Message::Hello { .. } => kind::HELLO,
            Message::HelloOk(_) => kind::HELLO_OK,
            Message::Attach { .. } => kind::ATTACH,
            Message::Attached(_) => kind::ATTACHED,
            Message::Append(_) => kind::APPEND,
            Message::Acked(_) => kind::ACKED,
            Message::Refused(_) => kind::REFUSED,
            Message::Read { .. } => kind::READ,
            Message::Entries(_) => kind::ENTRIES,
            Message::Subscribe { .. } => kind::SUBSCRIBE,
            Message::Credit { .. } => kind::CREDIT,
            Message::Cancel { .. } => kind::CANCEL,
            Message::Status { .. } => kind::STATUS,
            Message::StatusOk(_) => kind::STATUS_OK,
            Message::Ping { .. } => kind::PING,
            Message::Pong { .. } => kind::PONG,
            Message::Goodbye { .. } => kind::GOODBYE,
            Message::Detach => kind::DETACH,
            Message::Notice(_) => kind::NOTICE,
            Message::Trim { .. } => kind::TRIM,
            Message::TrimOk { .. } => kind::TRIM_OK,
        }
    }
}
