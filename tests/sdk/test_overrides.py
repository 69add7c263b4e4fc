"""What the author knows better than the run's file."""

import pytest

from kfp_placement import MarkValueError, PlacementError, UnknownStepError
from kfp_placement.overrides import with_overrides
from kfp_placement_engine.run_graph import DurationSource, RunGraph, Step

GRAPH = RunGraph(
    "run",
    "kfp-package",
    (
        Step("train", "train", duration_seconds=1.0, duration_source=DurationSource.HINT),
        Step("for-loop-1[0].work", "for-loop-1[*].work"),
        Step("for-loop-1[1].work", "for-loop-1[*].work"),
    ),
)


def durations(graph):
    return [(step.duration_seconds, str(step.duration_source)) for step in graph.steps]


def test_nothing_said_changes_nothing():
    assert with_overrides(GRAPH) == GRAPH


def test_durations_replace_hints_and_assumptions():
    changed = with_overrides(GRAPH, {"train": "1h", "for-loop-1[*].work": 5})
    assert durations(changed) == [(3600.0, "given"), (5.0, "given"), (5.0, "given")]


def test_one_iteration_wins_over_all():
    changed = with_overrides(GRAPH, {"for-loop-1[1].work": "1m", "for-loop-1[*].work": "2m"})
    assert durations(changed)[1:] == [(120.0, "given"), (60.0, "given")]


def test_steps_can_be_taken_as_cached():
    changed = with_overrides(GRAPH, assume_cached=["for-loop-1[*].work"])
    assert [step.assumed_cached for step in changed.steps] == [False, True, True]


@pytest.mark.parametrize("options", [{"durations": {"trian": "1h"}}, {"assume_cached": ["trian"]}])
def test_unknown_steps_name_the_closest(options):
    with pytest.raises(
        UnknownStepError, match="run: there is no step 'trian'; did you mean 'train'"
    ):
        with_overrides(GRAPH, **options)
    assert issubclass(UnknownStepError, PlacementError)
    assert issubclass(UnknownStepError, LookupError)


def test_bad_durations_name_the_step():
    with pytest.raises(MarkValueError, match="step 'train': 'soon' is no duration"):
        with_overrides(GRAPH, {"train": "soon"})
