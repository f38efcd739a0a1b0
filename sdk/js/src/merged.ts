/** The entries of all partitions of a group, as they are committed (sdk/contract/partitions.md). */

import { setTimeout as sleep } from "node:timers/promises";

import { type Client } from "./client.js";
import { Cursor, mayBegin } from "./cursor.js";
import { type Partitions } from "./handle.js";
import * as limits from "./limits.js";
import { type Tail } from "./reader.js";
import { type Entry } from "./tail.js";

export interface PartitionEntry extends Entry {
  readonly partition: number;
}

/** A merged tail's view of its client. */
export interface Followed {
  readonly groupId: string;
  readonly isRefreshable: boolean;
  partitions(): Partitions;
  /** The newest epoch in which each partition was seen. */
  epochs(): number[];
  reader(partition: number): Client;
  refreshed(atMostMs: number): Promise<Partitions>;
  ended(): void;
}

/**
 * An endless async iterator over the entries of all partitions, each partition's in order.
 *
 * It goes on with partitions that are added, after the entries that come before theirs. Leaving `for await` closes it.
 * Iterating rejects with ReadRefused when a partition can no longer be followed.
 */
export class MergedTail implements AsyncIterableIterator<PartitionEntry> {
  /** By partition: the next offset after what the caller has. */
  readonly #given: number[];
  /** The same for what is ready, which comes in this order. */
  readonly #taken: number[];
  #ready: { partition: number; entries: Entry[] }[] = [];
  #at = 0;
  #problem: unknown;
  #following = 0;
  #tails: Tail[] = [];
  #isEnded = false;
  #waiters: (() => void)[] = [];

  constructor(
    private readonly followed: Followed,
    cursor: Cursor,
  ) {
    this.#given = [...cursor.offsets];
    this.#taken = [...cursor.offsets];
    this.learn();
    if (followed.isRefreshable) void this.#watch();
  }

  /** The place after the entries so far: a tail from here gives the next ones. */
  get cursor(): Cursor {
    return new Cursor(this.followed.groupId, [...this.#given]);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<PartitionEntry>> {
    for (;;) {
      if (this.#isEnded) return { done: true, value: undefined };
      const batch = this.#ready[0];
      if (batch !== undefined && this.#at < batch.entries.length) {
        const entry = batch.entries[this.#at++]!;
        this.#given[batch.partition] = entry.offset + 1;
        return { done: false, value: { partition: batch.partition, ...entry } };
      }
      if (batch !== undefined) {
        this.#ready.shift();
        this.#at = 0;
        this.#wake();
      } else if (this.#problem !== undefined) {
        const problem = this.#problem;
        await this.return();
        throw problem;
      } else {
        await this.#moved();
      }
    }
  }

  /** Close the tail. */
  async return(): Promise<IteratorResult<PartitionEntry>> {
    this.#isEnded = true;
    this.followed.ended();
    this.#wake();
    await Promise.all(this.#tails.map((tail) => tail.return()));
    return { done: true, value: undefined };
  }

  /** @internal Follow the partitions that are new. */
  learn(): void {
    const count = this.followed.partitions().members.length;
    for (; this.#following < count; this.#following++) {
      this.#given[this.#following] ??= 0;
      this.#taken[this.#following] ??= 0;
      void this.#follow(this.#following);
    }
    this.#wake();
  }

  async #follow(partition: number): Promise<void> {
    try {
      while (!mayBegin(partition, this.followed.partitions().changes, this.#taken)) {
        await this.#moved();
        if (this.#isEnded) return;
      }
      const creditBytes = limits.PARTITION_CREDIT_BYTES;
      const tail = this.followed.reader(partition).tail(this.#taken[partition], { creditBytes });
      this.#tails.push(tail);
      for (;;) {
        const entries = await tail.nextEntries();
        if (entries.length === 0) return;
        while (this.#ready.length >= limits.MERGED_BATCHES_MAX && !this.#isEnded) await this.#moved();
        if (this.#isEnded) return;
        this.#ready.push({ partition, entries });
        this.#taken[partition] = entries[entries.length - 1]!.offset + 1;
        this.#wake();
      }
    } catch (problem) {
      // The caller gets it, where it iterates.
      this.#problem ??= problem;
      this.#wake();
    }
  }

  /** Learn of partitions that are added: soon after a partition's epoch has changed, and now and then. */
  async #watch(): Promise<void> {
    let seen = this.followed.epochs().join();
    let looks: number[] = [];
    let due = performance.now() + limits.LAYOUT_WATCH_MS;
    for (;;) {
      await sleep(limits.EPOCH_TICK_MS, undefined, { ref: false });
      if (this.#isEnded) return;
      const now = performance.now();
      const epochs = this.followed.epochs().join();
      if (epochs !== seen) {
        seen = epochs;
        looks = limits.LAYOUT_LOOKS_MS.map((laterMs) => now + laterMs);
      }
      if (now < due && !(looks[0] !== undefined && now >= looks[0])) continue;
      looks.shift();
      due = now + limits.LAYOUT_WATCH_MS;
      const { layout } = this.followed.partitions();
      try {
        const found = await this.followed.refreshed(limits.EPOCH_TICK_MS);
        if (found.layout !== layout) looks = [];
      } catch {
        // The API is away: partitions that are known go on.
      }
    }
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
