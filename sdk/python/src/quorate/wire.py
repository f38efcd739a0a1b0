"""The codec of the wire protocol (sdk/contract/wire.md): pure, both directions, no sockets.

`FrameSplitter` turns received bytes into frames with correct lengths and checksums. `decode` turns a frame into its
message, `encode` a message into bytes. `encode_append` and `decode_acks` serve the hot APPEND and ACKED without
message objects.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import IntEnum
from struct import Struct, error
from typing import Any, NamedTuple
from zlib import crc32

from quorate.codes import Code

OLDEST_VERSION = 1
VERSION = 1
MAGIC = b"QRT1"
NO_EXPECTED_OFFSET = 2**64 - 1
HEADER_BYTES = 16
TRACE_BYTES = 25
CLIENT_NAME_BYTES_MAX = 64


class Kind(IntEnum):
    HELLO = 1
    HELLO_OK = 2
    ATTACH = 3
    ATTACHED = 4
    APPEND = 5
    ACKED = 6
    REFUSED = 7
    READ = 8
    ENTRIES = 9
    SUBSCRIBE = 10
    CREDIT = 11
    CANCEL = 12
    STATUS = 13
    STATUS_OK = 14
    PING = 15
    PONG = 16
    GOODBYE = 17
    DETACH = 18
    NOTICE = 19
    TRIM = 20
    TRIM_OK = 21


KIND_MAX = max(Kind)


class Role(IntEnum):
    NONE = 0
    HEAD = 1
    FOLLOWER = 2
    TAIL = 3
    LEARNER = 4
    SOLE = 5


class Durability(IntEnum):
    IN_MEMORY = 1
    PERSISTENT = 2


class State(IntEnum):
    ACTIVE = 1
    DEGRADED = 2
    PAUSED = 3
    READ_ONLY = 4
    LOST = 5
    SYNCING = 6


class Outcome(IntEnum):
    REFUSED = 1
    UNKNOWN = 2


class RetryHint(IntEnum):
    """The `retry` byte of REFUSED."""

    NEVER = 0
    HERE = 1
    HEAD = 2
    HANDLE = 3


class WireError(Exception):
    """The peer sent bytes that are not this protocol. GOODBYE carries `code` to it."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code.name.lower()}: {message}")
        self.code = code
        self.message = message


# Messages: fields in the order of the wire, strings last.


class Hello(NamedTuple):
    version: int
    """The oldest that the client speaks."""
    newest_version: int
    """0: the same."""
    client_name: str


def hello(client_name: str) -> Hello:
    """The hello of a client that speaks this module's versions."""
    return Hello(OLDEST_VERSION, 0 if VERSION == OLDEST_VERSION else VERSION, client_name)


class HelloOk(NamedTuple):
    version: int
    server_id: int
    max_frame_bytes: int
    max_entry_bytes: int
    max_batch_bytes: int
    max_batch_entries: int


class Attach(NamedTuple):
    group: uuid.UUID
    session: int
    token: str


class Attached(NamedTuple):
    epoch: int
    role: int
    durability: int
    state: int
    window_batches: int
    last_index: int
    next_seq: int
    commit_offset: int
    trim_offset: int
    rate_per_s: int
    head: str


class Append(NamedTuple):
    seq: int
    floor_index: int
    timeout_ms: int
    entry_count: int
    payload_len: int
    payload_crc: int
    expected_offset: int
    fencing_token: int
    payload: bytes


class Acked(NamedTuple):
    acks: Sequence[tuple[int, int]]
    """(seq, base_offset) of each batch."""


class Refused(NamedTuple):
    op: int
    outcome: int
    retry: int
    code: int
    retry_after_ms: int
    id: int
    head: str
    message: str


class Read(NamedTuple):
    request: int
    max_bytes: int
    max_entries: int
    wait_ms: int
    offset: int


class EntriesBatch(NamedTuple):
    base_offset: int
    timestamp_us: int
    entry_count: int
    payload_len: int
    payload_crc: int


class Entries(NamedTuple):
    request: int
    next_offset: int
    commit_offset: int
    trim_offset: int
    batches: Sequence[EntriesBatch]
    payload: bytes
    """The payloads of all batches, one after the other."""


class Subscribe(NamedTuple):
    request: int
    credit_bytes: int
    offset: int


class Credit(NamedTuple):
    request: int
    bytes: int


