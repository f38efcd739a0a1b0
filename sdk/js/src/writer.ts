/**
 * Appending exactly once: the session's state machine, pure.
 *
 * Each call reports an event (an append, ATTACHED, ACKED, REFUSED, a broken connection, the time) and returns frames to
 * send and actions to take. The writer has no socket, clock or randomness: `now` (in ms, monotonic) and the numbers of
 * new sessions are arguments. sdk/contract/wire.md, "Appending exactly once".
 *
 *     queue     batches without a seq: being filled, or refused and to be sent again
 *     inflight  batches with consecutive seqs; the first `sent` of them are sent on this connection
 *
 * A batch is *in doubt* while it may have been ordered without an answer. It keeps its seq and is sent again under it
 * until it is answered, because no later batch of the session can be ordered before it. A batch is *abandoned* when its
 * callers' deadlines have passed and they got "unknown".
 */

import { crc32 } from "node:zlib";

import { Code } from "./codes.js";
import { type Failure, failure } from "./errors.js";
import type { Limits } from "./handle.js";
import * as limits from "./limits.js";
import { ANSWER_WAIT_MS_DEFAULT } from "./limits.js";
import type { Pacing } from "./pacing.js";
import {
  type Ack,
  type Attached,
  encodeAppend,
  NO_EXPECTED_OFFSET,
  type Notice,
  Outcome,
  type Refused,
  RetryHint,
  Role,
  type U64,
} from "./wire.js";

const FIRST_BUFFER_BYTES = 1_024;

class Batch<Call> {
  /** The calls that wait for it; undefined once all of them have ended. */
  calls: Call[] | undefined = [];
  /** Entries, each with its length in front. `size` of its bytes are used. */
  payload: Buffer;
  size = 0;
  entryCount = 0;
  packed = false;
  payloadCrc = 0;
  /** Whether it is one call's batch. Else each call has one entry. */
  readonly alone: boolean;
  expectedOffset: U64 = NO_EXPECTED_OFFSET;
  fencingToken: U64 = 0;
  trace: Uint8Array | undefined;
  seq = 0;
  /** Whether the pacing has taken its tokens. Sending it again takes none. */
  paid = false;
  doubt = false;
  answered = false;
  refusal: Failure | undefined;

  constructor(
    public deadline: number,
    /** Whether more appends may join it. */
    public shared: boolean,
    capacity: number,
  ) {
    this.alone = !shared;
    this.payload = Buffer.allocUnsafe(capacity);
  }

  add(entry: Uint8Array): void {
    const end = this.size + 4 + entry.length;
    if (end > this.payload.length) {
      const larger = Buffer.allocUnsafe(Math.max(end, this.payload.length * 4));
      larger.set(this.payload.subarray(0, this.size));
      this.payload = larger;
    }
    this.payload.writeUInt32LE(entry.length, this.size);
    this.payload.set(entry, this.size + 4);
    this.size = end;
    this.entryCount++;
  }

  pack(): void {
    if (this.packed) return;
    this.packed = true;
    this.shared = false;
    this.payload = this.payload.subarray(0, this.size);
    this.payloadCrc = crc32(this.payload);
  }
}

/**
 * A batch is acknowledged. Its entries have consecutive offsets from `baseOffset`. `alone`: all are its only call's;
 * else each call has one.
 */
export interface AckedAction<Call> {
  readonly type: "acked";
  readonly calls: Call[];
  readonly baseOffset: number;
  readonly entryCount: number;
  readonly alone: boolean;
}

export interface FailedAction<Call> {
  readonly type: "failed";
  readonly calls: Call[];
  readonly failure: Failure;
  readonly unknown: boolean;
}

/**
 * Leave this connection: for the head at `address`, with a fresh handle (others may still name this one for a while), for
 * another replica, or for a new connection.
 */
export interface Reroute {
  readonly type: "reroute";
  readonly to: "head" | "handle" | "other" | "again";
  readonly address: string;
  readonly reason: string;
}

