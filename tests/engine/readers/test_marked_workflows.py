"""Marks that tests put on KFP's own Workflows are read like those of authors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER
from kfp_placement_engine.model.run_graph import Step, StepKind
from kfp_placement_engine.readers import read_run_file
from tests.support.run_data import data_files
from tests.support.workflow_marks import Mark, with_marks

WORKFLOWS = data_files("kfp-2.17.0/workflows", "*.yaml")


def unmarked(step: Step, other: Step) -> Step:
    """The step with the other's answers where marks speak."""
    marks = ("type", "scheduler", "labels", "annotations", "duration_seconds", "duration_source")
    return replace(step, **{name: getattr(other, name) for name in marks})


@pytest.mark.parametrize("path", WORKFLOWS)
def test_every_container_is_marked_and_nothing_else_changes(path: Path, tmp_path: Path) -> None:
    before = read_run_file(path)
    workflow = with_marks(
        yaml.load(path.read_text("utf-8"), yaml.CSafeLoader),
        lambda task: Mark(duration="2s", type="Training"),
    )
    (tmp_path / "marked.json").write_text(json.dumps(workflow, default=str), "utf-8")

    after = read_run_file(tmp_path / "marked.json")

    assert [step.name for step in after.steps] == [step.name for step in before.steps]
    for new, old in zip(after.steps, before.steps, strict=True):
        if old.kind is StepKind.CONTAINER:
            assert (new.scheduler, new.type) == (DEFAULT_SCHEDULER, "Training")
            assert new.duration_seconds == 2
            assert dict(old.labels).items() <= dict(new.labels).items()
            assert dict(old.annotations).items() <= dict(new.annotations).items()
        assert unmarked(new, old) == old
