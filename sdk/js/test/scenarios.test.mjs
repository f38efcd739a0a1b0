// The conformance scenarios of all SDKs, each against a fake group of its own.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";

import { Mismatch, runScenario, SCENARIOS } from "../../conformance/run.mjs";

for (const path of SCENARIOS) test(`scenario ${basename(path, ".json")}`, () => runScenario(path));

test("the runner notices what goes wrong", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "quorate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const wrong = [
    { steps: [{ do: "append", expect: "fenced" }] },
    { steps: [{ do: "append" }], faults: [{ on: "append", nth: 9, do: "drop" }] },
    { steps: [{ do: "status", expect: { role: "follower" } }] },
  ];
  for (const scenario of wrong) {
    const path = join(folder, "wrong.json");
    writeFileSync(path, JSON.stringify(scenario));
    await assert.rejects(runScenario(path), Mismatch);
  }
});
