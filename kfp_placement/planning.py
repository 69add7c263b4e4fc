"""Plan a run before it starts: the one way that `preview`, `plan`, `check` and `demo` share.

`read_graph` reads the run for the cluster it is planned on. `plan_request` puts in what somebody
knows better and what the cluster's PlacementPolicy says; its request makes the plan. Needs no kfp,
and raises the engine's errors, which each caller tells in its own way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from kfp_placement._package import Package
from kfp_placement.remedies import with_remedies
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.objective import MakespanWithin
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.progress import Progress, no_progress
from kfp_placement_engine.model.promise import CONFIDENCE, RunForecast
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.overrides import (
    in_namespace,
    with_all_marked,
    with_cached,
    with_durations,
)
from kfp_placement_engine.planning.plan_options import PlanOptions, assumptions_of
from kfp_placement_engine.planning.plan_runs import plan_run
from kfp_placement_engine.planning.policy_options import (
    followed,
    options_on,
    with_type_defaults,
)
from kfp_placement_engine.readers import read_run
from kfp_placement_engine.readers.options import ReadOptions

# What plans again after changes is imported when somebody asks for it: most plans are made once.
if TYPE_CHECKING:
    from kfp_placement_engine.history import Past
    from kfp_placement_engine.model.changes import Change
    from kfp_placement_engine.model.history import LearnedWidth
    from kfp_placement_engine.model.what_if import ChangedPlan, Suggestions


@dataclass(frozen=True)
class RunSource:
    """A file that describes a run, and what the run is started with.

    Attributes:
        package: the file, as read.
        arguments: values of pipeline parameters.
        loop_widths: number of iterations by loop, where it is known only at run time.
    """

    package: Package
    arguments: Mapping[str, Any] = field(default_factory=dict)
    loop_widths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Overrides:
    """What somebody knows better than the run's file.

    Attributes:
        durations: run times by step, as `with_durations` takes them: "20m", or seconds.
        assume_cached: steps whose result is taken to be in KFP's cache.
        namespace: where the run goes; None = in its own.
        default_namespace: where it goes if neither says so; "" = nowhere in particular.
        history: what past runs of its namespace tell; None = nothing is asked of them.
        confidence: how often ranges made of that are to hold; None = as the policy says.
    """

    durations: Mapping[str, object] = field(default_factory=dict)
    assume_cached: Iterable[str] = ()
    namespace: str | None = None
    default_namespace: str = ""
    history: "Past | None" = None
    confidence: float | None = None

    def namespace_of(self, run: RunGraph) -> str | None:
        """Where the run goes; None = in its own."""
        if self.namespace is None and not run.namespace:
            return self.default_namespace or None
        return self.namespace


@dataclass(frozen=True)
class GivenOptions:
    """Options of planning that somebody has asked for; they win over the cluster's policy.

    The attributes are those of `PlanOptions`. None is what nobody asked for: the policy of the
    cluster says it, or the planner. What cannot be planned with is a `PlanningError` at once,
    before anything is read.
    """

    budget_seconds: float | None = None
    generations: int | None = None
    seed: int | None = None
    dispatch: str | None = None
    objective: str | None = None
    makespan_within: MakespanWithin | None = None
    kube_version: tuple[int, int] | None = None
    compare: tuple[str, ...] | None = None
    marked_only: bool | None = None
    assumptions: Assumptions | None = None

    def __post_init__(self) -> None:
        """Refuse values that cannot be planned with."""
        PlanOptions(**self.values())

    def values(self) -> dict[str, Any]:
        """Those that were asked for, by field of `PlanOptions`."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class PlanRequest:
    """A run, ready to be planned on a cluster.

    Attributes:
        run: the run as it is planned: with overrides, with run times that past runs tell, and with
            what the cluster's policy assumes of steps by their type.
        cluster: the cluster.
        options: how to plan: as asked for, else by the cluster's policy, else as usual.
        policy: what is taken from the policy, in its words: `objective: packing`.
        forecast: what past runs tell of the run; None = nobody asked.
    """

    run: RunGraph
    cluster: Cluster
    options: PlanOptions
    policy: tuple[str, ...] = ()
    forecast: RunForecast | None = None

    def plan(self, progress: Progress = no_progress, *, limits: bool = True) -> Plan:
        """Make the plan; it says what it took from the policy, and what lets steps onto a node.

        Args:
            progress: told how far planning is.
            limits: say what limits the run.

        Raises:
            PlanningError: a run without steps, or a cluster without nodes.
        """
        options = replace(self.options, limits=limits)
        plan = plan_run(self.run, self.cluster, options, progress, forecast=self.forecast)
        return with_remedies(replace(plan, policy=self.policy), self.run, self.cluster)

    def after(self, changes: "Iterable[Change]") -> "PlanRequest":
        """The request to plan the run as it is after changes.

        Raises:
            ChangeError: a node, image or claim that is not there; or no node is left.
            UnknownLoopError: a loop that the run does not have.
            UnknownStepError: a step that the run does not have.
        """
        from kfp_placement_engine.planning.applied_changes import with_changes

        run, cluster = with_changes(self.run, self.cluster, changes)
        return replace(self, run=run, cluster=cluster)

    def what_if(
        self, present: Plan, changes: "Sequence[Change]", progress: Progress = no_progress
    ) -> "ChangedPlan":
        """Plan the run as it is after changes, all of them together.

        Args:
            present: the plan that this request has made.
            changes: what changes.
            progress: told how far planning is.

        Raises:
            EngineError: as for `after`.
        """
        from kfp_placement_engine.planning.what_if import what_if

        options = replace(self.options, limits=True)
        answer = what_if(
            self.run, self.cluster, present, changes, options, progress, forecast=self.forecast
        )
        if answer.plan is present:
            return answer
        plan, after = replace(answer.plan, policy=self.policy), self.after(changes)
        return replace(answer, plan=with_remedies(plan, after.run, after.cluster))

    def best_changes(self, present: Plan, progress: Progress = no_progress) -> "Suggestions":
        """The single changes that make the run shorter.

        Args:
            present: the plan that this request has made.
            progress: told how far it is.
        """
        from kfp_placement_engine.planning.best_changes import best_changes

        return best_changes(self.run, self.cluster, present, self.options, progress)


