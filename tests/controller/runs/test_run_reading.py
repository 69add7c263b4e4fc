"""Runs whose loops turn out otherwise than assumed are read again, a few times at once."""

from dataclasses import replace
from typing import Any, cast

import pytest

from kfp_placement_controller.runs.run_reading import MAX_READINGS, RunReader
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.run_graph import Group, GroupKind, RunGraph, Step
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import RunOutcome
from tests.controller.planning.builders import a_workflow

ASSUMED, SHOWN = 3, 2
"""Iterations of a loop as it is read first, and as the object shows them."""

POLICY = PlacementPolicy().spec


class Levels:
    """Loops within loops: each shows its width, and the next one, once those before are known."""

    def __init__(self, levels: int, most: int = 100) -> None:
        self.levels = levels
        self.most = most

    def graph(self, options: ReadOptions) -> RunGraph:
        widths = options.loop_widths
        if len(widths) > self.most:
            raise LimitError("too many loops")
        groups = [
            Group(name, GroupKind.LOOP, width=widths.get(name, ASSUMED))
            for name in map(str, range(min(self.levels, len(widths) + 1)))
        ]
        return RunGraph(
            "levels", "made up", (Step("a", "a"),), (Group("", GroupKind.ROOT), *groups)
        )

    def index(self, _graph: RunGraph) -> Any:
        return cast("Any", self)

    def outcome(self, graph: RunGraph, _index: Any) -> RunOutcome:
        return RunOutcome(widths={group.name: SHOWN for group in graph.groups if group.name})


def a_run(levels: int, most: int = 100) -> ObservedRun:
    return replace(a_workflow(), content=cast("Any", Levels(levels, most)))


@pytest.mark.parametrize("levels", range(MAX_READINGS + 3))
def test_the_outcome_is_always_of_the_graph_that_was_read_last(levels):
    run = a_run(levels)
    reader = RunReader(run, POLICY)
    latest = reader.as_of_now(reader.read())
    assert not latest.problem
    assert latest.outcome == run.content.outcome(latest.reading.graph, latest.reading.index)
    assert len(latest.reading.widths) == min(levels, MAX_READINGS)


def test_a_run_whose_loops_are_as_assumed_is_not_read_again():
    run = a_run(0)
    reader = RunReader(run, POLICY)
    reading = reader.read()
    assert reader.as_of_now(reading).reading is reading


def test_one_that_grows_beyond_a_limit_keeps_its_last_graph_and_the_widths_it_has():
    run = a_run(4, most=2)
    reader = RunReader(run, POLICY)
    latest = reader.as_of_now(reader.read())
    assert latest.problem == "too many loops"
    assert len(latest.reading.widths) == 3
    assert len(latest.reading.graph.groups) == 1 + 3
    # What is known is read no further, so that it is refused once.
    assert reader.as_of_now(latest.reading).reading is latest.reading
