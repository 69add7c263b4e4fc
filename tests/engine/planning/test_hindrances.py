"""What may keep steps from running as planned: disk, platforms, volumes, limits of time."""

from dataclasses import replace

import pytest

from kfp_placement_engine.model.cluster import Claim, Taint
from kfp_placement_engine.model.pod_constraints import Toleration
from kfp_placement_engine.model.run_graph import DurationSource, EndLimit
from kfp_placement_engine.planning.hindrances.end_limits import late_by_hints
from tests.support.builders import (
    a_cluster,
    a_kfp_run,
    a_node,
    a_run,
    a_step,
    codes_of_plan,
    in_zone,
    notice_of,
    plan_of,
    sentence_of,
    unplaced,
    zones_a_and_b,
)

GIB = 2**30
DISK = "ephemeral-storage"


def labelled(name, *, windows=False, arch="amd64", **fields):
    labels = {"kubernetes.io/os": "windows" if windows else "linux", "kubernetes.io/arch": arch}
    return a_node(name, labels=labels, **fields)


WINDOWS = labelled("win", windows=True, cpu=16)
SELECTED = {"kubernetes.io/os": "windows"}


def nodes_of(plan):
    return {step.node for step in plan.steps}


def test_disk_that_no_node_states_is_not_counted():
    run = a_run(a_step("s", extended={DISK: 5 * GIB}))
    plan = plan_of(run, a_cluster(a_node("n1")))
    assert unplaced(plan) == []
    assert notice_of(plan, "disk-not-counted").message.startswith(f"no node states {DISK}")
    assert DISK not in plan.figures.use


def test_disk_that_is_stated_counts_even_if_it_is_none():
    run = a_run(a_step("s", extended={DISK: 5 * GIB}))
    cluster = a_cluster(a_node("n1", extended={DISK: GIB}), a_node("n2", extended={DISK: 0}))
    assert unplaced(plan_of(run, cluster)) == ["s"]
    plan = plan_of(run, a_cluster(*cluster.nodes, a_node("n3")))
    assert nodes_of(plan) == {"n3"}
    assert notice_of(plan, "disk-not-counted").message.startswith("n3 states no")


def test_steps_of_kfp_never_go_to_windows_and_neither_do_its_drivers():
    run = a_kfp_run(*(a_step(f"s{number}", has_driver=True) for number in range(6)))
    plan = plan_of(run, a_cluster(labelled("linux"), WINDOWS))
    assert nodes_of(plan) == {"linux"}
    assert {driver.node for driver in plan.drivers} == {"linux"}
    assert "win runs Windows" in notice_of(plan, "mixed-nodes").message
    selecting = a_kfp_run(a_step("s", node_selector=SELECTED))
    plan = plan_of(selecting, a_cluster(labelled("linux"), WINDOWS))
    assert "1 node: runs Windows" in sentence_of(plan, "s")


def test_a_plain_step_goes_to_windows_only_if_it_selects_it():
    run = a_run(a_step("any"), a_step("chosen", node_selector=SELECTED))
    plan = plan_of(run, a_cluster(labelled("linux", cpu=1), WINDOWS))
    assert plan.step("any").node == "linux"
    assert plan.step("chosen").node == "win"
    message = notice_of(plan, "mixed-nodes").message
    assert "keep steps that do not select Windows off it" in message


def test_a_tainted_windows_node_is_no_surprise():
    tainted = replace(WINDOWS, taints=(Taint("os", "windows"),))
    run, cluster = a_run(a_step("s")), a_cluster(labelled("linux"), tainted)
    assert codes_of_plan(plan_of(run, cluster)) == []
    tolerant = a_run(a_step("s", tolerations=(Toleration(operator="Exists"),)))
    assert codes_of_plan(plan_of(tolerant, cluster)) == ["mixed-nodes"]


