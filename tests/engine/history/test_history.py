"""What runs tell of the next one: whose past counts, how wide intervals are, what is left out."""

import math
from dataclasses import replace
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.history import History, NodeFactors
from kfp_placement_engine.history.calibration import MISSES_OF_RUN
from kfp_placement_engine.history.iterations import VALUES_OF_ITERATION
from kfp_placement_engine.history.known_steps import (
    LEAST_OF_ITERATION,
    MOST_ITERATIONS,
    MOST_STEPS,
)
from kfp_placement_engine.history.levels import Levels
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.history import Observation, StepIdentity

TRAIN = StepIdentity("churn", "train", component="sha-train", image="trainer:1")
LOOP = StepIdentity("churn", "score", iteration="a", component="sha-score", image="scorer:1")


def seen(identity, *seconds, node="", size=None):
    """A run for each time."""
    return [[Observation(identity, each, node, size)] for each in seconds]


def history_of(*runs):
    history = History("team-a")
    for run in runs:
        history.observe(run)
    return history


def forecast_of(history, identity, node="", size=None):
    forecast = history.predict(identity, node, size)
    assert forecast is not None
    return forecast


def typical(forecast):
    return forecast.distribution.median_seconds


def test_nothing_is_known_at_first():
    assert History().predict(TRAIN) is None


def test_a_step_takes_about_as_long_as_before():
    forecast = history_of(*seen(TRAIN, 90, 92, 91)).predict(TRAIN)
    assert typical(forecast) == pytest.approx(91)
    assert (forecast.basis.level, forecast.basis.runs) == (Level.ITERATION, 3)
    assert forecast.distribution.quantile(0.05) < 91 < forecast.distribution.quantile(0.95)


def test_the_nearest_past_counts():
    other = StepIdentity("sales", "fit", component="sha-train", image="trainer:1")
    same_image = StepIdentity("sales", "tune", component="sha-tune", image="trainer:1")
    history = history_of(*seen(other, 300), *seen(same_image, 30))
    levels = {}
    for identity in (
        TRAIN,
        replace(TRAIN, component="sha-new"),
        replace(TRAIN, component="sha-new", image="new:1"),
    ):
        forecast = history.predict(identity)
        levels[forecast.basis.level] = typical(forecast)
    assert levels[Level.COMPONENT] == pytest.approx(300)
    assert levels[Level.IMAGE] == pytest.approx(math.sqrt(300 * 30))
    assert set(levels) == {Level.COMPONENT, Level.IMAGE, Level.NAMESPACE}


def test_what_is_not_known_of_a_step_does_not_make_it_like_others():
    """Steps without an image have no image in common."""
    history = history_of(*seen(StepIdentity("sales", "fit"), 300))
    assert forecast_of(history, StepIdentity("churn", "train")).basis.level is Level.NAMESPACE


def test_steps_are_alike_by_what_they_ran_last():
    """Two pipelines shared a component, until one was changed."""
    other, new = StepIdentity("sales", "fit", component="sha-train"), StepIdentity("new", "new")
    changed = replace(TRAIN, component="sha-new")
    history = history_of(*seen(other, 300), *seen(TRAIN, 30), *seen(changed, 30))
    assert typical(history.predict(replace(new, component="sha-train"))) == pytest.approx(300)
    assert typical(history.predict(replace(new, component="sha-new"))) == pytest.approx(30)


def test_a_new_iteration_is_as_far_off_as_the_others_are_apart():
    """Not as repetitions of one are, which are much nearer."""
    runs = [[Observation(replace(LOOP, iteration=name), seconds) for name, seconds in
             (("a", 20), ("b", 40), ("c", 80), ("d", 160))] for _ in range(12)]  # fmt: skip
    history = history_of(*runs)
    known, new = (history.predict(replace(LOOP, iteration=name)) for name in ("c", "e"))
    assert (typical(known), known.basis.level) == (pytest.approx(80), Level.ITERATION)
    assert (typical(new), new.basis.level) == (pytest.approx(math.sqrt(40 * 80)), Level.STEP)
    assert _ratio(new) > 3 * _ratio(known)


def _ratio(forecast):
    return forecast.distribution.quantile(0.95) / forecast.distribution.quantile(0.05)


