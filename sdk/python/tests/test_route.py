"""The route's decisions, one by one."""

from quorate import limits
from quorate.route import Dial, Refresh, Route


def make_route(can_refresh=False, random=lambda: 1.0):
    return Route(["a:1", "b:1", "c:1"], can_refresh, random)


def test_goes_round_all_endpoints_without_waiting_then_waits():
    route = make_route()
    assert [route.next(0.0) for _ in range(3)] == [Dial("a:1", 0.0), Dial("b:1", 0.0), Dial("c:1", 0.0)]
    assert route.next(0.0) == Dial("a:1", limits.BACKOFF_BASE_S)
    assert [route.next(0.0).delay_s for _ in range(2)] == [0.0, 0.0]
    assert route.next(0.0) == Dial("a:1", 2 * limits.BACKOFF_BASE_S)


def test_waits_grow_to_a_ceiling_with_full_jitter():
    route = make_route(random=lambda: 0.5)
    delays = [route.next(0.0).delay_s for _ in range(60)]
    assert max(delays) == limits.BACKOFF_MAX_S / 2
    assert delays[3::3] == sorted(delays[3::3])


def test_between_rounds_comes_a_new_handle_but_not_too_often():
    route = make_route(can_refresh=True)
    for _ in range(3):
        route.next(100.0)
    assert isinstance(route.next(100.0), Refresh)
    route.replace(["d:1"])
    assert route.next(100.0).address == "d:1"
    assert route.next(100.1).address == "d:1"  # the pass is over, but a handle came a moment ago
    assert isinstance(route.next(101.5), Refresh)


def test_follows_redirects_at_once_but_not_for_ever():
    route = make_route()
    for _ in range(limits.REDIRECTS_AT_ONCE_MAX):
        route.redirect("h:1")
        assert route.next(0.0) == Dial("h:1", 0.0)
    route.redirect("h:1")
    assert route.next(0.0) == Dial("h:1", limits.BACKOFF_BASE_S)
    route.progressed()
    route.redirect("h:1")
    assert route.next(0.0).delay_s == 0.0


def test_a_redirect_to_nobody_goes_on_with_the_round():
    route = make_route()
    route.next(0.0)
    route.redirect("")
    assert route.next(0.0) == Dial("b:1", 0.0)


def test_comes_back_to_the_address_that_worked():
    route = make_route()
    route.next(0.0)
    route.next(0.0)
    route.attached("b:1")
    route.progressed()
    route.lost()
    assert [route.next(0.0) for _ in range(3)] == [Dial("b:1", 0.0), Dial("a:1", 0.0), Dial("c:1", 0.0)]


def test_avoids_the_address_that_fell_silent():
    route = make_route()
    route.attached("a:1")
    route.progressed()
    route.lost()
    route.avoid("a:1")
    assert route.next(0.0).address == "b:1"


def test_a_server_that_accepts_and_closes_is_not_hammered():
    route = make_route()
    delays = []
    for _ in range(5):
        delays.append(route.next(0.0).delay_s)
        route.attached("a:1")
        route.lost()
    assert delays == [0.0, *(limits.BACKOFF_BASE_S * 2**n for n in range(4))]


def test_waits_as_long_as_a_server_asks():
    route = make_route()
    route.wait_at_least(0.3)
    assert route.next(0.0).delay_s == 0.3
    assert route.next(0.0).delay_s == 0.0
