"""ReadWriteOnce volumes: who shares a node, what pins it, what happens when nothing fits."""

import pytest

from kfp_placement_engine import BASELINES, Claim, MaxGenerations, lower_bound, plan_run, solve
from kfp_placement_engine.model.run_graph import RunClaim, StepKind
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from tests.support.builders import (
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    codes_of_plan,
    equal_steps,
    in_zone,
    nodes,
    notice_of,
    plan_of,
    sentence_of,
    unplaced,
    zones_a_and_b,
)

RWO = ("ReadWriteOnce",)
OF_ONE_POD = (RunClaim("disk", ("ReadWriteOncePod",)),)
OF_UNKNOWN_MODE = (RunClaim("disk"),)


def nodes_of(plan):
    return {step.name: step.node for step in plan.steps}


@pytest.mark.parametrize("mode", [RWO, ("ReadWriteOncePod",)])
def test_sharers_run_on_one_node_though_it_takes_longer(dispatch, mode):
    """Four parallel steps of a node's size, two nodes: one after the other."""
    steps = equal_steps(4, cpu=4, claims=["disk"])
    run = a_run(*steps, claims=(RunClaim("disk", mode),))
    plan = plan_of(run, cluster_of(2), dispatch=dispatch)
    assert len(set(nodes_of(plan).values())) == 1
    assert plan.figures.makespan_seconds == 40
    assert codes_of_plan(plan) == (["one-pod-volume"] if "ReadWriteOncePod" in mode else [])
    for step in plan.steps:
        assert step.explanation.sentence.startswith("shares volume disk with s")
        assert step.explanation.sentence.endswith(" and 2 more")


@pytest.mark.parametrize(("way", "waits"), [("kube-default", 0), ("heft", 0), ("fifo", 20)])
def test_a_claim_of_one_pod_is_used_by_one_pod_at_a_time(dispatch, way, waits):
    """Three users of 10 s take turns though there is room for all; behind them fifo alone waits."""
    steps = equal_steps(3, claims=["disk"])
    run = a_run(*steps, a_step("free"), claims=OF_ONE_POD)
    problem = a_problem(run, cluster_of(2), dispatch=dispatch)
    schedule = BASELINES[way](problem, 0)
    assert sorted(schedule.start[:3].tolist()) == [0, 10, 20]
    assert schedule.start[3] == waits
    bound = lower_bound(problem)
    assert bound.kind == "area"
    assert bound.seconds == pytest.approx(30)


def test_a_pod_that_waited_for_a_claim_may_go_where_nothing_ended(dispatch):
    """`second` fits on n2 alone, where nothing happens when `first` gives the claim back on n1."""
    run = a_run(
        a_step("first", node_selector={"name": "n1"}, claims=["disk"]),
        a_step("second", node_selector={"name": "n2"}, claims=["disk"]),
        claims=OF_ONE_POD,
    )
    members = [a_node(name, labels={"name": name}) for name in ("n1", "n2")]
    problem = a_problem(run, a_cluster(*members), dispatch=dispatch)
    assert kube_default(problem, 0).start.tolist() == [0, 10]
    assert solve(problem, MaxGenerations(2)).schedule.makespan_seconds == 20


def test_a_figure_says_whether_volumes_move():
    """kube-default spreads two users, one after the other; the plan keeps them together."""
    run = a_run(
        a_step("first", claims=["disk"]),
        a_step("wide", "first", cpu=4),
        a_step("second", "first", cpu=4, claims=["disk"]),
    )
    plan = plan_of(run, cluster_of(2), compare=("kube-default", "heft"))
    assert nodes_of(plan)["first"] == nodes_of(plan)["second"]
    assert not plan.figures.moves_volumes
    assert not plan.comparison.baselines["heft"].moves_volumes
    assert plan.comparison.baselines["kube-default"].moves_volumes


def test_sharers_of_sharers_run_there_too():
    """a-b by one volume, b-c by another; d has its own."""
    run = a_run(
        a_step("a", claims=["disk"]),
        a_step("b", claims=["disk", "shelf"]),
        a_step("c", claims=["shelf"]),
        a_step("d", claims=["drawer"], cpu=4),
    )
    plan = plan_run(run, cluster_of(2))
    step_nodes = nodes_of(plan)
    assert step_nodes["a"] == step_nodes["b"] == step_nodes["c"] != step_nodes["d"]
    assert sentence_of(plan, "a") == "shares volume disk with b"
    assert sentence_of(plan, "c") == "shares volume shelf with b"
    assert sentence_of(plan, "d")[:12] != "shares volum"


