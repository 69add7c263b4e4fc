"""The shipped admission policies on a real API server, case by case the table of the webhook."""

import copy
import uuid
from functools import partial
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import API_VERSION, ENABLED_LABEL
from tests.controller.admission_cases import CASES, OURS, READY, STOCK, AdmissionCase
from tests.controlplane.api import Api
from tests.controlplane.housekeeping import temporary_namespace
from tests.controlplane.objects import an_object
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.custom_resources import remove_crds
from tests.support.manifests import of_kind

PROBE_LABEL = "test.kfp-placement.dev/probe"
SEEN = "test.kfp-placement.dev/seen"
MARKED = AdmissionCase("marked", scheduler=OURS)
NOBODYS = AdmissionCase("left-alone")


def policy(case: AdmissionCase = MARKED) -> dict[str, Any]:
    return an_object(API_VERSION, "PlacementPolicy", "default", spec=dict(case.policy or {}))


def probing_policy() -> list[dict[str, Any]]:
    """An admission policy that writes onto probing pods which version of our policy it has seen.

    The server learns of a change by a watch; all admission policies with one kind of parameters
    learn of it at once.
    """
    (shipped, *_) = of_kind(manifests.rendered("gates"), "MutatingAdmissionPolicy")
    (binding, *_) = of_kind(manifests.rendered("gates"), "MutatingAdmissionPolicyBinding")
    shipped, binding = copy.deepcopy(shipped), copy.deepcopy(binding)
    name = "test-probe"
    shipped["metadata"] = binding["metadata"] = {"name": name}
    binding["spec"]["policyName"] = name
    seen = f"Object.metadata{{annotations: {{'{SEEN}': params.metadata.resourceVersion}}}}"
    shipped["spec"] |= {
        "matchConditions": [],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": f"Object{{metadata: {seen}}}"},
            }
        ],
    }
    constraints = shipped["spec"]["matchConstraints"]
    constraints["objectSelector"] = {"matchLabels": {PROBE_LABEL: "yes"}}
    del constraints["namespaceSelector"]
    return [shipped, binding]


class Admission:
    """Sets the policy and asks what would become of pods, without creating them."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def admitted(self, case: AdmissionCase, namespace: str) -> dict[str, Any]:
        """A case's pod as it would be stored; one that a namespace with restrictions takes."""
        pod = case.pod(namespace)
        pod["spec"]["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            drop = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
            container["securityContext"] = drop
        return self._api.create(pod, dryRun="All")

    def set_policy(self, case: AdmissionCase) -> None:
        """Make PlacementPolicy `default` that of the case, and wait until admission knows."""
        self._api.delete(policy())
        if case.policy is None:
            self.wait_seen(None)
            return
        created = self._api.create(policy(case))
        if case.status:
            created = self._api.patch(created, {"status": dict(case.status)}, part="status")
        self.wait_seen(created["metadata"]["resourceVersion"])

    def wait_seen(self, version: str | None) -> None:
        """Wait until admission sees this version of the policy; None: that there is none."""
        probe = AdmissionCase("probe", labels={PROBE_LABEL: "yes"})

        def seen() -> str | None:
            mark = self.admitted(probe, "default")["metadata"].get("annotations", {}).get(SEEN)
            return str(mark) if mark else None

        wait_until(lambda: seen() == version, f"version {version} of the policy", state=seen)

    def check(self, case: AdmissionCase, namespace: str) -> None:
        """Compare a case's pod with what it should be."""
        spec = self.admitted(case, case.namespace or namespace)["spec"]
        assert spec["schedulerName"] == case.scheduler
        assert sorted(gate["name"] for gate in spec.get("schedulingGates", ())) == sorted(
            case.gates
        )


@pytest.fixture(scope="module")
def admission(installed):
    """Admission with the shipped policies, known to be at work."""
    for item in probing_policy():
        installed.create(item)
    webhook = Admission(installed)
    webhook.set_policy(MARKED)
    gated = next(case for case in CASES if case.name == "gated")
    for case in (MARKED, gated):
        webhook.set_policy(case)
        wait_until(partial(at_work, webhook, case), f"the case {case.name} to hold")
    yield webhook
    for item in probing_policy():
        installed.delete(item)


def at_work(admission: Admission, case: AdmissionCase) -> bool:
    spec = admission.admitted(case, "default")["spec"]
    return spec["schedulerName"] == case.scheduler and bool(case.gates) == (
        "schedulingGates" in spec
    )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_matrix(installed, admission, case):
    admission.set_policy(case)
    with temporary_namespace(
        installed, f"test-{uuid.uuid4().hex[:8]}", case.namespace_labels
    ) as ns:
        admission.check(case, ns)


def at_work_in(admission: Admission, case: AdmissionCase, namespace: str) -> bool:
    return admission.admitted(case, namespace)["spec"]["schedulerName"] == case.scheduler


def test_opt_in_turns_the_label_round(installed, admission):
    admission.set_policy(MARKED)
    turned = list(of_kind(manifests.rendered("gates", "opt-in"), "MutatingAdmissionPolicy"))
    plain = list(of_kind(manifests.rendered("gates"), "MutatingAdmissionPolicy"))
    expected = {None: STOCK, "false": STOCK, "": STOCK, "true": OURS}
    manifests.apply(installed, turned)
    try:
        for value, scheduler in expected.items():
            labels = {} if value is None else {ENABLED_LABEL: value}
            case = AdmissionCase(f"opt-in-{value}", scheduler=scheduler)
            name = f"test-{uuid.uuid4().hex[:8]}"
            with temporary_namespace(installed, name, labels):
                # The first shows that the policy has changed; after it no other can pass by luck.
                wait_until(partial(at_work_in, admission, case, name), case.name)
    finally:
        manifests.apply(installed, plain)
        wait_until(partial(at_work_in, admission, MARKED, "default"), "the plain policies")


def test_without_our_kinds_pods_are_left_alone(installed, admission, namespace):
    """The last here: it takes the definition of PlacementPolicy away and puts it back."""
    admission.set_policy(MARKED)
    (definition,) = (
        item
        for item in of_kind(manifests.rendered(), "CustomResourceDefinition")
        if item["spec"]["names"]["kind"] == "PlacementPolicy"
    )
    remove_crds(installed, [definition])
    wait_until(partial(at_work_in, admission, NOBODYS, namespace), "pods to be left alone")
    manifests.apply(installed, [definition])
    created = installed.create(policy())
    installed.patch(created, {"status": READY}, part="status")
    wait_until(partial(at_work_in, admission, MARKED, namespace), "pods to be marked again")
