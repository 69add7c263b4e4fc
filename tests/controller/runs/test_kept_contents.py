"""Which contents of runs are forgotten, so that no namespace fills the planner's memory."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from kfp_placement_controller.runs.kept_contents import KEPT_BYTES_PER_STEP, KeptContents
from kfp_placement_controller.sources.source import ObservedRun, RunEnd
from tests.controller.planning.builders import START, a_workflow

MOST_STEPS = 10


@dataclass
class Content:
    """As much of a content as matters here."""

    kept_bytes: int

    def forget(self) -> None:
        """Keep nothing."""
        self.kept_bytes = 0


class Namespace:
    """Runs of a namespace, some of which are needed."""

    def __init__(self) -> None:
        self.needed: set[str] = set()
        self.contents = KeptContents(lambda: MOST_STEPS, self.is_needed)
        self.runs: dict[str, ObservedRun] = {}

    def is_needed(self, run: ObservedRun) -> bool:
        """It is one of those."""
        return run.key.name in self.needed

    def add(self, name: str, steps: float, *, ended: bool = False) -> None:
        """A run that takes as much as so many steps of the budget."""
        observed = a_workflow(name, created_at=START + timedelta(seconds=len(self.runs)))
        state = replace(observed.state, end=RunEnd.SUCCEEDED if ended else None)
        content = Content(int(steps * KEPT_BYTES_PER_STEP))
        self.runs[name] = replace(observed, content=cast("Any", content), state=state)
        self.contents.run_changed(observed.key, self.runs[name])

    def kept(self) -> list[str]:
        """Names of the runs whose contents are kept."""
        self.contents.settle()
        return [name for name, run in self.runs.items() if run.content.kept_bytes]


@pytest.fixture
def namespace():
    return Namespace()


def test_nothing_is_forgotten_while_there_is_room(namespace):
    namespace.add("a", 5)
    namespace.add("b", 5)
    assert namespace.kept() == ["a", "b"]


def test_the_newest_is_forgotten_and_kept_when_it_changes_and_there_is_room(namespace):
    namespace.add("a", 5)
    namespace.add("b", 4)
    namespace.add("c", 4)
    assert namespace.kept() == ["a", "b"]
    namespace.contents.run_changed(namespace.runs.pop("a").key, None)
    namespace.add("c", 4)
    assert namespace.kept() == ["b", "c"]


def test_ended_runs_are_forgotten_first(namespace):
    namespace.add("ended", 5, ended=True)
    namespace.add("a", 5)
    namespace.add("b", 4)
    assert namespace.kept() == ["a", "b"]


def test_what_is_needed_is_kept_until_it_is_not(namespace):
    namespace.add("a", 8)
    namespace.add("b", 8)
    namespace.needed = {"b"}
    assert namespace.kept() == ["b"]
    namespace.add("c", 8)
    namespace.needed = {"b", "c"}
    assert namespace.kept() == ["b", "c"]
    namespace.needed = {"b"}
    assert namespace.kept() == ["b"]
