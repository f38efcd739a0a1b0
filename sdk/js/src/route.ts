/**
 * The next address to dial. Pure. All endpoints of the handle in turn, head first; redirects at once. Each pass over the
 * endpoints begins with a new handle, and a wait that grows exponentially with full jitter.
 */

import * as limits from "./limits.js";

/** Dial `address`, or (without one) ask for a new handle and then ask the route again; after `delayMs`. */
export interface Step {
  readonly address: string | undefined;
  readonly delayMs: number;
}

/** `random` gives numbers in [0, 1). `now` is any monotonic clock in ms. */
export class Route {
  #addresses: string[];
  #remaining: string[];
  #redirect: string | undefined;
  #redirects = 0;
  #attempt = 0;
  #delayMs = 0;
  #delayMinMs = 0;
  #wantsRefresh = false;
  #progressed = false;
  #refreshedAt = -Infinity;

  constructor(
    addresses: readonly string[],
    private readonly canRefresh: boolean,
    private readonly random: () => number,
  ) {
    if (addresses.length === 0) throw new Error("invariant: a handle has endpoints");
    this.#addresses = [...addresses];
    this.#remaining = [...addresses];
  }

  next(now: number): Step {
    const redirect = this.#redirect;
    if (redirect !== undefined) {
      this.#redirect = undefined;
      return { address: redirect, delayMs: this.#takeDelay() };
    }
    if (this.#remaining.length === 0) this.#endPass();
    if (this.#wantsRefresh && this.canRefresh && now - this.#refreshedAt >= limits.REFRESH_INTERVAL_MS_MIN) {
      this.#wantsRefresh = false;
      this.#refreshedAt = now;
      return { address: undefined, delayMs: this.#takeDelay() };
    }
    return { address: this.#remaining.shift()!, delayMs: this.#takeDelay() };
  }

  /** A replica named the head. Without an address the pass continues. */
  redirect(address: string): void {
    if (address === "") return;
    this.#redirect = address;
    if (++this.#redirects > limits.REDIRECTS_AT_ONCE_MAX) this.#backOff();
  }

  /** The handle seems out of date: the next step is a refresh, if possible. */
  wantHandle(): void {
    this.#wantsRefresh = true;
  }

  /** Wait as a server asked before the next dial. */
  waitAtLeast(delayMs: number): void {
    this.#delayMinMs = Math.max(this.#delayMinMs, Math.min(delayMs, limits.BACKOFF_MAX_MS));
  }

  /** A new handle has arrived. */
  replace(addresses: readonly string[]): void {
    this.#addresses = [...addresses];
    this.#remaining = [...addresses];
  }

  /** The connection is attached. When it breaks, its address is dialled first. */
  attached(address: string): void {
    this.#redirect = undefined;
    this.#wantsRefresh = false;
    this.#delayMs = this.#delayMinMs = 0;
    this.#progressed = false;
    this.#remaining = [address, ...this.#addresses.filter((other) => other !== address)];
  }

  /** The connection has answered: waits start small again. */
  progressed(): void {
    this.#progressed = true;
    this.#attempt = this.#redirects = 0;
  }

  /** The attached connection broke. If it never answered, its address is dialled again only after a wait. */
  lost(): void {
    if (!this.#progressed) this.#backOff();
  }

  /** Dial the others before this one. */
  avoid(address: string): void {
    this.#remaining = this.#remaining.filter((other) => other !== address);
  }

  #endPass(): void {
    this.#remaining = [...this.#addresses];
    this.#wantsRefresh = true;
    this.#backOff();
  }

  #backOff(): void {
    const ceiling = Math.min(limits.BACKOFF_MAX_MS, limits.BACKOFF_BASE_MS * 2 ** this.#attempt);
    this.#attempt++;
    this.#delayMs = ceiling * this.random();
  }

  #takeDelay(): number {
    const delayMs = Math.max(this.#delayMs, this.#delayMinMs);
    this.#delayMs = this.#delayMinMs = 0;
    return delayMs;
  }
}

/** The route to one replica: it goes nowhere else, and leaves handles to other links. */
export class OneAddress extends Route {
  constructor(address: string, random: () => number) {
    super([address], false, random);
  }

  override redirect(): void {
    // Another link goes there.
  }

  override replace(): void {
    // The address is that of a replica, whatever the handle.
  }
}
