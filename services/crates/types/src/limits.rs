//! Every bound of the data plane, with its reason. Relations between them are checked at compile time.

/// A chain longer than this adds latency without adding durability that anyone buys.
pub const REPLICATION_DEGREE_MAX: u8 = 7;

/// Larger values belong into an object store, with a reference in the log.
pub const ENTRY_BYTES_MAX: u32 = 1 << 20;
/// Largest payload of one batch: bounds the copy that one client can make a server hold at once.
pub const BATCH_BYTES_MAX: u32 = 4 << 20;
/// Keeps per-batch bookkeeping (an ack, a seek inside the batch) short.
pub const BATCH_ENTRIES_MAX: u32 = 65_536;
/// Head of the largest frame: ENTRIES with [`READ_BATCHES_MAX`] descriptors.
pub const HEAD_BYTES_MAX: u32 = u16::MAX as u32;
pub const FRAME_BYTES_MAX: u32 = BATCH_BYTES_MAX + HEAD_BYTES_MAX;
/// Longest frame between servers. A session table travels in one: at most 1024 sessions of 256 batches, with room.
pub const PEER_FRAME_BYTES_MAX: u32 = FRAME_BYTES_MAX + (8 << 20);
/// Batches in one ENTRIES frame, so that its head fits 16 bits of length.
pub const READ_BATCHES_MAX: u32 = 1_024;

/// How long a commit notice waits for a batch to carry it to the successor. This is longer than a client takes to append
/// again, and shorter than a reader at the successor notices.
pub const COMMIT_NOTICE_HOLD_MS: u64 = 2;

/// Groups attached to one client connection.
pub const CHANNELS_PER_CONNECTION_MAX: usize = 256;
/// Client connections of one server; each costs two buffers.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Subscriptions of one connection.
pub const SUBSCRIPTIONS_PER_CONNECTION_MAX: usize = 64;
/// Pages of one connection that one group has under way from its disk, those of cancelled requests too: as many as a
/// connection has subscriptions. Beyond, its subscriptions wait, and its reads are refused as overload.
pub const PAGES_PER_CONNECTION_MAX: usize = SUBSCRIPTIONS_PER_CONNECTION_MAX;
/// Pages that one group has under way from its disk: four connections' fill. A page is a megabyte or one larger batch, so
/// readers of one group hold no more than some hundred megabytes.
pub const PAGES_PER_GROUP_MAX: usize = 256;
/// A connection whose handshake takes longer is closed.
pub const HELLO_TIMEOUT_MS: u64 = 5_000;
/// Unauthenticated connections. Anybody may hold one for [`HELLO_TIMEOUT_MS`]; an honest handshake takes milliseconds. So
/// this is a burst of clients that all come at once, as after a failover.
pub const HANDSHAKES_MAX: usize = 2_048;
/// Unauthenticated connections of one address (of IPv6: one /64): a burst of clients behind one NAT. It takes four such
/// addresses to hold all.
pub const HANDSHAKES_PER_ADDRESS_MAX: usize = 512;
/// Unauthenticated connections of peers' addresses, beyond those: every server of a large fleet dials at once after a
/// restart. Unauthenticated connections of others must not keep links from opening.
pub const PEER_HANDSHAKES_MAX: usize = 256;
/// Bytes waiting to be sent to one client before its reads are paused. At twice as many its connection is closed.
pub const CLIENT_OUTBOX_BYTES_MAX: usize = 8 << 20;

/// Bytes of one client's requests on their way to other shards, beyond which its connection is not read: as many as a
/// group queues. A shard that keeps up is never waited for.
pub const CLIENT_BACKLOG_BYTES_MAX: usize = 8 << 20;

/// Appends of an SLA that may come as single-entry batches, each second: a client that waits for each answer sends these.
/// Beyond, an SLA holds in batches like those that the cost profile was measured with. Capacity for it is reserved for
/// each group, about a millisecond of a core each second.
pub const SINGLE_ENTRY_APPENDS_PER_S: u64 = 1_000;
/// The same of reads: pages with a single entry, of a reader that asks entry by entry or follows single appends.
pub const SINGLE_ENTRY_READS_PER_S: u64 = 1_000;

/// Pages that wait for their turn on one client's connection: the credit of sixteen subscriptions. Beyond, the connection
/// is closed, as it asks for more at once than it can take. A page refers to memory of the log and copies nothing.
pub const CLIENT_PAGES_BYTES_MAX: usize = 64 << 20;

/// An entry that the reservation for reads lets pass is late if its page leaves this much later: half of the
/// pause that availability forgives.
pub const SLA_READ_LATE_MS: u64 = 50;

