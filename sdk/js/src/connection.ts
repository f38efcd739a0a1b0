/** One TCP connection to one replica: handshake, frames in and out, liveness. It never retries. */

import type { Socket } from "node:net";
import { debuglog } from "node:util";

import { Code } from "./codes.js";
import { type Failure, failure } from "./errors.js";
import { type Handle, splitAddress } from "./handle.js";
import * as limits from "./limits.js";
import { dial, failureOf } from "./trust.js";
import { CLIENT_NAME } from "./version.js";
import * as wire from "./wire.js";

/** Shown with `NODE_DEBUG=quorate`. */
export const log = debuglog("quorate");

/** The channel of the connection's one group. */
export const CHANNEL = 1;

/** Receives a connection's events. */
export interface ConnectionUser {
  onAttached(attached: wire.Attached): void;
  onAttachRefused(refused: wire.Refused): void;
  onFrame(frame: wire.Frame): void;
  /** All frames that arrived together have been delivered. */
  onRead(): void;
  awaitsAnswer(): boolean;
}

/** `closed` resolves with the reason. Until then `user` receives the events. */
export class Connection {
  readonly closed: Promise<Failure>;
  /** Whether it was closed because the server did not answer. */
  silent = false;
  #socket: Socket;
  #splitter = new wire.FrameSplitter(limits.CONNECT_FRAME_BYTES_MAX);
  #connected = false;
  #handshaken = false;
  #attached = false;
  #reason: Failure | undefined;
  #heardAt = performance.now();
  #silentTicks = 0;
  #pinged = false;
  #timer: NodeJS.Timeout;

  constructor(
    address: string,
    private readonly user: ConnectionUser,
    handle: Handle,
    session: bigint,
  ) {
    const socket = dial(splitAddress(address), handle.trust, () => {
      this.#connected = true;
      this.#heardAt = performance.now();
      socket.write(wire.encode(wire.hello(CLIENT_NAME)));
      const { groupId: group, token } = handle;
      socket.write(wire.encode({ kind: wire.Kind.ATTACH, group, session, token }, CHANNEL));
    });
    this.#socket = socket;
    socket.on("data", (data: Buffer) => this.#onData(data));
    socket.on("error", (error) => this.#setReason(failureOf(error, socket)));
    socket.on("end", () => this.close(failure(Code.no_connection, "the server closed the connection")));
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        clearInterval(this.#timer);
        resolve(this.#reason ?? failure(Code.no_connection, "the connection was lost"));
      });
    });
    this.#timer = setInterval(() => this.#tick(), limits.LIVENESS_TICK_MS);
  }

  // Calls of the user.

  /** Whether sending is over: a frame sent now would count as sent and never arrive. */
  get closing(): boolean {
    return this.#reason !== undefined;
  }

