//! Error codes of the data plane. Generated from `sdk/contract/errors.json` by `sdk/contract/generate.py`; do not edit.

/// An error, as a stable number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Code {
    /// The bytes were not a valid frame of this protocol. Use a current SDK; if you wrote your own client, check it against sdk/contract/vectors.
    ProtocolError = 1,
    /// The frame is longer than max_frame_bytes. Send smaller batches; HELLO_OK has the limits.
    FrameTooLarge = 2,
    /// A CRC did not match the received bytes. Reconnect and send again; if it repeats, look for a faulty device between client and server.
    ChecksumMismatch = 3,
    /// The server does not speak this version of the protocol. Upgrade the SDK.
    UnsupportedVersion = 4,
    /// The connection has as many groups attached as it may have. Detach a group or open another connection.
    TooManyChannels = 5,
    /// The frame names a channel that was not attached. ATTACH first.
    UnknownChannel = 6,
    /// The server speaks TLS only, and the connection began without it. Use a current SDK with the handle as the API gave it; its field tls names the authority to trust.
    TlsRequired = 7,
    /// The token is malformed or was not signed by this fleet. Get a new handle from the API.
    TokenInvalid = 10,
    /// The token has expired. Get a new handle from the API; SDKs do it by themselves when they know the API's address and key.
    TokenExpired = 11,
    /// The token does not allow this operation on this group. Use a key with the scope that the operation needs.
    PermissionDenied = 12,
    /// This server holds no replica of the group. Get a new handle; the group has moved or was deleted.
    GroupNotHere = 13,
    /// The API key or session for which the token was issued was revoked. Use another API key; SDKs ask the API for a new handle once, and stop when it refuses the key.
    TokenRevoked = 14,
    /// Appends go to the group's head, and this server is not the head. Connect to the address in the answer.
    NotHead = 20,
    /// Fewer replicas than min_replicas are alive, so appends are paused. Retry; a replacement is catching up.
    Paused = 21,
    /// The group is read-only: a server's disk is full or failing. Retry later; reads continue to work.
    ReadOnly = 22,
    /// Nothing of the group's log is left: every replica of an in-memory group was lost, or every disk of a persistent one. The owner may reset the group, which begins an empty log, in the portal or by POST /v1/groups/{id}/reset.
    GroupLost = 23,
    /// The replica is joining its chain and cannot answer yet. Retry after the given time.
    Syncing = 24,
    /// The group was reconfigured before the batch was ordered. Retry at the named head; the retry is ordered once.
    EpochChanged = 25,
    /// The head reaches neither its chain nor the coordinator, so another may have taken its place. Look for the head at the other servers of the handle; the retry is ordered once. SDKs do it by themselves.
    CutOff = 26,
    /// An assertion of ours stopped several replicas of the group, so it takes no requests. Its data is kept. Wait until an operator has released the group; whether batches that had no answer were ordered is known then.
    GroupQuarantined = 27,
    /// The spend cap of the organization or project is reached, so the group takes neither appends nor reads. Its log is kept. Raise or remove the cap in the portal or by PUT /v1/budgets, or wait for the next month.
    GroupSuspended = 28,
    /// The number of the group's partitions has changed, so keys may belong to other partitions. The entry was not appended. Get a new handle and append to the partition that the key belongs to now; clients made by connect_partitioned do it by themselves.
    LayoutChanged = 29,
    /// The group is above its reserved rate and the queue is full. Slow down, send more entries in a batch (a batch costs something itself), or reserve more; retry after the given time.
    Throttled = 30,
    /// The server's queue for this group is full though the rate is within its SLA. Retry after the given time.
    Overloaded = 31,
    /// The batch was still waiting when its deadline passed; it was not ordered. Retry if it still matters.
    DeadlineExceeded = 32,
    /// An entry is longer than max_entry_bytes. Split the entry, or store it elsewhere and append a reference.
    EntryTooLarge = 40,
    /// The batch has more bytes or entries than allowed. Send smaller batches; HELLO_OK has the limits.
    BatchTooLarge = 41,
    /// The entries do not add up to the payload. Check the encoder against sdk/contract/vectors.
    BatchMalformed = 42,
    /// A batch of the session is missing before this one. Send again from the first batch that has no answer.
    SequenceGap = 43,
    /// The session table has forgotten this session. Start a new session; whether the batch had been ordered is unknown if it was sent before.
    SessionExpired = 44,
    /// The channel was attached without a session, so it cannot append. Attach with a session.
    SessionMissing = 45,
    /// More batches are outstanding than window_batches allows. Wait for acknowledgements.
    WindowExceeded = 46,
    /// The session has since been attached on another channel, which alone may append. Nothing, if the connection was replaced; otherwise give each client a session of its own.
    SessionMoved = 47,
    /// The offset lies before the trim offset. Start at the trim offset in the message.
    Trimmed = 50,
    /// The offset lies beyond the end of the log. Read from the commit offset or before.
    OffsetBeyondEnd = 51,
    /// The credit or cancellation names a subscription that does not exist. Subscribe first.
    UnknownRequest = 52,
    /// The trim would discard entries that are not committed. Trim to the commit offset at most; STATUS has it.
    TrimBeyondCommit = 53,
    /// The log does not end at the expected offset. Read the entries appended meanwhile, then decide again.
    ConditionFailed = 60,
    /// A newer fencing token has been used on this group. Another owner has taken over; stop.
    Fenced = 61,
    /// The server is stopping. Reconnect to another replica; the handle lists them.
    ShuttingDown = 90,
    /// The server had an internal error. Retry; report the message if it repeats.
    Internal = 91,
}

