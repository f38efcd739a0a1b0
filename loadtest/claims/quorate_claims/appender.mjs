// A client of the JavaScript SDK: appends numbered entries, one after the other, until it is told to stop.
//
// `node appender.mjs SDK NAME OUT GROUP…`, with QUORATE_API_URL and QUORATE_API_KEY. SDK is its built index.js. Lines of
// OUT are those of appender.py.

import { createWriteStream } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const PAUSE_MS = 20;
const [sdk, name, path, ...groups] = process.argv.slice(2);
const { connectGroup } = await import(pathToFileURL(sdk).href);
const out = createWriteStream(path);
let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
});

async function appendTo(group) {
  const log = await connectGroup(process.env.QUORATE_API_URL, process.env.QUORATE_API_KEY, group);
  for (let number = 0; !stopping; number += 1) {
    const line = { group, number };
    try {
      line.offset = Number(await log.append(Buffer.from(`${name} ${number}`)));
    } catch (error) {
      line.error = String(error);
    }
    line.at_s = Date.now() / 1_000;
    out.write(`${JSON.stringify(line)}\n`);
    await sleep(PAUSE_MS);
  }
  await log.close();
}

await Promise.all(groups.map(appendTo));
await new Promise((resolve) => out.end(resolve));
