"""Transfers that overlap on one node, each of which is planned at the full rate."""

import pytest

from tests.support.builders import (
    a_cluster,
    a_node,
    a_run,
    a_step,
    codes_of_plan,
    notice_of,
    plan_of,
)

RATE = 1e8
"""Bytes per second of the node."""


def readers(count, seconds, chained=False):
    """Steps that each read for some seconds, and run for 10."""
    size = int(seconds * RATE)
    steps = [a_step("make", output_bytes={"data": size}, seconds=100)]
    for index in range(count):
        before = f"r{index - 1}" if chained and index else "make"
        steps.append(a_step(f"r{index}", "make", before, reads=[("make", size)]))
    return a_run(*steps)


@pytest.fixture
def cluster():
    return a_cluster(a_node("n1", cpu=16, store_bytes_per_second=RATE))


def test_transfers_that_share_a_line_are_named_where_they_matter(cluster):
    message = notice_of(plan_of(readers(4, 20), cluster), "shared-line").message
    assert message.startswith("transfers of r0, r1, r2, r3 overlap on n1")
    assert "one after another they take 1m more, 40% of the run" in message


@pytest.mark.parametrize(
    "run", [readers(4, 1), readers(4, 20, chained=True), readers(1, 20), readers(4, 0)]
)
def test_transfers_that_hardly_overlap_are_not_named(cluster, run):
    assert "shared-line" not in codes_of_plan(plan_of(run, cluster))


def test_transfers_of_two_nodes_do_not_share_a_line():
    pinned = (a_node(f"n{n}", cpu=1, store_bytes_per_second=RATE) for n in range(4))
    assert "shared-line" not in codes_of_plan(plan_of(readers(4, 20), a_cluster(*pinned)))
