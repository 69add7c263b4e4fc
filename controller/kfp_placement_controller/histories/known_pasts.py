"""Pasts of namespaces and of their pipelines, built from ended runs a little at a time.

A namespace's past is made of the last runs of all its pipelines. A planned pipeline has a past of
its own, made of all its runs, as for a plan before submission (`stored_past`). An old past is used
until the new one has been built. Nothing is shared between namespaces.
"""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kfp_placement_controller.observed.histories import HistoryKey, ObservedHistory
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth, PastContainer, PastRun
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.past_runs.learned_times import LearnedRun, with_history
from kfp_placement_engine.planning.past_runs.learned_widths import learned_widths
from kfp_placement_engine.planning.past_runs.stored_past import last_runs
from kfp_placement_engine.planning.stand_ins import NO_CONTAINERS, past_containers

STEPS_AT_ONCE = 100
"""Steps learned from between two decisions, some 5 ms: what is learned keeps no plan waiting."""

STEPS_FOR_A_NEW_RUN = 2 * STEPS_AT_ONCE
"""Steps learned from when a run comes: of a small past, before its first plan."""

_LEARNED_BYTES_PER_STEP = 125
"""Bytes of an object that take as long to read as one step takes to learn from."""

MOST_NAMESPACES_KEPT, MOST_PIPELINES_KEPT = 50, 500
"""Pasts that are kept; those asked for longest ago are built again when they are asked for."""


class KnownPast:
    """The past of one pipeline, or of one namespace; a defect in it stops no plan.

    Attributes:
        past: statistics of its runs.
        runs: number of runs learned from.
        of_namespace: past of the namespace, if this is of one pipeline.
        before: the past that answers until this one has been built.
        is_built: whether all runs of the beginning have been learned from.
        is_outdated: whether it must be built again.
    """

    def __init__(
        self,
        namespace: str,
        stored: Collection[ObservedHistory],
        keep_days: int,
        warnings: WarningLog,
        of_namespace: "KnownPast | None",
        before: "KnownPast | None",
    ) -> None:
        """Learn nothing yet.

        Args:
            namespace: namespace of its runs.
            stored: objects that hold the runs.
            keep_days: runs that ended more days before the last of their pipeline do not count.
            warnings: log of them.
            of_namespace: past of the namespace, if this is of one pipeline.
            before: past that counts until this one has been built, or None.
        """
        self.past: Past = Past(of_namespace=None if of_namespace is None else of_namespace.past)
        self.runs = 0
        self.of_namespace = of_namespace
        self.before = before
        self.is_built = self.is_outdated = False
        self._namespace = namespace
        self._warnings = warnings
        self._to_observe: list[PastRun] = []
        self._uids: set[str] = set()
        self._work = self._build(stored, keep_days)

    @property
    def answer(self) -> "KnownPast | None":
        """Past that counts now, or None if none has been built yet."""
        return self if self.is_built else self.before

    @property
    def is_current(self) -> bool:
        """Return whether nothing will replace this past."""
        of_namespace = self.of_namespace
        return not self.is_outdated and (of_namespace is None or of_namespace.is_current)

    def build(self, steps: int) -> int:
        """Go on; return how many steps are left of those that may be learned from now."""
        for cost in self._work:
            steps -= cost
            if steps <= 0:
                break
        return max(0, steps)

    def add(self, run: PastRun) -> None:
        """Learn from a run that has ended; one that is not built yet learns from it at the end.

        A run that was removed and comes again was already counted, and a past cannot forget it, so
        the past is built again.
        """
        if self.is_built:
            self._observe(run)
        else:
            self._to_observe.append(run)
        if self.before is not None:
            self.before.add(run)

    def learned_widths(self, graph: RunGraph) -> Mapping[str, LearnedWidth]:
        """Return the widths that were learned for loops whose width the run does not state."""
        return (
            self._warnings.take_turn(self._without, partial(learned_widths, graph, self.past)) or {}
        )

    def containers(self, graph: RunGraph) -> Mapping[str, PastContainer]:
        """Return requests and images that the steps of an outline had last, by task."""
        containers = partial(past_containers, graph, self.past)
        return self._warnings.take_turn(self._without, containers) or NO_CONTAINERS

    def learned_run(self, graph: RunGraph, confidence: float) -> LearnedRun | None:
        """Return the run with what is known of it; None = a defect, which has been logged.

        Args:
            graph: the run.
            confidence: confidence of the ranges that will be promised.
        """
        return self._warnings.take_turn(
            self._without, partial(with_history, graph, self.past, confidence)
        )

    @property
    def _without(self) -> str:
        """Effect of a defect in what is asked here."""
        return f"runs of namespace {self._namespace} are planned without past ones"

    def _build(self, stored: Collection[ObservedHistory], keep_days: int) -> Iterator[int]:
        """Learn from the runs, the oldest first; yield what each part costs, in steps."""
        counted = last_runs(each.ended for each in stored)
        # Two objects may hold one run: it counts once.
        runs: dict[str, PastRun] = {}
        left_out = f"a PipelineHistory of namespace {self._namespace} is left out"
        for each in stored:
            if not counted.isdisjoint(each.ended):
                read = partial(_runs_of, self._namespace, each, counted, keep_days, self._warnings)
                for run in self._warnings.take_turn(left_out, read) or ():
                    runs.setdefault(run.uid, run)
                yield each.json_bytes // _LEARNED_BYTES_PER_STEP
        # Runs that end meanwhile join the end of this list.
        self._to_observe = sorted(runs.values(), key=lambda each: each.order) + self._to_observe
        for run in self._to_observe:
            self._observe(run)
            yield len(run.steps)
        self.is_built = True
        self.before = None
        self._to_observe.clear()

    def _observe(self, run: PastRun) -> None:
        if run.uid in self._uids:
            # The namespace's past counted the run, too: it is built again, and then this one.
            (self.of_namespace or self).is_outdated = True
            return
        self._uids.add(run.uid)
        self.runs += 1
        what = f"namespace {self._namespace} learns nothing from some runs"
        self._warnings.take_turn(what, partial(self.past.observe, run))


