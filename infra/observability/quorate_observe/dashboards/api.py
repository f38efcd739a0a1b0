"""API and worker: requests, refusals and dependencies."""

from quorate_observe.dashboards.panel import Dashboard, Figure, Graph, Query

_BUCKETS = "http_server_request_duration_seconds_bucket"
_COUNT = "http_server_request_duration_seconds_count"
_NOT_LIVE = '{http_route!~".*/live"}'


def _quantile(quantile: str, by: str = "le") -> str:
    return f"histogram_quantile({quantile}, sum by ({by}) (rate({_BUCKETS}{_NOT_LIVE}[5m])))"


DASHBOARD = Dashboard(
    "api",
    "API and worker",
    "Requests, refusals and dependencies of API and worker.",
    figures=(
        Figure("Requests", "ops", "Requests a second. It only informs.", f"sum(rate({_COUNT}[5m]))"),
        Figure(
            "Internal errors", "percentunit",
            "Share of 5xx among the answers. Above 2 %: runbook of QuorateApiErrors.",
            f'(sum(rate({_COUNT}{{http_response_status_code=~"5.."}}[5m])) or vector(0)) / sum(rate({_COUNT}[5m]))',
            red_from=0.02,
        ),
        Figure(
            "p95", "s", "Duration of requests, without live charts. Above a second: runbook of QuorateApiSlow.",
            _quantile("0.95"), red_from=1,
        ),
        Figure(
            "Dependencies down", "none",
            "PostgreSQL, Redis or the coordinator as seen by API and worker. Any: runbook of QuorateDependencyDown.",
            "count(quorate_dependency_up == 0) or vector(0)", red_from=1,
        ),
        Figure(
            "Connections in use", "percentunit",
            "Used share of the connections to PostgreSQL that a process may open. Above 80 %: runbook of "
            "QuorateDatabaseConnectionsShort.",
            'max(quorate_database_connections{quorate_state="used"} / ignoring (quorate_state) '
            'quorate_database_connections{quorate_state="allowed"})',
            red_from=0.8,
        ),
        Figure(
            "Worker failures, 10 min", "none",
            "Failures of the worker's tasks. More than 20: runbook of QuorateWorkerTaskFailing.",
            "sum(increase(quorate_worker_task_failures_total[10m]))", red_from=21,
        ),
    ),
    graphs=(
        Graph(
            "Requests by status", "ops",
            "4xx are the callers' errors, 5xx internal ones: runbook of QuorateApiErrors.",
            (Query(f"sum by (http_response_status_code) (rate({_COUNT}[5m]))", "{{http_response_status_code}}"),),
            stacked=True,
        ),
        Graph(
            "Duration", "s",
            "Without live charts. Signing in takes half a second by design. Slower than usual: runbook of "
            "QuorateApiSlow.",
            tuple(Query(_quantile(q), f"p{q[2:]}") for q in ("0.50", "0.95", "0.99")),
        ),
        Graph(
            "Refusals", "ops",
            "Problems by code; each code has a page in operating/errors. Many rate_limited from one caller are that "
            "caller's fault. Many admission_refused mean a full fleet: runbook of QuorateCapacityScarce.",
            (Query("sum by (error_type) (rate(quorate_api_refusals_total[5m])) > 0", "{{error_type}}"),),
        ),
        Graph(
            "Slowest routes", "s",
            "p95 of the five slowest routes. If one is slow, look at its query; if all are, see the runbook of "
            "QuorateApiSlow.",
            (Query(f"topk(5, {_quantile('0.95', 'le, http_route')})", "{{http_route}}"),),
        ),
        Graph(
            "Dependencies", "s",
            "Duration of each dependency's last probe. A line that ends or stays at 2 s: runbook of "
            "QuorateDependencyDown.",
            (Query("quorate_dependency_duration_seconds", "{{job}} → {{quorate_dependency}}"),),
        ),
        Graph(
            "Connections to PostgreSQL", "short",
            "Used connections, by process. Near the maximum requests wait: runbook of QuorateDatabaseConnectionsShort.",
            (Query('quorate_database_connections{quorate_state="used"}', "{{job}} {{instance}}"),),
        ),
        Graph(
            "Worker failures by task", "short",
            "Failures in the last ten minutes. Short ones mend themselves. Lasting ones: runbook of "
            "QuorateWorkerTaskFailing.",
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
