"""Runs of thousands of steps are read in little time, and leave Python's settings as they were."""

import gc
import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import InputError

THRESHOLDS = (50, 10, 10)


def a_workflow() -> bytes:
    tasks = [{"name": f"t{number}", "template": "work"} for number in range(50)]
    templates = [
        {"name": "main", "dag": {"tasks": tasks}},
        {"name": "work", "container": {"image": "a"}},
    ]
    spec = {"entrypoint": "main", "templates": templates}
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": spec}
    return json.dumps(workflow).encode()


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
