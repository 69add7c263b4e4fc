"""Runs of thousands of steps are read in little time, and leave Python's settings as they were."""

import gc
import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo import tags
from kfp_placement_engine.readers.text.documents import load_documents
from kfp_placement_engine.readers.unused import walk

THRESHOLDS = (50, 10, 10)


COUNT = 50
VALUES = 3
MANIFEST = """
apiVersion: batch/v1
kind: Job
spec:
  parallelism: {{inputs.parameters.few}}
  template: {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
"""
PATCH = """
containers:
- name: main
  resources: {requests: {memory: {{inputs.parameters.few}}Gi}}
"""


def a_workflow(**work: Any) -> bytes:
    work = work or {"container": {"image": "a"}}
    tasks = [a_task(number) for number in range(COUNT)]
    inputs = {"parameters": [{"name": "few"}, {"name": "own"}]}
    labels = {"own": "{{inputs.parameters.own}}"}
    templates = [
        {"name": "main", "dag": {"tasks": tasks}},
        {"name": "work", "inputs": inputs, "metadata": {"labels": labels}, **work},
    ]
    spec = {"entrypoint": "main", "templates": templates}
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": spec}
    return json.dumps(workflow).encode()


def a_task(number: int) -> dict[str, Any]:
    values = {"few": str(1 + number % VALUES), "own": f"v{number}"}
    parameters = [{"name": name, "value": value} for name, value in values.items()]
    return {"name": f"t{number}", "template": "work", "arguments": {"parameters": parameters}}


@contextmanager
def collections() -> Iterator[list[set[str]]]:
    """The functions under way at each search for unreachable cycles, which are frequent here."""
    seen: list[set[str]] = []

    def note(_phase: str, _info: dict[str, int]) -> None:
        seen.append({frame.name for frame in traceback.extract_stack()})

    usual = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(*THRESHOLDS)
    try:
        yield seen
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(note)


def test_cycles_are_not_searched_for_while_a_run_is_read():
    with collections() as seen:
        read_run(a_workflow(), name="flow.yaml")
    assert any("load_documents" in names for names in seen)
    assert not any("read_workflow" in names for names in seen)


def test_cycles_are_searched_for_again_after_a_run_is_read_or_refused():
    read_run(a_workflow(), name="flow.yaml")
    assert gc.isenabled()
    with pytest.raises(InputError):
        read_run(a_workflow().replace(b'"main"', b'"no"', 1), name="flow.yaml")
    assert gc.isenabled()


def test_whoever_searches_for_no_cycles_goes_on_so():
    gc.disable()
    try:
        read_run(a_workflow(), name="flow.yaml")
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "work",
    [
        {"resource": {"action": "create", "manifest": MANIFEST, "successCondition": "a == 1"}},
        {"container": {"image": "a"}, "podSpecPatch": PATCH},
    ],
)
def test_what_tags_make_of_yaml_is_read_once_for_the_same_values(
    work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    texts: list[bytes] = []

    def counted(data: bytes, **options: Any) -> list[Any]:
        texts.append(data)
        return load_documents(data, **options)

    for reader in (tags, walk):
        monkeypatch.setattr(reader, "load_documents", counted)
    run = read_run(a_workflow(**work), name="flow.yaml")
    assert len(run.steps) == COUNT
    # As it is in the file, YAML is looked at for its form and for its fields.
    assert len(texts) <= 4 + 2 * VALUES
