"""Appending exactly once: the session's state machine, pure.

Each call reports an event (an append, ATTACHED, ACKED, REFUSED, a broken connection, the time) and returns frames to
send and actions to take. The writer has no socket, clock or randomness: `now` and the numbers of new sessions are
arguments. sdk/contract/wire.md, "Appending exactly once".

    queue     batches without a seq: being filled, or refused and to be sent again
    inflight  batches with consecutive seqs; the first `_sent` of them are sent on this connection

A batch is *in doubt* while it may have been ordered without an answer. It keeps its seq and is sent again under it
until it is answered, because no later batch of the session can be ordered before it. A batch is *abandoned* when its
callers' deadlines have passed and they got "unknown".
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, Literal, NamedTuple
from zlib import crc32

from quorate import limits
from quorate.codes import Code
from quorate.errors import Failure
from quorate.handle import Limits
from quorate.pacing import Pacing
from quorate.wire import NO_EXPECTED_OFFSET, Attached, Notice, Outcome, Refused, RetryHint, Role, encode_append

_PREFIX = Struct("<I").pack
_PREFIXES = [_PREFIX(length) for length in range(4_096)]
_NEVER = float("inf")


class Batch:
    __slots__ = (
        "alone",
        "answered",
        "calls",
        "deadline",
        "doubt",
        "entry_count",
        "expected_offset",
        "fencing_token",
        "paid",
        "parts",
        "payload",
        "payload_crc",
        "refusal",
        "seq",
        "shared",
        "size",
        "trace",
    )

    def __init__(self, deadline: float, shared: bool) -> None:
        self.calls: list[Any] | None = []
        """The calls that wait for it; None once all of them have ended."""
        self.parts: list[bytes] = []
        self.size = 0
        self.entry_count = 0
        self.deadline = deadline
        self.shared = shared
        """Whether more appends may join it."""
        self.alone = not shared
        """Whether it is one call's batch. Else each call has one entry."""
        self.expected_offset = NO_EXPECTED_OFFSET
        self.fencing_token = 0
        self.trace: bytes | None = None
        self.payload: bytes | None = None
        self.payload_crc = 0
        self.seq = 0
        self.paid = False
        """Whether the pacing has taken its tokens. Sending it again takes none."""
        self.doubt = False
        self.answered = False
        self.refusal: Failure | None = None


class Acked(NamedTuple):
    """A batch is acknowledged. Its entries have consecutive offsets from `base_offset`. `alone`: all are its only
    call's; else each call has one."""

    calls: list[Any]
    base_offset: int
    entry_count: int
    alone: bool


class Failed(NamedTuple):
    calls: list[Any]
    failure: Failure
    unknown: bool


class Reroute(NamedTuple):
    """Leave this connection: for the head at `address`, with a fresh handle (others may still name this one for a
    while), for another replica, or for a new connection."""

    to: Literal["head", "handle", "other", "again"]
    address: str = ""
    reason: str = ""


Action = Acked | Failed | Reroute


