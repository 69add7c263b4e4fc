"""Runs of the real Argo, recorded with the Workflows that were run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kfp_placement_engine import RunGraph, read_run_file
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity
from tests.support.data import data_path

FOLDERS = (("argo-4.0.5", "kfp-2.17.0/workflows"), ("labelled/recordings", "labelled/workflows"))


class RecordedPod(NamedTuple):
    """A pod of a recorded run.

    Attributes:
        node_name: Argo's name of the node that the pod is for.
        identity: what the pod is, told by that name.
        graph: the run, read from its Workflow.
        workflow: name of the Workflow.
        pod: the pod as an object of the API.
    """

    node_name: str
    identity: PodIdentity
    graph: RunGraph
    workflow: str
    pod: dict[str, Any]


def recorded_runs() -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield every recording, with the file of its Workflow."""
    for folder, workflows in FOLDERS:
        for path in sorted(data_path(folder).glob("*.json")):
            recording = json.loads(path.read_text())
            yield recording, data_path(workflows, recording["golden"].rsplit("/", 1)[-1])


def recorded_pods() -> Iterator[RecordedPod]:
    """Yield every pod of every recorded run."""
    for recording, path in recorded_runs():
        graph, workflow = read_run_file(path), recording["workflow"]
        index = PodIndex(graph, workflow)
        for pod in recording["pods"]:
            node_name = pod["metadata"]["annotations"][NODE_NAME_ANNOTATION]
            yield RecordedPod(node_name, identified(index, node_name), graph, workflow, pod)


def identified(index: PodIndex, node_name: str) -> PodIdentity:
    """Return what a pod is, which must be known."""
    identity = index.identify(node_name)
    assert identity is not None, node_name
    return identity
