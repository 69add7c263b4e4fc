"""A pipeline run as the planner sees it: steps, groups, claims, and what waits for what.

Readers make a `RunGraph`, whatever the file was; SDK, planner and controller use nothing else.
Everything here is frozen. Names follow one rule everywhere (SDK, plan, messages, metrics): the
dotted path of the task in the pipeline without `root`, with concrete loop indexes: `train`,
`inner.work-2`, `for-loop-1[0].print-text`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from typing_extensions import override

from kfp_placement_engine.model.concurrency import Branch, ConcurrencyLimit
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.pod_constraints import Labels, NodeAffinity, PodSelector, Toleration
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.units.resources import Resources


class StepKind(StrEnum):
    """Kinds of steps, by what runs them."""

    CONTAINER = "container"
    IMPORTER = "importer"
    CREATE_PVC = "createpvc"
    DELETE_PVC = "deletepvc"
    SUSPEND = "suspend"
    HTTP = "http"
    PLUGIN = "plugin"

    @property
    def has_pod(self) -> bool:
        """False for pauses, and for what Argo's agent does for the whole run."""
        return self not in (StepKind.SUSPEND, StepKind.HTTP, StepKind.PLUGIN)


class GroupKind(StrEnum):
    """Kinds of groups, by what they stand for in the pipeline."""

    ROOT = "root"
    DAG = "dag"
    LOOP = "loop"
    ITERATION = "iteration"


class DurationSource(StrEnum):
    """Sources of a step's duration; figures made of assumed ones are shown as such."""

    GIVEN = "given"
    HINT = "hint"
    HISTORY = "history"
    ASSUMED = "assumed"


def is_guess(source: DurationSource, basis: Basis | None) -> bool:
    """Return whether a run time is assumed, or rests on steps with little in common."""
    return source is DurationSource.ASSUMED or (basis is not None and basis.is_guess)


@dataclass(frozen=True)
class DataInput:
    """Data that a step reads.

    Attributes:
        producer: name of the step that wrote it, or "" for data from outside the run.
        key: output name at the producer, or the input's own name for data from outside.
        size_bytes: size where it is known.
    """

    producer: str
    key: str
    size_bytes: int | None = None


@dataclass(frozen=True)
class RunClaim:
    """A volume claim used by steps of the run.

    Attributes:
        name: claim name; for one that the run creates, a name unique in the graph.
        access_modes: modes as written (`ReadWriteOnce`, ...); empty = unknown, to be looked up in
            the cluster.
        created_by: the createpvc step that makes it, or "" (an existing claim, or the run's
            workspace).
        is_workspace: the KFP workspace, made for the run before its first step.
        usage: amounts that ResourceQuotas count for it, by their names, if the run makes it.
    """

    name: str
    access_modes: tuple[str, ...] = ()
    created_by: str = ""
    is_workspace: bool = False
    usage: Resources = field(default_factory=dict)


class StartLimit(NamedTuple):
    """Limit of the time until a step's pod runs, by the workflow engine.

    Attributes:
        seconds: time from the creation of the step's node in the Workflow, with the waits for gate,
            quota and image.
        setting: setting that gives the limit, such as `pendingTimeout`.
    """

    seconds: float
    setting: str

    @override
    def __str__(self) -> str:
        """Return what happens to a step that does not keep the limit."""
        limit = format_duration(self.seconds)
        return f"Argo fails it unless it runs within {limit} ({self.setting})"


class EndLimit(NamedTuple):
    """Limit of the time for which a pod, or a whole run, may last before it is killed.

    Attributes:
        seconds: time from the start of the pod on its node, with the image pull; of a run, from its
            submission.
        setting: setting that gives the limit, such as `activeDeadlineSeconds`.
    """

    seconds: float
    setting: str


class ContainerAmounts(NamedTuple):
    """Amounts that one container of a pod states.

    Attributes:
        requests: requests, limits where there are only those.
        limits: limits.
    """

    requests: Resources
    limits: Resources


class Retry(NamedTuple):
    """Rules of a step's retries, beside their number.

    Attributes:
        policy: Argo's policy, such as `OnFailure`; "" = the one in the cluster's defaults.
        on_other_nodes: whether each attempt runs on a node on which none has failed.
    """

    policy: str = ""
    on_other_nodes: bool = False


