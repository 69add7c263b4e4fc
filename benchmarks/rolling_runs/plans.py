"""Plans of all runs that have arrived, with what has happened to their steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rolling_runs.tasks import State, Task
from kfp_placement_engine import Cluster, RunGraph, solve
from kfp_placement_engine.lowering import LoweringOptions, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.planning.warm_start import warm_placement
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.search.stop import StoppingCriterion


@dataclass(frozen=True)
class Planner:
    """Plans runs together, as one round of the controller in which all of them may move.

    Attributes:
        graphs: the runs, with the times that are planned with.
        arrivals: times of submission.
        cluster: cluster of the runs.
        seed: seed of the searches.
        stop: function that makes the stopping criterion of a search.
        assumptions: assumptions of the plans, such as how much longer an overrun will take.
    """

    graphs: Sequence[RunGraph]
    arrivals: Sequence[float]
    cluster: Cluster
    seed: int
    stop: Callable[[], StoppingCriterion]
    assumptions: Assumptions

    def plan(self, tasks: Mapping[int, Mapping[str, Task]], now: float) -> None:
        """Plan runs from now on.

        Args:
            tasks: the steps of the runs, by the run's number and by name; they get their planned
                nodes and times, those that run their expected ends.
            now: seconds since the first arrival.
        """
        runs = [self._active_run(number, steps, now) for number, steps in tasks.items()]
        options = LoweringOptions(self.assumptions, dispatch="ordered")
        lowered = lower_runs(runs, self.cluster, options)
        names = [node.name for node in self.cluster.nodes]
        nodes = {
            (str(task.run), task.name): names[task.planned_node]
            for steps in tasks.values()
            for task in steps.values()
            if task.planned_node >= 0
        }
        start = warm_placement(lowered, nodes) if nodes else None
        outcome = solve(lowered.problem, self.stop(), self.seed, warm_start=start, threads=1)
        starts, ends = outcome.schedule.start.tolist(), outcome.schedule.end.tolist()
        planned = outcome.schedule.node.tolist()
        for steps, activities in zip(tasks.values(), lowered.step_activities, strict=True):
            for name, activity in activities.items():
                task = steps[name]
                task.finish = now + ends[activity]
                if task.state is not State.RUNS:
                    task.planned_node, task.start = planned[activity], now + starts[activity]

    def _active_run(self, number: int, steps: Mapping[str, Task], now: float) -> ActiveRun:
        names = [node.name for node in self.cluster.nodes]
        progress = {}
        for task in steps.values():
            if task.state is State.DONE:
                progress[task.name] = StepProgress(ProgressState.DONE, names[task.node])
            elif task.state is State.RUNS:
                since = now - task.start
                progress[task.name] = StepProgress(ProgressState.RUNNING, names[task.node], since)
        release = self.arrivals[number] - now
        return ActiveRun(str(number), self.graphs[number], release, progress=progress)
