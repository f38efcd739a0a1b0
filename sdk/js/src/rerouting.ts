/** Appends across a change of partitions (sdk/contract/partitions.md, "Layouts, and growth"). Pure. */

import { partitionOf } from "./keys.js";

/** The place of an appended entry. */
export interface Placed {
  readonly partition: number;
  readonly offset: number;
}

/** An append, until it has its outcome. */
export interface Call {
  /** In the order of the calls. */
  readonly number: number;
  readonly entry: Uint8Array;
  readonly key: Uint8Array | string | undefined;
  /** The caller's choice. */
  readonly partition: number | undefined;
  readonly endsAt: number;
  readonly resolve: (placed: Placed) => void;
  readonly reject: (reason: unknown) => void;
}

export const CALLS_IN_A_ROW = 128;

/** The appends that are under way, and those that wait for another layout. */
export class Rerouting {
  underWay = 0;
  /** A head has refused this layout: nothing is sent until there is another. */
  isChanging = false;
  #held: Call[] = [];
  #turn = 0;

  constructor(public partitions: number) {}

  /** The partition to append to. Calls without a key take turns, some in a row so that they share batches. */
  place(call: Pick<Call, "key" | "partition">): number {
    if (call.partition !== undefined) return call.partition;
    if (call.key !== undefined) return partitionOf(call.key, this.partitions);
    this.#turn++;
    return Math.floor(this.#turn / CALLS_IN_A_ROW) % this.partitions;
  }

  /** The call did not happen, and waits for another layout. */
  hold(call: Call): void {
    this.#held.push(call);
  }

  /** Whether everything that was sent under the layout has its outcome. */
  get isDrained(): boolean {
    return this.underWay === 0;
  }

  get held(): number {
    return this.#held.length;
  }

  /** Calls whose deadlines have passed. They did not happen. */
  takeLate(now: number): Call[] {
    const late = this.#held.filter((call) => call.endsAt <= now);
    this.#held = this.#held.filter((call) => call.endsAt > now);
    return late;
  }

  /** Another layout. Returns what is to be appended now, in the order of the calls. */
  use(partitions: number): Call[] {
    this.partitions = partitions;
    return this.giveUp().sort((one, other) => one.number - other.number);
  }

  /** There will be no other layout. Returns what did not happen. */
  giveUp(): Call[] {
    this.isChanging = false;
    const held = this.#held;
    this.#held = [];
    return held;
  }
}
