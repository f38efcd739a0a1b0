/** A client's sending rate: token buckets of the rate that the head reports. Pure. sdk/contract/pacing.md */

/**
 * The client sends this share more than the reported rate. A head reports a rate again only after a change of more than
 * a twentieth, so the true rate may be higher. A head also grants burst capacity only to clients that send more than
 * they have.
 */
export const HEADROOM = 1 / 16;

/**
 * A batch takes no more entries of single appends than pass in this time, in s. A larger one would leave the head's
 * bucket in debt, for which others wait.
 */
const BATCH_S = 0.1;

/** Seconds. A shorter wait comes from rounded sums only. */
const ROUNDING_S = 1e-7;

/** Thousandths of tokens of CPU, network and storage. */
export type Tokens = readonly [number, number, number];

/** The head's charges for batches, and the rates that fill its buckets, from the handle. */
export interface Charges {
  /** The rate at which the buckets get `tokensPerS`. */
  readonly ratePerS: number;
  readonly tokensPerS: Tokens;
  readonly entry: Tokens;
  readonly byte: Tokens;
  /** A batch of fewer entries costs `lacking` for each one that it lacks. */
  readonly fullEntries: number;
  readonly lacking: Tokens;
}

const RESOURCES = [0, 1, 2] as const;

/** The charge of a batch: `entryBytes` are its entries' bytes together. */
export function charge(charges: Charges, entryCount: number, entryBytes: number): Tokens {
  const lacks = Math.max(0, charges.fullEntries - entryCount);
  const of = (i: 0 | 1 | 2) =>
    charges.entry[i] * entryCount + charges.byte[i] * entryBytes + charges.lacking[i] * lacks;
  return [of(0), of(1), of(2)];
}

/** Charges as a handle has them. Throws where they are malformed. */
export function chargesOf(source: unknown): Charges | undefined {
  if (source === undefined || source === null) return undefined;
  const { rate_per_s: ratePerS, tokens_per_s_milli, cost, short_batch: short } = source as Record<string, any>;
  const found = {
    ratePerS: count(ratePerS),
    tokensPerS: tokens(tokens_per_s_milli),
    entry: tokens(cost?.fixed_milli),
    byte: tokens(cost?.per_byte_milli),
    fullEntries: count(short?.entries),
    lacking: tokens(short?.lacking_milli),
  };
  if (found.ratePerS < 1) throw new TypeError("they are for no rate");
  return found;
}

function count(value: unknown): number {
  if (typeof value !== "number" || !(value >= 0)) throw new TypeError(`${String(value)} is no count`);
  return value;
}

function tokens(value: unknown): Tokens {
  if (!Array.isArray(value) || value.length !== 3) throw new TypeError("they are not of three resources");
  return [count(value[0]), count(value[1]), count(value[2])];
}

/**
 * A bucket for each resource, as at the head. Each holds one second of its rate, and starts full. Times are in ms.
 * Without `charges` no append waits. `requestSizeBytes`: of the SLA; 0: not known.
 */
export class Pacing {
  /** Entries of single appends that one batch takes. */
  batchEntriesMax = Infinity;
  #reportedPerS = 0;
  #rates = [0, 0, 0];
  #levels = [0, 0, 0];
  #updated = 0;
  #hinted = false;

  constructor(
    public charges: Charges | undefined,
    public requestSizeBytes = 0,
  ) {}

  /** Take those of a newer handle. The buckets are full where charges have changed. */
  renew(charges: Charges | undefined, requestSizeBytes: number): void {
    this.requestSizeBytes = requestSizeBytes;
    if (JSON.stringify(charges) === JSON.stringify(this.charges)) return;
    this.charges = charges;
    this.batchEntriesMax = Infinity;
    this.#reportedPerS = 0;
  }

  /** A word to the caller about a batch that leaves, the first time that its entries exceed the declared size. */
  hint(entryCount: number, entryBytes: number): string | undefined {
    const size = this.requestSizeBytes;
    if (this.#hinted || size <= 0 || entryBytes <= size * entryCount) return undefined;
    this.#hinted = true;
    const each = Math.floor(entryBytes / entryCount);
    return (
      `entries of ${each} bytes exceed the group's declared request size of ${size}: each takes more of its rate than ` +
      "one request. Resize the group to the size of its entries for a rate that holds."
    );
  }

  /** Tokens of a batch, as many as the head takes. */
  cost(entryCount: number, entryBytes: number): Tokens {
    return this.charges === undefined ? [0, 0, 0] : charge(this.charges, entryCount, entryBytes);
  }

  /** Seconds in which so many entries pass at a reported rate, as one batch. */
  seconds(entryCount: number, entryBytes: number, reportedPerS: number): number {
    const charges = this.charges;
    if (charges === undefined || reportedPerS === 0) return 0;
    const cost = charge(charges, entryCount, entryBytes);
    const share = reportedPerS / charges.ratePerS;
    const parts = RESOURCES.map((i) => (charges.tokensPerS[i] > 0 ? cost[i] / (charges.tokensPerS[i] * share) : 0));
    return Math.max(...parts);
  }

  /** Set the rate. 0: not known, no append waits. Tokens are kept, up to a second of the new rate. */
  setRate(reportedPerS: number, now: number): void {
    const charges = this.charges;
    if (reportedPerS === this.#reportedPerS || charges === undefined) return;
    this.#refill(now);
    const share = (reportedPerS * (1 + HEADROOM)) / charges.ratePerS;
    const isFirst = this.#reportedPerS === 0;
    this.#rates = charges.tokensPerS.map((milli) => milli * share);
    this.#levels = this.#rates.map((rate, i) => (isFirst ? rate : Math.min(this.#levels[i]!, rate)));
    this.#reportedPerS = reportedPerS;
    this.batchEntriesMax = reportedPerS === 0 ? Infinity : this.#batchEntriesMax(charges);
  }

  /**
   * Take the cost and return 0, or return the ms until it can be taken. A batch larger than a bucket passes when the
   * bucket is full and leaves it in debt, as at the head.
   */
  take(now: number, cost: Tokens): number {
    if (this.#reportedPerS === 0) return 0;
    this.#refill(now);
    let waitS = 0;
    for (const i of RESOURCES) {
      const rate = this.#rates[i]!;
      if (rate > 0) waitS = Math.max(waitS, (Math.min(cost[i], rate) - this.#levels[i]!) / rate);
    }
    if (waitS > ROUNDING_S) return waitS * 1_000;
    for (const i of RESOURCES) this.#levels[i]! -= cost[i];
    return 0;
  }

  #batchEntriesMax(charges: Charges): number {
    const each = RESOURCES.map((i) => charges.entry[i] + charges.byte[i] * this.requestSizeBytes);
    const passing = RESOURCES.map((i) => (each[i]! > 0 ? (BATCH_S * this.#rates[i]!) / each[i]! : Infinity));
    const most = Math.min(...passing);
    return Math.max(1, charges.fullEntries, Number.isFinite(most) ? Math.floor(most) : 0);
  }

  /** Add the elapsed time's tokens. A clock that went back adds none. */
  #refill(now: number): void {
    const elapsedS = Math.max(0, now - this.#updated) / 1_000;
    this.#updated = Math.max(this.#updated, now);
    this.#levels = this.#levels.map((level, i) => Math.min(level + elapsedS * this.#rates[i]!, this.#rates[i]!));
  }
}
