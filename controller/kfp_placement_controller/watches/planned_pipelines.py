"""Pipelines that are planned without marks: those of namespaces that ask for it.

A run goes on as it was first planned: as soon as it has a PipelinePlacement, that counts and no
longer what its namespace says.
"""

from dataclasses import dataclass, field
from typing import Any

from kfp_placement_controller.kinds import PLACEMENT_METADATA
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.observed.placed_runs import PlacedRun
from kfp_placement_controller.sources.source import ObservedRun, RunSource
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, Kind


@dataclass
class PlannedPipelines:
    """Reads runs, and drops at once those that nobody plans: mostly they are all there are.

    Namespaces and placements are reported in the threads of their watches, before any run is read
    in that of its own.

    Attributes:
        reads_unplanned: runs that get no plan are read, too.
        decided_by: the kinds that must be known before a run can be read.
    """

    decided_by = (NAMESPACES, PLACEMENT_METADATA)

    reads_unplanned: bool = False
    _namespaces: set[str] = field(default_factory=set)
    _placed: dict[RunKey, PlacedRun] = field(default_factory=dict)

    def changed(self, kind: Kind, change: Change[Any]) -> None:
        """Note an object that is new, has changed or is gone; other kinds do not matter here."""
        if kind == NAMESPACES:
            self._namespace_changed(change)
        elif kind == PLACEMENT_METADATA:
            self._placement_changed(change)

    def read(self, source: RunSource, raw: JsonObject) -> ObservedRun | None:
        """Read a run, as its source says; None = it is dropped."""
        return source.observe(
            raw, all_pipelines=self._is_planned(raw), unplanned=self.reads_unplanned
        )

    def _is_planned(self, raw: JsonObject) -> bool:
        """Return whether a run is planned without marks, if it is a pipeline."""
        metadata = raw["metadata"]
        namespace = metadata.get("namespace", "")
        placed = self._placed.get(RunKey(namespace, metadata["name"]))
        if placed is not None and metadata.get("uid") in placed.uids:
            return placed.all_marked
        return namespace in self._namespaces

    def _namespace_changed(self, change: Change[ObservedNamespace]) -> None:
        if change.new is not None and change.new.all_pipelines:
            self._namespaces.add(change.key[1])
        else:
            self._namespaces.discard(change.key[1])

    def _placement_changed(self, change: Change[PlacedRun]) -> None:
        if change.new is None:
            self._placed.pop(RunKey(*change.key), None)
        else:
            self._placed[RunKey(*change.key)] = change.new
