"""Our processes beside a large cluster: times, memory, and what the extender costs a scheduler.

Nothing runs there: Argo and the kubelets are left out, pods are bound and stay so. What is measured
are our processes, and a kube-scheduler of the shipped configuration with and without the extender.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.tables import Table
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench import large_cluster, process_memory, scale_report, throughput
from tests.controller.cluster_bench.large_cluster import Run
from tests.controller.cluster_bench.measuring_command import measure_by_command, say
from tests.controller.cluster_bench.scale_report import Measured, Sizes
from tests.controlplane.argo.watching import Watched
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLANNER, SCHEDULER, Installation, InstallationOptions
from tests.support.process_usage import cpu_seconds
from tests.support.scraping import Scraped, quantile

_ANSWER, _TICK = "answer_cpu_seconds", "planner_tick_seconds"
_CHANGES = "watch_changes_total"
_START_TIMEOUT_SECONDS = 300.0
_PLANNED_TIMEOUT_SECONDS = 300.0

Say = Callable[[str], None]


def main() -> int:
    """Measure; returns the exit code."""
    return measure_by_command(__doc__, Sizes, LargeCluster, "A large cluster")


@dataclass
class PlansSeen:
    """When runs were first planned, and when a search had improved that.

    Attributes:
        first_at, improved_at: by the run's name.
    """

    first_at: dict[str, float] = field(default_factory=dict)
    improved_at: dict[str, float] = field(default_factory=dict)

    def placement_changed(self, item: JsonObject) -> None:
        """A plan was written."""
        name, now = item["metadata"]["name"], time.monotonic()
        self.first_at.setdefault(name, now)
        if item["spec"]["revision"] > 1:
            self.improved_at.setdefault(name, now)


class LargeCluster:
    """The measurements, one after another; what each finds is written down at once."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._measured = Measured(sizes)

    def parts(self) -> Sequence[Table | Sequence[str]]:
        """What was measured by now, for the page."""
        return scale_report.parts_of(self._measured)

    def measure(self) -> None:
        """All of them."""
        pod = large_cluster.recorded_pod()
        options = InstallationOptions(stand_ins=False, start_timeout_seconds=_START_TIMEOUT_SECONDS)
        with ControlPlane(PlaneOptions(simulate_pods=False), say) as plane:
            nodes = large_cluster.add_nodes(plane.api, self._sizes.nodes, say)
            with Installation(plane, options) as installation, installation.namespace() as team:
                items = large_cluster.bound_pods(pod, self._sizes.pods, nodes, team)
                began = time.monotonic()
                large_cluster.create_all(plane.api, list(items), "pods", say)
                say(f"pods created in {time.monotonic() - began:.0f} s")
                self._start_up(installation)
                runs = self._plan(installation, team)
                self._remember(installation)
                self._bind(plane, installation, pod, runs, team)
                self._remember(installation)

    def _start_up(self, installation: Installation) -> None:
        """Of processes that find all of this when they start."""
        for name in (EXTEND, PLANNER):
            process = installation.processes[name]
            process.stop()
            began = time.monotonic()
            process.start()
            installation.wait_ready(name)
            seconds = time.monotonic() - began
            self._measured.start_up[name] = (seconds, cpu_seconds(process.pid))
            say(f"{name} is ready after {seconds:.1f} s")
        installation.wait_for_flag("schedulerReady", True)

    def _plan(self, installation: Installation, namespace: str) -> list[Run]:
        """Submit all runs, one right after the other, and wait for their plans."""
        seen = PlansSeen()
        watch = Watched(installation.api, API_VERSION, "PipelinePlacement", seen.placement_changed)
        watch.start()
        workflow = large_cluster.long_run(self._sizes.steps)
        submitted: dict[str, float] = {}
        before = installation.metrics(PLANNER)
        computed = cpu_seconds(installation.processes[PLANNER].pid)
        for _ in range(self._sizes.runs):
            now = time.monotonic()
            name = installation.submit(workflow, namespace)
            submitted[name] = now
            # As Argo does; else the planner takes the run for one that is held back.
            begun = {"status": {"phase": "Running"}}
            installation.api.patch(installation.workflow(name, namespace), begun)
        say(f"{len(submitted)} runs submitted")
        for moments, what in ((seen.first_at, "planned"), (seen.improved_at, "improved")):
            wait_until(
                lambda moments=moments: moments.keys() >= submitted.keys(),  # type: ignore[misc]
                f"{len(submitted)} runs to be {what}",
                _PLANNED_TIMEOUT_SECONDS,
                lambda moments=moments: f"{len(moments)} of them",  # type: ignore[misc]
            )
            taken = [moments[name] - at for name, at in submitted.items()]
            self._measured.plans[what] = (median(taken), max(taken))
            say(f"all {what} after {max(taken):.1f} s")
        watch.stop()
        self._planner_looks(installation, before, computed)
        return [self._run(installation, name, namespace) for name in submitted]

    def _run(self, installation: Installation, name: str, namespace: str) -> Run:
        return Run(name, installation.workflow(name, namespace)["metadata"]["uid"])

    def _planner_looks(self, installation: Installation, before: Scraped, computed: float) -> None:
        after = installation.metrics(PLANNER)
        self._measured.looks = _quantiles(before, after, _TICK)
        changes = after.total(_CHANGES) - before.total(_CHANGES)
        spent = cpu_seconds(installation.processes[PLANNER].pid) - computed
        self._measured.planner_cpu_per_change = spent / changes if changes else None

    def _bind(
        self,
        plane: ControlPlane,
        installation: Installation,
        pod: JsonObject,
        runs: list[Run],
        namespace: str,
    ) -> None:
        """Alternating pairs of schedulers, each with pods of its own."""
        shipped = installation.scheduler_configuration()
        steps = iter(range(self._sizes.steps))
        before = installation.metrics(EXTEND)
        for pair in range(self._sizes.pairs):
            for with_extender in (True, False) if pair % 2 else (False, True):
                name = f"pair-{pair}-{'with' if with_extender else 'without'}"
                mine = [next(steps) for _ in range(self._sizes.steps // self._sizes.pairs // 2)]
                pods = [
                    large_cluster.pod_of_step(pod, run, f"step-{step}", namespace, name)
                    for run in runs
                    for step in mine
                ]
                large_cluster.create_all(plane.api, pods, "waiting pods", say)
                configuration = throughput.configuration(shipped, name, with_extender=with_extender)
                rate = throughput.pods_per_second(plane, name, configuration, len(pods))
                self._measured.rates.setdefault(with_extender, []).append(rate)
                say(f"{name}: {len(pods)} pods, {rate:.0f} pods/s")
        after = installation.metrics(EXTEND)
        self._measured.answers = _quantiles(before, after, _ANSWER, verb="filter")
        earlier = before.values("answers_total", "outcome", verb="filter")
        for outcome, count in after.values("answers_total", "outcome", verb="filter").items():
            given = int(count - earlier.get(outcome, 0))
            if given:
                self._measured.outcomes[outcome] = given

    def _remember(self, installation: Installation) -> None:
        process_memory.remember(self._measured.memory, installation, (EXTEND, PLANNER, SCHEDULER))


def _quantiles(
    before: Scraped, after: Scraped, name: str, **labels: str
) -> tuple[float, float] | None:
    """p50 and p99 of what a histogram has counted in between."""
    earlier = dict(before.buckets(name, **labels))
    counted = [
        (limit, count - earlier.get(limit, 0.0)) for limit, count in after.buckets(name, **labels)
    ]
    middle, late = quantile(counted, 0.5), quantile(counted, 0.99)
    return None if middle is None or late is None else (middle, late)


if __name__ == "__main__":
    sys.exit(main())
