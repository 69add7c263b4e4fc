"""Hypothesis strategies: small runs and clusters with a bit of everything.

They are drawn as those of `mixed_runs` are. All numbers are chosen so that times are multiples of
1/8 s under `ROUND_NUMBERS`: sums are exact in floats, and two simulations may be compared event by
event.
"""

from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import strategies as st

from kfp_placement_engine import Claim, Cluster, Node, RunGraph, Step
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.concurrency import ConcurrencyLimit
from kfp_placement_engine.model.run_graph import Group, GroupKind, RunClaim
from tests.engine.planning.mixed_runs import (
    IMAGES_AND_PULLS,
    LOCATION,
    SOURCES,
    in_a_loop,
    mixed_node,
    mixed_step,
)
from tests.support.builders import in_zone, lowered

KINDS = ("plain", "kfp", "direct")
ACCESS_MODES = ((), ("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOncePod",))
CLAIMS = ("disk", "shelf")
DISPATCHES = st.sampled_from(["ready", "ordered"])


class Limits(Enum):
    """Limits that a run states beside those of its loops."""

    NONE = "none"
    OF_PODS = "of single pods"
    ALL = "of children of templates, too"


@dataclass(frozen=True)
class Case:
    """A run on a cluster."""

    run: RunGraph
    cluster: Cluster

    def lowered(self, **options: Any) -> Lowered:
        """The problem that they make; see `builders.lowered`."""
        return lowered(self.run, self.cluster, **options)


def _cluster(random: Random) -> Cluster:
    size, rates = random.choice(IMAGES_AND_PULLS)
    nodes = tuple(
        mixed_node(random, number, size, rates, cpu=(2, 3, 4), memory=(2, 4, 8))
        for number in range(1, 1 + random.randint(1, 3))
    )
    trips = {
        node.name: random.choice([9.0, 9.4, 10.0, 20.0, 90.0])
        for node in nodes
        if random.randrange(4)
    }
    latencies = random.choice([{LOCATION: trips}, {}])
    return Cluster(nodes, latencies=latencies, claims=_known_claims(random, nodes))


def _known_claims(random: Random, nodes: tuple[Node, ...]) -> tuple[Claim, ...]:
    """What the cluster knows of the claim `disk`."""
    term = in_zone("a")
    claims = [
        *(Claim("disk", access_modes=modes) for modes in ACCESS_MODES[1:]),
        Claim("disk", required_terms=(term,)),
        Claim("disk", used_on=(nodes[0].name,)),
    ]
    return random.choice([(), (), (), *((claim,) for claim in claims)])


def _step(random: Random, kind: str, number: int, earlier: list[str]) -> Step:
    """Now and then one that fits no node, or that mounts both claims."""
    step = mixed_step(random, kind, number, earlier, CLAIMS)
    if random.randrange(10) == 9:
        step = replace(step, requests={"cpu": 9000})
    if step.claims and random.randrange(2):
        step = replace(step, claims=CLAIMS)
    return step


def _limits(random: Random, steps: list[Step]) -> tuple[ConcurrencyLimit, ...]:
    """Limits of single pods: of all, of some, and of some that take the places of two at once."""
    names = [(step.name,) for step in steps]
    some = random.sample(names, random.randint(1, len(names)))
    limits = (
        ConcurrencyLimit("pods", random.randint(1, 3), tuple(names)),
        ConcurrencyLimit("mutex", 1, tuple(sorted(some))),
        ConcurrencyLimit("child", 2, tuple(names[::2]), waits_with_place=True),
    )
    return tuple(random.sample(limits, random.randint(1, 3)))


def _children(random: Random, steps: list[Step]) -> tuple[list[Step], tuple[ConcurrencyLimit, ...]]:
    """Children of a template, neighbours that wait for the same steps before them, with limits."""
    cuts = sorted({0, len(steps), *(random.randrange(len(steps)) for _ in range(2))})
    children = [steps[first:last] for first, last in pairwise(cuts)]
    together: list[Step] = []
    for child in children:
        names = {step.name for step in child}
        outside = {name for step in child for name in step.depends_on} - names
        together += [
            replace(step, depends_on=tuple(sorted(outside | set(step.depends_on))))
            for step in child
        ]
    holders = tuple(tuple(step.name for step in child) for child in children)
    limits = (
        ConcurrencyLimit("parallelism", random.randint(1, 2), holders, waits_with_place=True),
        ConcurrencyLimit("semaphore", random.randint(1, 2), holders),
        ConcurrencyLimit("lock", 1, holders[::2]),
    )
    return together, tuple(random.sample(limits, random.randint(1, 3)))


@st.composite
def cases(
    draw, kinds: tuple[str, ...] = KINDS, most_steps: int = 6, limits: Limits = Limits.ALL
) -> Case:
    """A run and a cluster."""
    random = draw(st.randoms(use_true_random=False))
    kind = random.choice(kinds)
    steps: list[Step] = []
    for number in range(random.randint(1, most_steps)):
        steps.append(_step(random, kind, number, [step.name for step in steps]))
    groups: tuple[Group, ...] = ()
    if kind == "kfp":
        groups = (Group("", GroupKind.ROOT),)
        if random.randrange(2):
            cut = random.randrange(min(3, len(steps)))
            before, body = steps[:cut], steps[cut:3]
            after = tuple(step.name for step in before[-1:])
            inner = 2 * random.randrange(2) if len(body) < 3 else 0
            width, parallelism = random.randint(1, 3), random.randint(0, 2)
            looped, loops = in_a_loop(
                body, after, width, parallelism, inner, per_iteration=random.random() < 0.5
            )
            steps, groups = [*before, *looped], (*groups, *loops)
    children = steps
    stated: tuple[ConcurrencyLimit, ...] = ()
    if limits is Limits.ALL and kind != "kfp" and random.randrange(3) == 0:
        children, stated = _children(random, steps)
    if limits is not Limits.NONE and random.randrange(2):
        stated += _limits(random, steps)
    run = RunGraph(
        name="random",
        source=SOURCES[kind],
        steps=tuple(children),
        groups=groups,
        limits=stated,
        claims=tuple(RunClaim(name, random.choice(ACCESS_MODES)) for name in CLAIMS),
        direct_transfers=kind == "direct",
    )
    return Case(run, _cluster(random))
