// Pacing against the vectors that the Rust and Python clients must pass too, and a writer that is paced.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Code } from "../dist/codes.js";
import { Handle, LIMITS_DEFAULT } from "../dist/handle.js";
import { Pacing, chargesOf } from "../dist/pacing.js";
import * as wire from "../dist/wire.js";
import { Writer } from "../dist/writer.js";

const VECTORS = JSON.parse(readFileSync(new URL("../../contract/vectors/pacing.json", import.meta.url)));
const { Role, RetryHint, Kind } = wire;

for (const { name, charges, events } of VECTORS.cases) {
  test(`vector: ${name}`, () => {
    const pacing = new Pacing(chargesOf(charges));
    const coming = [...events];
    const waiting = [];
    let now = 0;
    while (coming.length > 0 || waiting.length > 0) {
      let ready = Infinity;
      if (waiting.length > 0) {
        const { entries, entry_bytes, sent_us } = waiting[0];
        const waitMs = pacing.take(now / 1e3, pacing.cost(entries, entry_bytes));
        if (waitMs === 0) {
          assert.ok(Math.abs(now - sent_us) <= 2, `${now} instead of ${sent_us}`);
          waiting.shift();
          continue;
        }
        ready = now + waitMs * 1e3;
      }
      if (coming.length === 0 || ready <= coming[0].at_us) {
        now = ready;
        continue;
      }
      const event = coming.shift();
      now = event.at_us;
      if (event.rate_per_s === undefined) waiting.push(event);
      else pacing.setRate(event.rate_per_s, now / 1e3);
    }
  });
}

/** Sixteen requests of 64 bytes a second: half of a token is for an entry, half for its bytes. */
const CHARGES_JSON = {
  rate_per_s: 16,
  tokens_per_s_milli: [16_000, 1_024_000, 0],
  cost: { fixed_milli: [1_000, 0, 0], per_byte_milli: [0, 1_000, 0] },
  short_batch: { entries: 17, lacking_milli: [0, 0, 0] },
};

function pacedWriter(charges = chargesOf(CHARGES_JSON)) {
  let session = 100n;
  const writer = new Writer(LIMITS_DEFAULT, () => session++, 2_000, new Pacing(charges ?? undefined, 64));
  const place = { windowBatches: 256, lastIndex: 0, nextSeq: 1, commitOffset: 0, trimOffset: 0 };
  const answer = { kind: Kind.ATTACHED, epoch: 1, role: Role.HEAD, durability: 2, state: 1, ...place };
  assert.deepEqual(writer.onAttached({ ...answer, ratePerS: 16, head: "h:1" }, 1), []);
  return writer;
}

/** The frames of takeFrames: [seq, number of entries] of each batch. */
function sent(writer, now) {
  const frames = new wire.FrameSplitter(1 << 24).feed(Buffer.concat(writer.takeFrames(now)));
  return frames.map((frame) => wire.decode(frame)).map(({ seq, entryCount }) => [Number(seq), entryCount]);
}

function append(writer, count, deadline = 100_000) {
  for (let i = 0; i < count; i++) assert.equal(writer.append(i, Buffer.alloc(64), deadline), undefined);
}

test("what is beyond the rate waits in the client, and grows no dearer", () => {
  const writer = pacedWriter();
  append(writer, 17);
  assert.deepEqual(sent(writer, 0), [[1, 17]]);
  append(writer, 1);
  assert.deepEqual(sent(writer, 0), []);
  assert.ok(Math.abs(writer.wakeAt() - 1_000 / 17) < 1e-6);
  append(writer, 16);
  assert.deepEqual(sent(writer, 59), [[2, 1]]);
  assert.deepEqual(sent(writer, 900), []);
  assert.deepEqual(sent(writer, 1_001), [[3, 16]]);
  writer.onAcked([
    { seq: 1, baseOffset: 0 },
    { seq: 2, baseOffset: 17 },
    { seq: 3, baseOffset: 18 },
  ]);
  assert.ok(writer.idle());
  assert.equal(writer.wakeAt(), 100_020);
});

test("whoever waits past the deadline is refused, and was not sent", () => {
  const writer = pacedWriter();
  append(writer, 17);
  assert.deepEqual(sent(writer, 0), [[1, 17]]);
  append(writer, 17, 500);
  assert.deepEqual(sent(writer, 0), []);
  const [failed] = writer.onTime(writer.wakeAt());
  assert.deepEqual([failed.type, failed.unknown, failed.calls.length], ["failed", false, 17]);
  assert.deepEqual([failed.failure.code, failed.failure.retryable], [Code.deadline_exceeded, true]);
  append(writer, 17);
  assert.deepEqual(sent(writer, 1_001), [[2, 17]], "it took no tokens");
});

