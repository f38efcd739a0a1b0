/** The client of one group: append, read, tail, status. */

import { type Appended, Appender, type Condition } from "./appender.js";
import { failure, HandleError, readRefused } from "./errors.js";
import { Handle, type HandleLike } from "./handle.js";
import * as limits from "./limits.js";
import { Handles, Link } from "./link.js";
import { Pacing } from "./pacing.js";
import { Reader, Tail } from "./reader.js";
import { SpreadReads } from "./spread.js";
import { entriesFrom, type Entry } from "./tail.js";
import { type TracerLike, Tracing } from "./tracing.js";
import * as wire from "./wire.js";

export interface ConnectOptions {
  /**
   * Gets a new handle when this one no longer works (its token expired, the group moved). Without it such a client
   * fails and must be connected again.
   */
  refresh?: () => Promise<HandleLike> | HandleLike;
  /** Bounds connecting, and is the default deadline of every later call. 10 000 by default. */
  timeoutMs?: number;
  /**
   * Time that a batch may remain unanswered after its callers' deadlines before it is sent again on a new connection;
   * 2 000 by default. After a few vain repetitions the outcome of it and of all batches after it is unknown
   * (`no_answer`), and appends continue in a new session.
   */
  answerWaitMs?: number;
  /** Do not look for the head. The first `append` connects to it. */
  readOnly?: boolean;
  /**
   * Appends above the head's rate wait in the client. With `false` they are sent, and wait or are refused at the head.
   * `true` by default.
   */
  pace?: boolean;
  /**
   * Reads that do not wait for entries go to all replicas, more to those that answer sooner. A read returns all that this
   * client knows to be committed: the head is asked where another replica is behind. `false` by default.
   */
  spreadReads?: boolean;
  /** An OpenTelemetry tracer. Appends create spans. */
  tracer?: TracerLike;
}

export interface AppendOptions {
  timeoutMs?: number;
  /** Append only if the (first) entry would get this offset. */
  expectedOffset?: number;
  /** Refuse if a greater token has been used on the group. */
  fencingToken?: number | bigint;
}

export interface ReadOptions {
  /** Most entries to return; 1 000 by default. */
  maxEntries?: number;
  /** Exceeded by one batch at most; 1 MiB by default. */
  maxBytes?: number;
  /** Longest wait for a first entry. */
  waitMs?: number;
  timeoutMs?: number;
}

/** The result of a read. All offsets but the entries' own are exclusive ends. */
export interface ReadResult {
  readonly entries: Entry[];
  /** The offset of the next read. */
  readonly nextOffset: number;
  readonly commitOffset: number;
  readonly trimOffset: number;
}

/** The answering replica's view of its group. */
export interface GroupStatus {
  readonly role: string;
  readonly state: string;
  readonly epoch: number;
  readonly commitOffset: number;
  readonly durableOffset: number;
  readonly trimOffset: number;
  readonly nextOffset: number;
  /** Address of the head; empty when unknown. */
  readonly head: string;
}

/**
 * Connect to the group of a handle. Rejects with ConnectFailed when no replica can be attached in time, with
 * HandleError when the handle is malformed, or is of a group with partitions (`connectPartitioned`).
 */
export async function connect(handle: HandleLike, options: ConnectOptions = {}): Promise<Client> {
  const client = new Client(ofOneChain(Handle.parse(handle)), options);
  try {
    await client.connected(options.readOnly ?? false);
  } catch (error) {
    await client.close({ drain: false });
    throw error;
  }
  return client;
}

/** The client that `connect` returns. Call `close` at the end, or use it with `await using`. */
export class Client {
  readonly #timeoutMs: number;
  readonly #handles: Handles;
  readonly #appender: Appender;
  readonly #reader = new Reader();
  readonly #writeLink: Link;
  readonly #readLink: Link;
  readonly #spread: SpreadReads | undefined;
  readonly #tracing: Tracing | undefined;

  /** @internal Use `connect`. */
  constructor(handle: Handle, options: ConnectOptions) {
    this.#timeoutMs = checkTimeout(options.timeoutMs ?? limits.TIMEOUT_MS_DEFAULT);
    this.#handles = new Handles(handle, options.refresh);
    const answerWaitMs = checkTimeout(options.answerWaitMs ?? limits.ANSWER_WAIT_MS_DEFAULT);
    const pacing = (options.pace ?? true) ? new Pacing(handle.charges, handle.requestSizeBytes) : undefined;
    this.#appender = new Appender(handle.limits, answerWaitMs, pacing);
    this.#writeLink = this.#appender.link = new Link(this.#appender, this.#handles);
    this.#readLink = this.#reader.link = new Link(this.#reader, this.#handles);
    this.#spread = options.spreadReads ? new SpreadReads(this.#handles) : undefined;
    this.#tracing = options.tracer && new Tracing(options.tracer, handle);
  }