/// Control interval of capacity estimation, and the samples of outstanding requests in it: Pulsar's 1 s.
pub const CAPACITY_INTERVAL_MS: u64 = 1_000;
pub const CAPACITY_SAMPLES: u64 = 5;

/// A group of the latency class `low` takes twice the rates that it may use. So its requests load a server by half of what
/// is promisable, where queues are short.
pub const LOW_LATENCY_HEADROOM: u64 = 2;

/// Batches of one session that may be outstanding, and whose offsets its head remembers for retries.
pub const SESSION_WINDOW_BATCHES: u32 = 256;
/// Sessions that one group remembers; the least recently used is forgotten by the next one's first entry.
pub const SESSIONS_PER_GROUP_MAX: usize = 1_024;

/// Places of batches that a group's session table remembers for retries, of all sessions together, at least: four
/// sessions with full windows …
pub const SESSION_PLACES_MIN: u64 = 4 * SESSION_WINDOW_BATCHES as u64;
/// … and at most: 64 of them. Beyond two seconds of the SLA in between, the places of the sessions that were used least
/// recently are forgotten. A retry of such a batch is still recognised, and its outcome is unknown.
pub const SESSION_PLACES_MAX: u64 = 64 * SESSION_WINDOW_BATCHES as u64;
/// Memory of one session beside its places, and of one place, in tables and rings that are not wholly full
/// (`crates/chain/src/log/sessions.rs` has a test of both).
pub const SESSION_MEMORY_BYTES: u64 = 192;
pub const SESSION_PLACE_BYTES: u64 = 32;

/// Length of an entry, before it in a payload.
pub const ENTRY_PREFIX_BYTES: u64 = 4;
/// Memory of a batch beside its payload: its header, and its place on disk. Retention counts as much for each batch, so
/// that short batches cannot fill a server's memory. Tests of the log and of the places hold it against their types.
pub const BATCH_MEMORY_BYTES: u64 = 256;
/// Memory of a group beside its log and its sessions, however little it does (`make claims ONLY=idle`).
pub const GROUP_MEMORY_BYTES: u64 = 64 << 10;
/// Memory that each replica has for payloads that are neither committed nor refused: a quarter of a second of the SLA,
/// and no less than some short batches, nor more than this. Beyond, a group needs room in its server's pool.
pub const WINDOW_MEMORY_BYTES_MIN: u64 = 64 << 10;
pub const WINDOW_MEMORY_BYTES_MAX: u64 = 8 << 20;
/// Journal space that a base must free before it is worth writing; of a group that retains less, all that it retains.
pub const PERSIST_BASE_BYTES: u64 = 16 << 20;
/// Disk of a persistent group beside what it retains: the group log's last file, of which nothing is removed before it is
/// full.
pub const GROUP_DISK_BYTES: u64 = GROUP_LOG_FILE_BYTES as u64;

