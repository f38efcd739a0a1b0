// Replays the trace into one group through the TypeScript SDK, open loop: the twin of
// ../quorate_demo/replay.py, which says how.

import { AppendRefused, AppendUnknown, connectGroup } from "../../../sdk/js/dist/index.js";
import { EntryFormat, Schedule } from "./entries.mjs";
import { configuration, monotonicS, sleep, tell } from "./program.mjs";

const TICK_MS = 5;
const PROGRESS_S = 0.25;
const BATCH_ENTRIES_MAX = 2048;
const OUTSTANDING_BATCHES_MAX = 128;
const APPEND_TIMEOUT_MS = 30_000;

const config = await configuration();
const schedule = new Schedule(config.first_minute, config.requests, config.seconds);
const format = new EntryFormat(config.day, config.org, schedule);
const tally = { offered: 0, batches: [], refused: [], unknown: [] };
let acked = 0;
let outstanding = 0;

async function append(log, first, entries) {
  try {
    const { baseOffset } = await log.appendMany(entries, { timeoutMs: APPEND_TIMEOUT_MS });
    acked += entries.length;
    const sinceBeginUs = Math.round((monotonicS() - config.begin_monotonic_s) * 1e6);
    tally.batches.push([first, entries.length, baseOffset, sinceBeginUs]);
  } catch (error) {
    if (error instanceof AppendRefused) tally.refused.push([first, entries.length, error.message]);
    else if (error instanceof AppendUnknown) tally.unknown.push([first, entries.length, error.message]);
    else throw error;
  } finally {
    outstanding -= 1;
  }
}

const log = await connectGroup(config.api_url, config.api_key, config.group_id);
let toldS = 0;
while (tally.offered < schedule.total || outstanding > 0) {
  const nowS = monotonicS();
  const due = schedule.due(nowS - config.begin_monotonic_s);
  while (tally.offered < due && outstanding < OUTSTANDING_BATCHES_MAX) {
    const end = Math.min(due, tally.offered + BATCH_ENTRIES_MAX);
    const entries = format.encodeRange(tally.offered, end);
    outstanding += 1;
    void append(log, tally.offered, entries); // an error that is no outcome of an append ends the program
    tally.offered = end;
  }
  if (nowS - toldS > PROGRESS_S) {
    toldS = nowS;
    tell({ progress: { offered: tally.offered, due, acked } });
  }
  await sleep(TICK_MS);
}
await log.close();
tell({ result: tally });
