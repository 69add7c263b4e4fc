"""Gains of changes by past runs, held against what happens where the change is made."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.changes import AddNodes
from kfp_placement_engine.model.history import Observation, PastRun
from kfp_placement_engine.planning.applied_changes import with_changes
from kfp_placement_engine.planning.best_changes import best_changes
from kfp_placement_engine.planning.learned_times import with_history
from kfp_placement_engine.planning.plan_options import PlanOptions, lowering_options_of
from kfp_placement_engine.planning.plan_runs import plan_run
from kfp_placement_engine.planning.promises import SampledEnd, sampled_end
from kfp_placement_engine.planning.warm_start import replayed
from kfp_placement_engine.planning.what_if import what_if
from kfp_placement_engine.search.simulation import simulate_durations
from tests.support.builders import a_cluster, a_run, a_step, nodes

OPTIONS = PlanOptions(generations=3, compare=())
CASES = 120
ADDED = AddNodes("n1", 1)


class Case:
    """A made-up run on two full nodes, whose steps take other times in every run.

    Attributes:
        graph: the run, without run times.
        past: ten runs of it.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        names = [f"s{number}" for number in range(14)]
        self._typical = {name: self._rng.lognormvariate(5, 0.8) for name in names}
        steps = [
            a_step(name, *self._causes(names[:at]), cpu=2, seconds=None)
            for at, name in enumerate(names)
        ]
        self.graph = a_run(*steps, name="made-up")
        self.past = Past(PastRun(f"r{at}", "made-up", *self._ended(at)) for at in range(10))

    def _causes(self, before):
        return self._rng.sample(before, 1) if before and self._rng.random() < 0.4 else []

    def _ended(self, number):
        seconds = self.run_times()
        steps = tuple(
            Observation(step_identity("made-up", step), seconds[step.name], "n1")
            for step in self.graph.steps
        )
        return datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=number), steps

    def run_times(self):
        """Of all steps, in one run: some runs are slow as a whole."""
        slow = self._rng.lognormvariate(0, 0.05)
        return {
            name: typical * slow * self._rng.lognormvariate(0, 0.12)
            for name, typical in self._typical.items()
        }


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
def test_the_gain_of_a_node_that_is_added_lies_in_its_range(dispatch):
    held, cluster = 0, a_cluster(*nodes(2))
    options = replace(OPTIONS, dispatch=dispatch)
    for seed in range(CASES):
        case = Case(seed)
        learned = with_history(case.graph, case.past)
        graph, forecast = learned.graph, learned.forecast
        present = plan_run(graph, cluster, options, forecast=forecast)
        answer = what_if(graph, cluster, present, [ADDED], options, forecast=forecast)
        times = case.run_times()
        after_graph, after_cluster = with_changes(graph, cluster, [ADDED])
        gain = ended(graph, cluster, present, times, options) - ended(
            after_graph, after_cluster, answer.plan, times, options
        )
        assert answer.gain_range is not None
        held += answer.gain_range.low_seconds <= gain <= answer.gain_range.high_seconds
    assert held / CASES >= 0.85


def ended(graph, cluster, plan, seconds, options):
    """When the run ends by its plan where its steps take these times."""
    runs = (ActiveRun("", graph),)
    lowered = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    durations = lowered.problem.arrays.duration_seconds.copy()
    for name, activity in lowered.step_activities[0].items():
        durations[activity] = seconds[name]
    # Nothing holds a step back until its planned start.
    placement = replace(replayed(lowered, plan), not_before=np.empty(0))
    _, ends = simulate_durations(lowered.problem, placement, durations[None])
    return float(np.max(ends))


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
def test_gains_are_of_the_ends_that_are_promised(dispatch):
    """Of the plan there is, played again: its steps wait for no planned start."""
    options, cluster = replace(OPTIONS, dispatch=dispatch), a_cluster(*nodes(2))
    learned = with_history(Case(3).graph, Case(3).past)
    plan = plan_run(learned.graph, cluster, options, forecast=learned.forecast)
    runs = (ActiveRun("", learned.graph, forecast=learned.forecast),)
    lowered = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    sampled = sampled_end(lowered, replayed(lowered, plan), options.seed)
    assert sampled is not None
    promised = plan.promise.ends if plan.promise is not None else None
    assert promised is not None
    low, high = np.quantile(sampled.seconds * sampled.factors, (0.05, 0.95))
    assert (low, high) == pytest.approx((promised.low_seconds, promised.high_seconds))


def test_without_past_runs_there_is_no_range():
    graph, cluster = a_run(a_step("a"), a_step("b")), a_cluster(*nodes(2))
    present = plan_run(graph, cluster, OPTIONS)
    assert what_if(graph, cluster, present, [ADDED], OPTIONS).gain_range is None
    assert all(each.gain_range is None for each in best_changes(graph, cluster, present).best)


def test_where_too_little_is_known_there_is_no_range_and_suggestions_stay():
    case, cluster = Case(1), a_cluster(*nodes(2))
    learned = with_history(replace(case.graph, name="another"), Past())
    graph, forecast = learned.graph, learned.forecast
    present = plan_run(graph, cluster, OPTIONS, forecast=forecast)
    answer = what_if(graph, cluster, present, [ADDED], OPTIONS, forecast=forecast)
    assert answer.gain_range is None
    best = best_changes(graph, cluster, present, OPTIONS, forecast=forecast).best
    assert len(best) > 0
    assert all(each.gain_range is None for each in best)


def test_what_may_as_well_be_a_loss_is_no_suggestion():
    case, cluster = Case(3), a_cluster(*nodes(2))
    learned = with_history(case.graph, case.past)
    present = plan_run(learned.graph, cluster, OPTIONS, forecast=learned.forecast)
    told = best_changes(learned.graph, cluster, present, OPTIONS, forecast=learned.forecast).best
    untold = best_changes(learned.graph, cluster, present, OPTIONS).best
    assert {each.change for each in told} <= {each.change for each in untold}
    assert told
    for each in told:
        assert each.gain_range is not None
        assert 0 <= each.gain_range.low_seconds <= each.gain_range.high_seconds
        assert each.typical_end_seconds is not None


@pytest.mark.parametrize(
    ("gains", "is_told", "is_unsure"),
    [
        ([0.0] * 40 + [170.0] * 160, True, False),
        ([-1.0] * 40 + [170.0] * 160, False, True),
        ([0.0] * 160 + [170.0] * 40, False, False),
        ([-1.0] * 40 + [0.0] * 160, False, False),
        ([-1.0] * 40 + [5.0] * 160, False, False),
    ],
    ids=["never a loss", "at times a loss", "mostly nothing", "never a gain", "hardly a gain"],
)
def test_what_is_never_a_loss_is_suggested_and_what_may_be_one_is_named(
    monkeypatch, gains, is_told, is_unsure
):
    case, cluster = Case(3), a_cluster(*nodes(2))
    learned = with_history(case.graph, case.past)
    present = plan_run(learned.graph, cluster, OPTIONS, forecast=learned.forecast)
    ends = np.full(200, 1000.0)

    def sampled(_trier, change, _trial):
        return SampledEnd(ends if change is None else ends - np.array(gains), np.ones(200))

    monkeypatch.setattr(f"{best_changes.__module__}._Trier.sampled", sampled)
    found = best_changes(learned.graph, cluster, present, OPTIONS, forecast=learned.forecast)
    assert bool(found.best) == is_told
    assert bool(found.unsure) == is_unsure
    for each in found.best:
        assert each.typical_end_seconds == 830.0
        assert each.told_gain_seconds == 170.0
