"""Which waiting runs may go, and what the others lack."""

from dataclasses import replace

import pytest

from kfp_placement_controller.queueing.builtin.admission import in_order, waiting_verdicts
from kfp_placement_controller.queueing.runs import QueueRules
from kfp_placement_controller.queueing.verdicts import Lack, Rule
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.keys import QueueKey
from tests.controller.queueing.builders import (
    GPU,
    QUEUE,
    START,
    a_demand,
    admitted,
    after,
    nodes,
    rules,
    waiting,
)
from tests.support.effort import cpu_seconds

OTHER = QueueKey("others", "default")


def decided(runs, running=(), its_rules=None, cluster=None, *, now=START):
    cluster = nodes(4, cpu=16) if cluster is None else cluster
    return {
        each.key.name: each
        for each in waiting_verdicts(runs, list(running), its_rules or rules(), cluster, now)
    }


def going(*args, **options):
    return [name for name, each in decided(*args, **options).items() if each.is_admitted]


def lacks(*args, **options):
    """Of the only run that waits."""
    (verdict,) = [each for each in decided(*args, **options).values() if not each.is_admitted]
    return verdict.missing


# One run at a time may go.
ORDER_RULES = rules(max_runs=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (waiting("b", priority=1), waiting("a")),
        (waiting("b"), waiting("a", submitted_at=after(1))),
        (waiting("a"), waiting("b")),
    ],
    ids=["priority", "submission", "name"],
)
def test_one_thing_after_the_other_decides(first, second):
    assert going([second, first], its_rules=ORDER_RULES, now=after(2)) == [first.key.name]


def test_a_run_that_waits_overtakes_a_higher_priority_by_its_age():
    """Five an hour: after three hours 0 has become 15, and 10 submitted just now is 10."""
    runs = [waiting("old"), waiting("new", priority=10, submitted_at=after(3))]
    aging = rules(max_runs=1, aging_per_hour=5.0)
    assert going(runs, its_rules=aging, now=after(3)) == ["old"]
    assert going(runs, its_rules=rules(max_runs=1), now=after(3)) == ["new"]


def test_a_submission_in_the_future_is_not_aged_backwards():
    """Clocks of two machines differ."""
    runs = [waiting("a"), waiting("b", priority=1, submitted_at=after(1))]
    ordered = in_order(runs, rules(aging_per_hour=100.0), START)
    assert [each.key.name for each in ordered] == ["b", "a"]


# The queue may use 8 CPUs.
QUOTA_RULES = rules(quota={"cpu": 8000})


def test_runs_of_other_queues_do_not_count():
    running = [
        admitted("r", cpu=8, queue=OTHER),
        admitted("s", cpu=8, queue=QueueKey("team", "gpu")),
    ]
    assert going([waiting("a", cpu=8)], running, QUOTA_RULES) == ["a"]


def test_a_smaller_run_goes_past_one_that_does_not_fit():
    runs = [waiting("big", cpu=6), waiting("small", cpu=2)]
    running = [admitted("r", cpu=6)]
    assert going(runs, running, QUOTA_RULES) == ["small"]


def test_a_run_that_needs_more_than_the_whole_quota_says_so_and_stops_nobody():
    runs = [waiting("big", cpu=12), waiting("small", cpu=8)]
    verdicts = decided(runs, its_rules=QUOTA_RULES)
    assert verdicts["big"].missing == (Lack(Rule.QUOTA_SIZE, "cpu", 4000),)
    assert verdicts["small"].is_admitted


def test_what_the_quota_does_not_name_is_not_limited():
    assert going([waiting("a", gpu=4)], (), QUOTA_RULES, nodes(gpu=4)) == ["a"]


def test_a_quota_of_zero_lets_no_run_have_any():
    run = waiting("a", cpu=1, gpu=1)
    without = rules(quota={GPU: 0})
    assert lacks([run], (), without, nodes(cpu=16, gpu=4)) == (Lack(Rule.QUOTA_SIZE, GPU, 1),)
    assert going([waiting("b")], (), without) == ["b"]


