/** Error codes of the data plane. Generated from `sdk/contract/errors.json` by `sdk/contract/generate.py`; do not edit. */

/** An error, as a stable number. The SDK makes those from 1000 on, which never travel. */
export const Code = {
  protocol_error: 1,
  frame_too_large: 2,
  checksum_mismatch: 3,
  unsupported_version: 4,
  too_many_channels: 5,
  unknown_channel: 6,
  tls_required: 7,
  token_invalid: 10,
  token_expired: 11,
  permission_denied: 12,
  group_not_here: 13,
  token_revoked: 14,
  not_head: 20,
  paused: 21,
  read_only: 22,
  group_lost: 23,
  syncing: 24,
  epoch_changed: 25,
  cut_off: 26,
  group_quarantined: 27,
  group_suspended: 28,
  layout_changed: 29,
  throttled: 30,
  overloaded: 31,
  deadline_exceeded: 32,
  entry_too_large: 40,
  batch_too_large: 41,
  batch_malformed: 42,
  sequence_gap: 43,
  session_expired: 44,
  session_missing: 45,
  window_exceeded: 46,
  session_moved: 47,
  trimmed: 50,
  offset_beyond_end: 51,
  unknown_request: 52,
  trim_beyond_commit: 53,
  condition_failed: 60,
  fenced: 61,
  shutting_down: 90,
  internal: 91,
  queue_full: 1001,
  client_closed: 1002,
  no_connection: 1003,
  no_answer: 1004,
  server_untrusted: 1005,
} as const;

export type CodeName = keyof typeof Code;

/** A code's fault, retry, meaning and next step. */
export interface CodeInfo {
  readonly name: CodeName;
  readonly fault: "client" | "service" | "network" | "nobody";
  readonly retry: "never" | "here" | "head" | "handle" | "connection" | "check";
  readonly meaning: string;
  readonly action: string;
}

