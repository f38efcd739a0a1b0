"""The SLA calculator against a brute-force oracle that counts millisecond by millisecond and minute by minute."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate_api.outside.verdict import EVERYTHING_REACHED, Unreachable
from quorate_api.sla.calculator import Report, report
from quorate_api.sla.targets import AVAILABILITIES, AVAILABILITY, KEPT, LATENCY, MEASURED, THROUGHPUT
from quorate_api.telemetry.histogram import bucket_of, upper_edge_us
from quorate_api.telemetry.windows import Window
from support.promises import promise

START_S = 1_700_000_040  # the start of a minute
FAST, SLOW = 500, 80_000
BOUND_US = {"in_memory": 2_000, "persistent": 5_000}  # for entries of 64 bytes
GOOD, BAD = {bucket_of(FAST): 1_000}, {bucket_of(FAST): 900, bucket_of(SLOW): 100}


def window(minute: int, **values: object) -> Window:
    start_s = START_S + 60 * minute
    fields: dict[str, object] = {
        "group_id": "g", "server_id": 1, "incarnation": "a", "epoch": 1, "window_start_s": start_s, "role": "head",
        "active_ms": 60_000, "committed_entries": 0, "first_committed_entries": 0, "within_sla_entries": 500,
        **covering(minute, 0, 60_000),
    }  # fmt: skip
    return Window(**(fields | values))  # type: ignore[arg-type]


def covering(minute: int, begin_ms: int, end_ms: int) -> dict[str, int]:
    """A head's time in its minute."""
    start_ms = (START_S + 60 * minute) * 1_000
    return {"from_ms": start_ms + begin_ms, "to_ms": start_ms + end_ms}


def over(
    minutes: float,
    *windows: Window,
    durability: str = "persistent",
    late_ms: int = 0,
    outside: Unreachable | None = None,
) -> Report:
    return report(
        windows, promise(durability), START_S * 1000 + late_ms, START_S * 1000 + int(minutes * 60_000), outside or {}
    )


def attained(found: Report) -> dict[str, int | None]:
    """Of each clause that telemetry measures."""
    return {each.clause.name: each.attained_ppm for each in found.attainments if each.clause.name in MEASURED}


def bad_minutes(found: Report) -> list[int]:
    return [each.bad_minutes for each in found.attainments if each.clause.name in MEASURED]


def test_nothing_counted_is_nothing_missed() -> None:
    found = over(0)
    assert attained(found) == {"availability": None, "throughput": None, "latency": None}
    assert all(attainment.met and attainment.credit_percent == 0 for attainment in found.attainments)


def test_a_perfect_hour() -> None:
    found = over(60, *(window(minute, latency_us=GOOD) for minute in range(60)))
    assert attained(found) == {"availability": 1_000_000, "throughput": 1_000_000, "latency": 1_000_000}
    assert found.p99_us == upper_edge_us(bucket_of(FAST))
    assert found.incidents == ()


def test_a_failover_of_three_seconds() -> None:
    """Two heads of two epochs in one minute: their times add up, and three seconds are missing."""
    windows = [
        window(0, latency_us=GOOD),
        window(1, active_ms=20_000, latency_us=GOOD, **covering(1, 0, 20_000)),
        window(1, active_ms=37_000, server_id=2, epoch=2, latency_us=GOOD, **covering(1, 23_000, 60_000)),
    ]
    found = over(2, *windows)
    assert found.active_ms == 117_000
    assert attained(found)["availability"] == 975_000
    availability = found.attainments[0]
    assert (availability.good_minutes, availability.bad_minutes, availability.credit_percent) == (1, 1, 25)
    assert [incident.reason for incident in found.incidents] == ["Appends were not accepted for 3.0 s."]


def test_a_second_a_minute_is_a_second_a_minute() -> None:
    found = over(60, *(window(minute, active_ms=59_000, paused_ms=1_000) for minute in range(60)))
    assert attained(found)["availability"] == 983_333
    assert (found.attainments[0].bad_minutes, found.attainments[0].credit_percent) == (60, 25)


def test_a_moment_is_counted_and_makes_no_minute_bad() -> None:
    found = over(1, window(0, active_ms=59_900, paused_ms=100))
    assert (attained(found)["availability"], found.attainments[0].bad_minutes) == (998_333, 0)
    assert over(1, window(0, active_ms=59_899, paused_ms=101)).attainments[0].bad_minutes == 1