def test_so_many_runs_at_once():
    running = [admitted("r"), admitted("s")]
    assert going([waiting("a")], running, rules(max_runs=3)) == ["a"]
    assert lacks([waiting("a")], running, rules(max_runs=2)) == (Lack(Rule.QUOTA, "runs", 1),)


def test_a_demand_that_grew_past_the_quota_stops_new_runs_and_nobody_else():
    """Runs that need nothing of what is short still go."""
    running = [admitted("r", cpu=20)]
    verdicts = decided([waiting("a"), waiting("b", Demand())], running, QUOTA_RULES)
    assert verdicts["a"].missing == (Lack(Rule.QUOTA, "cpu", 13000),)
    assert verdicts["b"].is_admitted


# One node of 16 CPUs, of which twice as much may be promised.
NODE = nodes(cpu=16)


def test_runs_of_all_queues_up_to_capacity_times_overcommit_go():
    running = [admitted("r", cpu=16, queue=OTHER)]
    runs = [waiting("a", cpu=10), waiting("b", cpu=10)]
    verdicts = decided(runs, running, cluster=NODE)
    assert verdicts["a"].is_admitted
    assert verdicts["b"].missing == (Lack(Rule.CAPACITY, "cpu", 4000),)


def test_overcommit_is_the_queue_s():
    running = [admitted("r", cpu=16, queue=OTHER)]
    assert going([waiting("a")], running, rules(overcommit=1.0), NODE) == []
    assert going([waiting("a")], running, rules(overcommit=1.5), NODE) == ["a"]


@pytest.mark.parametrize("overcommit", [0.5, 1.0, 2.0])
def test_a_run_of_more_than_capacity_may_go_alone(overcommit):
    its_rules = rules(overcommit=overcommit)
    assert going([waiting("a", cpu=99)], (), its_rules, NODE) == ["a"]


def test_a_run_of_more_than_capacity_goes_beside_one_as_large_and_no_third():
    runs = [waiting(name, cpu=99) for name in "abc"]
    assert going(runs, cluster=NODE) == ["a", "b"]


def test_the_queue_s_capacity_replaces_the_sum_where_node_pools_grow():
    grows = rules(capacity={"cpu": 32000}, overcommit=1.0)
    runs = [waiting(name, a_demand(cpu=16, pods=200)) for name in "abc"]
    assert going(runs, (), grows, NODE) == ["a", "b"]
    assert going(runs, (), grows, []) == ["a", "b"]


def test_queues_see_their_own_capacity_and_all_runs():
    grows = {QUEUE: QueueRules(capacity={"cpu": 32000}, overcommit=1.0)}
    both = {**grows, OTHER: QueueRules(overcommit=1.0)}
    runs = [waiting("here", cpu=16), waiting("there", cpu=1, queue=OTHER)]
    running = [admitted("r", cpu=16, queue=OTHER)]
    assert going(runs, running, both, NODE) == ["here"]


def test_without_a_node_nobody_new_goes():
    verdicts = decided([waiting("a", cpu=2)], [admitted("r")], cluster=[])
    assert verdicts["a"].missing == (Lack(Rule.NO_NODE, "cpu", 2000),)


def test_a_queue_that_is_not_there_has_no_limits_of_its_own():
    run = waiting("a", cpu=32, queue=QueueKey("team", "gone"))
    assert going([run], cluster=NODE) == ["a"]


# Two nodes of 4 GPUs; overcommit is so high that it does not matter.
GANG_RULES = rules(overcommit=100.0)
NODES = nodes(2, cpu=32, gpu=4)


def gang(count, gpu=1, cpu=1):
    return a_demand(cpu=count * cpu, gpu=count * gpu, gang=(count, {"cpu": cpu, "gpu": gpu}))


def test_runs_without_gangs_are_not_kept_waiting_by_them():
    running = [admitted("r", gang(8))]
    run = waiting("a", gpu=8)
    assert going([run], running, GANG_RULES, NODES) == ["a"]