/// Uncommitted payload bytes of one group at its head; beyond, appends wait in the queue. Bounds what any
/// follower must buffer, and what a chain must resend after a failure.
pub const UNCOMMITTED_BYTES_MAX: u64 = 32 << 20;
/// Appends waiting for budget or window at the head, per group.
pub const QUEUE_BYTES_MAX: u64 = 8 << 20;
pub const QUEUE_BATCHES_MAX: usize = 4_096;
/// Longest an append may wait for budget before it is throttled, whatever its own deadline.
pub const QUEUE_WAIT_MS_MAX: u64 = 2_000;
/// An append waits for budget only if it will pass so long before its deadline: timers are late by a little. Of a shorter
/// time it is a quarter.
pub const QUEUE_SLACK_MS: u64 = 50;
/// Each session of a group may use so much of the whole rate at once, beside sessions that flood the group. All together
/// may leave the group's budget in such a debt.
pub const SHARE_DEPTH_MS: u64 = 100;
/// A session without an append for this long leaves its share to others.
pub const SESSION_IDLE_MS: u64 = 1_000;
/// Sessions of a group that have a share. More would have too little of it to matter; each append looks at all of them
/// while some wait.
pub const SESSION_SHARES_MAX: usize = 64;
/// A throttled client should come back after this at the least, so that it does not spin …
pub const RETRY_AFTER_MS_MIN: u64 = 1;
/// … after this where the chain, not the budget, holds appends back, …
pub const RETRY_AFTER_MS_HELD: u64 = 50;
/// … and after this at most, since budgets change.
pub const RETRY_AFTER_MS_MAX: u64 = 10_000;
/// A connection or link is read so far before its frames are sent on: one read batch. With less, a batch of large entries
/// is a flush of its own. With more, servers of a chain wait for one another …
pub const READ_BATCH_BYTES: usize = 256 << 10;
/// … and so far while records wait for the disk: each read batch is another write, and all wait for the disk.
pub const READ_BATCH_SYNCED_BYTES: usize = 1 << 20;
/// Up to so many bytes wait once for the next read batch, to be written and synced with it.
pub const SYNC_HOLD_BYTES: usize = 4 << 20;
/// A cycle of the fair queue between tenants, in time of the shard. A request of a tenant within its share waits for
/// others no longer. With a longer cycle a tenant's burst is in others' way; a shorter one serves too few requests.
pub const FAIR_CYCLE_US: u64 = 2_000;
/// While others wait, a connection is not read in smaller pieces: a system call costs about as much as so many bytes.
pub const FAIR_READ_BYTES_MIN: usize = 16 << 10;
/// Pages that one connection is sent in one turn, about: a write of so many bytes costs little more than its bytes.
pub const FAIR_PAGES_BYTES: usize = 256 << 10;
/// How long a cycle waits for a tenant that has a share left and does not take its answers, …
pub const FAIR_BLOCKED_WAIT_US: u64 = 1_000;
/// … and how long it is not waited for again: one that never reads takes no more than a sixteenth of the time.
pub const FAIR_BLOCKED_REST_US: u64 = 16_000;
/// Burst capacity that a group may use at once after a pause, in time at its rate: its owners may reclaim it any moment.
pub const BURST_DEPTH_MS: u64 = 100;
/// Time that requests above the reservation may add to a batch's way from order to commitment: a few syncs of a sound
/// disk. With less, one sync would end the burst. With more, a client that appends at its SLA with a few milliseconds of
/// batches under way would get less than its SLA.
pub const BURST_DELAY_MS: u64 = 4;
/// How long the least time that a batch took is remembered, at least: a chain that has become slower for good is not held
/// to what it was.
pub const BURST_LEAST_KEPT_MS: u64 = 10_000;
/// Steps of an interval: servers agree on grants in five of them. The others leave time for late messages.
pub const SHARE_STEPS_PER_INTERVAL: u64 = 16;
/// Levels by which other servers' tenants are aggregated, at most. Sixteen levels would grant a thousandth more, and cost
/// servers twice the time.
pub const SHARE_AGGREGATE_LEVELS_MAX: usize = 4;
/// Aggregates of one frame: for each set of three resources those levels, and one without end. A frame is 1.3 KB at most.
pub const SHARE_AGGREGATES_MAX: usize = 8 * (SHARE_AGGREGATE_LEVELS_MAX + 1);
/// A grant that is not renewed for so many intervals ends: two messages in a row may be lost.
pub const SHARE_LAPSE_INTERVALS: u64 = 3;
/// Shortest and longest interval of sharing.
pub const SHARE_INTERVAL_MS_MIN: u64 = 100;
pub const SHARE_INTERVAL_MS_MAX: u64 = 60_000;
/// Groups of one message about shares between a server and a coordinator: a megabyte.
pub const SHARING_ENTRIES_MAX: usize = 8_192;
/// Reports of servers that wait for the coordinator's round. Beyond, they are lost, which costs one interval.
pub const SHARING_REPORTS_MAX: usize = 4_096;
/// The interval in which coordinators divide projects' guarantees among groups, and heads report what they want.
pub const GUARANTEE_INTERVAL_MS: u64 = 250;
/// A server without any group that has a share of its project's guarantee reports so once in so many intervals.
pub const GUARANTEE_IDLE_INTERVALS: u64 = 20;
/// Messages about guarantees that wait for their task; one that is lost is sent again an interval later.
pub const GUARANTEE_MESSAGES_MAX: usize = 64;
/// Shares of guarantees are kept so long after a coordinator was last heard. Most troubles of coordinators are over by then.
pub const GUARANTEE_KEPT_S: u64 = 600;
/// Coordinators believe a head to use its share for so much longer: its clock may be slow, and a message under way.
pub const GUARANTEE_KEPT_MARGIN_S: u64 = 60;
/// A million cores' worth: products with costs fit 128 bits.
pub const GUARANTEE_TOKENS_PER_S_MAX: u64 = 1_000_000_000_000;
/// Groups that a local policy names. Others have weight 1.
pub const GUARANTEE_POLICY_GROUPS_MAX: usize = 1_000;
pub const GUARANTEE_WEIGHT_MAX: u32 = 1_000_000;
pub const GUARANTEE_CLASS_CHARS_MAX: usize = 64;
/// SHARE frames that wait to be read. Beyond, they are lost, which costs no more than one interval.
pub const SHARE_UPDATES_MAX: usize = 4_096;
/// SHARE frames read at once: owners that come back together cause one reclaim.
pub const SHARE_UPDATES_AT_ONCE: usize = 256;
/// Deadline of an append that names none.
pub const APPEND_TIMEOUT_MS_DEFAULT: u32 = 10_000;

