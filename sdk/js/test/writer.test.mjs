// The session's state machine, event by event: its frames and decisions. No socket, no clock, no sleep.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Code } from "../dist/codes.js";
import { failure } from "../dist/errors.js";
import { LIMITS_DEFAULT } from "../dist/handle.js";
import * as limits from "../dist/limits.js";
import * as wire from "../dist/wire.js";
import { Writer } from "../dist/writer.js";

const LOST = failure(Code.no_connection, "the connection was lost");
const { Role, RetryHint, Kind } = wire;

function makeWriter(sizes = {}) {
  let session = 100n;
  return new Writer({ ...LIMITS_DEFAULT, ...sizes }, () => session++);
}

function attached(fields = {}) {
  return {
    kind: Kind.ATTACHED,
    epoch: 1,
    role: Role.HEAD,
    durability: 2,
    state: 1,
    windowBatches: 256,
    lastIndex: 0,
    nextSeq: 1,
    commitOffset: 0,
    trimOffset: 0,
    ratePerS: 5000,
    head: "h:1",
    ...fields,
  };
}

function refused(seq, code, retry, fields = {}) {
  const rest = { outcome: 1, retryAfterMs: 0, head: "", message: "", ...fields };
  return { kind: Kind.REFUSED, op: Kind.APPEND, code, retry, id: seq, ...rest };
}

const acks = (...pairs) => pairs.map(([seq, baseOffset]) => ({ seq, baseOffset }));

function readyWriter(fields) {
  const writer = makeWriter();
  assert.deepEqual(writer.onAttached(attached(fields), 1), []);
  return writer;
}

function append(writer, call, entry = "x", deadline = 10_000) {
  assert.equal(writer.append(call, Buffer.from(entry), deadline), undefined);
}

function alone(writer, call, deadline = 10_000, entries = [call]) {
  assert.equal(
    writer.appendMany(
      call,
      entries.map((entry) => Buffer.from(entry)),
      deadline,
    ),
    undefined,
  );
}

function frames(writer, now = 0) {
  return new wire.FrameSplitter(1 << 24).feed(Buffer.concat(writer.takeFrames(now)));
}

/** The frames of takeFrames: [seq, entries] of each batch. */
function sent(writer, now = 0) {
  return frames(writer, now).map((frame) => {
    const { seq, payload, entryCount } = wire.decode(frame);
    return [seq, wire.splitEntries(payload, entryCount).map(String)];
  });
}

const seqs = (writer, now) => sent(writer, now).map(([seq]) => seq);
const calls = (actions) => actions.map((action) => action.calls);

test("appends of one turn share a batch and get consecutive offsets", () => {
  const writer = readyWriter();
  for (const [call, entry] of ["1", "", "3"].entries()) append(writer, call, entry);
  assert.deepEqual(sent(writer), [[1, ["1", "", "3"]]]);
  const [acked] = writer.onAcked(acks([1, 70]));
  assert.deepEqual(acked, { type: "acked", calls: [0, 1, 2], baseOffset: 70, entryCount: 3, alone: false });
  assert.ok(writer.idle());
  assert.deepEqual([writer.pendingBytes, writer.pendingCalls], [0, 0]);
});

test("an entry is copied when it is appended", () => {
  const writer = readyWriter();
  const entry = Buffer.from("before");
  writer.append("a", entry, 10_000);
  entry.write("after!");
  assert.deepEqual(sent(writer), [[1, ["before"]]]);
});

test("fills the next batch while enough are outstanding", () => {
  const writer = readyWriter();
  for (let i = 0; i < limits.EAGER_BATCHES; i++) {
    append(writer, i);
    assert.equal(sent(writer).length, 1);
  }
  append(writer, "held");
  assert.deepEqual(sent(writer), []);
  append(writer, "with it");
  writer.onAcked(acks([1, 0]));
  assert.deepEqual(sent(writer), [[limits.EAGER_BATCHES + 1, ["x", "x"]]]);
});

