/**
 * The control client: projects, quotes, groups, usage, SLA reports and invoices, over the REST API.
 *
 * Answers are the API's JSON (docs/internals/api.md). Problems become ApiError. Every POST carries an Idempotency-Key
 * made once per call, so that its retries take effect once.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { Cursor } from "./cursor.js";
import { CursorError, QuorateError } from "./errors.js";
import { Handle, type HandleJson } from "./handle.js";
import * as limits from "./limits.js";
import { CLIENT_NAME } from "./version.js";

export type Json = Record<string, unknown>;

export const ATTEMPTS_MAX = 5;
const RETRIED_STATUS = [429, 502, 503, 504];

/** The SLA of a group. `POST /v1/quotes` prices it. */
export interface Sla {
  durability: "persistent" | "in_memory";
  replication_degree: number;
  request_size_bytes: number;
  rate_per_s: number;
  /** Reads of all replicas together, each second; 0: what is spare. */
  read_rate_per_s?: number;
  min_replicas?: number;
  region?: string;
  retention_bytes?: number;
  retention_age_s?: number | null;
  latency?: "standard" | "low";
  /** Chains among which keys are divided; 1 by default. */
  partitions?: number;
}

/** The changeable fields of a group's SLA. Fields left out stay. */
export interface SlaChanges {
  rate_per_s?: number;
  read_rate_per_s?: number;
  request_size_bytes?: number;
  min_replicas?: number | null;
  retention_bytes?: number;
  retention_age_s?: number | null;
  latency?: "standard" | "low";
  /** More than now; none is ever removed. */
  partitions?: number;
}

/** A project's guarantee: tokens each second that any of its groups may use beside its own rate. */
export interface GuaranteeTerms {
  shared_tokens_per_s: number;
  /** Of all groups together; null: no limit but what is idle. */
  max_tokens_per_s?: number | null;
  policy?: {
    name?: "drf" | "hierarchical_drf" | "first_fit" | "maximum_revenue";
    groups?: { group_id: string; weight?: number; class?: string }[];
  };
}

/** A problem (RFC 9457) in the API's answer. */
export class ApiError extends QuorateError {
  override name = "ApiError";
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string;
  readonly link: string;
  /** The fields at fault, each with a message. */
  readonly errors: { field: string; message: string }[];

  constructor(
    readonly status: number,
    readonly problem: Json,
  ) {
    const text = (key: string) => (typeof problem[key] === "string" ? problem[key] : "");
    const errors = (Array.isArray(problem["errors"]) ? problem["errors"] : []) as { field: string; message: string }[];
    const fields = errors.map((error) => `; ${error.field}: ${error.message}`).join("");
    const code = text("code") || "unknown";
    super(`${status} ${code}: ${text("detail") || text("title")}${fields} (request ${text("request_id")})`);
    this.code = code;
    this.title = text("title");
    this.detail = text("detail");
    this.requestId = text("request_id");
    this.link = text("type");
    this.errors = errors;
  }
}

/** The key is wrong, expired or revoked. */
export class AuthenticationFailed extends ApiError {
  override name = "AuthenticationFailed";
}

/** The key lacks the scope. */
export class NotAllowed extends ApiError {
  override name = "NotAllowed";
}

/** The resource does not exist, or belongs to another organization. */
export class NotFound extends ApiError {
  override name = "NotFound";
}

/** The fleet cannot promise this SLA now. `refusal` names the scarce resource and an SLA that would fit. */
export class AdmissionRefused extends ApiError {
  override name = "AdmissionRefused";
  get refusal(): Json {
    return (this.problem["refusal"] ?? {}) as Json;
  }
}

/** The API was unreachable, or gave no usable answer, until the deadline. */
export class ApiUnreachable extends QuorateError {
  override name = "ApiUnreachable";
}

const BY_STATUS: { readonly [status: number]: typeof ApiError } = {
  401: AuthenticationFailed,
  403: NotAllowed,
  404: NotFound,
};

/** `timeoutMs` bounds a call with its retries. */
export class Control {
  readonly #base: string;
  readonly #apiKey: string;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor(apiUrl: string, apiKey: string, options: { timeoutMs?: number; fetch?: typeof fetch } = {}) {
    if (!/^https?:\/\//.test(apiUrl))
      throw new RangeError(`the API's address begins with https://, unlike '${apiUrl}'`);
    if (!apiKey.startsWith("qk_"))
      throw new RangeError("an API key begins with qk_; make one in the portal, under Keys");
    this.#base = `${apiUrl.replace(/\/+$/, "")}/v1/`;
    this.#apiKey = apiKey;
    this.#timeoutMs = options.timeoutMs ?? limits.TIMEOUT_MS_DEFAULT;
    this.#fetch = options.fetch ?? fetch;
  }