/// What a client should do with a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// The same server, after the given time.
    Here,
    /// The head named in the answer.
    Head,
    /// With a fresh handle.
    Handle,
    /// On a new connection.
    Connection,
}

impl Code {
    pub const ALL: &'static [Code] = &[
        Code::ProtocolError,
        Code::FrameTooLarge,
        Code::ChecksumMismatch,
        Code::UnsupportedVersion,
        Code::TooManyChannels,
        Code::UnknownChannel,
        Code::TlsRequired,
        Code::TokenInvalid,
        Code::TokenExpired,
        Code::PermissionDenied,
        Code::GroupNotHere,
        Code::TokenRevoked,
        Code::NotHead,
        Code::Paused,
        Code::ReadOnly,
        Code::GroupLost,
        Code::Syncing,
        Code::EpochChanged,
        Code::CutOff,
        Code::GroupQuarantined,
        Code::GroupSuspended,
        Code::LayoutChanged,
        Code::Throttled,
        Code::Overloaded,
        Code::DeadlineExceeded,
        Code::EntryTooLarge,
        Code::BatchTooLarge,
        Code::BatchMalformed,
        Code::SequenceGap,
        Code::SessionExpired,
        Code::SessionMissing,
        Code::WindowExceeded,
        Code::SessionMoved,
        Code::Trimmed,
        Code::OffsetBeyondEnd,
        Code::UnknownRequest,
        Code::TrimBeyondCommit,
        Code::ConditionFailed,
        Code::Fenced,
        Code::ShuttingDown,
        Code::Internal,
    ];

    pub fn from_u16(value: u16) -> Option<Code> {
        Self::ALL.iter().copied().find(|code| *code as u16 == value)
    }

    pub fn name(self) -> &'static str {
        match self {
            Code::ProtocolError => "protocol_error",
            Code::FrameTooLarge => "frame_too_large",
            Code::ChecksumMismatch => "checksum_mismatch",
            Code::UnsupportedVersion => "unsupported_version",
            Code::TooManyChannels => "too_many_channels",
            Code::UnknownChannel => "unknown_channel",
            Code::TlsRequired => "tls_required",
            Code::TokenInvalid => "token_invalid",
            Code::TokenExpired => "token_expired",
            Code::PermissionDenied => "permission_denied",
            Code::GroupNotHere => "group_not_here",
            Code::TokenRevoked => "token_revoked",
            Code::NotHead => "not_head",
            Code::Paused => "paused",
            Code::ReadOnly => "read_only",
            Code::GroupLost => "group_lost",
            Code::Syncing => "syncing",
            Code::EpochChanged => "epoch_changed",
            Code::CutOff => "cut_off",
            Code::GroupQuarantined => "group_quarantined",
            Code::GroupSuspended => "group_suspended",
            Code::LayoutChanged => "layout_changed",
            Code::Throttled => "throttled",
            Code::Overloaded => "overloaded",
            Code::DeadlineExceeded => "deadline_exceeded",
            Code::EntryTooLarge => "entry_too_large",
            Code::BatchTooLarge => "batch_too_large",
            Code::BatchMalformed => "batch_malformed",
            Code::SequenceGap => "sequence_gap",
            Code::SessionExpired => "session_expired",
            Code::SessionMissing => "session_missing",
            Code::WindowExceeded => "window_exceeded",
            Code::SessionMoved => "session_moved",
            Code::Trimmed => "trimmed",
            Code::OffsetBeyondEnd => "offset_beyond_end",
            Code::UnknownRequest => "unknown_request",
            Code::TrimBeyondCommit => "trim_beyond_commit",
            Code::ConditionFailed => "condition_failed",
            Code::Fenced => "fenced",
            Code::ShuttingDown => "shutting_down",
            Code::Internal => "internal",
        }
    }

    pub fn retry(self) -> Retry {
        match self {
            Code::ProtocolError => Retry::Never,
            Code::FrameTooLarge => Retry::Never,
            Code::ChecksumMismatch => Retry::Connection,
            Code::UnsupportedVersion => Retry::Never,
            Code::TooManyChannels => Retry::Never,
            Code::UnknownChannel => Retry::Never,
            Code::TlsRequired => Retry::Never,
            Code::TokenInvalid => Retry::Handle,
            Code::TokenExpired => Retry::Handle,
            Code::PermissionDenied => Retry::Never,
            Code::GroupNotHere => Retry::Handle,
            Code::TokenRevoked => Retry::Handle,
            Code::NotHead => Retry::Head,
            Code::Paused => Retry::Here,
            Code::ReadOnly => Retry::Here,
            Code::GroupLost => Retry::Never,
            Code::Syncing => Retry::Here,
            Code::EpochChanged => Retry::Head,
            Code::CutOff => Retry::Handle,
            Code::GroupQuarantined => Retry::Never,
            Code::GroupSuspended => Retry::Never,
            Code::LayoutChanged => Retry::Never,
            Code::Throttled => Retry::Here,
            Code::Overloaded => Retry::Here,
            Code::DeadlineExceeded => Retry::Here,
            Code::EntryTooLarge => Retry::Never,
            Code::BatchTooLarge => Retry::Never,
            Code::BatchMalformed => Retry::Never,
            Code::SequenceGap => Retry::Here,
            Code::SessionExpired => Retry::Never,
            Code::SessionMissing => Retry::Never,
            Code::WindowExceeded => Retry::Here,
            Code::SessionMoved => Retry::Never,
            Code::Trimmed => Retry::Never,
            Code::OffsetBeyondEnd => Retry::Never,
            Code::UnknownRequest => Retry::Never,
            Code::TrimBeyondCommit => Retry::Never,
            Code::ConditionFailed => Retry::Never,
            Code::Fenced => Retry::Never,
            Code::ShuttingDown => Retry::Handle,
            Code::Internal => Retry::Here,
        }
    }

    /// The meaning and the next step, for people.
    pub fn explanation(self) -> &'static str {
        match self {
            Code::ProtocolError => {
                "The bytes were not a valid frame of this protocol. Use a current SDK; if you wrote your own client, check it against sdk/contract/vectors."
            }
            Code::FrameTooLarge => {
                "The frame is longer than max_frame_bytes. Send smaller batches; HELLO_OK has the limits."
            }
            Code::ChecksumMismatch => {
                "A CRC did not match the received bytes. Reconnect and send again; if it repeats, look for a faulty device between client and server."
            }
            Code::UnsupportedVersion => {
                "The server does not speak this version of the protocol. Upgrade the SDK."
            }
            Code::TooManyChannels => {
                "The connection has as many groups attached as it may have. Detach a group or open another connection."
            }
            Code::UnknownChannel => "The frame names a channel that was not attached. ATTACH first.",
            Code::TlsRequired => {
                "The server speaks TLS only, and the connection began without it. Use a current SDK with the handle as the API gave it; its field tls names the authority to trust."
            }
            Code::TokenInvalid => {
                "The token is malformed or was not signed by this fleet. Get a new handle from the API."
            }
            Code::TokenExpired => {
                "The token has expired. Get a new handle from the API; SDKs do it by themselves when they know the API's address and key."
            }
            Code::PermissionDenied => {
                "The token does not allow this operation on this group. Use a key with the scope that the operation needs."
            }
            Code::GroupNotHere => {
                "This server holds no replica of the group. Get a new handle; the group has moved or was deleted."
            }
            Code::TokenRevoked => {
                "The API key or session for which the token was issued was revoked. Use another API key; SDKs ask the API for a new handle once, and stop when it refuses the key."
            }
            Code::NotHead => {
                "Appends go to the group's head, and this server is not the head. Connect to the address in the answer."
            }
            Code::Paused => {
                "Fewer replicas than min_replicas are alive, so appends are paused. Retry; a replacement is catching up."
            }
            Code::ReadOnly => {
                "The group is read-only: a server's disk is full or failing. Retry later; reads continue to work."
            }
            Code::GroupLost => {
                "Nothing of the group's log is left: every replica of an in-memory group was lost, or every disk of a persistent one. The owner may reset the group, which begins an empty log, in the portal or by POST /v1/groups/{id}/reset."
            }
            Code::Syncing => {
                "The replica is joining its chain and cannot answer yet. Retry after the given time."
            }
            Code::EpochChanged => {
                "The group was reconfigured before the batch was ordered. Retry at the named head; the retry is ordered once."
            }
            Code::CutOff => {
                "The head reaches neither its chain nor the coordinator, so another may have taken its place. Look for the head at the other servers of the handle; the retry is ordered once. SDKs do it by themselves."
            }
            Code::GroupQuarantined => {
                "An assertion of ours stopped several replicas of the group, so it takes no requests. Its data is kept. Wait until an operator has released the group; whether batches that had no answer were ordered is known then."
            }
            Code::GroupSuspended => {
                "The spend cap of the organization or project is reached, so the group takes neither appends nor reads. Its log is kept. Raise or remove the cap in the portal or by PUT /v1/budgets, or wait for the next month."
            }
            Code::LayoutChanged => {
                "The number of the group's partitions has changed, so keys may belong to other partitions. The entry was not appended. Get a new handle and append to the partition that the key belongs to now; clients made by connect_partitioned do it by themselves."
            }
            Code::Throttled => {
                "The group is above its reserved rate and the queue is full. Slow down, send more entries in a batch (a batch costs something itself), or reserve more; retry after the given time."
            }
            Code::Overloaded => {
                "The server's queue for this group is full though the rate is within its SLA. Retry after the given time."
            }
            Code::DeadlineExceeded => {
                "The batch was still waiting when its deadline passed; it was not ordered. Retry if it still matters."
            }
            Code::EntryTooLarge => {
                "An entry is longer than max_entry_bytes. Split the entry, or store it elsewhere and append a reference."
            }
            Code::BatchTooLarge => {
                "The batch has more bytes or entries than allowed. Send smaller batches; HELLO_OK has the limits."
            }
            Code::BatchMalformed => {
                "The entries do not add up to the payload. Check the encoder against sdk/contract/vectors."
            }
            Code::SequenceGap => {
                "A batch of the session is missing before this one. Send again from the first batch that has no answer."
            }
            Code::SessionExpired => {
                "The session table has forgotten this session. Start a new session; whether the batch had been ordered is unknown if it was sent before."
            }
            Code::SessionMissing => {
                "The channel was attached without a session, so it cannot append. Attach with a session."
            }
            Code::WindowExceeded => {
                "More batches are outstanding than window_batches allows. Wait for acknowledgements."
            }
            Code::SessionMoved => {
                "The session has since been attached on another channel, which alone may append. Nothing, if the connection was replaced; otherwise give each client a session of its own."
            }
            Code::Trimmed => {
                "The offset lies before the trim offset. Start at the trim offset in the message."
            }
            Code::OffsetBeyondEnd => {
                "The offset lies beyond the end of the log. Read from the commit offset or before."
            }
            Code::UnknownRequest => {
                "The credit or cancellation names a subscription that does not exist. Subscribe first."
            }
            Code::TrimBeyondCommit => {
                "The trim would discard entries that are not committed. Trim to the commit offset at most; STATUS has it."
            }
            Code::ConditionFailed => {
                "The log does not end at the expected offset. Read the entries appended meanwhile, then decide again."
            }
            Code::Fenced => {
                "A newer fencing token has been used on this group. Another owner has taken over; stop."
            }
            Code::ShuttingDown => {
                "The server is stopping. Reconnect to another replica; the handle lists them."
            }
            Code::Internal => "The server had an internal error. Retry; report the message if it repeats.",
        }
    }
}
