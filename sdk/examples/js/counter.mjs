// Increases a counter by one. However many processes do so at once, no increase is lost.
//
// The log is the truth: the counter is the number of `+1` entries. An increase is appended only if nothing was appended
// since we looked, which is what a process that must decide by the present state does.

import { ConditionFailed, connectGroup } from "../../js/dist/index.js"; // from "quorate", once it is installed

const { QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID } = process.env;
const log = await connectGroup(QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID);
let counter = 0;
let offset = (await log.status()).trimOffset;
for (let increased = false; !increased;) {
  for (let end = offset + 1; offset < end;) {
    const found = await log.read(offset);
    counter += found.entries.filter((entry) => entry.data.toString() === "+1").length;
    offset = found.nextOffset;
    end = found.commitOffset;
  }
  try {
    await log.append(Buffer.from("+1"), { expectedOffset: offset });
    increased = true;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error; // else somebody was quicker: read on, and try again
  }
}
console.log(counter + 1);
await log.close();
