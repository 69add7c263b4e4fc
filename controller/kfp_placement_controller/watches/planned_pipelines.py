"""Reader of the runs that get a plan: marked ones, and those of namespaces that ask for it.

A run without a mark goes on as it was first planned: as soon as it has a PipelinePlacement, that
counts, and no longer what its namespace says.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kfp_placement_controller.kinds import PLACEMENT_METADATA
from kfp_placement_controller.observed.placed_runs import PlacedRun
from kfp_placement_controller.sources.source import ObservedRun, RunSource
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, JsonObject, Kind, key_of


@dataclass
class PlannedPipelines:
    """Reader of runs, which drops those that get no plan; mostly these are all there are.

    Namespaces and placements are reported in the threads of their watches, before any run is read
    in the thread of its own watch.

    Attributes:
        decided_by: kinds that must be known before a run can be read.
        reads_unplanned: whether runs that get no plan are read, too.
    """

    decided_by: ClassVar[Collection[Kind]] = (NAMESPACES, PLACEMENT_METADATA)
    reads_unplanned: bool = False
    _namespaces: set[str] = field(default_factory=set)
    _placed: dict[RunKey, PlacedRun] = field(default_factory=dict)

    def changed(self, kind: Kind, change: Change[Any]) -> None:
        """Note an object that is new, has changed or is gone; other kinds do not matter here."""
        if kind == NAMESPACES:
            if change.new is not None and change.new.all_pipelines:
                self._namespaces.add(change.key[1])
            else:
                self._namespaces.discard(change.key[1])
        elif kind == PLACEMENT_METADATA:
            change.apply_to(self._placed, RunKey(*change.key))

    def read(self, source: RunSource, raw: JsonObject) -> ObservedRun | None:
        """Read the object of a run; None = the run is dropped."""
        return source.observe(
            raw, all_pipelines=self._is_planned(raw), unplanned=self.reads_unplanned
        )

    def _is_planned(self, raw: JsonObject) -> bool:
        """Return whether a run is planned without marks, if it is a pipeline."""
        key = RunKey(*key_of(raw))
        placed = self._placed.get(key)
        if placed is not None and raw["metadata"].get("uid") in placed.uids:
            return placed.all_marked
        return key.namespace in self._namespaces
