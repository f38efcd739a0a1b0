"""API and worker: requests, refusals, and what they depend on."""

from quorate_observe.dashboards.panel import Dashboard, Figure, Graph, Query

_BUCKETS = "http_server_request_duration_seconds_bucket"
_COUNT = "http_server_request_duration_seconds_count"
_NOT_LIVE = '{http_route!~".*/live"}'


def _quantile(quantile: str, by: str = "le") -> str:
    return f"histogram_quantile({quantile}, sum by ({by}) (rate({_BUCKETS}{_NOT_LIVE}[5m])))"


DASHBOARD = Dashboard(
    "api",
    "API and worker",
    "Requests, refusals, and what API and worker depend on.",
    figures=(
        Figure("Requests", "ops", "Requests a second. It only informs.", f"sum(rate({_COUNT}[5m]))"),
        Figure(
            "Errors of ours", "percentunit",
            "Share of answers that are 5xx. Above 2 %: runbook of QuorateApiErrors.",
            f'(sum(rate({_COUNT}{{http_response_status_code=~"5.."}}[5m])) or vector(0)) / sum(rate({_COUNT}[5m]))',
            red_from=0.02,
        ),
        Figure(
            "p95", "s", "Duration of requests, live charts aside. Above a second: runbook of QuorateApiSlow.",
            _quantile("0.95"), red_from=1,
        ),
        Figure(
            "Dependencies down", "none",
            "PostgreSQL, Redis or the coordinator as seen by API and worker. Any: runbook of QuorateDependencyDown.",
            "count(quorate_dependency_up == 0) or vector(0)", red_from=1,
        ),
        Figure(
            "Connections in use", "percentunit",
            "Of the connections to PostgreSQL that a process may open. Above 80 %: runbook of "
            "QuorateDatabaseConnectionsShort.",
            'max(quorate_database_connections{quorate_state="used"} / ignoring (quorate_state) '
            'quorate_database_connections{quorate_state="allowed"})',
            red_from=0.8,
        ),
        Figure(
            "Worker failures, 10 min", "none",
            "Times that a task of the worker could not go on. More than 20: runbook of QuorateWorkerTaskFailing.",
            "sum(increase(quorate_worker_task_failures_total[10m]))", red_from=21,
        ),
    ),
    graphs=(
        Graph(
            "Requests by status", "ops",
            "4xx are the callers', 5xx ours: runbook of QuorateApiErrors.",
            (Query(f"sum by (http_response_status_code) (rate({_COUNT}[5m]))", "{{http_response_status_code}}"),),
            stacked=True,
        ),
        Graph(
            "Duration", "s",
            "Live charts aside. Signing in takes half a second by design. Slower than usual: runbook of "
            "QuorateApiSlow.",
            tuple(Query(_quantile(q), f"p{q[2:]}") for q in ("0.50", "0.95", "0.99")),
        ),
        Graph(
            "Refusals", "ops",
            "Answers that are problems, by code; each has a page in operating/errors. Many rate_limited from one "
            "caller are theirs; many admission_refused mean that the fleet is full: runbook of QuorateCapacityScarce.",
            (Query("sum by (error_type) (rate(quorate_api_refusals_total[5m])) > 0", "{{error_type}}"),),
        ),
        Graph(
            "Slowest routes", "s",
            "p95 of the five slowest routes. One alone: look at its query; all: runbook of QuorateApiSlow.",
            (Query(f"topk(5, {_quantile('0.95', 'le, http_route')})", "{{http_route}}"),),
        ),
        Graph(
            "Dependencies", "s",
            "How long the last probe of each took. A line that ends or stands at 2 s: runbook of "
            "QuorateDependencyDown.",
            (Query("quorate_dependency_duration_seconds", "{{job}} → {{quorate_dependency}}"),),
        ),
        Graph(
            "Connections to PostgreSQL", "short",
            "In use, by process. Near what is allowed requests wait: runbook of QuorateDatabaseConnectionsShort.",
            (Query('quorate_database_connections{quorate_state="used"}', "{{job}} {{instance}}"),),
        ),
        Graph(
            "Worker failures by task", "short",
            "In the ten minutes before. Short ones mend themselves; what lasts: runbook of QuorateWorkerTaskFailing.",
            (
                Query(
                    "sum by (quorate_task) (increase(quorate_worker_task_failures_total[10m]))", "{{quorate_task}}"
                ),
            ),
        ),
        Graph(
            "CPU", "percentunit",
            "Cores in use. The API runs on one: near 1 start another.",
            (Query('rate(process_cpu_time_seconds_total{job=~"quorate-(api|worker|coordinator)"}[5m])', "{{job}}"),),
        ),
    ),
)  # fmt: skip
