"""Every bound of the control plane, with its reason. services/crates/types/src/limits.rs has the data plane's."""

# Bounds of an SLA, equal to those in the data plane's limits.rs.
REPLICATION_DEGREE_MAX = 7
REQUEST_SIZE_BYTES_MAX = 1 << 20
RATE_PER_S_MAX = 100_000_000
RETENTION_BYTES_DEFAULT = 256 << 20
RETENTION_BYTES_MIN = 1 << 20
RETENTION_BYTES_MAX = 1 << 50
RETENTION_AGE_S_MIN = 60
RETENTION_AGE_S_MAX = 100 * 366 * 86_400

# The handle carries these to clients.
ENTRY_BYTES_MAX = 1 << 20
BATCH_BYTES_MAX = 4 << 20
BATCH_ENTRIES_MAX = 65_536
SESSION_WINDOW_BATCHES = 256
TOKEN_LIFETIME_S = 3_600
TOKENS_UNTIL_RESOLUTION_S = 60  # how exactly the end of a credential's last token is noted: a write a minute at most

# API keys.
SCOPES_PER_KEY_MAX = 32
SCOPE_LENGTH_MAX = 120  # a group's name, with its operation
SECRETS_PER_KEY_MAX = 3  # two rotations at a time
ROTATION_GRACE_S = 24 * 3_600
ROTATION_GRACE_S_MAX = 30 * 24 * 3_600
NEW_KEYS_PER_ORGANIZATION = (
    "500/hour"  # new secrets of known ones, too; each may be a revocation, of which servers hold some ten thousand
)
SESSION_SWITCHES_PER_PERSON = "120/hour"  # each ends a session, for the same reason
REVOCATION_INTERVAL_S = 1.0  # servers refuse tokens within ten seconds
REVOCATIONS_PER_CALL_MAX = 500  # the coordinators' own bound

# Requests. The largest valid body (a group) is under 1 KiB.
REQUEST_BODY_BYTES_MAX = 64 << 10
NAME_LENGTH_MAX = 100
ORGANIZATION_KEYS_MAX = 20  # one for each pipeline, and its successor during rotation
PAGE_LIMIT_DEFAULT = 50
PAGE_LIMIT_MAX = 200
IDEMPOTENCY_KEY_LENGTH_MAX = 255
IDEMPOTENCY_LOCK_S = 60  # longer than the slowest request; a crashed request may be repeated after it
IDEMPOTENCY_RETENTION_S = 24 * 3_600

# Passwords. argon2id takes 64 MiB and half a second. Two at a time bound memory; the queue bounds waiting.
PASSWORD_LENGTH_MIN = 10
PASSWORD_LENGTH_MAX = 256
PASSWORD_HASHES_AT_ONCE = 2
PASSWORD_HASHES_WAITING_MAX = 64
SESSION_LIFETIME_S = 14 * 24 * 3_600
SESSION_IDLE_S = 24 * 3_600  # a laptop that was closed overnight logs in no more often
SESSION_SEEN_RESOLUTION_S = 60
SESSIONS_SHOWN_MAX = 200
USER_AGENT_LENGTH_MAX = 200
CONFIRMED_S = 15 * 60  # a password or code counts for so long when keys, members or billing change
SECRET_OVERLAP_S = 24 * 3_600 + 600  # idle sessions, links and stored answers have ended by then
DEVICE_LIFETIME_S = 365 * 24 * 3_600

# People.
VERIFICATION_LIFE_S = 24 * 3_600
RESET_LIFE_S = 3_600
INVITATION_LIFE_S = 7 * 24 * 3_600
MAIL_TOKEN_LENGTH_MAX = 100
MEMBERS_MAX = 200
INVITATIONS_MAX = 50  # waiting for an answer, in one organization
RECOVERY_CODES = 10
PASSKEYS_MAX = 20  # of one person: each device, and a few spare ones
PASSKEY_CHALLENGE_S = 300  # a person finds the device, and unlocks it
IDENTITIES_MAX = 10  # one at each provider, and a few former ones
IDENTITY_ATTEMPT_S = 600  # a person logs in at the provider, perhaps with a code, and names an organization
PROVIDERS_MAX = 10  # buttons on a page
PROVIDER_NAME_LENGTH_MAX = 40  # on a button
PROVIDER_CODE_LENGTH_MAX = 2_000
PROVIDER_TIMEOUT_S = 5.0
PROVIDER_ANSWER_BYTES_MAX = 256 << 10
PROVIDER_KNOWN_S = 3_600.0
PROVIDER_AGAIN_S = 5.0  # after it has failed
PROVIDER_KEYS_S = 60.0  # strangers' tokens cannot have keys read more often
PROVIDER_CLOCK_S = 60
SUBJECT_LENGTH_MAX = 255  # OpenID Connect Core 1.0, section 2
EMAIL_LENGTH_MAX = 254
TOTP_STEP_S = 30
TOTP_STEPS_OFF = 1  # a clock may be half a minute off

