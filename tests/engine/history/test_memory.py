"""What a step should ask for, by the memory that it used before."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kfp_placement_engine.history import memory_use
from kfp_placement_engine.history.memory_use import MemoryHistory, after_kill
from kfp_placement_engine.model.history import PastContainer, PastRun, PastStep, StepIdentity

MIB, GIB = 2**20, 2**30
TRAIN = StepIdentity("taxi", "train")
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def observe(history, *steps):
    """One run with these steps."""
    history.observe(PastRun("1", "taxi", NOW, steps))


def used(peak, identity=TRAIN, **others):
    """A step that used that much."""
    return PastStep(identity, 60.0, peak_bytes=peak, **others)


def seen(*peaks, identity=TRAIN):
    """A history of one run for each value."""
    history = MemoryHistory()
    for peak in peaks:
        observe(history, used(peak, identity))
    return history


def forecast(history, identity=TRAIN):
    prediction = history.predict(identity)
    assert prediction is not None
    return prediction


def test_nothing_is_known_of_a_step_that_was_not_seen():
    assert seen(GIB).predict(StepIdentity("taxi", "other")) is None


def test_what_is_asked_for_comes_nearer_to_the_largest_use_with_each_run():
    asked = [forecast(seen(*[GIB] * runs)).ask_bytes for runs in (1, 3, 9, 50)]
    assert asked == sorted(asked, reverse=True)
    assert asked[0] == 1.25 * GIB
    assert 1.05 * GIB < asked[-1] < 1.08 * GIB


def test_the_forecast_says_what_it_rests_on():
    history = MemoryHistory()
    for peak in (1, 3, 2):
        observe(
            history,
            *(
                used(
                    peak * MIB,
                    StepIdentity("taxi", "fit", item),
                    container=PastContainer({"memory": 8 * MIB}),
                )
                for item in "abc"
            ),
        )
    memory = forecast(history, StepIdentity("taxi", "fit"))
    assert (memory.runs, memory.largest_bytes, memory.asked_bytes) == (3, 3 * MIB, 8 * MIB)
    assert memory.killed_bytes is None
    assert memory.ask_bytes > 3 * MIB


def test_a_kill_is_a_lower_bound_until_the_next_run():
    history = seen(GIB, GIB)
    observe(history, PastStep(TRAIN, killed_bytes=2 * GIB))
    memory = forecast(history)
    assert (memory.killed_bytes, memory.ask_bytes, memory.runs) == (2 * GIB, 4 * GIB, 2)
    observe(history, used(2.5 * GIB))
    memory = forecast(history)
    assert memory.killed_bytes is None
    assert 2.5 * GIB < memory.ask_bytes < 5 * GIB


def test_a_kill_is_forgotten_when_the_step_ends_well_unmeasured():
    history = MemoryHistory()
    observe(history, PastStep(TRAIN, killed_bytes=2 * GIB))
    observe(history, used(None, StepIdentity("taxi", "other")))
    assert forecast(history).killed_bytes == 2 * GIB
    observe(history, used(None))
    assert (forecast(history).killed_bytes, forecast(history).ask_bytes) == (None, None)


def test_after_a_kill_alone_the_double_is_asked_for():
    history = MemoryHistory()
    observe(
        history, PastStep(TRAIN, killed_bytes=2 * GIB, container=PastContainer({"memory": GIB}))
    )
    memory = forecast(history)
    assert (memory.ask_bytes, memory.largest_bytes, memory.asked_bytes) == (4 * GIB, None, GIB)


@pytest.mark.parametrize(
    ("had", "largest", "then"), [(2, 1, 4), (2, 10, 11), (11, 10, 22), (10.5, 10, 11)]
)
def test_after_a_kill_the_largest_use_comes_first(had, largest, then):
    assert after_kill(had, largest) == pytest.approx(then)


def test_steps_and_values_are_bounded(monkeypatch):
    monkeypatch.setattr(memory_use, "MOST_STEPS", 3)
    history = MemoryHistory()
    steps = [StepIdentity("taxi", f"step-{each}") for each in range(5)]
    for each in steps:
        observe(history, used(GIB, each))
    remembered = [history.predict(each) is not None for each in steps]
    assert remembered == [False, False, True, True, True]
    later = seen(100 * GIB, *[GIB] * memory_use.MOST_RUNS)
    assert forecast(later).ask_bytes < 2 * GIB
    assert (forecast(later).largest_bytes, forecast(later).runs) == (GIB, memory_use.MOST_RUNS)


def test_of_a_wide_loop_the_largest_use_of_each_run_is_known():
    history = MemoryHistory()
    for _ in range(3):
        first, *others = (used(GIB, StepIdentity("taxi", "fit", str(item))) for item in range(500))
        observe(history, replace(first, peak_bytes=4 * GIB), *others)
    memory = forecast(history, StepIdentity("taxi", "fit"))
    assert (memory.largest_bytes, memory.runs) == (4 * GIB, 3)
    assert 4 * GIB < memory.ask_bytes < 5 * GIB
