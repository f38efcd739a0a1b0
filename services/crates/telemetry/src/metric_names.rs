//! Every metric of the servers: its name, unit and meaning.
//! Generated from infra/observability/metrics.toml by `make gen`; do not edit.

#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    /// UCUM's, as OpenTelemetry requires.
    pub unit: &'static str,
    pub description: &'static str,
}

pub const APPENDS: Metric = Metric {
    name: "quorate.appends",
    unit: "{batch}",
    description: "Appends that clients offered to heads on this server.",
};
pub const ENTRIES: Metric = Metric {
    name: "quorate.entries",
    unit: "{entry}",
    description: "Entries in these appends.",
};
pub const BYTES: Metric = Metric {
    name: "quorate.bytes",
    unit: "By",
    description: "Bytes of these entries.",
};
pub const REFUSED: Metric = Metric {
    name: "quorate.entries.refused",
    unit: "{entry}",
    description: "Entries refused for any reason but the budget.",
};
pub const THROTTLED: Metric = Metric {
    name: "quorate.entries.throttled",
    unit: "{entry}",
    description: "Entries refused because the group's budget was spent.",
};
pub const OWED_READS: Metric = Metric {
    name: "quorate.reads.owed",
    unit: "{entry}",
    description: "Entries that reservations for reads let pass.",
};
pub const LATE_READS: Metric = Metric {
    name: "quorate.reads.late",
    unit: "{entry}",
    description: "Entries of those that left more than 50 ms after the reservation had let them pass.",
};
pub const BURST_REQUESTS: Metric = Metric {
    name: "quorate.requests.lent",
    unit: "{request}",
    description: "Requests of their group's declared size that passed above its SLA, on burst capacity.",
};
pub const GRANTED: Metric = Metric {
    name: "quorate.lending.granted",
    unit: "{request}/s",
    description: "Current grants above their SLAs of the groups whose heads are on this server.",
};
pub const RECLAIMS: Metric = Metric {
    name: "quorate.lending.recalls",
    unit: "{grant}",
    description: "Grants that were reclaimed because an owner of the capacity returned.",
};
pub const COMMITTED: Metric = Metric {
    name: "quorate.entries.committed",
    unit: "{entry}",
    description: "Entries that heads on this server committed and acknowledged.",
};
pub const COMMIT_DURATION: Metric = Metric {
    name: "quorate.commit.duration",
    unit: "s",
    description: "Time from an append's arrival at the head to its commitment, for each entry. Beyond 10,000 entries a second and server, a sample of the same distribution.",
};
pub const JOURNAL_SYNCS: Metric = Metric {
    name: "quorate.journal.syncs",
    unit: "{sync}",
    description: "Writes of the journal to stable storage. Each writes a group of records.",
};
pub const JOURNAL_BYTES: Metric = Metric {
    name: "quorate.journal.bytes",
    unit: "By",
    description: "Bytes of records written to the journal.",
};
pub const LINKS_UP: Metric = Metric {
    name: "quorate.links.up",
    unit: "{link}",
    description: "Links to other servers that are open.",
};
pub const QUARANTINED: Metric = Metric {
    name: "quorate.groups.quarantined",
    unit: "{group}",
    description: "Groups whose replica on this server an assertion stopped.",
};
pub const CLOCK_DOUBTED: Metric = Metric {
    name: "quorate.clock.doubted",
    unit: "{doubt}",
    description: "1 while the wall clocks of this server and of the coordinator differ by more than a second, or were not compared: entries are trimmed for their age late. Otherwise 0.",
};
pub const GROUPS: Metric = Metric {
    name: "quorate.groups",
    unit: "{group}",
    description: "Groups with a replica on this server.",
};
pub const SPANS_DROPPED: Metric = Metric {
    name: "quorate.spans.dropped",
    unit: "{span}",
    description: "Spans not exported because too many waited.",
};
pub const MEMORY: Metric = Metric {
    name: "process.memory.usage",
    unit: "By",
    description: "Resident memory of the process.",
};
pub const CPU_TIME: Metric = Metric {
    name: "process.cpu.time",
    unit: "s",
    description: "CPU time of the process, of all its threads.",
};

/// In the order of the reference.
pub const ALL: [Metric; 21] = [
    APPENDS,
    ENTRIES,
    BYTES,
    REFUSED,
    THROTTLED,
    OWED_READS,
    LATE_READS,
    BURST_REQUESTS,
    GRANTED,
    RECLAIMS,
    COMMITTED,
    COMMIT_DURATION,
    JOURNAL_SYNCS,
    JOURNAL_BYTES,
    LINKS_UP,
    QUARANTINED,
    CLOCK_DOUBTED,
    GROUPS,
    SPANS_DROPPED,
    MEMORY,
    CPU_TIME,
];
