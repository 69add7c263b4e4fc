"""Past of the runs of one namespace, or of one pipeline in it, to predict the next runs."""

from collections.abc import Iterable
from statistics import median_high

from kfp_placement_engine.history.memory_use import MemoryHistory
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.run_ends import RunEnds
from kfp_placement_engine.history.series import RECENT
from kfp_placement_engine.history.step_times import StepTimes
from kfp_placement_engine.model.history import LearnedWidth, PastRun

_MOST_LOOPS = 10_000
"""Largest number of loops that are kept; the loop that ran longest ago is dropped first."""


class Past:
    """Past of the runs of one namespace, or of one pipeline in it.

    Attributes:
        steps: run times of steps.
        ends: ends of runs.
        memory: memory use of the steps; None = it is not kept.
    """

    def __init__(
        self,
        runs: Iterable[PastRun] = (),
        of_namespace: "Past | None" = None,
        memory: MemoryHistory | None = None,
    ) -> None:
        """Learn from runs, given in any order.

        Args:
            runs: the runs.
            of_namespace: past of the whole namespace, if `runs` are those of one pipeline. It
                answers for steps that these runs do not have, and says how far forecasts miss.
                None = `runs` are those of the whole namespace.
            memory: store of the memory use of steps; None = it is not kept.
        """
        self.steps: StepTimes = StepTimes(None if of_namespace is None else of_namespace.steps)
        self.ends: RunEnds = RunEnds(None if of_namespace is None else of_namespace.ends)
        self.memory = memory
        self._widths: Recent[tuple[str, str], tuple[int, ...]] = Recent(_MOST_LOOPS)
        for run in sorted(runs, key=lambda each: each.order):
            self.observe(run)

    def observe(self, run: PastRun) -> None:
        """Learn from an ended run; all runs that ended before it must have been observed."""
        self.steps.observe(run.steps, whole_pipeline="" if run.seconds is None else run.pipeline)
        if run.seconds is not None:
            self.ends.observe(run.pipeline, run.seconds, run.planned_seconds)
        for loop, width in run.loops.items():
            key = run.pipeline, loop
            self._widths.use(key, (*self._widths.get(key, ()), width)[-RECENT:])
        if self.memory is not None:
            self.memory.observe(run)

    def widths(self, pipeline: str) -> dict[str, LearnedWidth]:
        """Return the usual width of each loop in a pipeline's last runs, by the loop's path."""
        return {
            loop: LearnedWidth(median_high(widths), len(widths))
            for (name, loop), widths in self._widths.items()
            if name == pipeline
        }
