/** The package's version, and the name it greets servers with. */

export const VERSION = "0.1.0";
export const CLIENT_NAME = `quorate-js/${VERSION}`;