export type Action<Call> = AckedAction<Call> | FailedAction<Call> | Reroute;

export function reroute(to: Reroute["to"], reason: string, address = ""): Reroute {
  return { type: "reroute", to, address, reason };
}

/** `newSession` gives a random non-zero 64-bit number. Without `pacing` batches are sent at once. */
export class Writer<Call> {
  session: bigint;
  epoch = 0;
  state = 0;
  ratePerS = 0;
  /** The offset behind the last entry that was acknowledged. */
  ackedEnd = 0;
  pendingBytes = 0;
  pendingCalls = 0;
  /** A word to the caller that was not said yet. */
  hint: string | undefined;
  /** The reason why no batch can be sent now. */
  reason: Failure = failure(Code.no_connection);

  /** Pending entries beyond one a call. */
  #pendingMore = 0;
  #floorIndex: number | undefined;
  #nextSeq = 1;
  #queue: Batch<Call>[] = [];
  #inflight: Batch<Call>[] = [];
  #inflightBytes = 0;
  #sent = 0;
  #attached = false;
  #channel = 0;
  #window = 1;
  #rewind: number | undefined;
  #holdUntil = 0;
  /** Time at which the queue's first batch has its tokens, if it waits for them only; else 0. */
  #pacedUntil = 0;
  #refusals = 0;
  #stuck = 0;
  #earliest = Infinity;

  constructor(
    readonly limits: Limits,
    private readonly newSession: () => bigint,
    private readonly answerWaitMs = ANSWER_WAIT_MS_DEFAULT,
    private readonly pacing?: Pacing,
  ) {
    this.session = newSession();
  }

  // Appending.

  /** Queue one entry without a condition: the hot path. Returns a Failure if it is refused at once. */
  append(call: Call, entry: Uint8Array, deadline: number): Failure | undefined {
    const size = entry.length + 4;
    if (entry.length > this.limits.maxEntryBytes) return this.#tooLarge(entry.length);
    if (this.pendingCalls >= limits.PENDING_CALLS_MAX || this.pendingBytes + size > limits.PENDING_BYTES_MAX) {
      return this.#full();
    }
    let batch = this.#queue[this.#queue.length - 1];
    if (batch === undefined || !this.#mayJoin(batch, size, deadline)) {
      batch = this.#open(deadline + limits.BATCH_DEADLINE_SPREAD_MS, true, Math.max(size, FIRST_BUFFER_BYTES));
    }
    batch.add(entry);
    batch.calls?.push(call);
    this.pendingBytes += size;
    this.pendingCalls++;
    return undefined;
  }

