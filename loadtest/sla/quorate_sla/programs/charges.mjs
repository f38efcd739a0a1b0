// The charges of the TypeScript SDK for batches. Reads traces from standard input and answers each, as JSON.
// Argument: the URL of the SDK's module.

import { readFileSync } from "node:fs";

const { Pacing, chargesOf } = await import(new URL("pacing.js", process.argv[2]));

function answer({ charges: source, batches }) {
  const charges = chargesOf(source);
  const costs = [];
  const waits = [];
  for (const [entries, bytes] of batches) {
    const pacing = new Pacing(charges);
    pacing.setRate(charges.ratePerS, 0);
    // Empty the buckets, which are a sixteenth larger than the head's.
    const whole = charges.tokensPerS.map((milli) => Math.floor((milli * 17) / 16));
    if (pacing.take(0, whole) !== 0) throw new Error("full buckets hold a second");
    const cost = pacing.cost(entries, bytes);
    costs.push(cost);
    waits.push(pacing.take(0, cost) * 1_000);
  }
  return { milli: costs, wait_us: waits };
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(answer)));
