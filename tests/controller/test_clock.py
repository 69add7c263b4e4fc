"""The clock of the processes that decide."""

from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_controller.clock import MOST_DRIFT, SteadyClock, wall_clock

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.wall = START
        self.seconds = 100.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.seconds)

    def passes(self, seconds: float) -> float:
        """Time passes; returns how much of it the clock shows, in seconds."""
        before = self.clock()
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)
        return (self.clock() - before).total_seconds()


def test_it_shows_the_time_of_the_machine():
    machine = Machine()
    assert machine.clock() == START
    assert machine.passes(10) == 10
    assert machine.clock() == machine.wall
    assert abs(SteadyClock()() - wall_clock()) < timedelta(minutes=1)


@pytest.mark.parametrize("hours", [1, -1])
def test_it_follows_a_clock_that_was_set_without_a_jump(hours):
    machine = Machine()
    machine.wall += timedelta(hours=hours)
    sign = 1 if hours > 0 else -1
    assert machine.passes(0) == 0
    assert machine.passes(10) == 10 * (1 + sign * MOST_DRIFT)
    machine.passes(3600 / MOST_DRIFT)
    assert machine.clock() == machine.wall
    assert machine.passes(10) == 10


def test_it_never_goes_back():
    machine = Machine()
    machine.wall -= timedelta(days=1)
    times = [machine.clock() for _ in range(100) if machine.passes(0.1) >= 0]
    assert times == sorted(times)
