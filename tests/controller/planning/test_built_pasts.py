"""What others change costs no namespace its past, and none what is known of nodes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kfp_placement_controller.observed.histories import ObservedHistory, observe_history
from kfp_placement_controller.planning.actions import DeleteHistory
from kfp_placement_controller.planning.coordinator import IDLE_PAUSE
from kfp_placement_controller.planning.histories import Histories
from kfp_placement_engine.contract.pipeline_history import ForgottenStep
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.history.history import History
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import MOST_PIPELINES, Observation, PastRun, StepIdentity
from kfp_placement_kube.change import Change
from tests.controller.planning.builders import START
from tests.controller.planning.noisy_cluster import a_coordinator
from tests.controller.planning.past_runs import a_history, a_past_run
from tests.controller.planning.test_namespace_pasts import (
    built,
    forecast_seconds,
    learned,
    many_pipelines,
    store,
    with_runs,
)

TWICE = 2.0
RUNS = 10


def a_run(namespace: str, pipeline: str, number: int) -> PastRun:
    """Eight steps on two nodes, of which one takes twice as long; they change places."""
    steps = tuple(
        Observation(
            StepIdentity(pipeline, f"step-{each}", "", f"{each:016d}", "i" * 16),
            100.0 * (TWICE if (each + number) % 2 else 1.0),
            "slow" if (each + number) % 2 else "fast",
        )
        for each in range(8)
    )
    run = a_past_run(pipeline, number, seconds=300.0)
    return replace(run, uid=f"{namespace}-{pipeline}-{number}", steps=steps)


def two_tenants(pipelines: int = 2) -> Histories:
    """Both have seen the nodes; nothing is built."""
    known = Histories(enabled=True)
    for namespace in "ab":
        for number in range(pipelines):
            name = f"p{number}"
            store(known, a_history(name, runs_of(namespace, name), namespace))
    return known


def runs_of(namespace: str, pipeline: str) -> Sequence[PastRun]:
    return [a_run(namespace, pipeline, each) for each in range(RUNS)]


def slow_over_fast(known: Histories, namespace: str = "c") -> float:
    """How much longer a namespace expects steps to take on the slow node."""
    factors = known.factors
    return math.exp(factors.log_factor("slow", namespace) - factors.log_factor("fast", namespace))


def basis_of(past: History, step: str) -> Basis:
    """What a forecast of a step of the pipeline rests on."""
    forecast = past.predict(StepIdentity("p", step))
    assert forecast is not None
    return forecast.basis


def edited(known: Histories, before: dict[str, Any], after: dict[str, Any]) -> None:
    metadata = after["metadata"]
    key = (metadata["namespace"], metadata["name"])
    known.changed(Change(key, observe_history(before), observe_history(after)))


def test_nodes_are_known_while_a_namespace_is_built_again():
    known = two_tenants()
    for namespace in "ab":
        built(known, namespace, "p0")
    factor = slow_over_fast(known)
    assert factor > 1.5
    assert not known.run_ended("a", replace(a_run("a", "p0", 3), ended_at=START.replace(year=2027)))
    known._pasts._left = 1
    assert known.past("a", "p0") is not None
    assert known.is_building
    assert not known._pasts.awaits("a")
    assert slow_over_fast(known) == factor
    while known.is_building:
        known.build()
        assert slow_over_fast(known) == pytest.approx(factor, rel=0.1)
        assert slow_over_fast(known, "a") > 1.5


def test_a_new_planner_hears_of_nodes_from_namespaces_without_runs():
    known = two_tenants()
    built(known, "c", "p0")
    assert slow_over_fast(known) == 1
    for _ in range(50):
        assert not known.is_building
        assert known.is_hearing == (not slow_over_fast(known) > 1.5)
        known.build()
    assert slow_over_fast(known) > 1.5
    assert not known.is_hearing
    # What else they tell is not kept.
    assert {namespace for namespace, _ in known._pasts._kept} == {"c"}
    assert built(known, "a", "p0") is not None


def test_a_namespace_that_is_asked_for_while_its_nodes_are_heard_of_is_built_once():
    known = with_runs(*(a_past_run("p", number, steps=200) for number in range(20)))
    known.build()
    begun = known._pasts._building["team", ""]
    assert known.past("team", "p") is None
    assert known.is_building
    built(known)
    assert known._pasts._kept["team", ""] is begun


def test_a_planner_has_time_for_what_others_saw_of_nodes_while_its_runs_go_on():
    coordinator, now = a_coordinator(), START
    coordinator.histories = known = two_tenants()
    assert coordinator.next_at(now) == now + timedelta(seconds=5)
    coordinator.lead(1, [], now)
    assert coordinator.next_at(now) == now + IDLE_PAUSE
    while known.is_hearing:
        coordinator.tick(now)
        now += IDLE_PAUSE
    assert slow_over_fast(known) > 1.5


def full_namespace() -> tuple[Histories, dict[str, ObservedHistory]]:
    known = Histories(enabled=True)
    stored = {}
    for number in range(MOST_PIPELINES):
        raw = a_history(f"p{number}", [a_past_run(f"p{number}", number)])
        stored[f"p{number}"] = observe_history(raw)
        store(known, raw)
    return known, stored


def test_to_delete_what_is_too_much_forgets_nothing():
    known, stored = full_namespace()
    before = built(known, pipeline="p7")
    known.run_ended("team", a_past_run("new", 1_000))
    delete, _ = known.due(START)
    assert isinstance(delete, DeleteHistory)
    known.changed(Change(("team", delete.name), stored[delete.name], None))
    assert known.past("team", "p7") is before
    assert not known.is_building
    assert not known._pasts._outdated


def test_what_somebody_else_deletes_is_forgotten():
    known, stored = full_namespace()
    assert forecast_seconds(built(known, pipeline="p7"), "p7") == pytest.approx(60, rel=0.01)
    known.changed(Change(("team", "p7"), stored["p7"], None))
    known._pasts._left = 1
    assert forecast_seconds(built(known, pipeline="p7"), "p7") == pytest.approx(60, rel=0.01)
    while known.is_building:
        known.build()
    of_others = built(known, pipeline="p7").past.steps.predict(StepIdentity("p7", "step-0"))
    assert of_others is not None
    assert of_others.basis.level != "step"


LONG_AGO = START - timedelta(days=1)


@pytest.mark.parametrize(
    "spec",
    [
        {"forget_before": LONG_AGO},
        {"forget_steps": (ForgottenStep(step="step-0", before=LONG_AGO),)},
    ],
)
def test_an_edit_that_forgets_nothing_builds_nothing(spec):
    runs = [a_past_run("p", number) for number in range(5)]
    known = with_runs(*runs)
    before = built(known)
    edited(known, a_history("p", runs), a_history("p", runs, **spec))
    assert known.past("team", "p") is before
    assert not known._pasts._outdated


def test_a_step_that_is_forgotten_is_so_in_runs_that_are_not_written_yet():
    runs = [a_past_run("p", number, steps=2) for number in range(3)]
    known = with_runs(*runs)
    built(known)
    known.run_ended("team", a_past_run("p", 5, seconds=5_000, steps=2))
    now = START + timedelta(hours=6)
    forgotten = (ForgottenStep(step="step-0", before=now),)
    after = a_history("p", runs, forget_steps=forgotten)
    edited(known, a_history("p", runs), after)
    past = built(known).past.steps
    assert basis_of(past, "step-1").runs == 4
    assert basis_of(past, "step-0").level not in ("step", "iteration")
    # One that is heard of late, too.
    known.run_ended("team", a_past_run("p", 4, seconds=5_000, steps=2))
    assert basis_of(past, "step-0").level not in ("step", "iteration")
    assert basis_of(past, "step-1").runs == 5


def test_runs_that_are_forgotten_before_they_are_written_do_not_count():
    runs = [a_past_run("p", 1)]
    known = with_runs(*runs)
    built(known)
    known.run_ended("team", a_past_run("p", 5, seconds=5_000))
    now = START + timedelta(hours=6)
    edited(known, a_history("p", runs), a_history("p", runs, forget_before=now))
    assert forecast_seconds(built(known)) is None


def test_a_pipeline_rests_on_its_namespace_as_that_is_built_again():
    known, anew = many_pipelines(), many_pipelines()
    learned(known, "p3")
    run = a_past_run("p4", 3_000, seconds=900, steps=5, component="c" * 16)
    for each in (known, anew):
        each.run_ended("team", run)
    assert not known.run_ended("team", replace(run, ended_at=run.ended_at + timedelta(seconds=1)))
    learned(known, "p3")
    while known.is_building:
        known.build()
    assert built(known, pipeline="p3").past.steps._of_namespace is (
        known._pasts._kept["team", ""].past.steps
    )
    for found, expected in zip(
        learned(known, "p3").graph.steps, learned(anew, "p3").graph.steps, strict=True
    ):
        assert found.duration_basis == expected.duration_basis
        assert found.duration_seconds == pytest.approx(expected.duration_seconds, rel=0.01)


def test_a_past_that_is_outdated_answers_until_the_policy_s_days_count():
    known = with_runs(*(a_past_run("p", number, steps=200) for number in range(20)))
    before = built(known)
    known.use(HistorySettings(keep_days=1))
    assert known.past("team", "p") is before
    while known.is_building:
        known.build()
    assert known.past("team", "p") is not before


def test_who_leads_again_answers_nothing_that_others_have_changed_since():
    runs = [a_past_run("p", number, steps=200) for number in range(20)]
    known = with_runs(*runs)
    before = built(known)
    known.lead()
    assert known.past("team", "p") is before
    later = a_past_run("p", 100, seconds=600, steps=200)
    edited(known, a_history("p", runs), a_history("p", [*runs, later]))
    known.lead()
    assert known.past("team", "p") is None
    assert basis_of(built(known).past.steps, "step-0").runs == 21


def test_runs_that_are_found_at_the_start_in_any_order_count_as_they_ended():
    """Six took 60 s, and six later ones 180 s; those are heard of first."""
    known = Histories(enabled=True)
    assert built(known) is not None
    runs = [a_past_run("p", number, seconds=60.0 if number < 6 else 180.0) for number in range(12)]
    for run in (*runs[6:], *runs[:6]):
        known.run_ended("team", run)
    for _ in range(100):
        known.past("team", "p")
        known.build()
    assert forecast_seconds(built(known)) == pytest.approx(180, rel=0.02)
