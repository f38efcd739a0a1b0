#!/usr/bin/env node
/**
 * Throughput and latency of one process's appends.
 *
 *     node bench/append.mjs HANDLE.json [--entries 500000] [--bytes 64] [--outstanding 8192]
 *
 * Closed loop: a new append starts when the oldest outstanding one has ended. Latency is measured on every 64th append,
 * from the call to its result. HANDLE.json is the API's answer to GET /v1/groups/{id}/handle, or the output of
 * sdk/conformance/fake_server.py.
 */

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { connect } from "../dist/index.js";

const SAMPLE_EVERY = 64;

async function run(client, entries, size, outstanding) {
  const entry = Buffer.alloc(size, "x");
  const waiting = new Array(outstanding).fill(undefined);
  const latenciesMs = [];
  const began = performance.now();
  for (let number = 0; number < entries; number++) {
    const slot = number % outstanding;
    if (waiting[slot] !== undefined) await waiting[slot];
    const appended = client.append(entry);
    waiting[slot] = appended;
    if (number % SAMPLE_EVERY === 0) {
      const started = performance.now();
      void appended.then(() => latenciesMs.push(performance.now() - started));
    }
  }
  await Promise.all(waiting);
  const tookMs = performance.now() - began;
  latenciesMs.sort((a, b) => a - b);
  const percentileUs = (share) => Math.round(latenciesMs[Math.floor(latenciesMs.length * share)] * 1e3);
  return {
    appends_per_s: Math.round((entries / tookMs) * 1e3),
    p50_us: percentileUs(0.5),
    p99_us: percentileUs(0.99),
  };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    entries: { type: "string", default: "500000" },
    bytes: { type: "string", default: "64" },
    outstanding: { type: "string", default: "8192" },
  },
});
if (positionals.length !== 1) {
  console.error("usage: node bench/append.mjs HANDLE.json [--entries N] [--bytes N] [--outstanding N]");
  process.exit(2);
}
const document = JSON.parse(readFileSync(positionals[0], "utf8"));
const [entries, bytes, outstanding] = [values.entries, values.bytes, values.outstanding].map(Number);
const client = await connect(document.handle ?? document, { pace: false });
await run(client, 1_000, bytes, outstanding); // warms up
const result = await run(client, entries, bytes, outstanding);
await client.close();
console.log(JSON.stringify({ language: "js", ...result, outstanding, bytes }));
