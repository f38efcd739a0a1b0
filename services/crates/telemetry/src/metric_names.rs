//! Every metric of the servers: the one place for its name, unit and meaning. `docs/reference/metrics.md` is
//! generated from here.

/// How a metric's values are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its rate is of interest.
    Counter,
    /// A value of the moment.
    Gauge,
    /// A distribution.
    Histogram,
}

#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// UCUM, as OpenTelemetry wants it.
    pub unit: &'static str,
    /// Attributes, with their values.
    pub attributes: &'static str,
    pub description: &'static str,
}

const fn counter(name: &'static str, unit: &'static str, description: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Counter,
        unit,
        attributes: "",
        description,
    }
}

const fn gauge(name: &'static str, unit: &'static str, description: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Gauge,
        unit,
        attributes: "",
        description,
    }
}

pub const APPENDS: Metric = counter(
    "quorate.appends",
    "{batch}",
    "Appends that clients offered to heads on this server.",
);
pub const ENTRIES: Metric = counter("quorate.entries", "{entry}", "Entries in these appends.");
pub const BYTES: Metric = counter("quorate.bytes", "By", "Bytes of these entries.");
pub const REFUSED: Metric = counter(
    "quorate.entries.refused",
    "{entry}",
    "Entries refused for any reason but the budget.",
);
pub const THROTTLED: Metric = counter(
    "quorate.entries.throttled",
    "{entry}",
    "Entries refused because the group's budget was spent.",
);
pub const COMMITTED: Metric = counter(
    "quorate.entries.committed",
    "{entry}",
    "Entries that heads on this server committed and acknowledged.",
);
pub const COMMIT_DURATION: Metric = Metric {
    name: "quorate.commit.duration",
    kind: Kind::Histogram,
    unit: "s",
    attributes: "",
    description: "Time from an append's arrival at the head to its commitment, for each entry. Beyond 10,000 entries \
                  a second and server, a sample of the same distribution.",
};
pub const JOURNAL_SYNCS: Metric = counter(
    "quorate.journal.syncs",
    "{sync}",
    "Writes of the journal to stable storage, each of a group of records.",
);
pub const JOURNAL_BYTES: Metric = counter(
    "quorate.journal.bytes",
    "By",
    "Bytes of records written to the journal.",
);
pub const LINKS_UP: Metric = gauge(
    "quorate.links.up",
    "{link}",
    "Links to other servers that are open.",
);
pub const GROUPS: Metric = Metric {
    name: "quorate.groups",
    kind: Kind::Gauge,
    unit: "{group}",
    attributes: "`quorate.role`: head, follower, tail, learner, sole",
    description: "Groups with a replica on this server.",
};
pub const SPANS_DROPPED: Metric = counter(
    "quorate.spans.dropped",
    "{span}",
    "Spans not exported because too many waited.",
);
pub const MEMORY: Metric = gauge("process.memory.usage", "By", "Resident memory of the process.");
pub const CPU_TIME: Metric = counter(
    "process.cpu.time",
    "s",
    "CPU time of the process, of all its threads.",
);

pub const LENT: Metric = counter(
    "quorate.requests.lent",
    "{request}",
    "Requests, of their group's declared size, that passed above its SLA, on capacity that others do not use.",
);
pub const LENDING_GRANTED: Metric = gauge(
    "quorate.lending.granted",
    "{request}/s",
    "What groups whose heads are on this server may use above their SLAs now.",
);
pub const LENDING_RECALLS: Metric = counter(
    "quorate.lending.recalls",
    "{grant}",
    "Grants that were called back, as an owner of what was lent came back.",
);

/// In the order of the reference.
pub const ALL: [Metric; 17] = [
    APPENDS,
    ENTRIES,
    BYTES,
    REFUSED,
    THROTTLED,
    LENT,
    LENDING_GRANTED,
    LENDING_RECALLS,
    COMMITTED,
    COMMIT_DURATION,
    JOURNAL_SYNCS,
    JOURNAL_BYTES,
    LINKS_UP,
    GROUPS,
    SPANS_DROPPED,
    MEMORY,
    CPU_TIME,
];
