/** How fast a client sends: a token bucket of the rate that its group's head tells, pure. sdk/contract/pacing.md */

/**
 * So much more than was told is sent. A head tells a rate anew when it has changed by more than a twentieth, so it may
 * let pass a twentieth more than a client knows of; and it lends to who wants more than it has, which it sees only of
 * who sends more.
 */
export const ABOVE_TOLD = 1 / 16;

/** Tokens. Less is missing only because sums are rounded. */
const ROUNDING = 1e-6;

/**
 * A token is a request of the declared size (`requestSizeBytes`; 0: not known, and nothing waits). The bucket holds one
 * second of its rate, and starts full. Times are in ms.
 */
export class Pacing {
  #toldPerS = 0;
  #ratePerS = 0;
  #level = 0;
  #updated = 0;

  constructor(public requestSizeBytes: number) {}

  /**
   * Tokens of a batch, never more than its head takes: that charges a part for each entry and a part for each byte, and
   * both for each token.
   */
  cost(entryCount: number, entryBytes: number): number {
    if (this.requestSizeBytes <= 0) return 0;
    return Math.min(entryCount, entryBytes / this.requestSizeBytes);
  }

  /** A rate of 0 is not known, and nothing waits. What there is is kept, up to the new rate's second. */
  setRate(toldPerS: number, now: number): void {
    if (toldPerS === this.#toldPerS) return;
    this.#refill(now);
    const ratePerS = toldPerS * (1 + ABOVE_TOLD);
    this.#level = this.#ratePerS > 0 ? Math.min(this.#level, ratePerS) : ratePerS;
    this.#toldPerS = toldPerS;
    this.#ratePerS = ratePerS;
  }

  /**
   * Take the cost, or say in how many ms it can be taken: 0 when it was. What costs more than the bucket holds passes
   * when it is full, and leaves it in debt, as at the head.
   */
  take(now: number, cost: number): number {
    if (this.#ratePerS <= 0 || this.requestSizeBytes <= 0) return 0;
    this.#refill(now);
    const missing = Math.min(cost, this.#ratePerS) - this.#level;
    if (missing > ROUNDING) return (missing / this.#ratePerS) * 1_000;
    this.#level -= cost;
    return 0;
  }

  /** A clock that went back adds nothing. */
  #refill(now: number): void {
    const elapsedS = Math.max(0, now - this.#updated) / 1_000;
    this.#updated = Math.max(this.#updated, now);
    this.#level = Math.min(this.#level + elapsedS * this.#ratePerS, this.#ratePerS);
  }
}
