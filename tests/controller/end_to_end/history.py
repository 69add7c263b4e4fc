"""What was planned, written and bound when, by the versions of the API server's one history."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.contract.resources import PipelinePlacement, read_resource
from kfp_placement_engine.readers.argo.executors import step_of_executor
from tests.controlplane.api import Api, JsonObject
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME, LABEL_WORKFLOW
from tests.controlplane.argo.watching import Key, Watched, Watching, key_of, version_of
from tests.support.placements import planned_nodes


class Written(NamedTuple):
    """A PipelinePlacement as it was for a while.

    Attributes:
        version: of the API server's history.
        seconds: when it was seen, by a clock of its own.
        placement: as written.
    """

    version: int
    seconds: float
    placement: PipelinePlacement


News = tuple[str, ...]
"""The phase, and type, status and reason of each condition."""


@dataclass
class RunWrites:
    """The writes of one run's placement by what they were for.

    Attributes:
        stages: revision -> writes of that plan, and of the status that comes with each of them.
        news: of the status alone, for another phase or condition: what each said.
        holds: how often the run was said to be held back, as one that Argo does not begin in time.
        rows: of the status alone, for steps that went on.
        seconds: from the first write to the last.
    """

    stages: Counter[int] = field(default_factory=Counter)
    news: list[News] = field(default_factory=list)
    holds: int = 0
    rows: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, written: Sequence[Written]) -> Self:
        """Sort all versions of a placement, from the first one on."""
        found = cls(seconds=written[-1].seconds - written[0].seconds)
        before: PipelinePlacement | None = None
        with_plan = False
        for placement in (each.placement for each in written):
            is_plan = before is None or placement.spec != before.spec
            if is_plan or with_plan:
                found.stages[placement.spec.revision] += 1
            elif before is not None and _news(placement) != _news(before):
                found.news.append(_news(placement))
            else:
                found.rows += 1
            found.holds += _is_held(placement) and not (before is not None and _is_held(before))
            before, with_plan = placement, is_plan
        return found

    @property
    def total(self) -> int:
        """All of them."""
        return self.stages.total() + len(self.news) + self.rows


def _news(placement: PipelinePlacement) -> News:
    status = placement.status
    if status is None:
        return ()
    conditions = (f"{each.type}={each.status} {each.reason}" for each in status.conditions)
    return str(status.phase), *conditions


def _is_held(placement: PipelinePlacement) -> bool:
    status = placement.status
    return status is not None and any(
        each.reason == ConditionReason.SUSPENDED for each in status.conditions
    )


class History(Watching):
    """Watches plans and pods of steps; a context manager that stops."""

    def __init__(self, api: Api, pods: str = SCHEDULER_LABEL) -> None:
        """Watch nothing yet.

        Args:
            api: the API server.
            pods: a label of the pods that are of interest: by default those that are marked.
        """
        self._written: dict[Key, list[Written]] = {}
        self._created: dict[str, int] = {}
        self._bound: dict[str, int] = {}
        super().__init__(
            Watched(api, API_VERSION, "PipelinePlacement", self._plan_changed),
            Watched(api, "v1", "Pod", self._pod_changed, labelSelector=pods),
        )

    def written(self, run: str, namespace: str) -> Sequence[Written]:
        """Every version of a run's placement that was seen."""
        return tuple(self._written.get((namespace, run), ()))

    def created(self, pod: JsonObject) -> int:
        """The version at which a pod was first seen."""
        return self._created[pod["metadata"]["uid"]]

    def planned_for(self, pod: JsonObject) -> set[str]:
        """The nodes that plans in force had for a pod's step from its creation to its binding."""
        metadata = pod["metadata"]
        run = metadata["labels"][LABEL_WORKFLOW]
        created, bound = self._created[metadata["uid"]], self._bound[metadata["uid"]]
        before = [each for each in self.written(run, metadata["namespace"]) if each.version < bound]
        in_force = [each for each in before if each.version >= created]
        earlier = [each for each in before if each.version < created]
        nodes = (step_node(each.placement, pod) for each in (*earlier[-1:], *in_force))
        return {node for node in nodes if node is not None}

    def _plan_changed(self, item: JsonObject) -> None:
        seen = Written(version_of(item), time.monotonic(), read_resource(PipelinePlacement, item))
        self._written.setdefault(key_of(item), []).append(seen)

    def _pod_changed(self, item: JsonObject) -> None:
        uid = item["metadata"]["uid"]
        self._created.setdefault(uid, version_of(item))
        if item["spec"].get("nodeName"):
            self._bound.setdefault(uid, version_of(item))


def step_node(placement: PipelinePlacement, pod: JsonObject) -> str | None:
    """Where a placement wants a pod, or None."""
    planned = planned_nodes(placement)
    step = step_of_pod(pod, placement)
    return None if step is None else planned.get(step)


def step_of_pod(pod: JsonObject, placement: PipelinePlacement) -> str | None:
    """The step of an executor pod, or None where the placement has no row for it."""
    metadata = pod["metadata"]
    steps = {row.name for row in placement.planned_rows().rows if row is not None}
    name = metadata["annotations"][ANNOTATION_NODE_NAME]
    return step_of_executor(name, metadata["labels"][LABEL_WORKFLOW], steps)
