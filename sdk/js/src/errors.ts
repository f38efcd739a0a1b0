/**
 * Errors, typed by the caller's next step.
 *
 * An append ends in one of three ways: its promise resolves (acked), rejects with AppendRefused (it did not happen), or
 * with AppendUnknown (it may have happened). Wrong arguments reject with TypeError and RangeError.
 */

import { CODES, Code, type CodeInfo } from "./codes.js";

const UNLISTED = {
  name: "unlisted",
  fault: "service",
  retry: "never",
  meaning: "The server gave a code that this SDK does not know.",
  action: "Upgrade it.",
} as const;

/** The reason of a failure, before it becomes an error. */
export interface Failure {
  readonly code: number;
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number;
}

export function failure(code: number, message = "", retryable = false, retryAfterMs = 0): Failure {
  return { code, message, retryable, retryAfterMs };
}

/** Base class of all errors of this package. */
export class QuorateError extends Error {
  override name = "QuorateError";
}

/** An error with a code from sdk/contract/errors.json. */
export class CodedError extends QuorateError {
  override name = "CodedError";
  readonly code: number;
  /** The code's name, for example `throttled`. */
  readonly codeName: string;
  readonly fault: CodeInfo["fault"];
  readonly action: string;
  readonly detail: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly retryAfterMs: number;

  constructor(reason: Failure, happened = "") {
    const info = CODES.get(reason.code) ?? UNLISTED;
    const detail = reason.message ? ` (${reason.message})` : "";
    super(`${info.name}: ${info.meaning}${detail}${happened && ` ${happened}`} ${info.action}`);
    this.code = reason.code;
    this.codeName = info.name;
    this.fault = info.fault;
    this.action = info.action;
    this.detail = reason.message;
    this.retryable = reason.retryable || info.retry !== "never";
    this.retryAfterMs = reason.retryAfterMs;
  }
}

/** An append that was not acknowledged. */
export class AppendError extends CodedError {
  override name = "AppendError";
}

/** The append did not happen and will not happen. */
export class AppendRefused extends AppendError {
  override name = "AppendRefused";
  constructor(reason: Failure) {
    super(reason, "It did not happen.");
  }
}

/** The log did not end at the expected offset. */
export class ConditionFailed extends AppendRefused {
  override name = "ConditionFailed";
}

/** A newer fencing token has been used on the group. */
export class Fenced extends AppendRefused {
  override name = "Fenced";
}

/** The append may have happened, or may still happen. Retry it if a duplicate is harmless, else read the log. */
export class AppendUnknown extends AppendError {
  override name = "AppendUnknown";
  constructor(reason: Failure) {
    super(reason, "Whether it happened is unknown.");
  }
}

/** A read, tail, trim or status call that cannot be answered. */
export class ReadRefused extends CodedError {
  override name = "ReadRefused";
}

/** The offset lies before the trim offset. */
export class Trimmed extends ReadRefused {
  override name = "Trimmed";
}

/** No replica of the group could be attached. */
export class ConnectFailed extends CodedError {
  override name = "ConnectFailed";
}

/** The handle is malformed. */
export class HandleError extends QuorateError {
  override name = "HandleError";
}

/** The cursor is malformed, or of another group. */
export class CursorError extends QuorateError {
  override name = "CursorError";
}

export function appendRefused(reason: Failure): AppendRefused {
  if (reason.code === Code.condition_failed) return new ConditionFailed(reason);
  if (reason.code === Code.fenced) return new Fenced(reason);
  return new AppendRefused(reason);
}

export function readRefused(reason: Failure): ReadRefused {
  return reason.code === Code.trimmed ? new Trimmed(reason) : new ReadRefused(reason);
}