def test_sizes_count_where_they_helped():
    runs = [seen(TRAIN, 10 + 5 * size, size=size * 1e9)[0] for size in (1, 2, 3, 5, 8, 2)]
    forecast = history_of(*runs).predict(TRAIN, input_bytes=10e9)
    assert forecast.basis.by_size
    assert typical(forecast) == pytest.approx(60, rel=0.02)
    assert not forecast_of(history_of(*runs), TRAIN).basis.by_size


def test_nodes_count_by_their_speed_and_by_what_they_showed():
    history = History("team-a", NodeFactors({"fast": 2.0}))
    for run in seen(TRAIN, 100, 100, node="plain"):
        history.observe(run)
    assert typical(history.predict(TRAIN, "fast")) == pytest.approx(50)
    for _ in range(30):
        for node, seconds in (("plain", 100), ("slow", 150)):
            history.observe(seen(TRAIN, seconds, node=node)[0])
    on_plain, on_slow = (typical(history.predict(TRAIN, node)) for node in ("plain", "slow"))
    assert on_slow / on_plain == pytest.approx(1.5, rel=0.15)


@pytest.mark.parametrize("later", [0, 10])
def test_one_outlier_among_twenty_moves_the_bracket_little(later):
    """Right after it, and ten runs later, when it has become part of how forecasts miss."""
    usual = [100 + number % 3 for number in range(20)]
    runs = seen(TRAIN, *usual, 1000, *usual[:later])
    before, after = (
        forecast_of(history_of(*each), TRAIN).distribution for each in (runs[:20], runs)
    )
    assert after.median_seconds == pytest.approx(before.median_seconds, rel=0.02)
    assert after.quantile(0.95) > before.quantile(0.95)
    assert after.quantile(0.95) < 350
    assert after.quantile(0.05) > 40


def test_a_slow_run_of_a_wide_loop_does_not_decide_for_another_pipeline():
    """A thousand steps miss together, once."""
    random, wide = Random(3), [replace(LOOP, iteration=str(number)) for number in range(90)]
    other = StepIdentity("sales", "fit")
    history = History()
    for _ in range(30):
        history.observe([Observation(each, random.gauss(50, 2)) for each in wide])
    for run in seen(other, *(random.gauss(50, 2) for _ in range(6))):
        history.observe(run)
    before = forecast_of(history, other).distribution
    history.observe([Observation(each, 100) for each in wide])
    after = forecast_of(history, other).distribution
    assert after.quantile(0.05) == pytest.approx(before.quantile(0.05), rel=0.05)
    assert after.quantile(0.95) == pytest.approx(before.quantile(0.95), rel=0.15)


def test_of_a_wide_loop_few_items_are_compared_with_others(monkeypatch):
    """Each is, by what all others take with its arguments; no more count than of one run."""
    compared, of_step = [], Levels.of_step

    def counted(levels, *arguments):
        compared.append(arguments)
        return of_step(levels, *arguments)

    monkeypatch.setattr(Levels, "of_step", counted)
    history, random = History(), Random(5)
    for run in range(3):
        items = [replace(LOOP, iteration=f"{run}-{item}") for item in range(1000)]
        history.observe(
            [
                Observation(item, random.uniform(50, 70), arguments=(random.uniform(1, 9),))
                for item in items
            ]
        )
    assert len(compared) == 3 * MISSES_OF_RUN


def test_of_a_wide_loop_with_two_tasks_misses_of_both_count():
    """Of 120 misses of a run 48 count; every second one is of the task that varies."""
    random, history = Random(3), History()
    steady, varying = (
        [StepIdentity("churn", f"each.{task}", str(item)) for item in range(60)]
        for task in ("steady", "varying")
    )
    for _ in range(12):
        run = [
            Observation(each, 100 * random.lognormvariate(0, sigma))
            for pair in zip(steady, varying, strict=True)
            for each, sigma in zip(pair, (0.001, 0.3), strict=True)
        ]
        history.observe(run)
    misses = history.calibration._of_all[Level.ITERATION, 2]
    large = sum(abs(each) > 0.2 for each in misses.deviations)
    assert 0.3 < large / len(misses) < 0.6


