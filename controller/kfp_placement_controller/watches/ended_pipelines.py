"""Reader of runs that reports each ended pipeline without a plan once, to learn from it.

Of the many objects that go on or are not pipelines nothing is kept, and of those that have ended
only until they are learned from.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.learning.ended_pipelines import EndedPipeline
from kfp_placement_controller.observed.namespaces import Namespaces
from kfp_placement_controller.sources.source import ObservedRun, RunSource
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, JsonObject, Kind, key_of

MOST_KNOWN = 200_000
"""Number of runs that are remembered as reported or stored; each takes some 200 bytes. Others are
read again when they are listed again, and not learned from twice."""


@dataclass
class EndedPipelines:
    """Reader of the runs that get a plan, which reports the ended pipelines among the others.

    Attributes:
        decided_by: kinds that must be known before a run can be read.
        planned: reader of the runs that get a plan.
        report: function called with every ended pipeline, in the thread that reads it.
        namespaces: the namespaces, some of which take no part.
    """

    decided_by: ClassVar[Collection[Kind]] = (*PlannedPipelines.decided_by, PIPELINE_HISTORIES)
    planned: PlannedPipelines
    report: Callable[[EndedPipeline], None]
    namespaces: Namespaces
    _ended_at: OrderedDict[str, datetime] = field(default_factory=OrderedDict)

    def changed(self, kind: Kind, change: Change[Any]) -> None:
        """Note an object that is new, has changed or is gone; other kinds do not matter here."""
        self.planned.changed(kind, change)
        if kind == NAMESPACES:
            self.namespaces.changed(change)
        elif kind == PIPELINE_HISTORIES and change.new is not None:
            # What is written needs no second look, however often a planner starts; nor does what
            # somebody deletes later: a label on the run must not bring it back.
            self._remember(change.new.ended)

    def read(self, source: RunSource, raw: JsonObject) -> ObservedRun | None:
        """Read the object of a run, and report the run if it has ended without a plan."""
        run = self.planned.read(source, raw)
        if run is None or not run.is_planned:
            self._report_ended(source, raw)
        return run

    def _report_ended(self, source: RunSource, raw: JsonObject) -> None:
        """Report a run if it is a pipeline that has ended and has not been learned from."""
        ended_at = source.pipeline_end(raw)
        if ended_at is None:
            return
        namespace, _ = key_of(raw)
        if not self.namespaces.takes_part(namespace):
            return
        uid = str(raw["metadata"].get("uid", ""))
        known_at = self._ended_at.get(uid)
        if known_at is not None and known_at >= ended_at:
            return
        try:
            ended = EndedPipeline.of(source.kind, raw, ended_at)
        except InputError:
            # That nothing is learned from it must not keep others from hearing of it.
            return
        self._remember({uid: ended_at})
        self.report(ended)

    def _remember(self, ended: Mapping[str, datetime]) -> None:
        self._ended_at.update(ended)
        while len(self._ended_at) > MOST_KNOWN:
            self._ended_at.popitem(last=False)
