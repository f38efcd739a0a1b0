/** Keys, cursors, handles and appends of groups with partitions, without servers. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { connect, Cursor, CursorError, Handle, HandleError, partitionOf } from "../dist/index.js";
import { mayBegin } from "../dist/cursor.js";
import { KEY_HASH } from "../dist/keys.js";
import { partitionsOf } from "../dist/partitioned.js";
import { CALLS_IN_A_ROW, Rerouting } from "../dist/rerouting.js";

const VECTORS = JSON.parse(readFileSync(new URL("../../contract/vectors/partitions.json", import.meta.url)));
const GROUP = "00000000-0000-0000-0000-000000000007";

function member(number, more = {}) {
  return {
    partition: number,
    group_id: `00000000-0000-0000-0000-00000000010${number}`,
    epoch: 4,
    endpoints: [{ server_id: 1, address: `127.0.0.1:${7000 + number}`, role: "sole" }],
    token: `token-${number}`,
    rate_per_s: 10,
    charges: null,
    ...more,
  };
}

function handle(more = {}) {
  const members = [0, 1, 2].map((number) => member(number));
  const changes = [{ layout: 2, from_partitions: 2, to_partitions: 3, ends: [5, 0] }];
  return {
    group_id: GROUP,
    name: "orders",
    endpoints: [{ server_id: 1, address: "127.0.0.1:7000", role: "sole" }],
    token: "token",
    partitions: { key_hash: 1, layout: 2, changes, members, ...more },
  };
}

test("keys find the partitions of the vectors", () => {
  assert.equal(VECTORS.key_hash, KEY_HASH);
  assert.ok(VECTORS.cases.length > 20);
  for (const { key_hex, partitions } of VECTORS.cases) {
    for (const [count, expected] of Object.entries(partitions)) {
      assert.equal(partitionOf(Buffer.from(key_hex, "hex"), Number(count)), expected, `${key_hex} of ${count}`);
    }
  }
});

test("text is a key in UTF-8", () => {
  assert.equal(partitionOf("Grüße", 256), partitionOf(Buffer.from("Grüße"), 256));
  assert.throws(() => partitionOf("a", 0), RangeError);
});

test("a growth moves keys to new partitions alone", () => {
  const moved = new Set();
  for (let number = 0; number < 5_000; number++) {
    const [was, is] = [12, 16].map((count) => partitionOf(`key-${number}`, count));
    if (was !== is) moved.add(is);
  }
  assert.deepEqual(
    [...moved].sort((a, b) => a - b),
    [12, 13, 14, 15],
  );
});

test("a cursor is a text and back", () => {
  const cursor = new Cursor(GROUP, [0, 17]);
  assert.equal(String(cursor), `qc1:${GROUP.replaceAll("-", "")}:0,17`);
  assert.deepEqual(Cursor.parse(String(cursor)), cursor);
  const hex = GROUP.replaceAll("-", "");
  const many = Array(257).fill(1).join();
  for (const text of [
    "",
    "qc1:",
    `qc1:${hex}:`,
    `qc1:${GROUP}:1`,
    `qc2:${hex}:1`,
    `qc1:${hex}:1,-2`,
    `qc1:${hex}:${many}`,
  ]) {
    assert.throws(() => Cursor.parse(text), CursorError, text);
  }
});

test("a cursor of fewer partitions goes on, and others are refused", () => {
  const cursor = new Cursor(GROUP, [3, 4]);
  assert.deepEqual(cursor.within(GROUP, 4).offsets, [3, 4, 0, 0]);
  assert.throws(() => cursor.within(GROUP, 1), /2 partitions, and the group has 1/);
  assert.throws(() => cursor.within(GROUP.replace("7", "8"), 4), /is of the group/);
});

test("a checkpoint is a cursor", () => {
  const saved = [
    { partition: 2, next_offset: 9 },
    { partition: 0, next_offset: 4 },
  ];
  assert.deepEqual(Cursor.ofCheckpoint(GROUP, saved).offsets, [4, 0, 9]);
  assert.deepEqual(Cursor.ofCheckpoint(GROUP, []).offsets, [0]);
});

test("new partitions come after the ends of the former ones", () => {
  const changes = [
    { layout: 1, fromPartitions: 1, toPartitions: 3, ends: [70] },
    { layout: 2, fromPartitions: 3, toPartitions: 4, ends: [99, 7, 8] },
  ];
  assert.ok(mayBegin(0, changes, []));
  assert.ok(!mayBegin(2, changes, [69]));
  assert.ok(mayBegin(2, changes, [70]));
  assert.ok(!mayBegin(3, changes, [99, 7, 7]));
  assert.ok(mayBegin(3, changes, [99, 7, 8]));
});

test("a handle has one for each partition", () => {
  const { partitions } = Handle.parse(handle());
  assert.deepEqual(
    partitions.members.map((one) => one.token),
    ["token-0", "token-1", "token-2"],
  );
  assert.deepEqual(partitions.members[2].addresses(), ["127.0.0.1:7002"]);
  assert.deepEqual(partitions.changes, [{ layout: 2, fromPartitions: 2, toPartitions: 3, ends: [5, 0] }]);
  const former = partitions.members[1].withToken("former");
  assert.deepEqual([former.token, former.groupId], ["former", partitions.members[1].groupId]);
  const without = Handle.parse(handle({ members: [member(0, { endpoints: [] })] }));
  assert.deepEqual(without.partitions.members[0].endpoints, []);
});

test("malformed partitions, and key hashes of other versions, are refused", async () => {
  for (const members of [[], [member(1)], [member(0), member(2)], [member(0, { endpoints: [{ address: "x" }] })], 7]) {
    assert.throws(() => Handle.parse(handle({ members })), HandleError);
  }
  assert.throws(() => partitionsOf(Handle.parse(handle({ key_hash: 2 }))), /version 2.*upgrade/);
  await assert.rejects(connect(handle()), /3 partitions: use connectPartitioned/);
});

test("what was refused is appended again in the order of the calls", () => {
  const rerouting = new Rerouting(4);
  rerouting.isChanging = true;
  const numbers = [7, 3, 9, 1, 10, 11];
  for (const number of numbers) rerouting.hold({ number, endsAt: number === 9 ? 5 : 10 });
  assert.deepEqual(
    rerouting.takeLate(5).map((call) => call.number),
    [9],
  );
  assert.deepEqual(
    rerouting.use(6).map((call) => call.number),
    [1, 3, 7, 10, 11],
  );
  assert.deepEqual([rerouting.held, rerouting.isChanging, rerouting.partitions], [0, false, 6]);
});

test("calls without a key take turns, some in a row", () => {
  const rerouting = new Rerouting(3);
  const placed = Array.from({ length: 9 * CALLS_IN_A_ROW }, () =>
    rerouting.place({ key: undefined, partition: undefined }),
  );
  for (const partition of [0, 1, 2]) assert.equal(placed.filter((one) => one === partition).length, 3 * CALLS_IN_A_ROW);
  assert.equal(placed.filter((one, at) => at > 0 && one !== placed[at - 1]).length, 9);
  assert.equal(rerouting.place({ key: undefined, partition: 2 }), 2);
});