class Writer:
    """`new_session` gives a random non-zero 64-bit number. Without `pacing` batches are sent at once."""

    def __init__(
        self,
        size_limits: Limits,
        new_session: Callable[[], int],
        answer_wait_s: float = limits.ANSWER_WAIT_S_DEFAULT,
        pacing: Pacing | None = None,
    ) -> None:
        self.limits = size_limits
        self._answer_wait_s = answer_wait_s
        self._new_session = new_session
        self._pacing = pacing
        self._paced_until = 0.0
        """Time at which the queue's first batch has its tokens, if it waits for them only; else 0."""
        self.session = new_session()
        self.epoch = 0
        self.state = 0
        self.rate_per_s = 0
        self.acked_end = 0
        """The offset behind the last entry that was acknowledged."""
        self.hint: str | None = None
        """A word to the caller that was not said yet."""
        self.pending_bytes = 0
        self.pending_calls = 0
        self._pending_more = 0
        """Pending entries beyond one a call."""
        self._coalesce_entries = limits.BATCH_COALESCE_ENTRIES
        """Entries of single appends that one batch takes."""
        self._floor_index: int | None = None
        self._next_seq = 1
        self._queue: deque[Batch] = deque()
        self._inflight: deque[Batch] = deque()
        self._inflight_bytes = 0
        self._sent = 0
        self._attached = False
        self._channel = 0
        self._window = 1
        self._rewind: int | None = None
        self._hold_until = 0.0
        self._refusals = 0
        self._stuck = 0
        self._earliest = _NEVER
        self.reason = Failure(Code.NO_CONNECTION)
        """The reason why no batch can be sent now."""

    # Appending.

    def append(self, call: Any, entry: bytes, deadline: float) -> Failure | None:
        """Queue one entry without a condition: the hot path. Returns a Failure if it is refused at once."""
        length = len(entry)
        if length > self.limits.max_entry_bytes:
            return self._too_large(length)
        size = length + 4
        if self.pending_calls >= limits.PENDING_CALLS_MAX or self.pending_bytes + size > limits.PENDING_BYTES_MAX:
            return self._full()
        queue = self._queue
        batch = queue[-1] if queue else None
        if (
            batch is None
            or not batch.shared
            or batch.size + size > limits.BATCH_COALESCE_BYTES
            or batch.entry_count >= self._coalesce_entries
            # Summed as at the batch's opening, so that rounding never excludes an equal deadline.
            or not deadline <= batch.deadline <= deadline + limits.BATCH_DEADLINE_SPREAD_S
        ):
            batch = self._open(deadline + limits.BATCH_DEADLINE_SPREAD_S, shared=True)
        batch.parts += (_PREFIXES[length] if length < 4_096 else _PREFIX(length), entry)
        batch.calls.append(call)  # type: ignore[union-attr]  # queued batches have callers
        batch.size += size
        batch.entry_count += 1
        self.pending_bytes += size
        self.pending_calls += 1
        return None

    def append_many(
        self,
        call: Any,
        entries: Sequence[bytes],
        deadline: float,
        expected_offset: int = NO_EXPECTED_OFFSET,
        fencing_token: int = 0,
        trace: bytes | None = None,
    ) -> Failure | None:
        """Queue entries ordered as one, in a batch of their own."""
        size = sum(map(len, entries)) + 4 * len(entries)
        longest = max(map(len, entries), default=0)
        if longest > self.limits.max_entry_bytes:
            return self._too_large(longest)
        if size > self.limits.max_batch_bytes or len(entries) > self.limits.max_batch_entries:
            most = f"at most {self.limits.max_batch_bytes} bytes and {self.limits.max_batch_entries} entries"
            return Failure(Code.BATCH_TOO_LARGE, f"{size} bytes in {len(entries)} entries; {most}")
        if self.pending_calls >= limits.PENDING_CALLS_MAX or self.pending_bytes + size > limits.PENDING_BYTES_MAX:
            return self._full()
        batch = self._open(deadline, shared=False)
        batch.parts = [part for entry in entries for part in (_PREFIX(len(entry)), entry)]
        batch.calls = [call]
        batch.size, batch.entry_count = size, len(entries)
        batch.expected_offset, batch.fencing_token, batch.trace = expected_offset, fencing_token, trace
        self.pending_bytes += size
        self.pending_calls += 1
        self._pending_more += len(entries) - 1
        return None

    def has_room(self) -> bool:
        """Whether little enough is pending: it would pass within `READY_S`, by the head's rate, and memory is left."""
        calls, size = self.pending_calls, self.pending_bytes
        if calls >= limits.PENDING_CALLS_READY or size >= limits.PENDING_BYTES_READY:
            return False
        if calls == 0 or self._pacing is None or self.rate_per_s == 0:
            return True
        entries = calls + self._pending_more
        return self._pacing.seconds(entries, size - 4 * entries, self.rate_per_s) < limits.READY_S

    def trace_last(self, trace: bytes) -> None:
        """Give the batch that took the last append a trace context, unless it has one."""
        if self._queue[-1].trace is None:
            self._queue[-1].trace = trace

    def _open(self, deadline: float, shared: bool) -> Batch:
        batch = Batch(deadline, shared)
        self._queue.append(batch)
        self._earliest = min(self._earliest, deadline)
        return batch

    def _too_large(self, length: int) -> Failure:
        return Failure(Code.ENTRY_TOO_LARGE, f"{length} bytes; at most {self.limits.max_entry_bytes}")

    def _full(self) -> Failure:
        return Failure(
            Code.QUEUE_FULL, f"{self.pending_calls} appends with {self.pending_bytes} bytes are pending", True
        )

    # Sending.

    def take_frames(self, now: float) -> list[bytes]:
        """Frames to send now, in order, as pieces to write one after the other."""
        out: list[bytes] = []
        self._paced_until = 0.0
        if self._pacing is not None:
            self._pacing.set_rate(self.rate_per_s, now)
            most = self._pacing.batch_entries_max
            self._coalesce_entries = min(most or limits.BATCH_COALESCE_ENTRIES, limits.BATCH_COALESCE_ENTRIES)
        if not self._attached or self._rewind is not None or now < self._hold_until:
            return out
        self._hold_until = 0.0
        inflight, queue = self._inflight, self._queue
        while self._sent < len(inflight) and self._sent < self._window:
            self._send(inflight[self._sent], now, out)
        if self._sent < len(inflight):
            return out
        while queue and len(inflight) < self._window:
            batch = queue[0]
            outstanding = len(inflight)
            filling = batch.shared and len(queue) == 1 and batch.size < limits.EAGER_BATCH_BYTES
            if filling and outstanding >= limits.EAGER_BATCHES:
                break
            if outstanding and self._inflight_bytes + batch.size > limits.INFLIGHT_BYTES_MAX:
                break
            if self._pacing is not None and not batch.paid and self._must_wait(self._pacing, batch, now):
                break
            queue.popleft()
            batch.seq = self._next_seq
            self._next_seq += 1
            if batch.payload is None:
                batch.payload = b"".join(batch.parts)
                batch.payload_crc = crc32(batch.payload)
                batch.parts = []
                batch.shared = False
            inflight.append(batch)
            self._inflight_bytes += batch.size
            self._send(batch, now, out)
        return out

    def _must_wait(self, pacing: Pacing, batch: Batch, now: float) -> bool:
        """Whether the bucket lacks tokens for it now."""
        entry_bytes = batch.size - 4 * batch.entry_count
        wait_s = pacing.take(now, pacing.cost(batch.entry_count, entry_bytes))
        if wait_s > 0.0:
            # Close the batch: more entries would cost more tokens and lengthen the wait.
            batch.shared = False
            self._paced_until = now + wait_s
            return True
        batch.paid = True
        self.hint = self.hint or pacing.hint(batch.entry_count, entry_bytes)
        return False

    def _send(self, batch: Batch, now: float, out: list[bytes]) -> None:
        assert batch.payload is not None, "a batch is packed before it is sent"
        # No caller waits for an abandoned batch, so the head need not queue it.
        left_s = batch.deadline - now if batch.calls is not None else 0.0
        head = encode_append(
            self._channel,
            batch.seq,
            self._floor_index or 0,
            max(1, min(int(left_s * 1_000), 2**32 - 1)),
            batch.entry_count,
            len(batch.payload),
            batch.payload_crc,
            batch.expected_offset,
            batch.fencing_token,
            batch.trace,
        )
        out += (head, batch.payload)
        batch.answered = False
        if batch.calls is None:
            batch.deadline = now + self._answer_wait_s
            self._earliest = min(self._earliest, batch.deadline)
        self._sent += 1

    def idle(self) -> bool:
        """Whether no batch is queued or unanswered."""
        return not self._inflight and not self._queue

    def awaits_answer(self) -> bool:
        return self._sent > 0

    def wake_at(self) -> float:
        """The time of the next call of `on_time` and `take_frames`, unless an event comes first; infinity: none."""
        if not self._attached or self._rewind is not None or self.idle():
            return self._earliest
        held = self._hold_until or self._paced_until
        return min(self._earliest, held) if held else self._earliest

    # The connection.

    def on_attached(self, attached: Attached, channel: int) -> list[Action]:
        """The replica answered the ATTACH (with `self.session`) on `channel`."""
        floor = attached.last_index if self._floor_index is None else min(self._floor_index, attached.last_index)
        self._floor_index = floor
        if attached.epoch < self.epoch:
            return [Reroute("other", reason=f"its epoch {attached.epoch} is older than {self.epoch}")]
        self.epoch, self.state, self.rate_per_s = attached.epoch, attached.state, attached.rate_per_s
        if attached.role not in (Role.HEAD, Role.SOLE):
            return [Reroute("head", attached.head, "it is not the head")]
        self._channel = channel
        self._window = max(1, attached.window_batches)
        self._hold_until = 0.0
        base = self._inflight[0].seq if self._inflight else self._next_seq
        if not base <= attached.next_seq <= self._next_seq:
            # The head forgot the session, or knows batches that were never sent: the numbers are not valid.
            return self._on_forgotten(0)
        self._attached = True
        if attached.next_seq > 1:
            for batch in self._inflight:
                if batch.seq >= attached.next_seq:
                    batch.doubt = False
        return []

    def on_detached(self, reason: Failure) -> None:
        """The connection is gone. Unanswered batches are in doubt."""
        self.reason = reason
        if self._rewind is not None:
            # A refused batch was not ordered, nor was any batch that was sent after it.
            self._fold(self._rewind)
        for index in range(self._sent):
            batch = self._inflight[index]
            batch.doubt = batch.doubt or not batch.answered
        self._sent = 0
        self._attached = False

    def on_notice(self, notice: Notice) -> list[Action]:
        missed = notice.epoch > self.epoch + 1
        self.epoch = max(self.epoch, notice.epoch)
        self.state, self.rate_per_s = notice.state, notice.rate_per_s
        head = notice.role in (Role.HEAD, Role.SOLE)
        if not self._attached or (head and not missed):
            return []
        # A former head that is head again may have lost batches, so ATTACHED's values no longer hold, the floor
        # above all. No batch is sent until a new ATTACHED.
        self._attached = False
        if head:
            return [Reroute("again", reason="it may not have been the head all the time")]
        return [Reroute("head", notice.head, "it is no longer the head")]

    # Answers.

    def on_acked(self, acks: Iterable[tuple[int, int]]) -> list[Action]:
        actions: list[Action] = []
        inflight = self._inflight
        for seq, base_offset in acks:
            index = seq - inflight[0].seq if inflight else -1
            if index < 0 and seq < self._next_seq:
                continue  # answered before
            if not 0 <= index < self._sent:
                return [*actions, Reroute("other", reason=f"it acknowledged batch {seq}, which was not sent")]
            batch = inflight[index]
            if batch.calls is not None:
                actions.append(Acked(batch.calls, base_offset, batch.entry_count, batch.alone))
                self.acked_end = max(self.acked_end, base_offset + batch.entry_count)
                self._forget_calls(batch)
            batch.doubt, batch.answered = False, True
            if index == 0:
                self._pop_answered()
        self._refusals = self._stuck = 0
        if self._rewind is not None and self._drained(self._rewind):
            self._fold(self._rewind)
        if self._rewind is None and self._sent and any(inflight[i].answered for i in range(self._sent)):
            # Batches are committed in order, so an earlier batch gets no answer any more.
            actions.append(Reroute("again", reason=f"no answer to batch {inflight[0].seq}"))
        return actions

    def _pop_answered(self) -> None:
        inflight = self._inflight
        while inflight and self._sent and inflight[0].answered and inflight[0].calls is None:
            if self._rewind is not None and inflight[0].seq >= self._rewind:
                return
            self._inflight_bytes -= inflight.popleft().size
            self._sent -= 1

    def on_refused(self, refused: Refused, now: float) -> list[Action]:
        """A batch of ours was refused."""
        seq = refused.id
        index = seq - self._inflight[0].seq if self._inflight else -1
        if index < 0 and seq < self._next_seq:
            return []
        if not 0 <= index < self._sent:
            return [Reroute("other", reason=f"it refused batch {seq}, which was not sent")]
        failure = Failure(refused.code, refused.message, refused.retry != RetryHint.NEVER, refused.retry_after_ms / 1e3)
        if refused.code == Code.SESSION_EXPIRED:
            return self._on_forgotten(index)
        if refused.outcome != Outcome.REFUSED:
            return self._on_unknown(index, failure, refused)
        return self._on_not_ordered(index, failure, refused, now)

    def _on_unknown(self, index: int, failure: Failure, refused: Refused) -> list[Action]:
        """The head does not know a batch's outcome. Sending it again under the session finds it out."""
        batch = self._inflight[index]
        actions: list[Action] = []
        if refused.retry == RetryHint.NEVER and batch.calls is not None:
            actions.append(self._fail(batch, failure, unknown=True))
        return [*actions, _reroute_of(refused)]

    def _on_not_ordered(self, index: int, failure: Failure, refused: Refused, now: float) -> list[Action]:
        batch = self._inflight[index]
        if self._rewind is None and refused.code == Code.SEQUENCE_GAP:
            # No batch before it was refused. If it is the first one, the head lost the session's position.
            return self._on_forgotten(index) if index == 0 else [Reroute("again", reason="it lost a batch")]
        self._rewind = batch.seq if self._rewind is None else min(self._rewind, batch.seq)
        batch.answered, batch.doubt = True, False
        actions: list[Action] = []
        if refused.code != Code.SEQUENCE_GAP:
            batch.refusal = failure
            if refused.retry == RetryHint.HERE:
                if batch.seq == self._rewind:
                    self._hold(now, failure.retry_after_s)
            elif refused.retry in (RetryHint.HEAD, RetryHint.HANDLE):
                actions.append(_reroute_of(refused))
            elif batch.calls is not None:
                actions.append(self._fail(batch, failure, unknown=False))
        if self._drained(self._rewind):
            self._fold(self._rewind)
        return actions

    def _drained(self, rewind: int) -> bool:
        """Whether every batch sent from the refused one on has been answered.

        A batch in the head's queue is answered after a later one that found the queue full. Sent again before its
        answer, it would be in flight twice, and the first answer would be taken for the second's."""
        sent = itertools.islice(self._inflight, self._sent)
        return all(batch.answered for batch in sent if batch.seq >= rewind)

    def _hold(self, now: float, retry_after_s: float) -> None:
        """Wait as long as asked, and longer after each refusal in a row that asks for no wait."""
        self._refusals += 1
        patience_s = limits.BACKOFF_BASE_S * (2.0 ** min(self._refusals - 1, 6) - 1.0)
        self._hold_until = max(self._hold_until, now + max(retry_after_s, min(patience_s, limits.BACKOFF_MAX_S)))

    def _fold(self, seq: int) -> None:
        """Move the batches from `seq` on, none of them in doubt, back to the front of the queue."""
        base = self._inflight[0].seq if self._inflight else self._next_seq
        while len(self._inflight) > seq - base:
            batch = self._inflight.pop()
            self._inflight_bytes -= batch.size
            batch.seq, batch.doubt, batch.answered = 0, False, False
            if batch.calls is not None:
                self._queue.appendleft(batch)
        self._next_seq = seq
        self._sent = min(self._sent, len(self._inflight))
        self._rewind = None
        self._pop_answered()

    def _on_forgotten(self, index: int) -> list[Action]:
        """The head does not know the session. This connection orders no batch from `index` on."""
        return self._renew_session(index, Failure(Code.SESSION_EXPIRED), "the session expired")

    def _renew_session(self, index: int, failure: Failure, reason: str) -> list[Action]:
        """Begin a new session. Batches that may have been ordered stay unknown because of `failure`; the rest is sent
        in the new session. This connection orders no batch from `index` on."""
        actions: list[Action] = []
        kept: list[Batch] = []
        for position, batch in enumerate(self._inflight):
            sent_here = position < min(self._sent, index) and not batch.answered
            if batch.calls is None:
                continue
            if batch.doubt or sent_here:
                actions.append(self._fail(batch, failure, unknown=True))
            else:
                kept.append(batch)
        for batch in reversed(kept):
            batch.seq, batch.answered = 0, False
            self._queue.appendleft(batch)
        self._inflight.clear()
        self._inflight_bytes = self._sent = 0
        self._rewind = self._floor_index = None
        self._next_seq = 1
        self._stuck = 0
        self.session = self._new_session()
        self._attached = False
        return [*actions, Reroute("again", reason=reason)]

    # Time.

    def on_time(self, now: float) -> list[Action]:
        """Fail the batches whose deadlines have passed."""
        if now < self._earliest:
            return []
        actions: list[Action] = []
        fold_from: int | None = None
        stuck = False
        for index, batch in enumerate(self._inflight):
            if batch.deadline > now:
                continue
            if batch.calls is None:
                stuck = stuck or (index < self._sent and not batch.answered)
                continue
            refused_before = self._rewind is not None and batch.seq >= self._rewind
            on_its_way = index < self._sent and not batch.answered and not refused_before
            if batch.doubt or on_its_way:
                reason = "" if self._attached else self.reason.message
                actions.append(self._fail(batch, Failure(Code.NO_ANSWER, reason, True), unknown=True))
                batch.deadline = now + self._answer_wait_s
            else:
                actions.append(self._fail(batch, batch.refusal or self._lateness(), unknown=False))
                if index >= self._sent and fold_from is None and self._rewind is None:
                    fold_from = batch.seq
        if fold_from is not None:
            self._fold(fold_from)
        for batch in [batch for batch in self._queue if batch.deadline <= now]:
            self._queue.remove(batch)
            actions.append(self._fail(batch, batch.refusal or self._lateness(), unknown=False))
        if stuck:
            actions += self._on_stuck()
        waiting = [batch.deadline for batch in self._inflight if batch.deadline > now]
        waiting += [batch.deadline for batch in self._queue]
        self._earliest = min(waiting, default=_NEVER)
        return actions

    def _on_stuck(self) -> list[Action]:
        """An abandoned batch is unanswered though the connection is open. Ask on a new connection, at most so often."""
        self._stuck += 1
        front = self._inflight[0].seq
        reason = f"no answer to batch {front}"
        if self._stuck > limits.ABANDONED_SENDINGS_MAX:
            # Unanswered batches may yet be ordered under the old session, except those behind a refused batch.
            index = len(self._inflight) if self._rewind is None else self._rewind - front
            again = f"{reason}, which was sent again {limits.ABANDONED_SENDINGS_MAX} times"
            message = f"{again}; its session is given up, and later appends go in a new one"
            return self._renew_session(index, Failure(Code.NO_ANSWER, message, True), reason)
        return [Reroute("again", reason=reason)]

    def _lateness(self) -> Failure:
        if self._attached:
            return Failure(Code.DEADLINE_EXCEEDED, "it was waiting in the client", True)
        return self.reason._replace(retryable=True)

    def fail_all(self, failure: Failure) -> list[Action]:
        """Fail every batch: the client closes, or no replica will ever accept them."""
        actions: list[Action] = []
        for index, batch in enumerate(self._inflight):
            if batch.calls is not None:
                on_its_way = index < self._sent and not batch.answered
                actions.append(self._fail(batch, failure, unknown=batch.doubt or on_its_way))
        actions += [self._fail(batch, batch.refusal or failure, unknown=False) for batch in self._queue]
        self._queue.clear()
        actions += [action for action in self._renew_session(0, failure, "") if not isinstance(action, Reroute)]
        self._earliest = _NEVER
        return actions

    def _fail(self, batch: Batch, failure: Failure, unknown: bool) -> Failed:
        assert batch.calls is not None, "its calls have ended before"
        failed = Failed(batch.calls, failure, unknown)
        self._forget_calls(batch)
        return failed

    def _forget_calls(self, batch: Batch) -> None:
        assert batch.calls is not None, "its calls have ended before"
        self.pending_calls -= len(batch.calls)
        self._pending_more -= batch.entry_count - len(batch.calls)
        self.pending_bytes -= batch.size
        batch.calls = None


def _reroute_of(refused: Refused) -> Reroute:
    reason = f"it answered {refused.code} {refused.message}".strip()
    if refused.retry == RetryHint.HEAD:
        return Reroute("head", refused.head, reason)
    if refused.retry == RetryHint.HANDLE:
        return Reroute("handle", reason=reason)
    return Reroute("other", reason=reason)
