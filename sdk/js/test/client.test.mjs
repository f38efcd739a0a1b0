// The client's shell against a fake group: cases that the languages' shared scenarios cannot express.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { withFakeGroup } from "../../conformance/run.mjs";
import { AppendRefused, AppendUnknown, ConditionFailed, connect, ConnectFailed, ReadRefused } from "../dist/index.js";
import { ABANDONED_SENDINGS_MAX } from "../dist/limits.js";

const folder = mkdtempSync(join(tmpdir(), "quorate-"));
after(() => rmSync(folder, { recursive: true }));

const text = (value) => Buffer.from(value);

async function withClient(work, { scenario = {}, options = {}, change = {} } = {}) {
  const path = join(folder, "scenario.json");
  writeFileSync(path, JSON.stringify(scenario));
  await withFakeGroup(path, async ({ handle }) => {
    const client = await connect({ ...handle, ...change }, options);
    try {
      await work(client, handle);
    } finally {
      await client.close({ drain: false });
    }
  });
}

const SLOW = { faults: [{ on: "start", ack_delay_ms: 50 }] };
const VERY_SLOW = { faults: [{ on: "start", ack_delay_ms: 5_000 }] };

test("rejects wrong arguments before anything is sent", () =>
  withClient(async (client) => {
    await assert.rejects(client.append("text"), /encode it first/);
    await assert.rejects(client.append(7, {}), TypeError);
    await assert.rejects(client.appendMany([text("a"), 7]), TypeError);
    await assert.rejects(client.appendMany([]), RangeError);
    await assert.rejects(client.append(text(""), { timeoutMs: 0 }), RangeError);
    await assert.rejects(client.append(text(""), { timeoutMs: NaN }), RangeError);
    await assert.rejects(client.append(text(""), { expectedOffset: -1 }), RangeError);
    await assert.rejects(client.append(text(""), { expectedOffset: 2 ** 53 }), RangeError);
    await assert.rejects(client.append(text(""), { fencingToken: 2n ** 64n }), RangeError);
    await assert.rejects(client.read(0, { maxEntries: 0 }), RangeError);
    assert.throws(() => client.tail(-1), RangeError);
    assert.throws(() => client.tail(0, { creditBytes: 0 }), RangeError);
    assert.equal((await client.status()).commitOffset, 0);
  }));

test("read gives at most what was asked for, and waits", () =>
  withClient(async (client) => {
    await client.appendMany(Array.from("0123456789", text));
    const first = await client.read(3, { maxEntries: 2 });
    assert.deepEqual(
      first.entries.map(({ data }) => data.toString()),
      ["3", "4"],
    );
    assert.deepEqual([first.nextOffset, first.commitOffset], [5, 10]);
    assert.deepEqual((await client.read(10)).entries, []);
    const waiting = client.read(10, { waitMs: 5_000 });
    await sleep(50);
    await client.append(text("new"));
    assert.equal((await waiting).entries[0].data.toString(), "new");
  }));

test("a session that nobody answers is given up, and said to be", () =>
  withClient(
    async (client) => {
      const ghost = client.appendMany([text("ghost")], { timeoutMs: 30 });
      const behind = client.append(text("behind"));
      const unknown = (words) => (error) =>
        error instanceof AppendUnknown &&
        error.codeName === "no_answer" &&
        [words, "Read the log"].every((part) => error.message.includes(part));
      await Promise.all([
        assert.rejects(ghost, unknown("no_answer")),
        assert.rejects(behind, unknown("its session is given up")),
      ]);
      assert.equal(await client.append(text("next")), 0);
      const { entries } = await client.read(0);
      assert.deepEqual(
        entries.map(({ data }) => data.toString()),
        ["next"],
      );
    },
    {
      scenario: { faults: [{ on: "append", do: "swallow", times: 2 * (1 + ABANDONED_SENDINGS_MAX) }] },
      options: { answerWaitMs: 30 },
    },
  ));

test("close waits for appends or tells them", async () => {
  await withClient(
    async (client) => {
      const appended = client.append(text("drained"));
      await client.close();
      assert.equal(await appended, 0);
      await assert.rejects(client.append(text("late")), AppendRefused);
      await assert.rejects(client.read(0), ReadRefused);
    },
    { scenario: SLOW },
  );
  await withClient(
    async (client) => {
      const sent = client.append(text("sent"));
      const rejected = assert.rejects(sent, AppendUnknown);
      await sleep(10);
      await client.close({ drain: false });
      await rejected;
    },
    { scenario: VERY_SLOW },
  );
});

test("ready holds a producer back", () =>
  withClient(
    async (client) => {
      let outstanding = 0;
      let most = 0;
      const appended = [];
      for (let i = 0; i < 70_000; i++) {
        await client.ready();
        outstanding++;
        most = Math.max(most, outstanding);
        appended.push(client.append(text("x")).finally(() => outstanding--));
      }
      await Promise.all(appended);
      assert.ok(most <= 65_536, `${most} were outstanding`);
    },
    { scenario: SLOW },
  ));

test("many loops that wait for room do not go on all at once", () =>
  withClient(
    async (client) => {
      let outstanding = 0;
      let most = 0;
      const append = (entry) => {
        most = Math.max(most, ++outstanding);
        return client.append(text(entry)).finally(() => outstanding--);
      };
      const full = Array.from({ length: 65_536 }, () => append("x"));
      const loop = async () => {
        await client.ready();
        full.push(append("y"));
      };
      // More than one acknowledged batch makes room for.
      await Promise.all(Array.from({ length: 20_000 }, loop));
      await Promise.all(full);
      assert.ok(most <= 65_536, `${most} were outstanding`);
    },
    { scenario: SLOW },
  ));

