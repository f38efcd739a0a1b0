/** The client of a group with partitions: append by key, read one partition, tail all of them. */

import { setTimeout as sleep } from "node:timers/promises";

import { checkEntry, checkTimeout, Client, type ConnectOptions } from "./client.js";
import { Code } from "./codes.js";
import { Cursor } from "./cursor.js";
import {
  appendRefused,
  AppendRefused,
  ConnectFailed,
  failure,
  type Failure,
  HandleError,
  QuorateError,
} from "./errors.js";
import { Handle, type HandleLike, type Partitions } from "./handle.js";
import { KEY_HASH } from "./keys.js";
import * as limits from "./limits.js";
import { MergedTail } from "./merged.js";
import { type Call, type Placed, Rerouting } from "./rerouting.js";

export interface PartitionedAppendOptions {
  /** Entries of one key have one order. Text is encoded as UTF-8. Without it partitions take turns. */
  key?: Uint8Array | string;
  /** A partition of your choice, instead of a key's. */
  partition?: number;
  timeoutMs?: number;
}

/**
 * Connect to all partitions of a group, each when it is first used. A group without partitions has one.
 *
 * `refresh` is needed to follow a group whose partitions grow: without it appends are refused with `layout_changed` then.
 * Rejects with ConnectFailed when no partition can be reached in time, with HandleError for a malformed handle or an
 * unknown key hash.
 */
export async function connectPartitioned(
  handle: HandleLike,
  options: Omit<ConnectOptions, "readOnly"> = {},
): Promise<PartitionedClient> {
  const client = new PartitionedClient(Handle.parse(handle), options);
  try {
    await client.connected();
  } catch (error) {
    await client.close({ drain: false });
    throw error;
  }
  return client;
}

/** The client that `connectPartitioned` returns. Call `close` at the end, or use it with `await using`. */
export class PartitionedClient {
  readonly #options: Omit<ConnectOptions, "readOnly">;
  readonly #timeoutMs: number;
  #handle: Handle;
  #partitions: Partitions;
  /** The layout by which keys find their partitions: the one that the writers' tokens name. */
  #writing: Partitions;
  readonly #writers = new Map<number, Client>();
  readonly #readers = new Map<number, Client>();
  readonly #rerouting: Rerouting;
  readonly #tails = new Set<MergedTail>();
  #calls = 0;
  #refreshing: Promise<void> | undefined;
  #refreshedAt = -Infinity;
  #changing: Promise<void> | undefined;
  #waiters: (() => void)[] = [];
  #isClosed = false;

  /** @internal Use `connectPartitioned`. */
  constructor(handle: Handle, options: Omit<ConnectOptions, "readOnly">) {
    this.#options = options;
    this.#timeoutMs = checkTimeout(options.timeoutMs ?? limits.TIMEOUT_MS_DEFAULT);
    this.#handle = handle;
    this.#writing = this.#partitions = partitionsOf(handle);
    this.#rerouting = new Rerouting(this.#partitions.members.length);
  }

  /** The current handle. A refresh replaces it. */
  get handle(): Handle {
    return this.#handle;
  }

  /** The number of partitions that keys are divided among. */
  get partitions(): number {
    return this.#partitions.members.length;
  }

  // Appending.

