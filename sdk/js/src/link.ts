/**
 * Keeps one connection to a group's replicas alive: dials the route's address, attaches, starts again.
 *
 * The shell around `Route`: it owns the clock, the sockets and the waits. Its port (an Appender or a Reader) sends and
 * receives the frames.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Code, CODES } from "./codes.js";
import { Connection, type ConnectionUser, log } from "./connection.js";
import { ConnectFailed, type Failure, failure } from "./errors.js";
import { Handle, type HandleLike } from "./handle.js";
import * as limits from "./limits.js";
import { OneAddress, Route } from "./route.js";
import * as wire from "./wire.js";
import { type Reroute, reroute } from "./writer.js";

/** No replica takes the token. */
const TOKEN_REFUSED: ReadonlySet<number> = new Set([Code.token_invalid, Code.token_expired, Code.token_revoked]);

/** The current handle, shared by a client's links. One caller at a time refreshes it. */
export class Handles {
  version = 0;
  /** The newest epoch in any answer. Replicas with an older one are stale. */
  epoch: number;
  #refreshing: Promise<void> | undefined;

  constructor(
    public handle: Handle,
    private readonly source: (() => Promise<HandleLike> | HandleLike) | undefined,
  ) {
    this.epoch = handle.epoch;
  }

  get refreshable(): boolean {
    return this.source !== undefined;
  }

  expiresSoon(): boolean {
    const expires = this.handle.tokenExpiresAt?.getTime();
    return expires !== undefined && expires - Date.now() < limits.TOKEN_MARGIN_MS;
  }

  /** Get a newer handle than the one of `knownVersion`. The source's errors pass through. */
  async refresh(knownVersion: number): Promise<void> {
    if (this.source === undefined || this.version > knownVersion) return;
    this.#refreshing ??= this.#fetch().finally(() => (this.#refreshing = undefined));
    await this.#refreshing;
  }

  async #fetch(): Promise<void> {
    const timer = new AbortController();
    const late = sleep(limits.TIMEOUT_MS_DEFAULT, undefined, { signal: timer.signal, ref: false }).then(() => {
      throw new Error("it took too long");
    });
    late.catch(() => undefined);
    try {
      this.handle = Handle.parse(await Promise.race([this.source!(), late]));
    } finally {
      timer.abort();
    }
    this.epoch = Math.max(this.epoch, this.handle.epoch);
    this.version++;
  }
}

/** The user of a link's connection. */
export interface Port {
  readonly session: bigint;
  onAttached(attached: wire.Attached): Reroute | undefined;
  /** The link has an attached connection from now on. */
  onReady(): void;
  onFrame(frame: wire.Frame): void;
  onRead(): void;
  onDetached(reason: Failure): void;
  /** No retry will help: fail every waiting call. The next call starts the link again. */
  onHopeless(reason: Failure): void;
  awaitsAnswer(): boolean;
  /** Whether the port needs a connection now. */
  busy(): boolean;
}

interface Waiter {
  resolve: () => void;
  reject: (error: Error) => void;
}

export class Link implements ConnectionUser {
  /** The reason why the link is not attached. */
  reason: Failure = failure(Code.no_connection, "not connected yet");
  #route: Route;
  #seenVersion: number;
  #waiters = new Set<Waiter>();
  #connection: Connection | undefined;
  #address = "";
  #attached = false;
  #closing = new AbortController();
  #running: Promise<void> | undefined;
  #hopeless = false;
  #rejections = 0;
  #left = false;
  /** The address whose dial or connection failed last, or which reported that it is isolated. */
  #unreachable = "";
  /** Set while attached to a follower whose head is unreachable. It sends a notice of a new head at once. */
  #waiting: NodeJS.Timeout | undefined;

  constructor(
    private readonly port: Port,
    private readonly handles: Handles,
    /** The address of the one replica to connect to. */
    private readonly only?: string,
  ) {
    this.#seenVersion = handles.version;
    this.#route = this.#newRoute();
  }

  // Calls of the port and the client.

  /** The current handle. */
  get handle(): Handle {
    return this.handles.handle;
  }

  /** The attached connection, or undefined. */
  get connection(): Connection | undefined {
    return this.#attached && this.#connection?.closing === false ? this.#connection : undefined;
  }

