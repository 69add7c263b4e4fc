"""What is promised of a run, whoever promised it."""

from dataclasses import replace

from kfp_placement_controller.runs.run_promises import RunPromises
from kfp_placement_engine.model.promise import Promise, StepPromise, TimeRange

STEP = {"a": StepPromise(TimeRange(0, 0, 0), TimeRange(9, 10, 11))}


def a_promise(seconds: float) -> Promise:
    """The run ends so long after its submission."""
    ends = TimeRange(seconds - 30, seconds, seconds + 30)
    return Promise(ends=ends, planned_seconds=seconds, steps=STEP)


def test_what_was_promised_stays_while_it_is_about_right():
    first, last = a_promise(600), a_promise(600)
    promises = RunPromises(first, last)
    promises.take(a_promise(601), 60.0, 0.0, may_be_first=True)
    # A second more is not worth a write.
    assert promises.last is last
    assert promises.first is first


def test_a_first_promise_is_made_of_a_run_that_may_begin_before_a_step_has_ended():
    promises = RunPromises()
    promises.take(a_promise(600), 2.0, 0.0, may_be_first=False)
    after_start = replace(a_promise(600), after_start=True)
    promises.take(after_start, 2.0, 0.0, may_be_first=True)
    promises.take(Promise(unknown="no run seen"), 2.0, 0.0, may_be_first=True)
    assert promises.first is None
    promises.take(a_promise(600), 2.0, 0.0, may_be_first=True)
    assert promises.first is not None
    assert promises.first.made_seconds == 2.0
    # It is compared with each new one to be written.
    assert promises.first.steps == {}