def test_a_gang_that_does_not_fit_the_empty_cluster_says_so_and_stops_nobody():
    runs = [waiting("a", gang(3, gpu=3)), waiting("b", gang(2, gpu=3))]
    verdicts = decided(runs, (), GANG_RULES, NODES)
    assert verdicts["a"].missing == (Lack(Rule.GANG_SIZE, "pods", 1),)
    assert verdicts["b"].is_admitted


def test_large_pods_are_packed_before_small_ones():
    """On nodes of 3 and 4 GPUs, a pod of 2 on each would leave no room for one of 3."""
    cluster = [*nodes(1, cpu=32, gpu=3), *nodes(1, cpu=32, gpu=4)]
    running = [admitted("small", gang(2, gpu=2)), admitted("large", gang(1, gpu=3))]
    run = waiting("a", gang(1))
    assert lacks([run], running, GANG_RULES, cluster) == (Lack(Rule.GANGS, "pods", 1),)
    assert going([run], running[:1], GANG_RULES, cluster) == ["a"]


def test_a_gang_of_several_shapes_goes_whole():
    group = PodGroup(1, {"cpu": 30000})
    demand = replace(gang(7, cpu=4), gangs=(*gang(7, cpu=4).gangs, group))
    assert lacks([waiting("a", demand)], (), GANG_RULES, NODES)[0].rule == Rule.GANG_SIZE
    assert going([waiting("a", demand)], (), GANG_RULES, nodes(3, cpu=32, gpu=4)) == ["a"]


def test_where_an_admitted_gang_lost_nodes_it_has_what_is_left_of_their_kind():
    running = [admitted("r", gang(6))]
    gang_of_cpus = a_demand(cpu=2, gang=(2, {"cpu": 1}))
    runs = [waiting("a", gang(1)), waiting("b", gpu=1), waiting("c", gang_of_cpus)]
    verdicts = decided(runs, running, GANG_RULES, NODES[:1])
    assert verdicts["a"].missing == (Lack(Rule.GANGS, "pods", 1),)
    assert verdicts["b"].is_admitted
    assert verdicts["c"].is_admitted


def test_nodes_that_a_pool_may_add_have_room_for_gangs():
    grows = rules(overcommit=1.0, capacity={"cpu": 64000, GPU: 8})
    runs = [waiting(name, gang(3)) for name in "abc"]
    assert going(runs, (), grows, []) == ["a", "b"]
    assert going(runs, (), grows, NODES[:1]) == ["a", "b"]


def test_positions_count_those_of_the_queue_that_wait_on():
    runs = [waiting(name) for name in "abcd"]
    runs.append(waiting("z", queue=OTHER, unschedulable="no node"))
    verdicts = decided(runs, its_rules=rules(max_runs=1))
    assert [(each.position, each.waiting) for each in verdicts.values()] == [
        (1, 1), (0, 0), (1, 3), (2, 3), (3, 3)
    ]  # fmt: skip


def test_nobody_behind_a_run_gets_the_room_that_suspensions_make_for_it():
    """The suspended run has let go of 4 of its 8 CPUs when `small` asks."""
    running = [admitted("victim", cpu=4, suspended=True)]
    urgent = waiting("urgent", cpu=8, priority=1)
    runs = [urgent, waiting("small", cpu=2)]
    limited = rules(quota={"cpu": 8000})
    assert going(runs, running, limited) == ["small"]
    assert going([replace(urgent, has_victims=True), runs[1]], running, limited) == []
    assert going([replace(urgent, has_victims=True), runs[1]], (), limited) == ["urgent"]


