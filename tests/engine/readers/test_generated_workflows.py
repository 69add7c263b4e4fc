"""The fifty generated pipelines as Workflows: the same graph as from the package.

The Workflows come from the stand-in for KFP's compiler, so this proves the Workflow reader only as
far as the stand-in is right; `test_workflow_emitter.py` holds it against every real Workflow.
"""

import json
from dataclasses import replace

import pytest
import yaml

from kfp_placement_engine.readers import read_run
from tests.support.generated_pipelines import generate
from tests.support.kfp_workflow_emitter import emit_workflow


@pytest.mark.parametrize("seed", range(50))
def test_a_generated_workflow_gives_the_graph_of_its_package(seed: int, tmp_path) -> None:
    package = generate(seed, tmp_path).package
    documents = list(yaml.load_all(package, Loader=yaml.CSafeLoader))
    workflow = emit_workflow(documents[0], documents[1] if len(documents) > 1 else None)
    graph = read_run(package, name="run")
    from_workflow = read_run(json.dumps(workflow).encode(), name="run")
    assert replace(from_workflow, source=graph.source) == graph