  write(pieces: readonly Buffer[]): void {
    if (this.closing) return;
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  send(message: wire.Message): void {
    this.write([wire.encode(message, CHANNEL)]);
  }

  /** Close now. `goodbye` sends the reason first. */
  close(reason: Failure, goodbye?: number): void {
    this.#setReason(reason);
    if (goodbye === undefined) {
      // The buffers hold batches that are sent again elsewhere.
      this.#socket.destroy();
    } else {
      const message = reason.message.slice(0, 200);
      this.#endWith(wire.encode({ kind: wire.Kind.GOODBYE, code: goodbye, message }));
    }
  }

  /** Close after all written bytes have left. */
  detach(): void {
    this.#setReason(failure(Code.client_closed));
    if (!this.#connected) {
      this.#socket.destroy();
      return;
    }
    this.#endWith(wire.encode({ kind: wire.Kind.DETACH }, CHANNEL));
  }

  /** Flush the last frames, but do not wait long for a peer that does not read them. */
  #endWith(last: Buffer): void {
    const timer = setTimeout(() => this.#socket.destroy(), limits.LAST_WORDS_MS_MAX);
    this.#socket.end(last, () => {
      clearTimeout(timer);
      this.#socket.destroy();
    });
  }

  #setReason(reason: Failure): void {
    this.#reason ??= reason;
  }

  // Frames.

  #onData(data: Buffer): void {
    this.#heardAt = performance.now();
    this.#silentTicks = 0;
    this.#pinged = false;
    try {
      for (const frame of this.#splitter.feed(data)) {
        if (this.closing) return;
        this.#onFrame(frame);
      }
    } catch (problem) {
      if (!(problem instanceof wire.WireError)) throw problem;
      log("the server broke the protocol: %s", problem.message);
      this.close(failure(problem.code, problem.reason), problem.code);
      return;
    }
    if (!this.closing) this.user.onRead();
  }

  #onFrame(frame: wire.Frame): void {
    const { kind } = frame;
    if (kind === wire.Kind.HELLO_OK || kind === wire.Kind.PING || kind === wire.Kind.PONG) {
      this.#onConnectionMessage(wire.decode(frame));
      return;
    }
    if (kind === wire.Kind.GOODBYE) {
      this.#onConnectionMessage(wire.decode(frame));
      return;
    }
    if (!this.#handshaken) throw new wire.WireError(Code.protocol_error, `${wire.kindName(kind)} before HELLO_OK`);
    if (frame.channel !== CHANNEL) {
      throw new wire.WireError(Code.unknown_channel, `channel ${frame.channel} was not attached`);
    }
    if (this.#attached) this.user.onFrame(frame);
    else this.#onAttachAnswer(wire.decode(frame));
  }

  #onConnectionMessage(message: wire.Message): void {
    switch (message.kind) {
      case wire.Kind.PING:
        this.write([wire.encode({ kind: wire.Kind.PONG, nonce: message.nonce })]);
        break;
      case wire.Kind.GOODBYE:
        this.close(failure(message.code, message.message));
        break;
      case wire.Kind.HELLO_OK:
        if (this.#handshaken || message.version < wire.OLDEST_VERSION || message.version > wire.VERSION) {
          throw new wire.WireError(Code.protocol_error, `unexpected HELLO_OK of version ${message.version}`);
        }
        this.#handshaken = true;
        this.#splitter.maxFrameBytes = Math.min(message.maxFrameBytes, limits.FRAME_BYTES_CEILING);
        break;
    }
  }

  #onAttachAnswer(message: wire.Message): void {
    if (message.kind === wire.Kind.ATTACHED) {
      this.#attached = true;
      this.user.onAttached(message);
    } else if (message.kind === wire.Kind.REFUSED && message.op === wire.Kind.ATTACH) {
      this.user.onAttachRefused(message);
    } else {
      throw new wire.WireError(Code.protocol_error, `${wire.kindName(message.kind)} before ATTACHED`);
    }
  }

  // Liveness.

  #tick(): void {
    const now = performance.now();
    if (!this.#attached) {
      const limit = this.#connected ? limits.HANDSHAKE_TIMEOUT_MS : limits.DIAL_TIMEOUT_MS;
      if (now - this.#heardAt > limit) this.#giveUp("it did not answer in time");
      return;
    }
    if (!this.user.awaitsAnswer() && !this.#pinged) {
      this.#silentTicks = 0;
      if (now - this.#heardAt > limits.IDLE_PING_MS) this.#ping();
      return;
    }
    this.#silentTicks += 1;
    if (this.#silentTicks > limits.SILENT_TICKS_MAX) {
      this.#giveUp("nothing came back for most of a second");
    } else if (this.#silentTicks > limits.PING_AFTER_TICKS && !this.#pinged) {
      this.#ping();
    }
  }

  #ping(): void {
    this.#pinged = true;
    this.write([wire.encode({ kind: wire.Kind.PING, nonce: 1 })]);
  }

  #giveUp(reason: string): void {
    this.silent = true;
    this.close(failure(Code.no_connection, reason));
  }
}
