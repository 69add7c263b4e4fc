"""How long steps take by what ended ones took."""

import gc
import random
import tracemalloc

import pytest

from kfp_placement_engine.history import StepTimes, step_times
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.history import PastContainer, PastStep, StepIdentity

TRAIN = StepIdentity("taxi", "train", "", "c1", "i1")
FIT = StepIdentity("taxi", "fit", "a", "c2", "i1")
GIB = 2**30

WIDE = [StepIdentity("taxi", "fit", f"{each:08x}") for each in range(1_000)]
"""Iterations of a wide loop."""


def seen(*seconds, identity=TRAIN, times=None, **others):
    """What is known after a run for each of these times."""
    history = times or StepTimes()
    for each in seconds:
        history.observe([PastStep(identity, each, **others)])
    return history


def forecast(history, *asked, **named):
    prediction = history.predict(*(asked or (TRAIN,)), **named)
    assert prediction is not None
    return prediction


def typical(history, identity=TRAIN, size=None, **arguments):
    return forecast(history, identity, size, arguments).typical_seconds


def test_nothing_is_known_of_what_was_not_seen():
    assert StepTimes().predict(TRAIN) is None


def test_a_change_is_followed_within_three_runs_and_one_outlier_is_not():
    assert typical(seen(100, 100, 100, 100, 900)) == pytest.approx(100)
    changed = [typical(seen(*[100] * 9, *[200] * runs)) for runs in (1, 2, 3)]
    assert changed == pytest.approx([100, 100, 200])


def test_what_is_most_like_a_step_tells_of_it():
    history = seen(10, 10, 10)
    seen(30, 30, identity=FIT, times=history)
    seen(70, identity=StepIdentity("taxi", "fit", "b", "c2", "i1"), times=history)

    def basis(identity):
        prediction = forecast(history, identity)
        return prediction.basis.level, prediction.basis.runs, round(prediction.typical_seconds)

    assert basis(FIT) == (Level.ITERATION, 2, 30)
    # The median of its iterations, on a logarithmic scale.
    assert basis(StepIdentity("taxi", "fit", "new")) == (Level.STEP, 3, 46)
    assert basis(StepIdentity("taxi", "fit", None)) == (Level.STEP, 3, 46)
    assert basis(StepIdentity("other", "x", "", "c1", "i9")) == (Level.COMPONENT, 3, 10)
    assert basis(StepIdentity("other", "x", "", "c9", "i1")) == (Level.IMAGE, 3, 21)
    assert basis(StepIdentity("other", "x", "", "", "")) == (Level.NAMESPACE, 3, 21)


def test_sizes_count_where_they_have_told_and_beyond_what_was_seen():
    history = StepTimes()
    for size in (1, 8, 2, 4, 6, 3):
        seen(10 + 30 * size, times=history, input_bytes=size * GIB)
    assert forecast(history, TRAIN, 5 * GIB).basis.by_size
    assert typical(history, size=5 * GIB) == pytest.approx(160, rel=0.1)
    assert 240 < typical(history, size=16 * GIB) < 520
    near, far = (forecast(history, TRAIN, size * GIB).times for size in (5, 64))
    assert far.high_seconds / far.low_seconds > 2 * near.high_seconds / near.low_seconds
    assert not forecast(history).basis.by_size


def test_new_code_is_followed_where_sizes_take_turns():
    history = StepTimes()
    for run in range(20):
        size = (1, 4)[run % 2]
        seen((100 if run < 14 else 20) * size, times=history, input_bytes=size * GIB)
    assert typical(history, size=1 * GIB) == pytest.approx(20, rel=0.1)
    assert typical(history, size=4 * GIB) == pytest.approx(80, rel=0.1)


