"""The instances that constants are chosen by, of three kinds; none of them needs a file.

An instance is a kind and a number from 1,000 up, which draws it; other benchmarks draw their cases
from smaller seeds, so nothing is tuned on what is judged. Sizes take turns, so that any few numbers
in a row have all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.tuning.projects import ProjectSize, random_project
from kfp_placement_engine import LoweringOptions, PlacementProblem, lower

FIRST_NUMBER = 1_000

FEWEST_JOBS, MOST_JOBS = 20, 120
MOST_NODES = 4

RUN_SIZES = ((60, 3), (120, 4), (240, 6))
"""Steps and nodes of made-up runs: few nodes, so that room decides and not the longest chain."""

KFP_READY, KFP_ORDERED, WORKFLOWS = "kfp-ready", "kfp-ordered", "workflows"


@dataclass(frozen=True)
class Kind:
    """Instances that are alike.

    Attributes:
        name: name on the command line.
        title: name for people.
        problem: the instance of a number.
    """

    name: str
    title: str
    problem: Callable[[int], PlacementProblem]


def _kfp(dispatch: str, number: int) -> PlacementProblem:
    """Make a KFP run with its driver pods; another one under each dispatch."""
    return _made_up("kfp", dispatch, seed=2 * number + (dispatch == "ordered"), turn=number)


def _workflow(number: int) -> PlacementProblem:
    """Make in turn a random project and a made-up workflow run, both of one run."""
    if number % 2:
        return _made_up("workflow", "ordered", seed=number, turn=number // 2)
    rng = np.random.default_rng(number)
    size = ProjectSize(
        jobs=int(rng.integers(FEWEST_JOBS, MOST_JOBS, endpoint=True)),
        nodes=1 + number // 2 % MOST_NODES,
    )
    run, cluster = random_project(size, rng)
    return lower(run, cluster, LoweringOptions(dispatch="ordered")).problem


def _made_up(run: str, dispatch: str, seed: int, turn: int) -> PlacementProblem:
    """Make a run, of the size whose turn it is."""
    steps, nodes = RUN_SIZES[turn % len(RUN_SIZES)]
    shape = Shape(run, steps, nodes, seed)
    options = LoweringOptions(dispatch=dispatch)
    return lower(made_up_run(shape), made_up_cluster(shape), options).problem


KINDS = {
    kind.name: kind
    for kind in (
        Kind(KFP_READY, "KFP ready", partial(_kfp, "ready")),
        Kind(KFP_ORDERED, "KFP ordered", partial(_kfp, "ordered")),
        Kind(WORKFLOWS, "workflows", _workflow),
    )
}
"""Kinds of instances by name: KFP runs without gates and with gates, workflows with gates."""


@lru_cache(maxsize=2)
def problem_of(kind: str, number: int) -> PlacementProblem:
    """Return an instance; the last ones are kept, because their trials come one after another."""
    return KINDS[kind].problem(number)
