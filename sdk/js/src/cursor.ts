/** A reader's place in all partitions of a group (sdk/contract/partitions.md). Pure. */

import { CursorError } from "./errors.js";

const FORM = /^qc1:([0-9a-f]{32}):(\d{1,20}(?:,\d{1,20})*)$/;
const PARTITIONS_MAX = 256;

/** The offset of the next entry of each partition. `String(cursor)` is a text to keep, and `Cursor.parse` reads it. */
export class Cursor {
  constructor(
    readonly groupId: string,
    readonly offsets: readonly number[],
  ) {}

  toString(): string {
    return `qc1:${this.groupId.replaceAll("-", "")}:${this.offsets.join(",")}`;
  }

  toJSON(): string {
    return this.toString();
  }

  /** Throws CursorError. */
  static parse(text: string): Cursor {
    const match = FORM.exec(text);
    if (match === null) {
      throw new CursorError(`'${text.slice(0, 80)}' is no cursor: it reads qc1:<group id>:<offset>,<offset>,…`);
    }
    const offsets = match[2]!.split(",").map(Number);
    if (offsets.length > PARTITIONS_MAX || !offsets.every(Number.isSafeInteger)) {
      throw new CursorError("the cursor has more partitions, or greater offsets, than any group");
    }
    const hex = match[1]!;
    const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
    return new Cursor(parts.join("-"), offsets);
  }

  static beginning(groupId: string): Cursor {
    return new Cursor(groupId, [0]);
  }

  /** From the API's answer (`Control.checkpoint`). Partitions without an offset begin at 0. */
  static ofCheckpoint(groupId: string, saved: readonly { partition: number; next_offset: number }[]): Cursor {
    const offsets = new Array<number>(Math.max(0, ...saved.map((each) => each.partition)) + 1).fill(0);
    for (const each of saved) offsets[each.partition] = each.next_offset;
    return new Cursor(groupId.toLowerCase(), offsets);
  }

  /**
   * The same with an offset for each of the group's partitions. Partitions that were added since begin at 0. Throws
   * CursorError for a cursor of another group, or of more partitions.
   */
  within(groupId: string, partitions: number): Cursor {
    if (this.groupId !== groupId)
      throw new CursorError(`the cursor is of the group ${this.groupId}, and this is ${groupId}`);
    if (this.offsets.length > partitions) {
      throw new CursorError(
        `the cursor has ${this.offsets.length} partitions, and the group has ${partitions}: partitions are never removed, ` +
          "so it is of another group, or the handle is older than the cursor",
      );
    }
    const added = new Array<number>(partitions - this.offsets.length).fill(0);
    return new Cursor(groupId, [...this.offsets, ...added]);
  }
}

/** A growth: a new partition's entries come after those below `ends` in each of the former partitions. */
export interface LayoutChange {
  readonly layout: number;
  readonly fromPartitions: number;
  readonly toPartitions: number;
  readonly ends: readonly number[];
}

/** Whether entries of the partition may be given to a reader who has come so far in the others. */
export function mayBegin(partition: number, changes: readonly LayoutChange[], offsets: readonly number[]): boolean {
  const added = changes.filter((change) => change.fromPartitions <= partition && partition < change.toPartitions);
  return added.every((change) => change.ends.every((end, number) => (offsets[number] ?? 0) >= end));
}
