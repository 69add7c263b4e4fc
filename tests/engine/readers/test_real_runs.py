"""KFP's own packages and Workflows: all are read, and both ways give the same graph."""

from dataclasses import replace
from pathlib import Path

import pytest

from kfp_placement_engine import RunGraph, read_run_file
from tests.support.run_data import data_files

PACKAGES = data_files("kfp-2.17.0/pipelines", "*.yaml")
LABELLED = data_files("labelled/pipelines", "*.yaml")


def workflow_of(package: Path) -> Path:
    return package.parent.parent / "workflows" / package.name


def comparable(graph: RunGraph) -> RunGraph:
    """Without what only one of the two files tells."""
    return replace(graph, source="", workflow="", run_id="", namespace="")


@pytest.mark.parametrize("package", [*PACKAGES, *LABELLED])
def test_package_and_workflow_give_the_same_graph(package):
    """Steps, groups, claims, notices: everything."""
    read = read_run_file(package)
    assert read.source == "kfp-package"
    from_workflow = read_run_file(workflow_of(package))
    assert from_workflow.source == "argo-workflow"
    assert comparable(read) == comparable(from_workflow)
