"""Grafana's dashboards: `dashboards/*.json`, written from the panels here, for import or provisioning."""

from __future__ import annotations

import json
from pathlib import Path

from quorate_observe.dashboards import api, fleet, groups, money
from quorate_observe.dashboards.panel import Dashboard, as_json
from quorate_observe.metrics import FOLDER as OBSERVABILITY

FOLDER = OBSERVABILITY / "dashboards"
ALL: tuple[Dashboard, ...] = (fleet.DASHBOARD, groups.DASHBOARD, money.DASHBOARD, api.DASHBOARD)


def generated() -> dict[Path, str]:
    return {
        FOLDER / f"{each.file}.json": json.dumps(as_json(each), indent=2, ensure_ascii=False) + "\n" for each in ALL
    }