  // Projects.

  projects(): AsyncGenerator<Json> {
    return this.#list("projects");
  }

  createProject(name: string): Promise<Json> {
    return this.#call("POST", "projects", { name });
  }

  project(projectId: string): Promise<Json> {
    return this.#call("GET", `projects/${encodeURIComponent(projectId)}`);
  }

  // Groups.

  /** Price an SLA and check its admission: `{admissible, price, demand, refusal}`. Nothing is reserved. */
  quote(sla: Sla): Promise<Json> {
    return this.#call("POST", "quotes", sla);
  }

  groups(projectId: string): AsyncGenerator<Json> {
    return this.#list(`projects/${encodeURIComponent(projectId)}/groups`);
  }

  /** Rejects with AdmissionRefused. */
  createGroup(projectId: string, name: string, sla: Sla): Promise<Json> {
    return this.#call("POST", `projects/${encodeURIComponent(projectId)}/groups`, { name, ...sla });
  }

  group(groupId: string): Promise<Json> {
    return this.#call("GET", `groups/${encodeURIComponent(groupId)}`);
  }

  /** Change an SLA in place. Appends continue, at the new price. After AdmissionRefused nothing has changed. */
  resizeGroup(groupId: string, changes: SlaChanges): Promise<Json> {
    return this.#call("PATCH", `groups/${encodeURIComponent(groupId)}`, changes);
  }

  /** The project's guarantee, and what each group wants and has of it now. */
  guarantee(projectId: string): Promise<Json> {
    return this.#call("GET", `projects/${encodeURIComponent(projectId)}/guarantee`);
  }

  /** After an error nothing has changed. */
  setGuarantee(projectId: string, terms: GuaranteeTerms): Promise<Json> {
    return this.#call("PUT", `projects/${encodeURIComponent(projectId)}/guarantee`, terms);
  }

  /** Prices a guarantee and checks its admission: `{admissible, price, refusal}`. Nothing is reserved. */
  quoteGuarantee(projectId: string, terms: GuaranteeTerms): Promise<Json> {
    return this.#call("POST", `projects/${encodeURIComponent(projectId)}/guarantee/quote`, terms);
  }

  async takeBackGuarantee(projectId: string): Promise<void> {
    await this.#call("DELETE", `projects/${encodeURIComponent(projectId)}/guarantee`);
  }

  /** How much of the reservation an append or a read takes, by size: `{request_size_bytes, operations}`. */
  costs(groupId: string): Promise<Json> {
    return this.#call("GET", `groups/${encodeURIComponent(groupId)}/costs`);
  }

  async deleteGroup(groupId: string): Promise<void> {
    await this.#call("DELETE", `groups/${encodeURIComponent(groupId)}`);
  }

  async handle(groupId: string): Promise<Handle> {
    const answer: unknown = await this.#call("GET", `groups/${encodeURIComponent(groupId)}/handle`);
    return Handle.parse(answer as HandleJson);
  }

  // Partitions and checkpoints.

  /** The group's partitions, each with its chain: `{key_hash, layout, is_changing, items}`. */
  partitions(groupId: string): Promise<Json> {
    return this.#call("GET", `groups/${encodeURIComponent(groupId)}/partitions`);
  }

  /** Give the group so many partitions in all. Entries stay where they are, and each key keeps its order. */
  addPartitions(groupId: string, partitions: number): Promise<Json> {
    return this.#call("PATCH", `groups/${encodeURIComponent(groupId)}`, { partitions });
  }

  /** How far a consumer has come: the beginning, before the first is saved. */
  async checkpoint(groupId: string, consumer: string): Promise<Cursor> {
    const answer = await this.#call("GET", checkpointPath(groupId, consumer));
    return Cursor.ofCheckpoint(groupId, answer["offsets"] as { partition: number; next_offset: number }[]);
  }

  /** Save how far a consumer has come. Offsets below the saved ones are ignored unless `rewind`. */
  async saveCheckpoint(
    groupId: string,
    consumer: string,
    cursor: Cursor,
    options: { rewind?: boolean } = {},
  ): Promise<void> {
    if (cursor.groupId !== groupId.toLowerCase()) {
      throw new CursorError(`the cursor is of the group ${cursor.groupId}, and this is ${groupId}`);
    }
    const offsets = cursor.offsets.map((offset, partition) => ({ partition, next_offset: offset }));
    await this.#call("PUT", checkpointPath(groupId, consumer), { offsets, rewind: options.rewind ?? false });
  }

