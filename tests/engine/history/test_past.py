"""All that past runs tell, together."""

from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.history.node_speeds import undeclared_speeds
from kfp_placement_engine.model.history import PastRun, PastStep, StepIdentity

START = datetime(2026, 11, 1, tzinfo=UTC)
TRAIN = StepIdentity("taxi", "train")


def typical(past):
    prediction = past.steps.predict(TRAIN)
    assert prediction is not None
    return prediction.typical_seconds


def a_run(number, *steps, seconds=100.0, **others):
    ended_at = START + timedelta(hours=number)
    return PastRun(f"u{number}", "taxi", ended_at, steps, seconds, **others)


def test_runs_are_learned_from_as_they_ended():
    runs = [a_run(each, PastStep(TRAIN, 10.0 * each)) for each in (1, 2, 3, 4, 5, 6)]
    forward, backward = Past(runs), Past(reversed(runs))
    assert forward.steps.predict(TRAIN) == backward.steps.predict(TRAIN)
    assert typical(forward) == pytest.approx(40)


def test_a_run_that_did_not_end_well_teaches_of_its_steps_alone():
    past = Past([a_run(1, PastStep(TRAIN, 10.0), seconds=None, planned_seconds=90.0)])
    assert past.steps.predict(TRAIN) is not None
    assert past.ends.of("taxi").runs == ()


def test_loops_are_as_wide_as_in_the_last_five_runs():
    past = Past(a_run(each, loops={"loop": width}) for each, width in enumerate((1, 1, 9, 9, 9)))
    (width,) = past.widths("taxi").values()
    assert (width.width, width.runs) == (9, 5)
    assert past.widths("other") == {}


def test_memory_is_learned_where_somebody_asks_for_it():
    run = a_run(1, PastStep(TRAIN, 10.0, peak_bytes=2**30))
    assert Past([run]).memory is None
    memory = Past([run], memory=MemoryHistory()).memory
    assert memory is not None
    assert memory.predict(TRAIN) is not None


def test_what_a_pipeline_teaches_does_not_depend_on_the_namespace():
    runs = [a_run(each, PastStep(TRAIN, 10.0 + each)) for each in range(4)]
    before = typical(Past(runs, of_namespace=Past()))
    own = Past(runs, of_namespace=Past(runs))
    assert typical(own) == before


def test_nodes_on_which_steps_take_longer_than_their_speed_says_are_named():
    def run(number, slow):
        steps = (
            PastStep(StepIdentity("taxi", f"s{each}"), 30.0 * (each + 1) * factor, node)
            for each in range(10)
            for node, factor in (("a", 1.0), ("b", slow))
            if number % 2 == (node == "b")
        )
        return a_run(number, *steps)

    assert undeclared_speeds(run(each, 1.05) for each in range(6)) == {}
    factors = undeclared_speeds(run(each, 1.5) for each in range(6))
    assert factors == {"b": pytest.approx(1.5)}
    assert undeclared_speeds(run(each, 1.5) for each in range(2)) == {}
