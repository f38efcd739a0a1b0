// The codec against the golden vectors that the Rust and Python codecs must pass too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as wire from "../dist/wire.js";

const VECTORS = JSON.parse(readFileSync(new URL("../../contract/vectors/wire.json", import.meta.url)));
const TEXT = new Set(["token", "head", "message", "client_name", "group"]);

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const number = (value) => (BigInt(value) > BigInt(Number.MAX_SAFE_INTEGER) ? BigInt(value) : Number(value));

function fieldsOf(fields) {
  const out = {};
  for (const [name, value] of Object.entries(fields)) {
    out[camel(name)] = Array.isArray(value) ? value.map(fieldsOf) : TEXT.has(name) ? value : number(value);
  }
  return out;
}

function messageOf(vector) {
  const message = { kind: vector.kind, ...fieldsOf(vector.fields) };
  if (vector.kind === wire.Kind.APPEND || vector.kind === wire.Kind.ENTRIES) {
    message.payload = Buffer.from(vector.payload_hex, "hex");
  }
  return message;
}

function traceOf({ trace }) {
  if (!trace) return undefined;
  return Buffer.concat([Buffer.from(trace.trace_id + trace.span_id, "hex"), Buffer.from([trace.trace_flags])]);
}

function decodeStream(data) {
  return new wire.FrameSplitter(VECTORS.max_frame_bytes)
    .feed(data)
    .map((frame) => ({ frame, message: wire.decode(frame) }));
}

function decodeEntriesToo(data) {
  for (const { message } of decodeStream(data)) {
    if (message.kind === wire.Kind.APPEND) wire.splitEntries(message.payload, message.entryCount);
    if (message.kind === wire.Kind.ENTRIES) {
      let at = 0;
      for (const batch of message.batches) {
        wire.splitEntries(message.payload, batch.entryCount, at, at + batch.payloadLen);
        at += batch.payloadLen;
      }
    }
  }
}

for (const vector of VECTORS.frames) {
  test(`encodes and decodes byte for byte: ${vector.name}`, () => {
    const data = Buffer.from(vector.frame_hex, "hex");
    const message = messageOf(vector);
    const trace = traceOf(vector);
    assert.equal(wire.encode(message, vector.channel, trace).toString("hex"), vector.frame_hex);
    const [{ frame, message: decoded }] = decodeStream(data);
    assert.deepEqual(decoded, message);
    assert.deepEqual([frame.kind, frame.channel, frame.trace], [vector.kind, vector.channel, trace]);
    if (message.kind === wire.Kind.APPEND) {
      const entries = wire.splitEntries(message.payload, message.entryCount);
      assert.deepEqual(
        entries.map((entry) => entry.toString("hex")),
        vector.entries_hex[0],
      );
      assert.deepEqual(wire.packEntries(entries), message.payload);
      const m = message;
      const head = wire.encodeAppend(
        vector.channel,
        m.seq,
        m.floorIndex,
        m.timeoutMs,
        m.entryCount,
        m.payloadLen,
        m.payloadCrc,
        m.expectedOffset,
        m.fencingToken,
        trace,
      );
      assert.deepEqual(Buffer.concat([head, m.payload]), data);
    }
  });
}

for (const vector of VECTORS.decode_only) {
  test(`ignores what later versions add: ${vector.name}`, () => {
    const [{ frame, message }] = decodeStream(Buffer.from(vector.frame_hex, "hex"));
    assert.deepEqual(message, messageOf(vector));
    assert.deepEqual(frame.trace, traceOf(vector));
  });
}

for (const vector of VECTORS.invalid) {
  test(`rejects what is broken: ${vector.name}`, () => {
    assert.throws(() => decodeEntriesToo(Buffer.from(vector.frame_hex, "hex")), { code: vector.error_code });
  });
}

test("splits a stream wherever it is cut", () => {
  const stream = Buffer.from(VECTORS.frames.map((vector) => vector.frame_hex).join(""), "hex");
  const whole = new wire.FrameSplitter(VECTORS.max_frame_bytes).feed(stream);
  assert.equal(whole.length, VECTORS.frames.length);
  for (const chunk of [1, 2, 7, 17, 40, 333]) {
    const splitter = new wire.FrameSplitter(VECTORS.max_frame_bytes);
    const frames = [];
    for (let at = 0; at < stream.length; at += chunk) frames.push(...splitter.feed(stream.subarray(at, at + chunk)));
    assert.deepEqual(frames, whole);
  }
});

test("a truncated frame is no frame yet", () => {
  const data = Buffer.from(VECTORS.frames[0].frame_hex, "hex");
  assert.deepEqual(new wire.FrameSplitter(1000).feed(data.subarray(0, -1)), []);
});

test("damage never throws anything but WireError", () => {
  let rejected = 0;
  for (const vector of VECTORS.frames) {
    const data = Buffer.from(vector.frame_hex, "hex");
    for (let bit = 0; bit < data.length * 8; bit += 5) {
      const damaged = Buffer.from(data);
      damaged[bit >> 3] ^= 1 << (bit & 7);
      try {
        decodeEntriesToo(damaged);
      } catch (problem) {
        assert.ok(problem instanceof wire.WireError, `${vector.name}, bit ${bit}: ${problem}`);
        rejected++;
      }
    }
  }
  assert.ok(rejected > 2000);
});
