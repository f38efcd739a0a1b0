// The replay's schedule and entries, the same as in ../quorate_demo/{trace,entries}.py
// (tests/test_entries.py holds the two together).

export const ENTRY_BYTES = 64;
const ORG_BYTES = 24;
const NUMBER_BEGIN = 23;
const NUMBER_END = 35;

/** Due times of entries: see the Python class of the same name. */
export class Schedule {
  #before;

  /** @param {number} firstMinute @param {number[]} requests @param {number} seconds */
  constructor(firstMinute, requests, seconds) {
    this.firstMinute = firstMinute;
    this.requests = requests;
    this.seconds = seconds;
    this.minuteS = seconds / requests.length;
    this.#before = [0];
    for (const count of requests) this.#before.push(this.#before.at(-1) + count);
    this.total = this.#before.at(-1);
  }

  /** How many entries are due by `elapsedS`. */
  due(elapsedS) {
    if (elapsedS <= 0) return 0;
    const index = Math.floor(elapsedS / this.minuteS);
    if (index >= this.requests.length) return this.total;
    const share = elapsedS / this.minuteS - index;
    const within = this.#before[index] + Math.floor(share * this.requests[index]) + 1;
    return Math.min(within, this.#before[index + 1]);
  }

  /** The minute of the day in which request `number` came to the web site. */
  minuteOf(number) {
    let low = 0;
    let high = this.#before.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#before[middle] <= number) low = middle + 1;
      else high = middle;
    }
    return this.firstMinute + low - 1;
  }

  endOfMinute(minute) {
    return this.#before[minute - this.firstMinute + 1];
  }
}

/** Writes and checks the entries of one customer's replay of one day. */
export class EntryFormat {
  #schedule;
  #day;
  #org;

  /** @param {number} day @param {string} org @param {Schedule} schedule */
  constructor(day, org, schedule) {
    this.#schedule = schedule;
    this.#day = String(day).padStart(2, "0");
    this.#org = org.padEnd(ORG_BYTES, ".");
  }

  /** Entries `first` to `end`, the end excluded. */
  encodeRange(first, end) {
    const entries = [];
    let number = first;
    while (number < end) {
      const minute = this.#schedule.minuteOf(number);
      const minuteEnd = Math.min(end, this.#schedule.endOfMinute(minute));
      const template = Buffer.from(this.#text(minute, 0), "latin1");
      for (; number < minuteEnd; number++) {
        const entry = Buffer.from(template);
        writeDigits(entry, number);
        entries.push(entry);
      }
    }
    return entries;
  }

  /** The number of an entry whose every byte is as it was written; null otherwise. */
  numberOf(entry) {
    if (entry.length !== ENTRY_BYTES) return null;
    const bytes = Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength);
    const digits = bytes.latin1Slice(NUMBER_BEGIN, NUMBER_END);
    if (!/^\d{12}$/.test(digits)) return null;
    const number = Number(digits);
    if (number >= this.#schedule.total) return null;
    return bytes.latin1Slice() === this.#text(this.#schedule.minuteOf(number), number) ? number : null;
  }

  #text(minute, number) {
    const minuteText = String(minute).padStart(4, "0");
    const numberText = String(number).padStart(12, "0");
    return `wc98 day=${this.#day} min=${minuteText} n=${numberText} org=${this.#org}`;
  }
}

function writeDigits(entry, number) {
  let rest = number;
  for (let position = NUMBER_END - 1; rest > 0; position--) {
    entry[position] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}