test("a full batch is not held back", () => {
  const writer = readyWriter();
  for (let i = 0; i < limits.EAGER_BATCHES; i++) {
    append(writer, i);
    sent(writer);
  }
  append(writer, "large", "y".repeat(limits.EAGER_BATCH_BYTES));
  assert.equal(sent(writer).length, 1);
});

test("never exceeds the window, in batches or in bytes", () => {
  const writer = readyWriter({ windowBatches: 3 });
  for (let i = 0; i < 10; i++) alone(writer, `${i}`);
  assert.deepEqual(seqs(writer), [1, 2, 3]);
  assert.deepEqual(seqs(writer), []);
  writer.onAcked(acks([1, 0], [2, 1]));
  assert.deepEqual(seqs(writer), [4, 5]);
  const large = readyWriter();
  for (let i = 0; i < 4; i++) alone(large, `${i}`, 10_000, Array(3).fill("x".repeat(1 << 20)));
  assert.deepEqual(seqs(large), [1, 2]);
});

test("refuses what is too large or too much at once", () => {
  const writer = makeWriter({ maxEntryBytes: 10, maxBatchBytes: 50, maxBatchEntries: 4 });
  const bytes = (n) => Buffer.alloc(n);
  assert.equal(writer.append("a", bytes(11), 1).code, Code.entry_too_large);
  assert.equal(writer.appendMany("a", [bytes(11)], 1).code, Code.entry_too_large);
  assert.equal(writer.appendMany("a", Array(4).fill(bytes(10)), 1).code, Code.batch_too_large);
  assert.equal(writer.appendMany("a", Array(5).fill(bytes(0)), 1).code, Code.batch_too_large);
  writer.pendingBytes = limits.PENDING_BYTES_MAX;
  assert.equal(writer.append("a", bytes(0), 1).code, Code.queue_full);
  assert.equal(writer.appendMany("a", [bytes(0)], 1).code, Code.queue_full);
});

test("sends again under the same seq after a lost connection", () => {
  const writer = readyWriter();
  alone(writer, "a");
  alone(writer, "b");
  assert.deepEqual(seqs(writer), [1, 2]);
  writer.onDetached(LOST);
  assert.deepEqual(sent(writer), []);
  assert.deepEqual(writer.onAttached(attached({ nextSeq: 2 }), 1), []);
  assert.deepEqual(sent(writer), [
    [1, ["a"]],
    [2, ["b"]],
  ]);
  assert.deepEqual(calls(writer.onAcked(acks([1, 0], [2, 1]))), [["a"], ["b"]]);
});

test("the floor is the least index seen in the session", () => {
  const writer = readyWriter({ lastIndex: 9 });
  writer.onDetached(LOST);
  writer.onAttached(attached({ lastIndex: 7, role: Role.FOLLOWER }), 1);
  writer.onAttached(attached({ lastIndex: 12 }), 1);
  append(writer, "a");
  assert.equal(wire.decode(frames(writer)[0]).floorIndex, 7);
});

test("goes back after a refusal and waits as asked", () => {
  const writer = readyWriter();
  for (const call of "abc") alone(writer, call);
  sent(writer);
  writer.onRefused(refused(2, Code.throttled, RetryHint.HERE, { retryAfterMs: 500 }), 1000);
  alone(writer, "d");
  assert.deepEqual(sent(writer, 1000), []); // batch 3 has no answer yet
  writer.onRefused(refused(3, Code.sequence_gap, RetryHint.HERE), 1100);
  assert.deepEqual(sent(writer, 1400), []);
  assert.equal(writer.wakeAt(), 1500);
  assert.deepEqual(calls(writer.onAcked(acks([1, 0]))), [["a"]]);
  assert.deepEqual(sent(writer, 1500), [
    [2, ["b"]],
    [3, ["c"]],
    [4, ["d"]],
  ]);
});

