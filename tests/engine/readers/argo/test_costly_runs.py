"""Runs that would take long to read or plan, whatever the number of their steps."""

from typing import Any

import pytest

from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.tree import branch_decider
from kfp_placement_engine.readers.tree.options import ReadOptions
from tests.controlplane.argo.small_workflows import dag, task, workflow

MANY = 150

Json = dict[str, Any]

REQUESTS = {f"example.com/r{n}": "1" for n in range(MANY)}
TERM = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}
PREFERRED = [{"weight": 1, "preference": TERM}] * MANY
COSTLY: dict[str, Json] = {
    "requests": {"container": {"image": "i", "resources": {"requests": REQUESTS}}},
    "labels": {"metadata": {"labels": {f"l{n}": "x" for n in range(MANY)}}},
    "tolerations": {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(MANY)]},
    "affinity": {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED}}
    },
    "containers": {"sidecars": [{"name": f"c{n}", "image": "i"} for n in range(MANY)]},
}


def read(work: Json, tasks: list[Json]) -> RunGraph:
    """A run of at most 20 steps."""
    return read_workflow(workflow(dag("main", *tasks), work), "run", ReadOptions(max_steps=20))


@pytest.mark.parametrize("what", COSTLY)
def test_few_steps_may_say_much_and_many_may_not(what):
    work = {"name": "work", "container": {"image": "i"}, **COSTLY[what]}
    assert len(read(work, [task("only")]).steps) == 1
    with pytest.raises(LimitError, match="say less in each of them"):
        read(work, [task(f"s{number}") for number in range(20)])


def test_conditions_beyond_a_limit_are_not_known(monkeypatch):
    work = {"name": "work", "container": {"image": "i"}}
    tasks = [task("first"), *(task(f"s{n}", depends="first.Failed") for n in range(5))]
    assert any(step.after_failure for step in read(work, tasks).steps)
    monkeypatch.setattr(branch_decider, "MOST_CHARACTERS", 50)
    graph = read(work, tasks)
    assert len(graph.steps) == 6
    assert not any(step.after_failure for step in graph.steps)
