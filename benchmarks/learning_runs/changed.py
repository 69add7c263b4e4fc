"""Ends of made-up runs after their graph, arguments or cluster changed, forecast before they begin.

Ten runs of a pipeline have ended, with inputs that were a bit larger or smaller each day. Then one
thing changes. What its promise says is held against the median of the past ends, and of the last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from benchmarks.learning_runs.cases import Case
from benchmarks.learning_runs.simulated_run import SimulatedRun, past_steps, simulate_run
from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.run_graph import DataInput, Group, GroupKind

RUNS_SEEN, SEEDS = 10, 20
SIZES, COMMON, OWN, ITEMS = 0.2, 0.05, 0.15, 0.2
"""Standard deviations of logarithms: of the size of a run's inputs, of the factor of all of its
steps, of the factor of each step, and of what items of the loop take."""

_GIBIBYTE = 2**30


@dataclass(frozen=True)
class Work:
    """Work of a run, and its nodes.

    Attributes:
        items: items of its loop.
        gibibytes: size of its inputs.
        is_checked: whether it has one more step, which has run in another pipeline before.
        nodes: nodes of the cluster.
        speed: speed of the nodes.
    """

    items: int = 6
    gibibytes: float = 8.0
    is_checked: bool = False
    nodes: int = 3
    speed: float = 1.0

    @property
    def cluster(self) -> Cluster:
        """Nodes with room for two steps each."""
        room = {"cpu": 4000, "memory": 64 * _GIBIBYTE, "pods": 110}
        names = [f"node-{number}-x{self.speed:g}" for number in range(self.nodes)]
        return Cluster(tuple(Node(name, room, speed=self.speed) for name in names))


BEFORE = Work()
CHANGES: Mapping[str, Work] = {
    "loop of 12 items instead of 6": replace(BEFORE, items=12),
    "loop of 3 items instead of 6": replace(BEFORE, items=3),
    "a step more, known elsewhere": replace(BEFORE, is_checked=True),
    "inputs twice as large": replace(BEFORE, gibibytes=2 * BEFORE.gibibytes),
    "inputs half as large": replace(BEFORE, gibibytes=BEFORE.gibibytes / 2),
    "a node less, of three": replace(BEFORE, nodes=BEFORE.nodes - 1),
    "nodes twice as fast": replace(BEFORE, speed=2 * BEFORE.speed),
}


def changed_ends(seeds: int = SEEDS) -> Iterator[Case]:
    """Yield a case for each change and seed; groups are changes."""
    for name, after in CHANGES.items():
        for seed in range(seeds):
            yield changed_end(name, after, seed)


def changed_end(name: str, after: Work, seed: int) -> Case:
    """Return the end of a run after a change, and the expected one."""
    pipeline, past, ends = _Pipeline(seed), Past(), list[float]()
    for number in range(RUNS_SEEN):
        past.observe(pipeline.elsewhere(number))
        run = pipeline.run(BEFORE, past)
        past.observe(run.past_run(number))
        ends.append(run.seconds)
    run = pipeline.run(after, past)
    case = run.case(name, ends)
    assert case is not None, run.first.unknown
    return case


class _Pipeline:
    """A pipeline, drawn: load, clean and fit each item, join; and steps beside these."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        tasks = ("load", "profile", "clean", "fit", "join", "check", "report")
        typical = (60.0, 90.0, 45.0, 240.0, 60.0, 90.0, 30.0)
        drawn = zip(tasks, typical, strict=True)
        self._seconds = {name: each * self._factor(0.4) for name, each in drawn}
        most = max(work.items for work in (BEFORE, *CHANGES.values()))
        self._items = [self._factor(ITEMS) for _ in range(most)]

    def _factor(self, deviation: float) -> float:
        return float(self._random.lognormal(0.0, deviation))

    def elsewhere(self, number: int) -> PastRun:
        """Simulate a run of another pipeline, which has one step of the same component."""
        step = self._step("check", 1.0, BEFORE.gibibytes * self._factor(SIZES))
        ended_at, steps = datetime.fromtimestamp(number, UTC), past_steps("elsewhere", [step])
        return PastRun(f"elsewhere-{number}", "elsewhere", ended_at, tuple(steps))

    def run(self, work: Work, past: Past) -> SimulatedRun:
        """Simulate a run with inputs of another size, planned by what is known."""
        today = replace(work, gibibytes=work.gibibytes * self._factor(SIZES))
        true = self._graph(today)
        steps = tuple(replace(step, duration_seconds=None) for step in true.steps)
        seconds = [step.duration_seconds or 0.0 for step in true.steps]
        return simulate_run(replace(true, steps=steps), seconds, work.cluster, past)

    def _graph(self, work: Work) -> RunGraph:
        common, size = self._factor(COMMON), work.gibibytes
        load = self._step("load", common, size)
        steps = [load, self._step("profile", common, size, "load")]
        groups = [Group("", GroupKind.ROOT), Group("loop", GroupKind.LOOP, width=work.items)]
        for number in range(work.items):
            groups.append(Group(f"loop[{number}]", GroupKind.ITERATION, parent="loop"))
            factor = common * self._items[number]
            for task, before in (("clean", "load"), ("fit", f"loop[{number}].clean")):
                step = self._step(task, factor, size, before)
                steps.append(
                    replace(
                        step,
                        name=f"loop[{number}].{task}",
                        task=f"loop[*].{task}",
                        group=f"loop[{number}]",
                        iteration=(number,),
                        iteration_key=f"item {number}",
                    )
                )
        fits = [step.name for step in steps if step.name.endswith(".fit")]
        steps.append(self._step("join", common, size, *fits))
        if work.is_checked:
            steps.append(self._step("check", common, size, "join"))
        steps.append(self._step("report", common, size, steps[-1].name, "profile"))
        return RunGraph("made-up", "kfp-package", tuple(steps), tuple(groups))

    def _step(self, task: str, factor: float, gibibytes: float, *before: str) -> Step:
        """Return a step; a fifth of its time is the same for inputs of any size."""
        share = 0.2 + 0.8 * gibibytes / BEFORE.gibibytes
        return Step(
            name=task,
            task=task,
            image=f"{task}:1",
            component=f"{task}:1",
            requests={"cpu": 2000, "memory": _GIBIBYTE},
            duration_seconds=self._seconds[task] * factor * share * self._factor(OWN),
            depends_on=tuple(sorted(before)),
            inputs=(DataInput("", "table", int(gibibytes * _GIBIBYTE)),),
        )
