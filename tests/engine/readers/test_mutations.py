"""Real files with random parts removed, replaced, moved: read, or refused with an input error."""

import copy
import json
import random
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import RunGraph, read_run
from kfp_placement_engine.exceptions import InputError
from tests.support.kfp_workflow_emitter import emit_workflow
from tests.support.packages import a_loop, a_package, a_task, an_exit_task
from tests.support.run_data import data_files

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    2**70,
    "",
    "x",
    "a.b",
    "[*]",
    "{{",
    "{{$.inputs.parameters['x']}}",
    "{{workflow.parameters.components-root}}",
    "-5Gi",
    "1e999",
    "9" * 200,
    "é" * 100,
    "\x00",
    "root",
    "[1,2",
    "{}",
    "null",
    [],
    {},
    [None],
    {"x": None},
    {"name": "x"},
]
LARGEST = 150_000
"""Larger files are left to the slower tests over whole files."""


@cache
def sources() -> list[list[Any]]:
    """Documents of real files, or of small ones made here where the data is absent."""
    streams = [list(small_package()), [emit_workflow(*small_package())], [plain_workflow()]]
    for folder, pattern in (
        ("kfp-2.17.0/pipelines", "*.yaml"),
        ("kfp-2.17.0/workflows", "*.yaml"),
        ("labelled/pipelines", "*.yaml"),
        ("labelled/workflows", "*.yaml"),
        ("wfinstances", "*.json"),
    ):
        for parameter in data_files(folder, pattern):
            path = parameter.values[0]
            if path.is_file() and path.stat().st_size < LARGEST:
                documents = yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader)
                streams.append([document for document in documents if document])
    return streams


def small_package() -> list[Any]:
    tasks = {
        "work": a_task(),
        "loop": a_loop("body", [1, 2], dependentTasks=["work"]),
        "end": an_exit_task("work"),
    }
    config = {"exec-work": {"tolerations": [{"key": "a"}], "podMetadata": {"labels": {"a": "b"}}}}
    return a_package(tasks, kubernetes=config)


def plain_workflow() -> dict[str, Any]:
    work = {
        "name": "work",
        "container": {"image": "w", "resources": {"requests": {"cpu": "1"}}},
        "nodeSelector": {"a": "b"},
        "retryStrategy": {"limit": 2},
    }
    tasks = [
        {"name": "a", "template": "work", "withItems": [1, "{{workflow.name}}"]},
        {"name": "b", "template": "deep", "depends": "a.Succeeded", "onExit": "work"},
    ]
    deep = {"name": "deep", "steps": [[{"name": "c", "template": "work"}]]}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "flow"},
        "spec": {
            "entrypoint": "main",
            "arguments": {"parameters": [{"name": "x", "value": "1"}]},
            "templates": [{"name": "main", "dag": {"tasks": tasks}}, deep, work],
        },
    }


def mutate(root: Any, rng: random.Random) -> None:
    """Change one random place, also inside of JSON text."""
    places = list(places_of(root))
    if not places:
        return
    parent, key = rng.choice(places)
    value = parent[key]
    if isinstance(value, str) and value[:1] in ("{", "[") and rng.random() < 0.7:
        try:
            inner = json.loads(value)
        except ValueError:
            inner = None
        if inner:
            mutate(inner, rng)
            parent[key] = json.dumps(inner)
            return
    choice = rng.random()
    if choice < 0.3:
        del parent[key]
    elif choice < 0.6:
        parent[key] = copy.deepcopy(rng.choice(ODD))
    elif choice < 0.8:
        other, other_key = rng.choice(places)
        parent[key] = copy.deepcopy(other[other_key])
    elif isinstance(parent, dict):
        parent[rng.choice(["x", f"{key}2", "a.b", str(key).upper()])] = parent.pop(key)
    else:
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(value))


def places_of(root: Any):
    """(container, key) of everything in it."""
    waiting = [root]
    while waiting:
        value = waiting.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield value, key
            if isinstance(value[key], dict | list):
                waiting.append(value[key])


def check(graph: RunGraph) -> None:
    """What holds for every graph."""
    seen: set[str] = set()
    claims = {claim.name for claim in graph.claims}
    groups = {group.name for group in graph.groups}
    for step in graph.steps:
        assert step.name not in seen
        assert seen.issuperset(step.depends_on)
        assert list(step.depends_on) == sorted(set(step.depends_on))
        assert set(step.claims) <= claims
        assert not groups or step.group in groups
        assert all(amount >= 0 for amount in step.requests.values())
        seen.add(step.name)


def read_or_refuse(data: bytes) -> None:
    try:
        graph = read_run(data, name="run.yaml")
    except InputError as error:
        problem = str(error)
    else:
        problem = ""
        check(graph)
        repr(graph).encode("utf-8")
    assert len(problem.encode("utf-8")) < 1500


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_mutated_files_are_read_or_refused(seed):
    """The seed alone reproduces an example."""
    rng = random.Random(seed)
    documents = copy.deepcopy(rng.choice(sources()))
    for _ in range(rng.choice([1, 1, 2, 5])):
        mutate(documents, rng)
    texts = [json.dumps(document) for document in documents]
    read_or_refuse(rng.choice(["\n", "\n---\n"]).join(texts).encode())


@pytest.mark.parametrize("documents", [small_package(), [emit_workflow(*small_package())]])
def test_every_single_value_may_be_missing_or_odd(documents):
    """Each place of a small run, one after the other."""
    count = sum(1 for _ in places_of(documents))
    for number in range(count):
        for odd in (*ODD[:6], ODD[10], ODD[22], ODD[23], "gone"):
            changed = copy.deepcopy(documents)
            parent, key = list(places_of(changed))[number]
            if odd == "gone":
                del parent[key]
            else:
                parent[key] = copy.deepcopy(odd)
            read_or_refuse(b"\n".join(json.dumps(part).encode() for part in changed))
