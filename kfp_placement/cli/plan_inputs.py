"""What `plan` was given -> the plan."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kfp_placement.cli.inputs import (
    LIVE,
    STDIN,
    check_sources,
    connect_live,
    read_cluster_source,
    read_package,
    read_past,
    usage_errors,
)
from kfp_placement.cli.live_options import Target
from kfp_placement.cli.progress import LiveLine

if TYPE_CHECKING:
    from kfp_placement.planning import GivenOptions, PlanRequest
    from kfp_placement_engine.model.changes import Change
    from kfp_placement_engine.model.objective import MakespanWithin
    from kfp_placement_engine.model.plan import Plan
    from kfp_placement_engine.model.progress import Progress
    from kfp_placement_engine.model.what_if import ChangedPlan, Suggestions


@dataclass(frozen=True)
class PlanInputs:
    """What was given to `plan`, as click parsed it; the fields are its options.

    None is what nobody asked for: the policy of the cluster says it, or the planner. `what_if` is
    changes to plan again with, or `parameters.BEST`; `at` is when the run is submitted.
    """

    run: str
    cluster: str | None
    arguments: dict[str, str]
    durations: dict[str, float]
    durations_file: Path | None
    loop_widths: dict[str, int]
    assume_cached: tuple[str, ...]
    namespace: str | None
    seed: int | None
    budget: float | None
    generations: int | None
    objective: str | None
    makespan_within: "MakespanWithin | None"
    dispatch: str | None
    kube_version: tuple[int, int]
    compare: tuple[str, ...]
    marked_only: bool
    what_if: "tuple[Change, ...] | str"
    history: str | None
    confidence: float | None
    at: datetime | None
    kubeconfig: Path | None = None
    context: str | None = None


@dataclass(frozen=True)
class PlannedRun:
    """What `plan` was asked for.

    Attributes:
        plan: the plan.
        answer: what changes would make of it, if somebody asked.
        past_runs: which ones it rests on, in words; "" = on none.
    """

    plan: "Plan"
    answer: "ChangedPlan | Suggestions | None"
    past_runs: str = ""


def make_plan(given: PlanInputs) -> PlannedRun:
    """Read, override, plan, and plan again after changes; with a live line on a terminal."""
    check_sources(given.run, given.cluster, given.history)
    target = Target(given.kubeconfig, given.context, given.namespace)
    live = connect_live(given.cluster, target, given.history)
    with LiveLine() as progress:
        # Before a cluster is asked: a wrong name is reported at once.
        package = read_package(given.run)
        is_live = given.cluster == LIVE
        cluster = read_cluster_source(given.cluster, progress, live if is_live else None)
        from kfp_placement.planning import (
            Overrides,
            RunSource,
            plan_request,
            read_graph,
            with_learned_widths,
        )
        from kfp_placement_engine.exceptions import ArgumentError, InputError, UnknownLoopError
        from kfp_placement_engine.planning.overrides import with_durations
        from kfp_placement_engine.readers.durations_file import read_durations_file

        options = _options(given)
        source = RunSource(package, given.arguments, given.loop_widths)
        with usage_errors(ArgumentError, UnknownLoopError):
            run = read_graph(source, cluster, options, progress)
        default_namespace = "" if live is None else live.namespace
        overrides = Overrides(
            given.durations, given.assume_cached, given.namespace, default_namespace
        )
        namespace = overrides.namespace_of(run) or run.namespace
        known = read_past(given.history, run.name, namespace, progress, live, cluster)
        run = with_learned_widths(run, known.past, source, cluster, options)
        if given.durations_file is not None:
            run = with_durations(run, read_durations_file(given.durations_file))
        run = known.noted_on(run)
        if is_live and live is not None and known.past is not None:
            from kfp_placement.live.queues import queue_notices

            queued = queue_notices(live.cluster, namespace or live.namespace)
            run = replace(run, notices=(*run.notices, *queued))
        overrides = replace(
            overrides,
            history=known.past,
            confidence=given.confidence,
            default_namespace=default_namespace or known.namespace,
        )
        with usage_errors(InputError):
            request = plan_request(run, cluster, overrides, options)
            # Before the search: what does not exist is reported at once.
            if given.what_if and isinstance(given.what_if, tuple):
                request.after(given.what_if)
        plan = replace(request.plan(progress), submitted_at=given.at)
        past_runs = known.text(run.name, _named(given.history))
        return PlannedRun(plan, _answer(request, plan, given.what_if, progress), past_runs)


def _named(history: str | None) -> str:
    """Where past runs are from; without a name they are those of the live cluster."""
    return "stdin" if history == STDIN else history or LIVE


def _answer(
    request: "PlanRequest",
    plan: "Plan",
    asked: "tuple[Change, ...] | str",
    progress: "Progress",
) -> "ChangedPlan | Suggestions | None":
    def told(share: float, text: str) -> None:
        progress(share, f"what if: {text}")

    if not isinstance(asked, tuple):
        return request.best_changes(plan, told)
    return request.what_if(plan, asked, told) if asked else None


def _options(given: PlanInputs) -> "GivenOptions":
    from kfp_placement.planning import GivenOptions

    return GivenOptions(
        budget_seconds=given.budget,
        generations=given.generations,
        seed=given.seed,
        dispatch=given.dispatch,
        objective=given.objective,
        makespan_within=given.makespan_within,
        kube_version=given.kube_version,
        compare=given.compare,
        marked_only=given.marked_only,
    )
