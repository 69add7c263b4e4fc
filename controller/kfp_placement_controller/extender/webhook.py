"""The mutating webhook: changes new pods and runs, for clusters without admission policies.

It follows the same rules as the installed MutatingAdmissionPolicies; the same test cases run
against both. The webhook's registrations select namespaces by their labels: a namespace may opt
out, or ask that unmarked steps of its pipelines count as marked. Those steps are sent to a separate
address. Where anything is unknown or unusual, the object is admitted as it is.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from kfp_placement_controller.observed.namespaces import SYSTEM_NAMESPACE
from kfp_placement_controller.observed.run_queues import HoldRule
from kfp_placement_controller.sources.queue_source import JsonPatch, QueueSource
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    PLAN_GATE,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.policy import Actuator
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import UNNAMED, Place
from kfp_placement_kube.kinds import JsonObject

CREATE, UPDATE = "CREATE", "UPDATE"
"""The two operations that the webhook answers with changes."""


@dataclass(frozen=True, slots=True)
class Review:
    """A question of the API server about one object.

    Attributes:
        uid: uid of the question; the answer has it too.
        namespace: namespace of the object.
        operation: `CREATE`, `UPDATE`, or another one.
        group, plural: API group and plural name of the object's kind.
        new: the object as it would be stored; empty when it is deleted.
        old: the object as it is stored; empty when it is created.
    """

    uid: str
    namespace: str
    operation: str
    group: str
    plural: str
    new: JsonObject
    old: JsonObject


def pod_patch(
    pod: JsonObject,
    namespace: str,
    policy: PlacementPolicy | None,
    own_namespace: str,
    counts_as_marked: Callable[[JsonObject], bool] | None = None,
) -> JsonPatch:
    """Return the patch of a pod that is being created; empty = admit the pod as it is.

    Args:
        pod: the pod, as sent to the webhook.
        namespace: namespace in which the pod is created.
        policy: the policy `default`; None = there is none.
        own_namespace: namespace of kfp-placement, whose pods are never changed.
        counts_as_marked: test for pods that count as marked without a mark; None = no pod does.

    Raises:
        InputError: the object is malformed.
    """
    if policy is None or policy.spec.paused or namespace in (SYSTEM_NAMESPACE, own_namespace):
        return []
    created = Fields(pod, UNNAMED)
    metadata, spec = created.fields("metadata"), created.fields("spec")
    wanted = metadata.text_mapping("labels").get(SCHEDULER_LABEL, "")
    if counts_as_marked is not None and counts_as_marked(pod):
        wanted = DEFAULT_SCHEDULER
    given = spec.text("schedulerName")
    if wanted not in policy.spec.scheduler_names or given not in ("", KUBERNETES_SCHEDULER):
        return []
    if not spec:
        raise InputError("a pod needs a spec")
    status = policy.status
    if status is None:
        return []
    if policy.spec.actuator is Actuator.EXTENDER:
        change = "replace" if "schedulerName" in spec else "add"
        named = {"op": change, "path": "/spec/schedulerName", "value": wanted}
        return [named] if status.scheduler_ready is True else []
    return _gate(spec) if status.gates_ready is True else []


def _gate(spec: Fields) -> JsonPatch:
    """Return the patch that adds our gate; empty if the pod has it, or has a node.

    The API server refuses a pod with a node and a gate.
    """
    if spec.get("nodeName"):
        return []
    gates = spec.entries("schedulingGates")
    ours = {"name": PLAN_GATE}
    if ours in gates:
        return []
    if not gates:
        return [{"op": "add", "path": "/spec/schedulingGates", "value": [ours]}]
    return [{"op": "add", "path": "/spec/schedulingGates/-", "value": ours}]


def run_patch(
    review: Review,
    holding: Mapping[str, HoldRule],
    sources: Sequence[QueueSource],
    own_namespace: str,
) -> JsonPatch:
    """Return the patch that lets a new or retried run wait; empty = the run begins.

    Args:
        review: question about the run's object.
        holding: rules of the namespaces in which new runs wait for their queue.
        sources: sources whose runs can wait.
        own_namespace: namespace of kfp-placement, whose runs are never held.

    Raises:
        InputError: the object is malformed.
    """
    rule = holding.get(review.namespace)
    if rule is None or review.namespace in (SYSTEM_NAMESPACE, own_namespace):
        return []
    if review.operation not in (CREATE, UPDATE):
        return []
    old = None if review.operation == CREATE else review.old
    kind = (review.group, review.plural)
    for source in sources:
        if (source.kind.group, source.kind.plural) == kind:
            return source.hold_operations(review.new, old, rule.exempt)
    return []


def read_review(body: bytes) -> Review:
    """Read an AdmissionReview of `admission.k8s.io/v1`.

    Raises:
        InputError: it is not valid.
    """
    try:
        review = Fields(Place("AdmissionReview").mapping(orjson.loads(body)), UNNAMED)
    except orjson.JSONDecodeError as error:
        raise InputError(f"an AdmissionReview must be JSON: {error!s:.120}") from error
    request = review.fields("request")
    uid, resource = request.text("uid"), request.fields("resource")
    if not uid:
        raise InputError("an AdmissionReview needs request.uid")
    return Review(
        uid,
        request.text("namespace"),
        request.text("operation"),
        resource.text("group"),
        resource.text("resource"),
        request.mapping("object"),
        request.mapping("oldObject"),
    )


def review_answer(uid: str, patch: JsonPatch) -> bytes:
    """Return the answer that allows the object, changed by a patch."""
    response: JsonObject = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    )
