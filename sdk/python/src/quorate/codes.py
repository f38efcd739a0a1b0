"""Error codes of the data plane. Generated from `sdk/contract/errors.json` by `sdk/contract/generate.py`; do not edit."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

Fault = Literal["client", "service", "network", "nobody"]
Retry = Literal["never", "here", "head", "handle", "connection", "check"]


class Code(IntEnum):
    """An error, as a stable number. The SDK makes those from 1000 on, which never travel."""

    PROTOCOL_ERROR = 1
    FRAME_TOO_LARGE = 2
    CHECKSUM_MISMATCH = 3
    UNSUPPORTED_VERSION = 4
    TOO_MANY_CHANNELS = 5
    UNKNOWN_CHANNEL = 6
    TLS_REQUIRED = 7
    TOKEN_INVALID = 10
    TOKEN_EXPIRED = 11
    PERMISSION_DENIED = 12
    GROUP_NOT_HERE = 13
    TOKEN_REVOKED = 14
    NOT_HEAD = 20
    PAUSED = 21
    READ_ONLY = 22
    GROUP_LOST = 23
    SYNCING = 24
    EPOCH_CHANGED = 25
    CUT_OFF = 26
    GROUP_QUARANTINED = 27
    GROUP_SUSPENDED = 28
    LAYOUT_CHANGED = 29
    THROTTLED = 30
    OVERLOADED = 31
    DEADLINE_EXCEEDED = 32
    ENTRY_TOO_LARGE = 40
    BATCH_TOO_LARGE = 41
    BATCH_MALFORMED = 42
    SEQUENCE_GAP = 43
    SESSION_EXPIRED = 44
    SESSION_MISSING = 45
    WINDOW_EXCEEDED = 46
    SESSION_MOVED = 47
    TRIMMED = 50
    OFFSET_BEYOND_END = 51
    UNKNOWN_REQUEST = 52
    TRIM_BEYOND_COMMIT = 53
    CONDITION_FAILED = 60
    FENCED = 61
    SHUTTING_DOWN = 90
    INTERNAL = 91
    QUEUE_FULL = 1001
    CLIENT_CLOSED = 1002
    NO_CONNECTION = 1003
    NO_ANSWER = 1004
    SERVER_UNTRUSTED = 1005


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """A code's fault, retry, meaning and next step."""

    name: str
    fault: Fault
    retry: Retry
    meaning: str
    action: str