def test_a_run_is_compared_with_what_was_known_before_it():
    """Not with itself: its miss is that of the forecast."""
    history = history_of(*seen(TRAIN, *[100] * 10))
    forecast = forecast_of(history, TRAIN).distribution
    history.observe(seen(TRAIN, 110)[0])
    (misses,) = (each for kind, each in history.calibration._of_all.items() if kind[1] == 2)
    assert misses.deviations[-1] == pytest.approx(math.log(1.1) / forecast.spread, rel=0.01)


def test_a_forecast_follows_what_other_namespaces_learn_of_a_node():
    factors = NodeFactors()
    history = History("team-a", factors)
    history.observe(seen(TRAIN, 100, node="slow")[0])
    before = typical(history.predict(TRAIN))
    for namespace in ("team-b", "team-c"):
        for _ in range(20):
            factors.learn(namespace, {"slow": [math.log(2)], "plain": [0.0]})
    assert before == pytest.approx(100)
    assert typical(history.predict(TRAIN)) < 80


def test_a_pipeline_that_becomes_slow_does_not_make_its_nodes_slow():
    steps = [StepIdentity("churn", f"step-{number}") for number in range(6)]
    history = History()
    for seconds in (60, 60, 60, 180, 180, 180):
        run = [Observation(each, seconds, f"n{number % 3}") for number, each in enumerate(steps)]
        history.observe(run)
    assert typical(forecast_of(history, steps[0])) == pytest.approx(180)
    assert typical(forecast_of(history, steps[0], "n0")) == pytest.approx(180)


@pytest.mark.parametrize("name", [None, "day"])
def test_a_change_is_followed_where_iterations_are_not_told_apart(name):
    """Or have another name each run, such as a date."""
    history = History()
    for run, seconds in enumerate([100] * 30 + [1000] * 3):
        iteration = None if name is None else f"{name}-{run}"
        history.observe(seen(replace(LOOP, iteration=iteration), seconds)[0])
    assert typical(forecast_of(history, replace(LOOP, iteration="new"))) == pytest.approx(1000)


def test_repeats_within_a_run_are_not_runs():
    history = history_of([Observation(TRAIN, 50)] * 3)
    assert forecast_of(history, TRAIN).basis.runs == 1


def test_a_step_that_takes_ten_times_as_long_since_yesterday_is_followed_within_three_runs():
    runs = seen(TRAIN, *[100] * 10, *[1000] * 3)
    after = [forecast_of(history_of(*runs[:count]), TRAIN).distribution for count in (10, 11, 13)]
    assert [each.median_seconds for each in after] == pytest.approx([100, 100, 1000])
    assert after[1].quantile(0.95) > after[0].quantile(0.95)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 0.8])
def test_intervals_of_90_percent_hold_nine_times_of_ten(sigma):
    """Eight steps, lognormal, 60 runs; from the fifth on, whatever they scatter."""
    random, history = Random(7), History()
    steps = [StepIdentity("churn", f"step-{number}") for number in range(8)]
    held = []
    for number in range(60):
        times = {step: 40 * (1 + index) * math.exp(random.gauss(0, sigma))
                 for index, step in enumerate(steps)}  # fmt: skip
        if number >= 5:
            for step, seconds in times.items():
                found = forecast_of(history, step).distribution
                held.append(found.quantile(0.05) <= seconds <= found.quantile(0.95))
        history.observe([Observation(step, seconds) for step, seconds in times.items()])
    assert 0.86 <= sum(held) / len(held) <= 0.95


@pytest.mark.parametrize("runs", [2, 3])
def test_intervals_after_two_and_three_runs_are_not_those_after_one(runs):
    """Twelve steps, of which those of the second run are missed by what a single value tells."""
    random, held = Random(1), []
    for pipeline in range(30):
        history = History()
        steps = [StepIdentity("churn", f"{pipeline}-{number}") for number in range(12)]
        usual = {step: 20 * random.lognormvariate(0, 1) for step in steps}
        for number in range(runs + 1):
            run = [
                Observation(step, seconds * random.lognormvariate(0, 0.12))
                for step, seconds in usual.items()
            ]
            if number == runs:
                for each in run:
                    found = forecast_of(history, each.identity).distribution
                    low, high = found.quantile(0.05), found.quantile(0.95)
                    held.append(low <= each.seconds <= high)
            history.observe(run)
    assert 0.88 <= sum(held) / len(held) <= 0.955


