"""When waiting runs would begin if all went as planned."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.queueing.builtin.admission import waiting_verdicts
from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation, SimulationParams
from kfp_placement_controller.queueing.start_forecast import StartForecast
from kfp_placement_engine.model.keys import QueueKey, RunKey
from tests.controller.queueing.builders import (
    QUEUE,
    START,
    a_demand,
    admitted,
    after,
    nodes,
    rules,
    waiting,
)

ONE_RUN = rules(max_runs=1)
HOUR = 3600.0


def starts(queues, now=START, **params):
    """Hours after `START` at which runs begin, by name."""
    forecast = replace(queues, params=SimulationParams(**params)).forecast(now)
    return {key.name: (at - START) / timedelta(hours=1) for key, at in forecast.starts.items()}


def queues_of(waits, running, its_rules=ONE_RUN, cluster=None):
    return QueueSimulation(waits, running, its_rules, nodes(cpu=8) if cluster is None else cluster)


def test_runs_begin_one_after_the_other_as_those_before_them_end():
    waits = [waiting(name, makespan_seconds=HOUR) for name in ("a", "b")]
    running = [admitted("old", ends_at=after(0.5))]
    assert starts(queues_of(waits, running)) == {"a": 0.5, "b": 1.5}


def test_pods_that_run_together_wait_for_room_on_nodes():
    gang = a_demand(cpu=8, gang=(2, {"cpu": 4}))
    waits = [waiting("gang", gang, makespan_seconds=HOUR)]
    running = [admitted("other", gang, ends_at=after(2))]
    assert starts(queues_of(waits, running, rules(), nodes(cpu=8))) == {"gang": 2.0}


def test_a_run_that_is_overdue_lasts_a_little_longer():
    """It was to end after one hour and has run for ten."""
    waits = [waiting("next", makespan_seconds=HOUR)]
    running = [admitted("old", ends_at=after(1))]
    hours = starts(queues_of(waits, running), now=after(10), overdue_share=0.1)
    assert hours == pytest.approx({"next": 11.0})


def test_a_run_of_which_nothing_is_known_lasts_as_long_as_is_assumed():
    waits = [waiting("a"), waiting("b")]
    running = [admitted("old")]
    assert starts(queues_of(waits, running), unknown_seconds=HOUR) == {"a": 1.0, "b": 2.0}


def test_runs_that_no_end_helps_never_begin():
    waits = [
        waiting("unschedulable", unschedulable="step train: no node has a GPU"),
        waiting("too-large", gpu=1),
        waiting("next"),
    ]
    running = [admitted("old", ends_at=after(1))]
    forecast = queues_of(waits, running, rules()).forecast(START)
    assert {key.name for key in forecast.never} == {"unschedulable", "too-large"}
    assert {key.name for key in forecast.starts} == {"next"}


def test_where_nothing_runs_nothing_can_be_said():
    forecast = queues_of([waiting("a")], [], rules(max_runs=0)).forecast(START)
    assert forecast == StartForecast(never=frozenset({RunKey("team", "a")}))


def test_work_is_bounded_and_the_rest_begins_later():
    cluster = nodes(cpu=8)
    waits = [waiting(f"run-{n:03}", cpu=8, makespan_seconds=HOUR) for n in range(100)]
    running = [admitted("old", cpu=8, ends_at=after(1))]
    queues = queues_of(waits, running, rules(overcommit=1.0), cluster)
    forecast = replace(queues, params=SimulationParams(most_tries=1_000)).forecast(START)
    begun = len(forecast.starts)
    assert 5 < begun < 20
    assert len(forecast.later) == 100 - begun
    assert set(forecast.later.values()) == {after(begun)}
    assert all(run.key in forecast for run in waits)


def test_only_the_first_of_very_many_runs_are_simulated():
    waits = [waiting(f"run-{n:03}", makespan_seconds=HOUR) for n in range(40)]
    running = [admitted("old", ends_at=after(1))]
    forecast = replace(queues_of(waits, running), params=SimulationParams(most_runs=10)).forecast(
        START
    )
    assert {key.name for key in forecast.starts} == {f"run-{n:03}" for n in range(10)}
    assert len(forecast.later) == 30
    assert set(forecast.later.values()) == {after(10)}


def test_room_that_is_kept_for_a_run_is_not_promised_to_another():
    """The large run has waited for 13 hours, so the small one behind it waits for its end."""
    its_rules = rules(overcommit=1.0, reserve_after_seconds=12 * HOUR)
    waits = [
        waiting("large", cpu=8, makespan_seconds=HOUR),
        waiting("small", cpu=2, submitted_at=after(12), makespan_seconds=HOUR),
    ]
    running = [
        admitted("short", cpu=4, ends_at=after(14)),
        admitted("long", cpu=4, ends_at=after(15)),
    ]
    hours = starts(queues_of(waits, running, its_rules), now=after(13))
    assert hours == {"large": 15.0, "small": 16.0}


MADE = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.integers(0, 2),
        st.integers(1, 50),
        st.integers(0, 3),
        st.sampled_from([QUEUE, QueueKey("team", "gpu")]),
    ),
    min_size=1,
    max_size=8,
)


@given(runs=MADE, split=st.integers(0, 8), max_runs=st.none() | st.integers(1, 3))
def test_the_simulation_equals_decisions_made_at_every_end(runs, split, max_runs):
    """Whoever calls `waiting_verdicts` at every end of a run gets the same starts."""
    its_rules = rules(max_runs=max_runs, overcommit=1.5)
    cluster = nodes(2, cpu=4, gpu=2)
    running = [
        admitted(f"r{n}", cpu=cpu, gpu=gpu, queue=queue, ends_at=after(hours))
        for n, (cpu, gpu, hours, _, queue) in enumerate(runs[:split])
    ]
    waits = [
        waiting(
            f"w{n}",
            a_demand(cpu=cpu, gpu=gpu),
            queue=queue,
            priority=priority,
            makespan_seconds=hours * HOUR,
        )
        for n, (cpu, gpu, hours, priority, queue) in enumerate(runs[split:])
    ]
    # What fits now is let run first, as after every decision.
    waits, running = decided(waits, running, its_rules, cluster, START)
    expected: dict[RunKey, datetime] = {}
    left, going = waits, running
    while going:
        at = min(run.ends_at for run in going)
        going = [run for run in going if run.ends_at > at]
        before = {run.key for run in left}
        left, going = decided(left, going, its_rules, cluster, at)
        expected |= dict.fromkeys(before - {run.key for run in left}, at)
    queues = QueueSimulation(waits, running, its_rules, cluster)
    assert queues.forecast(START).starts == expected


def decided(waits, running, its_rules, cluster, now):
    verdicts = waiting_verdicts(waits, running, its_rules, cluster, now)
    let = {each.key for each in verdicts if each.is_admitted}
    begun = [run.as_admitted(now) for run in waits if run.key in let]
    return [run for run in waits if run.key not in let], [*running, *begun]


def test_forecasts_of_several_sets_of_queues_are_put_together():
    a, b, c = (RunKey("team", name) for name in "abc")
    first = StartForecast({a: after(1)})
    other = StartForecast(later={b: after(2)}, never=frozenset({c}))
    assert first.together_with(other) == StartForecast({a: after(1)}, {b: after(2)}, frozenset({c}))
