/**
 * Reads, tails, trims and status calls over one link to any replica, the head preferred.
 *
 * Repeating any of them is harmless, so a request stays open across connections until its answer or its deadline.
 */

import { Code } from "./codes.js";
import type { Connection } from "./connection.js";
import { type Failure, failure, readRefused } from "./errors.js";
import * as limits from "./limits.js";
import type { Link, Port } from "./link.js";
import { type Entry, TailState } from "./tail.js";
import * as wire from "./wire.js";
import { type Reroute, reroute } from "./writer.js";

/** Refusals of a replica that lags: the entries exist elsewhere, or soon here. */
const NOT_HERE_YET: readonly number[] = [Code.offset_beyond_end, Code.syncing];

type Build = (request: number) => wire.Message;
type Answers = wire.Entries | wire.StatusOk | wire.TrimOk;

interface Item {
  readonly build: Build;
  onMessage(message: Answers): void;
  onFailure(reason: Failure): void;
  /** A retryable refusal. */
  onDelay(reason: Failure): void;
}

/** A tail's subscription, across connections. */
export class Subscription implements Item {
  readonly state: TailState;
  failure: Failure | undefined;
  #changed: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(offset: number, creditBytes: number) {
    this.state = new TailState(offset, creditBytes);
  }

  readonly build: Build = (request) => ({
    kind: wire.Kind.SUBSCRIBE,
    request,
    creditBytes: this.state.start(),
    offset: this.state.nextOffset,
  });

  onMessage(message: Answers): void {
    if (message.kind !== wire.Kind.ENTRIES) {
      throw new wire.WireError(Code.protocol_error, `${wire.kindName(message.kind)} for a subscription`);
    }
    this.state.onEntries(message);
    this.#wake?.();
  }

  onFailure(reason: Failure): void {
    this.failure ??= reason;
    this.#wake?.();
  }

  onDelay(): void {
    // A tail has no deadline.
  }

  changed(): Promise<void> {
    this.#changed ??= new Promise((resolve) => {
      this.#wake = () => {
        this.#changed = this.#wake = undefined;
        resolve();
      };
    });
    return this.#changed;
  }
}

export class Reader implements Port {
  readonly session = 0n;
  link!: Link;
  #open = new Map<number, Item>();
  #lastRequest = 0;
  #tails = 0;
  #closed = false;

  // Calls.

  /** Send the frame of `build(request)` until it is answered. Rejects with ReadRefused. */
  async request<Answer extends Answers>(kind: Answer["kind"], build: Build, timeoutMs: number): Promise<Answer> {
    if (this.#open.size >= limits.READS_OUTSTANDING_MAX) {
      throw readRefused(failure(Code.queue_full, `${this.#open.size} reads are outstanding`, true));
    }
    let number = 0;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Answer>((resolve, reject) => {
        let refusal: Failure | undefined;
        timer = setTimeout(() => reject(readRefused(refusal ?? this.#lateness())), Math.min(timeoutMs, 0x7fff_ffff));
        number = this.#start({
          build,
          onMessage: (message) => {
            if (message.kind !== kind) {
              throw new wire.WireError(Code.protocol_error, `${wire.kindName(message.kind)} for another request`);
            }
            resolve(message as Answer);
          },
          onFailure: (reason) => reject(readRefused(reason)),
          onDelay: (reason) => (refusal = reason),
        });
      });
    } finally {
      clearTimeout(timer);
      this.#open.delete(number);
    }
  }

  subscribe(subscription: Subscription): number {
    if (this.#tails >= limits.TAILS_MAX) {
      throw readRefused(failure(Code.queue_full, `${this.#tails} tails are open on this client`));
    }
    const number = this.#start(subscription);
    this.#tails++;
    return number;
  }

  giveCredit(request: number, bytes: number): void {
    if (bytes > 0) this.link.connection?.send({ kind: wire.Kind.CREDIT, request, bytes });
  }

  /** The tail has ended, whether or not its subscription was still open. */
  endTail(request: number): void {
    this.#tails--;
    if (this.#open.delete(request)) this.link.connection?.send({ kind: wire.Kind.CANCEL, request });
  }

  close(): void {
    this.#closed = true;
    this.failAll(failure(Code.client_closed));
  }

  #start(item: Item): number {
    if (this.#closed) throw readRefused(failure(Code.client_closed));
    this.#lastRequest = (this.#lastRequest % 0xffff_ffff) + 1;
    const number = this.#lastRequest;
    this.#open.set(number, item);
    this.#send(number);
    return number;
  }

  #send(number: number): void {
    const item = this.#open.get(number);
    if (item === undefined) return;
    const { connection } = this.link;
    if (connection === undefined) this.link.want();
    else connection.send(item.build(number));
  }