def test_after_three_runs_of_a_step_that_varies_by_far_the_range_is_bounded():
    """True times of nine in ten lie within a factor of 27; what one value told was far off."""
    ratios = []
    for seed in range(40):
        random, history = Random(seed), History()
        for _ in range(3):
            history.observe([Observation(TRAIN, 60 * random.lognormvariate(0, 1))])
        found = forecast_of(history, TRAIN).distribution
        ratios.append(found.quantile(0.95) / found.quantile(0.05))
    assert median(ratios) < 1000


@pytest.mark.parametrize("sigma", [0.03, 0.2, 0.5])
def test_a_few_misses_of_a_small_pipeline_widen_what_is_not_known_yet(sigma):
    """Three steps, of which two or three runs were seen: less than twenty misses."""
    held, widths = [], []
    steps = [StepIdentity("churn", f"step-{number}") for number in range(3)]
    for seed in range(40):
        random, history = Random(seed), History()
        for number in range(4):
            for step in steps:
                true = 300 * random.lognormvariate(0, sigma)
                if number >= 2:
                    found = forecast_of(history, step).distribution
                    low, high = found.quantile(0.05), found.quantile(0.95)
                    held.append(low <= true <= high)
                    widths.append(high / low)
            history.observe(
                [Observation(step, 300 * random.lognormvariate(0, sigma)) for step in steps]
            )
    assert sum(held) / len(held) >= 0.8
    if sigma < 0.08:
        assert median(widths) < 1.6


@pytest.mark.parametrize(
    ("seconds", "size"),
    [
        (-1.0, None),
        (math.nan, None),
        (math.inf, None),
        (1e12, None),
        (60.0, math.nan),
        (60.0, -1.0),
        (60.0, 1e308),
    ],
)
def test_what_cannot_be_true_teaches_nothing(seconds, size):
    first, last = seen(TRAIN, 90, 91, size=1e6)
    plain = history_of(first, last)
    with_bad = history_of(first, *seen(TRAIN, seconds, size=size), last)
    assert with_bad.predict(TRAIN, input_bytes=1e6) == plain.predict(TRAIN, input_bytes=1e6)
    assert plain.predict(TRAIN, input_bytes=math.nan) == plain.predict(TRAIN)


def test_memory_is_bounded_whatever_the_steps_are_called():
    history = History()
    for number in range(MOST_STEPS + 50):
        history.observe(seen(StepIdentity("churn", f"step-{number}", image=f"i-{number}"), 5)[0])
    steps = history._steps
    assert len(steps._steps) == MOST_STEPS
    assert len(steps._by_image) == MOST_STEPS
    assert forecast_of(history, StepIdentity("churn", "step-0")).basis.level is Level.NAMESPACE


def test_wide_loops_keep_fewer_values_of_each_iteration():
    history = History()
    for _ in range(30):
        names = range(MOST_ITERATIONS + 20)
        history.observe([Observation(replace(LOOP, iteration=str(each)), 5) for each in names])
        history.observe(seen(TRAIN, 5)[0])
    step = history._steps.get(LOOP.key)
    assert step is not None
    assert {len(each) for each in step.iterations} == {LEAST_OF_ITERATION}
    assert len(step.iterations) == MOST_ITERATIONS
    assert forecast_of(history, replace(LOOP, iteration="7")).basis.level is Level.ITERATION
    assert forecast_of(history, replace(LOOP, iteration="110")).basis.level is Level.STEP
    kept = history._steps.get(TRAIN.key)
    assert kept is not None
    assert [len(each) for each in kept.iterations] == [VALUES_OF_ITERATION]
    assert forecast_of(history, TRAIN).basis.runs == 30


def test_iterations_that_come_no_more_make_room():
    """Every run has other arguments."""
    history = History()
    for run in range(6):
        names = [f"{run}-{number}" for number in range(60)]
        history.observe([Observation(replace(LOOP, iteration=name), 5 + run) for name in names])
    assert forecast_of(history, replace(LOOP, iteration="5-0")).basis.level is Level.ITERATION
    assert forecast_of(history, replace(LOOP, iteration="0-0")).basis.level is Level.STEP


