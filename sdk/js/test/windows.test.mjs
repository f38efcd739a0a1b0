// The choice of replicas against the vectors that the Python client must pass too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as limits from "../dist/limits.js";
import { Windows } from "../dist/windows.js";

const VECTORS = JSON.parse(readFileSync(new URL("../../contract/vectors/read_windows.json", import.meta.url)));

for (const { name, events } of VECTORS.cases) {
  test(`vector: ${name}`, () => {
    const windows = new Windows();
    for (const [number, event] of events.entries()) {
      if (event.choose !== undefined) {
        assert.equal(windows.choose(event.at_ms, event.choose), event.gives, `event ${number}`);
        windows.sent(event.at_ms, event.gives);
      } else if (event.failed !== undefined) {
        windows.failed(event.failed);
      } else {
        windows.answered(event.answered, event.latency_ms);
        const difference = Math.abs(windows.window(event.answered) - event.window);
        assert.ok(difference < 1e-5, `event ${number}`);
      }
    }
  });
}

test("without a replica nothing is chosen, and others are forgotten", () => {
  const windows = new Windows();
  assert.equal(windows.choose(0, []), undefined);
  windows.sent(0, "a");
  windows.answered("a", 500);
  windows.keep(["b"]);
  assert.equal(windows.window("a"), limits.READ_WINDOW_FIRST);
  windows.answered("a", 500); // late, from a replica that left
  windows.failed("a");
});
