"""What past runs tell of namespaces, and of pipelines that are asked for, built a little at a time.

What is known answers until what replaces it has been built: what one tenant changes costs nobody an
answer, and no other tenant what is known of nodes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.namespace_past import NamespacePast
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.unwritten_runs import HistoryKey
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.history import NodeFactors
from kfp_placement_engine.history.node_factors import MOST_NAMESPACES
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.policy import sharing_with

BUILD_OBSERVATIONS = 100
"""Steps learned from between two decisions, some 5 ms, and the rest of the object that they are of:
what is learned keeps no plan waiting."""

BUILT_AT_ONCE = 2 * BUILD_OBSERVATIONS
"""Steps learned from when a run comes: of a small past, before its first plan."""

MOST_BUILT = 50
"""Namespaces whose past is kept built; those not asked for longest are built again."""

MOST_IDLE = 100
"""Pipelines whose past is kept though no run of them is planned any more."""


class Runs(NamedTuple):
    """What a past is built from.

    Attributes:
        stored: objects.
        unwritten: runs that these do not have yet.
    """

    stored: Collection[ObservedHistory]
    unwritten: Collection[PastRun]


@dataclass
class BuiltPasts:
    """The pasts of namespaces, and of pipelines; that of a namespace is named "".

    Attributes:
        runs_of: what there is of a past.
        namespaces: that have objects.
        said: where warnings go.
        settings: how long runs count, and which namespaces share what.
        factors: of nodes; namespaces share them.
    """

    runs_of: Callable[[HistoryKey], Runs]
    namespaces: Collection[str]
    said: SaidOnce
    settings: HistorySettings
    factors: NodeFactors = field(default_factory=NodeFactors)
    _kept: dict[HistoryKey, NamespacePast] = field(default_factory=dict)
    _building: dict[HistoryKey, NamespacePast] = field(default_factory=dict)
    _outdated: set[HistoryKey] = field(default_factory=set)
    _asked: set[HistoryKey] = field(default_factory=set)
    _asked_before: set[HistoryKey] = field(default_factory=set)
    _heard: set[str] = field(default_factory=set)
    _left: int = BUILT_AT_ONCE

    def use(self, settings: HistorySettings) -> None:
        """The policy says this from now on."""
        before, self.settings = self.settings, settings
        if before.keep_days != settings.keep_days:
            self._outdated |= self._kept.keys()
        for past in self._kept.values():
            # Whom it asks from now on is said when it is asked for.
            past.share({})

    def of_pipeline(self, key: HistoryKey) -> NamespacePast | None:
        """What is known of a pipeline; None = it is being built."""
        if self._of_namespace(key[0]) is None:
            return None
        past = self._asked_for(key)
        return past if past.is_built else None

    def awaits(self, namespace: str) -> bool:
        """Whether something of a namespace, or of one that it asks, is built for the first time."""
        known = (namespace, *sharing_with(self.settings.share_between, namespace))
        return any(key[0] in known for key in self._first_builds())

    def is_current(self, key: HistoryKey) -> bool:
        """Whether what answers of a pipeline is not about to be replaced."""
        return key not in self._outdated and key not in self._building

    @property
    def is_building(self) -> bool:
        """Whether something that is asked for is being built."""
        return any(key in self._kept for key in self._building)

    @property
    def is_hearing(self) -> bool:
        """Whether there are namespaces of which only what they saw of nodes is wanted."""
        return self._unheard() is not None or any(key not in self._kept for key in self._building)

    def add(self, key: HistoryKey, run: PastRun) -> None:
        """A run of a pipeline has ended; of one that was tried again its last end counts.

        It counts at once. Still, what a pipeline's runs tell is built again: how they missed rests
        on what is known of nodes by now, and a new planner would know the same.
        """
        for each in (key, (key[0], "")):
            is_new = [past.add(run) for past in self._of(each)]
            # The last one is what will answer.
            if is_new and (each[1] or not is_new[-1]):
                self._outdated.add(each)

    def knows(self, key: HistoryKey, stored: ObservedHistory) -> bool:
        """Whether all runs of an object have been, or will be, learned from."""
        pasts = (tuple(self._of(each))[-1:] for each in (key, (key[0], "")))
        return all(past.knows(stored.ended) for (past,) in filter(None, pasts))

    def let_go(self, key: HistoryKey, uids: Iterable[str]) -> None:
        """The object of a pipeline no longer has these runs, as there are later ones."""
        for each in (key, (key[0], "")):
            for past in self._of(each):
                past.let_go(uids)

    def outdated(self, key: HistoryKey) -> None:
        """Somebody has changed what there is of a pipeline: it is built again when asked for."""
        self._outdated |= {each for each in (key, (key[0], "")) if any(self._of(each))}

    def drop_outdated(self) -> None:
        """Who has not led for a time says nothing of then: others may have written much since."""
        for key in self._outdated & self._kept.keys():
            self._drop(key)

    def build(self, *, is_busy: bool) -> None:
        """Go on with what is being built, for a moment; with nothing to do, hear of nodes.

        Args:
            is_busy: there is other work now, so that as little as possible is done.
        """
        self._drop_idle()
        self._asked_before, self._asked = self._asked, set()
        self._left = 1 if is_busy else BUILD_OBSERVATIONS
        if not (is_busy or self._building):
            self._hear_of_nodes()
        self._go_on()
        self._left = BUILT_AT_ONCE

    def _of(self, key: HistoryKey) -> Iterator[NamespacePast]:
        """What answers for a key, and what will."""
        kept, building = self._kept.get(key), self._building.get(key)
        if kept is not None:
            yield kept
        if building is not None and building is not kept:
            yield building

    def _of_namespace(self, namespace: str) -> NamespacePast | None:
        """What is known of all pipelines of a namespace; None = it is being built."""
        key = (namespace, "")
        if key not in self._kept and not self._has_room():
            self.said.warning(
                f"runs of namespace {namespace} are planned without past ones while runs of"
                f" {MOST_BUILT} other namespaces are planned with theirs"
            )
            return None
        self._asked_for(key)
        shared = self._shared_with(namespace)
        past = self._kept[key]
        all_answer = past.share(shared)
        return past if past.is_built and all_answer else None

    def _shared_with(self, namespace: str) -> dict[str, NamespacePast]:
        """Namespaces that share with one, as far as they have seen anything and there is room."""
        shared: dict[str, NamespacePast] = {}
        for other in sharing_with(self.settings.share_between, namespace):
            key = (other, "")
            # Runs of their own come first, so others make no room for them.
            has_room = other in self.namespaces and self._built() < MOST_BUILT
            if key in self._kept or has_room:
                shared[other] = self._up_to_date(key)
        return shared

    def _asked_for(self, key: HistoryKey) -> NamespacePast:
        self._asked.add(key)
        past = self._up_to_date(key)
        # What was asked for last is the last to go.
        self._kept[key] = self._kept.pop(key)
        return past

    def _up_to_date(self, key: HistoryKey) -> NamespacePast:
        """What answers for a key; what there is not, or is outdated, is begun.

        What there is little of is built at once.
        """
        if key not in self._kept or key in self._outdated:
            if key not in self._building:
                self._outdated.discard(key)
                self._building[key] = self._new(key)
            self._kept.setdefault(key, self._building[key])
            self._go_on()
        return self._kept[key]

    def _new(self, key: HistoryKey) -> NamespacePast:
        namespace, pipeline = key
        stored, unwritten = self.runs_of(key)
        return NamespacePast(
            namespace,
            self.factors,
            stored,
            unwritten,
            self.said,
            self.settings.keep_days,
            self._kept[namespace, ""] if pipeline else None,
        )

    def _go_on(self) -> None:
        """Build; first what nothing answers for yet."""
        first = self._first_builds()
        for key in [*first, *(key for key in self._building if key not in first)]:
            if self._left <= 0:
                return
            past = self._building[key]
            self._left = past.build(self._left)
            if past.is_built:
                del self._building[key]
                self._has_been_built(key, past)

    def _first_builds(self) -> list[HistoryKey]:
        return [key for key, past in self._building.items() if self._kept.get(key) is past]

    def _has_been_built(self, key: HistoryKey, past: NamespacePast) -> None:
        if key in self._kept:
            self._kept[key] = past
        else:
            self._outdated.discard(key)
        if key[1]:
            return
        self._heard.add(key[0])
        for other in {*self._kept, *self._building}:
            if other[0] == key[0] and other[1]:
                for each in self._of(other):
                    each.rest_on(past)

    def _hear_of_nodes(self) -> None:
        """What namespaces saw of nodes counts for all, also if no run of them is planned."""
        namespace = self._unheard()
        if namespace is not None:
            self._building[namespace, ""] = self._new((namespace, ""))

    def _unheard(self) -> str | None:
        for namespace in islice(self.namespaces, MOST_NAMESPACES):
            key = (namespace, "")
            if namespace not in self._heard and not any(self._of(key)):
                return namespace
        return None

    def _built(self) -> int:
        return sum(not name for _, name in self._kept)

    def _has_room(self) -> bool:
        """Whether another namespace may be built; one that was not asked for lately makes room."""
        if self._built() < MOST_BUILT:
            return True
        oldest = next(key for key in self._kept if not key[1])
        if oldest in self._asked | self._asked_before:
            return False
        for key in [key for key in self._kept if key[0] == oldest[0]]:
            self._drop(key)
        return True

    def _drop_idle(self) -> None:
        """Too many pipelines that no run asks for; those not asked for longest go."""
        asked = self._asked | self._asked_before
        idle = [key for key in self._kept if key[1] and key not in asked]
        for key in idle[: max(0, len(idle) - MOST_IDLE)]:
            self._drop(key)

    def _drop(self, key: HistoryKey) -> None:
        del self._kept[key]
        self._building.pop(key, None)
        self._outdated.discard(key)
