"""What lowering takes besides runs and cluster, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.pods import PodShape
from kfp_placement_engine.lowering.tables import ClassTables
from kfp_placement_engine.lowering.volumes import VolumeRules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.image_sizes import ImageSize
from kfp_placement_engine.model.latency import LatencyTolerance
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import PlacementProblem


@dataclass(frozen=True)
class LoweringOptions:
    """How runs become a problem; fields as in `planning.PlanOptions`."""

    assumptions: Assumptions = field(default_factory=Assumptions)
    dispatch: str = "ready"
    objective: str = "completion"
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    kube_version: tuple[int, int] = (1, 36)
    marked_only: bool = False
    latency_ruled_types: tuple[str, ...] = ()
    latency_tolerance: LatencyTolerance = field(default_factory=LatencyTolerance)


@dataclass(frozen=True)
class Lowered:
    """A problem and what is needed to explain it.

    Attributes:
        problem: the problem.
        runs, options: what it was made from, and how.
        activities: the pods that have not ended, run after run; behind them the problem has the
            reserved rooms.
        shapes: [K] the shapes of pods.
        image_sizes: how large the runs' images are, by canonical reference, and who says so.
        tables: the class tables.
        volumes: the volume rules.
        notices: what to tell people.
    """

    problem: PlacementProblem
    runs: tuple[ActiveRun, ...]
    options: LoweringOptions
    activities: tuple[Activity, ...]
    shapes: tuple[PodShape, ...]
    image_sizes: Mapping[str, ImageSize]
    tables: ClassTables
    volumes: VolumeRules
    notices: tuple[Notice, ...]

    @cached_property
    def step_activities(self) -> tuple[dict[str, int], ...]:
        """By run: step name -> its activity; steps that have ended have none."""
        result: tuple[dict[str, int], ...] = tuple({} for _ in self.runs)
        for index, activity in enumerate(self.activities):
            if activity.step is not None:
                result[activity.run][activity.step.name] = index
        return result