test("sends nothing again before each later batch has been answered", () => {
  // The head's queue was full for 1 and for 3 and accepted 2 between them, so 2's answer comes last.
  const writer = readyWriter();
  for (const call of "abc") alone(writer, call);
  sent(writer);
  writer.onRefused(refused(1, Code.throttled, RetryHint.HERE, { retryAfterMs: 500 }), 1000);
  writer.onRefused(refused(3, Code.throttled, RetryHint.HERE, { retryAfterMs: 500 }), 1000);
  assert.deepEqual(sent(writer, 9000), []);
  writer.onRefused(refused(2, Code.sequence_gap, RetryHint.HERE), 1100);
  assert.deepEqual(sent(writer, 9000), [
    [1, ["a"]],
    [2, ["b"]],
    [3, ["c"]],
  ]);
});

test("a batch refused for good gives its seq to the next, also when the connection is lost meanwhile", () => {
  for (const lost of [false, true]) {
    const writer = readyWriter();
    for (const call of "abc") alone(writer, call);
    sent(writer);
    const [failed] = writer.onRefused(refused(1, Code.condition_failed, RetryHint.NEVER), 0);
    assert.deepEqual([failed.calls, failed.unknown, failed.failure.code], [["a"], false, Code.condition_failed]);
    if (lost) {
      writer.onDetached(LOST);
      writer.onAttached(attached(), 1);
    } else {
      writer.onRefused(refused(2, Code.sequence_gap, RetryHint.HERE), 0);
      writer.onRefused(refused(3, Code.sequence_gap, RetryHint.HERE), 0);
    }
    assert.deepEqual(sent(writer), [
      [1, ["b"]],
      [2, ["c"]],
    ]);
  }
});

test("an unsent append that is late did not happen", () => {
  const writer = makeWriter();
  writer.reason = failure(Code.no_connection, "h:1: refused");
  append(writer, "a", "x", 1000);
  assert.deepEqual(writer.onTime(900), []);
  const [failed] = writer.onTime(writer.wakeAt());
  assert.deepEqual([failed.calls, failed.unknown, failed.failure.code], [["a"], false, Code.no_connection]);
  assert.match(failed.failure.message, /h:1: refused/);
  assert.equal(writer.wakeAt(), Infinity);
});

test("a sent append that is late is unknown and keeps its seq", () => {
  const writer = readyWriter();
  alone(writer, "a", 1000);
  alone(writer, "b", 9000);
  sent(writer);
  const [failed] = writer.onTime(1000);
  assert.deepEqual([failed.calls, failed.unknown], [["a"], true]);
  writer.onDetached(LOST);
  writer.onAttached(attached(), 1);
  assert.deepEqual(sent(writer, 1100), [
    [1, ["a"]],
    [2, ["b"]],
  ]);
  assert.deepEqual(calls(writer.onAcked(acks([1, 0], [2, 1]))), [["b"]]);
  assert.ok(writer.idle());
});

test("what the head says it does not have is no longer in doubt", () => {
  const writer = readyWriter();
  alone(writer, "a");
  alone(writer, "b", 1000);
  alone(writer, "c");
  sent(writer);
  writer.onDetached(LOST);
  writer.onAttached(attached({ nextSeq: 2 }), 1);
  const [failed] = writer.onTime(1000);
  assert.deepEqual([failed.calls, failed.unknown], [["b"], false]);
  assert.deepEqual(sent(writer, 1000), [
    [1, ["a"]],
    [2, ["c"]],
  ]);
});

test("a head that forgot a session does not clear doubts", () => {
  const writer = readyWriter();
  alone(writer, "a", 1000);
  sent(writer);
  writer.onDetached(LOST);
  writer.onAttached(attached(), 1); // an unknown session begins at 1 too
  assert.equal(writer.onTime(1000)[0].unknown, true);
});

