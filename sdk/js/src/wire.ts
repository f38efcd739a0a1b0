/**
 * The codec of the wire protocol (sdk/contract/wire.md): pure, both directions, no sockets.
 *
 * `FrameSplitter` turns received bytes into frames with correct lengths and checksums. `decode` turns a frame into its
 * message, `encode` a message into bytes. `encodeAppend` serves the hot APPEND without a message object.
 *
 * 64-bit fields are numbers up to the safe integers, and bigints beyond. Only sessions, nonces and the all-ones "no
 * condition" are ever beyond.
 */

import { crc32 } from "node:zlib";

import { Code } from "./codes.js";

export const OLDEST_VERSION = 1;
export const VERSION = 1;
export const NO_EXPECTED_OFFSET = 0xffff_ffff_ffff_ffffn;
export const HEADER_BYTES = 16;
export const TRACE_BYTES = 25;
const CLIENT_NAME_BYTES_MAX = 64;
const MAGIC = 0x3154_5251; // "QRT1", little-endian

export const Kind = {
  HELLO: 1,
  HELLO_OK: 2,
  ATTACH: 3,
  ATTACHED: 4,
  APPEND: 5,
  ACKED: 6,
  REFUSED: 7,
  READ: 8,
  ENTRIES: 9,
  SUBSCRIBE: 10,
  CREDIT: 11,
  CANCEL: 12,
  STATUS: 13,
  STATUS_OK: 14,
  PING: 15,
  PONG: 16,
  GOODBYE: 17,
  DETACH: 18,
  NOTICE: 19,
  TRIM: 20,
  TRIM_OK: 21,
} as const;
const KIND_MAX = 21;

export const ROLES = ["none", "head", "follower", "tail", "learner", "sole"] as const;
export const STATES = ["none", "active", "degraded", "paused", "read_only", "lost", "syncing"] as const;
export const Role = { NONE: 0, HEAD: 1, FOLLOWER: 2, TAIL: 3, LEARNER: 4, SOLE: 5 } as const;
export const State = { ACTIVE: 1, DEGRADED: 2, PAUSED: 3, READ_ONLY: 4, LOST: 5, SYNCING: 6 } as const;
export const Outcome = { REFUSED: 1, UNKNOWN: 2 } as const;
/** The `retry` byte of REFUSED. */
export const RetryHint = { NEVER: 0, HERE: 1, HEAD: 2, HANDLE: 3 } as const;

export type U64 = number | bigint;

/** The peer sent bytes that are not this protocol. GOODBYE carries `code` to it. */
export class WireError extends Error {
  override name = "WireError";
  constructor(
    readonly code: number,
    readonly reason: string,
  ) {
    super(`code ${code}: ${reason}`);
  }
}

