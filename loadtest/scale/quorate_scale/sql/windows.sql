-- The windows of these groups for every minute from %(from_s)s to %(to_s)s, on three servers each. No two minutes are alike.
CREATE TEMP TABLE minutes ON COMMIT DROP AS
SELECT g.organization_id, g.id, at_s, more, (random() * more)::bigint AS reads,
  (at_s - extract(epoch FROM g.active_at)::bigint) / 86400 * 1000000 + sum(more) OVER (PARTITION BY g.id, at_s / 86400 ORDER BY at_s) AS entries,
  latency
FROM groups g, generate_series(%(from_s)s::bigint, %(to_s)s::bigint, 60) AS at_s,
  LATERAL (SELECT 500 + (random() * 190 + at_s %% 2)::bigint AS more) AS counted,
  LATERAL (SELECT jsonb_object_agg(bucket::text, 1 + (random() * 90)::int) AS latency
           FROM generate_series(250 + at_s %% 3, 261) AS bucket) AS measured
WHERE g.id = ANY (%(groups)s::uuid[]);

INSERT INTO usage_windows (organization_id, group_id, server_id, incarnation, epoch, window_start_s, role, committed_entries,
  committed_bytes, first_committed_entries, first_committed_bytes, offered_entries, throttled_entries,
  throttled_within_sla_entries, refused_entries, read_entries, read_bytes, active_ms, paused_ms, stored_bytes, latency_count,
  latency_us, log_epoch, within_sla_entries, from_ms, to_ms)
SELECT organization_id, id, place, 'filled-' || place, 1, at_s, (ARRAY['head', 'follower', 'tail'])[place], entries, 64 * entries,
  entries - more, 64 * (entries - more), more * heads, 0, 0, 0, CASE WHEN place = 3 THEN reads ELSE 0 END,
  CASE WHEN place = 3 THEN 64 * reads ELSE 0 END, 60000 * heads, 0, 100000000 + entries %% 1000, 694 * heads,
  CASE WHEN place = 1 THEN latency ELSE '{}' END, 0, more * heads, at_s * 1000 * heads, (at_s + 60) * 1000 * heads
FROM minutes, generate_series(1, 3) AS place, LATERAL (SELECT (place = 1)::int AS heads) AS role;

UPDATE usage_hours SET packed = false WHERE group_id = ANY (%(groups)s::uuid[]) AND hour_s >= %(from_s)s
