#!/usr/bin/env node
/**
 * Runs conformance scenarios (README.md) with the TypeScript SDK, which must have been built.
 *
 *     node run.mjs [SCENARIO.json …]                         each against a fake group of its own
 *     node run.mjs --handle HANDLE.json [SCENARIO.json …]    those marked "fleet", against a real group
 */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import * as quorate from "../js/dist/index.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));
export const SCENARIOS = readdirSync(join(HERE, "scenarios"))
  .filter((name) => name.endsWith(".json"))
  .sort()
  .map((name) => join(HERE, "scenarios", name));

/** The client did not do what the scenario expects. */
export class Mismatch extends Error {
  name = "Mismatch";
}

function check(condition, message) {
  if (!condition) throw new Mismatch(message);
}

/** Run `work` with the answer of a fake group for a scenario; at the end it must have seen no violation. */
export async function withFakeGroup(path, work) {
  const fake = spawn("python3", [join(HERE, "fake_server.py"), "--scenario", path], { stdio: "pipe" });
  let errors = "";
  fake.stderr.on("data", (data) => (errors += data));
  const exited = once(fake, "exit");
  try {
    const [line] = await Promise.race([once(createInterface(fake.stdout), "line"), exited.then(() => [])]);
    if (line === undefined) throw new Error(`the fake did not start: ${errors}`);
    await work(JSON.parse(line));
  } finally {
    fake.stdin.end();
    const timer = setTimeout(() => fake.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(timer);
  }
  check(fake.exitCode === 0, `the fake saw the client break the protocol: ${errors}`);
}

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** One run of one scenario. */
class Run {
  prefix = randomBytes(4).toString("hex");
  made = 0;
  client;
  start = 0;
  tailed = 0;
  acked = new Map();
  refused = [];
  unknown = [];

  constructor(scenario, handle, refreshed) {
    this.scenario = scenario;
    this.handle = handle;
    this.refreshed = refreshed;
  }

  async run() {
    const expected = this.scenario.expect_connect ?? "ok";
    try {
      await this.connect();
    } catch (problem) {
      if (!(problem instanceof quorate.ConnectFailed)) throw problem;
      check(problem.codeName === expected, `connect failed with ${problem}`);
      return;
    }
    try {
      check(expected === "ok", `connect should have failed with ${expected}`);
      this.start = this.scenario.fleet ? (await this.client.status()).commitOffset : (this.scenario.read_from ?? 0);
      for (const step of this.scenario.steps) await this[step.do](step);
      if (this.scenario.read_back ?? true) await this.readBack();
    } finally {
      await this.client.close({ drain: false });
    }
  }

  async connect() {
    const options = { timeoutMs: this.scenario.timeout_ms ?? 10_000 };
    if (this.scenario.refresh) options.refresh = () => this.refreshed;
    this.client = await quorate.connect(this.handle, options);
  }

  // Data.

  entry(size = 64) {
    this.made++;
    return Buffer.from(`${this.prefix}-${String(this.made).padStart(8, "0")}`.padEnd(size, "."));
  }

  /** Await appends, book what became of each, and compare with what the step expects. */
  async settle(promises, data, step) {
    const results = await Promise.allSettled(promises);
    const outcomes = {};
    results.forEach((result, index) => {
      const outcome = this.book(result, data[index]);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    });
    const expected = step.expect ?? "acked";
    if (expected === "any") return;
    const wanted = typeof expected === "string" ? { [expected]: promises.length } : expected;
    const same = Object.keys({ ...wanted, ...outcomes }).every((key) => wanted[key] === outcomes[key]);
    check(same, `${step.do}: ${JSON.stringify(outcomes)}, expected ${JSON.stringify(wanted)}`);
  }

  book({ status, value, reason }, entries) {
    if (status === "rejected") {
      if (reason instanceof quorate.AppendRefused) {
        this.refused.push(...entries);
        return reason.codeName;
      }
      if (reason instanceof quorate.AppendUnknown) {
        this.unknown.push(...entries);
        return "unknown";
      }
      throw reason;
    }
    const base = typeof value === "number" ? value : value.baseOffset;
    entries.forEach((entry, index) => {
      check(!this.acked.has(base + index), `offset ${base + index} was given twice`);
      this.acked.set(base + index, entry.toString());
    });
    return "acked";
  }

  /** Every acked entry at its offset, once; refused ones nowhere; unknown ones at most once. */
  async readBack() {
    const found = new Map();
    const seen = [];
    for (let at = this.start, end = at + 1; at < end;) {
      const result = await this.client.read(at, { maxEntries: 10_000 });
      for (const { offset, data } of result.entries) {
        const text = data.toString();
        if (text !== "" && !text.startsWith(this.prefix)) continue;
        found.set(offset, text);
        if (text !== "") seen.push(text);
      }
      at = result.nextOffset;
      end = result.commitOffset;
    }
    for (const [offset, text] of this.acked) {
      check(found.get(offset) === text, `offset ${offset} was acked as ${text} and reads ${found.get(offset)}`);
    }
    const there = new Set(seen);
    check(there.size === seen.length, `${seen.length - there.size} entries are in the log twice`);
    check(!this.refused.some((entry) => there.has(entry.toString())), "a refused entry is in the log");
    const answered = new Set([...this.acked.values(), ...this.unknown.map(String)]);
    const strangers = seen.filter((text) => !answered.has(text));
    check(strangers.length === 0, `entries in the log that no append answered: ${strangers}`);
  }

  // Steps.

  async append(step) {
    const options = {};
    if ("expected_offset" in step) {
      options.expectedOffset = (await this.client.status()).nextOffset + step.expected_offset;
    }
    if ("fencing_token" in step) options.fencingToken = step.fencing_token;
    if ("timeout_ms" in step) options.timeoutMs = step.timeout_ms;
    for (let i = 0; i < (step.times ?? 1); i++) {
      const data = step.bytes === 0 ? Buffer.alloc(0) : this.entry(step.bytes);
      await this.settle([this.client.append(data, options)], [[data]], step);
    }
  }

  async append_many(step) {
    const data = Array.from({ length: step.entries }, () => this.entry(step.bytes));
    await this.settle([this.client.appendMany(data)], [data], step);
  }

  /** Concurrent single appends; those that are acked keep the order in which they were called. */
  async pipeline(step) {
    const before = new Set(this.acked.keys());
    const data = Array.from({ length: step.count }, () => this.entry(step.bytes));
    const promises = data.map((entry) => this.client.append(entry, { timeoutMs: step.timeout_ms ?? 10_000 }));
    await this.settle(
      promises,
      data.map((entry) => [entry]),
      step,
    );
    const offsets = [...this.acked.keys()].filter((offset) => !before.has(offset)).sort((a, b) => a - b);
    const order = offsets.map((offset) => this.acked.get(offset));
    check(order.join() === order.toSorted().join(), "appends were ordered otherwise than they were called");
  }

  /** Concurrent batches. */
  async burst(step) {
    const entries = () => Array.from({ length: step.entries ?? 3 }, () => this.entry(step.bytes));
    const data = Array.from({ length: step.batches }, entries);
    await this.settle(
      data.map((batch) => this.client.appendMany(batch)),
      data,
      step,
    );
  }

  /** Follow while appending: every entry once, in order, without a gap. */
  async tail(step) {
    const offsets = [];
    const tail = this.client.tail(this.start, { creditBytes: step.credit_bytes ?? 1 << 20 });
    const follow = async () => {
      let mine = 0;
      for await (const { offset, data } of tail) {
        offsets.push(offset);
        if (data.toString().startsWith(this.prefix) && ++mine >= step.count) return;
      }
    };
    const following = follow();
    following.catch(() => undefined);
    const rounds = step.rounds ?? 10;
    for (let round = 0; round < rounds; round++) {
      const data = Array.from({ length: Math.floor(step.count / rounds) }, () => this.entry(step.bytes));
      await this.settle(
        data.map((entry) => this.client.append(entry)),
        data.map((entry) => [entry]),
        step,
      );
    }
    await within(following, 20_000, "the tail does not end");
    check(
      offsets.every((offset, index) => offset === this.start + index),
      "the tail has a gap or a duplicate",
    );
  }

  async read(step) {
    const expected = step.expect ?? "entries";
    let found;
    try {
      found = await this.client.read(step.offset, { timeoutMs: step.timeout_ms ?? 10_000 });
    } catch (problem) {
      check(problem instanceof quorate.ReadRefused && problem.codeName === expected, `read failed with ${problem}`);
      return;
    }
    check(expected === "entries", `read should have failed with ${expected}`);
    check(found.entries.length >= (step.entries_min ?? 0), `only ${found.entries.length} entries were read`);
  }

  async status(step) {
    const status = await this.client.status();
    for (const [field, value] of Object.entries(step.expect)) {
      check(status[camel(field)] === value, `status has ${field} ${status[camel(field)]}, expected ${value}`);
    }
  }

  async reconnect() {
    await this.client.close();
    await this.connect();
  }

  async sleep(step) {
    await sleep(step.ms);
  }
}

async function within(promise, ms, message) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Mismatch(message)), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Run a scenario, against a fake group unless a handle is given; how long it took, in ms. */
export async function runScenario(path, handle) {
  const scenario = JSON.parse(readFileSync(path, "utf8"));
  let tookMs = 0;
  const work = async (answer) => {
    const began = performance.now();
    await within(new Run(scenario, answer.handle, answer.refreshed).run(), 60_000, "it does not end");
    tookMs = performance.now() - began;
    check(tookMs <= (scenario.within_ms ?? 60_000), `it took ${Math.round(tookMs)} ms`);
  };
  if (handle === undefined) await withFakeGroup(path, work);
  else await work({ handle });
  return tookMs;
}

async function main() {
  const { values, positionals } = parseArgs({ options: { handle: { type: "string" } }, allowPositionals: true });
  const handle = values.handle && JSON.parse(readFileSync(values.handle, "utf8"));
  let failed = 0;
  for (const path of positionals.length > 0 ? positionals : SCENARIOS) {
    if (handle !== undefined && !JSON.parse(readFileSync(path, "utf8")).fleet) continue;
    const name = basename(path, ".json");
    try {
      const tookMs = await runScenario(path, handle);
      console.log(`ok      ${name} (${(tookMs / 1_000).toFixed(2)} s)`);
    } catch (problem) {
      failed++;
      console.log(`FAILED  ${name}: ${problem}`);
    }
  }
  process.exitCode = failed > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
