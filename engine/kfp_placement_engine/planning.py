"""Plan one run on one cluster: the façade used by SDK, command line and controller."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kfp_placement_engine.assumptions import Assumptions
from kfp_placement_engine.cluster import Cluster
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.plan import Plan
from kfp_placement_engine.run_graph import RunGraph

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a short text."""


@dataclass(frozen=True)
class PlanOptions:
    """How to plan.

    Attributes:
        budget_seconds: time for the search; reading and simulating are not counted.
        generations: stop after so many generations instead (replays a plan exactly).
        seed: of the random generator.
        dispatch: `ready`, `ordered`, or `auto`: `ready` for KFP and Argo runs (what the scheduler
            extender does), `ordered` for workflow formats, which no cluster dispatches.
        objective: `completion`, `paper` or `packing`.
        kube_version: (major, minor) of the kube-scheduler that the baseline imitates.
        compare: names of the baselines to simulate as well.
        marked_only: only steps with a scheduler mark are planned; the others go where the default
            scheduler puts them.
        latency_ruled_types: step types that follow the latency rule, lower case.
        assumptions: stand-ins for what is unknown.
        threads: of the search; does not change the plan. 0 = one per core.
    """

    budget_seconds: float = 2.0
    generations: int | None = None
    seed: int = 0
    dispatch: str = "auto"
    objective: str = "completion"
    kube_version: tuple[int, int] = (1, 36)
    compare: tuple[str, ...] = ("kube-default", "heft")
    marked_only: bool = False
    latency_ruled_types: tuple[str, ...] = LATENCY_RULED_TYPES
    assumptions: Assumptions = field(default_factory=Assumptions)
    threads: int = 0


def plan_run(
    graph: RunGraph,
    cluster: Cluster,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan `graph` on `cluster`.

    Raises:
        PlanningError: an option, or a cluster without nodes, that cannot be planned with.
    """
    raise NotImplementedError
