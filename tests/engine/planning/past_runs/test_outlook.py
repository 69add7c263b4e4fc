"""What is promised of runs, before and while they run."""

from dataclasses import astuple, replace
from datetime import UTC, datetime

import pytest

from kfp_placement_engine import (
    ActiveRun,
    PlanOptions,
    ProgressState,
    RunGraph,
    Step,
    StepProgress,
    plan_runs,
)
from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth, PastRun, PastStep
from kfp_placement_engine.model.promise import Promise, TimeRange
from kfp_placement_engine.model.run_graph import DurationSource, Group, GroupKind
from kfp_placement_engine.planning.past_runs.learned_times import with_history
from kfp_placement_engine.planning.past_runs.learned_widths import left_out_notices
from kfp_placement_engine.planning.past_runs.outlook import outlook_of, promise_of
from tests.support.builders import a_chain, a_cluster, a_node, a_run

CLUSTER = a_cluster(a_node(cpu=8, memory=16))
OPTIONS = PlanOptions(compare=(), quick=True)

CHAIN = a_run(*a_chain(*[None] * 4, cpu=0), name="chain")
"""Four steps, one after another."""

DONE = StepProgress(ProgressState.DONE, "n1")


def a_past(graph=CHAIN, runs=6, end=440.0, planned=400.0, without=()):
    """Runs of steps that take 100 s each, which end a bit later than planned."""
    past = Past()
    for run in range(runs):
        steps = tuple(
            PastStep(step_identity(graph.name, step), 100.0)
            for step in graph.steps
            if step.name not in without
        )
        at = datetime.fromtimestamp(run, UTC)
        past.observe(PastRun(str(run), graph.name, at, steps, end, planned))
    return past


def planned(learned, progress=None, now=0.0, cluster=CLUSTER):
    """The plan of a run that began so long ago."""
    run = ActiveRun("run", learned.graph, -now, progress=progress or {})
    return plan_runs([run], cluster, OPTIONS).plans["run"]


def promised(learned, progress=None, now=0.0, first=None, cluster=CLUSTER):
    """The promise of the run, in seconds from now."""
    outlook = outlook_of(planned(learned, progress, now, cluster))
    return promise_of(outlook, learned.graph, learned.forecast, first)


def unknown(learned, progress=None, **others):
    promise = promised(learned, progress, **others)
    assert promise.ends is None
    assert promise.steps == {}
    return promise.unknown


def test_a_promise_is_the_plan_as_past_runs_have_followed_theirs():
    learned = with_history(CHAIN, a_past())
    promise = promised(learned)
    assert promise.planned_seconds == pytest.approx(400)
    expected = learned.forecast.ends.predict(promise.planned_seconds)
    assert astuple(promise.ends) == pytest.approx(astuple(expected))
    assert promise.ends.typical_seconds == pytest.approx(440)
    starts = [promise.steps[f"s{each}"].starts.typical_seconds for each in range(4)]
    assert starts == pytest.approx([0, 110, 220, 330])
    assert promise.steps["s3"].ends == promise.ends
    for step in promise.steps.values():
        assert step.starts.low_seconds <= step.ends.low_seconds
        assert step.ends.high_seconds <= promise.ends.high_seconds


def test_what_is_near_is_known_better():
    promise = promised(with_history(CHAIN, a_past()))
    near, far = (promise.steps[each].ends for each in ("s0", "s3"))
    widths = [each.high_seconds - each.low_seconds for each in (near, far)]
    assert widths[0] == pytest.approx(widths[1] / 2)


def test_the_confidence_that_was_asked_for_is_that_of_all_ranges():
    ends = [promised(with_history(CHAIN, a_past(), each)) for each in (0.5, 0.9)]
    assert [each.confidence for each in ends] == [0.5, 0.9]
    assert ends[0].ends.high_seconds < ends[1].ends.high_seconds


def end_half_way(end, now):
    """What is promised when two of four steps are done, of runs that end then; and at first."""
    learned = with_history(CHAIN, a_past(end=end))
    first = promised(learned).ends
    of_then = Promise(ends=first.later(-now), planned_seconds=400.0 - now)
    done = {"s0": DONE, "s1": DONE}
    return promised(learned, done, now, of_then).ends.later(now), first


@pytest.mark.parametrize("now", [150.0, 220.0, 600.0])
def test_where_runs_go_nearly_as_planned_the_rest_takes_that_much_longer(now):
    end, first = end_half_way(420.0, now)
    assert end.typical_seconds == pytest.approx(now + 1.05 * 200)
    assert end.high_seconds - end.low_seconds < first.high_seconds - first.low_seconds


@pytest.mark.parametrize(
    ("end", "now", "typical_seconds"),
    [
        (600.0, 300.0, 600.0),
        # Steps were quick: the rest may still wait, as runs do, but no longer than that.
        (600.0, 150.0, 600.0),
        (600.0, 100.0, 100.0 + 1.5**2 * 200),
        # All of it is late: no earlier than the plan of now.
        (600.0, 600.0, 800.0),
        # Runs take half as long as planned: the rest takes all of its time at most, or half.
        (200.0, 100.0, 200.0),
        (200.0, 150.0, 150.0 + 0.5 * 200),
        (200.0, 0.0, 200.0),
    ],
)
def test_else_the_first_end_holds_as_long_as_the_plan_of_what_is_left_allows_it(
    end, now, typical_seconds
):
    run_end, first = end_half_way(end, now)
    assert run_end.typical_seconds == pytest.approx(typical_seconds)
    assert run_end.high_seconds - run_end.low_seconds <= first.high_seconds - first.low_seconds


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_between_the_two_a_promise_is_a_mean_of_both(share):
    ratio = 1.1 ** (1 + share)
    end, _ = end_half_way(ratio * 400.0, 600.0)
    usual, held = 600 + ratio * 200, 800
    assert end.typical_seconds == pytest.approx(usual + share * (held - usual), rel=1e-4)


