"""Pipelines that nobody plans teach, too: each is passed on once, when it has ended.

Of the many objects that go on or are not pipelines nothing is kept, and of those that have ended
only until they are learned from.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.observed.ended_pipelines import EndedPipeline
from kfp_placement_controller.observed.namespaces import ObservedNamespace, takes_part
from kfp_placement_controller.sources.source import ObservedRun, RunSource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, Kind

MOST_KNOWN = 200_000
"""Runs that are remembered as told or stored, of all together; each takes some 200 bytes. Others
are read again when they are listed again, and not learned from twice."""

ReadRun = Callable[[RunSource, JsonObject], ObservedRun | None]


@dataclass
class EndedPipelines:
    """Finds the runs that have ended and that no plan follows.

    Attributes:
        tell: function called with every such run, in the thread that reads it.
        own_namespace: the controller's.
        opt_in: whether only namespaces that ask for it take part, or all but those that refuse.
        decided_by: the kinds that must be known before a run can be read.
    """

    decided_by = (NAMESPACES, PIPELINE_HISTORIES)

    tell: Callable[[EndedPipeline], None]
    own_namespace: str
    opt_in: bool
    _namespaces: dict[str, ObservedNamespace] = field(default_factory=dict)
    _known: OrderedDict[str, datetime] = field(default_factory=OrderedDict)

    def changed(self, kind: Kind, change: Change[Any]) -> None:
        """Take in that an object is new, has changed or is gone; other kinds do not matter here."""
        if kind == NAMESPACES:
            self._namespaces.pop(change.key[1], None)
            if change.new is not None:
                self._namespaces[change.key[1]] = change.new
        elif kind == PIPELINE_HISTORIES and change.new is not None:
            # What is written needs no second look, however often a planner starts; nor does what
            # somebody deletes later: a label on the run must not bring it back.
            self._remember(change.new.ended)

    def reading(self, read: ReadRun) -> ReadRun:
        """Return the same reader, which also tells of runs that have ended without a plan."""

        def read_and_tell(source: RunSource, raw: JsonObject) -> ObservedRun | None:
            run = read(source, raw)
            if run is None or not run.is_planned:
                self._seen(source, raw)
            return run

        return read_and_tell

    def _seen(self, source: RunSource, raw: JsonObject) -> None:
        """Tell of a run if it is a pipeline that has ended and has not been learned from."""
        ended_at = source.pipeline_end(raw)
        if ended_at is None:
            return
        namespace = raw["metadata"].get("namespace", "")
        says = self._namespaces.get(namespace)
        if not takes_part(namespace, says, self.own_namespace, opt_in=self.opt_in):
            return
        uid = str(raw["metadata"].get("uid", ""))
        known_at = self._known.get(uid)
        if known_at is not None and known_at >= ended_at:
            return
        try:
            ended = EndedPipeline.of(source.kind, raw, ended_at)
        except InputError:
            # That nothing is learned from it must not keep others from hearing of it.
            return
        self._remember({uid: ended_at})
        self.tell(ended)

    def _remember(self, ended: Mapping[str, datetime]) -> None:
        self._known.update(ended)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
