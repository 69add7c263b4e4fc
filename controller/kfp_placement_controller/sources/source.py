"""A source of runs: a workflow engine whose objects are read as runs, and whose pods are matched.

The rest of the controller knows these protocols only, and no workflow engine.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from kfp_placement_controller.observed.pods import ObservedPod, PodKeys, observe_pod
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.contract.shared_parts import OwnerReference
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import UNNAMED
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, RunIndex, RunOutcome
from kfp_placement_kube.kinds import JsonObject, Kind

OTHER_PACKAGE = "other-package"
"""Code of the notice that a package is not of the run, which is read without it."""


class RunEnd(StrEnum):
    """Outcome of a run that has ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class RunState:
    """State of a run, as its object says.

    Attributes:
        blocked: reason why no pods are made for the run now; "" = the workflow engine makes them.
        idle: reason why the run has no pods, if it has none a while after its submission; "" = the
            workflow engine has begun it.
        started_at: start of the run, also of one that was blocked then; None = it has not
            started.
        finished_at: end of the run; None = it has not ended, or its object gives no time.
        end: outcome of the run; None = it has not ended.
        unreadable: reason why the outcome of its steps is not known; "" = it is known.
    """

    blocked: str = ""
    idle: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    end: RunEnd | None = None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class RunOwner:
    """The object of a run in the cluster, in the run's namespace; it owns the PipelinePlacement.

    Attributes:
        kind: kind of the object.
        name: name of the object.
        uid: uid of the object.
    """

    kind: Kind
    name: str
    uid: str

    def reference(self, *, block_owner_deletion: bool | None = None) -> OwnerReference:
        """Return the owner reference that other objects of the run have to this object."""
        return OwnerReference(
            api_version=self.kind.api_version,
            kind=self.kind.kind,
            name=self.name,
            uid=self.uid,
            block_owner_deletion=block_owner_deletion,
        )


class PodRun(NamedTuple):
    """The run that a pod says it belongs to; its namespace is the pod's own.

    Attributes:
        key: namespace and name of the run.
        uid: uid of the run's object.
    """

    key: RunKey
    uid: str


class StepIndex(RunIndex, Protocol):
    """Finder of the step or group that a pod of one run is for, and of its role there."""

    def of_pod(self, pod: ObservedPod) -> PodIdentity | None:
        """Return the step or group of a pod and its role, or None if it is of another run."""
        ...


class PackageState(NamedTuple):
    """State of the package of a run whose object is only an outline.

    Attributes:
        reason: `READ`, or the cause why it has not been read.
        message: sentence about the cause; "" = there is none.
    """

    reason: ConditionReason
    message: str = ""

    @property
    def is_read(self) -> bool:
        """True if the content of the run has its package."""
        return self.reason is ConditionReason.READ


class TemplateKey(NamedTuple):
    """Key of an object whose templates runs refer to.

    Attributes:
        kind: kind of the object, by its name.
        namespace: namespace of the object; "" = its kind has none.
        name: name of the object.
    """

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ObservedTemplates:
    """The templates of an object, which runs of its namespace, or of all, refer to.

    Attributes:
        document: JSON of the object's templates.
        refers_to: keys of the objects that these templates refer to in turn.
    """

    document: bytes
    refers_to: frozenset[TemplateKey]