AUDIT_REQUEST_CHARACTERS_MAX = 16 << 10  # of a body in an event; only a policy of hundreds of groups is longer
AUDIT_EXPORT_ROWS = 1_000  # read at once
AUDIT_COPIES_AT_ONCE = 200  # in one transaction: a few megabytes of events
AUDIT_COPY_INTERVAL_S = 1.0

# The end of an organization.
CLOSURE_GRACE_S = 14 * 24 * 3_600  # an owner who is on holiday can reopen it
CLOSED_KEPT_S = 60 * 24 * 3_600  # the last invoice comes within a month, and is due two weeks later
CLOSURE_REASONS_SHOWN = 5
SUSPENSION_REASON_LENGTH_MAX = 500
QUOTA_REASON_LENGTH_MAX = 1_000
VIEW_S = 1_800  # an operator looks at an organization
ADMISSIONS_KEPT_S = 90 * 24 * 3_600
ADMISSIONS_COUNTED_HOURS_MAX = 90 * 24
ADMISSION_MESSAGE_LENGTH_MAX = 1_000
CLOSURE_INTERVAL_S = 30.0
EXPORT_ROWS = 1_000  # read at once

# Operators.
OPERATOR_SESSION_S = 8 * 3_600  # a working day
OPERATOR_SESSION_S_MAX = 12 * 3_600

# Backups, and the doctor.
BACKUP_BASE_EVERY_S = 24 * 3_600
BACKUP_BASES_KEPT = 7
BACKUP_LOOK_S = 1.0
BACKUP_AGAIN_S = 60.0  # after a base backup that failed
BACKUP_STOP_S = 10.0
DOCTOR_CLOCK_S = 2.0  # more than the doctor's own call takes

# Events and webhooks.
EVENTS_KEPT_S = 30 * 24 * 3_600  # a receiver that was away over the holidays gets all by a replay
WEBHOOKS_MAX = 10  # an organization has a few systems that listen
WEBHOOK_URL_LENGTH_MAX = 2_048
WEBHOOK_ADDRESSES_MAX = 4  # a name's addresses are tried in turn
WEBHOOK_TIMEOUT_S = 15.0  # Standard Webhooks: 15 to 30 seconds
# Standard Webhooks recommends these: ten attempts in three and a half days.
WEBHOOK_PAUSES_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
WEBHOOK_FAILING_S = 5 * 24 * 3_600  # a receiver that takes nothing for so long gets no more
WEBHOOK_INTERVAL_S = 1.0
WEBHOOK_EVENTS_AT_ONCE = 500  # given to webhooks in one transaction
WEBHOOK_SENDS_AT_ONCE = 100
WEBHOOK_SENDS_PER_ORGANIZATION = 5  # receivers that never answer hold up their own organization alone
WEBHOOK_REPLAY_MAX = 500  # events in one call
WEBHOOK_TESTS_PER_ORGANIZATION = "60/hour"

# Mail.
MAIL_ADDRESS_LENGTH_MAX = 320
MAIL_INTERVAL_S = 1.0
MAILS_AT_ONCE = 20
MAIL_TIMEOUT_S = 10.0
MAIL_RETRY_S = 30  # doubled for each further attempt
MAIL_RETRY_S_MAX = 3_600
MAIL_LIFE_S = 24 * 3_600  # the links in it have ended by then

