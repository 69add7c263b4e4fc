"""A source of runs, from two sides: its objects become runs, and pods say which run they are of.

Nothing else of the controller knows what runs the steps of a workflow.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from kfp_placement_controller.observed.pods import ObservedPod, PodMarks, observe_pod
from kfp_placement_engine.contract.fields import OwnerReference
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import UNNAMED
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, RunIndex, RunOutcome
from kfp_placement_kube.kinds import Kind


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
        unreadable: why it is not known what happened to its steps, or "".
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

    def reference(self, *, block_owner_deletion: bool | None = None) -> OwnerReference:
        """Return the reference to it that an object of the run has."""
        return OwnerReference(
            api_version=self.kind.api_version,
            kind=self.kind.kind,
            name=self.name,
            uid=self.uid,
            block_owner_deletion=block_owner_deletion,
        )


class PodRun(NamedTuple):
    """Which run a pod is of.

    Attributes:
        key: of the run.
        uid: of the run's object; "" = the pod does not say.
    """

    key: RunKey
    uid: str


class StepIndex(RunIndex, Protocol):
    """Finds what the pods of one run are for: their step or group, and their role for it."""

    def of_pod(self, pod: ObservedPod) -> PodIdentity | None:
        """What a pod is; None = not a pod of this run."""
        ...


class RunContent(Protocol):
    """The part of an object that a source keeps to read the run from; equal if it says the same."""

    def graph(self, options: ReadOptions) -> RunGraph:
        """The steps of the run.

        Raises:
            UnknownLoopError: the options give the width of a loop that the run does not have.
            InputError: malformed, or beyond a limit.
        """
        ...

    def index(self, graph: RunGraph) -> StepIndex:
        """Finds what the pods of the run are for.

        Args:
            graph: as `graph` has read it.
        """
        ...

    def outcome(self, graph: RunGraph, index: RunIndex) -> RunOutcome:
        """What happened to the steps, as the object says.

        Args:
            graph: as `graph` has read it.
            index: of the same graph.
        """
        ...


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run as last observed.

    Attributes:
        key: namespace and name.
        owner: the object that it is.
        submitted_at: time zero of its plans.
        state: how it is doing.
        content: what its graph, and what happened to its steps, are read from.
        display_name: what people call it; "" = by its key.
        is_marked: our mark is somewhere in it.
        all_marked: all steps of the pipeline count as marked, as its namespace asks.
    """

    key: RunKey
    owner: RunOwner
    submitted_at: datetime
    state: RunState
    content: RunContent
    display_name: str = ""
    is_marked: bool = True
    all_marked: bool = False

    @property
    def is_planned(self) -> bool:
        """Whether it gets a plan; without, at most its demand is of interest."""
        return self.is_marked or self.all_marked

    @property
    def uid(self) -> str:
        """A later run of the same key has another."""
        return self.owner.uid

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self.state.end is not None


class RunSource(Protocol):
    """Something that makes the pods of runs.

    One side reads its objects. The other reads pods alone, for callers that have a plan and no run.
    """

    @property
    def kind(self) -> Kind:
        """Of its objects."""
        ...

    @property
    def pod_marks(self) -> PodMarks:
        """What it reads in pods."""
        ...

    def observe(
        self, raw: Mapping[str, Any], *, all_pipelines: bool = False, unplanned: bool = False
    ) -> ObservedRun | None:
        """Read one of its objects; None = it gets no plan.

        Args:
            raw: the object.
            all_pipelines: if it is a pipeline, all its steps count as marked.
            unplanned: read it even if it gets no plan; one that cannot have one says so.

        Raises:
            InputError: it has no name, no uid or no time of creation; or, unless `unplanned`, it
                is malformed or too large.
        """
        ...

    def pipeline_end(self, raw: Mapping[str, Any]) -> datetime | None:
        """When one of its objects has ended; None = it goes on, or is not a pipeline."""
        ...

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """Which of its runs a pod is of; None = of none."""
        ...

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """The step that a pod of a run of its executes; None = none of these.

        Args:
            pod: any of its pods, drivers included.
            steps: names of the plan's steps.
        """
        ...


class RunSources:
    """All sources that a process has; a pod is of the first that knows it."""

    def __init__(self, *sources: RunSource) -> None:
        """Ask them in this order."""
        self._sources = sources
        self._marks = tuple(source.pod_marks for source in sources)

    def __iter__(self) -> Iterator[RunSource]:
        return iter(self._sources)

    def observe_pod(self, raw: Mapping[str, Any]) -> ObservedPod:
        """Keep what matters of a pod as the API server prints it, and what any source reads in it.

        Raises:
            InputError: it is malformed, or an amount in it is malformed.
        """
        return observe_pod(raw, self._marks)

    def is_unmarked_step(self, pod: Mapping[str, Any]) -> bool:
        """Whether a pod executes a step whose author says nothing of its scheduler.

        Args:
            pod: as the API server prints it.

        Raises:
            InputError: it is malformed.
        """
        return any(each.is_unmarked_step(Fields(pod, UNNAMED)) for each in self._marks)

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """Which run a pod is of; None = of none."""
        runs = (source.run_of(pod) for source in self._sources)
        return next((run for run in runs if run is not None), None)

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """The step that a pod executes; None = none of these.

        Args:
            pod: of a run.
            steps: names of the plan's steps.
        """
        for source in self._sources:
            if source.run_of(pod) is not None:
                return source.step_of(pod, steps)
        return None
