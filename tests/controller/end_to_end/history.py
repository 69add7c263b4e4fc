"""What was planned, written and bound when, by the versions of the API server's one history."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.readers.argo.executors import step_of_executor
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.recorder import Recorder, SeenPlan
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME, LABEL_WORKFLOW
from tests.support.placements import planned_nodes

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
    def of(cls, written: Sequence[SeenPlan]) -> Self:
        """Sort all versions of a placement, from the first one on."""
        writes = cls(seconds=written[-1].seconds - written[0].seconds)
        before: PipelinePlacement | None = None
        with_plan = False
        for placement in (each.placement for each in written):
            is_plan = before is None or placement.spec != before.spec
            if is_plan or with_plan:
                writes.stages[placement.spec.revision] += 1
            elif before is not None and _news(placement) != _news(before):
                writes.news.append(_news(placement))
            else:
                writes.rows += 1
            writes.holds += _is_held(placement) and not (before is not None and _is_held(before))
            before, with_plan = placement, is_plan
        return writes

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


class History(Recorder):
    """Watches plans and pods, and says where plans wanted a pod while it waited."""

    def written(self, run: str, namespace: str) -> Sequence[SeenPlan]:
        """Every version of a run's placement that was seen."""
        return tuple(self.run((namespace, run)).plans)

    def planned_for(self, pod: JsonObject) -> set[str]:
        """The nodes that plans in force had for a pod's step from its creation to its binding."""
        seen = self.pod(pod)
        plans = self.written(seen.workflow, seen.namespace)
        before = [each for each in plans if each.version < seen.bound_version]
        in_force = [each for each in before if each.version >= seen.created_version]
        earlier = [each for each in before if each.version < seen.created_version]
        nodes = (step_node(each.placement, pod) for each in (*earlier[-1:], *in_force))
        return {node for node in nodes if node is not None}


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
