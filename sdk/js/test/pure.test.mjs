// Route, tail and handle: pure parts, decision by decision.

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";

import { Handle, HandleError } from "../dist/index.js";
import { splitAddress } from "../dist/handle.js";
import * as limits from "../dist/limits.js";
import { Route } from "../dist/route.js";
import { entriesFrom, TailState } from "../dist/tail.js";
import { packEntries, WireError } from "../dist/wire.js";

const makeRoute = (canRefresh = false, random = () => 1) => new Route(["a:1", "b:1", "c:1"], canRefresh, random);
const dial = (address, delayMs = 0) => ({ address, delayMs });

test("the route goes round all endpoints without waiting, then waits longer each time", () => {
  const route = makeRoute();
  assert.deepEqual([route.next(0), route.next(0), route.next(0)], [dial("a:1"), dial("b:1"), dial("c:1")]);
  assert.deepEqual(route.next(0), dial("a:1", limits.BACKOFF_BASE_MS));
  route.next(0);
  route.next(0);
  assert.deepEqual(route.next(0), dial("a:1", 2 * limits.BACKOFF_BASE_MS));
  const delays = Array.from({ length: 60 }, () => route.next(0).delayMs);
  assert.equal(Math.max(...delays), limits.BACKOFF_MAX_MS);
});

test("between rounds the route wants a new handle, but not too often", () => {
  const route = makeRoute(true);
  for (let i = 0; i < 3; i++) route.next(100_000);
  assert.equal(route.next(100_000).address, undefined);
  route.replace(["d:1"]);
  assert.equal(route.next(100_000).address, "d:1");
  assert.equal(route.next(100_100).address, "d:1"); // the pass is over, but a handle came a moment ago
  assert.equal(route.next(101_500).address, undefined);
});

test("the route follows redirects at once, but not for ever", () => {
  const route = makeRoute();
  for (let i = 0; i < limits.REDIRECTS_AT_ONCE_MAX; i++) {
    route.redirect("h:1");
    assert.deepEqual(route.next(0), dial("h:1"));
  }
  route.redirect("h:1");
  assert.deepEqual(route.next(0), dial("h:1", limits.BACKOFF_BASE_MS));
  route.redirect("");
  assert.equal(route.next(0).address, "a:1");
});

test("the route comes back to what worked, avoids what fell silent, hammers nobody", () => {
  const route = makeRoute();
  route.next(0);
  route.next(0);
  route.attached("b:1");
  route.progressed();
  route.lost();
  assert.deepEqual([route.next(0), route.next(0), route.next(0)], [dial("b:1"), dial("a:1"), dial("c:1")]);
  route.attached("a:1");
  route.progressed();
  route.lost();
  route.avoid("a:1");
  assert.equal(route.next(0).address, "b:1");
  const delays = [];
  for (let i = 0; i < 4; i++) {
    route.attached("a:1");
    route.lost();
    delays.push(route.next(0).delayMs);
  }
  assert.deepEqual(
    delays,
    [1, 2, 4, 8].map((factor) => factor * limits.BACKOFF_BASE_MS),
  );
  route.waitAtLeast(300);
  assert.equal(route.next(0).delayMs, 300);
});

/** ENTRIES of [baseOffset, entries]. */
function message(...batches) {
  const payloads = batches.map(([, entries]) => packEntries(entries.map((entry) => Buffer.from(entry))));
  return {
    batches: batches.map(([baseOffset, entries], i) => {
      return { baseOffset, timestampUs: 5, entryCount: entries.length, payloadLen: payloads[i].length };
    }),
    payload: Buffer.concat(payloads),
  };
}

const flat = (entries) => entries.map(({ offset, data }) => [offset, data.toString()]);

test("of whole batches, what precedes the offset is dropped; a gap is an error of the server", () => {
  const answer = message([3, ["3", "4", "5"]], [6, ["6"]]);
  assert.deepEqual(flat(entriesFrom(answer, 4)), [
    [4, "4"],
    [5, "5"],
    [6, "6"],
  ]);
  assert.deepEqual(entriesFrom(answer, 7), []);
  assert.throws(() => entriesFrom(message([5, ["5"]]), 4), WireError);
  assert.throws(() => entriesFrom(message([4, ["4"]], [6, ["6"]]), 4), WireError);
});

