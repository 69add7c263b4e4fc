"""Which numeric argument run times follow: one that explains them, and none by chance."""

import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement_engine.history import History
from kfp_placement_engine.history.arguments import ValuesByArgument
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.history import Observation, StepIdentity

TRAIN = StepIdentity("churn", "train")
EPOCHS = (5, 10, 20, 8)


def seen(*runs):
    """A history of runs, each (seconds, size, arguments)."""
    history = History()
    for seconds, size, *arguments in runs:
        values = tuple(map(float, arguments))
        history.observe([Observation(TRAIN, seconds, "", size, values)])
    return history


def forecast_of(history, size=None, **arguments):
    forecast = history.predict(TRAIN, "", size, arguments)
    assert forecast is not None
    return forecast


def typical(forecast):
    return forecast.distribution.median_seconds


def by_epochs(seed=1):
    """Training takes 10 s an epoch, whatever the seed."""
    return seen(*((10 * each, None, each, seed * 7**each % 1000) for each in EPOCHS))


def test_a_time_follows_an_argument_beyond_what_was_seen():
    forecast = forecast_of(by_epochs(), epochs=40, seed=3)
    assert forecast.basis.by_argument == "epochs"
    assert not forecast.basis.by_size
    assert typical(forecast) == pytest.approx(400, rel=0.02)
    within = forecast_of(by_epochs(), epochs=9, seed=3)
    assert _width(forecast) > _width(within)


def _width(forecast):
    return forecast.distribution.quantile(0.95) / forecast.distribution.quantile(0.05)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_few_runs_say_nothing_of_arguments(runs):
    """After one run nobody knows whether epochs matter."""
    history = seen(*((10 * each, None, each) for each in EPOCHS[:runs]))
    forecast = forecast_of(history, epochs=40)
    assert forecast == forecast_of(history)
    assert forecast.basis.by_argument == ""


def test_an_argument_that_never_varied_explains_nothing():
    history = seen(*((10 * each, None, 7) for each in EPOCHS))
    assert forecast_of(history, epochs=40) == forecast_of(history)


def test_new_items_of_a_loop_follow_an_argument_as_the_others_do():
    """In a run all items have the same epochs; a loop over dates has new items each time."""
    history = History()
    for epochs in EPOCHS:
        run = [
            Observation(StepIdentity("p", "train", item), 10 * epochs * factor, arguments=(epochs,))
            for item, factor in (("north", 0.8), ("south", 1.0), ("west", 1.25))
        ]
        history.observe(run)
    new = history.predict(StepIdentity("p", "train", "east"), arguments={"epochs": 40.0})
    assert new is not None
    assert (new.basis.level, new.basis.by_argument) == (Level.STEP, "epochs")
    assert typical(new) == pytest.approx(400, rel=0.1)
    known = history.predict(StepIdentity("p", "train", "east"))
    assert known is not None
    assert typical(known) < 300


def test_seeds_seldom_count_and_times_stay_near_the_median():
    """Of a hundred steps with four seeds, seen eight times."""
    random, followed, ratios = Random(5), 0, []
    for _ in range(100):
        runs = [
            (100 * random.lognormvariate(0, 0.2), None, *(random.randrange(2**31) for _ in "abcd"))
            for _ in range(8)
        ]
        history = seen(*runs)
        forecast = forecast_of(history, **{each: random.randrange(2**31) for each in "abcd"})
        followed += forecast.basis.by_argument != ""
        ratios.append(math.log(typical(forecast) / typical(forecast_of(history))))
    assert followed < 20
    assert math.sqrt(sum(each**2 for each in ratios) / 100) < 0.1


def test_a_seed_changes_nothing():
    random = Random(3)
    runs = [(100 * random.lognormvariate(0, 0.1), None) for _ in range(12)]
    plain = seen(*runs)
    seeded = seen(*((*run, random.randrange(1000)) for run in runs))
    assert forecast_of(seeded, seed=4) == forecast_of(plain)


@pytest.mark.parametrize(("by_rows", "basis"), [(True, "rows"), (False, "")])
def test_of_size_and_arguments_that_counts_which_explains_best(by_rows, basis):
    random = Random(9)
    runs = []
    for _ in range(8):
        rows, size = random.randrange(1, 20), random.randrange(1, 20) * 1e9
        near = size / 1e9 * random.lognormvariate(0, 0.3)
        runs.append((20 + 10 * (rows if by_rows else near), size, rows if by_rows else near * 3))
    if not by_rows:
        runs = [(20 + 10 * size / 1e9, size, rows) for _, size, rows in runs]
    forecast = forecast_of(seen(*runs), 10e9, rows=10)
    assert forecast.basis.by_argument == basis
    assert forecast.basis.by_size is not by_rows
    assert typical(forecast) == pytest.approx(120, rel=0.05)


