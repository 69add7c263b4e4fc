"""What Argo's nodes say of steps: recordings of the real controller, and what they lack."""

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import Group, GroupKind, RunGraph, Step
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.argo.workflow_nodes import (
    MAX_NODES,
    ArgoNode,
    node_id,
    read_nodes,
)
from kfp_placement_engine.readers.argo.workflow_outcomes import OutcomeReader
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.units.times import read_moment
from tests.engine.readers.recorded_runs import recorded_runs
from tests.support.json_values import ANY_FORM


def recordings():
    """(name, graph with loops two wide, nodes, phase) of every recorded run."""
    for recording, path in recorded_runs():
        workflow = yaml.load(path.read_text(), yaml.CSafeLoader)
        workflow["metadata"]["name"] = recording["workflow"]
        graph = read_workflow(workflow, path.stem, ReadOptions(default_loop_width=2))
        yield path.stem, graph, recording["nodes"], recording["phase"]


def outcome_of(graph, nodes):
    return OutcomeReader(graph, PodIndex(graph)).read(
        read_nodes({str(number): node for number, node in enumerate(nodes)})
    )


def test_every_step_of_a_recorded_run_that_succeeded_has_succeeded():
    """The recordings' loops ran twice, whatever their pipelines say."""
    seen = 0
    for name, graph, nodes, phase in recordings():
        if phase != "Succeeded":
            continue
        outcome = outcome_of(graph, nodes)
        for step in graph.steps:
            if all(index < 2 for index in step.iteration):
                assert outcome.steps[step.name].state is StepState.SUCCEEDED, (name, step.name)
                seen += 1
    assert seen > 200


def test_widths_are_counted_where_no_driver_says_them():
    """Recordings keep no outputs; all their loops had two iterations, those that ended are sure."""
    for name, graph, nodes, phase in recordings():
        outcome = outcome_of(graph, nodes)
        if phase == "Succeeded":
            assert set(outcome.widths.values()) <= {2}, name
            loops = {group.name for group in graph.groups if group.kind is GroupKind.LOOP}
            countable = {loop for loop in loops if all(f"[{i}]" not in loop for i in range(2, 9))}
            assert countable <= set(outcome.widths), name


GRAPH = RunGraph(
    "run",
    "argo-workflow",
    (
        Step("a", "a", has_driver=True),
        Step("branch.b", "branch.b", group="branch", has_driver=True),
        Step("loop[0].c", "loop[*].c", group="loop[0]", iteration=(0,), has_driver=True),
    ),
    (
        Group("", GroupKind.ROOT),
        Group("branch", GroupKind.DAG),
        Group("loop", GroupKind.LOOP, width=1, width_assumed=True),
        Group("loop[0]", GroupKind.ITERATION, parent="loop"),
    ),
    workflow="wf",
)
A = "wf(0).root(0).a"


def node(name, phase, kind="DAG", **fields):
    return {"name": name, "type": kind, "phase": phase, **fields}


def outputs(**values):
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in values.items()]
    return {"parameters": named}


def steps_of(*nodes):
    return outcome_of(GRAPH, nodes).steps


def test_a_pods_own_node_tells_times_and_host():
    pod = node(
        f"{A}(0).executor(0)",
        "Succeeded",
        "Pod",
        startedAt="2026-01-05T08:00:00Z",
        finishedAt="2026-01-05T08:00:30Z",
        hostNodeName="n1",
    )
    step = steps_of(node(A, "Succeeded", "Retry"), node(f"{A}(0)", "Succeeded"), pod)["a"]
    assert step.state is StepState.SUCCEEDED
    assert (step.host, step.attempts) == ("n1", 1)
    assert step.finished_at == datetime(2026, 1, 5, 8, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["Suspend", "HTTP", "Plugin"])
def test_a_node_without_pod_tells_its_times_itself(kind):
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T02:00:00Z"}
    waits = steps_of(node(A, "Running", kind, startedAt=times["startedAt"]))["a"]
    assert (waits.state, waits.started_at) == (StepState.RUNNING, read_moment(times["startedAt"]))
    ended = steps_of(node(A, "Succeeded", kind, **times))["a"]
    assert (ended.state, ended.started_at, ended.finished_at) == (
        StepState.SUCCEEDED,
        *map(read_moment, times.values()),
    )


def test_the_outermost_node_decides_while_attempts_fail():
    attempts = [node(f"{A}(0).executor({n})", "Failed", "Pod") for n in range(2)]
    running = steps_of(node(A, "Running", "Retry"), *attempts)["a"]
    assert (running.state, running.attempts) == (StepState.PENDING, 2)
    assert steps_of(node(A, "Failed", "Retry"), *attempts)["a"].state is StepState.FAILED


@pytest.mark.parametrize(
    "extra",
    [
        [node(f"{A}(0).executor", "Skipped", "Skipped")],
        [node(f"{A}-driver(0)", "Succeeded", "Pod", outputs=outputs(cached_decision="true"))],
    ],
)
def test_a_skipped_executor_or_its_drivers_word_is_a_cache_hit(extra):
    steps = steps_of(node(A, "Succeeded", "Retry"), node(f"{A}(0)", "Succeeded"), *extra)
    assert steps["a"].state is StepState.CACHED


def test_a_driver_that_failed_fails_its_step():
    driver = node(f"{A}-driver", "Failed", "Retry")
    assert steps_of(driver)["a"].state is StepState.FAILED
    assert steps_of(driver, node(A, "Omitted", "Skipped"))["a"].state is StepState.FAILED
    assert steps_of(node(A, "Omitted", "Skipped"))["a"].state is StepState.SKIPPED


