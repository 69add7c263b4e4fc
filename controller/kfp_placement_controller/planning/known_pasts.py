"""What past runs tell of namespaces and of their pipelines, learned a little at a time.

Of a namespace the last runs of all pipelines are learned from, and of a pipeline that is planned
all its runs, apart: as for a plan before submission (`stored_past`). What is known answers until
what replaces it has been built. Nothing is shared between namespaces.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.unwritten_runs import HistoryKey
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth, PastRun
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.learned_times import LearnedRun, with_history
from kfp_placement_engine.planning.learned_widths import learned_widths
from kfp_placement_engine.planning.stored_past import last_runs

STEPS_AT_ONCE = 100
"""Steps learned from between two decisions, some 5 ms: what is learned keeps no plan waiting."""

STEPS_FOR_A_NEW_RUN = 2 * STEPS_AT_ONCE
"""Steps learned from when a run comes: of a small past, before its first plan."""

BYTES_PER_STEP = 1_000
"""This many bytes of an object take as long to be read as one step takes to be learned from."""

MOST_NAMESPACES, MOST_PIPELINES = 50, 500
"""Pasts that are kept; those asked for longest ago are built again when they are asked for."""


class StoredRuns(NamedTuple):
    """Input of a past.

    Attributes:
        stored: objects.
        unwritten: runs that these do not have yet.
        keep_days: runs that ended more days before the last of their pipeline do not count.
    """

    stored: Collection[ObservedHistory]
    unwritten: Collection[PastRun]
    keep_days: int


class KnownPast:
    """The past of one pipeline, or of one namespace; a defect in it stops no plan.

    Attributes:
        past: what its runs tell.
        runs: number of runs learned from.
    """

    def __init__(
        self, key: HistoryKey, found: StoredRuns, said: SaidOnce, of_namespace: Past | None = None
    ) -> None:
        """Learn nothing yet.

        Args:
            key: namespace, and name of the object; "" = of the whole namespace.
            found: its runs.
            said: where warnings go.
            of_namespace: past of the namespace, if this is of one pipeline.
        """
        self.past = Past(of_namespace=of_namespace)
        self.runs = 0
        self._namespace = key[0]
        self._said = said
        self._ended = {uid: at for each in found.stored for uid, at in each.ended.items()}
        self._ended |= {run.uid: run.ended_at for run in found.unwritten}
        counted = _last_runs(found) if of_namespace is None else frozenset(self._ended)
        self._work = self._build(found, counted)
        self._late: list[PastRun] | None = []

    def build(self, steps: int) -> int:
        """Go on; return how many steps are left of those that may be learned from now."""
        for cost in self._work:
            steps -= cost
            if steps <= 0:
                break
        return max(0, steps)

    @property
    def is_built(self) -> bool:
        """Whether all runs of the beginning have been learned from."""
        return self._late is None

    def knows(self, ended: Mapping[str, datetime]) -> bool:
        """Return whether all these runs count as they ended; uid -> when."""
        return all(uid in self._ended and self._ended[uid] >= at for uid, at in ended.items())

    def add(self, run: PastRun) -> bool:
        """Learn from a run that has ended; return False if it was learned from before."""
        if run.uid in self._ended:
            return False
        self._ended[run.uid] = run.ended_at
        if self._late is None:
            self._observe(run)
        else:
            self._late.append(run)
        return True

    def let_go(self, uids: Collection[str]) -> None:
        """Forget that these runs were learned from: no object has them any more."""
        for uid in uids:
            self._ended.pop(uid, None)

    def learned_widths(self, graph: RunGraph) -> Mapping[str, LearnedWidth]:
        """Return what is known of the run's loops whose width nobody knows."""
        return self._said.guarded(self._without, partial(learned_widths, graph, self.past)) or {}

    def learned_run(self, graph: RunGraph, confidence: float) -> LearnedRun | None:
        """Return the run with what is known of it; None = nothing is, which has been said.

        Args:
            graph: the run.
            confidence: of the ranges that will be promised.
        """
        return self._said.guarded(
            self._without, partial(with_history, graph, self.past, confidence)
        )

    @property
    def _without(self) -> str:
        """Effect of a defect in what is asked here."""
        return f"runs of namespace {self._namespace} are planned without past ones"

    def _build(self, found: StoredRuns, counted: Collection[str]) -> Iterator[int]:
        """Learn from the runs, the oldest first; yield what each part costs, in steps."""
        runs: dict[str, PastRun] = {}
        left_out = f"a PipelineHistory of namespace {self._namespace} is left out"
        for each in found.stored:
            read = partial(self._read, each, counted, found.keep_days)
            runs |= {run.uid: run for run in self._said.guarded(left_out, read) or ()}
            yield each.json_bytes // BYTES_PER_STEP
        runs |= {run.uid: run for run in found.unwritten if run.uid in counted}
        for run in sorted(runs.values(), key=lambda each: each.order):
            self._observe(run)
            yield len(run.steps)
        late, self._late = self._late or [], None
        for run in late:
            self._observe(run)

    def _read(
        self, stored: ObservedHistory, counted: Collection[str], keep_days: int
    ) -> Collection[PastRun]:
        try:
            return stored.read(counted).past_runs(keep_days)
        except InputError as error:
            self._said.warning(f"namespace {self._namespace}: {error}; it does not count")
            return ()

    def _observe(self, run: PastRun) -> None:
        self.runs += 1
        what = f"namespace {self._namespace} learns nothing from some runs"
        self._said.guarded(what, partial(self.past.observe, run))


