/**
 * Quorate: ordered, durable logs as a service.
 *
 *     const client = await connect(handle);       // or connectGroup(apiUrl, apiKey, groupId)
 *     const offset = await client.append(Buffer.from("hello"));
 *     for await (const entry of client.tail(0)) …
 *
 *     const client = await connectPartitionedGroup(apiUrl, apiKey, groupId); // a group with partitions
 *     const placed = await client.append(Buffer.from("paid"), { key: "order-17" });
 *
 * `quorate/control` is the client of the API.
 */

export type { Appended } from "./appender.js";
export {
  type AppendOptions,
  type Client,
  connect,
  type ConnectOptions,
  type GroupStatus,
  type ReadOptions,
  type ReadResult,
} from "./client.js";
export { Code, type CodeInfo, type CodeName, CODES } from "./codes.js";
export { Cursor, type LayoutChange } from "./cursor.js";
export {
  AppendError,
  AppendRefused,
  AppendUnknown,
  CodedError,
  ConditionFailed,
  ConnectFailed,
  CursorError,
  Fenced,
  HandleError,
  QuorateError,
  ReadRefused,
  Trimmed,
} from "./errors.js";
export { connectGroup, connectPartitionedGroup } from "./group.js";
export {
  type Endpoint,
  type Guarantee,
  Handle,
  type HandleJson,
  type HandleLike,
  type Limits,
  type Partitions,
} from "./handle.js";
export { partitionOf } from "./keys.js";
export { type MergedTail, type PartitionEntry } from "./merged.js";
export { connectPartitioned, type PartitionedAppendOptions, type PartitionedClient } from "./partitioned.js";
export type { Tail } from "./reader.js";
export type { Placed } from "./rerouting.js";
export type { Entry } from "./tail.js";
export type { TracerLike } from "./tracing.js";
export { VERSION } from "./version.js";