def read_graph(
    source: RunSource,
    cluster: Cluster | None = None,
    options: GivenOptions | None = None,
    progress: Progress = no_progress,
    learned_widths: "Mapping[str, LearnedWidth] | None" = None,
) -> RunGraph:
    """Read a run; loops whose width nobody knows are as wide as the cluster's source assumes.

    Args:
        source: the run.
        cluster: where it is planned, if anywhere.
        options: how it is planned there.
        progress: told how far reading is.
        learned_widths: of loops, by their paths, as past runs tell; None = not known.

    Raises:
        ArgumentError: an argument that the run does not take, or of the wrong type.
        UnknownLoopError: a width of a loop that the run does not have, or has twice.
        InputError: the run cannot be read.
    """
    reading = ReadOptions(
        arguments=source.arguments,
        loop_widths=source.loop_widths,
        learned_widths=learned_widths or {},
        default_loop_width=_loop_width(cluster, options or GivenOptions()),
    )
    package = source.package
    return read_run(package.data, name=package.name, options=reading, progress=progress)


def with_learned_widths(
    run: RunGraph,
    past: "Past | None",
    source: RunSource,
    cluster: Cluster | None = None,
    options: GivenOptions | None = None,
) -> RunGraph:
    """The run, read again with the loop widths of past runs where nobody knows better.

    Args:
        run: as `read_graph` has read it.
        past: of its namespace; None = nothing is asked of past runs.
        source: the run.
        cluster: where it is planned, if anywhere.
        options: how it is planned there.

    Returns:
        As it was read, if past runs do not tell; with a warning, if it were too large with their
        widths.
    """
    if past is None:
        return run
    from kfp_placement_engine.planning.learned_courses import learned_widths, too_wide

    widths = learned_widths(run, past)
    if not widths:
        return run
    try:
        return read_graph(source, cluster, options, learned_widths=widths)
    except LimitError:
        return too_wide(run, widths)


def plan_request(
    run: RunGraph,
    cluster: Cluster,
    overrides: Overrides | None = None,
    options: GivenOptions | None = None,
) -> PlanRequest:
    """The request to plan a run on a cluster, by the cluster's policy if it has one.

    Args:
        run: as `read_graph` reads it.
        cluster: the cluster.
        overrides: what is known better than the run's file says.
        options: how to plan; what is asked for takes precedence over the policy.

    Raises:
        UnknownStepError: an override names a step that the run does not have.
        QuantityError: a duration is malformed.
        InputError: a step that is never cached, or no name of a namespace.
    """
    better = overrides or Overrides()
    given = (options or GivenOptions()).values()
    run = in_namespace(run, better.namespace_of(run))
    if run.namespace in cluster.all_pipelines:
        run = with_all_marked(run)
    run = with_cached(with_durations(run, better.durations), better.assume_cached)
    run, cluster, forecast = _with_history(run, better, cluster)
    planned_with, policy = options_on(cluster, given), cluster.policy
    if policy is None:
        return PlanRequest(run, cluster, planned_with, forecast=forecast)
    run = with_type_defaults(run, policy)
    return PlanRequest(run, cluster, planned_with, followed(policy, given), forecast)


def _with_history(
    run: RunGraph, better: Overrides, cluster: Cluster
) -> tuple[RunGraph, Cluster, RunForecast | None]:
    if better.history is None:
        return run, cluster, None
    # Here and not above: most plans are made without, and it takes long to import.
    from kfp_placement_engine.planning.learned_courses import left_out_notices
    from kfp_placement_engine.planning.learned_times import as_seen, with_history

    told = left_out_notices(run, better.history)
    run = replace(run, notices=(*run.notices, *told))
    policy = None if cluster.policy is None else cluster.policy.history
    stated = None if policy is None else policy.confidence
    learned = with_history(run, better.history, better.confidence or stated or CONFIDENCE)
    return learned.graph, as_seen(cluster, better.history, run.name), learned.forecast


def _loop_width(cluster: Cluster | None, options: GivenOptions) -> int:
    if cluster is None:
        return Assumptions.loop_width
    return assumptions_of(cluster, options_on(cluster, options.values())).loop_width