test("believes neither an older epoch nor a follower", () => {
  const writer = readyWriter({ epoch: 5 });
  assert.equal(writer.onAttached(attached({ epoch: 4 }), 1)[0].to, "other");
  const [reroute] = writer.onAttached(attached({ epoch: 6, role: Role.TAIL, head: "h:9" }), 1);
  assert.deepEqual([reroute.to, reroute.address], ["head", "h:9"]);
});

test("a notice that the head has moved is followed", () => {
  const writer = readyWriter();
  const notice = { kind: Kind.NOTICE, epoch: 2, role: Role.FOLLOWER, state: 1, ratePerS: 7, head: "h:2" };
  const [reroute] = writer.onNotice(notice);
  assert.deepEqual([reroute.to, reroute.address], ["head", "h:2"]);
  assert.deepEqual(writer.onNotice({ ...notice, epoch: 3, role: Role.HEAD, ratePerS: 9 }), []);
  assert.deepEqual([writer.epoch, writer.ratePerS], [3, 9]);
});

test("a head that was another in between is asked for the floor anew", () => {
  const head = { kind: Kind.NOTICE, epoch: 3, role: Role.HEAD, state: 1, ratePerS: 7, head: "h:1" };
  const deposed = { ...head, epoch: 2, role: Role.FOLLOWER };
  for (const [notices, to] of [
    [[deposed, head], "head"],
    [[head], "again"],
  ]) {
    const writer = makeWriter();
    assert.deepEqual(writer.onAttached(attached({ lastIndex: 100 }), 1), []);
    const reroutes = notices.flatMap((notice) => writer.onNotice(notice));
    assert.deepEqual(
      reroutes.map((reroute) => reroute.to),
      [to],
    );
    append(writer, "a");
    assert.deepEqual(sent(writer), [], "the floor may be too high by now");
    writer.onDetached(failure(Code.no_connection));
    assert.deepEqual(writer.onAttached(attached({ epoch: 3, lastIndex: 50 }), 1), []);
    const frames = Buffer.concat(writer.takeFrames(0));
    assert.equal(frames.readBigUInt64LE(16 + 8), 50n);
    assert.deepEqual(writer.onNotice({ ...head, epoch: 4 }), [], "who stays head keeps its log");
  }
});

test("an expired session is replaced without a word when nothing is in doubt", () => {
  const writer = readyWriter();
  alone(writer, "a");
  sent(writer);
  writer.onAcked(acks([1, 0]));
  alone(writer, "b");
  alone(writer, "c");
  sent(writer);
  const first = writer.session;
  const actions = writer.onRefused(refused(2, Code.session_expired, RetryHint.NEVER), 0);
  assert.deepEqual(
    actions.map((action) => action.to),
    ["again"],
  );
  assert.notEqual(writer.session, first);
  writer.onDetached(LOST);
  writer.onAttached(attached(), 1);
  assert.deepEqual(sent(writer), [
    [1, ["b"]],
    [2, ["c"]],
  ]);
});

test("an expired session leaves what was sent before unknown", () => {
  const writer = readyWriter();
  alone(writer, "a");
  sent(writer);
  writer.onDetached(LOST);
  alone(writer, "b");
  writer.onAttached(attached(), 1);
  sent(writer);
  const [failed, reroute] = writer.onRefused(refused(1, Code.session_expired, RetryHint.NEVER), 0);
  assert.deepEqual([failed.calls, failed.unknown, failed.failure.code], [["a"], true, Code.session_expired]);
  assert.equal(reroute.to, "again");
  writer.onDetached(LOST);
  writer.onAttached(attached(), 1);
  assert.deepEqual(sent(writer), [[1, ["b"]]]);
});

test("answers to what was never sent end the connection", () => {
  const writer = readyWriter();
  append(writer, "a");
  sent(writer);
  assert.equal(writer.onAcked(acks([5, 0]))[0].type, "reroute");
  assert.equal(writer.onRefused(refused(5, Code.throttled, RetryHint.HERE), 0)[0].type, "reroute");
  assert.deepEqual(calls(writer.onAcked(acks([1, 0]))), [["a"]]);
  assert.deepEqual(writer.onAcked(acks([1, 0])), []); // reported twice: harmless
});

