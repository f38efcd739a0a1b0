// The loop of the TypeScript SDK's README, for a group and entries of one size. Prints how the appends ended, as JSON.
//
// Arguments: the SDK's module, the size of an entry in bytes, the number of entries. Address, key and group come from
// the environment.

const [module, sizeBytes, entries] = process.argv.slice(2);
const { connectGroup } = await import(module);
const { QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID } = process.env;
const log = await connectGroup(QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID);
const appended = [];
for (let number = 0; number < Number(entries); number += 1) {
  await log.ready();
  appended.push(log.append(new Uint8Array(Number(sizeBytes))));
}
const ended = await Promise.allSettled(appended);
await log.close();
const failed = ended.filter((each) => each.status === "rejected");
const first = failed.length > 0 ? String(failed[0].reason) : "";
console.log(JSON.stringify({ acked: ended.length - failed.length, failed: failed.length, first }));
