"""All that the runs of one namespace tell: of steps, and of whole runs."""

from collections.abc import Iterable

from kfp_placement_engine.history.history import History
from kfp_placement_engine.history.node_factors import NodeFactors
from kfp_placement_engine.history.run_ends import RunEnds
from kfp_placement_engine.model.history import Distribution, PastRun


class Past:
    """What is known of one namespace; runs in, in the order in which they ended.

    Attributes:
        steps: run times of steps.
        ends: ends of runs.
    """

    def __init__(
        self,
        runs: Iterable[PastRun] = (),
        namespace: str = "",
        factors: NodeFactors | None = None,
        others: "Past | None" = None,
    ) -> None:
        """Learn from runs, whatever their order.

        Args:
            runs: of the namespace.
            namespace: its name.
            factors: of nodes.
            others: the past of the whole namespace, if these are the runs of one pipeline only:
                asked for what they do not tell.
        """
        self.steps: History = History(namespace, factors, None if others is None else others.steps)
        self.ends: RunEnds = RunEnds(None if others is None else others.ends)
        for run in sorted(runs, key=lambda each: (each.ended_at, each.uid)):
            self.observe(run)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended: from its steps first, then from what was left."""
        self.steps.observe(run.steps)
        if run.played_seconds is not None and run.seconds is not None:
            self.ends.observe(run.pipeline, run.played_seconds, run.seconds)

    def overrun(self, pipeline: str) -> Distribution | None:
        """How many times longer than its samples the next run takes; None = no run is known."""
        forecast = self.ends.predict(pipeline, 1.0)
        return None if forecast is None else forecast.distribution
