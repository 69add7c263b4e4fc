"""The critical path goes from a run's submission to its end without a gap, and says why."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import (
    ActiveRun,
    LoweringOptions,
    Placement,
    ReservedRoom,
    ReservedRun,
    StepProgress,
    plan_runs,
    simulate,
)
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.planning.critical_path import critical_path
from kfp_placement_engine.planning.plan_parts import figures_of
from kfp_placement_engine.plans.limits import PieceKind
from tests.engine.planning.begun_runs import DONE, OVERRUN, RUNNING, begun_cases
from tests.engine.planning.limited_plans import WITH_LIMITS, limited_plan
from tests.engine.planning.random_runs import DISPATCHES, cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_loop,
    a_run,
    a_step,
    a_workflow,
    equal_steps,
    zones_a_and_b,
)


def assert_whole(plan):
    """The pieces touch, and last from the submission of the run to its end."""
    if plan.figures.unplaced:
        assert plan.limits.critical_path == ()
        return
    assert all(piece.seconds > 0 for piece in plan.limits.critical_path)
    ends = [
        plan.run.release_seconds,
        *(piece.finish_seconds for piece in plan.limits.critical_path),
    ]
    assert [piece.start_seconds for piece in plan.limits.critical_path] == ends[:-1]
    end = plan.figures.makespan_seconds
    assert ends[-1] == end
    total = sum(piece.seconds for piece in plan.limits.critical_path)
    assert total == pytest.approx(end - plan.run.release_seconds, abs=1e-6)


def assert_steps_agree(plan):
    """Work lies within its step's times, on its node; only `ordered` plans hold steps back."""
    for piece in plan.limits.critical_path:
        assert piece.kind is not PieceKind.HELD_BACK or plan.search.dispatch == "ordered"
        assert piece.kind is not PieceKind.NODE_FULL or piece.cause
        if piece.kind in (PieceKind.RUNNING, PieceKind.IMAGE):
            step = plan.step(piece.step)
            assert step.start_seconds <= piece.start_seconds
            assert piece.finish_seconds <= step.finish_seconds
            assert piece.node == step.node


def pieces(plan):
    """Kind, step, seconds and cause of every piece of the critical path."""
    path = plan.limits.critical_path
    return [(str(each.kind), each.step, each.seconds, each.cause) for each in path]


def nodes_of(plan):
    return [piece.node for piece in plan.limits.critical_path]


@settings(max_examples=150)
@given(case=cases(), dispatch=DISPATCHES, marked_only=st.booleans(), quick=st.booleans())
def test_the_pieces_of_any_run_touch_and_last_as_long_as_the_run(
    case, dispatch, marked_only, quick
):
    """Loops, volumes, data from node to node, steps from the cache and steps of others included."""
    plan = limited_plan(
        case.run,
        case.cluster,
        dispatch=dispatch,
        quick=quick,
        marked_only=marked_only,
        generations=3,
    )
    assert_whole(plan)
    assert_steps_agree(plan)


@settings(max_examples=100)
@given(
    begun=begun_cases(),
    # A run that has begun was submitted before.
    release=st.sampled_from([-40.0, -0.5, 0.0]),
    dispatch=DISPATCHES,
)
def test_runs_that_have_begun_have_a_past(begun, release, dispatch):
    """Of what came before the moment of planning only running pods are known."""
    case, run = begun
    options = replace(WITH_LIMITS, dispatch=dispatch, assumptions=OVERRUN)
    run = replace(run, release_seconds=release)
    plan = plan_runs((run,), case.cluster, options).plans[run.key]
    if plan.limits.critical_path:
        assert_whole(plan)
    else:
        assert plan.figures.unplaced or plan.figures.makespan_seconds <= max(0.0, release)