/// Payload in flight from a predecessor to a successor that is catching up.
pub const CATCHUP_WINDOW_BYTES: u64 = 4 << 20;
/// A successor that catches up reports its progress after so many bytes.
pub const CATCHUP_PROGRESS_BYTES: u64 = 1 << 20;
/// Share of a server's network and of its storage for catching up learners. It is little enough that other groups keep
/// their SLA: admission promises no more than the rest. It is enough for 1 GB in well under a minute on a 10 Gbit/s
/// network.
pub const RECOVERY_SHARE_PERCENT: u64 = 4;
/// Part of that share which moves of whole groups get. Nobody lacks a replica meanwhile, so they may take their time, and
/// syncs that wait for them are the clients' p99.
pub const MOVES_OF_RECOVERY_SHARE: u64 = 4;
/// However little a share comes to, catching up gets this much, or it would never end.
pub const CATCHUP_BYTES_PER_S_MIN: u64 = 1 << 20;
/// How much catching up may be done at once after a pause, in time at its rate. It delays other groups' batches on the
/// link, and their syncs at the learner.
pub const CATCHUP_BURST_MS: u64 = 10;
/// How often allowances are given out.
pub const CATCHUP_PACE_MS: u64 = 5;
/// How long a successor waits for an answer before it asks again to be synchronised.
pub const SYNC_RETRY_MS: u64 = 200;
/// How long a successor that knows itself behind, or a learner, hears nothing before it asks again: longer than
/// reading a window of batches back from a busy disk takes.
pub const SYNC_STALL_MS: u64 = 1_000;

/// A server gives a sign of life so often on each link to another one.
pub const LINK_ALIVE_US: crate::Micros = 100_000;
/// A link on which nothing was heard for so long is dead, whatever the kernel believes. Four signs of life are missing then:
/// a peer that stood still for a fifth of a second is not silent, nor one whose core was busy for as long again.
pub const LINK_SILENCE_US_MAX: crate::Micros = 500_000;
/// The same for peers of the release before, which give a sign of life each half second.
pub const LINK_SILENCE_BEFORE_US_MAX: crate::Micros = 3_000_000;

/// A server is reported as slow (`control::SlowReport`) when bytes or records have waited for it so long. This is far
/// above any sync of a sound disk and any round trip. It is above two ticks, by which a replica that is not slow shows its
/// progress, and below an outage that a customer would notice.
pub const SLOW_REPORT_MS: u64 = 500;

/// A server's wall clock is in doubt when it differs by more from the coordinator's. Clocks that a time service keeps
/// differ by milliseconds, those of a machine without one by seconds a day. An answer of the coordinator that took longer
/// says nothing about its clock. Both errors add up: retention by age waits for twice as long.
pub const CLOCK_DIFFERENCE_US_MAX: crate::Micros = 1_000_000;
/// A server that has hung for so long is no witness: its threads do not hear the peers that it reports. That is far above
/// any sync of a sound disk, and above the ticks that a busy machine delays.
pub const HANGING_MS: u64 = SLOW_REPORT_MS;
/// How often a server looks whether its shards tick and its journal's operations end.
pub const HANG_SAMPLE_MS: u64 = 50;
/// No more of the time between two looks counts as a hang. A process that stood still as a whole has not hung.
pub const HANG_STEP_MS_MAX: u64 = 2 * HANG_SAMPLE_MS;

/// A head whose ring makes no progress for so long while clients wait, and whose coordinator has not answered for a lease,
/// is isolated: it sends its clients elsewhere ([`crate::Code::CutOff`]). This is less than a lease, so that the lease
/// decides, and more than a sync of a busy disk takes.
pub const RING_STALL_MS: u64 = 1_000;

/// A head counts its time at each tick, of a quiet group twice a second. A longer time counts as paused: its process or
/// machine stood still. A tick may be a quarter of a second late.
pub const SLA_AWAY_MS: u64 = 750;
/// A chain that acknowledges nothing for so long takes no appends, as the SLA counts. A sync of a busy disk takes less.
pub const SLA_STALL_MS: u64 = 500;

