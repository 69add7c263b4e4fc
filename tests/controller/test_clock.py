"""The clock of the processes that decide: what follows when somebody sets it."""

from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_controller.clock import ClockWatch, wall_clock

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
NOTHING = timedelta(0)


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.wall = START
        self.seconds = 100.0
        self.watch = ClockWatch(lambda: self.wall, lambda: self.seconds)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)


def test_time_that_passes_is_no_step():
    machine = Machine()
    for seconds in (0.0, 10.0, 86_400.0):
        machine.pass_time(seconds)
        assert machine.watch.step() == NOTHING
    assert ClockWatch(wall_clock).step() == NOTHING


@pytest.mark.parametrize("hours", [1, -1])
def test_a_step_is_noticed_once(hours):
    machine = Machine()
    machine.pass_time(7)
    machine.wall += timedelta(hours=hours)
    machine.pass_time(5)
    assert machine.watch.step() == timedelta(hours=hours)
    machine.pass_time(5)
    assert machine.watch.step() == NOTHING


def test_drift_is_no_step():
    machine = Machine()
    for _ in range(100):
        machine.pass_time(2)
        machine.wall += timedelta(milliseconds=20)
        assert machine.watch.step() == NOTHING
