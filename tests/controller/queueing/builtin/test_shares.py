"""Shares of queues in the cluster: who is tried next, and whose runs stop for a queue with less."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.queueing.builtin.admission import waiting_verdicts
from kfp_placement_controller.queueing.builtin.preemption import first_preemption, preempted
from kfp_placement_controller.queueing.runs import QueueRules
from kfp_placement_controller.queueing.verdicts import Lack, Rule
from kfp_placement_engine.model.keys import QueueKey
from tests.controller.queueing.builders import (
    GPU,
    START,
    a_demand,
    admitted,
    after,
    nodes,
    waiting,
)
from tests.support.effort import cpu_seconds

A, B, C = (QueueKey(name, "default") for name in ("a", "b", "c"))
QUEUES = (A, B, C)
CLUSTER = nodes(cpu=12, gpu=4)
WEIGHTS = (1, 2, 4)


def equal(**fields):
    return {queue: QueueRules(overcommit=1.0, **fields) for queue in QUEUES}


@st.composite
def cases(draw):
    """Waiting and admitted runs of three namespaces, some with two queues, and weights."""
    rules = {
        queue: QueueRules(
            weight=float(draw(st.sampled_from(WEIGHTS))),
            overcommit=draw(st.sampled_from([1.0, 2.0])),
        )
        for queue in QUEUES
    }
    # A second queue gives a namespace no larger share.
    rules |= {queue._replace(name="x"): each for queue, each in rules.items()}

    def made(build, name, **fields):
        amounts = a_demand(cpu=draw(st.integers(0, 9)), gpu=draw(st.integers(0, 3)))
        priority = draw(st.integers(-2, 2))
        queue = draw(st.sampled_from([*rules]))
        return build(name, amounts, queue=queue, priority=priority, **fields)

    hours = st.integers(0, 5).map(after)
    runs = [
        made(waiting, f"w{n}", submitted_at=draw(hours)) for n in range(draw(st.integers(0, 7)))
    ]
    running = [
        made(admitted, f"r{n}", admitted_at=draw(hours)) for n in range(draw(st.integers(0, 7)))
    ]
    return runs, running, rules


def share(queue, runs, rules):
    """By the definition: above nominal, over what can be lent, by weight."""
    weight = Fraction(rules[queue].weight)
    part = weight / sum(Fraction(rules[each].weight) for each in QUEUES if each in rules)
    there = {"cpu": 12000, GPU: 4, "pods": 110}
    overcommit = Fraction(rules[queue].overcommit)
    of_namespace = [run for run in runs if run.queue.namespace == queue.namespace]
    taken = {
        name: sum(min(run.demand.peak.get(name, 0), most) for run in of_namespace)
        for name, most in there.items()
    }
    return max(0, *((taken[name] / (there[name] * overcommit) - part) / weight for name in there))


@given(cases())
def test_the_next_run_is_that_whose_queue_then_has_the_smallest_share(case):
    runs, running, rules = case
    by_key = {run.key: run for run in runs}
    verdicts = waiting_verdicts(runs, running, rules, CLUSTER, after(5))
    used = {run.queue.namespace for run in [*runs, *running]}
    rules = {queue: each for queue, each in rules.items() if queue.namespace in used}
    taking = list(running)
    left = [by_key[each.key] for each in verdicts]
    for verdict in verdicts:
        heads = {run.queue.namespace: run for run in reversed(left)}.values()
        run = left.pop(0)
        assert run == min(
            heads,
            key=lambda head: (
                share(head.queue, [*taking, head], rules), head.submitted_at, head.key,
            ),
        )  # fmt: skip
        if verdict.is_admitted:
            taking.append(run)


@given(cases())
def test_others_are_stopped_only_while_they_borrow_more_than_the_run_s_queue_then_has(case):
    runs, running, rules = case
    for run in runs:
        stopped = preempted(run, running, rules, CLUSTER)
        victims = [each for each in running if each.key in stopped]
        for each in victims:
            if each.key.namespace == run.key.namespace:
                assert each.priority < run.priority
                continue
            # Before any of them stops.
            mine = share(run.queue, [*running, run], rules)
            assert mine < share(each.queue, running, rules)


@given(cases())
def test_queues_do_not_stop_each_other_s_runs_in_turn(case):
    """What was stopped for a run waits, and stops nobody that runs then."""
    runs, running, rules = case
    runs = [replace(run, priority=0) for run in runs]
    running = [replace(run, priority=0) for run in running]
    for run in runs:
        stopped = preempted(run, running, rules, CLUSTER)
        staying = [each for each in running if each.key not in stopped]
        now = [*staying, run.as_admitted(after(6))]
        for each in running:
            if each.key in stopped:
                again = waiting(each.key.name, each.demand, queue=each.queue)
                assert run.key not in preempted(again, now, rules, CLUSTER)


def test_a_priority_alone_stops_no_run_of_another_namespace():
    running = [admitted("low", cpu=4, queue=A, priority=-5), admitted("own", cpu=8, queue=B)]
    urgent = waiting("urgent", cpu=2, queue=B, priority=1_000_000)
    assert [key.name for key in preempted(urgent, running, equal(), CLUSTER)] == ["own"]
    for cpu in (4, 12):
        alone = [admitted("low", cpu=cpu, queue=A, priority=-5)]
        large = waiting("urgent", cpu=12, queue=B, priority=1_000_000)
        assert preempted(large, alone, equal(), CLUSTER) == []


def test_an_administrator_lets_a_priority_count_across_namespaces():
    running = [admitted("low", cpu=4, queue=A), admitted("same", cpu=8, queue=C, across_priority=5)]
    urgent = waiting("urgent", cpu=4, queue=B, priority=9, across_priority=5)
    assert [key.name for key in preempted(urgent, running, equal(), CLUSTER)] == ["low"]
    assert preempted(replace(urgent, demand=a_demand(cpu=8)), running, equal(), CLUSTER) == []


def test_a_queue_below_its_share_stops_the_youngest_runs_of_the_one_that_borrows_most():
    running = [
        *(admitted(f"most-{n}", cpu=2, queue=A, admitted_at=after(n)) for n in range(4)),
        admitted("some", cpu=4, queue=C, admitted_at=after(9)),
    ]
    run = waiting("run", cpu=4, queue=B)
    stopped = preempted(run, running, equal(), CLUSTER)
    assert [key.name for key in stopped] == ["most-3", "most-2"]
    notes = first_preemption([run], running, [], {run.key: "uid"}, equal(), CLUSTER)
    assert {stop.note for stop in notes.values()} == {
        "suspended: a run of another namespace needs the room"
    }


@pytest.mark.parametrize("weights", [(1, 2, 1), (1, 1, 1), (4, 1, 3)])
def test_queues_that_always_have_runs_get_shares_by_their_weights(weights):
    rules = {
        queue: QueueRules(overcommit=1.0, weight=weight)
        for queue, weight in zip(QUEUES, weights, strict=True)
    }
    runs = [waiting(f"w{n}", cpu=1, queue=queue) for queue in QUEUES for n in range(40)]
    verdicts = waiting_verdicts(runs, [], rules, nodes(cpu=24), START)
    begun = [each.key.namespace for each in verdicts if each.is_admitted]
    expected = [24 * weight // sum(weights) for weight in weights]
    assert [begun.count(queue.namespace) for queue in QUEUES] == expected


def test_a_thousand_runs_at_once_keep_no_other_namespace_waiting():
    flood = [waiting(f"w{n}", cpu=1, queue=A, priority=1_000_000) for n in range(1000)]
    late = waiting("late", cpu=2, queue=B, submitted_at=after(1))
    verdicts = waiting_verdicts([*flood, late], [], equal(aging_per_hour=1.0), CLUSTER, after(1))
    # The half of the cluster that is its own is tried first: its runs are older.
    assert verdicts[6].key == late.key
    assert verdicts[6].is_admitted
    # Where the flood has filled the cluster, its youngest runs stop.
    running = [admitted(f"r{n}", cpu=1, queue=A, admitted_at=after(n)) for n in range(12)]
    assert [key.name for key in preempted(late, running, equal(), CLUSTER)] == ["r11", "r10"]


def test_a_flood_does_not_keep_others_from_stopping_it():
    """While its own runs are the older ones, and start at every decision."""
    running = [admitted(f"r{n}", cpu=1, queue=A, admitted_at=after(n)) for n in range(11)]
    new = admitted("new", cpu=1, queue=A, admitted_at=after(12), is_fixed=True)
    flood = [waiting(f"w{n}", cpu=9, queue=A) for n in range(1000)]
    late = waiting("late", cpu=2, queue=B, submitted_at=after(1))
    uids = {run.key: run.key.name for run in (*flood, late)}
    stops = first_preemption([*flood, late], [*running, new], [], uids, equal(), CLUSTER)
    assert {(key.name, stop.preempted_for) for key, stop in stops.items()} == {
        ("r10", "late"), ("r9", "late")
    }  # fmt: skip


def test_what_others_leave_idle_of_the_cluster_is_lent_and_what_is_overcommitted_is_not():
    rules = {queue: QueueRules(overcommit=2.0) for queue in QUEUES}
    runs = [waiting(f"w{n}", cpu=1, queue=A) for n in range(30)]

    def begun(*running):
        verdicts = waiting_verdicts(runs, running, rules, CLUSTER, START)
        return sum(each.is_admitted for each in verdicts)

    assert begun() == 24
    # Its part is 12 of the 24 that may be promised, and one of its runs may bring it above that.
    assert begun(admitted("r", cpu=1, queue=B)) == 13
    # Its part is 8.
    assert begun(admitted("r", cpu=1, queue=B), admitted("s", cpu=1, queue=C)) == 10
    assert begun(admitted("r", cpu=9, queue=B), admitted("s", cpu=3, queue=C)) == 8


@pytest.mark.parametrize(("others", "begins"), [(4, True), (5, False)])
def test_half_of_the_overcommit_is_lent_for_a_run_larger_than_its_part(others, begins):
    rules = {queue: QueueRules(overcommit=2.0) for queue in QUEUES}
    running = [admitted("r", cpu=others, queue=B), admitted("s", cpu=3, queue=C)]
    large, small = waiting("large", cpu=11, queue=A), waiting("small", cpu=1, queue=A)
    verdicts = waiting_verdicts([large], running, rules, CLUSTER, START)
    assert [each.is_admitted for each in verdicts] == [begins]
    # While it runs, its namespace is above its part, and gets no more.
    (verdict,) = waiting_verdicts(
        [small], [*running, large.as_admitted(START)], rules, CLUSTER, START
    )
    assert not verdict.is_admitted


def test_a_queue_alone_borrows_from_nobody():
    alone = [admitted("r", cpu=10, queue=A), admitted("s", cpu=10, queue=A)]
    (verdict,) = waiting_verdicts(
        [waiting("w", cpu=6, queue=A)],
        alone,
        {A: QueueRules(), B: QueueRules()},
        nodes(cpu=12),
        START,
    )
    assert verdict.missing == (Lack(Rule.CAPACITY, "cpu", 2000),)


def test_room_is_not_kept_for_a_giant_at_the_cost_of_a_queue_that_takes_less():
    rules = equal(reserve_after_seconds=3600.0)
    running = [admitted("r", cpu=6, queue=C)]
    giant = waiting("giant", cpu=12, queue=A, priority=1_000_000)
    small = waiting("small", cpu=4, queue=B, submitted_at=after(1.5))
    verdicts = waiting_verdicts([giant, small], running, rules, CLUSTER, after(1.6))
    assert [(each.key.name, each.is_admitted) for each in verdicts] == [
        ("small", True), ("giant", False)
    ]  # fmt: skip
    # It is kept from its own queue, and from those that take more.
    others = [
        waiting("own", cpu=1, queue=A),
        waiting("more", cpu=5, queue=C, submitted_at=after(1)),
    ]
    verdicts = waiting_verdicts([giant, *others], running, rules, CLUSTER, after(1.6))
    assert [each.key.name for each in verdicts if each.is_admitted] == ["more"]


def test_a_run_that_sleeps_counts_for_its_own_queue_alone():
    sleeping = admitted("giant", cpu=12, queue=A, in_use={})
    runs = [waiting("own", cpu=1, queue=A), waiting("other", cpu=12, queue=B)]
    verdicts = {
        each.key.name: each.missing
        for each in waiting_verdicts(runs, [sleeping], equal(), CLUSTER, START)
    }
    assert verdicts == {"own": (Lack(Rule.CAPACITY, "cpu", 13000),), "other": ()}
    # Awake, it counts for all.
    awake = replace(sleeping, in_use=None)
    (verdict,) = waiting_verdicts(runs[1:], [awake], equal(), CLUSTER, START)
    assert not verdict.is_admitted


def test_gangs_of_a_run_that_sleeps_keep_no_node():
    gang = a_demand(gpu=4, gang=(4, {"gpu": 1}))
    run = waiting("run", gang, queue=B)
    for is_awake in (True, False):
        running = [admitted("r", gang, queue=A, in_use=None if is_awake else {})]
        (verdict,) = waiting_verdicts([run], running, equal(), CLUSTER, START)
        assert verdict.is_admitted != is_awake


def test_deciding_about_a_thousand_runs_of_many_namespaces_takes_less_than_a_second():
    queues = [QueueKey(f"team-{n}", "default") for n in range(50)]
    rules = {queue: QueueRules() for queue in queues}
    runs = [waiting(f"w{n}", cpu=1 + n % 30, gpu=n % 3, queue=queues[n % 50]) for n in range(1000)]
    running = [
        admitted(f"r{n}", cpu=16, queue=queues[n % 7], admitted_at=after(n)) for n in range(200)
    ]
    cluster = nodes(100, cpu=16, gpu=1)
    uids = {run.key: run.key.name for run in runs}

    def decide():
        waiting_verdicts(runs, running, rules, cluster, after(1))
        first_preemption(runs, running, [], uids, rules, cluster)

    assert min(cpu_seconds(decide) for _ in range(3)) < 1.0