/// Trims and questions for the status that wait for the ring, per group and kind.
pub const ASKED_WAITING_MAX: usize = 4_096;
/// A head whose ring pass does not come back by then says that it cannot answer.
pub const STATUS_WAIT_MS_MAX: u64 = 2_000;
/// Refusals of conditions that wait until their premise is certain, per group: sixteen sessions with full windows.
/// Beyond, appends with a failed condition are refused as overload.
pub const HELD_REFUSALS_MAX: usize = 4_096;
/// Batches freed in one flush after a trim: milliseconds.
pub const TRIM_BATCHES_PER_FLUSH: u64 = 10_000;

/// Retention of an SLA that names none.
pub const RETENTION_BYTES_DEFAULT: u64 = 256 << 20;
pub const RETENTION_BYTES_MIN: u64 = 1 << 20;
/// Retention by age goes by a clock that may be seconds off, and is applied at each tick: below a minute it means little.
pub const RETENTION_AGE_S_MIN: u64 = 60;
/// A century: more is a mistake, and sums in microseconds stay far from overflow.
pub const RETENTION_AGE_S_MAX: u64 = 100 * 366 * 86_400;
pub const RATE_PER_S_MAX: u64 = 100_000_000;

/// Committed payload of persistent groups kept in memory for readers, per group; the rest is on disk.
pub const RECENT_BYTES_PER_GROUP: u64 = 16 << 20;

/// One journal segment: large enough that a switch is rare, small enough that reuse is quick.
pub const JOURNAL_SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes that wait for the journal's next sync; beyond, shards stop taking appends.
pub const JOURNAL_BUFFER_BYTES_MAX: usize = 64 << 20;
/// Free space below which a server turns its persistent groups read-only, leaving room for truncation records.
pub const DISK_RESERVE_BYTES: u64 = 32 << 20;

/// A group log's file, the unit in which trimming frees space: small beside a group's default retention.
pub const GROUP_LOG_FILE_BYTES: u32 = 16 << 20;
/// Read from the journal, and then synced, at once: with many groups, the more the fewer syncs a byte …
pub const GROUP_LOG_PASS_BYTES: u64 = 128 << 20;
/// … but no more records than this, of whose new places 24 bytes each are kept until the round ends.
pub const GROUP_LOG_PASS_RECORDS_MAX: usize = 512 << 10;
/// Full segments of the journal that are not copied yet: what groups trim meanwhile never is. And for how long at most.
pub const GROUP_LOG_KEEP_SEGMENTS: usize = 4;
pub const GROUP_LOG_KEEP_S: u64 = 30;
/// Copying from the journal goes no faster while the journal is short: a disk's other work comes first. The rate
/// doubles with each full segment that waits.
pub const GROUP_LOG_COPY_BYTES_PER_S: u64 = 64 << 20;
/// Re-reading group logs to find damage: 100 GB in half a day.
pub const GROUP_LOG_SCRUB_BYTES_PER_S: u64 = 2 << 20;

/// Damaged records that one shard has repaired at once; each may hold a batch of the longest.
pub const REPAIRS_PER_SHARD_MAX: usize = 16;
/// Batches that one shard reads back for peers that repair at once.
pub const FETCHES_SERVED_PER_SHARD_MAX: usize = 16;
/// How long a repair waits for one peer before it asks the next.
pub const REPAIR_TRY_MS: u64 = 1_000;
/// Attempts of a repair at all peers, before the reader's error that the entries are not available now.
pub const REPAIR_ATTEMPTS_MAX: u32 = 3;
/// Pause of a group's repairs while copying, after no peer answered for one of its batches. A segment may have lost
/// hundreds of thousands of batches. Batches copied damaged are repaired when peers are back.
pub const REPAIR_REST_MS: u64 = 10_000;

/// Memory that a server takes beside its groups and its journal's buffers: code, threads, connections, the buffers of the
/// group logs' copier.
pub const SERVER_MEMORY_BYTES: u64 = 96 << 20;
/// The part of a server's memory for what groups hold beyond their own: windows, queues, payloads for readers, and those
/// that learners still need.
pub const SERVER_POOL_PART: u64 = 8;
/// With less memory a server would have nothing for groups.
pub const SERVER_MEMORY_BYTES_MIN: u64 = 320 << 20;
/// Segments that a journal has beside those that wait for a while: some that are being copied or ready for reuse, the one
/// in use and the next one.
pub const JOURNAL_SEGMENTS_BESIDE: u64 = 10;