CODES: dict[int, CodeInfo] = {
    1: CodeInfo(
        "protocol_error",
        "client",
        "never",
        "The bytes were not a valid frame of this protocol.",
        "Use a current SDK; if you wrote your own client, check it against sdk/contract/vectors.",
    ),
    2: CodeInfo(
        "frame_too_large",
        "client",
        "never",
        "The frame is longer than max_frame_bytes.",
        "Send smaller batches; HELLO_OK has the limits.",
    ),
    3: CodeInfo(
        "checksum_mismatch",
        "network",
        "connection",
        "A CRC did not match the received bytes.",
        "Reconnect and send again; if it repeats, look for a faulty device between client and server.",
    ),
    4: CodeInfo(
        "unsupported_version",
        "client",
        "never",
        "The server does not speak this version of the protocol.",
        "Upgrade the SDK.",
    ),
    5: CodeInfo(
        "too_many_channels",
        "client",
        "never",
        "The connection has as many groups attached as it may have.",
        "Detach a group or open another connection.",
    ),
    6: CodeInfo(
        "unknown_channel",
        "client",
        "never",
        "The frame names a channel that was not attached.",
        "ATTACH first.",
    ),
    7: CodeInfo(
        "tls_required",
        "client",
        "never",
        "The server speaks TLS only, and the connection began without it.",
        "Use a current SDK with the handle as the API gave it; its field tls names the authority to trust.",
    ),
    10: CodeInfo(
        "token_invalid",
        "client",
        "handle",
        "The token is malformed or was not signed by this fleet.",
        "Get a new handle from the API.",
    ),
    11: CodeInfo(
        "token_expired",
        "client",
        "handle",
        "The token has expired.",
        "Get a new handle from the API; SDKs do it by themselves when they know the API's address and key.",
    ),
    12: CodeInfo(
        "permission_denied",
        "client",
        "never",
        "The token does not allow this operation on this group.",
        "Use a key with the scope that the operation needs.",
    ),
    13: CodeInfo(
        "group_not_here",
        "client",
        "handle",
        "This server holds no replica of the group.",
        "Get a new handle; the group has moved or was deleted.",
    ),
    14: CodeInfo(
        "token_revoked",
        "client",
        "handle",
        "The API key or session for which the token was issued was revoked.",
        "Use another API key; SDKs ask the API for a new handle once, and stop when it refuses the key.",
    ),
    20: CodeInfo(
        "not_head",
        "nobody",
        "head",
        "Appends go to the group's head, and this server is not the head.",
        "Connect to the address in the answer.",
    ),
    21: CodeInfo(
        "paused",
        "service",
        "here",
        "Fewer replicas than min_replicas are alive, so appends are paused.",
        "Retry; a replacement is catching up.",
    ),
    22: CodeInfo(
        "read_only",
        "service",
        "here",
        "The group is read-only: a server's disk is full or failing.",
        "Retry later; reads continue to work.",
    ),
    23: CodeInfo(
        "group_lost",
        "service",
        "never",
        "Nothing of the group's log is left: every replica of an in-memory group was lost, or every disk of a persistent one.",
        "The owner may reset the group, which begins an empty log, in the portal or by POST /v1/groups/{id}/reset.",
    ),
    24: CodeInfo(
        "syncing",
        "service",
        "here",
        "The replica is joining its chain and cannot answer yet.",
        "Retry after the given time.",
    ),
    25: CodeInfo(
        "epoch_changed",
        "service",
        "head",
        "The group was reconfigured before the batch was ordered.",
        "Retry at the named head; the retry is ordered once.",
    ),
    26: CodeInfo(
        "cut_off",
        "network",
        "handle",
        "The head reaches neither its chain nor the coordinator, so another may have taken its place.",
        "Look for the head at the other servers of the handle; the retry is ordered once. SDKs do it by themselves.",
    ),
    27: CodeInfo(
        "group_quarantined",
        "service",
        "never",
        "An assertion of ours stopped several replicas of the group, so it takes no requests. Its data is kept.",
        "Wait until an operator has released the group; whether batches that had no answer were ordered is known then.",
    ),
    28: CodeInfo(
        "group_suspended",
        "client",
        "never",
        "The spend cap of the organization or project is reached, so the group takes neither appends nor reads. Its log is kept.",
        "Raise or remove the cap in the portal or by PUT /v1/budgets, or wait for the next month.",
    ),
    29: CodeInfo(
        "layout_changed",
        "nobody",
        "never",
        "The number of the group's partitions has changed, so keys may belong to other partitions. The entry was not appended.",
        "Get a new handle and append to the partition that the key belongs to now; clients made by connect_partitioned do it by themselves.",
    ),
    30: CodeInfo(
        "throttled",
        "client",
        "here",
        "The group is above its reserved rate and the queue is full.",
        "Slow down, send more entries in a batch (a batch costs something itself), or reserve more; retry after the given time.",
    ),
    31: CodeInfo(
        "overloaded",
        "service",
        "here",
        "The server's queue for this group is full though the rate is within its SLA.",
        "Retry after the given time.",
    ),
    32: CodeInfo(
        "deadline_exceeded",
        "nobody",
        "here",
        "The batch was still waiting when its deadline passed; it was not ordered.",
        "Retry if it still matters.",
    ),
    40: CodeInfo(
        "entry_too_large",
        "client",
        "never",
        "An entry is longer than max_entry_bytes.",
        "Split the entry, or store it elsewhere and append a reference.",
    ),
    41: CodeInfo(
        "batch_too_large",
        "client",
        "never",
        "The batch has more bytes or entries than allowed.",
        "Send smaller batches; HELLO_OK has the limits.",
    ),
    42: CodeInfo(
        "batch_malformed",
        "client",
        "never",
        "The entries do not add up to the payload.",
        "Check the encoder against sdk/contract/vectors.",
    ),
    43: CodeInfo(
        "sequence_gap",
        "client",
        "here",
        "A batch of the session is missing before this one.",
        "Send again from the first batch that has no answer.",
    ),
    44: CodeInfo(
        "session_expired",
        "client",
        "never",
        "The session table has forgotten this session.",
        "Start a new session; whether the batch had been ordered is unknown if it was sent before.",
    ),
    45: CodeInfo(
        "session_missing",
        "client",
        "never",
        "The channel was attached without a session, so it cannot append.",
        "Attach with a session.",
    ),
    46: CodeInfo(
        "window_exceeded",
        "client",
        "here",
        "More batches are outstanding than window_batches allows.",
        "Wait for acknowledgements.",
    ),
    47: CodeInfo(
        "session_moved",
        "client",
        "never",
        "The session has since been attached on another channel, which alone may append.",
        "Nothing, if the connection was replaced; otherwise give each client a session of its own.",
    ),
    50: CodeInfo(
        "trimmed",
        "client",
        "never",
        "The offset lies before the trim offset.",
        "Start at the trim offset in the message.",
    ),
    51: CodeInfo(
        "offset_beyond_end",
        "client",
        "never",
        "The offset lies beyond the end of the log.",
        "Read from the commit offset or before.",
    ),
    52: CodeInfo(
        "unknown_request",
        "client",
        "never",
        "The credit or cancellation names a subscription that does not exist.",
        "Subscribe first.",
    ),
    53: CodeInfo(
        "trim_beyond_commit",
        "client",
        "never",
        "The trim would discard entries that are not committed.",
        "Trim to the commit offset at most; STATUS has it.",
    ),
    60: CodeInfo(
        "condition_failed",
        "client",
        "never",
        "The log does not end at the expected offset.",
        "Read the entries appended meanwhile, then decide again.",
    ),
    61: CodeInfo(
        "fenced",
        "client",
        "never",
        "A newer fencing token has been used on this group.",
        "Another owner has taken over; stop.",
    ),
    90: CodeInfo(
        "shutting_down",
        "service",
        "handle",
        "The server is stopping.",
        "Reconnect to another replica; the handle lists them.",
    ),
    91: CodeInfo(
        "internal",
        "service",
        "here",
        "The server had an internal error.",
        "Retry; report the message if it repeats.",
    ),
    1001: CodeInfo(
        "queue_full",
        "client",
        "here",
        "More appends are waiting in the client than its queue may hold.",
        "Await the appends, or await ready() before the next one.",
    ),
    1002: CodeInfo(
        "client_closed",
        "client",
        "never",
        "The client was closed.",
        "Connect again.",
    ),
    1003: CodeInfo(
        "no_connection",
        "network",
        "connection",
        "No replica of the group could be reached before the deadline.",
        "Check the network and the handle's addresses; then retry.",
    ),
    1004: CodeInfo(
        "no_answer",
        "network",
        "check",
        "The append had no answer by the end of the wait: the network failed, or the servers behind it did.",
        "Read the log, and append again only missing entries; or append again at once if a duplicate is harmless.",
    ),
    1005: CodeInfo(
        "server_untrusted",
        "service",
        "handle",
        "The peer at the server's address cannot prove to be that server, so nothing was sent to it.",
        "Get a new handle from the API; if it repeats, ask the operator: the fleet's authority was replaced, the server's --advertise is wrong, or the connection is intercepted.",
    ),
}
