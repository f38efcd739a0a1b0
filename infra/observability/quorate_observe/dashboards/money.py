"""SLAs and money: missed SLAs, bills, credits, and the backlog of usage."""

from quorate_observe.dashboards.panel import Dashboard, Figure, Graph, Query

_ISSUED = 'max(quorate_billing_amount_total{quorate_document="%s"})'

DASHBOARD = Dashboard(
    "money",
    "SLAs and money",
    "Missed SLAs, bills, credits, and the backlog of usage.",
    figures=(
        Figure(
            "Groups with bad minutes", "none",
            "Groups that missed the worst clause in the last five judged minutes. Find out why: "
            "runbook of QuorateSlaMissed.",
            "max(quorate_sla_groups_bad)", red_from=1,
        ),
        Figure(
            "Backlog", "none",
            "Entries of the usage stream that are not stored yet. Above 1 000 for ten minutes: runbook of "
            "QuorateUsageBacklog.",
            "max(quorate_usage_backlog)", red_from=1000,
        ),
        Figure(
            "Usage put aside, 1 h", "none",
            "Entries that the worker could not read. Each is a fault: runbook of QuorateUsageRejected.",
            "sum(increase(quorate_usage_rejected_total[1h]))", red_from=1,
        ),
        Figure(
            "Months not closed, 1 h", "none",
            "Failures to issue an organization's invoice. If one stays: runbook of QuorateMonthNotClosed.",
            "sum(increase(quorate_billing_close_failures_total[1h]))", red_from=1,
        ),
        Figure("Invoiced", "currencyUSD", "Sum of all invoices ever issued. It only informs.", _ISSUED % "invoice"),
        Figure(
            "Credits", "currencyUSD",
            "Sum of all credits for missed SLAs ever issued. When it grows, mend the cause: runbook "
            "of QuorateCreditsIssued.",
            _ISSUED % "credit_note",
        ),
    ),
    graphs=(
        Graph(
            "Groups with bad minutes, by clause", "short",
            "Groups that missed availability, throughput or latency in the last five judged minutes. Each line has "
            "its own causes: runbook of QuorateSlaMissed.",
            (Query("max by (quorate_clause) (quorate_sla_groups_bad)", "{{quorate_clause}}"),),
        ),
        Graph(
            "Backlog of usage", "short",
            "Waiting entries. A saw tooth is normal. An endless rise: runbook of "
            "QuorateUsageBacklog.",
            (Query("max(quorate_usage_backlog)", "entries"),),
        ),
        Graph(
            "Issued per day", "currencyUSD",
            "Invoices and credits issued in the last day. A step at the month's close is normal; credits have the "
            "runbook of QuorateCreditsIssued.",
            (Query("max by (quorate_document) (increase(quorate_billing_amount_total[1d]))", "{{quorate_document}}"),),
        ),
        Graph(
            "Entries committed per hour", "short",
            "Appends to be billed. It should follow the sum of the customers' invoices; if it does not, call "
            "for help.",
            (Query("sum(increase(quorate_entries_committed_total[1h]))", "entries"),),
        ),
    ),
)  # fmt: skip