def test_what_has_happened_is_no_range():
    learned = with_history(CHAIN, a_past())
    running = {"s0": StepProgress(ProgressState.RUNNING, "n1", 30.0)}
    promise = promised(learned, running, 30.0)
    assert promise.steps["s0"].starts == TimeRange(-30.0, -30.0, -30.0)
    assert "s0" not in promised(learned, {"s0": DONE}, 110.0).steps
    everything = {step.name: DONE for step in CHAIN.steps}
    assert unknown(learned, everything, now=440.0) == "the run has ended"


def test_a_run_that_will_begin_ends_as_long_after_that():
    learned = with_history(CHAIN, a_past())
    plan = plan_runs([ActiveRun("run", learned.graph, 1000.0)], CLUSTER, OPTIONS).plans["run"]
    promise = promise_of(outlook_of(plan), learned.graph, learned.forecast)
    later = promised(learned).ends.later(1000.0)
    assert promise.ends is not None
    assert astuple(promise.ends) == pytest.approx(astuple(later))
    assert promise.steps["s0"].starts == TimeRange(1000.0, 1000.0, 1000.0)


def test_nothing_is_promised_of_what_was_not_seen():
    assert unknown(with_history(CHAIN, Past())) == "no run seen"
    of_outline = with_history(replace(CHAIN, is_outline=True), a_past())
    assert unknown(of_outline) == "the run's requests are estimated"
    partly = with_history(CHAIN, a_past(without=("s1", "s2")))
    assert unknown(partly) == "no run seen of s1, s2"
    small = a_cluster(a_node(cpu=0.001))
    wanting = replace(CHAIN, steps=tuple(replace(s, requests={"cpu": 9}) for s in CHAIN.steps))
    assert unknown(with_history(wanting, a_past()), cluster=small) == "a step fits no node"
    given = DurationSource.GIVEN
    steps = tuple(replace(s, duration_seconds=9.0, duration_source=given) for s in CHAIN.steps)
    assert unknown(with_history(replace(CHAIN, steps=steps), a_past())) == "all run times are given"


def with_branch():
    *first, last = CHAIN.steps
    return replace(CHAIN, steps=(*first, replace(last, conditions=("x == 1",))))


def test_a_branch_that_was_never_taken_is_not_in_the_promise_until_it_is():
    """Of runs two and three of a pipeline, too: their plans have the branch."""
    graph = with_branch()
    for runs in (1, 2, 6):
        past = a_past(graph, runs, end=330.0, planned=None, without=("s3",))
        learned = with_history(graph, past)
        assert promised(learned).ends.typical_seconds == pytest.approx(330)
    begun = dict.fromkeys(("s0", "s1", "s2"), DONE)
    begun["s3"] = StepProgress(ProgressState.RUNNING, "n1", 10.0)
    assert unknown(learned, begun, now=310.0) == "no run seen of s3"


def test_a_loop_without_iterations_in_past_runs_need_not_be_known():
    graph = RunGraph(
        "looped",
        "kfp-package",
        (Step("load", "load"), Step("loop[0].fit", "loop[*].fit", group="loop[0]", assumed=True)),
        (
            Group("", GroupKind.ROOT),
            Group("loop", GroupKind.LOOP, width=1, width_assumed=True),
            Group("loop[0]", GroupKind.ITERATION, parent="loop"),
        ),
    )
    past = a_past(graph, without=("loop[0].fit",))
    assert unknown(with_history(graph, past)) == "no run seen of loop[*].fit"
    root, loop, iteration = graph.groups
    never = replace(loop, learned_width=LearnedWidth(0, 6))
    graph = replace(graph, groups=(root, never, iteration))
    assert promised(with_history(graph, past)).unknown == ""


@pytest.mark.parametrize(("runs", "source"), [(2, "hint"), (3, "history")])
def test_a_hint_wins_over_fewer_than_three_runs(runs, source):
    hinted = (
        replace(step, duration_seconds=50.0, duration_source=DurationSource.HINT)
        for step in CHAIN.steps
    )
    graph = replace(CHAIN, steps=tuple(hinted))
    learned = with_history(graph, a_past(runs=runs))
    assert learned.graph.steps[0].duration_source == source
    # Either way something is known of it.
    assert learned.forecast.steps["s0"].runs == runs


def test_steps_that_have_not_run_lately_are_named():
    past = a_past(runs=2)
    for number in range(2, 5):
        at = datetime.fromtimestamp(number, UTC)
        steps = (PastStep(step_identity("chain", CHAIN.steps[0]), 100.0),)
        past.observe(PastRun(str(number), "chain", at, steps, 100.0))
    graph = replace(CHAIN, steps=(*CHAIN.steps, Step("new", "new")))
    notices = list(left_out_notices(graph, past))
    assert [(each.code, each.step) for each in notices] == [
        ("usually-left-out", name) for name in ("s1", "s2", "s3")
    ]
    assert "did not run in the last 3 runs" in notices[0].message
