"""What `plan` was asked for -> the plan."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.inputs import check_sources, connect_live, read_cluster_source, read_package
from kfp_placement.cli.live_options import Target
from kfp_placement.cli.progress import LiveLine
from kfp_placement.report.visible import visible

if TYPE_CHECKING:
    from kfp_placement._package import Package
    from kfp_placement_engine.model.plan import Plan
    from kfp_placement_engine.model.run_graph import RunGraph
    from kfp_placement_engine.planning.plan_runs import Progress


@dataclass(frozen=True)
class PlanRequest:
    """What was asked for, as click parsed it; the fields are the options of `plan`.

    None is what nobody asked for: the policy of the cluster says it, or the planner.
    """

    run: str
    cluster: str
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
    dispatch: str | None
    kube_version: tuple[int, int]
    compare: tuple[str, ...]
    marked_only: bool
    kubeconfig: Path | None = None
    context: str | None = None

    def given_options(self) -> dict[str, Any]:
        """What was asked for, by field of the planner's `PlanOptions`."""
        options = {
            "budget_seconds": self.budget,
            "generations": self.generations,
            "seed": self.seed,
            "dispatch": self.dispatch,
            "objective": self.objective,
            "kube_version": self.kube_version,
            "compare": self.compare,
            "marked_only": self.marked_only,
        }
        return {name: value for name, value in options.items() if value is not None}


def make_plan(request: PlanRequest) -> "Plan":
    """Read, override, plan; with a live line on a terminal."""
    check_sources(request.run, request.cluster)
    target = Target(request.kubeconfig, request.context, request.namespace)
    live = connect_live(request.cluster, target)
    with LiveLine() as progress:
        # Before a cluster is asked: a name that is wrong is told at once.
        package = read_package(request.run)
        cluster = read_cluster_source(request.cluster, progress, live)
        from kfp_placement_engine.planning.overrides import in_namespace
        from kfp_placement_engine.planning.plan_runs import assumptions_of
        from kfp_placement_engine.planning.policy_options import options_on, plan_on

        given = request.given_options()
        width = assumptions_of(cluster, options_on(cluster, given)).loop_width
        graph = _graph(request, package, width, progress)
        if live is not None and not graph.namespace:
            graph = in_namespace(graph, live.namespace)
        return plan_on(graph, cluster, given, progress)


def _graph(
    request: PlanRequest, package: "Package", loop_width: int, progress: "Progress"
) -> "RunGraph":
    from kfp_placement_engine.exceptions import ArgumentError, UnknownLoopError
    from kfp_placement_engine.planning.overrides import in_namespace, with_durations
    from kfp_placement_engine.readers import read_run
    from kfp_placement_engine.readers.durations_file import read_durations_file
    from kfp_placement_engine.readers.options import ReadOptions

    options = ReadOptions(
        arguments=request.arguments,
        loop_widths=request.loop_widths,
        default_loop_width=loop_width,
    )
    try:
        graph = read_run(package.data, name=package.name, options=options, progress=progress)
    except (ArgumentError, UnknownLoopError) as error:
        raise click.UsageError(visible(str(error))) from error
    graph = in_namespace(graph, request.namespace)
    if request.durations_file is not None:
        graph = with_durations(graph, read_durations_file(request.durations_file))
    return _overridden(graph, request)


def _overridden(graph: "RunGraph", request: PlanRequest) -> "RunGraph":
    """Apply what stands on the command line; a step that the run lacks is a usage error there."""
    from kfp_placement_engine.exceptions import InputError
    from kfp_placement_engine.planning.overrides import with_cached, with_durations

    try:
        return with_cached(with_durations(graph, request.durations), request.assume_cached)
    except InputError as error:
        raise click.UsageError(visible(str(error))) from error
