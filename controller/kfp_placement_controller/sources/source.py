"""A source of runs, from two sides: its objects become runs, and pods say which run they are of.

Nothing else of the controller knows what runs the steps of a workflow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.run_outcomes import RunIndex, RunOutcome
from kfp_placement_kube.kinds import Kind

RunKey = tuple[str, str]
"""Namespace and name of a run."""


class RunEnd(StrEnum):
    """How a run has ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class RunState:
    """How a run is doing.

    Attributes:
        held: why no pods are made for it now, or "".
        idle: the same, if it has no pods a while after its submission, or "".
        started_at: when it was begun, held back or not; None = it has not been.
        finished_at: None = it goes on, or nobody says when.
        end: how it has ended; None = it goes on.
        unreadable: why it is not known what became of its steps, or "".
    """

    held: str = ""
    idle: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    end: RunEnd | None = None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class RunOwner:
    """The object that a run is in the cluster: it owns the run's PipelinePlacement.

    Attributes:
        kind, name, uid: of the object; it is in the run's namespace.
    """

    kind: Kind
    name: str
    uid: str


class RunContent(Protocol):
    """What a source keeps of an object to read the run from; equal if it says the same."""

    def graph(self, options: ReadOptions) -> RunGraph:
        """The steps of the run.

        Raises:
            UnknownLoopError: the options give the width of a loop that the run does not have.
            InputError: malformed, or beyond a limit.
        """
        ...

    def index(self, graph: RunGraph) -> RunIndex:
        """Finds what the pods of the run are for.

        Args:
            graph: as `graph` has read it.
        """
        ...

    def outcome(self, graph: RunGraph, index: RunIndex) -> RunOutcome:
        """What became of the steps, as the object says.

        Args:
            graph: as `graph` has read it.
            index: of the same graph.
        """
        ...


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run that carries our mark, as last observed.

    Attributes:
        key: namespace and name.
        owner: the object that it is.
        submitted_at: time zero of its plans.
        state: how it is doing.
        content: what its graph, and what became of its steps, are read from.
        display_name: what people call it; "" = by its key.
    """

    key: RunKey
    owner: RunOwner
    submitted_at: datetime
    state: RunState
    content: RunContent
    display_name: str = ""

    @property
    def uid(self) -> str:
        """A later run of the same key has another."""
        return self.owner.uid

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self.state.end is not None


class RunSource(Protocol):
    """Something that makes the pods of runs."""

    @property
    def kind(self) -> Kind:
        """Of its objects."""
        ...

    def observe(self, raw: Mapping[str, Any]) -> ObservedRun | None:
        """Read one of its objects; None = it carries no mark of ours.

        Raises:
            InputError: it has another form, or is too large.
        """
        ...