export interface Hello {
  kind: typeof Kind.HELLO;
  /** The oldest that the client speaks. */
  version: number;
  /** 0: the same. */
  newestVersion: number;
  clientName: string;
}
export interface HelloOk {
  kind: typeof Kind.HELLO_OK;
  version: number;
  serverId: number;
  maxFrameBytes: number;
  maxEntryBytes: number;
  maxBatchBytes: number;
  maxBatchEntries: number;
}
export interface Attach {
  kind: typeof Kind.ATTACH;
  group: string;
  session: U64;
  token: string;
}
export interface Attached {
  kind: typeof Kind.ATTACHED;
  epoch: U64;
  role: number;
  durability: number;
  state: number;
  windowBatches: number;
  lastIndex: U64;
  nextSeq: U64;
  commitOffset: U64;
  trimOffset: U64;
  ratePerS: U64;
  head: string;
}
export interface Append {
  kind: typeof Kind.APPEND;
  seq: U64;
  floorIndex: U64;
  timeoutMs: number;
  entryCount: number;
  payloadLen: number;
  payloadCrc: number;
  expectedOffset: U64;
  fencingToken: U64;
  payload: Buffer;
}
export interface Ack {
  seq: U64;
  baseOffset: U64;
}
export interface Acked {
  kind: typeof Kind.ACKED;
  acks: Ack[];
}
export interface Refused {
  kind: typeof Kind.REFUSED;
  op: number;
  outcome: number;
  retry: number;
  code: number;
  retryAfterMs: number;
  id: U64;
  head: string;
  message: string;
}
export interface Read {
  kind: typeof Kind.READ;
  request: number;
  maxBytes: number;
  maxEntries: number;
  waitMs: number;
  offset: U64;
}
export interface EntriesBatch {
  baseOffset: U64;
  timestampUs: U64;
  entryCount: number;
  payloadLen: number;
  payloadCrc: number;
}
export interface Entries {
  kind: typeof Kind.ENTRIES;
  request: number;
  nextOffset: U64;
  commitOffset: U64;
  trimOffset: U64;
  batches: EntriesBatch[];
  /** The payloads of all batches, one after the other. */
  payload: Buffer;
}
export interface Subscribe {
  kind: typeof Kind.SUBSCRIBE;
  request: number;
  creditBytes: number;
  offset: U64;
}
export interface Credit {
  kind: typeof Kind.CREDIT;
  request: number;
  bytes: number;
}
export interface Cancel {
  kind: typeof Kind.CANCEL;
  request: number;
}
export interface Status {
  kind: typeof Kind.STATUS;
  request: number;
}
export interface StatusOk {
  kind: typeof Kind.STATUS_OK;
  request: number;
  role: number;
  state: number;
  epoch: U64;
  commitOffset: U64;
  durableOffset: U64;
  trimOffset: U64;
  nextOffset: U64;
  head: string;
}
export interface Ping {
  kind: typeof Kind.PING;
  nonce: U64;
}
export interface Pong {
  kind: typeof Kind.PONG;
  nonce: U64;
}
export interface Goodbye {
  kind: typeof Kind.GOODBYE;
  code: number;
  message: string;
}
export interface Detach {
  kind: typeof Kind.DETACH;
}
export interface Notice {
  kind: typeof Kind.NOTICE;
  epoch: U64;
  role: number;
  state: number;
  ratePerS: U64;
  head: string;
}
export interface Trim {
  kind: typeof Kind.TRIM;
  request: number;
  beforeOffset: U64;
}
export interface TrimOk {
  kind: typeof Kind.TRIM_OK;
  request: number;
  trimOffset: U64;
}

export type Message =
  | Hello
  | HelloOk
  | Attach
  | Attached
  | Append
  | Acked
  | Refused
  | Read
  | Entries
  | Subscribe
  | Credit
  | Cancel
  | Status
  | StatusOk
  | Ping
  | Pong
  | Goodbye
  | Detach
  | Notice
  | Trim
  | TrimOk;

type FieldType = "u8" | "u16" | "u32" | "u64" | "pad8" | "pad16" | "magic" | "uuid" | "text8" | "text16";
type Layout = readonly (readonly [FieldType, string])[];

