/**
 * OpenTelemetry: a span per append, and its context for the APPEND frame. The caller passes a tracer. The interfaces
 * below are the used part of `@opentelemetry/api`, so that this package has no dependency.
 */

import type { Handle } from "./handle.js";

interface SpanContext {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

interface Span {
  spanContext(): SpanContext;
  setAttribute(key: string, value: string | number): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/** The used part of an OpenTelemetry `Tracer`. */
export interface TracerLike {
  startSpan(
    name: string,
    options?: {
      kind?: number;
      attributes?: Record<string, string | number>;
      links?: { context: SpanContext & { isRemote?: boolean } }[];
    },
  ): Span;
}

const KIND_PRODUCER = 3;
const STATUS_ERROR = 2;
const SAMPLED = 1;

/** Makes the spans of one client's appends. */
export class Tracing {
  readonly #links: { context: SpanContext & { isRemote: boolean } }[];

  constructor(
    private readonly tracer: TracerLike,
    private readonly handle: Handle,
  ) {
    this.#links = linksOf(handle.traceparent);
  }

  /** Run `append` within a span, with its W3C context (25 bytes) if it is sampled. */
  async run<Result>(
    entries: number,
    bytes: number,
    append: (trace: Uint8Array | undefined) => Promise<Result>,
    baseOffset: (result: Result) => number,
  ): Promise<Result> {
    const span = this.tracer.startSpan("quorate.append", {
      kind: KIND_PRODUCER,
      attributes: { "quorate.group_id": this.handle.groupId, "quorate.entries": entries, "quorate.bytes": bytes },
      links: this.#links,
    });
    try {
      const result = await append(contextOf(span));
      span.setAttribute("quorate.outcome", "acked");
      span.setAttribute("quorate.base_offset", baseOffset(result));
      return result;
    } catch (error) {
      const { name, message } = error instanceof Error ? error : { name: "unknown", message: String(error) };
      span.setAttribute("quorate.outcome", name);
      span.setStatus({ code: STATUS_ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  }
}

function contextOf(span: Span): Uint8Array | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if ((traceFlags & SAMPLED) === 0 || !/^[0-9a-f]{32}$/.test(traceId) || !/^[0-9a-f]{16}$/.test(spanId)) {
    return undefined;
  }
  const packed = Buffer.alloc(25);
  packed.write(traceId + spanId, "hex");
  packed[24] = traceFlags;
  return packed;
}

/** A link to the request that issued the handle, so that a trace leads from an append to it. */
function linksOf(traceparent: string | undefined): { context: SpanContext & { isRemote: boolean } }[] {
  const match = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? "");
  if (match === null) return [];
  const [, traceId = "", spanId = "", flags = ""] = match;
  return [{ context: { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true } }];
}
