"""The SLA's targets, and the credits for missing them: their one place. Ratios are in parts per million."""

from dataclasses import dataclass

from quorate_api.promises.availability import APART_PPM, ORDINARY_PPM, PPM

# The first and the last second of a group are not judged: its servers learn of them within a second.
RESOLUTION_MS = 1_000
# Pauses that are shorter are latency, which has a clause of its own. The share of time counts them all the same.
PAUSE_MS_MAX = 100
# Of the entries within the reservation: a hiccup of less than a second is latency, too.
THROTTLED_PPM_MAX = 10_000
QUIET_PAUSED_MS_MAX = 1_000  # of the minutes around such a gap
QUIET_S_MAX = 24 * 3_600  # a longer gap in the telemetry cannot show that there was no traffic


@dataclass(frozen=True, slots=True)
class Clause:
    name: str
    target_ppm: int
    # (share, credit in percent of the group's fee below that share), from mild to severe.
    tiers: tuple[tuple[int, int], ...]

    def credit_percent(self, attained_ppm: int) -> int:
        return max((percent for below, percent in self.tiers if attained_ppm < below), default=0)


# Share of the time in which the head was able to accept appends.
AVAILABILITY = Clause("availability", ORDINARY_PPM, ((ORDINARY_PPM, 10), (990_000, 25), (950_000, 50), (900_000, 100)))
# The same for groups that were placed in so many failure domains.
AVAILABILITY_APART = Clause("availability", APART_PPM, ((APART_PPM, 10), (999_000, 25), (990_000, 50), (950_000, 100)))
AVAILABILITIES = {clause.target_ppm: clause for clause in (AVAILABILITY, AVAILABILITY_APART)}
# Share of the minutes without throttling within the reservation.
THROUGHPUT = Clause("throughput", 999_000, ((999_000, 10), (990_000, 25), (950_000, 50), (900_000, 100)))
# Share of the minutes whose p99 of commit latency was within its target.
LATENCY = Clause("latency", 990_000, ((990_000, 10), (950_000, 25), (900_000, 50), (800_000, 100)))
# No acked entry is lost. A single breach costs the month's fee.
DURABILITY = Clause("durability", PPM, ((PPM, 100),))
# Everybody reads the acked entries in one order, each once.
ORDER = Clause("order", PPM, ((PPM, 100),))
MEASURED = (AVAILABILITY.name, THROUGHPUT.name, LATENCY.name)  # each minute, by telemetry
KEPT = (DURABILITY, ORDER)  # but for breaches: minutes in which they were not kept
# A single copy of a log is lost with its disk or process.
DURABLE_DEGREE_MIN = 2

assert all(
    clause.tiers[0][0] == clause.target_ppm for clause in (*AVAILABILITIES.values(), THROUGHPUT, LATENCY, *KEPT)
), "a miss always earns a credit"
