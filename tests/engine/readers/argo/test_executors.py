"""Which pods execute a step of KFP, told without our mark; against what KFP really makes."""

import json
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import SCHEDULER_LABEL, UNPLANNED_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.executors import is_unmarked_executor
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from tests.support.run_data import data_files

Json = dict[str, Any]

WORKFLOW = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "run"}
KFP = {"pipelines.kubeflow.org/v2_component": "true"}


def is_unmarked(pod: Json) -> bool:
    return is_unmarked_executor(Fields(pod, Place("pod")))


def a_pod(
    *, labels: Json = KFP, owners: Any = (WORKFLOW,), containers: Any = ("init", "kfp-launcher")
) -> Json:
    initial = [{"name": name} for name in containers]
    return {
        "metadata": {"labels": labels, "ownerReferences": list(owners)},
        "spec": {"initContainers": initial},
    }


@pytest.mark.parametrize("path", data_files("argo-4.0.5", "*.json"))
def test_of_recorded_pods_all_executors_are_told_and_no_driver_or_importer(path):
    pods = json.loads(path.read_text("utf-8"))["pods"]
    names = {pod["metadata"]["annotations"][NODE_NAME_ANNOTATION]: is_unmarked(pod) for pod in pods}
    # Argo's own name of a level that KFP's compiler makes for executors alone, retries included.
    assert names == {name: ".executor" in name[name.rindex(".") :] for name in names}


@pytest.mark.parametrize("path", data_files("labelled/recordings", "*.json"))
def test_recorded_pods_with_our_mark_are_not_unmarked(path):
    pods = json.loads(path.read_text("utf-8"))["pods"]
    assert not any(is_unmarked(pod) for pod in pods if SCHEDULER_LABEL in pod["metadata"]["labels"])


def test_all_three_signs_are_needed():
    assert is_unmarked(a_pod())
    assert not is_unmarked(a_pod(labels={}))
    assert not is_unmarked(a_pod(containers=["init"]))
    assert not is_unmarked(a_pod(owners=[]))
    assert not is_unmarked(a_pod(owners=[{**WORKFLOW, "kind": "Job"}]))
    assert not is_unmarked(a_pod(owners=[{**WORKFLOW, "apiVersion": "example.com/v1"}]))
    assert not is_unmarked({"metadata": {"labels": KFP}})


def test_a_step_that_says_what_it_wants_is_not_one():
    assert not is_unmarked(a_pod(labels={**KFP, SCHEDULER_LABEL: "volcano"}))
    assert not is_unmarked(a_pod(labels={**KFP, UNPLANNED_LABEL: "true"}))
    assert is_unmarked(a_pod(labels={**KFP, UNPLANNED_LABEL: "false"}))


@pytest.mark.parametrize(
    "pod", [a_pod(owners=[7, None, {}]), {**a_pod(), "spec": {"initContainers": [7, None]}}]
)
def test_odd_entries_are_none(pod):
    assert not is_unmarked(pod)


def test_a_malformed_pod_is_refused():
    with pytest.raises(InputError):
        is_unmarked({**a_pod(), "spec": 7})
