"""A run and its cluster after changes."""

from dataclasses import replace

import pytest

from kfp_placement_engine import Claim, Taint
from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import ChangeError, InputError
from kfp_placement_engine.model.node_rules.constraints import (
    matches_affinity,
    matches_node_selector,
)
from kfp_placement_engine.model.run_graph import RunClaim, StepKind
from kfp_placement_engine.planning.what_if.applied_changes import named_nodes, with_changes
from kfp_placement_engine.readers.change_text import read_change
from tests.support.builders import GIBIBYTE, a_cluster, a_kfp_run, a_loop, a_node, a_step

WORK = "for-loop-1[*].work"
RUN = a_kfp_run(
    a_step("train", image="python:3.12", claims=["data"]),
    a_step("predict", location="HOME-EDGE", max_latency_ms=20.0, image="model:1"),
    *(
        replace(a_step(f"for-loop-1[{n}].work", group=f"for-loop-1[{n}]"), task=WORK)
        for n in range(2)
    ),
    replace(a_step("fetch"), kind=StepKind.IMPORTER),
    groups=a_loop("for-loop-1", width=2, parallelism=1),
    claims=(RunClaim("data", ("ReadWriteOnce",)),),
)
CLUSTER = a_cluster(
    a_node("worker-1", labels={HOST_LABEL: "worker-1", "zone": "a"}, used={"cpu": 500, "pods": 1}),
    a_node("worker-2", labels={HOST_LABEL: "worker-2", "zone": "a"}),
    a_node("gpu-node", cpu=16, extended={"nvidia.com/gpu": 1}, images={"model:1": 100}),
    a_node(
        "edge",
        taints=(Taint("edge", "true"), Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")),
        unschedulable=True,
    ),
    latencies={"HOME-EDGE": {"edge": 5.0, "worker-1": 40.0}},
    claims=(Claim("data", used_on=("worker-1",)),),
)


def changed(*texts):
    return with_changes(RUN, CLUSTER, [read_change(text) for text in texts])


def names(cluster):
    return [node.name for node in cluster.nodes]


def test_a_group_is_named_by_what_its_nodes_share():
    for name, meant in [
        ("worker", ["worker-1", "worker-2"]),
        ("worker-2", ["worker-2"]),
        ("*-node", ["gpu-node"]),
        ("*", ["worker-1", "worker-2", "gpu-node", "edge"]),
    ]:
        assert [node.name for node in named_nodes(CLUSTER, name)] == meant
    plain = a_cluster(a_node("worker"), a_node("worker-1"))
    assert [node.name for node in named_nodes(plain, "worker")] == ["worker"]


def test_new_nodes_are_empty_and_as_far_away():
    run, cluster = changed("+2 of worker")
    assert run == RUN
    assert names(cluster) == [*names(CLUSTER), "worker-3", "worker-4"]
    new = cluster.nodes[-1]
    assert new.allocatable == CLUSTER.nodes[0].allocatable
    assert changed("+1 of *")[1].nodes[-1].name == "worker-3"
    assert (new.used, new.images) == ({}, {})
    assert new.labels == {HOST_LABEL: "worker-4", "zone": "a"}
    assert cluster.latencies["HOME-EDGE"]["worker-4"] == 40.0
    assert CLUSTER.latencies == {"HOME-EDGE": {"edge": 5.0, "worker-1": 40.0}}
    assert names(changed("+1 of gpu-node", "+1 of gpu-node")[1])[-2:] == [
        "gpu-node-2",
        "gpu-node-3",
    ]


def test_a_new_node_is_in_order_where_the_one_it_is_like_is_not():
    new = changed("+1 of edge")[1].nodes[-1]
    assert new.taints == (Taint("edge", "true"),)
    assert not new.unschedulable


def test_the_last_nodes_go():
    assert names(changed("-1 of worker")[1]) == ["worker-1", "gpu-node", "edge"]
    assert names(changed("-2 of worker", "-1 of edge")[1]) == ["gpu-node"]


def test_all_nodes_of_a_name_change():
    cluster = changed("worker cpu=8 memory=1Gi", "worker-2 speed=2")[1]
    first, second, *_ = cluster.nodes
    assert first.allocatable == second.allocatable == {"cpu": 8000, "memory": GIBIBYTE, "pods": 110}
    assert (first.speed, second.speed) == (1.0, 2.0)
    assert first.used == {"cpu": 500, "pods": 1}


def test_an_image_is_held_where_it_was_not():
    cluster = changed("image docker.io/library/model:1 everywhere")[1]
    assert [dict(node.images) for node in cluster.nodes] == [{"model:1": 100}] * 4
    unknown = changed("image python:3.12 everywhere")[1]
    assert all("python:3.12" in node.images for node in unknown.nodes)


def test_steps_loops_and_volumes_change():
    run, cluster = changed(
        "loop for-loop-1 limit=off",
        "step train duration=10m",
        "step predict max-latency=30ms",
        "volume data access=ReadWriteMany",
    )
    assert cluster == CLUSTER
    assert [group.parallelism for group in run.groups] == [0, 0, 0, 0]
    assert run.step("train").duration_seconds == 600
    assert run.step("predict").max_latency_ms == 30
    assert run.claims == (RunClaim("data", ("ReadWriteMany",)),)
    assert changed("loop for-loop-1 limit=2")[0].groups[1].parallelism == 2
    assert changed("step predict max-latency=off")[0].step("predict").max_latency_ms is None
    assert changed("step work duration=1s")[0].steps[2].duration_seconds == 1
    assert changed("step f*[1].w* duration=1s")[0].steps[3].duration_seconds == 1


def test_a_loop_may_be_called_as_its_author_does():
    root, loop, *iterations = RUN.groups
    run = replace(RUN, groups=(root, replace(loop, display_name="trials"), *iterations))
    for name in ("trials", "for-loop-1"):
        changed_run, _ = with_changes(run, CLUSTER, [read_change(f"loop {name} limit=2")])
        assert changed_run.groups[1].parallelism == 2


def test_what_a_step_requests_is_changed_and_the_rest_stays():
    """By its own name, too, where no node is called so; nothing stays unknown of the amount."""
    asks = replace(RUN.step("train"), requests={"cpu": 1000}, unknown_resources=("memory", "x.y/z"))
    run = replace(RUN, steps=(asks, *RUN.steps[1:]))
    for text in ("step train cpu=4 memory=8Gi gpu=1", "train cpu=4 memory=8Gi gpu=1"):
        after, cluster = with_changes(run, CLUSTER, [read_change(text)])
        train = after.step("train")
        assert train.requests == {"cpu": 4000, "memory": 8 * GIBIBYTE, "nvidia.com/gpu": 1}
        assert train.unknown_resources == ("x.y/z",)
        assert (after.steps[1:], cluster) == (run.steps[1:], CLUSTER)
    less = with_changes(run, CLUSTER, [read_change("step train cpu=0")])[0]
    assert less.step("train").requests == {}
    # A name that both have means the node, as everywhere.
    both = replace(CLUSTER, nodes=(*CLUSTER.nodes, a_node("train")))
    assert with_changes(run, both, [read_change("train cpu=9")])[0] == run


def test_a_step_goes_to_the_nodes_that_are_named_and_nowhere_else():
    selects = replace(RUN.step("train"), node_selector={"zone": "b"})
    run = replace(RUN, steps=(selects, *RUN.steps[1:]))
    for text, allowed in [
        ("step train node=worker-2", ["worker-2"]),
        ("train node=worker", ["worker-1", "worker-2"]),
        ("step train node=*", names(CLUSTER)),
    ]:
        train = with_changes(run, CLUSTER, [read_change(text)])[0].step("train")
        assert [node.name for node in CLUSTER.nodes if selected(train, node)] == allowed
    with pytest.raises(ChangeError, match="there is no node 'w2'"):
        changed("step train node=w2")


def selected(step, node):
    return matches_affinity(step.affinity, node) and matches_node_selector(step.node_selector, node)


WRONG = (
    "+1 of wroker",
    "-3 of worker",
    "-1 of cpu-node",
    "-4 of *",
    "zzz cpu=4",
    "worker-9 cpu=4",
    "loop for-loop-2 limit=off",
    "loop while limit=off",
    "step trian duration=1m",
    "step trian max-latency=1ms",
    "step train max-latency=1ms",
    "fetch cpu=4",
    "step fetch node=worker-1",
    "step trian cpu=4",
    "trian cpu=4",
    "train cpu=4 speed=2",
    "image pyton:3.12 everywhere",
    "volume date access=ReadWriteMany",
    "volume x access=ReadWriteMany",
    "GPU-NODE cpu=4",
)


@pytest.mark.golden
@pytest.mark.parametrize("text", WRONG)
def test_what_is_not_there_is_told_with_near_names(text, golden):
    with pytest.raises(InputError) as caught:
        changed(text)
    golden(str(caught.value))


def test_a_run_without_loops_or_volumes_says_so():
    bare = a_kfp_run(a_step("train"))
    for text, message in [
        ("loop l limit=2", "there is no loop 'l'; the run has none"),
        ("volume v access=ReadWriteMany", "there is no volume 'v'; the run has none"),
        ("image i everywhere", "there is no image 'i'; the run has none"),
    ]:
        with pytest.raises(InputError, match=message):
            with_changes(bare, CLUSTER, [read_change(text)])


def test_an_outline_without_images_asks_for_the_package():
    outline = replace(a_kfp_run(a_step("train")), is_outline=True)
    with pytest.raises(InputError, match=r"the run has none; give --package"):
        with_changes(outline, CLUSTER, [read_change("image i everywhere")])


def test_changes_are_made_one_after_the_other():
    """A node that a change has added may be named by the next."""
    cluster = changed("+1 of worker", "worker-3 cpu=9")[1]
    assert cluster.nodes[-1].allocatable["cpu"] == 9000
    with pytest.raises(ChangeError):
        changed("worker-3 cpu=9", "+1 of worker")
