// The session's state machine against a model of a head, with faults from a seed.
//
// Batches and answers are lost, refused, reordered around reconnects and left behind in old connections. Sessions are
// forgotten, deadlines pass, then everything heals. Always an acked entry is in the log once, at its offset. A refused
// one is not in it, and an unknown one at most once. Every call gets an answer.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Code } from "../dist/codes.js";
import { failure } from "../dist/errors.js";
import { LIMITS_DEFAULT } from "../dist/handle.js";
import { Pacing } from "../dist/pacing.js";
import * as wire from "../dist/wire.js";
import { Writer } from "../dist/writer.js";

const SEEDS = 300;
const STEPS = 400;
const { Kind, RetryHint, Role } = wire;

/** Numbers in [0, 1) from a seed (mulberry32). */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const pick = (random, choices) => choices[Math.floor(random() * choices.length)];

/** Orders batches as wire.md says. */
class Head {
  log = [];
  sessions = new Map();
  owner = new Map();
  index = 0;
  forgottenIndex = 0;

  constructor(random) {
    this.random = random;
  }

  /** ACKED or REFUSED for an APPEND that arrived. */
  answer(connection, append, faulty) {
    const refuse = (code, retry, outcome = 1) => ({
      kind: Kind.REFUSED,
      op: Kind.APPEND,
      outcome,
      retry,
      code,
      retryAfterMs: pick(this.random, [0, 20]),
      id: append.seq,
      head: "",
      message: "",
    });
    const { session } = connection;
    if (this.owner.get(session) !== connection) return refuse(Code.session_moved, RetryHint.NEVER);
    let state = this.sessions.get(session);
    if (state === undefined) {
      if (append.floorIndex < this.forgottenIndex) return refuse(Code.session_expired, RetryHint.NEVER);
      state = { next: 1, offsets: new Map() };
    }
    const ack = () => ({ kind: Kind.ACKED, acks: [{ seq: append.seq, baseOffset: state.offsets.get(append.seq) }] });
    if (append.seq < state.next) return ack();
    if (append.seq > state.next) return refuse(Code.sequence_gap, RetryHint.HERE);
    if (faulty && this.random() < 0.15) {
      const choices = [
        [Code.throttled, RetryHint.HERE],
        [Code.condition_failed, RetryHint.NEVER],
        [Code.epoch_changed, RetryHint.HEAD],
        [Code.cut_off, RetryHint.HANDLE],
      ];
      return refuse(...pick(this.random, choices));
    }
    const ordered = !faulty || this.random() < 0.95;
    if (ordered) {
      this.sessions.set(session, state);
      state.offsets.set(append.seq, this.log.length);
      state.next++;
      this.index++;
      this.log.push(...wire.splitEntries(append.payload, append.entryCount).map(String));
    }
    if (!ordered || (faulty && this.random() < 0.05)) {
      const choices = [
        [Code.internal, RetryHint.NEVER],
        [Code.internal, RetryHint.HERE],
        [Code.cut_off, RetryHint.HANDLE],
      ];
      return refuse(...pick(this.random, choices), 2);
    }
    return ack();
  }

  forget() {
    this.sessions.clear();
    this.forgottenIndex = this.index;
  }
}

const NOTHING = [0, 0, 0];
const CHARGES = {
  ratePerS: 20,
  tokensPerS: [20_000, 0, 0],
  entry: [1_000, 0, 0],
  byte: NOTHING,
  fullEntries: 3,
  lacking: NOTHING,
};

class Model {
  connection = undefined;
  abandoned = [];
  now = 0;
  made = 0;
  data = new Map();
  outcome = new Map();

  constructor(seed) {
    this.random = randomFrom(seed);
    this.head = new Head(this.random);
    // Every other client is paced, so that most of its appends wait.
    this.ratePerS = (seed % 2) * 20;
    const newSession = () => BigInt(Math.floor(this.random() * 2 ** 50)) + 1n;
    this.writer = new Writer(LIMITS_DEFAULT, newSession, undefined, new Pacing(CHARGES, 4));
  }

  // The client's side.

  append() {
    const call = ++this.made;
    const entries = Array.from({ length: pick(this.random, [1, 1, 1, 3]) }, (_, i) => `${call}.${i}`);
    this.data.set(call, entries);
    const deadline = this.now + pick(this.random, [50, 500, 5_000]);
    const bytes = entries.map((entry) => Buffer.from(entry));
    const single = entries.length === 1 && this.random() < 0.7;
    const refusal = single
      ? this.writer.append(call, bytes[0], deadline)
      : this.writer.appendMany(call, bytes, deadline);
    assert.equal(refusal, undefined);
  }

