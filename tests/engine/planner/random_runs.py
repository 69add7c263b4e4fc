"""Hypothesis strategies: small runs and clusters with a bit of everything.

All numbers are chosen so that times are multiples of 1/8 s under `ROUND_NUMBERS`: sums are exact in
floats, and two simulations may be compared event by event.
"""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from kfp_placement_engine.model.cluster import Claim, Cluster, Node, Taint
from kfp_placement_engine.model.run_graph import (
    ClaimUse,
    DataInput,
    Group,
    GroupKind,
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
    RunClaim,
    RunGraph,
    Step,
    StepKind,
    Toleration,
)
from tests.support.builders import GIBIBYTE, a_node

LOCATION = "HOME-EDGE"
KINDS = ("plain", "kfp", "direct")
ACCESS_MODES = ((), ("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOncePod",))
IMAGES = ("", "", "tool:1", "model:2", "untagged")


@dataclass(frozen=True)
class Case:
    """A run on a cluster."""

    run: RunGraph
    cluster: Cluster


@st.composite
def some_nodes(draw, most: int = 3) -> tuple[Node, ...]:
    """One to `most` nodes of different sizes, speeds, rates, labels, taints, images, room taken."""
    result = []
    # Large images count for kube-scheduler; then pulls are quick, and times still exact.
    size, rates = draw(st.sampled_from([(200, [None, 25.0]), (2**32, [2.0**31, 2.0**30])]))
    for number in range(draw(st.integers(1, most))):
        taints = draw(
            st.sampled_from(
                [(), (), (), (Taint("only", "us"),), (Taint("rather", "not", "PreferNoSchedule"),)]
            )
        )
        held = draw(
            st.lists(st.sampled_from(["tool:1", "model:2", "untagged:latest"]), unique=True)
        )
        used = draw(st.sampled_from([{}, {}, {"cpu": 500, "memory": GIBIBYTE // 2, "pods": 1}]))
        result.append(
            a_node(
                f"n{number + 1}",
                cpu=draw(st.sampled_from([2, 3, 4])),
                memory=draw(st.sampled_from([2, 4, 8])),
                pods=draw(st.sampled_from([110, 110, 3])),
                extended=draw(st.sampled_from([{}, {}, {"example.com/gpu": 1}])),
                used=used,
                scored_used=used,
                speed=draw(st.sampled_from([0.5, 1.0, 1.0, 2.0])),
                labels={"zone": draw(st.sampled_from(["a", "b"]))},
                taints=taints,
                unschedulable=draw(st.sampled_from([False] * 9 + [True])),
                images=dict.fromkeys(held, size),
                store_bytes_per_second=draw(st.sampled_from([None, 50.0, 200.0])),
                pull_bytes_per_second=draw(st.sampled_from(rates)),
            )
        )
    return tuple(result)


AFFINITIES = (
    NodeAffinity(),
    NodeAffinity(),
    NodeAffinity(),
    NodeAffinity(required=(NodeSelectorTerm((Requirement("zone", "In", ("a", "b")),)),)),
    NodeAffinity(
        preferred=(PreferredTerm(30, NodeSelectorTerm((Requirement("zone", "In", ("b",)),))),)
    ),
)


@st.composite
def some_steps(draw, count: int, kind: str, claims: tuple[str, ...]) -> list[Step]:
    """Steps that depend on earlier ones."""
    steps: list[Step] = []
    for number in range(count):
        earlier = [step.name for step in steps]
        before = (
            draw(st.lists(st.sampled_from(earlier), unique=True, max_size=2)) if earlier else []
        )
        read = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        inputs = [DataInput(name, "data", draw(st.sampled_from([50, 100, 300]))) for name in read]
        if kind != "direct" and draw(st.integers(0, 5)) == 0:
            inputs.append(DataInput("", "outside", None))
        predicts = draw(st.sampled_from([False] * 4 + [True]))
        steps.append(
            Step(
                name=f"s{number}",
                task=f"s{number}",
                kind=StepKind.IMPORTER
                if kind == "kfp" and draw(st.integers(0, 9)) == 0
                else StepKind.CONTAINER,
                image=draw(st.sampled_from(IMAGES)),
                requests=draw(some_requests()),
                scheduler=draw(st.sampled_from(["kfp-placement", "kfp-placement", ""])),
                type=draw(st.sampled_from(["Predict", "serving", "Training"]))
                if predicts
                else "Training",
                location=LOCATION.lower() if predicts else "",
                max_latency_ms=draw(st.sampled_from([None, None, 15.0])) if predicts else None,
                duration_seconds=draw(st.sampled_from([None, 0, 1, 2, 3, 5, 8])),
                output_bytes={} if kind == "direct" else {"data": draw(st.sampled_from([0, 100]))},
                inputs=tuple(inputs),
                node_selector=draw(st.sampled_from([{}] * 7 + [{"zone": "a"}])),
                affinity=draw(st.sampled_from(AFFINITIES)),
                tolerations=draw(
                    st.sampled_from(
                        [(), (Toleration("only", "Exists"),), (Toleration("", "Exists"),)]
                    )
                ),
                claims=tuple(
                    ClaimUse(claim)
                    for claim in claims
                    if kind != "direct" and draw(st.integers(0, 2)) == 0
                ),
                depends_on=tuple(sorted(before)),
                has_driver=kind == "kfp",
                assumed_cached=draw(st.integers(0, 11)) == 0,
            )
        )
    return steps


@st.composite
def some_requests(draw) -> dict[str, int]:
    """CPU, memory and sometimes a device; sometimes nothing, seldom too much."""
    cpu = draw(st.sampled_from([0, 500, 1000, 1000, 2000, 3000, 9000]))
    memory = draw(st.sampled_from([0, 0, GIBIBYTE, 2 * GIBIBYTE]))
    gpus = draw(st.sampled_from([0, 0, 0, 1]))
    asked = {"cpu": cpu, "memory": memory, "example.com/gpu": gpus}
    return {name: amount for name, amount in asked.items() if amount}


@st.composite
def some_loop(draw, steps: list[Step]) -> tuple[list[Step], tuple[Group, ...]]:
    """Put the later steps into a loop, once for every iteration; sometimes with a loop inside."""
    cut = draw(st.integers(0, len(steps) - 1))
    before, body = steps[:cut], steps[cut:]
    width, parallelism = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    names = {step.name for step in body}
    groups = [
        Group("loop", GroupKind.LOOP, "", tuple(step.name for step in before[-1:]), parallelism)
    ]
    result = list(before)
    nested = draw(st.booleans()) and len(body) < 3
    for index in range(width):
        outer = f"loop[{index}]"
        groups.append(Group(outer, GroupKind.ITERATION, "loop"))
        homes = [outer]
        if nested:
            groups.append(Group(f"{outer}.in", GroupKind.LOOP, outer, (), 1))
            homes = [f"{outer}.in[{inner}]" for inner in range(2)]
            groups += [Group(home, GroupKind.ITERATION, f"{outer}.in") for home in homes]
        for home in homes:

            def renamed(name: str, home: str = home) -> str:
                return f"{home}.{name}" if name in names else name

            result += [
                replace(
                    step,
                    name=renamed(step.name),
                    task=f"loop[*].{step.name}",
                    group=home,
                    iteration=(index,),
                    depends_on=tuple(sorted(renamed(name) for name in step.depends_on)),
                    inputs=tuple(
                        replace(each, producer=renamed(each.producer)) for each in step.inputs
                    ),
                )
                for step in body
            ]
    return result, tuple(groups)


@st.composite
def cases(draw, kinds: tuple[str, ...] = KINDS, most_steps: int = 6, most_nodes: int = 3) -> Case:
    """A run and a cluster."""
    kind = draw(st.sampled_from(kinds))
    claims = tuple(
        RunClaim(name, draw(st.sampled_from(ACCESS_MODES))) for name in ("disk", "shelf")
    )
    steps = draw(
        some_steps(draw(st.integers(1, most_steps)), kind, tuple(claim.name for claim in claims))
    )
    groups: tuple[Group, ...] = ()
    if kind == "kfp":
        groups = (Group("", GroupKind.ROOT),)
        if draw(st.booleans()):
            steps, loops = draw(some_loop(steps[:3]))
            groups += loops
    members = draw(some_nodes(most_nodes))
    return Case(
        RunGraph(
            name="random",
            source={"plain": "argo-workflow", "kfp": "kfp-package", "direct": "wfformat"}[kind],
            steps=tuple(steps),
            groups=groups,
            claims=claims,
            direct_transfers=kind == "direct",
        ),
        Cluster(
            members,
            latencies=draw(some_latencies(members)),
            claims=draw(some_claims(members)),
        ),
    )


@st.composite
def some_latencies(draw, members: tuple[Node, ...]) -> dict[str, dict[str, float]]:
    """Round trips to one location, known for some of the nodes."""
    trips = {
        node.name: draw(st.sampled_from([9.0, 9.4, 10.0, 20.0, 90.0]))
        for node in members
        if draw(st.integers(0, 3))
    }
    return draw(st.sampled_from([{LOCATION: trips}, {}]))


@st.composite
def some_claims(draw, members: tuple[Node, ...]) -> tuple[Claim, ...]:
    """What the cluster knows of the claim `disk`."""
    term = NodeSelectorTerm((Requirement("zone", "In", ("a",)),))
    return draw(
        st.sampled_from(
            [
                (),
                (),
                (),
                (Claim("disk", access_modes=("ReadWriteOnce",)),),
                (Claim("disk", access_modes=("ReadWriteMany",)),),
                (Claim("disk", access_modes=("ReadWriteOncePod",)),),
                (Claim("disk", required_terms=(term,)),),
                (Claim("disk", used_on=(members[0].name,)),),
            ]
        )
    )
