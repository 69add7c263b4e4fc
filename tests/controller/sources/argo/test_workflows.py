"""Workflows with our mark: slimmed, bounded, and never fatal."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.sources.argo.workflows import (
    PACKED_FROM_BYTES,
    WorkflowContent,
    observe_workflow,
)
from kfp_placement_engine.contract.keys import (
    MAX_RUN_NAME_CHARACTERS,
    RUN_ID_LABEL,
    RUN_NAME_ANNOTATION,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.tree.options import ReadOptions
from tests.controller.planning.builders import START, observed
from tests.support.json_values import ANY_FORM
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.kfp_workflow_emitter import emit_workflow
from tests.support.kubernetes import workflow_object
from tests.support.packages import a_package

MARKED = {"podMetadata": {"labels": {SCHEDULER_LABEL: "kfp-placement"}}}
NODES = {"wf": {"id": "wf", "name": "wf", "phase": "Running", "type": "DAG"}}


def a_workflow(spec=MARKED, **status):
    managed = {"managedFields": [{"manager": "argo"}]}
    return workflow_object(metadata=managed, spec=spec, status=status)


def content(workflow):
    assert isinstance(workflow.content, WorkflowContent)
    return workflow.content


def test_the_run_s_name_is_kept_and_cut():
    named = a_workflow()
    named["metadata"]["annotations"] = {RUN_NAME_ANNOTATION: "x" * 5000}
    workflow = observed(named)
    assert workflow.display_name == "x" * MAX_RUN_NAME_CHARACTERS
    for other in (None, {}, {RUN_NAME_ANNOTATION: 5}, "no mapping"):
        named["metadata"]["annotations"] = other
        workflow = observed(named)
        assert workflow.display_name == ""


def test_a_large_document_is_kept_compressed_and_read_as_it_was():
    padding = {"arguments": {"parameters": [{"name": "p", "value": "x" * PACKED_FROM_BYTES}]}}
    main = {"name": "main", "dag": {"tasks": [{"name": "first", "template": "work"}]}}
    work = {"name": "work", "container": {"image": "busybox:1"}}
    spec = {**MARKED, "entrypoint": "main", "templates": [main, work]}
    small, large = (
        content(observed(a_workflow(spec))),
        content(observed(a_workflow(spec | padding))),
    )
    assert len(large.texts.document) < PACKED_FROM_BYTES / 10
    assert large.size >= PACKED_FROM_BYTES
    graphs = [each.graph(ReadOptions()) for each in (small, large)]
    assert graphs[0].steps == graphs[1].steps
    assert len(graphs[0].steps) == 1
    again = content(observed(a_workflow(spec | padding, phase="Running")))
    assert not again.is_rewritten(large)
    assert large.is_rewritten(small)


def test_what_is_kept():
    workflow = observed(a_workflow(phase="Succeeded", nodes=NODES))
    assert (workflow.key, workflow.uid, workflow.ended) == (("team", "wf"), "u", True)
    assert [node.name for node in content(workflow).nodes()[0]] == ["wf"]
    document = json.loads(content(workflow).texts.document)
    assert document["spec"] == MARKED
    assert "managedFields" not in document["metadata"]


@pytest.mark.parametrize(("levels", "is_read"), [(300, True), (500, True), (5000, False)])
def test_a_spec_that_is_nested_deep_is_kept_if_python_can_write_it(levels, is_read):
    deep: object = None
    for _ in range(levels):
        deep = [deep]
    raw = a_workflow({**MARKED, "x": deep})
    if not is_read:
        with pytest.raises(InputError, match="nested too deeply"):
            observe_workflow(raw)
        return
    workflow = observed(raw)
    assert orjson.loads(content(workflow).texts.document)["spec"]["x"] == deep


def test_the_document_does_not_change_while_the_run_goes_on():
    first = observed(a_workflow())
    second = observed(a_workflow(phase="Running", nodes=NODES))
    assert content(first).texts.document == content(second).texts.document
    assert first != second


def test_a_mark_inside_of_a_kfp_argument_counts():
    config = json.dumps({"podMetadata": {"labels": {SCHEDULER_LABEL: "x"}}})
    arguments = {"parameters": [{"name": "kubernetes-comp-a", "value": config}]}
    assert observe_workflow(a_workflow({"arguments": arguments})) is not None
    assert observe_workflow(a_workflow({"arguments": {}})) is None


@pytest.mark.parametrize("phase", ["", "Succeeded"])
def test_where_all_pipelines_are_planned_those_of_kfp_need_no_mark(phase):
    raw = a_workflow({"arguments": {"parameters": [{"name": "components-root", "value": "{}"}]}})
    raw["status"] = {"phase": phase, "nodes": NODES}
    assert observe_workflow(raw) is None
    workflow = observed(raw, all_pipelines=True)
    assert (workflow.is_marked, workflow.all_marked) == (False, True)
    assert content(workflow).texts.document
    assert content(workflow).texts.nodes
    assert observed(raw, all_pipelines=True, unplanned=True) == workflow
    assert not observed(raw, unplanned=True).is_planned


def test_of_plain_workflows_only_marked_ones_are_planned_and_no_further_step():
    assert observe_workflow(a_workflow({}), all_pipelines=True) is None
    workflow = observed(a_workflow(), all_pipelines=True)
    assert (workflow.is_marked, workflow.all_marked) == (True, False)


def test_the_steps_of_a_template_count_once_argo_has_stored_them():
    spec = {"workflowTemplateRef": {"name": "t"}}
    assert observe_workflow(a_workflow(spec)) is None
    workflow = observed(a_workflow(spec, storedWorkflowTemplateSpec=MARKED))
    assert "storedWorkflowTemplateSpec" in json.loads(content(workflow).texts.document)["status"]


def test_offloaded_nodes_are_said():
    workflow = observed(a_workflow(offloadNodeStatusVersion="fnv:1"))
    assert "database" in workflow.state.unreadable


def test_a_workflow_without_a_uid_is_refused():
    raw = a_workflow()
    del raw["metadata"]["uid"]
    with pytest.raises(InputError, match="uid"):
        observe_workflow(raw)


@given(
    st.fixed_dictionaries(
        {"spec": ANY_FORM},
        optional={
            "nodes": ANY_FORM,
            "compressedNodes": ANY_FORM,
            "phase": ANY_FORM,
            "offloadNodeStatusVersion": ANY_FORM,
            "storedWorkflowTemplateSpec": ANY_FORM | st.just(MARKED),
        },
    )
)
def test_whatever_stands_in_it_never_fails(fields):
    spec = fields.pop("spec")
    raw = a_workflow(MARKED if spec is None else {"x": spec, **MARKED}, **fields)
    observed(raw)


@pytest.mark.parametrize(
    ("label", "package_id"), [({RUN_ID_LABEL: "id"}, "id"), ({RUN_ID_LABEL: 7}, ""), ({}, None)]
)
def test_only_workflows_of_kfp_3_have_their_package_elsewhere(label, package_id):
    package = a_package()
    for workflow, expected in (
        (emit_kfp3_workflow(*package), package_id),
        (emit_workflow(*package), None),
    ):
        metadata = {"uid": "u", "creationTimestamp": START.isoformat(), "labels": label}
        raw = {**workflow, "metadata": {"name": "run", **metadata}}
        assert observed(raw, unplanned=True).package_id == expected