def test_nodes_of_two_architectures_are_named_with_the_selector():
    cluster = a_cluster(labelled("x"), labelled("arm", arch="arm64"))
    message = notice_of(plan_of(a_run(a_step("s")), cluster), "mixed-nodes").message
    assert "arm, which is arm64 where others are amd64" in message
    assert "kubernetes.io/arch: amd64 in its nodeSelector" in message
    selecting = a_run(a_step("s", node_selector={"kubernetes.io/arch": "amd64"}))
    assert codes_of_plan(plan_of(selecting, cluster)) == []
    assert codes_of_plan(plan_of(a_run(a_step("s")), a_cluster(cluster.nodes[1]))) == []


def test_volumes_of_two_zones_are_named():
    cluster = a_cluster(
        *zones_a_and_b(),
        claims=(Claim("one", required_terms=(in_zone("a"),)), Claim("two", used_on=("n2",))),
    )
    plan = plan_of(a_run(a_step("s", claims=["one", "two"])), cluster)
    assert sentence_of(plan, "s").endswith(
        "one can be reached from n1 only, two from n2 only; no node reaches both"
    )
    assert "(two, on n2 only)" in sentence_of(plan, "s")


def test_a_claim_that_no_pod_can_mount_fits_no_node():
    lost = Claim("lost", problem='persistentvolumeclaim "lost" is being deleted')
    plan = plan_of(a_run(a_step("s", claims=["lost"])), a_cluster(claims=(lost,)))
    assert sentence_of(plan, "s").endswith(
        '(1 node: persistentvolumeclaim "lost" is being deleted)'
    )


def limited(name="s", seconds=60.0, *after, limit=None, **fields):
    end_limit = None if limit is None else EndLimit(limit, "activeDeadlineSeconds")
    fields.setdefault("duration_source", DurationSource.HINT)
    return a_step(name, *after, seconds=seconds, end_limit=end_limit, **fields)


def test_the_speed_of_the_node_and_the_pull_count_for_the_limit():
    run = a_run(limited(limit=100, image="a:1", image_bytes=10 * GIB))
    fast, slow = a_cluster(a_node(speed=2.0)), a_cluster(a_node(speed=0.5))
    pulled = a_cluster(a_node(images={"a:1": 10 * GIB}))
    assert codes_of_plan(plan_of(run, pulled)) == []
    assert "takes 2m" in notice_of(plan_of(a_run(limited(limit=100)), slow), "end-limit").message
    message = notice_of(plan_of(run, fast), "end-limit").message
    assert "pulls for" in message
    assert "is killed after 1m40s (activeDeadlineSeconds)" in message


def test_a_limit_below_an_assumed_run_time_is_said_as_such():
    step = limited(limit=5, duration_source=DurationSource.ASSUMED)
    run = a_run(step, end_limit=EndLimit(50, "activeDeadlineSeconds"))
    texts = [each.message for each in plan_of(run).notices if each.code == "end-limit"]
    assert "takes 1m on n1, by an assumed run time, and is killed after 5s" in texts[0]
    assert "the run takes 1m, by assumed run times, and is stopped after 50s" in texts[1]
    assert list(late_by_hints(run)) == []


def test_the_limit_of_the_run_counts_all_but_exit_tasks():
    steps = (limited("a"), limited("b", 60.0, "a"), limited("out", 600.0, "b", exit_task=True))
    run = a_run(*steps, end_limit=EndLimit(100, "activeDeadlineSeconds"))
    for notices in (plan_of(run).notices, tuple(late_by_hints(run))):
        (message,) = (each.message for each in notices if each.code == "end-limit")
        assert message.startswith("the run takes 2m")
    enough = replace(run, end_limit=EndLimit(200, "activeDeadlineSeconds"))
    assert list(late_by_hints(enough)) == []
    assert codes_of_plan(plan_of(enough)) == []


@pytest.mark.parametrize("seconds", [59, 60])
def test_a_step_may_take_all_of_its_time(seconds):
    late = [notice.step for notice in late_by_hints(a_run(limited(limit=seconds)))]
    assert late == (["s"] if seconds < 60 else [])