# Rates, of all API processes together. While Redis is away each process counts alone.
LOGIN_FAILURES_PER_PAIR = "10/5minutes"  # one account from one address, or from one known device
LOGIN_FAILURES_PER_ADDRESS = "100/5minutes"
LOGIN_FAILURES_PER_ACCOUNT = "300/hour"  # from unknown devices; known ones are not hindered by it
INVALID_KEYS_PER_ADDRESS = "60/minute"  # different ones, before the database is asked
KNOWN_KEYS_MAX = 20_000  # a few megabytes in each process
MAIL_REQUESTS_PER_ADDRESS = "20/hour"
MAILS_PER_RECIPIENT = "5/hour"
INVITATIONS_PER_ORGANIZATION = "100/hour"
SIGNUPS_PER_ADDRESS = "20/hour"  # an office shares one address
TRUSTED_PROXIES_MAX = 8  # a longer chain of proxies is a misconfiguration
REQUESTS_PER_PRINCIPAL = "6000/minute"
RATES_REDIS_S = 0.5  # each request waits for the count, so not for long
RATES_ALONE_S = 10.0  # after Redis has failed, before it is tried again
STATUS_PER_ADDRESS = "120/minute"  # a page reads it each half minute; an office shares one address

# Quotas of an organization, unless quota_overrides says otherwise.
PROJECTS_MAX = 20
KEYS_PER_PROJECT_MAX = 100
GROUPS_PER_PROJECT_MAX = 50
PARTITIONS_PER_PROJECT_MAX = 512  # beside the first of each group
TOTAL_RATE_PER_S_MAX = 10_000_000
TOTAL_READ_RATE_PER_S_MAX = 10_000_000
TOTAL_GUARANTEED_TOKENS_PER_S_MAX = 200_000_000  # as much as ten million appends of 1 KB, in memory

# Quotas of an organization none of whose owners has verified an address: enough to try everything.
UNVERIFIED_PROJECTS = 2
UNVERIFIED_GROUPS_PER_PROJECT = 3
UNVERIFIED_PARTITIONS_PER_PROJECT = 8
UNVERIFIED_TOTAL_RATE_PER_S = 20_000
UNVERIFIED_TOTAL_READ_RATE_PER_S = 20_000
UNVERIFIED_GUARANTEED_TOKENS_PER_S = 0
UNVERIFIED_FLEET_RATE_PER_S = 200_000  # all such organizations together: strangers cannot take the fleet

# Partitions of a group; as the coordinators' (`limits.rs`).
PARTITIONS_MAX = 256
CONSUMERS_PER_GROUP_MAX = 64  # a row for each partition of each
CONSUMER_NAME_LENGTH_MAX = 100

# Guarantees of projects; those of the coordinators (`limits.rs`).
GUARANTEE_TOKENS_PER_S_MAX = 1_000_000_000_000
GUARANTEE_WEIGHT_MAX = 1_000_000
GUARANTEE_POLICY_GROUPS_MAX = 1_000

# Spend. Usage goes on in forecasts as it did in these days: a week has its weekend in it.
SPEND_RECENT_DAYS = 7
SPEND_OBSERVED_S_MIN = 24 * 3_600  # an hour's burst is no rate of a month
SPEND_GROUPS_MAX = 1_000  # as many as all projects may have; the rest is one sum
SPEND_SERIES_MAX = 4_000  # in an export: those groups with four kinds each, under 1 MiB of text
BUDGET_MICROS_MAX = 10**15  # exact in JSON; a billion
BUDGET_THRESHOLDS_MAX = 10  # actual, and as many of the forecast: people read their alerts
BUDGET_THRESHOLD_PERCENT_MAX = 1_000
BUDGET_THRESHOLDS_PERCENT = (50, 80, 100)
BUDGET_FORECAST_THRESHOLDS_PERCENT = (100,)

# Spend caps. Use is known after a few seconds, and an epoch begins within one.
CAP_INTERVAL_S = 5.0
CAP_AHEAD_S = 8  # of growing use, between two looks until servers refuse: a cap acts by so much too early
CAP_ORGANIZATIONS_MAX = 200  # in one read, as for budgets
CAP_GROUPS_MAX = 5_000  # in one pass: seconds, with so many calls at once
CAP_CALLS_AT_ONCE = 16  # half of the client's connections
HELD_BYTES_AGE_S = 900  # idle groups report once a minute