@pytest.mark.parametrize("phase", ["Skipped", "Omitted"])
def test_a_branch_that_is_not_taken_skips_its_steps(phase):
    steps = steps_of(node("wf(0).root(0).branch", phase, "Skipped"))
    assert steps["branch.b"].state is StepState.SKIPPED
    assert "a" not in steps


def test_a_loops_driver_says_its_width_and_drivers_of_iterations_do_not():
    count = outputs(iteration_count="5")
    drivers = ("iteration-driver", "iteration-iterations(0:0)(0).iteration-item-driver")
    nodes = [
        node(f"wf(0).root(0).loop(0).{d}(0)", "Succeeded", "Pod", outputs=count) for d in drivers
    ]
    assert outcome_of(GRAPH, nodes[:1]).widths == {"loop": 5}
    assert outcome_of(GRAPH, nodes[1:]).widths == {}
    absurd = {**nodes[0], "outputs": outputs(iteration_count="99999999999")}
    assert outcome_of(GRAPH, [absurd]).widths == {}


def test_iterations_beyond_the_graph_are_seen():
    path = "wf(0).root(0).loop(0).iteration-iterations(7:7)(0).iteration-item(0).c(0).executor(0)"
    outcome = outcome_of(GRAPH, [node(path, "Running", "Pod")])
    assert outcome.seen == {"loop": 8}
    assert outcome.widths == {}


@pytest.mark.parametrize("nodes", [[], "x", 3])
def test_nodes_of_another_form_are_refused(nodes):
    with pytest.raises(InputError, match="must be a mapping"):
        read_nodes(nodes)


def test_too_many_nodes_are_refused():
    with pytest.raises(InputError, match="at most"):
        read_nodes(dict.fromkeys(range(MAX_NODES + 1)))


def test_nodes_that_argo_would_not_find_are_left_out():
    """Argo looks for a step by an id that it makes of the step's name."""
    forged = {"id": "x", "name": "wf.a"}
    for key, each in {"x": forged, "wf-1": forged, "wf.a": {**forged, "id": "wf.a"}}.items():
        assert read_nodes({key: each}, "wf") == ()
    for name, key in {"wf": "wf", "wf.a": node_id("wf", "wf.a")}.items():
        (read,) = read_nodes({key: {"id": key, "name": name}}, "wf")
        assert read.name == name
        assert read_nodes({key: {"name": name}}, "wf") == ()
    assert node_id("x", "x(0).wait(0)") == "x-3206812204"


def nodes_of(*nodes):
    """A status with nodes of a Workflow, each by its name and phase."""
    return {
        node_id("wf", name): {"id": node_id("wf", name), "name": name, "phase": phase, **more}
        for name, phase, more in nodes
    }


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running", "Skipped", "Omitted"])
def test_an_attempt_without_the_node_of_all_attempts_is_left_out(phase):
    """Argo makes its pod nevertheless."""
    attempt: tuple[str, str, dict[str, Any]] = ("wf.a(0)", phase, {})
    assert read_nodes(nodes_of(attempt), "wf") == ()
    assert read_nodes(nodes_of(attempt, ("wf", phase, {})), "wf")[0].name == "wf"
    both = read_nodes(nodes_of(attempt, ("wf.a", "Running", {})), "wf")
    assert len(both) == (1 if phase in ("Skipped", "Omitted") else 2)
    (item,) = read_nodes(nodes_of(("wf.a(0:x)", phase, {})), "wf")
    assert item.phase == phase


@pytest.mark.parametrize(
    ("phase", "synced", "read_as"),
    [
        ("Succeeded", False, "Running"),
        ("Failed", False, "Running"),
        ("Succeeded", True, "Succeeded"),
        ("Succeeded", None, "Succeeded"),
        ("Skipped", False, "Skipped"),
    ],
)
def test_a_step_goes_on_until_argo_has_its_results(phase, synced, read_as):
    """Until then Argo makes the pod if there is none."""
    (read,) = read_nodes(nodes_of(("wf", phase, {"taskResultSynced": synced})), "wf")
    assert read.phase == read_as


def test_times_that_are_none_are_passed_over():
    assert read_moment("2026-01-05T08:00:00Z") == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert read_moment("2026-01-05T08:00:00") == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert [read_moment(each) for each in ("", "yesterday", None, 5, "2" * 100)] == [None] * 5


NAMES = st.text(alphabet="wfarotlpbc(0:1).-[]", max_size=40).map(
    lambda text: f"wf{text}"
) | st.sampled_from([A, f"{A}(0).executor(0)", "wf(0).root(0).loop(0).iteration-driver(0)"])


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "name": NAMES | ANY_FORM,
                "type": ANY_FORM,
                "phase": st.sampled_from(["Skipped", "Failed"]) | ANY_FORM,
                "outputs": ANY_FORM,
                "startedAt": ANY_FORM,
                "message": ANY_FORM,
            },
        ),
        max_size=8,
    )
)
def test_whatever_stands_in_a_status_is_read(nodes):
    outcome = outcome_of(GRAPH, nodes)
    assert set(outcome.steps) <= {step.name for step in GRAPH.steps}
    assert all(isinstance(each, ArgoNode) for each in read_nodes(dict(enumerate(nodes))))
