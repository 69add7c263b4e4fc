"""The kernel's schedules against a second, slow simulation written from the model's description."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import Placement, Schedule, simulate
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.problem.schedule import TieBreak
from kfp_placement_engine.search.simulation import simulate_policy
from tests.engine.planning.random_runs import cases
from tests.support.builders import ROUND_NUMBERS
from tests.support.reference_simulation import Reference, keys_of


def a_reference(case, **changes) -> Reference:
    return Reference(
        case.run, case.cluster, ROUND_NUMBERS, ruled_types=LATENCY_RULED_TYPES, **changes
    )


def differences(low, schedule: Schedule, expected) -> list[str]:
    """What the two simulations say differently, activity by activity."""
    messages = []
    problem = low.problem
    for index, key in enumerate(keys_of(low)):
        pod = expected[key]
        node = problem.node_names[schedule.node[index]] if schedule.node[index] >= 0 else None
        kernel = {
            "node": node,
            "start": schedule.start[index],
            "begin": schedule.begin[index],
            "end": schedule.end[index],
            "pull": schedule.pull_seconds[index],
        }
        reference = {
            "node": pod.node.name if pod.node else None,
            "start": pod.start,
            "begin": pod.begin,
            "end": pod.end,
            "pull": pod.pull_seconds,
        }
        same = kernel["node"] == reference["node"] and all(
            kernel[name] == reference[name]
            or math.isclose(kernel[name], reference[name], rel_tol=1e-9, abs_tol=1e-9)
            for name in ("start", "begin", "end", "pull")
        )
        if not same:
            messages.append(f"{pod.key}: kernel {kernel}, reference {reference}")
    return messages


@settings(max_examples=120)
@given(
    case=cases(),
    version=st.sampled_from([(1, 34), (1, 35), (1, 36)]),
    fifo=st.booleans(),
    tie_seed=st.integers(0, 3),
)
def test_the_default_scheduler_is_simulated_as_in_the_reference(case, version, fifo, tie_seed):
    """Strict first in, first out, too; with nodes listed in any order and ties drawn anyhow."""
    low = case.lowered(kube_version=version)
    policy = Policy.STRICT_FIFO if fifo else Policy.KUBE_DEFAULT
    listed = np.random.default_rng(tie_seed).permutation(low.problem.nodes)
    schedule = simulate_policy(low.problem, policy, TieBreak(listed, tie_seed))
    names = tuple(low.problem.node_names[node] for node in listed)
    reference = a_reference(case, kube_version=version, listed=names, draw=tie_seed)
    expected = reference.simulate("fifo" if fifo else "kube-default")
    assert differences(low, schedule, expected) == []


@st.composite
def plans(draw, dispatch: str):
    """A case, its lowering, the reference, and a random plan: planned nodes and ranks by step."""
    case = draw(cases())
    marked_only = draw(st.sampled_from([False, False, True]))
    low = case.lowered(dispatch=dispatch, marked_only=marked_only)
    reference = a_reference(case, marked_only=marked_only)
    problem = low.problem
    gene_nodes = np.array(
        [
            draw(st.sampled_from([int(node) for node in np.flatnonzero(row)]))
            for row in problem.arrays.allowed
        ],
        np.int64,
    )
    left, ranks = list(range(problem.activities)), np.zeros(problem.activities)
    ended: set[int] = set()
    for rank in range(problem.activities):
        open_ones = [index for index in left if ended >= set(low.activities[index].predecessors)]
        chosen = draw(st.sampled_from(open_ones))
        left.remove(chosen)
        ended.add(chosen)
        ranks[chosen] = rank
    return low, reference, Placement(gene_nodes, ranks, np.empty(0))


def allowed_nodes(low):
    """Nodes that the plan may choose for each step that has a gene."""
    problem = low.problem
    return {
        low.activities[index].name: frozenset(
            problem.node_names[node]
            for node in np.flatnonzero(problem.arrays.allowed[problem.arrays.gene[index]])
        )
        for index in np.flatnonzero(problem.arrays.gene >= 0).tolist()
    }


def by_step(low, placement):
    """Planned node and rank of each step that has a gene."""
    genes = low.problem.arrays.gene
    planned, order = {}, {}
    for index in np.flatnonzero(genes >= 0):
        name = low.activities[index].name
        planned[name] = low.problem.node_names[placement.gene_nodes[genes[index]]]
        order[name] = placement.priority[index]
    return planned, order


@settings(max_examples=120)
@given(plan=plans("ready"))
def test_a_plan_under_ready_dispatch_is_simulated_as_in_the_reference(plan):
    """Bound at once, in order of creation, to the planned node or the next best."""
    low, reference, placement = plan
    expected = reference.simulate("ready", by_step(low, placement)[0])
    assert differences(low, simulate(low.problem, placement), expected) == []


@settings(max_examples=120)
@given(plan=plans("ordered"))
def test_a_plan_under_ordered_dispatch_is_simulated_as_in_the_reference(plan):
    """The plan's order on each node is kept; a step may wait for room, and for its data."""
    low, reference, placement = plan
    expected = reference.simulate("ordered", *by_step(low, placement))
    assert differences(low, simulate(low.problem, placement), expected) == []


@settings(max_examples=80)
@given(case=cases(), marked_only=st.booleans())
def test_the_plan_may_choose_from_the_nodes_that_the_reference_allows(case, marked_only):
    """Filters, room beside what runs already, hard latency limits, shared volumes."""
    low = case.lowered(marked_only=marked_only)
    reference, problem = a_reference(case, marked_only=marked_only), low.problem
    assert allowed_nodes(low) == reference.allowed()
    companions = reference.companions()
    for name in reference.stuck():
        index = next(i for i, each in enumerate(low.activities) if each.name == name and each.step)
        members = problem.gene_activities[problem.arrays.gene[index]]
        assert {low.activities[member].name for member in members} == companions[name]


@settings(max_examples=80)
@given(plan=plans("ready"))
def test_the_terms_of_the_objective_are_those_of_the_reference(plan):
    """Unplaced activities, latency beyond the band, completion."""
    low, reference, placement = plan
    schedule = simulate(low.problem, placement)
    expected = reference.simulate("ready", by_step(low, placement)[0])
    pods = expected.values()
    excess = sum(reference.excess_ms(pod, pod.node) for pod in pods if pod.node is not None)
    assert schedule.terms[0] == sum(math.isinf(pod.end) for pod in pods) == 0
    assert schedule.terms[1] == pytest.approx(excess, abs=1e-9)
    assert schedule.terms[2] == pytest.approx(max(pod.end for pod in pods), abs=1e-9)
