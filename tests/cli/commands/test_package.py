"""Option `--package` of `plan` and `check`: a Workflow of KFP 3 beside its package."""

import json
from pathlib import Path

import pytest
import yaml

from kfp_placement import RunError, preview
from kfp_placement.check import check
from tests.cli.conftest import CLUSTER, RUN
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow

TAXI = next(yaml.safe_load_all(Path(RUN).read_text("utf-8")))


@pytest.fixture
def workflow(tmp_path):
    """The Workflow that KFP 3 makes of the sample."""
    path = tmp_path / "workflow.yaml"
    path.write_text(json.dumps(emit_kfp3_workflow(*yaml.safe_load_all(Path(RUN).read_text()))))
    return str(path)


def requests(graph) -> dict:
    return {step.name: dict(step.requests) for step in graph.steps}


def test_the_run_is_that_of_the_package(run, planner, workflow):
    run("plan", RUN, "--cluster", CLUSTER)
    of_package = planner.graph
    completed = run("plan", workflow, "--package", RUN, "--cluster", CLUSTER)
    assert completed.exit_code == 0
    assert not planner.graph.is_outline
    assert requests(planner.graph) == requests(of_package)
    assert len(planner.graph.steps) == len(of_package.steps)


def test_alone_a_workflow_is_an_outline(run, planner, workflow):
    assert run("plan", workflow, "--cluster", CLUSTER).exit_code == 0
    assert planner.graph.is_outline


def test_the_package_may_come_from_stdin(run, planner, workflow):
    package = Path(RUN).read_bytes()
    completed = run("plan", workflow, "--package", "-", "--cluster", CLUSTER, stdin=package)
    assert completed.exit_code == 0
    assert not planner.graph.is_outline
    assert "cannot both come from stdin" in run("plan", "-", "--package", "-").stderr


def test_the_package_of_another_run_is_named(run, tmp_path, workflow):
    """The first difference is a warning, and the run is planned by its outline."""
    other = json.loads(json.dumps(TAXI).replace("drop-header", "drop-header-2"))
    (tmp_path / "other.yaml").write_text(json.dumps(other))
    completed = run("plan", workflow, "--package", "other.yaml", "--cluster", CLUSTER)
    assert completed.exit_code == 0
    assert "the package is not of this run" in completed.stdout + completed.stderr
    findings = run("check", workflow, "--package", "other.yaml", "-o", "json")
    codes = {each["code"] for each in json.loads(findings.stdout)["findings"]}
    assert "other-package" in codes


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("plan", RUN, "--package", RUN), "is a KFP pipeline package, which needs no package"),
        (("check", RUN, "--package", RUN), "is a KFP pipeline package, which needs no package"),
        (("plan", "workflow.yaml", "--package", "workflow.yaml"), "is an Argo Workflow; give the"),
        (("plan", "workflow.yaml", "--package", CLUSTER), "not a run; give the pipeline package"),
        (("plan", "workflow.yaml", "--package", "gone.yaml"), "gone.yaml"),
    ],
)
def test_what_is_no_package_of_a_workflow_is_an_error(run, workflow, command, message):
    completed = run(*command)
    assert completed.exit_code in (1, 2, 3)
    assert message in completed.stderr


def test_in_python(workflow):
    made = preview(workflow, CLUSTER, package=RUN, budget="50ms", compare=())
    assert {step.node for step in made.steps.values()} != {None}
    outline = preview(workflow, CLUSTER, budget="50ms", compare=())
    assert (made.basis, outline.basis) == (None, "outline")
    assert check(workflow, package=RUN).run_name == "taxi"
    with pytest.raises(RunError, match="describes a cluster"):
        preview(workflow, CLUSTER, package=CLUSTER)