  /**
   * Append one entry to its key's partition. Resolves with partition and offset.
   *
   * Entries of one key have the order of the calls, also while partitions are added. Many appends may be outstanding; see
   * `Client.append`, which rejects for the same reasons.
   */
  append(entry: Uint8Array, options: PartitionedAppendOptions = {}): Promise<Placed> {
    const { key, partition, timeoutMs = this.#timeoutMs } = options;
    if (key !== undefined && partition !== undefined) throw new TypeError("give a key or a partition, not both");
    if (partition !== undefined) this.#checkPartition(partition);
    // A copy: the call may wait for another layout.
    const copy = Buffer.from(checkEntry(entry));
    const endsAt = performance.now() + checkTimeout(timeoutMs);
    return new Promise((resolve, reject) => {
      const call: Call = { number: ++this.#calls, entry: copy, key, partition, endsAt, resolve, reject };
      if (!this.#rerouting.isChanging) this.#send(call);
      else if (this.#rerouting.held < limits.PENDING_CALLS_READY) this.#rerouting.hold(call);
      else reject(appendRefused(failure(Code.queue_full, "partitions are being added, and many appends wait", true)));
    });
  }

  /** Wait until few enough appends are outstanding in every partition: back-pressure for a producer in a loop. */
  async ready(): Promise<void> {
    while (this.#rerouting.isChanging) await this.#moved();
    for (const writer of [...this.#writers.values()]) await writer.ready();
  }

  #send(call: Call): void {
    const partition = this.#rerouting.place(call);
    let sent: Promise<number>;
    try {
      const timeoutMs = Math.max(call.endsAt - performance.now(), 1);
      sent = this.#writer(partition).append(call.entry, { timeoutMs });
    } catch (problem) {
      call.reject(problem);
      return;
    }
    this.#rerouting.underWay++;
    sent.then(
      (offset) => this.#sent(() => call.resolve({ partition, offset })),
      (problem: unknown) => this.#sent(() => this.#refused(call, problem)),
    );
  }

  #sent(settle: () => void): void {
    this.#rerouting.underWay--;
    settle();
    this.#wake();
  }

  #refused(call: Call, problem: unknown): void {
    const isOther = problem instanceof AppendRefused && problem.code === Code.layout_changed;
    if (!isOther || this.#options.refresh === undefined || this.#isClosed) {
      call.reject(problem);
      return;
    }
    this.#rerouting.hold(call);
    this.#beginChange();
  }

  #writer(partition: number): Client {
    const known = this.#writers.get(partition);
    if (known !== undefined) return known;
    const handle = memberOf(this.#writing, partition);
    const { layout } = this.#writing;
    // Under another layout a batch could be ordered in a partition that its key has left.
    const refresh = async () => {
      const found = await this.refreshed();
      const member = found.members[partition]!;
      return found.layout === layout ? member : member.withToken(handle.token);
    };
    const writer = this.#make(handle, refresh);
    this.#writers.set(partition, writer);
    return writer;
  }

  #make(handle: Handle, refresh: () => Promise<Handle>): Client {
    const { refresh: source, ...options } = this.#options;
    return new Client(handle, source === undefined ? options : { ...options, refresh });
  }

  // Another layout.

  #beginChange(): void {
    this.#rerouting.isChanging = true;
    this.#changing ??= this.#changeLayout().finally(() => {
      this.#changing = undefined;
      this.#wake();
    });
  }

