"""Options and result of lowering."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.limits import LimitName
from kfp_placement_engine.lowering.pods import PodShape
from kfp_placement_engine.lowering.tables import ClassTables
from kfp_placement_engine.lowering.volumes import VolumeRules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.node_rules.images import ImageSize
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import PlacementProblem


@dataclass(frozen=True)
class LoweringOptions:
    """The options of lowering; fields as in `planning.PlanOptions`."""

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
    """A problem, with its origin, from which its plan is explained.

    Attributes:
        problem: placement problem.
        runs: runs that it was made from.
        options: options of lowering.
        activities: activities that have not ended, run after run; the problem also has activities
            for reserved rooms, behind these.
        shapes: [K] shapes of pods.
        image_sizes: sizes of the runs' images and their sources, by canonical reference.
        tables: tables of classes by nodes.
        volumes: volume rules.
        limits: [M] names of the limits of what is under way at once.
        notices: notices for people.
    """

    problem: PlacementProblem
    runs: tuple[ActiveRun, ...]
    options: LoweringOptions
    activities: tuple[Activity, ...]
    shapes: tuple[PodShape, ...]
    image_sizes: Mapping[str, ImageSize]
    tables: ClassTables
    volumes: VolumeRules
    limits: tuple[LimitName, ...]
    notices: tuple[Notice, ...]

    @cached_property
    def step_activities(self) -> tuple[dict[str, int], ...]:
        """Step name -> activity, one mapping for each run; steps that have ended are not in it."""
        result: tuple[dict[str, int], ...] = tuple({} for _ in self.runs)
        for index, activity in enumerate(self.activities):
            if activity.step is not None:
                result[activity.run][activity.step.name] = index
        return result
