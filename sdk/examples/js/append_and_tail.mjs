// Appends an entry, then prints the log from there on for a second.

import { connectGroup } from "../../js/dist/index.js"; // from "quorate", once it is installed

const { QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID } = process.env;
const log = await connectGroup(QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID);
const offset = await log.append(Buffer.from("hello"));
console.log(`appended at offset ${offset}`);
const tail = log.tail(offset);
setTimeout(() => tail.return(), 1_000);
for await (const entry of tail) console.log(entry.offset, entry.data.toString());
await log.close();