/** The fields of each kind's head, in the order of the wire. */
const LAYOUTS: { readonly [kind: number]: Layout } = {
  [Kind.HELLO]: layout("magic , u16 version, u16 newestVersion, text8 clientName"),
  [Kind.HELLO_OK]: layout(
    "u16 version, pad16 , u32 serverId, u32 maxFrameBytes, u32 maxEntryBytes, u32 maxBatchBytes, u32 maxBatchEntries",
  ),
  [Kind.ATTACH]: layout("uuid group, u64 session, text16 token"),
  [Kind.ATTACHED]: layout(
    "u64 epoch, u8 role, u8 durability, u8 state, pad8 , u32 windowBatches, u64 lastIndex, u64 nextSeq, " +
      "u64 commitOffset, u64 trimOffset, u64 ratePerS, text8 head",
  ),
  [Kind.APPEND]: layout(
    "u64 seq, u64 floorIndex, u32 timeoutMs, u32 entryCount, u32 payloadLen, u32 payloadCrc, u64 expectedOffset, " +
      "u64 fencingToken",
  ),
  [Kind.REFUSED]: layout(
    "u8 op, u8 outcome, u8 retry, pad8 , u16 code, pad16 , u32 retryAfterMs, u64 id, text8 head, text16 message",
  ),
  [Kind.READ]: layout("u32 request, u32 maxBytes, u32 maxEntries, u32 waitMs, u64 offset"),
  [Kind.SUBSCRIBE]: layout("u32 request, u32 creditBytes, u64 offset"),
  [Kind.CREDIT]: layout("u32 request, u32 bytes"),
  [Kind.CANCEL]: layout("u32 request"),
  [Kind.STATUS]: layout("u32 request"),
  [Kind.STATUS_OK]: layout(
    "u32 request, u8 role, u8 state, pad16 , u64 epoch, u64 commitOffset, u64 durableOffset, u64 trimOffset, " +
      "u64 nextOffset, text8 head",
  ),
  [Kind.PING]: layout("u64 nonce"),
  [Kind.PONG]: layout("u64 nonce"),
  [Kind.GOODBYE]: layout("u16 code, text16 message"),
  [Kind.DETACH]: [],
  [Kind.NOTICE]: layout("u64 epoch, u8 role, u8 state, pad16 , u64 ratePerS, text8 head"),
  [Kind.TRIM]: layout("u32 request, u64 beforeOffset"),
  [Kind.TRIM_OK]: layout("u32 request, u64 trimOffset"),
};
const ENTRIES_FIXED = layout("u64 nextOffset, u64 commitOffset, u64 trimOffset");
const ENTRIES_BATCH = layout("u64 baseOffset, u64 timestampUs, u32 entryCount, u32 payloadLen, u32 payloadCrc");
const ENTRIES_BATCH_BYTES = 28;

function layout(text: string): Layout {
  return text.split(", ").map((field) => field.split(" ") as [FieldType, string]);
}

export function kindName(kind: number): string {
  return Object.entries(Kind).find(([, value]) => value === kind)?.[0] ?? `kind ${kind}`;
}

/** A frame with a correct length and head checksum. Its fields are not decoded yet. */
export interface Frame {
  kind: number;
  channel: number;
  /** The head without the trace context. */
  head: Buffer;
  payload: Buffer;
  trace: Buffer | undefined;
}

/** Collects received bytes into whole frames. Holds at most one incomplete frame. */
export class FrameSplitter {
  #rest: Buffer | undefined;
  #chunks: Buffer[] = [];
  #missing = 0;

  constructor(public maxFrameBytes: number) {}

