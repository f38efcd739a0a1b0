/** The handle: addresses, token and limits of a group (sdk/contract/handle.md). */

import { inspect } from "node:util";

import { type LayoutChange } from "./cursor.js";
import { HandleError } from "./errors.js";
import { type Charges, chargesOf } from "./pacing.js";
import { type Trust, trustOf } from "./trust.js";

export interface Endpoint {
  readonly serverId: number;
  readonly address: string;
  readonly role: string;
}

export interface Limits {
  readonly maxEntryBytes: number;
  readonly maxBatchBytes: number;
  readonly maxBatchEntries: number;
}

const PARTITIONS_MAX = 256;
export const LIMITS_DEFAULT: Limits = { maxEntryBytes: 1 << 20, maxBatchBytes: 4 << 20, maxBatchEntries: 65_536 };

/** The project's guarantee, which all its groups share. Appends are of the declared size. */
export interface Guarantee {
  sharedTokensPerS: number;
  tokensPerAppend: number;
  sharedAppendsPerS: number;
}

/** The partitions of a group, and how keys find them (sdk/contract/partitions.md). */
export interface Partitions {
  readonly keyHash: number;
  readonly layout: number;
  readonly changes: readonly LayoutChange[];
  /** A handle for each partition, in order. One without endpoints has no servers now. */
  readonly members: readonly Handle[];
}

/** The API's answer to `GET /v1/groups/{id}/handle`. */
export interface HandleJson {
  group_id: string;
  name?: string;
  epoch?: number;
  endpoints: { server_id?: number; address: string; role?: string }[];
  token: string;
  token_expires_at?: string | null;
  sla?: { request_size_bytes?: number };
  charges?: {
    rate_per_s: number;
    tokens_per_s_milli: number[];
    cost: { fixed_milli: number[]; per_byte_milli: number[] };
    short_batch: { entries: number; lacking_milli: number[] };
  } | null;
  limits?: { max_entry_bytes?: number; max_batch_bytes?: number; max_batch_entries?: number };
  guarantee?: { shared_tokens_per_s: number; tokens_per_append: number; shared_appends_per_s: number } | null;
  traceparent?: string | null;
  /** Null, or absent: the group has one chain, which this handle reaches. */
  partitions?: {
    key_hash: number;
    layout: number;
    changes: { layout: number; from_partitions: number; to_partitions: number; ends: number[] }[];
    members: Pick<HandleJson, "group_id" | "epoch" | "endpoints" | "token" | "charges">[];
  } | null;
  /** Absent: connections are not encrypted. If an authority is named, TLS is used, required or not. */
  tls?: { required?: boolean; ca_pem: string } | null;
}

export type HandleLike = Handle | HandleJson | string;

export class Handle {
  readonly groupId: string;
  readonly name: string;
  readonly epoch: number;
  readonly endpoints: readonly Endpoint[];
  readonly tokenExpiresAt: Date | undefined;
  readonly limits: Limits;
  readonly traceparent: string | undefined;
  /** The request size of the SLA's rate; 0: not known. */
  readonly requestSizeBytes: number;
  /** What batches take from the group's rate; undefined: appends are not paced. */
  readonly charges: Charges | undefined;
  /** What this group may use beside its rate, while no other group of the project wants any. */
  readonly guarantee: Guarantee | undefined;
  /** Undefined: the group has one chain, which this handle reaches. */
  readonly partitions: Partitions | undefined;
  // Private, so that a logged or serialised handle does not show its secret.
  readonly #token: string;
  readonly #trust: Trust | undefined;
  readonly #source: Record<string, unknown>;

  private constructor(source: Record<string, unknown>, isMember = false) {
    this.#source = source;
    this.groupId = uuid(source["group_id"]);
    this.name = typeof source["name"] === "string" ? source["name"] : "";
    this.epoch = typeof source["epoch"] === "number" ? source["epoch"] : 0;
    this.endpoints = endpoints(source["endpoints"], isMember);
    if (typeof source["token"] !== "string") throw new HandleError("the handle lacks a token");
    this.#token = source["token"];
    this.tokenExpiresAt = expiry(source["token_expires_at"]);
    this.limits = limits(source["limits"]);
    this.traceparent = typeof source["traceparent"] === "string" ? source["traceparent"] : undefined;
    this.requestSizeBytes = requestSize(source["sla"]);
    this.charges = parsedCharges(source["charges"]);
    this.guarantee = parsedGuarantee(source["guarantee"]);
    this.#trust = trust(source["tls"]);
    this.partitions = isMember ? undefined : this.#parsedPartitions(source["partitions"]);
  }

