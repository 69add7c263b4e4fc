"""The single changes that make a run shorter, found by trying them."""

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from kfp_placement_engine.lowering import lower
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.changes import Change
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.progress import Progress, no_progress
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.what_if import Suggestion, Suggestions, end_seconds, gain_seconds
from kfp_placement_engine.planning.applied_changes import with_changes
from kfp_placement_engine.planning.plan_options import PlanOptions, lowering_options_of
from kfp_placement_engine.planning.plan_parts import figures_of
from kfp_placement_engine.planning.single_changes import SuggestionParams, single_changes
from kfp_placement_engine.planning.warm_start import replayed
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.refine import refine

_DIGITS = 3
"""Ends are compared to the millisecond; what lies beyond is noise of the arithmetic."""


def best_changes(
    graph: RunGraph,
    cluster: Cluster,
    present: Plan,
    options: PlanOptions,
    progress: Progress = no_progress,
) -> Suggestions:
    """Try the single changes and rank those that make the run shorter.

    Each is tried for a moment, and the most promising for longer, starting from the present plan.
    Effort is counted in plans that are tried and not in time: the same plan and seed have the same
    answer.

    Args:
        graph: the run.
        cluster: the cluster.
        present: the plan of the run on the cluster, made with the same options.
        options: how to plan; its budget is not used.
        progress: told how far it is.
    """
    params = SuggestionParams()
    trier = _Trier(graph, cluster, present, options)
    kinds = single_changes(graph, cluster, present, params)
    changes = list(kinds)
    chosen, trials = list(range(len(changes))), dict[int, _Trial]()
    with ThreadPoolExecutor(options.threads or os.cpu_count() or 1) as pool:
        # What is only due to the search has to be known. It takes longest, so it begins first, and
        # computes on one core while the changed runs are read on the other.
        unchanged = pool.submit(trier.tried, None, max(each.work for each in params.rounds))
        for stage, each in enumerate(params.rounds):
            if stage:
                # The most promising end first; of those that are exact all plans were tried.
                chosen.sort(key=lambda at: (trials[at].end_seconds, at))
                chosen = [at for at in chosen if not trials[at].exact][: each.changes]
            searched = [(at, 0) for at in chosen]
            searched += [(at, seed) for at in chosen[:1] for seed in range(1, each.leader_searches)]
            jobs = [pool.submit(trier.tried, changes[at], each.work, seed) for at, seed in searched]
            results = _results(jobs, progress, stage, len(params.rounds))
            for (at, _), trial in zip(searched, results, strict=True):
                if at not in trials or better(trial.terms, trials[at].terms):
                    trials[at] = trial
    before = end_seconds(present.figures)
    reachable = min(before, unchanged.result().end_seconds)
    least = params.nothing * before if math.isfinite(before) else 0.0
    gains = (trier.suggestion(change, trials[at], reachable) for at, change in enumerate(changes))
    best: dict[Hashable, Suggestion] = {}
    for gain in ranked((each for each in gains if each.gain_seconds > 0), params.near):
        if gain.gain_seconds >= least:
            best.setdefault(kinds[gain.change], gain)
    unchanged_gain = gain_seconds(before, reachable)
    return Suggestions(tuple(best.values()), len(changes), before, unchanged_gain)


@dataclass(frozen=True)
class _Trial:
    """A plan of a changed run, and whether all plans of it were tried."""

    terms: Floats
    end_seconds: float
    exact: bool


@dataclass(frozen=True)
class _Trier:
    """Plans one run repeatedly, each time with another change."""

    graph: RunGraph
    cluster: Cluster
    present: Plan
    options: PlanOptions

    def tried(self, change: Change | None, work: int, seed: int = 0) -> _Trial:
        """The run with a change, planned by this much work from the present plan.

        What a shorter search found is not where a longer one starts: it then finds less, as all
        of its plans are alike.

        Args:
            change: what changes; None = nothing.
            work: spent on the search.
            seed: added to that of the options.
        """
        graph, cluster = self._after(change)
        options = lowering_options_of((ActiveRun("", graph),), cluster, self.options)
        lowered = lower(graph, cluster, options)
        seed += self.options.seed
        start = replayed(lowered, self.present)
        result = refine(lowered.problem, start, work, seed, self.options.params)
        end = end_seconds(figures_of(lowered.problem, result.schedule))
        return _Trial(result.schedule.terms, end, result.exact)

    def suggestion(self, change: Change, trial: _Trial, reachable_seconds: float) -> Suggestion:
        """The change, what it gains from the end that is reachable without it, and what it adds."""
        before, (_, after) = self.cluster, self._after(change)
        return Suggestion(
            change,
            makespan_seconds=trial.end_seconds,
            gain_seconds=gain_seconds(reachable_seconds, trial.end_seconds),
            nodes_added=len(after.nodes) - len(before.nodes),
            cpu_added_milli=_cpu(after) - _cpu(before),
        )

    def _after(self, change: Change | None) -> tuple[RunGraph, Cluster]:
        return with_changes(self.graph, self.cluster, () if change is None else (change,))


def _cpu(cluster: Cluster) -> int:
    return sum(node.allocatable.get("cpu", 0) for node in cluster.nodes)


def _results(
    jobs: Sequence[Future[_Trial]], progress: Progress, stage: int, stages: int
) -> list[_Trial]:
    """What the jobs find, in their order; every stage is the same part of all progress."""
    results = []
    for number, job in enumerate(jobs):
        share = (stage + number / len(jobs)) / stages
        progress(share, f"trying change {number + 1} of {len(jobs)}")
        results.append(job.result())
    return results


def ranked(suggestions: Iterable[Suggestion], near: float) -> list[Suggestion]:
    """The best first: by gain, but of gains near the best those come first that cost least.

    What costs least adds no node, and then least CPU. Where runs end only with a change, all gains
    are as good; what then ends first is the better of two that cost the same.
    """
    rest = sorted(suggestions, key=lambda each: -_gain(each))
    if not rest:
        return []
    enough = (1 - near) * _gain(rest[0])
    best = [each for each in rest if _gain(each) >= enough]
    return sorted(best, key=_cost) + rest[len(best) :]


def _gain(suggestion: Suggestion) -> float:
    return round(suggestion.gain_seconds, _DIGITS)


def _cost(suggestion: Suggestion) -> tuple[float, ...]:
    end = round(suggestion.makespan_seconds, _DIGITS)
    return max(0, suggestion.nodes_added), suggestion.cpu_added_milli, end
