"""What a tenant sends to keep the planner from the runs of others."""

import base64
import contextlib
import gzip
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kfp_placement_engine.contract.keys import (
    API_VERSION,
    DEFAULT_SCHEDULER,
    HINTS_ANNOTATION,
    PLAN_GATE,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.readers.argo.workflow_nodes import node_id
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.exceptions import ApiError, WaitError
from tests.support.installation import PLANNER, Installation
from tests.support.process_usage import family_memory_bytes

_LOOK_SECONDS = 0.03

_MARKS = {
    "labels": {SCHEDULER_LABEL: DEFAULT_SCHEDULER},
    "annotations": {HINTS_ANNOTATION: '{"duration": "5m"}'},
}


def tenant_account(api: Api, namespace: str) -> Api:
    """Make an account with the role `edit`, as shipped, and all rights on Workflows.

    It is a role of the namespace here: nothing adds up aggregated roles on this control plane.
    """
    aggregate = "rbac.authorization.k8s.io/aggregate-to-"
    version = f"{housekeeping.RBAC}/v1"
    rules = [{"apiGroups": ["argoproj.io"], "resources": ["*"], "verbs": ["*"]}]
    for role in api.list(version, "ClusterRole"):
        labels = role["metadata"].get("labels", {})
        if "true" in (labels.get(f"{aggregate}{each}") for each in ("view", "edit")):
            rules += role["rules"]
    api.create(objects.an_object(version, "Role", "tenant", namespace, rules=rules))
    return housekeeping.new_account(api, namespace, "tenant", "tenant", "Role")


def run_of_steps(steps: int, name: str, namespace: str, *, lines: int = 1) -> JsonObject:
    """A Workflow of marked steps in a few lines, one after another in each."""
    tasks = [
        {"name": f"s{number}", "template": "work"}
        | ({"depends": f"s{number - lines}"} if number >= lines else {})
        for number in range(steps)
    ]
    work = {"image": "busybox:1", "command": ["true"], "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": ARGO_VERSION,
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "entrypoint": "main",
            "templates": [
                {"name": "main", "dag": {"tasks": tasks}},
                {"name": "work", "metadata": _MARKS, "container": work},
            ],
        },
    }


def costly_run(steps: int, name: str, namespace: str) -> JsonObject:
    """A Workflow that takes far longer to read and plan than its steps say: each is another one."""
    run = run_of_steps(steps, name, namespace, lines=steps)
    main, work = run["spec"]["templates"]
    for number, task in enumerate(main["dag"]["tasks"]):
        task["template"] = f"work-{number}"
    hints = {"duration": "5m", "type": "Predict", "maxLatency": "20ms"}
    run["spec"]["templates"] = [
        main,
        *(
            {
                **work,
                "name": f"work-{number}",
                "metadata": {
                    **_MARKS,
                    "annotations": {
                        HINTS_ANNOTATION: json.dumps(hints | {"location": f"place-{number}"})
                    },
                },
                "container": work["container"] | {"image": f"{name}-{number}:1"},
            }
            for number in range(steps)
        ),
    ]
    return run


def recorded_run(records: int, name: str, namespace: str) -> JsonObject:
    """A Workflow of one step, in whose status are compressed records of very many."""
    run = run_of_steps(1, name, namespace)
    names = {node_id(name, path): path for path in map(f"{name}.s{{}}".format, range(records))}
    nodes = {
        key: {"id": key, "name": path, "type": "Pod", "phase": "Running", "message": "x" * 500}
        for key, path in names.items()
    }
    packed = base64.b64encode(gzip.compress(json.dumps(nodes).encode())).decode()
    run["status"] = {"phase": "Running", "compressedNodes": packed}
    return run