/// Bytes queued to one peer's link before it is opened again. All groups together queue less, except for answers, whose
/// number others decide.
pub const LINK_OUTBOX_BYTES_MAX: usize = 128 << 20;
/// Bytes queued to one peer's link before groups that feed it wait for one another's batches. They are sent in some tens
/// of milliseconds. With every group's window of [`CATCHUP_WINDOW_BYTES`] they stay far below the bound above.
pub const LINK_FEED_BYTES_MAX: usize = 32 << 20;

/// Telemetry records kept in memory: two minutes of the fullest server. They take 60 MB then. While Redis is away those
/// of minutes that are over go to the disk.
pub const TELEMETRY_WINDOWS_MAX: usize = 2 * GROUPS_PER_SERVER_MAX;
/// A record that was not sent goes to the disk so long after its minute ended: by then it does not change any more.
pub const TELEMETRY_SPOOL_AFTER_S: u64 = 180;
/// Records on disk are kept as long as the worker takes them.
pub const TELEMETRY_SPOOL_AGE_S: u64 = 8 * 24 * 3_600;
/// Bytes on disk: a week of 1 000 busy replicas. Beyond, the oldest file is dropped and counted.
pub const TELEMETRY_SPOOL_BYTES_MAX: u64 = 1 << 30;
/// A file is removed as a whole.
pub const TELEMETRY_SPOOL_FILE_BYTES: u64 = 4 << 20;
/// Entries from the disk that a second sends: 24 hours of 1 000 replicas take a minute and a half.
pub const TELEMETRY_SPOOL_ENTRIES_PER_ROUND_MAX: usize = 64;
/// Entries of the usage stream that are not stored. They take up to 200 MB of Redis' memory. Beyond, servers keep their
/// records.
pub const TELEMETRY_STREAM_ENTRIES_MAX: usize = 2_000;
/// Records sent each second in which nothing but time has passed. Up to so many idle groups are as current as busy ones;
/// of more, each is sent in turn and when its minute has ended.
pub const TELEMETRY_TIME_RECORDS_PER_ROUND_MAX: usize = 1_024;
/// Groups with nothing to show in the entry of one second for charts. Beyond, they are left out of it.
pub const TELEMETRY_LIVE_IDLE_MAX: usize = 1_024;
/// Records in one stream entry: keeps an entry, and the repetition of a failed send, below a megabyte.
pub const TELEMETRY_RECORDS_PER_ENTRY_MAX: usize = 256;
/// Changes of grants that wait for Redis: minutes of a busy server. Beyond, the oldest are dropped and counted.
pub const TELEMETRY_GRANTS_MAX: usize = 4_096;
/// How often all grants are published, and not the changed ones only. The API shows grants for three times as long.
pub const TELEMETRY_GRANTS_PUBLISHED_S: u64 = 30;
/// Windows that ended less than this ago are sent again over a new connection to Redis. Redis may have lost windows that
/// it had accepted: a replica was promoted, or it restarted from an older file.
pub const TELEMETRY_RESEND_S: u64 = 900;
/// Samples of a group's counters at an epoch's end and beginning that wait for the next regular sample. Beyond, usage
/// of the earlier epoch is counted for the later one.
pub const TELEMETRY_EPOCH_SAMPLES_MAX: usize = 64;
/// Spans on their way from the shards to the exporter; beyond, they are dropped and counted.
pub const TELEMETRY_SPANS_MAX: usize = 4_096;
/// Traced batches under way in one group; those beyond have no span here.
pub const TELEMETRY_TRACED_BATCHES_MAX: usize = 1_024;

/// Longest control message: a configuration of the longest chain is a few KB, a report of a group 200 bytes.
pub const CONTROL_MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Heads report the rates that their partitions want as often, and coordinators divide groups' rates by them.
pub const PARTITION_INTERVAL_MS: u64 = 1_000;
/// Partitions in one such report, each of about 90 bytes: far below [`CONTROL_MESSAGE_BYTES_MAX`]. The heads of a full server
/// have all reported after four intervals.
pub const PARTITION_WANTS_MAX: usize = 16_384;
/// Rates are divided each so many intervals: demands move in seconds, and a division is an epoch of the chains that it changes.
pub const PARTITION_DIVISION_INTERVALS: u64 = 3;
/// Partitions of one group: as many heads as the largest groups of other systems have, and a handle names them all.
pub const PARTITIONS_MAX: u16 = 256;
/// Replicas that one server hosts: what was measured, and some more (`docs/operating/limits.md`). A server at this bound is
/// given no further replica.
pub const GROUPS_PER_SERVER_MAX: usize = 65_536;
/// Changed groups in one heartbeat; further ones are in the next. The coordinator reads such a heartbeat in some ten
/// milliseconds, and all groups of the fullest server arrive in eight.
pub const REPORTS_PER_HEARTBEAT_MAX: usize = 8_192;