  #mayJoin(batch: Batch<Call>, size: number, deadline: number): boolean {
    return (
      batch.shared &&
      batch.size + size <= limits.BATCH_COALESCE_BYTES &&
      batch.entryCount < Math.min(limits.BATCH_COALESCE_ENTRIES, this.pacing?.batchEntriesMax ?? Infinity) &&
      // Summed as at the batch's opening, so that rounding never excludes an equal deadline.
      batch.deadline >= deadline &&
      batch.deadline <= deadline + limits.BATCH_DEADLINE_SPREAD_MS
    );
  }

  /** Queue entries ordered as one, in a batch of their own. */
  appendMany(
    call: Call,
    entries: readonly Uint8Array[],
    deadline: number,
    expectedOffset: U64 = NO_EXPECTED_OFFSET,
    fencingToken: U64 = 0,
    trace?: Uint8Array,
  ): Failure | undefined {
    let size = 0;
    let longest = 0;
    for (const entry of entries) {
      size += entry.length + 4;
      longest = Math.max(longest, entry.length);
    }
    if (longest > this.limits.maxEntryBytes) return this.#tooLarge(longest);
    if (size > this.limits.maxBatchBytes || entries.length > this.limits.maxBatchEntries) {
      const most = `at most ${this.limits.maxBatchBytes} bytes and ${this.limits.maxBatchEntries} entries`;
      return failure(Code.batch_too_large, `${size} bytes in ${entries.length} entries; ${most}`);
    }
    if (this.pendingCalls >= limits.PENDING_CALLS_MAX || this.pendingBytes + size > limits.PENDING_BYTES_MAX) {
      return this.#full();
    }
    const batch = this.#open(deadline, false, size);
    for (const entry of entries) batch.add(entry);
    batch.calls = [call];
    batch.expectedOffset = expectedOffset;
    batch.fencingToken = fencingToken;
    batch.trace = trace;
    this.pendingBytes += size;
    this.pendingCalls++;
    this.#pendingMore += entries.length - 1;
    return undefined;
  }

  /** Whether little enough is pending: it would pass within `READY_MS`, by the head's rate, and memory is left. */
  hasRoom(): boolean {
    const { pendingCalls: calls, pendingBytes: bytes, ratePerS } = this;
    if (calls >= limits.PENDING_CALLS_READY || bytes >= limits.PENDING_BYTES_READY) return false;
    if (calls === 0 || this.pacing === undefined || ratePerS === 0) return true;
    const entries = calls + this.#pendingMore;
    return this.pacing.seconds(entries, bytes - 4 * entries, ratePerS) < limits.READY_MS / 1_000;
  }

  /** Give the batch that took the last append a trace context, unless it has one. */
  traceLast(trace: Uint8Array): void {
    const batch = this.#queue[this.#queue.length - 1];
    if (batch !== undefined) batch.trace ??= trace;
  }

  #open(deadline: number, shared: boolean, capacity: number): Batch<Call> {
    const batch = new Batch<Call>(deadline, shared, capacity);
    this.#queue.push(batch);
    this.#earliest = Math.min(this.#earliest, deadline);
    return batch;
  }

  #tooLarge(length: number): Failure {
    return failure(Code.entry_too_large, `${length} bytes; at most ${this.limits.maxEntryBytes}`);
  }

  #full(): Failure {
    const message = `${this.pendingCalls} appends with ${this.pendingBytes} bytes are pending`;
    return failure(Code.queue_full, message, true);
  }

  // Sending.

  /** Frames to send now, in order, as pieces to write one after the other. */
  takeFrames(now: number): Buffer[] {
    const out: Buffer[] = [];
    this.#pacedUntil = 0;
    this.pacing?.setRate(this.ratePerS, now);
    if (!this.#attached || this.#rewind !== undefined || now < this.#holdUntil) return out;
    this.#holdUntil = 0;
    const inflight = this.#inflight;
    while (this.#sent < inflight.length && this.#sent < this.#window) this.#send(inflight[this.#sent]!, now, out);
    if (this.#sent < inflight.length) return out;
    let taken = 0;
    while (taken < this.#queue.length && inflight.length < this.#window) {
      const batch = this.#queue[taken]!;
      const filling = batch.shared && taken === this.#queue.length - 1 && batch.size < limits.EAGER_BATCH_BYTES;
      if (filling && inflight.length >= limits.EAGER_BATCHES) break;
      if (inflight.length > 0 && this.#inflightBytes + batch.size > limits.INFLIGHT_BYTES_MAX) break;
      if (this.pacing !== undefined && !batch.paid && this.#mustWait(this.pacing, batch, now)) break;
      taken++;
      batch.seq = this.#nextSeq++;
      batch.pack();
      inflight.push(batch);
      this.#inflightBytes += batch.size;
      this.#send(batch, now, out);
    }
    if (taken > 0) this.#queue.splice(0, taken);
    return out;
  }

  /** Whether the bucket lacks tokens for it now. */
  #mustWait(pacing: Pacing, batch: Batch<Call>, now: number): boolean {
    const entryBytes = batch.size - 4 * batch.entryCount;
    const waitMs = pacing.take(now, pacing.cost(batch.entryCount, entryBytes));
    if (waitMs > 0) {
      // Close the batch: more entries would cost more tokens and lengthen the wait.
      batch.shared = false;
      this.#pacedUntil = now + waitMs;
      return true;
    }
    batch.paid = true;
    this.hint ??= pacing.hint(batch.entryCount, entryBytes);
    return false;
  }

  #send(batch: Batch<Call>, now: number, out: Buffer[]): void {
    // No caller waits for an abandoned batch, so the head need not queue it.
    const leftMs = batch.calls === undefined ? 0 : batch.deadline - now;
    const head = encodeAppend(
      this.#channel,
      batch.seq,
      this.#floorIndex ?? 0,
      Math.max(1, Math.min(Math.floor(leftMs), 0xffff_ffff)),
      batch.entryCount,
      batch.payload.length,
      batch.payloadCrc,
      batch.expectedOffset,
      batch.fencingToken,
      batch.trace,
    );
    out.push(head, batch.payload);
    batch.answered = false;
    if (batch.calls === undefined) {
      batch.deadline = now + this.answerWaitMs;
      this.#earliest = Math.min(this.#earliest, batch.deadline);
    }
    this.#sent++;
  }

  /** Whether no batch is queued or unanswered. */
  idle(): boolean {
    return this.#inflight.length === 0 && this.#queue.length === 0;
  }

  awaitsAnswer(): boolean {
    return this.#sent > 0;
  }

  /** The time of the next call of `onTime` and `takeFrames`, unless an event comes first; Infinity: none. */
  wakeAt(): number {
    const sends = this.#attached && this.#rewind === undefined && !this.idle();
    const held = sends ? this.#holdUntil || this.#pacedUntil : 0;
    return held > 0 ? Math.min(this.#earliest, held) : this.#earliest;
  }

  // The connection.

  /** The replica answered the ATTACH (with `this.session`) on `channel`. */
  onAttached(attached: Attached, channel: number): Action<Call>[] {
    this.#floorIndex = Math.min(this.#floorIndex ?? Infinity, Number(attached.lastIndex));
    const epoch = Number(attached.epoch);
    if (epoch < this.epoch) return [reroute("other", `its epoch ${epoch} is older than ${this.epoch}`)];
    this.epoch = epoch;
    this.state = attached.state;
    this.ratePerS = Number(attached.ratePerS);
    if (attached.role !== Role.HEAD && attached.role !== Role.SOLE) {
      return [reroute("head", "it is not the head", attached.head)];
    }
    this.#channel = channel;
    this.#window = Math.max(1, attached.windowBatches);
    this.#holdUntil = 0;
    const base = this.#inflight[0]?.seq ?? this.#nextSeq;
    const known = Number(attached.nextSeq);
    if (known < base || known > this.#nextSeq) {
      // The head forgot the session, or knows batches that were never sent: the numbers are not valid.
      return this.#onForgotten(0);
    }
    this.#attached = true;
    if (known > 1) {
      for (const batch of this.#inflight) if (batch.seq >= known) batch.doubt = false;
    }
    return [];
  }

  /** The connection is gone. Unanswered batches are in doubt. */
  onDetached(reason: Failure): void {
    this.reason = reason;
    // A refused batch was not ordered, nor was any batch that was sent after it.
    if (this.#rewind !== undefined) this.#fold(this.#rewind);
    for (const batch of this.#inflight.slice(0, this.#sent)) batch.doubt ||= !batch.answered;
    this.#sent = 0;
    this.#attached = false;
  }

  onNotice(notice: Notice): Action<Call>[] {
    const missed = Number(notice.epoch) > this.epoch + 1;
    this.epoch = Math.max(this.epoch, Number(notice.epoch));
    this.state = notice.state;
    this.ratePerS = Number(notice.ratePerS);
    const head = notice.role === Role.HEAD || notice.role === Role.SOLE;
    if (!this.#attached || (head && !missed)) return [];
    // A former head that is head again may have lost batches, so ATTACHED's values no longer hold, the floor above all.
    // No batch is sent until a new ATTACHED.
    this.#attached = false;
    if (head) return [reroute("again", "it may not have been the head all the time")];
    return [reroute("head", "it is no longer the head", notice.head)];
  }

  // Answers.

  onAcked(acks: readonly Ack[]): Action<Call>[] {
    const actions: Action<Call>[] = [];
    const inflight = this.#inflight;
    const base = inflight[0]?.seq ?? this.#nextSeq;
    for (const ack of acks) {
      const seq = Number(ack.seq);
      const index = seq - base;
      if (index < 0) continue; // answered before
      const batch = inflight[index];
      if (batch === undefined || index >= this.#sent) {
        this.#popAnswered();
        return [...actions, reroute("other", `it acknowledged batch ${seq}, which was not sent`)];
      }
      if (batch.calls !== undefined) {
        const { calls, entryCount, alone } = batch;
        const baseOffset = Number(ack.baseOffset);
        actions.push({ type: "acked", calls, baseOffset, entryCount, alone });
        this.ackedEnd = Math.max(this.ackedEnd, baseOffset + entryCount);
        this.#forgetCalls(batch);
      }
      batch.doubt = false;
      batch.answered = true;
    }
    this.#popAnswered();
    this.#refusals = this.#stuck = 0;
    if (this.#rewind !== undefined && this.#drained(this.#rewind)) this.#fold(this.#rewind);
    if (this.#rewind === undefined && inflight.slice(0, this.#sent).some((batch) => batch.answered)) {
      // Batches are committed in order, so an earlier batch gets no answer any more.
      actions.push(reroute("again", `no answer to batch ${inflight[0]?.seq}`));
    }
    return actions;
  }

  #popAnswered(): void {
    let count = 0;
    for (const batch of this.#inflight) {
      if (count >= this.#sent || !batch.answered || batch.calls !== undefined) break;
      if (this.#rewind !== undefined && batch.seq >= this.#rewind) break;
      this.#inflightBytes -= batch.size;
      count++;
    }
    if (count === 0) return;
    this.#inflight.splice(0, count);
    this.#sent -= count;
  }

  /** A batch of ours was refused. */
  onRefused(refused: Refused, now: number): Action<Call>[] {
    const seq = Number(refused.id);
    const index = seq - (this.#inflight[0]?.seq ?? this.#nextSeq);
    if (index < 0) return [];
    const batch = this.#inflight[index];
    if (batch === undefined || index >= this.#sent) {
      return [reroute("other", `it refused batch ${seq}, which was not sent`)];
    }
    const retryable = refused.retry !== RetryHint.NEVER;
    const reason = failure(refused.code, refused.message, retryable, refused.retryAfterMs);
    if (refused.code === Code.session_expired) return this.#onForgotten(index);
    if (refused.outcome !== Outcome.REFUSED) return this.#onUnknown(batch, reason, refused);
    return this.#onNotOrdered(batch, index, reason, refused, now);
  }

  /** The head does not know a batch's outcome. Sending it again under the session finds it out. */
  #onUnknown(batch: Batch<Call>, reason: Failure, refused: Refused): Action<Call>[] {
    const actions: Action<Call>[] = [];
    if (refused.retry === RetryHint.NEVER && batch.calls !== undefined) actions.push(this.#fail(batch, reason, true));
    return [...actions, rerouteOf(refused)];
  }

  #onNotOrdered(batch: Batch<Call>, index: number, reason: Failure, refused: Refused, now: number): Action<Call>[] {
    if (this.#rewind === undefined && refused.code === Code.sequence_gap) {
      // No batch before it was refused. If it is the first one, the head lost the session's position.
      return index === 0 ? this.#onForgotten(index) : [reroute("again", "it lost a batch")];
    }
    this.#rewind = Math.min(this.#rewind ?? Infinity, batch.seq);
    batch.answered = true;
    batch.doubt = false;
    const actions: Action<Call>[] = [];
    if (refused.code !== Code.sequence_gap) {
      batch.refusal = reason;
      if (refused.retry === RetryHint.HERE) {
        if (batch.seq === this.#rewind) this.#hold(now, reason.retryAfterMs);
      } else if (refused.retry === RetryHint.HEAD || refused.retry === RetryHint.HANDLE) {
        actions.push(rerouteOf(refused));
      } else if (batch.calls !== undefined) {
        actions.push(this.#fail(batch, reason, false));
      }
    }
    if (this.#drained(this.#rewind)) this.#fold(this.#rewind);
    return actions;
  }

  /**
   * Whether every batch sent from the refused one on has been answered.
   *
   * A batch in the head's queue is answered after a later one that found the queue full. Sent again before its answer,
   * it would be in flight twice, and the first answer would be taken for the second's.
   */
  #drained(rewind: number): boolean {
    return this.#inflight.slice(0, this.#sent).every((batch) => batch.answered || batch.seq < rewind);
  }

  /** Wait as long as asked, and longer after each refusal in a row that asks for no wait. */
  #hold(now: number, retryAfterMs: number): void {
    this.#refusals++;
    const patienceMs = limits.BACKOFF_BASE_MS * (2 ** Math.min(this.#refusals - 1, 6) - 1);
    const waitMs = Math.max(retryAfterMs, Math.min(patienceMs, limits.BACKOFF_MAX_MS));
    this.#holdUntil = Math.max(this.#holdUntil, now + waitMs);
  }

  /** Move the batches from `seq` on, none of them in doubt, back to the front of the queue. */
  #fold(seq: number): void {
    const base = this.#inflight[0]?.seq ?? this.#nextSeq;
    const folded = this.#inflight.splice(Math.max(0, seq - base));
    for (const batch of folded) {
      this.#inflightBytes -= batch.size;
      batch.seq = 0;
      batch.doubt = batch.answered = false;
    }
    this.#queue.unshift(...folded.filter((batch) => batch.calls !== undefined));
    this.#nextSeq = seq;
    this.#sent = Math.min(this.#sent, this.#inflight.length);
    this.#rewind = undefined;
    this.#popAnswered();
  }

  /** The head does not know the session. This connection orders no batch from `index` on. */
  #onForgotten(index: number): Action<Call>[] {
    return this.#renewSession(index, failure(Code.session_expired), "the session expired");
  }

  /**
   * Begin a new session. Batches that may have been ordered stay unknown because of `why`; the rest is sent in the new
   * session. This connection orders no batch from `index` on.
   */
  #renewSession(index: number, why: Failure, reason: string): Action<Call>[] {
    const actions: Action<Call>[] = [];
    const kept: Batch<Call>[] = [];
    this.#inflight.forEach((batch, position) => {
      if (batch.calls === undefined) return;
      const sentHere = position < Math.min(this.#sent, index) && !batch.answered;
      if (batch.doubt || sentHere) {
        actions.push(this.#fail(batch, why, true));
      } else {
        batch.seq = 0;
        batch.answered = false;
        kept.push(batch);
      }
    });
    this.#queue.unshift(...kept);
    this.#inflight = [];
    this.#inflightBytes = this.#sent = 0;
    this.#rewind = this.#floorIndex = undefined;
    this.#nextSeq = 1;
    this.#stuck = 0;
    this.session = this.newSession();
    this.#attached = false;
    return [...actions, reroute("again", reason)];
  }

  // Time.

  /** Fail the batches whose deadlines have passed. */
  onTime(now: number): Action<Call>[] {
    if (now < this.#earliest) return [];
    const actions: Action<Call>[] = [];
    let foldFrom: number | undefined;
    let stuck = false;
    this.#inflight.forEach((batch, index) => {
      if (batch.deadline > now) return;
      const unanswered = index < this.#sent && !batch.answered;
      if (batch.calls === undefined) {
        stuck ||= unanswered;
        return;
      }
      const refusedBefore = this.#rewind !== undefined && batch.seq >= this.#rewind;
      if (batch.doubt || (unanswered && !refusedBefore)) {
        const reason = this.#attached ? "" : this.reason.message;
        actions.push(this.#fail(batch, failure(Code.no_answer, reason, true), true));
        batch.deadline = now + this.answerWaitMs;
      } else {
        actions.push(this.#fail(batch, batch.refusal ?? this.#lateness(), false));
        if (index >= this.#sent && this.#rewind === undefined) foldFrom ??= batch.seq;
      }
    });
    if (foldFrom !== undefined) this.#fold(foldFrom);
    for (const batch of this.#queue) {
      if (batch.deadline <= now) actions.push(this.#fail(batch, batch.refusal ?? this.#lateness(), false));
    }
    this.#queue = this.#queue.filter((batch) => batch.calls !== undefined);
    if (stuck) actions.push(...this.#onStuck());
    this.#earliest = Infinity;
    for (const batch of [...this.#inflight, ...this.#queue]) {
      if (batch.deadline > now) this.#earliest = Math.min(this.#earliest, batch.deadline);
    }
    return actions;
  }

  /** An abandoned batch is unanswered though the connection is open. Ask on a new connection, at most so often. */
  #onStuck(): Action<Call>[] {
    const front = this.#inflight[0]?.seq ?? 0;
    const reason = `no answer to batch ${front}`;
    if (++this.#stuck > limits.ABANDONED_SENDINGS_MAX) {
      // Unanswered batches may yet be ordered under the old session, except those behind a refused batch.
      const index = this.#rewind === undefined ? this.#inflight.length : this.#rewind - front;
      const again = `${reason}, which was sent again ${limits.ABANDONED_SENDINGS_MAX} times`;
      const message = `${again}; its session is given up, and later appends go in a new one`;
      return this.#renewSession(index, failure(Code.no_answer, message, true), reason);
    }
    return [reroute("again", reason)];
  }

  #lateness(): Failure {
    if (this.#attached) return failure(Code.deadline_exceeded, "it was waiting in the client", true);
    return { ...this.reason, retryable: true };
  }

  /** Fail every batch: the client closes, or no replica will ever accept them. */
  failAll(reason: Failure): Action<Call>[] {
    const actions: Action<Call>[] = [];
    this.#inflight.forEach((batch, index) => {
      const onItsWay = index < this.#sent && !batch.answered;
      if (batch.calls !== undefined) actions.push(this.#fail(batch, reason, batch.doubt || onItsWay));
    });
    for (const batch of this.#queue) actions.push(this.#fail(batch, batch.refusal ?? reason, false));
    this.#queue = [];
    this.#renewSession(0, reason, "");
    this.#earliest = Infinity;
    return actions;
  }

  #fail(batch: Batch<Call>, reason: Failure, unknown: boolean): FailedAction<Call> {
    const calls = batch.calls ?? [];
    this.#forgetCalls(batch);
    return { type: "failed", calls, failure: reason, unknown };
  }

  #forgetCalls(batch: Batch<Call>): void {
    if (batch.calls === undefined) throw new Error("invariant: the calls of a batch end once");
    this.pendingCalls -= batch.calls.length;
    this.#pendingMore -= batch.entryCount - batch.calls.length;
    this.pendingBytes -= batch.size;
    batch.calls = undefined;
  }
}

function rerouteOf(refused: Refused): Reroute {
  const reason = `it answered ${refused.code} ${refused.message}`.trim();
  if (refused.retry === RetryHint.HEAD) return reroute("head", reason, refused.head);
  if (refused.retry !== RetryHint.HANDLE) return reroute("other", reason);
  return reroute("handle", reason);
}
