from quorate_harness.processor import machine_ticks


def test_what_the_host_takes_counts_as_what_others_use() -> None:
    # The very line of the test of `loadtest/driver/src/cpu.rs`.
    stat = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
    assert machine_ticks(stat) == 100 + 20 + 30 + 6 + 7 + 80, "not idle, nor waiting for devices"
