"""When runs end, by past ends and by their plans."""

import random

import pytest

from kfp_placement_engine.history import RunEnds


def after(*runs, ends=None, pipeline="taxi"):
    """What is known after runs of a pipeline, each as its end and the one by its plan."""
    run_ends = ends or RunEnds()
    for seconds, planned in runs:
        run_ends.observe(pipeline, seconds, planned)
    return run_ends


def typical(run_ends, planned, pipeline="taxi"):
    return run_ends.of(pipeline).predict(planned).typical_seconds


def test_a_new_pipeline_takes_longer_than_its_plan_as_others_do():
    assert typical(RunEnds(), 100) == pytest.approx(100)
    run_ends = after((130, 100), (130, 100), (130, 100))
    assert typical(run_ends, 200, "new") == pytest.approx(260)
    new, old = (run_ends.of(each).predict(100) for each in ("new", "taxi"))
    assert new.high_seconds / new.low_seconds > old.high_seconds / old.low_seconds


def test_past_ends_tell_of_a_run_whose_plan_is_as_before():
    assert typical(after((140, 100), (150, 104), (145, 98)), 101) == pytest.approx(146, rel=0.02)


def test_another_plan_counts_in_proportion():
    run_ends = after(*[(150, 100)] * 5)
    assert typical(run_ends, 200) == pytest.approx(300)
    assert typical(run_ends, 40) == pytest.approx(60)


def test_plans_that_runs_have_followed_count_beside_past_ends():
    followed = after(*[(length, length) for length in (90, 100, 110, 95, 105)])
    assert typical(followed, 110) == pytest.approx(110, rel=0.03)


def test_a_plan_on_assumed_times_says_nothing():
    """The first runs of a pipeline with a branch that is never taken: the plan has it."""
    run_ends = after((100, None))
    assert typical(run_ends, 160) == pytest.approx(100)
    assert run_ends.of("taxi").predict(160).high_seconds < 160
    after((104, 160), ends=run_ends)
    assert typical(run_ends, 160) == pytest.approx(102, rel=0.01)


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_ranges_hold_as_often_as_they_should(spread):
    rng, held = random.Random(2), []
    for _ in range(20):
        run_ends = RunEnds()
        for number in range(12):
            seconds = 100 * rng.lognormvariate(0, spread)
            if number > 1:
                times = run_ends.of("p").predict(100)
                held.append(times.low_seconds <= seconds <= times.high_seconds)
            run_ends.observe("p", seconds, 100)
    assert 0.8 < sum(held) / len(held) < 0.99


def test_three_runs_say_how_far_ends_of_a_pipeline_lie_apart():
    """What is expected before counts for less than they do."""
    far, near = (
        after(*((seconds, 100) for seconds in ends)).of("taxi").predict(100)
        for ends in ((100, 150, 80), (100, 102, 98))
    )
    assert far.high_seconds / far.low_seconds > 3.5
    assert near.high_seconds / near.low_seconds < 1.28


def test_the_ends_of_a_pipeline_ask_those_of_the_namespace():
    of_all = after(*[(130, 100)] * 3, pipeline="other")
    own = RunEnds(of_all)
    assert typical(own, 100) == pytest.approx(130)
    narrow = after((100, 100), ends=own).of("taxi").predict(100)
    for each in range(40):
        after((50, 100), (200, 100), pipeline=f"p{each}", ends=of_all)
    wide = own.of("taxi").predict(100)
    assert wide.typical_seconds == narrow.typical_seconds
    assert wide.high_seconds / wide.low_seconds > narrow.high_seconds / narrow.low_seconds


def test_what_was_known_does_not_change_with_what_comes_later():
    run_ends = after((100, 100))
    before = run_ends.of("taxi")
    after((300, 100), (500, 100), ends=run_ends)
    assert before.predict(100).typical_seconds == pytest.approx(100)