def test_iterations_of_new_steps_teach_how_far_off_new_ones_lie():
    rng, history = random.Random(2), StepTimes()
    for pipeline in "abcde":
        steps = (StepIdentity(pipeline, "fit", str(item)) for item in range(12))
        history.observe([PastStep(each, 100 * rng.lognormvariate(0, 0.05)) for each in steps])
    new = StepIdentity("a", "fit", "new")
    times = forecast(history, new).times
    assert 1.1 < times.high_seconds / times.low_seconds < 1.6
    # The past of one pipeline teaches the others nothing.
    wild = [PastStep(StepIdentity("f", "fit", str(item)), 10.0**item) for item in range(1, 5)]
    StepTimes(history).observe(wild)
    assert forecast(history, new).times == times


def test_steps_that_share_an_image_and_take_the_same_promise_nothing_of_another():
    history = StepTimes()
    for each in range(15):
        seen(60, identity=StepIdentity("other", f"s{each}", "", "", "i1"), times=history)
    times = forecast(history, StepIdentity("taxi", "new", "", "", "i1")).times
    assert times.high_seconds / times.low_seconds > 2


def test_an_argument_that_times_follow_is_named_and_a_seed_is_not():
    rng, history = random.Random(3), StepTimes()
    for rows in (1e3, 8e3, 2e3, 4e3, 6e3, 3e3):
        seen(rows / 100, times=history, arguments=(rows, rng.uniform(1, 1e6)))
    prediction = forecast(history, TRAIN, None, {"rows": 5e3, "seed": 77.0})
    assert (prediction.basis.by_argument, prediction.basis.by_size) == ("rows", False)
    assert prediction.typical_seconds == pytest.approx(50, rel=0.15)
    by_seed = StepTimes()
    for _ in range(8):
        arguments = (rng.uniform(1, 1e6), rng.uniform(1, 1e6))
        seen(rng.lognormvariate(4, 0.2), times=by_seed, arguments=arguments)
    assert forecast(by_seed, TRAIN, None, {"a": 1e5, "b": 2e5}).basis.by_argument == ""


@pytest.mark.parametrize("spread", [0.05, 0.3])
def test_ranges_hold_as_often_as_they_should_once_misses_are_known(spread):
    rng, history, held = random.Random(1), StepTimes(), []
    steps = {StepIdentity("p", f"s{each}"): rng.lognormvariate(4, 1) for each in range(30)}
    for run in range(25):
        ended = [
            PastStep(each, usual * rng.lognormvariate(0, spread)) for each, usual in steps.items()
        ]
        if run > 4:
            for each in ended:
                times = forecast(history, each.identity).times
                assert each.seconds is not None
                held.append(times.low_seconds <= each.seconds <= times.high_seconds)
        history.observe(ended)
    assert 0.86 < sum(held) / len(held) < 0.95


def test_a_range_is_wider_the_more_it_is_to_hold_and_the_less_is_known():
    def width(history, confidence=0.9):
        times = forecast(history, confidence=confidence).times
        assert times.low_seconds < times.typical_seconds < times.high_seconds
        return times.high_seconds / times.low_seconds

    by_runs = [width(seen(*[100] * runs)) for runs in (1, 2, 5)]
    assert by_runs == sorted(by_runs, reverse=True)
    history = seen(90, 110, 100, 90, 110, 100, 105, 95)
    assert width(history, 0.5) < width(history, 0.9) < width(history, 0.95)


def test_short_steps_are_cut_to_whole_seconds():
    times = forecast(seen(1, 1, 1, 1, 1, 1)).times
    assert times.low_seconds < 0.8
    assert times.high_seconds > 1.3


def test_the_past_of_a_pipeline_asks_that_of_the_namespace():
    of_all = seen(40, 44, identity=StepIdentity("other", "load", "", "c7"))
    own = StepTimes(of_all)
    seen(100, 110, times=own)
    assert typical(own) == pytest.approx(105, rel=0.01)
    assert typical(own, StepIdentity("taxi", "load", "", "c7")) == pytest.approx(42, rel=0.01)
    before = forecast(own).times
    # Ranges are as wide as forecasts in the namespace have missed.
    for each in range(60):
        times = [50 * 2 ** (each % 5)] * 2
        seen(*times, 900, 30, identity=StepIdentity("other", f"s{each}"), times=of_all)
    after = forecast(own).times
    assert after.high_seconds / after.low_seconds > before.high_seconds / before.low_seconds


