"""Customers' groups, all together. The portal shows a single group's numbers to its owner."""

from quorate_observe.dashboards.panel import Dashboard, Figure, Graph, Query


def _status(title: str, status: str, description: str, *, red: bool) -> Figure:
    expression = f'max(quorate_fleet_groups{{quorate_status="{status}"}})'
    return Figure(title, "none", description, expression, red_from=1 if red else None)


def _quantile(quantile: str, by: str = "le") -> str:
    return f"histogram_quantile({quantile}, sum by ({by}) (rate(quorate_commit_duration_seconds_bucket[2m])))"


DASHBOARD = Dashboard(
    "groups",
    "groups and appends",
    "Customers' groups and their appends, all together. A single group's numbers are in the portal.",
    figures=(
        _status("Active", "active", "Groups with all their replicas. Nothing to do.", red=False),
        _status(
            "Degraded", "degraded",
            "Groups that serve without a replica. For ten minutes or more: runbook of QuorateGroupDegraded.",
            red=False,
        ),
        _status(
            "Paused", "paused", "Groups that take no appends. Act at once: runbook of QuorateGroupPaused.", red=True
        ),
        _status("Lost", "lost", "Groups whose log is gone. Touch no disk; runbook of QuorateGroupLost.", red=True),
        Figure(
            "Committed", "ops", "Committed entries a second, over the whole fleet. It only informs.",
            "sum(rate(quorate_entries_committed_total[2m]))",
        ),
        Figure(
            "Commit p99", "s",
            "Time from an append's arrival at its head to its commitment, p99 over all groups. Above 50 ms: runbook of "
            "QuorateCommitSlow.",
            _quantile("0.99"), red_from=0.05,
        ),
    ),
    graphs=(
        Graph(
            "Entries", "ops",
            "Entries that clients offered, and the committed, throttled (budget spent) and refused ones. Customers "
            "can mend throttling; for refused ones see the runbook of QuorateEntriesRefused.",
            (
                Query("sum(rate(quorate_entries_total[2m]))", "offered"),
                Query("sum(rate(quorate_entries_committed_total[2m]))", "committed"),
                Query("sum(rate(quorate_entries_throttled_total[2m]))", "throttled"),
                Query("sum(rate(quorate_entries_refused_total[2m]))", "refused"),
            ),
        ),
        Graph(
            "Reserved reads", "ops",
            "Entries that reservations for reads let pass, and those of them that left late. Late ones cost credits: "
            "find the server's busiest resource on Fleet.",
            (
                Query("sum(rate(quorate_reads_owed_total[2m]))", "owed"),
                Query("sum(rate(quorate_reads_late_total[2m]))", "late"),
            ),
        ),
        Graph(
            "Commit latency", "s",
            "Over all groups; in-memory ones promise 10 ms at p99, persistent ones 50 ms. If p50 is low and p99 high, "
            "look for one slow server on the next graph.",
            tuple(Query(_quantile(q), f"p{q[2:]}") for q in ("0.50", "0.99", "0.999")),
        ),
        Graph(
            "Commit latency by server", "s",
            "p99 by the server that the heads are on. One above the others: treat it as slow, runbook of "
            "QuorateServerSlow.",
            (Query(_quantile("0.99", "le, instance"), "{{instance}}"),),
        ),
        Graph(
            "Bytes", "Bps",
            "Bytes of entries offered, by server. It informs; CPU and Journal say whether it is too much.",
            (Query("rate(quorate_bytes_total[2m])", "{{instance}}"),), stacked=True,
        ),
        Graph(
            "Entries in an append", "short",
            "Mean size of a batch. Near 1 at high rates, clients could save CPU by batching; advise their owners.",
            (Query("sum(rate(quorate_entries_total[2m])) / sum(rate(quorate_appends_total[2m]))", "entries"),),
        ),
        Graph(
            "Refused", "ops",
            "Entries refused for other reasons than the budget, by server. Many on one: its log says why; runbook of "
            "QuorateEntriesRefused.",
            (Query("rate(quorate_entries_refused_total[2m])", "{{instance}}"),),
        ),
        Graph(
            "Replicas by role", "short",
            "Heads, followers, tails and learners. Learners that stay are catching up slowly: runbook of "
            "QuorateGroupDegraded.",
            (Query("sum by (quorate_role) (quorate_groups)", "{{quorate_role}}"),), stacked=True,
        ),
        Graph(
            "Burst capacity", "ops",
            "Requests that passed above their groups' SLAs on burst capacity, and the current grants. It only "
            "informs: burst capacity is not promised.",
            (
                Query("sum(rate(quorate_requests_lent_total[2m]))", "used"),
                Query("sum(quorate_lending_granted_per_second)", "may be used"),
            ),
        ),
        Graph(
            "Grants reclaimed", "ops",
            "Grants that were reclaimed for an owner of the capacity. Many for long, together with bad minutes of "
            "throughput: grant less burst capacity, and keep the graph.",
            (Query("sum(rate(quorate_lending_recalls_total[2m]))", "grants"),),
        ),
        Graph(
            "Groups by status", "short",
            "All groups. Every other status than active and provisioning has an alert with a runbook.",
            (Query("max by (quorate_status) (quorate_fleet_groups)", "{{quorate_status}}"),), stacked=True,
        ),
    ),
)  # fmt: skip