test("a tail goes on where it ended and drops what comes twice", () => {
  const state = new TailState(0, 1000);
  state.onEntries(message([0, ["0", "1"]]));
  state.onEntries(message([0, ["0", "1"]], [2, ["2"]])); // the next replica begins at a batch's start
  assert.equal(state.nextOffset, 3);
  assert.deepEqual(
    [...state.take().entries, ...state.take().entries].map((entry) => entry.offset),
    [0, 1, 2],
  );
  assert.equal(state.take(), undefined);
});

test("a tail gives credit back in portions, and no more than was used", () => {
  const state = new TailState(0, 100);
  assert.equal(state.start(), 100);
  let returned = 0;
  for (let i = 0; i < 20; i++) {
    state.onEntries(message([i, ["x".repeat(6)]]));
    returned += state.take().credit;
  }
  assert.ok(returned > 175 && returned <= 200);
  state.onEntries(message([20, ["x".repeat(36)]]));
  assert.equal(state.start(), 60);
  state.onEntries(message([21, ["x".repeat(96)]]));
  assert.equal(state.start(), 1);
});

const HANDLE = {
  group_id: "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f",
  name: "orders",
  epoch: 3,
  endpoints: [
    { server_id: 1, address: "127.0.0.1:7001", role: "follower" },
    { server_id: 2, address: "[::1]:7002", role: "head" },
  ],
  token: "secret-token",
  token_expires_at: "2026-11-20T12:00:00Z",
  limits: { max_entry_bytes: 10, max_batch_bytes: 20, max_batch_entries: 30 },
};

test("a handle is read from the API's answer and does not show its token", () => {
  const handle = Handle.parse(JSON.stringify(HANDLE));
  assert.deepEqual(handle.addresses(), ["[::1]:7002", "127.0.0.1:7001"]);
  assert.equal(handle.limits.maxBatchEntries, 30);
  assert.equal(handle.token, "secret-token");
  assert.equal(Handle.parse(handle), handle);
  assert.ok(!inspect(handle).includes("secret-token"));
  assert.ok(!JSON.stringify(handle).includes("secret-token"));
});

test("a handle says what the group may use of its project's guarantee", () => {
  assert.equal(Handle.parse(HANDLE).guarantee, undefined);
  assert.equal(Handle.parse({ ...HANDLE, guarantee: null }).guarantee, undefined);
  const guarantee = { shared_tokens_per_s: 90_000, tokens_per_append: 24, shared_appends_per_s: 3750 };
  const expected = { sharedTokensPerS: 90_000, tokensPerAppend: 24, sharedAppendsPerS: 3750 };
  assert.deepEqual(Handle.parse({ ...HANDLE, guarantee }).guarantee, expected);
});

test("what is no handle is rejected, saying what is wrong", () => {
  const broken = [
    ["not json", /not JSON/],
    ["[]", /not a JSON object/],
    [null, /not a JSON object/],
    [{ ...HANDLE, tls: { required: true } }, /ca_pem/],
    [{ ...HANDLE, tls: { required: true, ca_pem: "nonsense" } }, /not a certificate authority/],
    [{ ...HANDLE, tls: "yes" }, /tls/],
    [{ ...HANDLE, endpoints: [] }, /no endpoints/],
    [{ ...HANDLE, endpoints: undefined }, /endpoints/],
    [{ ...HANDLE, endpoints: [null] }, /address/],
    [{ ...HANDLE, endpoints: [{ address: "nonsense" }] }, /host:port/],
    [{ ...HANDLE, group_id: "orders" }, /group_id/],
    [{ ...HANDLE, token: undefined }, /token/],
    [{ ...HANDLE, guarantee: { shared_tokens_per_s: 5 } }, /guarantee lacks tokens_per_append/],
    [{ ...HANDLE, token_expires_at: "tomorrow" }, /token_expires_at/],
  ];
  for (const [source, says] of broken) {
    assert.throws(
      () => Handle.parse(source),
      (error) => error instanceof HandleError && says.test(error.message),
    );
  }
  assert.deepEqual(splitAddress("[fe80::1]:7001"), { host: "fe80::1", port: 7001 });
  for (const wrong of ["", "host", "host:", ":80", "host:0", "host:65536", "host:x"]) {
    assert.throws(() => splitAddress(wrong), HandleError);
  }
});
