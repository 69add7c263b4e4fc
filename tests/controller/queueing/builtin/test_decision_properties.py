"""What holds of every decision, whatever waits and runs."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_controller.queueing.builtin.admission import in_order, waiting_verdicts
from kfp_placement_controller.queueing.builtin.preemption import preempted
from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_controller.queueing.runs import QueueRules
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.keys import QueueKey
from tests.controller.queueing.builders import GPU, admitted, after, waiting
from tests.controller.queueing.builtin.test_gang_room import can_be_packed

QUEUES = [QueueKey("team", "default"), QueueKey("team", "gpu"), QueueKey("others", "default")]
NAMES = ("cpu", GPU)
NOW = after(5)


def peaks(most):
    return st.fixed_dictionaries({name: st.integers(0, most) for name in NAMES})


@st.composite
def demands(draw):
    peak = draw(peaks(9))
    gangs = draw(
        st.lists(st.builds(PodGroup, st.integers(1, 2), peaks(3)), max_size=1)
        if draw(st.integers(0, 3)) == 0
        else st.just([])
    )
    return Demand(peak=peak, gangs=tuple(gangs))


@st.composite
def cases(draw):
    """Waiting runs, admitted runs, rules and nodes."""
    hours = st.integers(0, 5).map(after)
    runs = [
        waiting(
            f"w{number}",
            draw(demands()),
            queue=draw(st.sampled_from(QUEUES)),
            priority=draw(st.integers(-2, 2)),
            submitted_at=draw(hours),
            unschedulable=draw(st.sampled_from(["", "", "", "no node"])),
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    running = [
        admitted(
            f"r{number}",
            draw(demands()),
            queue=draw(st.sampled_from(QUEUES)),
            priority=draw(st.integers(-2, 2)),
            admitted_at=draw(hours),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    overcommit = draw(st.sampled_from([0.5, 1.0, 2.0]))
    rules = {
        queue: QueueRules(
            quota=draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 12))),
            max_runs=draw(st.none() | st.integers(0, 4)),
            overcommit=overcommit,
            aging_per_hour=draw(st.sampled_from([0.0, 1.0])),
        )
        for queue in draw(st.sets(st.sampled_from(QUEUES)))
    }
    nodes = [{**draw(peaks(8)), "pods": 5} for _ in range(draw(st.integers(0, 2)))]
    return runs, running, rules, nodes


def admitted_of(runs, verdicts):
    by_key = {run.key: run for run in runs}
    return [by_key[each.key] for each in verdicts if each.is_admitted]


def newly_admitted(case):
    runs, running, rules, nodes = case
    return admitted_of(runs, waiting_verdicts(runs, running, rules, nodes, NOW))


def total(runs, name):
    return sum(run.demand.peak.get(name, 0) for run in runs)


@given(cases())
def test_no_queue_gets_more_than_its_quota(case):
    _runs, running, rules, _nodes = case
    new = newly_admitted(case)
    for queue, rule in rules.items():
        going = [run for run in new if run.queue == queue]
        here = [run for run in running if run.queue == queue] + going
        if going and rule.max_runs is not None:
            assert len(here) <= rule.max_runs
        for name, most in rule.quota.items():
            if total(going, name):
                assert total(here, name) <= most


@given(cases())
def test_no_more_is_promised_than_capacity_times_overcommit_unless_a_run_is_alone(case):
    _runs, running, rules, nodes = case
    new = newly_admitted(case)
    for name in NAMES:
        capacity = sum(node.get(name, 0) for node in nodes)
        going = [run for run in new if run.demand.peak.get(name, 0)]
        counted = sum(min(run.demand.peak.get(name, 0), capacity) for run in (*running, *new))
        limit = max(
            (rules.get(run.queue, QueueRules()).overcommit * capacity for run in going), default=0
        )
        alone = len(going) == 1 and total(running, name) == 0
        assert not going or counted <= limit or alone


@settings(max_examples=50)
@given(cases())
def test_gangs_that_are_admitted_can_all_be_packed(case):
    _runs, running, _rules, nodes = case
    new = newly_admitted(case)
    begun, groups = (
        [group for run in runs for group in run.demand.gangs]
        for runs in (running, (*running, *new))
    )
    # A run that has begun may have lost a node: that holds up no other.
    if can_be_packed(nodes, begun):
        assert can_be_packed(nodes, groups)


@given(cases())
def test_nobody_is_refused_while_a_later_run_of_the_same_queue_and_demand_goes(case):
    runs, running, rules, nodes = case
    alike = [replace(run, demand=runs[0].demand, unschedulable="") for run in runs]
    verdicts = waiting_verdicts(alike, running, rules, nodes, NOW)
    for queue in QUEUES:
        expected = [run.key for run in in_order(alike, rules, NOW) if run.queue == queue]
        tried = [each for each in verdicts if each.key in expected]
        assert [each.key for each in tried] == expected
        going = [each.is_admitted for each in tried]
        assert going == sorted(going, reverse=True)


@given(cases(), st.randoms())
def test_the_order_of_what_is_given_does_not_matter(case, shuffler):
    runs, running, rules, nodes = case
    expected = waiting_verdicts(runs, running, rules, nodes, NOW)
    suspended = [preempted(run, running, rules, nodes) for run in runs]
    others = [list(each) for each in (runs, running, nodes)]
    for each in others:
        shuffler.shuffle(each)
    backwards = dict(reversed(rules.items()))
    assert waiting_verdicts(others[0], others[1], backwards, others[2], NOW) == expected
    assert [preempted(run, others[1], backwards, others[2]) for run in runs] == suspended


@given(cases())
def test_who_was_admitted_stays_admitted_when_asked_again(case):
    """A second decision at the same time, with the first one carried out, admits nobody more."""
    runs, running, rules, nodes = case
    verdicts = waiting_verdicts(runs, running, rules, nodes, NOW)
    new = admitted_of(runs, verdicts)
    left = [run for run in runs if run not in new and not run.demand.gangs]
    reserved = [admitted(run.key.name, run.demand, queue=run.queue, admitted_at=NOW) for run in new]
    again = waiting_verdicts(left, [*running, *reserved], rules, nodes, NOW)
    assert admitted_of(left, again) == []


@given(cases())
def test_those_suspended_make_room_and_none_of_them_could_stay(case):
    runs, running, rules, nodes = case
    for run in runs:
        victims = preempted(run, running, rules, nodes)
        for left_out in [None, *victims] if victims else []:
            staying = [each for each in running if each.key not in victims or each.key == left_out]
            lacks = Reservations(staying, rules, nodes, [run]).lacks(run)
            assert bool(lacks) == (left_out is not None)
