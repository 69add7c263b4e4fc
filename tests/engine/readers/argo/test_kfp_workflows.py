"""What only a Workflow tells: its names, and what administrators set for all pods."""

import json
from typing import Any

import pytest

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.pod_constraints import Toleration
from tests.support.kfp_workflow_emitter import emit_workflow
from tests.support.packages import (
    Fields,
    a_loop,
    a_loop_over,
    a_package,
    input_of_dag,
    list_parameter,
)

ZONE = {"key": "zone", "operator": "In", "values": ["a"]}


def required(key: str) -> Fields:
    terms = [{"matchExpressions": [{**ZONE, "key": key}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def preferred(key: str) -> Fields:
    term = {"weight": 5, "preference": {"matchExpressions": [{**ZONE, "key": key}]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}


def read(workflow: Fields):
    return read_run(json.dumps(workflow).encode(), name="flow.yaml")


def workflow(kubernetes: Fields | None = None) -> Fields:
    config = {"exec-work": kubernetes} if kubernetes else None
    documents = a_package(kubernetes=config)
    return emit_workflow(documents[0], documents[1] if config else None)


def keys(terms: Any) -> list[str]:
    return [requirement.key for term in terms or () for requirement in term.requirements]


@pytest.mark.parametrize(
    "beside",
    [
        {"onExit": "system-container-driver"},
        {"hooks": {"exit": {"template": "system-container-driver"}}},
        {"hooks": {"running": {"template": "system-container-driver", "expression": "true"}}},
        {"artifactGC": {"podSpecPatch": "{}"}},
    ],
    ids=str,
)
def test_what_kfp_never_asks_argo_for_hides_what_a_run_needs(beside):
    run, changed = workflow(), workflow()
    changed["spec"] |= beside
    codes = [[each.hides_demand for each in read(each).notices] for each in (run, changed)]
    assert [any(each) for each in codes] == [False, True]


def test_a_submitted_run_has_its_names():
    made = workflow()
    made["metadata"] = {
        "name": "run-x7k2p",
        "generateName": "run-",
        "namespace": "team",
        "labels": {"pipeline/runid": "0b1c"},
    }
    graph = read(made)
    names = (graph.name, graph.workflow, graph.namespace, graph.run_id)
    assert names == ("run", "run-x7k2p", "team", "0b1c")


def test_arguments_of_the_run_are_those_it_was_submitted_with():
    """`runtime-config` wins over the defaults of the pipeline."""
    loop = a_loop_over(input_of_dag("numbers"))
    documents = a_package({"loop": loop}, parameters=list_parameter("numbers", [1]))
    made = emit_workflow(documents[0])
    assert len(read(made).steps) == 1
    entry = next(t for t in made["spec"]["templates"] if t["name"] == "entrypoint")
    for parameter in entry["dag"]["tasks"][0]["arguments"]["parameters"]:
        if parameter["name"] == "runtime-config":
            parameter["value"] = '{"parameterValues": {"numbers": [1, 2, 3]}}'
    assert len(read(made).steps) == 3


@pytest.mark.parametrize("where", ["spec", "templateDefaults", "template", "podSpecPatch"])
def test_defaults_of_the_workflow_hold_where_a_task_sets_nothing(where):
    """As an administrator's patch or webhook writes them."""
    defaults = {
        "nodeSelector": {"pool": "pipelines"},
        "tolerations": [{"key": "pipelines"}],
        "affinity": {"nodeAffinity": required("rack")},
    }
    made = workflow()
    if where == "spec":
        made["spec"].update(defaults)
    elif where == "templateDefaults":
        made["spec"]["templateDefaults"] = defaults
    elif where == "podSpecPatch":
        made["spec"]["podSpecPatch"] = json.dumps(defaults)
    else:
        task = {"name": "executor", "template": "system-container-impl"}
        executor = {"name": "system-container-executor", "dag": {"tasks": [task]}}
        made["spec"]["templates"] += [executor, {"name": "system-container-impl", **defaults}]
    step = read(made).step("work")
    assert step.node_selector == {"pool": "pipelines"}
    assert step.tolerations == (Toleration("pipelines"),)
    assert keys(step.affinity.required) == ["rack"]


def test_a_task_s_own_settings_come_on_top():
    """Selectors add up, lists are replaced, each kind of affinity for itself."""
    own = {
        "nodeSelector": {"labels": {"disk": "fast"}},
        "tolerations": [{"key": "own"}],
        "nodeAffinity": [{"matchExpressions": [ZONE]}],
    }
    made = workflow(own)
    made["spec"].update(
        nodeSelector={"pool": "pipelines", "disk": "any"},
        tolerations=[{"key": "pipelines"}],
        affinity={"nodeAffinity": {**required("rack"), **preferred("rack")}},
    )
    step = read(made).step("work")
    assert step.node_selector == {"pool": "pipelines", "disk": "fast"}
    assert step.tolerations == (Toleration("own"),)
    assert keys(step.affinity.required) == ["zone"]
    assert keys(term.term for term in step.affinity.preferred) == ["rack"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda spec: spec.update(entrypoint="gone"), "template gone: does not exist"),
        (lambda spec: spec["templates"].append(spec["templates"][0]), "two templates"),
        (lambda spec: spec.update(templates={}), "flow.yaml: templates: must be a list"),
        (lambda spec: spec.update(tolerations="all"), "task work: toleration, line 1"),
        (lambda spec: spec.update(volumeClaimTemplates=[{}]), "metadata.name: is empty"),
        (
            lambda spec: spec["arguments"]["parameters"].append(
                {"name": "components-root", "value": "{"}
            ),
            "argument components-root, line 1: not valid JSON",
        ),
        (
            lambda spec: spec["arguments"]["parameters"].remove(
                next(p for p in spec["arguments"]["parameters"] if "implementations" in p["name"])
            ),
            "does not exist",
        ),
    ],
)
def test_broken_workflows_are_refused_with_the_place(change, problem):
    made = workflow()
    change(made["spec"])
    with pytest.raises(InputError) as caught:
        read(made)
    assert problem in str(caught.value)
    assert str(caught.value).startswith("flow.yaml")


def test_a_loop_s_limit_is_the_one_that_argo_obeys():
    loop = a_loop("body", [1, 2, 3], iteratorPolicy={"parallelismLimit": 2})
    documents = a_package({"loop": loop})
    made = emit_workflow(documents[0])

    def limits():
        return [group.parallelism for group in read(made).groups if group.name == "loop"]

    assert limits() == [2]
    for template in made["spec"]["templates"]:
        if template["name"].endswith("-iterator"):
            template["parallelism"] = 1
    assert limits() == [1]
