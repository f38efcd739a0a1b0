/** The shell around Writer: promises, timers and the connection to the head. */

import { randomBytes } from "node:crypto";

import { Code } from "./codes.js";
import { AppendUnknown, appendRefused, type Failure, failure } from "./errors.js";
import type { Limits } from "./handle.js";
import type { Link, Port } from "./link.js";
import type { Pacing } from "./pacing.js";
import * as wire from "./wire.js";
import { type Action, type Reroute, Writer } from "./writer.js";

/** Entries ordered as one, with `count` consecutive offsets from `baseOffset`. */
export interface Appended {
  readonly baseOffset: number;
  readonly count: number;
}

interface Call {
  /** Called with the offset of the first entry, and the number of the call's entries. */
  resolve: (baseOffset: number, count: number) => void;
  reject: (error: Error) => void;
}

export interface Condition {
  readonly expectedOffset: wire.U64;
  readonly fencingToken: wire.U64;
}

export function randomSession(): bigint {
  return randomBytes(8).readBigUInt64LE() || 1n;
}

export class Appender implements Port {
  link!: Link;
  readonly writer: Writer<Call>;
  #scheduled = false;
  #now = 0;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  #waiters: (() => void)[] = [];
  #closed = false;

  constructor(
    sizeLimits: Limits,
    answerWaitMs: number,
    private readonly pacing: Pacing | undefined,
  ) {
    this.writer = new Writer<Call>(sizeLimits, randomSession, answerWaitMs, pacing);
  }

  // Calls.

  append(entry: Uint8Array, timeoutMs: number, trace?: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      if (!this.#scheduled) this.#schedule();
      const refusal = this.#closed
        ? failure(Code.client_closed)
        : this.writer.append({ resolve, reject }, entry, this.#now + timeoutMs);
      if (refusal !== undefined) reject(appendRefused(refusal));
      else if (trace !== undefined) this.writer.traceLast(trace);
    });
  }

  /** Append entries ordered as one, on a condition if one is given. */
  appendAlone(
    entries: readonly Uint8Array[],
    timeoutMs: number,
    { expectedOffset, fencingToken }: Condition,
    trace?: Uint8Array,
  ): Promise<Appended> {
    return new Promise((resolve, reject) => {
      if (!this.#scheduled) this.#schedule();
      const call: Call = { resolve: (baseOffset, count) => resolve({ baseOffset, count }), reject };
      const deadline = this.#now + timeoutMs;
      const refusal = this.#closed
        ? failure(Code.client_closed)
        : this.writer.appendMany(call, entries, deadline, expectedOffset, fencingToken, trace);
      if (refusal !== undefined) reject(appendRefused(refusal));
    });
  }

  /** Wait until little enough is pending (`Writer.hasRoom`). */
  async waitReady(): Promise<void> {
    while (!this.writer.hasRoom() && !this.#closed) await this.#wait();
  }

  /** Wait until every append has ended. Each ends by its deadline. */
  async waitDrained(): Promise<void> {
    while (this.writer.pendingCalls > 0) await this.#wait();
  }

  close(): void {
    this.#closed = true;
    this.#execute(this.writer.failAll(failure(Code.client_closed)));
    clearTimeout(this.#timer);
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  // Sending.

  /** Send at the end of this turn of the event loop, so that all appends of the turn share a batch. */
  #schedule(): void {
    this.#scheduled = true;
    this.#now = performance.now();
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#closed) return;
    const { connection } = this.link;
    if (connection !== undefined) {
      const frames = this.writer.takeFrames(performance.now());
      if (frames.length > 0) connection.write(frames);
      if (this.writer.hint !== undefined) {
        process.emitWarning(this.writer.hint, { type: "QuorateWarning" });
        this.writer.hint = undefined;
      }
    } else if (this.busy()) {
      this.link.want();
    }
    this.#arm();
  }

  #arm(): void {
    const wakeAt = this.writer.wakeAt();
    if (wakeAt >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = wakeAt;
    // A timer counts whole milliseconds. Rounding up avoids waking too early, and then again.
    this.#timer = setTimeout(
      () => {
        this.#timerAt = Infinity;
        this.#execute(this.writer.onTime(performance.now()));
        this.#flush();
      },
      Math.min(Math.max(0, Math.ceil(wakeAt - performance.now())), 0x7fff_ffff),
    );
  }

  // Port.

  get session(): bigint {
    return this.writer.session;
  }

  onAttached(attached: wire.Attached): Reroute | undefined {
    this.pacing?.renew(this.link.handle.charges, this.link.handle.requestSizeBytes);
    const actions = this.writer.onAttached(attached, 1);
    const how = actions.find((action) => action.type === "reroute");
    this.#execute(actions.filter((action) => action !== how));
    return how;
  }

  onReady(): void {
    this.#flush();
  }

  onFrame(frame: wire.Frame): void {
    const message = wire.decode(frame);
    if (message.kind === wire.Kind.ACKED) {
      this.#execute(this.writer.onAcked(message.acks));
      this.link.progressed();
    } else if (message.kind === wire.Kind.REFUSED && message.op === wire.Kind.APPEND) {
      this.#execute(this.writer.onRefused(message, performance.now()));
    } else if (message.kind === wire.Kind.NOTICE) {
      this.link.sawEpoch(Number(message.epoch));
      this.#execute(this.writer.onNotice(message));
    } else {
      throw new wire.WireError(Code.protocol_error, `unexpected ${wire.kindName(message.kind)}`);
    }
  }

  onRead(): void {
    this.#flush();
  }

  onDetached(reason: Failure): void {
    this.writer.onDetached(reason);
    // Deadlines may pass without a connection.
    this.#arm();
  }

  onHopeless(reason: Failure): void {
    this.#execute(this.writer.failAll(reason));
  }

  awaitsAnswer(): boolean {
    return this.writer.awaitsAnswer();
  }

  busy(): boolean {
    return !this.writer.idle();
  }

  // Actions.

  #execute(actions: readonly Action<Call>[]): void {
    for (const action of actions) {
      if (action.type === "acked") {
        let offset = action.baseOffset;
        if (action.alone) action.calls[0]?.resolve(offset, action.entryCount);
        else for (const call of action.calls) call.resolve(offset++, 1);
      } else if (action.type === "failed") {
        for (const call of action.calls) {
          call.reject(action.unknown ? new AppendUnknown(action.failure) : appendRefused(action.failure));
        }
      } else {
        this.link.reroute(action);
      }
    }
    if (this.#waiters.length > 0 && actions.length > 0) {
      const waiters = this.#waiters;
      this.#waiters = [];
      this.#admit(waiters);
    }
  }

  /** Lets waiters go on, one after the other: each may append before there is a look at the room for the next. */
  #admit(waiters: (() => void)[]): void {
    if (!this.writer.hasRoom() && !this.#closed) {
      this.#waiters = waiters.concat(this.#waiters);
      return;
    }
    waiters.shift()?.();
    if (waiters.length > 0) setImmediate(() => this.#admit(waiters));
  }
}