  #parsedPartitions(source: unknown): Partitions | undefined {
    if (source === undefined || source === null) return undefined;
    const { key_hash, layout, changes, members } = source as NonNullable<HandleJson["partitions"]>;
    if (
      typeof key_hash !== "number" ||
      typeof layout !== "number" ||
      !Array.isArray(changes) ||
      !Array.isArray(members)
    ) {
      throw new HandleError("the handle's partitions are malformed");
    }
    if (members.length < 1 || members.length > PARTITIONS_MAX) {
      throw new HandleError(`the handle has ${members.length} partitions`);
    }
    const member = (each: unknown, number: number) => {
      const fields = (typeof each === "object" && each !== null ? each : {}) as Record<string, unknown>;
      if (fields["partition"] !== number) throw new HandleError(`the handle lacks partition ${number}`);
      return new Handle({ ...this.#source, ...fields, name: `${this.name}/${number}` }, true);
    };
    const change = ({ layout, from_partitions, to_partitions, ends }: (typeof changes)[number]): LayoutChange => {
      return { layout, fromPartitions: from_partitions, toPartitions: to_partitions, ends };
    };
    return { keyHash: key_hash, layout, changes: changes.map(change), members: members.map(member) };
  }

  /** @internal The same with another token. */
  withToken(token: string): Handle {
    return new Handle({ ...this.#source, token }, true);
  }

  get token(): string {
    return this.#token;
  }

  /** The trusted authority; undefined: connections are not encrypted. */
  get trust(): Trust | undefined {
    return this.#trust;
  }

  [inspect.custom](): string {
    return `Handle { groupId: '${this.groupId}', name: '${this.name}', epoch: ${this.epoch} }`;
  }

  /** The replicas' addresses, the head's first. */
  addresses(): string[] {
    const isHead = (endpoint: Endpoint) => endpoint.role === "head" || endpoint.role === "sole";
    return [...this.endpoints.filter(isHead), ...this.endpoints.filter((e) => !isHead(e))].map((e) => e.address);
  }

  /** A handle from the API's answer, as an object or as JSON text. Throws HandleError with the fault. */
  static parse(source: HandleLike): Handle {
    if (source instanceof Handle) return source;
    let value: unknown = source;
    if (typeof source === "string") {
      try {
        value = JSON.parse(source);
      } catch (problem) {
        throw new HandleError(`the handle is not JSON: ${String(problem)}`);
      }
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new HandleError("the handle is not a JSON object");
    }
    return new Handle(value as Record<string, unknown>);
  }
}

/** Host and port of `host:port` or `[v6]:port`. Throws HandleError. */
export function splitAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^\s]+)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port < 1 || port > 65_535) throw new HandleError(`'${address}' is not host:port`);
  return { host: match[1] ?? match[2] ?? "", port };
}

function uuid(value: unknown): string {
  if (typeof value !== "string" || !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) {
    throw new HandleError("the handle lacks a group_id that is a UUID");
  }
  return value.toLowerCase();
}

function endpoints(value: unknown, mayBeNone: boolean): Endpoint[] {
  if (!Array.isArray(value)) throw new HandleError("the handle lacks endpoints");
  if (value.length === 0 && !mayBeNone)
    throw new HandleError("the handle has no endpoints; the group may still be starting");
  return value.map((item: Record<string, unknown> | null) => {
    const address = item?.["address"];
    if (typeof address !== "string") throw new HandleError("an endpoint of the handle lacks its address");
    splitAddress(address);
    return { serverId: Number(item?.["server_id"] ?? 0), address, role: String(item?.["role"] ?? "") };
  });
}

function trust(value: unknown): Trust | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object") throw new HandleError("the handle's tls is not an object");
  return trustOf((value as Record<string, unknown>)["ca_pem"]);
}

function parsedCharges(source: unknown): Charges | undefined {
  try {
    return chargesOf(source);
  } catch (problem) {
    throw new HandleError(`the handle's charges are malformed: ${String(problem)}`);
  }
}

function parsedGuarantee(source: unknown): Guarantee | undefined {
  if (source === undefined || source === null) return undefined;
  const fields = source as Record<string, unknown>;
  const number = (name: string): number => {
    const value = fields[name];
    if (typeof value !== "number") throw new HandleError(`the handle's guarantee lacks ${name}`);
    return value;
  };
  return {
    sharedTokensPerS: number("shared_tokens_per_s"),
    tokensPerAppend: number("tokens_per_append"),
    sharedAppendsPerS: number("shared_appends_per_s"),
  };
}

function requestSize(sla: unknown): number {
  const bytes = typeof sla === "object" && sla !== null ? (sla as Record<string, unknown>)["request_size_bytes"] : 0;
  return typeof bytes === "number" ? bytes : 0;
}

function expiry(value: unknown): Date | undefined {
  if (value === undefined || value === null) return undefined;
  const at = new Date(String(value));
  if (Number.isNaN(at.getTime())) throw new HandleError("the handle's token_expires_at is not a time");
  return at;
}

function limits(value: unknown): Limits {
  const given = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const pick = (key: string, fallback: number) => (typeof given[key] === "number" ? given[key] : fallback);
  return {
    maxEntryBytes: pick("max_entry_bytes", LIMITS_DEFAULT.maxEntryBytes),
    maxBatchBytes: pick("max_batch_bytes", LIMITS_DEFAULT.maxBatchBytes),
    maxBatchEntries: pick("max_batch_entries", LIMITS_DEFAULT.maxBatchEntries),
  };
}