def incompressible_run(size: int, name: str, namespace: str) -> JsonObject:
    """A Workflow of one step whose object has this size, and repeats nothing."""
    run = run_of_steps(1, name, namespace)
    text = base64.b64encode(random.Random(name).randbytes(size * 3 // 4)).decode()
    run["spec"]["arguments"] = {"parameters": [{"name": "p", "value": text}]}
    return run


def marked_pod(
    name: str, namespace: str, workflow: str, owner: Mapping[str, Any] | None = None
) -> JsonObject:
    """A pod with our mark and our gate that names a run; without an owner it is of none."""
    metadata: JsonObject = {
        "name": name,
        "namespace": namespace,
        "labels": {SCHEDULER_LABEL: DEFAULT_SCHEDULER, "workflows.argoproj.io/workflow": workflow},
        "annotations": {"workflows.argoproj.io/node-name": f"{workflow}.s0"},
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    spec = {
        "schedulingGates": [{"name": PLAN_GATE}],
        "containers": [{"name": "main", "image": "busybox:1"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@dataclass
class Pace:
    """Limits of what a tenant sends.

    Attributes:
        writes: writes in a second.
        bytes: bytes in a second.
    """

    writes: float = 10.0
    bytes: float = 4e6
    _next_at: float = 0.0

    def wait(self, size: int, stopped: threading.Event) -> None:
        """Wait until the next write may be sent."""
        now = time.monotonic()
        stopped.wait(max(0.0, self._next_at - now))
        self._next_at = max(now, self._next_at) + max(1 / self.writes, size / self.bytes)


Send = Callable[[], object]


@dataclass
class Attack:
    """Writes of a tenant at its pace, in a thread; a context manager that ends them.

    Attributes:
        writes: the writes, each with its size in bytes.
        pace: limits.
        sent: number of writes that were sent.
    """

    writes: Iterable[tuple[int, Send]]
    pace: Pace = field(default_factory=Pace)
    sent: int = 0

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, name="attack", daemon=True)

    @property
    def is_over(self) -> bool:
        """Whether everything has been sent."""
        return not self._thread.is_alive()

    def __enter__(self) -> "Attack":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(30)

    def wait(self, timeout_seconds: float) -> None:
        """Wait until everything has been sent."""
        self._thread.join(timeout_seconds)
        assert self.is_over

    def _send(self) -> None:
        for size, send in self.writes:
            self.pace.wait(size, self._stopped)
            if self._stopped.is_set():
                return
            # What is refused costs the planner nothing.
            with contextlib.suppress(ApiError):
                send()
            self.sent += 1


def creations(
    installation: Installation, items: Iterable[JsonObject]
) -> Iterator[tuple[int, Send]]:
    """The creation of objects, as writes of an attack."""
    for item in items:
        yield len(json.dumps(item)), partial(installation.api.create, item)


def annotations(
    installation: Installation, items: Sequence[JsonObject], count: int
) -> Iterator[tuple[int, Send]]:
    """Patches of an annotation of objects in turn; every watch gets the whole object each time."""
    for number in range(count):
        item = items[number % len(items)]
        patch = {"metadata": {"annotations": {"example.com/number": str(number)}}}
        yield len(json.dumps(item)), partial(installation.api.patch, item, patch)


def seconds_to_plan(installation: Installation, run: JsonObject, timeout_seconds: float) -> float:
    """Create a run, and return how long it takes until its plan is written."""
    key = run["metadata"]["name"], run["metadata"]["namespace"]
    began = time.monotonic()
    installation.api.create(run)

    while True:
        placement = installation.api.find(API_VERSION, "PipelinePlacement", *key)
        seconds = time.monotonic() - began
        if placement is not None and placement["spec"].get("revision"):
            return seconds
        if seconds > timeout_seconds:
            raise WaitError(f"no plan of {key[0]} in {timeout_seconds:g} s")
        time.sleep(_LOOK_SECONDS)


def planner_memory_bytes(installation: Installation) -> int:
    """Memory of the planner and of the process that searches for it."""
    return family_memory_bytes(installation.processes[PLANNER].pid)