/// Groups that one process quarantines. With more the process itself is at fault, and ends.
pub const QUARANTINED_GROUPS_MAX: usize = 16;
/// The text of the assertion that stopped a replica, which is in heartbeats and events: some sentences.
pub const QUARANTINE_REASON_CHARS_MAX: usize = 256;
/// A group that so many servers had in quarantine within [`QUARANTINES_REMEMBERED_MS`] is quarantined as a whole: the cause
/// goes with the group, and would stop one server's replica after another.
pub const QUARANTINES_MAX: usize = 2;
/// An hour: a replacement has learned the largest log by then, and clients have sent again.
pub const QUARANTINES_REMEMBERED_MS: u64 = 3_600_000;

/// A storage fault that lasts so long makes a server's persistent replicas leave it. It is longer than a trim takes, and
/// below an outage that a customer would notice.
pub const STORAGE_FAULT_LASTS_MS: u64 = 500;
/// The text of a server's storage fault, which the coordinator keeps in its log and in events: a sentence.
pub const STORAGE_FAULT_CHARS_MAX: usize = 256;
/// The words of a server about its links: a provider's error is a sentence.
pub const LINK_TRANSPORT_CHARS_MAX: usize = 256;
/// Messages waiting for one server: every configuration of a server with the most groups, twice. A server that falls
/// further behind is disconnected, and gets everything when it registers again.
pub const CONTROL_OUTBOX_MESSAGES_MAX: usize = 2 * GROUPS_PER_SERVER_MAX;
/// Control connections of one coordinator, registered or not.
pub const CONTROL_CONNECTIONS_MAX: usize = 16_384;
/// Events kept for the API; it reads them within seconds, this is days.
pub const COORDINATOR_EVENTS_MAX: usize = 100_000;
/// Events in one answer.
pub const COORDINATOR_EVENTS_PER_ANSWER_MAX: usize = 1_000;
/// Longest wait for the next event.
pub const COORDINATOR_EVENTS_WAIT_MS_MAX: u64 = 30_000;
/// Ids of deleted groups that cannot be used again. Older ids are forgotten everywhere.
pub const DELETED_GROUPS_MAX: usize = 100_000;
/// Revoked credentials whose tokens have not expired: 80 bytes each in the welcome of a server. One call revokes the sessions
/// and keys of an organization in a few.
pub const REVOCATIONS_MAX: usize = 40_000;
pub const REVOCATIONS_PER_CALL_MAX: usize = 500;
/// Join tokens that are neither used nor expired.
pub const JOIN_TOKENS_MAX: usize = 10_000;
/// An invitation that lies around longer is a risk.
pub const JOIN_TOKEN_TTL_S_MAX: u64 = 30 * 86_400;
/// Groups that a server reports to hold: those that it hosts, and as many again that went on without it and were not
/// dropped yet.
pub const HELD_GROUPS_MAX: usize = 2 * GROUPS_PER_SERVER_MAX;
/// Held groups that one message of a registration names.
pub const HELD_PER_MESSAGE_MAX: usize = 16_384;
/// Registrations of several messages that are read at once. Each may take 26 MB, and anybody can begin one.
pub const LARGE_REGISTRATIONS_MAX: usize = 8;
/// Incarnations that a server remembers while the coordinator has not confirmed one: failed starts in a row.
pub const INCARNATIONS_KEPT_MAX: usize = 16;
/// Starts of the coordinator that its log remembers. A server's place from before them counts as one of this log: a log
/// that was restored from a copy has all of these starts, and what it lacks came later.
pub const RUNS_KEPT_MAX: usize = 256;
/// Calls of the API that wait for the end of a roll call. Beyond, callers are told at once to repeat them.
pub const HELD_CALLS_MAX: usize = 1_024;
/// Replicas that leave one draining server at the same time. Each move reads a log at its tail and writes it at another
/// server, within the window of one catch-up (4 MiB under way). The other groups of the servers do not notice so few,
/// and one slow log does not hold up the others.
pub const DRAIN_MOVES_MAX: usize = 4;
/// Moves by demand or for lack of capacity that are under way at one time in the fleet. Each copies a log, and its outcome may
/// make the next one needless.
pub const MIGRATIONS_MAX: usize = 4;
/// A reset group begins so far above the last known offset of its lost log. A chain that the coordinator cannot hear must
/// commit half of it before an offset could be used twice. That takes 1.5 hours at [`RATE_PER_S_MAX`], and 6 days at a
/// million a second. A smaller number would save nothing.
pub const RESET_GAP_OFFSETS: u64 = 1 << 40;
/// Offsets are exact in every language's numbers up to here; a group that would pass it cannot be reset again.
pub const RESET_OFFSET_MAX: u64 = 1 << 53;
/// Body of one call to the coordinator: an SLA is 300 bytes.
pub const COORDINATOR_BODY_BYTES_MAX: usize = 64 << 10;
/// Requests and messages that wait for the coordinator's state machine.
pub const COORDINATOR_QUEUE_MAX: usize = 4_096;
/// Connections from other coordinators: five, each connecting again before the old connection is noticed to have ended,
/// and some of strangers.
pub const MEMBER_CONNECTIONS_MAX: usize = 64;
/// HTTP connections of a coordinator in their handshakes: of an API's processes, and some of strangers.
pub const HTTP_CONNECTIONS_MAX: usize = 256;
/// Messages that wait for the link to one other coordinator: more than the quorum has on the way to it.
pub const MEMBER_OUTBOX_MESSAGES_MAX: usize = 256;
/// One message between coordinators: an entry of 256 commands of the largest kind, or a piece of a snapshot.
pub const MEMBER_MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The coordinator's log is rewritten as a snapshot beyond this, or twice the last snapshot.
pub const COORDINATOR_LOG_BYTES: u64 = 16 << 20;
/// One record of that log: a snapshot of 100 000 groups is 150 MB.
pub const COORDINATOR_RECORD_BYTES_MAX: u64 = 1 << 30;