  /** @internal */
  async connected(readOnly: boolean): Promise<void> {
    await (readOnly ? this.#readLink : this.#writeLink).waitAttached(this.#timeoutMs);
  }

  /** The current handle. A refresh replaces it. */
  get handle(): Handle {
    return this.#handles.handle;
  }

  /** The newest epoch of the group in any answer. */
  get epoch(): number {
    return this.#handles.epoch;
  }

  /** Entries a second that the group may append now, by its head's last report; 0 before the first report. */
  get ratePerS(): number {
    return this.#appender.writer.ratePerS;
  }

  // Appending.

  /**
   * Append one entry. Resolves with its offset.
   *
   * Many appends may be outstanding: call it without awaiting each, and they share batches. The order of the entries
   * is the order of the calls. `await ready()` now and then bounds the outstanding appends. The entry is copied.
   *
   * Rejects with AppendRefused: it did not happen (ConditionFailed, Fenced and others by `code`). Rejects with
   * AppendUnknown: the deadline passed, or the connection was lost for good, after it was sent.
   */
  append(entry: Uint8Array, options?: AppendOptions): Promise<number> {
    if (options === undefined && this.#tracing === undefined && entry instanceof Uint8Array) {
      return this.#appender.append(entry, this.#timeoutMs);
    }
    return this.#appendCarefully(entry, options ?? {});
  }

  /**
   * Append entries ordered as one: all or none, with consecutive offsets.
   *
   * At most `handle.limits.maxBatchEntries` entries and `maxBatchBytes` bytes (4 more for each entry). Otherwise like
   * `append`.
   */
  async appendMany(entries: Iterable<Uint8Array>, options: AppendOptions = {}): Promise<Appended> {
    const listed = [...entries];
    if (listed.length === 0) throw new RangeError("appendMany needs at least one entry");
    let bytes = 0;
    for (const entry of listed) bytes += checkEntry(entry).length;
    const { timeoutMs, condition } = this.#check(options);
    const alone = (trace?: Uint8Array) => this.#appender.appendAlone(listed, timeoutMs, condition, trace);
    if (this.#tracing === undefined) return alone();
    return this.#tracing.run(listed.length, bytes, alone, (appended) => appended.baseOffset);
  }

  async #appendCarefully(entry: Uint8Array, options: AppendOptions): Promise<number> {
    checkEntry(entry);
    const { timeoutMs, condition } = this.#check(options);
    const conditional = options.expectedOffset !== undefined || options.fencingToken !== undefined;
    const append = async (trace?: Uint8Array) => {
      if (!conditional) return this.#appender.append(entry, timeoutMs, trace);
      return (await this.#appender.appendAlone([entry], timeoutMs, condition, trace)).baseOffset;
    };
    if (this.#tracing === undefined) return append();
    return this.#tracing.run(1, entry.length, append, (offset) => offset);
  }

  #check(options: AppendOptions): { timeoutMs: number; condition: Condition } {
    const { expectedOffset, fencingToken = 0, timeoutMs = this.#timeoutMs } = options;
    if (expectedOffset !== undefined) checkOffset("expectedOffset", expectedOffset);
    if (typeof fencingToken === "number") checkOffset("fencingToken", fencingToken);
    else if (fencingToken < 0n || fencingToken >= wire.NO_EXPECTED_OFFSET) {
      throw new RangeError(`fencingToken is an integer from 0 to 2^64 - 2, not ${fencingToken}`);
    }
    const condition = { expectedOffset: expectedOffset ?? wire.NO_EXPECTED_OFFSET, fencingToken };
    return { timeoutMs: checkTimeout(timeoutMs), condition };
  }

  /**
   * Wait until few enough appends are outstanding: back-pressure for a producer in a loop. They are as many as the
   * group's rate lets pass within a second, so that none waits until its deadline.
   */
  async ready(): Promise<void> {
    await this.#appender.waitReady();
  }

  // Reading.

  /**
   * Committed entries from `offset` on. Rejects with ReadRefused (Trimmed when the offset has been discarded), also
   * when the deadline passes.
   */
  async read(offset: number, options: ReadOptions = {}): Promise<ReadResult> {
    const { maxEntries = 1_000, maxBytes = limits.READ_BYTES_DEFAULT, waitMs = 0 } = options;
    checkOffset("offset", offset);
    if (!(maxEntries >= 1) || !(maxBytes >= 1)) throw new RangeError("maxEntries and maxBytes must be at least 1");
    const timeoutMs = checkTimeout(options.timeoutMs ?? this.#timeoutMs);
    const endsAt = performance.now() + waitMs;
    const build = (request: number): wire.Read => ({
      kind: wire.Kind.READ,
      request,
      maxBytes: Math.min(Math.floor(maxBytes), 0xffff_ffff),
      maxEntries: Math.min(Math.floor(maxEntries), 0xffff_ffff),
      waitMs: Math.max(0, Math.floor(endsAt - performance.now())),
      offset,
    });
    const answer = await this.#read(build, offset, timeoutMs, waitMs);
    const entries = entriesOf(answer, offset).slice(0, maxEntries);
    const last = entries[entries.length - 1];
    return {
      entries,
      nextOffset: last === undefined ? Math.max(offset, Number(answer.nextOffset)) : last.offset + 1,
      commitOffset: Number(answer.commitOffset),
      trimOffset: Number(answer.trimOffset),
    };
  }

  async #read(
    build: (request: number) => wire.Read,
    offset: number,
    timeoutMs: number,
    waitMs: number,
  ): Promise<wire.Entries> {
    const spread = this.#spread;
    const begun = performance.now();
    if (spread !== undefined && waitMs <= 0) {
      spread.end = Math.max(spread.end, this.#appender.writer.ackedEnd);
      const found = await spread.read(build, offset, timeoutMs);
      if (found !== undefined) return found;
    }
    const leftMs = Math.max(timeoutMs - (performance.now() - begun), 1);
    const answer = await this.#reader.request<wire.Entries>(wire.Kind.ENTRIES, build, leftMs + waitMs);
    spread?.note(answer);
    return answer;
  }

  /** Follow the log: `for await (const entry of client.tail(0))`. At most `creditBytes` and a batch are buffered. */
  tail(fromOffset = 0, { creditBytes = limits.TAIL_CREDIT_BYTES }: { creditBytes?: number } = {}): Tail {
    checkOffset("fromOffset", fromOffset);
    if (!Number.isInteger(creditBytes) || creditBytes < 1 || creditBytes > 0xffff_ffff) {
      throw new RangeError("creditBytes must be positive and below 4 GiB");
    }
    return new Tail(this.#reader, fromOffset, creditBytes);
  }

  /**
   * Discard the entries before `beforeOffset` for good on every replica. Resolves with the trim offset.
   *
   * Batches are discarded whole, so the trim offset may be less than requested. Only committed entries can be discarded
   * (ReadRefused with the code trim_beyond_commit). After a passed deadline the trim may have happened nevertheless;
   * trimming again is harmless. The permission to append is required.
   */
  async trim(beforeOffset: number, options: { timeoutMs?: number } = {}): Promise<number> {
    checkOffset("beforeOffset", beforeOffset);
    const timeoutMs = checkTimeout(options.timeoutMs ?? this.#timeoutMs);
    const build = (request: number): wire.Trim => ({ kind: wire.Kind.TRIM, request, beforeOffset });
    const answer = await this.#reader.request<wire.TrimOk>(wire.Kind.TRIM_OK, build, timeoutMs);
    return Number(answer.trimOffset);
  }

  /**
   * The view of the group's head, or of another replica while the head is unreachable.
   *
   * The head answers after the whole ring has confirmed that it still is the head. Its `commitOffset` therefore
   * includes every entry acknowledged before the call.
   */
  async status(options: { timeoutMs?: number } = {}): Promise<GroupStatus> {
    const timeoutMs = checkTimeout(options.timeoutMs ?? this.#timeoutMs);
    const build = (request: number): wire.Status => ({ kind: wire.Kind.STATUS, request });
    const answer = await this.#reader.request<wire.StatusOk>(wire.Kind.STATUS_OK, build, timeoutMs);
    return {
      role: wire.ROLES[answer.role] ?? String(answer.role),
      state: wire.STATES[answer.state] ?? String(answer.state),
      epoch: Number(answer.epoch),
      commitOffset: Number(answer.commitOffset),
      durableOffset: Number(answer.durableOffset),
      trimOffset: Number(answer.trimOffset),
      nextOffset: Number(answer.nextOffset),
      head: answer.head,
    };
  }

  // Opening and closing.

  /**
   * Disconnect. With `drain` (the default), first wait for the outstanding appends, which end by their deadlines.
   * Without it they end at once as refused or unknown.
   */
  async close({ drain = true }: { drain?: boolean } = {}): Promise<void> {
    if (drain) await this.#appender.waitDrained();
    this.#appender.close();
    this.#reader.close();
    await Promise.all([this.#writeLink.close(), this.#readLink.close(), this.#spread?.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function ofOneChain(handle: Handle): Handle {
  if (handle.partitions === undefined) return handle;
  const count = handle.partitions.members.length;
  throw new HandleError(`the group has ${count} partitions: use connectPartitioned, and append by key`);
}

function entriesOf(answer: wire.Entries, offset: number): Entry[] {
  try {
    return entriesFrom(answer, offset);
  } catch (problem) {
    if (problem instanceof wire.WireError) throw readRefused(failure(problem.code, problem.reason));
    throw problem;
  }
}

/** @internal */
export function checkEntry(entry: unknown): Uint8Array {
  if (entry instanceof Uint8Array) return entry;
  const hint = typeof entry === "string" ? "; encode it first, for example with Buffer.from(text)" : "";
  throw new TypeError(`an entry is a Uint8Array or Buffer, not ${typeof entry}${hint}`);
}

/** @internal */
export function checkTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs < 2 ** 32) return timeoutMs;
  throw new RangeError(`a timeout is a positive number of milliseconds, not ${timeoutMs}`);
}

function checkOffset(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`${name} is an integer from 0 to 2^53 - 1, not ${value}`);
  }
}
