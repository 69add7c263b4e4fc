"""The webhook's table, case by case, and what it says of anything else."""

import base64
import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement_controller.extender.webhook import (
    Review,
    pod_patch,
    read_review,
    review_answer,
)
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.custom_resources import PlacementPolicy, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.node_rules.constraints import holds
from kfp_placement_engine.model.pod_constraints import Requirement
from tests.controller.admission_cases import ALL_PIPELINES_CASES, CASES, MARK, READY, AdmissionCase
from tests.controller.extender.cluster import anything, patched, review
from tests.support.checkout import ROOT

REGISTRATION = next(
    each
    for each in yaml.safe_load_all(
        (ROOT / "deploy/features/webhook/registration/webhook.yaml").read_text("utf-8")
    )
    if each["kind"] == "MutatingWebhookConfiguration"
)


MARKED = {"/mutate": None, "/mutate-pipelines": DEFAULT_SOURCES.is_unmarked_step}
"""Check of pods that count as marked without a mark, by the path of the request."""


def path_of(hook: Any) -> str:
    return str(hook["clientConfig"]["service"]["path"])


def policy_of(case: AdmissionCase) -> PlacementPolicy | None:
    if case.policy is None:
        return None
    policy = {
        "metadata": {"name": "default"},
        "spec": dict(case.policy),
        "status": dict(case.status),
    }
    return read_resource(PlacementPolicy, policy)


def selects(hook: Any, case: AdmissionCase, namespace: str) -> bool:
    """Whether a shipped registration sends such a pod to the webhook, its conditions aside."""
    pairs = [
        (hook["objectSelector"], case.labels),
        (
            hook["namespaceSelector"],
            {"kubernetes.io/metadata.name": namespace, **case.namespace_labels},
        ),
    ]
    return all(
        holds(Requirement(each["key"], each["operator"], tuple(each.get("values", ()))), labels)
        for selector, labels in pairs
        for each in selector["matchExpressions"]
    )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_matrix(case):
    namespace = case.namespace or "team-a"
    pod = case.pod(namespace)
    for hook in REGISTRATION["webhooks"]:
        if selects(hook, case, namespace):
            about = (pod, namespace, policy_of(case), "kfp-placement", MARKED[path_of(hook)])
            pod = patched(pod, pod_patch(*about))
    assert pod["spec"].get("schedulerName", "default-scheduler") == case.scheduler
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
    assert sorted(gates) == sorted(case.gates)


def test_names_of_cases_are_used_once():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("namespace", ["kube-system", "kfp-placement"])
def test_system_namespaces_are_left_alone_whatever_the_registration_says(namespace):
    case = AdmissionCase("marked")
    assert pod_patch(case.pod(namespace), namespace, policy_of(case), "kfp-placement") == []


def test_our_own_namespace_may_have_another_name():
    case = AdmissionCase("marked")
    assert pod_patch(case.pod("ours"), "ours", policy_of(case), "ours") == []
    assert pod_patch(case.pod("ours"), "ours", policy_of(case), "kfp-placement") != []


def test_a_review_is_read_and_answered():
    request = read_review(review({"spec": {}}))
    assert request == Review("u1", "team-a", "", "", "", {"spec": {}}, {})
    operations = [{"op": "add", "path": "/spec/schedulerName", "value": "kfp-placement"}]
    answer = json.loads(review_answer(request.uid, operations))
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    response = answer["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == (
        "u1",
        True,
        "JSONPatch",
    )
    assert json.loads(base64.b64decode(response["patch"])) == operations


def test_an_answer_without_changes_holds_no_patch():
    assert json.loads(review_answer("u1", []))["response"] == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[]", b'"x"', b"{}", b'{"request": 1}', review({}, uid=""), review(3)]
)
def test_what_is_no_review_is_refused(body):
    with pytest.raises(InputError):
        read_review(body)


EXECUTOR = ALL_PIPELINES_CASES[0]
thing = anything("", "name", "labels", "kfp-placement.dev/plan", "default-scheduler")
pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": thing
        | st.fixed_dictionaries(
            {"labels": st.just(MARK) | thing},
            optional={"ownerReferences": st.just(list(EXECUTOR.owners)) | thing},
        )
        | st.just(EXECUTOR.pod("team-a")["metadata"]),
        "spec": thing
        | st.fixed_dictionaries(
            {},
            optional={
                "schedulerName": thing,
                "schedulingGates": thing,
                "initContainers": st.just(EXECUTOR.spec["initContainers"]) | thing,
            },
        ),
    },
)


@example({"metadata": {"labels": MARK}, "spec": {"schedulingGates": None}}, "gates")
@given(pods, st.sampled_from(["extender", "gates"]))
def test_any_pod_is_patched_soundly_or_refused(pod, actuator):
    policy = policy_of(AdmissionCase("any", policy={"actuator": actuator}, status=READY))
    for counts_as_marked in MARKED.values():
        try:
            operations = pod_patch(pod, "team-a", policy, "kfp-placement", counts_as_marked)
        except InputError:
            continue
        patched(copy.deepcopy(pod), operations)