@pytest.mark.parametrize("mode", ["ReadWriteMany", "ReadOnlyMany"])
def test_shared_modes_do_not_bind(mode):
    """Written at the claim, or known from the cluster; also beside ReadWriteOnce."""
    steps = equal_steps(2, cpu=4, claims=["disk"])
    for modes, claim_modes in (((mode,), ()), ((*RWO, mode), ()), ((), (mode,))):
        cluster = a_cluster(*nodes(2), claims=(Claim("disk", access_modes=claim_modes),))
        plan = plan_run(a_run(*steps, claims=(RunClaim("disk", modes),)), cluster)
        assert plan.figures.makespan_seconds == 10
        assert len(set(nodes_of(plan).values())) == 2
        assert codes_of_plan(plan) == []


def test_a_claim_that_the_cluster_does_not_have_is_told():
    """Only where the cluster lists claims, and the run neither makes it nor names it later."""
    step, other = a_step("work", claims=["disk.v1"]), (Claim("data"),)
    run = a_run(step, claims=(RunClaim("disk.v1"),))
    plan = plan_run(run, a_cluster(claims=other))
    assert codes_of_plan(plan) == ["missing-claim"]
    assert "no volume claim 'disk.v1' in the cluster (it has data)" in str(plan.notices[0])
    for claims in ((), (*other, Claim("disk.v1"))):
        assert codes_of_plan(plan_run(run, a_cluster(claims=claims))) == []
    named_later = a_step("work", claims=["parameter name"])
    run = a_run(named_later, claims=(RunClaim("parameter name"),))
    assert codes_of_plan(plan_run(run, a_cluster(claims=other))) == []


def test_an_unknown_mode_binds_and_is_told():
    """Once, and only where somebody shares."""
    steps = equal_steps(2, cpu=4, claims=["disk"])
    plan = plan_run(a_run(*steps, claims=OF_UNKNOWN_MODE), cluster_of(2))
    assert codes_of_plan(plan) == ["unknown-access-mode"]
    assert len(set(nodes_of(plan).values())) == 1
    alone = plan_run(a_run(steps[0], claims=OF_UNKNOWN_MODE), a_cluster())
    assert codes_of_plan(alone) == []


def test_the_workspace_and_a_created_claim_bind():
    """The workspace by name; a claim made in the run by the step that makes it."""
    run = a_run(
        a_step("make", kind=StepKind.CREATE_PVC, seconds=1),
        a_step("a", "make", cpu=4, claims=["made", "kfp-workspace"]),
        a_step("b", "make", cpu=4, claims=["made"]),
        a_step("c", cpu=4, claims=["kfp-workspace"]),
        claims=(
            RunClaim("made", RWO, created_by="make"),
            RunClaim("kfp-workspace", RWO, is_workspace=True),
        ),
    )
    # A claim of the same name that exists in the cluster is another one.
    elsewhere = Claim("made", access_modes=("ReadWriteMany",), used_on=("n2",))
    plan = plan_run(run, a_cluster(*nodes(2), claims=(elsewhere,)))
    assert len({plan.step(name).node for name in "abc"}) == 1
    assert sentence_of(plan, "c") == "shares volume kfp-workspace with a"


def test_what_no_node_can_take_together_is_split_with_a_notice(dispatch):
    """One needs the device of n1, the other the memory of n2."""
    cluster = a_cluster(
        a_node("n1", memory=8, extended={"example.com/gpu": 1}), a_node("n2", memory=64)
    )
    run = a_run(
        a_step("device", extended={"example.com/gpu": 1}, claims=["disk"], seconds=20),
        a_step("memory", memory=32, claims=["disk"], seconds=30),
    )
    plan = plan_of(run, cluster, dispatch=dispatch)
    assert nodes_of(plan) == {"device": "n1", "memory": "n2"}
    assert codes_of_plan(plan) == ["volume-split"]
    message = notice_of(plan, "volume-split").message
    assert "disk" in message
    assert "device, memory" in message
    # The volume is at one node at a time: the second waits, holding its room.
    assert plan.figures.makespan_seconds == 50
    assert plan.figures.makespan_seconds >= plan.comparison.lower_bound.seconds


