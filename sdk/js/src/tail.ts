/**
 * Following a log: the state of a subscription. Pure.
 *
 * Offsets are dense, so a tail knows the next one. After a failure it subscribes again from there at any replica. It
 * drops duplicates; a gap is a server's error.
 */

import { Code } from "./codes.js";
import { type Entries, splitEntries, WireError } from "./wire.js";

/** An entry of a log. */
export interface Entry {
  readonly offset: number;
  /** A view of the received bytes. Copy it to keep it for long. */
  readonly data: Buffer;
  /** The head's wall clock when it ordered the entry's batch. */
  readonly timestampUs: number;
}

/**
 * The entries of ENTRIES from `offset` on. Batches arrive whole, so the first may begin before it. Throws WireError when
 * they do not follow one another.
 */
export function entriesFrom(message: Entries, offset: number): Entry[] {
  const entries: Entry[] = [];
  let at = 0;
  let expected = offset;
  for (const batch of message.batches) {
    const base = Number(batch.baseOffset);
    const end = base + batch.entryCount;
    if (base > expected) throw new WireError(Code.protocol_error, `offset ${expected} is missing before ${base}`);
    if (end > expected) {
      const split = splitEntries(message.payload, batch.entryCount, at, at + batch.payloadLen);
      const timestampUs = Number(batch.timestampUs);
      for (let i = expected - base; i < split.length; i++) {
        entries.push({ offset: base + i, data: split[i]!, timestampUs });
      }
      expected = end;
    }
    at += batch.payloadLen;
  }
  return entries;
}

/** A tail's state: the buffer, and the server's credit. */
export class TailState {
  #buffer: { entries: Entry[]; size: number }[] = [];
  #bufferedBytes = 0;
  #owedBytes = 0;

  constructor(
    /** The offset of the next entry from a server. */
    public nextOffset: number,
    readonly creditBytes: number,
  ) {}

  onEntries(message: Entries): void {
    const entries = entriesFrom(message, this.nextOffset);
    const size = message.payload.length;
    this.#bufferedBytes += size;
    this.nextOffset += entries.length;
    this.#buffer.push({ entries, size });
  }

  /** The next entries for the reader, and the credit to return now, in large amounts: each return costs a frame. */
  take(): { entries: Entry[]; credit: number } | undefined {
    const next = this.#buffer.shift();
    if (next === undefined) return undefined;
    this.#bufferedBytes -= next.size;
    this.#owedBytes += next.size;
    if (this.#owedBytes < Math.floor(this.creditBytes / 4)) return { entries: next.entries, credit: 0 };
    const credit = this.#owedBytes;
    this.#owedBytes = 0;
    return { entries: next.entries, credit };
  }

  /** Credit for a new subscription: the buffer's unused space. */
  start(): number {
    this.#owedBytes = 0;
    return Math.max(1, this.creditBytes - this.#bufferedBytes);
  }
}
