// How a program of the demo gets its configuration and tells progress and result: see
// ../quorate_demo/program.py.

/** The JSON object on stdin. */
export async function configuration() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}

export function tell(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** Seconds of the clock that time.monotonic() reads in Python. */
export function monotonicS() {
  return Number(process.hrtime.bigint()) / 1e9;
}

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
