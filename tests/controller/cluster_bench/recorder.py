"""What the API server's watches have shown, with the moment at which each thing was seen.

Times of objects are whole seconds; runs here take a few, so the watch's own clock counts.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kfp_placement_engine.contract.custom_resources import PipelinePlacement, read_resource
from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from kfp_placement_engine.readers.argo.executors import step_of_executor
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.runs import UNMARKED_LABEL
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.controlplane.argo.watching import Key, Watched, Watching, key_of, version_of
from tests.support.placements import planned_nodes

_COMPLETED = "workflows.argoproj.io/completed"
_WORKFLOW = "workflows.argoproj.io/workflow"
_NO_ROOM = "OutOf"


@dataclass
class SeenPod:
    """A pod's life; moments are seconds of one clock.

    Attributes:
        latest: as last seen.
        created_version: of the object as it was first seen.
        created_at, bound_at, running_at, ended_at: when it was first seen so.
        bound_version: of the object that first named a node; 0 = none has.
    """

    latest: JsonObject
    created_version: int
    created_at: float
    bound_at: float | None = None
    running_at: float | None = None
    ended_at: float | None = None
    bound_version: int = 0

    @property
    def namespace(self) -> str:
        """Where it is."""
        return str(self.latest["metadata"]["namespace"])

    @property
    def is_executor(self) -> bool:
        """Whether it is of a step, and not a driver."""
        labels = self.latest["metadata"].get("labels") or {}
        return SCHEDULER_LABEL in labels or UNMARKED_LABEL in labels

    @property
    def workflow(self) -> str:
        """The name of its run, or ""."""
        return str((self.latest["metadata"].get("labels") or {}).get(_WORKFLOW, ""))

    @property
    def node(self) -> str:
        """Where it was bound, or ""."""
        return str(self.latest["spec"].get("nodeName", ""))

    @property
    def was_rejected(self) -> bool:
        """Whether a kubelet had no room for it."""
        return str(self.latest["status"].get("reason", "")).startswith(_NO_ROOM)

    def step(self) -> str:
        """The step whose executor this is, or ""."""
        annotations = self.latest["metadata"].get("annotations") or {}
        name = annotations.get(ANNOTATION_NODE_NAME, "")
        return step_of_executor(name, self.workflow, _EveryName()) or ""


class _EveryName(frozenset[str]):
    """Takes the first reading of a node's name that is one of an executor's."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and not name.startswith("root") and "driver" not in name


@dataclass(frozen=True)
class SeenPlan:
    """A plan as it was written.

    Attributes:
        version: of the object.
        seconds: when it was seen, by the recorder's clock.
        placement: the plan.
    """

    version: int
    seconds: float
    placement: PipelinePlacement


@dataclass
class SeenRun:
    """A run's end and its plans.

    Attributes:
        created_at: when it was first seen.
        ended_at: when it was seen to have ended.
        phase: then.
        plans: oldest first.
    """

    created_at: float | None = None
    ended_at: float | None = None
    phase: str = ""
    plans: list[SeenPlan] = field(default_factory=list)

    def planned_node(self, step: str, before: int) -> str | None:
        """Where the step was planned when the object of that version was written."""
        for plan in reversed(self.plans):
            if plan.version < before:
                return planned_nodes(plan.placement).get(step)
        return None


class Recorder(Watching):
    """Watches pods, Workflows and plans of all namespaces; a context manager."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pods: dict[str, SeenPod] = {}
        self._runs: dict[Key, SeenRun] = {}
        super().__init__(
            Watched(api, ARGO_VERSION, "Workflow", self.workflow_changed),
            Watched(api, API_VERSION, "PipelinePlacement", self.placement_changed),
            Watched(api, "v1", "Pod", self.pod_changed),
        )

    def run(self, key: Key) -> SeenRun:
        """What has been seen of a run."""
        return self._runs.setdefault(key, SeenRun())

    def pod(self, item: JsonObject) -> SeenPod:
        """What has been seen of a pod."""
        return self._pods[item["metadata"]["uid"]]

    def pods(self, *namespaces: str) -> Iterator[SeenPod]:
        """All pods ever seen in these namespaces."""
        return (pod for pod in list(self._pods.values()) if pod.namespace in namespaces)

    def pod_changed(self, item: JsonObject) -> None:
        """A pod is new or has changed."""
        uid = item["metadata"]["uid"]
        now = self._clock()
        seen = self._pods.setdefault(uid, SeenPod(item, version_of(item), now))
        seen.latest = item
        if item["spec"].get("nodeName") and not seen.bound_version:
            seen.bound_version, seen.bound_at = version_of(item), now
        if item["status"].get("phase") != "Pending" and seen.running_at is None:
            seen.running_at = now
        if item["status"].get("phase") in ("Succeeded", "Failed") and seen.ended_at is None:
            seen.ended_at = now

    def placement_changed(self, item: JsonObject) -> None:
        """A plan was written."""
        placement = read_resource(PipelinePlacement, item)
        seen = SeenPlan(version_of(item), self._clock(), placement)
        self.run(key_of(item)).plans.append(seen)

    def workflow_changed(self, item: JsonObject) -> None:
        """A Workflow has changed."""
        run = self.run(key_of(item))
        run.created_at = run.created_at or self._clock()
        labels = item["metadata"].get("labels") or {}
        if labels.get(_COMPLETED) == "true" and run.ended_at is None:
            run.ended_at = self._clock()
            run.phase = str(item["status"].get("phase", ""))
