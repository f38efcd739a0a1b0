/** The partition of a key: key hash 1 (sdk/contract/partitions.md). Pure. */

import { createHash } from "node:crypto";

/** The version that this SDK knows. */
export const KEY_HASH = 1;

/** The number of the key's partition, from 0 to `partitions` - 1. Text is encoded as UTF-8. */
export function partitionOf(key: Uint8Array | string, partitions: number): number {
  if (!(partitions >= 1)) throw new RangeError(`a group has at least one partition, not ${partitions}`);
  if (partitions === 1) return 0;
  return jump(createHash("sha256").update(key).digest().readBigUInt64BE(0), partitions);
}

/** Jump consistent hash (Lamping and Veach, 2014): a growth moves keys to new partitions alone. */
function jump(hash: bigint, partitions: number): number {
  let number = hash;
  let found = -1;
  let following = 0;
  while (following < partitions) {
    found = following;
    number = BigInt.asUintN(64, number * 2_862_933_555_777_941_757n + 1n);
    following = Math.floor((found + 1) * (2_147_483_648 / (Number(number >> 33n) + 1)));
  }
  return found;
}
