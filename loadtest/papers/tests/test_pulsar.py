from quorate_papers import pulsar


def test_a_datacenter_is_that_of_the_paper() -> None:
    instance = pulsar.datacenter(24_000, 1.0, 1)
    assert len(instance["flows"]) == 24_000
    assert len(instance["capacity"]) == 4_200
    servers = 2_000
    to_appliances = sum(flow["demand"][1][0] >= 2 * servers for flow in instance["flows"])
    assert 0.42 < to_appliances / 24_000 < 0.46
    assert all(flow["demand"][0][0] < servers <= flow["demand"][1][0] for flow in instance["flows"])
    assert instance == pulsar.datacenter(24_000, 1.0, 1) != pulsar.datacenter(24_000, 1.0, 2)


def test_the_figures_are_of_the_largest_datacenter() -> None:
    def points(policy: str, ms: float) -> list[pulsar.Point]:
        shape = [(vms, active) for vms in pulsar.SIZES for active in pulsar.ACTIVE]
        return [pulsar.Point(policy, vms, active, vms, 9, ms if active == 1 else 1e9, 3) for vms, active in shape]

    drf, hierarchical = pulsar.figures([*points("drf", 30), *points("hierarchical-drf", 300)])
    assert (drf.name, drf.value, drf.met) == ("drf_24k_flows_ms", 30, True)
    assert (hierarchical.name, hierarchical.met) == ("hdrf_24k_flows_ms", False)
