// Appends each line of stdin, many at a time, and says what became of them.

import { createInterface } from "node:readline";

import { connectGroup } from "../../js/dist/index.js"; // from "quorate", once it is installed

const { QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID } = process.env;
const log = await connectGroup(QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID);
const outcomes = {};
const note = (outcome) => (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1);
for await (const line of createInterface({ input: process.stdin })) {
  await log.ready();
  log.append(Buffer.from(line)).then(
    () => note("acked"),
    (error) => {
      note(error.name);
      console.error(error.message);
    },
  );
}
await log.close(); // waits for what is outstanding
console.log(outcomes);
