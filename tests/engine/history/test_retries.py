"""How often attempts at steps failed in past runs, and what that took."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_engine.history import Past, retries
from kfp_placement_engine.model.history import Observation, PastRun, Retried, StepIdentity
from kfp_placement_engine.model.promise import Retries, TriedAgain

START = datetime(2026, 11, 1, tzinfo=UTC)


def a_run(number: int, failed: int = 0, seconds: float = 0.0, *, ran: int = 1) -> PastRun:
    """Of one task whose steps take 10 s, with attempts that failed before."""
    identity = StepIdentity("p", "s")
    return PastRun(
        f"u{number}",
        "p",
        START + timedelta(hours=number),
        tuple(Observation(identity, 10.0) for _ in range(ran)),
        retried=(Retried("s", failed, seconds, max(1, ran)),) if failed else (),
    )


def known(*runs: PastRun) -> dict[str, Retries]:
    return Past(runs).retries.of("p")


NONE = TriedAgain(0.0, 0.0)


def test_what_never_failed_is_not_expected_to():
    assert known() == known(a_run(0), a_run(1)) == {}


def test_a_failed_attempt_takes_a_share_of_one_that_ends_well():
    """Two that took 15 s together, of a step that takes 10; before, there may have been none."""
    assert known(a_run(0, failed=2, seconds=15.0)) == {"s": (NONE, TriedAgain(2.0, 0.75))}


def test_in_the_runs_before_the_first_that_failed_none_had():
    found = known(*(a_run(number) for number in range(3)), a_run(3, failed=1, seconds=10.0))["s"]
    assert found == (NONE, NONE, NONE, NONE, TriedAgain(1.0, 1.0))


def test_a_step_that_is_new_was_not_in_the_runs_before():
    other = replace(a_run(0), steps=(Observation(StepIdentity("p", "other"), 10.0),))
    found = known(other, replace(other, uid="u1"), a_run(2), a_run(3, failed=1, seconds=10.0))["s"]
    assert found == (NONE, NONE, TriedAgain(1.0, 1.0))


def test_steps_of_a_loop_count_on_average():
    found = known(a_run(0, failed=1, seconds=5.0, ran=4))["s"]
    assert found == (NONE, TriedAgain(0.25, 0.5))


def test_what_does_not_fail_any_more_is_forgotten():
    runs = [a_run(0, failed=1, seconds=10.0), *map(a_run, range(1, retries.RUNS_KEPT))]
    assert TriedAgain(1.0, 1.0) in known(*runs)["s"]
    assert known(*runs, a_run(99)) == {}


@pytest.mark.parametrize(
    "odd",
    [Retried("s", 0, 5.0), Retried("s", -1, 5.0), Retried("s", 1, -5.0), Retried("s", 1, 1e9),
     Retried("s", 1, float("nan")), Retried("s", 1, 5.0, 0), Retried("s", 10**9, 5.0)],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_true_teaches_nothing(odd):
    assert known(replace(a_run(0), retried=(odd,))) == {}


def test_of_other_pipelines_nothing_counts():
    past = Past([a_run(0, failed=1, seconds=10.0)])
    assert past.retries.of("other") == {}


def test_only_attempts_at_steps_that_ended_well_count():
    assert known(a_run(0, failed=3, seconds=30.0, ran=0)) == {}


def test_tasks_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(retries, "MOST_TASKS", 2)
    tasks = [f"t{number}" for number in range(5)]
    run = PastRun(
        "u",
        "p",
        START,
        tuple(Observation(StepIdentity("p", task), 10.0) for task in tasks),
        retried=tuple(Retried(task, 1, 5.0) for task in tasks),
    )
    assert set(known(run)) == {"t3", "t4"}
