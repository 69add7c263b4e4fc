"""The mutating webhook: what new pods are given, for clusters that have no admission policies.

The same table as the two MutatingAdmissionPolicies of the installation, row by row; one matrix of
cases is run against both. Namespaces opt out by their labels, which the selector of the webhook's
registration looks at. Whatever is unknown or unusual: the pod is admitted as it is.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from kfp_placement_engine.contract.keys import KUBERNETES_SCHEDULER, PLAN_GATE, SCHEDULER_LABEL
from kfp_placement_engine.contract.resources import PlacementPolicy
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.policy import Actuator
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.place import UNNAMED, Place

SYSTEM_NAMESPACE = "kube-system"

Operation = Mapping[str, Any]
"""One operation of a JSON patch."""


def mutations(
    pod: Mapping[str, Any],
    namespace: str,
    policy: PlacementPolicy | None,
    own_namespace: str = "kfp-placement",
) -> list[Operation]:
    """What to change in a pod that is being created, as a JSON patch; nothing = admit as it is.

    Args:
        pod: the object, as sent to the webhook.
        namespace: where it is created.
        policy: the policy `default`; None = there is none.
        own_namespace: ours, whose pods are never touched.

    Raises:
        InputError: the object is malformed.
    """
    if policy is None or policy.spec.paused or namespace in (SYSTEM_NAMESPACE, own_namespace):
        return []
    created = Fields(pod, UNNAMED)
    metadata, spec = created.fields("metadata"), created.fields("spec")
    wanted = metadata.text_mapping("labels").get(SCHEDULER_LABEL, "")
    given = spec.text("schedulerName")
    if wanted not in policy.spec.scheduler_names or given not in ("", KUBERNETES_SCHEDULER):
        return []
    if not spec:
        raise InputError("a pod needs a spec")
    status = policy.status
    if policy.spec.actuator is Actuator.EXTENDER:
        ready = status is not None and status.scheduler_ready is True
        return [_scheduler_name(spec, wanted)] if ready else []
    ready = status is not None and status.gates_ready is True
    return _gate(spec) if ready else []


def _scheduler_name(spec: Fields, name: str) -> Operation:
    operation = "replace" if "schedulerName" in spec else "add"
    return {"op": operation, "path": "/spec/schedulerName", "value": name}


def _gate(spec: Fields) -> list[Operation]:
    """Our gate, unless it is there; a gate on a pod that has a node makes its creation fail."""
    if spec.get("nodeName"):
        return []
    gates = spec.entries("schedulingGates")
    ours = {"name": PLAN_GATE}
    if ours in gates:
        return []
    if not gates:
        return [{"op": "add", "path": "/spec/schedulingGates", "value": [ours]}]
    return [{"op": "add", "path": "/spec/schedulingGates/-", "value": ours}]


def read_review(body: bytes) -> tuple[str, str, Mapping[str, Any]]:
    """The uid, the namespace and the object of an AdmissionReview of `admission.k8s.io/v1`.

    Raises:
        InputError: it is not valid.
    """
    try:
        review = Fields(Place("AdmissionReview").mapping(orjson.loads(body)), UNNAMED)
    except orjson.JSONDecodeError as error:
        raise InputError(f"an AdmissionReview must be JSON: {error!s:.120}") from error
    request = review.fields("request")
    uid = request.text("uid")
    if not uid:
        raise InputError("an AdmissionReview needs request.uid")
    return uid, request.text("namespace"), request.mapping("object")


def review_answer(uid: str, operations: Sequence[Operation]) -> bytes:
    """The answer: always allowed, changed by these operations."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(operations))).decode()
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    )
