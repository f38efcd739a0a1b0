/** A client's sending rate: a token bucket of the rate that the head reports. Pure. sdk/contract/pacing.md */

/**
 * The client sends this share more than the reported rate. A head reports a rate again only after a change of more than
 * a twentieth, so the true rate may be higher. A head also grants burst capacity only to clients that send more than
 * they have.
 */
export const HEADROOM = 1 / 16;

/** Tokens. A smaller shortage comes from rounded sums only. */
const ROUNDING = 1e-6;

/**
 * A token is a request of the declared size (`requestSizeBytes`; 0: not known, and no append waits). The bucket holds
 * one second of its rate, and starts full. Times are in ms.
 */
export class Pacing {
  #reportedPerS = 0;
  #ratePerS = 0;
  #level = 0;
  #updated = 0;
  #hinted = false;

  constructor(public requestSizeBytes: number) {}

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

  /**
   * Tokens of a batch, never more than its head charges. The head charges a part for each entry and a part for each
   * byte, and a token covers both.
   */
  cost(entryCount: number, entryBytes: number): number {
    if (this.requestSizeBytes <= 0) return 0;
    return Math.min(entryCount, entryBytes / this.requestSizeBytes);
  }

  /** Requests of the declared size that these entries are, at most: a head charges larger entries more. */
  requests(entryCount: number, entryBytes: number): number {
    if (this.requestSizeBytes <= 0) return 0;
    return Math.max(entryCount, entryBytes / this.requestSizeBytes);
  }

  /** Set the rate. 0: not known, no append waits. Tokens are kept, up to a second of the new rate. */
  setRate(reportedPerS: number, now: number): void {
    if (reportedPerS === this.#reportedPerS) return;
    this.#refill(now);
    const ratePerS = reportedPerS * (1 + HEADROOM);
    this.#level = this.#ratePerS > 0 ? Math.min(this.#level, ratePerS) : ratePerS;
    this.#reportedPerS = reportedPerS;
    this.#ratePerS = ratePerS;
  }

  /**
   * Take the cost and return 0, or return the ms until it can be taken. A batch larger than the bucket passes when the
   * bucket is full and leaves it in debt, as at the head.
   */
  take(now: number, cost: number): number {
    if (this.#ratePerS <= 0 || this.requestSizeBytes <= 0) return 0;
    this.#refill(now);
    const missing = Math.min(cost, this.#ratePerS) - this.#level;
    if (missing > ROUNDING) return (missing / this.#ratePerS) * 1_000;
    this.#level -= cost;
    return 0;
  }

  /** Add the elapsed time's tokens. A clock that went back adds none. */
  #refill(now: number): void {
    const elapsedS = Math.max(0, now - this.#updated) / 1_000;
    this.#updated = Math.max(this.#updated, now);
    this.#level = Math.min(this.#level + elapsedS * this.#ratePerS, this.#ratePerS);
  }
}