class RunContent(Protocol):
    """The part of a run's object that a source keeps; equal parts describe equal runs."""

    def is_rewritten(self, since: "RunContent") -> bool:
        """Return whether what the run is to do is described otherwise than in `since`."""
        ...

    @property
    def size(self) -> int:
        """Bytes that are read for the graph."""
        ...

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept in memory for this run alone."""
        ...

    @property
    def is_forgotten(self) -> bool:
        """True if the content is no longer kept, so that nothing can be read from it."""
        ...

    def forget(self) -> None:
        """Give the memory back, until the object changes."""
        ...

    def with_package(self, package: bytes) -> "RunContent":
        """Return the content of a run that is read together with its package.

        Args:
            package: JSON of the pipeline's specification; b"" = the object is read alone.
        """
        ...

    def with_templates(self, templates: tuple[bytes, ...]) -> "RunContent":
        """Return the content of a run that is read together with templates of other objects.

        Args:
            templates: documents of `ObservedTemplates`.
        """
        ...

    def graph(self, options: ReadOptions) -> RunGraph:
        """Read the graph of the run's steps.

        Raises:
            UnknownLoopError: the options give the width of a loop that the run does not have.
            InputError: the object is malformed, or beyond a limit.
        """
        ...

    def index(self, graph: RunGraph) -> StepIndex:
        """Return the index that tells the step of each pod of the run.

        Args:
            graph: result of `graph`.
        """
        ...

    def outcome(self, graph: RunGraph, index: RunIndex) -> RunOutcome:
        """Read the outcome of each step from the object.

        Args:
            graph: result of `graph`.
            index: result of `index` for the same graph.
        """
        ...


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run as last observed.

    Attributes:
        key: namespace and name.
        owner: object of the run in the cluster.
        submitted_at: submission time; plans count their seconds from it.
        state: state of the run, as its object says.
        content: part of the object with the graph and the outcome of its steps.
        display_name: name that people gave the run; "" = they gave none.
        is_marked: whether our mark is somewhere in the object.
        all_marked: whether all steps count as marked, because the namespace asks for it.
        package_id: id of the run at KFP's API, which has the package; None = the object holds the
            whole run, or names no such id.
        package: whether that package has been read; None = nobody has looked for one.
        refers_to: keys of other objects that steps of the run are in.
    """

    key: RunKey
    owner: RunOwner
    submitted_at: datetime
    state: RunState
    content: RunContent
    display_name: str = ""
    is_marked: bool = True
    all_marked: bool = False
    package_id: str | None = None
    package: PackageState | None = None
    refers_to: frozenset[TemplateKey] = frozenset()

    @property
    def is_planned(self) -> bool:
        """Return whether the run gets a plan; of others at most the demand matters."""
        return self.is_marked or self.all_marked

    @property
    def uid(self) -> str:
        """Uid of the run's object; a later run with the same key has another."""
        return self.owner.uid

    @property
    def as_pods_name_it(self) -> PodRun:
        """The run as its pods name it."""
        return PodRun(self.key, self.uid)

    @property
    def ended(self) -> bool:
        """Return whether the run has ended."""
        return self.state.end is not None


class RunSource(Protocol):
    """A workflow engine that makes the pods of runs.

    Some methods read its objects. Others read a pod alone, for callers that have a plan and no run.
    """

    @property
    def kind(self) -> Kind:
        """Kind of the objects that are its runs."""
        ...

    @property
    def pod_keys(self) -> PodKeys:
        """Labels, annotations and containers that the source needs of a pod."""
        ...

    @property
    def template_kinds(self) -> Mapping[Kind, Callable[[JsonObject], ObservedTemplates]]:
        """Kinds of objects whose templates its runs refer to, each with its reader."""
        ...

    def observe(
        self, raw: JsonObject, *, all_pipelines: bool = False, unplanned: bool = False
    ) -> ObservedRun | None:
        """Read the object of a run; None = the run gets no plan.

        Args:
            raw: the object.
            all_pipelines: whether all steps count as marked, if the object is a pipeline.
            unplanned: whether to read runs that get no plan as well. The content of a run that
                cannot be planned then says why.

        Raises:
            InputError: it has no name, no uid or no time of creation; or, unless `unplanned`, it
                is malformed or too large.
        """
        ...

    def pipeline_end(self, raw: JsonObject) -> datetime | None:
        """Return the end of a pipeline's run; None = it has not ended, or is not a pipeline."""
        ...

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """Return the run of this source that a pod belongs to, or None if there is none."""
        ...

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """Return the step that a pod of this source executes; None = none of `steps`.

        Args:
            pod: pod of a run of this source; it may be a driver.
            steps: names of the plan's steps.
        """
        ...


class RunSources:
    """The sources of a process; a pod belongs to the first one that knows it."""

    def __init__(self, *sources: RunSource) -> None:
        """Keep the sources in the order in which they are asked about a pod."""
        self._sources = sources
        self._keys = tuple(source.pod_keys for source in sources)

    def __iter__(self) -> Iterator[RunSource]:
        return iter(self._sources)

    def observe_pod(self, raw: JsonObject) -> ObservedPod:
        """Slim a pod as the API server prints it to what plans and the sources need.

        Raises:
            InputError: it is malformed, or an amount in it is malformed.
        """
        return observe_pod(raw, self._keys)

    def is_unmarked_step(self, pod: JsonObject) -> bool:
        """Return whether a pod executes a step whose author names no scheduler.

        Args:
            pod: the pod as the API server prints it.

        Raises:
            InputError: it is malformed.
        """
        return any(each.is_unmarked_step(Fields(pod, UNNAMED)) for each in self._keys)

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """Return the run that a pod belongs to, or None if it belongs to none."""
        runs = (source.run_of(pod) for source in self._sources)
        return next((run for run in runs if run is not None), None)

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """Return the step that a pod executes; None = none of `steps`.

        Args:
            pod: the pod, of any source.
            steps: names of the plan's steps.
        """
        for source in self._sources:
            if source.run_of(pod) is not None:
                return source.step_of(pod, steps)
        return None
