/**
 * Appends numbered entries of some keys to a group with partitions, while the group grows, and tails it beside that.
 *
 *     node partitions.mjs API_URL API_KEY GROUP_ID PARTITIONS
 *
 * It prints the partitions used, and fails where an entry is lost, is there twice, or a key's order is not kept.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { AppendUnknown, connectPartitionedGroup } from "../../sdk/js/dist/index.js";
import { Control } from "../../sdk/js/dist/control.js";

const [, , apiUrl, apiKey, groupId, partitions] = process.argv;
const KEYS = Array.from({ length: 40 }, (_, number) => `key-${number}`);

const client = await connectPartitionedGroup(apiUrl, apiKey, groupId);
const reader = await connectPartitionedGroup(apiUrl, apiKey, groupId);
const control = new Control(apiUrl, apiKey);
const first = client.partitions;

const acked = new Map(KEYS.map((key) => [key, new Set()]));
const seen = new Map(KEYS.map((key) => [key, []]));
const used = new Set();
let unknown = 0;
let count = 0;
let received = 0;

const tail = reader.tail();
const following = (async () => {
  for await (const entry of tail) {
    const [key, number] = entry.data.toString().split(":");
    seen.get(key).push(Number(number));
    used.add(entry.partition);
    received++;
  }
})();

const waiting = [];
const growth = sleep(1_000).then(() => control.addPartitions(groupId, Number(partitions)));
for (let number = 0; number < 150; number++) {
  for (const key of KEYS) {
    const append = client.append(Buffer.from(`${key}:${number}`), { key, timeoutMs: 20_000 });
    const noted = append.then(
      () => {
        acked.get(key).add(number);
        count++;
      },
      (problem) => {
        if (!(problem instanceof AppendUnknown)) throw problem;
        unknown++;
      },
    );
    waiting.push(noted);
  }
  await client.ready();
  await sleep(20);
}
await growth;
await Promise.all(waiting);
for (let look = 0; received < count && look < 100; look++) await sleep(50);
const saved = tail.cursor;
await control.saveCheckpoint(groupId, "e2e", saved);
assert.deepEqual(await control.checkpoint(groupId, "e2e"), saved);
await tail.return();
await following;

for (const key of KEYS) {
  const numbers = seen.get(key);
  assert.deepEqual(numbers, [...new Set(numbers)].sort((one, other) => one - other), key);
  for (const number of acked.get(key)) assert.ok(numbers.includes(number), `${key}:${number} is lost`);
}
assert.deepEqual([first, client.partitions, reader.partitions], [first, Number(partitions), Number(partitions)]);
await Promise.all([client.close(), reader.close()]);
console.log(JSON.stringify({ acked: count, unknown, used: [...used].sort((one, other) => one - other) }));