class Cancel(NamedTuple):
    request: int


class Status(NamedTuple):
    request: int


class StatusOk(NamedTuple):
    request: int
    role: int
    state: int
    epoch: int
    commit_offset: int
    durable_offset: int
    trim_offset: int
    next_offset: int
    head: str


class Ping(NamedTuple):
    nonce: int


class Pong(NamedTuple):
    nonce: int


class Goodbye(NamedTuple):
    code: int
    message: str


class Detach(NamedTuple):
    pass


class Notice(NamedTuple):
    epoch: int
    role: int
    state: int
    rate_per_s: int
    head: str


class Trim(NamedTuple):
    request: int
    before_offset: int


class TrimOk(NamedTuple):
    request: int
    trim_offset: int


Message = (
    Hello
    | HelloOk
    | Attach
    | Attached
    | Append
    | Acked
    | Refused
    | Read
    | Entries
    | Subscribe
    | Credit
    | Cancel
    | Status
    | StatusOk
    | Ping
    | Pong
    | Goodbye
    | Detach
    | Notice
    | Trim
    | TrimOk
)


class _Layout(NamedTuple):
    kind: int
    message: type[Any]
    fixed: Struct
    strings: tuple[int, ...]
    """Bytes of the length before each string after the fixed part."""


_LAYOUTS = (
    _Layout(Kind.HELLO, Hello, Struct("<4sHH"), (1,)),
    _Layout(Kind.HELLO_OK, HelloOk, Struct("<HxxIIIII"), ()),
    _Layout(Kind.ATTACH, Attach, Struct("<16sQ"), (2,)),
    _Layout(Kind.ATTACHED, Attached, Struct("<QBBBxIQQQQQ"), (1,)),
    _Layout(Kind.REFUSED, Refused, Struct("<BBBxHxxIQ"), (1, 2)),
    _Layout(Kind.READ, Read, Struct("<IIIIQ"), ()),
    _Layout(Kind.SUBSCRIBE, Subscribe, Struct("<IIQ"), ()),
    _Layout(Kind.CREDIT, Credit, Struct("<II"), ()),
    _Layout(Kind.CANCEL, Cancel, Struct("<I"), ()),
    _Layout(Kind.STATUS, Status, Struct("<I"), ()),
    _Layout(Kind.STATUS_OK, StatusOk, Struct("<IBBxxQQQQQ"), (1,)),
    _Layout(Kind.PING, Ping, Struct("<Q"), ()),
    _Layout(Kind.PONG, Pong, Struct("<Q"), ()),
    _Layout(Kind.GOODBYE, Goodbye, Struct("<H"), (2,)),
    _Layout(Kind.DETACH, Detach, Struct("<"), ()),
    _Layout(Kind.NOTICE, Notice, Struct("<QBBxxQ"), (1,)),
    _Layout(Kind.TRIM, Trim, Struct("<IQ"), ()),
    _Layout(Kind.TRIM_OK, TrimOk, Struct("<IQ"), ()),
)
_BY_KIND = {layout.kind: layout for layout in _LAYOUTS}
_BY_MESSAGE = {layout.message: layout for layout in _LAYOUTS}

_HEADER = Struct("<IBBHI")
_HEADER_CRC = Struct("<IBBHII")
_U8 = Struct("<B")
_U16 = Struct("<H")
_U32 = Struct("<I")
_APPEND = Struct("<QQIIIIQQ")
_ACK = Struct("<QQ")
_ENTRIES = Struct("<IIQQQ")
_ENTRIES_BATCH = Struct("<QQIII")


class Frame(NamedTuple):
    """A frame with a correct length and head checksum. Its fields are not decoded yet."""

    kind: int
    channel: int
    head: bytes
    """The head without the trace context."""
    payload: bytes
    trace: bytes | None


