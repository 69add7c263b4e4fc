"""Runs and clusters with a bit of everything, of any size, drawn from a seed.

Unlike those of `random_runs`, they are the same with every version of hypothesis, so that what is
computed of them can be kept. All draws are choices of whole numbers: no platform draws another run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from kfp_placement_engine import (
    ActiveRun,
    Claim,
    Cluster,
    Node,
    ProgressState,
    ReservedRoom,
    ReservedRun,
    RunGraph,
    Step,
    StepProgress,
    Taint,
)
from kfp_placement_engine.model.pod_constraints import NodeAffinity, PreferredTerm, Toleration
from kfp_placement_engine.model.run_graph import DataInput, Group, GroupKind, RunClaim, StepKind
from kfp_placement_engine.model.step_names import task_of
from tests.support.builders import GIBIBYTE, a_node, in_zone

SOURCES = {"plain": "argo-workflow", "kfp": "kfp-package", "direct": "wfformat"}
LOCATION = "HOME-EDGE"
GPU = "example.com/gpu"
CLAIMS = (
    RunClaim("disk", ("ReadWriteOnce",)),
    RunClaim("shelf", ("ReadWriteMany",)),
    RunClaim("key", ("ReadWriteOncePod",)),
    RunClaim("lock", ("ReadWriteOncePod",)),
)
IMAGES = ("", "", "tool:1", "model:2", "untagged")
IMAGES_AND_PULLS = ((200, (None, 25.0)), (2**32, (2.0**31, 2.0**30)))
"""Sizes of images, with rates at which nodes pull them.