test("a missing answer is asked for again on a new connection", () => {
  const writer = readyWriter();
  alone(writer, "a");
  alone(writer, "b");
  sent(writer);
  const [acked, reroute] = writer.onAcked(acks([2, 1]));
  assert.deepEqual(acked.calls, ["b"]);
  assert.equal(reroute.to, "again");
});

test("a session given up for a ghost leaves what is on its way unknown", () => {
  const writer = readyWriter();
  alone(writer, "a", 1000);
  sent(writer);
  const { session } = writer;
  let now = 1000;
  let actions = writer.onTime(now);
  for (const name of "bcdefghij") {
    alone(writer, name, 1e9);
    sent(writer, now); // sent on this connection for the first time: unanswered, not in doubt
    now = writer.wakeAt();
    actions = writer.onTime(now);
    if (writer.session !== session) break;
    writer.onDetached(LOST);
    writer.onAttached(attached(), 1);
    sent(writer, now);
  }
  assert.notEqual(writer.session, session);
  const failed = actions.filter((action) => action.type === "failed");
  assert.ok(failed.length > 0 && failed.every((action) => action.unknown));
  assert.ok(failed.every((action) => action.failure.code === Code.no_answer));
  writer.onAttached(attached(), 1);
  assert.deepEqual(sent(writer, now), [], "it may be in the log already");
});

test("a ghost is not asked after for ever", () => {
  const writer = readyWriter();
  alone(writer, "a", 1000);
  sent(writer);
  const { session } = writer;
  let now = 1000;
  writer.onTime(now);
  for (let connections = 0; writer.session === session; connections++) {
    assert.ok(connections < 20);
    now = writer.wakeAt();
    assert.equal(writer.onTime(now).at(-1).to, "again");
    writer.onDetached(LOST);
    writer.onAttached(attached(), 1);
    sent(writer, now);
  }
  assert.ok(writer.idle());
});

test("a new session begins to count anew how often a ghost was asked after", () => {
  const writer = readyWriter();
  let now = 1000;
  const connectionsUntilGivenUp = () => {
    alone(writer, "a", now);
    sent(writer, now);
    const { session } = writer;
    let connections = 0;
    writer.onTime(now);
    for (; writer.session === session; connections++) {
      assert.ok(connections < 20);
      now = writer.wakeAt();
      writer.onTime(now);
      writer.onDetached(LOST);
      writer.onAttached(attached(), 1);
      sent(writer, now);
    }
    return connections;
  };
  const first = connectionsUntilGivenUp();
  assert.ok(first > 1);
  assert.equal(connectionsUntilGivenUp(), first);
});

test("closing tells everybody", () => {
  const writer = readyWriter();
  alone(writer, "sent");
  sent(writer);
  writer.onDetached(LOST);
  append(writer, "queued");
  const outcomes = writer.failAll(failure(Code.client_closed)).map((action) => [action.calls[0], action.unknown]);
  assert.deepEqual(outcomes, [
    ["sent", true],
    ["queued", false],
  ]);
  assert.deepEqual([writer.pendingBytes, writer.pendingCalls], [0, 0]);
});

test("appends with distant deadlines do not share a batch", () => {
  const writer = readyWriter();
  append(writer, "soon", "x", 1000);
  append(writer, "later", "x", 9000);
  append(writer, "soon again", "x", 1000);
  assert.equal(sent(writer).length, 3);
});

test("the first trace of a batch travels", () => {
  const writer = readyWriter();
  append(writer, "a");
  writer.traceLast(Buffer.alloc(25, "t"));
  append(writer, "b");
  writer.traceLast(Buffer.alloc(25, "u"));
  assert.deepEqual(frames(writer)[0].trace, Buffer.alloc(25, "t"));
});