# Commitments to reservations.
COMMITMENT_MICROS_MIN = 1_000_000  # a month; less is no commitment
COMMITMENT_MICROS_MAX = 10**13  # ten million a month, exact in JSON
COMMITMENTS_MAX = 100  # of an organization, ended ones too: each may be a line on each invoice
# Corrections by operators.
CORRECTION_QUANTITY_MAX = 10**15  # exact in JSON; its price fits 63 bits
CORRECTION_REASON_LENGTH_MAX = 300  # a few lines of a document
CORRECTION_SPAN_S_MAX = 31 * 86_400  # minutes of a month
# Payment of invoices. Days are of 24 hours.
PAYMENT_TERMS_DAYS = 14
PAYMENT_TERMS_DAYS_MAX = 365
PAYMENT_MICROS_MAX = 10**15  # exact in JSON; a billion
PAYMENT_REFERENCE_LENGTH_MAX = 200
PAYMENT_INSTRUCTIONS_LENGTH_MAX = 1_000  # a bank account in words, with room
CHECKOUT_LIFE_S = 3_600  # Stripe allows half an hour to a day
CHECKOUT_LEFT_S_MIN = 300  # a page that ends sooner is replaced: filling it in takes minutes
STRIPE_CONNECT_S = 2.0
STRIPE_ANSWER_S = 4.0
STRIPE_RETRIES = 1
STRIPE_CALLS_AT_ONCE = 8
STRIPE_CALLS_PER_CHECKOUT_MAX = 3  # end the former page, look whether it is paid, open another one
STRIPE_EVENT_AGE_S_MAX = 300  # of its signature: an older one is a replay
STRIPE_SIGNATURE_LENGTH_MAX = 2_000  # three secrets while they are exchanged, with room
DUNNING_REMINDER_DAYS = 3  # after the due date; a transfer on its last day has arrived by then
DUNNING_SECOND_REMINDER_DAYS = 14
DUNNING_FINAL_NOTICE_DAYS = 28
DUNNING_GAP_DAYS = 7  # at least, between two stages
DUNNING_ENDS_DAYS = 120  # bounds what a pass reads: invoices of four months

GARBAGE_OBJECTS = 50_000  # that were made and not freed before a collection: some megabytes

# PostgreSQL: two api processes and a worker stay under the embedded server's 100 connections.
DATABASE_POOL_SIZE = 10
DATABASE_POOL_OVERFLOW = 20
DATABASE_POOL_WAIT_S = 5
STATEMENT_TIMEOUT_MS = 15_000

# The coordinator answers from memory; admission of a group waits for a durable write.
JOIN_TOKEN_TTL_S_DEFAULT = 3_600
JOIN_TOKEN_TTL_S_MAX = 30 * 86_400  # the coordinator's own bound
COORDINATOR_TIMEOUT_S = 10.0
COORDINATOR_FIND_S = 3.0  # bound on the search for the coordinator that leads: an election takes half a second
COORDINATOR_FIND_PAUSE_S = 0.1  # between two attempts, shortened or lengthened at random
AUTHORITY_AGE_S_MAX = 60.0  # the authority hardly ever changes; handles follow a change within a minute
COORDINATOR_FRESHNESS_TIMEOUT_S = 0.5  # bound on a handle's wait for the coordinator; the stored view serves after it

# At start: bound on the wait for dependencies, and interval of its progress messages.
START_WAIT_S = 60.0
START_PROGRESS_S = 3.0

# Live charts.
LIVE_SUBSCRIBERS_MAX = 1_000
LIVE_SUBSCRIBERS_PER_ORGANIZATION_MAX = 100  # ten organizations fill a process; one alone does not
LIVE_QUEUE_EVENTS_MAX = 64  # a minute of samples; a slower reader loses the oldest
LIVE_RECENT_S_MAX = 120  # a chart's width
LIVE_RECENT_ENTRIES = 1_500  # looked through for them, in some milliseconds: two minutes of twelve servers
LIVE_CONNECTION_S_MAX = 3_600
LIVE_KEEPALIVE_S = 10.0
LIVE_WAIT_S = 1.0  # without a sample, viewers look that often whether all is as it was
LIVE_PLACEMENT_POLL_S = 2.0  # one query for each organization with viewers
LIVE_PLACEMENT_GAP_S = 0.25  # between two queries, however often samples are ahead of the placement
LIVE_CALLER_CHECK_S = 30.0  # a session or key that has ended sees no more than this of what follows