  async deleteCheckpoint(groupId: string, consumer: string): Promise<void> {
    await this.#call("DELETE", checkpointPath(groupId, consumer));
  }

  // Usage and invoices.

  usage(groupId: string, range: { from?: Date; to?: Date } = {}): Promise<Json> {
    const query = { from: range.from?.toISOString(), to: range.to?.toISOString() };
    return this.#call("GET", `groups/${encodeURIComponent(groupId)}/usage`, undefined, query);
  }

  /** The SLA report of a month (`YYYY-MM`), by default of the current one. */
  sla(groupId: string, month?: string): Promise<Json> {
    return this.#call("GET", `groups/${encodeURIComponent(groupId)}/sla`, undefined, { month });
  }

  invoices(): AsyncGenerator<Json> {
    return this.#list("invoices");
  }

  invoice(invoiceId = "current"): Promise<Json> {
    return this.#call("GET", `invoices/${encodeURIComponent(invoiceId)}`);
  }

  // Requests.

  async *#list(path: string): AsyncGenerator<Json> {
    let cursor: string | undefined;
    do {
      const page = await this.#call("GET", path, undefined, { cursor });
      yield* page["items"] as Json[];
      cursor = (page["next_cursor"] as string | null) ?? undefined;
    } while (cursor !== undefined);
  }

  async #call(
    method: string,
    path: string,
    body?: object,
    query: Record<string, string | undefined> = {},
  ): Promise<Json> {
    const url = new URL(path, this.#base);
    for (const [key, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(key, value);
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.#apiKey}`,
      Accept: "application/json",
      "User-Agent": CLIENT_NAME,
    };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (method === "POST") headers["Idempotency-Key"] = randomUUID();
    const init: RequestInit = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const endsAt = performance.now() + this.#timeoutMs;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(url, init, Math.max(1, endsAt - performance.now()));
      if ("answer" in outcome) return outcome.answer;
      const jitterMs = Math.min(2_000, 100 * 2 ** attempt) * Math.random();
      const delayMs = Math.max(jitterMs, outcome.retryAfterMs);
      const late = performance.now() + delayMs >= endsAt;
      if (!outcome.retry || attempt >= ATTEMPTS_MAX || late) throw outcome.error;
      await sleep(delayMs);
    }
  }

  async #attempt(url: URL, init: RequestInit, timeoutMs: number): Promise<Outcome> {
    let status: number;
    let text: string;
    let retryAfter: string | null;
    try {
      const response = await this.#fetch(url, { ...init, signal: AbortSignal.timeout(Math.ceil(timeoutMs)) });
      status = response.status;
      retryAfter = response.headers.get("Retry-After");
      text = await response.text();
    } catch (problem) {
      return { error: new ApiUnreachable(`${init.method} ${url}: ${reasonOf(problem)}`), retry: true, retryAfterMs: 0 };
    }
    const json = parse(text);
    if (status >= 200 && status < 300) {
      if (text === "" || json !== undefined) return { answer: json ?? {} };
      const error = new ApiUnreachable(`${url} answered something that is not a JSON object; is it the API's address?`);
      return { error, retry: true, retryAfterMs: 0 };
    }
    const problem = json ?? {};
    const error =
      problem["code"] === "admission_refused"
        ? new AdmissionRefused(status, problem)
        : new (BY_STATUS[status] ?? ApiError)(status, problem);
    const retry = RETRIED_STATUS.includes(status) || error.code === "idempotency_in_progress";
    // A date instead of seconds is NaN here: the client's own backoff serves.
    return { error, retry, retryAfterMs: Math.max(0, Number(retryAfter ?? 0) * 1_000 || 0) };
  }
}

type Outcome = { answer: Json } | { error: Error; retry: boolean; retryAfterMs: number };

function parse(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

function reasonOf(problem: unknown): string {
  if (!(problem instanceof Error)) return String(problem);
  // fetch hides the error in the cause.
  return problem.cause instanceof Error ? `${problem.message}: ${problem.cause.message}` : problem.message;
}

function checkpointPath(groupId: string, consumer: string): string {
  return `groups/${encodeURIComponent(groupId)}/checkpoints/${encodeURIComponent(consumer)}`;
}