Large images count for kube-scheduler; then pulls are quick, and times still exact.
"""


@dataclass(frozen=True)
class Mixture:
    """What is drawn.

    Attributes:
        kind: a key of `SOURCES`.
        steps: how many, before loops repeat some of them.
        nodes: how many.
        seed: the same seed is the same run and cluster.
        claims: whether steps mount volume claims.
    """

    kind: str
    steps: int
    nodes: int
    seed: int = 0
    claims: bool = True

    def random(self, purpose: str) -> Random:
        """A generator for one purpose."""
        return Random(f"{purpose} {self.kind} {self.steps} {self.nodes} {self.seed}")


def mixed_cluster(mixture: Mixture) -> Cluster:
    """Nodes of different sizes, speeds, rates, labels, taints, images and room taken."""
    random = mixture.random("cluster")
    size, rates = random.choice(IMAGES_AND_PULLS)
    members = tuple(mixed_node(random, number, size, rates) for number in range(mixture.nodes))
    trips = {node.name: random.choice([9.0, 9.4, 10.0, 20.0, 90.0]) for node in members[::-2]}
    claims = (
        Claim("shelf", access_modes=("ReadWriteMany",)),
        Claim("lock", access_modes=("ReadWriteOncePod",)),
    )
    return Cluster(members, latencies={LOCATION: trips}, claims=claims)


def mixed_run(mixture: Mixture) -> RunGraph:
    """Steps that depend on earlier ones; in a KFP run the later ones are in loops."""
    random = mixture.random("run")
    claims = [claim.name for claim in CLAIMS] if mixture.claims else []
    steps: list[Step] = []
    for number in range(mixture.steps):
        earlier = [step.name for step in steps[-12:]]
        steps.append(mixed_step(random, mixture.kind, number, earlier, claims))
    groups: tuple[Group, ...] = ()
    if mixture.kind == "kfp":
        cut = (2 * mixture.steps) // 3
        width, parallelism = random.choice([3, 4]), random.choice([1, 2])
        after = (steps[cut - 1].name,)
        body, inside = in_a_loop(steps[cut:], after, width, parallelism, inner_width=2)
        groups = (Group("", GroupKind.ROOT), *inside)
        steps = [*steps[:cut], *body]
    return RunGraph(
        name=f"mixed {mixture.seed}",
        source=SOURCES[mixture.kind],
        steps=tuple(steps),
        groups=groups,
        claims=CLAIMS,
        direct_transfers=mixture.kind == "direct",
    )


def begun_run(mixture: Mixture) -> ActiveRun:
    """The run in the middle of things: some steps have ended, some run, some keep a node."""
    random, run = mixture.random("progress"), mixed_run(mixture)
    names = [f"n{number}" for number in range(mixture.nodes)]
    progress: dict[str, StepProgress] = {}
    ended: set[str] = set()
    for step in run.steps[: len(run.steps) // 2]:
        if not ended.issuperset(step.depends_on):
            continue
        done = random.randrange(3) > 0
        if done:
            ended.add(step.name)
        # Pods on several nodes cannot have one volume; a node may also be lost.
        node = names[0] if step.claims else random.choice([*names, "lost"])
        state = ProgressState.DONE if done else ProgressState.RUNNING
        progress[step.name] = StepProgress(state, node, random.choice([0.0, 0.5, 2.5, 30.0]))
    held = {
        step.name: random.choice(names)
        for step in run.steps
        if step.name not in progress and random.randrange(5) == 0
    }
    return ActiveRun(f"run-{mixture.seed}", run, -7.5, progress=progress, held=held)


def room_of_another(cluster: Cluster) -> ReservedRun:
    """Room on nodes that another run keeps, from before now on, by and by."""
    rooms = [
        ReservedRoom(node.name, start, start + 7, {"cpu": 1500})
        for node in cluster.nodes[:5]
        for start in (-2.0, 1.0, 3.0)
    ]
    return ReservedRun("other", tuple(rooms), weight=0.5)


def mixed_node(
    random: Random,
    number: int,
    image_bytes: int,
    pull_rates: Sequence[float | None],
    cpu: Sequence[int] = (3, 4, 6, 8),
    memory: Sequence[int] = (4, 8, 16),
) -> Node:
    """One node; most of its values are drawn, sizes from those that are given."""
    taints = random.choice(
        [(), (), (), (), (Taint("only", "us"),), (Taint("rather", "not", "PreferNoSchedule"),)]
    )
    used = random.choice([{}, {}, {"cpu": 500, "memory": GIBIBYTE // 2, "pods": 1}])
    held = random.sample(["tool:1", "model:2", "untagged:latest"], random.randrange(3))
    return a_node(
        f"n{number}",
        cpu=random.choice(cpu),
        memory=random.choice(memory),
        pods=random.choice([110, 110, 5]),
        extended=random.choice([{}, {}, {GPU: 1}, {GPU: 2}]),
        used=used,
        scored_used=used,
        speed=random.choice([0.5, 1.0, 1.0, 2.0]),
        labels={"zone": random.choice("ab")},
        taints=taints,
        unschedulable=random.randrange(12) == 0 and number > 0,
        images=dict.fromkeys(held, image_bytes),
        store_bytes_per_second=random.choice([None, 50.0, 200.0]),
        pull_bytes_per_second=random.choice(pull_rates),
    )


def _affinity(random: Random) -> NodeAffinity:
    both = in_zone("a", "b")
    one = in_zone("b")
    preferred = NodeAffinity(preferred=(PreferredTerm(30, one),))
    return random.choice([*[NodeAffinity()] * 4, NodeAffinity(required=(both,)), preferred])


def _requests(random: Random) -> dict[str, int]:
    asked = {
        "cpu": random.choice([0, 250, 500, 1000, 1000, 2000, 3000]),
        "memory": random.choice([0, 0, GIBIBYTE, 2 * GIBIBYTE]),
        GPU: random.choice([0] * 7 + [1]),
    }
    return {name: amount for name, amount in asked.items() if amount}


def _claims(random: Random, kind: str, names: Sequence[str]) -> tuple[str, ...]:
    if kind == "direct" or not names or random.randrange(4):
        return ()
    return (random.choice(names),)


def mixed_step(
    random: Random, kind: str, number: int, earlier: Sequence[str], claims: Sequence[str]
) -> Step:
    """One step of a kind of run; it may depend on earlier ones, and mount one of the claims."""
    before = random.sample(earlier, min(len(earlier), random.choice([0, 1, 1, 2])))
    read = [name for name in before if random.randrange(2)]
    inputs = [DataInput(name, "data", random.choice([50, 100, 300])) for name in read]
    if kind != "direct" and random.randrange(6) == 0:
        inputs.append(DataInput("", "outside", None))
    predicts = random.randrange(5) == 0
    importer = kind == "kfp" and random.randrange(12) == 0
    return Step(
        name=f"s{number}",
        task=f"s{number}",
        kind=StepKind.IMPORTER if importer else StepKind.CONTAINER,
        image=random.choice(IMAGES),
        requests=_requests(random),
        scheduler=random.choice(["kfp-placement", "kfp-placement", ""]),
        type=random.choice(["Predict", "serving", "Training"]) if predicts else "Training",
        location=LOCATION.lower() if predicts else "",
        max_latency_ms=random.choice([None, None, 15.0]) if predicts else None,
        duration_seconds=random.choice([None, 0, 1, 2, 3, 5, 8, 13]),
        output_bytes={} if kind == "direct" else {"data": random.choice([0, 100])},
        inputs=tuple(inputs),
        node_selector=random.choice([{}] * 9 + [{"zone": "a"}]),
        affinity=_affinity(random),
        tolerations=random.choice(
            [(), (Toleration("only", "Exists"),), (Toleration("", "Exists"),)]
        ),
        claims=_claims(random, kind, claims),
        depends_on=tuple(sorted(before)),
        has_driver=kind == "kfp",
        assumed_cached=random.randrange(15) == 0,
    )


def in_a_loop(
    body: Sequence[Step],
    after: tuple[str, ...],
    width: int,
    parallelism: int,
    inner_width: int,
    *,
    per_iteration: bool = True,
) -> tuple[list[Step], list[Group]]:
    """The steps once for each iteration of a loop, or of one in it that has a limit of 1.

    `per_iteration` says whether each iteration has a driver.
    """
    groups = [Group("loop", GroupKind.LOOP, "", after, parallelism)]
    homes: list[tuple[str, tuple[int, ...]]] = []
    for index in range(width):
        outer = f"loop[{index}]"
        groups.append(Group(outer, GroupKind.ITERATION, "loop", has_driver=per_iteration))
        if inner_width:
            inner = f"{outer}.in"
            inside = [f"{inner}[{number}]" for number in range(inner_width)]
            groups.append(Group(inner, GroupKind.LOOP, outer, (), 1))
            groups += [
                Group(name, GroupKind.ITERATION, inner, has_driver=per_iteration) for name in inside
            ]
            homes += [(name, (index, number)) for number, name in enumerate(inside)]
        else:
            homes.append((outer, (index,)))
    names = {step.name for step in body}
    steps: list[Step] = []
    for home, iteration in homes:
        new = {name: f"{home}.{name}" for name in names}
        steps += [
            replace(
                step,
                name=new[step.name],
                task=task_of(new[step.name]),
                group=home,
                iteration=iteration,
                depends_on=tuple(sorted(new.get(name, name) for name in step.depends_on)),
                inputs=tuple(
                    replace(each, producer=new.get(each.producer, each.producer))
                    for each in step.inputs
                ),
            )
            for step in body
        ]
    return steps, groups
