"""A step that fits nowhere comes with the line of Python that lets it onto a node."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kfp import dsl, kubernetes

from kfp_placement import Cluster, Node, check, place, preview
from kfp_placement_engine.model.cluster import Taint
from kfp_placement_engine.model.node_rules.constraints import tolerates
from kfp_placement_engine.model.pod_constraints import Toleration
from kfp_placement_engine.planning.author_languages import PYTHON
from tests.support.pipelines import one_step

QUICK: dict[str, Any] = {"budget": "50ms", "compare": ()}
GPU = {"gpu": 2, "labels": {"gpu-model": "a100-80g"}}
CPU_ONLY = Node("plain", cpu=8, memory="32Gi", count=2)


def gpu_node(**changes: Any) -> Cluster:
    return Cluster([CPU_ONLY, Node("gpu-1", cpu=32, memory="128Gi", **{**GPU, **changes})])


def lines_in(text: str) -> list[str]:
    match = re.search(r"(?:this line lets|these lines let) it onto \S+: (.*)", text)
    return match[1].split("; ") if match else []


def marked(mark, *lines):
    """A pipeline of one step with that mark and, in addition, these lines."""

    def all_of_it(task):
        mark(task)
        for line in lines:
            exec(line, {"task": task, "kubernetes": kubernetes})

    return one_step(all_of_it)


def wants_gpu(task: dsl.PipelineTask) -> None:
    place(task, gpu=1, cpu=1, duration="1m")


def wants_a_model(task: dsl.PipelineTask) -> None:
    wants_gpu(task)
    kubernetes.add_node_selector(task, "gpu-model", "a100-80gb")


def wants_an_old_name(task: dsl.PipelineTask) -> None:
    place(task, cpu=1, duration="1m")
    task.set_accelerator_type("NVIDIA_TESLA_A100").set_accelerator_limit(1)


CASES = {
    "toleration": (wants_gpu, gpu_node(taints=["gpu=true:NoSchedule"])),
    "toleration of a taint without a value": (wants_gpu, gpu_node(taints=["dedicated:NoExecute"])),
    "selector": (wants_a_model, gpu_node()),
    "accelerator": (wants_an_old_name, gpu_node()),
    "two tolerations": (wants_gpu, gpu_node(taints=["a:NoSchedule", "b=c:NoSchedule"])),
    "toleration and selector": (wants_a_model, gpu_node(taints=["gpu:NoSchedule"])),
}


@pytest.mark.parametrize("case", CASES)
def test_the_lines_let_the_step_onto_the_node(case, golden):
    mark, cluster = CASES[case]
    plan = preview(marked(mark), cluster, **QUICK)
    ((name, reason),) = plan.plan.unschedulable
    golden(reason)
    assert plan.steps[name].node is None
    assert reason in plan.explain(name)
    (finding,) = check(marked(mark), cluster).of("unschedulable")
    assert finding.message == reason
    helped = preview(marked(mark, *lines_in(reason)), cluster, **QUICK)
    assert helped.steps[name].node == "gpu-1"


@pytest.mark.parametrize(
    ("mark", "cluster"),
    [
        (lambda task: place(task, cpu=64), gpu_node()),
        (wants_gpu, Cluster([CPU_ONLY])),
        (wants_gpu, gpu_node(unschedulable=True)),
        (wants_gpu, gpu_node(taints=["node.kubernetes.io/not-ready:NoSchedule"])),
        (wants_gpu, gpu_node(taints=["a:NoSchedule", "b:NoSchedule", "c:NoSchedule"])),
        (wants_gpu, gpu_node(used={"nvidia.com/gpu": 2})),
        (wants_an_old_name, gpu_node(gpu=None, extended={"vpc.amazonaws.com/pod-eni": 9})),
        (lambda task: kubernetes.add_node_selector(place(task), "disk", "ssd"), gpu_node()),
        (lambda task: kubernetes.add_node_selector(place(task), "gpu-model", "v100"), gpu_node()),
    ],
    ids=[
        "room",
        "none",
        "cordoned",
        "not ready",
        "three taints",
        "taken",
        "network",
        "no label",
        "far",
    ],
)
def test_where_no_line_helps_there_is_none(mark, cluster, golden):
    ((_, reason),) = preview(marked(mark), cluster, **QUICK).plan.unschedulable
    assert reason.startswith("none of ")
    assert "task" not in reason
    golden(reason)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ([("pool", "In", ["gone"])], "asks for 'pool In gone'; no node has a label 'pool'"),
        (
            [("gpu-model", "In", ["a", "b"]), ("gpu-model", "Exists", [])],
            "asks for 'gpu-model In a, b'; nodes have 'gpu-model' = 'a100-80g'",
        ),
        (
            [("gpu-model", "Exists", []), ("gpu-model", "DoesNotExist", [])],
            "'gpu-model Exists', 'gpu-model DoesNotExist'; no node has all of these",
        ),
    ],
)
def test_a_node_affinity_that_no_node_fulfils_is_named(asked, named):
    terms = [{"key": key, "operator": each, "values": values} for key, each, values in asked]

    def mark(task):
        kubernetes.add_node_affinity(place(task), match_expressions=terms)

    ((_, reason),) = preview(marked(mark), gpu_node(), **QUICK).plan.unschedulable
    assert named in reason
    assert "its node affinity asks for" in reason


def test_a_node_affinity_that_a_node_fulfils_is_not_named():
    def mark(task):
        terms = [{"key": "gpu-model", "operator": "Exists"}]
        kubernetes.add_node_affinity(place(task, cpu=64), match_expressions=terms)

    ((_, reason),) = preview(marked(mark), gpu_node(), **QUICK).plan.unschedulable
    assert "node affinity asks" not in reason


def test_a_limit_that_no_node_keeps_is_told_with_the_shortest_round_trip(golden):
    trips = {"plain-1": "50ms", "plain-2": "7.5ms"}
    cluster = Cluster([CPU_ONLY], latencies={"HOME": trips})
    near = one_step(lambda task: place(task, type="Predict", location="home", max_latency="5ms"))
    ((_, reason),) = preview(near, cluster, **QUICK).plan.unschedulable
    assert not lines_in(reason)
    golden(reason)


def test_of_many_values_of_a_label_some_are_named(golden):
    nodes = [Node(f"n{i}", cpu=1, memory="1Gi", labels={"zone": f"z{i}"}) for i in range(9)]
    mark = one_step(lambda task: kubernetes.add_node_selector(place(task), "zone", "west"))
    ((_, reason),) = preview(mark, Cluster(nodes), **QUICK).plan.unschedulable
    golden(reason)


def test_a_change_after_which_a_step_fits_nowhere_is_told_with_the_line_that_helps():
    tainted = Node("gpu-2", cpu=8, memory="8Gi", gpu=1, taints=["a:NoSchedule"])
    cluster = Cluster([*gpu_node().nodes, tainted])
    answer = preview(marked(wants_gpu), cluster, **QUICK).what_if("-1 of gpu-1")
    ((_, reason),) = answer.plan.plan.unschedulable
    (line,) = lines_in(reason)
    assert line.startswith('kubernetes.add_toleration(task, key="a"')


names = st.text(min_size=1, max_size=60)


@given(names, st.text(max_size=60), st.sampled_from(["NoSchedule", "NoExecute"]))
def test_the_line_of_any_taint_is_python_that_tolerates_it(key, value, effect):
    taint = Taint(key, value, effect)
    written = []

    class Kubernetes:
        @staticmethod
        def add_toleration(task, **arguments):
            written.append(Toleration(**arguments))

    (line,) = PYTHON.tolerations([taint], has_others=False)
    exec(line, {"kubernetes": Kubernetes, "task": None})
    assert tolerates(written, taint)


def tolerates_gpus(task):
    kubernetes.add_toleration(place(task, cpu=1), key="nvidia.com/gpu", operator="Exists")


def selects_gpus(task):
    kubernetes.add_node_selector(place(task, cpu=1), "cloud.google.com/gke-accelerator", "l4")


@pytest.mark.parametrize("mark", [tolerates_gpus, selects_gpus])
def test_a_gpu_that_was_not_asked_for_is_told(mark, golden):
    (finding,) = check(marked(mark)).of("no-accelerator")
    golden(finding.message)
    line = finding.message.rpartition(": ")[2]
    assert not check(marked(mark, line)).of("no-accelerator")


@pytest.mark.parametrize(
    ("wanted", "onto"),
    [
        ("NVIDIA_TESLA_A100", "whole"),
        ("NVIDIA_TESLA_K80", "whole"),
        ("K80", "whole"),
        ("TPU_V3", None),
        ("TPU_V5_LITEPOD", "tpu"),
        ("amd-mi300", "amd"),
    ],
)
def test_the_accelerator_of_another_vendor_is_no_remedy(wanted, onto):
    """The node that lacks least, and comes first, has another one."""
    nodes = [
        Node("mig", cpu=8, memory="32Gi", extended={"nvidia.com/mig-1g.5gb": 7}),
        Node("amd", cpu=8, memory="32Gi", extended={"amd.com/gpu": 2}),
        Node("whole", cpu=8, memory="32Gi", gpu=2, taints=["nvidia.com/gpu:NoSchedule"]),
    ]
    if onto == "tpu":
        nodes.append(Node("tpu", cpu=8, memory="32Gi", extended={"google.com/tpu": 4}))

    def wants(task):
        place(task, cpu=1, duration="1m")
        task.set_accelerator_type(wanted).set_accelerator_limit(2)

    cluster = Cluster(nodes)
    ((name, reason),) = preview(marked(wants), cluster, **QUICK).plan.unschedulable
    lines = lines_in(reason) if onto else []
    assert len(lines) == {None: 0, "whole": 2}.get(onto, 1)
    if onto:
        helped = preview(marked(wants, *lines), cluster, **QUICK)
        assert helped.steps[name].node == onto
    else:
        assert "task." not in reason
        assert "nodes offer" not in reason
