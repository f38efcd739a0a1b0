// Reads one group's whole log back through the TypeScript SDK: the twin of
// ../quorate_demo/readback.py, which says how.

import { connectGroup } from "../../../sdk/js/dist/index.js";
import { EntryFormat, Schedule } from "./entries.mjs";
import { configuration, tell } from "./program.mjs";

const READ_TIMEOUT_MS = 30_000;

const config = await configuration();
const schedule = new Schedule(config.first_minute, config.requests, config.seconds);
const format = new EntryFormat(config.day, config.org, schedule);
const runs = [];
let corrupted = 0;

function note(offset, number) {
  const last = runs.at(-1);
  if (last && last[0] + last[2] === offset && last[1] + last[2] === number) last[2] += 1;
  else runs.push([offset, number, 1]);
}

const log = await connectGroup(config.api_url, config.api_key, config.group_id);
const end = Number((await log.status()).commitOffset);
for (let offset = 0; offset < end; ) {
  const chunk = await log.read(offset, { timeoutMs: READ_TIMEOUT_MS });
  for (const entry of chunk.entries) {
    const number = format.numberOf(entry.data);
    if (number === null) corrupted += 1;
    else note(Number(entry.offset), number);
  }
  offset = Number(chunk.nextOffset);
  tell({ progress: { read: offset, of: end } });
}
await log.close();
tell({ result: { runs, corrupted } });
