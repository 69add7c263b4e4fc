"""RunQueues, slimmed; one that cannot be read says why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.fields import readable_fields
from kfp_placement_engine.contract.resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import (
    ControllerDown,
    QueueBackend,
    RunQueueSpec,
    RunQueueStatus,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

_DOWN = "onControllerDown"
_KEPT = (_DOWN, "holdDeadline", "localQueue")
"""Fields of a malformed spec that count: what happens to runs while nobody admits them, and who
decided about those that run."""


@dataclass(frozen=True)
class ObservedQueue:
    """A RunQueue.

    Attributes:
        key: namespace and name.
        version: of the object; a write names it.
        generation: of the spec.
        spec: what admins decided. Where it cannot be read, only its backend and what it says of
            dead controllers; the rest are the defaults, and nobody should be admitted by these.
        status: what it says; of a damaged one what can be read.
        problem: why its spec cannot be read; "" = it can.
    """

    key: QueueKey
    version: str
    generation: int | None
    spec: RunQueueSpec = field(default_factory=RunQueueSpec)
    status: RunQueueStatus = field(default_factory=RunQueueStatus)
    problem: str = ""

    @property
    def holds_without_controller(self) -> bool:
        """Whether its runs wait while nobody can admit them.

        They do unless it says that they run: a word that we do not know lets nobody begin.
        """
        return self.spec.on_controller_down != ControllerDown.RUN


def observe_queue(raw: Mapping[str, Any]) -> ObservedQueue:
    """A RunQueue as the API server prints it, whatever its spec and status say.

    Raises:
        InputError: not even its metadata can be read.
    """
    metadata = Fields(raw, Place("RunQueue")).flat("metadata")
    key = QueueKey(metadata.text("namespace"), metadata.text("name"))
    version = metadata.text("resourceVersion")
    generation = metadata.count("generation", maximum=2**53) or None
    # Apart: a malformed spec hides neither that new runs are held nor since when it is malformed.
    said = raw.get("status")
    status = RunQueueStatus.model_validate(readable_fields(RunQueueStatus, said))
    try:
        spec, problem = read_resource(RunQueue, {**raw, "status": None}).spec, ""
        if spec.backend not in [*QueueBackend]:
            # A newer version may know it: such an object stays when that version is taken back.
            problem = f"backend {spec.backend!r:.60} is not one that this version knows"
    except InputError as error:
        problem = str(error)
    if problem:
        spec = _of_malformed(raw.get("spec"))
    return ObservedQueue(key, version, generation, spec, status, problem)


def _of_malformed(raw: object) -> RunQueueSpec:
    """What a spec that cannot be read says of its backend, and of dead controllers.

    If the latter cannot be read either, its runs wait: it is easier to let runs begin that wait
    than to stop runs that have begun.
    """
    readable = readable_fields(RunQueueSpec, raw)
    kept = {name: readable[name] for name in _KEPT if name in readable}
    given = raw if isinstance(raw, dict) else {_DOWN: raw}
    if _DOWN not in kept and given.get(_DOWN) is not None:
        kept[_DOWN] = ControllerDown.HOLD.value
    if "localQueue" in kept and given.get("backend") == QueueBackend.KUEUE:
        kept["backend"] = QueueBackend.KUEUE.value
    return RunQueueSpec.model_validate(kept)


def observe_readiness(raw: Mapping[str, Any]) -> bool:
    """Whether a RunQueue says that new runs may be held, whatever its spec says.

    Raises:
        InputError: its status is malformed.
    """
    return Fields(raw, Place("RunQueue")).fields("status").get("ready") is True
