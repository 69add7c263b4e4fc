"""The single changes that make a run shorter, found by trying them."""

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from kfp_placement_engine.lowering import Lowered, lower_runs
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
from kfp_placement_engine.planning.single_changes import (
    SingleChange,
    SuggestionParams,
    single_changes,
)
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
    options: PlanOptions | None = None,
    progress: Progress = no_progress,
    params: SuggestionParams | None = None,
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
        params: which changes are tried, and for how long.
    """
    options, params = options or PlanOptions(), params or SuggestionParams()
    trier = _Trier(graph, cluster, present, options)
    singles = single_changes(graph, cluster, present, params)
    stages = 1 + len(params.rounds)
    longest = max((each.work for each in params.rounds), default=params.screening_work)
    with ThreadPoolExecutor(options.threads or os.cpu_count() or 1) as pool:
        # What is only due to the search has to be known. It takes longest, so it begins first, and
        # computes on one core while the changed runs are read on the other.
        unchanged = pool.submit(trier.tried, None, longest)
        work = params.screening_work
        jobs = [pool.submit(trier.tried, each.change, work) for each in singles]
        trials = _results(jobs, progress, 0, stages)
        chosen = list(range(len(singles)))
        for stage, each in enumerate(params.rounds, 1):
            chosen = _promising(trials, chosen)[: each.changes]
            if not chosen:
                break
            searched = [(at, 0) for at in chosen]
            searched += [(chosen[0], seed) for seed in range(1, each.leader_searches)]
            jobs = [
                pool.submit(trier.tried, singles[at].change, each.work, seed)
                for at, seed in searched
            ]
            results = _results(jobs, progress, stage, stages)
            for (at, _), trial in zip(searched, results, strict=True):
                if better(trial.terms, trials[at].terms):
                    trials[at] = trial
    return _answer(present, singles, trials, unchanged.result(), params)


@dataclass(frozen=True)
class _Trial:
    """A plan of a changed run, and what the change costs."""

    terms: Floats
    end_seconds: float
    exact: bool
    nodes_added: int
    cpu_added_milli: int


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
        lowered, cluster = self._lowered(change)
        warm = replayed(lowered, self.present)
        seed += self.options.seed
        result = refine(lowered.problem, warm, work, seed, self.options.params)
        return _Trial(
            terms=result.schedule.terms,
            end_seconds=end_seconds(figures_of(lowered.problem, result.schedule)),
            exact=result.exact,
            nodes_added=len(cluster.nodes) - len(self.cluster.nodes),
            cpu_added_milli=_cpu(cluster) - _cpu(self.cluster),
        )

    def _lowered(self, change: Change | None) -> tuple[Lowered, Cluster]:
        changes = () if change is None else (change,)
        graph, cluster = with_changes(self.graph, self.cluster, changes)
        runs = (ActiveRun("", graph),)
        return lower_runs(runs, cluster, lowering_options_of(runs, cluster, self.options)), cluster


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


def _promising(trials: Sequence[_Trial], among: Sequence[int]) -> list[int]:
    """Those that end first; none of which all plans were tried."""
    order = sorted(among, key=lambda at: (trials[at].end_seconds, at))
    return [at for at in order if not trials[at].exact]


def _answer(
    present: Plan,
    singles: Sequence[SingleChange],
    trials: Sequence[_Trial],
    unchanged: _Trial,
    params: SuggestionParams,
) -> Suggestions:
    before = end_seconds(present.figures)
    reachable = min(before, unchanged.end_seconds)
    found = [
        Suggestion(
            single.change,
            makespan_seconds=trial.end_seconds,
            gain_seconds=gain_seconds(reachable, trial.end_seconds),
            nodes_added=trial.nodes_added,
            cpu_added_milli=trial.cpu_added_milli,
        )
        for single, trial in zip(singles, trials, strict=True)
    ]
    kinds = {single.change: single.kind for single in singles}
    least = params.nothing * before if math.isfinite(before) else 0.0
    best: dict[Hashable, Suggestion] = {}
    for each in ranked((each for each in found if each.gain_seconds > 0), params.near):
        if each.gain_seconds >= least:
            best.setdefault(kinds[each.change], each)
    return Suggestions(
        best=tuple(best.values()),
        tried=len(singles),
        present_seconds=before,
        unchanged_gain_seconds=gain_seconds(before, reachable),
    )


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
