"""The servers: their states, their capacity, their work."""

from quorate_observe.dashboards.panel import Dashboard, Figure, Graph, Query

DASHBOARD = Dashboard(
    "fleet",
    "fleet",
    "The servers: their states, their capacity, their work.",
    figures=(
        Figure(
            "Servers", "none",
            "Living servers, by the coordinator. Without a value see the runbook of QuorateFleetUnseen.",
            'sum(max by (quorate_state) (quorate_fleet_servers{quorate_state!="failed"}))',
        ),
        Figure(
            "Failed", "none",
            "Servers that failed and are not back. Bring them back with their disks, or remove them from the fleet: "
            "runbook of QuorateServerFailed.",
            'max(quorate_fleet_servers{quorate_state="failed"})', red_from=1,
        ),
        Figure(
            "Disk trouble", "none",
            "Servers that cannot write to their disks. Act at once: runbook of QuorateServerStorageFault.",
            'max(quorate_fleet_servers{quorate_state="storage_fault"})', red_from=1,
        ),
        Figure(
            "Slow", "none",
            "Slow servers that delay groups. Look at their machines: runbook of QuorateServerSlow.",
            'max(quorate_fleet_servers{quorate_state="slow"})', red_from=1,
        ),
        Figure(
            "Draining", "none",
            "Servers under an operator's drain. Nothing to do, unless it lasts: operating/draining.",
            'max(quorate_fleet_servers{quorate_state="draining"})',
        ),
        Figure(
            "Promised", "percentunit",
            "Promised share of the scarcest resource. Above 85 % add servers: runbook of "
            "QuorateCapacityScarce.",
            "max(quorate_fleet_promised_ratio)", red_from=0.85,
        ),
    ),
    graphs=(
        Graph(
            "Promised by resource", "percentunit",
            "Promised share of the fleet's promisable capacity. The highest line decides the next refusals; add "
            "servers that have that resource.",
            (Query("max by (quorate_resource) (quorate_fleet_promised_ratio)", "{{quorate_resource}}"),),
        ),
        Graph(
            "CPU", "percentunit",
            "Cores in use by each server process; 1 is a whole core. One far above the others has busy heads. Do "
            "nothing while it is below its machine's capacity; else measure the cost profile again.",
            (Query('rate(process_cpu_time_seconds_total{job="quorate-replica"}[2m])', "{{instance}}"),),
        ),
        Graph(
            "Memory", "bytes",
            "Resident memory of each process. It grows with groups and in-memory logs, then stays. If it grows for "
            "days without either, keep the graph and call for help.",
            (Query("process_memory_usage_bytes", "{{job}} {{instance}}"),),
        ),
        Graph(
            "Replicas by server", "short",
            "Replicas on each server. An empty one is new, draining or slow; nothing to do unless it stays empty.",
            (Query("sum by (instance) (quorate_groups)", "{{instance}}"),),
        ),
        Graph(
            "Links", "short",
            "Open links to other servers. A line that falls to 0 while others do not: the server is isolated; look at"
            " its network.",
            (Query("quorate_links_up", "{{instance}}"),),
        ),
        Graph(
            "Groups in quarantine", "short",
            "Groups whose replica on a server an assertion stopped. The others go on: runbook of "
            "QuorateGroupQuarantined.",
            (Query("quorate_groups_quarantined", "{{instance}}"),),
        ),
        Graph(
            "Clocks in doubt", "short",
            "1 while the clocks of a server and of the coordinator differ. Set the wrong one right: runbook of "
            "QuorateClockDoubted.",
            (Query("quorate_clock_doubted", "{{instance}}"),),
        ),
        Graph(
            "Journal", "Bps",
            "Bytes written to the journal by each server. Above its disk's speed appends wait: compare with the "
            "storage that it announces.",
            (Query("rate(quorate_journal_bytes_total[2m])", "{{instance}}"),),
        ),
        Graph(
            "Syncs", "ops",
            "Writes to stable storage a second. Many appends share one. Few syncs together with slow commits mean a "
            "slow disk: runbook of QuorateCommitSlow.",
            (Query("rate(quorate_journal_syncs_total[2m])", "{{instance}}"),),
        ),
        Graph(
            "Spans dropped", "ops",
            "Trace spans dropped because too many waited. If it stays above 0, the collector is slow, or sampling too"
            " high; sample less at the clients.",
            (Query("rate(quorate_spans_dropped_total[2m])", "{{instance}}"),),
        ),
    ),
)  # fmt: skip
