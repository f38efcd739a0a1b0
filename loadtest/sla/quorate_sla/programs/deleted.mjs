// Appends to a group and tails it until it is deleted, in Node. Prints "ready", then how both ended, as JSON.
//
// Argument: the SDK's module. Times are wall-clock seconds. Address, key and group come from the environment.

import { setTimeout as sleep } from "node:timers/promises";

const APPEND_EACH_MS = 20;
const [module] = process.argv.slice(2);
const { connectGroup } = await import(module);
const { QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID } = process.env;
const log = await connectGroup(QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID);
let begun;
const ready = new Promise((resolve) => {
  begun = resolve;
});

async function append() {
  for (;;) {
    await log.append(new TextEncoder().encode("still here"));
    begun();
    await sleep(APPEND_EACH_MS);
  }
}

async function tail() {
  for await (const _ of log.tail());
}

const timed = (work) =>
  work.then(
    () => ({ at_s: Date.now() / 1_000, answer: "ended" }),
    (error) => ({ at_s: Date.now() / 1_000, answer: `${error.codeName ?? error.name}: ${error.message}` }),
  );
const parts = [timed(append()), timed(tail())];
await ready;
console.log("ready");
const [appended, tailed] = await Promise.all(parts);
console.log(JSON.stringify({ append: appended, tail: tailed }));
await log.close().catch(() => {});
process.exit(0);
