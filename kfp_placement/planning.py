"""Plan a run before it starts: one request and one use case for `preview`, `plan`, `check`, `demo`.

Each caller reads what it was given into a `PlanRequest`. `prepare` completes the run that it means,
and `planned` also plans it. Needs no kfp, and raises the engine's errors, which each caller tells
in its own way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kfp_placement._input_file import InputFile, RunFolder
from kfp_placement.clusters.reading import KnownCluster
from kfp_placement.histories import HistorySource, LoadedPast, read_past
from kfp_placement.live.run_templates import TemplateSources
from kfp_placement.prepared_run import PreparedRun
from kfp_placement_engine.exceptions import InputError, LimitError, UnknownStepError
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.given_values import (
    in_namespace,
    with_all_marked,
    with_cached,
    with_durations,
    with_refusals,
)
from kfp_placement_engine.planning.plan_options import assumptions_of
from kfp_placement_engine.planning.policy_options import followed, options_on, with_type_defaults
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.readers.run_files import read_pipeline, read_run, read_run_among
from kfp_placement_engine.readers.tree.options import ArgoObjects, ReadOptions

if TYPE_CHECKING:
    from kfp_placement_engine.model.history import LearnedWidth
    from kfp_placement_engine.plans.what_if import ChangedPlan, Suggestions
    from kfp_placement_engine.plans.what_if_changes import Change


@dataclass(frozen=True)
class PlanRequest:
    """Request to plan or check a run before it starts; all but the file has defaults.

    Attributes:
        run_file: the file or folder that describes the run, as read.
        where: the cluster to plan on; None = none, where a run is only checked.
        package: the package of the run, where `run_file` is a Workflow without it; None = none.
        templates: sources of the templates that a run of Argo refers to.
        entrypoint: template that a run of Argo begins with; "" = the one that it names itself.
        arguments: values of pipeline parameters.
        loop_widths: number of iterations by loop, where it is known only at run time.
        branches: whether a branch is taken whose condition is known only at run time, by branch.
        semaphores: limits of semaphores of Argo, by `ConfigMap/key`.
        durations: run times by step, as `with_durations` takes them: "20m", or seconds.
        durations_file: a file of run times by step; `durations` win over them.
        assume_cached: steps whose result is taken to be in KFP's cache.
        namespace: namespace of the run; None = its own, else the cluster's, else the history's.
        history: source of past runs.
        confidence: share of cases in which ranges by past runs hold; None = as the policy says.
        options: fields of `PlanOptions` by name; they win over the cluster's policy. None is what
            nobody asked for.
        changes: changes to plan again with.
        best_changes: whether to find the single changes that help most, instead of `changes`.
    """

    run_file: InputFile | RunFolder
    where: KnownCluster | None = None
    package: InputFile | None = None
    templates: TemplateSources = field(default_factory=TemplateSources)
    entrypoint: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    loop_widths: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, bool] = field(default_factory=dict)
    semaphores: Mapping[str, int] = field(default_factory=dict)
    durations: Mapping[str, object] = field(default_factory=dict)
    durations_file: Path | None = None
    assume_cached: Iterable[str] = ()
    namespace: str | None = None
    history: HistorySource = field(default_factory=HistorySource)
    confidence: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: "tuple[Change, ...]" = ()
    best_changes: bool = False

    @property
    def cluster(self) -> Cluster:
        """The cluster; without nodes where there is none."""
        return Cluster(()) if self.where is None else self.where.cluster

    @property
    def asked_options(self) -> dict[str, Any]:
        """The options that somebody has asked for."""
        return {name: value for name, value in self.options.items() if value is not None}

    def namespace_of(self, run: RunGraph, past_namespace: str = "") -> str:
        """Return where the run goes; "" = nobody says."""
        if self.namespace is not None:
            return self.namespace
        usual = "" if self.where is None else self.where.namespace
        return run.namespace or usual or past_namespace


@dataclass(frozen=True)
class PlanAnswer:
    """The answer to a request.

    Attributes:
        plan: the plan.
        prepared: run that was planned, to plan again after changes.
        answer: answer to the request's changes; None = there are none.
    """

    plan: Plan
    prepared: PreparedRun
    answer: "ChangedPlan | Suggestions | None" = None


def planned(request: PlanRequest, progress: Progress = no_progress) -> PlanAnswer:
    """Read, complete and plan a run, and plan again after the changes of the request.

    Args:
        request: request to answer.
        progress: callback for the progress of planning.

    Raises:
        EngineError: as for `prepare`, and for `PreparedRun.plan` and `.after`.
        ClusterError: the live cluster refuses, or gives no answer.
    """
    prepared, changes = prepare(request, progress), request.changes
    prepared = replace(prepared, run=with_refusals(prepared.run))
    api = None if request.where is None else request.where.api
    # The notice is about ends: those by past runs count from the start, and other plans have none.
    if api is not None and prepared.known_past.past is not None:
        from kfp_placement.live.queues import queue_notices

        queued = queue_notices(api, prepared.run.namespace or api.namespace)
        prepared = replace(prepared, run=_noted(prepared.run, queued))
    if changes:
        # Before the search: what does not exist is reported at once.
        prepared.after(changes)
    plan = prepared.plan(progress)

    def tell(share: float, text: str) -> None:
        progress(share, f"what if: {text}")

    if request.best_changes:
        return PlanAnswer(plan, prepared, prepared.best_changes(plan, tell))
    return PlanAnswer(plan, prepared, prepared.what_if(plan, changes, tell) if changes else None)


def prepare(request: PlanRequest, progress: Progress = no_progress) -> PreparedRun:
    """Read and complete a run.

    Args:
        request: request to answer.
        progress: callback for the progress of reading.

    Raises:
        RequestError: what is asked for does not go with the run.
        InputError: the run, the history or the file of run times cannot be read.
        ClusterError: the live cluster refuses, gives no answer, or has no histories.
    """
    run = _read(request, progress)
    namespace = request.namespace_of(run)
    past = read_past(request.history, run.name, namespace, request.cluster, progress)
    return completed(request, _with_learned_widths(request, run, past), past)


def completed(request: PlanRequest, run: RunGraph, past: LoadedPast) -> PreparedRun:
    """Put into a run what is known better than its file says, and what the policy says.

    Args:
        request: request to answer.
        run: the run that it means, as read.
        past: knowledge of past runs.

    Raises:
        RequestError: what is asked for does not go with the run.
        InputError: the file of run times cannot be read, or is of other steps.
    """
    cluster, given = request.cluster, request.asked_options
    as_read = _as_asked(request, run, past)
    policy = cluster.policy
    run, forecast = _with_stand_ins(as_read, policy, past), None
    if cluster.quotas or cluster.limit_ranges:
        from kfp_placement_engine.planning.hindrances.quotas import with_namespace_rules

        run = with_namespace_rules(run, cluster)
    if past.past is not None:
        # Here and not above: most plans are made without, and it takes long to import.
        from kfp_placement_engine.planning.past_runs.learned_times import with_history
        from kfp_placement_engine.planning.past_runs.learned_widths import left_out_notices

        stated = None if policy is None or policy.history is None else policy.history.confidence
        run = _noted(run, left_out_notices(run, past.past))
        learned = with_history(run, past.past, request.confidence or stated or CONFIDENCE)
        run, forecast = learned.graph, learned.forecast
    followed_policy = tuple[str, ...]()
    if policy is not None:
        run, followed_policy = with_type_defaults(run, policy), followed(policy, given)
    options = options_on(cluster, given)
    return PreparedRun(as_read, run, cluster, options, followed_policy, past, forecast)


def _with_stand_ins(run: RunGraph, policy: PlanningPolicy | None, past: LoadedPast) -> RunGraph:
    """Return an outline with assumed requests and images; any other run as it is."""
    if not run.is_outline:
        return run
    # Here and not above: most runs say what they request.
    from kfp_placement_engine.planning.stand_ins import (
        NO_CONTAINERS,
        past_containers,
        with_stand_ins,
    )

    last = NO_CONTAINERS if past.past is None else past_containers(run, past.past)
    return with_stand_ins(run, policy or PlanningPolicy(), last)


def _as_asked(request: PlanRequest, run: RunGraph, past: LoadedPast) -> RunGraph:
    """Return the run with the namespace, marks, run times and cached steps that were asked for."""
    run = _noted(_with_durations_file(run, request.durations_file), past.notices)
    namespace = request.namespace_of(run, past.namespace)
    if namespace != run.namespace:
        run = in_namespace(run, namespace)
    if run.namespace in request.cluster.all_pipelines:
        run = with_all_marked(run)
    return with_cached(with_durations(run, request.durations), request.assume_cached)


def _read(
    request: PlanRequest,
    progress: Progress = no_progress,
    learned_widths: "Mapping[str, LearnedWidth] | None" = None,
) -> RunGraph:
    """Read a run; loops whose width nobody knows are as wide as the cluster's source assumes."""
    cluster, run_file, package = request.cluster, request.run_file, request.package
    pipeline = None
    if package is not None:
        pipeline = read_pipeline(package.data, name=package.name, progress=progress)
    reading = ReadOptions(
        arguments=request.arguments,
        loop_widths=request.loop_widths,
        branches=request.branches,
        semaphores=request.semaphores,
        learned_widths=learned_widths or {},
        package=pipeline,
        templates=_templates(request),
        entrypoint=request.entrypoint,
        default_loop_width=assumptions_of(
            cluster, options_on(cluster, request.asked_options)
        ).loop_width,
    )
    if isinstance(run_file, RunFolder):
        return read_run_among(run_file.objects, run_file.name, reading)
    return read_run(run_file.data, name=run_file.name, options=reading, progress=progress)


