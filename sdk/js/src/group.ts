/** Connecting by API key: the API issues the handle and its refreshed ones. */

import { type Client, connect, type ConnectOptions } from "./client.js";
import { Control } from "./control.js";
import { connectPartitioned, type PartitionedClient } from "./partitioned.js";

/** Connect to all partitions of a group by its id, and follow it when partitions are added. */
export async function connectPartitionedGroup(
  apiUrl: string,
  apiKey: string,
  groupId: string,
  options: Omit<ConnectOptions, "refresh" | "readOnly"> = {},
): Promise<PartitionedClient> {
  const control = new Control(apiUrl, apiKey);
  const refresh = () => control.handle(groupId);
  return connectPartitioned(await refresh(), { ...options, refresh });
}

/** Connect to a group by its id. Rejects with ApiError when the API refuses, with ConnectFailed as `connect` does. */
export async function connectGroup(
  apiUrl: string,
  apiKey: string,
  groupId: string,
  options: Omit<ConnectOptions, "refresh"> = {},
): Promise<Client> {
  const control = new Control(apiUrl, apiKey);
  const refresh = () => control.handle(groupId);
  return connect(await refresh(), { ...options, refresh });
}
