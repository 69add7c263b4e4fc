"""What is promised of a run, whoever promised it."""

from kfp_placement_controller.planning.run_promises import FirstPromise, RunPromises
from kfp_placement_engine.model.promise import Promise, TimeRange


def a_promise(seconds: float) -> Promise:
    """The run ends so long after its submission."""
    return Promise(ends=TimeRange(seconds - 30, seconds, seconds + 30), planned_seconds=seconds)


def test_what_an_earlier_planner_promised_stays_while_it_is_about_right():
    promises, last = RunPromises(), a_promise(600)
    first = FirstPromise(TimeRange(500, 600, 700), 600.0, 0.0, 0.9)
    promises.first, promises.last = first, last
    promises.take(a_promise(601), 60.0, 0.0, may_be_first=True)
    # A second more is not worth a write.
    assert promises.last is last
    assert promises.first is first


def test_a_first_promise_is_made_before_a_step_has_ended_and_not_before_the_submission():
    promises = RunPromises()
    promises.take(a_promise(600), -2.0, 0.0, may_be_first=False)
    assert promises.first is None
    promises.take(a_promise(600), -2.0, 0.0, may_be_first=True)
    assert promises.first is not None
    assert promises.first.made_seconds == 0.0
    promises.begin_again()
    assert promises.first is None
    assert promises.last is not None
