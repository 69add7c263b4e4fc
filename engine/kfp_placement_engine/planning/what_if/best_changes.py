"""The search for single changes that make a run shorter, by trying them."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from kfp_placement_engine.lowering import lower
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.plan_options import PlanOptions, lowering_options_of
from kfp_placement_engine.planning.plan_parts import figures_of
from kfp_placement_engine.planning.warm_start import placement_by_plan
from kfp_placement_engine.planning.what_if.applied_changes import with_changes
from kfp_placement_engine.planning.what_if.single_changes import single_changes
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.plans.what_if import (
    LEAST_GAIN,
    Suggestion,
    Suggestions,
    end_seconds,
    gain_seconds,
)
from kfp_placement_engine.plans.what_if_changes import Change
from kfp_placement_engine.search.refine import refine


@dataclass(frozen=True)
class SuggestionParams:
    """Parameters of choosing, trying and ranking single changes.

    Work is counted as by `trial_work`; times are those of one core for a run of 100 steps on 50
    nodes.

    Attributes:
        busiest: number of nodes of each shape that are tried at twice their size, starting with the
            node that the plan uses most.
        work: work to spend on the search for each change; by default 20 ms.
        finalists: number of changes with the earliest ends, which are searched again.
        finalist_work: work to spend on each of these, and on the run without a change; by default
            0.4 s.
        alike: largest difference between two ends that count as equal, as a share of the earliest
            end; not of the present end, since the run may not end at present.
    """

    busiest: int = 3
    work: int = 1_500_000
    finalists: int = 4
    finalist_work: int = 34_000_000
    alike: float = 0.001


def best_changes(
    graph: RunGraph,
    cluster: Cluster,
    present: Plan,
    options: PlanOptions,
    progress: Progress = no_progress,
) -> Suggestions:
    """Try the single changes and rank those that make the run shorter.

    Each is tried for a moment, and the most promising for longer, starting from the present plan.
    Effort is counted in plans that are tried and not in time: the same plan and seed give the same
    suggestions.

    Args:
        graph: run before the changes.
        cluster: cluster before the changes.
        present: plan of the run on the cluster, made with the same options.
        options: options of the planner; the budget is not used.
        progress: callback with the progress of the search.
    """
    params = SuggestionParams()
    changes = single_changes(graph, cluster, present, options, params.busiest)

    end_with = partial(_end_seconds, graph, cluster, present, options)
    with ThreadPoolExecutor(options.threads or os.cpu_count() or 1) as pool:
        # A longer search alone may shorten the run, so gains are counted from its result. It takes
        # longest and starts first; the others run beside it.
        unchanged = pool.submit(end_with, params.finalist_work)
        ends = _ends(changes, pool, end_with, params, progress)
    before = end_seconds(present.figures)
    reachable = min(before, unchanged.result())
    worth = []
    for change, end in ends.items():
        gain = gain_seconds(reachable, end)
        if gain > 0 and gain >= LEAST_GAIN * reachable:
            _, after = with_changes(graph, cluster, (change,))
            nodes_added = len(after.nodes) - len(cluster.nodes)
            cpu_added = _cpu(after) - _cpu(cluster)
            worth.append(Suggestion(change, end, gain, nodes_added, cpu_added))
    earliest_seconds = min([reachable, *ends.values()])
    best = sorted(worth, key=lambda each: _rank(each, earliest_seconds, params.alike))
    return Suggestions(tuple(best), len(changes), before, gain_seconds(before, reachable))


def _ends(
    changes: Sequence[Change],
    pool: ThreadPoolExecutor,
    end_with: Callable[..., float],
    params: SuggestionParams,
    progress: Progress,
) -> dict[Change, float]:
    """Return the run's end with each change; for finalists, the end that the longer search found.

    Args:
        changes: single changes.
        pool: threads of the searches.
        end_with: function of the work to spend and a change; returns the run's end.
        params: work for each search, and number of finalists.
        progress: callback with the progress of the search.
    """
    ends: dict[Change, float] = {}
    chosen = list(changes)
    for stage, work in enumerate((params.work, params.finalist_work)):
        jobs = [pool.submit(end_with, work, change) for change in chosen]
        for number, (change, job) in enumerate(zip(chosen, jobs, strict=True)):
            share = (stage + number / len(jobs)) / 2
            progress(share, f"trying change {number + 1} of {len(jobs)}")
            ends[change] = job.result()
        chosen = sorted(chosen, key=ends.__getitem__)[: params.finalists]
    return ends


def _rank(suggestion: Suggestion, earliest_seconds: float, alike: float) -> tuple[float, ...]:
    """Return the order: earliest end; of similar ends the fewest nodes, then the least CPU."""
    end = suggestion.makespan_seconds
    later = (end - earliest_seconds) // (alike * earliest_seconds or 1.0)
    return (later, suggestion.nodes_added, suggestion.cpu_added_milli, end)


def _end_seconds(
    graph: RunGraph,
    cluster: Cluster,
    present: Plan,
    options: PlanOptions,
    work: int,
    *change: Change,
) -> float:
    """Return the end of the run with a change, planned by some work from the present plan.

    It is infinite if the run does not end. A longer search does not start from the result of a
    shorter one: it would find less, since its plans would all be similar.
    """
    graph, cluster = with_changes(graph, cluster, change)
    lowered = lower(graph, cluster, lowering_options_of((ActiveRun("", graph),), cluster, options))
    start = placement_by_plan(lowered, present)
    result = refine(lowered.problem, start, work, options.seed, options.params)
    return end_seconds(figures_of(lowered.problem, result.schedule))


def _cpu(cluster: Cluster) -> int:
    return sum(node.allocatable.get("cpu", 0) for node in cluster.nodes)
