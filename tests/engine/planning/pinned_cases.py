"""The problems of which it is kept what the planner computes; see `test_same_plans`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.seed_experiment import Draw, draw_problem
from benchmarks.wfinstances import CLUSTERS, slot_problem, slot_run
from kfp_placement_engine import (
    LoweringOptions,
    PlacementProblem,
    RunGraph,
    lower,
    read_cluster_file,
    read_run_file,
)
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.lowering import lower_runs, with_reservations
from tests.engine.planning.mixed_runs import (
    Mixture,
    begun_run,
    mixed_cluster,
    mixed_run,
    room_of_another,
)
from tests.support.builders import ROUND_NUMBERS, a_cluster, a_node, a_run, a_step, cluster_of
from tests.support.checkout import ROOT
from tests.support.data import data_path
from tests.support.samples import SAMPLES

ONE_IN_TURN = tuple(
    product(("ready", "ordered"), ("completion", "packing", "paper"), ((1, 36), (1, 34)))
)
"""Dispatch, objective and version of kube-scheduler: case after case takes the next."""

OF_WORKFLOWS = (
    "1000genome-chameleon-2ch-100k-001",
    "blast-chameleon-small-001",
    "sarek-dirt02-001",
)


@dataclass(frozen=True)
class Case:
    """A problem, and how long it is searched.

    Attributes:
        name: of the case.
        problem: makes the problem, or skips the test where data is not there.
        generations: after those of the plans that the search starts from.
        is_stored: it is read from files that do not lie in the repository.
    """

    name: str
    problem: Callable[[], PlacementProblem]
    generations: int = 4
    is_stored: bool = False


def all_cases() -> Iterator[Case]:
    """Every case."""
    yield from _mixed()
    yield from _together()
    yield from _made_up()
    yield from _special()
    yield from _samples()
    yield from _elsewhere()


def _options(turn: int, **changes: Any) -> LoweringOptions:
    dispatch, objective, version = ONE_IN_TURN[turn % len(ONE_IN_TURN)]
    fields = {"dispatch": dispatch, "objective": objective, "kube_version": version}
    return LoweringOptions(latency_ruled_types=LATENCY_RULED_TYPES, **{**fields, **changes})


def _mixed() -> Iterator[Case]:
    """Runs that begin, with all that pods can ask for."""
    sizes = ((9, 3), (14, 5), (20, 8), (30, 4))
    for turn, (kind, (steps, members)) in enumerate(product(("kfp", "plain", "direct"), sizes)):
        # In a KFP run loops repeat steps.
        steps = steps if kind == "kfp" else 3 * steps
        mixture = Mixture(kind, steps, members, seed=turn, claims=turn % 4 != 3)
        options = _options(7 * turn, assumptions=ROUND_NUMBERS, marked_only=turn % 5 == 4)

        def problem(mixture: Mixture = mixture, options: LoweringOptions = options):
            return lower(mixed_run(mixture), mixed_cluster(mixture), options).problem

        yield Case(f"mixed {kind}, {steps} steps on {members} nodes", problem)


def _together() -> Iterator[Case]:
    """Runs that have begun, several at a time, some beside room that is reserved."""
    for turn, (kind, members) in enumerate(product(("kfp", "plain", "direct"), (3, 6, 70))):
        mixtures = [Mixture(kind, 14 + 5 * seed, members, seed) for seed in range(1 + turn % 3)]
        # Overruns as they were expected when the hashes were made.
        options = _options(5 * turn + 3, assumptions=replace(ROUND_NUMBERS, overrun_share=0.1))

        def problem(mixtures=mixtures, options=options, reserved=turn % 2 == 0):
            runs = [replace(begun_run(each), weight=1 + each.seed / 2) for each in mixtures]
            cluster = mixed_cluster(mixtures[0])
            made = lower_runs(runs, cluster, options).problem
            return with_reservations(made, [room_of_another(cluster)]) if reserved else made

        runs = "a begun run" if len(mixtures) == 1 else f"{len(mixtures)} begun runs"
        yield Case(f"{runs}, {kind}, on {members} nodes", problem)


def _made_up() -> Iterator[Case]:
    """Larger and plainer ones; of 100 nodes or more kube-scheduler looks at a part."""
    sizes = ((20, 4), (300, 12), (150, 20), (60, 70), (60, 100), (120, 150), (200, 300), (90, 129))
    for turn, (kind, (steps, members)) in enumerate(product(("kfp", "workflow"), sizes)):
        shape = Shape(kind, steps, members, seed=turn)
        usual = {"kfp": "ready", "workflow": "ordered"}[kind]
        other = {"ready": "ordered", "ordered": "ready"}[usual]
        options = _options(5 * turn, dispatch=usual if turn % 4 else other)

        def problem(shape: Shape = shape, options: LoweringOptions = options):
            return lower(rounded(made_up_run(shape)), made_up_cluster(shape), options).problem

        generations = 4 if members < 100 else 8
        yield Case(f"made-up {kind}, {steps} steps on {members} nodes", problem, generations)


def rounded(run: RunGraph) -> RunGraph:
    """The run with times in thousandths of a second.

    They are drawn with the C library's logarithm, which is not the same to the last bit everywhere.
    """
    steps = [
        replace(step, duration_seconds=round(step.duration_seconds or 0, 3)) for step in run.steps
    ]
    return replace(run, steps=tuple(steps))


def _special() -> Iterator[Case]:
    """What the others have too little of."""
    yield Case("a project of 30 jobs", lambda: a_project(30, seed=1))
    yield Case("a project of 60 jobs", lambda: a_project(60, seed=2))
    yield Case("more than 256 kinds of pods", many_kinds, generations=2)
    yield Case("equal steps, ready", lambda: many_ties("ready"))
    yield Case("equal steps, ordered", lambda: many_ties("ordered"))
    for draw in (Draw("high", "equal", 0), Draw("low", "proportional", 1, "subtask")):
        name = f"the paper's experiment, {draw.mix}, {draw.durations}"
        yield Case(name, partial(draw_problem, draw), 1)


def a_project(jobs: int, seed: int) -> PlacementProblem:
    """Jobs that need four resources of one node, in whole seconds."""
    random = Random(seed)
    names = [f"example.com/r{number}" for number in range(4)]
    steps = []
    for number in range(jobs):
        before = random.sample(
            range(max(0, number - 8), number), min(number, random.choice([1, 2]))
        )
        needs = {name: random.choice([0, 0, 1, 3, 7]) for name in names}
        after = [f"job-{each}" for each in before]
        seconds = random.randrange(1, 11)
        steps.append(a_step(f"job-{number}", *after, cpu=0, seconds=seconds, extended=needs))
    node = a_node(cpu=0, extended=dict.fromkeys(names, 12))
    return lower(a_run(*steps), a_cluster(node), LoweringOptions(dispatch="ordered")).problem


def many_kinds() -> PlacementProblem:
    """Steps of which no two ask for as much."""
    steps = [
        a_step(f"s{number}", *([f"s{number // 3}"] if number > 40 else []), cpu=0.5 + number / 1000)
        for number in range(280)
    ]
    return lower(a_run(*steps), cluster_of(9), LoweringOptions()).problem


def many_ties(dispatch: str) -> PlacementProblem:
    """Many events of one instant, many nodes of one score."""
    steps = [
        a_step(f"s{number}", *([f"s{number - 12}"] if number >= 12 else []), seconds=5)
        for number in range(60)
    ]
    options = LoweringOptions(dispatch=dispatch, kube_version=(1, 34))
    made = lower(a_run(*steps), cluster_of(5, cpu=2), options).problem
    return made if dispatch == "ready" else replace(made, ties="first")


def _samples() -> Iterator[Case]:
    """The samples on their clusters; one on a cluster without GPUs."""
    clusters = {
        "02_data_locality": ("cluster",),
        "03_gpu_and_images": ("cluster", "tainted"),
        "04_unequal_steps": ("cluster", "uneven"),
        "05_shared_workspace": ("cluster",),
        "06_taxi": ("cluster",),
    }
    pairs = [
        (sample, SAMPLES / sample / f"{name}.yaml")
        for sample in clusters
        for name in clusters[sample]
    ]
    thesis = ROOT / "tests/engine/planning/data/thesis.yaml"
    pairs.append(("03_gpu_and_images", thesis))
    for turn, ((sample, path), dispatch) in enumerate(product(pairs, ("ready", "ordered"))):
        options = _options(7 * turn + 5, dispatch=dispatch)

        def problem(sample=sample, path=path, options=options):
            run = read_run_file(SAMPLES / sample / "pipeline.yaml")
            return lower(run, read_cluster_file(path), options).problem

        yield Case(f"sample {sample} on {path.stem}, {dispatch}", problem, 2)


def _elsewhere() -> Iterator[Case]:
    """Recorded runs, which lie beside the repository."""
    for name, slots in product(OF_WORKFLOWS, CLUSTERS[:2]):

        def problem(name=name, slots=slots):
            path = data_path("wfinstances", f"{name}.json")
            return slot_problem(slot_run(path), slots.cluster())

        yield Case(f"{name} on {slots.name}", problem, 2, is_stored=True)
