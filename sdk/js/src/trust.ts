/** TLS of a connection: the authority that the handle names, and the meaning of failed handshakes. */

import { X509Certificate } from "node:crypto";
import { connect as dialPlain, type Socket } from "node:net";
import { connect as dialTls, createSecureContext, type SecureContext, TLSSocket } from "node:tls";

import { Code } from "./codes.js";
import { type Failure, failure, HandleError } from "./errors.js";

/** The TLS context of connections. It trusts one authority and nothing else. */
export type Trust = SecureContext;

/** Throws HandleError. */
export function trustOf(caPem: unknown): Trust {
  if (typeof caPem !== "string") throw new HandleError("the handle's tls lacks ca_pem");
  try {
    // Node takes an unreadable certificate for an empty list.
    new X509Certificate(caPem);
    return createSecureContext({ ca: caPem, minVersion: "TLSv1.3" });
  } catch (problem) {
    throw new HandleError(`the handle's tls.ca_pem is not a certificate authority: ${String(problem)}`);
  }
}

/** Connects. Calls `onOpen` when bytes may be sent. */
export function dial(to: { host: string; port: number }, trust: Trust | undefined, onOpen: () => void): Socket {
  const socket = trust === undefined ? dialPlain(to, onOpen) : dialTls({ ...to, secureContext: trust }, onOpen);
  return socket.setNoDelay(true);
}

/** The failure that an error of the socket means. */
export function failureOf(error: Error & { code?: string }, socket: Socket): Failure {
  if (error.code === "ERR_SSL_WRONG_VERSION_NUMBER") {
    return failure(Code.no_connection, "what answers there does not speak TLS");
  }
  if (!(socket instanceof TLSSocket) || !socket.authorizationError) return failure(Code.no_connection, error.message);
  return failure(Code.server_untrusted, untrusted(error));
}

function untrusted(error: Error & { code?: string }): string {
  switch (error.code) {
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `its certificate is for another host (${error.message})`;
    case "CERT_HAS_EXPIRED":
      return "its certificate has expired, or this machine's clock is ahead";
    case "CERT_NOT_YET_VALID":
      return "its certificate is not good yet: this machine's clock is behind";
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "CERT_SIGNATURE_FAILURE":
      return "its certificate is not from the authority that the handle names";
    default:
      return `its certificate is not acceptable: ${error.message}`;
  }
}