def test_runs_in_a_row_without_a_step_are_counted(monkeypatch):
    """Of the pipelines that ran last."""
    monkeypatch.setattr(step_times, "MOST_PIPELINES", 1)
    history = StepTimes()
    for ran in (True, True, False, False):
        steps = [PastStep(TRAIN, 10.0)] if ran else []
        history.observe([*steps, PastStep(FIT, 10.0)], whole_pipeline="taxi")
    assert history.runs_without("taxi", "train") == 2
    assert history.runs_without("taxi", "fit") == 0
    history.observe([])
    assert history.runs_without("taxi", "train") == 2
    history.observe([], whole_pipeline="other")
    assert history.runs_without("taxi", "train") == 0


def test_each_iteration_of_a_wide_loop_keeps_its_own_times():
    """A thousand: with a hundred, a wider loop forgets each before it comes to it again."""
    history = StepTimes()
    for _ in range(3):
        history.observe([PastStep(each, 10 + at % 97) for at, each in enumerate(WIDE)])
    for at in (0, 500, 999):
        prediction = forecast(history, WIDE[at])
        assert prediction.basis.level is Level.ITERATION
        assert prediction.typical_seconds == pytest.approx(10 + at % 97)


def test_what_is_known_is_bounded(monkeypatch):
    monkeypatch.setattr(step_times, "MOST_STEPS", 3)
    monkeypatch.setattr(step_times, "MOST_ITERATIONS", 4)
    history = StepTimes()

    def levels(identities):
        return [forecast(history, each).basis.level for each in identities]

    steps = [StepIdentity("taxi", f"step-{each}") for each in range(5)]
    for each in steps:
        seen(10.0, identity=each, times=history)
    assert levels(steps) == [Level.NAMESPACE] * 2 + [Level.ITERATION] * 3
    history.observe([PastStep(each, 10.0) for each in WIDE[:9]])
    assert levels(WIDE[:9]) == [Level.STEP] * 5 + [Level.ITERATION] * 4


def test_a_wide_loop_takes_little_memory():
    runs = [[PastStep(each, 10.0, input_bytes=GIB) for each in WIDE] for _ in range(20)]
    tracemalloc.start()
    try:
        history = StepTimes()
        for run in runs:
            history.observe(run)
        # Python keeps small tuples for later ones; how many depends on what ran before.
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert history.predict(WIDE[0]) is not None
    assert taken < 250_000


OUTLINE = StepIdentity("taxi", "train")
"""The step in a run whose components are not known."""


def test_a_step_of_an_outline_is_known_by_its_path():
    history = seen(100, 100, 100, container=PastContainer({"cpu": 500}, "i"))
    assert typical(history, OUTLINE) == pytest.approx(100)
    assert history.container("taxi", "train") == PastContainer({"cpu": 500}, "i")
    assert history.container("other", "train") is None


def test_what_an_outline_leaves_open_stays_known():
    """After it, other steps of the component still learn from this one, and it has its requests."""
    history = seen(100, container=PastContainer({"cpu": 500}, "i"))
    seen(200, 200, identity=OUTLINE, times=history)
    alike = StepIdentity("other", "train", "", "c1")
    assert forecast(history, alike).basis.level is Level.COMPONENT
    assert forecast(history, TRAIN).basis.runs == 3
    assert history.container("taxi", "train") == PastContainer({"cpu": 500}, "i")
    seen(200, container=PastContainer({"cpu": 700}, "i"), times=history)
    assert history.container("taxi", "train") == PastContainer({"cpu": 700}, "i")
