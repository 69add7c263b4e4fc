"""What is promised of runs, before and while they run."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from kfp_placement_engine.planning.stretched_ends import stretched_ends

from kfp_placement_engine import Cluster, Node, PlanOptions, RunGraph, Step, plan_runs
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.lowering.activities import JOIN_FROM
from kfp_placement_engine.lowering.work import stored_bytes
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.forecast import (
    Basis,
    CommonFactor,
    Distribution,
    Forecast,
    Level,
    Shape,
)
from kfp_placement_engine.model.history import Observation, PastRun
from kfp_placement_engine.model.promise import FirstSamples, RunForecast
from kfp_placement_engine.model.run_graph import DataInput
from kfp_placement_engine.planning.learned_times import with_history

CLUSTER = Cluster((Node("n1", {"cpu": 8000, "memory": 2**34, "pods": 110}),))
OPTIONS = PlanOptions(compare=(), quick=True)
RUNS = 10

CHAIN = RunGraph(
    "chain",
    "argo-workflow",
    tuple(
        Step(f"s{number}", f"s{number}", depends_on=(f"s{number - 1}",) if number else ())
        for number in range(4)
    ),
)
"""Four steps, one after another."""


def a_past(graph=CHAIN, seconds=100.0, share=None):
    """Runs of steps that take that long, give or take a tenth; all slow together with a share."""
    past = Past()
    for run in range(RUNS):
        steps = tuple(
            Observation(
                step_identity(graph.name, step),
                seconds * (0.9 + 0.2 * ((run * 7 + number * 3) % RUNS) / (RUNS - 1)),
            )
            for number, step in enumerate(graph.steps)
        )
        past.observe(PastRun(str(run), graph.name, datetime.fromtimestamp(run, UTC), steps))
    learned = with_history(graph, past)
    if share is None:
        return learned
    return replace(learned, forecast=replace(learned.forecast, common=CommonFactor(share)))


def promised(learned, progress=None, now=0.0):
    """The promise of the run, seconds from its submission."""
    run = ActiveRun("run", learned.graph, -now, progress=progress or {}, forecast=learned.forecast)
    promise = plan_runs([run], CLUSTER, OPTIONS).plans["run"].promise
    assert promise is not None
    return promise.later(now)


def done(seconds):
    return StepProgress(ProgressState.DONE, "n1", ran_seconds=seconds)


def running(since, ran=None):
    return StepProgress(ProgressState.RUNNING, "n1", since, ran_seconds=ran)


def test_a_promise_lies_around_what_runs_took():
    ends = promised(a_past()).ends
    assert ends.low_seconds < 400 < ends.high_seconds
    assert ends.typical_seconds == pytest.approx(400, rel=0.05)


WIDTH = 20

SIDE_BY_SIDE = RunGraph(
    "side by side",
    "argo-workflow",
    (
        Step("first", "first"),
        *(Step(f"s{each}", f"s{each}", depends_on=("first",)) for each in range(WIDTH)),
        Step("last", "last", depends_on=tuple(f"s{each}" for each in range(WIDTH))),
    ),
)
"""A step, twenty that need its output, and one that needs theirs."""


def promises_after_two_runs(seed):
    """Of a third run: its promise, and what is known of it; seconds until its end and last step."""
    random, past = np.random.default_rng(seed), Past()
    for number in range(3):
        learned = with_history(SIDE_BY_SIDE, past)
        promise = promised(learned)
        times = 100 * random.lognormal(0, 0.4, WIDTH + 2)
        last_starts = float(times[0] + times[1:-1].max())
        seconds = last_starts + float(times[-1])
        steps = tuple(
            Observation(step_identity(SIDE_BY_SIDE.name, step), float(ran))
            for step, ran in zip(SIDE_BY_SIDE.steps, times, strict=True)
        )
        run = PastRun(
            str(number),
            SIDE_BY_SIDE.name,
            datetime.fromtimestamp(number, UTC),
            steps,
            seconds,
            promise.played_seconds,
            replayed_seconds=seconds,
        )
        if number < 2:
            past.observe(run)
    return promise, learned, seconds, last_starts


def test_after_two_runs_of_steps_side_by_side_that_differ_much_a_third_is_promised():
    """Samples of steps that were seen once end early; against these the second run took long."""
    held, lasts, is_late, within = [], [], [], []
    for seed in range(40):
        promise, _, seconds, last_starts = promises_after_two_runs(seed)
        held.append(promise.ends.low_seconds <= seconds <= promise.ends.high_seconds)
        is_late.append(promise.ends.typical_seconds > seconds)
        starts = promise.steps["last"].starts
        lasts.append(starts.low_seconds <= last_starts <= starts.high_seconds)
        within += [
            each.starts.high_seconds <= each.ends.high_seconds <= promise.ends.high_seconds + 1e-6
            for each in promise.steps.values()
        ]
    assert sum(held) >= 32
    assert sum(lasts) >= 30
    assert all(within)
    assert 10 <= sum(is_late) <= 30


def test_a_run_that_waits_is_promised_the_same_from_its_start():
    first, learned, *_ = promises_after_two_runs(0)
    waiting = promised(learned, now=-1000.0)
    assert waiting.ends.typical_seconds == pytest.approx(first.ends.typical_seconds)
    last = waiting.steps["last"].starts
    assert last.low_seconds == pytest.approx(first.steps["last"].starts.low_seconds)


def test_no_promise_jumps_when_the_third_run_begins():
    first, learned, *_ = promises_after_two_runs(0)
    samples = FirstSamples(first.played_seconds)
    begun = replace(learned, forecast=replace(learned.forecast, first_samples=samples))
    now = promised(begun, {"first": running(1.0, 1.0)}, now=1.0).ends
    assert now.typical_seconds == pytest.approx(first.ends.typical_seconds, rel=0.03)


def test_steps_that_ended_slowly_make_the_rest_late_as_far_as_steps_are_slow_together():
    ends = {}
    for share in (0.0, 0.8):
        learned = a_past(share=share)
        for ran in (90.0, 110.0):
            progress = {"s0": done(ran), "s1": done(ran)}
            ends[share, ran] = promised(learned, progress, 200.0).ends
    assert ends[0.0, 90.0] == ends[0.0, 110.0]
    assert ends[0.8, 90.0].typical_seconds < 398 < 402 < ends[0.8, 110.0].typical_seconds


def test_a_step_whose_time_is_not_known_tells_nothing():
    learned = a_past(share=0.8)
    progress = {"s0": StepProgress(ProgressState.DONE, "n1"), "s1": done(1.0)}
    unknown = promised(learned, progress, 200.0).ends
    nothing_ended = {"s0": StepProgress(ProgressState.DONE, "n1"), "s1": progress["s0"]}
    assert unknown == promised(learned, nothing_ended, 200.0).ends


def test_what_transfers_take_is_no_slowness():
    """Of a step that moves 5 s of data, 105 s are what it always takes."""
    steps = tuple(replace(step, output_bytes={"out": 625_000_000}) for step in CHAIN.steps)
    moving = replace(CHAIN, name="moving", steps=steps)
    usual, slow = (
        promised(a_past(moving, share=0.8), {"s0": done(ran), "s1": done(ran)}, 200.0).ends
        for ran in (105.0, 115.0)
    )
    assert usual.typical_seconds == pytest.approx(410, rel=0.02)
    assert slow.typical_seconds > usual.typical_seconds + 2


def test_a_running_step_goes_on_from_the_time_that_its_container_has_had():
    """A pod that has waited for its image has run for nothing yet."""
    learned = a_past()
    before = {name: done(100.0) for name in ("s0", "s1", "s2")}
    ends = {
        ran: promised(learned, before | {"s3": running(95.0, ran)}, 395.0).ends.typical_seconds
        for ran in (None, 95.0, 0.0)
    }
    assert ends[None] == ends[95.0] < 410
    assert ends[0.0] == pytest.approx(495, rel=0.05)


def test_a_step_that_takes_longer_than_ever_has_a_time_left():
    learned = a_past()
    before = {name: done(100.0) for name in ("s0", "s1", "s2")}
    ends = promised(learned, before | {"s3": running(300.0, 300.0)}, 600.0).ends
    assert 605 < ends.typical_seconds < ends.high_seconds - 20


BRANCHES = RunGraph(
    "branches",
    "argo-workflow",
    (
        Step("a", "a", component="a"),
        Step("yes", "yes", depends_on=("a",), conditions=("x",), component="y"),
        Step("yes2", "yes2", depends_on=("yes",), conditions=("x",), component="y2"),
        Step("no", "no", depends_on=("a",), conditions=("not x",), component="n"),
    ),
)


def test_nothing_is_promised_of_a_pipeline_of_branches_that_was_never_seen():
    graph = replace(
        BRANCHES, steps=tuple(replace(each, conditions=("x",)) for each in BRANCHES.steps)
    )
    promise = promised(with_history(graph, Past()))
    assert (promise.ends, promise.unknown) == (None, "no run seen")


def test_a_step_that_was_never_seen_counts_once_its_branch_is_taken():
    seen = RunGraph("branches", "argo-workflow", BRANCHES.steps[:2])
    learned = a_past(seen)
    past = replace(
        learned, graph=replace(BRANCHES, steps=(*learned.graph.steps, *BRANCHES.steps[2:]))
    )
    assert promised(past).ends is not None
    ended = {"a": done(100.0)}
    assert promised(past, ended, 120.0).ends is not None
    taken = promised(past, {**ended, "yes": running(10.0)}, 120.0)
    assert (taken.ends, taken.unknown) == (None, "no run seen of yes2")
    not_seen = promised(past, {**ended, "yes": done(None), "no": running(10.0)}, 120.0)
    assert (not_seen.ends, not_seen.unknown) == (None, "no run seen")


def test_data_between_steps_is_read_once():
    steps = list(CHAIN.steps)
    steps[1] = replace(steps[1], inputs=(DataInput("s0", "out", 1000),), output_bytes={"o": 500})
    assert stored_bytes(steps[1], Assumptions(), direct_transfers=False) == 1500
    assert stored_bytes(steps[1], Assumptions(), direct_transfers=True) == 0
    unknown = replace(steps[1], inputs=(DataInput("s0", "out", None),))
    assert stored_bytes(unknown, Assumptions(output_bytes=7), direct_transfers=False) == 507


DRIVEN = replace(CHAIN, steps=tuple(replace(step, has_driver=True) for step in CHAIN.steps))
"""The same, as steps of KFP: a driver pod before each."""


FAN_IN = replace(
    DRIVEN,
    steps=(
        *(Step(f"s{number}", f"s{number}") for number in range(JOIN_FROM)),
        *(
            Step(name, name, depends_on=tuple(f"s{number}" for number in range(JOIN_FROM)))
            for name in ("a", "b")
        ),
    ),
)
"""Steps that wait for so many others that the plan has a join between them, which takes no time."""


def driven_ends(of_past, of_plans, graph=DRIVEN):
    """When the run ends, by what a driver takes in samples and in plans."""
    learned = a_past(graph)
    forecast = replace(learned.forecast, driver_seconds=of_past)
    run = ActiveRun("run", learned.graph, forecast=forecast)
    options = replace(OPTIONS, assumptions=Assumptions(driver_seconds=of_plans))
    promise = plan_runs([run], CLUSTER, options).plans["run"].promise
    assert promise is not None
    assert promise.ends is not None
    return promise.ends


def test_drivers_take_in_samples_what_past_runs_were_played_with():
    """Whatever the cluster has shown since: how runs ended beside their samples counts it."""
    assert driven_ends(None, 25.0).typical_seconds == pytest.approx(500, rel=0.05)
    assert driven_ends(25.0, 5.0) == driven_ends(25.0, 90.0) == driven_ends(None, 25.0)
    assert driven_ends(25.0, 5.0, FAN_IN) == driven_ends(None, 25.0, FAN_IN)


def a_driven_run(number, driver_seconds, seconds=None):
    """A run of `chain` that was expected to take a minute beside its three drivers."""
    played_seconds = None if seconds is None else 60 + 3 * driver_seconds
    return PastRun(
        str(number),
        "chain",
        datetime.fromtimestamp(number, UTC),
        seconds=seconds,
        played_seconds=played_seconds,
        driver_seconds=driver_seconds,
        drivers=3,
    )


def driven_past(*driver_seconds):
    """Runs in which a driver took so long, one after the other."""
    return Past(a_driven_run(number, each) for number, each in enumerate(driver_seconds))


def test_drivers_take_what_they_did_in_the_last_runs():
    assert with_history(DRIVEN, Past()).forecast.driver_seconds is None
    past = driven_past(60.0, None, 8.0, None)
    past.observe(PastRun("other", "other", datetime.now(UTC), driver_seconds=99.0))
    assert with_history(DRIVEN, past).forecast.driver_seconds == 8.0
    assert driven_past(*[2.0] * 9, 40.0, 40.0).driver_seconds("chain") == 2.0
    assert driven_past(*[2.0] * 9, 40.0, 40.0, 40.0).driver_seconds("chain") == 40.0


@pytest.mark.parametrize(("sampled", "factor"), [(2.0, 90 / 66), (10.0, 1.0)])
def test_a_change_of_drivers_that_samples_follow_is_not_in_the_factor_of_runs(sampled, factor):
    past = driven_past(*[sampled] * 5)
    past.observe(a_driven_run(9, 10.0, seconds=90.0))
    overrun = past.overrun("chain")
    assert overrun is not None
    assert overrun.distribution.median_seconds == pytest.approx(factor)


EVEN = np.exp(np.linspace(-0.3, 0.3, 101)) * 100
"""Ends of samples around 100 s."""


def stretched(runs, has_new_steps=False, has_ended_steps=False, deviation=0.1, ends=EVEN):
    """The lowest, middle and highest end, where past runs took a tenth longer than samples."""
    shape = Shape(tuple(np.linspace(-1, 1, 21)))
    basis = Basis(Level.PIPELINE if runs else Level.NAMESPACE, max(1, runs))
    forecast = RunForecast(overrun=Forecast(Distribution(1.1, deviation, shape), basis))
    found = stretched_ends(
        ends, forecast, has_ended_steps=has_ended_steps, has_new_steps=has_new_steps
    )
    return np.quantile(found, (0.05, 0.5, 0.95)).tolist()


def width(*args, **kwargs):
    low, middle, high = stretched(*args, **kwargs)
    assert middle == pytest.approx(110, rel=0.01)
    return high / low


def test_the_more_runs_have_ended_the_less_samples_say_of_how_far_ends_lie_apart():
    widths = [width(runs) for runs in (1, 2, 3, 10, 20, 1000)]
    assert widths == sorted(widths, reverse=True)
    assert width(1000) == pytest.approx(math.exp(2 * 0.1 * 0.9), rel=0.05)
    assert width(1, has_new_steps=True) == width(1000, has_new_steps=True) == width(0)
    assert width(0) == widths[0] > widths[1]


def test_samples_that_lie_nearer_together_than_past_runs_change_nothing():
    together = np.exp(np.linspace(-0.01, 0.01, 101)) * 100
    assert width(1, ends=together) == pytest.approx(width(1000, ends=together))


def deviation_of_left(passed_seconds, *, overrun, beside_steps=0.1, held_seconds=0.0):
    """Of what is left once steps have ended, in seconds, where the samples say 100 s."""
    basis = Basis(Level.PIPELINE, 20)
    known = Forecast(Distribution(overrun, 0.1, Shape((-1.0, 0.0, 1.0))), basis)
    first = FirstSamples((passed_seconds + 100.0) / overrun + held_seconds, held_seconds)
    forecast = RunForecast(overrun=known, first_samples=first, beside_steps=beside_steps)
    found = stretched_ends(
        np.full(1001, 100.0 / overrun),
        forecast,
        since_submission_seconds=passed_seconds + held_seconds,
        has_ended_steps=True,
    )
    return float(np.std(found))


def test_once_steps_have_ended_what_pods_wait_for_lies_in_all_parts_alike():
    """A quarter of the run has half the deviation in seconds; without waits there is none."""
    of_all = deviation_of_left(0, overrun=1.05)
    assert of_all == pytest.approx(0.1 * 100, rel=0.05)
    assert deviation_of_left(300, overrun=1.05) == pytest.approx(0.1 * 400 / 2, rel=0.05)
    assert deviation_of_left(300, overrun=1.05, beside_steps=0.0) < 1e-9


def test_how_long_a_run_was_held_back_says_nothing_of_what_pods_wait_for():
    held = deviation_of_left(300, overrun=1.05, held_seconds=100_000)
    assert held == pytest.approx(deviation_of_left(300, overrun=1.05))


@pytest.mark.parametrize("left_share", [0.1, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("overrun", [1.0, 2.2])
def test_near_its_end_no_more_of_a_run_is_uncertain_than_it_was_at_its_start(left_share, overrun):
    known = Forecast(Distribution(overrun, 0.1, Shape((-1.0, 0.0, 1.0))), Basis(Level.PIPELINE, 20))
    first = FirstSamples(1000.0 / overrun)
    forecast = RunForecast(overrun=known, first_samples=first, beside_steps=0.1)
    left = 1000.0 * left_share
    found = stretched_ends(
        np.full(201, left / overrun),
        forecast,
        since_submission_seconds=1000.0 - left,
        has_ended_steps=True,
    )
    low, middle, high = np.quantile(found, (0.05, 0.5, 0.95))
    assert middle == pytest.approx(left, rel=0.05)
    assert 0 < low < middle < high < left + 2 * 0.1 * 1000


def test_where_runs_take_far_longer_than_their_samples_all_of_that_may_be_still_to_come():
    nearly_all = deviation_of_left(300, overrun=3.0)
    assert 0.7 * 0.1 * 400 < nearly_all < 0.1 * 400
    assert deviation_of_left(300, overrun=1.3) < nearly_all


def test_what_has_ended_has_no_samples():
    assert stretched(1, ends=np.zeros(101)) == [0.0, 0.0, 0.0]


def test_equal_samples_end_earlier_as_often_as_later():
    low, middle, high = stretched(1000, ends=np.full(101, 100.0))
    assert (low, middle, high) == (pytest.approx(110 / (high / 110)), pytest.approx(110), high)
    assert high > 115


@pytest.mark.parametrize("since_start", [15.0, 50.0, 90.0, 130.0])
def test_what_is_left_while_the_first_step_runs_lies_as_far_apart_as_in_longer_runs(since_start):
    """Of runs that take 100 s, give or take, those that took longer than this one."""
    factors = Distribution(1.0, 0.2, Shape(tuple(np.linspace(-2, 2, 41))))
    forecast = RunForecast(overrun=Forecast(factors, Basis(Level.PIPELINE, 20)))
    # The samples are quantiles of a step that is as long as the run, but lie nearer together.
    own = Distribution(100.0, 0.02, factors.shape).after(since_start)
    places = (np.arange(101) + 0.5) / 101
    ends = np.array([own.quantile(each) for each in places.tolist()]) - since_start
    left = stretched_ends(ends, forecast, since_start_seconds=since_start)
    middle = float(np.median(ends))
    whole = Distribution(since_start + middle, 0.2, factors.shape).after(since_start)
    wanted = [whole.quantile(each) - since_start for each in (0.05, 0.5, 0.95)]
    found = np.quantile(left, (0.05, 0.5, 0.95))
    assert found[1] == pytest.approx(middle)
    assert found[2] / found[1] >= 0.95 * wanted[2] / wanted[1]
    assert found[0] / found[1] <= 1.2 * wanted[0] / wanted[1]


def test_samples_of_a_first_step_that_runs_for_long_count_fully():
    together = Distribution(1.0, 0.01, Shape((-1.0, 0.0, 1.0)))
    forecast = RunForecast(overrun=Forecast(together, Basis(Level.PIPELINE, 1000)))
    early, late = (
        np.quantile(stretched_ends(EVEN, forecast, since_start_seconds=since), (0.05, 0.95))
        for since in (1.0, 50.0)
    )
    assert early[1] / early[0] < 1.05
    assert late == pytest.approx(np.quantile(EVEN, (0.05, 0.95)), rel=0.02)


@pytest.mark.parametrize("has_ended_steps", [False, True])
def test_where_branches_are_open_how_runs_ended_stretches_nothing(has_ended_steps):
    """Half of the samples take a branch of ten times the time, and so did half of the runs."""
    ends = np.array([100.0] * 51 + [1000.0] * 50)
    for factor in (0.3, 3.0):
        distribution = Distribution(factor, 1.0, Shape((-2.0, -1.0, 0.0, 1.0, 2.0)))
        forecast = RunForecast(overrun=Forecast(distribution, Basis(Level.PIPELINE, 20)))
        found = stretched_ends(
            ends, forecast, has_ended_steps=has_ended_steps, has_open_branches=True
        )
        assert found / ends == pytest.approx(1.0, abs=0.22)


def rest(factor, now, held=0.0, left=100.0):
    """What is left by the middle sample, of a run whose samples took 400 s at first."""
    overrun = Forecast(Distribution(factor, 0.1, Shape((-1.0, 0.0, 1.0))), Basis(Level.PIPELINE, 9))
    forecast = RunForecast(overrun=overrun, first_samples=FirstSamples(400.0 + held, held))
    ends = np.full(11, left)
    found = stretched_ends(
        ends, forecast, since_submission_seconds=now + held, has_ended_steps=True
    )
    return float(found[0])


def test_what_was_lost_at_the_start_is_not_lost_again():
    """A run takes 1.25 times as long as its samples, 500 s: by now it has 100 s of samples left."""
    assert rest(1.25, now=375.0) == pytest.approx(125.0)
    assert rest(1.25, now=400.0) == pytest.approx(100.0)
    assert rest(1.25, now=500.0) == pytest.approx(100.0)
    assert rest(1.25, now=375.0, held=3600.0) == pytest.approx(125.0)


def test_what_has_not_been_lost_yet_may_be_lost_by_the_rest():
    """A node may have to start for the last step; or the run is faster than expected."""
    assert rest(1.25, now=360.0) == pytest.approx(140.0)
    assert rest(1.25, now=300.0) == rest(1.25, now=10.0) == pytest.approx(100 * 1.25**2)


def test_what_came_from_the_cache_makes_no_other_step_shorter():
    """Of 400 s 300 came from the cache, as ever: the rest takes what it takes."""
    assert rest(0.25, now=2.0) == pytest.approx(98.0)
    assert rest(0.25, now=90.0) == pytest.approx(100.0 / 1.1)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_what_runs_usually_take_longer_is_everywhere(factor):
    assert rest(factor, now=2.0) == rest(factor, now=900.0) == pytest.approx(100 * factor)