  /** The frames that `data` completes. Throws WireError, after which the stream is unusable. */
  feed(data: Buffer): Frame[] {
    if (this.#missing > 0) {
      // A large frame is arriving: collect its pieces and join them once.
      this.#chunks.push(data);
      this.#missing -= data.length;
      if (this.#missing > 0) return [];
      data = Buffer.concat(this.#chunks);
      this.#chunks = [];
      this.#missing = 0;
    } else if (this.#rest !== undefined) {
      data = Buffer.concat([this.#rest, data]);
    }
    this.#rest = undefined;
    const frames: Frame[] = [];
    let at = 0;
    while (data.length - at >= HEADER_BYTES) {
      const size = this.#checkHeader(data, at);
      if (data.length - at < size) {
        this.#missing = size - (data.length - at);
        this.#chunks = [data.subarray(at)];
        return frames;
      }
      frames.push(frameAt(data, at, size));
      at += size;
    }
    if (at < data.length) this.#rest = data.subarray(at);
    return frames;
  }

  #checkHeader(data: Buffer, at: number): number {
    const bodyLen = data.readUInt32LE(at);
    const kind = data.readUInt8(at + 4);
    if (bodyLen > this.maxFrameBytes) {
      throw new WireError(Code.frame_too_large, `a frame of ${bodyLen} bytes; at most ${this.maxFrameBytes}`);
    }
    if (kind < 1 || kind > KIND_MAX) throw new WireError(Code.protocol_error, `unknown kind ${kind}`);
    if (data.readUInt16LE(at + 6) > bodyLen) {
      throw new WireError(Code.protocol_error, "the head is longer than the body");
    }
    return HEADER_BYTES + bodyLen;
  }
}

function frameAt(data: Buffer, at: number, size: number): Frame {
  const headAt = at + HEADER_BYTES;
  const headEnd = headAt + data.readUInt16LE(at + 6);
  let head = data.subarray(headAt, headEnd);
  if (crc32(head, crc32(data.subarray(at, at + 12))) !== data.readUInt32LE(at + 12)) {
    throw new WireError(Code.checksum_mismatch, "the CRC of a frame's head is wrong");
  }
  let trace: Buffer | undefined;
  if (data.readUInt8(at + 5) & 1) {
    if (head.length < TRACE_BYTES) {
      throw new WireError(Code.protocol_error, "the head has no room for its trace context");
    }
    trace = head.subarray(head.length - TRACE_BYTES);
    head = head.subarray(0, head.length - TRACE_BYTES);
  }
  return {
    kind: data.readUInt8(at + 4),
    channel: data.readUInt32LE(at + 8),
    head,
    payload: data.subarray(headEnd, at + size),
    trace,
  };
}

export function readU64(data: Buffer, at: number): U64 {
  const high = data.readUInt32LE(at + 4);
  return high < 0x20_0000 ? high * 0x1_0000_0000 + data.readUInt32LE(at) : data.readBigUInt64LE(at);
}

export function writeU64(data: Buffer, value: U64, at: number): void {
  if (typeof value === "bigint") {
    data.writeBigUInt64LE(value, at);
  } else {
    data.writeUInt32LE(value % 0x1_0000_0000, at);
    data.writeUInt32LE(Math.floor(value / 0x1_0000_0000), at + 4);
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

class HeadReader {
  at = 0;
  constructor(
    readonly head: Buffer,
    readonly kind: number,
  ) {}

  take(size: number): number {
    const at = this.at;
    this.at += size;
    if (this.at > this.head.length) throw this.malformed("it is too short");
    return at;
  }

  malformed(reason: string): WireError {
    return new WireError(Code.protocol_error, `malformed ${kindName(this.kind)}: ${reason}`);
  }

  field(type: FieldType): unknown {
    switch (type) {
      case "u8":
        return this.head.readUInt8(this.take(1));
      case "u16":
        return this.head.readUInt16LE(this.take(2));
      case "u32":
        return this.head.readUInt32LE(this.take(4));
      case "u64":
        return readU64(this.head, this.take(8));
      case "pad8":
        return this.take(1);
      case "pad16":
        return this.take(2);
      case "magic":
        if (this.head.readUInt32LE(this.take(4)) !== MAGIC) throw this.malformed("wrong magic");
        return undefined;
      case "uuid": {
        const hex = this.head.toString("hex", this.take(16), this.at);
        return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
      }
      case "text8":
        return this.text(this.head.readUInt8(this.take(1)));
      case "text16":
        return this.text(this.head.readUInt16LE(this.take(2)));
    }
  }

  text(size: number): string {
    const at = this.take(size);
    try {
      return UTF8.decode(this.head.subarray(at, at + size));
    } catch {
      throw this.malformed("a string is not UTF-8");
    }
  }

  fields(fields: Layout, into: Record<string, unknown>): Record<string, unknown> {
    for (const [type, name] of fields) {
      const value = this.field(type);
      if (name) into[name] = value;
    }
    return into;
  }
}

/** The message in a frame. Checks payload lengths and CRCs. Throws WireError. */
export function decode(frame: Frame): Message {
  const { kind, head, payload } = frame;
  const reader = new HeadReader(head, kind);
  if (kind === Kind.ENTRIES) return decodeEntries(reader, payload);
  if (kind === Kind.APPEND) {
    const append = reader.fields(LAYOUTS[kind] ?? [], { kind }) as unknown as Append;
    append.payload = payload;
    checkPayload(payload, append.payloadLen, append.payloadCrc);
    return append;
  }
  if (payload.length > 0) throw new WireError(Code.protocol_error, `payload after ${kindName(kind)}`);
  if (kind === Kind.ACKED) return { kind, acks: decodeAcks(reader) };
  const message = reader.fields(LAYOUTS[kind] ?? [], { kind }) as unknown as Message;
  if (message.kind === Kind.HELLO) checkHello(message, reader);
  return message;
}

/** The hello of a client that speaks this module's versions. */
export function hello(clientName: string): Hello {
  const newestVersion = Number(VERSION) === OLDEST_VERSION ? 0 : VERSION;
  return { kind: Kind.HELLO, version: OLDEST_VERSION, newestVersion, clientName };
}

function checkHello(message: Hello, reader: HeadReader): void {
  if (message.newestVersion > 0 && message.newestVersion < message.version) {
    throw reader.malformed("the versions end before they begin");
  }
  if (Buffer.byteLength(message.clientName) > CLIENT_NAME_BYTES_MAX) {
    throw reader.malformed("the client's name is too long");
  }
}

function decodeAcks(reader: HeadReader): Ack[] {
  const { head } = reader;
  const count = head.readUInt32LE(reader.take(4));
  let at = reader.take(count * 16);
  const acks: Ack[] = new Array<Ack>(count);
  for (let i = 0; i < count; i++, at += 16) acks[i] = { seq: readU64(head, at), baseOffset: readU64(head, at + 8) };
  return acks;
}

function decodeEntries(reader: HeadReader, payload: Buffer): Entries {
  const request = reader.field("u32");
  const count = reader.field("u32") as number;
  const message = reader.fields(ENTRIES_FIXED, { kind: Kind.ENTRIES, request, payload }) as unknown as Entries;
  if (reader.at + count * ENTRIES_BATCH_BYTES > reader.head.length) {
    throw reader.malformed("more batches announced than there are");
  }
  message.batches = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    const batch = reader.fields(ENTRIES_BATCH, {}) as unknown as EntriesBatch;
    message.batches.push(batch);
    at += batch.payloadLen;
  }
  if (at !== payload.length) throw reader.malformed("the payloads do not add up to the frame");
  at = 0;
  for (const batch of message.batches) {
    checkPayload(payload.subarray(at, at + batch.payloadLen), batch.payloadLen, batch.payloadCrc);
    at += batch.payloadLen;
  }
  return message;
}

function checkPayload(payload: Buffer, length: number, crc: number): void {
  if (payload.length !== length) {
    throw new WireError(Code.protocol_error, `a payload of ${payload.length} bytes was announced as ${length}`);
  }
  if (crc32(payload) !== crc) throw new WireError(Code.checksum_mismatch, "the CRC of a payload is wrong");
}

/** The entries in `payload[at, end)`, as views. They must fill it. Throws WireError batch_malformed. */
export function splitEntries(payload: Buffer, entryCount: number, at = 0, end = payload.length): Buffer[] {
  const entries: Buffer[] = [];
  while (at + 4 <= end) {
    const start = at + 4;
    at = start + payload.readUInt32LE(at);
    entries.push(payload.subarray(start, at));
  }
  if (at !== end || entries.length !== entryCount || entryCount === 0) {
    throw new WireError(Code.batch_malformed, `${entryCount} entries announced do not add up to the payload`);
  }
  return entries;
}

/** The payload that holds the entries. */
export function packEntries(entries: readonly Uint8Array[]): Buffer {
  const payload = Buffer.allocUnsafe(entries.reduce((size, entry) => size + 4 + entry.length, 0));
  let at = 0;
  for (const entry of entries) {
    payload.writeUInt32LE(entry.length, at);
    payload.set(entry, at + 4);
    at += 4 + entry.length;
  }
  return payload;
}

function encodeField(type: FieldType, value: unknown): Buffer {
  const fixed = (size: number, write: (data: Buffer) => void) => {
    const data = Buffer.alloc(size);
    write(data);
    return data;
  };
  switch (type) {
    case "u8":
      return fixed(1, (data) => data.writeUInt8(value as number));
    case "u16":
      return fixed(2, (data) => data.writeUInt16LE(value as number));
    case "u32":
      return fixed(4, (data) => data.writeUInt32LE(value as number));
    case "u64":
      return fixed(8, (data) => writeU64(data, value as U64, 0));
    case "pad8":
      return Buffer.alloc(1);
    case "pad16":
      return Buffer.alloc(2);
    case "magic":
      return fixed(4, (data) => data.writeUInt32LE(MAGIC));
    case "uuid":
      return Buffer.from((value as string).replaceAll("-", ""), "hex");
    case "text8":
    case "text16": {
      const text = Buffer.from(value as string);
      return Buffer.concat([encodeField(type === "text8" ? "u8" : "u16", text.length), text]);
    }
  }
}

function encodeFields(fields: Layout, message: object): Buffer {
  const values = message as Record<string, unknown>;
  return Buffer.concat(fields.map(([type, name]) => encodeField(type, values[name])));
}

/** The frame of a message. */
export function encode(message: Message, channel = 0, trace?: Uint8Array): Buffer {
  let head: Buffer;
  let payload: Buffer = Buffer.alloc(0);
  if (message.kind === Kind.ENTRIES) {
    payload = message.payload;
    const counts = [encodeField("u32", message.request), encodeField("u32", message.batches.length)];
    const batches = message.batches.map((batch) => encodeFields(ENTRIES_BATCH, batch));
    head = Buffer.concat([...counts, encodeFields(ENTRIES_FIXED, message), ...batches]);
  } else if (message.kind === Kind.ACKED) {
    const acks = message.acks.flatMap((ack) => [encodeField("u64", ack.seq), encodeField("u64", ack.baseOffset)]);
    head = Buffer.concat([encodeField("u32", message.acks.length), ...acks]);
  } else {
    head = encodeFields(LAYOUTS[message.kind] ?? [], message);
    if (message.kind === Kind.APPEND) payload = message.payload;
  }
  const frame = Buffer.concat([Buffer.alloc(HEADER_BYTES), head, ...(trace ? [trace] : [])]);
  return Buffer.concat([finishHead(frame, message.kind, channel, payload.length, trace !== undefined), payload]);
}

/** Fill in the header of `frame`, which has 16 bytes for it and then the whole head. */
function finishHead(frame: Buffer, kind: number, channel: number, payloadLen: number, traced: boolean): Buffer {
  const headLen = frame.length - HEADER_BYTES;
  frame.writeUInt32LE(headLen + payloadLen, 0);
  frame[4] = kind;
  frame[5] = traced ? 1 : 0;
  frame.writeUInt16LE(headLen, 6);
  frame.writeUInt32LE(channel, 8);
  frame.writeUInt32LE(crc32(frame.subarray(HEADER_BYTES), crc32(frame.subarray(0, 12))), 12);
  return frame;
}

const APPEND_BYTES = 48;

/** Header and head of an APPEND. The payload is written after them without a copy. */
export function encodeAppend(
  channel: number,
  seq: number,
  floorIndex: number,
  timeoutMs: number,
  entryCount: number,
  payloadLen: number,
  payloadCrc: number,
  expectedOffset: U64,
  fencingToken: U64,
  trace: Uint8Array | undefined,
): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + APPEND_BYTES + (trace ? TRACE_BYTES : 0));
  writeU64(frame, seq, 16);
  writeU64(frame, floorIndex, 24);
  frame.writeUInt32LE(timeoutMs, 32);
  frame.writeUInt32LE(entryCount, 36);
  frame.writeUInt32LE(payloadLen, 40);
  frame.writeUInt32LE(payloadCrc, 44);
  writeU64(frame, expectedOffset, 48);
  writeU64(frame, fencingToken, 56);
  if (trace) frame.set(trace, 64);
  return finishHead(frame, Kind.APPEND, channel, payloadLen, trace !== undefined);
}
