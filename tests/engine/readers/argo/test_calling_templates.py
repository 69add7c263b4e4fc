"""Where pods of Argo may go: what their template says, else its caller, else the Workflow."""

from typing import Any

import pytest

from kfp_placement_engine import RunGraph, plan_run, read_cluster, read_run
from kfp_placement_engine.model.pod_constraints import Toleration
from tests.controlplane.argo.small_workflows import task
from tests.engine.readers.argo.test_plain_workflows import dag, read
from tests.support.data import data_path
from tests.support.packages import Fields

WORK: Fields = {"name": "work", "container": {"image": "work:1"}}
GPU: Fields = {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "gpu"}]}


def required(key: str) -> Fields:
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def keys_of(graph: RunGraph, name: str) -> list[str]:
    terms = graph.step(name).affinity.required or ()
    return [each.key for term in terms for each in term.requirements]


@pytest.mark.parametrize("kind", ["dag", "steps"])
def test_a_pod_keeps_to_what_the_template_that_calls_it_says(kind: str):
    body: Any = {"tasks": [task("A")]} if kind == "dag" else [[task("A")]]
    caller = {"name": "main", kind: body, **GPU, "affinity": required("rack")}
    graph = read([caller, WORK], nodeSelector={"pool": "cpu"}, affinity=required("zone"))
    assert graph.step("A").node_selector == {"pool": "gpu"}
    assert graph.step("A").tolerations == (Toleration("gpu"),)
    assert keys_of(graph, "A") == ["rack"]


def test_each_setting_is_replaced_as_a_whole_and_for_itself():
    own = {**WORK, "nodeSelector": {"disk": "fast"}}
    step = read([dag(task("A"), **GPU), own], tolerations=[{"key": "all"}]).step("A")
    assert step.node_selector == {"disk": "fast"}
    assert step.tolerations == (Toleration("gpu"),)


def test_an_empty_affinity_replaces_others_and_an_empty_selector_does_not():
    own = {**WORK, "affinity": {}, "nodeSelector": {}}
    graph = read([dag(task("A"), affinity=required("rack"), **GPU), own])
    assert keys_of(graph, "A") == []
    assert graph.step("A").node_selector == {"pool": "gpu"}


def test_only_the_template_that_names_the_pod_counts():
    """What calls that one does not, and neither does what an inline template says."""
    inner = {"name": "inner", "dag": {"tasks": [task("B")]}}
    inline = {"name": "C", "inline": {"dag": {"tasks": [task("D")]}, **GPU}}
    graph = read([dag(task("A", template="inner"), inline, **GPU), inner, WORK])
    assert graph.step("A.B").node_selector == {}
    assert graph.step("C.D").node_selector == {}


def test_one_template_with_several_callers_keeps_to_each_of_them():
    other = {"name": "other", "dag": {"tasks": [task("B")]}, "nodeSelector": {"pool": "cpu"}}
    tasks = [task("A"), task("other", template="other"), task("again", template="other")]
    graph = read([dag(*tasks, **GPU), other, WORK], onExit="work")
    selectors = {step.name: dict(step.node_selector) for step in graph.steps}
    assert selectors == {
        "A": {"pool": "gpu"},
        "other.B": {"pool": "cpu"},
        "again.B": {"pool": "cpu"},
        "onExit": {},
    }


def test_an_exit_handler_and_an_inline_pod_keep_to_the_template_around_them():
    inline = {"name": "B", "inline": {"container": {"image": "work:1"}}}
    graph = read([dag(task("A", onExit="work"), inline, **GPU), WORK])
    assert graph.step("A.onExit").node_selector == {"pool": "gpu"}
    assert graph.step("B").node_selector == {"pool": "gpu"}


def test_a_patch_of_the_caller_does_not_reach_the_pod():
    graph = read([dag(task("A"), podSpecPatch='{"nodeSelector": {"a": "b"}}'), WORK])
    assert graph.step("A").node_selector == {}


def test_a_patch_replaces_tolerations_and_adds_to_a_selector():
    patch = '{"nodeSelector": {"a": "b"}, "tolerations": [{"key": "patched"}]}'
    step = read([dag(task("A"), **GPU), {**WORK, "podSpecPatch": patch}]).step("A")
    assert step.node_selector == {"pool": "gpu", "a": "b"}
    assert step.tolerations == (Toleration("patched"),)


def test_deep_nesting_with_many_callers_is_read_once():
    """Otherwise each level would be read twice as often as the one above it."""
    levels = [
        {
            "name": f"level-{level}",
            "dag": {"tasks": [task(name, template=f"level-{level + 1}") for name in ("a", "b")]},
            "nodeSelector": {"level": str(level)},
        }
        for level in range(8)
    ]
    graph = read([dag(task("A", template="level-0")), *levels, {**WORK, "name": "level-8"}])
    assert {step.node_selector["level"] for step in graph.steps} == {"7"}
    assert len(graph.steps) == 256


def test_the_file_of_a_user():
    folder = ("user-cases", "06-dag-template-selector")
    graph = read_run(data_path(*folder, "bound.yaml").read_bytes(), name="bound.yaml")
    cluster = read_cluster(data_path(*folder, "cluster.yaml").read_bytes(), name="cluster.yaml")
    assert plan_run(graph, cluster).step("a").node == "gpu"
