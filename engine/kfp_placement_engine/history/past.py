"""All that the runs of one namespace tell: of steps, and of whole runs."""

from collections import deque
from collections.abc import Iterable
from statistics import median_low

from kfp_placement_engine.history.courses import Courses
from kfp_placement_engine.history.history import History
from kfp_placement_engine.history.levels import RECENT
from kfp_placement_engine.history.memory import MemoryHistory
from kfp_placement_engine.history.node_factors import NodeFactors
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.retries import KnownRetries
from kfp_placement_engine.history.run_ends import RunEnds
from kfp_placement_engine.model.forecast import Forecast
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun


class Past:
    """What is known of one namespace; runs in, in the order in which they ended.

    Attributes:
        steps: run times of steps.
        ends: ends of runs.
        memory: what steps used; None = nobody asks for that.
        courses: widths of loops, cache hits, branches.
        retries: of steps, and what they took.
    """

    def __init__(
        self,
        runs: Iterable[PastRun] = (),
        namespace: str = "",
        factors: NodeFactors | None = None,
        memory: MemoryHistory | None = None,
        of_namespace: "Past | None" = None,
    ) -> None:
        """Learn from runs, whatever their order.

        Args:
            runs: of the namespace.
            namespace: its name.
            factors: of nodes.
            memory: where to keep what steps used; None = nowhere.
            of_namespace: the past of the whole namespace, if these are the runs of one pipeline
                only: asked for what they do not tell.
        """
        self.steps: History = History(
            namespace, factors, None if of_namespace is None else of_namespace.steps
        )
        self.ends: RunEnds = RunEnds(None if of_namespace is None else of_namespace.ends)
        self.memory = memory
        self.courses = Courses()
        self.retries = KnownRetries()
        self._driver_seconds: Recent[str, deque[float]] = Recent(MOST_PIPELINES)
        for run in sorted(runs, key=lambda each: each.order):
            self.observe(run)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended: from its steps first, then from what was left."""
        # Before its steps are known.
        self.retries.observe(run, lambda task: self.steps.runs(run.pipeline, task))
        self.steps.observe(run.steps)
        self.courses.observe(run)
        if run.driver_seconds is not None:
            last = self._driver_seconds.used(run.pipeline, lambda: deque(maxlen=RECENT))
            last.append(run.driver_seconds)
        if run.played_seconds is not None and run.seconds is not None:
            apart = self._drivers_apart(run)
            replayed = None if run.replayed_seconds is None else run.replayed_seconds + apart
            seconds = run.seconds - run.failed_seconds
            self.ends.observe(run.pipeline, run.played_seconds + apart, seconds, replayed)
        if self.memory is not None:
            self.memory.observe_run(run)

    def share(self, others: "Iterable[Past]") -> None:
        """Ask these too, of other namespaces, of components and images that are not known here."""
        self.steps.share(each.steps for each in others)

    def rest_on(self, of_namespace: "Past") -> None:
        """Ask this one of the namespace from now on, if these are the runs of one pipeline.

        What these runs have taught does not depend on it.
        """
        self.steps.rest_on(of_namespace.steps)
        self.ends.rest_on(of_namespace.ends)

    def driver_seconds(self, pipeline: str) -> float | None:
        """What each driver takes in samples of the pipeline's runs; None = not known.

        The median of what it took in the last ones: a run whose drivers waited for room, such as
        the first on nodes that had just started, is forgotten.
        """
        last = self._driver_seconds.get(pipeline)
        return median_low(last) if last else None

    def _drivers_apart(self, run: PastRun) -> float:
        """How many seconds later samples of the run would end with the drivers of today.

        `overrun` thus tells of such samples. It would follow a change of drivers as well, and
        what both follow would count twice.
        """
        now, then = self.driver_seconds(run.pipeline), run.driver_seconds
        if run.drivers is None or now is None or then is None:
            return 0.0
        return run.drivers * (now - then)

    def overrun(self, pipeline: str) -> Forecast:
        """How many times longer than its samples the next run takes."""
        return self.ends.predict(pipeline)
