"""RunQueues, slimmed; a malformed one is kept with the reason why it cannot be read."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_engine.contract.custom_resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import (
    ControllerDown,
    QueueBackend,
    RunQueueSpec,
    RunQueueStatus,
)
from kfp_placement_engine.contract.shared_parts import readable_fields
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject

_DOWN = "onControllerDown"
_KEPT = (_DOWN, "holdDeadline", "localQueue")
"""Fields of a malformed spec that still count.

They decide whether runs wait while no controller admits them, and name the backend that admitted
the running ones.
"""


@dataclass(frozen=True)
class ObservedQueue:
    """A RunQueue.

    Attributes:
        key: namespace and name.
        version: resource version of the object; each write names it.
        generation: generation of the spec; None = the object has none.
        spec: decisions of admins. Of a malformed spec only the backend and the rule for dead
            controllers are read. The other fields are defaults: do not admit runs by them.
        status: published state of the queue; of a damaged status the readable fields.
        problem: reason why the spec cannot be read; "" = it can be read.
    """

    key: QueueKey
    version: str
    generation: int | None
    spec: RunQueueSpec = field(default_factory=RunQueueSpec)
    status: RunQueueStatus = field(default_factory=RunQueueStatus)
    problem: str = ""

    @property
    def holds_without_controller(self) -> bool:
        """Return whether runs of the queue wait while no controller can admit them.

        They wait unless the spec says that they run: an unknown word does not start any run.
        """
        return self.spec.on_controller_down != ControllerDown.RUN


def observe_queue(raw: JsonObject) -> ObservedQueue:
    """Slim a RunQueue as the API server prints it, even if its spec and status are malformed.

    Raises:
        InputError: not even its metadata can be read.
    """
    metadata = Fields(raw, Place("RunQueue")).flat("metadata")
    key = QueueKey(metadata.text("namespace"), metadata.text("name"))
    version = metadata.text("resourceVersion")
    generation = metadata.count("generation", maximum=2**53) or None
    # The status is read on its own: even with a malformed spec we need to know whether new runs
    # are held, and since when the spec is malformed.
    status = RunQueueStatus.model_validate(readable_fields(RunQueueStatus, raw.get("status")))
    try:
        spec, problem = read_resource(RunQueue, {**raw, "status": None}).spec, ""
        if spec.backend not in [*QueueBackend]:
            # A newer version may know it: its objects stay after a rollback to this version.
            problem = f"backend {spec.backend!r:.60} is not one that this version knows"
    except InputError as error:
        problem = str(error)
    if problem:
        spec = _of_malformed(raw.get("spec"))
    return ObservedQueue(key, version, generation, spec, status, problem)


def _of_malformed(raw: object) -> RunQueueSpec:
    """Read the backend, and the rule for dead controllers, from a malformed spec.

    If that rule cannot be read either, runs wait: it is easier to start waiting runs later than to
    stop runs that have started.
    """
    readable = readable_fields(RunQueueSpec, raw)
    kept = {name: readable[name] for name in _KEPT if name in readable}
    given = raw if isinstance(raw, dict) else {_DOWN: raw}
    if _DOWN not in kept and given.get(_DOWN) is not None:
        kept[_DOWN] = ControllerDown.HOLD.value
    if "localQueue" in kept and given.get("backend") == QueueBackend.KUEUE:
        kept["backend"] = QueueBackend.KUEUE.value
    return RunQueueSpec.model_validate(kept)


class HoldRule(NamedTuple):
    """Rule by which the new runs of a namespace are held.

    Attributes:
        exempt: instance ids of workflow controllers whose runs are not held.
    """

    exempt: frozenset[str] = frozenset()


def observe_readiness(raw: JsonObject) -> HoldRule | None:
    """Return the rule of a RunQueue whose status allows new runs to be held; None = it does not.

    Of the spec only the rule is read.

    Raises:
        InputError: the status is malformed.
    """
    if Fields(raw, Place("RunQueue")).fields("status").get("ready") is not True:
        return None
    readable = readable_fields(RunQueueSpec, raw.get("spec"))
    return HoldRule(frozenset(readable.get("exemptInstanceIDs", ())))