def test_heads_whose_times_overlap_do_not_make_up_for_an_outage() -> None:
    """The old head took itself for the head until 50 s, and the new one came at 40 s. It was not ready before 45 s."""
    windows = [
        window(0, active_ms=50_000, **covering(0, 0, 50_000)),
        window(0, active_ms=15_000, paused_ms=5_000, epoch=2, server_id=2, **covering(0, 40_000, 60_000)),
    ]
    assert over(1, *windows).active_ms == 55_000


def test_a_head_that_stood_still_while_another_took_over_is_not_charged_twice() -> None:
    windows = [
        window(0, active_ms=30_000, paused_ms=15_000, **covering(0, 0, 30_000)),  # stopped from 30 s to 45 s
        window(0, active_ms=26_000, epoch=2, server_id=2, **covering(0, 34_000, 60_000)),
    ]
    assert over(1, *windows).active_ms == 56_000


def test_an_old_heads_pauses_are_not_made_up_for_by_the_time_after_its_end() -> None:
    """The old head was paused from 5 s to 15 s, and took itself for the head until 45 s. The new one came at 34 s."""
    windows = [
        window(0, active_ms=35_000, paused_ms=10_000, **covering(0, 0, 45_000)),
        window(0, active_ms=26_000, epoch=2, server_id=2, **covering(0, 34_000, 60_000)),
    ]
    assert over(1, *windows).active_ms == 50_000


def test_time_that_nobody_counted_is_lost() -> None:
    """The machine stood still for ten seconds, and its own clock with it."""
    assert over(1, window(0, active_ms=50_000)).active_ms == 50_000


def test_a_gap_in_which_the_head_stood_still_is_not_quiet() -> None:
    windows = [window(0, active_ms=30_000, paused_ms=30_000, **covering(0, 0, 30_000)), window(20)]
    assert bad_minutes(over(21, *windows))[1:] == [19, 19]


def test_a_head_that_was_replaced_does_not_stand_in_for_its_successor() -> None:
    """It is cut off, and reports on. The new head came in minute 1; nothing was heard of it in minute 2."""
    windows = [
        *(window(minute) for minute in range(4)),
        window(1, epoch=2, server_id=2),
        window(3, epoch=2, server_id=2),
    ]
    windows[-1] = replace(windows[-1], first_committed_entries=7)
    found = over(4, *windows)
    assert (found.active_ms, [minute.measured for minute in found.bad_minutes]) == (180_000, [False])


def test_servers_of_earlier_versions_say_how_long_and_not_when() -> None:
    windows = [
        window(0, active_ms=38_000, from_ms=0, to_ms=0),
        window(0, active_ms=20_000, from_ms=0, to_ms=0, epoch=2, server_id=2),
    ]
    assert over(1, *windows).active_ms == 58_000


def test_missing_telemetry_with_traffic_is_bad() -> None:
    windows = [window(0, committed_entries=5), window(2, committed_entries=9, first_committed_entries=8)]
    found = over(3, *windows)
    assert bad_minutes(found) == [1, 1, 1]
    assert {incident.reason for incident in found.incidents} == {
        "No telemetry, and the group cannot show that it had no traffic."
    }


def test_missing_telemetry_without_traffic_is_good() -> None:
    windows = [window(0, committed_entries=5), window(3, committed_entries=9, first_committed_entries=5)]
    assert bad_minutes(over(4, *windows)) == [0, 0, 0]


def test_another_incarnation_shows_nothing() -> None:
    """The head died and came back. No client could append in between, though the log did not grow."""
    windows = [
        window(0, committed_entries=5),
        window(2, incarnation="b", first_committed_entries=5, committed_entries=5),
    ]
    assert bad_minutes(over(3, *windows)) == [1, 1, 1]


def test_followers_do_not_stand_in_for_the_head() -> None:
    found = over(1, window(0, role="follower"), window(0, role="tail", server_id=2))
    assert bad_minutes(found) == [1, 1, 1]


def test_silence_until_now_is_bad() -> None:
    found = over(3, window(0))
    assert bad_minutes(found) == [2, 2, 2]


def test_throttling_within_the_sla_is_ours_and_beyond_it_is_not() -> None:
    found = over(2, window(0, throttled_entries=50), window(1, throttled_entries=9, throttled_within_sla_entries=6))
    throughput = next(each for each in found.attainments if each.clause is THROUGHPUT)
    assert (throughput.good_minutes, throughput.bad_minutes) == (1, 1)
    assert [incident.reason for incident in found.incidents] == [
        "6 of 500 entries within the reservation were throttled."
    ]
    assert over(1, window(0, throttled_within_sla_entries=5)).attainments[1].bad_minutes == 0, "1 % is a hiccup"


