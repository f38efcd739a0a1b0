/** The package's version, and the client's name in handshakes. */

export const VERSION = "0.1.0";
export const CLIENT_NAME = `quorate-js/${VERSION}`;