def _runs_of(
    namespace: str,
    stored: ObservedHistory,
    counted: Container[str],
    keep_days: int,
    warnings: WarningLog,
) -> Sequence[PastRun]:
    """Return the runs of an object with these uids; () if it cannot be read."""
    try:
        return stored.read(counted).past_runs(keep_days)
    except InputError as error:
        warnings.warn(f"namespace {namespace}: {error}; it does not count")
        return ()


@dataclass
class KnownPasts:
    """The pasts of namespaces, and of pipelines.

    Attributes:
        stored: all objects.
        keep_days: runs that ended more days before the last of their pipeline do not count.
        warnings: log of them.
    """

    stored: Mapping[HistoryKey, ObservedHistory]
    keep_days: int
    warnings: WarningLog
    _pasts: dict[HistoryKey, KnownPast] = field(default_factory=dict)
    """Pasts by pipeline, and those of whole namespaces under the name ""."""

    def of_pipeline(self, key: HistoryKey) -> KnownPast | None:
        """Return what is known of a pipeline; None = it is being built."""
        of_namespace = self._asked_for(_of_namespace(key), None)
        return None if of_namespace is None else self._asked_for(key, of_namespace)

    @property
    def is_building(self) -> bool:
        """Return whether any past is being built."""
        return not all(past.is_built or past.is_outdated for past in self._pasts.values())

    def awaits(self, namespace: str) -> bool:
        """Return whether something of a namespace is built for the first time."""
        return any(
            key.namespace == namespace and not past.answer for key, past in self._pasts.items()
        )

    def add(self, key: HistoryKey, uids: Collection[str]) -> None:
        """Learn from runs that have been added to an object: they have just ended."""
        keys = [each for each in (key, _of_namespace(key)) if each in self._pasts]
        if not (keys and uids):
            return
        for run in _runs_of(key.namespace, self.stored[key], uids, self.keep_days, self.warnings):
            for each in keys:
                self._pasts[each].add(run)
        for each in keys:
            if not self._pasts[each].is_built:
                # What changes all the time lets the others be built first.
                self._pasts[each] = self._pasts.pop(each)

    def outdated(self, namespace: str = "") -> None:
        """Build again, when it is asked for, what is known of a namespace; of all if none is named.

        Its pipelines follow.
        """
        for (where, name), past in self._pasts.items():
            if not name and namespace in ("", where):
                past.is_outdated = True

    def build(self, steps: int = STEPS_AT_ONCE) -> None:
        """Go on with what is being built, first with what nothing answers for yet.

        One after another: what is being built holds all its runs.

        Args:
            steps: number of steps to learn from at most.
        """
        for past in sorted(self._pasts.values(), key=lambda each: each.before is not None):
            if steps <= 0:
                return
            if not (past.is_built or past.is_outdated):
                steps = past.build(steps)

    def _asked_for(self, key: HistoryKey, of_namespace: KnownPast | None) -> KnownPast | None:
        """Return what answers for a key; begin what is missing, and build at once what is small."""
        past = self._pasts.get(key)
        if past is None or past.is_outdated or past.of_namespace is not of_namespace:
            before = None if past is None else past.answer
            stored = self._objects_of(key)
            past = KnownPast(
                key.namespace, stored, self.keep_days, self.warnings, of_namespace, before
            )
            past.build(STEPS_FOR_A_NEW_RUN)
            # Those that wait to be built come first.
            self._pasts.pop(key, None)
            self._pasts[key] = past
            self._make_room(is_pipeline=bool(key.name))
        elif past.is_built:
            # What was asked for last is the last to go.
            self._pasts[key] = self._pasts.pop(key)
        return past.answer

    def _objects_of(self, key: HistoryKey) -> Collection[ObservedHistory]:
        """Return the object of a pipeline; of the name "", all of its namespace."""
        namespace, name = key
        if name:
            return [self.stored[key]] if key in self.stored else []
        return [each for (where, _), each in self.stored.items() if where == namespace]

    def _make_room(self, *, is_pipeline: bool) -> None:
        """Drop the finished pasts that were asked for longest ago."""
        most = MOST_PIPELINES_KEPT if is_pipeline else MOST_NAMESPACES_KEPT
        idle = [
            key
            for key, past in self._pasts.items()
            if bool(key.name) == is_pipeline and (past.is_built or past.is_outdated)
        ]
        for oldest in idle[:-most]:
            del self._pasts[oldest]


def _of_namespace(key: HistoryKey) -> HistoryKey:
    """Return the key of the past of a whole namespace, which no object has."""
    return HistoryKey(key.namespace, "")