observations = st.builds(
    Observation,
    identity=st.builds(
        StepIdentity,
        pipeline=st.sampled_from(["a", "b"]),
        step=st.sampled_from(["x", "y"]),
        iteration=st.sampled_from(["", "1", "2", None]),
        component=st.sampled_from(["", "c"]),
        image=st.sampled_from(["", "i"]),
    ),
    seconds=st.floats(allow_nan=True, allow_infinity=True),
    node=st.sampled_from(["", "n", "m"]),
    input_bytes=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    arguments=st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5).map(tuple),
)


@given(st.lists(st.lists(observations, max_size=5), max_size=6), observations)
def test_any_past_makes_a_forecast_that_can_be_true(runs, wanted):
    history = history_of(*runs)
    arguments = {str(place): value for place, value in enumerate(wanted.arguments)}
    asked = (wanted.identity, wanted.node, wanted.input_bytes, arguments)
    forecast = history.predict(*asked)
    assert forecast == history_of(*runs).predict(*asked)
    if forecast is not None:
        found = forecast.distribution
        low, high = (found.quantile(each) for each in (0.05, 0.95))
        assert 0 < low <= found.median_seconds <= high < math.inf


def test_namespaces_share_nothing_but_factors():
    factors = NodeFactors()
    one, two = History("team-a", factors), History("team-b", factors)
    one.observe(seen(TRAIN, 90)[0])
    assert two.predict(TRAIN) is None


STEPS = [StepIdentity("churn", f"step-{number}") for number in range(7)]


def after_a_change(times, before, after, changed=STEPS, seed=0):
    """Runs of seven steps, of which some take so many times as long from one run on."""
    random, history = Random(seed), History()
    for run in range(before + after):
        common = random.gauss(0, 0.03)
        seconds = {
            step: 60.0 * (1 + index) * math.exp(common + random.gauss(0, 0.07))
            for index, step in enumerate(STEPS)
        }
        if run >= before:
            seconds |= {step: times * seconds[step] for step in changed}
        history.observe([Observation(step, each) for step, each in seconds.items()])
    return [
        (forecast_of(history, step).distribution, times * 60.0 * (1 + STEPS.index(step)))
        for step in changed
    ]


@pytest.mark.parametrize("times", [0.1, 0.5, 1.5, 2, 10])
@pytest.mark.parametrize("before", [6, 20])
@pytest.mark.parametrize("changed", [STEPS, STEPS[4:5]], ids=["all steps", "one step"])
def test_a_change_for_good_is_followed_within_three_runs_and_not_counted_twice(
    times, before, changed
):
    """Neither the typical time nor the range may be off by a multiple then."""
    for seed in range(2):
        for found, true in after_a_change(times, before, 3, changed, seed):
            assert found.median_seconds == pytest.approx(true, rel=0.25)
            assert true / 2.5 < found.quantile(0.05) < 1.2 * true
            assert true / 1.2 < found.quantile(0.95) < 2.5 * true


@pytest.mark.parametrize("times", [0.1, 0.5, 2, 10])
def test_two_runs_that_are_unlike_all_before_widen_the_range_to_both(times):
    for found, true in after_a_change(times, 6, 2):
        low, high = found.quantile(0.03), found.quantile(0.97)
        assert low < true < high
        assert low < true / times < high


def test_a_change_of_long_ago_no_longer_widens_the_range():
    unchanged = [each for each, _ in after_a_change(1, 60, 0)]
    changed = [each for each, _ in after_a_change(10, 20, 40)]
    for then, now in zip(unchanged, changed, strict=True):
        width = now.quantile(0.95) / now.quantile(0.05)
        assert width < 1.25 * then.quantile(0.95) / then.quantile(0.05)


def test_one_outlier_among_twenty_moves_neither_the_typical_time_nor_the_range_by_much():
    history = history_of(*seen(TRAIN, *(100 + number % 3 for number in range(20))))
    before = forecast_of(history, TRAIN).distribution
    history.observe(seen(TRAIN, 1000)[0])
    after = forecast_of(history, TRAIN).distribution
    assert after.median_seconds == pytest.approx(before.median_seconds, rel=0.02)
    assert after.quantile(0.95) < 1.5 * before.quantile(0.95)
