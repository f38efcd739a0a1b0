/**
 * Reads spread over all replicas of a group: a connection to each, and windows that say which is asked next.
 *
 * A read that a replica cannot answer is asked elsewhere. Reads that wait for entries, tails, trims and status calls go to
 * the head, as those of clients that do not spread.
 */

import { Code } from "./codes.js";
import { type Failure, failure, ReadRefused } from "./errors.js";
import { type Handles, Link } from "./link.js";
import { Reader } from "./reader.js";
import { Windows } from "./windows.js";
import * as wire from "./wire.js";

const ASK_ANOTHER: readonly number[] = [Code.no_connection, Code.queue_full, Code.group_not_here];

/** A reader of one replica: what it has not answered is asked elsewhere when its connection breaks. */
class ReplicaReader extends Reader {
  override onDetached(reason: Failure): void {
    this.failAll({ ...reason, code: Code.no_connection, retryable: true });
  }

  async leave(): Promise<void> {
    this.onDetached(failure(Code.no_connection, "the replica is not asked any more"));
    this.close();
    await this.link.close();
  }
}

export class SpreadReads {
  /** The offset behind the last entry that this client knows to be committed, by whatever answer. */
  end = 0;
  #version = -1;
  #isClosed = false;
  readonly #readers = new Map<string, ReplicaReader>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #windows = new Windows();

  constructor(private readonly handles: Handles) {}

  /** The answer of a replica; undefined: the head is to be asked. Rejects with ReadRefused as it does. */
  async read(
    build: (request: number) => wire.Read,
    offset: number,
    timeoutMs: number,
  ): Promise<wire.Entries | undefined> {
    const endsAt = performance.now() + timeoutMs;
    const tried = new Set<string>();
    for (;;) {
      const now = performance.now();
      const ready = this.#ready().filter((address) => !tried.has(address));
      const address = this.#windows.choose(now, ready);
      if (address === undefined || now >= endsAt) return undefined;
      try {
        const answer = await this.#ask(address, build, endsAt - now);
        this.note(answer);
        // The replica has not heard of the commitment yet.
        return answer.batches.length === 0 && offset < this.end ? undefined : answer;
      } catch (refused) {
        if (!(refused instanceof ReadRefused) || !ASK_ANOTHER.includes(refused.code)) throw refused;
        tried.add(address);
      }
    }
  }

  note(answer: wire.Entries): void {
    this.end = Math.max(this.end, Number(answer.commitOffset));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const readers = [...this.#readers.values()];
    this.#readers.clear();
    await Promise.all([...this.#leaving, ...readers.map((reader) => reader.leave())]);
  }

  async #ask(address: string, build: (request: number) => wire.Read, timeoutMs: number): Promise<wire.Entries> {
    const begun = performance.now();
    this.#windows.sent(begun, address);
    try {
      const answer = await this.#readers.get(address)!.request<wire.Entries>(wire.Kind.ENTRIES, build, timeoutMs);
      this.#windows.answered(address, performance.now() - begun);
      return answer;
    } catch (problem) {
      if (problem instanceof ReadRefused && !problem.retryable) {
        this.#windows.answered(address, performance.now() - begun);
      } else {
        this.#windows.failed(address);
      }
      throw problem;
    }
  }

  /** Replicas with a connection. Others are dialled meanwhile. */
  #ready(): string[] {
    if (this.#version !== this.handles.version && !this.#isClosed) this.#followHandle();
    const ready: string[] = [];
    for (const [address, reader] of this.#readers) {
      if (reader.link.connection === undefined) reader.link.want();
      else ready.push(address);
    }
    return ready;
  }

  #followHandle(): void {
    this.#version = this.handles.version;
    const addresses = this.handles.handle.addresses();
    for (const address of addresses) {
      if (this.#readers.has(address)) continue;
      const reader = new ReplicaReader();
      reader.link = new Link(reader, this.handles, address);
      this.#readers.set(address, reader);
    }
    for (const [address, reader] of this.#readers) {
      if (addresses.includes(address)) continue;
      this.#readers.delete(address);
      const leaving = reader.leave().finally(() => this.#leaving.delete(leaving));
      this.#leaving.add(leaving);
    }
    this.#windows.keep(addresses);
  }
}