  #lateness(): Failure {
    if (this.link.connection === undefined) return { ...this.link.reason, retryable: true };
    return failure(Code.deadline_exceeded, "the read was not answered in time", true);
  }

  protected failAll(reason: Failure): void {
    const items = [...this.#open.values()];
    this.#open.clear();
    for (const item of items) item.onFailure(reason);
  }

  // Port.

  onAttached(attached: wire.Attached): Reroute | undefined {
    if (attached.role !== wire.Role.NONE && attached.state !== wire.State.SYNCING) return undefined;
    return reroute("head", "it has no readable replica", attached.head);
  }

  onReady(): void {
    for (const number of [...this.#open.keys()]) this.#send(number);
  }

  onFrame(frame: wire.Frame): void {
    const message = wire.decode(frame);
    if (message.kind === wire.Kind.REFUSED) {
      this.#onRefused(message);
    } else if (
      message.kind === wire.Kind.ENTRIES ||
      message.kind === wire.Kind.STATUS_OK ||
      message.kind === wire.Kind.TRIM_OK
    ) {
      // Without an item the request was cancelled, or its caller stopped waiting.
      this.#open.get(message.request)?.onMessage(message);
      this.link.progressed();
    } else if (message.kind === wire.Kind.NOTICE) {
      this.link.sawEpoch(Number(message.epoch));
      if (message.role === wire.Role.NONE) {
        this.link.reroute(reroute("head", "the replica was removed", message.head));
      }
    } else {
      throw new wire.WireError(Code.protocol_error, `unexpected ${wire.kindName(message.kind)}`);
    }
  }

  #onRefused(refused: wire.Refused): void {
    const number = Number(refused.id);
    const item = this.#open.get(number);
    if (item === undefined) return;
    if (refused.retry === wire.RetryHint.HERE || NOT_HERE_YET.includes(refused.code)) {
      const waitMs = Math.min(Math.max(refused.retryAfterMs, limits.BACKOFF_BASE_MS), limits.BACKOFF_MAX_MS);
      item.onDelay(failure(refused.code, refused.message, true, waitMs));
      const { connection } = this.link;
      setTimeout(() => this.#sendAgain(number, connection), waitMs);
    } else if (refused.retry === wire.RetryHint.HEAD) {
      this.link.reroute(reroute("head", `read refused with ${refused.code}`, refused.head));
    } else if (refused.retry === wire.RetryHint.HANDLE) {
      this.link.reroute(reroute("handle", `read refused with ${refused.code}`));
    } else {
      this.#open.delete(number);
      item.onFailure(failure(refused.code, refused.message));
    }
  }

  /** Send the request again unless a new connection has done so meanwhile. */
  #sendAgain(number: number, connection: Connection | undefined): void {
    if (connection !== undefined && connection === this.link.connection) this.#send(number);
  }

  onRead(): void {
    // No frame answers it: credit is returned as the reader takes entries.
  }

  onDetached(_reason: Failure): void {
    // Open requests are sent again on the next connection.
  }

  onHopeless(reason: Failure): void {
    this.failAll(reason);
  }

  awaitsAnswer(): boolean {
    // A read may wait for waitMs and a tail for ever, so a PING checks whether the server is there.
    return this.#open.size > 0;
  }

  busy(): boolean {
    return this.#open.size > 0;
  }
}

/**
 * The entries of a log from an offset on, as they are committed: an endless async iterator.
 *
 * It survives the loss of a replica without gap or duplicate. Leaving `for await` closes it. Iterating rejects with
 * ReadRefused when the log can no longer be followed, for example because the offset was trimmed.
 */
export class Tail implements AsyncIterableIterator<Entry> {
  readonly #number: number;
  readonly #subscription: Subscription;
  #entries: Entry[] = [];
  #at = 0;
  #ended = false;
  #turn: Promise<unknown> = Promise.resolve();
  #turns = 0;

  constructor(
    private readonly reader: Reader,
    offset: number,
    creditBytes: number,
  ) {
    this.#subscription = new Subscription(offset, creditBytes);
    this.#number = reader.subscribe(this.#subscription);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Entry>> {
    if (this.#turns === 0 && this.#at < this.#entries.length) return { done: false, value: this.#entries[this.#at++]! };
    // Calls that overlap take turns.
    this.#turns++;
    const turn = this.#turn.then(() => this.#advance()).finally(() => this.#turns--);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #advance(): Promise<IteratorResult<Entry>> {
    if (this.#at >= this.#entries.length) {
      const entries = await this.nextEntries();
      if (entries.length === 0) return { done: true, value: undefined };
      this.#entries = entries;
      this.#at = 0;
    }
    return { done: false, value: this.#entries[this.#at++]! };
  }

  /** The next entries. Faster than one by one. None: the tail was closed. */
  async nextEntries(): Promise<Entry[]> {
    if (this.#at < this.#entries.length) {
      const rest = this.#entries.slice(this.#at);
      this.#entries = [];
      this.#at = 0;
      return rest;
    }
    const subscription = this.#subscription;
    for (;;) {
      if (this.#ended) return [];
      const taken = subscription.state.take();
      if (taken !== undefined) {
        this.reader.giveCredit(this.#number, taken.credit);
        if (taken.entries.length > 0) return taken.entries;
      } else if (subscription.failure !== undefined) {
        const reason = subscription.failure;
        void this.return();
        throw readRefused(reason);
      } else {
        await subscription.changed();
      }
    }
  }

  /** Close the tail. */
  return(): Promise<IteratorResult<Entry>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#entries = [];
      this.#at = 0;
      this.reader.endTail(this.#number);
      this.#subscription.onFailure(failure(Code.client_closed, "the tail was closed"));
    }
    return Promise.resolve({ done: true, value: undefined });
  }
}
