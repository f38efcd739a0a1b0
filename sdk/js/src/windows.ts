/**
 * How reads are spread over replicas: a window for each, adapted to latency as in FAST-TCP. Pure: (state, event, now).
 *
 * The window of a replica grows while it answers as quickly as the quickest, and shrinks while it is slower. The next
 * read goes where the least is under way, by latency and window. `sdk/contract/reading.md` has the rule, which all SDKs share.
 */

import * as limits from "./limits.js";

interface Replica {
  window: number;
  outstanding: number;
  latencyMs: number | undefined;
  askedAt: number;
  /** Its latency is long ago: the next answer says all. */
  isProbed: boolean;
}

/** `now` is any monotonic clock in ms; replicas are named by their addresses. */
export class Windows {
  readonly #replicas = new Map<string, Replica>();

  /** The replica of the next read among those that are ready; undefined: there is none. */
  choose(now: number, ready: Iterable<string>): string | undefined {
    let best: string | undefined;
    let forgotten: string | undefined;
    for (const address of ready) {
      const one = this.#of(address);
      if (isForgotten(one, now)) {
        if (forgotten === undefined || one.askedAt < this.#of(forgotten).askedAt) forgotten = address;
      }
      if (best === undefined || isBefore(one, this.#of(best))) best = address;
    }
    return forgotten ?? best;
  }

  sent(now: number, address: string): void {
    const replica = this.#of(address);
    replica.isProbed ||= isForgotten(replica, now);
    replica.outstanding++;
    replica.askedAt = now;
  }

  answered(address: string, latencyMs: number): void {
    const replica = this.#replicas.get(address);
    if (replica === undefined) return;
    const isUsed = 2 * replica.outstanding >= replica.window;
    replica.outstanding = Math.max(0, replica.outstanding - 1);
    const wasProbed = replica.isProbed;
    replica.isProbed = false;
    const before = wasProbed ? latencyMs : (replica.latencyMs ?? latencyMs);
    replica.latencyMs = before + limits.READ_LATENCY_PART * (latencyMs - before);
    const quickness = this.#quickestMs() / Math.max(replica.latencyMs, 1e-6);
    if (wasProbed) replica.window = Math.max(replica.window, quickness * limits.READ_WINDOW_FIRST);
    const aim = quickness * replica.window + limits.READ_WINDOW_MORE;
    const window = Math.min(2 * replica.window, (replica.window + aim) / 2, limits.READS_OUTSTANDING_MAX);
    if (window < replica.window || isUsed) replica.window = window;
  }

  /** The read was not answered: its replica begins again. */
  failed(address: string): void {
    const replica = this.#replicas.get(address);
    if (replica === undefined) return;
    replica.outstanding = Math.max(0, replica.outstanding - 1);
    replica.window = limits.READ_WINDOW_FIRST;
    replica.latencyMs = undefined;
  }

  window(address: string): number {
    return this.#replicas.get(address)?.window ?? limits.READ_WINDOW_FIRST;
  }

  /** Forget all other replicas. */
  keep(addresses: readonly string[]): void {
    for (const address of this.#replicas.keys()) {
      if (!addresses.includes(address)) this.#replicas.delete(address);
    }
  }

  #of(address: string): Replica {
    let replica = this.#replicas.get(address);
    if (replica === undefined) {
      replica = {
        window: limits.READ_WINDOW_FIRST,
        outstanding: 0,
        latencyMs: undefined,
        askedAt: -Infinity,
        isProbed: false,
      };
      this.#replicas.set(address, replica);
    }
    return replica;
  }

  #quickestMs(): number {
    let least = Infinity;
    for (const { latencyMs } of this.#replicas.values()) least = Math.min(least, latencyMs ?? Infinity);
    return least;
  }
}

function isForgotten(replica: Replica, now: number): boolean {
  return replica.outstanding === 0 && now - replica.askedAt >= limits.READ_PROBE_MS;
}

/** The latency, times the part of the window that one more read would fill. */
function loadMs(replica: Replica): number {
  return ((replica.latencyMs ?? 0) * (replica.outstanding + 1)) / replica.window;
}

function isBefore(one: Replica, other: Replica): boolean {
  const difference = loadMs(one) - loadMs(other);
  return difference < 0 || (difference === 0 && one.outstanding < other.outstanding);
}
