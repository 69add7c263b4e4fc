"""From an executor's node name to the step of a plan: recordings, tricky names, any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.readers.argo.executors import MAX_NODE_NAME_CHARACTERS, step_of_executor
from kfp_placement_engine.readers.tree.run_outcomes import PodRole
from tests.engine.readers.recorded_runs import recorded_pods


def test_every_recorded_executor_is_the_step_that_the_graph_says():
    """Where the graph has fewer iterations than ran, no step of it is claimed."""
    executors = beyond = 0
    for each in recorded_pods():
        if each.identity.role is not PodRole.EXECUTOR:
            continue
        steps = {step.name for step in each.graph.steps}
        step = step_of_executor(each.node_name, each.workflow, steps)
        if "[*]" in each.identity.name:
            beyond += 1
            assert step is None
        else:
            executors += 1
            assert step == each.identity.name
    assert executors > 300
    assert beyond > 0


LOOP = "iteration-iterations(1:1)(0).iteration-item(0)"


@pytest.mark.parametrize(
    ("node_name", "step"),
    [
        ("wf.root.train.executor", "train"),
        ("wf(0).root(0).train(0).executor(0)", "train"),
        ("wf(0).root(0).train(0).executor(2)", "train"),
        (f"wf(0).root(0).for-loop-1(0).{LOOP}.work(0).executor(0)", "for-loop-1[1].work"),
        (f"wf(0).root(0).each(0).{LOOP}.executor(0)", "each[1]"),
        (f"wf(0).root(0).a(0).{LOOP}.b(0).{LOOP}.c(0).executor(0)", "a[1].b[1].c"),
        ("wf(0).root(0).exit-handler-1(0).onExit(0).tidy(0).executor(0)", "tidy"),
        ("wf(0).root(0).inner(0).work(0).onExit(0).tidy(0).executor(0)", "inner.tidy"),
        ("wf.root.iteration.executor", "iteration"),
        ("wf.root.iteration-item.executor", "iteration-item"),
        ("wf.root.iteration-iterations.executor", "iteration-iterations"),
        ("wf.root.executor.executor", "executor"),
        ("wf.root.x-driver.executor", "x-driver"),
        (
            f"wf.root.iteration-item.{LOOP}.iteration-item.executor",
            "iteration-item[1].iteration-item",
        ),
        (f"wf.root.iteration.{LOOP}.iteration.executor", "iteration[1].iteration"),
        # Plain Workflows: the path itself.
        ("wf[0].first", "first"),
        ("wf(0)[0].first(2)", "first"),
        ("wf[1].each(0:a.b(c))", "each[0]"),
        ("wf[1].nested.A.onExit", "nested.A.onExit"),
        ("wf.root.executor", "root.executor"),
        ("wf.root.train.executor", "root.train.executor"),
    ],
)
def test_node_names(node_name, step):
    assert step_of_executor(node_name, "wf", {step, "another"}) == step


@pytest.mark.parametrize(
    "node_name",
    [
        "",
        "wf",
        "another.root.train.executor",
        "wf.root.gone.executor",
        "wf.root..executor",
        "wf.root.train.executor" + "(0)" * MAX_NODE_NAME_CHARACTERS,
    ],
)
def test_other_names_are_no_step(node_name):
    assert step_of_executor(node_name, "wf", {"train", "more"}) is None


def test_a_workflow_of_one_pod_has_its_name():
    assert step_of_executor("alone", "alone", {"main"}) == "main"
    assert step_of_executor("alone(3)", "alone", {"main"}) == "main"
    assert step_of_executor("alone", "alone", {"main", "onExit", "onExit.more"}) == "main"
    assert step_of_executor("alone.onExit", "alone", {"main", "onExit"}) == "onExit"
    assert step_of_executor("alone", "alone", {"main", "more"}) is None


@given(st.text(alphabet="wf.()[]0:root-iexcud", max_size=80))
def test_any_text_is_a_step_of_the_plan_or_none(text):
    steps = {"train", "root", "d[0]"}
    assert step_of_executor(f"wf{text}", "wf", steps) in {*steps, None}