def _templates(request: PlanRequest) -> ArgoObjects:
    """Return the templates beside a run; to fetch them, the run is read twice."""
    run_file, sources = request.run_file, request.templates
    if sources.api is None:
        return sources.given
    if isinstance(run_file, RunFolder):
        objects = run_file.objects.objects
    else:
        from kfp_placement_engine.readers.argo_files import argo_objects

        objects = tuple(argo_objects(run_file.data, run_file.name))
    return sources.beside(objects, request.namespace or "")


def _with_learned_widths(request: PlanRequest, run: RunGraph, past: LoadedPast) -> RunGraph:
    """Read the run again with the loop widths of past runs, where nobody knows better.

    With those of past runs it may be too large: then it is planned as if they were not known.
    """
    if past.past is None:
        return run
    from kfp_placement_engine.planning.past_runs.learned_widths import learned_widths

    widths = learned_widths(run, past.past)
    if not widths:
        return run
    try:
        return _read(request, learned_widths=widths)
    except LimitError:
        return run


def _with_durations_file(run: RunGraph, file: Path | None) -> RunGraph:
    if file is None:
        return run
    from kfp_placement_engine.readers.durations_file import read_durations_file

    try:
        return with_durations(run, read_durations_file(file))
    except UnknownStepError as error:
        # The file is wrong, and not what is asked for.
        raise InputError(f"{file}: {error}") from error


def _noted(run: RunGraph, notices: Iterable[Notice]) -> RunGraph:
    return replace(run, notices=(*run.notices, *notices))