test("what is sent again is paid", () => {
  const writer = pacedWriter();
  append(writer, 17);
  assert.deepEqual(sent(writer, 0), [[1, 17]]);
  const refused = {
    kind: Kind.REFUSED,
    op: Kind.APPEND,
    outcome: 1,
    code: Code.throttled,
    retry: RetryHint.HERE,
    id: 1,
  };
  writer.onRefused({ ...refused, retryAfterMs: 10, head: "", message: "" }, 0);
  assert.deepEqual(sent(writer, 9), []);
  assert.deepEqual(sent(writer, 20), [[1, 17]]);
});

test("a new rate holds from the notice on", () => {
  const writer = pacedWriter();
  append(writer, 17);
  assert.deepEqual(sent(writer, 0), [[1, 17]]);
  append(writer, 17);
  assert.deepEqual(sent(writer, 0), []);
  const notice = { kind: Kind.NOTICE, epoch: 1, role: Role.HEAD, state: 1, ratePerS: 1_600, head: "h:1" };
  assert.deepEqual(writer.onNotice(notice), []);
  assert.deepEqual(sent(writer, 0), []);
  assert.ok(Math.abs(writer.wakeAt() - 10) < 1e-6);
  assert.deepEqual(sent(writer, 10.1), [[2, 17]]);
});

test("the handle tells charges and the declared size; without charges nothing waits", () => {
  const handle = {
    group_id: "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f",
    endpoints: [{ address: "127.0.0.1:7001" }],
    token: "secret",
  };
  assert.equal(Handle.parse({ ...handle, sla: { request_size_bytes: 64 } }).requestSizeBytes, 64);
  assert.equal(Handle.parse(handle).requestSizeBytes, 0);
  assert.deepEqual(Handle.parse({ ...handle, charges: CHARGES_JSON }).charges, chargesOf(CHARGES_JSON));
  assert.equal(Handle.parse({ ...handle, charges: null }).charges, undefined);
  for (const wrong of [{ rate_per_s: 0 }, { tokens_per_s_milli: [1] }, { cost: {} }, { short_batch: 7 }]) {
    assert.throws(() => Handle.parse({ ...handle, charges: { ...CHARGES_JSON, ...wrong } }), /charges are malformed/);
  }
  const writer = pacedWriter(null);
  append(writer, 1_000);
  assert.deepEqual(sent(writer, 0), [[1, 1_000]]);
});

test("there is room for what the rate lets pass within a second", () => {
  const writer = pacedWriter();
  append(writer, 15);
  assert.ok(writer.hasRoom());
  append(writer, 1);
  assert.ok(!writer.hasRoom(), "sixteen requests a second");
  sent(writer, 0);
  assert.ok(!writer.hasRoom(), "what is on its way is not done");
  writer.onAcked([{ seq: 1, baseOffset: 0 }]);
  assert.ok(writer.hasRoom());
  writer.appendMany(
    "many",
    Array.from({ length: 16 }, () => Buffer.alloc(1)),
    100_000,
  );
  assert.ok(!writer.hasRoom(), "entries count, not calls");
  writer.failAll({ code: Code.client_closed, message: "", retryable: false });
  writer.append("large", Buffer.alloc(15 * 64), 100_000);
  assert.ok(writer.hasRoom());
  writer.append("small", Buffer.alloc(64), 100_000);
  assert.ok(!writer.hasRoom(), "an entry of fifteen times the size is as many requests");
});

test("there is room for one append, whatever it costs, and without a rate for many", () => {
  const writer = pacedWriter();
  append(writer, 1_000);
  assert.ok(!writer.hasRoom());
  assert.ok(pacedWriter().hasRoom());
  const unpaced = pacedWriter(null);
  append(unpaced, 1_000);
  assert.ok(unpaced.hasRoom());
});

test("larger entries than declared are told of once", () => {
  const writer = pacedWriter();
  append(writer, 1);
  sent(writer, 0);
  assert.equal(writer.hint, undefined);
  writer.append("large", Buffer.alloc(100), 100_000);
  sent(writer, 0);
  assert.match(writer.hint, /entries of 100 bytes exceed the group's declared request size of 64/);
  writer.hint = undefined;
  writer.append("large", Buffer.alloc(200), 100_000);
  sent(writer, 0);
  assert.equal(writer.hint, undefined);
});