@settings(max_examples=60)
@given(first=cases(), second=cases(), release=st.sampled_from([0.0, 3.0]), room=st.booleans())
def test_every_one_of_several_runs_has_its_own_path(first, second, release, room):
    """Beside each other, and beside room that is reserved."""
    second_run = replace(second.run, direct_transfers=first.run.direct_transfers)
    runs = (ActiveRun("one", first.run), ActiveRun("two", second_run, release_seconds=release))
    node = first.cluster.nodes[0].name
    reserved = ReservedRun("other", (ReservedRoom(node, 0.0, 9.0, {"cpu": 2000}),))
    plans = plan_runs(runs, first.cluster, WITH_LIMITS, reserved=[reserved] * room).plans
    for plan in plans.values():
        if plan.limits.critical_path or plan.figures.makespan_seconds > plan.run.release_seconds:
            assert_whole(plan)


def test_a_step_pulls_downloads_runs_and_uploads():
    """Work of a step that has its node to itself; its outputs count as data."""
    run = a_kfp_run(
        a_step("load", seconds=8, image="tool:1", reads=[("", 200)], output_bytes={"data": 100})
    )
    assert pieces(limited_plan(run)) == [
        ("driver", "root", 1.0, ""),
        ("driver", "load", 1.0, ""),
        ("image", "load", 2.0, "tool:1"),
        ("data", "load", 2.0, ""),
        ("running", "load", 8.0, ""),
        ("data", "load", 1.0, ""),
    ]


def test_a_step_waits_for_the_image_that_another_pulls():
    """The second on the node waits for the rest of the pull only; nobody pulls for the third."""
    run = a_run(
        a_step("first", image="tool:1", seconds=1), a_step("soon", image="tool:1", seconds=30)
    )
    assert pieces(limited_plan(run)) == [
        ("image", "soon", 2.0, "tool:1"),
        ("running", "soon", 30.0, ""),
    ]


def test_data_come_from_another_node(dispatch):
    """With direct transfers the last input to arrive decides; the producer's work comes before."""
    run = a_workflow(
        a_step("make", seconds=4, node_selector={"zone": "a"}),
        a_step("use", "make", seconds=2, node_selector={"zone": "b"}, reads=[("make", 300)]),
    )
    plan = limited_plan(run, a_cluster(*zones_a_and_b()), dispatch=dispatch)
    assert pieces(plan) == [
        ("running", "make", 4.0, ""),
        ("data", "use", 3.0, ""),
        ("running", "use", 2.0, ""),
    ]
    assert nodes_of(plan) == ["n1", "n2", "n2"]


def test_a_step_waits_for_room_on_its_node():
    """The cause is the step whose end makes room, not one that ends before."""
    run = a_run(
        a_step("brief", cpu=2, seconds=3),
        a_step("long", cpu=2, seconds=5),
        a_step("wide", cpu=3, seconds=4),
    )
    plan = limited_plan(run, quick=False, generations=1)
    assert pieces(plan) == [("node-full", "wide", 5.0, "long"), ("running", "wide", 4.0, "")]


def test_room_may_be_taken_by_another_run():
    """Its steps are told with its key; of a run that keeps its plan the key alone is known."""
    busy = ActiveRun("team/busy", a_run(a_step("long", cpu=3, seconds=5)), weight=1000.0)
    late = ActiveRun("team/late", a_run(a_step("next", cpu=3, seconds=4)))
    plans = plan_runs((busy, late), a_cluster(), WITH_LIMITS).plans
    assert pieces(plans["team/late"])[0] == ("node-full", "next", 5.0, "team/busy/long")
    room = ReservedRun("team/kept", (ReservedRoom("n1", 0.0, 6.0, {"cpu": 3000}),))
    plans = plan_runs((late,), a_cluster(), WITH_LIMITS, reserved=(room,)).plans
    assert pieces(plans["team/late"])[0] == ("node-full", "next", 6.0, "team/kept")


