"""Orders of the Common Workflow Scheduler, on cases that are worked out by hand."""

import pytest

from benchmarks.peers.list_scheduling import schedule_of
from benchmarks.peers.node_choices import fair
from benchmarks.peers.orders import input_bytes, order_of, process_of, process_ranks
from tests.benchmarks.peers.instances import an_instance
from tests.support.builders import a_cluster, a_node, a_step, a_workflow


def in_order(name: str, *steps, **run) -> list[str]:
    """The steps by start, on a node that takes one at a time."""
    instance = an_instance(a_workflow(*steps, **run), a_cluster(a_node(cpu=1)))
    schedule = schedule_of(instance.problem, order_of(name, instance), fair)
    return sorted(instance.activities, key=lambda step: schedule.start[instance.activities[step]])


SIZES = {"a": 100, "b": 300, "c": 200, "d": 300}
SIZED = (
    a_step("source", seconds=1),
    *(a_step(name, "source", reads=[("source", size)]) for name, size in SIZES.items()),
    # Behind `a` and `d` two edges, behind `c` one, behind `b` none.
    *(a_step(f"{name}2", name) for name in "adc"),
    *(a_step(f"{name}3", f"{name}2") for name in "ad"),
)


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("fifo", "abcd"),
        ("rank", "adcb"),
        ("rank_min", "adcb"),
        ("rank_max", "dacb"),
        ("min", "acbd"),
        ("max", "bdca"),
    ],
)
def test_orders(order, wanted):
    """Ranks of a, b, c, d: 2, 0, 1, 2; b and d read as much, and b was submitted first."""
    assert [name for name in in_order(order, *SIZED) if name in SIZES] == list(wanted)


@pytest.mark.parametrize(
    ("order", "wanted"), [("lff_min", "p1 q1 q2 p2"), ("lff_max", "p2 q2 q1 p1")]
)
def test_least_finished_first(order, wanted):
    """Two processes in turn; among those of as many ended, by input as rank_min or rank_max."""
    inputs = {"p1": 100, "p2": 400, "q1": 200, "q2": 300}
    steps = [a_step("source", seconds=1)]
    for name, size in inputs.items():
        step = a_step(name, "source", reads=[("source", size)], display_name=name[0])
        steps.append(step)
    names = " ".join(name for name in in_order(order, *steps) if name in inputs)
    # p1 ends first (p: 1, q: 0), then q1 (1, 1), then by input: q2 before p2.
    assert names == wanted


def test_ranks_are_those_of_processes():
    """`b_1` has nothing behind it, but its process has: an edge of another of its steps."""
    steps = (a_step("b_1", seconds=1), a_step("a"), a_step("b_2", "a"), a_step("c", "b_2"))
    run = a_workflow(*steps)
    assert process_ranks(run) == {"b": 1, "a": 2, "c": 0}
    assert in_order("rank", *steps) == ["a", "b_1", "b_2", "c"]


def test_processes_that_wait_for_each_other_count_as_one():
    """Merging in pairs: merge waits for merge by way of sort."""
    run = a_workflow(
        a_step("sort_1"),
        a_step("merge_1", "sort_1"),
        a_step("sort_2", "merge_1"),
        a_step("merge_2", "sort_2"),
        a_step("end", "merge_2"),
        a_step("last", "end"),
    )
    assert process_ranks(run) == {"sort": 2, "merge": 2, "end": 1, "last": 0}


@pytest.mark.parametrize(
    ("name", "shown", "process"),
    [
        ("mProject_ID0000001", "", "mProject"),
        ("NFCORE.FASTQC_2", "NFCORE.FASTQC", "NFCORE.FASTQC"),
        ("blast_00000001", "", "blast"),
        ("task-7", "", "task-7"),
        ("bowtie2", "", "bowtie2"),
    ],
)
def test_names_of_processes(name, shown, process):
    assert process_of(a_step(name, display_name=shown)) == process


def test_input_of_unknown_size_counts_nothing():
    assert input_bytes(a_step("s", "a", "b", reads=[("a", None), ("b", 7)])) == 7