  /** The port has work: connect unless connected. */
  want(): void {
    if (this.#closing.signal.aborted) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // A call may have come while the loop was about to end.
      if (this.#wanted()) this.want();
    });
  }

  /** Connect and attach. Rejects with ConnectFailed. */
  async waitAttached(timeoutMs: number): Promise<void> {
    if (this.#attached) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        waiter.reject(new ConnectFailed({ ...this.reason, retryable: true }));
      }, timeoutMs);
      const end = (finish: () => void) => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        finish();
      };
      const waiter: Waiter = { resolve: () => end(resolve), reject: (error) => end(() => reject(error)) };
      this.#waiters.add(waiter);
      this.want();
    });
  }

  /** The connection has answered. */
  progressed(): void {
    this.#route.progressed();
  }

  sawEpoch(epoch: number): void {
    this.handles.epoch = Math.max(this.handles.epoch, epoch);
  }

  /** Leave the connection for another. */
  reroute(how: Reroute): void {
    log("leaving %s: %s", this.#address, how.reason);
    if (how.to !== "again") this.#route.avoid(this.#address);
    if (how.to === "head") this.#route.redirect(how.address);
    if (how.to === "handle") this.#lookElsewhere();
    this.#left = true;
    this.#connection?.close(failure(Code.no_connection, `left ${this.#address}: ${how.reason}`));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#connection?.detach();
    await this.#running;
    for (const waiter of this.#waiters) waiter.reject(new ConnectFailed(failure(Code.client_closed)));
  }

  // The loop.

  #wanted(): boolean {
    return !this.#closing.signal.aborted && (this.port.busy() || this.#waiters.size > 0);
  }

  /** Runs while the port needs a connection, and while there is one. */
  async #run(): Promise<void> {
    this.#hopeless = false;
    do {
      const address = await this.#nextAddress();
      if (address !== undefined && !this.#closing.signal.aborted) await this.#use(address);
    } while (!this.#hopeless && this.#wanted());
  }

  #newRoute(): Route {
    if (this.only !== undefined) return new OneAddress(this.only, Math.random);
    return new Route(this.handles.handle.addresses(), this.handles.refreshable, Math.random);
  }

  /** Wait as the route says, then return the address to dial; undefined after a refresh. */
  async #nextAddress(): Promise<string | undefined> {
    if (this.handles.expiresSoon()) this.#route.wantHandle();
    const step = this.#route.next(performance.now());
    if (step.delayMs > 0) {
      await sleep(step.delayMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
    if (step.address !== undefined) return step.address;
    try {
      await this.handles.refresh(this.#seenVersion);
    } catch (problem) {
      this.#note(`no new handle: ${problem instanceof Error ? problem.message : String(problem)}`);
      if (problem instanceof Error && "status" in problem && problem.status === 404) {
        // The API's answer: waiting does not bring it back.
        const message = "the group was deleted, or the API key may not see it any more";
        this.#giveUp(failure(Code.group_not_here, message));
      }
    }
    if (this.handles.version !== this.#seenVersion) {
      this.#seenVersion = this.handles.version;
      this.#route.replace(this.handles.handle.addresses());
    }
    return undefined;
  }

  /** Dial, attach, and wait until the connection ends. */
  async #use(address: string): Promise<void> {
    this.#address = address;
    this.#left = false;
    const connection = new Connection(address, this, this.handles.handle, this.port.session);
    this.#connection = connection;
    const reason = await connection.closed;
    const wasAttached = this.#attached;
    this.#attached = false;
    this.#connection = undefined;
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
    if (!this.#left && (reason.code === Code.no_connection || reason.code === Code.server_untrusted)) {
      this.#unreachable = address;
    }
    this.#note(`${address}: ${reason.message}`);
    if (wasAttached) {
      this.#route.lost();
      if (connection.silent || reason.code !== Code.no_connection) this.#route.avoid(address);
      this.port.onDetached(this.reason);
    }
    if (reason.code === Code.server_untrusted) {
      this.#route.avoid(address);
      this.#route.wantHandle();
      this.#onRejected({ ...reason, message: `${address}: ${reason.message}` });
    }
    if (reason.code === Code.unsupported_version || reason.code === Code.tls_required) this.#giveUp(reason);
  }

  #note(message: string): void {
    log("no connection: %s", message);
    if (!this.#hopeless) this.reason = failure(Code.no_connection, message, true);
  }

  #giveUp(reason: Failure): void {
    this.#hopeless = true;
    this.reason = reason;
    this.#route = this.#newRoute();
    for (const waiter of this.#waiters) waiter.reject(new ConnectFailed(reason));
    this.port.onHopeless(reason);
  }

  // Events of the connection.

  onAttached(attached: wire.Attached): void {
    const epoch = Number(attached.epoch);
    if (epoch < this.handles.epoch) {
      this.reroute(reroute("other", `its epoch ${epoch} is not the newest`));
      return;
    }
    this.handles.epoch = epoch;
    const how = this.port.onAttached(attached);
    if (how !== undefined) {
      this.#waitOrLeave(how);
      return;
    }
    log("attached to %s in epoch %d", this.#address, epoch);
    this.#attached = true;
    this.#rejections = 0;
    this.#unreachable = "";
    this.#route.attached(this.#address);
    for (const waiter of this.#waiters) waiter.resolve();
    this.port.onReady();
  }

  onAttachRefused(refused: wire.Refused): void {
    const reason = failure(refused.code, refused.message, refused.retry !== wire.RetryHint.NEVER);
    this.#connection?.close({ ...reason, message: describe(refused) });
    this.#route.avoid(this.#address);
    switch (refused.retry) {
      case wire.RetryHint.HEAD:
        this.#route.redirect(refused.head);
        break;
      case wire.RetryHint.HERE:
        this.#route.waitAtLeast(refused.retryAfterMs);
        break;
      case wire.RetryHint.HANDLE:
        if (refused.code === Code.cut_off) {
          this.#lookElsewhere();
          break;
        }
        this.#route.wantHandle();
        if (TOKEN_REFUSED.has(refused.code)) this.#onRejected(reason);
        break;
      default:
        this.#giveUp(reason);
    }
  }

  /** The handle is refused, and so it would be at any replica. A fresh one may be refused once during a key rotation. */
  #onRejected(reason: Failure): void {
    this.#rejections++;
    if (this.handles.refreshable && this.#rejections <= 2) return;
    this.#rejections = 0;
    this.#giveUp({ ...reason, retryable: false });
  }

  onFrame(frame: wire.Frame): void {
    if (this.#waiting === undefined) {
      this.port.onFrame(frame);
      return;
    }
    const message = wire.decode(frame);
    if (message.kind !== wire.Kind.NOTICE) {
      throw new wire.WireError(Code.protocol_error, `unexpected ${wire.kindName(message.kind)}`);
    }
    this.sawEpoch(Number(message.epoch));
    const isHead = message.role === wire.Role.HEAD || message.role === wire.Role.SOLE;
    const head = isHead ? this.#address : message.head;
    if (head !== "" && head !== this.#unreachable) this.reroute(reroute("head", "there is a new head", head));
  }

  // A dead or isolated head.

  /** Treat the head here, which is isolated or no member any more, as an unreachable one: others may still name it. */
  #lookElsewhere(): void {
    this.#route.avoid(this.#address);
    this.#route.wantHandle();
    this.#unreachable = this.#address;
  }

  /**
   * Leave a replica that is not the head, or wait there if the head that it names is unreachable. Its notice of the new
   * head comes sooner than an answer of replicas asked in turn with growing delays.
   */
  #waitOrLeave(how: Reroute): void {
    if (how.to !== "head" || how.address === "" || how.address !== this.#unreachable) {
      this.reroute(how);
      return;
    }
    log("waiting at %s for a new head", this.#address);
    this.#waiting = setTimeout(() => this.reroute(how), limits.NEW_HEAD_WAIT_MS_MAX);
  }

  onRead(): void {
    if (this.#attached) this.port.onRead();
  }

  awaitsAnswer(): boolean {
    return this.#attached && this.port.awaitsAnswer();
  }
}

function describe(refused: wire.Refused): string {
  const name = CODES.get(refused.code)?.name ?? String(refused.code);
  return `attach refused: ${name}${refused.message && ` (${refused.message})`}`;
}
