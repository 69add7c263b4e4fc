"""When plans of other runs are changed for a new one."""

import math

import pytest

from kfp_placement_controller.planning.rounds import gains
from kfp_placement_engine.plans.plan import RunsPlan


def planned(completions, latest=0.0, limit=math.inf, unplaced=0.0, latency=0.0) -> RunsPlan:
    """What plans amount to."""
    return RunsPlan({}, (unplaced, latency, 0.0, 0.0, 0.0), completions, 0, 0.0, latest, limit)


@pytest.mark.parametrize(
    ("stayed", "moved", "is_gain"),
    [
        (planned(100), planned(97), True),
        (planned(100), planned(99), False),
        (planned(100), planned(200, unplaced=-1), True),
        (planned(100), planned(50, latency=1), False),
        # Under the objective makespan the latest end comes first.
        (planned(100, latest=60), planned(120, latest=50, limit=0.0), True),
        (planned(100, latest=60), planned(50, latest=61, limit=0.0), False),
        (planned(100, latest=60), planned(100, latest=59.9, limit=0.0), False),
        (planned(100, latest=60), planned(90, latest=59.9, limit=0.0), True),
        # So does a limit of it; that of the later search holds for both.
        (planned(100, latest=60), planned(90, latest=70, limit=70.0), True),
        (planned(100, latest=60), planned(90, latest=71, limit=70.0), False),
        (planned(100, latest=80), planned(101, latest=70, limit=70.0), True),
        (planned(100, latest=60), planned(99, latest=70, limit=70.0), False),
    ],
)
def test_runs_move_for_a_greater_gain_only(stayed, moved, is_gain):
    assert gains(stayed, moved, 2) is is_gain
