"""A first-time reader can understand every panel."""

from quorate_observe import alerts, dashboards
from quorate_observe.dashboards.panel import Dashboard, Figure, Graph, Query, as_json


def test_every_panel_says_what_it_shows_and_what_to_do() -> None:
    for dashboard in dashboards.ALL:
        for panel in (*dashboard.figures, *dashboard.graphs):
            assert len(panel.description.split()) >= 6, f"{dashboard.title}, {panel.title}: say what to do"
            assert panel.description.endswith((".", "draining.")), panel.title


def test_runbooks_that_panels_name_exist() -> None:
    names = {alert.name for alert in alerts.load()}
    named = [
        word.strip(".,:")
        for dashboard in dashboards.ALL
        for panel in (*dashboard.figures, *dashboard.graphs)
        for word in panel.description.split()
        if word.startswith("Quorate")
    ]
    assert len(named) > 20
    assert set(named) <= names


def test_panels_do_not_overlap() -> None:
    for dashboard in dashboards.ALL:
        taken: set[tuple[int, int]] = set()
        for panel in as_json(dashboard)["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells


def test_units_and_thresholds_are_in_the_json() -> None:
    figure = Figure("Slow", "s", "A figure.", "a", red_from=2)
    graph = Graph("Rate", "ops", "A graph.", (Query("b", "{{x}}"), Query("c")))
    first, second = as_json(Dashboard("d", "t", "D.", (figure,), (graph,)))["panels"]
    assert first["fieldConfig"]["defaults"]["unit"] == "s"
    assert first["fieldConfig"]["defaults"]["thresholds"]["steps"][1] == {"color": "red", "value": 2}
    assert [target["expr"] for target in second["targets"]] == ["b", "c"]
    assert [target["refId"] for target in second["targets"]] == ["A", "B"]
    assert second["id"] != first["id"]


def test_identifiers_are_unique() -> None:
    assert len({as_json(dashboard)["uid"] for dashboard in dashboards.ALL}) == len(dashboards.ALL)
