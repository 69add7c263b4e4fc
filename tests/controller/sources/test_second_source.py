"""A source that nobody has thought of: its runs are planned, and its pods find their steps.

`Batch` is a kind of object with a list of steps that run one after the other. Nothing of the
product knows it.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import NonCallableMock

import pytest

from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.knowledge import read_plan
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore, read_bare_node
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.observed.pods import ObservedPod, PodKeys
from kfp_placement_controller.planning.actions import Action, SayFindings, WritePlacement
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.source import (
    ObservedRun,
    ObservedTemplates,
    PodRun,
    RunEnd,
    RunOwner,
    RunSources,
    RunState,
    StepIndex,
)
from kfp_placement_engine.contract.custom_resources import (
    PipelinePlacement,
    PlacementPolicy,
    read_resource,
)
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import (
    PodIdentity,
    PodRole,
    RunIndex,
    RunOutcome,
    StepOutcome,
)
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NODES, PODS, Kind
from tests.controller.memory_placements import MemoryPlacements
from tests.controller.planning.builders import a_policy
from tests.support.builders import a_step
from tests.support.kubernetes import node_object
from tests.support.placements import planned_nodes, step_states

BATCHES = Kind("batches.example.org/v1", "batches", "Batch")
BATCH = "example.org/batch"
STEP = "example.org/step"
KEY = ("team", "nightly")
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

Json = dict[str, Any]


@dataclass(frozen=True)
class BatchIndex:
    """Pods say their step by its name."""

    names: frozenset[str]

    def identify(self, path: str, /) -> PodIdentity | None:
        """A step, by its name."""
        return (
            PodIdentity(path, PodRole.EXECUTOR, is_group=False, iteration=(), attempt=0)
            if path in self.names
            else None
        )

    def of_pod(self, pod: ObservedPod) -> PodIdentity | None:
        """The step of a pod."""
        return self.identify(pod.annotations.get(STEP, ""))


@dataclass(frozen=True)
class BatchContent:
    """The steps of a batch, and those that it calls done."""

    steps: tuple[str, ...]
    done: tuple[str, ...]

    def is_rewritten(self, since: Any) -> bool:
        """Whether it has other steps."""
        return bool(since.steps != self.steps)

    @property
    def size(self) -> int:
        """Some bytes for each step."""
        return 10 * len(self.steps)

    @property
    def kept_bytes(self) -> int:
        """The same bytes."""
        return self.size

    @property
    def is_forgotten(self) -> bool:
        """It never is."""
        return False

    def forget(self) -> None:
        """It takes hardly any memory."""

    def with_package(self, _package: bytes) -> "BatchContent":
        """A batch has no package."""
        return self

    def with_templates(self, _templates: tuple[bytes, ...]) -> "BatchContent":
        """A batch refers to nothing."""
        return self

    def graph(self, _options: ReadOptions) -> RunGraph:
        """One step after the other, with 1 CPU each."""
        before = ((), *((name,) for name in self.steps))
        steps = [
            a_step(name, *after, scheduler="kfp-placement")
            for name, after in zip(self.steps, before, strict=False)
        ]
        return RunGraph("nightly", "batch", tuple(steps))

    def index(self, graph: RunGraph) -> StepIndex:
        """By the names of steps."""
        return BatchIndex(frozenset(step.name for step in graph.steps))

    def outcome(self, _graph: RunGraph, _index: RunIndex) -> RunOutcome:
        """What is done has succeeded."""
        return RunOutcome({name: StepOutcome(StepState.SUCCEEDED) for name in self.done})


CONTROLS = {"controller": True}


class BatchSource:
    """Batches."""

    kind = BATCHES
    pod_keys = PodKeys(
        labels=(BATCH,),
        annotations=(STEP,),
        containers=("work",),
        is_unmarked_step=lambda _pod: False,
        start_limit=lambda _pod: None,
    )
    template_kinds: Mapping[Kind, Callable[[Json], ObservedTemplates]] = {}

    def observe(self, raw: Mapping[str, Any], **_options: bool) -> ObservedRun:
        """Read a batch; all of them are ours."""
        metadata, status = raw["metadata"], raw.get("status", {})
        end = RunEnd.SUCCEEDED if status.get("ended") else None
        return ObservedRun(
            key=RunKey(metadata["namespace"], metadata["name"]),
            owner=RunOwner(BATCHES, metadata["name"], metadata["uid"]),
            submitted_at=START,
            state=RunState(blocked=status.get("held", ""), end=end),
            content=BatchContent(tuple(raw["steps"]), tuple(status.get("done", ()))),
        )

    def pipeline_end(self, _raw: Mapping[str, Any]) -> None:
        """They are no pipelines."""

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """By the batch that controls the pod."""
        owner = pod.owner
        if owner is None or owner.kind != BATCHES.kind:
            return None
        return PodRun(RunKey(pod.namespace, owner.name), owner.uid)

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """By the annotation."""
        name = pod.annotations.get(STEP, "")
        return name if name in steps else None


SOURCES = RunSources(ArgoSource(), BatchSource())
OTHER_ORDER = RunSources(BatchSource(), ArgoSource())


def a_batch(**status: Any) -> Json:
    metadata = {"namespace": "team", "name": "nightly", "uid": "b1"}
    return {"metadata": metadata, "steps": ["load", "train"], "status": status}


def a_batch_pod(step: str, node: str = "", **times: str) -> Json:
    """A pod of the batch; with times, as its container runs or has ended."""
    state = {"terminated" if "finishedAt" in times else "running": times} if times else {}
    phase = "Succeeded" if "finishedAt" in times else "Running" if times else "Pending"
    return {
        "metadata": {
            "namespace": "team",
            "name": f"nightly-{step}",
            "uid": f"uid-{step}",
            "labels": {BATCH: "nightly", SCHEDULER_LABEL: "kfp-placement"},
            "annotations": {STEP: step},
            "ownerReferences": [{"kind": BATCHES.kind, "name": "nightly", "uid": "b1"} | CONTROLS],
        },
        "spec": {
            "schedulerName": "kfp-placement",
            "containers": [{"name": "work", "resources": {"requests": {"cpu": "1"}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase, "containerStatuses": [{"name": "work", "state": state}]},
    }


class Plane:
    """A coordinator, what writes for it, and an extender, that know batches; and two nodes."""

    def __init__(self) -> None:
        self.now = START
        self.coordinator = Coordinator(
            SOURCES, lambda: self.now.timestamp(), policy=PlacementPolicy(spec=a_policy())
        )
        self.coordinator.lead(1, [], START)
        self.store = KnowledgeStore(SOURCES, clock=lambda: 0.0)
        self.api = MemoryPlacements()
        api: Any = self.api
        nobody = NonCallableMock(spec=["record", "submit"])
        self.runner = ActionRunner(api, nobody, nobody, lambda: self.now, *[nobody] * 4)
        for name in ("n0", "n1"):
            raw = node_object(name)
            self.coordinator.handle(NODES, Change(("", name), None, observe_node(raw)), START)
            self.store.node_changed(Change(("", name), None, read_bare_node(raw)))

    def batch(self, raw: Json) -> None:
        """The batch is new or has changed."""
        (source,) = (each for each in SOURCES if each.kind == BATCHES)
        self.coordinator.handle(BATCHES, Change(KEY, None, source.observe(raw)), self.now)

    def pod(self, raw: Json) -> None:
        """A pod is new or has changed."""
        pod = SOURCES.observe_pod(raw)
        self.coordinator.handle(PODS, Change((pod.namespace, pod.name), None, pod), self.now)

    def tick(self, seconds: float = 10) -> list[Action]:
        """So much later all is decided and written."""
        self.now += timedelta(seconds=seconds)
        actions = self.coordinator.tick(self.now)
        for action in actions:
            if not isinstance(action, SayFindings):
                self.runner.run(action, self.coordinator)
            if isinstance(action, WritePlacement):
                plan = read_plan(self.api.objects[action.key])
                self.store.plan_changed(Change(action.key, None, plan))
        return actions

    @property
    def placement(self) -> PipelinePlacement:
        """The only placement, as it is stored."""
        (raw,) = self.api.objects.values()
        return read_resource(PipelinePlacement, raw)

    def asked(self, pod: Json) -> list[str]:
        """The nodes that the extender leaves for a pod."""
        answers = Answers(lambda: self.store.knowledge, lambda *_: None)
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": ["n0", "n1"]}).encode()
        names: list[str] = json.loads(answers.filter(body).body)["NodeNames"]
        return names

    def states(self) -> Mapping[str, str]:
        """State of every step, as last written."""
        return step_states(self.placement)


@pytest.fixture
def plane():
    """A batch of two steps is planned."""
    made = Plane()
    made.batch(a_batch())
    made.tick()
    return made


def test_an_object_becomes_a_plan_that_it_owns(plane):
    placement = plane.placement
    (owner,) = placement.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == (
        "batches.example.org/v1",
        "Batch",
        "nightly",
        "b1",
    )
    assert (placement.metadata.namespace, placement.metadata.name) == KEY
    assert placement.spec.workflow_uid == "b1"
    assert set(planned_nodes(placement)) == {"load", "train"}
    assert set(planned_nodes(placement).values()) <= {"n0", "n1"}


def test_the_extender_answers_by_the_plan_of_the_pods_step(plane):
    planned = planned_nodes(plane.placement)
    for step in ("load", "train"):
        assert plane.asked(a_batch_pod(step)) == [planned[step]]
    assert plane.asked(a_batch_pod("unknown")) == ["n0", "n1"]


def test_pods_say_what_became_of_the_steps(plane):
    times = {"startedAt": "2026-01-05T08:00:12Z"}
    plane.pod(a_batch_pod("load", "n0", **times))
    plane.tick()
    assert plane.states() == {"load": "running", "train": "pending"}
    plane.pod(a_batch_pod("load", "n0", **times, finishedAt="2026-01-05T08:00:22Z"))
    plane.tick()
    assert plane.states() == {"load": "succeeded", "train": "pending"}


def test_the_object_says_what_became_of_the_others(plane):
    plane.batch(a_batch(done=["load", "train"], ended=True))
    plane.tick()
    assert plane.states() == {"load": "succeeded", "train": "succeeded"}
    assert plane.placement.status.phase == "Succeeded"


def test_what_holds_a_run_back_is_said_in_the_source_s_words(plane):
    plane.batch(a_batch(held="the batch waits for its turn"))
    plane.tick()
    (planned,) = (each for each in plane.placement.status.conditions if each.type == "Planned")
    assert planned.reason == "Suspended"
    assert planned.message.endswith("the batch waits for its turn")


def a_pod_of_two_containers(**labels: str) -> Json:
    """A pod whose `work` ended before its `main` began."""
    times = (
        {"startedAt": "2026-01-05T08:00:00Z", "finishedAt": "2026-01-05T08:00:05Z"},
        {"startedAt": "2026-01-05T08:00:10Z", "finishedAt": "2026-01-05T08:00:40Z"},
    )
    statuses = [
        {"name": name, "state": {"terminated": each}}
        for name, each in zip(("work", "main"), times, strict=True)
    ]
    metadata = {"namespace": "team", "name": "p", "uid": "p1", "labels": labels}
    status = {"phase": "Succeeded", "containerStatuses": statuses}
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


@pytest.mark.parametrize("sources", [SOURCES, OTHER_ORDER])
@pytest.mark.parametrize(
    ("label", "seconds"), [(WORKFLOW_LABEL, (10, 40)), (BATCH, (0, 5))], ids=["argo", "batch"]
)
def test_the_times_of_a_pod_are_of_the_container_that_its_own_source_names(sources, label, seconds):
    pod = sources.observe_pod(a_pod_of_two_containers(**{label: "nightly"}))
    expected = tuple(START + timedelta(seconds=each) for each in seconds)
    assert (pod.running_at, pod.finished_at) == expected


@pytest.mark.parametrize(("sources", "second"), [(SOURCES, 10), (OTHER_ORDER, 0)])
def test_a_pod_without_a_label_has_the_times_of_the_first_source_with_a_container_in_it(
    sources, second
):
    pod = sources.observe_pod(a_pod_of_two_containers())
    assert pod.running_at == START + timedelta(seconds=second)