# With more than 30 fields, each step without slots would have a dict of 2 KB for itself.
@dataclass(frozen=True, slots=True)
class Step:
    """One pod's worth of work: a step of one iteration.

    Attributes:
        name: dotted path of the task with loop indexes, such as `for-loop-1[0].print-text`.
        task: the step as a whole, `[*]` in place of the loop indexes.
        kind: kind of its pod.
        group: name of the group it is in ("" is the root group).
        iteration: loop indexes, outermost first.
        assumed: the iteration exists only because a loop's width was assumed.
        conditions: condition expressions it depends on, outermost first; not empty = conditional.
        branches: branches that it is in, outermost first; steps in different branches of one
            choice never run in the same run.
        after_failure: whether it runs only if other steps have failed, so that a run that goes well
            ends without it.
        inside: author's names for the branches and loops that it is in, outermost first; those
            without such a name are left out.
        exit_task: whether it runs after its group, even a failed one; nothing waits for it.
        display_name: the author's name for it, or "".
        image: image of the main container, or "" where unknown.
        image_bytes: size of the image as the step states it; None = it does not.
        component: digest of what it runs (image, command, arguments as the component states them),
            "" where unknown.
        iteration_key: digest of the loop items that it is for, or of their indexes where the items
            are known only at run time; "" outside loops.
        requests: the main container's requests (limits where there are only limits), canonical
            units.
        containers: amounts of each container that runs to the end of the pod, without those that
            KFP and Argo add; empty = they are not in the file.
        unknown_resources: resources whose amount is known only at run time.
        labels: pod labels set by the author.
        annotations: pod annotations set by the author.
        type: value of the type label (or ""), as written.
        location: value of the location label (or ""), as written.
        scheduler: value of the scheduler mark, or "" (not marked).
        unplanned: whether its author leaves it to the default scheduler in every namespace.
        type_guessed: the type was guessed from the name.
        duration_seconds: run time on the reference node; None = unknown.
        duration_source: origin of the duration.
        duration_basis: past runs that the duration rests on; None = none.
        output_bytes: sizes of outputs, by name, where known.
        inputs: data read; sizes filled from the producer's outputs or the step's own hints.
        arguments: numeric arguments that are known before the run, a few, by and in the order of
            their names.
        max_latency_ms: hard limit of the round trip to the location.
        priority: importance of the run among others, as said of this step; the largest of a run's
            steps counts.
        queue: name of the RunQueue in which the run waits, as said of this step, or "".
        workers: pods that the step makes itself while it runs, by what they request.
        node_selector: labels that a node must have.
        affinity: node affinity.
        apart_from: selectors of pods beside which its pod may not be on a node.
        tolerations: tolerated taints.
        claims: volume claims it mounts.
        start_limit: limit of the time until its pod runs; None = there is none, or it is not known.
        end_limit: limit of the time that its pod may take; None = none, or it is not known.
        depends_on: names of the steps that must have ended before, flattened to leaves, sorted.
        attempt_limit: largest number of attempts (1 = no retry).
        retry: rules of its retries.
        caching_enabled: whether its result may come from the cache.
        has_driver: a KFP driver pod runs before it.
        assumed_cached: whether a cache hit is assumed: its driver runs, its own pod is never made.
        refusal: reason why it cannot run, whatever the nodes, such as a pod that Kubernetes
            refuses; "" = none is known.
    """

    name: str
    task: str
    kind: StepKind = StepKind.CONTAINER
    group: str = ""
    iteration: tuple[int, ...] = ()
    assumed: bool = False
    conditions: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    after_failure: bool = False
    inside: tuple[str, ...] = ()
    exit_task: bool = False
    display_name: str = ""
    image: str = ""
    image_bytes: int | None = None
    component: str = ""
    iteration_key: str = ""
    requests: Resources = field(default_factory=dict)
    containers: tuple[ContainerAmounts, ...] = ()
    unknown_resources: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    type: str = ""
    location: str = ""
    scheduler: str = ""
    unplanned: bool = False
    type_guessed: bool = False
    duration_seconds: float | None = None
    duration_source: DurationSource = DurationSource.ASSUMED
    duration_basis: Basis | None = None
    output_bytes: Mapping[str, int] = field(default_factory=dict)
    inputs: tuple[DataInput, ...] = ()
    arguments: Mapping[str, float] = field(default_factory=dict)
    max_latency_ms: float | None = None
    priority: int = 0
    queue: str = ""
    workers: tuple[PodGroup, ...] = ()
    node_selector: Labels = field(default_factory=dict)
    affinity: NodeAffinity = field(default_factory=NodeAffinity)
    apart_from: tuple[PodSelector, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    claims: tuple[str, ...] = ()
    start_limit: StartLimit | None = None
    end_limit: EndLimit | None = None
    depends_on: tuple[str, ...] = ()
    attempt_limit: int = 1
    retry: Retry = field(default_factory=Retry)
    caching_enabled: bool = False
    has_driver: bool = False
    assumed_cached: bool = False
    refusal: str = ""

    @property
    def needs_pod(self) -> bool:
        """True if a pod is made for it, False for a pause or a step assumed to be cached."""
        return self.kind.has_pod and not self.assumed_cached

    @property
    def is_guessed(self) -> bool:
        """True if its run time is assumed, or rests on steps that have little in common with it."""
        return is_guess(self.duration_source, self.duration_basis)

    @property
    def is_conditional(self) -> bool:
        """True if the step runs only if conditions hold, or after a failure."""
        return bool(self.conditions) or self.after_failure

    @property
    def input_bytes(self) -> int | None:
        """Size of all its inputs together; None = it has none, or one of unknown size."""
        sizes = [each.size_bytes for each in self.inputs]
        stated = [size for size in sizes if size is not None]
        return sum(stated) if sizes and len(stated) == len(sizes) else None


def uncounted_waits(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps without pod whose time nobody states, so that it counts as 0."""
    for step in steps:
        if not step.kind.has_pod and step.duration_seconds is None:
            yield step


@dataclass(frozen=True)
class Group:
    """Steps that belong together; most have a driver pod, which runs before any of them.

    Attributes:
        name: path as for steps (`for-loop-1`, `for-loop-1[0]`); "" is the root.
        kind: meaning of the group in the pipeline.
        parent: name of the enclosing group; the root's is "".
        depends_on: steps that must have ended before the group's own driver starts, sorted.
        parallelism: largest number of iterations of a loop that run at once; 0 = no limit.
        width: number of iterations of a loop in this graph.
        width_assumed: the width is an assumption.
        learned_width: width by past runs that the assumption rests on; None = none.
        display_name: author's name for a loop, or "".
        has_driver: whether a driver pod of its own runs before it.
    """

    name: str
    kind: GroupKind
    parent: str = ""
    depends_on: tuple[str, ...] = ()
    parallelism: int = 0
    width: int = 0
    width_assumed: bool = False
    learned_width: LearnedWidth | None = None
    display_name: str = ""
    has_driver: bool = True


OUTLINE = "outline"
"""Word for the basis of a plan whose run says neither requests nor images of its steps."""


@dataclass(frozen=True)
class RunGraph:
    """A whole run.

    Attributes:
        name: the pipeline's or Workflow's name.
        source: `kfp-package`, `argo-workflow` or `wfformat`.
        steps: all steps, each after those that it depends on.
        groups: parents first; empty where no driver pods run (wfformat, plain Argo Workflows).
        claims: volume claims of the run.
        limits: limits of what may be under way at once, beside the `parallelism` of groups.
        end_limit: limit of the time that the run may take, exit tasks excluded; None = none.
        notices: warnings of the reader for people.
        direct_transfers: data moves from node to node (workflow formats) instead of through the
            object store.
        namespace: namespace of the Workflow, or "".
        run_id: KFP run id, or "".
        workflow: name of the Argo Workflow object, or "".
        left_out: branch of each task that surely does not run (`branch full`), by name.
        is_outline: whether requests and images of its container steps are not in the file; see
            `readers.argo`.
    """

    name: str
    source: str
    steps: tuple[Step, ...]
    groups: tuple[Group, ...] = ()
    claims: tuple[RunClaim, ...] = ()
    limits: tuple[ConcurrencyLimit, ...] = ()
    end_limit: EndLimit | None = None
    notices: tuple[Notice, ...] = ()
    direct_transfers: bool = False
    namespace: str = ""
    run_id: str = ""
    workflow: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    is_outline: bool = False

    @property
    def is_kfp(self) -> bool:
        """True for a package of KFP 2, or a Workflow that KFP's backend made of one."""
        return self.source == "kfp-package" or any(group.has_driver for group in self.groups)

    def step(self, name: str) -> Step:
        """Return the step of that name.

        Raises:
            KeyError: there is none.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)
