"""Dialects of Workflows: told apart by structure on every compiled Workflow at hand."""

import json
from typing import Any

import pytest
import yaml

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.kfp_dialect import Dialect, dialect_of
from tests.support.data import data_path

FOLDERS = {
    "kfp-2.17.0/workflows": Dialect.KFP_2,
    "kfp-3-draft/workflows": Dialect.KFP_3,
    "kfp-drafts/13171": Dialect.AGENT_DRIVER,
    "kfp-drafts/13258": Dialect.INIT_DRIVER,
}
A_DRIVER = {"name": "system-dag-driver", "container": {}}
PARENT = {"parameters": [{"name": "parent-dag-task-id"}]}
ROOT = {"parameters": [{"name": "components-root", "value": "{}"}]}
OF_KFP = {"labels": {"pipelines.kubeflow.org/v2_component": "true"}}


def workflow(spec: Any, metadata: Any = None) -> bytes:
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
    return json.dumps({**kind, "metadata": metadata or {}, "spec": spec}).encode()


@pytest.mark.parametrize(("folder", "dialect"), FOLDERS.items())
def test_the_dialect_of_every_compiled_workflow(folder, dialect):
    files = sorted(data_path(*folder.split("/")).glob("*.yaml"))
    assert len(files) >= 68
    wrong = {}
    for path in files:
        documents = yaml.load(path.read_text(), yaml.CSafeLoader)
        dialects = dialect_of(documents["spec"], documents["metadata"])
        if dialects is not dialect:
            wrong[path.name] = dialects
    assert wrong == {}


@pytest.mark.parametrize("draft", ["13171", "13258"])
def test_workflows_of_drafts_are_refused_by_name(draft):
    path = data_path("kfp-drafts", draft, "hello_world.yaml")
    with pytest.raises(InputError, match=f"kubeflow/pipelines {draft}.*plan the pipeline package"):
        read_run(path.read_bytes(), name="flow.yaml")


@pytest.mark.parametrize(
    ("spec", "dialect"),
    [
        ({}, Dialect.PLAIN),
        ({"templates": "all", "arguments": 3, "podMetadata": []}, Dialect.PLAIN),
        ({"templates": [None, {"name": []}, A_DRIVER, A_DRIVER]}, Dialect.UNKNOWN),
        ({"templates": [{**A_DRIVER, "inputs": [PARENT]}]}, Dialect.UNKNOWN),
        ({"templates": [{**A_DRIVER, "inputs": PARENT}]}, Dialect.KFP_3),
        ({"templates": [], "podMetadata": OF_KFP}, Dialect.UNKNOWN),
        ({"arguments": ROOT, "podMetadata": OF_KFP}, Dialect.KFP_2),
        ({"arguments": ROOT, "templates": [{**A_DRIVER, "inputs": PARENT}]}, Dialect.KFP_2),
        ({"arguments": ROOT, "templates": [{**A_DRIVER, "plugin": {}}]}, Dialect.AGENT_DRIVER),
    ],
)
def test_the_dialect_of_a_made_up_workflow(spec, dialect):
    assert dialect_of(spec, {}) is dialect


def test_a_workflow_of_an_unknown_kfp_is_not_planned_as_a_plain_one():
    a_pod = {"name": "main", "container": {"image": "busybox"}}
    spec = {"entrypoint": "main", "templates": [a_pod], "podMetadata": OF_KFP}
    with pytest.raises(InputError, match=r"^flow.yaml: this Workflow is made by a KFP that is not"):
        read_run(workflow(spec), name="flow.yaml")
    del spec["podMetadata"]
    assert len(read_run(workflow(spec), name="flow.yaml").steps) == 1