export const CODES: ReadonlyMap<number, CodeInfo> = new Map<number, CodeInfo>([
  [
    1,
    {
      name: "protocol_error",
      fault: "client",
      retry: "never",
      meaning: "The bytes were not a valid frame of this protocol.",
      action: "Use a current SDK; if you wrote your own client, check it against sdk/contract/vectors.",
    },
  ],
  [
    2,
    {
      name: "frame_too_large",
      fault: "client",
      retry: "never",
      meaning: "The frame is longer than max_frame_bytes.",
      action: "Send smaller batches; HELLO_OK has the limits.",
    },
  ],
  [
    3,
    {
      name: "checksum_mismatch",
      fault: "network",
      retry: "connection",
      meaning: "A CRC did not match the received bytes.",
      action: "Reconnect and send again; if it repeats, look for a faulty device between client and server.",
    },
  ],
  [
    4,
    {
      name: "unsupported_version",
      fault: "client",
      retry: "never",
      meaning: "The server does not speak this version of the protocol.",
      action: "Upgrade the SDK.",
    },
  ],
  [
    5,
    {
      name: "too_many_channels",
      fault: "client",
      retry: "never",
      meaning: "The connection has as many groups attached as it may have.",
      action: "Detach a group or open another connection.",
    },
  ],
  [
    6,
    {
      name: "unknown_channel",
      fault: "client",
      retry: "never",
      meaning: "The frame names a channel that was not attached.",
      action: "ATTACH first.",
    },
  ],
  [
    7,
    {
      name: "tls_required",
      fault: "client",
      retry: "never",
      meaning: "The server speaks TLS only, and the connection began without it.",
      action: "Use a current SDK with the handle as the API gave it; its field tls names the authority to trust.",
    },
  ],
  [
    10,
    {
      name: "token_invalid",
      fault: "client",
      retry: "handle",
      meaning: "The token is malformed or was not signed by this fleet.",
      action: "Get a new handle from the API.",
    },
  ],
  [
    11,
    {
      name: "token_expired",
      fault: "client",
      retry: "handle",
      meaning: "The token has expired.",
      action: "Get a new handle from the API; SDKs do it by themselves when they know the API's address and key.",
    },
  ],
  [
    12,
    {
      name: "permission_denied",
      fault: "client",
      retry: "never",
      meaning: "The token does not allow this operation on this group.",
      action: "Use a key with the scope that the operation needs.",
    },
  ],
  [
    13,
    {
      name: "group_not_here",
      fault: "client",
      retry: "handle",
      meaning: "This server holds no replica of the group.",
      action: "Get a new handle; the group has moved or was deleted.",
    },
  ],
  [
    14,
    {
      name: "token_revoked",
      fault: "client",
      retry: "handle",
      meaning: "The API key or session for which the token was issued was revoked.",
      action: "Use another API key; SDKs ask the API for a new handle once, and stop when it refuses the key.",
    },
  ],
  [
    20,
    {
      name: "not_head",
      fault: "nobody",
      retry: "head",
      meaning: "Appends go to the group's head, and this server is not the head.",
      action: "Connect to the address in the answer.",
    },
  ],
  [
    21,
    {
      name: "paused",
      fault: "service",
      retry: "here",
      meaning: "Fewer replicas than min_replicas are alive, so appends are paused.",
      action: "Retry; a replacement is catching up.",
    },
  ],
  [
    22,
    {
      name: "read_only",
      fault: "service",
      retry: "here",
      meaning: "The group is read-only: a server's disk is full or failing.",
      action: "Retry later; reads continue to work.",
    },
  ],
  [
    23,
    {
      name: "group_lost",
      fault: "service",
      retry: "never",
      meaning: "Nothing of the group's log is left: every replica of an in-memory group was lost, or every disk of a persistent one.",
      action: "The owner may reset the group, which begins an empty log, in the portal or by POST /v1/groups/{id}/reset.",
    },
  ],
  [
    24,
    {
      name: "syncing",
      fault: "service",
      retry: "here",
      meaning: "The replica is joining its chain and cannot answer yet.",
      action: "Retry after the given time.",
    },
  ],
  [
    25,
    {
      name: "epoch_changed",
      fault: "service",
      retry: "head",
      meaning: "The group was reconfigured before the batch was ordered.",
      action: "Retry at the named head; the retry is ordered once.",
    },
  ],
  [
    26,
    {
      name: "cut_off",
      fault: "network",
      retry: "handle",
      meaning: "The head reaches neither its chain nor the coordinator, so another may have taken its place.",
      action: "Look for the head at the other servers of the handle; the retry is ordered once. SDKs do it by themselves.",
    },
  ],
  [
    27,
    {
      name: "group_quarantined",
      fault: "service",
      retry: "never",
      meaning: "An assertion of ours stopped several replicas of the group, so it takes no requests. Its data is kept.",
      action: "Wait until an operator has released the group; whether batches that had no answer were ordered is known then.",
    },
  ],
  [
    28,
    {
      name: "group_suspended",
      fault: "client",
      retry: "never",
      meaning: "The spend cap of the organization or project is reached, so the group takes neither appends nor reads. Its log is kept.",
      action: "Raise or remove the cap in the portal or by PUT /v1/budgets, or wait for the next month.",
    },
  ],
  [
    29,
    {
      name: "layout_changed",
      fault: "nobody",
      retry: "never",
      meaning: "The number of the group's partitions has changed, so keys may belong to other partitions. The entry was not appended.",
      action: "Get a new handle and append to the partition that the key belongs to now; clients made by connect_partitioned do it by themselves.",
    },
  ],
  [
    30,
    {
      name: "throttled",
      fault: "client",
      retry: "here",
      meaning: "The group is above its reserved rate and the queue is full.",
      action: "Slow down, send more entries in a batch (a batch costs something itself), or reserve more; retry after the given time.",
    },
  ],
  [
    31,
    {
      name: "overloaded",
      fault: "service",
      retry: "here",
      meaning: "The server's queue for this group is full though the rate is within its SLA.",
      action: "Retry after the given time.",
    },
  ],
  [
    32,
    {
      name: "deadline_exceeded",
      fault: "nobody",
      retry: "here",
      meaning: "The batch was still waiting when its deadline passed; it was not ordered.",
      action: "Retry if it still matters.",
    },
  ],
  [
    40,
    {
      name: "entry_too_large",
      fault: "client",
      retry: "never",
      meaning: "An entry is longer than max_entry_bytes.",
      action: "Split the entry, or store it elsewhere and append a reference.",
    },
  ],
  [
    41,
    {
      name: "batch_too_large",
      fault: "client",
      retry: "never",
      meaning: "The batch has more bytes or entries than allowed.",
      action: "Send smaller batches; HELLO_OK has the limits.",
    },
  ],
  [
    42,
    {
      name: "batch_malformed",
      fault: "client",
      retry: "never",
      meaning: "The entries do not add up to the payload.",
      action: "Check the encoder against sdk/contract/vectors.",
    },
  ],
  [
    43,
    {
      name: "sequence_gap",
      fault: "client",
      retry: "here",
      meaning: "A batch of the session is missing before this one.",
      action: "Send again from the first batch that has no answer.",
    },
  ],
  [
    44,
    {
      name: "session_expired",
      fault: "client",
      retry: "never",
      meaning: "The session table has forgotten this session.",
      action: "Start a new session; whether the batch had been ordered is unknown if it was sent before.",
    },
  ],
  [
    45,
    {
      name: "session_missing",
      fault: "client",
      retry: "never",
      meaning: "The channel was attached without a session, so it cannot append.",
      action: "Attach with a session.",
    },
  ],
  [
    46,
    {
      name: "window_exceeded",
      fault: "client",
      retry: "here",
      meaning: "More batches are outstanding than window_batches allows.",
      action: "Wait for acknowledgements.",
    },
  ],
  [
    47,
    {
      name: "session_moved",
      fault: "client",
      retry: "never",
      meaning: "The session has since been attached on another channel, which alone may append.",
      action: "Nothing, if the connection was replaced; otherwise give each client a session of its own.",
    },
  ],
  [
    50,
    {
      name: "trimmed",
      fault: "client",
      retry: "never",
      meaning: "The offset lies before the trim offset.",
      action: "Start at the trim offset in the message.",
    },
  ],
  [
    51,
    {
      name: "offset_beyond_end",
      fault: "client",
      retry: "never",
      meaning: "The offset lies beyond the end of the log.",
      action: "Read from the commit offset or before.",
    },
  ],
  [
    52,
    {
      name: "unknown_request",
      fault: "client",
      retry: "never",
      meaning: "The credit or cancellation names a subscription that does not exist.",
      action: "Subscribe first.",
    },
  ],
  [
    53,
    {
      name: "trim_beyond_commit",
      fault: "client",
      retry: "never",
      meaning: "The trim would discard entries that are not committed.",
      action: "Trim to the commit offset at most; STATUS has it.",
    },
  ],
  [
    60,
    {
      name: "condition_failed",
      fault: "client",
      retry: "never",
      meaning: "The log does not end at the expected offset.",
      action: "Read the entries appended meanwhile, then decide again.",
    },
  ],
  [
    61,
    {
      name: "fenced",
      fault: "client",
      retry: "never",
      meaning: "A newer fencing token has been used on this group.",
      action: "Another owner has taken over; stop.",
    },
  ],
  [
    90,
    {
      name: "shutting_down",
      fault: "service",
      retry: "handle",
      meaning: "The server is stopping.",
      action: "Reconnect to another replica; the handle lists them.",
    },
  ],
  [
    91,
    {
      name: "internal",
      fault: "service",
      retry: "here",
      meaning: "The server had an internal error.",
      action: "Retry; report the message if it repeats.",
    },
  ],
  [
    1001,
    {
      name: "queue_full",
      fault: "client",
      retry: "here",
      meaning: "More appends are waiting in the client than its queue may hold.",
      action: "Await the appends, or await ready() before the next one.",
    },
  ],
  [
    1002,
    {
      name: "client_closed",
      fault: "client",
      retry: "never",
      meaning: "The client was closed.",
      action: "Connect again.",
    },
  ],
  [
    1003,
    {
      name: "no_connection",
      fault: "network",
      retry: "connection",
      meaning: "No replica of the group could be reached before the deadline.",
      action: "Check the network and the handle's addresses; then retry.",
    },
  ],
  [
    1004,
    {
      name: "no_answer",
      fault: "network",
      retry: "check",
      meaning: "The append had no answer by the end of the wait: the network failed, or the servers behind it did.",
      action: "Read the log, and append again only missing entries; or append again at once if a duplicate is harmless.",
    },
  ],
  [
    1005,
    {
      name: "server_untrusted",
      fault: "service",
      retry: "handle",
      meaning: "The peer at the server's address cannot prove to be that server, so nothing was sent to it.",
      action: "Get a new handle from the API; if it repeats, ask the operator: the fleet's authority was replaced, the server's --advertise is wrong, or the connection is intercepted.",
    },
  ],
]);