const _: () = assert!(
    ENTRY_BYTES_MAX + 4 <= BATCH_BYTES_MAX,
    "the largest entry fits a batch"
);
const _: () = assert!(
    (BATCH_BYTES_MAX as u64) <= QUEUE_BYTES_MAX,
    "the largest batch fits the queue"
);
const _: () = assert!(RETRY_AFTER_MS_MIN <= RETRY_AFTER_MS_HELD && RETRY_AFTER_MS_HELD <= RETRY_AFTER_MS_MAX);
const _: () = assert!(QUEUE_BYTES_MAX <= UNCOMMITTED_BYTES_MAX);
const _: () = assert!(
    FRAME_BYTES_MAX as usize <= CLIENT_BACKLOG_BYTES_MAX,
    "the largest frame fits a cross-shard transfer"
);
const _: () = assert!(HANDSHAKES_PER_ADDRESS_MAX * 4 <= HANDSHAKES_MAX && HANDSHAKES_MAX <= CONNECTIONS_MAX);
const _: () = assert!(
    RESET_GAP_OFFSETS / 2 / RATE_PER_S_MAX >= 3_600,
    "an hour without the coordinator uses no offset twice"
);
const _: () = assert!(
    REVOCATIONS_MAX * 100 <= CONTROL_MESSAGE_BYTES_MAX,
    "a welcome holds all revocations"
);
const _: () = assert!(
    HELD_PER_MESSAGE_MAX * 200 <= CONTROL_MESSAGE_BYTES_MAX
        && REPORTS_PER_HEARTBEAT_MAX * 250 <= CONTROL_MESSAGE_BYTES_MAX,
    "groups of one message fit it"
);
const _: () = assert!(GROUPS_PER_SERVER_MAX.is_multiple_of(REPORTS_PER_HEARTBEAT_MAX));
const _: () = assert!(
    READ_BATCHES_MAX * 28 + 64 <= HEAD_BYTES_MAX,
    "descriptors fit the head"
);
const _: () = assert!(
    (FRAME_BYTES_MAX as u64) * 2 < JOURNAL_SEGMENT_BYTES,
    "a record fits a segment"
);
const _: () = assert!(
    SERVER_MEMORY_BYTES + 2 * JOURNAL_BUFFER_BYTES_MAX as u64 + SERVER_MEMORY_BYTES_MIN / SERVER_POOL_PART
        < SERVER_MEMORY_BYTES_MIN,
    "the smallest server has memory for groups"
);
const _: () = assert!(FRAME_BYTES_MAX < GROUP_LOG_FILE_BYTES, "a record fits a file");
const _: () = assert!(UNCOMMITTED_BYTES_MAX < LINK_OUTBOX_BYTES_MAX as u64);
const _: () = assert!(
    LINK_FEED_BYTES_MAX as u64 + CATCHUP_WINDOW_BYTES + (FRAME_BYTES_MAX as u64)
        < LINK_OUTBOX_BYTES_MAX as u64 / 2,
    "groups that wait for each other fill no link"
);
