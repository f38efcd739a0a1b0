import pytest

from quorate_papers import sharing, sharing_reference


def levels(made: dict[str, object], rates: list[float]) -> dict[str, float]:
    free = sharing_reference.free_amounts(made)
    found = {}
    for tenant, rate in zip(made["tenants"], rates, strict=True):
        uses = [
            (place, r, cost)
            for place, costs in zip(tenant["placement"], tenant["request"], strict=True)
            for r, cost in enumerate(costs)
        ]
        found[tenant["id"]] = rate * max(cost / free[place, r] for place, r, cost in uses if cost)
    return found


def test_the_reference_gives_every_tenant_its_wish_or_a_resource_of_which_nobody_has_more() -> None:
    for seed in range(1, 6):
        made = sharing.instance(12, 200, seed)
        rates = sharing_reference.max_min(made)
        level, free = levels(made, rates), sharing_reference.free_amounts(made)
        used = dict.fromkeys(free, 0.0)
        users: dict[object, list[str]] = {place: [] for place in free}
        for tenant, rate in zip(made["tenants"], rates, strict=True):
            for place, costs in zip(tenant["placement"], tenant["request"], strict=True):
                for r, cost in enumerate(costs):
                    used[place, r] += cost * rate
                    if cost:
                        users[place, r].append(tenant["id"])
        assert all(used[place] <= free[place] * (1 + 1e-9) for place in free)
        full = {place for place in free if used[place] >= free[place] * (1 - 1e-9)}
        assert full
        for tenant, rate in zip(made["tenants"], rates, strict=True):
            extra = tenant["extra"]
            if extra == "none":
                assert rate == 0
                continue
            if isinstance(extra, dict) and rate >= extra["per_s"] * (1 - 1e-9):
                continue
            own = level[tenant["id"]]
            bottlenecks = [place for place in full if tenant["id"] in users[place]]
            assert any(all(level[other] <= own * (1 + 1e-6) for other in users[place]) for place in bottlenecks)


def test_one_who_computes_for_all_comes_as_close_to_the_reference_as_whole_requests_do() -> None:
    fleet, level = sharing.compared(60, 1, ("fleet", "level"), repeat=1)
    assert 0.999 <= fleet.efficiency <= 1.0001
    assert fleet.worst >= 0.99
    assert fleet.below_99 == 0
    assert fleet.messages_of_a_server < level.messages_of_a_server
    assert level.efficiency < fleet.efficiency


def test_a_second_round_of_all_drf_gives_out_what_the_first_left() -> None:
    one, two = sharing.rounds_of_all_drf(1)
    assert 0.5 < one < two <= 1.0001


def test_figures_take_the_worst_instance() -> None:
    def one(algorithm: str, servers: int, efficiency: float, ms: float) -> sharing.Shared:
        return sharing.Shared(algorithm, servers, 1, efficiency, 0.991, 0.0, 60.0, ms)

    found = [one("fleet", 1_000, 0.999, 20), one("fleet", 1_000, 0.99, 60), one("level", 1_000, 0.9, 9)]
    measured = sharing.Measured([*found, one("fleet", 10_000, 0.9, 300)], [(0.9, 0.94), (0.9, 0.96)])
    made = {figure.name: figure for figure in sharing.figures(measured)}
    assert made["sharing_efficiency_1000_servers"].met is False
    assert made["sharing_1000_servers_ms"].value == 60
    assert made["sharing_worst_tenant_1000_servers"].met
    assert made["alldrf_two_rounds_efficiency"].value == pytest.approx(0.95)