def _last_runs(found: StoredRuns) -> frozenset[str]:
    """Return the uids of the runs that a namespace is known by."""
    stored = ((each.spec.pipeline, each.ended) for each in found.stored)
    unwritten = ((run.pipeline, {run.uid: run.ended_at}) for run in found.unwritten)
    return last_runs(chain(stored, unwritten))


@dataclass
class KnownPasts:
    """The pasts of namespaces, and of pipelines.

    Attributes:
        runs_of: finds the runs of a past.
        said: where warnings go.
    """

    runs_of: Callable[[HistoryKey], StoredRuns]
    said: SaidOnce
    _kept: dict[HistoryKey, KnownPast] = field(default_factory=dict)
    _building: dict[HistoryKey, KnownPast] = field(default_factory=dict)
    _outdated: set[HistoryKey] = field(default_factory=set)

    def of_pipeline(self, key: HistoryKey) -> KnownPast | None:
        """Return what is known of a pipeline; None = it is being built."""
        of_namespace = self._asked_for((key[0], ""), None)
        return None if of_namespace is None else self._asked_for(key, of_namespace.past)

    @property
    def is_building(self) -> bool:
        """Whether something that was asked for is being built."""
        return bool(self._building)

    def awaits(self, namespace: str) -> bool:
        """Return whether something of a namespace is built for the first time."""
        return any(key[0] == namespace and key not in self._kept for key in self._building)

    def is_current(self, key: HistoryKey) -> bool:
        """Return whether what answers of a pipeline is not about to be replaced."""
        return key not in self._outdated and key not in self._building

    def knows(self, key: HistoryKey, stored: ObservedHistory) -> bool:
        """Return whether all runs of an object have been, or will be, learned from."""
        return all(past.knows(stored.ended) for past in self._of(key))

    def add(self, key: HistoryKey, run: PastRun) -> None:
        """Learn from a run of a pipeline; of one that was tried again its last end counts."""
        for past in self._of(key):
            if not past.add(run):
                self.outdated(key)

    def let_go(self, key: HistoryKey, uids: Collection[str]) -> None:
        """Forget runs that the object of a pipeline has no longer, as there are later ones."""
        for past in self._of(key):
            past.let_go(uids)

    def outdated(self, key: HistoryKey) -> None:
        """Build again what somebody has changed, when it is asked for."""
        for each in (key, (key[0], "")):
            if self._building.pop(each, None) is not None or each in self._kept:
                self._outdated.add(each)

    def drop(self) -> None:
        """Build all again: other rules hold, or others may have written much since."""
        self._building.clear()
        self._outdated |= self._kept.keys()

    def build(self, steps: int = STEPS_AT_ONCE) -> None:
        """Go on with what is being built; first with what nothing answers for yet.

        Args:
            steps: that may be learned from now.
        """
        for key in sorted(self._building, key=lambda each: each in self._kept):
            if steps <= 0:
                return
            past = self._building[key]
            steps = past.build(steps)
            if past.is_built:
                del self._building[key]
                self._kept[key] = past
                self._replaced(key)

    def _of(self, key: HistoryKey) -> list[KnownPast]:
        """Return what answers for a pipeline and its namespace, and what will."""
        return [
            found
            for each in (key, (key[0], ""))
            for known in (self._kept, self._building)
            if (found := known.get(each)) is not None
        ]

    def _asked_for(self, key: HistoryKey, of_namespace: Past | None) -> KnownPast | None:
        """Return what answers for a key; begin what is missing, and build at once what is small."""
        if (key not in self._kept or key in self._outdated) and key not in self._building:
            self._outdated.discard(key)
            self._building[key] = KnownPast(key, self.runs_of(key), self.said, of_namespace)
            self.build(STEPS_FOR_A_NEW_RUN)
        if key in self._kept:
            # What was asked for last is the last to go.
            self._kept[key] = self._kept.pop(key)
        return self._kept.get(key)

    def _replaced(self, key: HistoryKey) -> None:
        """Let pipelines ask the new past of their namespace, and drop what there is too much of."""
        namespace, name = key
        if not name:
            self._outdated |= {each for each in self._kept if each[0] == namespace and each[1]}
        same = [each for each in self._kept if bool(each[1]) == bool(name)]
        for oldest in same[: -MOST_PIPELINES if name else -MOST_NAMESPACES]:
            del self._kept[oldest]
            self._outdated.discard(oldest)