test("two tails, overlapping calls and an early end", () =>
  withClient(async (client) => {
    await client.appendMany(Array.from("01234", text));
    const [one, two] = [client.tail(0), client.tail(3)];
    const found = await Promise.all([one.next(), one.next(), one.next()]);
    assert.deepEqual(
      found.map(({ value }) => value.offset),
      [0, 1, 2],
    );
    assert.equal((await two.next()).value.offset, 3);
    assert.deepEqual(
      (await one.nextEntries()).map((entry) => entry.offset),
      [3, 4],
    );
    const waiting = one.next();
    await one.return();
    assert.equal((await waiting).done, true);
    for await (const entry of two) {
      assert.equal(entry.offset, 4);
      break;
    }
    assert.equal((await two.next()).done, true);
  }));

test("connect fails at once when no retry can help", async () => {
  const began = performance.now();
  const failing = withClient(() => assert.fail(), { change: { token: "nonsense" } });
  await assert.rejects(failing, (error) => error instanceof ConnectFailed && error.codeName === "token_invalid");
  assert.ok(performance.now() - began < 2_000);
});

test("an append makes a span that links to the handle's request", async () => {
  const spans = [];
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const tracer = {
    startSpan(name, options) {
      const span = { name, options, attributes: { ...options.attributes }, ended: false };
      spans.push(span);
      return {
        spanContext: () => ({ traceId, spanId: "00f067aa0ba902b7", traceFlags: 1 }),
        setAttribute: (key, value) => (span.attributes[key] = value),
        setStatus: (status) => (span.status = status),
        end: () => (span.ended = true),
      };
    },
  };
  const change = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  await withClient(
    async (client) => {
      await client.append(text("one"));
      await client.appendMany([text("two"), text("three")]);
      await assert.rejects(client.append(text("four"), { expectedOffset: 0 }), ConditionFailed);
    },
    { options: { tracer }, change },
  );
  assert.deepEqual(
    spans.map(({ attributes }) => attributes["quorate.outcome"]),
    ["acked", "acked", "ConditionFailed"],
  );
  assert.equal(spans[1].attributes["quorate.base_offset"], 1);
  assert.equal(spans[0].options.links[0].context.spanId, "b7ad6b7169203331");
  assert.equal(spans[2].status.code, 2);
  assert.ok(spans.every((span) => span.ended));
});

test("what is beyond the rate leaves when it may, or never", async () => {
  const rate = (5_000 * 17) / 16; // the fake group reports 5 000
  const many = (count) => Array.from({ length: count }, () => text("x"));
  const charges = {
    rate_per_s: 5_000,
    tokens_per_s_milli: [5_000_000, 0, 0],
    cost: { fixed_milli: [1_000, 0, 0], per_byte_milli: [0, 0, 0] },
    short_batch: { entries: 16, lacking_milli: [0, 0, 0] },
  };
  const change = { charges };
  const began = performance.now();
  const paced = async (client) => {
    assert.equal((await client.appendMany(many(5_312))).baseOffset, 0);
    assert.equal((await client.appendMany(many(1_000))).baseOffset, 5_312);
    assert.ok(performance.now() - began > (0.99e3 * 1_000) / rate);
    await assert.rejects(client.appendMany(many(5_312), { timeoutMs: 50 }), (error) => {
      assert.ok(error instanceof AppendRefused);
      assert.deepEqual([error.codeName, error.retryable], ["deadline_exceeded", true]);
      return /waiting in the client/.test(error.message);
    });
    assert.equal((await client.status()).commitOffset, 6_312);
  };
  await withClient(paced, { change });
  const unpaced = async (client) => {
    await client.appendMany(many(5_312));
    await client.appendMany(many(5_312), { timeoutMs: 900 });
  };
  await withClient(unpaced, { change, options: { pace: false } });
});

test("reads that are spread go to all replicas, and see what was appended", () =>
  withClient(
    async (client) => {
      await client.appendMany(Array.from({ length: 50 }, (_, i) => text(`${i}`)));
      for (let turn = 0; turn < 60; turn++) await client.read(0);
      const results = await Promise.all(Array.from({ length: 50 }, (_, i) => client.read(i, { maxEntries: 1 })));
      assert.deepEqual(
        results.map(({ entries }) => entries[0].data.toString()),
        Array.from({ length: 50 }, (_, i) => `${i}`),
      );
      for (let i = 50; i < 80; i++) {
        const offset = await client.append(text(`${i}`));
        assert.equal((await client.read(offset)).entries[0].data.toString(), `${i}`, "it reads its own appends");
      }
      const waiting = client.read(80, { waitMs: 5_000 });
      await client.append(text("new"));
      assert.equal((await waiting).entries[0].data.toString(), "new");
      assert.deepEqual((await client.read(81)).entries, []);
    },
    { options: { spreadReads: true } },
  ));

test("a dead replica costs no read that is spread", () =>
  withClient(
    async (client) => {
      await client.appendMany(Array.from({ length: 20 }, () => text("x")));
      for (let i = 0; i < 200; i++) assert.ok((await client.read(i % 20, { maxEntries: 1 })).entries.length > 0);
    },
    { scenario: { faults: [{ on: "start", dead: [3] }] }, options: { spreadReads: true } },
  ));
