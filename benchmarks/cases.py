"""Cases of the benchmarks that search: what is planned, and which of many cases are measured."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from random import Random
from typing import Protocol, TypeVar

from benchmarks.command import BenchmarkError
from kfp_placement_engine import Cluster, LoweringOptions, PlacementProblem, RunGraph, lower


@dataclass(frozen=True)
class Instance:
    """One problem, and what its figures are compared with.

    Attributes:
        run: planned run.
        problem: problem to search.
        activities: activity of each step, by its name.
        nodes: names of the nodes.
        input_hash: SHA-256 of the input: of the file, or of the run and cluster that were drawn.
        optimum_seconds: makespan that is proven to be the least; None where it is not known.
        instants: steps of no duration, which no node runs: name -> steps they wait for.
        has_all_ties: kube-default and FIFO are means over the ways in which ties may be broken,
            which decide much where nodes differ in speed.
    """

    run: RunGraph
    problem: PlacementProblem
    activities: Mapping[str, int]
    nodes: tuple[str, ...]
    input_hash: str
    optimum_seconds: float | None = None
    instants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_all_ties: bool = False


@dataclass(frozen=True)
class Case:
    """A case that can be measured.

    Attributes:
        name: name for people, for files and for `--cases`.
        load: function that makes the case by a seed; the search starts from the same seed.
    """

    name: str
    load: Callable[[int], Instance]


class Named(Protocol):
    """A thing with a name that a command line can choose."""

    @property
    def name(self) -> str:
        """Name for people and for `--cases`."""


NamedT = TypeVar("NamedT", bound=Named)


def chosen(cases: Sequence[NamedT], glob: str = "*", limit: int | None = None) -> list[NamedT]:
    """Return the cases whose names match; of more than the limit, one from each equal part.

    It is drawn, always the same: names are often in a pattern that equal steps would follow.

    Raises:
        BenchmarkError: none does.
    """
    matching = [case for case in cases if fnmatchcase(case.name, glob)]
    if not matching:
        raise BenchmarkError(
            f"no case is called {glob!r:.60}; there are {len(cases):,}, such as {cases[0].name}"
        )
    if limit is None or limit >= len(matching):
        return matching
    drawn, starts = Random(0), [number * len(matching) // limit for number in range(limit + 1)]
    return [matching[drawn.randrange(first, end)] for first, end in pairwise(starts)]


def ordered_instance(
    run: RunGraph,
    cluster: Cluster,
    *,
    input_hash: str = "",
    optimum_seconds: float | None = None,
    instants: Mapping[str, tuple[str, ...]] | None = None,
    has_all_ties: bool = False,
) -> Instance:
    """Return a run under ordered dispatch; of several best nodes kube-default takes the first."""
    lowered = lower(run, cluster, LoweringOptions(dispatch="ordered"))
    return Instance(
        run=run,
        problem=replace(lowered.problem, ties="first"),
        activities=lowered.step_activities[0],
        nodes=tuple(node.name for node in cluster.nodes),
        input_hash=input_hash or hash_of(run, cluster),
        optimum_seconds=optimum_seconds,
        instants=instants or {},
        has_all_ties=has_all_ties,
    )


def hash_of(run: RunGraph, cluster: Cluster) -> str:
    """SHA-256 of what is drawn of a run and a cluster, written as JSON."""
    steps = [
        [
            step.name,
            dict(sorted(step.requests.items())),
            step.duration_seconds,
            sorted(step.depends_on),
            [[each.producer, each.size_bytes] for each in step.inputs],
            [step.image, dict(sorted(step.output_bytes.items())), step.group, step.has_driver],
        ]
        for step in run.steps
    ]
    groups = [
        [group.name, group.kind, group.parent, group.depends_on, group.parallelism]
        for group in run.groups
    ]
    nodes = [
        [
            node.name,
            dict(sorted(node.allocatable.items())),
            node.speed,
            dict(sorted(node.images.items())),
        ]
        for node in cluster.nodes
    ]
    text = json.dumps([steps, groups, nodes], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
