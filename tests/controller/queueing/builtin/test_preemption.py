"""Whom a run of higher priority makes wait."""

from kfp_placement_controller.queueing.builtin.preemption import preempted
from tests.controller.queueing.builders import GPU, a_demand, admitted, after, nodes, rules, waiting

QUOTA = rules(quota={"cpu": 8000})
URGENT = waiting("urgent", cpu=4, priority=10)


def victims(running, run=URGENT, its_rules=QUOTA):
    runs = preempted(run, running, its_rules, nodes(cpu=64, gpu=4))
    return [key.name for key in runs]


def test_the_latest_admission_is_suspended_first():
    running = [admitted("old", cpu=4), admitted("new", cpu=4, admitted_at=after(1))]
    assert victims(running) == victims(running[::-1]) == ["new"]


def test_the_lowest_priority_is_suspended_first():
    running = [
        admitted("low", cpu=4, priority=1),
        admitted("middle", cpu=4, priority=5, admitted_at=after(1)),
    ]
    assert victims(running) == ["low"]


def test_equal_and_higher_priorities_go_on():
    running = [admitted("equal", cpu=8, priority=10)]
    assert victims(running) == []


def test_nobody_is_suspended_for_a_run_that_would_not_fit_then():
    running = [admitted("low", cpu=4), admitted("high", cpu=4, priority=20)]
    assert victims(running, waiting("urgent", cpu=6, priority=10)) == []
    assert victims(running, waiting("urgent", cpu=9, priority=30)) == []


def test_several_are_suspended_where_one_is_not_enough():
    running = [admitted(f"r{number}", cpu=2, admitted_at=after(number)) for number in range(4)]
    assert victims(running) == ["r3", "r2"]


def test_runs_that_are_suspended_already_count_as_gone():
    running = [
        admitted("early", cpu=4),
        admitted("late", cpu=4, admitted_at=after(1), suspended=True),
    ]
    assert victims(running) == []


def test_a_gang_makes_room_on_nodes():
    gang = a_demand(gpu=3, gang=(3, {"gpu": 1}))
    running = [admitted("gang", gang), admitted("plain", gpu=4, admitted_at=after(1))]
    assert victims(running, waiting("urgent", gang, priority=1), rules(quota={GPU: 10})) == ["gang"]
