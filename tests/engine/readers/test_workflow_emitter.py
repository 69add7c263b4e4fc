"""KFP's own packages: our stand-in makes their Workflows, and both are read as the same run."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kfp_placement_engine import RunGraph, read_run_file
from tests.support.kfp_workflow_emitter import emit_workflow, structure
from tests.support.run_data import data_files

PACKAGES = [*data_files("kfp-2.17.0/pipelines", "*.yaml"), *data_files("labelled/pipelines")]
HASH = re.compile(r"[0-9a-f]{64}")


def workflow_of(package: Path) -> Path:
    return package.parent.parent / "workflows" / package.name


def load_all(path: Path) -> list[Any]:
    documents = yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader)
    return [document for document in documents if document]


class Renamer:
    """Numbers hashes in the order of the container specs that they stand for."""

    def __init__(self, workflow: dict[str, Any]) -> None:
        by_content = {}
        for entry in workflow["spec"]["arguments"]["parameters"]:
            match = HASH.search(entry["name"])
            if entry["name"].startswith("implementations-") and match:
                by_content[match.group(0)] = json.loads(entry["value"])
        ordered = sorted(by_content, key=lambda key: str(sorted_deep(by_content[key])))
        self._names = {key: f"container-{number}" for number, key in enumerate(ordered)}

    def __call__(self, text: str) -> str:
        return HASH.sub(lambda match: self._names[match.group(0)], text or "")


def sorted_deep(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, sorted_deep(entry)) for key, entry in value.items())
    if isinstance(value, list):
        return [sorted_deep(entry) for entry in value]
    return float(value) if isinstance(value, int) else value


@pytest.mark.parametrize("path", PACKAGES)
def test_it_makes_what_the_compiler_made(path):
    documents = load_all(path)
    made = emit_workflow(documents[0], documents[1] if len(documents) > 1 else None)
    real = load_all(workflow_of(path))[0]
    ours = structure(made, rename=Renamer(made))
    theirs = structure(real, rename=Renamer(real))
    assert ours["templates"] == theirs["templates"]
    assert ours["claims"] == theirs["claims"]
    assert ours["arguments"].keys() == theirs["arguments"].keys()
    for name, value in theirs["arguments"].items():
        if not name.startswith("components-"):
            assert sorted_deep(ours["arguments"][name]) == sorted_deep(value), name


def comparable(graph: RunGraph) -> RunGraph:
    """Without what only one of the two files tells."""
    return replace(graph, source="", workflow="", run_id="", namespace="")


@pytest.mark.parametrize("path", PACKAGES)
def test_package_and_workflow_give_the_same_graph(path):
    """Steps, groups, claims, notices: everything."""
    read, from_workflow = read_run_file(path), read_run_file(workflow_of(path))
    assert (read.source, from_workflow.source) == ("kfp-package", "argo-workflow")
    assert comparable(read) == comparable(from_workflow)