def test_reads_that_are_owed_and_late_are_ours_on_any_replica() -> None:
    found = over(
        2,
        window(0, owed_read_entries=100),
        window(0, role="tail", server_id=2, owed_read_entries=100, late_read_entries=3),
        window(1, owed_read_entries=100),
        window(1, role="follower", server_id=3, owed_read_entries=100, late_read_entries=2),
    )
    assert [each.bad_minutes for each in found.attainments if each.clause is THROUGHPUT] == [1], "1 % is a hiccup"
    assert [incident.reason for incident in found.incidents] == ["3 of 200 reads within the reservation were late."]
    assert [(minute.late_read_entries, minute.owed_read_entries) for minute in found.bad_minutes] == [(3, 200)]
    both = over(1, window(0, throttled_within_sla_entries=9, owed_read_entries=10, late_read_entries=10))
    assert [incident.reason for incident in both.incidents] == [
        "9 of 500 entries within the reservation were throttled, and 10 of 10 reads within the reservation were late."
    ]


def test_latency_counts_from_the_reservations_start() -> None:
    """An overload of the group's own: its appends waited, and those within the reservation were quick."""
    found = over(1, window(0, latency_us=BAD, judged_latency_us=GOOD), durability="in_memory")
    assert (found.attainments[2].bad_minutes, found.p99_us) == (0, upper_edge_us(bucket_of(FAST)))
    found = over(1, window(0, latency_us=GOOD, judged_latency_us={}), durability="in_memory")
    assert (found.attainments[2].bad_minutes, found.p99_us) == (0, None)


def test_latency_targets_differ_by_durability() -> None:
    between = {bucket_of(3_000): 100}
    for durability, bad in (("persistent", 0), ("in_memory", 1)):
        found = over(1, window(0, latency_us=between), durability=durability)
        latency = next(each for each in found.attainments if each.clause is LATENCY)
        assert latency.bad_minutes == bad


def test_credits_grow_with_what_was_missed() -> None:
    for clause in (*AVAILABILITIES.values(), THROUGHPUT, LATENCY):
        percents = [clause.credit_percent(ppm) for ppm in range(0, 1_000_001, 100)]
        assert percents == sorted(percents, reverse=True)
        assert set(percents) == {0, 10, 25, 50, 100}
        assert clause.credit_percent(clause.target_ppm) == 0
        assert clause.credit_percent(clause.target_ppm - 1) == 10
    assert AVAILABILITY.credit_percent(0) == 100
    assert [clause.credit_percent(999_999) for clause in KEPT] == [100, 100], "a single breach costs the fee"


MINUTES = 8


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Window], int, int, str]:
    windows = []
    committed = 0
    times = st.sampled_from([0, 0, 7_000, 30_000, 59_950, 60_000])
    for minute in range(MINUTES):
        for epoch in draw(st.sets(st.integers(1, 3), max_size=2)):
            first = committed
            committed += draw(st.sampled_from([0, 0, 7]))
            begin, end = sorted((draw(times), draw(times)))
            lost_ms = min(end - begin, draw(st.sampled_from([0, 0, 50, 100, 101, 8_000])))
            windows.append(
                window(
                    minute,
                    epoch=epoch,
                    server_id=draw(st.integers(1, 2)),
                    incarnation=draw(st.sampled_from("aab")),
                    role=draw(st.sampled_from(["head", "head", "head", "sole", "follower"])),
                    active_ms=end - begin - lost_ms,
                    paused_ms=draw(st.sampled_from([0, lost_ms, 1_000, 1_001])),
                    **covering(minute, begin, end),
                    committed_entries=committed,
                    first_committed_entries=first,
                    throttled_within_sla_entries=draw(st.sampled_from([0, 0, 0, 3, 4])),
                    within_sla_entries=draw(st.sampled_from([4, 300, 500])),
                    owed_read_entries=draw(st.sampled_from([0, 200, 300])),
                    late_read_entries=draw(st.sampled_from([0, 0, 0, 2, 4])),
                    latency_us=draw(st.sampled_from([{}, GOOD, BAD])),
                    judged_latency_us=draw(st.sampled_from([None, None, GOOD, BAD])),
                )
            )
        committed += draw(st.sampled_from([0, 0, 0, 5]))  # within minutes without telemetry
    start_ms = START_S * 1000 + draw(st.integers(0, MINUTES * 60_000))
    end_ms = start_ms + draw(st.integers(0, MINUTES * 60_000))
    return draw(st.permutations(windows)), start_ms, end_ms, draw(st.sampled_from(list(BOUND_US)))


