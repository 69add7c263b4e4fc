"""Three runs that each need the only GPU of a cluster, what is seen of them, and what must be true.

All have the same steps: `prepare`, then `train` on the GPU, then `evaluate`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from kfp_placement_engine.contract.keys import QUEUE_INSTANCE
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from kfp_placement_engine.render.text import table_lines
from kfp_placement_engine.views.document import Column, Row, Table
from kfp_placement_engine.views.formatting import NONE
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.recorder import Recorder, SeenPod
from tests.controller.end_to_end.small_pipelines import compiled, step
from tests.controlplane import objects
from tests.controlplane.api import Api
from tests.controlplane.argo.watching import Key, key_of, version_of
from tests.support.taxi_cluster import with_durations

GPU = "nvidia.com/gpu"
NODE = "gpu-node"
QUOTA = {"resources": [{"name": GPU, "amount": "1"}]}
MINUTES = {"prepare": 2, "train": 18, "evaluate": 2}


@dataclass(frozen=True)
class DemoRun:
    """A run to submit.

    Attributes:
        name: of its Workflow.
        priority: of all its steps.
    """

    name: str
    priority: int

    def workflow(self, shorter: int) -> JsonObject:
        """The run as KFP submits it; its steps take such a part of their time."""
        written = with_durations(compiled(self.name, self._steps), 1 / shorter)
        return {**written, "metadata": {**written["metadata"], "name": self.name}}

    def _steps(self) -> None:
        prepare = self._step("prepare")
        train = self._step("train", prepare, gpu=1)
        self._step("evaluate", train)

    def _step(self, name: str, *after: Any, **marks: Any) -> Any:
        return step(
            name, *after, duration=f"{MINUTES[name]}m", cpu=1, priority=self.priority, **marks
        )


FIRST, LOW, HIGH = DemoRun("daily", 10), DemoRun("trial", 0), DemoRun("urgent", 10)
RUNS = (FIRST, LOW, HIGH)
"""Runs in the order of submission. The last goes before the second, and does not stop the first."""


def gpu_node() -> JsonObject:
    """The node: room for the CPU steps of all runs, and one GPU."""
    return objects.node(NODE, {"cpu": "8", "memory": "32Gi", GPU: "1"})


class QueueRecorder(Recorder):
    """Sees also when runs were released, and which pods found no node."""

    def __init__(self, api: Api) -> None:
        self._released: dict[Key, tuple[int, float]] = {}
        self._created_versions: dict[str, int] = {}
        self._unschedulable: set[str] = set()
        super().__init__(api)

    def workflow_changed(self, item: JsonObject) -> None:
        """A Workflow has changed."""
        labels = item["metadata"].get("labels") or {}
        if labels.get(INSTANCE_LABEL) != QUEUE_INSTANCE:
            self._released.setdefault(key_of(item), (version_of(item), self._clock()))
        super().workflow_changed(item)

    def pod_changed(self, item: JsonObject) -> None:
        """A pod is new or has changed."""
        uid = item["metadata"]["uid"]
        self._created_versions.setdefault(uid, version_of(item))
        if any(map(_finds_no_node, item["status"].get("conditions", ()))):
            self._unschedulable.add(uid)
        super().pod_changed(item)

    def released_at(self, key: Key) -> float | None:
        """When a run was seen not to be held."""
        state_and_moment = self._released.get(key)
        return None if state_and_moment is None else state_and_moment[1]

    def early_pods(self, key: Key) -> int:
        """How many pods of a run were made before it was released."""
        # Versions of all kinds are of one sequence; clocks of two watches are not.
        released = self._released[key][0] if key in self._released else float("inf")
        return sum(self._created_versions[uid] < released for uid in self._uids(key))

    def unschedulable_pods(self, key: Key) -> int:
        """How many pods of a run the scheduler has found no node for, if only for a while."""
        return sum(uid in self._unschedulable for uid in self._uids(key))

    def pods_of(self, key: Key) -> Iterable[SeenPod]:
        """All pods of a run."""
        namespace, name = key
        return (pod for pod in self.pods(namespace) if pod.workflow == name)

    def _uids(self, key: Key) -> Iterable[str]:
        return (pod.latest["metadata"]["uid"] for pod in self.pods_of(key))


def _finds_no_node(condition: JsonObject) -> bool:
    return (condition["type"], condition["status"]) == ("PodScheduled", "False")


def uses_gpu(pod: SeenPod) -> bool:
    """Whether a pod requests the GPU."""
    containers = pod.latest["spec"]["containers"]
    return any(GPU in (each.get("resources", {}).get("requests") or {}) for each in containers)


@dataclass(frozen=True)
class RunRecord:
    """What was seen of a run; moments are seconds since the demo began.

    Attributes:
        run: which.
        phase: of its Workflow at its end.
        was_queued: whether its RunRequest has said that it waits for something.
        submitted, began, ended: when; it began when its queue released it.
        not_before: when it was to start at the earliest, as last said; None = nothing was said.
        early_pods: its pods that were made before it began.
        unschedulable_pods: its pods that waited for room on the node.
        gpu: from when to when its pods used the GPU.
    """

    run: DemoRun
    phase: str
    was_queued: bool
    submitted: float
    began: float
    ended: float
    not_before: float | None = None
    early_pods: int = 0
    unschedulable_pods: int = 0
    gpu: tuple[tuple[float, float], ...] = ()


def summary(records: Sequence[RunRecord]) -> list[str]:
    """A table of the runs, in the order in which they began."""
    titles = ("PRIORITY", "SUBMITTED", "WAITED", "LAST SAID", "BEGAN", "ENDED", "PENDING PODS")
    columns = [Column("RUN"), *(Column(title, right=True) for title in titles)]
    rows = [_row(each) for each in sorted(records, key=lambda each: each.began)]
    return [line.rstrip() for line in table_lines(Table("", columns, [Row(row) for row in rows]))]


def _row(record: RunRecord) -> list[str]:
    waited = record.began - record.submitted
    moments = (record.submitted, waited, record.not_before, record.began, record.ended)
    return [
        record.run.name,
        str(record.run.priority),
        *(NONE if each is None else f"{each:.1f} s" for each in moments),
        str(record.early_pods + record.unschedulable_pods),
    ]


def untrue(records: Sequence[RunRecord]) -> list[str]:
    """What the demo claims and was not so; the records are in the order of submission."""
    messages = [problem for each in records for problem in _problems(each)]
    messages += [
        f"run {each.run.name} did not wait: its queue admitted it at once"
        for each in records[1:]
        if not each.was_queued
    ]
    messages += [
        f"runs {one.run.name} and {other.run.name} used the GPU at the same time"
        for one, other in combinations(records, 2)
        if _overlap(one.gpu, other.gpu)
    ]
    _, low, high = records
    if not (low.submitted < high.submitted and high.began < low.began):
        messages.append(f"run {high.run.name} did not overtake run {low.run.name}")
    return messages


def _problems(record: RunRecord) -> Iterator[str]:
    """What was not so of one run alone."""
    name = record.run.name
    if record.phase != "Succeeded":
        yield f"run {name} has not succeeded: it has {record.phase.lower()}"
    if not record.gpu:
        yield f"run {name} did not use the GPU"
    if record.early_pods:
        yield f"run {name} had {record.early_pods} pods before it began"
    if record.unschedulable_pods:
        yield f"run {name} had {record.unschedulable_pods} pods that waited for room"
    # Times of objects are whole seconds.
    if record.not_before is not None and record.began < record.not_before - 1:
        yield f"run {name} began before the time that its queue had said"


def _overlap(some: Iterable[tuple[float, float]], others: Sequence[tuple[float, float]]) -> bool:
    return any(
        start < other_end and other_start < end
        for start, end in some
        for other_start, other_end in others
    )
