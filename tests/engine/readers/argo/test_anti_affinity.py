"""What affinities of Argo's pods say about other pods."""

from typing import Any

import pytest

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.pod_constraints import PodSelector, Requirement
from tests.controlplane.argo.small_workflows import task
from tests.engine.readers.argo.test_plain_workflows import WORK, dag, one, read
from tests.support.packages import Fields

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP_X = Requirement("app", "In", ("x",))


def term(topology: str = "kubernetes.io/hostname", **fields: Any) -> Fields:
    selector = {"matchLabels": {"app": "x"}}
    return {"topologyKey": topology, "labelSelector": selector, **fields}


def anti(*terms: Fields) -> Fields:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def messages(template: Fields) -> list[str]:
    return [f"{each}" for each in read([dag(task("A")), {**WORK, **template}]).notices]


def test_required_anti_affinity_by_host_is_read():
    expression = {"key": "tier", "operator": "Exists"}
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [expression]}
    step = one(anti(term(labelSelector=selector)))
    assert step.apart_from == (PodSelector((APP_X, Requirement("tier", "Exists"))),)
    assert messages(anti(term())) == []


@pytest.mark.parametrize("metadata", [{"name": "flow-1"}, {"generateName": "flow-"}])
def test_the_name_of_the_workflow_means_its_own_pods(metadata: Fields):
    labels = {"app": "x", "workflows.argoproj.io/workflow": "{{workflow.name}}"}
    step = one(anti(term(labelSelector={"matchLabels": labels})), metadata=metadata)
    assert step.apart_from == (PodSelector((APP_X,), is_own_run=True),)


def test_the_rule_of_the_calling_template_counts_where_the_own_one_has_none():
    (step,) = read([dag(task("A"), **anti(term())), WORK]).steps
    assert step.apart_from == (PodSelector((APP_X,)),)


def test_a_selector_that_is_not_there_matches_no_pod():
    step = one(anti(term(labelSelector=None)))
    assert step.apart_from == ()
    assert one(anti(term(labelSelector={}))).apart_from == (PodSelector(),)


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (anti(term("zone")), "topologyKey"),
        (anti(term(namespaces=["a"])), "namespaces"),
        (anti(term(namespaceSelector={})), "namespaceSelector"),
        (anti(term(matchLabelKeys=["a"])), "matchLabelKeys"),
        ({"affinity": {"podAntiAffinity": {PREFERRED: [{"podAffinityTerm": term()}]}}}, PREFERRED),
        ({"affinity": {"podAffinity": {REQUIRED: [term()]}}}, "podAffinity"),
    ],
)
def test_what_no_plan_follows_is_named(template: Fields, name: str):
    assert one(template).apart_from == ()
    assert [message.startswith(f"{name} is not used") for message in messages(template)] == [True]


def test_what_is_known_only_at_run_time_is_named():
    labels = {"app": "{{inputs.parameters.x}}"}
    template = {**anti(term(labelSelector={"matchLabels": labels})), **{"inputs": {}}}
    assert messages(template) == ["A: its anti-affinity is known only at run time and is not used"]


@pytest.mark.parametrize(
    "affinity",
    [
        {"podAntiAffinity": 3},
        {"podAntiAffinity": {REQUIRED: {}}},
        {"podAntiAffinity": {REQUIRED: [term(labelSelector=3)]}},
        {"podAntiAffinity": {REQUIRED: [term(labelSelector={"matchExpressions": [{"key": "a"}]})]}},
    ],
)
def test_a_malformed_affinity_is_refused(affinity: Any):
    with pytest.raises(InputError, match="podAntiAffinity"):
        one({"affinity": affinity})
