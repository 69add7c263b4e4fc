"""What is said of the memory that steps ask for and use."""

import pytest

from kfp_placement_engine.history.memory_use import MemoryForecast
from kfp_placement_engine.planning.past_runs.memory_advice import (
    memory_advice,
    memory_text,
)

MIB, GIB = 2**20, 2**30


def a_forecast(
    ask: float | None, largest: float | None, runs: int = 9, killed: float | None = None
) -> MemoryForecast:
    """Amounts are GiB."""
    amounts = [None if each is None else each * GIB for each in (ask, largest, killed)]
    return MemoryForecast(amounts[0], amounts[1], runs, amounts[2], None)


def advice(memory: MemoryForecast, asked_bytes: float | None) -> str:
    given_advice = memory_advice(memory, asked_bytes)
    return "" if given_advice is None else given_advice.text


def test_a_step_that_asks_for_far_too_much():
    text = advice(a_forecast(1.4, 1.2), 8 * GIB)
    assert text == "asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do"


@pytest.mark.parametrize(
    ("memory", "asked"),
    [
        (a_forecast(1.4, 1.2, runs=2), 8),
        (a_forecast(1.4, 1.2), 1.75),
        (a_forecast(1.4, 1.2), 1.195),
        (a_forecast(1.4, 1.2, runs=2), 1),
        (a_forecast(1.4, 1.2), None),
        (a_forecast(None, None), 8),
    ],
    ids=[
        "two runs",
        "little to save",
        "hardly less",
        "less in two runs",
        "asks for nothing",
        "not measured",
    ],
)
def test_nothing_is_advised(memory, asked):
    assert advice(memory, None if asked is None else asked * GIB) == ""


def test_a_step_that_asks_for_less_than_it_used():
    text = advice(a_forecast(0.75, 0.69), 0.49 * GIB)
    assert text == "asks 502Mi, used at most 707Mi in 9 runs: ask for 768Mi"


def test_a_step_that_was_killed():
    memory = a_forecast(4.0, None, runs=1, killed=2)
    text = "was killed for memory with 2Gi in its last run; ask for 4Gi"
    assert advice(memory, 2 * GIB) == text
    assert advice(memory, GIB) == text
    assert advice(memory, None) == text
    assert advice(memory, 3 * GIB) == ""


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [
        (1, "16Mi"),
        (100 * MIB, "112Mi"),
        (256 * MIB, "256Mi"),
        (300 * MIB, "320Mi"),
        (1.3 * GIB, "1536Mi"),
        (5.1 * GIB, "5632Mi"),
        (40.2 * GIB, "41Gi"),
    ],
)
def test_amounts_are_rounded_up_to_what_people_ask_for(amount, rounded):
    memory = a_forecast(amount / GIB, None, killed=1)
    assert advice(memory, None).endswith(f"ask for {rounded}")


def test_amounts_for_people():
    amounts = [512, 1.5 * GIB, 1000 * MIB, 2**50, 2**62]
    assert [memory_text(each) for each in amounts] == [
        "512",
        "1.5Gi",
        "0.977Gi",
        "1Pi",
        "4.1e+03Pi",
    ]
