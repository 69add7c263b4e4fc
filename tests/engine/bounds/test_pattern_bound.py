"""The pattern linear program: as strong as with all patterns, and never above a schedule."""

import importlib
import itertools
from typing import Any

import numpy as np
import pytest

from kfp_placement_engine.bounds.effort import THOROUGH
from kfp_placement_engine.bounds.lower_bound import lower_bounds
from kfp_placement_engine.bounds.pattern_bound import (
    MAX_GROUPS,
    node_types,
    pattern_bound_seconds,
    step_groups,
)
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from kfp_placement_engine.search.baselines.heft import heft
from tests.support.builders import (
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    equal_steps,
    nodes,
)

highspy: Any = pytest.importorskip("highspy", reason="needs the extra `bounds`")

# The package exports a function of the module's name.
usable_nodes = importlib.import_module("kfp_placement_engine.bounds.lower_bound").usable_nodes


def steps_of(*kinds: tuple[int, float, float, float]):
    """(count, CPU, GiB, seconds) of each kind of step, independent of each other."""
    return [
        a_step(f"step-{kind}-{number}", cpu=cpu, memory=memory, seconds=seconds)
        for kind, (count, cpu, memory, seconds) in enumerate(kinds)
        for number in range(count)
    ]


def bound_of(steps, *members) -> float:
    return bound_on(a_problem(a_run(*steps), a_cluster(*members)))


def bound_on(problem) -> float:
    bound = pattern_bound_seconds(problem, usable_nodes(problem), THOROUGH.pattern_cells)
    assert bound is not None
    return bound


def bound_with_all_patterns(problem) -> float:
    """The program as the books write it, over every set of steps that fits."""
    groups = step_groups(problem, usable_nodes(problem))
    types = node_types(problem, groups)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    longest = model.addVariable(obj=1.0)
    done = [0.0] * len(groups.members)
    for kind in types:
        held = 0.0
        for counts in itertools.product(*(range(int(most) + 1) for most in kind.most)):
            if not any(counts) or (np.array(counts) @ groups.requests > kind.room).any():
                continue
            time = model.addVariable()
            held += time
            for group, count in enumerate(counts):
                if count:
                    done[group] += kind.speed * count * time
        model.addConstr(held <= kind.count * longest)
    for work, expression in zip(groups.work_seconds, done, strict=True):
        model.addConstr(expression >= float(work))
    model.minimize()
    return model.getObjectiveValue()


def test_sees_that_two_large_steps_do_not_share_a_node():
    """Six steps of 6 CPU on 3 nodes of 8: two rounds, though the area allows 1.5."""
    assert bound_of(steps_of((6, 6, 1, 100)), *nodes(3, cpu=8)) == pytest.approx(200, rel=1e-6)


def test_counts_patterns_by_the_speed_of_the_node():
    """Three steps of 100 s on a node of speed 1 and one of speed 2: 300 s of work at 3 a second."""
    members = [a_node("slow", cpu=1), a_node("fast", cpu=1, speed=2.0)]
    assert bound_of(steps_of((3, 1, 1, 100)), *members) == pytest.approx(100, rel=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_equals_the_program_over_all_patterns(seed):
    """Generating patterns leaves nothing out."""
    rng = np.random.default_rng(seed)
    kinds = [
        (
            int(rng.integers(1, 6)),
            float(rng.choice([0.5, 1, 1.5, 2, 3])),
            float(rng.choice([0, 1, 2, 3])),
            float(rng.integers(1, 200)),
        )
        for _ in range(int(rng.integers(1, 5)))
    ]
    members = [
        a_node(
            f"n{number}",
            cpu=float(rng.choice([3, 4])),
            memory=float(rng.choice([4, 6])),
            pods=int(rng.choice([3, 110])),
            speed=float(rng.choice([0.5, 1, 1.5])),
        )
        for number in range(int(rng.integers(1, 4)))
    ]
    problem = a_problem(a_run(*steps_of(*kinds)), a_cluster(*members))
    bound = bound_on(problem)
    assert bound == pytest.approx(bound_with_all_patterns(problem), rel=1e-5)
    assert bound <= heft(problem, 0).makespan_seconds * (1 + 1e-9)
    assert bound <= kube_default(problem, 0).makespan_seconds * (1 + 1e-9)


def test_amounts_without_a_common_unit_still_bound():
    """Requests that no small table can count are rounded down, which only lowers the bound."""
    steps = [
        a_step(f"s{number}", cpu=1.001 + number / 997, memory=1.0007 + number / 991, seconds=100)
        for number in range(40)
    ]
    problem = a_problem(a_run(*steps), cluster_of(3, cpu=7.919, memory=31.337))
    bound = bound_on(problem)
    asked = sum(step.requests["cpu"] for step in steps)
    assert asked * 100 / (3 * 7919) <= bound * 1.001
    assert bound <= heft(problem, 0).makespan_seconds


def test_too_many_kinds_of_steps_are_left_to_the_other_bounds():
    """More groups than the program is built for."""
    steps = [a_step(f"s{number}", cpu=1 + number / 1000) for number in range(MAX_GROUPS + 1)]
    problem = a_problem(a_run(*steps), cluster_of(2))
    assert pattern_bound_seconds(problem, usable_nodes(problem), THOROUGH.pattern_cells) is None


def test_nothing_to_place_has_no_bound():
    """Steps that no node can take are no work for a node."""
    problem = a_problem(a_run(a_step("huge", cpu=100)))
    assert pattern_bound_seconds(problem, usable_nodes(problem), THOROUGH.pattern_cells) is None


class TalkativeHighs(highspy.Highs):
    """Names itself as highspy 1.16 does: when callbacks are enabled, unless it is quiet by then."""

    def enableCallbacks(self):  # noqa: N802
        if self.getOptionValue("output_flag")[1]:
            print("Running HiGHS")
        super().enableCallbacks()


@pytest.mark.parametrize("kind", [highspy.Highs, TalkativeHighs])
def test_bounds_write_nothing(kind, monkeypatch, capfd):
    monkeypatch.setattr(highspy, "Highs", kind)
    steps = equal_steps(2, seconds=101.23456789)
    fast_and_slow = a_cluster(a_node("fast", cpu=1, speed=2.0), a_node("slow", cpu=1))
    kinds = {bound.kind for bound in lower_bounds(a_problem(a_run(*steps), fast_and_slow))}
    assert kinds >= {"kinds-lp", "pattern-lp"}
    assert capfd.readouterr() == ("", "")