# Burst capacity. Servers repeat every grant each 30 s (TELEMETRY_GRANTS_PUBLISHED_S).
# A grant ends after three times that.
GRANTS_AGE_S_MAX = 90
GRANTS_ENTRIES_MAX = 4_000  # newest first; enough for 44 servers with an update each second
GRANTS_RECORDS_PER_ENTRY_MAX = 256  # as servers send (TELEMETRY_RECORDS_PER_ENTRY_MAX)
GRANTS_RECORDS_MAX = 100_000  # in all entries of one answer: half a second's work, in a thread

# Looking into a log. Each reader has a connection to a server.
ENTRIES_MAX = 200
ENTRIES_DEFAULT = 50
ENTRIES_BYTES_MAX = 1 << 20  # a page has one batch more at most
ENTRY_SHOWN_BYTES_MAX = 16 << 10  # a page then has four megabytes at most
ENTRIES_WAIT_S_MAX = 10.0
ENTRIES_TIMEOUT_S = 5.0  # a failover takes less than a second
ENTRIES_READERS_MAX = 200
ENTRIES_READERS_PER_ORGANIZATION_MAX = 20

# The worker.
INGEST_BATCH_ENTRIES = 500
INGEST_BLOCK_MS = 1_000
INGEST_TELL_S = 1.0  # how often servers are told what is stored: as often as they send
INGEST_CLAIM_IDLE_MS = 60_000
INGEST_REJECTED_ROWS_MAX = 10_000  # the newest; people look at some of them
INGEST_REJECTED_CHARS_MAX = 64 << 10  # of one: more than the largest record
INGEST_REASON_CHARS_MAX = 1_000
INGEST_CLOCK_AHEAD_S_MAX = 120  # a server's clock that is further ahead is wrong
# A counter: in bytes, seven years of the fastest network of a server. The sum of a window's counters fits 63 bits.
COUNTER_MAX = 1 << 58
USAGE_STORED_BYTES_MAX = 2 * RETENTION_BYTES_MAX  # retention is exceeded by batches; a day of it fits 63 bits
USAGE_READ_ENTRIES_MAX = 60 * RATE_PER_S_MAX  # far more than a server can send
LATENCY_COUNT_MAX = 1 << 40  # commits of one minute in a bucket
RECORDS_PER_ENTRY_MAX = 20_000
HISTOGRAM_BUCKETS_MAX = 2_048  # 64 powers of two with 32 steps
EVENTS_WAIT_MS = 5_000
EVENTS_VIEWS_AT_ONCE = 8  # a quarter of what the client keeps open
EVENTS_UNSEEN_MAX = 1_000  # groups without a usable answer, asked again with each batch of events
ROLL_INTERVAL_S = 10.0
ROLL_HOURS_MAX = 200  # in one transaction: 36,000 windows at degree 3
ROLL_SETTLE_S = 300  # from an hour's end until it is summed up: by then most of its records are there
PACK_INTERVAL_S = 60.0
PACK_AGE_S = 1_200  # from an hour's end until it is packed: alerts read the latest minutes of all groups
PACK_HOURS_MAX = 100  # in one transaction: 18,000 windows at degree 3
USAGE_DAYS_KEPT = 8  # windows of whole days, besides the present one: minutes of a week can be asked for
RETENTION_INTERVAL_S = 600.0
JUDGED_HOURS_MAX = 100  # read, judged and stored together: 6,000 minutes
RETENTION_GROUPS_MAX = 200  # folded in one transaction: 4,800 judged hours
RECONCILE_INTERVAL_S = 5.0
RECONCILE_AGE_S = 15.0  # longer than a create's call to the coordinator
RECONCILE_GROUPS_MAX = 100
BUDGET_INTERVAL_S = 60.0
BUDGET_ORGANIZATIONS_MAX = 200  # in one read: a thousand groups, so a tenth of a second's work without a pause
MONTH_CLOSE_INTERVAL_S = 300.0
ORGANIZATIONS_AT_ONCE = 4  # in a close: while the database works for one, the worker does for another
ADJUST_INTERVAL_S = 60.0  # a credit note follows a correction within a minute
DUNNING_INTERVAL_S = 3_600.0  # stages are days apart
DUNNING_INVOICES_MAX = 500  # in one read
MONTH_CLOSE_DELAY_S = 6 * 3_600  # most late telemetry is there by then; the rest is billed with the next month
WATCH_INTERVAL_S = 5.0  # twice for each export of metrics
WATCH_SLA_INTERVAL_S = 30.0  # SLA minutes are judged, so twice for each
WATCH_SLA_MINUTES = 5  # long enough that an alert with a short `for` sees a single bad minute
RETRY_DELAY_S_MIN = 0.5
RETRY_DELAY_S_MAX = 10.0