def oracle_active_ms(heads: list[Window], start_ms: int, end_ms: int) -> int:
    """Cuts time where any head begins or ends, and gives each piece to the newest head that has begun by then."""
    ends = {at for head in heads for at in (head.from_ms, head.to_ms) if start_ms < at < end_ms}
    had: dict[int, int] = {}
    for begin, end in pairwise(sorted({start_ms, end_ms, *ends})):
        begun = [head for head in heads if head.from_ms <= begin]
        if begun:
            newest = max(begun, key=lambda head: (head.epoch, head.from_ms, head.to_ms))
            if newest.to_ms >= end:
                had[id(newest)] = had.get(id(newest), 0) + end - begin
    lost = {id(head): max(0, head.to_ms - head.from_ms - head.active_ms) for head in heads}
    return sum(max(0, had.get(id(head), 0) - lost[id(head)]) for head in heads)


def oracle(
    windows: list[Window], start_ms: int, end_ms: int, durability: str
) -> dict[str, tuple[int, int, Fraction | None]]:
    """Slow and plain: good minutes, bad minutes and attained share of each clause."""
    elapsed_all = active_all = 0
    good = dict.fromkeys(MEASURED, 0)
    counted = 0
    claimed = [w for w in windows if w.role in ("head", "sole")]
    everybody = [
        w for w in claimed if not any(o.epoch > w.epoch and o.from_ms < w.window_start_s * 1000 for o in claimed)
    ]
    for minute in range(-1, 4 * MINUTES):
        begin = START_S * 1000 + minute * 60_000
        elapsed = len(range(max(begin, start_ms), min(begin + 60_000, end_ms)))
        if elapsed < 1_000:
            continue
        counted += 1
        heads = [w for w in everybody if w.window_start_s * 1000 == begin]
        if heads:
            active = oracle_active_ms(heads, max(begin, start_ms), min(begin + 60_000, end_ms))
            throttled = sum(w.throttled_within_sla_entries for w in heads)
            within = sum(w.within_sla_entries for w in heads)
            values = sorted(
                upper_edge_us(bucket)
                for w in heads
                for bucket, count in (w.latency_us if w.judged_latency_us is None else w.judged_latency_us).items()
                for _ in range(count)
            )
            slow = bool(values) and values[-(-99 * len(values) // 100) - 1] > BOUND_US[durability]
            measured = True
        else:
            earlier = [w for w in everybody if w.window_start_s * 1000 < begin]
            later = [w for w in everybody if w.window_start_s * 1000 > begin]
            before = [w for w in earlier if w.window_start_s == max(e.window_start_s for e in earlier)]
            after = [w for w in later if w.window_start_s == min(e.window_start_s for e in later)]
            measured = any(
                b.server_id == a.server_id
                and b.incarnation == a.incarnation
                and b.epoch == a.epoch
                and b.committed_entries == a.first_committed_entries
                and max(b.paused_ms, a.paused_ms) <= 1_000
                for b in before
                for a in after
            )
            active, throttled, within, slow = elapsed if measured else 0, 0, 0, False
        readers = [w for w in windows if w.window_start_s * 1000 == begin and w.owed_read_entries]
        late, owed = sum(w.late_read_entries for w in readers), sum(w.owed_read_entries for w in readers)
        elapsed_all += elapsed
        active_all += active
        good["availability"] += measured and elapsed - active <= 100
        good["throughput"] += measured and 100 * throttled <= within and 100 * late <= owed
        good["latency"] += measured and not slow
    shares = {name: Fraction(count, counted) if counted else None for name, count in good.items()}
    shares["availability"] = Fraction(active_all, elapsed_all) if elapsed_all else None
    return {name: (good[name], counted - good[name], shares[name]) for name in good}


@settings(max_examples=400, deadline=None)
@given(histories())
def test_against_the_oracle(history: tuple[list[Window], int, int, str]) -> None:
    windows, start_ms, end_ms, durability = history
    found = report(windows, promise(durability), start_ms, end_ms, EVERYTHING_REACHED)
    expected = oracle(windows, start_ms, end_ms, durability)
    for each in found.attainments[: len(MEASURED)]:
        good, bad, share = expected[each.clause.name]
        assert (each.good_minutes, each.bad_minutes) == (good, bad), each.clause.name
        assert each.attained_ppm == (None if share is None else int(share * 1_000_000))
        if share is not None:
            assert each.met == (int(share * 1_000_000) >= each.clause.target_ppm)
    # Incidents are the bad minutes, each once.
    for each in found.attainments:
        minutes = [
            start
            for incident in found.incidents
            if incident.clause == each.clause.name
            for start in range(incident.start_s, incident.end_s, 60)
        ]
        assert len(minutes) == len(set(minutes)) == each.bad_minutes