  execute(actions) {
    for (const action of actions) {
      if (action.type === "reroute") {
        this.drop();
        continue;
      }
      let offset = action.baseOffset;
      for (const call of action.calls) {
        assert.ok(!this.outcome.has(call), `call ${call} was answered twice`);
        if (action.type === "failed") {
          this.outcome.set(call, action.unknown ? "unknown" : "refused");
        } else {
          this.outcome.set(call, offset);
          offset += this.data.get(call).length;
        }
      }
    }
  }

  send() {
    const data = Buffer.concat(this.writer.takeFrames(this.now));
    for (const frame of new wire.FrameSplitter(1 << 24).feed(data)) this.connection.inbox.push(wire.decode(frame));
  }

  drop() {
    if (this.connection === undefined) return;
    // The server may still read its buffers after the client is gone.
    this.abandoned.push(this.connection);
    this.connection = undefined;
    this.writer.onDetached(failure(Code.no_connection));
  }

  attach() {
    const { session } = this.writer;
    this.connection = { session, inbox: [], outbox: [] };
    this.head.owner.set(session, this.connection);
    const attached = {
      kind: Kind.ATTACHED,
      epoch: 1,
      role: Role.HEAD,
      state: 1,
      windowBatches: pick(this.random, [2, 8, 256]),
      lastIndex: this.head.index,
      nextSeq: this.head.sessions.get(session)?.next ?? 1,
      ratePerS: this.ratePerS,
      head: "",
    };
    this.execute(this.writer.onAttached(attached, 1));
  }

  // The world's side.

  deliver(connection, faulty) {
    const append = connection.inbox.shift();
    if (append === undefined || (faulty && this.random() >= 0.98)) return;
    connection.outbox.push(this.head.answer(connection, append, faulty));
  }

  answer() {
    const message = this.connection?.outbox.shift();
    if (message?.kind === Kind.ACKED) this.execute(this.writer.onAcked(message.acks));
    else if (message !== undefined) this.execute(this.writer.onRefused(message, this.now));
  }

  step() {
    const steps = {
      append: [20, () => this.append()],
      send: [25, () => this.connection && this.send()],
      deliver: [40, () => this.connection && this.deliver(this.connection, true)],
      answer: [40, () => this.answer()],
      drop: [2, () => this.drop()],
      attach: [10, () => this.connection ?? this.attach()],
      time: [15, () => this.pass(pick(this.random, [1, 20, 300]))],
      zombie: [5, () => this.abandoned.length > 0 && this.deliver(pick(this.random, this.abandoned), true)],
      forget: [0.3, () => this.head.forget()],
    };
    let at = this.random() * Object.values(steps).reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, run] of Object.values(steps)) {
      at -= weight;
      if (at < 0) return run();
    }
    return undefined;
  }

  pass(ms) {
    this.now += ms;
    this.execute(this.writer.onTime(this.now));
  }

  heal() {
    for (let i = 0; i < 20_000; i++) {
      if (this.writer.idle()) return;
      if (this.connection === undefined) this.attach();
      if (this.connection !== undefined) {
        this.send();
        this.deliver(this.connection, false);
      }
      this.answer();
      this.pass(1);
    }
    assert.fail("it does not come to rest");
  }

  check() {
    assert.equal(this.outcome.size, this.data.size, "a call has no answer");
    const positions = new Map();
    for (const [offset, entry] of this.head.log.entries()) {
      assert.ok(!positions.has(entry), `${entry} is in the log twice`);
      positions.set(entry, offset);
    }
    for (const [call, outcome] of this.outcome) {
      for (const [index, entry] of this.data.get(call).entries()) {
        if (outcome === "refused") assert.ok(!positions.has(entry), `${entry} was refused and is in the log`);
        else if (outcome !== "unknown") assert.equal(positions.get(entry), outcome + index);
      }
    }
    const acked = [...this.outcome].filter(([, outcome]) => typeof outcome === "number");
    const byOffset = acked.toSorted((a, b) => a[1] - b[1]).map(([call]) => call);
    assert.deepEqual(
      byOffset,
      byOffset.toSorted((a, b) => a - b),
      "appends were ordered otherwise than they were called",
    );
    assert.deepEqual([this.writer.pendingCalls, this.writer.pendingBytes], [0, 0]);
  }
}

test("exactly once, whatever happens", async (t) => {
  const outcomes = { refused: 0, unknown: 0, acked: 0 };
  let renewed = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    await t.test(`seed ${seed}`, () => {
      const model = new Model(seed);
      for (let i = 0; i < STEPS; i++) model.step();
      model.heal();
      model.check();
      for (const outcome of model.outcome.values()) outcomes[typeof outcome === "number" ? "acked" : outcome]++;
      if (model.head.owner.size > 1) renewed++;
    });
  }
  // The faults are harsh enough to cause failures, and mild enough to leave successes.
  assert.ok(Math.min(...Object.values(outcomes)) > 1_000, JSON.stringify(outcomes));
  assert.ok(renewed > 30);
});