# The public status. The worker samples each minute at least once, and counts a minute once.
STATUS_SAMPLE_S = 30.0
STATUS_SAMPLE_AGE_S_MAX = 180  # an older sample says nothing about now
STATUS_PROBE_S = 5.0  # an API that takes longer to say that it is ready counts as unreachable
STATUS_UNSTORED_MINUTES_MAX = 24 * 60  # kept in the worker's memory while PostgreSQL is away
STATUS_CACHED_S = 10  # one read of the database in that time, however many ask
STATUS_READ_S = 2.0  # a database that takes longer does not answer, for the status
STATUS_DAYS = 90
STATUS_USAGE_AGE_S_OPERATIONAL = 180  # idle groups report once a minute
STATUS_USAGE_AGE_S_DEGRADED = 900
STATUS_INCIDENTS_MAX = 100  # in one answer, open ones first
STATUS_UPDATES_MAX = 200  # the newest of one incident
STATUS_MESSAGE_LENGTH_MAX = 4_000

# Invoices and credit notes as documents.
DOCUMENT_LINES_MAX = 10_000  # a PDF of 400 pages, three seconds of a core; lines.csv has no bound
DOCUMENTS_AT_ONCE = 1  # they share the typefaces and the interpreter, so a second one would make both late
DOCUMENTS_WAITING_MAX = 32  # two minutes of the largest
DOCUMENTS_PER_ORGANIZATION_MAX = 4  # a person opens a few; a loop does not fill the queue for others
SELLER_ADDRESS_LENGTH_MAX = 500  # a postal address, with room

# Probers, who knock at servers from where clients are.
PROBED_SERVERS_MAX = 1_000  # of one prober: a body holds a minute in which none answered
PROBED_FAILURES_MAX = 20  # of a server in a minute: each has two knocks of a second
PROBED_LATE_EARLY_S = 60  # before its hour is judged, a report counts as late: judging takes a while
PROBED_MINUTES_MAX = 60  # in one request, for a prober that was cut off

# Reports.
METRICS_MINUTES_MAX = 24 * 60
USAGE_MINUTES_MAX = 7 * 24 * 60
TELEMETRY_SETTLE_S = 5  # time from a minute's end until its last record has arrived

assert ROTATION_GRACE_S <= ROTATION_GRACE_S_MAX
assert sum(WEBHOOK_PAUSES_S) < WEBHOOK_FAILING_S < EVENTS_KEPT_S, "an event is kept until all attempts are over"
assert ENTRY_BYTES_MAX + 4 <= BATCH_BYTES_MAX, "the largest entry fits a batch"
assert COORDINATOR_TIMEOUT_S * 2 < IDEMPOTENCY_LOCK_S, "a running request never loses its idempotency lock"
assert (
    STRIPE_CALLS_PER_CHECKOUT_MAX * (STRIPE_RETRIES + 1) * (STRIPE_CONNECT_S + STRIPE_ANSWER_S) < IDEMPOTENCY_LOCK_S
), "nor does one that waits for Stripe"
assert 30 * 60 <= CHECKOUT_LIFE_S <= 24 * 3_600, "Stripe's bounds"
assert DUNNING_REMINDER_DAYS < DUNNING_SECOND_REMINDER_DAYS < DUNNING_FINAL_NOTICE_DAYS < DUNNING_ENDS_DAYS
assert CAP_INTERVAL_S < CAP_AHEAD_S, "a cap looks further ahead than until its next look"
assert USAGE_MINUTES_MAX < USAGE_DAYS_KEPT * 24 * 60, "a week of minutes lies within what is kept"
assert USAGE_DAYS_KEPT > 3, "the database keeps three days in any case"
assert STATUS_SAMPLE_S * 2 <= 60, "no minute is left out by a sample that is a little late"
assert COORDINATOR_TIMEOUT_S < RECONCILE_AGE_S, "the reconciler leaves running requests alone"
assert EVENTS_WAIT_MS / 1000 < COORDINATOR_TIMEOUT_S, "a long poll ends before its call's deadline"
assert PACK_AGE_S >= ROLL_SETTLE_S + 3 * WATCH_SLA_MINUTES * 60, "alerts read no packed hour"