  async #changeLayout(): Promise<void> {
    try {
      while (!this.#rerouting.isDrained) await this.#moved();
      await this.#awaitLayout(this.#writing.layout);
      this.#writing = this.#partitions;
      const former = [...this.#writers.values()];
      this.#writers.clear();
      for (const writer of former) void writer.close({ drain: false });
      for (const call of this.#rerouting.use(this.partitions)) this.#send(call);
    } catch (problem) {
      for (const call of this.#rerouting.giveUp()) {
        call.reject(appendRefused(failure(Code.layout_changed, String(problem))));
      }
    }
  }

  /** Ask for handles until the layout is another, or nobody waits for it. Throws HandleError for an unknown key hash. */
  async #awaitLayout(former: number): Promise<void> {
    let waitMs = limits.LAYOUT_POLL_MS_MIN;
    while (this.#partitions.layout === former) {
      const late = appendRefused(failure(Code.deadline_exceeded, "partitions were being added", true));
      for (const call of this.#rerouting.takeLate(performance.now())) call.reject(late);
      if (this.#rerouting.held === 0 || this.#isClosed) return; // the next append finds out again
      try {
        await this.refreshed(0);
      } catch (problem) {
        if (problem instanceof HandleError) throw problem;
        // The API is away: deadlines end this.
      }
      if (this.#partitions.layout !== former) return;
      await sleep(waitMs);
      waitMs = Math.min(2 * waitMs, limits.LAYOUT_POLL_MS_MAX);
    }
  }

  /** @internal The partitions by a handle that is `atMostMs` old. One request serves all partitions' clients. */
  async refreshed(atMostMs: number = limits.REFRESH_INTERVAL_MS_MIN): Promise<Partitions> {
    if (performance.now() - this.#refreshedAt >= atMostMs) {
      this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
      await this.#refreshing;
    }
    return this.#partitions;
  }

  async #refresh(): Promise<void> {
    const handle = Handle.parse(await this.#options.refresh!());
    this.#refreshedAt = performance.now();
    const partitions = partitionsOf(handle);
    if (partitions.layout < this.#partitions.layout) return; // an API process has not heard of the growth
    this.#handle = handle;
    this.#partitions = partitions;
    if (partitions.layout > this.#writing.layout) this.#beginChange();
    for (const tail of this.#tails) tail.learn();
  }

  // Reading.

  /** The client of one partition, to read, tail, trim and ask for its status. Append by this client alone. */
  partition(number: number): Client {
    this.#checkPartition(number);
    let reader = this.#readers.get(number);
    if (reader === undefined) {
      const refresh = async () => (await this.refreshed()).members[number]!;
      reader = this.#make(memberOf(this.#partitions, number), refresh);
      this.#readers.set(number, reader);
    }
    return reader;
  }

  /**
   * Follow all partitions from a cursor on, or from the beginning: `for await (const entry of client.tail(cursor))`.
   *
   * `tail.cursor` is the place after the entries so far. Entries of a key come in their order, also across growths. Throws
   * CursorError for a cursor of another group, or of more partitions than there are.
   */
  tail(cursor: Cursor | string = Cursor.beginning(this.#handle.groupId)): MergedTail {
    const parsed = typeof cursor === "string" ? Cursor.parse(cursor) : cursor;
    const tail: MergedTail = new MergedTail(
      {
        groupId: this.#handle.groupId,
        isRefreshable: this.#options.refresh !== undefined,
        partitions: () => this.#partitions,
        epochs: () => [...this.#readers.values()].map((reader) => reader.epoch),
        reader: (number) => this.partition(number),
        refreshed: (atMostMs) => this.refreshed(atMostMs),
        ended: () => this.#tails.delete(tail),
      },
      parsed.within(this.#handle.groupId, this.partitions),
    );
    this.#tails.add(tail);
    return tail;
  }

  #checkPartition(number: number): void {
    if (Number.isInteger(number) && number >= 0 && number < this.partitions) return;
    throw new RangeError(`the group has ${this.partitions} partitions, numbered from 0; ${number} is none`);
  }

  // Opening and closing.

  /** @internal Until one partition is reached. Others may be away. */
  async connected(): Promise<void> {
    const endsAt = performance.now() + this.#timeoutMs;
    let last: unknown;
    for (let number = 0; number < this.partitions; number++) {
      try {
        return await this.partition(number).connected(true);
      } catch (problem) {
        if (!(problem instanceof QuorateError) || performance.now() >= endsAt) throw problem;
        last = problem;
      }
    }
    throw last;
  }

  /** Disconnect. With `drain` (the default), first wait for the outstanding appends, which end by their deadlines. */
  async close({ drain = true }: { drain?: boolean } = {}): Promise<void> {
    while (drain && (this.#rerouting.isChanging || !this.#rerouting.isDrained)) await this.#moved();
    this.#isClosed = true;
    for (const call of this.#rerouting.giveUp()) call.reject(appendRefused(failure(Code.client_closed)));
    for (const tail of [...this.#tails]) await tail.return();
    const clients = [...this.#writers.values(), ...this.#readers.values()];
    await Promise.all(clients.map((client) => client.close({ drain: false })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #moved(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}

/** The partitions of a handle; a group without any has one. Throws HandleError for a key hash that is not known. */
export function partitionsOf(handle: Handle): Partitions {
  const { partitions } = handle;
  if (partitions === undefined) return { keyHash: KEY_HASH, layout: 0, changes: [], members: [handle] };
  if (partitions.keyHash !== KEY_HASH) {
    throw new HandleError(
      `the group's keys are hashed by version ${partitions.keyHash}, and this SDK knows version ${KEY_HASH}: upgrade it`,
    );
  }
  return partitions;
}

/** The handle of one partition. Throws ConnectFailed for one without servers. */
function memberOf(partitions: Partitions, number: number): Handle {
  const member = partitions.members[number]!;
  if (member.endpoints.length > 0) return member;
  const reason: Failure = failure(Code.no_connection, `partition ${number} has no servers now`, true);
  throw new ConnectFailed(reason);
}