def test_a_new_iteration_of_a_loop_over_numbers_follows_them():
    """Items 1 to 6 of a loop take ten seconds each time their number."""
    history = History()
    for _ in range(3):
        history.observe(
            [
                Observation(StepIdentity("p", "fit", str(each)), 10.0 * each, "", None, (each,))
                for each in (1.0, 2.0, 3.0, 6.0)
            ]
        )
    forecast = history.predict(StepIdentity("p", "fit", "12"), "", None, {"depth": 12.0})
    assert forecast is not None
    assert forecast.basis.by_argument == "depth"
    assert typical(forecast) == pytest.approx(120, rel=0.05)


def test_values_with_other_arguments_do_not_count():
    """A version of before had one argument more."""
    runs = [(900, None, 5, 1), (900, None, 10, 1), *((10 * each, None, each) for each in EPOCHS)]
    assert typical(forecast_of(seen(*runs), epochs=40)) == pytest.approx(400, rel=0.02)
    assert forecast_of(seen(*runs), epochs=40, more=1).basis.by_argument == ""


@pytest.mark.parametrize("odd", [-1.0, math.nan, math.inf, 1e308, -1e308])
def test_what_is_no_amount_does_not_count(odd):
    history = by_epochs()
    assert forecast_of(history, epochs=odd, seed=3).basis.by_argument == ""
    assert forecast_of(history, epochs=0.0, seed=3).basis.by_argument == "epochs"
    negative = seen(*((10 * each, None, -each) for each in EPOCHS))
    assert forecast_of(negative, epochs=10) == forecast_of(negative)


arguments = st.lists(
    st.sampled_from([0.0, -0.0, 5e-324, 1e-160, 1e-3, 1.0, 2.0, -1.0, 1e15])
    | st.floats(-1e15, 1e15),
    min_size=2,
    max_size=2,
).map(tuple)


@given(
    st.lists(st.tuples(st.floats(-0.69, 19.6), arguments | st.just(())), min_size=1, max_size=12),
    arguments,
)
@example([(0.0, (each, 0.0)) for each in (5e-324, 1e15, 1e-200, 1.0)], (1e15, 1e15))
@example([(each / 3, (0.0, 10.0**each)) for each in range(9)], (0.0, 1e15))
def test_whatever_comes_is_a_finite_time(past, wanted):
    values = ValuesByArgument([each for each, _ in past], [each for _, each in past])
    told = values.next(wanted, 0.08)
    if told is not None:
        assert math.isfinite(told.found.log_seconds)
        assert math.isfinite(told.found.error)
        assert all(map(math.isfinite, told.found.misses))


def test_a_change_is_followed_where_an_argument_counts():
    """Twice as long for the same number of epochs; what is known of epochs goes on to count."""
    epochs = [5, 20, 10, 8, 15, 5, 20, 10, 8, 15, 12, 6, 18]
    seconds = [10.0 * each * (2 if number >= 10 else 1) for number, each in enumerate(epochs)]
    values = ValuesByArgument([math.log(each) for each in seconds], [(each,) for each in epochs])
    told = values.next((10,), 0.08)
    assert told is not None
    assert math.exp(told.found.log_seconds) == pytest.approx(200, rel=0.05)


def test_an_argument_far_beyond_all_seen_promises_no_years():
    epochs = [5, 20, 10, 8, 15]
    values = ValuesByArgument(
        [math.log(10 * each) for each in epochs], [(each,) for each in epochs]
    )
    far, farther = values.next((1e7,), 0.08), values.next((1e15,), 0.08)
    assert far == farther
    assert far is not None
    assert math.exp(far.found.log_seconds) == pytest.approx(2000, rel=0.05)


def trained(component, image):
    """Runs of some code, in which the first argument decides."""
    step = StepIdentity("churn", "train", component=component, image=image)
    return [[Observation(step, 10 * each, arguments=(float(each), 256.0))] for each in EPOCHS]


@pytest.mark.parametrize(
    ("component", "image", "counts"),
    [("code-1", "python:3", True), ("code-2", "python:3", False), ("code-2", "python:4", True)],
    ids=["the same", "other code", "another build"],
)
def test_arguments_of_other_code_do_not_count(component, image, counts):
    """`epochs, rows` may have become `batch, epochs`: values are kept without names."""
    history = History()
    for run in trained("code-1", "python:3"):
        history.observe(run)
    step = StepIdentity("churn", "train", component=component, image=image)
    arguments = {"batch": 256.0, "epochs": 20.0}
    found = history.predict(step, arguments=arguments)
    assert found is not None
    assert found.basis.by_argument == ("batch" if counts else "")
    if not counts:
        assert typical(found) < 200
    for run in trained(component, image):
        history.observe(run)
    found = history.predict(step, arguments={"epochs": 40.0, "rows": 256.0})
    assert found is not None
    assert found.basis.by_argument == "epochs"