class FrameSplitter:
    """Collects received bytes into whole frames. Holds at most one incomplete frame."""

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._rest = b""
        self._chunks: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes. Raises WireError, after which the stream is unusable."""
        if self._missing:
            # A large frame is arriving: collect its pieces and join them once.
            self._chunks.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data = b"".join(self._chunks)
            self._chunks = []
            self._missing = 0
        elif self._rest:
            data = self._rest + data
        self._rest = b""
        frames: list[Frame] = []
        at, end = 0, len(data)
        while end - at >= HEADER_BYTES:
            size = self._check_header(data, at)
            if end - at < size:
                self._missing = size - (end - at)
                self._chunks = [data[at:]]
                return frames
            frames.append(_frame_at(data, at, size))
            at += size
        self._rest = data[at:]
        return frames

    def _check_header(self, data: bytes, at: int) -> int:
        body_len, kind, _, head_len, _ = _HEADER.unpack_from(data, at)
        if body_len > self.max_frame_bytes:
            raise WireError(Code.FRAME_TOO_LARGE, f"a frame of {body_len} bytes; at most {self.max_frame_bytes}")
        if not 0 < kind <= KIND_MAX:
            raise WireError(Code.PROTOCOL_ERROR, f"unknown kind {kind}")
        if head_len > body_len:
            raise WireError(Code.PROTOCOL_ERROR, "the head is longer than the body")
        return HEADER_BYTES + int(body_len)


def _frame_at(data: bytes, at: int, size: int) -> Frame:
    _, kind, flags, head_len, channel, head_crc = _HEADER_CRC.unpack_from(data, at)
    head_at = at + HEADER_BYTES
    head = data[head_at : head_at + head_len]
    if crc32(head, crc32(data[at : at + 12])) != head_crc:
        raise WireError(Code.CHECKSUM_MISMATCH, "the CRC of a frame's head is wrong")
    trace = None
    if flags & 1:
        if head_len < TRACE_BYTES:
            raise WireError(Code.PROTOCOL_ERROR, "the head has no room for its trace context")
        head, trace = head[:-TRACE_BYTES], head[-TRACE_BYTES:]
    return Frame(kind, channel, head, data[head_at + head_len : at + size], trace)


def decode(frame: Frame) -> Message:
    """The message in a frame. Checks payload lengths and CRCs. Raises WireError."""
    kind = frame.kind
    try:
        if kind == Kind.ENTRIES:
            return _decode_entries(frame.head, frame.payload)
        if kind == Kind.APPEND:
            return _decode_append(frame.head, frame.payload)
        if frame.payload:
            raise WireError(Code.PROTOCOL_ERROR, f"payload after {Kind(kind).name}")
        if kind == Kind.ACKED:
            return Acked(decode_acks(frame.head))
        return _decode_fields(_BY_KIND[kind], frame.head)
    except (error, UnicodeDecodeError) as problem:
        raise WireError(Code.PROTOCOL_ERROR, f"malformed {Kind(kind).name}: {problem}") from None


def _decode_fields(layout: _Layout, head: bytes) -> Message:
    fields: list[Any] = list(layout.fixed.unpack_from(head, 0))
    at = layout.fixed.size
    for width in layout.strings:
        (length,) = (_U8 if width == 1 else _U16).unpack_from(head, at)
        at += width
        if at + length > len(head):
            raise error("a string is cut")
        fields.append(head[at : at + length].decode())
        at += length
    if layout.kind == Kind.HELLO:
        if fields.pop(0) != MAGIC:
            raise error("wrong magic")
        if fields[1] and fields[1] < fields[0]:
            raise error("the versions end before they begin")
        if len(fields[2].encode()) > CLIENT_NAME_BYTES_MAX:
            raise error("the client's name is too long")
    elif layout.kind == Kind.ATTACH:
        fields[0] = uuid.UUID(bytes=fields[0])
    message: Message = layout.message(*fields)
    return message


def decode_acks(head: bytes) -> list[tuple[int, int]]:
    """(seq, base_offset) of each batch in an ACKED head."""
    (count,) = _U32.unpack_from(head, 0)
    end = 4 + count * _ACK.size
    if end > len(head):
        raise error("more acknowledgements announced than there are")
    return list(_ACK.iter_unpack(head[4:end]))


def _decode_append(head: bytes, payload: bytes) -> Append:
    seq, floor_index, timeout_ms, count, length, crc, expected_offset, fencing_token = _APPEND.unpack_from(head, 0)
    _check_payload(payload, length, crc)
    return Append(seq, floor_index, timeout_ms, count, length, crc, expected_offset, fencing_token, payload)


def _decode_entries(head: bytes, payload: bytes) -> Entries:
    request, count, next_offset, commit_offset, trim_offset = _ENTRIES.unpack_from(head, 0)
    end = _ENTRIES.size + count * _ENTRIES_BATCH.size
    if end > len(head):
        raise error("more batches announced than there are")
    batches = [EntriesBatch(*fields) for fields in _ENTRIES_BATCH.iter_unpack(head[_ENTRIES.size : end])]
    if sum(batch.payload_len for batch in batches) != len(payload):
        raise error("the payloads do not add up to the frame")
    at = 0
    view = memoryview(payload)
    for batch in batches:
        _check_payload(view[at : at + batch.payload_len], batch.payload_len, batch.payload_crc)
        at += batch.payload_len
    return Entries(request, next_offset, commit_offset, trim_offset, batches, payload)


def _check_payload(payload: bytes | memoryview, length: int, crc: int) -> None:
    if len(payload) != length:
        raise WireError(Code.PROTOCOL_ERROR, f"a payload of {len(payload)} bytes was announced as {length}")
    if crc32(payload) != crc:
        raise WireError(Code.CHECKSUM_MISMATCH, "the CRC of a payload is wrong")


def split_entries(payload: bytes, entry_count: int, at: int = 0, end: int | None = None) -> list[bytes]:
    """The entries in `payload[at:end]`. They must fill it. Raises WireError batch_malformed."""
    end = len(payload) if end is None else end
    entries: list[bytes] = []
    unpack = _U32.unpack_from
    while at + 4 <= end:
        start = at + 4
        at = start + unpack(payload, at)[0]
        entries.append(payload[start:at])
    if at != end or len(entries) != entry_count or not entries:
        raise WireError(Code.BATCH_MALFORMED, f"{entry_count} entries announced do not add up to the payload")
    return entries


def pack_entries(entries: Sequence[bytes]) -> bytes:
    """The payload that holds the entries."""
    return b"".join(part for entry in entries for part in (_U32.pack(len(entry)), entry))


def encode(message: Message, channel: int = 0, trace: bytes | None = None) -> bytes:
    """The frame of a message."""
    payload = b""
    if isinstance(message, Append):
        kind, head, payload = Kind.APPEND, _APPEND.pack(*message[:-1]), message.payload
    elif isinstance(message, Entries):
        kind, payload = Kind.ENTRIES, message.payload
        head = _ENTRIES.pack(message.request, len(message.batches), *message[1:4])
        head += b"".join(_ENTRIES_BATCH.pack(*batch) for batch in message.batches)
    elif isinstance(message, Acked):
        kind = Kind.ACKED
        head = _U32.pack(len(message.acks)) + b"".join(_ACK.pack(*ack) for ack in message.acks)
    else:
        layout = _BY_MESSAGE[type(message)]
        kind, head = Kind(layout.kind), _encode_fields(layout, message)
    return frame_head(kind, channel, head, len(payload), trace) + payload


def _encode_fields(layout: _Layout, message: Message) -> bytes:
    fields: list[Any] = list(message)
    strings = [text.encode() for text in fields[len(fields) - len(layout.strings) :]]
    fixed = fields[: len(fields) - len(layout.strings)]
    if layout.kind == Kind.HELLO:
        fixed.insert(0, MAGIC)
    elif layout.kind == Kind.ATTACH:
        fixed[0] = fixed[0].bytes
    head = layout.fixed.pack(*fixed)
    for width, text in zip(layout.strings, strings, strict=True):
        head += (_U8 if width == 1 else _U16).pack(len(text)) + text
    return head


def frame_head(kind: int, channel: int, head: bytes, payload_len: int, trace: bytes | None) -> bytes:
    """Header and head of a frame with a payload after them."""
    if trace is not None:
        head += trace
    first = _HEADER.pack(len(head) + payload_len, kind, 0 if trace is None else 1, len(head), channel)
    return first + _U32.pack(crc32(head, crc32(first))) + head


def encode_append(
    channel: int,
    seq: int,
    floor_index: int,
    timeout_ms: int,
    entry_count: int,
    payload_len: int,
    payload_crc: int,
    expected_offset: int,
    fencing_token: int,
    trace: bytes | None,
) -> bytes:
    """Header and head of an APPEND. The payload is written after them without a copy."""
    head = _APPEND.pack(
        seq, floor_index, timeout_ms, entry_count, payload_len, payload_crc, expected_offset, fencing_token
    )
    return frame_head(Kind.APPEND, channel, head, payload_len, trace)