def test_the_plan_may_hold_a_step_back():
    """Under `ordered` the room is kept for another step although there is some."""
    run = a_run(
        a_step("start", seconds=2),
        a_step("urgent", "start", cpu=4, seconds=6),
        a_step("filler", cpu=3, seconds=9),
    )
    alone = LoweringOptions(dispatch="ordered", assumptions=ROUND_NUMBERS)
    lowered = lower_runs((ActiveRun("", run),), a_cluster(), alone)
    order = Placement(
        gene_nodes=lowered.problem.arrays.gene * 0,
        priority=lowered.problem.arrays.duration_seconds * 0 + [0.0, 1.0, 2.0],
        not_before=lowered.problem.arrays.duration_seconds[:0],
    )
    schedule = simulate(lowered.problem, order)
    path = critical_path(0, lowered, schedule)
    assert [(each.kind, each.step, each.seconds, each.cause) for each in path] == [
        (PieceKind.HELD_BACK, "filler", 2.0, "urgent"),
        (PieceKind.NODE_FULL, "filler", 6.0, "urgent"),
        (PieceKind.RUNNING, "filler", 9.0, ""),
    ]
    assert figures_of(lowered.problem, schedule).makespan_seconds == 17.0


def test_a_loop_at_its_limit_holds_iterations_back():
    """Two of three at a time: the last iteration waits for the end of the shorter one."""
    loop = a_loop("each", 3, parallelism=2)
    run = a_kfp_run(
        *(
            a_step(f"each[{index}].work", seconds=seconds, group=f"each[{index}]")
            for index, seconds in enumerate((9, 5, 9))
        ),
        groups=loop,
    )
    assert pieces(limited_plan(run)) == [
        ("driver", "root", 1.0, ""),
        ("driver", "each", 1.0, ""),
        ("loop-limit", "each[2]", 7.0, "each"),
        ("driver", "each[2]", 1.0, ""),
        ("driver", "each[2].work", 1.0, ""),
        ("running", "each[2].work", 9.0, ""),
    ]


def test_a_volume_that_one_pod_may_have_is_awaited():
    """ReadWriteOncePod: the second user waits although its node has room."""
    run = a_run(
        a_step("first", seconds=5, claims=["disk"]),
        a_step("second", seconds=4, claims=["disk"]),
        claims=(RunClaim("disk", ("ReadWriteOncePod",)),),
    )
    assert pieces(limited_plan(run)) == [
        ("volume", "second", 5.0, "disk"),
        ("running", "second", 4.0, ""),
    ]


def test_a_volume_that_is_attached_elsewhere_is_awaited_on_the_node():
    """Users that no node can take together: the second is bound, and waits for the volume."""
    run = a_run(
        a_step("first", seconds=5, claims=["disk"], node_selector={"zone": "a"}),
        a_step("second", seconds=4, claims=["disk"], node_selector={"zone": "b"}),
    )
    plan = limited_plan(run, a_cluster(*zones_a_and_b()))
    assert pieces(plan) == [("volume", "second", 5.0, "disk"), ("running", "second", 4.0, "")]
    assert set(nodes_of(plan)) == {"n2"}


def test_what_came_before_the_moment_of_planning_is_past():
    """A pod that runs is known from its bind on."""
    run = ActiveRun(
        "run",
        a_run(a_step("gone"), a_step("now", "gone", seconds=10), a_step("next", "now", seconds=2)),
        release_seconds=-30.0,
        progress={
            "gone": StepProgress(DONE, "n1"),
            "now": StepProgress(RUNNING, "n1", seconds_since_start=4.0),
        },
    )
    assert pieces(plan_runs((run,), a_cluster(), WITH_LIMITS).plans["run"]) == [
        ("past", "", 26.0, ""),
        ("running", "now", 10.0, ""),
        ("running", "next", 2.0, ""),
    ]


def test_nobody_asked_and_nothing_ends():
    """No path without the option, nor where a step fits no node."""
    assert pieces(limited_plan(a_run(a_step("one")), limits=False)) == []
    assert pieces(limited_plan(a_run(a_step("huge", cpu=99)))) == []


def test_long_chains_of_waits_take_no_long_time():
    """2,000 steps that take turns on one node: every one of them waits."""
    plan = limited_plan(a_run(*equal_steps(2_000, cpu=4, seconds=1)))
    assert_whole(plan)
    assert [piece.kind for piece in plan.limits.critical_path] == [
        PieceKind.NODE_FULL,
        PieceKind.RUNNING,
    ]
