-- Groups with their history, as the worker would have left it: totals and judgements by day, the last days by hour, and a
-- bill for each month that is over.

CREATE TEMP TABLE owners ON COMMIT DROP AS
SELECT o.organization_id, p.id AS project_id, (row_number() OVER (ORDER BY o.created_at, o.organization_id))::int AS place
FROM organizations o JOIN projects p USING (organization_id) WHERE o.organization_id = ANY (%(owners)s);

CREATE TEMP TABLE made ON COMMIT DROP AS
SELECT gen_random_uuid() AS id, owners.organization_id, owners.project_id, number
FROM owners CROSS JOIN LATERAL generate_series(1, (%(counts)s::int[])[array_position(%(owners)s, owners.organization_id)]) AS number;
CREATE INDEX ON made (id);

INSERT INTO groups (id, organization_id, project_id, name, sla, demand, price, hourly_micros, rate_per_s, created_at, status,
                    epoch, replicas, learners, observed_at, active_at)
SELECT made.id, made.organization_id, made.project_id, 'group-' || left(made.id::text, 13), t.sla, t.demand, t.price, t.hourly_micros,
       t.rate_per_s, to_timestamp(%(begin_s)s), 'active', t.epoch, t.replicas, t.learners, now(), to_timestamp(%(begin_s)s)
FROM made, groups t WHERE t.id = %(template)s;

CREATE TEMP TABLE days ON COMMIT DROP AS
SELECT day_s, (day_s - %(begin_s)s) / 86400 + 1 AS number FROM generate_series(%(begin_s)s, %(today_s)s, 86400) AS day_s;

INSERT INTO usage_log_days (organization_id, group_id, log_epoch, day_s, committed_entries, committed_bytes)
SELECT organization_id, id, 0, day_s, days.number * 1000000::bigint, days.number * 64000000::bigint FROM made, days;

INSERT INTO usage_days (organization_id, group_id, day_s, read_entries, stored_byte_minutes)
SELECT organization_id, id, day_s, 500000, 1440 * 100000000::bigint FROM made, days;

INSERT INTO settled_times (until_s)
SELECT least(extract(epoch FROM month + interval '1 month')::bigint, %(hours_from_s)s)
FROM generate_series(date_trunc('month', to_timestamp(%(begin_s)s) AT TIME ZONE 'UTC'),
                     to_timestamp(%(hours_from_s)s - 1) AT TIME ZONE 'UTC', interval '1 month') AS month
ON CONFLICT DO NOTHING;

CREATE TEMP TABLE settled ON COMMIT DROP AS
SELECT until_s, (until_s - %(begin_s)s) / 86400 AS number FROM settled_times WHERE until_s > %(begin_s)s;

INSERT INTO settled_totals (organization_id, group_id, until_s, read_entries, stored_byte_minutes)
SELECT organization_id, id, until_s, settled.number * 500000, settled.number * 1440 * 100000000::bigint FROM made, settled;

INSERT INTO settled_logs (organization_id, group_id, log_epoch, until_s, committed_entries, committed_bytes)
SELECT organization_id, id, 0, until_s, settled.number * 1000000::bigint, settled.number * 64000000::bigint FROM made, settled;

INSERT INTO sla_days (organization_id, group_id, day_s, minutes, elapsed_ms, active_ms, available_minutes,
                      unthrottled_minutes, timely_minutes, latency_us)
SELECT organization_id, id, day_s, 1440, 86400000, 86400000, 1440, 1440, 1440, %(latency)s::jsonb
FROM made, days WHERE day_s < %(hours_from_s)s;

CREATE TEMP TABLE hours ON COMMIT DROP AS
SELECT hour_s FROM generate_series(%(hours_from_s)s, %(hours_to_s)s - 3600, 3600) AS hour_s;

INSERT INTO usage_hours (organization_id, group_id, hour_s, read_entries, stored_byte_minutes, packed)
SELECT organization_id, id, hour_s, 500000 / 24, 60 * 100000000::bigint, true FROM made, hours;

INSERT INTO sla_hours (organization_id, group_id, hour_s, minutes, elapsed_ms, active_ms, available_minutes,
                       unthrottled_minutes, timely_minutes, latency_us)
SELECT organization_id, id, hour_s, 60, 3600000, 3600000, 60, 60, 60, %(latency)s::jsonb FROM made, hours;

CREATE TEMP TABLE months ON COMMIT DROP AS
SELECT begin_at, begin_at + interval '1 month' AS end_at
FROM generate_series(date_trunc('month', to_timestamp(%(begin_s)s)), %(month)s - interval '1 day', interval '1 month') AS begin_at;

INSERT INTO invoices (id, organization_id, kind, sequence, number, period_start, period_end, currency, total_micros, issued_at, series)
SELECT gen_random_uuid(), organization_id, 'invoice', base.last + row_number() OVER (ORDER BY begin_at, organization_id),
       organization_id || ' ' || begin_at, begin_at, end_at, 'USD', 0, end_at, 'FILLED'
FROM owners, months, (SELECT coalesce(max(sequence), 0) AS last FROM invoices WHERE series = 'FILLED') AS base
ON CONFLICT DO NOTHING;

INSERT INTO invoice_lines (organization_id, invoice_id, position, group_id, group_name, kind, description, quantity, unit,
                           price_quantity, unit_price_micros, amount_micros)
SELECT made.organization_id, i.id,
       coalesce((SELECT max(position) FROM invoice_lines WHERE invoice_id = i.id), 0)
         + row_number() OVER (PARTITION BY i.id ORDER BY made.id, kinds.kind),
       made.id, 'group', kinds.kind, kinds.kind, kinds.quantity, kinds.unit, 1000000, 1, 1
FROM invoices i JOIN made USING (organization_id),
     (VALUES ('reservation', 2592000::bigint, 'second'), ('appends', 30000000, 'entry'), ('reads', 15000000, 'entry'),
             ('storage', 259200000, 'megabyte_second')) AS kinds (kind, quantity, unit)
WHERE i.series = 'FILLED';

INSERT INTO billed_quantities (organization_id, group_id, kind, quantity)
SELECT l.organization_id, l.group_id, l.kind, sum(l.quantity) FROM invoice_lines l JOIN made ON made.id = l.group_id GROUP BY 1, 2, 3;

UPDATE invoices SET total_micros = total_micros + 4 * (SELECT count(*) FROM made WHERE made.organization_id = invoices.organization_id)
WHERE series = 'FILLED' AND organization_id = ANY (%(owners)s);

UPDATE organizations SET closed_until = %(month)s WHERE organization_id = ANY (%(owners)s);