def test_ten_times_as_many_runs_cost_little_more_than_ten_times_as_much():
    """Sums are kept, not made again for each run: 1,000 waiting, 200 admitted, 500 nodes."""

    def demand(number):
        gang = (1 + number % 6, {"cpu": 4, "gpu": 1}) if number % 10 == 0 else None
        return a_demand(cpu=4 + number % 30, gpu=number % 7, gang=gang)

    def cost(count):
        runs = [waiting(f"w{number}", demand(number)) for number in range(count)]
        return min(
            cpu_seconds(waiting_verdicts, runs, running, rules(), cluster, START) for _ in range(3)
        )

    running = [admitted(f"r{number}", demand(number)) for number in range(200)]
    cluster = nodes(500, cpu=16, gpu=1)
    assert cost(1000) < 15 * cost(100)


# Small runs keep coming while a large one waits.
RESERVATION_RULES = rules(overcommit=1.0, reserve_after_seconds=12 * 3600.0)
LARGE = waiting("large", gpu=4)
SMALL = waiting("small", gpu=1, submitted_at=after(1))


def tried(run, hours):
    running = [admitted("r", gpu=3)]
    cluster = nodes(cpu=8, gpu=4)
    verdicts = waiting_verdicts([run, SMALL], running, RESERVATION_RULES, cluster, after(hours))
    return [each.key.name for each in verdicts if each.is_admitted]


def test_no_room_is_kept_for_one_that_never_fits_that_is_asked_to_stop_or_of_the_future():
    for run in (
        replace(LARGE, demand=a_demand(gpu=1, other=1)),
        replace(LARGE, unschedulable="no node"),
        replace(LARGE, goes_last=True),
        replace(LARGE, submitted_at=after(2000)),
    ):
        assert tried(run, 1000) == ["small"]


def test_a_run_gets_what_was_kept_for_it():
    cluster = nodes(cpu=8, gpu=4)
    verdicts = waiting_verdicts([LARGE, SMALL], [], RESERVATION_RULES, cluster, after(13))
    assert [each.key.name for each in verdicts if each.is_admitted] == ["large"]


def test_room_is_kept_for_as_long_as_it_was_waited_for_and_again_after_as_long():
    hours = [11.9, 12.1, 23.9, 24.1, 35.9, 36.1]
    begun = [tried(LARGE, each) for each in hours]
    assert begun == [["small"], [], [], ["small"], ["small"], []]


def test_a_run_that_waits_for_the_quota_of_its_queue_keeps_only_that():
    """Runs of other queues go on as before, also gangs."""
    its_rules = {
        QUEUE: QueueRules(max_runs=1, reserve_after_seconds=3600.0, overcommit=1.0),
        OTHER: QueueRules(overcommit=1.0),
    }
    gang = a_demand(gpu=2, gang=(2, {GPU: 1}))
    runs = [
        waiting("first", a_demand(cpu=8, gpu=4, gang=(4, {GPU: 1}))),
        waiting("second", cpu=8),
        waiting("other", gang, queue=OTHER),
    ]
    running = [admitted("r", cpu=1)]
    cluster = nodes(cpu=8, gpu=4)
    assert going(runs, running, its_rules, cluster, now=after(1.5)) == ["other"]


def test_quota_is_kept_for_one_run_of_a_queue():
    its_rules = rules(quota={GPU: 4}, reserve_after_seconds=12 * 3600.0)
    running = [admitted("r", gpu=2)]
    cluster = nodes(cpu=64, gpu=64)
    runs = [waiting("large", gpu=4), SMALL]
    assert going(runs, running, its_rules, cluster, now=after(11)) == ["small"]
    assert going(runs, running, its_rules, cluster, now=after(13)) == []


def test_room_of_the_cluster_is_kept_for_one_run():
    """Else two that cannot both run would keep everybody waiting."""
    running = [admitted("r", gpu=1)]
    runs = [
        waiting("large", gpu=4),
        waiting("too", cpu=8, gpu=4),
        waiting("small", cpu=8, submitted_at=after(1)),
    ]
    verdicts = decided(runs, running, RESERVATION_RULES, nodes(cpu=8, gpu=4), now=after(13))
    assert [name for name, each in verdicts.items() if each.keeps_room] == ["large"]
    assert verdicts["small"].is_admitted
