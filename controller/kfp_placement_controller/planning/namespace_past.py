"""What past runs tell, built a little at a time; a defect in it stops no plan.

Of a namespace the last runs of all pipelines are learned from, and all runs of those that are
planned, apart: as for a plan before submission (`stored_past`).
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_engine.contract.pipeline_history import RecordedRun, unreadable_rows
from kfp_placement_engine.history import NodeFactors, Past
from kfp_placement_engine.model.history import MOST_PIPELINES, LearnedWidth, PastRun
from kfp_placement_engine.model.policy import KEEP_DAYS
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.learned_courses import learned_widths
from kfp_placement_engine.planning.learned_times import LearnedRun, with_history
from kfp_placement_engine.planning.stored_past import last_runs

_LOG = logging.getLogger(__name__)

BYTES_PER_OBSERVATION = 1_000
"""This many bytes of an object take as long to be read as one step takes to be learned from."""

OUT_OF_ORDER = timedelta(minutes=1)
"""Runs that end within that may be learned from in any order: some wait for what pods used."""


class NamespacePast:
    """The past of one namespace, or of one of its pipelines.

    Attributes:
        is_built: all runs of the beginning have been learned from.
        learned: how many runs have been learned from.
        past: what they tell.
    """

    def __init__(
        self,
        namespace: str,
        factors: NodeFactors,
        stored: Collection[ObservedHistory],
        unwritten: Collection[PastRun],
        said: SaidOnce,
        keep_days: int = KEEP_DAYS,
        of_namespace: "NamespacePast | None" = None,
    ) -> None:
        """Nothing has been learned yet.

        Args:
            namespace: its name.
            factors: of nodes, which namespaces share.
            stored: its PipelineHistories, or that of the pipeline.
            unwritten: runs that these do not have yet.
            said: where warnings go.
            keep_days: runs that ended more days before the last of their pipeline do not count.
            of_namespace: the past of the namespace, if this is of one pipeline; None = this is it.
        """
        self.is_built, self.learned = False, 0
        self._namespace = namespace
        known = None if of_namespace is None else of_namespace.past
        # What was known of nodes counts until all has been learned.
        own = factors.without(namespace) if of_namespace is None else factors
        self.past: Past = Past((), namespace, own, of_namespace=known)
        self._factors, self._own_factors = factors, own
        self._said = said
        self._keep_days = keep_days
        self._shared: dict[str, NamespacePast] = {}
        self._ended = {uid: each for one in stored for uid, each in one.ended.items()}
        self._ended |= {run.uid: run.ended_at for run in unwritten}
        is_of_all = of_namespace is None
        self._counted = _last_runs(stored, unwritten) if is_of_all else frozenset(self._ended)
        self._late: list[PastRun] = []
        self._last_at: dict[str, datetime] = {}
        self._work = self._build(tuple(stored), tuple(unwritten))

    def build(self, observations: int) -> int:
        """Go on; returns how many observations are left of those that may be made now."""
        for cost in self._work:
            observations -= cost
            if observations <= 0:
                return 0
        self.is_built = True
        if self._own_factors is not self._factors:
            self._factors.take(self._namespace, self._own_factors)
            self.past.steps.use_factors(self._factors)
        return observations

    def knows(self, ended: Mapping[str, datetime]) -> bool:
        """Whether all these runs have been learned from as they ended: uid -> when."""
        return all(uid in self._ended and self._ended[uid] >= at for uid, at in ended.items())

    def add(self, run: PastRun) -> bool:
        """Learn from a run that has ended; False = all must be built again.

        It was learned from before it was tried again; or later ones of its pipeline were, as those
        found at the start come in any order, and the last ones say where times lie.
        """
        if run.uid in self._ended:
            return False
        self._ended[run.uid] = run.ended_at
        if not self.is_built:
            self._late.append(run)
            return True
        last_at = self._last_at.get(run.pipeline, run.ended_at)
        self._observe(run)
        return last_at - run.ended_at <= OUT_OF_ORDER

    def let_go(self, uids: Iterable[str]) -> None:
        """No object has these runs any more: they need not be recognised."""
        for uid in uids:
            self._ended.pop(uid, None)

    def rest_on(self, of_namespace: "NamespacePast") -> None:
        """That of the namespace has been built again."""
        self.past.rest_on(of_namespace.past)

    def share(self, others: Mapping[str, "NamespacePast"]) -> bool:
        """Ask these too, by namespace, of components and images that are not known here.

        Returns:
            Whether they all answer; one that is built again answers with what it knew before.
        """
        before = self._shared
        self._shared = {
            name: answering
            for name, past in others.items()
            if (answering := past if past.is_built else before.get(name)) is not None
        }
        self.past.share(each.past for each in self._shared.values())
        return len(self._shared) == len(others)

    def learned_widths(self, graph: RunGraph) -> Mapping[str, LearnedWidth]:
        """What is known of the run's loops whose width nobody knows."""
        return self._said.guarded(self._without, lambda: learned_widths(graph, self.past)) or {}

    def learned_run(self, graph: RunGraph, confidence: float) -> LearnedRun | None:
        """The run with what is known of it; None = nothing is, for a reason that has been said.

        Args:
            graph: the run.
            confidence: of the ranges that will be promised.
        """
        return self._said.guarded(self._without, lambda: with_history(graph, self.past, confidence))

    @property
    def _without(self) -> str:
        """What a defect in what is asked here means."""
        return f"runs of namespace {self._namespace} are planned without past ones"

    def _build(
        self, stored: Collection[ObservedHistory], unwritten: Collection[PastRun]
    ) -> Iterator[int]:
        """Yields what each part of the work costs, in observations."""
        runs: dict[str, PastRun] = {}
        left_out = f"a PipelineHistory of namespace {self._namespace} is left out"
        for each in stored:
            read = self._said.guarded(left_out, partial(self._read, each)) or ()
            runs |= {run.uid: run for run in read}
            yield each.json_bytes // BYTES_PER_OBSERVATION
        runs |= {run.uid: run for run in unwritten if run.uid in self._counted}
        # The last one first, so that what has been learned from can be let go.
        ordered = sorted(runs.values(), key=lambda run: run.order, reverse=True)
        runs.clear()
        self._counted = frozenset()
        while ordered or self._late:
            if not ordered:
                ordered = sorted(self._late, key=lambda run: run.order, reverse=True)
                self._late = []
            run = ordered.pop()
            self._observe(run)
            yield len(run.steps)

    def _read(self, stored: ObservedHistory) -> Collection[PastRun]:
        history = stored.read(self._counted)
        runs = history.past_runs(self._keep_days)
        rows = 0 if history.status is None else _rows_of(history.status.runs)
        if rows > _rows_of(runs) and (bad := unreadable_rows(history)):
            name = history.metadata.name
            self._said.warning(
                f"PipelineHistory {self._namespace}/{name}: {len(bad)} of {rows} rows cannot be"
                f" true, or cannot be read, the first is {bad[0]}; they do not count"
            )
        return runs

    def _observe(self, run: PastRun) -> None:
        self.learned += 1
        last_at = self._last_at.get(run.pipeline, run.ended_at)
        self._last_at.pop(run.pipeline, None)
        self._last_at[run.pipeline] = max(last_at, run.ended_at)
        if len(self._last_at) > MOST_PIPELINES:
            del self._last_at[next(iter(self._last_at))]
        what = f"namespace {self._namespace} learns nothing from some runs"
        self._said.guarded(what, partial(self.past.observe, run))


def _rows_of(runs: Iterable[RecordedRun | PastRun]) -> int:
    return sum(len(run.steps) + len(run.loops) + len(run.left_out) for run in runs)


def _last_runs(
    stored: Collection[ObservedHistory], unwritten: Collection[PastRun]
) -> frozenset[str]:
    """What a namespace is known by."""
    ended: dict[str, dict[str, datetime]] = defaultdict(dict)
    for one in stored:
        ended[one.spec.pipeline] |= one.ended
    for run in unwritten:
        ended[run.pipeline][run.uid] = run.ended_at
    return last_runs(ended)