def test_a_bound_volume_s_node_affinity_pins_its_users(golden):
    """All of them, in the baseline too."""
    zone = in_zone("b")
    members = zones_a_and_b(cpu=64)
    cluster = a_cluster(*members, claims=(Claim("disk", "", RWO, required_terms=(zone,)),))
    run = a_run(a_step("a", claims=["disk"]), a_step("b", claims=["disk"]))
    plan = plan_run(run, cluster)
    assert nodes_of(plan) == {"a": "n2", "b": "n2"}
    golden(sentence_of(plan, "a"))
    problem = a_problem(run, cluster)
    assert kube_default(problem, 0).node.tolist() == [1, 1]


def test_node_affinity_pins_users_of_a_shared_volume_too():
    """ReadWriteMany may move, but only within its zone."""
    zone = in_zone("b")
    members = (a_node("n1", cpu=64, labels={"zone": "a"}), *nodes_in_b())
    cluster = a_cluster(
        *members, claims=(Claim("disk", "", ("ReadWriteMany",), required_terms=(zone,)),)
    )
    run = a_run(*equal_steps(2, cpu=4, claims=["disk"]), claims=OF_UNKNOWN_MODE)
    assert set(nodes_of(plan_run(run, cluster)).values()) == {"b1", "b2"}


def nodes_in_b():
    return (a_node("b1", labels={"zone": "b"}), a_node("b2", labels={"zone": "b"}))


def test_running_users_pin_a_binding_volume():
    """Not one that may be mounted on many nodes."""
    run = a_run(a_step("a", claims=["disk"]), claims=OF_UNKNOWN_MODE)
    members = (a_node("n1", speed=9.0), a_node("n2"))
    for modes, node in ((RWO, "n2"), ((), "n2"), (("ReadWriteMany",), "n1")):
        claim = Claim("disk", access_modes=modes, used_on=("n2",))
        assert nodes_of(plan_run(run, a_cluster(*members, claims=(claim,)))) == {"a": node}


def test_running_users_on_two_nodes_leave_no_node(golden):
    """A ReadWriteOnce volume in use on a node outside the volume's affinity cannot be."""
    zone = in_zone("a")
    claim = Claim("disk", "", RWO, required_terms=(zone,), used_on=("n2",))
    members = zones_a_and_b()
    run = a_run(a_step("a", claims=["disk"]))
    plan = plan_run(run, a_cluster(*members, claims=(claim,)))
    ((name, reason),) = plan.unschedulable
    assert name == "a"
    golden(reason)


def test_a_claim_of_another_namespace_is_another_claim():
    """Where the run's namespace is known."""
    pinned = Claim("disk", "theirs", RWO, used_on=("n2",))
    members = (a_node("n1", speed=2.0), a_node("n2"))
    step = a_step("a", claims=["disk"])
    cluster = a_cluster(*members, claims=(pinned,))
    ours = a_run(step, namespace="ours")
    theirs = a_run(step, namespace="theirs")
    unknown = a_run(step)
    assert nodes_of(plan_run(ours, cluster)) == {"a": "n1"}
    assert nodes_of(plan_run(theirs, cluster)) == {"a": "n2"}
    assert nodes_of(plan_run(unknown, cluster)) == {"a": "n2"}


def test_unmarked_users_of_a_volume_go_where_the_default_scheduler_puts_them(golden):
    """With marked-only planning; one user waits for the other, as the times say."""
    run = a_run(
        a_step("marked", cpu=3, claims=["disk"], scheduler="kfp-placement"),
        a_step("other", cpu=3, claims=["disk"]),
    )
    plan = plan_of(run, cluster_of(2), marked_only=True, dispatch="ordered")
    assert plan.figures.makespan_seconds == 20
    golden(sentence_of(plan, "other"))


def test_a_group_that_no_node_has_room_for_is_unschedulable_step_by_step():
    """One too large for any node does not take the others with it."""
    run = a_run(
        a_step("small", claims=["disk"]),
        a_step("huge", cpu=99, claims=["disk"]),
        a_step("other", claims=["disk"]),
    )
    plan = plan_run(run, cluster_of(2))
    assert unplaced(plan) == ["huge"]
    assert plan.step("small").node == plan.step("other").node
    assert sentence_of(plan, "small") == "shares volume disk with other"
