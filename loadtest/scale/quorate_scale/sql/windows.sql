-- A window for every minute from %(from_s)s to %(to_s)s of these groups, each of a server that is the sole replica.
INSERT INTO usage_windows (organization_id, group_id, server_id, incarnation, epoch, window_start_s, role, committed_entries,
  committed_bytes, first_committed_entries, first_committed_bytes, offered_entries, throttled_entries,
  throttled_within_sla_entries, refused_entries, read_entries, read_bytes, active_ms, paused_ms, stored_bytes, latency_count,
  latency_us, log_epoch, within_sla_entries, from_ms, to_ms)
SELECT organization_id, groups.id, 1, 'filled', 1, at_s, 'sole', entries, 64 * entries, entries - 694, 64 * (entries - 694),
  694, 0, 0, 0, 347, 22208, 60000, 0, 100000000, 694, %(latency)s::jsonb, 0, 694, at_s * 1000, at_s * 1000 + 60000
FROM groups, generate_series(%(from_s)s::bigint, %(to_s)s::bigint, 60) AS at_s,
  LATERAL (SELECT (at_s - extract(epoch FROM groups.active_at)::bigint) / 86400 * 1000000 + (at_s %% 86400) / 60 * 694 + 694
    AS entries) AS counted
WHERE groups.id = ANY (%(groups)s::uuid[])
