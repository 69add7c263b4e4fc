"""How often the first plan of a run is there before the run's first pod of a step.

Workflows of Argo alone, whose first pod is already a step, and of KFP 2, which begin with drivers;
one after another, and in a burst. What came first is decided by the versions of the API server's
one history; seconds are those of the watches.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

from benchmarks.tables import Table, machine
from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, HINTS_ANNOTATION, SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.measuring_command import measure_by_command, say
from tests.controller.cluster_bench.recorder import Recorder, SeenPod, SeenRun
from tests.controller.cluster_bench.waiting_runs import create_at_once, numbered
from tests.controller.end_to_end.small_pipelines import chain
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLANNER, Installation, InstallationOptions
from tests.support.process_usage import cpu_seconds
from tests.support.taxi_cluster import taxi_nodes

POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}
STEP_SECONDS = 0.5
_TIMEOUT_SECONDS = 180.0


class Order(StrEnum):
    """When the first plan of a run was there."""

    BEFORE_POD = "before the pod"
    BEFORE_BIND = "before the bind"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True)
class FirstPlanSizes:
    """Options of the measurement.

    Attributes:
        runs: runs one after another, of each kind.
        burst: runs at once, of each kind.
        argo_controller: Argo's own controller; None = the stand-in.
        argo_crds: folder with the definitions of its kinds.
    """

    runs: int = 15
    burst: int = 20
    argo_controller: Path | None = None
    argo_crds: Path | None = None


@dataclass
class FirstPlans:
    """Measurement, and the rows of its table.

    Attributes:
        sizes: options.
        rows: rows of the table.
    """

    sizes: FirstPlanSizes
    rows: list[list[str]] = field(default_factory=list)

    def parts(self) -> Sequence[Table | Sequence[str]]:
        """What was measured by now, for the page."""
        argo = "Argo's own controller" if self.sizes.argo_controller else "the stand-in"
        headings = (
            *("first plan", *Order, "plan after", "pod after", "bind after", "run takes"),
            *("planner's CPU", "extender's CPU"),
        )
        return [
            [f"Workflows executed by {argo}; {machine()}. Seconds: medians of the runs."],
            Table("First plans", headings, self.rows),
        ]

    def measure(self) -> None:
        """All of it, on one control plane."""
        program, definitions = self.sizes.argo_controller, self.sizes.argo_crds
        argo = ArgoProgram(program, definitions) if program and definitions else None
        options = InstallationOptions(policy=POLICY, argo=argo)
        kinds = {"Argo": plain_run(), "KFP 2": chain("first", STEP_SECONDS, STEP_SECONDS)}
        ways = {"in a row": [1] * self.sizes.runs, "in a burst": [self.sizes.burst]}
        with ControlPlane(PlaneOptions(simulate_pods=False), say) as plane:
            housekeeping.add_nodes(plane.api, *taxi_nodes())
            with Installation(plane, options) as installation, Recorder(plane.api) as recorder:
                for kind, workflow in kinds.items():
                    for way, groups in ways.items():
                        row = _row(installation, recorder, workflow, groups)
                        self.rows.append([f"{kind}, {way}", *row])
                        say(" | ".join(self.rows[-1]))


def plain_run() -> JsonObject:
    """A Workflow of Argo alone: two marked steps, one after the other."""
    marks = {
        "labels": {SCHEDULER_LABEL: DEFAULT_SCHEDULER},
        "annotations": {HINTS_ANNOTATION: f'{{"duration": "{STEP_SECONDS}s"}}'},
    }
    work = {"image": "busybox:1", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
    tasks = [
        {"name": "s1", "template": "work"},
        {"name": "s2", "template": "work", "depends": "s1"},
    ]
    templates = [
        {"name": "main", "dag": {"tasks": tasks}},
        {"name": "work", "metadata": marks, "container": {**work, "command": ["true"]}},
    ]
    spec = {
        "entrypoint": "main",
        "serviceAccountName": "pipeline-runner",
        "templates": templates,
    }
    return {"apiVersion": ARGO_VERSION, "kind": "Workflow", "metadata": {}, "spec": spec}


def order_of(run: SeenRun, pod: SeenPod) -> Order:
    """When the first plan of a run was there, by the life of its first pod of a step."""
    version = next((each.version for each in run.plans if each.placement.spec.steps), None)
    if version is None:
        return Order.NEVER
    if version < pod.created_version:
        return Order.BEFORE_POD
    return Order.BEFORE_BIND if version < pod.bound_version else Order.LATER


def _row(
    installation: Installation,
    recorder: Recorder,
    workflow: JsonObject,
    groups: Sequence[int],
) -> list[str]:
    """Submit groups of runs, each after the end of the one before; returns the figures."""
    used = _cpu_seconds(installation)
    with installation.namespace() as team:
        runs: dict[str, SeenRun] = {}
        for number, count in enumerate(groups):
            items = numbered(workflow, f"run-{number}", count, team)
            group = {item["metadata"]["name"]: recorder.run(_key(item)) for item in items}
            create_at_once(installation.api, items)
            wait_until(
                lambda group=group: all(run.ended_at for run in group.values()),  # type: ignore[misc]
                f"{count} runs to end",
                _TIMEOUT_SECONDS,
            )
            runs |= group
        used = [
            after - before for before, after in zip(used, _cpu_seconds(installation), strict=True)
        ]
        pods = sorted(recorder.pods(team), key=lambda pod: -pod.created_version)
        first_pods = {pod.workflow: pod for pod in pods if pod.is_executor}
    pairs = [(run, first_pods[name]) for name, run in runs.items()]
    orders = Counter(order_of(run, pod) for run, pod in pairs)
    seconds = (
        [run.plans[0].seconds - (run.created_at or 0) for run, _ in pairs if run.plans],
        [pod.created_at - (run.created_at or 0) for run, pod in pairs],
        [(pod.bound_at or 0) - (run.created_at or 0) for run, pod in pairs],
        [(run.ended_at or 0) - (run.created_at or 0) for run, _ in pairs],
    )
    return [
        *(str(orders[each]) for each in Order),
        *(f"{median(each):.2f}" if each else "-" for each in seconds),
        *(f"{each:.2f}" for each in used),
    ]


def _key(item: JsonObject) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _cpu_seconds(installation: Installation) -> list[float]:
    return [cpu_seconds(installation.processes[name].pid) for name in (PLANNER, EXTEND)]


def main() -> int:
    """Measure; returns the exit code."""
    return measure_by_command(__doc__, FirstPlanSizes, FirstPlans, "First plans")


if __name__ == "__main__":
    sys.exit(main())
